"""The process that has imported everything, and is forked for each submission: started, asked and ended from here.

Needs none of the libraries that take long to import, so that it can be started before the grader has imported its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.course import Limits
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.bubblewrap import BUBBLEWRAP, SandboxFailed
from helpers.notebooks import grade_id, text_of

START = 120.0  # seconds in which the imports have to be done
LEAVE = 2.0  # seconds in which it has to end once it was told to
MOST_CODE = 50_000  # bytes of released code that are read before forking; an argument of a command has room for 128 kB
NEEDED = """
import numpy.ctypeslib, torch
from helpers.checking import cell_scan, isolation
from helpers.lesson import start
"""
PREPARED = """
from helpers.checking import isolation
from helpers.exercises import load_lesson
isolation.prepare(load_lesson({!r}), {!r})
"""


class ForkServer:
    """See `inside.__main__.serve`. Returns at once; `ready` waits until the imports are done. lesson: NN_topic."""

    def __init__(self, lesson: str, isolation: str, limits: Limits):
        self._control, theirs = socket.socketpair()
        sandboxed = isolation == BUBBLEWRAP
        self._temporary = None if sandboxed else tempfile.TemporaryDirectory(prefix="grading-")
        self._folder = self._temporary.name if self._temporary else bubblewrap.WORK
        options = bubblewrap.sandboxed_options(
            limits,
            needed=NEEDED,
            prepared=PREPARED.format(lesson, released_code(lesson)),
            nested=sandboxed,
            sandboxed=sandboxed,
            folder=self._folder,
        )
        self._process = subprocess.Popen(
            **self._command(sandboxed, options, str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("COURSE_SANDBOX_TALKS") else subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._about: dict | None = None
        self._shared = False

    def _command(self, sandboxed: bool, options: dict, channel: str) -> dict:
        python = [sys.executable, "-P", "-m"]
        if sandboxed:
            command = [*python, "inside", "serve", json.dumps(options), channel]
            return {"args": bubblewrap.wrapped(command)}
        command = [*python, "helpers.grading.sandbox.inside", "serve", json.dumps({**options, "user": None}), channel]
        return {"args": command, "env": {**bubblewrap.defaults(there=False), "HOME": self._folder}}

    def alive(self) -> bool:
        return self._process.poll() is None

    def ready(self) -> dict:
        """What it said when its imports were done; {} where it died before, or took too long.

        missing: why they failed, or "". can_be_shared: whether it may be forked for several submissions.
        """
        if self._about is None:
            self._control.settimeout(START)
            line = b""
            with contextlib.suppress(OSError):
                while not line.endswith(b"\n") and (more := self._control.recv(1000)):
                    line += more
            self._about = json.loads(line) if line.endswith(b"\n") else {}
        return self._about

    def fork(self, processor_seconds: float, alone: bool = False) -> tuple[socket.socket, socket.socket]:
        """A fork for a submission: the sockets of its init and of its keeper (see `protocol.Conversation`).

        processor_seconds: what it may use. alone: there will be no other fork. Raises SandboxFailed.
        """
        about = self.ready()
        if not about or about["missing"]:
            self.close()
            raise SandboxFailed(
                f"the course cannot be imported in the sandbox: {about['missing']}"
                if about
                else "the sandbox could not be started"
            )
        self._shared = not alone
        ours, control = socket.socketpair()
        orders, theirs = socket.socketpair()
        order = json.dumps(processor_seconds).encode()
        with contextlib.suppress(OSError):  # a server that died shows as a conversation that ends at once
            socket.send_fds(self._control, [order], [control.fileno(), theirs.fileno()])
        control.close()
        theirs.close()
        return ours, orders

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # so that nobody waits for it in `ready`
        self._control.close()  # at which it ends by itself, unless somebody keeps it
        try:
            self._process.wait(timeout=LEAVE if self._shared else 0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.cleanup()


def released_code(lesson: str) -> list[tuple[str, str]]:
    """The grade ids, or "", and texts of a released lesson's first code cells, as many as an argument has room for.

    None where they cannot be read.
    """
    try:
        notebook = json.loads(Path("notebooks", lesson, f"{lesson}.ipynb").read_text(encoding="utf-8"))
        code = [(grade_id(cell), text_of(cell)) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    while len(json.dumps(code)) > MOST_CODE:
        code.pop()  # the setup cell is the first
    return code
