"""Records what `transformers` computes with a small Llama, for lesson 18: python -m helpers.training.llama_reference

Random weights in the Hub's names, a few tokens, and the logits. Needs `transformers`, which the course itself does not.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from helpers.course import written_whole
from helpers.data.reference import LLAMA

SIZES: dict[str, Any] = {"n": 32, "e": 24, "h": 4, "groups": 2, "depth": 2, "hidden": 64, "epsilon": 1e-5}


def of_transformers() -> torch.nn.Module:
    """LlamaForCausalLM of these sizes, its weights drawn so wide that every part of it matters."""
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = LlamaConfig(
        vocab_size=SIZES["n"],
        hidden_size=SIZES["e"],
        intermediate_size=SIZES["hidden"],
        num_hidden_layers=SIZES["depth"],
        num_attention_heads=SIZES["h"],
        num_key_value_heads=SIZES["groups"],
        rms_norm_eps=SIZES["epsilon"],
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(settings).float().eval()
    generator = torch.Generator().manual_seed(18)
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * drawn if parameter.dim() == 1 else drawn / parameter.shape[-1] ** 0.5)
    return model


def main() -> None:
    """The whole computation, and its file."""
    import transformers
    from safetensors.torch import save_file

    torch.set_num_threads(1)
    model = of_transformers()
    ids = torch.randint(SIZES["n"], (1, 24), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = model(ids).logits
    about = {
        "command": "python -m helpers.training.llama_reference",
        "transformers": transformers.__version__,
        "sizes": SIZES,
    }
    tensors = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    with written_whole(LLAMA) as temporary:
        save_file({"ids": ids, "logits": logits.contiguous(), **tensors}, temporary, {"about": json.dumps(about)})
    print(f"Recorded the logits of {ids.shape[1]} tokens in {LLAMA.name}: {LLAMA.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main()
