"""From what a submission's answers sent to verdicts: tensors and keys in, points and reasons out.

Knows nothing of nbgrader, writes no file, runs and reads no student's code. `execute` says what each exercise came to,
as a `CheckRun`; `gradebook` writes down what is said here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from helpers.checking import answers
from helpers.checking.answers import Answer
from helpers.checking.cell_scan import CellScan, SubmissionScan
from helpers.checking.keys import AnswerKey
from helpers.checking.predictions import Predicted, predicted
from helpers.checking.program_slice import ProgramSlice
from helpers.checking.verdicts import ON_HOLD, RIGHT, UNWRITTEN, Verdict, judge, no_answer, not_started
from helpers.exercises import Exercise, Lesson
from helpers.grading.flags import ACCEPTED, CHANGES, LEADS_OUT, REFUSED, STUB, UNREADABLE, WAITS, Finding


class Why(Enum):
    """Why an exercise sent no answer."""

    SILENT = "it ran, and sent none"
    STUB = "it still holds the stub"
    UNDEFINED = "its cell does not define it"
    LATE = "it took too long"
    DIED = "the process ended"
    NOT_RUN = "it was not run"
    NOTHING_TO_RUN = "nothing that was handed in could be run"


@dataclass(frozen=True)
class CheckRun:
    """What one exercise came to.

    sent: the answer that it sent, as JSON that nobody has looked at yet; None for none. why: where it sent none, the
    reason. says: more about the reason, or where the answer's cells stopped, in words that may be the student's
    own. changed: what the answer replaced of torch or of the probes, by name.
    """

    sent: object = None
    why: Why = Why.SILENT
    says: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    """The verdict on one exercise, and the answer that was judged; None where nothing could be.

    facts: what its text shows. look: what was found for the instructor. decision: "", or one of `findings`' WAITS,
    ACCEPTED and REFUSED. earned: the points that the numbers earn, where the verdict's own wait for the instructor or
    were refused; None where they are the same. digest: names what is decided about (see `digest_of`).
    """

    verdict: Verdict
    answer: Answer | None = None
    facts: CellScan = CellScan()  # noqa: RUF009 (it is frozen)
    look: tuple[Finding, ...] = ()
    decision: str = ""
    earned: float | None = None
    digest: str = ""


Decide = Callable[[str, str], str]  # an exercise and the digest of what is looked at -> "", ACCEPTED or REFUSED


def judge_submission(
    lesson: Lesson,
    key: AnswerKey,
    runs: Mapping[str, CheckRun],
    read: SubmissionScan,
    decided: Decide = lambda exercise, digest: "",
) -> dict[str, Judged]:
    """The verdict on every exercise of the lesson, by its name.

    runs: what each exercise came to; one that is missing was not run. read: what the text of the submission shows.
    decided: what the instructor has decided about findings.
    """
    judged = {}
    for exercise in lesson:
        run = runs.get(exercise.name, CheckRun(why=Why.NOT_RUN, says="its cell was missing"))
        program = read.slices.get(exercise.name, ProgramSlice("", (), ""))
        judged[exercise.name] = weigh(
            judge_run(run, exercise, key, read.scans.get(exercise.name, CellScan()), program),
            exercise,
            run,
            program,
            decided,
        )
    return judged


def judge_predictions(lesson: Lesson, read: SubmissionScan) -> dict[str, Predicted]:
    """What was predicted, by the prediction's name, from the literals in the cells. It is worth nothing."""
    return {p.name: predicted(p, read.predictions.get(p.name) or ...) for p in lesson.predictions}


def weigh(judged: Judged, exercise: Exercise, run: CheckRun, program: ProgramSlice, decided: Decide) -> Judged:
    """What the numbers earn, weighed with how they came about.

    An unwritten exercise earns nothing. Where something was found that an instructor is to see, the points wait for a
    decision. What earns nothing need not be looked at.
    """
    verdict, facts = judged.verdict, judged.facts
    if facts.begun and verdict.state == RIGHT:
        stub = Finding(STUB, exercise.name, exercise.name, 0, "", UNWRITTEN, holds=False)
        return replace(judged, verdict=no_answer(exercise, UNWRITTEN), look=(stub,))
    findings = tuple(_found(exercise.name, facts, run))
    if not verdict.points or not findings:
        return replace(judged, look=findings)
    digest = digest_of(exercise.name, findings, program)
    decision = decided(exercise.name, digest) or WAITS
    if decision != ACCEPTED:
        verdict = replace(verdict, state=ON_HOLD, points=0, says=_held_up(decision, verdict.points, findings))
    return replace(
        judged, verdict=verdict, look=findings, decision=decision, earned=judged.verdict.points, digest=digest
    )


def _found(exercise: str, facts: CellScan, run: CheckRun) -> Iterator[Finding]:
    """What an instructor is to look at before an answer counts."""
    if facts.refused:
        yield Finding(UNREADABLE, exercise, exercise, 0, "", f"The cell could not be read: {facts.refused}.")
    for one in facts.suspicious:
        yield Finding(LEADS_OUT, exercise, one.cell, one.line, one.excerpt, one.why)
    if run.changed:
        names = ", ".join(f"`{name}`" for name in run.changed)
        why = f"While the answer ran, {names} was replaced. No exercise needs that."
        yield Finding(CHANGES, exercise, exercise, 0, "", why)


def digest_of(exercise: str, findings: tuple[Finding, ...], program: ProgramSlice) -> str:
    """Names what is decided about: the answer's text, and what was found. Another text is another matter."""
    words = [exercise, *program.texts, *sorted(f"{finding.rule} {finding.why}" for finding in findings)]
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:24]


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


def judge_run(run: CheckRun, exercise: Exercise, key: AnswerKey, facts: CellScan, program: ProgramSlice) -> Judged:
    """The verdict on what one exercise sent. Trusts nothing in it."""
    if run.why is Why.STUB:
        return Judged(not_started(exercise), facts=facts)
    if run.sent is None:
        return Judged(_noting(no_answer(exercise, _why_silent(run)), program), facts=facts)
    try:
        answer = answers.from_wire(run.sent, exercise)
    except answers.MalformedAnswer as problem:
        says = f"The exercise sent an answer that cannot be judged: {problem}."
        return Judged(no_answer(exercise, says), facts=facts)
    return Judged(_noting(judge(exercise, answer, key[exercise.name], facts), program, run.says), answer, facts)


def _noting(verdict: Verdict, program: ProgramSlice, stopped: str = "") -> Verdict:
    """The verdict, with what the answer reads and cannot have in an exam, or else where its cells stopped."""
    note = "" if verdict.state == RIGHT else " ".join(program.missing.values()) or stopped
    return replace(verdict, note=note) if note else verdict


def _why_silent(run: CheckRun) -> str:
    match run.why:
        case Why.LATE:
            return "The answer did not finish in time. Is there a loop that never ends?"
        case Why.UNDEFINED | Why.NOTHING_TO_RUN:
            return f"{run.says.rstrip('.')}."
        case Why.DIED | Why.NOT_RUN:
            return f"There is no answer: {run.says}."
    return f"There is no answer. {run.says}".rstrip()
