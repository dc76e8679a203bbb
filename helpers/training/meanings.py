"""The vectors that the published MiniLM has for the words of helpers.data.meanings: python -m helpers.training.meanings

Writes helpers/data/recorded/meanings.safetensors, in half precision. Nothing is trained. Needs the model (`make data
ARGS=minilm`).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from helpers.data.datasets import minilm_files
from helpers.data.meanings import FILE, all_words
from helpers.data.sentence import LENGTH
from helpers.parts import bert
from helpers.parts.bert import Bert, PieceTokenizer
from helpers.training.common import REAL


@torch.no_grad()
def vectors(model: Bert, tokenizer: PieceTokenizer) -> torch.Tensor:
    """(n, e), a row for each of the words, all of which are pieces of their own."""
    table = model.tokens.weight
    ids = torch.tensor([one for word in all_words() for one in tokenizer.ids(word)])
    return LENGTH * F.normalize(table[ids] - table.mean(dim=0), dim=-1)


def main() -> None:
    """Write the file."""
    folder = minilm_files(places=REAL).folder
    found = vectors(bert.load(folder).eval(), PieceTokenizer.from_folder(folder))
    save_file({"words": found.half().contiguous()}, FILE)
    print(f"Recorded in {FILE.name}.")


if __name__ == "__main__":
    main()
