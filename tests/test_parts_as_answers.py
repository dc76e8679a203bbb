"""The finished part of an exercise's name is a right answer to it.

So what the tests of parts show, against PyTorch and other libraries, is true of the lessons' solutions too.
"""

from __future__ import annotations

import importlib
import re
from functools import cache, partial

import pytest
from spoiling import Judge

from helpers.course import HELPERS
from helpers.exercises import lesson_names, load_lesson

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((HELPERS / "parts").glob("[a-z]*.py"))}
PARTS = [
    (lesson, exercise.name, f"helpers.parts.{module}.{exercise.name}")
    for lesson in lesson_names()
    for exercise in load_lesson(lesson)
    for module, text in TEXTS.items()
    if re.search(rf"^(def|class) {exercise.name}\b", text, re.MULTILINE)
]
# Parts that do the same in another way than the exercise asks for; their own tests compare them with the library.
OTHERWISE = {
    "helpers.parts.gpt2_writing.generate": "GPT-2's calls the model with a cache",
    "helpers.parts.experts.route": "the balance is a function of its own",
}
OPTIONS = {"helpers.parts.gpt2_writing.generate_cached": {"temperature": 0}}  # the exercise is about greedy text


@cache
def judge_of(lesson: str) -> Judge:
    return Judge(lesson)


@pytest.mark.parametrize(
    ("lesson", "exercise", "part"), [pytest.param(*case, id=case[2]) for case in PARTS if case[2] not in OTHERWISE]
)
def test_a_finished_part_gets_every_point_of_its_exercise(lesson, exercise, part):
    module, _, name = part.rpartition(".")
    answer = getattr(importlib.import_module(module), name)
    if part in OPTIONS:
        answer = partial(answer, **OPTIONS[part])
    verdict = judge_of(lesson).verdict(exercise, answer)
    assert verdict.points == verdict.out_of, [aspect.says for aspect in verdict.aspects if not aspect.held]
