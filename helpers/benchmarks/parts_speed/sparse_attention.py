"""Lesson 16's and 17's ways to save, beside what they save on: pairs that are left out, and scores that are not stored.

Masks are made once and not measured.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.parts import sparse
from helpers.parts.tiles import tiled_attention

SIDES = ("saving", "everything")
T, H, D = 4096, 4, 16
WINDOW, BLOCK, TILE = 64, 64, 128


def inputs(t: int = T) -> list[torch.Tensor]:
    """Queries, keys and values of one text: three times (1, H, t, D)."""
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(1, H, t, D, generator=draw) for _ in range(3)]


@functools.cache
def future(t: int) -> torch.Tensor:
    """True where j comes after i: (t, t)."""
    return torch.ones(t, t, dtype=torch.bool).triu(1)


@functools.cache
def fixed_masks(t: int) -> torch.Tensor:
    """The fixed pattern's mask of each head, (1, H, t, t): with three axes PyTorch would not use its fused kernel."""
    return sparse.fixed_masks(t, BLOCK).repeat_interleave(H // 2, dim=0).unsqueeze(0)


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention with every score in one tensor."""
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future(q.shape[-2]), -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def by_masks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The fixed pattern as masks of PyTorch's kernel."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=fixed_masks(q.shape[-2]))


def tiles(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention a tile of keys at a time."""
    return tiled_attention(q, k, v, TILE)[0]


kernel = functools.partial(F.scaled_dot_product_attention, is_causal=True)
band = functools.partial(sparse.banded_attention, w=WINDOW)
blocks = functools.partial(sparse.fixed_attention, l=BLOCK)  # the fixed pattern, its blocks alone computed
WAYS = {  # what saves, and what it saves on
    f"a window of {WINDOW}, against all scores written out": (band, written_out),
    f"a window of {WINDOW}, against PyTorch's causal kernel": (band, kernel),
    f"the fixed pattern in blocks of {BLOCK}, against its masks": (blocks, by_masks),
    f"softmax in tiles of {TILE}, against a whole one": (tiles, written_out),
}


def comparisons() -> Iterator[Comparison]:
    """Each way to save."""
    arguments = inputs()
    for work, ways in WAYS.items():
        calls = [torch.no_grad()(lambda way=way: way(*arguments)) for way in ways]
        yield Comparison(work, T, dict(zip(SIDES, calls, strict=True)))
