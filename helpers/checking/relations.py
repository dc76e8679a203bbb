"""Detectors of one relation between all numbers and the right ones: a factor, a term, a function, sums of rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import torch

from helpers.checking.pair import ENOUGH, Pair, shown
from helpers.checking.positions import axis_names, listed

LARGEST_SIMPLE = 4096  # a factor may be any whole number up to this, its root, or one over either
FEW = 64  # the same for a single number, which is some number times the right one whatever it is
SMALL = 3  # whole numbers up to this are multiples and divisors of many


# ---------------------------------------------------------------------------------- one relation for all numbers


def scaled(pair: Pair) -> str:
    """All numbers times one factor."""
    if not pair.finite or not pair.goal.any() or pair.target.dtype == torch.bool:
        return ""
    if pair.alike(-pair.mine, pair.goal):
        return f"{_right(pair)} with the sign turned round."
    factor = ((pair.mine * pair.goal).sum() / (pair.goal * pair.goal).sum()).item()
    if not pair.fractions or abs(factor) < 1e-6 or not pair.alike(pair.mine, factor * pair.goal):
        return ""
    if pair.goal.numel() == 1 and _by_chance(pair.mine.item(), pair.goal.item()):
        return ""
    if simple := simple_factor(factor, pair.varied):
        return f"{_right(pair)} times {simple}."
    total = pair.goal.sum()
    if pair.varied and pair.goal.dim() == 1 and (pair.goal >= 0).all() and abs(total - 1) < 1e-4:
        return f"Your numbers are the right ones times {factor:.4g}: they sum to {factor:.4g}, and have to sum to 1."
    return f"Every number is the right one times {factor:.4g}." if pair.varied else ""


def _by_chance(mine: float, goal: float) -> bool:
    """Are these two whole numbers, one of them so small that one is easily a multiple of the other?"""
    return mine == round(mine) and goal == round(goal) and min(abs(mine), abs(goal)) <= SMALL


def simple_factor(factor: float, many: bool = True) -> str:
    """The factor as one writes it, where it is one that means something: 2, 1/8, √3, 1/√3, ln 2; "" for any other."""
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
    return f"{factor:.2g}" if many and abs(factor - round(factor, 1)) < 1e-4 * size else ""


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


def _log(x: torch.Tensor) -> torch.Tensor:
    return x.log() if (x > 0).all() else torch.full_like(x, math.nan)


# What yours would be of the right numbers, entry by entry
OF_THE_RIGHT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the square of the right one": torch.square,
    "the square root of the right one": torch.sqrt,
    "the logarithm of the right one": _log,
    "the base-2 logarithm of the right one": lambda x: _log(x) / math.log(2),
    "the exponential of the right one": torch.exp,
    "2 to the power of the right one": torch.exp2,
    "1 minus the right one": lambda x: 1 - x,
    "1 divided by the right one": torch.reciprocal,
    "the size of the right one, without its sign": torch.abs,
    "the right one after a sigmoid": torch.sigmoid,
    "the right one after a tanh": torch.tanh,
}
# What the right numbers would be of yours
STILL_TO_DO: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a sigmoid": torch.sigmoid,
    "a tanh": torch.tanh,
    "a ReLU": torch.relu,
    "a GELU": torch.nn.functional.gelu,
    "an absolute value": torch.abs,
}


def another_function(pair: Pair) -> str:
    """The right numbers, and a function too many or too few."""
    single = pair.goal.numel() == 1 and (pair.goal * 12 - (pair.goal * 12).round()).abs().item() > 1e-3
    if not (pair.fractions and pair.finite and pair.yours.is_floating_point() and (pair.varied or single)):
        return ""
    each = "Your number" if single else "Each of your numbers"
    for words, function in OF_THE_RIGHT.items():
        if pair.alike(pair.mine, function(pair.goal)):
            return f"{each} is {words}."
    if single:
        return ""
    for words, function in STILL_TO_DO.items():
        if pair.alike(function(pair.mine), pair.goal):
            return f"Your numbers are right as soon as {words} is applied to them."
    for place in range(pair.goal.dim()):
        if pair.goal.shape[place] > 2:
            along = pair.axis(place)
            for words, changed in (
                ("the softmax of the right ones", pair.goal.softmax(place)),
                ("the log-softmax of the right ones", pair.goal.log_softmax(place)),
                ("running sums of the right ones", pair.goal.cumsum(place)),
            ):
                if pair.alike(pair.mine, changed):
                    return f"Your numbers are {words} along {along}."
            if pair.alike(pair.mine.softmax(place), pair.goal):
                return f"Your numbers are right as soon as a softmax along {along} is applied to them."
    return ""


# ------------------------------------------------------------------------- one relation along some of the axes


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
        off = _first_off(mine) if _sums_to_one(goal) else None
        if off is not None:
            return (
                f"Each row along {axis_names(same, pair.axes, pair.goal.shape)} is the right one times a number of its "
                f"own, and has to sum to 1; the first sums to {mine.sum(-1)[off].item():.4g}. Divide each row by "
                "its sum."
            )
        return (
            f"Your numbers are right except for a factor, which differs along "
            f"{axis_names(differing, pair.axes, pair.goal.shape)}: it is {_span(factors)}."
        )
    return ""


def added_along(pair: Pair) -> str:
    """Right but for something added that depends on some axes and not on the others."""
    for same, differing in _splits(pair):
        goal, apart = _in_blocks(pair.goal, same), _in_blocks(pair.mine - pair.goal, same)
        largest = apart.abs().max().item()
        spread = (goal - goal.mean(-1, keepdim=True)).abs()
        steady = (apart - apart.mean(-1, keepdim=True)).abs().max() <= max(1e-3 * largest, 1e-5 * pair.scale)
        if largest < 1e-2 * pair.scale or not steady or not (spread > 1e-2 * pair.scale).any(-1).float().mean() > 0.5:
            continue
        if _additive(goal, pair.scale):
            continue
        return (
            f"Your numbers are right except for a term that is added or missing: it differs along "
            f"{axis_names(differing, pair.axes, pair.goal.shape)}, and is the same all along "
            f"{axis_names(same, pair.axes, pair.goal.shape)}."
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


def _additive(goal: torch.Tensor, scale: float) -> bool:
    """Is every row another plus a number? Then so is much that has nothing to do with it."""
    centred = goal - goal.mean(-1, keepdim=True)
    return bool((centred - centred.mean(0)).abs().max() < 1e-2 * scale)


def _span(factors: torch.Tensor) -> str:
    numbers = factors.flatten()
    if numbers.numel() <= 4:
        return listed([shown(number) for number in numbers])
    return f"between {shown(numbers.min())} and {shown(numbers.max())}"


def same_along(pair: Pair) -> str:
    """The same at every index of an axis along which the target differs."""
    for place in range(pair.goal.dim()):
        if pair.goal.shape[place] < 2 or pair.goal.dim() < 2 or not pair.finite:
            continue
        mine, goal = (tensor.movedim(place, 0) for tensor in (pair.mine, pair.goal))
        if pair.alike(mine, mine[:1].expand_as(mine)) and not pair.alike(goal, goal[:1].expand_as(goal)):
            mean = pair.fractions and pair.alike(mine[0], goal.mean(dim=0))
            those = "they are the mean of the right ones" if mean else "those of the right one differ"
            return f"Along {pair.axis(place)} all entries of your result are alike; {those}."
    return ""


# ------------------------------------------------------------------------------------------- sums of rows


def sums(pair: Pair) -> str:
    """Rows that have to sum to 1 and do not, or do and should not."""
    if not (pair.fractions and pair.finite and pair.yours.is_floating_point()):
        return ""
    places = [place for place in reversed(range(pair.goal.dim())) if pair.goal.shape[place] > 1]
    needed = next((place for place in places if _sums_to_one(pair.goal.movedim(place, -1))), None)
    made = next((place for place in places if _sums_to_one(pair.mine.movedim(place, -1))), None)
    if needed is None:
        if made is None or pair.mine.numel() // pair.mine.shape[made] < 2:
            return ""
        rows = pair.goal.movedim(made, -1)
        off = _first_off(rows)
        if off is None:
            return ""
        total = rows.sum(-1).flatten()[off].item()
        return (
            f"Your numbers sum to 1 along {pair.axis(made)}; the right ones do not: one of their sums is {total:.4g}."
        )
    rows = pair.mine.movedim(needed, -1)
    if _sums_to_one(rows):
        return ""
    along = pair.axis(needed)
    if made is not None:
        return f"Your numbers sum to 1 along {pair.axis(made)}; they have to along {along}."
    if (rows < -1e-4).any():
        return f"The right numbers are at least 0 and sum to 1 along {along}; some of yours are negative."
    off = _first_off(rows)
    if off is None:
        return ""
    total = rows.sum(-1).flatten()[off].item()
    return f"The right numbers sum to 1 along {along}; yours sum to {total:.4g} in the first row that does not."


def _sums_to_one(rows: torch.Tensor) -> bool:
    """Are the rows shares of 1, and not all of them a single 1?"""
    shares = (rows >= -1e-6).all() and ((rows.sum(-1) - 1).abs() < 1e-4).all()
    return bool(shares and not (rows == rows.round()).all())


def _first_off(rows: torch.Tensor) -> int | None:
    """The first row that does not sum to 1."""
    off = ((rows.sum(-1) - 1).abs() > 1e-3).flatten().nonzero()
    return int(off[0]) if off.numel() else None
