"""What the reading of a submission found for the instructor to look at, and what was decided about it.

A finding is no accusation. It says what stands in a cell and why somebody should look before the points count.
"""

from __future__ import annotations

from dataclasses import dataclass

STUB, UNREADABLE, LEADS_OUT, CHANGES = "stub", "unreadable", "leads out", "changes"
RULES = {
    STUB: "the solution cell still holds the stub",
    UNREADABLE: "the solution cell is longer or more deeply nested than the grader reads",
    LEADS_OUT: "the answer reaches out of itself, into the interpreter or the check",
    CHANGES: "while the answer ran, something of torch or of the check was replaced",
}

WAITS, ACCEPTED, REFUSED = "waits", "accepted", "refused"  # what a record's "decision" can be, beside ""


@dataclass(frozen=True)
class Finding:
    """One thing for the instructor to look at.

    rule: one of RULES. exercise: the one that it concerns. cell: the grade id of the cell, or "cell 7" for one that
    has none, counted from 1 in the notebook as it was judged. line: in that cell, from 1; 0 where no line can be named.
    excerpt: that line, as the student wrote it: text that nobody has made harmless yet. why: one sentence.
    holds: whether the exercise's points wait for somebody to look; False where it is only worth knowing.
    """

    rule: str
    exercise: str
    cell: str
    line: int
    excerpt: str
    why: str
    holds: bool = True
