"""The grader's side of the wire: what the processes of one submission say, read as data with bounds.

A student's code holds the other end. It may send anything, at any time, as much as it likes: a line is parsed only once
its length and its shape are known to be harmless. A line counts only as the reply to an order: it shows that order's
ticket, which nobody can know before.
"""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from helpers.text import nesting

LONGEST_LINE = 12 << 20  # bytes; the largest answer there may be and what is around it
MOST_VALUES = 10_000  # brackets, commas and strings of one message
DEEPEST = 30  # brackets within brackets
LEAVE = 0.5  # seconds that a process has to end after it has said what it was asked for
PATIENCE = 10.0  # seconds that our own processes have to say how another ended

DONE, LATE, DEAD, FLOODED, EARLY = "done", "late", "dead", "flooded", "early"


@dataclass(frozen=True)
class Reply:
    """What came of one request."""

    state: str
    """One of the words above."""
    message: dict = field(default_factory=dict)
    second: dict = field(default_factory=dict)
    """What the same answer gave with the inputs of another seed."""
    why: str = ""
    """How the process ended."""


@dataclass(frozen=True)
class End:
    """How a submission's processes ended."""

    why: str = ""
    """The limit that they exceeded, in words."""
    failed: str = ""
    """The sandbox's own error."""
    processor_seconds: float = 0.0


class Conversation:
    """With the init of one submission, which forks a process for each request. orders: its keeper's socket."""

    def __init__(self, control: socket.socket, orders: socket.socket, at_end: Callable = lambda: None):
        self._control, self._orders, self._at_end = control, orders, at_end
        self.alive = True

    def read(self, request: dict, until: float) -> Reply:
        """Have one process carry out a request, and return its line, which only code of ours has written.

        until: by `time.monotonic`.
        """
        return self._ask(request, lambda channel: channel.line(json.loads), until)

    def answer(self, request: dict, seeds: Sequence[str | int], until: float, again: Callable[[dict], list]) -> Reply:
        """Have one process run an answer with the inputs of the first seed, and return its line.

        again: the aspects to run with the second seed, given that line. A process that is no longer there after its
        line did not return from the answer: it is dead.
        """

        def talk(channel: _Channel) -> Reply:
            built = channel.line()
            if "built" not in built.message:
                return Reply(EARLY) if "answer" in built.message else built
            reply = channel.order(seed=seeds[0], only=None)
            if "answer" not in reply.message:
                return reply
            there = channel.order()
            if there.state != DONE:
                return there
            wanted = again(reply.message)
            return replace(reply, second=channel.order(seed=seeds[1], only=wanted).message) if wanted else reply

        return self._ask(request, talk, until)

    def _ask(self, request: dict, talk: Callable[[_Channel], Reply], until: float) -> Reply:
        ours, theirs = socket.socketpair()
        reply = Reply(DEAD)
        with ours, contextlib.suppress(OSError):
            with theirs:
                socket.send_fds(self._control, [b"x"], [theirs.fileno()])
            ours.settimeout(PATIENCE)
            channel = _Channel(ours, until)
            channel.send(request)
            reply = talk(channel)
        return replace(reply, why=self._how_it_ended(at_once=reply.state in (LATE, FLOODED, EARLY)))

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


class _Channel:
    """The connection to one process."""

    def __init__(self, connection: socket.socket, until: float):
        self._connection, self._lines = connection, _lines(connection, until)

    def send(self, message: dict) -> None:
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def line(self, parsed: Callable[[bytes], dict | None] | None = None) -> Reply:
        """What the next line holds."""
        state, line = next(self._lines, (DEAD, b""))
        message = (parsed or parse)(line) if state == DONE else {}
        return Reply(FLOODED) if message is None else Reply(state, message)

    def order(self, **order: object) -> Reply:
        """What follows an order. A line without its ticket, which does not say that our code broke, came before it."""
        ticket = secrets.token_hex(8)
        self.send({"ticket": ticket, **order})
        reply = self.line()
        of_another = reply.state == DONE and reply.message.get("ticket") != ticket and "broken" not in reply.message
        return Reply(EARLY) if of_another else reply


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
