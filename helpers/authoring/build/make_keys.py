"""Making answer keys: the reference and every known mistake, run on the inputs of one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from helpers.authoring.build.lesson_source import Answers, Source
from helpers.authoring.build.mistakes import Mistake, StudentMistake
from helpers.authoring.build.student_mistakes import running
from helpers.checking.run.answers import ANSWERED, RAISED, Outcome
from helpers.checking.judge.keys import AnswerKey, ExerciseKey, KnownMistake, Outcomes
from helpers.checking.read.syntax import cell_of
from helpers.exercises import Exercise
from helpers.exercises.exercise import Aspect
from helpers.exercises.tolerance import between_machines
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

    progress: called after each key with how many are done, and of how many. Texts are compiled once for all seeds; each
    seed gets objects of its own, because one may remember earlier calls.
    """
    answers, keys = Answers(source), []
    with running(source) as outcomes_of:
        for seed in seeds:
            keys.append(_key(source, answers, seed, outcomes_of))
            progress(len(keys), len(seeds))
    return keys


def _released(source: Source, exercise: Exercise) -> str:
    """What the key of a bug to fix knows of the cell that students get. Raises BrokenReference where there is none."""
    if not exercise.fixes_bug:
        return ""
    digest = cell_of(source.given().get(exercise.name, "")).digest
    if exercise.name not in source.given() or not digest:
        raise BrokenReference(
            f"{source.name}/{exercise.name}: what students get to fix is missing, or no Python: {GETS}"
        )
    return digest


def _key(
    source: Source, answers: Answers, seed: int | str, outcomes_of: Callable[[StudentMistake, int | str], Outcomes]
) -> AnswerKey:
    lesson = source.lesson
    known: dict[str, list[Mistake | StudentMistake]] = {exercise.name: [] for exercise in lesson}
    for mistake in (*source.variants(Mistake), *source.variants(StudentMistake)):
        known[lesson[mistake.exercise].name].append(mistake)

    def mistaken_outcomes(exercise: Exercise, mistake: Mistake | StudentMistake) -> Outcomes:
        by_student = isinstance(mistake, StudentMistake)
        return outcomes_of(mistake, seed) if by_student else answers.answer(exercise, seed, mistake).outcomes

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
            KnownMistake(m.name, m.title, m.says, mistaken_outcomes(exercise, m)) for m in known[exercise.name]
        )
        entries[exercise.name] = ExerciseKey(reference, mistakes, released=_released(source, exercise))
    return AnswerKey(str(seed), entries)


def same_on_another_machine(shipped: Outcome, fresh: Outcome, aspect: Aspect, *, mistaken: bool = False) -> bool:
    """Can both have come from the same code, on two machines?

    mistaken: it is wrong code, which may magnify roundings (a missing normalisation does, by a hundred): its numbers
    are as near as those by which an answer is taken for that mistake. Of an error its kind is compared: its words are
    Python's or torch's, and differ from version to version.
    """
    if shipped.state != fresh.state or shipped.tensors.keys() != fresh.tensors.keys():
        return False
    if shipped.state == RAISED:
        return _kind(shipped.says) == _kind(fresh.says)
    if shipped.state != ANSWERED:
        return shipped.says == fresh.says
    return all(
        tensor.dtype == fresh.tensors[name].dtype
        and (aspect.tolerance if mistaken else between_machines(aspect.tolerance, tensor.dtype)).holds(
            fresh.tensors[name], tensor
        )
        for name, tensor in shipped.tensors.items()
    )


def _kind(says: str) -> str:
    return says.partition(":")[0]
