"""An exercise as it was given: its cell brought back into the student's notebook, the answer kept aside."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator, Mapping
from datetime import datetime

from helpers.course import NOTEBOOKS, ROOT, write_whole
from helpers.notebooks import check_id, grade_id
from helpers.student.lessons import NotFound, find, path_of, read, text_of
from helpers.update import BACKUPS, RELEASE, read_notebook, write_notebook

NO_STUB = (
    "This copy does not know how {} was given: it is no release that keeps it, and no git checkout. Fetch the lesson"
    " again; your notebook was not changed."
)


def bring_back(exercise: str, lesson: str = "") -> list[str]:
    """Put an exercise's cell back to what it was when the lesson was given; returns what to tell the student.

    The answer that stood there is kept in backups/. Raises NotFound with a sentence where there is no such exercise,
    where the notebook cannot be read, or where the copy does not know the cell; the notebook is then as it was.
    """
    lesson, exercise = find(exercise, lesson)
    path = path_of(lesson)
    notebook, given = read(path), given_cell(lesson, exercise)
    if notebook is None:
        raise NotFound(f"{path.relative_to(ROOT)} cannot be read as a notebook.")
    if given is None:
        raise NotFound(NO_STUB.format(exercise))
    says, place = [], _place(notebook, exercise)
    if place is None:
        check = next(k for k, cell in enumerate(notebook["cells"]) if grade_id(cell) == check_id(exercise))
        notebook["cells"].insert(check, given)
        says.append(f"The cell of {exercise} was gone. It stands above its check again.")
    else:
        cell = notebook["cells"][place]
        answer = text_of(cell)
        if answer == text_of(given):
            return [f"{exercise} is as it was given."]
        says.append(f"{exercise} is as it was given. Your answer: {_kept_aside(lesson, exercise, answer)}")
        notebook["cells"][place] = {**cell, "source": given["source"], "outputs": [], "execution_count": None}
    write_whole(path, write_notebook(notebook))
    return [*says, "Where the notebook is open: File, Reload Notebook from Disk; do not save it before."]


def given_cell(lesson: str, exercise: str) -> dict | None:
    """The cell of an exercise as it was released; None where this copy does not know it."""
    return next(_given_cells(lesson, exercise), None)


def _given_cells(lesson: str, exercise: str) -> Iterator[dict]:
    """From the release's own record, then from what git keeps; newest first."""
    name = path_of(lesson).relative_to(ROOT).as_posix()
    try:
        stubs = json.loads((ROOT / RELEASE).read_text(encoding="utf-8"))["stubs"]
        yield copy.deepcopy(stubs[name][exercise])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    for data in _versions(name):
        cells = (read_notebook(data) or {"cells": []})["cells"]
        yield from (cell for cell in cells if grade_id(cell) == exercise and _is_as_released(cell))


def _versions(name: str) -> Iterator[bytes]:
    """A file as git has it, the newest commit first. A student may have committed an answer."""
    try:
        commits = _git("log", "--format=%H", "--", name).decode().split()
        yield from (_git("show", f"{commit}:{name}") for commit in commits)
    except (OSError, subprocess.CalledProcessError):
        return


def _git(*command: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, check=True).stdout


def _is_as_released(cell: Mapping) -> bool:
    """nbgrader writes a cell's checksum into a release: an answer in its place has another."""
    import nbformat
    from nbgrader.utils import compute_checksum

    about = nbformat.from_dict({**cell, "source": text_of(cell)})
    return about.metadata.nbgrader.get("checksum") == compute_checksum(about)


def _place(notebook: Mapping, exercise: str) -> int | None:
    return next((k for k, cell in enumerate(notebook["cells"]) if grade_id(cell) == exercise), None)


def _kept_aside(lesson: str, exercise: str, answer: str) -> str:
    """Write an answer to a file of its own that was not there before; returns its name in the course's folder."""
    folder, moment = NOTEBOOKS.parent / BACKUPS / "answers" / lesson, f"{datetime.now():%Y-%m-%d-%H%M%S}"
    path, count = folder / f"{exercise}.{moment}.py", 2
    while path.exists():
        path, count = folder / f"{exercise}.{moment}-{count}.py", count + 1
    write_whole(path, answer + "\n")
    return path.relative_to(ROOT).as_posix()


def stubs_of(notebook: Mapping) -> dict[str, dict]:
    """The solution cells of a released notebook, by exercise: what a release keeps of them."""
    cells = (cell for cell in notebook["cells"] if (cell.get("metadata") or {}).get("nbgrader", {}).get("solution"))
    return {grade_id(cell): {**cell, "source": _lines(cell)} for cell in cells}


def _lines(cell: Mapping) -> list[str]:
    return text_of(cell).splitlines(keepends=True)
