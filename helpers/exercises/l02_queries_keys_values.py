"""Lesson 2: three roles for every vector."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import Unmet, any_device, built, gradient, input_left_alone, parameters, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe


def entries(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A query 3 wide, 5 keys, and 5 values of another width, 4: values taken for keys show at once."""
    return draw.normal(3), draw.normal(5, 3), draw.normal(5, 4)


def stored(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Six keys, 4 wide, and a query. Their products lie about 0.5 apart, on both sides of zero, in a drawn order.

    No two keys come near a tie, so that the largest betas have one winner whatever the rounding; and some products
    are positive and some negative, so that an exponential that overflows differs from one that vanishes.
    """
    ladder = torch.tensor([-1.5, -0.9, -0.3, 0.4, 0.9, 1.6], device=draw.device)
    products = (ladder + draw.uniform(-0.15, 0.15, 6))[draw.permutation(6)]
    query, keys = draw.normal(4) + 0.5, draw.normal(6, 4)
    along = query / (query @ query)
    keys = keys + (products - keys @ query).unsqueeze(1) * along
    return keys, query


def sharpened(*betas: float) -> Probe:
    """A probe: the weights for each of these betas."""

    def probe(sharpen, draw):
        keys, query = stored(draw)
        return tuple(sharpen(keys, query, beta) for beta in betas)

    return probe


def stored_with_beta(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, float]:
    """What `stored` gives, and a β of 2.5."""
    return *stored(draw), 2.5


def to_project(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Nothing is square, and values are wider than queries and keys."""
    return draw.normal(2, 5, 4), draw.normal(4, 3), draw.normal(4, 3), draw.normal(4, 6)


def three_things(returned: object) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three tensors that project returns, or a sentence for the student."""
    if isinstance(returned, (tuple, list)) and len(returned) == 3:
        return returned
    told = f"{len(returned)} things" if isinstance(returned, (tuple, list)) else f"a {type(returned).__name__}"
    raise Unmet(f"Your code returns {'None' if returned is None else told}; three tensors are needed: return q, k, v.")


def projection(place: int) -> Probe:
    """A probe: one of the three tensors."""

    def probe(project, draw):
        return three_things(project(*to_project(draw)))[place]

    return probe


def joined(project: Answer, draw: Draw) -> Callable:
    """project as a function that gives one tensor."""
    return lambda *inputs: torch.cat(tuple(three_things(project(*inputs))), dim=-1)


def three(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries (b, t, d) = (2, 3, 4), keys (b, s, d) = (2, 5, 4), values (b, s, v) = (2, 5, 6)."""
    return draw.normal(2, 3, 4), draw.normal(2, 5, 4), draw.normal(2, 5, 6)


def sequence(draw: Draw) -> tuple[torch.Tensor]:
    """One batch of sequences (b, t, e) = (2, 4, 5)."""
    return (draw.normal(2, 4, 5, std=1.5),)


def two_sequences(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The sequence that asks (b, t, e) = (2, 4, 5), and the one that is asked (b, s, e) = (2, 6, 5)."""
    return draw.normal(2, 4, 5, std=1.5), draw.normal(2, 6, 5, std=1.5)


HEAD = built(5, 3)

FINISHED = "It holds this exercise's answer, for later lessons to build on. Here the point is to write it yourself."

LESSON = Lesson(
    "02_queries_keys_values",
    "Three roles for every vector",
    minutes=60,
    exercises=(
        Exercise(
            "soft_lookup",
            stars=1,
            minutes=7,
            aspects=(
                values(1.5, entries, axes="v"),
                gradient(0.5, entries),
                input_left_alone(0.5, entries),
                any_device(0.5, entries),
            ),
        ),
        Exercise(
            "sharpen",
            stars=1,
            minutes=6,
            aspects=(
                Aspect("values", 1, sharpened(0.7, 2.5), axes="s"),
                Aspect("from average to lookup", 1, sharpened(0.0, 10_000.0), axes="s"),
                input_left_alone(0.5, stored_with_beta),
                any_device(0.5, stored_with_beta),
            ),
        ),
        Exercise(
            "project",
            stars=1,
            minutes=5,
            aspects=(
                Aspect("queries", 0.5, projection(0), axes="b t d", picture=True),
                Aspect("keys", 0.5, projection(1), axes="b t d", picture=True),
                Aspect("values", 0.5, projection(2), axes="b t v", picture=True),
                any_device(0.5, to_project, via=joined),
            ),
        ),
        Exercise(
            "attention",
            stars=2,
            minutes=12,
            aspects=(
                values(2, three, axes="b t v", picture=True),
                gradient(1, three),
                input_left_alone(0.5, three),
                any_device(0.5, three),
            ),
            forbidden={
                "finished_attention": FINISHED,
                "scaled_dot_product_attention": (
                    "PyTorch's own function is this exercise, finished (and scaled, unless it is told "
                    "not to). Write the two products and the softmax yourself, here and once."
                ),
            },
        ),
        Exercise(
            "SingleHeadAttention",
            stars=2,
            minutes=15,
            aspects=(
                parameters(0.5, via=HEAD),
                values(1.5, sequence, via=HEAD, axes="b t d", picture=True),
                values(1, two_sequences, via=HEAD, name="a second sequence", axes="b t d", picture=True),
                gradient(0.5, two_sequences, via=HEAD),
                any_device(0.5, two_sequences, via=HEAD),
            ),
        ),
    ),
)
