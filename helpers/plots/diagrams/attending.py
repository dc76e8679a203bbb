"""Diagrams of one attention: lessons 1 to 6."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .drawing import SMALL, Sheet

# Four vectors of two components for lesson 1, and what becomes of them, worked out below as the diagram is drawn.
_X = [(2, 0), (0, 1), (1, 1), (-1, 1)]
_SCORES = [[2, 1, 0, 3], [2, 1, 3, 0], [0, 1, 2, 1], [2, 0, 1, 1]]


def _softmax(scores: Sequence[float]) -> list[float]:
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def _signed(value: float, digits: int = 0) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _shares(weights: list[float]) -> str:
    return ", ".join(f"{weight:.2f}" for weight in weights)


def one_output_row() -> Sheet:
    """Lesson 1: one row of the output, assembled by dot products, a softmax and a weighted sum."""
    i, x, places = 2, _X, [64, 147, 230, 313]
    scores = [sum(a * b for a, b in zip(x[i], one, strict=True)) for one in x]
    weights = _softmax(scores)
    y = [sum(w * one[k] for w, one in zip(weights, x, strict=True)) for k in (0, 1)]
    read_out = {"scores": ", ".join(map(_signed, scores)), "weights": _shares(weights), "y": y}
    sheet = Sheet.named("one-output-row", 370, **read_out)
    for j, (place, one) in enumerate(zip(places, x, strict=True)):
        sheet.text(place, 16, f"*x*_{{{j}}}", 15)
        sheet.box(place, 44, 74, 28, "red" if j == i else "blue", words=f"({_signed(one[0])}, {_signed(one[1])})")
        for start, end in ((58, 80), (106, 128), (156, 178), (204, 226), (254, 276)):
            sheet.arrow((place, start), (place, end))
        sheet.box(place, 142, 50, 28, "plain", words=_signed(scores[j]))
        sheet.box(place, 240, 50, 28, "orange", words=f"{weights[j]:.2f}")
    sheet.operation(188, 93, "dot product of each with *x*_{2}", 326)
    sheet.operation(188, 191, "softmax over the row", 326)
    sheet.operation(188, 289, "each weight times its own *x*_{j}, all added up", 326)
    sheet.text(32, 142, "*w*′_{2}_{j}", 13, "end")
    sheet.text(32, 240, "*w*_{2}_{j}", 13, "end")
    sheet.tensor(188, 345, f"*y*_{{2}} = ({y[0]:.2f}, {y[1]:.2f})", "", "green", 160, 30, arrow="")
    return sheet


def three_roles() -> Sheet:
    """Lesson 2: one x becomes queries, keys and values; matrices as rectangles."""
    sheet = Sheet.named("three-roles", 522)
    sheet.matrix(168, 50, 96, 56, "*x*", "*t*", "*e*", "plain")
    for place, letter, kind, role in (
        (56, "q", "blue", "queries"),
        (168, "k", "orange", "keys"),
        (280, "v", "green", "values"),
    ):
        if place == 168:
            sheet.arrow((168, 78), (168, 116))
        else:
            sheet.arrow((168 + (place - 168) * 48 / 112, 66), (place, 66), (place, 116))
        sheet.matrix(place, 158, 46, 84, f"*W*_{{{letter}}}", "*e*", "*d*", kind)
        sheet.arrow((place, 200), (place, 238))
        sheet.matrix(place, 266, 46, 56, f"*{letter}*", "*t*", "*d*", kind)
        sheet.text(place + 29, 266, role, SMALL, "start", True)
    sheet.line((56, 294), (56, 318), (168, 318), (168, 294))
    sheet.arrow((112, 318), (112, 354))
    sheet.text(104, 335, "*q k*^{⊤}", 13, "end")
    sheet.matrix(112, 382, 58, 56, "*w*′", "*t*", "*t*", "plain")
    sheet.arrow((141, 382), (213, 382))
    sheet.text(177, 370, "softmax", SMALL, soft=True)
    sheet.text(177, 396, "of each row", SMALL, soft=True)
    sheet.matrix(242, 382, 58, 56, "*w*", "", "*t*", "purple")
    sheet.arrow((242, 410), (242, 456))
    sheet.line((280, 294), (280, 430), (242, 430))
    sheet.text(234, 430, "*w v*", 13, "end")
    sheet.matrix(242, 484, 46, 56, "*y*", "*t*", "*d*", "red")
    return sheet


def scaling_flow() -> Sheet:
    """Lesson 3: where the division by the square root of d stands, and what it does to the variance."""
    sheet = Sheet.named("scaling-flow", 470)
    sheet.text(292, 14, "variance", SMALL, soft=True)
    sheet.tensor(66, 40, "*q*", "(b, t, d)", "blue", 96)
    sheet.tensor(178, 40, "*k*", "(b, s, d)", "orange", 96)
    sheet.text(292, 40, "1", 14)
    sheet.arrow((66, 55), (66, 84))
    sheet.arrow((178, 55), (178, 84))
    sheet.operation(122, 97, "*q k*^{⊤}", 208)
    sheet.arrow((122, 110), (122, 154), words="(b, t, s)")
    sheet.text(292, 132, "*d*", 14)
    sheet.text(292, 149, "grows with *d*", SMALL, soft=True)
    sheet.operation(122, 167, "divide by √*d*", 208, 26, "red")
    sheet.arrow((122, 180), (122, 224), words="(b, t, s)")
    sheet.text(292, 202, "1", 14)
    sheet.text(292, 219, "at every *d*", SMALL, soft=True)
    sheet.operation(122, 237, "softmax over the keys", 208)
    sheet.arrow((76, 250), (76, 287))
    sheet.tensor(76, 302, "weights", "(b, t, s)", "purple", 116)
    sheet.tensor(183, 302, "*v*", "(b, s, d)", "green", 86)
    sheet.arrow((76, 317), (76, 354))
    sheet.arrow((183, 317), (183, 354))
    sheet.operation(122, 367, "weights times *v*", 208)
    sheet.tensor(122, 436, "*y*", "(b, t, d)", "red", 120, arrow="")
    return sheet


def heads_flow() -> Sheet:
    """Lesson 4: e components cut into h heads, attended apart, put side by side again and mixed."""
    sheet = Sheet.named("heads-flow", 594)
    tints, places = ["violet", "olive", "brown"], [48, 136, 224]  # not those of q, k and v

    def strip(y: float) -> None:
        for k, kind in enumerate(tints):
            sheet.box(136 + 40 * (k - 1), y, 40, 34, kind, 0)

    sheet.tensor(136, 24, "*x*", "(b, t, e)", "plain", 120)
    sheet.operation(136, 75, "three linear layers, (e, e) each", 232, arrow="")
    sheet.arrow((136, 88), (136, 111))
    strip(128)
    sheet.text(202, 120, "*q*; *k* and *v* likewise", SMALL, "start")
    sheet.text(202, 137, "(b, t, e)", SMALL, "start", True)
    sheet.arrow((136, 145), (136, 226))
    sheet.text(144, 161, "view: (b, t, h, d)", SMALL, "start", True)
    sheet.text(144, 179, "transpose: (b, h, t, d)", SMALL, "start", True)
    for place, kind in zip(places, tints, strict=True):
        if place != 136:
            sheet.arrow((136, 200), (place, 200), (place, 226))
            sheet.line((place, 401), (place, 416), (136, 416))
        sheet.box(place, 243, 44, 34, kind, 0, words="(t, d)", size=SMALL)
        sheet.arrow((place, 260), (place, 284))
        sheet.box(place, 312, 78, 56, "empty", 10)
        sheet.text(place, 303, "attention", SMALL)
        sheet.text(place, 321, "*w*: (t, t)", SMALL)
        sheet.arrow((place, 340), (place, 367))
        sheet.box(place, 384, 44, 34, kind, 0, words="(t, d)", size=SMALL)
    sheet.note(316, 304, "*h* heads,", "each by itself")
    sheet.arrow((136, 401), (136, 450))
    sheet.text(144, 432, "transpose back, side by side", SMALL, "start", True)
    strip(467)
    sheet.text(202, 467, "(b, t, e), e = h · d", SMALL, "start", True)
    sheet.arrow((136, 484), (136, 507))
    sheet.operation(136, 520, "unify, (e, e): mixes the heads", 232)
    sheet.tensor(136, 571, "*y*", "(b, t, e)", "plain", 120, arrow="")
    return sheet


def mask_flow() -> Sheet:
    """Lesson 5: scores, the causal mask, −∞ where it forbids, and a softmax whose rows still add up to 1."""
    t = len(_SCORES)
    weights = [_softmax(row[: i + 1]) for i, row in enumerate(_SCORES)]
    sheet = Sheet.named("mask-flow", 420, last_row=_shares(weights[-1]))
    plain = [["plain"] * t for _ in range(t)]
    allowed = [["blue" if j <= i else "empty" for j in range(t)] for i in range(t)]
    purple = [["purple" if j <= i else "empty" for j in range(t)] for i in range(t)]
    numbers = [[str(score) for score in row] for row in _SCORES]
    yes = [["yes" if j <= i else "no" for j in range(t)] for i in range(t)]
    masked = [[numbers[i][j] if j <= i else "−∞" for j in range(t)] for i in range(t)]
    shares = [[f"{weights[i][j]:.2f}" if j <= i else "0" for j in range(t)] for i in range(t)]
    left, right, wide, high = 28, 206, 36, 27
    upper, lower = 78, 284
    for x, y, title, words, kinds in (
        (left, upper, "scores  (b, t, t)", numbers, plain),
        (right, upper, "may *i* look at *j*?  (t, t)", yes, allowed),
        (left, lower, "masked scores", masked, [["plain" if j <= i else "red" for j in range(t)] for i in range(t)]),
        (right, lower, "weights  (b, t, t)", shares, purple),
    ):
        sheet.text(x + 2 * wide, y - 34, title)
        for j in range(t):
            sheet.text(x + (j + 0.5) * wide, y - 11, f"{j}", SMALL, soft=True)
            sheet.text(x - 8, y + (j + 0.5) * high, f"{j}", SMALL, soft=True)
        sheet.cells(x, y, words, kinds, wide, high)
    sheet.text(180, 14, "row *i* looks, column *j* is looked at", SMALL, soft=True)
    foot, middle = upper + 4 * high, lower + 2 * high
    sheet.arrow((left + 72, foot), (left + 72, lower - 44))
    sheet.arrow((right + 72, foot), (right + 72, foot + 30), (left + 84, foot + 30), (left + 84, lower - 44))
    sheet.text(right, foot + 18, "“no” becomes −∞", SMALL, soft=True)
    sheet.arrow((left + 4 * wide + 2, middle), (right - 16, middle))
    sheet.text(180, lower + 4 * high + 16, "softmax of each row", SMALL, "middle", True)
    return sheet


def positions_flow() -> Sheet:
    """Lesson 6: the three points at which a position can enter an attention."""
    sheet = Sheet.named("positions-flow", 486)
    x, aside = 108, 276
    sheet.tensor(x, 24, "ids", "(b, t)", "plain", 120)
    sheet.operation(x, 79, "table of embeddings", 168, arrow="")
    sheet.plus(x, 128, arrow="(b, t, e)")
    sheet.box(aside, 128, 154, 62, "blue")
    sheet.text(aside, 111, "a vector per position")
    sheet.note(aside, 128, "learned, or sinusoids", "(t, e)", step=17)
    sheet.arrow((aside - 77, 128), (x + 9, 128))
    sheet.operation(x, 187, "to queries, keys", 168, arrow="*x*  (b, t, e)")
    sheet.operation(x, 250, "turn *q*_{i} and *k*_{j}", 150, 28, "orange", arrow="")
    sheet.box(aside, 250, 154, 46, "orange")
    sheet.text(aside, 241, "rotary: by angles")
    sheet.text(aside, 258, "that grow with *i* and *j*", SMALL, soft=True)
    sheet.arrow((aside - 77, 250), (x + 75, 250))
    sheet.operation(x, 310, "*q k*^{⊤} / √*d*", 168, arrow="")
    sheet.plus(x, 362, arrow="(b, t, t)")
    sheet.box(aside, 362, 154, 46, "green")
    sheet.text(aside, 353, "relative bias: a number")
    sheet.text(aside, 370, "for each *i* − *j*,  (t, t)", SMALL, soft=True)
    sheet.arrow((aside - 77, 362), (x + 9, 362))
    sheet.operation(x, 414, "softmax", 168, arrow="")
    sheet.tensor(x, 465, "weights", "(b, t, t)", "purple", 150, arrow="")
    return sheet
