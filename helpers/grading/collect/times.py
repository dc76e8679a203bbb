"""When things were handed in, as those say who can know it: the instructor, and the platform's own tables.

In the course's folder, `handed_in.csv` (lesson,student,at) is the instructor's word, and goes before all else.
Moodle's zip holds no dates, but its grading worksheet does ("Last modified (submission)"): put it into submitted/
beside the zip, as it is. Canvas tells nothing but that something is late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from helpers.grading.collect.csv_files import BadTable, Row, read_table
from helpers.grading.collect.dates import BadDate, instant
from helpers.grading.collect.deadlines import Deadlines, read_deadlines
from helpers.grading.collect.identity import Owner, Student
from helpers.grading.collect.names import alike
from helpers.grading.harmless import plain

FILE = "handed_in.csv"
COLUMNS = ("lesson", "student", "at")
WORKSHEET = ("identifier", "last modified submission")
LEAST = timedelta(seconds=1)  # how late something is that is late, as far as anybody says


@dataclass
class Times:
    """What is known of one lesson. by_hand: by the instructor's word for a student. moodle: by participant's number."""

    lesson: str = ""
    deadlines: Deadlines | None = None
    by_hand: dict[str, tuple[Row, datetime]] = field(default_factory=dict)
    moodle: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def told(self, student: Student, owners: Iterable[Owner]) -> str:
        """When somebody handed in, in UTC as nbgrader reads it; "" if nobody says."""
        for name in filter(None, (student.id, student.number)):
            if name in self.by_hand:
                self.used.add(name)
                return str(self.by_hand[name][1])
        for owner in owners:
            name, when = self.moodle.get(owner.number, ("", None)) if owner.kind == "moodle" else ("", None)
            if when and (not name or alike(name) == alike(owner.name)):
                return str(when)
        return ""

    def least_late(self, student: Student) -> tuple[str, str]:
        """The time, and words about it, of what a platform marks as late without saying by how much."""
        due = self.deadlines and self.deadlines.due.get(self.lesson)
        if not due:
            return "", "Canvas marks it as late, and does not say by how much"
        if self.deadlines.extension(self.lesson, student.id) is not None:
            told = "it had an extension: it counts as in time. Say when it came in handed_in.csv if it was later still"
            return "", f"Canvas marks it as late, and {told}"
        told = "does not say by how much: it counts as one day. Say when it came in handed_in.csv"
        return str(due + LEAST), f"Canvas marks it as late, and {told}"

    @property
    def flags(self) -> list[str]:
        """Words of the instructor that meant no one."""
        return [
            f"{plain(row.path.name)}, line {row.line}: {plain(name)} has handed in nothing of {self.lesson}"
            for name, (row, _) in self.by_hand.items()
            if name not in self.used
        ]


def read_times(root: Path, place: Path, lesson: str) -> Times:
    """What the course's tables, and the worksheets that lie in what was handed in, say of a lesson. Raises BadTable."""
    deadlines = read_deadlines(root)
    zone = (deadlines or Deadlines()).zone
    times = Times(lesson, deadlines)
    path = Path(root, FILE)
    if path.is_file():
        columns, rows = read_table(path)
        if not set(COLUMNS) <= set(columns):
            raise BadTable(path, 1, f"the columns are {', '.join(columns[:6])}. Name them {','.join(COLUMNS)}")
        for row in rows:
            if row["lesson"] != lesson:
                continue
            if not row["student"]:
                raise row.bad("says no student. Write the name of the student's folder")
            if row["student"] in times.by_hand:
                raise row.bad(f"{row['student']} stands there twice. Leave one line")
            times.by_hand[row["student"]] = (row, _moment(row, "at", zone))
    for path in _tables_in(place):
        _add_worksheet(times, path, zone)
    return times


def _tables_in(place: Path) -> list[Path]:
    """Tables that the instructor has put beside the zips; what lies deeper is a student's."""
    if not place.is_dir():
        return []
    return sorted(p for p in place.iterdir() if p.suffix.lower() == ".csv" and p.is_file() and not p.is_symlink())


def _add_worksheet(times: Times, path: Path, zone) -> None:
    try:
        columns, rows = read_table(path)
    except BadTable:
        return  # some other file; a worksheet as Moodle writes it can be read
    if not set(WORKSHEET) <= set(columns):
        return
    for row in rows:
        number = re.search(r"(\d+)$", row["identifier"])
        if number and row[WORKSHEET[1]] not in ("", "-"):
            when = _moment(row, WORKSHEET[1], zone, ". Or download the worksheet with Moodle set to English")
            known = times.moodle.get(number[1])
            if known is None or when > known[1]:  # of several worksheets the last one knows
                times.moodle[number[1]] = (row.first("full name", "name"), when)


def _moment(row: Row, column: str, zone, hint: str = "") -> datetime:
    try:
        return instant(row[column], zone)
    except BadDate as problem:
        raise row.bad(f"{problem}{hint}") from None
