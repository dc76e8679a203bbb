"""What the sandbox holds, and nbgrader's own command behind it: the same door and limits as `make grade`."""

from __future__ import annotations

import os
import subprocess
import sys

import nbformat
import pytest
from conftest import FIRST, Course, answer_notebook, solved
from graded import FULL, OUT_OF

from helpers.authoring.lesson_source import ROOT
from helpers.grading.execute import sandbox
from helpers.grading.records import recorded

needs_walls = pytest.mark.needs("bubblewrap")


@needs_walls
def test_the_sandbox_holds_no_room_that_students_do_not_have(tmp_path):
    look = "ls /course/helpers / /sandbox; id -u; touch /tmp/ok /usr/no /course/no 2>&1"
    command = sandbox.wrapped(["/bin/sh", "-c", look], environment={})
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    assert "checking" in listed and "grading" not in listed and "authoring" not in listed
    assert "home" not in listed.split() and listed.count("cannot touch") == 2


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = Course(tmp_path_factory.mktemp("course"), FIRST)
    course.nbgrader("generate_assignment", FIRST, "--force")
    course.submit("solved", answer_notebook(FIRST, **solved(FIRST)))
    course.exam_key()
    return course


def isolations(course: Course) -> set[str]:
    notebook = nbformat.read(course.folder / "autograded" / "solved" / FIRST / f"{FIRST}.ipynb", as_version=4)
    return {record["isolation"] for _, record in recorded(notebook)}


def test_without_bubblewrap_autograde_refuses_and_says_what_to_do(course, tmp_path):
    lacking = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}
    command = [sys.executable, "-m", "nbgrader", "autograde", FIRST]
    refused = subprocess.run(command, cwd=course.folder, capture_output=True, text=True, env=lacking)
    assert refused.returncode != 0
    assert "apt install bubblewrap" in refused.stderr and "--ExamExecute.isolation=none" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not (course.folder / "autograded" / "solved").exists()


def test_going_on_without_it_is_warned_of_and_recorded(course):
    told = course.nbgrader("autograde", FIRST, "--ExamExecute.isolation=none", "--force", "--student=solved").stderr
    assert "without a sandbox" in told
    assert isolations(course) == {sandbox.UNSAFE_LABEL}


@needs_walls
def test_nbgraders_marks_say_that_they_were_made_in_the_sandbox(course):
    course.nbgrader("autograde", FIRST, "--force", "--student=solved")
    assert isolations(course) == {"bubblewrap, warm kernel"}
    assert sum(course.marks()["solved"].values()) == OUT_OF


# What is written into the solution cell of raw_weights, and what nbgrader's log then says of it
HOSTILE = {
    "hoards": (
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n"
        "        hoard = bytearray(b'x') * (700 << 20)\n        time.sleep(60)\ntime.sleep(60)\n",
        "it used more than 2.0 GB of memory",
    ),
    "floods": (
        "import os\nline = b'x' * 10_000_000 + bytes([10])\nwhile True:\n    os.write(3, line)\n",
        "it sent the grader more than 16 MB",
    ),
    "halves": ("raise RuntimeError('\\ud800 \\x1b[2J gone')", "raw_weights stopped with RuntimeError: gone"),
}


@pytest.fixture(scope="module")
def hostile(course):
    """A class of attackers, and after them all one who has everything right, graded by one nbgrader autograde."""
    for student, (answer, _) in HOSTILE.items():
        course.submit(student, answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": answer}))
    many = answer_notebook(FIRST, **solved(FIRST))
    many.cells += [nbformat.v4.new_code_cell("x = 1") for _ in range(10_000)]
    course.submit("many-cells", many)
    course.submit("deep", answer_notebook(FIRST)).write_text("[" * 900 + "]" * 900)
    link = course.submit("copycat", answer_notebook(FIRST))
    link.unlink()
    link.symlink_to(f"../../solved/{FIRST}/{FIRST}.ipynb")
    (course.folder / "submitted" / "lodger").mkdir()
    (course.folder / "submitted" / "lodger" / FIRST).symlink_to(f"../solved/{FIRST}")
    (course.folder / "submitted" / "twin").symlink_to("solved")
    reader = course.submit("reader", answer_notebook(FIRST, **solved(FIRST))).parent
    for name, target in {"notes.txt": "../../../exam", "key": f"../../../exam/{FIRST}.safetensors"}.items():
        (reader / name).symlink_to(target)
    (reader / "inner").mkdir()
    (reader / "inner" / "passwords").symlink_to("/etc/passwd")
    (reader / "timestamp.txt").write_text("2026-01-01 00:00:00 UTC")
    course.submit("zoe", answer_notebook(FIRST, **solved(FIRST)))
    return course.nbgrader("autograde", FIRST, "--force").stderr


@needs_walls
@pytest.mark.parametrize("student", HOSTILE)
def test_under_nbgrader_an_attack_costs_its_own_points_and_says_so(hostile, course, student):
    path = course.folder / "autograded" / student / FIRST / f"{FIRST}.ipynb"
    judged = nbformat.read(path, as_version=4)
    earned = {record["exercise"]: record["earned"] for _, record in recorded(judged)}
    assert (earned.pop("raw_weights"), sum(earned.values())) == (0, OUT_OF - FULL["raw_weights"])
    assert course.marks()[student]["raw_weights"] == 0
    assert f"{student}: " in hostile and HOSTILE[student][1] in hostile
    assert "\x1b[2J" not in hostile


@needs_walls
def test_under_nbgrader_nobody_else_is_harmed(hostile, course):
    assert sum(course.marks()["zoe"].values()) == sum(course.marks()["solved"].values()) == OUT_OF


@needs_walls
@pytest.mark.parametrize("student", ["copycat", "lodger", "twin"])
def test_under_nbgrader_a_link_to_a_neighbours_work_earns_nothing(hostile, course, student):
    assert sum(course.marks()[student].values()) == 0
    assert f"{student}: the file is a link and was not followed" in hostile
    notebook = nbformat.read(course.folder / "autograded" / student / FIRST / f"{FIRST}.ipynb", as_version=4)
    exercises = [record for _, record in recorded(notebook) if "prediction" not in record]
    assert len(exercises) == len(FULL)
    assert all("is a link and was not followed" in record["says"] for record in exercises)


@needs_walls
def test_under_nbgrader_what_is_no_notebook_costs_nobody_a_traceback(hostile, course):
    assert sum(course.marks()["deep"].values()) == 0
    assert "deep: the file nests its brackets more than 100 deep" in hostile
    assert "Traceback" not in hostile


@needs_walls
def test_under_nbgrader_ten_thousand_cells_come_to_an_end(hostile, course):
    assert "many-cells: only the first 2,000 of its 10," in hostile
    assert sum(course.marks()["many-cells"].values()) == OUT_OF


@needs_walls
def test_under_nbgrader_no_link_in_a_submission_leads_to_a_file_of_the_instructors(hostile, course):
    folder = course.folder / "autograded" / "reader"
    kept = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert kept == [f"{FIRST}.ipynb", "timestamp.txt"]
    assert sum(course.marks()["reader"].values()) == OUT_OF
