"""Keys and values that a model that writes keeps (lessons 10 and 12), so that they need not be computed again.

b batch, t positions (queries), s positions (keys and values), h heads, d width of one head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class LayerCache:
    """The keys and values that one block has computed so far, in memory for `size` positions that is set aside once."""

    def __init__(self, size: int):
        self.size, self.length = size, 0
        self.keys: Any = None  # (b, h, size, d), once there are some
        self.values: Any = None

    def append(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """k, v: (b, h, t, d), of the next t positions. Returns those of all positions so far, (b, h, s, d)."""
        b, h, t, d = k.shape
        if self.keys is None:
            self.keys, self.values = k.new_empty(b, h, self.size, d), v.new_empty(b, h, self.size, d)
        if len(self.keys) != b:
            raise ValueError(
                f"The cache holds a batch of {len(self.keys)} texts, and these are {b}: make one for each."
            )
        end = self.length + t
        if end > self.size:
            raise ValueError(f"The cache has room for {self.size} positions, and these would be {end}.")
        self.keys[:, :, self.length : end], self.values[:, :, self.length : end] = k, v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def take(self, rows: torch.Tensor) -> None:
        """Go on with these texts of the batch. rows: (m,), indices; a text may come several times, or not at all."""
        self.keys, self.values = self.keys.index_select(0, rows), self.values.index_select(0, rows)


class KeyValueCache:
    """The keys and values of all blocks for the positions that a model has read: they need not be computed again.

    depth: how many blocks. size: for how many positions there is room. For generation, without gradients.
    """

    def __init__(self, depth: int, size: int):
        self.layers = [LayerCache(size) for _ in range(depth)]

    @property
    def length(self) -> int:
        """How many positions have been read."""
        return self.layers[0].length


class DecodingCache:
    """The keys and values of a decoder's blocks while it writes a translation: of the target so far, and of the source.

    target: a LayerCache a block, (b, h, t, d), to which each step adds. source: a LayerCache a block, (b, h, s, d) or,
    where all rows translate one sentence, (1, h, s, d); the first step fills it. depth: how many blocks. t, s: for how
    many positions of target and source there is room. For writing, without gradients.
    """

    def __init__(self, depth: int, t: int, s: int):
        self.target = [LayerCache(t) for _ in range(depth)]
        self.source = [LayerCache(s) for _ in range(depth)]

    @property
    def length(self) -> int:
        """How many positions of the target have been read."""
        return self.target[0].length

    def take(self, rows: torch.Tensor) -> None:
        """Go on with these translations. rows: (m,), indices; one may come several times, or not at all."""
        one_sentence = len(self.source[0].keys) == 1  # it serves all rows
        for layer in self.target if one_sentence else self.target + self.source:
            layer.take(rows)


def cache_bytes(t: int, groups: int, d: int, windows: Sequence[int | None], bits: int = 16) -> float:
    """The size of the keys and values of one text of t positions, in bytes (lesson 21).

    groups: heads of keys and values in each layer. d: width of one. windows: for each layer how many positions it
    keeps, None for all. bits: of each number; below 16, each key and each value has a scale of 16 bits.
    """
    positions = sum(t if window is None else min(t, window) for window in windows)
    vectors = 2 * groups * positions
    return vectors * (d * bits + (0 if bits >= 16 else 16)) / 8
