"""Which lines of a lesson's cell draw: on a page they are folded, so that the lines that compute stand open alone."""

from __future__ import annotations

import ast
import re

import nbformat

DRAWS = re.compile(r"\b(?:plt|plots|fig|figure|axes|ax)\b")
SAYS = re.compile(r"\bprint\(|\bcheck\b|\bassert\b")  # what a reader looks for, even beside a picture
LEAST = 3  # lines that are worth a fold
PICTURES = ("image/png", "image/svg+xml")


def split(source: str) -> tuple[str, str]:
    """The lines of a cell that compute, and those at its end that draw; the second is "" where nothing is to fold."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a magic command
        return source, ""
    lines = source.splitlines()
    texts = ["\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in statements]
    first = 0
    for place, (node, text) in enumerate(zip(statements, texts, strict=True)):
        defines = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not DRAWS.search(text)
        if defines or (SAYS.search(text) and not DRAWS.search(text)):
            first = place + 1
    drawing = next((place for place in range(first, len(texts)) if DRAWS.search(texts[place])), None)
    if drawing is None:
        return source, ""
    begin = statements[drawing].lineno - 1
    while begin and lines[begin - 1].lstrip().startswith("#"):
        begin -= 1
    tail = lines[begin:]
    if sum(bool(line.strip()) for line in tail) < LEAST:
        return source, ""
    return "\n".join(lines[:begin]).rstrip(), "\n".join(tail)


def draws_a_picture(cell: nbformat.NotebookNode) -> bool:
    """Has the cell a picture for its output, and is it nobody's exercise?"""
    return "nbgrader" not in cell.metadata and any(
        mime in output.get("data", {}) for output in cell.outputs for mime in PICTURES
    )


def without_drawing(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cell as one or two: what computes, open; what draws, tagged to be folded, with the outputs."""
    tags = cell.metadata.get("tags", [])
    if "hide-input" in tags or not draws_a_picture(cell):
        return [cell]
    computing, drawing = split(cell.source)
    if not drawing:
        return [cell]
    cell.source = drawing
    cell.metadata["tags"] = [*tags, "hide-input"]
    if not computing:
        return [cell]
    return [nbformat.v4.new_code_cell(computing, id=f"{cell.id}-computes"[:64], metadata={"tags": []}), cell]
