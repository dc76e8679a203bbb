"""Answers that were written from the students' notebooks alone, before anybody looked at the known mistakes.

They say how the check does on answers that nobody foresaw (see written_answers.py); no mistake is written for them.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from functools import cache

import pytest
from written_answers import RIGHT, WRONG, written_answers

from helpers.authoring.lesson_source import Answers, on_the_cpu, sources
from helpers.authoring.mutant_verdicts import Feedback, feedback_on
from helpers.checking.answers import run
from helpers.checking.cell_scan import scan_cell
from helpers.checking.forbidden import barred
from helpers.checking.keys import load_key, shipped_path
from helpers.checking.verdicts import judge

LESSONS = {source.name[:2]: source for source in sources()}
pytestmark = pytest.mark.deep

# Wrong answers that keep every point, and right ones that lose some, each with the reason: (lesson, exercise, what).
LET_PASS: dict[tuple[str, str, str], str] = {
    (
        "07",
        "block_parameters",
        "e / h makes a float of the count; an integer is asked for",
    ): "a whole number is right, whatever its type; lesson 4's card asks for an integer and its check holds it",
    (
        "09",
        "keep_top_p",
        "> p for >= p in the sum before a token: where the first ones have exactly p together, one too many stays"
        " (two equal logits, p = 0.5)",
    ): "which of equally probable tokens stay at the edge is left open",
    (
        "11",
        "encode",
        "one single pass through the merges: a pair of lower rank that comes into being later is missed",
    ): "right for every list of merges that was learned from a text",
}
NOT_RIGHT: dict[tuple[str, str, str], str] = {
    (
        "07",
        "LayerNorm",
        "PyTorch's function with this module's parameters and epsilon",
    ): "the card says that PyTorch's own norm is not for use here",
}


@cache
def verdicts(number):
    """Every unseen answer of a lesson, with its verdict and the feedback; None where its cell does not even run."""
    return list(_verdicts(number))


def _verdicts(number):
    source = LESSONS[number]
    solutions, key = Answers(source), load_key(source.lesson, shipped_path(source.name), "")
    for answer in written_answers("unseen"):
        if answer.lesson != number:
            continue
        exercise = source.lesson[answer.exercise]
        with on_the_cpu(), contextlib.redirect_stdout(io.StringIO()):
            try:
                defined = solutions.made_of(exercise.name, answer.code)
            except Exception:
                yield answer, None, Feedback.DOES_NOT_RUN
                continue
            with barred(exercise.forbidden):
                outcomes = run(exercise, defined, key.seed)
        verdict = judge(exercise, outcomes, key[exercise.name], scan_cell(exercise, answer.code))
        yield answer, verdict, feedback_on(outcomes, verdict)


@pytest.fixture(scope="module", params=sorted(LESSONS))
def judged(request):
    return request.param, verdicts(request.param)


def test_no_right_answer_is_refused(judged):
    number, answers = judged
    refused = {
        (number, answer.exercise, answer.what)
        for answer, verdict, _ in answers
        if answer.kind == RIGHT and (verdict is None or verdict.points < verdict.out_of)
    }
    assert refused == {entry for entry in NOT_RIGHT if entry[0] == number}


def test_no_wrong_answer_gets_full_marks(judged):
    number, answers = judged
    full = {
        (number, answer.exercise, answer.what)
        for answer, verdict, _ in answers
        if answer.kind == WRONG and verdict is not None and verdict.points >= verdict.out_of
    }
    assert full == {entry for entry in LET_PASS if entry[0] == number}


def test_few_wrong_answers_are_told_no_more_than_that_they_are_wrong():
    """Of all lessons together: a lesson has about forty such answers, too few for a share to mean much."""
    judged = [each for number in LESSONS for each in verdicts(number)]
    counts = Counter(feedback for answer, verdict, feedback in judged if verdict and answer.kind == WRONG)
    print(dict(counts))
    assert counts[Feedback.NUMBERS_ONLY] <= 0.04 * counts.total()
    assert counts[Feedback.NAMED] + counts[Feedback.EXPLAINED] > 0.95 * counts.total()
