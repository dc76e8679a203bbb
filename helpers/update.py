"""``make update``: a newer release of the course in place of this one, and every answer where it was.

    python -m helpers.update FROM.zip   a student's copy, from the students' zip
    python -m helpers.update            a git checkout, from where it was cloned

All files become the new release's. A notebook that its student has worked in is merged: the release's cells, with the
student's answers in the solution cells, the student's own cells where they stood, and the student's changes to
passages that the release left alone. The notebook as it was stays beside it under a dated name.

Needs Python's own library only: it has to work where the environment is old, broken or not made yet.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path, PurePosixPath

from helpers.course import ROOT, STUB, write_whole

RELEASE = ".release.json"  # in a student's copy: which release it is, and how its files and cells were
START_PAGE = "start.ipynb"  # whoever opens the course writes it anew
UNFINISHED = ".update"  # what is unpacked before anything is replaced; gone when the update is done
PLAN = "plan.json"
BACKUPS = "backups"  # for other files than notebooks that somebody had changed
MUST_HOLD = ("Makefile", "pyproject.toml", "constraints.txt", "helpers/course.py", "helpers/lesson.py")
# What belongs to the person who works here, whatever a zip says
NEVER_TOUCHED = (
    *(".git", ".venv", "data", "submitted", "exam", "gradebook.db", "experiments", "progress.jsonl"),
    *(BACKUPS, UNFINISHED),
)
LARGEST = 256 << 20  # bytes, unpacked: a release has some 20 MB


class CannotUpdate(Exception):
    """Nothing was changed. The text says why, and what to do."""


# ----------------------------------------------------------------------------------------------- notebooks


def is_lesson(name: str) -> bool:
    """Is that file a student's notebook?"""
    return re.fullmatch(r"notebooks/[^/]+/[^/]+\.ipynb", name) is not None


def cell_digest(cell: Mapping) -> str:
    """Two cells are alike when their digests are: by what kind they are and what they say."""
    return hashlib.sha256(f"{cell.get('cell_type')}\n{_text(cell).rstrip()}".encode(errors="replace")).hexdigest()[:16]


def cell_digests(notebook: Mapping) -> dict[str, str]:
    """A released notebook's cells: digest by the cell's id."""
    return {cell.get("id", f"#{place}"): cell_digest(cell) for place, cell in enumerate(notebook["cells"])}


@dataclass
class Merged:
    """A student's work in a new release of its notebook.

    kept: the exercises whose answers are in it. lost: answered exercises that the release no longer asks; their
    answers are in the backup alone. own: how many cells of the student's came along. dropped: how many changes of
    theirs did not, because the release changed or removed the same cell. worked_in: was there anything to keep?
    """

    notebook: dict
    kept: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    own: int = 0
    dropped: int = 0

    @property
    def worked_in(self) -> bool:
        return bool(self.kept or self.lost or self.own or self.dropped)


def merge(mine: Mapping, release: Mapping, before: Mapping[str, str] | None) -> Merged:
    """The new release of a notebook with a student's work in it.

    mine: the student's notebook. release: the new one. before: the cells of the release that the student worked in
    (`cell_digests`), or None where that is not known: then what says the stub's words counts as not begun.
    """
    merged = Merged(copy.deepcopy(dict(release)))
    new = {_name(cell): cell for cell in merged.notebook["cells"]}
    released = {cell_digest(cell) for cell in release["cells"]} | set((before or {}).values())
    answered: set[str] = set()
    after: dict[str, list[dict]] = {}  # the student's own cells, by the cell of the release that they follow
    place = ""
    for cell in mine["cells"]:
        name, text = _name(cell), _text(cell)
        if name in new:
            place = name
        if cell_digest(cell) in released:
            continue
        if _asks(cell) or (name in new and _asks(new[name])):
            if not _begun(cell, before) or name in answered:
                continue
            answered.add(name)
            if name in new:
                _say(new[name], text)
                merged.kept.append(name)
            else:
                merged.lost.append(name)
        elif _graded(cell) or (name in new and _graded(new[name])):
            continue  # the first cell and the checks are the course's
        elif name in new:
            _say(new[name], text)
            merged.own += 1
        elif before is not None and name in before:
            merged.dropped += 1
        elif text.strip():
            after.setdefault(place, []).append(_as_own(cell, new))
            merged.own += 1
    if after:
        cells = [*after.get("", [])]
        for cell in merged.notebook["cells"]:
            cells += [cell, *after.get(_name(cell), [])]
        merged.notebook["cells"] = cells
    return merged


def _text(cell: Mapping) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(map(str, source))


def _say(cell: dict, text: str) -> None:
    cell["source"] = text.splitlines(keepends=True)


def _about(cell: Mapping) -> Mapping:
    metadata = cell.get("metadata")
    about = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    return about if isinstance(about, Mapping) else {}


def _graded(cell: Mapping) -> bool:
    return bool(_about(cell).get("grade_id"))


def _asks(cell: Mapping) -> bool:
    return _graded(cell) and bool(_about(cell).get("solution"))


def _name(cell: Mapping) -> str:
    """A graded cell's grade id, which is its id too in a release; any other cell's id."""
    return str(_about(cell).get("grade_id") or cell.get("id") or cell_digest(cell))


def _begun(cell: Mapping, before: Mapping[str, str] | None) -> bool:
    return before is not None or f'NotImplementedError("{STUB}")' not in _text(cell)


def _as_own(cell: Mapping, taken: Mapping[str, object]) -> dict:
    made = copy.deepcopy(dict(cell))
    metadata = made.get("metadata")
    metadata = metadata.items() if isinstance(metadata, Mapping) else ()
    made["metadata"] = {key: value for key, value in metadata if key != "nbgrader"}
    if made.get("cell_type") == "code":
        made["outputs"], made["execution_count"] = [], None
    return made


def read_notebook(data: bytes) -> dict | None:
    """A notebook's JSON; None where the bytes are no notebook of today's format."""
    try:
        notebook = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    return notebook if isinstance(cells, list) and all(isinstance(cell, dict) for cell in cells) else None


def write_notebook(notebook: Mapping) -> bytes:
    """The bytes of a notebook, as Jupyter writes them."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace") + b"\n"


# ------------------------------------------------------------------------------------------------ the zip


def read_release(path: Path) -> dict[str, bytes]:
    """The files of a students' zip, by name within the course. Raises CannotUpdate for anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            names = _names_in_the_course(members, path)
            if sum(member.file_size for member in members) > LARGEST:
                raise CannotUpdate(
                    f"{path} would unpack to more than {LARGEST >> 20:,} MB: it is no release of the course."
                )
            files = {name: archive.read(member) for name, member in names.items()}
    except FileNotFoundError:
        raise CannotUpdate(f"There is no file {path}.") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as problem:
        raise CannotUpdate(f"{path} is no zip, or a broken one ({problem}). Fetch it again.") from None
    except zlib.error as problem:
        raise CannotUpdate(f"{path} is broken ({problem}). Fetch it again.") from None
    except OSError as problem:
        raise CannotUpdate(f"{path} cannot be read: {problem.strerror or problem}.") from None
    lacking = [name for name in MUST_HOLD if name not in files]
    if lacking or not any(map(is_lesson, files)):
        lacks = ", ".join(lacking) or "notebooks"
        raise CannotUpdate(f"{path} is not the students' zip of this course: it lacks {lacks}.")
    broken = [name for name in files if is_lesson(name) and read_notebook(files[name]) is None]
    if broken:
        raise CannotUpdate(f"{path} is broken: {broken[0]} in it is no notebook. Fetch it again.")
    return files


def _names_in_the_course(members: Iterable[zipfile.ZipInfo], path: Path) -> dict[str, zipfile.ZipInfo]:
    """Member by name, without the one folder around all. Refuses names that lead elsewhere, and links."""
    found: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        parts = PurePosixPath(member.filename).parts
        kind = stat.S_IFMT(member.external_attr >> 16)
        inside = parts[1:]
        if (
            len(parts) < 2
            or member.filename.startswith("/")
            or any(part in ("..", ".") or "\\" in part or ":" in part or "\0" in part for part in parts)
            or kind not in (0, stat.S_IFREG)
            or inside[0].casefold() in NEVER_TOUCHED
        ):
            raise CannotUpdate(
                f"{path} is not the students' zip of this course: {member.filename!a} has no place in it."
            )
        name = "/".join(inside)
        if name.casefold() in {other.casefold() for other in found}:
            raise CannotUpdate(f"{path} is not the students' zip of this course: it holds {name} twice.")
        found[name] = member
    tops = {PurePosixPath(member.filename).parts[0] for member in found.values()}
    if len(tops) != 1:
        raise CannotUpdate(f"{path} is not the students' zip of this course: one folder stands around all of that.")
    return found


# --------------------------------------------------------------------------------------------- the update


@dataclass
class Plan:
    """What is to be done to a copy, decided before anything is done.

    write: names of the files that await in UNFINISHED/new. keep: where to copy a file to before it goes. remove: files
    of the old release that the new one has no more. says: what to tell the student at the end.
    """

    write: list[str] = field(default_factory=list)
    keep: dict[str, str] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    says: list[str] = field(default_factory=list)


def update_from(path: Path, course: Path) -> list[str]:
    """Make the copy in `course` the release in a zip. Returns what to tell the student.

    Everything is unpacked and merged beside the copy first; an update that is interrupted until then has changed
    nothing, and one that is interrupted after that is finished by the next `make`, whatever it is to make.
    """
    files = read_release(path)
    if (course / UNFINISHED / PLAN).is_file():
        finish(course)
    with _in_words():
        plan = _prepare(files, course)
        return finish(course) if plan.write or plan.remove else _nothing_to_do(files, course)


def _nothing_to_do(files: Mapping[str, bytes], course: Path) -> list[str]:
    shutil.rmtree(course / UNFINISHED, ignore_errors=True)
    return [f"This copy is the release of {_release_in(files.get(RELEASE)).get('date', 'that zip')} already."]


def _prepare(files: Mapping[str, bytes], course: Path) -> Plan:
    """Decide, and put all that is to be written into UNFINISHED; the plan's file comes last, and makes it count."""
    stage, plan = course / UNFINISHED, Plan()
    shutil.rmtree(stage, ignore_errors=True)
    old, release = _release_in(_bytes(course / RELEASE)), _release_in(files.get(RELEASE))
    plan.says.append(f"This copy is now the release of {release['date']}." if release else "This copy is updated.")
    for name, data in files.items():
        _require_room_for(name, course)
        was = _bytes(course / name)
        if was == data or (name == START_PAGE and was is not None):
            continue
        if is_lesson(name):
            data = _with_the_answers(name, was, data, old, course, plan)
        elif was is not None and old and _digest(was) != old["files"].get(name):
            plan.keep[name] = f"{BACKUPS}/{date.today()}/{name}"
            plan.says.append(f"You had changed {name}. As it was: {plan.keep[name]}")
        if was != data:
            write_whole(stage / "new" / name, data)
            plan.write.append(name)
    _plan_for_what_is_gone(files, old, course, plan)
    plan.write.sort(key=lambda name: name == RELEASE)  # last: what it says of a copy holds from then on
    _stage_the_engine(stage)
    write_whole(stage / PLAN, json.dumps(vars(plan)))
    return plan


def _require_room_for(name: str, course: Path) -> None:
    for path in (course / name, *(course / name).parents):
        if path == course:
            return
        if path.is_dir() if path == course / name else path.exists() and not path.is_dir():
            kind = "folder" if path.is_dir() else "file"
            raise CannotUpdate(f"{path.relative_to(course)} is a {kind} here, and not in the course. Move it away.")


def _with_the_answers(name: str, was: bytes | None, data: bytes, old: dict, course: Path, plan: Plan) -> bytes:
    """The new bytes of a notebook; the plan keeps the old ones where there is anything in them."""
    if was is None:
        plan.says.append(f"New: {name}")
        return data
    mine, release = read_notebook(was), read_notebook(data)
    merged = merge(mine, release, old.get("cells", {}).get(name, {}) if old else None) if mine else None
    new = write_notebook(merged.notebook) if merged and merged.worked_in else data
    if new != was and _touched(name, was, mine, merged, old):
        plan.keep[name] = _kept_beside(course, name)
        plan.says += _told(name, merged, plan.keep[name])
    return new


def _touched(name: str, was: bytes, mine: Mapping | None, merged: Merged | None, old: dict) -> bool:
    if old:
        return _digest(was) != old["files"].get(name)
    return merged is None or merged.worked_in or any(cell.get("outputs") for cell in mine["cells"])


def _plan_for_what_is_gone(files: Mapping[str, bytes], old: dict, course: Path, plan: Plan) -> None:
    """Files of the old release that are not in the new one go; what somebody has changed stays, or is kept."""
    known = old.get("files", {})
    for name in sorted(known.keys() - files.keys() - {RELEASE}):
        was = _bytes(course / name) if _is_inside(name) else None
        if was is None:
            continue
        if is_lesson(name) and _digest(was) != known[name]:
            plan.says.append(f"{name} is no longer part of the course. You have worked in it, so it stays.")
            continue
        if _digest(was) != known[name]:
            plan.keep[name] = f"{BACKUPS}/{date.today()}/{name}"
            plan.says.append(f"{name} is no longer part of the course. As you had changed it: {plan.keep[name]}")
        plan.remove.append(name)
    if not old:
        plan.says += [f"{name} is not in this release. It stays." for name in _lessons_in(course) if name not in files]


def _told(name: str, merged: Merged | None, kept: str) -> list[str]:
    if merged is None:
        return [f"{name} could not be read as a notebook, and was replaced. As it was: {kept}"]
    lines = [f"{name}: {_count(len(merged.kept), 'answer')} kept. As it was: {kept}"]
    if merged.own:
        lines.append(f"    {_count(merged.own, 'cell')} of your own came along")
    if merged.lost:
        lines.append(f"    no longer asked, your answer is in the file above: {', '.join(merged.lost)}")
    if merged.dropped:
        lines.append(
            f"    changed by you and by the release, yours is in the file above: {_count(merged.dropped, 'cell')}"
        )
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def finish(course: Path) -> list[str]:
    """Do what the plan says, from wherever it was interrupted. Returns what to tell the student."""
    stage = course / UNFINISHED
    plan = Plan(**json.loads((stage / PLAN).read_text(encoding="utf-8")))
    with _in_words(), _not_interrupted():
        for name in plan.write:
            staged = stage / "new" / name
            if not staged.exists():
                continue  # done before the interruption
            target = course / name
            _keep(course, name, plan)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged, target)
        for name in plan.remove:
            _keep(course, name, plan)
            (course / name).unlink(missing_ok=True)
            _remove_empty((course / name).parent, course)
        shutil.rmtree(stage)
    return plan.says


def _keep(course: Path, name: str, plan: Plan) -> None:
    """The file as it is now, under the name that the plan has for it, or one like it where that is taken."""
    target, kept = course / name, plan.keep.get(name)
    if not kept or not target.is_file():
        return
    path = _free(course / kept, target.read_bytes())
    if not path.exists():
        write_whole(path, target.read_bytes())


def _free(path: Path, data: bytes) -> Path:
    """That path, or the first like it that is free or holds these bytes already."""
    tried, count = path, 2
    while tried.exists() and tried.read_bytes() != data:
        tried, count = path.with_name(f"{path.stem}-{count}{path.suffix}"), count + 1
    return tried


def _kept_beside(course: Path, name: str) -> str:
    path = course / name
    free = _free(path.with_name(f"{path.stem}.before-{date.today()}{path.suffix}"), path.read_bytes())
    return free.relative_to(course).as_posix()


def _stage_the_engine(stage: Path) -> None:
    """This module as it is now, to finish with: half of an update may have replaced the copy's own."""
    here = Path(__file__).parent
    for name in ("__init__.py", "course.py", "update.py"):
        write_whole(stage / "engine" / "helpers" / name, (here / name).read_bytes())


def _lessons_in(course: Path) -> list[str]:
    return sorted(
        f"notebooks/{p.parent.name}/{p.name}" for p in course.glob("notebooks/*/*.ipynb") if p.stem == p.parent.name
    )


def _release_in(data: bytes | None) -> dict:
    try:
        about = json.loads(data or b"{}")
    except ValueError:
        return {}
    whole = isinstance(about, dict) and "date" in about and isinstance(about.get("files"), dict)
    return {**about, "cells": about.get("cells") or {}} if whole else {}


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and not name.startswith("/") and ".." not in parts and parts[0] not in NEVER_TOUCHED


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


def _digest(data: bytes | None) -> str:
    return hashlib.sha256(data or b"").hexdigest()


def _remove_empty(folder: Path, course: Path) -> None:
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    while folder != course and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


@contextmanager
def _not_interrupted():
    """Ctrl-C waits for the end of the block, which takes a moment."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _in_words():
    try:
        yield
    except OSError as problem:
        where = f" ({problem.filename})" if problem.filename else ""
        raise CannotUpdate(
            f"The update stopped: {problem.strerror or problem}{where}. No answer is lost: mend that, and update again."
        ) from None


# --------------------------------------------------------------------------------------------- a checkout


def update_checkout(course: Path) -> list[str]:
    """Fetch, and merge what is new; notebooks in which somebody worked are merged cell by cell."""
    upstream = _git(
        course,
        "rev-parse",
        "--abbrev-ref",
        "@{upstream}",
        told=(
            "This checkout follows no branch of another repository. Say which: git branch --set-upstream-to=origin/main"
        ),
    ).strip()
    _git(course, "fetch", "--quiet", told="What is new could not be fetched. Is there a network?")
    if not _git(course, "rev-list", f"HEAD..{upstream}").strip():
        return ["There is nothing new."]
    changed = _git(course, "-c", "core.quotePath=false", "diff", "--name-only", "HEAD", "--", "notebooks").split("\n")
    compare = ("-c", "core.quotePath=false", "diff", "--no-renames", "--name-only")
    incoming = set(_git(course, *compare, f"HEAD...{upstream}").split("\n"))
    says = []
    for name in changed:
        if is_lesson(name) and name in incoming and (course / name).is_file():
            kept = _kept_beside(course, name)
            write_whole(course / kept, (course / name).read_bytes())
            says.append(f"{name}: your answers are kept. As it was: {kept}")
    with tempfile.TemporaryDirectory() as scratch, _lesson_driver(course):
        _stage_the_engine(Path(scratch))
        releases = Path(scratch) / "releases"
        write_whole(releases, _git(course, "ls-tree", "-r", upstream, "--", "notebooks"))
        engine = f"cd '{scratch}/engine' && '{sys.executable}' -m helpers.update --releases '{releases}'"
        here = '"$OLDPWD"'
        engine += f" --merge {here}/%O {here}/%A {here}/%B"
        driver = ("-c", "merge.lesson.name=answers stay", "-c", f"merge.lesson.driver={engine}")
        try:
            said = _git(course, *driver, "merge", "--no-edit", "--autostash", upstream)
        except CannotUpdate as problem:
            with suppress(CannotUpdate):  # where git did not begin there is nothing to take back
                _git(course, *driver, "merge", "--abort")
            raise CannotUpdate(f"git could not merge, and nothing was changed. It says:\n{problem}") from None
    if "conflict" in said.lower():
        says.append(
            "Some of your own changes do not fit what is new. They are safe in `git stash list`; git says:\n" + said
        )
    head = _git(course, "show", "-s", "--format=%h of %cs", "HEAD").strip()
    return [f"This checkout is now at {head}.", *says]


@contextmanager
def _lesson_driver(course: Path):
    """For the time of one merge, git asks us about notebooks."""
    told = _git(course, "rev-parse", "--git-path", "info/attributes").strip()
    path = course / told
    before = path.read_bytes() if path.is_file() else None
    write_whole(path, (before or b"") + b"\nnotebooks/*/*.ipynb merge=lesson\n")
    try:
        yield
    finally:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            write_whole(path, before)


def merge_files(base: Path, ours: Path, theirs: Path, releases: str | None) -> int:
    """git's question about a notebook; the answer goes to `ours`. releases: the blobs of the notebooks that come in.

    What comes in is `theirs` while git merges, and `ours` once it brings back what was not committed. Without releases
    it is `theirs`: so does nbgitpuller ask, which commits everything first (see hub/gitconfig).
    """
    before, left, right = (read_notebook(path.read_bytes()) for path in (base, ours, theirs))
    if before is None or left is None or right is None:
        return 1
    data = theirs.read_bytes()
    coming = releases is None or hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest() in releases
    mine, release = (left, right) if coming else (right, left)
    write_whole(ours, write_notebook(merge(mine, release, cell_digests(before)).notebook))
    return 0


def _git(course: Path, *command: str, told: str = "") -> str:
    try:
        done = subprocess.run(["git", "-C", course, *command], capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotUpdate("This is a git checkout, and git is not installed.") from None
    if done.returncode:
        raise CannotUpdate(f"{(done.stderr or done.stdout).strip()}\n{told}".strip())
    return done.stdout + (done.stderr if "merge" in command else "")


# ---------------------------------------------------------------------------------------------- the command


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers.update", description=__doc__)
    parser.add_argument("zip", nargs="?", type=Path, help="the newer release; none for a git checkout")
    parser.add_argument("--course", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--finish", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--releases", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--incoming", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--merge", nargs=3, type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.merge:
        return merge_files(*asked.merge, None if asked.incoming else asked.releases.read_text(encoding="utf-8"))
    try:
        says = finish(asked.course) if asked.finish else _update(asked.zip, asked.course)
    except CannotUpdate as problem:
        print(problem, file=sys.stderr)
        return 1
    print("\n".join(says))
    return 0


def _update(path: Path | None, course: Path) -> list[str]:
    checkout = (course / ".git").exists()
    if path is None and not checkout:
        raise CannotUpdate("Say which release to take: make update FROM=from-the-dot-product-to-gpt-2.zip")
    if path is None:
        return update_checkout(course)
    if (course / "solutions").exists() or (course / "tests").exists():
        raise CannotUpdate("This is the course's repository, which git updates: make update, without FROM.")
    return update_from(path, course)


if __name__ == "__main__":
    sys.exit(main())
