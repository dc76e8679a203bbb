"""Lesson 5: masking."""

from __future__ import annotations

import torch

from helpers.exercises.aspects import Inputs, built
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Lesson
from helpers.exercises.other_device import THERE
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    Part,
    any_device,
    bools,
    case,
    device,
    each_of,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    integer,
    ints,
    module,
    normal,
    outliers,
    parameters,
    size,
    tensor,
    values,
)

FINISHED = (
    "The finished part is for the exercises that build on this one. Write this one yourself: a few lines of torch are"
    " enough."
)
NO_PARTS = {"finished_masks": FINISHED}


def tokens_of(dtype: torch.dtype) -> Inputs:
    """Tokens (3, 9) of that type."""
    return lambda draw: (draw.integers(0, 50, 3, 9).to(dtype),)


INPUTS_AND_TARGETS = "inputs", "targets"

next_token_pairs = exercise(
    "next_token_pairs",
    stars=1,
    minutes=5,
    forbidden=NO_PARTS,
    given=case(ints(3, 9, below=50)),
    also={"with a batch of one": case(ints(1, 9, below=50)), "with two tokens to a row": case(ints(4, 2, below=50))},
    larger=case(ints(size(9, 17), size(70, 130), below=50_000)),
    returns=INPUTS_AND_TARGETS,
    aspects=(
        values(0.5, of="inputs", axes="b t", dtype=True),
        values(1, of="targets", axes="b t", dtype=True),
        values(
            0.5,
            given=tokens_of(torch.int32),
            name="tokens of another type",
            via=each_of(INPUTS_AND_TARGETS),
            also={"for tokens of type uint8": tokens_of(torch.uint8)},
            axes="b t",
            dtype=True,
        ),
        input_left_alone(0.5),
        any_device(0.5, of="targets"),
    ),
)

causal_mask = exercise(
    "causal_mask",
    stars=1,
    minutes=5,
    forbidden=NO_PARTS,
    given=case(integer(5, 9), device),
    also={"for a single position": case(1, device), "for t = 2": case(2, device)},
    larger=case(integer(70, 130), device),
    aspects=(
        values(1.5, axes="t t", dtype=True, picture=True),
        any_device(
            0.5,
            given=case(6, THERE),
            missed=(
                "Your mask ends up on the CPU, whatever device it was asked for. Pass `device` on to every"
                " function that makes a tensor."
            ),
        ),
    ),
)


def sentence_lengths(draw: Draw) -> tuple[torch.Tensor, int]:
    """Four different lengths, the first not the longest, all shorter than the t = 7 that was padded to."""
    lengths = draw.permutation(5)[:4] + 1
    return lengths.roll(int(lengths.argmax() == 0)), 7


padding_mask = exercise(
    "padding_mask",
    stars=2,
    minutes=8,
    forbidden=NO_PARTS,
    given=sentence_lengths,
    also={
        "with a batch of one": case(ints(1, low=2, below=5), 6),
        "with a sentence of full length and an empty one": case(tensor(4, 0, 2), 4),
        "with a single position": case(tensor(1, 0), 1),
    },
    larger=case(ints(size(9, 17), below=70), integer(70, 130)),
    aspects=(
        values(2, axes="b 1 t", dtype=True, picture=True),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------- masked_softmax


def partly_seen(*shape: int) -> Part:
    """A mask in which every row sees two entries or more, and never all of them."""

    def mask(draw):
        rank = draw.uniform(0, 1, *shape).argsort(-1).argsort(-1)
        return rank < draw.integers(2, shape[-1], *shape[:-1], 1)

    return mask


def rows(*shape: int, dtype: torch.dtype = torch.float32) -> Inputs:
    """Scores of that shape, and a mask in which every row sees something."""
    return case(normal(*shape, std=2.0, dtype=dtype), partly_seen(*shape))


def many_rows(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores (b, h, t, s) in double precision, a few of them large, and a mask in which every row sees something."""
    scores = heavy(size(9, 13), size(2, 4), size(16, 25), size(26, 41), dtype=torch.float64)(draw)
    return scores, partly_seen(*scores.shape)(draw)


def rows_that_see_nothing(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, with one fully masked row in each sentence."""
    scores, mask = rows(2, 3, 5)(draw)
    mask[0, 1], mask[1, 2] = False, False
    return scores, mask


def scores_far_apart(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows around 1,000,000, −1,000,000 and 0, and in each the hidden scores 300 above the visible ones.

    In steps of 1/8, which 32 bits hold exactly at that size.
    """
    scores, mask = rows(2, 3, 5)(draw)
    offsets = torch.tensor([1e6, -1e6, 0.0], device=draw.device).reshape(1, 3, 1)
    return (scores * 8).round() / 8 + offsets + 300.0 * ~mask, mask


def smaller_masks(softmax: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """One mask for all sentences and heads, and one row of a mask for all that look. Each call has its own scores."""
    scores = draw.normal(2, 3, 4, 5, std=2.0)
    return {
        "with a mask of shape (t, s)": softmax(scores.clone(), partly_seen(4, 5)(draw)),
        "with a mask of shape (b, 1, 1, s)": softmax(scores.clone(), partly_seen(2, 1, 1, 5)(draw)),
        "with a mask of shape (b, 1, s)": softmax(scores[:, 0].clone(), partly_seen(2, 1, 5)(draw)),
    }


def in_half_precision(softmax: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The softmax in both 16-bit types, rows that see nothing among them.

    Of scores that are near each other a hidden one keeps a share that no rounding hides, wherever it was not hidden.
    """
    scores, mask = rows_that_see_nothing(draw)
    return {
        "in float16": softmax(scores.to(torch.float16), mask.clone()),
        "in bfloat16": softmax(scores.to(torch.bfloat16), mask.clone()),
        "in float16, with scores near each other": softmax((scores / 8).to(torch.float16), mask.clone()),
    }


masked_softmax = exercise(
    "masked_softmax",
    stars=3,
    minutes=15,
    forbidden=NO_PARTS,
    given=rows_that_see_nothing,
    aspects=(
        values(
            1,
            given=rows(2, 3, 5),
            also={
                "with a batch of one": rows(1, 3, 5),
                "with a single row": rows(2, 1, 5),
                "without a batch axis": rows(3, 5),
                "in float64": rows(2, 3, 5, dtype=torch.float64),
            },
            larger=many_rows,
            axes="b t s",
            dtype=True,
            picture=True,
        ),
        values(
            1,
            name="fully masked rows",
            also={"with a batch of one, fully masked": case(normal(1, 1, 4), bools([[[0] * 4]]))},
            axes="b t s",
            picture=True,
        ),
        values(0.5, given=scores_far_apart, name="scores far apart", axes="b t s", picture=True, rtol=1e-3, atol=1e-4),
        Aspect("masks that broadcast", 0.5, smaller_masks),
        gradient(0.5),
        # bfloat16 keeps eight bits: a weight may be off by a hundredth, and another mask value by no more
        Aspect("half precision", 0.5, in_half_precision, axes="b t s", dtype=True, rtol=2e-2, atol=1e-2),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# -------------------------------------------------------------------------------------- CausalSelfAttention

ATTENTION = built(8, 2)  # e = 8 in 2 heads of width 4; sentences of 5 positions, 3 of them: no two sizes alike
OF_ANY_SIZE = module(lambda x, h, *padding: ((x.shape[-1], h), (x, *padding)))
# One padded in front, one at its end, one that lacks a word. Two positions of the first see nothing.
REAL = [[[0, 0, 1, 1, 1]], [[1, 1, 1, 0, 0]], [[1, 0, 1, 1, 1]]]


def long_sentences(draw: Draw) -> tuple[torch.Tensor, int]:
    """Nine sentences or more, of more than 64 positions, and the number of heads."""
    h = draw.number(4, 7)
    return outliers(draw.number(9, 12), draw.number(66, 80), h * draw.number(4, 7))(draw), h


def long_padded_sentences(draw: Draw) -> tuple[torch.Tensor, int, torch.Tensor]:
    """The same, and three tokens of ten are padding."""
    x, h = long_sentences(draw)
    return x, h, draw.mask(0.7, len(x), 1, x.shape[1])


def used(answer: Answer, draw: Draw) -> torch.nn.Module:
    """The module after one call: the stub brings its parameters along, worth nothing before they are used."""
    layer = ATTENTION(answer, draw)
    layer(draw.normal(3, 5, 8))
    return layer


causal_self_attention = exercise(
    "CausalSelfAttention",
    stars=2,
    minutes=12,
    forbidden={"finished_masks.CausalSelfAttention": FINISHED},
    builds_on=("masks.causal_mask", "masks.masked_softmax"),
    given=case(normal(3, 5, 8), bools(REAL)),
    via=ATTENTION,
    aspects=(
        values(
            1,
            given=case(normal(3, 5, 8), 2),
            via=OF_ANY_SIZE,
            also={
                "with a batch of one": case(normal(1, 5, 8), 2),
                "with longer sentences, in a later call": case(normal(3, 7, 8), 2),
                "with a single position": case(normal(3, 1, 8), 2),
                "for e = 9 and h = 3": case(normal(2, 4, 9), 3),
                "with a single head": case(normal(2, 4, 6), 1),
            },
            larger=long_sentences,
            axes="b t e",
            picture=True,
        ),
        values(0.5, given=case(normal(1, 11, 8)), name="more positions than components", axes="b t e"),
        values(
            1,
            given=case(normal(3, 5, 8), 2, bools(REAL)),
            name="padding",
            via=OF_ANY_SIZE,
            also={
                "with a batch of one": case(normal(1, 5, 8), 2, bools(REAL[2:])),
                "with as many sentences as heads": case(normal(3, 5, 9), 3, bools(REAL)),
                "with four positions": case(normal(3, 4, 6), 2, bools([[row[0][:4]] for row in REAL])),
            },
            larger=long_padded_sentences,
            axes="b t e",
            picture=True,
        ),
        gradient(0.5, weights=True),
        parameters(0.5, via=used),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ------------------------------------------------------------------------------------------------- leak_map


class Mixer(torch.nn.Module):
    """A model whose dependence is known: y_i = Σ_j p_ij Σ_a q_a· sin(2 x_ja).

    How much output i depends on input j is |p_ij| times something that differs from j to j; there are zeros in p, in no
    pattern. The columns of q nearly cancel: code that adds up an output's components before differentiating sees little
    of it. The last column but one is the largest, beyond the width of the input: code that stops there, or
    keeps the last only, misses it.
    """

    def __init__(self, draw: Draw, t: int = 4, e: int = 3, width: int = 5):
        super().__init__()
        self.places = draw.normal(t, t) * draw.mask(0.7, t, t)
        # positions 0 and 1 matter to somebody, whatever was drawn
        self.places[min(2, t - 1), 0], self.places[-1, min(1, t - 1)] = 1.5, -1.5
        mixed = draw.normal(e, width)
        mixed[:, -2] += 3.0
        self.components = mixed - 0.9 * mixed.mean(dim=1, keepdim=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.places.to(x.device) @ torch.sin(2 * x) @ self.components.to(x.device)


def mixer_and_sequences(draw: Draw) -> tuple[torch.nn.Module, torch.Tensor]:
    """A model that mixes, and two sequences (2, 4, 3).

    The slope of the sine is largest at 0: position 0 has it in the second sequence, position 1 in the first, so that
    no sequence by itself shows all. And the mean is nowhere near 0, so that taking it away shows.
    """
    model, x = Mixer(draw), draw.normal(2, 4, 3)
    x += 0.5 - x.mean()
    x[1, 0] *= 0.05
    x[0, 1] *= 0.05
    return model, x


def many_sequences(draw: Draw) -> tuple[torch.nn.Module, torch.Tensor]:
    """Nine sequences or more, of nine positions or more. The slopes are taken one by one: larger would be slow."""
    b, t, e = draw.number(9, 11), draw.number(9, 11), draw.number(5, 7)
    return Mixer(draw, t, e, width=8), draw.heavy(b, t, e)


class Attender(torch.nn.Module):
    """Bare self-attention over sentences of any length; the mask comes after the softmax, so it leaks a little."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(x @ x.transpose(1, 2), dim=-1)
        return weights.tril() @ x


leak_map = exercise(
    "leak_map",
    stars=3,
    minutes=15,
    given=mixer_and_sequences,
    also={
        "with a batch of one": lambda draw: (Mixer(draw, t=5, e=2), draw.normal(1, 5, 2)),
        "with a single position": lambda draw: (Mixer(draw, t=1), draw.normal(2, 1, 3)),
        "for a function instead of a module": lambda draw: (Mixer(draw).forward, draw.normal(2, 4, 3)),
    },
    aspects=(
        values(2.5, name="a known dependence", larger=many_sequences, axes="i j", picture=True),
        values(1.5, given=lambda draw: (Attender(), draw.normal(2, 5, 3)), name="attention", axes="i j", picture=True),
        input_left_alone(0.5),
        any_device(0.5),
    ),
)

# -------------------------------------------------------------------------------------- HurriedAttention

HURRIED = built(8, 2, 7)  # e = 8 in 2 heads, for texts of 7 positions at most
FITS_NO_MORE = (
    "Your layer's state_dict has other names or shapes than the given layer's, so a file saved from that one no longer"
    " loads. Leave the names and shapes of what it stores unchanged."
)


def stored(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The names and shapes of all that a file of the layer's weights would hold."""
    lines = [f"{name} {tuple(tensor.shape)}" for name, tensor in HURRIED(answer, draw).state_dict().items()]
    text = "\n".join(sorted(lines))
    return {"names and shapes of your layer": torch.tensor(list(text.encode()[:4000]), dtype=torch.uint8)}


SIZED = module(lambda x, h, t_max: ((x.shape[-1], h, t_max), (x,)))

hurried_attention = exercise(
    "HurriedAttention",
    stars=2,
    minutes=8,
    fixes_bug=True,
    given=case(normal(3, 5, 8)),
    via=HURRIED,
    aspects=(
        values(
            1,
            given=case(normal(3, 5, 8), 2, 7),
            via=SIZED,
            also={
                "with a batch of one": case(normal(1, 4, 6), 3, 9),
                "with a single position": case(normal(3, 1, 8), 2, 7),
                "with more positions than components": case(normal(2, 9, 4), 1, 12),
            },
            larger=lambda draw: (*long_sentences(draw), draw.number(80, 97)),
            axes="b t e",
            picture=True,
        ),
        values(0.5, given=case(normal(2, 6, 8), 2, 6), name="texts of full length", via=SIZED, axes="b t e"),
        gradient(0.5, weights=True),
        Aspect("what is stored", 0.5, stored, side=True, missed=FITS_NO_MORE),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

LESSON = Lesson(
    "05_masking",
    "Masking",
    (next_token_pairs, causal_mask, padding_mask, masked_softmax, causal_self_attention, leak_map, hurried_attention),
    predictions_of("05_masking"),
)
