"""What a class's results show: counted and grouped here, laid out as a page in `report`.

Nothing here judges anybody. That two answers are the same is shown, with the students' names; what it means is for the
instructor to decide.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from helpers.checking.panel import number
from helpers.checking.verdicts import AS_GIVEN, NO_ANSWER, NOT_ALLOWED, NOT_STARTED, RIGHT, WRONG
from helpers.exercises import Lesson
from helpers.exercises.exercise import Prediction
from helpers.grading.judging import WAITS
from helpers.grading.reports.pages import duration
from helpers.grading.reports.results import GradedCell, StudentResult

HANDLE = 8  # characters of an answer's digest, which the report calls it by
MAX_BARS, MAX_LABELS = 25, 6
# Syntax nodes from which on equal code is worth showing. Of the right answers of lessons 1 to 11, only one pair that
# was written independently has the same shape, with 21 nodes. A class is larger and an exercise of three lines has one
# obvious answer, so the bound is far above that.
LONG_CODE = 60
SPANS = [timedelta(hours=h) for h in (1, 3, 6, 12, 24, 48, 7 * 24, 28 * 24, 364 * 24)]  # of a bar of the timeline

PARTLY, NONE = "part", "none"
STATES = {  # of an exercise, in a class
    RIGHT: "right",
    PARTLY: "partly right",
    WRONG: "no points",
    NONE: "not begun, or nothing to judge",
}
NOT_BEGUN = (NOT_STARTED, AS_GIVEN, NO_ANSWER)

Pair = tuple[StudentResult, GradedCell]


@dataclass(frozen=True)
class Bar:
    """One bar of a histogram. start: what is counted in it begins there. labelled: the page shows where."""

    start: str
    count: int
    labelled: bool


@dataclass(frozen=True)
class Histogram:
    bars: tuple[Bar, ...]

    @property
    def highest(self) -> int:
        return max((bar.count for bar in self.bars), default=0)


@dataclass(frozen=True)
class Timeline(Histogram):
    """When the class handed in, in equal spans. due: how many bars are before the due date; None without one.

    known: of how many students the time is known. late: how many were late, by their own due dates.
    """

    span: str
    due: int | None
    known: int
    late: int


@dataclass(frozen=True)
class MistakeGroup:
    """A known mistake, and who made it. says: what the students read."""

    exercise: str
    slug: str
    title: str
    says: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class AnswerGroup:
    """Students with the same wrong answer, or with the same code.

    title: of the known mistakes in it, "" where there are none. texts: how many different texts there are. code: the
    first student's. handle: what the report calls the answer. right: all of it is right.
    """

    exercise: str
    students: tuple[str, ...]
    code: str
    title: str = ""
    texts: int = 1
    handle: str = ""
    right: bool = False


@dataclass(frozen=True)
class PredictionSummary:
    """How a class predicted. choices: who chose each of them, and under "" who chose none."""

    question: Prediction
    choices: dict[str, tuple[str, ...]]

    @property
    def count(self) -> int:
        return sum(map(len, self.choices.values()))

    @property
    def tempting(self) -> str:
        """The wrong choice that most students made, "" where none did."""
        wrong = [c for c in self.question.choices if c != self.question.truth and self.choices[c]]
        return max(wrong, key=lambda choice: len(self.choices[choice]), default="")

    @property
    def advice(self) -> str:
        """What the counts mean for teaching."""
        truth, tempting = self.question.truth, self.tempting
        chose, right = self.count - len(self.choices[""]), len(self.choices[truth])
        if right == chose:
            return f"All {chose} who chose were right." if chose > 1 else "The one who chose was right."
        tempted, says = f"{len(self.choices[tempting])} said {tempting}", self.question.says[tempting]
        if len(self.choices[tempting]) >= right:
            return f"{tempted}, {right} said {truth}, which is right. Worth a few minutes in class: {says}"
        return f"{right} of {chose} were right. The commonest wrong answer: {tempted}. {says}"


@dataclass(frozen=True)
class ReviewItem:
    """Findings in a student's answer for the instructor. record: see `records.record`."""

    student: str
    display_name: str
    exercise: str
    record: dict


@dataclass(frozen=True)
class ExerciseSummary:
    """One exercise. states: how many students, for each of STATES. aspects: (name, lost by, tried by)."""

    name: str
    out_of: float
    mean: float
    states: tuple[tuple[str, str, int], ...]
    histogram: Histogram
    aspects: tuple[tuple[str, int, int], ...]
    mistakes: tuple[MistakeGroup, ...]
    same_answers: tuple[AnswerGroup, ...]
    same_code: tuple[AnswerGroup, ...]
    reviews: tuple[ReviewItem, ...]
    by_hand: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(count for *_, count in self.states)


@dataclass(frozen=True)
class ClassSummary:
    """Everything about a class's lesson. by_hand: exercises, and how many answers to them are to be marked by hand."""

    students: tuple[StudentResult, ...]
    mean: float
    median: float
    spread: float
    out_of: float
    histogram: Histogram
    timeline: Timeline | None
    exercises: tuple[ExerciseSummary, ...]
    predictions: tuple[PredictionSummary, ...]
    mistakes: tuple[MistakeGroup, ...]
    waiting: tuple[ReviewItem, ...]
    by_hand: tuple[tuple[str, int], ...]
    due: datetime | None

    @property
    def flagged(self) -> tuple[StudentResult, ...]:
        return tuple(result for result in self.students if result.flags)


def summarize(lesson: Lesson, students: Sequence[StudentResult]) -> ClassSummary:
    """What these results show. There is at least one."""
    marks = [result.score for result in students]
    out_of, due = max(result.out_of for result in students), _due(students)
    exercises = tuple(_exercise(lesson, name, students) for name in names(lesson, students))
    mistakes = [mistake for exercise in exercises for mistake in exercise.mistakes]
    reviews = [review for exercise in exercises for review in exercise.reviews]
    times = [result.handed_in for result in students if result.handed_in]
    return ClassSummary(
        students=tuple(students),
        mean=statistics.mean(marks),
        median=statistics.median(marks),
        spread=statistics.pstdev(marks),
        out_of=out_of,
        histogram=histogram(marks, out_of),
        timeline=timeline(times, due, sum(result.late > 0 for result in students)),
        exercises=exercises,
        predictions=tuple(predictions(lesson, students)),
        mistakes=tuple(sorted(mistakes, key=lambda group: -len(group.students))),
        waiting=tuple(review for review in reviews if review.record["decision"] == WAITS),
        by_hand=tuple((exercise.name, len(exercise.by_hand)) for exercise in exercises if exercise.by_hand),
        due=due,
    )


def names(lesson: Lesson, students: Iterable[StudentResult]) -> list[str]:
    """What the students have marks in: the lesson's exercises in its order, then any other cell; no predictions."""
    unmarked = {question.cell for question in lesson.questions}
    marked = {cell.name: None for result in students for cell in result.cells if cell.name not in unmarked}
    first = [exercise.name for exercise in lesson if exercise.name in marked]
    return first + [name for name in marked if name not in first]


def _exercise(lesson: Lesson, name: str, students: Sequence[StudentResult]) -> ExerciseSummary:
    pairs = [(result, cell) for result in students for cell in result.cells if cell.name == name]
    scores = [cell.score for _, cell in pairs]
    states, out_of = Counter(state_of(cell) for _, cell in pairs), max(cell.out_of for _, cell in pairs)
    judged = [(result, cell) for result, cell in pairs if cell.record]
    reviews = (ReviewItem(r.student, r.display_name, name, cell.record) for r, cell in judged if cell.record["look"])
    to_fix = name in lesson and lesson[name].mend  # most of the code was given: that it is the same means nothing
    return ExerciseSummary(
        name=name,
        out_of=out_of,
        mean=statistics.mean(scores),
        states=tuple((state, words, states[state]) for state, words in STATES.items()),
        histogram=histogram(scores, out_of),
        aspects=tuple(lost_aspects(judged)),
        mistakes=tuple(known_mistakes(name, judged)),
        same_answers=tuple(same_answers(name, judged)),
        same_code=() if to_fix else tuple(same_code(name, judged)),
        reviews=tuple(reviews),
        by_hand=tuple(result.display_name for result, cell in pairs if cell.waits),
    )


def state_of(cell: GradedCell) -> str:
    """RIGHT, PARTLY, WRONG or NONE, by the points that count."""
    if cell.record.get("state") in NOT_BEGUN and not cell.score:
        return NONE
    if cell.score >= cell.out_of:
        return RIGHT
    return PARTLY if cell.score > 0 else WRONG


# ---------------------------------------------------------------------------------------------- one exercise


def known_mistakes(exercise: str, judged: Iterable[Pair]) -> list[MistakeGroup]:
    """The known mistakes that were made, the commonest first."""
    students: defaultdict[str, list[str]] = defaultdict(list)
    first: dict[str, dict] = {}
    for result, cell in judged:
        for mistake in cell.record["mistakes"]:
            students[mistake["slug"]].append(result.display_name)
            first.setdefault(mistake["slug"], mistake)
    groups = [MistakeGroup(exercise, **first[slug], students=tuple(who)) for slug, who in students.items()]
    return sorted(groups, key=lambda group: (-len(group.students), group.slug))


def lost_aspects(judged: Iterable[Pair]) -> list[tuple[str, int, int]]:
    """(aspect, how many lost it, how many tried the exercise), the hardest first; those that nobody lost left out."""
    lost: Counter[str] = Counter()
    tried = 0
    for _, cell in judged:
        if cell.record["state"] not in NOT_BEGUN:
            tried += 1
            lost.update(aspect["name"] for aspect in cell.record["aspects"] if not aspect["held"])
    return [(name, count, tried) for name, count in lost.most_common()]


def same_answers(exercise: str, judged: Iterable[Pair]) -> list[AnswerGroup]:
    """Wrong answers that two or more share, to three digits; those without a name first, then the commonest."""
    wrong = [pair for pair in judged if pair[1].record["state"] in (WRONG, NOT_ALLOWED)]
    groups = []
    for digest, members in _grouped(wrong, lambda cell: cell.record["answer"]):
        first = members[0][1]
        titles = "; ".join(mistake["title"] for mistake in first.record["mistakes"])
        texts = len({cell.record["shape"] or cell.code for _, cell in members})
        groups.append(AnswerGroup(exercise, _names(members), first.code, titles, texts, digest[:HANDLE]))
    return sorted(groups, key=lambda group: (bool(group.title), -len(group.students), group.handle))


def same_code(exercise: str, judged: Iterable[Pair]) -> list[AnswerGroup]:
    """Long answers whose code is the same except for names, comments and layout; the longest first."""
    states = (RIGHT, WRONG, NOT_ALLOWED)
    long = [pair for pair in judged if pair[1].record["state"] in states and pair[1].record["size"] >= LONG_CODE]
    long.sort(key=lambda pair: -pair[1].record["size"])
    groups = _grouped(long, lambda cell: cell.record["shape"] and (cell.record["shape"], cell.record["state"] == RIGHT))
    return [AnswerGroup(exercise, _names(members), members[0][1].code, right=right) for (_, right), members in groups]


def _grouped(pairs: Iterable[Pair], key: Callable[[GradedCell], Hashable]) -> list[tuple]:
    """(key, pairs) of every key that two or more cells have; an empty one does not count."""
    groups = defaultdict(list)
    for pair in pairs:
        groups[key(pair[1])].append(pair)
    return [(value, members) for value, members in groups.items() if value and len(members) > 1]


def _names(pairs: Iterable[Pair]) -> tuple[str, ...]:
    return tuple(result.display_name for result, _ in pairs)


def predictions(lesson: Lesson, students: Iterable[StudentResult]) -> list[PredictionSummary]:
    """What the class recalled and predicted, in the lesson's order; no question that nobody answered."""
    summaries = []
    for question in lesson.questions:
        chosen: dict[str, list[str]] = {choice: [] for choice in (*question.choices, "")}
        for result in students:
            choice = next((cell.choices[question.name] for cell in result.cells if question.name in cell.choices), "")
            chosen[choice].append(result.display_name)
        if len(chosen[""]) < sum(map(len, chosen.values())):
            summaries.append(PredictionSummary(question, {choice: tuple(who) for choice, who in chosen.items()}))
    return summaries


# ---------------------------------------------------------------------------------------------- distributions


def histogram(marks: Sequence[float], out_of: float) -> Histogram:
    """How many have how many points, in steps of a half or of whole points.

    Marks below 0 and above out_of (points taken off, extra credit) count in the first and the last bar.
    """
    halves = out_of <= MAX_BARS / 4 and any(mark != int(mark) for mark in marks)
    step = 0.5 if halves else max(1, math.ceil(out_of / MAX_BARS))
    last = math.floor(out_of / step + 1e-9)
    counts = Counter(min(last, max(0, math.floor(mark / step + 1e-9))) for mark in marks)
    every = math.ceil((last + 1) / MAX_LABELS)
    return Histogram(tuple(Bar(number(k * step), counts[k], k % every == 0) for k in range(last + 1)))


def timeline(times: Sequence[datetime], due: datetime | None, late: int) -> Timeline | None:
    """When a class handed in, counted from the due date where there is one. None where no time is known.

    late: how many were late, by their own due dates.
    """
    if not times:
        return None
    zero = due or min(times).replace(minute=0, second=0, microsecond=0)
    extent = max(*times, zero) - min(*times, zero)
    span = next((s for s in SPANS if extent / s <= MAX_BARS), SPANS[-1])
    # On the dot of the due date is in time
    places = [math.ceil((time - zero) / span) - 1 if due else (time - zero) // span for time in times]
    first, last, counts = min(*places, -1 if due else 0), max(*places, 0), Counter(places)
    every = math.ceil((last - first + 1) / MAX_LABELS)

    def label(place: int) -> str:
        return _from_due(place * span) if due else f"{zero + place * span:%d %b %H:%M}"

    bars = tuple(Bar(label(k), counts[k], k % every == 0) for k in range(first, last + 1))
    return Timeline(bars, duration(span.total_seconds()), -first if due else None, len(times), late)


def _from_due(apart: timedelta) -> str:
    if not apart:
        return "due"
    sign, hours = ("+" if apart > timedelta() else "−"), abs(apart) / timedelta(hours=1)
    return f"{sign}{number(hours)} h" if hours < 48 else f"{sign}{number(round(hours / 24, 1))} d"


def _due(students: Iterable[StudentResult]) -> datetime | None:
    """The class's due date: the one that most have, so that extensions do not count."""
    dates = Counter(result.due for result in students if result.due)
    return min(dates, key=lambda date: (-dates[date], date)) if dates else None
