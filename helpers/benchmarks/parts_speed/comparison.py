"""One piece of work done by two sides, measured with torch.utils.benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch.utils.benchmark import Timer


@dataclass(frozen=True)
class Comparison:
    """What is measured.

    work: its name. tokens: how many tokens one call deals with. sides: the names of the two, and what each calls.
    """

    work: str
    tokens: int
    sides: dict[str, Callable[[], object]]


def speeds(comparison: Comparison, threads: int, seconds: float) -> dict[str, float]:
    """Tokens a second of each side: the median over calls that take so many seconds, after one that does not count."""
    times = {
        side: Timer("call()", globals={"call": call}, num_threads=threads).blocked_autorange(min_run_time=seconds)
        for side, call in comparison.sides.items()
    }
    return {side: comparison.tokens / measured.median for side, measured in times.items()}


def row(comparison: Comparison, measured: dict[str, float]) -> str:
    """A line: the work, the tokens a second of both sides, and how many times as fast the first is."""
    first, second = measured.values()
    figures = ", ".join(f"{side} {speed:,.1f}" for side, speed in measured.items())
    return f"{comparison.work}: {first / second:.2f} times as fast ({figures} tokens a second)"
