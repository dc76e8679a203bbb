"""Lesson 1: dot-product attention."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import LARGER, Fault, Inputs
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Lesson
from helpers.exercises.operations import operations_of
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    Part,
    all_of,
    any_device,
    bools,
    case,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    normal,
    outliers,
    size,
    values,
)

# ------------------------------------------------------------------------------------------------ raw_weights

SENTENCES = case(normal(2, 5, 3))  # two of 5 vectors, 3 wide: no two sizes are alike, so a mixed-up axis shows
MANY_SENTENCES = case(outliers(size(9, 17), size(24, 33), size(20, 25)))
SMALL = {
    "with a batch of one": case(normal(1, 4, 3)),
    "with a single position": case(normal(2, 1, 3)),
    "with a width of one": case(normal(2, 4, 1)),
}

raw_weights = exercise(
    "raw_weights",
    stars=1,
    minutes=5,
    given=SENTENCES,
    also=SMALL,
    larger=case(heavy(size(9, 17), size(24, 33), size(34, 49))),
    aspects=(
        values(1.5, axes="b t t", picture=True),
        gradient(0.5),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------ row_softmax


def large_scores(draw: Draw) -> tuple[torch.Tensor]:
    """Rows near +10,000, rows near −10,000 and rows that mix both, in one tensor (2, 4, 5).

    In a mixed row one score is large, at neither end: its mean, median, smallest, first and last score are far below.
    The second matrix has its rows in another order: a maximum over the batch is not that of a row.
    """
    middle = draw.number(1, 4)
    offsets = torch.tensor([10_000.0, -10_000.0, 0.0, -10_000.0], device=draw.device).reshape(1, 4, 1)
    table = draw.normal(2, 4, 5, std=2.0).round() + offsets
    table[:, 3, middle] += 20_000.0
    return (torch.stack([table[0], table[1].roll(1, dims=0)]),)


SOFTMAX = (
    "This exercise is there to write it from exp and sum, once in your life; from the next exercise on, "
    "torch.softmax is yours."
)


row_softmax = exercise(
    "row_softmax",
    stars=2,
    minutes=10,
    by_hand=SOFTMAX,
    given=case(normal(2, 3, 5, std=2.0)),
    also={
        "with a batch of one": case(normal(1, 4, 3, std=2.0)),
        "with a single row": case(normal(2, 1, 4, std=2.0)),
        "with a single score in each row": case(normal(2, 3, 1, std=2.0)),
    },
    larger=case(heavy(size(9, 17), size(24, 33), size(34, 49))),
    aspects=(
        values(1.5, axes="b t s", picture=True),
        values(1, given=large_scores, name="large scores", axes="b t s", picture=True, rtol=5e-3, atol=1e-3),
        gradient(0.5, also={"of large scores": large_scores}),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# --------------------------------------------------------------------------------------------- self_attention


def outshone(draw: Draw) -> tuple[torch.Tensor]:
    """Two sentences (2, 5, 3) in which the second vector is twice the first.

    So the first one's best match is never itself: who returns the best match returns something else than the input.
    """
    (x,) = SENTENCES(draw)
    x[:, 1] = 2 * x[:, 0]
    return (x,)


def as_many_operations(attention: Answer, draw: Draw) -> torch.Tensor:
    """A loop over sentences or positions takes more operations for more of them."""
    b, t = draw.number(2, 5), draw.number(3, 7)
    few = operations_of(attention, draw.normal(b, t, 3)).count
    more = {"sentences": operations_of(attention, draw.normal(b + 2, t, 3)).count}
    more["positions"] = operations_of(attention, draw.normal(b, t + 2, 3)).count
    for what, count in more.items():
        if count != few:
            raise Fault(
                f"Your code calls PyTorch {few} times for {b} sentences of {t} words, and {count} times for two more"
                f" {what}: it loops over the {what}. A matrix product treats all of them at once."
            )
    return torch.ones(1)


self_attention = exercise(
    "self_attention",
    stars=1,
    minutes=5,
    given=SENTENCES,
    also=SMALL,
    aspects=(
        values(1, given=outshone, also=SMALL, larger=MANY_SENTENCES, axes="b t e", picture=True),
        Aspect("no loop", 0.5, as_many_operations, side=True),
        gradient(0.5, given=outshone),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------- equivariance_gap


def running_sum(x: torch.Tensor) -> torch.Tensor:
    """Sees the order of the positions, and treats every component of the width in its own way.

    Positions have weights whose sums never meet: with equal weights, the largest difference under an order is now and
    then the largest one under its inverse too, and the mistake would pass.
    """
    places = torch.arange(2.0, x.shape[1] + 2, device=x.device).sqrt().unsqueeze(-1)
    steps = torch.arange(1.0, x.shape[-1] + 1, device=x.device)
    return (x * places * steps).cumsum(dim=1)


def sees_order(x: Part) -> Inputs:
    """An attention that depends on order, a sequence, and an order of its positions."""

    def inputs(draw: Draw) -> tuple[Callable, torch.Tensor, torch.Tensor]:
        sequence = x(draw)
        return running_sum, sequence, draw.permutation(sequence.shape[1], cycle=True)

    return inputs


# 7 components and 5 positions: an index that is meant for positions fits the width as well
SEES_ORDER = sees_order(normal(2, 5, 7))
MANY_POSITIONS = sees_order(heavy(size(9, 17), size(24, 33), size(34, 49)))


def order_seen(gap: Answer, draw: Draw) -> dict[str, object]:
    """The gap of a function and of its negative: the largest difference is negative for one of the two.

    It lies in the second sentence for the one, and in the first for the other.
    """
    attention, x, order = SEES_ORDER(draw)
    x = x * torch.tensor([1.0, 4.0], device=x.device).reshape(2, 1, 1)
    return {
        "result": measured(gap, attention, x.clone(), order),
        "for a function whose signs are turned round": measured(gap, lambda y: -attention(y), x.flip(0), order),
        # as many components as positions
        "with a batch of one": measured(gap, *sees_order(normal(1, 4, 4))(draw.named("one"))),
        LARGER: measured(gap, *MANY_POSITIONS(draw.named(LARGER))),
    }


def measured(gap: Answer, attention: Callable, x: torch.Tensor, order: torch.Tensor) -> object:
    """The gap of a function, with a sentence for the student where its calls cannot have shown one."""
    calls = []

    def noting(y: torch.Tensor) -> torch.Tensor:
        calls.append(y.clone())
        return attention(y)

    number = gap(noting, x, order)
    if not calls:
        raise Fault(
            "The function that is handed in was never called, so your number cannot depend on it. The first argument,"
            " `attention`, is the function to be measured."
        )
    zero = isinstance(number, (int, float, torch.Tensor)) and torch.as_tensor(number).numel() == 1 and not number
    if zero and all(y.shape == calls[0].shape and torch.equal(y, calls[0]) for y in calls):
        raise Fault(
            "Your number is 0 for a function that does see the order, and each call of it got the same tensor. One of"
            " the two calls needs x with its positions in the given order, the other x itself."
        )
    return number


def sees_no_order(draw: Draw) -> tuple[Callable, torch.Tensor, torch.Tensor]:
    """Mixes the width, leaves positions alone."""
    return (lambda x: x.flip(-1) * 2), draw.normal(2, 5, 7), draw.permutation(5, cycle=True)


equivariance_gap = exercise(
    "equivariance_gap",
    stars=2,
    minutes=10,
    given=SEES_ORDER,
    aspects=(
        # few numbers: in half precision each may be near enough by chance, and all three are not
        Aspect("a function that sees order", 2, order_seen, accepts="number", rtol=1e-5, atol=1e-5),
        # the right answer is 0, which anybody can guess
        values(1, given=sees_no_order, name="a function that does not", accepts="number", side=True),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------ hurried_attention

Y_AND_WEIGHTS = ("y", "weights")


def joined(attention: Answer, draw: Draw) -> Callable:
    """hurried_attention as a function that returns one tensor (b, t, e + t)."""
    return lambda x: torch.cat(tuple(all_of(Y_AND_WEIGHTS, attention(x))), dim=-1)


hurried_attention = exercise(
    "hurried_attention",
    stars=2,
    minutes=7,
    fixes_bug=True,
    given=SENTENCES,
    also=SMALL,
    larger=MANY_SENTENCES,
    returns=Y_AND_WEIGHTS,
    aspects=(
        values(1, of="y", name="outputs", axes="b t e", picture=True),
        values(0.5, of="weights", axes="b t t", picture=True),
        gradient(0.5, via=joined),
        input_left_alone(0.5),
        any_device(0.5, via=joined),
    ),
)

# -------------------------------------------------------------------------------------- masked_squared_error


def ratings(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Factors of 4 users and 6 films, ratings (4, 6), and which of them are known.

    Some ratings are exactly 0, of the known as of the unknown. Everybody has rated something, and not all as many
    films: the mean of the viewers' means is another number.
    """
    seen = draw.mask(0.45, 4, 6)
    seen[:, 0] = True  # every user has rated something
    seen[0, 1:] = False
    seen[1, 1:5] = True
    seen[2, 2] = seen[3, 5] = False  # never all
    users, films, table = draw.normal(4, 3), draw.normal(6, 3), draw.normal(4, 6, mean=0.5, std=2.0)
    table[1, 2] = table[2, 2] = 0.0  # one rating that is known, and one that is not
    return users, films, table, seen


FEW_RATINGS = {
    # the rating is far from the prediction
    "with one user, one film and one feature": case(
        normal(1, 1), normal(1, 1), lambda draw: draw.uniform(20, 40, 1, 1), bools([[1]])
    ),
    "with a single film": case(normal(4, 2), normal(1, 2), normal(4, 1, std=2.0), bools([[1], [0], [1], [1]])),
    # the second of three users has rated nothing, and the last of four films has no rating
    "with a user and a film without any rating": case(
        normal(3, 2), normal(4, 2), normal(3, 4, std=2.0), bools([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]])
    ),
}


def huge_where_unseen(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The same, with two unseen entries of ±1e30, which a square takes beyond what 32 bits hold."""
    users, films, table, seen = ratings(draw)
    table[2, 2], table[3, 5] = 1e30, -1e30
    return users, films, table, seen


def many_ratings(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Nine users or more, some thirty films, and ratings of which some are large."""
    users, films, features = draw.number(9, 13), draw.number(24, 41), draw.number(5, 9)
    table = draw.heavy(users, films)
    return draw.heavy(users, features), draw.heavy(films, features), table, draw.mask(0.45, users, films)


masked_squared_error = exercise(
    "masked_squared_error",
    stars=2,
    minutes=8,
    given=ratings,
    also=FEW_RATINGS,
    larger=many_ratings,
    aspects=(
        values(1.5, accepts="number"),
        values(0.5, given=huge_where_unseen, name="huge numbers where nothing was seen", accepts="number"),
        gradient(1, also=FEW_RATINGS),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

LESSON = Lesson(
    "01_dot_product_attention",
    "Dot-product attention",
    (raw_weights, row_softmax, self_attention, equivariance_gap, hurried_attention, masked_squared_error),
    predictions_of("01_dot_product_attention"),
)
