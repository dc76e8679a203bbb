"""The ladder of lessons 1 to 9 with the finished parts and three seeds: python -m helpers.training.ladder_runs

Also a plain average and the last byte alone, and three tests. Lesson 2's: the models of the first two rungs with
position vectors added, with eight times as many windows in each step, and with both. Lesson 3's: large scores before
the first step, with the root and without it. Lesson 9's: the last two rungs with twice as many windows.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import fmean

import torch
from torch import nn

from helpers import ladder
from helpers.data.datasets import generator_text
from helpers.device import device
from helpers.ladder import BATCH, LONGEST, RATE, WARMUP, ByteModel, E, H, N, ScaledHead, T
from helpers.parts.attention import SingleHeadAttention
from helpers.parts.blocks import Transformer
from helpers.parts.generator import CharTransformer
from helpers.parts.masks import CausalSelfAttention
from helpers.parts.multi_head import MultiHeadAttention
from helpers.parts.positions import PositionEmbedding
from helpers.parts.scaling import scaled_scores
from helpers.rungs import RUNGS
from helpers.training.common import Record, arguments

SEEDS = (0, 1, 2)
BYTES_STD = 0.1  # of the byte vectors before the first step


def average(x: torch.Tensor) -> torch.Tensor:
    """The mean of all positions, at each of them. x: (b, t, e). Returns (b, t, e)."""
    return x.mean(dim=1, keepdim=True).expand_as(x)


def positions() -> nn.Module:
    """A vector for each position of a window."""
    return PositionEmbedding(T, E)


def plain_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Scores without the root. q: (b, t, d), k: (b, s, d). Returns (b, t, s)."""
    return q @ k.mT


def large_scores(scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> ByteModel:
    """Lesson 3's model with queries and keys whose components have the standard deviation 1 before the first step.

    scores: a function of q (b, t, d) and k (b, s, d) that returns (b, t, s).
    """
    head = ScaledHead(scores)
    model = ByteModel(head)
    for layer in (head.to_queries, head.to_keys):
        nn.init.normal_(layer.weight, std=1 / (BYTES_STD * math.sqrt(E)))
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {  # the rungs by lesson, and six more
    "average": lambda: ByteModel(average),
    "last byte alone": lambda: ByteModel(nn.Identity()),
    "01_dot_product_attention": lambda: ByteModel(ladder.self_attention),
    "02_queries_keys_values": lambda: ByteModel(SingleHeadAttention(E, E)),
    "03_scaling": lambda: ByteModel(ScaledHead(scaled_scores)),
    "04_multi_head": lambda: ByteModel(MultiHeadAttention(E, H)),
    "05_masking": lambda: ByteModel(CausalSelfAttention(E, H), causal=True),
    "06_positions": lambda: ByteModel(CausalSelfAttention(E, H), positions(), causal=True),
    "07_transformer_block": lambda: ByteModel(Transformer(E, H, 3, pre_norm=True), positions(), mask=True),
    "09_character_generator": lambda: CharTransformer(N, E, H, 3, LONGEST),
    "01 with positions": lambda: ByteModel(ladder.self_attention, positions()),
    "02 with positions": lambda: ByteModel(SingleHeadAttention(E, E), positions()),
    "03 large, not scaled": lambda: large_scores(plain_scores),
    "03 large, scaled": lambda: large_scores(scaled_scores),
}

TIMES = 8  # as many windows, in runs of their own
FIRST_RUNGS = ("01_dot_product_attention", "02_queries_keys_values", "01 with positions", "02 with positions")
LAST_RUNGS = ("07_transformer_block", "09_character_generator")  # windows of 32 and 64 bytes; also with twice as many


def steps_of(name: str) -> int:
    """How many steps a model trains: those of its rung, or else of lesson 1."""
    steps = {lesson[:2]: rung.steps for lesson, rung in RUNGS.items()}
    return steps.get(name[:2], steps["01"])


def run_seed(seed: int, steps: int = 0) -> tuple[dict[str, float], float]:
    """({model: held-out bits per byte}, processor seconds) with one seed. steps: of training; 0: those of the rung."""
    torch.set_num_threads(1)
    start, bits = time.process_time(), {}
    runs = [(name, name, 1) for name in MODELS]
    runs += [(f"{name}, {TIMES} times the windows", name, TIMES) for name in FIRST_RUNGS]
    runs += [(f"{name}, twice the windows", name, 2) for name in LAST_RUNGS]
    for label, name, times in runs:
        torch.manual_seed(seed)
        model = MODELS[name]().to(device())
        ladder.train(model, steps or steps_of(name), seed, times=times)
        bits[label] = round(ladder.held_out_bits(model), 4)
        print(f"seed {seed}, {label}: {bits[label]:.3f}, {time.process_time() - start:.0f} s so far", flush=True)
    return bits, time.process_time() - start


def about() -> dict[str, str | int]:
    """What a record says of the ladder's text."""
    text, _ = generator_text(places="embedded")
    name, held_out = "the prose of Python's reference manual", len(ladder.text()[1])
    return {"name": name, "sha256": hashlib.sha256(text).hexdigest(), "held_out_bytes": held_out}


def recipe(seeds: Sequence[int]) -> dict[str, object]:
    """What a record says of a training by the ladder's recipe with some seeds."""
    sizes = {"n": N, "t": T, "batch": BATCH, "rate": RATE, "warmup": WARMUP, "seeds": len(seeds)}
    return {**sizes, "optimiser": "AdamW", "schedule": "half a cosine to 0"}


def main() -> None:
    """All models with each seed, each seed in a process of its own with one thread; record."""
    options = arguments()
    seeds = SEEDS[:1] if options.attempt else SEEDS
    steps = {lesson: rung.steps for lesson, rung in RUNGS.items()}
    record = Record("ladder", about(), recipe(seeds) | {"e": E, "h": H, "steps": steps})
    start = time.perf_counter()
    with ProcessPoolExecutor(len(seeds), mp_context=get_context("spawn")) as pool:
        runs = list(pool.map(run_seed, seeds, [options.steps] * len(seeds)))
    record.resume([], time.perf_counter() - start, sum(seconds for _, seconds in runs))
    record.stop()
    bits = {name: [found[name] for found, _ in runs] for name in runs[0][0]}
    record.curve = [{"lesson": int(name[:2]), "held_out_bits": round(fmean(bits[name]), 5)} for name in RUNGS]
    result = {"bits": bits, "references": {name: round(value, 4) for name, value in ladder.references().items()}}
    ends = {"first": fmean(bits["01_dot_product_attention"]), "last": fmean(bits["09_character_generator"])}
    record.finish(options, result | ends)


if __name__ == "__main__":
    main()
