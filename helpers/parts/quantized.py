"""Fewer bits (lesson 21): weights, activations and caches as small integers with scales.

T. Dettmers et al., "LLM.int8(): 8-bit matrix multiplication for transformers at scale" (2022), sections 2 and 3.

o outputs, i inputs of a layer; a group is a stretch of a row that shares one scale.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from .gpt2 import GPT2, Conv1D

SCALE_BITS = 16  # of each scale, where memory is counted


def quantize(w: torch.Tensor, bits: int, group: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Round to the nearest of 2^bits − 1 evenly spaced levels, symmetric about 0.

    w: (..., i), floating point. bits: 2 to 8. group: how many numbers of a row share a scale, a divisor of i; the whole
    row when it is None. Returns integers (..., i), int8, from −m to m with m = 2^(bits−1) − 1, and scales
    (..., i/group): each is the largest magnitude of its group divided by m, and 1 where the group is all zeros.
    """
    levels = 2 ** (bits - 1) - 1
    parts = w.unflatten(-1, (-1, group or w.shape[-1]))  # (..., i/group, group)
    scales = parts.abs().amax(dim=-1, keepdim=True) / levels
    scales = torch.where(scales == 0, 1.0, scales)
    return torch.round(parts / scales).to(torch.int8).flatten(-2), scales.squeeze(-1)


def dequantize(q: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The numbers that integers stand for. q: (..., i). scales: (..., i/group). Returns (..., i)."""
    return (q.unflatten(-1, (scales.shape[-1], -1)) * scales.unsqueeze(-1)).flatten(-2)


def pack_nibbles(integers: torch.Tensor) -> torch.Tensor:
    """Two 4-bit integers in each byte: the first of a pair in the low half, the second in the high half.

    integers: (..., i), int8, from −8 to 7, i even. Negative numbers are in two's complement. Returns (..., i/2), uint8.
    """
    low, high = integers[..., 0::2] & 15, integers[..., 1::2] & 15
    return low.to(torch.uint8) | (high.to(torch.uint8) << 4)


def unpack_nibbles(packed: torch.Tensor) -> torch.Tensor:
    """The way back. packed: (..., i/2), uint8. Returns (..., i), int8."""
    pairs = torch.stack([packed & 15, packed >> 4], dim=-1).to(torch.int8)
    return torch.where(pairs > 7, pairs - 16, pairs).flatten(-2)


def int8_linear(x: torch.Tensor, integers: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """A linear layer whose products are products of integers.

    x: (..., i), float32 or float64, quantised here to 8 bits with a scale for each vector. integers: (o, i), int8, and
    scales: (o, 1), from `quantize`. Returns (..., o).
    """
    inputs, input_scales = quantize(x, 8)  # (..., i), (..., 1)
    sums = inputs.to(x.dtype) @ integers.to(x.dtype).T  # whole numbers: exact in float32 up to 2^24
    return sums * input_scales * scales[:, 0]


def mixed_linear(x: torch.Tensor, w: torch.Tensor, threshold: float = 6.0) -> torch.Tensor:
    """A linear layer in 8 bits, except for the input features that hold an outlier (LLM.int8(), section 3.2).

    x: (..., i). w: (o, i). A feature in which any |x| reaches the threshold is multiplied in full precision; all others
    go through `int8_linear`. Returns (..., o).
    """
    outlier = (x.abs() >= threshold).reshape(-1, x.shape[-1]).any(dim=0)  # (i,)
    exact = x.masked_fill(~outlier, 0.0) @ w.T
    return exact + int8_linear(x.masked_fill(outlier, 0.0), *quantize(w.masked_fill(outlier, 0.0), 8))


##### A whole model


@torch.no_grad()
def with_matrices(model: GPT2, change: Callable[[torch.Tensor], torch.Tensor]) -> GPT2:
    """A copy of a GPT-2 in which change(matrix), of the same shape, replaces each matrix of the blocks, (o, i)."""
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, Conv1D):  # it stores its matrix as (i, o)
            layer.weight.copy_(change(layer.weight.T.contiguous()).T)
    return model


def rounded(w: torch.Tensor, bits: int, group: int | str | None = None) -> torch.Tensor:
    """A matrix after rounding, (o, i). group: as of `quantize`, or "tensor" for a single scale. w: (o, i)."""
    rows = w.reshape(1, -1) if group == "tensor" else w
    size = None if isinstance(group, str) else group
    return dequantize(*quantize(rows, bits, size)).reshape(w.shape)


def matrix_bytes(model: GPT2, bits: int, group: int | str | None = None) -> int:
    """What the matrices of the blocks take in memory: packed integers, and below 16 bits scales."""
    total = 0
    for layer in model.modules():
        if isinstance(layer, Conv1D):
            i, o = layer.weight.shape
            scales = 1 if group == "tensor" else o if group is None else o * i // int(group)
            total += (i * o * bits + (scales * SCALE_BITS if bits < 16 else 0)) // 8
    return total


@torch.no_grad()
def with_outliers(model: GPT2, features: Sequence[int], factor: float) -> GPT2:
    """The same function, with outlier features: a copy whose norms give these features `factor` times as large.

    The matrix that reads them is divided by the factor, so that every product stays as it is. (G. Xiao et al.,
    "SmoothQuant", 2022, section 4, goes the other way.)
    """
    model = copy.deepcopy(model)
    places = list(features)
    block: Any
    for block in model.blocks:
        pairs = (block.norm1, block.attention.to_qkv), (block.norm2, block.feed_forward.widen)
        for norm, layer in pairs:
            norm.weight[places] *= factor
            norm.bias[places] *= factor
            layer.weight[places] /= factor
    return model


def _biased(layer: Conv1D, linear: Callable, x: torch.Tensor) -> torch.Tensor:
    return linear(x, layer.weight.T) + layer.bias


def with_linear(model: GPT2, linear: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> GPT2:
    """A copy of a GPT-2 whose blocks compute linear(x, w) where they multiplied x (..., i) with w (o, i)."""
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, Conv1D):
            layer.forward = partial(_biased, layer, linear)  # type: ignore[method-assign]
    return model


def with_integer_products(model: GPT2) -> GPT2:
    """A copy of a GPT-2 on the CPU whose blocks compute `int8_linear` with int8 tensors: torch._int_mm adds them up.

    The weights have 8 bits and a scale for each row.
    """
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, Conv1D):
            stored = quantize(layer.weight.detach().T, 8)
            layer.forward = partial(_integer_products, layer.bias, *stored)  # type: ignore[method-assign]
    return model


def _integer_products(
    bias: torch.Tensor, integers: torch.Tensor, scales: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    inputs, input_scales = quantize(x, 8)  # (..., i), (..., 1)
    sums = torch._int_mm(inputs.flatten(0, -2), integers.T).unflatten(0, x.shape[:-1])  # (..., o), int32
    return sums * input_scales * scales[:, 0] + bias
