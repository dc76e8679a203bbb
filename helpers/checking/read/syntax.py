"""The one reader of students' Python: bounded, so that no text can stall or crash the reader.

Everything that looks at a cell's syntax (checks, grading, review, similarity, reports) goes through `Cell`, which reads
its text once. Text that is longer or more deeply nested than any exercise needs is refused, and it is said why.
"""

from __future__ import annotations

import ast
import hashlib
import re
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from helpers.notebooks import defines

LONGEST = 40_000  # characters of a cell; the longest solution of the course has fewer than 4,000
MOST_LINES = 2_000
MOST_NODES = 20_000
DEEPEST = 100  # nodes within nodes
LARGEST_INTEGER = 256  # bits of a literal
STAR = "*"  # what ``from math import *`` binds


class Unreadable(ValueError):
    """A cell that is longer, deeper or larger than any exercise needs. The text says which."""


class NotPython(ValueError):
    """A cell that is no Python. The text is the parser's."""


# Possessive, so that no line takes as long as its square
_ASSIGNED_MAGIC = re.compile(r"(\s*+[\w.,\[\]]++[\w.,\[\]\t ]*+=\s*+)[%!]")
_HELP = re.compile(r"\s*+(?:\?{1,2}\s*+[\w.%]++|[\w.%]++\s*+\?{1,2})\s*+;?+\s*+$")
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "memit", "mprun", "lprun"}  # cell magics whose body is Python


def without_magics(source: str) -> str:
    """The cell as plain Python, line for line: magics, shell lines and calls for help do nothing."""
    lines = source.split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].startswith("%%"):
        if lines[first][2:].split(None, 1)[:1] not in [[name] for name in _PYTHON_CELLS]:
            return "\n".join("" for _ in lines)
        lines[first] = ""
    return "\n".join(_without_magic(line) for line in lines)


def _without_magic(line: str) -> str:
    bare = line.lstrip()
    if bare.startswith(("%", "!")) or (_HELP.match(line) and bare):
        return line[: len(line) - len(bare)] + "pass"
    if assigned := _ASSIGNED_MAGIC.match(line):
        return f"{assigned[1]}None"
    return line


class Cell:
    """The text of a cell, and what is read of it, each made once. `cell_of` has one Cell for a text.

    python: the text as Python, without magics and shell lines. tree: its syntax tree, which nobody may change. problem:
    why it cannot be read; None where it was. Of a cell that cannot be read the tree is empty, and `python` is the text.
    """

    def __init__(self, text: str):
        self.text = self.python = text
        self.tree = ast.Module([], [])
        self.problem: Unreadable | NotPython | None = None
        try:
            self.python, self.tree = _read(text)
        except (Unreadable, NotPython) as problem:
            self.problem = problem.with_traceback(None)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """Its statements, in their order."""
        lines = self.python.split("\n")
        return tuple(_statement(node, lines) for node in self.tree.body)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names to which it gives a meaning at its top."""
        return frozenset(name for each in self.statements for name in each.binds)

    def binds(self, name: str) -> bool:
        """Does it give `name` a meaning at its top? Of what is no Python, the lines are searched for one that does."""
        return bool(defines(name).search(self.text)) if self.problem else name in self.bound

    @cached_property
    def digest(self) -> str:
        """Equal for cells that differ in comments, layout, docstrings and annotations alone. "" where unreadable."""
        return "" if self.problem else _digest(self._bare)

    @cached_property
    def shape(self) -> tuple[str, int]:
        """A digest in which its own names are numbered, and its number of nodes; ("", 0) where it cannot be read."""
        return ("", 0) if self.problem else _shape_of(self._bare)

    @cached_property
    def _bare(self) -> ast.AST:
        return _stripped(self.tree)

    def stubs(self, name: str) -> tuple[int, int]:
        """How many functions of what it defines by that name are still stubs, and how many functions there are.

        A stub is a function that reaches ``raise NotImplementedError`` whatever its arguments are. Of several
        definitions the last counts. A function that hands on to a class of the cell in which nothing is written counts
        as unwritten too.
        """
        functions = _functions_of(self._defined.get(name))
        left = sum(_comes_to_stub(f.body) for f in functions)
        inner = [] if left else self._handed_on_to(name)
        if inner and all(_comes_to_stub(f.body) for f in inner):
            return len(inner), len(inner)
        return left, len(functions)

    def parameters(self, name: str) -> dict[str, list[str]]:
        """The arguments that the function of that name needs, by it, or those of a class's methods, by "A.forward"."""
        single = isinstance(self._defined.get(name), Function)
        found = {}
        for function in _functions_of(self._defined.get(name)):
            own = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            own = own[: len(own) - len(function.args.defaults)]
            found[name if single else f"{name}.{function.name}"] = own if single else own[1:]
        return found

    def holds_stub(self, name: str, released: str = "") -> bool:
        """Is it a solution cell that still holds the stub, with all that it was released with?

        released: the cell as it was released; without it only a cell that holds nothing but stubs is said to. In a
        class with several stubs some may have been written already: then it is begun, and holds the stub no more.
        """
        left, every = self.stubs(name)
        return left > 0 and left >= (cell_of(released).stubs(name)[0] if released else every)

    @cached_property
    def _defined(self) -> dict[str, ast.stmt]:
        """The statement that binds each name last."""
        return {name: each.node for each in self.statements for name in each.binds}

    def _handed_on_to(self, name: str) -> list[Function]:
        """The methods of those classes of the cell that the function of that name reads by name."""
        function = self._defined.get(name)
        if not isinstance(function, Function):
            return []
        read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        classes = [node for other, node in self._defined.items() if other in read and isinstance(node, ast.ClassDef)]
        return [method for each in classes for method in _functions_of(each)]


@lru_cache(maxsize=512)  # the cells of a long session, or of a few submissions
def cell_of(text: str) -> Cell:
    """The cell of this text."""
    return Cell(text)


def _read(source: str) -> tuple[str, ast.Module]:
    """The text of a cell as Python, as it is where it is Python already, and its tree. Raises Unreadable, NotPython."""
    source = source.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    if len(source) > LONGEST:
        raise Unreadable(f"the cell has {len(source):,} characters, and {LONGEST:,} are read")
    if source.count("\n") >= MOST_LINES:
        raise Unreadable(f"the cell has {source.count(chr(10)) + 1:,} lines, and {MOST_LINES:,} are read")
    try:
        tree = _tree(source)
    except NotPython:
        plain = without_magics(source)
        if plain == source:
            raise
        source, tree = plain, _tree(plain)
    _require_moderate(tree)
    return source, tree


def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (RecursionError, MemoryError):
        raise Unreadable("the cell is nested too deeply") from None
    except SyntaxError as problem:
        raise NotPython(f"line {problem.lineno}: {problem.msg}" if problem.lineno else problem.msg) from None
    except ValueError as problem:  # a null byte; an integer of thousands of digits
        raise NotPython(str(problem)) from None


def _require_moderate(tree: ast.Module) -> None:
    """Raises Unreadable for a tree that is too large or too deep. Does not recurse."""
    level: list[ast.AST] = [tree]
    nodes = depth = 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > MOST_NODES:
            raise Unreadable(f"the cell has more than {MOST_NODES:,} pieces of syntax")
        if depth > DEEPEST:
            raise Unreadable(f"the cell is nested more than {DEEPEST} levels deep")
        for node in level:
            number = node.value if isinstance(node, ast.Constant) else None
            if isinstance(number, int) and number.bit_length() > LARGEST_INTEGER:
                raise Unreadable("the cell holds an integer of more than 77 digits")
        level = [child for node in level for child in ast.iter_child_nodes(node)]


# ------------------------------------------------------------------------------- statements and their names


@dataclass(frozen=True)
class Statement:
    """One statement at the top of a cell."""

    node: ast.stmt
    text: str
    line: int
    """Where it begins, from 1."""
    binds: frozenset[str]
    uses: frozenset[str]
    """binds, uses: names of the notebook that it gives a meaning, and that it reads, also within its functions."""
    defines: bool
    """See `is_definition`."""
    reads: frozenset[str]
    calls: frozenset[str]
    """reads, calls: the names that it reads and that it calls when it runs, outside of functions and classes."""
    changes: frozenset[str]
    """Where it is no definition, the names whose objects it writes into, as in ``table[key] = value`` and
    ``seen.append(x)``.
    """


def _statement(node: ast.stmt, lines: list[str]) -> Statement:
    decorators = getattr(node, "decorator_list", [])
    line = min([node.lineno, *(each.lineno for each in decorators)])
    text = ast.unparse(node) if _shares_lines(node, lines) else "\n".join(lines[line - 1 : node.end_lineno])
    binds, uses = names_of(text)
    if isinstance(node, ast.ImportFrom) and node.names[0].name == STAR:
        binds = frozenset({STAR})
    defines = is_definition(node)
    changes = frozenset() if defines else _changed_by(node)
    return Statement(node, text, line, binds, uses, defines, _read_by(node), _called_by(node), changes)


def _shares_lines(node: ast.stmt, lines: list[str]) -> bool:
    """Is there another statement on its first or its last line?"""
    after = lines[(node.end_lineno or 1) - 1].encode()[node.end_col_offset :].decode(errors="replace")
    return bool(node.col_offset or after.split("#")[0].strip(" \t;"))


def names_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the notebook that a piece of Python binds and uses, by Python's own table of scopes."""
    try:
        top = symtable.symtable(text, "<cell>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # `return` outside of a function, and the like
        return frozenset(), frozenset()
    binds = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    uses = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    rest = list(top.get_children())
    while rest:
        scope = rest.pop()
        rest += scope.get_children()
        for symbol in scope.get_symbols():
            if symbol.is_global():  # one that is assigned in a function has to be there before
                uses.add(symbol.get_name())
    return frozenset(binds), frozenset(uses)


Function = ast.FunctionDef | ast.AsyncFunctionDef
Assignment = ast.Assign | ast.AnnAssign


def is_definition(node: ast.stmt) -> bool:
    """Is this a function, a class, an import or a constant, or an `if`, `try`, `match` or `with` around nothing else?

    A `with` that gives a name to what it opens is none: files are not there in an exam. A constant is a name that is
    given the value of an expression without `await` and `yield` outside of lambdas.
    """
    if isinstance(node, (Function, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    if isinstance(node, Assignment):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        plain = all(isinstance(each, (ast.Name, ast.Tuple, ast.List)) for each in targets)
        waits = any(isinstance(inner, (ast.Await, ast.Yield, ast.YieldFrom)) for inner in _own(node))
        return plain and node.value is not None and not waits
    if not isinstance(node, ast.If | ast.Try | ast.With | ast.Match):
        return False
    named = any(item.optional_vars for item in getattr(node, "items", ()))
    parts = (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ()))
    inner = (each for part in parts for each in ast.iter_child_nodes(part) if isinstance(each, ast.stmt))
    return not named and all(map(is_definition, inner))


def _read_by(node: ast.stmt) -> frozenset[str]:
    """The names that a statement reads when it runs: of a definition, in its decorators, defaults and bases."""
    parts: list[ast.AST] = [node]
    if isinstance(node, Function | ast.ClassDef):
        args = getattr(node, "args", None)
        defaults = [*args.defaults, *filter(None, args.kw_defaults)] if args else []
        parts = [*node.decorator_list, *getattr(node, "bases", ()), *getattr(node, "keywords", ()), *defaults]
    inside = (inner for part in parts for inner in _own(part) if isinstance(inner, ast.Name))
    return frozenset(name.id for name in inside if isinstance(name.ctx, ast.Load))


def _called_by(node: ast.stmt) -> frozenset[str]:
    """The plain names that a statement calls when it runs, outside of functions and classes."""
    calls = (inner.func for inner in _own(node) if isinstance(inner, ast.Call))
    return frozenset(called.id for called in calls if isinstance(called, ast.Name))


def _changed_by(node: ast.stmt) -> frozenset[str]:
    """The plain names into whose objects a statement writes."""
    changed = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
            changed.add(_root(inner.value.func) if isinstance(inner.value.func, ast.Attribute) else "")
        elif isinstance(inner, ast.AugAssign):
            changed.add(_root(inner.target))
        elif isinstance(inner, (ast.Attribute, ast.Subscript)) and isinstance(inner.ctx, ast.Store):
            changed.add(_root(inner))
    return frozenset(changed - {""})


def _root(node: ast.AST) -> str:
    """``a`` for ``a.b[0].c``, "" for what begins with no name."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _joined(node: ast.AST) -> str:
    """The text of constants that are added, "a" + "b"; "" where it is anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            parts = _joined(left), _joined(right)
            return "".join(parts) if all(parts) else ""
    return ""


def spelled(tree: ast.AST, modules: bool = True) -> Iterator[tuple[int, str]]:
    """The names that code reads, defines as functions, imports, or has as strings, each with its line.

    Strings are among them because of ``getattr(torch.nn, "Transformer")``. An import yields its path and each part of
    it. modules: whether the path of ``from a.b import c`` begins with the module, a.b.c, or is c alone.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                yield from ((node.lineno, each) for each in (name, f"{owner}.{name}"))
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                yield node.lineno, name
            case ast.Constant(value=str(name)):
                yield node.lineno, name
            case ast.BinOp(op=ast.Add()) if name := _joined(node):
                yield node.lineno, name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                module = getattr(node, "module", None) if modules else None
                for path in [f"{module}.{alias.name}" if module else alias.name for alias in aliases]:
                    yield from ((node.lineno, name) for name in dict.fromkeys([path, *path.split(".")]))


# ------------------------------------------------------------------------------------------ equal programs


def _digest(tree: ast.AST, numbered: Mapping[str, str] = MappingProxyType({})) -> str:
    return hashlib.sha256(repr(_plain(tree, numbered)).encode("utf-8", "replace")).hexdigest()[:16]


_NAME_SLOTS = ("id", "arg", "name")  # fields of nodes that hold a name


def _plain(value: object, numbered: Mapping[str, str]) -> object:
    """A tree as lists, without what is empty: newer Pythons give nodes more fields, and `ast.dump` its own form.

    numbered: what stands for the names of the code's own.
    """
    if isinstance(value, list):
        return [_plain(each, numbered) for each in value]
    if not isinstance(value, ast.AST):
        return value
    fields = [(name, part) for name, part in ast.iter_fields(value) if part is not None and part != []]
    slots = () if isinstance(value, ast.keyword) else _NAME_SLOTS
    return [
        type(value).__name__,
        *((n, numbered.get(p, p) if n in slots and isinstance(p, str) else _plain(p, numbered)) for n, p in fields),
    ]


def _shape_of(bare: ast.AST) -> tuple[str, int]:
    """The digest with the code's own names numbered, and the number of nodes."""
    nodes = list(ast.walk(bare))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    slots = [getattr(n, slot, None) for n in nodes if not isinstance(n, ast.keyword) for slot in _NAME_SLOTS]
    used = dict.fromkeys(name for name in slots if isinstance(name, str) and name in own)
    return _digest(bare, {name: f"name {number}" for number, name in enumerate(used)}), len(nodes)


def _stripped(node: Any) -> Any:
    """A copy of a tree without docstrings, other lone strings, `pass` and annotations; what is no tree as it is."""
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.AnnAssign) and node.value:
        node = ast.Assign([node.target], node.value)
    copied: dict[str, object] = {}
    for name, part in ast.iter_fields(node):
        if isinstance(part, list):
            copied[name] = [_stripped(each) for each in part if not _says_nothing(each, node)]
        elif name not in ("annotation", "returns"):
            copied[name] = _stripped(part)
    return type(node)(**copied)


def _says_nothing(part: object, within: ast.AST) -> bool:
    match part:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str())) | ast.AnnAssign(value=None):
            return True
        case ast.Constant(value=""):
            return isinstance(within, ast.JoinedStr)  # some releases of Python 3.12 add empty texts
    return False


# ----------------------------------------------------------------------------------------------- the stub


def _functions_of(node: ast.stmt | None) -> list[Function]:
    """A function itself, or the methods of a class, of each name the last; none of anything else."""
    if isinstance(node, Function):
        return [node]
    body = node.body if isinstance(node, ast.ClassDef) else []
    last = {name: inner for inner in body for name in names_of(ast.unparse(inner))[0]}
    return [inner for inner in last.values() if isinstance(inner, Function)]


def _comes_to_stub(body: list[ast.stmt]) -> bool:
    """Is a bare NotImplementedError reached whatever the arguments are? A loop counts as entered."""
    for statement in body:
        if _raises_stub(statement):
            return True
        if isinstance(statement, (ast.For, ast.While, ast.With, ast.Try)) and _comes_to_stub(statement.body):
            return True
        if isinstance(statement, ast.If) and _comes_to_stub(statement.body) and _comes_to_stub(statement.orelse):
            return True
        ways_out = (ast.Return, ast.Yield, ast.YieldFrom, ast.Break, ast.Continue)
        if any(isinstance(n, ways_out) for n in _own(statement)):
            return False
    return False


def _raises_stub(node: ast.stmt) -> bool:
    raised = getattr(node, "exc", None)
    raised = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without the insides of functions and classes that it defines."""
    yield node
    if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)
