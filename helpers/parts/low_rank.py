"""Low-rank updates (lesson 14): E. Hu et al., "LoRA: low-rank adaptation of large language models" (2021)."""

from __future__ import annotations

import math

import torch
from torch import nn


class LowRank(nn.Module):
    """A linear layer that learns a low-rank update: W + (alpha/rank) B A, with W frozen, A random and B zero at first.

    Hu et al., section 4.1. linear: an nn.Linear, taken in. rank, alpha: as there.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        n_out, n_in = linear.weight.shape
        self.linear = linear.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, n_in, device=linear.weight.device) / math.sqrt(n_in))
        self.B = nn.Parameter(torch.zeros(n_out, rank, device=linear.weight.device))
        self.scale = alpha / rank
        self.merged = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., n_in). Returns (..., n_out)."""
        y = self.linear(x)
        return y if self.merged else y + self.scale * (x @ self.A.T @ self.B.T)

    @torch.no_grad()
    def merge(self) -> nn.Linear:
        """Add the update to the frozen weight, once however often it is called. Returns the nn.Linear."""
        if not self.merged:
            self.linear.weight += self.scale * self.B @ self.A
            self.merged = True
        return self.linear

    @torch.no_grad()
    def unmerge(self) -> None:
        """Take the update out of the frozen weight again, if it is in there."""
        if self.merged:
            self.linear.weight -= self.scale * self.B @ self.A
            self.merged = False


def add_low_rank(model: nn.Module, rank: int, alpha: float) -> list[LowRank]:
    """Freeze a model, and give the queries and values of every block a low-rank update. Returns the new layers.

    Hu et al., section 4.2 and table 5: of the matrices of a block these two.
    """
    model.requires_grad_(False)
    made = []
    for block in model.blocks:
        for name in ("to_queries", "to_values"):
            made.append(LowRank(getattr(block.attention, name), rank, alpha))
            setattr(block.attention, name, made[-1])
    return made
