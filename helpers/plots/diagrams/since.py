"""Diagrams of lesson 18: GPT-2's block beside a Llama's, and the two heads with which a model copies."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def llama_block() -> Sheet:
    """Lesson 18: GPT-2's block and a Llama's, what has changed in orange."""
    sheet = Sheet(
        "llama-block",
        "GPT-2's block beside a Llama's",
        "Two blocks side by side, each from x of shape (b, t, e) at the top to an output of the same shape, with a "
        "thick line for the residual connection. Left, GPT-2: positions are added to x before the first block; then "
        "LayerNorm, attention with h heads of queries, keys and values, an addition, LayerNorm, a network with GELU, "
        "an addition; biases everywhere. Right, a Llama: nothing is added before the first block; RMSNorm, attention "
        "with h heads of queries that are turned by their positions and g of keys and values, an addition, RMSNorm, "
        "SwiGLU, an addition; no biases. The changed boxes are orange.",
        462,
    )
    columns = (
        (0, "GPT-2", "2019, biases", "+ positions", ("LayerNorm", "attention", "*h* keys, *h* values"), "plain"),
        (180, "a Llama", "2023, no biases", "", ("RMSNorm", "attention", "*g* keys, *g* values"), "orange"),
    )
    for left, title, when, added, (norm, attention, heads), kind in columns:
        stream, branch = left + 26, left + 108
        network = "GELU" if kind == "plain" else "SwiGLU"
        sheet.text(left + 90, 16, title, 15)
        sheet.text(left + 90, 34, when, SMALL, soft=True)
        sheet.tensor(left + 64, 62, "*x*", added or "(b, t, e)", "plain", 112)
        sheet.residual((stream, 77), (stream, 420))
        sheet.arrow((stream, 96), (branch, 96), (branch, 112))
        sheet.operation(branch, 125, norm, 96, 26, kind)
        sheet.arrow((branch, 138), (branch, 154))
        sheet.box(branch, 188, 134, 68, kind, 12)
        sheet.text(branch, 168, attention)
        sheet.text(branch, 187, "*h* queries" + (", turned" if kind == "orange" else ""), SMALL, soft=True)
        sheet.text(branch, 205, heads, SMALL, soft=True)
        sheet.arrow((branch, 222), (branch, 240), (stream + 9, 240))
        sheet.plus(stream, 240)
        sheet.arrow((stream, 268), (branch, 268), (branch, 284))
        sheet.operation(branch, 297, norm, 96, 26, kind)
        sheet.arrow((branch, 310), (branch, 326))
        sheet.box(branch, 350, 134, 48, kind, 12)
        sheet.text(branch, 340, "feed-forward")
        sheet.text(branch, 359, network, SMALL, soft=True)
        sheet.arrow((branch, 374), (branch, 394), (stream + 9, 394))
        sheet.plus(stream, 394)
        sheet.tensor(left + 70, 435, "output", "(b, t, e)", "plain", 124)
    return sheet


def induction_circuit() -> Sheet:
    """Lesson 18: a previous-token head writes into the keys, and an induction head finds what it wrote."""
    sheet = Sheet(
        "induction-circuit",
        "Two heads that copy together",
        "A row of tokens: c, A, B, d, and so on, then A again, at which the model stands. In layer 0 the "
        "previous-token head at B looks one place back, at A, and writes into the vector of B: A came before me. In "
        "layer 1 the induction head at the second A asks: before whom did A stand? The key of B answers, and the "
        "head takes its value, B, which becomes the prediction.",
        300,
    )
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
