"""Which settings does an exercise's probe never vary? A wrong answer that ignores one of them gets full marks.

The reference answers every aspect under some seeds, and each call that a probe makes of it is recorded: of a function,
of a class, and of the methods of what the class makes. A setting is one parameter of one of these calls.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

import torch

from helpers.authoring.build.lesson_source import Answers, Source
from helpers.exercises import Exercise
from helpers.exercises.exercise import Aspect

SEEDS = ("unvaried-1", "unvaried-2", "unvaried-3")
NOT_GIVEN = object()

Values = dict[str, list[object]]  # what each setting was given, call by call


def unvaried(source: Source) -> Iterator[str]:
    """Settings that no probe varies and `Exercise.fixed` does not declare; and those that it declares wrongly."""
    answers = Answers(source)
    for exercise in source.lesson:
        findings = dict(settings_never_varied(exercise, answers))
        yield from (f"{exercise.name}: {finding}" for name, finding in findings.items() if name not in exercise.fixed)
        for name in exercise.fixed:
            if name not in findings:
                yield f"{exercise.name}: its probes vary {name!r}, which `fixed` declares as fixed"


def settings_never_varied(exercise: Exercise, answers: Answers) -> Iterator[tuple[str, str]]:
    """Each setting with a sentence on how it never varies."""
    recorded = recorded_settings(exercise, answers)
    constants = {values[0] for values in recorded.values() if _always_one_value(values)}
    for name, values in recorded.items():
        finding = next(filter(None, (look(values) for look in LOOKS)), "") or _axes_of_one_length(values, constants)
        if finding:
            yield name, f"{name} {finding}"


def recorded_settings(exercise: Exercise, answers: Answers) -> Values:
    """What the probes give to the reference, by setting: "pad", or "forward(mask)" for a method."""
    recorder = CallRecorder()
    aspects = tuple(dataclasses.replace(aspect, probe=recording(aspect, recorder)) for aspect in exercise.aspects)
    for seed in SEEDS:
        answers.answer(dataclasses.replace(exercise, aspects=aspects), seed)
    return recorder.values


def recording(aspect: Aspect, recorder: CallRecorder) -> Callable:
    """The aspect's probe, whose calls of the answer are recorded."""
    return lambda answer, draw: aspect.probe(recorder.wrapped(answer), draw)


class CallRecorder:
    """Writes down the arguments of calls that come from a probe. Calls that an answer makes of itself do not count."""

    def __init__(self):
        self.values: Values = defaultdict(list)
        self._inside = False

    def wrapped(self, answer: Callable) -> Callable:
        """The same function, or a subclass, whose calls are recorded."""
        if not inspect.isclass(answer):
            return self._function(answer, "")
        methods = {
            name: self._function(method, "" if name == "__init__" else name, of_class=True)
            for base in reversed(answer.__mro__[: -len(torch.nn.Module.__mro__) or None])
            for name, method in vars(base).items()
            if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_"))
        }
        return type(answer.__name__, (answer,), methods)

    def _function(self, function: Callable, method: str, of_class: bool = False) -> Callable:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def recording(*args, **kwargs):
            if self._inside:
                return function(*args, **kwargs)
            self._record(signature, args, kwargs, method, of_class)
            self._inside = True
            try:
                return function(*args, **kwargs)
            finally:
                self._inside = False

        return recording

    def _record(self, signature: inspect.Signature, args: tuple, kwargs: dict, method: str, of_class: bool) -> None:
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return  # a call with the wrong arguments, which a probe makes to see it refused
        for name, parameter in list(signature.parameters.items())[of_class:]:
            value = arguments.get(name, NOT_GIVEN if parameter.default is parameter.empty else parameter.default)
            setting = f"{method}({name})" if method else name
            self.values[setting].append(value.clone() if isinstance(value, torch.Tensor) else value)


def _always_one_value(values: Sequence[object]) -> str:
    plain = [value for value in values if value is None or isinstance(value, (bool, int, float, str))]
    if len(plain) != len(values) or len({repr(value) for value in plain}) > 1:
        return ""
    return f"is always {plain[0]!r}"


def _tensors(values: Sequence[object]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor) and not value.is_meta]


def _axes_of_one_length(values: Sequence[object], constants: Collection[object]) -> str:
    """The axes whose length never varies; not those whose length is one of `constants`, which are listed themselves."""
    tensors = _tensors(values)
    dims = {tensor.dim() for tensor in tensors}
    if len(dims) != 1:
        return ""
    lengths = [{tensor.shape[axis] for tensor in tensors} for axis in range(dims.pop())]
    fixed = [axis for axis, sizes in enumerate(lengths) if len(sizes) == 1 and not sizes & {1, *constants}]
    if not fixed:
        return ""
    return f"always has the same length ({', '.join(f'axis {axis}: {tensors[0].shape[axis]}' for axis in fixed)})"


def _mask_without_gaps(values: Sequence[object]) -> str:
    masks = [tensor for tensor in _tensors(values) if tensor.dtype == torch.bool and tensor.numel() > 1]
    if not masks or any(_changes(mask) > 1 for mask in masks):
        return ""
    return "is a mask without gaps: in each row all True entries are at one end"


def _changes(mask: torch.Tensor) -> int:
    """How often a row's entries change, at most."""
    rows = mask.reshape(-1, mask.shape[-1]) if mask.dim() else mask.reshape(1, 1)
    return int((rows[:, 1:] != rows[:, :-1]).sum(1).max()) if math.prod(rows.shape) else 0


def _list_of_one_length(values: Sequence[object]) -> str:
    lists = [value for value in values if isinstance(value, (list, tuple, dict))]
    if len(lists) < len(values) or len({len(one) for one in lists}) != 1:
        return ""
    return f"always has {len(lists[0])} entries"


LOOKS = (_always_one_value, _mask_without_gaps, _list_of_one_length)
