"""Gradescope's results.json: what a graded submission looks like in its format.

The format: https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from helpers.checking.judge.verdicts import RIGHT
from helpers.checking.show.panel import as_text
from helpers.exercises import Lesson
from helpers.grading.journal import JournalEntry
from helpers.grading.judging import NEEDS_REVIEW
from helpers.grading.records import PREDICTED, shown_of
from helpers.text import plain, sanitized

VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")
BITS = "bits per byte"
WAITS = "waits for the instructor"  # a tag: Gradescope lists a submission's tags


def results(entry: JournalEntry, lesson: Lesson, seconds: float = 0.0, visibility: str = "visible") -> dict:
    """The results of one submission: a test for each exercise, and one without points for each prediction.

    visibility: one of VISIBILITIES, of the tests; what the grader prints is the instructor's alone. An open task's
    score is a row of the leaderboard.
    """
    tests = [{**_test(record, lesson), "number": str(place)} for place, record in enumerate(entry.verdicts, 1)]
    return {
        "score": entry.points,
        "execution_time": round(seconds),
        "output": _words(entry),
        "output_format": "text",
        "test_output_format": "text",
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "extra_data": {"lesson": lesson.name, "isolation": entry.isolation},
        "tests": tests,
        "leaderboard": [row for record in entry.verdicts for row in _row(record)],
    }


def _row(record: Mapping) -> list[dict]:
    """The leaderboard's row of an open task that has a score; JSON has no infinity."""
    score = record.get("score")
    return [] if score is None or math.isinf(score) else [{"name": BITS, "value": round(score, 4), "order": "asc"}]


def _test(record: Mapping, lesson: Lesson) -> dict:
    shown = shown_of(record, lesson)
    said = {"name": record["exercise"], "output": sanitized(as_text(shown)) if shown else "", "output_format": "text"}
    if record["state"] == PREDICTED:
        return said
    return {
        **said,
        "score": round(record["points"], 6),
        "max_score": record["out_of"],
        "status": "passed" if record["state"] == RIGHT else "failed",
        "tags": [WAITS] if record["decision"] == NEEDS_REVIEW else [],
    }


def _words(entry: JournalEntry) -> str:
    waiting = sum(record["decision"] == NEEDS_REVIEW for record in entry.verdicts)
    lines = [f"{entry.points:g} of {entry.out_of:g} points, on inputs that nobody has seen."]
    if waiting:
        lines.append(f"{waiting} of the answers wait for your instructor: until then they count as 0.")
    return "\n".join([*lines, *(f"Noticed: {plain(flag, 300)}" for flag in entry.flags)])
