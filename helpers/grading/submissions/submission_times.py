"""When things were handed in, as those say who can know it: the instructor, and the platform's own tables.

In the course's folder, `handed_in.csv` (lesson,student,at) is the instructor's word, and goes before all else.
Moodle's zip holds no dates, but its grading worksheet does ("Last modified (submission)"): put it into submitted/
beside the zip, as it is. Canvas tells nothing but that something is late.

A table in submitted/ is the instructor's unless a platform's name for a student stands before its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from helpers.grading.csv_tables import BadTable, Row, read_table
from helpers.grading.sanitize import plain
from helpers.grading.submissions.dates import BadDate, instant
from helpers.grading.submissions.deadlines import Deadlines, read_deadlines
from helpers.grading.submissions.identity import Owner, Student, platform_name
from helpers.grading.submissions.names import alike

FILE = "handed_in.csv"
COLUMNS = ("lesson", "student", "at")
WORKSHEET = ("identifier", "last modified submission")
LEAST = timedelta(seconds=1)  # how late something is that is late, as far as anybody says


@dataclass
class Times:
    """What is known of one lesson.

    by_hand: by the instructor's word for a student. moodle: name and time by participant's number. disagree: the
    participants about whom worksheets do not agree. unread: what to say about dates that cannot be read.
    """

    lesson: str = ""
    deadlines: Deadlines | None = None
    by_hand: dict[str, tuple[Row, datetime]] = field(default_factory=dict)
    moodle: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    disagree: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
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
        """Words of the instructor that meant no one, contradict each other, or cannot be read."""
        unused = [
            f"{plain(row.path.name)}, line {row.line}: {plain(name)} has handed in nothing of {self.lesson}"
            for name, (row, _) in self.by_hand.items()
            if name not in self.used
        ]
        return [*unused, *self._disagreement, *self.unread]

    @property
    def _disagreement(self) -> list[str]:
        if not self.disagree:
            return []
        some = ", ".join(list(self.disagree.values())[:5]) + (", ..." if len(self.disagree) > 5 else "")
        return [
            f"the grading worksheets do not agree about {some}: the later time counts. "
            "Remove the worksheet that is out of date"
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
    """The tables that the instructor has put beside the zips; what lies deeper or bears a student's name is theirs."""
    if not place.is_dir():
        return []
    tables = (path for path in place.iterdir() if path.suffix.lower() == ".csv" and not platform_name(path.name))
    return sorted(path for path in tables if path.is_file() and not path.is_symlink())


def _add_worksheet(times: Times, path: Path, zone: tzinfo) -> None:
    try:
        columns, rows = read_table(path)
    except BadTable:
        return  # some other file; a worksheet as Moodle writes it can be read
    if not set(WORKSHEET) <= set(columns):
        return
    problems = []
    for row in rows:
        number = re.search(r"(\d+)$", row["identifier"])
        if number and row[WORKSHEET[1]] not in ("", "-"):
            try:
                _add_moment(times, number[1], row.first("full name", "name"), _moment(row, WORKSHEET[1], zone))
            except BadTable as problem:
                problems.append(str(problem))
    if problems:
        more = f" {len(problems) - 1} more of its dates cannot be read." if len(problems) > 1 else ""
        times.unread.append(f"{problems[0]} in {FILE}, or download the worksheet with Moodle set to English.{more}")


def _add_moment(times: Times, number: str, name: str, when: datetime) -> None:
    """Of several worksheets the last one knows, and its times are the later ones."""
    known = times.moodle.get(number)
    if known and known != (name, when):
        times.disagree[number] = plain(f"{name or 'participant'} ({number})", 120)
    if known is None or when > known[1]:
        times.moodle[number] = (name, when)


def _moment(row: Row, column: str, zone: tzinfo) -> datetime:
    try:
        return instant(row[column], zone)
    except BadDate as problem:
        raise row.bad(str(problem)) from None
