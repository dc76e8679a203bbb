"""Lesson 15's model on the beginning of the English Wikipedia: python -m helpers.training.enwik8_xl

The bytes, the held-out part, the width and the depth of lesson 9's recorded model (`helpers.training.enwik8`), with a
memory of the segment before and relative positions in the place of learned ones. Half an hour on two cores is meant.
Streams in eight groups take turns: with one group, so that each step went on where the last one ended, as many steps
came to 1.720 bits with a memory of 128, and not to 1.639.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from helpers.device import device
from helpers.parts.generator import bits_per_byte
from helpers.parts.transformer_xl import TransformerXL, segments, streaming_bits
from helpers.training.common import COSINE, Optimiser, initialise, precision
from helpers.training.enwik8 import RATES, wikipedia
from helpers.training.loop import Experiment, run

MODEL: dict[str, Any] = {"n": 256, "e": 256, "h": 4, "depth": 4}
T, M, GROUPS = 128, 128, 8
BATCH, STEPS = 24, 3900
MEMORIES = (0, 64, 128, 256, 512)  # that the trained model is evaluated with

Batch = tuple[torch.Tensor, torch.Tensor, int, bool]


def one_pass(data: torch.Tensor, batch: int, t: int, groups: int = 1) -> Iterator[Batch]:
    """A text as streams, from their beginning to their end: inputs and targets (b, t), whose, and whether the first.

    data: (length,), integers. There are groups · b streams, and each group of b has its turn before any goes on, so
    that one step is not about the same pages as the step before it. Every batch comes with the number of its group,
    and with True where it follows on nothing: what was remembered for the group has to be forgotten.
    """
    for place, (inputs, targets) in enumerate(zip(*segments(data, groups * batch, t), strict=True)):
        for group in range(groups):
            yield inputs[group::groups], targets[group::groups], group, place == 0


def remembering_loss(model: nn.Module, m: int) -> Callable[[Batch], torch.Tensor]:
    """A function from a batch of `one_pass` to its loss, (), in nats, that carries each group's memory along."""
    memories: dict[int, list[torch.Tensor]] = {}

    def loss_of(batch: Batch) -> torch.Tensor:
        inputs, targets, group, first = batch
        with precision():
            logits, memories[group] = model(inputs.to(device()), None if first else memories[group], m)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.to(device()).flatten())

    return loss_of


def experiment() -> Experiment:
    """The training, and the test with several memories."""
    train, held_out, about = wikipedia()
    look_at = held_out[:20_000].to(device())
    model = initialise(TransformerXL(**MODEL)).to(device())

    def measured(whole: bool) -> tuple[dict, list[dict]]:
        judged = held_out.to(device()) if whole else look_at
        bits = {f"held_out_bits_m_{m}": round(streaming_bits(model, judged, T, m), 4) for m in MEMORIES}
        return {**bits, "context": f"one pass in segments of {T} bytes, each byte predicted once"}, []

    optimiser = "Muon, AdamW for embeddings, output, u and v"
    return Experiment(
        "enwik8_xl",
        about,
        model,
        {**MODEL, "t": T, "m": M, "batch": BATCH, "groups": GROUPS, **RATES, "optimiser": optimiser, **COSINE},
        steps=STEPS,
        every=STEPS // 20,
        epoch=lambda: one_pass(train, BATCH, T, GROUPS),
        loss_of=remembering_loss(model, M),
        optimiser=lambda steps: Optimiser(model, steps=steps, **RATES),
        look=lambda loss: {"training_bits": bits_per_byte(loss), "held_out_bits": streaming_bits(model, look_at, T, M)},
        measured=measured,
    )


if __name__ == "__main__":
    run(experiment)
