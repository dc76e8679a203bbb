"""When lessons are due and what lateness costs: `deadlines.csv` in the course's folder, as site/instructors.md has it.

Due dates, extensions and penalties go into nbgrader's gradebook, so that the formgrader, the feedback and every export
know. Without the table nothing is deducted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from dateutil import tz
from nbgrader.api import Assignment, Gradebook, SubmittedAssignment
from sqlalchemy import ColumnElement, false, or_
from sqlalchemy.orm import Session

from helpers.exercises.exercise import lesson_names
from helpers.grading.csv_tables import BadDate, BadTable, TableRow, parse_zone, read_table
from helpers.grading.submissions.roster import roster
from helpers.text import number, plain

FILE = "deadlines.csv"
EVERY = "*"
COLUMNS = ("lesson", "student", "due", "per day", "at most", "late days", "zone")
# By whether it is for every lesson, and for one student: what a line is called, and what it must and may hold
KINDS_OF_LINE = {
    (False, False): ("A line for a lesson", ("due",), ("per day", "at most")),
    (False, True): ("A line for a lesson and a student", ("due",), ()),
    (True, False): ("A line for every lesson", (), ("per day", "at most", "late days")),
    (True, True): ("A line for every lesson and a student", ("late days",), ()),
}


@dataclass(frozen=True)
class PenaltyRate:
    """Points, or a fraction of the points reached."""

    points: float = 0.0
    fraction: float = 0.0

    def of(self, score: float) -> float:
        return self.points + self.fraction * score


@dataclass(frozen=True)
class Deadlines:
    """The table. All but the lines is by lesson, or EVERY, and student, "" for the class."""

    zone: tzinfo = field(default_factory=tz.tzlocal)
    due: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """In UTC."""
    per_day: dict[tuple[str, str], PenaltyRate] = field(default_factory=dict)
    at_most: dict[tuple[str, str], PenaltyRate] = field(default_factory=dict)
    late_days: dict[tuple[str, str], int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # where each student is first named

    def due_date(self, lesson: str) -> datetime | None:
        return self.due.get((lesson, ""))

    def extension(self, lesson: str, student: str) -> timedelta | None:
        """How much longer than the class somebody has."""
        extended = self.due.get((lesson, student))
        return extended - self.due[lesson, ""] if extended else None

    def cost(self, lesson: str, days: int, score: float) -> float:
        per_day = self.per_day.get((lesson, ""), self.per_day.get((EVERY, ""), PenaltyRate()))
        at_most = self.at_most.get((lesson, ""), self.at_most.get((EVERY, ""), PenaltyRate(fraction=1.0)))
        return round(min(days * per_day.of(score), at_most.of(score), score), 6)

    def free_days(self, student: str) -> int:
        return self.late_days.get((EVERY, student), self.late_days.get((EVERY, ""), 0))

    def before(self, lesson: str) -> list[str]:
        """The lessons that were due before this one, which use up late days first."""
        order = [name for _, name in sorted((due, name) for (name, student), due in self.due.items() if not student)]
        return order[: order.index(lesson)] if lesson in order else []


def days_begun(late: timedelta) -> int:
    """A second late is a day late, a day and a second are two."""
    return max(0, math.ceil(late / timedelta(days=1)))


def read_deadlines(root: Path) -> Deadlines:
    """The course's table; empty where there is none. Raises BadTable."""
    path = Path(root, FILE)
    if not path.is_file():
        return Deadlines()
    columns, rows = read_table(path)
    unknown = [column for column in columns if column and column not in COLUMNS]
    if unknown or "lesson" not in columns:
        problem = f'the column "{unknown[0]}" is not known' if unknown else "there is no column lesson"
        raise BadTable(path, 1, f"{problem}. The columns are {', '.join(COLUMNS)}")
    deadlines = Deadlines(_zone(rows))
    for row in rows:
        _add_line(row, deadlines)
    for row in rows:
        lesson, student = row["lesson"], row["student"]
        if not student or lesson == EVERY:
            continue
        due = deadlines.due_date(lesson)
        if due is None:
            raise row.error(f"{lesson} has no due date for the class. Write a line for it without a student")
        if deadlines.due[lesson, student] < due:
            raise row.error(f"{student} would have less time than the class. Write a date after the class's")
    return deadlines


def _zone(rows: list[TableRow]) -> tzinfo:
    named = [row for row in rows if row["zone"]]
    for row in named:
        if row["zone"] != named[0]["zone"]:
            raise row.error(f'the zone is "{named[0]["zone"]}" in line {named[0].line}. Name one zone for the course')
    try:
        return parse_zone(named[0]["zone"]) if named else tz.tzlocal()
    except BadDate as problem:
        raise named[0].error(problem) from None


def _add_line(row: TableRow, deadlines: Deadlines) -> None:
    lesson, student = row["lesson"], row["student"]
    if lesson not in (EVERY, *lesson_names()):
        names = ", ".join(lesson_names())
        raise row.error(f'there is no lesson "{plain(lesson, 60)}". Write one of {names}, or *')
    kind, required, optional = KINDS_OF_LINE[lesson == EVERY, bool(student)]
    if student:
        deadlines.lines.setdefault(student, row.line)
    for column in ("due", "per day", "at most", "late days"):
        if column in required and not row[column]:
            raise row.error(f'"{column}" is empty. {kind} needs it')
        if not row[column]:
            continue
        if column not in (*required, *optional):
            raise row.error(f'"{column}" does not belong here. {kind} has {" and ".join((*required, *optional))} only')
        values = getattr(deadlines, column.replace(" ", "_"))
        if (lesson, student) in values:
            raise row.error(f'"{column}" is in an earlier line already. Write it once')
        if column == "due":
            values[lesson, student] = row.date(column, deadlines.zone, end_of_day=True)
        else:
            values[lesson, student] = _days(row) if column == "late days" else _rate(row, column)


def _rate(row: TableRow, column: str) -> PenaltyRate:
    text = row[column].replace(" ", "").replace(",", ".")
    percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value <= (100 if percent else 1e6):
        raise row.error(f'"{column}" is "{plain(row[column], 40)}". Write a share like 10%, or points like 2')
    return PenaltyRate(fraction=value / 100) if percent else PenaltyRate(points=value)


def _days(row: TableRow) -> int:
    text = row["late days"]
    if not re.fullmatch("[0-9]{1,3}", text):
        raise row.error(f'"late days" is "{plain(text, 40)}". Write a whole number of days')
    return int(text)


def enter_dates(deadlines: Deadlines, assignment: Assignment, submissions: Iterable[SubmittedAssignment]) -> None:
    """Write when a lesson is due, and these submissions' extensions. Lessons without a date stay as they are."""
    if due := deadlines.due_date(assignment.name):
        assignment.duedate = due
        for submission in submissions:
            submission.extension = deadlines.extension(assignment.name, submission.student_id)


def days_left(session: Session, deadlines: Deadlines, lesson: str, student: str) -> int:
    """How many of a student's late days the lessons that were due earlier have left."""
    left = deadlines.free_days(student)
    query = session.query(SubmittedAssignment.timestamp, Assignment.duedate, SubmittedAssignment.extension)
    query = query.join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
    earlier = Assignment.name.in_(deadlines.before(lesson))
    for handed_in, due, extension in query.filter(SubmittedAssignment.student_id == student, earlier):
        if handed_in and due:
            left -= days_begun(handed_in - due - (extension or timedelta()))
    return max(0, left)


def update_penalties(gradebook: Gradebook, deadlines: Deadlines) -> list[str]:
    """Recompute every penalty; in words, whose changed. Nothing is run; manual marks stay.

    A penalty depends on more than its own submission: the table may have changed, points may have been given by hand,
    an earlier lesson may have used up late days.
    """
    for assignment in gradebook.assignments:
        students = [student for lesson, student in deadlines.due if lesson == assignment.name]
        extended = or_(SubmittedAssignment.student_id.in_(students), SubmittedAssignment.extension.is_not(None))
        enter_dates(deadlines, assignment, _submissions(gradebook, assignment, extended))
    changes = []
    for assignment in sorted(gradebook.assignments, key=lambda each: (each.duedate or datetime.max, each.name)):
        late = SubmittedAssignment.timestamp > assignment.duedate if assignment.duedate else false()
        condition = or_(late, SubmittedAssignment.late_submission_penalty > 0)
        for submission in _submissions(gradebook, assignment, condition):
            changes += update_penalty(gradebook, deadlines, submission)
    gradebook.db.commit()
    return changes


def update_penalty(gradebook: Gradebook, deadlines: Deadlines, submission: SubmittedAssignment) -> list[str]:
    """Write the penalty of one submission; in words, what it was and is, if it has changed."""
    lesson, student, days, changes = submission.name, submission.student_id, 0, []
    if deadlines.due_date(lesson) and submission.total_seconds_late:
        late = timedelta(seconds=submission.total_seconds_late)
        days = max(0, days_begun(late) - days_left(gradebook.db, deadlines, lesson, student))
    for notebook in submission.notebooks:
        gradebook.db.refresh(notebook, ["score", "late_submission_penalty"])
        before = notebook.late_submission_penalty or 0.0
        after = deadlines.cost(lesson, days, notebook.score) if days else 0.0
        if abs(after - before) > 1e-9:
            notebook.late_submission_penalty = after or None
            costs = f"lateness costs {number(after)} points in {lesson}, not {number(before)}"
            changes.append(f"{plain(student)}: {costs}")
    return changes


def _submissions(
    gradebook: Gradebook, assignment: Assignment, condition: ColumnElement[bool]
) -> list[SubmittedAssignment]:
    """The submissions of a lesson for which this holds, as they are in the database now."""
    of_lesson = SubmittedAssignment.assignment_id == assignment.id
    query = gradebook.db.query(SubmittedAssignment).filter(of_lesson, condition)
    return query.order_by(SubmittedAssignment.student_id).populate_existing().all()


def unknown_students(gradebook: Gradebook, deadlines: Deadlines, root: Path) -> list[str]:
    """Who is in the table and not in the class, in words: a misspelled name would cost its student points."""
    known = {student.id for student in gradebook.students} | set(roster(root))
    return [
        f"{FILE}, line {line}: nobody is called {plain(student)}. Write the student's id, as the report has it"
        for student, line in deadlines.lines.items()
        if student not in known
    ]
