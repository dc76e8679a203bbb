"""An answer in another cell than its exercise's own earns nothing, and everybody is told where it stands."""

from __future__ import annotations

from types import SimpleNamespace

import nbformat
import pytest
import torch
from conftest import FIRST, Course, answer_notebook
from graded import batch
from test_kernel_state import Shell

from helpers.checking.check import Check
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import NOT_STARTED, RIGHT
from helpers.checking.read.cell_scan import scan_submission
from helpers.checking.run.kernel_state import KernelState
from helpers.exercises import load_lesson
from helpers.exercises.exercise import lesson_names
from helpers.grading.commands import register
from helpers.grading.grader import work_of
from helpers.grading.journal import Journal
from helpers.grading.judging import ExerciseRun, judge_submission
from helpers.grading.reports.feedback import write_feedback
from helpers.grading.submissions.restore import restore
from helpers.notebooks import grade_id, sources_of
from helpers.student.exam_preview import panels

LESSONS = lesson_names()
STUB = sources_of(answer_notebook(FIRST))["raw_weights"]
OWN = "def raw_weights(x):\n    return x @ x.mT"
SAYS = "Another cell defines `raw_weights` ({}). Only the exercise's own cell is judged: the answer belongs there."


def with_cell_below(lesson, name, text):
    """A released notebook with a new cell under an exercise's own, and the number of that cell."""
    notebook = answer_notebook(lesson)
    place = [grade_id(cell) for cell in notebook.cells].index(name) + 1
    notebook.cells.insert(place, nbformat.v4.new_code_cell(text))
    return notebook, place + 1


def read(lesson, notebook):
    released = answer_notebook(lesson)
    work = work_of(load_lesson(lesson), restore(notebook, released).notebook, released)
    return scan_submission(load_lesson(lesson), work.cells, work.released, work.setup)


def judged(lesson, notebook, name):
    asked, key = load_lesson(lesson), load_key(load_lesson(lesson), shipped_path(lesson), "")
    return judge_submission(asked, key, {name: ExerciseRun(absent=True)}, read(lesson, notebook))[name]


@pytest.mark.parametrize("text", [OWN, "raw_weights = lambda x: x @ x.mT", f"import torch\n\n@torch.no_grad()\n{OWN}"])
def test_an_answer_below_the_stub_is_named_in_an_exam(text):
    notebook, number = with_cell_below(FIRST, "raw_weights", text)
    verdict = judged(FIRST, notebook, "raw_weights").verdict
    assert (verdict.state, verdict.points) == (NOT_STARTED, 0)
    assert verdict.says.startswith(SAYS.format(f"cell {number}"))


@pytest.mark.parametrize("text", [STUB, "print(raw_weights)", "# raw_weights = 3", "raw_weights == 3"])
def test_a_copy_of_the_stub_and_a_mere_use_are_no_answer(text):
    assert judged(FIRST, with_cell_below(FIRST, "raw_weights", text)[0], "raw_weights").verdict.says == ""


@pytest.mark.parametrize("lesson", LESSONS)
def test_no_released_notebook_holds_an_answer_elsewhere(lesson):
    assert {
        name: each.elsewhere for name, each in read(lesson, answer_notebook(lesson)).slices.items() if each.elsewhere
    } == {}


def test_the_preview_of_an_exam_prints_panels_and_nothing_else(tmp_path, capsys):
    notebook, _ = with_cell_below(FIRST, "raw_weights", OWN)
    nbformat.write(notebook, tmp_path / f"{FIRST}.ipynb")
    assert len(list(panels(str(tmp_path / f"{FIRST}.ipynb")))) > 1
    assert capsys.readouterr().out == ""


def test_the_preview_of_an_exam_names_the_cell(tmp_path):
    notebook, _ = with_cell_below(FIRST, "raw_weights", OWN)
    nbformat.write(notebook, tmp_path / f"{FIRST}.ipynb")
    said = [" ".join(panel.split()) for panel in panels(str(tmp_path / f"{FIRST}.ipynb"))]
    (of_it,) = [panel for panel in said if panel.startswith("raw_weights: not attempted")]
    assert "Another cell defines `raw_weights` (cell " in of_it


def test_after_grading_the_instructor_and_the_student_read_it(tmp_path):
    course = Course(tmp_path / "course", FIRST)
    course.exam_key(seeds=1)
    register(course.folder, FIRST)
    notebook, number = with_cell_below(FIRST, "raw_weights", OWN)
    course.submit("ada", notebook)  # the stub is left
    emptied, _ = with_cell_below(FIRST, "raw_weights", OWN)
    (own,) = [cell for cell in emptied.cells if grade_id(cell) == "raw_weights"]
    own.source = "# see below"
    course.submit("bo", emptied)
    summary = batch(course, jobs=1).run((), False).as_text()
    says = SAYS.format(f"cell {number}")
    assert summary.count(says) == 2, "both are told to the instructor"
    write_feedback(course.folder, FIRST)
    for student in ("ada", "bo"):
        assert course.marks()[student]["raw_weights"] == 0
        assert any(flag.endswith(says) for flag in Journal(course.folder, FIRST).read()[student].flags)
        page = (course.folder / "feedback" / student / FIRST / f"{FIRST}.html").read_text()
        assert f"Another cell defines <code>raw_weights</code> (cell {number})" in page


def run(*cells, lesson=FIRST, name="raw_weights"):
    """The check's verdict in a kernel where these cells ran: (the cell's id, its text)."""
    names: dict = {"torch": torch}
    shell = Shell(**names)
    shell.execution_count = 1
    check = Check(load_lesson(lesson), KernelState(shell, [name]))
    begins, ends = (shell.events.callbacks[event][-1] for event in ("pre_run_cell", "post_run_cell"))
    for cell_id, text in cells:
        begins(SimpleNamespace(raw_cell=text, cell_id=cell_id))
        shell.user_ns["In"].append(text)
        exec(text, shell.user_ns)
        ends(
            SimpleNamespace(
                error_before_exec=None,
                error_in_exec=None,
                info=SimpleNamespace(raw_cell=text),
                execution_count=shell.execution_count,
            )
        )
        shell.execution_count += 1
    return check._verdict(check.lesson[name], shell.user_ns[name])


CHECK = ("check_raw_weights", "")  # the cell that calls the check: released notebooks name cells after exercises


@pytest.mark.parametrize(
    ("cells", "last"),
    [
        ([("a", STUB), ("b", OWN)], 2),
        ([("raw_weights", "# see below"), ("new", OWN), CHECK], 2),
        ([("raw_weights", "y = 1"), ("row_softmax", OWN), CHECK], 2),
    ],
    ids=["below the stub", "own cell emptied", "another exercise's cell"],
)
def test_the_check_at_home_names_the_cell(cells, last):
    verdict = run(*cells)
    assert (verdict.state, verdict.points, verdict.says) == (NOT_STARTED, 0, SAYS.format(f"cell {last}"))


@pytest.mark.parametrize(
    ("cells", "last"),
    [
        ([("new", OWN), CHECK], 1),
        ([("raw_weights", OWN), ("new", OWN.replace("x.mT", "x.transpose(1, 2)")), CHECK], 2),
    ],
    ids=["own cell never run", "other code"],
)
def test_a_cell_that_may_have_been_pasted_is_judged_with_a_note(cells, last):
    verdict = run(*cells)
    assert verdict.state == RIGHT and verdict.note.startswith(f"`raw_weights` comes from cell {last}, which seems not")


@pytest.mark.parametrize(
    "cells",
    [
        [("a", STUB), ("a", OWN)],
        [("a", STUB), ("b", OWN), ("a", OWN)],
        [("a", OWN), ("b", STUB.replace("raw_weights", "other")), ("b", OWN)],
        [(None, STUB), (None, OWN)],
    ],
    ids=["written into the own cell", "moved there", "tried out elsewhere", "cells without ids"],
)
def test_an_answer_in_the_own_cell_is_judged(cells):
    assert run(*cells).state == RIGHT


def test_a_bug_that_is_mended_in_another_cell_is_named_too():
    lesson = next(name for name in LESSONS if any(each.fixes_bug for each in load_lesson(name)))
    name = next(each.name for each in load_lesson(lesson) if each.fixes_bug)
    given = sources_of(answer_notebook(lesson))[name]
    notebook, number = with_cell_below(lesson, name, f"{given}\n\n# mended")
    program = read(lesson, notebook).slices[name]
    assert f"(cell {number})" in program.elsewhere
