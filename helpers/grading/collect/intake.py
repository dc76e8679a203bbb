"""What a class has handed in: `submitted/`, a zip or a folder, whatever a browser or a platform has called things.

Nothing is unpacked, no link is followed, and a name in an archive decides about a student's name and never
about where a file is written.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import time
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import parse_utc

from helpers.exercises import Lesson, load_lesson
from helpers.exercises.exercise import lesson_names
from helpers.grading.collect.untrusted import LARGEST_FILE, Screened, Unopened, Unreadable, screen
from helpers.notebooks import check_id

MOST_MEMBERS = 20_000
MOST_BYTES = 2 << 30  # of everything that one intake reads out of zips
HIGHEST_RATIO = 200  # of a member's size to what it takes in the zip, above 1 MB
DEEPEST_ZIP = 2  # a class's zip, and in it the zip that one student handed in
DEEPEST_FOLDER = 8

IGNORED = re.compile(r"^(\..*|__MACOSX|__pycache__)$")
MOODLE = re.compile(r"^(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)$")
CANVAS = re.compile(r"^(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<file>\d+)_(?P<rest>.+)$", re.IGNORECASE)
COPY = re.compile(r"(\s*\(\d+\)|[-_ ]copy\s*\d*|[-_ ]kopie\s*\d*|-\d+)+$", re.IGNORECASE)


@dataclass(frozen=True)
class Student:
    """Who handed in. id: nbgrader's name for them. number: the platform's. platform: "canvas", "moodle" or ""."""

    id: str
    first_name: str = ""
    last_name: str = ""
    number: str = ""
    platform: str = ""


@dataclass(frozen=True)
class Piece:
    """A file that lies somewhere. parts: the names of its folders and its own. modified: seconds since 1970."""

    parts: tuple[str, ...]
    modified: float
    read: Callable[[], bytes] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.parts[-1]

    def __str__(self) -> str:
        return "/".join(self.parts)


@dataclass(frozen=True)
class Submission:
    """What one student's marks rest on.

    piece: the file that counts, None when there is none. digest: changes when what was handed in does.
    timestamp: when it was handed in, as nbgrader reads it (UTC), "" if unknown. flags: what to know about it.
    """

    student: Student
    piece: Piece | None
    digest: str
    timestamp: str = ""
    flags: tuple[str, ...] = ()

    def open(self) -> Screened:
        """Read it again. Raises Unreadable."""
        if self.piece is None:
            raise Unreadable("is missing: no notebook was handed in")
        return screen(self.piece.read())


@dataclass
class Intake:
    """A class's submissions of one lesson by student, and what was left out, in words."""

    submissions: list[Submission]
    flags: list[str]


def take_in(folder: Path, lesson: str) -> Intake:
    """Every student's submission of the lesson in this folder or zip, by student id."""
    walk = _Walk()
    pieces = list(walk.zip(folder) if folder.is_file() else walk.folder(folder))
    sorter = _Sorter(load_lesson(lesson))
    for piece in pieces:
        sorter.sort(piece)
    submissions = sorter.submissions(pieces, walk.refused)
    own = {flag for submission in submissions for flag in submission.flags}
    return Intake(submissions, [*(f for f in walk.flags if f not in own), *sorter.flags])


# -------------------------------------------------------------------------------------------- walking


class _Walk:
    """Goes through folders and zips and hands out the notebooks and time stamps in them."""

    def __init__(self):
        self.flags: list[str] = []
        self.refused: list[tuple[tuple[str, ...], str]] = []
        self._members = 0
        self._bytes = 0

    def _refuse(self, parts: Iterable[str], why: str) -> None:
        parts = tuple(parts)
        text = f"{_shown('/'.join(parts))} {why}"
        self.flags.append(text)
        self.refused.append((parts, text))

    def folder(self, path: Path, parts: tuple[str, ...] = ()) -> Iterator[Piece]:
        if len(parts) > DEEPEST_FOLDER:
            return self._refuse(parts, "lies too deep and was left out")
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError:
            return self._refuse(parts, "cannot be read")
        for entry in entries:
            inner = (*parts, entry.name)
            if IGNORED.match(entry.name):
                continue
            if entry.is_symlink():
                self._refuse(inner, "is a link and was not followed")
            elif entry.is_dir(follow_symlinks=False):
                yield from self.folder(Path(entry.path), inner)
            elif not entry.is_file(follow_symlinks=False):
                self._refuse(inner, "is no plain file and was left out")
            elif _wanted(entry.name):
                found = entry.stat(follow_symlinks=False)
                yield Piece(inner, found.st_mtime, lambda path=entry.path: _read_plain(path))
            elif entry.name.lower().endswith(".zip"):
                yield from self.zip(Path(entry.path), _prefix(inner), inner)

    def zip(self, path: Path, prefix: tuple[str, ...] = (), shown: tuple[str, ...] = ()) -> Iterator[Piece]:
        def reopen() -> io.IOBase:
            return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")

        yield from self._members_of(reopen, prefix, shown or (path.name,), 1)

    def _members_of(self, reopen, prefix, shown, depth) -> Iterator[Piece]:
        try:
            with reopen() as file, zipfile.ZipFile(file) as archive:
                members = archive.infolist()
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, Unreadable):
            return self._refuse(shown, "is not a zip that can be read")
        for member in members:
            self._members += 1
            if self._members > MOST_MEMBERS:
                return self._refuse(shown, f"holds more than {MOST_MEMBERS:,} files; the rest was left out")
            why_not = _why_refused(member)
            if why_not:
                self._refuse((*shown, member.filename), why_not)
                continue
            names = tuple(name for name in member.filename.split("/") if name not in ("", "."))
            if member.is_dir() or not names or any(map(IGNORED.match, names)):
                continue
            nested = names[-1].lower().endswith(".zip")
            if not nested and not _wanted(names[-1]):
                continue
            self._bytes += min(member.file_size, LARGEST_FILE)
            if self._bytes > MOST_BYTES:
                return self._refuse(shown, f"holds more than {MOST_BYTES >> 30} GB; the rest was left out")
            read = _member_reader(reopen, member)
            if not nested:
                yield Piece((*prefix, *names), _modified(member), read)
            elif depth < DEEPEST_ZIP:
                inner = _prefix((*prefix, *names))
                yield from self._members_of(lambda read=read: io.BytesIO(read()), inner, (*shown, *names), depth + 1)
            else:
                self._refuse((*shown, *names), "is a zip in a zip in a zip and was left out")


def _why_refused(member: zipfile.ZipInfo) -> str:
    name = member.filename
    raw = getattr(member, "orig_filename", name)
    if "\\" in raw or "\0" in raw or name.startswith("/") or re.match(r"^[A-Za-z]:", name) or ".." in name.split("/"):
        return "has a path that leads out of the zip, and was left out"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "is a link and was not followed"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is no plain file and was left out"
    if member.flag_bits & 1:
        return "is encrypted and was left out"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an unusual way and was left out"
    if member.file_size > 1 << 20 and member.file_size > HIGHEST_RATIO * max(1, member.compress_size):
        return "would unpack to far more than it holds, and was left out"
    return ""


def _member_reader(reopen, member: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            with reopen() as file, zipfile.ZipFile(file) as archive, archive.open(member) as opened:
                return opened.read(LARGEST_FILE + 1)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, ValueError):
            raise Unreadable("is damaged inside the zip") from None

    return read


def _read_plain(path: str) -> bytes:
    """A plain file's bytes, up to one more than may be. No link is followed, no device or pipe opened."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Unreadable("is no plain file")
            return file.read(LARGEST_FILE + 1)
    except OSError:
        raise Unopened("cannot be opened") from None


def _modified(member: zipfile.ZipInfo) -> float:
    try:
        return time.mktime((*member.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0


def _wanted(name: str) -> bool:
    return name.lower().endswith((".ipynb", ".ipynb.json", ".ipynb.txt")) or name == "timestamp.txt"


def _prefix(parts: tuple[str, ...]) -> tuple[str, ...]:
    """A zip stands for the folder that it lies in, unless its own name says whose it is."""
    return parts if MOODLE.match(parts[-1]) or CANVAS.match(parts[-1]) else parts[:-1]


# -------------------------------------------------------------------------------------------- sorting


@dataclass(frozen=True)
class _Candidate:
    piece: Piece
    digest: str
    hits: int
    problem: str = ""


class _Sorter:
    """Decides which pieces are this lesson's, and whose."""

    def __init__(self, lesson: Lesson):
        self.flags: list[str] = []
        self._lesson = lesson
        self._others = [name for name in lesson_names() if name != lesson.name]
        self._laid_out: dict[str, list[_Candidate]] = {}  # nbgrader's layout: STUDENT/LESSON/...
        self._loose: list[_Candidate] = []
        self._stamps: dict[str, Piece] = {}

    def sort(self, piece: Piece) -> None:
        folders = piece.parts[:-1]
        if any(name in self._others for name in folders):
            return
        place = folders.index(self._lesson.name) if self._lesson.name in folders else -1
        whose = folders[place - 1] if place > 0 else None
        if piece.name == "timestamp.txt":
            if whose is not None:
                self._stamps[whose] = piece
            return
        candidate = self._candidate(piece)
        if whose is not None and not MOODLE.match(whose):
            if candidate.hits or candidate.problem or piece.name == f"{self._lesson.name}.ipynb":
                self._laid_out.setdefault(whose, []).append(candidate)
            else:
                self.flags.append(f"{_shown(piece)} is no notebook of this lesson and was left out")
            return
        if self._is_ours(candidate):
            self._loose.append(candidate)
        elif not any(other in piece.name for other in self._others):
            self.flags.append(f"{_shown(piece)} is no notebook of this lesson and was left out")

    def _candidate(self, piece: Piece) -> _Candidate:
        try:
            data = piece.read()
            digest = hashlib.sha256(data).hexdigest()
            return _Candidate(piece, digest, self._hits(screen(data).notebook))
        except Unreadable as problem:
            return _Candidate(piece, hashlib.sha256(f"{piece}{problem}".encode()).hexdigest(), 0, str(problem))

    def _hits(self, notebook: NotebookNode) -> int:
        """How many of the lesson's exercises stand in the notebook; 0 if it is rather another lesson's."""
        ours = exercises_in(notebook, self._lesson)
        most = max((exercises_in(notebook, load_lesson(other)) for other in self._others), default=0)
        return ours if ours >= most else 0

    def _is_ours(self, candidate: _Candidate) -> bool:
        if candidate.problem:  # nothing inside tells: it is ours unless it carries another lesson's name
            return not any(other in candidate.piece.name for other in self._others)
        return candidate.hits > 0

    def submissions(self, pieces: list[Piece], refused: list) -> list[Submission]:
        found: dict[str, tuple[Student, list[_Candidate], list[str]]] = {}
        for whose, candidates in self._laid_out.items():
            student, flags = _laid_out_student(whose)
            found.setdefault(student.id, (student, [], flags))[1].extend(candidates)
        siblings = Counter(candidate.piece.parts[:-1] for candidate in self._loose)
        for candidate in self._loose:
            student, flags = self._loose_student(candidate.piece, siblings)
            entry = found.setdefault(student.id, (student, [], []))
            entry[1].append(candidate)
            entry[2].extend(flags)
        for parts, why in refused:  # who handed in a link alone has handed in, and gets nothing for it
            if self._lesson.name in parts[1:]:
                whose = parts[parts.index(self._lesson.name) - 1]
                student, flags = _laid_out_student(whose)
                found.setdefault(student.id, (student, [], flags))[2].append(why)
        made = [self._chosen(*entry) for entry in found.values()]
        return sorted(made, key=lambda submission: submission.student.id)

    def _loose_student(self, piece: Piece, siblings: Counter) -> tuple[Student, list[str]]:
        for part in piece.parts:
            if match := MOODLE.match(part):
                first, _, last = match["name"].strip().rpartition(" ")
                name = slug(f"{match['name']}_{match['id']}")
                return Student(name, first[:128], last[:128], match["id"], "moodle"), []
            match = CANVAS.match(part)
            if match and not f"{match['file']}_{match['rest']}".startswith(self._lesson.name):
                late = ["Canvas marks it as late"] if match["late"] else []
                name = slug(f"{match['name']}_{match['id']}")
                return Student(name, "", match["name"][:128], match["id"], "canvas"), late
        folders = [part for part in piece.parts[:-1] if part != self._lesson.name]
        stem = re.sub(r"\.ipynb(\.\w+)?$", "", piece.name, flags=re.IGNORECASE)
        told = COPY.sub("", stem).replace(self._lesson.name, "").strip(" _-.")
        if folders and (siblings[piece.parts[:-1]] == 1 or not told):
            return Student(slug(folders[-1])), []
        if told:
            return Student(slug(told)), []
        return Student(slug(stem)), ["nothing says whose it is"]

    def _chosen(self, student: Student, candidates: list[_Candidate], flags: list[str]) -> Submission:
        plain = f"{self._lesson.name}.ipynb"
        flags = list(dict.fromkeys(flags))
        timestamp = self._timestamp(student, flags)
        if not candidates:
            return Submission(student, None, hashlib.sha256(b"").hexdigest(), timestamp, tuple(flags))
        best = max(
            candidates, key=lambda c: (not c.problem, int(c.piece.modified) // 2, c.piece.name == plain, str(c.piece))
        )
        if len({candidate.digest for candidate in candidates}) > 1:
            others = ", ".join(_shown(c.piece.name) for c in candidates if c is not best)
            flags.append(f"{len(candidates)} files; {_shown(best.piece.name)} is the newest and counts, not {others}")
        elif best.piece.name != plain and not student.platform:
            flags.append(f"the file is called {_shown(best.piece.name)}")
        if not best.problem and not best.hits:
            flags.append("the notebook holds none of this lesson's exercises")
        return Submission(student, best.piece, best.digest, timestamp, tuple(flags))

    def _timestamp(self, student: Student, flags: list[str]) -> str:
        stamp = self._stamps.get(student.id)
        if stamp is None:
            return ""
        try:
            text = stamp.read()[:200].decode().strip()
            if text:
                return str(parse_utc(text))
            flags.append("its time stamp is empty")
        except (Unreadable, ValueError, OverflowError, TypeError, AttributeError):
            flags.append("its time stamp cannot be read")
        return ""


def exercises_in(notebook: NotebookNode, lesson: Lesson) -> int:
    """How many of the lesson's exercises a notebook holds, by grade id, cell id, or what its cells define."""
    ids = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells}
    ids |= {cell.get("id") for cell in notebook.cells}
    text = "\n".join(cell.source for cell in notebook.cells)
    defined = set(re.findall(r"^(?:def|class)[ \t]+(\w+)", text, re.MULTILINE))
    return sum(e.name in ids or check_id(e.name) in ids or e.name in defined for e in lesson)


def _laid_out_student(name: str) -> tuple[Student, list[str]]:
    """The student of a folder in nbgrader's layout; a name that no database can hold is spelt anew."""
    if len(name) <= 100 and name.isprintable() and not re.search(r'[+,;"<>&\\]|^[=@-]', name):
        return Student(name), []
    return Student(slug(name)), [f"the folder {_shown(name)} was read as {slug(name)}"]


def slug(text: str) -> str:
    """A name that is safe as a folder, in a URL and in a database: "Jane Doe_7" becomes "Jane-Doe_7"."""
    text = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))
    text = re.sub(r"[^\w.@-]+", "-", text).strip("-._@")
    return text[:100] or "unnamed"


def _shown(name: object) -> str:
    """A file's name for a message: printable, and not endless."""
    text = "".join(sign if sign.isprintable() else "?" for sign in str(name).encode("utf-8", "replace").decode())
    return text if len(text) <= 120 else f"{text[:60]}…{text[-55:]}"
