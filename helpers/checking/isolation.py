"""Running one exercise's answer alone: in a module of its own, from its program slice, beside no other answer.

In an exam this runs in a process of its own behind the sandbox's walls, where the finished parts do not exist but for
those that the exercise builds on. `python -m helpers panels` does the same in one process, for the student to see.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import sys
import threading
from collections import ChainMap
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, ModuleType

import torch

from helpers.checking import answers
from helpers.checking.answers import Answer
from helpers.checking.forbidden import barred
from helpers.checking.program_slice import Program
from helpers.exercises import Exercise

PARTS = "helpers.parts"
ABSENT = "{name} is a finished part that this exercise does not build on: write what you need of it yourself."
UNDEFINED = "The cell of this exercise does not define `{name}`."
OWN = "<your cell>"  # the file that the own cell goes by in tracebacks


_ALONE = threading.RLock()  # modules are replaced while an answer runs, for all threads


class NothingDefined(Exception):
    """The own cell defines nothing by the exercise's name. The text says so, and where the cell stopped if it did."""


def run_alone(exercise: Exercise, program: Program, parts: Mapping[str, str], seed: int | str) -> tuple[Answer, str]:
    """The answer that a program slice gives, with the inputs of that seed; and where the slice stopped, if it did.

    parts: by module, the text of the finished parts that the exercise builds on (see `finished_parts.sources_for`).
    Raises NothingDefined.
    """
    with _ALONE, _module("__main__") as namespace, _finished(parts), barred(exercise.forbidden):
        written, stopped = _build(exercise.name, program, namespace)
        return answers.run(exercise, written, seed), stopped


def _build(name: str, program: Program, namespace: dict) -> tuple[object, str]:
    """What the own cell defines by that name, and the first error on the way there."""
    _run_setup(program.setup, namespace)
    errors = []
    for piece in program.pieces:
        _remember(f"<{piece.cell}>", "\n" * (piece.line - 1) + piece.text)
        errors.append(_run(piece.text, f"<{piece.cell}>", piece.cell, namespace, piece.line))
    namespace.pop(name, None)  # what is judged is what the own cell defines
    _remember(OWN, program.own)
    errors.append(_run(program.own, OWN, "the cell of this exercise", namespace))
    stopped = next(filter(None, errors), "")
    if name not in namespace:
        raise NothingDefined(f"{UNDEFINED.format(name=name)} {stopped}".rstrip())
    return namespace[name], stopped


def _run(text: str, file: str, cell: str, namespace: dict, line: int = 1) -> str:
    """Run each statement, whatever becomes of those before it: what only tries something out may fail.

    Returns the first error in words, "" where there was none.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        return f"It is not Python: {answers.described(problem).rstrip('.')}."
    stopped = ""
    for node in body:
        try:
            ast.increment_lineno(node, line - 1)
            # Annotations stay text, as this module's do: one may name a finished part that is not here
            exec(compile(ast.Module([node], []), file, "exec"), namespace)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # SystemExit too
            stopped = stopped or f"Line {node.lineno} of {cell} stopped with {answers.described(problem).rstrip('.')}."
    return stopped


def _run_setup(text: str, namespace: dict) -> None:
    """The setup cell, each import by itself: what does not exist here is left out, and nothing is checked here."""
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            with contextlib.suppress(Exception):
                exec(compile(ast.Module([node], []), "<setup>", "exec"), namespace)
            continue
        for alias in node.names:
            node.names = [alias]
            with contextlib.suppress(ImportError):
                exec(compile(ast.Module([node], []), "<setup>", "exec"), namespace)
        if "start" in namespace:
            namespace["start"] = lambda lesson: _no_check
    namespace |= {"check": _no_check, "display": _no_check, "get_ipython": _no_check}


def _no_check(*written: object, **options: object) -> None:
    """Stands in for `check`, which a cell may call after its answer, and for what only a notebook has."""


_no_check.prediction = _no_check


def _remember(file: str, text: str) -> None:
    """So that a traceback, and `inspect`, find the lines."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


@contextlib.contextmanager
def _module(name: str) -> Iterator[dict]:
    """A fresh module in the place of that one, for as long as the block; yields its namespace."""
    before, module = sys.modules.get(name), ModuleType(name)
    sys.modules[name] = module
    try:
        yield vars(module)
    finally:
        sys.modules[name] = before


class _Finished(ModuleType):
    """A module of finished parts that holds only those that the exercise builds on."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(ABSENT.format(name=name))


class _Absent:
    """Refuses to import finished parts that were not put in place."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.startswith(f"{PARTS}."):
            raise ModuleNotFoundError(ABSENT.format(name=name))


@contextlib.contextmanager
def _finished(parts: Mapping[str, str]) -> Iterator[None]:
    """For as long as the block, these finished parts and no others can be imported. parts: text by module, in order."""
    import helpers

    before = {name: module for name, module in sys.modules.items() if name.startswith(PARTS)}
    attribute = vars(helpers).get("parts")
    for name in before:
        del sys.modules[name]
    sys.modules[PARTS] = helpers.parts = package = _Finished(PARTS)
    package.__path__ = []
    sys.meta_path.insert(0, absent := _Absent())
    try:
        for name, text in parts.items():
            module = sys.modules[name] = _Finished(name)
            setattr(package, name.rpartition(".")[2], module)
            exec(compile(text, f"<{name}>", "exec"), vars(module))
        yield
    finally:
        sys.meta_path.remove(absent)
        for name in [name for name in sys.modules if name.startswith(PARTS)]:
            del sys.modules[name]
        sys.modules.update(before)
        if attribute is None:
            del helpers.parts
        else:
            helpers.parts = attribute


# ------------------------------------------------------------------------------- what an answer may not change

_WATCHED = ("torch", "torch.nn.functional", "torch.autograd", "torch.linalg")
_WATCHED_CLASSES = {
    "torch.Tensor": torch.Tensor,
    "torch.nn.Module": torch.nn.Module,
    "torch.nn.Parameter": torch.nn.Parameter,
    "torch.Generator": torch.Generator,
}
_OWN_ROOMS = ("helpers.exercises", "helpers.checking")


def run_watched(
    exercise: Exercise, program: Program, parts: Mapping[str, str], seed: int | str
) -> tuple[Answer, str, list[str]]:
    """As `run_alone`, and what the answer changed of torch and of the check, by name: no exercise needs that.

    Seen from within the student's process, which can hide it: a reason to look, and no proof.
    """
    spaces = _watched(exercise)
    before = {space: {name: _identity(value) for name, value in names.items()} for space, names in spaces.items()}
    answer, stopped = run_alone(exercise, program, parts, seed)
    changed = [
        f"{space}.{name}"
        for space, names in before.items()
        for name, identity in names.items()
        if _identity(spaces[space].get(name)) != identity
    ]
    return answer, stopped, changed[:10]


def _watched(exercise: Exercise) -> dict[str, Mapping[str, object]]:
    """The names of modules, of classes and of the exercise's aspects, by whose they are."""
    spaces = {name: vars(sys.modules[name]) for name in _WATCHED}
    spaces |= {name: vars(module) for name, module in list(sys.modules.items()) if name.startswith(_OWN_ROOMS)}
    own = [each for name in spaces if name.startswith(_OWN_ROOMS) for each in spaces[name].values()]
    classes = [each for each in own if isinstance(each, type) and each.__module__.startswith(_OWN_ROOMS)]
    spaces |= {f"{each.__module__}.{each.__name__}": vars(each) for each in classes}
    for name, each in _WATCHED_CLASSES.items():  # what a class inherits, too, can be covered
        spaces[name] = ChainMap(*map(vars, each.__mro__))
    return spaces | {f"the aspect {aspect.name!r}": vars(aspect) for aspect in exercise.aspects}


def _identity(value: object) -> tuple:
    """Changes when a name gets another meaning, or a function another inside."""
    if not isinstance(value, FunctionType):
        return (id(value),)
    inside = value.__code__, value.__defaults__, value.__kwdefaults__, *map(_content, value.__closure__ or ())
    return (id(value), *map(id, inside))


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it has none
        return None
