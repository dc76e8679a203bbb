"""Several runs of one experiment, and many samples of one number: what a single run hides. Drawn by seaborn.

seaborn brings pandas with it, which takes a second to load: it is imported by the first function that needs it, so that
a lesson's first cell stays quick.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .style import COLOURS, MARKERS, WIDTH, Numbers, as_array


def banded_line(ax: Axes, x: Numbers, y: Numbers, label: str | None, look: dict[str, object]) -> None:
    """The mean of several runs as a line, and a band from the lowest run to the highest.

    x (n,), y (runs, n). look: colour, dashes and marker, as matplotlib's `plot` takes them.
    """
    import seaborn

    x, y = as_array(x), as_array(y)
    look = {"markeredgecolor": look.get("color"), "markeredgewidth": 1, **look}
    seaborn.lineplot(
        x=np.tile(x, len(y)),
        y=y.ravel(),
        estimator="mean",
        errorbar=("pi", 100),
        label=label,
        legend=False,
        ax=ax,
        **look,
    )


def spread(
    values: dict[str, Numbers],
    xlabel: str,
    ylabel: str = "",
    landmarks: dict[str, float] | None = None,
    log: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> None:
    """Every run as a dot, one row for each setting, and a bar at the mean of the row: is a difference more than chance?

    values     {name of a setting: (runs,)}.
    landmarks  {name: value}: vertical lines to compare with. log: a logarithmic axis.
    """
    import seaborn

    ax = ax or plt.subplots(figsize=(WIDTH, 1.1 + 0.42 * len(values)))[1]
    for row, (name, runs) in enumerate(values.items()):
        runs = as_array(runs)
        look = {"color": COLOURS[row % 7], "marker": MARKERS[row % 7], "size": 7, "alpha": 0.75}
        seaborn.stripplot(x=runs, y=[name] * len(runs), orient="h", jitter=False, ax=ax, **look)
        mean = np.exp(np.log(runs).mean()) if log else runs.mean()
        ax.plot([mean, mean], [row - 0.3, row + 0.3], color="black", linewidth=2, linestyle="-")
    for name, value in (landmarks or {}).items():
        ax.axvline(value, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
        place = {"xycoords": ("data", "axes fraction"), "xytext": (3, -2), "textcoords": "offset points"}
        ax.annotate(name, (value, 1), va="top", fontsize=8.5, color="#333333", **place)
    if log:
        ax.set_xscale("log")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    if title:
        ax.set_title(title)


def distributions(
    samples: dict[str, Numbers],
    xlabel: str,
    expected: dict[str, tuple[Numbers, Numbers]] | None = None,
    names: tuple[str, str] = ("measured", "expected"),
    bins: int = 41,
    reach: dict[str, tuple[float, float]] | None = None,
    axes: Sequence[Axes] | None = None,
) -> None:
    """Histograms beside each other, as densities, each with the curve that was expected over it.

    samples   {title: (n,)}.
    expected  {title: (x, density)}: curves. names: what the legend calls the two.
    reach     {title: (left, right)}: the part of the axis that is drawn; by default all samples.
    """
    import seaborn

    own = axes is None
    if own:
        axes = plt.subplots(1, len(samples), figsize=(WIDTH, 2.9), squeeze=False)[1][0]
    for ax, (title, values) in zip(axes, samples.items(), strict=True):
        look = {"color": COLOURS[5], "edgecolor": "white", "linewidth": 0.3, "alpha": 1, "label": names[0]}
        ends = (reach or {}).get(title)
        seaborn.histplot(x=as_array(values), bins=bins, binrange=ends, stat="density", ax=ax, **look)
        if expected:
            x, y = map(as_array, expected[title])
            ax.plot(x, y, color="black", linestyle="-", label=names[1])
        ax.set(title=title, xlabel=xlabel, ylabel="")
    axes[0].set_ylabel("density")
    if own and expected:
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
