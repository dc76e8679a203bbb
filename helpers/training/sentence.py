"""What the published MiniLM makes of the words of lessons 1 to 7: python -m helpers.training.sentence

Writes sentence.safetensors, meanings.safetensors and topics.safetensors into helpers/data/recorded, in half precision.
Nothing is trained. Needs the model (`make data ARGS=minilm`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from helpers.data import meanings, sentence, topics
from helpers.data.datasets import minilm_files
from helpers.data.sentence import LENGTH, WORDS
from helpers.parts import bert
from helpers.parts.bert import Bert, PieceTokenizer
from helpers.parts.blocks import SelfAttention
from helpers.parts.multi_head import split_heads
from helpers.training.common import REAL


@torch.no_grad()
def vectors(model: Bert, tokenizer: PieceTokenizer, words: Sequence[str], length: float = LENGTH) -> torch.Tensor:
    """The words' vectors, less the mean of the vocabulary, all of one length: (t, e). Each word is one piece."""
    table, ids = model.tokens.weight, [one for word in words for one in tokenizer.ids(word)]
    return length * F.normalize(table[ids] - table.mean(dim=0), dim=-1)


@torch.no_grad()
def tensors(model: Bert, tokenizer: PieceTokenizer) -> dict[str, torch.Tensor]:
    """What `helpers.data.sentence` reads, by name."""
    ids = torch.tensor([[one for word in WORDS for one in tokenizer.ids(word)]])
    without = model.norm(model.tokens(ids) + model.segments(torch.zeros_like(ids)))
    return {
        "words": vectors(model, tokenizer, WORDS),
        "without_positions": _first_heads(model, without),
        "with_positions": _first_heads(model, model.embed(ids)),
        "weights": model.attention_weights(ids)[:, 0],
    }


def _first_heads(model: Bert, x: torch.Tensor) -> torch.Tensor:
    """Queries, keys and values of the first block. x: (1, t, e). Returns (3, h, t, d)."""
    layer = cast(SelfAttention, model.blocks[0].attention)
    return torch.cat([split_heads(to(x), layer.h) for to in (layer.to_queries, layer.to_keys, layer.to_values)])


def main() -> None:
    """Write the files."""
    folder = minilm_files(places=REAL).folder
    model, tokenizer = bert.load(folder).eval(), PieceTokenizer.from_folder(folder)
    written = {
        sentence.FILE: tensors(model, tokenizer),
        meanings.FILE: {"words": vectors(model, tokenizer, meanings.all_words())},
        topics.FILE: {"words": vectors(model, tokenizer, topics.all_words(), topics.LENGTH)},
    }
    for file, found in written.items():
        save_file({name: tensor.half().contiguous() for name, tensor in found.items()}, file)
        print(f"Recorded in {file.name}.")


if __name__ == "__main__":
    main()
