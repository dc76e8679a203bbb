"""Judging a lesson's mutants as a student's answers would be: which keep all points, and what the others are told.

A mutant that keeps every point is a hole in the probes, or is equivalent to the solution, and is then listed in
mistakes.toml with the reason. See `mutants` for how they are made, and the page for authors for how to read the table.
"""

from __future__ import annotations

import contextlib
import io
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from helpers.authoring.lesson_source import Answers, Source, on_the_cpu
from helpers.authoring.mistakes import EquivalentMutant
from helpers.authoring.mutants import Mutant, mutants
from helpers.checking.cell_scan import facts_of
from helpers.checking.keys import AnswerKey
from helpers.checking.verdicts import Verdict, judge

SECONDS = 4  # that a mutant has for all its probes: changed loops may never end

FULL, EQUAL, NAMED = "full marks", "right all the same", "a named mistake"
TOLD, BARE, BROKEN = "told something", "told only that the numbers are not right", "does not run"
LAST_RESORT = "the numbers are not"  # said when nothing better is known
HELPFUL = ("raised", "known mistake")  # said beside it, these say more


class TimeIsUp(BaseException):
    """A mutant ran too long. No Exception, so that its own `except Exception` does not keep it alive."""


@dataclass(frozen=True)
class Tried:
    """A mutant and what became of it: one of the words above. verdict: None where it does not run."""

    mutant: Mutant
    outcome: str
    verdict: Verdict | None = None


def tried(source: Source, key: AnswerKey, mutants_of: Callable[[str, str], list[Mutant]] = mutants) -> Iterator[Tried]:
    """Every mutant of the lesson, judged with this key. Only in a main thread: the time limit is a signal's.

    mutants_of: makes them, of an exercise's name and its solution cell.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("mutants are tried in the main thread: their time limit is kept by a signal")
    answers, cells = Answers(source), source.cells()
    equal = {(e.exercise, e.old, e.new) for e in source.variants(EquivalentMutant)}
    for exercise in source.lesson:
        for mutant in mutants_of(exercise.name, cells[exercise.name]):
            try:
                with on_the_cpu(), contextlib.redirect_stdout(io.StringIO()), _time_limit(SECONDS):
                    answer = answers.answer(exercise, key.seed, text=mutant.text)
            except (Exception, TimeIsUp):
                yield Tried(mutant, BROKEN)
                continue
            verdict = judge(exercise, answer, key[exercise.name], facts_of(exercise, mutant.text))
            listed = (mutant.exercise, mutant.old, mutant.new) in equal
            yield Tried(mutant, outcome_of(verdict, listed), verdict)


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
