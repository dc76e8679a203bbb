"""GPT-2 at the size of the smallest published one, with random weights: ours, and `transformers`' GPT2LMHeadModel."""

from __future__ import annotations

from pathlib import Path

import torch

from helpers.benchmarks.parts_speed.duel import Job
from helpers.parts import gpt2

SIDES = ("the lesson's parts", "transformers")
PROMPT, COUNT, CHUNK = 256, 256, 32


def table(prompt: int = PROMPT, count: int = COUNT) -> list[Job]:
    """What is measured.

    Plain generation goes in chunks, so that the two sides take turns often: minutes apart a machine is not the same.
    """
    chunks = tuple((start, min(CHUNK, prompt + count - start)) for start in range(prompt, prompt + count, CHUNK))
    return [
        Job("forward, 1 token", "forward", ((1,),), rounds=15),
        Job("forward, 128 tokens", "forward", ((128,),), rounds=7),
        Job("forward, 1,024 tokens", "forward", ((1024,),), rounds=5),
        Job(f"cached, {count} new after {prompt}", "cached", ((prompt, count),), rounds=3, warm_up=(prompt, 8)),
        Job(f"plain, {count} new after {prompt}", "plain", chunks, rounds=1, warm_up=(prompt, 2)),
    ]


def prepare(folder: Path) -> None:
    """Random weights for both sides, in a file."""
    torch.manual_seed(0)
    gpt2.save(gpt2.GPT2(gpt2.Config.published("gpt2")), folder)


def jobs(side: str, folder: Path) -> dict:
    ids = torch.randint(50_257, (1, 1024), generator=torch.Generator().manual_seed(1))
    return _ours(folder, ids) if side == SIDES[0] else _theirs(folder, ids)


def _ours(folder: Path, ids: torch.Tensor) -> dict:
    model = gpt2.load(folder)

    def forward(t):
        with torch.no_grad():
            return model(ids[:, :t]).shape[1]

    def plain(t, count):
        return gpt2.generate(model, ids[:, :t], count, temperature=0).shape[1]

    def cached(t, count):
        return gpt2.generate_cached(model, ids[:, :t], count, temperature=0).shape[1]

    return {"forward": forward, "plain": plain, "cached": cached}


def _theirs(folder: Path, ids: torch.Tensor) -> dict:
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    model.generation_config.eos_token_id = None

    def forward(t):
        with torch.no_grad():
            return model(ids[:, :t], use_cache=False).logits.shape[1]

    def write(t, count, use_cache):
        prompt = ids[:, :t]
        how = {"max_new_tokens": count, "do_sample": False, "pad_token_id": 0, "use_cache": use_cache}
        return model.generate(prompt, attention_mask=torch.ones_like(prompt), **how).shape[1] - t

    return {
        "forward": forward,
        "plain": lambda t, count: write(t, count, False),
        "cached": lambda t, count: write(t, count, True),
    }
