"""A progress bar for the long cells of a lesson, which is gone when the cell is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from IPython import get_ipython
from IPython.display import clear_output
from tqdm import tqdm

from helpers.lesson import in_exam


def progress(steps, what: str) -> Iterator:
    """Go through `steps` with a bar under the cell, named `what`.

    At the end, and when the stop button ends the loop, everything that the cell has shown so far goes with the bar: a stored
    notebook holds neither bars nor times. Print after the loop. No bar while a notebook is graded, nor outside notebooks.
    """
    shown = get_ipython() is not None and not in_exam()
    try:
        yield from tqdm(steps, desc=what, file=sys.stdout, leave=False, mininterval=0.5, disable=not shown)
    finally:
        if shown:
            clear_output()
