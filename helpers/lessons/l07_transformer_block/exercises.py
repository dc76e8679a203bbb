"""Lesson 7: the transformer block."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from helpers.exercises import aspects
from helpers.exercises.aspects import Fault, Inputs, Via, built, fill, kind_of, renamed
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import (
    ATTENTION_OPERATORS,
    NORM_OPERATORS,
    Answer,
    Aspect,
    Collected,
    Kind,
    Lesson,
    Probe,
)
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    Part,
    Size,
    any_device,
    case,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    module,
    normal,
    parameters,
    size,
    values,
)
from helpers.exercises.tolerance import GRADIENTS

PYTORCHS = "It is PyTorch's own, and the lesson compares yours with it. Write out what it does."

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
                parameter.copy_(0.5 * draw.weights(name, *parameter.shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x)
        for block in self.blocks:
            x = block(x)
        return self.after(x)


def tower(answer: Answer, draw: Draw) -> Callable:
    """The student's function on a tower of drawn weights, of four blocks if nothing else is said."""
    return lambda x, depth=4: _measured(answer, Tower(draw, x.shape[-1], depth).to(x.device), x)


def _measured(answer: Answer, model: Tower, x: torch.Tensor) -> object:
    """What the answer returns; Fault, in one form for all ways to come upon it, where it reads gradients too late."""
    try:
        return answer(model, x)
    except (AttributeError, TypeError) as problem:
        if "NoneType" in str(problem) and all(parameter.grad is None for parameter in model.parameters()):
            raise Fault(
                "Your code meets None where it expects a gradient: no parameter of the model holds one."
            ) from None
        raise


def tower_with_gradients(answer: Answer, draw: Draw) -> Callable:
    """The tower has been trained before: its parameters still hold gradients."""
    model = Tower(draw)
    for name, parameter in model.named_parameters():
        parameter.grad = draw.named(f"gradient of {name}").normal(*parameter.shape).to(parameter.device)
    return lambda x: _measured(answer, model.to(x.device), x)


gradient_by_depth = exercise(
    "gradient_by_depth",
    stars=2,
    minutes=12,
    given=case(normal(2, 5, 4)),
    also={
        "for a model of a single block": case(normal(2, 5, 4), 1),
        "with a batch of one": case(normal(1, 5, 4)),
        "with a single position": case(normal(2, 1, 4)),
        "for another width": case(normal(2, 3, 6)),
    },
    larger=case(heavy(size(9, 13), size(16, 21), size(22, 29)), size(9, 13)),
    via=tower,
    aspects=(
        values(2.5, axes="block"),
        values(1, given=case(normal(2, 5, 4)), name="gradients from before", via=tower_with_gradients, axes="block"),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ------------------------------------------------------------------------------------------------- FeedForward

AS_WIDE_AS_ITS_INPUT = module(lambda x: ((x.shape[-1],), (x,)))

feed_forward = exercise(
    "FeedForward",
    stars=1,
    minutes=7,
    given=case(normal(2, 5, 6)),
    also={
        "with a batch of one": case(normal(1, 5, 6)),
        "with a single position": case(normal(2, 1, 6)),
        "with large components": case(lambda draw: 30 * draw.normal(2, 5, 6)),
    },
    larger=case(heavy(size(9, 13), size(24, 33), size(34, 49))),
    via=built(6),
    aspects=(
        values(1, via=AS_WIDE_AS_ITS_INPUT, axes="b t e", picture=True),
        values(0.5, given=case(normal(2, 5, 5)), name="another hidden width", via=built(5, hidden=11), axes="b t e"),
        gradient(0.5, weights=("widen.weight", "narrow.bias")),
        parameters(0.5, via=built(5)),
        input_left_alone(0.25),
        any_device(0.25),
    ),
    forbidden={"FinishedFeedForward": "The finished network is for the exercises that build on this one."},
)

# --------------------------------------------------------------------------------------------------- LayerNorm

OTHER_EPSILON = 0.2


def vectors(*shape: Size) -> Part:
    """Vectors whose components have neither mean 0 nor variance 1."""
    return normal(*shape, mean=1.5, std=2.0)


OTHER_VECTORS = {
    "with a batch of one": case(vectors(1, 5, 8)),
    "with a single position": case(vectors(3, 1, 8)),
}


class OfWideVectors(torch.nn.Module):
    """The student's norm of vectors of 1,024 components, as a function of 8, each of which is there 128 times.

    Mean and variance are those of the 8 components. A sum that is divided by e − 1 instead of e makes hardly any
    difference here, so that what depends on epsilon shows by itself.
    """

    TIMES = 128

    def __init__(self, answer: Answer, draw: Draw, **options: object):
        super().__init__()
        self.norm = built(8 * self.TIMES, **options)(answer, draw)
        with torch.no_grad():
            for name, parameter in self.norm.named_parameters():
                if parameter.shape == (8 * self.TIMES,):
                    parameter.copy_(draw.weights(name, 8).repeat(self.TIMES) / 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x.repeat(1, 1, self.TIMES))
        return normed[..., :8] if isinstance(normed, torch.Tensor) else normed


def constant_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Eighths, so that the mean of eight of them is exact."""
    return ((draw.integers(-20, 20, 3, 5, 1) / 8).expand(3, 5, 8).clone(),)


def far_vectors(draw: Draw) -> tuple[torch.Tensor]:
    """Quarters around 4,096: sums and differences are exact in any order, and squares have lost their last digits.

    The variance is some 20, beside which no epsilon shows, nor the roundings of PyTorch's own norm.
    """
    return (4096 + draw.integers(-32, 33, 3, 5, 8) / 4,)


def where_epsilon_matters(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Small vectors with the epsilon that is the default, and ordinary ones with a large one.

    The small ones have variances near 1e-5, which is epsilon: there it matters where epsilon is added.
    """
    large = OfWideVectors(answer, draw, epsilon=OTHER_EPSILON)
    return {
        "result": OfWideVectors(answer, draw)(draw.normal(3, 5, 8, std=0.003)),
        f"with an epsilon of {OTHER_EPSILON}": large(vectors(3, 5, 8)(draw.named("large epsilon"))),
    }


layer_norm = exercise(
    "LayerNorm",
    stars=2,
    minutes=10,
    fixes_bug=True,
    given=case(vectors(3, 5, 8)),  # e = 8; sequences of 5 positions, 3 of them: no two sizes alike
    also=OTHER_VECTORS,
    larger=case(heavy(size(9, 13), size(24, 33), size(34, 49))),
    via=built(8),
    aspects=(
        values(1, via=AS_WIDE_AS_ITS_INPUT, axes="b t e", picture=True),
        # the two bugs apart: one costs the values and the gradient, the other the small inputs
        Aspect("small inputs", 1.5, where_epsilon_matters, axes="b t e", picture=True, rtol=1e-3, atol=1e-3),
        values(
            0.5,
            given=constant_vectors,
            name="constant and large inputs",
            via=OfWideVectors,
            also={"with components around 4,096": far_vectors},
            axes="b t e",
            rtol=1e-3,
            atol=1e-3,
        ),
        gradient(0.5, also=OTHER_VECTORS, weights=True),
        input_left_alone(0.25),
        any_device(0.25),
    ),
    forbidden={"FinishedNorm": "The finished norm is for the exercises that build on this one."},
    by_hand=PYTORCHS,
)

# ------------------------------------------------------------------------------ TransformerBlock and Transformer

ORDERS = {"post-norm": False, "pre-norm": True}
SENTENCES = case(normal(3, 5, 8))
OTHER_SENTENCES = {
    "with a batch of one": case(normal(1, 5, 8)),
    "with a single position": case(normal(3, 1, 8)),
}


def sentences_and_mask(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Three sentences of 5 positions (3, 5, 8), and a mask that hides the future (5, 5)."""
    return draw.normal(3, 5, 8), torch.ones(5, 5, dtype=torch.bool, device=draw.device).tril()


def both_orders(
    answer: Answer, draw: Draw, *sizes: int, training: bool = False, **options: object
) -> Iterator[tuple[str, torch.nn.Module]]:
    """The student's module for each order of norm and layer, with the same drawn weights."""
    for name, pre_norm in ORDERS.items():
        yield name, built(*sizes, pre_norm=pre_norm, **options)(answer, draw).train(training)


def masked(*sizes: int) -> Probe:
    """With time masked, and with padding masked, in both orders.

    Copies of x go in: changing it in place is another aspect's business.
    """

    def probe(answer, draw):
        x = draw.normal(3, 5, sizes[0])
        time = torch.ones(5, 5, dtype=torch.bool, device=x.device).tril()
        real = draw.uniform(0, 1, 3, 1, 5).argsort(-1) < 3  # of five positions, three are real
        return {
            f"with {name} and {kind} hidden": layer(x.clone(), mask)
            for name, layer in both_orders(answer, draw, *sizes)
            for kind, mask in (("the future", time), ("padding", real))
        }

    return probe


def gradient_in_both_orders(points: float, *sizes: int, weights: tuple[str, ...]) -> Aspect:
    """The gradients for x and for some parameters, in both orders of norm and layer, with the same drawn weights."""

    def probe(answer, draw):
        gradients: dict[str, object] = {}
        for name, pre_norm in ORDERS.items():
            learned = aspects.gradient(0, SENTENCES, via=built(*sizes, pre_norm=pre_norm), weights=weights)
            returned = learned.probe(answer, draw)
            if not isinstance(returned, dict):
                return returned
            gradients |= {f"{_of_x(which)} with {name}": value for which, value in returned.items()}
        return gradients

    return renamed(aspects.gradient(points, SENTENCES), "gradient", probe=probe)


def _of_x(which: str) -> str:
    return "gradient of x" if which == "gradient 0" else which


LEFT = {1.0: "only shortcuts and norms are left", 0.0: "nothing is dropped"}


def dropped(*sizes: int) -> Probe:
    """In training with a chance of 1: every layer's output is dropped, the shortcuts are left, and nothing is luck.

    With a chance of 0 nothing is dropped: an answer that takes the chance of keeping for that of dropping fails here.
    """

    def probe(answer, draw):
        x = draw.normal(3, 5, 8)
        return {
            f"in training with {name} and a dropout of {chance:g}, where {left}": layer(x.clone())
            for chance, left in LEFT.items()
            for name, layer in both_orders(answer, draw, *sizes, dropout=chance, training=True)
        }

    return probe


LAST_BIAS = {"attention": "attention.unify.bias", "network": "feed_forward.narrow.bias"}


HALF_DROPPED = "in training with {} and a dropout of 0.5, what a kept 1 of the {} becomes"


def half_dropped(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """What `dropped` shows of a block, and what it returns where half of each layer's output is dropped: (16, 16, 8).

    One layer returns ones and the other zeros, the norms have weight 1; four components of x are 0 and four are 1.
    """
    outputs = dropped(8, 2)(answer, draw)
    x = torch.tensor([0.0] * 4 + [1.0] * 4, device=draw.device).expand(16, 16, 8)
    for layer, bias in LAST_BIAS.items():
        for name, block in both_orders(answer, draw, 8, 2, dropout=0.5, training=True):
            with torch.no_grad():
                for parameter, weights in block.named_parameters():
                    weights.fill_(parameter == bias or "norm" in parameter and parameter.endswith("weight"))
                outputs[HALF_DROPPED.format(name, layer)] = block(x.clone())
    return outputs


def dropped_and_scaled(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """The same, and instead of what is half dropped, by what a component that is kept was multiplied.

    Nothing of it is luck. Whatever a norm makes of the sum: in a vector in which both kinds of component were dropped
    and some component was kept, the distance of the kept one, over the distance of 0 and 1, is what 1 has become.
    """
    reduced = {HALF_DROPPED.format(name, layer) for name in ORDERS for layer in LAST_BIAS}
    return {name: kept(output) if name in reduced else output for name, output in collected.items()}


def kept(output: torch.Tensor) -> torch.Tensor:
    """What 1 has become, one number."""
    if output.shape != (16, 16, 8):
        raise Fault(f"For an input of shape (16, 16, 8) your block returns {tuple(output.shape)}.")
    low, high = output.split(4, dim=-1)
    first, second = low.amin(dim=-1), high.amin(dim=-1)
    return ((low.amax(dim=-1) - first) / (second - first)).nanmedian()


def parameters_in_both_orders(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The names and shapes of a stack of two blocks, with either order."""
    lines = []
    for pre_norm, order in ((True, ""), (False, " with pre_norm=False")):
        stack = built(8, 2, 2, pre_norm=pre_norm)(answer, draw)
        lines += [f"{name} {tuple(parameter.shape)}{order}" for name, parameter in stack.named_parameters()]
    text = "\n".join(sorted(lines))
    return {"names and shapes": torch.tensor(list(text.encode()[:4000]), dtype=torch.uint8)}


def evaluated(*sizes: int, calls: int = 6) -> Probe:
    """How many of the calls in evaluation, with a dropout of one half, differ from the module without dropout.

    A single call has 120 components a layer and drops none of them with a chance of 2⁻¹²⁰.
    """

    def probe(answer, draw):
        x = draw.normal(3, 5, 8)
        plain = {name: layer(x.clone()) for name, layer in both_orders(answer, draw, *sizes, dropout=0.0)}
        return {
            f"with {name}": torch.tensor(
                sum(not torch.allclose(layer(x.clone()), plain[name], rtol=1e-4, atol=1e-5) for _ in range(calls))
            )
            for name, layer in both_orders(answer, draw, *sizes, dropout=0.5)
        }

    return probe


EVALUATION = (
    "After `model.eval()` nothing may be dropped or scaled: the same input has to give the same output, call after"
    " call, as without dropout."
)


def block_and_sentences(x: torch.Tensor, h: int = 2) -> tuple[tuple, tuple]:
    """What a block for sentences (b, t, e) is made of, and what it is given."""
    return (x.shape[-1], h), (x,)


transformer_block = exercise(
    "TransformerBlock",
    stars=2,
    minutes=15,
    given=SENTENCES,
    also=OTHER_SENTENCES,
    larger=case(heavy(size(9, 11), size(65, 73), size(5, 9, of=6)), 6),
    via=built(8, 2),
    aspects=(
        values(1, name="post-norm", via=module(block_and_sentences), axes="b t e", picture=True),
        values(1, name="pre-norm", via=module(block_and_sentences, pre_norm=True), axes="b t e", picture=True),
        gradient_in_both_orders(0.5, 8, 2, weights=("norm1.weight", "feed_forward.narrow.bias")),
        Aspect("mask", 0.5, masked(12, 3), axes="b t e"),
        Aspect("dropout in training", 1, half_dropped, axes="b t e", reduce=dropped_and_scaled),
        Aspect("dropout in evaluation", 0.5, evaluated(8, 2), side=True, missed=EVALUATION),
        parameters(0.5),
        input_left_alone(0.5, given=sentences_and_mask, via=built(8, 2, pre_norm=True)),
        any_device(0.5),
    ),
    forbidden={
        "TransformerEncoderLayer": PYTORCHS,
        "FinishedBlock": "The finished block is for the exercise that builds on this one. You may use its four layers.",
    },
    by_hand=PYTORCHS,
    operators=(*ATTENTION_OPERATORS, *NORM_OPERATORS),
    builds_on=("blocks.FeedForward", "blocks.LayerNorm", "blocks.SelfAttention"),
)


def stack_and_sentences(x: torch.Tensor, h: int = 2, depth: int = 3) -> tuple[tuple, tuple]:
    """What a stack for sentences (b, t, e) is made of, and what it is given."""
    return (x.shape[-1], h, depth), (x,)


transformer = exercise(
    "Transformer",
    stars=2,
    minutes=12,
    given=SENTENCES,
    also=OTHER_SENTENCES,
    larger=case(heavy(size(9, 13), size(14, 19), size(3, 5, of=6)), 6, size(9, 11)),
    via=built(8, 2, 3, pre_norm=True),
    aspects=(
        values(0.5, name="post-norm", via=module(stack_and_sentences), axes="b t e", picture=True),
        values(1, name="pre-norm", via=module(stack_and_sentences, pre_norm=True), axes="b t e", picture=True),
        gradient_in_both_orders(0.5, 8, 2, 3, weights=("blocks.0.norm1.weight",)),
        Aspect("parameters", 0.5, parameters_in_both_orders, side=True, kind=Kind.PARAMETERS),
        Aspect("mask", 0.5, masked(12, 3, 2), axes="b t e"),
        Aspect("dropout in training", 0.5, dropped(8, 2, 3), axes="b t e"),
        input_left_alone(0.25, given=sentences_and_mask),
        any_device(0.25),
    ),
    builds_on=("blocks.LayerNorm", "blocks.TransformerBlock"),
)

# ------------------------------------------------------------------------------------------------------- ablated

PIECES = ("attention", "network", "shortcuts", "norms")
LEARNED = ("attention.to_values.weight", "norm1.weight", "feed_forward.narrow.bias", "norm2.bias")


def drawn_block(draw: Draw, e: int, h: int, pre_norm: bool) -> torch.nn.Module:
    """A finished block with drawn weights, without dropout."""
    from helpers.parts.blocks import TransformerBlock

    return fill(TransformerBlock(e, h, pre_norm), draw)


def what_is_left(answer: Answer, block: torch.nn.Module, piece: str) -> Callable:
    """What the student's function makes of a block; Fault where that cannot be called."""
    left = answer(block, piece)
    if not callable(left):
        raise Fault(
            f"For {piece!r} your function returns {kind_of(left)}. It has to return what can be called as the block"
            " is: a function or a module."
        )
    return left


def without(piece: str) -> Via:
    """The student's function on a drawn block, as a function of x, of the heads, of the order, and of a mask."""

    def via(answer: Answer, draw: Draw) -> Callable:
        def call(x: torch.Tensor, h: int, pre_norm: bool, mask: torch.Tensor | None = None) -> object:
            left = what_is_left(answer, drawn_block(draw, x.shape[-1], h, pre_norm).to(x.device), piece)
            return left(x) if mask is None else left(x, mask)

        return call

    return via


def with_the_future_hidden(pre_norm: bool) -> Inputs:
    """Three sentences of 5 positions for two heads (3, 5, 8), an order, and a mask (5, 5)."""

    def inputs(draw: Draw) -> tuple:
        x, mask = sentences_and_mask(draw)
        return x, 2, pre_norm, mask

    return inputs


class Left(torch.nn.Module):
    """A drawn block, and what the answer leaves of it: a module with the block's parameters, a function of x."""

    def __init__(self, answer: Answer, draw: Draw, piece: str, pre_norm: bool):
        super().__init__()
        self.block = drawn_block(draw, 8, 2, pre_norm)
        self.left = (what_is_left(answer, self.block, piece),)  # in a tuple: its own parameters are not asked for

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.left[0](x)


def for_each_piece(answer: Answer, draw: Draw) -> Iterator[tuple[str, Left]]:
    """What is left without each of the pieces, in each order of norm and layer, from the same drawn weights."""
    for piece in PIECES:
        for order, pre_norm in ORDERS.items():
            yield f"without {piece}, {order}", Left(answer, draw, piece, pre_norm)


def given(module: torch.nn.Module) -> Via:
    """No answer's: this module."""
    return lambda answer, draw: module


def gradients_of_what_is_left(answer: Answer, draw: Draw) -> object:
    """The gradients for x and for some of the block's own parameters, which are 0 for what was taken out."""
    gradients: dict[str, object] = {}
    for name, left in for_each_piece(answer, draw):
        learned = aspects.gradient(0, SENTENCES, via=given(left), weights=tuple(f"block.{each}" for each in LEARNED))
        returned = learned.probe(answer, draw)
        if not isinstance(returned, dict):
            return returned
        gradients |= {f"{_of_x(which)} {name}": value for which, value in returned.items()}
    return gradients


def with_other_weights(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """What is left returns where the block gets other weights after the piece was taken out."""
    outputs = {}
    for name, left in for_each_piece(answer, draw):
        fill(left.block, draw.named("trained"))
        outputs[name] = left(draw.named("x").normal(2, 3, 8))
    return outputs


def the_block_itself(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """What the given block returns after a piece was taken out and what is left was called."""
    outputs = {}
    for name, left in for_each_piece(answer, draw):
        left(draw.normal(2, 3, 8))
        outputs[f"the block's output after its copy {name}"] = left.block(draw.named("x").normal(2, 3, 8))
    return outputs


OWN_WEIGHTS = (
    "Here the block gets other weights after your function was called. What it returned has to use those, too."
)
BLOCK_CHANGED = (
    "The block that was given is changed: called afterwards, it returns other numbers than before. An attribute that"
    " is set on the block, or a weight that is overwritten, is set for everybody who uses the block."
)

ablated = exercise(
    "ablated",
    stars=3,
    minutes=18,
    given=case(normal(3, 5, 8), 2, True),
    also={
        "with post-norm": case(normal(3, 5, 8), 2, False),
        "with the future hidden": with_the_future_hidden(True),
        "with post-norm and the future hidden": with_the_future_hidden(False),
        "with a batch of one": case(normal(1, 5, 8), 2, True),
        "with a single position": case(normal(3, 1, 8), 2, False),
    },
    larger=case(heavy(size(9, 13), size(24, 33), size(5, 9, of=6)), 6, True),
    via=without("attention"),
    aspects=(
        *(values(1, name=f"without {piece}", via=without(piece), axes="b t e", picture=True) for piece in PIECES),
        Aspect(
            "gradient", 0.5, gradients_of_what_is_left, kind=Kind.GRADIENT, rtol=GRADIENTS.rtol, atol=GRADIENTS.atol
        ),
        Aspect("shared weights", 0.5, with_other_weights, axes="b t e", missed=OWN_WEIGHTS),
        Aspect("block left alone", 0.5, the_block_itself, side=True, kind=Kind.ARGUMENT, missed=BLOCK_CHANGED),
        input_left_alone(0.25),
        any_device(0.25),
    ),
    builds_on=("blocks.TransformerBlock",),
)

LESSON = Lesson(
    "07_transformer_block",
    "The transformer block",
    (gradient_by_depth, feed_forward, layer_norm, transformer_block, transformer, ablated),
    predictions_of("07_transformer_block"),
)
