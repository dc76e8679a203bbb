"""Lesson 17's parts against PyTorch's own: FlopCounterMode, checkpoint; and numpy's polyfit."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from helpers.parts import big
from helpers.parts.blocks import TransformerBlock
from helpers.parts.generator import CharTransformer
from helpers.parts.sharding import SmallGPT, state_bytes


@pytest.mark.parametrize(("n", "e", "h", "depth", "t"), [(256, 64, 4, 3, 128), (11, 12, 3, 2, 5), (7, 8, 1, 1, 1)])
def test_operations_are_those_that_pytorch_counts(n, e, h, depth, t):
    model, ids = CharTransformer(n, e, h, depth, t), torch.randint(n, (2, t))
    forward, training = big.flops_per_token(e, depth, t, n)
    with FlopCounterMode(display=False) as counted, sdpa_kernel(SDPBackend.MATH):
        logits = model(ids)
    assert counted.get_total_flops() == 2 * t * forward
    with FlopCounterMode(display=False) as counted, sdpa_kernel(SDPBackend.MATH):
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
    assert counted.get_total_flops() == 2 * t * training
    assert logits.shape == (2, t, n)


# ---------------------------------------------------------------------------------------------------------- memory


def test_training_in_float32_keeps_sixteen_bytes_per_parameter():
    model = nn.Linear(30, 40)
    optimiser = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 30)).sum().backward()
    optimiser.step()
    many = 30 * 40 + 40
    assert state_bytes(model.parameters(), optimiser) == (4 * many, 4 * many, 8 * many)


def test_a_ledger_counts_each_storage_once_and_forgets_what_is_let_go():
    x = torch.randn(10, 20, requires_grad=True)
    with big.Ledger() as ledger:
        y = x.exp()  # keeps its result, 800 bytes
        z = y * y.T.T  # two views of the same storage: nothing new
        assert ledger.bytes == 800
        z.sum().backward()
    del y, z
    assert (ledger.bytes, ledger.peak) == (0, 800)


def test_a_ledger_leaves_out_what_is_there_anyway():
    layer, x = nn.Linear(50, 60, bias=False), torch.randn(3, 50, requires_grad=True)
    with big.Ledger(layer.parameters()) as ledger:
        layer(x)
    assert ledger.peak == x.nbytes
    with big.Ledger() as ledger:
        layer(x)
    assert ledger.peak == x.nbytes + layer.weight.nbytes


# --------------------------------------------------------------------------------------------------- checkpointing


def gradients(how, block, x):
    """(output, gradients of x and of the parameters, the next random number), from one random state."""
    torch.manual_seed(5)
    block.zero_grad()
    x = x.clone().requires_grad_()
    y = how(block, x)
    y.square().sum().backward()
    return y, [x.grad, *(parameter.grad for parameter in block.parameters())], torch.rand(1)


@pytest.mark.parametrize("training", [True, False])
def test_checkpointing_gives_what_pytorchs_gives_and_what_none_gives_with_dropout(training):
    block, x = TransformerBlock(12, 3, pre_norm=True, dropout=0.4).train(training), torch.randn(2, 5, 12)
    mine = gradients(big.checkpointed, block, x)
    for other in (
        lambda block, x: block(x),
        lambda block, x: checkpoint(block, x, use_reentrant=False),
        lambda block, x: checkpoint(block, x, use_reentrant=True),
    ):
        goal = gradients(other, block, x)
        torch.testing.assert_close(mine[0], goal[0])
        for one, two in zip(mine[1], goal[1], strict=True):
            torch.testing.assert_close(one, two)
        assert torch.equal(mine[2], goal[2])


def test_parameters_learn_though_the_input_needs_no_gradient():
    block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    big.checkpointed(block, torch.randn(3, 4)).sum().backward()
    assert all(parameter.grad is not None for parameter in block.parameters())
    block[0].weight.requires_grad_(False)
    block.zero_grad()
    big.checkpointed(block, torch.randn(3, 4)).sum().backward()
    assert block[0].weight.grad is None and block[0].bias.grad is not None


def test_a_parameter_that_is_not_used_has_no_gradient():
    block = nn.Linear(4, 4)
    block.spare = nn.Parameter(torch.ones(2))
    big.checkpointed(block, torch.randn(3, 4)).sum().backward()
    assert block.weight.grad is not None and block.spare.grad is None


class Watched(nn.Module):
    """A linear layer that notes the type of each of its results."""

    def __init__(self):
        super().__init__()
        self.layer, self.types = nn.Linear(6, 6), []

    def forward(self, x):
        y = self.layer(x)
        self.types.append(y.dtype)
        return torch.tanh(y)


@pytest.mark.parametrize("backward_inside", [False, True])
@pytest.mark.parametrize("on", [False, True])
def test_the_second_run_has_the_autocast_of_the_first(on, backward_inside):
    def with_autocast(how):
        block, x = Watched(), torch.randn(5, 6, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=on):
            y = how(block, how(block, x))
            if backward_inside:
                y.float().square().sum().backward()
        if not backward_inside:
            with torch.autocast("cpu", torch.bfloat16, enabled=not on):
                y.float().square().sum().backward()
        return y, block.types, [x.grad, *(parameter.grad for parameter in block.parameters())]

    results = []
    for how in (big.checkpointed, lambda block, x: checkpoint(block, x, use_reentrant=False)):
        torch.manual_seed(2)
        results.append(with_autocast(how))
    (mine, types, gradients), (goal, _, others) = results
    assert set(types) == {torch.bfloat16 if on else torch.float32} and len(types) == 4
    assert torch.equal(mine, goal)
    for one, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)


def test_between_the_passes_only_the_inputs_are_kept():
    blocks = nn.ModuleList(TransformerBlock(16, 2, pre_norm=True) for _ in range(4))
    x = torch.randn(2, 8, 16, requires_grad=True)

    def kept(how):
        with big.Ledger(blocks.parameters()) as ledger:
            y = x
            for block in blocks:
                y = how(block, y)
            between = ledger.bytes
            y.sum().backward()
        return between, ledger.peak

    between, peak = kept(big.checkpointed)
    assert between == 4 * x.nbytes
    assert peak < kept(lambda block, y: block(y))[1] / 2


# ------------------------------------------------------------------------------------------- the model of the table


def test_the_small_gpt_is_lesson_nines_model_whatever_its_switches():
    sizes, ids = {"n": 11, "e": 12, "h": 3, "depth": 2, "t_max": 6}, torch.randint(11, (3, 6))
    model, plain = SmallGPT(**sizes), CharTransformer(**sizes)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(ids), plain(ids))
    model.run_block = big.checkpointed
    model(ids).square().mean().backward()
    plain(ids).square().mean().backward()
    for mine, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)
    model.autocast = True
    half = model(ids)
    assert half.dtype == torch.float32 and not torch.equal(half, plain(ids))
    torch.testing.assert_close(half, plain(ids), atol=0.05, rtol=0.05)


# ---------------------------------------------------------------------------------------- accumulation and averages


def padded_batch():
    model = CharTransformer(11, 12, 3, 2, 6)
    ids, targets = torch.randint(1, 11, (7, 6)), torch.randint(1, 11, (7, 6))
    for row, length in enumerate((6, 1, 2, 6, 3, 0, 5)):
        targets[row, length:] = 0
    model.zero_grad()
    F.cross_entropy(model(ids).flatten(0, 1), targets.flatten(), ignore_index=0).backward()
    return model, ids, targets, [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_parts_leave_what_the_full_batch_leaves_whatever_the_padding(parts):
    model, ids, targets, whole = padded_batch()
    big.accumulated_gradients(model, ids, targets, parts, pad=0)
    for parameter, goal in zip(model.parameters(), whole, strict=True):
        torch.testing.assert_close(parameter.grad, goal)


# --------------------------------------------------------------------------------------------------------- scaling


def test_the_best_size_is_the_minimum_of_numpys_parabola():
    sizes, losses = [2e4, 4e4, 6e4, 9e4, 9e4], [2.41, 2.36, 2.352, 2.37, 2.38]
    a, b, _ = np.polyfit(np.log(sizes), losses, 2)
    assert big.best_size(sizes, losses) == pytest.approx(math.exp(-b / (2 * a)))
    exact = [0.1 * math.log(size / 7e4) ** 2 + 2 for size in sizes]
    assert big.best_size(sizes, exact) == pytest.approx(7e4)


def test_a_curve_that_falls_or_bends_down_has_no_best_size():
    sizes = [2e4, 4e4, 6e4, 9e4]
    bowl = [math.log(size / 7e4) ** 2 for size in sizes]
    assert big.best_size(sizes, [-loss for loss in bowl]) is None
    assert big.best_size(sizes, [math.log(size / 2e5) ** 2 for size in sizes]) is None
