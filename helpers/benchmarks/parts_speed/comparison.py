"""One piece of work done by two sides, measured in processor time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

REPEATS = 5
MOST_SPREAD = 0.2  # of the ratio, from the smallest repeat to the largest, as a share of the median


@dataclass(frozen=True)
class Comparison:
    """What is measured."""

    work: str
    """Its name."""
    tokens: int
    """How many tokens one call deals with."""
    sides: dict[str, Callable[[], object]]
    """The names of the two, and what each calls."""


def speeds(comparison: Comparison, threads: int, seconds: float, repeats: int = REPEATS) -> list[dict[str, float]]:
    """For each repeat the tokens that each side deals with in a second of processor time.

    Processor time counts what this process computes, on all of its threads, whatever else the machine does. In a
    repeat both sides take turns, so that a machine that slows down slows both. Each side is called once before, which
    does not count, and then for `seconds` a repeat, at least once.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for call in comparison.sides.values():
            call()
        return [
            {side: comparison.tokens / _seconds_a_call(call, seconds) for side, call in comparison.sides.items()}
            for _ in range(repeats)
        ]
    finally:
        torch.set_num_threads(before)


def _seconds_a_call(call, seconds):
    calls, start = 0, time.process_time()
    while True:
        call()
        calls += 1
        taken = time.process_time() - start
        if taken > seconds:
            return taken / calls


def row(comparison: Comparison, measured: list[dict[str, float]]) -> str:
    """A line: the work, how many times as fast the first side is, and the tokens a second of both, all medians.

    Where the ratios of the repeats spread by more than a fifth of their median, the line says so.
    """
    ratios = [first / second for first, second in (repeat.values() for repeat in measured)]
    ratio, low, high = statistics.median(ratios), min(ratios), max(ratios)
    figures = ", ".join(f"{side} {statistics.median(r[side] for r in measured):,.1f}" for side in comparison.sides)
    line = f"{comparison.work}: {ratio:.2f} times as fast, {low:.2f} to {high:.2f} ({figures} tokens a second)"
    spread = (high - low) / ratio
    return f"{line}; the repeats spread by {spread:.0%}: no figure to rely on" if spread > MOST_SPREAD else line
