"""Running one exercise's answer alone: in a module of its own, from its program slice, beside no other answer.

In an exam this runs in a process of its own inside the sandbox, where only those finished parts exist that the exercise
builds on. `python -m helpers panels` does the same in one process, for the student to see.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import linecache
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from types import CellType, CodeType, FunctionType, ModuleType

import torch

import helpers
from helpers.checking.read.cell_scan import scan_submission
from helpers.checking.read.finished_parts import PARTS, one_a_name
from helpers.checking.read.program_slice import FINISHED, CodeCell, ProgramSlice
from helpers.checking.read.syntax import cell_of
from helpers.checking.run import answers
from helpers.checking.run.answers import Answer
from helpers.checking.run.by_hand import building, listening, ready_made, restricted, watched
from helpers.device import on_the_cpu
from helpers.exercises import Exercise, Lesson
from helpers.notebooks import SETUP

Parts = Mapping[str, str | CodeType]

OWN = "<your cell>"  # the file that the own cell goes by in tracebacks


_ALONE = threading.RLock()  # modules are replaced while an answer runs, for all threads


class NothingDefined(Exception):
    """The own cell defines nothing by the exercise's name. The text says so, and where the cell stopped if it did."""


def run_alone(exercise: Exercise, program: ProgramSlice, parts: Parts, seed: int | str) -> tuple[Answer, str]:
    """The answer that a program slice gives, with the inputs of that seed; and where the slice stopped, if it did.

    parts: by module, the text or the code of the finished parts that the exercise builds on (see
    `finished_parts.sources_for`). Raises NothingDefined.
    """
    with _ALONE, _module("__main__") as namespace, _finished(parts), on_the_cpu():
        written, stopped = _build(exercise.name, program, namespace)
        with watched(exercise):
            return answers.run(exercise, written, seed), stopped


def _build(name: str, program: ProgramSlice, namespace: dict) -> tuple[object, str]:
    """What the own cell defines by that name, and the first error on the way there."""
    _run_setup(program.setup, namespace)
    errors = [_run(each.text, f"<{each.cell}>", each.cell, namespace, each.line) for each in program.definitions]
    namespace.pop(name, None)  # what is judged is what the own cell defines
    errors.append(_run(program.own, OWN, "the cell of this exercise", namespace))
    stopped = next(filter(None, errors), "")
    if name not in namespace:
        raise NothingDefined(f"The cell of this exercise does not define `{name}`. {stopped}".rstrip())
    return namespace[name], stopped


def _run(text: str, file: str, cell: str, namespace: dict, line: int = 1) -> str:
    """Run each statement; one that only tries something out may fail. Returns the first error, or ""."""
    lines = ["\n"] * (line - 1) + text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)  # where a traceback, and `inspect`, find them
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        return f"It is not Python: {answers.described(problem).rstrip('.')}."
    stopped = ""
    for node in body:
        try:
            ast.increment_lineno(node, line - 1)
            exec(compile(ast.Module([node], []), file, "exec"), namespace)  # annotations stay text, as this module's do
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # SystemExit too
            stopped = stopped or f"Line {node.lineno} of {cell} stopped with {answers.described(problem).rstrip('.')}."
    return stopped


@lru_cache(maxsize=64)
def _setup_code(text: str) -> list[tuple[CodeType, type[Exception]]]:
    """The code of a setup cell, statement by statement and import by import, and what each may raise."""
    code: list[tuple[CodeType, type[Exception]]] = []
    for node in cell_of(text).tree.body:
        allowed = ImportError if isinstance(node, (ast.Import, ast.ImportFrom)) else Exception
        trees = [ast.fix_missing_locations(ast.Module([piece], [])) for piece in one_a_name(node)]
        code += [(compile(tree, "<setup>", "exec"), allowed) for tree in trees]
    return code


def _run_setup(text: str, namespace: dict) -> None:
    """The setup cell, each import by itself: what does not exist here is left out, and nothing is checked here."""
    for code, allowed in _setup_code(text):
        with contextlib.suppress(allowed):
            exec(code, namespace)
        if "start" in namespace:
            namespace["start"] = lambda lesson: _no_check
    namespace |= {"check": _no_check, "display": _no_check, "get_ipython": _no_check}


def _no_check(*written: object, **options: object) -> None:
    """Stands in for `check`, which a cell may call after its answer, and for what only a notebook has."""


vars(_no_check)["prediction"] = vars(_no_check)["recall"] = _no_check


@contextlib.contextmanager
def _module(name: str) -> Iterator[dict]:
    """Replace that module by an empty one within the block; yields its namespace."""
    module = ModuleType(name)
    before = sys.modules.get(name, module)
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
        raise ImportError(FINISHED.format(name=name))


class _Absent:
    """Refuses to import finished parts that were not put in place."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.startswith(f"{PARTS}."):
            raise ModuleNotFoundError(FINISHED.format(name=name))


@contextlib.contextmanager
def _finished(parts: Parts) -> Iterator[None]:
    """For as long as the block, these finished parts and no others can be imported. parts: by module, in order."""
    before = _loaded(sys.modules.get(PARTS))
    for name in before:
        sys.modules.pop(name, None)
    sys.modules[PARTS] = vars(helpers)["parts"] = package = _Finished(PARTS)
    package.__path__ = []
    sys.meta_path.insert(0, absent := _Absent())
    try:
        for name, text in parts.items():
            module = sys.modules[name] = _Finished(name)
            setattr(package, name.rpartition(".")[2], module)
            exec(text if isinstance(text, CodeType) else compile(text, f"<{name}>", "exec"), vars(module))
        yield
    finally:
        sys.meta_path.remove(absent)
        for name in _loaded(package):
            sys.modules.pop(name, None)
        sys.modules.update(before)
        del vars(helpers)["parts"]
        if PARTS in before:
            vars(helpers)["parts"] = before[PARTS]


def _loaded(package: ModuleType | None) -> dict[str, ModuleType]:
    """The package of finished parts and its modules, by name."""
    if package is None:
        return {}
    # Not from sys.modules: to read 3,000 names would copy their pages of memory in every process that was forked
    modules = [package, *(each for each in vars(package).values() if isinstance(each, ModuleType))]
    return {each.__name__: each for each in modules if each.__name__.startswith(PARTS)}


# ------------------------------------------------------------------------------- what an answer may not change

_WATCHED_MODULES = ("torch", "torch.nn.functional", "torch.autograd", "torch.linalg")
_WATCHED_CLASSES = (torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.Generator)
_OWN_ROOMS = ("helpers.exercises", "helpers.lessons", "helpers.checking")


def prepare(lesson: Lesson, released: Sequence[tuple[str, str]]) -> None:
    """Do once what every submission of a lesson needs, so that processes forked later need not.

    released: the grade ids and texts of the code cells. Each exercise's stub is run: Python adapts code to its use when
    it first runs, and each process would have to copy that code.
    """
    setup = dict(released).get(SETUP, "")
    cells = [CodeCell(name, text, name) for name, text in released if name != SETUP]
    scan_submission(lesson, cells, dict(released), setup)
    import_what_is_late()
    _torch_and_check()
    for exercise in lesson:
        stub = f"def {exercise.name}(*given, **options): raise NotImplementedError"
        list(run_watched(exercise, ProgramSlice(setup, (), stub), {}, [("stub", None)]))


def import_what_is_late() -> None:
    """What torch imports, and replaces of itself, when an optimiser, a checkpoint or a compiler is first used."""
    mutation_guard = importlib.import_module("torch._dynamo.mutation_guard")
    mutation_guard.install_generation_tagging_init()


def run_watched(
    exercise: Exercise, program: ProgramSlice, parts: Parts, orders: Iterable[tuple[int | str, Collection[str] | None]]
) -> Iterator[tuple[Answer, str, list[str]]]:
    """What is collected of an answer, for one seed after the other; where it stopped; and what was noticed, in words.

    orders: seeds, each with the names of the aspects that run with it, or None for all. The first is asked for when the
    slice has run. What is noticed is seen from within the student's process, which can hide it: a reason to look, and
    no proof.
    """
    with _ALONE, _module("__main__") as namespace, _finished(parts), listening(exercise) as noticed:
        looks = [*_torch_and_check()]
        looks += _looks((f"the aspect {aspect.name!r}", vars(aspect), vars(aspect)) for aspect in exercise.aspects)
        before = [look() for _, look in looks]
        with building(exercise, noticed):
            written, stopped = _build(exercise.name, program, namespace)
        noticed += ready_made(exercise, written)
        for seed, only in orders:
            with restricted(exercise, noticed):
                answer = answers.collect(exercise, written, seed, only)
            if before:
                pairs = zip(looks, before, strict=True)
                noticed += _replaced(label for (label, look), then in pairs if look() is not then)
            yield answer, stopped, noticed
            before = []


def _replaced(labels: Iterable[str]) -> list[str]:
    """A sentence on what has another meaning than before; none where nothing has."""
    names = ", ".join(f"`{label}`" for label in list(dict.fromkeys(labels))[:10])
    return [f"While the answer ran, {names} was replaced. No exercise needs that."] if names else []


_Look = tuple[str, Callable[[], object]]  # what a name is called, and how to ask what it means now


def _looks(spaces: Iterable[tuple[str, Mapping[str, object], Iterable[str]]]) -> list[_Look]:
    """How to see what names mean, and what the functions among them are made of.

    spaces: whose the names are, where they are looked up, and the names.
    """
    looks: list[_Look] = [
        (f"{whose}.{name}", partial(space.get, name)) for whose, space, names in spaces for name in names
    ]
    functions = {value: label for label, look in looks if isinstance(value := look(), FunctionType)}
    for function, label in functions.items():
        looks += [(label, partial(getattr, function, part)) for part in ("__code__", "__defaults__", "__kwdefaults__")]
        looks += [(label, partial(_content, cell)) for cell in function.__closure__ or ()]
    return looks


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it has none
        return None


@cache
def _torch_and_check() -> list[_Look]:
    """What runs beside an answer, and those names of torch that it uses.

    Reading an object changes its reference count, which in a forked process copies a page of memory: to read every name
    of torch would cost each answer thousands of pages. The names have the same order in every process, because an
    instructor's decision is kept by the sentence that lists them.
    """
    rooms = {name: sys.modules[name] for name in sorted(sys.modules) if name.startswith(_OWN_ROOMS)}
    own = {name: module for name, module in rooms.items() if getattr(module, "__file__", None)}  # folders have none
    trees = [ast.parse(inspect.getsource(module)) for module in own.values()]
    used = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    spaces: list[tuple[str, Mapping[str, object], Iterable[str]]]
    spaces = [(name, vars(module), list(vars(module))) for name, module in own.items()]
    for name in _WATCHED_MODULES:
        space = vars(sys.modules[name])
        spaces.append((name, space, [each for each in space if each in used]))
    classes = [each for module in own.values() for each in vars(module).values() if isinstance(each, type)]
    spaces += [
        (_name_of(each), vars(each), list(vars(each))) for each in dict.fromkeys(classes) if each.__module__ in own
    ]
    theirs = [
        base for each in (*_WATCHED_CLASSES, *classes) for base in each.__mro__ if _name_of(base).startswith("torch.")
    ]
    for each in dict.fromkeys(theirs):  # what a class inherits can be covered by a name of its own
        inherited = dict.fromkeys(name for base in each.__mro__[:-1] for name in vars(base))
        names = [name for name in inherited if name in used or name.startswith("__")]  # operators, and calls
        spaces.append((_name_of(each), vars(each), names))
    return _looks(spaces)


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"
