"""Lesson 8's training with one choice undone at a time: python -m helpers.training.classifier_ablations

The generated reviews, the model, the batches and the recipe are the lesson's. Three seeds for each change. What is
trained without a change is also tried on some kinds of test reviews: those with a closing clause, as in "the plot is
great, although the cast is dull", and those that share a sentence with a training review.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter
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

CLOSING = re.compile(r"([^.,]+ is [^.,]+), (although|even if) ([^.]+)")

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


def dealt(reviews: Texts) -> tuple[Texts, Texts]:
    """(for validation, to learn from): a thousand reviews drawn at random, and the others, in an order drawn too."""
    pairs = list(reviews)
    random.Random(0).shuffle(pairs)
    return pairs[:ASIDE], pairs[ASIDE:]


def kinds_of(reviews: Texts, learn: Texts) -> dict[str, Texts]:
    """Test reviews by kind: with a closing clause, as it is, moved or removed; without, sharing a sentence or not."""
    pieces = lambda text: re.split(r"(?<=\.) ", text)  # noqa: E731
    times = Counter(piece for text, _ in learn for piece in pieces(text))
    closed = [review for review in reviews if CLOSING.search(review[0])]
    others = [review for review in reviews if not CLOSING.search(review[0])]
    shared = [any(0 < times[piece] < 100 for piece in pieces(text)) for text, _ in others]  # fillers are commoner
    return {
        "closing clause": closed,
        "moved to the front": [(CLOSING.sub(r" \2 \3,\1", text), label) for text, label in closed],
        "removed": [(CLOSING.sub(r"\1", text), label) for text, label in closed],
        "no closing clause": others,
        "none, and a shared sentence": [review for review, known in zip(others, shared, strict=True) if known],
        "none, and no shared sentence": [review for review, known in zip(others, shared, strict=True) if not known],
    }


def to_batch(some: Texts, vocabulary: dict[str, int]) -> Batch:
    """(ids (b, t), mask (b, t), labels (b,)) of texts with labels."""
    texts, labels = zip(*some, strict=True)
    ids, mask = encode_batch(texts, vocabulary, SIZES["t_max"])
    return ids.to(device()), mask.to(device()), torch.tensor(labels, device=device())


def in_batches(some: Texts, vocabulary: dict[str, int], size: int = 250) -> list[Batch]:
    """Batches in the order of the texts."""
    return [to_batch(some[k : k + size], vocabulary) for k in range(0, len(some), size)]


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
    _, learn = dealt(list(zip(train.texts, train.labels, strict=True)))
    vocabulary = build_vocabulary(train.texts, WORDS)
    unseen = list(zip(test.texts, test.labels, strict=True))
    kinds = kinds_of(unseen, learn)
    batches = {kind: in_batches(some, vocabulary) for kind, some in {"all": unseen, **kinds}.items()}
    data = {"name": "generated reviews", "sha256": hashlib.sha256("\n".join(train.texts).encode()).hexdigest()}
    settings = {"rate": RATE, "warmup": WARMUP, "weight_decay": DECAY, "batch": BATCH, "epochs": EPOCHS}
    record = Record("classifier_ablations", data, {**SIZES, **settings, "seeds": len(seeds)})
    found: dict[str, list[float]] = {change: [] for change in CHANGES}
    by_kind: dict[str, list[float]] = {kind: [] for kind in kinds}
    for seed in seeds:
        for change in CHANGES:
            model = trained(change, learn, vocabulary, seed, options.steps)
            found[change].append(round(accuracy(model, batches["all"]), 4))
            print(f"seed {seed}, {change}: {found[change][-1]:.1%}", flush=True)
            if change == "nothing":
                for kind, shares in by_kind.items():
                    shares.append(round(accuracy(model, batches[kind]), 4))
    record.stop()
    mean = {name: round(fmean(them), 4) for name, them in found.items()}
    counts = {kind: len(some) for kind, some in kinds.items()}
    record.finish(options, {"accuracy": found, "mean": mean, "by_kind": by_kind, "counts": counts})


if __name__ == "__main__":
    main()
