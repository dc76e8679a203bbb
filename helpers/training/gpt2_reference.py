"""Records what `transformers` computes with the pocket GPT-2, for lesson 12: python -m helpers.training.gpt2_reference

Needs `transformers`, which the course itself does not.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from helpers.course import written_whole
from helpers.data.datasets import gpt2_files
from helpers.data.reference import FILE, checksum

TEXT = "def read(self, name=None):\n    if name is None:\n        raise ValueError(name)\n"


def stages_of_transformers(folder: Path, ids: torch.Tensor) -> list[torch.Tensor]:
    """What GPT2LMHeadModel has in float32 from end to end.

    What enters the first block and leaves each block, (b, t, e); after the last norm; logits (b, t, n).
    """
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    found: list[torch.Tensor] = []
    inner = model.transformer
    inner.h[0].register_forward_pre_hook(lambda module, given: found.append(given[0]))
    for module in [*inner.h, inner.ln_f]:
        module.register_forward_hook(lambda module, given, out: found.append(out[0] if isinstance(out, tuple) else out))
    with torch.no_grad():
        found.append(model(ids, use_cache=False).logits)
    return [stage.detach().clone().contiguous() for stage in found]


def main() -> None:
    """The whole computation, and its file."""
    import transformers
    from safetensors.torch import save_file

    from helpers.parts.bpe import Tokenizer

    torch.set_num_threads(1)
    folder = gpt2_files("gpt2", places="embedded").folder
    ids = torch.tensor([Tokenizer.from_folder(folder).encode(TEXT)])
    stages = stages_of_transformers(folder, ids)
    about = {
        "command": "python -m helpers.training.gpt2_reference",
        "transformers": transformers.__version__,
        "weights": checksum(folder),
        "text": TEXT,
        "stages": len(stages),
    }
    tensors = {"ids": ids} | {f"stage {k}": stage for k, stage in enumerate(stages)}
    with written_whole(FILE) as temporary:
        save_file(tensors, temporary, metadata={"about": json.dumps(about)})
    print(f"Recorded {len(stages)} stages of {ids.shape[1]} tokens in {FILE.name}: {FILE.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main()
