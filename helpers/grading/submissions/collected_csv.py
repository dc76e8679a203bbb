"""Whom the folders mean that `make collect` made: `collected.csv` in submitted/, where no student's upload reaches.

A folder's name tells neither platform nor number, and an export of marks needs both.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from helpers.course import write_whole
from helpers.grading.csv_tables import read_table
from helpers.grading.submissions.identity import FOLDER, Identified, Student

FILE = "collected.csv"
COLUMNS = ("lesson", "student", "platform", "number", "first name", "last name", "email")


def read_collected(submitted: Path) -> dict[tuple[str, str], Student]:
    """The platform's students by lesson and id, {} where none were collected. Raises BadTable."""
    path = Path(submitted, FILE)
    if not path.is_file() or path.is_symlink():
        return {}
    found = {}
    for row in read_table(path)[1]:
        about = (row[column] for column in ("first name", "last name", "number", "platform", "email"))
        found[row["lesson"], row["student"]] = Student(row["student"], *about)
    return found


def remember(submitted: Path, lesson: str, students: Iterable[Student]) -> None:
    """Add students of a platform to the table. Raises BadTable."""
    known = read_collected(submitted) | {(lesson, s.id): s for s in students if s.platform}
    if not known:
        return
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for (of, _), s in sorted(known.items()):
        table.writerow((of, s.id, s.platform, s.number, s.first_name, s.last_name, s.email))
    write_whole(Path(submitted, FILE), text.getvalue())


def recall(students: list[Identified], known: dict[tuple[str, str], Student], lesson: str) -> None:
    """Give those back their platform, number and name who are known by a folder that was made for them."""
    for one in students:
        was = known.get((lesson, one.student.id))
        if was and not one.student.platform and one.owners[0].kind == FOLDER:
            named = one.student.first_name or one.student.last_name
            names = {} if named else {"first_name": was.first_name, "last_name": was.last_name}
            email = one.student.email or was.email
            one.student = replace(one.student, platform=was.platform, number=was.number, email=email, **names)
