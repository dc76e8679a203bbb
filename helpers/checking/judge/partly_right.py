"""Which part of a tensor is right, how far off the other part is, and what is too long or too short."""

from __future__ import annotations

import math

import torch

from helpers.checking.judge.pair import ENOUGH, Pair, indices, shown, told_apart
from helpers.exercises.exercise import Aspect

NUMBERS_WRONG = "the numbers are not."  # said when nothing better is known
ONLY_NUMBERS = f"Shape and type are right, {NUMBERS_WRONG} "
LONGEST = 1000  # slices that are compared
OF_ALL = {1: " All wrong ones are too long.", -1: " All wrong ones are too short.", 0: " All have the right length."}
NEARLY = 0.01  # of a number: what is off by less is nearly right, where most numbers are off
FEW_NEARLY = 0.001  # the same where most are right
MANY_ENTRIES = 8  # that are right, and as many that are wrong, all of them where the right ones are one number
MANY = 16  # wrong numbers that do not all come near the right ones by chance
SOMETHING_SMALL = (
    "Something small differs, such as an ε of another size, an approximate formula{}, or a sum that drops its smallest "
    "terms."
)
FLOAT32 = 1e-4  # of a number: more than what a float32 on the way makes of it
LARGEST_STEP = 16  # a whole number by which a fraction may be too large


def except_a_constant(pair: Pair) -> str:
    """Right but where the target is one certain number, at whatever places."""
    wrong = ~pair.near
    numbers, yours = pair.goal[wrong], pair.mine[wrong]
    if (
        not pair.fractions
        or min(int(wrong.sum()), int(pair.near.sum())) < MANY_ENTRIES
        or not (numbers == numbers[0]).all()
    ):
        return ""
    if not torch.equal(wrong, pair.goal == numbers[0]) or "diagonal" in pair.region(pair.near):
        return ""
    there = f" There it is {shown(yours[0])}." if (yours == yours[0]).all() else ""
    return f"Your result is right everywhere except where it has to be {shown(numbers[0])}.{there}"


def along_an_axis(pair: Pair) -> str:
    """Right at some indices of an axis, or on one side of the diagonal."""
    part = pair.region(pair.near) if pair.near.dim() > 1 and pair.near.any() else ""
    if "diagonal" in part:
        return f"Your result is right {part}, and nowhere else."
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
            return f" all is right but the {other} of {many}"
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
    yours, right = told_apart(pair.mine[first], pair.goal[first])
    here = f"Then, at index {first}, yours is {yours}, the target {right}."
    rest = pair.near[first + 1 :]
    return f"{begun} right. {here}{' All after it are right.' if rest.numel() and rest.all() else ''}"


def single_number(pair: Pair) -> str:
    """Two numbers, and their difference where that says something."""
    if pair.goal.numel() != 1 or not pair.finite:
        return ""
    mine, goal = pair.mine.item(), pair.goal.item()
    whole, apart = mine == round(mine) and goal == round(goal), round(abs(mine - goal))
    yours, right = (f"{mine:.0f}", f"{goal:.0f}") if whole else told_apart(mine, goal, 6)
    said = f"Your number is {yours}; the right one, for the same input, is {right}"
    exact = abs(abs(mine - goal) - apart) <= 2e-6 * max(1.0, abs(goal))
    if abs(goal) > 1 if whole else exact and 1 <= apart <= LARGEST_STEP and abs(goal) < 100:
        return f"{said}: yours is {apart} too {'large' if mine > goal else 'small'}."
    return f"{said}{_close(mine, goal) if pair.fractions else ''}."


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
    count = int(pair.near.sum())
    still = f" {count} of {pair.goal.numel()} are right." if count else ""
    yours, right = told_apart(pair.mine[index], pair.goal[index])
    close = _close(pair.mine[index].item(), pair.goal[index].item()) if pair.fractions else ""
    where = f"{which} {pair.entry(index)}: yours is {yours}, the target {right}{close}.{still}"
    return f"{ONLY_NUMBERS}{where}"


def nearly(pair: Pair) -> str:
    """How near all numbers are to the right ones, where that is near."""
    precise = pair.yours.dtype in (torch.float32, torch.float64)
    counted = bool((pair.mine == pair.mine.round()).all() and (pair.goal == pair.goal.round()).all())
    if counted or not (pair.fractions and precise and pair.finite and pair.varied):
        return ""
    wrong = int((~pair.near).sum())
    limit = NEARLY if wrong >= MANY or 2 * wrong > pair.goal.numel() else FEW_NEARLY
    apart, sizes = (pair.mine - pair.goal).abs(), pair.goal.abs()
    if apart.max() > (pair.goal.max() - pair.goal.min()) / 10:  # of numbers that are nearly alike, any is near any
        return ""
    each = (apart / sizes.clamp(min=torch.finfo(torch.float64).tiny)).max().item()  # as a share of the right number
    among = (apart.max() / sizes[sizes > 0].median()).item()  # as a share of one that is neither large nor small
    if each <= limit:
        how = f"All numbers are within {_percent(each)} of the right ones"
    elif among <= limit:
        how = f"No number is off by more than {_percent(apart.max().item() / pair.scale)} of the largest one"
    else:
        return ""
    narrow = ", a float32 on the way" if pair.target.dtype == torch.float64 and each < FLOAT32 else ""
    return f"{how}. {SOMETHING_SMALL.format(narrow)}"


def _close(mine: float, goal: float) -> str:
    """How far a number is from one that it nearly is, "" where it is not near."""
    off = abs(mine - goal) / abs(goal) if goal else math.inf
    return f": close, but off by {float(f'{100 * off:.1g}'):g} %" if 1e-7 <= off <= NEARLY else ""


def _percent(share: float) -> str:
    """A share in per cent, rounded up to one digit."""
    exponent = math.floor(math.log10(100 * share))
    rounded = math.ceil(round(100 * share / 10**exponent, 6)) * 10**exponent
    return f"{rounded:.{max(0, -exponent)}f}".removesuffix("0").removesuffix(".") + " %"


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


def first_wrong_row(pair: Pair) -> str:
    """Of rows up to their ends: whether the wrong ones end too early or too late, and the first of them."""
    filler = pair.aspect.filler
    if filler is None or pair.goal.dim() != 2 or pair.yours.is_floating_point():
        return ""
    both = zip(pair.yours.tolist(), pair.target.tolist(), strict=True)
    rows = [([i for i in mine if i != filler], [i for i in goal if i != filler]) for mine, goal in both if mine != goal]
    ends = {(len(mine) > len(goal)) - (len(mine) < len(goal)) for mine, goal in rows}
    kind, right = f"{pair.axes[0]}s" if pair.axes else "rows", len(pair.goal) - len(rows)
    count = f"{right} of {len(pair.goal)} {kind} are right." if right else f"None of the {kind} is right."
    of_all = OF_ALL[ends.pop()] if len(ends) == 1 else ""
    return f"{count}{of_all} The first wrong one is {rows[0][0]}, and has to be {rows[0][1]}."
