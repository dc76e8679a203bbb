"""What a class recalled of earlier lessons and predicted, before a cell or a lesson showed it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from helpers.exercises import Lesson
from helpers.exercises.exercise import Prediction
from helpers.grading.journal import JournalEntry
from helpers.grading.reports.results import StudentResult

ABOUT = re.compile(r"\(lesson (\d+)\)$")  # the end of a recall question
FEW = 5  # answers under which a share says nothing about a class


@dataclass(frozen=True)
class PredictionSummary:
    """How a class predicted."""

    lesson: Lesson
    question: Prediction
    choices: Mapping[str, int]
    """How many chose each of them, and under "" how many chose none."""

    @property
    def answered(self) -> int:
        return sum(self.choices[choice] for choice in self.question.choices)

    @property
    def wrong(self) -> int:
        return self.answered - self.choices[self.question.truth]

    @property
    def share(self) -> float:
        """Of those who chose, the part that was wrong."""
        return self.wrong / self.answered

    @property
    def tempting(self) -> str:
        """The commonest wrong choice."""
        wrong = [choice for choice in self.question.choices if choice != self.question.truth]
        return max(wrong, key=lambda choice: self.choices[choice])

    @property
    def advice(self) -> str:
        """What the counts mean for teaching."""
        truth, chose = self.question.truth, self.answered
        if not self.wrong:
            return f"All {chose} who chose were right." if chose > 1 else "The one who chose was right."
        right, tempting = self.choices[truth], self.tempting
        tempted, says = f"{self.choices[tempting]} said {tempting}", self.question.says[tempting]
        if self.choices[tempting] >= right:
            return f"{tempted}, {right} said {truth}, which is right. Worth a few minutes in class: {says}"
        return f"{right} of {chose} were right. The commonest wrong answer: {tempted}. {says}"

    @property
    def about(self) -> str:
        return about(self.question)


def about(question: Prediction) -> str:
    """The number of the lesson that a recall question is about, "" where it names none."""
    found = ABOUT.search(getattr(question, "asks", ""))
    return found[1] if found else ""


def predictions(lesson: Lesson, students: Iterable[StudentResult]) -> list[PredictionSummary]:
    """What the class recalled and predicted, in the lesson's order; no question that nobody answered."""
    return _summaries(lesson, [choices_in(cell.record for cell in result.cells) for result in students])


def recorded_predictions(lesson: Lesson, entries: Iterable[JournalEntry]) -> list[PredictionSummary]:
    """The same from a journal alone."""
    return _summaries(lesson, [choices_in(entry.verdicts) for entry in entries])


def choices_in(records: Iterable[Mapping]) -> dict[str, str]:
    """What a student chose, by question, in these records (see `records.records_of_predictions`); "" for no choice."""
    return {name: chosen for record in records for name, chosen in record.get("choices", {}).items()}


def _summaries(lesson: Lesson, made: Sequence[Mapping[str, str]]) -> list[PredictionSummary]:
    summaries = []
    for question in lesson.questions:
        counts = Counter(choices.get(question.name) for choices in made)
        chosen = {choice: counts[choice] for choice in question.choices}
        none = len(made) - sum(chosen.values())
        summaries.append(PredictionSummary(lesson, question, {**chosen, "": none}))
    return [summary for summary in summaries if summary.answered]


def often_wrong(summaries: Iterable[PredictionSummary]) -> list[PredictionSummary]:
    """Those that FEW or more answered and somebody got wrong; those that most got wrong first."""
    wrong = [each for each in summaries if each.wrong and each.answered >= FEW]
    return sorted(wrong, key=lambda each: -each.share)
