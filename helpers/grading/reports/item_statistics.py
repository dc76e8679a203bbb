"""How hard each exercise was, and whether it tells strong students from weak ones: classical item statistics."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers.grading.reports.results import GradedCell, StudentResult

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
    cells: dict[tuple[str, str], list[GradedCell]] = defaultdict(list)
    reached: dict[str, float] = defaultdict(float)
    possible: dict[str, float] = defaultdict(float)
    for lesson, students in lessons.items():
        for cell in (cell for result in students if result.ran for cell in result.cells if cell.out_of):
            cells[lesson, cell.name].append(cell)
            reached[cell.student.id] += cell.score
            possible[cell.student.id] += cell.out_of
    items = []
    for (lesson, exercise), marks in cells.items():
        shares, rest = [cell.score / cell.out_of for cell in marks], []
        for cell in marks:
            others = possible[cell.student.id] - cell.out_of
            rest.append((reached[cell.student.id] - cell.score) / others if others > 0 else 0.0)
        items.append(ItemStatistics(lesson, exercise, len(shares), statistics.mean(shares), _correlation(shares, rest)))
    return items


def _correlation(these: Sequence[float], those: Sequence[float]) -> float | None:
    if len(these) < SMALLEST_CLASS or not statistics.pstdev(these) or not statistics.pstdev(those):
        return None
    return statistics.correlation(these, those)
