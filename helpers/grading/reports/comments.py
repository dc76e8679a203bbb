"""An instructor's comments on a whole group: comments.csv, one line for a mistake or for an answer of the report."""

from __future__ import annotations

from pathlib import Path

from helpers.grading.csv_tables import read_table
from helpers.grading.reports.results import HANDLE, GradedCell

FILE = "comments.csv"
COLUMNS = ("lesson", "exercise", "about", "comment")

Comments = dict[tuple[str, str], list[str]]


def read_comments(root: Path, lesson: str) -> Comments:
    """The comments on a lesson by exercise and by what they are about; {} without a table. Raises BadTable.

    About is the name of a known mistake, or the handle that the report gives to an answer.
    """
    comments: Comments = {}
    if not (root / FILE).is_file():
        return comments
    for row in read_table(root / FILE)[1]:
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
