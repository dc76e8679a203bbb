"""Two sides do the same jobs in turn, each in a process of its own, so that neither warms the other's memory."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import resource
import statistics
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True)
class Job:
    """One thing to measure.

    name: of the table's row. calls: the arguments of each call that makes it up, measured one by one. rounds: how often
    each side does each call, after one call that does not count; the median is taken. warm_up: the arguments of that
    call, where it is a smaller one.
    """

    name: str
    function: str
    calls: tuple[tuple, ...] = ((),)
    rounds: int = 5
    warm_up: tuple | None = None


@dataclass(frozen=True)
class Outcome:
    """Tokens a second, and bytes at the peak of the process's memory (None where the system does not tell)."""

    speed: float
    peak: int | None


class Side:
    """A process that does jobs.

    module: has a function `jobs(side, folder)` that returns a dict from name to function; each returns
    how many tokens it dealt with.
    """

    def __init__(self, module: str, side: str, folder: Path, threads: int):
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, module, side, str(folder), threads), daemon=True)
        self._process.start()
        other.close()
        self._answer()

    def do(self, function: str, arguments: tuple) -> tuple[float, int, int | None]:
        """(seconds, tokens, peak in bytes)."""
        self._pipe.send((function, arguments))
        return self._answer()

    def _answer(self):
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError("A side of the benchmark has died; too little memory, most likely.") from None
        if isinstance(answer, str):
            raise RuntimeError(f"A side of the benchmark failed:\n{answer}")
        return answer

    def close(self) -> None:
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()


def duel(
    module: str, sides: tuple[str, str], jobs: list[Job], folder: Path, threads: int
) -> dict[str, dict[str, Outcome]]:
    """The outcome of every job for both sides. They take turns call by call, and who begins changes."""
    contenders = {}
    try:
        for side in sides:
            contenders[side] = Side(module, side, folder, threads)
        return {job.name: _compete(contenders, job) for job in jobs}
    finally:
        for contender in contenders.values():
            contender.close()


def _compete(contenders: dict[str, Side], job: Job) -> dict[str, Outcome]:
    seconds, tokens, peaks = dict.fromkeys(contenders, 0.0), dict.fromkeys(contenders, 0), dict.fromkeys(contenders)
    for contender in contenders.values():
        contender.do(job.function, job.calls[0] if job.warm_up is None else job.warm_up)
    for number, arguments in enumerate(job.calls):
        taken = {side: [] for side in contenders}
        for turn in range(job.rounds):
            order = list(contenders) if (number + turn) % 2 == 0 else list(contenders)[::-1]
            for side in order:
                time_taken, count, peak = contenders[side].do(job.function, arguments)
                taken[side].append(time_taken)
                if peak is not None:
                    peaks[side] = max(peak, peaks[side] or 0)
        for side, times in taken.items():
            seconds[side] += statistics.median(times)
            tokens[side] += count
        print(".", end="", file=sys.stderr, flush=True)
    return {side: Outcome(tokens[side] / seconds[side], peaks[side]) for side in contenders}


##### In the other process


def _serve(pipe, module: str, side: str, folder: str, threads: int) -> None:
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        try:
            torch.set_num_threads(threads)
            functions = importlib.import_module(module).jobs(side, Path(folder))
            pipe.send((0.0, 0, None))
            while True:
                function, arguments = pipe.recv()
                _forget_peak()
                start = time.perf_counter()
                count = functions[function](*arguments)
                pipe.send((time.perf_counter() - start, count, _peak()))
        except EOFError:
            pass
        except Exception:
            pipe.send(traceback.format_exc())


def _forget_peak() -> None:
    """Linux counts the peak from here on. Elsewhere it is that of the whole life of the process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int | None:
    with contextlib.suppress(OSError, StopIteration):
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
