"""What PyTorch does not check, and what would end a kernel instead of raising."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def lengths_agree() -> Iterator[None]:
    """Let `scaled_dot_product_attention` raise where keys and values are of different lengths.

    On the CPU, without a mask, PyTorch 2.13 reads on past the end of the shorter one, and on the way back writes there:
    sooner or later the process dies, and a student's unsaved work with it. Within the block its own plain
    implementation takes the place of the fused one.
    """
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings(action="ignore"):  # torch warns that an operator is overridden
            library.impl("scaled_dot_product_attention", _guarded, "CompositeImplicitAutograd", allow_override=True)
        yield
    finally:
        library._destroy()


def _guarded(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if min(key.dim(), value.dim()) > 1 and key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"there are {key.shape[-2]} keys and {value.shape[-2]} values, and each key needs a value: key has the"
            f" shape {tuple(key.shape)}, value {tuple(value.shape)}"
        )
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
    plain = torch.ops.aten._scaled_dot_product_attention_math
    return plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]
