"""Does an answer take its arguments in the order of the stub, in which the check passes them?"""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

from helpers.checking.read.syntax import Cell

SIGNATURES = Path(__file__).with_name("signatures.toml")  # `make build` writes it
OTHER_ORDER = (
    "Your {} takes its arguments in another order than the stub: ({}) instead of ({}). The check passes them in the"
    " order of the stub."
)


@functools.cache
def signatures() -> Mapping[str, list[str]]:
    """Of each stub that takes several arguments, their names: by "attention", or by "Attention.forward"."""
    return tomllib.loads(SIGNATURES.read_text(encoding="utf-8"))


def other_order(name: str, cell: Cell) -> str:
    """What the cell's answer to the exercise of that name takes in another order than its stub, in a sentence; or "".

    A method that its own code calls may have an order of its own.
    """
    called_within = {node.attr for node in ast.walk(cell.tree) if isinstance(node, ast.Attribute)} - {"__init__"}
    for function, own in cell.parameters(name).items():
        if function != name and function.removeprefix(f"{name}.") in called_within:
            continue
        given = signatures().get(function, [])
        if [each for each in own if each in given] != [each for each in given if each in own]:
            called = f"`{function.removeprefix(f'{name}.')}`" if function != name else "function"
            return OTHER_ORDER.format(called, ", ".join(own), ", ".join(given))
    return ""
