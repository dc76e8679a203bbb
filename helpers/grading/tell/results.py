"""What a lesson's grading came to: marks and comments from the gradebook, verdicts from the judged notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook

from helpers.exercises import Lesson, load_lesson
from helpers.grading.gradebook import Marks
from helpers.grading.journal import Journal
from helpers.grading.records import PLACE
from helpers.notebooks import exercise_of


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
    """One student's lesson. score: after the penalty. panel and parts: see Part. at: when it was graded, UTC."""

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

    @property
    def shown(self) -> str:
        return self.name or self.student


def results(root: Path, lesson: str) -> tuple[Lesson, list[Result]]:
    """Every student's result, by student id. Students without a judged notebook are left out."""
    asked, journal = load_lesson(lesson), Journal(root, lesson).read()
    found = []
    with Marks(root, lesson) as marks:
        for submission in marks.gradebook.assignment_submissions(lesson):
            path = marks.path(submission.student.id)
            if path.is_file() and not path.is_symlink():
                notebook = nbformat.read(path, as_version=4)
                found.append(_result(submission, notebook, marks.gradebook, asked, journal.get(submission.student.id)))
    return asked, sorted(found, key=lambda result: result.student)


def _result(submission, notebook: NotebookNode, gradebook: Gradebook, lesson: Lesson, entry) -> Result:
    student, name = submission.student, lesson.name
    grades = {g.name: g for n in submission.notebooks if n.name == name for g in n.grades}
    comments = {c.name: c for n in submission.notebooks if n.name == name for c in n.comments}
    cells = {c.metadata.nbgrader["grade_id"]: c for c in notebook.cells if c.metadata.get("nbgrader")}
    parts = tuple(_part(cell, grades[key], cells, comments) for key, cell in cells.items() if key in grades)
    isolations = sorted({part.record["isolation"] for part in parts if part.record})
    penalty = submission.late_submission_penalty or 0.0
    return Result(
        student=student.id,
        name=" ".join(part for part in (student.first_name, student.last_name) if part),
        number=(entry.number if entry else "") or student.lms_user_id or "",
        email=student.email or "",
        score=round(max(0.0, submission.score - penalty), 6),
        out_of=submission.max_score,
        penalty=penalty,
        parts=parts,
        flags=tuple(entry.flags) if entry else (),
        isolation=", ".join(isolations),
        at=entry.at if entry else "",
        platform=entry.platform if entry else "",
        late=submission.total_seconds_late,
    )


def _part(cell: NotebookNode, grade, cells: dict, comments: dict) -> Part:
    key = cell.metadata.nbgrader["grade_id"]
    name = exercise_of(cell)
    record, panel = {}, ""
    for output in cell.get("outputs", []):
        if isinstance(output.get("metadata", {}).get(PLACE), dict):
            record, panel = output.metadata[PLACE], output.get("data", {}).get("text/html", "")
            break
    comment = next((comments[k].comment for k in (name, key) if k in comments and comments[k].comment), "")
    solution = cells.get(name, cell)
    return Part(
        name=name,
        score=grade.score or 0.0,
        out_of=grade.max_score,
        by_hand=grade.manual_score is not None or bool(grade.extra_credit),
        waits=bool(grade.needs_manual_grade and grade.manual_score is None),
        record=record,
        panel=panel,
        code=solution.source if solution is not cell or cell.cell_type != "code" or not record else "",
        comment="" if comment == "No response." else comment,
    )
