"""The small model of lesson 4: who gave what to whom, answered from the one vector at *gave*.

    from helpers.training.giving import FixedRows, train
    reader, right = train(FixedRows, h=1)

It is trained on the CPU, with one thread: models as small as these are fastest there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from helpers.data.toy.giving import GAVE, ROLES, WORDS, giving_sentences
from helpers.parts.multi_head import merge_heads, split_heads

E = 24  # width of the model
BATCH, RATE, TESTED = 64, 0.01, 2000


class FixedRows(nn.Module):
    """Attention whose h rows of weights are learned for each of five positions: the same in every sentence."""

    def __init__(self, e: int, h: int):
        super().__init__()
        self.scores = nn.Parameter(torch.randn(h, 5, 5))
        self.to_values, self.unify = nn.Linear(e, e, bias=False), nn.Linear(e, e)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        v = split_heads(self.to_values(x), len(self.scores))
        return self.unify(merge_heads(torch.softmax(self.scores, dim=-1) @ v))


class Reader(nn.Module):
    """Word and position vectors, one layer of attention, and three answers from the vector at *gave*."""

    def __init__(self, attention: nn.Module, e: int):
        super().__init__()
        self.words, self.positions = nn.Embedding(len(WORDS), e), nn.Embedding(5, e)
        self.attention, self.answers = attention, nn.Linear(e, len(ROLES) * len(WORDS))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        y = self.attention(self.words(ids) + self.positions.weight)  # (b, 5, e)
        return self.answers(y[:, GAVE]).view(-1, len(ROLES), len(WORDS))


def train(
    attention: Callable[[int, int], nn.Module], h: int, seed: int = 1, steps: int = 300
) -> tuple[Reader, dict[str, float]]:
    """A Reader whose attention has h heads, trained on random sentences, and its share of right answers by role.

    attention: makes a layer from e and h, (b, t, e) -> (b, t, e). The shares are of new sentences by the same rule.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(seed)
        sentences = torch.Generator().manual_seed(seed)
        reader = Reader(attention(E, h), E)
        optimiser = torch.optim.Adam(reader.parameters(), lr=RATE)
        for _ in range(steps):
            ids, answers = giving_sentences(BATCH, sentences)
            loss = nn.functional.cross_entropy(reader(ids).transpose(1, 2), answers)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        ids, answers = giving_sentences(TESTED, sentences)
        right = (reader(ids).argmax(-1) == answers).float().mean(0).tolist()
        return reader, dict(zip(ROLES, right, strict=True))
    finally:
        torch.set_num_threads(threads)


@torch.no_grad()
def weights_of(reader: Reader, h: int, ids: torch.Tensor) -> torch.Tensor:
    """The weights of a Reader's h heads on sentences: ids (b, 5) -> (b, h, 5, 5). They have queries and keys."""
    attention: Any = reader.attention
    x = reader.words(ids) + reader.positions.weight  # (b, 5, e)
    q, k = split_heads(attention.to_queries(x), h), split_heads(attention.to_keys(x), h)
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)


def rows_of_gave(reader: Reader, h: int, sentence: str) -> torch.Tensor:
    """Where *gave* looks in one sentence of five words, in each of h heads: (h, 5)."""
    ids = torch.tensor([[WORDS.index(word) for word in sentence.split()]])
    return weights_of(reader, h, ids)[0, :, GAVE]
