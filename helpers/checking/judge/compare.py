"""When two results count as the same. `exercises.tolerance` says how far apart numbers may be."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch

from helpers.checking.run.answers import ANSWERED, Outcome
from helpers.exercises.exercise import Aspect
from helpers.exercises.tolerance import size_of, widened


def close(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect) -> bool:
    """Same shape (nothing is broadcast), and every entry within the aspect's tolerance."""
    if aspect.dtype and yours.dtype != target.dtype:
        return False
    return aspect.tolerance.holds(yours, target)


def same_outcome(yours: Outcome, theirs: Outcome, aspect: Aspect) -> bool:
    """Did both come to the same: the same tensors, or the same error in the same words?"""
    if yours is theirs:
        return True
    if yours.state != theirs.state or yours.tensors.keys() != theirs.tensors.keys():
        return False
    if yours.state != ANSWERED:
        return yours.says == theirs.says
    return all(close(tensor, theirs.tensors[name], aspect) for name, tensor in yours.tensors.items())


def distinctive(mistake: Mapping[str, torch.Tensor], reference: Mapping[str, torch.Tensor], aspect: Aspect) -> bool:
    """Do a mistake's numbers say that it was made, where an answer has the same? By chance many answers have a 0.0.

    They do where some tensor that is not the reference's holds at least four numbers that are not all one, or a number
    that does not occur by chance.
    """
    different = (t for name, t in mistake.items() if name not in reference or not close(t, reference[name], aspect))
    return any(_speaks(tensor, aspect) for tensor in different)


ENOUGH = 4
COUNTED = 20  # whole numbers from here on are counts that do not occur by chance


def _speaks(tensor: torch.Tensor, aspect: Aspect) -> bool:
    numbers = widened(tensor).flatten()
    finite = numbers[torch.isfinite(numbers)]
    if numbers.numel() >= ENOUGH:
        alike = 2 * aspect.atol * size_of(numbers) if tensor.is_floating_point() else 0.0  # nearer than answers may be
        if 0 < finite.numel() < numbers.numel() or finite.numel() and (finite.max() - finite.min()) > alike:
            return True
    fraction = (finite * 12 - (finite * 12).round()).abs() > 1e-3  # no half, third or quarter
    return bool((fraction | (finite.abs() >= COUNTED)).any())


def outcome_digest(outcome: Outcome) -> str:
    """Sixteen hexadecimal digits by which equal wrong answers are found.

    Equal where state, words and shapes are, and numbers to about three digits.
    """
    digest = hashlib.sha256(f"{outcome.state}|{outcome.says if outcome.state != ANSWERED else ''}|".encode())
    for name, tensor in sorted(outcome.tensors.items()):
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(_rounded_to_thousandths(tensor))
    return digest.hexdigest()[:16]


def _rounded_to_thousandths(tensor: torch.Tensor) -> bytes:
    """The numbers as multiples of a thousandth of the largest, and how large that is."""
    if not tensor.is_floating_point():
        return tensor.numpy().tobytes()
    values = tensor.double()
    finite = values[torch.isfinite(values)].abs()
    scale = finite.max().item() if finite.numel() else 0.0
    steps = (values / (scale or 1.0) * 1000).nan_to_num(nan=9e9, posinf=8e9, neginf=-8e9).round()
    return f"{scale:.3e}|".encode() + steps.to(torch.int64).numpy().tobytes()
