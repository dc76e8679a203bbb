"""What a check knows at a student's desk beyond the answer: how long it may take, and whether its cell ran through."""

from __future__ import annotations

import _thread
import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterable, Iterator

from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

from helpers.checking.program_slice import CodeCell, binds

SECONDS = 20.0  # that an answer has for all its probes
SETTING = "COURSE_CHECK_SECONDS"  # another number of seconds, from the environment
STARTS = re.compile(r"^check\s*=\s*start\(", re.MULTILINE)
AGAIN = 1.0  # seconds between interrupts: a bare `except:` in a loop swallows one


class TookTooLong(Exception):
    """An answer that was still running when its time was up."""


def patience() -> float:
    """How many seconds a check waits, unless its `seconds` are set."""
    with contextlib.suppress(ValueError):
        return float(os.environ.get(SETTING, SECONDS))
    return SECONDS


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Interrupt what runs in the block when it runs longer than that, as the stop button would.

    Raises TookTooLong then, from the KeyboardInterrupt that stopped it. Outside the main thread, which alone can be
    interrupted, there is no limit.
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
            wait = AGAIN

    threading.Thread(target=watch, name="check's clock", daemon=True).start()
    try:
        yield
        done.set()
    except KeyboardInterrupt as interrupt:
        if not late.is_set():
            raise
        raise TookTooLong from interrupt
    finally:
        done.set()


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # wakes a sleep, too
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


class Runs:
    """Watches a notebook's cells: did the last run of the cell that defines a name go through?

    After a cell that did not, the name means what it meant before, and a check would judge that without a word.
    """

    def __init__(self, shell: InteractiveShell, names: Iterable[str]):
        self._shell, self._names = shell, tuple(names)
        self._before: dict[str, object] = {}
        self._failed: dict[str, str] = {}  # by name, the error of a later run that left the name as it was
        self._without_effect: set[int] = set()  # numbers of cells that did so
        shell.events.register("pre_run_cell", self._begins)
        shell.events.register("post_run_cell", self._ends)

    def stop(self) -> None:
        """Watch no longer."""
        self._shell.events.unregister("pre_run_cell", self._begins)
        self._shell.events.unregister("post_run_cell", self._ends)

    def failure(self, name: str) -> str:
        """The error of the last run of the cell that defines the name, where it left the name as it was; or ""."""
        return self._failed.get(name, "")

    def source(self, name: str) -> str:
        """The text of the last cell that gave this name its meaning, or nothing.

        By the name and not by the object, which may be a lambda or another function under this name; and from the
        notebook's own cells, not through `inspect`, which finds classes by file only.
        """
        cells = list(enumerate(self._shell.user_ns.get("In", [])))
        found = (cell for number, cell in reversed(cells) if number not in self._without_effect and binds(name, cell))
        return next(found, "")

    def setup(self) -> str:
        """The text of the lesson's first cell: the last that calls `start`."""
        cells = (cell for cell in reversed(self._shell.user_ns.get("In", [])) if STARTS.search(cell))
        return next(cells, "")

    def others(self, name: str) -> list[CodeCell]:
        """The cells that were run, in their order, but for those that give this name a meaning."""
        cells = enumerate(self._shell.user_ns.get("In", []))
        return [CodeCell(f"cell {number}", cell) for number, cell in cells if cell and not binds(name, cell)]

    def _begins(self, info: ExecutionInfo) -> None:
        self._before = {name: self._shell.user_ns.get(name) for name in self._names}

    def _ends(self, result: ExecutionResult) -> None:
        error = result.error_before_exec or result.error_in_exec
        for name in self._names:
            if not isinstance(result.info.raw_cell, str) or not binds(name, result.info.raw_cell):
                continue
            if error is None or self._shell.user_ns.get(name) is not self._before.get(name):
                self._failed.pop(name, None)
            else:
                text = str(error.msg if isinstance(error, SyntaxError) else error).strip()
                self._failed[name] = f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
                if result.execution_count is not None:
                    self._without_effect.add(result.execution_count)
