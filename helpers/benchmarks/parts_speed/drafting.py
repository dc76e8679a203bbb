"""Lesson 21's decoding with a draft, beside one token at a time with a cache: the pocket GPT-2, the same distribution.

The draft is prompt lookup, which costs nothing. How much it saves depends on how often a text repeats itself, so two
kinds of prompts are measured: a module of the standard library that the model has not read, and the same followed by
its own beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.data.datasets import gpt2_files
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.speculative import generate_with_lookup

SIDES = ("with a draft", "one by one")
TEXTS, PROMPT, NEW, K, TEMPERATURE = 4, 90, 80, 4, 0.5


def prompts() -> dict[str, torch.Tensor]:
    """Ids (TEXTS, PROMPT), by kind."""
    tokenizer = Tokenizer.from_folder(gpt2_files("pocket_python", say=lambda line: None).folder)
    texts = (tokenizer.encode(text[:800]) for name, text in stdlib_sources().items() if is_held_out(name))
    ids = torch.tensor([row[:PROMPT] for row in texts if len(row) >= PROMPT][:TEXTS])
    return {"a new text": ids, "a text again": torch.cat([ids[:, 15:], ids[:, 15:30]], dim=1)}


def comparisons() -> Iterator[Comparison]:
    """Both kinds of prompts, the same random numbers at each call."""
    model = gpt2.load(gpt2_files("pocket_python", say=lambda line: None).folder)

    def drafted(ids: torch.Tensor) -> Callable[[], list]:
        return lambda: [generate_with_lookup(model, row[None], NEW, K, TEMPERATURE, seeded(), 3) for row in ids]

    def plain(ids: torch.Tensor) -> Callable[[], list]:
        return lambda: [gpt2.generate_cached(model, row[None], NEW, TEMPERATURE, generator=seeded()) for row in ids]

    for kind, ids in prompts().items():
        passes = sum(count for _, count in drafted(ids)())
        work = f"lesson 21, {kind}, temperature {TEMPERATURE}, {len(ids) * NEW / passes:.2f} tokens a pass"
        yield Comparison(work, len(ids) * NEW, dict(zip(SIDES, (drafted(ids), plain(ids)), strict=True)))


def seeded() -> torch.Generator:
    """The same random numbers each time."""
    return torch.Generator().manual_seed(0)
