"""Vectors as points on a plane."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .style import CENTRED, COLOURS, HALO, MARKERS, WIDTH, Numbers, arrow, as_array


def plane(
    xy: Numbers,
    names: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    labels: tuple[str, str] = ("first component", "second component"),
    title: str | None = None,
    ax: Axes | None = None,
) -> None:
    """Named points on a plane: near points have similar vectors, opposite points large negative dot products.

    xy      (n, 2).
    names   n labels, placed so that none covers another; None for no labels.
    groups  n group names: each group has a colour and a marker of its own, and a line in the legend.
    labels  what the two axes show.
    """
    xy, own = _points(xy), ax is None
    if ax is None:
        ax = plt.subplots(figsize=(WIDTH, 4.8))[1]
    kinds = list(dict.fromkeys(groups)) if groups is not None else [None]
    for k, kind in enumerate(kinds):
        mine = np.array([groups is None or groups[place] == kind for place in range(len(xy))])
        x, y = xy[mine].T
        ax.scatter(x, y, color=COLOURS[k % 7], marker=MARKERS[k % 7], s=34, label=kind, zorder=3)
    ax.axhline(0, color="#888888", linewidth=0.9, zorder=1)
    ax.axvline(0, color="#888888", linewidth=0.9, zorder=1)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    ax.margins(0.12)
    if title:
        ax.set_title(title)
    if groups is not None and own:  # below the axes, where it hides nothing
        ax.figure.legend(loc="outside lower center", ncols=len(kinds))
    elif groups is not None:
        ax.legend()
    if names is not None:
        label_points(ax, xy, names)


def label_points(ax: Axes, xy: Numbers, names: Sequence[str], avoid: Numbers | None = None) -> None:
    """Name points so that no label covers another label or a point. Call it last: it needs the final axis limits.

    xy     (n, 2), in the coordinates of the axes.
    names  n strings.
    avoid  (m, 2) more points that no label may cover.

    Each label takes the best free place around its point, near places first; a thin line joins it to its point when
    it had to move away. There is no chance in it: the same points give the same picture.
    """
    xy = _points(xy)
    ax.figure.draw_without_rendering()  # settles the layout, so that data can be measured in pixels
    renderer, pixel = ax.figure.canvas.get_renderer(), ax.figure.dpi / 72
    points = ax.transData.transform(xy)
    others = points if avoid is None else np.vstack([points, ax.transData.transform(_points(avoid))])
    obstacles = np.hstack([others - 4 * pixel, others + 4 * pixel])
    frame = ax.get_window_extent(renderer)
    look: dict[str, Any] = {"fontsize": 8.5, "color": "#222222", "zorder": 4, "bbox": HALO, **CENTRED}
    labels = [ax.text(0, 0, name, **look) for name in names]
    sizes = [label.get_window_extent(renderer) for label in labels]

    # Crowded points choose first: the others have room to give way.
    gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + np.where(np.eye(len(points)), np.inf, 0)
    placed = np.empty((0, 4))
    for i in np.argsort(np.sort(gaps, axis=1)[:, :3].sum(axis=1), kind="stable"):
        half = np.array([sizes[i].width, sizes[i].height]) / 2
        centre = min(
            _places(points[i], half, pixel),
            key=lambda place: _cost(place, half, i, points, obstacles, placed, frame, pixel),
        )
        placed = np.vstack([placed, np.hstack([centre - half, centre + half])])
        labels[i].set_position(ax.transData.inverted().transform(centre))
        labels[i].set_in_layout(False)  # a label must not move the axes that it was measured on
        nearest = np.clip(points[i], centre - half, centre + half)
        if np.linalg.norm(nearest - points[i]) > 9 * pixel:
            ends = ax.transData.inverted().transform([points[i], nearest]).T
            line: dict[str, Any] = {"color": "#999999", "linewidth": 0.7, "linestyle": "-", "marker": "", "zorder": 2}
            ax.plot(*ends, in_layout=False, **line)


def _places(point, half, pixel):
    """Centres for a label of this half size: rings of places around the point, the nearest and most usual first."""
    for distance, turn in itertools.product((5, 9, 15, 23, 33, 45), range(16)):
        angle = math.pi / 8 * turn
        towards = np.array([math.cos(angle), math.sin(angle)])
        yield point + towards * (half + distance * pixel)


def _cost(centre, half, i, points, obstacles, placed, frame, pixel):
    """How bad a place is: covering anything is far worse than being far away."""
    box = np.hstack([centre - half - pixel, centre + half + pixel])
    outside = (
        max(0, frame.x0 - box[0]) + max(0, frame.y0 - box[1]) + max(0, box[2] - frame.x1) + max(0, box[3] - frame.y1)
    )
    away = np.linalg.norm(np.clip(points[i], box[:2], box[2:]) - points[i])
    sideways = 0.15 * abs(centre[1] - points[i][1])  # beside the point reads better than above it
    return 1e6 * _overlap(box, placed) + 1e4 * _overlap(box, obstacles) + 1e4 * outside + away + sideways


def _overlap(box, boxes):
    """Area that a box (4,) shares with boxes (n, 4), corners as x0, y0, x1, y1."""
    shared = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    return np.clip(shared, 0, None).prod(axis=1).sum()


def convex_hull(points: Numbers) -> np.ndarray:
    """The corners of the smallest convex shape around points, anticlockwise from the leftmost.

    points (n, 2) -> (m, 2) array, m <= n. Andrew's monotone chain (1979): walk along the points from left to right
    and drop every point that does not make a left turn; then back again.
    """
    points = sorted(map(tuple, _points(points).tolist()))
    points = [p for p, _ in itertools.groupby(points)]
    if len(points) < 3:
        return np.array(points)

    def chain(walk):
        kept = []
        for x, y in walk:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], (x, y)) <= 0:
                kept.pop()
            kept.append((x, y))
        return kept[:-1]

    return np.array(chain(points) + chain(points[::-1]))


def _turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def hull_picture(inputs: Numbers, outputs: Numbers) -> None:
    """Inputs of an attention and its outputs, (t, 2) each; an arrow leads from each input to its output.

    The shaded region is the convex hull of the inputs: an output that is an average of them cannot leave it.
    """
    before, after = _points(inputs), _points(outputs)
    ax = plt.subplots(figsize=(WIDTH, 4.6))[1]
    region: dict[str, Any] = {"facecolor": "#e8f1f8", "edgecolor": "#7f9db3", "linewidth": 1, "linestyle": "-"}
    ax.fill(*convex_hull(before).T, label="convex hull of the inputs", **region)
    for start, end in zip(before, after, strict=True):
        arrow(ax, start, end, zorder=2, color="#666666", linewidth=1, shrinkA=4, shrinkB=4, mutation_scale=9)
    hollow: dict[str, Any] = {"facecolor": "white", "edgecolor": COLOURS[0], "linewidth": 1.8}
    ax.scatter(before[:, 0], before[:, 1], s=46, marker="o", label="inputs x", zorder=3, **hollow)
    ax.scatter(after[:, 0], after[:, 1], s=42, color=COLOURS[1], marker="D", label="outputs y", zorder=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="first component", ylabel="second component")
    ax.margins(0.12)
    ax.figure.legend(loc="outside lower center", ncols=3)


def _points(points: Numbers) -> np.ndarray:
    points = as_array(points)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"points on a plane have shape (n, 2); this has shape {tuple(points.shape)}")
    return points
