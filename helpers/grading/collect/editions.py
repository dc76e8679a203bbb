"""Hand-ins of the course's first edition, in which some lessons were others: known by what they hold, and told so."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nbformat.notebooknode import NotebookNode

from helpers.course import FIRST_EDITION
from helpers.exercises import Lesson, load_lesson
from helpers.notebooks import grade_id

ITS_FIRST_CELL = re.compile(r"^check\s*=\s*start\([\"'](\w+)[\"']\)", re.MULTILINE)


def earlier_names(lesson: str) -> tuple[str, ...]:
    """The lessons of the first edition of which this one holds a part."""
    return tuple(name for name, became in FIRST_EDITION.items() if lesson in became)


def defined_in(notebook: NotebookNode) -> set[str]:
    """The grade ids and ids of its cells, and the names of functions and classes that they define."""
    names = {grade_id(cell) for cell in notebook.cells}
    names |= {cell.get("id") for cell in notebook.cells}
    text = "\n".join(cell.source for cell in notebook.cells)
    return names | set(re.findall(r"^(?:def|class)[ \t]+(\w+)", text, re.MULTILINE))


def first_edition_of(notebook: NotebookNode) -> str:
    """The lesson of the first edition that a notebook is, "" where it is none.

    Its first cell says which lesson it is. Where that cell is gone, a notebook with exercises of several of the lessons
    that one of the first edition has become is that one.
    """
    begun = [match[1] for cell in notebook.cells for match in ITS_FIRST_CELL.finditer(cell.source)]
    if begun:
        return begun[0] if begun[0] in FIRST_EDITION else ""
    names = {grade_id(cell) for cell in notebook.cells}
    for earlier, became in FIRST_EDITION.items():
        if all(any(exercise.name in names for exercise in load_lesson(name)) for name in became):
            return earlier
    return ""


def is_about_the_edition(flag: str) -> bool:
    """Is that what `told` says of some notebook?"""
    return any(flag.startswith(f"this is {name}, a lesson of the course's first edition") for name in FIRST_EDITION)


def told(earlier: str, lesson: Lesson, defined: Iterable[str]) -> str:
    """What to tell the student, and the instructor, about a notebook of the first edition."""
    names, became = set(defined), FIRST_EDITION[earlier]
    lacking = [exercise.name for exercise in lesson if exercise.name not in names]
    lacks = f" It has no {', '.join(lacking)}." if lacking else ""
    return (
        f"this is {earlier}, a lesson of the course's first edition. In this edition it is two, {' and '.join(became)}:"
        f" what it holds of {lesson.name} was graded.{lacks} Take the notebooks of this edition (`make update` brings "
        f"them and keeps the answers), and hand in {' and '.join(f'{name}.ipynb' for name in became)}"
    )
