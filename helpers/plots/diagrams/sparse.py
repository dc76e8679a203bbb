"""Diagrams of attention in a band and of a softmax in tiles: lesson 16."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def band_chunks() -> Sheet:
    """Lesson 16: queries in chunks of w, each with the keys of its own chunk and of the one before."""
    w, chunks = 4, 3
    sheet = Sheet(
        "band-chunks",
        "Attention in a band, by chunks",
        "Above, twelve queries in three chunks of four; below them the keys in the same chunks, with a chunk of zeros "
        "in front. An arrow leads to each chunk of queries from its own chunk of keys, and one from the chunk before. "
        "At the bottom, the scores of one chunk: four rows, and eight columns for the keys of the chunk before and of "
        "its own. Row 0 sees the columns 1 to 4, row 1 the columns 2 to 5, and so on: a slanted band that is four "
        "wide; the other half is masked.",
        318,
    )
    side = 19
    upper, lower = 34, 104

    def left(chunk: int) -> float:
        return 30 + (chunk + 1) * (w * side + 8)

    sheet.text(14, 16, "queries", SMALL, "start", soft=True)
    for chunk in range(chunks):
        numbers = [str(chunk * w + a) for a in range(w)]
        sheet.cells(left(chunk), upper - side / 2, [numbers], [["blue"] * w], side, side)
        sheet.cells(left(chunk), lower - side / 2, [numbers], [["orange"] * w], side, side)
    sheet.cells(left(-1), lower - side / 2, [["0"] * w], [["empty"] * w], side, side)
    sheet.text(14, lower + 25, "keys, with a chunk of zeros in front", SMALL, "start", soft=True)
    for chunk in range(chunks):
        middle = left(chunk) + w * side / 2
        sheet.arrow((middle + 10, lower - side / 2), (middle + 10, upper + side / 2 + 1))
        sheet.arrow((middle - w * side - 8, lower - side / 2), (middle - 16, upper + side / 2 + 1))
    x, y, wide = 92, 184, 26
    sheet.text(x + 2 * wide, y - 28, "chunk before", SMALL, soft=True)
    sheet.text(x + 6 * wide, y - 28, "own chunk", SMALL, soft=True)
    sheet.text(x - 14, y + 2 * wide, "chunk 1", SMALL, "end", soft=True)
    for column in range(2 * w):
        sheet.text(x + (column + 0.5) * wide, y - 10, str(column), SMALL)
    kinds = [["orange" if a < column <= w + a else "empty" for column in range(2 * w)] for a in range(w)]
    sheet.cells(x, y, [[""] * (2 * w)] * w, kinds, wide, wide)
    sheet.text(x + 4 * wide, y + 4 * wide + 16, "scores: *w* rows, 2*w* columns", SMALL, soft=True)
    return sheet


def tiles_arriving() -> Sheet:
    """Lesson 16: three tiles of two keys, and the running maximum and sum of one query."""
    tiles = ((1, 2), (4, 0), (3, 4))
    states = (("2", "1.37"), ("4", "1.20"), ("4", "2.57"))
    parts = (("2", "1.37"), ("4", "1.02"), ("4", "1.37"))
    factors = (("*e*^{2−4}", "1"), ("1", "1"))
    sheet = Sheet(
        "tiles-arriving",
        "A softmax over three tiles",
        "One query, six scores in three tiles: 1 and 2; 4 and 0; 3 and 4. Under each tile stand its maximum and its "
        "sum: 2 and 1.37; 4 and 1.02; 4 and 1.37. At the bottom the running state: after the first tile 2 and 1.37; "
        "after the second the maximum is 4, the old sum is multiplied by e to the power 2 minus 4, and the sum is "
        "1.20; after the third the maximum stays 4, both factors are 1, and the sum is 2.57.",
        262,
    )
    sheet.text(14, 18, "scores of one query, a tile at a time", SMALL, "start", soft=True)
    for place, (scores, (m, total), (m_now, total_now)) in enumerate(zip(tiles, parts, states, strict=True)):
        x = 62 + 118 * place
        sheet.cells(x - 30, 34, [[str(score) for score in scores]], [["orange"] * 2], 30, 24)
        sheet.arrow((x, 60), (x, 84))
        sheet.tensor(x, 100, f"*m* {m}  *ℓ* {total}", kind="plain", wide=100, high=28)
        sheet.tensor(x, 212, f"*m* {m_now}  *ℓ* {total_now}", kind="blue", wide=100, high=30, arrow="")
        if place:
            old, new = factors[place - 1]
            sheet.arrow((x - 66, 212), (x - 52, 212))
            sheet.text(x - 59, 182, f"· {old}", SMALL)
            sheet.text(x + 8, 150, f"· {new}", SMALL, "start")
    sheet.text(180, 246, "the running state; *o* goes along with *ℓ*", SMALL, soft=True)
    return sheet
