"""Lesson 9: a character generator."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from helpers.exercises.aspects import (
    Inputs,
    Unmet,
    Via,
    any_device,
    built,
    gradient,
    input_left_alone,
    parameters,
    renamed,
    values,
)
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe

FINISHED = "The finished function is there for the exercise that builds on this one."


def within(counts: torch.Tensor, chances: torch.Tensor, draws: int, errors: int = 5) -> torch.Tensor:
    """Which counts lie within so many standard errors of draws · chances; all do where fewer than 30 are expected.

    counts, chances: of one shape. Returns booleans of that shape.
    """
    expected = draws * chances
    close = (counts - expected).abs() <= errors * (expected * (1 - chances)).sqrt()
    return close | (expected < 30)


# ------------------------------------------------------------------------------------------------- sample_batch


def pair(batch: object) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets, both (batch, t), from whatever came back."""
    if (
        not isinstance(batch, (tuple, list))
        or len(batch) != 2
        or not all(isinstance(part, torch.Tensor) for part in batch)
    ):
        shown = (
            f"a tensor of shape {tuple(batch.shape)}"
            if isinstance(batch, torch.Tensor)
            else f"a {type(batch).__name__}"
        )
        raise Unmet(f"Your function has to return two tensors, `inputs, targets`, in that order; it returns {shown}.")
    return tuple(batch)


def numbered(draw: Draw, length: int) -> torch.Tensor:
    """A text in which no byte comes twice, so that each slice says where it is from."""
    return draw.permutation(250)[:length].to(torch.uint8).cpu()


def only_slice(sample: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """A text of t + 1 bytes has one slice: what comes back is no matter of chance."""
    t = draw.number(5, 9)
    inputs, targets = pair(sample(numbered(draw, t + 1), 3, t))
    return {"inputs": inputs, "targets": targets}


def many_slices(
    sample: Answer, draw: Draw, rows: int = 4000, length: int = 14, t: int = 5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A text, and the inputs and targets (rows, t) that were drawn from it, shapes compared."""
    data = numbered(draw, length)
    inputs, targets = pair(sample(data, rows, t))
    for name, part in (("inputs", inputs), ("targets", targets)):
        if part.shape != (rows, t):
            raise Unmet(
                f"With batch = {rows} and t = {t} your {name} have the shape {tuple(part.shape)}; it has to be"
                f" {(rows, t)}."
            )
    return data, inputs, targets


def kinds_of_slices(sample: Answer, draw: Draw) -> torch.Tensor:
    """Among thousands of rows, each slice that there is comes up, and no other."""
    _, inputs, targets = many_slices(sample, draw)
    return torch.cat([inputs.long(), targets.long()], dim=1).unique(dim=0)


def evenly(sample: Answer, draw: Draw) -> torch.Tensor:
    """Is each start drawn about equally often?"""
    data, inputs, _ = many_slices(sample, draw)
    starts = (inputs[:, :1].long() == data.long()).int().argmax(dim=1)
    counts = starts.bincount(minlength=9)[:9]
    return within(counts, torch.full((9,), 1 / 9), len(starts))


def seeded_batches(sample: Answer, draw: Draw) -> torch.Tensor:
    """Does the generator decide what is drawn?"""
    data, seed = numbered(draw, 200), draw.number(0, 10**6)

    def drawn(seed):
        return pair(sample(data, 8, 6, torch.Generator().manual_seed(seed)))[0]

    first = drawn(seed)
    return torch.tensor([torch.equal(first, drawn(seed)), not torch.equal(first, drawn(seed + 1))])


# ------------------------------------------------------------------------------------------------ bits_per_byte


def some_losses(convert: Answer, draw: Draw) -> dict[str, float | torch.Tensor]:
    """A Python number and a tensor of no axes."""
    return {
        "a number": convert(float(draw.uniform(0.5, 4, 1))),
        "a tensor": convert(draw.uniform(0.5, 4, 1)[0]),
    }


def uniform_loss(convert: Answer, draw: Draw) -> dict[str, float | torch.Tensor]:
    """The loss of a model that gives each of 256 bytes the same chance: logits of zero, or of any other number."""
    targets = draw.integers(0, 256, 40)
    return {
        "from the formula": convert(math.log(256)),
        "from cross-entropy": convert(F.cross_entropy(torch.full((40, 256), -1.5, device=targets.device), targets)),
    }


def several_losses(draw: Draw) -> tuple[torch.Tensor]:
    """Losses (3, 5)."""
    return (draw.uniform(0.5, 4, 3, 5),)


# ---------------------------------------------------------------------------------------------- CharTransformer

# n = 11, e = 8, h = 2, depth = 3, t_max = 9; windows of 5, three of them: no two sizes alike
MODEL = built(11, 8, 2, 3, 9)


def windows(draw: Draw) -> tuple[torch.Tensor]:
    """Three windows of 5 ids: (3, 5)."""
    return (draw.integers(0, 11, 3, 5),)


def longest_windows(draw: Draw) -> tuple[torch.Tensor]:
    """Two windows of 9 ids, as long as there may be: (2, 9)."""
    return (draw.integers(0, 11, 2, 9),)


def longest(answer: Answer, draw: Draw) -> torch.Tensor:
    """What the module says its longest window is."""
    model = MODEL(answer, draw)
    if not hasattr(model, "t_max"):
        raise Unmet(
            "Your module has no attribute `t_max`. Whoever generates with it has to know how much of the text it can"
            " take."
        )
    return torch.tensor(float(model.t_max))


# ------------------------------------------------------------------------------ temperature, top-k and top-p


def log_chances(function: Callable, logits: torch.Tensor, *rest: float) -> torch.Tensor:
    """The logarithms of the probabilities that the new logits mean.

    A constant added to all logits of a row changes nothing.
    """
    result = function(logits.clone(), *rest)
    return (
        result.float().log_softmax(dim=-1)
        if isinstance(result, torch.Tensor) and result.is_floating_point()
        else result
    )


def chances(function: Callable, logits: torch.Tensor, *rest: float) -> torch.Tensor:
    """The probabilities that the new logits mean.

    What is left out has 0, whether it was given −∞ or another number far below.
    """
    result = function(logits.clone(), *rest)
    if isinstance(result, torch.Tensor) and result.shape == logits.shape and result.is_floating_point():
        return result.softmax(dim=-1)
    return result


def some_logits(draw: Draw, *shape: int) -> torch.Tensor:
    """Logits whose sizes differ clearly, in a drawn order: (..., n)."""
    n = shape[-1]
    steps = draw.uniform(0.15, 0.75, *shape).cumsum(dim=-1)
    order = draw.uniform(0, 1, *shape).argsort(dim=-1)
    return steps.gather(-1, order) - draw.uniform(0, n / 2, *shape[:-1], 1)


def four_rows(*rest: float) -> Inputs:
    """Logits (2, 4, 9), and what else the filter takes."""

    def inputs(draw):
        return (some_logits(draw, 2, 4, 9), *rest)

    return inputs


def temperatures(apply: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """What the new logits (4, 9) mean at three temperatures."""
    logits = some_logits(draw, 4, 9)
    return {f"temperature {t:g}": log_chances(apply, logits, t) for t in (0.5, 1.0, 1.7)}


def greedy_rows(apply: Answer, draw: Draw) -> torch.Tensor:
    """The probabilities (4, 9) at temperature 0."""
    return chances(apply, some_logits(draw, 4, 9), 0)


def negative(apply: Answer, draw: Draw) -> torch.Tensor:
    """A negative temperature is refused. A right answer from the same call with a positive one stands beside it."""
    try:
        apply(some_logits(draw, 4, 9), -0.5)
    except ValueError:
        return torch.tensor([1])
    raise Unmet("A negative temperature would turn the ranking upside down. Raise a ValueError for it.")


def kept(*counts: float) -> Probe:
    """Probabilities after the filter, for several settings."""

    def probe(keep, draw):
        logits = some_logits(draw, 2, 4, 9)
        return {f"{count:g}": chances(keep, logits, count) for count in counts}

    return probe


def ties(keep: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Nine logits: two above, three alike at the border, four below.

    Of the five largest the last three are alike, and k is 3 and 4.
    """
    worth = torch.tensor([3.0, 2.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, -1.0], device=draw.device)
    logits = torch.stack([worth[draw.permutation(9)] for _ in range(4)])
    return {f"k = {k}": chances(keep, logits, k) for k in (3, 4)}


def after_top_k(keep: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Four of nine logits are −∞ already."""
    logits = some_logits(draw, 4, 9)
    lowest = logits.topk(5, dim=-1).values[..., -1:]
    logits = logits.masked_fill(logits < lowest, -torch.inf)
    return {f"p = {p:g}": chances(keep, logits, p) for p in (0.5, 0.9)}


# --------------------------------------------------------------------------- models with known answers


class Chain(torch.nn.Module):
    """A stand-in for a trained model.

    What it predicts depends on the token at a position, on the first token of the window, and on the place in it.

    draw: where its tables come from. n: tokens. t_max: longest window; longer ones are refused, as by any
    model with learned positions. While it is in training mode its predictions are others, and `modes`
    keeps what mode it was called in.
    """

    def __init__(self, draw: Draw, n: int, t_max: int, std: float = 1.0):
        super().__init__()
        self.t_max, self.modes = t_max, []
        for name, rows in (("now", n), ("first", n), ("place", t_max), ("training_only", 1)):
            self.register_buffer(name, draw.named(name).normal(rows, n, std=std))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        t = ids.shape[1]
        if self.t_max < t:
            raise ValueError(
                f"A window of {t} tokens is longer than t_max = {self.t_max}, and the model has no positions for it."
            )
        self.modes.append(self.training)
        logits = self.now[ids] + self.first[ids[:, :1]] + self.place[:t]
        return logits + self.training_only if self.training else logits


class Always(torch.nn.Module):
    """A stand-in that predicts the same at the end of every window, and the reverse of it everywhere else.

    chances: (n,), what comes next.
    """

    t_max = 6

    def __init__(self, chances: torch.Tensor):
        super().__init__()
        self.register_buffer("logits", chances.log())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        b, t = ids.shape
        logits = self.logits.flip(0).repeat(b, t, 1)
        logits[:, -1] = self.logits
        return logits


def generating(answer: Answer, draw: Draw) -> Callable:
    """Greedy, so that nothing is left to chance; prompts of 4 tokens, then windows of up to 6."""
    return lambda prompt: answer(Chain(draw, 7, 6).to(prompt.device).eval(), prompt, 11, temperature=0)


def a_prompt(draw: Draw) -> tuple[torch.Tensor]:
    """Three prompts of 4 tokens: (3, 4)."""
    return (draw.integers(0, 7, 3, 4),)


def a_long_prompt(draw: Draw) -> tuple[torch.Tensor]:
    """Two prompts of 9 tokens, longer than the window: (2, 9)."""
    return (draw.integers(0, 7, 2, 9),)


def drawn_tokens(
    generate: Callable, model: torch.nn.Module, prompt: torch.Tensor, count: int, **options: object
) -> torch.Tensor:
    """The tokens (b, count) that the student's function drew, their shape compared."""
    tokens = generate(model, prompt, count, **options)
    if not isinstance(tokens, torch.Tensor) or tokens.shape != (len(prompt), count):
        shown = (
            f"a tensor of shape {tuple(tokens.shape)}"
            if isinstance(tokens, torch.Tensor)
            else f"a {type(tokens).__name__}"
        )
        raise Unmet(
            f"For {len(prompt)} prompts and count = {count}, what was drawn has the shape {(len(prompt), count)}; yours"
            f" is {shown}."
        )
    return tokens.long()


def frequencies(generate: Answer, draw: Draw, rows: int = 6000, n: int = 5, temperature: float = 0.8) -> torch.Tensor:
    """Are the pairs of two drawn tokens as frequent as the model says? (n, n) booleans, within five standard errors."""
    model, prompt = Chain(draw, n, 6, std=0.6).to(draw.device).eval(), draw.integers(0, n, 1, 3)
    tokens = drawn_tokens(generate, model, prompt.repeat(rows, 1), 2, temperature=temperature)
    first = (model(prompt)[0, -1] / temperature).softmax(-1)  # (n,)
    longer = torch.cat([prompt.repeat(n, 1), torch.arange(n, device=draw.device).unsqueeze(1)], dim=1)
    second = (model(longer)[:, -1] / temperature).softmax(-1)  # (n, n)
    counts = (tokens[:, 0] * n + tokens[:, 1]).bincount(minlength=n * n)[: n * n].view(n, n)
    return within(counts, first.unsqueeze(1) * second, rows)


SHARES = (0.4, 0.25, 0.15, 0.1, 0.06, 0.04)
SETTINGS = {
    "nothing left out": {},
    "top_k=3": {"top_k": 3},
    "top_p=0.6": {"top_p": 0.6},
    "top_k=2, top_p=0.6": {"top_k": 2, "top_p": 0.6},
    "temperature=2, top_p=0.6": {"temperature": 2.0, "top_p": 0.6},
    "temperature=0.5, top_p=0.6": {"temperature": 0.5, "top_p": 0.6},
}


def which_come_up(generate: Answer, draw: Draw, rows: int = 2000) -> dict[str, torch.Tensor]:
    """Which tokens are drawn at all, under several settings. What may be drawn has a chance of 4 % or more."""
    shares = torch.tensor(SHARES, device=draw.device)[draw.permutation(6)]
    model, prompt = Always(shares).to(draw.device).eval(), draw.integers(0, 6, 1, 3).repeat(rows, 1)
    return {
        name: drawn_tokens(generate, model, prompt, 1, **options).flatten().bincount(minlength=6) > 0
        for name, options in SETTINGS.items()
    }


def modes(call: Callable) -> Probe:
    """Was the model in training mode while it was used, and is it afterwards?

    For a model that comes in training mode, and one that does not.
    """

    def probe(answer, draw):
        told = {}
        for training in (True, False):
            model = Chain(draw, 7, 6).to(draw.device).train(training)
            call(answer, model, draw)
            if not model.modes:
                raise Unmet("Your function never calls the model.")
            told[f"given in {'training' if training else 'evaluation'} mode"] = torch.tensor(
                [any(model.modes), model.training]
            )
        return told

    return probe


def seeded_text(generate: Answer, draw: Draw) -> torch.Tensor:
    """Does the generator decide what is drawn?"""
    model, prompt, seed = Chain(draw, 7, 6, std=0.3).to(draw.device).eval(), *a_prompt(draw), draw.number(0, 10**6)

    def drawn(seed):
        return drawn_tokens(generate, model, prompt, 30, generator=torch.Generator(draw.device).manual_seed(seed))

    first = drawn(seed)
    return torch.tensor([torch.equal(first, drawn(seed)), not torch.equal(first, drawn(seed + 1))])


# ------------------------------------------------------------------------------------------ sliding_window_bits


def sliding(t: int) -> Via:
    """The student's function on a model with known answers, in windows of t."""

    def via(answer, draw):
        return lambda data: answer(Chain(draw, 7, 6).to(data.device).eval(), data, t)

    return via


def long_texts(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Three texts with windows of three lengths: one number alone may be like another one by chance."""
    return {
        f"{length} bytes, t = {t}": sliding(t)(answer, draw)(draw.integers(0, 7, length))
        for length, t in ((29, 5), (23, 4), (38, 6))
    }


def a_text(draw: Draw) -> tuple[torch.Tensor]:
    """A text of 29 tokens: (29,)."""
    return (draw.integers(0, 7, 29),)


def a_short_text(draw: Draw) -> tuple[torch.Tensor]:
    """Shorter than the window: every byte is predicted from all that there is before it."""
    return (draw.integers(0, 7, 5),)


class Uniform(torch.nn.Module):
    """A stand-in that gives each of 256 bytes the same chance."""

    t_max = 6

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*ids.shape, 256, device=ids.device)


def uniform_text(answer: Answer, draw: Draw) -> torch.Tensor:
    """What the student's function says of a model that knows nothing: 8 bits a byte."""
    return answer(Uniform().eval(), draw.integers(0, 256, 41), 6)


EVALUATION = (
    "The model has to be in evaluation mode while it is used, and afterwards in the mode it came in: model.training"
    " says which that is."
)
CHANCE = "What is drawn does not come up as often as the model says, by more than five standard errors."
SEED = (
    "The generator has to decide what is drawn: the same seed, the same draw; another seed, another draw. Hand it on to"
    " the function that draws."
)


LESSON = Lesson(
    "09_character_generator",
    "Write like the text you read",
    minutes=90,
    exercises=(
        Exercise(
            "sample_batch",
            stars=1,
            minutes=7,
            aspects=(
                Aspect("a text of one slice", 0.5, only_slice, axes="b t", dtype=True),
                Aspect("every slice", 1, kinds_of_slices, axes="slice byte"),
                Aspect(
                    "equally often",
                    0.5,
                    evenly,
                    side=True,
                    missed="Some starts come up more often than others, by more than five standard errors.",
                ),
                Aspect("generator", 0.5, seeded_batches, side=True, missed=SEED),
            ),
        ),
        Exercise(
            "bits_per_byte",
            stars=1,
            minutes=3,
            aspects=(
                Aspect("values", 1, some_losses, accepts="number"),
                Aspect(
                    "a uniform model",
                    0.5,
                    uniform_loss,
                    side=True,
                    accepts="number",
                    rtol=1e-6,
                    missed="A model that gives each of 256 bytes the same chance needs 8 bits for each.",
                ),
                gradient(0.5, several_losses, name="a tensor of losses"),
            ),
        ),
        Exercise(
            "CharTransformer",
            stars=2,
            minutes=10,
            aspects=(
                values(1.5, windows, via=MODEL, axes="b t n", picture=True),
                values(0.5, longest_windows, name="the longest window", via=MODEL, axes="b t n"),
                parameters(1, via=MODEL),
                Aspect("t_max", 0.5, longest, side=True),
                any_device(0.5, windows, via=MODEL),
            ),
        ),
        Exercise(
            "apply_temperature",
            stars=1,
            minutes=6,
            aspects=(
                Aspect("values", 1, temperatures, axes="row token"),
                Aspect("temperature 0", 0.5, greedy_rows, axes="row token"),
                Aspect("a negative temperature", 0.5, negative, side=True),
                input_left_alone(0.5, four_rows(0.5)),
                any_device(0.5, four_rows(0)),
            ),
            forbidden={"finished_temperature": FINISHED},
        ),
        Exercise(
            "keep_top_k",
            stars=2,
            minutes=8,
            aspects=(
                Aspect("values", 1, kept(1, 4), axes="b row token"),
                Aspect("ties", 0.5, ties, axes="row token"),
                Aspect("more than there are", 0.5, kept(9, 50), axes="b row token"),
                input_left_alone(0.5, four_rows(4)),
                any_device(0.5, four_rows(4)),
            ),
            forbidden={"finished_top_k": FINISHED},
        ),
        Exercise(
            "keep_top_p",
            stars=3,
            minutes=12,
            aspects=(
                Aspect("values", 1.5, kept(0.55, 0.8), axes="b row token"),
                Aspect("a small p", 1, kept(0.02), axes="b row token"),
                Aspect("after top-k", 0.5, after_top_k, axes="row token"),
                input_left_alone(0.5, four_rows(0.7)),
                any_device(0.5, four_rows(0.7)),
            ),
            forbidden={"finished_top_p": FINISHED},
        ),
        Exercise(
            "generate",
            stars=3,
            minutes=14,
            aspects=(
                renamed(values(1.5, a_prompt, via=generating, axes="b t"), "the most probable"),
                renamed(values(0.5, a_long_prompt, via=generating, axes="b t"), "a long prompt"),
                Aspect("what may be drawn", 1, which_come_up, axes="token"),
                Aspect("how often", 0.5, frequencies, side=True, missed=CHANCE),
                Aspect(
                    "evaluation mode",
                    0.5,
                    modes(lambda g, model, draw: g(model, *a_prompt(draw), 3)),
                    side=True,
                    missed=EVALUATION,
                ),
                Aspect("generator", 0.5, seeded_text, side=True, missed=SEED),
                input_left_alone(0.5, a_prompt, via=generating),
                any_device(0.5, a_prompt, via=generating),
            ),
        ),
        Exercise(
            "sliding_window_bits",
            stars=3,
            minutes=11,
            aspects=(
                Aspect("values", 2, long_texts, accepts="number"),
                values(0.5, a_short_text, name="a text shorter than the window", via=sliding(6), accepts="number"),
                Aspect(
                    "a uniform model",
                    0.5,
                    uniform_text,
                    side=True,
                    accepts="number",
                    missed="A model that gives each of 256 bytes the same chance needs 8 bits for each.",
                ),
                Aspect(
                    "evaluation mode",
                    0.5,
                    modes(lambda s, model, draw: s(model, *a_text(draw), 5)),
                    side=True,
                    missed=EVALUATION,
                ),
                any_device(0.5, a_text, via=sliding(5)),
            ),
        ),
    ),
)
