"""The scores of the student's own models so far, on the open part of each text, from the log of checks."""

from __future__ import annotations

from helpers import check_log

MOST = 20
NONE = "No model has a score yet: `check(Model)` in lesson 22 gives it one."


def board() -> str:
    """A line for each different model and text, the fewest bits first."""
    best: dict[tuple[str, float], check_log.Result] = {}
    for result in check_log.results():
        if result.score is not None:
            best.setdefault((result.text, round(result.score, 3)), result)
    if not best:
        return NONE
    ranked = sorted(best.values(), key=lambda result: (result.text, result.score or 0.0))
    lines = [f"{r.text:8} {r.score:8.3f}   {r.points:g} of {r.out_of:g} points   {r.at}" for r in ranked[:MOST]]
    return "\n".join(["text     bits per byte, at home", *lines])
