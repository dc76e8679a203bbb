"""Lesson 5: masking."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import (
    Inputs,
    Unmet,
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
from helpers.exercises.other_device import THERE
from helpers.exercises.questions import predictions_of

# ------------------------------------------------------------------------------------------- next_token_pairs


def letters(draw: Draw) -> tuple[torch.Tensor]:
    """Three rows of nine tokens out of 50."""
    return (draw.integers(0, 50, 3, 9),)


OTHER_LETTERS = {
    "with a batch of one": lambda draw: draw.integers(0, 50, 1, 9),
    "with two tokens to a row": lambda draw: draw.integers(0, 50, 4, 2),
}


def half_of_pair(place: int) -> Probe:
    """The inputs (place 0) or the targets (place 1) that the student's function makes."""

    def half(pairs, tokens):
        pair = pairs(tokens)
        if pair is None:
            return None
        if isinstance(pair, dict) or not hasattr(pair, "__len__") or len(pair) != 2:
            returned = (
                f"one of shape {tuple(pair.shape)}" if isinstance(pair, torch.Tensor) else f"a {type(pair).__name__}"
            )
            raise Unmet(
                f"Your function has to return two tensors, `inputs, targets`, in that order; it returns {returned}."
            )
        return pair[place]

    def probe(pairs, draw):
        first = half(pairs, *letters(draw))
        if first is None:
            return None
        others = {case: half(pairs, tokens(draw.named(case))) for case, tokens in OTHER_LETTERS.items()}
        return {"result": first, **others}

    return probe


def targets_only(pairs: Answer, draw: Draw) -> Callable:
    """The student's function, its targets alone."""
    return lambda tokens: pairs(tokens)[1]


# ------------------------------------------------------------------------------------------------ the masks


def a_length(draw: Draw) -> tuple[int, torch.device]:
    """Any t, and the device that the mask belongs on."""
    return draw.number(5, 9), draw.device


def elsewhere(draw: Draw) -> tuple[int, torch.device]:
    """t = 6, on another device."""
    return 6, THERE


OTHER_GRIDS = {"for a single position": lambda draw: (1, draw.device), "for t = 2": lambda draw: (2, draw.device)}


def sentence_lengths(draw: Draw) -> tuple[torch.Tensor, int]:
    """Four different lengths, the first not the longest, all shorter than the t = 7 that was padded to."""
    lengths = draw.permutation(5)[:4] + 1
    return lengths.roll(int(lengths.argmax() == 0)), 7


OTHER_LENGTHS = {
    "with a batch of one": lambda draw: (draw.integers(2, 5, 1), 6),
    "with a sentence of full length and an empty one": lambda draw: (torch.tensor([4, 0, 2], device=draw.device), 4),
    "with a single position": lambda draw: (torch.tensor([1, 0], device=draw.device), 1),
}


# ------------------------------------------------------------------------------------------- masked_softmax


def partly_seen(draw: Draw, *shape: int) -> torch.Tensor:
    """A mask in which every row sees two entries or more, and never all of them."""
    rank = draw.uniform(0, 1, *shape).argsort(-1).argsort(-1)
    return rank < draw.integers(2, shape[-1], *shape[:-1], 1)


def rows_that_see(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores (2, 3, 5), and a mask in which every row sees something."""
    return draw.normal(2, 3, 5, std=2.0), partly_seen(draw, 2, 3, 5)


def rows_that_see_nothing(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same, with one fully masked row in each sentence."""
    scores, mask = rows_that_see(draw)
    mask[0, 1], mask[1, 2] = False, False
    return scores, mask


def rows_of(*shape: int) -> Inputs:
    """Scores of that shape, and a mask in which every row sees something."""
    return lambda draw: (draw.normal(*shape, std=2.0), partly_seen(draw, *shape))


OTHER_ROWS = {
    "with a batch of one": rows_of(1, 3, 5),
    "with a single row": rows_of(2, 1, 5),
    "without a batch axis": rows_of(3, 5),
    "in float64": lambda draw: (draw.normal(2, 3, 5, std=2.0, dtype=torch.float64), partly_seen(draw, 2, 3, 5)),
}
ONE_EMPTY_ROW = {
    "with a batch of one, fully masked": lambda draw: (
        draw.normal(1, 1, 4),
        torch.zeros(1, 1, 4, dtype=torch.bool, device=draw.device),
    )
}


def far_apart(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows around 1,000,000, −1,000,000 and 0, and in each the hidden scores 300 above the visible ones.

    In steps of 1/8, which 32 bits hold exactly at that size.
    """
    scores, mask = rows_that_see(draw)
    offsets = torch.tensor([1e6, -1e6, 0.0], device=draw.device).reshape(1, 3, 1)
    return (scores * 8).round() / 8 + offsets + 300.0 * ~mask, mask


def smaller_masks(softmax: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """One mask for all sentences and heads, and one row of a mask for all that look."""
    scores = draw.normal(2, 3, 4, 5, std=2.0)
    return {
        "with a mask of shape (t, s)": softmax(scores, partly_seen(draw, 4, 5)),
        "with a mask of shape (b, 1, 1, s)": softmax(scores, partly_seen(draw, 2, 1, 1, 5)),
        "with a mask of shape (b, 1, s)": softmax(scores[:, 0], partly_seen(draw, 2, 1, 5)),
    }


def in_half_precision(softmax: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The softmax in both 16-bit types, rows that see nothing among them.

    Of scores that are near each other a hidden one keeps a share that no rounding hides, wherever it was not hidden.
    """
    scores, mask = rows_that_see_nothing(draw)
    return {
        "in float16": softmax(scores.to(torch.float16), mask),
        "in bfloat16": softmax(scores.to(torch.bfloat16), mask),
        "in float16, with scores near each other": softmax((scores / 8).to(torch.float16), mask),
    }


# ------------------------------------------------------------------------------------------ CausalSelfAttention

ATTENTION = built(8, 2)  # e = 8 in 2 heads of width 4; sentences of 5 positions, 3 of them: no two sizes alike


def whole_sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Three sentences of 5 positions: (3, 5, 8)."""
    return (draw.normal(3, 5, 8),)


def of_any_size(answer: Answer, draw: Draw) -> Callable:
    """The student's class, called as a function of the vectors and the number of heads: another module for each."""
    return lambda x, h, *padding: built(x.shape[-1], h)(answer, draw)(x, *padding)


def in_two_heads(draw: Draw) -> tuple[torch.Tensor, int]:
    """Three sentences of 5 positions, (3, 5, 8), and 2 heads."""
    return whole_sentences(draw)[0], 2


OTHER_SENTENCES = {
    "with a batch of one": lambda draw: (draw.normal(1, 5, 8), 2),
    "with a single position": lambda draw: (draw.normal(3, 1, 8), 2),
    "for e = 9 and h = 3": lambda draw: (draw.normal(2, 4, 9), 3),
    "with a single head": lambda draw: (draw.normal(2, 4, 6), 1),
}


def padded_in_two_heads(draw: Draw) -> tuple[torch.Tensor, int, torch.Tensor]:
    """The padded sentences, and 2 heads."""
    x, real = padded_sentences(draw)
    return x, 2, real


OTHER_PADDED = {
    "with a batch of one": lambda draw: (draw.normal(1, 5, 8), 2, padded_sentences(draw)[1][1:2]),
    "with as many sentences as heads": lambda draw: (draw.normal(3, 5, 9), 3, padded_sentences(draw)[1]),
    "with four positions": lambda draw: (draw.normal(3, 4, 6), 2, padded_sentences(draw)[1][..., :4]),
}


def used(answer: Answer, draw: Draw) -> torch.nn.Module:
    """The module after one call.

    The stub brings its parameters along, and they are worth nothing before something is done with them.
    """
    module = ATTENTION(answer, draw)
    module(*whole_sentences(draw))
    return module


def long_sentences(draw: Draw) -> tuple[torch.Tensor]:
    """One sentence of 11 positions: (1, 11, 8)."""
    return (draw.normal(1, 11, 8),)


def padded_sentences(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """One padded in front, one at its end, one that lacks a word. Two positions of the first see nothing."""
    real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], dtype=torch.bool, device=draw.device)
    return draw.normal(3, 5, 8), real.unsqueeze(1)


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


def a_mixer(draw: Draw) -> tuple[torch.nn.Module, torch.Tensor]:
    """A model that mixes, and two sequences (2, 4, 3).

    The slope of the sine is largest at 0: position 0 has it in the second sequence, position 1 in the first, so that
    no sequence by itself shows all. And the mean is nowhere near 0, so that taking it away shows.
    """
    model, x = Mixer(draw), draw.normal(2, 4, 3)
    x += 0.5 - x.mean()
    x[1, 0] *= 0.05
    x[0, 1] *= 0.05
    return model, x


OTHER_MIXERS = {
    "with a batch of one": lambda draw: (Mixer(draw, t=5, e=2), draw.normal(1, 5, 2)),
    "with a single position": lambda draw: (Mixer(draw, t=1), draw.normal(2, 1, 3)),
    "for a function instead of a module": lambda draw: (Mixer(draw).forward, draw.normal(2, 4, 3)),
}


class Attender(torch.nn.Module):
    """Bare self-attention over sentences of any length; the mask comes after the softmax, so it leaks a little."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(x @ x.transpose(1, 2), dim=-1)
        return weights.tril() @ x


def an_attender(draw: Draw) -> tuple[torch.nn.Module, torch.Tensor]:
    """A model that attends, and two sequences (2, 5, 3)."""
    return Attender(), draw.normal(2, 5, 3)


# -------------------------------------------------------------------------------------- HurriedAttention

HURRIED = built(8, 2, 7)  # e = 8 in 2 heads, for texts of 7 positions at most


def hurried_of_any_size(answer: Answer, draw: Draw) -> Callable:
    """The student's class, called as a function of the vectors, the number of heads and the longest text."""
    return lambda x, h, t_max: built(x.shape[-1], h, t_max)(answer, draw)(x)


def shorter_texts(draw: Draw) -> tuple[torch.Tensor, int, int]:
    """Three texts of 5 positions, (3, 5, 8), for a layer of 2 heads that takes up to 7."""
    return draw.normal(3, 5, 8), 2, 7


OTHER_TEXTS = {
    "with a batch of one": lambda draw: (draw.normal(1, 4, 6), 3, 9),
    "with a single position": lambda draw: (draw.normal(3, 1, 8), 2, 7),
    "with more positions than components": lambda draw: (draw.normal(2, 9, 4), 1, 12),
}


def texts_of_full_length(draw: Draw) -> tuple[torch.Tensor, int, int]:
    """Two texts of 6 positions, (2, 6, 8), for a layer that takes no more."""
    return draw.normal(2, 6, 8), 2, 6


def hurried_sentences(draw: Draw) -> tuple[torch.Tensor]:
    """Three texts of 5 positions: (3, 5, 8)."""
    return (draw.normal(3, 5, 8),)


def stored(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """The names and shapes of all that a file of the layer's weights would hold."""
    lines = [f"{name} {tuple(tensor.shape)}" for name, tensor in HURRIED(answer, draw).state_dict().items()]
    text = "\n".join(sorted(lines))
    return {"names and shapes of your layer": torch.tensor(list(text.encode()[:4000]), dtype=torch.uint8)}


FINISHED = (
    "The finished part is for the exercises that build on this one. Write this one yourself: a few lines of torch are"
    " enough."
)
NO_PARTS = {"finished_masks": FINISHED}
FITS_NO_MORE = (
    "A file of weights that was saved from this layer would no longer fit."
    " Leave the names and shapes of what it stores unchanged."
)

LESSON = Lesson(
    "05_masking",
    "Masking",
    exercises=(
        Exercise(
            "next_token_pairs",
            stars=1,
            minutes=5,
            aspects=(
                Aspect("inputs", 0.5, half_of_pair(0), axes="b t", dtype=True),
                Aspect("targets", 1.5, half_of_pair(1), axes="b t", dtype=True),
                input_left_alone(0.5, letters),
                any_device(0.5, letters, via=targets_only),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "causal_mask",
            stars=1,
            minutes=5,
            aspects=(
                values(1.5, a_length, also=OTHER_GRIDS, axes="t t", dtype=True, picture=True),
                renamed(
                    any_device(0.5, elsewhere),
                    "any device",
                    missed=(
                        "Your mask ends up on the CPU, whatever device it was asked for. Pass `device` on to every"
                        " function that makes a tensor."
                    ),
                ),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "padding_mask",
            stars=2,
            minutes=8,
            aspects=(
                values(2, sentence_lengths, also=OTHER_LENGTHS, axes="b 1 t", dtype=True, picture=True),
                input_left_alone(0.5, sentence_lengths),
                any_device(0.5, sentence_lengths),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "masked_softmax",
            stars=3,
            minutes=15,
            aspects=(
                values(1, rows_that_see, also=OTHER_ROWS, axes="b t s", dtype=True, picture=True),
                values(
                    1,
                    rows_that_see_nothing,
                    name="fully masked rows",
                    also=ONE_EMPTY_ROW,
                    axes="b t s",
                    picture=True,
                ),
                values(0.5, far_apart, name="scores far apart", axes="b t s", picture=True, rtol=1e-3, atol=1e-4),
                Aspect("masks that broadcast", 0.5, smaller_masks),
                gradient(0.5, rows_that_see_nothing),
                # bfloat16 keeps eight bits: a weight may be off by a hundredth, and another mask value by no more
                Aspect("half precision", 0.5, in_half_precision, axes="b t s", dtype=True, rtol=2e-2, atol=1e-2),
                input_left_alone(0.5, rows_that_see_nothing),
                any_device(0.5, rows_that_see_nothing),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "CausalSelfAttention",
            stars=2,
            minutes=12,
            aspects=(
                values(1, in_two_heads, via=of_any_size, also=OTHER_SENTENCES, axes="b t e", picture=True),
                values(0.5, long_sentences, name="more positions than components", via=ATTENTION, axes="b t e"),
                values(
                    1,
                    padded_in_two_heads,
                    name="padding",
                    via=of_any_size,
                    also=OTHER_PADDED,
                    axes="b t e",
                    picture=True,
                ),
                gradient(0.5, padded_sentences, via=ATTENTION, weights=True),
                parameters(0.5, via=used),
                input_left_alone(0.25, padded_sentences, via=ATTENTION),
                any_device(0.25, padded_sentences, via=ATTENTION),
            ),
            forbidden={"finished_masks.CausalSelfAttention": FINISHED},
            builds_on=("masks.causal_mask", "masks.masked_softmax"),
        ),
        Exercise(
            "leak_map",
            stars=3,
            minutes=15,
            aspects=(
                values(2.5, a_mixer, name="a known dependence", also=OTHER_MIXERS, axes="i j", picture=True),
                values(1.5, an_attender, name="attention", axes="i j", picture=True),
                input_left_alone(0.5, a_mixer),
                any_device(0.5, a_mixer),
            ),
        ),
        Exercise(
            "HurriedAttention",
            stars=2,
            minutes=8,
            aspects=(
                values(1, shorter_texts, via=hurried_of_any_size, also=OTHER_TEXTS, axes="b t e", picture=True),
                values(0.5, texts_of_full_length, name="texts of full length", via=hurried_of_any_size, axes="b t e"),
                gradient(0.5, hurried_sentences, via=HURRIED, weights=True),
                Aspect("what is stored", 0.5, stored, side=True, missed=FITS_NO_MORE),
                input_left_alone(0.25, hurried_sentences, via=HURRIED),
                any_device(0.25, hurried_sentences, via=HURRIED),
            ),
            mend=True,
        ),
    ),
    predictions=predictions_of("05_masking"),
)
