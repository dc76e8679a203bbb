"""Matrices as small grids of numbers, for examples that are worked by hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from .diagrams.drawing import NORMAL, SMALL, WIDTH, Sheet
from .style import Numbers, as_array

MARGIN, GAP, NAMES, ROW, TITLE = 4, 12, 36, 22, 26  # units of a sheet; NAMES: the room for the rows' names
_KINDS = {"q": "blue", "k": "orange", "v": "green", "w": "purple", "y": "red"}  # as in the diagrams; others are plain

Grids = Mapping[str, Numbers]


def number_grids(
    name: str, title: str, rows: Sequence[str], lines: Sequence[Grids], empty: Collection[tuple[str, int, int]] = ()
) -> Sheet:
    """A sheet of matrices, in lines below each other. Its alternative text reads out the numbers.

    name, title  an id, different for each sheet of a page, and what is drawn, in a few words.
    rows         names of the t rows; in each line the first matrix of t rows has them at its left.
    lines        {title: (rows, columns)} for each line. Titles are set as `Sheet.text` has it: *x* like a letter in a
                 formula, _{i} below the line. Whole numbers are drawn as such, others with two digits after the point.
    empty        (title, i, j) of each cell that is drawn with a question mark, for the reader to fill in.
    """
    texts = {grid: _texts(grid, as_array(matrix), empty) for line in lines for grid, matrix in line.items()}
    highs = [TITLE + ROW * max(len(texts[grid]) for grid in line) for line in lines]
    words = "; ".join(f"{_plain(grid)}: {_read_out(cells)}" for grid, cells in texts.items())
    words = f"Grids of numbers; the rows belong to {', '.join(rows)}. {words}."
    sheet = Sheet(name, title, words, sum(highs) + GAP * (len(lines) - 1) + 2 * MARGIN)
    top = MARGIN
    for line, high in zip(lines, highs, strict=True):
        left, named = MARGIN, False
        for grid in line:
            cells = texts[grid]
            if not named and len(cells) == len(rows):
                left, named = left + NAMES, True
                for i, row in enumerate(rows):
                    sheet.text(left - 4, top + TITLE + (i + 0.5) * ROW, row, SMALL, "end", soft=True)
            wide = min(_cell_width(cells), (WIDTH - MARGIN - left) / len(cells[0]))  # all of them on the sheet
            kinds = [["empty" if cell == "?" else _kind(grid) for cell in row] for row in cells]
            across = wide * len(cells[0])
            sheet.text(left + across / 2, top + TITLE / 2, grid, NORMAL)
            sheet.cells(left, top + TITLE, cells, kinds, wide, ROW)
            left += across + GAP
        top += high + GAP
    return sheet


def _texts(grid, matrix, empty):
    return [
        ["?" if (grid, i, j) in empty else _number(value) for j, value in enumerate(row)]
        for i, row in enumerate(matrix)
    ]


def _number(value):
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    whole = abs(value - round(value)) < 1e-6
    return f"{round(value)}".replace("-", "−") if whole else f"{value:.2f}".replace("-", "−")


def _cell_width(cells):
    longest = max(len(cell) for row in cells for cell in row)
    return max(24, 8.6 * longest - 4.4)


def _kind(grid):
    letter = re.match(r"\*([a-z])\*(?:\^\{\(.\)\})?(?=$| =|,)", grid)
    return _KINDS.get(letter[1], "plain") if letter else "plain"


def _plain(grid):
    return re.sub(r"[*{}^_]", "", grid)


def _read_out(cells):
    return " / ".join(" ".join("empty" if cell == "?" else cell for cell in row) for row in cells)
