"""What wrong answers have in common: a digest that is equal for outcomes that are equal to about three digits."""

from __future__ import annotations

import hashlib

import torch

from helpers.checking.answers import ANSWERED, Outcome


def digest_of(outcome: Outcome) -> str:
    """Sixteen hexadecimal digits: equal where states, words and shapes are, and numbers to about three digits."""
    digest = hashlib.sha256(f"{outcome.state}|{outcome.says if outcome.state != ANSWERED else ''}|".encode())
    for name, tensor in sorted(outcome.tensors.items()):
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(_rounded(tensor))
    return digest.hexdigest()[:16]


def _rounded(tensor: torch.Tensor) -> bytes:
    """The numbers as multiples of a thousandth of the largest, and how large that is."""
    if not tensor.is_floating_point():
        return tensor.numpy().tobytes()
    values = tensor.double()
    finite = values[torch.isfinite(values)].abs()
    scale = finite.max().item() if finite.numel() else 0.0
    steps = (values / (scale or 1.0) * 1000).nan_to_num(nan=9e9, posinf=8e9, neginf=-8e9).round()
    return f"{scale:.3e}|".encode() + steps.to(torch.int64).numpy().tobytes()
