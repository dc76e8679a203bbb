"""A trained GPT-2 by its name: the model of helpers.parts with the files that helpers.data finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from helpers.data.datasets import gpt2_files
from helpers.parts.bpe import Tokenizer
from helpers.parts.gpt2 import GPT2, load


def from_pretrained(
    name: str = "gpt2",
    places: Sequence[str] | None = None,
    say: Callable[[str], object] = print,
    device: torch.device | str | None = None,
) -> tuple[GPT2, Tokenizer]:
    """A published GPT-2 and its tokenizer.

    name: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl" or "distilgpt2", with or without the owner before it
    ("openai-community/gpt2"); or a folder. Looks in the data folder, then on the Hub, then takes the pocket model, and
    says in one line which it took. The model is in evaluation mode. ValueError where files are damaged, and for an
    unknown name.
    """
    folder = gpt2_files(name, places=places, say=say).folder
    model, tokenizer = load(folder, device), Tokenizer.from_folder(folder)
    last = max(tokenizer.vocabulary.values())
    if last >= model.config.n:
        raise ValueError(
            f"The tokenizer of {folder} has {len(tokenizer)} tokens, up to the id {last}, and the model"
            f" {model.config.n}: they do not belong together."
        )
    return model, tokenizer
