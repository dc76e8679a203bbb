"""Lesson 22: a model of one's own, of at most one megabyte."""

from __future__ import annotations

import torch

from helpers.exercises import open_task
from helpers.exercises.aspects import Inputs
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import NORM_OPERATORS, SOFTMAX_OPERATORS, Exercise, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import any_device, case, exercise, gradient, input_left_alone, integer, values

BY_HAND = "Write the whole model with tensors: no module of PyTorch, and no attention function."


def trained(draw: Draw, n: int, e: int, depth: int, t_max: int) -> dict[str, torch.Tensor]:
    """Weights of a decoder, named as `nn.TransformerEncoderLayer` names them."""
    shapes: dict[str, tuple[int, ...]] = {"tokens": (n, e), "positions": (t_max, e), "norm.weight": (e,)}
    shapes["norm.bias"] = (e,)
    for place in range(depth):
        block = {"self_attn.in_proj_weight": (3 * e, e), "self_attn.in_proj_bias": (3 * e,)}
        block |= {"self_attn.out_proj.weight": (e, e), "self_attn.out_proj.bias": (e,)}
        block |= {"linear1.weight": (4 * e, e), "linear1.bias": (4 * e,)}
        block |= {"linear2.weight": (e, 4 * e), "linear2.bias": (e,)}
        block |= {f"norm{which}.{part}": (e,) for which in (1, 2) for part in ("weight", "bias")}
        shapes |= {f"blocks.{place}.{name}": shape for name, shape in block.items()}
    widths = {name: shape[-1] ** 0.5 if len(shape) > 1 else 2 for name, shape in shapes.items()}
    return {name: draw.named(name).normal(*shape) / widths[name] for name, shape in shapes.items()}


def decoder_inputs(b: int, t: int, e: int, h: int, depth: int, n: int = 11) -> Inputs:
    """Weights by name, ids (b, t), and how many heads."""

    def inputs(draw: Draw) -> tuple:
        weights = trained(draw, n, e, depth, t + draw.number(0, 3))
        return weights, draw.integers(0, n, b, t), h

    return inputs


def faint(draw: Draw) -> tuple:
    """Weights whose vectors hardly vary: the ε of a norm counts."""
    weights, *others = decoder_inputs(2, 4, 6, 2, 1)(draw)
    return {name: weight / (150 if name in ("tokens", "positions") else 1) for name, weight in weights.items()}, *others


def long_text(draw: Draw) -> tuple:
    """A longer text, more heads, and more blocks than numbers of one digit."""
    h = draw.number(5, 8)
    weights = trained(draw, 90, 6 * h, draw.number(11, 13), 70)
    return weights, draw.integers(0, 90, draw.number(9, 12), draw.number(50, 70)), h


decoder = exercise(
    "decoder",
    stars=3,
    minutes=20,
    given=decoder_inputs(2, 5, 6, 2, 2),
    also={
        "with a batch of one": decoder_inputs(1, 4, 8, 4, 1),
        "with one position": decoder_inputs(3, 1, 6, 3, 2),
        "with one head": decoder_inputs(2, 3, 4, 1, 2),
        "with no block": decoder_inputs(2, 4, 6, 2, 0),
        "with small embeddings": faint,
        "with as many positions as texts": decoder_inputs(3, 3, 6, 3, 1),
    },
    larger=long_text,
    aspects=(values(3, axes="b t n"), input_left_alone(0.25)),
    by_hand=BY_HAND,
    operators=(*SOFTMAX_OPERATORS, *NORM_OPERATORS, "gelu", "embedding"),
)


def distributions(m: int, b: int, n: int, zeros: float = 0.0) -> Inputs:
    """Log-probabilities of m models (m, b, n), some of which may be minus infinity, and weights (m,)."""

    def inputs(draw: Draw) -> tuple:
        logits = draw.normal(m, b, n, std=3.0)
        if zeros:
            logits = logits.masked_fill(draw.mask(zeros, m, b, n), -torch.inf)
            logits[..., 0] = 0.0
        return torch.log_softmax(logits, dim=-1), draw.uniform(0.2, 1, m).softmax(dim=0)

    return inputs


def unlikely(draw: Draw) -> tuple:
    """Log-probabilities whose exponentials are 0, in double precision too."""
    log_p, w = distributions(3, 2, 4)(draw)
    return log_p - 900.0 * draw.mask(0.5, 1, 2, 4), w


def many_models(draw: Draw) -> tuple:
    """Twenty models and more."""
    return distributions(draw.number(20, 30), draw.number(30, 40), 256, zeros=0.1)(draw)


mix = exercise(
    "mix",
    stars=1,
    minutes=5,
    fixes_bug=True,
    given=distributions(3, 4, 5),
    also={
        "with a single model": distributions(1, 2, 6),
        "with a batch of one": distributions(2, 1, 5),
        "with as many models as contexts": distributions(4, 4, 7),
    },
    larger=many_models,
    aspects=(
        values(1, axes="b n", picture=True),
        values(0.5, given=distributions(2, 3, 6, zeros=0.3), name="probabilities of 0", axes="b n"),
        values(0.5, given=unlikely, name="tiny probabilities", axes="b n"),
        gradient(0.25),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)


def said_of_targets(m: int, n: int, steps: int) -> Inputs:
    """Log-probabilities that m models give to n targets, (m, n), and how many steps."""
    return case(lambda draw: -draw.normal(m, n, std=2.0).abs() - draw.uniform(0, 2, m, 1), steps)


def much_alike(draw: Draw) -> tuple:
    """Two models of which one is better by so little that each step changes the weights by less than 0.0001."""
    return torch.tensor([[4e-4], [0.0]]) - 0.1 - 1e-4 * draw.normal(2, 40), 400


mixture_weights = exercise(
    "mixture_weights",
    stars=2,
    minutes=8,
    given=said_of_targets(3, 7, 4),
    also={
        "with no step": said_of_targets(3, 5, 0),
        "with one step": said_of_targets(2, 6, 1),
        "with a single model": said_of_targets(1, 4, 3),
        "with as many models as targets": said_of_targets(4, 4, 2),
        "with tiny probabilities": case(lambda draw: -900 - draw.normal(3, 6).abs(), 2),
        "with models that are much alike": much_alike,
    },
    larger=case(lambda draw: -draw.heavy(draw.number(9, 12), draw.number(300, 400)).abs(), integer(12, 18)),
    aspects=(
        values(
            1.5,
            axes="model",
            missed="Try it by hand with probabilities ((0.9, 0.2), (0.1, 0.2)): before any step the weights are (0.5,"
            " 0.5), after one (0.7, 0.3), after two (0.83, 0.17).",
        ),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

POINTS = {"order 0": 1.0, "gzip": 1.0, "xz": 1.0, "a small transformer": 1.0, "the course's best": 1.0}

model = Exercise(
    "Model",
    stars=3,
    minutes=25,
    aspects=open_task.landmark_aspects(POINTS),
    builds_on=(
        "one_megabyte.ByteTransformer",
        "one_megabyte.cache_log_probabilities",
        "one_megabyte.from_int8",
        "one_megabyte.table_log_probabilities",
    ),
    no_larger="all contexts have 256 bytes, and there are hundreds",
    seconds=120,
    score=open_task.bits_per_byte,
)

LESSON = Lesson(
    "22_your_own", "A model of your own", (decoder, mix, mixture_weights, model), predictions_of("22_your_own")
)
