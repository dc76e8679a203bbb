"""Answers that are alike by the shape of their syntax trees: shown to the instructor, and never guessed at.

Copying text cannot be prevented, and two people may write the same. What is said is that two answers have the same
shape, and only where they are long enough for that to mean something.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from helpers.checking.syntax import parsed
from helpers.course import HELPERS, ROOT
from helpers.notebooks import sources_of, without_marks

# Nodes of a tree beyond those that were given, from which on the same shape means something. Among the right answers of
# lessons 1 to 11 (solutions, every Same, and those of tests/unusual_answers.py) two that were written apart have one
# shape only once, with 21 nodes. A class has more people than that, and an exercise of three lines has one obvious
# answer, so the bound is far above.
LONG_ENOUGH = 60


@dataclass(frozen=True)
class Alike:
    """Answers to one exercise that have one shape. same_as: what else has it, "the solution" or a finished part."""

    exercise: str
    shape: str
    size: int
    students: tuple[str, ...]
    same_as: tuple[str, ...] = ()


def shape_of(source: str) -> str:
    """A digest of the cell's syntax tree: names that it binds by their order, no docstrings, comments or annotations.

    "" for what is not Python.
    """
    tree = parsed(source)
    if tree is None:
        return ""
    return hashlib.sha256(_plain(tree).encode("utf-8", "replace")).hexdigest()[:16]


def size_of_tree(source: str) -> int:
    """How many nodes the cell's tree has, without docstrings and annotations."""
    tree = parsed(source)
    return sum(1 for _ in ast.walk(_bare(tree))) if tree else 0


def alike_sources(
    handed_in: Iterable[tuple[str, str, str]],
    known: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
    given: Mapping[str, int] | None = None,
) -> list[Alike]:
    """The groups of answers that have one shape, the largest first.

    handed_in: (student, exercise, text of the solution cell). known: see `known_shapes`; an answer that has a known
    shape is a group by itself. given: see `given_sizes`.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for student, exercise, source in handed_in:
        shape, size = _measured(source)
        if shape and size - (given or {}).get(exercise, 0) >= LONG_ENOUGH:
            groups.setdefault((exercise, shape), []).append(student)
            sizes[exercise, shape] = size
    found = [
        Alike(exercise, shape, sizes[exercise, shape], tuple(students), (known or {}).get((exercise, shape), ()))
        for (exercise, shape), students in groups.items()
    ]
    return sorted(
        (group for group in found if len(group.students) > 1 or group.same_as),
        key=lambda group: (-len(group.students), group.exercise),
    )


@cache
def _measured(source: str) -> tuple[str, int]:
    return shape_of(source), size_of_tree(source)


def given_sizes(released: NotebookNode) -> dict[str, int]:
    """How many nodes of each solution cell were there when it was released."""
    return {name: size_of_tree(source) for name, source in sources_of(released).items()}


def known_shapes(lesson: str, root: Path = ROOT) -> dict[tuple[str, str], tuple[str, ...]]:
    """What the solutions and the finished parts of a lesson's exercises look like: by exercise and shape, their names.

    Where there is no folder of solutions, the finished parts alone.
    """
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    path = root / "solutions" / lesson / f"{lesson}.ipynb"
    cells = sources_of(nbformat.read(path, as_version=4)) if path.is_file() else {}
    for exercise, source in cells.items():
        if not exercise.startswith("check_"):
            found[exercise, shape_of(without_marks(source))] = ("the solution",)
    for part in sorted((HELPERS / "parts").glob("[a-z]*.py")):
        for node in ast.parse(part.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                key = node.name, shape_of(ast.unparse(node))
                found[key] = (*found.get(key, ()), f"helpers.parts.{part.stem}.{node.name}")
    return found


def _plain(tree: ast.Module) -> str:
    """The bare tree as text, with the names that it binds called by their order of appearance."""
    bare = _bare(tree)
    own = {n.id for n in ast.walk(bare) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in ast.walk(bare) if isinstance(n, ast.arg)}
    order: dict[str, str] = {}
    for node in ast.walk(bare):
        for slot in ("id", "arg", "name"):
            name = getattr(node, slot, None)
            if isinstance(name, str) and name in own and not isinstance(node, ast.keyword):
                setattr(node, slot, order.setdefault(name, f"name {len(order)}"))
    return re.sub(r"\s+", " ", ast.dump(bare))


def _bare(tree: ast.Module) -> ast.Module:
    return _Barer().visit(ast.parse(ast.unparse(tree)))


class _Barer(ast.NodeTransformer):
    """Takes docstrings, lone strings and annotations out."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        lone = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.copy_location(ast.Pass(), node) if lone else self.generic_visit(node)

    def visit_Pass(self, node: ast.Pass) -> None:
        return None

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        node.body = [n for n in node.body if not isinstance(n, ast.Pass)]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        node.body = [n for n in node.body if not isinstance(n, ast.Pass)]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], self.visit(node.value)), node)
