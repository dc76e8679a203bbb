"""What an answer does, besides what it returns: on what its result depends, and how it calls a model it is given.

No points hang on it. Where an answer's numbers are wrong, a verdict says what it does otherwise than the reference.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence

import torch

TRAINING_CALLS = "calls in training mode"
LONGEST_WINDOW = "longest window"  # in tokens
OTHER_TEXT = "index 0 of axis b"
LAST_POSITION = "the last index of axis t"
HIDDEN = "what the mask hides"
NOTED = (TRAINING_CALLS, LONGEST_WINDOW, OTHER_TEXT, LAST_POSITION, HIDDEN)

STAYS, BETWEEN, CHANGES = range(3)  # what a result does when some of its inputs change
LITTLE, MUCH = (
    1e-5,
    1e-3,
)  # of the largest number: a result that changes by less than the first, or more than the second

Behaviour = dict[str, torch.Tensor]  # by names of NOTED
_observed: list[Behaviour | None] = [None]  # the last is what is written to; None: nothing is


@contextlib.contextmanager
def observing() -> Iterator[Behaviour]:
    """What is noted of an answer within the block, by name."""
    behaviour: Behaviour = {}
    _observed.append(behaviour)
    try:
        yield behaviour
    finally:
        _observed.pop()


@contextlib.contextmanager
def _unobserved() -> Iterator[None]:
    """Calls of an answer that are none of its own doing: nothing is noted or printed, and no error leaves them."""
    _observed.append(None)
    try:
        nowhere = io.StringIO()
        quiet = contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere)
        with (
            quiet[0],
            quiet[1],
            contextlib.suppress(Exception, SystemExit),
        ):  # a KeyboardInterrupt ends an answer's time
            yield
    finally:
        _observed.pop()


def note_call(training: bool, tokens: int) -> None:
    """A stand-in for a model was called, in training mode or not, with windows of so many tokens."""
    if (behaviour := _observed[-1]) is not None:
        calls, longest = (int(behaviour.get(name, 0)) for name in (TRAINING_CALLS, LONGEST_WINDOW))
        behaviour[TRAINING_CALLS] = torch.tensor(calls + training)
        behaviour[LONGEST_WINDOW] = torch.tensor(max(longest, tokens))


def copies(arguments: Sequence[object]) -> tuple:
    """The arguments, for another call: tensors are copied."""
    return tuple(each.clone() if isinstance(each, torch.Tensor) else each for each in arguments)


def note_dependence(call: Callable, arguments: tuple, returned: object, axes: Sequence[str]) -> None:
    """Note where the result of a call changes when one part of its inputs does.

    call: a function of the arguments. returned: its result for them, a tensor with these axes. For each part that
    inputs and result have, CHANGES, STAYS or BETWEEN is noted for each index of the result's axis: (b,) where only the
    first text of a batch changes, (t,) where only the last position does, () where only what a mask hides does. Nothing
    is noted where two calls with the same inputs differ, or where the result is one number everywhere, or NaN anywhere.
    """
    behaviour = _observed[-1]
    if behaviour is None or not isinstance(returned, torch.Tensor) or not returned.is_floating_point():
        return
    result = returned.detach().clone()
    if result.dim() != len(axes) or not result.numel() or result.isnan().any() or result.min() == result.max():
        return
    changed = {name: inputs for name, inputs in _changed(arguments, result, axes).items() if inputs is not None}
    along = {OTHER_TEXT: "b", LAST_POSITION: "t"}
    with _unobserved(), torch.no_grad():
        if changed and not _change(call(*copies(arguments)), result).any():
            for name, inputs in changed.items():
                change = _change(call(*inputs), result)
                kept = axes.index(along[name]) if name in along else None
                others = [place for place in range(result.dim()) if place != kept]
                largest = change.amax(dim=others) if others else change
                levels = torch.tensor([LITTLE, MUCH], dtype=torch.float64, device=largest.device)
                behaviour[name] = torch.bucketize(largest, levels).to("cpu", torch.uint8)


def _changed(arguments: tuple, result: torch.Tensor, axes: Sequence[str]) -> dict[str, tuple | None]:
    """By name, the arguments with one part changed; None where the arguments have no such part."""
    sizes = dict(zip(axes, result.shape, strict=True))
    b, t = (sizes.get(name, 0) if list(axes).count(name) == 1 else 0 for name in "bt")
    mask = next((a for a in arguments if _is(a, torch.bool) and a.dim() == 2 and a.shape == (b, t)), None)

    def other_text(a: torch.Tensor) -> torch.Tensor | None:
        return torch.cat([a[1:2], a[1:]]) if b > 1 and a.dim() and len(a) == b else None

    def last_position(a: torch.Tensor) -> torch.Tensor | None:
        place = 1 if a.dim() == 2 and not a.is_floating_point() else a.dim() - 2
        if t < 2 or a.dtype is torch.bool or a.dim() < 2 or len(a) != b or a.shape[place] != t:
            return None
        return torch.cat([a.narrow(place, 0, t - 1), a.narrow(place, 0, 1)], dim=place)

    def hidden(a: torch.Tensor) -> torch.Tensor | None:
        if mask is None or a.dtype is torch.bool or a.shape[:2] != mask.shape:
            return None
        return torch.where(mask.view(*mask.shape, *(1,) * (a.dim() - 2)), a, a.roll(1, dims=1))

    return {
        OTHER_TEXT: _each(arguments, other_text),
        LAST_POSITION: _each(arguments, last_position),
        HIDDEN: _each(arguments, hidden),
    }


def _each(arguments: tuple, change: Callable[[torch.Tensor], torch.Tensor | None]) -> tuple | None:
    """The arguments with each tensor that can be changed so; None where none can."""
    changed = [change(each) if isinstance(each, torch.Tensor) else None for each in arguments]
    if all(each is None for each in changed):
        return None
    kept = copies(arguments)
    return tuple(old if new is None else new for old, new in zip(kept, changed, strict=True))


def _change(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Entry by entry, how far apart two results are, as a share of the largest number of the second."""
    scale = other[other.isfinite()].abs().amax().clamp(min=1e-12) if other.isfinite().any() else 1.0
    return torch.nan_to_num((one.detach() - other) / scale, nan=0.0, posinf=1.0, neginf=1.0).abs().double()


def _is(value: object, dtype: torch.dtype) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is dtype
