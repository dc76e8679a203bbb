"""One English sentence as a published model sees it: lessons 1 to 6 draw its attention map again and again.

    from helpers.data.sentence import WORDS, block_weights, queries_keys_values, word_vectors

The model is all-MiniLM-L6-v2 (Wang et al., "MiniLM", 2020; sentence-transformers, Apache 2.0). Recorded are the vectors
of twelve words and what the model makes of them; its weights are not here. `python -m helpers.training.sentence` wrote
the file. The words are read without the model's marks for the beginning and the end, so that nothing else takes weight.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load_file

WORDS = tuple("the boat could not reach the bank because it was too muddy".split())
FILE = Path(__file__).with_name("recorded") / "sentence.safetensors"
LENGTH = 1.5  # of a word's vector: so long that the weights of softmax(x xᵀ) are neither even nor all on the diagonal


@cache
def _recorded() -> dict[str, torch.Tensor]:
    return {name: tensor.float() for name, tensor in load_file(FILE).items()}


def word_vectors() -> torch.Tensor:
    """The words' vectors, less the mean of the whole vocabulary, all of the same length. Returns (t, e), e = 384."""
    return _recorded()["words"].clone()


def queries_keys_values(head: int, positions: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What a head of the model's first block makes of the words. Returns q, k and v, each (t, d), d = 32.

    head: 0 to 11. positions: are the model's vectors of positions added to those of the words first, as it does?
    ValueError for a head that there is not.
    """
    found = _recorded()["with_positions" if positions else "without_positions"]  # (3, h, t, d)
    if not 0 <= head < found.shape[1]:
        raise ValueError(f"The first block has the heads 0 to {found.shape[1] - 1}, and no head {head}.")
    q, k, v = found[:, head].clone()
    return q, k, v


def block_weights(block: int) -> torch.Tensor:
    """The attention weights of a block of the model, 1 to 6, with positions. Returns (h, t, t), h = 12.

    ValueError for a block that there is not.
    """
    weights = _recorded()["weights"]  # (depth, h, t, t)
    if not 1 <= block <= len(weights):
        raise ValueError(f"The model has the blocks 1 to {len(weights)}, and no block {block}.")
    return weights[block - 1].clone()
