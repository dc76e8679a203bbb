"""Practice feedback in a student's repository: what each check says of the pushed notebook, with the keys that ship.

No exam: the student may read and change all that runs here. It writes result.json as Classroom 50 wants it
(https://github.com/foundation50/classroom50/wiki/Advanced-Autograding), and a summary where GitHub Actions shows one.
Points are whole numbers there, so that they are counted in hundredths: 150 are one and a half.

    python autograder.py 03_scaling    the lesson by its argument, or by the name of the assignment in Classroom 50
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

COURSE = Path.cwd()  # the student's checkout: what `make release` packs
FIELDS = {"classroom": "CLASSROOM", "assignment": "ASSIGNMENT", "submission": "SUBMISSION_TAG", "commit": "COMMIT_URL"}
ICONS = {True: "✅", False: "❌"}


def install() -> None:
    """The course's packages, where they are not there yet; PyTorch without its libraries for GPUs."""
    if subprocess.run([sys.executable, "-c", "import torch, nbgrader"], capture_output=True).returncode:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "uv"]
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable, "--system"]
        subprocess.run(pip, check=True)
        subprocess.run([*uv, "--torch-backend", "cpu", "-c", "constraints.txt", "-r", "pyproject.toml"], check=True)


def tests_of(lesson: str) -> list[dict]:
    """A test for each exercise, with its words, and one without points for each prediction."""
    sys.path.insert(0, str(COURSE))
    from helpers.checking.judge.verdicts import RIGHT, Verdict
    from helpers.checking.show.panel import as_text
    from helpers.student.exam_preview import shown

    tests = []
    for one in shown(lesson):
        if isinstance(one, Verdict):
            points = {"score": round(100 * one.points), "max-score": round(100 * one.out_of)}
            tests.append({"test-name": one.exercise, "passed": one.state == RIGHT, **points, "output": as_text(one)})
        else:
            first = one[0] if isinstance(one, list) else one
            name, words = first.prediction.cell, as_text(one)
            tests.append({"test-name": name, "passed": True, "score": 0, "max-score": 0, "output": words})
    return tests


def result_of(tests: list[dict]) -> dict:
    """The whole result, for schema classroom50/result/v1. Outside Classroom 50 its names stay empty."""
    names = {field: os.environ.get(variable, "") for field, variable in FIELDS.items()}
    release = os.environ.get("RELEASE_URL", "")
    return {
        "schema": "classroom50/result/v1",
        **names,
        "release": release,
        "review": os.environ.get("REVIEW_URL") or names["commit"],
        "datetime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "score": sum(test["score"] for test in tests),
        "max-score": sum(test["max-score"] for test in tests),
        "tests": tests,
    }


def summary(lesson: str, tests: list[dict]) -> str:
    """The result as Markdown: a table, then the words of what is not right yet."""
    marked = [test for test in tests if test["max-score"]]
    rows = [
        f"| {ICONS[test['passed']]} `{test['test-name']}` | {test['score'] / 100:g} | {test['max-score'] / 100:g} |"
        for test in marked
    ]
    words = [fenced(test["output"]) for test in tests if not (test["passed"] and test["max-score"])]
    head = f"## {lesson}: practice\n\nThe keys that ship with the course; an exam has others."
    return "\n".join([head, "", "| exercise | points | of |", "|---|--:|--:|", *rows, "", *words, ""])


def fenced(text: str) -> str:
    """A text as it is, whatever it holds: between more backticks than stand in it."""
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}text\n{text}\n{ticks}"


def main() -> int:
    lesson = (sys.argv[1:] or [os.environ.get("ASSIGNMENT", "").replace("-", "_")])[0]
    install()
    tests = tests_of(lesson)
    (COURSE / "result.json").write_text(json.dumps(result_of(tests), indent=2), encoding="utf-8")
    text = summary(lesson, tests)
    (COURSE / "release-body.md").write_text(text, encoding="utf-8")
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(place, "a", encoding="utf-8") as file:
            file.write(text)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
