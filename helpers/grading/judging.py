"""From what a submission's checks sent to verdicts: tensors and keys in, points and reasons out.

Knows nothing of nbgrader, writes no file, runs no student's code. `execute` (or a kernel of nbgrader's) says what each
check came to, as a `CheckRun`; `gradebook` writes down what is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from helpers.checking import answers
from helpers.checking.answers import Answer
from helpers.checking.keys import AnswerKey
from helpers.checking.predicting import Predicted, from_wire
from helpers.checking.verdicts import LOOK, RIGHT, UNWRITTEN, Verdict, judge, no_answer
from helpers.exercises import Exercise, Lesson
from helpers.grading.findings import ACCEPTED, REFUSED, STUB, WAITS, Finding
from helpers.grading.provenance import Examined, digest_of, entered_of


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

    look: what was found for the instructor. decision: "", or one of `findings`' WAITS, ACCEPTED and REFUSED. earned:
    the points that the numbers earn, where the verdict's own wait for the instructor or were refused; None where they
    are the same. digest: names what is decided about (see `provenance.digest_of`).
    """

    verdict: Verdict
    answer: Answer | None = None
    look: tuple[Finding, ...] = ()
    decision: str = ""
    earned: float | None = None
    digest: str = ""


Decide = Callable[[str, str], str]  # an exercise and the digest of what is looked at -> "", ACCEPTED or REFUSED


def judge_submission(
    lesson: Lesson,
    key: AnswerKey,
    runs: Mapping[str, CheckRun],
    sources: Mapping[str, str],
    examined: Mapping[str, Examined] | None = None,
    decided: Decide = lambda exercise, digest: "",
) -> dict[str, Judged]:
    """The verdict on every exercise of the lesson, by its name.

    runs: what each exercise's check came to; one that is missing was not run. sources: the text of each exercise's
    solution cell. examined: what was found in the text of the notebook (see `provenance`). decided: what the instructor
    has decided about such findings.
    """
    judged = {}
    for exercise in lesson:
        missing = CheckRun(why=Why.NOT_RUN, says="its cell was missing")
        source = sources.get(exercise.name, "")
        found = judge_check(runs.get(exercise.name, missing), exercise, key, source)
        about = (examined or {}).get(exercise.name, Examined(texts={exercise.name: source}))
        judged[exercise.name] = weigh(found, exercise, about, decided)
    return judged


def judge_predictions(lesson: Lesson, runs: Mapping[str, CheckRun]) -> dict[str, Predicted]:
    """What was predicted, by the prediction's name. It is worth nothing, and nothing is believed but a choice.

    Honest checks send one choice; of two or more none counts, and what sent nothing predicted nothing.
    """
    found = {}
    for prediction in lesson.predictions:
        sent = runs[prediction.name].sent if prediction.name in runs else ()
        found[prediction.name] = from_wire(sent[0] if len(sent) == 1 else None, prediction)
    return found


def weigh(judged: Judged, exercise: Exercise, examined: Examined, decided: Decide) -> Judged:
    """What the numbers earn, weighed with where they come from.

    An unwritten exercise earns nothing. Where something was found that holds points up, they wait for the instructor,
    who accepts or refuses. What earns nothing need not be looked at.
    """
    verdict, names = judged.verdict, judged.answer.entered if judged.answer else ()
    if examined.stub or examined.begun and verdict.state == RIGHT:
        if verdict.points or verdict.says == UNWRITTEN:
            stub = Finding(STUB, exercise.name, exercise.name, 0, "", UNWRITTEN, holds=False)
            return Judged(no_answer(exercise, UNWRITTEN), judged.answer, (stub, *examined.findings))
        return replace(judged, look=examined.findings)
    findings = [*examined.findings, *entered_of(exercise, names)]
    if not verdict.points or not any(finding.holds for finding in findings):
        return replace(judged, look=tuple(findings))
    digest = digest_of(exercise.name, findings, examined.texts)
    decision = decided(exercise.name, digest) or WAITS
    if decision != ACCEPTED:
        verdict = replace(verdict, state=LOOK, points=0, says=_held_up(decision, verdict.points, findings))
    return Judged(verdict, judged.answer, tuple(findings), decision, judged.verdict.points, digest)


def earned(judged: Judged) -> float:
    """The points that the numbers earn, whatever was decided about them."""
    return judged.verdict.points if judged.earned is None else judged.earned


def _held_up(decision: str, earned: float, findings: list[Finding]) -> str:
    first = next(finding for finding in findings if finding.holds)
    where = f"In {first.cell}, line {first.line}: " if first.line else ""
    if decision == REFUSED:
        return f"Your instructor has looked at this, and it earns no points. {where}{first.why}"
    return (
        f"The numbers earn {earned:g}, and your instructor will look before they count: it is not plain that they come "
        f"from this exercise's own cell. {where}{first.why}"
    )


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
