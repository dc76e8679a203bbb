"""The grader's side of the wire: what the processes of one submission say, read as data with bounds.

A student's code holds the other end. It may send anything, at any time, as much as it likes: a line is parsed only once
its length and its shape are known to be harmless, and two lines are all that is read.
"""

from __future__ import annotations

import contextlib
import json
import math
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from helpers.grading.sanitize import nesting

LONGEST_LINE = 12 << 20  # bytes; the largest answer there may be and what is around it
MOST_VALUES = 10_000  # brackets, commas and strings of one message
DEEPEST = 30  # brackets within brackets
LEAVE = 0.5  # seconds that a process has to end after it has said what it was asked for
PATIENCE = 10.0  # seconds that our own processes have to say how another ended

DONE, LATE, DEAD, FLOODED = "done", "late", "dead", "flooded"


@dataclass(frozen=True)
class Reply:
    """What came of one request. state: one of the words above. why: how the process ended.

    message: what was sent. second: what was sent after that, where a second message was asked for.
    """

    state: str
    message: dict = field(default_factory=dict)
    second: dict = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class End:
    """How a submission's processes ended. why: the limit that they exceeded, in words. failed: the sandbox's own error.

    processor_seconds: what they used, all together.
    """

    why: str = ""
    failed: str = ""
    processor_seconds: float = 0.0


class Conversation:
    """With the init of one submission, which forks a process for each request. orders: its keeper's socket."""

    def __init__(self, control: socket.socket, orders: socket.socket, at_end: Callable = lambda: None):
        self._control, self._orders, self._at_end = control, orders, at_end
        self.alive = True

    def ask(
        self, request: dict, until: float, bounded: bool = True, again: Callable[[dict], list] = lambda message: []
    ) -> Reply:
        """Have one process carry out a request, and return what it said. until: by `time.monotonic`.

        bounded: a student's code may have written the reply; without it, only code of ours has. again: what to ask for
        in a second message, given the first; the process waits for that list, or for the end of the connection.
        """
        ours, theirs = socket.socketpair()
        state, message, last, second = DEAD, None, DEAD, b""
        with ours, contextlib.suppress(OSError):
            with theirs:
                socket.send_fds(self._control, [b"x"], [theirs.fileno()])
            ours.settimeout(PATIENCE)
            ours.sendall(json.dumps(request).encode() + b"\n")
            lines = _lines(ours, until)
            last, line = state, _ = next(lines)
            if state == DONE:
                message = parse(line) if bounded else json.loads(line)
                state = FLOODED if message is None else DONE
            if message is not None and (wanted := again(message)):
                ours.sendall(json.dumps(wanted).encode() + b"\n")
                last, second = next(lines)
        why = self._how_it_ended(at_once=last in (LATE, FLOODED))
        return Reply(state, message or {}, parse(second) or {}, why)

    def _how_it_ended(self, at_once: bool) -> str:
        """Init's word on how the process ended, which is made to end if it does not. Without one, init has ended."""
        state, line = (LATE, b"") if at_once else self._status(LEAVE)
        if state == LATE:
            with contextlib.suppress(OSError):
                self._control.send(b"k")
            state, line = self._status(PATIENCE)
        if state != DONE:
            self.alive = False
            return ""
        status = json.loads(line)["status"]
        if status == -signal.SIGXCPU:
            return "it used up its processor time"
        return f"it was ended by {signal.Signals(-status).name}" if status < 0 else "it ended the Python process"

    def _status(self, patience: float) -> tuple[str, bytes]:
        return next(_lines(self._control, time.monotonic() + patience, longest=1000))

    def end(self) -> End:
        """End what is left, and say how it ended."""
        with contextlib.suppress(OSError):
            self._orders.send(b"k")
        state, line = next(_lines(self._orders, time.monotonic() + PATIENCE, longest=4096))
        self.leave()
        return End(**json.loads(line)) if state == DONE else End()

    def stop(self) -> None:
        """Have it ended, from another thread: whoever waits here sees at once that it is over."""
        for end in (self._control, self._orders):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def leave(self) -> None:
        """Have it ended, and do not wait: to take its namespaces down takes the system a while."""
        self.alive = False
        self._control.close()
        self._orders.close()
        self._at_end()


def _lines(connection: socket.socket, until: float, longest: int = LONGEST_LINE) -> Iterator[tuple[str, bytes]]:
    """The lines that arrive, each beside DONE; and at last LATE, DEAD or FLOODED, for what does not arrive."""
    pieces: list[bytes] = []
    length = 0
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    while True:
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            yield LATE, b""
            return
        try:
            more = connection.recv(1 << 18)
        except OSError:
            more = b""
        if not more:
            yield DEAD, b""
            return
        for place, piece in enumerate(more.split(b"\n")):
            if place:
                yield DONE, b"".join(pieces)
                pieces, length = [], 0
            pieces.append(piece)
            length += len(piece)
            if length > longest:
                yield FLOODED, b""
                return


def parse(line: bytes) -> dict | None:
    """The message that a line holds; None where it holds none, or more than an honest one."""
    try:
        # An honest message is a handful of long strings
        if any(depth > DEEPEST or count > MOST_VALUES for count, depth in enumerate(nesting(line))):
            return None
        message = json.loads(line, parse_int=_int, parse_float=_float, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _int(digits: str) -> int | None:
    return int(digits) if len(digits) < 16 else None


def _float(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None
