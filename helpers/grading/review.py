"""What waits for the instructor: listed with the cells that it waits for, accepted or refused."""

from __future__ import annotations

import argparse
import textwrap
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from helpers.checking.panel import number
from helpers.exercises import load_lesson
from helpers.grading.decisions import Decision, Decisions
from helpers.grading.flags import ACCEPTED, REFUSED, RULES, WAITS
from helpers.grading.gradebook import Marks
from helpers.grading.records import recorded
from helpers.notebooks import grade_id

MOST_LINES = 30  # of a cell that are shown


@dataclass(frozen=True)
class Held:
    """One answer about which there is something to decide. record: see `records.record`. notebook: the judged one."""

    student: str
    record: dict
    notebook: NotebookNode


def held(root: Path, lesson: str) -> list[Held]:
    """The answers of a lesson that wait, or about which was decided, by student."""
    found = []
    with Marks(root, lesson) as marks:
        for submission in marks.gradebook.assignment_submissions(lesson):
            path = marks.path(submission.student.id)
            if path.is_file() and not path.is_symlink():
                notebook = nbformat.read(path, as_version=4)
                about = [record for _, record in recorded(notebook) if record.get("decision")]
                found += [Held(submission.student.id, record, notebook) for record in about]
    return sorted(found, key=lambda one: (one.student, one.record["exercise"]))


def look(lesson: str) -> int:
    """Print what waits, and the commands that decide. Returns 0."""
    load_lesson(lesson)
    every = held(Path.cwd(), lesson)
    waiting = [one for one in every if one.record["decision"] == WAITS]
    for one in waiting:
        print(_told(one, lesson))
    decided = [
        f"{one.student} {one.record['exercise']} {one.record['decision']}" for one in every if one not in waiting
    ]
    many = "1 answer waits" if len(waiting) == 1 else f"{len(waiting)} answers wait"
    print(f"{many} for you." + (f" Decided: {'; '.join(decided)}." if decided else ""))
    return 0


def _told(one: Held, lesson: str) -> str:
    record = one.record
    lines = [
        f"{one.student}: {record['exercise']}, {number(record['earned'])} of {number(record['out_of'])} points"
        " by the numbers"
    ]
    shown: set[str] = set()
    for finding in (f for f in record["look"] if f["holds"]):
        place = f"{finding['cell']}, line {finding['line']}" if finding["line"] else finding["cell"]
        lines += textwrap.wrap(
            f"{place}: {visible(finding['why'])}", 100, initial_indent="  ", subsequent_indent="    "
        )
        if finding["rule"] not in shown:
            lines.append(f"    ({RULES.get(finding['rule'], '')})")
        shown |= {finding["rule"]}
    for name in dict.fromkeys([*(f["cell"] for f in record["look"] if f["holds"]), record["exercise"]]):
        lines += [f"  --- {name}", *_excerpt(_source(one.notebook, name))]
    who = f'LESSON={lesson} ARGS="{one.student} {record["exercise"]}"'
    return "\n".join([*lines, f"  make accept {who}", f"  make refuse {who}", ""])


def _source(notebook: NotebookNode, name: str) -> str:
    for place, cell in enumerate(notebook.cells):
        if name in (grade_id(cell), f"cell {place + 1}"):
            return cell.source
    return ""


def _excerpt(source: str) -> Iterator[str]:
    lines = source.splitlines()
    for place, line in enumerate(lines[:MOST_LINES], 1):
        yield f"  {place:>4} | {visible(line)[:160]}"
    if len(lines) > MOST_LINES:
        yield f"       | ... and {len(lines) - MOST_LINES} lines more"


def visible(text: str) -> str:
    """A student's text for a terminal: what could steer it, or turn the order of letters round, is shown as a code."""
    kept = []
    for letter in text:
        steers = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and letter != "\t"
        kept.append(f"\\u{ord(letter):04x}" if steers else letter)
    return "".join(kept)


def decide(asked: argparse.Namespace) -> int:
    """Write down what the instructor decides, and grade the student again, so that the mark is that of the decision."""
    from helpers.grading import commands

    root, decision = Path.cwd(), {"accept": ACCEPTED, "refuse": REFUSED}[asked.command]
    lesson = load_lesson(asked.lesson)
    for name in asked.exercise:
        _ = lesson[name]  # raises UnknownLesson with the names there are
    theirs = [one for one in held(root, asked.lesson) if one.student == asked.student]
    chosen = [
        one
        for one in theirs
        if one.record["exercise"] in asked.exercise or not asked.exercise and one.record["decision"] == WAITS
    ]
    missing = set(asked.exercise) - {one.record["exercise"] for one in chosen}
    if missing or not chosen:
        what = ", ".join(sorted(missing)) or "nothing"
        waits = ", ".join(one.record["exercise"] for one in theirs) or "nothing"
        raise commands.Stop(
            f"Of {asked.student} there is nothing to decide about {what if missing else 'in ' + asked.lesson}."
            f" There is: {waits}."
            f" make look LESSON={asked.lesson} lists what waits."
        )
    decisions = Decisions(root)
    for one in chosen:
        name = one.record["exercise"]
        decisions.write(Decision(asked.lesson, asked.student, name, one.record["digest"], decision))
        print(f"{decision.capitalize()}: {asked.student}, {name}. Written to {decisions.path.relative_to(root)}.")
    from helpers.grading.__main__ import limits_of, parser

    again = ["grade", asked.lesson, "--only", asked.student, "--again", *(["--unsafe"] if asked.unsafe else [])]
    wanted = parser().parse_args(again)
    return commands.grade(wanted, limits_of(wanted))
