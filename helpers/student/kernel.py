"""What a kernel says of an error while a lesson's first cell has not run in it: `lab` starts kernels with this.

JupyterLab's own kernel for another Python gets it too. Needs Python's own library and IPython only.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from helpers.course import NOTEBOOKS

ANOTHER = "{} lacks it. Choose the course's kernel: Kernel, Change Kernel, Python 3 (dot-product-to-gpt2)."
NOT_STARTED = (
    "The lesson's first cell has not run since this kernel started: Run, Run All Above Selected Cell, then run this"
    " cell again."
)


def advice_on(problem: BaseException) -> str:
    """What to do about an error that comes before a lesson's first cell is done."""
    return ANOTHER.format(sys.executable) if isinstance(problem, ModuleNotFoundError) else NOT_STARTED


def explain_until_started(shell: Any) -> None:
    """In a lesson's folder, add `advice_on` to such errors. A lesson's `start` puts its own words in place of it."""
    if Path.cwd().parent != NOTEBOOKS:
        return

    def explained(shell, kind, problem, traceback, tb_offset=None):
        lines = shell.InteractiveTB.structured_traceback(kind, problem, traceback, tb_offset=tb_offset)
        shell._showtraceback(kind, problem, [*lines, advice_on(problem)])

    shell.set_custom_exc((NameError, ModuleNotFoundError), explained)
