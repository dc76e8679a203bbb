"""Lesson 16: attention that leaves pairs out, and attention that stores none."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from helpers.exercises.aspects import LARGER, LEFT_ALONE, Fault, Inputs, InTorch, Via, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import ATTENTION_OPERATORS, SOFTMAX_OPERATORS, Answer, Aspect, Kind, Lesson, Probe
from helpers.exercises.other_device import THERE
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    case,
    exercise,
    gradient,
    input_left_alone,
    integer,
    normal,
    size,
    values,
)

FINISHED = "The finished part is there for the exercises that build on this one; write it here."
LIBRARY = "It does by itself what this exercise is there to write."

# --------------------------------------------------------------------------------------------------------- masks


def as_long(draw: Draw) -> tuple[int, int]:
    """A window, or a stride, of t positions."""
    t = draw.number(4, 8)
    return t, t


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


def columns(rest: bool = False, whole: bool = False) -> Inputs:
    """t, l and c: two or three blocks, of which c columns are the summary, from two to l − 2. whole: c = l."""

    def inputs(draw):
        size = draw.number(4, 7)
        t = size * draw.number(2, 4) + (draw.number(1, size) if rest else 0)
        return t, size, size if whole else draw.number(2, size - 1)

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

OWN_BLOCK = (
    "With t = 6 and l = 4, the first half is (6, 6), booleans: row 3 sees positions 0, 1, 2 and 3, row 4 sees 4 alone,"
    " and row 5 sees 4 and 5. Look at a few rows of yours."
)
SUMMARIES = (
    "With t = 9, l = 4 and c = 2, the summary columns are 2, 3, 6 and 7: row 1 sees none of them, row 3 sees 2 and 3,"
    " row 6 sees 2, 3 and 6; with c = 1, row 8 sees 3 and 7. Look at a few rows of yours."
)

fixed_masks = exercise(
    "fixed_masks",
    stars=2,
    minutes=6,
    given=blocks(),
    also={
        "where l does not divide t": blocks(rest=True),
        "with blocks of one": case(integer(4, 8), 1),
        "with a block longer than the text": longer,
        "for one position": case(1, 3),
    },
    larger=case(size(70, 130), size(9, 35)),
    aspects=(
        values(1, name="own block", via=half(0), axes="i j", dtype=True, missed=OWN_BLOCK),
        values(0.5, name="one summary column", via=half(1), axes="i j", dtype=True, missed=SUMMARIES),
        values(
            1,
            given=columns(),
            name="several columns",
            via=half(1),
            also={
                "where l does not divide t": columns(rest=True),
                "with whole blocks": columns(whole=True),
                "with two of three": case(integer(4, 8), 3, 2),
            },
            larger=case(size(70, 130), size(20, 35), size(8, 18)),
            axes="i j",
            dtype=True,
            missed=SUMMARIES,
        ),
        MADE_WHERE_ASKED,
    ),
)

# ------------------------------------------------------------------------------------------------- attended_pairs


def count_of(answer: Answer, kind: str, t: int, size: int) -> int | float:
    """How many pairs the student counts."""
    count = answer(kind, t, size)
    if isinstance(count, bool) or not isinstance(count, Real):
        raise Fault(f"A number of pairs is a whole number; your function returns {kind_of(count)}.")
    return count if isinstance(count, (int, float)) else float(count)


def counted(kind: str) -> Probe:
    """The pairs of a pattern for drawn (t, l), where l divides t and may be t, or 1."""

    def probe(answer, draw):
        def counts(*cases):
            numbers = [count_of(answer, kind, *case) for case in cases]
            if all(float(number).is_integer() for number in numbers):
                return torch.tensor([int(number) for number in numbers])  # compared exactly
            return torch.tensor(numbers, dtype=torch.float64)

        drawn = [(draw.number(least, most), draw.number(least, most)) for least, most in ((2, 7), (2, 7), (7, 20))]
        cases = [(size * blocks, size) for size, blocks in drawn] + [as_long(draw), (draw.number(4, 9), 1)]
        long, many = (draw.named(LARGER).named(name).number(30, 50) for name in ("l", "blocks"))
        return {"result": counts(*cases), LARGER: counts((long * many, long))}

    return probe


def counted_without_a_mask(answer: Answer, draw: Draw) -> torch.Tensor:
    """Every pattern is counted, and not rounded, where a mask of t² bytes is more than any machine can address."""
    size, blocks = draw.number(3500, 4000), draw.number(3500, 4000)
    try:
        counts = {kind: count_of(answer, kind, size * blocks, size) for kind in ("full", "local", "strided", "fixed")}
    except (RuntimeError, MemoryError) as problem:
        if "memory" not in str(problem) and not isinstance(problem, MemoryError):
            raise
        raise Fault(
            f"With t = {size * blocks:,}, a mask of t² entries fits into no memory. Count the pairs without making one."
        ) from None
    for kind, count in counts.items():
        exact = torch.tensor(count, dtype=torch.float64)
        if exact.float().double() == exact:  # true of an exact count once in a million draws
            raise Fault(
                f"With t = {size * blocks:,}, your count for {kind!r} has the 24 bits of a float32, so it is rounded. "
                "Count with Python's own numbers."
            )
    return torch.tensor([1])


FULL = "Row i of a causal mask has i + 1 pairs: 1 + 2 + … + t in all. Try t = 3 by hand: there are 6."
WINDOW = (
    "Each row of the window has l pairs but for the first l − 1, which have fewer. Try t = 4, l = 2 by hand:"
    " 1 + 2 + 2 + 2 = 7."
)
STRIDE = (
    "The near half is a window of l + 1; on the stride the rows of the first block see 1 position, those of the second"
    " 2, and so on. Try t = 4, l = 2 by hand: 1 + 2 + 3 + 3 for the near half, 1 + 1 + 2 + 2 for the stride."
)
BLOCK = (
    "The first half is t/l small triangles; in the second, row i sees the summary columns up to i. Try t = 4, l = 2 by"
    " hand: 1 + 2 + 1 + 2 for the blocks, 0 + 1 + 1 + 2 for the columns."
)

attended_pairs = exercise(
    "attended_pairs",
    stars=2,
    minutes=7,
    aspects=(
        Aspect("full", 0.5, counted("full"), missed=FULL),
        Aspect("local", 0.5, counted("local"), missed=WINDOW),
        Aspect("strided", 0.75, counted("strided"), missed=STRIDE),
        Aspect("fixed", 0.75, counted("fixed"), missed=BLOCK),
        Aspect("very long texts", 0.5, counted_without_a_mask, side=True),
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


def no_square(sizes: tuple[int, int], name: str) -> Probe:
    """With 256 positions and a drawn size, no tensor has half of t² entries or more. name: that of the size."""

    def probe(answer, draw):
        size = draw.number(*sizes)
        q, k, v = (draw.normal(1, 1, LONG, 4) for _ in range(3))
        with InTorch(), Operations() as watched:
            answer(q, k, v, size)
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

# ---------------------------------------------------------------------------------------------------------- merge

PARTIAL = ("m", "l", "o")  # the three tensors of a partial result


def part(draw: Draw, *shape: int, d: int = 4, high: float = 0.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A partial result (m, ℓ, o), whose largest scores lie around `high`."""
    return draw.normal(*shape, mean=high, std=2.0), draw.uniform(1.0, 5.0, *shape), draw.normal(*shape, d)


def nothing(draw: Draw, *shape: int, d: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The partial result of no key at all."""
    zeros = torch.zeros(*shape, device=draw.device)
    return zeros - math.inf, zeros, torch.zeros(*shape, d, device=draw.device)


def two_parts(*shape: int, high: float = 0.0, apart: float = 0.0, d: int = 4) -> Inputs:
    """Two partial results over different keys."""
    return lambda draw: (part(draw, *shape, d=d, high=high), part(draw, *shape, d=d, high=high + apart))


def some_and_nothing(draw: Draw) -> tuple:
    """Two partial results of six rows. Nothing was seen by the one in rows 2 and 3, by the other in rows 0 to 2."""
    return with_nothing_in(draw.named("first"), 2, 3), with_nothing_in(draw.named("second"), 0, 1, 2)


def with_nothing_in(draw: Draw, *rows: int) -> tuple:
    """A partial result of six rows, of which these saw nothing."""
    unseen = torch.isin(torch.arange(6, device=draw.device), torch.tensor(rows, device=draw.device)).expand(2, 6)
    return tuple(
        torch.where(unseen if a.dim() == 2 else unseen.unsqueeze(-1), a, b)
        for a, b in zip(nothing(draw, 2, 6), part(draw, 2, 6), strict=True)
    )


def two_large_parts(draw: Draw) -> tuple:
    """Two partial results with three axes of rows."""
    rows = draw.number(3, 6), draw.number(4, 7), draw.number(40, 70)
    d = draw.number(9, 16)
    return tuple((draw.heavy(*rows), draw.uniform(1.0, 5.0, *rows), draw.heavy(*rows, d)) for _ in range(2))


def as_six(inputs: Inputs) -> Inputs:
    """Two partial results as six tensors."""

    def six(draw):
        first, second = inputs(draw)
        return *first, *second

    return six


def by_name(answer: Answer, draw: Draw) -> Callable:
    """The student's function, whose three tensors get their names."""

    def call(a, b):
        m, total, out = all_of(PARTIAL, answer(a, b))
        return {"the largest score m": m, "the sum ℓ": total, "the weighted sum o": out}

    return call


def with_powers(answer: Answer, draw: Draw) -> Callable:
    """The same with exp(m) for m, which is a finite number where nothing was seen, and where m is −∞."""

    def call(a, b):
        m, total, out = all_of(PARTIAL, answer(a, b))
        unseen = m == -math.inf
        m = torch.exp(m) if isinstance(m, torch.Tensor) else m
        return {
            "the largest score m, compared as e^m": m,
            "the sum ℓ": total,
            "the weighted sum o": out,
            "where the largest score m is −∞": unseen,
        }

    return call


def normalised(answer: Answer, draw: Draw) -> Callable:
    """From six tensors to o/ℓ of their merger, for gradients and devices."""

    def call(*tensors):
        _, total, out = all_of(PARTIAL, answer(tensors[:3], tensors[3:]))
        return out / total.unsqueeze(-1)

    return call


ONE_ROW = (
    "Try one row by hand, in both orders, with the parts (2, 1, 10) and (4, 1, 20). The larger maximum is 4, so"
    " m = 4, ℓ = e^−2 · 1 + 1 = 1.135 and o = e^−2 · 10 + 20 = 21.35."
)

merge = exercise(
    "merge",
    stars=2,
    minutes=8,
    forbidden={"finished_merge": FINISHED},
    fixed={"a": "a partial result is three tensors, (m, ℓ, o)", "b": "it is another partial result"},
    given=two_parts(2, 5),
    also={"of one row": two_parts(1, d=2), "with heads": two_parts(2, 3, 4)},
    larger=two_large_parts,
    via=by_name,
    aspects=(
        values(1.5, missed=ONE_ROW),
        values(
            0.5,
            given=two_parts(2, 5, high=500.0, apart=30.0),
            name="large and small scores",
            also={
                "with scores far below zero": two_parts(2, 5, high=-2000.0),
                "with maxima far apart": two_parts(2, 5, high=-50.0, apart=300.0),
            },
        ),
        values(
            0.75,
            given=some_and_nothing,
            name="nothing seen",
            via=with_powers,
            also={
                "on the other side": lambda draw: (nothing(draw, 2, 3), part(draw, 2, 3)),
                "on both sides": lambda draw: (nothing(draw, 2, 3), nothing(draw, 2, 3)),
            },
        ),
        gradient(
            0.5,
            given=as_six(two_parts(2, 3)),
            via=normalised,
            also={
                "with a part that saw nothing": as_six(lambda draw: (part(draw, 2, 3), nothing(draw, 2, 3))),
                "on the other side": as_six(lambda draw: (nothing(draw, 2, 3), part(draw, 2, 3))),
                "with large and small scores": as_six(two_parts(2, 3, high=500.0, apart=30.0)),
            },
        ),
        input_left_alone(0.25, given=as_six(some_and_nothing), via=normalised),
        any_device(0.5, given=as_six(two_parts(2, 3)), via=normalised),
    ),
)

# ------------------------------------------------------------------------------------------------ tiled_attention


def whole_tiles(answer: Answer, draw: Draw) -> torch.Tensor:
    """With tiles four times as large, less than two thirds of the operations are left; a quarter may be."""
    tile = draw.number(6, 9)
    q, k, v = draw.normal(1, 1, 32, 4), draw.normal(1, 1, 192, 4), draw.normal(1, 1, 192, 4)
    counts = []
    for length in (tile, 4 * tile):
        with InTorch(), Operations() as watched:
            answer(q, k, v, length)
        counts.append(watched.count)
    if counts[1] >= 2 / 3 * counts[0]:
        raise Fault(
            f"For 192 keys, your code takes {counts[0]:,} operations in tiles of {tile} and {counts[1]:,} in tiles of"
            f" {4 * tile}. With a whole tile of keys at once, a quarter would be left. Is there a loop over rows, over"
            " single keys, or over parts of some other size?"
        )
    return torch.tensor([1])


ONE_TILE = (
    "Try one tile that holds all keys. If that agrees with softmax attention and smaller tiles do not, look at what is"
    " carried from tile to tile, and at which tiles are left out; if it does not agree either,"
    " look at the tile: its scores, its mask, its maximum."
)

tiled_attention = exercise(
    "tiled_attention",
    stars=3,
    minutes=11,
    forbidden={"flex_attention": LIBRARY},
    by_hand=LIBRARY,
    operators=SOFTMAX_OPERATORS,
    builds_on=("sparse.merge",),
    given=attended(6, 2),
    aspects=(
        values(
            1.5,
            given=attended(8, 2),
            also={
                "with a last tile that is shorter": attended(7, 3),
                "with tiles of one": attended(5, 1, b=1),
                "with a tile longer than the text": attended(4, 9),
                "for one position": attended(1, 2),
                "without batch and heads": case(*(normal(5, 4),) * 3, 2),
            },
            larger=large(2),
            axes="b h t d",
            missed=ONE_TILE,
        ),
        values(
            1,
            given=attended(3, 2, s=8),
            name="more keys than queries",
            also={"for one query": attended(1, 3, s=7), "of another size": attended(4, 4, s=6)},
            axes="b h t d",
            missed=ONE_TILE,
        ),
        values(
            0.5,
            given=attended(5, 2, False, s=7),
            name="not causal",
            also={"with fewer keys": attended(6, 2, False, s=3)},
            axes="b h t d",
            missed=ONE_TILE,
        ),
        values(
            0.5,
            given=attended(9, 2, std=70.0),
            name="large scores",
            also={
                "with larger scores": attended(8, 3, std=150.0),
                "with scores far from 0, and close together": lifted(7, 3),
            },
            axes="b h t d",
            missed=ONE_TILE,
        ),
        Aspect("no tensor with t² entries", 0.5, no_square((12, 20), "tile"), side=True),
        Aspect("a whole tile at once", 0.5, whole_tiles, side=True),
        gradient(0.5),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

LESSON = Lesson(
    "16_sparse_attention",
    "Sparse attention",
    (local_mask, strided_masks, fixed_masks, attended_pairs, connected, banded_attention, merge, tiled_attention),
    predictions_of("16_sparse_attention"),
)
