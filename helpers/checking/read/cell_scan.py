"""What the text of a submission shows. Each cell is read once; grading, review and reports share the result.

In an exam this runs in a process with limits that runs no student code (see `grading.sandbox`). On the student's
machine it runs in the kernel, for the one exercise that is checked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from helpers.checking.read.argument_order import other_order
from helpers.checking.read.program_slice import CodeCell, Definition, ProgramSlice, needed_part, slice_of
from helpers.checking.read.syntax import cell_of, spelled
from helpers.exercises import Exercise, Lesson
from helpers.notebooks import CHECK, check_id

LONGEST_EXCERPT = 160
# Names by which an answer reaches into the interpreter, or into the check that runs it. No exercise needs any of them.
INTROSPECTION = frozenset(
    "__globals__ __builtins__ __subclasses__ __code__ __closure__ __import__ __torch_function__ __torch_dispatch__"
    " f_back f_globals f_locals f_builtins tb_frame gi_frame _getframe _current_frames currentframe settrace setprofile"
    " get_objects get_referrers get_referents meta_path import_module exec_module ctypes _ctypes"
    " TorchFunctionMode TorchDispatchMode _python_dispatch _C redispatch addaudithook _bootstrap"
    " os.read os.write os.dup os.fdopen".split()
)
OWN_ROOMS = ("helpers.exercises", "helpers.checking", "helpers.lessons", "helpers.grading", "helpers.authoring")


@dataclass(frozen=True)
class Finding:
    """Something that an instructor looks at before the answer counts; it is no accusation."""

    cell: str
    line: int
    """From 1; 0 where none can be named."""
    excerpt: str
    """That line, not yet sanitized."""
    why: str


@dataclass(frozen=True)
class CellScan:
    """What the text of one answer shows."""

    program: str = ""
    """The digest of the program in its cell (see `Cell.digest`)."""
    stub: bool = False
    """It holds all stubs that it was released with."""
    elsewhere: str = ""
    """See `ProgramSlice`."""
    begun: bool = False
    """Some of its stubs are left."""
    shortcut: str = ""
    """A sentence about a name that the exercise forbids, or ""."""
    order: str = ""
    """A sentence about arguments in another order than the stub's, or ""."""
    shape: str = ""
    size: int = 0
    """shape, size: see `Cell.shape`."""
    suspicious: tuple[Finding, ...] = ()
    refused: str = ""
    """Why it cannot be read, or ""."""


def scan_cell(exercise: Exercise, source: str, program: ProgramSlice | None = None, released: str = "") -> CellScan:
    """What the text of an answer shows.

    source: its own cell. program: its slice; the cell alone without one. released: the cell as students get it; without
    it only a cell that holds nothing but stubs is said to hold the stub.
    """
    name, cell = exercise.name, cell_of(source)
    others = [cell_of(each.text).tree for each in program.definitions] if program else []
    needed = [*others, needed_part(name, cell)]
    shape, size = cell.shape
    return CellScan(
        program=cell.digest,
        stub=cell.holds_stub(name, released),
        elsewhere=program.elsewhere if program else "",
        begun=cell.stubs(name)[0] > 0,
        shortcut=next(filter(None, (forbidden_use(tree, exercise.forbidden) for tree in needed)), ""),
        order=other_order(name, cell),
        shape=shape,
        size=size,
        suspicious=tuple(_suspicious_lines(name, program)) if program else (),
        refused=program.refused if program else "",
    )


def _suspicious_lines(own: str, program: ProgramSlice) -> Iterator[Finding]:
    for each in (*program.definitions, Definition(own, 1, program.own)):
        lines = each.text.split("\n")
        for line, name in spelled(cell_of(each.text).tree):
            if name not in INTROSPECTION and not name.startswith(OWN_ROOMS):
                continue
            excerpt = lines[line - 1].strip()[:LONGEST_EXCERPT] if line <= len(lines) else ""
            why = f"It uses `{name}`, which leads out of the answer and which no exercise needs."
            yield Finding(each.cell, each.line + line - 1, excerpt, why)


@dataclass(frozen=True)
class SubmissionScan:
    """What was read of a submission."""

    slices: Mapping[str, ProgramSlice] = field(default_factory=dict)
    scans: Mapping[str, CellScan] = field(default_factory=dict)
    """slices, scans: by exercise."""
    predictions: Mapping[str, str] = field(default_factory=dict)
    """The text given to each, by its name."""

    @classmethod
    def from_json(cls, data: Mapping) -> SubmissionScan:
        """What `dataclasses.asdict` made."""
        slices = {name: ProgramSlice.from_json(each) for name, each in data["slices"].items()}
        findings = {name: tuple(Finding(**line) for line in each["suspicious"]) for name, each in data["scans"].items()}
        scans = {name: CellScan(**{**each, "suspicious": findings[name]}) for name, each in data["scans"].items()}
        return cls(slices, scans, dict(data["predictions"]))


def scan_submission(
    lesson: Lesson, cells: Sequence[CodeCell], released: Mapping[str, str], setup: str
) -> SubmissionScan:
    """Read a submission that was put into the released shape.

    cells: its code cells, in order, without the setup cell. released: the solution cells as students get them, by
    exercise. setup: the released setup cell.
    """
    places = {cell.name: place for place, cell in enumerate(cells)}
    sources = {cell.name: cell.source for cell in cells}
    others = [(place, cell) for place, cell in enumerate(cells) if not cell.name.startswith(CHECK)]
    slices, scans = {}, {}
    for exercise in lesson:
        name, end = exercise.name, places.get(check_id(exercise.name), len(cells))
        before = [cell for place, cell in others if place < end and cell.name != name]
        after = [cell for place, cell in others if place > end and cell.name != name]
        source = sources.get(name, "")
        slices[name] = slice_of(name, source, setup, before, after, exercise.builds_on)
        scans[name] = scan_cell(exercise, source, slices[name], released.get(name, ""))
    asked = {question.name: sources[question.cell] for question in lesson.questions if question.cell in sources}
    return SubmissionScan(slices, scans, {name: literal(source, name) for name, source in asked.items()})


def literal(source: str, name: str) -> str:
    """The text that a cell gives a name as a literal, by its last such line; "" for anything else."""
    text = ""
    for node in cell_of(source).tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            value = node.value
            text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
    return text


def forbidden_use(tree: ast.AST, forbidden: Mapping[str, str]) -> str:
    """A sentence about the first name in code that the exercise forbids; "" where there is none.

    A name in a comment or a docstring is no use of it.
    """
    for line, name in spelled(tree, modules=False) if forbidden else ():
        if name in forbidden:
            return f"Line {line} uses {name}. {forbidden[name]}"
    return ""
