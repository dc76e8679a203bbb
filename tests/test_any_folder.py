"""A course grades wherever it lies: under /tmp, in memory, in a home with blanks in its name, behind links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from attacks import DATA
from conftest import FIRST, Course, answer_notebook, solved

from helpers.authoring.build.lesson_source import ROOT, sources
from helpers.authoring.build.make_keys import make_key
from helpers.course import HELPERS, INSTRUCTORS_ROOMS
from helpers.exercises import load_lesson
from helpers.grading.grader import work_of
from helpers.grading.judging import judge_submission
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.bubblewrap import NoSandbox
from helpers.grading.sandbox.runner import Runner

pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]

SEED = "a seed for any folder"
FULL = {exercise.name: exercise.points for exercise in load_lesson(FIRST)}
PACKAGES = next(path for path in sys.path if os.path.basename(path) == "site-packages")


@pytest.fixture(scope="module")
def key():
    return make_key(sources([FIRST])[0], SEED)


@pytest.fixture
def place(request):
    """A new folder in the place that the test names."""
    above = Path(request.param)
    if not os.access(above, os.W_OK):
        pytest.skip(f"{above} is not writable here")
    folder = Path(tempfile.mkdtemp(dir=above, prefix="course-"))
    yield folder
    shutil.rmtree(folder)


def virtual_environment(folder: Path, python: str = sys.executable) -> Path:
    """A virtual environment that finds the packages of this one. Returns its python."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    (own,) = folder.glob("lib/python3*/site-packages")
    (own / "shared.pth").write_text(f"{PACKAGES}\n")
    return folder / "bin" / "python"


def checkout(folder: Path) -> Path:
    """What the sandbox shows of a course, in another place."""
    away = shutil.ignore_patterns("__pycache__", *INSTRUCTORS_ROOMS)
    shutil.copytree(HELPERS, folder / "helpers", ignore=away)
    shutil.copytree(bubblewrap.INSIDE, folder / "inside")
    return folder


def move(monkeypatch, course: Path, python: Path) -> None:
    """Let this process be the grader that runs there."""
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(sys, "prefix", str(python.parents[1]))
    monkeypatch.setattr(bubblewrap, "HELPERS", course / "helpers")
    monkeypatch.setattr(bubblewrap, "INSIDE", course / "inside")
    bubblewrap._problem.cache_clear()


@pytest.fixture(autouse=True)
def asked_anew():
    yield
    bubblewrap._problem.cache_clear()


def graded(key, **answers) -> tuple[dict[str, float], str]:
    """Each exercise's points, and all that was printed."""
    work = work_of(load_lesson(FIRST), answer_notebook(FIRST, **{**solved(FIRST), **answers}), answer_notebook(FIRST))
    with Runner(FIRST) as runner:
        executed = runner.execute(work, SEED)
        again = runner.execute(work, SEED)
    assert executed.isolation == again.isolation == "bubblewrap, warm"
    assert printed(executed) == printed(again)
    judged = judge_submission(load_lesson(FIRST), key, executed.runs, executed.read)
    return {name: found.verdict.points for name, found in judged.items()}, printed(executed)


def printed(executed) -> str:
    return "".join(run.sent["printed"] for run in executed.runs.values() if run.sent)


@pytest.mark.deep
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"], indirect=True)
def test_a_course_lies_where_submissions_may_write(place, key, monkeypatch):
    course = checkout(place / "course")
    (course / "gradebook.db").write_text("precious")
    move(monkeypatch, course, virtual_environment(course / ".venv"))
    points, said = graded(key, raw_weights=DATA["texts"]["writes_everywhere"])
    assert points == FULL
    assert "LEAK" not in said and "found" not in said
    assert "['.venv']" in said  # and not the gradebook beside it
    assert not Path("/tmp/mine").exists() and not (course / ".venv" / "mine").exists()


@pytest.mark.deep
def test_a_course_is_called_by_a_link_and_its_python_by_a_chain_of_them(tmp_path, key, monkeypatch):
    course = checkout(tmp_path / "real")
    (tmp_path / "shims").mkdir()
    os.symlink(os.path.realpath(sys.executable), tmp_path / "shims" / "python3-newest")
    os.symlink("python3-newest", tmp_path / "shims" / "python3")
    python = virtual_environment(course / ".venv")
    for name in ("python", "python3"):
        (python.parent / name).unlink(missing_ok=True)
    os.symlink(tmp_path / "shims" / "python3", python.parent / "python3")
    os.symlink("python3", python)
    os.symlink(course, tmp_path / "linked")
    move(monkeypatch, tmp_path / "linked", tmp_path / "linked" / ".venv" / "bin" / "python")
    assert graded(key)[0] == FULL


def test_a_virtual_environment_that_is_the_course_itself_shows_nothing_of_it(tmp_path, monkeypatch):
    course = checkout(tmp_path / "course")
    python = virtual_environment(course)  # python -m venv .
    (course / "gradebook.db").write_text("precious")
    move(monkeypatch, course, python)
    assert bubblewrap.why_not() == ""
    listed = subprocess.run(bubblewrap.wrapped(["/bin/ls", str(course)]), capture_output=True, text=True).stdout.split()
    assert set(listed) <= {"bin", "lib", "lib64", "include", "pyvenv.cfg"}


def test_where_python_does_not_find_torch_inside_grading_refuses_and_says_so(tmp_path, monkeypatch):
    course = checkout(tmp_path / "course")
    python = virtual_environment(course / ".venv")
    for path in course.rglob("shared.pth"):
        path.unlink()
    move(monkeypatch, course, python)
    with pytest.raises(NoSandbox, match="does not find torch"):
        Runner(FIRST).__enter__()


@pytest.mark.deep
def test_a_course_under_tmp_that_may_only_be_read_grades_a_class_elsewhere(tmp_path):
    """The whole command, by a Python of the course's own."""
    code = tmp_path / "checkout"
    shutil.copytree(HELPERS, code / "helpers", ignore=shutil.ignore_patterns("__pycache__"))
    python = virtual_environment(code / ".venv")
    subprocess.run(["chmod", "-R", "a-w", code], check=True)
    course = Course(tmp_path / "a class", FIRST)
    course.submit("ada", answer_notebook(FIRST, **solved(FIRST)))
    environment = {
        **os.environ,
        "PYTHONPATH": str(code),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),  # nbgrader calls alembic
    }

    def run(python, *words, **more):
        command = [python, "-m", *words]
        around = {**environment, **more}
        return subprocess.run(command, cwd=course.folder, env=around, capture_output=True, text=True)

    made = run(sys.executable, "helpers.authoring", "exam-key", FIRST, "--seeds", "2", PYTHONPATH=str(ROOT))
    assert made.returncode == 0, made.stderr
    done = run(python, "helpers.grading", "grade", FIRST, "--no-bar")
    subprocess.run(["chmod", "-R", "u+w", code], check=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert course.marks()["ada"] == FULL
