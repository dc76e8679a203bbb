"""The instructor's own key for each lesson, made (see `authoring.exam_key`) from a seed that no student has seen."""

from __future__ import annotations

from pathlib import Path

from helpers.checking.keys import AnswerKey, load_key
from helpers.exercises import load_lesson

FOLDER = "exam"


def exam_key_path(lesson: str, root: Path) -> Path:
    """Where the exam key of a lesson lies below the course's folder."""
    return root / FOLDER / f"{lesson}.safetensors"


def remedy(lesson: str) -> str:
    return f"Run `make exam-key LESSON={lesson}` in the course's folder, then grade again."


def load_exam_key(lesson: str, root: Path) -> AnswerKey:
    """The exam key of a lesson. Raises BadKey with what to run when there is none, or none that fits."""
    return load_key(load_lesson(lesson), exam_key_path(lesson, root), remedy(lesson))
