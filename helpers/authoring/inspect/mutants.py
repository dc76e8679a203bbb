"""Mutants: the lesson's own solution with one small thing changed, to test the probes.

A catalogue of operators is applied to the syntax tree of a solution, wherever it fits inside the solution's regions:
another axis, operands exchanged, a factor dropped, < for ≤. Each mutant is judged as a student's answer would be. One
that keeps all points is a hole in the probes, or is equivalent to the solution and listed as that, with the reason.

This is mutation testing (DeMillo, Lipton and Sayward, 1978, "Hints on test data selection").
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from helpers.notebooks import BEGIN, END


@dataclass(frozen=True)
class Mutant:
    """A changed solution."""

    exercise: str
    """Its name."""
    operator: str
    """The name of the change."""
    old: str
    new: str
    """old, new: the expression or statement that was changed, and what replaces it."""
    text: str
    """The whole cell."""

    def __str__(self) -> str:
        return f"{self.exercise}, {self.operator}: {self.old}  ->  {self.new or 'nothing'}"


@dataclass(frozen=True)
class Scope:
    """What an operator may ask about the place of a node: the function around it, and the node above it."""

    function: ast.FunctionDef | None
    parent: ast.AST | None

    def parameters(self) -> set[str]:
        """The names of the function's parameters."""
        return {a.arg for a in ast.walk(self.function.args) if isinstance(a, ast.arg)} if self.function else set()

    def assigned(self, before: int | None = None) -> set[str]:
        """The names that are assigned in the function, above a line if one is given."""
        names = (node for node in ast.walk(self.function) if isinstance(node, ast.Name)) if self.function else ()
        return {n.id for n in names if isinstance(n.ctx, ast.Store) and (before is None or n.lineno < before)}

    def default_of(self, name: str) -> ast.expr | None:
        """The default value of the parameter of that name, where it is a plain constant."""
        if self.function is None:
            return None
        arguments = self.function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        first = len(positional) - len(arguments.defaults)
        pairs: list[tuple[ast.arg, ast.expr | None]] = [*zip(positional[first:], arguments.defaults, strict=True)]
        pairs += [*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        value = next((value for parameter, value in pairs if parameter.arg == name), None)
        return value if isinstance(value, ast.Constant) and value.value is not None else None


Changes = Iterator[ast.AST | None]  # what to put in a node's place; None takes a statement away
Operator = Callable[[Any, Scope], Changes]  # of a node of the kinds that it is entered for
OPERATORS: dict[str, Operator] = {}


def mutants(exercise: str, cell: str) -> list[Mutant]:
    """Every mutant of a solution cell, each text once. cell: with the marks of its solution regions."""
    tree, lines = ast.parse(cell), _solution_lines(cell)
    texts, unique = {ast.unparse(tree)}, []
    for node, scope in _walk(tree):
        if getattr(node, "lineno", None) not in lines or isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        for name, changes in OPERATORS.items():
            for changed in changes(node, scope):
                text = _replaced(tree, node, changed or ast.Pass())
                if text and text not in texts:
                    texts.add(text)
                    unique.append(Mutant(exercise, name, _text(node), _text(changed) if changed else "", text))
    return unique


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))


def _solution_lines(cell: str) -> set[int]:
    inside, numbers = False, set()
    for number, line in enumerate(cell.splitlines(), 1):
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif inside:
            numbers.add(number)
    return numbers


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, Scope]]:
    """Every node in a fixed order, each with the function around it and the node above it."""
    rest: list[tuple[ast.AST, Scope]] = [(tree, Scope(None, None))]
    while rest:
        node, scope = rest.pop()
        yield node, scope
        function = node if isinstance(node, ast.FunctionDef) else scope.function
        rest += [(child, Scope(function, node)) for child in ast.iter_child_nodes(node)]


def _replaced(tree: ast.AST, node: ast.AST, changed: ast.AST) -> str:
    """The text of the tree with something else in a node's place; "" where that makes no sense."""
    try:
        text = _text(copy.deepcopy(tree, {id(node): copy.deepcopy(changed)}))  # which is taken for the node's copy
        compile(text, "<mutant>", "exec")
    except (ValueError, SyntaxError, TypeError, AttributeError):
        return ""
    return text


# ------------------------------------------------------------------------------------------- what operators share


def operator(*kinds: type[ast.AST]) -> Callable[[Operator], Operator]:
    """Enters a function into the catalogue, for nodes of these kinds."""

    def enter(function: Operator) -> Operator:
        name = function.__name__.replace("_", "-")
        OPERATORS[name] = lambda node, scope: function(node, scope) if isinstance(node, kinds) else iter(())
        return function

    return enter


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_module(node: ast.AST) -> bool:
    """Is this a name of a module (torch.softmax), and no tensor with a method?"""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "nn", "math", "np", "finished_masks")


def _is_layer(call: ast.Call) -> bool:
    """Is this one of the module's own layers, called with one argument: self.norm(x)?"""
    return isinstance(call.func, ast.Attribute) and _is_self(call.func.value) and len(call.args) == 1


def _subject(call: ast.Call) -> ast.expr | None:
    """What a call works on: the tensor before the dot, or the first argument."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is not None and not _is_module(owner) and not _is_self(owner):
        return owner
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None


def _int(node: ast.AST) -> int | None:
    match node:
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as value)):
            return -value
        case ast.Constant(value) if type(value) is int:
            return value
    return None


def _constant(value: object) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def _method(subject: ast.expr, name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(copy.deepcopy(subject), name, ast.Load()), list(arguments), [])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of the node with other fields."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _put(items: list, place: int, *others: object) -> list:
    """A copy of the list with other items, or none, in one place."""
    return [*items[:place], *others, *items[place + 1 :]]


# ------------------------------------------------------------------------------------------- the catalogue

AXES = {-1, -2, 0, 1}
REDUCTIONS = (
    "softmax log_softmax sum mean max min argmax argmin amax amin cumsum logsumexp cat stack var std norm topk sort "
    "softmin prod all any gather cumprod flip roll unsqueeze squeeze"
).split()
DROPPABLE = (
    "softmax log_softmax abs exp log sqrt masked_fill clamp clamp_min clamp_max detach relu gelu tanh sigmoid norm "
    "dropout masked_softmax layer_norm normalize sort cumsum unsqueeze contiguous float mean sum eval zero_grad tril "
    "triu"
).split()
DOUBLED = "softmax log_softmax exp log norm dropout layer_norm masked_softmax relu tanh".split()
SHIFTED = "range arange tril triu roll diagonal narrow".split()
IN_PLACE = "masked_fill clamp exp abs add sub mul div softmax sqrt".split()
SISTERS = {
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
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
TWINS = (
    *(("q", "k"), ("k", "v"), ("q", "v"), ("to_queries", "to_keys"), ("to_keys", "to_values"), ("t", "s")),
    *(("keys", "values"), ("query", "keys"), ("queries", "keys"), ("source", "target"), ("x", "memory")),
    *(("e", "d"), ("rows", "columns")),
)


@operator(ast.Call)
def axis(call: ast.Call, scope: Scope) -> Changes:
    """Another axis of a reduction, softmax or concatenation."""
    if _name_of(call) not in REDUCTIONS:
        return
    for place, keyword in enumerate(call.keywords):
        if keyword.arg in ("dim", "axis", "dims") and _int(keyword.value) is not None:
            for other in AXES - {_int(keyword.value)}:
                yield _with(call, keywords=_put(call.keywords, place, ast.keyword(keyword.arg, _constant(other))))
    numbers = [place for place, value in enumerate(call.args) if _int(value) is not None]
    if numbers and not any(keyword.arg in ("dim", "axis") for keyword in call.keywords):
        for other in AXES - {_int(call.args[numbers[-1]])}:
            yield _with(call, args=_put(call.args, numbers[-1], _constant(other)))


@operator(ast.BinOp, ast.Call)
def exchange(node: ast.BinOp | ast.Call, scope: Scope) -> Changes:
    """The operands of an operation in which they have an order, or two arguments of a call."""
    match node:
        case ast.BinOp(left, ast.Sub() | ast.Div() | ast.MatMult() | ast.Pow() | ast.FloorDiv() as sign, right):
            yield ast.BinOp(right, sign, left)
        case ast.Call(args=[first, second, *rest]) if not any(isinstance(a, ast.Starred) for a in node.args):
            if _name_of(node) not in ("transpose", "isinstance", "zeros", "ones"):
                yield _with(node, args=[second, first, *rest])


@operator(ast.Attribute, ast.Call, ast.BinOp, ast.Return)
def transpose(node: ast.AST, scope: Scope) -> Changes:
    """A transpose dropped, added, or done by a reshape."""
    match node:
        case ast.Attribute(value, "mT" | "T", ast.Load()):
            yield value
        case ast.Call() if _name_of(node) in ("transpose", "permute", "swapaxes") and (subject := _subject(node)):
            yield subject
            yield _method(subject, "reshape", ast.Attribute(node, "shape", ast.Load()))
        case ast.BinOp(left, ast.MatMult() as sign, right):
            yield ast.BinOp(ast.Attribute(left, "mT", ast.Load()), sign, right)
            yield ast.BinOp(left, sign, ast.Attribute(right, "mT", ast.Load()))
        case ast.Return(ast.expr() as value):
            yield ast.Return(ast.Attribute(value, "mT", ast.Load()))


@operator(ast.BinOp, ast.UnaryOp, ast.Call)
def factor(node: ast.AST, scope: Scope) -> Changes:
    """A factor, a divisor, a term, an epsilon or a root that is missing; a sign turned round."""
    match node:
        case ast.BinOp(left, ast.Mult(), right):
            yield from (left, right)
        case ast.BinOp(left, ast.Div() | ast.FloorDiv(), right):
            yield from (left, ast.BinOp(left, ast.Mult(), right))
        case ast.BinOp(left, ast.Add(), right):
            yield from (left, right, ast.BinOp(left, ast.Sub(), right))
        case ast.BinOp(left, ast.Sub(), right):
            yield from (left, right, ast.BinOp(left, ast.Add(), right))
        case ast.BinOp(left, ast.Pow()):
            yield left
        case ast.UnaryOp(ast.USub() | ast.Invert() | ast.Not(), operand):
            yield operand
        case ast.Call() if _name_of(node) in ("sqrt", "rsqrt", "pow", "square") and _subject(node):
            yield _subject(node)


@operator(ast.Call)
def call_dropped(call: ast.Call, scope: Scope) -> Changes:
    """A call that is missing: softmax, abs, exp, a norm, dropout, a mask, a clamp, a detach."""
    if _subject(call) is not None and (_name_of(call) in DROPPABLE or _is_layer(call)):
        yield _subject(call)


@operator(ast.Call)
def call_doubled(call: ast.Call, scope: Scope) -> Changes:
    """A call made twice: softmax of a softmax."""
    if _subject(call) is None or _name_of(call) not in DOUBLED and not _is_layer(call):
        return
    if _subject(call) in call.args:
        yield _with(call, args=[call, *call.args[1:]])
    else:
        yield _with(call, func=_with(call.func, value=call))


@operator(ast.Call)
def call_otherwise(call: ast.Call, scope: Scope) -> Changes:
    """The sister of a function: max for min, sum for mean, sin for cos."""
    if other := SISTERS.get(_name_of(call)):
        field = "attr" if isinstance(call.func, ast.Attribute) else "id"
        yield _with(call, func=_with(call.func, **{field: other}))


@operator(ast.Compare)
def comparison(node: ast.Compare, scope: Scope) -> Changes:
    """< for ≤, and the other way round; a condition turned round."""
    for other in COMPARISONS.get(type(node.ops[0]), ()):
        yield _with(node, ops=[other(), *node.ops[1:]])


@operator(ast.BinOp, ast.BoolOp)
def logic(node: ast.BinOp | ast.BoolOp, scope: Scope) -> Changes:
    """And for or; one side of either left out."""
    match node:
        case ast.BinOp(left, ast.BitAnd() | ast.BitOr() as sign, right):
            yield ast.BinOp(left, ast.BitOr() if isinstance(sign, ast.BitAnd) else ast.BitAnd(), right)
            yield from (left, right)
        case ast.BoolOp(sign, values):
            yield ast.BoolOp(ast.Or() if isinstance(sign, ast.And) else ast.And(), values)


@operator(ast.Call, ast.Slice, ast.Subscript)
def off_by_one(node: ast.AST, scope: Scope) -> Changes:
    """A range, slice, shift or diagonal that begins or ends one too early or too late."""
    match node:
        case ast.Call() if _name_of(node) in SHIFTED:
            for place, value in enumerate(node.args):
                for sign in () if isinstance(value, ast.Starred) else (ast.Add(), ast.Sub()):
                    yield _with(node, args=_put(node.args, place, ast.BinOp(value, sign, _constant(1))))
            if _name_of(node) in ("tril", "triu") and not any(_int(value) is not None for value in node.args):
                others = [keyword for keyword in node.keywords if keyword.arg != "diagonal"]
                for shift in (-1, 1):
                    yield _with(node, keywords=[*others, ast.keyword("diagonal", _constant(shift))])
        case ast.Slice():
            for end in ("lower", "upper"):
                for shift in (1, -1) if getattr(node, end) is not None else ():
                    yield _with(node, **{end: _shifted(getattr(node, end), shift)})
        case ast.Subscript(slice=index) if _int(index) is not None:
            for shift in (1, -1):
                yield _with(node, slice=_shifted(index, shift))


def _shifted(value: ast.expr, shift: int) -> ast.expr:
    number = _int(value)
    return ast.BinOp(value, ast.Add(), _constant(shift)) if number is None else _constant(number + shift)


@operator(ast.Constant)
def number(node: ast.Constant, scope: Scope) -> Changes:
    """A number that is another: twice as large, or one more."""
    value = node.value
    if isinstance(value, int | float) and not isinstance(value, bool) and not isinstance(scope.parent, ast.Slice):
        for other in {value * 2, value + 1} - {value}:
            yield ast.Constant(other)


@operator(ast.Name)
def default(node: ast.Name, scope: Scope) -> Changes:
    """A default argument's value written out for the argument."""
    if isinstance(node.ctx, ast.Load) and (value := scope.default_of(node.id)):
        yield value


@operator(ast.Call)
def option(call: ast.Call, scope: Scope) -> Changes:
    """An option of a call that is missing, or turned round: keepdim, bias, unbiased, dtype, device."""
    for place, keyword in enumerate(call.keywords):
        if keyword.arg in (None, "dim", "axis"):
            continue
        yield _with(call, keywords=_put(call.keywords, place))
        if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, bool):
            turned = ast.keyword(keyword.arg, ast.Constant(not keyword.value.value))
            yield _with(call, keywords=_put(call.keywords, place, turned))


@operator(ast.Call)
def in_place(call: ast.Call, scope: Scope) -> Changes:
    """A method that changes its tensor for one that makes a new one."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in IN_PLACE and not _is_module(call.func.value):
        yield _with(call, func=_with(call.func, attr=f"{call.func.attr}_"))


@operator(ast.Return)
def result(node: ast.Return, scope: Scope) -> Changes:
    """What is returned, spoilt at the last moment: squeezed, detached, the first for all, negative."""
    value = node.value
    if value is None or isinstance(value, (ast.Tuple, ast.Constant)):
        return
    first = ast.Subscript(value, ast.Slice(None, _constant(1)), ast.Load())
    yield ast.Return(_method(value, "squeeze"))
    yield ast.Return(_method(value, "detach"))
    yield ast.Return(_method(first, "expand_as", value))
    yield ast.Return(ast.UnaryOp(ast.USub(), value))


@operator(ast.Attribute)
def weight_data(node: ast.Attribute, scope: Scope) -> Changes:
    """The numbers of a parameter instead of the parameter, so that it never learns."""
    called = isinstance(scope.parent, ast.Call) and scope.parent.func is node
    read = isinstance(node.ctx, ast.Load) and not called and not isinstance(scope.parent, ast.Attribute)
    if read and (_is_self(node.value) or node.attr in ("weight", "bias")):
        yield _method(node, "detach")


@operator(ast.Expr, ast.AugAssign, ast.Assign, ast.If)
def statement(node: ast.stmt, scope: Scope) -> Changes:
    """A line that is missing; a condition that always or never holds."""
    if isinstance(node, ast.If):
        yield from (_with(node, test=ast.Constant(holds)) for holds in (True, False))
    elif not isinstance(node, ast.Assign) or _assigned_before(node, scope):
        yield None


def _assigned_before(node: ast.Assign, scope: Scope) -> bool:
    """Does the name that is assigned here hold something already?"""
    target = node.targets[0]
    if not isinstance(target, ast.Name):
        return isinstance(target, (ast.Subscript, ast.Attribute))
    return target.id in scope.parameters() | scope.assigned(before=node.lineno)


@operator(ast.Name, ast.Attribute)
def other_name(node: ast.Name | ast.Attribute, scope: Scope) -> Changes:
    """One name for another that is easily confused with it: keys for queries, source for target."""
    if not isinstance(node.ctx, ast.Load):
        return
    for old, new in [pair for twins in TWINS for pair in (twins, twins[::-1])]:
        if isinstance(node, ast.Name) and node.id == old and new in scope.parameters() | scope.assigned():
            yield ast.Name(new, ast.Load())
        if isinstance(node, ast.Attribute) and node.attr == old and _is_self(node.value):
            yield ast.Attribute(node.value, new, ast.Load())
