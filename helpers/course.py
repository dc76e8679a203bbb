"""Facts about the course that are kept once: where things lie, which rooms a student has, limits, the exam's settings.

Needs nothing but Python's own library, so that every room can ask here.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

HELPERS = Path(__file__).resolve().parent


def _root() -> Path:
    """The course's folder: where helpers/ lies, or, where it was installed by `pip install .`, around this folder."""
    if not (HELPERS.parent / "notebooks").is_dir():
        with suppress(OSError):  # this folder may be gone
            for folder in (Path.cwd(), *Path.cwd().parents):
                if (folder / "notebooks").is_dir() and (folder / "helpers" / "course.py").is_file():
                    return folder
    return HELPERS.parent


ROOT = _root()
SOLUTIONS = ROOT / "solutions"
PACKED_SOLUTIONS = ".solutions.json"  # in a students' zip that was made with solutions
NOTEBOOKS = ROOT / "notebooks"
LESSONS = HELPERS / "lessons"  # a folder a lesson; see `lesson_folder`

# Rooms of helpers that stay with the instructor: with them a student could make keys of their own.
INSTRUCTORS_ROOMS = ("authoring", "grading", "benchmarks", "site")

TRIES = 5  # different answers, after which a student may see a solution where their copy holds any
TRIES_BEFORE_LINES = 3  # the same for a solution's lines in mixed order

SHIPPED_SEED = "desk"  # inputs of checks on a student's machine are drawn from it, and shipped keys are made for it
STUB = "write this"  # the message of the NotImplementedError in a released notebook

# Environment variables
DEVICE = "COURSE_DEVICE"  # overrides the choice of `helpers.device`
VALIDATING = "NBGRADER_VALIDATING"  # set by nbgrader's Validate button
EXPERIMENTS_FOLDER = "COURSE_EXPERIMENTS"  # where tries at open experiments are kept, if not in experiments/
TRAINING_STEPS = "COURSE_TRAINING_STEPS"  # the most steps that a training in a lesson takes, for tests
PROGRESS_FILE = "COURSE_PROGRESS"  # where results of checks are kept, if not in progress.jsonl; "" keeps none


def lesson_folder(name: str) -> Path:
    """Where the exercises of that lesson are, its questions, and the key that students get."""
    return LESSONS / f"l{name}"


@dataclass(frozen=True)
class Limits:
    """What one submission may use; per submission unless it says otherwise."""

    exercise_seconds: float = 30
    """Wall time of one exercise's answer."""
    total_seconds: float = 120
    """Wall time of all."""
    memory: int = 2 << 30
    """Bytes, of all its processes together, beyond what Python and torch take."""
    processor_seconds: float = 90
    """Of all its processes together."""
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 256 << 20
    """Size of one file, and of everything in the folders that can be written to."""
    output_bytes: int = 2 << 20
    outputs: int = 2_000
    """output_bytes, outputs: size and number of the outputs that its notebook was saved with, as far as they are kept.
    """


LIMITS = Limits()


@contextmanager
def written_whole(path: Path, mode: int = 0o644) -> Iterator[Path]:
    """A path to write to; it becomes `path` when the block ends well, and vanishes when it does not.

    When it has become `path`, the disk has it. Where a link lies, the link is replaced. mode: the permissions of the
    file, 0o444 for one that nobody is to write to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}-{threading.get_ident()}")
    unfinished.unlink(missing_ok=True)
    try:
        yield unfinished
        with open(unfinished, "rb+") as file:
            os.fsync(file.fileno())  # or a power cut could leave the name without the bytes
        unfinished.chmod(mode)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_whole(path: Path, data: bytes | str, mode: int = 0o644) -> None:
    """Write a file, whole or not at all, as `written_whole` does."""
    with written_whole(path, mode) as unfinished:
        unfinished.write_bytes(data.encode("utf-8", "replace") if isinstance(data, str) else data)


def append_line(path: Path, fields: Mapping[str, object], mode: int = 0o644) -> None:
    """Append a line of JSON, and return when the disk has it. A line that a power cut left unfinished is ended first.

    mode: the permissions of a file that is made.
    """
    line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    with open(path, "a+b", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_lines(path: Path) -> list[dict]:
    """The lines of JSON objects in a file; none where it cannot be read. Other lines are passed over."""
    found = []
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            with suppress(ValueError, RecursionError):
                found.append(json.loads(line))
    return [fields for fields in found if isinstance(fields, dict)]


def stands_in(path: Path) -> str:
    """What lies under a file's name in place of its content, and what to do, fit to stand after "is"; "" for none."""
    with open(path, "rb") as file:
        start = file.read(200)
    if not start:
        return "an empty file: download it again"
    if start.startswith(b"version https://git-lfs.github.com/"):
        return "a Git LFS pointer, which stands for the file: `git lfs pull` in its folder fetches the file itself"
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return (
            "a web page, not the file: download the file itself (on the Hub its address has /resolve/ in it where that"
            " of the page has /blob/)"
        )
    return ""
