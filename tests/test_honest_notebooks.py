"""Honest notebooks, however unusual, get what their answers deserve, and none waits for anybody."""

from __future__ import annotations

import contextlib
import copy
import json
from functools import cache, lru_cache

import nbformat
import pytest
from conftest import answer_notebook
from honest_notebooks import NOTEBOOKS

from helpers.checking.judge.keys import load_key, shipped_path
from helpers.course import ROOT
from helpers.exercises import load_lesson
from helpers.grading.canary import reference_answers
from helpers.grading.grader import work_of
from helpers.grading.judging import judge_submission
from helpers.grading.sandbox.runner import Runner
from helpers.grading.submissions.restore import restore
from helpers.grading.submissions.untrusted_notebook import screen
from helpers.notebooks import filled_in

LESSONS = sorted({one.lesson for one in NOTEBOOKS})


released = cache(answer_notebook)


def handed_in(one) -> bytes:
    """The file of a notebook, all of whose answers are right, with somebody's habits in it."""
    solved = filled_in(released(one.lesson), reference_answers(ROOT, load_lesson(one.lesson)))
    notebook = json.loads(nbformat.writes(copy.deepcopy(solved)))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    one.edit(notebook)
    return json.dumps(notebook).encode()


@pytest.fixture(scope="module")
def runners():
    """The runner of a lesson; that of the lesson before is ended first."""
    with contextlib.ExitStack() as running:

        @lru_cache(maxsize=1)
        def runner(lesson: str) -> Runner:
            running.close()
            return running.enter_context(Runner(lesson))

        yield runner


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(
    "one",
    [
        pytest.param(
            one,
            id=f"{one.lesson[:2]}-{one.name.replace(' ', '_')}",
            marks=() if one.lesson == LESSONS[0] else pytest.mark.deep,
        )
        for one in NOTEBOOKS
    ],
)
def test_an_honest_notebook_gets_what_its_answers_deserve(one, runners):
    lesson, key = load_lesson(one.lesson), load_key(load_lesson(one.lesson), shipped_path(one.lesson), "")
    restored = restore(screen(handed_in(one)).notebook, released(one.lesson)).notebook
    executed = runners(one.lesson).execute(work_of(lesson, restored, released(one.lesson)), key.seed)
    judged = judge_submission(lesson, key, executed.runs, executed.read)
    earned = {name: (found.verdict.points, found.decision) for name, found in judged.items()}
    expected = {e.name: (0 if e.name in one.loses else e.points, "") for e in lesson}
    lost = [name for name in expected if earned[name] != expected[name]]
    assert earned == expected, [judged[name] for name in lost]
    for name in one.loses:
        assert judged[name].verdict.note or judged[name].verdict.says, "a lost point is explained"
