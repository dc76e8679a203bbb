"""What lesson 19's player "patch" shows: python -m helpers.training.patching

Trains the lesson's copying model with the lesson's seed, and prints the player's numbers as JSON: the mean logit of
the right answer over 64 pairs of texts while one head is patched, or switched off, at one position. Half a minute.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import torch

from helpers.parts.induction import AttentionOnly, patched, said_twice, train_to_copy

N, P, TEXTS, FIRST = 64, 24, 64, 10  # vocabulary, tokens before they repeat, pairs of texts, position of the first A
LAYERS, HEADS, LAST = 2, 4, P + FIRST
PLACES = (10, 11, 12, 13, 33, 34)  # the positions of the lesson's figure

Measure = Callable[[int, int, int], torch.Tensor]


def learned() -> AttentionOnly:
    """The lesson's model: its seed, and training until the loss is below 0.1."""
    torch.manual_seed(0)
    model = AttentionOnly(N, 64, HEADS, LAYERS)
    for loss in train_to_copy(model, 400):
        if loss < 0.1:
            break
    return model


def two_texts() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The lesson's clean and corrupted texts, (b, t), and the right answers, (b,)."""
    once = said_twice(N, P + 1, TEXTS, torch.Generator().manual_seed(19))[:, : P + 1]
    clean = torch.cat([once[:, :P], once[:, : FIRST + 1]], dim=1)
    corrupted = clean.clone()
    corrupted[:, FIRST] = once[:, P]
    return clean, corrupted, once[:, FIRST + 1]


def switched_off(model: AttentionOnly, ids: torch.Tensor, layer: int, head: int, at: int) -> torch.Tensor:
    """Logits (b, t, n) of ids, (b, t), with zeros for what one head has gathered at one position."""

    def zero(number: int, z: torch.Tensor) -> torch.Tensor:
        if number == layer:
            z = z.clone()
            z[:, head, at] = 0
        return z

    return model(ids, zero)


@torch.no_grad()
def measured(model: AttentionOnly) -> dict:
    """high and low: the mean logit of the right answer, clean and corrupted; places: the positions.

    patch and off: the logit for each head, layer by layer, at each of the positions. None where a head of the last
    layer cannot reach the answer.
    """
    clean, corrupted, right = two_texts()

    def logit(logits: torch.Tensor) -> float:
        return round(logits[:, -1].gather(1, right[:, None]).mean().item(), 2)

    def grid(run: Measure) -> list[list[float | None]]:
        heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
        return [[logit(run(*one, at)) if one[0] < LAYERS - 1 or at == LAST else None for at in PLACES] for one in heads]

    return {
        "high": logit(model(clean)),
        "low": logit(model(corrupted)),
        "places": PLACES,
        "patch": grid(lambda layer, head, at: patched(model, clean, corrupted, layer, head, at)),
        "off": grid(lambda layer, head, at: switched_off(model, clean, layer, head, at)),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(measured(learned()), separators=(",", ":")))
