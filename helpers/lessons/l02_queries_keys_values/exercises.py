"""Lesson 2: queries, keys, values."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import LARGER, Fault, Inputs, as_is, built, kind_of, projected
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import SOFTMAX_OPERATORS, Answer, Aspect, Collected, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    Part,
    all_of,
    any_device,
    case,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    integer,
    ints,
    module,
    normal,
    outliers,
    parameters,
    size,
    values,
)

# ------------------------------------------------------------------------------------------------ soft_lookup

# Values are of another width than keys: taken for keys, they show at once
ENTRIES, ONE_ENTRY = case(normal(3), normal(5, 3), normal(5, 4)), case(normal(3), normal(1, 3), normal(1, 4))


def exact_match(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A query, 5 keys and 5 values, with the query among the keys."""
    query, keys, values = ENTRIES(draw)
    keys[2] = query
    return query, keys, values


soft_lookup = exercise(
    "soft_lookup",
    stars=1,
    minutes=7,
    given=ENTRIES,
    also={
        "with a single entry": ONE_ENTRY,
        "with keys and values of width one": case(normal(1), normal(5, 1), normal(5, 1)),
        # everything fits either way round
        "with square keys and values": case(normal(4), normal(4, 4), normal(4, 4)),
        "with a key that equals the query": exact_match,
    },
    # a short query, so that exp of no score overflows
    larger=case(normal(size(24, 33), std=0.3), heavy(size(70, 97), size(24, 33)), heavy(size(70, 97), size(34, 49))),
    aspects=(
        values(1.5, axes="d_v"),
        gradient(0.5),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ---------------------------------------------------------------------------------------------------- sharpen


def stored(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Six keys, 4 wide, and a query. Their products lie about 0.5 apart, on both sides of zero, in a drawn order.

    No two keys come near a tie, so that the largest betas have one winner whatever the rounding; and some products
    are positive and some negative, so that an exponential that overflows differs from one that vanishes.
    """
    ladder = torch.tensor([-1.5, -0.9, -0.3, 0.4, 0.9, 1.6], device=draw.device)
    products = (ladder + draw.uniform(-0.15, 0.15, 6))[draw.permutation(6)]
    query, keys = draw.normal(4) + 0.5, draw.normal(6, 4)
    along = query / (query @ query)
    keys = keys + (products - keys @ query).unsqueeze(1) * along
    return keys, query


def tied(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Five keys of whole numbers, two of which match a query of whole numbers best, and equally well.

    Products of small whole numbers are exact, in whatever order they are added up: a tie stays one. The best is 0, so
    that a large beta makes no large numbers out of which a small difference would have to be found.
    """
    keys = torch.tensor([[1.0, 0, 1], [1, 0, 1], [0, -1, 0], [-2, 0, 2], [1, -2, 0]], device=draw.device)
    return keys[draw.permutation(5)], torch.tensor([1.0, 2, -1], device=draw.device)  # products 0, 0, −2, −4, −3


def nearly_tied(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, but one of the two best keys matches by 1/8192 less: a beta of 8192 still tells them apart.

    The gap is a power of two: at a beta of 8192 all products are whole numbers, and exact.
    """
    keys, query = tied(draw)
    keys[(keys @ query).argmax(), 2] += 1 / 8192  # by which its product with (1, 2, −1) falls
    return keys, query


def for_betas(sharpen: Answer, draw: Draw, *betas: float) -> dict[str, torch.Tensor]:
    """The weights for each of these betas."""
    keys, query = stored(draw)
    return {f"at beta = {beta:g}": sharpen(keys.clone(), query.clone(), beta) for beta in betas}


MANY_KEYS = case(heavy(size(70, 97), size(24, 33)), normal(size(24, 33), std=0.3), lambda draw: draw.number(5, 9) / 4)


def far_apart(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The keys and query of `stored`, so long that the smallest of the weights is about 1e-27."""
    keys, query = stored(draw)
    return keys * 20, query


def softly(sharpen: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The weights for a beta below 1 and one above, and of a dictionary with a single key."""
    query, keys, _ = ONE_ENTRY(draw.named("one"))
    many = sharpen(*MANY_KEYS(draw.named(LARGER)))
    return {
        **for_betas(sharpen, draw, 0.7, 2.5),
        "with a single key": sharpen(keys, query, 1.5),
        "at beta = 0.5, with matches far apart": sharpen(*far_apart(draw.named("far apart")), 0.5),
        LARGER: projected(many, draw),
    }


def from_average_to_lookup(sharpen: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Beta at both ends of its range, and a large one for two keys that are equally good, and nearly so.

    10,000 times a logarithm in float32 is off by 0.0005, and so is the exponential of that.
    """
    keys, query = stored(draw.named("far apart"))
    return {
        **for_betas(sharpen, draw, 0.0, 10_000.0),
        "at beta = 0, with matches far apart": sharpen(keys * 200, query, 0.0),
        "with two keys that are equally good": sharpen(*tied(draw.named("tied")), 10_000.0),
        "with two keys that are nearly equally good, at beta = 8192": sharpen(*nearly_tied(draw.named("near")), 8192.0),
    }


def with_beta(beta: float) -> Inputs:
    """The keys and query of `stored`, and this β."""
    return lambda draw: (*stored(draw), beta)


sharpen = exercise(
    "sharpen",
    stars=2,
    minutes=7,
    given=with_beta(2.5),
    aspects=(
        Aspect("values", 1, softly, axes="s"),
        Aspect("from average to lookup", 0.5, from_average_to_lookup, axes="s", rtol=2e-3, atol=1e-3),
        gradient(0.5, also={"at beta = 0.7": with_beta(0.7)}),
        input_left_alone(0.5),
        any_device(0.5, also={"at beta = 0": with_beta(0.0)}),
    ),
)

# -------------------------------------------------------------------------------------------------- attention

FINISHED = "It holds this exercise's answer, for later lessons to build on. Here the point is to find the fault."

READY_MADE = (
    "PyTorch's own function is this exercise, finished (and scaled, unless it is told not to). Find the fault in the"
    " two products and the softmax instead."
)


def roles(b: int = 2, t: int = 3, s: int = 5, d: int = 4, v: int = 6) -> Inputs:
    """Queries (b, t, d), keys (b, s, d), values (b, s, d_v)."""
    return case(normal(b, t, d), normal(b, s, d), normal(b, s, v))


def one_query_far_longer(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One query is so long that its two largest scores, 160 and 144, lie more than 100 above those of the others."""
    q, k, v = draw.normal(2, 3, 4), draw.normal(2, 5, 4), draw.normal(2, 5, 6)
    k[:, 0], k[:, 1] = 2.0, 1.8
    q[:, 1] = 20.0
    return q, k, v


attention = exercise(
    "attention",
    stars=2,
    minutes=10,
    fixes_bug=True,
    forbidden={"finished_attention": FINISHED},
    by_hand=READY_MADE,
    operators=SOFTMAX_OPERATORS,
    given=roles(),
    also={
        "with a batch of one": roles(b=1),
        "with a single query and d = 1": roles(t=1, d=1),
        "with a single key and d_v = 1": roles(s=1, v=1),
        "with as many keys as queries": roles(2, 4, 4, 4, 4),
    },
    larger=case(  # short queries, so that exp of no score overflows
        normal(size(9, 13), size(14, 18), size(19, 24), std=0.3),
        heavy(size(9, 13), size(70, 81), size(19, 24)),
        heavy(size(9, 13), size(70, 81), size(34, 41)),
    ),
    aspects=(
        values(1.5, axes="b t d_v", picture=True),
        values(0.5, given=one_query_far_longer, name="one query far longer than the others", axes="b t d_v"),
        gradient(1),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# --------------------------------------------------------------------------------------- SingleHeadAttention


def vectors(*shape: int) -> Part:
    """One sequence (b, t, e)."""
    return normal(*shape, std=1.5)


OF_ANY_SIZE = module(lambda x, d, *context: ((x.shape[-1], d), (x, *context)))

single_head_attention = exercise(
    "SingleHeadAttention",
    stars=1,
    minutes=10,
    builds_on=("attention.attention",),
    given=case(vectors(2, 4, 5), vectors(2, 6, 5)),  # the sequence that asks, and the one that is asked
    via=built(5, 3),
    aspects=(
        parameters(0.5),
        values(
            1,
            given=case(vectors(2, 4, 5), 3),
            via=OF_ANY_SIZE,
            also={
                "with a batch of one": case(vectors(1, 4, 5), 3),
                "with a single position": case(vectors(2, 1, 5), 3),
                "with d as large as e": case(vectors(2, 4, 5), 5),
                "with d = 1": case(vectors(2, 4, 5), 1),
            },
            larger=case(outliers(size(9, 13), size(34, 41), size(24, 33)), integer(9, 13)),
            axes="b t d",
            picture=True,
        ),
        values(
            1,
            given=case(vectors(2, 4, 5), 3, vectors(2, 6, 5)),
            name="a second sequence",
            via=OF_ANY_SIZE,
            also={
                "with two sequences of the same length": case(vectors(2, 4, 5), 3, vectors(2, 4, 5)),
                "with a batch of one and a context of one vector": case(vectors(1, 3, 5), 3, vectors(1, 1, 5)),
                "without a context, after calls with one": case(vectors(2, 4, 5), 3),
                "with d as large as e": case(vectors(2, 4, 5), 5, vectors(2, 4, 5)),
                "with e = 1": case(vectors(2, 3, 1), 2, vectors(2, 4, 1)),
            },
            larger=case(
                outliers(size(9, 13), size(34, 41), size(24, 33)),
                integer(9, 13),
                outliers(size(9, 13), size(70, 81), size(24, 33)),
            ),
            axes="b t d",
            picture=True,
        ),
        gradient(0.5, also={"without a context": case(vectors(2, 4, 5))}, weights=True),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------ matrices_of_rules


def some_rules(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Five rules about seven features, in a drawn order, with strengths of both signs.

    One feature asks twice, one is asked by two, and one pair of features has two rules: a table in which the later rule
    replaces the earlier one is another table.
    """
    asking, asked = draw.permutation(7)[[0, 1, 2, 1, 0]], draw.permutation(7)[[0, 1, 0, 1, 1]]
    order = draw.permutation(5)
    return asking[order], asked[order], drawn_strengths(draw, 5)[order], 7


def drawn_strengths(draw: Draw, count: int) -> torch.Tensor:
    """Of both signs, in turn, none near 0 or of size 1."""
    signs = torch.tensor([1.0, -1.0], device=draw.device).repeat(count)[:count]
    return signs * draw.uniform(1.5, 4, count)


def rules(count: int, e: int) -> Inputs:
    """So many rules about e features, drawn one by one."""
    return case(ints(count, below=e), ints(count, below=e), lambda draw: drawn_strengths(draw, count), e)


OTHER_RULES = {
    "with a single rule": rules(1, 4),
    "with more rules than features": rules(6, 3),
    "with as many rules as features": rules(4, 4),
    "with a single feature": rules(2, 1),
}


MANY_RULES = case(ints(size(40, 61), below=24), ints(size(40, 61), below=24), heavy(size(40, 61)), integer(24, 33))


def two_matrices(returned: object, shape: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """w_q and w_k (e, d), or a sentence for the student about what came instead."""
    returned = all_of(("w_q", "w_k"), returned)
    for name, matrix in zip(("w_q", "w_k"), returned, strict=True):
        if not isinstance(matrix, torch.Tensor):
            raise Fault(f"Your {name} is {kind_of(matrix)}; a tensor is needed.")
        if tuple(matrix.shape) != shape:
            raise Fault(
                f"Your {name} is {tuple(matrix.shape)}; it needs a row for each feature and a column for each rule,"
                f" {shape}."
            )
        if not matrix.is_floating_point():
            raise Fault(f"Your {name} holds no floating-point numbers, so x cannot be multiplied by it.")
    return tuple(returned)


def their_scores(answer: Answer, draw: Draw) -> Callable:
    """matrices_of_rules as a function that returns the score of the two features of each rule, (d,).

    Many pairs of matrices have the same product, and all of them are right.
    """

    def scores(asks: torch.Tensor, asked: torch.Tensor, strengths: torch.Tensor, e: int) -> torch.Tensor:
        w_q, w_k = two_matrices(answer(asks, asked, strengths, e), (e, len(asks)))
        return (w_q @ w_k.T)[asks, asked]

    return scores


def cases_of_rules(draw: Draw) -> dict[str, tuple]:
    """The arguments of `matrices_of_rules`, under names that say where the numbers come from."""
    others = {name: made(draw.named(name)) for name, made in {**OTHER_RULES, LARGER: MANY_RULES}.items()}
    return {"in w_q @ w_k.T": some_rules(draw), **others}


def matrices(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Both matrices for each of these rules."""
    pairs = {
        name: two_matrices(answer(*rules), (rules[3], len(rules[0]))) for name, rules in cases_of_rules(draw).items()
    }
    return {f"{which} {name}": m for name, pair in pairs.items() for which, m in zip(("w_q", "w_k"), pair, strict=True)}


def scores_of_rules(collected: Collected, draw: Draw) -> dict[str, object]:
    """The score of the two features of each rule."""
    scores: dict[str, object] = {}
    for name, rules in cases_of_rules(draw).items():
        pair = collected[f"w_q {name}"], collected[f"w_k {name}"]
        both = their_scores(lambda *_, pair=pair: pair, draw)(*rules)
        scores[name] = projected(both, draw) if name == LARGER else both
    return scores


def other_scores(answer: Answer, draw: Draw) -> Callable:
    """matrices_of_rules as a function that returns w_q @ w_k.T, with 0 for the features of each rule."""

    def scores(asks: torch.Tensor, asked: torch.Tensor, strengths: torch.Tensor, e: int) -> torch.Tensor:
        w_q, w_k = two_matrices(answer(asks, asked, strengths, e), (e, len(asks)))
        ruled = torch.zeros(e, e, dtype=torch.bool, device=asks.device)
        ruled[asks, asked] = True
        return (w_q @ w_k.T).masked_fill(ruled, 0)

    return scores


matrices_of_rules = exercise(
    "matrices_of_rules",
    stars=2,
    minutes=12,
    given=some_rules,
    also=OTHER_RULES,
    larger=MANY_RULES,
    via=their_scores,
    aspects=(
        Aspect("scores of the rules", 1, matrices, axes="a", reduce=scores_of_rules),
        values(
            0.5,
            name="no other scores",
            via=other_scores,
            axes="f g",
            side=True,  # zeros, which anybody can guess
            missed=(
                "In your w_q @ w_k.T, two features that no rule names have a nonzero or NaN score. The product is a sum"
                " over columns, so compare your columns with the rules, one at a time."
            ),
        ),
        gradient(0.5),
        input_left_alone(0.5, via=as_is),
        any_device(0.5),
    ),
)

LESSON = Lesson(
    "02_queries_keys_values",
    "Queries, keys, values",
    (soft_lookup, attention, single_head_attention, matrices_of_rules, sharpen),
    predictions_of("02_queries_keys_values"),
)
