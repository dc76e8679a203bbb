"""How a signal gets from one position to another."""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt

from .style import COLOURS, WIDTH, arrow

_FAINT, _NODE = "#b8b8b8", "#444444"


def path_row(t: int = 7, reach: int = 2) -> None:
    """A recurrent network, convolutions and self-attention, with the path from the first position to the last.

    t      positions.
    reach  how far a convolution sees to either side: its kernel is 2·reach + 1 wide.

    Faint arrows are all the connections there are, dark ones a shortest path. The bottom row holds the inputs.
    """
    layers = -(-(t - 1) // reach)
    between = [(i, j) for i in range(t) for j in range(t)]
    local = [(i, j) for i, j in between if abs(i - j) <= reach]
    steps = [min(k * reach, t - 1) for k in range(layers + 1)]
    panels = {
        f"recurrent: {t} steps": (
            [((i, 0), (i, 1)) for i in range(t)] + [((i, 1), (i + 1, 1)) for i in range(t - 1)],
            [(0, 0)] + [(i, 1) for i in range(t)],
            2,
        ),
        f"convolution: {layers} layers": (
            [((i, k), (j, k + 1)) for k in range(layers) for i, j in local],
            [(step, k) for k, step in enumerate(steps)],
            layers + 1,
        ),
        "self-attention: 1 layer": ([((i, 0), (j, 1)) for i, j in between], [(0, 0), (t - 1, 1)], 2),
    }
    axes = plt.subplots(1, 3, figsize=(WIDTH, 2.6))[1]
    for ax, (title, (edges, path, rows)) in zip(axes, panels.items(), strict=True):
        heights = [k / (rows - 1) for k in range(rows)]
        for start, end in edges:
            first, last = ((i, heights[k]) for i, k in (start, end))
            arrow(ax, first, last, 1, color=_FAINT, linewidth=0.7, shrinkA=4, shrinkB=4, mutation_scale=4)
        for start, end in pairwise(path):
            first, last = ((i, heights[k]) for i, k in (start, end))
            arrow(ax, first, last, 2, color=COLOURS[1], linewidth=2.4, shrinkA=4, shrinkB=4, mutation_scale=8)
        for height in heights:
            ax.scatter(range(t), [height] * t, s=48, color="white", edgecolor=_NODE, linewidth=1.2, zorder=3)
        ends = [path[0], path[-1]]
        ax.scatter(
            [i for i, _ in ends], [heights[k] for _, k in ends], s=48, color=COLOURS[1], edgecolor=_NODE, zorder=4
        )
        ax.set(title=title, xlabel="position", xticks=range(t), ylim=(-0.15, 1.15), xlim=(-0.6, t - 0.4), yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    axes[0].set_yticks([0, 1], labels=["inputs", "outputs"])
