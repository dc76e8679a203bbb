"""Removing from a submitted notebook whatever an instructor's browser could run: nbgrader shows it as a live page.

Text outputs and pictures stay. What a student wrote into text cells is shown as it was typed, and never rendered.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from html import escape

from nbformat.notebooknode import NotebookNode

PICTURES = ("image/png", "image/jpeg")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")


def sanitize_notebook(notebook: NotebookNode, released: Collection[str]) -> None:
    """Remove active content, in place, before the verdicts are written into the notebook.

    released: the text of the released lesson's cells, which stays as it is.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_static_output, cell.outputs) if output is not None]
        elif cell.source not in released:
            cell.source = escape(cell.source, quote=False) if cell.cell_type == "raw" else _as_typed(cell.source)


def _static_output(output: NotebookNode) -> NotebookNode | None:
    """The output with text and pictures only; None where nothing is left."""
    if output.output_type in ("stream", "error"):
        return output
    static = {
        kind: value
        for kind, value in output.get("data", {}).items()
        if kind == "text/plain" or kind in PICTURES and BASE64.fullmatch(value)
    }
    if not static:
        return None
    plain = NotebookNode(output_type=output.output_type, data=NotebookNode(static), metadata=NotebookNode())
    if output.output_type == "execute_result":
        plain.execution_count = output.get("execution_count")
    return plain


def _as_typed(source: str) -> str:
    """A block of Markdown that shows this text and nothing else: its fence is longer than any within."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall(r"`+", source))])
    return f"{fence}text\n{source}\n{fence}"
