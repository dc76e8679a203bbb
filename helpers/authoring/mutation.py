"""Judging a lesson's mutants as a student's answers would be: which keep all points, and what the others are told.

A mutant that keeps every point is a hole in the probes, or is equal to the solution, and then stands in mistakes.py as
an `Equal`, with the reason. See `mutants` for how they are made, and the page for authors for how to read the table.
"""

from __future__ import annotations

import contextlib
import io
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from helpers.authoring.lesson_source import Answers, Source, on_the_cpu
from helpers.authoring.mistakes import Equal
from helpers.authoring.mutants import Mutant, mutants, pairs
from helpers.checking.alike import digest_of
from helpers.checking.answers import ANSWERED, Answer, run
from helpers.checking.comparing import telling
from helpers.checking.keys import AnswerKey, ExerciseKey, Guess, sample_of
from helpers.checking.verdicts import Verdict, judge
from helpers.exercises import Exercise

SECONDS = 4  # that a mutant has for all its probes: changed loops may never end

FULL, EQUAL, NAMED = "full marks", "right all the same", "a named mistake"
TOLD, BARE, BROKEN = "told something", "told only that the numbers are not right", "does not run"
LAST_RESORT = "the numbers are not"  # said when nothing better is known
HELPFUL = ("raised", "come out as if", "known mistake")  # said beside it, these say more


class TimeIsUp(BaseException):
    """A mutant ran too long. No Exception, so that its own `except Exception` does not keep it alive."""


@dataclass(frozen=True)
class Tried:
    """A mutant and what became of it: one of the words above. verdict, answer: None where it does not run."""

    mutant: Mutant
    outcome: str
    verdict: Verdict | None = None
    answer: Answer | None = None


def tried(source: Source, key: AnswerKey, mutants_of: Callable[[str, str], list[Mutant]] = mutants) -> Iterator[Tried]:
    """Every mutant of the lesson, judged with this key. Only in a main thread: the time limit is a signal's.

    mutants_of: makes them, of an exercise's name and its solution cell.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("mutants are tried in the main thread: their time limit is kept by a signal")
    answers, cells = Answers(source), source.cells()
    equal = {(e.exercise, e.old, e.new) for e in source.variants(Equal)}
    for exercise in source.lesson:
        for mutant in mutants_of(exercise.name, cells[exercise.name]):
            try:
                with on_the_cpu(), contextlib.redirect_stdout(io.StringIO()), _time_limit(SECONDS):
                    written = answers.made_of(exercise.name, mutant.text)
                    answer = run(exercise, written, key.seed)
            except (Exception, TimeIsUp):
                yield Tried(mutant, BROKEN)
                continue
            verdict = judge(exercise, answer, key[exercise.name], mutant.text)
            listed = (mutant.exercise, mutant.old, mutant.new) in equal
            yield Tried(mutant, outcome_of(verdict, listed), verdict, answer)


def holes(source: Source, key: AnswerKey) -> list[Tried]:
    """The mutants that keep every point and are not listed as equal."""
    return [one for one in tried(source, key) if one.outcome == FULL]


PAIRS = 40  # of an exercise are tried
MOST_GUESSES = 40  # of an exercise are kept
# From what says most of an answer with the same numbers to what says least. A number that is another says nothing.
TELLING = (
    "call-dropped", "axis", "transpose", "factor", "other-name", "call-doubled", "exchange", "default",
    "call-otherwise", "logic", "comparison", "off-by-one", "option", "in-place", "weight-data", "result", "statement",
    "pair",
)  # fmt: skip


def with_guesses(source: Source, key: AnswerKey, found: Iterable[Tried] = ()) -> AnswerKey:
    """The key with what machine-made wrong answers return where no known mistake does the same.

    found: the lesson's mutants as tried with this key, where that was done already.
    """
    found = [*(found or tried(source, key)), *tried(source, key, lambda name, cell: pairs(name, cell, PAIRS))]
    exercises = {
        exercise.name: replace(key[exercise.name], guesses=guesses_of(exercise, key[exercise.name], found))
        for exercise in source.lesson
    }
    return replace(key, exercises=exercises)


def guesses_of(exercise: Exercise, key: ExerciseKey, found: Iterable[Tried]) -> tuple[Guess, ...]:
    """What is kept of an exercise's mutants, the most telling first. found: of the lesson, tried with this key."""
    kept: dict[tuple, Guess] = {}
    mine = [one for one in found if one.mutant.exercise == exercise.name and one.mutant.operator in TELLING]
    for one in sorted(mine, key=lambda one: TELLING.index(one.mutant.operator)):
        guess = _guess(exercise, key, one)
        if guess:
            kept.setdefault(tuple(sorted(guess.digests.items())), guess)
    return tuple(kept.values())[:MOST_GUESSES]


def same_guesses(shipped: Iterable[Guess], made: Iterable[Guess]) -> bool:
    """Were these kept of the same mutants? Pairs aside. Their digests may differ between machines by a rounding."""

    def of_one_change(guesses):
        return [(guess.made, guess.says, set(guess.digests)) for guess in guesses if guess.made[0] != "pair"]

    return of_one_change(shipped) == of_one_change(made)


def _guess(exercise: Exercise, key: ExerciseKey, one: Tried) -> Guess | None:
    """What this mutant can tell of answers with its numbers: nothing where a named mistake says it, or chance does."""
    if one.answer is None or one.verdict is None or one.verdict.mistakes or one.outcome in (FULL, EQUAL):
        return None
    held = {aspect.name for aspect in one.verdict.aspects if aspect.held}
    lost = [aspect for aspect in exercise.aspects if not aspect.side and aspect.name not in held]
    outcomes = {aspect.name: one.answer.outcomes[aspect.name] for aspect in lost}
    answered = [aspect for aspect in lost if outcomes[aspect.name].state == ANSWERED]
    if not any(telling(outcomes[a.name].tensors, key.reference[a.name].tensors, a) for a in answered):
        return None
    seen = {
        aspect.name: {name: sample_of(tensor) for name, tensor in outcomes[aspect.name].tensors.items()}
        for aspect in answered
    }
    made = (one.mutant.operator, one.mutant.old, one.mutant.new)
    return Guess(one.mutant.says, made, seen, {name: digest_of(outcome) for name, outcome in outcomes.items()})


def outcome_of(verdict: Verdict, listed: bool = False) -> str:
    """What became of an answer, in one of the words above. listed: is it known to be right all the same?"""
    if verdict.points >= verdict.out_of:
        return EQUAL if listed else FULL
    if verdict.mistakes:
        return NAMED
    said = " ".join([verdict.says, *(aspect.says for aspect in verdict.aspects)])
    return TOLD if any(word in said for word in HELPFUL) or LAST_RESORT not in said else BARE


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds / 10)  # once for each aspect that still hangs
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def table(found: list[Tried]) -> str:
    """How many of each outcome, and the mutants that kept every point."""
    outcomes = (FULL, EQUAL, NAMED, TOLD, BARE, BROKEN)
    counts = {outcome: sum(one.outcome == outcome for one in found) for outcome in outcomes}
    lines = [f"{count:6}  {outcome}" for outcome, count in counts.items()]
    return "\n".join([*lines, *(f"  {one.mutant}" for one in found if one.outcome == FULL)])
