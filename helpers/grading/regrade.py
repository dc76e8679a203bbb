"""What a regrade changes: who, by how much and why, told before or after it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers.checking.panel import number
from helpers.grading.gradebook import Held
from helpers.grading.journal import Entry
from helpers.grading.progress import counted
from helpers.grading.sanitize import plain
from helpers.notebooks import exercise_of

MANY, SHARE = 5, 0.2  # so many students, and so large a part of the class, seldom change at once by their own doing
LONGEST = 90  # characters of a verdict in the table


@dataclass(frozen=True)
class Change:
    """One exercise of one student. was, now: the verdicts in words. by_hand: points that count whatever was judged."""

    exercise: str
    before: float
    after: float
    out_of: float
    was: str
    now: str
    by_hand: float | None = None


@dataclass(frozen=True)
class Regraded:
    """One student who had marks already. why: what is another than then. before, after: what counts in all."""

    student: str
    why: str
    before: float
    after: float
    changes: tuple[Change, ...] = ()
    renamed: tuple[tuple[str, str, str], ...] = ()  # exercise, was, now: other words for the same points


def regraded(student: str, held: Mapping[str, Held], entry: Entry | None, new: Entry) -> Regraded | None:
    """What grading anew changes for a student; None for one who had no automatic marks.

    held: what the gradebook holds of the student, by check cell. entry: the journal's from then, None where that is
    gone. new: what was judged now.
    """
    if not any(one.automatic is not None for one in held.values()):
        return None
    old = {record["exercise"]: record for record in entry.verdicts} if entry else {}
    changes, renamed, before, after = [], [], 0.0, 0.0
    for record in new.verdicts:
        cell = next((name for name in new.marks if exercise_of_cell(name) == record["exercise"]), record["exercise"])
        had, got = held.get(cell, Held(None)), new.marks.get(cell) or 0.0
        was, now = in_words(old.get(record["exercise"])), in_words(record)
        before, after = before + had.counts, after + (got if had.by_hand is None else had.by_hand)
        if (had.automatic or 0.0) != got:
            change = Change(record["exercise"], had.automatic or 0.0, got, record["out_of"], was, now, had.by_hand)
            changes.append(change)
        elif was != now and was != UNKNOWN:
            renamed.append((record["exercise"], was, now))
    return Regraded(student, _why(entry, new), before, after, tuple(changes), tuple(renamed))


UNKNOWN = "not recorded"


def exercise_of_cell(name: str) -> str:
    return exercise_of({"metadata": {"nbgrader": {"grade_id": name}}})


def in_words(record: Mapping | None) -> str:
    """A verdict in a few words: "right", "wrong: softmax already applied"."""
    if not record:
        return UNKNOWN
    known = "; ".join(mistake["title"] for mistake in record.get("mistakes", []))
    lost = next((a["says"] for a in record.get("aspects", []) if not a["held"] and a["says"]), "")
    says = known or ("" if record["state"] == "right" else record["says"] or lost)
    decided = f" ({record['decision']})" if record.get("decision") else ""
    return plain(f"{record['state']}{decided}" + (f": {says}" if says else ""), LONGEST)


def _why(entry: Entry | None, new: Entry) -> str:
    if entry is None:
        return "graded by a batch whose journal is gone"
    causes = [
        (entry.submitted != new.submitted, "another file was handed in"),
        (entry.key != new.key, "the exam key is another"),
        (entry.released != new.released, "the released notebook is another"),
        (entry.isolation != new.isolation, f"then it was run with isolation {plain(entry.isolation, 40)}"),
    ]
    found = [text for differs, text in causes if differs]
    return "; ".join(found) or "the same file and key, judged by the course's code of today"


def as_text(found: Sequence[Regraded], dry: bool) -> str:
    """The table: students whose marks change, and a hint where many do at once. "" where nobody had marks."""
    if not found:
        return ""
    changed = [one for one in found if one.changes]
    verb = "would change" if dry else "changed"
    lines = [f"Of {counted(len(found), 'student')} graded before, the marks of {len(changed)} {verb}."]
    width = max((len(one.student) for one in changed), default=0)
    deep = max((len(change.exercise) for one in changed for change in one.changes), default=0)
    for one in changed:
        lines.append(f"  {one.student:<{width}}  {number(one.before)} → {number(one.after)}  {one.why}")
        for change in one.changes:
            hand = "" if change.by_hand is None else f"; {number(change.by_hand)} given by hand stay"
            points = f"{number(change.before)} → {number(change.after)} of {number(change.out_of)}{hand}"
            lines.append(f"  {'':<{width}}    {change.exercise:<{deep}}  {points}  {change.was}  →  {change.now}")
    others = Counter(other for one in found for other in one.renamed)
    if others:
        lines.append("The same points, in other words:")
        for (exercise, was, now), count in others.most_common(12):
            lines.append(f"  {counted(count, 'student')}  {exercise}  {was}  →  {now}")
    if len(changed) >= MANY and len(changed) >= SHARE * len(found):
        reasons = Counter(one.why for one in changed).most_common(2)
        told = "; ".join(f"{why} ({count})" for why, count in reasons)
        lines.append(
            f"Many at once: {len(changed)} of {len(found)}. That is seldom the students' doing. What is another than "
            f"then: {told}."
        )
    return "\n".join(lines)
