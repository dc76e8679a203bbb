"""The cells before a lesson that ask about earlier ones, made from helpers/lessons/lNN_topic/questions.toml."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from helpers.checking.judge.predictions import quoted_choices
from helpers.exercises import Recall
from helpers.exercises.exercise import RECALL
from helpers.notebooks import BEGIN, END, GETS, check_id

HEADING = "## Before you start"
MINUTES = 2  # not counted in the head of the lesson


def recall_cells(questions: tuple[Recall, ...]) -> list[NotebookNode]:
    """The card, the cell for the answers and the check; none where nothing is asked."""
    if not questions:
        return []
    names = ", ".join(question.name for question in questions)
    answers = "".join(f'{question.name} = "{question.truth}"\n' for question in questions)
    given = "".join(f"# {question.name} = ...    # {quoted_choices(question)}\n" for question in questions)
    marks = {"locked": False, "schema_version": 3, "task": False}
    asked = {**marks, "grade_id": RECALL, "grade": False, "solution": True}
    check = {**marks, "grade_id": check_id(RECALL), "grade": True, "solution": False, "locked": True, "points": 0.0}
    return [
        new_markdown_cell("\n".join(card_lines(questions))),
        new_code_cell(f"{BEGIN}\n{answers}{GETS}\n{given}{END}", metadata={"nbgrader": asked}),
        new_code_cell(f"check.recall({names})", metadata={"nbgrader": check}),
    ]


def card_lines(questions: tuple[Recall, ...]) -> Iterator[str]:
    """The Markdown of the card, line by line. The questions are folded: a lesson's first picture stays near its top."""
    yield from (HEADING, "", '<div class="card">', "", f"**Recall** &nbsp; {MINUTES} minutes · no points", "")
    yield from ("<details><summary>Three questions about earlier lessons</summary>", "")
    for question in questions:
        yield from _wrapped(f"**`{question.name}`** {question.asks}")
        yield ""
        for choice, offer in question.offers.items():
            yield from _wrapped(f"- **{choice}.** {offer}", "  ")
        yield ""
    yield from ("</details>", "</div>")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
