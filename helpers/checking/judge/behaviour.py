"""What an answer does otherwise than the reference, in a sentence. See `exercises.behaviour`."""

from __future__ import annotations

import torch

from helpers.checking.judge.axis_names import indices
from helpers.checking.run.answers import Outcome
from helpers.exercises.behaviour import (
    CHANGES,
    HIDDEN,
    LAST_POSITION,
    LONGEST_WINDOW,
    OTHER_TEXT,
    STAYS,
    TRAINING_CALLS,
)
from helpers.text import counted

IN_TRAINING_MODE = "Your code calls the model {} in training mode, the solution {}."
WINDOWS = "The longest window that your code gives the model has {}, the solution's has {}."


def other_calls(yours: Outcome, target: Outcome) -> str:
    """How the answer calls the model it is given, where the solution calls it otherwise; else ""."""
    for name, words, in_words in ((TRAINING_CALLS, IN_TRAINING_MODE, _times), (LONGEST_WINDOW, WINDOWS, _tokens)):
        mine, goal = (int(one.behaviour.get(name, 0)) for one in (yours, target))
        if mine != goal:
            return words.format(*(in_words(number) for number in (mine, goal)))
    return ""


def _times(count: int) -> str:
    return ("never", "once", "twice")[count] if count <= 2 else f"{count} times"


def _tokens(count: int) -> str:
    return counted(count, "token")


def other_dependence(yours: Outcome, target: Outcome) -> str:
    """Where the result wrongly changes, or wrongly does not, when one part of the inputs changes; or ""."""
    for part, own in ((OTHER_TEXT, 0), (LAST_POSITION, -1), (HIDDEN, None)):
        mine, goal = (one.behaviour.get(part) for one in (yours, target))
        if mine is None or goal is None or mine.shape != goal.shape:
            continue
        changes, stays = (mine == CHANGES) & (goal == STAYS), (mine == STAYS) & (goal == CHANGES)
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
