"""What a class's results show: counted and grouped here, laid out as a page in `report`.

Nothing here judges anybody. That two answers are the same is shown, with whose they are; what that means is the
instructor's to say.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from helpers.checking.panel import number
from helpers.checking.verdicts import AS_GIVEN, NO_ANSWER, NOT_ALLOWED, NOT_STARTED, RIGHT, WRONG
from helpers.exercises import Lesson
from helpers.grading.flags import WAITS
from helpers.grading.reports.results import Part, Result

HANDLE = 8  # characters of an answer's digest by which the instructor calls it
MOST_BARS = 20
# Nodes of a tree from which on the same shape means something. Among the right answers of lessons 1 to 11 two that were
# written apart have one shape only once, with 21 nodes. A class has more people than that, and an exercise of three
# lines has one obvious answer, so the bound is far above.
LONG_ENOUGH = 60
STEPS = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
MOST_TICKS = 6

PARTLY, NONE = "part", "none"
STATES = (  # of an exercise, in a class
    (RIGHT, "right"),
    (PARTLY, "partly right"),
    (WRONG, "no points"),
    (NONE, "not begun, or nothing to judge"),
)


@dataclass(frozen=True)
class Bar:
    """One bar of a histogram: how many have at least `low` and less than `high`."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Tick:
    """A label under the bar of that place, counted from 0."""

    place: int
    label: str


@dataclass(frozen=True)
class Histogram:
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]

    @property
    def most(self) -> int:
        return max((bar.count for bar in self.bars), default=0)


@dataclass(frozen=True)
class Named:
    """A known mistake, and who made it. says: what they read; texts, where not all of them read the same."""

    exercise: str
    slug: str
    title: str
    says: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """A wrong answer that several gave: the same numbers. texts: in how many different wordings.

    handle: what the answer is called. title: of the known mistakes in it, "" where there are none.
    """

    exercise: str
    title: str
    students: tuple[str, ...]
    texts: int
    code: str
    handle: str = ""


@dataclass(frozen=True)
class SameCode:
    """An answer that several handed in with the same code, but for names, comments and layout. right: all of it is."""

    exercise: str
    right: bool
    students: tuple[str, ...]
    code: str


@dataclass(frozen=True)
class Predicted:
    """How a class predicted. right: the right choice. choices: each with who chose it, and "" last, who chose none.

    tempting: the wrong choice that most made, "" where none did. says: what they were told about it.
    """

    name: str
    right: str
    choices: tuple[tuple[str, tuple[str, ...]], ...]
    tempting: str = ""
    says: str = ""

    @property
    def count(self) -> int:
        return sum(len(who) for _, who in self.choices)

    def of(self, choice: str) -> int:
        """How many chose that."""
        return next((len(who) for one, who in self.choices if one == choice), 0)

    @property
    def advice(self) -> str:
        """What the counts are worth to somebody who teaches the class."""
        made, right = self.count - self.of(""), self.of(self.right)
        if not made:
            return "No student chose before the result was shown."
        if right == made:
            return f"All {made} who chose were right." if made > 1 else "The one who chose was right."
        tempted = f"{self.of(self.tempting)} said {self.tempting}"
        if self.of(self.tempting) >= right:
            return f"{tempted}, {right} said {self.right}, which is right. Worth a few minutes in class: {self.says}"
        return f"{right} of {made} were right. The commonest wrong answer: {tempted}. {self.says}"


@dataclass(frozen=True)
class Look:
    """What was found in an exercise of a student's for the instructor to look at. See `grading.findings.Finding`."""

    student: str
    shown: str
    exercise: str
    found: tuple[dict, ...]
    decision: str
    earned: float
    out_of: float


@dataclass(frozen=True)
class InExercise:
    """Everything about one exercise. states: how many, for each of STATES. aspects: (name, lost by, tried by)."""

    name: str
    out_of: float
    mean: float
    states: tuple[tuple[str, str, int], ...]
    histogram: Histogram
    aspects: tuple[tuple[str, int, int], ...]
    mistakes: tuple[Named, ...]
    alike: tuple[Alike, ...]
    same: tuple[SameCode, ...]
    looks: tuple[Look, ...]
    by_hand: tuple[str, ...]

    @property
    def count(self) -> int:
        return sum(count for *_, count in self.states)


@dataclass(frozen=True)
class OfAll:
    """What is grouped over a whole class at once."""

    mistakes: Sequence[Named]
    aspects: Sequence[tuple[str, str, int, int]]
    alike: Sequence[Alike]
    same: Sequence[SameCode]
    looks: Sequence[Look]


@dataclass(frozen=True)
class Timeline:
    """When the class handed in, in equal spans. due: where the due date lies among the bars, in bars from the left."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    due: float | None
    span: str
    known: int
    late: int

    @property
    def most(self) -> int:
        return max((bar.count for bar in self.bars), default=0)


@dataclass(frozen=True)
class Findings:
    """Everything about a class's lesson. attempts: (how many versions, how many students), where that is known."""

    lesson: Lesson
    students: tuple[Result, ...]
    mean: float
    median: float
    spread: float
    out_of: float
    histogram: Histogram
    timeline: Timeline | None
    attempts: tuple[tuple[int, int], ...]
    exercises: tuple[InExercise, ...]
    predictions: tuple[Predicted, ...]
    mistakes: tuple[Named, ...]
    waiting: tuple[Look, ...]
    decided: tuple[Look, ...]
    noticed: tuple[Look, ...]
    by_hand: tuple[tuple[str, int], ...]
    due: datetime | None

    @property
    def flagged(self) -> tuple[Result, ...]:
        return tuple(result for result in self.students if result.flags)


def find(lesson: Lesson, found: Sequence[Result]) -> Findings:
    """What these results show. There is at least one."""
    marks = [result.score for result in found]
    out_of = max(result.out_of for result in found)
    mended = [exercise.name for exercise in lesson if exercise.mend]
    same = same_code(found, mended)
    groups = OfAll(named_mistakes(found), aspects(lesson, found), alike(found), same, looked_at(found))
    exercises = tuple(_exercise(name, found, groups) for name in names(lesson, found))
    looks = groups.looks
    return Findings(
        lesson=lesson,
        students=tuple(found),
        mean=statistics.mean(marks),
        median=statistics.median(marks),
        spread=statistics.pstdev(marks),
        out_of=out_of,
        histogram=histogram(marks, out_of),
        timeline=timeline([r.handed_in for r in found if r.handed_in], _due(found), sum(r.late > 0 for r in found)),
        attempts=tuple(sorted(Counter(r.attempts for r in found if r.attempts).items())),
        exercises=exercises,
        predictions=tuple(predictions(lesson, found)),
        mistakes=tuple(groups.mistakes),
        waiting=tuple(look for look in looks if look.decision == WAITS),
        decided=tuple(look for look in looks if look.decision not in (WAITS, "")),
        noticed=tuple(look for look in looks if not look.decision),
        by_hand=tuple((entry.name, len(entry.by_hand)) for entry in exercises if entry.by_hand),
        due=_due(found),
    )


def names(lesson: Lesson, found: Sequence[Result]) -> list[str]:
    """What the students have marks in: the lesson's exercises in its order, and then whatever else.

    Predictions carry no marks, and are told apart: see `predictions`.
    """
    parts = [part for result in found for part in result.parts if not is_prediction(lesson, part)]
    there = list(dict.fromkeys(part.name for part in parts))
    first = [exercise.name for exercise in lesson if exercise.name in there]
    return first + [name for name in there if name not in first]


def _exercise(name: str, found: Sequence[Result], groups: OfAll) -> InExercise:
    own = [(result, part) for result in found for part in result.parts if part.name == name]
    parts = [part for _, part in own]
    states = Counter(state_of(part) for part in parts)
    out_of = max(part.out_of for part in parts)
    return InExercise(
        name=name,
        out_of=out_of,
        mean=statistics.mean(part.score for part in parts),
        states=tuple((state, words, states[state]) for state, words in STATES),
        histogram=histogram([part.score for part in parts], out_of),
        aspects=tuple((aspect, lost, tried) for n, aspect, lost, tried in groups.aspects if n == name and lost),
        mistakes=tuple(mistake for mistake in groups.mistakes if mistake.exercise == name),
        alike=tuple(group for group in groups.alike if group.exercise == name),
        same=tuple(group for group in groups.same if group.exercise == name),
        looks=tuple(look for look in groups.looks if look.exercise == name),
        by_hand=tuple(result.shown for result, part in own if part.waits),
    )


def state_of(part: Part) -> str:
    """RIGHT, PARTLY, WRONG or NONE, by the points that count."""
    if part.record.get("state") in (NOT_STARTED, AS_GIVEN, NO_ANSWER) and not part.score:
        return NONE
    if part.score >= part.out_of:
        return RIGHT
    return PARTLY if part.score > 0 else WRONG


def _judged(found: Iterable[Result]) -> Iterable[tuple[Result, Part]]:
    return [(result, part) for result in found for part in result.parts if part.record]


# ---------------------------------------------------------------------------------------------- mistakes


def named_mistakes(found: Iterable[Result]) -> list[Named]:
    """The known mistakes that were made, the commonest first."""
    who, titles, words = defaultdict(list), {}, {}
    for result, part in _judged(found):
        for mistake in part.record.get("mistakes", []):
            key = (part.name, mistake["slug"])
            who[key].append(result.shown)
            titles[key] = mistake["title"]
            words[key] = words.get(key) or mistake["says"]
    made = [Named(*key, titles[key], words[key], tuple(students)) for key, students in who.items()]
    return sorted(made, key=lambda mistake: (-len(mistake.students), mistake.exercise, mistake.slug))


def aspects(lesson: Lesson, found: Sequence[Result]) -> list[tuple[str, str, int, int]]:
    """(exercise, aspect, how many lost it, how many tried the exercise), the hardest first."""
    lost, tried = defaultdict(int), defaultdict(int)
    for _, part in _judged(found):
        if part.record.get("state") in (None, NOT_STARTED, AS_GIVEN, NO_ANSWER):
            continue
        for aspect in part.record.get("aspects", []):
            tried[part.name, aspect["name"]] += 1
            lost[part.name, aspect["name"]] += not aspect["held"]
    order = {(e.name, a.name): place for place, (e, a) in enumerate((e, a) for e in lesson for a in e.aspects)}
    rows = [(*key, lost[key], tried[key]) for key in tried]
    return sorted(rows, key=lambda row: (-row[2] / row[3], order.get(row[:2], 0)))


# ---------------------------------------------------------------------------------------- answers alike


def alike(found: Iterable[Result]) -> list[Alike]:
    """Wrong answers that two or more share, to three digits; those without a name first, then the commonest."""
    groups: dict[tuple, list[tuple[Result, Part]]] = defaultdict(list)
    for result, part in _judged(found):
        if part.record.get("state") in (WRONG, NOT_ALLOWED) and part.record.get("answer"):
            groups[part.name, part.record["answer"]].append((result, part))
    made = []
    for (name, answer), members in groups.items():
        if len(members) > 1:
            first = members[0][1]
            titles = "; ".join(mistake["title"] for mistake in first.record.get("mistakes", []))
            texts = len({part.record.get("shape") or part.code for _, part in members})
            students = tuple(result.shown for result, _ in members)
            made.append(Alike(name, titles, students, texts, first.code, answer[:HANDLE]))
    return sorted(made, key=lambda group: (bool(group.title), -len(group.students), group.exercise, group.handle))


def same_code(found: Iterable[Result], mended: Collection[str] = ()) -> list[SameCode]:
    """Answers whose code is the same in all but names, comments and layout; the longest first.

    Only those that are long enough for that to mean something. mended: exercises in which most of the code was given,
    and a word is to be changed: their answers are left out.
    """
    groups: dict[tuple, list[tuple[Result, Part]]] = defaultdict(list)
    for result, part in _judged(found):
        if part.name in mended:
            continue
        if part.record.get("state") in (RIGHT, WRONG, NOT_ALLOWED) and (shape := part.record.get("shape")):
            groups[part.name, part.record["state"] == RIGHT, shape].append((result, part))
    made = [
        (size, SameCode(name, right, tuple(result.shown for result, _ in members), members[0][1].code))
        for (name, right, shape), members in groups.items()
        if len(members) > 1 and (size := members[0][1].record.get("size", 0)) >= LONG_ENOUGH
    ]
    return [group for _, group in sorted(made, key=lambda entry: (-entry[0], entry[1].exercise))]


# ------------------------------------------------------------------------------- predictions, and findings


def is_prediction(lesson: Lesson, part: Part) -> bool:
    """Is this cell one in which students predict?"""
    return lesson.prediction(part.name) is not None or isinstance(part.record.get("prediction"), dict)


def predictions(lesson: Lesson, found: Sequence[Result]) -> list[Predicted]:
    """How the class predicted, in the lesson's order. Who handed in an edition without the question chose nothing."""
    made = []
    for asked in lesson.predictions:
        chosen: dict[str, list[str]] = {choice: [] for choice in (*asked.choices, "")}
        for result in found:
            told = next((part.record.get("prediction") for part in result.parts if part.name == asked.name), None)
            choice = told.get("chosen") if isinstance(told, dict) else ""
            chosen[choice if choice in asked.choices else ""].append(result.shown)
        wrong = [choice for choice in asked.choices if choice != asked.truth and chosen[choice]]
        tempting = max(wrong, key=lambda choice: len(chosen[choice]), default="")
        choices = tuple((choice, tuple(who)) for choice, who in chosen.items())
        made.append(Predicted(asked.name, asked.truth, choices, tempting, asked.says.get(tempting, "")))
    return made


def looked_at(found: Iterable[Result]) -> list[Look]:
    """What the reading of the submissions found for the instructor, by exercise and student."""
    looks = []
    for result, part in _judged(found):
        told = tuple(finding for finding in part.record.get("look") or () if isinstance(finding, dict))
        if told:
            record = part.record
            earned = record.get("earned", record.get("points", 0.0))
            decision = record.get("decision", "")
            looks.append(Look(result.student, result.shown, part.name, told, decision, earned, part.out_of))
    return looks


# ------------------------------------------------------------------------------------------- distributions


def histogram(marks: Sequence[float], out_of: float) -> Histogram:
    """How many have how many points, in steps of a half, a whole or a few, so that full marks have a bar of their own.

    What lies outside 0 and out_of (points taken off, extra credit) counts in the first and the last bar.
    """
    halves = out_of <= MOST_BARS / 4 and any(mark != int(mark) for mark in marks)
    step = next(s for s in STEPS if (s >= 1 or halves) and (out_of / s <= MOST_BARS or s == STEPS[-1]))
    last = math.floor(out_of / step + 1e-9)
    counts = Counter(min(last, max(0, math.floor(mark / step + 1e-9))) for mark in marks)
    bars = tuple(Bar(k * step, min((k + 1) * step, max(out_of, k * step)), counts[k]) for k in range(last + 1))
    return Histogram(bars, _ticks(out_of, step, last))


def _ticks(out_of: float, step: float, last: int) -> tuple[Tick, ...]:
    """Few labels, on round numbers and on full marks."""
    apart = next(s for s in STEPS if s >= max(1, step) and (out_of / s <= MOST_TICKS or s == STEPS[-1]))
    every = max(1, round(apart / step))
    ticks = [Tick(place, number(place * step)) for place in range(0, last + 1, every)]
    if last - ticks[-1].place >= max(1, every / 2) and math.isclose(last * step, out_of):
        ticks.append(Tick(last, number(out_of)))
    return tuple(ticks)


SPANS = (
    (timedelta(hours=1), "an hour"),
    (timedelta(hours=3), "three hours"),
    (timedelta(hours=6), "six hours"),
    (timedelta(hours=12), "half a day"),
    (timedelta(days=1), "a day"),
    (timedelta(days=2), "two days"),
    (timedelta(days=7), "a week"),
    (timedelta(days=28), "four weeks"),
    (timedelta(days=364), "a year"),
)


def timeline(times: Sequence[datetime], due: datetime | None, late: int) -> Timeline | None:
    """When a class handed in, counted from the due date where there is one. None where no time is known.

    late: how many were late, by their own due dates.
    """
    if not times:
        return None
    zero = due or min(times).replace(minute=0, second=0, microsecond=0)
    ends = [*times, zero]
    span, words = next((s for s in SPANS if (max(ends) - min(ends)) / s[0] <= MOST_BARS), SPANS[-1])
    places = [math.ceil((when - zero) / span) - 1 if due else math.floor((when - zero) / span) for when in times]
    first, last = min([*places, 0 if not due else -1]), max([*places, 0])
    counts = Counter(places)
    bars = tuple(Bar(k, k + 1, counts[k]) for k in range(first, last + 1))
    label = _from_due if due else _date
    least = span * math.ceil(len(bars) / MOST_TICKS)
    every = next((s for s, _ in SPANS if s >= least and s % span == timedelta()), least) // span
    ticks = tuple(Tick(k - first, label(zero, k * span)) for k in range(first, last + 1) if k % every == 0)
    return Timeline(bars, ticks, -first if due else None, words, len(times), late)


def _due(found: Sequence[Result]) -> datetime | None:
    """The class's due date: the one that most have, extensions apart."""
    dates = Counter(result.due for result in found if result.due)
    return min(dates, key=lambda date: (-dates[date], date)) if dates else None


def _from_due(zero: datetime, apart: timedelta) -> str:
    if not apart:
        return "due"
    sign, hours = ("+" if apart > timedelta() else "−"), abs(apart) / timedelta(hours=1)
    return f"{sign}{number(hours)} h" if hours < 48 else f"{sign}{number(round(hours / 24, 1))} d"


def _date(zero: datetime, apart: timedelta) -> str:
    return f"{zero + apart:%d %b %H:%M}"
