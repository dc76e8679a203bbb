"""Who is in the class: `roster.csv` in the course's folder, from Canvas or Moodle or by hand (site/instructors.md)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from helpers.course import write_whole
from helpers.grading.csv_tables import BadTable, TableRow, as_csv, read_table

FILES = ("roster.csv", "roster-*.csv")
COLLECTED = "collected.csv"
COLLECTED_COLUMNS = ("lesson", "student", "name", "email", "number", "platform")
NOT_STUDENTS = ("student, test", "points possible")  # lines of Canvas's own
IDS = ("id", "student", "username")
NAMES = ("name", "full name")
LAST_NAMES = ("last name", "lastname", "surname")
FIRST_NAMES = ("first name", "firstname")
EMAILS = ("email", "email address")

LONGEST_ID = 100  # characters
# Names that Windows reserves for devices: somebody may copy a course there
DEVICES = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Student:
    """Somebody in the class."""

    id: str
    """The name of their folder, and nbgrader's id."""
    name: str = ""
    """As people write it."""
    email: str = ""
    number: str = ""
    """The platform's, "" if unknown."""
    platform: str = ""
    """Either "canvas", "moodle" or ""."""
    other_ids: tuple[str, ...] = ()
    """Further ids that mean them."""

    @property
    def shown(self) -> str:
        return self.name or self.id


def roster(root: Path) -> dict[str, Student]:
    """Everybody in the class by id, in the order of the tables; {} where the course has no roster. Raises BadTable."""
    entries: dict[str, Student] = {}
    for path in roster_files(root):
        for row, entry in _entries(path):
            known = entries.get(entry.id)
            if known and (known.number, known.email) != (entry.number, entry.email):
                raise row.error(f"{entry.id} is there twice. Give each student an id of their own, in a column id")
            entries[entry.id] = entry
    return entries


def roster_files(root: Path) -> list[Path]:
    return sorted({path for pattern in FILES for path in Path(root).glob(pattern) if path.is_file()})


def missing_students(root: Path, handed_in: Iterable[Student]) -> list[Student]:
    """Who of the roster has not handed in, by name, given those who have. Raises BadTable."""
    there, entries = list(handed_in), roster(root).values()
    ids = {student.id for student in there}
    # Who was renamed in Canvas keeps the number. Moodle numbers students anew in each assignment: the name is left
    numbers = {student.number for student in there if student.platform == "canvas"}
    names = {match_key(student.name) for student in there if student.platform == "moodle"}
    namesakes = Counter(match_key(entry.name) for entry in entries)

    def has_handed_in(entry: Student) -> bool:
        if entry.platform == "canvas" and entry.number in numbers:
            return True
        name = match_key(entry.name)
        by_name = entry.platform == "moodle" and name in names and namesakes[name] == 1
        return by_name or not ids.isdisjoint((entry.id, *entry.other_ids))

    left = [entry for entry in entries if not has_handed_in(entry)]
    return sorted(left, key=lambda entry: (entry.shown.casefold(), entry.id))


def slug(text: str) -> str:
    """A name that is safe as a folder, in a URL and in a database: "Jane Doe_7" becomes "Jane-Doe_7"."""
    text = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))
    text = re.sub(r"[^\w.@-]+", "-", text).strip("-._@")
    text = text.encode()[: 2 * LONGEST_ID].decode("utf-8", "ignore")[:LONGEST_ID].strip("-._@")
    return (f"student-{text}" if DEVICES.match(text) else text) or "unnamed"


def match_key(name: str) -> str:
    """The same for names that a person or a file system may take for one: case and punctuation do not count."""
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", name).casefold()).strip("-")


def canvas_name(name: str) -> str:
    """A name as Canvas puts it before a file's: "Doe, Jane" becomes "doejane"."""
    return re.sub(r"\W", "", re.sub(r"_(\d+)_", r"\1", name)).lower()


def _entries(path: Path) -> list[tuple[TableRow, Student]]:
    columns, rows = read_table(path)
    there = set(columns)
    if there & {"sis login id", "sis user id"}:
        read = _from_canvas
    elif "identifier" in there:
        read = _from_worksheet
    elif there & {*IDS, "number"}:
        read = _from_own_table
    elif there & {*EMAILS} and there & {*NAMES, *LAST_NAMES, *FIRST_NAMES}:
        read = _from_participants
    else:
        listed = ", ".join(columns[:6])
        problem = f"there is no column that says who is meant ({listed}). Name the columns: id,number,name,email"
        raise BadTable(path, 1, problem)
    return [(row, entry) for row in rows if (entry := read(row)) is not None]


def _from_canvas(row: TableRow) -> Student | None:
    """Canvas's gradebook. One or two lines below its head are no students."""
    name = row["student"] or ", ".join(filter(None, (row.first(*LAST_NAMES), row.first(*FIRST_NAMES))))
    number = row["id"]
    if not number or name.casefold() in NOT_STUDENTS:
        return None
    if not number.isdecimal():
        raise row.error(f'the ID "{number}" is no number. Export the gradebook anew, and do not open it in between')
    logins = row.all("sis login id", "sis user id", "integration id")
    email = next((login for login in logins if "@" in login), "")
    return Student(slug(f"{canvas_name(name)}_{number}"), _in_order(name), email, number, "canvas", logins)


def _from_worksheet(row: TableRow) -> Student | None:
    """Moodle's grading worksheet of one assignment."""
    match = re.search(r"(\d+)$", row["identifier"])
    if match is None:
        raise row.error(f'the Identifier "{row["identifier"]}" holds no number. Download the worksheet anew')
    name, ids = row.first(*NAMES), row.all("username", "id number")
    student = slug(f"{name or 'Participant'}_{match[1]}")
    return Student(student, name, row.first(*EMAILS), match[1], "moodle", ids)


def _from_participants(row: TableRow) -> Student | None:
    """Moodle's list of participants, which has no numbers."""
    name, email = _name(row), row.first(*EMAILS)
    ids = row.all("id number", *EMAILS)
    return Student(slug(name or email), name, email, "", "moodle", ids) if name or email else None


def _from_own_table(row: TableRow) -> Student:
    student, number, name = row.first(*IDS), row["number"], _name(row)
    if not student and not number:
        raise row.error("says neither id nor number. Write the name of the student's folder, or the platform's number")
    return Student(student or slug(f"{name}_{number}"), name, row.first(*EMAILS), number)


def _name(row: TableRow) -> str:
    full = " ".join(filter(None, (row.first(*FIRST_NAMES), row.first(*LAST_NAMES))))
    return full or _in_order(row.first(*NAMES))


def _in_order(name: str) -> str:
    """ "Doe, Jane" is Jane Doe."""
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}".strip() if comma else name


def read_collected(submitted: Path, lesson: str) -> dict[str, Student]:
    """The students for whom `make collect` made a folder in this lesson, by id. Raises BadTable."""
    rows = _collected_rows(submitted).items()
    return {student: Student(student, *fields) for (of, student), fields in rows if of == lesson}


def write_collected(submitted: Path, lesson: str, entries: Iterable[Student]) -> None:
    """Add a platform's students to `collected.csv` in submitted/, where no student's upload reaches. Raises BadTable.

    The name of a student's folder holds neither platform nor number, and an export of marks needs both.
    """
    rows = _collected_rows(submitted)
    for each in entries:
        if each.platform:
            rows[lesson, each.id] = (each.name, each.email, each.number, each.platform)
    if rows:
        table = [COLLECTED_COLUMNS, *((*key, *values) for key, values in sorted(rows.items()))]
        write_whole(Path(submitted, COLLECTED), as_csv(table))


def _collected_rows(submitted: Path) -> dict[tuple[str, str], tuple[str, str, str, str]]:
    path = Path(submitted, COLLECTED)
    rows = read_table(path)[1] if path.is_file() and not path.is_symlink() else []
    return {(r["lesson"], r["student"]): (r["name"], r["email"], r["number"], r["platform"]) for r in rows}
