"""Three small language models over bytes, and what fits them into a file: lesson 22's starting points.

A context is 256 bytes; each model gives the natural logarithms of the next byte's probabilities. b batch, t positions,
e width, k how many bytes before an n-gram's last one. Absolute discounting is of H. Ney, U. Essen and R. Kneser ("On
structuring probabilistic dependences in stochastic language modelling", 1994, section 3), the cache of R. Kuhn and
R. De Mori ("A cache-based natural language model for speech recognition", 1990).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ORDERS = 6  # the most bytes before that a table looks at
DISCOUNT = 0.8  # taken from each count of an n-gram, and given to shorter ones
PROBES = 4  # places in which an n-gram may be
LEVELS = 63  # of a stored probability p: from 0 to 62, and log2 p/(1-p) is -14 + level/3
MOST_STORED = 0.99  # of the probability after a context: the rest is for bytes that never followed it
TAGS = 1023  # by which an n-gram is known again; one in a thousand strangers has the same


# ----------------------------------------------------------------------------------- a table of n-grams


def count_ngrams(text: bytes, capacity: int) -> dict[str, torch.Tensor]:
    """A table of the n-grams of a text that help most to predict it, as tensors for a file.

    capacity: how many n-grams of order 2 and more there is room for. Returns "singles" (256,) and "pairs" (256, 256),
    levels of the probabilities of a byte and of a byte after a byte, uint8, LEVELS where it never came; and "entries"
    (capacity,), int16, a level and a tag for each n-gram.
    """
    orders = _counted(np.frombuffer(text, dtype=np.uint8).astype(np.uint64))
    pairs = np.full((256, 256), LEVELS, dtype=np.uint8)
    pairs[(orders[1][0] >> 8).astype(int), (orders[1][0] & 255).astype(int)] = _level(orders[1][1])
    keep = _chosen(orders, int(0.85 * capacity))
    keys = np.concatenate([_marked(orders[k][0][keep[k]], k) for k in range(2, ORDERS + 1)]).astype(np.int64)
    p = np.concatenate([orders[k][1][keep[k]] for k in range(2, ORDERS + 1)])
    # Short ones first, for a longer one is looked for only where the shorter is there
    gains = np.concatenate([orders[k][2][keep[k]] for k in range(2, ORDERS + 1)])
    entries, left = np.zeros(capacity, dtype=np.int32), np.lexsort((-gains, keys >> 56))
    slots, tags = (part.numpy() for part in _hashed(torch.from_numpy(keys), capacity))
    own = (tags << 6) | _level(p)
    for probe in range(PROBES):
        places = (slots[left] + probe) % capacity
        _, first = np.unique(places, return_index=True)  # of several that want one place, the most helpful
        first = first[entries[places[first]] == 0]
        entries[places[first]] = own[left[first]]
        left = np.delete(left, first)
    table = {"singles": _level(orders[0][1]), "pairs": pairs, "entries": entries.astype(np.uint16).view(np.int16)}
    return {name: torch.from_numpy(array) for name, array in table.items()}


def _counted(data: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    """For each order: the n-grams as whole numbers, sorted; their probabilities, the bits each saves, and counts."""
    counts = np.bincount(data.astype(int), minlength=256) + 0.1
    orders: list[tuple[np.ndarray, ...]] = [(np.arange(256, dtype=np.uint64), counts / counts.sum(), counts, counts)]
    key = data.copy()
    for k in range(1, ORDERS + 1):
        key = (key[:-1] << np.uint64(8)) | data[k:]
        if k > 1:
            key &= np.uint64((1 << 8 * (k + 1)) - 1)
        ngrams, seen = np.unique(key, return_counts=True)
        _, first, kinds = np.unique(ngrams >> np.uint64(8), return_index=True, return_counts=True)
        total = np.repeat(np.add.reduceat(seen, first), kinds)
        shorter = np.searchsorted(orders[-1][0], ngrams & np.uint64((1 << 8 * k) - 1))
        before = orders[-1][1][shorter]
        p = (seen - DISCOUNT + DISCOUNT * np.repeat(kinds, kinds) * before) / total
        orders.append((ngrams, p, seen * np.log2(p / before), seen))
    return orders


def _chosen(orders: list, capacity: int) -> list[np.ndarray]:
    """For each order, which n-grams to keep: at most so many, and none without the shorter one that it ends in."""
    low, high, best = 0.0, 1e6, []
    for _ in range(40):
        least = (low + high) / 2
        keep = [gain >= least for _, _, gain, _ in orders]
        for k in range(ORDERS, 2, -1):
            needed = orders[k][0][keep[k]] & np.uint64((1 << 8 * k) - 1)
            keep[k - 1] |= np.isin(orders[k - 1][0], needed)
        if sum(kept.sum() for kept in keep[2:]) <= capacity:
            high, best = least, keep
        else:
            low = least
    return best


def _marked(ngrams: np.ndarray, k: int) -> np.ndarray:
    """n-grams of order k as whole numbers that no other order has."""
    return ngrams | np.uint64(k << 56)


def _level(p: np.ndarray) -> np.ndarray:
    return np.clip(np.round(3 * (np.log2(p / (1 - p).clip(1e-9)) + 14)), 0, LEVELS - 1).astype(np.uint8)


def _probability(level: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid((level.float() / 3 - 14) * math.log(2))


def _hashed(keys: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Where n-grams are looked for first, and their tags, from 1. keys: (...), int64."""
    mixed = keys * -7046029254386353131
    mixed = (mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)) * -4658895280553007687
    return ((mixed >> 30) & 0x3FFFFFFFF) % capacity, ((mixed >> 10) & 0xFFFFF) % TAGS + 1


def table_log_probabilities(table: dict[str, torch.Tensor], contexts: torch.Tensor) -> torch.Tensor:
    """What a table of `count_ngrams` predicts after contexts (b, t), int64: (b, 256).

    The longest n-grams that are in the table count; what they leave is shared out as the next shorter ones say.
    """
    level = table["pairs"][contexts[:, -1]].long()  # (b, 256)
    p = _probability(table["singles"]).expand(level.shape)
    there = level < LEVELS
    p = _with_longer(p, there, level)
    entries, key = table["entries"].int() & 0xFFFF, contexts[:, -1]
    for k in range(2, ORDERS + 1):
        key = key | (contexts[:, -k] << 8 * (k - 1))
        keys = (key[:, None] << 8) | torch.arange(256) | (k << 56)
        slots, tags = _hashed(keys, len(entries))
        places = (slots[..., None] + torch.arange(PROBES)) % len(entries)  # (b, 256, PROBES)
        same = (entries[places] >> 6) == tags[..., None]
        level = torch.where(same, entries[places] & 63, 0).amax(dim=-1)
        there = there & same.any(dim=-1)
        p = _with_longer(p, there, level)
    return p.log()


def _with_longer(p: torch.Tensor, there: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
    """Probabilities (b, 256) where those that are there are known better; the others share what is left."""
    stored = torch.where(there, _probability(level), 0.0)
    stored = stored * (MOST_STORED / stored.sum(dim=-1, keepdim=True).clamp(min=MOST_STORED))
    rest = torch.where(there, 0.0, p)
    p = stored + rest * (1 - stored.sum(dim=-1, keepdim=True)) / rest.sum(dim=-1, keepdim=True).clamp(min=1e-12)
    return p / p.sum(dim=-1, keepdim=True)


def cache_log_probabilities(contexts: torch.Tensor, longest: int = 8) -> torch.Tensor:
    """What has followed, within each context (b, t), the bytes that it ends in: (b, 256).

    Each earlier place counts the more, the more bytes before it are the same as at the end, up to `longest`.
    """
    b, t = contexts.shape
    same, weight = torch.ones(b, t - 1), torch.zeros(b, t - 1)
    for k in range(1, longest + 1):
        # Place j is followed by byte j + 1; byte j + 1 - k is compared with the k-th from the end
        equal = torch.zeros(b, t - 1)
        equal[:, k - 1 :] = (contexts[:, : t - k] == contexts[:, -k, None]).float()
        same = same * equal
        weight = weight + same * 4.0**k
    seen = torch.zeros(b, 256).scatter_add(1, contexts[:, 1:], weight) + 1e-3
    return (seen / seen.sum(dim=-1, keepdim=True)).log()


# ------------------------------------------------------------------------------------ a small transformer


class ByteTransformer(nn.Module):
    """A transformer over bytes out of PyTorch's layers, whose table of tokens is its output layer too."""

    def __init__(self, e: int = 128, h: int = 4, depth: int = 3, t_max: int = 128, dropout: float = 0.0):
        """dropout: the share of what each layer adds that is left out in training, as of the network's inside."""
        super().__init__()
        self.t_max = t_max
        self.tokens, self.positions = nn.Embedding(256, e), nn.Parameter(torch.zeros(t_max, e))
        settings: Any = {"dropout": dropout, "activation": "gelu", "batch_first": True, "norm_first": True}
        blocks = [nn.TransformerEncoderLayer(e, h, 4 * e, **settings) for _ in range(depth)]
        for block in blocks:
            block.self_attn.dropout = 0.0  # of attention's weights: with it a step takes half as long again
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(e)
        nn.init.normal_(self.tokens.weight, std=0.05)
        nn.init.normal_(self.positions, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), t ≤ t_max. Returns logits (b, t, 256)."""
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, mask, is_causal=True)
        return self.norm(x) @ self.tokens.weight.T


def learn(
    model: nn.Module, text: bytes, steps: int, batch: int = 16, t: int = 128, bfloat16: bool = False
) -> Iterator[float]:
    """Train on random stretches of a text, and yield the loss of each step, in bits per byte.

    The blocks' matrices learn by `Muon`, everything else by AdamW; the rates rise for 60 steps and fall over the last
    half. The stretches are the same in every run. bfloat16: the model multiplies in it.
    """
    data, chance = torch.frombuffer(bytearray(text), dtype=torch.uint8), torch.Generator().manual_seed(1)
    named = dict(model.named_parameters())
    matrices = [p for name, p in named.items() if p.dim() == 2 and name.startswith("blocks")]
    rest = [p for name, p in named.items() if p.dim() != 2 or not name.startswith("blocks")]
    muon, adam = Muon(matrices), torch.optim.AdamW(rest, betas=(0.9, 0.98), weight_decay=0)
    for step in range(steps):
        rate = min(1, (step + 1) / 60) * min(1, (steps - step) / (0.5 * steps))
        starts = torch.randint(len(data) - t - 1, (batch,), generator=chance)
        rows = data[starts[:, None] + torch.arange(t + 1)].long()
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):  # anew for each step: it keeps what it has cast
            logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.param_groups[0]["lr"] = 3e-3 * rate
        adam.step()
        muon.step(0.02 * rate)
        yield loss.item() / np.log(2)


class Muon:
    """Steps whose singular values are all about 1: momentum, made nearly orthogonal by five Newton-Schulz iterations.

    K. Jordan and others, "Muon: an optimizer for hidden layers in neural networks" (2024), with its constants.
    """

    def __init__(self, matrices: list[nn.Parameter]):
        self.matrices, self.momenta = matrices, [torch.zeros_like(p) for p in matrices]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Change the matrices by their gradients. Queries', keys' and values' matrices are taken one by one."""
        for p, momentum in zip(self.matrices, self.momenta, strict=True):
            assert p.grad is not None
            momentum.mul_(0.95).add_(p.grad)
            ahead = p.grad + 0.95 * momentum
            rows, columns = p.shape
            if rows == 3 * columns:
                change = _orthogonal(ahead.view(3, columns, columns)).reshape(p.shape)
            else:
                change = _orthogonal(ahead) * max(1, rows / columns) ** 0.5
            p.mul_(1 - 0.02 * rate).sub_(rate * change)


def _orthogonal(x: torch.Tensor) -> torch.Tensor:
    x, tall = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7), x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.mT if tall else x


def to_int8(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights in about a quarter of their bytes.

    Of a matrix (rows, columns) there is an int8 matrix of that shape, and its scales (rows, 1) under "NAME.scale"; a
    vector (e,) becomes float16.
    """
    small = {}
    for name, weight in weights.items():
        if weight.dim() < 2:
            small[name] = weight.half()
            continue
        scale = weight.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / 127
        small[name], small[f"{name}.scale"] = (weight / scale).round().to(torch.int8), scale.half()
    return small


def from_int8(small: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights that `to_int8` made small, as float32, in their shapes: (rows, columns) and (e,)."""
    scales = {name for name in small if name.endswith(".scale")}
    return {
        name: small[name].float() * small[f"{name}.scale"].float() if f"{name}.scale" in scales else small[name].float()
        for name in small.keys() - scales
    }
