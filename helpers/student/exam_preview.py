"""What each check will say of a notebook in an exam, as text."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.notebooks import SETUP, grade_id, text_of
from helpers.student.lessons import NotFound, lesson_named, lesson_names, path_of

if TYPE_CHECKING:
    from helpers.checking.show.panel import Shown

STARTS = re.compile(r"^check\s*=\s*start\([\"'](\w+)[\"']\)", re.MULTILINE)


def panels(lesson: str) -> Iterator[str]:
    """What each check of a lesson says, as text, one after the other: see `shown`."""
    from helpers.checking.show import panel

    yield from map(panel.as_text, shown(lesson))


def shown(lesson: str) -> Iterator[Shown]:
    """The verdict of each check of a lesson, then what it recalls and predicts. Each answer runs alone, as in an exam.

    lesson: a lesson's name or number, or the path of a notebook. The notebook itself is not run and its file is not
    changed, and the points on the start page stay as they are. Raises NotFound where there is no such notebook.
    """
    from helpers.checking.check import Check
    from helpers.checking.judge.predictions import predicted
    from helpers.checking.read.cell_scan import scan_submission
    from helpers.checking.read.program_slice import CodeCell
    from helpers.exercises import load_lesson

    path = _notebook(lesson)
    try:
        cells = [cell for cell in json.loads(path.read_bytes())["cells"] if cell["cell_type"] == "code"]
        texts = [(grade_id(cell), text_of(cell)) for cell in cells]
    except (OSError, ValueError, TypeError, KeyError) as problem:
        raise NotFound(f"{path} cannot be read as a notebook: {problem}") from None
    setup = next((text for name, text in texts if name == SETUP), "")
    start = STARTS.search(setup)
    check = Check(load_lesson(start[1] if start else path.stem))
    cells = [CodeCell(name or f"cell {n}", text, name) for n, (name, text) in enumerate(texts, 1) if name != SETUP]
    read = scan_submission(check.lesson, cells, {}, setup)
    for exercise in check.lesson:
        with contextlib.redirect_stdout(io.StringIO()):  # the lesson's first cell says that it loads PyTorch
            verdict = check.as_in_exam(exercise.name, read.slices[exercise.name])
        yield verdict
    said = [predicted(question, read.predictions.get(question.name) or ...) for question in check.lesson.questions]
    if recalled := said[: len(check.lesson.recall)]:
        yield recalled
    yield from said[len(recalled) :]


def _notebook(lesson: str) -> Path:
    name = lesson_named(lesson)
    path = path_of(name) if name else Path(lesson)
    if not path.is_file():
        raise NotFound(f"There is no lesson and no notebook {lesson}. The lessons: {', '.join(lesson_names())}.")
    return path
