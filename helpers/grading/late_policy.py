"""What lateness costs: due dates and extensions in nbgrader's gradebook, points by its plugin.

So the formgrader, the feedback and every export know. The table is `deadlines.csv` (`collect.deadlines`); without it
nothing is taken off.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.plugins import BasePlugin
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import ColumnElement, false, or_
from sqlalchemy.orm import Session
from traitlets import Unicode
from traitlets.config import Config

from helpers.checking.panel import number
from helpers.grading.sanitize import plain
from helpers.grading.submissions.deadlines import FILE, Deadlines, days_begun, read_deadlines
from helpers.grading.submissions.roster import roster


class LateDays(BasePlugin):
    """Takes points for each day begun after the due date, once a student's late days are used up."""

    root = Unicode("", help="The course's folder; the working folder if empty.").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points to take off, None for none. Called by nbgrader's AssignLatePenalties, our parent."""
        deadlines, lesson = deadlines_of(Path(self.root or Path.cwd())), self.parent.assignment_id
        if deadlines is None or lesson not in deadlines.due:
            return None
        left = days_left(self.parent.gradebook.db, deadlines, lesson, student_id)
        days = max(0, days_begun(total_seconds_late) - left)
        return deadlines.cost(lesson, days, score) or None


def deadlines_of(root: Path) -> Deadlines | None:
    """The course's table, read anew when the file has changed. Raises BadTable."""
    path = Path(root, FILE)
    try:
        found = path.stat()
    except OSError:
        return None
    return _read(Path(root), found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _read(root: Path, modified: int, size: int) -> Deadlines | None:
    return read_deadlines(root)


def enter_dates(gradebook: Gradebook, deadlines: Deadlines | None, lesson: str, student: str = "") -> None:
    """Let the gradebook know when a lesson is due, and how much longer a student has. Lessons without a date stay."""
    if deadlines is None or lesson not in deadlines.due:
        return
    assignment = gradebook.find_assignment(lesson)
    if assignment.duedate != deadlines.due[lesson]:
        assignment.duedate = deadlines.due[lesson]
        gradebook.db.commit()
    with suppress(MissingEntry):
        submission = gradebook.find_submission(lesson, student)
        extension = deadlines.extension(lesson, student)
        if submission.extension != extension:
            submission.extension = extension
            gradebook.db.commit()


def days_left(session: Session, deadlines: Deadlines, lesson: str, student: str) -> int:
    """How many of a student's late days the lessons that were due earlier have left."""
    left, earlier = deadlines.budget(student), deadlines.before(lesson)
    if not left or not earlier:
        return left
    found = session.query(SubmittedAssignment.timestamp, Assignment.duedate, SubmittedAssignment.extension)
    found = found.join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
    for handed_in, due, extension in found.filter(
        SubmittedAssignment.student_id == student, Assignment.name.in_(earlier)
    ):
        if handed_in and due:
            left -= days_begun((handed_in - due - (extension or timedelta())).total_seconds())
    return max(0, left)


def settle(gradebook: Gradebook, config: Config, root: Path) -> list[str]:
    """Put every penalty right by the table as it is now, and say whose changed. Nothing is run; marks by hand stay.

    A penalty follows from more than the submission that it is for: the table may have changed, points may have been
    given by hand, an earlier lesson may have used up late days.
    """
    deadlines, assignments = deadlines_of(root), {found.name: found for found in gradebook.assignments}
    for lesson, assignment in assignments.items():
        enter_dates(gradebook, deadlines, lesson)
        named = {student for name, student in (deadlines.extended if deadlines else ()) if name == lesson}
        extended = _of(gradebook, assignment, SubmittedAssignment.extension.is_not(None))
        for student in {submission.student_id for submission in extended} | named:
            enter_dates(gradebook, deadlines, lesson, student)
    told = []
    for lesson in sorted(assignments, key=lambda name: (assignments[name].duedate or datetime.max, name)):
        step, assignment = Penalties(gradebook, lesson, config=_with_root(config, root)), assignments[lesson]
        due = assignment.duedate
        late = SubmittedAssignment.timestamp > due if due else false()
        for submission in _of(gradebook, assignment, or_(late, SubmittedAssignment.late_submission_penalty > 0)):
            told += step.settle(submission)
    gradebook.db.commit()
    return told


class Penalties(AssignLatePenalties):
    """nbgrader's own step, in a gradebook that is open: by the same plugin, within the same bounds."""

    def __init__(self, gradebook: Gradebook, lesson: str, **more: object):
        super().__init__(**more)
        self.gradebook, self.assignment_id = gradebook, lesson
        self.init_plugin()

    def settle(self, submission: SubmittedAssignment) -> list[str]:
        """Write the penalty of a submission; in words, what it was and is, if it is another."""
        told, late, student = [], submission.total_seconds_late, submission.student_id
        for notebook in submission.notebooks:
            self.gradebook.db.refresh(notebook, ["score", "late_submission_penalty"])
            before, after = notebook.late_submission_penalty or 0.0, None
            if late:
                after = self.plugin_inst.late_submission_penalty(student, notebook.score, late)
            after = after and self._check_late_penalty(notebook, after)
            if abs((after or 0.0) - before) > 1e-9:
                notebook.late_submission_penalty = after
                told.append(changed(self.assignment_id, student, before, after or 0.0))
        return told


def _of(gradebook: Gradebook, assignment: Assignment, such: ColumnElement[bool]) -> list[SubmittedAssignment]:
    """The submissions of a lesson of which this holds, as they are in the database now."""
    asked = gradebook.db.query(SubmittedAssignment).filter(SubmittedAssignment.assignment_id == assignment.id, such)
    return asked.order_by(SubmittedAssignment.student_id).populate_existing().all()


def _with_root(config: Config, root: Path) -> Config:
    return Config(config, LateDays={**config.get("LateDays", {}), "root": str(root)})


def strangers(gradebook: Gradebook, root: Path) -> list[str]:
    """Whom the table names and nobody knows, in words: a name misspelt there would cost its student points."""
    deadlines = deadlines_of(root)
    if deadlines is None or not deadlines.lines:
        return []
    known = {student.id for student in gradebook.students} | set(roster(root))
    return [
        f"{FILE}, line {line}: nobody is called {plain(student)}. Write the student's id, as the report has it"
        for student, line in deadlines.lines.items()
        if student not in known
    ]


def changed(lesson: str, student: str, before: float, after: float) -> str:
    """What a change of the table, of points given by hand, or of late days left, did to somebody's penalty."""
    return f"{plain(student)}: lateness costs {number(after)} points in {lesson}, not {number(before)}"
