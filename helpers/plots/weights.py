"""Matrices as heat maps: raw scores, attention weights, masks, Jacobians."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import ConnectionPatch

from .style import CENTRED, SIGNED, WEIGHTS, WIDTH, Numbers, as_array, lightness
from .themed import IN_CELLS

ROWS, COLUMNS = "position i (output)", "position j (input)"
_SHORTER = {"0.0": "0", "0.00": "0", "1.00": "1.0"}
CROWDED = 10  # more rows or columns than this, and numbers no longer fit


def heat(
    matrix: Numbers,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    signed: bool | None = None,
    annotate: bool | None = None,
    scale: float | None = None,
    title: str | None = None,
    row_label: str = ROWS,
    column_label: str = COLUMNS,
    digits: int | None = None,
    blank_zeros: bool = False,
    bar: bool | None = None,
    ax: Axes | None = None,
) -> None:
    """One matrix. Darker is larger; blue is positive, orange is negative.

    matrix        (t, s), a tensor on any device or an array. Row i is what output i looks at.
    rows, columns names of the rows (t) and columns (s), such as the words of a sentence; numbers by default.
                  With rows alone, a square matrix uses them for both.
    signed        True centres the colours on zero; by default, when an entry is negative.
    annotate      write the number into each cell; by default, while there are at most ten a side. Without
                  numbers, each negative cell carries a dash: colour alone would not survive grey print.
    scale         the size with the darkest colour; by default the largest size in the matrix.
    digits        after the point; by default 2 up to size 1, else 1.
    blank_zeros   hatch the cells that are exactly 0 and write nothing into them: 0.001 and 0 look different then.
    bar           draw the colour scale beside the map; by default in a figure of its own whose cells hold no numbers.

    Cells that hold no number are hatched: NaN says so; infinities do where cells are annotated (a mask is full of
    them).
    """
    values = _matrix(matrix)
    own = ax is None
    if ax is None:
        ax = plt.subplots(figsize=(WIDTH, WIDTH), layout="compressed")[1]
    blank = (values == 0) & blank_zeros
    finite = np.isfinite(values) & ~blank
    largest = np.abs(values[finite]).max(initial=0)
    signed = bool((values[finite] < 0).any()) if signed is None else signed
    annotate = max(values.shape) <= CROWDED if annotate is None else annotate
    scale = float(largest if scale is None else scale) or 1.0
    digits = (2 if largest <= 1.005 else 1) if digits is None else digits

    colours, least = (SIGNED, -scale) if signed else (WEIGHTS, 0)
    ax.imshow(np.ma.masked_array(values, ~finite), cmap=colours, aspect="equal", vmin=least, vmax=scale)
    texts = np.vectorize(lambda value: _cell_text(value, digits, annotate), otypes=[object])(values)
    _write(ax, np.where(blank, "", texts), finite)
    if columns is None and values.shape[0] == values.shape[1]:
        columns = rows
    _name_ticks(ax.yaxis, rows, values.shape[0])
    _name_ticks(ax.xaxis, columns, values.shape[1])
    ax.set(xlabel=column_label, ylabel=row_label)
    if title:
        ax.set_title(title)
    frame_map(ax)
    if own and not annotate if bar is None else bar:
        colour_scale(ax)
    if own:
        _trim_height(ax.figure)
    _fit_numbers(ax, values.shape[1])


def _write(ax: Axes, texts: np.ndarray, finite: np.ndarray) -> None:
    """Words into the cells of a map, white in dark ones; both (rows, columns)."""
    image = ax.images[-1]
    dark = lightness(image.to_rgba(np.ma.asarray(image.get_array()))) < 50
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    for i, j in np.ndindex(texts.shape):
        if finite[i, j] and texts[i, j]:
            ax.text(j, i, str(texts[i, j]), color=IN_CELLS["white" if dark[i, j] else "black"], **CENTRED)
        elif texts[i, j]:
            ax.text(j, i, str(texts[i, j]), color="black", bbox=box, **CENTRED)


def frame_map(ax: Axes) -> None:
    """A thin frame around a map, no grid and no ticks, and hatching, which is seen through cells without a number."""
    ax.patch.set(hatch="////", edgecolor="#c8c8c8", facecolor="white", zorder=-1)
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set(visible=True, color="#999999", linewidth=0.8)


def heat_pair(
    left: Numbers,
    right: Numbers,
    rows: Sequence | None = None,
    columns: Sequence | None = None,
    titles: Sequence[str | None] = (None, None),
    same_scale: bool = False,
    joined: Sequence[int] | None = None,
    **options: Any,
) -> None:
    """Two matrices beside each other: scores and weights; outputs before and after a permutation.

    left, right   (t, s) each. The rows are named once, on the left, when both sides share their names.
    rows, columns one list of names for both, or a pair of lists, one for each side.
    titles        one for each side.
    same_scale    True: one colour scale, so that equal colours are equal numbers. False: each has its own.
    joined        for two orders of the same rows: the places, on the left, of the rows on the right. A line then joins
                  each row to itself, and the names of the right side stand at its right.
    options       anything else that `heat` takes, for both sides.

    Where the cells hold no numbers, a colour scale stands beside the right map, or under each if they have their own.
    """
    pair = _matrix(left), _matrix(right)
    row_names, column_names = _for_both(rows), _for_both(columns)
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, WIDTH), layout="compressed")
    if same_scale:
        both = np.concatenate([matrix[np.isfinite(matrix)] for matrix in pair])
        options = {"scale": np.abs(both).max(initial=0), "signed": bool((both < 0).any()), **options}
    for side, (ax, matrix) in enumerate(zip(axes, pair, strict=True)):
        heat(matrix, row_names[side], column_names[side], title=titles[side], ax=ax, **options)
    if pair[0].shape[0] == pair[1].shape[0]:
        axes[1].set_ylabel("")
        if row_names[0] == row_names[1]:
            axes[1].set_yticklabels([])
    if joined is not None:
        _join_rows(axes, joined)
    if not options.get("annotate", max(max(matrix.shape) for matrix in pair) <= CROWDED):
        same_scale = same_scale or options.get("scale") is not None
        for ax in axes[1:] if same_scale else axes:
            colour_scale(ax, list(axes) if same_scale else [ax], "right" if same_scale else "bottom")
    _trim_height(figure)
    for ax, matrix in zip(axes, pair, strict=True):
        _fit_numbers(ax, matrix.shape[1])


def colour_scale(ax: Axes, beside: Sequence[Axes] | None = None, side: str = "right") -> None:
    """Which colour is which number, for the map on these axes, beside them or beside several: "right" or "bottom"."""
    beside = [ax] if beside is None else beside
    look: dict[str, Any] = {"shrink": 0.8, "aspect": 22, "pad": 0.02 if side == "right" else 0.12, "location": side}
    ax.figure.colorbar(ax.images[0], ax=beside, **look).outline.set_visible(False)


def _join_rows(axes, joined):
    """A thin line from each row of the left map to where it stands on the right."""
    if (layout := axes[0].figure.get_layout_engine()) is not None:
        layout.set(wspace=0.2)
    axes[1].yaxis.tick_right()
    axes[1].tick_params(length=0)
    edges = axes[0].get_xlim()[1], axes[1].get_xlim()[0]
    for right, left in enumerate(joined):
        line = ConnectionPatch((edges[0], int(left)), (edges[1], right), "data", "data", axesA=axes[0], axesB=axes[1])
        line.set(color="#888888", linewidth=1)
        line.set_in_layout(False)
        axes[0].figure.add_artist(line)


def _matrix(matrix):
    values = as_array(matrix)
    if values.ndim != 2:
        raise ValueError(
            f"a heat map needs a matrix, (rows, columns); this has shape {tuple(values.shape)}. "
            "Of a batch, take one: weights[0]."
        )
    return values


def _cell_text(value, digits, annotate):
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "" if not annotate else "∞" if value > 0 else "−∞"
    if not annotate:
        return "–" if value < 0 else ""
    text = f"{value:.{digits}f}"
    return text.replace("-", "−" if float(text) else "")  # never "−0.00"


def _fit_numbers(ax, columns):
    """The largest type, up to 9 points, with which numbers stay inside their cells; ".43" for "0.43" in small ones."""
    if not ax.texts:
        return
    ax.figure.draw_without_rendering()  # settles the layout: only now is the width of a cell known
    room = 0.88 * ax.get_window_extent().width / columns
    if _set_type_size(ax, room) < 7.5:
        for text in ax.texts:
            text.set_text(_SHORTER.get(text.get_text()) or re.sub(r"^(−?)0\.", r"\1.", text.get_text()))
        _set_type_size(ax, room)


def _set_type_size(ax, room):
    for text in ax.texts:
        text.set_fontsize(9.0)
    size = 9.0 * min(1.0, room / max(text.get_window_extent().width for text in ax.texts))
    for text in ax.texts:
        text.set_fontsize(size)
    return size


def _trim_height(figure):
    """Cut the empty paper above and below maps whose height follows from their width."""
    figure.draw_without_rendering()
    figure.set_figheight(figure.get_tightbbox().height + 0.15)


def _name_ticks(axis, names, count):
    if names is None:
        axis.set_ticks(range(0, count, -(-count // 12)))
        return
    if len(names) != count:
        raise ValueError(f"{len(names)} names for {count} rows or columns")
    axis.set_ticks(range(count), labels=list(names))
    if axis.axis_name == "x" and max(len(str(name)) for name in names) > 2:
        axis.set_tick_params(labelrotation=90)


def _for_both(names):
    two = names is not None and len(names) == 2 and all(isinstance(side, (list, tuple)) for side in names)
    return [list(side) for side in names] if two else [names, names]
