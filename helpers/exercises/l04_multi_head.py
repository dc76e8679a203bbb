"""Lesson 4: several questions at once."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import Inputs, Unmet, any_device, built, gradient, parameters, raises, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe
from helpers.parts.attention import SingleHeadAttention
from helpers.parts.multi_head import merge_heads, split_heads


def wide_vectors(draw: Draw) -> tuple[torch.Tensor, int]:
    """Two sentences of 5 vectors, 12 wide: with 3 heads every axis of the result has another size."""
    return draw.normal(2, 5, 12), 3


def does_not_divide(draw: Draw) -> tuple[torch.Tensor, int]:
    """Vectors (2, 5, 22) for 6 heads, and 22 is no multiple of 6."""
    return draw.normal(2, 5, 22), 6


def in_heads(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences of 5 positions in 3 heads: (2, 3, 5, 4)."""
    return (draw.normal(2, 3, 5, 4),)


def sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences of 5 positions: (2, 5, 12)."""
    return (draw.normal(2, 5, 12),)


def narrow_sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences of 5 positions: (2, 5, 7), a width that is odd."""
    return (draw.normal(2, 5, 7),)


def one_head(draw: Draw) -> tuple[torch.Tensor]:
    """A weight (3, 3) for vectors of width 3."""
    return (draw.normal(3, 3),)


def with_heads(draw: Draw) -> tuple[torch.Tensor, int]:
    """A weight (3, 3), and 4 heads that share it."""
    return one_head(draw)[0], 4


# ---------------------------------------------------------------------------------- e not divisible by h

REFUSAL = (
    "e = 22 cannot be cut into h = 6 heads of equal width. Raise a ValueError whose message says so and names both "
    "numbers: whoever meets it has to read what to change."
)


def divides(points: float, inputs: Inputs, **options: object) -> Aspect:
    """A width that the number of heads does not divide is refused, both numbers named."""
    return raises(
        points, inputs, ValueError, name="e not divisible by h", missed=REFUSAL, mentions=("22", "6"), **options
    )


# ---------------------------------------------------------------------------------------------- counting


def sizes(draw: Draw) -> list[tuple[int, int]]:
    """Three pairs (e, h) for which d = e/h is whole and differs from h."""
    pairs = []
    for h in (2, 3, 5):
        d = h + draw.number(1, 7)
        pairs.append((h * d, h))
    return pairs


def counted(kind: str) -> Probe:
    """How many parameters a module of that kind has, for several sizes."""

    def probe(count, draw):
        return tuple(count(e, h, kind) for e, h in sizes(draw))

    return probe


# ------------------------------------------------------------------------------------------------ fusing


def single_heads(draw: Draw) -> list[torch.nn.Module]:
    """Three heads from width 7 to width 4: 3·4 is not 7, so a weight that lies the wrong way round shows."""
    return [built(7, 4)(SingleHeadAttention, draw.named(f"head {k}")) for k in range(3)]


def triple(fused: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `fuse_heads` returned, as three weights. Unmet says what it is instead."""
    if fused is None or isinstance(fused, (torch.nn.Module, dict)):
        kind = "None" if fused is None else f"a {type(fused).__name__}"
        raise Unmet(f"Your code returns {kind}; three weights are needed: return w_q, w_k, w_v.")
    if isinstance(fused, torch.Tensor) and fused.dim() < 3:
        raise Unmet(
            f"Your code returns one tensor, of shape {tuple(fused.shape)}; three are needed: return w_q, w_k, w_v."
        )
    fused = tuple(fused)
    if len(fused) != 3:
        raise Unmet(f"Your code returns {len(fused)} things; three weights are needed: return w_q, w_k, w_v.")
    for weight in fused:
        if not isinstance(weight, torch.Tensor):
            raise Unmet(
                f"One of your three weights is a {type(weight).__name__}; tensors are needed, such as layer.weight."
            )
    return fused


def weights_of(number: int) -> Probe:
    """The fused matrix of queries (0), keys (1) or values (2)."""

    def probe(fuse, draw):
        return triple(fuse(single_heads(draw)))[number]

    return probe


def fused_outputs(fuse: Answer, draw: Draw) -> torch.Tensor:
    """All heads at once with the fused weights, unscaled as lesson 2's heads are. (2, 5, 7) -> (2, 5, 12)."""
    w_q, w_k, w_v = triple(fuse(single_heads(draw)))
    shapes = [tuple(weight.shape) for weight in (w_q, w_k, w_v)]
    if set(shapes) != {(12, 7)}:
        raise Unmet(
            f"Weights of shapes {', '.join(map(str, shapes))} cannot take the heads' place: (h·d, e) = (12, 7) is"
            " needed."
        )
    x = draw.named("x").normal(2, 5, 7)
    q, k, v = (split_heads(x @ w.mT, 3) for w in (w_q, w_k, w_v))
    return merge_heads(torch.softmax(q @ k.mT, dim=-1) @ v)


def heads_left_alone(fuse: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The single heads' own parameters, after they were fused."""
    heads = single_heads(draw)
    triple(fuse(heads))
    return {name: parameter for k, head in enumerate(heads) for name, parameter in _named(head, k)}


def _named(head, k):
    return [(f"head {k}, {name}", parameter) for name, parameter in head.named_parameters()]


def heads_on_meta(draw: Draw) -> tuple[list[torch.nn.Module]]:
    """The single heads, on torch's meta device."""
    return ([head.to("meta") for head in single_heads(draw)],)


def joined(fuse: Answer, draw: Draw) -> Callable:
    """The three fused matrices, one below the other."""
    return lambda heads: torch.cat(triple(fuse(heads)))


# -------------------------------------------------------------------------------------------- the lesson

BY_HAND = "This exercise is there to write it yourself; the finished one is for the exercises after it."
LIBRARY = (
    "PyTorch's own module is what this exercise is there to build: three projections, heads, scores, softmax, average,"
    " unify."
)
NARROW = built(12, 3)
WIDE = built(7, 3)  # 7 is not divisible by 3, and need not be

LESSON = Lesson(
    "04_multi_head",
    "Several questions at once",
    minutes=90,
    exercises=(
        Exercise(
            "split_heads",
            stars=2,
            minutes=10,
            aspects=(
                values(2.5, wide_vectors, axes="b h t d", picture=True),
                gradient(0.5, wide_vectors),
                divides(0.5, does_not_divide),
                any_device(0.5, wide_vectors),
            ),
            forbidden={"finished_split": BY_HAND, "multi_head": BY_HAND},
        ),
        Exercise(
            "merge_heads",
            stars=2,
            minutes=6,
            aspects=(
                values(2, in_heads, axes="b t e", picture=True),
                gradient(0.5, in_heads),
                any_device(0.5, in_heads),
            ),
            forbidden={"finished_merge": BY_HAND, "multi_head": BY_HAND},
        ),
        Exercise(
            "MultiHeadAttention",
            stars=3,
            minutes=20,
            aspects=(
                parameters(0.5, via=NARROW),
                values(2.5, sentences, via=NARROW, axes="b t e", picture=True),
                gradient(1, sentences, via=NARROW),
                divides(0.5, lambda draw: (22, 6)),
                any_device(0.5, sentences, via=NARROW),
            ),
            forbidden={"MultiheadAttention": LIBRARY, "multi_head_attention_forward": LIBRARY, "multi_head": BY_HAND},
        ),
        Exercise(
            "fuse_heads",
            stars=3,
            minutes=10,
            aspects=(
                Aspect("queries", 1, weights_of(0), axes="h·d e", picture=True),
                Aspect("keys", 0.5, weights_of(1), axes="h·d e", picture=True),
                Aspect("values", 0.5, weights_of(2), axes="h·d e", picture=True),
                Aspect("outputs", 1, fused_outputs, axes="b t h·d", picture=True),
                Aspect(
                    "heads left alone",
                    0.5,
                    heads_left_alone,
                    side=True,
                    missed=(
                        "After the call the single heads hold other weights than before. Copy from them; write nothing"
                        " into them."
                    ),
                ),
                any_device(0.5, heads_on_meta, via=joined),
            ),
        ),
        Exercise(
            "WideMultiHeadAttention",
            stars=3,
            minutes=12,
            aspects=(
                parameters(0.5, via=WIDE),
                values(2.5, narrow_sentences, via=WIDE, axes="b t e", picture=True),
                gradient(0.5, narrow_sentences, via=WIDE),
                any_device(0.5, narrow_sentences, via=WIDE),
            ),
            forbidden={"MultiheadAttention": LIBRARY, "multi_head_attention_forward": LIBRARY, "multi_head": BY_HAND},
        ),
        Exercise(
            "shared_head_weight",
            stars=2,
            minutes=8,
            aspects=(
                values(2, with_heads, axes="e e", picture=True),
                gradient(0.5, with_heads),
                any_device(0.5, with_heads),
            ),
        ),
        Exercise(
            "count_parameters",
            stars=1,
            minutes=8,
            aspects=tuple(
                Aspect(kind, 1, counted(kind), accepts="number", rtol=0, atol=1e-9)
                for kind in ("narrow", "wide", "shared")
            ),
        ),
    ),
)
