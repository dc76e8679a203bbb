"""Lesson 17: fitting a training into memory, and making it fast."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple

import torch
from torch import nn

from helpers.exercises.aspects import LARGER, LEFT_ALONE, Fault, Inputs, fill, kind_of, projected, together
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import ATTENTION_OPERATORS, NORM_OPERATORS, Answer, Aspect, Kind, Lesson
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
    normal,
    size,
    values,
)
from helpers.exercises.tensor_names import in_case

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
    minutes=8,
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

# ----------------------------------------------------------------------------------------------- flops_per_token


def numbers(names: tuple[str, str], returned: Answer) -> list[float]:
    """The two numbers that were returned; each may be a tensor of one entry."""
    floats = []
    for name, one in zip(names, all_of(names, returned), strict=True):
        if isinstance(one, torch.Tensor) and one.numel() == 1:
            one = one.item()
        if isinstance(one, bool) or not isinstance(one, Real):
            raise Fault(f"`{name}` has to be a number; your function returns {kind_of(one)}.")
        floats.append(float(one))
    return floats


Bounds = tuple[int, int]
MUCH_LARGER: tuple[Bounds, ...] = (2000, 20_000), (50, 200), (10_000, 200_000), (100_000, 1_000_000)


def operations(
    name: str,
    points: float,
    which: str,
    missed: str,
    e: Bounds = (8, 800),
    t: Bounds = (5, 1100),
    n: Bounds = (11, 50_000),
    larger: bool = False,
) -> Aspect:
    """The operations forward, or those in training, of four models whose sizes are drawn between these bounds.

    larger: of four much larger models too.
    """
    both = ("forward", "training")

    def counts(answer: Answer, draw: Draw, *bounds: Bounds) -> torch.Tensor:
        models = [[draw.number(*each) for each in bounds] for _ in range(4)]
        found = [numbers(both, answer(*model))[both.index(which)] for model in models]
        return torch.tensor(found, dtype=torch.float64)

    def probe(answer, draw):
        usual = {"result": counts(answer, draw, e, (2, 13), t, n)}
        return usual | ({LARGER: counts(answer, draw.named(LARGER), *MUCH_LARGER)} if larger else {})

    return Aspect(name, points, probe, rtol=1e-6, atol=0.0, missed=missed)  # small models count beside large ones


PIECES = "Check the pieces one by one: the blocks' matrices, the output layer, and the two products of attention."
BACKWARD = "The backward pass makes two products for each product of the forward pass, those of attention included."
FAR = "Here attention is most of the work: in each block a token meets t keys, and mixes t values, of width e in all."
WORDS = "Here most of the work is the output layer: one matrix from e to n. Looking up an embedding multiplies nothing."

flops_per_token = exercise(
    "flops_per_token",
    stars=2,
    minutes=8,
    aspects=(
        operations("forward", 1.5, "forward", PIECES, larger=True),
        operations("in training", 1, "training", BACKWARD, larger=True),
        operations("a long context", 0.5, "forward", FAR, e=(4, 17), t=(1000, 5000), n=(3, 20)),
        operations("a large vocabulary", 0.5, "forward", WORDS, e=(4, 17), t=(2, 5), n=(10_000, 60_000)),
    ),
)

# ------------------------------------------------------------------------------------------------------ averaged


def different(draw: Draw, count: int) -> list[int]:
    """So many different numbers from 2 to 13: one that is forgotten is not mistaken for another."""
    return (draw.permutation(12)[:count] + 2).tolist()


def averages_of(answer: Answer, gradients: list[list[torch.Tensor]], counts: list[int]) -> dict[str, torch.Tensor]:
    """What the student's function returns, by parameter."""
    names = [f"parameter {place}" for place in range(len(gradients[0]))]
    return dict(zip(names, all_of(names, answer(gradients, list(counts))), strict=True))


def weighed(
    name: str,
    points: float,
    counts_of: Callable[[Draw, int], list[int]],
    *workers: int,
    larger: bool = False,
    missed: str = "",
) -> Aspect:
    """The averages of drawn gradients of so many workers. counts_of: draws how many tokens each has."""

    def probe(answer, draw):
        averages = {}
        for count in workers:
            own = draw.named(f"{count} workers")
            counts = counts_of(own, count)
            for which, average in averages_of(answer, drawn_gradients(own, count), counts).items():
                averages[f"{which}, workers with {', '.join(map(str, counts))} tokens"] = average
        further = {LARGER: many_workers} if larger else {}
        return together(averages, further, draw, lambda given: averages_of(answer, *given))

    return Aspect(name, points, probe, missed=missed)


def equal(draw: Draw, workers: int) -> list[int]:
    """The same number of tokens for all."""
    return [draw.number(2, 14)] * workers


def one_without(draw: Draw, workers: int) -> list[int]:
    """Different numbers of tokens, of which one is 0."""
    counts = different(draw, workers)
    counts[draw.number(0, workers)] = 0
    return counts


def drawn_gradients(draw: Draw, workers: int) -> list[list[torch.Tensor]]:
    """For each worker two gradients, (3, 2) and (4,)."""
    return [[draw.normal(3, 2), draw.normal(4)] for _ in range(workers)]


def many_workers(draw: Draw) -> tuple[list[list[torch.Tensor]], list[int]]:
    """Gradients of many workers for five parameters, of up to three axes, and how many tokens each worker has."""
    workers, width = draw.number(9, 16), draw.number(24, 48)
    shapes = (), (width, 9), (70,), (2, 3, 4), (1, width)
    gradients = [[draw.heavy(*shape) for shape in shapes] for _ in range(workers)]
    return gradients, draw.integers(1, 5000, workers).tolist()


def left_alone(answer: Answer, draw: Draw) -> dict[str, torch.Tensor] | torch.Tensor:
    """The workers' own gradients after the call."""
    gradients = drawn_gradients(draw, 3)
    answer(gradients, different(draw, 3))
    left = {f"worker {w}, parameter {p}": g for w, own in enumerate(gradients) for p, g in enumerate(own)}
    return left or torch.zeros(0)


SHARES = "A worker's mean times its number of tokens is its sum. All sums together, over all tokens, are the mean."
NO_TOKEN = "A worker without a token adds nothing to the sum, and nothing to the number of tokens."
CHANGED = (
    "Your call changes the workers' own gradients. Look for +=, *=, /=, an assignment to x[...], a method whose name"
    " ends in _, or a call that changes a list, such as pop."
)

averaged = exercise(
    "averaged",
    stars=2,
    minutes=6,
    aspects=(
        weighed("unequal shares", 1.5, different, 3, 4, 2, larger=True, missed=SHARES),
        weighed("equal shares", 0.5, equal, 3, 2, 1),
        weighed("a worker without a token", 0.5, one_without, 3, 2, missed=NO_TOKEN),
        Aspect(LEFT_ALONE, 0.5, left_alone, side=True, kind=Kind.ARGUMENT, missed=CHANGED),
    ),
)

# ------------------------------------------------------------------------------------------------- fit_power_law

Points = tuple[list[int], list[float]]


def fitted(
    name: str,
    points: float,
    measured: Callable[[Draw], Points],
    missed: str = "",
    also: Mapping[str, Callable[[Draw], Points]] | None = None,
) -> Aspect:
    """a and α for three drawn sets of sizes and losses, and for every further one of `also`."""

    def laws(answer: Answer, *measurements: Points) -> dict[str, torch.Tensor]:
        found = [numbers(("a", "alpha"), answer(*some)) for some in measurements]
        return dict(zip(("a", "alpha"), torch.tensor(found, dtype=torch.float64).unbind(1), strict=True))

    def probe(answer, draw):
        results = laws(answer, *(measured(draw.named(f"{k}")) for k in range(3)))
        return together(results, also or {}, draw, lambda measurements: laws(answer, measurements))

    return Aspect(name, points, probe, missed=missed)


def drawn_sizes(draw: Draw, count: int) -> list[int]:
    """So many sizes, unevenly apart, each more than one and a half times the one before."""
    return [int(100 * 10 ** (power + draw.uniform(0, 0.8).item())) for power in range(count)]


def on_a_line(draw: Draw) -> Points:
    """Three sizes with the losses of a power law."""
    a, alpha = draw.uniform(3, 12).item(), draw.uniform(0.05, 0.3).item()
    sizes = drawn_sizes(draw, 3)
    return sizes, [a * size**-alpha for size in sizes]


def near_a_line(draw: Draw, sizes: list[int]) -> Points:
    """These sizes, with losses off a power law by up to a tenth."""
    a, alpha = draw.uniform(3, 12).item(), draw.uniform(0.05, 0.3).item()
    off = draw.uniform(0.9, 1.1, len(sizes)).tolist()
    return sizes, [a * size**-alpha * one for size, one in zip(sizes, off, strict=True)]


def few_sizes(count: int) -> Callable[[Draw], Points]:
    """So many sizes, from small to large, near a power law."""
    return lambda draw: near_a_line(draw, drawn_sizes(draw, count))


def in_another_order(draw: Draw) -> Points:
    """Four sizes with the losses of a power law, neither from small to large nor the other way round."""
    a, alpha, first = draw.uniform(3, 12).item(), draw.uniform(0.05, 0.3).item(), draw.number(0, 2)
    small, *others = drawn_sizes(draw, 4)
    sizes = [others[first], small, *others[:first], *others[first + 1 :]]
    return sizes, [a * size**-alpha for size in sizes]


def with_a_size_twice(draw: Draw) -> Points:
    """Four models, of which two have the same size and different losses."""
    sizes = drawn_sizes(draw, 3)
    return near_a_line(draw, [sizes[0], sizes[1], sizes[1], sizes[2]])


def many_sizes(draw: Draw) -> Points:
    """Many sizes over ten orders of magnitude, from small to large, near a power law."""
    return near_a_line(draw, sorted(int(10**power) for power in draw.uniform(2, 12, draw.number(40, 70)).tolist()))


def rising(draw: Draw) -> Points:
    """Losses that rise with the size: α is below 0."""
    return drawn_sizes(draw, 3), draw.uniform(1, 2, 3).cumsum(0).tolist()


PAIRS = "Here the sizes are unsorted, or one appears twice. Each loss belongs to the size at the same index."
NEAREST = "These losses lie near a power law and not on it. The line of least squares takes all points into account."
THROUGH = "Through two points there is one line: here the power law has to pass through both."

fit_power_law = exercise(
    "fit_power_law",
    stars=2,
    minutes=8,
    aspects=(
        fitted("losses on a power law", 1, on_a_line),
        fitted("losses near one", 1, few_sizes(5), NEAREST, {LARGER: many_sizes}),
        fitted("sizes in any order", 0.5, in_another_order, PAIRS, {"with one size twice": with_a_size_twice}),
        fitted("two sizes", 0.25, few_sizes(2), THROUGH),
        fitted("losses that rise", 0.25, rising),
    ),
)

LESSON = Lesson(
    "17_going_big",
    "Going big",
    (scaled_scores_early, accumulated_gradients, checkpointed, flops_per_token, averaged, fit_power_law),
    predictions_of("17_going_big"),
)
