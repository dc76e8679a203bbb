"""What `transformers` computes: the numbers that lessons 12 and 18 hold a student's model against.

    from helpers.data.reference import llama_reference, reference

    known = reference(folder)               # lesson 12: the pocket GPT-2
    known.ids, known.stages
    published = llama_reference()           # lesson 18: a small Llama, and its weights
    published.weights, published.ids, published.logits

`python -m helpers.training.gpt2_reference` and `llama_reference` write the files; these commands need `transformers`,
reading them does not.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import torch

FILE = Path(__file__).with_name("recorded") / "pocket_gpt2_reference.safetensors"
LLAMA = FILE.with_name("llama_reference.safetensors")


class Reference(NamedTuple):
    """One text through the model."""

    ids: torch.Tensor  # (1, t)
    stages: list[torch.Tensor]  # what enters block 0 and leaves each, (1, t, e); after the norm; logits (1, t, n)
    text: str
    told: str  # by what it was computed, and how to compute it anew


def checksum(folder: str | Path) -> str:
    """The SHA-256 of a folder's weights."""
    return hashlib.sha256((Path(folder) / "model.safetensors").read_bytes()).hexdigest()


def reference(folder: str | Path, path: str | Path = FILE) -> Reference:
    """The recorded numbers for the weights of this folder.

    LookupError when there are none, or none for these weights.
    """
    from safetensors import safe_open

    remedy = "`python -m helpers.training.gpt2_reference` records them."
    if not Path(path).is_file():
        raise LookupError(f"No numbers of `transformers` are recorded. {remedy}")
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        ids = file.get_tensor("ids")
        stages = [file.get_tensor(f"stage {k}") for k in range(about["stages"])]
    if about["weights"] != checksum(folder):
        raise LookupError(f"The recorded numbers belong to other weights than those of {Path(folder).name}. {remedy}")
    told = f"Recorded with transformers {about['transformers']}: {about['command']}"
    return Reference(ids, stages, about["text"], told)


class LlamaReference(NamedTuple):
    """A small Llama with random weights, and what it makes of one text."""

    sizes: dict[str, int | float]  # of its config, under our names
    weights: dict[str, torch.Tensor]  # under the Hub's names
    ids: torch.Tensor  # (1, t)
    logits: torch.Tensor  # (1, t, n)
    told: str  # by what it was computed, and how to compute it anew


def llama_reference(path: str | Path = LLAMA) -> LlamaReference:
    """The recorded Llama. LookupError when there is none."""
    from safetensors import safe_open

    if not Path(path).is_file():
        raise LookupError("No Llama of `transformers` is recorded: `python -m helpers.training.llama_reference` does.")
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    ids, logits = tensors.pop("ids"), tensors.pop("logits")
    told = f"Recorded with transformers {about['transformers']}: {about['command']}"
    return LlamaReference(about["sizes"], tensors, ids, logits, told)
