"""Values that an answer can return without solving its exercise: they never change, or it is given them.

What a probe collects in the answer's process counts, before anything is reduced: that is what can be forged.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from helpers.authoring.build.lesson_source import Answers, Source
from helpers.authoring.inspect.untested_settings import CallRecorder, recording
from helpers.checking.judge.compare import COUNTED, close
from helpers.checking.run.answers import Outcome
from helpers.exercises import Exercise
from helpers.exercises.exercise import Aspect

SEEDS = tuple(f"fresh-{number}" for number in range(1, 6))  # two may draw the same sizes by chance


def guessable(source: Source) -> Iterator[str]:
    """Each such aspect, in a sentence. Those that pay only beside values are left out."""
    answers = Answers(source)
    for exercise in source.lesson:
        same, given = guessable_aspects(exercise, answers)
        for name in () if exercise.may_be_typed_in else same:
            yield f"{exercise.name}: {name!r} has the same right values for every seed. Draw its cases"
        for name in given:
            yield f"{exercise.name}: all right values of {name!r} are numbers that the answer is given"
        if exercise.may_be_typed_in and not same:
            yield f"{exercise.name}: it says that its answer may be typed in, and its values depend on the seed"


def guessable_aspects(exercise: Exercise, answers: Answers) -> tuple[list[str], list[str]]:
    """The names of the aspects whose values no seed changes, and of those whose values are numbers that are given.

    Further seeds are tried while there may be one.
    """
    values = [replace(aspect, reduce=None) for aspect in exercise.aspects if not aspect.side]
    same = given = [aspect.name for aspect in values]
    first: dict[str, Outcome] = {}
    for seed in SEEDS:
        recorders = {aspect.name: CallRecorder() for aspect in values if aspect.name in (*same, *given)}
        asked = {a.name: replace(a, probe=recording(a, recorders[a.name])) for a in values if a.name in recorders}
        if not asked:
            break
        outcomes = answers.answer(replace(exercise, aspects=tuple(asked.values())), seed).outcomes
        first = first or dict(outcomes)
        same = [name for name in same if _same_numbers(first[name], outcomes[name], asked[name])]
        given = [name for name in given if _all_given(outcomes[name], recorders[name])]
    return same, given


def _same_numbers(one: Outcome, other: Outcome, aspect: Aspect) -> bool:
    """Are the tensors equal, whatever they are called?"""
    pairs = zip(one.tensors.values(), other.tensors.values(), strict=False)
    return len(one.tensors) == len(other.tensors) and all(close(*pair, aspect) for pair in pairs)


def _all_given(outcome: Outcome, recorder: CallRecorder) -> bool:
    """Is each number of the result a plain number among the arguments? Small whole numbers occur by chance."""
    given = itertools.chain.from_iterable(recorder.values.values())
    arguments = {float(value) for value in given if isinstance(value, (int, float)) and not isinstance(value, bool)}
    numbers = {number for tensor in outcome.tensors.values() for number in tensor.double().unique().tolist()}
    telling = {number for number in numbers if abs(number) >= COUNTED or not number.is_integer()}
    return bool(telling) and numbers <= arguments
