"""Answer keys: what the reference solution and each known mistake returned, for one seed. Data, no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from helpers.checking.run.answers import ANSWERED, Outcome
from helpers.course import lesson_folder
from helpers.exercises import Exercise, Lesson

FORMAT = 3

Outcomes = Mapping[str, Outcome]


class BadKey(Exception):
    """A key that cannot be used. The text says why, and what to run."""


@dataclass(frozen=True)
class NamedMistake:
    """A mistake in words: its name in the lesson's mistakes.toml, its title, and what to tell the student."""

    slug: str
    title: str
    says: str


@dataclass(frozen=True)
class KnownMistake(NamedMistake):
    """A mistake that the key knows, with what it returned."""

    outcomes: Outcomes

    @property
    def named(self) -> NamedMistake:
        """Without what it returned."""
        return NamedMistake(self.slug, self.title, self.says)


@dataclass(frozen=True)
class ExerciseKey:
    """What is right for one exercise, and what is wrong in a known way."""

    reference: Outcomes
    mistakes: tuple[KnownMistake, ...] = ()
    released: str = ""
    """Where a bug is to be fixed, the digest of the program in the student's cell; "" for other exercises."""
    lost: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What `recognition.lost_aspects` has found out, by mistake."""


@dataclass(frozen=True)
class AnswerKey:
    """The key of one lesson under one seed."""

    seed: str
    exercises: Mapping[str, ExerciseKey] = field(default_factory=dict)
    """By name."""

    def __getitem__(self, exercise: str) -> ExerciseKey:
        return self.exercises[exercise]


def shipped_path(lesson: str) -> Path:
    """The path of the key that students get."""
    return lesson_folder(lesson) / "key.safetensors"


def digest_of_exercises(lesson: Lesson) -> str:
    """A digest of the lesson's exercises and aspects. A key with another digest has to be made again."""
    parts = [[e.name, [[a.name, a.points, a.side] for a in e.aspects], *["fix"] * e.fixes_bug] for e in lesson]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def key_as_bytes(key: AnswerKey, lesson: Lesson) -> bytes:
    """The key as the bytes of a safetensors file. The same key gives the same bytes."""
    tensors: dict[str, torch.Tensor] = {}
    exercises = {}
    for name, entry in key.exercises.items():
        mistakes = []
        for mistake in entry.mistakes:
            differing = {a: o for a, o in mistake.outcomes.items() if not _same(o, entry.reference[a])}
            own = {aspect: replace(outcome, behaviour={}) for aspect, outcome in differing.items()}
            texts = {"slug": mistake.slug, "title": mistake.title, "says": mistake.says}
            mistakes.append({**texts, "outcomes": _stored(own, f"{name}/{mistake.slug}", tensors)})
        reference = _stored(entry.reference, f"{name}/reference", tensors)
        released = {"released": entry.released} if entry.released else {}
        exercises[name] = {"reference": reference, "mistakes": mistakes, **released}
    about = {
        "format": FORMAT,
        "lesson": lesson.name,
        "seed": key.seed,
        "fingerprint": digest_of_exercises(lesson),
        "exercises": exercises,
    }
    return save(tensors, metadata={"key": json.dumps(about, ensure_ascii=False, sort_keys=True)})


def _stored(outcomes: Outcomes, prefix: str, tensors: dict[str, torch.Tensor]) -> dict:
    entries: dict[str, dict[str, str | list[str]]] = {}
    for aspect, outcome in outcomes.items():
        entries[aspect] = {"state": outcome.state, "says": outcome.says}
        for kind, held in (("names", outcome.tensors), ("behaviour", outcome.behaviour)):
            tensors |= {_address(prefix, aspect, kind, name): tensor for name, tensor in held.items()}
            entries[aspect] |= {kind: list(held)} if held or kind == "names" else {}
    return entries


def _address(prefix: str, aspect: str, kind: str, name: str) -> str:
    return f"{prefix}/{aspect}/{name}" if kind == "names" else f"{prefix}/{aspect}/{kind}/{name}"


def _same(left: Outcome, right: Outcome) -> bool:
    if (left.state, left.says) != (right.state, right.says):
        return False
    return save(dict(left.tensors)) == save(dict(right.tensors))


def load_key(lesson: Lesson, path: Path, remedy: str) -> AnswerKey:
    """Read the key of a lesson.

    Raises BadKey when the file is missing, damaged, of another lesson or of another version; the text
    ends with `remedy`, the sentence that says what to run.
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise BadKey(f"The answer key of {lesson.name} is missing or unreadable ({path.name}). {remedy}") from problem
    return key_from_bytes(lesson, data, path.name, remedy)


def key_from_bytes(lesson: Lesson, data: bytes, name: str, remedy: str) -> AnswerKey:
    """The key that a file of these bytes holds. name: the file's, for messages. Raises BadKey as `load_key` does."""
    try:
        about, tensors = json.loads(metadata_of(data)["key"]), load(data)
        if about["lesson"] != lesson.name:
            raise BadKey(f"The answer key {name} belongs to {about['lesson']}, not to {lesson.name}. {remedy}")
        if (about["format"], about["fingerprint"]) != (FORMAT, digest_of_exercises(lesson)):
            raise BadKey(f"The answer key {name} was made for another version of {lesson.name}. {remedy}")
        exercises = {e.name: _exercise_key(e, about["exercises"][e.name], tensors) for e in lesson}
        return AnswerKey(about["seed"], exercises)
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as problem:
        raise BadKey(f"The answer key {name} is damaged and cannot be read. {remedy}") from problem


def metadata_of(data: bytes) -> dict[str, str]:
    """What the head of a safetensors file says. Raises ValueError, KeyError or TypeError where it says nothing."""
    length = int.from_bytes(data[:8], "little")
    if not 0 < length <= len(data) - 8:
        raise ValueError("no head")
    return json.loads(data[8 : 8 + length])["__metadata__"]


def _exercise_key(exercise: Exercise, stored: dict, tensors: dict[str, torch.Tensor]) -> ExerciseKey:
    reference = _outcomes(stored["reference"], f"{exercise.name}/reference", tensors)
    if any(reference[aspect.name].state != ANSWERED for aspect in exercise.aspects):
        raise KeyError(exercise.name)
    mistakes = []
    for mistake in stored["mistakes"]:
        slug, title, says = (mistake[name] for name in ("slug", "title", "says"))
        outcomes = reference | _outcomes(mistake["outcomes"], f"{exercise.name}/{slug}", tensors)
        mistakes.append(KnownMistake(slug, title, says, outcomes))
    released = stored.get("released", "")
    if exercise.fixes_bug and not (isinstance(released, str) and released):
        raise KeyError(exercise.name)
    return ExerciseKey(reference, tuple(mistakes), released)


def _outcomes(stored: dict, prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, Outcome]:
    outcomes = {}
    for aspect, entry in stored.items():
        own, behaviour = (
            {name: tensors[_address(prefix, aspect, kind, name)] for name in entry.get(kind, ())}
            for kind in ("names", "behaviour")
        )
        outcomes[aspect] = Outcome(entry["state"], own, entry["says"], behaviour=behaviour)
    return outcomes
