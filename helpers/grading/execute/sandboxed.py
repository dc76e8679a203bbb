"""What runs inside the sandbox: a process that has imported everything, and one fork of it a submission.

    zygote   imports torch and what the lesson imports, runs no student's code, and forks for each submission
      keeper   makes namespaces for one submission, counts its memory and processes, and ends it
        shell    process 1 of those namespaces; runs the submission's cells and sends their outputs

Only the shell meets a student's code. It sees no process but its own, no folder that another submission could
see, no network, and holds no file descriptor but the one its outputs leave by. What it says is never believed:
the grader reads it as data with bounds (see `running`).

This file stands alone. It is run by its path; `helpers.grading` does not exist where it runs.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import ctypes
import gc
import io
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
import traceback

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
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38

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
BOUNDED = {"clone": (56, 220), "clone3": (435, 435), "socket": (41, 198)}


def refuse_system_calls(families: tuple[int, ...] = (socket.AF_UNIX,)) -> bool:
    """Install a seccomp filter: the calls in REFUSED fail with EPERM, and so do sockets of other families.

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
    for numbers in REFUSED.values():
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


# ------------------------------------------------------------------------------------------- the zygote


def serve(channel: int, about: dict) -> None:
    """Import, say so, then fork a keeper for each pair of sockets that arrives. Ends when the grader does.

    With the sockets comes what the submission's environment has beside this process's own, as JSON.
    """
    if about["user"] is not None and os.geteuid() == 0:
        become(about["user"])
        # A process that gave up root may not touch its own /proc until it executes something
        os.execv(sys.executable, [sys.executable, *sys.argv])
    control = socket.socket(fileno=channel)
    shell, missing = prepare(about)
    nested = about["nested"] and _can_nest(about)
    if sys.platform == "linux":
        prctl(PR_SET_DUMPABLE, 0)
    ready = {"nested": nested, "threads": _threads(), "missing": missing}
    control.sendall(json.dumps(ready).encode() + b"\n")
    while True:
        told, sockets, _, _ = socket.recv_fds(control, 1 << 16, 2)
        _bury()
        if not told:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            os.environ.update(json.loads(told))
            keep(*sockets, shell, {**about, "nested": nested})
        for number in sockets:
            os.close(number)


def prepare(about: dict):
    """Everything that submissions have in common: imports, and a shell that nothing has run in yet.

    Returns the shell, and why the course itself cannot be imported here, or "".
    """
    _lay_out_fonts()
    missing = ""
    try:
        exec(about["needed"], {})
    except BaseException as problem:
        missing = f"{type(problem).__name__}: {problem}"[:500]
    for imported in ast.parse(about["imports"]).body:
        # What fails here will fail in the cell itself, where it can be told
        with contextlib.suppress(Exception):
            exec(compile(ast.Module([imported], []), "<imports>", "exec"), {})
    shell = make_shell()
    with contextlib.suppress(Exception):
        _warm_torch(sys.modules["torch"])
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, all that it shares with its parent
    return shell, missing


def _warm_torch(torch) -> None:
    """Have torch do what it puts off: 800 modules come with the first product on the device "meta".

    Forward passes on small tensors only. A backward pass, or a thread, would spoil autograd for the forks.
    """
    torch.backends.cpu.get_cpu_capability()
    for device in ("cpu", "meta"):
        x = torch.ones(2, 2, device=device)
        (x @ x.mT).softmax(-1).masked_fill(x > 0, 0.0).mean()


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


def keep(cells: int, orders: int, shell, about: dict) -> None:
    """Fork the shell, carry out the grader's orders on it (b"i" interrupts, b"k" or the end kills), report its end."""
    channel = socket.socket(fileno=orders)
    try:
        os.setsid()
        if about["nested"]:
            enter_namespaces()
        child = os.fork()
        if child == 0:
            channel.close()
            run_submission(cells, shell, about)
        os.close(cells)
        report = _watch(child, channel, about["limits"])
    except BaseException as problem:
        report = {"why": f"the sandbox failed: {type(problem).__name__}: {problem}"}
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps(report).encode() + b"\n")
    os._exit(0)


def _watch(child: int, channel: socket.socket, limits: dict) -> dict:
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            poll.register(os.pidfd_open(child), select.POLLIN)
    why, look = "", time.monotonic()
    while True:
        poll.poll(HEARTBEAT * 1000)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return {"why": why, "status": os.waitstatus_to_exitcode(status)}
        with contextlib.suppress(BlockingIOError):
            order = channel.recv(1, socket.MSG_DONTWAIT)
            if order == b"i":
                os.kill(child, signal.SIGINT)
            else:
                _end(child)
        if not why and time.monotonic() > look + HEARTBEAT:
            why = _over_limit(child, limits)
            if why:
                _end(child)
            look = time.monotonic()


def _end(child: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)


def _over_limit(child: int, limits: dict) -> str:
    """Why this submission has to end, or nothing. Linux only: elsewhere each process has its own limits."""
    family = _family(child)
    if len(family) > limits["processes"]:
        return f"it started more than {limits['processes']} processes"
    if sum(map(_own_memory, family)) > limits["memory"] and sum(map(_fair_memory, family)) > limits["memory"]:
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


# -------------------------------------------------------------------------------------------- the shell


def run_submission(cells: int, shell, about: dict) -> None:
    """Shut the door, then run each cell that comes through the socket. Never returns."""
    try:
        used = memory_in_use()  # while there is a /proc that tells
        if about["nested"]:
            make_own_folders(about)
        if sys.platform == "linux":
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()  # kill(0) reaches a process group whole, also where it began outside the namespace
        channel = _only_descriptor(cells)
        os.chdir(about["folder"])
        set_limits(about["limits"], used)
        if about["sandboxed"]:
            drop_capabilities()
            refuse_system_calls()
        reseed()
        _run_cells(shell, channel, about["limits"])
    except BaseException:
        with contextlib.suppress(BaseException):
            channel.send({"type": "broken", "text": traceback.format_exc()[-2000:]})
    os._exit(1)


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


def _only_descriptor(number: int) -> Channel:
    """Keep the socket, as descriptor 3, and nothing else; 0, 1 and 2 lead nowhere."""
    os.dup2(number, 3)
    os.closerange(4, 65536)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for place in (0, 1, 2):
        os.dup2(nowhere, place)
    os.close(nowhere)
    return Channel(socket.socket(fileno=3))


def reseed() -> None:
    """Random numbers as in a process that has just started."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        generator = sys.modules["torch"].default_generator
        generator.manual_seed(generator.initial_seed())


class Channel:
    """Messages to the grader, a line of JSON each. An interrupt waits until a line is whole."""

    def __init__(self, connection: socket.socket):
        self._connection, self._received = connection, b""

    def send(self, message: dict) -> None:
        line = json.dumps(message, default=str).encode("utf-8", "replace") + b"\n"
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._connection.sendall(line)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def receive(self) -> dict:
        while b"\n" not in self._received:
            more = self._connection.recv(1 << 16)
            if not more:
                os._exit(0)
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)


def _run_cells(shell, channel: Channel, limits: dict) -> None:
    out = Outputs(channel, limits)
    shell.speak_through(out)
    sys.stdout, sys.stderr = out.streams
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        request = channel.receive()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            shell.forget_transformers()
            shell.run_cell(request["source"], store_history=True)
            out.settle()
        except KeyboardInterrupt:
            pass
        except SystemExit:
            os._exit(0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        out.settle()
        channel.send({"type": "done", "cell": request["cell"], "count": shell.execution_count - 1})


class Outputs:
    """What cells leave, on its way out. What exceeds the limits is dropped here, once said; answers pass.

    The grader counts for itself: what is dropped here only need not be sent.
    """

    def __init__(self, channel: Channel, limits: dict):
        self.channel, self._answer = channel, "application/vnd.dot-product-to-gpt2.answer+json"
        self._room, self._left = limits["output_bytes"], limits["outputs"]
        self.streams = (Stream("stdout", self), Stream("stderr", self))

    def settle(self) -> None:
        """Send what was printed, so that what is sent next stands behind it."""
        for stream in self.streams:
            stream.push()

    def stream(self, name: str, text: str) -> None:
        if self._room > 0:
            self.channel.send({"type": "stream", "name": name, "text": text[: self._room]})
            self._took(len(text))

    def data(self, kind: str, data: dict, **more) -> None:
        self.settle()
        data = {name: _text_of(value) for name, value in data.items()}
        message = {"type": kind, "data": data, **more}
        if self._answer in data:
            self.channel.send(message)
        elif self._counted():
            size = sum(len(value) if isinstance(value, str) else len(repr(value)) for value in data.values())
            if size <= self._room:
                self.channel.send(message)
            self._took(size)

    def error(self, name: object, value: object, lines: list[str]) -> None:
        self.settle()
        name, value, text = _said(name), _said(value), "\n".join(lines)
        if self._counted():
            self.channel.send(
                {"type": "error", "ename": name[:200], "evalue": value[:2000], "traceback": [text[-20_000:]]}
            )

    def clear(self, wait: bool) -> None:
        self.settle()
        if self._counted():
            self.channel.send({"type": "clear_output", "wait": wait})

    def _counted(self) -> bool:
        """May one more output be sent?"""
        self._left -= 1
        if self._left == -1:
            self.channel.send({"type": "cut"})
        return self._left >= 0 and self._room > 0

    def _took(self, size: int) -> None:
        self._room -= size
        if self._room <= 0:
            self.channel.send({"type": "cut"})


def _said(thing: object) -> str:
    """A student's exception may raise when it is asked for its words."""
    try:
        return str.__str__(thing if isinstance(thing, str) else str(thing))
    except Exception:
        return ""


def _text_of(value):
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr of a cell: gathers what is written and sends it in pieces.

    Who flushes after each word, as progress bars do, has it sent a few times a second and not each time.
    """

    encoding, errors = "utf-8", "replace"

    def __init__(self, name: str, outputs: Outputs):
        self.name, self._outputs, self._held, self._size, self._sent = name, outputs, [], 0, 0.0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._held.append(str.__str__(text))
        self._size += len(text)
        if self._size > 1 << 16:
            self.push()
        return len(text)

    def flush(self) -> None:
        if time.monotonic() > self._sent + HEARTBEAT:
            self.push()

    def push(self) -> None:
        if self._held:
            text, self._held, self._size = "".join(self._held), [], 0
            self._sent = time.monotonic()
            self._outputs.stream(self.name, text)


def make_shell():
    """An IPython shell whose outputs go to `speak_through`. Starts no thread and writes no file."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.error import StdinNotImplementedError
    from IPython.core.inputtransformer2 import TransformerManager
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import Type
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs):
            kind = "update_display_data" if update else "display_data"
            self.shell.outputs.data(kind, data, display_id=(transient or {}).get("display_id"))

        def clear_output(self, wait=False):
            self.shell.outputs.clear(bool(wait))

    class Hook(DisplayHook):
        def write_output_prompt(self):
            pass

        def write_format_data(self, format_dict, md_dict=None):
            self.shell.outputs.data("execute_result", format_dict, count=self.prompt_count)

        def finish_displayhook(self):
            self._is_active = False

    class Shell(InteractiveShell):
        displayhook_class = Type(Hook)
        display_pub_class = Type(Publisher)

        def speak_through(self, outputs: Outputs) -> None:
            self.outputs = outputs

        def forget_transformers(self):
            # What rewrites the text of cells would reach the checks of other exercises
            self.ast_transformers = []
            self.input_transformers_post = []
            self.input_transformer_manager = TransformerManager()

        def _showtraceback(self, etype, evalue, stb):
            self.outputs.error(etype.__name__, evalue, [_said(line) for line in stb])

        def ask_exit(self):
            os._exit(0)

        def enable_gui(self, gui=None):
            pass

        def init_sys_modules(self):
            # Nothing else needs the true __main__, and pickles of students' classes look there
            self._main_mod_cache = {}
            sys.modules["__main__"] = self.user_module

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.banner1 = ""
    Shell.clear_instance()
    shell = Shell.instance(config=config)

    def no_input(prompt=""):
        raise StdinNotImplementedError("input() was called, and nobody is here to answer.")

    import builtins

    builtins.input = no_input
    return shell


# ---------------------------------------------------------------------------------- any other program


def become_program(about: dict, command: list[str]) -> None:
    """Give up what a program does not need that runs behind the walls by itself, then become it."""
    if about["user"] is not None and os.geteuid() == 0:
        become(about["user"])
    set_limits(about["limits"], 1 << 30)  # which the imports will take
    # A kernel of Jupyter's binds a port of the loopback; this network ends at the sandbox's wall
    refuse_system_calls((socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK))
    os.execv(command[0], command)


def main() -> None:
    task, about = sys.argv[1], json.loads(sys.argv[2])
    if task == "serve":
        serve(int(sys.argv[3]), about)
    else:
        become_program(about, sys.argv[3:])


if __name__ == "__main__":
    main()
