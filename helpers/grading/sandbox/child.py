"""What runs inside the sandbox: a process that has imported everything, and forks of it.

    fork server   imports torch and the lesson's probes, runs no student's code, and forks for each submission
      keeper      makes namespaces for one submission, counts its memory, processes and processor time, and ends it
        init      process 1 of those namespaces; forks for each exercise, and ends all that the fork leaves behind
          answer  shuts the door behind itself, runs one exercise's answer, sends one line, and ends

Only the last meets a student's code. It sees no process but its own, no folder that another exercise could have written
to, no network, and holds no file descriptor but the one that its line leaves by. What it says is never believed: the
grader reads it as data with bounds (see `conversation`).

This file stands alone. It is run by its path; `helpers.grading` does not exist where it runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import platform
import random
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import time

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 1, 4, 22, 24, 36
PR_SET_NO_NEW_PRIVS = 38

SCRATCH, FONTS = "/sandbox/scratch", "/sandbox/fonts"
SHARED_FOLDERS = ("/tmp", "/dev/shm")  # where any program expects that it may write
HEARTBEAT = 0.1  # seconds between two looks at a submission's memory and processes


# ------------------------------------------------------------------------------------- asking the kernel


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _ask(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _ask(_libc().unshare(flags), "unshare")


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    _ask(_libc().mount(kind.encode(), target.encode(), kind.encode(), flags, options.encode()), f"mount {target}")


def bind(source: str, target: str) -> None:
    """Show a folder, with all that is mounted in it, in another place too."""
    _ask(_libc().mount(source.encode(), target.encode(), None, MS_BIND | MS_REC, None), f"bind {target}")


def read_only(path: str) -> None:
    """Let nothing be written to a folder that was bound; what is mounted below it stays as it is."""
    flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV
    _ask(_libc().mount(None, path.encode(), None, flags, None), f"remount {path}")


def prctl(option: int, value: int) -> None:
    _ask(_libc().prctl(option, value, 0, 0, 0), "prctl")


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

# System calls that no exercise needs and that reach far into the operating system, or past the limits here
# (what memfd_create, shmget, msgget and semget hold belongs to no process and would not be counted).
REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "personality": (135, 92),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "pidfd_getfd": (438, 438),
}
PROGRAMS = {"execve": (59, 221), "execveat": (322, 281)}  # another Python would know nothing of what is forbidden
BOUNDED = {"clone": (56, 220), "clone3": (435, 435), "socket": (41, 198)}


def refuse_system_calls(refused: dict = REFUSED, families: tuple[int, ...] = (socket.AF_UNIX,)) -> bool:
    """Install a seccomp filter: the refused calls fail with EPERM, and so do sockets of other families.

    clone may not make namespaces; clone3, whose flags a filter cannot read, is "not implemented", and the C
    library takes clone instead. Returns False on processors that this table does not know.
    """
    if platform.machine() not in PROCESSORS:
        return False
    processor, place = PROCESSORS[platform.machine()]
    clone, clone3, socket_ = (BOUNDED[name][place] for name in ("clone", "clone3", "socket"))
    allow, eperm, enosys, end = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    load, equal, at_least, bits, give = 0x20, 0x15, 0x35, 0x45, 0x06

    def line(code, value, yes=0, no=0):
        return struct.pack("HBBI", code, yes, no, value)

    namespaces = 0x7E020080  # CLONE_NEW*
    program = [line(load, 4), line(equal, processor, 1, 0), line(give, end), line(load, 0)]
    program += [line(at_least, 0x40000000, 0, 1), line(give, enosys)]  # x86's second set of numbers
    for numbers in refused.values():
        program += [line(equal, numbers[place], 0, 1), line(give, eperm)]
    program += [line(equal, clone3, 0, 1), line(give, enosys)]
    program += [line(equal, clone, 0, 3), line(load, 16), line(bits, namespaces, 0, 1), line(give, eperm)]
    program += [line(load, 0), line(equal, socket_, 0, 2 + len(families)), line(load, 16)]
    program += [line(equal, family, len(families) - place, 0) for place, family in enumerate(families)]
    program += [line(give, eperm), line(give, allow)]
    code = ctypes.create_string_buffer(b"".join(program))
    about = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    _ask(_libc().prctl(PR_SET_SECCOMP, 2, about, 0, 0), "seccomp")
    return True


def set_limits(limits: dict, used: int) -> None:
    """Resource limits of this process and its children. used: bytes in use already; the limit comes on top."""
    wanted = {
        "RLIMIT_DATA": used + limits["memory"],
        "RLIMIT_CPU": int(limits["processor_seconds"]) + 1,
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_FSIZE": limits["file_bytes"],
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": 1000,
    }
    if _processes_are_counted_by_namespace():
        wanted["RLIMIT_NPROC"] = limits["processes"]
    for name, most in wanted.items():
        number = getattr(resource, name, None)
        if number is not None:
            _, hard = resource.getrlimit(number)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with contextlib.suppress(ValueError, OSError):  # macOS knows some names and refuses to set them
                resource.setrlimit(number, (most, most))


def memory_in_use() -> int:
    with contextlib.suppress(OSError), open("/proc/self/status") as file:
        return next((1024 * int(line.split()[1]) for line in file if line.startswith("VmData")), 0)
    return 0


def _processes_are_counted_by_namespace() -> bool:
    # Before Linux 5.14 the limit counts a user's processes on the whole machine
    if sys.platform != "linux":
        return False
    version = platform.release().split(".")
    return (int(version[0]), int("".join(filter(str.isdigit, version[1])))) >= (5, 14)


# -------------------------------------------------------------------------------------- the fork server


def serve(channel: int, about: dict) -> None:
    """Import, say so, then fork a keeper for each pair of sockets that arrives. Ends when the grader does.

    With the sockets comes, as JSON, how many seconds of processor time the submission may use.
    """
    if about["user"] is not None and os.geteuid() == 0:
        become(about["user"])
        # A process that gave up root may not touch its own /proc until it executes something
        os.execv(sys.executable, [sys.executable, *sys.argv])
    control = socket.socket(fileno=channel)
    missing = prepare(about)
    nested = about["nested"] and _can_nest(about)
    if sys.platform == "linux":
        prctl(PR_SET_DUMPABLE, 0)
    ready = {"nested": nested, "threads": _threads(), "missing": missing}
    control.sendall(json.dumps(ready).encode() + b"\n")
    while True:
        order, sockets, _, _ = socket.recv_fds(control, 1 << 16, 2)
        _bury()
        if not order:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            limits = {**about["limits"], "processor_seconds": json.loads(order)}
            keep(*sockets, {**about, "nested": nested, "limits": limits})
        for number in sockets:
            os.close(number)


def prepare(about: dict) -> str:
    """Import what all answers of the lesson have in common. Returns why the course cannot be imported here, or ""."""
    _lay_out_fonts()
    missing = ""
    try:
        exec(about["needed"], {})
    except BaseException as problem:
        missing = f"{type(problem).__name__}: {problem}"[:500]
    for line in about["imports"]:
        # What fails here fails in the setup cell as well, and an answer does without
        with contextlib.suppress(Exception):
            exec(line, {})
    with contextlib.suppress(Exception):
        _warm_torch(sys.modules["torch"])
        sys.modules["helpers.checking.forbidden"].find_all()
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, all that it shares with its parent
    return missing


def _warm_torch(torch) -> None:
    """Have torch import what it puts off: 800 modules come with the first product on the device "meta".

    Forward passes on small tensors only. A backward pass, or a thread, would spoil autograd for the forks.
    """
    torch.backends.cpu.get_cpu_capability()
    for device in ("cpu", "meta"):
        x = torch.ones(2, 2, device=device)
        (x @ x.mT).softmax(-1).masked_fill(x > 0, 0.0).mean()
        with torch.no_grad():
            torch.nn.Linear(2, 2, device=device)(x)
            torch.nn.functional.cross_entropy(x, x.long()[0])
    weight = torch.nn.Parameter(torch.ones(2))
    for optimiser in (torch.optim.SGD, torch.optim.AdamW):
        weight.grad = torch.ones(2)
        optimiser([weight]).step()


def _lay_out_fonts() -> None:
    """matplotlib finds its list of fonts where it may write, and need not make it again."""
    with contextlib.suppress(OSError):
        os.makedirs(os.environ["MPLCONFIGDIR"], exist_ok=True)
        for name in os.listdir(FONTS):
            shutil.copy(f"{FONTS}/{name}", os.environ["MPLCONFIGDIR"])


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


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


# ------------------------------------------------------------------------------------------- the keeper


def enter_namespaces() -> None:
    """A user of its own, and for what is forked next: processes, network and shared memory of its own."""
    user, group = os.geteuid(), os.getegid()
    prctl(PR_SET_DUMPABLE, 1)  # without it /proc/self belongs to root, and the maps cannot be written
    unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
    for name, text in {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    prctl(PR_SET_DUMPABLE, 1)  # and once more, for new capabilities take it away: memory is counted through /proc


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
        report = _watch(child, channel, about["limits"])
    except BaseException as problem:
        report = {"failed": f"{type(problem).__name__}: {problem}"}
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps(report).encode() + b"\n")
    os._exit(0)


def _watch(child: int, channel: socket.socket, limits: dict) -> dict:
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            poll.register(os.pidfd_open(child), select.POLLIN)
    why, look, used = "", time.monotonic(), 0.0
    while True:
        poll.poll(HEARTBEAT * 1000)
        done, _ = os.waitpid(child, os.WNOHANG)
        if done:
            return {"why": why, "processor_seconds": used}
        with contextlib.suppress(BlockingIOError):
            channel.recv(1, socket.MSG_DONTWAIT)
            _end(child)
        if not why and time.monotonic() > look + HEARTBEAT:
            family = _family(child)
            used = max(used, sum(map(_processor_seconds, family)))
            why = _over_limit(family, used, limits)
            if why:
                _end(child)
            look = time.monotonic()


def _end(child: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)


def _over_limit(family: list[int], used: float, limits: dict) -> str:
    """Why this submission has to end, or nothing. Linux only: elsewhere each process has its own limits."""
    if used > limits["processor_seconds"]:
        return f"it used more than {limits['processor_seconds']:g} s of processor time"
    if len(family) > limits["processes"]:
        return f"it started more than {limits['processes']} processes"
    answers = family[1:]  # init runs no student's code
    if sum(map(_own_memory, answers)) > limits["memory"] and sum(map(_fair_memory, answers)) > limits["memory"]:
        return f"it used more than {limits['memory'] / 2**30:.1f} GB of memory"
    if _sockets() > limits["open_files"]:
        return f"it opened more than {limits['open_files']} sockets"
    return ""


def _family(process: int) -> list[int]:
    """The process and all that descend from it; orphans stay in it, for process 1 of their namespace adopts them."""
    found, rest = [], [process]
    while rest:
        each = rest.pop()
        found.append(each)
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{each}/task/{each}/children") as file:
            rest += map(int, file.read().split())
    return found


def _processor_seconds(process: int) -> float:
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


# --------------------------------------------------------------------------------- init, and the answers


def be_init(control: int, about: dict) -> None:
    """Fork for each socket that arrives, end all that it leaves behind, and send its exit status. Never returns."""
    if sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_DUMPABLE, 0)  # no answer may look into this process
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
        status = _ended(child, channel)
        _end_the_rest()
        if not about["nested"]:
            _empty_folders(about)
        channel.sendall(json.dumps({"status": status}).encode() + b"\n")


def _ended(child: int, channel: socket.socket) -> int:
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
                _end(child)
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
            for process in _family(os.getpid())[1:]:
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
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def answer(number: int, about: dict, used: int) -> None:
    """Shut the door, read one request, carry it out, and send one line. Never returns."""
    channel = None
    try:
        if about["nested"]:
            make_own_folders(about)
        if sys.platform == "linux":
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        channel = _only_descriptor(number)
        os.chdir(about["folder"])
        set_limits(about["limits"], used)
        if about["sandboxed"]:
            drop_capabilities()
            prctl(PR_SET_DUMPABLE, 1)  # init is not, and of a process that is not the shared memory cannot be counted
            refuse_system_calls(REFUSED | PROGRAMS)
        reseed()
        line = carry_out(_received(channel))
    except BaseException as problem:  # SystemExit too: nothing may run the fork server's loop
        line = {"broken": f"{type(problem).__name__}: {problem}"[:500]}
    with contextlib.suppress(BaseException):
        channel.sendall(json.dumps(line).encode("utf-8", "replace") + b"\n")
    os._exit(0)


def carry_out(request: dict) -> dict:
    """What is asked of one process: to read a submission, or to run one answer."""
    from helpers.checking import answers, cell_scan, forbidden, isolation, program_slice
    from helpers.exercises import load_lesson

    lesson = load_lesson(request["lesson"])
    if request["task"] == "read":
        cells = [cell_scan.SubmittedCell(**cell) for cell in request["cells"]]
        return {"read": cell_scan.scan_submission(lesson, cells, request["released"], request["setup"]).as_json()}
    exercise = lesson[request["exercise"]]
    forbidden.bar_for_good(exercise.forbidden)
    slice_of_it = program_slice.ProgramSlice.from_json(request["program"])
    try:
        given, stopped, changed = isolation.run_watched(exercise, slice_of_it, request["parts"], request["seed"])
    except isolation.NothingDefined as problem:
        return {"undefined": str(problem)[:500]}
    return {"answer": answers.to_wire(given), "stopped": stopped[:500], "changed": changed}


def _received(channel: socket.socket) -> dict:
    pieces = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        more = channel.recv(1 << 16)
        if not more:
            os._exit(0)
        pieces.append(more)
    return json.loads(b"".join(pieces))


def make_own_folders(about: dict) -> None:
    """In a mount namespace of its own: empty folders where it may write, and its own processes in /proc."""
    unshare(CLONE_NEWNS)
    _ask(_libc().mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
    mount("tmpfs", SCRATCH, MS_NOSUID | MS_NODEV, f"size={about['limits']['file_bytes']},nr_inodes=20000,mode=1777")
    for folder in SHARED_FOLDERS:
        _cover(folder, [path for path in about["stays"] if path.startswith(f"{folder}/")])
    try:
        mount("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:  # not allowed where parts of /proc are covered: then there is none
        mount("tmpfs", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "size=0,nr_inodes=1,mode=555")
    with contextlib.suppress(OSError), open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    os.makedirs(os.environ["HOME"], exist_ok=True)
    os.makedirs(about["folder"], exist_ok=True)


def _cover(folder: str, stays: list[str]) -> None:
    """Put an empty folder in the place of this one, in which what has to stay is seen as before, read-only.

    stays: folders right below it. A course's Python lies there where somebody works under /tmp.
    """
    new = SCRATCH + folder
    os.makedirs(new)
    os.chmod(new, 0o1777)
    for path in stays:
        os.mkdir(SCRATCH + path)
        bind(path, SCRATCH + path)
        read_only(SCRATCH + path)
    bind(new, folder)


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
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        generator = sys.modules["torch"].default_generator
        generator.manual_seed(generator.initial_seed())


# ---------------------------------------------------------------------------------- any other program


def become_program(about: dict, command: list[str]) -> None:
    """Give up what a program does not need that runs behind the walls by itself, then become it."""
    if about["user"] is not None and os.geteuid() == 0:
        become(about["user"])
    set_limits(about["limits"], 1 << 30)  # which the imports will take
    refuse_system_calls()
    os.execv(command[0], command)


def main() -> None:
    task, about = sys.argv[1], json.loads(sys.argv[2])
    if task == "serve":
        serve(int(sys.argv[3]), about)
    else:
        become_program(about, sys.argv[3:])


if __name__ == "__main__":
    main()
