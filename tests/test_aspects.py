"""What the ready-made aspects see, and what they let pass."""

import pytest
import torch

from helpers.exercises.aspects import Fault, any_device, evaluation_mode, raises
from helpers.exercises.draw import Draw
from helpers.exercises.other_device import THERE


def blocks_on(device):
    def twice(w):
        d = w.shape[0]
        out = torch.zeros(2 * d, 2 * d, device=device(w))
        out[:d, :d] = w
        out[d:, d:].copy_(w)
        return out

    return twice


def some_matrix(draw):
    return (draw.normal(3, 3),)


def test_a_tensor_made_on_the_cpu_and_then_filled_is_seen():
    with pytest.raises(Fault, match="created without saying on which device"):
        any_device(1, some_matrix).probe(blocks_on(lambda w: "cpu"), Draw("seed"))
    assert any_device(1, some_matrix).probe(blocks_on(lambda w: w.device), Draw("seed")) == 1


class Lookup(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.table, self.device = torch.nn.Embedding(5, 3), device

    def forward(self, x):
        return x + self.table(torch.arange(3, device=self.device(x)))


def test_rows_looked_up_by_indices_on_the_cpu_are_seen():
    with pytest.raises(RuntimeError, match="two devices, meta and cpu"):
        any_device(1, some_matrix).probe(Lookup(lambda x: "cpu"), Draw("seed"))
    assert any_device(1, some_matrix).probe(Lookup(lambda x: x.device), Draw("seed")) == 1


def test_code_that_reads_numbers_says_where_its_result_is():
    with pytest.raises(Fault, match="created without saying on which device"):
        any_device(1, some_matrix).probe(lambda w: torch.tensor(w.tolist()), Draw("seed"))
    there = any_device(1, some_matrix).probe(lambda w: torch.tensor(w.tolist(), device=w.device), Draw("seed"))
    assert there == 1


@pytest.mark.parametrize(
    "on_the_cpu",
    [
        lambda w: w + torch.zeros(3, 3),
        lambda w: w @ torch.nn.Parameter(torch.ones(3, 3)),
        lambda w: torch.cat([w, torch.ones_like(w, device="cpu")]),
        lambda w: w * torch.arange(w.argmax() + 1).sum(dim=0, keepdim=True),
        lambda w: torch.nn.Linear(3, 3)(w),
        lambda w: torch.from_numpy(w.numpy()),
        lambda w: torch.vmap(lambda row: row * torch.ones(3))(w),
        lambda w: w.cpu(),
    ],
    ids="sum parameter like range module numpy vmap cpu".split(),
)
def test_what_would_fail_on_a_gpu_fails(on_the_cpu):
    with pytest.raises((RuntimeError, TypeError, Fault), match="device"):
        any_device(1, some_matrix).probe(on_the_cpu, Draw("seed"))


@pytest.mark.parametrize(
    "anywhere",
    [
        lambda w: w * torch.tensor(2.0),
        lambda w: w[torch.tensor([0, 2])],
        lambda w: w * w.new_ones(3) + torch.ones(3, device=w.device),
        lambda w: torch.nn.Linear(3, 3).to(w.device)(w),
        lambda w: torch.ones(3, 3).to(w) @ w.cpu().to(w.device),
        lambda w: torch.func.jacrev(torch.sin)(w),
        lambda w: torch.autograd.grad((w.requires_grad_() ** 2).sum(), w)[0],
        lambda w: torch.tensor(w.numpy(force=True), device=w.device),
        lambda w: torch.stack([row * row.max().item() for row in w]),
        lambda w: (w.to_sparse() * 2).to_dense(),
        lambda w: (lambda x: x @ x)(w.as_subclass(type("Mine", (torch.Tensor,), {}))),
    ],
    ids="number index like module to jacrev grad numpy rows sparse subclass".split(),
)
def test_what_runs_on_a_gpu_passes(anywhere):
    assert any_device(1, some_matrix).probe(anywhere, Draw("seed")) == 1


def test_a_device_that_is_forgotten_in_a_special_case_is_seen():
    def doubled(w, times):
        return w * times if times else torch.zeros(3, 3)

    never = {"never": lambda draw: (*some_matrix(draw), 0)}
    with pytest.raises(Fault, match="created without saying on which device"):
        any_device(1, lambda draw: (*some_matrix(draw), 2), also=never).probe(doubled, Draw("seed"))


def refusing(with_words):
    def half(n):
        if n % 2:
            raise ValueError(with_words)

    return half


def test_an_error_has_to_mention_what_the_exercise_asks_for():
    aspect = raises(1, lambda draw: (17,), ValueError, name="odd", missed="17 is odd", mentions=("17",))
    assert aspect.probe(refusing("17 is odd"), Draw("seed")) == 1
    with pytest.raises(Fault, match="does not contain 17"):
        aspect.probe(refusing("not enough values to unpack"), Draw("seed"))
    with pytest.raises(Fault, match="17 is odd"):
        aspect.probe(lambda n: n // 2, Draw("seed"))


@pytest.mark.parametrize("shape", [(3, 4), (100, 50)], ids=["remembered", "too large for that"])
def test_weights_are_drawn_by_name_and_shape_and_whoever_changes_them_changes_only_their_own(shape):
    draw, goal = Draw("seed", "x"), Draw("seed", "x").named("w").normal(*shape)
    first = draw.weights("w", *shape)
    assert torch.equal(first, goal)
    first.zero_()
    assert torch.equal(Draw("seed", "x").weights("w", *shape), goal)
    assert not torch.equal(Draw("seed", "y").weights("w", *shape), goal)
    assert not torch.equal(draw.weights("v", *shape), goal)


class Moded(torch.nn.Module):
    """A stand-in that notes in which mode it is called."""

    def __init__(self):
        super().__init__()
        self.modes = []

    def forward(self):
        self.modes.append(self.training)


def restoring(model):
    before = model.training
    model.eval()()
    model.train(before)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (restoring, ""),
        (lambda model: model(), "comes in training mode is in training mode while your code uses it"),
        (lambda model: model.eval()(), "comes in training mode is left in evaluation mode"),
        (lambda model: (model.eval()(), model.train()), "comes in evaluation mode is left in training mode"),
        (lambda model: None, "never calls the model"),
    ],
    ids=["restored", "training", "left in evaluation", "left in training", "not called"],
)
def test_each_fault_with_a_models_mode_has_its_own_sentence(use, says):
    def used(answer, draw, training):
        model = Moded().train(training)
        answer(model)
        return model

    aspect = evaluation_mode(1, used)
    if not says:
        assert torch.equal(aspect.probe(use, Draw(0)), torch.tensor([1]))
        return
    with pytest.raises(Fault, match=says):
        aspect.probe(use, Draw(0))


def test_what_is_kept_from_a_call_on_the_cpu_is_seen():
    kept = {}

    def triangle(x):
        t = x.shape[1]
        if t not in kept:
            kept[t] = torch.ones(t, t, device=x.device).tril()
        return kept[t] @ x

    aspect = any_device(1, lambda draw: (draw.normal(2, 4, 3),))
    with pytest.raises(Exception):  # noqa: B017, PT011 (torch's own error, whose kind differs between operators)
        aspect.probe(triangle, Draw(0))


def test_a_cache_for_each_device_is_right():
    kept = {}

    def triangle(t, device):
        if (t, str(device)) not in kept:
            kept[t, str(device)] = torch.ones(t, t, device=device).tril()
        return kept[t, str(device)].clone()

    assert torch.equal(any_device(1, lambda draw: (4, THERE)).probe(triangle, Draw(0)), torch.tensor([1]))
