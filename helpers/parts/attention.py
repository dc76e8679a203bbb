"""Attention, and one head of it, as lesson 2 builds them.

The source is A. Vaswani et al., "Attention is all you need" (2017), sections 3.2 and 3.2.1. The division by √d
which that section adds belongs to lesson 3.
"""

from __future__ import annotations

import torch
from torch import nn


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Each query's average of the values, weighted by how well the query matches the keys.

    q: (..., t, d), one query for each of t positions. k: (..., s, d) and v: (..., s, v), one key and one value for
    each of s positions. Returns (..., t, v): output i is Σ_j w_ij v_j with w_ij = softmax over j of q_i·k_j.
    """
    scores = q @ k.transpose(-2, -1)  # (..., t, s)
    weights = torch.softmax(scores, dim=-1)  # each row sums to 1 over the s keys
    return weights @ v


class SingleHeadAttention(nn.Module):
    """Attention with three learned projections (section 3.2.2 of the paper, for one head and without √d).

    e: width of the incoming vectors. d: width of queries, keys and values.
    """

    def __init__(self, e: int, d: int):
        super().__init__()
        self.to_queries = nn.Linear(e, d, bias=False)
        self.to_keys = nn.Linear(e, d, bias=False)
        self.to_values = nn.Linear(e, d, bias=False)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e), the positions that ask. Returns (b, t, d), one output for each of them.

        context: (b, s, e), the positions that are asked; x itself when it is None.

        With a context this is the attention between decoder and encoder of section 3.2.3.
        """
        context = x if context is None else context
        q = self.to_queries(x)  # (b, t, d)
        k = self.to_keys(context)  # (b, s, d)
        v = self.to_values(context)  # (b, s, d)
        return attention(q, k, v)
