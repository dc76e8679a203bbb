"""Lesson 10: the encoder, the decoder, and two ways of writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from helpers.exercises.aspects import Fault, Inputs, built, kind_of, together
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import (
    ATTENTION_OPERATORS,
    LOSS_OPERATORS,
    NORM_OPERATORS,
    Answer,
    Aspect,
    Lesson,
    Probe,
)
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    any_device,
    bools,
    case,
    exercise,
    gradient,
    input_left_alone,
    module,
    normal,
    values,
    with_larger,
)

PYTORCHS = "It is PyTorch's own, and this exercise is there to write it."
COMPARED = "It is PyTorch's own, and the lesson compares yours with it. Write out what it does."
FINISHED = "The finished part is there for the exercises that build on this one; write it here."
ONCE = "`model.encode` must run exactly once in each call: the memory does not change while the translation grows."
END_OF_ROW = -1  # what a row of ids is filled up with


def padded(draw: Draw, low: int, high: int, pad: int, lengths: torch.Tensor, t: int) -> torch.Tensor:
    """Rows of ids from low to high − 1, none of them pad, of these lengths, filled up to t with pad. Returns (b, t)."""
    ids = draw.integers(low, high - 1, len(lengths), t)
    ids = ids + (ids >= pad)  # every id but pad
    places = torch.arange(t, device=draw.device)
    return torch.where(places < lengths.unsqueeze(-1), ids, pad)


# --------------------------------------------------------------------------------------------------- make_masks


def a_batch(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Three sources of up to 6 words and three targets of up to 4, padded behind. 0 is a word."""
    pad = draw.number(2, 6)
    source = padded(draw, 0, 9, pad, draw.permutation(4)[:3] + 3, 6)
    target = padded(draw, 0, 9, pad, draw.permutation(3) + 2, 4)
    source[0, 0] = target[0, 0] = 0
    return source, target, pad


def padded_in_front(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The same with the padding before the words."""
    source, target, pad = a_batch(draw)
    return source.flip(1), target.flip(1), pad


def padded_between(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Padding between the words; which may stand anywhere."""
    source, target, pad = a_batch(draw)
    source[:, 2], target[:, 1] = pad, pad
    return source, target, pad


def one_sentence(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """A batch of one, and a target that is longer than its source."""
    pad = draw.number(2, 6)
    source, target = (padded(draw, 0, 9, pad, torch.tensor([t - 1], device=draw.device), t) for t in (3, 5))
    return source, target, pad


def single_words(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Two sources and two targets of a single word: (2, 1)."""
    pad = draw.number(2, 6)
    one = torch.ones(2, dtype=torch.int64, device=draw.device)
    return padded(draw, 0, 9, pad, one, 1), padded(draw, 0, 9, pad, one, 1), pad


def long_sentences(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Many sentences of 65 words or more, padded behind."""
    b, s, t, pad = draw.number(9, 13), draw.number(66, 80), draw.number(66, 80), draw.number(20, 60)
    source, target = (padded(draw, 0, 300, pad, draw.integers(65, length + 1, b), length) for length in (s, t))
    return source, target, pad


FEWER = {"with one sentence": one_sentence, "with sentences of one word": single_words}
GAPS = {"with padding between the words": padded_between}

make_masks = exercise(
    "make_masks",
    stars=2,
    minutes=6,
    fixes_bug=True,
    forbidden={"finished_masks": FINISHED},
    builds_on=("masks.causal_mask",),
    given=a_batch,
    also=FEWER | {"with padding in front": padded_in_front} | GAPS,
    larger=long_sentences,
    returns=("source on source", "target on target", "target on source"),
    aspects=(
        values(0.5, of="source on source", axes="b 1 s", dtype=True, picture=True),
        values(1, of="target on target", also=FEWER, axes="b t t", dtype=True, picture=True),
        values(0.5, of="target on source", axes="b 1 s", dtype=True, picture=True),
        values(
            0.5,
            of="target on target",
            name="padding in front",
            given=padded_in_front,
            also=GAPS,
            axes="b t t",
            dtype=True,
            picture=True,
        ),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------ CrossAttention


def partly_hidden(b: int = 3, t: int = 5, s: int = 7) -> Inputs:
    """Of the memory's positions some are hidden, in front, behind or between: at least one is left in each row."""

    def inputs(draw):
        real = draw.uniform(0, 1, b, 1, s).argsort(-1) < (draw.permutation(b) + s - b).reshape(b, 1, 1)
        return draw.normal(b, t, 12), draw.normal(b, s, 12), real

    return inputs


def one_left(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Large scores, and a single position of each memory that is left, which may have the lowest."""
    places = torch.arange(7, device=draw.device)
    return draw.normal(3, 5, 12, std=8.0), draw.normal(3, 7, 12, std=8.0), places == draw.integers(0, 7, 3, 1, 1)


def long_sequences(draw: Draw, d: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (b, t, e), memory (b, s, e) and its mask, for heads of width d. Few numbers are large."""
    b, t, s, e = draw.number(9, 12), draw.number(24, 33), draw.number(66, 80), d * draw.number(5, 8)
    real = draw.mask(0.7, b, 1, s)
    real[..., draw.number(0, s)] = True
    return draw.heavy(b, t, e, most=12), draw.heavy(b, s, e, most=12), real


cross_attention = exercise(
    "CrossAttention",
    stars=2,
    minutes=8,
    forbidden={
        "FinishedCrossAttention": FINISHED,
        "MultiheadAttention": PYTORCHS,
    },
    by_hand=PYTORCHS,
    operators=ATTENTION_OPERATORS,
    builds_on=("multi_head.merge_heads", "multi_head.split_heads"),
    given=partly_hidden(),
    via=built(12, 2),  # e = 12 in 2 heads of width 6; 3 sentences, t = 5, s = 7
    aspects=(
        # Nothing is hidden, but a mask is given, so that code that mixes up the two lengths meets an error. Without
        # one, PyTorch's fast attention would read past the shorter sequence.
        values(0.5, given=case(normal(3, 5, 12), normal(3, 7, 12), bools([[[1] * 7]] * 3)), axes="b t e", picture=True),
        # No mask: here a mix-up of the two sequences gives numbers and no error.
        values(
            0.5,
            name="equal lengths",
            given=case(normal(3, 7, 9), normal(3, 7, 9)),
            via=built(9, 3),
            axes="b t e",
            picture=True,
        ),
        values(
            1,
            name="mask",
            also={
                "with t = 1": partly_hidden(t=1),
                "with a batch of one": partly_hidden(b=1),
                "with t = 1 and s = 2, one position hidden": partly_hidden(b=1, t=1, s=2),
                "with large scores, one position left": one_left,
            },
            larger=lambda draw: long_sequences(draw, 6),
            via=module(lambda x, *others: ((x.shape[-1], x.shape[-1] // 6), (x, *others))),
            axes="b t e",
            picture=True,
        ),
        # t = s: PyTorch's fast attention would write past the shorter sequence
        gradient(0.5, given=partly_hidden(t=7), weights=True),
        any_device(0.5),
    ),
)

# -------------------------------------------------------------------------------------------------- DecoderBlock


def drawn_masks(draw: Draw, b: int, t: int, s: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The masks of target on target, which hides the future and padding, and of target on source; with gaps."""
    places = torch.arange(t, device=draw.device)
    words = (places == 0) | draw.mask(0.7, b, 1, t)
    return (places <= places.unsqueeze(-1)) & words, draw.uniform(0, 1, b, 1, s).argsort(-1) < s - 2


def with_masks(t: int = 5, s: int = 6, e: int = 8, hides: str = "both") -> Inputs:
    """Target (3, t, e), memory (3, s, e), and a mask for each attention; for one alone where `hides` is its name."""

    def inputs(draw):
        target, memory = draw.normal(3, t, e), draw.normal(3, s, e)
        own, cross = drawn_masks(draw, 3, t, s)
        return target, memory, own if hides != "cross" else None, cross if hides != "self" else None

    return inputs


def small_block(b: int, t: int, s: int) -> Inputs:
    """Target (b, t, 8), memory (b, s, 8), and the target's triangle and all of the source as masks."""

    def inputs(draw):
        triangle = torch.ones(b, t, t, dtype=torch.bool, device=draw.device).tril()
        return draw.normal(b, t, 8), draw.normal(b, s, 8), triangle, draw.normal(b, 1, s) < 9

    return inputs


def long_block(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Long sequences for heads of width 4, and both masks."""
    x, memory, real = long_sequences(draw, 4)
    return x, memory, drawn_masks(draw, len(x), x.shape[1], memory.shape[1])[0], real


decoder_block = exercise(
    "DecoderBlock",
    stars=1,
    minutes=8,
    forbidden={
        "FinishedDecoderBlock": FINISHED,
        "TransformerDecoderLayer": COMPARED,
    },
    by_hand=COMPARED,
    operators=(*ATTENTION_OPERATORS, *NORM_OPERATORS),
    builds_on=("blocks.FeedForward", "blocks.LayerNorm", "blocks.SelfAttention", "encoder_decoder.CrossAttention"),
    given=with_masks(),
    via=built(8, 2),
    aspects=(
        values(1, given=case(normal(3, 5, 8), normal(3, 6, 8)), axes="b t e", picture=True),
        values(
            1,
            name="masks",
            also={
                "with a mask for the self-attention alone": with_masks(hides="self"),
                "with a mask for the cross-attention alone": with_masks(hides="cross"),
                "with a batch of one": small_block(1, 5, 6),
                "with a target of one position": small_block(3, 1, 6),
                "for one position of target and source": small_block(1, 1, 1),
            },
            larger=long_block,
            via=module(lambda x, *others: ((x.shape[-1], x.shape[-1] // 4), (x, *others))),
            axes="b t e",
            picture=True,
        ),
        # a mix-up of the two gives numbers and no error
        values(0.5, name="equal lengths", given=with_masks(7, 7, 6), via=built(6, 3), axes="b t e", picture=True),
        gradient(0.5, weights=True),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------ EncoderDecoder

PAD = 2
MODEL = built(9, 11, 8, 2, 2, 7, PAD)  # n_source = 9, n_target = 11, e = 8, h = 2, depth = 2, t_max = 7
SHALLOW = built(8, 10, 6, 3, 1, 9, 4)  # of depth 1, with other sizes and pad = 4, for gradients and devices


def sources(draw: Draw, b: int = 3, s: int = 6, n: int = 9, pad: int = PAD) -> torch.Tensor:
    """Padded sentences of different lengths, up to s ids: (b, s). 0 is a word; the first sentence begins with it."""
    ids = padded(draw, 0, n, pad, draw.permutation(min(b + 1, s))[:b] + s - min(b + 1, s) + 1, s)
    ids[0, 0] = 0
    return ids


def targets(draw: Draw, t: int = 5, b: int = 3, n: int = 11, pad: int = PAD) -> torch.Tensor:
    """Padded sentences: (b, t). 0 is a word; the first sentence begins with it."""
    ids = padded(draw, 0, n, pad, draw.permutation(b) + t - b + 1, t)
    ids[0, 0] = 0
    return ids


def encoded(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The memory that the student's encoder returns for drawn sources."""
    model = MODEL(answer, draw)
    return {
        "result": model.encode(sources(draw)),
        "with one sentence": model.encode(sources(draw, b=1)),
        "with sentences of one word": model.encode(sources(draw, b=1, s=1).repeat(2, 1)),
        "for one word alone": model.encode(sources(draw, b=1, s=1)),
    }


def decoded(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """Logits for drawn targets and a drawn memory, without the student's encoder."""
    model = MODEL(answer, draw)
    source, target = sources(draw), targets(draw)
    one = sources(draw, b=1, s=4)
    return {
        "result": model.decode(target, draw.normal(3, 6, 8), source),
        "with one sentence": model.decode(targets(draw, b=1), draw.normal(1, 4, 8), one),
        "with depth 1": SHALLOW(answer, draw).decode(targets(draw, n=10, pad=4), draw.normal(3, 6, 6), source),
        "with targets of one word": model.decode(target[:, :1], draw.normal(3, 6, 8), source),
        "for one word alone": model.decode(target[:1, :1], draw.normal(1, 4, 8), one),
    }


def large_model(answer: Answer, draw: Draw) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """The student's model, with many words, heads and blocks, and padded sources and targets of 65 words or more."""
    n_source, n_target, h, pad = draw.number(30, 40), draw.number(40, 50), draw.number(3, 5), draw.number(9, 30)
    model = built(n_source, n_target, 4 * h, h, 3, draw.number(80, 120), pad)(answer, draw)
    b, s, t = draw.number(4, 6), draw.number(66, 71), draw.number(66, 71)
    source, target = (
        padded(draw, 0, n, pad, draw.integers(65, length + 1, b), length)
        for n, length in ((n_source, s), (n_target, t))
    )
    return model, source, target


def encoded_at_length(answer: Answer, draw: Draw) -> torch.Tensor:
    """The memory of many long sources."""
    model, source, _ = large_model(answer, draw)
    return model.encode(source)


def decoded_at_length(answer: Answer, draw: Draw) -> torch.Tensor:
    """The logits for many long targets and a drawn memory, of which few numbers are large."""
    model, source, target = large_model(answer, draw)
    return model.decode(target, draw.heavy(*source.shape, model.target_tokens.embedding_dim, most=12), source)


class StandInHalves:
    """An `encode` and a `decode` without weights, to put in a model's place, that check their arguments.

    The logits at a position depend on the token there and on those before it.
    """

    def __init__(self, source: torch.Tensor, table: torch.Tensor, memory: torch.Tensor):
        self._source, self._table, self._memory = source, table, memory

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """The memory, for the right source."""
        if not torch.equal(source, self._source):
            raise Fault("`loss` must pass its source on to `encode` unchanged.")
        return self._memory

    def decode(self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """The logits (b, t, n) of what follows each target token."""
        if not torch.equal(memory, self._memory) or not torch.equal(source, self._source):
            raise Fault("`loss` must pass to `decode` what `encode` returned, and the source itself.")
        vectors = F.embedding(target, self._table)
        return 2 * vectors + vectors.cumsum(1)

    def loss(self, model: Any, sentence: torch.Tensor, smoothing: float) -> torch.Tensor:
        """The loss that the model computes with these halves in place of its own."""
        model.encode, model.decode = self.encode, self.decode
        return model.loss(self._source, sentence, smoothing)


def forced(*smoothings: float) -> Probe:
    """The losses of a model with stand-ins for its halves, so that only what is read and what is asked for matters."""

    def probe(answer, draw):
        losses = {}
        for smoothing in smoothings:
            for said, b in (
                (f"with smoothing {smoothing:g}", 3),
                (f"for one sentence with smoothing {smoothing:g}", 1),
            ):
                source = sources(draw, b)
                halves = StandInHalves(source, draw.normal(11, 11), draw.normal(b, 6, 8))
                losses[said] = halves.loss(MODEL(answer, draw), targets(draw, 6, b), smoothing)
        return losses

    return probe


def forced_at_length(answer: Answer, draw: Draw) -> torch.Tensor:
    """The loss of many long sentences, with stand-ins for the model's halves."""
    b, n, pad = draw.number(5, 8), draw.number(60, 90), draw.number(20, 50)
    source, sentence = (padded(draw, 0, n, pad, draw.integers(65, 72, b), 71) for _ in range(2))
    halves = StandInHalves(source, draw.heavy(n, n, most=12) / 4, draw.normal(b, 71, 6))
    return halves.loss(built(n, n, 6, 1, 1, 80, pad)(answer, draw), sentence, draw.uniform(0.1, 0.9).item())


def learning(answer: Answer, draw: Draw) -> Callable:
    """The student's loss for drawn sentences, as a module whose weights have a gradient."""
    model = SHALLOW(answer, draw)

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def named_parameters(self, *_, **__):
            return model.named_parameters()

        def forward(self, source, sentence):
            return model.loss(source, sentence, 0.1)

    return Loss()


encoder_decoder = exercise(
    "EncoderDecoder",
    stars=3,
    minutes=12,
    forbidden={
        "FinishedModel": FINISHED,
        "Transformer": PYTORCHS,
    },
    by_hand=PYTORCHS,
    operators=(*ATTENTION_OPERATORS, *NORM_OPERATORS, *LOSS_OPERATORS),
    builds_on=(
        "blocks.TransformerBlock",
        "encoder_decoder.DecoderBlock",
        "encoder_decoder.make_masks",
        "encoder_decoder.smoothed_loss",
        "positions.sinusoidal_encoding",
    ),
    given=lambda draw: (sources(draw, s=5, n=8, pad=4), targets(draw, 7, n=10, pad=4)),
    via=learning,
    aspects=(
        Aspect("encode", 1, with_larger(encoded, encoded_at_length), axes="b s e", picture=True),
        Aspect("decode", 1, with_larger(decoded, decoded_at_length), axes="b t n", picture=True),
        Aspect(
            "teacher forcing",
            0.5,
            forced(0.0),
            rtol=1e-4,
            missed=(
                "Remember: the decoder reads the sentence without its last token and has to predict it without its"
                " first; targets that are `pad` do not count."
            ),
        ),
        Aspect("smoothing handed on", 0.5, with_larger(forced(0.3, 0.7), forced_at_length), rtol=1e-4),
        gradient(0.5, weights=True),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------- smoothed_loss


def predictions(smoothing: float, b: int = 3, t: int = 5, n: int = 7) -> Inputs:
    """Logits (b, t, n) for sentences of up to t words, padded behind, with a pad that is not 0."""

    def inputs(draw):
        pad = draw.number(1, n - 1)
        lengths = draw.permutation(max(b, t - 1))[:b] % (t - 1 or 1) + (t > 1) + 1
        return 2 * draw.normal(b, t, n), padded(draw, 0, n, pad, lengths, t), smoothing, pad

    return inputs


def far_apart(smoothing: float, b: int = 3) -> Inputs:
    """Logits hundreds apart, so that a softmax in float32 has exact zeros; once the padding has the largest."""

    def inputs(draw):
        logits, targets, _, pad = predictions(smoothing, b)(draw)
        logits[0, 0, pad] = logits.max() + 1
        return 60 * logits, targets, smoothing, pad

    return inputs


def padded_targets_between(smoothing: float) -> Inputs:
    """The same with padding before and between the words, and a pad of 0."""

    def inputs(draw):
        logits, targets = 2 * draw.normal(3, 5, 7), draw.integers(1, 7, 3, 5)
        targets[0, 1] = targets[1, 0] = targets[1, 3] = 0
        return logits, targets, smoothing, 0

    return inputs


def many_predictions(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, float, int]:
    """Logits (b, t, n) of which few are large, for sentences of 65 words or more, with a drawn smoothing."""
    b, t, n, pad = draw.number(5, 9), draw.number(70, 80), draw.number(70, 90), draw.number(20, 60)
    targets = padded(draw, 0, n, pad, draw.integers(65, t + 1, b), t)
    return draw.heavy(b, t, n), targets, draw.uniform(0.1, 0.9).item(), pad


def hundredfold(answer: Answer, draw: Draw) -> Callable:
    """The student's loss times 100, so that its gradients are not small beside the tolerance."""

    def call(*arguments):
        loss = answer(*arguments)
        return 100 * loss if isinstance(loss, torch.Tensor) else loss

    return call


smoothed_loss = exercise(
    "smoothed_loss",
    stars=3,
    minutes=12,
    forbidden={"finished_loss": FINISHED},
    given=predictions(0.1),
    also={
        "with one sentence": predictions(0.1, b=1, n=9),
        "with sentences of one word": predictions(0.25, t=1, n=5),
        "for one word alone": predictions(0.4, b=1, t=1, n=3),
        "with smoothing 1": predictions(1.0),
    },
    larger=many_predictions,
    aspects=(
        values(1.5, rtol=1e-4),
        values(
            0.5,
            name="without smoothing",
            given=predictions(0.0),
            also={
                "with one sentence": predictions(0.0, b=1),
                "with padding between the words, of id 0": padded_targets_between(0.0),
            },
            rtol=1e-4,
        ),
        values(
            0.5,
            name="logits far apart",
            given=far_apart(0.2),
            also={
                "with one sentence": far_apart(0.3, b=1),
                "without smoothing": far_apart(0.0),
                "with smoothing 1": far_apart(1.0),
            },
            rtol=1e-4,
            missed="Remember: some probabilities here are too small for float32, yet their logarithms count.",
        ),
        gradient(0.5, via=hundredfold, also={"with padding between the words": padded_targets_between(0.3)}),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ---------------------------------------------------------------------------------------------- the two decoders


class Scripted(torch.nn.Module):
    """A stand-in for a trained model, with drawn tables in place of blocks. It counts how often `encode` is called.

    The logits at position i depend on i, on all tokens up to there and on their order, and on the source.
    urgent: the stop token is certain to come when the translation is as long as the source, and impossible before.
    calm: below 1, the model is less sure of itself. longest: how many positions it knows.
    """

    words: torch.Tensor
    out: torch.Tensor
    clock: torch.Tensor
    places: torch.Tensor
    following: torch.Tensor

    def __init__(self, draw: Draw, n: int, pad: int, stop: int, urgent: bool, calm: float = 1.0, longest: int = 40):
        super().__init__()
        self.pad, self.stop, self.urgent = pad, stop, urgent
        self.times_read = 0
        shapes = {"words": (n, 5), "out": (5, n), "clock": (longest, n), "places": (longest, 5), "following": (n, n)}
        scale = {"out": 0.7 * calm, "clock": 0.5 * calm, "following": 2.0 * calm}
        for name, shape in shapes.items():
            self.register_buffer(name, scale.get(name, 1.0) * draw.weights(name, *shape))
        self.following[:, pad] -= 500.0  # nobody predicts padding
        self.only_stop: torch.Tensor
        self.register_buffer("only_stop", 1000.0 * (torch.arange(n, device=draw.device) == stop))

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """The memory (b, s, e). The call is counted."""
        self.times_read += 1
        return F.embedding(source, self.words)

    def decode(self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """The logits (b, t, n) of what follows each target token."""
        t = target.shape[1]
        past = (F.embedding(target, self.words) * self.places[:t]).cumsum(dim=1)
        logits = (past + 3 * memory.mean(dim=1, keepdim=True)) @ self.out
        logits = logits + self.clock[:t] + F.embedding(target, self.following)
        if self.urgent:
            length = (source != self.pad).sum(dim=1, keepdim=True)  # (b, 1)
            now = torch.arange(1, t + 1, device=target.device) == length  # (b, t)
            logits = logits + (now.unsqueeze(-1).float() - 0.5) * self.only_stop
        return logits

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.decode(target, self.encode(source), source)


Table = dict[str, tuple[float, ...]]  # the probability of each next token (a, c, d, f, stop) after each token

# In the second step "a stop" finishes with 0.16 and, among three beams, "f stop" with 0.15; "a c" is left, alone. Its
# likelier token, d, leads nowhere; the other one, f, leads to "a c f stop" with 0.19, which is found only by a search
# that has more than one place left.
FORK: Table = {
    "start": (0.80, 0.02, 0.02, 0.15, 0.01),
    "a": (0.06, 0.6125, 0.06, 0.0675, 0.20),
    "c": (0.002, 0.002, 0.594, 0.40, 0.002),
    "d": (0.2, 0.2, 0.2, 0.2, 0.2),
    "f": (0.002, 0.002, 0.002, 0.002, 0.992),
}
# The best sentence of up to three tokens is "d stop", with 0.05. In the second step nine others have 0.11.
LATE: Table = {
    "start": (0.315, 0.315, 0.05, 0.315, 0.001),
    "a": (0.333, 0.333, 0.0002, 0.333, 0.0002),
    "c": (0.333, 0.333, 0.0002, 0.333, 0.0002),
    "d": (0.002, 0.002, 0.002, 0.002, 0.992),
    "f": (0.333, 0.333, 0.0002, 0.333, 0.0002),
}
# Normalised, the likeliest token has 0.31 everywhere: the probability of a hundred of them underflows in float32.
UNSURE: Table = {
    "start": (0.21, 0.21, 0.28, 0.21, 0.002),
    "a": (0.21, 0.28, 0.21, 0.21, 0.002),
    "c": (0.21, 0.21, 0.21, 0.28, 0.002),
    "d": (0.28, 0.21, 0.21, 0.21, 0.002),
    "f": (0.21, 0.21, 0.28, 0.21, 0.002),
}


class Tabled(Scripted):
    """A stand-in of seven tokens whose predictions are those of a table, in drawn names."""

    def __init__(self, draw: Draw, pad: int, start: int, stop: int, table: Table, longest: int = 40):
        super().__init__(draw, 7, pad, stop, urgent=False, longest=longest)
        a, c, d, f = (token for token in draw.named("fork").permutation(7).tolist() if token not in (pad, start, stop))
        probabilities = torch.full((7, 7), 1 / 7, device=draw.device)
        for token, row in zip((start, a, c, d, f), table.values(), strict=True):
            probabilities[token] = 1e-4
            probabilities[token, [a, c, d, f, stop]] = torch.tensor(row, device=draw.device)
        self.table: torch.Tensor
        self.register_buffer("table", probabilities.log())

    def decode(self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """The logits (b, t, n): those of the table, a little different at each position."""
        return F.embedding(target, self.table) + 0.01 * self.clock[: target.shape[1]].clamp(-1, 1)


def many_sentences(draw: Draw, s: int = 9, one_id: bool = False) -> tuple[torch.nn.Module, torch.Tensor, int, int]:
    """A model of 11 tokens and seven sources, whose translations will have 2 to 8 tokens; ids of start and stop.

    one_id: these two are the same.
    """
    pad, start, stop = draw.named("ids").permutation(11)[:3].tolist()
    source = padded(draw, 0, 11, pad, draw.permutation(7) + 2, s)
    return Scripted(draw, 11, pad, stop, urgent=True), source, stop if one_id else start, stop


def greedily(limit: int) -> Probe:
    """The student's translations of many sentences, up to `limit` tokens; of one alone; and by two other models.

    With the tables of one model, two different mistakes may write the same.
    """

    def probe(answer, draw):
        model, source, start, stop = many_sentences(draw)
        together = answer(model, source, start, stop, limit)
        others = {
            said: answer(*many_sentences(draw.named(of), s=8), limit)
            for said, of in (("with another model", "another model"), ("with one more model", "a third model"))
        }
        alone = {
            f"for sentence {row} alone": answer(model, source[row : row + 1], start, stop, limit) for row in (0, 3)
        }
        one = answer(model, source, start, stop, 1)
        return {"result": together, **alone, "with room for one token": one, **others}

    return probe


def greedily_with_other_ids(answer: Answer, draw: Draw) -> object:
    """The same up to nine tokens; and with one id for start and stop."""
    of_ids = {"with one id for start and stop": lambda drawn: many_sentences(drawn, one_id=True)}
    return together(greedily(9)(answer, draw), of_ids, draw, lambda arguments: answer(*arguments, 9))


def greedily_at_length(answer: Answer, draw: Draw) -> torch.Tensor:
    """The student's translations of many sources of 20 to 70 tokens, the longest cut off.

    In double precision: of so many choices between two tokens, one would be nearly even.
    """
    b, s, n = draw.number(9, 12), draw.number(66, 69), draw.number(15, 30)
    pad, start, stop = draw.named("ids").permutation(n)[:3].tolist()
    source = padded(draw, 0, n, pad, draw.integers(20, s + 1, b), s)
    model = Scripted(draw, n, pad, stop, urgent=True, longest=80).double()
    return answer(model, source, start, stop, s - draw.number(0, 2))


def greedily_on(answer: Answer, draw: Draw) -> Callable:
    """The student's translation as a function of the source alone."""
    model, _, start, stop = many_sentences(draw)
    return lambda source: answer(model.to(source.device), source, start, stop, 9)


def readings_greedy(answer: Answer, draw: Draw) -> torch.Tensor:
    """How often the encoder was called during greedy decoding: (), int64."""
    model, source, start, stop = many_sentences(draw)
    answer(model, source, start, stop, 9)
    return torch.tensor(model.times_read)


greedy_decode = exercise(
    "greedy_decode",
    stars=2,
    minutes=10,
    builds_on=("encoder_decoder.without_training",),
    given=lambda draw: (many_sentences(draw)[1],),
    via=greedily_on,
    aspects=(
        Aspect("tokens", 1.5, with_larger(greedily_with_other_ids, greedily_at_length), axes="b t"),
        Aspect("limit", 0.5, greedily(4), axes="b t", dtype=True),
        Aspect("encoder once", 0.5, readings_greedy, side=True, accepts="number", missed=ONCE),
        any_device(0.5),
    ),
)


def a_sentence(draw: Draw, n: int, urgent: bool) -> tuple[torch.nn.Module, torch.Tensor, int, int]:
    """A model of n tokens that is not very sure of itself, one source of six words, and the ids of start and stop."""
    pad, start, stop = draw.named("ids").permutation(n)[:3].tolist()
    source = padded(draw, 0, n, pad, torch.tensor([6], device=draw.device), draw.number(7, 9))
    return Scripted(draw, n, pad, stop, urgent, calm=0.4), source, start, stop


def a_tabled_sentence(draw: Draw, table: Table) -> tuple[torch.nn.Module, torch.Tensor, int, int]:
    """As `a_sentence`, with a model of that table."""
    _, source, start, stop = a_sentence(draw, 7, urgent=False)
    pad = int(source[0, -1])
    return Tabled(draw, pad, start, stop, table), source, start, stop


def filled_up(ids: object, limit: int) -> torch.Tensor:
    """One sentence's ids with END_OF_ROW after them: (limit,). Fault says what came instead."""
    if not isinstance(ids, torch.Tensor) or ids.dim() != 1 or len(ids) > limit:
        shape = f"a tensor of shape {tuple(ids.shape)}" if isinstance(ids, torch.Tensor) else kind_of(ids)
        raise Fault(f"Your function has to return the ids of one sentence, (t,), with t ≤ {limit}; it returns {shape}.")
    return F.pad(ids, (0, limit - len(ids)), value=END_OF_ROW)


def searched(widths: tuple[int, ...], n: int, limit: int, urgent: bool, tables: tuple[Table, ...] = ()) -> Probe:
    """The student's translations (sentences, limit), END_OF_ROW after the end; each sentence has a model of its own.

    widths: one for each sentence. tables: those of the models of the first sentences; the others are drawn. With
    `urgent` all beams finish together, and with room for all candidates no place is missing: there it does not matter
    who keeps the place of a finished beam.
    """

    def probe(answer, draw):
        rows = []
        for place, width in enumerate(widths):
            own = draw.named(str(place))
            drawn = a_tabled_sentence(own, tables[place]) if place < len(tables) else a_sentence(own, n, urgent)
            model, source, start, stop = drawn
            rows.append(filled_up(answer(model, source, start, stop, limit, width), limit))
        return torch.stack(tuple(rows))

    return probe


def searched_with_one_id(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """As `searched` gives it, for beams that end together; and for one id as start and stop."""
    model, source, _, stop = a_sentence(draw.named("one id"), 7, urgent=True)
    translation = filled_up(answer(model, source, stop, stop, 8, 3), 8)
    return {
        "result": searched((2, 3, 4) * 8, 7, 8, urgent=True)(answer, draw),
        "with one id for start and stop": translation,
    }


def searched_by_one(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The translations of one beam; and a long one, whose probability underflows in float32."""
    own = draw.named("long")
    _, source, start, stop = a_sentence(own, 7, urgent=False)
    unsure = Tabled(own, int(source[0, -1]), start, stop, UNSURE, longest=140)
    limit = own.named("limit").number(115, 135)
    return {
        "result": searched((1,) * 8, 7, 5, urgent=False)(answer, draw),
        f"for {limit} tokens": filled_up(answer(unsure, source, start, stop, limit, 1), limit),
    }


def searched_at_length(answer: Answer, draw: Draw) -> torch.Tensor:
    """The student's translation of one long source by many beams that end together, out of many tokens."""
    s, n, width = draw.number(20, 30), draw.number(40, 70), draw.number(20, 40)
    pad, start, stop = draw.named("ids").permutation(n)[:3].tolist()
    source = padded(draw, 0, n, pad, torch.tensor([s], device=draw.device), s + draw.number(1, 5))
    model = Scripted(draw, n, pad, stop, urgent=True, calm=0.4)
    return filled_up(answer(model, source, start, stop, s + 2, width), s + 2)


def readings_beam(answer: Answer, draw: Draw) -> torch.Tensor:
    """How often the encoder was called during a beam search: (), int64."""
    model, source, start, stop = a_sentence(draw, 7, urgent=False)
    answer(model, source, start, stop, 5, 3)
    return torch.tensor(model.times_read)


def searched_on(answer: Answer, draw: Draw) -> Callable:
    """The student's beam search as a function of the source alone."""
    model, _, start, stop = a_sentence(draw, 7, urgent=False)
    return lambda source: answer(model.to(source.device), source, start, stop, 5, 3)


beam_search = exercise(
    "beam_search",
    stars=3,
    minutes=15,
    builds_on=("encoder_decoder.without_training",),
    given=lambda draw: (a_sentence(draw, 7, urgent=False)[1],),
    via=searched_on,
    aspects=(
        Aspect(
            "several beams",
            1.5,
            with_larger(searched_with_one_id, searched_at_length),
            axes="sentence t",
            filler=END_OF_ROW,
            missed=(
                "Several beams compete here, and all end in the same step. The candidates of all beams are ranked"
                " together, and each one that is kept continues the beam that it came from."
            ),
        ),
        Aspect(
            "beams that end early",
            0.5,
            searched((2, 3) * 10, 7, 6, urgent=False, tables=(FORK, FORK)),
            axes="sentence t",
            filler=END_OF_ROW,
            missed=(
                "Beams finish at different times here. Every beam that finishes is kept with its score and gives up its"
                " place: when two finish in one step, the width falls by two."
            ),
        ),
        Aspect(
            "one beam",
            0.5,
            searched_by_one,
            axes="sentence t",
            filler=END_OF_ROW,
            dtype=True,
        ),
        Aspect(
            "room for all",
            1,
            searched((200,) * 10, 4, 3, urgent=False, tables=(LATE,)),
            axes="sentence t",
            filler=END_OF_ROW,
            missed=(
                "Here there is a place for every candidate. None may be dropped; the result is the most probable"
                " sentence."
            ),
        ),
        Aspect("encoder once", 0.5, readings_beam, side=True, accepts="number", missed=ONCE),
        any_device(0.5),
    ),
)

LESSON = Lesson(
    "10_encoder_decoder",
    "Encoder and decoder",
    (cross_attention, decoder_block, make_masks, encoder_decoder, smoothed_loss, greedy_decode, beam_search),
    predictions_of("10_encoder_decoder"),
)
