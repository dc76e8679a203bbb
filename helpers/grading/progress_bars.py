"""Progress of a long command: tqdm's bar on a terminal, plain lines in a file. In a notebook: `helpers.progress`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import TextIO

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 5.0


class _Lines(tqdm):
    """Each state is a line of its own; it overwrites nothing."""

    @staticmethod
    def status_printer(file: TextIO) -> Callable[[str], None]:
        separators = chain([""], repeat("\n"))
        return lambda text: print(next(separators), text, sep="", end="", file=file, flush=True)


def progress(
    items: Sequence | int, action: str, unit: str = "", *, shown: bool = True, file: TextIO | None = None
) -> tqdm:
    """Something to loop over, or, for a number of things, to `update` inside a `with`.

    action: "Grading". unit: what is counted, in the singular. shown: False shows nothing. file: stderr by default.
    """
    file = file or sys.stderr
    iterable, total = (None, items) if isinstance(items, int) else (items, len(items))
    if file.isatty() or not shown:
        return tqdm(iterable, total=total, desc=action, unit=f" {unit}", disable=not shown, file=file, smoothing=0.1)
    layout = f"{action}: {{n:,}} of {total:,} {unit}{'' if total == 1 else 's'}, {{elapsed}}"
    return _Lines(iterable, total=total, bar_format=layout, file=file, mininterval=SECONDS_BETWEEN_LINES)
