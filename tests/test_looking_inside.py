"""Patching in a GPT-2, and dictionaries of features (lesson 19): hooks against recomputation."""

import pytest
import torch

from helpers.parts import gpt2, patching
from helpers.parts.dictionary import Dictionary, Squeezed, dictionary_loss, train_squeezed


@pytest.fixture
def small():
    """A random GPT-2 with strong weights, in 64 bits, and two texts."""
    torch.manual_seed(0)
    model = gpt2.GPT2(gpt2.Config(n=17, t_max=9, e=12, h=3, depth=2)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8)
    return model, torch.randint(17, (2, 6)), torch.randint(17, (2, 6))


@torch.no_grad()
def gathered(block, x):
    """What the heads of a block gather, computed without hooks: (b, t, e)."""
    attention = block.attention
    _, _, v = attention._project(block.norm1(x))
    z = attention.weights(block.norm1(x)) @ v
    return z.transpose(1, 2).flatten(2)


@torch.no_grad()
def test_the_hooks_see_and_replace_what_a_recomputation_without_hooks_gives(small):
    model, clean, corrupted = small
    kept = patching.gathered_by_heads(model, clean)
    x, y = model.embed(clean), model.embed(corrupted)
    torch.testing.assert_close(kept[0], gathered(model.blocks[0], x), rtol=1e-10, atol=1e-10)
    z = gathered(model.blocks[0], y)
    z[..., 4:8] = kept[0][..., 4:8]
    block = model.blocks[0]
    y = y + block.attention.unify(z)
    y = model.blocks[1](y + block.feed_forward(block.norm2(y)))
    found = patching.patched_gpt2(model, corrupted, kept[0], 0, 1)
    torch.testing.assert_close(found, model.norm(y) @ model.tokens.weight.T, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(patching.patched_gpt2(model, clean, kept[1], 1, 2), model(clean))
    assert not any(block.attention.unify._forward_pre_hooks for block in model.blocks)


def test_a_patch_of_nothing_brings_back_nothing_and_texts_have_to_fit(small):
    model, clean, corrupted = small
    right, wrong = torch.tensor([1, 2]), torch.tensor([3, 4])
    high, low, shares = patching.patch_every_head(model, clean, corrupted, right, wrong)
    assert shares.shape == (2, 3) and high != low
    with pytest.raises(ValueError, match="one length"):
        patching.patch_every_head(model, clean, corrupted[:, 1:], right, wrong)
    with pytest.raises(ValueError, match="nothing to bring back"):
        patching.patch_every_head(model, clean, clean, right, wrong)


def test_a_dictionary_of_more_features_rebuilds_and_pays_by_the_length_of_its_directions(tmp_path):
    torch.manual_seed(0)
    found, x = Dictionary(4, 7), torch.randn(5, 4)
    tensors = found.encode, found.bias, found.decode, found.offset
    loss = dictionary_loss(x, *tensors, 0.3)
    torch.testing.assert_close(found.loss(x, 0.3), loss)
    error = (found(x) - x).square().sum(dim=-1)
    torch.testing.assert_close(loss, error + 0.3 * (found.features(x) * found.decode.norm(dim=1)).sum(dim=-1))
    # twice as long directions of half as strong features cost the same
    half = (found.encode / 2, found.bias / 2, found.decode * 2, found.offset)
    torch.testing.assert_close(dictionary_loss(x, *half, 0.3), loss)


def test_rare_features_share_two_dimensions():
    torch.manual_seed(1)
    toy = Squeezed(5, 2)
    *_, last = train_squeezed(toy, 0.05, steps=400)
    assert last < 0.1 and (toy.table.norm(dim=1) > 0.7).sum() >= 4
