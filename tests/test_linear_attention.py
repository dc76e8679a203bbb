"""The finished linear attention with a gate, against a loop over pairs in double precision, and its two forms."""

from __future__ import annotations

import math

import pytest
import torch

from helpers.parts.linear_attention import chunked_attention, recurrent_attention


def drawn(t, b=2, h=3, d=4, d_v=5, seed=0):
    """Queries, keys, values and logarithms of gates, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((b, h, t, d), (b, h, t, d), (b, h, t, d_v), (b, h, t))
    q, k, v, gates = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return q, k, v, torch.nn.functional.logsigmoid(gates)


def by_hand(q, k, v, log_g, state=None):
    """The sum over pairs, each with the product of the gates between; the state is one more thing written before."""
    b, h, t, d = q.shape
    y = torch.zeros(b, h, t, v.shape[-1], dtype=q.dtype)
    end = torch.zeros(b, h, d, v.shape[-1], dtype=q.dtype)
    for n in range(b):
        for r in range(h):
            gates = log_g[n, r].exp().tolist()
            for i in range(t):
                for j in range(i + 1):
                    y[n, r, i] += math.prod(gates[j + 1 : i + 1]) * (q[n, r, i] @ k[n, r, j]) * v[n, r, j]
                if state is not None:
                    y[n, r, i] += math.prod(gates[: i + 1]) * (q[n, r, i] @ state[n, r])
            for j in range(t):
                end[n, r] += math.prod(gates[j + 1 :]) * torch.outer(k[n, r, j], v[n, r, j])
            if state is not None:
                end[n, r] += math.prod(gates) * state[n, r]
    return y, end


def before():
    return torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


@pytest.mark.parametrize("t", [1, 2, 7])
@pytest.mark.parametrize("state", [None, before()], ids=["from zeros", "from a state"])
def test_the_loop_is_the_sum_over_pairs(t, state):
    inputs = drawn(t)
    for mine, other in zip(recurrent_attention(*inputs, state), by_hand(*inputs, state), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("state", [None, before()], ids=["from zeros", "from a state"])
def test_chunks_of_every_size_are_the_loop(size, state):
    inputs = drawn(7, seed=1)
    for mine, other in zip(chunked_attention(*inputs, size, state), recurrent_attention(*inputs, state), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-12)


def test_a_text_may_come_in_pieces():
    q, k, v, log_g = drawn(9, seed=2)
    whole, end = chunked_attention(q, k, v, log_g, 4)
    first, state = chunked_attention(*(x[:, :, :5] for x in (q, k, v, log_g)), 2)
    second, state = recurrent_attention(*(x[:, :, 5:] for x in (q, k, v, log_g)), state)
    torch.testing.assert_close(torch.cat([first, second], dim=2), whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state, end, rtol=1e-12, atol=1e-12)


def test_without_a_gate_it_is_attention_without_a_softmax():
    q, k, v, log_g = drawn(6, seed=3)
    found, _ = chunked_attention(q, k, v, torch.zeros_like(log_g), 4)
    torch.testing.assert_close(found, (q @ k.mT).tril() @ v, rtol=1e-12, atol=1e-12)


def test_a_gate_of_0_begins_anew():
    q, k, v, log_g = drawn(6, seed=4)
    log_g[:, :, 3] = -1000.0
    found, _ = chunked_attention(q, k, v, log_g, 4)
    torch.testing.assert_close(found[:, :, 3:], chunked_attention(*(x[:, :, 3:] for x in (q, k, v, log_g)), 4)[0])


def test_gates_near_0_leave_everything_finite_in_32_bits():
    inputs = [x.float().requires_grad_() for x in drawn(8, seed=5)]
    with torch.no_grad():
        inputs[3][..., ::2] -= 200.0
    y, state = chunked_attention(*inputs, 4)
    (y.sum() + state.sum()).backward()
    assert all(x.isfinite().all() for x in (y, state, *(each.grad for each in inputs)))


def test_gradients_of_both_forms_are_those_of_differences():
    inputs = [x.requires_grad_() for x in drawn(5, b=1, h=2, d=2, d_v=3, seed=6)]
    assert torch.autograd.gradcheck(lambda *x: chunked_attention(*x, 2), inputs)
    assert torch.autograd.gradcheck(recurrent_attention, inputs)


def test_a_chunk_of_no_positions_is_refused():
    with pytest.raises(ValueError, match="at least one position"):
        chunked_attention(*drawn(3), 0)
