"""Lesson 6: positions."""

from __future__ import annotations

import torch

from helpers.exercises.aspects import any_device, built, gradient, input_left_alone, parameters, raises, renamed, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson
from helpers.exercises.other_device import THERE
from helpers.exercises.questions import predictions_of

# ------------------------------------------------------------------------------------------- PositionEmbedding
#
EMBEDDING = built(11, 6)  # t_max = 11, e = 6
OTHER_EMBEDDING = built(12, 4)  # of another t_max, on which its limit depends


def short_sequences(draw: Draw) -> tuple[torch.Tensor]:
    """Three sequences of 5 positions: shorter than t_max, and than e, so that a table of 6 rows has them all too."""
    return (draw.normal(3, 5, 6),)


OTHER_SEQUENCES = {
    "with a batch of one": lambda draw: (draw.normal(1, 5, 6),),
    "with a single position": lambda draw: (draw.normal(3, 1, 6),),
    "with more sequences than positions": lambda draw: (draw.normal(6, 4, 6),),
}


def longest_sequences(draw: Draw) -> tuple[torch.Tensor]:
    """Sequences (2, 12, 4), as long as the table has rows."""
    return (draw.normal(2, 12, 4),)


def too_long(draw: Draw) -> tuple[torch.Tensor]:
    """Sequences (2, 15, 4), longer than the table."""
    return (draw.normal(2, 15, 4),)


# ------------------------------------------------------------------------------------------------- sinusoids


def sizes(draw: Draw) -> tuple[int, int, torch.device]:
    """An odd t and an even e: never equal."""
    return 2 * draw.number(3, 6) + 1, 2 * draw.number(3, 7), draw.device


OTHER_SIZES = {
    "for a single position": lambda draw: (1, 6, draw.device),
    "for more components than positions": lambda draw: (3, 16, draw.device),
}


def far_sizes(draw: Draw) -> tuple[int, int, torch.device]:
    """t above 40, e = 14, and the device."""
    return 40 + draw.number(0, 5), 14, draw.device


def elsewhere(draw: Draw) -> tuple[int, int, torch.device]:
    """t = 5, e = 6, on another device."""
    return 5, 6, THERE


def forwards(draw: Draw) -> tuple[int, int, torch.device]:
    """A positive offset, an even width, and the device."""
    return draw.number(2, 7), 2 * draw.number(3, 6), draw.device


def backwards(draw: Draw) -> tuple[int, int, torch.device]:
    """A negative offset, an even width, and the device."""
    return -draw.number(2, 7), 2 * draw.number(3, 6), draw.device


NO_SHIFT = {"for a shift of 0": lambda draw: (0, 6, THERE)}
OTHER_SHIFTS = {
    "for a shift of 0": lambda draw: (0, 6, draw.device),
    "for a shift of 1 and e = 2": lambda draw: (1, 2, draw.device),
}


def carried(matrix: Answer, draw: Draw) -> torch.Tensor:
    """The matrix applied to the encodings of four positions, as columns: (e, 4)."""
    from helpers.parts.positions import sinusoidal_encoding

    places = draw.integers(3, 50, 4)
    encoding = sinusoidal_encoding(50, 8, draw.device)
    carry = matrix(draw.number(2, 7), 8, draw.device)
    if not isinstance(carry, torch.Tensor):
        return carry
    return carry @ (encoding.double() if carry.dtype == torch.float64 else encoding)[places].T


ELSEWHERE = (
    "Your result ends up on the CPU, or meets something that does, whatever device it was asked for. Hand `device` on"
    " to every function that makes a tensor."
)

# --------------------------------------------------------------------------------------------- relative bias


def short_table(draw: Draw) -> tuple[torch.Tensor, int]:
    """A table for t_max = 11 and a sequence of 5: even i + j counted from the middle finds a number in it."""
    return draw.normal(21), 5


OTHER_TABLES = {
    "for a single position": lambda draw: (draw.normal(9), 1),
    "with t = t_max = 1": lambda draw: (draw.normal(1), 1),
    "with t_max = 7 and t = 3": lambda draw: (draw.normal(13), 3),
}


def whole_table(draw: Draw) -> tuple[torch.Tensor, int]:
    """All 21 numbers, for distances −10 to 10, and t = 11; on the CPU."""
    return draw.normal(21).cpu(), 11


# ---------------------------------------------------------------------------------------------------- rotary


def heads(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries or keys (2, 3, 5, 8) at positions 0 to 4."""
    return draw.normal(2, 3, 5, 8), torch.arange(5, device=draw.device)


OTHER_HEADS = {
    "with a batch of one": lambda draw: (draw.normal(1, 3, 5, 8), torch.arange(5, device=draw.device)),
    "with a single head": lambda draw: (draw.normal(2, 1, 5, 8), torch.arange(5, device=draw.device)),
    "with a single position": lambda draw: (draw.normal(2, 3, 1, 8), torch.arange(1, device=draw.device)),
    "with heads of width 2": lambda draw: (draw.normal(2, 3, 4, 2), torch.arange(4, device=draw.device)),
}
OTHER_PLACES = {
    "with a single token, at position 7": lambda draw: (draw.normal(2, 3, 1, 8), _seven(draw)),
    # Of width 2: its only speed is 1, and so the angles are exact
    "with heads of width 2, far along a text": lambda draw: (draw.normal(2, 3, 4, 2), _far_along(draw)),
}


def _far_along(draw: Draw) -> torch.Tensor:
    return draw.permutation(4) + draw.number(20_000, 60_000)


def _seven(draw: Draw) -> torch.Tensor:
    return torch.tensor([7], device=draw.device)


def any_order(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries or keys (2, 3, 5, 8) at five positions below 19, in a drawn order."""
    return draw.normal(2, 3, 5, 8), draw.permutation(19)[:5]


def moved_products(rotate: Answer, draw: Draw) -> torch.Tensor:
    """How much the products of turned queries and keys change when all positions move far along: not at all."""
    q, k, positions = draw.normal(1, 2, 5, 8), draw.normal(1, 2, 5, 8), draw.permutation(9)[:5]

    def products(places):
        return rotate(q.clone(), places) @ rotate(k.clone(), places).transpose(-2, -1)

    return products(positions + draw.number(300, 900)) - products(positions)


FINISHED = (
    "The finished parts are there for the exercises that build on them. This one is there to write it: a few lines of"
    " torch are enough."
)
NO_PARTS = {"finished": FINISHED, "helpers": FINISHED}

LESSON = Lesson(
    "06_positions",
    "Positions",
    exercises=(
        Exercise(
            "PositionEmbedding",
            stars=1,
            minutes=10,
            aspects=(
                values(0.75, short_sequences, via=EMBEDDING, also=OTHER_SEQUENCES, axes="b t e", picture=True),
                values(0.25, longest_sequences, name="as long as t_max", via=OTHER_EMBEDDING, axes="b t e"),
                gradient(0.5, short_sequences, via=EMBEDDING, weights=True),
                raises(
                    0.5,
                    too_long,
                    ValueError,
                    name="longer than t_max",
                    via=OTHER_EMBEDDING,
                    mentions=("15", "12"),
                    missed=(
                        "A sequence of 15 positions does not fit a table of 12 rows. Look at the length before anything"
                        " else, and raise a ValueError that names both numbers."
                    ),
                ),
                parameters(0.25, via=EMBEDDING),
                input_left_alone(0.25, short_sequences, via=EMBEDDING),
                any_device(0.5, short_sequences, via=EMBEDDING),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "sinusoidal_encoding",
            stars=2,
            minutes=12,
            aspects=(
                values(2.5, sizes, also=OTHER_SIZES, axes="t e", picture=True),
                # 45 radians in 32 bits: the angle itself is good to about 1e-5
                values(1, far_sizes, name="farther on", axes="t e", rtol=1e-3, atol=5e-4),
                renamed(any_device(0.5, elsewhere), "any device", missed=ELSEWHERE),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "shift_matrix",
            stars=3,
            minutes=15,
            aspects=(
                # wide enough for a matrix that was found by least squares
                values(2.5, forwards, also=OTHER_SHIFTS, axes="e e", picture=True, rtol=1e-3, atol=1e-3),
                values(1, backwards, name="a step back", axes="e e", rtol=1e-3, atol=1e-3),
                Aspect("carried along", 1, carried, rtol=1e-3, atol=1e-3),
                renamed(any_device(0.5, elsewhere, also=NO_SHIFT), "any device", missed=ELSEWHERE),
            ),
            builds_on=("positions.sinusoidal_encoding",),
        ),
        Exercise(
            "relative_bias",
            stars=2,
            minutes=10,
            mend=True,
            aspects=(
                values(2, short_table, also=OTHER_TABLES, axes="t t", picture=True),
                values(1, whole_table, name="as long as the table allows", axes="t t", picture=True),
                gradient(0.5, short_table),
                input_left_alone(0.25, short_table),
                any_device(0.25, short_table),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "rotate",
            stars=3,
            minutes=15,
            aspects=(
                values(2, heads, also=OTHER_HEADS, axes="b h t d", picture=True),
                values(1, any_order, name="positions in any order", also=OTHER_PLACES, axes="b h t d", picture=True),
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
                gradient(0.5, heads),
                input_left_alone(0.5, heads),
                any_device(0.5, heads),
            ),
            forbidden=NO_PARTS,
        ),
    ),
    predictions=predictions_of("06_positions"),
)
