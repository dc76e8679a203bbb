"""Keys and values that a model that writes keeps (lesson 12), so that they need not be computed again.

b batch, t positions (queries), s positions (keys and values), h heads, d width of one head.
"""

from __future__ import annotations

import torch


class LayerCache:
    """The keys and values that one block has computed so far, in memory for `size` positions that is set aside once."""

    def __init__(self, size: int):
        self.size, self.length = size, 0
        self.keys = self.values = None  # (b, h, size, d), once there are some

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
