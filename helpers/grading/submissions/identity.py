"""Whose a file is, and which student that is.

One name alone decides, the outermost: the one that Canvas or Moodle gave, or that of the folder, zip or file that the
instructor put there. What a student sent is below that name and never counts: no path, no date, and no name that
looks like another platform's.

What the platforms write, from their own sources:

- Canvas: `doejane_77_4711_work.ipynb`, `doejane_LATE_77_4711_work.ipynb`: the sortable name in small letters without
  spaces and punctuation, the user's number, the number of the uploaded file (a later one is higher), the file's name
  as the student gave it. Anonymous: `anon_8Bz3A_4711_work.ipynb`. No folders. The dates in the zip are the download's.
- Moodle: a folder `Jane Doe_123_assignsubmission_file_` (before 4.2 with a trailing underscore), or, without folders,
  the same followed by the file's name. Moodle takes underscores out of names. The number is the participant's in that
  assignment, and another one in the next. The dates in the zip are those of the download.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from helpers.exercises.exercise import lesson_names
from helpers.grading.submissions.roster import Student, match_key, slug
from helpers.text import plain

MOODLE = re.compile(r"^(?P<name>[^_]+)_(?P<id>\d{1,18})_assignsubmission_(?:file|onlinetext)(?:_.*)?$", re.DOTALL)
CANVAS = re.compile(
    r"^(?P<name>\w+?)(?P<late>_LATE)?_(?P<id>[1-9]\d{0,17})_(?P<file>[1-9]\d{0,17})_(?P<rest>.+)$", re.DOTALL
)
ANONYMOUS = re.compile(r"^(?P<late>LATE_)?anon_(?P<id>[A-Za-z0-9]{5})_(?P<file>[1-9]\d{0,17})_.+$", re.DOTALL)
COPY = re.compile(r"(\s*\(\d+\)|[-_ ]copy\s*\d*|[-_ ]kopie\s*\d*|-\d+)+$", re.IGNORECASE)
ENDING = re.compile(r"(\.ipynb(\.\w+)?|\.zip|([-_ ]?weights)?\.safetensors)$", re.IGNORECASE)

# By who keeps a name that two would have: the instructor's own folder first, a loose file last
FOLDER, PLATFORMS, PACKED, LOOSE = "folder", ("canvas", "moodle"), "packed", "loose"
KINDS = (FOLDER, *PLATFORMS, PACKED, LOOSE)


@cache
def lessons() -> tuple[str, ...]:
    """The names of all lessons, looked up once."""
    return tuple(lesson_names())


@dataclass(frozen=True)
class FileOwner:
    """Whose a file is, by its outermost name."""

    kind: str
    """One of KINDS."""
    name: str
    """As it is spelled there."""
    number: str = ""
    """The platform's."""
    upload: int = field(default=0, compare=False)
    late: bool = field(default=False, compare=False)
    """upload, late: what that name says of this one file: its number, 0 if there is none, and whether it came late."""

    @property
    def platform(self) -> str:
        return self.kind if self.kind in PLATFORMS else ""

    @property
    def default_id(self) -> str:
        """The student's id, unless it is taken: a folder's name, if it is safe but for spaces."""
        if self.kind in (FOLDER, PACKED) and slug(self.name) == self.name.replace(" ", "-"):
            return self.name
        return slug(self._numbered)

    @property
    def _numbered(self) -> str:
        return f"{self.name}_{self.number}" if self.number else self.name

    def __str__(self) -> str:
        where = {FOLDER: "the folder ", PACKED: "the folder in a zip ", LOOSE: "the file of "}
        return plain(where.get(self.kind, f"{self.kind.title()}'s ") + self._numbered, 120)


def parse_platform_name(name: str) -> FileOwner | None:
    """Whose a file is if Canvas or Moodle gave the name, read from the left: the right end is the student's choice."""
    if match := MOODLE.match(name):
        return FileOwner("moodle", match["name"].strip(), match["id"])
    if match := ANONYMOUS.match(name):
        return FileOwner("canvas", f"anon_{match['id']}", "", int(match["file"]), bool(match["late"]))
    match = CANVAS.match(name)
    if match is None or f"{match['file']}_{match['rest']}".startswith(lessons()):
        return None  # "smith_2024_10_topic.ipynb" is Smith's, and no platform's
    return FileOwner("canvas", match["name"], match["id"], int(match["file"]), bool(match["late"]))


def loose_owner(name: str) -> FileOwner:
    """Whose a file is that no folder or platform names: its name without the lesson's and the numbers of copies."""
    stem = ENDING.sub("", name)
    student = COPY.sub("", stem)
    for lesson in lessons():
        student = student.replace(lesson, "")
    return FileOwner(LOOSE, COPY.sub("", student).strip(" _-.") or stem or name)


@dataclass
class IdentifiedStudent:
    """A student, the owners of files that mean them, and what to know about that."""

    student: Student
    owners: list[FileOwner]
    flags: list[str] = field(default_factory=list)


def identify(
    owners: Iterable[FileOwner], roster: Mapping[str, Student], collected: Mapping[str, Student]
) -> list[IdentifiedStudent]:
    """The students whom these owners mean: never one student for two owners, unless the instructor's tables say so.

    roster: the class by id; it gives ids to students whom a platform names, and names and addresses to all. collected:
    the students for whom `make collect` made a folder, by id.
    """
    ordered = sorted(set(owners), key=lambda owner: (KINDS.index(owner.kind), owner.name, owner.number))
    entries, flags = _match_roster(ordered, roster)
    folders = {owner.name: owner for owner in ordered if owner.kind == FOLDER}
    ids = Counter(owner.default_id for owner in ordered if owner.platform)
    groups: dict[Hashable, list[FileOwner]] = defaultdict(list)
    for owner in ordered:
        key = entries.get(owner, owner)
        if key is owner and owner.platform and ids[owner.default_id] == 1:
            key = folders.get(owner.default_id, owner)  # `make collect` makes folders of this name
        groups[key].append(owner)
    students: dict[str, IdentifiedStudent] = {}
    kept_apart: set[str] = set()
    for group in groups.values():
        student = _student(group, entries.get(group[0]), roster, collected)
        identified = IdentifiedStudent(student, group, [flags[owner] for owner in group if owner in flags])
        _give_id(identified, students, kept_apart)
    _flag_lookalikes(list(students.values()), kept_apart)
    return list(students.values())


def _match_roster(
    owners: list[FileOwner], roster: Mapping[str, Student]
) -> tuple[dict[FileOwner, Student], dict[FileOwner, str]]:
    """The entries of the roster that owners mean, and flags for those of whom only a name is known.

    Canvas's students are matched by number, Moodle's by a name that only one of them has, folders by id.
    """
    numbers = {entry.number: entry for entry in roster.values() if entry.number and entry.platform != "moodle"}
    names: defaultdict[str, list[Student]] = defaultdict(list)
    for entry in roster.values():
        names[match_key(entry.name)] += [entry] if entry.platform != "canvas" else []
    in_moodle = Counter(match_key(owner.name) for owner in owners if owner.kind == "moodle")
    matches, flags = {}, {}
    for owner in owners:
        if owner.kind == "canvas":
            match = numbers.get(owner.number)
        else:
            match = roster.get({FOLDER: owner.name, "moodle": owner.default_id}.get(owner.kind, ""))
        namesakes = names[match_key(owner.name)]
        if owner.kind == "moodle" and match is None and len(namesakes) == 1:
            match, shown = namesakes[0], plain(namesakes[0].id)
            flags[owner] = f"matched to {shown} in the roster by name alone"
            if in_moodle[match_key(owner.name)] > 1:
                match = None
                flags[owner] = f"not matched to {shown} in the roster: several hand-ins carry that name"
        if match is not None:
            matches[owner] = match
    return matches, flags


def _student(
    owners: list[FileOwner], entry: Student | None, roster: Mapping[str, Student], collected: Mapping[str, Student]
) -> Student:
    owner = next((owner for owner in owners if owner.platform), owners[0])
    student, unknown = owner.default_id, Student("")
    known = entry or roster.get(student) or next((e for e in roster.values() if student in e.other_ids), unknown)
    student = entry.id if entry else student
    of_folder = collected.get(student, unknown) if owner.kind == FOLDER else unknown
    source = next((each for each in (owner, known, of_folder) if each.platform), known)
    name = known.name or of_folder.name or (owner.name if owner.platform else "")
    # The formgrader writes names into its pages unescaped
    name = plain(name, 128).replace("<", "‹").replace(">", "›")
    return Student(student, name, plain(known.email or of_folder.email, 128), source.number, source.platform)


def _give_id(identified: IdentifiedStudent, students: dict[str, IdentifiedStudent], kept_apart: set[str]) -> None:
    """Add a student under an id of their own: of two who would have the same, the later one gets another."""
    owner, wanted = identified.owners[0], identified.student.id
    if wanted in students:
        other, text = students[wanted], f"{owner.kind}\0{owner.name}\0{owner.number}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        ids = (f"{wanted[:90]}-{digest[:length]}" for length in range(4, 64))
        new = next(candidate for candidate in ids if candidate not in students)
        identified.student = replace(identified.student, id=new)
        both = f"{owner} and {other.owners[0]} would both be {plain(wanted)}: "
        identified.flags.append(f"{both}this one is kept apart as {new}")
        other.flags.append(f"{both}the other is kept apart as {new}")
        kept_apart |= {wanted, new}
    elif owner.kind in (FOLDER, PACKED) and wanted != owner.name and len(identified.owners) == 1:
        identified.flags.append(f"the folder {plain(owner.name, 120)} was read as {wanted}")
    students[identified.student.id] = identified


def _flag_lookalikes(students: list[IdentifiedStudent], kept_apart: set[str]) -> None:
    """Flag students whose names look the same, unless they are flagged already."""
    moodle = [match_key(owner.name) for each in students for owner in each.owners if owner.kind == "moodle"]
    # Where marking is blind, Moodle gives everybody the one name "Participant", in its own language
    blind = set(moodle) if len(moodle) > 2 and len(set(moodle)) == 1 else set()
    keys = {
        each.student.id: {match_key(name) for name in (each.student.id, *(owner.name for owner in each.owners))} - blind
        for each in students
    }
    for each in students:
        own = each.student.id
        others = [plain(other) for other in keys if other != own and keys[own] & keys[other]]
        if others and own not in kept_apart:
            listed = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
            each.flags.append(f"its name is the same as that of {listed}, or almost: taken for different people")
