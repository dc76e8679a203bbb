"""Practice feedback in a student's repository: result.json as Classroom 50 documents it, and a summary for Actions."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from conftest import FIRST, answer_notebook, solved

from helpers.course import ROOT
from helpers.exercises import load_lesson

# https://github.com/foundation50/classroom50/wiki/Advanced-Autograding, "The result.json contract"
FIELDS = {
    "schema": str, "classroom": str, "assignment": str, "submission": str, "commit": str, "release": str, "review": str,
    "datetime": str, "score": int, "max-score": int, "tests": list,
}  # fmt: skip
OF_A_TEST = {"test-name": str, "passed": bool, "score": int, "max-score": int}
WRONG = "def raw_weights(x):\n    print('```')\n    return torch.softmax(x @ x.mT, -1)"


@pytest.fixture(scope="module")
def feedback(tmp_path_factory):
    """The folder in which it ran, in Classroom 50's environment."""
    folder = tmp_path_factory.mktemp("repository")
    nbformat.write(answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": WRONG}), folder / "work.ipynb")
    around = {"CLASSROOM": "attention", "ASSIGNMENT": "01-dot-product-attention", "COMMIT_URL": "https://example.org/c"}
    environment = {**os.environ, **around, "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    command = [sys.executable, str(ROOT / "hub/practice/autograder.py"), "work.ipynb"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_result_is_what_classroom_50_documents(feedback):
    result, lesson = json.loads((feedback / "result.json").read_text()), load_lesson(FIRST)
    assert {name: type(value) for name, value in result.items()} == FIELDS
    assert (result["schema"], result["classroom"]) == ("classroom50/result/v1", "attention")
    assert result["review"] == "https://example.org/c" and re.fullmatch(r"[\d-]+T[\d:]+Z", result["datetime"])
    for test in result["tests"]:
        assert {name: type(test[name]) for name in OF_A_TEST} == OF_A_TEST
    marked = {test["test-name"]: test for test in result["tests"] if test["max-score"]}
    assert {name: test["max-score"] for name, test in marked.items()} == {e.name: 100 * e.points for e in lesson}
    assert [name for name, test in marked.items() if not test["passed"]] == ["raw_weights"]
    assert result["score"] == sum(test["score"] for test in result["tests"]) < result["max-score"]


def test_the_summary_shows_points_and_words_and_no_text_leaves_its_fence(feedback):
    text = (feedback / "summary.md").read_text()
    assert text == (feedback / "release-body.md").read_text()
    assert "| ❌ `raw_weights` |" in text and "an exam has others" in text and "softmax" in text
    fence = re.search(r"^(`+)text\nraw_weights", text, re.MULTILINE)[1]
    assert len(fence) > 3, "the answer prints three backticks"


def test_the_workflow_runs_the_lessons_that_a_push_has_changed():
    workflow = (ROOT / "hub/practice/practice.yml").read_text()
    script = re.search(r"changed=\$\((.*)\)", workflow)[1].split("| sed", 1)[1].replace("2>/dev/null", "")
    named = "notebooks/03_scaling/03_scaling.ipynb\nnotebooks/README.md\nsite/x.ipynb\n"
    done = subprocess.run(["sh", "-c", f"sed {script}"], input=named, capture_output=True, text=True)
    assert done.stdout == "03_scaling\n"
    assert "permissions:\n  contents: read\n" in workflow
