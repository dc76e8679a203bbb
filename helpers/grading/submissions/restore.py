"""Putting a submitted notebook back into the shape that was released."""

from __future__ import annotations

import copy

from nbformat.notebooknode import NotebookNode

from helpers.grading.submissions.untrusted_notebook import FlaggedNotebook
from helpers.notebooks import defines, grade_id
from helpers.text import listed, plain


def restore(submitted: NotebookNode, released: NotebookNode) -> FlaggedNotebook:
    """The released notebook with the student's solutions, edits of open cells, and added cells; and what was put right.

    Locked cells, check cells, the order of the cells and all metadata come from the release. A solution is recognised
    by its grade id, or else by its cell id, or else by what it defines: in a cell that was added, or in another
    exercise's, with which it was merged. The halves of a cell that was split are joined. Cells that the student added
    stay behind the cell that they followed, without metadata.
    """
    written: dict[str, list[NotebookNode]] = {_key(cell): [] for cell in released.cells}
    by_id = {cell.get("id"): _key(cell) for cell in released.cells}
    added: dict[str | None, list[NotebookNode]] = {}
    order: list[str] = []
    for cell in submitted.cells:
        key = grade_id(cell) if grade_id(cell) in written else by_id.get(cell.get("id"))
        if key is None:
            added.setdefault(order[-1] if order else None, []).append(cell)
        else:
            written[key].append(cell)
            order.append(key)
    flags = _flags(released, written, order)
    _find_by_definition(released, written, added, flags)

    cells = [_added_cell(cell) for cell in added.get(None, [])]
    for cell in released.cells:
        key = _key(cell)
        cells += [_with_answer(cell, written[key]), *map(_added_cell, added.get(key, []))]
    for position, cell in enumerate(cells):
        if "nbgrader" not in cell.metadata:
            cell.id = f"cell-{position}"
    metadata = copy.deepcopy(released.metadata)
    return FlaggedNotebook(NotebookNode(cells=cells, metadata=metadata, nbformat=4, nbformat_minor=5), flags)


def _key(cell: NotebookNode) -> str:
    return grade_id(cell) or f"cell id {cell.get('id')}"


def _is_open(cell: NotebookNode) -> bool:
    """May the student change this cell?"""
    return "nbgrader" not in cell.metadata or bool(cell.metadata.nbgrader.get("solution"))


def _flags(released: NotebookNode, written: dict, order: list[str]) -> list[str]:
    flags, missing = [], []
    for cell in released.cells:
        key, copies = _key(cell), written[_key(cell)]
        if "nbgrader" not in cell.metadata:
            continue
        if not copies:
            missing.append(key)
            continue
        if len(copies) > 1:
            flags.append(f"{key} was there {len(copies)} times")
        if copies[-1].cell_type != cell.cell_type:
            flags.append(f"{key} had become a {copies[-1].cell_type} cell")
        if not _is_open(cell) and any(each.source != cell.source for each in copies):
            flags.append(f"{key} had been edited")
        points = cell.metadata.nbgrader.get("points")
        for claimed in {each.metadata.get("nbgrader", {}).get("points", points): None for each in copies}:
            if points is not None and claimed != points:
                flags.append(f"{key} claimed {plain(claimed, 40)} points, not {points:g}")
    if missing:
        flags.insert(0, f"{listed(missing, 3)} {'was' if len(missing) == 1 else 'were'} missing")
    released_order = [key for key in map(_key, released.cells) if key in order]
    return [*flags, "cells were in another order"] if list(dict.fromkeys(order)) != released_order else flags


def _find_by_definition(released: NotebookNode, written: dict, added: dict, flags: list[str]) -> None:
    """A solution whose cell is gone, or empty, is recognised by what it defines; the last one counts."""
    solutions = [cell for cell in released.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    stubs = {_key(cell): cell.source for cell in solutions}
    for key, stub in stubs.items():
        if any(cell.source.strip() for cell in written[key]):
            continue
        definition = defines(key)
        matches = [cell for cells in added.values() for cell in cells if definition.search(cell.source)]
        if matches:
            # Code rather than text, and what was begun rather than the stub
            matches.sort(key=lambda cell: (cell.cell_type == "code", cell.source != stub))
            for cells in added.values():
                cells[:] = [cell for cell in cells if cell is not matches[-1]]
        else:
            matches = [cell for other in stubs for cell in written[other] if definition.search(cell.source)]
        written[key] += matches[-1:]
        if matches:
            flags.append(f"{key} was found by what it defines")


def _with_answer(released: NotebookNode, written: list[NotebookNode]) -> NotebookNode:
    cell = copy.deepcopy(released)
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    if not _is_open(released) or not written:
        return cell
    begun = [each for each in written if each.source != released.source] or written[-1:]
    cell.source = _joined([each.source for each in begun])
    if cell.cell_type == "code":
        cell.outputs = begun[-1].get("outputs", [])
    return cell


def _joined(texts: list[str]) -> str:
    """The text of a cell that is there more than once: it was split or copied. Of many copies, the last counts."""
    return "\n\n".join(text for text in dict.fromkeys(texts) if text.strip()) if len(texts) < 5 else texts[-1]


def _added_cell(cell: NotebookNode) -> NotebookNode:
    bare = NotebookNode(cell_type=cell.cell_type, metadata=NotebookNode(), source=cell.source, id="added")
    if cell.cell_type == "code":
        bare.outputs, bare.execution_count = cell.get("outputs", []), None
    return bare
