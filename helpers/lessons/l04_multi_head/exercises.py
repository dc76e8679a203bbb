"""Lesson 4: multi-head attention."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import torch

from helpers.exercises.aspects import Fault, Inputs, RaisedIn, built
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import ATTENTION_OPERATORS, Answer, Aspect, Kind, Lesson, Probe
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
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
    stars=1,
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
    stars=2,
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

# -------------------------------------------------------------------------------------------- is_right_merge

Merge = Callable[[torch.Tensor], torch.Tensor]  # (b, h, t, d) -> (b, t, h·d), if it is right


def merged(x: torch.Tensor) -> torch.Tensor:
    """(b, h, t, d) -> (b, t, h·d)."""
    from helpers.parts.multi_head import merge_heads

    return merge_heads(x)


def without_last(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Zeros in place of the last entries along an axis, as of a loop that ends too early. Returns a new tensor."""
    return torch.cat([x.narrow(axis, 0, x.shape[axis] - 1), torch.zeros_like(x.narrow(axis, 0, 1))], axis)


# What a merge does, after "a merge that ...". Whatever the wrong ones do shows where no two numbers are alike and no
# axis has length 1; axes of length 2 are enough.
RIGHT_MERGES: dict[str, Merge] = {
    "merges all heads at once": merged,
    "goes through the heads one by one": lambda x: torch.cat([merged(one) for one in x.split(1, dim=1)], dim=-1),
    "goes through the sentences one by one": lambda x: torch.cat([merged(one) for one in x.split(1)]),
    "goes through the positions one by one": lambda x: torch.cat([merged(one) for one in x.split(1, dim=2)], dim=1),
    "returns a tensor that is not contiguous": lambda x: merged(x).mT.contiguous().mT,
}
WRONG_POSITIONS: dict[str, Merge] = {
    "reshapes without exchanging axes": lambda x: x.reshape(len(x), x.shape[2], -1),
    "exchanges positions and components, and reshapes": lambda x: x.mT.reshape(len(x), x.shape[2], -1),
    "reverses the order of the positions": lambda x: merged(x).flip(1),
    "moves every position by one place": lambda x: merged(x).roll(1, 1),
    "leaves the last position zero": lambda x: without_last(merged(x), 1),
}
WRONG_HEADS: dict[str, Merge] = {
    "interleaves the components of the heads": lambda x: x.permute(0, 2, 3, 1).flatten(2),
    "reverses the order of the heads": lambda x: merged(x.flip(1)),
    "reverses the components of each head": lambda x: merged(x.flip(3)),
    "puts the first head in the place of all": lambda x: merged(x[:, :1].expand_as(x)),
    "leaves the last head zero": lambda x: merged(without_last(x, 1)),
}
WRONG_SENTENCES: dict[str, Merge] = {
    "moves the positions before the batch, and reshapes": lambda x: x.permute(2, 0, 1, 3).reshape(
        len(x), x.shape[2], -1
    ),
    "puts the first sentence in the place of all": lambda x: merged(x[:1].expand_as(x)),
    "reverses the order of the sentences": lambda x: merged(x.flip(0)),
    "leaves the last sentence zero": lambda x: without_last(merged(x), 0),
}
WRONG_SHAPES: dict[str, Merge] = {
    "adds up the heads": lambda x: x.sum(1),
    "joins the heads along the positions": lambda x: x.flatten(1, 2),
    "joins positions and components, not heads": lambda x: x.flatten(2),
    "puts the positions before the batch": lambda x: merged(x).transpose(0, 1),
    "appends the first head once more": lambda x: merged(torch.cat([x, x[:, :1]], dim=1)),
    "returns what it is given": lambda x: x,
}


def accepted(wrong: dict[str, Merge]) -> Probe:
    """Which merges the answer accepts: all of these, and some right ones, in a drawn order."""

    def probe(answer: Answer, draw: Draw) -> dict[str, object]:
        right = list(RIGHT_MERGES)
        chosen = [right[place] for place in draw.permutation(len(right))[: draw.number(2, 5)].tolist()]
        merges = wrong | {what: RIGHT_MERGES[what] for what in chosen}
        order = [list(merges)[place] for place in draw.permutation(len(merges)).tolist()]
        return {f"Does your test accept a merge that {what}?": answered(answer, merges[what], what) for what in order}

    return probe


def answered(answer: Answer, merge: Merge, what: str) -> object:
    """What the answer says of one merge. It gets a function that does not show which."""
    try:
        said = answer(lambda x: merge(x))
    except Exception as problem:
        raise RaisedIn(f"for a merge that {what}") from problem
    return bool(said) if isinstance(said, np.bool_) else said


def tells_apart(name: str, wrong: dict[str, Merge]) -> Aspect:
    """Wrong merges of one kind are told from right ones."""
    return Aspect(name, 1, accepted(wrong), accepts="number", rtol=0, atol=1e-9, kind=Kind.QUESTION)


OWN_TEST = "A test has to know the right result without the code that it tests, or a finished copy of it."

is_right_merge = exercise(
    "is_right_merge",
    stars=2,
    minutes=12,
    forbidden=dict.fromkeys(("finished_merge", "finished_split", "merge_heads", "multi_head"), OWN_TEST),
    builds_on=("multi_head.merge_heads",),
    no_larger="The answer chooses the tensors itself; the check hands it functions.",
    aspects=(
        tells_apart("positions", WRONG_POSITIONS),
        tells_apart("heads", WRONG_HEADS),
        tells_apart("sentences", WRONG_SENTENCES),
        tells_apart("shapes", WRONG_SHAPES),
    ),
)

LESSON = Lesson(
    "04_multi_head",
    "Multi-head attention",
    (split_heads, merge_heads, multi_head_attention, folded_heads, is_right_merge),
    predictions_of("04_multi_head"),
)
