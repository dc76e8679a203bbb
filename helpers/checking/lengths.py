"""Of what is too long or too short along one axis, and of rows of ids that end at different places: what is right."""

from __future__ import annotations

import torch

from helpers.checking.pair import ENOUGH, Pair
from helpers.exercises.exercise import Aspect

Ids = list[int]
LONGEST = 1000  # slices that are compared


def one_length_wrong(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect, place: int, along: str) -> str:
    """What of yours is right where one axis, `place`, has another length. along: " along axis t", or ""."""
    if not (yours.numel() and target.numel()) or target.dtype == torch.bool or yours.shape[place] > LONGEST:
        return ""
    mine, goal = (tensor.movedim(place, 0).reshape(tensor.shape[place], -1) for tensor in (yours, target))
    short, long = sorted((mine, goal), key=len)
    found, after = [], 0  # where the slices of the shorter one are in the longer one, one after the other
    for part in short:
        after = next((i + 1 for i in range(after, len(long)) if aspect.tolerance.near(part, long[i]).all()), 0)
        if not after:
            break
        found.append(after - 1)
    if len(found) < len(short):
        if target.is_floating_point() or yours.is_floating_point():
            return ""
        agree = int((short == long[: len(short)]).sum())
        return f"Not only its length is wrong: compared from the start, {agree} of {short.numel()} numbers agree."
    gaps = found[-1] - found[0] >= len(found)
    if short.unique().numel() < ENOUGH or gaps and short.shape[1] == 1:  # of ids one by one, some are found anywhere
        return ""
    many = len(long) - len(short)
    counted = f"{'one' if many == 1 else many} of {len(long)}{along} {'is' if many == 1 else 'are'}"
    where = "" if gaps else ", at the end" if not found[0] else ", at the beginning" if found[0] == many else ""
    if len(mine) < len(goal):
        return f"What it holds is right; {counted} missing{where}."
    return f"All that is needed is there; {counted} too many{where}."


# ------------------------------------------------------------------------------------- rows that end somewhere


def _wrong_rows(pair: Pair) -> list[tuple[Ids, Ids]]:
    """The rows that are wrong, yours and the right one, each up to its end. [] where the aspect has no such rows."""
    filler = pair.aspect.filler
    if filler is None or pair.goal.dim() != 2 or pair.yours.is_floating_point():
        return []
    rows = zip(pair.yours.tolist(), pair.target.tolist(), strict=True)
    return [([i for i in mine if i != filler], [i for i in goal if i != filler]) for mine, goal in rows if mine != goal]


def first_wrong_row(pair: Pair) -> str:
    """Whether the wrong rows end too early or too late, and the first of them."""
    wrong = _wrong_rows(pair)
    ends = {(len(mine) > len(goal)) - (len(mine) < len(goal)) for mine, goal in wrong}
    of_all = {
        1: " All wrong ones are too long.",
        -1: " All wrong ones are too short.",
        0: " All have the right length.",
    }
    return _counted(pair, wrong, of_all[ends.pop()] if len(ends) == 1 else "") if wrong else ""


def _counted(pair: Pair, wrong: list[tuple[Ids, Ids]], what: str) -> str:
    kind, right = f"{pair.axes[0]}s" if pair.axes else "rows", len(pair.goal) - len(wrong)
    count = f"{right} of {len(pair.goal)} {kind} are right." if right else f"None of the {kind} is right."
    return f"{count}{what} The first wrong one is {wrong[0][0]}, and has to be {wrong[0][1]}."
