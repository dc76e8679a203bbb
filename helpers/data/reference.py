"""What `transformers` computes with the pocket GPT-2: the numbers that lesson 12 holds a student's model against.

    from helpers.data.reference import reference

    known = reference(folder)
    known.ids, known.stages

`python -m helpers.training.gpt2_reference` writes the file; that command needs `transformers`, reading it does not.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import torch

FILE = Path(__file__).with_name("recorded") / "pocket_gpt2_reference.safetensors"


class Reference(NamedTuple):
    """One text through the model."""

    ids: torch.Tensor  # (1, t)
    stages: list[
        torch.Tensor
    ]  # what enters the first block and leaves each, (1, t, e); after the norm; logits (1, t, n)
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
    return Reference(
        ids, stages, about["text"], f"Recorded with transformers {about['transformers']}: {about['command']}"
    )
