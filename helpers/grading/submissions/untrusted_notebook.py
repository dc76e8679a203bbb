"""Reading a file that somebody handed in, without trusting a byte of it.

Size and nesting are bounded before anything is parsed, by a scan over the text that needs no recursion.
What comes out holds cells, their kinds, sources, ids, outputs and nbgrader's metadata, and nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from nbformat.notebooknode import NotebookNode

from helpers.grading.submissions.saved_outputs import Room, saved_outputs

LARGEST_FILE = 20 << 20  # bytes; a lesson with all its figures stays below one million
DEEPEST = 100  # brackets within brackets; a notebook of figures and tables needs about ten
MOST_MARKS = 3_000_000  # brackets and commas: how many values a file can hold
MOST_CELLS = 2_000
LONGEST_CELL = 1 << 20  # characters

# A string as one piece (possessive: nothing is tried twice), or one bracket or comma
MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]},]', re.DOTALL)

KINDS = {b"PK\x03\x04": "a zip file", b"%PDF": "a PDF", b"\x89PNG": "a picture", b"\x1f\x8b": "a compressed file"}


class Unreadable(ValueError):
    """A file that is no notebook. The text completes "The file ..."."""


class Unopened(Unreadable):
    """A file that this machine could not open: it says nothing about what was handed in, and earns no mark."""


@dataclass
class Screened:
    """A notebook whose every field has the type that it should have. flags: what had to be left out, in words."""

    notebook: NotebookNode
    flags: list[str] = field(default_factory=list)


def screen(data: bytes) -> Screened:
    """The notebook in these bytes. Raises Unreadable with what is wrong with them."""
    text = _bounded(data)
    return _shaped(_parsed(text, still_open=_scan(data)))


def _bounded(data: bytes) -> str:
    """The text, once it is known that it is one, and not too long."""
    if len(data) > LARGEST_FILE:
        raise Unreadable(f"is larger than {LARGEST_FILE >> 20} MB")
    if not data.strip():
        raise Unreadable("is empty")
    for start, kind in KINDS.items():
        if data.startswith(start):
            raise Unreadable(f"is {kind}, not a notebook")
    if b"\0" in data:
        raise Unreadable("is not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("is not text") from None
    if text.lstrip()[:1] == "<":
        raise Unreadable("is a web page, not a notebook")
    return text


def _scan(data: bytes) -> bool:
    """Are brackets left open at the end? Raises Unreadable where there is too much to parse."""
    depth = 0
    for count, mark in enumerate(MARKS.finditer(data)):
        sign = data[mark.start()]
        if sign in b"[{":
            depth += 1
            if depth > DEEPEST:
                raise Unreadable(f"nests its brackets more than {DEEPEST} deep")
        elif sign in b"]}":
            depth -= 1
        if count > MOST_MARKS:
            raise Unreadable(f"holds more than {MOST_MARKS:,} values")
    return depth > 0


def _parsed(text: str, still_open: bool) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        if still_open:
            raise Unreadable("is cut off: it ends in the middle") from None
        raise Unreadable(f"is not a notebook: line {problem.lineno} is no JSON") from None
    except (ValueError, RecursionError):
        raise Unreadable("is not a notebook: it cannot be parsed") from None


def _shaped(told: object) -> Screened:
    if not isinstance(told, dict):
        raise Unreadable("is JSON, but not a notebook")
    cells = told.get("cells")
    if cells is None and isinstance(told.get("worksheets"), list):  # notebooks of 2014 and before
        cells = [c for sheet in told["worksheets"] if isinstance(sheet, dict) for c in _list(sheet.get("cells"))]
    if not isinstance(cells, list):
        raise Unreadable("is JSON, but not a notebook")
    flags = []
    if len(cells) > MOST_CELLS:
        flags.append(f"only the first {MOST_CELLS:,} of its {len(cells):,} cells were read")
    room = Room()
    kept = [cell for told in cells[:MOST_CELLS] if (cell := _cell(told, room)) is not None]
    if not kept:
        raise Unreadable("is a notebook without cells")
    dropped = min(len(cells), MOST_CELLS) - len(kept)
    if dropped:
        flags.append(f"{dropped} of its cells could not be read")
    return Screened(NotebookNode(cells=kept, metadata=NotebookNode(), nbformat=4, nbformat_minor=5), flags)


def _cell(told: object, room: Room) -> NotebookNode | None:
    if not isinstance(told, dict):
        return None
    source = told.get("source", told.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str) or len(source) > LONGEST_CELL:
        return None
    kind = told.get("cell_type")
    kind = kind if kind in ("code", "markdown", "raw") else "raw"
    cell = NotebookNode(cell_type=kind, source=_clean(source), metadata=_metadata(told.get("metadata")))
    if isinstance(told.get("id"), str):
        cell.id = _clean(told["id"])[:64]
    if kind == "code":
        cell.outputs, cell.execution_count = saved_outputs(told.get("outputs"), room), None
    return cell


def _metadata(told: object) -> NotebookNode:
    """What `restore` looks at: the grade id, and what a student may have changed of the rest."""
    kept = NotebookNode()
    if not isinstance(told, dict):
        return kept
    about = told.get("nbgrader")
    if isinstance(about, dict) and isinstance(about.get("grade_id"), str):
        points = about.get("points")
        kept.nbgrader = NotebookNode(grade_id=_clean(about["grade_id"])[:200])
        if isinstance(points, (int, float)) and not isinstance(points, bool):
            kept.nbgrader.points = points
    tags = [_clean(tag)[:60] for tag in _list(told.get("tags"))[:20] if isinstance(tag, str)]
    if tags:
        kept.tags = tags
    return kept


def _list(value: object) -> list:
    return value if isinstance(value, list) else []


def _clean(text: str) -> str:
    """Without halves of characters, which no file can hold, and zeros, which no database and no parser takes."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
