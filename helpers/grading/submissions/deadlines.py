"""When lessons are due: `deadlines.csv` in the course's folder.

    lesson,student,due,per day,at most,late days,zone
    *,,,10%,50%,3,Europe/Berlin
    03_scaling,,2026-03-02 23:59,,,,
    03_scaling,ada,2026-03-09 23:59,,,,
    *,ben,,,,5,

A line without a student is for the class, `*` for every lesson. per day: what each day begun after the due date costs,
as a share of the points reached ("10%") or in points ("2"). at most: the most that lateness costs. late days: how many
days late cost nothing, over all lessons together. zone: of dates that name none, this machine's where it is not told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from helpers.exercises.exercise import lesson_names
from helpers.grading.csv_tables import BadTable, Row, read_table
from helpers.grading.sanitize import plain
from helpers.grading.submissions.dates import BadDate, instant, machines_zone, zone_named

FILE = "deadlines.csv"
EVERY = "*"
COLUMNS = ("lesson", "student", "due", "per day", "at most", "late days", "zone")
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Share:
    """Points, or a part of the points reached."""

    points: float = 0.0
    part: float = 0.0

    def of(self, score: float) -> float:
        return self.points + self.part * score


@dataclass(frozen=True)
class Deadlines:
    """The table. due: of the class, by lesson, in UTC. extended: by lesson and student. late_days: by student."""

    zone: tzinfo = field(default_factory=machines_zone)
    due: dict[str, datetime] = field(default_factory=dict)
    extended: dict[tuple[str, str], datetime] = field(default_factory=dict)
    per_day: dict[str, Share] = field(default_factory=dict)
    at_most: dict[str, Share] = field(default_factory=dict)
    late_days: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # where each student is first named

    def extension(self, lesson: str, student: str) -> timedelta | None:
        """How much longer than the class somebody has."""
        extended = self.extended.get((lesson, student))
        return extended - self.due[lesson] if extended else None

    def cost(self, lesson: str, days: int, score: float) -> float:
        """The points that so many days late take away."""
        per_day = self.per_day.get(lesson, self.per_day.get(EVERY, Share()))
        most = self.at_most.get(lesson, self.at_most.get(EVERY))
        cost = days * per_day.of(score)
        return round(min(cost, most.of(score) if most else score, score), 6)

    def budget(self, student: str) -> int:
        return self.late_days.get(student, self.late_days.get("", 0))

    def before(self, lesson: str) -> list[str]:
        """The lessons that were due before this one, which draw on the late days first."""
        order = sorted(self.due, key=lambda name: (self.due[name], name))
        return order[: order.index(lesson)] if lesson in order else []


def days_begun(seconds: float) -> int:
    """A second late is a day late, a day and a second are two."""
    return math.ceil(max(0.0, seconds) / DAY.total_seconds())


def read_deadlines(root: Path) -> Deadlines | None:
    """The course's table, None where there is none. Raises BadTable."""
    path = Path(root, FILE)
    if not path.is_file():
        return None
    columns, rows = read_table(path)
    odd = [column for column in columns if column and column not in COLUMNS]
    if odd or "lesson" not in columns:
        problem = f'the column "{odd[0]}" is not known' if odd else "there is no column lesson"
        raise BadTable(path, 1, f"{problem}. The columns are {', '.join(COLUMNS)}")
    told = Deadlines(zone=_zone(rows))
    for row in rows:
        _check_lesson(row)
        if row["student"]:
            _of_a_student(row, told)
        else:
            _of_the_class(row, told)
    for row in rows:
        _check_extension(row, told)
    return told


def _zone(rows: list[Row]) -> tzinfo:
    named = [row for row in rows if row["zone"]]
    for row in named:
        if row["zone"] != named[0]["zone"]:
            raise row.bad(f'the zone is "{named[0]["zone"]}" in line {named[0].line}. Name one zone for the course')
    try:
        return zone_named(named[0]["zone"]) if named else machines_zone()
    except BadDate as problem:
        raise named[0].bad(str(problem)) from None


def _check_lesson(row: Row) -> None:
    lesson = row["lesson"]
    if lesson != EVERY and lesson not in lesson_names():
        raise row.bad(f'there is no lesson "{plain(lesson, 60)}". Write one of {", ".join(lesson_names())}, or *')


def _of_the_class(row: Row, told: Deadlines) -> None:
    lesson = row["lesson"]
    if lesson == EVERY and row["due"]:
        raise row.bad("every lesson is due at another time. Write the lesson's name instead of *")
    if lesson != EVERY:
        if not row["due"]:
            raise row.bad("there is no due date. Write it as 2026-03-02 23:59")
        if row["late days"]:
            raise row.bad("late days are for all lessons together. Write them in a line with * for the lesson")
        if lesson in told.due:
            raise row.bad(f"{lesson} has a due date already, above. Write one line for the class")
        told.due[lesson] = _moment(row, told.zone)
    for column, into in (("per day", told.per_day), ("at most", told.at_most)):
        if row[column]:
            if lesson in into:
                raise row.bad(f'"{column}" stands there already, above. Write it once')
            into[lesson] = _share(row, column)
    if row["late days"]:
        if "" in told.late_days:
            raise row.bad("the class has late days already, above. Write them once")
        told.late_days[""] = _days(row)


def _of_a_student(row: Row, told: Deadlines) -> None:
    lesson, student = row["lesson"], row["student"]
    told.lines.setdefault(student, row.line)
    if row["per day"] or row["at most"]:
        raise row.bad('"per day" and "at most" are for the class. Leave them out in a line with a student')
    if lesson == EVERY:
        if row["due"] or not row["late days"]:
            raise row.bad("a line with * and a student tells late days and nothing else. Or name the lesson")
        if student in told.late_days:
            raise row.bad(f"{student} has late days already, above. Write them once")
        told.late_days[student] = _days(row)
        return
    if row["late days"]:
        raise row.bad("late days are for all lessons together. Write them in a line with * for the lesson")
    if (lesson, student) in told.extended:
        raise row.bad(f"{student} has a date for {lesson} already, above. Write one")
    told.extended[lesson, student] = _moment(row, told.zone)


def _check_extension(row: Row, told: Deadlines) -> None:
    lesson, student = row["lesson"], row["student"]
    if not student or lesson == EVERY:
        return
    if lesson not in told.due:
        raise row.bad(f"{lesson} has no due date for the class. Write a line for it without a student")
    if told.extended[lesson, student] < told.due[lesson]:
        raise row.bad(f"{student} would have less time than the class. Write a date after the class's")


def _moment(row: Row, zone: tzinfo) -> datetime:
    try:
        return instant(row["due"], zone, end_of_day=True)
    except BadDate as problem:
        raise row.bad(str(problem)) from None


def _share(row: Row, column: str) -> Share:
    text = row[column].replace(" ", "").removesuffix("points").replace(",", ".")
    percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value <= (100 if percent else 1e6):
        raise row.bad(f'"{column}" is "{plain(row[column], 40)}". Write a share like 10%, or points like 2')
    return Share(part=value / 100) if percent else Share(points=value)


def _days(row: Row) -> int:
    text = row["late days"]
    if not text.isascii() or not text.isdigit() or int(text) > 1000:
        raise row.bad(f'"late days" is "{plain(text, 40)}". Write a whole number of days')
    return int(text)
