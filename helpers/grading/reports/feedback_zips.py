"""Feedback pages in a zip for each platform, under the names by which Canvas and Moodle find the students.

What the platforms read, from their own sources (canvas-lms, Assignment#infer_comment_context_from_filename; moodle,
mod/assign/feedback/file/importziplib.php):

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
from helpers.grading.reports.export import FOLDER
from helpers.grading.reports.results import StudentResult
from helpers.grading.submissions.select import read_submissions
from helpers.text import counted


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
