"""Lesson 17: fitting a training into memory, and making it fast."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple

import torch
from torch import nn

from helpers.exercises.aspects import (
    LARGER,
    LEFT_ALONE,
    Fault,
    Inputs,
    fill,
    kind_of,
    projected,
    together,
)
from helpers.exercises.attention_inputs import attention_inputs, large_attention_inputs, shifted_scores
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import (
    ATTENTION_OPERATORS,
    NORM_OPERATORS,
    SOFTMAX_OPERATORS,
    Answer,
    Aspect,
    Kind,
    Lesson,
)
from helpers.exercises.operations import LONG, no_square, whole_part_at_once
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    Part,
    all_of,
    any_device,
    case,
    each_of,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    normal,
    size,
    values,
)
from helpers.exercises.tensor_names import in_case

FINISHED = "The finished part is there for the exercises that build on this one; write it here."
LIBRARY = "It does by itself what this exercise is there to write."

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


WHOLE_TILE = (
    "For 192 keys, your code takes {many} operations in tiles of {small} and {few} in tiles of {large}. With a whole"
    " tile of keys at once, a quarter would be left. Is there a loop over rows, over single keys, or over parts of some"
    " other size?"
)


def long_text(tile: int) -> Inputs:
    """One head, as many keys as queries."""
    return attention_inputs(LONG, tile, b=1, h=1)


def many_keys(tile: int) -> Inputs:
    """One head, with many more keys than queries."""
    return attention_inputs(32, tile, s=192, b=1, h=1)


ONE_TILE = (
    "Try one tile that holds all keys. If that agrees with softmax attention and smaller tiles do not, look at what is"
    " carried from tile to tile, and at which tiles are left out; if it does not agree either,"
    " look at the tile: its scores, its mask, its maximum."
)

ONE_NUMBER = (
    "The second result is the logarithm of the sum of e^score over the keys that a query sees: one number for each"
    " query. ℓ is that sum relative to m."
)

tiled_attention = exercise(
    "tiled_attention",
    stars=3,
    minutes=11,
    forbidden={"flex_attention": LIBRARY},
    by_hand=LIBRARY,
    operators=SOFTMAX_OPERATORS,
    builds_on=("tiles.merge",),
    returns=("out", "lse"),
    given=attention_inputs(6, 2),
    aspects=(
        values(
            1.5,
            of="out",
            name="values",
            given=attention_inputs(8, 2),
            also={
                "with a last tile that is shorter": attention_inputs(7, 3),
                "with tiles of one": attention_inputs(5, 1, b=1),
                "with a tile longer than the text": attention_inputs(4, 9),
                "for one position": attention_inputs(1, 2),
                "without batch and heads": case(*(normal(5, 4),) * 3, 2),
            },
            larger=large_attention_inputs(2),
            axes="b h t d",
            missed=ONE_TILE,
        ),
        values(
            1,
            given=attention_inputs(3, 2, s=8),
            of="out",
            name="more keys than queries",
            also={"for one query": attention_inputs(1, 3, s=7), "of another size": attention_inputs(4, 4, s=6)},
            axes="b h t d",
            missed=ONE_TILE,
        ),
        values(
            0.5,
            given=attention_inputs(5, 2, False, s=7),
            of="out",
            name="not causal",
            also={"with fewer keys": attention_inputs(6, 2, False, s=3)},
            axes="b h t d",
            missed=ONE_TILE,
        ),
        values(
            0.5,
            given=attention_inputs(9, 2, std=70.0),
            of="out",
            name="large scores",
            also={
                "with larger scores": attention_inputs(8, 3, std=150.0),
                "with scores far from 0, and close together": shifted_scores(7, 3),
            },
            axes="b h t d",
            missed=ONE_TILE,
        ),
        values(
            0.5,
            of="lse",
            name="log-sum-exp",
            also={
                "with more keys than queries": attention_inputs(3, 2, s=8),
                "not causal": attention_inputs(5, 2, False, s=7),
                "with scores far from 0, and close together": shifted_scores(7, 3),
            },
            axes="b h t",
            missed=ONE_NUMBER,
        ),
        Aspect("no tensor with t² entries", 0.5, no_square(long_text, (12, 20), "tile"), side=True),
        Aspect("a whole tile at once", 0.5, whole_part_at_once(many_keys, WHOLE_TILE), side=True),
        gradient(0.5, of="out"),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ------------------------------------------------------------------------------------------------- tiled_backward

OF_INPUTS = ("gradient of q", "gradient of k", "gradient of v")


def with_results(inputs: Inputs) -> Inputs:
    """The arguments of the backward pass: q, k and v, the output, the log-sum-exps, a slope, and what comes after v."""

    def arguments(draw):
        q, k, v, tile, *causal = inputs(draw)
        t, s = q.shape[-2], k.shape[-2]
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if causal != [False]:
            seen = torch.ones(t, s, dtype=torch.bool, device=q.device).tril(s - t)
            scores = scores.masked_fill(~seen, -math.inf)
        slope = draw.named("slope").normal(*q.shape[:-1], v.shape[-1]).to(q)
        return q, k, v, torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1), slope, tile, *causal

    return arguments


def in_double(inputs: Inputs) -> Inputs:
    """The same, tensors in double precision."""
    return lambda draw: tuple(x.double() if isinstance(x, torch.Tensor) else x for x in inputs(draw))


BY_FORMULA = "Autograd would compute these gradients; the exercise is to write the formulas."
ONE_PAIR = (
    "Try t = s = 1: the only weight is 1, so the gradient of v is the slope, and those of q and k are 0. Then one tile"
    " that holds all keys; then smaller ones."
)

tiled_backward = exercise(
    "tiled_backward",
    stars=3,
    minutes=12,
    forbidden={"autograd": BY_FORMULA, "backward": BY_FORMULA},
    by_hand=BY_FORMULA,
    operators=SOFTMAX_OPERATORS,
    returns=OF_INPUTS,
    via=each_of(OF_INPUTS),
    given=with_results(attention_inputs(6, 2)),
    aspects=(
        values(
            2,
            also={
                "with a last tile that is shorter": with_results(attention_inputs(7, 3)),
                "with tiles of one": with_results(attention_inputs(5, 1, b=1)),
                "with a tile longer than the text": with_results(attention_inputs(4, 9)),
                "without batch and heads": with_results(case(*(normal(5, 4),) * 3, 2)),
            },
            larger=with_results(large_attention_inputs(2)),
            missed=ONE_PAIR,
        ),
        values(
            1,
            given=with_results(attention_inputs(3, 2, s=8)),
            name="more keys than queries",
            also={"for one query": with_results(attention_inputs(1, 3, s=7))},
            missed=ONE_PAIR,
        ),
        values(
            0.5,
            given=with_results(attention_inputs(5, 2, False, s=7)),
            name="not causal",
            also={"with fewer keys": with_results(attention_inputs(6, 2, False, s=3))},
            missed=ONE_PAIR,
        ),
        values(
            0.5,
            given=with_results(in_double(attention_inputs(7, 3, std=30.0))),
            name="large scores",
            also={"with scores far from 0, and close together": with_results(in_double(shifted_scores(7, 3)))},
            dtype=True,
            missed=ONE_PAIR,
        ),
        Aspect(
            "no tensor with t² entries",
            0.75,
            no_square(lambda tile: with_results(long_text(tile)), (12, 20), "tile"),
            side=True,
        ),
        Aspect(
            "a whole tile at once",
            0.5,
            whole_part_at_once(lambda tile: with_results(many_keys(tile)), WHOLE_TILE),
            side=True,
        ),
        input_left_alone(0.5),
        any_device(0.25),
    ),
)

# ------------------------------------------------------------------------------------------- scaled_scores_early


def vectors(*leading: int, t: int, s: int, d: int) -> Inputs:
    """t queries and s keys, each d wide, with these axes in front."""
    return lambda draw: (draw.normal(*leading, t, d), draw.normal(*leading, s, d))


# no two sizes are alike, and none is the root of another: a root of the wrong size shows
queries_and_keys = vectors(2, t=3, s=5, d=7)
with_heads = vectors(2, 3, t=4, s=5, d=10)  # in a model that is 30 wide
SMALL = {
    "with a batch of one": vectors(1, t=3, s=4, d=5),
    "with a single query": vectors(2, t=1, s=4, d=6),
    "with a single key": vectors(2, t=3, s=1, d=6),
    "with as many keys as queries": vectors(2, t=5, s=5, d=5),
    "with d = 1": vectors(2, t=3, s=4, d=1),
    "with queries of 0": lambda draw: (torch.zeros(2, 3, 6, device=draw.device), draw.normal(2, 4, 6)),
}


def large_halves(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Half precision, 64 wide, entries between 60 and 84: q·k/√8 is beyond 65,504 for every pair, q·k/8 well below.

    So half of the division is not enough. Each vector has one sign, drawn, so that scores of both signs occur.
    """

    def vectors(count):
        signs = 2.0 * draw.mask(0.5, 2, count, 1) - 1.0
        return (draw.uniform(60, 84, 2, count, 64) * signs).half()

    return vectors(3), vectors(5)


scaled_scores_early = exercise(
    "scaled_scores_early",
    stars=2,
    minutes=7,
    given=queries_and_keys,
    also=SMALL,
    larger=case(
        heavy(size(9, 13), size(24, 33), size(66, 80)),
        heavy(size(9, 13), size(34, 49), size(66, 80)),
    ),
    aspects=(
        values(1, axes="b t s", picture=True, dtype=True),
        values(
            0.5,
            given=with_heads,
            also={"with a single head": vectors(1, 1, t=3, s=4, d=6)},
            name="several heads",
            axes="b h t s",
        ),
        gradient(0.5),
        # half precision keeps 11 bits: one rounding is up to 0.05 %, and there are several
        values(1, given=large_halves, name="half precision", axes="b t s", rtol=5e-3, atol=0.0, dtype=True),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ----------------------------------------------------------------------------------------- accumulated_gradients


class RecordingModel(nn.Module):
    """A small model from ids (b, t) to logits (b, t, 7), which notes what it is given and when gradients arrive.

    rows: how many it was given at each call. most_open: how many calls at once were without their backward pass.
    """

    def __init__(self):
        super().__init__()
        self.tokens, self.to_logits = nn.Embedding(7, 5), nn.Linear(5, 7)
        self.rows: list[int] = []
        self.open = self.most_open = 0

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(ids))
        logits = self.to_logits(torch.tanh(self.tokens(ids)))
        if logits.requires_grad:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            logits.register_hook(self._gradient_arrived)
        return logits

    def _gradient_arrived(self, gradient: torch.Tensor) -> None:
        self.open -= 1


class Rows(NamedTuple):
    """A batch: how many targets each row has, of t positions, in how many parts, with which id for padding."""

    lengths: tuple[int, ...]
    t: int
    parts: int
    pad: int = 0
    in_front: bool = False  # the padding

    def __str__(self) -> str:
        text = f"for rows of {', '.join(map(str, self.lengths))} in {self.parts} part{'s' if self.parts > 1 else ''}"
        return text + (f", pad = {self.pad}" if self.pad else "") + (", padding in front" if self.in_front else "")

    def drawn(self, draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids and targets (b, t). Where pad is not 0, one target is 0, so that there are more of pad than of 0."""
        tokens = torch.tensor([token for token in range(1, 7) if token != self.pad], device=draw.device)
        ids, targets = (tokens[draw.integers(0, len(tokens), len(self.lengths), self.t)] for _ in range(2))
        if self.pad:
            targets[0, 0] = 0
        for row, length in enumerate(self.lengths):
            targets[row, length:] = self.pad
            ids[row, length + 1 :] = self.pad  # a row has one input more than targets, where it is not full
        return (ids.flip(1), targets.flip(1)) if self.in_front else (ids, targets)


def gradients_of(answer: Answer, draw: Draw, batch: Rows, stale: bool) -> dict[str, torch.Tensor]:
    """What the student's function leaves in .grad, by parameter. stale: there are gradients from before."""
    model: Any = fill(RecordingModel().to(draw.device), draw)
    for parameter in model.parameters() if stale else ():
        parameter.grad = torch.ones_like(parameter)
    answer(model, *batch.drawn(draw.named(str(batch))), batch.parts, batch.pad)
    fit = -(-len(batch.lengths) // batch.parts)
    if model.rows and max(model.rows) > fit:
        raise Fault(
            f"For {len(batch.lengths)} rows in {batch.parts} parts your code sends {max(model.rows)} rows"
            f" through the model at once. At most {fit} fit."
        )
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, found in gradients.items():
        if found is None:
            raise Fault(f"After your function the parameter {name} has no gradient in .grad.")
    return {f"the gradient of {name}": gradient for name, gradient in gradients.items()}


def many_rows(draw: Draw) -> Rows:
    """A batch of many long rows, in many parts."""
    t = draw.number(70, 90)
    lengths = draw.integers(0, t + 1, draw.number(24, 40)).tolist()
    return Rows((t, *lengths), t, draw.number(9, 13), pad=draw.number(1, 7))


def accumulated(
    name: str, points: float, *batches: Rows, stale: bool = False, larger: bool = False, missed: str = ""
) -> Aspect:
    """The gradients for these batches. stale: there are some from before. larger: one batch more, much larger."""

    def probe(answer, draw):
        gradients = {
            f"{which}, {batch}": gradient
            for batch in batches
            for which, gradient in gradients_of(answer, draw, batch, stale).items()
        }
        further = {LARGER: many_rows} if larger else {}
        return together(gradients, further, draw, lambda batch: gradients_of(answer, draw, batch, stale))

    return Aspect(name, points, probe, missed=missed, kind=Kind.ASKED_GRADIENT)


FOUR_PARTS = Rows((4, 1, 3, 2), 4, 4)


def part_by_part(answer: Answer, draw: Draw) -> torch.Tensor:
    """Whether each part's backward pass runs before the next part is given to the model."""
    model: Any = fill(RecordingModel().to(draw.device), draw)
    answer(model, *FOUR_PARTS.drawn(draw), FOUR_PARTS.parts, FOUR_PARTS.pad)
    if model.most_open > 1:
        raise Fault(
            "Your code gives the model another part before the backward pass of an earlier part has run. So the"
            " activations of several parts are kept at once, and no memory is saved."
        )
    return torch.tensor([1])


def batch_and_model(draw: Draw) -> tuple:
    """All arguments: a model, ids, targets, parts and pad."""
    batch = Rows((2, 4, 1), 4, 2, pad=3)
    return fill(RecordingModel().to(draw.device), draw), *batch.drawn(draw), batch.parts, batch.pad


ALIKE = (
    "Each target that is not `pad` counts the same, whichever part it is in and whatever else is in that part. Any id"
    " may be `pad`."
)

accumulated_gradients = exercise(
    "accumulated_gradients",
    stars=2,
    minutes=7,
    fixes_bug=True,
    given=batch_and_model,
    aspects=(
        accumulated(
            "rows of different length",
            1.5,
            FOUR_PARTS._replace(parts=2),
            Rows((5, 2), 5, 2, pad=4),
            Rows((1, 3, 2), 4, 3, in_front=True),
            larger=True,
            missed=ALIKE,
        ),
        accumulated("no padding", 0.5, Rows((3, 3, 3, 3), 3, 2), Rows((2, 2), 2, 1), Rows((4,), 4, 1)),
        accumulated("rows that do not divide evenly", 0.5, Rows((3,) * 7, 3, 3), Rows((2,) * 5, 2, 4)),
        accumulated("a part of padding alone", 0.5, Rows((3, 0, 2), 3, 3), Rows((1, 4, 0, 0), 4, 2)),
        accumulated("gradients from before", 0.5, FOUR_PARTS, stale=True),
        Aspect("one part at a time", 0.25, part_by_part, side=True),
        input_left_alone(0.25),
    ),
)

# -------------------------------------------------------------------------------------------------- checkpointed


class Noisy(nn.Module):
    """A block (..., e) -> (..., e) with dropout, which notes how it is run.

    Its dropout is drawn from whole numbers on the CPU, which are the same on every machine. recorded: for each run,
    whether autograd recorded it. autocasts: for each run, the type that autocast computes in, None where it is off.
    spare: it has a parameter that it does not use.
    """

    def __init__(self, e: int, dropout: bool, spare: bool = False):
        super().__init__()
        self.widen, self.narrow, self.dropout = nn.Linear(e, e + 2), nn.Linear(e + 2, e), dropout
        if spare:
            self.spare = nn.Parameter(torch.zeros(3))
        self.recorded: list[bool] = []
        self.autocasts: list[torch.dtype | None] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kind = x.device.type
        self.recorded.append(torch.is_grad_enabled())
        self.autocasts.append(torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None)
        hidden = torch.tanh(self.widen(x))
        if self.dropout and self.training:
            hidden = hidden * 2 * torch.randint(0, 2, hidden.shape).to(x.device)
        return self.narrow(hidden)


@contextlib.contextmanager
def own_random_numbers(draw: Draw) -> Iterator[None]:
    """Random numbers of the CPU from a drawn seed, and afterwards as they were."""
    state = torch.get_rng_state()
    torch.manual_seed(draw.named("seed").number(0, 2**31))
    try:
        yield
    finally:
        torch.set_rng_state(state)


FIVE_VECTORS = normal(5, 4)
OUTPUT, RANDOM = "the output", "the random numbers after each pass"


def with_gradient(y: object, needs: bool = True) -> None:
    """Raises Fault where it is no output from which a gradient flows back. needs: x needs one too."""
    if not isinstance(y, torch.Tensor):
        raise Fault(f"Your function has to return the block's output; it returns {kind_of(y)}.")
    if not y.requires_grad:
        raise Fault(
            "No gradient flows back from your output."
            if needs
            else "Where x needs no gradient, none flows back from your output: the parameters would not learn. What"
            " goes into a Function's apply decides whether its output has a gradient."
        )


def both_passes(
    answer: Answer,
    draw: Draw,
    *,
    x: Part = FIVE_VECTORS,
    dropout: bool = False,
    training: bool = True,
    needs: bool = True,
    times: int = 1,
    partly: bool = False,
) -> dict[str, torch.Tensor]:
    """Forward and backward through a checkpointed block: its output, all gradients, and random numbers after each.

    needs: x needs a gradient. times: how often through the block, in a row. partly: one parameter of it is frozen, and
    another is not used.
    """
    x = x(draw).requires_grad_(needs)
    slope = draw.named("slope").normal(*x.shape)
    block: Any = fill(Noisy(x.shape[-1], dropout, spare=partly).to(draw.device), draw).train(training)
    block.widen.bias.requires_grad_(not partly)
    with own_random_numbers(draw):
        y = answer(block, x)
        for _ in range(times - 1):
            y = answer(block, y)
        between = torch.randint(0, 2**31, (2,))
        with_gradient(y, needs)
        if block.recorded[:1] == [True]:
            raise Fault(
                "Autograd records the block's first run, so all that it computes is kept. The forward pass keeps x"
                " alone, and the block runs again, recorded, in the backward pass."
            )
        y.backward(slope)
        after = torch.randint(0, 2**31, (2,))
    if len(block.recorded) < 2:
        raise Fault("The block runs once only: in the backward pass it has to be computed again.")
    results = {OUTPUT: y.detach()}
    for name, leaf in {"x": x, **dict(block.named_parameters())}.items():
        if leaf.requires_grad:
            results[f"the gradient of {name}"] = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    return results | {RANDOM: torch.stack([between, after])}


GO_ON = (
    "After the forward pass the random numbers have to go on as after one run of the block, and after the backward pass"
    " from where they were when it began."
)


def checkpointing(name: str, points: float, cases: dict[str, dict], random: bool = False) -> Aspect:
    """Outputs and gradients with these settings, each named; or the random numbers that are drawn after each pass."""

    def probe(answer, draw):
        results = {}
        for title, settings in cases.items():
            tensors = both_passes(answer, draw.named(title), **settings)
            for which in [which for which in tensors if (which == RANDOM) == random]:
                tensor = projected(tensors[which], draw) if title == LARGER else tensors[which]
                results[named(which, title)] = tensor
        return results

    def named(which: str, title: str) -> str:
        return in_case(LARGER, which) if title == LARGER else f"{which}, {title}"

    if random:
        return Aspect(name, points, probe, side=True, missed=GO_ON)
    outputs = {named(OUTPUT, title): Kind.VALUE for title in cases}
    return Aspect(name, points, probe, rtol=1e-3, atol=1e-4, kind=Kind.ASKED_GRADIENT, kinds=outputs)


def returned_gradients(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """All gradients as `torch.autograd.grad` finds them, which looks into no `.grad`."""
    x = FIVE_VECTORS(draw).requires_grad_()
    block: Any = fill(Noisy(4, dropout=False).to(draw.device), draw)
    y = answer(block, x)
    with_gradient(y)
    leaves = {"x": x, **dict(block.named_parameters())}
    slope = draw.named("slope").normal(*y.shape)
    gradients = torch.autograd.grad(y, list(leaves.values()), slope, allow_unused=True)
    filled = [name for name, leaf in leaves.items() if leaf.grad is not None]
    if filled:
        raise Fault(
            f"Your backward pass writes into the `.grad` of {filled[0]}. It has to return the gradients; autograd adds"
            " them to `.grad`, where that is asked for."
        )
    pairs = zip(leaves.items(), gradients, strict=True)
    return {f"the gradient of {name}": torch.zeros_like(leaf) if g is None else g for (name, leaf), g in pairs}


def under_autocast(answer: Answer, draw: Draw) -> torch.Tensor:
    """Whether the second run has the autocast of the first, both where it was on and where it was off."""
    kind = draw.device.type
    for first, later in ((True, False), (False, True)):
        block: Any = fill(Noisy(4, dropout=False).to(draw.device), draw)
        with torch.autocast(kind, torch.bfloat16, enabled=first):
            y = answer(block, draw.normal(5, 4).requires_grad_())
        with torch.autocast(kind, torch.bfloat16, enabled=later):
            y.float().sum().backward()
        if len(set(block.autocasts)) > 1:
            raise Fault(
                f"The block runs first with autocast {'on' if first else 'off'} and then, in the backward pass, with"
                f" autocast {'on' if later else 'off'}. Hand over `keeping_autocast(block, x.device)`, as in the last"
                " line that you were given."
            )
    return torch.tensor([1])


CHECKPOINT = "torch.utils.checkpoint does all of this; the exercise is to write it."

checkpointed = exercise(
    "checkpointed",
    stars=3,
    minutes=14,
    forbidden={"checkpoint": CHECKPOINT},
    by_hand=CHECKPOINT,
    operators=(*ATTENTION_OPERATORS, *NORM_OPERATORS),
    builds_on=("big.random_state", "big.set_random_state", "big.keeping_autocast"),
    aspects=(
        checkpointing(
            "output and gradients",
            1.75,
            {
                "without dropout": {},
                "with a batch of one": {"x": normal(1, 3, 6)},
                "with the block twice in a row": {"times": 2},
                LARGER: {"x": heavy(5, size(9, 16), size(24, 48)), "times": 6},
            },
        ),
        checkpointing(
            "dropout",
            1,
            {
                "in training": {"dropout": True},
                "in evaluation mode": {"dropout": True, "training": False},
                "with the block twice in a row": {"dropout": True, "times": 2},
            },
        ),
        checkpointing("an input that needs no gradient", 0.5, {"without dropout": {"needs": False}}),
        checkpointing("frozen and unused parameters", 0.25, {"without dropout": {"partly": True}}),
        Aspect("gradients returned", 0.5, returned_gradients, rtol=1e-3, atol=1e-4, kind=Kind.ASKED_GRADIENT),
        Aspect("autocast", 0.5, under_autocast, side=True),
        checkpointing("random numbers afterwards", 0.5, {"in training": {"dropout": True}}, random=True),
    ),
)

# -------------------------------------------------------------------------------------------------- sharded_step


class Waiting(BaseException):
    """A worker needs what the others give before it can go on."""


class OneOfSeveral:
    """The group of one worker. Results of exchanges that are known already are returned; at the first other it waits.

    calls: name and tensor of each exchange so far.
    """

    def __init__(self, rank: int, size: int, known: list[torch.Tensor]):
        self.rank, self.size, self._known = rank, size, known
        self.calls: list[tuple[str, torch.Tensor]] = []

    def all_reduce(self, x: Any) -> torch.Tensor:
        """The sum over all workers of a number, such as the tokens."""
        x = x if isinstance(x, torch.Tensor) else torch.tensor(x)
        if x.numel() > 1:
            raise Fault(
                f"Your code sums {x.numel():,} numbers with `all_reduce`, so every worker gets all of them. A worker"
                " needs the sum of its own share only, which `reduce_scatter` gives."
            )
        return self._exchanged("all_reduce", x)

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        """This worker's share of the sum over all workers."""
        return self._exchanged("reduce_scatter", x)

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """The shares of all workers, one after another."""
        return self._exchanged("all_gather", x)

    def _exchanged(self, name: str, x: torch.Tensor) -> torch.Tensor:
        self.calls.append((name, x.detach().clone()))
        if len(self.calls) > len(self._known):
            raise Waiting
        return self._known[len(self.calls) - 1].clone()


def results_of(asked: list[tuple[str, torch.Tensor]], share: int) -> list[torch.Tensor]:
    """What each worker gets from an exchange. asked: for each its name, and the tensor that the worker gives."""
    (name, *others), given = [name for name, _ in asked], [x for _, x in asked]
    if any(other != name for other in others):
        raise Fault(f"One worker calls `{name}` while another calls `{next(o for o in others if o != name)}`.")
    size = len(given)
    needed = {"reduce_scatter": share * size, "all_gather": share}.get(name)
    if needed is not None and any(x.shape != (needed,) for x in given):
        what = "a vector of all parameters" if name == "reduce_scatter" else "a worker's share"
        raise Fault(f"`{name}` takes {what}, ({needed},); your code gives it {tuple(given[0].shape)}.")
    if name == "all_gather":
        return [torch.cat(given)] * size
    total = torch.stack(given).sum(0)
    return list(total.chunk(size)) if name == "reduce_scatter" else [total] * size


class Steps(NamedTuple):
    """Some steps of one worker: its place, all workers' tokens, how long a share is, and how many steps."""

    rank: int
    tokens: list[int]
    share: int = 3
    times: int = 1

    def __str__(self) -> str:
        text = f"for worker {self.rank} of workers with {', '.join(map(str, self.tokens))} tokens"
        return text + (f", after {self.times} steps" if self.times > 1 else "")


class Worker(NamedTuple):
    """What one worker has after its steps."""

    returned: object
    mine: torch.Tensor
    gradients: list[torch.Tensor]
    calls: list[tuple[str, torch.Tensor]]


def worked(answer: Answer, draw: Draw, steps: Steps, rank: int, known: list[torch.Tensor]) -> Worker | OneOfSeveral:
    """The steps of one worker from the beginning, or its group, where it waits for an exchange."""
    size = len(steps.tokens)
    group = OneOfSeveral(rank, size, known)
    mine = nn.Parameter(draw.named("parameters").normal(steps.share * size).chunk(size)[rank].clone())
    optimiser = torch.optim.SGD([mine], lr=draw.named("rate").uniform(0.2, 0.9).item(), momentum=0.75)
    returned: object = None
    gradients = [draw.named(f"gradient {i}, worker {rank}").normal(steps.share * size) for i in range(steps.times)]
    try:
        for gradient in gradients:
            tokens = torch.tensor(steps.tokens[rank], device=draw.device)
            returned = answer(group, optimiser, mine, gradient, tokens)
    except Waiting:
        return group
    return Worker(returned, mine.detach(), gradients, group.calls)


def all_worked(answer: Answer, draw: Draw, steps: Steps) -> Worker:
    """The worker of that rank after its steps. All run until they wait, then again with what they gave each other."""
    size = len(steps.tokens)
    known: list[list[torch.Tensor]] = [[] for _ in range(size)]
    for _ in range(20 * steps.times):
        found = [worked(answer, draw, steps, rank, known[rank]) for rank in range(size)]
        waiting = [one for one in found if isinstance(one, OneOfSeveral)]
        if not waiting:
            return found[steps.rank]  # type: ignore[return-value]
        if len(waiting) < size:
            raise Fault(
                f"Some workers wait in `{waiting[0].calls[-1][0]}` for others that never call it. All workers have to"
                " make the same exchanges, those without tokens too."
            )
        for rank, result in enumerate(results_of([one.calls[-1] for one in waiting], steps.share)):
            known[rank].append(result)
    raise Fault("Your code makes more than 20 exchanges in a step; three are enough.")


def stepped(answer: Answer, draw: Draw, steps: Steps) -> dict[str, torch.Tensor]:
    """What the student's function returns at the last of these steps, and this worker's share after it."""
    worker = all_worked(answer, draw, steps)
    return {"the returned parameters": worker.returned, "this worker's share": worker.mine}  # type: ignore[dict-item]


def sharded(
    name: str, points: float, which: Callable[[Draw], list[Steps]], larger: bool = False, missed: str = ""
) -> Aspect:
    """The parameters after drawn steps. larger: one case more, of many workers with long shares."""

    def probe(answer, draw):
        results = {}
        for steps in which(draw):
            for what, tensor in stepped(answer, draw.named(str(steps)), steps).items():
                results[f"{what}, {steps}"] = tensor
        further = {LARGER: many_workers} if larger else {}
        return together(results, further, draw, lambda steps: stepped(answer, draw.named("larger"), steps))

    return Aspect(name, points, probe, missed=missed)


def different(draw: Draw, count: int) -> list[int]:
    """So many different numbers from 2 to 13: one that is forgotten is not mistaken for another."""
    return (draw.permutation(12)[:count] + 2).tolist()


def unequal(draw: Draw) -> list[Steps]:
    """Three workers, four and two, each with its own number of tokens."""
    return [Steps(draw.number(0, w), different(draw.named(f"{w}"), w)) for w in (3, 4, 2)]


def equal(draw: Draw) -> list[Steps]:
    """Three workers and two, with as many tokens each; and one alone."""
    return [Steps(draw.number(0, w), [draw.named(f"{w}").number(2, 14)] * w) for w in (3, 2, 1)]


def without_tokens(draw: Draw) -> list[Steps]:
    """This worker has no tokens, or another one has none."""
    found = []
    for w, own in ((3, True), (3, False)):
        rank, tokens = draw.named(f"{own}").number(0, w), different(draw.named(f"{own}"), w)
        tokens[rank if own else (rank + 1) % w] = 0
        found.append(Steps(rank, tokens, share=4))
    return found


def several_steps(draw: Draw) -> list[Steps]:
    """Two steps, and three."""
    return [Steps(draw.number(0, 3), different(draw.named(f"{count}"), 3), times=count) for count in (2, 3)]


def many_workers(draw: Draw) -> Steps:
    """Many workers with long shares."""
    w = draw.number(9, 16)
    return Steps(draw.number(0, w), draw.integers(1, 5000, w).tolist(), share=draw.number(300, 500))


def exchanged(answer: Answer, draw: Draw) -> torch.Tensor:
    """Whether a step has one reduce-scatter and one all-gather."""
    names = [name for name, _ in all_worked(answer, draw, Steps(draw.number(0, 3), different(draw, 3))).calls]
    for name in ("reduce_scatter", "all_gather"):
        if names.count(name) != 1:
            raise Fault(f"A step needs one `{name}`; your code calls it {names.count(name)} times.")
    return torch.tensor([1])


def gradient_left_alone(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The worker's own gradient after each step."""
    worker = all_worked(answer, draw, Steps(draw.number(0, 3), different(draw, 3), times=2))
    return {f"the gradient after step {i + 1}": gradient for i, gradient in enumerate(worker.gradients)}


SHARES = (
    "A worker's mean times its number of tokens is its sum. The sum over all workers, divided by all tokens, is the"
    " mean over the batch."
)
NO_TOKEN = "A worker without a token adds nothing to the sum, and nothing to the number of tokens."
LATER = (
    "The first step is right and later ones are not. `mine.grad` still holds the gradient of the step before, and the"
    " optimiser has its running mean."
)
CHANGED = "Your call changes the worker's own gradient. Look for *=, /=, or a method whose name ends in _."

sharded_step = exercise(
    "sharded_step",
    stars=2,
    minutes=8,
    aspects=(
        sharded("unequal numbers of tokens", 1.5, unequal, larger=True, missed=SHARES),
        sharded("equal numbers of tokens", 0.5, equal),
        sharded("a worker without tokens", 0.5, without_tokens, missed=NO_TOKEN),
        sharded("several steps", 0.5, several_steps, missed=LATER),
        Aspect("one reduce-scatter, one all-gather", 0.5, exchanged, side=True),
        Aspect(LEFT_ALONE, 0.5, gradient_left_alone, side=True, kind=Kind.ARGUMENT, missed=CHANGED),
    ),
)

# ----------------------------------------------------------------------------------------------------- best_size

Points = tuple[list[int], list[float]]
NONE = -1.0  # what stands for None among the results


def found_size(returned: object) -> float:
    """The number that was returned, -1 for None."""
    if returned is None:
        return NONE
    if isinstance(returned, torch.Tensor) and returned.numel() == 1:
        returned = returned.item()
    if isinstance(returned, bool) or not isinstance(returned, Real):
        raise Fault(f"Your function has to return one number, or None; it returns {kind_of(returned)}.")
    return float(returned)


def minima(
    name: str,
    points: float,
    curves: Callable[[Draw], list[Points]],
    missed: str = "",
    also: Mapping[str, Callable[[Draw], list[Points]]] | None = None,
) -> Aspect:
    """The best sizes of some drawn curves, and of every further set of curves of `also`."""

    def sizes_of(answer: Answer, measured: list[Points]) -> dict[str, torch.Tensor]:
        found = [found_size(answer(list(sizes), list(losses))) for sizes, losses in measured]
        return {"the best sizes": torch.tensor(found, dtype=torch.float64)}

    def probe(answer, draw):
        return together(sizes_of(answer, curves(draw)), also or {}, draw, lambda measured: sizes_of(answer, measured))

    return Aspect(name, points, probe, rtol=1e-4, atol=0.0, missed=missed)


def drawn_sizes(draw: Draw, count: int) -> list[int]:
    """So many sizes from small to large, unevenly apart, each about one and a half to three times the one before."""
    steps = draw.uniform(0.4, 1.1, count)
    steps[0] = draw.named("first").uniform(7, 16).item()
    return [int(size) for size in steps.double().cumsum(0).exp().tolist()]


def bowl(draw: Draw, sizes: list[int], place: float, noise: float = 0.0) -> Points:
    """Losses on a parabola in ln N, whose minimum lies at this share of the way from the smallest size to the largest.

    noise: by how much a loss may be off, as a share of the parabola's height at the nearer end.
    """
    low, high = math.log(min(sizes)), math.log(max(sizes))
    best, curvature = low + place * (high - low), draw.uniform(0.03, 0.3).item()
    floor = draw.uniform(1, 3).item()
    off = noise * curvature * (min(place, 1 - place) * (high - low)) ** 2
    losses = [
        floor + curvature * (math.log(size) - best) ** 2 + off * error
        for size, error in zip(sizes, draw.uniform(-1, 1, len(sizes)).tolist(), strict=True)
    ]
    return sizes, losses


def on_parabolas(draw: Draw) -> list[Points]:
    """Three sizes, four and five, with losses on a parabola; its minimum is not in the middle."""
    place = draw.permutation(3).tolist()
    return [
        bowl(own, drawn_sizes(own, count), (0.3, 0.62, 0.7)[place[count - 3]])
        for count in (3, 4, 5)
        for own in [draw.named(f"{count}")]
    ]


def near_parabolas(draw: Draw) -> list[Points]:
    """Six sizes with losses near a parabola, twice."""
    return [bowl(own, drawn_sizes(own, 6), 0.4, 0.2) for own in (draw.named("one"), draw.named("two"))]


def many_sizes(draw: Draw) -> list[Points]:
    """Many sizes over ten orders of magnitude, near a parabola."""
    sizes = sorted(int(10**power) for power in draw.uniform(2, 12, draw.number(40, 70)).tolist())
    return [bowl(draw, sizes, 0.6, 0.2)]


def mixed(draw: Draw) -> list[Points]:
    """Five sizes, neither from small to large nor the other way round."""
    sizes, losses = bowl(draw, drawn_sizes(draw, 5), 0.35, 0.2)
    order = [2, 0, 4, 1, 3]
    return [([sizes[i] for i in order], [losses[i] for i in order])]


def several_seeds(draw: Draw) -> list[Points]:
    """Four sizes with one to four losses each: each loss counts once, not each size."""
    counts = [1 + count for count in draw.permutation(4).tolist()]
    sizes = [size for size, count in zip(drawn_sizes(draw, 4), counts, strict=True) for _ in range(count)]
    return [bowl(draw, sizes, 0.6, 0.2)]


def some_without(draw: Draw) -> list[Points]:
    """Six curves in drawn order: two with a minimum inside, two with one outside, two bent the other way."""
    places = (0.35, 0.65, -0.3, 1.4, 0.4, 0.6)
    curves = []
    for number in draw.permutation(6).tolist():
        own = draw.named(f"curve {number}")
        sizes, losses = bowl(own, drawn_sizes(own, 5), places[number])
        curves.append((sizes, [5 - loss for loss in losses] if number > 3 else losses))
    return curves


PAIRS = "Each loss belongs to the size at the same index; sizes come in any order, and a size may occur several times."
NEAREST = "These losses lie near a parabola and not on it. Least squares takes all points into account."
INSIDE = (
    "Some of these curves fall or rise throughout, or have their highest point in the middle. Then the grid shows no"
    " best size: the answer is None."
)

best_size = exercise(
    "best_size",
    stars=2,
    minutes=8,
    aspects=(
        minima("losses on a parabola", 1, on_parabolas),
        minima("losses near one", 1, near_parabolas, NEAREST, {LARGER: many_sizes}),
        minima("sizes in any order", 0.5, mixed, PAIRS, {"with one to four losses a size": several_seeds}),
        minima("no best size", 1, some_without, INSIDE),
    ),
)

LESSON = Lesson(
    "17_going_big",
    "Going big",
    (
        merge,
        tiled_attention,
        tiled_backward,
        accumulated_gradients,
        checkpointed,
        sharded_step,
        best_size,
        scaled_scores_early,
    ),
    predictions_of("17_going_big"),
)
