"""The keeper: makes namespaces for one submission, measures what it uses, and ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time

from . import linux
from .answering import be_init
from .limits import HEARTBEAT, end, family_of, over_limit, processor_seconds


def enter_namespaces() -> None:
    """A user of its own, and for what is forked next: processes, network and shared memory of its own."""
    user, group = os.geteuid(), os.getegid()
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # without it /proc/self belongs to root, and the maps cannot be written
    for_itself = linux.CLONE_NEWUSER | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    linux.unshare(for_itself | linux.CLONE_NEWPID)
    for name, text in {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    linux.prctl(linux.PR_SET_DUMPABLE, 1)  # new capabilities took it away, and memory is counted through /proc


def keep(control: int, orders: int, about: dict) -> None:
    """Fork the submission's init, end it at any byte on `orders` or at their end, and report why it ended."""
    channel = socket.socket(fileno=orders)
    try:
        os.setsid()
        if about["nested"]:
            enter_namespaces()
        child = os.fork()
        if child == 0:
            channel.close()
            be_init(control, about)
        os.close(control)
        report = _watch(child, channel, about["limits"], own_network=about["walls"])
    except BaseException as problem:
        report = {"failed": f"{type(problem).__name__}: {problem}"}
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps(report).encode() + b"\n")
    os._exit(0)


def _watch(child: int, channel: socket.socket, limits: dict, own_network: bool) -> dict:
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    with contextlib.suppress(OSError, AttributeError):
        poll.register(os.pidfd_open(child), select.POLLIN)
    why, look, used = "", time.monotonic(), 0.0
    while True:
        poll.poll(HEARTBEAT * 1000)
        done, _ = os.waitpid(child, os.WNOHANG)
        if done:
            return {"why": why, "processor_seconds": used}
        with contextlib.suppress(BlockingIOError):
            channel.recv(1, socket.MSG_DONTWAIT)
            end(child)
        if not why and time.monotonic() > look + HEARTBEAT:
            family = family_of(child)
            used = max(used, sum(map(processor_seconds, family)))
            why = over_limit(family, used, limits, own_network)
            if why:
                end(child)
            look = time.monotonic()
