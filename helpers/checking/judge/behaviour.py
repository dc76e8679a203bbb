"""What an answer does otherwise than the reference, in a sentence. See `exercises.behaviour`."""

from __future__ import annotations

import torch

from helpers.checking.judge.pair import indices
from helpers.checking.run.answers import Outcome
from helpers.exercises import behaviour
from helpers.text import counted


def other_calls(yours: Outcome, target: Outcome) -> str:
    """How the answer calls the model it is given, where the solution calls it otherwise; else ""."""
    trained, solution = (int(one.behaviour.get(behaviour.TRAINING_CALLS, 0)) for one in (yours, target))
    if trained != solution:
        return f"Your code calls the model {_times(trained)} in training mode, the solution {_times(solution)}."
    longest, needed = (int(one.behaviour.get(behaviour.LONGEST_WINDOW, 0)) for one in (yours, target))
    if longest != needed:
        mine, goal = (counted(tokens, "token") for tokens in (longest, needed))
        return f"The longest window that your code gives the model has {mine}, the solution's has {goal}."
    return ""


def _times(count: int) -> str:
    return ("never", "once", "twice")[count] if count <= 2 else f"{count} times"


def other_dependence(yours: Outcome, target: Outcome) -> str:
    """Where the result wrongly changes, or wrongly does not, when one part of the inputs changes; or ""."""
    for part, own in ((behaviour.OTHER_TEXT, 0), (behaviour.LAST_POSITION, -1), (behaviour.HIDDEN, None)):
        mine, goal = (one.behaviour.get(part) for one in (yours, target))
        if mine is None or goal is None or mine.shape != goal.shape:
            continue
        changes = (mine == behaviour.CHANGES) & (goal == behaviour.STAYS)
        stays = (mine == behaviour.STAYS) & (goal == behaviour.CHANGES)
        if own is not None:
            changes[own] = False  # where the input itself changes, nothing is wrong with that
        start = f"When only {part} changes in the input, your result"
        if changes.any():
            return f"{start} changes{_where(changes, ' too')}; the right one does not."
        if stays.any():
            return f"{start} does not change{_where(stays)}; the right one does."
    return ""


def _where(places: torch.Tensor, too: str = "") -> str:
    return f" at index {indices(places)}{too}" if places.dim() else ""
