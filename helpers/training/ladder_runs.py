"""The ladder of lessons 1 to 9 with the finished parts and three seeds: python -m helpers.training.ladder_runs

Also a plain average, the last byte alone, and what tests the lessons' claims. Lesson 3's: large scores before the first
step, with the root and without it, and the start of the one with the training of the other. Lesson 5's: no mask. Lesson
6's: other kinds of positions, or none, with four heads and with one. Lesson 7's: its three pieces, one after the other.
Lesson 9's: the last two rungs with twice the windows.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import nn

from helpers import ladder
from helpers.data.datasets import generator_text
from helpers.device import device
from helpers.ladder import (
    BATCH,
    FINISHED,
    LONGEST,
    RATE,
    WARMUP,
    BareAttention,
    ByteModel,
    E,
    H,
    Heads,
    N,
    OneHead,
    ScaledHead,
    T,
    later_hidden,
)
from helpers.parts.attention import attention
from helpers.parts.blocks import FeedForward, Transformer
from helpers.parts.generator import CharTransformer, bits_per_byte
from helpers.parts.masks import CausalSelfAttention
from helpers.parts.multi_head import MultiHeadAttention, merge_heads, split_heads
from helpers.parts.positions import relative_bias, rotate, sinusoidal_encoding
from helpers.parts.scaling import scaled_scores
from helpers.rungs import RUNGS
from helpers.training.common import Record, arguments

SEEDS = (0, 1, 2)
BYTES_STD = 0.1  # of the byte vectors before the first step
UNMASKED = "05 without the mask"


def average(x: torch.Tensor) -> torch.Tensor:
    """At each position the mean of all up to it. x: (b, t, e). Returns (b, t, e)."""
    counts = torch.arange(1, x.shape[1] + 1, device=x.device)
    return x.cumsum(dim=1) / counts.unsqueeze(-1)


class Sinusoids(nn.Module):
    """Adds lesson 6's fixed vectors, whose components lie between −1 and 1 as in the paper."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        return x + sinusoidal_encoding(x.shape[1], x.shape[2], x.device)


class DistanceHeads(Heads):
    """Four causal heads whose scores know the distance: by rotated queries and keys, or by a bias for each distance."""

    def __init__(self, rotary: bool):
        super().__init__(split_heads, merge_heads)
        self.rotary = rotary
        self.table = nn.Parameter(torch.zeros(2 * T - 1, H))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        t = x.shape[1]
        q, k, v = (self.split(part, H) for part in self.projected(x))
        if self.rotary:
            places = torch.arange(t, device=x.device)
            scores = scaled_scores(rotate(q, places), rotate(k, places))
        else:
            bias = [relative_bias(table[(T - t) : (T + t - 1)], t) for table in self.table.unbind(dim=-1)]
            scores = scaled_scores(q, k) + torch.stack(bias)
        return self.unify(self.merge(torch.softmax(later_hidden(scores), dim=-1) @ v))


class WithShortcut(nn.Module):
    """x + layer(x)."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        return x + self.layer(x)


def plain_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Scores without the root. q: (b, t, d), k: (b, s, d). Returns (b, t, s)."""
    return q @ k.mT


def large_scores(scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], longer: float = 1) -> ByteModel:
    """Lesson 3's model with queries and keys whose components have the standard deviation 1.4 before the first step.

    scores: a function of q (b, t, d) and k (b, s, d) that returns (b, t, s). longer: the query matrix starts this many
    times as large.
    """
    head = ScaledHead(scores)
    model = ByteModel(head)
    for layer in (head.to_queries, head.to_keys):
        nn.init.normal_(layer.weight, std=1 / (BYTES_STD * math.sqrt(E)))
    with torch.no_grad():
        head.to_queries.weight.mul_(longer)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {  # the rungs by lesson, and what else is compared with them
    "average": lambda: ByteModel(average),
    "last byte alone": lambda: ByteModel(nn.Identity()),
    "01_dot_product_attention": lambda: ByteModel(BareAttention(FINISHED["row_softmax"])),
    "02_queries_keys_values": lambda: ByteModel(OneHead(attention)),
    "03_scaling": lambda: ByteModel(ScaledHead(scaled_scores)),
    "04_multi_head": lambda: ByteModel(Heads(split_heads, merge_heads)),
    "05_masking": lambda: ByteModel(CausalSelfAttention(E, H)),
    "06_positions": lambda: ByteModel(CausalSelfAttention(E, H)),
    "07_transformer_block": lambda: ByteModel(Transformer(E, H, 3, pre_norm=True), mask=True),
    "09_character_generator": lambda: CharTransformer(N, E, H, 3, LONGEST),
    "03 large, not scaled": lambda: large_scores(plain_scores),
    "03 large, scaled": lambda: large_scores(scaled_scores),
    "03 soft start, not scaled": lambda: large_scores(plain_scores, 1 / math.sqrt(E)),
    "03 sharp start, scaled": lambda: large_scores(scaled_scores, math.sqrt(E)),
    UNMASKED: lambda: ByteModel(MultiHeadAttention(E, H)),
    "06 without positions": lambda: ByteModel(CausalSelfAttention(E, H), nn.Identity()),
    "06 sinusoids": lambda: ByteModel(CausalSelfAttention(E, H), Sinusoids()),
    "06 relative bias": lambda: ByteModel(DistanceHeads(rotary=False), nn.Identity()),
    "06 rotary": lambda: ByteModel(DistanceHeads(rotary=True), nn.Identity()),
    "06 one head without positions": lambda: ByteModel(ScaledHead(scaled_scores), nn.Identity()),
    "07 attention": lambda: ByteModel(CausalSelfAttention(E, H)),
    "07 + shortcut": lambda: ByteModel(WithShortcut(CausalSelfAttention(E, H))),
    "07 + network": lambda: ByteModel(
        nn.Sequential(WithShortcut(CausalSelfAttention(E, H)), WithShortcut(FeedForward(E)))
    ),
    "07 + norms": lambda: ByteModel(Transformer(E, H, 1, pre_norm=True), mask=True),
}
SAME = {"06_positions": "05_masking"}  # models of one build, which need one training

LAST_RUNGS = ("07_transformer_block", "09_character_generator")  # windows of 32 and 64 bytes; also with twice as many


def steps_of(name: str) -> int:
    """How many steps a model trains: those of its rung, or else of lesson 1."""
    steps = {lesson[:2]: rung.steps for lesson, rung in RUNGS.items()}
    return steps.get(name[:2], steps["01"])


def run_seed(seed: int, steps: int = 0) -> tuple[dict[str, float], dict[str, str], float]:
    """What came of each model with one seed. steps: of training; 0: those of the rung.

    Returns ({model: held-out bits per byte}, {rung: a sample}, processor seconds).
    """
    torch.set_num_threads(1)
    start, bits, samples = time.process_time(), {}, {}
    runs = [(name, name, 1) for name in MODELS if name not in SAME]
    runs += [(f"{name}, twice the windows", name, 2) for name in LAST_RUNGS]
    for label, name, times in runs:
        torch.manual_seed(seed)
        model = MODELS[name]().to(device())
        ladder.train(model, steps or steps_of(name), seed, times=times)
        bits[label] = round(ladder.held_out_bits(model), 4)
        if label in RUNGS:
            samples[label] = ladder.sample(model)
        if name == UNMASKED:
            bits |= {f"{UNMASKED}, {where}": round(value, 4) for where, value in training_bits(model, seed).items()}
        print(f"seed {seed}, {label}: {bits[label]:.3f}, {time.process_time() - start:.0f} s so far", flush=True)
    for rung, same in SAME.items():
        bits[rung], samples[rung] = bits[same], samples[same]
    return bits, samples, time.process_time() - start


@torch.no_grad()
def training_bits(model: nn.Module, seed: int, windows: int = 200) -> Mapping[str, float]:
    """Bits per byte on windows of the training text: of all positions, and of all but the last."""
    data, chance = ladder.text()[0], torch.Generator().manual_seed(seed)
    starts = torch.randint(len(data) - T, (windows, 1), generator=chance)
    ids = data[starts + torch.arange(T + 1)].long().to(device())  # (windows, t + 1)
    nats = F.cross_entropy(model.eval()(ids[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none").mean(dim=0)  # (t,)
    by_position = bits_per_byte(nats)
    return {"training": by_position.mean().item(), "training, but the last": by_position[:-1].mean().item()}


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
    record = Record("ladder", about(), recipe(seeds) | {"e": E, "h": H, "steps": steps}, "ladder_runs")
    start = time.perf_counter()
    with ProcessPoolExecutor(len(seeds), mp_context=get_context("spawn")) as pool:
        runs = list(pool.map(run_seed, seeds, [options.steps] * len(seeds)))
    record.resume([], time.perf_counter() - start, sum(seconds for _, _, seconds in runs))
    record.stop()
    bits = {name: [found[name] for found, _, _ in runs] for name in runs[0][0]}
    record.curve = [{"lesson": int(name[:2]), "held_out_bits": round(fmean(bits[name]), 5)} for name in RUNGS]
    references = {name: round(value, 4) for name, value in ladder.references().items()}
    result = {"bits": bits, "references": references, "samples": runs[0][1]}
    ends = {"first": fmean(bits["01_dot_product_attention"]), "last": fmean(bits["09_character_generator"])}
    record.finish(options, result | ends)


if __name__ == "__main__":
    main()
