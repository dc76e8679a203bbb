"""Running submissions: each exercise's answer alone, apart from all others and within its limits.

The work is done by `inside`, behind the walls of `sandbox`. Here, in the grader's own process, stands only what
speaks with it: it asks for one answer after another and reads back data, bounded in size and time.
"""

from __future__ import annotations

import base64
import marshal
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache

from helpers.checking.read.cell_scan import CellScan, SubmissionScan
from helpers.checking.read.finished_parts import sources_for
from helpers.checking.read.program_slice import CodeCell, ProgramSlice
from helpers.course import LIMITS, SHIPPED_SEED, Limits
from helpers.exercises import Exercise, load_lesson
from helpers.exercises.open_task import Material
from helpers.grading.judging import ExerciseRun
from helpers.grading.sandbox import another_user, bubblewrap
from helpers.grading.sandbox.another_user import ANOTHER_USER
from helpers.grading.sandbox.bubblewrap import BUBBLEWRAP, NONE, UNSAFE_LABEL, NoSandbox, SandboxFailed
from helpers.grading.sandbox.fork_server import ForkServer
from helpers.grading.sandbox.protocol import DONE, EARLY, FLOODED, LATE, Conversation, Reply
from helpers.text import plain

Unexplained = Callable[[str, object], list[str]]  # by exercise and what it sent: names

RESTARTS = 3  # how many times a submission's dead processes are replaced
READING_SECONDS = 10.0


@dataclass(frozen=True)
class ExecutionRequest:
    """What is run of a submission."""

    lesson: str
    cells: tuple[CodeCell, ...]
    """Its code cells in the released shape, but for the setup cell."""
    released: Mapping[str, str]
    """The solution cells as students get them, by exercise."""
    setup: str
    """The released setup cell."""
    material: Material | None = None
    """What an open task is tried on, without what answers it."""


@dataclass(frozen=True)
class ExecutionResult:
    """What came of a submission."""

    runs: Mapping[str, ExerciseRun]
    read: SubmissionScan
    """What its text shows."""
    flags: tuple[str, ...] = ()
    """What happened, in words for the instructor."""
    isolation: str = ""
    """What stood between the submission and the machine."""


class Runner:
    """Runs the submissions of one lesson. A context manager; `execute` may be called from several threads.

    lesson: NN_topic. isolation: "bubblewrap"; "another user" in a container that is root's; or "none" where somebody
    has decided to go without. Submissions are forked from one process that has done the imports, where that can be done
    safely; each gets a process of its own from the start otherwise. The marks are the same. begun: such a process that
    somebody has started already, with the same lesson, isolation and limits.

    Raises NoSandbox, on entering, where bubblewrap or another user is wanted and cannot work.
    """

    def __init__(
        self, lesson: str, isolation: str = BUBBLEWRAP, limits: Limits = LIMITS, begun: ForkServer | None = None
    ):
        self.lesson, self.isolation, self.limits = lesson, isolation, _with_time_for(lesson, limits)
        self._warm = isolation == BUBBLEWRAP
        self._server: ForkServer | None = begun
        self._talks: weakref.WeakSet[Conversation] = weakref.WeakSet()
        self._lock, self._closed = threading.Lock(), False

    def __enter__(self) -> Runner:
        if self._warm and self._server is None and bubblewrap.is_installed():
            self._server = self._new_server()  # which takes seconds, and can do so beside the trial of the walls
        reasons = {BUBBLEWRAP: bubblewrap.why_not, ANOTHER_USER: another_user.why_not}
        if self.isolation in reasons and (problem := reasons[self.isolation]()):
            self.__exit__()
            raise NoSandbox(problem)
        return self

    def __exit__(self, *problem) -> None:
        """End whatever runs, in any thread."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        with self._lock:
            for talk in self._talks:
                talk.stop()

    def execute(
        self,
        work: ExecutionRequest,
        seed: str,
        only: Collection[str] | None = None,
        unexplained: Unexplained | None = None,
    ) -> ExecutionResult:
        """Read a submission, and run its answers with the inputs of a seed.

        only: these exercises; all without it. unexplained: names the aspects of what an exercise sent, as unchecked
        JSON, that run once more, on the shipped key's inputs. Without it, all aspects do.

        What a submission does is in the runs and the flags. Raises SandboxFailed where none of it could be run.
        """
        return _Execution(self, work, seed, only, unexplained).run()

    def everywhere(self, work: ExecutionRequest, seed: str) -> list[ExecutionResult]:
        """Run a submission on each machine: here, on this one."""
        return [self.execute(work, seed, unexplained=lambda exercise, sent: [])]

    def _new_server(self) -> ForkServer:
        if self._closed:
            raise SandboxFailed("grading was stopped")
        return ForkServer(self.lesson, self.isolation, self.limits)

    def process(self, processor_seconds: float) -> tuple[Conversation, str]:
        """Fresh processes for a submission, and how they came about."""
        talk, how = self._forked(processor_seconds)
        with self._lock:
            self._talks.add(talk)
        if self._closed:
            talk.stop()
        return talk, how

    def _forked(self, processor_seconds: float) -> tuple[Conversation, str]:
        if self.isolation == NONE:
            return self._alone(processor_seconds), UNSAFE_LABEL
        if self.isolation == ANOTHER_USER:
            return self._alone(processor_seconds), another_user.LABEL
        with self._lock:
            server = self._server if self._warm else None
            if server is not None and not server.alive():
                server.close()
                server = self._server = self._new_server()
            if server is not None and not server.ready().get("can_be_shared", True):
                self._warm, self._server = False, None
                server.close()
                server = None
            if server is not None:
                return Conversation(*server.fork(processor_seconds)), "bubblewrap, warm"
        return self._alone(processor_seconds), "bubblewrap, cold"

    def _alone(self, processor_seconds: float) -> Conversation:
        server = self._new_server()
        return Conversation(*server.fork(processor_seconds), at_end=server.close)


@dataclass
class _Execution:
    """One submission's way through its exercises."""

    runner: Runner
    work: ExecutionRequest
    seed: str
    only: Collection[str] | None
    unexplained: Unexplained | None
    flags: list[str] = field(default_factory=list)
    runs: dict[str, ExerciseRun] = field(default_factory=dict)
    _scan: SubmissionScan = field(init=False)
    _talk: Conversation = field(init=False)
    _isolation: str = ""
    _restarts: int = 0
    _used: float = 0.0  # seconds of processor time of the processes that have ended
    _over: str = ""  # why nothing more is run

    def run(self) -> ExecutionResult:
        self._open()
        try:
            self._end = time.monotonic() + self.runner.limits.total_seconds  # the first one waits for the imports
            self._scan = self._reading()
            for exercise in load_lesson(self.work.lesson):
                if self.only is None or exercise.name in self.only:
                    self.runs[exercise.name] = self._answer(exercise)
        finally:
            self._talk.leave()
        return ExecutionResult(self.runs, self._scan, tuple(dict.fromkeys(self.flags)), self._isolation)

    def _open(self) -> None:
        left = self.runner.limits.processor_seconds - self._used
        self._talk, self._isolation = self.runner.process(max(1.0, left))

    def _reading(self) -> SubmissionScan:
        """What the text shows. Where it cannot be read as a whole, each solution cell by itself."""
        whole = self._read(self.work.cells)
        if whole:
            return whole
        self.flags.append("the notebook could not be read as a whole, so that each solution cell was read by itself")
        programs, scans = {}, {}
        for exercise in load_lesson(self.work.lesson):
            name = exercise.name
            own = tuple(cell for cell in self.work.cells if cell.name == name)
            if alone := self._read(own):
                programs[name], scans[name] = alone.slices[name], alone.scans[name]
            else:
                source, why = "".join(cell.source for cell in own), "reading it took too long, or ended the process"
                programs[name] = ProgramSlice(self.work.setup, (), source, refused=why)
                scans[name] = CellScan(refused=why)
        return SubmissionScan(programs, scans)

    def _read(self, cells: tuple[CodeCell, ...]) -> SubmissionScan | None:
        """What these cells show; None where reading them took too long, or ended the process."""
        if self._over:
            return None
        request = {
            "task": "read",
            "lesson": self.work.lesson,
            "cells": [asdict(cell) for cell in cells],
            "released": dict(self.work.released),
            "setup": self.work.setup,
        }
        reply = self._talk.read(request, time.monotonic() + READING_SECONDS)
        if not self._talk.alive:
            self._replace()
        if reply.state != DONE:
            return None
        if "read" not in reply.message:
            raise SandboxFailed(f"the submission could not be read: {reply.message.get('broken', '')}")
        return SubmissionScan.from_json(reply.message["read"])

    def _answer(self, exercise: Exercise) -> ExerciseRun:
        """One exercise's answer. A stub is not run."""
        if self._scan.scans[exercise.name].stub:
            return ExerciseRun(absent=True)
        if self._over or time.monotonic() >= self._end:
            over = self._over or f"the submission took longer than {self.runner.limits.total_seconds:g} s"
            self.flags.append(f"{over}; the rest was not run")
            return ExerciseRun(says=f"There is no answer: {over}.")
        request = {
            "task": "answer",
            "lesson": self.work.lesson,
            "exercise": exercise.name,
            "program": asdict(self._scan.slices[exercise.name]),
            "parts": _parts_for(self.work.lesson, exercise.name),
        }
        if exercise.open_task and self.work.material is not None:
            if self.work.material.problem:
                return ExerciseRun(says=self.work.material.problem, absent=True)
            request["material"] = self.work.material.to_wire()
        until = min(time.monotonic() + self.runner.limits.exercise_seconds + exercise.seconds, self._end)
        seeds = self.seed, SHIPPED_SEED
        reply = self._talk.answer(request, seeds, until, lambda message: self._aspects_to_rerun(exercise, message))
        ended = self._replace() if not self._talk.alive else ""
        return self._run_of(exercise.name, reply, ended)

    def _aspects_to_rerun(self, exercise: Exercise, message: dict) -> list[str]:
        """The aspects to run on the shipped key's inputs too."""
        if exercise.open_task:  # whose text is the same under every seed
            return []
        if self.unexplained is None:
            return [aspect.name for aspect in exercise.aspects]
        return self.unexplained(exercise.name, message["answer"])

    def _run_of(self, name: str, reply: Reply, ended: str) -> ExerciseRun:
        message = reply.message
        if "answer" in message:
            sent = message.get("noticed")
            noticed = tuple(plain(each, 500) for each in sent[:10]) if isinstance(sent, list) else ()
            says, shipped = plain(message.get("stopped", "")), reply.second.get("answer")
            return ExerciseRun(sent=message["answer"], says=says, noticed=noticed, shipped=shipped)
        if "undefined" in message:
            return ExerciseRun(says=plain(message["undefined"], 600), absent=True)
        if reply.state == LATE:
            longest = self.runner.limits.exercise_seconds + load_lesson(self.work.lesson)[name].seconds
            self.flags.append(f"{name} took longer than {longest:g} s")
            return ExerciseRun(says="The answer did not finish in time. Is there a loop that never ends?")
        if reply.state == EARLY:
            self.flags.append(f"{name} sent a result before it was asked for one")
            return ExerciseRun(says="There is no answer. It sent a result before it was asked for one.")
        if reply.state in (DONE, FLOODED):
            self.flags.append(f"{name} sent something that is no answer")
            return ExerciseRun(says=f"There is no answer. {plain(message.get('broken', ''))}".rstrip())
        why = ended or reply.why or "it ended the Python process"
        self.flags.append(f"the process died in {name}: {why}")
        return ExerciseRun(says=f"There is no answer: {why}.")

    def _replace(self) -> str:
        """Start anew behind processes that were ended. Returns why they were, in words."""
        end = self._talk.end()
        if end.failed:
            raise SandboxFailed(end.failed)
        self._used += end.processor_seconds
        self._restarts += 1
        if self._used >= self.runner.limits.processor_seconds:
            self._over = end.why or "the submission had used up its processor time"
        elif self._restarts > RESTARTS:
            self._over = "its processes had died too often before"
        else:
            self._open()
        return end.why


def _with_time_for(lesson: str, limits: Limits) -> Limits:
    """The limits, with the time that exercises of this lesson take beyond what any exercise may take."""
    more = sum(exercise.seconds for exercise in load_lesson(lesson))
    total, processor = limits.total_seconds + more, limits.processor_seconds + more
    return replace(limits, total_seconds=total, processor_seconds=processor)


@lru_cache(maxsize=256)
def _parts_for(lesson: str, exercise: str) -> dict[str, str]:
    """The finished parts, compiled here once: the sandbox runs the same Python."""
    sources = sources_for(load_lesson(lesson)[exercise])
    code = {name: marshal.dumps(compile(text, f"<{name}>", "exec")) for name, text in sources.items()}
    return {name: base64.b64encode(data).decode() for name, data in code.items()}
