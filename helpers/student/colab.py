"""A lesson opened alone, as in Colab: its first cell has fetched the course, and this adds what the machine lacks.

What the machine has stays as it is: its PyTorch is the one that knows its GPU. Only what is missing is installed, in
the versions of constraints.txt. Needs Python's own library only.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from helpers.course import ROOT

NOT_FOR_ONE_NOTEBOOK = {"jupyterlab", "nbgrader", "ipykernel"}  # the notebook runs already, and is graded elsewhere
BESIDE = ("nbformat",)  # what comes with nbgrader otherwise


class CannotComplete(RuntimeError):
    """Packages are missing and could not be installed; the text says which."""


def complete(install: Callable[[list[str], Path], bool] | None = None) -> None:
    """Install what the lessons need and this machine lacks, and let other processes find the course too.

    install: takes the requirements and a file of constraints, and says whether it went well; pip by default. Raises
    CannotComplete with the command to give where it did not.
    """
    pins, there = _pins(), _installed()
    missing = [name for name in _needed() if name not in there]
    if missing:
        requirements = [f"{name}=={pins[name]}" if name in pins else name for name in missing]
        print(f"Installing what is missing here: {', '.join(missing)}. It takes a minute or two, once.", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "constraints.txt")
            versions = {**pins, **there}
            path.write_text("".join(f"{name}=={version}\n" for name, version in versions.items() if name in pins))
            if not (install or _pip)(requirements, path):
                raise CannotComplete(f"These could not be installed; pip says why above: {' '.join(requirements)}")
        importlib.invalidate_caches()
    elif "torch" in there and there["torch"].partition("+")[0] != pins.get("torch"):
        print(f"PyTorch here is {there['torch']}; the course is tested with {pins.get('torch')}.")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def _pip(requirements: list[str], constraints: Path) -> bool:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "-c", str(constraints), *requirements]
    return subprocess.run(command).returncode == 0


def _needed() -> list[str]:
    """What the course declares, less what one notebook alone does without."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = [_canonical(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in declared]
    return [*(name for name in names if name not in NOT_FOR_ONE_NOTEBOOK), *BESIDE]


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {_canonical(line.partition("==")[0]): line.partition("==")[2] for line in lines if "==" in line}


def _installed() -> dict[str, str]:
    packages = ((package.metadata["Name"], package.version) for package in metadata.distributions())
    return {_canonical(name): version for name, version in packages if name}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
