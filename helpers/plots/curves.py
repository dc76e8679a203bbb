"""Numbers over time, and over anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .style import COLOURS, DASHES, MARKERS, WIDTH, Numbers, as_array


def loss_curve(
    losses: Numbers | dict[str, Numbers],
    xlabel: str = "step",
    ylabel: str = "loss",
    landmarks: dict[str, float] | None = None,
    log: bool = False,
    title: str | None = None,
    smooth: int = 1,
    ax: Axes | None = None,
) -> None:
    """Loss against training step. Lower is better; a curve that has gone flat has learned what it can.

    losses     a list of numbers, one a step, or {name: list} for several curves. Runs of one curve, (runs, steps),
               are drawn as their mean with a band from the lowest to the highest.
    landmarks  {name: value}: horizontal lines to compare with, such as {"always the mean": 1.2}.
    log        a logarithmic loss axis: a straight line is then a constant rate of improvement.
    smooth     average over this many steps, drawn over the raw curve, which stays visible behind it.
    """
    losses = losses if isinstance(losses, dict) else {"": losses}
    ax = ax or plt.subplots()[1]
    series = {}
    for k, (name, values) in enumerate(losses.items()):
        values = as_array(values)
        steps = np.arange(1, values.shape[-1] + 1)
        if smooth > 1:
            ax.plot(steps, values.T, color=COLOURS[k % 7], linewidth=0.7, alpha=0.35, linestyle="-")
            values = np.apply_along_axis(np.convolve, -1, values, np.ones(smooth) / smooth, "valid")
            steps = steps[smooth - 1 :]
        series[name] = (steps, values)
    curves(series, xlabel, ylabel, landmarks=landmarks, log="y" if log else "", title=title, ax=ax)
    if not log:
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]) if all((v >= 0).all() for _, v in series.values()) else None)


def curves(
    series: Mapping[str, tuple[Numbers, Numbers]],
    xlabel: str,
    ylabel: str,
    landmarks: dict[str, float] | None = None,
    log: str = "",
    title: str | None = None,
    ax: Axes | None = None,
    named_at: str = "right",
) -> None:
    """Lines, each with its own colour, dashes and marker, so that they can be told apart in grey too.

    series     {name: (x, y)}, x and y of equal length; with one unnamed line ("") there is no legend. Where y has shape
               (runs, n), the line is the mean of the runs and a band reaches from the lowest to the highest.
    landmarks  {name: value}: horizontal lines, named where they meet the right edge.
    log        "x", "y" or "xy": which axes are logarithmic.
    named_at   "left": landmarks are named at the left edge, and higher above their lines; where data is at the right.
    """
    ax = ax or plt.subplots(figsize=(WIDTH, 3.6))[1]
    for k, (name, (x, y)) in enumerate(series.items()):
        x, y = as_array(x), as_array(y)
        look: dict[str, Any] = {
            "color": COLOURS[k % 7],
            "linestyle": DASHES[k % 7],
            "marker": MARKERS[k % 7] if len(series) > 1 or len(x) <= 20 else None,
            "markevery": max(1, len(x) // 8),
            "markersize": 5,
            "markerfacecolor": "white",
            "markeredgecolor": COLOURS[k % 7],
        }
        if y.ndim == 2:
            import seaborn  # brings pandas, which takes a second: a lesson's first cell does without

            runs, steps = y.ravel(), np.tile(x, len(y))
            seaborn.lineplot(x=steps, y=runs, errorbar=("pi", 100), label=name or None, legend=False, ax=ax, **look)
        else:
            ax.plot(x, y, label=name or None, **look)
    for name, value in (landmarks or {}).items():
        ax.axhline(value, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
        edge, offset = (1, (-2, 2)) if named_at == "right" else (0, (4, 5))
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": offset, "textcoords": "offset points"}
        ax.annotate(name, (edge, value), ha=named_at, va="bottom", fontsize=8.5, color="#333333", **place)
    for axis in log:
        getattr(ax, f"set_{axis}scale")("log")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if title:
        ax.set_title(title)
    if any(series):
        ax.legend()
