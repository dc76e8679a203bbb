"""A benchmark: answers that were written from the students' notebooks alone, without a look at the known mistakes.

They say how the check does on answers that nobody foresaw (see written_answers.py); no mistake is written for them.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from functools import cache

import pytest
from written_answers import RIGHT, WRONG, written_answers

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.inspect.mutant_verdicts import Feedback, feedback_on
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import judge
from helpers.checking.read.cell_scan import scan_cell
from helpers.checking.run.answers import run
from helpers.checking.run.by_hand import watched

LESSONS = {source.name[:2]: source for source in sources()}
pytestmark = pytest.mark.deep


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
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                defined = solutions.made_of(exercise.name, answer.code)
            except Exception:
                yield answer, None, Feedback.DOES_NOT_RUN
                continue
            with watched(exercise):
                outcomes = run(exercise, defined, key.seed)
        verdict = judge(exercise, outcomes, key[exercise.name], scan_cell(exercise, answer.code))
        yield answer, verdict, feedback_on(outcomes, verdict)


@pytest.fixture(scope="module", params=sorted(LESSONS))
def judged(request):
    return verdicts(request.param)


def test_no_right_answer_is_refused_but_where_it_says_why(judged):
    refused = {
        answer
        for answer, verdict, _ in judged
        if answer.kind == RIGHT and (verdict is None or verdict.points < verdict.out_of)
    }
    assert refused == {answer for answer, *_ in judged if answer.kind == RIGHT and answer.why}


def test_no_wrong_answer_gets_full_marks_but_where_it_says_why(judged):
    full = {
        answer
        for answer, verdict, _ in judged
        if answer.kind == WRONG and verdict is not None and verdict.points >= verdict.out_of
    }
    assert full == {answer for answer, *_ in judged if answer.kind == WRONG and answer.why}


def test_few_wrong_answers_are_told_no_more_than_that_they_are_wrong():
    """Of all lessons together: a lesson has about forty such answers, too few for a share to mean much."""
    judged = [each for number in LESSONS for each in verdicts(number)]
    counts = Counter(feedback for answer, verdict, feedback in judged if verdict and answer.kind == WRONG)
    print(dict(counts))
    assert counts[Feedback.NUMBERS_ONLY] <= 0.04 * counts.total()
    assert counts[Feedback.NAMED] + counts[Feedback.EXPLAINED] > 0.95 * counts.total()
