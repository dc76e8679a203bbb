"""What to say beside each aspect that fails: the first of `RULES` that has something to say speaks.

A rule looks at one failure and at what was said of those above it, and returns a sentence, or "" where it does not
apply. Order matters: a new rule goes before those whose words its own shall replace.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import torch

from helpers.checking.judge.behaviour import other_calls, other_dependence
from helpers.checking.judge.compare import same_outcome
from helpers.checking.judge.diagnosis import WHAT_CUTS, without_gradient
from helpers.checking.judge.diagnosis import difference as difference_of
from helpers.checking.judge.partly_right import ONLY_NUMBERS
from helpers.checking.judge.recognition import (
    Comparison,
    Explained,
    aspects_with_other_values,
    cases_against,
    lost_aspects,
)
from helpers.checking.run.answers import ANSWERED, RAISED, Outcome
from helpers.exercises.exercise import TEXT, Aspect, Kind
from helpers.exercises.tensor_names import RESULT, in_words, says_inputs
from helpers.text import listed

SAME_CAUSE = "The same cause as above."
MAY_BE_THE_SAME = "This may have the same cause as above: look there first."
OF_WRONG_VALUES = "Some results above are wrong, so these gradients are too: fix the results first."
HOLDS_ELSEWHERE = " Your answer is right in {}. What is different about {}?"
CUT_OR_WRONG = (
    f" Look for a part of the graph that is cut ({WHAT_CUTS}), and whether your result is right on such inputs."
)
CUT_IN_PART = f" All values are right: look for a part of the graph that is cut ({WHAT_CUTS})."
LIKE = (
    "Here your numbers are those of a known mistake: {}. But your answer is right in {}, where that mistake fails: you"
    " make only a part of it, or something else gives the same numbers here."
)
GRADIENTS_LIKE = (
    "These gradients are those of a known mistake: {}. Your results are not, so you make another one as well, or"
    " something else gives the same gradients."
)
LIKE_HERE = (
    "Here your numbers are those of a known mistake: {}. In {} they are not, so you make another one, or one more."
)
WRONG_NUMBERS = "The numbers are wrong."
MISNAMED = (
    "The check fills your module with weights by their names, so the numbers cannot be right before the names and "
    "shapes of its parameters are."
)
META = " (`meta` is the check's stand-in for a GPU.)"
EXPLAINED_ERRORS = ("RuntimeError", "IndexError", "ValueError", "TypeError", "AttributeError", "InductorError")
_MEANINGS = tomllib.loads(Path(__file__).with_name("error_words.toml").read_text(encoding="utf-8"))["meaning"]


@dataclass(frozen=True)
class Failure:
    """An aspect that fails, with its outcome and the right one."""

    aspect: Aspect
    outcome: Outcome
    target: Outcome
    later: bool
    """A value aspect above it fails too."""

    @cached_property
    def presumes(self) -> bool:
        """Is what would be said of its values, or of gradients, so only where the values above are right?"""
        return self.later and bool(self.aspect.missed or any(map(self.aspect.is_gradient, self.target.tensors)))

    @cached_property
    def difference(self) -> tuple[str, bool]:
        """How the outcome differs from the right one, and whether that is of a kind, and not only where numbers do."""
        return self.measured if self.presumes else difference_of(self.aspect, self.outcome, self.target)

    @cached_property
    def measured(self) -> tuple[str, bool]:
        """The same without what the aspect says of whatever is wrong in it."""
        return difference_of(replace(self.aspect, missed=""), self.outcome, self.target)

    @property
    def only_numbers(self) -> bool:
        """Is no more known of it than that its values, which are no gradients, are wrong numbers?"""
        values = not self.aspect.side and not any(map(self.aspect.is_gradient, self.target.tensors))
        return values and self.outcome.state == ANSWERED and not self.measured[1]

    @cached_property
    def size(self) -> int:
        """How many numbers the right outcome holds."""
        return sum(tensor.numel() for tensor in self.target.tensors.values())


@dataclass
class Context:
    """What is known of the whole answer, and what has been said so far, from above to below."""

    comparison: Comparison
    explained: Explained
    """By aspect, the known mistakes that are named."""
    similar: Explained
    """Those whose numbers show there."""
    misplaced: str = ""
    """That the answer takes its arguments in another order than the check passes them, in a sentence; or ""."""
    above: list[Failure] = field(default_factory=list)
    """The failures of which something has been said."""
    causes: set[str] = field(default_factory=set)
    """What was said of them, or their errors."""

    def message(self, failure: Failure) -> str:
        """What to say of the next failure. A cause is explained once, where it is met first."""
        sentence = next(filter(None, (rule(failure, self) for rule in RULES)), "")
        # The same error may come from another line, or with other words around it
        cause = (failure.outcome.says if self.raised(failure) else "") or sentence
        repeated = cause in self.causes
        self.causes |= {cause} - {MAY_BE_THE_SAME}
        self.above.append(failure)
        return SAME_CAUSE if repeated else sentence

    def raised(self, failure: Failure) -> bool:
        """Did it raise, and is no known mistake the reason?"""
        return failure.outcome.state == RAISED and failure.aspect.name not in self.explained

    @property
    def unused(self) -> str:
        """On what the result does not seem to depend, in a sentence; "" where there is nothing, or it has been said."""
        return "" if f"{WRONG_NUMBERS} {self._unused}" in self.causes else self._unused

    @cached_property
    def _unused(self) -> str:
        cut = (without_gradient(*each) for each in self.comparison.failures if each[1].state == ANSWERED)
        return next((f"{sentence}, as if your result did not depend on it." for sentence in cut if sentence), "")

    @cached_property
    def values_raise(self) -> bool:
        """Does a value aspect raise?"""
        return any(outcome.state == RAISED for aspect, outcome, _ in self.comparison.failures if not aspect.side)


def messages(comparison: Comparison, recognised: Explained, similar: Explained, misplaced: str = "") -> dict[str, str]:
    """What to say beside each aspect that fails, by its name. misplaced: see `Context`."""
    failures, values_above = [], False
    for aspect, outcome, target in comparison.failures:
        failures.append(Failure(aspect, outcome, target, values_above and not aspect.side))
        values_above |= not aspect.side
    context = Context(comparison, {**_at_first_cross(comparison, recognised), **recognised}, similar, misplaced)
    return {failure.aspect.name: context.message(failure) for failure in failures}


# ------------------------------------------------------------------------------------------------- rules


def misplaced_arguments(failure: Failure, context: Context) -> str:
    """Arguments in another order: what was computed is of other inputs. Of the names of parameters more is told."""
    if not context.misplaced or context.above:
        return MAY_BE_THE_SAME if context.misplaced else ""
    named = failure.aspect.kind is Kind.PARAMETERS and failure.outcome.state == ANSWERED
    return f"{context.misplaced} {failure.difference[0]}" if named else context.misplaced


def named_mistake(failure: Failure, context: Context) -> str:
    """A known mistake explains it."""
    mistake = context.explained.get(failure.aspect.name)
    return mistake.says if mistake else ""


def error(failure: Failure, context: Context) -> str:
    """An error, what it means and where it was raised. One that the values raise too is shown once."""
    aspect = failure.aspect
    if not context.raised(failure):
        return ""
    if aspect.side and context.values_raise and any(map(context.raised, context.above)):
        return SAME_CAUSE
    own = aspect.side and aspect.kind is not Kind.ARGUMENT and not context.values_raise
    return _error_message(failure.outcome, aspect.missed if own else "")


def other_names(failure: Failure, context: Context) -> str:
    """Values of a module whose weights could not be filled in by name."""
    answered = failure.outcome.state == ANSWERED and not failure.aspect.side
    return MISNAMED if answered and any(_names_differ(*each) for each in context.comparison.failures) else ""


def gradients_of_wrong_values(failure: Failure, context: Context) -> str:
    """Gradients of values that are wrong as well."""
    above = any(each.outcome.state == ANSWERED and not each.aspect.side for each in context.above)
    if not above or failure.outcome.state != ANSWERED or failure.aspect.kind is not Kind.GRADIENT:
        return ""
    return f"{context.unused} {similar_mistake(failure, context) or OF_WRONG_VALUES}".lstrip()


def difference_of_a_kind(failure: Failure, context: Context) -> str:
    """A difference that has a name: a factor, an exchange of axes, another shape; and a known mistake that gives it."""
    difference, of_a_kind = failure.difference
    return f"{difference} {similar_mistake(failure, context)}".rstrip() if of_a_kind else ""


def other_behaviour(seen: Callable[[Outcome, Outcome], str], failure: Failure, context: Context) -> str:
    """What an answer does otherwise than the solution, before what its numbers show. Said once.

    seen: tells it of the outcome and the right one.
    """
    fact = seen(failure.outcome, failure.target)
    if not fact or fact in context.causes or failure.aspect.side or failure.outcome.state != ANSWERED:
        return ""
    context.causes.add(fact)
    numbers = difference_of_a_kind(failure, context) or difference_in_numbers(failure, context)
    return f"{fact} {numbers.removeprefix(ONLY_NUMBERS)}"


def presumably_the_same(failure: Failure, context: Context) -> str:
    """Nothing but wrong numbers, where what could be said presumes that the values above are right.

    Of fewer numbers than are wrong above it is said all the same: nobody should look there first.
    """
    if not failure.presumes:
        return ""
    above = [each for each in context.above if not each.aspect.side and each.aspect.kind is not Kind.GRADIENT]
    unknown = all(each.only_numbers and each.aspect.name not in context.explained for each in (*above, failure))
    if unknown and failure.size < min((each.size for each in above), default=0):
        return difference_of(failure.aspect, failure.outcome, failure.target)[0]
    return MAY_BE_THE_SAME


def similar_mistake(failure: Failure, context: Context) -> str:
    """The numbers of a known mistake that cannot have been made as a whole."""
    mistake = context.similar.get(failure.aspect.name)
    if mistake is None:
        return ""
    if failure.aspect.kind is Kind.GRADIENT:
        return GRADIENTS_LIKE.format(mistake.title)
    comparison = context.comparison
    lost = lost_aspects(comparison.exercise, mistake, comparison.key)
    right = [f"*{a.name}*" for a in comparison.exercise.aspects if a.name in lost & comparison.right]
    if not right and (others := aspects_with_other_values(comparison, mistake)):
        return LIKE_HERE.format(mistake.title, listed([f"*{name}*" for name in others]))
    if not right:
        right = [f"a case of the same kind, {in_words(cases_against(comparison, mistake)[0])}"]
    return LIKE.format(mistake.title, listed(right))


def nothing_depends_on_it(failure: Failure, context: Context) -> str:
    """Wrong numbers, and a gradient that is 0 everywhere. Said once."""
    return f"{WRONG_NUMBERS} {context.unused}" if context.unused else ""


def difference_in_numbers(failure: Failure, context: Context) -> str:
    """Where the numbers differ, and of the first wrong values, in which aspects the values are right."""
    difference, _ = failure.difference
    if failure.later or failure.aspect.side:
        return difference
    if failure.aspect.kind is Kind.GRADIENT:
        all_right = all(aspect.side or aspect.kind is Kind.GRADIENT for aspect in context.comparison.wrong)
        return f"{difference}{CUT_IN_PART if all_right else CUT_OR_WRONG}"
    reference = context.comparison.key.reference
    right = [f"*{a.name}*" for a in context.comparison.right_values if _shows_values(a, reference[a.name])]
    elsewhere = HOLDS_ELSEWHERE.format(listed(right), f"*{failure.aspect.name}*")
    return f"{difference}{elsewhere if right else ''}"


RULES = (
    misplaced_arguments,
    named_mistake,
    error,
    other_names,
    gradients_of_wrong_values,
    partial(other_behaviour, other_calls),
    difference_of_a_kind,
    partial(other_behaviour, other_dependence),
    presumably_the_same,
    similar_mistake,
    nothing_depends_on_it,
    difference_in_numbers,
)


# ----------------------------------------------------------------------------------------------- what rules ask


def _at_first_cross(comparison: Comparison, recognised: Explained) -> Explained:
    """The first aspect that fails, with the mistake that is recognised further down, where its main case shows it too.

    In further cases its numbers may differ from the mistake's; the cause is the same.
    """
    first = comparison.wrong[0] if comparison.wrong else None
    if first is None or not recognised or first.side:
        return {}
    mistake = next(iter(recognised.values()))
    yours, mistaken, right = (
        _main_case(one[first.name]) for one in (comparison.outcomes, mistake.outcomes, comparison.key.reference)
    )
    answered = comparison.outcomes[first.name].state == ANSWERED
    shows = answered and same_outcome(yours, mistaken, first) and not same_outcome(yours, right, first)
    return {first.name: mistake} if shows else {}


def _main_case(outcome: Outcome) -> Outcome:
    """The outcome without the cases that are named."""
    main = {name: tensor for name, tensor in outcome.tensors.items() if name == RESULT or not says_inputs(name)}
    return replace(outcome, tensors=main)


def _error_message(outcome: Outcome, missed: str) -> str:
    where = f" ({outcome.where})" if outcome.where else ""
    error = outcome.says.partition(" Hint: ")[0]  # torch's hints are for those who debug torch
    raised = f"Your code raised {error.rstrip('.!')}{where}."
    if re.search(r"\bmeta\b", error):
        raised += META
    return f"{missed or _meaning(error)} {raised}".lstrip()


def _meaning(error: str) -> str:
    """What an error of torch ("RuntimeError: ...") means; "" for one that is not known or says it itself."""
    kind, _, text = error.partition(": ")
    known = (each["words"] for each in _MEANINGS if kind in EXPLAINED_ERRORS and re.search(each["pattern"], text))
    return next(known, "")


def _names_differ(aspect: Aspect, yours: Outcome, target: Outcome) -> bool:
    """Did a module's parameters come out with other names or shapes than the reference's?"""
    texts = ((yours.tensors.get(name), goal) for name, goal in target.tensors.items() if goal.dtype == TEXT)
    return aspect.kind is Kind.PARAMETERS and any(m is not None and not torch.equal(m, goal) for m, goal in texts)


def _shows_values(aspect: Aspect, target: Outcome) -> bool:
    """Does it hold results, and no names or gradients of them?"""
    return aspect.kind is not Kind.GRADIENT and not any(t.dtype == TEXT for t in target.tensors.values())
