"""A transformer that puts texts into classes (lesson 8).

b batch, t positions, e width of the model, h heads, n size of the vocabulary, c classes.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import nn

from .blocks import Transformer
from .evaluating import evaluating
from .positions import PositionEmbedding


def mean_pool(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The average of the vectors at the real positions.

    x: (b, t, e). mask: (b, t), booleans, True where there is a word. Returns (b, e); zeros for a text without a word.
    """
    weights = mask.unsqueeze(-1).to(x.dtype)  # (b, t, 1)
    return (x * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


class Classifier(nn.Module):
    """Words to vectors, positions, blocks, the mean over the real positions, and a linear map to classes.

    n: size of the vocabulary. c: classes. t_max: longest text. The blocks normalise first (GPT-2's order). dropout: in
    training, on the embeddings and in the blocks.
    """

    def __init__(self, n: int, c: int, e: int, h: int, depth: int, t_max: int, dropout: float = 0.0):
        super().__init__()
        self.tokens = nn.Embedding(n, e)
        self.positions = PositionEmbedding(t_max, e)
        self.transformer = Transformer(e, h, depth, pre_norm=True, dropout=dropout)
        self.to_classes = nn.Linear(e, c)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64. mask: (b, t), booleans, True where there is a word. Returns scores (b, c), no softmax.

        ValueError when t is larger than t_max: there are no positions for the words beyond.
        """
        x = self.dropout(self.positions(self.tokens(ids)))  # (b, t, e)
        x = self.transformer(x, mask.unsqueeze(1))  # nobody looks at padding
        return self.to_classes(mean_pool(x, mask))


def train_step(
    model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor], optimiser: torch.optim.Optimizer
) -> float:
    """One step of gradient descent on one batch.

    batch: (ids (b, t), mask (b, t), labels (b,)). The model may come in evaluation mode, and with gradients from
    something else: neither makes a difference. Returns the cross-entropy before the step, a number.
    """
    ids, mask, labels = batch
    model.train()
    optimiser.zero_grad()
    loss = F.cross_entropy(model(ids, mask), labels)
    loss.backward()
    optimiser.step()
    return loss.item()


@torch.no_grad()
def accuracy(model: nn.Module, batches: Iterable[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> float:
    """The share of texts that the model puts into the right class, over all batches.

    batches: an iterable of (ids (b, t), mask (b, t), labels (b,)), b not always the same. Returns a
    number between 0 and 1. In evaluation mode, without gradients, each text counted once; afterwards the
    model is in the mode it was in before. ValueError when there is no text to count, or labels are no row.
    """
    right = total = 0
    with evaluating(model):
        for ids, mask, labels in batches:
            if labels.dim() != 1:  # (b, 1) would be compared with every other text's class too
                raise ValueError(f"Labels are (b,), one for each text, and these have the shape {tuple(labels.shape)}.")
            right += (model(ids, mask).argmax(dim=-1) == labels).sum().item()
            total += len(labels)
    if total == 0:
        raise ValueError("There is no text to count: the batches are empty (an iterator gives its batches only once).")
    return right / total
