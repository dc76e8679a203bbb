"""What the check takes from the cells of a notebook as the student's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from helpers.checking.check import Check
from helpers.checking.judge.verdicts import NO_ANSWER, RIGHT
from helpers.checking.read.program_slice import slice_of
from helpers.checking.run.kernel_state import KernelState
from helpers.exercises import load_lesson

SETUP = """
import torch
from helpers.lesson import start
from helpers.parts.bpe import merge_pair
from collections import Counter
check = start("11_tokens")
"""
OWN = "def learn_merges(words, count):\n    return merge_pair(Counter(words), aid(count))"
AID = "def aid(count):\n    return count"


class Shell:
    """A shell in which these cells were run."""

    def __init__(self, *cells, **names):
        self.user_ns = {"In": ["", *cells], **names}
        self.events = SimpleNamespace(callbacks={"pre_run_cell": [], "post_run_cell": []}, register=self._register)
        self.ended = None

    def _register(self, event, callback):
        self.events.callbacks[event].append(callback)

    def fails(self, cell, error):
        """One more cell is run, and raises."""
        self.user_ns["In"].append(cell)
        begins, ends = (self.events.callbacks[event][-1] for event in ("pre_run_cell", "post_run_cell"))
        begins(SimpleNamespace(raw_cell=cell))
        number = len(self.user_ns["In"]) - 1
        info = SimpleNamespace(raw_cell=cell)
        ends(SimpleNamespace(error_before_exec=None, error_in_exec=error, info=info, execution_count=number))


@pytest.mark.parametrize("runs", [1, 2])
def test_imports_of_the_setup_cell_are_not_the_students_own(runs):
    kernel = KernelState(Shell(*[SETUP] * runs, AID, OWN), ["learn_merges"])
    others = kernel.others("learn_merges")
    program = slice_of("learn_merges", OWN, kernel.setup(), others, builds_on=("bpe.merge_pair",))
    assert program.texts == (AID, OWN) and program.missing == {}


def test_a_cell_that_stopped_at_an_unfinished_import_of_torch_is_not_judged_by_an_older_definition():
    def raw_weights(x):
        return x @ x.mT

    own = "def raw_weights(x):\n    return x @ x.mT"
    shell = Shell(own, raw_weights=raw_weights)
    lesson = load_lesson("01_dot_product_attention")
    check = Check(lesson, KernelState(shell, ["raw_weights"]))
    assert check._verdict(lesson["raw_weights"], raw_weights).state == RIGHT
    shell.fails(own, AttributeError("partially initialized module 'torch' has no attribute 'fx'"))
    verdict = check._verdict(lesson["raw_weights"], raw_weights)
    assert verdict.state == NO_ANSWER and verdict.note == ""
    assert "Restart the kernel" in verdict.says
