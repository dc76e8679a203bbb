"""Making answer keys: the reference and every known mistake, run on the inputs of one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from helpers.authoring.lesson_source import Answers, Source, on_the_cpu
from helpers.authoring.mistakes import Mistake, StudentMistake
from helpers.authoring.student_mistakes import running
from helpers.checking.answers import ANSWERED
from helpers.checking.keys import AnswerKey, ExerciseKey, KnownMistake, Outcomes
from helpers.checking.syntax import digest_of_tree
from helpers.exercises import Exercise
from helpers.notebooks import GETS


class BrokenReference(RuntimeError):
    """A lesson's own solution does not answer one of its probes."""


def make_key(source: Source, seed: int | str) -> AnswerKey:
    """The answer key of a lesson for one seed.

    Raises BrokenReference when the solution fails a probe, BadEdit when a mistake does not fit the solution, NoSandbox
    when the lesson has mistakes in students' own words and there is no sandbox to run them in.
    """
    return make_keys(source, [seed])[0]


def make_keys(
    source: Source, seeds: Sequence[int | str], progress: Callable[[int, int], None] = lambda done, of: None
) -> list[AnswerKey]:
    """The answer keys of a lesson for several seeds; raises as `make_key` does.

    progress: told after each key how many are done, and of how many. Texts are compiled once for all seeds; each seed
    gets objects of its own, for one may remember what it was asked before.
    """
    answers, made = Answers(source), []
    with running(source) as outcomes_of:
        for seed in seeds:
            made.append(_key(source, answers, seed, outcomes_of))
            progress(len(made), len(seeds))
    return made


def _released(source: Source, exercise: Exercise) -> str:
    """What a mended exercise's key knows of the cell that students get. Raises BrokenReference where there is none."""
    if not exercise.mend:
        return ""
    digest = digest_of_tree(source.given().get(exercise.name, ""))
    if exercise.name not in source.given() or not digest:
        raise BrokenReference(
            f"{source.name}/{exercise.name}: what students get to mend is missing, or no Python: {GETS}"
        )
    return digest


def _key(
    source: Source, answers: Answers, seed: int | str, outcomes_of: Callable[[StudentMistake, int | str], Outcomes]
) -> AnswerKey:
    lesson = source.lesson
    known: dict[str, list[Mistake | StudentMistake]] = {exercise.name: [] for exercise in lesson}
    for mistake in (*source.variants(Mistake), *source.variants(StudentMistake)):
        known[lesson[mistake.exercise].name].append(mistake)

    def came_to(exercise: Exercise, mistake: Mistake | StudentMistake) -> Outcomes:
        by_student = isinstance(mistake, StudentMistake)
        return outcomes_of(mistake, seed) if by_student else answers.answer(exercise, seed, mistake).outcomes

    with on_the_cpu():
        entries = {}
        for exercise in lesson:
            reference = answers.answer(exercise, seed).outcomes
            for aspect, outcome in reference.items():
                if outcome.state != ANSWERED:
                    raise BrokenReference(
                        f"{source.name}/{exercise.name}: the solution itself fails in {aspect!r}: "
                        f"{outcome.state}, {outcome.says} {outcome.where}"
                    )
            mistakes = tuple(
                KnownMistake(m.name, m.title, m.says, came_to(exercise, m), m.idle) for m in known[exercise.name]
            )
            entries[exercise.name] = ExerciseKey(reference, mistakes, released=_released(source, exercise))
    return AnswerKey(source.name, str(seed), entries)
