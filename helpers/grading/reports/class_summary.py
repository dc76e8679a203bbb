"""What a class's results show, counted and grouped; `report` lays it out as a page. Nothing here judges anybody."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from helpers.checking.judge.verdicts import AS_GIVEN, NO_ANSWER, NOT_ALLOWED, NOT_STARTED, RIGHT, WRONG
from helpers.exercises import Lesson
from helpers.grading.reports.pages import duration, excerpt
from helpers.grading.reports.results import HANDLE, GradedCell, StudentResult
from helpers.grading.submissions.roster import Student
from helpers.text import number

MAX_BARS, MAX_LABELS = 25, 6
# Syntax nodes from which on equal code is worth showing. Of the right answers of lessons 1 to 11, two that were written
# independently have the same shape, with 21 nodes; a class is larger.
LONG_CODE = 60
SPANS = [timedelta(hours=h) for h in (1, 3, 6, 12, 24, 48, 7 * 24, 28 * 24, 364 * 24)]  # of a bar of the timeline

PARTLY, NONE = "part", "none"
STATES = {  # of an exercise, in a class
    RIGHT: "right",
    PARTLY: "partly right",
    WRONG: "no points",
    NONE: "not begun, or nothing to judge",
}
NAMELESS = "a wrong answer that several share"  # which is no mistake that the lesson knows
NOT_BEGUN = (NOT_STARTED, AS_GIVEN, NO_ANSWER)


@dataclass(frozen=True)
class Bar:
    """One bar of a histogram."""

    start: str
    """What is counted in it begins there."""
    count: int
    labelled: bool
    """The page shows where."""


@dataclass(frozen=True)
class Timeline:
    """When the class handed in, in equal spans."""

    bars: list[Bar]
    span: str
    due: int | None
    """How many bars are before the due date; None without one."""


@dataclass(frozen=True)
class Group:
    """Students who made the same known mistake, or have the same wrong answer or the same code, in an exercise."""

    exercise: str
    students: tuple[Student, ...]
    code: str
    """What most of them wrote, or the first of them."""
    slug: str = ""
    """The mistake's, or what the report calls the answer."""
    title: str = ""
    """Of the known mistakes, "" where there are none."""
    says: str = ""
    """What the students read."""
    texts: int = 1
    """How many different texts there are."""
    right: bool = False
    """All of it is right."""


@dataclass(frozen=True)
class ExerciseSummary:
    """One exercise in a class."""

    name: str
    cells: list[GradedCell]
    """Every student's who has a mark in it; at least one."""
    fixes_bug: bool
    """Most of the code was given, so that it means nothing if it is the same."""

    @property
    def out_of(self) -> float:
        return max(cell.out_of for cell in self.cells)

    @property
    def mean(self) -> float:
        return statistics.mean(cell.score for cell in self.cells)

    @property
    def histogram(self) -> list[Bar]:
        return histogram([cell.score for cell in self.cells], self.out_of)

    @property
    def states(self) -> list[tuple[str, str, int]]:
        """Of each of STATES, how many students are in it."""
        counts = Counter(map(state_of, self.cells))
        return [(state, words, counts[state]) for state, words in STATES.items()]

    @property
    def judged(self) -> list[GradedCell]:
        return [cell for cell in self.cells if cell.record]

    @property
    def reviews(self) -> list[GradedCell]:
        """Those in which something was found for the instructor."""
        return [cell for cell in self.judged if cell.record["look"]]

    @property
    def by_hand(self) -> list[Student]:
        """Whose answers are to be marked by hand."""
        return [cell.student for cell in self.cells if cell.waits]

    @property
    def mistakes(self) -> list[Group]:
        """The known mistakes that were made, the commonest first, each with its shortest wording."""
        made: dict[str, tuple[dict, list[GradedCell]]] = {}
        for cell in self.judged:
            for mistake in cell.record["mistakes"]:
                made.setdefault(mistake["slug"], (mistake, []))[1].append(cell)
        groups = [Group(self.name, _students(cells), _typical(cells), **mistake) for mistake, cells in made.values()]
        return sorted(groups, key=lambda group: (-len(group.students), group.slug))

    @property
    def aspects(self) -> list[tuple[str, int, int]]:
        """(aspect, how many lost it, how many tried the exercise), the hardest first; only those that somebody lost."""
        tried = [cell.record for cell in self.judged if cell.record["state"] not in NOT_BEGUN]
        lost = Counter(aspect["name"] for record in tried for aspect in record["aspects"] if not aspect["held"])
        return [(name, count, len(tried)) for name, count in lost.most_common()]

    @property
    def same_answers(self) -> list[Group]:
        """Wrong answers that two or more share, to three digits; those without a name first, then the commonest."""
        wrong = [cell for cell in self.judged if cell.record["state"] in (WRONG, NOT_ALLOWED)]
        groups = []
        for digest, members in _grouped(wrong, lambda cell: cell.record["answer"]):
            first = members[0]
            titles = "; ".join(mistake["title"] for mistake in first.record["mistakes"])
            texts = len({cell.record["shape"] or cell.code for cell in members})
            groups.append(Group(self.name, _students(members), first.code, digest[:HANDLE], titles, texts=texts))
        return sorted(groups, key=lambda group: (bool(group.title), -len(group.students), group.slug))

    @property
    def same_code(self) -> list[Group]:
        """Long answers whose code is the same except for names, comments and layout; the longest first."""
        if self.fixes_bug:
            return []
        states = (RIGHT, WRONG, NOT_ALLOWED)
        long = [c for c in self.judged if c.record["state"] in states and c.record["size"] >= LONG_CODE]
        long.sort(key=lambda cell: -cell.record["size"])
        groups = _grouped(long, lambda c: c.record["shape"] and (c.record["shape"], c.record["state"] == RIGHT))
        return [Group(self.name, _students(members), members[0].code, right=right) for (_, right), members in groups]


def summarize(lesson: Lesson, students: Sequence[StudentResult]) -> list[ExerciseSummary]:
    """What these results show of each exercise. There is at least one result."""
    cells: dict[str, list[GradedCell]] = defaultdict(list)
    for cell in (cell for result in students for cell in result.cells):
        cells[cell.name].append(cell)
    in_order = names(lesson, students)
    return [ExerciseSummary(name, cells[name], name in lesson and lesson[name].fixes_bug) for name in in_order]


def names(lesson: Lesson, students: Iterable[StudentResult]) -> list[str]:
    """What the students have marks in: the lesson's exercises in its order, then any other cell; no predictions."""
    unmarked = {question.cell for question in lesson.questions}
    marked = {cell.name: None for result in students for cell in result.cells if cell.name not in unmarked}
    first = [exercise.name for exercise in lesson if exercise.name in marked]
    return first + [name for name in marked if name not in first]


def mistakes_of(exercises: Iterable[ExerciseSummary]) -> list[Group]:
    """The known mistakes of all exercises, the commonest first."""
    return sorted((m for exercise in exercises for m in exercise.mistakes), key=lambda group: -len(group.students))


def nameless_of(exercises: Iterable[ExerciseSummary]) -> list[Group]:
    """The wrong answers that several share and no known mistake explains."""
    return [group for exercise in exercises for group in exercise.same_answers if not group.title]


def commonest(exercises: Sequence[ExerciseSummary]) -> list[Group]:
    """Known mistakes, and wrong answers without a name that several share: those of most students first."""
    nameless = [replace(group, title=NAMELESS, code=excerpt(group.code)) for group in nameless_of(exercises)]
    return sorted([*mistakes_of(exercises), *nameless], key=lambda group: -len(group.students))


def state_of(cell: GradedCell) -> str:
    """RIGHT, PARTLY, WRONG or NONE, by the points that count."""
    if cell.record.get("state") in NOT_BEGUN and not cell.score:
        return NONE
    if cell.score >= cell.out_of:
        return RIGHT
    return PARTLY if cell.score > 0 else WRONG


def _grouped(cells: Iterable[GradedCell], key: Callable[[GradedCell], Hashable]) -> list[tuple]:
    """(key, cells) of every key that two or more cells have; an empty one does not count."""
    groups = defaultdict(list)
    for cell in cells:
        groups[key(cell)].append(cell)
    return [(value, members) for value, members in groups.items() if value and len(members) > 1]


def _typical(cells: Sequence[GradedCell]) -> str:
    """What most of these answers have written, the shortest text of it."""
    shapes = Counter(cell.record["shape"] for cell in cells)
    commonest = max(shapes, key=lambda shape: shapes[shape])
    texts = (excerpt(cell.code) for cell in cells if cell.record["shape"] == commonest)
    return min(texts, key=lambda text: (len(text), text))


def pairs_with_same_code(exercises: Iterable[ExerciseSummary]) -> list[tuple[str, str, list[str]]]:
    """(student, student, exercises) of those who have long answers with the same code; most exercises first."""
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    for exercise in exercises:
        for group in exercise.same_code:
            for one, other in itertools.combinations(sorted(who.shown for who in group.students), 2):
                shared[one, other].append(exercise.name)
    return sorted(((*pair, names) for pair, names in shared.items()), key=lambda row: (-len(row[2]), row[:2]))


def _students(cells: Iterable[GradedCell]) -> tuple[Student, ...]:
    return tuple(cell.student for cell in cells)


def histogram(marks: Sequence[float], out_of: float) -> list[Bar]:
    """How many have how many points, in steps of a half or of whole points.

    Marks below 0 and above out_of (points taken off, extra credit) count in the first and the last bar.
    """
    halves = out_of <= MAX_BARS / 4 and any(mark != int(mark) for mark in marks)
    step = 0.5 if halves else max(1, math.ceil(out_of / MAX_BARS))
    last = math.floor(out_of / step + 1e-9)
    counts = Counter(min(last, max(0, math.floor(mark / step + 1e-9))) for mark in marks)
    return _bars({place: number(place * step) for place in range(last + 1)}, counts)


def timeline(times: Sequence[datetime], due: datetime | None) -> Timeline | None:
    """When a class handed in, counted from the due date where there is one. None where no time is known."""
    if not times:
        return None
    zero = due or min(times).replace(minute=0, second=0, microsecond=0)
    extent = max(*times, zero) - min(*times, zero)
    span = next((s for s in SPANS if extent / s <= MAX_BARS), SPANS[-1])
    # On the dot of the due date is in time
    places = [math.ceil((time - zero) / span) - 1 if due else (time - zero) // span for time in times]
    first, last = min(*places, -1 if due else 0), max(*places, 0)
    starts = {place: place * span for place in range(first, last + 1)}
    labels = {place: _from_due(apart) if due else f"{zero + apart:%d %b %H:%M}" for place, apart in starts.items()}
    return Timeline(_bars(labels, Counter(places)), duration(span.total_seconds()), -first if due else None)


def _bars(labels: Mapping[int, str], counts: Mapping[int, int]) -> list[Bar]:
    """The bars at these places, of which few are labelled."""
    every = math.ceil(len(labels) / MAX_LABELS)
    return [Bar(label, counts[place], place % every == 0) for place, label in labels.items()]


def _from_due(apart: timedelta) -> str:
    if not apart:
        return "due"
    sign, hours = ("+" if apart > timedelta() else "−"), abs(apart) / timedelta(hours=1)
    return f"{sign}{number(hours)} h" if hours < 48 else f"{sign}{number(round(hours / 24, 1))} d"


def due_date(students: Iterable[StudentResult]) -> datetime | None:
    """The class's due date: the one that most have, so that extensions do not count."""
    dates = Counter(result.due for result in students if result.due)
    return min(dates, key=lambda date: (-dates[date], date)) if dates else None
