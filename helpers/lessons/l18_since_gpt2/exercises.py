"""Lesson 18: what has changed since GPT-2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from helpers.exercises.aspects import LARGER, Fault, Via, built, fill, kind_of, together
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import ATTENTION_OPERATORS, Answer, Aspect, Kind, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    any_device,
    case,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    ints,
    module,
    normal,
    one_of,
    parameters,
    size,
    values,
)

FINISHED = "The finished part is there for the exercises that build on this one; write it here."
READY = "It is the very thing that this exercise asks for; write it here."
OF_ANY_SIZE = module(lambda x, *sizes: ((x.shape[-1], *sizes), (x,)))

# ------------------------------------------------------------------------------------------------------ RMSNorm

NORM = built(6)
HALF, COARSE = torch.float16, 2e-3  # how far two right answers in float16 may be apart, which round in another order


def in_other_types(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The student's norm on float16 (some of it with squares that float16 cannot hold) and float64."""

    def normed(case: str, std: float, x_type: torch.dtype, weight_type: torch.dtype) -> torch.Tensor:
        return NORM(answer, draw).to(weight_type)(draw.named(case).normal(3, 4, 6, std=std).to(x_type))

    return {
        "for ordinary numbers": normed("ordinary numbers", 2.0, HALF, HALF),
        "for large ones": normed("large ones", 600.0, HALF, HALF),
        "with a weight in float32": normed("weight in float32", 2.0, HALF, torch.float32),
        "for x in float64": normed("float64", 2.0, torch.float64, torch.float64),
    }


rms_norm = exercise(
    "RMSNorm",
    stars=1,
    minutes=5,
    fixes_bug=True,
    forbidden={"finished_norm": FINISHED},
    by_hand=READY,
    given=case(normal(2, 3, 6, std=3.0)),
    also={
        "with a batch of one": case(normal(1, 4, 6)),
        "with one position": case(normal(2, 1, 6)),
        "for a single vector, of small numbers": case(normal(6, std=0.01)),
    },
    larger=case(heavy(5, size(9, 16), 3, size(24, 48))),
    via=OF_ANY_SIZE,
    aspects=(
        values(1.25, axes="b t e", picture=True),
        values(
            0.5,
            given=case(normal(2, 3, 10, std=0.5), 0.5),
            name="another epsilon",
            also={"for a vector of zeros": case(lambda draw: torch.zeros(1, 2, 10, device=draw.device), 0.5)},
            axes="b t e",
        ),
        Aspect("the type of x", 0.5, in_other_types, axes="b t e", rtol=COARSE, atol=COARSE, dtype=True),
        gradient(0.25, given=case(normal(2, 3, 6)), via=NORM, weights=True),
        input_left_alone(0.25, given=case(normal(2, 3, 6))),
        any_device(0.25, given=case(normal(2, 3, 6)), via=NORM),
    ),
)

# ------------------------------------------------------------------------------------------------------- SwiGLU

swiglu = exercise(
    "SwiGLU",
    stars=1,
    minutes=4,
    answered_by=("llama.SwiGLU",),
    given=case(normal(2, 3, 6), 10),
    also={
        "with a batch of one": case(normal(1, 2, 6), 10),
        "with one position": case(normal(3, 1, 6), 10),
        "for large numbers": case(normal(2, 2, 6, std=20.0), 10),
    },
    larger=case(heavy(5, size(9, 16), 3, size(24, 48)), size(49, 80)),
    via=OF_ANY_SIZE,
    aspects=(
        values(0.75, axes="b t e", picture=True),
        gradient(0.5, given=case(normal(2, 3, 8)), via=built(8, 3), weights=True),
        parameters(0.25, via=built(8, 3)),
        input_left_alone(0.25),
        any_device(0.25, given=case(normal(2, 3, 8)), via=built(8, 3)),
    ),
)

# ----------------------------------------------------------------------------------------- GroupedQueryAttention

ATTENTION = built(24, 4, 2)  # e = 24 in 4 heads of width 6, 2 groups


def pieces_through(call: Callable, x: torch.Tensor, past: object, cuts: tuple[int, ...]) -> torch.Tensor:
    """What comes out where x (b, t, e) is read in pieces with a cache: (b, t, e)."""
    parts = []
    for piece in x.split(cuts, dim=1):
        part = call(piece, past)
        if not isinstance(part, torch.Tensor):
            raise Fault(f"With a cache your layer has to return a tensor; it returns {kind_of(part)}.")
        parts.append(part)
    return torch.cat(parts, dim=1)


def read_in_pieces(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The student's attention on 6 positions that come in pieces, with a cache."""
    from helpers.parts.gpt2 import LayerCache

    layer, outputs = ATTENTION(answer, draw), {}
    for name, b, cuts in (
        ("in pieces of 4, 1 and 1", 2, (4, 1, 1)),
        ("in pieces of 2 and 4, a batch of one", 1, (2, 4)),
    ):
        outputs[name] = pieces_through(layer, draw.named(name).normal(b, 6, 24), LayerCache(9), cuts)
    return outputs


def cached(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """What the cache holds after 5 positions: keys and values, (b, groups, s, d)."""
    from helpers.parts.gpt2 import LayerCache

    layer, past = ATTENTION(answer, draw), LayerCache(8)
    output = pieces_through(layer, draw.normal(2, 5, 24), past, (3, 2))
    if past.keys is None:
        raise Fault("Your layer was given a cache and put nothing into it: past.append(k, v) does.")
    if torch.equal(output, output[:, :1].expand_as(output)) or not output.isfinite().any():
        raise Fault("Your layer fills the cache and computes nothing from it: its output does not depend on the input.")
    return {"keys": past.keys[:, :, : past.length], "values": past.values[:, :, : past.length]}


def with_and_without_cache(answer: Answer, draw: Draw) -> torch.nn.Module:
    """The student's attention as a module that reads its input at once, and again in pieces with a cache."""
    from helpers.parts.gpt2 import LayerCache

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = ATTENTION(answer, draw)

        def forward(self, x):
            return torch.cat([self.layer(x), pieces_through(self.layer, x, LayerCache(9), (3, 1))])

    return Both()


def another_base(draw: Draw) -> tuple[torch.Tensor, int, int, float]:
    """x (b, t, e), h, the number of groups, and a base of the angles that is not the usual one."""
    return draw.normal(2, 6, 24), 4, 2, float(draw.number(20, 400))


def many_heads(draw: Draw) -> tuple[torch.Tensor, int, int]:
    """x (b, t, e), of many heads and positions, with h and the number of groups."""
    groups, heads_to_a_group = draw.number(3, 5), draw.number(3, 5)
    h = groups * heads_to_a_group
    return draw.heavy(draw.number(4, 6), draw.number(70, 90), h * 4), h, groups


NO_GROUPS = "It knows no groups, and this exercise is there to write them."

grouped_query_attention = exercise(
    "GroupedQueryAttention",
    stars=3,
    minutes=14,
    forbidden={
        "finished_block": "A finished block holds a finished attention; write yours here.",
        "MultiheadAttention": NO_GROUPS,
    },
    by_hand=NO_GROUPS,
    operators=ATTENTION_OPERATORS,
    builds_on=(
        "gpt2.LayerCache",
        "masks.causal_mask",
        "masks.masked_softmax",
        "multi_head.merge_heads",
        "multi_head.split_heads",
        "positions.rotate",
    ),
    given=case(normal(2, 5, 24), 4, 2),
    also={"with a batch of one": case(normal(1, 4, 24), 4, 2), "with one position": case(normal(3, 1, 24), 4, 2)},
    larger=many_heads,
    via=OF_ANY_SIZE,
    aspects=(
        values(1, axes="b t e", picture=True),
        values(0.25, given=case(normal(2, 4, 12), 3, 1), name="a single group", axes="b t e"),
        values(0.25, given=case(normal(2, 4, 24), 6, 2), name="three heads to a group", axes="b t e"),
        values(0.25, given=case(normal(2, 4, 20), 2, 2), name="as many groups as heads", axes="b t e"),
        values(0.5, given=another_base, name="another theta", axes="b t e"),
        Aspect("with a cache", 1, read_in_pieces, axes="b t e"),
        Aspect("what the cache holds", 0.5, cached, axes="b g s d"),
        gradient(0.5, given=case(normal(2, 4, 24)), via=ATTENTION, weights=True),
        parameters(0.25, via=ATTENTION),
        input_left_alone(0.25),
        any_device(0.25, given=case(normal(2, 4, 24)), via=with_and_without_cache),
    ),
)

# --------------------------------------------------------------------------------------------- halves_from_pairs


def many_rows(draw: Draw) -> tuple[torch.Tensor, int]:
    """A weight (h·d, e) for many heads, and h."""
    h, d = draw.number(9, 16), 2 * draw.number(9, 16)
    return draw.heavy(h * d, draw.number(24, 48)), h


halves_from_pairs = exercise(
    "halves_from_pairs",
    stars=3,
    minutes=9,
    given=case(normal(3 * 6, 5), 3),
    also={
        "of two heads, as wide as long": case(normal(2 * 8, 16), 2),
        "of wide heads": case(normal(2 * 10, 3), 2),
        "of heads of width 2": case(normal(3 * 2, 4), 3),
        "of a single column": case(normal(2 * 6, 1), 2),
    },
    larger=many_rows,
    aspects=(
        values(1.5, axes="row e", picture=True),
        values(
            0.5,
            given=case(normal(6, 12), 1),
            name="one head",
            also={"of width 10": case(normal(10, 4), 1)},
            axes="row e",
        ),
        gradient(0.5, given=case(normal(2 * 6, 8), 2)),
        input_left_alone(0.25, given=case(normal(2 * 6, 5), 2)),
        any_device(0.25, given=case(normal(2 * 6, 5), 2)),
    ),
)

# -------------------------------------------------------------------------------------------------------- Llama

APART: dict[str, Any] = {"n": 9, "e": 12, "h": 2, "groups": 1, "depth": 2, "hidden": 10, "epsilon": 0.1}
TIED = {"n": 7, "e": 8, "h": 2, "groups": 2, "depth": 1, "hidden": 6, "epsilon": 0.1, "tied": True}


def config_and_block(sizes: Mapping[str, Any]) -> tuple:
    """What a model of these sizes is made of: its config, and finished blocks."""
    from helpers.parts.llama import LlamaBlock, LlamaConfig

    return LlamaConfig(**sizes), LlamaBlock


def deeper(draw: Draw) -> tuple[torch.Tensor, dict[str, Any]]:
    """Tokens (b, t), and the sizes of a model with many blocks and a large vocabulary."""
    n, e = draw.number(70, 90), 4 * draw.number(5, 9)
    sizes = {"n": n, "e": e, "h": 2, "groups": 1, "depth": draw.number(4, 7), "hidden": draw.number(20, 40)}
    return draw.integers(0, n, draw.number(4, 6), draw.number(70, 90)), sizes


def model_of(sizes: Mapping[str, Any]) -> Via:
    """The student's model of these sizes."""
    return lambda answer, draw: built(*config_and_block(sizes))(answer, draw)


MODEL, TIED_MODEL = model_of(APART), model_of(TIED)


def whole_state(points: float, name: str, via: Via) -> Aspect:
    """The model's state_dict has the right names and shapes, and no others: shared tensors and buffers count."""

    def probe(answer, draw):
        lines = sorted(f"{key} {tuple(tensor.shape)}" for key, tensor in via(answer, draw).state_dict().items())
        return {"names and shapes": torch.tensor(list("\n".join(lines).encode()[:4000]), dtype=torch.uint8)}

    return Aspect(name, points, probe, side=True, kind=Kind.PARAMETERS)


def model_in_pieces(answer: Answer, draw: Draw) -> torch.Tensor:
    """The student's model on 6 tokens in pieces, with a cache."""
    from helpers.parts.gpt2 import KeyValueCache

    model, cache = MODEL(answer, draw).eval(), KeyValueCache(2, 7)
    with torch.no_grad():
        parts = [model(piece, cache) for piece in draw.integers(0, 9, 2, 6).split((3, 1, 2), dim=1)]
    if not all(isinstance(part, torch.Tensor) for part in parts):
        raise Fault("Your model has to return logits alone, a tensor (b, t, n).")
    if cache.length != 6:
        raise Fault("Your model was given a cache and did not hand each block its layer of it, cache.layers[i].")
    return torch.cat(parts, dim=1)


class OtherBlock(torch.nn.Module):
    """A block that only multiplies each component: does the model use the kind of block that it was given?"""

    def __init__(self, config: Any):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(config.e))

    def forward(self, x: torch.Tensor, past: object = None) -> torch.Tensor:
        return x * self.scale


def of_other_blocks(answer: Answer, draw: Draw) -> torch.Tensor:
    """The student's model of blocks of another kind, on some tokens."""
    config, _ = config_and_block(APART)
    model = fill(answer(config, OtherBlock).to(draw.device), draw)
    return model(draw.integers(0, 9, 2, 4))


llama = exercise(
    "Llama",
    stars=2,
    minutes=6,
    builds_on=("gpt2.KeyValueCache", "llama.LlamaConfig", "llama.LlamaBlock", "llama.RMSNorm"),
    given=case(ints(2, 5, below=9), APART),
    also={
        "with a batch of one": case(ints(1, 4, below=9), APART),
        "with one position": case(ints(3, 1, below=9), APART),
    },
    larger=deeper,
    via=module(lambda ids, sizes: (config_and_block(sizes), (ids,))),
    aspects=(
        values(0.5, name="logits", axes="b t n", picture=True),
        values(
            0.25,
            given=case(ints(2, 4, below=7), TIED),
            name="a tied table",
            also={"with a batch of one": case(ints(1, 3, below=7), TIED)},
            axes="b t n",
        ),
        Aspect("with a cache", 0.5, model_in_pieces, axes="b t n"),
        Aspect("blocks of another kind", 0.25, of_other_blocks, axes="b t n"),
        gradient(0.25, given=case(ints(2, 4, below=9)), via=MODEL, weights=True),
        gradient(0.25, given=case(ints(2, 4, below=7)), name="gradient of a tied table", via=TIED_MODEL, weights=True),
        whole_state(0.25, "parameters", MODEL),
        whole_state(0.25, "parameters of a tied model", TIED_MODEL),
        input_left_alone(0.25),
        any_device(0.25, given=case(ints(2, 4, below=9)), via=MODEL),
    ),
)

# ---------------------------------------------------------------------------------------- stretched_frequencies


def some_frequencies(draw: Draw, count: int, window: int) -> torch.Tensor:
    """Frequencies (count,), in any order: some turn a hundred times in the window, some a hundredth of a time."""
    turns = torch.exp(draw.uniform(-4.5, 4.5, count))
    turns[draw.permutation(count)[:3]] = torch.tensor([60.0, 1.9, 0.2], device=turns.device)
    return 6.283185307 * turns / window


def a_window(count: int, low: int, high: int, *bounds: float) -> Callable[[Draw], tuple]:
    """Frequencies, the window in which they were learned, a factor, and the bounds of the ramp."""

    def given(draw: Draw) -> tuple:
        window = draw.number(low, high)
        return (some_frequencies(draw, count, window), window, float(draw.number(3, 9)), *bounds)

    return given


def many_pairs(draw: Draw) -> tuple[torch.Tensor, int, float]:
    """The frequencies of a wide head, a long window, and a factor."""
    window = draw.number(3000, 9000)
    return some_frequencies(draw, draw.number(70, 130), window), window, draw.number(20, 40) + 0.5


def in_double(answer: Answer, draw: Draw) -> torch.Tensor:
    """The student's function on frequencies in float64."""
    return answer(some_frequencies(draw, 9, 500).double(), 500, 5.0)


stretched_frequencies = exercise(
    "stretched_frequencies",
    stars=2,
    minutes=8,
    given=a_window(12, 90, 400),
    also={
        "for three pairs": a_window(3, 50, 80),
        "for a factor that is no integer": lambda draw: (some_frequencies(draw, 8, 128), 128, 1.25 + draw.number(0, 3)),
    },
    larger=many_pairs,
    aspects=(
        values(1.5, axes="pair"),
        values(
            1,
            given=a_window(16, 90, 400, 0.5, 12.0),
            name="other bounds",
            also={"1 and 32": a_window(16, 2000, 4000, 1.0, 32.0)},
            axes="pair",
        ),
        Aspect("the type of the frequencies", 0.5, in_double, axes="pair", dtype=True),
        gradient(0.25, given=a_window(9, 90, 400)),
        input_left_alone(0.25, given=a_window(9, 90, 400)),
        any_device(0.5, given=a_window(9, 90, 400)),
    ),
)

# -------------------------------------------------------------------------------------------------------- route

ROUTED = ("weights", "experts", "balance")
SIZES = ((9, 5, 2), (6, 4, 1), (7, 6, 3), (1, 4, 2))  # of the logits (tokens, N), and k
LONE = ((1, 5, 1), (4, 3, 3), (1, 1, 1))


def many_experts(draw: Draw) -> tuple[torch.Tensor, int]:
    """Logits (tokens, N), and k. Those of a token are 0.1 or more apart: rounding changes no choice.

    Some experts are preferred, and each token's logits lie around a number of its own.
    """
    tokens, count = draw.number(70, 130), draw.number(24, 48)
    ranks = (draw.uniform(0, 1, tokens, count) + draw.uniform(0, 0.5, count)).argsort(-1).argsort(-1)
    return 0.2 * ranks + draw.uniform(0, 0.1, tokens, count) + draw.heavy(tokens, 1), draw.number(5, 10)


def routed(points: float, which: str, sizes: tuple = SIZES, name: str = "", **policy: Any) -> Aspect:
    """One of the three things that the student's function returns, for logits of these sizes."""

    def probe(answer, draw):
        call, results = one_of(ROUTED, which)(answer, draw), {}
        for tokens, count, k in sizes:
            said = f"for {tokens} token{'s' if tokens > 1 else ''}, N = {count}, k = {k}"
            results[said] = call(draw.normal(tokens, count, std=1.5), k)
        larger = {LARGER: many_experts} if sizes is SIZES else {}
        return together(results, larger, draw, lambda further: call(*further))

    return Aspect(name or which, points, probe, **policy)


def uneven(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The balance of extreme cases: all alike, one for all, and two for all."""
    size = draw.number(5, 40)
    first, second = draw.permutation(size)[:2].tolist()
    even = 30 * torch.eye(size).repeat(3, 1)
    one = torch.full((8, size), -30.0)
    one[:, first] = 30
    two = one.clone()
    two[:, second] = 30
    cases = {"all used alike": (even, 1), "one does everything": (one, 1), "two do everything": (two, 2)}
    balance = one_of(ROUTED, "balance")(answer, draw)
    return {name: balance(logits.to(draw.device), k) for name, (logits, k) in cases.items()}


route = exercise(
    "route",
    stars=2,
    minutes=10,
    answered_by=("experts.route", "experts.balance_loss"),
    given=case(normal(7, 5), 2),
    returns=ROUTED,
    aspects=(
        routed(1, "weights", axes="token k"),
        routed(0.5, "experts", axes="token k", dtype=True),
        routed(0.75, "balance"),
        Aspect("even and uneven", 0.5, uneven),
        routed(0.25, "balance", LONE, "one token, or one expert"),
        gradient(0.25, of="balance", name="gradient of the balance"),
        gradient(0.25, of="weights", name="gradient of the weights"),
        input_left_alone(0.25),
        any_device(0.25, of="balance"),
    ),
)

LESSON = Lesson(
    "18_since_gpt2",
    "Since GPT-2",
    (rms_norm, swiglu, grouped_query_attention, llama, halves_from_pairs, stretched_frequencies, route),
    predictions_of("18_since_gpt2"),
)
