"""Linear attention with a gate: a state of fixed size in place of keys and values (lesson 16).

A. Katharopoulos et al., "Transformers are RNNs" (2020), for the state; Y. Sun et al., "Retentive network" (2023), for
a decay and the form in chunks; S. Yang et al., "Gated linear attention transformers with hardware-efficient training"
(2023), for a gate that depends on the input; with one gate for each head, as here, it is the recurrence of T. Dao and
A. Gu, "Transformers are SSMs" (2024). b batch, h heads, t positions, d width of a query and of a key, d_v of a value.
"""

from __future__ import annotations

import math

import torch


def recurrent_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, log_g: torch.Tensor, state: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """A position at a time: S_i = g_i S_(i-1) + k_i v_iᵀ, y_i = q_i S_i.

    q, k: (b, h, t, d). v: (b, h, t, d_v). log_g: (b, h, t), the logarithms of the gates, at most 0. state:
    (b, h, d, d_v), what came before, or None for zeros. Returns y (b, h, t, d_v) and the last state (b, h, d, d_v).
    """
    if state is None:
        state = empty_state(k, v)
    outputs = []
    for i in range(q.shape[2]):
        written = k[:, :, i, :, None] * v[:, :, i, None, :]
        state = log_g[:, :, i, None, None].exp() * state + written
        outputs.append(q[:, :, i : i + 1] @ state)
    return torch.cat(outputs, dim=2), state


def chunked_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_g: torch.Tensor,
    size: int,
    state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same in chunks of `size` positions: masked products within a chunk, the state between chunks.

    q, k: (b, h, t, d). v: (b, h, t, d_v). log_g: (b, h, t), at most 0. state: (b, h, d, d_v), or None for zeros.
    Returns y (b, h, t, d_v) and the last state (b, h, d, d_v). Every exponent is at most 0, so nothing overflows,
    whatever the gates are. ValueError unless size is at least 1.
    """
    if size < 1:
        raise ValueError(f"A chunk has at least one position, and asked for were {size}.")
    if state is None:
        state = empty_state(k, v)
    outputs = []
    for start in range(0, q.shape[2], size):
        queries, keys, values, logs = (x[:, :, start : start + size] for x in (q, k, v, log_g))
        total = logs.cumsum(dim=-1)  # (b, h, c): log of the product of the chunk's gates so far
        c = total.shape[-1]
        past = torch.ones(c, c, dtype=torch.bool, device=q.device).tril()
        between = (total[..., :, None] - total[..., None, :]).masked_fill(~past, -math.inf)
        own = (queries @ keys.mT * between.exp()) @ values
        outputs.append(own + total[..., None].exp() * (queries @ state))
        to_the_end = (total[..., -1:] - total).exp()
        state = total[..., -1, None, None].exp() * state + (to_the_end[..., None] * keys).mT @ values
    return torch.cat(outputs, dim=2), state


def empty_state(k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The state before the first position: zeros (b, h, d, d_v). k: (b, h, t, d). v: (b, h, t, d_v)."""
    return k.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1])
