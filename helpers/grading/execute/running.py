"""Running submissions, each apart from all others and within its limits.

    with Runner("01_dot_product_attention", seed) as runner:
        executed = runner.execute(restored_notebook)

The work is done by `sandboxed.py`, behind the walls of `sandbox`. Here, in the grader's own process, stands only
what speaks with it: it sends one cell after another and reads back outputs as data, bounded in size and time.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked

from helpers.checking import answers
from helpers.course import EXAM_SEED, LIMITS, SHOWS_ONLY, Limits
from helpers.grading.execute import sandbox
from helpers.grading.execute.check_runs import run_of
from helpers.grading.execute.sandbox import BUBBLEWRAP, NONE, UNSAFE_LABEL, NoSandbox, SandboxFailed
from helpers.grading.judging import CheckRun, Why
from helpers.notebooks import exercise_of

RESTARTS = 3  # how many times a submission's dead process is replaced
GRACE = 2.0  # seconds that a cell has to stop in after it was interrupted
START = 60.0  # seconds in which the imports have to be done
LONGEST_LINE = answers.LARGEST_ANSWER * 4 // 3 + 65536  # bytes; an answer and what is around it
IMPORTS = "import torch, matplotlib.pyplot\nfrom helpers.lesson import start\n"

__all__ = ["Executed", "Limits", "NoSandbox", "Runner", "SandboxFailed"]


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

    lesson: NN_topic. seed: the exam key's. isolation: "bubblewrap", or "none" where somebody has decided to go
    without. warm: fork each submission from one process that has done the imports, where that can be done
    safely; each gets a process of its own from the start otherwise. The marks are the same.
    imports: Python text of import statements; those of the released lesson's setup cell unless given.

    Raises NoSandbox, on entering, where bubblewrap is wanted and cannot work.
    """

    def __init__(
        self, lesson: str, seed: str, *, isolation: str = BUBBLEWRAP, warm: bool = True, limits: Limits = LIMITS,
        imports: str | None = None,
    ):  # fmt: skip
        if isolation not in (BUBBLEWRAP, NONE):
            raise ValueError(f"isolation is {isolation!r}; it can be {BUBBLEWRAP!r} or {NONE!r}")
        self.lesson, self.isolation, self.limits = lesson, isolation, limits
        self._seed, self._warm, self._imports = seed, warm and isolation == BUBBLEWRAP, imports
        self._zygote: _Zygote | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Runner:
        if self.isolation == BUBBLEWRAP:
            problem = sandbox.why_not()
            if problem:
                raise NoSandbox(problem)
        if self._warm:
            self._zygote = self._new_zygote()
        return self

    def __exit__(self, *problem) -> None:
        with self._lock:
            zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()

    def execute(self, notebook: NotebookNode) -> Executed:
        """Run a restored notebook. Whatever a submission does is in the outputs and the flags.

        Raises SandboxFailed where no code of the submission could be run at all.
        """
        return _Execution(self, copy.deepcopy(notebook)).run()

    def _new_zygote(self) -> _Zygote:
        return _Zygote(self.isolation, self._seed, self.limits, self._imports_of())

    def _imports_of(self) -> str:
        if self._imports is None:
            self._imports = imports_of(Path("notebooks", self.lesson, f"{self.lesson}.ipynb"))
        return IMPORTS + f"import helpers.exercises.l{self.lesson}\n" + self._imports

    def _process(self) -> tuple[_Conversation, str]:
        """A fresh process for a submission, and how it came about."""
        if self.isolation == NONE:
            return self._new_zygote().fork(alone=True), UNSAFE_LABEL
        with self._lock:
            zygote = self._zygote if self._warm else None
            if zygote is not None and not zygote.alive():
                zygote.close()
                zygote = self._zygote = self._new_zygote()
            if zygote is not None and not zygote.can_be_shared():
                # Forks could reach one another here (no nested namespaces), or the imports started threads
                self._warm, self._zygote = False, None
                zygote.close()
                zygote = None
            if zygote is not None:
                return zygote.fork(), "bubblewrap, warm kernel"
        return self._new_zygote().fork(alone=True), "bubblewrap, cold kernel"


def imports_of(release: Path) -> str:
    """The import statements of a released lesson's setup cell; nothing where there is none to be read."""
    with contextlib.suppress(OSError, ValueError, SyntaxError, StopIteration):
        cells = nbformat.read(release, as_version=4).cells
        setup = next(cell for cell in cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "setup")
        imports = [node for node in ast.parse(setup.source).body if isinstance(node, (ast.Import, ast.ImportFrom))]
        return "\n".join(map(ast.unparse, imports))
    return ""


class _Zygote:
    """The process that forks; see `sandboxed.serve`. alone: it does so once, and ends with its only fork."""

    def __init__(self, isolation: str, seed: str, limits: Limits, imports: str):
        self._control, theirs = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix="grading-") if isolation == NONE else None
        command, environment = self._command(isolation, seed, limits, imports, theirs.fileno())
        self._process = subprocess.Popen(
            command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=None if os.environ.get("COURSE_SANDBOX_TALKS") else subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._about: dict | None = None
        self._shared = False

    def _command(self, isolation: str, seed: str, limits: Limits, imports: str, channel: int):
        sandboxed = isolation == BUBBLEWRAP
        folder = sandbox.WORK if sandboxed else self._folder.name
        options = sandbox.sandboxed_options(
            limits, imports=imports, nested=sandboxed, sandboxed=sandboxed, folder=folder
        )
        if not sandboxed:
            options["user"] = None
        inside = sandbox.SANDBOXED_THERE if sandboxed else str(sandbox.SANDBOXED)
        command = [sys.executable, inside, "serve", json.dumps(options), str(channel)]
        if sandboxed:
            return sandbox.wrapped(command, environment={EXAM_SEED: seed}), None
        return command, {**sandbox.defaults(there=False), "HOME": folder, EXAM_SEED: seed}

    def alive(self) -> bool:
        return self._process.poll() is None

    def can_be_shared(self) -> bool:
        return self._ready().get("nested", False) and self._about.get("threads", 1) == 1

    def _ready(self) -> dict:
        if self._about is None:
            self._control.settimeout(START)
            line = b""
            with contextlib.suppress(OSError):
                while not line.endswith(b"\n") and (more := self._control.recv(1000)):
                    line += more
            self._about = json.loads(line) if line.endswith(b"\n") else {}
        return self._about

    def fork(self, alone: bool = False) -> _Conversation:
        if not self._ready():
            self.close()
            raise SandboxFailed("the sandbox could not be started")
        self._shared = not alone
        ours, cells = socket.socketpair()
        orders, theirs = socket.socketpair()
        with contextlib.suppress(OSError):  # a zygote that died shows as a conversation that ends at once
            socket.send_fds(self._control, [b"f"], [cells.fileno(), theirs.fileno()])
        cells.close(), theirs.close()
        return _Conversation(ours, orders, self if alone else None)

    def close(self) -> None:
        self._control.close()  # at which it ends by itself, unless somebody keeps it
        try:
            self._process.wait(timeout=GRACE if self._shared else 0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.cleanup()


DONE, LATE, DEAD = "done", "late", "dead"


class _Conversation:
    """With the process of one submission. Everything it says may be a lie; only its size and form are trusted."""

    def __init__(self, channel: socket.socket, orders: socket.socket, owner: _Zygote | None):
        self._channel, self._orders, self._owner = channel, orders, owner
        self._held, self._skipping = b"", False

    def ask(self, place: int, source: str) -> None:
        with contextlib.suppress(OSError):
            self._channel.settimeout(5)
            self._channel.sendall(json.dumps({"cell": place, "source": source}).encode() + b"\n")

    def listen(self, place: int, until: float, collect) -> str:
        """Hand each message about this cell to `collect` until it is DONE, LATE or DEAD."""
        while True:
            message = self._next(until)
            if message in (LATE, DEAD):
                return message
            if message.get("type") == "done" and message.get("cell") == place:
                collect(message)
                return DONE
            collect(message)

    def _next(self, until: float):
        while True:
            line, newline, rest = self._held.partition(b"\n")
            if newline:
                self._held = rest
                skipped, self._skipping = self._skipping, False
                return {"type": "too long"} if skipped else _message(line)
            if len(self._held) > LONGEST_LINE:
                self._held, self._skipping = b"", True
            ready, _, _ = select.select([self._channel], [], [], max(0, until - time.monotonic()))
            if not ready:
                return LATE
            try:
                more = self._channel.recv(1 << 20)
            except OSError:
                more = b""
            if not more:
                return DEAD
            self._held = more if self._skipping and b"\n" not in more else self._held + more

    def interrupt(self) -> None:
        with contextlib.suppress(OSError):
            self._orders.send(b"i")

    def end(self) -> str:
        """Kill what is left of it, and say why it died if it did not do so by our order. Once is enough."""
        if self._orders.fileno() < 0:
            return ""
        with contextlib.suppress(OSError):
            self._orders.send(b"k")
        report = self._report()
        self._channel.close(), self._orders.close()
        if self._owner is not None:
            self._owner.close()
        return report

    def _report(self) -> str:
        self._orders.settimeout(10)
        line = b""
        with contextlib.suppress(OSError):
            while not line.endswith(b"\n") and len(line) < 4096 and (more := self._orders.recv(1000)):
                line += more
        with contextlib.suppress(ValueError):
            report = json.loads(line)
            status = report.get("status")
            if report.get("why") or not isinstance(status, int):
                return str(report.get("why"))
            if status == -signal.SIGXCPU:
                return "it used up its processor time"
            return f"it was ended by {signal.Signals(-status).name}" if status < 0 else "it ended the Python process"
        return "it ended the Python process"


def _message(line: bytes) -> dict:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {"type": "broken"}
    return message if isinstance(message, dict) else {"type": "broken"}


class _Execution:
    """One notebook's way through its cells."""

    def __init__(self, runner: Runner, notebook: NotebookNode):
        self._runner, self._limits = runner, runner.limits
        self.notebook, self.flags = notebook, []
        self._met = False  # has any code run that a student may have written?
        self._dead: set[int] = set()
        self._slow: set[int] = set()
        self._talk: _Conversation | None = None
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
                self._talk.end()
        return Executed(self.notebook, tuple(dict.fromkeys(self.flags)), self._isolation, self.runs)

    def _open(self) -> None:
        self._talk, self._isolation = self._runner._process()

    def _run(self, place: int, cell: NotebookNode) -> CheckRun | None:
        """Run one cell. Returns why it gave nothing where that is ours to say, and not in its outputs."""
        if len(self._dead) > RESTARTS:
            return _not_run(cell, "the kernel had died too often before")
        if time.monotonic() >= self._end:
            self._say(f"the notebook took longer than {self._limits.total_seconds:g} s; the rest was not run")
            return _not_run(cell, "the notebook had used up its time")
        collected = _Collector(cell)
        self._met = self._met or not is_locked(cell)
        state = self._step(place, cell.source, self._limits.cell_seconds, collected)
        self._tell(place, cell, collected)
        if state == LATE:
            self._slow.add(place)
            self._say(f"{_name(cell, place)} took longer than {self._limits.cell_seconds:g} s")
            state = self._stop(place, collected)
        if state == DEAD:
            return self._replace(place, cell)
        if place in self._slow:
            cell.outputs.append(error("CellTimeoutError", ""))
            return None if run_of(cell).sent else CheckRun(why=Why.LATE)
        return None

    def _step(self, place: int, source: str, seconds: float, collect) -> str:
        self._talk.ask(place, source)
        return self._talk.listen(place, min(time.monotonic() + seconds, self._end), collect)

    def _stop(self, place: int, collect) -> str:
        """Interrupt a cell. DONE when it stopped, DEAD when it would not."""
        self._talk.interrupt()
        state = self._talk.listen(place, time.monotonic() + GRACE, collect)
        if state == LATE:
            self._say(f"{_name(self.notebook.cells[place], place)} could not be interrupted and was killed")
        return DONE if state == DONE else DEAD

    def _replace(self, place: int, cell: NotebookNode) -> CheckRun:
        why = self._talk.end()
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
            if state == DEAD:
                return place
        return None

    def _tell(self, place: int, cell: NotebookNode, collected: _Collector) -> None:
        name = _name(cell, place)
        if collected.cut:
            self._say(f"output of {name} was cut at {self._limits.output_bytes / 2**20:.3g} MB")
        if collected.broken:
            self._say(f"{name} sent something that is no output")
        for output in cell.outputs:
            if output.output_type == "error" and output.ename != "NotImplementedError":
                self._say(f"{name} stopped with {output.ename}: {output.evalue[:120]}".rstrip(": "))

    def _say(self, flag: str) -> None:
        if flag not in self.flags:
            self.flags.append(flag)


def _ignore(message: dict) -> None:
    pass


def _runs(cell: NotebookNode) -> bool:
    return bool(cell.source.strip()) and SHOWS_ONLY not in cell.metadata.get("tags", [])


def _name(cell: NotebookNode, place: int) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id") or f"cell {place + 1}"


def _not_run(cell: NotebookNode, why: str) -> CheckRun:
    cell.outputs = [error("NotRun", f"it was not run: {why}")]
    return CheckRun(why=Why.NOT_RUN, says=f"it was not run: {why}")


def error(name: str, value: str) -> NotebookNode:
    """An error output of our own."""
    return NotebookNode(output_type="error", ename=name, evalue=value, traceback=[f"{name}: {value}"])


class _Collector:
    """Makes a cell's outputs of messages, as a notebook has them. What is malformed is left out."""

    def __init__(self, cell: NotebookNode):
        self._cell, self._clear = cell, False
        self.cut, self.broken = False, False

    def __call__(self, message: dict) -> None:
        kind = message.get("type")
        if kind == "cut":
            self.cut = True
        elif kind == "clear_output":
            self._clear = True
            if not message.get("wait"):
                self._wipe()
        elif kind == "done":
            count = message.get("count")
            self._cell.execution_count = count if isinstance(count, int) else None
        else:
            self._add(kind, message)

    def _wipe(self) -> None:
        if self._clear:
            self._cell.outputs, self._clear = [], False

    def _add(self, kind: object, message: dict) -> None:
        output = _output(kind, message)
        if output is None:
            self.broken = True
            return
        self._wipe()
        last = self._cell.outputs[-1] if self._cell.outputs else None
        if last is not None and output.output_type == last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            self._cell.outputs.append(output)


def _output(kind: object, message: dict) -> NotebookNode | None:
    """The output that a message describes, or None."""
    if kind == "too long":  # counts as an answer that cannot be judged, as it does where it is not cut off
        return nbformat.from_dict({"output_type": "display_data", "data": {answers.MIME: None}, "metadata": {}})
    if kind == "stream":
        name, text = message.get("name"), message.get("text")
        if name in ("stdout", "stderr") and isinstance(text, str):
            return NotebookNode(output_type="stream", name=name, text=text)
    if kind == "error":
        parts = [message.get("ename"), message.get("evalue")]
        lines = message.get("traceback")
        if (
            all(isinstance(p, str) for p in parts)
            and isinstance(lines, list)
            and all(isinstance(line, str) for line in lines)
        ):
            return NotebookNode(output_type="error", ename=parts[0], evalue=parts[1], traceback=lines)
    if kind in ("display_data", "execute_result"):
        data, metadata = message.get("data"), message.get("metadata")
        if isinstance(data, dict) and isinstance(metadata, dict):
            more = {"execution_count": None} if kind == "execute_result" else {}
            return nbformat.from_dict({"output_type": kind, "data": data, "metadata": {}, **more})
    return None
