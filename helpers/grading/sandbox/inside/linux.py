"""What Python does not ask the Linux kernel for: namespaces, mounts, capabilities, filters of system calls."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import socket
import struct
import sys

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 1, 4, 22, 24, 36
PR_SET_NO_NEW_PRIVS = 38
MADV_COLLAPSE, LARGE_PAGE = 25, 1 << 21  # since Linux 6.1


@functools.cache
def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _ask(result: int, call: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _ask(_libc().unshare(flags), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    words = [word and word.encode() for word in (source, target, kind)]
    _ask(_libc().mount(*words, flags, options.encode()), f"mount {target}")


def prctl(option: int, value: int) -> None:
    """Nothing happens on other systems than Linux."""
    if sys.platform == "linux":
        _ask(_libc().prctl(option, value, 0, 0, 0), "prctl")


def use_large_pages() -> None:
    """Move this process's memory to large pages where the kernel can: a fork then copies one entry for 512."""
    with open("/proc/self/maps") as file:
        areas = [line.split() for line in file]
    for span, rights, _, _, file_number, *name in areas:
        if rights.startswith("rw") and file_number == "0" and name in ([], ["[heap]"]):
            first, last = (int(address, 16) // LARGE_PAGE for address in span.split("-"))
            for page in range(first + 1, last):
                _libc().madvise(ctypes.c_void_p(page * LARGE_PAGE), ctypes.c_size_t(LARGE_PAGE), MADV_COLLAPSE)


def drop_capabilities() -> None:
    """Give up every capability, for this process and what it will execute."""
    for number in range(64):
        with contextlib.suppress(OSError):
            prctl(PR_CAPBSET_DROP, number)
    header = struct.pack("Ii", 0x20080522, 0)  # version 3 of the structure, this process
    _ask(_libc().capset(header, bytes(24)), "capset")


def become(user: int) -> None:
    """Give up root for the user of that number, for good."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


# What the kernel's filters know a processor by, and where its numbers stand below
PROCESSORS = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
NONE = 0xFFFFFFFF  # the number of a call that a processor does not have


def _calls(*groups: str) -> dict[str, tuple[int, int]]:
    """The numbers of system calls on the two processors, by name."""
    words = (call.split() for group in groups for call in group.split(","))
    return {name: (int(first), int(second)) for name, first, second in words}


# System calls that no exercise needs and that reach far into the operating system, or past the limits here
REFUSED = _calls(
    # other processes' memory and files
    "ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, pidfd_getfd 438 438, perf_event_open 298 241",
    # walls: mounts, by old calls and new ones, namespaces, and files by their numbers
    "mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, unshare 272 97, setns 308 268",
    "open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433",
    "mount_setattr 442 442, name_to_handle_at 303 264, open_by_handle_at 304 265",
    # code in the kernel, and its keys
    "kexec_load 246 104, kexec_file_load 320 294, init_module 175 105, finit_module 313 273, delete_module 176 106",
    "bpf 321 280, userfaultfd 323 282, add_key 248 217, request_key 249 218, keyctl 250 219",
    "io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427",
    # memory that belongs to no process and would not be counted
    "memfd_create 319 279, memfd_secret 447 447, shmget 29 194, msgget 68 186, semget 64 190",
    # the machine as a whole
    "personality 135 92, acct 163 89, swapon 167 224, swapoff 168 225, reboot 169 142, vhangup 153 58",
    "sethostname 170 161, setdomainname 171 162",
)
# Another program, process or thread: a probe would not see what it does
STARTING = _calls(f"execve 59 221, execveat 322 281, clone 56 220, fork 57 {NONE}, vfork 58 {NONE}")
# What reaches other processes of the container where an answer has no namespaces of its own
REACHING = _calls(
    # signals
    "kill 62 129, tkill 200 130, tgkill 234 131, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240",
    "pidfd_send_signal 424 424",
    # priorities
    "setpriority 141 140, ioprio_set 251 30, sched_setaffinity 203 122, sched_setscheduler 144 119",
    "sched_setparam 142 118, sched_setattr 314 274",
    # sockets of any kind, which services of root may listen on
    "socket 41 198, socketpair 53 199, connect 42 203",
)
CLONE3, CLONE, PRLIMIT, SOCKET = (435, 435), (56, 220), (302, 261), (41, 198)


def refuse_system_calls(refused: dict = REFUSED) -> None:
    """Install a seccomp filter: the refused calls fail with EPERM. Not on processors that this table does not know."""
    if program := filter_of(tuple(refused.values())):
        code = ctypes.create_string_buffer(program)
        about = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _ask(_libc().prctl(PR_SET_SECCOMP, 2, about, 0, 0), "seccomp")


@functools.cache
def filter_of(refused: tuple[tuple[int, int], ...]) -> bytes:
    """A program for the kernel that refuses these calls, sockets of other families than AF_UNIX, and other
    processes' limits (init would hand them to the next exercise).

    clone may not make namespaces; clone3, whose flags a filter cannot read, is "not implemented", and the C
    library takes clone instead.
    """
    if platform.machine() not in PROCESSORS:
        return b""
    processor, place = PROCESSORS[platform.machine()]
    allow, eperm, enosys, end = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    load, equal, at_least, bits, give = 0x20, 0x15, 0x35, 0x45, 0x06

    def line(code, value, yes=0, no=0):
        return struct.pack("HBBI", code, yes, no, value)

    namespaces = 0x7E020080  # CLONE_NEW*
    program = [line(load, 4), line(equal, processor, 1, 0), line(give, end), line(load, 0)]
    program += [line(at_least, 0x40000000, 0, 1), line(give, enosys)]  # x86's second set of numbers
    for numbers in refused:
        program += [line(equal, numbers[place], 0, 1), line(give, eperm)]
    program += [line(equal, CLONE3[place], 0, 1), line(give, enosys)]
    harmless = {CLONE: (bits, namespaces, 0, 1), PRLIMIT: (equal, 0, 1, 0), SOCKET: (equal, socket.AF_UNIX, 1, 0)}
    for numbers, first_argument in harmless.items():
        program += [line(load, 0), line(equal, numbers[place], 0, 3), line(load, 16), line(*first_argument)]
        program.append(line(give, eperm))
    return b"".join([*program, line(give, allow)])
