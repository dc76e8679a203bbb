"""Lesson 13: a gated cell, one vector for a sentence, the first attention and word vectors from company and readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from helpers.exercises.aspects import Fault, Inputs, Via, built, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    all_of,
    any_device,
    exercise,
    gradient,
    input_left_alone,
    size,
    sized,
    values,
    with_larger,
)

FINISHED = "The finished parts are there for the exercises that build on this one; write it here."
NO_PARTS = {"finished_parts": FINISHED}


def in_order(draw: Draw, *lengths: int) -> torch.Tensor:
    """These lengths in a drawn order, (b,)."""
    return torch.tensor(lengths, device=draw.device)[draw.named("order").permutation(len(lengths))]


# ------------------------------------------------------------------------------------------------------ gru_step


def a_word(b: int = 3, e: int = 4, d: int = 5, numbers: Callable = Draw.normal) -> Inputs:
    """A word (b, e), a state (b, d), and the weights of r, z and what is new side by side: (e, 3d), (d, 3d), (3d,)."""

    def inputs(draw):
        return (
            numbers(draw, b, e),
            2 * numbers(draw, b, d),
            draw.named("w_x").normal(e, 3 * d, std=e**-0.5),
            draw.named("w_s").normal(d, 3 * d, std=d**-0.5),
            draw.named("b_x").normal(3 * d),
            draw.named("b_s").normal(3 * d),
        )

    return inputs


gru_step = exercise(
    "gru_step",
    stars=2,
    minutes=7,
    forbidden=NO_PARTS,
    by_hand="It is PyTorch's own; write out what it does.",
    given=a_word(),
    also={
        "with a batch of one": a_word(b=1),
        "with a state of one number": a_word(d=1),
        "with a state narrower than the word": a_word(e=6, d=3),
        "with all sizes alike": a_word(3, 3, 3),
    },
    larger=sized(partial(a_word, numbers=Draw.heavy), b=size(9, 17), e=size(24, 36), d=size(36, 48)),
    aspects=(values(1.5, axes="b d", picture=True), gradient(1), input_left_alone(0.25), any_device(0.25)),
)

# ----------------------------------------------------------------------------------------------- sentence_vector


def sentences(t: int, *lengths: int, e: int = 3) -> Inputs:
    """Vectors (b, t, e) of sentences of these lengths, in a drawn order; at padding stand numbers, too."""

    def inputs(draw):
        return draw.normal(len(lengths), t, e), in_order(draw, *lengths)

    return inputs


def long_sentences(draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of nine sentences or more, of up to a hundred words."""
    b, t, e = draw.number(9, 17), draw.number(70, 101), draw.number(5, 9)
    return draw.heavy(b, t, 2 * e), draw.integers(1, t + 1, b)


sentence_vector = exercise(
    "sentence_vector",
    stars=2,
    minutes=5,
    forbidden=NO_PARTS,
    given=sentences(6, 2, 3, 4, 5, e=10),
    also={
        "with one and with all words": sentences(6, 1, 6, 3, e=6),
        "with one sentence": sentences(5, 3, e=6),
        "without padding": sentences(5, 5, 5, e=8),
        "where no sentence fills its row": sentences(6, 1, 4, 2, e=4),
        "with sentences of one word": sentences(1, 1, 1, e=2),
        "with as many sentences as words": sentences(4, 1, 2, 3, 4, e=4),
    },
    larger=long_sentences,
    aspects=(values(1.5, axes="b 2e", picture=True), gradient(0.5), input_left_alone(0.25), any_device(0.25)),
)

# ------------------------------------------------------------------------------- additive_scores, general_scores


def compared(b: int = 3, t: int = 5, d: int = 4, m: int = 6, a: int = 7, numbers: Callable = Draw.normal) -> Inputs:
    """States (b, d), memory (b, t, m), and the weights of additive scores (d, a), (m, a), (a,)."""

    def inputs(draw):
        return (
            numbers(draw, b, d),
            numbers(draw, b, t, m),
            draw.named("w_s").normal(d, a, std=d**-0.5),
            draw.named("w_h").normal(m, a, std=m**-0.5),
            draw.named("v").normal(a),
        )

    return inputs


def multiplied(b: int = 3, t: int = 5, d: int = 4, m: int = 6, numbers: Callable = Draw.normal) -> Inputs:
    """States (b, d), memory (b, t, m), and the one matrix (m, d)."""
    return lambda draw: (numbers(draw, b, d), numbers(draw, b, t, m), draw.named("w").normal(m, d))


LARGE = {"b": size(9, 17), "t": size(70, 100), "d": size(24, 36), "m": size(36, 48)}


def other_scores(inputs: Callable[..., Inputs]) -> dict[str, Inputs]:
    """Sizes in which a mixed-up axis gives numbers and no error, and the smallest."""
    return {
        "with a batch of one": inputs(b=1),
        "with a memory of one vector": inputs(t=1),
        "with as many sentences as words": inputs(b=5),
        "with states as wide as the memory": inputs(d=6),
        "with all sizes alike": inputs(4, 4, 4, 4),
    }


additive_scores = exercise(
    "additive_scores",
    stars=2,
    minutes=6,
    fixes_bug=True,
    forbidden=NO_PARTS,
    given=compared(),
    also={
        **other_scores(compared),
        "with v of width 2": compared(a=2),
        "with large sums": compared(numbers=partial(Draw.normal, std=40.0)),
    },
    larger=sized(partial(compared, numbers=Draw.heavy), **LARGE, a=size(12, 24)),
    aspects=(values(1.5, axes="b t", picture=True), gradient(1), input_left_alone(0.25), any_device(0.25)),
)

general_scores = exercise(
    "general_scores",
    stars=1,
    minutes=4,
    forbidden=NO_PARTS,
    given=multiplied(),
    also=other_scores(multiplied),
    larger=sized(partial(multiplied, numbers=Draw.heavy), **LARGE),
    aspects=(values(1, axes="b t", picture=True), gradient(0.5), input_left_alone(0.25), any_device(0.25)),
)

# ---------------------------------------------------------------------------------------------- AttentiveDecoder

RETURNED = ("logits", "new state", "weights")


def a_step(t: int, *lengths: int, n: int = 9, d: int = 4, m: int = 6) -> Inputs:
    """Tokens (b,), states (b, d), a memory (b, t, m) of sentences of these lengths, and its mask (b, t)."""

    def inputs(draw):
        b = len(lengths)
        mask = torch.arange(t, device=draw.device) < in_order(draw, *lengths).unsqueeze(-1)
        return draw.integers(0, n, b), draw.normal(b, d), draw.normal(b, t, m), mask

    return inputs


def step_with_gaps(draw: Draw) -> tuple:
    """The same, with a mask that hides places anywhere; each row keeps one place at least."""
    b, t = 4, 6
    y, s, memory, _ = a_step(t, *(t,) * b)(draw)
    kept = torch.arange(t, device=draw.device) == draw.integers(0, t, b).unsqueeze(-1)
    return y, s, memory, draw.mask(0.5, b, t) | kept


def large_step(draw: Draw) -> tuple:
    """The same of more sentences and words, and n, e and a of the decoder that takes it."""
    b, t, d, m = draw.number(9, 17), draw.number(40, 64), draw.number(24, 36), draw.number(36, 48)
    n, e, a = draw.number(70, 130), draw.number(16, 24), draw.number(12, 16)
    mask = torch.arange(t, device=draw.device) < draw.integers(1, t + 1, b).unsqueeze(-1)
    return draw.integers(0, n, b), draw.heavy(b, d), draw.heavy(b, t, m), mask, n, e, a


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


def stepping(answer: Answer, draw: Draw) -> Callable:
    """The student's `step`, of a decoder for n tokens whose vectors have the width e, and of the width a of scores."""

    def call(y, s, memory, mask, n=9, e=3, a=5):
        decoder = built(n, e, s.shape[-1], memory.shape[-1], a)(answer, draw)
        return decoder.step(y, s, memory, mask)

    return call


def side_by_side(*sizes: int) -> Via:
    """All that `step` returns as one tensor (b, n + d + t), by a decoder of these sizes."""

    def via(answer, draw):
        def call(model, *given):
            return torch.cat(list(all_of(RETURNED, model.step(*given))), dim=-1)

        return Called(built(*sizes)(answer, draw), call)

    return via


OTHER_STEPS = {
    "with a batch of one": a_step(5, 4),
    "with a memory of one vector": a_step(1, 1, 1),
    "with as many sentences as words": a_step(4, 1, 2, 3, 4),
    "without padding": a_step(5, 5, 5),
    "with gaps in the mask": step_with_gaps,
}

attentive_decoder = exercise(
    "AttentiveDecoder",
    stars=3,
    minutes=12,
    forbidden={"finished_parts.AttentiveDecoder": FINISHED, "finished_parts.RecurrentTranslator": FINISHED},
    builds_on=("masks.masked_softmax", "recurrent.additive_scores"),
    given=a_step(5, 5, 2, 3),
    also=OTHER_STEPS,
    larger=large_step,
    via=side_by_side(9, 3, 4, 6, 5),
    returns=RETURNED,
    aspects=(
        values(1, of="weights", via=stepping, axes="b t", picture=True),
        values(1, of="new state", via=stepping, axes="b d", picture=True),
        values(1, of="logits", via=stepping, axes="b n", picture=True),
        gradient(1, given=a_step(4, 2, 4, 3, n=7, d=3, m=5), via=side_by_side(7, 4, 3, 5, 2), weights=True),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ------------------------------------------------------------------------------------------------ skip_gram_loss


def neighbours(b: int = 4, k: int = 3, e: int = 6, scale: float = 1.0) -> Inputs:
    """Centres (b, e), a neighbour of each (b, e), and k drawn words for each (b, k, e)."""

    def inputs(draw):
        return scale * draw.normal(b, e), scale * draw.normal(b, e), scale * draw.normal(b, k, e)

    return inputs


FAR_APART = 9.0  # vectors of 6 such numbers have products of about ±200: the sigmoid of −200 is 0 in float32


def many_neighbours(draw: Draw) -> tuple[torch.Tensor, ...]:
    """The same of more and wider vectors; centres are large and the others small, so that no product is large."""
    b, k, e = draw.number(9, 17), draw.number(9, 14), draw.number(24, 48)
    return draw.heavy(b, e), draw.normal(b, e, std=0.05), draw.normal(b, k, e, std=0.05)


skip_gram_loss = exercise(
    "skip_gram_loss",
    stars=2,
    minutes=7,
    forbidden=NO_PARTS,
    given=neighbours(),
    also={
        "with a batch of one": neighbours(b=1),
        "with one negative": neighbours(k=1),
        "with vectors of width 1": neighbours(e=1),
        "with all sizes alike": neighbours(3, 3, 3),
    },
    larger=many_neighbours,
    aspects=(
        values(1),
        values(0.5, given=neighbours(scale=FAR_APART), name="large products"),
        gradient(0.75, also={"with large products": neighbours(scale=FAR_APART)}),
        input_left_alone(0.25),
        any_device(0.5),
    ),
)

# ------------------------------------------------------------------------------------------------ read_backwards

read_backwards = exercise(
    "read_backwards",
    stars=2,
    minutes=8,
    forbidden=NO_PARTS,
    given=sentences(6, 6, 1, 4, 3),
    also={
        "with one sentence": sentences(5, 3, e=2),
        "without padding": sentences(5, 5, 5),
        "where no sentence fills its row": sentences(6, 1, 4, 2, e=4),
        "with sentences of one word": sentences(1, 1, 1),
        "with all sizes alike": sentences(3, 3, 2, 1),
    },
    larger=long_sentences,
    aspects=(values(1.5, axes="b t e", picture=True), gradient(0.5), input_left_alone(0.5), any_device(0.5)),
)

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
        results[case] = at_words(model.layers(ids, lengths.clone()), lengths)
    return results


def long_texts(draw: Draw) -> tuple[tuple[int, int, int], torch.Tensor, torch.Tensor]:
    """The sizes (n, e, depth) of a model, and ids and lengths of more and longer texts than elsewhere."""
    n, e, b, t = draw.number(70, 130), draw.number(6, 9), draw.number(9, 13), draw.number(24, 33)
    return (n, e, draw.number(3, 5)), draw.integers(0, n, b, t), draw.integers(1, t + 1, b)


def layers_of_long_texts(answer: Answer, draw: Draw) -> object:
    """The layers of a larger model."""
    sizes, ids, lengths = long_texts(draw)
    return at_words(built(*sizes)(answer, draw).layers(ids, lengths), lengths)


def called_again(answer: Answer, draw: Draw) -> torch.Tensor:
    """The layers of a text are the same before and after other texts are read."""
    model = built(N, E, 2)(answer, draw)
    ids, lengths = some_texts(draw)
    read = ids.clone(), (ids + 1) % N, ids.clone()
    before, _, after = (at_words(model.layers(each, lengths.clone()), lengths) for each in read)
    if not torch.is_tensor(before) or not torch.is_tensor(after):
        raise Fault(f"`layers` has to return one tensor; it returns {kind_of(before)}.")
    if before.shape != after.shape or not torch.allclose(before, after, atol=1e-5):
        raise Fault(
            "The same text is read twice, with another one in between, and the results differ. Every call has to start"
            " afresh: no state of an LSTM may stay behind."
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
        model.layers = lambda *_, vectors=vectors, **__: vectors
        results[case] = model.loss(ids, lengths)
    return results


def loss_of_long_texts(answer: Answer, draw: Draw) -> object:
    """The loss of a larger model with a stand-in for its layers."""
    (n, e, depth), ids, lengths = long_texts(draw)
    vectors = draw.named("vectors").heavy(len(ids), depth + 1, ids.shape[1], 2 * e)
    model = built(n, e, depth)(answer, draw)
    model.layers = lambda *_, **__: vectors
    return model.loss(ids, lengths)


def reading_loss(answer: Answer, draw: Draw) -> Called:
    """The student's loss with the student's own layers."""
    return Called(built(N, E, 2)(answer, draw), lambda model, *given: model.loss(*given))


def reading_layers(answer: Answer, draw: Draw) -> Called:
    """The student's layers, 0 at padding."""
    return Called(built(N, E, 2)(answer, draw), lambda model, *given: at_words(model.layers(*given), given[1]))


bi_language_model = exercise(
    "BiLanguageModel",
    stars=3,
    minutes=15,
    builds_on=("masks.padding_mask", "recurrent.read_backwards"),
    given=some_texts,
    via=reading_loss,
    aspects=(
        Aspect("layers", 1.25, with_larger(all_layers, layers_of_long_texts), axes="b layer t 2e"),
        Aspect("no state from call to call", 0.25, called_again, side=True),
        Aspect("loss", 1, with_larger(both_losses, loss_of_long_texts)),
        gradient(1, weights=True),
        input_left_alone(0.25),
        any_device(0.25, via=reading_layers),
    ),
)

LESSON = Lesson(
    "13_before_transformers",
    "Before transformers",
    (
        sentence_vector,
        gru_step,
        additive_scores,
        attentive_decoder,
        read_backwards,
        bi_language_model,
        general_scores,
        skip_gram_loss,
    ),
    predictions_of("13_before_transformers"),
)
