"""Lesson 17's scaling law on lesson 9's text: python -m helpers.training.scaling_law

Four sizes of lesson 9's model read the same number of bytes, each with the best of a few learning rates. A power law is
fitted to the three smaller ones, and says what the fourth will reach before it is trained. Half an hour on two cores is
meant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from helpers.device import device
from helpers.parts.big import fit_power_law, flops_per_token
from helpers.parts.generator import CharTransformer, sample_batch
from helpers.training import loop
from helpers.training.common import Record, ScheduledAdamW, arguments, initialise, next_token_loss
from helpers.training.enwik8 import held_out_bits, wikipedia

T, BATCH, STEPS, WARMUP, TRIED = 128, 16, 1200, 60, 300
WIDTHS = ((32, 4, 4), (64, 4, 4), (128, 4, 4), (256, 4, 4))  # (e, depth, h); 12·depth·e² parameters without embeddings
RATES = (0.02, 0.01, 0.005, 0.0025)


def size(e: int, depth: int) -> int:
    """Entries of the blocks' matrices, a whole number: what a scaling law counts by custom."""
    return 12 * depth * e * e


def made(e: int, depth: int, h: int) -> CharTransformer:
    """The model of that width, depth and number of heads, always from the same random numbers."""
    torch.manual_seed(0)
    return initialise(CharTransformer(256, e, h, depth, T)).to(device())


def batches(data: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Random slices of a text (length,), without an end, and the same for every model: inputs and targets (b, t)."""
    generator = torch.Generator().manual_seed(1)
    while True:
        yield sample_batch(data, BATCH, T, generator)


def held_out_nats(model: nn.Module, data: torch.Tensor) -> float:
    """Mean cross-entropy a byte over a text (length,), in windows of T bytes side by side."""
    return math.log(2) * held_out_bits(model, data, T, T)


def trained(
    shape: tuple[int, int, int], rate: float, steps: int, train: torch.Tensor, held_out: torch.Tensor, record: Record
) -> float:
    """Held-out loss, in nats per byte, of a model of that shape (e, depth, h) after its training. train: (length,)."""
    model = made(*shape)
    figures = loop.train(
        batches(train),
        lambda batch: next_token_loss(model, *batch),
        ScheduledAdamW(model.parameters(), rate, steps, WARMUP, betas=(0.9, 0.98)),
        record,
        steps=steps,
        every=steps,
        look=lambda loss: {
            "parameters": size(*shape[:2]),
            "rate": rate,
            "training_nats": loss,
            "held_out_nats": held_out_nats(model, held_out),
        },
    )
    return figures["held_out_nats"]


def best_rate(losses: dict[float, float]) -> float:
    """The rate with the lowest loss."""
    return min(losses, key=losses.__getitem__)


def prediction(sizes: Sequence[int], losses: Sequence[float]) -> dict[str, float]:
    """What a power law through all but the last says of the last, beside what was measured: a, alpha and both."""
    a, alpha = fit_power_law(sizes[:-1], losses[:-1])
    predicted = a * sizes[-1] ** -alpha
    return {
        "a": round(a, 4),
        "alpha": round(alpha, 5),
        "predicted": round(predicted, 4),
        "measured": round(losses[-1], 4),
        "off_by": round(abs(predicted / losses[-1] - 1), 4),
    }


def main() -> None:
    """The whole run: a search for each size's rate, the trainings, the prediction, the record."""
    options = arguments()
    steps, tried = (options.steps or STEPS), (min(options.steps, 10) if options.steps else TRIED)
    train, held_out, about = wikipedia()
    held_out = held_out[: 20_000 if options.attempt else 200_000]
    settings = {
        "t": T,
        "batch": BATCH,
        "steps": steps,
        "bytes_read": steps * BATCH * T,
        "warmup": WARMUP,
        "steps_to_choose_a_rate": tried,
        "rates": list(RATES),
        "optimiser": "AdamW",
        "schedule": "half a cosine to 0",
    }
    record = Record("scaling", about | {"held_out_bytes": len(held_out)}, settings)
    rates: list[float] = []
    sizes: list[int] = []
    losses: list[float] = []
    finals: list[dict] = []
    for place, shape in enumerate(WIDTHS):
        # wider models want smaller rates: the search goes on from the one that was best for the size before
        near = [rate for rate in RATES if not rates or rate <= rates[-1]][:2] if place else list(RATES)[:3]
        rates.append(best_rate({rate: trained(shape, rate, tried, train, held_out, record) for rate in near}))
        sizes.append(size(*shape[:2]))
        losses.append(trained(shape, rates[-1], steps, train, held_out, record))
        finals.append(record.curve.pop())
    operations = sum(steps * BATCH * T * flops_per_token(e, depth, T, 256)[1] for e, depth, _ in WIDTHS)
    result = {
        "sizes": sizes,
        "rates": rates,
        "held_out_nats": [round(loss, 4) for loss in losses],
        "operations": operations,
        "tried": [{key: row[key] for key in ("parameters", "rate", "held_out_nats")} for row in record.curve],
        **prediction(sizes, losses),
    }
    # along sizes, and not along steps: of each training its end
    record.curve = [{"parameters": row.pop("parameters"), **row} for row in finals]
    record.finish(options, result)


if __name__ == "__main__":
    main()
