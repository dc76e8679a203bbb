"""What the check knows of the kernel that it runs in: the time an answer may take, and what became of its cells."""

from __future__ import annotations

import _thread
import contextlib
import re
import signal
import threading
from collections.abc import Iterable, Iterator

from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

from helpers.checking.read.program_slice import CodeCell
from helpers.checking.read.syntax import cell_of
from helpers.checking.run.answers import described

STARTS = re.compile(r"^check\s*=\s*start\(", re.MULTILINE)
INTERRUPT_EVERY = 1.0  # seconds between interrupts: a bare `except:` in a loop swallows one


class TimeLimitExceeded(Exception):
    """An answer was still running when its time was up."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block after so many seconds, as the stop button would.

    Raises TimeLimitExceeded from the KeyboardInterrupt that stopped it. Only the main thread can be interrupted: in
    others there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    done, late = threading.Event(), threading.Event()

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            late.set()
            _interrupt()
            wait = INTERRUPT_EVERY

    threading.Thread(target=watch, name="check's clock", daemon=True).start()
    try:
        yield
        done.set()
    except KeyboardInterrupt as interrupt:
        if not late.is_set():
            raise
        raise TimeLimitExceeded from interrupt
    finally:
        done.set()


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # wakes a sleep, too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


class KernelState:
    """Watches the cells of a notebook: did the last run of the cell that defines a name succeed?

    After a run that failed, the name still has its old meaning, and a check has to say that it judges that.
    """

    def __init__(self, shell: InteractiveShell, names: Iterable[str]):
        self._shell, self._names = shell, tuple(names)
        self._running = ""  # the text of the cell that runs
        self._before: dict[str, object] = {}
        self._failed: dict[str, str] = {}  # by name, the error of a later run that left the name as it was
        self._without_effect: set[int] = set()  # numbers of cells that did so
        self._ids: dict[int, str] = {}  # of cells, by the numbers of their runs, where the notebook tells them
        for event, callback in (("pre_run_cell", self._begins), ("post_run_cell", self._ends)):
            for earlier in shell.events.callbacks[event][:]:
                if isinstance(getattr(earlier, "__self__", None), KernelState):  # of an earlier `start`
                    self._ids |= earlier.__self__._ids
                    shell.events.unregister(event, earlier)
            shell.events.register(event, callback)

    def checked(self, written: object) -> list[str]:
        """The names by which the running cell hands this object to a call: ``check(raw_weights)``."""
        names = re.findall(r"\(\s*(\w+)\s*\)", self._running)
        return [name for name in names if self._shell.user_ns.get(name) is written]

    def failure(self, name: str) -> str:
        """The error of the last run of the cell that defines the name, where it left the name as it was; or ""."""
        return self._failed.get(name, "")

    def source(self, name: str) -> str:
        """The text of the last cell that gave this name its meaning, or "".

        By the name and not by the object, which may be a lambda or another function under this name; and from the
        notebook's own cells, not through `inspect`, which finds classes by file only.
        """
        return self._last(name)[1]

    def elsewhere(self, name: str) -> tuple[int, str]:
        """The number of another cell's run that gave the name its meaning, and the own cell as it last ran, or "".

        (0, "") where no other cell did so, or the notebook tells no cells apart. A released notebook calls an
        exercise's cell by the exercise's name; in one that does not, the own cell is the first that binds the name.
        """
        last, _ = self._last(name)
        first = next((number for number, cell in enumerate(self._cells) if cell_of(cell).binds(name)), 0)
        own = name if f"check_{name}" in self._ids.values() else self._ids.get(first)
        if own is None or self._ids.get(last, own) == own:
            return 0, ""
        runs = [cell for number, cell in enumerate(self._cells) if self._ids.get(number) == own]
        return last, runs[-1] if runs else ""

    def _last(self, name: str) -> tuple[int, str]:
        """The number and the text of the last run that gave this name its meaning; (0, "") where none did."""
        for number, cell in reversed(list(enumerate(self._cells))):
            if number not in self._without_effect and cell_of(cell).binds(name):
                return number, cell
        return 0, ""

    def setup(self) -> str:
        """The text of the lesson's first cell: the last that calls `start`."""
        return next(filter(STARTS.search, reversed(self._cells)), "")

    def others(self, name: str) -> list[CodeCell]:
        """The cells that were run, in their order, except the setup cell and those that give this name a meaning."""
        cells = [(number, cell) for number, cell in enumerate(self._cells) if cell and not STARTS.search(cell)]
        return [CodeCell(f"cell {number}", cell) for number, cell in cells if not cell_of(cell).binds(name)]

    @property
    def _cells(self) -> list[str]:
        return self._shell.user_ns.get("In", [])

    def _begins(self, info: ExecutionInfo) -> None:
        self._running = info.raw_cell if isinstance(info.raw_cell, str) else ""
        if cell_id := getattr(info, "cell_id", None):
            self._ids[self._shell.execution_count] = cell_id
        self._before = {name: self._shell.user_ns.get(name) for name in self._names}

    def _ends(self, result: ExecutionResult) -> None:
        error = result.error_before_exec or result.error_in_exec
        cell = result.info.raw_cell if result.info and isinstance(result.info.raw_cell, str) else ""
        for name in self._names:
            if not cell_of(cell).binds(name):
                continue
            if error is None or self._shell.user_ns.get(name) is not self._before.get(name):
                self._failed.pop(name, None)
            else:
                plain = type(error)(error.msg) if isinstance(error, SyntaxError) else error  # without its file's name
                self._failed[name] = described(plain)
                if result.execution_count is not None:
                    self._without_effect.add(result.execution_count)
