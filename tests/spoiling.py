"""Answers that are none: of somebody who computes nothing, and right ones that are spoilt at the last moment."""

import copy
import functools
import inspect

import torch

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.build.make_keys import make_key
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.verdicts import judge
from helpers.checking.run.answers import run


def each_tensor(change):
    """`change` for whatever a function returns: a tensor, or several in a tuple, a list or a dict."""

    def of(value):
        if isinstance(value, torch.Tensor):
            return change(value)
        if isinstance(value, (tuple, list)):
            return type(value)(of(part) for part in value)
        if isinstance(value, dict):
            return {name: of(part) for name, part in value.items()}
        if isinstance(value, (bool, int, float)):
            return of_number(change, value)
        return value

    return of


def of_number(change, value):
    changed = change(torch.tensor(float(value)))
    return changed.item() if changed.numel() == 1 else value


def filled(number):
    return lambda t: (
        t * 0 + number if t.is_floating_point() else torch.full_like(t, int(number) if number == number else 0)
    )


def one_axis_gone(t):
    return t[0] if t.dim() and len(t) else t


# Nothing is computed: none of these earns a point anywhere.
IDLE = {
    "zeros": each_tensor(filled(0.0)),
    "ones": each_tensor(filled(1.0)),
    "NaN": each_tensor(filled(float("nan"))),
    "infinities": each_tensor(lambda t: torch.full_like(t, torch.inf) if t.is_floating_point() else filled(9)(t)),
    "None": lambda value: None,
}
# Right numbers that something was done to: each loses points.
SPOILT = {
    "detached": each_tensor(lambda t: t.detach()),
    "squeezed": each_tensor(lambda t: t.squeeze()),
    "of half precision": each_tensor(lambda t: t.half() if t.is_floating_point() else t),
    "of another rank": each_tensor(one_axis_gone),
    "the first entry for all": each_tensor(lambda t: t[:1].expand_as(t) if t.dim() else t),
}


def in_double_precision(value):
    """Right where an exercise does not speak of the type; see the test."""
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


class Watched:
    """A change, and whether it ever made a difference: a number has no axes to squeeze."""

    def __init__(self, change):
        self._change, self.mattered = change, False

    def __call__(self, value):
        changed = self._change(value)
        self.mattered |= _differs(value, changed)
        return changed


def _differs(before, after):
    if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
        one, other = [(t.shape, t.dtype, t.requires_grad, t.device) for t in (before, after)]
        return one != other or not (before.is_meta or torch.equal(before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return any(_differs(before[name], after[name]) for name in before)
    if isinstance(before, (tuple, list)) and isinstance(after, (tuple, list)):
        return any(_differs(one, other) for one, other in zip(before, after, strict=True))
    return False


def returning(answer, change, *, on_copies=False):
    """The same function, or a class with the same parameters, whose results are changed.

    on_copies: whatever it does to its arguments besides is done to copies of them.
    """
    if inspect.isclass(answer):
        methods = [name for name, thing in vars(answer).items() if inspect.isfunction(thing) and name[:2] != "__"]
        changed = {name: _changed_method(answer, name, change) for name in methods}
        return type(answer.__name__, (answer,), changed)

    @functools.wraps(answer)
    def spoilt(*arguments, **options):
        if on_copies:
            arguments, options = map(copied, arguments), {name: copied(value) for name, value in options.items()}
        return change(answer(*arguments, **options))

    return spoilt


def _changed_method(answer, name, change):
    def method(self, *arguments, **options):
        return change(getattr(answer, name)(self, *arguments, **options))

    return method


def copied(argument):
    """A copy to work on; tensors stay in their graph, so that a right answer's gradients are right."""
    if isinstance(argument, torch.Tensor):
        return argument.clone()
    try:
        return copy.deepcopy(argument)
    except (TypeError, RuntimeError):  # a generator, or tensors within a graph
        return argument


def returning_input(answer, place):
    """A function, or a class with the right parameters, that returns what it was given."""

    def given(*arguments, **options):
        return arguments[min(place, len(arguments) - 1)]

    if inspect.isclass(answer):
        methods = [name for name, thing in vars(answer).items() if inspect.isfunction(thing) and name[:2] != "__"]
        return type(answer.__name__, (answer,), {name: lambda self, *a, **o: given(*a) for name in methods})
    return given


class Judge:
    """Judges objects as answers to a lesson's exercises, with the shipped key or with that of a seed."""

    def __init__(self, name, seed=None):
        (self.source,) = sources([name])
        self.lesson = self.source.lesson
        self._answers = Answers(self.source)
        self._key = make_key(self.source, seed) if seed else load_key(self.lesson, shipped_path(name), "")

    def right(self, exercise):
        return self._answers.make(exercise)

    def verdict(self, exercise, written):
        answer = run(self.lesson[exercise], written, self._key.seed)
        return judge(self.lesson[exercise], answer, self._key[exercise])
