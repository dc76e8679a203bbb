"""What grading a class takes, beside nbgrader's own autograde: time, processor time, memory.

    python -m helpers.benchmarks grading-speed [NN_topic] [--submissions 40] [--nbgrader 40]

Two courses of the same class are made in a temporary folder. One is graded by ``python -m helpers.grading grade``, the
other by nbgrader as it is by itself: it runs every notebook whole, in a kernel, without a sandbox. What is measured is
the whole command, Python's start included.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from nbformat.notebooknode import NotebookNode

from helpers.authoring.build.lesson_source import ROOT, Answers, Source, sources
from helpers.authoring.build.mistakes import Accepted, Mistake
from helpers.authoring.demo_class import by_exercise
from helpers.grading.gradebook import GradebookSession
from helpers.notebooks import filled_in

SAMPLE = 1.0  # seconds between two looks at the memory, which take a tenth of a second themselves


@dataclass(frozen=True)
class Measured:
    """What grading a class took."""

    seconds: float
    """Wall time."""
    processor: float
    """Seconds of all cores."""
    memory: int
    """Bytes, the peak of all processes together."""


def class_of(source: Source, count: int) -> Iterator[tuple[str, NotebookNode]]:
    """Students by name and what they hand in: right, right in other ways, mistaken, half done, empty."""
    answers, lesson = Answers(source), source.lesson
    released = nbformat.read(ROOT / "notebooks" / source.name / f"{source.name}.ipynb", as_version=4)
    cells = source.cells()
    right = {exercise.name: cells[exercise.name] for exercise in lesson}
    mistaken, accepted = by_exercise(source, Mistake), by_exercise(source, Accepted)
    for number in range(count):
        kind = ("right", "mistaken", "mistaken", "half", "same", "mistaken", "right", "empty")[number % 8]
        texts = dict(right)
        if kind in ("mistaken", "same"):
            found = mistaken if kind == "mistaken" else accepted
            texts |= {n: answers.text(n, of[number % len(of)]) for n, of in found.items() if of}
        elif kind == "half":
            texts = dict(itertools.islice(right.items(), 1 + number % len(right)))
        elif kind == "empty":
            texts = {}
        yield f"{kind}-{number:02}", filled_in(released, texts)


def make_course(folder: Path, source: Source, count: int) -> None:
    """A course's folder with a class in it, an exam key, and nothing graded."""
    folder.mkdir()
    for name in ("solutions", "notebooks"):
        shutil.copytree(ROOT / name / source.name, folder / name / source.name)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    for student, notebook in class_of(source, count):
        path = folder / "submitted" / student / source.name / f"{source.name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(nbformat.writes(notebook), encoding="utf-8")
    _run(folder, "nbgrader", "generate_assignment", source.name, "--force")
    _run(folder, "helpers.authoring", "exam-key", source.name, "--seeds", "1")


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_PREFER_ENV_PATH": "1"}


def _run(folder: Path, *words: str) -> None:
    done = subprocess.run(_command(*words), cwd=folder, env=_environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr[-3000:]}")


def measure(folder: Path, *words: str) -> Measured:
    """Grade with this command, and look on."""
    begun, before = time.monotonic(), _processor()
    process = subprocess.Popen(
        _command(*words), cwd=folder, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    watcher = _Watcher(process.pid)
    watcher.start()
    _, said = process.communicate()
    seconds, processor = time.monotonic() - begun, _processor() - before
    watcher.over.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{said[-3000:]}")
    return Measured(seconds, max(processor, watcher.processor), watcher.memory)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Watcher(threading.Thread):
    """Adds up, now and then, what a process and all that descend from it use.

    The kernel's own account, which `_processor` reads, leaves out what a sandbox's first process did not wait
    for; this one leaves out what ended since the last look. The larger of the two is nearer the truth.
    """

    def __init__(self, process: int):
        super().__init__(daemon=True)
        self.process, self.over = process, threading.Event()
        self.memory, self.processor = 0, 0.0

    def run(self) -> None:
        while not self.over.wait(SAMPLE):
            family = _family(self.process)
            self.memory = max(self.memory, sum(map(_memory, family)))
            self.processor = max(self.processor, sum(map(_seconds, family)))


def _family(process: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(process)
        return [parent, *parent.children(recursive=True)]
    return []


def _seconds(process: psutil.Process) -> float:
    """Processor time of a process and of those of its children that it has waited for."""
    with contextlib.suppress(psutil.Error):
        return sum(process.cpu_times()[:4])
    return 0.0


def _memory(process: psutil.Process) -> int:
    """Bytes of memory, with what n processes share counted as 1/n."""
    with contextlib.suppress(psutil.Error):
        return process.memory_full_info().pss
    return 0


# nbgrader by itself: its own steps, its own kernels, and the folders of this course
PLAIN = """
c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
"""


def bench(lesson: str, count: int = 40, theirs: int | None = None) -> int:
    """Grade a class both ways, print what that took, and return 0 where everybody has a mark of ours.

    theirs: how many of the class nbgrader grades; 0 leaves it out.
    """
    (source,) = sources([lesson])
    theirs = count if theirs is None else theirs
    with tempfile.TemporaryDirectory() as scratch:
        load = os.getloadavg()[0]
        machine = f"{os.cpu_count()} cores, {platform.machine()}, load before {load:.1f}"
        print(f"{count} submissions of {lesson}, {theirs} of them for nbgrader; {machine}", flush=True)
        plain = None
        if theirs:
            make_course(folder := Path(scratch, "nbgrader"), source, theirs)
            (folder / "nbgrader_config.py").write_text(PLAIN, encoding="utf-8")
            plain = measure(folder, "nbgrader", "autograde", lesson)
        make_course(folder := Path(scratch, "ours"), source, count)
        ours = measure(folder, "helpers.grading", "grade", lesson, "--no-bar")
        with GradebookSession(folder, lesson) as marks:
            scores = marks.scores().values()
    _report(ours, count, plain, theirs)
    marked = sum(all(cell.automatic is not None for cell in cells.values()) for cells in scores if cells)
    print(f"\n{marked} of {count} have a mark.")
    return 0 if marked == count else 1


def _report(ours: Measured, count: int, plain: Measured | None, theirs: int) -> None:
    each = {"wall time, s": "seconds", "processor time, s": "processor"}
    print(f"\n{'per submission':24}{'make grade':>12}{'nbgrader':>12}{'ratio':>8}")
    for name, field in each.items():
        mine = getattr(ours, field) / count
        beside = getattr(plain, field) / theirs if plain else None
        print(f"{name:24}{mine:>12.3f}" + (f"{beside:>12.2f}{beside / mine:>8.1f}" if beside else ""))
    print(f"{'in all, s':24}{ours.seconds:>12.1f}" + (f"{plain.seconds:>12.1f}" if plain else ""))
    print(f"{'peak memory, GB':24}{ours.memory / 1e9:>12.2f}" + (f"{plain.memory / 1e9:>12.2f}" if plain else ""))
