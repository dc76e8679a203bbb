"""What the texts of a submission show: each cell read once, as data that grading, review and reports share.

In an exam this runs in a process with limits, which runs no student's code: see `grading.sandbox`. At the desk it runs
in the kernel, for the one exercise that is checked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from helpers.checking.forbidden import forbidden_use
from helpers.checking.program_slice import CodeCell, Program, finished_names, program_of
from helpers.checking.syntax import digest_of_tree, holds_stub, parsed, shape_of, stubs
from helpers.exercises import Exercise, Lesson
from helpers.notebooks import CHECK, check_id

LONGEST_EXCERPT = 160
# What leads out of an answer into the interpreter, or into the check that runs it. No exercise needs any of it.
LEADS_OUT = frozenset(
    "__globals__ __builtins__ __subclasses__ __code__ __closure__ __import__ __torch_function__ __torch_dispatch__"
    " f_back f_globals f_locals f_builtins tb_frame gi_frame _getframe _current_frames currentframe settrace setprofile"
    " get_objects get_referrers get_referents meta_path import_module exec_module ctypes _ctypes"
    " TorchFunctionMode TorchDispatchMode _C".split()
)
OWN_ROOMS = ("helpers.exercises", "helpers.checking", "helpers.keys", "helpers.grading", "helpers.authoring")


@dataclass(frozen=True)
class Leaning:
    """A line that an instructor is to look at before the answer counts. cell: its label. why: one sentence."""

    cell: str
    line: int
    excerpt: str
    why: str


@dataclass(frozen=True)
class Facts:
    """What the text of one answer shows.

    program: the digest of the program in its cell (see `syntax.digest_of_tree`). stub: it holds the stub, with all that
    it was released with. begun: some of its stubs are left. shortcut: a sentence about what the exercise forbids by
    name, "" for none. shape, size: see `syntax.shape_of`. look: see Leaning. refused: why it could not be read, or "".
    """

    program: str = ""
    stub: bool = False
    begun: bool = False
    shortcut: str = ""
    shape: str = ""
    size: int = 0
    look: tuple[Leaning, ...] = ()
    refused: str = ""

    @classmethod
    def from_json(cls, data: Mapping) -> Facts:
        """What `dataclasses.asdict` made."""
        return cls(**{**data, "look": tuple(Leaning(**one) for one in data["look"])})


def facts_of(exercise: Exercise, source: str, program: Program | None = None, released: str = "") -> Facts:
    """What the text of an answer shows.

    source: its own cell. program: its slice; the cell alone without one. released: the cell as students get it; without
    it only a cell that holds nothing but stubs is said to hold the stub.
    """
    texts = program.texts if program else (source,)
    shape, size = shape_of(source)
    return Facts(
        program=digest_of_tree(source),
        stub=holds_stub(source, exercise.name, released),
        begun=stubs(source, exercise.name)[0] > 0,
        shortcut=next(filter(None, (forbidden_use(text, exercise.forbidden) for text in texts)), ""),
        shape=shape,
        size=size,
        look=tuple(_leanings(exercise.name, program)) if program else (),
        refused=program.refused if program else "",
    )


def _leanings(own: str, program: Program) -> Iterator[Leaning]:
    named = [(piece.cell, piece.line, piece.text) for piece in program.pieces]
    for cell, first, text in [*named, (own, 1, program.own)]:
        lines = text.split("\n")
        for line, name in _leads_out(text):
            excerpt = lines[line - 1].strip()[:LONGEST_EXCERPT] if line <= len(lines) else ""
            why = f"It reaches for `{name}`, which leads out of the answer, and no exercise needs it."
            yield Leaning(cell, first + line - 1, excerpt, why)


def _leads_out(text: str) -> Iterator[tuple[int, str]]:
    """The lines that reach out of an answer, and what for."""
    tree = parsed(text)
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in LEADS_OUT:
                yield node.lineno, name
            case ast.Constant(value=str(name)) if name in LEADS_OUT or name.startswith(OWN_ROOMS):
                yield node.lineno, name
            case ast.FunctionDef(name=name) if name in LEADS_OUT:
                yield node.lineno, name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                module = getattr(node, "module", None)
                for path in [f"{module}.{alias.name}" if module else alias.name for alias in aliases]:
                    if path.startswith(OWN_ROOMS) or set(path.split(".")) & LEADS_OUT:
                        yield node.lineno, path


# ------------------------------------------------------------------------------------------- a submission


@dataclass(frozen=True)
class Handed:
    """A code cell of a restored notebook. name: its grade id, or "". label: how messages call it."""

    name: str
    label: str
    source: str


@dataclass(frozen=True)
class Read:
    """What was read of a submission. programs, facts: by exercise. predicted: by prediction, the text it was given."""

    programs: Mapping[str, Program] = field(default_factory=dict)
    facts: Mapping[str, Facts] = field(default_factory=dict)
    predicted: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict:
        """For another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping) -> Read:
        """What `as_json` made."""
        programs = {name: Program.from_json(one) for name, one in data["programs"].items()}
        facts = {name: Facts.from_json(one) for name, one in data["facts"].items()}
        return cls(programs, facts, dict(data["predicted"]))


def read_cells(lesson: Lesson, cells: Sequence[Handed], released: Mapping[str, str], setup: str) -> Read:
    """Read a submission that was put into the released shape.

    cells: its code cells, in order, but for the setup cell. released: the solution cells as students get them, by
    exercise. setup: the released setup cell.
    """
    places = {cell.name: place for place, cell in enumerate(cells) if cell.name}
    plain = [CodeCell(cell.label, cell.source) for cell in cells]
    checks = {places[name] for name in places if name.startswith(CHECK)}
    programs, facts = {}, {}
    for exercise in lesson:
        own, end = places.get(exercise.name), places.get(check_id(exercise.name), len(cells))
        others = [place for place in range(len(cells)) if place != own and place not in checks]
        before = [plain[place] for place in others if place < end]
        after = [plain[place] for place in others if place > end]
        source = cells[own].source if own is not None else ""
        finished = finished_names(setup, exercise.builds_on)
        programs[exercise.name] = program_of(exercise.name, source, setup, before, after, finished)
        facts[exercise.name] = facts_of(exercise, source, programs[exercise.name], released.get(exercise.name, ""))
    predicted = {p.name: literal(cells[places[p.name]].source, p.name) for p in lesson.predictions if p.name in places}
    return Read(programs, facts, predicted)


def literal(source: str, name: str) -> str:
    """The text that a cell gives a name as a literal, by its last such line; "" for anything else."""
    found = ""
    tree = parsed(source)
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            value = node.value
            found = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
    return found
