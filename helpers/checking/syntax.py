"""Does the solution cell use something that the exercise is there to replace, or hold the stub still?"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache

from helpers.course import HELPERS

FINISHED = (
    "A finished part cannot be the answer to an exercise: write it here. What a lesson itself imports in its first "
    "cell, you may use as its text says."
)


def words(text: str) -> list[str]:
    """The words of a text, for tables of names that are long and read as lists."""
    return text.split()


# The same thing by other names: what forbids the first forbids all of them.
_SOFTMAX = (
    "softmax softmax_ _softmax log_softmax _log_softmax softmin Softmax Softmax2d LogSoftmax Softmin gumbel_softmax"
    " _masked_softmax masked_softmax _safe_softmax cross_entropy CrossEntropyLoss cross_entropy_loss"
    " AdaptiveLogSoftmaxWithLoss Categorical OneHotCategorical Multinomial RelaxedOneHotCategorical distributions"
)
_ATTENTION = (
    "scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention"
    " _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention flex_attention"
    " _scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable"
    " MultiheadAttention multi_head_attention_forward _native_multi_head_attention TransformerEncoderLayer"
    " TransformerDecoderLayer _transformer_encoder_layer_fwd TransformerEncoder TransformerDecoder"
)
_NORM = (
    "LayerNorm layer_norm native_layer_norm group_norm GroupNorm native_group_norm instance_norm InstanceNorm1d"
    " InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d batch_norm native_batch_norm BatchNorm1d"
)
FAMILIES = {
    "softmax": words(f"{_SOFTMAX} {_ATTENTION}"),
    "scaled_dot_product_attention": words(_ATTENTION),
    "MultiheadAttention": words(_ATTENTION.replace("scaled_dot_product_attention ", "", 1)),
    "LayerNorm": words(_NORM),
    "gelu": words("gelu gelu_ _gelu GELU"),
    "Transformer": words("Transformer TransformerEncoder TransformerDecoder TransformerDecoderLayer"),
    "numel": words("numel nelement"),
}
# Half of the same thing. Whoever uses one still has to know the rest: it pays, and is shown to the instructor.
NEAR = {"softmax": words("logsumexp logaddexp logaddexp2 logcumsumexp _logcumsumexp")}


@cache
def parts_that_answer(name: str) -> tuple[str, ...]:
    """The finished parts that go by an exercise's name: "helpers.parts.masks.causal_mask"."""
    return tuple(sorted(f"helpers.parts.{module}.{name}" for module, names in _parts().items() if name in names))


@cache
def _parts() -> dict[str, frozenset[str]]:
    """What each module of helpers.parts defines."""
    defined = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)
    paths = (HELPERS / "parts").glob("[a-z]*.py")
    return {path.stem: frozenset(defined.findall(path.read_text(encoding="utf-8"))) for path in paths}


def equivalents(forbidden: Mapping[str, str]) -> dict[str, str]:
    """The forbidden names and all others for the same thing, each with the sentence to say."""
    found = dict(forbidden)
    for name, family in FAMILIES.items():
        if name in forbidden:
            for other in family:
                found.setdefault(other, forbidden[name])
    return found


def forbidden_use(source: str, forbidden: Mapping[str, str]) -> str:
    """A sentence about the first forbidden name that the cell uses, or nothing.

    Importing from helpers.parts, where finished parts of the course lie, is forbidden everywhere. Reads the syntax
    tree, so that a name in a comment or a docstring is no use of it. Looks at plain names, attributes, imports, and
    strings that are a forbidden name and nothing else (``getattr(torch, "softmax")``, ``"soft" + "max"``). A name with
    a dot is one thing of a module: "finished_masks.causal_mask". Other names for the same thing count (`FAMILIES`).
    A cell that is not Python says nothing here: it has failed already.
    """
    tree = parsed(source)
    if tree is None:
        return ""
    forbidden = equivalents(forbidden)
    for node in ast.walk(tree):
        if _imports_a_part(node):
            return f"Line {node.lineno} imports from helpers.parts. {FINISHED}"
        for name in names_in(node):
            if name in forbidden:
                line = getattr(node, "lineno", None)
                return (
                    f"Line {line} uses {name}. {forbidden[name]}"
                    if line
                    else f"Your cell uses {name}. {forbidden[name]}"
                )
    return ""


def _imports_a_part(node: ast.AST) -> bool:
    paths = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom):
        paths = [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Attribute):
        paths = [dotted(node)]
    return any(f"{path}.".startswith("helpers.parts.") for path in paths)


def names_in(node: ast.AST) -> list[str]:
    """The names that this one node uses, or spells."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr, dotted(node)]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        paths = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
        return [part for path in paths for part in path.split(".") if part]
    if isinstance(node, ast.MatchClass):
        return list(node.kwd_attrs)
    if isinstance(node, (ast.Constant, ast.BinOp, ast.JoinedStr)):
        spelled = text_of(node)
        return [spelled] if spelled else []
    return []


def dotted(node: ast.AST) -> str:
    """``torch.nn.functional`` for such a chain of attributes, "" for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def text_of(node: ast.AST) -> str | None:
    """The text that an expression of literals spells (a sum of strings, an f-string of them), or None."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = text_of(left), text_of(right)
            return None if None in both else both[0] + both[1]
        case ast.JoinedStr(values=values):
            texts = [text_of(value) for value in values]
            return None if None in texts else "".join(texts)
        case ast.FormattedValue(value=value, format_spec=None):
            return text_of(value)
    return None


def parsed(source: str) -> ast.Module | None:
    """The syntax tree of a cell, its magics left out; None for what is not Python."""
    try:
        return ast.parse(_without_magics(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _without_magics(source: str) -> str:
    return "\n".join("pass" if line.startswith(("%", "!")) else line for line in source.splitlines())


def digest_of_tree(source: str) -> str:
    """Equal for cells that are the same program: comments, layout and docstrings apart. "" for what is not Python."""
    tree = parsed(source)
    if tree is None:
        return ""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [inner for inner in body if not _is_lone_text(inner)]
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "replace")).hexdigest()[:16]


def _is_lone_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# ----------------------------------------------------------------------------------------------- the stub


def stubs(source: str, name: str) -> tuple[int, int]:
    """How many functions of what the cell defines by that name are stubs still, and how many there are.

    A stub is a function that can only say that it is not written: whatever its arguments are, it comes to ``raise
    NotImplementedError``. Of several definitions in the cell the last counts; a stub
    that something in the same cell replaces later is none. A function that is written, and hands on to a class of the
    cell in which nothing is, is as unwritten as that.
    """
    tree = parsed(source)
    if tree is None:
        return 0, 0
    defined = {bound: node for node in tree.body for bound in _bound_by(node)}
    last = defined.get(name)
    if not isinstance(last, (*_FUNCTIONS, ast.ClassDef)):
        return 0, 0
    functions = list(_functions_of(last))
    left = sum(_comes_to_stub(f.body) for f in functions)
    inner = [] if left or isinstance(last, ast.ClassDef) else _handed_on_to(last, defined)
    if inner and all(_comes_to_stub(f.body) for f in inner):
        return len(inner), len(inner)
    return left, len(functions)


def holds_stub(source: str, name: str, released: str = "") -> bool:
    """Does the solution cell still hold the stub, with all that it was released with?

    released: the cell as it was released; without it only a cell that holds nothing but stubs is said to. In a class
    with several stubs some may have been written already: then it is begun, and holds the stub no more. Comments,
    docstrings and lines put before a stub make no difference.
    """
    left, every = stubs(source, name)
    return left > 0 and left >= (stubs(released, name)[0] if released else every)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_WAYS_OUT = (ast.Return, ast.Yield, ast.YieldFrom, ast.Break, ast.Continue)


def _bound_by(node: ast.stmt) -> set[str]:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return {node.name}
    names = {n.id for n in _own(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names |= {n.name for n in _own(node) if isinstance(n, (*_FUNCTIONS, ast.ClassDef))}
    imports = [n for n in _own(node) if isinstance(n, (ast.Import, ast.ImportFrom))]
    return names | {alias.asname or alias.name for n in imports for alias in n.names}


def _functions_of(node: ast.stmt) -> Iterator[ast.FunctionDef]:
    """The function itself, or the methods of a class, of each name the last."""
    if isinstance(node, _FUNCTIONS):
        yield node
        return
    methods = {}
    for inner in node.body:
        for name in _bound_by(inner):
            methods[name] = inner
    yield from (inner for inner in methods.values() if isinstance(inner, _FUNCTIONS))


def _handed_on_to(function: ast.FunctionDef, defined: Mapping[str, ast.stmt]) -> list[ast.FunctionDef]:
    """The methods of those classes of the cell that the function reads by name."""
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    classes = [node for name, node in defined.items() if name in read and isinstance(node, ast.ClassDef)]
    return [method for each in classes for method in _functions_of(each)]


def _comes_to_stub(body: list[ast.stmt]) -> bool:
    """Is a bare NotImplementedError reached whatever the arguments are? A loop counts as entered."""
    for statement in body:
        if _raises_stub(statement):
            return True
        if isinstance(statement, (ast.For, ast.While, ast.With, ast.Try)) and _comes_to_stub(statement.body):
            return True
        if isinstance(statement, ast.If) and _comes_to_stub(statement.body) and _comes_to_stub(statement.orelse):
            return True
        if any(isinstance(n, _WAYS_OUT) for n in _own(statement)):
            return False
    return False


def _raises_stub(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without the insides of functions and classes that it defines."""
    yield node
    if not isinstance(node, _INNER):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)
