"""An exercise that says once what it is given and what it returns; its aspects say only what they look at.

See `next_token_pairs` of lesson 5 for one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from helpers.exercises import aspects as ready_made
from helpers.exercises.aspects import LARGER, Fault, Inputs, Others, Via, as_is, built, kind_of, together
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Probe

Part = Any  # a constant, or a function of a Draw
Size = int | Callable[[Draw], int]
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

# ------------------------------------------------------------------------------- what an exercise is given


def size(low: int, high: int, of: int = 1) -> Callable[[Draw], int]:
    """A length of an axis, a multiple of `of`: a number in [low, high) times `of`, drawn once a case for its bounds."""
    return lambda draw: of * draw.named(f"size {low} {high}").number(low, high)


def _sizes(draw: Draw, shape: Sequence[Size]) -> list[int]:
    return [each(draw) if callable(each) else each for each in shape]


def normal(*shape: Size, **options: Any) -> Part:
    """Normal numbers; options as of `Draw.normal`."""
    return lambda draw: draw.normal(*_sizes(draw, shape), **options)


def heavy(*shape: Size, **options: Any) -> Part:
    """Numbers of which few are large; options as of `Draw.heavy`."""
    return lambda draw: draw.heavy(*_sizes(draw, shape), **options)


def outliers(*shape: Size) -> Part:
    """Vectors of small normal numbers, in each of which one component is larger, up to 8.

    So a clamp shows, and exp of no dot product of two of them overflows.
    """

    def vectors(draw: Draw) -> torch.Tensor:
        sizes = _sizes(draw, shape)
        place, value = draw.integers(0, sizes[-1], *sizes[:-1], 1), draw.uniform(-8, 8, *sizes[:-1], 1)
        return draw.normal(*sizes, std=0.4).scatter(-1, place, value)

    return vectors


def ints(*shape: Size, low: int = 0, below: int) -> Part:
    """Integers in [low, below)."""
    return lambda draw: draw.integers(low, below, *_sizes(draw, shape))


def integer(low: int, below: int) -> Part:
    """One Python integer in [low, below)."""
    return lambda draw: draw.number(low, below)


def bools(rows: list) -> Part:
    """These truth values."""
    return lambda draw: torch.tensor(rows, dtype=torch.bool, device=draw.device)


def tensor(*values: float) -> Part:
    """These numbers, on one axis."""
    return lambda draw: torch.tensor(values, device=draw.device)


def device(draw: Draw) -> torch.device:
    """The device that an answer is asked to use."""
    return draw.device


def case(*parts: Part) -> Inputs:
    """The arguments of one call. All parts that are functions are drawn, from left to right."""
    return lambda draw: tuple(part(draw) if callable(part) else part for part in parts)


def sized(inputs: Callable[..., Inputs], **sizes: Size) -> Inputs:
    """What `inputs` makes of sizes that are drawn: sized(a_word, b=size(9, 17), d=size(24, 48))."""
    return lambda draw: inputs(**{name: _sizes(draw, (each,))[0] for name, each in sizes.items()})(draw)


# ---------------------------------------------------------------------------- how the answer is called


def module(sizes: Callable[..., tuple[tuple, tuple]], by: Callable[..., Via] = built, **options: object) -> Via:
    """The student's class as a function: of its arguments, `sizes` makes those of the constructor and of the call.

    One module is made for all calls with the same arguments of the constructor, which have to be hashable: what it
    keeps from an earlier call shows. by: makes it. options: go to the constructor too.
    """

    def via(answer: Answer, draw: Draw) -> Callable:
        made = functools.cache(lambda *make: by(*make, **options)(answer, draw))

        def call(*arguments: object) -> object:
            make, inputs = sizes(*arguments)
            return made(*make)(*inputs)

        return call

    return via


def one_of(names: Sequence[str], name: str, via: Via = as_is) -> Via:
    """Of the things that the student's function returns, the one of that name.

    Raises Fault, with what is wrong, where it does not return all of them.
    """

    def chosen(answer: Answer, draw: Draw) -> Callable:
        call = via(answer, draw)
        return lambda *arguments: all_of(names, call(*arguments))[list(names).index(name)]

    return chosen


def each_of(names: Sequence[str]) -> Via:
    """The things that the student's function returns, each by its name."""

    def named(answer: Answer, draw: Draw) -> Callable:
        return lambda *arguments: dict(zip(names, all_of(names, answer(*arguments)), strict=True))

    return named


def all_of(names: Sequence[str], returned: object) -> Sequence:
    """What was returned, where it is as many things as there are names. Raises Fault where it is not."""
    if returned is None:
        raise Fault("Your code returns None. Is there a return at its end?")
    if not isinstance(returned, (tuple, list)) or len(returned) != len(names):
        shown = kind_of(returned)
        if isinstance(returned, torch.Tensor):
            shown = f"one tensor of shape {tuple(returned.shape)}"
        elif isinstance(returned, (tuple, list)):
            shown = f"{shown} of {len(returned)}"
        raise Fault(
            f"Your function has to return {COUNTS[len(names)]} things, `{', '.join(names)}`, in that order; it returns"
            f" {shown}."
        )
    return returned


# ------------------------------------------------------------------------------------------- its aspects


def with_larger(probe: Probe, larger: Probe) -> Probe:
    """A probe that is written out, and beside its results projections of those of `larger`, in a much larger case."""

    def both(answer: Answer, draw: Draw) -> object:
        further = {LARGER: lambda drawn: (answer, drawn)}
        return together(probe(answer, draw), further, draw, lambda arguments: larger(*arguments))

    return both


@dataclasses.dataclass(frozen=True)
class Unbound:
    """An aspect that takes from its exercise what it does not say itself."""

    kind: Callable[..., Aspect]
    """Makes the aspect."""
    points: float
    of: str = ""
    """Which of the things that are returned it looks at; "" for all."""
    policy: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What it says."""


def _unbound(kind: Callable[..., Aspect]) -> Callable[..., Unbound]:
    def make(points: float, *, of: str = "", **policy: Any) -> Unbound:
        return Unbound(kind, points, of, policy)

    return make


values = _unbound(ready_made.values)
gradient = _unbound(ready_made.gradient)
input_left_alone = _unbound(ready_made.input_left_alone)
any_device = _unbound(ready_made.any_device)
parameters = _unbound(ready_made.parameters)


def exercise(
    name: str,
    *,
    given: Inputs | None = None,
    also: Others | None = None,
    larger: Inputs | None = None,
    via: Via = as_is,
    returns: Sequence[str] = (),
    aspects: Sequence[Unbound | Aspect],
    **about: Any,
) -> Exercise:
    """An exercise whose aspects are tried on `given`, called by `via`, unless they say otherwise.

    also, larger: further cases of those `values` that have no `given` of their own (see `aspects.values`).
    returns: names of the things that the answer returns, in their order. about: the other fields of `Exercise`.
    """

    def bound(each: Unbound | Aspect) -> Aspect:
        if isinstance(each, Aspect):
            return each
        policy = dict(each.policy)
        if each.of:
            policy["via"] = one_of(returns, each.of, policy.get("via", via))
        policy.setdefault("via", via)
        if each.kind is ready_made.parameters:
            return each.kind(each.points, **policy)
        if each.kind is ready_made.values:
            if each.of:
                policy.setdefault("name", each.of)
            if "given" not in policy:
                policy = {"also": also, "larger": larger, **policy}
        return each.kind(each.points, policy.pop("given", given), **policy)

    return Exercise(name, aspects=tuple(map(bound, aspects)), **about)
