"""Where in a tensor something is: axes by the names that the docstring has for them, indices counted from 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from helpers.text import listed


def axis_name(place: int, names: Sequence[str], shape: Sequence[int]) -> str:
    """ "axis t", or "axis 0 (of length 2)" where the docstring has no name for it."""
    if _named(place, names, shape):
        return f"axis {names[place]}"
    return f"axis {place} (of length {shape[place]})"


def axis_names(places: Sequence[int], names: Sequence[str], shape: Sequence[int]) -> str:
    """ "axis t", "axes b and t"."""
    if len(places) == 1:
        return axis_name(places[0], names, shape)
    if all(_named(place, names, shape) for place in places):
        return f"axes {listed([names[place] for place in places])}"
    return f"axes {listed([str(place) for place in places])}"


def entry(index: Sequence[int], names: Sequence[str]) -> str:
    """One entry: "[b=0, t=1]", or "[0, 1]" where the axes have no names."""
    if all(_named(place, names, index) for place in range(len(index))):
        return "[" + ", ".join(f"{name}={i}" for name, i in zip(names, index, strict=True)) + "]"
    return "[" + ", ".join(map(str, index)) + "]"


def region(inside: torch.Tensor, names: Sequence[str]) -> str:
    """Which part of a tensor these booleans mark, "on the diagonal", "where t = 3"; "" for no part with a name."""
    shape = inside.shape
    if inside.all():
        return "everywhere"
    if inside.dim() >= 2 and min(shape[-2:]) > 2:
        row, column = torch.arange(shape[-2])[:, None], torch.arange(shape[-1])
        for part, words in (
            (column == row, "on the diagonal of the last two axes"),
            (column > row, "above the diagonal of the last two axes"),
            (column < row, "below the diagonal of the last two axes"),
            (column != row, "off the diagonal of the last two axes"),
        ):
            if torch.equal(inside, part.expand(shape)):
                return words
    for place in range(inside.dim()):
        along = inside.movedim(place, 0).reshape(shape[place], -1)
        whole = along.all(dim=1)
        if shape[place] > 1 and torch.equal(whole, along.any(dim=1)):
            name = names[place] if _named(place, names, shape) else f"the index of axis {place}"
            return f"where {name} is {indices(whole)}"
    return ""


def indices(chosen: torch.Tensor) -> str:
    """The places at which a list of booleans is True: "3", "0, 2 and 4", "3 to 8"."""
    places = chosen.nonzero().flatten().tolist()
    if len(places) > 2 and places[-1] - places[0] == len(places) - 1:
        return f"{places[0]} to {places[-1]}"
    return listed([str(place) for place in places])


def _named(place: int, names: Sequence[str], shape: Sequence[int]) -> bool:
    """Has each axis a name, and this one a name that is no number and of no other axis?"""
    return len(names) == len(shape) and not names[place][0].isdigit() and list(names).count(names[place]) == 1
