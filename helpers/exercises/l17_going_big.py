"""Lesson 17: fitting a training into memory, and making it fast."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from helpers.exercises.aspects import LEFT_ALONE, Unmet, fill, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Prediction, Probe


def numbers(found: Answer, count: int, what: str) -> list[float]:
    """A number, or a tuple of so many, as floats; Unmet says what it has to be."""
    several = [found] if count == 1 else found
    if count > 1 and (not isinstance(found, (tuple, list)) or len(found) != count):
        raise Unmet(f"Your function has to return {what}; it returns {kind_of(found)}.")
    told = []
    for one in several:
        if isinstance(one, torch.Tensor) and one.numel() == 1:
            one = one.item()
        if isinstance(one, bool) or not isinstance(one, (int, float)):
            raise Unmet(f"Your function has to return {what}; among what it returns is {kind_of(one)}.")
        told.append(float(one))
    return told


Cases = Callable[[Draw], Iterable[tuple]]  # the arguments of one call each


def counted(cases: Cases, count: int = 1, what: str = "a number", which: slice = slice(None)) -> Probe:
    """What the student says for drawn arguments: a number each, or a tuple of numbers of which some are looked at."""

    def probe(answer, draw):
        found = [numbers(answer(*case), count, what)[which] for case in cases(draw)]
        return torch.tensor(found, dtype=torch.float64)

    return probe


# ----------------------------------------------------------------------------------------------- attention_bytes


def different(draw: Draw, count: int) -> list[int]:
    """So many different numbers from 2 to 13: one that is forgotten is not mistaken for another."""
    return (draw.permutation(12)[:count] + 2).tolist()


def one_copy(draw: Draw) -> Iterator[tuple[int, ...]]:
    """(b, h, t, depth) of several models, and of a single matrix."""
    for _ in range(4):
        b, h, depth = different(draw, 3)
        yield b, h, draw.number(5, 1500), depth
    yield 1, 1, draw.number(5, 1500), 1


def other_copies(draw: Draw) -> Iterator[tuple[int, ...]]:
    """(b, h, t, depth, copies), and mostly the bytes of a number too."""
    for bytes_each in ((), (1,), (2,), (8,)):
        b, h, depth, copies = different(draw, 4)
        yield b, h, draw.number(5, 1500), depth, copies, *bytes_each


# ------------------------------------------------------------------------------------------------ training_bytes

KINDS = "three numbers: the bytes of the weights, of the gradients, and of what the optimiser keeps"


def needed(precision: str) -> Probe:
    """The three numbers of bytes for models of several sizes."""

    def models(draw):
        return [(size, precision) for size in (1, draw.number(2, 1000), draw.number(10**6, 2 * 10**9))]

    return counted(models, count=3, what=KINDS)


# ----------------------------------------------------------------------------------------------- flops_per_token

PAIR = "two numbers: forward, and in training"
FORWARD, TRAINING = slice(0, 1), slice(1, 2)


def models(e: tuple[int, int], t: tuple[int, int], n: tuple[int, int]) -> Cases:
    """(e, depth, t, n) of four models, drawn between these bounds."""

    def cases(draw):
        return [tuple(draw.number(*bounds) for bounds in (e, (2, 13), t, n)) for _ in range(4)]

    return cases


USUAL = models(e=(8, 800), t=(5, 1100), n=(11, 50_000))
LONG = models(e=(4, 17), t=(1000, 5000), n=(3, 20))
MANY_WORDS = models(e=(4, 17), t=(2, 5), n=(10_000, 60_000))


def operations(cases: Cases, which: slice) -> Probe:
    """Of (forward, training) for (e, depth, t, n) the one or the other."""
    return counted(cases, count=2, what=PAIR, which=which)


# ----------------------------------------------------------------------------------------- accumulated_gradients

PAD = 0


class Reader(nn.Module):
    """A small model from ids (b, t) to logits (b, t, 7), which notes how many rows it is given at once."""

    def __init__(self):
        super().__init__()
        self.tokens, self.to_logits = nn.Embedding(7, 5), nn.Linear(5, 7)
        self.rows: list[int] = []

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(ids))
        return self.to_logits(torch.tanh(self.tokens(ids)))


def padded(draw: Draw, lengths: tuple[int, ...], t: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and targets (b, t); of each row's targets so many are tokens, and the rest is padding."""
    ids, targets = draw.integers(1, 7, len(lengths), t), draw.integers(1, 7, len(lengths), t)
    for row, length in enumerate(lengths):
        targets[row, length:] = PAD
        ids[row, length + 1 :] = PAD  # a row has one input more than targets, where it is not full
    return ids, targets


def accumulated(*cases: tuple[tuple[int, ...], int, int], stale: bool = False) -> Probe:
    """The gradients for rows of these lengths, of t positions, in so many parts."""

    def probe(answer, draw):
        told = {}
        for lengths, t, parts in cases:
            said = f"rows of {', '.join(map(str, lengths))} in {parts} part{'s' if parts > 1 else ''}"
            model = fill(Reader().to(draw.device), draw)
            for parameter in model.parameters() if stale else ():
                parameter.grad = torch.ones_like(parameter)
            answer(model, *padded(draw.named(said), lengths, t), parts, PAD)
            most = -(-len(lengths) // parts)
            if model.rows and max(model.rows) > most:
                raise Unmet(
                    f"For {len(lengths)} rows in {parts} parts your code sends {max(model.rows)} rows through the model"
                    f" at once. At most {most} fit."
                )
            for name, parameter in model.named_parameters():
                if parameter.grad is None:
                    raise Unmet(f"After your function the parameter {name} has no gradient in .grad.")
                told[f"{name}, {said}"] = parameter.grad
        return told

    return probe


# -------------------------------------------------------------------------------------------------- checkpointed


class Noisy(nn.Module):
    """A block (b, 4) -> (b, 4) with dropout, of which it is known how often it ran and whether autograd recorded it.

    Its dropout is drawn from whole numbers on the CPU, which are the same on every machine.
    """

    def __init__(self, dropout: bool):
        super().__init__()
        self.widen, self.narrow, self.dropout = nn.Linear(4, 6), nn.Linear(6, 4), dropout
        self.recorded: list[bool] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.recorded.append(torch.is_grad_enabled())
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


def both_passes(
    answer: Answer, draw: Draw, *, b: int = 5, dropout: bool = False, training: bool = True, needs: bool = True
) -> dict[str, torch.Tensor]:
    """Forward and backward through a checkpointed block: its output, all gradients, and the random number after."""
    block: Any = fill(Noisy(dropout).to(draw.device), draw).train(training)
    x = draw.normal(b, 4).requires_grad_(needs)
    slope = draw.named("slope").normal(b, 4)
    with own_random_numbers(draw):
        y = answer(block, x)
        between = torch.randint(0, 2**31, (2,))
        if not isinstance(y, torch.Tensor):
            raise Unmet(f"Your function has to return the block's output; it returns {kind_of(y)}.")
        if not y.requires_grad:
            raise Unmet(
                "No gradient flows back from your output."
                if needs
                else "Where x needs no gradient, none flows back from your output: the parameters would not learn. What"
                " goes into a Function's apply decides whether its output has a gradient."
            )
        if block.recorded[:1] == [True]:
            raise Unmet(
                "Autograd records the block's first run, so all that it computes is kept. The forward pass keeps x"
                " alone, and the block runs again, recorded, in the backward pass."
            )
        y.backward(slope)
        after = torch.randint(0, 2**31, (2,))
    if len(block.recorded) < 2:
        raise Unmet("The block runs once only: in the backward pass it has to be computed again.")
    told = {"output": y.detach()}
    for name, leaf in {"x": x, **dict(block.named_parameters())}.items():
        if leaf.requires_grad:
            told[f"gradient of {name}"] = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    return told | {"random": torch.stack([between, after])}


def checkpointing(*settings: dict, random: bool = False) -> Probe:
    """Outputs and gradients in these settings; or the random numbers that are drawn after each pass."""

    def probe(answer, draw):
        told = {}
        for setting in settings:
            said = ", ".join(f"{name} {value}" for name, value in setting.items()) or "plain"
            for name, tensor in both_passes(answer, draw.named(said), **setting).items():
                if (name == "random") == random:
                    told[f"{name}, {said}"] = tensor
        return told

    return probe


# --------------------------------------------------------------------------------------------------- scaled_step


class Learned:
    """Two parameters and one that has no gradient, an optimiser that has made a step before, and scaled gradients."""

    def __init__(self, draw: Draw, scale: float, spoilt: float | None = None):
        self.parameters = [nn.Parameter(draw.normal(3, 2)), nn.Parameter(draw.normal(4)), nn.Parameter(draw.normal(2))]
        self.optimiser = torch.optim.SGD(self.parameters, lr=0.5, momentum=0.9)
        for parameter in self.parameters[:2]:
            parameter.grad = draw.normal(*parameter.shape)
        self.optimiser.step()
        for parameter in self.parameters[:2]:
            parameter.grad = draw.normal(*parameter.shape) * scale
        if spoilt is not None:
            gradient = self.parameters[1].grad
            assert gradient is not None
            gradient[2] = spoilt

    def told(self, which: slice = slice(None)) -> dict[str, torch.Tensor]:
        """The parameters as they are."""
        return {f"parameter {place}": parameter.detach().clone() for place, parameter in enumerate(self.parameters)}


Case = tuple[float, float, float | None]  # scale, limit, and what spoils a gradient


def stepped(*cases: Case, bare: bool = False) -> Probe:
    """The parameters after the student's step. bare: hand over the parameter without a gradient too."""

    def probe(answer, draw):
        told = {}
        for scale, limit, spoilt in cases:
            said = f"scale {scale:g}, limit {limit:g}" + ("" if spoilt is None else f", {spoilt} in a gradient")
            learned = Learned(draw.named(said), scale, spoilt)
            some = learned.parameters if bare else learned.parameters[:2]
            numbers(answer(learned.optimiser, some, scale, limit), 1, "the next scale, a number")
            told |= {f"{name}, {said}": tensor for name, tensor in learned.told().items()}
        return told

    return probe


def next_scales(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The next scale after steps that were taken and steps that were left out."""
    told = {}
    for spoilt, grows in itertools.product((None, float("inf"), float("nan"), float("-inf")), (False, True)):
        scale = draw.uniform(0.5, 2).item() * 2.0 ** draw.number(0, 17)
        growth = draw.uniform(1.1, 4).item() if grows else None
        learned = Learned(draw, scale, spoilt)
        options = {} if growth is None else {"growth": growth}
        found = answer(learned.optimiser, learned.parameters[:2], scale, 1.0, **options)
        said = f"scale {scale:g}" + ("" if spoilt is None else f", {spoilt}") + (f", growth {growth}" if growth else "")
        told[said] = torch.tensor(numbers(found, 1, "the next scale, a number"), dtype=torch.float64)
    return told


FITS: tuple[Case, ...] = ((1024.0, 100.0, None), (8.0, 50.0, None), (1.0, 100.0, None), (0.5, 30.0, None))
CLIPPED: tuple[Case, ...] = ((1024.0, 0.5, None), (8.0, 1.0, None), (1.0, 0.25, None), (0.25, 0.5, None))
SPOILT: tuple[Case, ...] = (
    (1024.0, 1.0, float("inf")),
    (8.0, 100.0, float("nan")),
    (16.0, 1.0, float("-inf")),
)

# ------------------------------------------------------------------------------------------------------ averaged


def weighed(*cases: tuple[int, ...]) -> Probe:
    """The averages of drawn gradients of workers with so many tokens."""

    def probe(answer, draw):
        told = {}
        for counts in cases:
            said = f"tokens {', '.join(map(str, counts))}"
            found = answer(drawn_gradients(draw.named(said), len(counts)), list(counts))
            if not isinstance(found, (list, tuple)) or len(found) != 2:
                raise Unmet(
                    "Each worker has gradients for two parameters, and your function has to return a list of two; it"
                    f" returns {kind_of(found)}" + (f" of {len(found)}." if isinstance(found, (list, tuple)) else ".")
                )
            told |= {f"parameter {place}, {said}": tensor for place, tensor in enumerate(found)}
        return told

    return probe


def drawn_gradients(draw: Draw, workers: int) -> list[list[torch.Tensor]]:
    """For each worker two gradients, (3, 2) and (4,)."""
    return [[draw.normal(3, 2), draw.normal(4)] for _ in range(workers)]


def left_alone(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The workers' own gradients after the call."""
    gradients = drawn_gradients(draw, 2)
    answer(gradients, [3, 5])
    return {f"worker {w}, parameter {p}": g for w, own in enumerate(gradients) for p, g in enumerate(own)}


# ------------------------------------------------------------------------------------------------- fit_power_law

LINE = "two numbers: a and alpha"


def fitted(points: Callable[[Draw], tuple[list[float], list[float]]], times: int = 3) -> Probe:
    """(a, α) for several drawn sets of sizes and losses."""

    def probe(answer, draw):
        drawn = [points(draw.named(f"{k}")) for k in range(times)]
        return torch.tensor([numbers(answer(*some), 2, LINE) for some in drawn], dtype=torch.float64)

    return probe


def on_a_line(draw: Draw) -> tuple[list[float], list[float]]:
    """Three sizes with the losses of a power law."""
    a, alpha = draw.uniform(3, 12, 1).item(), draw.uniform(0.05, 0.3, 1).item()
    sizes = [5e4, 2e5, 8e5]
    return sizes, [a * size**-alpha for size in sizes]


def near_a_line(count: int) -> Callable[[Draw], tuple[list[float], list[float]]]:
    """So many sizes, unevenly apart, with losses off a power law by up to a tenth."""

    def points(draw):
        sizes = (10 ** draw.uniform(2, 7, count)).sort().values.tolist()
        a, alpha = draw.uniform(3, 12, 1).item(), draw.uniform(0.05, 0.3, 1).item()
        off = draw.uniform(0.9, 1.1, count).tolist()
        return sizes, [a * size**-alpha * one for size, one in zip(sizes, off, strict=True)]

    return points


def rising(draw: Draw) -> tuple[list[float], list[float]]:
    """Losses that rise with the size: α is below 0."""
    return [1e3, 5e3, 7e4], (draw.uniform(1, 2, 3).cumsum(0)).tolist()


MATRIX = "One head of one row of the batch in one block has one matrix, with a number for each pair of positions."
EACH = "Each matrix is there `copies` times, and each of its numbers takes `bytes_each` bytes."
FAR = "Here attention is most of the work: in each block a token meets t keys, and mixes t values, of width e in all."
WORDS = "Here the output layer is most of the work, a matrix from e to n, once. Looking up a row multiplies nothing."
PIECES = "Count the pieces apart: the matrices of the blocks, the output layer, and the two products of attention."
TOO_LONG = "Here all gradients together, divided by the scale, are longer than the limit, and are shortened alike."
ALIKE = "Each target that is no padding counts the same, whichever part it is in and whatever else is in that part."
SHORT_ENOUGH = "Here the gradients, once divided by the scale, are within the limit, and are used as they are."
BARE = "The last parameter has no gradient. The others are clipped together and stepped as if it were not there."
GO_ON = "After both passes the random numbers have to go on as if the block had run once, and nothing had been seeded."
SAME_DRAWS = "With dropout in training mode both runs have to be the same network; in evaluation mode nothing is drawn."
SHARES = "A worker's mean times its number of tokens is its sum. All sums together, over all tokens, are the mean."
NOTHING_TO_SAY = "A worker without a token has no say in the average, and it adds nothing to the number of tokens."
NEAREST = "These losses lie near a power law and not on it. The line of least squares takes all points into account."
THROUGH = "Through two points there is one line, and here the power law has to pass through both."
RISING = "Losses that rise with the size have a power law too: α is below 0."

EXACTLY: dict[str, Any] = {"rtol": 1e-6, "atol": 0.0}  # small models count beside large ones

LESSON = Lesson(
    "17_going_big",
    "Going big",
    exercises=(
        Exercise(
            "training_bytes",
            stars=1,
            minutes=5,
            aspects=(
                Aspect("float32", 1, needed("float32"), **EXACTLY),
                Aspect("mixed precision", 1.5, needed("mixed"), **EXACTLY),
            ),
        ),
        Exercise(
            "attention_bytes",
            stars=1,
            minutes=4,
            aspects=(
                Aspect("one copy in 32 bits", 1, counted(one_copy), **EXACTLY, missed=MATRIX),
                Aspect("other copies and bits", 1, counted(other_copies), **EXACTLY, missed=EACH),
            ),
        ),
        Exercise(
            "scaled_step",
            stars=3,
            minutes=11,
            aspects=(
                Aspect("a step", 1, stepped(*FITS), missed=SHORT_ENOUGH),
                Aspect("a step that is clipped", 1, stepped(*CLIPPED), missed=TOO_LONG),
                Aspect("the next scale", 1.5, next_scales, rtol=1e-5, atol=1e-9),
                Aspect(
                    "infinity and NaN",
                    0.5,
                    stepped(*SPOILT),
                    side=True,
                    missed="Where a gradient holds an infinity or NaN, no step is taken: no parameter changes, not even"
                    " by the optimiser's momentum.",
                ),
                Aspect(
                    "a parameter without a gradient",
                    0.5,
                    stepped((64.0, 0.5, None), (4.0, 90.0, None), bare=True),
                    missed=BARE,
                ),
            ),
            forbidden={
                "GradScaler": "It does all of this; the exercise is to write it.",
            },
        ),
        Exercise(
            "accumulated_gradients",
            stars=2,
            minutes=7,
            mend=True,
            aspects=(
                Aspect("rows of different length", 2, accumulated(((4, 1, 3, 2), 4, 2), ((5, 2), 5, 2)), missed=ALIKE),
                Aspect("no padding", 0.5, accumulated(((3, 3, 3, 3), 3, 2), ((2, 2), 2, 1), ((4,), 4, 1))),
                Aspect("rows that do not divide evenly", 0.5, accumulated(((3,) * 7, 3, 3), ((2,) * 5, 2, 4))),
                Aspect("a part of padding alone", 0.5, accumulated(((3, 0, 2), 3, 3), ((1, 4, 0, 0), 4, 2))),
                Aspect("gradients from before", 0.5, accumulated(((4, 1, 3, 2), 4, 4), stale=True)),
            ),
        ),
        Exercise(
            "checkpointed",
            stars=3,
            minutes=14,
            aspects=(
                Aspect("output and gradients", 2, checkpointing({}, {"b": 1}), rtol=1e-3, atol=1e-4),
                Aspect(
                    "dropout",
                    1.5,
                    checkpointing({"dropout": True}, {"dropout": True, "training": False}),
                    rtol=1e-3,
                    atol=1e-4,
                    missed=SAME_DRAWS,
                ),
                Aspect("an input that needs no gradient", 1, checkpointing({"needs": False}), rtol=1e-3, atol=1e-4),
                Aspect(
                    "random numbers afterwards",
                    0.5,
                    checkpointing({"dropout": True}, random=True),
                    side=True,
                    missed=GO_ON,
                ),
            ),
            forbidden={
                "checkpoint": "torch.utils.checkpoint does all of this; the exercise is to write it.",
            },
            builds_on=("big.random_state", "big.set_random_state"),
        ),
        Exercise(
            "flops_per_token",
            stars=2,
            minutes=8,
            aspects=(
                Aspect("forward", 1.5, operations(USUAL, FORWARD), **EXACTLY, missed=PIECES),
                Aspect("in training", 1, operations(USUAL, TRAINING), **EXACTLY),
                Aspect("a long context", 0.5, operations(LONG, FORWARD), **EXACTLY, missed=FAR),
                Aspect("a large vocabulary", 0.5, operations(MANY_WORDS, FORWARD), **EXACTLY, missed=WORDS),
            ),
        ),
        Exercise(
            "averaged",
            stars=2,
            minutes=6,
            aspects=(
                Aspect("unequal shares", 1.5, weighed((9, 3), (1, 7), (10, 20, 40)), missed=SHARES),
                Aspect("equal shares", 0.5, weighed((4, 4), (6, 6, 6), (5,))),
                Aspect("a worker without a token", 0.5, weighed((3, 0), (0, 2, 5)), missed=NOTHING_TO_SAY),
                Aspect(LEFT_ALONE, 0.5, left_alone, side=True),
            ),
        ),
        Exercise(
            "fit_power_law",
            stars=2,
            minutes=8,
            aspects=(
                Aspect("losses on a power law", 1, fitted(on_a_line)),
                Aspect("losses near one", 1.5, fitted(near_a_line(5)), missed=NEAREST),
                Aspect("two sizes", 0.25, fitted(near_a_line(2)), missed=THROUGH),
                Aspect("losses that rise", 0.25, fitted(rising), missed=RISING),
            ),
        ),
    ),
    predictions=(
        Prediction(
            "double_width",
            truth="B",
            says={
                "A": "A vector has twice as many components. But a matrix from such vectors to such vectors doubles in"
                " both directions.",
                "B": "Each matrix is e wide and e or 4e high, so its entries grow with e². A matrix of attention"
                " weights has t² entries whatever the width is: e went into the sum of each score.",
                "C": "The matrices are right. A score is one number, though it is a sum over more components.",
                "D": "The number of attention weights is h·t² a row of the batch. No e stands in it.",
            },
        ),
        Prediction(
            "thousand_small_steps",
            truth="A",
            says={
                "A": "Near 1 the numbers of bfloat16 lie 0.0078 apart above it. 1.001 is rounded back to 1, a thousand"
                " times.",
                "B": "It would be so if half of the steps were lost. Each sum is rounded, and here all of them to the"
                " same number: the one it began with.",
                "C": "That is what float32 finds. Rounding errors cancel where they fall to both sides; here all fall"
                " to the same side.",
            },
        ),
        Prediction(
            "eight_checkpoints",
            truth="C",
            says={
                "A": "That would be so if half of what a block keeps were its input. It keeps twelve vectors a token,"
                " and the input is one of them.",
                "B": "That is the peak, while a block is computed again on the way back. What is kept until then is"
                " smaller: eight inputs.",
                "C": "Between the passes only the eight inputs are kept, one tensor (b, t, e) for each block.",
            },
        ),
    ),
)
