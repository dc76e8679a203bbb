"""From a lesson's source to everything that is generated from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from helpers.authoring.build.card_lines import write_facts
from helpers.authoring.build.lesson_source import NOTEBOOKS, ROOT, Source
from helpers.authoring.build.make_keys import make_key
from helpers.authoring.build.signatures import write_signatures
from helpers.checking.judge.keys import key_as_bytes, shipped_path
from helpers.course import EXPERIMENTS_FOLDER, PROGRESS_FILE, SHIPPED_SEED, write_whole
from helpers.device import on_the_cpu

# The nbgrader command, as `python -c`; imported after helpers it starts in half of the time
NBGRADER = "import helpers, runpy; runpy.run_module('nbgrader', run_name='__main__', alter_sys=True)"
# A kernel on this machine's own loopback need not warn that it is not encrypted
QUIET = ["--IPKernelApp.log_level=ERROR", "--HistoryManager.hist_file=:memory:"]


class BrokenLesson(RuntimeError):
    """A lesson that does not run from top to bottom as solved."""


def build(source: Source, prose_only: bool = False) -> None:
    """Write the exercises' facts into the lesson's text; make its key, its executed and the students' notebook.

    prose_only: no code has changed, so neither the key nor the outputs are made anew (see `with_its_outputs`).
    """
    write_facts(source)
    write_signatures(source)
    if not prose_only:
        build_key(source)
    made = with_its_outputs(source, source.read(), source.notebook) if prose_only else execute(source, source.read())
    nbformat.write(made, source.notebook)
    build_further(source, prose_only)
    release(source, NOTEBOOKS)


def build_further(source: Source, prose_only: bool = False) -> None:
    """Execute what else was measured, in a lesson that has it. prose_only: as `build` takes it."""
    if source.further_script.is_file():
        written = source.read_further()
        made = with_its_outputs(source, written, source.further) if prose_only else execute(source, written)
        nbformat.write(made, source.further)


def build_key(source: Source) -> None:
    """Make the key that students get."""
    write_whole(shipped_path(source.name), key_as_bytes(make_key(source, SHIPPED_SEED), source.lesson))


def execute(source: Source, notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook of the lesson, run from top to bottom as solved, on the CPU, with its outputs.

    In one thread: how many prove fastest, and how they round, is not to show in what is stored.

    Raises BrokenLesson with the cell and its error when a cell fails.
    """
    client = NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=QUIET,
        resources={"metadata": {"path": str(source.folder)}},
    )
    with on_the_cpu(), tempfile.TemporaryDirectory() as scratch:
        try:
            client.execute(env={**os.environ, "OMP_NUM_THREADS": "1", EXPERIMENTS_FOLDER: scratch, PROGRESS_FILE: ""})
        except CellExecutionError as problem:
            raise BrokenLesson(f"{source.name} does not run as solved.\n{problem}") from None
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def with_its_outputs(source: Source, notebook: nbformat.NotebookNode, built: Path) -> nbformat.NotebookNode:
    """A notebook of the lesson as its text is now, with the outputs of its last run, in `built`.

    Raises BrokenLesson where a code cell differs from the one that was run.
    """
    now, ran = (
        [cell for cell in cells if cell.cell_type == "code"]
        for cells in (notebook.cells, nbformat.read(built, as_version=4).cells)
    )
    if [cell.source for cell in now] != [cell.source for cell in ran]:
        raise BrokenLesson(f"The code of {source.name} has changed since it was run. {source.rebuild}")
    for cell, done in zip(now, ran, strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    return notebook


def release(source: Source, folder: Path) -> Path:
    """The students' notebook, made by nbgrader in `folder`/NN_topic. Returns its path.

    Works in a copy: nbgrader reads the source folder whole, and the gradebook is not to be touched here.
    """
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch, "course")
        inside = course / "solutions" / source.name
        inside.mkdir(parents=True)
        shutil.copy(source.notebook, inside)
        shutil.copy(ROOT / "nbgrader_config.py", course)
        command = [sys.executable, "-c", NBGRADER, "generate_assignment", source.name, "--no-db", "--force"]
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))  # a step of it is ours
        environment = {**os.environ, "HOME": scratch, "PYTHONPATH": paths}
        done = subprocess.run(command, cwd=course, capture_output=True, text=True, env=environment)
        released = course / "notebooks" / source.name / f"{source.name}.ipynb"
        if done.returncode or not released.is_file():
            raise BrokenLesson(f"nbgrader could not release {source.name}:\n{done.stderr[-2000:]}")
        target = folder / source.name
        target.mkdir(parents=True, exist_ok=True)
        for stale in target.iterdir():
            stale.unlink() if stale.is_file() else shutil.rmtree(stale)
        for file in released.parent.iterdir():
            shutil.copy(file, target)
    return target / released.name
