"""The pocket GPT-2 of lesson 12: python -m helpers.training.pocket_gpt2

Learns a byte-pair vocabulary and a small GPT-2 from the prose of Python's reference manual, and writes them to
helpers/data/pocket_gpt2 in the Hub's format. Every twentieth passage is held out. A few minutes on two cores. With --to
FOLDER the record and the model (FOLDER/pocket_gpt2) go there instead.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils import parametrize

from helpers.course import write_whole
from helpers.data.datasets import POCKET
from helpers.data.recorded import FOLDER
from helpers.data.text import manual
from helpers.device import device
from helpers.parts import gpt2
from helpers.parts.bpe import END_OF_TEXT, Tokenizer
from helpers.parts.generator import bits_per_byte, sample_batch
from helpers.training import loop
from helpers.training.common import Optimiser, Record, arguments, next_token_loss, precision

VOCABULARY = 1280
MODEL = {"t_max": 256, "e": 128, "h": 4, "depth": 4, "dropout": 0.1}
BATCH, RATE, EMBEDDING_RATE, WARMUP, DECAY, STEPS = 16, 4e-3, 4e-3, 50, 0.2, 800
PASSAGE, EVERY = 8, 20  # paragraphs in a passage, and how many passages there are for one that is held out
PROMPTS = [
    "The",
    "If the",
    "An exception is",
    "A class",
    "When a function is called",
    "The following",
    "Note that",
    "This",
]


def passages(text: str) -> tuple[list[str], list[str]]:
    """Runs of paragraphs, a line each, as (those to learn from, those held out)."""
    paragraphs = text.split("\n\n")
    runs = ["\n".join(paragraphs[i : i + PASSAGE]) for i in range(0, len(paragraphs), PASSAGE)]
    return [run for i, run in enumerate(runs) if i % EVERY != EVERY // 2], runs[EVERY // 2 :: EVERY]


def as_ids(runs: list[str], tokenizer: Tokenizer) -> torch.Tensor:
    """All passages in a row, an end-of-text token before each and after the last: (length,), int64."""
    return torch.tensor(tokenizer.encode(END_OF_TEXT + END_OF_TEXT.join(runs) + END_OF_TEXT, special=True))


class SideBySide(nn.Module):
    """Three matrices that are trained apart, and used as one.

    Muon gives every direction of a matrix the same strength. In one matrix of 3e columns the values' gradients, the
    largest by far at the beginning, would take the e directions there are, and leave queries and keys next to none.
    (Apart, they do move; the heads of so short a training stay broad all the same.)
    """

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.cat([q, k, v], dim=1)

    def right_inverse(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One matrix as the three that it is made of."""
        return tuple(part.contiguous() for part in weight.chunk(3, dim=1))


def fresh_model(config: gpt2.Config) -> gpt2.GPT2:
    """A model to train, its matrices √(768/e) times as wide as N(0, 0.02).

    Products are then as large as in the smallest published model.
    """
    model = gpt2.GPT2(config)
    with torch.no_grad():
        for block in model.blocks:
            for layer in (
                block.attention.to_qkv,
                block.attention.unify,
                block.feed_forward.widen,
                block.feed_forward.narrow,
            ):
                layer.weight *= math.sqrt(768 / config.e)
            parametrize.register_parametrization(block.attention.to_qkv, "weight", SideBySide())
    return model


def finished(model: gpt2.GPT2) -> gpt2.GPT2:
    """Queries, keys and values in one matrix again."""
    for block in model.blocks:
        parametrize.remove_parametrizations(block.attention.to_qkv, "weight")
    return model.to("cpu").eval()


def main() -> None:
    """The whole run: data, training, test, samples, record."""
    chosen = arguments()
    steps = chosen.steps or STEPS
    torch.manual_seed(0)
    text = manual()
    train_text, held_text = passages(text)
    tokenizer = Tokenizer.learn("\n".join(train_text), VOCABULARY)
    train, held_out = as_ids(train_text, tokenizer), as_ids(held_text, tokenizer)
    held_bytes = sum(len(run.encode()) for run in held_text)
    config = gpt2.Config(n=len(tokenizer), **MODEL)
    model = fresh_model(config).to(device())
    settings = {
        "n": config.n,
        **MODEL,
        "parameters": sum(p.numel() for p in model.parameters()),
        "batch": BATCH,
        "steps": steps,
        "rate": RATE,
        "embedding_rate": EMBEDDING_RATE,
        "warmup": WARMUP,
        "decay": DECAY,
        "optimiser": "Muon, AdamW for embeddings and norms",
        "schedule": "half a cosine to 0",
        "kept": "the last weights: they write better than those that were best on the held-out passages",
    }
    data = {
        "name": "the prose of Python's reference manual",
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "bytes": len(text.encode()),
        "training_tokens": len(train),
        "held_out_tokens": len(held_out),
        "held_out_bytes": held_bytes,
    }
    record = Record("pocket_gpt2", data, settings)
    optimiser = Optimiser(model, RATE, steps, WARMUP, DECAY, EMBEDDING_RATE)
    generator = torch.Generator().manual_seed(1)
    precision()
    last = loop.train(
        loop.again_and_again(lambda: [sample_batch(train, BATCH, config.t_max, generator)]),
        lambda batch: next_token_loss(model, *batch),
        optimiser,
        record,
        steps=steps,
        every=max(1, steps // 30),
        look=lambda loss: {
            "training_nats": loss,
            "held_out_nats": math.log(gpt2.perplexity(model, held_out.to(device()), config.t_max // 2)),
        },
    )
    nats = last["held_out_nats"]
    model = finished(model)

    result = {
        "held_out_nats": round(nats, 4),
        "held_out_perplexity": round(math.exp(nats), 2),
        "held_out_bits_per_byte": round(bits_per_byte(nats * (len(held_out) - 1) / held_bytes), 4),
        "context": (
            f"windows of {config.t_max} tokens, every token predicted from more than {config.t_max // 2} (fewer at the"
            " beginning)"
        ),
    }
    print(result)
    samples = []
    for seed, prompt in enumerate(PROMPTS):
        ids = torch.tensor([tokenizer.encode(END_OF_TEXT + prompt, special=True)])
        drawn = gpt2.generate_cached(model, ids, 80, 0.7, top_p=0.95, generator=torch.Generator().manual_seed(seed))[
            0
        ].tolist()
        drawn = drawn[: drawn.index(tokenizer.end_of_text)] if tokenizer.end_of_text in drawn else drawn
        samples.append({"prompt": prompt, "temperature": 0.7, "top_p": 0.95, "text": tokenizer.decode(drawn)})
        print(f"{prompt}|{samples[-1]['text']}\n")
    if not chosen.attempt:
        write(model, tokenizer, POCKET if chosen.to == FOLDER else chosen.to / "pocket_gpt2")
        record.write(chosen.to, result, samples)


def write(model: gpt2.GPT2, tokenizer: Tokenizer, folder: Path) -> None:
    """The folder as the Hub would have it."""
    tokenizer.save(folder)
    gpt2.save(model, folder)
    end = tokenizer.end_of_text
    settings = {"bos_token_id": end, "eos_token_id": end, "do_sample": True, "temperature": 0.7, "top_p": 0.95}
    write_whole(folder / "generation_config.json", json.dumps(settings, indent=2) + "\n")
    print(f"Wrote {', '.join(sorted(path.name for path in folder.iterdir()))} to {folder.name}.")


if __name__ == "__main__":
    main()
