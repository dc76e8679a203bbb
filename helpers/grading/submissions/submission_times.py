"""When things were handed in, from those who can know it: the instructor, and the platform's own tables.

A table in submitted/ is the instructor's unless its name begins with a platform's name for a student.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from helpers.grading.csv_tables import BadTable, TableRow, read_table
from helpers.grading.late_policy import Deadlines, read_deadlines
from helpers.grading.submissions.identity import FileOwner, parse_platform_name
from helpers.grading.submissions.roster import Student, match_key
from helpers.text import plain

FILE = "handed_in.csv"
COLUMNS = ("lesson", "student", "at")
MOODLE_TIME = "last modified submission"
LEAST = timedelta(seconds=1)  # how late a submission is, if all that is known is that it is late


@dataclass
class SubmissionTimes:
    """What is known of one lesson."""

    lesson: str
    deadlines: Deadlines
    by_hand: dict[str, tuple[TableRow, datetime]] = field(default_factory=dict)
    """From handed_in.csv, by student."""
    moodle: defaultdict[str, set[tuple[str, datetime]]] = field(default_factory=lambda: defaultdict(set))
    """(name, time) of every worksheet, by participant's number."""
    unread: list[str] = field(default_factory=list)
    """What to say about dates that cannot be read."""

    def time_of(self, student: Student, owners: Iterable[FileOwner]) -> str:
        """When somebody handed in, in UTC as nbgrader reads it; "" if no table says."""
        if by_hand := self.by_hand.get(student.id) or self.by_hand.get(student.number):
            return str(by_hand[1])
        for owner in owners:
            if owner.kind == "moodle" and owner.number in self.moodle:
                name, when = _latest(self.moodle[owner.number])
                if not name or match_key(name) == match_key(owner.name):
                    return str(when)
        return ""

    def least_late(self, student: Student) -> tuple[str, str]:
        """The time of what Canvas marks as late without saying how late, and a flag about it."""
        late = "Canvas marks it as late, and"
        due = self.deadlines.due_date(self.lesson)
        if not due:
            return "", f"{late} does not say by how much"
        if self.deadlines.extension(self.lesson, student.id) is not None:
            return "", f"{late} it had an extension: it counts as in time. If it was later still, say when in {FILE}"
        return str(due + LEAST), f"{late} does not say by how much: it counts as one day. Say when it came in {FILE}"

    def flags(self, students: Iterable[Student]) -> list[str]:
        """Lines of the tables that match none of these students, contradict each other or cannot be read."""
        known = {name for student in students for name in (student.id, student.number)}
        flags = [
            f"{plain(row.path.name)}, line {row.line}: {plain(name)} has handed in nothing of {self.lesson}"
            for name, (row, _) in self.by_hand.items()
            if name not in known
        ]
        contradicted = [
            plain(f"{_latest(said)[0] or 'participant'} ({number})", 120)
            for number, said in self.moodle.items()
            if len(said) > 1
        ]
        if contradicted:
            names = ", ".join(contradicted[:5]) + (", ..." if len(contradicted) > 5 else "")
            flags.append(
                f"the grading worksheets do not agree about {names}: the later time counts. "
                "Remove the worksheet that is out of date"
            )
        return [*flags, *self.unread]


def _latest(said: Iterable[tuple[str, datetime]]) -> tuple[str, datetime]:
    return max(said, key=lambda each: (each[1], each[0]))


def read_times(root: Path, place: Path, lesson: str) -> SubmissionTimes:
    """What the course's tables, and the worksheets among what was handed in, say of a lesson. Raises BadTable."""
    times = SubmissionTimes(lesson, read_deadlines(root))
    path = Path(root, FILE)
    if path.is_file():
        columns, rows = read_table(path)
        if not set(COLUMNS) <= set(columns):
            raise BadTable(path, 1, f"the columns are {', '.join(columns[:6])}. Name them {','.join(COLUMNS)}")
        for row in rows:
            if row["lesson"] != lesson:
                continue
            if not row["student"]:
                raise row.error("says no student. Write the name of the student's folder")
            if row["student"] in times.by_hand:
                raise row.error(f"{row['student']} is there twice. Leave one line")
            times.by_hand[row["student"]] = (row, row.date("at", times.deadlines.zone))
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        is_table = path.suffix.lower() == ".csv" and path.is_file() and not path.is_symlink()
        if is_table and not parse_platform_name(path.name):
            _add_worksheet(times, path)
    return times


def _add_worksheet(times: SubmissionTimes, path: Path) -> None:
    """Add the times in Moodle's grading worksheet; other tables are left alone."""
    try:
        columns, rows = read_table(path)
    except BadTable:
        return
    if not {"identifier", MOODLE_TIME} <= set(columns):
        return
    problems = []
    for row in rows:
        number = re.search(r"(\d+)$", row["identifier"])
        if number is None or row[MOODLE_TIME] in ("", "-"):
            continue
        try:
            when = row.date(MOODLE_TIME, times.deadlines.zone)
            times.moodle[number[1]].add((row.first("full name", "name"), when))
        except BadTable as problem:
            problems.append(str(problem))
    if problems:
        more = f" {len(problems) - 1} more of its dates cannot be read." if len(problems) > 1 else ""
        times.unread.append(f"{problems[0]} in {FILE}, or download the worksheet with Moodle set to English.{more}")
