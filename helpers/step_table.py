"""A table of one training step, made faster and smaller line by line, and bars of its bytes (lesson 17).

table = StepTable()
table.measure("plain attention", step, model, optimiser)    # prints this row, and its share of the one before
table.draw_parts("Attention weights are the tall jumps")    # in the course of the last step: what autograd kept
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
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
    history: tuple[int, ...] = ()
    """Bytes that autograd kept, after each change; empty if the row was measured elsewhere."""

    @property
    def course(self) -> torch.Tensor:
        """For each number of the history, how much of the step's changes was over: 0 to 1."""
        return torch.linspace(0, 1, len(self.history))


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
        state = sum(state_bytes(model.parameters(), optimiser))
        self.add(name, min(seconds), kept.peak, state, tuple(kept.history))

    def add(self, name: str, seconds: float, activations: int, state: int, history: tuple[int, ...] = ()) -> None:
        """Adds a row that was measured elsewhere, in place of one of the same name.

        Prints it, and its share of the row before it.
        """
        self.rows = [row for row in self.rows if row.name != name]
        self.rows.append(Row(name, seconds, activations, state, history))
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

    def draw_parts(self, title: str) -> None:
        """What autograd kept in the course of the last row's step; its largest tensors are the attention weights."""
        row = self.rows[-1]
        kept = torch.tensor(row.history) / 1e6
        changes = kept.diff(prepend=kept[:1])
        largest = changes.abs() > 0.99 * changes.abs().max()
        rest = (changes * ~largest).cumsum(0)
        ax = plt.subplots(figsize=(6, 3.4), layout="constrained")[1]
        ax.fill_between(row.course, rest, kept, step="post", color=plots.COLOURS[1], linewidth=0)
        ax.fill_between(row.course, rest, step="post", color=plots.COLOURS[2], linewidth=0)
        between = row.course[kept.argmax()].item()
        heights = {"attention weights": 0.65 * kept.max().item(), "the rest": 0.5 * rest.max().item()}
        for words, y in heights.items():
            ax.text(between, y, words, ha="center", va="center", bbox={"color": "#ffffff", "pad": 2})
        ax.set(ylim=(0, None), xlim=(0, 1), ylabel="MB kept by autograd", title=title)
        ax.set_xticks([between / 2, between, (1 + between) / 2], ["forward pass", "loss", "backward pass"])
        ax.tick_params(axis="x", length=0)
        ax.grid(False, axis="x")
        plt.show()

    def draw_course(self, names: Sequence[str], title: str, parts: int, peaks: Sequence[str]) -> None:
        """What autograd kept in the course of one step of each of these rows, and below, of a part of the last one.

        parts: how many equal parts the step of the last row has. peaks: what is said of each peak of such a part.
        """
        above, below = plt.subplots(2, figsize=(6, 5.4), layout="constrained", height_ratios=(3, 2))[1]
        rows = [next(row for row in self.rows if row.name == name) for name in names]
        for number, row in enumerate(rows):
            kept = torch.tensor(row.history) / 1e6
            look = {"where": "post", "color": plots.COLOURS[number], "linestyle": plots.DASHES[number]}
            above.step(row.course, kept, label=row.name, **look)
        above.set(title=title, xlabel="course of one step")
        above.legend()
        kept = kept[: len(kept) // parts + 1]  # of the last row, and so is its look
        below.step(torch.linspace(0, 1, len(kept)), kept, **look)
        peaks_at = tops(kept)
        for top, words in zip(peaks_at, peaks, strict=False):
            at = top / (len(kept) - 1), kept[top]
            below.annotate(words, at, xytext=(0, 4), ha="center", fontsize=9, textcoords="offset points")
        below.set(xlabel=f"course of the first text, {rows[-1].name}")
        for ax in (above, below):
            ax.set(xlim=(0, 1), ylim=(0, None), ylabel="MB kept by autograd")
            ax.set_xticks([0, 1], ["begin", "end"])
        below.set_ylim(0, 1.25 * kept.max())
        plt.show()

    def __str__(self) -> str:
        return self._lines(self.rows)

    def _lines(self, rows: list[Row]) -> str:
        head = f"{'':<22}  s a step  activations     state"
        lines = [
            f"{row.name:<22}  {row.seconds:8.3f}  {row.activations / 1e6:8.1f} MB  {row.state / 1e6:5.1f} MB"
            for row in rows
        ]
        return "\n".join([head, *lines])


def tops(kept: torch.Tensor) -> list[int]:
    """Where each hump of a course is highest: a hump is what lies above two fifths of the whole course's height."""
    found: list[int] = []
    inside = False
    for place, high in enumerate((kept > 0.4 * kept.max()).tolist()):
        if high and not inside:
            found.append(place)
        elif high and kept[place] > kept[found[-1]]:
            found[-1] = place
        inside = high
    return found


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
LABELLED = 0.4e9  # bytes: narrower parts of a bar have no room for their number


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
        figure, ax = plt.subplots(figsize=(6, 1.6 + 0.36 * len(self.bars)), layout="constrained")
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
                if amount > LABELLED:
                    words = f"{amount / 1e9:.1f}"
                    box = {"color": "#ffffff", "pad": 1.2}
                    ax.text(left + amount / 2e9, place, words, ha="center", va="center", fontsize=8, bbox=box)
                left += amount / 1e9
            ax.annotate(
                f"{left:.1f}", (left, place), xytext=(4, 0), va="center", fontsize=9, textcoords="offset points"
            )
        ax.set_yticks(range(len(self.bars)), list(self.bars))
        ax.invert_yaxis()
        ax.grid(False, axis="y")
        ax.set(xlim=(0, 7.8), xlabel="GB", title=title)
        figure.legend(loc="outside lower center", ncol=4, fontsize=8.5, handlelength=1.6)
        plt.show()
