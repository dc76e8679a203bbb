"""Lesson 21's decoding with a draft, beside one token at a time with a cache: the pocket GPT-2, the same distribution.

The draft is prompt lookup, which costs nothing. What it saves depends on how often the model repeats itself, and so on
the temperature: both ways are measured at two, on modules of the standard library that the model has not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.data.datasets import gpt2_files
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.speculative import generate_with_lookup

SIDES = ("with a draft", "one by one")
TEXTS, PROMPT, NEW, K = 2, 90, 40, 4
TEMPERATURES = (1.0, 0.5)


def prompts() -> torch.Tensor:
    """Ids (TEXTS, PROMPT)."""
    tokenizer = Tokenizer.from_folder(gpt2_files("pocket_python", say=lambda line: None).folder)
    texts = (tokenizer.encode(text[:800]) for name, text in stdlib_sources().items() if is_held_out(name))
    return torch.tensor([row[:PROMPT] for row in texts if len(row) >= PROMPT][:TEXTS])


def comparisons() -> Iterator[Comparison]:
    """Both ways at each temperature, with the same random numbers at each call."""
    model, ids = gpt2.load(gpt2_files("pocket_python", say=lambda line: None).folder), prompts()

    def drafted(temperature: float) -> Callable[[], Any]:
        return lambda: [generate_with_lookup(model, row[None], NEW, K, temperature, seeded()) for row in ids]

    def plain(temperature: float) -> Callable[[], object]:
        return lambda: [gpt2.generate_cached(model, row[None], NEW, temperature, generator=seeded()) for row in ids]

    for temperature in TEMPERATURES:
        passes = sum(count for _, count in drafted(temperature)())
        work = f"lesson 21, temperature {temperature}, {len(ids) * NEW / passes:.2f} tokens a pass"
        ways = dict(zip(SIDES, (drafted(temperature), plain(temperature)), strict=True))
        yield Comparison(work, len(ids) * NEW, ways)


def seeded() -> torch.Generator:
    """The same random numbers each time."""
    return torch.Generator().manual_seed(0)
