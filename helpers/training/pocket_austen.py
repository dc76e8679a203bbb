"""The pocket GPT-2 that writes English: python -m helpers.training.pocket_austen

The model of `helpers.training.pocket_gpt2`, trained on Jane Austen's six novels, which are text files in the data
folder, austen/*.txt. Every twentieth chapter is held out. Blocks, positions and the tokens that both vocabularies share
start as the Python model's: from nothing, 1,800 steps on the novels brought no head that copies. Four megabytes are
read some nine times, echoes included: dropout keeps the model from learning them by heart. About half an hour on two
cores. A stopped training goes on from its last checkpoint.
"""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from helpers.data import store
from helpers.data.model_files import POCKET, POCKET_ENGLISH
from helpers.data.recorded import FOLDER
from helpers.device import device
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.training import pocket_gpt2 as pocket
from helpers.training.austen import learned_and_held_out
from helpers.training.common import Record, arguments, settings_of
from helpers.training.pocket_gpt2_figures import heads, held_out_figures, samples_of

STEPS, DROPOUT, DECAY = 2400, 0.1, 0.1
TEMPERATURE, TOP_P = 0.8, 0.9
PROMPTS = [
    "It is a truth universally acknowledged",
    "Elizabeth",
    "The cat sat on the mat, and",
    "\nMr. Darcy",
    '"My dear',
]


def about(train: list[str], held_out: list[str], train_ids: torch.Tensor, held_ids: torch.Tensor) -> dict:
    """What the record says of the text."""
    return {
        "name": "six novels by Jane Austen",
        "sha256": hashlib.sha256("".join(train + held_out).encode()).hexdigest(),
        "chapters": len(train) + len(held_out),
        "bytes": len("".join(train + held_out).encode()),
        "training_tokens": len(train_ids),
        "held_out_chapters": len(held_out),
        "held_out_tokens": len(held_ids),
        "held_out_bytes": len("".join(held_out).encode()),
    }


@torch.no_grad()
def start_from_python(model: gpt2.GPT2, tokenizer: Tokenizer) -> int:
    """Give a fresh model the Python model's blocks and positions, and its rows of shared tokens; returns their number.

    model: as `pocket_gpt2.fresh_model` makes it, of the same sizes; the other tokens keep what they start as.
    """
    other, known = gpt2.load(POCKET), Tokenizer.from_folder(POCKET).vocabulary
    tokens = model.tokens.weight.clone()
    shared = {place: known[token] for token, place in tokenizer.vocabulary.items() if token in known}
    tokens[list(shared)] = other.tokens.weight[list(shared.values())].to(tokens.device)
    for block, its in zip(pocket.blocks_of(model), pocket.blocks_of(other), strict=True):
        layer: Any = block.attention.to_qkv  # takes a matrix, and keeps it as three
        layer.weight = its.attention.to_qkv.weight.detach().to(tokens.device)
        weights = {name: w for name, w in its.state_dict().items() if name != "attention.to_qkv.weight"}
        block.load_state_dict(weights, strict=False)
    model.positions.load_state_dict(other.positions.state_dict())
    model.norm.load_state_dict(other.norm.state_dict())
    model.tokens.weight.copy_(tokens)
    return len(shared)


def main() -> None:
    """The whole run: data, training, test, samples, record."""
    options = arguments()
    steps = options.steps or STEPS
    torch.manual_seed(0)
    train, held_out = learned_and_held_out(store.folder() / "austen")
    tokenizer = Tokenizer.learn("".join(train), pocket.VOCABULARY)
    train_ids, held_ids = pocket.as_ids(train, tokenizer), pocket.as_ids(held_out, tokenizer)
    config = gpt2.Config(n=len(tokenizer), dropout=DROPOUT, **pocket.MODEL)
    model = pocket.fresh_model(config).to(device())
    shared = start_from_python(model, tokenizer)
    settings = settings_of(model, n=config.n, **pocket.MODEL, dropout=DROPOUT, **pocket.recipe(steps, decay=DECAY))
    settings["start"] = f"the Python model's blocks and positions, and its rows of {shared:,} shared tokens"
    settings["positions"] = "a learned table, which starts as the Python model's"
    record = Record("pocket_austen", about(train, held_out, train_ids, held_ids), settings)
    checkpoint = pocket.checkpoint_for(record, options.to)
    per_byte = (len(held_ids) - 1) / record.data["held_out_bytes"]
    pocket.train(
        model,
        lambda step: pocket.windows(train_ids, config.n, step, steps),
        steps,
        record,
        checkpoint,
        lambda: pocket.look(model, held_ids, per_byte),
        DECAY,
    )
    if not options.attempt:
        model = pocket.finished(model)
        folder = POCKET_ENGLISH if options.to == FOLDER else options.to / "pocket_austen"
        pocket.write(model, tokenizer, folder, TEMPERATURE, TOP_P)
        result = held_out_figures(model, (pocket.as_ids(train[::40], tokenizer), held_ids), held_out, "chapter")
        result["heads"] = heads(model, held_ids)
        record.finish(options, result, samples_of(model, tokenizer, PROMPTS, TEMPERATURE, TOP_P))
    checkpoint.path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
