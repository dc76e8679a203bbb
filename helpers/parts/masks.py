"""Which position may look at which: the parts of lesson 5.

A mask is a tensor of booleans that broadcasts against scores of shape (..., t, s): row i is the position that looks,
column j the position that is looked at, and True means "may look". Masks are combined with `&`.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from .multi_head import require_heads


def causal_mask(t: int, device: torch.device | str | None = None) -> torch.Tensor:
    """Position i may look at the positions j ≤ i: itself and what came before.

    "Attention is all you need" (Vaswani et al., 2017), section 3.2.3. Returns (t, t), booleans.
    """
    return torch.ones(t, t, dtype=torch.bool, device=device).tril()


def padding_mask(lengths: torch.Tensor, t: int) -> torch.Tensor:
    """Of each sentence, only the first `length` positions may be looked at; the rest is padding.

    lengths: (b,), integers. t: the length that all were padded to. Returns (b, 1, t), booleans: the axis of length 1
    is for the positions that look, because padding is hidden from all of them.
    """
    positions = torch.arange(t, device=lengths.device)
    return (positions < lengths.unsqueeze(-1)).unsqueeze(1)


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis, over the entries that may be seen and no others.

    scores: (..., t, s). mask: booleans that broadcast to the shape of the scores. Returns (..., t, s), in the scores'
    own precision. A hidden entry gets exactly 0. So does every entry of a fully masked row, and such a row sends
    back a gradient of 0.

    The fill is the lowest finite number and not −∞: a whole row of −∞ is 0/0. The rows that it leaves uniform are
    cleared by the second fill, which stops their gradients too.
    """
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0.0)


def next_token_pairs(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What a language model reads, and what it should have said: the same tokens, one position apart.

    tokens: (..., t + 1), integers. Returns inputs and targets, both (..., t); target i is the token after input i.
    """
    return tokens[..., :-1], tokens[..., 1:]


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which no position looks ahead.

    "Attention is all you need", section 3.2: scaled dot products (3.2.1), h heads of width d = e / h (3.2.2), masked
    (3.2.3). The parameters have the names and shapes of lesson 4's multi-head attention.
    """

    def __init__(self, e: int, h: int):
        super().__init__()
        require_heads(e, h)
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e)

    def forward(self, x: torch.Tensor, real: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e). real: (b, 1, t), booleans, True where there is a real token; None where all are.

        Returns (b, t, e): output i depends on the real inputs j ≤ i. If position i is padding, output i may also
        depend on input i, which makes the query. A position with nothing to see gets the bias of `unify`.
        """
        b, t, e = x.shape
        d = e // self.h
        q, k, v = (
            projection(x).view(b, t, self.h, d).transpose(1, 2)  # (b, h, t, d)
            for projection in (self.to_queries, self.to_keys, self.to_values)
        )
        mask = causal_mask(t, x.device)  # (t, t)
        if real is not None:
            mask = (mask & real).unsqueeze(1)  # (b, 1, t, t): the same for every head
        weights = masked_softmax(q @ k.transpose(-2, -1) / math.sqrt(d), mask)  # (b, h, t, t)
        return self.unify((weights @ v).transpose(1, 2).reshape(b, t, e))
