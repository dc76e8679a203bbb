"""Lesson 4: multi-head attention."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral

import torch

from helpers.exercises.aspects import LARGER, Fault, Inputs, Via, built, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import ATTENTION_OPERATORS, Answer, Aspect, Lesson, Probe
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    case,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    module,
    normal,
    outliers,
    parameters,
    size,
    values,
)

BY_HAND = "This exercise is there to write it yourself; the finished one is for the exercises after it."

# -------------------------------------------------------------------------------------- e not divisible by h


def refuses(call: Callable[[Answer, int, int, Draw], object], what: str) -> Probe:
    """A probe: a ValueError, with both numbers in its message, for an e that h does not divide.

    call: runs the answer for that e and that h. what: what runs then.
    """

    def probe(answer: Answer, draw: Draw) -> torch.Tensor:
        h = (4, 6, 7)[draw.number(0, 3)]
        e = h * draw.number(4, 7) + draw.number(1, h)
        try:
            call(answer, e, h, draw)
        except ValueError as problem:
            absent = [str(n) for n in (e, h) if not re.search(rf"(?<!\d){n}(?!\d)", str(problem))]
            if absent:
                raise Fault(
                    f"For e = {e} and h = {h} your code raises a ValueError with the message {str(problem)!r}. It must"
                    f" name e and h; {' and '.join(absent)} cannot be found in it."
                ) from None
            return torch.tensor([1])
        raise Fault(f"For e = {e} and h = {h} {what} raises no error. {REFUSAL}")

    return probe


REFUSAL = "h does not divide e, so a ValueError is needed, with both numbers in its message."


def divides(points: float, call: Callable[[Answer, int, int, Draw], object], what: str = "your code") -> Aspect:
    """A width that the number of heads does not divide is refused, both numbers named."""
    return Aspect(
        "e not divisible by h",
        points,
        refuses(call, what),
        side=True,
        missed=REFUSAL,
    )


# ---------------------------------------------------------------------------------- split_heads, merge_heads


def many_vectors(draw: Draw) -> tuple[torch.Tensor, int]:
    """Nine sentences or more, of some thirty vectors, and six heads or more."""
    h = draw.number(6, 10)
    return outliers(draw.number(9, 12), draw.number(24, 33), h * draw.number(5, 9))(draw), h


split_heads = exercise(
    "split_heads",
    stars=2,
    minutes=10,
    forbidden={"finished_split": BY_HAND, "multi_head": BY_HAND},
    given=case(normal(2, 5, 12), 3),  # with 3 heads every axis of the result has another size
    also={
        "with a batch of one": case(normal(1, 5, 12), 3),
        "with a single position": case(normal(2, 1, 12), 3),
        "with a single head": case(normal(2, 5, 4), 1),
        "with as many heads as components": case(normal(3, 2, 5), 5),
    },
    larger=many_vectors,
    aspects=(
        values(2, axes="b h t d", picture=True),
        gradient(0.5),
        divides(0.5, lambda split, e, h, draw: split(draw.normal(2, 5, e), h)),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

merge_heads = exercise(
    "merge_heads",
    stars=2,
    minutes=6,
    forbidden={"finished_merge": BY_HAND, "multi_head": BY_HAND},
    given=case(normal(2, 3, 5, 4)),
    also={
        "with a batch of one": case(normal(1, 3, 5, 4)),
        "with a single position": case(normal(2, 3, 1, 4)),
        "with a single head": case(normal(2, 1, 5, 4)),
        "with heads of width 1": case(normal(3, 5, 2, 1)),
    },
    larger=case(heavy(size(9, 12), size(6, 9), size(24, 33), size(10, 13))),
    aspects=(
        values(1.5, axes="b t e", picture=True),
        gradient(0.5),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ---------------------------------------------------------------------------------------- MultiHeadAttention

LIBRARY = (
    "PyTorch's own module is what this exercise is there to build: three projections, heads, scores, softmax, average,"
    " unify."
)

multi_head_attention = exercise(
    "MultiHeadAttention",
    stars=3,
    minutes=20,
    forbidden={"MultiheadAttention": LIBRARY, "multi_head_attention_forward": LIBRARY, "multi_head": BY_HAND},
    by_hand=LIBRARY,
    operators=ATTENTION_OPERATORS,
    builds_on=("multi_head.merge_heads", "multi_head.split_heads"),
    given=case(normal(2, 5, 12)),
    via=built(12, 3),
    aspects=(
        parameters(0.5),
        values(
            2.5,
            given=case(normal(2, 5, 12), 3),
            via=module(lambda x, h: ((x.shape[-1], h), (x,))),
            also={
                "with a batch of one": case(normal(1, 5, 12), 3),
                "with a single position": case(normal(2, 1, 12), 3),
                "for e = 10 and h = 5": case(normal(2, 4, 10), 5),
                "with a single head": case(normal(2, 4, 6), 1),
            },
            larger=many_vectors,
            axes="b t e",
            picture=True,
        ),
        gradient(0.5, weights=True),
        divides(0.5, lambda module, e, h, draw: module(e, h), "the constructor"),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------ fuse_heads


def single_heads(draw: Draw, e: int = 7, d: int = 4, h: int = 3) -> list[torch.nn.Module]:
    """h heads from width e to width d. Three from 7 to 4: 3·4 is not 7, so a weight that lies the wrong way shows."""
    from helpers.parts.attention import SingleHeadAttention

    return [built(e, d)(SingleHeadAttention, draw.named(f"head {k}")) for k in range(h)]


def heads_of(e: int, d: int, h: int) -> Inputs:
    """A list of h heads from width e to width d."""
    return lambda draw: (single_heads(draw, e, d, h),)


def triple(fused: Answer) -> Sequence[torch.Tensor]:
    """What `fuse_heads` returned, which may be one tensor (3, h·d, e), as three weights; Fault where it is not."""
    if isinstance(fused, Iterator) or isinstance(fused, torch.Tensor) and fused.dim() > 2:
        fused = tuple(fused)
    for weight in all_of(("w_q", "w_k", "w_v"), fused):
        if not isinstance(weight, torch.Tensor):
            raise Fault(f"One of your three weights is {kind_of(weight)}; tensors are needed, such as layer.weight.")
    return fused


def weight(number: int) -> Via:
    """`fuse_heads` as a function that returns the weight of queries (0), keys (1) or values (2)."""
    return lambda fuse, draw: lambda heads: triple(fuse(heads))[number]


def joined(fuse: Answer, draw: Draw) -> Callable:
    """The three fused matrices, one below the other."""
    return lambda heads: torch.cat(tuple(triple(fuse(heads))))


def fused_outputs(fuse: Answer, draw: Draw) -> torch.Tensor:
    """All heads at once with the fused weights, unscaled as lesson 2's heads are. (2, 5, 7) -> (2, 5, 12)."""
    from helpers.parts.multi_head import merge_heads, split_heads

    w_q, w_k, w_v = triple(fuse(single_heads(draw)))
    shapes = [tuple(weight.shape) for weight in (w_q, w_k, w_v)]
    if set(shapes) != {(12, 7)}:
        raise Fault(
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
        raise Fault(
            "After the call the caller's list is not what it was: heads are missing, replaced or moved. Read from the"
            " list, and change nothing in it."
        )
    _shares_nothing(fuse, draw)
    return {name: parameter for k, head in enumerate(heads) for name, parameter in _named(head, k)}


def _shares_nothing(fuse: Answer, draw: Draw) -> None:
    """Fault where the weights that are returned for a single head are the head's own."""
    (head,) = single_heads(draw.named("alone"), h=1)
    own = {parameter.data_ptr() for parameter in head.parameters()}
    if any(weight.data_ptr() in own for weight in triple(fuse([head]))):
        raise Fault(OWN_WEIGHTS)


OWN_WEIGHTS = (
    "For a list of one head you return the head's own weights: writing into them later would change the head. The"
    " weights must be new tensors, however many heads there are."
)


def _named(head, k):
    return [(f"head {k}, {name}", parameter) for name, parameter in head.named_parameters()]


fuse_heads = exercise(
    "fuse_heads",
    stars=2,
    minutes=10,
    builds_on=("attention.SingleHeadAttention", "multi_head.merge_heads", "multi_head.split_heads"),
    given=heads_of(7, 4, 3),
    also={
        "with a list of one head": heads_of(7, 4, 1),
        "with five heads of width 2": heads_of(3, 2, 5),
        "with heads of width 1": heads_of(4, 1, 2),
    },
    larger=lambda draw: (single_heads(draw, e=draw.number(24, 33), d=draw.number(10, 17), h=draw.number(9, 11)),),
    aspects=(
        values(1, name="queries", via=weight(0), axes="h·d e", picture=True),
        values(0.5, name="keys", via=weight(1), axes="h·d e", picture=True),
        values(0.5, name="values", via=weight(2), axes="h·d e", picture=True),
        Aspect("outputs", 1, fused_outputs, axes="b t h·d", picture=True),
        Aspect(
            "heads left alone",
            0.5,
            heads_left_alone,
            side=True,
            missed=(
                "After the call the single heads hold other weights than before. Copy from them, and write nothing into"
                " them."
            ),
        ),
        any_device(0.5, via=joined),
    ),
)

# ---------------------------------------------------------------------------------------------- folded_heads


def projections(b: int = 2, t: int = 5, e: int = 12, h: int = 3) -> Inputs:
    """Queries, keys and values of b sentences of t positions, each (b, t, e), and h heads."""
    return case(normal(b, t, e), normal(b, t, e), normal(b, t, e), h)


def many_projections(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """The same of nine sentences or more, of some thirty positions, in six heads or more. No score overflows in exp."""
    k, h = many_vectors(draw)
    return draw.normal(*k.shape), k, draw.heavy(*k.shape), h


folded_heads = exercise(
    "folded_heads",
    stars=2,
    minutes=8,
    fixes_bug=True,
    builds_on=("multi_head.merge_heads", "multi_head.split_heads"),
    given=projections(),
    also={
        "with a batch of one": projections(b=1),
        "with a single position": projections(t=1),
        "with a single head": projections(t=4, e=6, h=1),
        "for e = 10 and h = 5": projections(b=3, t=4, e=10, h=5),
    },
    larger=many_projections,
    aspects=(
        values(1.5, axes="b t e", picture=True),
        gradient(0.5),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------ count_parameters


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
        counts = {f"for e = {e} and h = {h}": count(e, h, kind) for e, h in sizes(draw)}
        h = draw.number(9, 13)  # no larger, since who counts by a module makes one
        return counts | {LARGER: count(h * draw.number(14, 18), h, kind)}

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
            raise Fault(f"For the kind {kind!r} your function returns {what}; a count is an integer. {WHOLE_DIVISION}")
    return torch.tensor([1])


WHOLE_DIVISION = "The result of / is a float even for 6 / 3; the result of // is an integer."


def _described(value: object) -> str:
    """What kind of thing it is, with the number where it is a float: "the float 152.0"."""
    return f"the float {value!r}" if isinstance(value, float) else kind_of(value)


def count(points: float, kind: str) -> Aspect:
    """The number of parameters of a module of that kind is right."""
    return Aspect(kind, points, counted(kind), accepts="number", rtol=0, atol=1e-9)


count_parameters = exercise(
    "count_parameters",
    stars=1,
    minutes=8,
    aspects=(
        count(1, "narrow"),
        count(1, "wide"),
        count(0.5, "multi-query"),
        Aspect("an integer", 0.5, whole_numbers, side=True),
    ),
)

LESSON = Lesson(
    "04_multi_head",
    "Multi-head attention",
    (split_heads, merge_heads, multi_head_attention, fuse_heads, folded_heads, count_parameters),
    predictions_of("04_multi_head"),
)
