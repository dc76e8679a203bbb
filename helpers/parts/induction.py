"""How a model can copy: attention alone, two layers of it, and what its heads do (lesson 19).

N. Elhage et al., "A mathematical framework for transformer circuits" (2021), and C. Olsson et al., "In-context learning
and induction heads" (2022). b batch, t positions, p length of a stretch that is said twice, e width, h heads, d = e/h,
n size of the vocabulary. Layers and heads are counted from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .masks import causal_mask, masked_softmax
from .multi_head import merge_heads, require_heads, split_heads
from .positions import rotate

Change = Callable[[int, torch.Tensor], torch.Tensor]
ROLES = ("queries", "keys", "values")

##### The model


class AttentionLayer(nn.Module):
    """A norm, and causal attention with rotary positions: what it adds to the vectors."""

    def __init__(self, e: int, h: int):
        super().__init__()
        require_heads(e, h)
        self.h = h
        self.norm = nn.LayerNorm(e)
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e, bias=False)

    def weights(self, for_queries: torch.Tensor, for_keys: torch.Tensor) -> torch.Tensor:
        """What each position takes from each, (b, h, t, t). Both arguments: (b, t, e), not yet normalised."""
        positions = torch.arange(for_queries.shape[1], device=for_queries.device)
        q = rotate(split_heads(self.to_queries(self.norm(for_queries)), self.h), positions)
        k = rotate(split_heads(self.to_keys(self.norm(for_keys)), self.h), positions)
        return masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), causal_mask(len(positions), q.device))

    def gathered(self, weights: torch.Tensor, for_values: torch.Tensor) -> torch.Tensor:
        """What each head has gathered with these weights, (b, h, t, d)."""
        return weights @ split_heads(self.to_values(self.norm(for_values)), self.h)

    def written(self, z: torch.Tensor, head: int) -> torch.Tensor:
        """What one head adds to the vectors: z (b, h, t, d) of all heads, to (b, t, e)."""
        d = z.shape[-1]
        return F.linear(z[:, head], self.unify.weight[:, head * d : (head + 1) * d])


class AttentionOnly(nn.Module):
    """Predicts the next token with layers of attention and nothing else."""

    def __init__(self, n: int, e: int, h: int, depth: int):
        super().__init__()
        self.tokens = nn.Embedding(n, e)
        self.layers: Any = nn.ModuleList([AttentionLayer(e, h) for _ in range(depth)])
        self.norm = nn.LayerNorm(e)
        self.to_logits = nn.Linear(e, n, bias=False)

    def forward(self, ids: torch.Tensor, change: Change | None = None) -> torch.Tensor:
        """ids: (b, t). change: takes a layer's number and what its heads have gathered, (b, h, t, d), and returns what
        is used in its place. Returns logits (b, t, n).
        """
        return self.run(ids, change)[0]

    def run(self, ids: torch.Tensor, change: Change | None = None) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Logits (b, t, n), and the attention weights of each layer, (b, h, t, t). Arguments: as above."""
        x, looked = self.tokens(ids), []
        for number, layer in enumerate(self.layers):
            looked.append(layer.weights(x, x))
            z = layer.gathered(looked[-1], x)
            z = z if change is None else change(number, z)
            x = x + layer.unify(merge_heads(z))
        return self.to_logits(self.norm(x)), looked

    def parts(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """The vectors whose sum is the last hidden state, (b, t, e) each: "tokens", and then "0.1" for layer 0, head 1.

        ids: (b, t).
        """
        x = self.tokens(ids)
        parts = {"tokens": x}
        for number, layer in enumerate(self.layers):
            z = layer.gathered(layer.weights(x, x), x)
            parts |= {f"{number}.{head}": layer.written(z, head) for head in range(layer.h)}
            x = x + layer.unify(merge_heads(z))
        return parts


##### The task


def said_twice(n: int, p: int, b: int, generator: torch.Generator | None = None) -> torch.Tensor:
    """Stretches of p different tokens, each said twice: (b, 2p). ValueError when there are not p different ones."""
    if not 1 <= p <= n:
        raise ValueError(f"A stretch of {p} different tokens needs as many in the vocabulary, which has {n}.")
    once = torch.rand(b, n, generator=generator).argsort(dim=1)[:, :p]
    return once.repeat(1, 2)


def copy_losses(model: nn.Module, rows: torch.Tensor, change: Change | None = None) -> torch.Tensor:
    """Cross-entropy of each token that can be copied: rows (b, 2p), said twice, to (b, p − 1), in nats.

    The last p − 1 tokens of the second half; its first, which nothing foretells, is left out.
    """
    p = rows.shape[1] // 2
    logits = model(rows[:, :-1], change)[:, p:]
    return F.cross_entropy(logits.transpose(1, 2), rows[:, p + 1 :], reduction="none")


def train_to_copy(
    model: AttentionOnly,
    steps: int,
    periods: tuple[int, int] = (16, 32),
    batch: int = 32,
    rate: float = 1e-2,
    warmup: int = 50,
    seed: int = 0,
) -> Iterator[float]:
    """Train on fresh stretches said twice, of a length that is drawn anew for each batch; yields each step's loss.

    periods: shortest and longest. The loss is that of the copy alone (`copy_losses`).
    """
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98))
    for step in range(steps):
        p = int(torch.randint(periods[0], periods[1] + 1, (), generator=generator))
        rows = said_twice(model.tokens.num_embeddings, p, batch, generator).to(model.tokens.weight.device)
        loss = copy_losses(model, rows).mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / warmup)
        optimiser.step()
        yield loss.item()


##### What the heads do


def induction_scores(weights: torch.Tensor, p: int) -> torch.Tensor:
    """How much each head looks, on the second time, at what came after the first.

    weights: (b, h, 2p − 1, 2p − 1), of p tokens said twice. Returns (h,): the mean weight from place p + i on place
    i + 1, i = 0 to p − 2. ValueError where the weights are of another size.
    """
    if weights.shape[-2:] != (2 * p - 1, 2 * p - 1) or p < 2:
        raise ValueError(f"{p} tokens said twice are read as {2 * p - 1}, and the weights are {tuple(weights.shape)}.")
    return weights.diagonal(1 - p, -2, -1)[..., 1:].mean(dim=(0, -1))


def previous_scores(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight of each head on the token before: (b, h, t, t) to (h,)."""
    return weights.diagonal(-1, -2, -1).mean(dim=(0, -1))


def pattern_scores(weights: torch.Tensor, p: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The previous-token and the induction score of each head, (h,) each.

    weights: (b, h, 2p − 1, 2p − 1), of p tokens said twice. ValueError where they are of another size.
    """
    return previous_scores(weights), induction_scores(weights, p)


##### Interventions


def patched(
    model: nn.Module, clean: torch.Tensor, corrupted: torch.Tensor, layer: int, head: int, at: int
) -> torch.Tensor:
    """Activation patching: the logits of the corrupted text, with what one head gathers at one position of the clean.

    K. Meng et al., "Locating and editing factual associations in GPT" (2022), section 2. model: takes ids and a change,
    as AttentionOnly does. clean, corrupted: (b, t). at: a position. Returns (b, t, n).
    """
    kept = {}

    def keep(number: int, z: torch.Tensor) -> torch.Tensor:
        kept[number] = z
        return z

    def replace(number: int, z: torch.Tensor) -> torch.Tensor:
        if number != layer:
            return z
        z = z.clone()
        z[:, head, at] = kept[number][:, head, at]
        return z

    model(clean, keep)
    return model(corrupted, replace)


def path_patched(layer: AttentionLayer, x: torch.Tensor, other: torch.Tensor, role: str) -> torch.Tensor:
    """Path patching: what a layer adds when one of its three inputs reads another hidden state.

    N. Goldowsky-Dill et al., "Localizing model behavior with path patching" (2023). x, other: (b, t, e). role: one of
    ROLES, the input that reads `other`. Returns (b, t, e).
    """
    for_queries, for_keys, for_values = (other if role == mine else x for mine in ROLES)
    weights = layer.weights(for_queries, for_keys)
    return layer.unify(merge_heads(layer.gathered(weights, for_values)))
