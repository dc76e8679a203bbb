"""Lesson 9: a character generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from helpers.exercises import aspects
from helpers.exercises.aspects import LARGER, Fault, Inputs, Via, built, evaluation_mode, kind_of, projected, renamed
from helpers.exercises.behaviour import note_call
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Collected, Lesson, Probe
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    case,
    exercise,
    gradient,
    input_left_alone,
    ints,
    module,
    parameters,
    size,
    values,
)

FINISHED = "The finished function is there for the exercise that builds on this one."


def within(counts: torch.Tensor, chances: torch.Tensor, draws: int, errors: int = 5) -> torch.Tensor:
    """Which counts lie within so many standard errors of draws · chances; all do where fewer than 30 are expected.

    counts, chances: of one shape. Returns booleans of that shape.
    """
    expected = draws * chances
    close = (counts - expected).abs() <= errors * (expected * (1 - chances)).sqrt()
    return close | (expected < 30)


# ------------------------------------------------------------------------------------------------- sample_batch

PARTS = "inputs", "targets"


def pair(batch: object) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets, both (batch, t), from what the student's function returned."""
    parts = all_of(PARTS, batch)
    for name, part in zip(PARTS, parts, strict=True):
        if not isinstance(part, torch.Tensor):
            raise Fault(f"Your {name} have to be a tensor; they are {kind_of(part)}.")
    return tuple(parts)


def numbered(draw: Draw, length: int) -> torch.Tensor:
    """A text in which no byte comes twice, so that each slice says where it is from."""
    return draw.permutation(250)[:length].to(torch.uint8).cpu()


def only_slice(sample: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """A text of t + 1 bytes has one slice, so nothing is left to chance."""
    t = draw.number(5, 9)
    inputs, targets = pair(sample(numbered(draw, t + 1), 3, t))
    fewest = pair(sample(numbered(draw, 2), 1, 1))
    named = {f"with batch = 1 and t = 1, in the {name}": part for name, part in zip(PARTS, fewest, strict=True)}
    return {"in the inputs": inputs, "in the targets": targets, **named}


def many_slices(
    sample: Answer, draw: Draw, rows: int = 4000, length: int = 14, t: int = 5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A text, and the inputs and targets (rows, t) that were drawn from it, shapes compared."""
    data = numbered(draw, length)
    inputs, targets = pair(sample(data, rows, t))
    for name, part in zip(PARTS, (inputs, targets), strict=True):
        if part.shape != (rows, t):
            raise Fault(
                f"With batch = {rows} and t = {t} your {name} have the shape {tuple(part.shape)}; it has to be"
                f" {(rows, t)}."
            )
    return data, inputs, targets


EVERY = (
    "In thousands of rows, each has to be a slice of the text with its targets one byte later, and every slice of the"
    " text has to come up."
)
STARTS = (
    "Some starts come up more often than others, by more than five standard errors. All starts from 0 to"
    " len(data) − t − 1 have the same probability, the first and the last included."
)
NOT_INDEPENDENT = (
    "Each start comes up equally often, but two rows that follow each other are not independent: some pairs of starts"
    " come up more often than others. Draw the start of each row on its own."
)
SEED = (
    "The generator has to decide what is drawn: the same seed gives the same draw, and another state of the generator"
    " another one. Pass it on to the function that draws."
)


def thousands_of_slices(sample: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Inputs and targets side by side, of thousands of rows: (rows, 2t)."""

    def slices(draw: Draw, **sizes: int) -> torch.Tensor:
        _, inputs, targets = many_slices(sample, draw, **sizes)
        both = torch.cat([inputs.long(), targets.long()], dim=1)
        return both.clamp(-1, 256).to(torch.int16)  # as small as bytes, and no other number becomes one

    many = draw.named(LARGER)
    larger = slices(many, rows=2500, length=many.number(200, 211), t=many.number(75, 86))
    return {"result": slices(draw), LARGER: larger}


def kinds_of_slices(collected: Collected, draw: Draw) -> dict[str, object]:
    """Among these, each slice that there is comes up, and no other.

    In the larger case some 125 slices. That one of them is left out by chance has a probability below 1e-6.
    """
    few, larger = (collected[name].long().unique(dim=0) for name in ("result", LARGER))
    t, missing = few.shape[1] // 2, 9 - len(few)
    if missing > 0 and (few[:, 1:t] == few[:, t:-1]).all():
        raise Fault(
            f"Of the text's 9 slices, {missing} never came up in thousands of rows. Every start from 0 to"
            " len(data) − t − 1 must be possible."
        )
    return {"result": few, LARGER: projected(larger, draw)}


def evenly(sample: Answer, draw: Draw) -> torch.Tensor:
    """Is each start drawn about equally often, and each pair of starts in two rows that follow each other?"""
    data, inputs, _ = many_slices(sample, draw)
    starts = (inputs[:, :1].long() == data.long()).int().argmax(dim=1)
    counts = starts.bincount(minlength=9)[:9]
    if not within(counts, torch.full((9,), 1 / 9), len(starts)).all():
        raise Fault(STARTS)
    data, inputs, _ = many_slices(sample, draw.named("pairs"), length=8)
    first, second = (inputs[:, :1].long() == data.long()).int().argmax(dim=1).view(-1, 2).T
    pairs = (3 * first + second).bincount(minlength=9)[:9]
    if not within(pairs, torch.full((9,), 1 / 9), len(first)).all():
        raise Fault(NOT_INDEPENDENT)
    return torch.tensor([1])


def seeded_batches(sample: Answer, draw: Draw) -> torch.Tensor:
    """Does the generator decide what is drawn, and does it go on in a second call?"""
    data, seed = numbered(draw, 200), draw.number(0, 10**6)

    def inputs(generator: torch.Generator) -> torch.Tensor:
        return pair(sample(data, 8, 6, generator))[0]

    generator = torch.Generator().manual_seed(seed)
    first, second = inputs(generator), inputs(generator)
    again = inputs(torch.Generator().manual_seed(seed))
    return torch.tensor([torch.equal(first, again), not torch.equal(first, second)])


sample_batch = exercise(
    "sample_batch",
    stars=1,
    minutes=7,
    aspects=(
        Aspect("a text of one slice", 0.5, only_slice, axes="b t", dtype=True),
        Aspect("every slice", 1, thousands_of_slices, axes="slice byte", missed=EVERY, reduce=kinds_of_slices),
        Aspect("equally often", 0.5, evenly, side=True),
        Aspect("generator", 0.5, seeded_batches, side=True, missed=SEED),
    ),
)

# ---------------------------------------------------------------------------------------------- CharTransformer

MOST_NAMED = 3  # of tensors that do not belong into a state_dict
SIZES = (11, 8, 2, 3, 9)  # n, e, h, depth, t_max; windows of 5, three of them: no two sizes alike
MODEL = built(*SIZES)
ANOTHER = built(13, 12, 3, 1, 7)
SHALLOW = built(11, 8, 2, 1, 9)  # for gradients and devices


def longest_windows(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Windows as long as there may be, in two models of other sizes."""
    return {
        "for windows of t_max bytes": MODEL(answer, draw)(draw.integers(0, 11, 2, 9)),
        "in a model of other sizes": ANOTHER(answer, draw)(draw.integers(0, 13, 2, 7)),
    }


def longest(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The attribute `t_max` of two models."""
    vias = {"in a model with t_max = 9": MODEL, "in a model with t_max = 7": ANOTHER}
    models: dict[str, Answer] = {which: via(answer, draw) for which, via in vias.items()}
    if not all(hasattr(model, "t_max") for model in models.values()):
        raise Fault("Your module has no attribute `t_max`. `generate` reads from it how long a window may be.")
    return {which: torch.tensor(float(model.t_max)) for which, model in models.items()}


def checked_model(answer: Answer, draw: Draw) -> torch.nn.Module:
    """MODEL, whose state_dict has to hold nothing but parameters, no two of which are one tensor."""
    model = MODEL(answer, draw)
    names: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if id(parameter) in names:
            raise Fault(f"{name} is the same tensor as {names[id(parameter)]}. Each part has weights of its own.")
        names[id(parameter)] = name
    extra = sorted(set(model.state_dict()) - set(names.values()))
    if extra:
        some = ", ".join(extra[:MOST_NAMED]) + (f" and {more} more" if (more := len(extra) - MOST_NAMED) > 0 else "")
        raise Fault(
            f"Your module's state_dict holds {some}, which is not a weight of the four parts. Keep a tensor"
            " that is computed, such as a mask, out of it: register_buffer(..., persistent=False)."
        )
    return model


def long_windows(draw: Draw) -> tuple[torch.Tensor, tuple[int, ...]]:
    """Nine windows or more of 65 ids and more, and the sizes of a model for them."""
    n, t = draw.number(30, 40), draw.number(65, 70)
    return draw.integers(0, n, draw.number(9, 11), t), (n, 6 * draw.number(4, 6), 6, 4, t + draw.number(1, 9))


char_transformer = exercise(
    "CharTransformer",
    stars=2,
    minutes=10,
    given=case(ints(3, 5, below=11)),
    also={
        "with a batch of one": case(ints(1, 5, below=11)),
        "for windows of a single byte": case(ints(3, 1, below=11)),
        "for one window of one byte": case(ints(1, 1, below=11)),
    },
    larger=long_windows,
    via=SHALLOW,
    aspects=(
        values(1, via=module(lambda ids, sizes=SIZES: (sizes, (ids,))), axes="b t n", picture=True),
        Aspect("the longest window", 0.5, longest_windows, axes="b t n"),
        gradient(0.5, weights=True),
        parameters(1, via=checked_model),
        Aspect("t_max", 0.5, longest, side=True),
        any_device(0.5),
    ),
    builds_on=("blocks.Transformer", "masks.causal_mask", "positions.PositionEmbedding"),
)

# ------------------------------------------------------------------------------ temperature, top-k and top-p


GONE = -9000.0  # a logit that far down counts as −∞: its probability is 0 in every precision


def log_chances(function: Callable, logits: torch.Tensor, *rest: float) -> torch.Tensor:
    """The logarithms of the probabilities that the new logits mean.

    A constant added to all logits of a row changes nothing.
    """
    result = function(logits.clone(), *rest)
    return result.float().log_softmax(dim=-1) if _is_float(result) and result.dim() else result


def _is_float(result: object) -> bool:
    return isinstance(result, torch.Tensor) and result.is_floating_point()


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    """The probabilities that logits (..., n) mean; a row in which nothing is left has zeros.

    Where a softmax would be NaN because something is NaN or +∞, the logits come back as they are.
    """
    if logits.isnan().any() or (logits == torch.inf).any():
        return logits
    nothing = (logits == -torch.inf).all(dim=-1, keepdim=True)
    return logits.masked_fill(nothing, 0.0).softmax(dim=-1).masked_fill(nothing, 0.0)


def filtered(function: Callable, logits: torch.Tensor, setting: float, where: str) -> dict[str, Any]:
    """The probabilities after the filter, and the logits that stay, as they are; 0 in place of the others.

    The logits that do not stay may be −∞ or another number far below.
    """
    result = function(logits.clone(), setting)
    named = f"in the probabilities {where}", f"in the logits that stay {where}"
    if not _is_float(result) or result.shape != logits.shape:
        return dict.fromkeys(named, result)
    return dict(zip(named, (probabilities(result), torch.where(result > GONE, result, 0.0)), strict=True))


def to_draw_from(setting: float) -> Via:
    """The student's filter as a function from logits to probabilities, which has a gradient."""

    def via(function, draw):
        def call(logits):
            try:
                filtered = function(logits, setting)
            except RuntimeError as problem:
                if "modified inplace" not in str(problem):
                    raise
                # a loop that takes rows apart and writes into them is right, and torch has no gradient for it
                left = function(logits.detach().clone(), setting)
                filtered = logits.masked_fill(left <= GONE, -torch.inf)
            if not _is_float(filtered) or filtered.shape != logits.shape:
                return filtered
            stays = filtered > GONE
            if not filtered.requires_grad and not torch.equal(filtered[stays], logits[stays]):
                raise Fault("Where a logit stays, your result holds something else.")
            return probabilities(filtered)

        return call

    return via


def heated(apply: Answer, draw: Draw) -> Callable:
    """The student's temperature as a function to logarithms of probabilities."""
    return lambda logits, temperature: log_chances(apply, logits, temperature)


def some_logits(draw: Draw, *shape: int) -> torch.Tensor:
    """Logits whose sizes differ clearly, in a drawn order: (..., n)."""
    n = shape[-1]
    steps = draw.uniform(0.15, 0.75, *shape).cumsum(dim=-1)
    order = draw.uniform(0, 1, *shape).argsort(dim=-1)
    return steps.gather(-1, order) - draw.uniform(0, n / 2, *shape[:-1], 1)


def four_rows(*rest: float) -> Inputs:
    """Logits (2, 4, 9), and what else the filter takes."""
    return case(lambda draw: some_logits(draw, 2, 4, 9), *rest)


def temperatures(apply: Answer, draw: Draw) -> dict[str, object]:
    """The log-probabilities of the new logits at several temperatures, for logits of several shapes."""
    cases = ((0.5, (4, 9)), (1.7, (2, 3, 9)), (0.8, (1, 9)), (3, (9,)), (1.0, (4, 9)))
    results = {
        f"at temperature {t:g}, for logits of shape {shape}": log_chances(apply, some_logits(draw, *shape), t)
        for t, shape in cases
    }
    many = draw.named(LARGER)
    logits, temperature = many.heavy(2, many.number(9, 13), 5, many.number(70, 100), most=10.0), many.number(5, 9) / 10
    return results | {LARGER: projected(log_chances(apply, logits, temperature), draw)}


def close_rivals(draw: Draw, *shape: int) -> torch.Tensor:
    """Logits (rows, n) of which the second largest is hardly smaller: a division by a small number shows."""
    logits = some_logits(draw, *shape)
    first, second = logits.topk(2, dim=-1).indices.split(1, dim=-1)
    largest = 0.2 + 0.1 * torch.arange(shape[0], device=draw.device).unsqueeze(-1)  # different in each row
    return (logits - logits.gather(-1, first) + largest).scatter(-1, second, largest - 2e-6)


def greedy_rows(apply: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The probabilities at temperature 0, and which tokens can be drawn at all."""
    cases = {"": some_logits(draw, 4, 9), ", where two logits are close": close_rivals(draw, 4, 9)}
    cases |= {f", for logits of shape {shape}": some_logits(draw, *shape) for shape in ((2, 3, 9), (1, 9), (9,))}
    results = {}
    for which, logits in cases.items():
        result = apply(logits.clone(), 0)
        fits = _is_float(result) and result.shape == logits.shape
        results[f"in the probabilities{which}"] = probabilities(result) if fits else result
        if fits:
            result = result > result.max(dim=-1, keepdim=True).values + GONE
        results[f"for the tokens that can be drawn{which}"] = result
    return results


def new_logits(points: float) -> Aspect:
    """The caller's logits hold the same numbers after the call, and at temperature 1 the result is another tensor."""

    def probe(apply, draw):
        logits = some_logits(draw, 4, 9)
        before = logits.clone()
        apply(logits, 0.5)
        if torch.equal(logits, before):
            result = apply(logits, 1.0)
            if isinstance(result, torch.Tensor) and _share_memory(result, logits):
                raise Fault("At temperature 1 your function returns the caller's own tensor, not new logits.")
        return {"input 0": logits}

    return renamed(aspects.input_left_alone(points, four_rows()), aspects.LEFT_ALONE, probe=probe)


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def negative(apply: Answer, draw: Draw) -> torch.Tensor:
    """A negative temperature is refused."""
    try:
        apply(some_logits(draw, 4, 9), -0.5)
    except ValueError:
        return torch.tensor([1])
    raise Fault("A negative temperature would turn the ranking upside down. Raise a ValueError for it.")


apply_temperature = exercise(
    "apply_temperature",
    stars=1,
    minutes=6,
    aspects=(
        Aspect("values", 0.5, temperatures),
        gradient(0.5, given=four_rows(0.7), via=heated, also={"at temperature 1.6": four_rows(1.6)}),
        Aspect("temperature 0", 0.5, greedy_rows),
        Aspect("a negative temperature", 0.5, negative, side=True),
        new_logits(0.5),
        any_device(0.5, given=four_rows(0)),
    ),
    forbidden={"finished_temperature": FINISHED},
)

SHAPES = ((2, 4, 9), (1, 9), (9,))


def many_logits(draw: Draw) -> tuple[torch.Tensor, float]:
    """Logits (2, 3, 4, n) far from 0, n from 120 to 139, of which some 70 stay, and p.

    p is the one of fifty that is farthest from all sums of probabilities, so that no rounding decides what stays.
    """
    logits = draw.normal(2, 3, 4, draw.number(120, 140))
    sums = logits.softmax(dim=-1).sort(dim=-1, descending=True).values.cumsum(dim=-1)
    ps = draw.uniform(0.85, 0.95, 50)
    apart = (sums.unsqueeze(-1) - ps).abs().flatten(0, -2).amin(dim=0)
    return logits + draw.uniform(-20, 20, 2, 3, 4, 1), ps[apart.argmax()].item()


def kept(*ps: float) -> Probe:
    """The logits that the filter leaves, for several p and logits of several shapes."""

    def probe(keep, draw):
        results = {}
        for shape in SHAPES:
            logits = some_logits(draw, *shape)
            for p in ps:
                results |= filtered(keep, logits, p, f"for p = {p:g} and logits of shape {shape}")
        larger = filtered(keep, *many_logits(draw.named(LARGER)), "")
        return results | {f"{LARGER}, {name.strip()}": projected(value, draw) for name, value in larger.items()}

    return probe


def extreme_p(keep: Answer, draw: Draw) -> dict[str, Any]:
    """A p below every probability, and p = 1 for eight equal logits, whose probabilities are exact sums of 1/8.

    And p = 1 where one logit is so far above the others that the probabilities up to it add up to 1 in 32 bits.
    """
    equal = draw.normal(3, 1).expand(3, 8).contiguous()
    peaked = some_logits(draw, 4, 5)
    peaked = peaked.scatter_add(-1, peaked.argmax(dim=-1, keepdim=True), torch.full((4, 1), 20.0, device=peaked.device))
    return (
        filtered(keep, some_logits(draw, 4, 9), 0.02, "for p = 0.02")
        | filtered(keep, equal, 1.0, "for p = 1 and eight equal logits")
        | filtered(keep, peaked, 1.0, "for p = 1 and one large logit")
    )


def after_top_k(keep: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Four of nine logits are −∞ already."""
    logits = some_logits(draw, 4, 9)
    lowest = logits.topk(5, dim=-1).values[..., -1:]
    logits = logits.masked_fill(logits < lowest, -torch.inf)
    return {name: part for p in (0.5, 0.9) for name, part in filtered(keep, logits, p, f"for p = {p:g}").items()}


keep_top_p = exercise(
    "keep_top_p",
    stars=3,
    minutes=12,
    given=four_rows(0.7),
    aspects=(
        Aspect("values", 1.5, kept(0.55, 0.8)),
        gradient(0.5, given=four_rows(), via=to_draw_from(0.7)),
        Aspect("a small p, and p = 1", 0.5, extreme_p, axes="row token"),
        Aspect("after top-k", 0.5, after_top_k, axes="row token"),
        input_left_alone(0.5),
        any_device(0.5),
    ),
    forbidden={"finished_top_p": FINISHED},
)

# --------------------------------------------------------------------------- models with known answers


class Chain(torch.nn.Module):
    """A stand-in for a trained model.

    What it predicts depends on the token at a position, on the first token of the window, and on the place in it.

    draw: where its tables come from. n: tokens. t_max: longest window; longer ones are refused, as by any
    model with learned positions. While it is in training mode its predictions are others, and `modes`
    keeps what mode it was called in.
    """

    now: torch.Tensor
    first: torch.Tensor
    place: torch.Tensor
    training_only: torch.Tensor

    def __init__(self, draw: Draw, n: int, t_max: int, std: float = 1.0):
        super().__init__()
        self.t_max = int(t_max)
        self.modes: list[bool] = []
        for name, rows in (("now", n), ("first", n), ("place", t_max), ("training_only", 1)):
            self.register_buffer(name, draw.named(name).normal(rows, n, std=std))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        t = ids.shape[1]
        if self.t_max < t:
            raise ValueError(
                f"A window of {t} tokens is longer than t_max = {self.t_max}, and the model has no positions for it."
            )
        self.modes.append(self.training)
        note_call(self.training, t)
        logits = F.embedding(ids, self.now) + F.embedding(ids[:, :1], self.first) + self.place[:t]
        return logits + self.training_only if self.training else logits


class Always(torch.nn.Module):
    """A stand-in that predicts the same at the end of every window, and the reverse of it everywhere else.

    chances: (n,), what comes next.
    """

    t_max = 6
    logits: torch.Tensor

    def __init__(self, chances: torch.Tensor):
        super().__init__()
        self.register_buffer("logits", chances.log())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        b, t = ids.shape
        logits = self.logits.flip(0).repeat(b, t, 1)
        logits[:, -1] = self.logits
        return logits


# ---------------------------------------------------------------------------------------------------- generate

PROMPTS = case(ints(3, 4, below=7))


def generating(answer: Answer, draw: Draw) -> Callable:
    """Greedy, so that nothing is left to chance; prompts of 4 tokens, then windows of up to 6."""
    return lambda prompt, n=7, t_max=6, count=11: answer(
        Chain(draw, n, t_max).to(prompt.device).eval(), prompt, count, temperature=0
    )


def drawn_tokens(
    generate: Callable, model: torch.nn.Module, prompt: torch.Tensor, count: int, **options: object
) -> torch.Tensor:
    """The tokens (b, count) that the student's function drew, their shape compared."""
    tokens = generate(model, prompt, count, **options)
    if not isinstance(tokens, torch.Tensor) or tokens.shape != (len(prompt), count):
        shown = f"a tensor of shape {tuple(tokens.shape)}" if isinstance(tokens, torch.Tensor) else kind_of(tokens)
        raise Fault(
            f"For {len(prompt)} prompts and count = {count} the result has to be of shape {(len(prompt), count)}; yours"
            f" is {shown}."
        )
    return tokens.long()


def frequencies(generate: Answer, draw: Draw, rows: int = 6000, n: int = 5, temperature: float = 0.8) -> torch.Tensor:
    """Are the pairs of two drawn tokens as frequent as the model says? (n, n) booleans, within five standard errors."""
    model, prompt = Chain(draw, n, 4, std=0.6).to(draw.device).eval(), draw.integers(0, n, 1, 4)
    generator = torch.Generator(draw.device).manual_seed(draw.number(0, 10**6))
    options = {"temperature": temperature, "generator": generator}
    tokens = drawn_tokens(generate, model, prompt.repeat(rows, 1), 2, **options)
    model.eval()  # in whatever mode it came back
    first = (model(prompt)[0, -1] / temperature).softmax(-1)  # (n,)
    longer = torch.cat([prompt[:, 1:].repeat(n, 1), torch.arange(n, device=draw.device).unsqueeze(1)], dim=1)
    second = (model(longer)[:, -1] / temperature).softmax(-1)  # (n, n)
    counts = (tokens[:, 0] * n + tokens[:, 1]).bincount(minlength=n * n)[: n * n].view(n, n)
    return within(counts, first.unsqueeze(1) * second, rows)


SHARES = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)
SETTINGS: tuple[dict[str, float], ...] = (
    {},
    {"top_k": 3},
    {"top_p": 0.6},
    {"top_k": 2, "top_p": 0.6},
    {"temperature": 2.0, "top_p": 0.6},
    {"temperature": 0.5, "top_p": 0.6},
)


def thousands_of_tokens(generate: Answer, draw: Draw, rows: int = 1000) -> dict[str, torch.Tensor]:
    """The tokens (rows, 2) that are drawn under several settings. Each that may be drawn has a chance of 4 % or more.

    The most probable token and the last token of the prompt differ from setting to setting, in opposite orders, so that
    neither a constant token nor the prompt's last one is always the most probable.
    """
    shares = torch.tensor(SHARES, device=draw.device)[draw.permutation(6)]
    prompt = draw.integers(0, 6, 1, 3)

    def tokens(index: int, options: dict) -> torch.Tensor:
        model = Always(shares.roll(index)).to(draw.device).eval()
        prompts = ((prompt - index) % 6).repeat(rows, 1)
        return drawn_tokens(generate, model, prompts, 2, **options).clamp(-1, 6).to(torch.int8)

    return {
        f"with {', '.join(f'{name}={value:g}' for name, value in options.items()) or 'nothing left out'}": tokens(
            index, options
        )
        for index, options in enumerate(SETTINGS)
    }


def which_come_up(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """Which tokens are drawn at all under each setting: (6,) booleans."""
    return {name: torch.isin(torch.arange(6), tokens) for name, tokens in collected.items()}


def evaluated(points: float, use: Callable[[Answer, torch.nn.Module, Draw], object]) -> Aspect:
    """The model is in evaluation mode while it is used. use: has the answer use a model."""

    def used(answer, draw, training):
        model = Chain(draw, 7, 6).to(draw.device).train(training)
        use(answer, model, draw)
        return model

    return evaluation_mode(points, used)


def seeded_text(generate: Answer, draw: Draw) -> torch.Tensor:
    """Does the generator decide what is drawn?"""
    model, prompt, seed = Chain(draw, 7, 6, std=0.3).to(draw.device).eval(), *PROMPTS(draw), draw.number(0, 10**6)

    def drawn(seed):
        return drawn_tokens(generate, model, prompt, 30, generator=torch.Generator(draw.device).manual_seed(seed))

    first = drawn(seed)
    return torch.tensor([torch.equal(first, drawn(seed)), not torch.equal(first, drawn(seed + 1))])


MAY_BE_DRAWN = (
    "Under some settings tokens are drawn that should be left out, or tokens that may be drawn never come up. Try each"
    " filter alone, both together, and one of them with a temperature; the order is temperature, top-k, top-p."
)
CHANCE = "Tokens do not come up as often as the model's probabilities say, by more than five standard errors."

generate = exercise(
    "generate",
    stars=3,
    minutes=14,
    given=PROMPTS,
    also={
        "with a single prompt": case(ints(1, 4, below=7)),
        "with prompts of a single token": case(ints(2, 1, below=7)),
    },
    larger=case(ints(size(9, 13), size(70, 100), below=80), 80, size(65, 69), size(33, 40)),
    via=generating,
    aspects=(
        values(1.5, name="the most probable", axes="b t"),
        values(
            0.5,
            given=case(ints(2, 9, below=7)),
            name="a long prompt",
            also={"with a prompt as long as the window": case(ints(1, 6, below=7))},
            axes="b t",
        ),
        Aspect("what may be drawn", 1, thousands_of_tokens, axes="token", missed=MAY_BE_DRAWN, reduce=which_come_up),
        Aspect("how often", 0.5, frequencies, side=True, missed=CHANCE),
        evaluated(0.5, lambda generate, model, draw: generate(model, *PROMPTS(draw), 3)),
        Aspect("generator", 0.5, seeded_text, side=True, missed=SEED),
        input_left_alone(0.5),
        any_device(0.5),
    ),
    builds_on=("generator.apply_temperature", "generator.keep_top_k", "generator.keep_top_p"),
)

# ------------------------------------------------------------------------------------------ sliding_window_bits


class UniformGenerator(torch.nn.Module):
    """A stand-in that gives each of 256 bytes the same chance."""

    t_max = 6

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*ids.shape, 256, device=ids.device)


def some_bytes(draw: Draw, length: int) -> torch.Tensor:
    """A text of bytes: (length,), uint8."""
    return draw.integers(0, 7, length).to(torch.uint8)


def on_a_chain(t: int, t_max: int) -> Via:
    """The student's function of a text, on a model with known answers for 7 bytes and in windows of t bytes."""
    return lambda answer, draw: lambda data: answer(Chain(draw, 7, t_max).to(data.device).eval(), data, t)


def bits_of_texts(*sizes: tuple[int, int], t_max: int, larger: bool = False) -> Probe:
    """For several (length, t): a single number may be right by chance. larger: and for one much larger."""

    def probe(answer, draw):
        results = {
            f"for {length} bytes and t = {t}": on_a_chain(t, t_max)(answer, draw)(some_bytes(draw, length))
            for length, t in sizes
        }
        if larger:
            many = draw.named(LARGER)
            t, length = many.number(70, 90), many.number(260, 300)
            results[LARGER] = on_a_chain(t, t_max=t + 1)(answer, many)(some_bytes(many, length))
        return results

    return probe


LONG = ((29, 5), (23, 4), (38, 6), (7, 5), (5, 1), (200, 6))  # the last has more windows than one batch of 64, or three
SHORT = ((5, 6), (6, 6), (7, 6), (2, 3), (2, 1))  # in (2, 1), and in (7, 6), the first window is the whole text
TEXT = case(lambda draw: some_bytes(draw, 29))


def uniform_text(answer: Answer, draw: Draw) -> torch.Tensor:
    """The student's bits for a model that gives each of 256 bytes the same chance: 8."""
    return answer(UniformGenerator().eval(), draw.integers(0, 256, 41).to(torch.uint8), 6)


sliding_window_bits = exercise(
    "sliding_window_bits",
    stars=3,
    minutes=11,
    given=TEXT,
    via=on_a_chain(5, t_max=6),
    aspects=(
        Aspect("values", 2, bits_of_texts(*LONG, t_max=6, larger=True), accepts="number"),
        Aspect("a text no longer than a window", 0.5, bits_of_texts(*SHORT, t_max=6), accepts="number"),
        Aspect(
            "a uniform model",
            0.5,
            uniform_text,
            side=True,
            accepts="number",
            missed="A model that gives each of 256 bytes the same chance needs 8 bits for each.",
        ),
        evaluated(0.5, lambda bits, model, draw: bits(model, *TEXT(draw), 5)),
        any_device(0.5),
    ),
    builds_on=("generator.bits_per_byte",),
)

LESSON = Lesson(
    "09_character_generator",
    "A character generator",
    (
        sample_batch,
        char_transformer,
        apply_temperature,
        keep_top_p,
        generate,
        sliding_window_bits,
    ),
    predictions_of("09_character_generator"),
)
