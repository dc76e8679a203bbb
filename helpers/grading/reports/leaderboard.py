"""A page to hang out in class: the scores of a lesson's open task, with names or with pseudonyms."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from pathlib import Path

from helpers.course import write_whole
from helpers.exercises import Lesson
from helpers.grading.exam import HIDDEN_TEXT, load_exam_key
from helpers.grading.reports.pages import page
from helpers.grading.reports.results import StudentResult

COLOURS = "amber azure coral golden green grey indigo ivory lilac olive pearl red rust silver teal white".split()
BIRDS = "crane crow dove eagle finch gull hawk heron jay kite lark owl raven robin stork swift".split()


def write_leaderboard(root: Path, lesson: Lesson, students: Sequence[StudentResult], names: bool) -> None:
    """Write report/LESSON/leaderboard.html, for a lesson with an open task. names: no pseudonyms."""
    key = load_exam_key(lesson.name, root)
    called = {each.student.id: each.student.shown for each in students} if names else pseudonyms(students, key.secret)
    cells = [cell for each in students for cell in each.cells if cell.record.get("score") is not None]
    rows = ranked([(called[cell.student.id], cell.record["score"]) for cell in cells], key.texts[HIDDEN_TEXT].landmarks)
    path = root / "report" / lesson.name / "leaderboard.html"
    write_whole(path, page("leaderboard.html.j2", title=f"{lesson.number} · {lesson.title}", rows=rows))
    print(f"Wrote {path.relative_to(root)}, with {'names' if names else 'pseudonyms'}")


def ranked(rows: list[tuple[str, float]], landmarks: Mapping[str, float]) -> list[tuple[str, float, bool]]:
    """Who, the bits per byte, and whether it is a landmark; the fewest bits first."""
    both = [(who, bits, False) for who, bits in rows] + [(name, bits, True) for name, bits in landmarks.items()]
    return sorted(both, key=lambda row: (row[1], row[2], row[0]))


def pseudonyms(students: Sequence[StudentResult], secret: str) -> dict[str, str]:
    """By id, a name that follows from the exam's secret: the same each time, and nobody else can make it."""
    given: dict[str, str] = {}
    for student in sorted(each.student.id for each in students):
        digest = hmac.new(secret.encode(), f"pseudonym {student}".encode(), hashlib.sha256).digest()
        name, count = f"{COLOURS[digest[0] % 16]} {BIRDS[digest[1] % 16]}", 1
        while (called := name if count == 1 else f"{name} {count}") in given.values():
            count += 1
        given[student] = called
    return given
