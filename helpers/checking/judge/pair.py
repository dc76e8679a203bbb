"""A tensor beside the one that is right, and how the two are compared to find what one has to do with the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from helpers.checking.judge.axis_names import axis_name
from helpers.exercises.exercise import Aspect
from helpers.exercises.tolerance import WHOLE, widened

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
        """The name of an axis in a sentence."""
        return axis_name(place, self.axes, self.goal.shape)


Detector = Callable[[Pair], str]


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
