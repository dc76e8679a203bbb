"""Making the instructor's own keys for a lesson, from a secret that no student has seen."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from helpers.authoring.keys import make_keys
from helpers.authoring.lesson_source import Source, sources
from helpers.grading.exam import POOL, ExamKey, exam_key_path, save_exam_key, seeds_of, set_aside


def make_exam_key(
    lesson: str,
    root: Path,
    secret: str | None = None,
    pool: int = POOL,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Path:
    """Make a new exam key, from a new secret unless one is given, and return where it lies.

    An earlier one is set aside (`exam.set_aside`). pool: how many seeds. progress: called with how many of them are
    done, and of how many. Submissions that were graded with an earlier key keep their marks until they are graded
    again.
    """
    (source,) = sources([lesson])
    path = exam_key_path(lesson, root)
    key = exam_key_of(source, secret or secrets.token_hex(32), pool, progress)
    set_aside(path)
    save_exam_key(key, source.lesson, path)
    return path


def exam_key_of(
    source: Source, secret: str, pool: int, progress: Callable[[int, int], None] = lambda done, of: None
) -> ExamKey:
    """The exam key of a lesson for a secret. The same secret gives the same key as long as the lesson is the same."""
    return ExamKey(source.name, secret, tuple(make_keys(source, seeds_of(secret, pool), progress)))
