"""Lesson 3's model from other first weights, with three seeds: python -m helpers.training.ladder_starts

It starts with queries and keys of size 1, and so with scores of size 8, and is trained with the root and without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from helpers import ladder
from helpers.device import device
from helpers.ladder import ByteModel, E, ScaledHead
from helpers.parts.scaling import scaled_scores
from helpers.rungs import RUNGS
from helpers.training.common import Record, arguments
from helpers.training.ladder_runs import SEEDS, about, recipe

STEPS = RUNGS["03_scaling"].steps
BYTES_STD = 0.1  # of the byte vectors before the first step


def plain_scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Scores without the root. q: (b, t, d), k: (b, s, d). Returns (b, t, s)."""
    return q @ k.mT


def large_scores(scores: Callable) -> ByteModel:
    """Lesson 3's model with queries and keys whose components have the standard deviation 1 before the first step.

    scores: a function of q (b, t, d) and k (b, s, d) that returns (b, t, s).
    """
    head = ScaledHead(scores)
    model = ByteModel(head)
    for layer in (head.to_queries, head.to_keys):
        nn.init.normal_(layer.weight, std=1 / (BYTES_STD * math.sqrt(E)))
    return model


MODELS = {
    "03 large, not scaled": lambda: large_scores(plain_scores),
    "03 large, scaled": lambda: large_scores(scaled_scores),
}


def main() -> None:
    """Each model with each seed, on one thread; record."""
    torch.set_num_threads(1)
    options = arguments()
    seeds = SEEDS[:1] if options.attempt else SEEDS
    record = Record("ladder_starts", about(), recipe(seeds) | {"e": E, "steps": options.steps or STEPS})
    bits: dict[str, list[float]] = {name: [] for name in MODELS}
    for seed in seeds:
        for name, made in MODELS.items():
            torch.manual_seed(seed)
            model = made().to(device())
            ladder.train(model, options.steps or STEPS, seed)
            bits[name].append(round(ladder.held_out_bits(model), 4))
            print(f"seed {seed}, {name}: {bits[name][-1]:.3f}", flush=True)
    record.stop()
    record.finish(options, {"bits": bits})


if __name__ == "__main__":
    main()
