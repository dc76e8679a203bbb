"""Records what `transformers` computes with the pocket Llama, for lesson 18: python -m helpers.training.llama_reference

Needs `transformers`, which the course itself does not.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from helpers.course import written_whole
from helpers.data.model_files import POCKET_LLAMA
from helpers.data.reference import LLAMA, checksum

TEXT = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a"
    " wife."
)


def of_transformers(folder: Path) -> torch.nn.Module:
    """LlamaForCausalLM with the weights of a folder, in float32 from end to end."""
    from transformers import LlamaForCausalLM

    return LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()


def main() -> None:
    """The whole computation, and its file."""
    import transformers
    from safetensors.torch import save_file

    from helpers.parts.bpe import Tokenizer

    torch.set_num_threads(1)
    ids = torch.tensor([Tokenizer.from_folder(POCKET_LLAMA).encode(TEXT)])
    with torch.no_grad():
        logits = of_transformers(POCKET_LLAMA)(ids).logits
    about = {
        "command": "python -m helpers.training.llama_reference",
        "transformers": transformers.__version__,
        "weights": checksum(POCKET_LLAMA),
        "text": TEXT,
    }
    with written_whole(LLAMA) as temporary:
        save_file({"ids": ids, "logits": logits.contiguous()}, temporary, {"about": json.dumps(about)})
    print(f"Recorded the logits of {ids.shape[1]} tokens in {LLAMA.name}: {LLAMA.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main()
