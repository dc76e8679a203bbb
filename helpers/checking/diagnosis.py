"""What to say of a wrong outcome that no known mistake explains."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

import torch

from helpers.checking.answers import ANSWERED, NOT_ATTEMPTED, REFUSED, Outcome
from helpers.checking.compare import same_outcome
from helpers.exercises.exercise import Aspect
from helpers.exercises.tolerance import size_of, widened

NAMES = "names and shapes"  # the tensor of the aspect `parameters`; "names and shapes of your dict" is of a state


def difference(aspect: Aspect, yours: Outcome, target: Outcome) -> tuple[str, bool]:
    """What is wrong, and whether that names a difference of a kind (see `_diagnosed`)."""
    if yours.state == NOT_ATTEMPTED:
        return "This part still raises NotImplementedError.", True
    if yours.state == REFUSED:
        return yours.says, True
    if aspect.missed:
        return aspect.missed, True
    if yours.tensors.keys() != target.tensors.keys():
        return f"Your code gives {_listed(yours.tensors)}; {_listed(target.tensors, 'is', 'are')} needed.", True
    for name, tensor in target.tensors.items():
        if yours.tensors[name].dtype == torch.uint8 and tensor.dtype == torch.uint8 and name.startswith(NAMES):
            if torch.equal(yours.tensors[name], tensor):
                continue
            return _different_names(yours.tensors[name], tensor, "module" if name == NAMES else "dict"), True
        alone = Outcome(ANSWERED, {name: yours.tensors[name]})
        if not same_outcome(alone, Outcome(ANSWERED, {name: tensor}), aspect):
            sentence, of_a_kind = _diagnosed(yours.tensors[name], tensor, aspect)
            return _introduced(name, sentence), of_a_kind
    raise AssertionError(f"{aspect.name} holds: there is nothing to explain")


def _introduced(name: str, sentence: str) -> str:
    """A sentence on the tensor of that name, in which it is clear which tensor that is."""
    if name == "result":
        return sentence
    place = re.fullmatch(r"(.+, )?(gradient|result|input) (\d+)", name)
    if place:
        where, kind, number = place.groups()
        which = ORDINALS[int(number)] if int(number) < len(ORDINALS) else f"{int(number) + 1}th"
        of = {"gradient": f"the gradient for your {which} input", "result": f"the {which} thing that is returned"}
        name = f"{where or ''}{of.get(kind, f'the {which} input')}"
    elif name.startswith("gradient of "):
        name = f"the {name}"
    elif not name.startswith(PHRASES):
        name = f"for {name}"
    return f"{name[0].upper()}{name[1:]}: {sentence[0].lower()}{sentence[1:]}"


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
PHRASES = ("with ", "for ", "at ", "in ", "after ", "of ", "on ", "the ", "without ", "before ", "from ", "when ")


def _different_names(yours: torch.Tensor, target: torch.Tensor, whose: str) -> str:
    def decoded(tensor):
        return set(bytes(tensor.tolist()).decode(errors="replace").split("\n"))

    mine, goal = decoded(yours), decoded(target)
    missing, extra = _few(sorted(goal - mine)), _few(sorted(mine - goal))
    parts = [f"is missing {missing}" if missing else "", f"has {extra}, which is not asked for" if extra else ""]
    return f"Your {whose} {' and '.join(part for part in parts if part)}."


def _few(names: list[str], most: int = 6) -> str:
    """The names, or the first of them and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _listed(tensors: Mapping[str, torch.Tensor], one: str = "", more: str = "") -> str:
    if len(tensors) != 1:
        return f"{_few(list(tensors)) or 'nothing'} {more}".strip()
    (name,) = tensors
    return f"{'one tensor' if name == 'result' else repr(name)} {one}".strip()


# ------------------------------------------------------------------------------------------- one tensor


def _diagnosed(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect) -> tuple[str, bool]:
    """One or two sentences on how `yours` differs from `target`, the most telling difference first.

    And whether they name a difference of a kind, not only where the numbers differ.
    """
    axes = aspect.axes.split()
    if yours.shape != target.shape:
        return _wrong_shape(yours, target, axes), True
    if aspect.dtype and yours.dtype != target.dtype:
        return f"Your result is of type {_dtype(yours)}; it has to be {_dtype(target)}.", True
    if not target.is_floating_point():
        aspect = dataclasses.replace(aspect, rtol=0.0, atol=0.0)  # whole numbers: see `exercises.tolerance`
    mine, goal = widened(yours), widened(target)
    if not torch.isfinite(mine).all() and torch.isfinite(goal).all():
        return _not_finite(mine, axes), True
    for look in (_rounded, _constant, _related, _reordered, _by_row, _sums):
        sentence = look(yours, target, mine, goal, axes, aspect)
        if sentence:
            return sentence, True
    for look in (_rows, _beginning):
        sentence = look(yours, target, mine, goal, axes, aspect)
        if sentence:
            return sentence, False
    return _largest_difference(target, mine, goal, axes, aspect), False


def _wrong_shape(yours: torch.Tensor, target: torch.Tensor, axes: list[str]) -> str:
    need = _shape(target, axes)
    if yours.numel() == 0:
        return f"Your result is empty, of shape {tuple(yours.shape)}; {need} is needed."
    if yours.dim() != target.dim():
        many = "axes" if yours.dim() != 1 else "axis"
        sentence = f"Your result has {yours.dim()} {many}, of shape {tuple(yours.shape)}; {need} is needed."
        if [n for n in yours.shape if n != 1] == [n for n in target.shape if n != 1]:
            kind = "is missing" if yours.dim() < target.dim() else "is too many"
            sentence += f" An axis of length one {kind}."
        return sentence
    if sorted(yours.shape) == sorted(target.shape):
        return f"Your result has shape {tuple(yours.shape)}: the right sizes in another order. {need} is needed."
    wrong = [place for place in range(target.dim()) if yours.shape[place] != target.shape[place]]
    names = ", ".join(dict.fromkeys(f"axis {axes[p]}" if p < len(axes) else f"axis {p}" for p in wrong))
    look = f" Look at {names}." if target.dim() > 1 else ""
    return f"Your result has shape {tuple(yours.shape)}; {need} is needed.{look}"


def _shape(target: torch.Tensor, axes: list[str]) -> str:
    if target.dim() == 0:
        return "a single number, of shape (),"
    if len(axes) == target.dim():
        return f"({', '.join(axes)}{',' if len(axes) == 1 else ''}) = {tuple(target.shape)}"
    return f"{tuple(target.shape)}"


def _not_finite(mine: torch.Tensor, axes: list[str]) -> str:
    bad = ~torch.isfinite(mine)
    first = bad.nonzero()[0].tolist()
    kind = "NaN (not a number)" if mine[tuple(first)].isnan() else "infinite"
    share = f"{int(bad.sum())} of {mine.numel()} entries"
    where = f", first at {_place(first, axes)}" if first else ""
    cause = (
        "NaN comes from 0/0, ∞ − ∞ or ∞/∞: look at what is divided, and at what exp gets."
        if "NaN" in kind
        else "Something grew beyond what a float can hold: look at what exp gets, and at divisions by 0."
    )
    return f"Your result is {kind} in {share}{where}. {cause}"


def _constant(yours, target, mine, goal, axes, aspect) -> str:
    if mine.numel() > 1 and goal.std() > 0 and (mine == mine.flatten()[0]).all():
        number = mine.flatten()[0].item()
        shown = str(bool(number)) if yours.dtype == torch.bool else f"{number:.4g}"
        said = f"Every entry of your result is {shown}."
        return f"{said} {NO_GRADIENT}" if number == 0 and aspect.name.split()[0] == "gradient" else said
    return ""


NO_GRADIENT = (
    "That happens where it is not used, or cut off from the graph: detach(), .data, no_grad(), item() or NumPy."
)


def _related(yours, target, mine, goal, axes, aspect) -> str:
    """The right numbers, transposed, negated, scaled or shifted."""
    same = aspect.tolerance.holds
    if goal.dim() >= 2:
        for first in range(goal.dim()):
            for second in range(first + 1, goal.dim()):
                if goal.shape[first] == goal.shape[second] > 1 and same(mine.transpose(first, second), goal):
                    return _exchanged(first, second, axes, goal.dim())
    if target.dtype == torch.bool:
        turned = mine.numel() > 1 and torch.equal(mine, 1 - goal)
        return "Your result is False where True is needed, and True where False is." if turned else ""
    if not goal.any():
        return ""
    if same(-mine, goal):
        return f"{_right(goal)} with the sign turned round."
    factor = (mine * goal).sum() / (goal * goal).sum()
    if target.is_floating_point() and abs(factor) > 1e-6 and same(mine / factor, goal):
        simple = _simple(factor.item(), many=goal.numel() >= 3)
        if simple:
            return f"{_right(goal)} times {simple}."
    shift = (mine - goal).mean()
    if mine.numel() > 2 and abs(shift) > 1e-3 * size_of(goal) and same(mine - shift, goal):
        return f"{_right(goal)} plus {shift:.4g} everywhere."
    return ""


def _right(goal: torch.Tensor) -> str:
    return "Your number is the right one" if goal.numel() == 1 else "Your numbers are the right ones"


def _exchanged(first: int, second: int, axes: list[str], dims: int) -> str:
    names = [axes[p] if len(axes) == dims else str(p) for p in (first, second)]
    if names[0] == names[1]:
        return "Your numbers are the right ones with the last two axes exchanged: you have the transpose."
    return f"Your numbers are the right ones with the axes {names[0]} and {names[1]} exchanged: you have the transpose."


LARGEST_SIMPLE = 4096  # a factor may be any whole number up to this, its root, or one over either
FEW = 16  # the same for a single number, which is some number times the right one whatever it is


def _simple(factor: float, many: bool) -> str:
    """The factor as one writes it, where it is one that means something: 2, 1/8, √3, 1/√3; "" for any other."""
    sign, size = ("-" if factor < 0 else ""), abs(factor)
    if abs(size - 1) < 1e-3:
        return ""
    for power, root in ((1, ""), (2, "√")):
        for over, value in (("", size**power), ("1/", size**-power)):
            whole = round(value)
            if 2 <= whole <= (LARGEST_SIMPLE if many else FEW) and abs(value - whole) < 2e-4 * whole:
                shown = f"{sign}{over}{root}{whole}"
                return shown if shown.lstrip("-").isdigit() else f"{shown} ({factor:.4g})"
    return f"{factor:.2g}" if many and abs(factor - round(factor, 1)) < 1e-4 * size else ""


def _reordered(yours, target, mine, goal, axes, aspect) -> str:
    """The right numbers, each as often as it has to be, at other places."""
    flat = goal.flatten().sort().values
    if goal.numel() < 4 or target.dtype == torch.bool or (flat[1:] > flat[:-1]).sum() < 3:
        return ""
    if not aspect.tolerance.near(mine.flatten().sort().values, flat).all():
        return ""
    if mine.dim() == 1:
        return "Your result holds the right numbers in another order."
    return (
        "Your result holds the right numbers at other places. Look for a reshape (view, flatten) where axes have to"
        " be exchanged, or for a different order."
    )


def _by_row(yours, target, mine, goal, axes, aspect) -> str:
    """Right along the last axis, except for a factor or a term that differs from row to row."""
    if goal.dim() < 2 or goal.shape[-1] < 3 or not target.is_floating_point():
        return ""
    name = f"along axis {axes[-1]}" if len(axes) == goal.dim() else "along the last axis"
    same = aspect.tolerance.holds
    factors = (mine * goal).sum(-1, keepdim=True) / (goal * goal).sum(-1, keepdim=True)
    if (factors.abs() > 1e-6).all() and same(mine / factors, goal):
        if same(mine / factors.mean(), goal):
            return "Your numbers are right except for one common factor: look at what they are divided by."
        return (
            f"Your numbers are right {name}, except for a factor that differs from row to row: look at what they are"
            " divided by."
        )
    shifts = (mine - goal).mean(-1, keepdim=True)
    spread = (goal - goal.mean(-1, keepdim=True)).abs().max()
    if spread > 1e-2 and same(mine - shifts, goal):
        return f"Your numbers are right {name}, except for something that is added and differs from row to row."
    return ""


def _sums(yours, target, mine, goal, axes, aspect) -> str:
    """Rows that have to sum to 1, and do not."""
    if goal.dim() < 1 or goal.shape[-1] < 2 or not target.is_floating_point() or (goal < 0).any():
        return ""
    if not (goal.sum(-1) - 1).abs().max() < 1e-4 or (goal == goal.round()).all():
        return ""
    sums = mine.sum(-1)
    if (mine < -1e-4).any():
        return "The right numbers are at least 0 and sum to 1 along the last axis; some of yours are negative."
    off = ((sums - 1).abs() > 1e-3).flatten()
    if not off.any():
        return ""
    first = sums.flatten()[off][0]
    return f"The right numbers sum to 1 along the last axis; yours sum to {first:.4g} in the first row that does not."


def _rows(yours, target, mine, goal, axes, aspect) -> str:
    """Right along part of the first axis that tells right from wrong."""
    near = aspect.tolerance.near(mine, goal)
    for place in range(goal.dim()):
        others = [p for p in range(goal.dim()) if p != place]
        right = near.all(dim=others) if others else near
        count = int(right.sum())
        if 0 < count < goal.shape[place] and goal.shape[place] > 1 and others:
            name = f"axis {axes[place]}" if place < len(axes) else f"axis {place}"
            if count == 1 and right[0]:
                return f"Along {name} only the first entry of {goal.shape[place]} is right."
            wrong = [str(i) for i in (~right).nonzero().flatten().tolist()[:6]]
            return f"Along {name}, {count} of {goal.shape[place]} are right; wrong at index {', '.join(wrong)}."
    return ""


def _beginning(yours, target, mine, goal, axes, aspect) -> str:
    """How far a list of numbers is right."""
    if goal.dim() != 1 or goal.numel() < 2:
        return ""
    right = aspect.tolerance.near(mine, goal)
    first = int((~right).nonzero()[0])
    if not first:
        return ""
    begun = "The first number of your result is" if first == 1 else f"The first {first} numbers of your result are"
    return f"{begun} right. Then, at index {first}, yours is {_shown(mine[first])}, the target {_shown(goal[first])}."


def _rounded(yours, target, mine, goal, axes, aspect) -> str:
    if not target.is_floating_point():
        return ""
    if not yours.is_floating_point():
        return (
            f"Your result is of type {_dtype(yours)}, which cannot hold fractions; a floating-point tensor is needed."
        )
    if (mine - goal).abs().max() < 1e-2 * size_of(goal) and yours.dtype in (torch.float16, torch.bfloat16):
        return f"Your numbers are nearly right, but of type {_dtype(yours)}: precision was lost on the way."
    return ""


NUMBERS_WRONG = "the numbers are not."  # said when nothing better is known


def _largest_difference(target, mine, goal, axes, aspect) -> str:
    if goal.dim() == 0:
        return f"Your number is {mine.item():.6g}; the right one, for the same input, is {goal.item():.6g}."
    near = aspect.tolerance.near(mine, goal)
    if target.is_floating_point():
        apart = (mine - goal).abs()
        apart[~torch.isfinite(apart)] = float("inf")
        apart[near] = 0  # two equal infinities, whose difference is NaN, are no difference
        place, which = torch.unravel_index(apart.argmax(), goal.shape), "They differ most at"
    else:  # among ids, 7 is no nearer to 8 than to 2
        place, which = (~near).nonzero()[0], "The first that is wrong is at"
    index = tuple(int(i) for i in place)
    right = int(near.sum())
    still = f" {right} of {goal.numel()} are right." if right else ""
    return (
        f"Shape and type are right, {NUMBERS_WRONG} {which} {_place(list(index), axes)}: "
        f"yours is {_shown(mine[index])}, the target {_shown(goal[index])}.{still}"
    )


def _shown(number: torch.Tensor) -> str:
    """50256 as it is, and 0.123456 as 0.1235."""
    value = number.item()
    return f"{value:.0f}" if value == value // 1 and abs(value) < 1e9 else f"{value:.4g}"


def _place(index: list[int], axes: list[str]) -> str:
    if len(axes) == len(index) and len(set(axes)) == len(axes):
        return "[" + ", ".join(f"{axis}={i}" for axis, i in zip(axes, index, strict=True)) + "]"
    return "[" + ", ".join(map(str, index)) + "]"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
