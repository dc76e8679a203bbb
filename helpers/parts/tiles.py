"""Attention a tile of keys at a time, forward and backward (lesson 17).

M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (2018), for the running softmax. T. Dao et
al., "FlashAttention" (2022), algorithm 4 of appendix B for the backward pass; T. Dao, "FlashAttention-2" (2023),
section 3.1, for the one number per row that it needs, the log-sum-exp.

t queries, s keys, d width of one head. Leading axes are free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

Partial = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def merge(a: Partial, b: Partial) -> Partial:
    """Two partial softmax results over different keys, as one over both.

    Each is (m, ℓ, o): the largest score so far, (..., t); the sum of exp(score − m), (..., t); and the sum of
    exp(score − m) · value, (..., t, d). Nothing seen yet is m = −∞, ℓ = 0, o = 0. In the end o/ℓ is the attention.
    """
    m = torch.maximum(a[0], b[0])
    finite = m.masked_fill(m == -math.inf, 0.0)  # −∞ − (−∞) would be NaN
    keep_a, keep_b = torch.exp(a[0] - finite), torch.exp(b[0] - finite)
    total = keep_a * a[1] + keep_b * b[1]
    return m, total, keep_a.unsqueeze(-1) * a[2] + keep_b.unsqueeze(-1) * b[2]


def tiled_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tile: int, causal: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(q kᵀ / √d) v, with no more than t · tile scores at a time, and the log-sum-exp of each row of scores.

    q: (..., t, d). k, v: (..., s, d). tile: how many keys at once. causal: query i sees the keys up to i + s − t.
    Returns (..., t, d) and (..., t). ValueError where a causal query would see nothing, s < t.
    """
    state = (
        torch.full_like(q[..., 0], -math.inf),
        torch.zeros_like(q[..., 0]),
        torch.zeros_like(q[..., :1] * v[..., :1, :]),
    )
    for part, scores in _tiles(q, k, tile, causal):
        m = scores.amax(dim=-1)
        powers = torch.exp(scores - m.masked_fill(m == -math.inf, 0.0).unsqueeze(-1))
        state = merge(state, (m, powers.sum(dim=-1), powers @ v[..., part, :]))
    m, total, out = state
    return out / total.unsqueeze(-1), m + total.log()


def tiled_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    slope: torch.Tensor,
    tile: int,
    causal: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of q, k and v, from what `tiled_attention` returned, the scores computed again tile by tile.

    q: (..., t, d). k, v: (..., s, d). out, lse: (..., t, d) and (..., t). slope: gradient of out, (..., t, d). Returns
    gradients of the shapes of q, k and v.
    """
    root = math.sqrt(q.shape[-1])
    means = (slope * out).sum(dim=-1, keepdim=True)  # D: Σ_j w_ij · slope_i · v_j
    to_q, to_k, to_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for part, scores in _tiles(q, k, tile, causal):
        weights = torch.exp(scores - lse.unsqueeze(-1))  # (..., t, tile), as after the whole softmax
        to_scores = weights * (slope @ v[..., part, :].mT - means) / root
        to_v[..., part, :] = weights.mT @ slope
        to_k[..., part, :] = to_scores.mT @ q
        to_q = to_q + to_scores @ k[..., part, :]
    return to_q, to_k, to_v


def _tiles(q: torch.Tensor, k: torch.Tensor, tile: int, causal: bool) -> Iterator[tuple[slice, torch.Tensor]]:
    """Each tile's keys as a slice, and its scores (..., t, tile), −∞ where a query may not look."""
    t, s = q.shape[-2], k.shape[-2]
    if tile < 1:
        raise ValueError(f"There has to be at least one position in a tile, and asked for were {tile}.")
    if causal and s < t:
        raise ValueError(f"Causal attention of {t} queries needs at least as many keys, and there are {s}.")
    places = torch.arange(t, device=q.device).unsqueeze(-1) + s - t
    for start in range(0, s, tile):
        part = slice(start, min(start + tile, s))
        scores = q @ k[..., part, :].mT / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(torch.arange(start, part.stop, device=q.device) > places, -math.inf)
        yield part, scores


class TiledAttention(torch.autograd.Function):
    """Causal attention in tiles, whose backward pass computes the scores again: `apply(q, k, v, tile)`."""

    @staticmethod
    def forward(context: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, tile: int) -> torch.Tensor:
        """q: (..., t, d). k, v: (..., s, d). Returns (..., t, d)."""
        out, lse = tiled_attention(q, k, v, tile)
        context.save_for_backward(q, k, v, out, lse)
        context.tile = tile
        return out

    @staticmethod
    def backward(context: Any, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """slope: gradient of the output, (..., t, d). Returns gradients of q, k and v."""
        return *tiled_backward(*context.saved_tensors, slope, context.tile), None
