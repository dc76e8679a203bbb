"""A submission's marks are one transaction; errors of the gradebook are explained; its copies can be restored."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from conftest import FIRST
from graded import FULL, NONE, batch
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from helpers.exercises.exercise import lesson_names
from helpers.grading import backups, gradebook, late_policy
from helpers.grading.backups import FOLDER, MAX_BACKUPS, back_up, restore
from helpers.grading.errors import GradingError, disk_error, explained
from helpers.grading.gradebook import GradebookSession
from helpers.grading.journal import Journal

MARKED = {"ada": FULL, "ben": {**FULL, "raw_weights": 0}, "eve": NONE}


@pytest.fixture
def file(course):
    return course.folder / "gradebook.db"


def query(file, text):
    with contextlib.closing(sqlite3.connect(file)) as database:
        result = database.execute(text).fetchone()
        database.commit()
    return result and result[0]


def submissions(file):
    return query(file, "SELECT count(*) FROM submitted_assignment")


# -------------------------------------------------------------------------------------- one transaction


def test_the_marks_of_a_submission_are_one_transaction(course, file):
    commits = []
    with GradebookSession(course.folder, FIRST) as marks:
        event.listen(marks.gradebook.engine, "commit", lambda connection: commits.append(submissions(file)))
        with pytest.raises(ZeroDivisionError), marks._one_transaction():
            marks.gradebook.update_or_create_student("zoe")
            marks.gradebook.update_or_create_submission(FIRST, "zoe")
            assert marks.gradebook.find_submission(FIRST, "zoe") is not None
            1 / 0  # noqa: B018
        assert commits == [] and marks.scores() == {}
        marks.gradebook.db.commit()
        commits.clear()
        with marks._one_transaction():
            marks.gradebook.update_or_create_student("zoe")
            marks.gradebook.update_or_create_submission(FIRST, "zoe")
            assert submissions(file) == 0, "nobody else sees it yet"
        assert len(commits) == 1
    assert submissions(file) == 1


def test_a_point_given_by_hand_meanwhile_is_seen(course, file):
    batch(course).run()
    with GradebookSession(course.folder, FIRST) as marks:
        assert marks.scores()["ben"]["check_raw_weights"].automatic == 0
        query(file, "UPDATE grade SET manual_score = 2.5 WHERE auto_score = 0")
        assert marks.scores()["ben"]["check_raw_weights"].counts == 2.5


# -------------------------------------------------------------------------------------- errors, explained


def message(course):
    """What a batch says that cannot begin, or halts."""
    try:
        text = batch(course).run().halted
    except GradingError as problem:
        text = str(problem)
    assert "Traceback" not in text and "sqlalchemy" not in text.lower()
    return text


def torn(course, file):
    batch(course).run()
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))


def of_another_version(course, file):
    query(file, "ALTER TABLE grade DROP COLUMN extra_credit")


def of_another_program(course, file):
    file.unlink()
    query(file, "CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda course, file: file.write_bytes(b"no database, but long" * 99), ("is damaged", "restore-gradebook")),
        (torn, ("is damaged", "make restore-gradebook")),
        (of_another_version, ("another version of nbgrader", "no column extra_credit", "nbgrader db upgrade")),
        (of_another_program, ("it holds other tables: recipes",)),
    ],
)
def test_a_gradebook_that_cannot_be_used_stays_as_it_is_and_is_explained(course, file, damage, words):
    damage(course, file)
    before = file.read_bytes()
    text = message(course)
    assert all(word in text for word in words) and file.read_bytes() == before


def test_a_gradebook_that_somebody_else_is_writing_to(course, file, monkeypatch):
    monkeypatch.setattr(gradebook, "PATIENCE", 0.1)
    with contextlib.closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        text = message(course)
    assert "is in use" in text and "formgrader" in text and "the same command continues" in text
    assert course.marks() == {} and Journal(course.folder, FIRST).read() == {}
    assert not list(course.folder.glob("autograded/*/*/*.ipynb"))
    assert len(batch(course).run().graded) == 3


@pytest.mark.parametrize(
    "error, words",
    [
        ("attempt to write a readonly database", "cannot be written to"),
        ("database or disk is full", "There is no space left"),
        ("unable to open database file", "cannot be opened"),
        ("no such table: grade", "another version of nbgrader"),
    ],
)
def test_an_error_while_marks_are_written_halts_the_batch(course, file, monkeypatch, error, words):
    real = late_policy.update_penalty

    def fails(gradebook, deadlines, submission):
        if submission.student_id == "ben":
            raise OperationalError("INSERT INTO grade VALUES (?)", {}, sqlite3.OperationalError(error))
        return real(gradebook, deadlines, submission)

    with monkeypatch.context() as patch:
        patch.setattr(late_policy, "update_penalty", fails)
        summary = batch(course, jobs=1).run()
    assert words in summary.halted and "INSERT" not in summary.as_text()
    written = {entry.student for entry in summary.graded}
    assert set(course.marks()) == written == set(Journal(course.folder, FIRST).read()) and "ben" not in written
    assert not (course.folder / "autograded" / "ben" / FIRST / f"{FIRST}.ipynb").exists()
    batch(course).run()
    assert course.marks() == MARKED


@pytest.mark.parametrize("place", ["helpers.grading.gradebook.write_whole", "helpers.grading.journal.append_line"])
def test_a_full_disk_stops_the_batch_with_nothing_half_written(course, file, monkeypatch, place):
    def full(*args, **more):
        raise OSError(errno.ENOSPC, "No space left on device", str(course.folder / "autograded"))

    with monkeypatch.context() as patch:
        patch.setattr(place, full)
        assert "There is no space left on the disk" in message(course)
    assert not list(course.folder.glob("autograded/*/*/.*"))
    assert batch(course).run().failed == [] and course.marks() == MARKED


def test_a_course_on_a_disk_that_is_really_full(course, file, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4000k", "none", small], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here: this needs root")
    try:
        shutil.copytree(course.folder, small / "course")
        (small / "ballast").write_bytes(b"x" * max(0, shutil.disk_usage(small).free - 150_000))
        course.folder = small / "course"
        assert "There is no space left on the disk" in message(course)
        (small / "ballast").unlink()
        assert not batch(course).run().failed and course.marks() == MARKED
    finally:
        subprocess.run(["umount", "-l", small], check=False)


@pytest.mark.parametrize("name", ["autograded", "journal", FOLDER])
def test_a_file_in_place_of_a_folder(course, file, name):
    (course.folder / name).write_text("in the way")
    text = message(course)
    assert name in text and "Move it away" in text


def test_disk_errors_without_a_remedy_pass_unchanged(tmp_path):
    denied = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "autograded"))
    text = disk_error(denied, tmp_path)
    assert "autograded cannot be written to: permission denied" in text and "in a copy of the folder" in text
    assert disk_error(OSError(errno.EINTR, "Interrupted"), tmp_path) == ""
    with pytest.raises(ZeroDivisionError), explained(tmp_path, "sqlite:///x.db"):
        1 / 0  # noqa: B018


@pytest.mark.parametrize(
    "address, words",
    [
        ("postgresql+psycopg://grader:secret@127.0.0.1:1/course", "does not answer"),
        ("postgresql+nothing://grader:secret@host/course", "address cannot be read"),
        ("no address", "address cannot be read"),
        ("sqlite:////nowhere/at/all/gradebook.db", "cannot be opened"),
    ],
)
def test_an_address_at_which_there_is_no_gradebook(course, file, monkeypatch, address, words):
    monkeypatch.setenv("GRADEBOOK", address)
    text = message(course)
    assert words in text and "secret" not in text


@pytest.mark.parametrize(
    "command", ["grade", "report", *(pytest.param(c, marks=pytest.mark.deep) for c in ("feedback", "export"))]
)
def test_every_command_explains_it_without_a_traceback(course, file, command):
    file.write_bytes(b"no database" * 100)
    done = course.run("helpers.grading", command, FIRST)
    assert done.returncode and "is damaged" in done.stderr and "Traceback" not in done.stderr


def test_without_submissions_the_command_says_what_to_do(course):
    shutil.rmtree(course.folder / "submitted")
    done = course.run("helpers.grading", "grade", FIRST)
    assert done.returncode and "There is no folder submitted/" in done.stderr and "make collect" in done.stderr


# -------------------------------------------------------------------------------------- copies, and back


def graded_twice(course):
    """So that the newest backup holds the marks of three students."""
    batch(course).run()
    batch(course).run(again=True)


def test_a_batch_makes_a_copy_first_unless_there_is_nothing_to_do(course, file):
    batch(course).run()
    (first,) = backups.backups(course.folder)
    assert submissions(first) == 0
    batch(course).run()
    assert backups.backups(course.folder) == [first]
    batch(course).run(again=True)
    newest, oldest = backups.backups(course.folder)
    assert submissions(newest) == 3 and oldest == first


def test_a_backup_comes_back_and_the_previous_state_is_kept(course, file):
    graded_twice(course)
    with GradebookSession(course.folder, FIRST) as marks:
        marks.gradebook.remove_student("ada")
    text = restore(course.folder, file, "latest")
    assert course.marks() == MARKED
    kept = backups.backups(course.folder)[0]
    assert str(kept.relative_to(course.folder)) in text and submissions(kept) == 2
    restore(course.folder, file, kept.stem)
    assert set(course.marks()) == {"ben", "eve"}
    assert {entry.student for entry in batch(course).run().graded} == {"ada"}, "and grading restores the rest"


def test_a_damaged_gradebook_is_kept_and_no_good_copy_is_deleted_for_it(course, file):
    graded_twice(course)
    good = set(backups.backups(course.folder))
    file.write_bytes(b"gone" * 2000)
    with pytest.raises(GradingError, match="is damaged"):
        back_up(course.folder, file)
    restore(course.folder, file, "latest")
    assert course.marks() == MARKED and good <= set(backups.backups(course.folder))
    (kept,) = (course.folder / FOLDER).glob("*.damaged")
    assert kept.read_bytes() == b"gone" * 2000
    file.unlink()
    assert "There was no gradebook before" in restore(course.folder, file, "latest")
    assert course.marks() == MARKED


def test_nothing_is_restored_while_a_batch_runs(course, file):
    back_up(course.folder, file)
    before = file.read_bytes()
    with Journal(course.folder, lesson_names()[-1]).locked(), pytest.raises(GradingError, match="being graded"):
        restore(course.folder, file, "latest")
    assert file.read_bytes() == before


def test_the_last_twenty_are_kept(course, file):
    with GradebookSession(course.folder, FIRST) as marks:
        for place in range(MAX_BACKUPS + 3):
            marks.gradebook.update_or_create_student(f"student-{place}")
            copy = back_up(course.folder, file)
            assert copy and back_up(course.folder, file) == copy, "the newest is the same"
    paths = backups.backups(course.folder)
    assert len(paths) == MAX_BACKUPS and query(paths[0], "SELECT count(*) FROM student") == MAX_BACKUPS + 3


def test_a_copy_that_cannot_be_finished_leaves_nothing(course, file, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(GradingError, match="no space left"):
        back_up(course.folder, file)
    assert os.listdir(course.folder / FOLDER) == []


def test_the_command_lists_backups_and_restores_one(course, file):
    assert "There are no backups yet" in course.run("helpers.grading", "restore-gradebook").stdout
    name = back_up(course.folder, file).stem
    for unknown in ("gradebook_1999-01-01_00-00-00", "../../etc/passwd"):
        with pytest.raises(GradingError, match=name):
            restore(course.folder, file, unknown)
    done = course.run("helpers.grading", "restore-gradebook", "latest")
    assert done.returncode == 0 and f"is restored from {name}" in done.stdout
    ignored = (Path(__file__).parents[1] / ".gitignore").read_text().splitlines()
    assert f"{FOLDER}/" in ignored


def test_a_gradebook_on_a_server_is_left_to_pg_dump(course, monkeypatch):
    monkeypatch.setenv("GRADEBOOK", "postgresql+psycopg://grader@127.0.0.1:1/course")
    done = course.run("helpers.grading", "restore-gradebook")
    assert done.returncode and "pg_dump" in done.stderr and "Traceback" not in done.stderr
