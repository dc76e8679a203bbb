"""Mutants: the lesson's own solution with one small thing changed, to test the probes.

A catalogue of operators is applied to the syntax tree of a solution, wherever it fits inside the solution's regions:
another axis, operands exchanged, a factor dropped, < for ≤. Each mutant is judged as a student's answer would be. One
that keeps all points is a hole in the probes, or is equal to the solution and has to be listed as that, with a reason.

This is mutation testing (DeMillo, Lipton and Sayward, 1978, "Hints on test data selection").
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from helpers.notebooks import BEGIN, END

REDUCTIONS = (
    "softmax log_softmax sum mean max min argmax argmin amax amin cumsum logsumexp cat stack var std norm topk sort "
    "softmin prod all any gather cumprod flip roll unsqueeze squeeze"
).split()
DROPPABLE = [
    "softmax",
    "log_softmax",
    "abs",
    "exp",
    "log",
    "sqrt",
    "masked_fill",
    "clamp",
    "clamp_min",
    "clamp_max",
    "detach",
    "relu",
    "gelu",
    "tanh",
    "sigmoid",
    "norm",
    "dropout",
    "masked_softmax",
    "layer_norm",
    "normalize",
    "sort",
    "cumsum",
    "unsqueeze",
    "contiguous",
    "float",
    "mean",
    "sum",
    "eval",
    "zero_grad",
    "tril",
    "triu",
]
DOUBLED = ["softmax", "log_softmax", "exp", "log", "norm", "dropout", "layer_norm", "masked_softmax", "relu", "tanh"]
SHIFTED = ["range", "arange", "tril", "triu", "roll", "diagonal", "narrow"]
PAIRS = {
    "tril": "triu",
    "triu": "tril",
    "max": "min",
    "min": "max",
    "argmax": "argmin",
    "sin": "cos",
    "cos": "sin",
    "sum": "mean",
    "mean": "sum",
    "floor": "ceil",
}


@dataclass(frozen=True)
class Mutant:
    """A changed solution.

    exercise: whose. operator: the name of the change. old, new: the expression or statement that was changed, and what
    stands in its place. text: the whole cell.
    """

    exercise: str
    operator: str
    old: str
    new: str
    text: str

    def __str__(self) -> str:
        return f"{self.exercise}, {self.operator}: {self.old}  ->  {self.new or 'nothing'}"


Change = ast.AST | None  # what to put in the node's place; None takes a statement away
Operator = Callable[[ast.AST, "Scope"], Iterator[Change]]


@dataclass(frozen=True)
class Scope:
    """What an operator may ask about the place of a node: the function around it, and the node above it."""

    function: ast.FunctionDef | None
    parent: ast.AST | None

    def default_of(self, name: str) -> ast.expr | None:
        """The default value of the parameter of that name, where it is a plain constant."""
        if self.function is None:
            return None
        arguments = self.function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        first = len(positional) - len(arguments.defaults)
        pairs = [*zip(positional[first:], arguments.defaults, strict=True)]
        pairs += [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        found = next((value for parameter, value in pairs if parameter.arg == name), None)
        return found if isinstance(found, ast.Constant) and found.value is not None else None


def mutants(exercise: str, cell: str) -> list[Mutant]:
    """Every mutant of a solution cell, each text once. cell: with the marks of its solution regions."""
    tree = ast.parse(cell)
    seen, made = {ast.unparse(tree)}, []
    for spot in _spots(tree, cell):
        text = _replaced(tree, spot)
        if text and text not in seen:
            seen.add(text)
            made.append(Mutant(exercise, spot.operator, spot.old, spot.new, text))
    return made


@dataclass(frozen=True)
class _Spot:
    """A place in a tree, by its number in `_walk`, and what an operator would put there."""

    number: int
    changed: ast.AST | None
    operator: str
    old: str
    new: str


def _spots(tree: ast.AST, cell: str) -> Iterator[_Spot]:
    lines = _solution_lines(cell)
    for number, (node, scope) in enumerate(_walk(tree)):
        if getattr(node, "lineno", None) not in lines or isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        for name, operator in OPERATORS.items():
            for changed in operator(node, scope):
                yield _Spot(number, changed, name, _text(node), "" if changed is None else _text(changed))


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))


def _solution_lines(cell: str) -> set[int]:
    inside, found = False, set()
    for number, line in enumerate(cell.splitlines(), 1):
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif inside:
            found.add(number)
    return found


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, Scope]]:
    """Every node in a fixed order, each with the function around it and the node above it."""
    rest: list[tuple[ast.AST, Scope]] = [(tree, Scope(None, None))]
    while rest:
        node, scope = rest.pop()
        yield node, scope
        function = node if isinstance(node, ast.FunctionDef) else scope.function
        rest += [(child, Scope(function, node)) for child in ast.iter_child_nodes(node)]


def _replaced(tree: ast.AST, spot: _Spot) -> str:
    """The text of the tree with something else in that place; "" where that makes no sense."""
    whole = copy.deepcopy(tree)
    target = next(node for number, (node, _) in enumerate(_walk(whole)) if number == spot.number)
    try:
        whole = _Put(target, copy.deepcopy(spot.changed)).visit(whole)
        text = ast.unparse(ast.fix_missing_locations(whole))
        compile(text, "<mutant>", "exec")
    except (ValueError, SyntaxError, TypeError, AttributeError):
        return ""
    return text


class _Put(ast.NodeTransformer):
    def __init__(self, target: ast.AST, changed: ast.AST | None):
        self._target, self._changed = target, changed

    def visit(self, node: ast.AST):
        if node is self._target:
            return self._changed if self._changed is not None else ast.Pass()
        return super().visit(node)


# ------------------------------------------------------------------------------------------- the operators


def _name_of(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_module(node: ast.AST) -> bool:
    """Is this a name of a module (torch.softmax), and no tensor with a method?"""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "nn", "math", "np", "finished_masks")


def _subject(call: ast.Call) -> ast.expr | None:
    """What a call works on: the tensor before the dot, or the first argument."""
    function = call.func
    if isinstance(function, ast.Attribute) and not _is_module(function.value):
        if isinstance(function.value, ast.Name) and function.value.id == "self":
            return call.args[0] if call.args else None
        return function.value
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None


def _int(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int) else None
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _constant(value: object) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def _method(subject: ast.expr, name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(copy.deepcopy(subject), name, ast.Load()), list(arguments), [])


def axis(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """Another axis of a reduction, softmax or concatenation."""
    if not isinstance(node, ast.Call) or _name_of(node) not in REDUCTIONS:
        return
    for place, keyword in enumerate(node.keywords):
        if keyword.arg in ("dim", "axis", "dims") and _int(keyword.value) is not None:
            for other in {-1, -2, 0, 1} - {_int(keyword.value)}:
                changed = copy.deepcopy(node)
                changed.keywords[place].value = _constant(other)
                yield changed
    numbers = [place for place, value in enumerate(node.args) if _int(value) is not None]
    if numbers and not any(keyword.arg in ("dim", "axis") for keyword in node.keywords):
        for other in {-1, -2, 0, 1} - {_int(node.args[numbers[-1]])}:
            changed = copy.deepcopy(node)
            changed.args[numbers[-1]] = _constant(other)
            yield changed


def exchange(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """The operands of an operation in which they have an order, or two arguments of a call."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult, ast.Pow, ast.FloorDiv)):
        yield ast.BinOp(node.right, node.op, node.left)
    if isinstance(node, ast.Call) and len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        if _name_of(node) in ("transpose", "isinstance", "zeros", "ones"):
            return
        changed = copy.deepcopy(node)
        changed.args[:2] = [changed.args[1], changed.args[0]]
        yield changed


def transpose(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A transpose dropped, added, or done by a reshape."""
    if isinstance(node, ast.Attribute) and node.attr in ("mT", "T") and isinstance(node.ctx, ast.Load):
        yield node.value
    if isinstance(node, ast.Call) and _name_of(node) in ("transpose", "permute", "swapaxes") and _subject(node):
        yield _subject(node)
        shape = ast.Attribute(copy.deepcopy(node), "shape", ast.Load())
        yield _method(_subject(node), "reshape", shape)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        for side in ("left", "right"):
            changed = copy.deepcopy(node)
            setattr(changed, side, ast.Attribute(getattr(changed, side), "mT", ast.Load()))
            yield changed
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Attribute(node.value, "mT", ast.Load()))


def factor(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A factor, a divisor, a term, an epsilon or a root that is missing; a sign turned round."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mult):
            yield node.left
            yield node.right
        if isinstance(node.op, (ast.Div, ast.FloorDiv)):
            yield node.left
            yield ast.BinOp(node.left, ast.Mult(), node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield node.left
            yield node.right
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield ast.BinOp(node.left, other, node.right)
        if isinstance(node.op, ast.Pow):
            yield node.left
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert, ast.Not)):
        yield node.operand
    if isinstance(node, ast.Call) and _name_of(node) in ("sqrt", "rsqrt", "pow", "square") and _subject(node):
        yield _subject(node)


def call_dropped(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A call that is missing: softmax, abs, exp, a norm, dropout, a mask, a clamp, a detach."""
    if isinstance(node, ast.Call) and _subject(node) is not None:
        on_self = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "self"
        if _name_of(node) in DROPPABLE or on_self and len(node.args) == 1:
            yield _subject(node)


def call_doubled(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A call made twice: softmax of a softmax."""
    if not isinstance(node, ast.Call) or _subject(node) is None:
        return
    on_self = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "self"
    if _name_of(node) not in DOUBLED and not (on_self and len(node.args) == 1):
        return
    outer = copy.deepcopy(node)
    if isinstance(outer.func, ast.Attribute) and not _is_module(outer.func.value) and not on_self:
        outer.func.value = copy.deepcopy(node)
    else:
        outer.args[0] = copy.deepcopy(node)
    yield outer


def call_otherwise(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """The sister of a function: max for min, sum for mean, sin for cos."""
    if isinstance(node, ast.Call) and _name_of(node) in PAIRS:
        changed = copy.deepcopy(node)
        other = PAIRS[_name_of(node)]
        if isinstance(changed.func, ast.Attribute):
            changed.func.attr = other
        else:
            changed.func.id = other
        yield changed


def comparison(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """< for ≤, and the other way round; a condition turned round."""
    swaps = {
        ast.Lt: (ast.LtE, ast.Gt),
        ast.LtE: (ast.Lt, ast.GtE),
        ast.Gt: (ast.GtE, ast.Lt),
        ast.GtE: (ast.Gt, ast.LtE),
        ast.Eq: (ast.NotEq,),
        ast.NotEq: (ast.Eq,),
    }
    if isinstance(node, ast.Compare) and type(node.ops[0]) in swaps:
        for other in swaps[type(node.ops[0])]:
            changed = copy.deepcopy(node)
            changed.ops[0] = other()
            yield changed


def logic(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """And for or; one side of either left out."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        other = ast.BitOr() if isinstance(node.op, ast.BitAnd) else ast.BitAnd()
        yield ast.BinOp(node.left, other, node.right)
        yield node.left
        yield node.right
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(other, node.values)


def off_by_one(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A range, slice, shift or diagonal that begins or ends one too early or too late."""
    if isinstance(node, ast.Call) and _name_of(node) in SHIFTED:
        for place, value in enumerate(node.args):
            if not isinstance(value, ast.Starred):
                for sign in (ast.Add(), ast.Sub()):
                    changed = copy.deepcopy(node)
                    changed.args[place] = ast.BinOp(copy.deepcopy(value), sign, _constant(1))
                    yield changed
        if _name_of(node) in ("tril", "triu") and not any(_int(value) is not None for value in node.args):
            for shift in (-1, 1):
                changed = copy.deepcopy(node)
                changed.keywords = [k for k in changed.keywords if k.arg != "diagonal"]
                changed.keywords.append(ast.keyword("diagonal", _constant(shift)))
                yield changed
    if isinstance(node, ast.Slice):
        for end in ("lower", "upper"):
            value = getattr(node, end)
            if value is not None:
                for shift in (1, -1):
                    number = _int(value)
                    moved = _constant(number + shift) if number is not None else None
                    changed = copy.deepcopy(node)
                    setattr(changed, end, moved or ast.BinOp(copy.deepcopy(value), ast.Add(), _constant(shift)))
                    yield changed
    if isinstance(node, ast.Subscript) and _int(node.slice) is not None:
        for shift in (1, -1):
            changed = copy.deepcopy(node)
            changed.slice = _constant(_int(node.slice) + shift)
            yield changed


def number(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A number that is another: twice as large, or one more."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and not isinstance(scope.parent, ast.Slice):
        value = node.value
        for other in {value * 2, value + 1} - {value}:
            yield ast.Constant(other)


def default(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A default argument's value written out for the argument."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        value = scope.default_of(node.id)
        if value is not None:
            yield value


def option(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """An option of a call that is missing, or turned round: keepdim, bias, unbiased, dtype, device."""
    if not isinstance(node, ast.Call):
        return
    for place, keyword in enumerate(node.keywords):
        if keyword.arg in (None, "dim", "axis"):
            continue
        changed = copy.deepcopy(node)
        del changed.keywords[place]
        yield changed
        if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, bool):
            changed = copy.deepcopy(node)
            changed.keywords[place].value = ast.Constant(not keyword.value.value)
            yield changed


def in_place(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A method that changes its tensor for one that makes a new one."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or _is_module(node.func.value):
        return
    if node.func.attr in ("masked_fill", "clamp", "exp", "abs", "add", "sub", "mul", "div", "softmax", "sqrt"):
        changed = copy.deepcopy(node)
        changed.func.attr += "_"
        yield changed


def result(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """What is returned, spoilt at the last moment: squeezed, detached, the first for all, negative, of double size."""
    if not isinstance(node, ast.Return) or node.value is None or isinstance(node.value, (ast.Tuple, ast.Constant)):
        return
    value = node.value
    yield ast.Return(_method(value, "squeeze"))
    yield ast.Return(_method(value, "detach"))
    first = ast.Subscript(copy.deepcopy(value), ast.Slice(None, _constant(1)), ast.Load())
    yield ast.Return(_method(first, "expand_as", copy.deepcopy(value)))
    yield ast.Return(ast.UnaryOp(ast.USub(), value))


def weight_data(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """The numbers of a parameter instead of the parameter, so that it never learns."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return
    on_self = isinstance(node.value, ast.Name) and node.value.id == "self"
    called = isinstance(scope.parent, ast.Call) and scope.parent.func is node
    if (on_self or node.attr in ("weight", "bias")) and not called and not isinstance(scope.parent, ast.Attribute):
        yield _method(node, "detach")


def statement(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """A line that is missing."""
    if isinstance(node, (ast.Expr, ast.AugAssign)) or isinstance(node, ast.Assign) and _assigned_before(node, scope):
        yield None
    if isinstance(node, ast.If):
        yield ast.If(ast.Constant(True), node.body, node.orelse)
        yield ast.If(ast.Constant(False), node.body, node.orelse)


def _assigned_before(node: ast.Assign, scope: Scope) -> bool:
    """Does the name that is assigned here hold something already?"""
    target = node.targets[0]
    if not isinstance(target, ast.Name):
        return isinstance(target, (ast.Subscript, ast.Attribute))
    if scope.function is None:
        return False
    if target.id in {a.arg for a in ast.walk(scope.function.args) if isinstance(a, ast.arg)}:
        return True
    names = [n for n in ast.walk(scope.function) if isinstance(n, ast.Name) and n.id == target.id]
    return any(isinstance(n.ctx, ast.Store) and n.lineno < node.lineno for n in names)


def other_name(node: ast.AST, scope: Scope) -> Iterator[Change]:
    """One name for another of the same line of descent: the old x for the new one, keys for queries."""
    twins = (
        ("q", "k"),
        ("k", "v"),
        ("q", "v"),
        ("to_queries", "to_keys"),
        ("to_keys", "to_values"),
        ("t", "s"),
        ("keys", "values"),
        ("query", "keys"),
        ("queries", "keys"),
        ("source", "target"),
        ("x", "memory"),
        ("e", "d"),
        ("rows", "columns"),
    )
    for old, new in [pair for twin in twins for pair in (twin, twin[::-1])]:
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            return
        if isinstance(node, ast.Name) and node.id == old and _is_known(new, scope):
            yield ast.Name(new, ast.Load())
        if isinstance(node, ast.Attribute) and node.attr == old and getattr(node.value, "id", "") == "self":
            yield ast.Attribute(node.value, new, ast.Load())


def _is_known(name: str, scope: Scope) -> bool:
    if scope.function is None:
        return False
    stored = {n.id for n in ast.walk(scope.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return name in stored | {a.arg for a in ast.walk(scope.function.args) if isinstance(a, ast.arg)}


OPERATORS: dict[str, Operator] = {
    "axis": axis,
    "exchange": exchange,
    "transpose": transpose,
    "factor": factor,
    "call-dropped": call_dropped,
    "call-doubled": call_doubled,
    "call-otherwise": call_otherwise,
    "comparison": comparison,
    "logic": logic,
    "off-by-one": off_by_one,
    "number": number,
    "default": default,
    "option": option,
    "in-place": in_place,
    "result": result,
    "weight-data": weight_data,
    "statement": statement,
    "other-name": other_name,
}
