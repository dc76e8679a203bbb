"""Lesson 13: a gated cell, one vector for a sentence, the first attention and word vectors from company and readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from helpers.exercises.aspects import (
    Inputs,
    Others,
    Unmet,
    Via,
    any_device,
    built,
    gradient,
    input_left_alone,
    kind_of,
    values,
)
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Exercise, Lesson
from helpers.exercises.questions import predictions_of

FINISHED = "The finished parts are there for the exercises that build on this one; write it here."
NO_PARTS = {"finished_parts": FINISHED}


def in_order(draw: Draw, *lengths: int) -> torch.Tensor:
    """These lengths in a drawn order, (b,)."""
    return torch.tensor(lengths, device=draw.device)[draw.named("order").permutation(len(lengths))]


# ------------------------------------------------------------------------------------------------------ gru_step


def a_word(b: int = 3, e: int = 4, d: int = 5) -> Inputs:
    """A word (b, e), a state (b, d), and the weights of r, z and what is new side by side: (e, 3d), (d, 3d), (3d,)."""

    def inputs(draw):
        return (
            draw.normal(b, e),
            2 * draw.normal(b, d),
            draw.named("w_x").normal(e, 3 * d, std=e**-0.5),
            draw.named("w_s").normal(d, 3 * d, std=d**-0.5),
            draw.named("b_x").normal(3 * d),
            draw.named("b_s").normal(3 * d),
        )

    return inputs


OTHER_WORDS = {
    "with a batch of one": a_word(b=1),
    "with a state of one number": a_word(d=1),
    "with a state narrower than the word": a_word(e=6, d=3),
    "with all sizes alike": a_word(3, 3, 3),
}


# ------------------------------------------------------------------------------------------------ skip_gram_loss


def neighbours(b: int = 4, k: int = 3, e: int = 6, scale: float = 1.0) -> Inputs:
    """Centres (b, e), a neighbour of each (b, e), and k drawn words for each (b, k, e)."""

    def inputs(draw):
        return scale * draw.normal(b, e), scale * draw.normal(b, e), scale * draw.normal(b, k, e)

    return inputs


FAR_APART = 9.0  # vectors of 6 such numbers have products of about ±200: the sigmoid of −200 is 0 in float32
OTHER_COMPANY = {
    "with a batch of one": neighbours(b=1),
    "with one negative": neighbours(k=1),
    "with vectors of width 1": neighbours(e=1),
    "with all sizes alike": neighbours(3, 3, 3),
}


# ------------------------------------------------------------------------------------------------ read_backwards


def sentences(t: int, *lengths: int, e: int = 3) -> Inputs:
    """Vectors (b, t, e) of sentences of these lengths, in a drawn order; at padding stand numbers, too."""

    def inputs(draw):
        return draw.normal(len(lengths), t, e), in_order(draw, *lengths)

    return inputs


OTHER_SENTENCES = {
    "with one sentence": sentences(5, 3, e=2),
    "without padding": sentences(5, 5, 5),
    "where no sentence fills its row": sentences(6, 1, 4, 2, e=4),
    "with sentences of one word": sentences(1, 1, 1),
    "with all sizes alike": sentences(3, 3, 2, 1),
}


# ----------------------------------------------------------------------------------------------- BiLanguageModel

N, E = 9, 4


def texts(t: int, *lengths: int) -> Inputs:
    """Ids (b, t) of texts of these lengths, and the lengths; at padding stand ids of words."""

    def inputs(draw):
        return draw.integers(0, N, len(lengths), t), in_order(draw, *lengths)

    return inputs


some_texts = texts(6, 6, 2, 4)


def at_words(layers: object, lengths: torch.Tensor) -> object:
    """What `layers` returned, 0 at padding; as it came where its shape is another."""
    if not isinstance(layers, torch.Tensor) or layers.dim() != 4 or layers.shape[0] != len(lengths):
        return layers
    real = torch.arange(layers.shape[2], device=layers.device) < lengths.unsqueeze(-1)  # (b, t)
    return torch.where(real[:, None, :, None], layers, 0.0)


def all_layers(answer: Answer, draw: Draw) -> dict[str, object]:
    """What the student's two readers make of drawn texts."""
    results = {}
    for case, sizes, drawn in (
        ("result", (N, E, 2), some_texts),
        ("with one LSTM in each reader", (N, E, 1), some_texts),
        ("with a batch of one", (N + 2, E + 2, 2), texts(5, 3)),
        ("with texts of one word", (N, E, 2), texts(1, 1, 1)),
        ("where no text fills its row", (N, E, 2), texts(6, 3, 1, 5)),
    ):
        model = built(*sizes)(answer, draw)
        ids, lengths = drawn(draw.named(case))
        results[case] = at_words(model.layers(ids, lengths), lengths)
    return results


def called_again(answer: Answer, draw: Draw) -> torch.Tensor:
    """The layers of a text are the same before and after other texts are read."""
    model = built(N, E, 2)(answer, draw)
    ids, lengths = some_texts(draw)
    before, _, after = (at_words(model.layers(each, lengths), lengths) for each in (ids, (ids + 1) % N, ids))
    if not torch.is_tensor(before) or not torch.is_tensor(after):
        raise Unmet(f"`layers` has to return one tensor; it returns {kind_of(before)}.")
    if before.shape != after.shape or not torch.allclose(before, after, atol=1e-5):
        raise Unmet(
            "The same text is read twice, with another one in between, and the results differ. Something stays behind"
            " from call to call, such as the state of an LSTM. Every call starts afresh."
        )
    return torch.tensor([1])


def both_losses(answer: Answer, draw: Draw) -> dict[str, object]:
    """The student's loss, where `layers` is a stand-in: only what is asked of its vectors counts."""
    results = {}
    for case, drawn in (
        ("result", some_texts),
        ("with a text of one word in the batch", texts(5, 1, 5, 3)),
        ("with a batch of one", texts(6, 4)),
        ("without padding", texts(3, 3, 3)),
        ("where no text fills its row", texts(6, 3, 1, 5)),
    ):
        model = built(N, E, 2)(answer, draw)
        ids, lengths = drawn(draw.named(case))
        vectors = 2 * draw.named(case).named("vectors").normal(len(ids), 3, ids.shape[1], 2 * E)
        model.layers = lambda *_, vectors=vectors: vectors
        results[case] = model.loss(ids, lengths)
    return results


class Called(torch.nn.Module):
    """A method of a student's module as a module: it has that one's parameters, by their own names."""

    def __init__(self, model: torch.nn.Module, call: Callable):
        super().__init__()
        self.model, self._call = model, call

    def named_parameters(self, *_: object, **__: object) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Those of the student's module."""
        return self.model.named_parameters()

    def forward(self, *arguments: object) -> object:
        """What the method returns."""
        return self._call(self.model, *arguments)


def reading_loss(answer: Answer, draw: Draw) -> Called:
    """The student's loss with the student's own layers."""
    return Called(built(N, E, 2)(answer, draw), lambda model, *given: model.loss(*given))


def reading_layers(answer: Answer, draw: Draw) -> Called:
    """The student's layers, 0 at padding."""
    return Called(built(N, E, 2)(answer, draw), lambda model, *given: at_words(model.layers(*given), given[1]))


# ----------------------------------------------------------------------------------------------- sentence_vector

some_outputs = sentences(6, 2, 3, 4, 5, e=10)
OTHER_OUTPUTS = {
    "with one and with all words": sentences(6, 1, 6, 3, e=6),
    "with one sentence": sentences(5, 3, e=6),
    "without padding": sentences(5, 5, 5, e=8),
    "where no sentence fills its row": sentences(6, 1, 4, 2, e=4),
    "with sentences of one word": sentences(1, 1, 1, e=2),
    "with as many sentences as words": sentences(4, 1, 2, 3, 4, e=4),
}


# ---------------------------------------------------------------------------------------------------- the scores


def compared(b: int = 3, t: int = 5, d: int = 4, m: int = 6, a: int = 7) -> Inputs:
    """States (b, d), memory (b, t, m), and the weights of additive scores (d, a), (m, a), (a,)."""

    def inputs(draw):
        return (
            draw.normal(b, d),
            draw.normal(b, t, m),
            draw.named("w_s").normal(d, a, std=d**-0.5),
            draw.named("w_h").normal(m, a, std=m**-0.5),
            draw.named("v").normal(a),
        )

    return inputs


def multiplied(b: int = 3, t: int = 5, d: int = 4, m: int = 6) -> Inputs:
    """States (b, d), memory (b, t, m), and the one matrix (m, d)."""
    return lambda draw: (draw.normal(b, d), draw.normal(b, t, m), draw.named("w").normal(m, d))


def other_scores(inputs: Callable[..., Inputs]) -> dict[str, Inputs]:
    """Sizes in which a mixed-up axis gives numbers and no error, and the smallest."""
    return {
        "with a batch of one": inputs(b=1),
        "with a memory of one vector": inputs(t=1),
        "with as many sentences as words": inputs(b=5),
        "with states as wide as the memory": inputs(d=6),
        "with all sizes alike": inputs(4, 4, 4, 4),
    }


# ---------------------------------------------------------------------------------------------- AttentiveDecoder

DECODER = built(9, 3, 4, 6, 5)  # n = 9, e = 3, d = 4, m = 6, a = 5
SMALLER = built(7, 4, 3, 5, 2)


def a_step(t: int, *lengths: int, n: int = 9, d: int = 4, m: int = 6) -> Inputs:
    """Tokens (b,), states (b, d), a memory (b, t, m) of sentences of these lengths, and its mask (b, t)."""

    def inputs(draw):
        b = len(lengths)
        mask = torch.arange(t, device=draw.device) < in_order(draw, *lengths).unsqueeze(-1)
        return draw.integers(0, n, b), draw.normal(b, d), draw.normal(b, t, m), mask

    return inputs


some_step = a_step(5, 5, 2, 3)
smaller_step = a_step(4, 2, 4, 3, n=7, d=3, m=5)


def step_with_gaps(draw: Draw) -> tuple:
    """The same, with a mask that hides places anywhere; each row keeps one place at least."""
    b, t = 4, 6
    y, s, memory, _ = a_step(t, *(t,) * b)(draw)
    kept = torch.arange(t, device=draw.device) == draw.integers(0, t, b).unsqueeze(-1)
    return y, s, memory, draw.mask(0.5, b, t) | kept


OTHER_STEPS: dict[str, Inputs] = {
    "with a batch of one": a_step(5, 4),
    "with a memory of one vector": a_step(1, 1, 1),
    "with as many sentences as words": a_step(4, 1, 2, 3, 4),
    "without padding": a_step(5, 5, 5),
}
WITH_GAPS = {"with gaps in the mask": step_with_gaps}
RETURNED = ("the logits", "the new state", "the weights")


def three_things(model: Answer, given: tuple) -> tuple:
    """What `step` returns; Unmet where these are not three."""
    result = model.step(*given)
    if not isinstance(result, (tuple, list)) or len(result) != 3:
        kind = f"{len(result)} things" if isinstance(result, (tuple, list)) else kind_of(result)
        raise Unmet(f"`step` has to return three things, {', '.join(RETURNED)}. It returns {kind}.")
    return tuple(result)


def stepping(*places: int, decoder: Via = DECODER) -> Via:
    """What `step` returns at these places, side by side: (b, ...)."""

    def via(answer, draw):
        def call(model, *given):
            results = three_things(model, given)
            return results[places[0]] if len(places) == 1 else torch.cat([results[k] for k in places], dim=-1)

        return Called(decoder(answer, draw), call)

    return via


def returned(points: float, name: str, place: int, axes: str, also: Others = OTHER_STEPS) -> Aspect:
    """One of the three things that `step` returns."""
    return values(points, some_step, name=name, via=stepping(place), also=also, axes=axes, picture=True)


LESSON = Lesson(
    "13_before_transformers",
    "Before transformers",
    exercises=(
        Exercise(
            "gru_step",
            stars=2,
            minutes=7,
            aspects=(
                values(1.5, a_word(), also=OTHER_WORDS, axes="b d", picture=True),
                gradient(1, a_word()),
                input_left_alone(0.25, a_word()),
                any_device(0.25, a_word()),
            ),
            forbidden={
                **NO_PARTS,
                **dict.fromkeys(("GRU", "GRUCell", "gru", "gru_cell"), "It is PyTorch's own; write out what it does."),
            },
        ),
        Exercise(
            "sentence_vector",
            stars=2,
            minutes=5,
            aspects=(
                values(1.5, some_outputs, also=OTHER_OUTPUTS, axes="b 2e", picture=True),
                gradient(0.5, some_outputs),
                input_left_alone(0.25, some_outputs),
                any_device(0.25, some_outputs),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "additive_scores",
            stars=2,
            minutes=6,
            mend=True,
            aspects=(
                values(
                    1.5,
                    compared(),
                    also={**other_scores(compared), "with v of width 2": compared(a=2)},
                    axes="b t",
                    picture=True,
                ),
                gradient(1, compared()),
                input_left_alone(0.25, compared()),
                any_device(0.25, compared()),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "general_scores",
            stars=1,
            minutes=4,
            aspects=(
                values(1, multiplied(), also=other_scores(multiplied), axes="b t", picture=True),
                gradient(0.5, multiplied()),
                input_left_alone(0.25, multiplied()),
                any_device(0.25, multiplied()),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "AttentiveDecoder",
            stars=3,
            minutes=12,
            aspects=(
                returned(1, "weights", 2, "b t", also=OTHER_STEPS | WITH_GAPS),
                returned(1, "new state", 1, "b d"),
                returned(1, "logits", 0, "b n"),
                gradient(1, smaller_step, via=stepping(0, 1, 2, decoder=SMALLER), weights=True),
                input_left_alone(0.25, some_step, via=stepping(0, 1, 2)),
                any_device(0.25, some_step, via=stepping(0, 1, 2)),
            ),
            forbidden={"finished_parts.AttentiveDecoder": FINISHED, "finished_parts.RecurrentTranslator": FINISHED},
            builds_on=("masks.masked_softmax", "recurrent.additive_scores"),
        ),
        Exercise(
            "skip_gram_loss",
            stars=2,
            minutes=7,
            aspects=(
                values(1, neighbours(), also=OTHER_COMPANY),
                values(0.5, neighbours(scale=FAR_APART), name="large products"),
                gradient(0.75, neighbours(), also={"with large products": neighbours(scale=FAR_APART)}),
                input_left_alone(0.25, neighbours()),
                any_device(0.5, neighbours()),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "read_backwards",
            stars=2,
            minutes=8,
            aspects=(
                values(1.5, sentences(6, 6, 1, 4, 3), also=OTHER_SENTENCES, axes="b t e", picture=True),
                gradient(0.5, sentences(6, 6, 1, 4, 3)),
                input_left_alone(0.5, sentences(6, 6, 1, 4, 3)),
                any_device(0.5, sentences(6, 6, 1, 4, 3)),
            ),
            forbidden=NO_PARTS,
        ),
        Exercise(
            "BiLanguageModel",
            stars=3,
            minutes=15,
            aspects=(
                Aspect("layers", 1.25, all_layers, axes="b layer t 2e"),
                Aspect("no state from call to call", 0.25, called_again, side=True),
                Aspect("loss", 1, both_losses),
                gradient(1, some_texts, via=reading_loss, weights=True),
                input_left_alone(0.25, some_texts, via=reading_loss),
                any_device(0.25, some_texts, via=reading_layers),
            ),
            builds_on=("masks.padding_mask", "recurrent.read_backwards"),
        ),
    ),
    predictions=predictions_of("13_before_transformers"),
)
