"""A lesson's results: marks and comments from the gradebook, verdicts and code from the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Grade, SubmittedAssignment

from helpers.exercises import Lesson, load_lesson
from helpers.grading.gradebook import GradebookSession, judged_path
from helpers.grading.journal import NOTHING_RAN, Journal, JournalEntry
from helpers.grading.progress_bars import progress
from helpers.grading.submissions.roster import Student
from helpers.notebooks import CHECK, check_id

HANDLE = 8  # characters of an answer's digest, which the report calls it by
NOT_RECORDED = (
    "graded by an earlier version of the course, or its line in the journal is lost, so that neither code nor pictures "
    "are shown: grade it again, with ARGS=--again"
)


@dataclass(frozen=True)
class GradedCell:
    """One graded cell of one student."""

    student: Student
    name: str
    """The exercise's, or the cell's own."""
    score: float
    """The points that count."""
    out_of: float
    by_hand: bool = False
    """They were given or changed by hand."""
    waits: bool = False
    """It is still to be marked by hand."""
    record: dict = field(default_factory=dict)
    """See `records.record`, {} where there is no verdict."""
    code: str = ""
    comment: str = ""
    """Written by hand, in the formgrader."""


@dataclass(frozen=True)
class StudentResult:
    """One student's lesson."""

    student: Student
    score: float
    """After the penalty."""
    out_of: float
    penalty: float
    cells: tuple[GradedCell, ...]
    entry: JournalEntry = field(default_factory=lambda: JournalEntry("", at=""))
    """The journal's, with a flag where it holds no code."""
    late: float = 0.0
    """Seconds after the due date, with any extension."""
    handed_in: datetime | None = None
    due: datetime | None = None
    """handed_in, due: UTC, None where they are not known."""

    @property
    def ran(self) -> bool:
        """The file could be read, and its answers were run."""
        return self.entry.isolation != NOTHING_RAN


def results(root: Path, lesson: str, bar: bool = False) -> tuple[Lesson, list[StudentResult]]:
    """The lesson, and the result of every student who was graded, by student id. bar: show progress."""
    exercises, entries, students = load_lesson(lesson), Journal(root, lesson).read(), []
    with GradebookSession(root, lesson) as marks:
        submissions = marks.submissions()
        for submission in progress(submissions, "Reading", "submission", shown=bar and bool(submissions)):
            student = submission.student.id
            if student in entries or judged_path(root, student, lesson).is_file():
                entry = entries.get(student, JournalEntry(student, at=""))  # marks are known then, verdicts are not
                students.append(_result(submission, exercises, entry))
    return exercises, sorted(students, key=lambda result: result.student.id)


def _result(submission: SubmittedAssignment, lesson: Lesson, entry: JournalEntry) -> StudentResult:
    student = submission.student
    notebooks = [notebook for notebook in submission.notebooks if notebook.name == lesson.name]
    grades = {grade.name: grade for notebook in notebooks for grade in notebook.grades}
    comments = {c.name: c.comment for notebook in notebooks for c in notebook.comments if c.comment}
    order = [name for name in entry.texts if name in grades] or list(grades)
    penalty = submission.late_submission_penalty or 0.0
    name = " ".join(filter(None, (student.first_name, student.last_name)))
    number = entry.number or student.lms_user_id or ""
    author = Student(student.id, name, student.email or "", number, entry.platform)
    return StudentResult(
        student=author,
        score=round(max(0.0, submission.score - penalty), 6),
        out_of=submission.max_score,
        penalty=penalty,
        cells=tuple(_graded_cell(author, name, grades[name], entry, comments) for name in order),
        entry=entry if entry.texts else replace(entry, flags=[*entry.flags, NOT_RECORDED]),
        late=submission.total_seconds_late,
        handed_in=_utc(submission.timestamp),
        due=_utc(submission.duedate) if submission.assignment.duedate else None,
    )


def _utc(time: datetime | None) -> datetime | None:
    return time.replace(tzinfo=UTC) if time else None


def _graded_cell(
    student: Student, key: str, grade: Grade, entry: JournalEntry, comments: Mapping[str, str]
) -> GradedCell:
    name = key.removeprefix(CHECK)
    record = next((each for each in entry.verdicts if check_id(each["exercise"]) == key), {})
    own = "" if record else entry.texts.get(key, "")  # a cell marked by hand is its own solution cell
    comment = comments.get(name) or comments.get(key, "")
    return GradedCell(
        student=student,
        name=name,
        score=grade.score or 0.0,
        out_of=grade.max_score,
        by_hand=grade.manual_score is not None or bool(grade.extra_credit),
        waits=bool(grade.needs_manual_grade and grade.manual_score is None),
        record=record,
        code=entry.texts.get(name, own),
        comment="" if comment == "No response." else comment,
    )
