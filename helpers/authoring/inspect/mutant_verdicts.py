"""Judging a lesson's mutants as a student's answers would be: which keep all points, and what the others are told.

A mutant that keeps every point is a hole in the probes, or is equivalent to the solution, and is then listed in
mistakes.toml with the reason. See `mutants` for how they are made, and the page for authors for how to read the table.
"""

from __future__ import annotations

import contextlib
import enum
import io
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from helpers.authoring.build.lesson_source import Answers, Source
from helpers.authoring.build.mistakes import EquivalentMutant
from helpers.authoring.inspect.mutants import Mutant, mutants
from helpers.checking.judge.keys import AnswerKey
from helpers.checking.judge.messages import LIKE
from helpers.checking.judge.partly_right import NUMBERS_WRONG
from helpers.checking.judge.verdicts import Verdict, judge
from helpers.checking.read.cell_scan import scan_cell
from helpers.checking.run.answers import RAISED, Answer
from helpers.checking.run.isolation import import_what_is_late

SECONDS = 4  # of processor time that a mutant has for all its probes: changed loops may never end


class Feedback(enum.Enum):
    """What an answer earns and is told. The value is its name in tables."""

    FULL_MARKS = "full marks"
    EQUIVALENT = "right all the same"
    NAMED = "a named mistake"
    EXPLAINED = "told something"
    NUMBERS_ONLY = "told only that the numbers are not right"
    DOES_NOT_RUN = "does not run"


class TimeIsUp(BaseException):
    """A mutant ran too long. No Exception, so that its own `except Exception` does not keep it alive."""


@dataclass(frozen=True)
class JudgedMutant:
    """A mutant and its feedback."""

    mutant: Mutant
    feedback: Feedback
    verdict: Verdict | None = None
    """None where it does not run."""


def judged_mutants(
    source: Source, key: AnswerKey, mutants_of: Callable[[str, str], list[Mutant]] = mutants
) -> Iterator[JudgedMutant]:
    """Every mutant of the lesson, judged with this key. Only in the main thread: the time limit is a signal's.

    mutants_of: makes them, from an exercise's name and its solution cell.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("mutants run in the main thread: their time limit is kept by a signal")
    import_what_is_late()  # half imported, where a time limit ends a mutant, it would break those that come after
    answers, cells = Answers(source), source.cells()
    equivalent = {(e.exercise, e.old, e.new) for e in source.variants(EquivalentMutant)}
    for exercise in source.lesson:
        for mutant in mutants_of(exercise.name, cells[exercise.name]):
            try:
                with contextlib.redirect_stdout(io.StringIO()), _time_limit(SECONDS):
                    answer = answers.answer(exercise, key.seed, text=mutant.text)
            except (Exception, TimeIsUp):
                yield JudgedMutant(mutant, Feedback.DOES_NOT_RUN)
                continue
            verdict = judge(exercise, answer, key[exercise.name], scan_cell(exercise, mutant.text))
            listed = (mutant.exercise, mutant.old, mutant.new) in equivalent
            yield JudgedMutant(mutant, feedback_on(answer, verdict, listed), verdict)


def feedback_on(answer: Answer, verdict: Verdict, listed: bool = False) -> Feedback:
    """The feedback on an answer. listed: it is known to be right all the same."""
    if verdict.points >= verdict.out_of:
        return Feedback.EQUIVALENT if listed else Feedback.FULL_MARKS
    if verdict.mistakes:
        return Feedback.NAMED
    messages = [line.says for line in verdict.aspects]
    numbers_wrong = any(NUMBERS_WRONG in message for message in messages)
    similar = any(LIKE.partition("{")[0] in message for message in messages)
    raised = any(outcome.state == RAISED for outcome in answer.outcomes.values())
    return Feedback.NUMBERS_ONLY if numbers_wrong and not (similar or raised) else Feedback.EXPLAINED


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds / 10)  # once for each aspect that still hangs
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def table(judged: list[JudgedMutant]) -> str:
    """How many got which feedback, and the mutants that kept every point."""
    counts = Counter(one.feedback for one in judged)
    lines = [f"{counts[feedback]:6}  {feedback.value}" for feedback in Feedback]
    return "\n".join([*lines, *(f"  {one.mutant}" for one in judged if one.feedback is Feedback.FULL_MARKS)])
