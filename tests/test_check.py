"""A lesson on the student's machine, in a real kernel."""

from __future__ import annotations

import subprocess
import sys
import threading
import types

import nbformat
import pytest
from conftest import FIRST, answer_notebook, solved
from nbclient import NotebookClient
from nbgrader.preprocessors import Execute
from traitlets.config.loader import PyFileConfigLoader

from helpers.authoring.build.building import QUIET
from helpers.authoring.build.lesson_source import sources
from helpers.checking.show import waiting
from helpers.course import ROOT
from helpers.exercises import load_lesson
from helpers.exercises.exercise import RECALL

LESSONS = [source.name for source in sources()]


def run(notebook):
    """The notebook after Run All Cells, going on past errors; past the first, only cells that nbgrader knows run."""
    client = NotebookClient(notebook, timeout=300, allow_errors=True, extra_arguments=QUIET)
    failed = False
    with client.setup_kernel():
        for place, cell in enumerate(notebook.cells):
            if cell.cell_type == "code" and not (failed and "nbgrader" not in cell.metadata):
                client.execute_cell(cell, place)
                failed = failed or any(output.output_type == "error" for output in cell.outputs)
    return notebook


@pytest.fixture(scope="module")
def checked():
    """One kernel for many answers: each is written into its cell, and checked there as a student would check it."""
    notebook = answer_notebook(FIRST)
    client = NotebookClient(notebook, timeout=300, allow_errors=True, extra_arguments=QUIET)
    place = {cell.metadata.nbgrader.grade_id: i for i, cell in enumerate(notebook.cells) if "nbgrader" in cell.metadata}

    def answered(exercise, text):
        notebook.cells[place[exercise]].source = text
        for name in (exercise, f"check_{exercise}"):
            client.execute_cell(notebook.cells[place[name]], place[name])
        return checks(notebook)[exercise]

    with client.setup_kernel():
        client.execute_cell(notebook.cells[place["setup"]], place["setup"])
        yield answered


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


@pytest.fixture(scope="module")
def kernel():
    """One kernel for the graded cells of many notebooks."""
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=300, allow_errors=True, extra_arguments=QUIET)

    def run_graded_cells(notebook):
        client.nb = notebook
        for place, cell in enumerate(notebook.cells):
            if cell.cell_type == "code" and "nbgrader" in cell.metadata:
                client.execute_cell(cell, place)
        return notebook

    with client.setup_kernel():
        yield run_graded_cells


def assert_calm(lesson, notebook):
    asked = load_lesson(lesson)
    for name, (text, errors) in checks(notebook).items():
        if asked.prediction(name) is not None or name == RECALL:
            calm = "nothing answered yet" if name == RECALL else "nothing predicted yet"
        else:
            calm = "not changed yet" if asked[name].fixes_bug else "not attempted"
        assert calm in text, (name, text)
        assert calm != "not attempted" or "Write your answer above" in text
        assert errors == []


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_check_says_not_attempted_and_stays_calm(lesson, kernel):
    assert_calm(lesson, kernel(answer_notebook(lesson)))


@pytest.mark.parametrize("lesson", [FIRST, pytest.param("05_masking", marks=pytest.mark.deep)])
def test_a_fresh_notebook_stops_at_a_calm_error(lesson):
    notebook = run(answer_notebook(lesson))
    assert_calm(lesson, notebook)
    # Run All stops at the first error, and that one is calm; here, cells that build on it fail in turn
    problems = [o for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]
    assert problems[0].ename == "NotImplementedError"
    assert "not written yet" in problems[0].traceback[0] and len(problems[0].traceback) == 1


def test_a_mistake_shows_a_panel_and_one_line_of_error(checked):
    text, (error,) = checked("row_softmax", solved(FIRST)["row_softmax"].replace("dim=-1", "dim=-2"))
    assert "softmax over the columns" in text
    assert error.ename == "CheckFailed"
    assert error.traceback == ["CheckFailed: row_softmax: 0 of 4 points (the panel above says what to look at)"]


def test_a_check_before_its_cell_says_what_to_run(checked):
    _, (error,) = checked("raw_weights", "globals().pop('raw_weights', None)")
    assert error.ename == "NameError"
    assert error.traceback == ["Run the cell of raw_weights first, then this cell again."]


def test_other_names_for_the_answer_are_checked_as_what_they_stand_for(checked):
    text, _ = checked("raw_weights", "import functools\n@functools.partial\ndef raw_weights(x):\n    return x @ x.mT")
    assert "all of it is right" in text


@pytest.mark.parametrize(
    "line", ["while True: x = x + 1", "import time; time.sleep(3600)"], ids=["a loop that never ends", "a sleep"]
)
def test_an_answer_that_never_ends_is_stopped_and_told_so_and_the_next_one_is_judged(checked, line):
    text, (error,) = checked(
        "raw_weights", f"check.seconds = 0.5\ndef raw_weights(x):\n    {line}\n    return x @ x.mT"
    )
    assert "still running after 0.5 seconds and was stopped at line" in " ".join(text.split())
    assert error.ename == "CheckFailed"
    assert "all of it is right" in checked("raw_weights", f"check.seconds = 120\n{solved(FIRST)['raw_weights']}")[0]


def test_the_panel_takes_the_place_of_the_line_that_says_that_a_check_still_runs(checked):
    at_once = "import functools, helpers.checking.check as c\nc.Waiting = functools.partial(c.Waiting, after=0)\n"
    endless = "check.seconds = 0.5\ndef raw_weights(x):\n    while True: pass"
    text, _ = checked("raw_weights", at_once + endless)
    assert text.startswith("raw_weights: no answer to judge") and "It is stopped after" not in text
    back = "c.Waiting = c.Waiting.func\ncheck.seconds = 120\n"
    assert "all of it is right" in checked("raw_weights", back + solved(FIRST)["raw_weights"])[0]


class Shown:
    """Stands in for IPython's display: what was shown, and what replaced it."""

    def __init__(self):
        self.texts, self.now = [], threading.Event()

    def __call__(self, shown, **options):
        self.texts.append(shown)
        self.now.set()
        return self

    def update(self, shown):
        self.texts[-1] = shown


@pytest.mark.parametrize("after, before", [(0, {"text/plain": "still running"}), (3600, None)])
def test_a_check_that_takes_long_says_so_and_a_short_one_does_not(monkeypatch, after, before):
    shown = Shown()
    monkeypatch.setattr(waiting, "display", shown)
    monkeypatch.setattr(waiting, "get_ipython", lambda: types.SimpleNamespace(kernel=object()))
    with waiting.Waiting("still running", after) as line:
        if before:
            assert shown.now.wait(60)
        assert shown.texts == ([before] if before else [])
    line.replace_by("panel")
    assert shown.texts == ["panel"]


def test_after_a_cell_that_failed_the_check_says_that_an_older_definition_is_judged(checked):
    right = solved(FIRST)["raw_weights"]
    assert "all of it is right" in checked("raw_weights", right)[0]
    told = " ".join(checked("raw_weights", right.replace("):", ")", 1))[0].split())
    assert "The last run of this exercise's cell failed (SyntaxError: expected ':')" in told
    assert "all of it is right" in told  # of the definition from before
    told = checked("raw_weights", "import no_such_module\n" + right)[0]
    assert "ModuleNotFoundError" in told
    assert "older definition" not in " ".join(checked("raw_weights", right + "\n1 / 0")[0].split())  # it took effect
    assert "last run" not in checked("raw_weights", right)[0]


def validate(tmp_path, notebook):
    """What nbgrader's Validate button says. Cells that are not graded define nothing that a check needs."""
    notebook.cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    path = tmp_path / "01_dot_product_attention.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "nbgrader", "validate", str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout


@pytest.mark.deep
def test_the_validate_button_waits_for_cells_that_train():
    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT)).load_config()
    assert Execute(config=config).timeout == 600


def test_the_validate_button_passes_a_solved_notebook(tmp_path):
    answer = validate(tmp_path, answer_notebook(FIRST, **solved(FIRST)))
    assert "Success! Your notebook passes all the tests." in answer


def test_the_validate_button_tells_what_the_panel_tells(tmp_path):
    cells = solved(FIRST)
    cells["raw_weights"] = "def raw_weights(x):\n    return 8 * x @ x.mT"
    del cells["self_attention"]
    answer = validate(tmp_path, answer_notebook(FIRST, **cells))
    assert "VALIDATION FAILED ON 2 CELL(S)" in answer
    assert "Your numbers are the right ones times 8." in answer
    assert "self_attention: not attempted" in answer


def test_the_first_cell_needs_none_of_the_rooms_that_students_do_not_get():
    code = (
        "import sys; from helpers.lesson import start; check = start('01_dot_product_attention'); "
        "check.verdict('raw_weights', lambda x: x); "
        "theirs = ('helpers.grading', 'helpers.authoring', 'nbgrader', 'jupytext'); "
        "print([m for m in sys.modules if m.startswith(theirs)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
