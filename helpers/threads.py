"""Training with as many threads as prove fastest: all that the process has, or one.

    for batch in with_best_threads(batches):
        ...

Sharing a product among threads makes it wait for the slowest of them. On a quiet machine that pays; where something
else needs the cores too, a step can take ten times as long as with one thread. Nobody knows beforehand, so it is tried.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator
from time import perf_counter
from typing import TypeVar

import torch

from helpers.device import device

COUNTED = 5  # steps of a trial that are compared, after one that pays for the change
PAUSE = 20  # after two trials, so many times what both took goes by before the next two

Step = TypeVar("Step")


def with_best_threads(steps: Iterable[Step]) -> Iterator[Step]:
    """Goes through steps, as if one had written `steps`; the loop's body runs with one thread or with all of them.

    "All" is what PyTorch computes with when the loop begins, and again when it ends, however it ends. The first few
    steps are timed with one thread and the next few with all; the faster stays, and now and then both are timed again.
    Numbers may differ in their rounding. Where all is one, and where the course does not compute on the CPU, nothing is
    timed and nothing changed.
    """
    most = torch.get_num_threads()
    if most == 1 or device().type != "cpu":
        yield from steps
        return
    plan = _plan(most)
    threads = next(plan)
    try:
        for step in steps:
            torch.set_num_threads(threads)
            start = perf_counter()
            yield step
            threads = plan.send(perf_counter() - start)
    finally:
        torch.set_num_threads(most)


def _plan(most: int) -> Generator[int, float, None]:
    """Yields how many threads the next step is to have, and is sent the seconds that it took."""
    best, other = 1, most
    while True:
        usual, first = yield from _trial(best)
        tried, second = yield from _trial(other, usual)
        if tried < usual:
            best, other = other, best
        pause = PAUSE * (first + second)
        while pause > 0:
            pause -= yield best


def _trial(threads: int, to_beat: float = math.inf) -> Generator[int, float, tuple[float, float]]:
    """(the seconds of a few steps without the longest of them, the seconds of the whole trial).

    Without the longest, so that one step which also looks at the held-out part does not decide. Over as soon as the
    first number is above `to_beat`, since it only grows.
    """
    change = yield threads
    seconds: list[float] = []
    while len(seconds) < COUNTED and _without_longest(seconds) <= to_beat:
        seconds.append((yield threads))
    return _without_longest(seconds), change + sum(seconds)


def _without_longest(seconds: list[float]) -> float:
    return sum(sorted(seconds)[:-1])
