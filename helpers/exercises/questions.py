"""Questions that carry no points: predictions, and three about earlier lessons before each lesson from 3 on.

They are data, in helpers/lessons/lNN_topic/questions.toml:

    [predictions.early_numbers]     # the name that the student's cell gives a value
    truth = "C"
    A = "What is so, and why A is tempting."

    [recall.shape]                  # shape, cause or bug
    truth = "B"
    asks = "What is the shape of the scores? (lesson 2)"
    A = ["The answer on the card", "What is so."]

The cells that ask about earlier lessons are made from them (see `authoring.build.recall`), and tests/test_recall.py
computes their shapes and numbers.
"""

from __future__ import annotations

import tomllib
from functools import cache

from helpers.course import lesson_folder
from helpers.exercises.exercise import Prediction, Recall


def predictions_of(lesson: str) -> tuple[Prediction, ...]:
    """What the lesson of that name has students predict, in the order of its cells."""
    of_lesson = _read(lesson).get("predictions", {})
    return tuple(Prediction(name, asked["truth"], _letters(asked)) for name, asked in of_lesson.items())


def recall_of(lesson: str) -> tuple[Recall, ...]:
    """The questions about earlier lessons that come before the lesson of that name."""
    questions = []
    for kind, asked in _read(lesson).get("recall", {}).items():
        offers, says = ({letter: pair[part] for letter, pair in _letters(asked).items()} for part in (0, 1))
        questions.append(Recall(f"recall_{kind}", asked["truth"], says, asked["asks"], offers))
    return tuple(questions)


def _letters(asked: dict) -> dict:
    return {key: value for key, value in asked.items() if len(key) == 1}


@cache
def _read(lesson: str) -> dict:
    path = lesson_folder(lesson) / "questions.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
