"""What a batch has done, one line for each submission: the file that makes it safe to stop at any moment.

A line is written last, after the judged notebook and the marks, and is on the disk when `write` returns. So
what stands in the journal is done, and what does not stand there is done again, from the start, to the same end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

FOLDER = "journal"
FORMAT = 1


class Busy(Exception):
    """Another batch of the same lesson is at work."""


@dataclass(frozen=True)
class Entry:
    """One submission that was graded.

    submitted, released, key: digests of what was handed in, of the released lesson and of the exam key.
    notebook: digest of the judged notebook as it was written. marks: automatic points by check cell.
    verdicts: see `records.record`. flags: what an instructor should know. at: UTC.
    """

    student: str
    submitted: str
    released: str
    key: str
    notebook: str
    marks: dict[str, float]
    points: float
    out_of: float
    isolation: str
    flags: list[str] = field(default_factory=list)
    verdicts: list[dict] = field(default_factory=list)
    seconds: float = 0.0
    platform: str = ""
    number: str = ""  # the platform's for this student, which Moodle gives anew in each assignment
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


class Journal:
    """The journal of one lesson below a course's folder."""

    def __init__(self, root: Path, lesson: str):
        self.path = root / FOLDER / f"{lesson}.jsonl"

    def read(self) -> dict[str, Entry]:
        """The last entry of each student. A line that a crash cut off counts as not written."""
        entries = {}
        for line in lines(self.path):
            with suppress(TypeError):
                if line.pop("format", None) == FORMAT:
                    entry = Entry(**line)
                    entries[entry.student] = entry
        return entries

    def write(self, entry: Entry) -> None:
        """Add an entry, and return when the disk has it."""
        add_line(self.path, {"format": FORMAT, **asdict(entry)})

    @contextmanager
    def held(self) -> Iterator[Journal]:
        """Nobody else grades this lesson meanwhile. Raises Busy."""
        with held(self.path):
            yield self


def lines(path: Path) -> Iterator[dict]:
    """The objects in a file of JSON lines. A line that a crash cut off counts as not written."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    for line in text.split("\n"):
        with suppress(ValueError, RecursionError):
            if isinstance(told := json.loads(line), dict):
                yield told


def add_line(path: Path, told: dict) -> None:
    """Add a line to a file of JSON lines, and return when the disk has it. One that was cut off is closed first."""
    line = json.dumps(told, ensure_ascii=False) + "\n"
    with open(path, "a+b", opener=_private) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else f"\n{line}"
        file.write(line.encode("utf-8", "replace"))
        file.flush()
        os.fsync(file.fileno())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def held(journal: Path) -> Iterator[None]:
    """Nobody else grades the lesson of this journal meanwhile. Raises Busy.

    The lock is the operating system's: it goes with the process that holds it, however that ends.
    """
    journal.parent.mkdir(exist_ok=True)
    lock = FileLock(journal.with_suffix(".lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise Busy(f"{journal.stem} is being graded already, by another command in this folder.") from None
    try:
        yield
    finally:
        lock.release()
