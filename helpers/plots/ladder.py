"""How far a model has come, rung by rung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt

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
    for name, bits in references.items():
        ax.axvline(bits, color="#555555", linewidth=1, linestyle=(0, (2, 2)), zorder=0)
        at = ax.get_xaxis_transform()  # x in bits, y from 0 to 1
        ax.text(bits, 1.01, name, transform=at, ha="center", va="bottom", fontsize=8.5, color="#333333")
    ax.set_yticks(range(len(rows)), labels=[name for name, *_ in rows])
    ax.set(xlabel="held-out bits per byte", ylim=(-0.6, len(rows) - 0.4))
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.figure.legend(loc="outside lower center", ncols=2)
