"""Making the instructor's own key for a lesson, from a seed that no student has seen."""

from __future__ import annotations

import secrets
from pathlib import Path

from helpers.authoring.keys import make_key
from helpers.authoring.lesson_source import sources
from helpers.checking.keys import save_key
from helpers.grading.exam import exam_key_path


def make_exam_key(lesson: str, root: Path, seed: str | None = None) -> Path:
    """Make a new exam key, from a secret seed unless one is given, and return where it lies.

    Submissions that were graded with an earlier key keep their marks until they are graded again.
    """
    (source,) = sources([lesson])
    path = exam_key_path(lesson, root)
    save_key(make_key(source, seed or secrets.token_hex(16)), source.lesson, path)
    path.chmod(0o600)
    return path
