"""Several heads: what each looks at, and how a tensor is cut into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from .style import CENTRED, WIDTH, Numbers, as_array
from .themed import IN_CELLS
from .weights import COLUMNS, CROWDED, ROWS, _fit_numbers, _trim_height, colour_scale, heat

# Apart in lightness as well as in hue, so that grey print keeps them apart. With each, the colour of the writing on it.
# Blue, orange and green are left to queries, keys and values.
_HEADS = [
    ("#ddd3f5", "black"),
    ("#a8b545", "black"),
    ("#7d4f2b", "white"),
    ("#fdfdfd", "black"),
    ("#4f3a8c", "white"),
    ("#e3c3d4", "black"),
]


def head_grid(
    weights: Numbers,
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    across: int = 3,
    row_label: str = ROWS,
    column_label: str = COLUMNS,
    width: float = WIDTH,
    **options: Any,
) -> None:
    """A map of weights for each head, all on one scale from 0 to 1, so that equal colours are equal weights.

    weights        (h, t, s), the weights of one sentence.
    rows, columns  names of the t and the s positions; with rows alone, both are named by them.
    titles         one for each head; by default "head 1" and so on.
    across         so many maps beside each other, then a new line.
    width          of the figure, in inches.
    options        anything else that `heat` takes. Cells without numbers get one colour scale, at the right.
    """
    weights = as_array(weights)
    if weights.ndim != 3:
        raise ValueError(
            f"a grid of heads needs (h, t, s); this has shape {weights.shape}. Of a batch, take one: weights[0]."
        )
    h, across = len(weights), min(across, len(weights))
    down = -(-h // across)
    figure, axes = plt.subplots(
        down, across, figsize=(width, 1.25 * width * down / across), squeeze=False, layout="compressed"
    )
    for k, ax in enumerate(axes.flat):
        if k >= h:
            ax.set_axis_off()
            continue
        title = titles[k] if titles else f"head {k + 1}"
        heat(weights[k], rows, columns, scale=1, title=title, row_label="", column_label="", ax=ax, **options)
        if k % across:
            ax.set_yticklabels([])
        if k + across < h:
            ax.set_xticklabels([])
    if not options.get("annotate", max(weights.shape[1:]) <= CROWDED):
        colour_scale(axes.flat[0], axes.ravel().tolist())
    figure.supxlabel(column_label, fontsize=10)
    figure.supylabel(row_label, fontsize=10)
    _trim_height(figure)
    for k in range(h):
        _fit_numbers(axes.flat[k], weights.shape[2])


def fold(panels: Sequence[Numbers], e: int, d: int, titles: Sequence[str] | None = None) -> None:
    """How the numbers of a tensor are cut into heads. Each cell says whose it is: "2,3" is component 3 of position 2.
    All are counted from 0.

    panels  a list of tensors (rows, columns) or (h, rows, columns), drawn one below the other; the h blocks of a panel
            stand beside each other. Entries are position·e + component: torch.arange(t * e).view(t, e), and what
            became of it.
    e, d    width of a position and of a head: a cell's colour is the head that its component belongs to,
            component // d.
    """
    blocks = [values[None] if values.ndim == 2 else values for values in map(as_array, panels)]
    wide = max(b.shape[0] * b.shape[2] + 0.7 * (b.shape[0] - 1) for b in blocks)
    high = [b.shape[1] + 0.2 for b in blocks]
    figure, axes = plt.subplots(
        len(blocks), 1, figsize=(WIDTH, 0.31 * sum(high) + 0.42 * len(blocks)), height_ratios=high, squeeze=False
    )
    for k, (ax, panel) in enumerate(zip(axes[:, 0], blocks, strict=True)):
        for head, block in enumerate(panel):
            left = head * (block.shape[1] + 0.7)
            for (i, j), mark in np.ndenumerate(block):
                position, component = divmod(int(mark), e)
                colour, ink = _HEADS[component // d % len(_HEADS)]
                ax.add_patch(Rectangle((left + j, i), 1, 1, facecolor=colour, edgecolor="#555555", linewidth=0.8))
                name = f"{position},{component}"
                ax.text(left + j + 0.5, i + 0.52, name, fontsize=8.5, color=IN_CELLS[ink], **CENTRED)
            if len(panel) > 1:
                middle = left + block.shape[1] / 2
                ax.text(middle, block.shape[0] + 0.12, f"head {head}", ha="center", va="top", fontsize=8.5)
        ax.set(xlim=(-0.05, wide + 0.05), ylim=(panel.shape[1] + (0.8 if len(panel) > 1 else 0.1), -0.05))
        ax.set_axis_off()
        if titles:
            ax.set_title(titles[k], fontsize=10, pad=4)
