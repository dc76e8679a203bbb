"""Never silently wrong: nobody's mark is written on a machine that does not grade the reference solution as right."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import FIRST, answer_notebook, solved
from graded import FULL, NONE, WRONG, Instead, batch, hand_in_a_few
from stand_in import ISOLATION, StandIn

from helpers.checking.cell_scan import scan_submission
from helpers.exercises import load_lesson
from helpers.grading import canary
from helpers.grading.batch import as_text, work_of
from helpers.grading.canary import REFERENCE, TOGETHER, MachineWrong, Probe
from helpers.grading.journal import Journal
from helpers.grading.judging import CheckRun, Why
from helpers.grading.sandbox.runner import Executed, SandboxFailed


def stand_in(course):
    return StandIn(FIRST)


def nothing_written(course):
    return course.marks() == {} and not Journal(course.folder, FIRST).read() and not list(judged(course))


def judged(course):
    return (course.folder / "autograded").glob("*/*/*.ipynb")


def none_answers(work, seed=None):
    """A machine on which every process dies, as one whose sandbox hides the course's Python."""
    died = CheckRun(why=Why.DIED, says="it ended the Python process")
    read = scan_submission(load_lesson(FIRST), work.cells, work.released, work.setup)
    runs = {exercise.name: died for exercise in load_lesson(FIRST)}
    return Executed(runs, read, ("the process died in raw_weights",), ISOLATION)


def sandbox_fails(work, seed=None):
    raise SandboxFailed("the sandbox could not be started")


# ---------------------------------------------------------------------------------------- before a batch


@pytest.mark.parametrize(
    "execute, seen",
    [
        (
            none_answers,
            ("raw_weights           0 of 3", "it ended the Python process", "the process died in raw_weights"),
        ),
        (sandbox_fails, ("SandboxFailed: the sandbox could not be started", "No code of the lesson ran")),
    ],
    ids=["every process dies", "no sandbox starts"],
)
def test_a_machine_that_grades_nothing_right_writes_nothing_and_says_what_was_seen(course, execute, seen):
    hand_in_a_few(course)
    summary = batch(course, Instead(execute)).run()
    assert nothing_written(course) and not summary.graded and not summary.failed
    for words in ("Nothing was graded", "by the same route", "on this machine", "No mark was written", *seen):
        assert words in summary.halted
    assert summary.halted in as_text(summary)


def test_what_such_a_stop_interrupts_is_graded_later_and_not_resumed_as_zeros(course):
    hand_in_a_few(course)
    batch(course, Instead(none_answers)).run()
    summary = batch(course).run()
    assert (len(summary.graded), summary.resumed, summary.halted) == (3, [], "")
    assert course.marks() == {"ada": FULL, "ben": {**FULL, "raw_weights": 1}, "eve": NONE}


def test_marks_that_were_there_stay_when_a_batch_is_stopped(course):
    hand_in_a_few(course)
    batch(course).run()
    before = course.marks(), {path: path.read_bytes() for path in judged(course)}
    assert batch(course, Instead(none_answers)).run(again=True).halted
    assert (course.marks(), {path: path.read_bytes() for path in judged(course)}) == before


def test_one_exercise_that_is_judged_otherwise_is_enough(course):
    hand_in_a_few(course)
    runner = stand_in(course)

    def computes_otherwise(work, seed):
        cells = [
            replace(cell, source=WRONG)  # but for the empty submission, which computes nothing, here or elsewhere
            if cell.name == "raw_weights" and cell.source != work.released["raw_weights"]
            else cell
            for cell in work.cells
        ]
        return runner.execute(replace(work, cells=tuple(cells)), seed)

    halted = batch(course, Instead(computes_otherwise)).run().halted
    assert "raw_weights  1 of 3" in halted and "self_attention" not in halted
    assert "The answers arrived, and are not what the key expects" in halted and "make exam-key" in halted
    assert nothing_written(course)


def test_a_key_of_another_seed_than_the_answers_stops_the_batch(course):
    hand_in_a_few(course)
    assert "does not get full marks" in batch(course, StandIn(FIRST, "another seed")).run().halted
    assert nothing_written(course)


def test_points_for_an_empty_submission_stop_the_batch(course):
    hand_in_a_few(course)
    released = answer_notebook(FIRST)
    right = work_of(load_lesson(FIRST), answer_notebook(FIRST, **solved(FIRST)), released)
    runner = stand_in(course)

    def gives_everybody_everything(work, seed):
        return runner.execute(right, seed)

    halted = batch(course, Instead(gives_everybody_everything)).run().halted
    assert "an empty submission of this lesson" in halted and "does not get no points" not in halted
    assert nothing_written(course)


def test_the_probes_go_the_way_of_all_submissions_and_leave_no_mark(course):
    hand_in_a_few(course)
    runner = stand_in(course)
    summary = batch(course, runner).run()
    assert runner.runs == 2 + 2, "the reference, an empty one, and two that can be read"
    assert set(course.marks()) == {"ada", "ben", "eve"} == {entry.student for entry in summary.entries}
    assert batch(course, runner).run().resumed and runner.runs == 4, "nothing to grade, nothing to try"


def test_where_there_are_no_solutions_it_is_said_and_the_empty_one_still_goes_first(course, monkeypatch):
    hand_in_a_few(course)
    shutil.rmtree(course.folder / "solutions")
    monkeypatch.setattr(canary, "SOLUTIONS", course.folder / "nowhere")
    summary = batch(course).run()
    assert course.marks()["ada"] == FULL
    assert "the reference solution was not tried first" in as_text(summary)
    assert batch(course, Instead(sandbox_fails)).run(again=True).halted


def test_the_checkout_s_own_solutions_are_taken_where_the_course_s_folder_has_none(course):
    shutil.rmtree(course.folder / "solutions")
    assert set(canary.reference_answers(course.folder, load_lesson(FIRST))) == set(FULL)


# ------------------------------------------------------------------------------------ while a batch goes on


def breaks_after(runner, runs):
    """A machine on which every process dies after so many submissions."""

    def execute(work, seed):
        return runner.execute(work, seed) if runner.runs < runs else none_answers(work)

    return Instead(execute)


def hand_in(course, count):
    for place in range(count):
        course.submit(f"student-{place:02}", answer_notebook(FIRST, **solved(FIRST)))


def test_a_machine_that_breaks_midway_gives_no_zeros_to_those_after_it(course):
    hand_in(course, 12)
    summary = batch(course, breaks_after(stand_in(course), 6), jobs=1).run()
    assert summary.halted.startswith("Grading was stopped") and "What was graded before it stays" in summary.halted
    assert all(marks == FULL for marks in course.marks().values())
    assert {e.student for e in summary.graded} == set(course.marks()) == set(Journal(course.folder, FIRST).read())
    done = batch(course).run()
    assert len(done.resumed) == len(summary.graded) and len(done.entries) == 12
    assert all(marks == FULL for marks in course.marks().values())


def test_a_sandbox_that_fails_from_then_on_stops_the_batch_instead_of_failing_for_everybody(course):
    hand_in(course, 12)
    runner, tried = stand_in(course), []

    def execute(work, seed):
        if runner.runs >= 4:
            tried.append(work)
            sandbox_fails(work)
        return runner.execute(work, seed)

    summary = batch(course, Instead(execute), jobs=1).run()
    assert "the sandbox could not be started" in summary.halted and len(tried) < 8
    assert set(course.marks()) == {entry.student for entry in summary.graded}


def test_a_submission_that_kills_its_own_process_gets_its_marks_once_the_machine_is_known_to_be_well(course):
    hand_in_a_few(course)
    runner, lock = stand_in(course), threading.Lock()
    order = []

    def execute(work, seed):
        with lock:
            mine = any(cell.source == WRONG for cell in work.cells)
            order.append("ben" if mine else "other")
        return none_answers(work) if mine else runner.execute(work, seed)

    summary = batch(course, Instead(execute), jobs=1).run()
    assert not summary.halted and course.marks()["ben"] == NONE and course.marks()["ada"] == FULL
    assert order.index("ben") < len(order) - 1, "the reference ran again, after it"


def test_a_file_that_this_machine_cannot_open_is_not_a_zero(course, monkeypatch):
    hand_in_a_few(course)
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


# ------------------------------------------------------------------------------------------- what is doubtful


def outcome(probe=None, points=4, problem="", **runs):
    records = [{"exercise": "f", "points": points, "out_of": 4, "says": "", "state": "?", "aspects": []}]
    return SimpleNamespace(probe=probe, records=records, runs=runs, flags=(), problem=problem)


SENT, DIED = CheckRun(sent="..."), CheckRun(why=Why.DIED)
HOLDS_STUB, UNDEFINED, LATE = (CheckRun(why=why) for why in (Why.STUB, Why.UNDEFINED, Why.LATE))


@pytest.mark.parametrize(
    "run, doubtful",
    [(DIED, True), (CheckRun(), True), (LATE, True), (HOLDS_STUB, False), (UNDEFINED, False), (SENT, False)],
)
def test_what_the_machine_could_have_done_is_doubtful(run, doubtful):
    assert canary.is_doubtful(outcome(points=0, f=run)) is doubtful


def test_a_sandbox_that_failed_is_doubtful():
    assert canary.is_doubtful(outcome(problem="SandboxFailed: ..."))


def test_a_failed_second_look_says_that_marks_were_written_before_it():
    with pytest.raises(MachineWrong, match="Grading was stopped"):
        canary.require(outcome(Probe(REFERENCE, None), 0, f=DIED), midway=True)


def test_doubtful_ones_share_a_look(course):
    hand_in(course, TOGETHER + 1)
    runner, looks = stand_in(course), []

    def execute(work, seed):
        well = runner.runs < 2
        executed = runner.execute(work, seed)
        return executed if well else replace(executed, runs=dict.fromkeys(executed.runs, DIED))

    made = batch(course, Instead(execute), jobs=1)
    real = made._outcome

    def counted(item):
        looks.extend([item[1]] if item[1] else [])
        return real(item)

    made._outcome = counted
    assert made.run().halted.startswith("Grading was stopped") and course.marks() == {}
    assert len(looks) == 3, "two before the batch, and one for all"


def test_what_a_check_said_cannot_act_on_the_terminal():
    bad = outcome(Probe(REFERENCE, None), 0, f=SENT)
    bad.records[0]["says"], bad.flags = "\x1b[2Jgone", ("\x1b]0;title\x07flag",)
    with pytest.raises(MachineWrong) as caught:
        canary.require(bad)
    assert "\x1b" not in str(caught.value) and "gone" in str(caught.value)


# ---------------------------------------------------------------------------------------- one door, several machines


def test_every_worker_grades_the_reference(course):
    hand_in_a_few(course)
    runner = stand_in(course)

    def everywhere(work, seed):
        return [runner.execute(work, seed), none_answers(work)]

    made = batch(course, runner)
    made._everywhere = everywhere
    assert "does not get full marks" in made.run().halted and nothing_written(course)
