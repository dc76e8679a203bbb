"""The students' bundle: everything a student needs, and nothing that gives an answer away.

Names and bytes both come from the last commit, never from the working folder: there an instructor may have worked
in notebooks/, or have an exam key lying about.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from helpers.course import INSTRUCTORS_ROOMS, ROOT
from helpers.updating import RELEASE, cell_digests, is_lesson

NAME = "from-the-dot-product-to-gpt-2"
HOLDS = (
    "README.md",
    "LICENSE",
    "LICENSE-prose",
    "Makefile",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "nbgrader_config.py",
    "helpers",
    "notebooks",
    "site/glossary.md",
    "site/notation.md",
)
KEEPS_BACK = (*(f"helpers/{room}/" for room in INSTRUCTORS_ROOMS), "solutions/", "exam/", "tests/")
CHANGES = {"M": "changed", "T": "changed", "D": "deleted", "A": "new", "R": "renamed", "C": "new", "U": "in conflict"}


@dataclass(frozen=True)
class Commit:
    """What the bundle is made of. short: the first letters of its digest. date: when it was made, in UTC."""

    short: str
    date: datetime


def last_commit(course: Path = ROOT) -> Commit:
    """The commit that a bundle would be made of. Raises SystemExit with a sentence where there is none."""
    if not (course / ".git").exists():
        raise SystemExit(
            "A release is made of what is committed, and this folder is no git checkout: clone the course."
        )
    short, seconds = _git(course, "show", "-s", "--format=%h %ct", "HEAD").decode().split()
    return Commit(short, datetime.fromtimestamp(int(seconds), UTC))


def bundled_files(course: Path = ROOT) -> dict[str, bytes]:
    """The files of the bundle as they are committed: those below HOLDS, less what is kept back."""
    tree = _git(course, "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", *HOLDS).decode()
    names = [name for name in tree.split("\0") if name and not name.startswith(KEEPS_BACK)]
    missing = [name for name in HOLDS if not any(n == name or n.startswith(f"{name}/") for n in names)]
    if missing:
        raise SystemExit(f"The bundle would lack {', '.join(missing)}. Commit them first.")
    archive = _git(course, "archive", "--format=tar", "HEAD", "--", *HOLDS)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {name: tar.extractfile(name).read() for name in sorted(names)}


def uncommitted(course: Path = ROOT) -> list[str]:
    """What the working folder holds otherwise than the commit, of what goes into the bundle: "changed  README.md"."""
    listed = _git(course, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *HOLDS).decode()
    found = []
    for entry in filter(None, listed.split("\0")):
        state, name = entry[:2].strip(), entry[3:]
        if not name.startswith(KEEPS_BACK):
            found.append(f"{'not in git' if state == '??' else CHANGES.get(state[-1], 'changed'):<11}{name}")
    return found


def make_bundle(folder: Path | None = None, course: Path = ROOT) -> Path:
    """Write the bundle to dist/ (or `folder`) and return its path. The same commit makes the same bytes."""
    commit, files = last_commit(course), bundled_files(course)
    files = {RELEASE: _about(commit, files), **files}
    folder = folder or course / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.zip"
    unfinished = path.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in files.items():
            about = zipfile.ZipInfo(f"{NAME}/{name}", max(commit.date.timetuple()[:6], (1980, 1, 1, 0, 0, 0)))
            about.compress_type, about.external_attr, about.create_system = zipfile.ZIP_DEFLATED, 0o100644 << 16, 3
            bundle.writestr(about, data)
    unfinished.replace(path)
    return path


def _about(commit: Commit, files: dict[str, bytes]) -> bytes:
    """What `make update` asks a copy: which release it is, and how each file and each cell was when it was released."""
    about = {
        "commit": commit.short,
        "date": f"{commit.date:%Y-%m-%d}",
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "cells": {name: cell_digests(json.loads(files[name])) for name in files if is_lesson(name)},
    }
    return json.dumps(about, indent=1, sort_keys=True).encode() + b"\n"


def _git(course: Path, *command: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", course, *command], capture_output=True)
    except FileNotFoundError:
        raise SystemExit(
            "A release is made of what is committed, and git is not installed: sudo apt install git"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise SystemExit(f"A release is made of what is committed, and git says: {said[-1] if said else command[0]}")
    return done.stdout
