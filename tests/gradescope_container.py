"""A root filesystem laid out like Gradescope's containers, and what Docker lets root do in one.

Made by bubblewrap, from outside: root without the capabilities that Docker takes, without namespaces of its own (Docker
refuses the system calls), with a network, with /autograder and nothing of the course elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from helpers.grading.sandbox import bubblewrap

# https://docs.docker.com/engine/containers/run/#runtime-privilege-and-linux-capabilities
CAPABILITIES = (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL"
    " AUDIT_WRITE"
).split()
# As Docker's own filter: no namespaces and no mounts, for x86_64
FILTER = """
import ctypes, os, struct, sys
line = lambda code, value, yes=0, no=0: struct.pack("HBBI", code, yes, no, value)
eperm, enosys, give = 0x00050001, 0x00050026, 0x06
program = [line(0x20, 0)]
for call in (272, 165, 166, 308, 155, 246, 321):  # unshare, mount, umount2, setns, pivot_root, kexec_load, bpf
    program += [line(0x15, call, 0, 1), line(give, eperm)]
program += [line(0x15, 435, 0, 1), line(give, enosys)]  # clone3
program += [line(0x15, 56, 0, 3), line(0x20, 16), line(0x45, 0x7E020000, 0, 1), line(give, eperm)]  # clone
text = b"".join([*program, line(give, 0x7FFF0000)])
code = ctypes.create_string_buffer(text)
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, struct.pack("HxxxxxxP", len(text) // 8, ctypes.addressof(code)), 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
PYTHON = "/opt/course/bin/python"  # where setup.sh puts it


def why_not() -> str:
    """Why there can be no such container here, or ""."""
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        return "a container like Gradescope's needs root, and is known for x86_64 only"
    return bubblewrap.why_not()


class Container:
    """One image: the folders that outlive a run. Python is this one, in the place where setup.sh installs it."""

    def __init__(self, folder: Path, archive: Path):
        self.folder = folder
        for name in ("autograder/source", "autograder/submission", "autograder/results", "course", "sandbox"):
            (folder / name).mkdir(parents=True)
        source = folder / "autograder" / "source"
        with zipfile.ZipFile(archive) as bundle:
            bundle.extractall(source)
        shutil.copy(source / "run_autograder", folder / "autograder" / "run_autograder")
        (folder / "autograder" / "run_autograder").chmod(0o755)

    def prepare(self) -> subprocess.CompletedProcess[str]:
        command = f"cd /autograder/source/course && PYTHONPATH=$PWD {PYTHON} -m helpers.grading.gradescope prepare"
        return self.run("sh", "-c", command)

    def grade(self, notebook: bytes | None, name: str = "work.ipynb", student: int = 1) -> dict:
        """Hand a file in, and read its results; {} where there are none."""
        place, results = self.folder / "autograder" / "submission", self.folder / "autograder/results/results.json"
        shutil.rmtree(place)
        place.mkdir()
        results.unlink(missing_ok=True)
        if notebook is not None:
            (place / name).write_bytes(notebook)
        about = {"id": 1, "users": [{"id": student, "name": "Jane Doe", "email": "jane@example.org"}]}
        (self.folder / "autograder" / "submission_metadata.json").write_text(json.dumps(about))
        self.last = self.run("/autograder/run_autograder")
        return json.loads(results.read_text()) if results.is_file() else {}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as root of the container, as Docker would."""
        walls = ["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--clearenv"]
        walls += ["--cap-drop", "ALL", *(word for name in CAPABILITIES for word in ("--cap-add", f"CAP_{name}"))]
        walls += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
        for folder in ("/var/tmp", "/run/lock"):
            walls += [*bubblewrap._parents(folder), "--perms", "1777", "--dir", folder]
        for path in (*bubblewrap._system(), "/etc/passwd", "/etc/group", "/etc/resolv.conf", "/etc/ssl"):
            if os.path.lexists(path):
                shown = ["--symlink", os.readlink(path)] if os.path.islink(path) else ["--ro-bind", path]
                walls += [*bubblewrap._parents(path), *shown, path]
        for path in bubblewrap._python():
            if not Path(path).is_relative_to(sys.prefix):
                walls += [*bubblewrap._parents(path), "--ro-bind", path, path]
        walls += ["--dir", "/opt", "--ro-bind", sys.prefix, str(Path(PYTHON).parents[1])]
        for package in bubblewrap.packages_for_tests():  # which setup.sh does not install
            there = Path(PYTHON).parents[1] / Path(package).relative_to(sys.prefix)
            walls += ["--perms", "0555", "--size", "4096", "--tmpfs", str(there)]
        for name in ("autograder", "course", "sandbox"):
            walls += ["--bind", str(self.folder / name), f"/{name}"]
        walls += ["--chdir", "/autograder", "--setenv", "PATH", "/usr/sbin:/usr/bin:/sbin:/bin"]
        filtered = (
            ["/usr/bin/python3", "-I", "-c", FILTER]
            if os.path.exists("/usr/bin/python3")
            else [PYTHON, "-I", "-c", FILTER]
        )
        return subprocess.run([*walls, "--", *filtered, *command], capture_output=True, text=True, errors="replace")
