"""Detectors of the right numbers at other places, of other types, and of truth values that are wrong."""

from __future__ import annotations

import itertools
import math

import torch

from helpers.checking.judge.pair import ENOUGH, Pair, dtype_name, shown, told_apart
from helpers.text import listed

LONGEST_AXIS = 64  # along which entries are looked for at other places


def rounded(pair: Pair) -> str:
    """A type that cannot hold the numbers."""
    if not pair.fractions:
        return ""
    if not pair.yours.is_floating_point():
        kind = dtype_name(pair.yours)
        return f"Your result is of type {kind}, which cannot hold fractions; a floating-point tensor is needed."
    narrow = pair.yours.dtype in (torch.float16, torch.bfloat16) and pair.target.dtype != pair.yours.dtype
    if narrow and pair.finite and (pair.mine - pair.goal).abs().max() < 1e-2 * pair.scale:
        return f"Your numbers are nearly right, but of type {dtype_name(pair.yours)}: precision was lost on the way."
    return ""


def not_finite(pair: Pair) -> str:
    """NaN, or infinity, where numbers are needed."""
    bad = ~torch.isfinite(pair.mine) & torch.isfinite(pair.goal) | pair.mine.isnan()
    if not bad.any():
        return ""
    first = bad.nonzero()[0].tolist()
    number = pair.mine[tuple(first)].item()
    nan = math.isnan(number)
    bad &= pair.mine.isnan() if nan else pair.mine == number
    some = f"in {int(bad.sum())} of {bad.numel()} entries, first at {pair.entry(first)}"
    where = f" {pair.region(bad) or some}" if bad.dim() else ""
    if nan:
        return (
            f"Your result is NaN (not a number){where}. NaN comes from 0/0, ∞ − ∞, 0 · ∞ and roots or logarithms of "
            "negative numbers: look at what is divided, and at what grows too large (exp, a square)."
        )
    there = "; finite values are needed there" if where else ", where a finite value is needed"
    kind = shown(number)
    if where and (pair.goal == number).any():  # your code fills it in, as it has to, and in too many places
        missed = int(((pair.goal == number) & (pair.mine != number)).sum())
        few = f" It is missing in {missed} others." if missed else ""
        return f"Your result holds {kind}{where}, where other numbers are needed.{few}"
    return (
        f"Your result {'holds' if where else 'is'} {kind}{where}{there}. If your code does not fill in {kind} itself, "
        "look at divisions by 0, logarithms of 0, and what grows too large (exp, a square)."
    )


def should_be_infinite(pair: Pair) -> str:
    """Finite where ±∞ is needed, and right everywhere else."""
    needed = torch.isinf(pair.goal)
    missed = needed & torch.isfinite(pair.mine)
    if not missed.any() or not (pair.near | missed).all():
        return ""
    kind = shown(pair.goal[missed][0])
    where = f"in {int(missed.sum())} of the {int(needed.sum())} entries that have to be {kind}"
    return f"{kind} is missing {where}."


def constant(pair: Pair) -> str:
    """The same number everywhere."""
    numbers = pair.mine.flatten()
    tiny = numbers.numel() > 1 and pair.finite and 0 < numbers.abs().max() < 1e-6 * pair.scale
    if tiny and not pair.alike(pair.mine / pair.mine.norm(), pair.goal / pair.goal.norm()):
        return "Every entry of your result is 0 but for rounding."
    if numbers.numel() < 2 or not (numbers == numbers[0]).all():
        return ""
    number = str(bool(numbers[0])) if pair.yours.dtype == torch.bool else shown(numbers[0])
    if (pair.goal == pair.goal.flatten()[0]).all():
        first = pair.goal.flatten()[0]
        number, right = told_apart(numbers[0], first) if pair.fractions else (number, shown(first))
        return f"Every entry of your result is {number}; it has to be {right}."
    return f"Every entry of your result is {number}."


def transposed(pair: Pair) -> str:
    """Two axes of one length exchanged."""
    for first, second in itertools.combinations(range(pair.goal.dim()), 2):
        alike = pair.goal.shape[first] == pair.goal.shape[second] > 1
        if alike and pair.alike(pair.mine.transpose(first, second), pair.goal):
            last = (first, second) == (pair.goal.dim() - 2, pair.goal.dim() - 1)
            both = pair.several_axes((first, second))
            which = "last two axes" if last and both == f"axes {first} and {second}" else both
            return f"Your numbers are the right ones with the {which} exchanged: you have the transpose."
    return ""


def moved(pair: Pair) -> str:
    """The right slices along an axis at other places: one place on, in reverse, in another order, one for all."""
    for place in range(pair.goal.dim()):
        sources = _sources(pair, place)
        sentence = _how_moved(sources, pair.axis(place)) if sources else ""
        if sentence:
            return sentence
    return ""


def _sources(pair: Pair, place: int) -> list[int | None]:
    """For each slice of yours along the axis, where in the target it belongs; [] where that is not told apart."""
    count = pair.goal.shape[place]
    mine, goal = (tensor.movedim(place, 0).reshape(count, -1) for tensor in (pair.mine, pair.goal))
    size = goal.shape[1]
    if not pair.finite or not 1 < count <= LONGEST_AXIS or (size == 1 and count < 4):
        return []
    if count * count * size > 1 << 20:
        return []
    among = pair.entries_alike(goal[:, None].expand(-1, count, -1), goal[None].expand(count, -1, -1)).all(dim=-1)
    if int(among.sum()) > count:  # two slices of the target are the same
        return []
    found = pair.entries_alike(mine[:, None].expand(-1, count, -1), goal[None].expand(count, -1, -1)).all(dim=-1)
    return [row.nonzero()[0].item() if row.any() else None for row in found]


def _how_moved(sources: list[int | None], axis: str) -> str:
    count = len(sources)
    places = list(range(count))
    for step in (1, -1, 2, -2):
        inside = [i for i in places if 0 <= i + step < count]
        if len(inside) >= max(ENOUGH, count - 2) and all(sources[i] == i + step for i in inside):
            far = f"{'one place' if abs(step) == 1 else 'two places'} {'ahead' if step > 0 else 'behind'}"
            source = f"i {'+' if step > 0 else '−'} {abs(step)}"
            return f"Along {axis} your result is {far}: index i holds what belongs at {source}."
    if None in sources or sources == places:
        return ""
    if len(set(sources)) == 1:
        return f"Along {axis} all entries of your result are alike: they are what belongs at index {sources[0]}."
    order = f": yours are those of {listed(list(map(str, sources)), 12)}" if count <= 12 else ""
    return f"Along {axis} the right entries are at other places{order}."


def reordered(pair: Pair) -> str:
    """The right numbers, each as often as it has to be, at other places."""
    flat = pair.goal.flatten().sort().values
    if flat.numel() < 4 or pair.target.dtype == torch.bool or flat.unique().numel() < 4 or not pair.finite:
        return ""
    if not pair.alike(pair.mine.flatten().sort().values, flat):
        return ""
    if pair.goal.dim() == 1:
        return "Your result holds the right numbers in another order."
    for place in range(pair.goal.dim()):
        if pair.alike(pair.mine.sort(place).values, pair.goal.sort(place).values):
            return f"Along {pair.axis(place)} your result holds the right numbers in another order."
    look = " Look for a reshape (view, flatten) where axes have to be exchanged, or for a different order."
    return f"Your result holds the right numbers at other places.{look if pair.fractions else ''}"


def truth(pair: Pair) -> str:
    """True and False: exchanged, too often, or too seldom."""
    if pair.target.dtype != torch.bool or pair.mine.numel() < 2:
        return ""
    extra, missing = (pair.mine != 0) & (pair.goal == 0), (pair.mine == 0) & (pair.goal != 0)
    if (extra | missing).all():
        return "Your result is False where True is needed, and True where False is."
    many, few = int(extra.sum()), int(missing.sum())
    if not (many and few):
        wrong, kind = (extra, "True") if many else (missing, "False")
        where = pair.region(wrong) or f"the first at {pair.entry(wrong.nonzero()[0].tolist())}"
        entries = "1 entry" if many + few == 1 else f"{many + few} entries"
        return f"Your result is {kind} in {entries} where it should be {not many}, {where}."
    return ""
