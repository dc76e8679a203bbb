"""Lesson 16's comparison at length: python -m helpers.training.patterns

Four patterns of attention on pictures of printed digits: full, a window, strided and fixed, of one size, with the same
first weights and the same batches, for several seeds. They take turns, a step each, and each has a clock of its own, so
that they can be compared at equal steps and at equal seconds. Half an hour on two cores is meant.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from helpers.data.toy.digits import FACES, HELD_OUT, printed_digits
from helpers.device import device
from helpers.parts.evaluating import evaluating
from helpers.parts.generator import bits_per_byte
from helpers.parts.sparse import PixelTransformer, fixed_masks, local_mask, raster, strided_masks
from helpers.training.common import Record, arguments, up_and_down

SIDE, LEVELS, SIZES = 16, 4, 6
MODEL = {"n": LEVELS, "e": 48, "depth": 2}
HEADS, COLUMNS = 4, 2
BATCH, RATE, WARMUP, STEPS, SEEDS = 16, 4e-3, 60, 1000, (0, 1, 2, 3)
LOOKS = 10  # points on each curve


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
    """Held-out bits a pixel. ids: (pictures, t). The model is in evaluation mode meanwhile."""
    with evaluating(model):
        nats = sum(
            F.cross_entropy(model(part).flatten(0, 1), part.flatten(), reduction="sum").item() for part in ids.split(50)
        )
    return bits_per_byte(nats / ids.numel())


class Runner:
    """One pattern in training, with its optimiser and its clock."""

    def __init__(self, masks: torch.Tensor, side: int, seed: int, steps: int):
        torch.manual_seed(seed)
        self.model = PixelTransformer(**MODEL, masks=masks, columns=side).to(device())
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, betas=(0.9, 0.98))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, lambda step: up_and_down(step, steps, WARMUP))
        self.seconds = 0.0

    def step(self, ids: torch.Tensor) -> None:
        """One step on a batch of pictures, (batch, t)."""
        before = time.process_time()
        loss = F.cross_entropy(self.model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.schedule.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.seconds += time.process_time() - before


def run_seed(
    train: torch.Tensor, judged: torch.Tensor, side: int, seed: int, steps: int, look: Callable[..., None]
) -> dict[str, float]:
    """All patterns with one seed, in turns. train, judged: (pictures, t), ids.

    look: is given a point of the curves now and then: seed, step, and for each pattern its bits and its processor
    seconds. Returns the last point's bits by pattern.
    """
    runners = {name: Runner(masks.to(device()), side, seed, steps) for name, masks in patterns(side).items()}
    generator = torch.Generator().manual_seed(seed)
    bits: dict[str, float] = {}
    for done in range(1, steps + 1):
        ids = train[torch.randint(len(train), (BATCH,), generator=generator)].to(device())
        for runner in runners.values():
            runner.step(ids)
        if done % max(1, steps // LOOKS) == 0 or done == steps:
            bits = {name: bits_a_pixel(runner.model, judged) for name, runner in runners.items()}
            point = {f"{name}_bits": value for name, value in bits.items()}
            point |= {f"{name}_seconds": runner.seconds for name, runner in runners.items()}
            look(seed=seed, step=done, **point)
    return bits


def main() -> None:
    """The whole run: pictures, four patterns with each seed, record."""
    chosen = arguments()
    steps, seeds = chosen.steps or STEPS, SEEDS[:1] if chosen.attempt else SEEDS
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
            **MODEL,
            "h": HEADS,
            "t": SIDE * SIDE,
            "l": SIDE,
            "c": COLUMNS,
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
    found = {seed: run_seed(train, judged, SIDE, seed, steps, record.look) for seed in seeds}
    record.stop()
    result = {
        f"{name}_bits_seed_{seed}": round(value, 4) for seed, bits in found.items() for name, value in bits.items()
    }
    print(result)
    if not chosen.attempt:
        record.write(chosen.to, result, [])


if __name__ == "__main__":
    main()
