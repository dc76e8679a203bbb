"""Running submissions, each apart from all others and within its limits.

    with Runner("01_dot_product_attention", seed) as runner:
        executed = runner.execute(restored_notebook)

The work is done by `sandboxed.py`, behind the walls of `sandbox`. Here, in the grader's own process, stands only
what speaks with it: it sends one cell after another and reads back outputs as data, bounded in size and time.
"""

from __future__ import annotations

import atexit
import copy
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked

from helpers.course import LIMITS, SHOWS_ONLY, Limits
from helpers.grading.execute import sandbox
from helpers.grading.execute.check_runs import run_of
from helpers.grading.execute.conversation import DEAD, DONE, FLOODED, LATE, Conversation, Meter
from helpers.grading.execute.outputs import Collector, Room, error
from helpers.grading.execute.sandbox import BUBBLEWRAP, NONE, UNSAFE_LABEL, NoSandbox, SandboxFailed
from helpers.grading.execute.zygote import Zygote, imports_of
from helpers.grading.harmless import plain
from helpers.grading.judging import CheckRun, Why
from helpers.notebooks import exercise_of, grade_id

RESTARTS = 3  # how many times a submission's dead process is replaced
GRACE = 2.0  # seconds that a cell has to stop in after it was interrupted
MOST_FLAGS = 20  # of one notebook

__all__ = ["Executed", "Limits", "NoSandbox", "Runner", "SandboxFailed", "kept_runner"]


@dataclass(frozen=True)
class Executed:
    """A notebook that was run.

    notebook: its check cells' outputs hold answers, not judged yet. flags: what happened, in words for the
    instructor. isolation: what stood between the submission and the machine. runs: by exercise, what its check came to.
    """

    notebook: NotebookNode
    flags: tuple[str, ...]
    isolation: str
    runs: Mapping[str, CheckRun]


class Runner:
    """Runs the submissions of one lesson. A context manager; `execute` may be called from several threads.

    lesson: NN_topic. seed: for whoever names none to `execute`. isolation: "bubblewrap", or "none" where somebody has
    decided to go without. warm: fork each submission from one process that has done the imports, where that can be done
    safely; each gets a process of its own from the start otherwise. The marks are the same. imports: Python text of
    import statements; those of the released lesson's setup cell unless given. begun: such a process that somebody has
    started already, with the same lesson, isolation and limits.

    Raises NoSandbox, on entering, where bubblewrap is wanted and cannot work.
    """

    def __init__(
        self,
        lesson: str,
        seed: str = "",
        *,
        isolation: str = BUBBLEWRAP,
        warm: bool = True,
        limits: Limits = LIMITS,
        imports: str | None = None,
        begun: Zygote | None = None,
    ):
        if isolation not in (BUBBLEWRAP, NONE):
            raise ValueError(f"isolation is {isolation!r}; it can be {BUBBLEWRAP!r} or {NONE!r}")
        self.lesson, self.isolation, self.limits = lesson, isolation, limits
        self._seed, self._warm, self._imports = seed, warm and isolation == BUBBLEWRAP, imports
        self._zygote: Zygote | None = begun
        self._lock = threading.Lock()

    def __enter__(self) -> Runner:
        if self._warm and self._zygote is None and sandbox.is_installed():
            self._zygote = self._new_zygote()  # which takes seconds, and can do so beside the trial of the walls
        if self.isolation == BUBBLEWRAP:
            problem = sandbox.why_not()
            if problem:
                self.__exit__()
                raise NoSandbox(problem)
        return self

    def __exit__(self, *problem) -> None:
        with self._lock:
            zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()

    def execute(self, notebook: NotebookNode, seed: str | None = None) -> Executed:
        """Run a restored notebook. Whatever a submission does is in the outputs and the flags.

        seed: for this submission, where it is not the runner's. Raises SandboxFailed where no code of the
        submission could be run at all.
        """
        return _Execution(self, copy.deepcopy(notebook), self._seed if seed is None else seed).run()

    def _new_zygote(self) -> Zygote:
        if self._imports is None:
            self._imports = imports_of(Path("notebooks", self.lesson, f"{self.lesson}.ipynb"))
        return Zygote(self.lesson, self.isolation, self.limits, self._imports)

    def process(self, seed: str, meter: Meter) -> tuple[Conversation, str]:
        """A fresh process for a submission, and how it came about."""
        if self.isolation == NONE:
            return self._alone(seed, meter), UNSAFE_LABEL
        with self._lock:
            zygote = self._zygote if self._warm else None
            if zygote is not None and not zygote.alive():
                zygote.close()
                zygote = self._zygote = self._new_zygote()
            if zygote is not None and zygote.ready() and not zygote.can_be_shared():
                # Forks could reach one another here (no nested namespaces), or the imports started threads
                self._warm, self._zygote = False, None
                zygote.close()
                zygote = None
            if zygote is not None:
                return Conversation(*zygote.fork(seed), meter), "bubblewrap, warm kernel"
        return self._alone(seed, meter), "bubblewrap, cold kernel"

    def _alone(self, seed: str, meter: Meter) -> Conversation:
        zygote = self._new_zygote()
        return Conversation(*zygote.fork(seed, alone=True), meter, at_end=zygote.close)


_kept: dict[tuple, Runner] = {}
_keeping = threading.Lock()


def kept_runner(lesson: str, isolation: str = BUBBLEWRAP, limits: Limits = LIMITS) -> Runner:
    """A runner that stays until this process ends: for whoever is handed one submission after the other.

    Raises NoSandbox.
    """
    about = (lesson, isolation, limits, Path.cwd())
    with _keeping:
        if about not in _kept:
            _kept[about] = Runner(lesson, isolation=isolation, limits=limits).__enter__()
            atexit.register(_kept[about].__exit__, None, None, None)
        return _kept[about]


class _Execution:
    """One notebook's way through its cells."""

    def __init__(self, runner: Runner, notebook: NotebookNode, seed: str):
        self._runner, self._limits, self._seed = runner, runner.limits, seed
        self.notebook, self.flags = notebook, []
        self._met = False  # has any code run that a student may have written?
        self._dead: set[int] = set()
        self._slow: set[int] = set()
        self._talk: Conversation | None = None
        self._meter, self._room = Meter(), Room.within(runner.limits)
        self._isolation = ""
        self.runs: dict[str, CheckRun] = {}

    def run(self) -> Executed:
        try:
            self._open()
            self._end = time.monotonic() + self._limits.total_seconds
            for place, cell in enumerate(self.notebook.cells):
                if cell.cell_type == "code":
                    cell.outputs, cell.execution_count = [], None
                    if _runs(cell):
                        why = self._run(place, cell)
                        if is_grade(cell):
                            self.runs[exercise_of(cell)] = why or run_of(cell)
        finally:
            if self._talk is not None:
                self._talk.leave()
        flags = self.flags[:MOST_FLAGS]
        if len(self.flags) > MOST_FLAGS:
            flags.append(f"and {len(self.flags) - MOST_FLAGS} more of the kind")
        return Executed(self.notebook, tuple(flags), self._isolation, self.runs)

    def _open(self) -> None:
        self._talk, self._isolation = self._runner.process(self._seed, self._meter)

    def _run(self, place: int, cell: NotebookNode) -> CheckRun | None:
        """Run one cell. Returns why it gave nothing where that is ours to say, and not in its outputs."""
        if len(self._dead) > RESTARTS:
            return _not_run(cell, "the kernel had died too often before")
        if time.monotonic() >= self._end:
            self._say(f"the notebook took longer than {self._limits.total_seconds:g} s; the rest was not run")
            return _not_run(cell, "the notebook had used up its time")
        if self._meter.notebook and (flood := self._meter.over()) and "notebook" in flood:
            self._say(f"{flood}; the rest was not run")
            return _not_run(cell, flood)
        collected = Collector(cell, self._room)
        self._met = self._met or not is_locked(cell)
        state = self._step(place, cell.source, self._limits.cell_seconds, collected)
        self._tell(place, cell, collected)
        if state == LATE:
            self._slow.add(place)
            self._say(f"{_name(cell, place)} took longer than {self._limits.cell_seconds:g} s")
            state = self._stop(place, collected)
        if state in (DEAD, FLOODED):
            return self._replace(place, cell, self._meter.over() if state == FLOODED else "")
        collected.finish()
        if place in self._slow:
            cell.outputs.append(error("CellTimeoutError", ""))
            return None if run_of(cell).sent else CheckRun(why=Why.LATE)
        return None

    def _step(self, place: int, source: str, seconds: float, collect) -> str:
        self._talk.ask(place, source)
        return self._talk.listen(place, min(time.monotonic() + seconds, self._end), collect)

    def _stop(self, place: int, collect) -> str:
        """Interrupt a cell. DONE when it stopped, FLOODED when it sends too much, DEAD when it would not stop."""
        self._talk.interrupt()
        state = self._talk.listen(place, time.monotonic() + GRACE, collect)
        if state == LATE:
            self._say(f"{_name(self.notebook.cells[place], place)} could not be interrupted and was killed")
        return state if state in (DONE, FLOODED) else DEAD

    def _replace(self, place: int, cell: NotebookNode, flood: str) -> CheckRun:
        """Start anew behind a cell that ended its process, or was ended. Returns what the cell came to."""
        why = self._talk.end()
        why = flood or why
        if not self._met or why.startswith("the sandbox failed"):
            raise SandboxFailed(why)
        cell.outputs, came_to = [error("KernelDied", why)], CheckRun(why=Why.DIED, says=why)
        if place in self._slow:
            cell.outputs, came_to = [error("CellTimeoutError", "")], CheckRun(why=Why.LATE)
        else:
            self._say(f"the kernel died in {_name(cell, place)}: {why}")
        self._dead.add(place)
        while len(self._dead) <= RESTARTS and time.monotonic() < self._end:
            self._open()
            died = self._again(place)
            if died is None:
                break
            self._talk.end()
            self._dead.add(died)
        return came_to

    def _again(self, upto: int) -> int | None:
        """Run the cells before this one in a new process. Returns the place of the one that ended it, if one did."""
        for place, cell in enumerate(self.notebook.cells[:upto]):
            if place in self._dead or cell.cell_type != "code" or is_grade(cell) or not _runs(cell):
                continue
            seconds = GRACE if place in self._slow else self._limits.cell_seconds
            state = self._step(place, cell.source, seconds, _ignore)
            if state == LATE:
                state = self._stop(place, _ignore)
            if state in (DEAD, FLOODED):
                return place
        return None

    def _tell(self, place: int, cell: NotebookNode, collected: Collector) -> None:
        name = _name(cell, place)
        if collected.cut and self._room.characters > 0 and self._room.outputs < 0:
            self._say(f"{name} left more than {self._limits.outputs:,} outputs; the rest was left out")
        elif collected.cut:
            self._say(f"output of {name} was cut at {self._limits.output_bytes / 2**20:.3g} MB")
        if collected.too_long:
            self._say(f"{name} sent a message that is longer than any answer, and was not read")
        if collected.broken:
            self._say(f"{name} sent something that is no output")
        for output in cell.outputs:
            if output.output_type == "error" and output.ename != "NotImplementedError":
                self._say(f"{name} stopped with {plain(output.ename, 60)}: {plain(output.evalue, 120)}".rstrip(": "))

    def _say(self, flag: str) -> None:
        if flag not in self.flags:
            self.flags.append(flag)


def _ignore(message: dict) -> None:
    pass


def _runs(cell: NotebookNode) -> bool:
    return bool(cell.source.strip()) and SHOWS_ONLY not in cell.metadata.get("tags", [])


def _name(cell: NotebookNode, place: int) -> str:
    return grade_id(cell) or f"cell {place + 1}"


def _not_run(cell: NotebookNode, why: str) -> CheckRun:
    cell.outputs = [error("NotRun", f"it was not run: {why}")]
    return CheckRun(why=Why.NOT_RUN, says=f"it was not run: {why}")
