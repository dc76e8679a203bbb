"""Lesson 1: a weighted average that picks its own weights."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import any_device, gradient, input_left_alone, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson


def ratings(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Factors of 4 users and 6 films, ratings (4, 6), and which of them are known."""
    seen = draw.mask(0.45, 4, 6)
    seen[0, 0], seen[0, 1] = True, False  # never all, never none
    return draw.normal(4, 3), draw.normal(6, 3), draw.normal(4, 6, mean=0.5, std=2.0), seen


def sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences of 5 vectors, each 3 wide: no two sizes are alike, so a mixed-up axis shows."""
    return (draw.normal(2, 5, 3),)


def scores(draw: Draw) -> tuple[torch.Tensor]:
    """Scores (2, 3, 5), not square."""
    return (draw.normal(2, 3, 5, std=2.0),)


def large_scores(draw: Draw) -> tuple[torch.Tensor]:
    """Rows near +10,000 and rows near −10,000 in one tensor."""
    offsets = torch.tensor([10_000.0, -10_000.0, 0.0], device=draw.device).reshape(1, 3, 1)
    return (draw.normal(2, 3, 5, std=2.0).round() + offsets,)


def running_sum(x: torch.Tensor) -> torch.Tensor:
    """Sees the order of the positions, and treats every component of the width in its own way.

    Positions have weights whose sums never meet: with equal weights, the largest difference under an order is now and
    then the largest one under its inverse too, and the mistake would pass.
    """
    places = torch.arange(2.0, x.shape[1] + 2, device=x.device).sqrt().unsqueeze(-1)
    steps = torch.arange(1.0, x.shape[-1] + 1, device=x.device)
    return (x * places * steps).cumsum(dim=1)


def sees_order(draw: Draw) -> tuple[Callable, torch.Tensor, torch.Tensor]:
    # 7 components and 5 positions: an index that is meant for positions fits the width as well
    """An attention that depends on order, a sequence (2, 5, 7), and an order of its positions."""
    return running_sum, draw.normal(2, 5, 7), draw.permutation(5, cycle=True)


def both_signs(gap: Answer, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The gap of a function and of its negative: the largest difference is negative for one of the two."""
    attention, x, order = sees_order(draw)
    return gap(attention, x, order), gap(lambda x: -attention(x), x, order)


def sees_no_order(draw: Draw) -> tuple[Callable, torch.Tensor, torch.Tensor]:
    """Mixes the width, leaves positions alone."""
    return (lambda x: x.flip(-1) * 2), draw.normal(2, 5, 7), draw.permutation(5, cycle=True)


SOFTMAX = (
    "This exercise is there to write it from exp and sum, once in your life; from the next exercise on, "
    "torch.softmax is yours."
)

LESSON = Lesson(
    "01_dot_product_attention",
    "A weighted average that picks its own weights",
    minutes=70,
    exercises=(
        Exercise(
            "masked_squared_error",
            stars=2,
            minutes=8,
            aspects=(
                values(2, ratings, accepts="number"),
                gradient(1, ratings),
                input_left_alone(0.5, ratings),
                any_device(0.5, ratings),
            ),
        ),
        Exercise(
            "raw_weights",
            stars=1,
            minutes=5,
            aspects=(
                values(2, sentences, axes="b t t", picture=True),
                input_left_alone(0.5, sentences),
                any_device(0.5, sentences),
            ),
        ),
        Exercise(
            "row_softmax",
            stars=2,
            minutes=10,
            aspects=(
                values(1.5, scores, axes="b t s", picture=True),
                values(1, large_scores, name="large scores", axes="b t s", picture=True, rtol=5e-3, atol=1e-3),
                gradient(0.5, scores),
                input_left_alone(0.5, scores),
                any_device(0.5, scores),
            ),
            forbidden={"softmax": SOFTMAX, "log_softmax": SOFTMAX, "Softmax": SOFTMAX, "softmin": SOFTMAX},
        ),
        Exercise(
            "self_attention",
            stars=1,
            minutes=5,
            aspects=(
                values(2, sentences, axes="b t e", picture=True),
                input_left_alone(0.5, sentences),
                any_device(0.5, sentences),
            ),
        ),
        Exercise(
            "equivariance_gap",
            stars=2,
            minutes=10,
            aspects=(
                Aspect("a function that sees order", 2, both_signs, accepts="number"),
                # the right answer is 0, which anybody can guess
                values(1, sees_no_order, name="a function that does not", accepts="number", side=True),
                input_left_alone(0.5, sees_order),
                any_device(0.5, sees_order),
            ),
        ),
    ),
)
