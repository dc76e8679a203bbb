"""Lesson 9's model and recipe on Jane Austen's six novels: python -m helpers.training.austen

The novels are text files in the data folder, austen/*.txt. Every twentieth chapter is held out. Samples are taken after
20, 100, 300 and 800 steps; tables of counts, of the same bytes, are measured beside them. A minute of one core.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import torch
from torch import nn

from helpers.data import store
from helpers.device import device
from helpers.ladder import RATE, WARMUP, steps_on
from helpers.parts.generator import CharTransformer, generate
from helpers.training.common import COSINE, Record, arguments, settings_of
from helpers.training.enwik8 import held_out_bits
from helpers.training.tables import BATCH, MODEL, ORDERS, bits_of_orders, counted

STEPS, LOOKS = 800, (20, 100, 300, 800)
PROMPT, COUNT, TEMPERATURE = "It is a truth universally ", 200, 0.8
EVERY, SHORTEST = 20, 2000  # every twentieth chapter is held out; what is shorter is a title page
HEADING = r"(?im)^chapter\s+[ivxl0-9]+\.?\s*$"


def chapters(novel: str) -> list[str]:
    """The chapters of a novel, without headings, emphasis and line breaks inside a paragraph."""
    paragraphs = (re.split(r"\n\s*\n", part.replace("_", "")) for part in re.split(HEADING, novel))
    whole = ("".join(f"{' '.join(words)}\n" for p in part if (words := p.split())) for part in paragraphs)
    return [chapter for chapter in whole if len(chapter) > SHORTEST]


def learned_and_held_out(folder: Path) -> tuple[list[str], list[str]]:
    """The chapters to learn from, and those that are held out. FileNotFoundError where there are no novels."""
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise FileNotFoundError(f"There are no novels in {folder}: put the six text files there.")
    found = [chapter for file in files for chapter in chapters(file.read_text(encoding="utf-8"))]
    return [chapter for place, chapter in enumerate(found) if place % EVERY], found[::EVERY]


def novels(folder: Path) -> tuple[bytes, bytes]:
    """The training part and the held-out part, as bytes. FileNotFoundError where there are no novels."""
    train, held_out = learned_and_held_out(folder)
    return "".join(train).encode(), "".join(held_out).encode()


def as_tensor(data: bytes) -> torch.Tensor:
    """Bytes as uint8, (length,)."""
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def sample_of(model: nn.Module) -> str:
    """How the model goes on from PROMPT."""
    chance = torch.Generator(device()).manual_seed(1)
    prompt = torch.tensor([list(PROMPT.encode())], device=device())
    written = generate(model, prompt, COUNT, TEMPERATURE, generator=chance)[0]
    return bytes(written.tolist()).decode("utf-8", errors="replace")


def main() -> None:
    """Train, look and write now and then, count; record."""
    options = arguments()
    torch.set_num_threads(1)
    train, held_out = novels(store.folder() / "austen")
    data, test, t = as_tensor(train), as_tensor(held_out), MODEL["t_max"]
    torch.manual_seed(0)
    model = CharTransformer(**MODEL).to(device())
    steps = options.steps or STEPS
    settings = {"steps": steps, "batch": BATCH, "rate": RATE, "warmup": WARMUP, "optimiser": "AdamW", **COSINE}
    about = {
        "name": "six novels by Jane Austen",
        "sha256": hashlib.sha256(train + held_out).hexdigest(),
        "training_bytes": len(train),
        "held_out_bytes": len(held_out),
    }
    record = Record("austen", about, settings_of(model, **MODEL, **settings))
    samples = []
    for done, _ in enumerate(steps_on(data, model, steps, windows_a_step=BATCH), 1):
        if done in LOOKS or done == steps:
            with record.aside():
                bits = held_out_bits(model, test, t, t)
                samples.append({"step": done, "prompt": PROMPT, "temperature": TEMPERATURE, "text": sample_of(model)})
            record.look(step=done, held_out_bits=bits)
    record.stop()
    tables = [] if options.attempt else bits_of_orders(counted(train, ORDERS), held_out)
    record.finish(options, {"held_out_bits": round(bits, 4), "tables": [round(b, 4) for b in tables]}, samples)


if __name__ == "__main__":
    main()
