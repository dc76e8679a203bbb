"""One submission, from Gradescope's folders to its results."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from helpers.course import LIMITS, Limits
from helpers.grading import canary
from helpers.grading.errors import GradingError
from helpers.grading.exam import REFERENCE
from helpers.grading.grader import Grader
from helpers.grading.gradescope.results import results
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.another_user import ANOTHER_USER
from helpers.grading.sandbox.bubblewrap import BUBBLEWRAP
from helpers.grading.sandbox.runner import Runner
from helpers.grading.submissions.roster import Student
from helpers.grading.submissions.select import MISSING, Submission, read_submissions

LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # cgroups 2 and 1
RESERVED = 640 << 20  # bytes that the grader and the process it forks answers from take: 525 MB for lesson 1
LEAST = 256 << 20  # bytes for an answer, however small the container is
TOO_LITTLE = "This container has {have} MB of memory. Choose one with at least {need} MB in the autograder's settings."


def grade(course: Path, lesson: str, autograder: Path, visibility: str) -> dict:
    """Grade what lies in the folder of Gradescope's `autograder`, and return its results.

    course: the folder that the autograder's zip was unpacked into. Raises GradingError where the machine, and not the
    submission, is at fault: then there are no results, and Gradescope shows the instructor that there are none.
    """
    begun = time.monotonic()
    about = json.loads((autograder / "submission_metadata.json").read_bytes())
    student = "-".join(str(user["id"]) for user in about["users"])
    submission = submission_in(autograder / "submission", student, lesson, course)
    with Runner(lesson, isolation=isolation(), limits=limits()) as runner:
        grader = Grader.of(course, lesson, runner)
        graded = grader.grade(submission)
        if canary.is_doubtful(graded):
            require_reference(course, grader)
    if graded.problem:
        raise GradingError(graded.problem)
    return results(graded.entry, grader.lesson, time.monotonic() - begun, visibility)


def try_reference(course: Path, lesson: str) -> str:
    """Grade the reference solution here. Returns how it was run. Raises GradingError unless it has full marks."""
    with Runner(lesson, isolation=isolation(), limits=limits()) as runner:
        return require_reference(course, Grader.of(course, lesson, runner))


def require_reference(course: Path, grader: Grader) -> str:
    reference = canary.canaries(course, grader.lesson, grader.released)[REFERENCE]
    graded = grader.grade(reference, REFERENCE)
    try:
        canary.require(REFERENCE, graded)
    except GradingError as problem:
        raise GradingError(f"{problem}\n{shortage()}".rstrip()) from None
    return graded.entry.isolation


def submission_in(folder: Path, student: str, lesson: str, course: Path) -> Submission:
    """What a student has handed in, whatever the files are called; links are not followed."""
    with tempfile.TemporaryDirectory() as place:  # for its owner alone
        own = Path(place, student)
        shutil.copytree(folder, own, symlinks=True) if folder.is_dir() else own.mkdir()
        submissions, flags = read_submissions(Path(place), lesson, course)
        for flag in flags:
            print(flag)
        return submissions[0] if submissions else Submission(Student(student), None, MISSING, digest="")


def isolation() -> str:
    """bubblewrap where it works; where the container does not let it, another user."""
    return ANOTHER_USER if bubblewrap.why_not("") else BUBBLEWRAP


def limits() -> Limits:
    """Those of `make grade`, with less memory for an answer where the container has less."""
    have = container_memory()
    return Limits(memory=max(LEAST, min(LIMITS.memory, have - RESERVED))) if have else LIMITS


def container_memory() -> int:
    """The bytes that this container may use; 0 where nothing says so."""
    for path in LIMIT_FILES:
        with suppress(OSError, ValueError):
            have = int(Path(path).read_text())
            return have if have < 1 << 46 else 0  # an absurd number means no limit
    return 0


def shortage() -> str:
    have, need = container_memory(), RESERVED + LEAST
    return TOO_LITTLE.format(have=have >> 20, need=need >> 20) if 0 < have < need else ""
