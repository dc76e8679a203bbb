"""Lesson 8's model on IMDb: python -m helpers.training.imdb

25,000 film reviews to train on and 25,000 to test on (Maas et al., "Learning word vectors for sentiment analysis",
2011). About a quarter of an hour on two cores. One review in ten of the training part is kept apart, to look at during
the training; nothing is chosen by the test part.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from helpers.data.datasets import classifier_reviews
from helpers.device import device
from helpers.parts.classifier import Classifier, accuracy
from helpers.parts.evaluating import evaluating
from helpers.parts.words import PAD, UNKNOWN, build_vocabulary, pad_rows, split_words
from helpers.training.common import COSINE, REAL, Optimiser, Rates, initialise, precision
from helpers.training.loop import Experiment, run

VOCABULARY, LENGTH = 20_000, 224
MODEL = {"c": 2, "e": 128, "h": 2, "depth": 2, "t_max": LENGTH}
DROPOUT, WORD_DROPOUT = 0.2, 0.1
TOKENS, EPOCHS = 8_192, 4
RATES: Rates = {"rate": 4e-3, "embedding_rate": 2e-3, "warmup": 100}


def as_rows(texts: list[str], vocabulary: dict[str, int]) -> list[list[int]]:
    """Ids of each text: beginning and end of one longer than LENGTH, for reviewers tend to conclude at the end."""
    rows = []
    for text in texts:
        ids = [vocabulary.get(word, vocabulary[UNKNOWN]) for word in split_words(text)]
        rows.append(ids if len(ids) <= LENGTH else ids[: LENGTH // 4] + ids[len(ids) - (LENGTH - LENGTH // 4) :])
    return rows


def batches(
    rows: Sequence[list[int]],
    labels: torch.Tensor,
    pad: int,
    generator: torch.Generator | None = None,
    tokens: int | None = None,
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """(ids, mask, labels) of reviews of about equal length, so that little padding is computed.

    `tokens` (or TOKENS) ids at most in each; in random order with a generator.
    """
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.float32)
    if generator is not None:
        lengths = lengths + 10 * torch.rand(len(rows), generator=generator)  # other neighbours in every epoch
    groups: list[list[int]] = [[]]
    for place in lengths.argsort().tolist():
        if groups[-1] and (len(groups[-1]) + 1) * len(rows[place]) > (tokens or TOKENS):
            groups.append([])
        groups[-1].append(place)
    order = range(len(groups)) if generator is None else torch.randperm(len(groups), generator=generator).tolist()
    for k in order:
        ids, mask = pad_rows([rows[place] for place in groups[k]], pad)
        yield ids.to(device()), mask.to(device()), labels[groups[k]].to(device())


def loss_of(model: nn.Module, ids: torch.Tensor, mask: torch.Tensor, truth: torch.Tensor, unknown: int) -> torch.Tensor:
    """Cross-entropy, (), where some words are forgotten: one in ten is `unknown`. ids, mask: (b, t). truth: (b,)."""
    forgotten = torch.rand(ids.shape, device=ids.device) < WORD_DROPOUT
    ids = ids.masked_fill(forgotten & mask, unknown)
    with precision():
        scores = model(ids, mask)
    return F.cross_entropy(scores.float(), truth)


@torch.no_grad()
def share_right(
    model: nn.Module, rows: Sequence[list[int]], labels: torch.Tensor, pad: int, tokens: int | None = None
) -> float:
    """Accuracy over all rows."""
    with precision():
        return accuracy(model, batches(rows, labels, pad, tokens=tokens))


def counted_positive(train: list, labels: torch.Tensor, test: list, n: int) -> torch.Tensor:
    """Probability of positive of each test row, (rows,), by logistic regression on tf-idf weights of its words.

    Weights (1 + log count) · log(documents / documents with the word), each review scaled to length 1; the regression
    is fitted by L-BFGS with a penalty on the squares.
    """
    seen = Counter(word for row in train for word in set(row))
    rarity = torch.tensor([math.log((1 + len(train)) / (1 + seen[word])) + 1 for word in range(n)])

    def as_matrix(rows):
        counts = [Counter(row) for row in rows]
        places = torch.tensor([[k, word] for k, count in enumerate(counts) for word in count]).T
        values = torch.tensor([1 + math.log(number) for count in counts for number in count.values()])
        values *= rarity[places[1]]
        lengths = torch.zeros(len(rows)).index_add_(0, places[0], values.square()).sqrt()
        return torch.sparse_coo_tensor(places, values / lengths[places[0]], (len(rows), n)).coalesce()

    x, weights, offset = as_matrix(train), torch.zeros(n, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    fit, y = torch.optim.LBFGS([weights, offset], max_iter=100, line_search_fn="strong_wolfe"), labels.float()

    def loss():
        fit.zero_grad()
        scores = (torch.sparse.mm(x, weights) + offset).squeeze(1)
        value = F.binary_cross_entropy_with_logits(scores, y) + 0.5 * weights.square().sum() / len(train)
        value.backward()
        return value

    fit.step(loss)
    with torch.no_grad():
        return (torch.sparse.mm(as_matrix(test), weights) + offset).squeeze(1).sigmoid()


def bag_of_words(train: list, labels: torch.Tensor, test: list, test_labels: torch.Tensor, n: int) -> float:
    """Accuracy of `counted_positive`: what can be known without the order of the words."""
    return ((counted_positive(train, labels, test, n) > 0.5) == test_labels.bool()).float().mean().item()


def about(texts: list[str], test_texts: list[str], trained_on: int, looked_at: int) -> dict:
    """What a record says of its data: both parts whole, and of the training part how much was learned from."""
    return {
        "name": "IMDb",
        "sha256": hashlib.sha256("\n".join([*texts, *test_texts]).encode()).hexdigest(),
        "of": "all texts, training part first, joined by line feeds",
        "trained_on": trained_on,
        "looked_at": looked_at,
        "tested_on": len(test_texts),
    }


def experiment() -> Experiment:
    """The training, the test and the samples."""
    (texts, given), (test_texts, test_given), _ = classifier_reviews(places=REAL)
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(0)).tolist()
    apart, rest = order[: len(order) // 10], order[len(order) // 10 :]
    vocabulary = build_vocabulary([texts[k] for k in rest], VOCABULARY)
    pad = vocabulary[PAD]
    rows, labels = as_rows(texts, vocabulary), torch.tensor(given)
    train, train_labels = [rows[k] for k in rest], labels[rest]
    held, held_labels = [rows[k] for k in apart], labels[apart]
    test, test_labels = as_rows(test_texts, vocabulary), torch.tensor(test_given)
    generator = torch.Generator().manual_seed(1)
    per_epoch = sum(1 for _ in batches(train, train_labels, pad, generator))
    model = initialise(Classifier(n=VOCABULARY, **MODEL, dropout=DROPOUT)).to(device())

    def measured(whole: bool) -> tuple[dict, list[dict]]:
        result = {"test_accuracy": round(share_right(model, test, test_labels, pad), 4)}
        shown = some_reviews(model, test, test_texts, test_labels, pad)
        if whole:
            everything = [*held, *test, *as_rows([review["text"] for review in shown], vocabulary)]
            counted = counted_positive(train, train_labels, everything, VOCABULARY)
            parts = counted.split([len(held), len(test), len(shown)])
            for name, part, truth in zip(("_validation", ""), parts, (held_labels, test_labels), strict=False):
                share = ((part > 0.5) == truth.bool()).float().mean().item()
                result[f"bag_of_words{name}_accuracy"] = round(share, 4)
            for review, positive in zip(shown, parts[-1].tolist(), strict=True):
                review["bag_of_words_positive"] = round(positive, 3)
        return result, shown

    sizes = {"n": VOCABULARY, **MODEL, "dropout": DROPOUT, "word_dropout": WORD_DROPOUT, "tokens_per_batch": TOKENS}
    return Experiment(
        "imdb",
        about(texts, test_texts, len(train), len(held)),
        model,
        {**sizes, "epochs": EPOCHS, **RATES, "optimiser": "Muon, AdamW for embeddings and output", **COSINE},
        steps=EPOCHS * per_epoch,
        every=max(1, per_epoch // 2),
        epoch=lambda: batches(train, train_labels, pad, generator),
        loss_of=lambda batch: loss_of(model, batch[0], batch[1], batch[2], vocabulary[UNKNOWN]),
        optimiser=lambda steps: Optimiser(model, steps=steps, **RATES),
        look=lambda loss: {"loss": loss, "accuracy": share_right(model, held, held_labels, pad)},
        measured=measured,
        memory=0.98,
    )


@torch.no_grad()
def some_reviews(model: nn.Module, rows: list, texts: list[str], labels: torch.Tensor, pad: int) -> list[dict]:
    """Six short reviews of the test part: of each class the first two judged right, then the first judged wrong.

    The test part is sorted by class: the first six of all would be of one class.
    """
    found: dict[tuple[bool, int], list[dict]] = {(right, label): [] for right in (True, False) for label in (0, 1)}
    for row, text, label in zip(rows, texts, labels.tolist(), strict=True):
        if len(text) > 400:
            continue
        ids, mask = pad_rows([row], pad)
        with evaluating(model):
            chance = model(ids.to(device()), mask.to(device())).softmax(-1)[0, 1].item()
        right = (chance > 0.5) == bool(label)
        found[right, label].append({"text": text, "label": label, "positive": round(chance, 3)})
    return [review for (right, _), reviews in found.items() for review in reviews[: 2 if right else 1]]


if __name__ == "__main__":
    run(experiment)
