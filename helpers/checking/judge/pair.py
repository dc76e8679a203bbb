"""A tensor beside the one that is right: how the two are compared, and where in them something is.

Axes go by the names that the docstring has for them, and indices count from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from helpers.exercises.exercise import Aspect
from helpers.exercises.tolerance import WHOLE, widened
from helpers.text import listed

ENOUGH = 3  # numbers that agree beyond those that were fitted
MOST_DIGITS = 16  # of a number in double precision


@dataclass(frozen=True)
class Pair:
    """A tensor and its target, of one shape."""

    yours: torch.Tensor
    target: torch.Tensor
    aspect: Aspect
    axes: tuple[str, ...] = ()
    """The names of its axes, as many as there are, or none."""

    @cached_property
    def mine(self) -> torch.Tensor:
        """Yours in double precision."""
        return widened(self.yours)

    @cached_property
    def goal(self) -> torch.Tensor:
        """The target in double precision."""
        return widened(self.target)

    @cached_property
    def near(self) -> torch.Tensor:
        """Which entries are right, by the aspect's tolerance."""
        return self.aspect.tolerance.near(self.yours, self.target)

    @property
    def fractions(self) -> bool:
        """Are these numbers, and not ids or truth values?"""
        return self.target.is_floating_point()

    @cached_property
    def finite(self) -> bool:
        """Are all numbers of both finite?"""
        return bool(torch.isfinite(self.mine).all() and torch.isfinite(self.goal).all())

    @cached_property
    def scale(self) -> float:
        """The largest number of the target."""
        numbers = self.goal[torch.isfinite(self.goal)].abs()
        return numbers.max().item() if numbers.numel() else 0.0

    @cached_property
    def varied(self) -> bool:
        """Does the target hold enough different numbers to tell one relation from another?"""
        sizes = self.goal[torch.isfinite(self.goal)]
        return sizes[sizes.abs() > 1e-3 * self.scale].unique().numel() >= ENOUGH

    def alike(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Are two tensors the same but for rounding? Nothing is broadcast, NaN is like nothing."""
        return one.shape == other.shape and bool(self.entries_alike(one, other).all())

    def entries_alike(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """The same entry by entry."""
        if not self.fractions:
            return (one - other).abs() <= (WHOLE if self.yours.is_floating_point() else 0)
        eps = torch.finfo(self.yours.dtype).eps if self.yours.is_floating_point() else 0.0
        finite = other[torch.isfinite(other)]
        if not finite.numel():
            return one == other
        size, spread = finite.abs().max(), finite.max() - finite.min()
        allowed = max(2e-5, 4 * eps) * other.abs() + max(5e-6, eps) * size
        allowed = allowed.clamp(max=max(1e-4, 4 * eps) * max(spread, 1e-2 * size))
        return (one == other) | ((one - other).abs() <= allowed) & torch.isfinite(one) & torch.isfinite(other)

    def axis(self, place: int) -> str:
        """ "axis t", or "axis 0 (of length 2)" where the docstring has no name for it."""
        return axis_name(place, self.axes, self.goal.shape)

    def several_axes(self, places: Sequence[int]) -> str:
        """ "axis t", "axes b and t"."""
        if len(places) == 1:
            return self.axis(places[0])
        named = all(_has_name(place, self.axes) for place in places)
        return f"axes {listed([self.axes[place] if named else str(place) for place in places])}"

    def entry(self, index: Sequence[int]) -> str:
        """One entry: "[b=0, t=1]", or "[0, 1]" where the axes have no names."""
        if all(_has_name(place, self.axes) for place in range(len(index))):
            return "[" + ", ".join(f"{name}={i}" for name, i in zip(self.axes, index, strict=True)) + "]"
        return "[" + ", ".join(map(str, index)) + "]"

    def region(self, inside: torch.Tensor) -> str:
        """Which part these booleans mark, "on the diagonal", "where t = 3"; "" for no part with a name."""
        shape = inside.shape
        if inside.all():
            return "everywhere"
        if inside.dim() >= 2 and min(shape[-2:]) > 2:
            row, column = torch.arange(shape[-2])[:, None], torch.arange(shape[-1])
            for part, words in (
                (column == row, "on the diagonal of the last two axes"),
                (column > row, "above the diagonal of the last two axes"),
                (column < row, "below the diagonal of the last two axes"),
                (column != row, "off the diagonal of the last two axes"),
            ):
                if torch.equal(inside, part.expand(shape)):
                    return words
        for place in range(inside.dim()):
            along = inside.movedim(place, 0).reshape(shape[place], -1)
            whole = along.all(dim=1)
            if shape[place] > 1 and torch.equal(whole, along.any(dim=1)):
                name = self.axes[place] if _has_name(place, self.axes) else f"the index of axis {place}"
                return f"where {name} is {indices(whole)}"
        return ""


Detector = Callable[[Pair], str]


def axis_name(place: int, names: Sequence[str], shape: Sequence[int]) -> str:
    """The name of an axis in a sentence: see `Pair.axis`."""
    named = len(names) == len(shape) and _has_name(place, names)
    return f"axis {names[place]}" if named else f"axis {place} (of length {shape[place]})"


def _has_name(place: int, names: Sequence[str]) -> bool:
    """Has this axis a name that is no number and of no other axis?"""
    return len(names) > 0 and not names[place][0].isdigit() and list(names).count(names[place]) == 1


def indices(chosen: torch.Tensor) -> str:
    """The places at which a list of booleans is True: "3", "0, 2 and 4", "3 to 8"."""
    places = chosen.nonzero().flatten().tolist()
    if len(places) > 2 and places[-1] - places[0] == len(places) - 1:
        return f"{places[0]} to {places[-1]}"
    return listed([str(place) for place in places])


def shown(number: float | torch.Tensor, digits: int = 4) -> str:
    """50256 as it is, and 0.123456 as 0.1235."""
    value = float(number)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.0f}" if value == value // 1 and abs(value) < 1e9 else f"{value:.{digits}g}"


def told_apart(one: float | torch.Tensor, other: float | torch.Tensor, digits: int = 4) -> tuple[str, str]:
    """Two different numbers with as many digits as it takes to see how far apart they are: 1.5258 and 1.5263."""
    first, second = float(one), float(other)
    apart = first - second
    while True:
        both = shown(first, digits), shown(second, digits)
        if digits > MOST_DIGITS or not math.isfinite(apart):
            return both
        if abs(float(both[0]) - float(both[1]) - apart) <= abs(apart) / 4:
            return both
        digits += 1


def dtype_name(tensor: torch.Tensor) -> str:
    """ "float32"."""
    return str(tensor.dtype).removeprefix("torch.")
