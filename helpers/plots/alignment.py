"""Which word of one sentence belongs to which of another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import matplotlib.pyplot as plt

from .style import COLOURS, WIDTH

_PLAIN = "#8a8a8a"


def alignment(
    above: Sequence[str],
    below: Sequence[str],
    links: Iterable[tuple[int, int]],
    crossing: Collection[tuple[int, int]] = (),
) -> None:
    """Two sentences, one over the other, with lines between the words that belong together.

    above, below  lists of words.
    links         pairs (i, j): word i above belongs to word j below.
    crossing      those of the links that are to stand out: they are drawn thick, in colour, and solid; the others
                  are thin and grey.
    """
    ax = plt.subplots(figsize=(WIDTH, 1.9))[1]
    places = [[(k + 0.5) / len(words) for k in range(len(words))] for words in (above, below)]
    for i, j in links:
        strong = (i, j) in crossing
        colour, width = (COLOURS[1], 2.4) if strong else (_PLAIN, 1.2)
        ax.plot([places[0][i], places[1][j]], [0.8, 0.2], color=colour, linewidth=width, linestyle="-")
    for words, spots, height in ((above, places[0], 0.9), (below, places[1], 0.1)):
        for word, spot in zip(words, spots, strict=True):
            ax.text(spot, height, word, ha="center", va="center", fontsize=9)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_axis_off()
