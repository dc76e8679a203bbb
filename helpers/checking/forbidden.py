"""Functions of torch that an exercise is there to replace: calling one of them raises.

An override registered with torch's dispatcher stands in for each operator, below Python, so that an alias, a thread, a
module of torch or a gradient meets it too. What torch builds in Python, of operators that are allowed, is known by its
name in the text of the answer.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache

import torch

from helpers.checking.syntax import parsed
from helpers.exercises.aspects import Forbidden

_SOFTMAX = r"\w*softmax|\w*logsumexp|_?logcumsumexp"
_MODULES = r"\w*(multi_head_attention|transformer_encoder)\w*"  # of torch.nn, where they are fused
_ATTENTION = rf"\w*(scaled_dot_product|flash_attention|efficient_attention)\w*|{_MODULES}"
_NORM = r"\w*(layer|group|batch|instance)_norm\w*"

# The keys under which the CPU, a GPU and `meta` look for an operator's code
_KEYS = (
    "CPU", "CUDA", "Meta", "SparseCPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd",
    "CompositeImplicitAutogradNestedTensor",
)  # fmt: skip

_OF_ATTENTION = ("MultiheadAttention", "multi_head_attention_forward", "flex_attention")
_OF_TRANSFORMERS = (
    "Transformer", "TransformerEncoder", "TransformerEncoderLayer", "TransformerDecoder", "TransformerDecoderLayer",
)  # fmt: skip


@dataclass(frozen=True)
class Family:
    """The same thing by all its names. operators: a pattern of torch's operators. names: what has no operator."""

    operators: str = ""
    names: tuple[str, ...] = ()


# By the name that an exercise forbids. What is not listed has no operator and is known by its own name.
FAMILIES = {
    "softmax": Family(f"{_SOFTMAX}|{_ATTENTION}"),
    "scaled_dot_product_attention": Family(_ATTENTION, (*_OF_ATTENTION, *_OF_TRANSFORMERS)),
    "MultiheadAttention": Family(_MODULES, (*_OF_ATTENTION, *_OF_TRANSFORMERS)),
    "flex_attention": Family("", ("flex_attention",)),
    "LayerNorm": Family(_NORM),
    "rms_norm": Family(r"\w*rms_norm\w*"),
    "Transformer": Family("", tuple(name for name in _OF_TRANSFORMERS if name != "TransformerEncoderLayer")),
    "TransformerEncoderLayer": Family(r"_transformer_encoder\w*", ("TransformerEncoderLayer", "TransformerEncoder")),
    "numel": Family("", ("numel", "nelement")),
}


def barred(forbidden: Mapping[str, str]) -> AbstractContextManager[None]:
    """A context in which the operators behind these names raise Forbidden. Leaving it restores them."""
    patterns = {FAMILIES[name].operators: says for name, says in forbidden.items() if name in FAMILIES}
    patterns.pop("", None)
    return _overridden(patterns) if patterns else nullcontext()


@contextmanager
def _overridden(patterns: Mapping[str, str]) -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL")  # noqa: TOR901 (it lives as long as this block)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that an operator is overridden
            for pattern, says in patterns.items():
                for operator, keys in _operators(pattern):
                    for key in keys:
                        library.impl(operator, _raising(operator, says), key, allow_override=True)
        yield
    finally:
        library._destroy()


def _raising(operator: str, says: str):
    name = operator.split(".")[0].strip("_")

    def forbidden(*arguments: object, **options: object) -> None:
        raise Forbidden(f"Your code calls {name}. {says}")

    return forbidden


@cache
def _operators(pattern: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The operators of torch whose names fit, with the keys under which each has code. No gradient is among them."""
    found = []
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        space, _, operator = full.partition("::")
        name = operator.split(".")[0]
        if space == "aten" and "backward" not in name and re.fullmatch(pattern, name):
            keys = tuple(key for key in _KEYS if torch._C._dispatch_has_kernel_for_dispatch_key(full, key))
            found.append((operator, keys))
    return tuple(found)


def find_operators() -> None:
    """Look all operators up, so that what is forked later need not."""
    for family in FAMILIES.values():
        _operators(family.operators)


def forbidden_use(source: str, forbidden: Mapping[str, str]) -> str:
    """A sentence about the first forbidden name in a cell that stands for no operator; "" where there is none.

    A name in a comment or a docstring is no use of it. What is not Python says nothing here.
    """
    says = _names(forbidden)
    tree = parsed(source) if says else None
    for node in ast.walk(tree) if tree else ():
        for name in _spelled(node):
            if name in says:
                return f"Line {getattr(node, 'lineno', 1)} uses {name}. {says[name]}"
    return ""


def _names(forbidden: Mapping[str, str]) -> dict[str, str]:
    """What is known by its name, with the sentence to say."""
    found: dict[str, str] = {}
    for name, says in forbidden.items():
        for each in FAMILIES[name].names if name in FAMILIES else (name,):
            found.setdefault(each, says)
    return found


def _spelled(node: ast.AST) -> list[str]:
    """The names that this one node uses, ``getattr(torch.nn, "Transformer")`` among them."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return [name]
        case ast.Constant(value=str(name)):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [part for alias in aliases for part in alias.name.split(".")]
    return []
