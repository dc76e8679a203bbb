"""A course with a few submissions in it, and a batch that grades it with the stand-in."""

from __future__ import annotations

import shutil

from conftest import FIRST, Course, answer_notebook, solved
from stand_in import StandIn

from helpers.exercises import load_lesson
from helpers.grading import commands
from helpers.grading.__main__ import parser
from helpers.grading.batch import Batch

FULL = {exercise.name: exercise.points for exercise in load_lesson(FIRST)}
OUT_OF = sum(FULL.values())
NONE = dict.fromkeys(FULL, 0)
WRONG = "def raw_weights(x):\n    return torch.softmax(x @ x.mT, -1)"


def copied(pattern, folder, monkeypatch=None):
    shutil.copytree(pattern.folder, folder)
    made = object.__new__(Course)
    made.folder, made.lesson = folder, pattern.lesson
    (folder / "submitted").mkdir(exist_ok=True)
    if monkeypatch:
        monkeypatch.chdir(folder)
    return made


def batch(course, runner=None, jobs=2, **more):
    return Batch(course.folder, FIRST, runner or StandIn(FIRST), jobs, bar=False, **more)


def command(course, *words):
    """A command of the instructor, in this process. Raises what `main` shows without a traceback."""
    return commands.run(course.folder, parser().parse_args(words), None)


class Instead:
    """A runner that runs a submission by a function of the work and the seed. everywhere: on each machine."""

    def __init__(self, execute, everywhere=None):
        self.execute = lambda work, seed, **how: execute(work, seed)
        self.everywhere = everywhere or (lambda work, seed: [execute(work, seed)])


def hand_in_a_few(course):
    course.submit("ada", answer_notebook(FIRST, **solved(FIRST)))
    course.submit("ben", answer_notebook(FIRST, **{**solved(FIRST), "raw_weights": WRONG}))
    course.submit("eve", answer_notebook(FIRST)).write_bytes(b'{"cells": [')
