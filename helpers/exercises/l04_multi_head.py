"""Lesson 4: multi-head attention."""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Integral

import torch

from helpers.exercises.aspects import Unmet, any_device, built, gradient, input_left_alone, kind_of, parameters, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe
from helpers.exercises.questions import predictions_of


def wide_vectors(draw: Draw) -> tuple[torch.Tensor, int]:
    """Two sentences of 5 vectors, 12 wide: with 3 heads every axis of the result has another size."""
    return draw.normal(2, 5, 12), 3


OTHER_VECTORS = {
    "with a batch of one": lambda draw: (draw.normal(1, 5, 12), 3),
    "with a single position": lambda draw: (draw.normal(2, 1, 12), 3),
    "with a single head": lambda draw: (draw.normal(2, 5, 4), 1),
    "with as many heads as components": lambda draw: (draw.normal(3, 2, 5), 5),
}


def in_heads(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences of 5 positions in 3 heads: (2, 3, 5, 4)."""
    return (draw.normal(2, 3, 5, 4),)


OTHER_HEADS = {
    "with a batch of one": lambda draw: (draw.normal(1, 3, 5, 4),),
    "with a single position": lambda draw: (draw.normal(2, 3, 1, 4),),
    "with a single head": lambda draw: (draw.normal(2, 1, 5, 4),),
    "with heads of width 1": lambda draw: (draw.normal(3, 5, 2, 1),),
}


def sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences of 5 positions: (2, 5, 12)."""
    return (draw.normal(2, 5, 12),)


def of_any_size(answer: Answer, draw: Draw) -> Callable:
    """The student's class, called as a function of the vectors and the number of heads: another module for each."""
    return lambda x, h: built(x.shape[-1], h)(answer, draw)(x)


OTHER_NARROW = {
    "with a batch of one": lambda draw: (draw.normal(1, 5, 12), 3),
    "with a single position": lambda draw: (draw.normal(2, 1, 12), 3),
    "for e = 10 and h = 5": lambda draw: (draw.normal(2, 4, 10), 5),
    "with a single head": lambda draw: (draw.normal(2, 4, 6), 1),
}


def projections(draw: Draw, b: int = 2, t: int = 5, e: int = 12, h: int = 3) -> tuple:
    """Queries, keys and values of two sentences of 5 positions, each (2, 5, 12), and 3 heads."""
    return draw.normal(b, t, e), draw.normal(b, t, e), draw.normal(b, t, e), h


OTHER_PROJECTIONS = {
    "with a batch of one": lambda draw: projections(draw, b=1),
    "with a single position": lambda draw: projections(draw, t=1),
    "with a single head": lambda draw: projections(draw, t=4, e=6, h=1),
    "for e = 10 and h = 5": lambda draw: projections(draw, b=3, t=4, e=10, h=5),
}


# ---------------------------------------------------------------------------------- e not divisible by h


def refuses(call: Callable[[Answer, int, int, Draw], object]) -> Probe:
    """A probe: a ValueError, with both numbers in its message, for an e that h does not divide.

    call: runs the answer for that e and that h.
    """

    def probe(answer: Answer, draw: Draw) -> torch.Tensor:
        h = (4, 6, 7)[draw.number(0, 3)]
        e = h * draw.number(4, 7) + draw.number(1, h)
        try:
            call(answer, e, h, draw)
        except ValueError as problem:
            absent = [str(n) for n in (e, h) if not re.search(rf"(?<!\d){n}(?!\d)", str(problem))]
            if absent:
                raise Unmet(
                    f"For e = {e} and h = {h} your code raises a ValueError with the message {str(problem)!r}. It must"
                    f" name e and h; {' and '.join(absent)} cannot be found in it."
                ) from None
            return torch.tensor([1])
        raise Unmet(f"For e = {e} and h = {h} your code raises no error. {REFUSAL}")

    return probe


REFUSAL = "h does not divide e, so a ValueError is needed, with both numbers in its message."


def divides(points: float, call: Callable[[Answer, int, int, Draw], object]) -> Aspect:
    """A width that the number of heads does not divide is refused, both numbers named."""
    return Aspect(
        "e not divisible by h",
        points,
        refuses(call),
        side=True,
        missed=REFUSAL,
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
        return {f"for e = {e} and h = {h}": count(e, h, kind) for e, h in sizes(draw)}

    return probe


KINDS = ("narrow", "wide", "multi-query")


def whole_numbers(count: Answer, draw: Draw) -> torch.Tensor:
    """A count is an integer, also where something was divided on the way."""
    e, h = sizes(draw)[0]
    for kind in KINDS:
        number = count(e, h, kind)
        if isinstance(number, torch.Tensor) and number.numel() == 1 and not number.is_floating_point():
            continue
        if isinstance(number, bool) or not isinstance(number, Integral):
            what = "a floating-point tensor" if isinstance(number, torch.Tensor) else _described(number)
            raise Unmet(f"For the kind {kind!r} your function returns {what}; a count is an integer. {WHOLE_DIVISION}")
    return torch.tensor([1])


WHOLE_DIVISION = "The result of / is a float even for 6 / 3; the result of // is an integer."


def _described(value: object) -> str:
    """What kind of thing it is, with the number where it is a float: "the float 152.0"."""
    return f"the float {value!r}" if isinstance(value, float) else kind_of(value)


# ------------------------------------------------------------------------------------------------ fusing


def single_heads(draw: Draw, e: int = 7, d: int = 4, h: int = 3) -> list[torch.nn.Module]:
    """h heads from width e to width d. Three from 7 to 4: 3·4 is not 7, so a weight that lies the wrong way shows."""
    from helpers.parts.attention import SingleHeadAttention

    return [built(e, d)(SingleHeadAttention, draw.named(f"head {k}")) for k in range(h)]


def triple(fused: Answer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `fuse_heads` returned, as three weights. Unmet says what it is instead."""
    if fused is None or isinstance(fused, (torch.nn.Module, dict)):
        raise Unmet(f"Your code returns {kind_of(fused)}; three weights are needed: return w_q, w_k, w_v.")
    if isinstance(fused, torch.Tensor) and fused.dim() < 3:
        raise Unmet(
            f"Your code returns one tensor, of shape {tuple(fused.shape)}; three are needed: return w_q, w_k, w_v."
        )
    fused = tuple(fused)
    if len(fused) != 3:
        raise Unmet(f"Your code returns {len(fused)} things; three weights are needed: return w_q, w_k, w_v.")
    for weight in fused:
        if not isinstance(weight, torch.Tensor):
            raise Unmet(f"One of your three weights is {kind_of(weight)}; tensors are needed, such as layer.weight.")
    return fused


OTHER_SINGLE_HEADS = {
    "with a list of one head": (7, 4, 1),
    "with five heads of width 2": (3, 2, 5),
    "with heads of width 1": (4, 1, 2),
}


def weights_of(number: int) -> Probe:
    """The fused matrix of queries (0), keys (1) or values (2), of three heads and of other lists."""

    def probe(fuse, draw):
        first = triple(fuse(single_heads(draw)))[number]
        others = {
            case: triple(fuse(single_heads(draw.named(case), *sizes)))[number]
            for case, sizes in OTHER_SINGLE_HEADS.items()
        }
        return {"result": first, **others}

    return probe


def fused_outputs(fuse: Answer, draw: Draw) -> torch.Tensor:
    """All heads at once with the fused weights, unscaled as lesson 2's heads are. (2, 5, 7) -> (2, 5, 12)."""
    from helpers.parts.multi_head import merge_heads, split_heads

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
    given = list(heads)
    triple(fuse(given))
    if given != heads:
        raise Unmet("After the call the caller's list holds other heads, or the same in another order.")
    _shares_nothing(fuse, draw)
    return {name: parameter for k, head in enumerate(heads) for name, parameter in _named(head, k)}


def _shares_nothing(fuse: Answer, draw: Draw) -> None:
    """Unmet where the weights that are returned for a single head are the head's own."""
    (head,) = single_heads(draw.named("alone"), h=1)
    own = {parameter.data_ptr() for parameter in head.parameters()}
    if any(weight.data_ptr() in own for weight in triple(fuse([head]))):
        raise Unmet(OWN_WEIGHTS)


OWN_WEIGHTS = (
    "For a list of one head you return the head's own weights: writing into them later would change the head. The"
    " weights must be new tensors, however many heads there are."
)


def _named(head, k):
    return [(f"head {k}, {name}", parameter) for name, parameter in head.named_parameters()]


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

LESSON = Lesson(
    "04_multi_head",
    "Multi-head attention",
    exercises=(
        Exercise(
            "split_heads",
            stars=2,
            minutes=10,
            aspects=(
                values(2, wide_vectors, also=OTHER_VECTORS, axes="b h t d", picture=True),
                gradient(0.5, wide_vectors),
                divides(0.5, lambda split, e, h, draw: split(draw.normal(2, 5, e), h)),
                input_left_alone(0.5, wide_vectors),
                any_device(0.5, wide_vectors),
            ),
            forbidden={"finished_split": BY_HAND, "multi_head": BY_HAND},
        ),
        Exercise(
            "merge_heads",
            stars=2,
            minutes=6,
            aspects=(
                values(1.5, in_heads, also=OTHER_HEADS, axes="b t e", picture=True),
                gradient(0.5, in_heads),
                input_left_alone(0.5, in_heads),
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
                values(2.5, wide_vectors, via=of_any_size, also=OTHER_NARROW, axes="b t e", picture=True),
                gradient(0.5, sentences, via=NARROW, weights=True),
                divides(0.5, lambda module, e, h, draw: module(e, h)),
                input_left_alone(0.5, sentences, via=NARROW),
                any_device(0.5, sentences, via=NARROW),
            ),
            forbidden={"MultiheadAttention": LIBRARY, "multi_head_attention_forward": LIBRARY, "multi_head": BY_HAND},
            builds_on=("multi_head.merge_heads", "multi_head.split_heads"),
        ),
        Exercise(
            "fuse_heads",
            stars=2,
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
                        "After the call the single heads hold other weights than before. Copy from them, and write"
                        " nothing into them."
                    ),
                ),
                any_device(0.5, lambda draw: (single_heads(draw),), via=joined),
            ),
            builds_on=("attention.SingleHeadAttention", "multi_head.merge_heads", "multi_head.split_heads"),
        ),
        Exercise(
            "folded_heads",
            stars=2,
            minutes=8,
            mend=True,
            aspects=(
                values(1.5, projections, also=OTHER_PROJECTIONS, axes="b t e", picture=True),
                gradient(0.5, projections),
                input_left_alone(0.5, projections),
                any_device(0.5, projections),
            ),
            builds_on=("multi_head.merge_heads", "multi_head.split_heads"),
        ),
        Exercise(
            "count_parameters",
            stars=1,
            minutes=8,
            aspects=(
                Aspect("narrow", 1, counted("narrow"), accepts="number", rtol=0, atol=1e-9),
                Aspect("wide", 1, counted("wide"), accepts="number", rtol=0, atol=1e-9),
                Aspect("multi-query", 0.5, counted("multi-query"), accepts="number", rtol=0, atol=1e-9),
                Aspect("an integer", 0.5, whole_numbers, side=True),
            ),
        ),
    ),
    predictions=predictions_of("04_multi_head"),
)
