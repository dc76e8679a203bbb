"""GPT-2 at the size of the smallest published one, with random weights: ours, and `transformers`' GPT2LMHeadModel."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator

import torch

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.parts import gpt2

SIDES = ("the lesson's parts", "transformers")
PROMPT, COUNTS = 128, {"with a cache": 64, "without a cache": 8}


def comparisons() -> Iterator[Comparison]:
    """Forward passes, and writing with and without a cache."""
    if importlib.util.find_spec("transformers") is None:
        sys.exit("GPT-2 is compared with the package transformers, of the test extra, which is not installed.")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        gpt2.save(gpt2.GPT2(gpt2.Config.published("gpt2")), folder)
        sides = ours(folder), theirs(folder)
    ids = torch.randint(50_257, (1, 1024), generator=torch.Generator().manual_seed(1))
    for t in (1, 128, 1024):
        calls = [lambda forward=forward, t=t: forward(ids[:, :t]) for forward, _ in sides]
        yield Comparison(f"GPT-2, forward, {t:,} tokens", t, dict(zip(SIDES, calls, strict=True)))
    for how, count in COUNTS.items():
        calls = [lambda write=write, how=how: write(ids[:, :PROMPT], how) for _, write in sides]
        work = f"GPT-2, {count} new tokens after {PROMPT}, {how}"
        yield Comparison(work, count, dict(zip(SIDES, calls, strict=True)))


def ours(folder: str) -> tuple[Callable, Callable]:
    """Functions of ids (1, t): a forward pass; writing, in one of the ways of COUNTS."""
    model = gpt2.load(folder)

    def write(ids: torch.Tensor, how: str) -> torch.Tensor:
        generate = gpt2.generate_cached if how == "with a cache" else gpt2.generate
        return generate(model, ids, COUNTS[how], temperature=0)

    return torch.no_grad()(model), write


def theirs(folder: str) -> tuple[Callable, Callable]:
    """The same of `transformers`."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    model.generation_config.eos_token_id = None

    def write(ids: torch.Tensor, how: str) -> torch.Tensor:
        settings = {"do_sample": False, "pad_token_id": 0, "use_cache": how == "with a cache"}
        return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=COUNTS[how], **settings)

    return torch.no_grad()(lambda ids: model(ids, use_cache=False).logits), write
