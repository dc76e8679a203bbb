"""A line that says how far a long cell has come.

    for step in progress(range(1500), "training"):
        ...

For lessons; what long commands show is `helpers.grading.progress_bars`. In a notebook it is one line of text that
changes in place, and what is left of it at the end holds no times: a stored notebook stays the same when nothing
changed. The loop runs with as many threads as prove fastest, by `helpers.threads`. COURSE_TRAINING_STEPS ends every
loop after so many things, for tests, which need no trained model.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sized
from itertools import islice

from helpers.course import TRAINING_STEPS
from helpers.threads import with_best_threads

EVERY = 0.5  # seconds between two changes
WIDTH = 30  # characters of the bar


def progress(things: Iterable, what: str, total: int | None = None) -> Iterator:
    """Goes through things, as if one had written `things`, and shows how many of them are done.

    total: how many there are; by default len(things). Shows nothing outside a notebook, and nothing while a notebook is
    being graded. When the loop is stopped, by break, an error or the stop button, the line says where.
    """
    total = len(things) if total is None and isinstance(things, Sized) else total
    if most := os.environ.get(TRAINING_STEPS):
        things = islice(things, int(most))
    show = _line()
    start = shown = time.monotonic()
    done = 0
    show(_text(what, 0, total))
    try:
        for thing in with_best_threads(things):
            yield thing
            done += 1
            if (now := time.monotonic()) - shown > EVERY:
                shown = now
                show(_text(what, done, total, _left(now - start, done, total)))
    finally:
        show(_text(what, done, total))


def shortened(steps: int) -> int:
    """As many steps, or fewer where COURSE_TRAINING_STEPS says so: for trainings that show no line."""
    most = os.environ.get(TRAINING_STEPS)
    return min(steps, int(most)) if most else steps


def _text(what: str, done: int, total: int | None, left: str = "") -> str:
    if not total:
        return f"{what}: {done:,}"
    full = WIDTH * done // total
    return f"{what}  {'█' * full}{'░' * (WIDTH - full)}  {done:,} of {total:,}{left}"


def _left(passed: float, done: int, total: int | None) -> str:
    return f", about {passed / done * (total - done):.0f} s left" if total and done else ""


def _line():
    """A function that shows a text in the place of the one before it."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return lambda text: None
    if getattr(get_ipython(), "kernel", None) is None:
        return lambda text: None
    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)
