"""Text with a colour behind every character, or behind every token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .style import CENTRED, SIGNED, WEIGHTS, WIDTH, Numbers, as_array, lightness
from .themed import IN_CELLS

DARKEST = 10  # bits
TINTS = ["#d8eaf6", "#fbe8c4", "#d3efe5", "#f4e0eb"]  # of neighbouring tokens; none means anything


def surprise(
    text: str | bytes,
    bits: Numbers,
    across: int = 56,
    darkest: float = DARKEST,
    label: str = "bits that the character cost",
    title: str | None = None,
) -> None:
    """A passage in lines of equal length; the darker a cell, the less its character was expected.

    text    characters, or bytes: what is not printable ASCII is drawn as a dot, the end of a line as ¶.
    bits    as many numbers, −log₂ of the probability that each character was given; or the differences between
            two such rows of numbers, which are drawn in two colours if some are negative.
    across  characters in a line.
    darkest bits of the darkest colour; more is drawn like it.
    label   what stands below the scale of colours; title, what stands above the passage.
    """
    characters = _characters(text)
    values = as_array(bits)
    if values.shape != (len(characters),):
        raise ValueError(f"{len(characters)} characters, and bits of shape {values.shape}")
    down = -(-len(characters) // across)
    figure, ax = plt.subplots(figsize=(WIDTH, 0.24 * down + 0.75), layout="constrained")
    signed = bool((values < 0).any())
    paint = ScalarMappable(Normalize(-darkest if signed else 0, darkest), SIGNED if signed else WEIGHTS)
    _cells(ax, 0, characters, paint.to_rgba(values), across)
    ax.set(xlim=(0, across), ylim=(down, 0))
    ax.set_axis_off()
    if title:
        ax.set_title(title)
    _scale(figure, ax, paint, label)


def surprise_by_model(text: str | bytes, bits: Mapping[str, Numbers], darkest: float = DARKEST) -> None:
    """The same line of text once for each model; the darker a cell, the less the model expected the character.

    text    characters, or bytes, drawn as in `surprise`.
    bits    from a model's name to the bits that each character cost it. Their mean is written behind the name.
    darkest bits of the darkest colour; more is drawn like it.
    """
    characters, values = _characters(text), {name: as_array(row) for name, row in bits.items()}
    for name, row in values.items():
        if row.shape != (len(characters),):
            raise ValueError(f"{len(characters)} characters, and for {name} bits of shape {row.shape}")
    figure, ax = plt.subplots(figsize=(WIDTH, 0.5 * len(values) + 0.6), layout="constrained")
    paint = ScalarMappable(Normalize(0, darkest), WEIGHTS)
    for i, (name, row) in enumerate(values.items()):
        ax.text(0, 2 * i + 0.85, f"{name} ({row.mean():.2f})", fontsize=9, va="bottom")
        _cells(ax, 2 * i + 1, characters, paint.to_rgba(row), len(characters))
    ax.set(xlim=(0, len(characters)), ylim=(2 * len(values), 0))
    ax.set_axis_off()
    _scale(figure, ax, paint, f"bits that the character cost (at the dark end, {darkest:g} or more)")


def _characters(text: str | bytes) -> str:
    return text.decode("latin-1") if isinstance(text, bytes) else text


def _cells(ax: Axes, top: float, characters: str, colours: np.ndarray, across: int) -> None:
    """The characters in lines from that height downwards. colours: (n, 4)."""
    down = -(-len(characters) // across)
    cells = np.zeros((down * across, 4))  # one picture: a rectangle for each would make the SVG too large to store
    cells[: len(characters)] = colours
    ax.imshow(cells.reshape(down, across, 4), extent=(0, across, top + down, top), aspect="auto")
    ink = np.where(lightness(colours) < 55, IN_CELLS["white"], IN_CELLS["black"])
    for place, character in enumerate(characters):
        i, j = divmod(place, across)
        look = {"fontsize": 8.5, "family": "DejaVu Sans Mono", "color": ink[place], "parse_math": False, **CENTRED}
        ax.text(j + 0.5, top + i + 0.54, _drawn(character), **look)


def _scale(figure: Figure, ax: Axes, paint: ScalarMappable, label: str) -> None:
    bar = figure.colorbar(paint, ax=ax, orientation="horizontal", aspect=50, pad=0.02, shrink=0.7)
    bar.set_label(label, fontsize=9)
    bar.outline.set_visible(False)


def _drawn(character):
    if character == "\n":
        return "¶"
    return character if " " <= character <= "~" else "·"


def token_rows(rows: Mapping[str, Sequence[str]]) -> None:
    """The same text cut in several ways, one below the other; each token has a colour of its own and an edge.

    rows  from what is written above a row to its tokens, as they are to be drawn.
    """
    across = max(sum(map(len, tokens)) for tokens in rows.values())
    ax = plt.subplots(figsize=(WIDTH, 0.56 * len(rows) + 0.1))[1]
    for row, (label, tokens) in enumerate(rows.items()):
        ax.text(0, 2.2 * row + 0.72, f"{label}: {len(tokens)} tokens", fontsize=9, va="bottom")
        left = 0
        for k, token in enumerate(tokens):
            corner, tint = (left, 2.2 * row + 0.85), TINTS[k % len(TINTS)]
            ax.add_patch(Rectangle(corner, len(token), 1, facecolor=tint, edgecolor="#555555", linewidth=0.7))
            words = ax.text(left + len(token) / 2, 2.2 * row + 1.38, token, fontsize=8.5, **CENTRED)
            words.set(family="DejaVu Sans Mono", color=IN_CELLS["black"], parse_math=False)
            left += len(token)
    ax.set(xlim=(-0.2, across + 0.2), ylim=(2.2 * len(rows) - 0.2, -0.2))
    ax.set_axis_off()
