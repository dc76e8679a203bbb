"""The grader's side of the wire: what the process of one submission says, read as data with bounds.

The student's code holds the other end. It may send anything, at any time, as much as it likes: a line is parsed only
once its length and its shape are known to be harmless, and who sends more than any honest submission is ended.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from helpers.grading.harmless import plain

LONGEST_LINE = 12 << 20  # bytes; the largest answer there may be and what is around it
MOST_VALUES = 10_000  # brackets, commas and strings of one message
DEEPEST = 30  # brackets within brackets
CELL_BYTES, NOTEBOOK_BYTES = 16 << 20, 64 << 20  # of all messages; nothing honest comes near
CELL_MESSAGES = 20_000

# A string as one piece (possessive: nothing is tried twice), or one bracket or comma
MARKS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]},]', re.DOTALL)

DONE, LATE, DEAD, FLOODED = "done", "late", "dead", "flooded"
TOO_LONG, BROKEN = {"type": "too long"}, {"type": "broken"}


@dataclass
class Meter:
    """How much has been received, of a cell and of a notebook, whichever of its processes sent it."""

    cell: int = 0
    messages: int = 0
    notebook: int = 0

    def begin(self) -> None:
        """Another cell."""
        self.cell = self.messages = 0

    def over(self) -> str:
        """What there is too much of, in words, or nothing."""
        if self.notebook > NOTEBOOK_BYTES:
            return f"the notebook sent the grader more than {NOTEBOOK_BYTES >> 20} MB"
        if self.cell > CELL_BYTES:
            return f"it sent the grader more than {CELL_BYTES >> 20} MB"
        return f"it sent the grader more than {CELL_MESSAGES:,} messages" if self.messages > CELL_MESSAGES else ""


class Conversation:
    """With the process of one submission. Everything it says may be a lie; only its size and form are trusted."""

    def __init__(self, channel: socket.socket, orders: socket.socket, meter: Meter, at_end: Callable = lambda: None):
        self._channel, self._orders, self._meter, self._at_end = channel, orders, meter, at_end
        self._lines: deque[bytes] = deque()  # received whole, not read yet
        self._begun: list[bytes] = []  # the pieces of a line that is not whole
        self._length, self._skipping = 0, False
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)

    def ask(self, place: int, source: str) -> None:
        self._meter.begin()
        with contextlib.suppress(OSError):
            self._channel.settimeout(5)
            self._channel.sendall(json.dumps({"cell": place, "source": source}).encode() + b"\n")

    def listen(self, place: int, until: float, collect: Callable[[dict], None]) -> str:
        """Hand each message about this cell to `collect` until it is DONE, LATE, DEAD or FLOODED."""
        while True:
            while self._lines:
                self._meter.messages += 1
                message = parse(self._lines.popleft())
                collect(message)
                if message.get("type") == "done" and message.get("cell") == place:
                    return DONE
                if self._meter.over():
                    return FLOODED
            if not self._poll.poll(max(0, until - time.monotonic()) * 1000):
                return LATE
            if not self._receive():
                return DEAD
            if self._meter.over():
                return FLOODED
            if time.monotonic() > until:
                return LATE

    def _receive(self) -> bool:
        """Take what has arrived, and cut it into lines. Returns False when there will be no more."""
        try:
            more = self._channel.recv(1 << 18)
        except OSError:
            more = b""
        self._meter.cell += len(more)
        self._meter.notebook += len(more)
        *whole, rest = more.split(b"\n")
        for piece in whole:
            self._append(piece)
            self._lines.append(b"too long" if self._skipping else b"".join(self._begun))
            self._begun, self._length, self._skipping = [], 0, False
        self._append(rest)
        return bool(more)

    def _append(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length > LONGEST_LINE:
            self._begun, self._skipping = [], True
        else:
            self._begun.append(piece)

    def interrupt(self) -> None:
        with contextlib.suppress(OSError):
            self._orders.send(b"i")

    def end(self) -> str:
        """Kill what is left of it, and say why it died if it did not do so by our order. Once is enough."""
        if self._orders.fileno() < 0:
            return ""
        with contextlib.suppress(OSError):
            self._orders.send(b"k")
        report = self._report()
        self._channel.close(), self._orders.close()
        self._at_end()
        return report

    def leave(self) -> None:
        """Have it killed, and do not wait for it: to take its namespaces down takes the system a while."""
        self._channel.close(), self._orders.close()
        self._at_end()

    def _report(self) -> str:
        self._orders.settimeout(10)
        line = b""
        with contextlib.suppress(OSError):
            while not line.endswith(b"\n") and len(line) < 4096 and (more := self._orders.recv(1000)):
                line += more
        with contextlib.suppress(ValueError):
            report = json.loads(line)
            status = report.get("status")
            if report.get("why") or not isinstance(status, int):
                return plain(report.get("why"))
            if status == -signal.SIGXCPU:
                return "it used up its processor time"
            return f"it was ended by {signal.Signals(-status).name}" if status < 0 else "it ended the Python process"
        return "it ended the Python process"


def parse(line: bytes) -> dict:
    """The message that a line holds, or one that says that it holds none."""
    if line == b"too long":
        return TOO_LONG
    try:
        if not _is_simple(line):
            return BROKEN
        message = json.loads(line, parse_int=_int, parse_float=_float, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return BROKEN
    return message if isinstance(message, dict) else BROKEN


def _is_simple(line: bytes) -> bool:
    """Does it hold few values, not deeply nested? An honest message is a handful of long strings."""
    depth = 0
    for count, mark in enumerate(MARKS.finditer(line)):
        sign = line[mark.start()]
        depth += (sign in b"[{") - (sign in b"]}")
        if depth > DEEPEST or count > MOST_VALUES:
            return False
    return True


def _int(digits: str) -> int | None:
    return int(digits) if len(digits) < 16 else None


def _float(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None
