"""The walls around a submission: a bubblewrap command, and a sentence for where there is none.

Inside there is Python with what is installed beside it, the rooms of helpers that students have, and one empty
folder to write in. There is no network, no process of the machine, no solution, exam key, gradebook, other
submission or home; see `sandboxed` for the limits on what remains.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from helpers.course import HELPERS, INSTRUCTORS_ROOMS, LIMITS, Limits

SANDBOXED = Path(__file__).with_name("sandboxed.py")
NOBODY = 65534

BUBBLEWRAP, NONE = "bubblewrap", "none"
UNSAFE_LABEL = "none (--unsafe)"

COURSE, SANDBOXED_THERE, FONTS_THERE = "/course", "/sandbox/sandboxed.py", "/sandbox/fonts"
HOME, WORK = "/tmp/home", "/tmp/work"

HOW_TO = """\
Submissions are strangers' programs, and they are run in a sandbox made by bubblewrap.
{problem}

    Debian, Ubuntu        sudo apt install bubblewrap
    Fedora, RHEL          sudo dnf install bubblewrap
    Arch                  sudo pacman -S bubblewrap
    macOS, Windows        grade in a Linux virtual machine or container

In a container, bubblewrap needs the right to make user namespaces (for Docker: --security-opt seccomp=unconfined).
To go on without a sandbox, say so: {without}. Any submission can then read and change whatever you can:
the solutions, the gradebook, your files; and every mark will say that it was made that way."""


class NoSandbox(Exception):
    """Bubblewrap is missing, or cannot work here. The text says what to install, and how to go on without."""


class SandboxFailed(RuntimeError):
    """The sandbox, and not the submission, failed: there is nothing to judge, and it should be tried again."""


def why_not(without: str = "the flag --unsafe") -> str:
    """Why submissions cannot be sandboxed here and what to do, or nothing where they can."""
    problem = _problem()
    return HOW_TO.format(problem=problem, without=without) if problem else ""


@functools.cache
def _problem() -> str:
    if sys.platform != "linux":
        return "It exists on Linux only, and this is not Linux."
    program = shutil.which("bwrap")
    if program is None:
        return "It is not installed here."
    # As graded: with every wall, and with all that Python needs behind them
    tried = subprocess.run(
        wrapped([sys.executable, "-S", "-c", "pass"], environment={}),
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if tried.returncode == 0:
        return ""
    said = tried.stderr.strip().splitlines()
    return f"It is installed, but does not work here: {said[-1] if said else tried.returncode}"


def as_user() -> int | None:
    """Whom the sandbox runs as where the grader is root; nobody in particular otherwise."""
    return NOBODY if hasattr(os, "geteuid") and os.geteuid() == 0 else None


def wrapped(
    command: Iterable[str], *, environment: Mapping[str, str], writable: Iterable[Path] = (), start: Path | str = WORK
) -> list[str]:
    """The command, inside the walls.

    environment: the whole of it, beside `defaults`. writable: folders to be seen at their own paths. start: the
    working folder.
    """
    walls = [shutil.which("bwrap") or "bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    walls += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    walls += ["--cap-drop", "ALL"]
    if as_user() is None:
        walls += ["--unshare-user"]
    else:  # root becomes nobody inside (see `sandboxed.become`): a stronger wall than a root who is called nobody
        walls += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    walls += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--size",
        str(LIMITS.file_bytes),
        "--tmpfs",
        "/tmp",
    ]
    for path in _system():
        link = os.path.islink(path)
        walls += [*_parents(path), *(["--symlink", os.readlink(path)] if link else ["--ro-bind", path]), path]
    seen = {str(path): str(path) for path in [*_python()]}
    seen |= {
        str(r): f"{COURSE}/helpers/{r.name}"
        for r in sorted(HELPERS.iterdir())
        if r.name not in (*INSTRUCTORS_ROOMS, "__pycache__")
    }
    seen[str(SANDBOXED)] = SANDBOXED_THERE
    seen |= {str(path): f"{FONTS_THERE}/{path.name}" for path in _font_lists()}
    for here, there in seen.items():
        walls += [*_parents(there), "--ro-bind", here, there]
    for path in writable:
        walls += [*_parents(str(path)), "--bind", str(path), str(path)]
    walls += ["--perms", "1777", "--dir", WORK, "--perms", "1777", "--dir", HOME]
    walls += ["--remount-ro", "/", "--remount-ro", "/dev", "--chdir", str(start)]
    for name, value in {**defaults(), **environment}.items():
        walls += ["--setenv", name, value]
    return [*walls, "--", *command]


def _parents(path: str) -> list[str]:
    # bubblewrap would make them for their owner alone, and the owner is root where the grader is
    above = [str(parent) for parent in reversed(Path(path).parents) if parent != Path("/")]
    return [word for parent in above for word in ("--perms", "0755", "--dir", parent)]


def _system() -> list[str]:
    """What programs of this system need to start, and the fonts that figures are drawn with."""
    wanted = [
        "/usr",
        "/bin",
        "/lib",
        "/lib64",
        "/lib32",
        "/sbin",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        "/etc/fonts",
    ]
    wanted += ["/sys/devices/system/cpu", "/etc/localtime"]
    return [
        path for path in wanted if os.path.lexists(path) and (os.path.islink(path) is False or path.count("/") == 1)
    ]


def _python() -> list[Path]:
    """Where this Python and its packages lie, each once, the outer first."""
    folders = sorted({Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable).resolve().parents[1]})
    return [p for p in folders if not p.is_relative_to("/usr") and p != Path("/")]


def _font_lists() -> list[Path]:
    """matplotlib's lists of this machine's fonts, which take it a second to make again."""
    return sorted(_fonts_here().glob("fontlist-*.json"))


def _fonts_here() -> Path:
    return Path(os.environ.get("MPLCONFIGDIR") or Path.home() / ".cache" / "matplotlib")


def defaults(there: bool = True) -> dict[str, str]:
    """The environment of a submission. there: inside the walls, whose paths are others."""
    one = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # submissions run side by side
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": COURSE if there else str(HELPERS.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "HOME": HOME,
        "USER": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": "/tmp/matplotlib" if there else str(_fonts_here()),
        "COURSE_DEVICE": "cpu",
        "HF_HUB_OFFLINE": "1",
        **dict.fromkeys(one, "1"),
    }


def sandboxed_options(limits: Limits, **more) -> dict:
    """What `sandboxed.py` is told about its task."""
    return {"user": as_user(), "limits": asdict(limits), **more}
