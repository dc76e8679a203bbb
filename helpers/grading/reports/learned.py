"""What a class learned, over the course: what it recalled and expected before each lesson, and what it could do after.

From the journals of all lessons, for the course's page, and as a table for people who study teaching: one row for each
student, lesson and item, with pseudonyms, without names, texts or times.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from helpers.course import write_whole
from helpers.exercises import Lesson, load_lesson
from helpers.exercises.exercise import Prediction, Recall, lesson_names
from helpers.grading.csv_tables import as_csv
from helpers.grading.journal import FOLDER, Journal, JournalEntry
from helpers.grading.reports.results import StudentResult

SECRET = "pseudonyms.secret"  # beside the journals: the same student has the same pseudonym in every export
ABOUT = re.compile(r"\(lesson (\d+)\)$")  # the end of a recall question
FEW = 5  # answers under which a share says nothing about a class
MOST = 12  # ideas on the course's page

RECALLED, PREDICTED, DONE = "recall", "prediction", "exercise"
COLUMNS = ("student", "lesson", "kind", "item", "about", "chosen", "truth", "right", "points", "of", "mistakes")

Graded = tuple[Lesson, Sequence[JournalEntry]]  # a lesson, and what its journal holds


@dataclass(frozen=True)
class Expected:
    """How many of a class expected what, before a cell or a lesson showed it."""

    lesson: Lesson
    question: Prediction
    counts: Mapping[str, int]
    """How many chose each; nobody who chose none."""

    @property
    def answered(self) -> int:
        return sum(self.counts.values())

    @property
    def wrong(self) -> int:
        return self.answered - self.counts.get(self.question.truth, 0)

    @property
    def share(self) -> float:
        """Of those who chose, the part that was wrong."""
        return self.wrong / self.answered

    @property
    def tempting(self) -> str:
        """The commonest wrong choice."""
        wrong = [choice for choice in self.question.choices if choice != self.question.truth]
        return max(wrong, key=lambda choice: self.counts.get(choice, 0))

    @property
    def about(self) -> str:
        """The number of the lesson that a recall question is about, "" where it names none."""
        found = ABOUT.search(getattr(self.question, "asks", ""))
        return found[1] if found else ""


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


def expected(lesson: Lesson, choices: Iterable[Mapping[str, str]]) -> list[Expected]:
    """What was expected of each of a lesson's questions that somebody answered, what most got wrong first.

    choices: each student's, by question, "" where none was made.
    """
    made = list(choices)
    found = [Expected(lesson, q, Counter(filter(None, (c.get(q.name) for c in made)))) for q in lesson.questions]
    return sorted((each for each in found if each.answered), key=lambda each: -each.share)


def expected_wrongly(lesson: Lesson, students: Sequence[StudentResult]) -> list[Expected]:
    """The questions that at least half of those who answered, and at least FEW of a class, got wrong."""
    records = ([cell.record for cell in result.cells] for result in students)
    return [each for each in expected(lesson, map(_choices, records)) if each.share >= 0.5 and each.answered >= FEW]


def _choices(records: Iterable[Mapping]) -> dict[str, str]:
    return {name: chosen for record in records for name, chosen in record.get("choices", {}).items()}


def graded_lessons(root: Path) -> list[Graded]:
    """The lessons with journals, in the course's order."""
    entries = {name: list(Journal(root, name).read().values()) for name in lesson_names()}
    return [(load_lesson(name), of_lesson) for name, of_lesson in entries.items() if of_lesson]


def most_missed(graded: Sequence[Graded]) -> list[Expected]:
    """The questions of all lessons that most of those who answered got wrong, at most MOST."""
    found = [each for lesson, entries in graded for each in expected(lesson, _of(entries))]
    return [each for each in sorted(found, key=lambda each: -each.share) if each.wrong and each.answered >= FEW][:MOST]


def steps_of(lesson: Lesson, entries: Sequence[JournalEntry]) -> LessonSteps:
    """A lesson's row: how a class came to it, and how it left it."""
    found = expected(lesson, _of(entries))
    recalled = [each for each in found if isinstance(each.question, Recall) and each.answered >= FEW]
    predicted = [each for each in found if not isinstance(each.question, Recall) and each.answered >= FEW]
    right = [mean(1 - each.share for each in group) if group else None for group in (recalled, predicted)]
    done = mean(entry.points / entry.out_of for entry in entries if entry.out_of) if entries else 0.0
    return LessonSteps(lesson, len(entries), right[0], right[1], done)


def _of(entries: Iterable[JournalEntry]) -> Iterator[dict[str, str]]:
    return (_choices(entry.verdicts) for entry in entries)


def learned_table(graded: Sequence[Graded], secret: bytes) -> str:
    """The tidy table, as CSV: what was recalled, predicted and done, by pseudonym, lesson and item."""
    rows = [row for lesson, entries in graded for entry in entries for row in _rows(lesson, entry, secret)]
    return as_csv([COLUMNS, *sorted(rows)])


def _rows(lesson: Lesson, entry: JournalEntry, secret: bytes) -> Iterator[tuple]:
    first = (pseudonym(entry.student, secret), lesson.name)
    choices = _choices(entry.verdicts)
    for question in lesson.questions:
        chosen = choices.get(question.name, "")
        about = Expected(lesson, question, {}).about
        right = str(int(chosen == question.truth)) if chosen else ""
        kind = RECALLED if isinstance(question, Recall) else PREDICTED
        yield (*first, kind, question.name, about, chosen, question.truth, right, "", "", "")
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
