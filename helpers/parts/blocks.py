"""The transformer block and the stack of blocks (lesson 7).

A. Vaswani et al., "Attention is all you need" (2017), section 3.1 and figure 1 for the block, 3.3 for the network in
it, 5.4 for dropout. J. Ba, J. Kiros and G. Hinton, "Layer normalization" (2016), section 3 for the norm. Pre-norm
is the order of A. Radford et al., "Language models are unsupervised multitask learners" (GPT-2, 2019), section
2.3, and is studied in R. Xiong et al., "On layer normalization in the transformer architecture" (2020), section 3.

b batch, t positions, e width of the model, h heads, d = e/h width of one head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .cache import LayerCache
from .multi_head import merge_heads, require_heads, split_heads


class LayerNorm(nn.Module):
    """Every vector by itself: shifted to mean 0, divided by its standard deviation, then times `weight` plus `bias`.

    "Layer normalization", section 3. The variance is the mean square (divided by e, not e − 1), and epsilon is added to
    the variance, under the root: a vector of equal components comes out as `bias`, with finite gradients. This is left
    to PyTorch's own function, which gives the same numbers in less time and memory.
    """

    def __init__(self, e: int, epsilon: float = 1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(e))
        self.bias = nn.Parameter(torch.zeros(e))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., e). Returns (..., e)."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class FeedForward(nn.Module):
    """A network with one hidden layer, the same at every position, which sees one position at a time.

    "Attention is all you need", section 3.3. e: width. hidden: width of the hidden layer, 4e if not given. activation:
    ReLU in the paper; GPT-2 takes GELU.
    """

    def __init__(self, e: int, hidden: int | None = None, activation: Callable[[torch.Tensor], torch.Tensor] = F.relu):
        super().__init__()
        hidden = 4 * e if hidden is None else hidden
        self.widen = nn.Linear(e, hidden)
        self.narrow = nn.Linear(hidden, e)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., e). Returns (..., e)."""
        return self.narrow(self.activation(self.widen(x)))


class SelfAttention(nn.Module):
    """Multi-head self-attention with an optional mask.

    "Attention is all you need", sections 3.2.1 to 3.2.3. Heads, scaling and masks are those of lessons 3 to 5,
    and the parameters have the names and shapes of lesson 4's MultiHeadAttention; softmax(q kᵀ / √d) v is left
    to PyTorch's own function, which gives the same numbers in less time and memory. bias: give the three
    projections a bias too, as GPT-2 does.
    """

    def __init__(self, e: int, h: int, bias: bool = False):
        super().__init__()
        require_heads(e, h)
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=bias)
        self.to_keys = nn.Linear(e, e, bias=bias)
        self.to_values = nn.Linear(e, e, bias=bias)
        self.unify = nn.Linear(e, e)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None, past: LayerCache | None = None
    ) -> torch.Tensor:
        """x: (b, t, e). mask: (t, t), (b, 1, t) or (b, t, t), booleans, True where i may look at j; None: everywhere.

        past: keys and values of earlier positions, to which those of x are added; the mask's last axis then counts
        both. Returns (b, t, e). A position that may look nowhere gets the bias of `unify`.
        """
        require_boolean(mask)
        q, k, v = (split_heads(to(x), self.h) for to in (self.to_queries, self.to_keys, self.to_values))  # (b, h, t, d)
        if past is not None:
            k, v = past.append(k, v)  # (b, h, s, d), s = earlier positions + t
        if mask is not None and mask.dim() > 2:
            mask = mask.unsqueeze(-3)  # an axis for the heads, which all see the same; (t, t) broadcasts as it is
        return self.unify(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


def require_boolean(mask: torch.Tensor | None) -> None:
    """ValueError unless a mask, of any shape (..., t, s), holds booleans: PyTorch would add other numbers to scores."""
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            f"A mask holds booleans, True where i may look at j, and this one is {mask.dtype}: mask.bool()."
        )


class TransformerBlock(nn.Module):
    """Attention and a feed-forward network, each with a shortcut around it and a norm.

    pre_norm=False, "Attention is all you need", section 3.1: norm(x + layer(x)), for both layers.
    pre_norm=True, GPT-2, section 2.3: x + layer(norm(x)), for both layers; whoever stacks such blocks adds a norm at
    the end.
    dropout: chance with which a component of a layer's output is dropped before it is added to x, in training (section
    5.4).
    hidden, activation: for the feed-forward network. bias: for the projections of the attention. epsilon: of the norms.
    """

    def __init__(
        self,
        e: int,
        h: int,
        pre_norm: bool = False,
        dropout: float = 0.0,
        hidden: int | None = None,
        activation: Callable[[torch.Tensor], torch.Tensor] = F.relu,
        bias: bool = False,
        epsilon: float = 1e-5,
    ):
        super().__init__()
        self.pre_norm = pre_norm
        self.attention = SelfAttention(e, h, bias=bias)
        self.norm1 = LayerNorm(e, epsilon)
        self.feed_forward = FeedForward(e, hidden, activation)
        self.norm2 = LayerNorm(e, epsilon)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e). mask: as SelfAttention takes it. Returns (b, t, e)."""
        if self.pre_norm:
            x = x + self.dropout(self.attention(self.norm1(x), mask))
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class Transformer(nn.Module):
    """A stack of blocks, each with weights of its own: what is between the embeddings and the output layer of a model.

    depth: how many blocks. pre_norm, dropout and the other options: as TransformerBlock takes them. With pre_norm
    nothing has normalised the sum that leaves the last block, so there is one more norm at the end, `norm` (GPT-2,
    section 2.3). Without it the last block ends in a norm, and `norm` is None.
    """

    def __init__(self, e: int, h: int, depth: int, pre_norm: bool = False, dropout: float = 0.0, **options: Any):
        super().__init__()
        self.blocks = nn.ModuleList([TransformerBlock(e, h, pre_norm, dropout, **options) for _ in range(depth)])
        self.norm = LayerNorm(e) if pre_norm else None

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e). mask: as SelfAttention takes it, the same in every block. Returns (b, t, e)."""
        for block in self.blocks:
            x = block(x, mask)
        return x if self.norm is None else self.norm(x)
