"""What an exercise's answer is made from: its program slice (Weiser, 1981), cut out of the notebook by names.

An answer runs alone: the released setup cell, the exercise's own cell, and those definitions of other cells that it
leans on, transitively. Nothing else of the notebook runs, in an exam or in `python -m helpers panels`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from helpers.checking.read.finished_parts import parts_imported
from helpers.checking.read.syntax import STAR, Cell, Function, Statement, Unreadable, cell_of
from helpers.notebooks import defines

MAY_USE = (
    "An exercise's cell may use the lesson's first cell, itself, and functions, classes, imports and constants of other"
    " cells."
)
COMPUTED = "`{name}` gets its value from code in {cell} that does not run in an exam. {rule}"
MADE = "`{name}` is made in {cell} by `{maker}`, a function of the notebook's own, and no exam runs that. {rule}"
CHANGED = "`{name}` is changed by code in {cell} that does not run in an exam. {rule}"
UNKNOWN = "`{name}` is defined neither in this cell nor by a definition of another. {rule}"
ELSEWHERE = "Another cell defines `{name}` ({cell}). Only the exercise's own cell is judged: the answer belongs there."
FINISHED = "`{name}` is a finished part that this exercise does not build on: write what you need of it yourself."

_ALWAYS_THERE = frozenset(dir(builtins)) | {"check", "__name__", "__file__", "get_ipython", "display"}


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a notebook."""

    label: str
    """How it is called in messages."""
    source: str
    name: str = ""
    """Its grade id, or ""."""

    @property
    def cell(self) -> Cell:
        """What is read of its text."""
        return cell_of(self.source)


@dataclass(frozen=True)
class Definition:
    """A definition of another cell."""

    cell: str
    line: int
    """Where it begins in it, from 1."""
    text: str


@dataclass(frozen=True)
class ProgramSlice:
    """One exercise's program slice."""

    setup: str
    """The released setup cell."""
    definitions: tuple[Definition, ...]
    """Those of other cells, in their order."""
    own: str
    """The exercise's own cell, as Python."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Names that the slice reads and cannot have as they are in the notebook, each with a sentence."""
    refused: str = ""
    """Why the own cell could not be read, "" where it was."""
    elsewhere: str = ""
    """A sentence about the last other cell that defines what this exercise asks for, "" where none does."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All that the student answers for: definitions, and the own cell."""
        return (*(each.text for each in self.definitions), self.own)

    @classmethod
    def from_json(cls, data: Mapping) -> ProgramSlice:
        """What `dataclasses.asdict` made."""
        definitions = tuple(Definition(**each) for each in data["definitions"])
        return cls(**{**data, "definitions": definitions, "missing": dict(data["missing"])})


def slice_of(
    name: str,
    own: str,
    setup: str,
    before: Sequence[CodeCell],
    after: Sequence[CodeCell] = (),
    builds_on: Iterable[str] = (),
) -> ProgramSlice:
    """The program slice of an exercise.

    name: what its own cell defines. own: that cell. before, after: the other cells that stand before and behind its
    check; a name that is defined before it is not looked for behind it. builds_on: the finished parts that the exercise
    builds on; others that the setup cell imports are missing.
    """
    cell = cell_of(own)
    if cell.problem:
        return ProgramSlice(setup, (), own, refused=str(cell.problem) if isinstance(cell.problem, Unreadable) else "")
    finished = _finished_names(setup, builds_on)
    there = _ALWAYS_THERE | cell_of(setup).bound - finished | cell.bound
    needs = _needed_of(name, cell.statements) - _bound_first(cell)
    needed, missing = _Definitions(before, after).needed_by(needs, there)
    missing |= {each: FINISHED.format(name=each) for each in missing if each in finished}
    return ProgramSlice(setup, needed, cell.python, missing, elsewhere=_elsewhere(name, (*before, *after)))


def _elsewhere(name: str, others: Sequence[CodeCell]) -> str:
    written = (cell.label for cell in reversed(others) if writes(name, cell.cell))
    return next((ELSEWHERE.format(name=name, cell=label) for label in written), "")


def writes(name: str, cell: Cell) -> bool:
    """Does a cell define this name, and not as a stub?"""
    return bool(defines(name).search(cell.text)) and not cell.holds_stub(name)


def needed_part(name: str, cell: Cell) -> ast.Module:
    """The statements of a cell that its definition of this name leans on; all where it defines none.

    What only tries the answer out may compare it with whatever there is.
    """
    if name not in cell.bound:
        return cell.tree
    needed = _needed_of(name, cell.statements)
    return ast.Module([each.node for each in cell.statements if needed & (each.binds | each.changes)], [])


def _needed_of(name: str, inside: Sequence[Statement]) -> set[str]:
    """The names that a cell's definition of this name leans on. What only tries it out is not asked what it needs."""
    needed: set[str] = {name}
    before: set[str] = set()
    while needed != before:
        before = set(needed)
        for each in inside:
            if needed & (each.binds | each.changes):
                needed |= each.uses
    return needed


CONDITIONAL = (ast.If, ast.For, ast.While, ast.Try, ast.TryStar, ast.Match)


def _bound_first(cell: Cell) -> set[str]:
    """The names that a cell binds before anything in it reads them, so that what others call so does not matter.

    Not where it binds them on a condition.
    """
    read: set[str] = set()
    bound: set[str] = set()
    for each in cell.statements:
        read |= (each.reads | each.changes) - bound
        bound |= set() if isinstance(each.node, CONDITIONAL) else each.binds
    return bound - read


def _finished_names(setup: str, builds_on: Iterable[str]) -> set[str]:
    """The names that a setup cell gives to finished parts, except those built on, and the modules of these."""
    there = {each for path in builds_on for each in (path, path.split(".")[0])}
    return {name for name, path in parts_imported(cell_of(setup).tree).items() if path not in there}


class _Definitions:
    """The definitions of a notebook's cells by the names that they bind."""

    def __init__(self, before: Sequence[CodeCell], after: Sequence[CodeCell]):
        self._order: list[tuple[CodeCell, Statement]] = []
        self._by_name: dict[str, list[int]] = {}
        self._computed: dict[str, str] = {}  # names that no definition binds, each with a sentence
        self._changed: dict[str, str] = {}  # names into whose objects something else writes
        halves = [[(cell, each) for cell in cells for each in cell.cell.statements] for cells in (before, after)]
        functions = [each for half in halves for _, each in half if isinstance(each.node, Function)]
        own = frozenset(name for each in functions for name in each.binds)
        for half in halves:
            known = set(self._by_name)
            for cell, each in half:
                makers = each.calls & own if each.defines else frozenset()
                if not each.defines or makers:
                    words = {"cell": cell.label, "maker": min(makers, default=""), "rule": MAY_USE}
                    computed = MADE if makers else COMPUTED
                    self._computed = {n: computed.format(name=n, **words) for n in each.binds} | self._computed
                    self._changed = {n: CHANGED.format(name=n, **words) for n in each.changes} | self._changed
                elif names := each.binds - known:
                    for name in names:
                        self._by_name.setdefault(name, []).append(len(self._order))
                    self._order.append((cell, each))

    def needed_by(self, names: set[str], there: frozenset[str]) -> tuple[tuple[Definition, ...], dict[str, str]]:
        """The definitions behind these names, transitively, in their order; and what it cannot have."""
        chosen: set[int] = set()
        missing: dict[str, str] = {}
        visited: set[str] = set()
        while names:
            name = names.pop()
            visited.add(name)
            places = self._by_name.get(name, [] if name in there else self._by_name.get(STAR, []))
            for place in set(places) - chosen:
                chosen.add(place)
                names |= self._order[place][1].uses - visited
            if places and name in self._changed:
                missing[name] = self._changed[name]
            elif not places and name not in there:
                missing[name] = self._computed.get(name) or UNKNOWN.format(name=name, rule=MAY_USE)
        needed = [self._order[place] for place in sorted(chosen)]
        return tuple(Definition(cell.label, each.line, each.text) for cell, each in needed), missing
