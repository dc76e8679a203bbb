"""A page for each student: every verdict with what to look at, beside the code that it is about."""

from __future__ import annotations

from pathlib import Path

from helpers.exercises import Lesson
from helpers.grading.progress import counted, progress
from helpers.grading.reports.pages import page, write
from helpers.grading.reports.results import Part, Result, results


def write_feedback(lesson: str, only: tuple[str, ...] = ()) -> int:
    """Write feedback/STUDENT/LESSON/LESSON.html, where nbgrader has it. Returns 1 when nothing was graded yet."""
    asked, found = results(Path.cwd(), lesson, only=only)
    if not found:
        print(f"Nothing to write: no such submission of {lesson} is graded. make grade LESSON={lesson}")
        return 1
    for result in progress(found, "Writing feedback", "page"):
        write(path_of(Path.cwd(), result.student, lesson), feedback_page(asked, result))
    print(f"Wrote {counted(len(found), 'page')}: feedback/STUDENT/{lesson}/{lesson}.html")
    return 0


def path_of(root: Path, student: str, lesson: str) -> Path:
    """Where the page of a student lies below the course's folder."""
    return root / "feedback" / student / lesson / f"{lesson}.html"


def feedback_page(lesson: Lesson, result: Result) -> str:
    """The page of one student, as HTML that stands alone."""
    title = f"{lesson.number} · {lesson.title}"
    return page("feedback.html.j2", title=title, result=result, share=_share, told=_told)


def _share(part: Part) -> float:
    return 100 * max(0.0, min(1.0, part.score / part.out_of)) if part.out_of else 0.0


def _told(part: Part) -> list[str]:
    """What a verdict says, where its panel is not there."""
    texts = [part.record.get("says", ""), *(aspect.get("says", "") for aspect in part.record.get("aspects", []))]
    return [text for text in texts if text]
