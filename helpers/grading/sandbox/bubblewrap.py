"""The walls around a submission: a bubblewrap command, and a sentence for where there is none.

Inside there is Python with what is installed beside it, the rooms of helpers that students have, and empty folders to
write in. There is no network, no process of the machine, no solution, exam key, gradebook, other submission or home.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from helpers.course import HELPERS, LIMITS, Limits

INSIDE = Path(__file__).with_name("inside")  # the package that runs behind the walls
NOBODY = 65534
DISTRIBUTION = "dot-product-to-gpt2"

BUBBLEWRAP, NONE = "bubblewrap", "none"
UNSAFE_LABEL = "none (--unsafe)"

COURSE = "/course"
SCRATCH = "/sandbox/scratch"  # a place of its own: under /tmp, or anywhere else, somebody's Python may lie
HOME, WORK, FONTS = f"{SCRATCH}/home", f"{SCRATCH}/work", f"{SCRATCH}/matplotlib"
SHARED_FOLDERS = ("/tmp", "/dev/shm")  # where any program expects that it may write

# Rooms of helpers that exist inside. The finished parts, which answer exercises, and the shipped keys are none of them.
ROOMS = (
    "__init__.py", "check_log.py", "checking", "course.py", "data", "device.py", "exercises", "experiments.py",
    "lesson.py", "notebooks.py", "plots", "progress.py", "text.py", "theme.py", "threads.py",
)  # fmt: skip

OF_A_LESSON = ("exercises.py", "questions.toml")  # beside them lies the key

SYSTEM = ("/usr", "/bin", "/lib", "/lib64")
# Of a folder that Python is installed in: a virtual environment may be the course's own folder, or a whole home
PARTS_OF_PYTHON = ("bin", "lib", "lib64", "include", "pyvenv.cfg")

TRY = """
import importlib.util, sys
for name in ("torch", "IPython", "helpers.course"):
    if importlib.util.find_spec(name) is None:
        sys.exit(f"{sys.executable} does not find {name} in it.")
"""

HOW_TO = """\
Submissions are strangers' programs, and they are run in a sandbox made by bubblewrap.
{problem}

    Debian, Ubuntu        sudo apt install bubblewrap
    Fedora, RHEL          sudo dnf install bubblewrap
    Arch                  sudo pacman -S bubblewrap
    macOS, Windows        grade in a Linux virtual machine or container

In a container, bubblewrap needs the right to make user namespaces (for Docker: --security-opt seccomp=unconfined)."""
WITHOUT = """
To go on without a sandbox, say so: {without}. Any submission can then read and change whatever you can:
the solutions, the gradebook, your files; and every mark will say that it was made that way."""


class NoSandbox(Exception):
    """Bubblewrap is missing, or cannot work here. The text says what to install, and how to go on without."""


class SandboxFailed(RuntimeError):
    """The sandbox, and not the submission, failed: there is nothing to judge, and it should be tried again."""


def why_not(without: str = "the flag --unsafe") -> str:
    """Why submissions cannot be sandboxed here and what to do, or nothing where they can.

    without: how to go on all the same; "" where there is no way.
    """
    problem = _problem()
    how_to = HOW_TO.format(problem=problem) + (WITHOUT.format(without=without) if without else "")
    return how_to if problem else ""


def is_installed() -> bool:
    """Is there a chance that it works?"""
    return sys.platform == "linux" and shutil.which("bwrap") is not None


@functools.cache
def _problem() -> str:
    if not is_installed():
        return "It is not installed here; it exists on Linux only."
    # As graded: with every wall, as the same user, and with all that Python needs behind them
    options = json.dumps(sandboxed_options(LIMITS))
    command = [sys.executable, "-P", "-m", "inside", "exec", options, sys.executable, "-c", TRY]
    trial = subprocess.run(wrapped(command), capture_output=True, text=True, stdin=subprocess.DEVNULL, errors="replace")
    if trial.returncode == 0:
        return ""
    errors = trial.stderr.strip().splitlines()
    return f"It is installed, but does not work here: {errors[-1] if errors else trial.returncode}"


def as_user() -> int | None:
    """Whom the sandbox runs as where the grader is root; nobody in particular otherwise."""
    return NOBODY if hasattr(os, "geteuid") and os.geteuid() == 0 else None


def wrapped(command: Iterable[str]) -> list[str]:
    """The command, inside the walls, with the environment of `defaults`."""
    walls = [shutil.which("bwrap") or "bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    walls += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    walls += ["--cap-drop", "ALL"]
    if as_user() is None:
        walls += ["--unshare-user"]
    else:  # root becomes nobody inside (`linux.become`): a stronger wall than a root who is called nobody
        walls += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    walls += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", SCRATCH):
        walls += [*_parents(folder), "--perms", "1777", "--size", str(LIMITS.file_bytes), "--tmpfs", folder]
    for folder in (WORK, HOME, FONTS):
        walls += ["--perms", "1777", "--dir", folder]
    for path in _system():
        shown = ["--symlink", os.readlink(path)] if os.path.islink(path) else ["--ro-bind", path]
        walls += [*_parents(path), *shown, path]
    for here, there in _visible().items():
        walls += [*_parents(there), "--ro-bind", here, there]
    for folder in packages_for_tests():
        walls += ["--perms", "0555", "--size", "4096", "--tmpfs", folder]
    for link in _links_to_python():
        walls += [*_parents(link), "--symlink", os.readlink(link), link]
    walls += ["--remount-ro", "/", "--remount-ro", "/dev", "--chdir", WORK]
    for name, value in defaults().items():
        walls += ["--setenv", name, value]
    return [*walls, "--", *command]


def _visible() -> dict[str, str]:
    """What is to be seen inside beside the system's own, and where."""
    visible = {path: path for path in [*_python(), *_packages()]} | course_files()
    fonts = sorted(_fonts_here().glob("fontlist-*.json"))  # which take matplotlib a second to make again
    return visible | {str(path): f"{FONTS}/{path.name}" for path in fonts}


def course_files() -> dict[str, str]:
    """What an answer sees of the course, and where: rooms of helpers, and the package that runs behind the walls."""
    of_lessons = (path for name in OF_A_LESSON for path in HELPERS.glob(f"lessons/*/{name}"))
    rooms = [*(HELPERS / room for room in ROOMS), *of_lessons]
    files = {str(path): f"{COURSE}/helpers/{path.relative_to(HELPERS)}" for path in rooms}
    return files | {str(INSIDE): f"{COURSE}/inside"}


def _stays() -> list[str]:
    """The folders right below one where a submission may write that hold something it needs to see."""
    below = re.compile(rf"({'|'.join(SHARED_FOLDERS)})/[^/]+")
    matches = map(below.match, (*_visible().values(), *_links_to_python()))
    return sorted({match[0] for match in matches if match})


def _parents(path: str) -> list[str]:
    # bubblewrap would make them for their owner alone, and the owner is root where the grader is
    above = [str(parent) for parent in reversed(Path(path).parents) if parent != Path("/")]
    return [word for parent in above for word in ("--perms", "0755", "--dir", parent)]


def _system() -> list[str]:
    """What programs of this system need to start, and the fonts that figures are drawn with."""
    paths = [*SYSTEM, "/lib32", "/sbin", "/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts"]
    paths += ["/sys/devices/system/cpu", "/etc/localtime"]
    return [path for path in paths if os.path.lexists(path) and (os.path.islink(path) is False or path.count("/") == 1)]


def _python() -> list[str]:
    """Where this Python lies: programs and libraries, and nothing else of the folders that they are installed in."""
    folders = sorted({sys.base_prefix, sys.prefix, str(Path(sys.executable).resolve().parents[1])})
    parts = [os.path.join(folder, part) for folder in folders for part in PARTS_OF_PYTHON]
    return [part for part in parts if os.path.exists(part) and not _is_in(part, SYSTEM)]


def _packages() -> list[str]:
    """Where packages lie that are not installed in this Python's own folders: a user's, or those of a .pth file."""
    folders = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    seen = (*SYSTEM, *_python())
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder) and not _is_in(folder, seen)]


@functools.cache
def packages_for_tests() -> tuple[str, ...]:
    """The folders of packages that only the course's tests need: some hold what exercises ask for."""
    needed: set[str] = set()
    rest = _needs(DISTRIBUTION, "grading")
    while rest:
        needed |= rest
        rest = set().union(*map(_needs, rest)) - needed
    folders = set()
    for name in _needs(DISTRIBUTION, "test") - needed:
        with contextlib.suppress(metadata.PackageNotFoundError):
            distribution = metadata.distribution(name)
            tops = {file.parts[0] for file in distribution.files or () if file.suffix == ".py" and len(file.parts) > 1}
            folders |= {str(distribution.locate_file(top)) for top in tops if top.isidentifier()}
    return tuple(folder for folder in sorted(folders) if os.path.isdir(folder))


def _needs(package: str, extra: str = "") -> set[str]:
    """The packages that a package declares to need, with this extra of it; none where it is not installed."""
    try:
        declared = [Requirement(text) for text in metadata.requires(package) or ()]
    except metadata.PackageNotFoundError:
        return set()
    needs = (each for each in declared if each.marker is None or each.marker.evaluate({"extra": extra}))
    return {canonicalize_name(each.name) for each in needs}


def _links_to_python() -> list[str]:
    """The links by which this Python is called, where they lie in no folder that is seen as a whole."""
    links, path, seen = [], sys.executable, (*SYSTEM, *_python())
    while os.path.islink(path):
        if not _is_in(path, seen):
            links.append(path)
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    return links


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _fonts_here() -> Path:
    return Path(os.environ.get("MPLCONFIGDIR") or Path.home() / ".cache" / "matplotlib")


def defaults(there: bool = True) -> dict[str, str]:
    """The environment of a submission. there: inside the walls, whose paths are others."""
    # An answer can start no thread: without a limit, PyTorch would end the process of one that asks it for several
    one = ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join([COURSE if there else str(HELPERS.parent), *_configured_packages()]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "HOME": HOME,
        "USER": "student",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": FONTS if there else str(_fonts_here()),
        "COURSE_DEVICE": "cpu",
        "HF_HUB_OFFLINE": "1",
        **dict.fromkeys(one, "1"),
    }


def _configured_packages() -> list[str]:
    """The folders of packages that Python finds by its environment, or by whose it is, and not by itself."""
    configured = {site.getusersitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    return [folder for folder in _packages() if folder in configured]


def sandboxed_options(limits: Limits, **more) -> dict:
    """What the process inside has to know."""
    return {"user": as_user(), "limits": asdict(limits), "stays": _stays(), **more}
