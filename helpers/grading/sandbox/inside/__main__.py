"""What runs inside the sandbox: a process that has imported everything, and forks of it.

    fork server   imports torch and the lesson's probes, runs no student's code, and forks for each submission
      keeper      makes namespaces for one submission, counts its memory, processes and processor time, and ends it
        init      process 1 of those namespaces; forks for each exercise, and ends all that the fork leaves behind
          answer  shuts the door behind itself, runs one exercise's answer, sends one line, and ends

Only the last meets a student's code. It sees no process but its own, no folder that another exercise could have written
to, no network, and holds no file descriptor but the one that its line leaves by. What it says is never believed: the
grader reads it as data with bounds (see `protocol`).

This package needs no other: inside the sandbox `helpers.grading` does not exist.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import socket
import sys

from . import linux
from .answering import make_own_folders
from .keeper import enter_namespaces, keep
from .limits import set_limits


def serve(channel: int, about: dict) -> None:
    """Import, say so, then fork a keeper for each pair of sockets that arrives. Ends when the grader does.

    With the sockets comes, as JSON, how many seconds of processor time the submission may use.
    """
    if about["user"] is not None and os.geteuid() == 0:
        linux.become(about["user"])
        assert __spec__ is not None and __spec__.parent is not None, "this package is run with -m"
        # A process that gave up root may not touch its own /proc until it executes something
        os.execv(sys.executable, [sys.executable, "-P", "-m", __spec__.parent, *sys.argv[1:]])
    control = socket.socket(fileno=channel)
    missing = prepare(about)
    nested = about["walls"] and _can_nest(about)
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    # Forks could reach one another without nested namespaces, and a thread of the imports would be lost in them
    can_be_shared = nested and len(os.listdir("/proc/self/task")) == 1
    ready = {"can_be_shared": can_be_shared, "missing": missing}
    control.sendall(json.dumps(ready).encode() + b"\n")
    while True:
        order, sockets, _, _ = socket.recv_fds(control, 1 << 16, 2)
        _bury()
        if not order:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            limits = {**about["limits"], "processor_seconds": json.loads(order)}
            init_control, orders = sockets
            keep(init_control, orders, {**about, "nested": nested, "limits": limits})
        for number in sockets:
            os.close(number)


def prepare(about: dict) -> str:
    """Import what all answers of the lesson have in common. Returns why the course cannot be imported here, or ""."""
    gc.disable()  # modules are no garbage, and to look through them takes a second
    missing = ""
    try:
        import torch

        from helpers.checking.run import isolation
        from helpers.exercises import load_lesson

        for name in ("numpy.ctypeslib", "helpers.lesson"):  # which answers and setup cells import
            importlib.import_module(name)
    except BaseException as problem:
        missing = f"the course cannot be imported in the sandbox: {type(problem).__name__}: {problem}"[:500]
    else:
        with contextlib.suppress(Exception):
            _warm_torch(torch)
            isolation.prepare(load_lesson(about["lesson"]), about["released"])
    linux.filter_of((*linux.REFUSED.values(), *linux.STARTING.values()))  # which is remembered
    gc.freeze()  # a collection in a fork would touch, and so copy, all that it shares with its parent
    gc.enable()
    with contextlib.suppress(OSError, AttributeError):
        linux.use_large_pages()
    return missing


def _warm_torch(torch) -> None:
    """Have torch set up what it puts off.

    Forward passes on small tensors only. A backward pass, or a thread, would spoil autograd for the forks.
    """
    torch.backends.cpu.get_cpu_capability()
    x = torch.ones(2, 2)
    (x @ x.mT).softmax(-1).masked_fill(x > 0, 0.0).mean()
    with torch.no_grad():
        torch.nn.Linear(2, 2)(x)
        torch.nn.functional.cross_entropy(x, x.long()[0])


def _can_nest(about: dict) -> bool:
    """May this process make namespaces, and mount in them?"""
    child = os.fork()
    if child == 0:
        try:
            enter_namespaces()
            if os.fork() == 0:  # the namespace of processes begins with a child
                make_own_folders(about)
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return status == 0


def _bury() -> None:
    """Take note of the keepers that have ended, so that their processor time is counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def become_program(about: dict, command: list[str]) -> None:
    """Give up what a program does not need that runs behind the walls by itself, then become it."""
    if about["user"] is not None and os.geteuid() == 0:
        linux.become(about["user"])
    set_limits(about["limits"], 1 << 30)  # which the imports will take
    linux.refuse_system_calls()
    os.execv(command[0], command)


if __name__ == "__main__":
    task, about, *rest = sys.argv[1:]
    if task == "serve":
        serve(int(rest[0]), json.loads(about))
    else:
        become_program(json.loads(about), rest)
