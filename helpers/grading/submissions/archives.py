"""Going through folders and zips, and handing out the notebooks in them, each with whose it is.

Nothing is unpacked, no link is followed, and a name in an archive never decides where a file is written. The outer
names are read first, and say whose a place is (`identity`); all that lies below belongs to that owner, and is bounded
for each owner by itself, so that nobody's flood keeps out the others.
"""

from __future__ import annotations

import io
import os
import re
import stat
import time
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from helpers.grading.sanitize import plain
from helpers.grading.submissions.identity import FOLDER, PACKED, Outermost, Owner, lessons, loose_owner, platform_name
from helpers.grading.submissions.untrusted_notebook import LARGEST_FILE, Unopened, Unreadable

MOST_MEMBERS = 2_000  # of one student: files in folders and zips, of whatever kind
MOST_NOTEBOOKS = 100  # of one student
MOST_BYTES = 200 << 20  # of one student: what is read out of zips
HIGHEST_RATIO = 200  # of a member's size to what it takes in the zip, above 1 MB
DEEPEST_ZIP = 2  # a class's zip, and in it the zip that one student handed in
DEEPEST_FOLDER = 8
STAMP = "timestamp.txt"

IGNORED = re.compile(r"^(\..*|__MACOSX|__pycache__)$")
LEADS_OUT = "has a path that leads out of the zip, and was left out"
EXPORT = (
    "holds what looks like a platform's export of {} students, and was left out. Put the export's zip, or all that lies"
    " in this folder, directly into submitted/"
)
DIRECTORY_ENTRY = b"PK\x01\x02"  # with which each member of a zip is listed


@dataclass(frozen=True)
class _Place:
    """A place that the walk comes to, whose it is, and what the platform says about it.

    outer: the names that the instructor or the platform gave. inside: those below, which the student gave, a zip's own
    among them. dated: seconds since 1970, of the outermost file or member; a date in a student's zip is never read.
    upload: Canvas's number of the file. container: the class's zip that it lies in, "" if in none. packed: it lies in a
    student's own zip.
    """

    owner: Owner
    outer: tuple[str, ...]
    inside: tuple[str, ...]
    dated: float = 0.0
    upload: int = 0
    late: bool = False
    container: str = ""
    packed: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        return (*self.outer, *self.inside)

    @property
    def name(self) -> str:
        return self.parts[-1]

    def __str__(self) -> str:
        return "/".join(self.parts)

    def below(self, *names: str, dated: float | None = None, packed: bool = False) -> _Place:
        when = self.dated if self.packed or dated is None else dated
        return replace(self, inside=(*self.inside, *names), dated=when, packed=self.packed or packed)

    def piece(self, read: Callable[[], bytes]) -> Piece:
        return Piece(**vars(self), read=read)


@dataclass(frozen=True)
class Piece(_Place):
    """A file that lies somewhere, and whose it is."""

    read: Callable[[], bytes] = field(kw_only=True, repr=False, compare=False)


@dataclass(frozen=True)
class Refused:
    """What was left out, in words. owner: whose it was, if that was known. parts: its names from the outermost on."""

    owner: Owner | None
    parts: tuple[str, ...]
    says: str


@dataclass
class _Spent:
    members: int = 0
    notebooks: int = 0
    bytes: int = 0
    told: bool = False


class Walk:
    """Goes once through what a class handed in. refused and notes: filled on the way."""

    def __init__(self):
        self.refused: list[Refused] = []
        self.notes: list[str] = []
        self._spent: dict[Owner, _Spent] = defaultdict(_Spent)

    def through(self, place: Path) -> Iterator[Piece]:
        """The pieces in this folder, or in this zip of a class."""
        if place.is_dir():
            yield from self._top(place, ())
        elif named := platform_name(place.name):
            yield from self._file(place, _place(named, (place.name,), _mtime(place)))
        else:
            yield from self._class_zip(place, place.name)

    def _refuse(self, owner: Owner | None, parts: Sequence[str], why: str) -> None:
        self.refused.append(Refused(owner, tuple(parts), f"{shown('/'.join(parts))} {why}"))

    # ------------------------------------------------------------------------------- the instructor's level

    def _top(self, folder: Path, outer: tuple[str, ...]) -> Iterator[Piece]:
        try:
            entries = _entries(folder)
        except OSError:
            return self._refuse(None, outer or (folder.name,), "cannot be read")
        for entry in entries:
            names = (*outer, entry.name)
            if IGNORED.match(entry.name):
                continue
            if entry.is_symlink():
                self._refuse(None, names, "is a link and was not followed")
            elif named := platform_name(entry.name):
                yield from self._any(entry, _place(named, names, _mtime(entry)))
            elif entry.is_dir(follow_symlinks=False):
                if entry.name in lessons() and not outer:
                    yield from self._top(Path(entry.path), names)
                else:
                    yield from self._students_folder(entry, names)
            elif not entry.is_file(follow_symlinks=False):
                self._refuse(None, names, "is no plain file and was left out")
            elif _is_zip(entry.name):
                yield from self._class_zip(Path(entry.path), "/".join(names))
            elif _is_notebook(entry.name):
                yield from self._any(entry, _Place(loose_owner(entry.name), names, (), _mtime(entry)))

    def _students_folder(self, entry: os.DirEntry, names: tuple[str, ...]) -> Iterator[Piece]:
        """A folder that the instructor made: one student's, whatever lies in it."""
        try:
            inner = [child.name for child in _entries(Path(entry.path))]
        except OSError:
            return self._refuse(Owner(FOLDER, entry.name), names, "cannot be read")
        meant = {named.owner for named in map(platform_name, inner) if named}
        if len(meant) > 1 and not {*inner} & {*lessons()}:
            return self._refuse(None, names, EXPORT.format(len(meant)))
        yield from self._folder(Path(entry.path), _Place(Owner(FOLDER, entry.name), names, ()))

    def _class_zip(self, path: Path, shown_as: str) -> Iterator[Piece]:
        """A zip that lies where the instructor put it: its outermost names say whose things are."""
        reopen = _opener(path)
        members = self._members(reopen, None, (shown_as,))
        exports = self._exports_in_folders(members, shown_as)
        owners = {}
        for member in members:
            names, why_not = _names(member), _why_refused(member)
            if why_not is LEADS_OUT:
                self._refuse(None, (shown_as, member.filename), why_not)
                continue
            if not names or any(map(IGNORED.match, names)) or names[0] in exports:
                continue
            place = self._in_class_zip(names, shown_as, member)
            if why_not:
                self._refuse(place.owner if place else None, (shown_as, member.filename), why_not)
            elif place and not member.is_dir():
                owners[place.owner] = names[0]
                if self._may_go_on(place):
                    yield from self._member(reopen, member, place, 1)
        self._note(shown_as, list(owners))

    def _exports_in_folders(self, members: list[zipfile.ZipInfo], shown_as: str) -> set[str]:
        """Folders in a class's zip that look like exports themselves: one student's folder could be made to look so."""
        meant, laid_out = defaultdict(set), set()
        for names in map(_names, members):
            if len(names) > 1 and not platform_name(names[0]) and names[0] not in lessons():
                named = platform_name(names[1])
                meant[names[0]] |= {named.owner} if named else set()
                laid_out |= {names[0]} if names[1] in lessons() else set()
        found = {name for name, owners in meant.items() if len(owners) > 1} - laid_out
        for name in sorted(found):
            self._refuse(None, (shown_as, name), EXPORT.format(len(meant[name])))
        return found

    def _in_class_zip(self, names: tuple[str, ...], container: str, member: zipfile.ZipInfo) -> _Place | None:
        if names and names[0] in lessons():
            names = names[1:]  # a lesson's folder in a zip says nothing about who
        if not names:
            return None
        dated = _modified(member)
        if named := platform_name(names[0]):
            made = _place(named, (container, names[0]), dated, container)
        elif len(names) == 1:
            made = _Place(loose_owner(names[0]), (container, names[0]), (), dated, container=container)
        else:
            made = _Place(Owner(PACKED, names[0]), (container, names[0]), (), dated, container=container)
        return made.below(*names[1:]) if len(names) > 1 else made

    def _note(self, container: str, owners: list[Owner]) -> None:
        """Say as what a zip was read: a student's own, put there by mistake, could name others."""
        for platform in ("canvas", "moodle"):
            count = sum(owner.platform == platform for owner in owners)
            if count:
                students = "1 student" if count == 1 else f"{count} students"
                self.notes.append(f"{shown(container)} was read as an export of {platform.title()}: {students}")
        stray = [owner for owner in owners if not owner.platform]
        if stray and len(stray) < len(owners):
            self.notes.append(
                f"{shown(container)} holds names that no platform gives, as {shown(stray[0].name)}: is it an export?"
            )

    # ------------------------------------------------------------------------------------ a student's level

    def _any(self, entry: os.DirEntry, place: _Place) -> Iterator[Piece]:
        if entry.is_dir(follow_symlinks=False):
            yield from self._folder(Path(entry.path), place)
        else:
            yield from self._file(Path(entry.path), place)

    def _folder(self, path: Path, place: _Place) -> Iterator[Piece]:
        if len(place.inside) > DEEPEST_FOLDER:
            return self._refuse(place.owner, place.parts, "lies too deep and was left out")
        try:
            entries = _entries(path)
        except OSError:
            return self._refuse(place.owner, place.parts, "cannot be read")
        for entry in entries:
            if IGNORED.match(entry.name):
                continue
            if not self._may_go_on(place):
                return
            inner = place.below(entry.name, dated=_mtime(entry))
            if entry.is_symlink():
                self._refuse(place.owner, inner.parts, "is a link and was not followed")
            elif entry.is_dir(follow_symlinks=False):
                yield from self._folder(Path(entry.path), inner)
            else:
                yield from self._file(Path(entry.path), inner)

    def _file(self, path: Path, place: _Place) -> Iterator[Piece]:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            self._refuse(place.owner, place.parts, "is no plain file and was left out")
        elif _is_zip(place.name):
            yield from self._students_zip(_opener(path), place, 1)
        elif (_is_notebook(place.name) or _is_stamp(place)) and self._may_read(place, 0):
            yield place.piece(lambda: read_plain(path))

    def _students_zip(self, reopen: Callable, place: _Place, depth: int) -> Iterator[Piece]:
        for member in self._members(reopen, place.owner, place.parts):
            if not self._may_go_on(place):
                return
            inner = place.below(*_names(member), packed=True)
            why_not = _why_refused(member)
            if why_not:
                self._refuse(place.owner, (*place.parts, member.filename), why_not)
            elif _names(member) and not member.is_dir() and not any(map(IGNORED.match, _names(member))):
                yield from self._member(reopen, member, inner, depth)

    def _member(self, reopen: Callable, member: zipfile.ZipInfo, place: _Place, depth: int) -> Iterator[Piece]:
        name = place.parts[-1]
        if not (_is_zip(name) or _is_notebook(name) or _is_stamp(place)):
            return
        if not self._may_read(place, min(member.file_size, LARGEST_FILE)):
            return
        read = _member_reader(reopen, member)
        if not _is_zip(name):
            yield place.piece(read)
        elif depth < DEEPEST_ZIP:
            yield from self._students_zip(_Kept(read).opened, place, depth + 1)
        else:
            self._refuse(place.owner, place.parts, "is a zip in a zip in a zip and was left out")

    def _members(self, reopen: Callable, owner: Owner | None, parts: tuple[str, ...]) -> list[zipfile.ZipInfo]:
        try:
            with reopen() as file:
                if owner is not None and _entries_listed(file) > 10 * MOST_MEMBERS:
                    self._refuse(owner, parts, f"lists more than {10 * MOST_MEMBERS:,} files and was left out")
                    return []
                with zipfile.ZipFile(file) as archive:
                    return archive.infolist()
        except (OSError, EOFError, zipfile.BadZipFile, ValueError, NotImplementedError, Unreadable, RuntimeError):
            self._refuse(owner, parts, "is not a zip that can be read")
            return []

    def _may_go_on(self, place: _Place) -> bool:
        spent = self._spent[place.owner]
        spent.members += 1
        return self._within(place, spent.members, MOST_MEMBERS, f"more than {MOST_MEMBERS:,} files")

    def _may_read(self, place: _Place, size: int) -> bool:
        spent = self._spent[place.owner]
        spent.bytes += size
        spent.notebooks += 1
        return self._within(
            place, spent.notebooks, MOST_NOTEBOOKS, f"more than {MOST_NOTEBOOKS} notebooks"
        ) and self._within(place, spent.bytes, MOST_BYTES, f"more than {MOST_BYTES >> 20} MB")

    def _within(self, place: _Place, count: int, most: int, what: str) -> bool:
        spent = self._spent[place.owner]
        if count > most and not spent.told:
            spent.told = True
            self._refuse(place.owner, place.outer, f"holds {what}; the rest was left out")
        return count <= most


def _place(named: Outermost, outer: tuple[str, ...], dated: float, container: str = "") -> _Place:
    return _Place(named.owner, outer, (), dated, named.upload, named.late, container)


def _entries(folder: Path) -> list[os.DirEntry]:
    return sorted(os.scandir(folder), key=lambda entry: entry.name)


def _mtime(entry: os.DirEntry | Path) -> float:
    return os.lstat(entry).st_mtime


def _opener(path: Path) -> Callable[[], io.IOBase]:
    def reopen() -> io.IOBase:
        return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")

    return reopen


class _Kept:
    """The bytes of a student's zip while it is walked through; read anew when somebody asks later."""

    _last: tuple[_Kept | None, bytes] = (None, b"")

    def __init__(self, read: Callable[[], bytes]):
        self._read = read

    def opened(self) -> io.BytesIO:
        last, data = _Kept._last
        if last is not self:
            data = self._read()
            _Kept._last = (self, data)
        return io.BytesIO(data)


def _entries_listed(file: io.IOBase) -> int:
    """An upper bound of how many members a zip lists, found without parsing."""
    count, tail = 0, b""
    while block := file.read(1 << 20):
        count += (tail + block).count(DIRECTORY_ENTRY)
        tail = block[-3:]
    file.seek(0)
    return count


def _names(member: zipfile.ZipInfo) -> tuple[str, ...]:
    return tuple(name for name in member.filename.split("/") if name not in ("", "."))


def _why_refused(member: zipfile.ZipInfo) -> str:
    name = member.filename
    raw = getattr(member, "orig_filename", name)
    if "\\" in raw or "\0" in raw or name.startswith("/") or re.match(r"^[A-Za-z]:", name) or ".." in name.split("/"):
        return LEADS_OUT
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


def _member_reader(reopen: Callable, member: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        try:
            with reopen() as file, zipfile.ZipFile(file) as archive, archive.open(member) as opened:
                return opened.read(LARGEST_FILE + 1)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, ValueError):
            raise Unreadable("is damaged inside the zip") from None

    return read


def read_plain(path: Path | str) -> bytes:
    """A plain file's bytes, up to one more than may be. No link is followed, no device opened. Raises Unreadable."""
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


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


def _is_notebook(name: str) -> bool:
    return name.lower().endswith((".ipynb", ".ipynb.json", ".ipynb.txt"))


def _is_stamp(place: _Place) -> bool:
    """The time stamp of nbgrader's own layout, and no file of that name anywhere else."""
    return (
        place.owner.kind in (FOLDER, PACKED)
        and not place.packed
        and len(place.inside) == 2
        and place.inside[0] in lessons()
        and place.inside[1] == STAMP
    )


def shown(name: object) -> str:
    """A file's name for a message: harmless, and not endless."""
    text = plain(name, 2000)
    return text if len(text) <= 120 else f"{text[:60]}…{text[-55:]}"
