"""Verdicts as JSON for the journal, read from there again, and as panels for the formgrader."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby

import torch
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from helpers.checking.judge.compare import outcome_digest
from helpers.checking.judge.keys import NamedMistake
from helpers.checking.judge.predictions import MADE, Predicted, predicted
from helpers.checking.judge.verdicts import AspectVerdict, Verdict
from helpers.checking.run.answers import Answer
from helpers.checking.show import panel
from helpers.exercises import Lesson
from helpers.exercises.exercise import RECALL
from helpers.grading.judging import JudgedExercise
from helpers.notebooks import exercise_of, grade_id
from helpers.text import number

PREDICTED = "predicted"  # the state in the record of a prediction
# Of a verdict
AS_IT_IS = ("exercise", "state", "points", "out_of", "says", "note", "printed", "lines_printed", "score")


def record(judged: JudgedExercise, on_shipped_key: Answer | None = None) -> dict:
    """The verdict as JSON. on_shipped_key: the answer on the inputs of the shipped key, where it was run on them.

    "look": the findings for the instructor, as dicts (see `cell_scan.Finding`; the excerpt is a student's text).
    "decision": "" where there is nothing to decide, else "waits", "accepted" or "refused". "points": those that count,
    0 while the answer waits and where it was refused. "earned": those that the numbers earn, whatever was decided.
    "digest": identifies what is decided about. "shape", "size": see `Cell.shape`. "mistakes": the weightiest
    first. "aspects": an aspect's "pair" is lists of rows. "answer": see `digest_of_wrong`; its first characters are the
    answer's handle in the report.
    """
    verdict, answer, scan = judged.verdict, judged.answer, judged.scan
    return {
        **{name: getattr(verdict, name) for name in AS_IT_IS},
        "mistakes": [asdict(mistake) for mistake in verdict.mistakes],
        "aspects": [
            {**vars(aspect), "pair": aspect.pair and [matrix.tolist() for matrix in aspect.pair]}
            for aspect in verdict.aspects
        ],
        "answer": digest_of_wrong(on_shipped_key or answer, verdict) if answer else "",
        "shape": scan.shape,
        "size": scan.size,
        "look": [asdict(finding) for finding in judged.look],
        "decision": judged.decision,
        "earned": judged.earned,
        "digest": judged.digest,
    }


def verdict_of(record: Mapping) -> Verdict:
    """The verdict that is recorded."""
    aspects = tuple(AspectVerdict(**{**aspect, "pair": _as_tensors(aspect["pair"])}) for aspect in record["aspects"])
    mistakes = tuple(NamedMistake(**mistake) for mistake in record["mistakes"])
    return Verdict(**{name: record[name] for name in AS_IT_IS}, aspects=aspects, mistakes=mistakes)


def _as_tensors(pair: list[list[list[float]]] | None) -> tuple[torch.Tensor, torch.Tensor] | None:
    if pair is None:
        return None
    target, yours = (torch.atleast_2d(torch.tensor(rows, dtype=torch.float64)) for rows in pair)
    return target, yours


def panel_of(record: Mapping, lesson: Lesson) -> str:
    """The panel of a record, without its style; "" where `shown_of` has nothing."""
    shown = shown_of(record, lesson)
    return panel.without_style(shown) if shown else ""


def shown_of(record: Mapping, lesson: Lesson) -> panel.Shown | None:
    """What a panel shows of a record. None for predictions of which the lesson knows no more."""
    if record["state"] != PREDICTED:
        return verdict_of(record)
    states = record["states"]
    made = [
        predicted(q, record["choices"][q.name]) if states[q.name] == MADE else Predicted(q, states[q.name])
        for q in lesson.questions
        if q.name in states
    ]
    return made if record["exercise"] == RECALL or not made else made[0]


def records_of_predictions(predictions: Iterable[Predicted]) -> list[dict]:
    """A record of 0 points for each cell that predicts, or that answers several questions about earlier lessons.

    "choices": each choice by its question's name, "" where none was made; "states": see `Predicted`. "prediction": all
    choices, as a text.
    """
    records = []
    for cell, of_cell in groupby(predictions, lambda each: each.prediction.cell):
        asked = list(of_cell)
        choices = {each.prediction.name: each.chosen for each in asked}
        told = " ".join(choice or "–" for choice in choices.values())
        asked_of = {"prediction": told, "choices": choices, "states": {a.prediction.name: a.state for a in asked}}
        records.append(record(JudgedExercise(Verdict(cell, PREDICTED, 0, 0))) | asked_of)
    return records


def write_verdicts(notebook: NotebookNode, lesson: Lesson, records: Iterable[Mapping]) -> dict[str, float]:
    """Replace the outputs of the check cells by the verdicts' panels. Returns the points by the cells' grade ids.

    nbgrader reads the points from a cell whose only output is a number, and scales nothing: points are those of the
    cell's own metadata.
    """
    points, by_exercise = {}, {each["exercise"]: each for each in records}
    for cell in notebook.cells:
        kept = by_exercise.get(exercise_of(cell)) if cell.cell_type == "code" and is_grade(cell) else None
        if kept:
            earned = kept["points"] and kept["points"] * float(cell.metadata.nbgrader["points"]) / kept["out_of"]
            points[grade_id(cell)] = _write_output(cell, earned, panel.STYLE + panel_of(kept, lesson))
    return points


def _write_output(cell: NotebookNode, points: float, page: str) -> float:
    """Returns the points as nbgrader will read them."""
    text = number(round(points, 6))
    # The formgrader's MathJax must not make formulas of a student's text in the panel
    html = f'<div class="tex2jax_ignore mathjax_ignore">{page}</div>'
    data = {"text/plain": text, "text/html": html}
    count = cell.get("execution_count")
    cell.outputs = [NotebookNode(output_type="execute_result", execution_count=count, metadata={}, data=data)]
    return float(text)


def digest_of_wrong(answer: Answer, verdict: Verdict) -> str:
    """Equal for answers that are wrong in the same way: by the same mistakes, or to about three digits.

    answer: on inputs that are the same for everybody; in an exam they differ, and only known mistakes can be compared.
    """
    digest = hashlib.sha256()
    right = {aspect.name for aspect in verdict.aspects if aspect.held or aspect.waits}
    for aspect, outcome in sorted(answer.outcomes.items()):
        if aspect in right:
            result = "right"
        else:
            result = " ".join(verdict.slugs) if verdict.explained else outcome_digest(outcome)
        digest.update(f"{aspect}|{result}|".encode())
    return digest.hexdigest()[:16]
