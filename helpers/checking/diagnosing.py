"""What can be said of a wrong tensor when no known mistake fits."""

from __future__ import annotations

import torch

from helpers.checking.comparing import close, size_of, widened
from helpers.exercises.exercise import Aspect


def diagnose(yours: torch.Tensor, target: torch.Tensor, aspect: Aspect) -> str:
    """One or two sentences on how `yours` differs from `target`, the most telling difference first."""
    axes = aspect.axes.split()
    if yours.shape != target.shape:
        return _wrong_shape(yours, target, axes)
    if aspect.dtype and yours.dtype != target.dtype:
        return f"Your result is of type {_dtype(yours)}; it has to be {_dtype(target)}."
    if yours.is_complex():
        return "Your result holds complex numbers; real ones are needed."
    mine, goal = widened(yours), widened(target)
    if not torch.isfinite(mine).all() and torch.isfinite(goal).all():
        return _not_finite(mine, axes)
    for look in (_constant, _related, _rows, _rounded):
        said = look(yours, mine, goal, axes, aspect)
        if said:
            return said
    return _largest_difference(mine, goal, axes)


def _wrong_shape(yours: torch.Tensor, target: torch.Tensor, axes: list[str]) -> str:
    need = _shape(target, axes)
    if yours.numel() == 0:
        return f"Your result is empty, of shape {tuple(yours.shape)}; {need} is needed."
    if yours.dim() != target.dim():
        many = "axes" if yours.dim() != 1 else "axis"
        return f"Your result has {yours.dim()} {many}, of shape {tuple(yours.shape)}; {need} is needed."
    if sorted(yours.shape) == sorted(target.shape):
        return f"Your result has shape {tuple(yours.shape)}: the right sizes in another order. {need} is needed."
    wrong = [place for place in range(target.dim()) if yours.shape[place] != target.shape[place]]
    names = ", ".join(f"axis {axes[p]}" if p < len(axes) else f"axis {p}" for p in wrong)
    return f"Your result has shape {tuple(yours.shape)}; {need} is needed. Look at {names}."


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


def _constant(yours, mine, goal, axes, aspect) -> str:
    if mine.numel() > 1 and goal.std() > 0 and (mine == mine.flatten()[0]).all():
        return f"Every entry of your result is {mine.flatten()[0]:.4g}, whatever the input."
    return ""


def _related(yours, mine, goal, axes, aspect) -> str:
    """The right numbers, transposed, negated, scaled or shifted."""
    as_double = _loose(aspect)
    if goal.dim() >= 2:
        for first in range(goal.dim()):
            for second in range(first + 1, goal.dim()):
                if goal.shape[first] == goal.shape[second] and as_double(mine.transpose(first, second), goal):
                    names = [axes[p] if len(axes) == goal.dim() else str(p) for p in (first, second)]
                    if names[0] == names[1]:
                        return (
                            "Your numbers are the right ones with the last two axes exchanged: you have the transpose."
                        )
                    return (
                        f"Your numbers are the right ones with the axes {names[0]} and {names[1]} exchanged:"
                        " you have the transpose."
                    )
    if as_double(-mine, goal):
        return "Your numbers are the right ones with the sign turned round."
    size = size_of(goal)
    if goal.abs().max() > 1e-9 and mine.numel() > 1 or goal.dim() == 0:
        scale = (mine * goal).sum() / (goal * goal).sum().clamp_min(1e-300)
        if abs(scale - 1) > 1e-3 and abs(scale) > 1e-6 and as_double(mine / scale, goal):
            factor = f"{scale:.4g}" if abs(scale) >= 1 else f"{scale:.4g} (1/{1 / scale:.4g})"
            return (
                f"Your number is the right one times {factor}."
                if goal.dim() == 0
                else f"Your numbers are the right ones times {factor}."
            )
    if mine.numel() > 2:
        shift = (mine - goal).mean()
        if abs(shift) > 1e-3 * size and as_double(mine - shift, goal):
            return f"Your numbers are the right ones plus {shift:.4g} everywhere."
    return ""


def _rows(yours, mine, goal, axes, aspect) -> str:
    """Right along part of the first axis that tells right from wrong."""
    near = (mine - goal).abs() <= aspect.atol * size_of(goal) + aspect.rtol * goal.abs()
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


def _rounded(yours, mine, goal, axes, aspect) -> str:
    if not yours.is_floating_point():
        return (
            f"Your result is of type {_dtype(yours)}, which cannot hold fractions; a floating-point tensor is needed."
        )
    if (mine - goal).abs().max() < 1e-2 * size_of(goal) and yours.dtype in (torch.float16, torch.bfloat16):
        return f"Your numbers are nearly right, but of type {_dtype(yours)}: precision was lost on the way."
    return ""


def _largest_difference(mine: torch.Tensor, goal: torch.Tensor, axes: list[str]) -> str:
    if goal.dim() == 0:
        return f"Your number is {mine.item():.6g}; the right one, for the same input, is {goal.item():.6g}."
    apart = (mine - goal).abs()
    apart[~torch.isfinite(apart)] = float("inf")
    worst = [int(i) for i in torch.unravel_index(apart.argmax(), goal.shape)]
    return (
        f"Shape and type are right, the numbers are not. They differ most at {_place(worst, axes)}: "
        f"yours is {mine[tuple(worst)]:.4g}, the target {goal[tuple(worst)]:.4g}."
    )


def _loose(aspect: Aspect):
    wide = Aspect("", 0, aspect.probe, rtol=aspect.rtol, atol=aspect.atol)
    return lambda mine, goal: close(mine, goal, wide)


def _place(index: list[int], axes: list[str]) -> str:
    if len(axes) == len(index) and len(set(axes)) == len(axes):
        return "[" + ", ".join(f"{axis}={i}" for axis, i in zip(axes, index, strict=True)) + "]"
    return "[" + ", ".join(map(str, index)) + "]"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
