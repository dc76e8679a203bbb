"""Diagram of lesson 14: BERT from its three tables to its heads."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def bert_flow() -> Sheet:
    """Lesson 14: token, segment and position into the blocks, and out to three kinds of head."""
    sheet = Sheet.named("bert-flow", 520)
    left, wide = 62, 48
    rows = (
        ("token", ["[CLS]", "he", "left", "[SEP]", "why", "[SEP]"], ["orange"] + ["plain"] * 5),
        ("segment", list("000011"), ["blue"] * 4 + ["green"] * 2),
        ("position", list("012345"), ["plain"] * 6),
    )
    for k, (name, words, kinds) in enumerate(rows):
        y = 14 + 30 * k
        sheet.text(left - 6, y + 12, name, SMALL, "end", soft=True)
        sheet.cells(left, y, [words], [kinds], wide, 24)
    x = left + 3 * wide
    sheet.arrow((x, 100), (x, 123))
    sheet.operation(x, 137, "add three vectors each, norm", 220, 28, "orange")
    sheet.arrow((x, 151), (x, 190), words="*x*  (b, t, e)")
    for k in (2, 1, 0):
        sheet.box(x + 5 * k, 220 + 5 * k - 5, 220, 50, "blue", 8)
    sheet.text(x, 207, "block")
    sheet.text(x, 224, "post-norm; each position sees all", SMALL, soft=True)
    sheet.line((x, 250), (x, 272))
    sheet.text(x + 8, 262, "(b, t, e)", SMALL, "start", soft=True)
    places = (62, 182, 300)
    for place, bottom in zip(places, (400, 334, 370), strict=True):
        sheet.arrow((x, 272), (place, 272), (place, 306))
        sheet.arrow((place, bottom), (place, 438))
    sheet.text(places[0] + 8, 290, "[CLS] alone", SMALL, "start", soft=True)
    sheet.operation(places[0], 320, "linear, tanh", 104, 28, "orange")
    sheet.arrow((places[0], 334), (places[0], 372), words="(b, e)")
    sheet.operation(places[1], 320, "linear", 92, 28, "purple")
    sheet.operation(places[2], 320, "linear, GELU,", 108, 28, "purple")
    sheet.line((places[2], 334), (places[2], 342))
    sheet.operation(places[2], 356, "norm, table", 108, 28, "purple")
    sheet.operation(places[0], 386, "linear", 92, 28, "purple")
    heads = ("sentence", "(b, classes)", "or a pair"), ("tags", "(b, t, tags)", "at first pieces")
    for place, (name, shape, why) in zip(places, (*heads, ("words", "(b, t, n)", "where hidden")), strict=True):
        sheet.tensor(place, 454, name, "", "red", 92, 30)
        sheet.note(place, 482, shape, why, step=18)
    return sheet
