"""The results of checks on this machine, for the start page: points by exercise, and where the student stopped.

They are kept in a small file of the student's own, progress.jsonl in the course's folder, one line for each run of a
check. No mark depends on it, nothing is sent anywhere, and it may be deleted. The Validate button writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from helpers.course import PROGRESS_FILE, ROOT, SOLUTIONS, VALIDATING, append_line, read_lines

NAME = "progress.jsonl"
WRONG = "wrong"  # the state of a try that was judged and is not wholly right
RIGHT = "right"


@dataclass(frozen=True)
class Result:
    """What one run of a check said."""

    lesson: str
    exercise: str
    points: float
    out_of: float
    state: str
    """RIGHT, WRONG, or another word where nothing was judged."""
    answer: str = ""
    """Equal for cells that are the same program."""
    at: str = ""
    """Local time, to the second, "2026-03-02T23:59:00"."""
    score: float | None = None
    text: str = ""
    """score, text: of an open task, the bits per byte, and on which text."""


def file() -> Path | None:
    """Where results are kept; None where they are not to be kept: $COURSE_PROGRESS names another file, "" none."""
    named = os.environ.get(PROGRESS_FILE)
    if named is None:
        return ROOT / NAME
    return Path(named).expanduser() if named.strip() else None


def record(result: Result) -> bool:
    """Write down the result of a check. Returns whether that was done."""
    return write({**asdict(result), "at": result.at or f"{datetime.now():%Y-%m-%dT%H:%M:%S}"})


def write(fields: Mapping[str, object]) -> bool:
    """Append a line to the file. Returns whether that was done. Never raises: a check must not fail over it.

    Nothing is written while a notebook is validated, nor where an author runs a solved lesson.
    """
    path = file()
    if path is None or os.environ.get(VALIDATING):
        return False
    with suppress(OSError):
        if SOLUTIONS in (Path.cwd(), *Path.cwd().parents):
            return False
        append_line(path, fields)
        return True
    return False


def results(path: Path | None = None) -> list[Result]:
    """All results, the oldest first, of this file or the student's own. A line that cannot be read is passed over."""
    return list(filter(None, map(_result, read_lines(path) if path else lines())))


def lines() -> list[dict]:
    """All lines of the file, the oldest first."""
    path = file()
    return read_lines(path) if path else []


def _result(fields: dict) -> Result | None:
    try:
        texts: Any = {name: str(fields[name]) for name in ("lesson", "exercise", "state")}
        texts |= {name: str(fields.get(name, "")) for name in ("answer", "at")}
        score = fields.get("score")
        texts["text"] = str(fields.get("text", ""))
        points, out_of = float(fields["points"]), float(fields["out_of"])
        return Result(**texts, points=points, out_of=out_of, score=None if score is None else float(score))
    except (ValueError, TypeError, KeyError):
        return None


def best(results: Iterable[Result]) -> dict[tuple[str, str], Result]:
    """The best result of each exercise, by (lesson, exercise): one that was wholly right, else most points."""
    top: dict[tuple[str, str], Result] = {}
    for one in results:
        before = top.get((one.lesson, one.exercise))
        if before is None or (one.state == RIGHT, one.points) > (before.state == RIGHT, before.points):
            top[one.lesson, one.exercise] = one
    return top


def was_solved(results: Iterable[Result], lesson: str, exercise: str) -> bool:
    """Has a check of this exercise ever said that all of it is right?"""
    return any((one.lesson, one.exercise, one.state) == (lesson, exercise, RIGHT) for one in results)


def wrong_tries(results: Iterable[Result], lesson: str, exercise: str) -> int:
    """How many different answers to this exercise were judged and not wholly right."""
    tries = (one for one in results if (one.lesson, one.exercise, one.state) == (lesson, exercise, WRONG))
    return len({one.answer for one in tries if one.answer})
