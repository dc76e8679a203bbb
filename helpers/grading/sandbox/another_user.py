"""Running answers as another user, where bubblewrap cannot make walls: in a container that is root's, as Gradescope's.

What remains of the sandbox: a user without rights, the filter of system calls (no network, no program, process or
thread, no signal), the limits, and a fresh process for each exercise. What is lost: walls. The answer sees the
container's files as far as its user may read them, so that everything of value has to be root's alone.
"""

from __future__ import annotations

import compileall
import os
import platform
import shutil
import stat
from pathlib import Path

from helpers.grading.sandbox.bubblewrap import COURSE, FONTS, HOME, NOBODY, SCRATCH, SHARED_FOLDERS, WORK, course_files
from helpers.grading.sandbox.inside.linux import PROCESSORS

ANOTHER_USER = "another user"
LABEL = "another user, without bubblewrap"
NOT_SEARCHED = ("/proc", "/sys", "/dev")
NEW_PLACES = ("/autograder", "/run", "/var")
STAY_WRITABLE = (*SHARED_FOLDERS, "/dev/mqueue")  # emptied between two answers, or closed by the filter


def why_not() -> str:
    """Why answers cannot run as another user here, or ""."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "Answers run as another user only where the grader is root."
    if platform.machine() not in PROCESSORS:
        return f"The filter of system calls does not know this processor: {platform.machine()}."
    if not Path(COURSE, "inside").is_dir():
        return f"{COURSE} is not prepared: `python -m helpers.grading.gradescope prepare` does it."
    return ""


def prepare() -> None:
    """Make the folders that an answer runs in, and close every other place that anybody could write to. As root."""
    shutil.rmtree(COURSE, ignore_errors=True)
    for here, there in course_files().items():
        Path(there).parent.mkdir(parents=True, exist_ok=True)
        unneeded = shutil.ignore_patterns("__pycache__")
        shutil.copytree(here, there, ignore=unneeded) if os.path.isdir(here) else shutil.copyfile(here, there)
    compileall.compile_dir(COURSE, quiet=2)
    for path in (Path(COURSE), *Path(COURSE).rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for folder in (SCRATCH, WORK, HOME, FONTS):
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder).chmod(0o755)
    for folder in (WORK, HOME, FONTS):
        os.chown(folder, NOBODY, NOBODY)
    close_writable(Path("/"))


def close_new_places() -> None:
    """The same for folders that a platform may make anew for each container. As root, before a submission is graded."""
    for folder in NEW_PLACES:
        if Path(folder).is_dir():
            close_writable(Path(folder))


def close_writable(top: Path) -> list[str]:
    """Take from everybody the right to write, in all folders and files of this disk. Returns which had it."""
    closed, disk = [], top.stat().st_dev
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if _searched(os.path.join(folder, name), disk)]
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            mode = os.lstat(path).st_mode
            if mode & stat.S_IWOTH and not stat.S_ISLNK(mode):
                os.chmod(path, stat.S_IMODE(mode) & ~stat.S_IWOTH)
                closed.append(path)
    return closed


def _searched(path: str, disk: int) -> bool:
    return path not in (*NOT_SEARCHED, *STAY_WRITABLE) and not os.path.islink(path) and os.stat(path).st_dev == disk
