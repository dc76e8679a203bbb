"""From the messages of a submission to the outputs of its cells, within what a notebook may hold."""

from __future__ import annotations

from dataclasses import dataclass, field

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from helpers.checking import answers
from helpers.course import Limits
from helpers.grading.harmless import harmless, plain

MOST_ANSWERS = 100  # of one check cell that are counted; one is expected
LONGEST_NAME = 100
MOST_LINES, MOST_KINDS = 200, 20  # of a traceback; of MIME types in which one output is given


@dataclass
class Room:
    """What a notebook's outputs may still take: characters, number, and bytes of answers. shown: by display id."""

    characters: int
    outputs: int
    answers: int
    shown: dict[str, NotebookNode] = field(default_factory=dict)

    @classmethod
    def within(cls, limits: Limits) -> Room:
        return cls(limits.output_bytes, limits.outputs, limits.answers_bytes)


class Collector:
    """Makes a cell's outputs of messages, as a notebook has them. What is malformed, or too much, is left out.

    cut: something was left out because there was too much. broken: something came that is no output.
    too_long: a message came that is longer than any can be.
    """

    def __init__(self, cell: NotebookNode, room: Room):
        self._cell, self._room, self._clear = cell, room, False
        self._check, self._answers = is_grade(cell), 0
        self.cut = self.broken = self.too_long = False

    def __call__(self, message: dict) -> None:
        match message.get("type"):
            case "cut":
                self.cut = True
            case "too long":
                self.too_long = True
                self._answer(None, 0)  # as where an answer can be read, and then not be judged
            case "clear_output":
                self._clear = True
                if not message.get("wait"):
                    self._wipe()
            case "done":
                count = message.get("count")
                plausible = type(count) is int and 0 <= count < 10**6
                self._cell.execution_count = count if plausible else None
            case "display_data" | "execute_result" if _is_answer(message):
                answer = _tidy(message["data"][answers.MIME])
                self._answer(answer, _weight(answer))
            case "update_display_data":
                self._update(message)
            case "stream":
                self._stream(message.get("name"), message.get("text"))
            case kind:
                output = _output(kind, message)
                self.broken = self.broken or output is None
                if output is not None and self._fits(_size(output)):
                    self._add(output, message)

    def finish(self) -> None:
        """The cell has come to its end: what was overwritten within a line is not kept."""
        for output in self._cell.outputs:
            if output.output_type == "stream" and "\r" in output.text:
                output.text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in output.text.split("\n"))
            if output.output_type == "stream":
                output.text = harmless(output.text)

    def _wipe(self) -> None:
        if self._clear:
            self._cell.outputs = [o for o in self._cell.outputs if answers.MIME in o.get("data", {})]
            self._clear = False

    def _fits(self, size: int) -> bool:
        """Take the room for an output, if there is any."""
        self._room.outputs -= 1
        self._room.characters -= size
        fits = self._room.outputs >= 0 and self._room.characters >= 0
        self.cut = self.cut or not fits
        return fits

    def _stream(self, name: object, text: object) -> None:
        if name not in ("stdout", "stderr") or not isinstance(text, str):
            self.broken = True
            return
        if len(text) > self._room.characters:
            text, self.cut = text[: max(0, self._room.characters)], True
        if not text:
            return
        self._room.characters -= len(text)
        self._wipe()
        last = self._cell.outputs[-1] if self._cell.outputs else None
        if last is not None and last.output_type == "stream" and last.name == name:
            last.text += text
        elif self._fits(0):
            self._cell.outputs.append(NotebookNode(output_type="stream", name=name, text=text))

    def _add(self, output: NotebookNode, message: dict) -> None:
        self._wipe()
        self._cell.outputs.append(output)
        known_by = message.get("display_id")
        if isinstance(known_by, str) and len(known_by) <= LONGEST_NAME:
            self._room.shown[known_by] = output

    def _update(self, message: dict) -> None:
        """What was displayed under a name is displayed anew, in the place where it stands."""
        output, shown = _output("display_data", message), self._room.shown.get(message.get("display_id") or "")
        if output is None:
            self.broken = True
        elif shown is not None and self._fits(_size(output)):
            shown.data = output.data

    def _answer(self, value: object, size: int) -> None:
        """Answers are for check cells, one each; of a second one it is enough to know that it came."""
        self._answers += 1
        if not self._check or self._answers > MOST_ANSWERS:
            return
        self._room.answers -= size
        if self._answers > 1 or self._room.answers < 0:
            value = None
        self.cut = self.cut or self._room.answers < 0
        self._cell.outputs.append(
            nbformat.from_dict({"output_type": "display_data", "data": {answers.MIME: value}, "metadata": {}})
        )


def _is_answer(message: dict) -> bool:
    return isinstance(message.get("data"), dict) and answers.MIME in message["data"]


def _tidy(value: object) -> object:
    """The same, with texts that can be written to a file. Not deep: `conversation.parse` saw to that."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, dict):
        return {harmless(name): _tidy(inner) for name, inner in value.items()}
    return [_tidy(inner) for inner in value] if isinstance(value, list) else value


def _weight(value: object) -> int:
    """About how many bytes it takes."""
    if isinstance(value, dict):
        return sum(len(name) + _weight(inner) for name, inner in value.items())
    return sum(map(_weight, value)) if isinstance(value, list) else len(value) if isinstance(value, str) else 8


def _size(output: NotebookNode) -> int:
    if "data" in output:
        return sum(len(name) + len(text) for name, text in output.data.items())
    return len(output.ename) + len(output.evalue) + sum(len(line) + 1 for line in output.traceback)


def _output(kind: object, message: dict) -> NotebookNode | None:
    """The output that a message describes, or None."""
    if kind == "error":
        name, value, lines = message.get("ename"), message.get("evalue"), message.get("traceback")
        if isinstance(name, str) and isinstance(value, str) and isinstance(lines, list):
            lines = [harmless(line) for line in lines[:MOST_LINES] if isinstance(line, str)]
            name, value = plain(name, LONGEST_NAME), plain(value, 2000, lines=True)
            return NotebookNode(output_type="error", ename=name, evalue=value, traceback=lines)
    if kind in ("display_data", "execute_result"):
        data = message.get("data")
        if isinstance(data, dict):
            texts = {plain(name, LONGEST_NAME): text for name, text in data.items() if isinstance(text, str)}
            kept = NotebookNode({name: harmless(texts[name]) for name in list(texts)[:MOST_KINDS]})
            more = {"execution_count": None} if kind == "execute_result" else {}
            return NotebookNode(output_type=kind, data=kept, metadata=NotebookNode(), **more)
    return None


def error(name: str, value: str) -> NotebookNode:
    """An error output of our own."""
    return NotebookNode(output_type="error", ename=name, evalue=value, traceback=[f"{name}: {value}"])
