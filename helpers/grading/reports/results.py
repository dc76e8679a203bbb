"""What a lesson's grading came to: marks and comments from the gradebook, verdicts and code from judged notebooks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Comment, Grade, SubmittedAssignment, SubmittedNotebook
from sqlalchemy.orm import Query, joinedload, selectinload, undefer

from helpers.exercises import Lesson, load_lesson
from helpers.grading.gradebook import Marks
from helpers.grading.journal import Entry, Journal, lines
from helpers.grading.progress import progress
from helpers.grading.records import FORMAT, PLACE
from helpers.notebooks import check_id, exercise_of, grade_id

UNREADABLE = "its judged notebook is damaged, so that no verdicts can be shown: grade it again"


@dataclass(frozen=True)
class Part:
    """One graded cell of one student.

    name: the exercise's, or the cell's own. score: what counts. by_hand: somebody set or changed it. waits: it
    is still to be marked by hand. record: see `records.record`, {} where no verdict was kept. panel: the verdict
    as HTML, written by the judge. code: what the student handed in. comment: written by hand, in the formgrader.
    """

    name: str
    score: float
    out_of: float
    by_hand: bool = False
    waits: bool = False
    record: dict = field(default_factory=dict)
    panel: str = ""
    code: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Result:
    """One student's lesson. score: after the penalty. parts: see Part. at: when it was graded, UTC.

    late: seconds after the due date, an extension counted in. handed_in, due: UTC, None where nobody said. attempts:
    how many versions of it are known to have been handed in, 0 where nothing is known.
    """

    student: str
    name: str
    number: str
    email: str
    score: float
    out_of: float
    penalty: float
    parts: tuple[Part, ...]
    flags: tuple[str, ...] = ()
    isolation: str = ""
    at: str = ""
    platform: str = ""
    late: float = 0.0
    handed_in: datetime | None = None
    due: datetime | None = None
    attempts: int = 0

    @property
    def shown(self) -> str:
        return self.name or self.student


def results(
    root: Path, lesson: str, going: Callable[[Iterable], Iterable] = iter, only: tuple[str, ...] = ()
) -> tuple[Lesson, list[Result]]:
    """Every student's result, by student id. Students without a judged notebook are left out.

    going: goes through the submissions and shows how far it has come. only: the ids of students; all if none is given.
    """
    asked, journal = load_lesson(lesson), Journal(root, lesson)
    entries, versions = journal.read(), versions_handed_in(journal.path)
    found = []
    with Marks(root, lesson) as marks:
        for submission in going(_submissions(marks, lesson)):
            student = submission.student.id
            path = marks.path(student)
            if (only and student not in only) or not path.is_file() or path.is_symlink():
                continue
            cells = _cells(path)
            found.append(_result(submission, cells, asked, entries.get(student), len(versions.get(student, ()))))
    return asked, sorted(found, key=lambda result: result.student)


def reading(submissions: Iterable) -> Iterable:
    """Goes through submissions, and shows how many of them are read."""
    return progress(submissions, "Reading", "submission")


def versions_handed_in(path: Path) -> Mapping[str, set[str]]:
    """The digests of what each student handed in over time, as far as this journal knows."""
    versions: dict[str, set[str]] = defaultdict(set)
    for line in lines(path):
        with suppress(KeyError, TypeError):
            versions[line["student"]].add(str(line["submitted"]))
    return versions


def _submissions(marks: Marks, lesson: str) -> list[SubmittedAssignment]:
    """Everything that the gradebook knows about them, in a handful of queries, however many there are.

    Raises MissingEntry where it does not know the lesson.
    """
    assignment = marks.gradebook.find_assignment(lesson)
    notebooks = selectinload(SubmittedAssignment.notebooks)
    grades = notebooks.selectinload(SubmittedNotebook.grades)
    asked: Query = marks.gradebook.db.query(SubmittedAssignment).filter_by(assignment_id=assignment.id)
    return asked.options(
        joinedload(SubmittedAssignment.student),
        joinedload(SubmittedAssignment.assignment),
        undefer(SubmittedAssignment.score),
        undefer(SubmittedAssignment.max_score),
        undefer(SubmittedAssignment.late_submission_penalty),
        notebooks.joinedload(SubmittedNotebook.notebook),
        grades.joinedload(Grade.cell),
        grades.undefer(Grade.max_score),
        notebooks.selectinload(SubmittedNotebook.comments).joinedload(Comment.cell),
    ).all()


def _cells(path: Path) -> list[dict] | None:
    """The cells of a judged notebook, without nbformat's look at each of them; None where it cannot be read."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else None


def _result(
    submission: SubmittedAssignment, cells: list[dict] | None, lesson: Lesson, entry: Entry | None, attempts: int
) -> Result:
    student, name = submission.student, lesson.name
    grades = {g.name: g for n in submission.notebooks if n.name == name for g in n.grades}
    comments = {c.name: c.comment for n in submission.notebooks if n.name == name for c in n.comments if c.comment}
    named = {grade_id(cell): cell for cell in cells or [] if grade_id(cell)}
    order = [key for key in named if key in grades] or list(grades)
    parts = tuple(_part(key, grades[key], named, comments, lesson) for key in order)
    isolations = sorted({str(part.record.get("isolation", "")) for part in parts if part.record})
    penalty = submission.late_submission_penalty or 0.0
    flags = tuple(entry.flags) if entry else ()
    return Result(
        student=student.id,
        name=" ".join(part for part in (student.first_name, student.last_name) if part),
        number=(entry.number if entry else "") or student.lms_user_id or "",
        email=student.email or "",
        score=round(max(0.0, submission.score - penalty), 6),
        out_of=submission.max_score,
        penalty=penalty,
        parts=parts,
        flags=flags if cells is not None else (*flags, UNREADABLE),
        isolation=", ".join(isolations),
        at=entry.at if entry else "",
        platform=entry.platform if entry else "",
        late=submission.total_seconds_late,
        handed_in=_utc(submission.timestamp),
        due=_utc(submission.duedate) if submission.assignment.duedate else None,
        attempts=attempts,
    )


def _utc(when: datetime | None) -> datetime | None:
    return when.replace(tzinfo=UTC) if when else None


def _part(key: str, grade: Grade, cells: Mapping[str, dict], comments: Mapping[str, str], lesson: Lesson) -> Part:
    cell = cells.get(key, {})
    name = exercise_of(cell) if cell else key.removeprefix(check_id(""))
    asked = name in lesson or lesson.prediction(name) is not None
    record, panel = _verdict(cell) if asked and key == check_id(name) else ({}, "")
    comment = next((comments[k] for k in (name, key) if k in comments), "")
    answered = cells.get(name, cell)
    written = answered is not cell or cell.get("cell_type") != "code" or not record
    return Part(
        name=name,
        score=grade.score or 0.0,
        out_of=grade.max_score,
        by_hand=grade.manual_score is not None or bool(grade.extra_credit),
        waits=bool(grade.needs_manual_grade and grade.manual_score is None),
        record=record,
        panel=panel,
        code=_text(answered.get("source")) if written else "",
        comment="" if comment == "No response." else comment,
    )


def _verdict(check: dict) -> tuple[dict, str]:
    """The record and the panel that the judge left in a check cell. Other cells' outputs are a student's own."""
    for output in check.get("outputs", []):
        record = output.get("metadata", {}).get(PLACE)
        if isinstance(record, dict) and record.get("format") == FORMAT:
            return record, _text(output.get("data", {}).get("text/html"))
    return {}, ""


def _text(told: object) -> str:
    """A notebook's file keeps a text as one string, or as a list of lines."""
    if isinstance(told, list):
        return "".join(line for line in told if isinstance(line, str))
    return told if isinstance(told, str) else ""
