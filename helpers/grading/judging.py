"""From the results of a submission's answers to verdicts: tensors and keys in, points and reasons out.

Knows nothing of nbgrader, writes no file, runs and reads no student's code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from helpers.checking.judge.keys import AnswerKey
from helpers.checking.judge.predictions import Predicted, predicted
from helpers.checking.judge.recognition import unexplained
from helpers.checking.judge.verdicts import ON_HOLD, RIGHT, UNWRITTEN, Verdict, judge, no_answer, not_started
from helpers.checking.read.cell_scan import CellScan, Finding, SubmissionScan
from helpers.checking.read.program_slice import ProgramSlice
from helpers.checking.read.syntax import cell_of
from helpers.checking.run import answers
from helpers.checking.run.answers import Answer
from helpers.exercises import Exercise, Lesson

NEEDS_REVIEW, ACCEPTED, REFUSED = "waits", "accepted", "refused"  # what a decision can be, beside ""


@dataclass(frozen=True)
class ExerciseRun:
    """The result of running one exercise."""

    sent: object = None
    """The answer that it sent, as unchecked JSON; None for none."""
    says: str = ""
    """Why it sent none, or where the answer's cells stopped, possibly in the student's own words."""
    absent: bool = False
    """It sent none because the submission holds none, which no broken machine causes."""
    noticed: tuple[str, ...] = ()
    """Sentences on what the answer did that no exercise needs."""
    shipped: object = None
    """As sent, what the same code answered on the inputs of the shipped key, on which everybody's answers can be
    compared, in the aspects that are wrong; None where it was not tried.
    """


@dataclass(frozen=True)
class JudgedExercise:
    """The verdict on one exercise, and the answer that was judged; None where there was none."""

    verdict: Verdict
    answer: Answer | None = None
    scan: CellScan = CellScan()  # noqa: RUF009 (it is frozen)
    """What its text shows."""
    look: tuple[Finding, ...] = ()
    """Findings for the instructor."""
    decision: str = ""
    """Either "", NEEDS_REVIEW, ACCEPTED or REFUSED."""
    earned: float = 0
    """The points that the numbers earn, whatever was decided."""
    digest: str = ""
    """Identifies what is decided about."""


Decide = Callable[[str, str], str]  # an exercise and a digest (see `review_digest`) -> "", ACCEPTED or REFUSED


def judge_submission(
    lesson: Lesson,
    key: AnswerKey,
    runs: Mapping[str, ExerciseRun],
    read: SubmissionScan,
    decided: Decide = lambda exercise, digest: "",
) -> dict[str, JudgedExercise]:
    """The verdict on every exercise of the lesson, by its name.

    runs: by exercise; one that is missing was not run. read: what the text of the submission shows. decided: the
    instructor's decisions about findings.
    """
    judged = {}
    for exercise in lesson:
        run = runs.get(exercise.name, ExerciseRun(says="There is no answer: its cell was missing."))
        program = read.slices.get(exercise.name, ProgramSlice("", (), ""))
        by_numbers = judge_run(run, exercise, key, read.scans.get(exercise.name, CellScan()), program)
        judged[exercise.name] = with_findings(by_numbers, exercise, run, program, decided)
    return judged


def judge_predictions(lesson: Lesson, read: SubmissionScan) -> dict[str, Predicted]:
    """The predictions and the answers about earlier lessons by name, from the literals in the cells. No points."""
    return {p.name: predicted(p, read.predictions.get(p.name) or ...) for p in lesson.questions}


def with_findings(
    judged: JudgedExercise, exercise: Exercise, run: ExerciseRun, program: ProgramSlice, decided: Decide
) -> JudgedExercise:
    """The verdict, with regard to how the numbers came about.

    An unwritten exercise earns nothing. Points wait for a decision where there are findings. An answer without points
    need not be looked at.
    """
    verdict, scan = judged.verdict, judged.scan
    if scan.begun and verdict.state == RIGHT:
        stub = Finding(exercise.name, 0, "", UNWRITTEN)
        return replace(judged, verdict=no_answer(exercise, UNWRITTEN), look=(stub,))
    findings = tuple(_findings(exercise.name, scan, run))
    judged = replace(judged, look=findings, earned=verdict.points)
    if not verdict.points or not findings:
        return judged
    digest = review_digest(exercise.name, findings, program)
    decision = decided(exercise.name, digest) or NEEDS_REVIEW
    if decision != ACCEPTED:
        verdict = replace(verdict, state=ON_HOLD, points=0, says=_held_up(decision, verdict.points, findings[0]))
    return replace(judged, verdict=verdict, decision=decision, digest=digest)


def _findings(exercise: str, scan: CellScan, run: ExerciseRun) -> Iterator[Finding]:
    if scan.refused:
        yield Finding(exercise, 0, "", f"The cell could not be read: {scan.refused}.")
    yield from scan.suspicious
    yield from (Finding(exercise, 0, "", sentence) for sentence in run.noticed)


def review_digest(exercise: str, findings: tuple[Finding, ...], program: ProgramSlice) -> str:
    """Identifies what is decided about: the answer's text and the findings. A changed answer needs a new decision."""
    words = [exercise, *program.texts, *sorted(finding.why for finding in findings)]
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:24]


def _held_up(decision: str, points: float, first: Finding) -> str:
    where = f"In {first.cell}, line {first.line}: " if first.line else ""
    if decision == REFUSED:
        return f"Your instructor has looked at this, and it earns no points. {where}{first.why}"
    return (
        f"The numbers earn {points:g}, and your instructor will look before they count: it is not clear that they come "
        f"from this exercise's own cell. {where}{first.why}"
    )


def judge_run(
    run: ExerciseRun, exercise: Exercise, key: AnswerKey, scan: CellScan, program: ProgramSlice
) -> JudgedExercise:
    """The verdict on what one exercise sent. Trusts nothing in it."""
    if run.sent is None:
        if scan.stub:
            return JudgedExercise(not_started(exercise, scan.elsewhere), scan=scan)
        moved = scan.elsewhere if not cell_of(program.own).binds(exercise.name) else ""
        silent = no_answer(exercise, f"{run.says} {moved}".rstrip())
        return JudgedExercise(_with_note(silent, program), scan=scan)
    try:
        answer = answers.received(run.sent, exercise, key.seed)
    except answers.MalformedAnswer as problem:
        text = f"The exercise sent an answer that cannot be judged: {problem}."
        return JudgedExercise(no_answer(exercise, text), scan=scan)
    verdict = judge(exercise, answer, key[exercise.name], scan)
    return JudgedExercise(_with_note(verdict, program, run.says), answer, scan)


def unexplained_of(lesson: Lesson, key: AnswerKey, exercise: str, sent: object) -> list[str]:
    """See `recognition.unexplained`. sent: what this exercise sent; none where it cannot be read."""
    try:
        answer = answers.received(sent, lesson[exercise], key.seed)
    except answers.MalformedAnswer:
        return []
    return unexplained(lesson[exercise], answer, key[exercise])


def _with_note(verdict: Verdict, program: ProgramSlice, stopped: str = "") -> Verdict:
    """The verdict, noting what the answer reads and cannot have in an exam, or else where its cells stopped."""
    note = "" if verdict.state == RIGHT else " ".join(program.missing.values()) or stopped
    return replace(verdict, note=note) if note else verdict
