"""The sentence that comes again in lessons 1 to 6: which word looks at which."""

from __future__ import annotations

from collections.abc import Sequence

from .heads import head_grid
from .style import WIDTH, Numbers, as_array

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
    width = WIDTH if min(across, len(maps)) > 1 else ALONE * WIDTH
    head_grid(maps, words, None, titles, across, ROWS, COLUMNS, width, annotate=False)
