"""Lesson 8's training with one choice undone at a time: python -m helpers.training.classifier_ablations

The generated reviews, the model, the batches and the recipe are the lesson's. Three seeds for each change.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from statistics import fmean

import torch
from torch import nn

from helpers.data.datasets import classifier_reviews
from helpers.device import device
from helpers.parts.blocks import Transformer
from helpers.parts.classifier import Classifier, accuracy, train_step
from helpers.parts.words import build_vocabulary, encode_batch, split_words
from helpers.training.common import Record, arguments, up_and_down
from helpers.training.ladder_runs import SEEDS

SIZES = {"e": 64, "h": 4, "depth": 2, "t_max": 64}
RATE, WARMUP, DECAY, BATCH, EPOCHS, ASIDE, WORDS, STD = 1e-3, 100, 0.1, 32, 4, 1000, 200, 0.02
CHANGES = (
    "nothing",
    "no positions",
    "no attention",
    "no warm-up",
    "tables fifty times as large",
    "post-norm",
    "post-norm, no warm-up",
)

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Texts = Sequence[tuple[str, int]]


class OwnWordOnly(nn.Module):
    """A stack of blocks in which every position looks at itself alone."""

    def __init__(self, transformer: nn.Module):
        super().__init__()
        self.transformer = transformer

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). mask: ignored. Returns (b, t, e)."""
        return self.transformer(x, torch.eye(x.shape[1], dtype=torch.bool, device=x.device))


def made(change: str, n: int) -> Classifier:
    """The lesson's model for n words, with that change, from PyTorch's random numbers."""
    model = Classifier(n, 2, **SIZES)
    std = 1.0 if change == "tables fifty times as large" else STD
    for table in (model.tokens, model.positions.table):
        nn.init.normal_(table.weight, std=std)
    if change == "no positions":
        setattr(model, "positions", nn.Identity())  # noqa: B010 — of another type than the model's own
    if change == "no attention":
        setattr(model, "transformer", OwnWordOnly(model.transformer))  # noqa: B010
    if change.startswith("post-norm"):
        model.transformer = Transformer(SIZES["e"], SIZES["h"], SIZES["depth"], pre_norm=False)
    return model.to(device())


def to_batch(some: Texts, vocabulary: dict[str, int]) -> Batch:
    """(ids (b, t), mask (b, t), labels (b,)) of texts with labels."""
    texts, labels = zip(*some, strict=True)
    ids, mask = encode_batch(texts, vocabulary, SIZES["t_max"])
    return ids.to(device()), mask.to(device()), torch.tensor(labels, device=device())


def epoch(learn: Texts, vocabulary: dict[str, int], seed: int) -> Iterator[Batch]:
    """Each text once, in batches of texts of similar length, in an order that the seed decides."""
    rng = random.Random(seed)
    by_length = sorted(learn, key=lambda text: (len(split_words(text[0])), rng.random()))
    groups = [by_length[k : k + BATCH] for k in range(0, len(by_length), BATCH)]
    rng.shuffle(groups)
    return (to_batch(group, vocabulary) for group in groups)


def trained(change: str, learn: Texts, vocabulary: dict[str, int], seed: int, steps: int = 0) -> Classifier:
    """The model with that change after the lesson's training, or after so many steps of it."""
    torch.manual_seed(seed)
    model = made(change, len(vocabulary))
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=DECAY)
    warmup = 0 if "no warm-up" in change else WARMUP
    planned = EPOCHS * math.ceil(len(learn) / BATCH)
    batches = (batch for k in range(EPOCHS) for batch in epoch(learn, vocabulary, EPOCHS * seed + k))
    for step, batch in zip(range(steps or planned), batches, strict=False):
        optimiser.param_groups[0]["lr"] = RATE * up_and_down(step, planned, warmup)
        train_step(model, batch, optimiser)
    return model


def main() -> None:
    """Each change with each seed, on one thread; record the share of test reviews that is judged right."""
    torch.set_num_threads(1)
    options = arguments()
    seeds = SEEDS[:1] if options.attempt else SEEDS
    train, test, _ = classifier_reviews(places="embedded")
    pairs = list(zip(train.texts, train.labels, strict=True))
    vocabulary = build_vocabulary(train.texts, WORDS)
    unseen = list(zip(test.texts, test.labels, strict=True))
    tests = [to_batch(unseen[k : k + 250], vocabulary) for k in range(0, len(unseen), 250)]
    data = {"name": "generated reviews", "sha256": hashlib.sha256("\n".join(train.texts).encode()).hexdigest()}
    settings = {"rate": RATE, "warmup": WARMUP, "weight_decay": DECAY, "batch": BATCH, "epochs": EPOCHS}
    record = Record("classifier_ablations", data, {**SIZES, **settings, "seeds": len(seeds)})
    found: dict[str, list[float]] = {change: [] for change in CHANGES}
    for seed in seeds:
        for change in CHANGES:
            model = trained(change, pairs[ASIDE:], vocabulary, seed, options.steps)
            found[change].append(round(accuracy(model, tests), 4))
            print(f"seed {seed}, {change}: {found[change][-1]:.1%}", flush=True)
    record.stop()
    record.finish(options, {"accuracy": found, "mean": {name: round(fmean(them), 4) for name, them in found.items()}})


if __name__ == "__main__":
    main()
