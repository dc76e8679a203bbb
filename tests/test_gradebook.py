"""The gradebook: a submission's marks land together, its troubles are told in words, its copies come back."""

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
from graded import FULL, NONE, batch, hand_in_a_few
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from helpers.exercises.exercise import lesson_names
from helpers.grading import backups, gradebook, late_policy
from helpers.grading.backups import FOLDER, KEPT, NoBackup, back_up, listed, restore
from helpers.grading.batch import as_text
from helpers.grading.errors import Trouble, in_words, of_disk
from helpers.grading.gradebook import Marks
from helpers.grading.journal import Busy, Journal

MARKED = {"ada": FULL, "ben": {**FULL, "raw_weights": 1}, "eve": NONE}


@pytest.fixture
def file(course):
    return course.folder / "gradebook.db"


def rows(file):
    with contextlib.closing(sqlite3.connect(file)) as database:
        return database.execute("SELECT count(*) FROM submitted_assignment").fetchone()[0]


# -------------------------------------------------------------------------------------- one transaction


def test_the_marks_of_a_submission_are_one_transaction(course):
    hand_in_a_few(course)
    commits = []
    with Marks(course.folder, FIRST) as marks:
        event.listen(marks.gradebook.engine, "commit", lambda connection: commits.append(rows(marks_file(marks))))
        with pytest.raises(ZeroDivisionError), marks._one_transaction():
            marks.gradebook.update_or_create_student("zoe")
            marks.gradebook.update_or_create_submission(FIRST, "zoe")
            assert marks.gradebook.find_submission(FIRST, "zoe") is not None
            1 / 0  # noqa: B018
        assert commits == [] and marks.held() == {}
        marks.gradebook.db.commit()
        commits.clear()
        with marks._one_transaction():
            marks.gradebook.update_or_create_student("zoe")
            marks.gradebook.update_or_create_submission(FIRST, "zoe")
            assert rows(marks_file(marks)) == 0, "nobody else sees it yet"
        assert len(commits) == 1
    assert rows(course.folder / "gradebook.db") == 1


def marks_file(marks):
    return gradebook.sqlite_file(marks.course.db_url)


def test_nbgraders_own_classes_are_as_they_came(course):
    from nbgrader.api import Gradebook
    from nbgrader.preprocessors import latesubmissions, overwritecells, saveautogrades

    hand_in_a_few(course)
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        real = Marks.save
        patch.setattr(Marks, "save", lambda self, *a: seen.append(module_classes()) or real(self, *a))

        def module_classes():
            return [module.Gradebook for module in (latesubmissions, overwritecells, saveautogrades)]

        batch(course).run()
    assert seen == [[Gradebook] * 3] * 3


def test_a_point_given_by_hand_meanwhile_is_seen(course, file):
    hand_in_a_few(course)
    batch(course).run()
    with Marks(course.folder, FIRST) as marks:
        assert marks.held()["ben"]["check_raw_weights"].automatic == 1
        with contextlib.closing(sqlite3.connect(file)) as formgrader:
            formgrader.execute("UPDATE grade SET manual_score = 2.5 WHERE auto_score = 1")
            formgrader.commit()
        assert marks.held()["ben"]["check_raw_weights"].counts == 2.5


# -------------------------------------------------------------------------------------- troubles, in words


def grade(course):
    """What `make grade` says about a gradebook that it cannot use, as a user reads it."""
    with pytest.raises(Trouble) as told:
        batch(course).run()
    assert "Traceback" not in str(told.value) and "sqlalchemy" not in str(told.value).lower()
    return str(told.value)


@pytest.mark.parametrize(
    "data", [b"this is no database at all, but long enough to be looked at" * 20, None], ids=["text", "torn"]
)
def test_a_damaged_gradebook(course, file, data):
    hand_in_a_few(course)
    if data is None:
        batch(course).run()
        whole = file.read_bytes()
        data = whole[:4096] + b"\xff" * (len(whole) - 4096)
    file.write_bytes(data)
    told = grade(course)
    assert "gradebook.db is damaged" in told and "make restore-gradebook" in told
    assert file.read_bytes() == data


def test_a_gradebook_of_another_version_of_nbgrader(course, file):
    hand_in_a_few(course)
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("ALTER TABLE grade DROP COLUMN extra_credit")
        database.commit()
    before = file.read_bytes()
    told = grade(course)
    assert "another version of nbgrader" in told and "no column extra_credit" in told and "nbgrader db upgrade" in told
    assert file.read_bytes() == before


def test_a_database_that_is_no_gradebook_stays_as_it_is(course, file):
    hand_in_a_few(course)
    file.unlink()
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
        database.commit()
    before = file.read_bytes()
    assert "it holds other tables: recipes" in grade(course)
    assert file.read_bytes() == before


def test_a_gradebook_that_somebody_else_is_writing_to(course, file, monkeypatch):
    hand_in_a_few(course)
    monkeypatch.setattr(gradebook, "PATIENCE", 0.1)
    with contextlib.closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        summary = batch(course).run()
    assert (
        "is in use" in summary.halted
        and "formgrader" in summary.halted
        and "the same command goes on" in summary.halted
    )
    assert course.marks() == {} and Journal(course.folder, FIRST).read() == {}
    assert not list(course.folder.glob("autograded/*/*/*.ipynb"))
    assert len(batch(course).run().graded) == 3


@pytest.mark.parametrize(
    "said, told",
    [
        ("attempt to write a readonly database", "cannot be written to"),
        ("database or disk is full", "There is no space left"),
        ("unable to open database file", "cannot be opened"),
        ("no such table: grade", "another version of nbgrader"),
        ("database disk image is malformed", "is damaged"),
    ],
)
def test_what_sqlite_says_while_marks_are_written_stops_the_batch_in_words(course, monkeypatch, said, told):
    hand_in_a_few(course)
    real = late_policy.Penalties.settle

    def fails(self, submission):
        if submission.student_id == "ben":
            raise OperationalError("INSERT INTO grade VALUES (?)", {}, sqlite3.OperationalError(said))
        return real(self, submission)

    with monkeypatch.context() as patch:
        patch.setattr(late_policy.Penalties, "settle", fails)
        summary = batch(course, jobs=1).run()
    assert told in summary.halted and "INSERT" not in summary.as_text()
    assert (
        set(course.marks()) == {entry.student for entry in summary.graded} == set(Journal(course.folder, FIRST).read())
    )
    assert (
        "ben" not in course.marks() and not (course.folder / "autograded" / "ben" / FIRST / f"{FIRST}.ipynb").exists()
    )
    batch(course).run()
    assert course.marks() == MARKED


@pytest.mark.parametrize("place", ["helpers.grading.gradebook.write_whole", "helpers.grading.journal.os.fsync"])
def test_a_full_disk_stops_the_batch_with_nothing_half_written(course, monkeypatch, place):
    hand_in_a_few(course)

    def full(*args, **more):
        raise OSError(errno.ENOSPC, "No space left on device", str(course.folder / "autograded"))

    with monkeypatch.context() as patch:
        patch.setattr(place, full)
        summary = batch(course).run() if "gradebook" in place else stopped(course)
    assert "There is no space left on the disk" in str(summary)
    assert not list(course.folder.glob("autograded/*/*/.*"))
    assert batch(course).run().failed == [] and course.marks() == MARKED


def stopped(course):
    """A run that ends by Trouble, or by halting: both tell it."""
    try:
        return batch(course).run().halted
    except Trouble as problem:
        return problem


def mounted(folder, size):
    """A file system of so many kilobytes, where this machine lets one be made."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no file system can be mounted here: this needs root")


def test_a_course_on_a_disk_that_is_really_full(course, tmp_path):
    hand_in_a_few(course)
    small = tmp_path / "small"
    mounted(small, 4000)
    try:
        shutil.copytree(course.folder, small / "course")
        left = shutil.disk_usage(small).free
        (small / "ballast").write_bytes(b"x" * max(0, left - 150_000))
        course.folder = small / "course"
        told = stopped(course)
        assert "There is no space left on the disk" in str(told), told
        (small / "ballast").unlink()
        done = batch(course).run()
        assert course.marks() == MARKED and not done.failed
    finally:
        subprocess.run(["umount", "-l", small], check=False)


@pytest.mark.parametrize("name", ["autograded", "journal", FOLDER])
def test_a_file_where_a_folder_has_to_be(course, name):
    hand_in_a_few(course)
    (course.folder / name).write_text("in the way")
    told = str(stopped(course))
    assert name in told and "Move it away" in told
    (course.folder / name).unlink()
    batch(course).run()
    assert course.marks() == MARKED


def test_a_folder_that_cannot_be_written_to(course):
    problem = PermissionError(errno.EACCES, "Permission denied", str(course.folder / "autograded"))
    told = of_disk(problem, course.folder)
    assert "autograded cannot be written to: permission denied" in told and "in a copy of the folder" in told
    assert "read-only" in of_disk(OSError(errno.EROFS, "Read-only file system", "x"), course.folder)
    assert of_disk(OSError(errno.EINTR, "Interrupted"), course.folder) == "", "what has no remedy passes as it is"


@pytest.mark.parametrize(
    "address, told",
    [
        ("postgresql+psycopg://grader:secret@127.0.0.1:1/course", "does not answer"),
        ("postgresql+nothing://grader:secret@host/course", "address cannot be read"),
        ("no address", "address cannot be read"),
        ("sqlite:////nowhere/at/all/gradebook.db", "cannot be opened"),
    ],
)
def test_an_address_at_which_there_is_no_gradebook(course, monkeypatch, address, told):
    hand_in_a_few(course)
    monkeypatch.setenv("GRADEBOOK", address)
    said = grade(course)
    assert told in said and "secret" not in said


def test_an_error_without_a_remedy_is_not_dressed_up(tmp_path):
    with pytest.raises(ZeroDivisionError), in_words("sqlite:///x.db", tmp_path):
        1 / 0  # noqa: B018


@pytest.mark.parametrize("command", ["grade", "report", "feedback", "export"])
def test_every_command_tells_it_without_a_traceback(course, file, command):
    hand_in_a_few(course)
    file.write_bytes(b"no database" * 100)
    done = course.run("helpers.grading", command, FIRST)
    assert done.returncode and "is damaged" in done.stderr and "Traceback" not in done.stderr


def test_no_submissions_and_no_such_folder(course):
    shutil.rmtree(course.folder / "submitted")
    done = course.run("helpers.grading", "grade", FIRST)
    assert done.returncode and "There is no folder submitted/" in done.stderr and "make collect" in done.stderr


# -------------------------------------------------------------------------------------- copies, and back


def test_a_batch_makes_a_dated_copy_first_and_none_where_there_is_nothing_to_do(course, file):
    hand_in_a_few(course)
    before = file.read_bytes()
    batch(course).run()
    (first,) = backups.backups(course.folder)
    assert first.marks == 0 and rows(first.path) == rows_of(before, course) == 0
    batch(course).run()
    assert len(backups.backups(course.folder)) == 1
    batch(course).run(again=True)
    newest, _ = backups.backups(course.folder)
    assert newest.marks == 3 and newest.at >= first.at
    assert newest.name in listed(course.folder) and "make restore-gradebook ARGS=" in listed(course.folder)


def rows_of(data, course):
    path = course.folder / "copy.db"
    path.write_bytes(data)
    return rows(path)


def test_a_backup_comes_back_and_what_was_there_is_kept(course, file):
    hand_in_a_few(course)
    batch(course).run()
    batch(course).run(again=True)
    with Marks(course.folder, FIRST) as marks:
        marks.remove("ada")
    told = restore(course.folder, file, "latest")
    assert course.marks() == MARKED and "3 graded notebooks" in told
    kept = backups.backups(course.folder)[0]
    assert str(kept.path.relative_to(course.folder)) in told and kept.marks == 2
    restore(course.folder, file, kept.name)
    assert set(course.marks()) == {"ben", "eve"}
    assert {entry.student for entry in batch(course).run().graded} == {"ada"}, "and grading brings back the rest"


def test_a_damaged_gradebook_is_kept_and_replaced_and_good_copies_are_not_thrown_away_for_it(course, file):
    hand_in_a_few(course)
    batch(course).run()
    batch(course).run(again=True)
    good = {backup.name for backup in backups.backups(course.folder)}
    file.write_bytes(b"gone" * 2000)
    with pytest.raises(Trouble, match="is damaged"):
        back_up(course.folder, file)
    restore(course.folder, file, "latest")
    assert course.marks() == MARKED
    assert good <= {backup.name for backup in backups.backups(course.folder)}
    (kept,) = (course.folder / FOLDER).glob("*.damaged")
    assert kept.read_bytes() == b"gone" * 2000


def test_a_gradebook_that_was_deleted_comes_back(course, file):
    hand_in_a_few(course)
    batch(course).run()
    batch(course).run(again=True)
    file.unlink()
    assert "There was none before" in restore(course.folder, file, "latest")
    assert course.marks() == MARKED


def test_no_backup_comes_back_while_a_batch_runs(course, file):
    hand_in_a_few(course)
    batch(course).run()
    before = file.read_bytes()
    with Journal(course.folder, lesson_names()[-1]).held(), pytest.raises(Busy, match="being graded"):
        restore(course.folder, file, "latest")
    assert file.read_bytes() == before


def test_the_last_twenty_are_kept(course, file):
    with Marks(course.folder, FIRST) as marks:
        for place in range(KEPT + 3):
            marks.gradebook.update_or_create_student(f"student-{place}")
            assert back_up(course.folder, file)
            assert back_up(course.folder, file) is None, "the newest is the same"
    found = backups.backups(course.folder)
    assert len(found) == KEPT and sorted({backup.name for backup in found}, reverse=True) == [b.name for b in found]
    with contextlib.closing(sqlite3.connect(found[0].path)) as database:
        assert database.execute("SELECT count(*) FROM student").fetchone()[0] == KEPT + 3


def test_a_copy_that_cannot_be_finished_leaves_nothing(course, file, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backups.os, "replace", full)
    with pytest.raises(Trouble, match="no space left"):
        back_up(course.folder, file)
    assert os.listdir(course.folder / FOLDER) == []


def test_a_backup_that_there_is_not_names_those_there_are(course, file):
    back_up(course.folder, file)
    (there,) = backups.backups(course.folder)
    with pytest.raises(NoBackup, match=there.name):
        restore(course.folder, file, "gradebook_1999-01-01_00-00-00")
    with pytest.raises(NoBackup):
        restore(course.folder, file, "../../etc/passwd")


def test_the_command_lists_and_restores(course, file):
    hand_in_a_few(course)
    assert "There are no backups yet" in course.run("helpers.grading", "restore-gradebook").stdout
    back_up(course.folder, file)
    name = backups.backups(course.folder)[0].name
    assert name in course.run("helpers.grading", "restore-gradebook").stdout
    done = course.run("helpers.grading", "restore-gradebook", "latest")
    assert done.returncode == 0 and "is as it was at" in done.stdout


def test_a_gradebook_on_a_server_is_left_to_pg_dump(course, monkeypatch):
    monkeypatch.setenv("GRADEBOOK", "postgresql+psycopg://grader@127.0.0.1:1/course")
    done = course.run("helpers.grading", "restore-gradebook")
    assert done.returncode and "pg_dump" in done.stderr and "Traceback" not in done.stderr


def test_git_ignores_backups():
    ignored = (Path(__file__).parents[1] / ".gitignore").read_text().splitlines()
    assert f"{FOLDER}/" in ignored
