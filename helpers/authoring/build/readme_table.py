"""The table of lessons in the README: made from the students' notebooks and the plan, by ``make build``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from helpers.course import ROOT
from helpers.student.lessons import NotebookLesson, lessons

PLACE = re.compile(r"(<!-- lessons: made by make build -->\n).*?(<!-- /lessons -->)", re.DOTALL)


def lessons_table(course: Sequence[NotebookLesson]) -> str:
    """The lessons as a table in Markdown, by part."""
    rows = ["| | lesson | | minutes | exercises |", "|--:|---|---|--:|--:|"]
    for part, group in groupby(course, key=lambda lesson: lesson.part):
        rows.append(f"| | **{part}** | | | |")
        for one in group:
            link = f"[{one.title}](notebooks/{one.name}/{one.name}.ipynb)"
            rows.append(f"| {one.number} | {link} | {one.line} | {one.minutes} | {len(one.exercises)} |")
    hours, count = round(sum(one.minutes for one in course) / 60), sum(len(one.exercises) for one in course)
    return "\n".join(rows) + f"\n\n{len(course)} lessons, {count} exercises, about {hours} hours in all.\n"


def with_table(readme: str, course: Sequence[NotebookLesson]) -> str:
    """The README with the table of these lessons in its place."""
    return PLACE.sub(lambda match: match[1] + lessons_table(course) + match[2], readme)


def write_table(folder: Path = ROOT) -> None:
    """Bring the README's table up to date."""
    path = folder / "README.md"
    path.write_text(with_table(path.read_text(encoding="utf-8"), lessons()), encoding="utf-8")


if __name__ == "__main__":
    write_table()
