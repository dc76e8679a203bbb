"""What checkpointing saves and costs: lesson 17's, on a stack of blocks, beside the same stack with everything kept.

It costs time: each block computes its forward pass a second time. If a backward pass takes as long as two forward
ones, 0.75 times as fast is to be expected.
"""

from __future__ import annotations

import torch
from torch import nn

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.parts.big import Ledger, checkpointed
from helpers.parts.blocks import TransformerBlock

SIDES = ("checkpointed", "everything kept")
B, T, E, H, DEPTH = 8, 256, 256, 4, 8


def stack() -> tuple[nn.ModuleList, torch.Tensor]:
    """The blocks, and what goes into the first of them, (B, T, E)."""
    torch.manual_seed(0)
    blocks = nn.ModuleList(TransformerBlock(E, H, pre_norm=True) for _ in range(DEPTH))
    return blocks, torch.randn(B, T, E, requires_grad=True)


def both_passes(side: str, blocks: nn.ModuleList, x: torch.Tensor) -> int:
    """Forward and backward; how many tokens went through."""
    y = x
    for block in blocks:
        y = checkpointed(block, y) if side == SIDES[0] else block(y)
    y.sum().backward()
    return x.shape[0] * x.shape[1]


def peaks() -> dict[str, int]:
    """For each side the bytes that autograd keeps at the most, parameters left out: a count, the same everywhere."""
    blocks, x = stack()
    found = {}
    for side in SIDES:
        with Ledger(blocks.parameters()) as ledger:
            both_passes(side, blocks, x)
        found[side] = ledger.peak
    return found


def comparisons() -> list[Comparison]:
    """Both passes; the name says what is computed twice, and what is kept for it."""
    less, more = peaks().values()
    blocks, x = stack()
    work = f"lesson 17, forward and backward, {DEPTH} blocks run forward twice to keep {less / more:.2f} of the bytes"
    return [Comparison(work, B * T, {side: lambda side=side: both_passes(side, blocks, x) for side in SIDES})]
