"""How far a long command has come: a bar on a terminal, and plain lines where the output goes to a file.

    for result in progress(results, "Writing", "page"):
        ...
    with progress(300, "Grading", "submission") as shown:
        shown.update()

For commands. What lessons show in a notebook is `helpers.progress`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TextIO

from tqdm import tqdm

EVERY = 5.0  # seconds between two lines


def progress(
    things: Iterable | int, what: str, unit: str = "", *, shown: bool = True, file: TextIO | None = None
) -> tqdm | Lines:
    """Something to loop over, or, for a number of things, to `update` inside a `with`.

    what: "Grading". unit: what is counted, in the singular. shown: False shows nothing. file: stderr unless given.
    """
    file = file or sys.stderr
    total = things if isinstance(things, int) else len(things) if isinstance(things, Sized) else None
    items = None if isinstance(things, int) else things
    if shown and not file.isatty():
        return Lines(items, total, what, unit, file)
    unit = f" {unit}" if unit else "it"
    return tqdm(items, total=total, desc=what, unit=unit, disable=not shown, file=file, smoothing=0.1, leave=True)


def counted(count: int, unit: str) -> str:
    """A number with what is counted, in the singular or the plural: "1 page", "1,200 pages"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


class Lines:
    """What tqdm is for a terminal, for a file: "Grading: 40 of 300 submissions, 12 s", a line now and then."""

    def __init__(self, things: Iterable | None, total: int | None, what: str, unit: str, file: TextIO):
        self._things, self._total, self._what, self._unit, self._file = things, total, what, unit, file
        self._done, self._open = 0, True
        self._begun = self._told = time.monotonic()
        self._say()

    def update(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        now = time.monotonic()
        if now - self._told >= EVERY:
            self._told = now
            self._say()

    def close(self) -> None:
        """The last line; called more than once, it says so once."""
        if self._open:
            self._open = False
            self._say()

    def _say(self) -> None:
        of = f" of {self._total:,}" if self._total is not None else ""
        unit = f" {self._unit}{'' if (self._total or self._done) == 1 else 's'}" if self._unit else ""
        seconds = time.monotonic() - self._begun
        after = f", {seconds:.0f} s" if self._done or not self._open else ""
        print(f"{self._what}: {self._done:,}{of}{unit}{after}", file=self._file, flush=True)

    def __iter__(self) -> Iterator:
        try:
            for thing in self._things or ():
                yield thing
                self.update()
        finally:
            self.close()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()
