"""Does the solution cell use something that the exercise is there to replace?"""

from __future__ import annotations

import ast
from collections.abc import Mapping

FINISHED = (
    "A finished part cannot be the answer to an exercise: write it here. What a lesson itself imports in its first "
    "cell, you may use as its text says."
)


def forbidden_use(source: str, forbidden: Mapping[str, str]) -> str:
    """A sentence about the first forbidden name that the cell uses, or nothing.

    Importing from helpers.parts, where finished parts of the course lie, is forbidden everywhere. Reads the syntax
    tree, so that a name in a comment or a docstring is no use of it. Looks at plain names, attributes, imports, and
    strings that are a forbidden name and nothing else (``getattr(torch, "softmax")``). A cell that is not Python says
    nothing here: it has failed already.
    """
    try:
        tree = ast.parse(_without_magics(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in ast.walk(tree):
        if _imports_a_part(node):
            return f"Line {node.lineno} imports from helpers.parts. {FINISHED}"
        for name in _names(node):
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
    return any(f"{path}.".startswith("helpers.parts.") for path in paths)


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        paths = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
        return [part for path in paths for part in path.split(".") if part]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    return []


def _without_magics(source: str) -> str:
    return "\n".join("pass" if line.startswith(("%", "!")) else line for line in source.splitlines())
