"""A page for each student: every verdict with what to look at, beside the code; and zips of the pages.

An instructor's comments on a whole group are in comments.csv, one line for a mistake or for an answer of the report.
What the platforms read of a zip, from their own sources (canvas-lms, Assignment#infer_comment_context_from_filename;
moodle, mod/assign/feedback/file/importziplib.php):

- Canvas: the first two numbers between underscores, which are the user's and that of a file that this user handed in.
  The comment's file bears that file's name.
- Moodle: NAME_NUMBER_PLUGINTYPE_PLUGIN_FILE. With the feedback plugin, pages that have not changed are passed over.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from helpers.course import write_whole
from helpers.exercises import Lesson
from helpers.grading.csv_tables import read_table
from helpers.grading.errors import GradingError
from helpers.grading.progress_bars import progress
from helpers.grading.records import panel_of
from helpers.grading.reports.export import FOLDER
from helpers.grading.reports.pages import page
from helpers.grading.reports.results import HANDLE, GradedCell, StudentResult, results
from helpers.grading.submissions.select import read_submissions
from helpers.text import counted

COMMENTS_FILE = "comments.csv"
COLUMNS = ("lesson", "exercise", "about", "comment")

Comments = dict[tuple[str, str], list[str]]


def read_comments(root: Path, lesson: str) -> Comments:
    """The comments on a lesson by exercise and by what they are about; {} without a table. Raises BadTable.

    About is the name of a known mistake, or the handle that the report gives to an answer.
    """
    comments: Comments = {}
    if not (root / COMMENTS_FILE).is_file():
        return comments
    for row in read_table(root / COMMENTS_FILE)[1]:
        if missing := [column for column in COLUMNS if not row[column]]:
            raise row.error(f'"{missing[0]}" is empty. Each line has {", ".join(COLUMNS)}')
        if row["lesson"] == lesson:
            comments.setdefault((row["exercise"], row["about"]), []).append(row["comment"])
    return comments


def about(cell: GradedCell, comments: Comments) -> list[str]:
    """The comments that the author of this answer reads."""
    groups = [mistake["slug"] for mistake in cell.record.get("mistakes", [])]
    groups.append(cell.record.get("answer", "")[:HANDLE])
    return [comment for group in groups if group for comment in comments.get((cell.name, group), [])]


def write_feedback(root: Path, lesson: str) -> None:
    """Write feedback/STUDENT/LESSON/LESSON.html, as nbgrader does. Raises GradingError when nothing was graded yet."""
    exercises, students = results(root, lesson)
    if not students:
        raise GradingError(f"Nothing to write: no submission of {lesson} is graded. make grade LESSON={lesson}")
    comments, pages = read_comments(root, lesson), {}
    for result in progress(students, "Writing feedback", "page"):
        path = root / "feedback" / result.student.id / lesson / f"{lesson}.html"
        pages[result.student.id] = feedback_page(exercises, result, comments)
        write_whole(path, pages[result.student.id])
    print(f"Wrote {counted(len(students), 'page')}: feedback/STUDENT/{lesson}/{lesson}.html")
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


def write_zips(root: Path, lesson: str, students: Iterable[StudentResult], pages: Mapping[str, str]) -> None:
    """Write export/LESSON.feedback.PLATFORM.zip for each platform of these students, and say who is in none.

    pages: by student.
    """
    of_platforms = [result.student for result in students if result.student.platform]
    uploads = _uploads(root, lesson) if any(student.platform == "canvas" for student in of_platforms) else {}
    files: dict[str, dict[str, str]] = {}
    without = []
    for student in of_platforms:
        name = re.sub(r"[^a-zA-Z-]", "", student.id) or "student"
        if student.platform == "moodle" and student.number:
            file = f"{name}_{student.number}_assignfeedback_file_{lesson}.html"
        elif student.number and (upload := uploads.get(student.id)):
            file = f"{name}_{student.number}_{upload}_{lesson}.html"
        else:
            without.append(student.id)
            continue
        files.setdefault(student.platform, {})[file] = pages[student.id]
    for platform, named in files.items():
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
            for file, text in named.items():
                archive.writestr(file, text)
        path = root / FOLDER / f"{lesson}.feedback.{platform}.zip"
        write_whole(path, data.getvalue())
        print(f"Wrote {counted(len(named), 'page')} for {platform.title()}: {path.relative_to(root)}")
    if without:
        print(f"In no zip, for the number of the file is not known: {', '.join(without)}")


def _uploads(root: Path, lesson: str) -> dict[str, int]:
    """The number that Canvas has given to each student's file; only its own names tell."""
    submissions, _ = read_submissions(root / "submitted", lesson, root)
    return {each.student.id: each.file.owner.upload for each in submissions if each.file and each.file.owner.upload}
