"""A byte model from which one piece is removed (lesson 9).

b batch, t positions, e width of the model, h heads, d = e/h width of one head.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from .blocks import TransformerBlock
from .generator import CharTransformer

PIECES = ("positions", "norms", "shortcuts", "feed-forward", "√d")
# Which of the two shortcuts of a block is it?
SHORTCUTS = ("shortcuts around attention", "shortcuts around feed-forward")


class AblatedTransformer(CharTransformer):
    """CharTransformer without one of PIECES or SHORTCUTS; "nothing" leaves it whole. ValueError for another name."""

    def __init__(self, n: int, e: int, h: int, depth: int, t_max: int, without: str = "nothing"):
        super().__init__(n, e, h, depth, t_max)
        if without not in ("nothing", *PIECES, *SHORTCUTS):
            raise ValueError(f"There is no piece called {without!r}; there are {', '.join(PIECES + SHORTCUTS)}.")
        self.transformer.blocks = nn.ModuleList(AblatedBlock(e, h, without) for _ in range(depth))
        if without == "positions":
            self.add_module("positions", nn.Identity())
        if without == "norms":
            self.transformer.add_module("norm", nn.Identity())


class AblatedBlock(TransformerBlock):
    """A pre-norm block without one of its pieces."""

    def __init__(self, e: int, h: int, without: str):
        super().__init__(e, h, pre_norm=True)
        self.without = without
        if without == "norms":
            self.add_module("norm1", nn.Identity())
            self.add_module("norm2", nn.Identity())
        if without == "√d":  # attention divides by it, and queries that are √d times as long undo that
            longer = nn.Sequential(self.attention.to_queries, Times(math.sqrt(e // h)))
            self.attention.add_module("to_queries", longer)
        if without == "feed-forward":
            del self.feed_forward, self.norm2

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e). mask: as SelfAttention takes it. Returns (b, t, e)."""
        y = self.attention(self.norm1(x), mask)
        x = y if self.without in ("shortcuts", "shortcuts around attention") else x + y
        if self.without == "feed-forward":
            return x
        y = self.feed_forward(self.norm2(x))
        return y if self.without in ("shortcuts", "shortcuts around feed-forward") else x + y


class Times(nn.Module):
    """Multiplies by a fixed number."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (...). Returns (...)."""
        return self.factor * x
