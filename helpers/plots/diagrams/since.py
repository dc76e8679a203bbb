"""Diagrams of lesson 18: GPT-2's block beside a Llama's, and what is new in it."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def llama_block() -> Sheet:
    """Lesson 18: GPT-2's block and a Llama's, what has changed in yellow boxes."""
    sheet = Sheet.named("llama-block", 462)
    columns = (
        (0, "GPT-2", "2019, biases", "+ positions", ("LayerNorm", "attention", "*h* keys, *h* values"), "plain"),
        (180, "a Llama", "2023, no biases", "", ("RMSNorm", "rotary attention", "*g* keys, *g* values"), "orange"),
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
        sheet.text(branch, 187, "*h* queries", SMALL, soft=True)
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


def grouped_queries() -> Sheet:
    """Lesson 18: which heads of queries share keys and values, for three numbers of groups."""
    sheet = Sheet.named("grouped-queries", 206)
    colours, step, size = ("blue", "orange", "green", "purple"), 22, 18
    for top, words in ((84, "queries"), (148, "keys"), (172, "values")):
        sheet.text(8, top, words, SMALL, "start", soft=True)
    for left, groups, name in ((80, 4, "one each"), (176, 2, "grouped"), (272, 1, "multi-query")):
        share = 4 // groups
        sheet.text(left + 1.5 * step, 20, name)
        sheet.text(left + 1.5 * step, 40, f"*g* = {groups}", SMALL, soft=True)
        for head in range(4):
            group = head // share
            x, shared = left + head * step, left + (group * share + (share - 1) / 2) * step
            sheet.box(x, 84, size, 22, colours[group], words=str(head), size=SMALL)
            sheet.arrow((x, 95), (shared, 137))
            if head % share == 0:
                sheet.box(shared, 148, size, 22, colours[group])
                sheet.box(shared, 172, size, 22, colours[group])
    return sheet


def pairs_and_halves() -> Sheet:
    """Lesson 18: which components of a head are turned together, in the two conventions."""
    sheet = Sheet.named("pairs-and-halves", 250)
    colours, wide = ("blue", "orange", "green"), 44
    left = (360 - 6 * wide) / 2
    for top, name, partners in (
        (66, "pairs: lesson 6, Meta's files", ((0, 1), (2, 3), (4, 5))),
        (190, "halves: the files on the Hub", ((0, 3), (1, 4), (2, 5))),
    ):
        kinds = [""] * 6
        for j, two in enumerate(partners):
            height = top - (12 + 10 * j if two[1] - two[0] > 1 else 12)
            first, second = (left + (place + 0.5) * wide for place in two)
            sheet.line((first, top), (first, height), (second, height), (second, top))
            for place in two:
                kinds[place] = colours[j]
        sheet.text(left, top - (38 if partners[0] == (0, 1) else 54), name, anchor="start")
        sheet.cells(left, top, [[str(place) for place in range(6)]], [kinds], wide, 30)
    return sheet


def experts_flow() -> Sheet:
    """Lesson 18: a router sends each token to two of four experts, and adds what they return."""
    sheet = Sheet.named("experts-flow", 346)
    tokens, experts = (70, 180, 290), (48, 136, 224, 312)
    choices = ((0, 1), (0, 3), (1, 3))
    sheet.box(180, 92, 330, 28, "orange", 14, "router: a softmax over the experts")
    for x, two, name in zip(tokens, choices, ("*x*_{1}", "*x*_{2}", "*x*_{3}"), strict=True):
        sheet.box(x, 30, 48, 28, "blue", words=name)
        sheet.arrow((x, 44), (x, 78))
        for expert in two:
            sheet.arrow((x, 106), (experts[expert], 162))
            sheet.arrow((experts[expert], 190), (x + (4 if experts[expert] > x else -4), 248))
        sheet.plus(x, 256)
        sheet.arrow((x, 265), (x, 292))
        sheet.box(x, 306, 48, 28, "blue", words=name.replace("x", "y"))
    for number, x in enumerate(experts):
        used = any(number in two for two in choices)
        sheet.box(x, 176, 76, 28, "green" if used else "empty", words=f"expert {number}")
    sheet.text(180, 334, "each sum is weighted by the router", SMALL, soft=True)
    return sheet
