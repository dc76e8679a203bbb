"""Word vectors, learned in a second from the text that is on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from .text import manual, sentences, words

_LENGTH = 2.0  # of every vector: x_i.x_i is then 4, which beats the dot product of unrelated words by e^4 in a softmax


def word_vectors(count: int = 1000, width: int = 40, window: int = 5) -> tuple[list[str], torch.Tensor]:
    """Vectors for the `count` most frequent words of `manual()`: words that keep the same company get similar ones.

    Returns (names, vectors): a list of n words and a float tensor (n, e), e = width. Every vector has length 2, so the
    dot product of a word with itself is 4, and with another word 4 times the cosine of their angle.

    How: count which words occur within `window` words of each other (near ones count more, 1/distance), compare each
    count with what chance would give (positive pointwise mutual information), and keep the leading singular vectors of
    that table. Levy and Goldberg, "Neural word embedding as implicit matrix factorization" (2014), show that word2vec
    does much the same by gradient descent.
    """
    text = [words(sentence) for sentence in sentences(manual())]
    frequency = Counter(word for sentence in text for word in sentence)
    names = sorted(frequency, key=lambda word: (-frequency[word], word))[:count]
    vectors = _leading_vectors(_surprise(_neighbour_counts(text, names, window)), width)
    return names, _LENGTH * torch.nn.functional.normalize(vectors, dim=1)


def nearest(word: str, names: Sequence[str], vectors: torch.Tensor, count: int = 5) -> list[tuple[str, float]]:
    """The words whose vectors have the largest dot product with that of `word`: a list of (word, dot product).

    ValueError for a word that has no vector.
    """
    if word not in names:
        raise ValueError(f"There is no vector for {word!r}: it is none of these {len(names)} words.")
    products = vectors @ vectors[names.index(word)]
    order = [i for i in products.argsort(descending=True, stable=True).tolist() if names[i] != word]
    return [(names[i], round(products[i].item(), 2)) for i in order[:count]]


def _neighbour_counts(text, names, window):
    """How often words occur near each other, weighted by 1/distance. Returns (n, n), symmetric."""
    index = {word: i for i, word in enumerate(names)}
    left, right, weight = [], [], []
    for sentence in text:
        ids = [index[word] for word in sentence if word in index]
        for distance in range(1, min(window, len(ids) - 1) + 1):
            left += ids[:-distance]
            right += ids[distance:]
            weight += [1 / distance] * (len(ids) - distance)
    counts = torch.zeros(len(names), len(names), dtype=torch.float64)
    counts.index_put_(
        (torch.tensor(left), torch.tensor(right)), torch.tensor(weight, dtype=torch.float64), accumulate=True
    )
    return counts + counts.T


def _surprise(counts):
    """Positive pointwise mutual information, log p(j near i) / p(j), and 0 where that is negative. (n, n) -> (n, n).

    p(j) is taken to the power 0.75, or rare words would win everything (Levy, Goldberg and Dagan, 2015).
    """
    total = counts.sum(dim=1)
    chance = total**0.75 / (total**0.75).sum()
    near = counts / total.clamp(min=1e-9)[:, None]
    return (near / chance.clamp(min=1e-9)).log().clamp(min=0).float()


def _leading_vectors(table, width):
    """The `width` leading left singular vectors, each times the root of its singular value. (n, n) -> (n, width).

    Found by random projection (Halko, Martinsson and Tropp, 2011): a full decomposition would take seconds. The random
    numbers are always the same, and each column's sign is fixed by its largest entry.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        u, s, _ = torch.svd_lowrank(table, q=width + 10, niter=6)
    u = u[:, :width] * s[:width].sqrt()
    return u * u.gather(0, u.abs().argmax(dim=0, keepdim=True)).sign()
