"""Who is in the class: `roster.csv` in the course's folder, an export of Canvas or Moodle or a table of one's own.

Taken as they are: Canvas's gradebook (Grades, Export), Moodle's list of participants and its grading worksheet, and
any table with a column "id" or "number", and "name" and "email" if they are known. Several classes: `roster-A.csv`,
`roster-B.csv`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from helpers.grading.csv_tables import BadTable, Row, read_table
from helpers.grading.submissions.names import alike, canvas_name, slug

FILES = ("roster.csv", "roster-*.csv")
TEST_STUDENT = "student, test"  # Canvas's own, in every course
IDS = ("id", "student id", "student", "username", "login")
NUMBERS = ("number", "canvas id", "moodle id", "platform number", "participant")
NAMES = ("name", "full name", "display name")
LAST_NAMES = ("last name", "lastname", "surname", "family name")
FIRST_NAMES = ("first name", "firstname", "given name")
EMAILS = ("email", "email address", "e mail", "mail")


@dataclass(frozen=True)
class Person:
    """Somebody in the class.

    id: what grading calls them: the name of their folder, and nbgrader's id. name: as it is written to people.
    number: the platform's, "" if unknown. platform: "canvas", "moodle" or "". also: other ids that mean them.
    """

    id: str
    name: str = ""
    email: str = ""
    number: str = ""
    platform: str = ""
    also: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return self.name or self.id

    def is_called(self, student: str) -> bool:
        """Does this id of a student mean them?"""
        if student == self.id or student in self.also:
            return True
        # Somebody renamed in Canvas keeps the number; Canvas writes names small and without signs
        name, _, number = student.rpartition("_")
        return bool(self.platform == "canvas" and self.number == number and name and name == canvas_name(name))


def roster(root: Path) -> dict[str, Person]:
    """Everybody in the class by id, in the order of the tables; {} where the course has no roster. Raises BadTable."""
    people: dict[str, Person] = {}
    for path in roster_files(root):
        for row, person in _people(path):
            known = people.get(person.id)
            if known and (known.number, known.email) != (person.number, person.email):
                raise row.bad(f"{person.id} stands there twice. Give each student an id of their own, in a column id")
            people[person.id] = person
    return people


def roster_files(root: Path) -> list[Path]:
    """The course's tables of students."""
    found = {path for pattern in FILES for path in Path(root).glob(pattern)}
    return sorted(path for path in found if path.is_file())


def missing(root: Path, lesson: str, handed_in_ids: Iterable[str]) -> list[Person]:
    """Who of the roster has not handed in this lesson, given the ids of those who have, by name. Raises BadTable."""
    people = roster(root)
    given = set(handed_in_ids)
    left = [person for person in people.values() if not any(person.is_called(student) for student in given)]
    names = Counter(alike(person.name) for person in people.values())
    # Moodle numbers students anew in each assignment, so that without a column for it only the name is left
    moodle = {alike(name) for name, _, number in (student.rpartition("_") for student in given) if number.isdecimal()}
    left = [
        person
        for person in left
        if person.platform != "moodle" or names[alike(person.name)] > 1 or alike(person.name) not in moodle
    ]
    return sorted(left, key=lambda person: (person.shown.casefold(), person.id))


def _people(path: Path) -> list[tuple[Row, Person]]:
    columns, rows = read_table(path)
    if "sis login id" in columns or "sis user id" in columns:
        read = _from_canvas
    elif "identifier" in columns:
        read = _from_worksheet
    elif {*columns} & {*IDS, *NUMBERS}:
        read = _from_table
    elif {*columns} & {*EMAILS} and {*columns} & {*NAMES, *LAST_NAMES, *FIRST_NAMES}:
        read = _from_participants
    else:
        told = ", ".join(columns[:6])
        raise BadTable(
            path, 1, f"there is no column that says who is meant ({told}). Name the columns: id,number,name,email"
        )
    return [(row, person) for row in rows if (person := read(row)) is not None]


def _from_canvas(row: Row) -> Person | None:
    """Canvas's gradebook. Below its head stand one or two lines that are no students."""
    listed = row["student"] or ", ".join(filter(None, (row.first(*LAST_NAMES), row.first(*FIRST_NAMES))))
    number = row["id"]
    if not number or listed.casefold() == TEST_STUDENT or listed.casefold() == "points possible":
        return None
    if not number.isdecimal():
        raise row.bad(f'the ID "{number}" is no number. Export the gradebook anew, and do not open it in between')
    logins = tuple(filter(None, (row["sis login id"], row["sis user id"], row["integration id"])))
    email = next((login for login in logins if "@" in login), "")
    student = slug(f"{canvas_name(listed)}_{number}")
    return Person(student, _in_order(listed), email, number, "canvas", logins)


def _from_worksheet(row: Row) -> Person | None:
    """Moodle's grading worksheet of one assignment."""
    match = re.search(r"(\d+)$", row["identifier"])
    if match is None:
        if not row["identifier"]:
            return None
        raise row.bad(f'the Identifier "{row["identifier"]}" holds no number. Download the worksheet anew')
    name = row.first(*NAMES)
    also = tuple(filter(None, (row["username"], row["id number"])))
    student = slug(f"{name or 'Participant'}_{match[1]}")
    return Person(student, name, row.first(*EMAILS), match[1], "moodle", also)


def _from_participants(row: Row) -> Person | None:
    """Moodle's list of participants, which tells no numbers."""
    name = _name(row)
    email = row.first(*EMAILS)
    if not name and not email:
        return None
    also = tuple(filter(None, (row["id number"], email)))
    return Person(slug(name or email), name, email, "", "moodle", also)


def _from_table(row: Row) -> Person | None:
    student, number = row.first(*IDS), row.first(*NUMBERS)
    if not student and not number:
        raise row.bad("says neither id nor number. Write the name of the student's folder, or the platform's number")
    platform = row["platform"].casefold() or ("moodle" if row["username"] and row["email address"] else "")
    if platform not in ("", "canvas", "moodle"):
        raise row.bad(f'the platform "{platform}" is not known. Write canvas or moodle, or nothing')
    name = _name(row)
    if not student:
        student = slug(f"{canvas_name(row.first(*NAMES) or name) if platform == 'canvas' else name}_{number}")
    return Person(student, name, row.first(*EMAILS), number, platform)


def _name(row: Row) -> str:
    parted = " ".join(filter(None, (row.first(*FIRST_NAMES), row.first(*LAST_NAMES))))
    return parted or _in_order(row.first(*NAMES))


def _in_order(name: str) -> str:
    """ "Doe, Jane" is Jane Doe."""
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}".strip() if comma else name
