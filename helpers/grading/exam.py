"""A lesson's exam keys, made (see `authoring.build.exam_key`) from a secret that no student has seen.

A submission's code knows the seed of its inputs, and may print it. So a small pool of seeds is derived from the secret,
which also says who gets which: the same code gets the same seed again, and one seed reveals nothing about the others.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from nbformat.notebooknode import NotebookNode
from safetensors import SafetensorError
from safetensors.torch import load

from helpers.checking.judge.keys import AnswerKey, BadKey, key_from_bytes, metadata_of
from helpers.exercises import load_lesson, open_task
from helpers.grading.judging import ExerciseRun

FOLDER = "exam"
POOL = 6  # seeds of a lesson's exam
REFERENCE = "the reference solution"  # goes first, and is tried under every seed
HIDDEN_TEXT, CANARY_TEXT = "exam", "canary"  # of an open task
HIDDEN = "(the exam's seed)"  # shown where a submission printed it


@dataclass(frozen=True)
class ExamText:
    """A text that open tasks are scored on."""

    text: bytes
    landmarks: Mapping[str, float]
    """Bits per byte by name."""


@dataclass(frozen=True)
class ExamKey:
    """The answer keys of one lesson's exam."""

    secret: str
    """Never handed to a submission."""
    keys: tuple[AnswerKey, ...]
    """One for each seed."""
    texts: Mapping[str, ExamText] = field(default_factory=dict)
    """Of a lesson with an open task: what submissions are scored on, HIDDEN_TEXT, and what canaries are."""

    def material(self, name: str, weights: bytes | None, problem: str = "") -> open_task.Material:
        """What a submission's open task is tried on. name: of the text. See `open_task.material`."""
        scored_on = self.texts[name]
        at_home = name == CANARY_TEXT
        return open_task.material(scored_on.text, scored_on.landmarks, weights, problem, at_home)

    def key_for(self, student: str, work: str) -> AnswerKey:
        """The key that a submission is graded with; its seed is what the submission is run with.

        student: the id. work: the digest of what was handed in (see `digest_of_work`).
        """
        drawn = _derived(self.secret, "submission", student, work)
        return self.keys[int(drawn, 16) % len(self.keys)]


def seeds_of(secret: str, pool: int) -> list[str]:
    """The seeds of the pool: without the secret, one reveals nothing about the others."""
    return [_derived(secret, "seed", str(place))[:32] for place in range(pool)]


def _derived(secret: str, *words: str) -> str:
    return hmac.new(secret.encode(), json.dumps(words).encode(), hashlib.sha256).hexdigest()


def digest_of_work(notebook: NotebookNode) -> str:
    """The digest of a submission, restored to the released shape: of all its code."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def without_seed(run: ExerciseRun, seed: str) -> ExerciseRun:
    """The run, with the seed's text removed from everything that it sent.

    An answer can still smuggle the seed out in another encoding. This keeps pages clean; the pool makes the seed
    worthless.
    """
    sent = json.loads(json.dumps(run.sent).replace(seed, HIDDEN))
    noticed = tuple(sentence.replace(seed, HIDDEN) for sentence in run.noticed)
    return replace(run, sent=sent, says=run.says.replace(seed, HIDDEN), noticed=noticed)


def exam_key_path(lesson: str, root: Path) -> Path:
    return root / FOLDER / f"{lesson}.safetensors"


def load_exam_key(lesson: str, root: Path) -> ExamKey:
    """The exam key of a lesson. Raises BadKey with what to run when there is none, or none that fits."""
    path = exam_key_path(lesson, root)
    name, exercises = f"{FOLDER}/{path.name}", load_lesson(lesson)
    remedy = f"Run `make exam-key LESSON={lesson}` in the course's folder, then grade again."
    if not path.exists():
        raise BadKey(f"The exam key of {lesson} is missing ({name}). {remedy}")
    try:
        data = path.read_bytes()
        about, packed = metadata_of(data), load(data)
        secret, marks = about["secret"], json.loads(about.get("landmarks", "{}"))
        texts = {name: ExamText(packed.pop(f"text {name}").numpy().tobytes(), marks[name]) for name in marks}
        parts = [packed[str(place)].numpy().tobytes() for place in range(len(packed))]
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as problem:
        raise BadKey(f"The exam key {name} is damaged and cannot be read. {remedy}") from problem
    keys = tuple(key_from_bytes(exercises, part, name, remedy) for part in parts)
    if not keys or [key.seed for key in keys] != seeds_of(secret, len(keys)):
        raise BadKey(f"The exam key {name} is damaged: its seeds are not those of its secret. {remedy}")
    if exercises.open_task and not {HIDDEN_TEXT, CANARY_TEXT} <= texts.keys():
        raise BadKey(f"The exam key {name} holds no text to score on. {remedy}")
    return ExamKey(secret, keys, texts)
