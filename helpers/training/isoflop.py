"""Lesson 17's IsoFLOP grid on lesson 9's text: python -m helpers.training.isoflop

Three budgets of operations, and for each budget four sizes of lesson 9's model: the larger the model, the fewer bytes
it reads. Each size has its own learning rate, the best of a few at the smallest budget that the size belongs to. About
ten minutes of one core are meant.

J. Hoffmann et al., "Training compute-optimal large language models" (2022), section 3.2, "IsoFLOP profiles".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from helpers.device import device
from helpers.parts.big import flops_per_token
from helpers.parts.evaluating import evaluating
from helpers.parts.generator import CharTransformer, sample_batch
from helpers.training.common import COSINE, Record, ScheduledAdamW, arguments, initialise
from helpers.training.enwik8 import wikipedia

N_BYTES, DEPTH, HEADS, T, BATCH = 256, 2, 2, 128, 8
GRID = {1e11: (14, 20, 28, 36), 2.5e11: (20, 28, 36, 48), 6.25e11: (28, 36, 48, 64)}  # widths e by operations
FIRST_RATE, FACTOR, LOWEST, HIGHEST = 0.02, 2.0, 0.0025, 0.08
SEEDS, HELD_OUT = 3, 100_000


def made(e: int, seed: int) -> CharTransformer:
    """Lesson 9's model of width e, with the weights of this seed."""
    torch.manual_seed(seed)
    return initialise(CharTransformer(N_BYTES, e, HEADS, DEPTH, T)).to(device())


def parameters_of(e: int) -> int:
    """All parameters of the model of width e, embeddings included."""
    return sum(p.numel() for p in made(e, 0).parameters())


def steps_for(budget: float, e: int) -> int:
    """Steps of BATCH texts of T bytes for that many operations."""
    return round(budget / (flops_per_token(e, DEPTH, T, N_BYTES)[1] * BATCH * T))


def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Cross-entropy in nats, in 32 bits. inputs, targets: (b, t)."""
    logits = model(inputs.to(device()))
    return F.cross_entropy(logits.flatten(0, 1), targets.to(device()).flatten(), reduction=reduction)


@torch.no_grad()
def held_out_nats(model: nn.Module, data: torch.Tensor) -> float:
    """Mean loss a byte over a text (length,), in windows of T bytes side by side."""
    count = (len(data) - 1) // T
    inputs, targets = (data[first : first + count * T].view(count, T).long() for first in (0, 1))
    with evaluating(model):
        sums = [loss_of(model, *rows, "sum").item() for rows in zip(inputs.split(64), targets.split(64), strict=True)]
    return sum(sums) / (count * T)


def trained(
    e: int, rate: float, steps: int, seed: int, train: torch.Tensor, held_out: torch.Tensor, record: Record
) -> float:
    """Held-out loss, in nats per byte, of a model of width e after its training. train, held_out: (length,)."""
    model = made(e, seed)
    generator = torch.Generator().manual_seed(1000 + seed)  # of one seed, all models begin with the same slices
    optimiser = ScheduledAdamW(model.parameters(), rate, steps, steps // 20, betas=(0.9, 0.98), fused=True)
    for _ in range(steps):
        loss_of(model, *sample_batch(train, BATCH, T, generator)).backward()
        optimiser.step()
    with record.aside():
        return held_out_nats(model, held_out)


def best_rate(losses: dict[float, float]) -> float:
    """The rate with the lowest loss."""
    return min(losses, key=losses.__getitem__)


def next_rate(losses: dict[float, float]) -> float | None:
    """The next rate to try: a neighbour of the best one so far; None where both were tried, or none is allowed."""
    if not losses:
        return FIRST_RATE
    best = best_rate(losses)
    for rate in (best / FACTOR, best * FACTOR):
        if rate not in losses and LOWEST <= rate <= HIGHEST:
            return rate
    return None


def main() -> None:
    """The whole run: a rate for each size, then the grid with one seed after another; a record after each seed."""
    options = arguments()
    torch.set_num_threads(1)
    train, held_out, about = wikipedia()
    held_out = held_out[: 5_000 if options.attempt else HELD_OUT]
    settings = {
        "t": T,
        "batch": BATCH,
        "depth": DEPTH,
        "heads": HEADS,
        "budgets": list(GRID),
        "warmup": "a twentieth of the steps",
        "optimiser": "AdamW",
        "threads": 1,
        **COSINE,
    }
    record = Record("isoflop", about | {"held_out_bytes": len(held_out)}, settings)

    def run(budget: float, e: int, rate: float, seed: int) -> float:
        steps = options.steps or steps_for(budget, e)
        loss = trained(e, rate, steps, seed, train, held_out, record)
        read = steps * BATCH * T
        record.look(
            parameters=parameters_of(e), e=e, budget=budget, bytes=read, rate=rate, seed=seed, held_out_nats=loss
        )
        return loss

    rates: dict[int, float] = {}
    for budget, widths in GRID.items():
        for e in widths:
            if e not in rates:
                losses: dict[float, float] = {}
                while (rate := next_rate(losses)) is not None:
                    losses[rate] = run(budget, e, rate, 0)
                rates[e] = best_rate(losses)
    tried, record.curve = record.curve, []
    for seed in range(SEEDS):
        for budget, widths in GRID.items():
            for e in widths:
                known = [row for row in tried if (row["budget"], row["e"], row["rate"]) == (budget, e, rates[e])]
                if seed == 0 and known:
                    record.curve.append(known[0])
                else:
                    run(budget, e, rates[e], seed)
        record.stop()
        trainings, record.curve = record.curve, []  # no curve along steps
        result = {
            "seeds": seed + 1,
            "rates": {str(e): rate for e, rate in rates.items()},
            "losses": {f"{budget:.2e}": losses_of(trainings, budget) for budget in GRID},
            "tried": [{key: row[key] for key in ("parameters", "rate", "held_out_nats")} for row in tried],
        }
        record.finish(options, result)
        record.curve = trainings


def losses_of(curve: list[dict], budget: float) -> dict[str, list]:
    """Of one budget: parameters and bytes read, a number a size, and the held-out losses, a list a size."""
    rows: dict[int, list[dict]] = {}
    for row in curve:
        if row["budget"] == budget:
            rows.setdefault(row["parameters"], []).append(row)
    return {
        "parameters": list(rows),
        "bytes": [of_size[0]["bytes"] for of_size in rows.values()],
        "held_out_nats": [[round(row["held_out_nats"], 4) for row in of_size] for of_size in rows.values()],
    }


if __name__ == "__main__":
    main()
