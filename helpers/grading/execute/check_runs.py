"""Reading what a check cell came to from the outputs that it left."""

from __future__ import annotations

from nbformat.notebooknode import NotebookNode

from helpers.checking import answers
from helpers.grading.harmless import plain
from helpers.grading.judging import CheckRun, Why

LONGEST = 300  # characters of an error's message that are kept


def run_of(cell: NotebookNode) -> CheckRun:
    """What an executed check cell came to, as far as its outputs tell: answers, an error, or nothing."""
    sent = tuple(output.data[answers.MIME] for output in cell.outputs if answers.MIME in output.get("data", {}))
    if sent:
        return CheckRun(sent)
    error = next((output for output in cell.outputs if output.output_type == "error"), None)
    if error is None:
        return CheckRun()
    return CheckRun(why=Why.RAISED, says=plain(error.evalue, LONGEST), error=plain(error.ename, 60))
