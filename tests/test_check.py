"""A lesson at a student's desk, in a real kernel."""

from __future__ import annotations

import subprocess
import sys

import nbformat
import pytest
from conftest import answer_notebook, solved
from nbclient import NotebookClient

from helpers.authoring.building import QUIET
from helpers.authoring.lesson_source import sources

LESSONS = [source.name for source in sources()]


def run(notebook):
    """The notebook after Run All Cells, going on past errors."""
    NotebookClient(notebook, timeout=300, allow_errors=True, extra_arguments=QUIET).execute()
    return notebook


def checks(notebook):
    """What each check cell showed, by exercise, as (text, raised)."""
    shown = {}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade"):
            texts = [o.data["text/plain"] for o in cell.outputs if o.output_type == "display_data"]
            errors = [o for o in cell.outputs if o.output_type == "error"]
            shown[about["grade_id"].removeprefix("check_")] = ("".join(texts), errors)
    return shown


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_fresh_notebook_says_not_attempted_and_stays_calm(lesson):
    notebook = run(answer_notebook(lesson))
    for name, (text, errors) in checks(notebook).items():
        assert "not attempted" in text, (name, text)
        assert errors == []
    # Run All stops at the first error, and that one is calm; here, cells that build on it fail in turn
    problems = [o for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert problems[0].ename == "NotImplementedError"
    assert "not written yet" in problems[0].traceback[0] and len(problems[0].traceback) == 1


def test_the_solved_notebook_gets_every_point():
    notebook = run(answer_notebook("01_dot_product_attention", **solved("01_dot_product_attention")))
    for name, (text, errors) in checks(notebook).items():
        assert "all of it is right" in text, (name, text)
        assert errors == []


def test_a_mistake_shows_a_panel_and_one_line_of_error():
    cells = solved("01_dot_product_attention")
    cells["row_softmax"] = cells["row_softmax"].replace("dim=-1", "dim=-2")
    text, (error,) = checks(run(answer_notebook("01_dot_product_attention", **cells)))["row_softmax"]
    assert "softmax over the columns" in text
    assert error.ename == "CheckFailed"
    assert error.traceback == ["CheckFailed: row_softmax: 1 of 4 points (the panel above says what to look at)"]


def test_a_shortcut_is_seen_at_the_desk_too():
    cells = solved("01_dot_product_attention")
    cells["row_softmax"] = "def row_softmax(scores):\n    return torch.softmax(scores, dim=-1)"
    text, _ = checks(run(answer_notebook("01_dot_product_attention", **cells)))["row_softmax"]
    assert "uses softmax" in text and "0 of 4 points" in text


def test_other_names_for_the_answer_are_checked_as_what_they_stand_for():
    cells = solved("01_dot_product_attention")
    cells["raw_weights"] = "import functools\n@functools.partial\ndef raw_weights(x):\n    return x @ x.mT"
    assert "all of it is right" in checks(run(answer_notebook("01_dot_product_attention", **cells)))["raw_weights"][0]


def validate(tmp_path, notebook):
    path = tmp_path / "01_dot_product_attention.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "nbgrader", "validate", str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout


def test_the_validate_button_passes_a_solved_notebook(tmp_path):
    answer = validate(tmp_path, answer_notebook("01_dot_product_attention", **solved("01_dot_product_attention")))
    assert "Success! Your notebook passes all the tests." in answer


def test_the_validate_button_tells_what_the_panel_tells(tmp_path):
    cells = solved("01_dot_product_attention")
    cells["raw_weights"] = "def raw_weights(x):\n    return 8 * x @ x.mT"
    del cells["self_attention"]
    answer = validate(tmp_path, answer_notebook("01_dot_product_attention", **cells))
    assert "VALIDATION FAILED ON 2 CELL(S)" in answer
    assert "Your numbers are the right ones times 8." in answer
    assert "self_attention: not attempted" in answer


def test_the_first_cell_needs_none_of_the_rooms_that_students_do_not_get():
    code = (
        "import sys; from helpers.lesson import start; check = start('01_dot_product_attention'); "
        "check.verdict('raw_weights', lambda x: x); "
        "print([m for m in sys.modules if m.startswith(('helpers.grading', 'helpers.authoring', 'nbgrader', 'jupytext'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
