"""What the reading of a submission found for the instructor to look at, and what was decided about it.

A finding is no accusation. It says what stands in a cell and why somebody should look before the points count.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

STUB, ELSEWHERE, REACHES, SHORTCUT, ENTERED = "stub", "elsewhere", "reaches", "shortcut", "entered"
RULES = {
    STUB: "the solution cell still holds the stub",
    ELSEWHERE: "the exercise's name is given something that its own cell did not define",
    REACHES: "a cell reaches for something that no exercise needs",
    SHORTCUT: "a helper uses what the exercise is there to replace",
    ENTERED: "while the answer ran, a finished part or a forbidden function was entered that its text does not name",
}

WAITS, ACCEPTED, REFUSED = "waits", "accepted", "refused"  # what a record's "decision" can be, beside ""


@dataclass(frozen=True)
class Finding:
    """One thing for the instructor to look at.

    rule: one of RULES. exercise: the one whose points wait for it. cell: the grade id of the cell, or "cell 7" for one that has
    none, counted from 1 in the notebook as it was judged. line: in that cell, from 1; 0 where no line can be named.
    excerpt: that line, or the cell's beginning, as the student wrote it: text that nobody has made harmless yet.
    why: one sentence.
    """

    rule: str
    exercise: str
    cell: str
    line: int
    excerpt: str
    why: str

    def as_json(self) -> dict:
        return asdict(self)
