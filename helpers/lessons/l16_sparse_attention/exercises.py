"""Lesson 16: attention that leaves pairs out, and attention that keeps a state in place of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.aspects import LEFT_ALONE, Fault, Inputs, Via, kind_of
from helpers.exercises.attention_inputs import attention_inputs, large_attention_inputs, shifted_scores
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import ATTENTION_OPERATORS, Answer, Aspect, Kind, Lesson
from helpers.exercises.operations import LONG, no_square, whole_part_at_once
from helpers.exercises.other_device import THERE
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    case,
    each_of,
    exercise,
    gradient,
    input_left_alone,
    integer,
    normal,
    size,
    values,
)

LIBRARY = "It does by itself what this exercise is there to write."

# --------------------------------------------------------------------------------------------------------- masks


def as_long(draw: Draw) -> tuple[int, int]:
    """A window, or a stride, of t positions."""
    t = draw.number(4, 8)
    return t, t


def uniform(low: float, high: float, *shape: int) -> Callable[[Draw], torch.Tensor]:
    """Uniform numbers."""
    return lambda draw: draw.uniform(low, high, *shape)


def longer(draw: Draw) -> tuple[int, int]:
    """A window, or a stride, of more than t positions."""
    t = draw.number(3, 6)
    return t, t + draw.number(1, 6)


def blocks(rest: bool = False) -> Inputs:
    """t and l: two or three blocks of l, or strides, or windows. rest: t is no multiple of l."""

    def inputs(draw):
        size = draw.number(3, 6)
        return size * draw.number(2, 4) + (draw.number(1, size) if rest else 0), size

    return inputs


def half(place: int) -> Via:
    """One half of a pattern, so that each is judged by itself."""

    def via(answer, draw):
        def call(*arguments):
            masks = answer(*arguments)
            shape = f"a tensor of shape {tuple(masks.shape)}" if isinstance(masks, torch.Tensor) else kind_of(masks)
            if not isinstance(masks, torch.Tensor) or masks.dim() != 3 or len(masks) != 2:
                raise Fault(f"Your function returns {shape}. One tensor (2, t, t) is needed: the two halves, stacked.")
            return masks[place]

        return call

    return via


MADE_WHERE_ASKED = any_device(
    0.5,
    given=case(THERE),
    via=lambda answer, draw: lambda device: answer(5, 2, device=device),
    missed=(
        "Your mask has to be made on the device that is asked for. Hand `device` on to each function that makes a"
        " tensor."
    ),
)

local_mask = exercise(
    "local_mask",
    stars=1,
    minutes=4,
    fixes_bug=True,
    given=blocks(rest=True),
    also={
        "with a window of one": case(integer(4, 8), 1),
        "with a window as long as the text": as_long,
        "with a window that is longer": longer,
        "for one position": case(1, 2),
        "where w divides t": blocks(),
    },
    larger=case(size(70, 130), size(20, 70)),
    aspects=(
        values(
            1.5,
            axes="t t",
            dtype=True,
            picture=True,
            missed=(
                "A mask for t = 6 and w = 3 is (6, 6), booleans: row 0 sees position 0, row 1 sees 0 and 1, row 5 sees"
                " 3, 4 and 5. Look at a few rows of yours."
            ),
        ),
        MADE_WHERE_ASKED,
    ),
)

strided_masks = exercise(
    "strided_masks",
    stars=2,
    minutes=6,
    given=blocks(rest=True),
    also={
        "with a stride of one": case(integer(4, 8), 1),
        "with a stride of two": case(integer(4, 8), 2),
        "where l divides t": blocks(),
        "with a stride longer than the text": longer,
        "for one position": case(1, 3),
    },
    larger=case(size(70, 130), size(9, 35)),
    aspects=(
        values(
            0.5,
            name="near",
            via=half(0),
            axes="i j",
            dtype=True,
            missed=(
                "With t = 6 and l = 3, the near half is (6, 6), booleans: row 0 sees position 0, row 4 sees 1, 2, 3 and"
                " 4. Look at a few rows of yours."
            ),
        ),
        values(
            1,
            name="stride",
            via=half(1),
            axes="i j",
            dtype=True,
            missed=(
                "With t = 6 and l = 2, the stride is (6, 6), booleans: row 0 sees position 0, row 3 sees 1 and 3, row 4"
                " sees 0, 2 and 4. Look at a few rows of yours."
            ),
        ),
        MADE_WHERE_ASKED,
    ),
)

# ------------------------------------------------------------------------------------------------------ connected


def layers(t: int, *chances: float) -> Inputs:
    """A list of drawn causal masks (t, t), one for each layer, every second one without its diagonal."""

    def inputs(draw):
        return ([draw.mask(chance, t, t).tril(-(place % 2)) for place, chance in enumerate(chances)],)

    return inputs


def both_ways(draw: Draw) -> tuple[list[torch.Tensor]]:
    """Two masks that are not causal."""
    return ([draw.mask(0.2, 6, 6), draw.mask(0.2, 6, 6)],)


def many_layers(draw: Draw) -> tuple[list[torch.Tensor]]:
    """Masks of nine layers or more, of some hundred positions, of which each sees one other at most, mostly."""
    t = draw.number(70, 130)
    return ([draw.mask(0.4 / t, t, t) for _ in range(draw.number(9, 17))],)


def many_ways(draw: Draw) -> tuple[list[torch.Tensor]]:
    """Two equal causal masks of some 300 positions, which hide a few columns.

    Through the others some input reaches the last output in exactly 256 ways, which a type of 8 bits takes for none.
    """
    t = draw.number(290, 310)
    visible = draw.permutation(t) >= draw.number(5, 20)
    mask = visible.expand(t, t).tril()
    return ([mask, mask.clone()],)


def two_rows(answer: Answer, draw: Draw) -> Callable:
    """What an output in the middle, and the last one, may depend on."""

    def call(masks):
        reach = answer(list(masks))
        return reach[[len(masks[0]) // 2, -1]] if isinstance(reach, torch.Tensor) and reach.dim() == 2 else reach

    return call


def two_layers(draw: Draw) -> tuple[torch.Tensor, ...]:
    """Two masks (6, 6)."""
    return draw.mask(0.3, 6, 6), draw.mask(0.3, 6, 6)


def masks_left_alone(answer: Answer, draw: Draw) -> dict[str, torch.Tensor] | torch.Tensor:
    """Neither the list of masks nor a mask in it is changed."""
    masks = list(two_layers(draw))
    answer(masks)
    return {f"input {place}": mask for place, mask in enumerate(masks)} or torch.zeros(0)


CHANGED = (
    "Your code changes what it was given: a mask in place (fill_diagonal_, |= and the like), or the list itself (pop,"
    " reverse, append, an assignment to masks[...])."
)
WAYS = (
    "Try it by hand, t = 3: in layer 1 position 1 sees 0, in layer 2 position 2 sees 1, and nothing else is seen. Then"
    " output 0 depends on input 0, output 1 on 0 and 1, output 2 on all three: (3, 3), booleans."
)
OVERFLOW = (
    "Here are two layers of some 300 positions; an output in the middle and the last one are compared. If smaller masks"
    " are right, look at the type in which you multiply: there can be 300 ways, and in 8 bits 256 becomes 0."
)

connected = exercise(
    "connected",
    stars=2,
    minutes=6,
    given=layers(8, 0.3, 0.3),
    also={
        "of three": layers(7, 0.2, 0.3, 0.25),
        "of five": layers(9, 0.15, 0.2, 0.15, 0.2, 0.15),
        "not causal": both_ways,
    },
    larger=many_layers,
    aspects=(
        values(
            0.5,
            given=layers(7, 0.4),
            name="one layer",
            also={"with every diagonal empty": layers(5, 0.0), "for one position": layers(1, 0.5)},
            axes="t t",
            dtype=True,
            picture=True,
            missed=WAYS,
        ),
        values(1.5, name="several layers", axes="t t", dtype=True, picture=True, missed=WAYS),
        values(0.5, given=many_ways, name="many ways", via=two_rows, dtype=True, missed=OVERFLOW),
        Aspect(LEFT_ALONE, 0.25, masks_left_alone, side=True, kind=Kind.ARGUMENT, missed=CHANGED),
        any_device(0.25, given=two_layers, via=lambda answer, draw: lambda *masks: answer(list(masks))),
    ),
)

# ----------------------------------------------------------------------------------------------- banded_attention


def with_a_zero_key(draw: Draw) -> tuple[object, ...]:
    """A key that is all zeros is a key like any other: its scores are 0."""
    q, k, v, w = attention_inputs(9, 3)(draw)
    k[:, :, draw.number(3, 7)] = 0.0
    return q, k, v, w


def all_far_below(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Every query finds every key equally bad, with a score of −16,384: its result is the mean of what it may see."""
    q, k, v = torch.zeros(2, 3, 7, 4, device=draw.device), draw.normal(2, 3, 7, 4), draw.normal(2, 3, 7, 4)
    q[..., 0], k[..., 0] = -256.0, 128.0
    return q, k, v, 3


banded_attention = exercise(
    "banded_attention",
    stars=3,
    minutes=12,
    forbidden={"flex_attention": LIBRARY},
    by_hand=LIBRARY,
    operators=ATTENTION_OPERATORS,
    given=attention_inputs(7, 3),
    aspects=(
        values(
            2,
            given=attention_inputs(12, 4),
            also={
                "with a batch of one": attention_inputs(9, 3, b=1, d=2),
                "with a key of zeros": with_a_zero_key,
                "with one head": attention_inputs(10, 5, h=1),
                "with a window of one": attention_inputs(4, 1),
                "with one position": attention_inputs(1, 3),
            },
            larger=large_attention_inputs(),
            axes="b h t d",
        ),
        values(
            1,
            given=attention_inputs(11, 4),
            name="t is no multiple of w",
            also={
                "by one too many": attention_inputs(13, 4),
                "with a window longer than the text": attention_inputs(5, 8),
            },
            axes="b h t d",
        ),
        values(
            0.5,
            given=shifted_scores(7, 3),
            name="large scores",
            also={"with scores far below 0": all_far_below},
            axes="b h t d",
        ),
        Aspect(
            "no tensor with t² entries",
            1,
            no_square(lambda w: attention_inputs(LONG, w, b=1, h=1), (6, 12), "w"),
            side=True,
        ),
        gradient(0.5),
        input_left_alone(0.5, given=attention_inputs(8, 4)),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------ linear attention

RETURNED = ("y", "state")


def joined(answer: Answer, draw: Draw) -> Callable:
    """Outputs and state as one row of numbers, for gradients and devices."""

    def call(*arguments):
        return torch.cat([part.flatten() for part in all_of(RETURNED, answer(*arguments))])

    return call


def gated(
    t: int, *more: Any, b: int = 2, h: int = 3, d: int = 4, d_v: int = 5, low: float = -1.5, past: bool = False
) -> Inputs:
    """Queries, keys, values, logarithms of gates in [low, 0), further arguments, and with `past` a state."""
    state = (normal(b, h, d, d_v),) if past else ()
    return case(normal(b, h, t, d), normal(b, h, t, d), normal(b, h, t, d_v), uniform(low, 0.0, b, h, t), *more, *state)


def nearly_closed(t: int, *more: Any, past: bool = False) -> Inputs:
    """The same, where every third gate is about e^−100. All sums of these logarithms are exact in 32 bits."""

    def inputs(draw):
        q, k, v, log_g, *rest = gated(t, *more, past=past)(draw)
        log_g = (64 * log_g).round() / 64
        log_g[..., 1::3] -= 100.0
        return q, k, v, log_g, *rest

    return inputs


def many(*more: Any) -> Inputs:
    """More heads, positions and components than elsewhere, of which few are large, with gates that forget slowly."""

    def inputs(draw):
        b, h, t, d, d_v = (draw.number(*sizes) for sizes in ((2, 4), (4, 6), (90, 130), (9, 14), (14, 18)))
        q, k, v = (draw.heavy(b, h, t, each, most=8.0) for each in (d, d, d_v))
        return q, k, v, draw.uniform(-0.2, 0.0, b, h, t), *(each(draw) for each in more)

    return inputs


recurrent_attention = exercise(
    "recurrent_attention",
    stars=2,
    minutes=7,
    given=gated(6),
    also={
        "with a batch of one": gated(5, b=1, h=2, d=5, d_v=3),
        "for one position": gated(1),
        "with gates near 0": nearly_closed(7),
        "with a state from before": gated(5, past=True),
        "for one position, with a state from before": gated(1, b=1, h=2, d=5, d_v=3, past=True),
    },
    larger=many(),
    returns=RETURNED,
    aspects=(
        values(
            1.5,
            of="y",
            axes="b h t d",
            missed=(
                "Try it with numbers, d = d_v = 1: two positions, k = 1, 1, v = 2, 3, q = 1, 10 and gates 0.5, 0.5. The"
                " states are 2 and 0.5 · 2 + 3 = 4, so y is 2 and 40."
            ),
        ),
        values(1, of="state", axes="b h d d_v"),
        gradient(0.5, given=gated(4, past=True), via=joined),
        input_left_alone(0.5, given=gated(4, past=True), via=joined),
        any_device(0.5, via=joined),
    ),
)


WHOLE_CHUNK = (
    "For 192 positions, your code takes {many} operations in chunks of {small} and {few} in chunks of {large}. With a"
    " whole chunk at once, a quarter would be left. Is there a loop over positions, or over parts of some other size?"
)
ONE_CHUNK = (
    "Try one chunk that holds all positions. If that agrees with the loop of exercise 4 and smaller chunks do not, look"
    " at how the state is read, and at what is handed to the next chunk; if it does not agree either, look at the"
    " decays between the positions of one chunk."
)

chunked_attention = exercise(
    "chunked_attention",
    stars=3,
    minutes=13,
    given=gated(8, 4),
    returns=RETURNED,
    aspects=(
        values(
            1.5,
            of="y",
            given=gated(8, 4),
            also={
                "with a batch of one": gated(9, 3, b=1, h=2, d=5, d_v=3),
                "with chunks of one": gated(5, 1),
                "with a last chunk that is shorter": gated(7, 3),
                "with a chunk longer than the text": gated(4, 9),
                "for one position": gated(1, 2),
            },
            larger=many(integer(11, 17)),
            axes="b h t d",
            missed=ONE_CHUNK,
        ),
        values(
            1,
            of="state",
            given=gated(8, 4),
            also={"with a last chunk that is shorter": gated(7, 3), "with gates near 0": nearly_closed(8, 3)},
            axes="b h d d_v",
            missed=ONE_CHUNK,
        ),
        values(
            0.5,
            name="a state from before",
            via=each_of(RETURNED),
            given=gated(7, 3, past=True),
            also={"for one position": gated(1, 2, b=1, h=2, d=5, d_v=3, past=True)},
            missed="The first chunk reads the state that is given, as every other chunk reads that of the one before.",
        ),
        values(1, of="y", name="gates near 0", given=nearly_closed(9, 4), axes="b h t d"),
        Aspect(
            "no tensor with t² entries",
            0.5,
            no_square(lambda size: gated(LONG, size, b=1, h=1), (12, 20), "size"),
            side=True,
        ),
        Aspect(
            "a whole chunk at once",
            0.5,
            whole_part_at_once(lambda size: gated(192, size, b=1, h=1), WHOLE_CHUNK),
            side=True,
        ),
        gradient(0.5, given=gated(7, 3, past=True), also={"with gates near 0": nearly_closed(7, 3)}, via=joined),
        input_left_alone(0.25, given=gated(7, 3, past=True), via=joined),
        any_device(0.25, via=joined),
    ),
)

LESSON = Lesson(
    "16_sparse_attention",
    "Sparse attention",
    (local_mask, strided_masks, connected, recurrent_attention, banded_attention, chunked_attention),
    predictions_of("16_sparse_attention"),
)
