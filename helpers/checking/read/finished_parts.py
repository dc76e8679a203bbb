"""The finished parts that an exercise builds on, as source text: these, what they need themselves, and nothing else.

In an exam helpers.parts does not exist, because it holds the answers to other exercises. What an exercise declares in
`builds_on` is executed into fresh modules before the student's code.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter

from helpers.checking.read.syntax import names_of
from helpers.course import HELPERS
from helpers.exercises import Exercise

PARTS = "helpers.parts"
ANNOTATIONS_ARE_TEXT = "from __future__ import annotations"  # so that what an annotation names is not needed


def sources_for(exercise: Exercise) -> dict[str, str]:
    """The text of each module that the exercise builds on, by the module's name: "helpers.parts.masks".

    A module holds only the top-level statements that bind what is needed. The modules that it imports come before it.
    LookupError where the exercise declares a part that does not exist.
    """
    needed = _needed(exercise.builds_on)
    order: TopologicalSorter[str] = TopologicalSorter()
    for module in sorted(needed):
        others = {path.partition(".")[0] for one in needed[module] for path in one.needs} - {module}
        order.add(module, *sorted(others))
    return {f"{PARTS}.{module}": _text(module, needed[module]) for module in order.static_order()}


def answers_in_reach(exercise: Exercise) -> list[str]:
    """What answers the exercise among the parts that `sources_for` holds; empty for every exercise that is sound."""
    there = {
        f"{module}.{name}" for module, some in _needed(exercise.builds_on).items() for one in some for name in one.binds
    }
    own_name = f".{exercise.name}"
    return sorted(f"{PARTS}.{part}" for part in there if part.endswith(own_name) or part in exercise.answered_by)


def parts_imported(tree: ast.AST) -> dict[str, str]:
    """The finished parts that code imports, by the names that it gives them.

    {"finished_split": "multi_head.split_heads", "finished_masks": "masks"}: a whole module has no dot.
    """
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            paths = {alias.asname or alias.name: f"{_source(node)}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            paths = {alias.asname: alias.name for alias in node.names if alias.asname}
        else:
            continue
        inside = {name: path for name, path in paths.items() if path.startswith(f"{PARTS}.")}
        imported |= {name: path.removeprefix(f"{PARTS}.") for name, path in inside.items()}
    return imported


def parts_used(tree: ast.AST, imported: Mapping[str, str]) -> set[str]:
    """The finished parts that code uses by such names, "masks.causal_mask", of a whole module by its attributes."""
    used: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if "." in imported.get(name, ""):
                used.add(imported[name])
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if "." not in imported.get(name, "."):
                used.add(f"{imported[name]}.{attribute}")
    return used


@dataclass(frozen=True)
class _Statement:
    """A statement at the top level of a module, of an import one name."""

    node: ast.stmt
    binds: frozenset[str]
    needs: frozenset[str]
    """What it reads of its own module, and of others of helpers.parts: "masks.causal_mask"."""


def _needed(parts: tuple[str, ...]) -> dict[str, set[_Statement]]:
    """By module, the statements that bind these parts, and in turn all that they need."""
    needed: dict[str, set[_Statement]] = {}
    look = list(parts)
    while look:
        module, _, name = look.pop().partition(".")
        binding = {one for one in _statements(module) if name in one.binds}
        if not binding:
            raise LookupError(f"There is no finished part {PARTS}.{module}.{name}.")
        for one in binding - needed.setdefault(module, set()):
            needed[module].add(one)
            look += one.needs
    return needed


def _text(module: str, needed: set[_Statement]) -> str:
    nodes = [one.node for one in _statements(module) if one in needed]
    return f"{ANNOTATIONS_ARE_TEXT}\n{ast.unparse(ast.Module(nodes, []))}\n"


@cache
def _statements(module: str) -> tuple[_Statement, ...]:
    """The statements of a module; none where there is no such module."""
    path = HELPERS / "parts" / f"{module}.py"
    tree = ast.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
    body = [one for node in tree.body for one in one_a_name(node)]
    modules = {name: part for name, part in parts_imported(ast.Module(body, [])).items() if "." not in part}
    names = [names_of(f"{ANNOTATIONS_ARE_TEXT}\n{ast.unparse(node)}") for node in body]
    known = frozenset().union(*(binds for binds, _ in names))
    statements = []
    for node, (binds, uses) in zip(body, names, strict=True):
        parts = parts_used(node, modules) | {part for part in parts_imported(node).values() if "." in part}
        own = {f"{module}.{name}" for name in known & uses}
        statements.append(_Statement(node, binds, frozenset(own | parts)))
    return tuple(statements)


def one_a_name(node: ast.stmt) -> list[ast.stmt]:
    """Of an import, an absolute one of each name; any other statement as it is."""
    if isinstance(node, ast.ImportFrom):
        return [ast.ImportFrom(_source(node), [alias], 0) for alias in node.names]
    return [ast.Import([alias]) for alias in node.names] if isinstance(node, ast.Import) else [node]


def _source(node: ast.ImportFrom) -> str:
    """The module that names are imported from; one of the parts imports the others by a single dot."""
    return ".".join(word for word in (PARTS if node.level else "", node.module) if word)
