"""A table of one training step, made faster and smaller line by line, and bars of its bytes (lesson 17).

table = StepTable()
table.measure("plain attention", step, model, optimiser)    # prints this row, and its share of the one before
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.course import TRAINING_STEPS
from helpers.device import device
from helpers.parts.big import Ledger
from helpers.parts.sharding import state_bytes
from helpers.progress import progress

STEPS = 8  # timed for a row, after one to warm up
ENOUGH = 6.0  # seconds after which no more steps are: on a processor without bfloat16 each takes seconds


@dataclass(frozen=True)
class Row:
    """One way to make the step."""

    name: str
    seconds: float
    activations: int
    state: int
    """activations, state: bytes in one process, for backward, and of what stays."""


class StepTable:
    """The rows that were measured so far."""

    def __init__(self):
        self.rows: list[Row] = []

    def measure(
        self, name: str, step: Callable[[], object], model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> None:
        """Adds a row: the fastest of a few steps, the most that autograd keeps in one, and the bytes that stay."""
        with Ledger(model.parameters()) as kept:
            step()
        enough = 0 if os.environ.get(TRAINING_STEPS) else ENOUGH  # tests need no time, only a number
        seconds, until = [], time.monotonic() + enough
        for _ in progress(range(STEPS), name):
            seconds.append(seconds_of(step))
            if time.monotonic() > until:
                break
        self.add(name, min(seconds), kept.peak, sum(state_bytes(model.parameters(), optimiser)))

    def add(self, name: str, seconds: float, activations: int, state: int) -> None:
        """Adds a row that was measured elsewhere, in place of one of the same name.

        Prints it, and its share of the row before it.
        """
        self.rows = [row for row in self.rows if row.name != name]
        self.rows.append(Row(name, seconds, activations, state))
        print(self._lines(self.rows[-1:]))
        if len(self.rows) > 1:
            old, new = self.rows[-2:]
            print(
                f"{'new / row before':<22}  {new.seconds / old.seconds:6.2f} ×"
                f"  {new.activations / old.activations:9.2f} ×  {new.state / old.state:6.2f} ×"
            )

    def add_workers(self, name: str, found: list[dict]) -> None:
        """Adds a row of several workers, from what `worker_steps` returned in each: of the slowest, and the largest."""
        seconds, activations = (max(one[what] for one in found) for what in ("seconds", "activations"))
        self.add(name, seconds, activations, max(sum(one["state"]) for one in found))

    def __str__(self) -> str:
        return self._lines(self.rows)

    def _lines(self, rows: list[Row]) -> str:
        head = f"{'':<22}  s a step  activations     state"
        lines = [
            f"{row.name:<22}  {row.seconds:8.3f}  {row.activations / 1e6:8.1f} MB  {row.state / 1e6:5.1f} MB"
            for row in rows
        ]
        return "\n".join([head, *lines])


def seconds_of(call: Callable[[], object]) -> float:
    """Seconds that one call takes: of the processor, so that other programs do not count, or of the clock on a GPU."""
    on_gpu = device().type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    before = clock()
    call()
    if on_gpu:
        torch.cuda.synchronize()  # a call returns before its work is done
    return clock() - before


STATE = ("weights", "gradients", "moments")
HATCHES = ("", "///", "xxx", "", "", "///", "")  # three of the state, which has one colour, then one a colour


class StepBars:
    """The bytes of one step, by kind, as a bar for each way to make it."""

    def __init__(self):
        self.bars: dict[str, dict[str, float]] = {}

    def add(self, name: str, amounts: Mapping[str, float]) -> None:
        """Adds a bar, in place of one of the same name, and prints its sums. amounts: bytes, those of STATE first."""
        self.bars[name] = dict(amounts)
        state, total = sum(amounts[kind] for kind in STATE), sum(amounts.values())
        print(
            f"{name}: {total / 1e9:.1f} GB, of which state {state / 1e9:.2f} "
            f"and activations {(total - state) / 1e9:.2f}"
        )

    def draw(self, title: str) -> None:
        """All bars so far, the first on top."""
        figure, ax = plt.subplots(figsize=(6, 1.5 + 0.31 * len(self.bars)), layout="constrained")
        for place, amounts in enumerate(self.bars.values()):
            left = 0.0
            for number, (kind, amount) in enumerate(amounts.items()):
                ax.barh(
                    place,
                    amount / 1e9,
                    0.72,
                    left,
                    color=plots.COLOURS[0 if kind in STATE else number - 2],
                    edgecolor="white",
                    linewidth=0.5,
                    hatch=HATCHES[number],
                    label=kind if place == len(self.bars) - 1 else None,
                )
                left += amount / 1e9
            ax.annotate(
                f"{left:.1f}", (left, place), xytext=(4, 0), va="center", fontsize=9, textcoords="offset points"
            )
        ax.set_yticks(range(len(self.bars)), list(self.bars))
        ax.invert_yaxis()
        ax.grid(False, axis="y")
        ax.set(xlim=(0, 10.2), xlabel="GB", title=title)
        figure.legend(loc="outside lower center", ncol=4, fontsize=8.5, handlelength=1.6)
        plt.show()
