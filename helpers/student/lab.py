"""JupyterLab at the start page, or at a lesson: ``make lab``, on any system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from helpers.course import ROOT
from helpers.student.lessons import path_of
from helpers.student.start_page import write_start_page
from helpers.update import START_PAGE

SETTINGS = Path(__file__).parent / "jupyter"  # of JupyterLab (of nbgrader, Validate alone) and of its kernels
NOT_INSTALLED = (
    "JupyterLab is not installed here. In the course's folder, in an environment of its own:\n"
    "    python -m pip install -c constraints.txt ."
)


def open_lab(lesson: str = "", more: Sequence[str] = ()) -> int:
    """Start JupyterLab in the course's folder; returns its exit status when it has ended.

    lesson: the one to open instead of the start page. more: further arguments, for JupyterLab.
    """
    if find_spec("jupyterlab") is None:
        print(NOT_INSTALLED, file=sys.stderr)
        return 1
    page = path_of(lesson).relative_to(ROOT).as_posix() if lesson else START_PAGE
    if not lesson:
        try:
            write_start_page()
        except OSError as problem:  # a school's folder may be read-only
            print(f"The start page could not be written ({problem.strerror}); JupyterLab opens without it.")
            page = ""
    command, environment = lab_command(page, more), lab_environment(os.environ)
    if os.name == "posix":
        sys.stdout.flush()
        os.execve(command[0], command, environment)
    try:
        return subprocess.run(command, env=environment).returncode
    except KeyboardInterrupt:  # JupyterLab has received it too
        return 0


def lab_command(page: str, more: Sequence[str] = ()) -> list[str]:
    """The command that starts JupyterLab at a file of the course's folder."""
    options = [f"--ServerApp.root_dir={ROOT}", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    options.append(f"--LabApp.default_url=/lab/tree/{page}" if page else "--LabApp.default_url=/lab")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        options.append("--allow-root")
    if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        options.append("--no-browser")  # JupyterLab then prints the address
    return [sys.executable, "-m", "jupyterlab", *options, *more]


def lab_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of JupyterLab and of its kernels.

    Kernels find this folder's helpers wherever they start, and are listed by the course's name; commands of the
    environment are on the path; and a user's own packages and kernels of the same name do not shadow the environment's.
    A kernel in which a lesson has not been started says what to do about it, unless the user has a PYTHONSTARTUP
    already.
    """

    def first(place: Path, name: str) -> str:
        return os.pathsep.join(filter(None, [str(place), environment.get(name, "")]))

    return {
        "PYTHONSTARTUP": str(SETTINGS / "startup.py"),
        **environment,
        "PATH": first(Path(sys.executable).parent, "PATH"),
        "PYTHONPATH": first(ROOT, "PYTHONPATH"),
        "JUPYTER_CONFIG_PATH": first(SETTINGS, "JUPYTER_CONFIG_PATH"),
        "JUPYTER_PATH": first(SETTINGS, "JUPYTER_PATH"),
        "PYTHONNOUSERSITE": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
