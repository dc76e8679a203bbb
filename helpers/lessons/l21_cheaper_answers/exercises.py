"""Lesson 21: what an answer costs: fewer bits for each weight, fewer passes for each token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises import aspects
from helpers.exercises.aspects import Fault, Inputs
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Collected, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    any_device,
    case,
    exercise,
    input_left_alone,
    values,
    with_larger,
)

# ---------------------------------------------------------------------------------------------------- quantisation


def near_levels(draw: Draw, rows: tuple[int, ...], groups: int, size: int, bits: int) -> torch.Tensor:
    """Numbers (*rows, groups·size) that lie within 0.4 of a level of their group, so that every style rounds alike.

    In each group one number is the largest level, of either sign.
    """
    most = 2 ** (bits - 1) - 1
    shape = (*rows, groups, size)
    levels = draw.integers(-most + 1, most, *shape) if most > 1 else torch.zeros(shape, dtype=torch.int64)
    x = levels + draw.uniform(-0.4, 0.4, *shape)
    sign = 2.0 * draw.integers(0, 2, *rows, groups, 1) - 1
    x = x.scatter(-1, draw.integers(0, size, *rows, groups, 1), most * sign)
    return (x * draw.uniform(0.01, 0.3, *rows, groups, 1)).flatten(-2)


def to_quantize(rows: tuple[int, ...], groups: int, size: int, bits: int, whole: bool = False) -> Inputs:
    """w, bits and the size of a group; `whole`: the group is left out, and a row is one."""

    def inputs(draw):
        w = near_levels(draw, rows, groups, size, bits)
        return (w, bits) if whole else (w, bits, size)

    return inputs


def with_zeros(draw: Draw) -> tuple[torch.Tensor, int, int]:
    """The second group of one row is all zeros."""
    w = near_levels(draw, (3,), 3, 4, 4)
    w[draw.number(0, 3), 4:8] = 0.0
    return w, 4, 4


def large_to_quantize(draw: Draw) -> tuple[torch.Tensor, int, int]:
    """More and longer rows."""
    size, bits = draw.number(17, 33), draw.number(3, 8)
    return near_levels(draw, (draw.number(30, 40),), draw.number(5, 9), size, bits), bits, size


ROUNDED = (
    "Try it by hand: bits = 4 and one row (0.7, −0.32, 0.11, 0). The largest magnitude, 0.7, becomes 7, so the scale is"
    " 0.1, and the integers are 7, −3, 1, 0."
)

quantize = exercise(
    "quantize",
    stars=2,
    minutes=9,
    given=to_quantize((5,), 3, 4, 4),
    also={
        "with a scale a row": to_quantize((4,), 1, 7, 4, whole=True),
        "in 8 bits": to_quantize((3,), 2, 5, 8),
        "in 2 bits": to_quantize((3,), 2, 5, 2),
        "with groups of one": to_quantize((2,), 6, 1, 3),
        "with two leading axes": to_quantize((2, 3), 2, 4, 5),
        "with a scale a row and two leading axes": to_quantize((2, 3), 1, 5, 4, whole=True),
        "with a group of zeros": with_zeros,
        "with a single row": to_quantize((1,), 2, 6, 6),
    },
    larger=large_to_quantize,
    returns=("integers", "scales"),
    aspects=(
        values(2, of="integers", axes="o i", dtype=True, missed=ROUNDED),
        values(1, of="scales", axes="o groups", dtype=True, missed=ROUNDED),
        input_left_alone(0.5),
        any_device(0.5, via=lambda answer, draw: lambda *a: torch.cat([part.flatten() for part in answer(*a)])),
    ),
)


def nibbles(*shape: int) -> Inputs:
    """Integers of 4 bits."""
    return lambda draw: (draw.integers(-8, 8, *shape).to(torch.int8),)


def large_nibbles(draw: Draw) -> tuple[torch.Tensor]:
    """More of them, on three axes."""
    shape = draw.number(3, 5), draw.number(20, 30), 2 * draw.number(30, 50)
    return (draw.integers(-8, 8, *shape).to(torch.int8),)


pack_nibbles = exercise(
    "pack_nibbles",
    stars=2,
    minutes=6,
    given=nibbles(4, 6),
    also={
        "of one row": nibbles(8),
        "with a single pair": nibbles(1, 2),
        "with three axes": nibbles(2, 3, 4),
        "that is empty": case(lambda draw: torch.zeros(3, 0, dtype=torch.int8)),
    },
    larger=large_nibbles,
    aspects=(
        values(
            2,
            axes="o pairs",
            dtype=True,
            missed=(
                "Try one pair by hand. −3 is 1101 in four bits and 5 is 0101. The first goes into the low half: 0101"
                " 1101, which is 93."
            ),
        ),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------ products of integers


def for_linear(front: tuple[int, ...], o: int, i: int) -> Inputs:
    """x (*front, i), and integers (o, i) with scales (o, 1)."""

    def inputs(draw):
        x = near_levels(draw, front, 1, i, 8)
        return x, draw.integers(-127, 128, o, i).to(torch.int8), draw.uniform(0.01, 0.1, o, 1)

    return inputs


def zero_vector(draw: Draw) -> tuple[torch.Tensor, ...]:
    """One vector of x is all zeros."""
    x, q, scales = for_linear((4,), 3, 6)(draw)
    x[draw.number(0, 4)] = 0.0
    return x, q, scales


def in_double(draw: Draw) -> tuple[torch.Tensor, ...]:
    """The same in 64 bits."""
    x, q, scales = for_linear((3,), 4, 7)(draw)
    return x.double(), q, scales.double()


def large_for_linear(draw: Draw) -> tuple[torch.Tensor, ...]:
    """Longer vectors, more of them."""
    return for_linear((3, draw.number(20, 30)), draw.number(40, 60), draw.number(200, 300))(draw)


int8_linear = exercise(
    "int8_linear",
    stars=2,
    minutes=7,
    builds_on=("quantized.quantize",),
    given=for_linear((2, 3), 4, 6),
    also={
        "of one vector": for_linear((), 3, 5),
        "with a batch of one": for_linear((1, 1), 5, 8),
        "of a matrix": for_linear((4,), 3, 7),
        "with a vector of zeros": zero_vector,
        "in double precision": in_double,
    },
    larger=large_for_linear,
    aspects=(
        values(
            2,
            axes="b t o",
            dtype=True,
            missed=(
                "Try one number by hand, i = o = 1: x = 2.54 has the scale 0.02 and the integer 127. With the weight 50"
                " and a scale of 0.1, the product of integers is 6,350, and the output 6,350 · 0.02 · 0.1 = 12.7."
            ),
        ),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)


def with_features(front: tuple[int, ...], o: int, i: int, threshold: float, large: int, most: int = 20) -> Inputs:
    """x and w of a mixed layer: `large` of the features hold one outlier each, of either sign, in a drawn vector.

    An outlier is 2 to most + 1 times as large as the threshold.
    """

    def inputs(draw):
        x = near_levels(draw, front, 1, i, 8)
        x = x / x.abs().amax(dim=-1, keepdim=True) * 0.9 * threshold
        w = near_levels(draw, (o,), 1, i, 8)
        flat = x.view(-1, i)
        for feature in draw.permutation(i)[:large].tolist():
            row = draw.number(0, len(flat))
            flat[row, feature] = (2 * draw.number(0, 2) - 1) * threshold * (2.0 + draw.number(0, most))
        # an outlier leaves its vector: what remains has its largest number elsewhere, and is near levels of its own
        for row in range(len(flat)):
            kept = (flat.abs() < threshold).all(dim=0).nonzero().flatten()
            if len(kept):
                flat[row, kept] = near_levels(draw, (), 1, len(kept), 8) * 0.02  # all below 1
        for row in range(o):
            kept = (flat.abs() < threshold).all(dim=0).nonzero().flatten()
            if len(kept):
                w[row, kept] = near_levels(draw, (), 1, len(kept), 8)
        return x, w / 100, threshold

    return inputs


def default_threshold(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same without a threshold."""
    return with_features((5,), 4, 9, 6.0, 2)(draw)[:2]


def at_the_threshold(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, float]:
    """The outlier is exactly as large as the threshold, and negative."""
    x, w, threshold = with_features((4,), 3, 8, 8.0, 1)(draw)
    x[x.abs() >= threshold] = -threshold
    return x, w, threshold


def large_with_features(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, float]:
    """More vectors and features."""
    return with_features((3, draw.number(9, 13)), draw.number(20, 30), draw.number(60, 90), 7.0, 5)(draw)


mixed_linear = exercise(
    "mixed_linear",
    stars=2,
    minutes=8,
    builds_on=("quantized.quantize", "quantized.int8_linear"),
    given=with_features((2, 3), 4, 7, 5.0, 2),
    also={
        "with the threshold left out": default_threshold,
        "with an outlier exactly at the threshold": at_the_threshold,
        "with a low threshold": with_features((4,), 3, 8, 2.0, 2, most=1),
        "without outliers": with_features((4,), 3, 6, 6.0, 0),
        "with outliers in every feature": with_features((9,), 3, 4, 5.0, 4),
        "with a batch of one": with_features((1, 2), 3, 8, 4.0, 1),
        "of one vector": with_features((), 3, 8, 5.0, 2),
    },
    larger=large_with_features,
    aspects=(
        values(
            3,
            axes="b t o",
            missed=(
                "Compare with x @ w.T: your result should be closer to it than int8_linear's. Which features hold a"
                " number of magnitude `threshold` or more in any vector? Those, in all vectors, are multiplied exactly."
            ),
        ),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------------- the cache


def a_cache(bits: int, *windows: str) -> Inputs:
    """Arguments of `cache_bytes`: t, groups, d, a list of windows ("all", "short", "long") and the bits."""

    def inputs(draw):
        t, groups, d = draw.number(300, 900), draw.number(2, 9), 8 * draw.number(3, 9)
        sizes = {"all": None, "short": draw.number(20, 200), "long": draw.number(1000, 2000)}
        return t, groups, d, [sizes[each] for each in windows], bits

    return inputs


def default_bits(draw: Draw) -> tuple:
    """The same without the bits."""
    return a_cache(16, "all", "short", "short")(draw)[:4]


def long_chat(draw: Draw) -> tuple:
    """Many layers, many positions."""
    t, window = draw.number(10**6, 2 * 10**6), draw.number(1000, 4000)
    windows = [None if draw.number(0, 4) == 0 else window for _ in range(draw.number(60, 90))]
    return t, draw.number(8, 17), 128, windows, 8


def exactly_filled(draw: Draw) -> tuple:
    """A window as long as the text."""
    t = draw.number(40, 90)
    return t, 2, 16, [t, None, t - 1], 16


cache_bytes = exercise(
    "cache_bytes",
    stars=1,
    minutes=4,
    given=a_cache(16, "all", "short", "all"),
    also={
        "with the bits left out": default_bits,
        "with 8 bits": a_cache(8, "all", "all", "short"),
        "with 4 bits": a_cache(4, "all", "short"),
        "with a window longer than the text": a_cache(16, "long", "all"),
        "with a window as long as the text": exactly_filled,
        "of one layer": a_cache(16, "all"),
        "after no position": case(0, 4, 16, lambda draw: [None, draw.number(3, 9)], 8),
    },
    larger=long_chat,
    aspects=(
        values(
            2,
            accepts="number",
            missed=(
                "Count by hand: t = 10, groups = 1, d = 4, windows = [None, 3]. The first layer holds 10 positions, the"
                " second 3. Each has a key and a value of 4 numbers: 13 · 2 · 4 · 2 bytes = 208 bytes at 16 bits. At 8"
                " bits it is half of that, and 2 bytes for the scale of each key and each value: 104 + 52."
            ),
        ),
    ),
)

# ----------------------------------------------------------------------------------------------- speculative sampling


def chances(draw: Draw, *shape: int, zeros: bool = True) -> torch.Tensor:
    """Probabilities (*shape), all different, and with `zeros` one of them 0."""
    x = draw.normal(*shape, std=1.5).softmax(dim=-1)
    if zeros:
        x = x.scatter(-1, draw.integers(0, shape[-1], *shape[:-1], 1), 0.0)
    return x / x.sum(dim=-1, keepdim=True)


def two(*shape: int, zeros: bool = True) -> Inputs:
    """Probabilities of the model and of the draft."""
    return lambda draw: (chances(draw, *shape, zeros=zeros), chances(draw, *shape, zeros=zeros))


def equal(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same for both."""
    p = chances(draw, 2, 6)
    return p, p.clone()


def partly_equal(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tokens have exchanged their probabilities; all others are as probable under both."""
    p = chances(draw, 2, 7)
    return p, p[:, [1, 0, *range(2, 7)]]


def certain(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The draft is certain of one token."""
    p = chances(draw, 7, zeros=False)
    return p, torch.nn.functional.one_hot(draw.integers(0, 7), 7).to(p.dtype)


def disjoint(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """No token is possible under both."""
    p, q = chances(draw, 6, zeros=False), chances(draw, 6, zeros=False)
    p[:3], q[3:] = 0.0, 0.0
    return p / p.sum(), q / q.sum()


def large_two(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """A larger vocabulary, more positions."""
    return two(draw.number(9, 15), draw.number(200, 300))(draw)


accept = exercise(
    "accept",
    stars=2,
    minutes=9,
    fixes_bug=True,
    given=two(3, 5),
    also={
        "of one position": two(6),
        "with a batch of one": two(1, 4),
        "of three axes": two(2, 3, 4),
        "where p equals q": equal,
        "where some tokens are as probable under both": partly_equal,
        "where the draft is certain": certain,
        "where no token is possible under both": disjoint,
    },
    larger=large_two,
    returns=("keep", "rest"),
    aspects=(
        values(
            2.5,
            of="rest",
            axes="t n",
            missed=(
                "Try it by hand: p = (0.5, 0.5), q = (0.8, 0.2). Of all drafts 0.8 say token 0, and 5 in 8 of them are"
                " kept: 0.5 in all. Token 1 is always kept: 0.2. What is missing of p, and on which token?"
            ),
        ),
        values(0.5, of="keep", axes="t n", side=True),
        input_left_alone(0.5),
        any_device(0.5, via=lambda answer, draw: lambda p, q: torch.cat(tuple(answer(p, q)), dim=-1)),
    ),
)


class StandIn:
    """A model whose next token depends on the last one: ids (1, t) to logits (1, t, n). It notes how it is called."""

    def __init__(self, logits: torch.Tensor, name: str = "model"):
        self.logits, self.name = logits, name
        self.lengths: list[int] = []

    def __call__(self, ids: Any) -> torch.Tensor:
        if not isinstance(ids, torch.Tensor) or ids.dim() != 2 or len(ids) != 1:
            shape = tuple(ids.shape) if isinstance(ids, torch.Tensor) else type(ids).__name__
            raise Fault(f"The {self.name} reads ids of shape (1, t), and your code gives it {shape}.")
        self.lengths.append(ids.shape[1])
        if len(self.lengths) > 500:
            raise Fault(f"Your code has called the {self.name} 500 times for a few tokens: does its loop end?")
        return self.logits.to(ids.device)[ids]


def certain_models(draw: Draw, n: int, wrong: int) -> tuple[StandIn, StandIn]:
    """Two models that are certain of each next token; the draft errs after `wrong` of the n tokens."""
    order = draw.permutation(n, cycle=True)
    guess = order.clone()
    for token in draw.permutation(n)[:wrong].tolist():
        guess[token] = (order[token] + 1) % n
    logits = [300.0 * torch.nn.functional.one_hot(each, n).float() for each in (order, guess)]
    return StandIn(logits[0]), StandIn(logits[1], "draft")


def written(n: int, wrong: int, t: int, count: int, k: int) -> Callable[[Answer, Draw], torch.Tensor]:
    """The tokens that are written when both models are certain."""

    def run(answer, draw):
        model, draft = certain_models(draw, n, wrong)
        return answer(model, draft, draw.integers(0, n, 1, t), count, k)

    return run


def texts(answer: Answer, draw: Draw) -> dict[str, Any]:
    """The same in several settings."""
    settings = {
        "the text": written(11, 3, 4, 14, 3),
        "with a draft that is always right": written(9, 0, 2, 10, 4),
        "with a draft that is always wrong": written(9, 9, 3, 6, 3),
        "with one drafted token": written(8, 3, 3, 9, 1),
        "one new token": written(8, 2, 3, 1, 5),
        "from one token": written(8, 2, 1, 5, 2),
    }
    return {name: run(answer, draw.named(name)) for name, run in settings.items()}


def long_text(answer: Answer, draw: Draw) -> torch.Tensor:
    """More tokens after a longer prompt, with more drafted at once."""
    n, t = draw.number(60, 90), draw.number(70, 90)
    return written(n, n // 4, t, draw.number(40, 60), draw.number(6, 9))(answer, draw)


def passes(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The lengths of what the large model reads, pass by pass, and how often the draft is called."""
    model, draft = certain_models(draw, 10, 3)
    answer(model, draft, draw.integers(0, 10, 1, 4), 13, 3)
    exact, right = certain_models(draw.named("exact"), 9, 0)
    answer(exact, right, draw.integers(0, 9, 1, 2), 12, 3)
    return {
        "lengths": torch.tensor(model.lengths),
        "calls of the draft": torch.tensor(len(draft.lengths)),
        "lengths where the last round fits": torch.tensor(exact.lengths),
    }


DRAWS, NEAR = 1200, 0.065  # the standard deviation of such a share is 0.014 at most


def uncertain(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities (3, 3) of the next token after each, of a model and of a draft that prefers another token."""
    p = torch.tensor([[0.2, 0.5, 0.3], [0.3, 0.2, 0.5], [0.5, 0.3, 0.2]])[:, draw.permutation(3)]
    q = torch.where(p == 0.2, 0.6, torch.where(p == 0.5, 0.05, 0.35))
    return p, q


def drawn_pairs(answer: Answer, draw: Draw) -> torch.Tensor:
    """Two tokens, many times, (DRAWS, 2), all with one generator."""
    p, q = uncertain(draw)
    generator = torch.Generator().manual_seed(draw.named("seed").number(0, 2**31))
    model, draft = p.log(), q.log()
    rows = []
    for _ in range(DRAWS):
        start = torch.zeros(1, 1, dtype=torch.int64)
        rows.append(answer(StandIn(model), StandIn(draft, "draft"), start, 2, 2, generator))
    if not all(isinstance(row, torch.Tensor) and row.shape == (1, 2) for row in rows):
        raise Fault("Two tokens are asked for, and your function has to return a tensor (1, 2).")
    return torch.cat(rows).clamp(-1, 100).to(torch.int8)


def as_the_model(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """Does each token come as often as under the model (0), too often (1) or too seldom (−1)? First and second (3,)."""
    p, _ = uncertain(draw)
    rows = collected["result"].long()
    if rows.shape != (DRAWS, 2) or rows.min() < 0 or rows.max() > 2:
        raise Fault("What your function returns are not two tokens of the vocabulary.")
    answers = {}
    for place, (name, share) in enumerate({"first": p[0], "second": p[0] @ p}.items()):
        off = torch.bincount(rows[:, place], minlength=3) / DRAWS - share
        answers[f"{name} token, too often (1) or too seldom (−1)"] = (off > NEAR).int() - (off < -NEAR).int()
    return answers


def repeated(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Two calls whose generators have the same seed, and one that goes on with the first."""
    model, draft = draw.normal(12, 12), draw.normal(12, 12)  # many tokens are left when a drafted one is refused
    seed = draw.named("seed").number(0, 2**31)
    one, other = (torch.Generator().manual_seed(seed) for _ in range(2))
    arguments = StandIn(model), StandIn(draft, "draft"), torch.zeros(1, 1, dtype=torch.int64), 60, 3
    return {"first": answer(*arguments, one), "again": answer(*arguments, other), "next": answer(*arguments, one)}


def same_and_new(collected: Collected, draw: Draw) -> dict[str, torch.Tensor]:
    """Is the text the same with the same seed, and another when the generator goes on?"""
    first, again, further = (collected[name] for name in ("first", "again", "next"))
    return {
        "the same seed, the same text?": torch.tensor(int(torch.equal(first, again))),
        "another text when the generator goes on?": torch.tensor(int(not torch.equal(first, further))),
    }


def on_a_device(draw: Draw) -> tuple[torch.Tensor, ...]:
    """A prompt, and the logits of two models."""
    model, draft = certain_models(draw, 8, 3)
    return draw.integers(0, 8, 1, 3), model.logits, draft.logits


def with_models(answer: Answer, draw: Draw) -> Callable:
    """The student's function with two models that are on the prompt's device."""
    return lambda ids, model, draft: answer(lambda x: model[x], lambda x: draft[x], ids, 6, 2)


speculative_generate = exercise(
    "speculative_generate",
    stars=3,
    minutes=16,
    builds_on=("speculative.accept",),
    aspects=(
        Aspect("tokens", 2.5, with_larger(texts, long_text), axes="b count", dtype=True),
        Aspect(
            "passes",
            1,
            passes,
            side=True,
            missed=(
                "Each round, the draft is called k times and the model once, on everything so far and all k drafted"
                " tokens. The next round begins after the last token that was kept or drawn."
            ),
        ),
        Aspect(
            "distribution",
            1.5,
            drawn_pairs,
            side=True,
            reduce=as_the_model,
            missed=(
                "Your tokens are not distributed as the model's. For each drafted token, in order: keep it with its"
                " chance `keep`; at the first refusal draw from `rest` of that position, and end the round."
            ),
        ),
        Aspect("generator", 0.5, repeated, side=True, reduce=same_and_new),
        aspects.any_device(0.5, on_a_device, via=with_models),
    ),
)

LESSON = Lesson(
    "21_cheaper_answers",
    "Cheaper answers",
    (quantize, int8_linear, mixed_linear, cache_bytes, accept, speculative_generate, pack_nibbles),
    predictions_of("21_cheaper_answers"),
)
