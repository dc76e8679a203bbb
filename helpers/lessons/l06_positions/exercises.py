"""Lesson 6: positions."""

from __future__ import annotations

import torch

from helpers.exercises.aspects import Fault, Inputs, built, raises
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Collected, Lesson
from helpers.exercises.other_device import THERE
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    Part,
    any_device,
    case,
    device,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    integer,
    module,
    normal,
    parameters,
    size,
    tensor,
    values,
)

FINISHED = (
    "The finished parts are there for the exercises that build on them. This one is there to write it: a few lines of"
    " torch are enough."
)
NO_PARTS = {"finished": FINISHED, "helpers": FINISHED}

# ------------------------------------------------------------------------------------------- PositionEmbedding

OF_ANY_SIZE = module(lambda x, t_max: ((t_max, x.shape[-1]), (x,)))

position_embedding = exercise(
    "PositionEmbedding",
    stars=1,
    minutes=10,
    forbidden=NO_PARTS,
    given=case(normal(3, 5, 6)),  # shorter than t_max, and than e, so that a table of 6 rows has them all too
    via=built(11, 6),  # t_max = 11, e = 6
    aspects=(
        values(
            0.75,
            given=case(normal(3, 5, 6), 11),
            via=OF_ANY_SIZE,
            also={
                "with a batch of one": case(normal(1, 5, 6), 11),
                "with a single position": case(normal(3, 1, 6), 11),
                "with more sequences than positions": case(normal(6, 4, 6), 11),
            },
            larger=case(heavy(size(9, 17), size(70, 100), size(24, 33)), integer(100, 131)),
            axes="b t e",
            picture=True,
        ),
        # of another t_max, on which its limit depends
        values(0.25, given=case(normal(2, 12, 4), 12), name="as long as t_max", via=OF_ANY_SIZE, axes="b t e"),
        gradient(0.5, weights=True),
        raises(
            0.5,
            case(normal(2, 15, 4), 12),
            ValueError,
            name="longer than t_max",
            via=OF_ANY_SIZE,
            mentions=("15", "12"),
            missed=(
                "A sequence of 15 positions does not fit a table of 12 rows. Look at the length before anything"
                " else, and raise a ValueError that names both numbers."
            ),
        ),
        parameters(0.25),
        input_left_alone(0.25),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------- sinusoids

ELSEWHERE = (
    "Your result ends up on the CPU, or meets something that does, whatever device it was asked for. Hand `device` on"
    " to every function that makes a tensor."
)


def twice(low: int, below: int) -> Part:
    """An even number, twice one in [low, below)."""
    return lambda draw: 2 * draw.number(low, below)


sinusoidal_encoding = exercise(
    "sinusoidal_encoding",
    stars=2,
    minutes=12,
    forbidden=NO_PARTS,
    given=case(lambda draw: 2 * draw.number(3, 6) + 1, twice(3, 7), device),  # an odd t and an even e: never equal
    also={
        "for a single position": case(1, 6, device),
        "for more components than positions": case(3, 16, device),
    },
    aspects=(
        values(2.5, axes="t e", picture=True),
        values(
            1,
            given=case(integer(40, 45), 14, device),
            name="farther on",
            larger=case(integer(70, 131), twice(12, 25), device),
            axes="t e",
            # 45 radians in 32 bits: the angle itself is good to about 1e-5
            rtol=1e-3,
            atol=5e-4,
        ),
        any_device(0.5, given=case(5, 6, THERE), missed=ELSEWHERE),
    ),
)


def one_shift(matrix: Answer, draw: Draw) -> torch.Tensor:
    """The matrix (e, e) for a drawn distance."""
    return matrix(draw.number(2, 7), 8, draw.device)


def carried(collected: Collected, draw: Draw) -> torch.Tensor:
    """This matrix applied to the encodings of four positions, as columns: (e, 4)."""
    from helpers.parts.positions import sinusoidal_encoding

    carry = collected["result"]
    if carry.shape != (8, 8):
        raise Fault(f"Your matrix for e = 8 is of shape {tuple(carry.shape)}; it has to be (8, 8).")
    if torch.promote_types(carry.dtype, torch.float32) != carry.dtype:  # which rounds as much as is let through
        raise Fault(f"Your matrix for e = 8 is of {str(carry.dtype)[6:]}; it has to be float32, as the encodings are.")
    positions = draw.named("positions").integers(3, 50, 4)
    return carry.double() @ sinusoidal_encoding(50, 8, draw.device).double()[positions].T


shift_matrix = exercise(
    "shift_matrix",
    stars=3,
    minutes=15,
    builds_on=("positions.sinusoidal_encoding",),
    given=case(integer(2, 7), twice(3, 6), device),
    also={"for a distance of 0": case(0, 6, device), "for a distance of 1 and e = 2": case(1, 2, device)},
    larger=case(integer(70, 131), twice(8, 13), device),  # least squares finds no matrix of 48
    aspects=(
        # wide enough for a matrix that was found by least squares
        values(2.5, axes="e e", picture=True, rtol=1e-3, atol=1e-3),
        values(
            1,
            given=case(lambda draw: -draw.number(2, 7), twice(3, 6), device),
            name="a step ahead",
            axes="e e",
            rtol=1e-3,
            atol=1e-3,
        ),
        Aspect("carried along", 1, one_shift, reduce=carried, rtol=1e-3, atol=1e-3),
        any_device(0.5, given=case(5, 6, THERE), also={"for a distance of 0": case(0, 6, THERE)}, missed=ELSEWHERE),
    ),
)

# --------------------------------------------------------------------------------------------- relative_bias

relative_bias = exercise(
    "relative_bias",
    stars=2,
    minutes=10,
    fixes_bug=True,
    forbidden=NO_PARTS,
    given=case(normal(21), 5),  # for t_max = 11: even i + j counted from the middle finds a number in the table
    also={
        "for a single position": case(normal(9), 1),
        "with t = t_max = 1": case(normal(1), 1),
        "with t_max = 7 and t = 3": case(normal(13), 3),
    },
    larger=case(heavy(lambda draw: 2 * draw.number(200, 231) - 1), integer(70, 100)),
    aspects=(
        values(2, axes="t t", picture=True),
        values(1, given=case(normal(21), 11), name="as long as the table allows", axes="t t", picture=True),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ---------------------------------------------------------------------------------------------------- rotate


def from_the_start(heads: Part) -> Inputs:
    """Queries or keys (b, h, t, d), at positions 0 to t − 1."""

    def inputs(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        x = heads(draw)
        return x, torch.arange(x.shape[2], device=draw.device)

    return inputs


def in_any_order(heads: Part, below: int) -> Inputs:
    """The same at t positions below that number, in a drawn order."""

    def inputs(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        x = heads(draw)
        return x, draw.permutation(below)[: x.shape[2]]

    return inputs


def moved_products(rotate: Answer, draw: Draw) -> torch.Tensor:
    """How much the products of turned queries and keys change when all positions move far along: not at all."""
    q, k, positions = draw.normal(1, 2, 5, 8), draw.normal(1, 2, 5, 8), draw.permutation(9)[:5]

    def products(places):
        return rotate(q.clone(), places) @ rotate(k.clone(), places).transpose(-2, -1)

    return products(positions + draw.number(300, 900)) - products(positions)


# nine sentences or more, six heads or more, and some thirty positions
MANY_HEADS = heavy(size(9, 12), size(6, 9), size(24, 33), twice(8, 13))

rotate = exercise(
    "rotate",
    stars=3,
    minutes=15,
    forbidden=NO_PARTS,
    given=from_the_start(normal(2, 3, 5, 8)),
    also={
        "with a batch of one": from_the_start(normal(1, 3, 5, 8)),
        "with a single head": from_the_start(normal(2, 1, 5, 8)),
        "with a single position": from_the_start(normal(2, 3, 1, 8)),
        "with heads of width 2": from_the_start(normal(2, 3, 4, 2)),
    },
    larger=from_the_start(MANY_HEADS),
    aspects=(
        values(2, axes="b h t d", picture=True),
        values(
            1,
            given=in_any_order(normal(2, 3, 5, 8), below=19),
            name="positions in any order",
            also={
                "with a single token, at position 7": case(normal(2, 3, 1, 8), tensor(7)),
                # Of width 2: its only speed is 1, and so the angles are exact
                "with heads of width 2, far along a text": case(
                    normal(2, 3, 4, 2), lambda draw: draw.permutation(4) + draw.number(20_000, 60_000)
                ),
            },
            larger=in_any_order(MANY_HEADS, below=130),
            axes="b h t d",
            picture=True,
        ),
        # the right answer is 0, which anybody can guess
        Aspect(
            "only i − j counts",
            0.5,
            moved_products,
            side=True,
            rtol=1e-3,
            atol=1e-3,
            missed=(
                "When all positions move along by the same amount, the products of your turned queries and keys"
                " change. They may depend on i − j and on nothing else about i and j."
            ),
        ),
        gradient(0.5),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ----------------------------------------------------------------------------------------------- longer_bias


def trained_distances(answer: Answer, draw: Draw) -> Answer:
    """The student's function, with 0 in its result at the new distances, where many numbers are right."""

    def call(table: torch.Tensor, t: int) -> object:
        bias = answer(table, t)
        if not isinstance(bias, torch.Tensor) or bias.shape != (t, t):
            return bias
        positions = torch.arange(t, device=bias.device)
        far = (positions.unsqueeze(1) - positions).abs() >= (len(table) + 1) // 2
        return bias.masked_fill(far, 0.0)

    return call


def row_weights(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """The weights of positions whose scores are equal, with this bias added."""
    for bias in collected.values():
        if not bias.is_floating_point() or bias.dim() != 2:
            raise Fault(f"Your bias is of {str(bias.dtype)[6:]} and of shape {tuple(bias.shape)}; it is floats (t, t).")
        if bias.isnan().any():
            raise Fault("Your bias holds NaN.")
        if (bias == torch.inf).any():
            raise Fault("Your bias holds +∞, which takes all the weight.")
    return {name: torch.softmax(bias.double(), dim=-1) for name, bias in collected.items()}


def far_below(draw: Draw) -> tuple[torch.Tensor, int]:
    """A table whose numbers are all around −300: a fixed number that is low elsewhere is high there."""
    return draw.normal(11, std=2.0) - 300, draw.number(14, 20)


longer_bias = exercise(
    "longer_bias",
    stars=2,
    minutes=8,
    builds_on=("positions.relative_bias",),
    given=case(normal(13, std=2.0), integer(18, 25)),
    aspects=(
        values(
            1,
            name="trained distances",
            via=trained_distances,
            also={
                "with one position more than in training": case(normal(9), 6),
                "with t_max = 1": case(normal(1), 4),
            },
            larger=case(heavy(lambda draw: 2 * draw.number(20, 31) - 1), integer(70, 100)),
            axes="t t",
            picture=True,
        ),
        values(
            1,
            name="new distances",
            also={
                "with one position more than in training": case(normal(9, std=2.0), 6),
                "with numbers far below 0": far_below,
                "with eight times the length": case(normal(9, std=2.0), 40),
            },
            reduce=row_weights,
            axes="t t",
            rtol=0,
            atol=1e-3,
            missed=(
                "With your bias, new distances still take a share of the weight. Put equal scores through a softmax"
                " and add up what the new distances of a row get: less than a thousandth, whatever the table."
            ),
        ),
        gradient(0.5, via=trained_distances),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

LESSON = Lesson(
    "06_positions",
    "Positions",
    (position_embedding, sinusoidal_encoding, shift_matrix, relative_bias, rotate, longer_bias),
    predictions_of("06_positions"),
)
