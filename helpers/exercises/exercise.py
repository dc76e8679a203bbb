"""What a lesson asks: exercises, and the aspects that share an exercise's points."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, cast

import torch

from helpers.course import LESSONS
from helpers.exercises.draw import Draw
from helpers.exercises.tolerance import VALUES, Tolerance

Answer = Any  # what the student wrote: a function or a class, if it is that
Probe = Callable[[Answer, Draw], Any]
Collected = Mapping[str, torch.Tensor]  # what a probe returned, by name
Reduce = Callable[[Collected, Draw], Any]

# Operators beyond the elementary ones, for `Exercise.operators`
SOFTMAX_OPERATORS = ("softmax", "log_softmax", "safe_softmax", "logsumexp")
ATTENTION_OPERATORS = (*SOFTMAX_OPERATORS, "scaled_dot_product_attention", "scaled_dot_product_attention_math")
NORM_OPERATORS = ("layer_norm", "native_layer_norm")
LOSS_OPERATORS = ("cross_entropy_loss", "nll_loss_nd", "nll_loss", "nll_loss2d")


class UnknownLesson(LookupError):
    """There is no lesson, or no exercise, of that name."""


TEXT = torch.uint8  # what holds a text, as bytes: names and shapes, a line each


class Kind(Enum):
    """What a tensor holds, where a verdict treats it in its own way."""

    VALUE = "what the exercise asks for"
    GRADIENT = "a gradient of the result, which is wrong wherever the result is"
    ASKED_GRADIENT = "a gradient that the exercise asks for"
    PARAMETERS = "names and shapes of a module's parameters, which the check fills by name; beside them, their start"
    ARGUMENT = "what the caller's own object holds after the call"
    QUESTION = "0 for no, 1 for yes: the tensor's name is the question"


@dataclass(frozen=True)
class Aspect:
    """One thing that an exercise must get right."""

    name: str
    """What the student reads beside ✓ or ✗."""
    points: float
    """Its share."""
    probe: Probe
    """probe(answer, draw): runs what the student wrote on drawn inputs and returns a tensor, a tuple of tensors, or a
    dict of them. May raise `aspects.Fault`.
    """
    axes: str = ""
    """Names of the result's axes, "b t t", for messages."""
    side: bool = False
    """True where the right tensors can be guessed without solving the exercise (an input left alone, an error raised);
    such an aspect pays only when the exercise's values were really computed.
    """
    accepts: str = "tensor"
    """Either "tensor" or "number" (a Python number or a tensor of one entry)."""
    rtol: float = VALUES.rtol
    atol: float = VALUES.atol
    """rtol, atol: how far off the result may be; see `exercises.tolerance`."""
    dtype: bool = False
    """Compare the dtype too."""
    picture: bool = False
    """The first slice of the result can be shown as a heat map."""
    missed: str = ""
    """What to say when the aspect fails and nothing more exact is known."""
    filler: int | None = None
    """What the probe fills rows of ids up with, after their end."""
    reduce: Reduce | None = None
    """reduce(tensors, draw): makes of what the probe returns, by name, what is compared, in the same form. No student's
    code runs beside it, so that nobody can forge a share that is counted; the tensors may be of any shapes and types.
    May raise `aspects.Fault`.
    """
    kind: Kind = Kind.VALUE
    """What its tensors hold."""
    kinds: Mapping[str, Kind] = field(default_factory=lambda: MappingProxyType({}))
    """What those of these names hold instead."""
    collected_by: str = ""
    """The aspect whose probe collects for this one too, whose own probe is not run; "" where it collects itself."""

    def kind_of(self, name: str) -> Kind:
        """What its tensor of that name holds."""
        return self.kinds.get(name, self.kind)

    def is_gradient(self, name: str) -> bool:
        """Is its tensor of that name a gradient?"""
        return self.kind_of(name) in (Kind.GRADIENT, Kind.ASKED_GRADIENT)

    @property
    def tolerance(self) -> Tolerance:
        """How far a right answer's numbers may be from the reference's."""
        return Tolerance(self.rtol, self.atol)


@dataclass(frozen=True)
class Exercise:
    """One exercise: a name that the student defines, and the aspects that its check looks at."""

    name: str
    stars: int
    """Difficulty, 1 to 3."""
    minutes: int
    """How long it takes."""
    aspects: tuple[Aspect, ...]
    forbidden: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Names that the solution cell must not use, each with the sentence that says what to write instead;
    `checking.read.syntax` knows their other names.
    """
    answered_by: tuple[str, ...] = ()
    """Finished parts below helpers.parts that answer the exercise, "bpe.Tokenizer", beside those of its name."""
    builds_on: tuple[str, ...] = ()
    """Finished parts that its answer or its probe needs, "masks.causal_mask". In an exam no others exist."""
    fixed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Settings that its probes never vary, each with the reason why one value is enough; `make check` lists others."""
    fixes_bug: bool = False
    """The student's cell holds code with a bug, and not a stub (see `helpers.notebooks`). As it was released it earns
    nothing, and neither does the bug in other words: the mistake of the slug UNCHANGED, which every such exercise
    has. What the bug gets right pays only beside something that it gets wrong.
    """
    by_hand: str = ""
    """What to write oneself, in a sentence; "" where all of torch may be used. Elementary operators are allowed then,
    and those of `operators` ("softmax"), and no Python code of torch that computes something (see
    `checking.run.by_hand`).
    """
    operators: tuple[str, ...] = ()
    no_larger: str = ""
    """Why no case of it can be much larger than the others; "" where one is (see `aspects.LARGER`)."""
    may_be_typed_in: str = ""
    """Why its answer may be typed in, which the card says; `make check` refuses values that never change."""
    seconds: float = 0
    """Time that it takes beyond what any exercise may take."""
    score: Callable[[Collected, Draw], float] | None = None
    """Of an open task, the number that answers are ranked by, the lower the better, made of what the first aspect
    collects (see `open_task`). What it is tried on is `material`.
    """
    material: Any = None

    def __post_init__(self):
        names = [aspect.name for aspect in self.aspects]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: two aspects share a name: {names}")
        if all(aspect.side for aspect in self.aspects):
            raise ValueError(f"{self.name}: at least one aspect must compare values (side=False)")

    @property
    def points(self) -> float:
        """What all its aspects are worth."""
        return sum(aspect.points for aspect in self.aspects)

    def draw(self, seed: int | str, aspect: Aspect) -> Draw:
        """The inputs of one aspect under one seed."""
        draw = Draw(seed, self.name, aspect.collected_by or aspect.name)
        draw.material = self.material
        return draw

    @property
    def open_task(self) -> bool:
        """Is there no right answer to it, but a score?"""
        return self.score is not None


@dataclass(frozen=True)
class Prediction:
    """A question that the student answers before the cell that shows the truth. It carries no points."""

    name: str
    """What the student's cell gives a value, one of the choices."""
    truth: str
    """The right one."""
    says: Mapping[str, str]
    """For each choice, in the order of the card, why it is tempting and what is so instead; for the truth, why it is
    so.
    """

    @property
    def cell(self) -> str:
        """The grade id of the cell that answers it."""
        return self.name

    @property
    def choices(self) -> tuple[str, ...]:
        """What can be answered: ("A", "B", "C")."""
        return tuple(self.says)

    def choice(self, value: object) -> str:
        """The choice that a student's value means, case and spaces forgiven; "" where it is none of them.

        The value may be anything, and nothing of its own is called.
        """
        if not issubclass(type(value), str) or str.__len__(cast(str, value)) > LONGEST_CHOICE:
            return ""
        told = str.__str__(value).strip().casefold()
        return next((choice for choice in self.says if choice.casefold() == told), "")


@dataclass(frozen=True)
class Recall(Prediction):
    """A question about an earlier lesson, before a lesson starts: a prediction whose card is made of it."""

    asks: str = ""
    """The question."""
    offers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """For each choice, the answer on the card. See `exercises.questions`."""

    @property
    def cell(self) -> str:
        """One cell answers all of them."""
        return RECALL


RECALL = "recall"  # the grade id of the cell in which all questions about earlier lessons are answered
LONGEST_CHOICE = 40  # characters; what is longer is none
UNCHANGED = "unchanged"  # the slug of the mistake that is the bug itself


@dataclass(frozen=True)
class Lesson:
    """A lesson's exercises, in their order, and what it has students predict."""

    name: str
    """Its folder, NN_topic."""
    title: str
    exercises: tuple[Exercise, ...]
    predictions: tuple[Prediction, ...] = ()

    @property
    def number(self) -> int:
        """Which lesson it is: 3 for 03_scaling."""
        return int(self.name.split("_")[0])

    @property
    def points(self) -> float:
        """What all its exercises are worth."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def recall(self) -> tuple[Recall, ...]:
        """The questions about earlier lessons that come before it: three from lesson 3 on."""
        from helpers.exercises.questions import recall_of  # which imports this module

        return recall_of(self.name)

    @property
    def questions(self) -> tuple[Prediction, ...]:
        """All that carries no points, in the order of the lesson."""
        return (*self.recall, *self.predictions)

    def __iter__(self) -> Iterator[Exercise]:
        return iter(self.exercises)

    def on(self, material: Any) -> Lesson:
        """The lesson with what its open tasks are tried on; the same where it has none."""
        given = tuple(replace(each, material=material) if each.open_task else each for each in self.exercises)
        return replace(self, exercises=given)

    @property
    def open_task(self) -> bool:
        """Does one of its exercises need a file beside the notebook, and a text to be scored on?"""
        return any(exercise.open_task for exercise in self.exercises)

    def __getitem__(self, name: str) -> Exercise:
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        known = ", ".join(exercise.name for exercise in self.exercises)
        raise UnknownLesson(f"{self.name} has no exercise called {name!r}. It has: {known}.")

    def __contains__(self, name: object) -> bool:
        return any(exercise.name == name for exercise in self.exercises)

    def prediction(self, name: object) -> Prediction | None:
        """The prediction of that name, if there is one."""
        return next((prediction for prediction in self.predictions if prediction.name == name), None)


def lesson_names() -> list[str]:
    """The names of all lessons that have exercises, in order."""
    return sorted(path.parent.name[1:] for path in LESSONS.glob("l[0-9][0-9]_*/exercises.py"))


def load_lesson(name: str) -> Lesson:
    """The lesson of that name, from helpers/lessons/l<name>/exercises.py.

    Raises UnknownLesson, with the names there are, when there is none.
    """
    if not re.fullmatch(r"\d\d_[a-z0-9_]+", name) or name not in lesson_names():
        raise UnknownLesson(f"There is no lesson called {name!r}. There is: {', '.join(lesson_names())}.")
    return importlib.import_module(f"helpers.lessons.l{name}.exercises").LESSON
