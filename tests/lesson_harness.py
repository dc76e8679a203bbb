"""What the tests of single lessons share: what a lesson printed when it was executed, and how close is equal."""

import re

import nbformat
import torch
from torch import nn

from helpers.authoring.build.lesson_source import Source
from helpers.benchmarks.parts_speed.lesson_models import copy_attention, matching

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
KINDS = [torch.float32, torch.float64]


def printed(source: Source, line: str = "") -> str:
    """What the one cell printed whose source contains `line`; what all cells printed where no line is given."""
    cells = [cell for cell in nbformat.read(source.notebook, as_version=4).cells if cell.cell_type == "code"]
    if line:
        cells = [cell for cell in cells if line in cell.source]
        assert len(cells) == 1, f"{line!r} stands in {len(cells)} cells of {source.name}"
    return "".join(output.get("text", "") for cell in cells for output in cell.outputs)


def near(ours: torch.Tensor, theirs: torch.Tensor, factor: float = 1) -> None:
    """Asserts the same shape, type and numbers. factor: of the tolerance that is usual for the type."""
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    tolerance = factor * TOLERANCE[ours.dtype]
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def near_with_slopes(ours: torch.Tensor, theirs: torch.Tensor, inputs: list, factor: float = 1, others=None) -> None:
    """`near`, and the same gradients of the inputs for one random gradient of the output, within ten times as much.

    others: the inputs of theirs, where these are tensors of their own.
    """
    near(ours, theirs, factor)
    cotangent = torch.randn_like(ours)
    sides = ((ours, inputs), (theirs, others or inputs))
    slopes = (torch.autograd.grad((y * cotangent).sum(), given, retain_graph=True) for y, given in sides)
    for mine, other in zip(*slopes, strict=True):
        near(mine, other, 10 * factor)


def encoder_layer(block: nn.Module, e: int, h: int, kind: torch.dtype, pre_norm: bool = True) -> nn.Module:
    """PyTorch's layer with the weights of a block, in training mode: its fast path in evaluation has no gradients."""
    layer = nn.TransformerEncoderLayer(e, h, 4 * e, 0.0, batch_first=True, norm_first=pre_norm, dtype=kind)
    copy_attention(layer.self_attn, block.attention)
    for theirs, ours in matching(layer, block):
        theirs.load_state_dict(ours.state_dict())
    return layer.train()


def encoder(stack: nn.Module, e: int, h: int, kind: torch.dtype, pre_norm: bool = True) -> nn.Module:
    """PyTorch's encoder with the weights of a stack of blocks."""
    layers = [encoder_layer(block, e, h, kind, pre_norm) for block in stack.blocks]
    norm = nn.LayerNorm(e, dtype=kind) if pre_norm else None
    if pre_norm:
        norm.load_state_dict(stack.norm.state_dict())
    made = nn.TransformerEncoder(layers[0], len(layers), norm=norm, enable_nested_tensor=False)
    made.layers = nn.ModuleList(layers)
    return made


def numbers(text: str) -> list[float]:
    """All numbers of a text, thousands without their commas."""
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?", text)]


def after(text: str, label: str) -> float:
    """The number that stands behind a label."""
    return float(re.search(re.escape(label) + r"\D*?(-?\d+(?:\.\d+)?(?:e-?\d+)?)", text)[1])
