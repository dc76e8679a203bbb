"""Functions of torch that an exercise is there to replace: calling one of them raises.

An override registered with torch's dispatcher replaces each operator, below Python, so that an alias, a thread, a
module of torch or a gradient meets it too. What torch builds in Python, of operators that are allowed, has its code
replaced. A name for which there is neither is looked for in the text of the answer.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import CodeType, FunctionType
from typing import NamedTuple

import torch

from helpers.checking.syntax import spelled
from helpers.exercises.aspects import Forbidden

_SOFTMAX = r"\w*softmax|\w*logsumexp|_?logcumsumexp"
_MODULES = r"\w*(multi_head_attention|transformer_encoder)\w*"  # of torch.nn, where they are fused
_ATTENTION = rf"\w*(scaled_dot_product|flash_attention|efficient_attention)\w*|{_MODULES}"
_NORM = r"\w*(layer|group|batch|instance)_norm\w*"

# In the dispatcher's table of an operator, the keys under which numbers are computed: MkldnnCPU, NestedTensorCUDA
_CODE = re.compile(r"^(?!Auto)(\w*(?:CPU|CUDA|Meta)|Composite\w+)(?:\[alias\])?: ", re.MULTILINE)

# Where torch has in Python what an exercise may ask for, or an operator once more
_IN_PYTHON = (
    "torch._refs.", "torch._decomp.", "torch.nn.functional.", "torch.nn.modules.activation.",
    "torch.nn.modules.transformer.", "torch.nn.attention.", "torch.utils.checkpoint.", "torch.amp.grad_scaler.",
)  # fmt: skip

_OF_ATTENTION = ("MultiheadAttention", "multi_head_attention_forward", "flex_attention")
_OF_TRANSFORMERS = (
    "Transformer", "TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "TransformerDecoderLayer",
)  # fmt: skip


class Family(NamedTuple):
    """The same thing by all its names. operators: a pattern of torch's operators. names: what has no operator."""

    operators: str = ""
    names: tuple[str, ...] = ()


# By the name that an exercise forbids. What is not listed has no operator and is known by its own name.
FAMILIES = {
    "softmax": Family(f"{_SOFTMAX}|{_ATTENTION}"),
    "scaled_dot_product_attention": Family(_ATTENTION, (*_OF_ATTENTION, *_OF_TRANSFORMERS)),
    "MultiheadAttention": Family(_MODULES, (*_OF_ATTENTION, *_OF_TRANSFORMERS)),
    "LayerNorm": Family(_NORM),
    "rms_norm": Family(r"\w*rms_norm\w*"),
    "Transformer": Family("", tuple(name for name in _OF_TRANSFORMERS if name != "TransformerEncoderLayer")),
    "TransformerEncoderLayer": Family(r"_transformer_encoder\w*", ("TransformerEncoderLayer", "TransformerEncoder")),
    "numel": Family("", ("numel", "nelement")),
}


def _family(name: str) -> Family:
    return FAMILIES.get(name, Family("", (name,)))


@contextmanager
def barred(forbidden: Mapping[str, str]) -> Iterator[None]:
    """A context in which the functions behind these names raise Forbidden. Leaving it restores them."""
    library = _library()
    codes = _bar(forbidden, library)
    try:
        yield
    finally:
        library.reset()
        for function, code in codes.items():
            function.__code__ = code


def bar_for_good(forbidden: Mapping[str, str]) -> None:
    """The same for the rest of this process. No object is left by which an answer could restore them."""
    library = _library()
    _bar(forbidden, library)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # so that it never ends, and nothing refers to it


def _library():
    # torch.library.Library keeps itself in a public list of finalizers, by which anybody could end it
    return torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)


def _bar(forbidden: Mapping[str, str], library) -> dict[FunctionType, CodeType]:
    """Have these functions raise, for as long as the library lasts. Returns what was the code of those in Python."""
    codes: dict[FunctionType, CodeType] = {}
    with warnings.catch_warnings(action="ignore"):  # torch warns that an operator is overridden
        for name, says in forbidden.items():
            operators, names = _family(name)
            for operator, keys in _operators(operators):
                for key in keys:
                    library.impl(operator, key, _raising(operator, says), False)
            for function in _functions("|".join(filter(None, (operators, *names)))):
                codes.setdefault(function, function.__code__)
                function.__code__ = _raising_code(function, says)
    return codes


def _raising(operator: str, says: str):
    name = "scaled_dot_product_attention" if "scaled_dot_product" in operator else operator.split(".")[0].strip("_")

    def forbidden(*arguments: object, **options: object) -> None:
        raise Forbidden(f"Your code calls {name}. {says}")

    return forbidden


def _raising_code(function: FunctionType, says: str) -> CodeType:
    """Code that replaces that of a function, whose module may lack the names that it needs."""
    outer = function.__code__.co_freevars  # there have to be as many, such as the `__class__` of `super`
    message = f"Your code calls {function.__qualname__.removesuffix('.__init__').strip('_')}. {says}"
    lines = [
        "def outer():",
        *(f"    {name} = None" for name in outer),
        "    def forbidden(*_, **__):",
        f"        from {Forbidden.__module__} import Forbidden",
        f"        raise Forbidden({message!r})",
        *(f"        {name}" for name in outer),
        "    return forbidden.__code__",
    ]
    space: dict = {}
    exec("\n".join(lines), space)
    return space["outer"]()


@cache
def _operators(pattern: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The operators of torch whose names fit, with the keys under which each has code. No gradient is among them."""
    operators = []
    for full in sorted(torch._C._dispatch_get_all_op_names()) if pattern else ():
        space, _, operator = full.partition("::")
        name = operator.split(".")[0]
        if space == "aten" and "backward" not in name and re.fullmatch(pattern, name):
            keys = _CODE.findall(torch._C._dispatch_dump(full))
            operators.append((operator, tuple(keys)))
    return tuple(operators)


@cache
def _functions(pattern: str) -> tuple[FunctionType, ...]:
    """The functions of torch that are written in Python, and the constructors of its classes, whose names fit."""
    functions: dict[FunctionType, None] = {}
    for path, module in list(sys.modules.items()):
        for name, value in vars(module).items() if pattern and f"{path}.".startswith(_IN_PYTHON) else ():
            if re.fullmatch(pattern, name):
                inner = inspect.unwrap(getattr(value, "__init__", value) if isinstance(value, type) else value)
                if isinstance(inner, FunctionType):
                    functions[inner] = None
    return tuple(functions)


def forbidden_use(source: str, forbidden: Mapping[str, str]) -> str:
    """A sentence about the first forbidden name in a cell that has no operator; "" where there is none.

    A name in a comment or a docstring is no use of it. What is not Python says nothing here.
    """
    says: dict[str, str] = {}
    for name, sentence in forbidden.items():
        says = dict.fromkeys(_family(name).names, sentence) | says
    for line, name in spelled(source, modules=False) if says else ():
        if name in says:
            return f"Line {line} uses {name}. {says[name]}"
    return ""
