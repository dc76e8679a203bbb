"""The limits of a submission: set for each process, and measured for all of them together."""

from __future__ import annotations

import contextlib
import os
import resource
import signal

HEARTBEAT = 0.1  # seconds between two looks at a submission's memory and processes


def set_limits(limits: dict, used: int) -> None:
    """Resource limits of this process and its children. used: bytes in use already; the limit comes on top."""
    bounds = {
        "RLIMIT_DATA": used + limits["memory"],
        "RLIMIT_CPU": int(limits["processor_seconds"]) + 1,
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_FSIZE": limits["file_bytes"],
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": 1000,
    }
    for name, most in bounds.items():
        number = getattr(resource, name, None)
        if number is not None:
            _, hard = resource.getrlimit(number)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with contextlib.suppress(ValueError, OSError):  # macOS knows some names and refuses to set them
                resource.setrlimit(number, (most, most))


def memory_in_use() -> int:
    return _sum_of_lines("/proc/self/status", ("VmData:",))


def over_limit(family: list[int], used: float, limits: dict, own_network: bool) -> str:
    """Why this submission has to end, or nothing. Linux only: elsewhere each process has its own limits.

    own_network: whether all sockets that this process can count are the submission's.
    """
    if used > limits["processor_seconds"]:
        return f"it used more than {limits['processor_seconds']:g} s of processor time"
    if len(family) > limits["processes"]:
        return f"it started more than {limits['processes']} processes"
    answers = family[1:]  # init runs no student's code
    if sum(map(_own_memory, answers)) > limits["memory"] and sum(map(_fair_memory, answers)) > limits["memory"]:
        return f"it used more than {limits['memory'] / 2**30:.1f} GB of memory"
    if own_network and _sockets() > limits["open_files"]:
        return f"it opened more than {limits['open_files']} sockets"
    return ""


def family_of(process: int) -> list[int]:
    """The process and all that descend from it; orphans stay in it, for process 1 of their namespace adopts them."""
    family, rest = [], [process]
    while rest:
        each = rest.pop()
        family.append(each)
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{each}/task/{each}/children") as file:
            rest += map(int, file.read().split())
    return family


def processor_seconds(process: int) -> float:
    """Of a process and of those that it has outlived and waited for."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{process}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _own_memory(process: int) -> int:
    return _sum_of_lines(f"/proc/{process}/status", ("RssAnon:", "RssShmem:", "VmPTE:"))


def _fair_memory(process: int) -> int:
    # Counts a page that n processes share as 1/n: exact, and slow to ask for
    shared = _sum_of_lines(f"/proc/{process}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:"))
    tables = _sum_of_lines(f"/proc/{process}/status", ("VmPTE:",))  # gigabytes where much is mapped and only read
    return shared + tables if shared else _own_memory(process)


def _sockets() -> int:
    """How many sockets this network's processes hold: what waits in them is nobody's memory."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/net/sockstat") as file:
        return int(file.readline().split()[2])
    return 0


def _sum_of_lines(path: str, names: tuple[str, ...]) -> int:
    with contextlib.suppress(OSError), open(path) as file:
        return sum(1024 * int(line.split()[1]) for line in file if line.startswith(names))
    return 0


def end(child: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
