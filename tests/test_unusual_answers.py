"""Right answers in unusual style, judged as a batch judges: full marks, and nothing that waits."""

from __future__ import annotations

import copy

import nbformat
import pytest
from conftest import answer_notebook, solved
from stand_in import StandIn
from written_answers import written_answers

from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import RIGHT
from helpers.exercises import lesson_names, load_lesson
from helpers.grading.grader import work_of
from helpers.grading.judging import judge_submission
from helpers.grading.submissions.restore import restore
from helpers.notebooks import check_id, filled_in, grade_id, without_marks

UNUSUAL = written_answers("unusual")


def full_name(number):
    return next(name for name in lesson_names() if name.startswith(number))


def handed_in(unusual, released):
    """The notebook as a student would send it: their own cells above the exercise and under its check."""
    solutions = {name: without_marks(text) for name, text in solved(full_name(unusual.lesson)).items()}
    notebook = filled_in(released, solutions | {unusual.exercise: unusual.code})
    for text in unusual.below:
        notebook.cells.insert(place_of(notebook, check_id(unusual.exercise)) + 1, nbformat.v4.new_code_cell(text))
    for text in unusual.above:
        notebook.cells.insert(place_of(notebook, unusual.exercise), nbformat.v4.new_code_cell(text))
    return notebook


def place_of(notebook, name):
    return next(place for place, cell in enumerate(notebook.cells) if grade_id(cell) == name)


@pytest.mark.parametrize("unusual", UNUSUAL, ids=lambda u: f"{u.lesson}-{u.exercise}-{u.what}")
def test_a_right_answer_in_unusual_style_gets_every_point(unusual):
    name = full_name(unusual.lesson)
    lesson, released = load_lesson(name), answer_notebook(name)
    exercise, key = lesson[unusual.exercise], load_key(lesson, shipped_path(name), "")
    notebook = restore(handed_in(unusual, released), copy.deepcopy(released)).notebook
    executed = StandIn(name).execute(work_of(lesson, notebook, released), key.seed, only=(exercise.name,))
    about = judge_submission(lesson, key, executed.runs, executed.read)[exercise.name]
    assert (about.verdict.state, about.verdict.points) == (RIGHT, exercise.points), about
    assert about.decision == "" and not about.look
