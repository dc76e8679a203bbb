"""Diagrams of lesson 19: the two heads with which a model copies."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def induction_circuit() -> Sheet:
    """Lesson 19: a previous-token head writes into the keys, and an induction head finds what it wrote."""
    sheet = Sheet.named("induction-circuit", 300)
    places = [38, 92, 146, 200, 254, 316]
    words = ["c", "A", "B", "d", "…", "A"]
    rows = {"tokens": 254, "layer 0": 166, "layer 1": 66}
    for x, word in zip(places, words, strict=True):
        kind = {"A": "blue", "B": "green"}.get(word, "plain")
        sheet.box(x, rows["tokens"], 40, 28, kind, words=f"*{word}*" if word in "AB" else word)
        sheet.box(x, rows["layer 0"], 40, 28, "orange" if word == "B" else "plain")
    sheet.box(places[-1], rows["layer 1"], 40, 28, "green", words="*B*")
    sheet.text(places[2], rows["layer 0"], "*A*, *B*")
    sheet.arrow((places[1], 240), (places[2] - 6, 180))
    sheet.arrow((places[2], 240), (places[2], 180))
    sheet.arrow((places[5], 240), (places[5], 180))
    sheet.arrow((places[2], 152), (places[2], rows["layer 1"]), (places[5] - 20, rows["layer 1"]))
    sheet.arrow((places[5], 152), (places[5], 80))
    sheet.text(160, 210, "previous-token head", SMALL, "start", soft=True)
    sheet.text(154, 136, "key: after *A*", SMALL, "start", soft=True)
    sheet.text(308, 112, "query: after *A*?", SMALL, "end", soft=True)
    sheet.text(220, 82, "induction head", SMALL, soft=True)
    sheet.text(14, 284, "tokens", SMALL, "start", soft=True)
    sheet.text(14, 140, "after layer 0", SMALL, "start", soft=True)
    sheet.text(316, 38, "prediction", SMALL, soft=True)
    return sheet


def head_circuits() -> Sheet:
    """Lesson 19: the two products of matrices that say where a head looks and what it moves."""
    sheet = Sheet.named("head-circuits", 304)
    rows = [
        (70, "QK circuit: where a head looks", ("*W*_{q}ᵀ", "blue"), ("*W*_{k}", "orange")),
        (220, "OV circuit: what it moves", ("*W*_{unify}", "violet"), ("*W*_{v}", "green")),
    ]
    for y, title, (tall, tall_kind), (wide, wide_kind) in rows:
        sheet.text(14, y - 52, title, anchor="start")
        sheet.matrix(60, y + 14, 62, 84, tall, "*e*", "", tall_kind)
        sheet.text(60, y + 68, "*d*", SMALL, soft=True)
        sheet.matrix(154, y + 14, 84, 36, wide, "*d*", "", wide_kind)
        sheet.text(154, y + 44, "*e*", SMALL, soft=True)
        sheet.text(220, y + 14, "=")
        sheet.matrix(286, y + 14, 84, 84, "", "*e*", "", "plain")
        sheet.text(286, y + 68, "*e*", SMALL, soft=True)
        sheet.text(286, y + 14, "rank ≤ *d*", SMALL)
    return sheet
