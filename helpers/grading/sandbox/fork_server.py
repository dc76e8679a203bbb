"""The process that has imported everything, and is forked for each submission: started, asked and ended from here.

Needs none of the libraries that take long to import, so that it can be started before the grader has imported its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.course import Limits
from helpers.grading.sandbox import bubblewrap
from helpers.grading.sandbox.bubblewrap import BUBBLEWRAP, NONE, SandboxFailed
from helpers.notebooks import grade_id, text_of

START = 120.0  # seconds in which the imports have to be done
MOST_CODE = 50_000  # bytes of released code that are read before forking; an argument of a command has room for 128 kB


class ForkServer:
    """See `inside.__main__.serve`. Returns at once; `ready` waits until the imports are done. lesson: NN_topic."""

    def __init__(self, lesson: str, isolation: str, limits: Limits):
        self._control, theirs = socket.socketpair()
        sandboxed, walls = isolation != NONE, isolation == BUBBLEWRAP
        self._temporary = None if sandboxed else tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = self._temporary.name if self._temporary else bubblewrap.WORK
        options = bubblewrap.sandboxed_options(
            limits,
            lesson=lesson,
            released=released_code(lesson),
            sandboxed=sandboxed,
            walls=walls,
            folder=folder,
            user=bubblewrap.as_user() if sandboxed else None,
        )
        module = "inside" if sandboxed else f"{__package__}.inside"
        # Another user's folders are prepared at the paths that they have behind walls
        environment = bubblewrap.defaults(there=sandboxed) | ({} if sandboxed else {"HOME": folder})
        command = [sys.executable, "-P", "-m", module, "serve", json.dumps(options), str(theirs.fileno())]
        self._process = subprocess.Popen(
            bubblewrap.wrapped(command) if walls else command,
            env=None if walls else environment,
            cwd="/" if sandboxed else None,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=None if os.environ.get("COURSE_SANDBOX_TALKS") else subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._about: dict | None = None

    def alive(self) -> bool:
        return self._process.poll() is None

    def ready(self) -> dict:
        """What it said when its imports were done, or that it died before.

        missing: why there can be no forks, or "". can_be_shared: whether it may be forked for several submissions.
        """
        if self._about is None:
            self._control.settimeout(START)
            line = ""
            with contextlib.suppress(OSError), self._control.makefile() as lines:
                line = lines.readline()
            self._about = json.loads(line) if line.endswith("\n") else {"missing": "the sandbox could not be started"}
        return self._about

    def fork(self, processor_seconds: float) -> tuple[socket.socket, socket.socket]:
        """A fork for a submission: the sockets of its init and of its keeper (see `protocol.Conversation`).

        processor_seconds: what it may use. Raises SandboxFailed.
        """
        if missing := self.ready()["missing"]:
            self.close()
            raise SandboxFailed(missing)
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
        self._control.close()
        self._process.kill()
        self._process.wait()
        if self._temporary is not None:
            self._temporary.cleanup()


def released_code(lesson: str) -> list[tuple[str, str]]:
    """The grade ids, or "", and texts of a released lesson's first code cells, as many as an argument has room for;
    none where they cannot be read.
    """
    try:
        notebook = json.loads(Path("notebooks", lesson, f"{lesson}.ipynb").read_text(encoding="utf-8"))
        code = [(grade_id(cell), text_of(cell)) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    while len(json.dumps(code)) > MOST_CODE:
        code.pop()  # the setup cell is the first
    return code
