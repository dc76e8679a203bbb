"""Lesson 10: the encoder, the decoder, and two ways of writing."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from helpers.exercises.aspects import Inputs, Unmet, any_device, built, gradient, input_left_alone, values
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson, Probe

FINISHED = "The finished part is there for the exercises that build on this one; write it here."
ONCE = (
    "The encoder has to run once for each call: what it makes of the source does not change while the translation"
    " grows."
)


def padded(draw: Draw, low: int, high: int, pad: int, lengths: torch.Tensor, t: int) -> torch.Tensor:
    """Rows of ids from low to high − 1, none of them pad, of these lengths, filled up to t with pad. Returns (b, t)."""
    ids = draw.integers(low, high - 1, len(lengths), t)
    ids = ids + (ids >= pad)  # every id but pad
    places = torch.arange(t, device=draw.device)
    return torch.where(places < lengths.unsqueeze(-1), ids, pad)


# --------------------------------------------------------------------------------------------------- make_masks

MASKS = ("source on source", "target on target", "target on source")


def a_batch(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Three sources of up to 6 words and three targets of up to 4. The padding is not 0, and 0 is a word."""
    pad = draw.number(2, 6)
    source = padded(draw, 0, 9, pad, draw.permutation(4)[:3] + 3, 6)
    target = padded(draw, 0, 9, pad, draw.permutation(3) + 2, 4)
    source[0, 0] = target[0, 0] = 0
    return source, target, pad


def padded_in_front(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The same turned round, so that the padding stands before the words."""
    source, target, pad = a_batch(draw)
    return source.flip(1), target.flip(1), pad


def one_mask(place: int, inputs: Inputs) -> Probe:
    """The mask of that place among the three."""

    def probe(answer, draw):
        masks = answer(*inputs(draw))
        if not isinstance(masks, (tuple, list)) or len(masks) != 3:
            kind = f"{len(masks)} things" if isinstance(masks, (tuple, list)) else f"a {type(masks).__name__}"
            raise Unmet(
                f"Your function has to return three masks, in this order: {', '.join(MASKS)}. It returns {kind}."
            )
        return masks[place]

    return probe


# ------------------------------------------------------------------------------------------------ CrossAttention

CROSS = built(8, 2)  # e = 8 in 2 heads of width 4; 3 sentences, 5 positions that ask, 6 that are asked


def two_sequences(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """What asks (3, 5, 8), and what is asked (3, 6, 8)."""
    return draw.normal(3, 5, 8), draw.normal(3, 6, 8)


def seen_whole(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Nothing is hidden; but with a mask, code that mixes up the two lengths meets an error.

    Without one, PyTorch's fast attention would read past the shorter.
    """
    return *two_sequences(draw), torch.ones(3, 1, 6, dtype=torch.bool, device=draw.device)


def equally_long(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Seven positions on either side: here a mix-up of the two sequences gives numbers and no error."""
    return draw.normal(3, 7, 8), draw.normal(3, 7, 8)


def partly_hidden(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of the six positions that are asked, some are padding: another number in each sentence, and at least one."""
    real = draw.uniform(0, 1, 3, 1, 6).argsort(-1) < (draw.permutation(3) + 3).reshape(3, 1, 1)
    return draw.normal(3, 5, 8), draw.normal(3, 6, 8), real


# -------------------------------------------------------------------------------------------------- DecoderBlock

BLOCK = built(8, 2)


def drawn_masks(draw: Draw, b: int, t: int, s: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For the target time and padding, as `make_masks` makes them, for the source padding."""
    places = torch.arange(t, device=draw.device)
    lengths = (draw.permutation(b) + t - b + 1).reshape(b, 1, 1)
    return (places <= places.unsqueeze(-1)) & (places < lengths), draw.uniform(0, 1, b, 1, s).argsort(-1) < s - 2


def block_without_masks(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Target (3, 5, 8) and memory (3, 6, 8)."""
    return draw.normal(3, 5, 8), draw.normal(3, 6, 8)


def block_with_masks(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Target, memory, and a mask for each attention."""
    return *block_without_masks(draw), *drawn_masks(draw, 3, 5, 6)


def block_equally_long(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source and target of the same length: whoever mixes up the two gets numbers and no error."""
    return draw.normal(3, 7, 8), draw.normal(3, 7, 8), *drawn_masks(draw, 3, 7, 7)


# ------------------------------------------------------------------------------------------------ EncoderDecoder

PAD = 2
MODEL = built(9, 11, 8, 2, 2, 7, PAD)  # n_source = 9, n_target = 11, e = 8, h = 2, depth = 2, t_max = 7


def sources(draw: Draw) -> torch.Tensor:
    """Three sentences of 3 to 6 ids, padded: (3, 6)."""
    return padded(draw, 0, 9, PAD, draw.permutation(4)[:3] + 3, 6)


def targets(draw: Draw, t: int = 5) -> torch.Tensor:
    """Three sentences, padded: (3, t)."""
    return padded(draw, 0, 11, PAD, draw.permutation(3) + t - 2, t)


def source_and_target(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """What `sources` and `targets` draw."""
    return sources(draw), targets(draw)


def encoded(answer: Answer, draw: Draw) -> torch.Tensor:
    """What the student's encoder makes of drawn sources."""
    return MODEL(answer, draw).encode(sources(draw))


def decoded(answer: Answer, draw: Draw) -> torch.Tensor:
    """Logits for drawn targets, from a drawn memory: the student's encoder has no part in it."""
    source, target = source_and_target(draw)
    return MODEL(answer, draw).decode(target, draw.normal(3, 6, 8), source)


def forced(smoothing: float) -> Probe:
    """The loss of a model whose two halves are stand-ins: only what is fed, and what is asked for, counts.

    The stand-in's logits at a position depend on the token there and on those before it.
    """

    def probe(answer, draw):
        model, source, sentence = MODEL(answer, draw), sources(draw), targets(draw, 6)
        table = draw.normal(11, 11)
        memory = draw.normal(3, 6, 8)

        def decode(target, given, asked):
            """The logits (b, t, n) of what follows each target token."""
            if given is not memory or asked is not source:
                raise Unmet(
                    "`loss` has to decode with what `encode` returned for this source, and with the source itself."
                )
            return 2 * F.embedding(target, table) + F.embedding(target, table).cumsum(1)

        model.encode, model.decode = lambda _: memory, decode
        return model.loss(source, sentence, smoothing)

    return probe


# -------------------------------------------------------------------------------------------------- warmup_rate


def early_and_late(rate: Answer, draw: Draw) -> dict[str, float]:
    """Rates before, at and after the peak, for published and for drawn sizes."""
    drawn = draw.number(5, 60), 16 * draw.number(3, 30), draw.number(100, 900)
    asked = [(1, 512, 4000), (1000, 512, 4000), (4000, 512, 4000), (4001, 512, 4000), (100_000, 1024, 4000), drawn]
    return {f"step {step}, e = {e}, warmup = {warmup}": rate(step, e, warmup) for step, e, warmup in asked}


def at_step_0(rate: Answer, draw: Draw) -> dict[str, float]:
    """The learning rate before the first step, for a drawn width and warm-up."""
    e, warmup = 16 * draw.number(3, 30), draw.number(100, 900)
    return {f"step 0, e = {e}, warmup = {warmup}": rate(0, e, warmup)}


# ------------------------------------------------------------------------------------------------- smoothed_loss


def predictions(smoothing: float) -> Inputs:
    """Logits over 7 tokens for 3 sentences of up to 5 words, some of them padding, which is not 0."""

    def inputs(draw):
        pad = draw.number(1, 6)
        return 2 * draw.normal(3, 5, 7), padded(draw, 0, 7, pad, draw.permutation(4)[:3] + 2, 5), smoothing, pad

    return inputs


def extreme_predictions(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, float, int]:
    """Logits a hundred apart: the probability of the right token may be smaller than a float can be."""
    logits, ids, smoothing, pad = predictions(0.2)(draw)
    return 60 * logits, ids, smoothing, pad


# ---------------------------------------------------------------------------------------------- the two decoders


class Scripted(torch.nn.Module):
    """A stand-in for a trained model: what comes next is looked up in drawn tables. It counts how often it reads.

    The logits at position i depend on i, on all tokens up to there and on their order, and on the source.
    With `urgent`, the stop token is next for certain when the translation has become as long as the
    source, and neither before nor after.
    """

    def __init__(self, draw: Draw, n: int, pad: int, stop: int, urgent: bool, calm: float = 1.0):
        super().__init__()
        self.pad, self.stop, self.urgent = pad, stop, urgent
        self.times_read = 0
        shapes = {"words": (n, 5), "out": (5, n), "clock": (40, n), "places": (40, 5), "following": (n, n)}
        scale = {"out": 0.7 * calm, "clock": 1.5 * calm, "following": 2.0 * calm}
        for name, shape in shapes.items():
            self.register_buffer(name, scale.get(name, 1.0) * draw.named(name).normal(*shape))

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """What is made of the source, (b, s, e); counted."""
        self.times_read += 1
        return F.embedding(source, self.words)

    def decode(self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """The logits (b, t, n) of what follows each target token."""
        t = target.shape[1]
        past = (F.embedding(target, self.words) * self.places[:t]).cumsum(dim=1)
        logits = (past + 3 * memory.mean(dim=1, keepdim=True)) @ self.out
        logits = logits + self.clock[:t] + F.embedding(target, self.following)
        names = torch.arange(logits.shape[-1], device=logits.device)
        logits = logits - 500.0 * (names == self.pad)  # nobody predicts padding
        if self.urgent:
            length = (source != self.pad).sum(dim=1, keepdim=True)  # (b, 1)
            now = torch.arange(1, t + 1, device=target.device) == length  # (b, t)
            logits = logits + 1000.0 * (now.unsqueeze(-1).float() - 0.5) * (names == self.stop)
        return logits

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.decode(target, self.encode(source), source)


def many_sentences(draw: Draw) -> tuple[torch.nn.Module, torch.Tensor, int, int]:
    """A model of 11 tokens and seven sources, whose translations will have 2 to 8 tokens; ids of start and stop."""
    pad, start, stop = draw.named("ids").permutation(11)[:3].tolist()
    source = padded(draw, 0, 11, pad, draw.permutation(7) + 2, 9)
    return Scripted(draw, 11, pad, stop, urgent=True), source, start, stop


def greedily(limit: int) -> Probe:
    """The student's translation of many sentences, up to `limit` tokens."""

    def probe(answer, draw):
        model, source, start, stop = many_sentences(draw)
        return answer(model, source, start, stop, limit)

    return probe


def greedily_on(answer: Answer, draw: Draw) -> Callable:
    """The student's translation as a function of the source alone."""
    model, _, start, stop = many_sentences(draw)
    return lambda source: answer(model.to(source.device), source, start, stop, 9)


def the_sources(draw: Draw) -> tuple[torch.Tensor]:
    """The sentences of `many_sentences`."""
    return (many_sentences(draw)[1],)


def readings_greedy(answer: Answer, draw: Draw) -> torch.Tensor:
    """How often the encoder was asked."""
    model, source, start, stop = many_sentences(draw)
    answer(model, source, start, stop, 9)
    return torch.tensor(model.times_read)


def a_sentence(draw: Draw, n: int, urgent: bool) -> tuple[torch.nn.Module, torch.Tensor, int, int]:
    """A model of n tokens that is not very sure of itself, and one source of six words; ids of start and stop."""
    pad, start, stop = draw.named("ids").permutation(n)[:3].tolist()
    source = padded(draw, 0, n, pad, torch.tensor([6], device=draw.device), 7)
    return Scripted(draw, n, pad, stop, urgent, calm=0.4), source, start, stop


def searched(widths: tuple[int, ...], n: int, limit: int, urgent: bool) -> Probe:
    """What is found for many sentences, each with tables of its own; (sentences, limit), −1 behind the end.

    With `urgent` all beams finish together. There are several customs for beams that finish before the others (its
    place stays empty, is filled again, or it may be pushed out by others later), and all of them find the same then;
    and with room for every candidate.
    """

    def probe(answer, draw):
        rows = []
        for place, width in enumerate(widths):
            model, source, start, stop = a_sentence(draw.named(str(place)), n, urgent)
            found = answer(model, source, start, stop, limit, width)
            if not isinstance(found, torch.Tensor) or found.dim() != 1 or len(found) > limit:
                shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
                raise Unmet(
                    f"Your function has to return the ids of one sentence, (t,), t ≤ {limit}; it returns {shape}."
                )
            rows.append(F.pad(found, (0, limit - len(found)), value=-1))
        return torch.stack(tuple(rows))

    return probe


def readings_beam(answer: Answer, draw: Draw) -> torch.Tensor:
    """How often the encoder was asked during a beam search: (), int64."""
    model, source, start, stop = a_sentence(draw, 7, urgent=False)
    answer(model, source, start, stop, 5, 3)
    return torch.tensor(model.times_read)


def searched_on(answer: Answer, draw: Draw) -> Callable:
    """The student's beam search as a function of the source alone."""
    model, _, start, stop = a_sentence(draw, 7, urgent=False)
    return lambda source: answer(model.to(source.device), source, start, stop, 5, 3)


def the_source(draw: Draw) -> tuple[torch.Tensor]:
    """The sentence of `a_sentence`."""
    return (a_sentence(draw, 7, urgent=False)[1],)


LESSON = Lesson(
    "10_encoder_decoder",
    "Reading one language, writing another",
    minutes=90,
    exercises=(
        Exercise(
            "make_masks",
            stars=2,
            minutes=7,
            aspects=(
                Aspect("source on source", 0.5, one_mask(0, a_batch), axes="b 1 s", dtype=True, picture=True),
                Aspect("target on target", 1, one_mask(1, a_batch), axes="b t t", dtype=True, picture=True),
                Aspect("target on source", 0.5, one_mask(2, a_batch), axes="b 1 s", dtype=True, picture=True),
                Aspect("padding in front", 0.5, one_mask(1, padded_in_front), axes="b t t", dtype=True, picture=True),
                any_device(0.5, a_batch),
            ),
            forbidden={"finished_masks": FINISHED},
        ),
        Exercise(
            "CrossAttention",
            stars=2,
            minutes=8,
            aspects=(
                values(1, seen_whole, via=CROSS, axes="b t e", picture=True),
                values(0.5, equally_long, name="equal lengths", via=CROSS, axes="b t e", picture=True),
                values(1, partly_hidden, name="mask", via=CROSS, axes="b t e", picture=True),
                any_device(0.5, partly_hidden, via=CROSS),
            ),
            forbidden={
                "FinishedCrossAttention": FINISHED,
                "MultiheadAttention": "It is PyTorch's own, and this exercise is there to write it.",
            },
        ),
        Exercise(
            "DecoderBlock",
            stars=3,
            minutes=10,
            aspects=(
                values(1, block_without_masks, via=BLOCK, axes="b t e", picture=True),
                values(1.5, block_with_masks, name="masks", via=BLOCK, axes="b t e", picture=True),
                values(0.5, block_equally_long, name="equal lengths", via=BLOCK, axes="b t e", picture=True),
                input_left_alone(0.5, block_with_masks, via=BLOCK),
                any_device(0.5, block_with_masks, via=BLOCK),
            ),
            forbidden={
                "FinishedDecoderBlock": FINISHED,
                "TransformerDecoderLayer": (
                    "It is PyTorch's own, and the lesson holds yours against it. Write out what it does."
                ),
            },
        ),
        Exercise(
            "EncoderDecoder",
            stars=3,
            minutes=12,
            aspects=(
                Aspect("encode", 1, encoded, axes="b s e", picture=True),
                Aspect("decode", 1, decoded, axes="b t n", picture=True),
                Aspect("teacher forcing", 1, forced(0.0), rtol=1e-4),
                Aspect("smoothing handed on", 0.5, forced(0.3), rtol=1e-4),
                any_device(0.5, source_and_target, via=MODEL),
            ),
            forbidden={
                "FinishedModel": FINISHED,
                "Transformer": "`nn.Transformer` is PyTorch's own, and this exercise is there to write it.",
            },
        ),
        Exercise(
            "smoothed_loss",
            stars=3,
            minutes=12,
            aspects=(
                values(1.5, predictions(0.1), rtol=1e-4),
                values(0.5, predictions(0.0), name="without smoothing", rtol=1e-4),
                values(0.5, extreme_predictions, name="logits far apart", rtol=1e-4),
                gradient(1, predictions(0.1)),
                any_device(0.5, predictions(0.1)),
            ),
            forbidden={"finished_loss": FINISHED},
        ),
        Exercise(
            "warmup_rate",
            stars=1,
            minutes=4,
            aspects=(
                Aspect("rates", 1.5, early_and_late, accepts="number", rtol=1e-4, atol=1e-12),
                Aspect("step 0", 0.5, at_step_0, accepts="number", rtol=1e-4, atol=1e-12),
            ),
        ),
        Exercise(
            "greedy_decode",
            stars=2,
            minutes=10,
            aspects=(
                Aspect("tokens", 1.5, greedily(9), axes="b t", dtype=True),
                Aspect("limit", 0.5, greedily(4), axes="b t", dtype=True),
                Aspect("encoder once", 0.5, readings_greedy, side=True, accepts="number", missed=ONCE),
                any_device(0.5, the_sources, via=greedily_on),
            ),
        ),
        Exercise(
            "beam_search",
            stars=3,
            minutes=15,
            aspects=(
                Aspect("several beams", 2, searched((2, 3, 4) * 12, 7, 8, urgent=True), axes="sentence t", dtype=True),
                Aspect("one beam", 0.5, searched((1,) * 8, 7, 5, urgent=False), axes="sentence t", dtype=True),
                Aspect("room for all", 1, searched((64,) * 12, 4, 3, urgent=False), axes="sentence t", dtype=True),
                Aspect("encoder once", 0.5, readings_beam, side=True, accepts="number", missed=ONCE),
                any_device(0.5, the_source, via=searched_on),
            ),
        ),
    ),
)
