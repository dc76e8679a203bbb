"""Diagrams of lesson 18: GPT-2's block beside a Llama's, and what is new in it."""

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
