"""Process 1 of a submission's namespaces, and the processes that it forks, one for each exercise's answer."""

from __future__ import annotations

import base64
import contextlib
import json
import marshal
import math
import os
import random
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from . import linux
from .limits import HEARTBEAT, end, family_of, memory_in_use, set_limits

SCRATCH = "/sandbox/scratch"
SHARED_FOLDERS = ("/tmp", "/dev/shm")  # where any program expects that it may write
QUICK = 3.0  # seconds; an answer that takes longer is run with the inputs of one seed only


def be_init(control: int, about: dict) -> None:
    """Fork for each socket that arrives, end all that it leaves behind, and send its exit status. Never returns."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    linux.prctl(linux.PR_SET_DUMPABLE, 0)  # no answer may look into this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()  # kill(0) reaches a process group whole, also where it began outside the namespace
    channel = socket.socket(fileno=control)
    used = memory_in_use()  # while there is a /proc that tells
    while True:
        order, sockets, _, _ = socket.recv_fds(channel, 1, 1)
        if not order:
            os._exit(0)
        if not sockets:
            continue  # an order to end something that has ended by itself
        child = os.fork()
        if child == 0:
            answer(sockets[0], about, used)
        os.close(sockets[0])
        status = _exit_status(child, channel)
        _end_the_rest()
        if not about["nested"]:
            _empty_folders(about)
        channel.sendall(json.dumps({"status": status}).encode() + b"\n")


def _exit_status(child: int, channel: socket.socket) -> int:
    """Wait until the process ends, or end it when a byte arrives. Returns its exit status."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    pause = HEARTBEAT / 5
    with contextlib.suppress(OSError, AttributeError):
        poll.register(pidfd := os.pidfd_open(child), select.POLLIN)
        pause = 60
    try:
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            poll.poll(pause * 1000)
            with contextlib.suppress(BlockingIOError):
                if not channel.recv(1, socket.MSG_DONTWAIT):
                    os._exit(0)
                end(child)
    finally:
        with contextlib.suppress(OSError, NameError):
            os.close(pidfd)


def _end_the_rest() -> None:
    """End every process that an answer has left behind. All of them are children here, sooner or later."""
    while True:
        if os.getpid() == 1:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)  # at once, and none is forked meanwhile
        else:
            for process in family_of(os.getpid())[1:]:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _empty_folders(about: dict) -> None:
    """Where there is no mount namespace for each answer, what one has written is removed before the next."""
    for folder in {about["folder"], os.environ["HOME"], *(SHARED_FOLDERS if about["sandboxed"] else ())}:
        for entry in os.scandir(folder) if os.path.isdir(folder) else ():
            if entry.path in (*about["stays"], about["folder"], os.environ["HOME"]):
                continue
            shutil.rmtree(entry.path, ignore_errors=True)  # which follows no link
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


def answer(number: int, about: dict, used: int) -> None:
    """Shut the door, read one request, and carry it out. Never returns."""
    channel: socket.socket | None = None
    try:
        if about["nested"]:
            make_own_folders(about)
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        channel = _only_descriptor(number)
        os.chdir(about["folder"])
        set_limits(about["limits"], used)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # where the machine runs out of memory, the answer ends and not the grader
        if about["sandboxed"]:
            linux.drop_capabilities()
            linux.prctl(linux.PR_SET_DUMPABLE, 1)  # or its shared memory could not be counted
            linux.refuse_system_calls(linux.REFUSED | linux.STARTING)
            if not about["nested"]:  # a second filter: calls that either refuses are refused
                linux.refuse_system_calls(linux.REACHING)
        reseed()
        carry_out(_received(channel), partial(_say, channel))
    except BaseException as problem:  # SystemExit too: nothing may run the fork server's loop
        with contextlib.suppress(BaseException):
            if channel is not None:
                _say(channel, {"broken": f"{type(problem).__name__}: {problem}"[:500]})
    os._exit(0)


def _say(channel: socket.socket, message: dict) -> dict:
    """Send a line, and return the order that comes next; where none does, end the process."""
    channel.sendall(json.dumps(message).encode("utf-8", "replace") + b"\n")
    return _received(channel)


def carry_out(request: dict, say: Callable[[dict], dict]) -> None:
    """What is asked of one process: to read a submission, or to run one answer.

    An answer is built before anything is known of its inputs. Then each order has a ticket, which the line that follows
    it shows, so that a line that somebody else wrote is known; and it may have a seed, with the aspects to run.
    """
    from helpers.checking.read import cell_scan, program_slice
    from helpers.checking.run import answers, isolation
    from helpers.exercises import load_lesson, open_task

    lesson = load_lesson(request["lesson"])
    if request["task"] == "read":
        cells = [program_slice.CodeCell(**cell) for cell in request["cells"]]
        say({"read": asdict(cell_scan.scan_submission(lesson, cells, request["released"], request["setup"]))})
    exercise = lesson[request["exercise"]]
    if "material" in request:
        exercise = replace(exercise, material=open_task.Material.from_wire(request["material"]))
    slice_of_it = program_slice.ProgramSlice.from_json(request["program"])
    parts = {name: marshal.loads(base64.b64decode(code)) for name, code in request["parts"].items()}
    message: dict = {"built": True}

    def orders() -> Iterator[tuple[str, list[str] | None]]:
        nonlocal message
        latest = math.inf
        while order := say(message):
            message = {"ticket": order["ticket"]}
            if "seed" in order and time.monotonic() < latest:
                latest = time.monotonic() + QUICK
                yield order["seed"], order["only"]

    try:
        for result, stopped, noticed in isolation.run_watched(exercise, slice_of_it, parts, orders()):
            message |= {"answer": answers.to_wire(result), "stopped": stopped[:500], "noticed": noticed}
    except isolation.NothingDefined as problem:
        say({"undefined": str(problem)[:500]})


def _received(channel: socket.socket) -> Any:
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        more = channel.recv(1 << 16)
        if not more:
            os._exit(0)
        pieces.append(more)
    return json.loads(b"".join(pieces))


def make_own_folders(about: dict) -> None:
    """In a mount namespace of its own: empty folders where it may write, and its own processes in /proc."""
    flags = linux.MS_NOSUID | linux.MS_NODEV
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)  # what is mounted below is seen in here alone
    size = about["limits"]["file_bytes"]
    linux.mount("tmpfs", SCRATCH, "tmpfs", flags, f"size={size},nr_inodes=20000,mode=1777")
    for folder in SHARED_FOLDERS:
        _cover(folder, [path for path in about["stays"] if path.startswith(f"{folder}/")])
    try:
        linux.mount("proc", "/proc", "proc", flags | linux.MS_NOEXEC)
    except OSError:  # not allowed where parts of /proc are covered: then there is none
        flags |= linux.MS_NOEXEC | linux.MS_RDONLY
        linux.mount("tmpfs", "/proc", "tmpfs", flags, "size=0,nr_inodes=1,mode=555")
    with contextlib.suppress(OSError), open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    os.makedirs(os.environ["HOME"], exist_ok=True)
    os.makedirs(about["folder"], exist_ok=True)


def _cover(folder: str, stays: list[str]) -> None:
    """Put an empty folder in the place of this one, in which what has to stay is seen as before, read-only.

    stays: folders right below it. A course's Python lies there where somebody works under /tmp.
    """
    new, bind = SCRATCH + folder, linux.MS_BIND | linux.MS_REC
    read_only = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    os.makedirs(new)
    os.chmod(new, 0o1777)
    for path in stays:
        os.mkdir(SCRATCH + path)
        linux.mount(path, SCRATCH + path, None, bind)
        linux.mount(None, SCRATCH + path, None, read_only)
    linux.mount(new, folder, None, bind)


def _only_descriptor(number: int) -> socket.socket:
    """Keep the socket, as descriptor 3, and nothing else; 0, 1 and 2 lead nowhere."""
    os.dup2(number, 3)
    os.closerange(4, 65536)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for place in (0, 1, 2):
        os.dup2(nowhere, place)
    os.close(nowhere)
    return socket.socket(fileno=3)


def reseed() -> None:
    """Random numbers as in a process that has just started."""
    import numpy
    import torch

    random.seed()
    numpy.random.seed()
    generator = torch.default_generator
    generator.manual_seed(generator.initial_seed())
