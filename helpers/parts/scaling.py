"""Lesson 3: dot products that keep their size, however wide the vectors are.

Source: A. Vaswani et al., "Attention is all you need" (2017), section 3.2.1, equation 1 and the footnote on
the variance of a dot product.
"""

from __future__ import annotations

import math

import torch


def scaled_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Dot products of queries and keys, divided by the root of their width.

    q: (..., t, d). k: (..., s, d). Returns (..., t, s): entry [i, j] is q_i·k_j / √d.

    With components of mean 0 and variance 1 the scores have variance 1 too, whatever d is. The leading axes are
    a batch, or a batch and heads; with heads, d is the width of one head.
    """
    d = q.shape[-1]
    return q @ k.transpose(-2, -1) / math.sqrt(d)
