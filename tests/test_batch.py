"""A class is graded in one go, or in as many as it takes, to the same marks."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from conftest import FIRST, answer_notebook, solved
from graded import FULL, NONE, OUT_OF, WRONG, Instead, batch, command, copied, hand_in_a_few
from needs import postgresql_programs
from stand_in import ISOLATION, StandIn

from helpers.authoring import __main__ as authoring_command
from helpers.authoring import demo_class
from helpers.authoring.build.lesson_source import ROOT, sources
from helpers.authoring.build.mistakes import Alias, Mistake
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import judge
from helpers.checking.run import answers
from helpers.exercises import load_lesson
from helpers.grading import __main__ as grading_command
from helpers.grading.commands import USER_ERRORS
from helpers.grading.errors import GradingError
from helpers.grading.gradebook import GradebookSession
from helpers.grading.journal import NOTHING_RAN, Journal
from helpers.grading.records import digest_of_wrong

# --------------------------------------------------------------------------------------------- one batch


def test_marks_notebooks_and_journal_are_written(course):
    summary = batch(course).run()
    assert course.marks() == {"ada": FULL, "ben": {**FULL, "raw_weights": 0}, "eve": NONE}
    assert [entry.points for entry in summary.entries] == [OUT_OF, OUT_OF - 3, 0]
    journal = Journal(course.folder, FIRST).read()
    assert set(journal) == {"ada", "ben", "eve"}
    assert journal["ben"].isolation == ISOLATION and journal["eve"].isolation == NOTHING_RAN
    assert journal["eve"].flags == ["the file is cut off: it ends in the middle"]


def test_each_verdict_is_recorded_in_the_journal(course):
    batch(course).run()
    records = {record["exercise"]: record for record in Journal(course.folder, FIRST).read()["ben"].verdicts}
    assert set(FULL) <= set(records) and all(records[name]["out_of"] == 0 for name in set(records) - set(FULL))
    told = records["raw_weights"]
    (mistake,) = told["mistakes"]
    assert (mistake["slug"], mistake["title"]) == ("softmaxed", "softmax already applied")
    assert mistake["says"] in [aspect["says"] for aspect in told["aspects"]]
    assert told["state"] == "wrong"
    assert [a["name"] for a in told["aspects"] if a["held"]] == []
    assert [a["name"] for a in told["aspects"] if a["waits"]] == ["input left alone", "any device"]


def test_what_is_graded_is_not_run_again(course):
    batch(course).run()
    runner = StandIn(FIRST, "another seed")
    summary = batch(course, runner).run()
    assert (runner.runs, len(summary.resumed), summary.graded) == (0, 3, [])
    assert course.marks()["ada"] == FULL


def test_only_grades_one_and_names_those_there_are(course):
    assert [entry.student for entry in batch(course).run(only=("ben",)).graded] == ["ben"]
    assert set(course.marks()) == {"ben"}
    with pytest.raises(GradingError, match="zoe has handed in nothing. These have: ada, ben, eve"):
        batch(course).run(only=("zoe",))


def test_a_resubmission_is_graded_anew_and_loses_what_it_lost(course):
    batch(course).run()
    course.submit("ada", answer_notebook(FIRST, **{**solved(FIRST), "row_softmax": "pass"}))
    path = course.submit("ben", nbformat.v4.new_notebook())
    path.write_text("no longer a notebook")
    summary = batch(course).run()
    assert {entry.student for entry in summary.graded} == {"ada", "ben"}
    marks = course.marks()
    assert marks["ada"]["row_softmax"] == 0 and marks["ada"]["raw_weights"] == 3
    assert marks["ben"] == NONE


@pytest.mark.parametrize("damage", ["notebook", "gradebook", "journal", "mark", "key"])
def test_what_no_longer_holds_is_graded_again(course, damage):
    batch(course).run()
    if damage == "notebook":
        (course.folder / "autograded" / "ada" / FIRST / f"{FIRST}.ipynb").unlink()
    elif damage == "gradebook":
        with GradebookSession(course.folder, FIRST) as marks:
            marks.gradebook.remove_student("ada")
    elif damage == "journal":
        path = Journal(course.folder, FIRST).path
        path.write_bytes(path.read_bytes()[:-40])  # a crash in the middle of the last line
    elif damage == "mark":
        with GradebookSession(course.folder, FIRST) as marks:
            marks.gradebook.find_grade("check_raw_weights", FIRST, FIRST, "ada").auto_score = 2
            marks.gradebook.db.commit()
    else:
        course.exam_key("another secret", seeds=1)
    summary = batch(course).run()
    assert len(summary.graded) == (3 if damage == "key" else 1)
    assert course.marks() == {"ada": FULL, "ben": {**FULL, "raw_weights": 0}, "eve": NONE}
    assert len(batch(course).run().resumed) == 3


def test_a_failure_of_the_machinery_gives_no_mark_and_stops_nobody(course):
    runner = StandIn(FIRST)

    def fails_for_ben(work, seed):
        if any(cell.source == WRONG for cell in work.cells):
            raise OSError("no space left")
        return runner.execute(work, seed)

    summary = batch(course, Instead(fails_for_ben)).run()
    assert summary.failed == [("ben", "OSError: no space left")]
    assert "ben  NOT GRADED: OSError: no space left" in summary.as_text()
    assert set(course.marks()) == {"ada", "eve"}
    assert [entry.student for entry in batch(course).run().graded] == ["ben"]


def test_marks_that_cannot_be_written_leave_nothing_behind(course, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("helpers.grading.late_policy.update_penalty", lambda *a: (_ for _ in ()).throw(OSError("gone")))
        assert len(batch(course).run().failed) == 3
    assert course.marks() == {} and Journal(course.folder, FIRST).read() == {}
    assert len(batch(course).run().graded) == 3


def test_ctrl_c_keeps_what_is_done(course):
    runner = StandIn(FIRST)

    def stopped(work, seed):
        if runner.runs:
            raise KeyboardInterrupt
        return runner.execute(work, seed)

    summary = batch(course, Instead(stopped), jobs=1).run()
    assert summary.stopped and "same command continues" in summary.as_text()
    assert len(batch(course).run().entries) == 3


def test_two_batches_of_one_lesson_do_not_meet(course):
    with Journal(course.folder, FIRST).locked(), pytest.raises(GradingError, match="being graded already"):
        batch(course).run()


def test_the_summary_says_what_was_done(course):
    text = batch(course).run().as_text()
    for line in ("graded          3", "resumed         0", "flagged         1", "not graded      0", "nothing was run"):
        assert line in text
    assert "eve  the file is cut off: it ends in the middle" in text


def test_the_same_mistake_has_one_digest_and_different_ones_have_several(first_lesson, first_answers):
    key = load_key(first_lesson.lesson, shipped_path(FIRST), "")

    def made(variant):
        exercise = first_lesson.lesson[variant.exercise]
        answer = answers.run(exercise, first_answers.make(exercise.name, variant), key.seed)
        return digest_of_wrong(answer, judge(exercise, answer, key[exercise.name]))

    mistakes = {(v.exercise, v.name): made(v) for v in first_lesson.variants(Mistake)}
    assert len({(exercise, digest) for (exercise, _), digest in mistakes.items()}) == len(mistakes)
    for alias in first_lesson.variants(Alias):
        assert made(alias) == mistakes[alias.exercise, alias.of]


# ------------------------------------------------------------------------------------- killed and resumed


def a_class(pattern, folder, size):
    """A course in which so many have handed in."""
    course = copied(pattern, folder)
    works = demo_class.handed_in(sources([FIRST])[0])
    for place in range(size):
        name, data = works[place * len(works) // size]
        path = course.folder / "submitted" / f"student-{place:02}" / FIRST / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    return course


def everything(course):
    """All that grading leaves: marks, comments, judged notebooks, and the journal without its times."""
    with GradebookSession(course.folder, FIRST) as marks:
        rows = {
            submission.student.id: (
                [
                    (g.name, g.auto_score, g.manual_score, g.needs_manual_grade)
                    for n in submission.notebooks
                    for g in n.grades
                ],
                [(c.name, c.auto_comment) for n in submission.notebooks for c in n.comments],
            )
            for submission in marks.gradebook.assignment_submissions(FIRST)
        }
    notebooks = {p.parts[-3]: p.read_bytes() for p in (course.folder / "autograded").glob(f"*/{FIRST}/{FIRST}.ipynb")}
    journal = {s: dataclasses.replace(e, at="") for s, e in Journal(course.folder, FIRST).read().items()}
    return rows, notebooks, journal


def run_and_kill(course, kills):
    command = [sys.executable, str(ROOT / "tests" / "stand_in.py"), FIRST, str(kills)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    done = subprocess.run(command, cwd=course.folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert [step["code"] for step in steps] == [-9] * kills + [0], done.stderr[-2000:]
    return steps


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.deep)])
def test_a_batch_that_is_killed_again_and_again_ends_as_if_left_alone(pattern, tmp_path, kills):
    size = kills + 6  # so that the last one dies with work left to do
    alone = a_class(pattern, tmp_path / "alone", size)
    killed = copied(alone, tmp_path / "killed")
    assert len(batch(alone).run().entries) == size
    steps = run_and_kill(killed, kills)
    assert all(step["half"] == 0 for step in steps)
    assert all(step["journal"] <= step["marked"] <= step["written"] for step in steps)
    assert [step["journal"] for step in steps] == sorted(step["journal"] for step in steps)
    assert (steps[-1]["code"], steps[-1]["journal"]) == (0, size), "nothing is graded twice"
    assert everything(killed) == everything(alone)


# --------------------------------------------------------------------------------------------- the commands


def test_grade_says_what_makes_a_key_that_is_missing(course):
    shutil.rmtree(course.folder / "exam")
    with pytest.raises(USER_ERRORS, match="make exam-key"):
        command(course, "grade", FIRST, "--unsafe")


@pytest.mark.parametrize("room, word", [(grading_command, "grade"), (authoring_command, "demo-class")])
def test_an_unknown_lesson_is_told_with_those_there_are(course, monkeypatch, room, word):
    monkeypatch.setattr(gc, "freeze", lambda: None)  # for the rest of the process
    monkeypatch.setattr(sys, "argv", ["program", word, "77_none"])
    with pytest.raises(SystemExit, match=FIRST):
        room.main()


@pytest.mark.deep
@pytest.mark.needs("bubblewrap")
def test_a_cluster_gives_the_same_marks(course, monkeypatch):
    distributed = pytest.importorskip("distributed")
    # The workers must find the course's package, as an instructor's do
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers:
        done = course.run("helpers.grading", "grade", FIRST, "--scheduler", workers.scheduler_address)
    assert done.returncode == 0, done.stderr
    assert course.marks() == {"ada": FULL, "ben": {**FULL, "raw_weights": 0}, "eve": NONE}


@pytest.mark.deep
def test_a_scheduler_that_is_not_there_is_told(course):
    done = course.run("helpers.grading", "grade", FIRST, "--scheduler", "tcp://127.0.0.1:1")
    assert done.returncode and "No scheduler answers" in done.stderr


# ------------------------------------------------------------------------------------------- PostgreSQL


@pytest.fixture
def postgresql():
    """The URL of an empty database, on a server of our own on the loopback."""
    programs, folder = postgresql_programs(), Path(tempfile.mkdtemp(prefix="pg"))
    as_user = {"user": "nobody"} if os.geteuid() == 0 else {}  # PostgreSQL does not run as root
    if as_user:
        shutil.chown(folder, "nobody")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program, *arguments):
        done = subprocess.run([programs / program, *arguments], capture_output=True, text=True, cwd=folder, **as_user)
        assert done.returncode == 0, done.stderr

    run("initdb", "-D", folder / "data", "-U", "grader", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
    run("pg_ctl", "-D", folder / "data", "-l", folder / "log", "-w", "-o", options, "start")
    try:
        run("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "grader", "course")
        yield f"postgresql+psycopg://grader@127.0.0.1:{port}/course"
    finally:
        run("pg_ctl", "-D", folder / "data", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.deep
@pytest.mark.needs("postgresql")
def test_the_gradebook_may_be_a_postgresql_database(pattern, tmp_path, postgresql, monkeypatch):
    course = copied(pattern, tmp_path / "course", monkeypatch)
    (course.folder / "gradebook.db").unlink()
    monkeypatch.setenv("GRADEBOOK", postgresql)
    hand_in_a_few(course)
    course.nbgrader("generate_assignment", FIRST, "--force")
    assert len(batch(course).run().graded) == 3
    assert len(batch(course).run().resumed) == 3
    assert not (course.folder / "gradebook.db").exists()
    with GradebookSession(course.folder, FIRST) as marks:
        assert marks.db_url == postgresql
        predicted = {prediction.name: 0 for prediction in load_lesson(FIRST).predictions}
        deserved = {**FULL, "raw_weights": 0, **predicted}
        scores = {cell: one.automatic for cell, one in marks.scores()["ben"].items()}
        assert scores == {f"check_{name}": points for name, points in deserved.items()}
    course.nbgrader("export")
    assert len((course.folder / "grades.csv").read_text().splitlines()) == 4
    for word in ("feedback", "report", "export"):
        done = course.run("helpers.grading", word, FIRST)
        assert done.returncode == 0, done.stderr
