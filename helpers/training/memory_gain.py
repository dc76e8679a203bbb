"""What a memory gains on program code, with three seeds: python -m helpers.training.memory_gain

Lesson 15's two trainings on the source of Python's standard library, one without a memory and one that remembers the
last segment. They take turns, a step each, and each has a clock of its own. Afterwards both are evaluated with memories
of several lengths.
"""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.nn.functional as F

from helpers.data.sources import checksum, is_held_out, stdlib_sources
from helpers.device import device
from helpers.parts.evaluating import evaluating
from helpers.parts.generator import bits_per_byte
from helpers.parts.transformer_xl import TransformerXL, segments, streaming_bits
from helpers.training.common import Record, arguments

MODEL: dict[str, Any] = {"n": 256, "e": 64, "h": 4, "depth": 3}
T, BATCH, STEPS, RATE, WARMUP = 64, 16, 540, 3e-3, 50
SEEDS = (0, 1, 2)
TRAINED = {"without memory": 0, "m = 64": 64}  # the memories of the two trainings
MEMORIES = (0, 16, 64, 128, 256)  # that each model is evaluated with
JUDGED, STREAMS = 16_000, 16  # held-out bytes for each number; streams for the bits by position
LOOKED_AT, LOOKS = slice(100_000, 104_000), 6  # held-out bytes for the curves, and points on each


def code() -> tuple[torch.Tensor, torch.Tensor, dict[str, str | int]]:
    """The bytes to train on, those held out, and what a record says of them."""
    modules = stdlib_sources()
    parts = [b"".join(text.encode() for name, text in modules.items() if is_held_out(name) == out) for out in (0, 1)]
    train, held_out = (torch.frombuffer(bytearray(part), dtype=torch.uint8) for part in parts)
    name = "the source code of Python's standard library"
    return train, held_out, {"name": name, "sha256": checksum(modules), "held_out_bytes": len(held_out)}


class Training:
    """A model in training, with its memory and its clock."""

    def __init__(self, m: int, seed: int):
        torch.manual_seed(seed)
        self.model = TransformerXL(**MODEL).to(device())
        self.m = m
        self.memory: list[torch.Tensor] | None = None
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98))
        self.seconds = 0.0

    def step(self, number: int, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        """One step on a batch (b, t), timed."""
        before = time.process_time()
        logits, self.memory = self.model(inputs.to(device()), self.memory, self.m)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.to(device()).flatten())
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.param_groups[0]["lr"] = RATE * min(1, (number + 1) / WARMUP)
        self.optimiser.step()
        self.seconds += time.process_time() - before


@torch.no_grad()
def position_bits(model: TransformerXL, data: torch.Tensor, m: int) -> list[float]:
    """Bits at each position of a segment, of all segments but the first in several streams: T numbers."""
    memory, bits = None, []
    with evaluating(model):
        for inputs, targets in zip(*segments(data, STREAMS, T), strict=True):
            logits, memory = model(inputs.to(device()), memory, m)
            nats = F.cross_entropy(logits.transpose(1, 2), targets.to(device()), reduction="none")
            bits.append(bits_per_byte(nats.mean(dim=0)))
    return [round(each, 4) for each in torch.stack(bits[1:]).mean(dim=0).tolist()]  # the first has no past


def run_seed(seed: int, steps: int = STEPS) -> dict[str, dict[str, Any]]:
    """What the two trainings reach with one seed, by name."""
    text, held_out, _ = code()
    inputs, targets = segments(text, BATCH, T)
    runs = {name: Training(m, seed) for name, m in TRAINED.items()}
    curves: dict[str, list[tuple[int, float, float]]] = {name: [] for name in TRAINED}
    for number in range(steps):
        for name, run in runs.items():
            run.step(number, inputs[number], targets[number])
            if (number + 1) % max(1, STEPS // LOOKS) == 0:
                bits = streaming_bits(run.model, held_out[LOOKED_AT].to(device()), T, run.m)
                curves[name].append((number + 1, round(run.seconds, 2), round(bits, 4)))
    judged, some = held_out[:JUDGED].to(device()), held_out[: 4 * JUDGED]
    return {
        name: {
            "bits": [round(streaming_bits(run.model, judged, T, m), 4) for m in MEMORIES],
            "bits_by_position": {str(m): position_bits(run.model, some, m) for m in (0, 64)},
            "seconds_a_step": round(run.seconds / steps, 5),
            "curve": curves[name],
        }
        for name, run in runs.items()
    }


def gains(result: dict[str, dict[str, list]]) -> dict[str, list[float]]:
    """Three answers to what the memory gains, in bits per byte: one number for each seed."""
    without, remembering = (result[name]["bits"] for name in TRAINED)
    none, trained = MEMORIES.index(0), MEMORIES.index(T)
    pairs = list(zip(without, remembering, strict=True))
    return {
        "each as it was trained": [round(a[none] - b[trained], 4) for a, b in pairs],
        "memory at evaluation alone": [round(a[none] - a[trained], 4) for a, b in pairs],
        "one model, memory off and on": [round(b[none] - b[trained], 4) for a, b in pairs],
    }


def main() -> None:
    """Both trainings with each seed, on one thread; record."""
    options = arguments()
    torch.set_num_threads(1)
    seeds = SEEDS[:1] if options.attempt else SEEDS
    settings = {**MODEL, "t": T, "batch": BATCH, "steps": STEPS, "rate": RATE, "warmup": WARMUP, "seeds": len(seeds)}
    held_out = {"judged_bytes": JUDGED, "bytes_by_position": 4 * JUDGED, "curve_bytes": 4000, "memories": MEMORIES}
    record = Record("memory_gain", code()[2], settings | held_out | {"optimiser": "AdamW"})
    runs = []
    for seed in seeds:
        runs.append(run_seed(seed, options.steps or STEPS))
        print(f"seed {seed}:", {name: found["bits"] for name, found in runs[-1].items()}, flush=True)
    record.stop()
    result = {name: {kind: [run[name][kind] for run in runs] for kind in runs[0][name]} for name in TRAINED}
    record.finish(options, {"gain": gains(result), **result})


if __name__ == "__main__":
    main()
