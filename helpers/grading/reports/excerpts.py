"""What is shown of an answer where several stand side by side: its code, without docstrings."""

from __future__ import annotations

import ast

from helpers.checking.read.syntax import cell_of

MAX_LINES = 14


def excerpt(text: str) -> str:
    """A cell's text without docstrings and empty lines, cut after MAX_LINES; what is no Python stays as it is."""
    cell = cell_of(text)
    hidden: set[int] = set()
    for node in ast.walk(cell.tree):
        match node:
            case (
                ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as first, _, *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())) as first, _, *_])
            ):
                hidden.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = (text if cell.problem else cell.python).split("\n")
    kept = [line for place, line in enumerate(lines, 1) if line.strip() and place not in hidden]
    more = ["..."] if len(kept) > MAX_LINES else []
    return "\n".join(kept[:MAX_LINES] + more)
