"""No mark is written on a machine that does not grade the reference solution as right."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace

import pytest
from conftest import FIRST, answer_notebook, solved
from graded import FULL, NONE, WRONG, Instead, batch
from stand_in import ISOLATION, StandIn

from helpers.checking.read.cell_scan import scan_submission
from helpers.exercises import load_lesson
from helpers.grading import canary
from helpers.grading.canary import MAX_DOUBTFUL
from helpers.grading.errors import GradingError
from helpers.grading.exam import REFERENCE
from helpers.grading.grader import GradedSubmission, work_of
from helpers.grading.journal import Journal, JournalEntry
from helpers.grading.judging import ExerciseRun
from helpers.grading.sandbox.runner import ExecutionResult, SandboxFailed

DIED = ExerciseRun(says="There is no answer: it ended the Python process.")


def nothing_written(course):
    return course.marks() == {} and not Journal(course.folder, FIRST).read() and not judged(course)


def judged(course):
    return {path: path.read_bytes() for path in (course.folder / "autograded").glob("*/*/*.ipynb")}


def every_process_dies(work, seed=None):
    """As on a machine whose sandbox hides the course's Python."""
    read = scan_submission(load_lesson(FIRST), work.cells, work.released, work.setup)
    runs = dict.fromkeys(FULL, DIED)
    return ExecutionResult(runs, read, ("the process died in raw_weights",), ISOLATION)


def sandbox_fails(work, seed=None):
    raise SandboxFailed("the sandbox could not be started")


def one_exercise_differs(work, seed):
    cells = [
        replace(cell, source=WRONG)  # except for the empty submission, which is right in computing nothing
        if cell.name == "raw_weights" and cell.source != work.released["raw_weights"]
        else cell
        for cell in work.cells
    ]
    return StandIn(FIRST).execute(replace(work, cells=tuple(cells)), seed)


def everybody_gets_everything(work, seed):
    right = work_of(load_lesson(FIRST), answer_notebook(FIRST, **solved(FIRST)), answer_notebook(FIRST))
    return StandIn(FIRST).execute(right, seed)


@pytest.mark.parametrize(
    "execute, seen",
    [
        (every_process_dies, ("raw_weights           0 of 3", DIED.says, "the process died in raw_weights")),
        (sandbox_fails, ("SandboxFailed: the sandbox could not be started", "Not every exercise gave an answer")),
        (one_exercise_differs, ("raw_weights  0 of 3", "The answers arrived, and are not what the key expects")),
        (everybody_gets_everything, ("an empty submission of this lesson", "gets points", "run `make check`")),
    ],
)
def test_a_machine_that_grades_wrongly_writes_nothing_and_says_why(course, execute, seen):
    summary = batch(course, Instead(execute)).run()
    assert nothing_written(course) and not summary.graded and not summary.failed
    for words in ("Nothing was graded", "by the same route", "on this machine", "No mark was written", *seen):
        assert words in summary.halted
    assert summary.halted in summary.as_text()


def test_a_stopped_batch_keeps_earlier_marks_and_is_graded_later(course):
    batch(course, Instead(every_process_dies)).run()
    assert len(batch(course).run().graded) == 3
    before = course.marks(), judged(course)
    assert before[0] == {"ada": FULL, "ben": {**FULL, "raw_weights": 0}, "eve": NONE}
    assert batch(course, Instead(every_process_dies)).run(again=True).halted
    assert (course.marks(), judged(course)) == before


def test_canaries_are_graded_like_all_submissions_and_leave_no_mark(course):
    runner = StandIn(FIRST)
    summary = batch(course, runner).run()
    assert runner.runs == 2 + 2, "the reference, an empty one, and two that can be read"
    assert set(course.marks()) == {"ada", "ben", "eve"} == {entry.student for entry in summary.entries}
    assert batch(course, runner).run().resumed and runner.runs == 4, "nothing to grade, nothing to try"


def test_without_solutions_the_summary_says_so_and_the_empty_one_still_goes_first(course, monkeypatch):
    shutil.rmtree(course.folder / "solutions")
    assert set(canary.reference_answers(course.folder, load_lesson(FIRST))) == set(FULL), "the checkout's own"
    monkeypatch.setattr(canary, "SOLUTIONS", course.folder / "nowhere")
    summary = batch(course).run()
    assert course.marks()["ada"] == FULL
    assert "the reference solution was not tried first" in summary.as_text()
    assert batch(course, Instead(sandbox_fails)).run(again=True).halted


def hand_in(course, count):
    """So many right submissions, and no others."""
    shutil.rmtree(course.folder / "submitted")
    for place in range(count):
        course.submit(f"student-{place:02}", answer_notebook(FIRST, **solved(FIRST)))


@pytest.mark.parametrize("breaks", [every_process_dies, sandbox_fails])
def test_a_machine_that_breaks_midway_gives_no_zeros(course, breaks):
    hand_in(course, 12)
    runner, tried = StandIn(FIRST), []

    def execute(work, seed):
        if runner.runs < 6:
            return runner.execute(work, seed)
        tried.append(work)
        return breaks(work)

    summary = batch(course, Instead(execute), jobs=1).run()
    assert summary.halted.startswith("Grading was stopped") and "What was graded before it stays" in summary.halted
    assert len(tried) < 12 and all(marks == FULL for marks in course.marks().values())
    assert {e.student for e in summary.graded} == set(course.marks()) == set(Journal(course.folder, FIRST).read())
    done = batch(course).run()
    assert len(done.resumed) == len(summary.graded) and len(done.entries) == 12
    assert all(marks == FULL for marks in course.marks().values())


def test_a_submission_that_kills_its_own_process_is_marked_once_the_reference_has_passed_again(course):
    runner, lock, order = StandIn(FIRST), threading.Lock(), []

    def execute(work, seed):
        with lock:
            mine = any(cell.source == WRONG for cell in work.cells)
            order.append("ben" if mine else "other")
        return every_process_dies(work) if mine else runner.execute(work, seed)

    summary = batch(course, Instead(execute), jobs=1).run()
    assert not summary.halted and course.marks()["ben"] == NONE and course.marks()["ada"] == FULL
    assert order.index("ben") < len(order) - 1, "the reference ran again, after it"


def test_a_file_that_this_machine_cannot_open_is_not_a_zero(course, monkeypatch):
    real = os.open

    def refuses(path, *more, **named):
        if str(path).endswith(os.path.join("ada", FIRST, f"{FIRST}.ipynb")):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuses)
        summary = batch(course).run()
    assert summary.failed == [("ada", "OSError: the file cannot be opened")]
    assert "ada" not in course.marks()


def test_doubtful_results_share_a_check_of_the_machine(course):
    hand_in(course, MAX_DOUBTFUL + 1)
    runner, checks = StandIn(FIRST), []

    def execute(work, seed):
        well = runner.runs < 2
        executed = runner.execute(work, seed)
        checks.extend(["reference"] if not any(r.absent for r in executed.runs.values()) else [])
        return executed if well else replace(executed, runs=dict.fromkeys(executed.runs, DIED))

    assert batch(course, Instead(execute), jobs=1).run().halted.startswith("Grading was stopped")
    assert course.marks() == {} and len(checks) <= 1 + MAX_DOUBTFUL + 1 + 1, "one before the batch, one for all"


def test_every_worker_grades_the_reference(course):
    runner = StandIn(FIRST)
    two = Instead(runner.execute, lambda work, seed: [runner.execute(work, seed), every_process_dies(work)])
    assert "does not get full marks" in batch(course, two).run().halted and nothing_written(course)


def graded(run, says="", flags=(), problem=""):
    record = {"exercise": "f", "points": 0, "out_of": 4, "says": says, "state": "?", "mistakes": [], "aspects": []}
    entry = JournalEntry("ada", verdicts=[record], flags=list(flags))
    return GradedSubmission(None, entry=entry, runs={"f": run}, problem=problem)


@pytest.mark.parametrize(
    "run, doubtful",
    [
        (DIED, True),
        (ExerciseRun(), True),
        (ExerciseRun(absent=True), False),
        (ExerciseRun(sent="..."), False),
    ],
)
def test_what_a_broken_machine_could_have_caused_is_doubtful(run, doubtful):
    assert canary.is_doubtful(graded(run)) is doubtful
    assert canary.is_doubtful(graded(run, problem="SandboxFailed: ..."))


def test_a_students_text_in_the_message_cannot_steer_the_terminal():
    with pytest.raises(GradingError) as caught:
        canary.require(REFERENCE, graded(ExerciseRun(sent="..."), "\x1b[2Jgone", ("\x1b]0;title\x07flag",)))
    assert "\x1b" not in str(caught.value) and "gone" in str(caught.value)
