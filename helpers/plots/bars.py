"""Shares of one whole, as bars: attention weights, probabilities of the next token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from .style import COLOURS, WIDTH, Numbers, as_array


def bars(
    shares: dict[str, Numbers],
    names: Sequence[str],
    xlabel: str = "weight",
    ylabel: str = "key",
    mark: Iterable[int] | None = None,
    axes: Sequence[Axes] | None = None,
) -> None:
    """One panel of bars for each set of shares, beside each other, so that one can watch them change.

    shares  {title: (n,)}, numbers from 0 to 1, such as the weights of n keys at several temperatures.
    names   n names, written once, on the left; xlabel and ylabel say what a share and a name are.
    mark    the indices of bars to draw in a second colour, with hatching that survives grey print.
    axes    as many axes as there are panels; by default a new figure.
    """
    count = len(shares)
    if axes is None:
        axes = plt.subplots(1, count, figsize=(WIDTH, 0.9 + 0.27 * len(names)), sharey=True, squeeze=False)[1][0]
    for ax, (title, values) in zip(axes, shares.items(), strict=True):
        values = as_array(values)
        if values.shape != (len(names),):
            raise ValueError(f"{len(names)} names for shares of shape {values.shape}")
        drawn = ax.barh(range(len(names)), values, height=0.72, color=COLOURS[0])
        for i in mark or ():
            drawn[i].set(facecolor=COLOURS[6], hatch="///", edgecolor="#5a3c00", linewidth=0)
        for i, value in enumerate(values):
            ax.annotate(
                f"{value:.2f}", (value, i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8.5
            )
        ax.set(xlim=(0, 1.5), xlabel=xlabel, title=title)
        ax.set_xticks([0, 0.5, 1], labels=["0", ".5", "1"])
        ax.set_yticks(range(len(names)), labels=list(names))
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
    axes[0].set_ylabel(ylabel)
    if not axes[0].yaxis_inverted():
        axes[0].invert_yaxis()  # the first name on top
