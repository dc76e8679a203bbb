"""Marks in the shapes that others read: nbgrader's own table, Canvas's gradebook, Moodle's grading worksheet.

Canvas matches students by ID, SIS User ID or SIS Login ID, and a second line gives the points that were
possible. Moodle's worksheet (assignment, "Upload grading worksheet") wants the columns Identifier, Grade and
Last modified (grade); the gradebook's own import lets you map the username.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from helpers.checking.panel import number
from helpers.course import write_whole
from helpers.exercises.exercise import lesson_names
from helpers.grading.reports.results import StudentResult, results
from helpers.grading.reports.tables import as_csv
from helpers.grading.sanitize import plain

FOLDER = "export"


def write_exports(lesson: str | None = None) -> int:
    """Write export/nbgrader.csv for all lessons, and LESSON.canvas.csv and LESSON.moodle.csv for each graded one."""
    folder = Path(FOLDER)
    folder.mkdir(exist_ok=True)
    print("Asking nbgrader for its own table ...", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "export", "--to", str(folder / "nbgrader.csv")],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return 1
    written = [folder / "nbgrader.csv"]
    for name in [lesson] if lesson else lesson_names():
        parted, others = by_platform(_graded(name))
        for platform, own in parted.items():
            path = folder / f"{name}.{platform}.csv"
            write_whole(path, TABLES[platform](name, own))
            written.append(path)
        for platform in TABLES.keys() - parted.keys():  # an earlier export's, with students who do not belong there
            (folder / f"{name}.{platform}.csv").unlink(missing_ok=True)
        if others:
            named = ", ".join(plain(result.student, 60) for result in others)
            print(f"{name}: no platform is known of {named}. Their marks stand in {folder / 'nbgrader.csv'} only")
    print("Wrote " + ", ".join(map(str, written)))
    return 0


def by_platform(found: Sequence[StudentResult]) -> tuple[dict[str, list[StudentResult]], list[StudentResult]]:
    """Each platform's own students, and those whom no file can hold.

    Who is known by the name of a folder alone goes with the others, if these are of one platform. Where nobody is known
    to be of any, the class may be of either.
    """
    parted = {platform: [result for result in found if result.platform == platform] for platform in TABLES}
    parted = {platform: own for platform, own in parted.items() if own}
    others = [result for result in found if result.platform not in TABLES]
    if len(parted) > 1 or not found:
        return parted, others
    platforms = list(parted) or list(TABLES)
    return {platform: list(found) for platform in platforms}, []


def _graded(lesson: str) -> list[StudentResult]:
    from nbgrader.api import MissingEntry

    try:
        return results(Path.cwd(), lesson, bar=True)[1]
    except MissingEntry:
        return []


def canvas(lesson: str, found: list[StudentResult]) -> str:
    """Canvas's gradebook: a column named after the lesson, made anew if the course has none of that name."""
    rows: list[list] = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", lesson]]
    rows.append(["    Points Possible", "", "", "", "", found[0].out_of])
    for result in found:
        known = result.platform == "canvas"
        rows.append(
            [result.display_name, result.number if known else "", "", "" if known else result.student, "", result.score]
        )
    return as_csv(rows)


def moodle(lesson: str, found: list[StudentResult]) -> str:
    """Moodle's grading worksheet, with the username beside it for the gradebook's own import."""
    head = [
        "Identifier",
        "Full name",
        "Username",
        "Email address",
        "Grade",
        "Maximum Grade",
        "Last modified (grade)",
        "Feedback comments",
    ]
    rows: list[list] = [head]
    for result in found:
        known = result.platform == "moodle"
        told = f"{lesson}: {number(result.score)} of {number(result.out_of)} points"
        identifier = f"Participant {result.number}" if known else ""
        username = "" if known else result.student
        rows.append([identifier, result.display_name, username, result.email, result.score, result.out_of, "-", told])
    return as_csv(rows)


TABLES = {"canvas": canvas, "moodle": moodle}
