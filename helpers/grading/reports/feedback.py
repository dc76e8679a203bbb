"""A page for each student: every verdict with what to look at, beside the code."""

from __future__ import annotations

from pathlib import Path

from helpers.course import write_whole
from helpers.exercises import Lesson
from helpers.grading.errors import GradingError
from helpers.grading.progress_bars import progress
from helpers.grading.records import panel_of
from helpers.grading.reports.comments import Comments, about, read_comments
from helpers.grading.reports.feedback_zips import write_zips
from helpers.grading.reports.pages import page
from helpers.grading.reports.results import GradedCell, StudentResult, results
from helpers.text import counted


def write_feedback(root: Path, lesson: str, only: tuple[str, ...] = ()) -> None:
    """Write feedback/STUDENT/LESSON/LESSON.html, as nbgrader does. Raises GradingError when nothing was graded yet."""
    exercises, students = results(root, lesson, only)
    if not students:
        raise GradingError(f"Nothing to write: no such submission of {lesson} is graded. make grade LESSON={lesson}")
    comments, pages = read_comments(root, lesson), {}
    for result in progress(students, "Writing feedback", "page"):
        path = root / "feedback" / result.student.id / lesson / f"{lesson}.html"
        pages[result.student.id] = feedback_page(exercises, result, comments)
        write_whole(path, pages[result.student.id])
    print(f"Wrote {counted(len(students), 'page')}: feedback/STUDENT/{lesson}/{lesson}.html")
    if not only:
        write_zips(root, lesson, students, pages)


def feedback_page(lesson: Lesson, result: StudentResult, comments: Comments | None = None) -> str:
    """The page of one student, as standalone HTML. comments: on groups."""
    title = f"{lesson.number} · {lesson.title}"
    panels = {cell.name: panel_of(cell.record, lesson) for cell in result.cells if cell.record}
    notes = {cell.name: about(cell, comments or {}) for cell in result.cells}
    values = {"lesson": lesson, "result": result, "percent": _percent, "panels": panels, "notes": notes}
    return page("feedback.html.j2", title=title, **values)


def _percent(cell: GradedCell) -> float:
    return 100 * max(0.0, min(1.0, cell.score / cell.out_of)) if cell.out_of else 0.0
