"""Judging an answer against a key. Needs only data: no student code runs here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

import torch

from helpers.checking.answers import ANSWERED, FORBIDDEN, NOT_ATTEMPTED, RAISED, Answer, Outcome
from helpers.checking.cell_scan import CellScan
from helpers.checking.compare import ENOUGH, close, distinctive, same_outcome
from helpers.checking.diagnosis import NAMES, difference, without_gradient
from helpers.checking.error_words import meaning
from helpers.checking.keys import ExerciseKey, KnownMistake, Outcomes
from helpers.exercises import Exercise
from helpers.exercises.aspects import LARGER, LEFT_ALONE
from helpers.exercises.exercise import UNCHANGED, Aspect
from helpers.text import listed

Explained = Mapping[str, KnownMistake]  # by aspect

SAME_CAUSE = "The same cause as above."
MAY_BE_THE_SAME = "This may have the same cause as above: look there first."
WAITS = "Counts as soon as the values are right."
OF_WRONG_VALUES = "The values above are wrong, so their gradients are too: fix the values first."
HOLDS_ELSEWHERE = "Your answer is right in {}: look at what is different in {}."
CUT_OR_WRONG = (
    "Look for a part of the graph that is cut (detach(), .data, no_grad(), item() or NumPy), and whether your result "
    "is right on such inputs."
)

LIKE = "On these inputs your result is that of a known mistake: {}."

RIGHT, WRONG, NOT_STARTED, NO_ANSWER, NOT_ALLOWED = "right", "wrong", "not attempted", "no answer", "not allowed"
AS_GIVEN = "unchanged"  # the cell of an exercise with a bug to fix is as it was released
ON_HOLD = "to be looked at"  # the numbers earn something, and an instructor looks before it counts


MISNAMED = (
    "The check fills your module with weights by their names, so the numbers cannot be right before the names and "
    "shapes of its parameters are."
)

NOT_CHANGED = "You have not changed the cell yet. It runs; something in it is wrong."
HAD_BEFORE = "This was right in the cell as you got it. It counts as soon as a result that was wrong there is right."

META = " (`meta` is the check's stand-in for a GPU.)"

UNWRITTEN = (
    "The cell of this exercise still holds the stub, so what the check was given comes from elsewhere. Write the answer"
    " into the cell of the exercise."
)


@dataclass(frozen=True)
class AspectVerdict:
    """One line of a verdict. says: what to look at, empty where the aspect holds.

    waits: it would hold, but pays only once the values are right. pair: target and result as matrices (rows, columns)
    for a picture, or None.
    """

    name: str
    points: float
    out_of: float
    held: bool
    says: str = ""
    waits: bool = False
    pair: tuple[torch.Tensor, torch.Tensor] | None = None


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth, and what to tell its author.

    state: RIGHT, WRONG, NOT_STARTED, AS_GIVEN, NO_ANSWER (nothing to judge; `says` tells why), NOT_ALLOWED or
    ON_HOLD.
    mistakes: the slugs of the known mistakes that were recognised, the weightiest first; titles: their titles;
    words: what each of them says. explained: they explain all that is wrong. note: what has to be known of the verdict
    itself, whatever its state.
    """

    exercise: str
    state: str
    points: float
    out_of: float
    aspects: tuple[AspectVerdict, ...] = ()
    mistakes: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    says: str = ""
    printed: str = field(default="", compare=False)
    lines_printed: int = field(default=0, compare=False)
    words: tuple[str, ...] = ()
    explained: bool = False
    note: str = ""


def not_started(exercise: Exercise, says: str = "") -> Verdict:
    """The verdict where the stub is still there. says: where the answer may be instead."""
    return _without_points(exercise, NOT_STARTED, says)


def no_answer(exercise: Exercise, says: str) -> Verdict:
    """The verdict where nothing came that could be judged. says: why."""
    return _without_points(exercise, NO_ANSWER, says)


def _without_points(exercise: Exercise, state: str, says: str = "", waits: bool = False) -> Verdict:
    lines = tuple(AspectVerdict(aspect.name, 0, aspect.points, False, waits=waits) for aspect in exercise.aspects)
    return Verdict(exercise.name, state, 0, exercise.points, lines, says=says)


def judge(exercise: Exercise, answer: Answer, key: ExerciseKey, scan: CellScan = CellScan()) -> Verdict:  # noqa: B008
    """The verdict on one exercise.

    scan: what the text of the answer shows.

    An aspect holds when its outcome is the reference's. Side aspects (whose right tensors can be guessed) pay only when
    a value aspect holds or shows a known mistake's numbers: leaving the input alone earns nothing by itself. Where a
    bug is to be fixed, nothing pays before something holds that the bug spoils.
    """
    outcomes = answer.outcomes
    if all(outcomes[aspect.name].state == NOT_ATTEMPTED for aspect in exercise.aspects):
        return not_started(exercise, scan.elsewhere)
    if key.released and scan.program == key.released:
        return _without_points(exercise, AS_GIVEN, scan.elsewhere or NOT_CHANGED)
    if scan.stub:
        return no_answer(exercise, UNWRITTEN)
    shortcut = scan.shortcut or next((o.says for o in outcomes.values() if o.state == FORBIDDEN), "")
    if shortcut:
        verdict = _without_points(exercise, NOT_ALLOWED, shortcut, waits=True)
    else:
        comparison = _compare(exercise, outcomes, key)
        recognised, similar = _recognise(comparison)
        messages = _messages(comparison, recognised, similar)
        verdict = _laid_out(comparison, recognised, messages)
    return replace(verdict, printed=answer.printed, lines_printed=answer.lines_printed)


# ------------------------------------------------------------------------------------------- what is right


def unexplained(exercise: Exercise, answer: Answer, key: ExerciseKey) -> list[str]:
    """The names of the aspects whose outcomes are not the reference's; none where known mistakes explain them all."""
    comparison = _compare(exercise, answer.outcomes, key)
    explained, _ = _recognise(comparison)
    names = [aspect.name for aspect in comparison.wrong]
    return names if explained.keys() < set(names) else []


@dataclass(frozen=True)
class _Comparison:
    """An answer's outcomes beside the key's. right: the names of the aspects that hold."""

    exercise: Exercise
    outcomes: Outcomes
    key: ExerciseKey
    right: frozenset[str]

    @property
    def wrong(self) -> list[Aspect]:
        return [aspect for aspect in self.exercise.aspects if aspect.name not in self.right]


def _compare(exercise: Exercise, outcomes: Outcomes, key: ExerciseKey) -> _Comparison:
    return _Comparison(exercise, outcomes, key, frozenset(_agreeing(exercise, outcomes, key.reference)))


def _agreeing(exercise: Exercise, one: Outcomes, other: Outcomes) -> set[str]:
    """The names of the aspects in which both have the same outcome."""
    return {a.name for a in exercise.aspects if same_outcome(one[a.name], other[a.name], a)}


def lost_aspects(exercise: Exercise, mistake: KnownMistake, key: ExerciseKey) -> frozenset[str]:
    """The names of the aspects in which the mistake differs from the reference. Compared once for a key."""
    if mistake.slug not in key.lost:
        agreeing = _agreeing(exercise, mistake.outcomes, key.reference)
        key.lost[mistake.slug] = frozenset(_names(exercise.aspects) - agreeing)
    return key.lost[mistake.slug]


def _spoilt_by_bug(exercise: Exercise, key: ExerciseKey) -> set[str]:
    """The value aspects that the bug of the released cell loses; all of them where the key has no bug."""
    bug = next((mistake for mistake in key.mistakes if mistake.slug == UNCHANGED), None)
    values = _names(_values(exercise))
    return values & lost_aspects(exercise, bug, key) if bug else values


def earns_sides(exercise: Exercise, mistake: KnownMistake, key: ExerciseKey) -> bool:
    """Does an answer with this mistake get the points of side aspects?"""
    lost = lost_aspects(exercise, mistake, key)
    return _computed(exercise, _names(exercise.aspects) - lost, dict.fromkeys(lost, mistake), key)


def _computed(exercise: Exercise, right: Set[str], recognised: Explained, key: ExerciseKey) -> bool:
    """Was what is asked for computed, if wrongly, so that what is right beside it pays?"""
    if exercise.mend:
        return bool(right & _spoilt_by_bug(exercise, key))
    values = _values(exercise)
    shown = ((recognised[a.name], a) for a in values if a.name in recognised)
    return bool(right & _names(values)) or any(not m.idle and _shows_numbers(m, a, key) for m, a in shown)


def _values(exercise: Exercise) -> list[Aspect]:
    return [aspect for aspect in exercise.aspects if not aspect.side]


def _names(aspects: Iterable[Aspect]) -> set[str]:
    return {aspect.name for aspect in aspects}


# --------------------------------------------------------------------------------------- known mistakes


def _recognise(comparison: _Comparison) -> tuple[Explained, Explained]:
    """For each aspect that fails, the known mistake that explains it, if one does; and a mistake with its numbers.

    A mistake is named where its numbers show and cannot be there by chance, or where all that it loses shows and no
    other value is wrong (it may say that they are right); never where something holds that it loses. Of those, as few
    as possible shall explain as much as possible: first come mistakes all of whose aspects show, then those that
    explain most. Two that explain the same are both named. Where something speaks against a mistake whose numbers show,
    they are no more than similar, if they are no gradients and enough of them are wrong.
    """
    exercise, outcomes, key = comparison.exercise, comparison.outcomes, comparison.key
    values_right = comparison.right & _names(_values(exercise))
    values_wrong = _names(_values(exercise)) - comparison.right
    similar: dict[str, KnownMistake] = {}
    candidates: list[tuple[bool, list[str], KnownMistake]] = []
    for mistake in key.mistakes:
        lost = lost_aspects(exercise, mistake, key)
        may_show = (a for a in comparison.wrong if a.name in lost)
        shows = [a for a in may_show if same_outcome(outcomes[a.name], mistake.outcomes[a.name], a)]
        by_numbers = [a for a in shows if _shows_numbers(mistake, a, key)]
        complete = _names(shows) == lost
        nothing_else = values_wrong <= lost
        if not shows or not (complete and nothing_else or any(nothing_else or not a.side for a in by_numbers)):
            continue
        if lost & (values_right | comparison.right & {LEFT_ALONE}):
            telling = (a.name for a in by_numbers if a.name in values_wrong and _count_wrong(mistake, a, key) >= ENOUGH)
            similar = dict.fromkeys(telling, mistake) | similar
        else:
            candidates.append((complete, [a.name for a in shows], mistake))
    explained: dict[str, KnownMistake] = {}
    while useful := [each for each in candidates if not explained.keys() >= set(each[1])]:
        complete, shown, mistake = max(useful, key=lambda each: (each[0], len(set(each[1]) - explained.keys())))
        rivals = [other for *same, other in useful if same == [complete, shown] and other is not mistake]
        if rivals and UNCHANGED not in (mistake.slug, rivals[0].slug):  # the cell began with that one
            mistake = _either(mistake, rivals[0])
        explained |= {name: mistake for name in shown if name not in explained}
    ordered = {a.name: explained[a.name] for a in exercise.aspects if a.name in explained}
    return ordered, {name: mistake for name, mistake in similar.items() if name not in explained}


def _holds_gradients(outcome: Outcome) -> bool:
    return any("gradient" in name for name in outcome.tensors)


def _is_gradients_of_values(outcome: Outcome) -> bool:
    """Are these the gradients of the result, as `aspects.gradient` names them, and not what is asked for?"""
    return all(re.fullmatch(r"(.+, )?gradient (\d+|of .+)", name) for name in outcome.tensors)


def _either(one: KnownMistake, other: KnownMistake) -> KnownMistake:
    """Two mistakes that come to the same in all that shows, as one."""
    title = f"{one.title}, or {other.title}"
    says = f"One of two mistakes. Either {one.title}: {one.says} Or {other.title}: {other.says}"
    return replace(one, slug=f"{one.slug}-or-{other.slug}", title=title, says=says, idle=one.idle and other.idle)


def _shows_numbers(mistake: KnownMistake, aspect: Aspect, key: ExerciseKey) -> bool:
    """Does the mistake show in this aspect by numbers that cannot be there by chance?"""
    if aspect.side and aspect.name != LEFT_ALONE:
        return False
    outcome = mistake.outcomes[aspect.name]
    return outcome.state == ANSWERED and distinctive(outcome.tensors, key.reference[aspect.name].tensors, aspect)


def _count_wrong(mistake: KnownMistake, aspect: Aspect, key: ExerciseKey) -> int:
    """How many numbers of the mistake are wrong, gradients aside: these follow from the values."""
    goals, mistaken = (one[aspect.name].tensors for one in (key.reference, mistake.outcomes))
    pairs = [(t, goals[n]) for n, t in mistaken.items() if "gradient" not in n and t.shape == goals.get(n, t).shape]
    return sum(int((~aspect.tolerance.near(*pair)).sum()) for pair in pairs)


# ------------------------------------------------------------------------------------------------ layout


def _laid_out(comparison: _Comparison, recognised: Explained, messages: Mapping[str, str]) -> Verdict:
    """The verdict, aspect by aspect, with its points."""
    exercise, key, right = comparison.exercise, comparison.key, comparison.right
    computed = _computed(exercise, right, recognised, key)
    lines = []
    for a in exercise.aspects:
        waits = a.name in right and (a.side or exercise.mend) and not computed
        counts = a.name in right and not waits
        pair = None if a.name in right else _pair(a, comparison.outcomes[a.name], key.reference[a.name])
        says = (HAD_BEFORE if exercise.mend else WAITS) if waits else messages.get(a.name, "")
        lines.append(AspectVerdict(a.name, a.points if counts else 0, a.points, counts, says, waits, pair))
    mistakes = list({mistake.slug: mistake for mistake in recognised.values()}.values())
    return Verdict(
        exercise.name,
        WRONG if comparison.wrong else RIGHT,
        sum(line.points for line in lines),
        exercise.points,
        tuple(lines),
        mistakes=tuple(mistake.slug for mistake in mistakes),
        titles=tuple(mistake.title for mistake in mistakes),
        words=tuple(mistake.says for mistake in mistakes),
        explained=bool(recognised) and len(recognised) == len(comparison.wrong),
    )


def _pair(aspect: Aspect, yours: Outcome, target: Outcome) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The first slices of target and result that differ, for a picture, where all shapes are right."""
    if not aspect.picture or yours.state != ANSWERED:
        return None
    pairs = [(goal, yours.tensors.get(name)) for name, goal in target.tensors.items() if not name.startswith(LARGER)]
    both = [(goal, mine) for goal, mine in pairs if mine is not None and mine.shape == goal.shape]
    if len(both) < len(pairs):
        return None
    goal, mine = next((pair for pair in both if not close(pair[1], pair[0], aspect)), both[0])
    while goal.dim() > 2:
        slices = list(zip(goal, mine, strict=True))
        goal, mine = next((pair for pair in slices if not close(pair[1], pair[0], aspect)), slices[0])
    return torch.atleast_2d(goal).double(), torch.atleast_2d(mine).double()


# ------------------------------------------------------------------------------------------------- words


def _messages(comparison: _Comparison, recognised: Explained, similar: Explained) -> dict[str, str]:
    """What to say beside each aspect that fails. A cause is explained once, where it is met first."""
    outcomes, reference = comparison.outcomes, comparison.key.reference
    values_raise = any(outcomes[a.name].state == RAISED for a in _values(comparison.exercise))
    misnamed = any(_names_differ(outcomes[a.name], reference[a.name]) for a in comparison.exercise.aspects)
    explained = {**_at_first_cross(comparison, recognised), **recognised}
    first = next((a.name for a in comparison.wrong if not a.side), "")
    unused = _unused(comparison)
    messages: dict[str, str] = {}
    causes: set[str] = set()
    told = {""}  # of what is not used, it is told once
    raised_above = wrong_above = False
    for aspect in comparison.wrong:
        outcome, target = outcomes[aspect.name], reference[aspect.name]
        cause = ""
        if aspect.name in explained:
            message = explained[aspect.name].says
        elif outcome.state == RAISED:
            cause = outcome.says  # the same error may come from another line, or with other words around it
            if aspect.side and values_raise and raised_above:
                message = SAME_CAUSE
            else:  # an error that the values raise too has nothing to do with a side aspect
                own = aspect.side and aspect.name != LEFT_ALONE and not values_raise
                message = _error_message(outcome, aspect.missed if own else "")
            raised_above = True
        elif misnamed and not aspect.side and outcome.state == ANSWERED:
            message = MISNAMED
        elif wrong_above and outcome.state == ANSWERED and _is_gradients_of_values(target):
            message = f"{unused} {OF_WRONG_VALUES}" if unused not in told else OF_WRONG_VALUES
        else:
            about_the_values = aspect.missed or _holds_gradients(target)  # and presumes that those above are right
            presumes = bool(about_the_values) and not aspect.side and aspect.name != first
            message, of_a_kind = difference(replace(aspect, missed="") if presumes else aspect, outcome, target)
            if presumes and not of_a_kind:
                message = MAY_BE_THE_SAME
            elif aspect.name in similar and not of_a_kind:
                message = LIKE.format(similar[aspect.name].title)
            elif unused not in told and not of_a_kind:
                message = f"The numbers are wrong. {unused}"
                told.add(unused)
            elif not of_a_kind and aspect.name == first:
                cut = _is_gradients_of_values(target)
                message += f" {CUT_OR_WRONG}" if cut else _elsewhere(comparison, aspect)
        wrong_above |= not aspect.side and outcome.state == ANSWERED
        messages[aspect.name] = SAME_CAUSE if (cause or message) in causes else message
        causes |= {cause or message} - {MAY_BE_THE_SAME}
    return messages


def _elsewhere(comparison: _Comparison, aspect: Aspect) -> str:
    """In which aspects the values are right, for a sentence that does not say what is wrong with these."""
    right = [
        f"*{a.name}*"
        for a in _values(comparison.exercise)
        if a.name in comparison.right
        and not any(name.startswith((NAMES, "gradient ")) for name in comparison.key.reference[a.name].tensors)
    ]
    return f" {HOLDS_ELSEWHERE.format(listed(right), f'*{aspect.name}*')}" if right else ""


def _unused(comparison: _Comparison) -> str:
    """On what the result does not seem to depend, by its gradient, in a sentence; "" where there is nothing."""
    pairs = [(comparison.outcomes[a.name], comparison.key.reference[a.name]) for a in comparison.wrong]
    cut = (without_gradient(*pair) for pair in pairs if pair[0].state == ANSWERED)
    return next((f"{sentence}, as if your result did not depend on it." for sentence in cut if sentence), "")


def _at_first_cross(comparison: _Comparison, recognised: Explained) -> Explained:
    """The first aspect that fails, with the mistake that is recognised further down, where that spoils it too.

    Its numbers may differ from the mistake's there, in one of several cases; the cause is the same.
    """
    first = comparison.wrong[0] if comparison.wrong else None
    if first is None or not recognised or comparison.outcomes[first.name].state != ANSWERED or first.side:
        return {}
    mistake = next(iter(recognised.values()))
    spoilt = not same_outcome(mistake.outcomes[first.name], comparison.key.reference[first.name], first)
    return {first.name: mistake} if spoilt else {}


def _error_message(outcome: Outcome, missed: str) -> str:
    where = f" ({outcome.where})" if outcome.where else ""
    error = outcome.says.partition(" Hint: ")[0]  # torch's hints are for those who debug torch
    raised = f"Your code raised {error.rstrip('.!')}{where}."
    if re.search(r"\bmeta\b", error):
        raised += META
    says = missed or meaning(error)
    return f"{says} {raised}" if says else raised


def _names_differ(yours: Outcome, target: Outcome) -> bool:
    """Did a module's parameters come out with other names or shapes than the reference's?"""
    mine, goal = yours.tensors.get(NAMES), target.tensors.get(NAMES)
    return mine is not None and goal is not None and not torch.equal(mine, goal)
