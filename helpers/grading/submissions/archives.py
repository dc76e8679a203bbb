"""The files that a class handed in, in folders and zips, each with its owner.

Nothing is unpacked, no link is followed, and no name in an archive decides where a file is written. The outermost name
says whose a file is (`identity`). Each owner has limits of their own: one student's flood costs the others nothing.
"""

from __future__ import annotations

import io
import os
import re
import stat
import time
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from helpers.grading.submissions.identity import FOLDER, PACKED, FileOwner, lessons, loose_owner, parse_platform_name
from helpers.grading.submissions.untrusted_notebook import LARGEST_FILE, UnopenedFile, UnreadableFile
from helpers.text import plain

MOST_FILES = 2_000  # of one student, of whatever kind
MOST_MB = 200  # of one student: what is read, each zip once for each notebook in it
MOST_LISTED = 10_000  # of one student: files in the lists of zips, which are parsed as a whole
MOST_NOTEBOOKS = 100  # of one student
HIGHEST_RATIO = 200  # of a file's size to its size in the zip, above 1 MB
DEEPEST_ZIP = 2  # a class's zip, and in it a student's own
DEEPEST_FOLDER = 10
STAMP = "timestamp.txt"
NOTEBOOKS, WEIGHTS = (".ipynb", ".ipynb.json", ".ipynb.txt"), (".safetensors",)
TABLE = ".csv"  # of marks or times, which a platform exports beside the files

IGNORED = re.compile(r"^(\..*|__MACOSX|__pycache__)$")
LINK, NO_FILE = "is a link and was not followed", "is no plain file and was left out"
EXPORT = (
    "holds what looks like a platform's export of {} students, and was left out. Put the export's zip, or all that is"
    " in this folder, directly into submitted/"
)
DIRECTORY_ENTRY = b"PK\x01\x02"  # begins each entry of a zip's list of files
ZIP_ERRORS = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, ValueError)


@dataclass(frozen=True)
class SubmittedFile:
    """A file and whose it is."""

    owner: FileOwner
    outer: tuple[str, ...]
    """The names that the instructor or the platform gave."""
    inside: tuple[str, ...]
    """Those below, which the student gave."""
    modified: float = 0.0
    """Seconds since 1970, of the outermost file; a date in a student's own zip is never read."""
    container: str = ""
    """The class's zip that holds it, "" if none does."""
    read: Callable[[], bytes] = field(kw_only=True, repr=False, compare=False)

    @property
    def parts(self) -> tuple[str, ...]:
        return (*self.outer, *self.inside)

    @property
    def name(self) -> str:
        return self.parts[-1]

    def __str__(self) -> str:
        return "/".join(self.parts)


@dataclass(frozen=True)
class LeftOut:
    """A file that was left out."""

    owner: FileOwner | None
    path: str
    problem: str
    """Completes a sentence that begins with the path."""

    def __str__(self) -> str:
        return f"{plain(self.path, 120)} {self.problem}"


@dataclass(frozen=True)
class ArchiveEntry:
    """A file in a folder or a zip."""

    path: str
    names: tuple[str, ...]
    """Its path, () where that would lead out of the zip."""
    read: Callable[[], bytes] = field(repr=False)
    problem: str = ""
    """Why it is left out, "" if it is not."""
    modified: float = 0.0
    megabytes: float = 0.0
    """How much is read for it, at most."""
    instead: str = ""
    """Says of which others of its name it takes the place, "" where of none."""


class FileScanner:
    """Finds the files that a class handed in. On the way are filled: left_out, owners with a file of each, and others.

    weights: find files of weights too, beside notebooks.
    """

    def __init__(self, weights: bool = False) -> None:
        self._endings = (*NOTEBOOKS, *WEIGHTS) if weights else NOTEBOOKS
        self.left_out: list[LeftOut] = []
        self.owners: dict[FileOwner, SubmittedFile] = {}
        self.others: dict[FileOwner, list[SubmittedFile]] = defaultdict(list)  # of kinds that nobody looks for
        self._used: dict[tuple[FileOwner, str], float] = defaultdict(float)
        self._listed: Counter[FileOwner | None] = Counter()  # files in the lists of zips
        self._cut_off: set[FileOwner] = set()

    def scan(self, place: Path) -> Iterator[SubmittedFile]:
        """The notebooks, files of weights and time stamps in this folder or zip."""
        if place.is_dir():
            yield from self._by_owner(place, list(_folder_entries(place)))
        elif parse_platform_name(place.name):
            yield from self._by_owner(place.parent, [_disk_entry(place, (place.name,))])
        else:
            yield from self._class_zip(place.parent, place.name)

    def _class_zip(self, folder: Path, path: str) -> Iterator[SubmittedFile]:
        listed = self._zip_entries(partial(zipfile.ZipFile, folder / path), None, path)
        yield from self._by_owner(folder, listed, container=path)

    def _leave_out(self, owner: FileOwner | None, path: str, problem: str) -> None:
        self.left_out.append(LeftOut(owner, path, problem))

    def _by_owner(self, folder: Path, entries: list[ArchiveEntry], container: str = "") -> Iterator[SubmittedFile]:
        """The files of a folder or a class's zip, whose outermost names are the instructor's or a platform's."""
        exports = self._unpacked_exports(entries, container)
        for entry in entries:
            file = _with_owner(entry, container, self._endings)
            if file is not None:
                if file.outer[-1] not in exports:
                    self.owners.setdefault(file.owner, file)
                    yield from self._file(entry, file, zips=1 if container else 0)
            elif entry.problem:
                self._leave_out(None, f"{container}/{entry.path}" if container else entry.path, entry.problem)
            elif not container and _is_zip(entry.path):
                yield from self._class_zip(folder, entry.path)
            elif not entry.path.lower().endswith(TABLE):
                self._leave_out(None, f"{container}/{entry.path}".lstrip("/"), "is no notebook and was left out")

    def _unpacked_exports(self, entries: list[ArchiveEntry], container: str) -> set[str]:
        """Folders that hold files of several students, as a platform names them: they are not one student's."""
        owners: dict[str, set[FileOwner]] = defaultdict(set)
        for entry in entries:
            folder, child, *_ = *_without_lesson(entry.names), "", ""
            if not parse_platform_name(folder) and (owner := parse_platform_name(child)):
                owners[folder].add(owner)
        exports = {folder for folder in owners if len(owners[folder]) > 1}
        for folder in sorted(exports):
            self._leave_out(None, f"{container}/{folder}".lstrip("/"), EXPORT.format(len(owners[folder])))
        return exports

    def _file(self, entry: ArchiveEntry, file: SubmittedFile, zips: int) -> Iterator[SubmittedFile]:
        """What is looked for in a file of a student's. zips: how many zips it is in."""
        if not self._within(file, "files", 1, MOST_FILES):
            return
        stamp = _is_stamp(file) and zips == bool(file.container)
        if entry.problem:
            self._leave_out(file.owner, str(file) if entry.names else f"{file}/{entry.path}", entry.problem)
        elif stamp or file.name.lower().endswith(self._endings):
            if self._within(file, "notebooks", 1, MOST_NOTEBOOKS) and self._within(
                file, "MB", entry.megabytes, MOST_MB
            ):
                if entry.instead:
                    self._leave_out(file.owner, str(file), entry.instead)
                yield file
        elif _is_zip(file.name) and zips == DEEPEST_ZIP:
            self._leave_out(file.owner, str(file), "is a zip in a zip in a zip and was left out")
        elif _is_zip(file.name) and self._within(file, "MB", entry.megabytes, MOST_MB):
            left = MOST_LISTED - self._listed[file.owner]
            for inner in self._zip_entries(partial(_open_zip, entry.read, left), file.owner, str(file)):
                inner = replace(inner, megabytes=inner.megabytes + entry.megabytes)
                inside = (*file.inside, *inner.names)
                yield from self._file(inner, replace(file, inside=inside, read=inner.read), zips + 1)
        else:
            self.others[file.owner].append(file)

    def _zip_entries(
        self, open_zip: Callable[[], zipfile.ZipFile], owner: FileOwner | None, path: str
    ) -> list[ArchiveEntry]:
        try:
            listed = _opened(open_zip).infolist()
        except UnreadableFile as problem:
            self._leave_out(owner, path, f"{problem} and was left out")
        except ZIP_ERRORS:
            self._leave_out(owner, path, "is not a zip that can be read")
        else:
            self._listed[owner] += len(listed)
            members = [member for member in listed if not member.is_dir()]
            entries = [_zip_entry(open_zip, member) for member in members]
            return [entry for entry in _last_of_each(entries, members) if not any(map(_is_ignored, entry.names))]
        return []

    def _within(self, file: SubmittedFile, unit: str, amount: float, most: float) -> bool:
        """Count what an owner's files take up, and say once where it is too much."""
        self._used[file.owner, unit] += amount
        within = self._used[file.owner, unit] <= most
        if not within and file.owner not in self._cut_off:
            self._cut_off.add(file.owner)
            self._leave_out(file.owner, "/".join(file.outer), f"holds more than {most:,} {unit}; the rest was left out")
        return within


def _with_owner(entry: ArchiveEntry, container: str, endings: tuple[str, ...]) -> SubmittedFile | None:
    """The entry as its owner's file; None if its name says no owner."""
    if not entry.names:
        return None
    inside = _without_lesson(entry.names)[1:]
    outer = entry.names[: len(entry.names) - len(inside)]
    owner = parse_platform_name(outer[-1])
    if owner is None and inside:
        owner = FileOwner(PACKED if container else FOLDER, outer[-1])
    elif owner is None and (outer[-1].lower().endswith(endings) or (container and _is_zip(outer[-1]))):
        owner = loose_owner(outer[-1])
    if owner is None:
        return None
    outer = (container, *outer) if container else outer
    return SubmittedFile(owner, outer, inside, entry.modified, container, read=entry.read)


def _without_lesson(names: tuple[str, ...]) -> tuple[str, ...]:
    """The path without the folder of a lesson that it may begin with: that does not say whose it is."""
    return names[1:] if len(names) > 1 and names[0] in lessons() else names


def _folder_entries(folder: Path, above: tuple[str, ...] = ()) -> Iterator[ArchiveEntry]:
    problem = "is too deep in folders and was left out" if len(above) > DEEPEST_FOLDER else ""
    try:
        children = [] if problem else sorted(os.scandir(folder), key=lambda child: child.name)
    except OSError:
        children, problem = [], "cannot be read"
    if problem:
        yield ArchiveEntry("/".join(above) or folder.name, above, bytes, problem)
    for child in children:
        names = (*above, child.name)
        if _is_ignored(child.name):
            continue
        if child.is_dir(follow_symlinks=False):
            yield from _folder_entries(Path(child), names)
        else:
            yield _disk_entry(Path(child), names)


def _disk_entry(path: Path, names: tuple[str, ...]) -> ArchiveEntry:
    status = os.lstat(path)
    problem = LINK if stat.S_ISLNK(status.st_mode) else "" if stat.S_ISREG(status.st_mode) else NO_FILE
    megabytes = min(status.st_size, LARGEST_FILE) / (1 << 20)
    return ArchiveEntry("/".join(names), names, partial(read_plain, path), problem, status.st_mtime, megabytes)


def _zip_entry(open_zip: Callable[[], zipfile.ZipFile], member: zipfile.ZipInfo) -> ArchiveEntry:
    path, raw = member.filename, member.orig_filename
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    problem = _zip_problem(member)
    if ".." in names or "\\" in raw or "\0" in raw or re.match(r"/|[A-Za-z]:", path) or not names:
        names, problem = (), "has a path that leads out of the zip, and was left out"
    read = partial(_read_member, open_zip, member)
    return ArchiveEntry(path, names, read, problem, _modified(member), min(member.file_size, LARGEST_FILE) / (1 << 20))


def _zip_problem(member: zipfile.ZipInfo) -> str:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return LINK
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return NO_FILE
    if member.flag_bits & 1:
        return "is encrypted and was left out"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an unusual way and was left out"
    if member.file_size > 1 << 20 and member.file_size > HIGHEST_RATIO * max(1, member.compress_size):
        return "would unpack to far more than it holds, and was left out"
    return ""


def _open_zip(read: Callable[[], bytes], most: int) -> zipfile.ZipFile:
    """A student's own zip. Raises UnreadableFile, before it is parsed, where there is too much of it."""
    data = read()
    if len(data) > LARGEST_FILE:
        raise UnreadableFile(f"is larger than {LARGEST_FILE >> 20} MB")
    if data.count(DIRECTORY_ENTRY) > most:
        raise UnreadableFile(f"lists more than {MOST_LISTED:,} files")
    return zipfile.ZipFile(io.BytesIO(data))


@lru_cache(maxsize=2)  # a class's zip and a student's own in it: each is parsed once, however much is read of it
def _opened(open_zip: Callable[[], zipfile.ZipFile]) -> zipfile.ZipFile:
    return open_zip()


def _last_of_each(entries: list[ArchiveEntry], members: list[zipfile.ZipInfo]) -> list[ArchiveEntry]:
    """Of entries of one path the last, which every unzip takes; and of those of one place in the zip."""
    places: dict[tuple[str, ...] | int, list[int]] = defaultdict(list)
    for place, entry in enumerate(entries):
        places[entry.names or place].append(place)
    kept = {members[same[-1]].header_offset: same for same in places.values()}
    return [replace(entries[same[-1]], instead=_told_apart(same, members)) for same in kept.values()]


def _told_apart(same: list[int], members: list[zipfile.ZipInfo]) -> str:
    def told(place: int) -> str:
        date = "{}-{:02}-{:02} {:02}:{:02}".format(*members[place].date_time)
        return f"number {place + 1} ({members[place].file_size:,} bytes, dated {date})"

    if len(same) == 1:
        return ""
    more = " or another" if len(same) > 2 else ""
    return f"is in the zip {len(same):,} times: {told(same[-1])} counts, not {told(same[0])}{more}"


def _read_member(open_zip: Callable[[], zipfile.ZipFile], member: zipfile.ZipInfo) -> bytes:
    try:
        with _opened(open_zip).open(member) as opened:
            return opened.read(LARGEST_FILE + 1)
    except ZIP_ERRORS:
        raise UnreadableFile("is damaged inside the zip") from None


def read_plain(path: Path | str) -> bytes:
    """A plain file's bytes, up to one more than allowed. Follows no link, opens no device. Raises UnreadableFile."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnreadableFile("is no plain file")
            return file.read(LARGEST_FILE + 1)
    except OSError:
        raise UnopenedFile("cannot be opened") from None


def _modified(member: zipfile.ZipInfo) -> float:
    try:
        return time.mktime((*member.date_time, 0, 0, -1))
    except (ValueError, OverflowError):
        return 0.0


def _is_ignored(name: str) -> bool:
    return bool(IGNORED.match(name)) and parse_platform_name(name) is None


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


def _is_stamp(file: SubmittedFile) -> bool:
    """The time stamp of nbgrader's own layout, and no file of that name anywhere else."""
    kind, inside = file.owner.kind, file.inside
    return kind in (FOLDER, PACKED) and len(inside) == 2 and inside[0] in lessons() and inside[1] == STAMP
