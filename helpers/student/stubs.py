"""An exercise as it was given: its cell restored in the student's notebook, and the answer kept."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from datetime import date

from helpers.course import NOTEBOOKS, ROOT
from helpers.merge import read_notebook, write_notebook
from helpers.notebooks import check_id, grade_id, text_of
from helpers.student.lessons import NotFound, find, path_of, read
from helpers.trust import rewrite
from helpers.update import BACKUPS, RELEASE, release_record, set_aside

NO_STUB = (
    "This copy does not know how {} was given: it is neither a release nor a git checkout. Download the lesson again;"
    " your notebook was not changed."
)


def bring_back(exercise: str, lesson: str = "") -> list[str]:
    """Put an exercise's cell back to what it was when the lesson was given; returns what to tell the student.

    The answer in it is kept in backups/. Raises NotFound with a sentence where there is no such exercise, where the
    notebook cannot be read, or where the copy does not know the cell; the notebook is then unchanged.
    """
    lesson, exercise = find(exercise, lesson)
    path = path_of(lesson)
    notebook, released = read(path), next(_given_cells(lesson, exercise), None)
    if notebook is None:
        raise NotFound(f"{path.relative_to(ROOT)} cannot be read as a notebook.")
    if released is None:
        raise NotFound(NO_STUB.format(exercise))
    places = {grade_id(cell): place for place, cell in reversed(list(enumerate(notebook["cells"])))}
    if exercise not in places:
        notebook["cells"].insert(places[check_id(exercise)], released)
        message = f"The cell of {exercise} was gone. It is above its check again."
    else:
        cell = notebook["cells"][places[exercise]]
        if text_of(cell) == text_of(released):
            return [f"{exercise} is as it was given."]
        aside = NOTEBOOKS.parent / BACKUPS / "answers" / lesson / f"{exercise}.{date.today()}.py"
        backup = set_aside(aside, f"{text_of(cell)}\n".encode("utf-8", "replace"))
        message = f"{exercise} is as it was given. Your answer: {backup.relative_to(ROOT).as_posix()}"
        cell |= {"source": released["source"], "outputs": [], "execution_count": None}
    rewrite(path, write_notebook(notebook))
    return [message, "Where the notebook is open: File, Reload Notebook from Disk; do not save it before."]


def _given_cells(lesson: str, exercise: str) -> Iterator[dict]:
    """The cell of an exercise as it was released: from the release's own record, then from git, newest first."""
    path = path_of(lesson)
    name, record = path.relative_to(ROOT).as_posix(), ROOT / RELEASE
    released = release_record(record.read_bytes()) if record.is_file() else {}
    notebooks = [released["notebooks"][name]] if name in released.get("notebooks", {}) else []
    yield from (cell for notebook in notebooks for cell in notebook["cells"] if grade_id(cell) == exercise)
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
    """nbgrader writes a cell's checksum into a release: a cell with an answer has another."""
    import nbformat
    from nbgrader.utils import compute_checksum

    node = nbformat.from_dict({**cell, "source": text_of(cell)})
    return node.metadata.nbgrader.get("checksum") == compute_checksum(node)
