"""When two results count as the same."""

from __future__ import annotations

import torch

from helpers.checking.answers import ANSWERED, RAISED, Outcome
from helpers.exercises.exercise import Aspect


def close(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect) -> bool:
    """Same shape (nothing is broadcast), and every entry within the aspect's tolerance.

    NaN equals NaN and ∞ equals ∞ here, so that a mistake which produces them can be recognised; a
    reference never holds them.
    """
    if yours.shape != target.shape:
        return False
    if aspect.dtype and yours.dtype != target.dtype:
        return False
    if yours.is_complex() != target.is_complex():
        return False
    mine, goal = widened(yours), widened(target)
    return torch.allclose(mine, goal, rtol=aspect.rtol, atol=aspect.atol * size_of(goal), equal_nan=True)


def same_outcome(yours: Outcome, theirs: Outcome, aspect: Aspect) -> bool:
    """Did both come to the same: the same tensors, or the same error in the same words?"""
    if yours.state != theirs.state:
        return False
    if yours.state != ANSWERED:
        return yours.says == theirs.says if yours.state == RAISED else yours.says[:60] == theirs.says[:60]
    if yours.tensors.keys() != theirs.tensors.keys():
        return False
    return all(close(tensor, theirs.tensors[name], aspect) for name, tensor in yours.tensors.items())


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in double precision."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def size_of(target: torch.Tensor) -> float:
    """max(1, the largest finite absolute value): what an absolute tolerance is measured in."""
    finite = target.abs()[torch.isfinite(target.abs())]
    return max(1.0, finite.max().item()) if finite.numel() else 1.0
