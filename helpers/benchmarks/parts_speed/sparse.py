"""Lesson 16's ways to save, beside what they save on: pairs that are left out, and scores that are not stored."""

from __future__ import annotations

import math
from pathlib import Path

import torch
import torch.nn.functional as F

from helpers.benchmarks.parts_speed.duel import Job
from helpers.parts import sparse

SIDES = ("saving", "everything")
T, H, D = 4096, 4, 16
WINDOW, BLOCK, TILE = 64, 64, 128
REST = Job("at rest", "rest", rounds=1)
JOBS = [
    Job(f"a window of {WINDOW}, against all scores written out", "window_or_written"),
    Job(f"a window of {WINDOW}, against PyTorch's causal kernel", "window_or_kernel"),
    Job(f"the fixed pattern in blocks of {BLOCK}, against its masks", "blocks_or_masks"),
    Job(f"softmax in tiles of {TILE}, against a whole one", "tiles_or_written"),
]


def inputs(t: int = T) -> list[torch.Tensor]:
    """Queries, keys and values of one text: three times (1, H, t, D)."""
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(1, H, t, D, generator=draw) for _ in range(3)]


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention with every score in one tensor."""
    t = q.shape[-2]
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf)
    return torch.softmax(scores, dim=-1) @ v


def by_masks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The fixed pattern as masks of PyTorch's kernel."""
    masks = sparse.fixed_masks(q.shape[-2], BLOCK).repeat_interleave(H // 2, dim=0)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=masks)


def ways(side: str) -> dict:
    """What a side does for each job: functions of q, k and v."""

    def band(q, k, v):
        return sparse.banded_attention(q, k, v, WINDOW)

    if side == SIDES[0]:
        return {
            "window_or_written": band,
            "window_or_kernel": band,
            "blocks_or_masks": lambda q, k, v: sparse.fixed_attention(q, k, v, BLOCK),
            "tiles_or_written": lambda q, k, v: sparse.tiled_attention(q, k, v, TILE),
        }
    return {
        "window_or_written": written_out,
        "window_or_kernel": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        "blocks_or_masks": by_masks,
        "tiles_or_written": written_out,
    }


def jobs(side: str, folder: Path) -> dict:
    given = inputs()

    def timed(way):
        def work():
            with torch.no_grad():
                way(*given)
            return T

        return work

    return {"rest": lambda: 1, **{name: timed(way) for name, way in ways(side).items()}}
