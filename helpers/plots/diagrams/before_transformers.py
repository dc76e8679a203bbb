"""Diagrams of readers and writers that walk step by step: lesson 13."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def two_readers() -> Sheet:
    """Lesson 13: a forward and a backward language model."""
    sheet = Sheet.named("two-readers", 290)
    words = ["the", "plot", "is", "dull"]
    for left, title, asked, kind, forward in (
        (4, "forward", "next", "blue", 1),
        (184, "backward", "previous", "orange", -1),
    ):
        sheet.text(left + 86, 16, title, 15)
        xs = [left + 22 + 43 * k for k in range(4)]
        sheet.text(left + 86, 40, f"asked: the {asked} word", SMALL, soft=True)
        for name, y in (("2", 84), ("1", 150)):
            for k, x in enumerate(xs):
                sheet.box(x, y, 30, 30, kind, words=name, size=SMALL)
                sheet.arrow((x, y + 50), (x, y + 17))
                if 0 <= k + forward < 4:
                    sheet.arrow((x + 15 * forward, y), (xs[k + forward] - 15 * forward, y))
        for x in xs:
            sheet.arrow((x, 69), (x, 52))
            sheet.box(x, 216, 30, 30, "plain", words="0", size=SMALL)
            sheet.arrow((x, 262), (x, 233))
        for x, word in zip(xs, words, strict=True):
            sheet.text(x, 274, word, SMALL)
    return sheet


def vector_or_memory() -> Sheet:
    """Lesson 13: the decoder with one vector above, the decoder with attention below; the same boxes."""
    sheet = Sheet.named("vector-or-memory", 470)
    xs = [30 + 40 * k for k in range(5)]
    for top, title, attends in (
        (0, "one vector for the sentence", False),
        (232, "a new sum of all states for each word", True),
    ):
        y_encoder, y_decoder = top + 196, top + 52
        sheet.text(8, top + 16, title, 15, "start")
        for k, x in enumerate(xs):
            sheet.box(x, y_encoder, 30, 28, "blue", words=f"*h*_{{{k}}}", size=SMALL)
            if k:
                sheet.line((xs[k - 1] + 15, y_encoder), (x - 15, y_encoder))
        states = [212, 270, 328]
        for k, x in enumerate(states):
            sheet.box(x, y_decoder, 32, 28, "orange", words=f"*s*_{{{k}}}", size=SMALL)
            if k:
                sheet.arrow((states[k - 1] + 16, y_decoder), (x - 16, y_decoder))
        middle = top + 122
        if attends:
            sheet.operation(270, middle, "weighted sum", 128, 28, "green")
            for x in xs:
                sheet.residual((x, y_encoder - 14), (x, middle + 32), head=False)
            sheet.residual((xs[0], middle + 32), (270, middle + 32), (270, middle + 15))
            sheet.arrow((212, y_decoder + 14), (212, middle - 28), (250, middle - 28), (250, middle - 15))
            sheet.text(204, middle - 27, "compared", SMALL, "end", True)
            sheet.arrow((276, middle - 14), (276, y_decoder + 15))
            sheet.text(284, middle - 28, "*c*, for *s*_{1}", SMALL, "start", True)
        else:
            sheet.tensor(270, middle, "*c*", "(b, m)", "green", 96)
            sheet.line((xs[0], y_encoder - 14), (xs[0], middle + 32), (xs[-1], middle + 32))
            sheet.arrow((xs[-1], y_encoder - 14), (xs[-1], middle), (221, middle))
            for x in states:
                out = 270 + (x - 270) * 0.5
                sheet.arrow((out, middle - 15), (out, y_decoder + 32), (x, y_decoder + 32), (x, y_decoder + 15))
            sheet.text(270, middle + 30, "the same at each step", SMALL, soft=True)
        sheet.text(xs[-1] + 24, y_encoder, "encoder: five words", SMALL, "start", True)
    return sheet


def waiting_steps() -> Sheet:
    """Lesson 13: t products one after the other, over the same products at once."""
    sheet = Sheet.named("waiting-steps", 268)
    xs = [40 + 56 * k for k in range(6)]
    sheet.text(8, 16, "recurrence: t steps, one after the other", 15, "start")
    for k, x in enumerate(xs):
        sheet.box(x, 66, 36, 30, "orange", words=f"*h*_{{{k}}}", size=SMALL)
        sheet.arrow((x, 108), (x, 83))
        sheet.text(x, 118, f"*x*_{{{k}}}", SMALL)
        if k:
            sheet.arrow((xs[k - 1] + 18, 66), (x - 18, 66))
    sheet.text(8, 152, "attention: one step for all of them", 15, "start")
    sheet.box(180, 204, 320, 30, "blue", words="all pairs of positions, in two products")
    for k, x in enumerate(xs):
        sheet.arrow((x, 244), (x, 221))
        sheet.text(x, 254, f"*x*_{{{k}}}", SMALL)
        sheet.arrow((x, 189), (x, 172))
    return sheet


def gated_cell() -> Sheet:
    """Lesson 13: one step of a GRU; the old state's path to the new one is a thick line."""
    sheet = Sheet.named("gated-cell", 326)
    top, x_plus = 56, 246
    sheet.text(18, 20, "the old state's path: no matrix, no tanh", SMALL, "start", soft=True)
    sheet.box(40, top, 60, 32, "orange", words="*s*_{i−1}")
    sheet.residual((70, top), (86, top))
    sheet.operation(118, top, "· *z*", 62, 28)
    sheet.residual((149, top), (x_plus - 9, top))
    sheet.plus(x_plus, top)
    sheet.residual((x_plus + 9, top), (292, top))
    sheet.box(322, top, 60, 32, "orange", words="*s*_{i}")
    sheet.box(118, 148, 76, 32, "blue", words="*z* = *σ*(…)")
    sheet.arrow((118, 132), (118, top + 15))
    sheet.operation(x_plus, 116, "· (1 − *z*)", 88, 28)
    sheet.arrow((156, 148), (178, 148), (178, 116), (201, 116))
    sheet.arrow((x_plus, 102), (x_plus, top + 10))
    sheet.box(x_plus, 212, 112, 32, "green", words="new = tanh(…)")
    sheet.arrow((x_plus, 196), (x_plus, 131))
    sheet.box(118, 212, 76, 32, "purple", words="*r* = *σ*(…)")
    sheet.arrow((156, 212), (189, 212))
    sheet.box(182, 294, 190, 32, "plain", words="the word *x*_{i}, and *s*_{i−1}")
    sheet.line((182, 278), (182, 258))
    sheet.line((50, 258), (x_plus, 258))
    sheet.arrow((50, 258), (50, 148), (79, 148))
    sheet.arrow((118, 258), (118, 229))
    sheet.arrow((x_plus, 258), (x_plus, 229))
    return sheet
