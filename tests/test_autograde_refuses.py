"""Submissions are graded by `make grade` alone: every way to nbgrader's autograde refuses, and names that command."""

import os
import shutil
import subprocess
import sys

import pytest
from conftest import FIRST

from helpers.course import ROOT

SAYS = f"Nothing was graded. This course is graded by: make grade LESSON={FIRST}"
BY_BUTTON = f"""
import json
from nbgrader.apps import NbGrader
from nbgrader.apps.api import NbGraderAPI
app = NbGrader()
app.initialize([])
print(json.dumps(NbGraderAPI(app.coursedir, parent=app).autograde({FIRST!r}, "mal")))
"""
EXPORTER = "nbconvert.exporters.NotebookExporter"
WAYS = {
    "command": ["-m", "nbgrader", "autograde", FIRST],
    "option": ["-m", "nbgrader", "autograde", "--assignment", FIRST, "--force"],
    "nbgrader's own steps": ["-m", "nbgrader", "autograde", FIRST, f"--Autograde.exporter_class={EXPORTER}"],
    "the formgrader's button": ["-c", BY_BUTTON],
}


@pytest.fixture
def course(tmp_path):
    """A course with one submission, in which a pipe has the name of the file that nbgrader would read first."""
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    for folder in ("submitted", "autograded"):
        (tmp_path / folder / "mal" / FIRST).mkdir(parents=True)
    submitted = tmp_path / "submitted/mal" / FIRST
    (submitted / f"{FIRST}.ipynb").write_text("no notebook")
    os.mkfifo(submitted / "timestamp.txt")
    return tmp_path


def everything(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def run(folder, home, *words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home), "JUPYTER_PREFER_ENV_PATH": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


SELDOM = ("option", "nbgrader's own steps")


@pytest.mark.parametrize("way", [pytest.param(w, marks=pytest.mark.deep if w in SELDOM else ()) for w in WAYS])
def test_it_refuses_at_once_and_names_the_command(course, tmp_path_factory, way):
    before = everything(course)
    done = run(course, tmp_path_factory.mktemp("home"), *WAYS[way])
    if way == "the formgrader's button":
        assert '"success": false' in done.stdout and f"[ERROR] {SAYS}" in done.stdout
    else:
        assert done.returncode == 1 and SAYS in done.stderr and "Traceback" not in done.stderr
    assert everything(course) == before


def test_it_refuses_from_another_folder(course, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = run(elsewhere, elsewhere, "-m", "nbgrader", "autograde", FIRST, f"--course-dir={course}")
    assert done.returncode == 1 and SAYS in done.stderr
