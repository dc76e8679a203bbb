"""A verdict as data, kept beside the mark: for the report, for feedback, and for whoever asks later.

The record lies in the metadata of the output that nbgrader reads the mark from, and in the batch's journal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from helpers.checking import panel
from helpers.checking.answers import Answer
from helpers.checking.cell_scan import CellScan
from helpers.checking.compare import outcome_digest
from helpers.checking.predictions import Predicted, predicted
from helpers.checking.verdicts import Verdict
from helpers.exercises import Lesson
from helpers.grading.flags import Finding
from helpers.grading.judging import Judged
from helpers.notebooks import exercise_of

FORMAT = 1
PREDICTED = "predicted"  # the state in the record of a prediction
PLACE = "verdict"  # the key in the output's metadata
PLAIN = "none (a plain kernel)"  # what a record says when nobody said how the code was run


def record(
    verdict: Verdict,
    answer: Answer | None = None,
    isolation: str = PLAIN,
    look: Sequence[Finding] = (),
    decision: str = "",
    earned: float | None = None,
    digest: str = "",
    facts: CellScan = CellScan(),  # noqa: B008 (it is frozen)
    at_the_desk: Answer | None = None,
) -> dict:
    """The verdict as JSON. isolation: under what the student's code ran. answer: what was judged, if anything was.
    facts: what its text shows. at_the_desk: what it gives on the inputs of the shipped key, where that was asked.

    "look" in it: what was found for the instructor, a list of {"rule", "exercise", "cell", "line", "excerpt", "why",
    "holds"} (see `findings.Finding`; the excerpt is a student's text). "decision": "" where nothing is to decide
    (nothing was found that holds points up, or the numbers earn nothing), else "waits", "accepted" or "refused".
    "points" are those that count: 0 while it waits and where it was refused. "earned": those that the numbers earn,
    whatever was decided. "digest": names what is decided about. "shape", "size": see `syntax.shape_of`.

    "mistakes": {"slug", "title", "says"}, the weightiest first. "answer": see `digest_of_wrong`;
    its first characters are how the report names an answer.

    What a student predicted has a record as well: see `record_of_prediction`.
    """
    return {
        "format": FORMAT,
        "exercise": verdict.exercise,
        "state": verdict.state,
        "points": verdict.points,
        "out_of": verdict.out_of,
        "says": verdict.says,
        "mistakes": [
            {"slug": slug, "title": title, "says": says}
            for slug, title, says in zip(verdict.mistakes, verdict.titles, verdict.words, strict=True)
        ],
        "aspects": [
            {"name": a.name, "points": a.points, "out_of": a.out_of, "held": a.held, "waits": a.waits, "says": a.says}
            for a in verdict.aspects
        ],
        "answer": digest_of_wrong(at_the_desk or answer, verdict) if answer else "",
        "shape": facts.shape,
        "size": facts.size,
        "isolation": isolation,
        "look": [asdict(finding) for finding in look],
        "decision": decision,
        "earned": verdict.points if earned is None else earned,
        "digest": digest,
    }


def record_of_prediction(made: Predicted, isolation: str = PLAIN) -> dict:
    """A prediction as JSON: a record as any other, of 0 points, with "prediction" in it.

    "prediction": {"chosen": one of the choices, "" where none was made, "right": the right one, "choices": all of them
    in their order}.
    """
    asked = made.prediction
    told = {"chosen": made.chosen, "right": asked.truth, "choices": list(asked.choices)}
    plain = record(Verdict(asked.name, PREDICTED, 0, 0), isolation=isolation)
    return {**plain, "prediction": told}


def write_verdicts(
    notebook: NotebookNode,
    lesson: Lesson,
    judged: Mapping[str, Judged],
    isolation: str,
    predictions: Mapping[str, Predicted] | None = None,
    at_the_desk: Mapping[str, Answer] | None = None,
) -> None:
    """Put the verdicts in place of what stands under the check cells, with the points where nbgrader reads them.

    judged, at_the_desk: by exercise. predictions: by name. nbgrader takes a cell whose only output is a number as
    partly graded, and scales nothing: points are those of the cell's own metadata.
    """
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        name = exercise_of(cell) if is_grade(cell) else ""
        asked, found = lesson.prediction(name), judged.get(name)
        if asked is not None:
            made = (predictions or {}).get(name) or predicted(asked, ...)
            page = panel.as_html(made)
            cell.outputs = [_output(cell, 0.0, record_of_prediction(made, isolation), page)]
            continue
        if found is None:
            for output in cell.outputs:  # anybody can call what they display a verdict
                output.get("metadata", {}).pop(PLACE, None)
            continue
        most = float(cell.metadata.nbgrader["points"])
        points = round(found.verdict.points * most / lesson[found.verdict.exercise].points, 6)
        record = _of_judged(found, isolation, (at_the_desk or {}).get(name))
        cell.outputs = [_output(cell, points, record, panel.as_html(found.verdict))]


def _output(cell: NotebookNode, points: float, record: dict, page: str) -> NotebookNode:
    """What stands under a check cell that was judged.

    The formgrader's MathJax is not to make formulas of what a student's code said in the panel.
    """
    html = f'<div class="tex2jax_ignore mathjax_ignore">{page}</div>'
    return NotebookNode(
        output_type="execute_result",
        execution_count=cell.get("execution_count"),
        metadata={PLACE: record},
        data={"text/plain": panel.number(points), "text/html": html},
    )


def _of_judged(found: Judged, isolation: str, at_the_desk: Answer | None) -> dict:
    about = found.look, found.decision, found.earned, found.digest, found.facts
    return record(found.verdict, found.answer, isolation, *about, at_the_desk)


def recorded(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, dict]]:
    """The check cells of a judged notebook, each with its record."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            found = output.get("metadata", {}).get(PLACE)
            if isinstance(found, dict) and found.get("format") == FORMAT:
                yield cell, found
                break


def digest_of_wrong(answer: Answer, verdict: Verdict) -> str:
    """Equal for answers that are wrong in the same way: equal to about three digits wherever they are wrong.

    answer: on inputs that are the same for everybody; in an exam they differ.
    """
    digest = hashlib.sha256()
    held = {aspect.name for aspect in verdict.aspects if aspect.held or aspect.waits}
    for aspect, outcome in sorted(answer.outcomes.items()):
        came_to = "right" if aspect in held else outcome_digest(outcome)
        digest.update(f"{aspect}|{came_to}|".encode())
    return digest.hexdigest()[:16]
