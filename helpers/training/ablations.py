"""Lesson 9's byte model without one of its pieces, with three seeds: python -m helpers.training.ablations

Two trainings: the short one that the lesson runs, and a longer one of a deeper, wider model. The text and the recipe
are the ladder's. Each model is measured on held-out bytes, each predicted from the t_max bytes before it.
"""

from __future__ import annotations

from statistics import fmean

import torch

from helpers import ladder
from helpers.device import device
from helpers.ladder import N, T
from helpers.parts.ablated import PIECES, SHORTCUTS, AblatedTransformer
from helpers.training.common import Record, arguments
from helpers.training.ladder_runs import SEEDS, about, recipe

SIZES: dict[str, dict[str, int]] = {
    "short": {"e": 32, "h": 2, "depth": 2, "steps": 300},
    "long": {"e": 64, "h": 4, "depth": 4, "steps": 1000},
}


def bits_without(piece: str, e: int, h: int, depth: int, steps: int, seed: int) -> float:
    """Held-out bits per byte of a model of that size that was trained without a piece."""
    torch.manual_seed(seed)
    model = AblatedTransformer(N, e, h, depth, T, piece).to(device())
    ladder.train(model, steps, seed)
    return ladder.held_out_bits(model)


def run_seed(seed: int, steps: int = 0) -> dict[str, dict[str, float]]:
    """{training: {piece: held-out bits}} with one seed. steps: 0 for those of SIZES."""
    torch.set_num_threads(1)
    bits: dict[str, dict[str, float]] = {}
    for name, size in SIZES.items():
        bits[name] = {}
        for piece in ("nothing", *PIECES, *(SHORTCUTS if name == "short" else ())):
            found = bits_without(piece, **size | ({"steps": steps} if steps else {}), seed=seed)
            bits[name][piece] = round(found, 4)
            print(f"seed {seed}, {name}, without {piece}: {found:.3f}", flush=True)
    return bits


def main() -> None:
    """All models with each seed, on one thread; record."""
    options = arguments()
    seeds = SEEDS[:1] if options.attempt else SEEDS
    record = Record("ablations", about(), recipe(seeds) | SIZES)
    runs = [run_seed(seed, options.steps) for seed in seeds]
    record.stop()
    bits = {name: {piece: [found[name][piece] for found in runs] for piece in runs[0][name]} for name in SIZES}
    lost = {name: round(fmean(bits["long"][name]) - fmean(bits["long"]["nothing"]), 3) for name in PIECES}
    record.finish(options, {"bits": bits, "lost": lost})


if __name__ == "__main__":
    main()
