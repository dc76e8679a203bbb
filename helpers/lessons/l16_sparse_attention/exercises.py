"""Lesson 16: attention that leaves pairs out, and attention that keeps a state in place of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from helpers.exercises.aspects import LEFT_ALONE, Fault, Inputs, InTorch, Via, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import ATTENTION_OPERATORS, Answer, Aspect, Kind, Lesson, Probe
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


class Operations(TorchDispatchMode):
    """Counts PyTorch's operations, and keeps the size of the largest tensor that they make, in entries.

    A view is as large as what it views. description: the type and shape of that tensor.
    """

    def __init__(self):
        super().__init__()
        self.count = 0
        self.largest = 0
        self.description = ""

    def __torch_dispatch__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Calls the function, and looks at every tensor that it returns."""
        self.count += 1
        returned = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(returned):
            if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
                entries = tensor.untyped_storage().nbytes() // tensor.element_size()
                if entries > self.largest:
                    self.largest = entries
                    self.description = f"of shape {tuple(tensor.shape)} and type {str(tensor.dtype)[6:]}"
        return returned


LONG = 256  # positions


def no_square(sizes: tuple[int, int], name: str, gates: bool = False) -> Probe:
    """With 256 positions and a drawn size, no tensor has half of t² entries or more. name: that of the size.

    gates: the answer takes their logarithms too.
    """

    def probe(answer, draw):
        size = draw.number(*sizes)
        q, k, v = (draw.normal(1, 1, LONG, 4) for _ in range(3))
        logs = (draw.uniform(-1.0, 0.0, 1, 1, LONG),) if gates else ()
        with InTorch(), Operations() as watched:
            answer(q, k, v, *logs, size)
        if watched.largest >= LONG * LONG // 2:
            raise Fault(
                f"With t = {LONG} and {name} = {size}, your code makes a tensor {watched.description}, with"
                f" {watched.largest:,} entries in memory. That is room for all pairs at once (t² is"
                f" {LONG * LONG:,}), which this function is there to avoid, in scores and in masks."
            )
        return torch.tensor([1])

    return probe


def attended(
    t: int, *more: object, s: int | None = None, b: int = 2, h: int = 3, d: int = 4, std: float = 1.0
) -> Inputs:
    """Queries (b, h, t, d), keys and values (b, h, s, d), and further arguments."""
    s = s or t
    return case(normal(b, h, t, d, std=std), normal(b, h, s, d, std=std), normal(b, h, s, d), *more)


def large(*leading: int) -> Inputs:
    """Queries, keys and values (..., b, h, t, d) of more heads and positions than elsewhere, and a divisor of t.

    No score is so large that its exponential overflows.
    """

    def inputs(draw):
        b, h, d, length = draw.number(2, 5), draw.number(4, 7), draw.number(6, 10), draw.number(11, 17)
        shape = (*leading, b, h, length * draw.number(6, 8), d)
        return draw.heavy(*shape, most=8.0), draw.heavy(*shape, most=8.0), draw.heavy(*shape), length

    return inputs


def with_a_zero_key(draw: Draw) -> tuple[object, ...]:
    """A key that is all zeros is a key like any other: its scores are 0."""
    q, k, v, w = attended(9, 3)(draw)
    k[:, :, draw.number(3, 7)] = 0.0
    return q, k, v, w


def lifted(t: int, *more: object) -> Inputs:
    """As `attended`, but every second query finds all keys far better than it should, and the others far worse.

    The softmax depends on the differences between scores, and these stay small: no key takes all the weight.
    """

    def inputs(draw):
        q, k, v = (draw.normal(2, 3, t, 4) for _ in range(3))
        q[..., ::2, 0], q[..., 1::2, 0], k[..., 0] = 30.0, -30.0, 10.0
        return q, k, v, *more

    return inputs


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
    given=attended(7, 3),
    aspects=(
        values(
            2,
            given=attended(12, 4),
            also={
                "with a batch of one": attended(9, 3, b=1, d=2),
                "with a key of zeros": with_a_zero_key,
                "with one head": attended(10, 5, h=1),
                "with a window of one": attended(4, 1),
                "with one position": attended(1, 3),
            },
            larger=large(),
            axes="b h t d",
        ),
        values(
            1,
            given=attended(11, 4),
            name="t is no multiple of w",
            also={"by one too many": attended(13, 4), "with a window longer than the text": attended(5, 8)},
            axes="b h t d",
        ),
        values(
            0.5,
            given=lifted(7, 3),
            name="large scores",
            also={"with scores far below 0": all_far_below},
            axes="b h t d",
        ),
        Aspect("no tensor with t² entries", 1, no_square((6, 12), "w"), side=True),
        gradient(0.5),
        input_left_alone(0.5, given=attended(8, 4)),
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


def whole_chunks(answer: Answer, draw: Draw) -> torch.Tensor:
    """With chunks four times as large, less than two thirds of the operations are left; a quarter may be."""
    size = draw.number(6, 9)
    inputs = gated(192, b=1, h=1)(draw)
    counts = []
    for length in (size, 4 * size):
        with InTorch(), Operations() as watched:
            answer(*inputs, length)
        counts.append(watched.count)
    if counts[1] >= 2 / 3 * counts[0]:
        raise Fault(
            f"For 192 positions, your code takes {counts[0]:,} operations in chunks of {size} and {counts[1]:,} in"
            f" chunks of {4 * size}. With a whole chunk at once, a quarter would be left. Is there a loop over"
            " positions, or over parts of some other size?"
        )
    return torch.tensor([1])


ONE_CHUNK = (
    "Try one chunk that holds all positions. If that agrees with the loop of exercise 5 and smaller chunks do not, look"
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
        Aspect("no tensor with t² entries", 0.5, no_square((12, 20), "size", gates=True), side=True),
        Aspect("a whole chunk at once", 0.5, whole_chunks, side=True),
        gradient(0.5, given=gated(7, 3, past=True), also={"with gates near 0": nearly_closed(7, 3)}, via=joined),
        input_left_alone(0.25, given=gated(7, 3, past=True), via=joined),
        any_device(0.25, via=joined),
    ),
)

LESSON = Lesson(
    "16_sparse_attention",
    "Sparse attention",
    (local_mask, strided_masks, connected, banded_attention, recurrent_attention, chunked_attention),
    predictions_of("16_sparse_attention"),
)
