"""Making answer keys: the reference and every known mistake, run on the inputs of one seed."""

from __future__ import annotations

from helpers.authoring.lesson_source import Answers, Source, on_the_cpu
from helpers.authoring.mistakes import Mistake
from helpers.checking.answers import ANSWERED, run
from helpers.checking.keys import AnswerKey, ExerciseKey, KnownMistake


class BrokenReference(RuntimeError):
    """A lesson's own solution does not answer one of its probes."""


def make_key(source: Source, seed: int | str) -> AnswerKey:
    """The answer key of a lesson for one seed.

    Raises BrokenReference when the solution fails a probe, BadEdit when a mistake does not fit the solution.
    """
    answers = Answers(source)
    lesson = source.lesson
    known: dict[str, list[Mistake]] = {exercise.name: [] for exercise in lesson}
    for mistake in source.variants(Mistake):
        known[lesson[mistake.exercise].name].append(mistake)
    with on_the_cpu():
        entries = {}
        for exercise in lesson:
            reference = run(exercise, answers.make(exercise.name), seed).outcomes
            for aspect, outcome in reference.items():
                if outcome.state != ANSWERED:
                    raise BrokenReference(
                        f"{source.name}/{exercise.name}: the solution itself fails in {aspect!r}: "
                        f"{outcome.state}, {outcome.says} {outcome.where}"
                    )
            mistakes = tuple(
                KnownMistake(m.slug, m.title, m.says, run(exercise, answers.make(exercise.name, m), seed).outcomes)
                for m in known[exercise.name]
            )
            entries[exercise.name] = ExerciseKey(reference, mistakes)
    return AnswerKey(source.name, str(seed), entries)
