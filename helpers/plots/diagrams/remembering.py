"""Diagrams of a memory and of relative positions: lesson 15."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def segment_memory() -> Sheet:
    """Lesson 15: what the last position of a segment can depend on, through the memories of two blocks."""
    t, count = 3, 4
    sheet = Sheet.named("segment-memory", 270)

    def place(k: int) -> float:
        return 27 + 26 * k + 10 * (k // t)

    rows = {"bytes": 208, "lower block": 130, "upper block": 52}
    last = count * t - 1
    for name, y in rows.items():
        sheet.text(14, y - 22, name, SMALL, "start", soft=True)
    for k in range(count * t):
        below = "blue" if k >= last - t + 1 else "orange" if k >= t else "empty"
        above = "blue" if k > last - t else "orange" if k > last - 2 * t else "empty"
        sheet.box(place(k), rows["bytes"], 18, 18, below)
        sheet.box(place(k), rows["lower block"], 18, 18, above)
        sheet.box(place(k), rows["upper block"], 18, 18, "red" if k == last else "empty")

    def look(upper: str, lower: str, i: int, j: int) -> None:
        start, end = (place(j), rows[lower] - 9), (place(i), rows[upper] + 9)
        (sheet.arrow if j // t == i // t else sheet.tie)(start, end)

    for j in range(last - 2 * t + 1, last + 1):
        look("upper block", "lower block", last, j)
    for i in (last - 2 * t + 1, last - t + 1):
        for j in range(i - t, i + 1):
            look("lower block", "bytes", i, j)
    for s in range(count):
        sheet.text(place(s * t + 1), 234, f"segment {s}", SMALL)
    sheet.text(180, 256, "broken: from the memory, without a gradient", SMALL, soft=True)
    return sheet


def shift_steps() -> Sheet:
    """Lesson 15: the relative shift on a matrix whose entries say their row and their distance."""
    t, s = 3, 4
    by_distance = [[f"{i}:{s - 1 - c}" for c in range(s)] for i in range(t)]
    padded = [["–", *row] for row in by_distance]
    flat = [word for row in padded for word in row]
    reread = [flat[k : k + t] for k in range(0, len(flat), t)]
    kept = [word for row in reread[1:] for word in row]
    shifted = [[kept[i * s + j] if j <= i + s - t else "0" for j in range(s)] for i in range(t)]
    tint = ["blue", "orange", "green"]

    def kinds(rows: list[list[str]]) -> list[list[str]]:
        return [[tint[int(word[0])] if ":" in word else "empty" for word in row] for row in rows]

    sheet = Sheet.named("shift-steps", 340)
    wide, high = 33, 25
    left, right, upper, lower = 14, 186, 56, 188
    for x, y, title, words in (
        (left, upper, "1  by distance", by_distance),
        (right, upper, "2  padded", padded),
        (left + 20, lower, "3  read in rows of *t*", reread),
        (right + 20, lower, "4  without it, future 0", shifted),
    ):
        sheet.text(x, y - (32 if y == upper else 16), title, anchor="start")
        sheet.cells(x, y, words, kinds(words), wide, high)
    for c in range(s):
        sheet.text(left + (c + 0.5) * wide, upper - 11, f"{s - 1 - c}", SMALL, soft=True)
    sheet.text(right + 2.5 * wide, upper - 11, "the same, one column more", SMALL, soft=True)
    sheet.text(left + 20 + t * wide + 6, lower + high / 2, "dropped", SMALL, "start", soft=True)
    sheet.text(left + 20 + 1.5 * wide, lower + 5 * high + 14, f"(s + 1, t) = ({s + 1}, {t})", SMALL, soft=True)
    sheet.text(right + 20 + 2 * wide, lower + t * high + 14, "column *j*: key *j*", SMALL, soft=True)
    return sheet
