"""A text as masked language modelling shows it to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt

from .style import WIDTH
from .themed import IN_CELLS

# The box of each fate, and its hatching for grey print
_LOOKS = {"[MASK]": "#9fd0ee", "another token": "#f3c26b", "kept": "#c4e6d4"}


def hidden_words(shown: Sequence[str], true: Sequence[str], fates: Sequence[str], across: int = 76) -> None:
    """A text, token by token: boxes around those that are asked for, the true one in parentheses where it was replaced.

    shown, true  what the model sees, and what stood there, a string a token.
    fates        "[MASK]", "another token" or "kept" for tokens that are asked for, "" for all others.
    across       characters a line.
    """
    lines: list[list[tuple[int, str, str]]] = [[]]
    width = 0
    for seen, was, fate in zip(shown, true, fates, strict=True):
        words = f"{seen} ({was})" if fate in ("[MASK]", "another token") else seen
        if width + len(words) > across:
            lines.append([])
            width = 0
        lines[-1].append((width, words, fate))
        width += len(words) + 2
    figure, ax = plt.subplots(figsize=(WIDTH, 0.34 * (len(lines) + 1.6)))
    for k, line in enumerate([*lines, [(20 * i, name, name) for i, name in enumerate(_LOOKS)]]):
        down = k + 0.6 * (k == len(lines))
        for x, words, fate in line:
            box = {"facecolor": _LOOKS[fate], "edgecolor": "#333333", "pad": 1.5, "linewidth": 0.7} if fate else None
            colour: dict[str, Any] = {"color": IN_CELLS["black"]} if fate else {}
            ax.text(x / across, -down, words, fontsize=8.5, family="monospace", va="center", bbox=box, **colour)
    ax.set(xlim=(-0.02, 1.0), ylim=(-len(lines) - 1.1, 0.6))
    ax.set_axis_off()
