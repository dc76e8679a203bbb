"""Lesson 9's model on the beginning of the English Wikipedia: python -m helpers.training.enwik8

The first 4,154,399 bytes of enwik8; the last twentieth is held out. About half an hour on two cores.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma

import torch
import torch.nn.functional as F
from torch import nn

from helpers.data.datasets import generator_text
from helpers.data.open_texts import added_bits
from helpers.device import device
from helpers.ladder import counted_bits
from helpers.parts.evaluating import evaluating
from helpers.parts.generator import CharTransformer, bits_per_byte, generate, sample_batch
from helpers.training.common import COSINE, REAL, Optimiser, Rates, initialise, next_token_loss, precision
from helpers.training.loop import Experiment, run

HELD_OUT = 1 / 20
MODEL = {"n": 256, "e": 256, "h": 4, "depth": 4, "t_max": 256}
RATES: Rates = {"rate": 1e-2, "embedding_rate": 4e-3, "warmup": 60}
BATCH, STEPS = 24, 2150
PROMPTS = ["In the year ", "'''Mathematics''' is ", "==External links==\n", "The capital of "]


@torch.no_grad()
def held_out_bits(model: nn.Module, data: torch.Tensor, t: int, stride: int) -> float:
    """Bits per byte when each byte is predicted from at least t − stride before it (fewer at the very beginning).

    data: (length,), integers. Windows of t bytes start every `stride` bytes, and of each only the last `stride`
    predictions count; of the first, all. With stride = t the windows do not overlap, and their first bytes are
    predicted from next to nothing.
    """
    nats, count = 0.0, 0
    starts = list(range(0, len(data) - t, stride))
    with evaluating(model):
        for place in range(0, len(starts), 32):
            rows = torch.stack([data[s : s + t + 1] for s in starts[place : place + 32]]).long().to(device())
            with precision():
                logits = model(rows[:, :-1])
            losses = F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
            losses = losses.view(len(rows), t)
            fresh = losses[:, -stride:].sum().item()
            if place == 0 and stride < t:
                fresh += losses[0, :-stride].sum().item()
                count += t - stride
            nats, count = nats + fresh, count + stride * len(rows)
    return bits_per_byte(nats / count)


def landmarks(train: torch.Tensor, held_out: torch.Tensor) -> dict[str, float]:
    """Bits per held-out byte to hold a model against: of two tables of counts, and of packers, each after `train`.

    train, held_out  (bytes,), uint8. A packer's score is how much longer the whole is, packed, than `train` alone.
    """
    packers = {
        "gzip -9": lambda data: gzip.compress(data, 9),
        "bzip2 -9": lambda data: bz2.compress(data, 9),
        "xz -9": lambda data: lzma.compress(data, preset=9),
    }
    whole = torch.cat([train, held_out]).numpy().tobytes()
    added = {name: added_bits(pack, whole, len(train)) for name, pack in packers.items()}
    return {name: round(bits, 3) for name, bits in (counted_bits(train, held_out) | added).items()}


def wikipedia() -> tuple[torch.Tensor, torch.Tensor, dict[str, object]]:
    """The bytes to train on, (length,), the held-out ones after them, and what a record says of both."""
    text, taken = generator_text(places=REAL)
    cut = len(text) - int(HELD_OUT * len(text))
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    about = {
        "name": taken.line.split(":")[1].split(", from")[0].strip(),
        "sha256": hashlib.sha256(text).hexdigest(),
        "bytes": len(text),
        "training_bytes": cut,
        "held_out_bytes": len(text) - cut,
    }
    return data[:cut], data[cut:], about


def experiment() -> Experiment:
    """The training, the test and the samples."""
    train, held_out, about = wikipedia()
    model = initialise(CharTransformer(**MODEL)).to(device())
    generator, t = torch.Generator().manual_seed(1), MODEL["t_max"]

    def measured(whole: bool) -> tuple[dict, list[dict]]:
        result: dict[str, object] = {
            "held_out_bits": round(held_out_bits(model, held_out, t, t // 4), 4),
            "held_out_bits_without_overlap": round(held_out_bits(model, held_out, t, t), 4),
            "context": f"windows of {t} bytes, every byte predicted from at least {t - t // 4}",
        }
        if whole:
            result["on_the_same_bytes"] = landmarks(train, held_out)
        return result, [sample_of(model, prompt) for prompt in PROMPTS]

    return Experiment(
        "enwik8",
        about,
        model,
        {**MODEL, "batch": BATCH, **RATES, "optimiser": "Muon, AdamW for embeddings and output", **COSINE},
        steps=STEPS,
        every=STEPS // 20,
        epoch=lambda: [sample_batch(train, BATCH, t, generator)],
        loss_of=lambda batch: next_token_loss(model, *batch),
        optimiser=lambda steps: Optimiser(model, steps=steps, **RATES),
        look=lambda loss: {
            "training_bits": bits_per_byte(loss),
            "held_out_bits": held_out_bits(model, held_out[:50_000], t, t),
        },
        measured=measured,
    )


def sample_of(model: nn.Module, prompt: str) -> dict[str, str | float]:
    """How the model goes on from a beginning."""
    ids, generator = torch.tensor([list(prompt.encode())], device=device()), torch.Generator(device()).manual_seed(2)
    written = bytes(generate(model, ids, 400, temperature=0.8, generator=generator)[0].tolist())
    return {"prompt": prompt, "temperature": 0.8, "text": written.decode("utf-8", errors="replace")}


if __name__ == "__main__":
    run(experiment)
