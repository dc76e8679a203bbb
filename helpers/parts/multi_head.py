"""Attention with several heads (lesson 4).

Vaswani et al., "Attention is all you need" (2017), section 3.2.2: h attentions side by side, each with
projections of its own, joined and mixed by one more matrix. b batch, t positions, e width of the model,
h heads, d width of one head.
"""

from __future__ import annotations

import math

import torch
from torch import nn


def split_heads(x: torch.Tensor, h: int) -> torch.Tensor:
    """Cut the width of every position into h heads: (b, t, e) -> (b, h, t, d), d = e/h.

    Head k gets components k·d to (k+1)·d of every position. ValueError when e is not divisible by h, or h is below 1.
    """
    b, t, e = x.shape
    require_heads(e, h)
    # name the parts of the last axis first, then exchange axes: a reshape alone would cut across positions
    return x.reshape(b, t, h, e // h).transpose(1, 2)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Lay the heads of every position side by side again: (b, h, t, d) -> (b, t, e), e = h·d."""
    b, h, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, h * d)  # a copy: after the transpose the numbers no longer lie in order


class MultiHeadAttention(nn.Module):
    """h heads of width d = e/h each, as in the paper: 4e² + e parameters, whatever h is.

    e: width of the model, divisible by h (ValueError otherwise). Head k uses rows k·d to (k+1)·d of each projection's
    weight.
    """

    def __init__(self, e: int, h: int):
        super().__init__()
        require_heads(e, h)
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=False)  # all heads at once: h blocks of d rows
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        q, k, v = (split_heads(to(x), self.h) for to in (self.to_queries, self.to_keys, self.to_values))  # (b, h, t, d)
        return self.unify(merge_heads(_attend(q, k, v)))


def _attend(q, k, v):
    """softmax(q kᵀ / √d) v in every head: three times (b, h, t, d) -> (b, h, t, d)."""
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)  # (b, h, t, t)
    return weights @ v


def require_heads(e: int, h: int) -> None:
    """ValueError unless a width of e components can be cut into h heads."""
    if torch.jit.is_tracing():  # sizes are tensors then, and a trace would note one answer for ever
        return
    _require_some(h)
    if e % h:
        raise ValueError(
            f"A width of e = {e} cannot be divided evenly among h = {h} heads: every head needs the same number of"
            " components, so e has to be divisible by h."
        )


def _require_some(h):
    if h < 1:
        raise ValueError(f"There has to be at least one head, and h is {h}.")
