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
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from helpers.authoring.publish.repository_url import BUNDLE
from helpers.course import INSTRUCTORS_ROOMS, PACKED_SOLUTIONS, ROOT, write_whole, written_whole
from helpers.student.solutions import pack, solutions_in
from helpers.student.start_page import notebook_text
from helpers.update import RELEASE, START_PAGE, is_lesson

NAME = BUNDLE
HOLDS = (
    ".gitignore README.md AGENTS.md CHANGELOG.md CITATION.cff LICENSE LICENSE-prose Makefile pyproject.toml "
    "constraints.txt environment.yml nbgrader_config.py helpers notebooks "
    "site/end.md site/further.md site/glossary.md site/lessons.toml site/notation.md site/students.md"
).split()
# Parts of the README about grading, authoring and the site, or with links to files that students do not have
NOT_FOR_STUDENTS = re.compile(rb"<!-- not for students -->\n.*?<!-- /not for students -->\n", re.DOTALL)
KEEPS_BACK = (*(f"helpers/{room}/" for room in INSTRUCTORS_ROOMS), "solutions/", "exam/", "tests/")


@dataclass(frozen=True)
class Commit:
    """What a bundle is made of."""

    short: str
    """The first letters of its digest."""
    date: datetime
    """In UTC."""


def last_commit(course: Path = ROOT) -> Commit:
    """The commit that a bundle would be made of. Raises SystemExit with a sentence where there is none."""
    if not (course / ".git").exists():
        raise SystemExit(
            "A release is made of what is committed, and this folder is no git checkout: clone the course."
        )
    short, seconds = _git(course, "show", "-s", "--format=%h %ct", "HEAD").decode().split()
    return Commit(short, datetime.fromtimestamp(int(seconds), UTC))


def bundled_files(course: Path = ROOT) -> dict[str, bytes]:
    """The committed files below HOLDS, except KEEPS_BACK. Raises SystemExit where one of HOLDS is missing."""
    files = {name: data for name, data in committed(course, *HOLDS).items() if not name.startswith(KEEPS_BACK)}
    missing = [name for name in HOLDS if not any(n == name or n.startswith(f"{name}/") for n in files)]
    if missing:
        raise SystemExit(f"The bundle would lack {', '.join(missing)}. Commit them first.")
    return files


def committed(course: Path, *places: str) -> dict[str, bytes]:
    """The files below these places as the last commit has them, by name."""
    there = _git(course, "ls-tree", "--name-only", "-z", "HEAD", "--", *places).decode().split("\0")
    archive = _git(course, "archive", "--format=tar", "HEAD", "--", *filter(None, there)) if any(there) else b""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}


def uncommitted(course: Path = ROOT) -> list[str]:
    """Files of the bundle that differ from the commit, as git's short status names them: " M README.md"."""
    listed = _git(course, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *HOLDS).decode()
    return [entry for entry in listed.split("\0") if entry and not entry[3:].startswith(KEEPS_BACK)]


def committed_solutions(course: Path = ROOT) -> bytes:
    """The solutions of every lesson as they are committed, packed for a students' zip that may show them."""
    files = {Path(name): data for name, data in committed(course, "solutions").items() if name.endswith(".ipynb")}
    notebooks = {path.stem: json.loads(data) for path, data in files.items() if path.stem == path.parent.name}
    return pack({lesson: solutions_in(notebook) for lesson, notebook in notebooks.items()})


def release_files(course: Path = ROOT, *, with_solutions: bool = False) -> dict[str, bytes]:
    """All files of a release by name, with its record first.

    with_solutions: a student then sees an exercise's solution once it is solved or was tried often enough. In such a
    release they can also be looked up: it is for people who learn on their own, not for a graded class.
    """
    solutions = {PACKED_SOLUTIONS: committed_solutions(course)} if with_solutions else {}
    files = {START_PAGE: notebook_text(), **solutions, **bundled_files(course)}
    files["README.md"] = NOT_FOR_STUDENTS.sub(b"", files["README.md"])
    return {RELEASE: record_of(last_commit(course), files), **files}


def make_bundle(folder: Path | None = None, course: Path = ROOT, *, with_solutions: bool = False) -> Path:
    """Write the bundle to dist/ (or `folder`) and return its path. The same commit makes the same bytes.

    With solutions it has another name, so that it never takes the place of the one for a class that is graded.
    """
    moment = max(last_commit(course).date.timetuple()[:6], (1980, 1, 1, 0, 0, 0))  # no zip holds an earlier one
    files = release_files(course, with_solutions=with_solutions)
    words = NAME, version_of(files), "with-solutions" * with_solutions
    path = (folder or course / "dist") / f"{'-'.join(filter(None, words))}.zip"
    with written_whole(path) as unfinished, zipfile.ZipFile(unfinished, "w") as bundle:
        for name, data in files.items():
            member = zipfile.ZipInfo(f"{NAME}/{name}", moment)
            member.external_attr, member.create_system = 0o100644 << 16, 3  # the same bytes on every system
            bundle.writestr(member, data, zipfile.ZIP_DEFLATED)
    return path


def fill_students_repository(folder: Path, course: Path = ROOT) -> str:
    """Make the git checkout in `folder` what students get, and commit that; returns one line about it.

    Hubs pull from it: of the course's own repository students would get the solutions. Its history goes on from release
    to release, so that a pull is a merge. Raises SystemExit with a sentence where `folder` is no place for it.
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
    files, commit = release_files(course), last_commit(course)
    for name in filter(None, _git(folder, "ls-files", "-z").decode().split("\0")):
        (folder / name).unlink(missing_ok=True)
    for name, data in files.items():
        write_whole(folder / name, data)
    _git(folder, "add", "--update")
    _git(folder, "add", "--force", "--", *files)
    if not _git(folder, "status", "--porcelain").strip():
        return f"{folder} has this release already."
    message = f"Release {version_of(files) or commit.short} of {commit.date:%Y-%m-%d}"
    _git(folder, "commit", "--quiet", "-m", message)
    return f"{folder}: {message}. Push it to where the hub pulls from."


def version_of(files: dict[str, bytes]) -> str:
    """The version that a release's pyproject.toml declares; "" where it declares none."""
    declared = re.search(rb'^version = "([\w.+-]+)"$', files["pyproject.toml"], re.MULTILINE)
    return declared[1].decode() if declared else ""


def record_of(commit: Commit, files: dict[str, bytes]) -> bytes:
    """What a copy knows of its release: which one it is, the digest of each file, and the notebooks as released."""
    record = {
        "commit": commit.short,
        "version": version_of(files),
        "date": f"{commit.date:%Y-%m-%d}",
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "notebooks": {name: json.loads(files[name]) for name in files if is_lesson(name)},
    }
    return json.dumps(record, sort_keys=True).encode() + b"\n"


def _git(course: Path, *command: str) -> bytes:
    """What git prints. Raises SystemExit with a sentence where it fails."""
    try:
        done = subprocess.run(["git", "-C", course, *command], capture_output=True)
    except FileNotFoundError:
        raise SystemExit("A release is made from git, and git is not installed: sudo apt install git") from None
    if done.returncode:
        error = done.stderr.decode(errors="replace").strip().splitlines()
        raise SystemExit(f"A release is made of what is committed, and git says: {error[-1] if error else command[0]}")
    return done.stdout
