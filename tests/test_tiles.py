"""The tiles against PyTorch's own attention, its logsumexp, and autograd in 64 bits."""

import pytest
import torch
import torch.nn.functional as F

from helpers.parts import tiles

CASES = [(6, 6, 2), (6, 6, 4), (6, 6, 1), (6, 6, 50), (3, 8, 3), (1, 5, 2), (1, 1, 1)]


def drawn(*shapes, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    return [scale * torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in shapes]


def plain(q, k, v, causal):
    """Softmax attention by PyTorch's own functions, and the log-sum-exp of the scores."""
    t, s = q.shape[-2], k.shape[-2]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(t, s, dtype=torch.bool).tril(s - t), -torch.inf)
    seen = torch.ones(t, s, dtype=torch.bool).tril(s - t) if causal else None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen), scores.logsumexp(-1)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_merged_halves_are_the_whole(scale):
    scores, values = drawn((4, 7), (4, 7, 3), scale=scale)

    def partial(scores, values):
        m = scores.amax(-1)
        powers = (scores - m[:, None]).exp()
        return m, powers.sum(-1), (powers[:, :, None] * values).sum(1)

    m, total, out = tiles.merge(partial(scores[:, :3], values[:, :3]), partial(scores[:, 3:], values[:, 3:]))
    torch.testing.assert_close(m + total.log(), scores.logsumexp(-1))
    torch.testing.assert_close(out / total[:, None], (scores.softmax(-1)[:, :, None] * values).sum(1))


def test_nothing_seen_changes_nothing():
    some = tuple(drawn((5,), (5,), (5, 3)))
    none = torch.full((5,), -torch.inf, dtype=torch.float64), torch.zeros(5).double(), torch.zeros(5, 3).double()
    for merged, goal in (
        (tiles.merge(some, none), some), (tiles.merge(none, some), some), (tiles.merge(none, none), none)
    ):  # fmt: skip
        for mine, other in zip(merged, goal, strict=True):
            torch.testing.assert_close(mine, other)


@pytest.mark.parametrize(("t", "s", "tile"), CASES)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_tiles_are_softmax_attention_forward_and_backward(t, s, tile, causal, scale):
    q, k, v = (x.requires_grad_() for x in drawn((2, 3, t, 4), (2, 3, s, 4), (2, 3, s, 4), scale=scale))
    (slope,) = drawn((2, 3, t, 4))
    goal, sums = plain(q, k, v, causal)
    out, lse = tiles.tiled_attention(q.detach(), k.detach(), v.detach(), tile, causal)
    torch.testing.assert_close(out, goal)
    torch.testing.assert_close(lse, sums)
    found = tiles.tiled_backward(q.detach(), k.detach(), v.detach(), out, lse, slope, tile, causal)
    for mine, other in zip(found, torch.autograd.grad(goal, (q, k, v), slope), strict=True):
        torch.testing.assert_close(mine, other)


def test_the_function_passes_gradcheck():
    q, k, v = (x.requires_grad_() for x in drawn((2, 5, 3), (2, 5, 3), (2, 5, 3)))
    assert torch.autograd.gradcheck(lambda *given: tiles.TiledAttention.apply(*given, 2), (q, k, v))


@pytest.mark.parametrize("refused", [{"tile": 0}, {"tile": 2}])
def test_a_tile_of_nothing_and_a_query_without_keys_are_refused(refused):
    with pytest.raises(ValueError, match="at least"):
        tiles.tiled_attention(*drawn((3, 2), (2, 2), (2, 2)), **refused)
