"""``make update``: a newer release of the course, with the student's work in it.

    python -m helpers.update FROM.zip   a student's copy, from the students' zip
    python -m helpers.update            a git checkout, from where it was cloned

All files become the new release's. Notebooks that the student has worked in are merged (`helpers.merge`); as they were,
they stay beside the new ones under dated names. Every file is written whole, and the record of the release comes last:
after an interruption, the same command finishes the update.

Needs Python's own library only: it has to work where the environment is old, broken or not made yet.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path, PurePosixPath

from helpers.course import ROOT, write_whole
from helpers.merge import Merged, merge, read_notebook, write_notebook
from helpers.notebooks import grade_id, nbgrader_data
from helpers.text import counted
from helpers.trust import is_trusted, rewrite, sign

RELEASE = ".release.json"  # in a student's copy: which release it is, its notebooks, and the digests of its files
START_PAGE = "start.ipynb"  # written anew whenever the course is opened
BACKUPS = "backups"  # what the student had changed, apart from notebooks
REQUIRED = (RELEASE, "Makefile", "helpers/lesson.py")
PERSONAL = (".git", ".venv", "data", "submitted", "exam", "gradebook.db", "experiments", "progress.jsonl", BACKUPS)
# What an update runs is replaced after all other files, and the record last of all
ENGINE = (
    *(
        "helpers/course.py",
        "helpers/notebooks.py",
        "helpers/merge.py",
        "helpers/text.py",
        "helpers/trust.py",
        "helpers/update.py",
    ),
    RELEASE,
)
# What reading a damaged zip raises
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


class CannotUpdate(Exception):
    """The text says why, and what to do."""


def is_lesson(name: str) -> bool:
    """Is that file a student's notebook?"""
    return re.fullmatch(r"notebooks/[^/]+/[^/]+\.ipynb", name) is not None


def set_aside(path: Path, data: bytes) -> Path:
    """Write data under that name, or the first like it that is free; returns the path. A copy made before is reused."""
    free, count = path, 2
    while free.exists() and free.read_bytes() != data:
        free, count = path.with_name(f"{path.stem}-{count}{path.suffix}"), count + 1
    if not free.exists():
        write_whole(free, data)
    return free


def back_up(course: Path, name: str) -> str:
    """Copy a file of the course: a lesson beside itself, any other file into backups/. Returns the copy's name."""
    path = course / name
    beside = path.with_name(f"{path.stem}.before-{date.today()}{path.suffix}")
    target = beside if is_lesson(name) else course / BACKUPS / str(date.today()) / name
    return set_aside(target, path.read_bytes()).relative_to(course).as_posix()


# ------------------------------------------------------------------------------------------ from a zip


@dataclass
class Change:
    """One file of a copy."""

    name: str
    data: bytes | None
    """Its new bytes, None to remove it."""
    changed: bool = False
    """By the student, so that it is backed up."""
    message: str = ""
    details: list[str] = field(default_factory=list)
    """message, details: what to tell the student."""


def update_from(path: Path, course: Path) -> list[str]:
    """Make the copy in `course` the release in a zip. Returns what to tell the student.

    Raises CannotUpdate, before anything is changed, where the file is not a release.
    """
    files = read_release(path)
    record = release_record(files[RELEASE])
    changes = sorted(_changes(files, course), key=lambda change: (change.name in ENGINE, change.name == RELEASE))
    if not changes:
        return [f"This copy is already the release of {record.get('date', 'that zip')}."]
    messages = [f"This copy is now the release of {record.get('date', 'that zip')}."]
    try:
        for change in changes:
            backup = f" As it was: {back_up(course, change.name)}" if change.changed else ""
            messages += filter(None, [change.message + backup, *change.details])
            if change.data is not None:
                write = rewrite if is_lesson(change.name) else write_whole
                write(course / change.name, change.data)
            else:
                (course / change.name).unlink()
                _remove_empty((course / change.name).parent, course)
    except OSError as problem:
        reason = f"{problem.strerror or problem} ({problem.filename})"
        raise CannotUpdate(f"The update stopped: {reason}. No answer is lost: fix that, and run it again.") from None
    return messages + list(_under_other_names(files, course))


def _under_other_names(files: Mapping[str, bytes], course: Path) -> Iterator[str]:
    """A line for each notebook that is a lesson of the release under a name of the student's own: nothing merges it."""
    released = {name: _exercises(read_notebook(data)) for name, data in files.items() if is_lesson(name)}
    for path in sorted((course / "notebooks").rglob("*.ipynb")):
        name = path.relative_to(course).as_posix()
        if name in files or ".before-" in path.name or ".ipynb_checkpoints" in path.parts:
            continue
        written, folder = _exercises(read_notebook(_bytes(path) or b"")), name.rpartition("/")[0]
        lesson = max(released, key=lambda one: (len(released[one] & written), one.startswith(folder)), default="")
        if lesson and written and 2 * len(released[lesson] & written) >= len(released[lesson]):
            yield f"{name} looks like {lesson} under another name. It was not updated: your answers stay in it."


def _exercises(notebook: Mapping | None) -> set[str]:
    return {grade_id(cell) for cell in (notebook or {"cells": []})["cells"] if nbgrader_data(cell).get("solution")}


def read_release(path: Path) -> dict[str, bytes]:
    """The files of a students' zip, by name within the course. Raises CannotUpdate for anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.partition("/")[2]: name for name in archive.namelist() if not name.endswith("/")}
            missing = [name for name in REQUIRED if name not in members]
            strange = [member for name, member in members.items() if not _belongs(name)]
            tops = {name.partition("/")[0] for name in members.values()}
            if missing or strange or len(tops) > 1:
                reason = f"it lacks {', '.join(missing)}" if missing else f"it holds {(strange or sorted(tops))[0]!a}"
                raise CannotUpdate(f"{path} is not the students' zip of this course: {reason}.")
            return {name: archive.read(member) for name, member in members.items()}
    except FileNotFoundError:
        raise CannotUpdate(f"There is no file {path}.") from None
    except (*BROKEN, OSError) as problem:
        raise CannotUpdate(f"{path} cannot be read as a zip ({problem}). Download it again.") from None


def _belongs(name: str) -> bool:
    parts = PurePosixPath(name).parts
    outside = any(part == ".." or set(part) & set("\\:\0") for part in parts)
    return bool(parts) and not outside and parts[0].casefold() not in PERSONAL


def release_record(data: bytes | None) -> dict:
    """What a copy or a zip says of its release: date, version, files and notebooks; {} where it says nothing."""
    try:
        record = json.loads(data or b"{}")
    except ValueError:
        return {}
    complete = isinstance(record, dict) and all(isinstance(record.get(key), dict) for key in ("files", "notebooks"))
    return record if complete else {}


def _changes(files: Mapping[str, bytes], course: Path) -> Iterator[Change]:
    """What has to be done to a copy so that it holds these files and the student's work."""
    old = release_record(_bytes(course / RELEASE))
    digests, notebooks = old.get("files", {}), old.get("notebooks", {})
    for name, data in files.items():
        current = _bytes(course / name)
        if current is None:
            yield Change(name, data, message=f"New: {name}" if is_lesson(name) else "")
            continue
        if current == data or name == START_PAGE:
            continue
        changed = name != RELEASE and _digest(current) != digests.get(name)
        if is_lesson(name) and changed:
            change = _merged_lesson(name, current, data, notebooks.get(name))
            if change.data != current:
                yield change
        else:
            message = f"You had changed {name}." if old else f"{name} was replaced."
            yield Change(name, data, changed, message if changed else "")
    for name in sorted(filter(_belongs, digests.keys() - files.keys())):
        current = _bytes(course / name)
        changed = current is not None and _digest(current) != digests[name]
        gone = f"{name} is no longer part of the course."
        if changed and is_lesson(name):
            yield Change(name, current, message=f"{gone} You have worked in it, so it stays.")
        elif current is not None:
            yield Change(name, None, changed, f"{gone} You had changed it." if changed else "")


def _merged_lesson(name: str, current: bytes, data: bytes, base: Mapping | None) -> Change:
    """What becomes of a lesson that the student has changed."""
    mine = read_notebook(current)
    if mine is None:
        return Change(name, data, True, f"{name} could not be read as a notebook, and was replaced.")
    release = read_notebook(data)
    assert release is not None, "a release's lessons are notebooks"
    merged = merge(mine, release, base)
    new = write_notebook(merged.notebook) if merged.has_work else data
    return Change(name, new, True, f"{name}: {counted(len(merged.answers), 'answer')} kept.", _details(merged))


def _details(merged: Merged) -> list[str]:
    lines = []
    if merged.added:
        lines.append(f"    {counted(merged.added, 'cell')} of your own kept")
    if merged.withdrawn:
        lines.append(f"    no longer an exercise, your answer is in the file above: {', '.join(merged.withdrawn)}")
    if merged.dropped:
        lines.append(f"    changed by you and by the release, see the file above: {counted(merged.dropped, 'cell')}")
    return lines


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _remove_empty(folder: Path, course: Path) -> None:
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    while folder != course and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


# ------------------------------------------------------------------------------------- a git checkout


def update_checkout(course: Path) -> list[str]:
    """Fetch and merge what is new. Notebooks that both sides have changed are merged cell by cell.

    Raises CannotUpdate, with nothing changed, where git cannot merge.
    """
    no_upstream = "This checkout follows no branch of another repository: git branch --set-upstream-to=origin/main"
    upstream = _git(course, "rev-parse", "--abbrev-ref", "@{upstream}", hint=no_upstream).strip()
    _git(course, "fetch", "--quiet", hint="What is new could not be fetched. Is there a network?")
    if not _git(course, "rev-list", f"HEAD..{upstream}").strip():
        return ["There is nothing new."]
    base, stashed = _git(course, "merge-base", "HEAD", upstream).strip(), _git(course, "stash", "list")
    names = sorted(_changed(course, base) & _changed(course, base, upstream))
    answers = {name: (course / name).read_bytes() for name in names}
    trusted = [name for name in names if is_trusted(course / name)]
    copies = {name: back_up(course, name) for name in names}
    try:
        if names:
            _git(course, "checkout", "--quiet", "HEAD", "--", *names)
        _merge_commits(course, upstream)
    except CannotUpdate as problem:
        with suppress(CannotUpdate):  # where git did not begin, there is nothing to take back
            _git(course, "merge", "--abort")
        for name in names:
            write_whole(course / name, answers[name])
            (course / copies[name]).unlink()
        raise CannotUpdate(f"git could not merge, and nothing was changed. It says:\n{problem}") from None
    for name in names:
        release, before = (read_notebook(_git(course, "show", f"{c}:{name}").encode()) for c in (upstream, base))
        mine = read_notebook(answers[name])
        if mine is not None and release is not None:
            write_whole(course / name, write_notebook(merge(mine, release, before).notebook))
            if name in trusted:
                sign(course / name)
    messages = [f"This checkout is now at {_git(course, 'show', '-s', '--format=%h of %cs', 'HEAD').strip()}."]
    messages += [f"{name}: your answers are kept. As it was: {copy}" for name, copy in copies.items()]
    if _git(course, "stash", "list") != stashed:
        messages.append("Some of your own changes do not fit what is new. They are safe in `git stash list`.")
    return messages


def _merge_commits(course: Path, upstream: str) -> None:
    """git's merge of what is committed, which asks `helpers.merge` about notebooks: hub/gitconfig says the same."""
    with tempfile.TemporaryDirectory() as scratch:
        attributes = Path(scratch, "attributes")
        attributes.write_text("notebooks/*/*.ipynb merge=lesson\n")
        driver = f"merge.lesson.driver='{sys.executable}' -m helpers.merge %O %A %B"
        settings = ("-c", f"core.attributesFile={attributes}", "-c", driver)
        _git(course, *settings, "merge", "--quiet", "--no-edit", "--autostash", upstream)


def _changed(course: Path, *commits: str) -> set[str]:
    """The lessons that differ between two commits, or between one and the files as they are."""
    listed = _git(course, "diff", "--no-renames", "--diff-filter=M", "--name-only", "-z", *commits, "--", "notebooks")
    return set(filter(is_lesson, listed.split("\0")))


def _git(course: Path, *command: str, hint: str = "") -> str:
    """What git prints. Raises CannotUpdate with git's own words and the hint where it fails."""
    try:
        done = subprocess.run(["git", "-C", course, *command], capture_output=True, encoding="utf-8")
    except FileNotFoundError:
        raise CannotUpdate("This is a git checkout, and git is not installed.") from None
    if done.returncode:
        raise CannotUpdate(f"{done.stdout}{done.stderr}{hint}".strip())
    return done.stdout


# ---------------------------------------------------------------------------------------- the command


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says. Returns an exit status."""
    parser = argparse.ArgumentParser(prog="python -m helpers.update", description=__doc__)
    parser.add_argument("zip", nargs="?", type=Path, help="the newer release; none for a git checkout")
    args = parser.parse_args(arguments)
    try:
        print("\n".join(_update(args.zip, ROOT)))
    except CannotUpdate as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("The update was interrupted. Run it again to finish it; no answer is lost.", file=sys.stderr)
        return 1
    return 0


def _update(path: Path | None, course: Path) -> list[str]:
    if path is None and not (course / ".git").exists():
        raise CannotUpdate("Say which release to take: make update FROM=from-the-dot-product-to-gpt-2.zip")
    if path is None:
        return update_checkout(course)
    if (course / "solutions").exists() or (course / "tests").exists():
        raise CannotUpdate("This is the course's repository, which git updates: make update, without FROM.")
    return update_from(path, course)


if __name__ == "__main__":
    sys.exit(main())
