"""When two results count as the same. How far apart numbers may lie stands in `exercises.tolerance`."""

from __future__ import annotations

import torch

from helpers.checking.answers import ANSWERED, RAISED, Outcome
from helpers.exercises.exercise import Aspect
from helpers.exercises.tolerance import between_machines


def close(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect) -> bool:
    """Same shape (nothing is broadcast), and every entry within the aspect's tolerance."""
    if aspect.dtype and yours.dtype != target.dtype:
        return False
    return yours.is_complex() == target.is_complex() and aspect.tolerance.holds(yours, target)


def same_outcome(yours: Outcome, theirs: Outcome, aspect: Aspect) -> bool:
    """Did both come to the same: the same tensors, or the same error in the same words?"""
    if yours.state != theirs.state:
        return False
    if yours.state != ANSWERED:
        return yours.says == theirs.says if yours.state == RAISED else yours.says[:60] == theirs.says[:60]
    if yours.tensors.keys() != theirs.tensors.keys():
        return False
    return all(close(tensor, theirs.tensors[name], aspect) for name, tensor in yours.tensors.items())


def same_on_another_machine(shipped: Outcome, made: Outcome, aspect: Aspect) -> bool:
    """Can both have come from the same code, on two machines?

    Of an error its kind is compared: its words are Python's or torch's, and differ from version to version.
    """
    if shipped.state != made.state or shipped.tensors.keys() != made.tensors.keys():
        return False
    if shipped.state == RAISED:
        return _kind(shipped.says) == _kind(made.says)
    if shipped.state != ANSWERED:
        return shipped.says == made.says
    return all(
        tensor.dtype == made.tensors[name].dtype
        and between_machines(aspect.tolerance, tensor.dtype).holds(made.tensors[name], tensor)
        for name, tensor in shipped.tensors.items()
    )


def _kind(says: str) -> str:
    return says.partition(":")[0]
