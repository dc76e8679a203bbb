"""Small matrices as pictures: the target beside yours, on one colour scale, as inline SVG."""

from __future__ import annotations

import torch

from helpers.theme import HIGH, LOW, MIDDLE

LARGEST = 12  # rows and columns shown
CELL = 16


def matrix_svg(target: torch.Tensor, yours: torch.Tensor) -> str:
    """Two figures, target and yours, of (rows, columns) matrices of equal shape."""
    finite = torch.cat([target.flatten(), yours.flatten()])
    finite = finite[torch.isfinite(finite)]
    scale = max(finite.abs().max().item() if finite.numel() else 0.0, 1e-12)
    note = f"scale −{scale:.3g} to {scale:.3g}" if (finite < 0).any() else f"scale 0 to {scale:.3g}"
    cut = " (the first rows and columns)" if max(target.shape) > LARGEST else ""
    return _figure("target", target, scale, note) + _figure("yours", yours, scale, note + cut)


def _figure(title: str, matrix: torch.Tensor, scale: float, note: str) -> str:
    rows, columns = min(matrix.shape[0], LARGEST), min(matrix.shape[1], LARGEST)
    cells = "".join(_cell(matrix[r, c].item(), r, c, scale) for r in range(rows) for c in range(columns))
    width, height = columns * CELL, rows * CELL
    label = f"{title}, a matrix of {matrix.shape[0]} rows and {matrix.shape[1]} columns"
    return (
        f"<figure><figcaption>{title} · {note}</figcaption>"
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
        f"{cells}</svg></figure>"
    )


def _cell(value: float, row: int, column: int, scale: float) -> str:
    x, y = column * CELL, row * CELL
    box = f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" '
    if value != value or abs(value) == float("inf"):
        sign = "NaN" if value != value else f"{value}"
        return (
            f'{box}fill="#ddd"><title>{sign}</title></rect>'
            f'<path d="M{x + 4} {y + 4}l7 7m0-7l-7 7" stroke="#444" stroke-width="1.5"/>'
        )
    share = max(-1.0, min(1.0, value / scale))
    end = HIGH if share >= 0 else LOW
    red, green, blue = (round(m + abs(share) * (e - m)) for m, e in zip(MIDDLE, end, strict=True))
    # the sign is told by a dot too, so that the picture survives a grey printer
    dot = f'<circle cx="{x + 7.5}" cy="{y + 7.5}" r="1.6" fill="#111"/>' if share < -0.02 else ""
    return f'{box}fill="rgb({red},{green},{blue})"><title>{value:.4g}</title></rect>{dot}'
