"""What a batch did, whose marks a regrade changes and why, and how that is printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from helpers.grading.gradebook import CellScore
from helpers.grading.journal import NOTHING_RAN, JournalEntry
from helpers.grading.judging import NEEDS_REVIEW
from helpers.notebooks import check_id
from helpers.text import counted, number, plain, without_emphasis

MAX_VERDICT = 90  # characters of a verdict in the table
UNKNOWN = "not recorded"


@dataclass(frozen=True)
class ChangedMark:
    """One exercise of one student."""

    exercise: str
    before: float
    after: float
    out_of: float
    was: str
    now: str
    """was, now: the verdicts in words."""
    by_hand: float | None = None
    """Points that count instead."""


@dataclass(frozen=True)
class RegradedStudent:
    """One student who had marks already."""

    student: str
    why: str
    """What differs from the last time."""
    before: float
    after: float
    """before, after: what counts in all."""
    changes: tuple[ChangedMark, ...] = ()


@dataclass
class Summary:
    """What a batch did."""

    lesson: str
    graded: list[JournalEntry] = field(default_factory=list)
    resumed: list[JournalEntry] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    """(student, why) of those that could not be graded and keep the marks they had."""
    flags: list[str] = field(default_factory=list)
    regraded: list[RegradedStudent] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False
    halted: str = ""
    """Why the batch ended by itself, "" where it did not."""
    dry_run: bool = False

    @property
    def entries(self) -> list[JournalEntry]:
        return sorted([*self.graded, *self.resumed], key=lambda entry: entry.student)

    def as_text(self) -> str:
        """The table at the end. Nothing in it can steer a terminal, whatever a submission contained."""
        entries = self.entries
        waiting = sum(verdict["decision"] == NEEDS_REVIEW for entry in entries for verdict in entry.verdicts)
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
            regrade_table(self.regraded, self.dry_run),
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


def compare(scores: Mapping[str, CellScore], entry: JournalEntry | None, new: JournalEntry) -> RegradedStudent | None:
    """What grading again changes for a student; None for one who had no automatic marks.

    scores: the student's in the gradebook, by check cell. entry: the previous one, None where the journal has none.
    """
    if not any(score.automatic is not None for score in scores.values()):
        return None
    old = {record["exercise"]: record for record in entry.verdicts} if entry else {}
    changes, before, after = [], 0.0, 0.0
    for record in new.verdicts:
        exercise = record["exercise"]
        score, points = scores.get(check_id(exercise), CellScore(None)), new.marks.get(check_id(exercise)) or 0.0
        before += score.counts
        after += points if score.by_hand is None else score.by_hand
        if (score.automatic or 0.0) != points:
            was, now = in_words(old.get(exercise)), in_words(record)
            changes.append(
                ChangedMark(exercise, score.automatic or 0.0, points, record["out_of"], was, now, score.by_hand)
            )
    return RegradedStudent(new.student, _why(entry, new), before, after, tuple(changes))


def in_words(record: Mapping | None) -> str:
    """A verdict in a few words: "right", "wrong: softmax already applied"."""
    if not record:
        return UNKNOWN
    known = "; ".join(mistake["title"] for mistake in record["mistakes"])
    lost = next((aspect["says"] for aspect in record["aspects"] if not aspect["held"] and aspect["says"]), "")
    says = known or ("" if record["state"] == "right" else record["says"] or lost)
    decided = f" ({record['decision']})" if record.get("decision") else ""
    return plain(f"{record['state']}{decided}" + (f": {without_emphasis(says)}" if says else ""), MAX_VERDICT)


def _why(entry: JournalEntry | None, new: JournalEntry) -> str:
    if entry is None:
        return "the journal has no record of the earlier grading"
    causes = {
        "another file was handed in": entry.submitted != new.submitted,
        "the exam key has changed": entry.key != new.key,
        "the released notebook has changed": entry.released != new.released,
        "nothing of it was run before"
        if entry.isolation == NOTHING_RAN
        else f"it was run with isolation {plain(entry.isolation, 40)} before": entry.isolation != new.isolation,
    }
    return "; ".join(cause for cause, holds in causes.items() if holds) or "same file and key; the course has changed"


def regrade_table(regraded: Sequence[RegradedStudent], dry_run: bool) -> str:
    """The students whose marks change, and why. "" where nobody had marks."""
    if not regraded:
        return ""
    changed = [one for one in regraded if one.changes]
    verb = "would change" if dry_run else "changed"
    lines = [f"Of {counted(len(regraded), 'student')} graded before, the marks of {len(changed)} {verb}."]
    name_width = max((len(one.student) for one in changed), default=0)
    exercise_width = max((len(change.exercise) for one in changed for change in one.changes), default=0)
    for one in changed:
        lines.append(f"  {one.student:<{name_width}}  {number(one.before)} → {number(one.after)}  {one.why}")
        for change in one.changes:
            by_hand = "" if change.by_hand is None else f"; {number(change.by_hand)} given by hand stay"
            points = f"{number(change.before)} → {number(change.after)} of {number(change.out_of)}{by_hand}"
            exercise = f"{change.exercise:<{exercise_width}}"
            lines.append(f"  {'':<{name_width}}    {exercise}  {points}  {change.was}  →  {change.now}")
    return "\n".join(lines)
