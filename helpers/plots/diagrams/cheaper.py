"""The diagram of lesson 21: a draft proposes, the large model checks."""

from __future__ import annotations

from .drawing import SMALL, Sheet


def speculative_round() -> Sheet:
    """Lesson 21: four drafted tokens, one pass of the large model, two kept and one drawn anew."""
    sheet = Sheet.named("speculative-round", 250)
    places, width = (38, 112, 180, 248, 316), 56
    sheet.box(38, 52, 60, 30, "plain", words="text")
    sheet.text(214, 18, "the draft proposes, one by one", SMALL, soft=True)
    for x, token in zip(places[1:], ("*x*_{1}", "*x*_{2}", "*x*_{3}", "*x*_{4}"), strict=True):
        sheet.box(x, 52, width, 30, "blue", words=token)
    sheet.box(178, 122, 336, 36, "orange", 14, "one pass of the large model")
    verdicts = (
        ("green", "*x*_{1}", "kept"),
        ("green", "*x*_{2}", "kept"),
        ("orange", "new", "refused"),
        ("empty", "", ""),
        ("empty", "", ""),
    )
    for x, (kind, token, word) in zip(places, verdicts, strict=True):
        sheet.arrow((x, 67), (x, 104))
        sheet.arrow((x, 140), (x, 177))
        sheet.box(x, 192, width, 30, kind, words=token)
        if word:
            sheet.text(x, 224, word, SMALL, soft=True)
    sheet.text(282, 224, "thrown away", SMALL, soft=True)
    return sheet
