"""What a student saved under a cell, as data whose every field has the type that it should have.

No grader made these outputs: an exam runs no notebook. They are kept for whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nbformat.notebooknode import NotebookNode

from helpers.course import LIMITS
from helpers.grading.sanitize import harmless, plain

SAVED = "Saved by the student; the grader did not run this cell.\n"
LONGEST_NAME = 100
MOST_LINES, MOST_KINDS = 200, 20  # of a traceback; of MIME types in which one output is given


@dataclass
class Room:
    """What a notebook's outputs may still take."""

    characters: int = LIMITS.output_bytes
    outputs: int = LIMITS.outputs

    def fits(self, output: NotebookNode) -> bool:
        """Take the room for an output, if there is any."""
        size = sum(len(text) for text in _texts(output))
        if self.outputs < 1 or self.characters < size:
            return False
        self.outputs, self.characters = self.outputs - 1, self.characters - size
        return True


def saved_outputs(outputs: object, room: Room) -> list[NotebookNode]:
    """The outputs of one cell that are whole and fit, with a line before them that says whose they are."""
    told = outputs if isinstance(outputs, list) else []
    kept = [each for each in map(_output, told[: room.outputs]) if each is not None and room.fits(each)]
    return [NotebookNode(output_type="stream", name="stdout", text=SAVED), *kept] if kept else []


def _output(told: object) -> NotebookNode | None:
    if not isinstance(told, dict):
        return None
    kind = told.get("output_type")
    if kind == "stream" and told.get("name") in ("stdout", "stderr"):
        text = _text(told.get("text"))
        text = harmless(text).removeprefix(SAVED)  # it was graded before, and handed in as it was
        return NotebookNode(output_type=kind, name=told["name"], text=text) if text else None
    if kind == "error":
        lines = told.get("traceback")
        lines = (
            [harmless(line) for line in lines[:MOST_LINES] if isinstance(line, str)] if isinstance(lines, list) else []
        )
        name, value = plain(told.get("ename", ""), LONGEST_NAME), plain(told.get("evalue", ""), 2000, lines=True)
        return NotebookNode(output_type=kind, ename=name, evalue=value, traceback=lines)
    if kind in ("display_data", "execute_result") and isinstance(told.get("data"), dict):
        texts = {plain(name, LONGEST_NAME): _text(text) for name, text in list(told["data"].items())[:MOST_KINDS]}
        data = NotebookNode({name: harmless(text) for name, text in texts.items() if text})
        more = {"execution_count": None} if kind == "execute_result" else {}
        return NotebookNode(output_type=kind, data=data, metadata=NotebookNode(), **more) if data else None
    return None


def _text(told: object) -> str:
    """A notebook's file keeps a text as one string, or as a list of lines."""
    if isinstance(told, list):
        return "".join(line for line in told if isinstance(line, str))
    return told if isinstance(told, str) else ""


def _texts(output: NotebookNode) -> Iterator[str]:
    yield output.get("text", "")
    yield output.get("evalue", "")
    yield from output.get("traceback", [])
    yield from output.get("data", {}).values()
