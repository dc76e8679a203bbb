"""Masks: who may look at whom."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap

from .style import COLOURS, WIDTH, Numbers, as_array
from .weights import COLUMNS, ROWS, _name_ticks, _trim_height, frame_map


def mask_row(
    masks: Sequence[Numbers],
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    row_label: str = ROWS,
    column_label: str = COLUMNS,
    axes: Sequence[Axes] | None = None,
) -> None:
    """Masks side by side. A filled cell: row i may look at column j. An empty, hatched cell: it may not.

    masks         a list of (t, s) tensors of booleans, or one that is (1, s), for all rows alike.
    rows, columns names of the rows and columns, the same for all masks; numbers by default. With rows alone, square
                  masks use them for both.
    titles        one for each mask.
    axes          as many axes; by default a new figure.
    """
    own = axes is None
    if axes is None:
        figure = plt.figure(figsize=(WIDTH, WIDTH), layout="compressed")
        axes = list(figure.subplots(1, len(masks), squeeze=False).flat)
    for place, (ax, mask) in enumerate(zip(axes, masks, strict=True)):
        values = np.atleast_2d(as_array(mask))
        ax.imshow(np.ma.masked_equal(values, 0), cmap=ListedColormap([COLOURS[0]]), aspect="equal")
        for count, line in zip(values.shape, (ax.axhline, ax.axvline), strict=True):
            for edge in np.arange(0.5, count - 1):
                line(edge, color="white", linewidth=1.2, linestyle="-")
        square = columns is None and values.shape[0] == values.shape[1]
        _name_ticks(ax.yaxis, rows if values.shape[0] > 1 else ["all"], values.shape[0])
        _name_ticks(ax.xaxis, rows if square else columns, values.shape[1])
        ax.set(xlabel=column_label, ylabel=row_label if place == 0 else "")
        if titles:
            ax.set_title(titles[place])
        frame_map(ax)
    if own:
        _trim_height(axes[0].figure)
