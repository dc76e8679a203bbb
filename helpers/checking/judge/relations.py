"""Detectors of one relation between all numbers and the right ones: a factor, a term, a softmax, sums of rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import torch

from helpers.checking.judge.pair import ENOUGH, Pair, told_apart
from helpers.text import listed

LARGEST_SIMPLE = 4096  # a factor may be any whole number up to this, its root, or one over either
FEW = 64  # the same for a single number, which is some number times the right one whatever it is
LARGEST_DENOMINATOR = 12  # of a fraction that is no 1/8 and means something
SMALL = 3  # whole numbers up to this are multiples and divisors of many


def scaled(pair: Pair) -> str:
    """All numbers times one factor."""
    if not pair.finite or not pair.goal.any() or pair.target.dtype == torch.bool:
        return ""
    if pair.alike(-pair.mine, pair.goal):
        return f"{_right(pair)} with the sign turned round."
    factor = ((pair.mine * pair.goal).sum() / (pair.goal * pair.goal).sum()).item()
    if not pair.fractions or abs(factor) < 1e-9 or not pair.alike(pair.mine, factor * pair.goal):
        return ""
    if pair.goal.numel() == 1 and _by_chance(pair.mine.item(), pair.goal.item()):
        return ""
    if simple := simple_factor(factor, pair.varied):
        return f"{_right(pair)} times {simple}."
    return f"Every number is the right one times {told_apart(factor, 1)[0]}." if pair.varied else ""


def _by_chance(mine: float, goal: float) -> bool:
    """Are these two whole numbers, one of them so small that one is easily a multiple of the other?"""
    return mine == round(mine) and goal == round(goal) and min(abs(mine), abs(goal)) <= SMALL


def simple_factor(factor: float, many: bool) -> str:
    """The factor as one writes it, where it means something: 2, 1/8, 10/3, √3, 1/√3, ln 2; "" for any other."""
    sign, size = ("-" if factor < 0 else ""), abs(factor)
    if abs(size - 1) < 1e-3:
        return ""
    for name, value in (("ln 2", math.log(2)), ("1/ln 2", 1 / math.log(2))):
        if abs(size / value - 1) < 2e-5:
            return f"{sign}{name} ({factor:.4g}), as between bits and natural logarithms"
    largest, apart = (LARGEST_SIMPLE, 2e-4) if many else (FEW, 1e-5)
    for power, root in ((1, ""), (2, "√")):
        for over, value in (("", size**power), ("1/", size**-power)):
            whole = round(value)
            if 2 <= whole <= largest and abs(value - whole) < apart * whole:
                number = f"{sign}{over}{root}{whole}"
                return number if number.lstrip("-").isdigit() else f"{number} ({factor:.4g})"
    if many and abs(factor - float(f"{factor:.2g}")) < 1e-4 * size:
        return f"{factor:.2g}"
    ratio = Fraction(size).limit_denominator(LARGEST_DENOMINATOR)
    return f"{sign}{ratio} ({factor:.4g})" if many and abs(size / float(ratio or 1) - 1) < 2e-5 else ""


def added(pair: Pair) -> str:
    """One number added to all."""
    if not pair.finite or pair.mine.numel() <= 2 or pair.target.dtype == torch.bool:
        return ""
    shift = (pair.mine - pair.goal).mean()
    if not pair.varied or (pair.goal - pair.goal.mean()).abs().max() < 1e-2 * pair.scale:
        return ""
    if abs(shift) > 1e-3 * pair.scale and pair.alike(pair.mine - shift, pair.goal):
        return f"Your numbers are the right ones {'plus' if shift > 0 else 'minus'} {abs(shift.item()):.4g} everywhere."
    return ""


def _right(pair: Pair) -> str:
    return "Your number is the right one" if pair.goal.numel() == 1 else "Your numbers are the right ones"


def softmax_of_the_right(pair: Pair) -> str:
    """The right numbers, and a softmax too many."""
    if not (pair.fractions and pair.finite and pair.yours.is_floating_point() and pair.varied):
        return ""
    for place in range(pair.goal.dim()):
        if pair.goal.shape[place] > 2 and pair.alike(pair.mine, pair.goal.softmax(place)):
            return f"Your numbers are the softmax of the right ones along {pair.axis(place)}."
    return ""


def scaled_along(pair: Pair) -> str:
    """Right but for a factor that depends on some axes and not on the others."""
    for same, differing in _splits(pair):
        goal, mine = _in_blocks(pair.goal, same), _in_blocks(pair.mine, same)
        factors = (mine * goal).sum(-1, keepdim=True) / (goal * goal).sum(-1, keepdim=True)
        if not torch.isfinite(factors).all() or not (factors.abs() > 1e-6).all():
            continue
        if len(differing) > 1 and factors.min() < 0 < factors.max():  # almost anything is that, of numbers so few
            continue
        if not pair.alike(mine, factors * goal) or not _tells_factors(goal, pair.scale):
            continue
        return (
            f"Your numbers are the right ones times a factor that differs along "
            f"{pair.several_axes(differing)}: {_span(factors)}."
        )
    return ""


def _splits(pair: Pair) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The axes in two parts, (same, differing), first those with most in `same`: fewest numbers are fitted there."""
    axes = [place for place in range(pair.goal.dim()) if pair.goal.shape[place] > 1]
    mostly_right = pair.near.double().mean() > 0.5  # which part is wrong says more then
    if mostly_right or not (pair.finite and pair.fractions and pair.yours.is_floating_point() and pair.varied):
        return
    for count in range(len(axes) - 1, 0, -1):
        for same in itertools.combinations(axes, count):
            differing = tuple(place for place in axes if place not in same)
            blocks = math.prod(pair.goal.shape[place] for place in differing)
            if pair.goal.numel() - blocks >= 2 * ENOUGH and pair.goal.numel() / blocks >= ENOUGH:
                yield same, differing


def _in_blocks(tensor: torch.Tensor, same: tuple[int, ...]) -> torch.Tensor:
    """A matrix with a row for each index of the other axes."""
    order = [place for place in range(tensor.dim()) if place not in same] + list(same)
    size = math.prod(tensor.shape[place] for place in same)
    return tensor.permute(order).reshape(-1, size)


def _tells_factors(goal: torch.Tensor, scale: float) -> bool:
    """Would another tensor hardly be a multiple of it, row by row? Not where all rows are multiples of one."""
    enough = (goal.abs() > 1e-3 * scale).sum(-1) >= 2
    sizes = torch.linalg.svdvals(goal)
    return bool(enough.float().mean() > 0.5 and sizes.numel() > 1 and sizes[1] > 1e-2 * sizes[0])


def _span(factors: torch.Tensor) -> str:
    numbers = factors.flatten()
    if numbers.numel() <= 4:
        return listed([told_apart(number, 1)[0] for number in numbers])
    return "between {} and {}".format(*told_apart(numbers.min(), numbers.max()))


def same_along(pair: Pair) -> str:
    """The same at every index of an axis along which the target differs."""
    for place in range(pair.goal.dim()):
        if pair.goal.shape[place] < 2 or pair.goal.dim() < 2 or not pair.finite:
            continue
        mine, goal = (tensor.movedim(place, 0) for tensor in (pair.mine, pair.goal))
        if pair.alike(mine, mine[:1].expand_as(mine)) and not pair.alike(goal, goal[:1].expand_as(goal)):
            return f"Along {pair.axis(place)} all entries of your result are alike; those of the right one differ."
    return ""


def sums(pair: Pair) -> str:
    """Rows that have to sum to 1 and do not."""
    if not (pair.fractions and pair.finite and pair.yours.is_floating_point()):
        return ""
    for place in reversed(range(pair.goal.dim())):
        if pair.goal.shape[place] > 1 and _sums_to_one(pair.goal.movedim(place, -1)):
            totals = pair.mine.sum(place)
            off = totals[(totals - 1).abs() > 1e-3]
            says = f"The right numbers sum to 1 along {pair.axis(place)}; yours sum to "
            return f"{says}{off[0]:.4g} in the first row that does not." if off.numel() else ""
    return ""


def _sums_to_one(rows: torch.Tensor) -> bool:
    """Are the rows shares of 1, and not all of them a single 1?"""
    shares = (rows >= -1e-6).all() and ((rows.sum(-1) - 1).abs() < 1e-4).all()
    return bool(shares and not (rows == rows.round()).all())
