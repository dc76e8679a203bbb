"""Lesson 19's dictionary of features: python -m helpers.training.dictionary

Sparse autoencoders of the pocket GPT-2's hidden states after block 1, on the source of Python's standard library, for
several penalties. That of the penalty KEPT is stored beside the record, with half precision. A few minutes of one core.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from helpers.data.datasets import gpt2_files
from helpers.data.sources import checksum, python_version, stdlib_sources
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.dictionary import Dictionary
from helpers.parts.generator import bits_per_byte
from helpers.training.common import Record, arguments
from helpers.training.pocket_gpt2 import learned_and_held_out

AFTER = 2  # blocks
FEATURES, BATCH, STEPS, RATE, WARMUP = 512, 256, 2000, 2e-3, 50
PENALTIES, KEPT = (0.1, 0.2, 0.6), 0.2
T, TEXT, HELD_OUT, JUDGED = 128, 450_000, 200_000, 60  # tokens a window, letters of two parts, windows for bits
SHOWN, CONTEXTS, BEFORE = 40, 5, 8  # features, contexts of each, tokens before

Change = Callable[[torch.Tensor], torch.Tensor]


def windows(modules: list[str], tokenizer: Tokenizer, letters: int) -> torch.Tensor:
    """Windows (b, T) of the first 6,000 letters of each module, in an order that says nothing about their names."""
    mixed = sorted(modules, key=lambda text: zlib.crc32(text.encode()))
    ids = torch.tensor(tokenizer.encode("\n".join(text[:6000] for text in mixed)[:letters]))
    return ids[: len(ids) // T * T].view(-1, T)


@torch.no_grad()
def states(model: gpt2.GPT2, ids: torch.Tensor) -> torch.Tensor:
    """Hidden states after AFTER blocks. ids: (b, t). Returns (b, t, e)."""
    x = model.embed(ids)
    for block in list(model.blocks)[:AFTER]:
        x = block(x)
    return x


@torch.no_grad()
def bits(model: gpt2.GPT2, tokenizer: Tokenizer, ids: torch.Tensor, change: Change) -> float:
    """Bits per byte while `change` replaces the states, (b, t, e), of all positions but the first. ids: (b, T)."""
    nats = 0.0
    for rows in ids.split(16):
        x = states(model, rows)
        x = torch.cat([x[:, :1], change(x[:, 1:])], dim=1)
        for block in list(model.blocks)[AFTER:]:
            x = block(x)
        logits = F.linear(model.norm(x), model.tokens.weight)[:, :-1]
        nats += F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="sum").item()
    return bits_per_byte(nats / len(tokenizer.decode(ids[:, 1:].flatten().tolist()).encode()))


def learn(x: torch.Tensor, penalty: float, steps: int) -> Dictionary:
    """A dictionary of the states x, (m, e)."""
    torch.manual_seed(0)
    found = Dictionary(x.shape[1], FEATURES)
    found.mean.copy_(x.mean(dim=0))
    found.length.copy_((x - found.mean).square().sum(dim=-1).mean().sqrt())
    optimiser = torch.optim.Adam(found.parameters(), lr=RATE, betas=(0.9, 0.99))
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = RATE * min(1, (step + 1) / WARMUP, (steps - step) / (0.2 * steps))
        loss = found.loss(x[torch.randint(len(x), (BATCH,))], penalty).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return found


@torch.no_grad()
def judged(found: Dictionary, held: torch.Tensor) -> dict[str, float]:
    """On held-out states (b, t, e): features present, share of the variance that is lost, share of dead features."""
    features, rebuilt = found.features(held), found(held)
    lost = (held - rebuilt).square().sum() / (held - found.mean).square().sum()
    return {
        "present": (features > 0).float().sum(dim=-1).mean().item(),
        "lost": lost.item(),
        "dead": (features.flatten(0, 1).amax(dim=0) == 0).float().mean().item(),
    }


@torch.no_grad()
def contexts(found: Dictionary, held: torch.Tensor, ids: torch.Tensor, tokenizer: Tokenizer) -> list[dict]:
    """Where each of the first SHOWN features is strongest, at most one place in a window. ids: (b, T)."""
    samples = []
    for number in range(SHOWN):
        strength = found.features(held)[:, :, number]  # (b, T - 1), the first position is left out
        most, where = strength.max(dim=1)
        told = []
        for row in most.argsort(descending=True)[:CONTEXTS].tolist():
            place = int(where[row]) + 1
            before = tokenizer.decode(ids[row, max(0, place - BEFORE) : place].tolist())
            told.append([before, tokenizer.decode([int(ids[row, place])]), round(most[row].item(), 2)])
        samples.append({"feature": number, "present": (strength > 0).float().mean().item(), "contexts": told})
    return samples


def main() -> None:
    """Train, judge, record."""
    options = arguments()
    torch.set_num_threads(1)
    folder, steps = gpt2_files("pocket_python").folder, options.steps or STEPS
    tokenizer, model, sources = Tokenizer.from_folder(folder), gpt2.load(folder), stdlib_sources()
    learned, held_out = learned_and_held_out(sources)
    train, held = windows(learned, tokenizer, TEXT), windows(held_out, tokenizer, HELD_OUT)
    x, y = (torch.cat([states(model, rows)[:, 1:] for rows in ids.split(16)]) for ids in (train, held))
    about = {"name": "the source of the standard library", "python": python_version(), "sha256": checksum(sources)}
    settings = {"features": FEATURES, "after_blocks": AFTER, "batch": BATCH, "steps": steps, "rate": RATE}
    record = Record("dictionary", about | {"tokens": train.numel(), "held_out_tokens": held.numel()}, settings)
    some, result, samples = held[:JUDGED], {}, []
    with record.aside():
        mean = x.flatten(0, 1).mean(dim=0)
        result["own"] = bits(model, tokenizer, some, lambda states: states)
        result["mean"] = bits(model, tokenizer, some, lambda states: mean.expand_as(states))
    for penalty in PENALTIES:
        found = learn(x.flatten(0, 1), penalty, steps)
        with record.aside():
            figures = judged(found, y) | {"held_out_bits": bits(model, tokenizer, some, found)}
        record.look(penalty=penalty, **figures)
        if penalty == KEPT and not options.attempt:
            tensors = {name: tensor.half().contiguous() for name, tensor in found.state_dict().items()}
            save_file(tensors, options.to / "dictionary.safetensors")
            samples = contexts(found, y, held, tokenizer)
    record.stop()
    record.finish(options, result | {"kept": KEPT}, samples)


if __name__ == "__main__":
    main()
