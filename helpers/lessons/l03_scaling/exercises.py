"""Lesson 3: scaling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.aspects import Fault, Inputs
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    any_device,
    case,
    exercise,
    gradient,
    input_left_alone,
    normal,
    parameters,
    values,
    with_larger,
)

# ------------------------------------------------------------------------------------------ score_variance
#
# The card says how the vectors are drawn, so the generator's seed decides the result, up to roundings: torch's normal
# numbers differ by these between processors. torch makes the numbers of one call in blocks of 16. With a multiple of 16
# pairs, queries and keys that are drawn together are the same numbers as in two calls.
#
# The generator lives on the CPU on every machine, and there is no input that could be elsewhere: no "any device" here.

DRAWN_OTHERWISE = (
    "Remember: the queries come from one torch.randn(samples, d, generator=generator), the keys from a second one, and"
    " nothing else is drawn; there is one score for each pair; and the variance is around the mean of all scores."
)

ONWARDS = (
    "Remember: a later call with the same generator draws the numbers that follow. Do not seed it or make your own."
)


def pairs(d: tuple[int, int], sixteens: tuple[int, int]) -> Inputs:
    """A width, a number of pairs, and a generator. d, sixteens: the bounds of the width and of 1/16 of the pairs."""

    def inputs(draw: Draw) -> tuple[int, int, torch.Generator]:
        generator = torch.Generator().manual_seed(draw.number(0, 2**31))
        return draw.number(*d), 16 * draw.number(*sixteens), generator

    return inputs


def later_measurements(answer: Answer, draw: Draw) -> dict[str, Any]:
    """The second and the third result with one generator."""
    *sizes, generator = pairs((4, 9), (2, 6))(draw)
    _, second, third = (answer(*sizes, generator) for _ in range(3))
    return {"in a second call with the same generator": second, "in a third": third}


score_variance = exercise(
    "score_variance",
    stars=1,
    minutes=8,
    given=pairs((4, 9), (2, 6)),
    also={
        "for wide vectors": pairs((50, 90), (2, 6)),
        "for d = 1": pairs((1, 2), (3, 9)),
        "for 16 pairs": pairs((9, 20), (1, 2)),
    },
    larger=pairs((130, 200), (100, 200)),
    aspects=(
        values(2, accepts="number", rtol=1e-3, missed=DRAWN_OTHERWISE),
        Aspect("later measurements", 1, later_measurements, accepts="number", rtol=1e-3, missed=ONWARDS),
    ),
)

# -------------------------------------------------------------------------------- softmax_backward and entropy


def softmaxed(*shape: int) -> Inputs:
    """Weights of this shape: their rows sum to 1, and are neither flat nor saturated."""
    return lambda draw: (torch.softmax(1.5 * draw.normal(*shape), dim=-1),)


def weights_on_one_key(draw: Draw) -> tuple[torch.Tensor]:
    """Each row has a single key with all the weight, (2, 3, 1)."""
    return (torch.ones(2, 3, 1).to(draw.device),)


def many_weights(draw: Draw) -> tuple[torch.Tensor]:
    """Rows of weights over many keys, of which a few have most. Few enough rows for a Jacobian of each."""
    return (torch.softmax(draw.heavy(draw.number(5, 7), 6, draw.number(66, 76), most=8.0), dim=-1),)


weights, one_row_of_weights = softmaxed(2, 3, 5), softmaxed(6)
FURTHER_WEIGHTS = {
    "with a batch of one": softmaxed(1, 4, 3),
    "with a single query": softmaxed(2, 1, 4),
    "with as many queries as keys": softmaxed(2, 4, 4),
    "with an axis for heads": softmaxed(2, 3, 4, 5),
    "with a single key": weights_on_one_key,
}


def from_scores(answer: Answer, draw: Draw) -> Callable[[torch.Tensor], torch.Tensor]:
    """The answer as a function of the scores that its weights came from.

    Weights sum to 1, and only what leaves them so is asked for: p(1 − p) and p times the sum of the others are the
    same there, and have other derivatives beside.
    """
    return lambda scores: answer(torch.softmax(scores, dim=-1))


def scores(draw: Draw) -> tuple[torch.Tensor]:
    """Scores (2, 3, 5)."""
    return (1.5 * draw.normal(2, 3, 5),)


def weights_and_gradient(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights (2, 3, 5), and a gradient with respect to them whose rows have means that differ from 0."""
    return (*weights(draw), draw.normal(2, 3, 5, std=2.0) + draw.uniform(1, 2, 2, 3, 1))


def one_row_and_gradient(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """A distribution (6,) and its gradient, no batch."""
    return (*one_row_of_weights(draw), draw.normal(6, std=2.0) + 1.5)


def and_gradient(inputs: Inputs) -> Inputs:
    """These weights, and a gradient with respect to them."""

    def both(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        (p,) = inputs(draw)
        return p, draw.normal(*p.shape, std=2.0) + 1.0

    return both


FURTHER_GRADIENTS = {case: and_gradient(inputs) for case, inputs in FURTHER_WEIGHTS.items()}


def from_scores_with_gradient(answer: Answer, draw: Draw) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The answer as a function of scores and g; see `from_scores`."""
    return lambda scores, g: answer(torch.softmax(scores, dim=-1), g)


scores_and_gradient = and_gradient(scores)


softmax_backward = exercise(
    "softmax_backward",
    stars=2,
    minutes=12,
    given=weights_and_gradient,
    also=FURTHER_GRADIENTS,
    larger=and_gradient(many_weights),
    aspects=(
        values(2, axes="b t s", picture=True),
        values(1, given=one_row_and_gradient, name="a single row", axes="s"),
        gradient(1, given=scores_and_gradient, via=from_scores_with_gradient),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)


def weights_with_zeros(draw: Draw) -> tuple[torch.Tensor]:
    """Some weights exactly 0, as after a mask; one row has all its weight on one position."""
    scores = 1.5 * draw.normal(2, 3, 5)
    for row in range(3):
        scores[0, row, draw.permutation(5)[: row + 1]] = -math.inf
    scores[1, 0, 1:] = -math.inf
    return (torch.softmax(scores, dim=-1),)


attention_entropy = exercise(
    "attention_entropy",
    stars=2,
    minutes=8,
    given=weights,
    also=FURTHER_WEIGHTS | {"for a single row": one_row_of_weights},
    larger=many_weights,
    aspects=(
        values(1.5, axes="b t"),
        values(1, given=weights_with_zeros, name="weights of 0", axes="b t"),
        gradient(0.5, given=scores, via=from_scores),
        input_left_alone(0.5, given=weights_with_zeros),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------ measured_scale
#
# `attend` multiplies queries and keys by two drawn numbers whose product is the factor: neither of them is the answer.

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def attention_with(factor: float, d: int, share: float) -> Attend:
    """Attention for vectors of width d that multiplies its scores by this factor, in part the queries: factor^share."""
    on_queries, on_keys = factor**share, factor ** (1 - share)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        for name, each in {"q": q, "k": k}.items():
            if each.shape[-1] != d:
                raise ValueError(f"attend was built for d = {d}; your {name} has the shape {tuple(each.shape)}")
        return torch.softmax((on_queries * q) @ (on_keys * k).mT, dim=-1) @ v

    return attend


def with_factor(low: float, high: float, widths: tuple[int, int]) -> Inputs:
    """Attention of a drawn width, whose factor is between low and high, and evenly spread in its logarithm; and d."""

    def inputs(draw: Draw) -> tuple[Attend, int]:
        d, share = draw.number(*widths), draw.uniform(0.3, 0.7).item()
        power = draw.uniform(math.log(low), math.log(high)).item()
        return attention_with(math.exp(power), d, share), d

    return inputs


SATURATED = (
    "Remember: when the products q·k differ too much, one weight is 0 in float32; when they are almost the same, the"
    " weights are equal up to rounding. You choose q and k, so you choose the products."
)

measured_scale = exercise(
    "measured_scale",
    stars=2,
    minutes=10,
    given=with_factor(0.1, 0.6, (5, 10)),
    also={
        "for wide vectors": with_factor(0.04, 0.2, (50, 90)),
        "for d = 1": with_factor(0.5, 0.9, (1, 2)),
        "for d = 2": with_factor(1.2, 2.0, (2, 3)),
    },
    larger=with_factor(6, 10, (700, 1000)),
    aspects=(
        values(1.5, accepts="number", rtol=1e-2, atol=0.0),
        *(
            values(
                0.75,
                given=with_factor(low, high, (9, 20)),
                name=f"{size} factors",
                accepts="number",
                rtol=1e-2,
                atol=0.0,
                missed=SATURATED,
            )
            for size, low, high in (("small", 0.04, 0.09), ("large", 6, 10))
        ),
    ),
)

# ------------------------------------------------------------------------------------------ PortedHead


def loaded(e: int, d: int) -> Callable[[Answer, Draw], torch.nn.Module]:
    """The head, built as ``PortedHead(e, d)``, with the three matrices of a trained model loaded into it."""

    def via(answer: Answer, draw: Draw) -> torch.nn.Module:
        head = answer(e, d)
        if not isinstance(head, torch.nn.Module):
            raise Fault(f"PortedHead(e, d) gives a {type(head).__name__}; it has to be a torch.nn.Module.")
        file = {f"to_{role}.weight": 1.5 * draw.named(role).normal(d, e) / e**0.5 for role in ROLES}
        try:
            misfits = head.to(draw.device).load_state_dict(file, strict=False)
        except RuntimeError:
            raise Fault(f"{NOT_LOADED} One of yours has another shape.") from None
        sentences = [NOT_LOADED]
        if misfits.missing_keys:
            sentences.append(f"Your head also has {', '.join(misfits.missing_keys)}.")
        if misfits.unexpected_keys:
            sentences.append(f"Your head does not have {', '.join(misfits.unexpected_keys)}.")
        if len(sentences) > 1:
            raise Fault(" ".join(sentences))
        return head.train()

    return via


ROLES = ("queries", "keys", "values")
NOT_LOADED = (
    "The trained weights no longer load: the file holds to_queries.weight, to_keys.weight and to_values.weight, each"
    " (d, e), and nothing else."
)
HEAD, NARROW, AS_WIDE = loaded(6, 9), loaded(5, 2), loaded(4, 4)


def wide_head(answer: Answer, draw: Draw) -> torch.Tensor:
    """The output of a wide head for many long sequences."""
    e, d = draw.number(24, 33), draw.number(34, 49)
    return loaded(e, d)(answer, draw)(draw.heavy(draw.number(9, 13), draw.number(66, 80), e, most=8.0))


def as_loaded(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The outputs of heads of several sizes, with weights that were loaded."""
    one, narrow, wide = draw.named("one"), draw.named("narrow"), draw.named("as wide")
    head = HEAD(answer, draw)
    return {
        "result": head(draw.normal(2, 4, 6)),
        "with a batch of one, in a second call": head(one.normal(1, 5, 6)),
        "with a single position": HEAD(answer, one)(one.normal(2, 1, 6)),
        "with d smaller than e": NARROW(answer, narrow)(narrow.normal(2, 3, 5)),
        "with d as large as e": AS_WIDE(answer, wide)(wide.normal(2, 5, 4)),
        "in evaluation mode, after .eval()": HEAD(answer, draw).eval()(draw.named("eval").normal(2, 4, 6)),
    }


def without_buffers(answer: Answer, draw: Draw) -> torch.nn.Module:
    """The head. Raises Fault where it has a buffer, which no file need hold."""
    head = HEAD(answer, draw)
    for name, _ in head.named_buffers():
        raise Fault(
            f"Your head has a buffer {name}. It may have no parameters or buffers other than the three matrices."
        )
    return head


ported_head = exercise(
    "PortedHead",
    stars=2,
    minutes=8,
    fixes_bug=True,
    given=case(normal(2, 4, 6)),  # the width of the model is not that of the head, nor the number of positions
    via=HEAD,
    aspects=(
        Aspect("as the trained model computes", 1, with_larger(as_loaded, wide_head), axes="b t d", picture=True),
        parameters(0.5, via=without_buffers),
        gradient(0.5, weights=True),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

LESSON = Lesson(
    "03_scaling",
    "Scaling",
    (score_variance, softmax_backward, attention_entropy, measured_scale, ported_head),
    predictions_of("03_scaling"),
)
