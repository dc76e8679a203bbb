"""The pocket GPT-2 for the page: its weights in one file, its tokens in another, and which of its heads do what.

    weights.bin     float32 first (biases, norms, and the scales), then int8 (the matrices), little-endian
    model.json      sizes, tokens in the order of their ids, merges, where each tensor lies, scores of the heads

A row of a matrix has one scale, its largest entry by size over 127. An entry is its integer times its row's scale.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import torch

from helpers.course import write_whole, written_whole
from helpers.data.model_files import POCKET
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer

WEIGHTS, MODEL = "weights.bin", "model.json"
STRETCH, ROWS, SEED = 24, 8, 3  # random tokens, each row said twice, as in lesson 12
KINDS = ("previous token", "induction")


def export(folder: Path, model: gpt2.GPT2, tokenizer: Tokenizer, precision: str = "int8") -> None:
    """Write both files into a folder.

    precision: "int8", or "float32" for the weights as they are. ValueError for another.
    """
    if precision not in ("int8", "float32"):
        raise ValueError(f"The page reads weights as int8 or float32, not as {precision!r}.")
    folder.mkdir(parents=True, exist_ok=True)
    table: dict[str, dict] = {}
    floats: list[np.ndarray] = []
    integers: list[np.ndarray] = []
    for name, tensor in model.state_dict().items():
        entry = {"shape": list(tensor.shape), "at": sum(map(len, floats))}
        if tensor.dim() == 1 or precision == "float32":
            floats.append(tensor.float().numpy().ravel())
        else:
            rounded, scales = as_int8(tensor)
            entry["int8"] = sum(map(len, integers))
            floats.append(scales.numpy())
            integers.append(rounded.numpy().ravel())
        table[name] = entry
    data = np.concatenate(floats).astype("<f4").tobytes() + b"".join(part.tobytes() for part in integers)
    with written_whole(folder / WEIGHTS) as unfinished:
        unfinished.write_bytes(data)
    config = model.config
    about = {
        "precision": precision,
        "bytes": len(data),
        "floats": sum(map(len, floats)),
        "sizes": {"n": config.n, "t_max": config.t_max, "e": config.e, "h": config.h, "depth": config.depth},
        "epsilon": config.epsilon,
        "tokens": sorted(tokenizer.vocabulary, key=lambda token: tokenizer.vocabulary[token]),
        "merges": [" ".join(pair) for pair in tokenizer.merges],
        "tensors": table,
        "heads": scores(model),
    }
    write_whole(folder / MODEL, json.dumps(about, ensure_ascii=False, separators=(",", ":")) + "\n")


def as_int8(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round a matrix (rows, columns): the integers, int8 of the same shape, and the scale of each row, (rows,)."""
    scales = matrix.abs().amax(dim=1).clamp(min=1e-12) / 127
    return (matrix / scales[:, None]).round().to(torch.int8), scales


def as_exported(model: gpt2.GPT2) -> gpt2.GPT2:
    """A copy of the model with the weights that the page has: rounded to int8, and multiplied out again."""
    copy = gpt2.GPT2(model.config).eval()
    weights = dict(model.state_dict())
    for name, tensor in weights.items():
        if tensor.dim() == 2:
            integers, scales = as_int8(tensor)
            weights[name] = integers * scales[:, None]
    copy.load_state_dict(weights)
    return copy


@torch.no_grad()
def scores(model: gpt2.GPT2) -> dict[str, list[list[float]]]:
    """How much each head looks at the token before, and at what followed the same token before: (depth, h) each.

    Measured on rows of random tokens that are said twice, where there is nothing else to go by.
    """
    chance = torch.Generator().manual_seed(SEED)
    once = torch.randint(model.config.n - 1, (ROWS, STRETCH), generator=chance)
    weights = model.attention_weights(torch.cat([once, once], dim=1)).mean(dim=1)  # (depth, h, t, t)
    both_scores = (gpt2.previous_score(weights), gpt2.induction_score(weights, STRETCH))
    return {
        kind: [[round(value, 3) for value in row] for row in score.tolist()]
        for kind, score in zip(KINDS, both_scores, strict=True)
    }


@functools.cache
def pocket(folder: Path = POCKET) -> tuple[gpt2.GPT2, Tokenizer]:
    """A model and a tokenizer that come with the course; by default the one that writes Python."""
    return gpt2.load(folder).eval(), Tokenizer.from_folder(folder)
