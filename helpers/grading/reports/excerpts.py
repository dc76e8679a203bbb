"""What is shown of an answer where several stand side by side: its code, without docstrings and comments."""

from __future__ import annotations

import ast
import io
import tokenize
from contextlib import suppress

from helpers.checking.read.syntax import cell_of

MAX_LINES = 14


def excerpt(text: str) -> str:
    """A cell's text without docstrings, comments and empty lines, cut after MAX_LINES.

    What is no Python keeps them. A comment may hold its author's name.
    """
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
    if not cell.problem:
        with suppress(tokenize.TokenError, SyntaxError):
            for token in tokenize.generate_tokens(io.StringIO(cell.python).readline):
                if token.type == tokenize.COMMENT:
                    place, column = token.start
                    lines[place - 1] = lines[place - 1][:column].rstrip()
    kept = [line for place, line in enumerate(lines, 1) if line.strip() and place not in hidden]
    more = ["..."] if len(kept) > MAX_LINES else []
    return "\n".join(kept[:MAX_LINES] + more)
