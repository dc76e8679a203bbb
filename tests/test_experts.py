"""The mixture of experts of lesson 18, beside the one of Mixtral in `transformers`."""

import pytest
import torch

from helpers.parts import experts

transformers = pytest.importorskip("transformers")


def block(e=12, hidden=20, count=6, k=2):
    """Mixtral's block with random weights."""
    config = transformers.MixtralConfig(
        hidden_size=e, intermediate_size=hidden, num_local_experts=count, num_experts_per_tok=k
    )
    theirs = transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0, 0.5)
    return theirs


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_mixture_is_mixtrals(k):
    theirs = block(k=k)
    ours = experts.MixtureOfExperts(12, 20, 6, k)
    weights = {"router.weight": theirs.gate.weight}
    for i in range(6):
        gate, up = theirs.experts.gate_up_proj[i].chunk(2)
        weights |= {f"experts.{i}.gate.weight": gate, f"experts.{i}.up.weight": up}
        weights |= {f"experts.{i}.down.weight": theirs.experts.down_proj[i]}
    ours.load_state_dict(weights)
    x = torch.randn(2, 7, 12)
    with torch.no_grad():
        out = theirs(x)
        out = out[0] if isinstance(out, tuple) else out
        torch.testing.assert_close(ours(x), out, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_balance_loss_is_transformers_divided_by_k(k):
    logits = torch.randn(50, 6)
    theirs = transformers.models.mixtral.modeling_mixtral.load_balancing_loss_func((logits,), 6, k)
    torch.testing.assert_close(experts.balance_loss(logits, k), theirs / k)


def test_the_gradient_lowers_the_chance_of_what_is_used_too_much():
    logits = torch.randn(40, 5)
    logits[:, 3] += 2
    logits.requires_grad_()
    experts.balance_loss(logits, 1).backward()
    assert logits.grad[:, 3].sum() > 0
    assert logits.grad[:, [0, 1, 2, 4]].sum() < 0


def test_a_single_expert_with_its_weight_renormalised_teaches_the_router_nothing():
    mixture, x = experts.MixtureOfExperts(8, 12, 4, 1), torch.randn(1, 10, 8)
    mixture(x).square().sum().backward()
    assert mixture.router.weight.grad.abs().max() < 1e-6  # p/p, rounded
    mixture = experts.MixtureOfExperts(8, 12, 4, 2)
    mixture(x).square().sum().backward()
    assert mixture.router.weight.grad.abs().max() > 1e-4


def test_experts_that_no_token_uses_are_left_alone():
    mixture = experts.MixtureOfExperts(8, 12, 4, 1)
    with torch.no_grad():
        mixture.router.weight.zero_()
    mixture(torch.randn(1, 5, 8)).sum().backward()
    used = [expert.gate.weight.grad is not None for expert in mixture.experts]
    assert sum(used) == 1
