"""The model that copies (lesson 19): what it computes, that it learns, and what its heads do."""

import math

import pytest
import torch
import torch.nn.functional as F

from helpers.parts import induction
from helpers.parts.positions import rotate


def test_its_layers_are_attention_as_pytorch_has_it():
    model, ids = induction.AttentionOnly(11, 12, 3, 2), torch.randint(11, (2, 7))
    x, positions = model.tokens(ids), torch.arange(7)
    for layer in model.layers:
        y = F.layer_norm(x, (12,))
        q, k, v = (to(y).view(2, 7, 3, 4).transpose(1, 2) for to in (layer.to_queries, layer.to_keys, layer.to_values))
        z = F.scaled_dot_product_attention(rotate(q, positions), rotate(k, positions), v, is_causal=True)
        x = x + layer.unify(z.transpose(1, 2).reshape(2, 7, 12))
    torch.testing.assert_close(model(ids), model.to_logits(F.layer_norm(x, (12,))))


def test_weights_are_rows_of_one_and_a_change_reaches_what_follows():
    model, ids = induction.AttentionOnly(11, 12, 3, 2), torch.randint(11, (2, 7))
    logits, looked = model.run(ids)
    assert [tuple(weights.shape) for weights in looked] == [(2, 3, 7, 7)] * 2
    torch.testing.assert_close(looked[1].sum(dim=-1), torch.ones(2, 3, 7))
    seen = []
    changed, after = model.run(ids, lambda layer, z: (seen.append((layer, tuple(z.shape))), 0 * z)[1])
    assert seen == [(0, (2, 3, 7, 4)), (1, (2, 3, 7, 4))]
    assert torch.equal(after[0], looked[0])
    assert not torch.allclose(after[1], looked[1])
    torch.testing.assert_close(changed, model.to_logits(model.norm(model.tokens(ids))))


def test_the_parts_add_up_to_the_last_hidden_state():
    model, ids = induction.AttentionOnly(11, 12, 3, 2).double(), torch.randint(11, (2, 7))
    parts = model.parts(ids)
    assert list(parts) == ["tokens", "0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    torch.testing.assert_close(model.to_logits(model.norm(sum(parts.values()))), model(ids))


def test_stretches_are_said_twice_and_no_token_comes_again_within_one():
    rows = induction.said_twice(20, 9, 50, torch.Generator().manual_seed(0))
    assert rows.shape == (50, 18)
    assert torch.equal(rows[:, :9], rows[:, 9:])
    assert all(len(set(row.tolist())) == 9 for row in rows)
    assert set(rows.flatten().tolist()) == set(range(20))
    with pytest.raises(ValueError, match="21 different"):
        induction.said_twice(20, 21, 1)


def test_the_loss_is_that_of_what_can_be_copied():
    rows = induction.said_twice(10, 4, 3)

    def copier(ids, change):  # knows what stands p − 1 = 3 places back
        told = torch.zeros(*ids.shape, 10)
        told[:, 4:] = 50.0 * F.one_hot(rows[:, 1:4], 10)
        return told

    losses = induction.copy_losses(copier, rows)
    assert losses.shape == (3, 3)
    assert losses.max() < 1e-6
    even = induction.copy_losses(lambda ids, change: torch.zeros(*ids.shape, 10), rows)
    assert even.mean().item() == pytest.approx(math.log(10))


def test_scores_of_heads_whose_looks_are_known():
    p = 5
    weights = torch.zeros(2, 3, 2 * p - 1, 2 * p - 1)
    for i in range(2 * p - 1):
        weights[:, 0, i, i - p + 1 if i >= p else 0] = 1  # induction
        weights[:, 1, i, max(0, i - 1)] = 1  # the token before
        weights[:, 2, i, : i + 1] = 1 / (i + 1)
    found = induction.induction_scores(weights, p)
    even = sum(1 / (i + 1) for i in range(p, 2 * p - 1)) / (p - 1)
    torch.testing.assert_close(found, torch.tensor([1.0, 0.0, even]))
    assert induction.previous_scores(weights)[1] == 1
    pair = induction.pattern_scores(weights, p)
    assert torch.equal(pair[0], induction.previous_scores(weights)) and torch.equal(pair[1], found)
    with pytest.raises(ValueError, match="read as 11"):
        induction.induction_scores(weights, 6)


def test_what_a_head_writes_is_its_share_of_the_layer():
    layer, z = induction.AttentionLayer(12, 3), torch.randn(2, 3, 5, 4)
    total = sum(layer.written(z, head) for head in range(3))
    torch.testing.assert_close(total, layer.unify(z.transpose(1, 2).reshape(2, 5, 12)))


@torch.no_grad()
def test_patching_is_what_two_runs_computed_by_hand_give():
    model = induction.AttentionOnly(11, 12, 3, 2).double()
    clean, corrupted = torch.randint(11, (2, 2, 7))
    found = induction.patched(model, clean, corrupted, 0, 1, 4)
    first, second = model.layers
    x, y = model.tokens(corrupted), model.tokens(clean)
    z, other = (first.gathered(first.weights(each, each), each) for each in (x, y))
    z[:, 1, 4] = other[:, 1, 4]
    x = x + first.unify(z.transpose(1, 2).reshape(2, 7, 12))
    z = second.gathered(second.weights(x, x), x)
    x = x + second.unify(z.transpose(1, 2).reshape(2, 7, 12))
    torch.testing.assert_close(found, model.to_logits(model.norm(x)), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(induction.patched(model, clean, clean, 1, 2, 3), model(clean))


@torch.no_grad()
def test_a_path_that_reads_the_same_state_changes_nothing_and_three_paths_differ():
    layer, x, other = induction.AttentionLayer(12, 3), torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    same = layer.unify(layer.gathered(layer.weights(x, x), x).transpose(1, 2).reshape(2, 5, 12))
    found = [induction.path_patched(layer, x, other, role) for role in induction.ROLES]
    for role in induction.ROLES:
        torch.testing.assert_close(induction.path_patched(layer, x, x, role), same)
    assert not any(torch.allclose(one, same) for one in found) and not torch.allclose(found[0], found[1])


def model_loss(model, rows):
    """The loss of the copy, and the second layer's induction scores, with nothing withheld."""
    p = rows.shape[1] // 2
    _, looked = model.run(rows[:, :-1])
    return induction.copy_losses(model, rows).mean(), induction.induction_scores(looked[1], p)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 10))])
def test_two_layers_learn_to_copy_by_an_induction_head_that_the_first_layer_feeds(seed):
    torch.manual_seed(seed)
    model, losses = induction.AttentionOnly(64, 64, 1, 2), []
    for loss in induction.train_to_copy(model, 400, seed=seed):
        losses.append(loss)
        if loss < 0.1:
            break
    assert len(losses) < 400
    assert losses[0] == pytest.approx(math.log(64), abs=0.5)
    rows = induction.said_twice(64, 24, 32, torch.Generator().manual_seed(99))
    with torch.no_grad():
        loss, scores = model_loss(model, rows)
        _, looked = model.run(rows[:, :-1])
        off, first_off = (
            induction.copy_losses(model, rows, lambda layer, z, k=k: z * (layer != k)).mean() for k in (1, 0)
        )
        parts, second = model.parts(rows[:, :-1]), model.layers[1]
        x = parts["tokens"] + parts["0.0"]
        y = x + induction.path_patched(second, x, parts["tokens"], "keys")  # layer 0 withheld from the keys
        logits = model.to_logits(model.norm(y))[:, 24:]
        by_keys = F.cross_entropy(logits.flatten(0, 1), rows[:, 25:].flatten())
    assert loss < 0.3
    assert scores[0] > 0.9
    assert induction.previous_scores(looked[0])[0] > 0.5
    assert off > 4.5
    assert first_off > math.log(64)
    assert by_keys > 4


def test_one_layer_does_not_learn_it_when_the_period_varies():
    model = induction.AttentionOnly(64, 64, 1, 1)
    *_, last = induction.train_to_copy(model, 120)
    assert last > 3
