"""Answers that were written for tests, read from two tables of each lesson's folder.

unseen.toml is a benchmark: answers that were written from the students' notebooks alone, before anybody looked at the
known mistakes. unusual.toml holds right answers in unusual style. None is an entry of a mistakes.toml.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("lessons")
RIGHT, WRONG = "right", "wrong"


@dataclass(frozen=True)
class WrittenAnswer:
    """lesson: its two digits. what: a tutor's words for it. code: the solution cell. kind: RIGHT or WRONG.

    above, below: cells that the student added before the exercise and after its check. why: the reason for which a
    wrong answer keeps every point, or a right one loses some.
    """

    lesson: str
    exercise: str
    what: str
    code: str
    kind: str = RIGHT
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    why: str = ""


def written_answers(name: str) -> list[WrittenAnswer]:
    """Every answer of the tables of that name, lesson by lesson."""
    return [answer for file in sorted(FOLDER.glob(f"*/{name}.toml")) for answer in _answers(file)]


def _answers(file: Path) -> list[WrittenAnswer]:
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["answer"]
    return [_answer(file.parent.name[1:3], entry) for entry in entries]


def _answer(lesson: str, entry: dict) -> WrittenAnswer:
    cells = {name: tuple(cell.strip("\n") for cell in entry.pop(name, ())) for name in ("above", "below")}
    return WrittenAnswer(lesson, **{**entry, "code": entry["code"].strip("\n")}, **cells)
