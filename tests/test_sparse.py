"""The finished patterns, the band and the tiles, against PyTorch's own attention, its logsumexp, and double loops."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from helpers.parts import sparse

NEAR = {"rtol": 1e-5, "atol": 2e-6}


def by_hand(t, rule):
    """A mask from a double loop over the definition."""
    return torch.tensor([[bool(j <= i and rule(i, j)) for j in range(t)] for i in range(t)])


def drawn(*shapes, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(*shape, generator=generator) for shape in shapes]


@pytest.mark.parametrize("t", [1, 7, 16])
@pytest.mark.parametrize("size", [1, 3, 4, 20])
def test_each_pattern_is_that_of_a_double_loop(t, size):
    assert torch.equal(sparse.local_mask(t, size), by_hand(t, lambda i, j: i - size < j))
    near, stride = sparse.strided_masks(t, size)
    assert torch.equal(near, by_hand(t, lambda i, j: j >= max(0, i - size)))
    assert torch.equal(stride, by_hand(t, lambda i, j: (i - j) % size == 0))
    for c in range(1, min(size, 3) + 1):
        block, columns = sparse.fixed_masks(t, size, c)
        assert torch.equal(block, by_hand(t, lambda i, j: j // size == i // size))
        assert torch.equal(columns, by_hand(t, lambda i, j, c=c: j % size in range(size - c, size)))


@pytest.mark.parametrize(("t", "size"), [(12, 3), (12, 12), (16, 4), (9, 1), (40, 8)])
def test_closed_forms_count_what_the_masks_hold(t, size):
    counted = {
        "full": by_hand(t, lambda i, j: True).sum(),
        "local": sparse.local_mask(t, size).sum(),
        "strided": sparse.strided_masks(t, size).sum(),
        "fixed": sparse.fixed_masks(t, size).sum(),
    }
    for kind, count in counted.items():
        assert sparse.attended_pairs(kind, t, size) == count


def test_what_makes_no_pattern_is_refused():
    for call in (
        lambda: sparse.local_mask(4, 0),
        lambda: sparse.strided_masks(4, 0),
        lambda: sparse.fixed_masks(4, 2, 3),
        lambda: sparse.fixed_masks(4, 2, 0),
        lambda: sparse.attended_pairs("full", 7, 2),
        lambda: sparse.attended_pairs("dense", 8, 2),
        lambda: sparse.connected([]),
        lambda: sparse.raster(torch.zeros(1, 2, 2), 1),
    ):
        with pytest.raises(ValueError, match="."):
            call()


def test_connected_is_what_the_gradient_of_a_stack_of_layers_says():
    masks = [*sparse.fixed_masks(12, 3), sparse.local_mask(12, 2)]
    layers = [sparse.PatternedAttention(4, 1).double() for _ in masks]
    x = torch.randn(1, 12, 4, dtype=torch.float64, requires_grad=True)
    y = x
    for layer, mask in zip(layers, masks, strict=True):
        y = y + layer(y, mask.unsqueeze(0))
    found = torch.stack(
        [torch.autograd.grad(y[0, i].sum(), x, retain_graph=True)[0][0].abs().amax(-1) for i in range(12)]
    )
    assert torch.equal(found > 0, sparse.connected(masks))


@pytest.mark.parametrize(("t", "w"), [(12, 4), (13, 4), (5, 9), (7, 1), (1, 3), (16, 16)])
def test_the_band_is_attention_with_a_window_mask(t, w):
    q, k, v = (x.requires_grad_() for x in drawn(*[(2, 3, t, 5)] * 3))
    goal = F.scaled_dot_product_attention(q, k, v, attn_mask=sparse.local_mask(t, w))
    found = sparse.banded_attention(q, k, v, w)
    torch.testing.assert_close(found, goal, **NEAR)
    for mine, other in zip(*(torch.autograd.grad(y.square().sum(), (q, k, v)) for y in (found, goal)), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


def test_the_window_is_that_of_mistral():
    transformers = pytest.importorskip("transformers")
    config = transformers.MistralConfig(
        vocab_size=11, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, head_dim=4, sliding_window=3, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.MistralModel(config).eval()
    x = torch.randn(1, 9, 8, requires_grad=True)
    y = model(inputs_embeds=x).last_hidden_state[0]
    found = torch.stack(
        [torch.autograd.grad(y[i].square().sum(), x, retain_graph=True)[0][0].abs().amax(-1) for i in range(9)]
    )
    assert torch.equal(found > 0, sparse.local_mask(9, 3))


@pytest.mark.parametrize(("t", "size"), [(12, 3), (8, 8), (6, 1)])
def test_the_gathered_fixed_pattern_is_that_of_its_masks(t, size):
    q, k, v = drawn(*[(2, 4, t, 5)] * 3)
    block, columns = sparse.fixed_masks(t, size)
    goal = torch.cat(
        [F.scaled_dot_product_attention(*(x[:, :2] for x in (q, k, v)), attn_mask=block),
         F.scaled_dot_product_attention(*(x[:, 2:] for x in (q, k, v)), attn_mask=columns)], dim=1)  # fmt: skip
    found = sparse.fixed_attention(q, k, v, size)
    assert found.isfinite().all()
    torch.testing.assert_close(found, goal, **NEAR)
    for heads, length in ((3, 12), (4, 13)):
        with pytest.raises(ValueError, match="do not fit"):
            sparse.fixed_attention(*drawn(*[(1, heads, length, 2)] * 3), 4)


def test_a_raster_goes_row_by_row():
    picture = torch.tensor([[[0.0, 0.3, 0.6], [0.74, 0.76, 1.0]]])
    assert torch.equal(sparse.raster(picture, 4), torch.tensor([[0, 1, 2, 2, 3, 3]]))
    assert sparse.row_and_column(5, 3).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]


def test_a_pixel_is_predicted_from_those_before_it():
    masks = torch.cat([sparse.strided_masks(16, 4), sparse.fixed_masks(16, 4)])
    model = sparse.PixelTransformer(3, 8, 2, masks, 4)
    ids = torch.randint(3, (2, 16))
    logits = model(ids)
    assert logits.shape == (2, 16, 3) and logits.isfinite().all()
    for place in (0, 5, 15):
        other = ids.clone()
        other[:, place:] = (other[:, place:] + 1) % 3
        torch.testing.assert_close(model(other)[:, : place + 1], logits[:, : place + 1])
    assert not torch.allclose(model((ids + 1) % 3)[:, 1:], logits[:, 1:])
