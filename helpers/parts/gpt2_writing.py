"""Writing with a GPT-2, and how well it predicts a text (lesson 12).

b batch, t positions, n size of the vocabulary. The functions take any model whose forward takes (ids, cache,
last_only), and which has t_max and config.depth: a Llama too.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .cache import KeyValueCache
from .evaluating import evaluating
from .generator import draw, require_ids, require_prompt


@torch.no_grad()
def generate(
    model: nn.Module,
    ids: torch.Tensor,
    count: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Go on with a text, one token after the other, computing the whole window anew for each.

    ids: (b, t), int64, t ≥ 1. Returns (b, count): what was drawn, without the prompt. The model sees the last t_max
    tokens, the first of them at position 0. Temperature (0: the most probable token) comes first, then top-k, then
    top-p. The model is in evaluation mode meanwhile, and afterwards in the mode it was in before. ValueError for a
    prompt or a setting that nothing can be drawn with.
    """
    require_prompt(ids, count)
    _require_known(model, ids)
    tokens = ids
    with evaluating(model):
        for _ in range(count):
            logits = model(tokens[:, -model.t_max :], last_only=True)[:, -1]  # (b, n)
            tokens = torch.cat([tokens, draw(logits, temperature, top_k, top_p, generator)], dim=1)
    return tokens[:, ids.shape[1] :]


@torch.no_grad()
def generate_cached(
    model: nn.Module,
    ids: torch.Tensor,
    count: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """The same tokens as `generate`, with keys and values kept: each new token goes through the model alone.

    ids: (b, t), int64, t ≥ 1. Returns (b, count). The other arguments are those of `generate`.

    Once the window is full every token moves to another position at every step, so what is kept no longer holds: from
    then on the window is computed anew, as in `generate`.
    """
    require_prompt(ids, count)
    _require_known(model, ids)
    tokens, t = ids, ids.shape[1]
    cache = KeyValueCache(model.config.depth, min(model.t_max, t + count))
    with evaluating(model):
        for _ in range(count):
            if tokens.shape[1] <= model.t_max:
                # the prompt first, then one token at a time
                logits = model(tokens[:, cache.length :], cache, last_only=True)[:, -1]
            else:
                logits = model(tokens[:, -model.t_max :], last_only=True)[:, -1]
            tokens = torch.cat([tokens, draw(logits, temperature, top_k, top_p, generator)], dim=1)
    return tokens[:, t:]


def _require_known(model, ids):
    """Once a text, and not in the model: looking at a value there would make a GPU wait, and forbid compiling."""
    # a model of another make may have no config, and then it says itself what it does not know
    n = getattr(getattr(model, "config", None), "n", None)
    if n is None or ids.numel() == 0:
        return
    low, high = (int(end) for end in ids.aminmax())
    if low < 0 or high >= n:
        raise ValueError(
            f"The id {low if low < 0 else high} is none of this model's {n} tokens, 0 to {n - 1}: were the ids made by"
            " the tokenizer that belongs to it?"
        )


@torch.no_grad()
def perplexity(model: nn.Module, ids: torch.Tensor, stride: int | None = None) -> float:
    """e to the mean cross-entropy of every token but the first.

    As if the model hesitated between so many equally likely tokens.

    ids: (length,), int64, at least two. The text goes through in windows of t_max tokens that start every `stride`
    tokens, t_max when it is None: then they do not overlap, and the first predictions of a window are made from little.
    With a smaller stride only those of a window count that no window before has made, so that each (past the first
    window) is made from at least t_max − stride + 1 tokens. Returns a number.
    """
    stride = model.t_max if stride is None else stride
    if ids.dim() != 1 or len(ids) < 2:
        raise ValueError(f"Perplexity needs a row of at least two tokens, and got the shape {tuple(ids.shape)}.")
    if not 1 <= stride <= model.t_max:
        raise ValueError(f"A stride is between 1 and t_max = {model.t_max}, or tokens would be left out; not {stride}.")
    require_ids(ids)
    _require_known(model, ids)
    nats, done = 0.0, 0  # tokens 1 to `done` have been predicted
    with evaluating(model):
        for start in range(0, len(ids) - 1, stride):
            window = ids[start : start + model.t_max + 1]  # one more than the model reads: the last target
            losses = F.cross_entropy(model(window[None, :-1])[0].float(), window[1:], reduction="none")
            nats += losses[done - start :].sum().item()
            done = start + len(window) - 1
            if done == len(ids) - 1:
                break
    return _exp(nats / done)


def _exp(nats):
    """e to so many nats: infinity where that is too large for a number, as with a token that was held impossible."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf
