"""Lesson 18: what has changed since GPT-2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from helpers.exercises.aspects import (
    Inputs,
    Unmet,
    Via,
    any_device,
    built,
    fill,
    gradient,
    input_left_alone,
    kind_of,
    parameters,
    values,
)
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe
from helpers.exercises.questions import predictions_of

FINISHED = "The finished part is there for the exercises that build on this one; write it here."
READY = "It is the very thing that this exercise asks for; write it here."
HALF = torch.float16


def drawn(*shape: int, std: float = 1.0) -> Inputs:
    """Normal numbers of that shape."""
    return lambda draw: (draw.normal(*shape, std=std),)


# ------------------------------------------------------------------------------------------------------ RMSNorm

NORM, WIDE_NORM = built(6), built(10, eps=0.5)
COARSE = 2e-3  # how far two right answers in float16 may be apart, which round in another order


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


# ------------------------------------------------------------------------------------------------------- SwiGLU

NETWORK, NARROW_NETWORK = built(6, 10), built(8, 3)

# ----------------------------------------------------------------------------------------- GroupedQueryAttention

ATTENTION = built(24, 4, 2)  # e = 24 in 4 heads of width 6, 2 groups
SINGLE_GROUP, ALL_GROUPS, THREE_TO_A_GROUP = built(12, 3, 1), built(20, 2, 2), built(24, 6, 2)


def pieces_through(call: Callable, x: torch.Tensor, past: object, cuts: tuple[int, ...]) -> torch.Tensor:
    """What comes out where x (b, t, e) is read in pieces with a cache: (b, t, e)."""
    parts = []
    for piece in x.split(cuts, dim=1):
        part = call(piece, past)
        if not isinstance(part, torch.Tensor):
            raise Unmet(f"With a cache your layer has to return a tensor; it returns {kind_of(part)}.")
        parts.append(part)
    return torch.cat(parts, dim=1)


def read_in_pieces(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The student's attention on 6 positions that come in pieces, with a cache."""
    from helpers.parts.gpt2 import LayerCache

    layer, outputs = ATTENTION(answer, draw), {}
    for case, b, cuts in (
        ("in pieces of 4, 1 and 1", 2, (4, 1, 1)),
        ("in pieces of 2 and 4, a batch of one", 1, (2, 4)),
    ):
        outputs[case] = pieces_through(layer, draw.named(case).normal(b, 6, 24), LayerCache(9), cuts)
    return outputs


def held(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """What the cache holds after 5 positions: keys and values, (b, groups, s, d)."""
    from helpers.parts.gpt2 import LayerCache

    layer, past = ATTENTION(answer, draw), LayerCache(8)
    output = pieces_through(layer, draw.normal(2, 5, 24), past, (3, 2))
    if past.keys is None:
        raise Unmet("Your layer was given a cache and put nothing into it: past.append(k, v) does.")
    if torch.equal(output, output[:, :1].expand_as(output)) or not output.isfinite().any():
        raise Unmet("Your layer fills the cache and computes nothing from it: its output does not depend on the input.")
    return {"keys": past.keys[:, :, : past.length], "values": past.values[:, :, : past.length]}


# --------------------------------------------------------------------------------------------- halves_from_pairs


def rows_of(h: int, d: int, e: int) -> Inputs:
    """A projection's weight (h·d, e), and h."""
    return lambda draw: (draw.normal(h * d, e), h)


# -------------------------------------------------------------------------------------------------------- Llama

APART: dict[str, Any] = {"n": 9, "e": 12, "h": 2, "groups": 1, "depth": 2, "hidden": 10, "epsilon": 0.1}
TIED = {"n": 7, "e": 8, "h": 2, "groups": 2, "depth": 1, "hidden": 6, "epsilon": 0.1, "tied": True}


def model_of(sizes: Mapping[str, float]) -> Via:
    """The student's model of these sizes, of finished blocks."""

    def via(answer, draw):
        from helpers.parts.llama import LlamaBlock, LlamaConfig

        return built(LlamaConfig(**sizes), LlamaBlock)(answer, draw)

    return via


NAMES_AND_SHAPES = "names and shapes"
MODEL, TIED_MODEL = model_of(APART), model_of(TIED)


def whole_state(points: float, name: str, via: Via) -> Aspect:
    """The model's state_dict has the right names and shapes, and no others: shared tensors and buffers count."""

    def probe(answer, draw):
        lines = sorted(f"{key} {tuple(tensor.shape)}" for key, tensor in via(answer, draw).state_dict().items())
        return {NAMES_AND_SHAPES: torch.tensor(list("\n".join(lines).encode()[:4000]), dtype=torch.uint8)}

    return Aspect(name, points, probe, side=True)


def ids_of(n: int, b: int, t: int) -> Inputs:
    """Tokens (b, t) out of n."""
    return lambda draw: (draw.integers(0, n, b, t),)


def model_in_pieces(answer: Answer, draw: Draw) -> torch.Tensor:
    """The student's model on 6 tokens in pieces, with a cache."""
    from helpers.parts.gpt2 import KeyValueCache

    model, cache = MODEL(answer, draw).eval(), KeyValueCache(2, 7)
    with torch.no_grad():
        parts = [model(piece, cache) for piece in draw.integers(0, 9, 2, 6).split((3, 1, 2), dim=1)]
    if not all(isinstance(part, torch.Tensor) for part in parts):
        raise Unmet("Your model has to return logits alone, a tensor (b, t, n).")
    if cache.length != 6:
        raise Unmet("Your model was given a cache and did not hand each block its layer of it, cache.layers[i].")
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
    from helpers.parts.llama import LlamaConfig

    model = fill(answer(LlamaConfig(**APART), OtherBlock).to(draw.device), draw)
    return model(draw.integers(0, 9, 2, 4))


# -------------------------------------------------------------------------------------------------------- route

BY_PLACE = ("weights", "experts", "balance")


def routed(which: str, *sizes: tuple[int, int, int]) -> Probe:
    """One of the three things that the student's function returns, for logits of these (tokens, N) and k."""

    def probe(answer, draw):
        parts = {}
        for tokens, count, k in sizes:
            case = f"for {tokens} token{'s' if tokens > 1 else ''}, N = {count}, k = {k}"
            parts[case] = part_of(answer(draw.normal(tokens, count, std=1.5), k), which)
        return parts

    return probe


def part_of(returned: object, which: str) -> torch.Tensor:
    """Weights, experts or balance, from what `route` returned."""
    if not isinstance(returned, (tuple, list)) or len(returned) != 3:
        raise Unmet(f"Your function has to return weights, experts and balance; it returns {kind_of(returned)}.")
    part = returned[BY_PLACE.index(which)]
    if not isinstance(part, torch.Tensor):
        raise Unmet(f"Of the three things that you return, the {which} must be a tensor. It is {kind_of(part)}.")
    return part


SIZES = ((9, 5, 2), (6, 4, 1), (7, 6, 3), (1, 4, 2))
LONE = ((1, 5, 1), (4, 3, 3), (1, 1, 1))


def returning(which: str) -> Via:
    """The student's function, of which one part is looked at, with k = 2."""

    def via(answer, draw):
        return lambda logits: part_of(answer(logits, 2), which)

    return via


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
    return {case: part_of(answer(logits.to(draw.device), k), "balance") for case, (logits, k) in cases.items()}


# --------------------------------------------------------------------------------------------------- keep_min_p


def with_p(*shape: int, p: float) -> Inputs:
    """Logits of a shape, and p."""
    return lambda draw: (draw.normal(*shape, std=2.0), p)


def of_any_size(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Logits that all lie far below 0, or far above: only their differences count."""
    logits = draw.normal(12, 30, std=2.0)
    return {f"shifted by {shift}": answer(logits + shift, 0.2) for shift in (-50.0, 40.0)}


def with_two_largest(draw: Draw) -> tuple[torch.Tensor, float]:
    """Logits whose largest stands at two places of each row, and p = 1."""
    logits = draw.normal(3, 8)
    places = [draw.permutation(8)[:2] for _ in range(3)]
    for row, two in zip(logits, places, strict=True):
        row[two] = 4.0
    return logits, 1.0


LESSON = Lesson(
    "18_since_gpt2",
    "Since GPT-2",
    exercises=(
        Exercise(
            "RMSNorm",
            stars=1,
            minutes=6,
            mend=True,
            aspects=(
                values(
                    1.5,
                    drawn(2, 3, 6, std=3.0),
                    via=NORM,
                    also={
                        "with a batch of one": drawn(1, 4, 6),
                        "with one position": drawn(2, 1, 6),
                        "for a single vector, of small numbers": drawn(6, std=0.01),
                    },
                    axes="b t e",
                    picture=True,
                ),
                values(
                    0.5,
                    drawn(2, 3, 10, std=0.5),
                    name="another epsilon",
                    via=WIDE_NORM,
                    also={"for a vector of zeros": lambda draw: (torch.zeros(1, 2, 10, device=draw.device),)},
                    axes="b t e",
                ),
                Aspect("the type of x", 0.5, in_other_types, axes="b t e", rtol=COARSE, atol=COARSE, dtype=True),
                gradient(0.25, drawn(2, 3, 6), via=NORM, weights=True),
                input_left_alone(0.25, drawn(2, 3, 6), via=NORM),
            ),
            forbidden={"rms_norm": READY, "finished_norm": FINISHED},
        ),
        Exercise(
            "SwiGLU",
            stars=1,
            minutes=5,
            aspects=(
                values(
                    1,
                    drawn(2, 3, 6),
                    via=NETWORK,
                    also={
                        "with a batch of one": drawn(1, 2, 6),
                        "with one position": drawn(3, 1, 6),
                        "for large numbers": drawn(2, 2, 6, std=20.0),
                    },
                    axes="b t e",
                    picture=True,
                ),
                gradient(0.5, drawn(2, 3, 8), via=NARROW_NETWORK, weights=True),
                parameters(0.5, NARROW_NETWORK),
            ),
            answered_by=("llama.SwiGLU",),
        ),
        Exercise(
            "GroupedQueryAttention",
            stars=3,
            minutes=15,
            aspects=(
                values(
                    1.5,
                    drawn(2, 5, 24),
                    via=ATTENTION,
                    also={"with a batch of one": drawn(1, 4, 24), "with one position": drawn(3, 1, 24)},
                    axes="b t e",
                    picture=True,
                ),
                values(0.25, drawn(2, 4, 12), name="a single group", via=SINGLE_GROUP, axes="b t e"),
                values(0.5, drawn(2, 4, 24), name="three heads to a group", via=THREE_TO_A_GROUP, axes="b t e"),
                values(0.25, drawn(2, 4, 20), name="as many groups as heads", via=ALL_GROUPS, axes="b t e"),
                Aspect("with a cache", 1, read_in_pieces, axes="b t e"),
                Aspect("what the cache holds", 0.5, held, axes="b g s d"),
                gradient(0.5, drawn(2, 4, 24), via=ATTENTION, weights=True),
                parameters(0.25, ATTENTION),
                any_device(0.25, drawn(2, 4, 24), via=ATTENTION),
            ),
            forbidden={
                "finished_block": "A finished block holds a finished attention; write yours here.",
                "MultiheadAttention": "It knows no groups, and this exercise is there to write them.",
            },
            builds_on=(
                "gpt2.LayerCache",
                "masks.causal_mask",
                "masks.masked_softmax",
                "multi_head.merge_heads",
                "multi_head.split_heads",
                "positions.rotate",
            ),
        ),
        Exercise(
            "halves_from_pairs",
            stars=3,
            minutes=9,
            aspects=(
                values(
                    1.5,
                    rows_of(3, 6, 5),
                    also={
                        "of two heads, as wide as long": rows_of(2, 8, 16),
                        "of wide heads": rows_of(2, 10, 3),
                        "of heads of width 2": rows_of(3, 2, 4),
                        "of a single column": rows_of(2, 6, 1),
                    },
                    axes="row e",
                    picture=True,
                ),
                values(0.5, rows_of(1, 6, 12), name="one head", also={"of width 10": rows_of(1, 10, 4)}, axes="row e"),
                gradient(0.5, rows_of(2, 6, 8)),
                input_left_alone(0.25, rows_of(2, 6, 5)),
                any_device(0.25, rows_of(2, 6, 5)),
            ),
        ),
        Exercise(
            "Llama",
            stars=2,
            minutes=8,
            aspects=(
                values(
                    0.75,
                    ids_of(9, 2, 5),
                    name="logits",
                    via=MODEL,
                    also={"with a batch of one": ids_of(9, 1, 4), "with one position": ids_of(9, 3, 1)},
                    axes="b t n",
                    picture=True,
                ),
                values(
                    0.5,
                    ids_of(7, 2, 4),
                    name="a tied table",
                    via=TIED_MODEL,
                    also={"with a batch of one": ids_of(7, 1, 3)},
                    axes="b t n",
                ),
                Aspect("with a cache", 0.5, model_in_pieces, axes="b t n"),
                Aspect("blocks of another kind", 0.25, of_other_blocks, axes="b t n"),
                gradient(0.25, ids_of(9, 2, 4), via=MODEL, weights=True),
                gradient(0.25, ids_of(7, 2, 4), name="gradient of a tied table", via=TIED_MODEL, weights=True),
                whole_state(0.25, "parameters", MODEL),
                whole_state(0.25, "parameters of a tied model", TIED_MODEL),
            ),
            builds_on=("gpt2.KeyValueCache", "llama.LlamaConfig", "llama.LlamaBlock", "llama.RMSNorm"),
        ),
        Exercise(
            "route",
            stars=2,
            minutes=10,
            aspects=(
                Aspect("weights", 1, routed("weights", *SIZES), axes="token k"),
                Aspect("experts", 0.5, routed("experts", *SIZES), axes="token k", dtype=True),
                Aspect("balance", 1, routed("balance", *SIZES)),
                Aspect("even and uneven", 0.5, uneven),
                Aspect("one token, or one expert", 0.25, routed("balance", *LONE)),
                gradient(0.25, drawn(7, 5), name="gradient of the balance", via=returning("balance")),
                gradient(0.25, drawn(7, 5), name="gradient of the weights", via=returning("weights")),
                input_left_alone(0.25, lambda draw: (draw.normal(7, 5), 2)),
            ),
            answered_by=("experts.route", "experts.balance_loss"),
        ),
        Exercise(
            "keep_min_p",
            stars=1,
            minutes=5,
            aspects=(
                values(
                    1,
                    with_p(9, 12, p=0.1),
                    also={
                        "with p = 0.4": with_p(3, 9, p=0.4),
                        "with a batch of one": with_p(1, 8, p=0.15),
                        "with two axes in front": with_p(2, 3, 7, p=0.2),
                        "for a single row": with_p(9, p=0.3),
                    },
                    axes="row token",
                ),
                Aspect("logits of any size", 0.25, of_any_size, axes="row token"),
                values(0.25, with_two_largest, name="p = 1", axes="row token"),
                input_left_alone(0.25, with_p(9, 12, p=0.1)),
                any_device(0.25, with_p(9, 12, p=0.1)),
            ),
        ),
    ),
    predictions=predictions_of("18_since_gpt2"),
)
