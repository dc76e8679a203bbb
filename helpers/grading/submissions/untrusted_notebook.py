"""Reading a file that somebody handed in, without trusting a byte of it.

Size and nesting are bounded before anything is parsed. The result holds cells, their types, sources, ids, saved outputs
that are texts or pictures, and nbgrader's metadata, each of the type that it should have, and nothing else: nbgrader
shows notebooks as live pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from html import escape

from nbformat.notebooknode import NotebookNode

from helpers.course import LIMITS
from helpers.notebooks import grade_id, nbgrader_data
from helpers.text import nesting, plain, sanitized

LARGEST_FILE = 20 << 20  # bytes; a lesson with all its figures stays below one million
DEEPEST = 100  # brackets within brackets; a notebook of figures and tables needs about ten
MOST_MARKS = 3_000_000  # brackets and commas: how many values a file can hold
MOST_CELLS = 2_000
LONGEST_CELL = 1 << 20  # characters
LONGEST_NAME = 100  # characters, of an exception
MOST_LINES = 200  # of a traceback

FORMATS = {b"PK\x03\x04": "a zip file", b"%PDF": "a PDF", b"\x89PNG": "a picture", b"\x1f\x8b": "a compressed file"}
PICTURES = ("image/png", "image/jpeg")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
SAVED = "Saved by the student; the grader did not run this cell.\n"


class UnreadableFile(Exception):
    """A file that is no notebook. The text completes "The file ..."."""


class UnopenedFile(UnreadableFile):
    """A file that this machine could not open: it says nothing about what was handed in, and earns no mark."""


@dataclass
class FlaggedNotebook:
    """A notebook whose every field has the type that it should have."""

    notebook: NotebookNode
    flags: list[str] = field(default_factory=list)


@dataclass
class OutputBudget:
    """How much a notebook's outputs may still take up."""

    characters: int = LIMITS.output_bytes
    outputs: int = LIMITS.outputs

    def take(self, output: NotebookNode) -> bool:
        """Use up what an output needs, if there is enough."""
        size = len(json.dumps(output, ensure_ascii=False))
        if self.outputs < 1 or self.characters < size:
            return False
        self.outputs, self.characters = self.outputs - 1, self.characters - size
        return True


def screen(data: bytes) -> FlaggedNotebook:
    """The notebook in these bytes. Raises UnreadableFile with what is wrong with them."""
    text = _text_of(data)
    cut_off = _scan(text.encode())
    try:
        document = json.loads(text)
    except json.JSONDecodeError as problem:
        if cut_off:
            raise UnreadableFile("is cut off: it ends in the middle") from None
        raise UnreadableFile(f"is not a notebook: line {problem.lineno} is no JSON") from None
    except (ValueError, RecursionError):
        raise UnreadableFile("is not a notebook: it cannot be parsed") from None
    return _notebook(document)


def _text_of(data: bytes) -> str:
    if len(data) > LARGEST_FILE:
        raise UnreadableFile(f"is larger than {LARGEST_FILE >> 20} MB")
    if not data.strip():
        raise UnreadableFile("is empty")
    for start, name in FORMATS.items():
        if data.startswith(start):
            raise UnreadableFile(f"is {name}, not a notebook")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"  # as PowerShell's > writes it
    try:
        text = data.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError:
        raise UnreadableFile("is not text") from None
    if "\0" in text:
        raise UnreadableFile("is not text")
    if text.lstrip()[:1] == "<":
        raise UnreadableFile("is a web page, not a notebook")
    return text


def _scan(data: bytes) -> bool:
    """Are brackets left open at the end? Raises UnreadableFile where there is too much to parse."""
    depth = 0
    for count, depth in enumerate(nesting(data)):
        if depth > DEEPEST:
            raise UnreadableFile(f"nests its brackets more than {DEEPEST} deep")
        if count > MOST_MARKS:
            raise UnreadableFile(f"holds more than {MOST_MARKS:,} values")
    return depth > 0


def _notebook(document: object) -> FlaggedNotebook:
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise UnreadableFile("is JSON, but not a notebook")
    flags, budget = [], OutputBudget()
    if len(cells) > MOST_CELLS:
        flags.append(f"only the first {MOST_CELLS:,} of its {len(cells):,} cells were read")
    readable = [cell for value in cells[:MOST_CELLS] if (cell := _cell(value, budget)) is not None]
    if not readable:
        raise UnreadableFile("is a notebook without cells")
    if dropped := min(len(cells), MOST_CELLS) - len(readable):
        flags.append(f"{dropped} of its cells could not be read")
    notebook = NotebookNode(cells=readable, metadata=NotebookNode(), nbformat=4, nbformat_minor=5)
    return FlaggedNotebook(notebook, flags)


def _cell(value: object, budget: OutputBudget) -> NotebookNode | None:
    if not isinstance(value, dict):
        return None
    source = _text(value.get("source", ""))
    if source is None or len(source) > LONGEST_CELL:
        return None
    cell_type = value.get("cell_type")
    cell_type = cell_type if cell_type in ("code", "markdown", "raw") else "raw"
    cell = NotebookNode(cell_type=cell_type, source=_clean(source), metadata=_metadata(value))
    if isinstance(value.get("id"), str):
        cell.id = _clean(value["id"])[:64]
    if cell_type == "code":
        cell.outputs, cell.execution_count = saved_outputs(value.get("outputs"), budget), None
    return cell


def _metadata(cell: dict) -> NotebookNode:
    """What `restore` looks at: the grade id and the points."""
    metadata = NotebookNode()
    if name := grade_id(cell):
        metadata.nbgrader = NotebookNode(grade_id=_clean(name)[:200])
        points = nbgrader_data(cell).get("points")
        if isinstance(points, (int, float)) and not isinstance(points, bool):
            metadata.nbgrader.points = points
    return metadata


def saved_outputs(value: object, budget: OutputBudget) -> list[NotebookNode]:
    """The outputs of one cell that are whole and within the budget, below a line that says whose they are."""
    values = value if isinstance(value, list) else []
    outputs = [
        output for output in map(_output, values[: budget.outputs]) if output is not None and budget.take(output)
    ]
    return [NotebookNode(output_type="stream", name="stdout", text=SAVED), *outputs] if outputs else []


def _output(value: object) -> NotebookNode | None:
    if not isinstance(value, dict):
        return None
    output_type = value.get("output_type")
    if output_type == "stream" and value.get("name") in ("stdout", "stderr"):
        text = sanitized(_text(value.get("text")) or "").removeprefix(SAVED)  # it may have been graded before
        return NotebookNode(output_type=output_type, name=value["name"], text=text) if text else None
    if output_type == "error":
        lines = value.get("traceback")
        lines = lines[:MOST_LINES] if isinstance(lines, list) else []
        return NotebookNode(
            output_type=output_type,
            ename=plain(value.get("ename", ""), LONGEST_NAME),
            evalue=plain(value.get("evalue", ""), 2000, lines=True),
            traceback=[sanitized(line) for line in lines if isinstance(line, str)],
        )
    if output_type in ("display_data", "execute_result") and isinstance(value.get("data"), dict):
        kinds = ("text/plain", *PICTURES)
        data = {kind: content for kind in kinds if (content := _static(kind, value["data"].get(kind)))}
        count = {"execution_count": None} if output_type == "execute_result" else {}
        return NotebookNode(output_type=output_type, data=data, metadata=NotebookNode(), **count) if data else None
    return None


def _static(kind: str, value: object) -> str:
    """The text or the picture in an output; "" where there is none."""
    content = sanitized(_text(value) or "")
    return content if kind == "text/plain" or BASE64.fullmatch(content) else ""


def show_texts_as_typed(notebook: NotebookNode, released: Collection[str]) -> None:
    """Have a page show what a student wrote into text cells as it was typed, and render none of it.

    released: the text of the released lesson's cells, which stays as it is.
    """
    for cell in notebook.cells:
        if cell.cell_type == "raw" and cell.source not in released:
            cell.source = escape(cell.source, quote=False)
        elif cell.cell_type == "markdown" and cell.source not in released:
            longest = max(map(len, re.findall(r"`+", cell.source)), default=0)
            fence = "`" * max(3, longest + 1)  # that nothing within can end
            cell.source = f"{fence}text\n{cell.source}\n{fence}"


def _text(value: object) -> str | None:
    """A text, which a notebook's file keeps as one string or as a list of lines; None if it is neither."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else None


def _clean(text: str) -> str:
    """Without halves of characters, which no file can hold, and zeros, which no database and no parser takes."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
