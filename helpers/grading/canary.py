"""Never silently wrong: the lesson's own solution goes through the same grading before anything is written.

Before a batch two submissions are graded by the same route as all others: the reference solution, which has to get
full marks, and the release as it is, which has to get none. What a broken machine could have brought about (a process
that died, a check without an answer, a sandbox that failed) is written only after the reference solution has got full
marks once more, later than that.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbformat.notebooknode import NotebookNode

from helpers.checking.panel import number
from helpers.course import SOLUTIONS
from helpers.exercises import Lesson
from helpers.grading.judging import CheckRun, Why
from helpers.grading.sanitize import plain
from helpers.notebooks import filled_in, sources_of, without_marks

if TYPE_CHECKING:
    from helpers.grading.batch import Outcome

REFERENCE, EMPTY = "the reference solution", "an empty submission"
TOGETHER = 8  # doubtful outcomes that wait for one look at the machine
LITTLE = 500  # MB: less room than this is told

NO_REFERENCE = (
    "the reference solution was not tried first, for {lesson}/{lesson}.ipynb is missing in solutions/: if a whole "
    "class lost the same points, look at the machine before you believe them"
)


class MachineWrong(Exception):
    """What is known to be right is not graded as right here. The text says what was seen, and what to do."""


@dataclass(frozen=True)
class Probe:
    """A submission whose marks are known beforehand. name: REFERENCE or EMPTY."""

    name: str
    notebook: NotebookNode = field(repr=False, compare=False)

    def read(self) -> bytes:
        """As a file that somebody handed in."""
        return nbformat.writes(self.notebook).encode()


def probes(root: Path, lesson: Lesson, released: NotebookNode) -> list[Probe]:
    """What to grade before a batch. Only the empty submission where there is no solutions/ to take a reference from."""
    empty = Probe(EMPTY, released)
    answers = reference_answers(root, lesson)
    return [Probe(REFERENCE, filled_in(released, answers)), empty] if answers else [empty]


def reference_answers(root: Path, lesson: Lesson) -> dict[str, str]:
    """The solution cells of the lesson, by exercise; {} where the course's folder and the checkout hold none."""
    for folder in (root / "solutions", SOLUTIONS):
        path = folder / lesson.name / f"{lesson.name}.ipynb"
        if path.is_file():
            cells = sources_of(nbformat.read(path, as_version=4))
            return {e.name: without_marks(cells[e.name]) for e in lesson if e.name in cells}
    return {}


def is_doubtful(outcome: Outcome) -> bool:
    """Could it be the machine's doing that this submission got nothing for something?"""
    return bool(outcome.problem) or any(map(_is_doubtful, outcome.runs.values()))


def _is_doubtful(run: CheckRun) -> bool:
    return run.sent is None and run.why not in (Why.STUB, Why.UNDEFINED, Why.NOTHING_TO_RUN)


def require(outcome: Outcome, midway: bool = False) -> None:
    """Raises MachineWrong unless this probe got what it has to get. midway: other submissions were graded before it."""
    wanted_all = outcome.probe.name == REFERENCE
    wrong = [r for r in outcome.records if r["points"] != (r["out_of"] if wanted_all else 0)]
    if outcome.problem or wrong or not outcome.records:
        raise MachineWrong(_told(outcome, wrong, midway))


def _told(outcome: Outcome, wrong: list[dict], midway: bool) -> str:
    name = outcome.probe.name
    came_to = "does not get full marks" if name == REFERENCE else "gets points" if wrong else "cannot be graded"
    begin = "Grading was stopped" if midway else "Nothing was graded"
    lines = [f"{begin}: {name} of this lesson, graded by the same route, {came_to} on this machine."]
    if outcome.problem:
        lines.append(f"    {plain(outcome.problem)}")
    width = max((len(r["exercise"]) for r in wrong), default=0)
    lines += [
        f"    {r['exercise']:<{width}}  {number(r['points'])} of {number(r['out_of'])}  {_says(r)}".rstrip()
        for r in wrong
    ]
    lines += [f"    seen besides: {plain(flag)}" for flag in list(outcome.flags)[:6]]
    lines += [f"    {fact}" for fact in short_of()]
    kept = "What was graded before it stays" if midway else "No mark was written"
    return "\n".join([*lines, "", f"{_what_to_do(outcome, wrong)} {kept}, and the same command goes on from there."])


def _says(record: dict) -> str:
    lost = (aspect["says"] for aspect in record.get("aspects", []) if not aspect["held"] and aspect["says"])
    return plain(record["says"] or next(lost, "") or record["state"], 160)


def _what_to_do(outcome: Outcome, wrong: list[dict]) -> str:
    if outcome.probe.name == EMPTY and wrong:
        return (
            "The released notebook holds answers already, or the exam key is wrong: run `make check`, make both anew."
        )
    judged = [
        r for r in outcome.records if outcome.runs.get(r["exercise"]) and outcome.runs[r["exercise"]].sent is not None
    ]
    if outcome.problem or not judged:
        return (
            "No code of the lesson ran as it should: look at the sandbox, the memory and the disk of this machine, and "
            "at its Python (`make env`)."
        )
    if any(r not in judged for r in wrong):
        return (
            "Some exercises gave no answer: look at this machine's memory, load, and time limits (--exercise-seconds)."
        )
    return (
        "The answers arrived, and are not what the key expects: the exam key or notebooks/ may be older than "
        "solutions/ (`make check` tells; `make exam-key` and `make assignment` make them anew), or this machine "
        "computes otherwise."
    )


def short_of() -> list[str]:
    """What this machine has little left of, in words."""
    import psutil

    found = []
    scratch = Path(tempfile.gettempdir())
    for place in (scratch, Path.cwd()):
        room = shutil.disk_usage(place).free >> 20
        if room < LITTLE:
            found.append(f"only {room} MB are free on the disk of {place}")
    memory = psutil.virtual_memory().available >> 20
    if memory < LITTLE:
        found.append(f"only {memory} MB of memory are free")
    return found
