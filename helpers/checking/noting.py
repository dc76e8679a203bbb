"""A note of what an answer entered while it ran: finished parts of the course, and torch functions that the exercise forbids.

The note is taken beside the student's code, which can forge or empty it. It is a hint to look at, and no proof of innocence.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType

import torch
from torch.overrides import TorchFunctionMode

from helpers.checking.syntax import equivalents
from helpers.course import HELPERS
from helpers.exercises import Exercise

PARTS = os.path.join(str(HELPERS), "parts") + os.sep
MOST = 32  # things noted of one answer
LONGEST = 100  # characters of one

_OURS = (str(HELPERS) + os.sep, os.path.dirname(os.path.dirname(torch.__file__)), os.path.dirname(os.__file__), "<frozen")


@contextlib.contextmanager
def noted(exercise: Exercise, written: object) -> Iterator[set[str]]:
    """Yields the set that fills while the body runs.

    "helpers.parts.masks.causal_mask" for a finished part that was entered from code of the student's, or that the answer itself
    is; "torch: softmax" for a function of torch that is forbidden in this exercise.
    """
    entered: set[str] = set()

    def note(name: str) -> None:
        if len(entered) < MOST:
            entered.add(name[:LONGEST])

    for name in _parts_of(written):
        note(name)
    with _parts_entered(note), _functions_entered(equivalents(exercise.forbidden), note, bool(entered)):
        yield entered


def _parts_of(written: object) -> list[str]:
    """The finished parts that the answer itself is, is a class below, or wraps."""
    found, look = [], [written]
    for _ in range(8):  # a chain of wrappers ends; one that does not is somebody's joke
        if not look:
            break
        thing = look.pop()
        kinds = type.mro(thing) if isinstance(thing, type) else (thing, type(thing))
        for kind in kinds:
            module = getattr(kind, "__module__", None)
            if isinstance(module, str) and module.startswith("helpers.parts."):
                found.append(f"{module}.{getattr(kind, '__qualname__', '?')}")
        look += [inner for name in ("func", "__wrapped__", "__func__") if (inner := _held(thing, name)) is not None]
    return found


def _held(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # a property of the student's own
        return None


def _from_the_answer(frame: FrameType | None) -> bool:
    """Is there a student's frame between this one and the check that runs the probe?"""
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OURS):
            return True
        if name == __file__ or frame.f_code.co_name == "_outcome":
            return False
        frame = frame.f_back
    return False


def _called(code: CodeType) -> str:
    module = code.co_filename[len(PARTS) :].removesuffix(".py").replace(os.sep, ".")
    return f"helpers.parts.{module}.{code.co_qualname}"


@contextlib.contextmanager
def _parts_entered(note: Callable[[str], None]) -> Iterator[None]:
    """Sees Python functions begin: with sys.monitoring where there is one (Python 3.12), else with a profiler."""

    def profiler(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PARTS) and _from_the_answer(frame.f_back):
            note(_called(code))

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextlib.contextmanager
def _functions_entered(names: frozenset[str], note: Callable[[str], None], direct: bool) -> Iterator[None]:
    if not names:
        yield
        return
    with _Watch(names, note):
        yield


class _Watch(TorchFunctionMode):
    """Sees every function of torch that is called, by whatever name the student's text calls it."""

    def __init__(self, names: frozenset[str], note: Callable[[str], None]):
        super().__init__()
        self._names, self._note = names, note

    def __torch_function__(self, function, types, arguments=(), options=None):
        name = getattr(function, "__name__", "")
        if name in self._names and _from_the_answer(sys._getframe(1)):
            self._note(f"torch: {name}")
        return function(*arguments, **(options or {}))
