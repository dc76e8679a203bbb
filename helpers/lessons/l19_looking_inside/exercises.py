"""Lesson 19: what a trained model does, and how to find out."""

from __future__ import annotations

from helpers.exercises.aspects import Inputs
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import (
    any_device,
    case,
    exercise,
    gradient,
    heavy,
    input_left_alone,
    integer,
    normal,
    size,
    values,
)

without_head = exercise(
    "without_head",
    stars=1,
    minutes=4,
    given=case(normal(2, 4, 3, 4), 1),  # what heads have gathered, (b, h, t, d), and which is switched off
    also={
        "without the first of four": case(normal(2, 4, 5, 2), 0),
        "without the last of three, a batch of one": case(normal(1, 3, 3, 4), 2),
        "with as many heads as texts": case(normal(3, 3, 3, 3), 2),
        "without the only one": case(normal(2, 1, 1, 4), 0),
    },
    larger=case(heavy(size(10, 12), size(13, 17), size(18, 23), size(9, 10)), integer(5, 9)),
    aspects=(values(1, axes="b h t d", picture=True), gradient(0.5), input_left_alone(0.25), any_device(0.25)),
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

LESSON = Lesson(
    "19_looking_inside",
    "Looking inside",
    (without_head, direct_contributions, composition_scores, logit_lens),
    predictions_of("19_looking_inside"),
)
