"""What to say of a wrong outcome that no known mistake explains.

Of one tensor, `KINDS` look for a relation between it and the right one, and `PLACES` say what is right of it. Each is
independent of the others, and the first that holds speaks.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch

from helpers.checking.judge import arrangement, partly_right, relations
from helpers.checking.judge.compare import close
from helpers.checking.judge.pair import ENOUGH, Detector, Pair, axis_name, dtype_name
from helpers.checking.run.answers import NOT_ATTEMPTED, REFUSED, Outcome
from helpers.exercises.exercise import TEXT, Aspect, Kind
from helpers.exercises.tensor_names import (
    RESULT,
    count_results,
    in_larger_case,
    in_words,
    is_first_gradient,
    says_inputs,
)
from helpers.text import counted, listed

SAME = 1e-4  # of the largest number: a relation may be found within what differs by less
LONGEST_LIST = 80  # characters of names; of those beyond it is said how many they are

KINDS: tuple[Detector, ...] = (
    arrangement.rounded,
    arrangement.not_finite,
    arrangement.should_be_infinite,
    arrangement.constant,
    arrangement.truth,
    relations.scaled,
    relations.added,
    relations.softmax_of_the_right,
    arrangement.transposed,
    arrangement.moved,
    arrangement.reordered,
    relations.sums,
    relations.scaled_along,
    relations.same_along,
)
PLACES: tuple[Detector, ...] = (
    partly_right.first_wrong_row,
    partly_right.except_a_constant,
    partly_right.along_an_axis,
    partly_right.beginning,
    partly_right.single_number,
    partly_right.largest_difference,
)


def difference(aspect: Aspect, yours: Outcome, target: Outcome) -> tuple[str, bool]:
    """What is wrong, and whether that names a difference of a kind, not only where the numbers differ."""
    if yours.state == NOT_ATTEMPTED:
        return "This part still raises NotImplementedError.", True
    if yours.state == REFUSED:
        return yours.says, True
    yours, target = _without_larger(yours, target, aspect)
    if not target.tensors:
        return ONLY_LARGER, True
    if yours.tensors.keys() != target.tensors.keys():
        return aspect.missed or _other_things(yours.tensors, target.tensors), True
    wrong = [name for name in target.tensors if not close(yours.tensors[name], target.tensors[name], aspect)]
    mine, goal = yours.tensors[wrong[0]], target.tensors[wrong[0]]
    if aspect.missed and aspect.side:
        return f"{aspect.missed}{'' if len(wrong) == len(target.tensors) else _these('Affected', wrong)}", True
    if aspect.missed:
        return f"{_measured(wrong, yours, target, aspect)[0]} {aspect.missed}", True
    if mine.dtype == goal.dtype == TEXT:
        return _different_names(mine, goal, "module" if aspect.kind is Kind.PARAMETERS else "dict"), True
    if aspect.kind_of(wrong[0]) is Kind.QUESTION:
        answers = ("yes" if number.any() else "no" for number in (mine, goal))
        return "{}{} Of your answer: {}. It has to be: {}.".format(wrong[0][0].upper(), wrong[0][1:], *answers), True
    if sentence := _exchanged(wrong, yours, target, aspect) or _all_numbers(wrong, yours, target, aspect):
        return sentence, True
    if sentence := without_gradient(aspect, yours, target):
        return f"{sentence}{CUT}", True
    return _measured(wrong, yours, target, aspect)


def _measured(wrong: list[str], yours: Outcome, target: Outcome, aspect: Aspect) -> tuple[str, bool]:
    """What is seen of the first tensor that is wrong, which others are, and whether that is a difference of a kind."""
    sentence, of_a_kind = _diagnosed(yours.tensors[wrong[0]], target.tensors[wrong[0]], aspect)
    if aspect.missed:  # something better is known
        sentence = sentence.removeprefix(partly_right.ONLY_NUMBERS)
    return f"{_introduced(wrong[0], sentence, aspect)}{_further_cases(wrong, target, aspect)}", of_a_kind


def _without_larger(yours: Outcome, target: Outcome, aspect: Aspect) -> tuple[Outcome, Outcome]:
    """Both without the projections of the larger case, which say nothing; no tensors where all else is right."""
    small = {name: goal for name, goal in target.tensors.items() if not in_larger_case(name)}
    mine = {name: tensor for name, tensor in yours.tensors.items() if not in_larger_case(name)}
    right = mine.keys() == small.keys() and all(close(mine[name], goal, aspect) for name, goal in small.items())
    return replace(yours, tensors=mine), replace(target, tensors={} if right else small)


ONLY_LARGER = (
    "In a case that is much larger than the others your result is wrong; in all others it is right. Look for something"
    " that is fixed in your code (a length, a number of columns, a bound on the numbers, how often a loop runs), or"
    " that only many entries or large numbers bring out."
)


def without_gradient(aspect: Aspect, yours: Outcome, target: Outcome) -> str:
    """Which gradient is 0 everywhere and should not be, as a sentence without its end; "" for none."""
    for name, goal in target.tensors.items() if aspect.kind is Kind.GRADIENT else ():
        mine = yours.tensors.get(name, goal)
        if is_first_gradient(name) and mine.shape == goal.shape and goal.any() and not mine.any():
            called = in_words(name)
            return f"{called[0].upper()}{called[1:]} is 0 everywhere"
    return ""


WHAT_CUTS = "detach(), .data, no_grad(), item(), or a trip through NumPy or a list of numbers"
CUT = f". It is not used, or something cuts the graph: {WHAT_CUTS}."


# ------------------------------------------------------------------------------------- which of several things


def _introduced(name: str, sentence: str, aspect: Aspect) -> str:
    """A sentence on the tensor of that name, in which it is clear which tensor that is."""
    if name == RESULT:
        return sentence
    called, sentence = in_words(name), f"{sentence[0].lower()}{sentence[1:]}"
    if aspect.is_gradient(name):
        sentence = sentence.replace("your result", "it")
    return f"{called[0].upper()}{called[1:]}: {sentence}"


def _further_cases(wrong: list[str], target: Outcome, aspect: Aspect) -> str:
    """What else of the same aspect is wrong, or what of it is right, where it is not all wrong."""
    right = [name for name in target.tensors if name not in wrong]
    if not right:
        return ""
    if len(wrong) == 1:
        of_results = "case" if all(map(says_inputs, right)) else "result"
        kind = "gradient" if all(map(aspect.is_gradient, right)) else of_results
        return f" The other {kind} is right." if len(right) == 1 else f" All other {kind}s are right."
    return _these("Right", right) if len(right) < len(wrong) else _these("Wrong as well", wrong[1:])


def _these(what: str, names: list[str]) -> str:
    """ " Right: with a batch of one." or the first and how many more, where their names are long."""
    called = [in_words(name) for name in names]
    named = listed(called)
    if len(named) > LONGEST_LIST:
        named = f"{called[0]}, and {len(names) - 1} more"
    if len(named) > LONGEST_LIST:
        return f" {what}: {counted(len(names), 'other case')}."
    return f" {what}: {named}."


def _exchanged(wrong: list[str], yours: Outcome, target: Outcome, aspect: Aspect) -> str:
    """Of two things that are returned, or of two gradients, each is the other."""
    for one, other in itertools.combinations(wrong, 2):
        pairs = [Pair(yours.tensors[a], target.tensors[b], aspect) for a, b in ((one, other), (other, one))]
        alike = (pair.alike(pair.mine, pair.goal) and pair.fractions and pair.finite and pair.varied for pair in pairs)
        if all(alike):
            return f"Two things are exchanged: {in_words(one)} and {in_words(other)}."
    return ""


def _all_numbers(wrong: list[str], yours: Outcome, target: Outcome, aspect: Aspect) -> str:
    """One relation between the numbers of all cases, where each case is a single number."""
    tensors = [[outcome.tensors[name] for name in target.tensors] for outcome in (yours, target)]
    single = all(t.numel() == 1 and t.is_floating_point() for t in (*tensors[0], *tensors[1]))
    if not single or len(wrong) != len(target.tensors) or len(wrong) < ENOUGH:
        return ""
    mine, goal = (torch.stack([t.double().reshape(()) for t in some]) for some in tensors)
    pair = Pair(mine, goal, aspect)
    return _first_of((relations.scaled, relations.added), pair) if pair.varied else ""


# ---------------------------------------------------------------------------------------- names and shapes


_NAME_AND_SHAPE = re.compile(r"(?P<name>\S+) (?P<shape>\(.*?\))(?: (?P<settings>.+))?")


def _different_names(yours: torch.Tensor, target: torch.Tensor, whose: str) -> str:
    """What is missing, not asked for or of another shape, for each of the settings that stand behind the shapes."""
    mine, goal = _by_settings(yours), _by_settings(target)
    settings = dict.fromkeys((*goal, *mine))
    said = (_names_beside(mine.get(each, {}), goal.get(each, {}), whose, each) for each in settings)
    return " ".join(filter(None, said))


def _by_settings(tensor: torch.Tensor) -> dict[str, dict[str, str]]:
    """Of lines such as "norm.bias (8,) with pre_norm=False", the shapes by settings and name."""
    shapes: dict[str, dict[str, str]] = {}
    for line in bytes(tensor.tolist()).decode(errors="replace").split("\n"):
        if found := _NAME_AND_SHAPE.fullmatch(line):
            shapes.setdefault(found["settings"] or "", {})[found["name"]] = found["shape"]
        elif line:
            shapes.setdefault("", {})[line.partition(" ")[0]] = line.partition(" ")[2]
    return shapes


def _names_beside(mine: dict[str, str], goal: dict[str, str], whose: str, settings: str) -> str:
    def called(name: str, shape: str) -> str:
        kind = "a parameter " if whose == "module" else ""
        return f"{kind}{name} (a single number)" if shape == "()" else f"{name} {shape}"

    turned = [name for name in goal if mine.get(name, goal[name]) != goal[name]]
    missing, extra = (
        [called(n, one[n]) for n in sorted(one.keys() - other)] for one, other in ((goal, mine), (mine, goal))
    )
    sentences = []
    if turned:
        shapes = listed([f"{name} has shape {mine[name]} and needs {goal[name]}" for name in turned], 3)
        sentences.append(f"In your {whose}, {shapes}{f', {settings}' if settings else ''}.")
    if missing or extra:
        most = 6 if max(len(missing), len(extra)) <= 6 else 3
        unasked = f"which {'is' if len(extra) == 1 else 'are'} not asked for"
        lacks, has = f"is missing {listed(missing, most)}", f"has {listed(extra, most)}, {unasked}"
        parts = [lacks] * bool(missing) + [has] * bool(extra)
        start = f"{settings[0].upper()}{settings[1:]} your" if settings else "Your"
        sentences.append(f"{start} {whose} {' and '.join(parts)}.")
    return " ".join(sentences)


def _other_things(yours: Mapping[str, torch.Tensor], target: Mapping[str, torch.Tensor]) -> str:
    """Of results that are not as many as they should be, or have other names."""

    def returned(tensors: Mapping[str, torch.Tensor]) -> str:
        if RESULT in tensors:
            return "one tensor"
        count = count_results(tensors)
        return f"a tuple of {count} thing{'s' * (count > 1)}" if count else "a dict"

    if returned(yours) != returned(target):
        return f"Your code returns {returned(yours)}; {returned(target)} is needed."
    missing, extra = (
        listed([n for n in one if n not in other], 3) for one, other in ((target, yours), (yours, target))
    )
    parts = [f"does not give {missing}" if missing else "", f"gives {extra}, not asked for" if extra else ""]
    return f"Your code {' and '.join(filter(None, parts))}."


def _diagnosed(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect) -> tuple[str, bool]:
    """One or two sentences on how `yours` differs from `target`, the most telling difference first.

    And whether they name a difference of a kind.
    """
    axes = aspect.axes.split()
    if yours.shape != target.shape:
        return _wrong_shape(yours, target, aspect, axes), True
    if aspect.dtype and yours.dtype != target.dtype:
        return f"Your result is of type {dtype_name(yours)}; it has to be {dtype_name(target)}.", True
    pair = Pair(yours, target, aspect, tuple(axes) if len(axes) == target.dim() else ())
    off = (pair.mine - pair.goal).abs().max().item() if pair.fractions and pair.finite else math.inf
    same = off <= SAME * pair.scale
    of_a_kind = _first_of((arrangement.rounded,) if same else KINDS, pair)
    sentence = of_a_kind or _first_of(PLACES, pair)  # the last of these always speaks
    if near := partly_right.nearly(pair):
        sentence = f"{near} {sentence.removeprefix(partly_right.ONLY_NUMBERS)}"
    return sentence, bool(of_a_kind)


def _first_of(detectors: Iterable[Detector], pair: Pair) -> str:
    return next(filter(None, (look(pair) for look in detectors)), "")


def _wrong_shape(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect, axes: list[str]) -> str:
    need = _shape(target, axes)
    if yours.dim() != target.dim():
        many = "axes" if yours.dim() != 1 else "axis"
        sentence = f"Your result has {yours.dim()} {many}, of shape {tuple(yours.shape)}; {need} is needed."
        if [n for n in yours.shape if n != 1] == [n for n in target.shape if n != 1]:
            kind = "is missing" if yours.dim() < target.dim() else "is too many"
            sentence += f" An axis of length one {kind}."
        return sentence
    if sorted(yours.shape) == sorted(target.shape):
        return f"Your result has shape {tuple(yours.shape)}: the right sizes in another order. {need} is needed."
    wrong = [place for place in range(target.dim()) if yours.shape[place] != target.shape[place]]
    named = len(axes) == target.dim() and not any(axes[place][0].isdigit() for place in wrong)
    which = [f"axis {axes[place]}" if named else axis_name(place, axes, target.shape) for place in wrong]
    sentence = f"Your result has shape {tuple(yours.shape)}; {need} is needed."
    if len(wrong) == 1:
        along = f" along {which[0]}" if target.dim() > 1 else ""
        if holds := partly_right.one_length_wrong(yours, target, aspect, wrong[0], along):
            return f"{sentence} {holds}"
    return f"{sentence} Look at {listed(list(dict.fromkeys(which)))}." if target.dim() > 1 else sentence


def _shape(target: torch.Tensor, axes: list[str]) -> str:
    if target.dim() == 0:
        return "a single number, of shape (),"
    if len(axes) == target.dim():
        return f"({', '.join(axes)}{',' if len(axes) == 1 else ''}) = {tuple(target.shape)}"
    return f"{tuple(target.shape)}"
