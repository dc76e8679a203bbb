"""Four ways to tell attention about order (lesson 6).

b batch, t positions, e width of the model, h heads, d width of one head.
"""

from __future__ import annotations

import torch
from torch import nn


def sinusoidal_encoding(t: int, e: int, device: torch.device | str | None = None) -> torch.Tensor:
    """One fixed vector for each position: e/2 clock hands, each slower than the one before.

    "Attention is all you need" (Vaswani et al., 2017), section 3.5. Returns (t, e): entry [p, 2j] is sin(p /
    10000^(2j/e)) and entry [p, 2j + 1] is the cosine of the same angle. ValueError when e is odd: hands need two
    numbers.
    """
    _check_even(e)
    angles = _angles(torch.arange(t, device=device), e, torch.get_default_dtype())  # (t, e/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # (t, e/2, 2) -> (t, e)


class PositionEmbedding(nn.Module):
    """One learned vector for each position up to t_max, added to the vector there.

    Gehring et al., "Convolutional sequence to sequence learning" (2017), section 3.1; GPT-2 and BERT do the same.
    """

    def __init__(self, t_max: int, e: int):
        super().__init__()
        self.table = nn.Embedding(t_max, e)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e): x plus row p of the table at every position p.

        ValueError when t is larger than t_max: there is no vector for the positions beyond.
        """
        if x.dim() != 3:
            raise ValueError(f"Positions are added to vectors (b, t, e), and these have the shape {tuple(x.shape)}.")
        t, t_max = x.shape[1], self.table.num_embeddings
        if t > t_max:
            raise ValueError(
                f"A sequence of t = {t} positions is longer than the t_max = {t_max} that there are vectors for."
            )
        return x + self.table(torch.arange(t, device=x.device))  # (t, e), the same for the whole batch


def relative_bias(table: torch.Tensor, t: int) -> torch.Tensor:
    """One learned number for each distance, to be added to the scores before the softmax.

    Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer" (2020), section
    2.1, without their sharing of numbers among far distances. table: (2·t_max − 1,), the number for distance 0 in its
    middle. Returns (t, t), t ≤ t_max: entry [i, j] is the number for i − j. ValueError when t is larger than t_max,
    or the table has no middle.
    """
    if len(table) % 2 == 0:
        raise ValueError(f"A table of {len(table)} numbers has no middle: it holds 2·t_max − 1 of them, an odd number.")
    t_max = (len(table) + 1) // 2
    if t > t_max:
        raise ValueError(f"A sequence of t = {t} positions has distances beyond the t_max = {t_max} of the table.")
    positions = torch.arange(t, device=table.device)
    distances = positions.unsqueeze(1) - positions  # (t, t), from −(t − 1) to t − 1
    return table[distances + t_max - 1]


def rotate(
    x: torch.Tensor, positions: torch.Tensor, base: float = 10000, frequencies: torch.Tensor | None = None
) -> torch.Tensor:
    """Turn every vector by its position, so that products of turned vectors depend on i − j alone.

    Su et al., "RoFormer: enhanced transformer with rotary position embedding" (2021), sections 3.2.2 and 3.4.2. x:
    (..., t, d), queries or keys, such as (b, h, t, d). positions: (t,), integers. Returns (..., t, d), in x's own
    precision: components 2j and 2j + 1 are turned together, by the angle p / base^(2j/d). frequencies: (d/2,), how far
    each pair turns from one position to the next, in place of base^(−2j/d). Angles are computed in 32 bits or more, for
    half precision cannot tell far positions apart. ValueError when d is odd, or there is not a position for each
    vector.
    """
    d = x.shape[-1]
    _check_even(d)
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(
            f"There are t = {x.shape[-2]} vectors, each of which needs a position, (t,), and the positions have the"
            f" shape {tuple(positions.shape)}."
        )
    dtype = torch.promote_types(x.dtype, torch.float32)
    if frequencies is None:
        angles = _angles(positions, d, dtype, base)  # (t, d/2)
    else:
        angles = positions.unsqueeze(1) * frequencies.to(x.device, dtype)
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., 0::2], x[..., 1::2]  # (..., t, d/2) each
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1)
    return turned.flatten(-2).to(x.dtype)  # (..., t, d/2, 2) -> (..., t, d)


def _angles(positions, width, dtype, base=10000):
    """p / base^(2j/width) for every position p and every pair j. positions: (t,). Returns (t, width/2)."""
    pairs = torch.arange(0, width, 2, device=positions.device, dtype=dtype)  # the 2j
    return positions.unsqueeze(1) / base ** (pairs / width)


def _check_even(width):
    if width % 2:
        raise ValueError(f"A width of {width} cannot be cut into pairs: it has to be even.")
