"""The students' bundle: everything a student needs, and nothing that gives an answer away.

Names and bytes both come from the last commit, never from the working folder: there an instructor may have worked
in notebooks/, or have an exam key lying about.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from helpers.authoring.repository_url import BUNDLE
from helpers.course import INSTRUCTORS_ROOMS, ROOT
from helpers.student.solutions import PACKED, pack, solutions_in
from helpers.student.start_page import notebook_text
from helpers.update import RELEASE, START_PAGE, is_lesson

NAME = BUNDLE
HOLDS = (
    ".gitignore",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
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
    "site/lessons.toml",
    "site/notation.md",
    "site/students.md",
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


def committed_solutions(course: Path = ROOT) -> bytes:
    """The solutions of every lesson as they are committed, packed for a students' zip that is to show them."""
    archive = _git(course, "archive", "--format=tar", "HEAD", "--", "solutions")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = [name for name in tar.getnames() if Path(name).stem == Path(name).parent.name]
        notebooks = {Path(name).stem: tar.extractfile(name).read() for name in names if name.endswith(".ipynb")}
    return pack({lesson: solutions_in(json.loads(data)) for lesson, data in sorted(notebooks.items())})


def version_of(files: dict[str, bytes]) -> str:
    """The version that the files' own declaration names; "" where it names none."""
    named = re.search(rb'^version = "([\w.+-]+)"$', files["pyproject.toml"], re.MULTILINE)
    return named[1].decode() if named else ""


def make_bundle(folder: Path | None = None, course: Path = ROOT, *, with_solutions: bool = False) -> Path:
    """Write the bundle to dist/ (or `folder`) and return its path. The same commit makes the same bytes.

    with_solutions: a student then sees an exercise's solution once it is solved or was tried often enough. Whoever
    looks for the solutions in such a zip finds them: it is for people who learn on their own, not for a graded class.
    """
    commit, files = last_commit(course), bundled_files(course)
    if with_solutions:
        files = {PACKED: committed_solutions(course), **files}
    files = {START_PAGE: notebook_text(), **files}
    files = {RELEASE: record_of(commit, files), **files}
    folder = folder or course / "dist"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'-'.join(filter(None, (NAME, version_of(files))))}.zip"
    unfinished = path.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in files.items():
            about = zipfile.ZipInfo(f"{NAME}/{name}", max(commit.date.timetuple()[:6], (1980, 1, 1, 0, 0, 0)))
            about.compress_type, about.external_attr, about.create_system = zipfile.ZIP_DEFLATED, 0o100644 << 16, 3
            bundle.writestr(about, data)
    unfinished.replace(path)
    return path


def fill_students_repository(folder: Path, course: Path = ROOT) -> str:
    """Make the git checkout in `folder` what students get, and commit that; returns one line about it.

    It is what hubs pull from: of the course's own repository students would get the solutions. Its history goes on from
    release to release, so that a pull is a merge. Raises SystemExit with a sentence where `folder` is no place for it.
    """
    if (folder / "solutions").exists() or folder.resolve() == course.resolve():
        raise SystemExit(f"{folder} holds the solutions: students pull from a repository of their own.")
    if not (folder / ".git").exists():
        if folder.is_dir() and any(folder.iterdir()):
            raise SystemExit(f"{folder} is neither empty nor a git checkout.")
        folder.mkdir(parents=True, exist_ok=True)
        _git(folder, "init", "--quiet", "--initial-branch=main")
    elif _git(folder, "status", "--porcelain").strip():
        raise SystemExit(f"{folder} has changes that are not committed.")
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(make_bundle(Path(scratch), course)) as archive:
        files = {member.filename.partition("/")[2]: archive.read(member) for member in archive.infolist()}
    for name in filter(None, _git(folder, "ls-files", "-z").decode().split("\0")):
        (folder / name).unlink(missing_ok=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    _git(folder, "add", "--update")
    _git(folder, "add", "--force", "--", *files)
    if not _git(folder, "status", "--porcelain").strip():
        return f"{folder} has this release already."
    commit = last_commit(course)
    said = f"Release {version_of(files) or commit.short} of {commit.date:%Y-%m-%d}"
    _git(folder, "commit", "--quiet", "-m", said)
    return f"{folder}: {said}. Push it to where the hub pulls from."


def record_of(commit: Commit, files: dict[str, bytes]) -> bytes:
    """What a copy knows of its release: which one it is, the digest of each file, and the notebooks as released."""
    about = {
        "commit": commit.short,
        "version": version_of(files),
        "date": f"{commit.date:%Y-%m-%d}",
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "notebooks": {name: json.loads(files[name]) for name in files if is_lesson(name)},
    }
    return json.dumps(about, sort_keys=True).encode() + b"\n"


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
