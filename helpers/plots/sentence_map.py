"""The sentence that comes again in lessons 1 to 7: which word looks at which."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt

from .style import WIDTH, Numbers, as_array
from .weights import _trim_height, colour_scale, heat

ROWS, COLUMNS = "word that looks", "word that is looked at"
ALONE = 0.62  # of the width, for one map


def sentence_map(weights: Numbers, words: Sequence[str], titles: Sequence[str] | str = "", across: int = 3) -> None:
    """One map of weights, or several beside each other, all on one scale from 0 to 1.

    weights  (t, t), or (h, t, t) for several maps. Entry i, j: how much of its weight word i gives to word j.
    words    the t words.
    titles   one for each map. ValueError where there are fewer or more.
    across   so many maps beside each other, then a new line.
    """
    maps = as_array(weights)
    maps = maps[None] if maps.ndim == 2 else maps
    titles = [titles] * len(maps) if isinstance(titles, str) else titles
    if len(titles) != len(maps):
        raise ValueError(f"{len(titles)} titles for {len(maps)} maps")
    across = min(across, len(maps))
    down = -(-len(maps) // across)
    width = WIDTH if across > 1 else ALONE * WIDTH
    figure, axes = plt.subplots(
        down, across, figsize=(width, 1.25 * width * down / across), squeeze=False, layout="compressed"
    )
    for place, ax in enumerate(axes.flat):
        if place >= len(maps):
            ax.set_axis_off()
            continue
        heat(maps[place], words, scale=1, annotate=False, title=titles[place], row_label="", column_label="", ax=ax)
        if place % across:
            ax.set_yticklabels([])
        if place + across < len(maps):
            ax.set_xticklabels([])
    colour_scale(axes.flat[0], axes.ravel().tolist())
    figure.supxlabel(COLUMNS, fontsize=10)
    figure.supylabel(ROWS, fontsize=10)
    _trim_height(figure)
