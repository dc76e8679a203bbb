"""A student's notebook run from the top, and what each check says as text: to read in a terminal, or to send."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from helpers.course import NOTEBOOKS, PROGRESS_FILE, ROOT, SHOWS_ONLY
from helpers.desk.lessons import NotFound, lesson_named, path_of
from helpers.notebooks import CHECK, grade_id

SECONDS = 600  # that one cell may take


def panels(lesson: str) -> Iterator[str]:
    """What each check of a lesson says, one after the other, while the notebook runs.

    lesson: a lesson's name or number, or the path of a notebook. Cells that only show are left out. The notebook's file
    is not changed, and the points on the start page stay as they are. Raises NotFound where there is no such notebook.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    path = _notebook(lesson)
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError) as problem:
        raise NotFound(f"{path} cannot be read as a notebook: {problem}") from None
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # the kernel of this environment, not a user's of that name
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    with client.setup_kernel(env=_environment()):
        for place, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or SHOWS_ONLY in cell.metadata.get("tags", []):
                continue
            problem = None
            try:
                client.execute_cell(cell, place)
            except CellExecutionError as error:
                problem = error
            if grade_id(cell).startswith(CHECK):
                yield _said(cell)
            elif problem is not None and problem.ename != "NotImplementedError":
                yield f"A cell failed: {_first_line(cell.source)}\n  {problem.ename}: {problem.evalue}"


def _notebook(lesson: str) -> Path:
    named = lesson_named(lesson)
    path = path_of(named) if named else Path(lesson)
    if not path.is_file():
        names = ", ".join(folder.name for folder in sorted(NOTEBOOKS.glob("[0-9][0-9]_*")))
        raise NotFound(f"There is no lesson and no notebook {lesson}. The lessons: {names}.")
    return path


def _environment() -> dict[str, str]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": paths, PROGRESS_FILE: ""}


def _said(cell: Mapping) -> str:
    texts = [output.data["text/plain"] for output in cell.outputs if "text/plain" in output.get("data", {})]
    if texts:
        return "\n".join(texts)
    errors = [f"{output.ename}: {output.evalue}" for output in cell.outputs if output.output_type == "error"]
    printed = [output.text.strip() for output in cell.outputs if output.output_type == "stream"]
    return f"{grade_id(cell).removeprefix(CHECK)}: " + ("; ".join(errors + printed) or "the check said nothing")


def _first_line(source: str) -> str:
    return next((line.strip() for line in source.splitlines() if line.strip()), "")
