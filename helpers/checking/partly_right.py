"""Which part of a tensor is right, what sets the other part apart, and how far off it is: facts, not relations."""

from __future__ import annotations

import torch

from helpers.checking.pair import Pair, shown
from helpers.checking.positions import entry, indices, region

NUMBERS_WRONG = "the numbers are not."  # said when nothing better is known
LARGEST_STEP = 16  # a whole number by which a fraction may be too large


def along_an_axis(pair: Pair) -> str:
    """Right at some indices of an axis, or on one side of the diagonal."""
    part = region(pair.near, pair.axes) if pair.near.dim() > 1 and pair.near.any() else ""
    if "diagonal" in part:
        return f"Your result is right {part}, and nowhere else."
    part = region(~pair.near, pair.axes) if pair.near.dim() > 1 else ""
    if "diagonal" in part:
        return f"Your result is wrong {part}, and right everywhere else."
    best, sentence = 0.0, ""
    for place in range(pair.goal.dim()):
        others = [axis for axis in range(pair.goal.dim()) if axis != place]
        right = pair.near.all(dim=others) if others else pair.near
        share = right.double().mean().item()
        if others and best < share < 1:
            best, sentence = share, f"Along {pair.axis(place)}{_which(right)}."
    value = pair.mine[~pair.near]
    if sentence and value.numel() > 1 and (value == value[0]).all():
        sentence += f" Every wrong entry of yours is {shown(value[0])}."
    return sentence


def _which(right: torch.Tensor) -> str:
    count, many = int(right.sum()), right.numel()
    start = bool(right[:count].all())
    if many == 2:
        return f" the {'first' if start else 'second'} half is right, the {'second' if start else 'first'} is not"
    end, wrong_at_one_end = bool(right[many - count :].all()), bool(right[0] != right[-1])
    if wrong_at_one_end and (start or end):
        side, other = ("first", "last") if start else ("last", "first")
        if count == many - 1:
            return f" all {many} but the {other} are right"
        return f" only the {side} of {many} is right" if count == 1 else f" only the {side} {count} of {many} are right"
    for first, alike, others in ((0, "even", "odd"), (1, "odd", "even")):
        if many > 3 and right[first::2].all() and not right[1 - first :: 2].any():
            return f" the {alike} indices are right, the {others} ones are not"
    if 2 * count < many:
        return f" only {count} of {many} {'is' if count == 1 else 'are'} right, at index {indices(right)}"
    return f", {count} of {many} are right; wrong at index {indices(~right)}"


def beginning(pair: Pair) -> str:
    """How far a list of numbers is right."""
    if pair.goal.dim() != 1 or pair.goal.numel() < 2:
        return ""
    first = int((~pair.near).nonzero()[0])
    if not first:
        return ""
    begun = "The first number of your result is" if first == 1 else f"The first {first} numbers of your result are"
    here = f"Then, at index {first}, yours is {shown(pair.mine[first])}, the target {shown(pair.goal[first])}."
    rest = pair.near[first + 1 :]
    return f"{begun} right. {here}{' All after it are right.' if rest.numel() and rest.all() else ''}"


def single_number(pair: Pair) -> str:
    """Two numbers, and their difference where that says something."""
    if pair.goal.numel() != 1 or not pair.finite:
        return ""
    mine, goal = pair.mine.item(), pair.goal.item()
    whole, apart = mine == round(mine) and goal == round(goal), round(abs(mine - goal))
    digits = ".0f" if whole else ".6g"
    said = f"Your number is {mine:{digits}}; the right one, for the same input, is {goal:{digits}}"
    exact = abs(abs(mine - goal) - apart) <= 2e-6 * max(1.0, abs(goal))
    if abs(goal) > 1 if whole else exact and 1 <= apart <= LARGEST_STEP and abs(goal) < 100:
        return f"{said}: yours is {apart} too {'large' if mine > goal else 'small'}."
    return f"{said}."


def largest_difference(pair: Pair) -> str:
    """An entry that is wrong, and how many are right."""
    if pair.fractions:
        apart = (pair.mine - pair.goal).abs()
        apart[~torch.isfinite(apart)] = float("inf")
        apart[pair.near] = 0  # two equal infinities, whose difference is NaN, are no difference
        place, which = (apart == apart.max()).nonzero()[0], "They differ most at"
    else:  # among ids, 7 is no nearer to 8 than to 2
        place, which = (~pair.near).nonzero()[0], "The first that is wrong is at"
    index = tuple(int(i) for i in place)
    right = int(pair.near.sum())
    still = f" {right} of {pair.goal.numel()} are right." if right else ""
    return (
        f"Shape and type are right, {NUMBERS_WRONG} {which} {entry(list(index), pair.axes)}: "
        f"yours is {shown(pair.mine[index])}, the target {shown(pair.goal[index])}.{still}"
    )
