"""A byte transformer that learns faster than lesson 22's: with rotary positions and short convolutions.

The convolutions are those of Z. Allen-Zhu, "Physics of Language Models: Part 4.1, Architecture Design and the Magic of
Canon Layers" (2025), section 4, before attention and before the network (there A and C). b batch, t positions, e width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from helpers.parts.llama import rotary_frequencies


class ShortConvolution(nn.Module):
    """Adds to each component a weighted sum of its values at this position and the three before it."""

    def __init__(self, e: int, reach: int = 4):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(reach, 1, e))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        y = x
        for k, weight in enumerate(self.weight):
            y = y + F.pad(x, (0, 0, k, 0))[:, : x.shape[1]] * weight
        return y


class ConvolvedBlock(nn.Module):
    """A block with norms before, whose attention and network both read a short convolution."""

    def __init__(self, e: int, h: int, dropout: float):
        super().__init__()
        self.h = h
        self.dropout = nn.Dropout(dropout)
        self.before_attention = nn.Sequential(nn.LayerNorm(e), ShortConvolution(e))
        self.before_network = nn.Sequential(nn.LayerNorm(e), ShortConvolution(e))
        self.heads, self.out = nn.Linear(e, 3 * e, bias=False), nn.Linear(e, e, bias=False)
        self.network = nn.Sequential(nn.Linear(e, 4 * e), nn.GELU(), nn.Linear(4 * e, e))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). cos, sin: (t, d/2), of the angles that turn queries and keys. Returns (b, t, e)."""
        q, k, v = self.heads(self.before_attention(x)).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
        q, k = (turned(part, cos.to(part.dtype), sin.to(part.dtype)) for part in (q, k))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + self.dropout(self.out(attended))
        return x + self.dropout(self.network(self.before_network(x)))


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Queries or keys (..., t, d), turned: component j together with j + d/2, which is faster than pairs side by side.

    cos, sin: (t, d/2). Returns (..., t, d).
    """
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class ConvolvedTransformer(nn.Module):
    """What `helpers.parts.one_megabyte.ByteTransformer` is for, and called as that is."""

    def __init__(self, e: int = 128, h: int = 4, depth: int = 3, t_max: int = 128, dropout: float = 0.0):
        """t_max: how many bytes it is trained on and asked with. dropout: the share left out of what a layer adds."""
        super().__init__()
        self.t_max, self.d = t_max, e // h
        self.tokens = nn.Embedding(256, e)
        self.blocks = nn.ModuleList(ConvolvedBlock(e, h, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(e)
        nn.init.normal_(self.tokens.weight, std=0.05)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t). Returns logits (b, t, 256)."""
        x = self.tokens(ids)
        angles = torch.arange(ids.shape[1])[:, None] * rotary_frequencies(self.d)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.norm(x) @ self.tokens.weight.T
