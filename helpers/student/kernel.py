"""What the kernels that `lab` starts do beside running cells: `jupyter/startup.py` sets it up.

JupyterLab's own kernel for another Python gets it too. Needs Python's own library and IPython only.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from helpers import check_log
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


def keep_start_page_fresh(shell: Any) -> None:
    """In a lesson's folder, bring the start page's file up to date after each cell that ran a check."""
    if Path.cwd().parent != NOTEBOOKS:
        return
    before = _size_of_log()

    def after_a_cell(result):
        nonlocal before
        if (now := _size_of_log()) != before:
            before = now
            from helpers.student.start_page import freshen

            with suppress(OSError):
                freshen()

    shell.events.register("post_run_cell", after_a_cell)


def _size_of_log() -> int:
    path = check_log.file()
    with suppress(OSError):
        return path.stat().st_size if path else 0
    return 0
