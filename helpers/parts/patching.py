"""Activation patching in a GPT-2: which head carries what the answer depends on? (lesson 19)

K. Wang et al., "Interpretability in the wild" (2022), section 3. b batch, t positions, e width, h heads, d = e/h.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


@torch.no_grad()
def gathered_by_heads(model: Any, ids: torch.Tensor) -> list[torch.Tensor]:
    """What the heads of each block have gathered, side by side: (b, t, e) for each block. ids: (b, t)."""
    kept: list[torch.Tensor] = []
    hooks = [
        block.attention.unify.register_forward_pre_hook(lambda layer, given: kept.append(given[0]))
        for block in model.blocks
    ]
    try:
        model(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return kept


@torch.no_grad()
def patched_gpt2(model: Any, ids: torch.Tensor, kept: torch.Tensor, block: int, head: int) -> torch.Tensor:
    """Logits (b, t, n) of ids, (b, t), while one head has gathered at every position what it had in another text.

    kept: (b, t, e), of that block in the other text (see `gathered_by_heads`).
    """
    d = model.config.e // model.config.h
    mine = slice(head * d, (head + 1) * d)

    def replace(layer: nn.Module, given: tuple) -> tuple:
        z = given[0].clone()
        z[..., mine] = kept[..., mine]
        return (z,)

    hook = model.blocks[block].attention.unify.register_forward_pre_hook(replace)
    try:
        return model(ids)
    finally:
        hook.remove()


@torch.no_grad()
def patch_every_head(
    model: Any, clean: torch.Tensor, corrupted: torch.Tensor, right: torch.Tensor, wrong: torch.Tensor
) -> tuple[float, float, torch.Tensor]:
    """The logit difference in the clean and in the corrupted text, and the share of it that each head brings back.

    clean, corrupted: (b, t), of equal length. right, wrong: (b,), the answers of the two, asked at the last position.
    Shares: (depth, h), 0 where patching changes nothing, 1 where it restores the clean difference. ValueError where the
    texts differ in length, or where both have the same difference.
    """
    if clean.shape != corrupted.shape:
        raise ValueError(f"The texts have to be of one length: {tuple(clean.shape)} and {tuple(corrupted.shape)}.")

    def difference(logits: torch.Tensor) -> float:
        last = logits[:, -1]
        return (last.gather(1, right[:, None]) - last.gather(1, wrong[:, None])).mean().item()

    high, low = difference(model(clean)), difference(model(corrupted))
    if high == low:
        raise ValueError("Both texts have the same difference of logits: there is nothing to bring back.")
    kept = gathered_by_heads(model, clean)
    shares = torch.empty(model.config.depth, model.config.h)
    for block in range(model.config.depth):
        for head in range(model.config.h):
            logits = patched_gpt2(model, corrupted, kept[block], block, head)
            shares[block, head] = (difference(logits) - low) / (high - low)
    return high, low, shares
