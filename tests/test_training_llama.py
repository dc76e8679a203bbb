"""The long run of lesson 18: models as large as the pocket GPT-2, each with one change taken back, that learn."""

import pytest
import torch
from torch import nn

from helpers.parts.llama import GroupedQueryAttention, RMSNorm
from helpers.training import pocket_gpt2, pocket_llama

N = 2048
POCKET_PARAMETERS = 2_222_208


@pytest.mark.parametrize("what", pocket_llama.TAKEN_BACK)
def test_every_model_is_as_large_as_the_pocket_gpt2(what):
    with torch.device("cpu"):
        count = sum(p.numel() for p in pocket_llama.fresh_model(N, what).parameters())
    assert count == pytest.approx(POCKET_PARAMETERS, rel=0.005)


def kinds(model):
    return {type(module).__name__ for module in model.modules()}


def test_what_is_taken_back_is_gone_and_the_rest_is_there():
    whole = pocket_llama.fresh_model(N)
    assert {"RMSNorm", "SwiGLU", "GroupedQueryAttention"} <= kinds(whole)
    assert not any(name.endswith("bias") for name, _ in whole.named_parameters())
    normed = kinds(pocket_llama.fresh_model(N, "RMSNorm for LayerNorm"))
    assert "LayerNorm" in normed and "RMSNorm" not in normed and "SwiGLU" in normed
    gelu = kinds(pocket_llama.fresh_model(N, "SwiGLU for GELU"))
    assert "Widening" in gelu and "SwiGLU" not in gelu and "RMSNorm" in gelu
    learned = pocket_llama.fresh_model(N, "rotary for learned positions")
    assert "GroupedQueryAttention" not in kinds(learned) and learned.tokens.positions.weight.shape == (256, 192)
    heads = pocket_llama.fresh_model(N, "grouped queries for a key a head")
    assert {m.groups for m in heads.modules() if isinstance(m, GroupedQueryAttention)} == {6}
    biased = pocket_llama.fresh_model(N, "no biases for biases")
    assert all(m.bias is not None for m in biased.modules() if isinstance(m, nn.Linear))
    assert any(isinstance(m, RMSNorm) for m in biased.modules())


def test_learned_positions_are_all_that_such_a_model_knows_of_order():
    torch.manual_seed(0)
    model, ids = pocket_llama.fresh_model(N, "rotary for learned positions").eval(), torch.randint(N, (1, 6))
    other = ids[:, [1, 0, 2, 3, 4, 5]]
    model.blocks = model.blocks[:1]  # a second block would know the order by what the first could see
    with torch.no_grad():
        assert not torch.allclose(model(ids)[0, -1], model(other)[0, -1])
        model.tokens.positions.weight.zero_()
        torch.testing.assert_close(model(ids)[0, -1], model(other)[0, -1])


@pytest.mark.parametrize("what", ["nothing", "rotary for learned positions", pocket_llama.ALL_BACK])
def test_a_short_training_learns_and_says_what_it_reached(what, monkeypatch):
    monkeypatch.setattr(pocket_gpt2, "BATCH", 4)
    monkeypatch.setitem(pocket_gpt2.MODEL, "e", 48)
    monkeypatch.setitem(pocket_llama.MODEL, "e", 48)
    text = torch.arange(40).repeat(30)  # each token foretells the next
    told = pocket_llama.short_run(what, 25, text, text, 50, 1.0)
    assert set(told) == {"parameters", "seconds", "processor_seconds", "held_out_bits"}
    assert told["held_out_bits"] < 4.5  # log2 of 50 is 5.6


def test_attention_weights_are_those_that_the_model_computes_with():
    torch.manual_seed(0)
    model, ids = pocket_llama.fresh_model(N).eval(), torch.randint(N, (2, 9))
    weights = pocket_llama.attention_weights(model, ids)
    attention, inside = model.blocks[0].attention, model.blocks[0].norm1(model.tokens(ids))
    values = attention.to_values(inside).view(2, 9, 2, 32).transpose(1, 2).repeat_interleave(3, dim=1)  # (b, h, t, d)
    looked = (weights[0] @ values).transpose(1, 2).reshape(2, 9, 192)
    torch.testing.assert_close(attention.unify(looked), attention(inside))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 2, 6, 9))


def test_the_best_scores_are_shares():
    torch.manual_seed(0)
    scores = pocket_llama.best_scores(pocket_llama.fresh_model(N).eval(), torch.randint(N, (600,)), N)
    assert all(0 < score < 0.2 for score in scores.values()), "nothing was learned"
