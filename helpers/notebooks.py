"""What every room needs of a lesson's notebook: the names of its cells, and answers put into them.

A solution cell has the exercise's name as its grade id; the check cell under it has check_ before that name. What the
student gets in place of a solution is the stub, or the commented lines after STUDENT GETS:

    ### BEGIN SOLUTION
    return weights @ v
    ### STUDENT GETS
    # return weights @ q
    ### END SOLUTION
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # nbformat takes two seconds to import, and a lesson's first cell needs none of it
    from nbformat.notebooknode import NotebookNode

CHECK = "check_"
SETUP = "setup"  # the grade id of a lesson's first code cell
BEGIN, GETS, END = "### BEGIN SOLUTION", "### STUDENT GETS", "### END SOLUTION"
_LIKE_GETS = re.compile(r"#+\s*STUDENT\s+GETS\b", re.IGNORECASE)


class BadRegion(ValueError):
    """A solution region whose STUDENT GETS cannot be followed. The text says what is wrong, and where."""


def nbgrader_data(cell: Mapping) -> Mapping:
    """What nbgrader's metadata say of a cell; {} where there are none. Trusts nothing in the cell."""
    metadata = cell.get("metadata")
    data = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def grade_id(cell: Mapping) -> str:
    """The grade id that nbgrader knows the cell by, "" where it has none. Trusts nothing in the cell."""
    name = nbgrader_data(cell).get("grade_id")
    return name if isinstance(name, str) else ""


def text_of(cell: Mapping) -> str:
    """A cell's text, which a notebook's file holds as a text or as lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(map(str, source))


def check_id(exercise: str) -> str:
    """The grade id of the check cell of an exercise."""
    return f"{CHECK}{exercise}"


def exercise_of(cell: Mapping) -> str:
    """The exercise that a check cell checks; a cell's own grade id where it is no check cell."""
    return grade_id(cell).removeprefix(CHECK)


def by_grade_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that have a grade id, by it."""
    return {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}


def sources_of(notebook: NotebookNode) -> dict[str, str]:
    """The text of every cell that has a grade id: for a solution cell, its exercise's answer."""
    return {name: cell.source for name, cell in by_grade_id(notebook).items()}


def filled_in(notebook: NotebookNode, answers: Mapping[str, str]) -> NotebookNode:
    """A copy of a released notebook with these texts in its solution cells. answers: text by exercise."""
    filled = copy.deepcopy(notebook)
    for cell in filled.cells:
        cell.source = answers.get(grade_id(cell), cell.source)
    return filled


def without_marks(text: str) -> str:
    """A solution cell as a student would hand it in: without the lines that mark the solution."""
    return "\n".join(line for line in as_solved(text).splitlines() if line.strip() not in (BEGIN, END))


def as_solved(text: str) -> str:
    """A lesson's cell with its solution alone: what the student gets instead is left out, the other marks stay."""
    lines, leaving = [], False
    for line in text.splitlines():
        leaving = (leaving or line.strip() == GETS) and line.strip() not in (BEGIN, END)
        if not leaving:
            lines.append(line)
    return "\n".join(lines)


def as_released(text: str) -> str:
    """A lesson's cell with what the student gets where it says so; regions that say nothing stay as they are.

    Raises BadRegion where the mark is outside of a region, or is followed by lines that are not comments.
    """
    lines: list[str] = []
    region: list[str] | None = None  # its lines so far
    given: list[str] | None = None  # those that the student gets
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.strip()
        if mark == BEGIN:
            region, given = [line], None
        elif mark == END and region is not None:
            if given is not None and not any(map(str.strip, given)):
                raise BadRegion(f"line {number}: {GETS} is followed by no lines. Write them as comments: # x = ...")
            lines += [*region, line] if given is None else given
            region = None
        elif _LIKE_GETS.match(mark):
            if mark != GETS:
                raise BadRegion(f"line {number} says {mark!r}; write exactly {GETS!r}")
            if region is None:
                raise BadRegion(f"line {number}: {GETS} is outside of a solution. It goes before {END}")
            if given is not None:
                raise BadRegion(f"line {number}: {GETS} occurs twice in one solution")
            given = []
        elif region is None:
            lines.append(line)
        elif given is None:
            region.append(line)
        elif mark and not mark.startswith("#"):
            raise BadRegion(f"line {number}: what follows {GETS} is written as comments, and this line is not: {mark}")
        else:
            given.append(re.sub(r"^(\s*)#[ ]?", r"\1", line).rstrip())
    if region is not None and given is not None:
        raise BadRegion(f"the solution that holds {GETS} has no {END}")
    return "\n".join([*lines, *(region or [])])


def defines(name: str) -> re.Pattern[str]:
    """Matches a line that gives this name a meaning at the top of a cell: a function, a class, or a value."""
    name = re.escape(name)
    return re.compile(rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|^{name}[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
