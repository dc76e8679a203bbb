"""Diagrams of attention in a band, lesson 16, and of a softmax in tiles, lesson 17."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def band_chunks() -> Sheet:
    """Lesson 16: queries in chunks of w, each with the keys of its own chunk and of the one before."""
    w, chunks = 4, 3
    sheet = Sheet.named("band-chunks", 318)
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
    """Lesson 17: three tiles of two keys, and the running maximum and sum of one query."""
    tiles = ((1, 2), (4, 0), (3, 4))
    states = (("2", "1.37"), ("4", "1.20"), ("4", "2.57"))
    parts = (("2", "1.37"), ("4", "1.02"), ("4", "1.37"))
    factors = (("*e*^{2−4}", "1"), ("1", "1"))
    sheet = Sheet.named("tiles-arriving", 262)
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
    sheet.text(180, 246, "the running result; *o* goes along with *ℓ*", SMALL, soft=True)
    return sheet


def tiles_in_memory() -> Sheet:
    """Lesson 17: a tile of keys and values at a time in fast memory, and what is never written to slow memory."""
    sheet = Sheet.named("tiles-in-memory", 456)
    sheet.frame(180, 96, 348, 176, "empty")
    sheet.text(18, 26, "slow memory, large", 15, "start")
    for name, x, kind, chosen in (
        ("*q*", 66, "blue", 1), ("*k*", 142, "orange", 2), ("*v*", 200, "orange", 2), ("output", 300, "green", 1)
    ):  # fmt: skip
        sheet.text(x, 52, name)
        kinds = [[kind if tile == chosen else "plain"] for tile in range(4)]
        sheet.cells(x - 23, 66, [[""]] * 4, kinds, 46, 26)
    sheet.frame(180, 288, 324, 112, "empty")
    sheet.text(28, 330, "fast memory, small", 15, "start")
    for name, x, kind in (("*q*", 66, "blue"), ("*k*", 142, "orange"), ("*v*", 200, "orange")):
        sheet.arrow((x, 170), (x, 246))
        sheet.box(x, 260, 46, 26, kind, 0, name)
    sheet.text(74, 210, "once", SMALL, "start", soft=True)
    sheet.text(208, 220, "tile by tile", SMALL, "start", soft=True)
    sheet.note(308, 202, "*o* / *ℓ*", "at last", anchor="start")
    sheet.arrow((66, 273), (66, 289))
    sheet.arrow((142, 273), (142, 289))
    sheet.box(104, 302, 124, 26, "purple", 0, "scores of one tile", SMALL)
    sheet.line((200, 273), (200, 302))
    sheet.arrow((166, 302), (300, 302), (300, 282))
    sheet.tensor(300, 264, "*m*  *ℓ*  *o*", kind="green", wide=72, high=34)
    sheet.text(300, 318, "stay", SMALL, soft=True)
    sheet.arrow((300, 247), (300, 172))
    kinds = [["purple" if (i, j) == (1, 2) else "empty" for j in range(4)] for i in range(4)]
    sheet.cells(26, 360, [[""] * 4] * 4, kinds, 21, 21)
    sheet.text(128, 372, "all scores, (*t*, *t*): never written", anchor="start")
    sheet.note(
        128, 394, "Each tile is used at once,", "then its place in fast memory", "goes to the next.", anchor="start"
    )
    return sheet
