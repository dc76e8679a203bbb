"""What a batch has done, one line for each submission: the file that makes it safe to stop at any moment.

A line is written last, after the judged notebook and the marks, and is on the disk when `write` returns. So
what stands in the journal is done, and what does not stand there is done again, from the start, to the same end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
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
        for line in self._lines():
            try:
                told = json.loads(line)
                if told.pop("format") == FORMAT:
                    entry = Entry(**told)
                    entries[entry.student] = entry
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
        return entries

    def write(self, entry: Entry) -> None:
        """Add an entry, and return when the disk has it."""
        line = json.dumps({"format": FORMAT, **asdict(entry)}, ensure_ascii=False) + "\n"
        with open(self.path, "ab", opener=_private) as file:
            file.write(line.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def held(self) -> Iterator[Journal]:
        """Nobody else grades this lesson meanwhile. Raises Busy. A line that was cut off is closed first."""
        with held(self.path):
            if self.path.exists() and (data := self.path.read_bytes()) and not data.endswith(b"\n"):
                with open(self.path, "ab") as file:
                    file.write(b"\n")
            yield self

    def _lines(self) -> list[str]:
        if not self.path.exists():
            return []
        return self.path.read_text(encoding="utf-8", errors="replace").split("\n")


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
