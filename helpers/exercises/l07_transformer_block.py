"""Lesson 7: the transformer block."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from helpers.exercises.aspects import any_device, built, gradient, input_left_alone, parameters, renamed, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe

ORDERS = {"norm last": False, "norm first": True}
PYTORCHS = "It is PyTorch's own, and the lesson holds yours against it. Write out what it does."

# ------------------------------------------------------------------------------------------- gradient_by_depth


class Storey(torch.nn.Module):
    """One block of the tower below: two layers of different shapes, with biases, and a shortcut."""

    def __init__(self, e: int):
        super().__init__()
        self.up, self.down = torch.nn.Linear(e, 7), torch.nn.Linear(7, e)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.tanh(self.up(x)))


class Tower(torch.nn.Module):
    """Four blocks with drawn weights between two layers that belong to no block."""

    def __init__(self, draw: Draw, e: int = 4, depth: int = 4):
        super().__init__()
        self.before, self.after = torch.nn.Linear(e, e), torch.nn.Linear(e, e)
        self.blocks = torch.nn.ModuleList([Storey(e) for _ in range(depth)])
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(draw.named(name).normal(*parameter.shape, std=0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x)
        for block in self.blocks:
            x = block(x)
        return self.after(x)


def a_sequence(draw: Draw) -> tuple[torch.Tensor]:
    """Two sequences (2, 5, 4)."""
    return (draw.normal(2, 5, 4),)


def tower(answer: Answer, draw: Draw) -> Callable:
    """The student's function on a tower of drawn weights."""
    return lambda x: answer(Tower(draw).to(x.device), x)


def tower_with_gradients(answer: Answer, draw: Draw) -> Callable:
    """The tower has been trained before: its parameters still hold gradients."""
    model = Tower(draw)
    for name, parameter in model.named_parameters():
        parameter.grad = draw.named(f"gradient of {name}").normal(*parameter.shape).to(parameter.device)
    return lambda x: answer(model.to(x.device), x)


# --------------------------------------------------------------------------------------------------- LayerNorm

NORM = built(8)  # e = 8; sequences of 5 positions, 3 of them: no two sizes alike


def vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Vectors (3, 5, 8) whose components have neither mean 0 nor variance 1."""
    return (draw.normal(3, 5, 8, mean=1.5, std=2.0),)


def small_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Variances near 1e-5, which is epsilon: here it matters where epsilon stands."""
    return (draw.normal(3, 5, 8, std=0.003),)


def constant_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Eighths, so that the mean of eight of them is exact."""
    return ((draw.integers(-20, 20, 3, 5, 1) / 8).expand(3, 5, 8).clone(),)


# ------------------------------------------------------------------------------------- FeedForward and the block


def narrow_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Vectors (2, 5, 6)."""
    return (draw.normal(2, 5, 6),)


def sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Three sentences of 5 positions: (3, 5, 8)."""
    return (draw.normal(3, 5, 8),)


def both_orders(
    answer: Answer, draw: Draw, *sizes: int, training: bool = False, **options: object
) -> Iterator[tuple[str, torch.nn.Module]]:
    """The student's module for each order of norm and layer, with the same drawn weights."""
    for name, pre_norm in ORDERS.items():
        module = built(*sizes, pre_norm=pre_norm, **options)(answer, draw)
        yield name, module.train(training)


def masked(*sizes: int) -> Probe:
    """With time masked, and with padding masked, in both orders.

    Copies of x go in: changing it in place is another aspect's business.
    """

    def probe(answer, draw):
        x = draw.normal(3, 5, 8)
        time = torch.ones(5, 5, dtype=torch.bool, device=x.device).tril()
        real = draw.uniform(0, 1, 3, 1, 5).argsort(-1) < 3  # of five positions, three are real
        return {
            f"{name}, {kind}": module(x.clone(), mask)
            for name, module in both_orders(answer, draw, *sizes)
            for kind, mask in (("time", time), ("padding", real))
        }

    return probe


def dropped(*sizes: int) -> Probe:
    """In training with a chance of 1: every layer's output is dropped, the shortcuts are left, and nothing is luck.

    With a chance of 0 nothing is dropped: whoever takes the chance of keeping for the chance of dropping shows here.
    """

    def probe(answer, draw):
        x = draw.normal(3, 5, 8)
        return {
            f"{name}, dropout={chance}": module(x.clone())
            for chance in (1.0, 0.0)
            for name, module in both_orders(answer, draw, *sizes, dropout=chance, training=True)
        }

    return probe


def evaluated(*sizes: int, calls: int = 6) -> Probe:
    """How many of the calls in evaluation, with a dropout of one half, differ from the module without dropout.

    A single call has 120 components a layer and drops none of them with a chance of 2⁻¹²⁰.
    """

    def probe(answer, draw):
        x = draw.normal(3, 5, 8)
        plain = {name: module(x.clone()) for name, module in both_orders(answer, draw, *sizes, dropout=0.0)}
        return {
            name: torch.tensor(
                sum(not torch.allclose(module(x.clone()), plain[name], rtol=1e-4, atol=1e-5) for _ in range(calls))
            )
            for name, module in both_orders(answer, draw, *sizes, dropout=0.5)
        }

    return probe


BLOCK = built(8, 2)
BLOCK_FIRST = built(8, 2, pre_norm=True)
STACK = built(8, 2, 3)
STACK_FIRST = built(8, 2, 3, pre_norm=True)

EVALUATION = (
    "After `model.eval()` nothing may be dropped or scaled: the same input has to give the same output, call after"
    " call, as without dropout."
)
TRAINING = (
    "In training, each layer's output is dropped with the given chance before it is added. With a chance of 1 only the"
    " shortcuts and the norms are left, and with a chance of 0 nothing is dropped; yours differs in one of these cases."
)

# ---------------------------------------------------------------------------------------------- block_parameters


def several_sizes(count: Answer, draw: Draw) -> dict[str, int]:
    """A width and heads each, drawn and published ones."""
    drawn = 4 * draw.number(5, 40)
    return {f"e = {e}, h = {h}": count(e, h) for e, h in ((8, 2), (drawn, 4), (512, 8), (768, 12))}


LESSON = Lesson(
    "07_transformer_block",
    "Attention, a little network, two shortcuts",
    minutes=85,
    exercises=(
        Exercise(
            "gradient_by_depth",
            stars=2,
            minutes=12,
            aspects=(
                values(2.5, a_sequence, via=tower, axes="block", rtol=1e-3),
                values(1, a_sequence, name="gradients from before", via=tower_with_gradients, axes="block", rtol=1e-3),
                any_device(0.5, a_sequence, via=tower),
            ),
        ),
        Exercise(
            "LayerNorm",
            stars=2,
            minutes=12,
            aspects=(
                values(1, vectors, via=NORM, axes="b t e", picture=True),
                renamed(values(1, small_vectors, via=NORM, axes="b t e", picture=True), "small inputs"),
                renamed(values(0.5, constant_vectors, via=NORM, axes="b t e", picture=True), "constant inputs"),
                gradient(0.5, vectors, via=NORM),
                input_left_alone(0.5, vectors, via=NORM),
                any_device(0.5, vectors, via=NORM),
            ),
            forbidden=dict.fromkeys(("LayerNorm", "layer_norm", "native_layer_norm"), PYTORCHS)
            | {"FinishedNorm": "The finished norm is there for the exercises that build on this one."},
        ),
        Exercise(
            "FeedForward",
            stars=1,
            minutes=7,
            aspects=(
                values(1, narrow_vectors, via=built(6), axes="b t e", picture=True),
                values(1, narrow_vectors, name="another hidden width", via=built(6, hidden=11), axes="b t e"),
                parameters(0.5, via=built(6)),
                any_device(0.5, narrow_vectors, via=built(6)),
            ),
            forbidden={
                "FinishedFeedForward": "The finished network is there for the exercises that build on this one."
            },
        ),
        Exercise(
            "TransformerBlock",
            stars=3,
            minutes=18,
            aspects=(
                values(1, sentences, name="norm last", via=BLOCK, axes="b t e", picture=True),
                values(1, sentences, name="norm first", via=BLOCK_FIRST, axes="b t e", picture=True),
                Aspect("mask", 1, masked(8, 2), axes="b t e"),
                Aspect("dropout in training", 1, dropped(8, 2), axes="b t e", missed=TRAINING),
                Aspect("dropout in evaluation", 0.5, evaluated(8, 2), side=True, missed=EVALUATION),
                parameters(0.5, via=BLOCK),
                input_left_alone(0.5, sentences, via=BLOCK_FIRST),
                any_device(0.5, sentences, via=BLOCK),
            ),
            forbidden={
                "TransformerEncoderLayer": PYTORCHS,
                "FinishedBlock": (
                    "The finished block is there for the exercise that builds on this one. Its four layers you may use."
                ),
            },
        ),
        Exercise(
            "Transformer",
            stars=2,
            minutes=12,
            aspects=(
                values(1, sentences, name="norm last", via=STACK, axes="b t e", picture=True),
                values(1, sentences, name="norm first", via=STACK_FIRST, axes="b t e", picture=True),
                parameters(0.5, via=STACK_FIRST),
                Aspect("mask", 0.5, masked(8, 2, 3), axes="b t e"),
                Aspect("dropout in training", 0.5, dropped(8, 2, 3), axes="b t e", missed=TRAINING),
                any_device(0.5, sentences, via=STACK_FIRST),
            ),
        ),
        Exercise(
            "block_parameters",
            stars=1,
            minutes=6,
            aspects=(Aspect("count", 2, several_sizes, accepts="number", rtol=0, atol=1e-9),),
            forbidden=dict.fromkeys(
                ("FinishedBlock", "TransformerBlock", "numel"),
                "Count on paper, layer by layer, and return a formula in e and h; the cell below holds it against a"
                " real block.",
            ),
        ),
    ),
)
