"""Lesson 15: a memory of the segment before, and positions that are relative."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F

from helpers.exercises.aspects import LEFT_ALONE, Fault, Inputs, built, evaluation_mode, kind_of
from helpers.exercises.behaviour import note_call
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Kind, Lesson, Probe
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    case,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    ints,
    normal,
    size,
    sized,
    values,
    with_larger,
)

FINISHED = "The finished part is there for the exercises that build on this one; write it here."

# ----------------------------------------------------------------------------------------------------- segments


def cut(answer: Answer, draw: Draw, of: str, length: int, b: int, t: int) -> object:
    """The student's segments of a text of that length: the inputs or the targets."""
    pair = all_of(("inputs", "targets"), answer(draw.integers(0, 256, length).to(torch.uint8), b, t))
    return pair[of == "targets"]


def cuts(*sizes: tuple[int, int, int], of: str) -> Probe:
    """The same for texts of these (length, b, t)."""

    def probe(answer, draw):
        return {f"for {length} bytes, b = {b}, t = {t}": cut(answer, draw, of, length, b, t) for length, b, t in sizes}

    return probe


def exact_cuts(of: str) -> Probe:
    """The same where everything fits, a long text in more streams among them."""

    def larger(answer, draw):
        b, t = draw.number(9, 17), draw.number(70, 100)
        return cut(answer, draw, of, draw.number(9, 13) * b * t + 1, b, t)

    return with_larger(cuts(*EXACT, of=of), larger)


EXACT = ((61, 3, 4), (25, 3, 2), (31, 2, 5), (41, 5, 4))  # everything fits
RESTS = ((67, 3, 4), (72, 3, 4), (30, 4, 3), (14, 2, 3), (60, 3, 4))  # some bytes fill no segment
SMALLEST = ((13, 1, 4), (7, 3, 1), (5, 2, 2), (13, 3, 4), (2, 1, 1))  # one stream, one position, one batch

segments = exercise(
    "segments",
    stars=2,
    minutes=7,
    aspects=(
        Aspect("inputs", 1, exact_cuts("inputs"), axes="k b t", dtype=True),
        Aspect("targets", 1, exact_cuts("targets"), axes="k b t", dtype=True),
        Aspect("a rest that fills no segment", 0.5, cuts(*RESTS, of="targets"), axes="k b t"),
        Aspect("one stream, or one position", 0.5, cuts(*SMALLEST, of="targets"), axes="k b t"),
    ),
)

# ------------------------------------------------------------------------------------------------ extend_memory


def remembered(old: int | None, t: int, m: int, b: int = 3, e: int = 4, numbers: Callable = Draw.normal) -> Inputs:
    """A memory (b, old, e) or None, a segment (b, t, e), and how many positions to keep."""

    def inputs(draw):
        return None if old is None else numbers(draw, b, old, e), numbers(draw, b, t, e), m

    return inputs


LARGE = {"old": size(40, 60), "t": size(70, 100), "b": size(9, 17), "e": size(6, 12)}
long_memory = partial(sized, partial(remembered, numbers=Draw.heavy), **LARGE)


def without_gradient(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Does a gradient flow back from the memory into the segment, or into the memory before?"""
    results = {}
    for said, old in (("at the beginning", None), ("later", 3)):
        memory, x, m = remembered(old, 4, 5)(draw)
        kept = answer(memory if memory is None else memory.requires_grad_(), x.requires_grad_(), m)
        if not isinstance(kept, torch.Tensor):
            raise Fault(f"Your function has to return a tensor; it returns {kind_of(kept)}.")
        results[said] = torch.tensor([kept.requires_grad])
    return results


DETACHED = (
    "A gradient flows from your memory back into what it was made of. Then the backward pass of each segment would run"
    " through all segments before it."
)

extend_memory = exercise(
    "extend_memory",
    stars=2,
    minutes=5,
    fixes_bug=True,
    forbidden={"finished_memory": FINISHED},
    given=remembered(3, 4, 9),
    also={
        "at the beginning": remembered(None, 4, 9),
        "from an empty memory": remembered(0, 4, 6),
        "with a batch of one": remembered(2, 1, 8, b=1, e=6),
        "up to m exactly": remembered(3, 4, 7),
    },
    larger=long_memory(m=size(160, 200)),
    aspects=(
        values(1, name="a memory that grows", axes="b m e"),
        values(
            1,
            given=remembered(5, 4, 6),
            name="the newest are kept",
            also={
                "of a long segment": remembered(3, 8, 5),
                "of a first segment": remembered(None, 8, 5),
                "with a batch of one": remembered(5, 1, 5, b=1),
                "of a memory longer than m": remembered(8, 2, 5),
            },
            larger=long_memory(m=size(101, 110)),
            axes="b m e",
        ),
        values(
            0.5,
            given=remembered(3, 4, 0),
            name="no memory",
            also={"at the beginning": remembered(None, 4, 0)},
            axes="b m e",
            side=True,
        ),
        Aspect("no gradient", 0.5, without_gradient, side=True, missed=DETACHED),
    ),
)

# ----------------------------------------------------------------------------------------------- relative_shift


def marker(t: int | None = None, more: bool = False) -> Inputs:
    """Entry [i, c] says 100·i + distance, the distance of column c being s − 1 − c.

    t: queries; None draws them. more: there are more keys, s, than queries.
    """

    def inputs(draw):
        queries = t or draw.number(3, 7)
        keys = queries + (draw.number(1, 7) if more else 0)
        rows, columns = (torch.arange(size, device=draw.device, dtype=torch.float32) for size in (queries, keys))
        return (100 * rows.unsqueeze(-1) + 100 + keys - 1 - columns,)

    return inputs


relative_shift = exercise(
    "relative_shift",
    stars=2,
    minutes=9,
    forbidden={"finished_shift": FINISHED},
    given=case(normal(2, 3, 4, 6)),
    also={"with a batch of one": case(normal(1, 2, 3, 5)), "with one axis in front": case(normal(3, 2, 4))},
    larger=case(heavy(2, size(2, 4), size(3, 5), size(16, 24), size(66, 80))),
    aspects=(
        values(
            0.5,
            given=marker(),
            name="as many keys as queries",
            also={"of one row": marker(1)},
            axes="t s",
            picture=True,
        ),
        values(
            1,
            given=marker(more=True),
            name="more keys than queries",
            also={"for one query": marker(1, more=True), "of another size": marker(more=True)},
            axes="t s",
            picture=True,
        ),
        values(0.5, name="batch and heads", axes="b h t s"),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ---------------------------------------------------------------------------------------------- relative_scores


def scored(b: int = 2, h: int = 3, t: int = 4, s: int = 7, d: int = 5, numbers: Callable = Draw.normal) -> Inputs:
    """Queries, keys, positions from far to near, u and v."""

    def inputs(draw):
        shapes = ((b, h, t, d), (b, h, s, d), (h, s, d), (h, d), (h, d))
        return tuple(numbers(draw, *shape) for shape in shapes)

    return inputs


def past_alone(answer: Answer, draw: Draw) -> Callable:
    """The student's scores, with 0 in the future, where a mask will hide them and any number is right."""

    def call(q, *others):
        scores = answer(q, *others)
        t, s = q.shape[-2], others[0].shape[-2]
        if not isinstance(scores, torch.Tensor) or scores.shape[-2:] != (t, s):
            return scores
        past = torch.ones(t, s, dtype=torch.bool, device=scores.device).tril(s - t)
        return scores.masked_fill(~past, 0.0)

    return call


relative_scores = exercise(
    "relative_scores",
    stars=3,
    minutes=8,
    builds_on=("transformer_xl.relative_shift",),
    given=scored(),
    also={
        "without a memory": scored(s=4),
        "with a batch of one": scored(b=1, d=3),
        "with one head": scored(h=1, s=6),
    },
    larger=sized(
        partial(scored, numbers=Draw.heavy),
        b=size(3, 6),
        h=size(4, 7),
        t=size(16, 24),
        s=size(66, 80),
        d=size(9, 16),
    ),
    via=past_alone,
    aspects=(
        values(2, axes="b h t s", picture=True),
        values(
            0.5,
            given=scored(t=1, s=5),
            name="a single query",
            also={"with a single key": scored(t=1, s=1)},
            axes="b h t s",
        ),
        gradient(1),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ------------------------------------------------------------------------------------------------ TransformerXL


class Remembering:
    """A module that is called with a segment, beside a memory of which no gradient is asked."""

    def __init__(self, module: torch.nn.Module, memory: object, *more: object):
        self._module, self._memory, self._more = module, memory, more

    def __call__(self, x: torch.Tensor) -> object:
        result = self._module(x, self._memory, *self._more)
        return result[0] if isinstance(result, tuple) and result else result

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The module's."""
        return self._module.named_parameters()


MODEL = built(11, 12, 3, 2)  # n = 11, e = 12, h = 3, depth = 2


def memories(draw: Draw, b: int, m: int, e: int = 12, blocks: int = 2) -> list[torch.Tensor]:
    """A drawn memory for each block."""
    return [draw.normal(b, m, e) for _ in range(blocks)]


def parts_of(result: object, depth: int = 2) -> dict[str, torch.Tensor]:
    """Logits and memories by name, from what a model returned."""
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    if not isinstance(result, (tuple, list)) or not pair or not isinstance(result[1], (list, tuple)):
        what = f"{kind_of(result)} of {len(result)} things" if isinstance(result, (tuple, list)) else kind_of(result)
        what = f"a pair whose second part is {kind_of(result[1])}" if pair else what  # type: ignore[index]
        raise Fault(f"Your model has to return logits and a list with a memory for each block. It returns {what}.")
    logits, memory = result
    if len(memory) != depth:
        raise Fault(f"The model has {depth} blocks, and your list holds {len(memory)} memories.")
    return {"logits": logits} | {f"memory of block {place}": past for place, past in enumerate(memory)}


Segments = tuple[tuple[str, int, int, int | None, int], ...]  # what is said of it, b, t, the old memory's length, m

FIRST: Segments = (
    ("result", 3, 5, None, 4),
    ("with a batch of one", 1, 4, None, 9),
    ("with one position", 2, 1, None, 3),
)
LATER: Segments = (("result", 3, 4, 5, 7), ("with a batch of one", 1, 3, 6, 4), ("with one position", 2, 1, 4, 4))
KEEPING_NOTHING: Segments = (("without a memory", 2, 4, None, 0), ("with a memory", 2, 3, 5, 0))


def segment(cases: Segments, which: str = "") -> Probe:
    """The logits, or the memories, by the first letters of their names, with no memory or with drawn ones."""

    def probe(answer, draw):
        model, results = MODEL(answer, draw), {}
        for said, b, t, old, m in cases:
            ids = draw.integers(0, 11, b, t)
            named = parts_of(model(ids, None if old is None else memories(draw, b, old), *([m] if m else [])))
            results |= {f"{name}, {said}": tensor for name, tensor in named.items() if name.startswith(which)}
        return results

    return probe


def larger_model(which: str) -> Probe:
    """The logits, or the memories, of a deeper model with longer and wider segments after others."""

    def probe(answer, draw):
        n, h, depth = draw.number(70, 130), draw.number(4, 7), draw.number(4, 6)
        b, t, old, e = draw.number(3, 6), draw.number(24, 36), draw.number(36, 48), h * draw.number(2, 4) * 2
        ids, past = draw.integers(0, n, b, t), [draw.heavy(b, old, e) for _ in range(depth)]
        returned = built(n, e, h, depth)(answer, draw)(ids, past, draw.number(48, 60))
        return {name: tensor for name, tensor in parts_of(returned, depth).items() if name.startswith(which)}

    return probe


def later(which: str) -> Probe:
    """The logits, or the memories, of segments after others, and in a larger model."""
    return with_larger(segment(LATER, which), larger_model(which))


def callers_list(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The ids, the list of memories and its tensors, after a call."""
    ids, given = draw.integers(0, 11, 2, 4), memories(draw, 2, 3)
    MODEL(answer, draw)(ids, given, 5)
    return {"the ids": ids} | {f"memory {place}": memory for place, memory in enumerate(given)}


def detached(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Does a gradient flow back from the memories that the model returns?"""
    results, model = {}, MODEL(answer, draw)
    for said, given in (("at the beginning", None), ("later", memories(draw, 2, 3))):
        named = parts_of(model(draw.integers(0, 11, 2, 4), given, 5))
        found = [memory for name, memory in named.items() if name != "logits"]
        results[said] = torch.tensor([any(isinstance(m, torch.Tensor) and m.requires_grad for m in found)])
    return results


def learning(answer: Answer, draw: Draw) -> Remembering:
    """The student's model, of 3 blocks, with drawn memories; of its pair the logits are looked at."""
    return Remembering(built(7, 6, 2, 3)(answer, draw), memories(draw.named("memory"), 2, 3, 6, blocks=3), 3)


def logits_on(answer: Answer, draw: Draw) -> torch.nn.Module:
    """The student's model as a module from ids and two memories to logits."""
    model = MODEL(answer, draw)

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids, first, second):
            return self.model(ids, [first, second], 5)[0]

    return Logits()


def ids_and_memories(draw: Draw) -> tuple[torch.Tensor, ...]:
    """Ids (2, 4), and a memory for each of two blocks."""
    return draw.integers(0, 11, 2, 4), *memories(draw, 2, 3)


CHANGED = (
    "Your call changes the ids, the caller's list or a memory in it. Make a list of your own, and leave all tensors"
    " that you are given as they are."
)

transformer_xl = exercise(
    "TransformerXL",
    stars=3,
    minutes=9,
    builds_on=(
        "blocks.LayerNorm",
        "transformer_xl.TransformerXLBlock",
        "transformer_xl.extend_memory",
    ),
    aspects=(
        Aspect("logits of a first segment", 0.5, segment(FIRST, "logits"), axes="b t n", picture=True),
        Aspect("memory of a first segment", 0.5, segment(FIRST, "memory"), axes="b m e"),
        Aspect("logits with a memory", 1, later("logits"), axes="b t n", picture=True),
        Aspect("memory after a memory", 0.5, later("memory"), axes="b m e"),
        Aspect("m = 0", 0.25, segment(KEEPING_NOTHING)),
        gradient(0.5, given=case(ints(2, 4, below=7)), via=learning, weights=True),
        Aspect("no gradient through the memory", 0.25, detached, side=True, missed=DETACHED),
        Aspect(LEFT_ALONE, 0.25, callers_list, side=True, kind=Kind.ARGUMENT, missed=CHANGED),
        any_device(0.25, given=ids_and_memories, via=logits_on),
    ),
)

# ----------------------------------------------------------------------------------------------- streaming_bits


class Recurrent(torch.nn.Module):
    """A stand-in for a trained Transformer-XL whose answers are known, called as such a model is.

    What it predicts depends on the token at a position, on its place in the segment, and on all that is remembered:
    on its newest and its oldest position, and on how long it is. `seen` counts tokens, `modes` keeps the modes.
    """

    now: torch.Tensor
    newest: torch.Tensor
    oldest: torch.Tensor
    place: torch.Tensor
    length: torch.Tensor
    training_only: torch.Tensor

    def __init__(self, draw: Draw, n: int = 7):
        super().__init__()
        self.seen = 0
        self.modes: list[bool] = []
        for name, rows in (
            ("now", n),
            ("newest", n),
            ("oldest", n),
            ("place", 128),
            ("length", 64),
            ("training_only", 1),
        ):
            self.register_buffer(name, draw.named(name).normal(rows, n, std=0.7))

    def forward(
        self, ids: torch.Tensor, memory: list[torch.Tensor] | None = None, m: int = 0
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """ids (b, t) -> logits (b, t, n), and one memory (b, ≤ m, 1) that holds the newest ids."""
        if ids.dim() != 2 or ids.is_floating_point():
            raise ValueError(f"The model takes ids of shape (b, t), int64; it got {tuple(ids.shape)}, {ids.dtype}.")
        self.seen += ids.numel()
        self.modes.append(self.training)
        note_call(self.training, ids.shape[1])
        t = ids.shape[1]
        logits = F.embedding(ids, self.now) + self.place[:t]
        both = ids.unsqueeze(-1)
        if memory is not None:
            past = memory[0]
            if past.shape[1]:
                ends = F.embedding(past[:, -1:, 0], self.newest) + F.embedding(past[:, :1, 0], self.oldest)
                logits = logits + ends + self.length[past.shape[1] % 64]
            both = torch.cat([past, both], dim=1)
        logits = logits + self.training_only if self.training else logits
        return logits, [both[:, max(0, both.shape[1] - m) :]]


def few_bytes(draw: Draw, length: int, n: int = 7) -> torch.Tensor:
    """A text of n different bytes: (length,), uint8."""
    return draw.integers(0, n, length).to(torch.uint8)


def streamed(*sizes: tuple[int, int, int]) -> Probe:
    """Bits of texts of these (length, t, m) under a model with known answers."""

    def probe(answer, draw):
        model = Recurrent(draw).to(draw.device).eval()
        return {
            f"for {length} bytes, t = {t}, m = {m}": answer(model, few_bytes(draw, length), t, m)
            for length, t, m in sizes
        }

    return probe


def streamed_long(rest: bool) -> Probe:
    """Bits of a text of more bytes, in longer segments. rest: the last segment is shorter."""

    def probe(answer, draw):
        n, t, m = draw.number(70, 130), draw.number(70, 100), draw.number(100, 160)
        length = draw.number(9, 13) * t + (draw.number(2, t) if rest else 1)
        return answer(Recurrent(draw, n).to(draw.device).eval(), few_bytes(draw, length, n), t, m)

    return probe


LONG = ((31, 5, 5), (41, 8, 3), (25, 4, 10), (29, 7, 14), (17, 1, 4))  # whole segments: length − 1 divides by t
UNEVEN = ((28, 5, 5), (40, 9, 4), (23, 4, 9), (33, 6, 20))
WITHOUT = ((31, 5, 0), (27, 4, 0), (14, 6, 0))
SHORT = ((5, 6, 4), (7, 6, 4), (2, 3, 2), (2, 1, 1), (3, 1, 0))


def used_in_mode(answer: Answer, draw: Draw, training: bool) -> Recurrent:
    """A model that came in training mode, or in evaluation mode, after the student's function has used it."""
    model = Recurrent(draw).to(draw.device).train(training)
    answer(model, few_bytes(draw, 23), 5, 4)
    return model


def work_done(answer: Answer, draw: Draw) -> torch.Tensor:
    """How many positions go through the model: each byte but the last, once."""
    model = Recurrent(draw).to(draw.device).eval()
    answer(model, few_bytes(draw, 33), 5, 8)
    if model.seen > 33:
        raise Fault(
            f"For a text of 33 bytes, your code sends {model.seen} positions through the model. With a memory each byte"
            " goes through once."
        )
    return torch.tensor([1])


streaming_bits = exercise(
    "streaming_bits",
    stars=2,
    minutes=8,
    aspects=(
        Aspect("values", 1.5, with_larger(streamed(*LONG), streamed_long(rest=False)), accepts="number"),
        Aspect(
            "a shorter last segment", 0.5, with_larger(streamed(*UNEVEN), streamed_long(rest=True)), accepts="number"
        ),
        Aspect("texts of one segment, or two", 0.5, streamed(*SHORT), accepts="number"),
        Aspect("no memory", 0.5, streamed(*WITHOUT), accepts="number"),
        Aspect("each byte once", 0.5, work_done, side=True),
        evaluation_mode(0.5, used_in_mode),
    ),
)

LESSON = Lesson(
    "15_transformer_xl",
    "Transformer-XL",
    (
        segments,
        extend_memory,
        relative_shift,
        relative_scores,
        transformer_xl,
        streaming_bits,
    ),
    predictions_of("15_transformer_xl"),
)
