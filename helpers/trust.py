"""Jupyter's trust in a notebook: without it, saved outputs lose their style.

Jupyter signs a notebook when it saves it, and trusts what it has signed. A notebook that this course rewrites has to be
signed again, or its saved panels show as bare words.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from helpers.course import write_whole


def sign(path: Path) -> None:
    """Let Jupyter trust the notebook. Where that is not possible, its outputs are still legible."""
    with suppress(Exception):
        import nbformat
        from nbformat.sign import NotebookNotary

        NotebookNotary().sign(nbformat.read(path, as_version=4))


def is_trusted(path: Path) -> bool:
    """Has Jupyter signed the notebook as it is?"""
    with suppress(Exception):
        import nbformat
        from nbformat.sign import NotebookNotary

        return NotebookNotary().check_signature(nbformat.read(path, as_version=4))
    return False


def rewrite(path: Path, data: bytes) -> None:
    """Write a notebook, whole or not at all. Where the one before it was trusted, this one is too."""
    trusted = is_trusted(path)
    write_whole(path, data)
    if trusted:
        sign(path)
