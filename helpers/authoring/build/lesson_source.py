"""A lesson as its author wrote it: solutions/NN_topic/NN_topic.py and mistakes.toml."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import jupytext
import nbformat

from helpers.authoring.build.mistakes import BadEdit, Variant, read_mistakes
from helpers.authoring.build.recall import recall_cells
from helpers.checking.run.answers import Answer
from helpers.checking.read.finished_parts import sources_for
from helpers.checking.run.isolation import run_alone
from helpers.checking.read.program_slice import CodeCell, Definition, ProgramSlice, slice_of
from helpers.course import NOTEBOOKS, ROOT, SOLUTIONS
from helpers.data.open_texts import open_text
from helpers.exercises import Exercise, Lesson, load_lesson, open_task
from helpers.notebooks import SETUP, as_released, as_solved, grade_id, sources_of

CARD = (
    "border-left: 4px solid #2b7a9b; padding: 2px 16px; margin: 12px 0; "
    "background: rgba(128, 134, 145, 0.1); border-radius: 6px"
)
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


@dataclass(frozen=True)
class Source:
    """The files of one lesson's source."""

    name: str
    folder: Path

    @property
    def script(self) -> Path:
        """The text that the author edits."""
        return self.folder / f"{self.name}.py"

    @property
    def notebook(self) -> Path:
        """The same, executed."""
        return self.folder / f"{self.name}.ipynb"

    @property
    def further_script(self) -> Path:
        """What else was measured, for the site's page *Measured further*; not every lesson has it."""
        return self.folder / "further" / "further.py"

    @property
    def further(self) -> Path:
        """The same, executed."""
        return self.further_script.with_suffix(".ipynb")

    @property
    def mistakes_file(self) -> Path:
        """What students get wrong, and other variants of the solutions."""
        return self.folder / "mistakes.toml"

    @property
    def rebuild(self) -> str:
        """What to do where something generated is stale."""
        return f"Run `make build LESSON={self.name}`."

    @property
    def lesson(self) -> Lesson:
        """What its exercises ask. An open task is tried on the lesson's own weights, and a part of the manual."""
        lesson = load_lesson(self.name)
        if not lesson.open_task:
            return lesson
        text = open_text("manual")
        weights = open_task.read_weights(self.folder)
        return lesson.on(open_task.material(text.home, text.landmarks(), weights, at_home=True))

    def variants(self, kind: type | tuple[type, ...] = Variant) -> list:
        """What mistakes.toml lists, of this kind. Raises BadEdit where it cannot be read or names no exercise."""
        variants = read_mistakes(self.mistakes_file)
        names = [exercise.name for exercise in self.lesson]
        for variant in variants:
            if variant.exercise not in names:
                raise BadEdit(f"{self.name}/mistakes.toml: {variant.exercise} is no exercise. There are: {names}")
        return [variant for variant in variants if isinstance(variant, kind)]

    def read(self) -> nbformat.NotebookNode:
        """The lesson as a notebook without outputs: its .py, with the questions about earlier lessons put in."""
        notebook = jupytext.read(self.script)
        first = next((place for place, cell in enumerate(notebook.cells, 1) if grade_id(cell) == SETUP), 0)
        notebook.cells[first:first] = recall_cells(self.lesson.recall)
        _style_cards(notebook)
        return _as_built(notebook)

    def read_further(self) -> nbformat.NotebookNode:
        """`further_script` as a notebook without outputs."""
        return _as_built(jupytext.read(self.further_script))

    def cells_as_written(self) -> list[nbformat.NotebookNode]:
        """All cells, read once for as long as the .py is the same: to look at, and not to change."""
        return _cells_as_written(self, self.script.stat().st_mtime_ns)

    def cells(self) -> dict[str, str]:
        """The sources of the cells that have a grade_id, by that id, as solved: what students get is left out."""
        return {name: as_solved(text) for name, text in sources_of(self.read()).items()}

    def given(self) -> dict[str, str]:
        """The solution cells in which students get other lines than the stub, as they get them.

        Raises BadRegion where they cannot be made.
        """
        cells = sources_of(self.read())
        return {name: as_released(text) for name, text in cells.items() if as_solved(text) != text.rstrip()}


def sources(names: list[str] | None = None) -> list[Source]:
    """The lessons of solutions/, in order; only the named ones if names are given.

    Raises SystemExit with the names there are when one is not among them.
    """
    there = sorted(folder.name for folder in SOLUTIONS.glob("[0-9][0-9]_*") if folder.is_dir())
    for name in names or []:
        if name not in there:
            raise SystemExit(f"There is no lesson called {name!r} in solutions/. There is: {', '.join(there)}.")
    return [Source(name, SOLUTIONS / name) for name in (names or there)]


@functools.cache
def _cells_as_written(source: Source, changed: int) -> list[nbformat.NotebookNode]:
    return source.read().cells


def _as_built(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    notebook.metadata = nbformat.NotebookNode(kernelspec=KERNEL, language_info={"name": "python"})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    _name_cells(notebook)
    return notebook


def _style_cards(notebook: nbformat.NotebookNode) -> None:
    """JupyterLab keeps style attributes and loads no style sheet of ours, so cards carry their look with them."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace('<div class="card">', f'<div class="card" style="{CARD}">')


def _name_cells(notebook: nbformat.NotebookNode) -> None:
    """Give each cell an id that changes only when the cell does, so that rebuilt notebooks are the same bytes."""
    ids: set[str] = set()
    for cell in notebook.cells:
        name = grade_id(cell)
        name = name or hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        unique, count = name, 2
        while unique in ids:
            unique, count = f"{name}-{count}", count + 1
        ids.add(unique)
        cell.id = unique


class Answers:
    """What solution cells, and variants of them, answer: each alone, as in an exam (see `checking.run.isolation`).

    The lesson's setup cell and the one solution cell run in a namespace of their own. No other cell is needed, because
    no exercise builds on the student's answer to another; an open task may, and has the definitions that it leans on.
    """

    def __init__(self, source: Source):
        self._source, self._cells = source, source.cells()
        self._compiled: dict[str, CodeType] = {}  # by text: the same is made for many seeds
        self._setup: dict = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(self._cells[SETUP], "<setup>", "exec"), self._setup)

    def text(self, exercise: str, variant: Variant | None = None) -> str:
        """The solution cell's text."""
        cell = self._cells[exercise]
        return variant.apply(cell) if variant else cell

    def answer(
        self, exercise: Exercise, seed: int | str, variant: Variant | None = None, text: str | None = None
    ) -> Answer:
        """What the solution cell answers with the inputs of a seed, or a variant of it, or a cell of this text.

        Raises NothingDefined.
        """
        own = self.text(exercise.name, variant) if text is None else text
        with contextlib.redirect_stdout(io.StringIO()):
            program = ProgramSlice(self._cells[SETUP], self._definitions(exercise.name, own), own)
            return run_alone(exercise, program, sources_for(exercise), seed)[0]

    def make(self, exercise: str, variant: Variant | None = None) -> object:
        """The function or class that the cell defines."""
        return self.made_of(exercise, self.text(exercise, variant))

    def made_of(self, exercise: str, text: str) -> object:
        """The function or class of that name that a cell of this text defines."""
        namespace = dict(self._setup)
        with contextlib.redirect_stdout(io.StringIO()):
            for each in self._definitions(exercise, text):
                exec(self._code(each.text), namespace)
            exec(self._code(text), namespace)
        return namespace[exercise]

    def _definitions(self, name: str, own: str) -> tuple[Definition, ...]:
        """What the cell of an open task leans on in the other cells, as solved; nothing for any other exercise."""
        exercise = load_lesson(self._source.name)[name]
        if not exercise.open_task:
            return ()
        cells = [cell for cell in self._source.cells_as_written() if cell.cell_type == "code"]
        texts = [as_solved(cell.source) for cell in cells if grade_id(cell) not in (SETUP, name)]
        others = [CodeCell("another cell", text) for text in texts]
        return slice_of(name, own, self._cells[SETUP], others, builds_on=exercise.builds_on).definitions

    def _code(self, text: str) -> CodeType:
        if text not in self._compiled:
            self._compiled[text] = compile(text, "<solution>", "exec")
        return self._compiled[text]


__all__ = ["NOTEBOOKS", "ROOT", "SOLUTIONS", "Answers", "Source", "sources"]
