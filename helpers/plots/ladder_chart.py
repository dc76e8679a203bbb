"""How far a model has come, rung by rung; and how far with one change at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from .style import COLOURS, WIDTH


def ladder(rows: Sequence[tuple[str, float | None, bool, Sequence[float]]], references: Mapping[str, float]) -> None:
    """One row for each rung, the first at the bottom; lower bits, farther left, are better.

    rows        (name, bits, own, ours): a point at `bits`, filled if it is the student's own, none where it is None; a
                tick for each of `ours`, several runs of the same rung.
    references  {name: bits}: vertical lines, named at the top.
    """
    ax = plt.subplots(figsize=(WIDTH, 1.4 + 0.27 * len(rows)))[1]
    for place, (_, bits, own, ours) in enumerate(rows):
        label = None if place else "ours, three runs"
        ax.plot(ours, [place] * len(ours), "|", color=COLOURS[0], markersize=13, markeredgewidth=1.5, label=label)
        if bits is not None:
            face = COLOURS[1] if own else "white"
            ax.plot(bits, place, "o", color=COLOURS[1], markerfacecolor=face, markersize=6)
    ax.plot([], [], "o", color=COLOURS[1], label="yours", markersize=6)
    _name_rows(ax, [name for name, *_ in rows], "bits per byte", references)
    ax.figure.legend(loc="outside lower center", ncols=2)


def runs(
    series: Mapping[str, Mapping[str, Sequence[float]]],
    label: str,
    references: Mapping[str, float] | None = None,
    dots: bool = False,
) -> None:
    """One row for each change, the first at the top, with a tick for each run.

    series      {name: {change: its runs}}: one colour and one height of ticks for each name; a legend names them where
                there are several.
    label       of the axis.
    references  {name: value}: vertical lines, named at the top.
    dots        in place of ticks, a little below each other, the first run at the top: equal values do not hide.
    """
    changes = list(dict.fromkeys(change for runs_of in series.values() for change in runs_of))[::-1]
    row = 0.6 if dots else 0.27  # inches
    ax = plt.subplots(figsize=(WIDTH, 1.2 + row * len(changes) + 0.2 * (len(series) > 1)))[1]
    for number, (name, runs_of) in enumerate(series.items()):
        points = [
            (value, changes.index(change) + dots * (0.36 - 0.72 * run / max(len(values) - 1, 1)))
            for change, values in runs_of.items()
            for run, value in enumerate(values)
        ]
        x, y = zip(*points, strict=True)
        (marks,) = ax.plot(x, y, "o" if dots else "|", color=COLOURS[number], label=name)
        marks.set(**{"markersize": 4} if dots else {"markersize": 13 - 5 * number, "markeredgewidth": 1.5 + number})
    _name_rows(ax, changes, label, references or {})
    if len(series) > 1:
        ax.figure.legend(loc="outside lower center", ncols=len(series))


def _name_rows(ax: Axes, names: Sequence[str], label: str, references: Mapping[str, float]) -> None:
    for name, value in references.items():
        ax.axvline(value, color="#555555", linewidth=1, linestyle=(0, (2, 2)), zorder=0)
        at = ax.get_xaxis_transform()  # x in the data's unit, y from 0 to 1
        ax.text(value, 1.01, name, transform=at, ha="center", va="bottom", fontsize=8.5, color="#333333")
    ax.set_yticks(range(len(names)), labels=names)
    ax.set(xlabel=label, ylim=(-0.6, len(names) - 0.4))
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
