"""The names of an aspect's tensors: how they are made, and what a sentence calls them.

What one call returns, its gradients and its arguments are numbered: "result 1", "gradient 0", "input 2"; a single
result is "result", and the gradient of a parameter "gradient of to_keys.weight". Further inputs of the same aspect have
a name that is said of them, which comes first: "with a batch of one, gradient 0". A probe may name what it collects in
its own words. What a tensor holds is no matter of its name: see `exercise.Kind`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

RESULT, GRADIENT, INPUT = "result", "gradient", "input"
LARGER = "in a much larger case"  # what is said of inputs of whose results there are projections; see `projected`

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
PHRASES = tuple(f"{word} " for word in "with for at in after of on the without before from when where".split())
_NUMBERED = re.compile(rf"(?P<case>.+, )?(?P<what>{RESULT}|{GRADIENT}|{INPUT}) (?P<number>\d+)")


def numbered(what: str, number: int) -> str:
    """The name of a result, a gradient or an input, counted from 0."""
    return f"{what} {number}"


def gradient_of(parameter: str) -> str:
    """The name of a parameter's gradient."""
    return f"{GRADIENT} of {parameter}"


def in_case(said: str, name: str) -> str:
    """The name of a tensor that comes of further inputs. said: of them."""
    return said if name == RESULT else f"{said}, {name}"


def in_larger_case(name: str) -> bool:
    """Is this a tensor of the larger case?"""
    return name == LARGER or name.startswith(f"{LARGER}, ")


def is_first_gradient(name: str) -> bool:
    """Is this a gradient of the first inputs?"""
    return name.startswith(f"{GRADIENT} ")


def count_results(names: Iterable[str]) -> int:
    """Of how many things is this the tuple? 0 where it is none."""
    found = [each for each in map(_NUMBERED.fullmatch, names) if each]
    return sum(each["what"] == RESULT and not each["case"] for each in found)


def in_words(name: str) -> str:
    """What a tensor is called in a sentence: "the gradient for your second input", "at β = 0.7".

    A probe's own words stand after "for", unless they begin with a preposition or an article.
    """
    if name == RESULT:
        return "the first case"
    if found := _NUMBERED.fullmatch(name):
        case, what, number = found["case"] or "", found["what"], int(found["number"])
        which = ORDINALS[number] if number < len(ORDINALS) else f"{number + 1}th"
        of = {GRADIENT: f"the gradient for your {which} input", RESULT: f"the {which} thing that is returned"}
        return f"{case}{of.get(what, f'the {which} input')}"
    if name.startswith(gradient_of("")):
        return f"the {name}"
    name = name.removesuffix(f", {RESULT}")
    return name if name.startswith(PHRASES) else f"for {name}"


def says_inputs(name: str) -> bool:
    """Does the name say on which inputs, and not which of several things?"""
    return name == RESULT or name.startswith(PHRASES) and not name.startswith(("of ", "the "))
