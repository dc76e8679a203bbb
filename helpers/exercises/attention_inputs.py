"""Drawn queries, keys and values, for the exercises that compute attention in parts."""

from __future__ import annotations

from helpers.exercises.aspects import Inputs
from helpers.exercises.spec import case, normal


def attention_inputs(
    t: int, *more: object, s: int | None = None, b: int = 2, h: int = 3, d: int = 4, std: float = 1.0
) -> Inputs:
    """Queries (b, h, t, d), keys and values (b, h, s, d), and further arguments."""
    s = s or t
    return case(normal(b, h, t, d, std=std), normal(b, h, s, d, std=std), normal(b, h, s, d), *more)


def large_attention_inputs(*leading: int) -> Inputs:
    """Queries, keys and values (..., b, h, t, d) of more heads and positions than elsewhere, and a divisor of t.

    No score is so large that its exponential overflows.
    """

    def inputs(draw):
        b, h, d, length = draw.number(2, 5), draw.number(4, 7), draw.number(6, 10), draw.number(11, 17)
        shape = (*leading, b, h, length * draw.number(6, 8), d)
        return draw.heavy(*shape, most=8.0), draw.heavy(*shape, most=8.0), draw.heavy(*shape), length

    return inputs


def shifted_scores(t: int, *more: object) -> Inputs:
    """As `attention_inputs`, but every second query finds all keys far better than it should, the others far worse.

    The softmax depends on the differences between scores, and these stay small: no key takes all the weight.
    """

    def inputs(draw):
        q, k, v = (draw.normal(2, 3, t, 4) for _ in range(3))
        q[..., ::2, 0], q[..., 1::2, 0], k[..., 0] = 30.0, -30.0, 10.0
        return q, k, v, *more

    return inputs
