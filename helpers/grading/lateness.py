"""What lateness costs, through nbgrader's own doors: due dates and extensions in its gradebook, points by its plugin.

`nbgrader autograde` and `make grade` both go this way, so that the formgrader, the feedback and every export know. The
table is `deadlines.csv` (`collect.deadlines`); without it nothing is taken off.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import BasePlugin
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from helpers.checking.panel import number
from helpers.grading.collect.csv_files import BadTable
from helpers.grading.collect.deadlines import FILE, Deadlines, days_begun, read_deadlines
from helpers.grading.collect.roster import roster
from helpers.grading.harmless import plain


class LateDays(BasePlugin):
    """Takes points for each day begun after the due date, once a student's late days are used up."""

    root = Unicode("", help="The course's folder; the working folder if empty.").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points to take off, None for none. Called by nbgrader's AssignLatePenalties, our parent."""
        deadlines, lesson = deadlines_of(Path(self.root or Path.cwd())), self.parent.assignment_id
        if deadlines is None or lesson not in deadlines.due:
            return None
        left = days_left(self.parent.gradebook, deadlines, lesson, student_id)
        days = max(0, days_begun(total_seconds_late) - left)
        return deadlines.cost(lesson, days, score) or None


class DueDates(NbGraderPreprocessor):
    """Writes a lesson's due date, and a student's extension, into the gradebook. Stands before AssignLatePenalties."""

    def preprocess(self, nb, resources):
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            enter_dates(gradebook, deadlines_of(Path.cwd()), about["assignment"], about["student"])
        return nb, resources


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


def days_left(gradebook: Gradebook, deadlines: Deadlines, lesson: str, student: str) -> int:
    """How many of a student's late days the lessons that were due earlier have left."""
    left = deadlines.budget(student)
    for earlier in deadlines.before(lesson):
        if left <= 0:
            return 0
        with suppress(MissingEntry):
            left -= days_begun(gradebook.find_submission(earlier, student).total_seconds_late)
    return max(0, left)


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


__all__ = ["BadTable", "DueDates", "LateDays", "changed", "days_left", "deadlines_of", "enter_dates", "strangers"]
