"""Lesson 18's attention with a cache for all heads, and with one for a quarter of them: the same model otherwise."""

from __future__ import annotations

from pathlib import Path

import torch

from helpers.benchmarks.parts_speed.duel import Job
from helpers.parts.gpt2 import KeyValueCache
from helpers.parts.llama import Config, Llama

SIDES = ("4 groups", "16 groups")
GROUPS = dict(zip(SIDES, (4, 16), strict=True))
SIZES = {"n": 256, "e": 512, "h": 16, "depth": 4, "hidden": 1024}
READ, WRITE = 4096, 32
JOBS = [Job(f"lesson 18, {WRITE} tokens after {READ:,} in the cache, 16 heads", "write", rounds=3)]


def jobs(side: str, folder: Path) -> dict:
    torch.manual_seed(0)
    model = Llama(Config(groups=GROUPS[side], **SIZES)).eval()
    ids = torch.randint(SIZES["n"], (1, READ), generator=torch.Generator().manual_seed(1))
    cache = KeyValueCache(SIZES["depth"], READ + WRITE)
    with torch.no_grad():
        model(ids, cache, last_only=True)

    def write():
        for layer in cache.layers:
            layer.length = READ  # what the last round has written is forgotten
        with torch.no_grad():
            token = ids[:, -1:]
            for _ in range(WRITE):
                token = model(token, cache, last_only=True).argmax(dim=-1)
        return WRITE

    return {"write": write}
