"""From what a submission's checks sent to verdicts: tensors and keys in, points and reasons out.

Knows nothing of nbgrader, writes no file, runs no student's code. `execute` (or a kernel of nbgrader's) says what each
check came to, as a `CheckRun`; `gradebook` writes down what is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from helpers.checking import answers
from helpers.checking.answers import Answer
from helpers.checking.keys import AnswerKey
from helpers.checking.verdicts import Verdict, judge, no_answer
from helpers.exercises import Exercise, Lesson
from helpers.grading.findings import Finding


class Why(Enum):
    """Why a check sent no answer."""

    SILENT = "it ran, and sent none"
    RAISED = "the check cell raised"
    LATE = "the cell took too long"
    DIED = "the process ended"
    NOT_RUN = "it was not run"
    NOTHING_TO_RUN = "nothing that was handed in could be run"


@dataclass(frozen=True)
class CheckRun:
    """What one check cell came to.

    sent: the answers that it sent, as JSON that nobody has looked at yet; honest checks send one. why: where it sent
    none, the reason. says: more about the reason, in words that may be the student's own. error: the name of the
    exception where it raised.
    """

    sent: tuple[object, ...] = ()
    why: Why = Why.SILENT
    says: str = ""
    error: str = ""


@dataclass(frozen=True)
class Judged:
    """The verdict on one exercise, and the answer that was judged; None where nothing could be.

    look: what was found for the instructor. decision: "", or one of `findings`' WAITS, ACCEPTED and REFUSED. earned: the points
    that the numbers earn, where the verdict's own wait for the instructor or were refused; None where they are the same.
    """

    verdict: Verdict
    answer: Answer | None = None
    look: tuple[Finding, ...] = ()
    decision: str = ""
    earned: float | None = None


def judge_submission(
    lesson: Lesson, key: AnswerKey, runs: Mapping[str, CheckRun], sources: Mapping[str, str]
) -> dict[str, Judged]:
    """The verdict on every exercise of the lesson, by its name.

    runs: what each exercise's check came to; one that is missing was not run. sources: the text of each exercise's
    solution cell.
    """
    return {
        exercise.name: judge_check(
            runs.get(exercise.name, CheckRun(why=Why.NOT_RUN, says="its cell was missing")),
            exercise,
            key,
            sources.get(exercise.name, ""),
        )
        for exercise in lesson
    }


def judge_check(run: CheckRun, exercise: Exercise, key: AnswerKey, source: str) -> Judged:
    """The verdict on what one check sent. Trusts nothing in it."""
    if not run.sent:
        return Judged(no_answer(exercise, _why_silent(run)))
    if len(run.sent) > 1:
        says = f"The check sent {len(run.sent)} answers where one is expected; none was counted."
        return Judged(no_answer(exercise, says))
    try:
        answer = answers.from_wire(run.sent[0], exercise)
    except answers.MalformedAnswer as problem:
        return Judged(no_answer(exercise, f"The check sent an answer that cannot be judged: {problem}."))
    return Judged(judge(exercise, answer, key[exercise.name], source), answer)


def _why_silent(run: CheckRun) -> str:
    match run.why:
        case Why.LATE:
            return "The check did not finish in time. Is there a loop that never ends?"
        case Why.NOTHING_TO_RUN:
            return f"{run.says}."
        case Why.DIED | Why.NOT_RUN:
            return f"The check gave no answer: {run.says}."
        case Why.RAISED if run.error == "NameError":
            return f"The check gave no answer: {run.says}. The cell above it has to define that name."
        case Why.RAISED:
            return f"The check gave no answer. It stopped with {run.error}: {run.says}"
    return "The check gave no answer."
