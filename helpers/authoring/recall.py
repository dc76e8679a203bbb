"""The cells before a lesson that ask about earlier ones, made from helpers/exercises/questions by ``make build``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from helpers.checking.predictions import quoted_choices
from helpers.exercises import Lesson, Recall
from helpers.notebooks import BEGIN, END, GETS

HEADING = "## Before you start"
MINUTES = 2  # of the lesson's head they are no part
START = "\ncheck = start("
CELLS = re.compile(rf"^# %% \[markdown\]\n# {HEADING}\n.*?^check\.recall\([^\n]*\)\n\n", re.MULTILINE | re.DOTALL)
ANSWER = '{"grade": false, "grade_id": "recall", "locked": false, "schema_version": 3, "solution": true, "task": false}'
CHECK = (
    '{"grade": true, "grade_id": "check_recall", "locked": true, "points": 0.0, "schema_version": 3, '
    '"solution": false, "task": false}'
)


def with_recall(text: str, lesson: Lesson) -> str:
    """A lesson's text with the cells of its questions about earlier lessons right after its first code cell."""
    before, start, after = CELLS.sub("", text).partition(START)
    line, cell, rest = after.partition("\n# %% ")
    cells = f"\n{recall_cells(lesson.recall)}" if lesson.recall else ""
    return f"{before}{start}{line}{cells}{cell}{rest}"


def recall_cells(questions: tuple[Recall, ...]) -> str:
    """The card, the cell for the answers and the check, as jupytext."""
    names = ", ".join(question.name for question in questions)
    answers = "".join(f'{question.name} = "{question.truth}"\n' for question in questions)
    given = "".join(f"# {question.name} = ...    # {quoted_choices(question)}\n" for question in questions)
    card = "".join(f"# {line}".rstrip() + "\n" for line in card_lines(questions))
    solution = f"{BEGIN}\n{answers}{GETS}\n{given}{END}\n"
    return (
        f"# %% [markdown]\n{card}\n# %% nbgrader={ANSWER}\n{solution}\n# %% nbgrader={CHECK}\ncheck.recall({names})\n"
    )


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
