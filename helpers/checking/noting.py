"""A note of what an answer entered while it ran: finished parts that answer the exercise, forbidden functions of torch.

The note is taken beside the student's code, which can forge or empty it. It is a hint to look at, and no proof of
innocence.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType

import torch
from torch.overrides import TorchFunctionMode

from helpers.checking.finished_parts import answered_by
from helpers.checking.syntax import NEAR, equivalents
from helpers.course import HELPERS
from helpers.exercises import Exercise

MOST = 32  # things noted of one answer
LONGEST = 100  # characters of one

_OURS = (
    str(HELPERS) + os.sep,
    os.path.dirname(os.path.dirname(torch.__file__)) + os.sep,
    os.path.dirname(os.__file__) + os.sep,
    "<frozen",
)

Note = Callable[[str], None]


@contextlib.contextmanager
def noted(exercise: Exercise, written: object) -> Iterator[set[str]]:
    """Yields the set that fills while the body runs the exercise's probes on what was written.

    "helpers.parts.masks.causal_mask": a finished part that answers the exercise, and that was entered from code of the
    student's, or that the answer itself is. "torch.softmax": a function of torch that the exercise forbids.
    """
    entered: set[str] = set()

    def note(name: str) -> None:
        if len(entered) < MOST:
            entered.add(name[:LONGEST])

    parts = answered_by(exercise)
    for name in _parts_of(written):
        if name in parts:
            note(name)
    with _parts_watched(parts, note), _functions_watched(exercise, note):
        yield entered


def _parts_of(written: object) -> list[str]:
    """The finished parts that the answer itself is, is a class below, or wraps."""
    found, look = [], [written]
    for _ in range(8):  # a chain of wrappers ends; one that does not is somebody's joke
        if not look:
            break
        thing = look.pop()
        for kind in type.mro(thing) if isinstance(thing, type) else (thing, *type.mro(type(thing))):
            found.append(f"{_held(kind, '__module__')}.{_held(kind, '__qualname__')}")
        look += [inner for name in ("func", "__wrapped__", "__func__") if (inner := _held(thing, name)) is not None]
    return found


def _held(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of the student's own
        return None


def _from_the_answer(frame: FrameType | None) -> bool:
    """Is there a student's frame between this one and the check that runs the probe?"""
    while frame is not None and frame.f_code.co_name != "_outcome":
        if not frame.f_code.co_filename.startswith(_OURS):
            return True
        frame = frame.f_back
    return False


# ---------------------------------------------------------------------------------------- finished parts


@contextlib.contextmanager
def _parts_watched(parts: tuple[str, ...], note: Note) -> Iterator[None]:
    """Makes these functions, and the methods of these classes, say when they are entered.

    Their code is exchanged, for student code may hold them by any name. A profiler would see the same; on Python 3.11
    it makes all probes together take 1.7 times as long.
    """
    changed: list[tuple[FunctionType, CodeType]] = []
    try:
        for part in parts:
            for function in _functions_of(part):
                changed.append((function, function.__code__))
                function.__code__ = _telling(function, part, note)
        yield
    finally:
        for function, code in reversed(changed):
            function.__code__ = code


def _functions_of(part: str) -> list[FunctionType]:
    module, _, name = part.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return []
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    if isinstance(found, FunctionType):
        return [found]
    inner = [inner for inner in vars(found).values() if isinstance(inner, FunctionType)]
    return [function for function in inner if len(function.__code__.co_freevars) < len(_CODES)]


def _telling(function: FunctionType, part: str, note: Note) -> CodeType:
    """Code that notes the part and then does what the function does."""
    inner = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    inner.__kwdefaults__ = function.__kwdefaults__

    def entered(*arguments, **options):
        if _from_the_answer(sys._getframe(2)):
            note(part)
        return inner(*arguments, **options)

    code = _CODES[len(function.__code__.co_freevars)]
    return code.replace(co_consts=tuple(entered if const == _HERE else const for const in code.co_consts))


_HERE = 3.25  # stands in the constants of the code below where what is to be called goes


def _codes() -> tuple[CodeType, CodeType]:
    """Code of functions that close over no name, and over one: code is exchanged for code that closes over as many.

    A method that says ``super()`` closes over ``__class__``.
    """

    def closing_over_none(*arguments, **options):
        entered = 3.25
        return entered(*arguments, **options)

    def closing_over_one(*arguments, **options):
        entered = 3.25
        return entered(*arguments, **options) if closing_over_none else None

    return closing_over_none.__code__, closing_over_one.__code__


_CODES = _codes()


# -------------------------------------------------------------------------------------- torch's functions


@contextlib.contextmanager
def _functions_watched(exercise: Exercise, note: Note) -> Iterator[None]:
    if not exercise.forbidden:
        yield
        return
    near = {name for kind in NEAR if kind in exercise.forbidden for name in NEAR[kind]}
    with _Watch(frozenset(equivalents(exercise.forbidden)) - near, note):
        yield


class _Watch(TorchFunctionMode):
    """Sees every function of torch that is called, by whatever name the student's text calls it."""

    def __init__(self, names: frozenset[str], note: Note):
        super().__init__()
        self._names, self._note = names, note

    def __torch_function__(self, function, types, arguments=(), options=None):
        name = getattr(function, "__name__", "")
        if name in self._names and _from_the_answer(sys._getframe(1)):
            self._note(f"torch.{name}")
        return function(*arguments, **(options or {}))
