"""Lesson 18's attention with a cache for all heads, and with one for a quarter of them: the same model otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.parts.gpt2 import KeyValueCache
from helpers.parts.llama import Llama, LlamaConfig

GROUPS = {"4 groups": 4, "16 groups": 16}
SIZES: dict[str, Any] = {"n": 256, "e": 512, "h": 16, "depth": 4, "hidden": 1024}
READ, WRITE = 4096, 32


def comparisons() -> list[Comparison]:
    """Writing after a long text."""
    work = f"lesson 18, {WRITE} tokens after {READ:,} in the cache, 16 heads"
    return [Comparison(work, WRITE, {side: writer(groups) for side, groups in GROUPS.items()})]


@torch.no_grad()
def writer(groups: int) -> Callable[[], KeyValueCache]:
    """What writes WRITE tokens after the READ that are in its cache, anew at each call. Returns the cache."""
    torch.manual_seed(0)
    model = Llama(LlamaConfig(groups=groups, **SIZES)).eval()
    ids = torch.randint(SIZES["n"], (1, READ), generator=torch.Generator().manual_seed(1))
    cache = KeyValueCache(SIZES["depth"], READ + WRITE)
    model(ids, cache, last_only=True)

    @torch.no_grad()
    def write() -> KeyValueCache:
        for layer in cache.layers:
            layer.length = READ  # what the last call has written is forgotten
        token = ids[:, -1:]
        for _ in range(WRITE):
            token = model(token, cache, last_only=True).argmax(dim=-1)
        return cache

    return write
