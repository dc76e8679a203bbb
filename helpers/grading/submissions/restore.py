"""Putting a submitted notebook back into the shape that was released."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

from nbformat.notebooknode import NotebookNode

from helpers.grading.sanitize import plain


@dataclass
class Restored:
    """A notebook as released, with the student's answers in it. flags: what had to be mended, in words."""

    notebook: NotebookNode
    flags: list[str] = field(default_factory=list)


def restore(submitted: NotebookNode, released: NotebookNode) -> Restored:
    """The released notebook with the student's solutions, edits of open cells, and added cells.

    Locked cells, check cells, the order of the cells and all metadata come from the release. What the
    student wrote in a solution cell is found by its grade id, else by its cell id, else by what it
    defines, in cells that were added or in that of another exercise, with which it was merged. The halves of a cell
    that was split are put together. Cells that the student added stay behind the cell they followed, without metadata.
    """
    known = {_key(cell): cell for cell in released.cells}
    by_id = {cell.get("id"): _key(cell) for cell in released.cells}
    written: dict[str, list[NotebookNode]] = {key: [] for key in known}
    added: dict[str | None, list[NotebookNode]] = {}
    order: list[str] = []
    previous = None
    for cell in submitted.cells:
        key = _grade_id(cell) if _grade_id(cell) in known else by_id.get(cell.get("id"))
        if key is None:
            added.setdefault(previous, []).append(cell)
            continue
        written[key].append(cell)
        order.append(key)
        previous = key
    flags = _flags(released, written, order)
    _find_by_definition(released, written, added, flags)

    cells = [_extra(cell) for cell in added.get(None, [])]
    for cell in released.cells:
        key = _key(cell)
        cells.append(_merged(cell, written[key]))
        cells += [_extra(extra) for extra in added.get(key, [])]
    for place, cell in enumerate(cells):
        if "nbgrader" not in cell.metadata:
            cell.id = f"cell-{place}"
    metadata = copy.deepcopy(released.metadata)
    return Restored(NotebookNode(cells=cells, metadata=metadata, nbformat=4, nbformat_minor=5), flags)


def _grade_id(cell: NotebookNode) -> str | None:
    about = cell.get("metadata", {}).get("nbgrader")
    name = about.get("grade_id") if isinstance(about, dict) else None
    return name if isinstance(name, str) and name else None


def _key(cell: NotebookNode) -> str:
    return _grade_id(cell) or f"cell id {cell.get('id')}"


def _about(cell: NotebookNode) -> dict:
    return cell.metadata.get("nbgrader", {})


def _is_open(cell: NotebookNode) -> bool:
    """May the student change this cell?"""
    about = _about(cell)
    return not about or bool(about.get("solution"))


def _flags(released: NotebookNode, written: dict, order: list[str]) -> list[str]:
    flags = []
    for cell in released.cells:
        key = _key(cell)
        if "nbgrader" not in cell.metadata:
            continue
        found = written[key]
        if not found:
            flags.append(f"{key} was missing")
        if len(found) > 1:
            flags.append(f"{key} stood there {len(found)} times")
        if found and found[-1].cell_type != cell.cell_type:
            flags.append(f"{key} had become a {found[-1].cell_type} cell")
        if found and not _is_open(cell) and any(_text(f) != cell.source for f in found):
            flags.append(f"{key} had been edited")
        flags += _changed_metadata(key, cell, found)
    wanted = [key for key in map(_key, released.cells) if key in set(order)]
    if list(dict.fromkeys(order)) != wanted:
        flags.append("cells stood in another order")
    return flags


def _changed_metadata(key: str, released: NotebookNode, found: list[NotebookNode]) -> list[str]:
    """What the student changed of what marks depend on; the release's counts."""
    flags, most = [], _about(released).get("points")
    for cell in found:
        metadata = cell.get("metadata", {})
        about = metadata.get("nbgrader")
        points = about.get("points", most) if isinstance(about, dict) else most
        if most is not None and points != most:
            flags.append(f"{key} claimed {plain(points, 40)} points, not {most:g}")
        own, tags = released.metadata.get("tags", []), metadata.get("tags", [])
        new = [plain(tag, 60) for tag in tags if tag not in own] if isinstance(tags, list) else []
        if new:
            flags.append(f"{key} had been given the tag {', '.join(new)}")
    return list(dict.fromkeys(flags))


def _find_by_definition(released: NotebookNode, written: dict, added: dict, flags: list[str]) -> None:
    """A solution whose cell is gone, or empty, is known by what it defines; the last one counts."""
    sources = {_key(cell): cell.source for cell in released.cells if _about(cell).get("solution")}
    for key in sources:
        if any(_text(cell).strip() for cell in written[key]):
            continue
        name = re.escape(key)
        defines = re.compile(
            rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{name}\b|^{name}[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE
        )
        matches = [(extras, e) for extras in added.values() for e in extras if defines.search(_text(e))]
        matches = [match for match in matches if match[1].cell_type == "code"] or matches  # text is handed in, too
        begun = [match for match in matches if _text(match[1]) != sources[key]] or matches
        for extras, match in begun[-1:]:
            extras[:] = [extra for extra in extras if extra is not match]
            written[key].append(match)
        if not matches:
            matches = [each for other in sources for each in written[other] if defines.search(_text(each))]
            written[key] += matches[-1:]
        if matches:
            flags.append(f"{key} was found by what it defines")


def _merged(released: NotebookNode, written: list[NotebookNode]) -> NotebookNode:
    cell = copy.deepcopy(released)
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    if not _is_open(released) or not written:
        return cell
    begun = [each for each in written if _text(each) != released.source] or written[-1:]
    cell.source = _joined([_text(each) for each in begun])
    if cell.cell_type == "code":
        cell.outputs = begun[-1].get("outputs", [])
    return cell


def _joined(texts: list[str]) -> str:
    """The text of a cell that was handed in more than once: split in two, or copied. Of a copy, the last counts."""
    return "\n\n".join(text for text in dict.fromkeys(texts) if text.strip()) if len(texts) < 5 else texts[-1]


def _extra(cell: NotebookNode) -> NotebookNode:
    kind = cell.cell_type if cell.cell_type in ("code", "markdown", "raw") else "raw"
    bare = NotebookNode(cell_type=kind, metadata=NotebookNode(), source=_text(cell), id="added")
    if kind == "code":
        bare.outputs, bare.execution_count = cell.get("outputs", []), None
    return bare


def _text(cell: NotebookNode) -> str:
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else str(source)
