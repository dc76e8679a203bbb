"""How long a lesson takes: prose + code to read + cards.

    minutes = words / 220 + lines / 6 + the exercises' minutes + 1 a prediction, rounded to 5, at most 120

220 words a minute is a little under the 238 of silent reading of English non-fiction (Brysbaert, 2019, "How many words
do we read per minute?", Journal of Memory and Language 109). Six lines of code a minute is fitted:
reviewers estimated each of the first eleven lessons, 70 to 170 minutes; what their estimates leave for code, once prose
and cards are taken off, is 5.5 lines a minute by least squares. With six, every estimate is met to within ten minutes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import nbformat

from helpers.authoring.build.lesson_source import Source
from helpers.authoring.build.recall import HEADING
from helpers.notebooks import BEGIN, CHECK, SETUP, grade_id

WORDS_A_MINUTE = 220
LINES_A_MINUTE = 6
A_PREDICTION = 1  # minutes
MOST = 120
STEP = 5
FOLDED = {"hide-input", "hide-cell"}

TAG = re.compile(r"<[^>]+>")
TARGET = re.compile(r"\]\([^)]*\)")
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
WORD = re.compile(r"[^\W_][\w'’.,/-]*")


@dataclass(frozen=True)
class Minutes:
    """What a lesson's time is made of."""

    words: int
    """Of prose."""
    lines: int
    """Of code to read."""
    cards: int
    """Minutes that the cards give."""

    @property
    def exact(self) -> float:
        """Minutes, not rounded."""
        return self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE + self.cards

    @property
    def rounded(self) -> int:
        """What the lesson's head says."""
        return STEP * round(self.exact / STEP)

    def __str__(self):
        return (
            f"about {self.rounded} minutes: {self.words:,} words, {self.lines} lines of code to read, "
            f"{self.cards} minutes on cards"
        )


def minutes(source: Source) -> Minutes:
    """How long that lesson takes."""
    cells, lesson = source.cells_as_written(), source.lesson
    cards = sum(exercise.minutes for exercise in lesson) + A_PREDICTION * len(lesson.predictions)
    return Minutes(
        words=sum(count_words(cell.source) for cell in cells if is_prose(cell)),
        lines=sum(count_lines(cell.source) for cell in cells if is_read(cell)),
        cards=cards,
    )


def count_words(markdown: str) -> int:
    """The words of a Markdown cell: a formula is one, a link's address is none."""
    return len(WORD.findall(TAG.sub(" ", TARGET.sub("]", FORMULA.sub(" formula ", markdown)))))


def is_prose(cell: nbformat.NotebookNode) -> bool:
    """Is this text of the lesson? The questions about earlier ones come before it, and their card has its own time."""
    return cell.cell_type == "markdown" and not cell.source.startswith(HEADING)


def count_lines(code: str) -> int:
    """The lines of code that hold something."""
    return sum(bool(line.strip()) for line in code.splitlines())


def is_read(cell: nbformat.NotebookNode) -> bool:
    """Is this a code cell that a student reads? Their own answers and the checks are the cards' time."""
    name, folded = grade_id(cell), FOLDED & set(cell.metadata.get("tags", ()))
    answered = BEGIN in cell.source or (name != SETUP and name.startswith(CHECK))
    return cell.cell_type == "code" and not answered and not folded


def too_long(source: Source) -> list[str]:
    """A lesson that takes longer than a lesson may."""
    takes = minutes(source)
    return [f"it takes {takes}; {MOST} is the most: shorten it or split it"] if takes.rounded > MOST else []
