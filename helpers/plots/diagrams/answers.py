"""Diagrams of models that are taught to answer: lesson 20."""

from __future__ import annotations

from .drawing import SMALL, Sheet

ROW = 26
QUESTION = ["user", "4", "7", "+", "3", "8", "ans"]


def three_losses() -> Sheet:
    """Lesson 20: what a loss on answers, a loss on preferences and a loss on rewards look at."""
    sheet = Sheet.named("three-losses", 276)
    y = 16.0
    y = _panel(sheet, y, "a demonstration: imitate the answer", [(["8", "5", "end"], "green", "")])
    y = _panel(
        sheet,
        y,
        "a preference: green is chosen, orange rejected",
        [(["8", "5", "end"], "green", ""), (["8", "5", "or", "8", "4", "end"], "orange", "")],
    )
    _panel(
        sheet,
        y,
        "rewards: sampled answers, compared with their group",
        [
            (["8", "5", "end"], "green", "1"),
            (["7", "5", "end"], "orange", "0"),
            (["8", "5", "or", "8", "6", "end"], "orange", "0"),
        ],
    )
    return sheet


def _panel(sheet: Sheet, y: float, title: str, answers: list[tuple[list[str], str, str]]) -> float:
    """A title, and a row of tokens for each answer, with words behind it. Returns where the next panel begins."""
    sheet.text(8, y, title, SMALL, "start", soft=True)
    first, wide = 32, 25  # the first cell holds a longer word
    for place, (tokens, kind, words) in enumerate(answers):
        top = y + 12 + ROW * place
        row = QUESTION[1:] + tokens
        sheet.cells(8, top, [QUESTION[:1]], [["plain"]], first, 22)
        sheet.cells(8 + first, top, [row], [["plain"] * (len(QUESTION) - 1) + [kind] * len(tokens)], wide, 22)
        if words:
            sheet.text(14 + first + wide * len(row), top + 11, words, SMALL, "start")
    return y + 12 + ROW * len(answers) + 22
