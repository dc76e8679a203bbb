"""The journal of a batch, one line for each submission: it makes grading safe to stop at any moment.

A line is written last, and is on the disk when `write` returns. What is not in the journal is graded again from the
start, to the same end. It also keeps the verdicts and what they are about, for reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from helpers.course import append_line, read_lines
from helpers.grading.errors import GradingError

FOLDER = "journal"
FORMAT = 1
NOTHING_RAN = "nothing was run"  # the isolation of a file that could not be read


@dataclass(frozen=True)
class JournalEntry:
    """One graded submission."""

    student: str
    submitted: str = ""
    released: str = ""
    key: str = ""
    """submitted, released, key: digests of the submission, of the released lesson and of the exam key."""
    notebook: str = ""
    """Digest of the judged notebook's file."""
    marks: dict[str, float] = field(default_factory=dict)
    """Automatic points by check cell."""
    points: float = 0
    out_of: float = 0
    isolation: str = ""
    flags: list[str] = field(default_factory=list)
    """What an instructor should know."""
    verdicts: list[dict] = field(default_factory=list)
    """See `records.record`."""
    texts: dict[str, str] = field(default_factory=dict)
    """Of the judged notebook's cells, by grade id, in their order."""
    platform: str = ""
    number: str = ""  # the platform's for this student, which Moodle gives anew in each assignment
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """UTC."""


class Journal:
    """The journal of one lesson below a course's folder."""

    def __init__(self, root: Path, lesson: str):
        self.path = root / FOLDER / f"{lesson}.jsonl"

    def read(self) -> dict[str, JournalEntry]:
        """The last entry of each student."""
        entries = {}
        for line in read_lines(self.path):
            with suppress(TypeError):
                if line.pop("format", None) == FORMAT:
                    entry = JournalEntry(**line)
                    entries[entry.student] = entry
        return entries

    def write(self, entry: JournalEntry) -> None:
        """Add an entry, and return when the disk has it."""
        self.path.parent.mkdir(exist_ok=True)
        append_line(self.path, {"format": FORMAT, **asdict(entry)}, mode=0o600)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else grades this lesson meanwhile. Raises GradingError where somebody does.

        The operating system releases the lock when the process ends, however it ends.
        """
        self.path.parent.mkdir(exist_ok=True)
        try:
            with FileLock(self.path.with_suffix(".lock")).acquire(blocking=False):
                yield
        except Timeout:
            text = f"{self.path.stem} is being graded already, by another command in this folder."
            raise GradingError(text) from None
