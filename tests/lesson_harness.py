"""What the tests of single lessons share: what a lesson printed when it was executed, and how close is equal."""

import re

import nbformat
import torch

from helpers.authoring.lesson_source import Source

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


def near_with_slopes(ours: torch.Tensor, theirs: torch.Tensor, inputs: list, factor: float = 1) -> None:
    """`near`, and the same gradients of the inputs for one random gradient of the output, within ten times as much."""
    near(ours, theirs, factor)
    cotangent = torch.randn_like(ours)
    slopes = (torch.autograd.grad((y * cotangent).sum(), inputs, retain_graph=True) for y in (ours, theirs))
    for mine, other in zip(*slopes, strict=True):
        near(mine, other, 10 * factor)


def numbers(text: str) -> list[float]:
    """All numbers of a text, thousands without their commas."""
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?", text)]


def after(text: str, label: str) -> float:
    """The number that stands behind a label."""
    return float(re.search(re.escape(label) + r"\D*?(-?\d+(?:\.\d+)?(?:e-?\d+)?)", text)[1])
