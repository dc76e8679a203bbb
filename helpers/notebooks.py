"""What every room needs of a lesson's notebook: the names of its cells, and answers put into them.

A solution cell has the exercise's name as its grade id; the check cell under it has check_ before that name.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping

from nbformat.notebooknode import NotebookNode

CHECK = "check_"
SETUP = "setup"  # the grade id of a lesson's first code cell
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def grade_id(cell: Mapping) -> str:
    """The grade id that nbgrader knows the cell by, "" where it has none. Trusts nothing in the cell."""
    metadata = cell.get("metadata")
    about = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    name = about.get("grade_id") if isinstance(about, Mapping) else None
    return name if isinstance(name, str) else ""


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
    """The text of every cell that has a grade id: of a solution cell, what stands there for its exercise."""
    return {name: cell.source for name, cell in by_grade_id(notebook).items()}


def filled_in(notebook: NotebookNode, answers: Mapping[str, str]) -> NotebookNode:
    """A copy of a released notebook with these texts in its solution cells. answers: text by exercise."""
    filled = copy.deepcopy(notebook)
    for cell in filled.cells:
        cell.source = answers.get(grade_id(cell), cell.source)
    return filled


def without_marks(text: str) -> str:
    """A solution cell as a student would hand it in: without the lines that say where the solution stands."""
    return "\n".join(line for line in text.splitlines() if line.strip() not in (BEGIN, END))


def defines(name: str) -> re.Pattern[str]:
    """Matches a line that defines the function or class of that name at the top of a cell."""
    return re.compile(rf"^(def|class)\s+{re.escape(name)}\b", re.MULTILINE)


def binds(name: str, text: str) -> bool:
    """Does a cell of this text give `name` a meaning at its top: by def, class, an assignment or an import?"""
    try:
        lines = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a magic of IPython's is no Python
        return bool(defines(name).search(text))
    return any(name in _bound(line) for line in lines)


def _bound(line: ast.stmt) -> set[str]:
    if isinstance(line, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {line.name}
    if isinstance(line, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in line.names}
    stored = (node for node in ast.walk(line) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {node.id for node in stored}
