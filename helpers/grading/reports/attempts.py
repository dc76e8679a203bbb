"""How often and how long students tried, from the logs of their checks, where they hand them in.

A log is a student's own file: nothing in it is proof, and no mark depends on it.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from helpers import check_log
from helpers.check_log import Result

LARGEST = 5 << 20  # bytes
BREAK = timedelta(minutes=30)  # a longer time without a check was not spent on the exercise


@dataclass(frozen=True)
class Attempts:
    """An exercise in the logs of a class."""

    exercise: str
    students: int
    """Whose logs have a check of it."""
    checks: float
    """The median number of checks."""
    minutes: float
    """The median of the minutes between the checks before and its own; breaks do not count."""


def read_logs(root: Path, lesson: str, students: Iterable[str]) -> list[list[Result]]:
    """The results of checks of the lesson, for each student with a log beside the notebook in submitted/."""
    paths = (root / "submitted" / student / lesson / check_log.NAME for student in students)
    whole = [path for path in paths if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST]
    logs = ([one for one in check_log.results(path) if one.lesson == lesson] for path in whole)
    return [log for log in logs if log]


def attempts(logs: Sequence[Sequence[Result]], exercises: Iterable[str]) -> list[Attempts]:
    """For each exercise that anybody tried, in this order."""
    found = []
    for exercise in exercises:
        checks = [count for log in logs if (count := sum(one.exercise == exercise for one in log))]
        minutes = [times[exercise] for log in logs if exercise in (times := _minutes(log))]
        if checks:
            found.append(Attempts(exercise, len(checks), statistics.median(checks), statistics.median(minutes or [0])))
    return found


def _minutes(log: Sequence[Result]) -> dict[str, float]:
    """The minutes of each exercise: those since the check before, unless that was longer ago than a break."""
    moments = []
    for one in log:
        with suppress(ValueError):
            moments.append((datetime.fromisoformat(one.at).replace(tzinfo=None), one.exercise))
    minutes: dict[str, float] = defaultdict(float)
    for (before, _), (at, exercise) in itertools.pairwise(sorted(moments)):
        if at - before <= BREAK:
            minutes[exercise] += (at - before) / timedelta(minutes=1)
    return minutes
