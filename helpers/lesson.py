"""The first line of every lesson: ``check = start("01_dot_product_attention")``."""

from __future__ import annotations

import importlib

import torch
from IPython import get_ipython

from helpers import plots
from helpers.checking.check import Check
from helpers.checking.check import start as start_checks
from helpers.course import STUB
from helpers.device import device
from helpers.text import number


def start(name: str) -> Check:
    """Set up a lesson: the seed, the style of figures, and a calm message where something is not written yet.

    Returns the lesson's check. Prints one line that says what the lesson holds and where it computes.
    """
    check = start_checks(name)
    torch.manual_seed(0)
    plots.use_course_style()
    _speak_calmly({e.name for e in check.lesson.exercises} | {p.name for p in check.lesson.predictions})
    if get_ipython():  # the first optimizer would load it, without a word; and half loaded it breaks a kernel
        importlib.import_module("torch._dynamo")
    lesson = check.lesson
    print(
        f"Lesson {lesson.number}: {len(lesson.exercises)} exercises, {number(lesson.points)} points. "
        f"Computing on: {device().type}."
    )
    return check


def _speak_calmly(asked: set[str]) -> None:
    """A cell that needs an exercise which is not written yet, or whose cell has not run, says so in one line.

    asked: the names that the lesson's cells have to define.
    """
    shell = get_ipython()
    if shell is None:
        return

    def calm(shell, kind, problem, traceback, tb_offset=None):
        if sentence := _what_to_do(problem, _frames(traceback), asked):
            shell._showtraceback(kind, problem, [sentence])
        else:
            shell.showtraceback((kind, problem, traceback), tb_offset=tb_offset)

    shell.set_custom_exc((NotImplementedError, NameError), calm)


def _what_to_do(problem: BaseException, frames: list[str], asked: set[str]) -> str:
    """What to do about an error, in a sentence; "" where Python's own words are better.

    frames: the functions in which it was raised, the innermost last; none for a line of the cell itself.
    """
    if isinstance(problem, NameError):
        missing = problem.name in asked and not frames
        return f"Run the cell of {problem.name} first, then this cell again." if missing else ""
    if str(problem) not in ("", STUB):
        return ""
    which = f"{frames[-1]} is" if frames else "An exercise that this cell needs is"
    return f"{which} not written yet. Write it above, then run this cell again."


def _frames(traceback) -> list[str]:
    names = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_name.startswith("<") and code.co_name != "run_code":
            names.append(code.co_qualname)  # of a method it says the class too
        traceback = traceback.tb_next
    return names
