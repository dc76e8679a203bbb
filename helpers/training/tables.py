"""When does a transformer beat a table? Lesson 9's model and tables of counts: python -m helpers.training.tables

Both learn from more and more of enwik8's beginning: from the n bytes just before the last twentieth, which is held out.
The tables are smoothed as I. Witten and T. Bell do it ("The zero-frequency problem", 1991): what the bytes before have
not been seen with is left to the table of one byte less. Three or four minutes of one core.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from helpers.device import device
from helpers.parts.generator import CharTransformer, sample_batch
from helpers.training import loop
from helpers.training.common import COSINE, Optimiser, Rates, Record, arguments, initialise
from helpers.training.enwik8 import held_out_bits, wikipedia

ORDERS = 7  # the most bytes before that a table looks at
MODEL = {"n": 256, "e": 96, "h": 4, "depth": 3, "t_max": 64}  # lesson 9's
RATES: Rates = {"rate": 1e-2, "embedding_rate": 4e-3, "warmup": 60}
BATCH = 16
STEPS = {60_000: 400, 240_000: 800, 960_000: 1600}  # by bytes of training text

Table = dict[bytes, Counter]


def counted(train: bytes, most: int) -> list[Table]:
    """For each order k from 0 to `most`: how often each byte follows each k bytes."""
    tables: list[Table] = []
    for k in range(most + 1):
        table: Table = defaultdict(Counter)
        for i in range(k, len(train)):
            table[train[i - k : i]][train[i]] += 1
        tables.append(dict(table))
    return tables


def bits_of_orders(tables: Sequence[Table], held_out: bytes) -> list[float]:
    """Bits per byte for each order. The first bytes, which not all orders can predict, are left out for all."""
    most = len(tables) - 1
    totals = [{before: sum(seen.values()) for before, seen in table.items()} for table in tables]
    bits = [0.0] * len(tables)
    for i in range(most, len(held_out)):
        p, byte = 1 / 256, held_out[i]
        for k in range(len(tables)):
            before = held_out[i - k : i]
            seen = tables[k].get(before)
            if seen is not None:
                p = (seen[byte] + len(seen) * p) / (totals[k][before] + len(seen))
            bits[k] -= math.log2(p)
    return [total / (len(held_out) - most) for total in bits]


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy of a batch (inputs, targets), (), in nats, in float32: bfloat16 is slower for matrices so small."""
    inputs, targets = (part.to(device()) for part in batch)
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def trained_bits(train: torch.Tensor, held_out: torch.Tensor, steps: int, record: Record) -> float:
    """Held-out bits per byte of lesson 9's model after its training. train, held_out: (length,)."""
    torch.manual_seed(0)
    model = initialise(CharTransformer(**MODEL)).to(device())
    chance, t = torch.Generator().manual_seed(1), MODEL["t_max"]
    loop.train(
        (sample_batch(train, BATCH, t, chance) for _ in range(steps)),
        lambda batch: loss_of(model, batch),
        Optimiser(model, steps=steps, **RATES),
        record,
        steps=steps,
        every=steps,
        look=lambda loss: {
            "training_bytes": len(train),
            "training_bits": loss / math.log(2),
            "held_out_bits": held_out_bits(model, held_out[:20_000], t, t),
        },
    )
    return held_out_bits(model, held_out, t, t // 2)


def main() -> None:
    """Tables and transformer on each amount of text, tables on all of it too; record."""
    options = arguments()
    torch.set_num_threads(1)
    train, held_out, about = wikipedia()
    if options.attempt:
        held_out = held_out[:20_000]
    settings = {**MODEL, "batch": BATCH, **RATES, "optimiser": "Muon, AdamW for embeddings and output", **COSINE}
    record = Record("tables", about, settings | {"steps": {str(size): steps for size, steps in STEPS.items()}})
    tables: dict[str, list[float]] = {}
    for size in STEPS if options.attempt else (*STEPS, len(train)):
        bits = bits_of_orders(counted(bytes(train[-size:].tolist()), ORDERS), bytes(held_out.tolist()))
        tables[str(size)] = [round(value, 4) for value in bits]
        print(f"{size:,} bytes: {tables[str(size)]}", flush=True)
    transformer: dict[str, float] = {}
    for size, steps in STEPS.items():
        reached = trained_bits(train[-size:], held_out, options.steps or steps, record)
        transformer[str(size)] = round(reached, 4)
        record.finish(options, {"tables": tables, "transformer": transformer})  # what there is after each size


if __name__ == "__main__":
    main()
