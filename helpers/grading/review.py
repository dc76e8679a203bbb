"""Answers that wait for the instructor's decision, and the decisions, kept beside the journal.

A decision belongs to a student, an exercise and the text that was looked at: a changed answer waits again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import nbformat

from helpers.course import append_line, read_lines
from helpers.exercises import Lesson
from helpers.grading.errors import GradingError
from helpers.grading.journal import FOLDER, Journal
from helpers.grading.judging import ACCEPTED, NEEDS_REVIEW, REFUSED, Decide
from helpers.notebooks import grade_id
from helpers.text import escaped, number

FILE = "decisions.jsonl"
KEY = ("lesson", "student", "exercise", "digest")
MAX_LINES = 30  # of a cell that are shown


class Decisions:
    """The decisions in a course's folder. The last of each student, exercise and text counts."""

    def __init__(self, root: Path):
        self.path = root / FOLDER / FILE

    def write(self, lesson: str, student: str, exercise: str, digest: str, decision: str) -> None:
        """Add a decision, ACCEPTED or REFUSED, and return when the disk has it."""
        self.path.parent.mkdir(exist_ok=True)
        key = dict(zip(KEY, (lesson, student, exercise, digest), strict=True))
        at = datetime.now(UTC).isoformat(timespec="seconds")
        append_line(self.path, {**key, "decision": decision, "at": at}, mode=0o600)

    def of(self, lesson: str, student: str) -> Decide:
        """The decisions about a student's answers, by exercise and digest (see `judging.review_digest`)."""
        lines = [line for line in read_lines(self.path) if line.get("decision") in (ACCEPTED, REFUSED)]
        decisions = {tuple(line.get(name) for name in KEY): line["decision"] for line in lines}
        return lambda exercise, digest: decisions.get((lesson, student, exercise, digest), "")


def answers_to_review(root: Path, lesson: str) -> list[tuple[str, dict]]:
    """Each student and record of the lesson (see `records.record`) that waits or was decided about."""
    entries = sorted(Journal(root, lesson).read().items())
    return [(student, record) for student, entry in entries for record in entry.verdicts if record["decision"]]


def listing(root: Path, lesson: str) -> str:
    """What waits, with its cells and the commands that decide; then what was decided."""
    answers = answers_to_review(root, lesson)
    waiting = [(student, record) for student, record in answers if record["decision"] == NEEDS_REVIEW]
    decided = [f"{student} {r['exercise']} {r['decision']}" for student, r in answers if r["decision"] != NEEDS_REVIEW]
    paragraphs = [_description(root, lesson, student, record) for student, record in waiting]
    count = "1 answer waits" if len(waiting) == 1 else f"{len(waiting)} answers wait"
    return "\n".join([*paragraphs, f"{count} for you." + (f" Decided: {'; '.join(decided)}." if decided else "")])


def _description(root: Path, lesson: str, student: str, record: dict) -> str:
    exercise, findings = record["exercise"], record["look"]
    points = f"{number(record['earned'])} of {number(record['out_of'])}"
    lines = [f"{student}: {exercise}, {points} points by the numbers"]
    for finding in findings:
        where = f"{finding['cell']}, line {finding['line']}" if finding["line"] else finding["cell"]
        text = f"{where}: {escaped(finding['why'])}"
        lines += textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="    ")
    sources = _sources(root / "autograded" / student / lesson / f"{lesson}.ipynb")
    for name in dict.fromkeys([*(finding["cell"] for finding in findings), exercise]):
        lines += [f"  --- {name}", *_excerpt(sources.get(name, ""))]
    arguments = f'LESSON={lesson} ARGS="{student} {exercise}"'
    return "\n".join([*lines, f"  make accept {arguments}", f"  make refuse {arguments}", ""])


def _sources(path: Path) -> dict[str, str]:
    """The cells of a judged notebook by grade id, and as "cell 7"; {} where there is none."""
    if not path.is_file():
        return {}
    cells = nbformat.read(path, as_version=4).cells
    numbered = {f"cell {place}": cell.source for place, cell in enumerate(cells, 1)}
    return numbered | {grade_id(cell): cell.source for cell in cells}


def _excerpt(source: str) -> Iterator[str]:
    lines = source.splitlines()
    for place, line in enumerate(lines[:MAX_LINES], 1):
        yield f"  {place:>4} | {escaped(line)[:160]}"
    if len(lines) > MAX_LINES:
        yield f"       | ... and {len(lines) - MAX_LINES} more lines"


def decide(root: Path, lesson: Lesson, student: str, exercises: list[str], decision: str) -> None:
    """Write a decision about these exercises of a student, or about all that wait if none is named.

    decision: ACCEPTED or REFUSED. Raises UnknownLesson, and GradingError where there is nothing to decide.
    """
    named = [lesson[name].name for name in exercises]
    records = [record for name, record in answers_to_review(root, lesson.name) if name == student]
    chosen = [r for r in records if r["exercise"] in named or not named and r["decision"] == NEEDS_REVIEW]
    missing = set(named) - {record["exercise"] for record in chosen}
    if missing or not chosen:
        there = ", ".join(record["exercise"] for record in records) or "none"
        scope = f"about {', '.join(sorted(missing))}" if missing else f"in {lesson.name}"
        raise GradingError(
            f"There is nothing to decide {scope} for {student}. Exercises with something to decide: {there}. "
            f"`make look LESSON={lesson.name}` lists what waits."
        )
    decisions = Decisions(root)
    for record in chosen:
        decisions.write(lesson.name, student, record["exercise"], record["digest"], decision)
        written = f"Written to {decisions.path.relative_to(root)}."
        print(f"{decision.capitalize()}: {student}, {record['exercise']}. {written}")
