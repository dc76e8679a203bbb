"""What an answer may use where its exercise says "write it yourself": what is allowed is written down, nothing else is.

*Operators.* Elementary ones, and those that the exercise names. Any other raises below Python, so that an alias, a
module of torch, a recorded program or a gradient meets it too. torch's dispatcher asks one kind of processor after the
other who computes an operator. The first that it asks here is one that does not exist, and that claims every operator
that is not elementary; the elementary ones cost nothing by it.

*Python code of torch.* What `CODE` lists. What an answer runs beyond it is noticed, by file: a reason for an instructor
to look. So are operators of one's own and a look at torch's source, in any exercise.
"""

from __future__ import annotations

import _lsprof
import contextlib
import functools
import sys
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any
from unittest import mock

import torch

from helpers.checking.run import answers
from helpers.checking.run.answers import TORCH
from helpers.exercises.aspects import Forbidden
from helpers.exercises.exercise import Exercise

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ELEMENTARY, LAYERS = frozenset(_WORDS["elementary"].split()), frozenset(_WORDS["layers"].split())
CODE, NOT_CODE, GRAPHS = (tuple(_WORDS[name].split()) for name in ("code", "not_code", "graphs"))

RAN = "Your answer ran {}, which is PyTorch's own Python code. {}"
READ = "Your answer read {}, which is PyTorch's own source. No exercise needs that."
DEFINED = "Your answer defined operators with `torch.library`. No exercise needs that."
UNWATCHED = "While your answer ran, it took away what watches its operators. No exercise needs that."
CALLS = "Your code calls {}. {}"

DISPATCH_KEYS: Any = torch._C.DispatchKey
INTERCEPTING = DISPATCH_KEYS.AutocastIPU  # no machine has such a processor; it comes before all that compute
PRIMITIVES = ("prim", "profiler")  # namespaces that hold no layers
AUTOGRAD = DISPATCH_KEYS.AutogradCPU  # excluded while an operator calls another


@contextlib.contextmanager
def watched(exercise: Exercise) -> Iterator[list[str]]:
    """Within the block an answer may use what is allowed. Yields a list that is filled meanwhile: what was noticed.

    Sentences, seen from within the student's process, which can hide what it does: reasons to look, and no proof.
    """
    if exercise.by_hand:
        _intercept_operators()  # before anything listens: what it defines once in a process is not the answer's
    with listening(exercise) as noticed, restricted(exercise, noticed):
        yield noticed


@contextlib.contextmanager
def restricted(exercise: Exercise, noticed: list[str]) -> Iterator[None]:
    """Within the block, what is not allowed raises Forbidden, or is noticed."""
    if not exercise.by_hand:
        yield
        return
    with _code_is_noticed(exercise.by_hand, noticed), _operators_intercepted(exercise, noticed):
        yield


# --------------------------------------------------------------------------------------------- operators


@contextlib.contextmanager
def _operators_intercepted(exercise: Exercise, noticed: list[str]) -> Iterator[None]:
    _intercept_operators()
    _exercises.append(exercise)
    _switch(True)
    try:
        yield
    finally:
        if not torch._C._dispatch_tls_is_dispatch_key_included(INTERCEPTING):
            _notice(noticed, UNWATCHED)
        _switch(False)
        _exercises.pop()


_exercises: list[Exercise] = []  # the innermost last


def _switch(on: bool) -> None:
    torch._C._dispatch_tls_set_dispatch_key_excluded(INTERCEPTING, not on)
    torch._C._dispatch_tls_set_dispatch_key_included(INTERCEPTING, on)


@cache
def _intercept_operators() -> tuple[Any, ...]:
    """Intercept each operator that is not elementary, in threads where INTERCEPTING is on. Once in each process."""
    # torch.library.Library keeps itself in a public list of finalizers, by which anybody could end it
    libraries: dict[str, Any] = {"_": torch._C._dispatch_library("IMPL", "_", INTERCEPTING.name, __file__, 0)}
    libraries["_"].fallback(INTERCEPTING.name, torch.library.fallthrough_kernel, False)
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        if _is_intercepted(full):
            if space not in libraries:
                libraries[space] = torch._C._dispatch_library("IMPL", space, INTERCEPTING.name, __file__, 0)
            libraries[space].impl(name, INTERCEPTING.name, _interceptor(space, *name.partition(".")[::2]), False)
    return tuple(libraries.values())


def _is_intercepted(full: str) -> bool:
    space, _, name = full.partition("::")
    elementary = space == "aten" and is_allowed(name.partition(".")[0], ())
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")
    return not (elementary or space in PRIMITIVES or "backward" in name and composite)


def _interceptor(space: str, name: str, overload: str) -> Callable:
    def intercepted(*arguments: object, **options: object) -> object:
        exercise = _exercises[-1]
        of_another = torch._C._dispatch_tls_is_dispatch_key_excluded(AUTOGRAD)  # which computes a part of itself by it
        allowed = space == "aten" and is_allowed(name, exercise.operators)
        if not (allowed or of_another or space == "prims" and _on_meta(arguments)):
            raise Forbidden(CALLS.format(name.strip("_").removesuffix("_math"), exercise.by_hand))
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(INTERCEPTING)):
            return getattr(getattr(getattr(torch.ops, space), name), overload or "default")(*arguments, **options)

    return intercepted


def _on_meta(arguments: tuple) -> bool:
    """Are there tensors among them that hold no numbers? torch finds some shapes by its operators in Python."""
    return any(isinstance(each, torch.Tensor) and each.is_meta for each in arguments)


def is_allowed(name: str, operators: tuple[str, ...]) -> bool:
    """May an answer use the operator of this name? operators: those beyond the elementary ones.

    Underlines at its ends do not matter, and a gradient is allowed where its operator is.
    """
    plain = name.strip("_").partition("_backward")[0]
    return plain in operators or is_elementary(plain)


@cache
def is_elementary(name: str) -> bool:
    """Is it a step that nobody is asked to write by hand: arithmetic, a reduction, a view, a copy?"""
    if name in ELEMENTARY:
        return True
    packet = getattr(torch.ops.aten, name, None) or getattr(torch.ops.aten, f"_{name}", None)
    kinds = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
    tagged = any(torch.Tag.core in kind.tags or torch.Tag.pointwise in kind.tags for kind in kinds)
    return name not in LAYERS and (tagged or any(kind.is_view for kind in kinds))


# ------------------------------------------------------------------------------------ Python code of torch


@contextlib.contextmanager
def _code_is_noticed(says: str, noticed: list[str], building: bool = False) -> Iterator[None]:
    """Within the block, notice Python code of torch that an answer runs and that is not allowed.

    Who called whom is recorded by Python's own profiler, as pairs of functions, and looked at afterwards: a hook in
    Python at each call would take four times as long as most answers. Where a probe and an answer call the same
    function of torch, what it goes on to call counts as called by both.

    building: the cell runs, which may try out whatever it likes, and may make no graph of what is to be written.
    """
    before, profiler = sys.getprofile(), _lsprof.Profiler(subcalls=True, builtins=False)
    with contextlib.suppress(ValueError):  # from Python 3.12 on, where another profiler runs already
        profiler.enable()
    watching = _current_profiler()
    try:
        yield
    finally:
        if _current_profiler() is not watching:
            _notice(noticed, UNWATCHED)
        profiler.disable()
        sys.setprofile(before)
    calls: dict[Any, list[Any]] = {e.code: [call.code for call in e.calls or ()] for e in profiler.getstats()}
    for file, name in _called_by_answers(calls, through_torch=not building):
        if file.startswith(GRAPHS) if building else not _may_run(file, name):
            _notice(noticed, RAN.format(f"torch/{file}", says))


def _current_profiler() -> object:
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    return monitoring.get_tool(monitoring.PROFILER_ID) if monitoring else sys.getprofile()


def _called_by_answers(calls: Mapping[CodeType, list[CodeType]], through_torch: bool) -> Iterator[tuple[str, str]]:
    """The functions of torch that a student's code calls, directly or not: their files within torch, and names.

    Not what an import runs, nor a traceback that is shown on the answer's behalf. through_torch: also what other
    functions of torch call.
    """
    ahead = [code for code in calls if _is_of_a_cell(code.co_filename)]
    seen = set(ahead)
    while ahead:
        for code in calls.get(ahead.pop(), ()):
            file = code.co_filename
            if code in seen or file in (answers.__file__, *_MAY_READ) or file.startswith("<frozen importlib"):
                continue
            seen.add(code)
            if file.startswith(TORCH):
                yield file.removeprefix(TORCH), code.co_qualname
            if through_torch or not file.startswith(TORCH):
                ahead.append(code)


def building(exercise: Exercise, noticed: list[str]) -> contextlib.AbstractContextManager[None]:
    """Within the block the cell runs that the answer comes from."""
    return _code_is_noticed(exercise.by_hand, noticed, building=True) if exercise.by_hand else contextlib.nullcontext()


@cache
def _may_run(file: str, name: str) -> bool:
    return file.startswith(CODE) and not name.startswith(NOT_CODE)


def ready_made(exercise: Exercise, written: object) -> list[str]:
    """A sentence where what is to be written is torch's own object, or is derived from one that computes something."""
    while isinstance(written, functools.partial):
        written = written.func
    kind = written if isinstance(written, (type, FunctionType)) else type(written)
    modules = {each.__module__ for each in (*getattr(kind, "__mro__", ()), kind) if isinstance(each.__module__, str)}
    files = (f"{module.replace('.', '/')}.py" for module in sorted(modules) if module.startswith("torch."))
    own = [file for file in files if not _may_run(file.removeprefix("torch/"), kind.__name__)]
    return [RAN.format(file, exercise.by_hand) for file in own if exercise.by_hand]


# ------------------------------------------------------------------------------ definitions, and torch's source

_listeners: list[tuple[Exercise, list[str]]] = []  # the innermost last; an audit hook stays for as long as the process
_MAY_READ = (traceback.__file__, warnings.__file__)
_WATCHING = ("sys.setprofile", "sys.settrace", "sys.addaudithook")  # nothing is seen within what is set by these
_GENERATED = ("<frozen", "<string>", "<helpers", "<setup", "<__array")  # no cells of a student


@contextlib.contextmanager
def listening(exercise: Exercise) -> Iterator[list[str]]:
    """Within the block, notice operators that are defined, and reading of torch's source where it is to be written."""
    noticed: list[str] = []
    define = torch._C._dispatch_library

    def defining(*arguments: Any) -> Any:
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_code.co_filename.startswith((f"{TORCH}library.py", f"{TORCH}_library")):
            frame = frame.f_back
        if frame and not frame.f_code.co_filename.startswith(TORCH) and _is_students(frame):
            _notice(noticed, DEFINED)
        return define(*arguments)

    _hook_audits()
    _listeners.append((exercise, noticed))
    try:
        with mock.patch.object(torch._C, "_dispatch_library", defining):
            yield noticed
    finally:
        _listeners.remove((exercise, noticed))


@cache
def _hook_audits() -> None:
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple) -> None:
    if event not in ("open", *_WATCHING) or not _listeners or not _listeners[-1][0].by_hand:
        return
    caller, noticed, path = sys._getframe(1), _listeners[-1][1], arguments[0] if event == "open" else ""
    if event != "open" and caller.f_code.co_filename != __file__ and _is_students(caller, directly=True):
        _notice(noticed, UNWATCHED)
    source = isinstance(path, str) and path.startswith(TORCH) and path.endswith(".py")
    if source and _is_students(caller, directly=True):
        _notice(noticed, READ.format(f"torch/{path.removeprefix(TORCH)}"))


def _notice(noticed: list[str], sentence: str) -> None:
    if sentence not in noticed:
        noticed.append(sentence)


def _is_students(frame: FrameType | None, directly: bool = False) -> bool:
    """Does an answer do this, and neither a probe, nor an import, nor a traceback that is shown on its behalf?

    directly: nor torch.
    """
    importing = False
    while frame is not None:
        file = frame.f_code.co_filename
        importing |= frame.f_code.co_name == "<module>"
        if file == answers.__file__ or file in _MAY_READ or importing and file.startswith("<frozen importlib"):
            return False
        if directly and file.startswith(TORCH):
            return False
        if _is_of_a_cell(file):
            return True
        frame = frame.f_back
    return False


def _is_of_a_cell(file: str) -> bool:
    return file.startswith("<") and not file.startswith(_GENERATED) or "ipykernel_" in file
