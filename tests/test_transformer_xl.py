"""The finished Transformer-XL against `transformers`, and against loops over the paper's formula in float64."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from helpers.parts.transformer_xl import TransformerXL, extend_memory, reach, relative_shift, segments, streaming_bits

E, H, DEPTH, N = 12, 3, 2, 17


def drawn(module, seed=0, scale=0.5):
    """The module with random weights, none of them at its start."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return module.eval()


def of_xlnet(model, published):
    """Copies the weights of a model of ours, post-norm, into an XLNetModel."""
    sines_then_cosines = torch.cat([torch.arange(0, E, 2), torch.arange(1, E, 2)])
    with torch.no_grad():
        published.word_embedding.weight.copy_(model.tokens.weight)
        for block, layer in zip(model.blocks, published.layer, strict=True):
            ours, theirs = block.attention, layer.rel_attn
            for to, name in ((ours.to_queries, "q"), (ours.to_keys, "k"), (ours.to_values, "v")):
                getattr(theirs, name).copy_(to.weight.T.view(E, H, E // H))
            theirs.r.copy_(ours.to_positions.weight.T[sines_then_cosines].view(E, H, E // H))
            theirs.o.copy_(ours.unify.weight.view(E, H, E // H))
            ours.unify.bias.zero_()  # XLNet has none there
            theirs.r_w_bias.copy_(ours.u)
            theirs.r_r_bias.copy_(ours.v)
            layer.ff.layer_1.load_state_dict(block.feed_forward.widen.state_dict())
            layer.ff.layer_2.load_state_dict(block.feed_forward.narrow.state_dict())
            for norm, other in ((block.norm1, theirs.layer_norm), (block.norm2, layer.ff.layer_norm)):
                other.weight.copy_(norm.weight)
                other.bias.copy_(norm.bias)
    return published.eval()


def test_three_segments_with_a_growing_memory_are_those_of_xlnet():
    from transformers import XLNetConfig, XLNetModel

    config = XLNetConfig(
        vocab_size=N,
        d_model=E,
        n_layer=DEPTH,
        n_head=H,
        d_inner=4 * E,
        attn_type="uni",
        mem_len=16,
        untie_r=True,
        ff_activation="relu",
        dropout=0.0,
        layer_norm_eps=1e-5,
    )
    ours = drawn(TransformerXL(N, E, H, DEPTH, pre_norm=False))
    ours.to_logits = torch.nn.Identity()
    theirs = of_xlnet(ours, XLNetModel(config))
    ids = torch.randint(N, (2, 24), generator=torch.Generator().manual_seed(1))
    memory, mems = None, None
    for start, remembered in ((0, 8), (8, 16), (16, 16)):
        part = ids[:, start : start + 8]
        with torch.no_grad():
            result, memory = ours(part, memory, m=16)
            told = theirs(part, mems=mems, use_mems=True)
        mems = told.mems
        torch.testing.assert_close(result, told.last_hidden_state, rtol=1e-5, atol=1e-5)
        for mine, other in zip(memory, mems[: len(memory)], strict=True):
            assert mine.shape[1] == remembered
            torch.testing.assert_close(mine, other.transpose(0, 1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("t", "s"), [(1, 1), (1, 5), (4, 4), (3, 5), (2, 9)])
def test_the_shift_puts_every_distance_where_it_belongs(t, s):
    x = torch.stack([100.0 * i + torch.arange(s - 1, -1, -1.0) for i in range(t)])  # 100·i + distance
    shifted = relative_shift(x.expand(2, 3, t, s))
    assert shifted.shape == (2, 3, t, s)
    for i, j in itertools.product(range(t), range(s)):
        distance = i + s - t - j
        assert (shifted[..., i, j] == (100 * i + distance if distance >= 0 else 0)).all()


def test_streams_go_on_row_by_row_and_targets_cross_the_borders():
    data = torch.arange(60, dtype=torch.uint8)
    inputs, targets = segments(data, 3, 4)
    assert inputs.shape == targets.shape == (4, 3, 4)
    assert inputs.dtype == torch.int64
    rows = inputs.transpose(0, 1).flatten(1)
    assert rows.flatten().tolist() == list(range(48))
    assert torch.equal(targets, inputs + 1)
    with pytest.raises(ValueError, match="at least 13"):
        segments(data[:12], 3, 4)
    assert segments(data[:13], 3, 4)[0].shape == (1, 3, 4)


def test_a_memory_keeps_the_newest_without_their_gradient():
    x = torch.randn(2, 3, 4, requires_grad=True)
    first = extend_memory(None, x, 5)
    assert not first.requires_grad
    assert torch.equal(first, x)
    second = extend_memory(first, 2 * x, 5)
    assert torch.equal(second, torch.cat([x[:, 1:], 2 * x], dim=1))
    assert extend_memory(first, x, 0).shape == (2, 0, 4)
    assert extend_memory(None, x, 2).shape == (2, 2, 4)
    with pytest.raises(ValueError, match="-1"):
        extend_memory(None, x, -1)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_a_memory_of_everything_gives_what_the_whole_text_gives_at_once(pre_norm):
    model = drawn(TransformerXL(N, E, H, 3, pre_norm=pre_norm), scale=0.3)
    ids = torch.randint(N, (2, 20), generator=torch.Generator().manual_seed(4))
    whole, _ = model(ids)
    memory, parts = None, []
    for part in ids.split(6, dim=1):
        logits, memory = model(part, memory, m=100)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("t", "m", "depth"), [*itertools.product((3, 4), (0, 1, 4, 5), (1, 2, 3))])
def test_reach_is_as_far_back_as_a_changed_byte_is_felt(t, m, depth):
    model = drawn(TransformerXL(N, 8, 2, depth).double(), scale=1.0)  # in float32 a trace may round to nothing
    length = t * math.ceil((reach(t, m, depth) + 3) / t)
    generator = torch.Generator().manual_seed(5)

    @torch.no_grad()
    def last(ids):
        memory = None
        for part in ids.split(t, dim=1):
            logits, memory = model(part, memory, m)
        return logits[:, -1]

    ids = torch.randint(N, (1, length), generator=generator)
    before, changed = last(ids), []
    for j in range(length):  # one at a time: in a batch, rows may be rounded in different ways
        other = ids.clone()
        other[0, j] = (ids[0, j] + 1) % N
        changed.append(not torch.equal(last(other), before))
    assert length - 1 - changed.index(True) == reach(t, m, depth)


def test_every_byte_is_predicted_once_and_the_model_is_left_as_it_was():
    model = drawn(TransformerXL(N, E, H, DEPTH, dropout=0.5), scale=0.3).train()
    data = torch.randint(N, (23,), generator=torch.Generator().manual_seed(6))
    bits = streaming_bits(model, data, 5, 100)
    assert model.training
    model.eval()
    with torch.no_grad():
        logits, _ = model(data[None, :-1])
    whole = torch.nn.functional.cross_entropy(logits[0], data[1:]).item() / math.log(2)
    assert bits == pytest.approx(whole, rel=1e-5)
    with pytest.raises(ValueError, match="at least 2"):
        streaming_bits(model, data[:1], 5, 4)


def test_memories_of_another_depth_are_refused():
    model = TransformerXL(N, E, H, 2)
    _, memory = model(torch.zeros(1, 3, dtype=torch.int64), m=3)
    with pytest.raises(ValueError, match="2 blocks"):
        model(torch.zeros(1, 3, dtype=torch.int64), memory[:1], 3)
