"""The published encoder of lesson 14 fine-tuned on IMDb: python -m helpers.training.imdb_bert

all-MiniLM-L6-v2 with one new layer on the mean of its vectors, all weights but those of the lower blocks trained for
one pass; about 25 minutes on two cores. Then the same with few labels, in three ways: all of it trained, only low-rank
updates, and frozen, where the block whose vectors are read is chosen on a part of the training data; beside them a
bag of the same pieces. Needs the model (`make data ARGS=minilm`) and IMDb (`make data ARGS=imdb`). Nothing is chosen by
the test part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from helpers.data.datasets import classifier_reviews, minilm_files
from helpers.device import device
from helpers.parts import bert
from helpers.parts.bert import Bert, PieceTokenizer, add_low_rank
from helpers.parts.classifier import mean_pool
from helpers.training.common import REAL, ScheduledAdamW, precision
from helpers.training.imdb import about, bag_of_words, batches, share_right
from helpers.training.loop import Experiment, again_and_again, run
from helpers.training.minilm import probed

LENGTH, HEAD = 256, 64  # pieces of a review: so many of its beginning, and the rest from its end
TOKENS, RATE, NEW_RATE, WARMUP, FROZEN_BLOCKS = 4_096, 5e-5, 1e-3, 0.1, 2
FEW = {100: 10, 1_000: 4, 5_000: 2}  # labels: passes over them
FEW_LENGTH, FEW_TOKENS, LOW_RANK_RATE, RANK, ALPHA = 128, 2_048, 1e-3, 8, 16
TESTED = 2_000  # reviews of the test part on which the trainings with few labels are compared


class Kind(nn.Module):
    """An encoder with a linear layer on the mean of its vectors: (b, t), (b, t) -> scores (b, 2)."""

    def __init__(self, encoder: Bert, dropout: float = 0.1):
        super().__init__()
        self.encoder, self.dropout = encoder, nn.Dropout(dropout)
        self.to_classes = nn.Linear(encoder.config.e, 2)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64. mask: (b, t), booleans, True at tokens. Returns scores (b, 2), no softmax."""
        x, _ = self.encoder(ids, None, mask)
        return self.to_classes(self.dropout(mean_pool(x, mask)))


def descent(model: Kind, rate: float, steps: int) -> ScheduledAdamW:
    """AdamW with a rate for what was trained before and another for what is new: up, then straight down to 0."""
    old = [p for p in model.encoder.parameters() if p.requires_grad]
    groups = [{"params": list(model.to_classes.parameters()), "lr": NEW_RATE}]
    groups += [{"params": old, "lr": rate}] if old else []

    def share(step: int, steps: int, up: int) -> float:
        return min((step + 1) / up, max(0.0, (steps - step) / max(1, steps - up)))

    return ScheduledAdamW(groups, rate, steps, max(1, round(WARMUP * steps)), share, weight_decay=0.01)


def as_rows(texts: Sequence[str], tokenizer: PieceTokenizer, length: int = LENGTH, head: int = HEAD) -> list[list[int]]:
    """Ids of each text with [CLS] and [SEP], `length` at most: of a longer one its first `head` pieces and its last."""
    rows = []
    for text in texts:
        ids, room = tokenizer.ids(text.replace("<br />", " ")), length - 2
        if len(ids) > room:
            ids = ids[:head] + ids[len(ids) - (room - head) :]
        rows.append([tokenizer.cls, *ids, tokenizer.sep])
    return rows


def loss_of(model: Kind, ids: torch.Tensor, mask: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, ()."""
    model.train()
    with precision():
        scores = model(ids, mask)
    return F.cross_entropy(scores.float(), truth)


def prepared(folder: Path, way: str) -> Kind:
    """A fresh copy of the published model with a new layer. way: what of it learns, "upper", "all" or "low rank"."""
    torch.manual_seed(0)
    model = Kind(bert.load(folder))
    encoder = model.encoder
    if encoder.pooler is not None:
        encoder.pooler.requires_grad_(False)
    if way == "low rank":
        add_low_rank(encoder, RANK, ALPHA)
    elif way == "upper":
        embeddings = (encoder.tokens, encoder.positions, encoder.segments, encoder.norm)
        for part in (*embeddings, *encoder.blocks[:FROZEN_BLOCKS]):
            part.requires_grad_(False)
    return model.to(device())


@torch.no_grad()
def features(encoder: Bert, rows: Sequence[list[int]], pad: int) -> torch.Tensor:
    """The mean vector of each row at every stage: (depth + 1, number of rows, e)."""
    found = torch.empty(encoder.config.depth + 1, len(rows), encoder.config.e)
    places = torch.arange(len(rows))
    for ids, mask, where in batches(rows, places, pad, tokens=TOKENS):
        for k, stage in enumerate(encoder.hidden(ids, None, mask)):
            found[k, where.cpu()] = mean_pool(stage, mask).float().cpu()
    return found


def frozen(x: torch.Tensor, y: torch.Tensor, tested: torch.Tensor, truth: torch.Tensor) -> dict[str, float | int]:
    """The accuracy on the test part of the stage that does best on a quarter of the training part kept apart."""
    held = max(2, len(y) // 4)
    best = max(range(len(x)), key=lambda k: probed(x[k, :-held], y[:-held], x[k, -held:], y[-held:]))
    return {"stage": best, "accuracy": probed(x[best], y, tested[best], truth)}


def tuned(
    folder: Path, way: str, rows: list, y: torch.Tensor, test: list, truth: torch.Tensor, pad: int, passes: int
) -> float:
    """The accuracy on the test part after so many passes over a few labels, in small batches."""
    model, generator = prepared(folder, way), torch.Generator().manual_seed(1)
    steps = passes * sum(1 for _ in batches(rows, y, pad, tokens=FEW_TOKENS))
    optimiser = descent(model, LOW_RANK_RATE if way == "low rank" else RATE, steps)
    stream = again_and_again(lambda: batches(rows, y, pad, generator, FEW_TOKENS))
    for _, batch in zip(range(steps), stream, strict=False):
        loss_of(model, *batch).backward()
        optimiser.step()
    return round(share_right(model, test, truth, pad, TOKENS), 4)


def with_few_labels(
    folder: Path,
    tokenizer: PieceTokenizer,
    texts: Sequence[str],
    labels: torch.Tensor,
    test_texts: Sequence[str],
    truth: torch.Tensor,
    few: Mapping[int, int] = FEW,
) -> list[dict]:
    """For each number of labels: all weights trained, steps of low rank, frozen, and a bag of the same pieces."""
    pad, table = tokenizer.pad, []
    test, encoder = as_rows(test_texts, tokenizer, FEW_LENGTH), bert.load(folder).to(device())
    tested = features(encoder, test, pad)
    for count, passes in few.items():
        rows, y = as_rows(texts[:count], tokenizer, FEW_LENGTH), labels[:count]
        counted = round(bag_of_words(rows, y, test, truth, len(tokenizer.pieces_by_id)), 4)
        row: dict[str, object] = {"labels": count, "bag of words": counted}
        row |= {"frozen": frozen(features(encoder, rows, pad), y, tested, truth)}
        row |= {way: tuned(folder, way, rows, y, test, truth, pad, passes) for way in ("low rank", "all")}
        print(row, flush=True)
        table.append(row)
    return table


def experiment() -> Experiment:
    """The training, the test, and the trainings with few labels."""
    (texts, given), (test_texts, test_given), _ = classifier_reviews(places=REAL)
    folder, *_ = minilm_files(places=REAL)
    tokenizer = PieceTokenizer.from_folder(folder)
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(0)).tolist()
    apart, rest = order[: len(order) // 10][:1000], order[len(order) // 10 :]
    rows, labels, pad = as_rows(texts, tokenizer), torch.tensor(given), tokenizer.pad
    train, held = [rows[k] for k in rest], [rows[k] for k in apart]
    generator = torch.Generator().manual_seed(1)
    steps = sum(1 for _ in batches(train, labels[rest], pad, generator, TOKENS))
    model = prepared(folder, "upper")

    def measured(whole: bool) -> tuple[dict, list[dict]]:
        if not whole:
            return {}, []
        test, truth = as_rows(test_texts, tokenizer), torch.tensor(test_given)
        result: dict[str, object] = {"test_accuracy": round(share_right(model, test, truth, pad, TOKENS), 4)}
        some = torch.randperm(len(test_texts), generator=torch.Generator().manual_seed(2))[:TESTED].tolist()
        result["few_labels"] = with_few_labels(
            folder, tokenizer, [texts[k] for k in rest], labels[rest], [test_texts[k] for k in some], truth[some]
        )
        return result, []

    few = {"length": FEW_LENGTH, "passes": FEW, "tokens_per_batch": FEW_TOKENS, "rank": RANK, "alpha": ALPHA}
    return Experiment(
        "imdb_bert",
        about(texts, test_texts, len(train), len(held)),
        model,
        {
            "length": LENGTH,
            "head": HEAD,
            "tokens_per_batch": TOKENS,
            "rate": RATE,
            "new_rate": NEW_RATE,
            "frozen_blocks": FROZEN_BLOCKS,
            "trained": sum(p.numel() for p in model.parameters() if p.requires_grad),
            "few": few | {"tested_on": TESTED},
            "optimiser": "AdamW",
            "schedule": "up for a tenth of the steps, then straight down to 0",
        },
        steps=steps,
        every=max(1, math.ceil(steps / 6)),
        epoch=lambda: batches(train, labels[rest], pad, generator, TOKENS),
        loss_of=lambda batch: loss_of(model, *batch),
        optimiser=lambda steps: descent(model, RATE, steps),
        look=lambda loss: {"loss": loss, "accuracy": share_right(model, held, labels[apart], pad, TOKENS)},
        measured=measured,
        memory=0.98,
    )


if __name__ == "__main__":
    run(experiment)
