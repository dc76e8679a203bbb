"""A transformer that remembers the segment before (lesson 15).

Z. Dai et al., "Transformer-XL: attentive language models beyond a fixed-length context" (2019): section 3.2 for the
memory, 3.3 and appendix B for relative positions. b batch, t positions of a segment, m length of a memory, s = m + t
keys, e width of the model, h heads, d = e/h width of one head, n size of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .blocks import FeedForward, LayerNorm
from .evaluating import evaluating
from .generator import bits_per_byte, require_text
from .multi_head import merge_heads, require_heads, split_heads
from .positions import sinusoidal_encoding


def segments(data: torch.Tensor, b: int, t: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A text as b streams, cut into segments of t: batch j + 1 goes on, row by row, where batch j ended.

    data: (length,), integers. Returns inputs and targets, both (k, b, t), int64, k = ⌊(length − 1) / (b·t)⌋: the input
    [j, row, i] is data[(row·k + j)·t + i], and its target the entry after it. What fills no segment is left out.
    ValueError when the text is shorter than one batch.
    """
    if b < 1 or t < 1:
        raise ValueError(f"A batch has at least one stream of at least one position; asked for were {b} of t = {t}.")
    require_text(data, b * t + 1)
    k = (len(data) - 1) // (b * t)

    def streams(part: torch.Tensor) -> torch.Tensor:
        return part[: b * k * t].long().view(b, k, t).transpose(0, 1)  # (k, b, t)

    return streams(data[:-1]), streams(data[1:])


def extend_memory(memory: torch.Tensor | None, x: torch.Tensor, m: int) -> torch.Tensor:
    """The memory after a segment: what was remembered and the segment behind it, of which the newest m are kept.

    Section 3.2. memory: (b, m', e), or None at the beginning. x: (b, t, e). Returns (b, min(m' + t, m), e), through
    which no gradient flows back. ValueError for a negative m.
    """
    if m < 0:
        raise ValueError(f"A memory holds 0 positions or more, and m is {m}.")
    both = x if memory is None else torch.cat([memory, x], dim=1)
    return both[:, max(0, both.shape[1] - m) :].detach()


def relative_shift(x: torch.Tensor) -> torch.Tensor:
    """From one column a distance to one column a key.

    Appendix B. x: (..., t, s), s ≥ t: column c belongs to the distance s − 1 − c. Returns (..., t, s): entry [i, j]
    is the one for the distance i + (s − t) − j, from row i, and 0 where the key j lies in the future. ValueError when
    there are fewer keys than queries.
    """
    t, s = x.shape[-2:]
    if s < t:
        raise ValueError(f"A segment is among its own keys: with t = {t} there are at least as many, not s = {s}.")
    padded = F.pad(x, (1, 0))  # (..., t, s + 1)
    reread = padded.reshape(*x.shape[:-2], s + 1, t)  # the same numbers in rows of another length
    shifted = reread[..., 1:, :].reshape(x.shape)
    return shifted.tril(s - t)


def relative_scores(
    q: torch.Tensor, k: torch.Tensor, r: torch.Tensor, u: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """Scores that know how far apart query and key are, and not where they stand.

    Section 3.3: content–content, content–position, position–content and position–position, over √d. q: (b, h, t, d).
    k: (b, h, s, d). r: (h, s, d), for the distances s − 1 to 0. u, v: (h, d). Returns (b, h, t, s), not masked.
    """
    by_content = (q + u.unsqueeze(-2)) @ k.mT  # (b, h, t, s)
    by_distance = (q + v.unsqueeze(-2)) @ r.mT  # (b, h, t, s): a column a distance
    return (by_content + relative_shift(by_distance)) / math.sqrt(q.shape[-1])


class RelativeAttention(nn.Module):
    """Causal attention of a segment to itself and to a memory of what came before it.

    Section 3.3: 5e² + e + 2e parameters, the fifth e² for the distances. u and v start at zero.
    """

    def __init__(self, e: int, h: int):
        super().__init__()
        require_heads(e, h)
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.to_positions = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e)
        self.u = nn.Parameter(torch.zeros(h, e // h))
        self.v = nn.Parameter(torch.zeros(h, e // h))

    def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e). memory: (b, m, e), what stood before x, or None. Returns (b, t, e)."""
        both = x if memory is None else torch.cat([memory, x], dim=1)  # (b, s, e)
        t, s, e = x.shape[1], both.shape[1], x.shape[2]
        q, k, values = (
            split_heads(to(y), self.h) for to, y in ((self.to_queries, x), (self.to_keys, both), (self.to_values, both))
        )
        far_to_near = sinusoidal_encoding(s, e, device=x.device).flip(0).to(x.dtype)  # distances s − 1 to 0
        r = split_heads(self.to_positions(far_to_near).unsqueeze(0), self.h)[0]  # (h, s, d)
        past = torch.ones(t, s, dtype=torch.bool, device=x.device).tril(s - t)
        scores = relative_scores(q, k, r, self.u, self.v).masked_fill(~past, -math.inf)
        return self.unify(merge_heads(torch.softmax(scores, dim=-1) @ values))


class TransformerXLBlock(nn.Module):
    """A block of lesson 7 with relative attention and a memory.

    pre_norm=True: x + layer(norm(x)), and the memory goes through the same norm as the segment: keys of the past and of
    the present have to be made of the same kind of vector. pre_norm=False: the paper's norm(x + layer(x)). dropout,
    hidden, activation: as in `blocks.TransformerBlock`.
    """

    def __init__(
        self,
        e: int,
        h: int,
        pre_norm: bool = True,
        dropout: float = 0.0,
        hidden: int | None = None,
        activation: Callable[[torch.Tensor], torch.Tensor] = F.relu,
    ):
        super().__init__()
        self.pre_norm = pre_norm
        self.attention = RelativeAttention(e, h)
        self.norm1 = LayerNorm(e)
        self.feed_forward = FeedForward(e, hidden, activation)
        self.norm2 = LayerNorm(e)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, memory: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e). memory: (b, m, e), inputs of this block at earlier positions, or None. Returns (b, t, e)."""
        if self.pre_norm:
            past = None if memory is None else self.norm1(memory)
            x = x + self.dropout(self.attention(self.norm1(x), past))
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.attention(x, memory)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class TransformerXL(nn.Module):
    """Predicts, at every position, what comes next, from its segment and a memory of the segments before.

    n: size of the vocabulary. There is no longest segment, for nothing is learned by position. pre_norm and the other
    options: as `TransformerXLBlock` takes them; with pre_norm there is one more norm at the end.
    """

    def __init__(self, n: int, e: int, h: int, depth: int, pre_norm: bool = True, **options: Any):
        super().__init__()
        self.tokens = nn.Embedding(n, e)
        self.blocks = nn.ModuleList([TransformerXLBlock(e, h, pre_norm, **options) for _ in range(depth)])
        self.norm = LayerNorm(e) if pre_norm else nn.Identity()
        self.to_logits = nn.Linear(e, n)

    def forward(
        self, ids: torch.Tensor, memory: list[torch.Tensor] | None = None, m: int = 0
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """ids: (b, t), int64. memory: what an earlier call returned for the text before, or None at its beginning.

        m: how many positions to remember. Returns logits (b, t, n), and for each block its inputs at the newest m
        positions, (b, ≤ m, e). ValueError where the memory is not of this many blocks.
        """
        if memory is not None and len(memory) != len(self.blocks):
            raise ValueError(f"The model has {len(self.blocks)} blocks, and there are memories for {len(memory)}.")
        x = self.tokens(ids)
        remembered = []
        for block, past in zip(self.blocks, memory or [None] * len(self.blocks), strict=True):
            remembered.append(extend_memory(past, x, m))
            x = block(x, past)
        return self.to_logits(self.norm(x)), remembered


def reach(t: int, m: int, depth: int) -> int:
    """How many positions before it the last position of a segment can depend on, far inside a text.

    Segments of t positions, a memory of m a block. With m = t it is t − 1 + depth·t, the paper's O(N·L).
    """
    return t - 1 + m + (depth - 1) * t * math.ceil(m / t)


@torch.no_grad()
def streaming_bits(model: nn.Module, data: torch.Tensor, t: int, m: int) -> float:
    """Bits per byte of a text that is read once, segment by segment, with a memory of m positions a block.

    data: (length,), integers, from length 2 on (ValueError otherwise). Bytes 1 to length − 1 are predicted, once each.
    model: as TransformerXL is called. Evaluation mode meanwhile, and afterwards the mode that it was in before.
    """
    if t < 1:
        raise ValueError(f"A segment has at least one position, and t is {t}.")
    require_text(data, 2)
    data, memory, nats = data.long(), None, 0.0
    with evaluating(model):
        for start in range(0, len(data) - 1, t):
            targets = data[start + 1 : start + t + 1]
            inputs = data[start : start + len(targets)]  # the last segment may be shorter
            logits, memory = model(inputs.unsqueeze(0), memory, m)
            nats += F.cross_entropy(logits[0], targets, reduction="sum").item()
    return bits_per_byte(nats / (len(data) - 1))
