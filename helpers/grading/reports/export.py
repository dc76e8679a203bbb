"""Marks in the formats that others read: nbgrader's own table, Canvas's gradebook, Moodle's grading worksheet.

Canvas matches students by ID, SIS User ID or SIS Login ID, and a second line holds the points possible. Moodle's
worksheet (assignment, "Upload grading worksheet") needs the columns Identifier, Grade and Last modified (grade); in the
gradebook's own import the username can be mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nbgrader.plugins import CsvExportPlugin

from helpers.course import write_whole
from helpers.exercises.exercise import lesson_names
from helpers.grading.csv_tables import as_csv
from helpers.grading.gradebook import GradebookSession
from helpers.grading.reports.results import StudentResult, results
from helpers.text import number, plain

FOLDER = "export"


def write_exports(root: Path, lesson: str | None = None) -> None:
    """Write export/nbgrader.csv for all lessons, and LESSON.canvas.csv and LESSON.moodle.csv for each graded one."""
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    with GradebookSession(root, "") as marks:
        CsvExportPlugin(to=str(folder / "nbgrader.csv")).export(marks.gradebook)
    written = [folder / "nbgrader.csv"]
    # The plugin quotes nothing: whatever stands between two commas is a cell, and may be a formula
    write_whole(written[0], as_csv(line.split(",") for line in written[0].read_text().rstrip("\n").split("\n")))
    for name in [lesson] if lesson else lesson_names():
        groups, others = by_platform(results(root, name, bar=True)[1])
        for platform, table in TABLES.items():
            path = folder / f"{name}.{platform}.csv"
            if platform in groups:
                write_whole(path, table(name, groups[platform]))
                written.append(path)
            else:  # an earlier export's, with students who do not belong there
                path.unlink(missing_ok=True)
        if others:
            students = ", ".join(plain(result.student.id, 60) for result in others)
            print(f"{name}: no platform is known of {students}. Their marks are in {FOLDER}/nbgrader.csv only")
    print("Wrote " + ", ".join(str(path.relative_to(root)) for path in written))


def by_platform(graded: Sequence[StudentResult]) -> tuple[dict[str, list[StudentResult]], list[StudentResult]]:
    """Each platform's own students, and those who are in no platform's file.

    Students known only by the name of a folder are added to the others, if these are of one platform. If no platform is
    known of anybody, the class may be of either.
    """
    groups = {platform: [result for result in graded if result.student.platform == platform] for platform in TABLES}
    groups = {platform: group for platform, group in groups.items() if group}
    if len(groups) > 1 or not graded:
        return groups, [result for result in graded if result.student.platform not in TABLES]
    return {platform: list(graded) for platform in groups or TABLES}, []


def canvas(lesson: str, graded: list[StudentResult]) -> str:
    """Canvas's gradebook: a column named after the lesson, created if the course has none of that name."""
    rows: list[list] = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", lesson]]
    rows.append(["    Points Possible", "", "", "", "", graded[0].out_of])
    for result in graded:
        student = result.student
        ids = (student.number, "", "") if student.platform == "canvas" else ("", "", student.id)
        rows.append([student.shown, *ids, "", result.score])
    return as_csv(rows)


def moodle(lesson: str, graded: list[StudentResult]) -> str:
    """Moodle's grading worksheet, with the username beside it for the gradebook's own import."""
    head = "Identifier,Full name,Username,Email address,Grade,Maximum Grade,Last modified (grade),Feedback comments"
    rows: list[list] = [head.split(",")]
    for result in graded:
        student = result.student
        known = student.platform == "moodle"
        identifier, username = (f"Participant {student.number}", "") if known else ("", student.id)
        comment = f"{lesson}: {number(result.score)} of {number(result.out_of)} points"
        rows.append([identifier, student.shown, username, student.email, result.score, result.out_of, "-", comment])
    return as_csv(rows)


TABLES = {"canvas": canvas, "moodle": moodle}
