"""Lesson 3: why divide by √d."""

from __future__ import annotations

import math

import torch

from helpers.exercises.aspects import Unmet, any_device, input_left_alone, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson

# ------------------------------------------------------------------------------------------ score_variance
#
# A measurement has no one right value: whoever draws k before q, or pair after pair, gets other numbers from the same
# generator. So the probe turns statistics into something that a key can hold.
#
# The aspect "values" asks for the variance at three drawn widths. With n pairs of normal vectors the estimate s²
# scatters around d with a variance of d² · (2/(n−1) + (6/d)/n): the first term is that of any normal sample, and 6/d is
# the excess kurtosis of a sum of d products of two normal numbers. n is chosen such that one standard error is
# STANDARD_ERROR · d. A value within five of them (for a right answer, all but about one in a million are) is reported
# as d itself; any other as it is, so that a message can say by how much it is off. The aspect's own tolerance is the
# same five standard errors: it recognises a known mistake, which scatters too.
#
# `return float(d)` would then pass, and it measured nothing. So before any value counts, answers from many seeds have
# to scatter at least a tenth as much as honest ones would, and the number of pairs has to make a difference.
#
# The generator lives on the CPU on every machine: numbers drawn with it, with or without device=generator.device, work
# everywhere. There is no input that could lie on another device, and torch has no generator for
# `meta`: so no "any device" here.

STANDARD_ERROR = 0.02
FIVE = 5 * STANDARD_ERROR


def pairs_needed(d: int) -> int:
    """How many pairs make one standard error of the measured variance STANDARD_ERROR · d."""
    return round((2 + 6 / d) / STANDARD_ERROR**2)


def measured(answer: Answer, d: int, samples: int, generator: int | torch.Generator) -> float:
    """One measurement as a Python number. generator: a torch.Generator, or the seed of a new one."""
    if isinstance(generator, int):
        generator = torch.Generator().manual_seed(generator)
    value = answer(d, samples, generator)
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        raise Unmet(
            f"Your function returns a tensor of shape {tuple(value.shape)}; one number is needed, the variance of all"
            " the scores."
        )
    try:
        return float(value)
    except (TypeError, ValueError):
        kind = "None; is there a return at its end?" if value is None else f"a {type(value).__name__}."
        raise Unmet(f"One number is needed, the measured variance. Your function returns {kind}") from None


def near_the_width(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The variance at three widths, each reported as the width itself when it is within five standard errors of it."""
    first = draw.number(1, 10**6)
    few = torch.tensor([measured(answer, 8, 30 + place, first + place) for place in range(40)], dtype=torch.float64)
    expected = math.sqrt((2 + 6 / 8) / 50)  # relative, for about 50 pairs
    if few.std() < 0.1 * expected * few.mean().abs():
        raise Unmet(
            "Your number hardly changes from one draw to the next, even with few pairs: it is a formula for the"
            " variance, not a measurement. Draw vectors, compute their scores, and take the variance of those."
        )
    if measured(answer, 8, 200, first) == measured(answer, 8, 190, first):
        raise Unmet(
            "The result is the same for 200 pairs as for 190: `samples` makes no difference. It says how many pairs to"
            " draw."
        )
    widths = [draw.number(4, 7), draw.number(12, 20), draw.number(50, 90)]
    found = [measured(answer, d, pairs_needed(d), first + d) for d in widths]
    return {
        "variance at three widths": torch.tensor(
            [banded(value, d) for value, d in zip(found, widths, strict=True)], dtype=torch.float64
        )
    }


def banded(value: float, d: int) -> float:
    """The value, or d itself for one within five standard errors of d, or 0 for one as near to the scores' *mean*."""
    if abs(value - d) <= FIVE * d:
        return float(d)
    return 0.0 if abs(value) <= 5 * math.sqrt(d / pairs_needed(d)) else value


def from_the_generator(answer: Answer, draw: Draw) -> torch.Tensor:
    """The same seed gives the same number; another seed, or the same generator once more, another one."""
    seed = draw.number(1, 10**6)
    generator = torch.Generator().manual_seed(seed)
    one, later = measured(answer, 8, 100, generator), measured(answer, 8, 100, generator)
    again, other = measured(answer, 8, 100, seed), measured(answer, 8, 100, seed + 1)
    if one != again:
        raise Unmet(
            "Two generators with the same seed gave two different numbers: some of your random numbers come from"
            " elsewhere. Pass generator=generator to every call that draws."
        )
    if one == other:
        raise Unmet(
            "Generators with different seeds gave the very same number: the one that is passed in is never used, or is"
            " seeded anew. Draw from it as it comes."
        )
    if one == later:
        raise Unmet(
            "Two measurements in a row with one generator gave the very same number: you take its seed, not its"
            " numbers. Draw from it as it comes."
        )
    return torch.tensor([1])


# ------------------------------------------------------------------------------------------- scaled scores


def queries_and_keys(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """No two sizes are alike, and none is the root of another: a root of the wrong size shows."""
    return draw.normal(2, 3, 7), draw.normal(2, 5, 7)


def with_heads(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """4 heads, each 7 wide, in a model that is 28 wide."""
    return draw.normal(2, 4, 3, 7), draw.normal(2, 4, 5, 7)


def large_halves(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Half precision, 64 wide, entries between 36 and 50: every q·k is beyond 65,504, every q·k/8 well below.

    Each vector has one sign, drawn, so that scores of both signs occur.
    """

    def vectors(count):
        signs = 2.0 * draw.mask(0.5, 2, count, 1) - 1.0
        return (draw.uniform(36, 50, 2, count, 64) * signs).half()

    return vectors(3), vectors(5)


# -------------------------------------------------------------------------------- Jacobian, entropy, norm


def weights(draw: Draw) -> tuple[torch.Tensor]:
    """Rows that sum to 1, neither flat nor saturated."""
    return (torch.softmax(1.5 * draw.normal(2, 3, 5), dim=-1),)


def one_row_of_weights(draw: Draw) -> tuple[torch.Tensor]:
    """A distribution (6,), no batch."""
    return (torch.softmax(1.5 * draw.normal(6), dim=-1),)


def weights_with_zeros(draw: Draw) -> tuple[torch.Tensor]:
    """Some weights exactly 0, as after a mask; one row has all its weight on one position."""
    scores = 1.5 * draw.normal(2, 3, 5)
    for row in range(3):
        scores[0, row, draw.permutation(5)[: row + 1]] = -math.inf
    scores[1, 0, 1:] = -math.inf
    return (torch.softmax(scores, dim=-1),)


def scores(draw: Draw) -> tuple[torch.Tensor]:
    """Scores (2, 3, 5)."""
    return (1.5 * draw.normal(2, 3, 5),)


def one_row_of_scores(draw: Draw) -> tuple[torch.Tensor]:
    """Scores (6,), no batch."""
    return (1.5 * draw.normal(6),)


def large_scores(draw: Draw) -> tuple[torch.Tensor]:
    """Differences as in any row, far from 0: near +10,000 and near −10,000."""
    offsets = torch.tensor([10_000.0, -10_000.0, 0.0], device=draw.device).reshape(1, 3, 1)
    return ((1.5 * draw.normal(2, 3, 5)).round() + offsets,)


LESSON = Lesson(
    "03_scaling",
    "Why divide by √d",
    minutes=80,
    exercises=(
        Exercise(
            "score_variance",
            stars=1,
            minutes=8,
            aspects=(
                Aspect("values", 2, near_the_width, rtol=FIVE),
                Aspect("drawn from the generator", 1, from_the_generator, side=True),
            ),
        ),
        Exercise(
            "scaled_scores",
            stars=1,
            minutes=5,
            aspects=(
                values(1, queries_and_keys, axes="b t s", picture=True),
                values(1, with_heads, name="several heads", axes="b h t s"),
                input_left_alone(0.5, queries_and_keys),
                any_device(0.5, queries_and_keys),
            ),
        ),
        Exercise(
            "scaled_scores_early",
            stars=2,
            minutes=8,
            aspects=(
                values(1, queries_and_keys, axes="b t s", picture=True),
                values(0.5, with_heads, name="several heads", axes="b h t s"),
                # half precision keeps 11 bits: one rounding is up to 0.05 %, and there are several
                values(1.5, large_halves, name="half precision", axes="b t s", rtol=5e-3, atol=0.0, dtype=True),
                input_left_alone(0.5, queries_and_keys),
                any_device(0.5, queries_and_keys),
            ),
        ),
        Exercise(
            "softmax_jacobian",
            stars=2,
            minutes=10,
            aspects=(
                values(2, weights, axes="b t s s", picture=True),
                values(1, one_row_of_weights, name="a single row", axes="s s", picture=True),
                input_left_alone(0.5, weights),
                any_device(0.5, weights),
            ),
        ),
        Exercise(
            "attention_entropy",
            stars=2,
            minutes=8,
            aspects=(
                values(2, weights, axes="b t"),
                values(1, weights_with_zeros, name="weights of 0", axes="b t"),
                input_left_alone(0.5, weights_with_zeros),
                any_device(0.5, weights),
            ),
        ),
        Exercise(
            "largest_gradient",
            stars=3,
            minutes=12,
            aspects=(
                values(2, scores, axes="b t", rtol=1e-3),
                values(1, one_row_of_scores, name="a single row", rtol=1e-3),
                values(1, large_scores, name="large scores", axes="b t", rtol=1e-3),
                input_left_alone(0.5, scores),
                any_device(0.5, scores),
            ),
        ),
    ),
)
