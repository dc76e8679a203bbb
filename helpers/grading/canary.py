"""Grading the lesson's own solution first, so that a broken machine gives nobody a wrong mark.

Before a batch, the reference solution must get full marks by the same route as all others, and the release as it is
none. A result that a broken machine could have caused is written only after the reference has got full marks again.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import nbformat
import psutil
from nbformat.notebooknode import NotebookNode

from helpers.course import SOLUTIONS
from helpers.exercises import Lesson
from helpers.exercises.open_task import read_weights
from helpers.grading.errors import GradingError
from helpers.grading.exam import REFERENCE
from helpers.grading.grader import GradedSubmission
from helpers.grading.submissions.roster import Student
from helpers.grading.submissions.select import Submission
from helpers.grading.submissions.untrusted_notebook import screen
from helpers.grading.summary import in_words
from helpers.notebooks import filled_in, sources_of, without_marks
from helpers.text import number, plain

EMPTY = "an empty submission"
MAX_DOUBTFUL = 8  # doubtful results that wait for the same check of the machine
LOW = 500  # MB: less free memory or disk space than this is reported

NO_REFERENCE = (
    "the reference solution was not tried first, because {lesson}/{lesson}.ipynb is missing in solutions/: if a whole "
    "class lost the same points, check the machine before you believe them"
)
NO_ANSWER = (
    "Not every exercise gave an answer: check the sandbox, the memory, the load and the disk of this machine, its "
    "Python (`make env`), and the time limits (--exercise-seconds)."
)
OTHER_NUMBERS = (
    "The answers arrived, and are not what the key expects: the exam key or notebooks/ may be older than solutions/ "
    "(`make check` tells; `make exam-key` and `make assignment` make them anew), or this machine computes differently."
)
EMPTY_EARNS = "The released notebook holds answers already, or the exam key is wrong: run `make check`, make both anew."


def canaries(root: Path, lesson: Lesson, released: NotebookNode) -> dict[str, Submission]:
    """What is graded before a batch, by name, as if somebody had handed it in.

    REFERENCE must get full marks; it is left out where there are no solutions. EMPTY must get none.
    """
    answers = reference_answers(root, lesson)
    weights = reference_weights(root, lesson) if lesson.open_task else None
    notebooks = {REFERENCE: filled_in(released, answers)} if answers else {}
    return {
        name: Submission(Student(name), None, screen(nbformat.writes(notebook).encode()), digest="", weights=weights)
        for name, notebook in {**notebooks, EMPTY: released}.items()
    }


def reference_weights(root: Path, lesson: Lesson) -> bytes | None:
    """The lesson's own file of weights; None where neither the course's folder nor the checkout has it."""
    found = (read_weights(folder / lesson.name) for folder in (root / "solutions", SOLUTIONS))
    return next((data for data in found if data is not None), None)


def reference_answers(root: Path, lesson: Lesson) -> dict[str, str]:
    """The lesson's solution cells by exercise; {} where neither the course's folder nor the checkout has them."""
    for folder in (root / "solutions", SOLUTIONS):
        path = folder / lesson.name / f"{lesson.name}.ipynb"
        if path.is_file():
            cells = sources_of(nbformat.read(path, as_version=4))
            return {e.name: without_marks(cells[e.name]) for e in lesson if e.name in cells}
    return {}


def is_doubtful(graded: GradedSubmission) -> bool:
    """Could a broken machine have caused what this submission lost?"""
    return bool(graded.problem) or any(run.sent is None and not run.absent for run in graded.runs.values())


def require(name: str, graded: GradedSubmission, midway: bool = False) -> None:
    """Raises GradingError unless this canary got the marks it must get. midway: marks were written before it."""
    wrong = [r for r in graded.entry.verdicts if r["points"] != (r["out_of"] if name == REFERENCE else 0)]
    if graded.problem or wrong or not graded.entry.verdicts:
        raise GradingError(_report(name, graded, wrong, midway))


def _report(name: str, graded: GradedSubmission, wrong: list[dict], midway: bool) -> str:
    """What is wrong with the canary of this name, and what to do."""
    failure = "does not get full marks" if name == REFERENCE else "gets points" if wrong else "cannot be graded"
    begin = "Grading was stopped" if midway else "Nothing was graded"
    end = "What was graded before it stays" if midway else "No mark was written"
    width = max((len(record["exercise"]) for record in wrong), default=0)
    details = [
        *([plain(graded.problem)] if graded.problem else []),
        *(f"{r['exercise']:<{width}}  {number(r['points'])} of {number(r['out_of'])}  {in_words(r)}" for r in wrong),
        *(f"also noticed: {plain(flag)}" for flag in graded.entry.flags[:6]),
        *shortages(),
    ]
    return "\n".join(
        [
            f"{begin}: {name} of this lesson, graded by the same route, {failure} on this machine.",
            *(f"    {detail}".rstrip() for detail in details),
            "",
            f"{_remedy(name, graded, wrong)} {end}, and the same command continues from there.",
        ]
    )


def _remedy(name: str, graded: GradedSubmission, wrong: list[dict]) -> str:
    if name == EMPTY and wrong:
        return EMPTY_EARNS
    answered = {exercise for exercise, run in graded.runs.items() if run.sent is not None}
    return NO_ANSWER if graded.problem or not answered.issuperset(r["exercise"] for r in wrong) else OTHER_NUMBERS


def shortages() -> list[str]:
    """What this machine is running out of, in words."""
    temporary = Path(tempfile.gettempdir())
    free = {f"on the disk of {place}": shutil.disk_usage(place).free for place in (temporary, Path.cwd())}
    free["of memory"] = psutil.virtual_memory().available
    return [f"only {size >> 20} MB {where} are free" for where, size in free.items() if size >> 20 < LOW]
