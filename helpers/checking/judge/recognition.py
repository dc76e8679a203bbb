"""Which aspects of an answer hold, and which known mistakes explain the others. Needs only data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

from helpers.checking.judge.compare import ENOUGH, close, distinctive, same_outcome
from helpers.checking.judge.keys import ExerciseKey, KnownMistake, Outcomes
from helpers.checking.run.answers import ANSWERED, Answer, Outcome
from helpers.exercises import Exercise
from helpers.exercises.exercise import UNCHANGED, Aspect, Kind
from helpers.exercises.tensor_names import in_larger_case

Explained = Mapping[str, KnownMistake]  # by aspect


def unexplained(exercise: Exercise, answer: Answer, key: ExerciseKey) -> list[str]:
    """The names of the aspects whose outcomes are not the reference's; none where known mistakes explain them all."""
    comparison = Comparison(exercise, answer.outcomes, key)
    explained, _ = recognise(comparison)
    names = [aspect.name for aspect in comparison.wrong]
    return names if explained.keys() < set(names) else []


@dataclass(frozen=True)
class Comparison:
    """An answer's outcomes beside the key's."""

    exercise: Exercise
    outcomes: Outcomes
    key: ExerciseKey

    @cached_property
    def right(self) -> Set[str]:
        """The names of the aspects that hold."""
        return _agreeing(self.exercise, self.outcomes, self.key.reference)

    @property
    def wrong(self) -> list[Aspect]:
        """The aspects that fail."""
        return [aspect for aspect in self.exercise.aspects if aspect.name not in self.right]

    @property
    def failures(self) -> list[tuple[Aspect, Outcome, Outcome]]:
        """The aspects that fail, each with the answer's outcome and the right one."""
        return [(aspect, self.outcomes[aspect.name], self.key.reference[aspect.name]) for aspect in self.wrong]

    @property
    def right_values(self) -> list[Aspect]:
        """The value aspects that hold."""
        return [aspect for aspect in values_of(self.exercise) if aspect.name in self.right]


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
    values = _names(values_of(exercise))
    return values & lost_aspects(exercise, bug, key) if bug else values


def earns_sides(exercise: Exercise, mistake: KnownMistake, key: ExerciseKey) -> bool:
    """Does an answer with this mistake get the points of side aspects?"""
    lost = lost_aspects(exercise, mistake, key)
    return was_computed(exercise, _names(exercise.aspects) - lost, key)


def was_computed(exercise: Exercise, right: Set[str], key: ExerciseKey) -> bool:
    """Is something right that cannot be guessed, so that what can be guessed pays as well?"""
    return bool(right & (_spoilt_by_bug(exercise, key) if exercise.fixes_bug else _names(values_of(exercise))))


def values_of(exercise: Exercise) -> list[Aspect]:
    """The aspects whose right tensors cannot be guessed."""
    return [aspect for aspect in exercise.aspects if not aspect.side]


def _names(aspects: Iterable[Aspect]) -> set[str]:
    return {aspect.name for aspect in aspects}


# --------------------------------------------------------------------------------------- known mistakes


def recognise(comparison: Comparison) -> tuple[Explained, Explained]:
    """For each aspect that fails, the known mistake that explains it, if one does; and a mistake with its numbers.

    A mistake is named where its numbers show and cannot be there by chance, or where all that it loses shows and no
    other value is wrong (it may say that they are right); never where something holds that it loses. Of those, as few
    as possible shall explain as much as possible: first come mistakes all of whose aspects show, then those that
    explain most. Two that explain the same are both named. Where something speaks against a mistake whose numbers show,
    an aspect or one case of it, they are no more than similar, if they are no gradients and enough of them are wrong.
    A mistake that shows somewhere while most of the values that it loses are not its own is no more than similar
    either: one row that agrees by chance names nothing.
    """
    exercise, outcomes, key = comparison.exercise, comparison.outcomes, comparison.key
    values_right = comparison.right & _names(values_of(exercise))
    values_wrong = _names(values_of(exercise)) - comparison.right
    arguments_right = comparison.right & _names(a for a in exercise.aspects if a.kind is Kind.ARGUMENT)
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
        if aspects_with_other_values(comparison, mistake):
            similar = dict.fromkeys((a.name for a in by_numbers), mistake) | similar
            continue
        if lost & (values_right | arguments_right) or cases_against(comparison, mistake):
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


def aspects_with_other_values(comparison: Comparison, mistake: KnownMistake) -> list[str]:
    """Of the aspects that a mistake loses, those with values that are not its own; [] where most values are its own."""
    lost = lost_aspects(comparison.exercise, mistake, comparison.key)
    failures = [each for each in comparison.failures if each[0].name in lost and not each[0].side]
    answered = [each for each in failures if each[0].kind is not Kind.GRADIENT and each[1].state == ANSWERED]
    found: dict[str, bool] = {}
    own = others = 0
    for aspect, yours, target in answered:
        theirs = mistake.outcomes[aspect.name].tensors
        shared = yours.tensors.keys() & theirs.keys() & target.tensors.keys()
        for name in (name for name in shared if not in_larger_case(name)):  # which is one of the others, larger
            as_mistaken = close(yours.tensors[name], theirs[name], aspect)
            own += as_mistaken and not close(theirs[name], target.tensors[name], aspect)
            others += not as_mistaken
            found[aspect.name] = found.get(aspect.name, False) or not as_mistaken
    return [name for name, other in found.items() if other] if own < others else []


def cases_against(comparison: Comparison, mistake: KnownMistake) -> list[str]:
    """The names of the right results, among values not all of which are right, where the mistake's are wrong."""
    found = []
    for aspect, yours, target in comparison.failures:
        for name, goal in target.tensors.items() if not aspect.side else ():
            mine, theirs = yours.tensors.get(name), mistake.outcomes[aspect.name].tensors.get(name)
            if mine is None or theirs is None or aspect.is_gradient(name):
                continue
            if close(mine, goal, aspect) and not close(theirs, goal, aspect):
                found.append(name)
    return found


def _either(one: KnownMistake, other: KnownMistake) -> KnownMistake:
    """Two mistakes that come to the same in all that shows, as one."""
    title = f"{one.title}, or {other.title}"
    says = f"One of two mistakes. Either {one.title}: {one.says} Or {other.title}: {other.says}"
    return replace(one, slug=f"{one.slug}-or-{other.slug}", title=title, says=says)


def _shows_numbers(mistake: KnownMistake, aspect: Aspect, key: ExerciseKey) -> bool:
    """Does the mistake show in this aspect by numbers that cannot be there by chance?"""
    if aspect.side and aspect.kind is not Kind.ARGUMENT:
        return False
    outcome = mistake.outcomes[aspect.name]
    return outcome.state == ANSWERED and distinctive(outcome.tensors, key.reference[aspect.name].tensors, aspect)


def _count_wrong(mistake: KnownMistake, aspect: Aspect, key: ExerciseKey) -> int:
    """How many numbers of the mistake are wrong, gradients aside: these follow from the values."""
    goals, mistaken = (one[aspect.name].tensors for one in (key.reference, mistake.outcomes))
    results = {name: tensor for name, tensor in mistaken.items() if not aspect.is_gradient(name)}
    pairs = [(tensor, goals[name]) for name, tensor in results.items() if tensor.shape == goals.get(name, tensor).shape]
    return sum(int((~aspect.tolerance.near(*pair)).sum()) for pair in pairs)
