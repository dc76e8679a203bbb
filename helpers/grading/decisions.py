"""What the instructor has decided about answers that waited: accepted or refused, kept beside the journal.

A decision belongs to a student, an exercise and a digest of the text that was looked at. It outlives any regrade; an
answer that was changed waits again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from helpers.grading.flags import ACCEPTED, REFUSED
from helpers.grading.journal import FOLDER, add_line, lines

FILE = "decisions.jsonl"


@dataclass(frozen=True)
class Decision:
    """One decision. digest: see `judging.digest_of`. decision: ACCEPTED or REFUSED. at: UTC."""

    lesson: str
    student: str
    exercise: str
    digest: str
    decision: str
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


class Decisions:
    """The decisions of a course's folder. The last of each student, exercise and text counts."""

    def __init__(self, root: Path):
        self.path = root / FOLDER / FILE

    def read(self) -> dict[tuple[str, str, str, str], str]:
        """What was decided, by lesson, student, exercise and digest."""
        found = {}
        for line in lines(self.path):
            with suppress(TypeError):
                one = Decision(**line)
                if one.decision in (ACCEPTED, REFUSED):
                    found[one.lesson, one.student, one.exercise, one.digest] = one.decision
        return found

    def write(self, decision: Decision) -> None:
        """Add a decision, and return when the disk has it."""
        self.path.parent.mkdir(exist_ok=True)
        add_line(self.path, asdict(decision))

    def of(self, lesson: str, student: str) -> Callable[[str, str], str]:
        """What was decided about one submission: (exercise, digest) -> "", ACCEPTED or REFUSED."""
        decided = self.read()
        return lambda exercise, digest: decided.get((lesson, student, exercise, digest), "")
