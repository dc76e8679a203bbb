"""Making the instructor's own keys for a lesson, from a secret that no student has seen."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import torch
from safetensors.torch import save

from helpers.authoring.build.lesson_source import Source, sources
from helpers.authoring.build.make_keys import make_keys
from helpers.checking.judge.keys import key_as_bytes
from helpers.course import write_whole
from helpers.data.open_texts import landmarks_of, open_text
from helpers.exercises import Lesson
from helpers.exercises.open_task import contexts_of
from helpers.grading.exam import CANARY_TEXT, HIDDEN_TEXT, POOL, ExamKey, ExamText, exam_key_path, seeds_of


def make_exam_key(
    lesson: str,
    root: Path,
    secret: str | None = None,
    pool: int = POOL,
    progress: Callable[[int, int], None] = lambda done, of: None,
    text: ExamText | None = None,
) -> Path:
    """Make a new exam key, from a new secret unless one is given, and return where it lies.

    An earlier one is set aside (`set_aside`). pool: how many seeds. progress: called with how many of them are
    done, and of how many. text: of a lesson with an open task, what to score on, which nobody has seen; without it, the
    part of the manual that is held back. Submissions that were graded with an earlier key keep their marks until they
    are graded again.
    """
    (source,) = sources([lesson])
    path = exam_key_path(lesson, root)
    key = exam_key_of(source, secret or secrets.token_hex(32), pool, progress)
    if source.lesson.open_task:
        key = replace(key, texts={HIDDEN_TEXT: text or part_of("manual", "held_back"), CANARY_TEXT: part_of("manual")})
    set_aside(path)
    save_exam_key(key, source.lesson, path)
    return path


def exam_key_of(
    source: Source, secret: str, pool: int, progress: Callable[[int, int], None] = lambda done, of: None
) -> ExamKey:
    """The exam key of a lesson for a secret. The same secret gives the same key as long as the lesson is the same."""
    return ExamKey(secret, tuple(make_keys(source, seeds_of(secret, pool), progress)))


def part_of(name: str, part: str = "home") -> ExamText:
    """A part of a text that is on this machine, to score on. Raises LookupError."""
    text = open_text(name)
    return ExamText(getattr(text, part), text.landmarks(part))


def own_text(file: Path, like: str) -> ExamText:
    """The instructor's own text. like: the text that landmarks are taken from. Raises OSError, BadText, LookupError."""
    data = file.read_bytes()
    contexts_of(data)
    return ExamText(data, landmarks_of(data, like))


def set_aside(path: Path) -> Path | None:
    """Rename an exam key that is about to be replaced: marks were given with it, and it cannot be made again.

    Returns the new path; None where there is no key.
    """
    if not path.is_file():
        return None
    until = datetime.now(UTC).strftime("%Y-%m-%d_%H-%M-%S-%f")
    return path.rename(path.with_name(f"{path.stem}.until-{until}{path.suffix}"))


def save_exam_key(key: ExamKey, lesson: Lesson, path: Path) -> None:
    """Write the keys and the secret to one file that only its owner can read, whole or not at all."""
    packed = {
        str(place): torch.frombuffer(bytearray(key_as_bytes(each, lesson)), dtype=torch.uint8)
        for place, each in enumerate(key.keys)
    }
    about = {"secret": key.secret}
    if key.texts:
        for name, scored_on in key.texts.items():
            packed[f"text {name}"] = torch.frombuffer(bytearray(scored_on.text), dtype=torch.uint8)
        about["landmarks"] = json.dumps({name: dict(scored_on.landmarks) for name, scored_on in key.texts.items()})
    write_whole(path, save(packed, metadata=about), mode=0o600)
