"""Lesson 19: what a trained model does, and how to find out."""

from __future__ import annotations

from collections.abc import Callable

import torch

from helpers.exercises.aspects import Inputs, as_is, fill
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    any_device,
    case,
    each_of,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    ints,
    normal,
    size,
    values,
)

SCORES = ("previous", "induction")


def twice(b: int, h: int, p: int) -> Inputs:
    """Attention weights (b, h, 2p − 1, 2p − 1), of p tokens said twice, and p."""
    return case(normal(b, h, 2 * p - 1, 2 * p - 1), p)


def many_heads(draw: Draw) -> tuple:
    """The same for many heads and a long stretch, with a few large numbers."""
    p = draw.number(12, 16)
    return draw.heavy(draw.number(5, 8), draw.number(9, 12), 2 * p - 1, 2 * p - 1), p


pattern_scores = exercise(
    "pattern_scores",
    stars=1,
    minutes=6,
    given=twice(2, 3, 4),
    also={
        "with a batch of one": twice(1, 2, 5),
        "with a single head": twice(3, 1, 3),
        "with two tokens": twice(2, 3, 2),
        "with as many heads as texts": twice(3, 3, 4),
    },
    larger=many_heads,
    returns=SCORES,
    via=each_of(SCORES),
    aspects=(
        values(1, of="previous", via=as_is, axes="h"),
        values(1, of="induction", via=as_is, axes="h"),
        gradient(0.5, of="induction", via=as_is),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)


def added_up(m: int, b: int, t: int, e: int, *eps: float) -> Inputs:
    """Parts of a hidden state, (m, b, t, e), the output layer's rows, (b, t, e), and the last norm's weight."""
    return case(lambda draw: draw.normal(m, b, t, e, std=1.5) + 0.5, normal(b, t, e), normal(e), *eps)


direct_contributions = exercise(
    "direct_contributions",
    stars=2,
    minutes=10,
    given=added_up(3, 2, 4, 5),
    also={
        "with a batch of one": added_up(4, 1, 3, 7),
        "with one position": added_up(2, 3, 1, 6),
        "with a single part": added_up(1, 2, 3, 4),
        "with as many parts as texts": added_up(3, 3, 2, 5),
    },
    larger=case(
        heavy(size(9, 12), size(7, 9), size(24, 29), size(30, 36)),
        normal(size(7, 9), size(24, 29), size(30, 36)),
        normal(size(30, 36)),
    ),
    aspects=(
        values(1.5, axes="part b t", picture=True),
        values(0.5, given=added_up(3, 2, 4, 6, 0.7), name="another epsilon", axes="part b t"),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)


def a_model(n: int, e: int, h: int, depth: int) -> Callable[[Draw], torch.nn.Module]:
    """A model with drawn weights."""

    def make(draw: Draw) -> torch.nn.Module:
        from helpers.parts.induction import AttentionOnly

        return strong(AttentionOnly(n, e, h, depth), draw)

    return make


def strong(module: torch.nn.Module, draw: Draw) -> torch.nn.Module:
    """Drawn weights, with which attention is sharp and norms are no identity. It wants no gradients."""
    for parameter in fill(module, draw).parameters():
        parameter.requires_grad_(False)
        if parameter.dim() == 2:
            parameter.mul_(2)
    return module


def two_texts(b: int, t: int, layer: int, head: int, at: int, h: int = 3, depth: int = 2) -> Inputs:
    """A model, a clean and a corrupted text (b, t), and what is patched."""
    return case(a_model(11, 4 * h, h, depth), ints(b, t, below=11), ints(b, t, below=11), layer, head, at)


def long_texts(draw: Draw) -> tuple:
    """The same for a deeper model, more heads and longer texts."""
    h, b, t, depth = draw.number(6, 9), draw.number(5, 8), draw.number(18, 25), draw.number(4, 6)
    texts = draw.integers(0, 40, 2, b, t)
    model = a_model(40, 8 * h, h, depth)(draw)
    return model, texts[0], texts[1], draw.number(1, depth), draw.number(0, h), draw.number(0, t)


def after_another(answer: Answer, draw: Draw) -> Callable:
    """The answer, called a second time, for the same model, after it has patched something else."""

    def second(model, clean, corrupted, layer, head, at):
        answer(model, corrupted, clean, 1 - layer, (head + 1) % model.layers[0].h, 0)
        return answer(model, clean, corrupted, layer, head, at)

    return second


patched = exercise(
    "patched",
    stars=3,
    minutes=11,
    builds_on=("induction.AttentionOnly",),
    given=two_texts(2, 6, 0, 1, 2),
    also={
        "in layer 1": two_texts(3, 7, 1, 2, 4),
        "with a batch of one": two_texts(1, 6, 0, 2, 3),
        "at the first position": two_texts(2, 5, 1, 0, 0),
        "at the last position": two_texts(2, 5, 1, 0, 4),
        "with one position": two_texts(2, 1, 0, 1, 0),
        "with a single head": two_texts(3, 4, 0, 0, 1, h=1),
        "in the middle of three layers": two_texts(2, 5, 1, 1, 1, h=2, depth=3),
    },
    larger=long_texts,
    aspects=(
        values(2.5, axes="b t n"),
        values(0.5, given=two_texts(2, 5, 0, 2, 3), via=after_another, name="a second call", axes="b t n"),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)


def a_layer(e: int, h: int) -> Callable[[Draw], torch.nn.Module]:
    """A layer of attention with drawn weights."""

    def make(draw: Draw) -> torch.nn.Module:
        from helpers.parts.induction import AttentionLayer

        return strong(AttentionLayer(e, h), draw)

    return make


def two_states(b: int, t: int, role: str, h: int = 3) -> Inputs:
    """A layer, two hidden states (b, t, e), and the input that reads the second."""
    return case(a_layer(4 * h, h), normal(b, t, 4 * h), normal(b, t, 4 * h), role)


def long_states(role: str) -> Inputs:
    """The same for many heads and positions."""

    def inputs(draw: Draw) -> tuple:
        h, b, t = draw.number(6, 9), draw.number(4, 7), draw.number(18, 25)
        return a_layer(8 * h, h)(draw), draw.heavy(b, t, 8 * h), draw.heavy(b, t, 8 * h), role

    return inputs


path_patched = exercise(
    "path_patched",
    stars=2,
    minutes=7,
    builds_on=("induction.AttentionLayer", "multi_head.merge_heads"),
    given=two_states(2, 5, "keys"),
    also={
        "of the queries": two_states(3, 4, "queries"),
        "of the values": two_states(2, 6, "values"),
        "with a batch of one": two_states(1, 5, "keys"),
        "with one position": two_states(2, 1, "values"),
        "with a single head": two_states(2, 4, "queries", h=1),
    },
    larger=long_states("keys"),
    aspects=(values(2, axes="b t e"), gradient(0.5), input_left_alone(0.25), any_device(0.25)),
)


def layers(h: int, d: int, e: int, std: float = 1.0) -> Inputs:
    """The weights of a layer that reads, (h·d, e), and of one that writes, (h·d, e) and (e, h·d), and h."""
    return case(normal(h * d, e, std=std), normal(h * d, e), normal(e, h * d), h)


def many_layers(draw: Draw) -> tuple:
    """The same for nine heads or more, with a few large weights."""
    h, d, e = draw.number(9, 13), draw.number(5, 8), draw.number(40, 49)
    return draw.heavy(h * d, e), draw.heavy(h * d, e), draw.heavy(e, h * d), h


composition_scores = exercise(
    "composition_scores",
    stars=2,
    minutes=8,
    given=layers(2, 3, 5),
    also={
        "with a single head": layers(1, 3, 4),
        "with heads of width 1": layers(3, 1, 4),
        "with heads as wide as the model": layers(2, 4, 4),
        "with as many heads as components of a head": layers(3, 3, 9),
    },
    larger=many_layers,
    aspects=(
        values(1.5, axes="later earlier", picture=True),
        values(0.5, given=layers(3, 2, 6, std=40.0), name="large weights", axes="later earlier"),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)


def stacked(m: int, b: int, t: int, e: int, n: int, *eps: float) -> Inputs:
    """Hidden states, (m, b, t, e), which grow from stage to stage, the last norm's weight and bias, and the table."""

    def inputs(draw):
        growth = draw.normal(m, 1, 1, 1).exp()
        states = (draw.normal(m, b, t, e) + 0.5) * growth
        return states, draw.normal(e), draw.normal(e), draw.normal(n, e), *eps

    return inputs


logit_lens = exercise(
    "logit_lens",
    stars=2,
    minutes=7,
    fixes_bug=True,
    given=stacked(3, 2, 4, 6, 5),
    also={
        "with a batch of one": stacked(4, 1, 3, 5, 7),
        "with one position": stacked(2, 3, 1, 6, 4),
        "with as many states as texts": stacked(3, 3, 2, 5, 6),
    },
    larger=case(
        heavy(size(8, 10), size(5, 7), size(10, 14), size(30, 36)),
        normal(size(30, 36)),
        normal(size(30, 36)),
        normal(size(65, 76), size(30, 36)),
    ),
    aspects=(
        values(1.5, axes="state b t n", picture=True),
        values(0.5, given=stacked(3, 2, 4, 7, 5, 0.7), name="another epsilon", axes="state b t n"),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)


def vectors(m: int, e: int, k: int, penalty: float) -> Inputs:
    """Vectors (m, e), an encoder and a decoder with k features, and how much their lengths cost."""
    return case(normal(m, e), normal(e, k), normal(k), normal(k, e), normal(e), penalty)


def many_vectors(draw: Draw) -> tuple:
    """The same for many features, with a few large numbers."""
    m, e, k = draw.number(30, 40), draw.number(20, 26), draw.number(70, 90)
    drawn = draw.heavy(m, e), draw.normal(e, k), draw.normal(k), draw.normal(k, e), draw.normal(e)
    return *drawn, 0.3 + 0.1 * draw.number(0, 5)


dictionary_loss = exercise(
    "dictionary_loss",
    stars=2,
    minutes=9,
    given=vectors(4, 3, 5, 0.7),
    also={
        "with one vector": vectors(1, 4, 6, 0.3),
        "with one feature": vectors(3, 4, 1, 2.0),
        "with fewer features than components": vectors(3, 6, 2, 0.5),
        "with as many vectors, components and features": vectors(4, 4, 4, 0.4),
        "without a penalty": vectors(3, 4, 5, 0.0),
    },
    larger=many_vectors,
    aspects=(
        values(2, axes="m"),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

LESSON = Lesson(
    "19_looking_inside",
    "Looking inside",
    (
        pattern_scores,
        direct_contributions,
        patched,
        path_patched,
        composition_scores,
        logit_lens,
        dictionary_loss,
    ),
    predictions_of("19_looking_inside"),
)
