"""How far apart two results may lie and still count as the same. Stated here, once.

    |yours − target| ≤ atol · max(1, largest |target|) + rtol · |target|        entry by entry

Whole numbers and truth values are the same or they are not: among token ids, 50,256 is not 50,257.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

WHOLE = 1e-4  # how far a fraction may lie from the whole number that it is meant to be (a mean of ones, a count)


@dataclass(frozen=True)
class Tolerance:
    """How far apart the entries of two tensors may lie. atol is measured in the target's largest entry."""

    rtol: float
    atol: float

    def near(self, yours: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Entry by entry, a boolean of the target's shape: are they the same? Both of one shape.

        NaN equals NaN and ∞ equals ∞ here, so that a mistake which produces them can be recognised; a reference
        never holds them.
        """
        mine, goal = widened(yours), widened(target)
        if not target.is_floating_point():
            return (mine - goal).abs() <= (WHOLE if yours.is_floating_point() else 0)
        allowed = self.atol * size_of(goal) + self.rtol * goal.abs()
        apart = (mine - goal).abs()  # NaN where an entry is infinite in both, and then nothing is near
        return (mine == goal) | (apart <= allowed) & torch.isfinite(goal) | mine.isnan() & goal.isnan()

    def holds(self, yours: torch.Tensor, target: torch.Tensor) -> bool:
        """Are all entries the same? False where the shapes differ: nothing is broadcast."""
        if yours.shape != target.shape:
            return False
        same = yours.dtype == target.dtype and torch.equal(yours, target)  # to the bit, as most that are near are
        return same or bool(self.near(yours, target).all())


# The same computation on two processors, with other thread counts, or summed in another order: seen were differences
# of 3e-5 where the largest entry is 43. Keys are fresh within this; no verdict is narrower, unless an aspect says so.
MACHINES = Tolerance(rtol=1e-5, atol=1e-5)

# What an answer may be off by: another right way to write it rounds elsewhere, and gradients add up such roundings.
VALUES = Tolerance(rtol=1e-4, atol=1e-5)
GRADIENTS = Tolerance(rtol=1e-3, atol=1e-4)


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in double precision."""
    return tensor.to(torch.float64)


def size_of(target: torch.Tensor) -> float:
    """max(1, the largest finite absolute value): what an absolute tolerance is measured in."""
    finite = target.abs()[torch.isfinite(target.abs())]
    return max(1.0, finite.max().item()) if finite.numel() else 1.0


def between_machines(verdict: Tolerance, dtype: torch.dtype) -> Tolerance:
    """What another machine may make of the same computation, for numbers of this type.

    verdict: what answers are judged with; never wider than that. Numbers of 16 bits are judged as an answer is: with
    eight or eleven bits, one rounding elsewhere is a hundredth or a thousandth.
    """
    if dtype in (torch.float16, torch.bfloat16):
        return verdict
    return Tolerance(min(MACHINES.rtol, verdict.rtol), min(MACHINES.atol, verdict.atol))
