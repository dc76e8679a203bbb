"""What `transformers` computes: the numbers that lessons 12 and 18 hold a student's model against.

    from helpers.data.reference import llama_reference, reference

    known = reference(folder)               # lesson 12: the pocket GPT-2
    known.ids, known.stages
    known = llama_reference(folder)         # lesson 18: the pocket Llama
    known.ids, known.logits

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
LLAMA = FILE.with_name("pocket_llama_reference.safetensors")


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
    about, tensors, told = _recorded(folder, path, "gpt2_reference")
    stages = [tensors[f"stage {k}"] for k in range(about["stages"])]
    return Reference(tensors["ids"], stages, about["text"], told)


class LlamaReference(NamedTuple):
    """One text through a Llama."""

    ids: torch.Tensor  # (1, t)
    logits: torch.Tensor  # (1, t, n)
    text: str
    told: str  # by what it was computed, and how to compute it anew


def llama_reference(folder: str | Path, path: str | Path = LLAMA) -> LlamaReference:
    """The recorded logits for the weights of this folder. LookupError as in `reference`."""
    about, tensors, told = _recorded(folder, path, "llama_reference")
    return LlamaReference(tensors["ids"], tensors["logits"], about["text"], told)


def _recorded(folder, path, program):
    from safetensors import safe_open

    remedy = f"`python -m helpers.training.{program}` records them."
    if not Path(path).is_file():
        raise LookupError(f"No numbers of `transformers` are recorded. {remedy}")
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    if about["weights"] != checksum(folder):
        raise LookupError(f"The recorded numbers belong to other weights than those of {Path(folder).name}. {remedy}")
    return about, tensors, f"Recorded with transformers {about['transformers']}: {about['command']}"
