"""How hard each exercise was, and whether it tells strong students from weak ones: classical item statistics."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers.grading.reports.results import StudentResult

SMALLEST_CLASS = 20  # with fewer, a correlation's standard error is above 0.2


@dataclass(frozen=True)
class ItemStatistics:
    """One exercise in a class."""

    lesson: str
    exercise: str
    students: int
    difficulty: float
    """The mean share of its points, from 0 to 1; high is easy."""
    discrimination: float | None
    """The correlation of its points with the points of all other exercises; None where it cannot be said."""


def item_statistics(lessons: Mapping[str, Sequence[StudentResult]]) -> list[ItemStatistics]:
    """Every exercise of these lessons' results. The total is over all lessons that a student has handed in.

    Files that could not be read do not count. Discrimination is the corrected item-total correlation: of each
    exercise's share of points with the share of all other points that the same student reached.
    """
    scores: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for lesson, students in lessons.items():
        for result in students:
            for cell in result.cells if result.ran else ():
                if cell.out_of:
                    scores.setdefault((lesson, cell.name), {})[result.student.id] = (cell.score, cell.out_of)
    reached: dict[str, float] = {}
    possible: dict[str, float] = {}
    for marks in scores.values():
        for student, (score, out_of) in marks.items():
            reached[student] = reached.get(student, 0.0) + score
            possible[student] = possible.get(student, 0.0) + out_of
    items = []
    for (lesson, exercise), marks in scores.items():
        shares = [score / out_of for score, out_of in marks.values()]
        rest = [
            (reached[student] - score) / (possible[student] - out_of) if possible[student] > out_of else 0.0
            for student, (score, out_of) in marks.items()
        ]
        items.append(ItemStatistics(lesson, exercise, len(shares), statistics.mean(shares), _correlation(shares, rest)))
    return items


def _correlation(these: Sequence[float], those: Sequence[float]) -> float | None:
    if len(these) < SMALLEST_CLASS or not statistics.pstdev(these) or not statistics.pstdev(those):
        return None
    return statistics.correlation(these, those)
