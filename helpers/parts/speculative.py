"""Fewer passes (lesson 21): a small model drafts several tokens, and the large one checks them in one pass.

Y. Leviathan et al., "Fast inference from transformers via speculative decoding" (2023), section 2 and appendix A.1;
C. Chen et al., "Accelerating large language model decoding with speculative sampling" (2023), algorithm 2.

t positions, n size of the vocabulary, k tokens that are drafted at once; p the large model's probabilities, q the
draft's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from .cache import KeyValueCache
from .generator import require_prompt

if TYPE_CHECKING:
    from .gpt2 import GPT2

Model = Callable[[torch.Tensor], torch.Tensor]  # ids (1, t) to logits (1, t, n)


def accept(p: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """With which chance a drafted token is kept, and what is drawn from where it is not.

    p, q: (..., n), probabilities of the large model and of the draft. Returns keep (..., n), the chance of each token,
    1 where q is 0; and rest (..., n), probabilities, p where p equals q.
    """
    keep = torch.where(q > 0, p / q, 1.0).clamp(max=1.0)
    rest = (p - q).clamp(min=0.0)
    total = rest.sum(dim=-1, keepdim=True)
    return keep, torch.where(total > 0, rest / total, p)


@torch.no_grad()
def speculative_generate(
    model: Model,
    draft: Model,
    ids: torch.Tensor,
    count: int,
    k: int,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Go on with a text: `draft` proposes k tokens, one pass of `model` checks them, until there are enough.

    ids: (1, t), int64; t + count + k positions have to fit into the window. Returns (1, count), distributed as if each
    token had been drawn from the model's probabilities.
    """
    t = ids.shape[1]
    while ids.shape[1] < t + count:
        ids = torch.cat([ids, _round(model, draft, ids, k, generator)], dim=1)
    return ids[:, t : t + count]


def _round(model, draft, ids, k, generator):
    """The tokens of one pass: those that are kept, and one more. Returns (1, 1 to k + 1)."""
    first, guess, q = ids.shape[1], ids, []
    for _ in range(k):
        q.append(draft(guess)[0, -1].softmax(dim=-1))
        guess = torch.cat([guess, torch.multinomial(q[-1], 1, generator=generator)[None]], dim=1)
    p = model(guess)[0, first - 1 :].softmax(dim=-1)  # (k + 1, n)
    for i in range(k):
        keep, rest = accept(p[i], q[i])
        if torch.rand((), generator=generator, device=p.device) >= keep[guess[0, first + i]]:
            return torch.cat([guess[:, first : first + i], torch.multinomial(rest, 1, generator=generator)[None]], 1)
    return torch.cat([guess[:, first:], torch.multinomial(p[k], 1, generator=generator)[None]], dim=1)


##### Drafts


class FirstBlocks(nn.Module):
    """A GPT-2's first blocks, with its own norm and output layer: a draft that needs no training."""

    def __init__(self, model: GPT2, depth: int):
        super().__init__()
        self.model, self.depth = model, depth

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (1, t). Returns logits (1, t, n)."""
        x = self.model.embed(ids)
        for block in self.model.blocks[: self.depth]:
            x = block(x)
        return F.linear(self.model.norm(x), self.model.tokens.weight)


def looked_up(tokens: list[int], k: int, longest: int = 3) -> list[int]:
    """What followed the latest earlier occurrence of the text's last tokens: prompt lookup, a draft without a model.

    The longest end counts, of `longest` tokens at the most. Returns up to k tokens, none where no end was there before.
    """
    for length in range(min(longest, len(tokens) - 1), 0, -1):
        end = tokens[-length:]
        for start in range(len(tokens) - length - 1, -1, -1):
            if tokens[start : start + length] == end:
                return tokens[start + length : start + length + k]
    return []


class Lookup:
    """Prompt lookup as a draft model with n tokens: all probability on the token that it would copy.

    Where the text's end has not been there before, every token is equally probable.
    """

    def __init__(self, n: int, longest: int = 3):
        self.n, self.longest = n, longest

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (1, t). Returns logits of the last position, (1, 1, n)."""
        logits = torch.zeros(1, 1, self.n, device=ids.device)
        for token in looked_up(ids[0].tolist(), 1, self.longest):
            logits[..., token] = 200.0
        return logits


@torch.no_grad()
def generate_with_lookup(
    model: GPT2,
    ids: torch.Tensor,
    count: int,
    k: int,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    longest: int = 3,
) -> tuple[torch.Tensor, int]:
    """`speculative_generate` with prompt lookup and a cache: what `make bench` measures.

    model: a GPT-2 in evaluation mode. ids: (1, t), int64. What is looked up has probability 1 under the draft, so a
    token x is kept with the chance p(x), and the rest is p without x. Returns tokens (1, count), distributed as those
    of `generate_cached`, and the number of passes. ValueError where the window is too short.
    """
    require_prompt(ids, count)
    tokens, t = ids[0].tolist(), ids.shape[1]
    if t + count + k > model.t_max:
        raise ValueError(f"{t + count + k} positions are needed, and this model has {model.t_max}.")
    cache, passes = KeyValueCache(model.config.depth, model.t_max), 0
    while len(tokens) < t + count:
        guess = looked_up(tokens, k, longest)
        new = torch.tensor([tokens[cache.length :] + guess], device=ids.device)
        p = (model(new, cache)[0, -len(guess) - 1 :] / temperature).softmax(dim=-1)
        passes += 1
        uniform = torch.rand(len(guess) + 1, generator=generator, device=ids.device).tolist()
        chances = p[torch.arange(len(guess)), guess].tolist() if guess else []
        kept = next((i for i, chance in enumerate(chances) if uniform[i] >= chance), len(guess))
        last = p[kept].clone()
        if kept < len(guess):
            last[guess[kept]] = 0.0
        tokens += [*guess[:kept], int(torch.multinomial(last, 1, generator=generator))]
        for layer in cache.layers:
            layer.length = len(tokens) - 1  # what was refused is forgotten
    return torch.tensor([tokens[t : t + count]], device=ids.device), passes
