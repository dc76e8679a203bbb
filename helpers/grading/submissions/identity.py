"""Whose a submission is.

Decided from one name alone: the outermost that Canvas or Moodle gave, or that of the folder, zip or file that the
instructor put there. What a student sent lies below that name and is never asked: no path in it, no date, and no
name that looks like another platform's.

What the platforms write, from their own sources:

- Canvas: `doejane_77_4711_work.ipynb`, `doejane_LATE_77_4711_work.ipynb`: the sortable name in small letters without
  spaces and signs, the user's number, the number of the uploaded file (a later one is higher), the file's name as the
  student gave it. Anonymous: `anon_8Bz3A_4711_work.ipynb`. No folders. The dates in the zip are those of the download.
- Moodle: a folder `Jane Doe_123_assignsubmission_file_` (before 4.2 with a trailing underscore), or, without folders,
  the same followed by the file's name. Moodle takes underscores out of names. The number is the participant's in that
  assignment, and another one in the next. The dates in the zip are those of the download.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from helpers.exercises.exercise import lesson_names
from helpers.grading.sanitize import plain
from helpers.grading.submissions.names import alike, is_safe, slug
from helpers.grading.submissions.roster import Person

MOODLE = re.compile(
    r"^(?P<name>[^_]+)_(?P<id>\d{1,18})_assignsubmission_(?:file|onlinetext)(?:_(?P<rest>.*))?$", re.DOTALL
)
CANVAS = re.compile(
    r"^(?P<name>\w+?)(?P<late>_LATE)?_(?P<id>[1-9]\d{0,17})_(?P<file>[1-9]\d{0,17})_(?P<rest>.+)$", re.DOTALL
)
ANONYMOUS = re.compile(r"^(?P<late>LATE_)?anon_(?P<id>[A-Za-z0-9]{5})_(?P<file>[1-9]\d{0,17})_(?P<rest>.+)$", re.DOTALL)
COPY = re.compile(r"(\s*\(\d+\)|[-_ ]copy\s*\d*|[-_ ]kopie\s*\d*|-\d+)+$", re.IGNORECASE)
ENDING = re.compile(r"(\.ipynb(\.\w+)?|\.zip)$", re.IGNORECASE)

# In the order of who keeps a name that two claim: the instructor's own folder first, a loose file last
FOLDER, PLATFORMS, PACKED, LOOSE = "folder", ("canvas", "moodle"), "packed", "loose"
KINDS = (FOLDER, *PLATFORMS, PACKED, LOOSE)


@cache
def lessons() -> tuple[str, ...]:
    """The names of all lessons, looked up once."""
    return tuple(lesson_names())


@dataclass(frozen=True)
class Student:
    """Who handed in. id: nbgrader's name for them. number: the platform's. platform: "canvas", "moodle" or ""."""

    id: str
    first_name: str = ""
    last_name: str = ""
    number: str = ""
    platform: str = ""
    email: str = ""


@dataclass(frozen=True)
class Owner:
    """Whoever a place belongs to. kind: one of KINDS. name: as it is spelt there. number: the platform's."""

    kind: str
    name: str
    number: str = ""

    @property
    def platform(self) -> str:
        return self.kind if self.kind in PLATFORMS else ""

    @property
    def wished(self) -> str:
        """The id that they have unless it is taken."""
        if self.kind in (FOLDER, PACKED) and is_safe(self.name):
            return self.name
        return slug(f"{self.name}_{self.number}" if self.number else self.name)

    def __str__(self) -> str:
        where = {FOLDER: "the folder ", PACKED: "the folder in a zip ", LOOSE: "the file of "}
        named = f"{self.name}_{self.number}" if self.number else self.name
        return plain(where.get(self.kind, f"{self.kind.title()}'s ") + named, 120)


@dataclass(frozen=True)
class Outermost:
    """What a platform says with the name of a file or folder. upload: the file's number, 0 if there is none."""

    owner: Owner
    rest: str = ""
    upload: int = 0
    late: bool = False


def platform_name(name: str) -> Outermost | None:
    """What a name says if Canvas or Moodle gave it, read from the left: what stands on the right is the student's."""
    if match := MOODLE.match(name):
        return Outermost(Owner("moodle", match["name"].strip(), match["id"]), match["rest"] or "")
    if match := ANONYMOUS.match(name):
        return Outermost(Owner("canvas", f"anon_{match['id']}"), match["rest"], int(match["file"]), bool(match["late"]))
    match = CANVAS.match(name)
    if match is None or f"{match['file']}_{match['rest']}".startswith(lessons()):
        return None  # "smith_2024_10_topic.ipynb" is Smith's, and no platform's
    owner = Owner("canvas", match["name"], match["id"])
    return Outermost(owner, match["rest"], int(match["file"]), bool(match["late"]))


def loose_owner(name: str) -> Owner:
    """Whose a file is that lies there by itself: what is left of its name without the lesson's and copies' numbers."""
    stem = ENDING.sub("", name)
    told = COPY.sub("", stem)
    for lesson in lessons():
        told = told.replace(lesson, "")
    return Owner(LOOSE, COPY.sub("", told).strip(" _-.") or stem or name)


@dataclass
class Identified:
    """A student, the owners that mean them, and what to know about that.."""

    student: Student
    owners: list[Owner] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


def identify(owners: Iterable[Owner], people: Mapping[str, Person] | None = None) -> list[Identified]:
    """A student for every owner, and never one for two, unless the instructor's roster says that they are the same.

    people: the roster, by id. It gives ids to those whom a platform names, and names and addresses to all.
    """
    ordered = sorted(set(owners), key=lambda owner: (KINDS.index(owner.kind), owner.name, owner.number))
    told, doubts = _told_by(ordered, people or {})
    collected = _collected(ordered)
    by_claim: dict[tuple, list[Owner]] = defaultdict(list)
    for owner in ordered:
        person = told.get(owner)
        by_claim[("person", person.id) if person else ("owner", collected.get(owner, owner))].append(owner)
    found: list[Identified] = []
    taken: dict[str, Identified] = {}
    for (kind, _), claimants in by_claim.items():
        person = told.get(claimants[0])
        speaker = next((owner for owner in claimants if owner.platform), claimants[0])
        made = Identified(_student(speaker, person if kind == "person" else None, people or {}), claimants)
        made.flags += [doubts[owner] for owner in claimants if owner in doubts]
        _settle(made, taken)
        found.append(made)
    _flag_lookalikes(found)
    return found


def _told_by(owners: list[Owner], people: Mapping[str, Person]) -> tuple[dict[Owner, Person], dict[Owner, str]]:
    """Whom the roster means: Canvas's students by number, Moodle's by name where only one has it, folders by id.

    Returns also what to say of those for whom there was a name alone to go by.
    """
    numbers = {p.number: p for p in people.values() if p.number and p.platform != "moodle"}
    names = _unique((alike(p.name), p) for p in people.values() if p.platform != "canvas")
    claims = Counter(alike(owner.name) for owner in owners if owner.kind == "moodle")
    told, doubts = {}, {}
    for owner in owners:
        if owner.kind == "canvas":
            person = numbers.get(owner.number)
        elif owner.kind == "moodle":
            person = people.get(owner.wished)
            named = names.get(alike(owner.name))
            if person is None and named and claims[alike(owner.name)] == 1:
                person = named
                doubts[owner] = f"matched to {plain(named.id)} in the roster by name alone"
            elif person is None and named:
                doubts[owner] = f"not matched to {plain(named.id)} in the roster: several hand-ins carry that name"
        else:
            person = people.get(owner.name) if owner.kind == FOLDER else None
        if person is not None:
            told[owner] = person
    return told, doubts


def _collected(owners: list[Owner]) -> dict[Owner, Owner]:
    """A platform's student whose id is, to the letter, a folder's name is that folder's: `make collect` makes such."""
    folders = {owner.name: owner for owner in owners if owner.kind == FOLDER}
    wishes = _unique((owner.wished, owner) for owner in owners if owner.platform)
    return {owner: folders[wished] for wished, owner in wishes.items() if wished in folders}


def _unique(pairs: Iterable[tuple]) -> dict:
    """What stands once only."""
    found = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return {key: values[0] for key, values in found.items() if len(values) == 1}


def _student(owner: Owner, person: Person | None, people: Mapping[str, Person]) -> Student:
    """The first of the owners who mean somebody, with what the roster knows of them."""
    known = person or people.get(owner.wished) or next((p for p in people.values() if owner.wished in p.also), None)
    first, last = "", ""
    if known and known.name or owner.kind == "moodle":
        first, _, last = (known.name if known and known.name else owner.name).rpartition(" ")
    elif owner.kind == "canvas":
        last = owner.name
    return Student(
        id=person.id if person else owner.wished,
        first_name=unmarked(plain(first, 128)),
        last_name=unmarked(plain(last, 128)),
        number=owner.number or (known.number if known else ""),
        platform=owner.platform or (known.platform if known else ""),
        email=plain(known.email, 128) if known else "",
    )


def _settle(made: Identified, taken: dict[str, Identified]) -> None:
    """Keep two apart who would have the same id: the later one gets another."""
    owner, wished = made.owners[0], made.student.id
    if wished in taken:
        mark = hashlib.sha256(
            f"{owner.kind}\0{owner.name}\0{owner.number}".encode("utf-8", "surrogatepass")
        ).hexdigest()
        apart = next(
            f"{wished[:90]}-{mark[:size]}" for size in range(4, 64) if f"{wished[:90]}-{mark[:size]}" not in taken
        )
        made.student = replace(made.student, id=apart)
        other = taken[wished]
        made.flags.append(
            f"{owner} and {other.owners[0]} would both be {plain(wished)}: this one is kept apart as {apart}"
        )
        other.flags.append(f"{owner} would have the same id, and is kept apart as {apart}")
    elif owner.kind in (FOLDER, PACKED) and wished != owner.name and len(made.owners) == 1:
        made.flags.append(f"the folder {plain(owner.name, 120)} was read as {wished}")
    taken[made.student.id] = made


def _flag_lookalikes(found: list[Identified]) -> None:
    groups, hidden = defaultdict(list), _hidden_names(found)
    for made in found:
        for name in {alike(made.student.id), *(alike(owner.name) for owner in made.owners)} - hidden:
            groups[name].append(made)
    others = defaultdict(dict)
    for group in groups.values():
        for made in group:
            others[made.student.id] |= {plain(other.student.id): None for other in group if other is not made}
    for made in found:
        same = list(others[made.student.id])
        if same and not any("kept apart" in flag for flag in made.flags):
            more = f" and {len(same) - 5} more" if len(same) > 5 else ""
            made.flags.append(
                f"its name is the same as that of {', '.join(same[:5])}{more}, or almost: taken for different people"
            )


def _hidden_names(found: list[Identified]) -> set[str]:
    """The one name that Moodle gives to everybody where marking is blind: "Participant", in its own language."""
    given = [alike(owner.name) for made in found for owner in made.owners if owner.kind == "moodle"]
    return set(given) if len(given) > 2 and len(set(given)) == 1 else set()


def unmarked(name: str) -> str:
    """The name with no sign that begins markup: the formgrader writes names into its pages as they are."""
    return name.replace("<", "‹").replace(">", "›")
