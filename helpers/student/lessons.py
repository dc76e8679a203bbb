"""The lessons of a student's copy, read from the released notebooks alone: no lesson is imported, and no torch."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.course import NOTEBOOKS, ROOT
from helpers.merge import read_notebook
from helpers.notebooks import CHECK, grade_id, nbgrader_data, text_of

PLAN = ROOT / "site" / "lessons.toml"
ROW = re.compile(r"^\| \*\*You need\*\* \| (.*) \|$", re.MULTILINE)
MINUTES = re.compile(r"about (\d+) minutes")
HEADING = re.compile(r"^# (?:\d+ · )?(.+)$", re.MULTILINE)
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
NUMBERS = re.compile(r"lessons? (\d+(?:(?:, | and | to )\d+)*)")


class NotFound(LookupError):
    """There is no such lesson or exercise; the text says which there are."""


@dataclass(frozen=True)
class NotebookExercise:
    """One exercise, by the metadata of its check's cell."""

    name: str
    points: float


@dataclass(frozen=True)
class LessonSummary:
    """What is said of a lesson."""

    name: str
    """Its folder, NN_topic."""
    title: str
    line: str
    part: str
    minutes: int
    needs: tuple[int, ...]
    """Numbers of the lessons that its head asks for."""

    @property
    def number(self) -> int:
        """Which lesson it is: 3 for 03_scaling."""
        return int(self.name.split("_")[0])


@dataclass(frozen=True)
class NotebookLesson(LessonSummary):
    """One lesson of a copy."""

    exercises: tuple[NotebookExercise, ...]

    @property
    def points(self) -> float:
        """What all its exercises are worth."""
        return sum(exercise.points for exercise in self.exercises)


def builds_on(lessons: Iterable[LessonSummary]) -> dict[int, tuple[int, ...]]:
    """For each lesson those that it builds on directly: without what another of them needs anyway."""
    needs = {lesson.number: set(lesson.needs) for lesson in lessons}

    def all_before(number: int) -> set[int]:
        return set().union(*({other} | all_before(other) for other in needs.get(number, ()) if other < number))

    return {
        number: tuple(sorted(before - set().union(*(all_before(other) for other in before))))
        for number, before in needs.items()
    }


def path_of(lesson: str) -> Path:
    """Where the student's notebook of a lesson lies."""
    return NOTEBOOKS / lesson / f"{lesson}.ipynb"


def lessons() -> list[NotebookLesson]:
    """All lessons of this copy, in their order. A notebook that cannot be read is left out."""
    planned, notebooks = plan(), {name: read(path_of(name)) for name in lesson_names()}
    return [from_notebook(name, notebook, planned.get(name, {})) for name, notebook in notebooks.items() if notebook]


def read(path: Path) -> dict | None:
    """A notebook's JSON; None where there is none that can be read."""
    try:
        return read_notebook(path.read_bytes())
    except OSError:
        return None


def lesson_named(name: str) -> str:
    """The lesson that somebody means by "03_scaling", "scaling", "3" or "03"; "" where it is none or several."""
    names = lesson_names()
    if name in names:
        return name
    matches = [one for one in names if name.isdecimal() and int(one[:2]) == int(name) or one[3:] == name]
    return matches[0] if len(matches) == 1 else ""


def find(exercise: str, lesson: str = "") -> tuple[str, str]:
    """(lesson, exercise) that somebody means. lesson: as `lesson_named` takes it, "" for any.

    Raises NotFound with a sentence where there is none, or where several lessons ask an exercise of that name.
    """
    within = lesson_named(lesson)
    if lesson and not within:
        raise NotFound(f"There is no lesson called {lesson}. The lessons: {', '.join(lesson_names()) or 'none'}.")
    exercises = {one: list(_answered(one)) for one in ([within] if within else lesson_names())}
    homes = [one for one, names in exercises.items() if exercise in names]
    if len(homes) == 1:
        return homes[0], exercise
    if homes:
        which = f"python -m helpers ... {exercise} --lesson {homes[0][:2]}"
        raise NotFound(f"Lessons {' and '.join(homes)} both have an exercise {exercise}. Say which: {which}")
    everything = sorted({name for names in exercises.values() for name in names})
    close = difflib.get_close_matches(exercise, everything, 3, 0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else "The name of an exercise stands on its card."
    raise NotFound(f"No exercise is called {exercise}. {hint}")


def lesson_names() -> list[str]:
    """The names of this copy's lessons, in their order."""
    return sorted(folder.name for folder in NOTEBOOKS.glob("[0-9][0-9]_*"))


def _answered(lesson: str):
    """The names under whose checks a student writes: exercises and predictions, also where their own cell is gone."""
    for cell in (read(path_of(lesson)) or {"cells": []})["cells"]:
        if grade_id(cell).startswith(CHECK):
            yield grade_id(cell).removeprefix(CHECK)


def plan() -> dict[str, dict[str, str]]:
    """What the course's plan says of each lesson: its title, its line and its part."""
    try:
        parts = tomllib.loads(PLAN.read_text(encoding="utf-8"))["part"]
        return {one["name"]: {**one, "part": part["title"]} for part in parts for one in part["lesson"]}
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError):
        return {}


def from_notebook(name: str, notebook: Mapping, plan: Mapping[str, str]) -> NotebookLesson:
    """What a notebook and the plan say of a lesson. plan: its entry, or {}."""
    head = next((text_of(cell) for cell in notebook["cells"] if cell.get("cell_type") == "markdown"), "")
    heading, minutes, row = HEADING.search(head), MINUTES.search(head), ROW.search(head)
    points = {grade_id(cell): nbgrader_data(cell).get("points") for cell in notebook["cells"]}
    return NotebookLesson(
        name=name,
        title=plan.get("title") or (heading[1].strip() if heading else name),
        line=plan.get("line", ""),
        part=plan.get("part", ""),
        minutes=int(minutes[1]) if minutes else 0,
        needs=_numbers(LINKED.sub(r"\1", row[1])) if row else (),
        exercises=tuple(
            NotebookExercise(check.removeprefix(CHECK), float(worth))
            for check, worth in points.items()
            if check.startswith(CHECK) and isinstance(worth, (int, float)) and worth > 0
        ),
    )


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers of lessons in prose: "lessons 1 to 4" is 1, 2, 3, 4."""
    numbers: set[int] = set()
    for phrase in NUMBERS.findall(text):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", phrase):
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))
