"""What a class learned, over the course: what it recalled and expected before each lesson, and what it could do after.

From the journals of all lessons, for the course's page, and as a table for people who study teaching: one row for each
student, lesson and item, with pseudonyms, without names, texts or times.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from helpers.course import write_whole
from helpers.exercises import Lesson, load_lesson
from helpers.exercises.exercise import Recall, lesson_names
from helpers.grading.csv_tables import as_csv
from helpers.grading.journal import FOLDER, Journal, JournalEntry
from helpers.grading.reports.predictions import (
    FEW,
    PredictionSummary,
    about,
    choices_in,
    often_wrong,
    recorded_predictions,
)

SECRET = "pseudonyms.secret"  # beside the journals: the same student has the same pseudonym in every export
MOST = 12  # ideas on the course's page

RECALLED, PREDICTED, DONE = "recall", "prediction", "exercise"
COLUMNS = ("student", "lesson", "kind", "item", "about", "chosen", "truth", "right", "points", "of", "mistakes")

Graded = tuple[Lesson, Sequence[JournalEntry]]  # a lesson, and what its journal holds


@dataclass(frozen=True)
class LessonSteps:
    """One lesson's row on the course's page: before it and after it."""

    lesson: Lesson
    students: int
    recalled: float | None
    predicted: float | None
    """recalled, predicted: the mean share of right choices of those who chose; None where fewer than FEW did."""
    done: float
    """The mean share of the lesson's points."""


def graded_lessons(root: Path) -> list[Graded]:
    """The lessons with journals, in the course's order."""
    entries = {name: list(Journal(root, name).read().values()) for name in lesson_names()}
    return [(load_lesson(name), of_lesson) for name, of_lesson in entries.items() if of_lesson]


def most_missed(graded: Sequence[Graded]) -> list[PredictionSummary]:
    """The questions of all lessons that most of those who answered got wrong, at most MOST."""
    return often_wrong(each for lesson, entries in graded for each in recorded_predictions(lesson, entries))[:MOST]


def steps_of(lesson: Lesson, entries: Sequence[JournalEntry]) -> LessonSteps:
    """A lesson's row: how a class came to it, and how it left it."""
    right: dict[bool, list[float]] = {True: [], False: []}  # by whether it was recalled
    for each in recorded_predictions(lesson, entries):
        if each.answered >= FEW:
            right[isinstance(each.question, Recall)].append(1 - each.share)
    recalled, predicted = (mean(right[recall]) if right[recall] else None for recall in (True, False))
    done = mean(entry.points / entry.out_of for entry in entries if entry.out_of) if entries else 0.0
    return LessonSteps(lesson, len(entries), recalled, predicted, done)


def learned_table(graded: Sequence[Graded], secret: bytes) -> str:
    """The tidy table, as CSV: what was recalled, predicted and done, by pseudonym, lesson and item."""
    rows = [row for lesson, entries in graded for entry in entries for row in _rows(lesson, entry, secret)]
    return as_csv([COLUMNS, *sorted(rows)])


def _rows(lesson: Lesson, entry: JournalEntry, secret: bytes) -> Iterator[tuple]:
    first = (pseudonym(entry.student, secret), lesson.name)
    choices = choices_in(entry.verdicts)
    for question in lesson.questions:
        chosen = choices.get(question.name, "")
        right = str(int(chosen == question.truth)) if chosen else ""
        kind = RECALLED if isinstance(question, Recall) else PREDICTED
        yield (*first, kind, question.name, about(question), chosen, question.truth, right, "", "", "")
    for record in entry.verdicts:
        if "choices" not in record:
            slugs = " ".join(mistake["slug"] for mistake in record["mistakes"])
            right = str(int(record["points"] == record["out_of"]))
            points = (f"{record[name]:g}" for name in ("points", "out_of"))
            yield (*first, DONE, record["exercise"], "", "", "", right, *points, slugs)


def pseudonym(student: str, secret: bytes) -> str:
    """The same for the same student and secret; without the secret it leads back to nobody."""
    return "s" + hmac.new(secret, student.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:10]


def secret_of(root: Path) -> bytes:
    """The secret of this course's pseudonyms, made when it is first asked for. Whoever deletes it breaks the link."""
    path = root / FOLDER / SECRET
    if not path.is_file():
        write_whole(path, secrets.token_hex(32), 0o600)
    return path.read_bytes()
