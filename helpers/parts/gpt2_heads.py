"""What the heads of a GPT-2 do: scores of their weights, and the model without some of them (lesson 12).

b batch, t positions, e width of the model, d width of one head.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn


def even_weights(t: int) -> torch.Tensor:
    """What a head without a preference would have: each position the same weight on all that it may see. (t, t)."""
    return torch.ones(t, t).tril() / torch.arange(1, t + 1).unsqueeze(-1)


def previous_score(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight on the token before, of all positions but the first. weights: (..., t, t). Returns (...)."""
    return weights.diagonal(-1, -2, -1).mean(dim=-1)


def first_score(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight on the first token, of all positions but the first two. weights: (..., t, t). Returns (...)."""
    return weights[..., 2:, 0].mean(dim=-1)


def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    """The mean weight on what followed the same token before.

    weights: (..., t, t), of a text that comes again after `period` tokens: the token at i is the one at i − period,
    which i − period + 1 followed. All i from period to t − 1 count. Returns (...). ValueError unless 1 ≤ period < t:
    nothing would come again.
    """
    t = weights.shape[-1]
    if not 1 <= period < t:
        raise ValueError(f"In {t} tokens something comes again after 1 to {t - 1}, and period is {period}.")
    return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(dim=-1)


@contextlib.contextmanager
def switched_off(model: nn.Module, *heads: tuple[int, int]) -> Iterator[nn.Module]:
    """The model without some heads, as long as the `with` lasts: what they have gathered becomes 0.

    heads: (block, head), both counted from 0. Yields the model. IndexError for a head that it does not have.
    """
    for block, head in heads:
        if not (0 <= block < model.config.depth and 0 <= head < model.config.h):
            raise IndexError(
                f"There is no head {head} in a block {block}: blocks are 0 to {model.config.depth - 1}, heads 0 to"
                f" {model.config.h - 1}."
            )
    hooks = [
        model.blocks[block].attention.unify.register_forward_pre_hook(_silence(model, head)) for block, head in heads
    ]
    try:
        yield model
    finally:
        for hook in hooks:
            hook.remove()


def _silence(model, head):
    """A hook before `unify`, whose input (b, t, e) holds the heads side by side, d numbers each."""
    d = model.config.e // model.config.h

    def hook(layer, given):
        heard = torch.ones(model.config.e, device=given[0].device)
        heard[head * d : (head + 1) * d] = 0
        return (given[0] * heard,)

    return hook
