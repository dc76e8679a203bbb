"""Attention that leaves pairs out (lesson 16).

R. Child et al., "Generating long sequences with sparse transformers" (2019), sections 4.1 to 4.3. b batch, t positions,
h heads, d width of one head, w a window, l a stride. In a mask True means "may look", row i looks at column j.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from .blocks import SelfAttention, Transformer, require_boolean
from .multi_head import merge_heads, split_heads


def local_mask(t: int, w: int, device: torch.device | str | None = None) -> torch.Tensor:
    """A causal window: position i sees the last w positions, itself among them. Returns (t, t), booleans."""
    _require_one("a window", w)
    return _distances(t, device).ge(0) & _distances(t, device).lt(w)


def strided_masks(t: int, l: int, device: torch.device | str | None = None) -> torch.Tensor:  # noqa: E741
    """The two halves of strided attention: the positions from i − l to i, and every l-th one back from i.

    Section 4.2. Returns (2, t, t), booleans. Position i − l is in both halves.
    """
    _require_one("a stride", l)
    distances = _distances(t, device)
    return torch.stack([distances.ge(0) & distances.le(l), distances.ge(0) & (distances % l == 0)])


def fixed_masks(t: int, l: int, c: int = 1, device: torch.device | str | None = None) -> torch.Tensor:  # noqa: E741
    """The two halves of fixed attention: a position's own block of l, and the last c columns of every block.

    Section 4.2. Both causal. Returns (2, t, t), booleans. In the second half the first l − c rows are empty.
    ValueError unless c is from 1 to l.
    """
    _require_one("a block", l)
    if not 1 <= c <= l:
        raise ValueError(f"Of a block of {l} positions at least 1 and at most {l} are summary columns, not {c}.")
    places = torch.arange(t, device=device)
    past = _distances(t, device).ge(0)
    same_block = places.unsqueeze(1) // l == places // l
    return torch.stack([past & same_block, past & (places % l >= l - c)])


def attended_pairs(kind: str, t: int, l: int) -> int:  # noqa: E741
    """How many pairs a pattern has, over t positions: of both its halves together where it has two.

    kind: "full" (causal), "local" (a window of l), "strided" or "fixed" (c = 1). l divides t (ValueError otherwise).
    """
    _require_one("a stride", l)
    if t % l:
        raise ValueError(f"The closed forms are for whole blocks, and {t} positions are no multiple of {l}.")
    blocks = t // l
    counts = {
        "full": t * (t + 1) // 2,
        "local": t * l - l * (l - 1) // 2,
        "strided": t * (l + 1) - l * (l + 1) // 2 + l * blocks * (blocks + 1) // 2,
        "fixed": t * (l + 1) // 2 + l * blocks * (blocks - 1) // 2 + blocks,
    }
    if kind not in counts:
        raise ValueError(f"There is no pattern called {kind!r}; there are {', '.join(counts)}.")
    return counts[kind]


def connected(masks: Sequence[torch.Tensor]) -> torch.Tensor:
    """Which input can reach which output, through a stack of layers with residual connections.

    masks: a (t, t) of booleans for each layer, the first layer first. Returns (t, t), booleans: may output i depend on
    input j? ValueError without a layer.
    """
    if not len(masks):
        raise ValueError("Without a layer there is no mask, and the number of positions is not known.")
    itself = torch.eye(masks[0].shape[-1], dtype=torch.bool, device=masks[0].device)
    found = itself
    for mask in masks:
        found = (mask | itself).float() @ found.float() > 0
    return found


def banded_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: int) -> torch.Tensor:
    """Causal attention in a window of w positions, without a tensor of t² entries.

    The sequence is cut into chunks of w; each looks at its own keys and at those of the chunk before. q, k, v:
    (b, h, t, d). Returns (b, h, t, d). Scores are (b, h, ⌈t/w⌉, w, 2w).
    """
    _require_one("a window", w)
    b, h, t, d = q.shape
    chunks = -(-t // w)
    rest = chunks * w - t
    queries = F.pad(q, (0, 0, 0, rest)).view(b, h, chunks, w, d)
    keys, values = (F.pad(x, (0, 0, w, rest)).unfold(2, 2 * w, w) for x in (k, v))  # (b, h, chunks, d, 2w)
    i = torch.arange(w, 2 * w, device=q.device).unsqueeze(-1)  # places among the 2w keys
    j = torch.arange(2 * w, device=q.device)
    seen = ((j <= i) & (j > i - w)).repeat(chunks, 1, 1)
    seen[0] &= j >= w  # before the first chunk there is nothing
    scores = (queries @ keys / math.sqrt(d)).masked_fill(~seen, -math.inf)
    out = torch.softmax(scores, dim=-1) @ values.mT
    return out.reshape(b, h, chunks * w, d)[:, :, :t]


def fixed_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, l: int) -> torch.Tensor:  # noqa: E741
    """The fixed pattern with c = 1, gathered: the first half of the heads in blocks, the others on summary columns.

    q, k, v: (b, h, t, d), h even, l divides t (ValueError otherwise). Returns (b, h, t, d): what
    `fixed_masks` gives as masks, with t·l and t·t/l scores in place of t². A row that sees nothing is 0.
    """
    h, t = q.shape[1:3]
    if h % 2 or t % l:
        raise ValueError(f"Half of the heads each, and whole blocks: {h} heads, {t} positions and l = {l} do not fit.")
    near, far = slice(h // 2), slice(h // 2, h)
    blocks = [x[:, near].unflatten(2, (t // l, l)) for x in (q, k, v)]  # (b, h/2, t/l, l, d)
    within = F.scaled_dot_product_attention(*blocks, is_causal=True).flatten(2, 3)
    keys, values = (x[:, far, l - 1 :: l] for x in (k, v))  # (b, h/2, t/l, d)
    seen = torch.arange(t, device=q.device).unsqueeze(1) >= torch.arange(l - 1, t, l, device=q.device)
    across = F.scaled_dot_product_attention(q[:, far], keys, values, attn_mask=seen)
    return torch.cat([within, across], dim=1)


# ------------------------------------------------------------------------------------- pictures as sequences of pixels


def raster(pictures: torch.Tensor, levels: int) -> torch.Tensor:
    """Pictures as sequences of grey levels, row by row: (b, rows, columns) in 0…1 -> (b, rows · columns), int64."""
    if levels < 2:
        raise ValueError(f"A picture needs two grey levels at least, and asked for were {levels}.")
    return (pictures * levels).long().clamp(0, levels - 1).flatten(-2)


def row_and_column(t: int, columns: int, device: torch.device | str | None = None) -> torch.Tensor:
    """Where each of t pixels stands: (t, 2), its row and its column, int64."""
    _require_one("a row", columns)
    places = torch.arange(t, device=device)
    return torch.stack([places // columns, places % columns], dim=-1)


class PatternedAttention(SelfAttention):
    """Multi-head self-attention whose heads have a mask each."""

    def forward(self, x: torch.Tensor, masks: torch.Tensor | None = None) -> torch.Tensor:
        """x: (b, t, e). masks: (h, t, t), booleans. Returns (b, t, e). A row that sees nothing gives 0 in its head."""
        require_boolean(masks)
        q, k, v = (split_heads(to(x), self.h) for to in (self.to_queries, self.to_keys, self.to_values))
        return self.unify(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=masks)))


class PixelTransformer(nn.Module):
    """Predicts every pixel of a picture from those before it, row by row, each head by a pattern of its own.

    n: grey levels. masks: (h, t, t), booleans, causal; t pixels in rows of `columns`.
    """

    def __init__(self, n: int, e: int, depth: int, masks: torch.Tensor, columns: int):
        super().__init__()
        h, t, _ = masks.shape
        self.register_buffer("masks", masks, persistent=False)
        self.register_buffer("places", row_and_column(t, columns, masks.device), persistent=False)
        self.pixels = nn.Embedding(n + 1, e)  # the last one: nothing comes before the first pixel
        self.rows, self.columns = nn.Embedding(-(-t // columns), e), nn.Embedding(columns, e)
        self.transformer = Transformer(e, h, depth, pre_norm=True)
        for block in self.transformer.blocks:
            block.attention = PatternedAttention(e, h)
        self.to_logits = nn.Linear(e, n)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64. Returns logits (b, t, n): at place i those of pixel i, made of the pixels before it."""
        before = F.pad(ids[:, :-1], (1, 0), value=self.pixels.num_embeddings - 1)
        x = self.pixels(before) + self.rows(self.places[:, 0]) + self.columns(self.places[:, 1])
        return self.to_logits(self.transformer(x, self.masks))


def _distances(t: int, device: torch.device | str | None) -> torch.Tensor:
    """i − j for each pair: (t, t)."""
    places = torch.arange(t, device=device)
    return places.unsqueeze(1) - places


def _require_one(what: str, size: int) -> None:
    if size < 1:
        raise ValueError(f"There has to be at least one position in {what}, and asked for were {size}.")
