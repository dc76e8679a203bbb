"""The pocket Llama of lesson 18: python -m helpers.training.pocket_llama

A Llama of half a million parameters with grouped queries, trained on Jane Austen's six novels, which are text files in
the data folder, austen/*.txt: the text, the held-out chapters and the tokenizer of `helpers.training.pocket_austen`.
Written in the Hub's format. Eight minutes of one core.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any, cast

import torch
import torch.nn.functional as F

from helpers.data import store
from helpers.data.model_files import POCKET_LLAMA
from helpers.data.recorded import FOLDER
from helpers.device import device
from helpers.parts import gpt2, llama
from helpers.parts.bpe import Tokenizer
from helpers.parts.generator import bits_per_byte, sample_batch
from helpers.training import pocket_gpt2 as pocket
from helpers.training.austen import learned_and_held_out
from helpers.training.common import COSINE, Optimiser, Record, arguments, next_token_loss, settings_of
from helpers.training.loop import train
from helpers.training.pocket_austen import TEMPERATURE, TOP_P, about
from helpers.training.pocket_gpt2_figures import held_out_figures, samples_of

MODEL: dict[str, Any] = {
    "e": 96,
    "h": 4,
    "groups": 2,
    "depth": 3,
    "hidden": 256,
    "t_max": 128,
    "theta": 10000.0,
    "tied": True,
}
BATCH, STEPS, WARMUP, LOOKS = 8, 3000, 25, 8
RATE, EMBEDDING_RATE, DECAY = 1e-2, 5e-3, 0.1
LONGER, BLOCK = 16, 128  # times the trained window that is read at once, and positions whose bits are averaged
PROMPTS = ["It is a truth universally acknowledged", "Elizabeth", "\nMr. Darcy"]


def fresh_model(config: llama.LlamaConfig) -> llama.Llama:
    """A model to train, the matrices of its blocks √(768/e) times as wide as N(0, 0.02)."""
    model = llama.Llama(config)
    with torch.no_grad():
        for parameter in model.blocks.parameters():
            if parameter.dim() == 2:
                parameter.mul_(math.sqrt(768 / config.e))
    return model


def batches(ids: torch.Tensor, t: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and targets, (BATCH, t) each, without an end."""
    generator = torch.Generator().manual_seed(0)
    while True:
        yield sample_batch(ids, BATCH, t, generator)


@torch.no_grad()
def look(model: llama.Llama, held_out: torch.Tensor, per_byte: float, count: int = 64) -> float:
    """Held-out bits per byte on a sample of windows, each token of their second half from at least half a window."""
    t = model.t_max
    starts = torch.linspace(0, len(held_out) - t - 1, count).long()
    rows = held_out[starts[:, None] + torch.arange(t + 1)].to(device())
    logits = model(rows[:, :-1])[:, t // 2 :]
    nats = F.cross_entropy(logits.float().flatten(0, 1), rows[:, t // 2 + 1 :].flatten()).item()
    return bits_per_byte(nats * per_byte)


@torch.no_grad()
def by_position(model: llama.Llama, held_out: torch.Tensor, per_byte: float, count: int = 32) -> dict:
    """Held-out bits per byte in windows longer than the trained one, by position and by how angles are stretched."""
    t, d = LONGER * model.t_max, model.config.e // model.config.h
    starts = torch.linspace(0, len(held_out) - t - 1, count).long()
    rows = held_out[starts[:, None] + torch.arange(t + 1)]
    trained = llama.rotary_frequencies(d, model.config.theta)
    ways = {
        "as trained": trained,
        "all pairs": trained / LONGER,
        "by parts": llama.stretched_frequencies(trained, model.t_max, LONGER),
    }
    found: dict = {"what": f"{count} windows of {t} held-out tokens, means over blocks of {BLOCK} positions"}
    for name, frequencies in ways.items():
        llama.read_with(model, frequencies)
        nats = [F.cross_entropy(model(part[:, :-1]).mT, part[:, 1:], reduction="none") for part in rows.split(4)]
        blocks = torch.cat(nats).unflatten(1, (-1, BLOCK)).mean(dim=(0, 2))
        found[name] = [round(bits_per_byte(value * per_byte), 4) for value in blocks.tolist()]
    llama.read_with(model, None)
    return found


def main() -> None:
    """The whole run: data, training, test, samples, record."""
    options = arguments()
    steps = options.steps or STEPS
    torch.manual_seed(0)
    torch.set_num_threads(1)
    learned, held_out = learned_and_held_out(store.folder() / "austen")
    tokenizer = Tokenizer.learn("".join(learned), pocket.VOCABULARY)
    train_ids, held_ids = pocket.as_ids(learned, tokenizer), pocket.as_ids(held_out, tokenizer)
    config = llama.LlamaConfig(n=len(tokenizer), **MODEL)
    model = fresh_model(config).to(device())
    recipe = {"steps": steps, "batch": BATCH, "tokens": steps * BATCH * config.t_max, "rate": RATE, "decay": DECAY}
    recipe |= {"embedding_rate": EMBEDDING_RATE, "warmup": WARMUP, "optimiser": "Muon, AdamW for embeddings and norms"}
    settings = settings_of(model, n=config.n, **MODEL, **recipe, **COSINE, threads="one")
    record = Record("pocket_llama", about(learned, held_out, train_ids, held_ids), settings)
    per_byte = (len(held_ids) - 1) / record.data["held_out_bytes"]
    train(
        batches(train_ids, config.t_max),
        lambda batch: next_token_loss(model, *batch),
        Optimiser(model, RATE, steps, WARMUP, DECAY, EMBEDDING_RATE),
        record,
        steps=steps,
        every=max(1, steps // LOOKS),
        look=lambda running: {"training_nats": running, "held_out_bits": look(model, held_ids, per_byte)},
    )
    if not options.attempt:
        model = model.to("cpu").half().float().eval()  # rounded as it is kept
        folder = POCKET_LLAMA if options.to == FOLDER else options.to / "pocket_llama"
        tokenizer.save(folder)
        llama.save(copy.deepcopy(model).half(), folder)
        like_gpt2 = cast("gpt2.GPT2", model)  # called, cached and asked for its window in the same way
        result = held_out_figures(like_gpt2, (pocket.as_ids(learned[::40], tokenizer), held_ids), held_out, "chapter")
        result["by_position"] = by_position(model, held_ids, per_byte)
        record.finish(options, result, samples_of(like_gpt2, tokenizer, PROMPTS, TEMPERATURE, TOP_P))


if __name__ == "__main__":
    main()
