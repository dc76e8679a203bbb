"""What a batch did, and how it is printed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from helpers.grading import regrade
from helpers.grading.journal import JournalEntry
from helpers.grading.judging import WAITS
from helpers.grading.progress import counted
from helpers.grading.regrade import RegradedStudent
from helpers.grading.sanitize import plain


@dataclass
class Summary:
    """What a batch did.

    failed: (student, why) of those that could not be graded and keep the marks they had. regraded: those who had marks
    before. halted: why the batch ended by itself, "" where it did not. dry_run: nothing was written.
    """

    lesson: str
    graded: list[JournalEntry] = field(default_factory=list)
    resumed: list[JournalEntry] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    regraded: list[RegradedStudent] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False
    halted: str = ""
    dry_run: bool = False

    @property
    def entries(self) -> list[JournalEntry]:
        return sorted([*self.graded, *self.resumed], key=lambda entry: entry.student)

    def as_text(self) -> str:
        """The table at the end. Nothing in it can steer a terminal, whatever a submission contained."""
        entries = self.entries
        waiting = sum(verdict["decision"] == WAITS for entry in entries for verdict in entry.verdicts)
        rows = [
            ("graded", len(self.graded), "and nothing written: a dry run" if self.dry_run else ""),
            ("resumed", len(self.resumed), "graded by an earlier run, and nothing has changed since"),
            ("flagged", sum(bool(entry.flags) for entry in entries), ""),
            ("not graded", len(self.failed), ""),
        ]
        isolations = Counter(entry.isolation for entry in entries)
        rows += [("isolation", count, plain(isolation)) for isolation, count in sorted(isolations.items())]
        if waiting:
            rows.append(("to look at", waiting, f"answers, unpaid until you decide: make look LESSON={self.lesson}"))
        lines = ["", f"{self.lesson}: {counted(len(entries), 'submission')}, {self.seconds:.0f} s"]
        lines += [f"  {name:<12}{count:>5}   {note}".rstrip() for name, count, note in rows]
        lines += self._notes()
        paragraphs = [
            regrade.table(self.regraded, self.dry_run),
            self.halted,
            "Stopped. What is graded stays graded; the same command continues." if self.stopped else "",
        ]
        return "\n".join([*lines, *(f"\n{paragraph}" for paragraph in paragraphs if paragraph)])

    def _notes(self) -> list[str]:
        """Flags and failures, a line each."""
        notes = [(entry.student, flag) for entry in self.entries for flag in entry.flags]
        notes += [(student, f"NOT GRADED: {why}") for student, why in self.failed]
        width = max((len(plain(student)) for student, _ in notes), default=0)
        lines = [f"  {plain(student):<{width}}  {plain(note)}" for student, note in notes]
        lines += [f"  {plain(flag)}" for flag in self.flags]
        return ["", *lines] if lines else []
