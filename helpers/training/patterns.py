"""Lesson 16's comparison at length: python -m helpers.training.patterns

Four patterns of attention on pictures of printed digits: full, a window, strided and fixed, of one size, with the same
first weights and the same batches, for several seeds. They take turns, a step each, and each has a clock of its own, so
that they can be compared at equal steps and at equal seconds. Half an hour on two cores is meant.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import nn

from helpers.data.toy.digits import FACES, HELD_OUT, printed_digits
from helpers.device import device
from helpers.parts.evaluating import evaluating
from helpers.parts.generator import bits_per_byte
from helpers.parts.sparse import PixelTransformer, fixed_masks, local_mask, raster, strided_masks
from helpers.training.common import Record, ScheduledAdamW, arguments

SIDE, LEVELS, SIZES = 16, 4, 6
MODEL = {"e": 48, "depth": 2}
HEADS, COLUMNS = 4, 2
BATCH, RATE, WARMUP, STEPS, SEEDS = 16, 4e-3, 60, 600, (0, 1, 2, 3)
LOOKS = 6  # points on each curve


def patterns(side: int) -> dict[str, torch.Tensor]:
    """Masks (heads, t, t) for pictures of `side` pixels a side, by the name of the pattern."""
    t = side * side
    window, causal = local_mask(t, side), torch.ones(t, t, dtype=torch.bool).tril()
    return {
        "full": causal.repeat(HEADS, 1, 1),
        "local": window.repeat(HEADS, 1, 1),
        "strided": strided_masks(t, side).repeat_interleave(HEADS // 2, dim=0),
        "fixed": fixed_masks(t, side, COLUMNS).repeat_interleave(HEADS // 2, dim=0),
    }


@torch.no_grad()
def bits_a_pixel(model: nn.Module, ids: torch.Tensor) -> float:
    """Held-out bits per pixel. ids: (pictures, t). The model is in evaluation mode meanwhile."""
    with evaluating(model):
        nats = sum(
            F.cross_entropy(model(part).flatten(0, 1), part.flatten(), reduction="sum").item() for part in ids.split(50)
        )
    return bits_per_byte(nats / ids.numel())


class TimedTraining:
    """One pattern in training, with its optimiser and its clock."""

    def __init__(self, masks: torch.Tensor, side: int, seed: int, steps: int, n: int):
        torch.manual_seed(seed)
        self.model = PixelTransformer(**MODEL, n=n, masks=masks, columns=side).to(device())
        self.optimiser = ScheduledAdamW(self.model.parameters(), RATE, steps, WARMUP, betas=(0.9, 0.98))
        self.seconds = 0.0

    def step(self, ids: torch.Tensor) -> None:
        """One step on a batch of pictures, (batch, t)."""
        before = time.process_time()
        F.cross_entropy(self.model(ids).flatten(0, 1), ids.flatten()).backward()
        self.optimiser.step()
        self.seconds += time.process_time() - before


def run_seed(
    draw: Callable[[torch.Generator], torch.Tensor],
    judged: torch.Tensor,
    side: int,
    seed: int,
    steps: int,
    n: int,
    look: Callable[..., None],
) -> dict[str, float]:
    """All patterns with one seed, in turns. draw: makes a batch (batch, t) of ids. judged: (rows, t), ids below n.

    look: is given a point of the curves now and then: step, seed, and for each pattern its bits and its processor
    seconds. Returns the last point's bits by pattern.
    """
    runners = {name: TimedTraining(masks.to(device()), side, seed, steps, n) for name, masks in patterns(side).items()}
    generator = torch.Generator().manual_seed(seed)
    bits: dict[str, float] = {}
    for done in range(1, steps + 1):
        ids = draw(generator).to(device())
        for runner in runners.values():
            runner.step(ids)
        if done % max(1, steps // LOOKS) == 0 or done == steps:
            bits = {name: bits_a_pixel(runner.model, judged) for name, runner in runners.items()}
            point = {f"{name}_bits": value for name, value in bits.items()}
            point |= {f"{name}_seconds": runner.seconds for name, runner in runners.items()}
            look(step=done, seed=seed, **point)
    return bits


def some_of(rows: torch.Tensor) -> Callable[[torch.Generator], torch.Tensor]:
    """Draws batches (batch, t) of the rows (pictures, t)."""
    return lambda generator: rows[torch.randint(len(rows), (BATCH,), generator=generator)]


def by_pattern(found: dict[int, dict[str, float]]) -> dict[str, list[float]]:
    """{"full": [a number for each seed], ...}, from the bits of each pattern by seed."""
    names = next(iter(found.values()))
    return {name: [round(bits[name], 4) for bits in found.values()] for name in names}


def means(found: dict[str, list[float]]) -> dict[str, float]:
    """{"full_bits_a_pixel": ...}, over the seeds."""
    return {f"{name}_bits_a_pixel": round(fmean(bits), 4) for name, bits in found.items()}


def main() -> None:
    """The whole run: pictures, four patterns with each seed, record."""
    options = arguments()
    steps, seeds = options.steps or STEPS, SEEDS[:1] if options.attempt else SEEDS
    train, held_out = (raster(torch.tensor(part), LEVELS) for part in printed_digits(SIDE, SIZES))
    record = Record(
        "patterns",
        {
            "name": "digits in the faces that matplotlib ships",
            "sha256": hashlib.sha256(train.to(torch.uint8).numpy().tobytes()).hexdigest(),
            "pictures": len(train),
            "held_out_pictures": len(held_out),
            "faces": len(FACES),
            "held_out_faces": ", ".join(HELD_OUT),
        },
        {
            **MODEL | {"n": LEVELS, "h": HEADS, "t": SIDE * SIDE, "l": SIDE, "c": COLUMNS},
            "batch": BATCH,
            "steps": steps,
            "seeds": len(seeds),
            "rate": RATE,
            "warmup": WARMUP,
            "optimiser": "AdamW",
            "schedule": "half a cosine to 0",
        },
    )
    judged = held_out.to(device())
    found = {seed: run_seed(some_of(train), judged, SIDE, seed, steps, LEVELS, record.look) for seed in seeds}
    record.stop()
    pictures = by_pattern(found)
    record.finish(options, {**means(pictures), "pictures": pictures})


if __name__ == "__main__":
    main()
