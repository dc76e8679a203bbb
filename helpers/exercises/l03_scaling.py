"""Lesson 3: scaling."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from helpers.exercises.aspects import Inputs, Unmet, any_device, gradient, input_left_alone, parameters, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson
from helpers.exercises.questions import predictions_of

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
# to scatter as measurements do, and the number of pairs has to make a difference. Two kinds of scatter tell what was
# measured. With FEW pairs of WIDE vectors the variance of so few scores scatters much, and d times the variance of the
# components hardly does. With d = 1 a score is a product of two normal numbers, whose fourth moment is three times that
# of a normal number: the variance of n of them scatters twice as much as that of n sums of single components.
#
# The generator lives on the CPU on every machine: numbers drawn with it, with or without device=generator.device, work
# everywhere. There is no input that could be on another device: so no "any device" here.

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


FEW, WIDE = 10, 300
FORMULA = (
    "Your number hardly changes from one draw to the next, even with few pairs: it is a formula for the"
    " variance, not a measurement. Draw vectors, compute their scores, and take the variance of those."
)


def scatter(answer: Answer, d: int, samples: int, first: int, times: int) -> float:
    """How far that many measurements scatter, in units of their mean.

    first: the seed of the first one; each has a seed of its own, and one of five numbers of pairs.
    """
    measurements = [measured(answer, d, samples + place % 5, first + place) for place in range(times)]
    values = torch.tensor(measurements, dtype=torch.float64)
    return values.std().item() / (values.mean().abs().item() or 1.0)


def look_for_scores(answer: Answer, first: int) -> None:
    """Raises Unmet for a number that is no variance of the scores of `samples` pairs of vectors."""
    if scatter(answer, 8, 50, first, 20) < 0.01:
        raise Unmet(FORMULA)
    if measured(answer, 8, 200, first) == measured(answer, 8, 190, first):
        raise Unmet(
            "The result is the same for 200 pairs as for 190: `samples` makes no difference. It says how many pairs to"
            " draw."
        )


def look_at_scatter(answer: Answer, first: int) -> None:
    """Raises Unmet for a number that is right and does not scatter as the variance of scores does."""
    if scatter(answer, WIDE, FEW, first, 100) < 0.2:  # scores: 0.4; the products of all with all: 0.09
        raise Unmet(
            f"The variance of {FEW} scores differs a lot from one draw to the next, and your number does not. Compute"
            " one score for each pair, a query times its own key, and take the variance of these scores alone."
        )
    if 0.2 < scatter(answer, 1, 20, first, 1500) < 0.37:  # products: 0.61; signs: less than 0.1
        raise Unmet(
            "With d = 1 your measurements scatter as those of single normal numbers do, not as those of products of"
            " two. A score is a sum of products: each of its d terms is a number of q times a number of k."
        )


def near_the_width(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The variance at three widths, each reported as the width itself when it is within five standard errors of it."""
    first = draw.number(1, 10**6)
    look_for_scores(answer, first)
    widths = [draw.number(4, 7), draw.number(12, 20), draw.number(50, 90)]
    variances = [measured(answer, d, pairs_needed(d), first + d) for d in widths]
    reported = [banded(value, d) for value, d in zip(variances, widths, strict=True)]
    shares = [value / d for value, d in zip(variances, widths, strict=True)]
    if min(shares) > 20:
        raise Unmet(
            "Your number grows with `samples`. More pairs make a measurement more exact, and not larger: a score is the"
            " sum over the components of one pair, and there are as many scores as pairs."
        )
    if all(0.8 < share < 1.25 for share in shares):
        look_at_scatter(answer, first)
    if not any(reported):
        raise Unmet(
            "Your numbers are 0 at every width, up to chance, and so is the mean of the scores. The variance says how"
            " far they spread around it."
        )
    if reported != widths and one_vector_for_all(answer, widths[0], first):
        raise Unmet(
            f"Even with {pairs_needed(widths[0]):,} pairs your number differs from seed to seed, now larger than d and"
            " now smaller: one vector, drawn once, is used in all pairs. Each pair has its own query and its own key."
        )
    if reported != widths:
        look_for_a_factor(shares)
    return {"at three widths": torch.tensor(reported, dtype=torch.float64)}


def look_for_a_factor(shares: list[float]) -> None:
    """Raises Unmet where the variance is the same share of d at every width. Twice d has a mistake of its own."""
    share = sum(shares) / len(shares)
    if share > 0 and not 1.8 < share < 2.2 and all(abs(each / share - 1) < FIVE for each in shares):
        raise Unmet(
            f"At every width your number is about {share:.3g} times d, and it should be about d. Either the components"
            " of queries and keys do not have mean 0 and variance 1 (the numbers of torch.rand have not), or the scores"
            " or their variance are multiplied by something."
        )


def one_vector_for_all(answer: Answer, d: int, first: int) -> bool:
    """Does the number lie about d, and scatter far too much for so many pairs?"""
    shares = [measured(answer, d, pairs_needed(d), first + place) / d for place in range(16)]
    values = torch.tensor(shares, dtype=torch.float64)
    return 0.5 < values.mean().item() < 2 and values.std().item() > 0.2


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
    if drawn_less(answer, 8, 100, seed):
        raise Unmet(
            "Your code takes fewer numbers from the generator than there are components in `samples` queries and"
            " `samples` keys of width d: each pair has a query and a key of its own, and all of their numbers come from"
            " there."
        )
    return torch.tensor([1])


def drawn_less(answer: Answer, d: int, samples: int, seed: int) -> bool:
    """Did the answer draw fewer numbers than the components of all its vectors?

    What the generator gives after the answer is looked for in what it gives from the start: there, if it was left
    earlier than after one word for each component. No way of drawing a number takes less than a word.
    """
    generator = torch.Generator().manual_seed(seed)
    measured(answer, d, samples, generator)
    later = torch.empty(6).uniform_(generator=generator)  # in single precision each takes one word
    start = torch.empty(2 * d * samples).uniform_(generator=torch.Generator().manual_seed(seed))
    return bool((start.unfold(0, 6, 1) == later).all(dim=-1).any())


# ------------------------------------------------------------------------------------------- scaled scores


def vectors(*leading: int, t: int, s: int, d: int) -> Inputs:
    """t queries and s keys, each d wide, with these axes in front."""
    return lambda draw: (draw.normal(*leading, t, d), draw.normal(*leading, s, d))


# no two sizes are alike, and none is the root of another: a root of the wrong size shows
queries_and_keys = vectors(2, t=3, s=5, d=7)
with_heads = vectors(2, 3, t=4, s=5, d=10)  # in a model that is 30 wide
SMALL = {
    "with a batch of one": vectors(1, t=3, s=4, d=5),
    "with a single query": vectors(2, t=1, s=4, d=6),
    "with a single key": vectors(2, t=3, s=1, d=6),
    "with as many keys as queries": vectors(2, t=5, s=5, d=5),
    "with d = 1": vectors(2, t=3, s=4, d=1),
}


def large_halves(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Half precision, 64 wide, entries between 36 and 50: every q·k is beyond 65,504, every q·k/8 well below.

    Each vector has one sign, drawn, so that scores of both signs occur.
    """

    def vectors(count):
        signs = 2.0 * draw.mask(0.5, 2, count, 1) - 1.0
        return (draw.uniform(36, 50, 2, count, 64) * signs).half()

    return vectors(3), vectors(5)


# ------------------------------------------------------------------------------------ entropy


def softmaxed(*shape: int) -> Inputs:
    """Weights of this shape: their rows sum to 1, and are neither flat nor saturated."""
    return lambda draw: (torch.softmax(1.5 * draw.normal(*shape), dim=-1),)


def weights_on_one_key(draw: Draw) -> tuple[torch.Tensor]:
    """Each row has a single key with all the weight, (2, 3, 1)."""
    return (torch.ones(2, 3, 1).to(draw.device),)


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


# ------------------------------------------------------------------------------------ softmax_backward


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


# ------------------------------------------------------------------------------------------ PortedHead


def loaded(e: int, d: int) -> Callable[[Answer, Draw], torch.nn.Module]:
    """The head, built as ``PortedHead(e, d)``, with the three matrices of a trained model loaded into it."""

    def via(answer: Answer, draw: Draw) -> torch.nn.Module:
        head = answer(e, d)
        if not isinstance(head, torch.nn.Module):
            raise Unmet(f"PortedHead(e, d) gives a {type(head).__name__}; it has to be a torch.nn.Module.")
        file = {f"to_{role}.weight": 1.5 * draw.named(role).normal(d, e) / e**0.5 for role in ROLES}
        try:
            misfits = head.to(draw.device).load_state_dict(file, strict=False)
        except RuntimeError:
            raise Unmet(f"{NOT_LOADED} One of yours has another shape.") from None
        sentences = [NOT_LOADED]
        if misfits.missing_keys:
            sentences.append(f"Your head also has {', '.join(misfits.missing_keys)}.")
        if misfits.unexpected_keys:
            sentences.append(f"Your head does not have {', '.join(misfits.unexpected_keys)}.")
        if len(sentences) > 1:
            raise Unmet(" ".join(sentences))
        return head.train()

    return via


ROLES = ("queries", "keys", "values")
NOT_LOADED = (
    "The trained weights no longer load: the file holds to_queries.weight, to_keys.weight and to_values.weight, each"
    " (d, e), and nothing else."
)
HEAD, NARROW, AS_WIDE = loaded(6, 9), loaded(5, 2), loaded(4, 4)


def sequence(draw: Draw) -> tuple[torch.Tensor]:
    """Sequences (2, 4, 6): the width of the model is not that of the head, nor the number of positions."""
    return (draw.normal(2, 4, 6),)


def as_loaded(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The outputs of heads of several sizes, with weights that were loaded."""
    one, narrow, wide = draw.named("one"), draw.named("narrow"), draw.named("as wide")
    head = HEAD(answer, draw)
    return {
        "result": head(*sequence(draw)),
        "with a batch of one, in a second call": head(one.normal(1, 5, 6)),
        "with a single position": HEAD(answer, one)(one.normal(2, 1, 6)),
        "with d smaller than e": NARROW(answer, narrow)(narrow.normal(2, 3, 5)),
        "with d as large as e": AS_WIDE(answer, wide)(wide.normal(2, 4, 4)),
    }


LESSON = Lesson(
    "03_scaling",
    "Scaling",
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
            "softmax_backward",
            stars=2,
            minutes=12,
            aspects=(
                values(2, weights_and_gradient, also=FURTHER_GRADIENTS, axes="b t s", picture=True),
                values(1, one_row_and_gradient, name="a single row", axes="s"),
                gradient(1, scores_and_gradient, via=from_scores_with_gradient),
                input_left_alone(0.5, weights_and_gradient),
                any_device(0.5, weights_and_gradient),
            ),
        ),
        Exercise(
            "attention_entropy",
            stars=2,
            minutes=8,
            aspects=(
                values(1.5, weights, also=FURTHER_WEIGHTS | {"for a single row": one_row_of_weights}, axes="b t"),
                values(1, weights_with_zeros, name="weights of 0", axes="b t"),
                gradient(0.5, scores, via=from_scores),
                input_left_alone(0.5, weights_with_zeros),
                any_device(0.5, weights),
            ),
        ),
        Exercise(
            "scaled_scores_early",
            stars=2,
            minutes=8,
            aspects=(
                values(1, queries_and_keys, also=SMALL, axes="b t s", picture=True, dtype=True),
                values(
                    0.5,
                    with_heads,
                    also={"with a single head": vectors(1, 1, t=3, s=4, d=6)},
                    name="several heads",
                    axes="b h t s",
                ),
                gradient(0.5, queries_and_keys),
                # half precision keeps 11 bits: one rounding is up to 0.05 %, and there are several
                values(1, large_halves, name="half precision", axes="b t s", rtol=5e-3, atol=0.0, dtype=True),
                input_left_alone(0.5, queries_and_keys),
                any_device(0.5, queries_and_keys),
            ),
        ),
        Exercise(
            "PortedHead",
            stars=2,
            minutes=8,
            mend=True,
            aspects=(
                Aspect("as the trained model computes", 1, as_loaded, axes="b t d", picture=True),
                parameters(0.5, via=HEAD),
                gradient(0.5, sequence, via=HEAD, weights=True),
                input_left_alone(0.5, sequence, via=HEAD),
                any_device(0.5, sequence, via=HEAD),
            ),
        ),
    ),
    predictions=predictions_of("03_scaling"),
)
