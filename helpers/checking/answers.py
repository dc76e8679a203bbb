"""Running what a student wrote, and carrying what it returned to whoever judges it.

An `Outcome` is what one aspect came to: tensors, or a reason why there are none. An `Answer` is the
outcomes of one exercise. Answers cross from a student's kernel to the grader as safetensors in base64,
never as pickles, and both sides bound their size.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
import linecache
import os
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from helpers.course import HELPERS, STUB
from helpers.exercises import Exercise
from helpers.exercises.aspects import Unmet
from helpers.exercises.exercise import Aspect

MIME = "application/vnd.dot-product-to-gpt2.answer+json"
FORMAT = 1

ANSWERED, NOT_ATTEMPTED, RAISED, REFUSED = "answered", "not attempted", "raised", "refused"
STATES = (ANSWERED, NOT_ATTEMPTED, RAISED, REFUSED)

LARGEST_TENSOR = 1 << 20  # bytes; the largest right answer of the course is far smaller
LARGEST_ANSWER = 8 << 20
LONGEST_TEXT = 400


class MalformedAnswer(ValueError):
    """An answer that no honest check can have sent. The text says what is wrong with it."""


@dataclass(frozen=True)
class Outcome:
    """What one aspect came to.

    state: one of STATES. tensors: by name, on the CPU. says: for RAISED the error ("TypeError: ..."),
    for REFUSED a sentence. where: the student's line that raised, with its number.
    """

    state: str
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    says: str = ""
    where: str = ""


@dataclass(frozen=True)
class Answer:
    """The outcomes of one exercise by aspect, and the beginning of what the code printed meanwhile."""

    exercise: str
    outcomes: Mapping[str, Outcome]
    printed: str = ""
    lines_printed: int = 0


# ---------------------------------------------------------------------------------------------- running


class _Notepad(io.TextIOBase):
    """Keeps the beginning of what is printed, and counts the lines of the rest."""

    def __init__(self, limit: int = 1000):
        self.kept, self.lines, self._room = "", 0, limit

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        if self._room > 0:
            self.kept += text[: self._room]
            self._room -= len(text)
        return len(text)


def run(exercise: Exercise, written: object, seed: int | str) -> Answer:
    """Run every probe of the exercise on what the student wrote, with the inputs of that seed.

    Whatever the student's code does (raise, exit, print, warn, return nonsense) becomes an outcome;
    only a KeyboardInterrupt passes, so that the stop button works.
    """
    notepad = _Notepad()
    with contextlib.redirect_stdout(notepad), contextlib.redirect_stderr(notepad), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = {aspect.name: _outcome(exercise, aspect, written, seed) for aspect in exercise.aspects}
    return Answer(exercise.name, outcomes, notepad.kept, notepad.lines)


def _outcome(exercise: Exercise, aspect: Aspect, written: object, seed: int | str) -> Outcome:
    torch.manual_seed(0)  # an answer that draws numbers of its own draws the same ones every time
    try:
        returned = aspect.probe(written, exercise.draw(seed, aspect))
        return _packed(returned, aspect)
    except Unmet as unmet:
        return Outcome(REFUSED, says=_short(unmet))
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # SystemExit too: what a student's code raises is an answer
        if _is_stub(problem):
            return Outcome(NOT_ATTEMPTED)
        return Outcome(RAISED, says=_short(_described(problem)), where=_short(_students_line(problem)))


def _is_stub(problem: BaseException) -> bool:
    # torch raises NotImplementedError as well, always with a message of its own
    return type(problem) is NotImplementedError and str(problem) in ("", STUB)


def _described(problem: BaseException) -> str:
    lines = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {lines[0]}" if lines else type(problem).__name__


def _students_line(problem: BaseException) -> str:
    """The innermost line of the traceback that is neither ours nor a library's."""
    libraries = (str(HELPERS), os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(torch.__file__)))
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if not frame.filename.startswith(libraries) and not frame.filename.startswith("<frozen"):
            text = linecache.getline(frame.filename, frame.lineno or 0).strip()
            return f"line {frame.lineno}: {text[:90]}" if text else f"line {frame.lineno}"
    return ""


def _packed(returned: object, aspect: Aspect) -> Outcome:
    named = returned if isinstance(returned, dict) else {"result": returned}
    if isinstance(returned, tuple) and returned:
        named = {f"result {place}": value for place, value in enumerate(returned)}
    tensors = {}
    for name, value in named.items():
        if aspect.accepts == "number" and isinstance(value, (bool, int, float, np.number)):
            value = torch.tensor(float(value), dtype=torch.float64)
        wrong = _why_not(value)
        if wrong:
            return Outcome(REFUSED, says=wrong)
        kept = value.detach().to("cpu").resolve_conj().resolve_neg().contiguous().clone()
        if aspect.accepts == "number" and kept.numel() == 1:
            kept = kept.reshape(()).to(torch.float64)
        tensors[str(name)] = kept
    return Outcome(ANSWERED, tensors)


def _why_not(value: object) -> str:
    """A sentence that says why this cannot be judged as a tensor, or nothing."""
    if value is None:
        return "Your code returns None. Is there a return at its end?"
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return f"Your code returns a tensor of layout {value.layout}; a dense one is needed."
        if value.is_meta:
            return "Your code returns a tensor on the device 'meta', which holds no numbers."
        if value.nbytes > LARGEST_TENSOR:
            return (
                f"Your code returns a tensor of shape {tuple(value.shape)}, {value.nbytes / 1e6:,.0f} MB: far more "
                "than this exercise can need. Look at the axis that is too long."
            )
        return ""
    if isinstance(value, np.ndarray):
        return (
            f"Your code returns a NumPy array of shape {value.shape}; a torch tensor is needed."
            " Stay in torch from start to end."
        )
    if isinstance(value, (list, tuple)):
        kind = type(value).__name__
        return (
            f"Your code returns a {kind} of {len(value)} things; one tensor is needed. torch.stack makes one of many."
        )
    if isinstance(value, str):
        return f"Your code returns the text {value[:40]!r}; a tensor is needed."
    if callable(value):
        return "Your code returns a function or a module, not a tensor. Was it meant to be called?"
    return f"Your code returns an object of type {type(value).__name__}; a tensor is needed."


def _short(text: object) -> str:
    text = str(text)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


# --------------------------------------------------------------------------------------------- crossing


def to_wire(answer: Answer) -> dict:
    """The answer as JSON, for an output of type MIME."""
    tensors = {
        f"{aspect}/{name}": tensor
        for aspect, outcome in answer.outcomes.items()
        for name, tensor in outcome.tensors.items()
    }
    return {
        "format": FORMAT,
        "exercise": answer.exercise,
        "outcomes": {
            aspect: {"state": outcome.state, "says": outcome.says, "where": outcome.where}
            for aspect, outcome in answer.outcomes.items()
        },
        "printed": answer.printed,
        "lines_printed": answer.lines_printed,
        "tensors": base64.b64encode(write_tensors(tensors)).decode("ascii"),
    }


def from_wire(data: object, exercise: Exercise) -> Answer:
    """The answer that this JSON holds. Trusts nothing in it.

    Raises MalformedAnswer for what is not an answer to this exercise: another format or exercise, an
    aspect or a state that there is not, tensors that are too large or no safetensors.
    """
    if not isinstance(data, Mapping):
        raise MalformedAnswer("it is not a JSON object")
    if data.get("format") != FORMAT:
        raise MalformedAnswer("it is of another format")
    if data.get("exercise") != exercise.name:
        raise MalformedAnswer("it answers another exercise")
    told = data.get("outcomes")
    names = {aspect.name for aspect in exercise.aspects}
    if not isinstance(told, Mapping) or set(told) != names:
        raise MalformedAnswer("its aspects are not those of the exercise")
    tensors = _tensors_from_wire(data.get("tensors"))
    outcomes = {}
    for aspect in exercise.aspects:
        outcomes[aspect.name] = _outcome_from_wire(told[aspect.name], tensors.pop(aspect.name, {}))
    if tensors:
        raise MalformedAnswer("it holds tensors for aspects that the exercise does not have")
    lines = data.get("lines_printed")
    return Answer(exercise.name, outcomes, _text(data, "printed", 1000), lines if isinstance(lines, int) else 0)


def _tensors_from_wire(encoded: object) -> dict[str, dict[str, torch.Tensor]]:
    if not isinstance(encoded, str):
        raise MalformedAnswer("its tensors are missing")
    if len(encoded) > LARGEST_ANSWER * 4 // 3 + 4:
        raise MalformedAnswer("its tensors are too large")
    try:
        flat = read_tensors(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError, SafetensorError, KeyError, RuntimeError) as problem:
        raise MalformedAnswer("its tensors cannot be read") from problem
    nested: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in flat.items():
        aspect, _, inner = name.partition("/")
        nested.setdefault(aspect, {})[inner] = tensor
    return nested


def _outcome_from_wire(told: object, tensors: dict[str, torch.Tensor]) -> Outcome:
    if not isinstance(told, Mapping) or told.get("state") not in STATES:
        raise MalformedAnswer("one of its aspects has a state that there is not")
    state = told["state"]
    if bool(tensors) != (state == ANSWERED):
        raise MalformedAnswer("its states and its tensors do not fit together")
    return Outcome(state, tensors, _text(told, "says"), _text(told, "where"))


def _text(data: Mapping, name: str, limit: int = LONGEST_TEXT) -> str:
    value = data.get(name)
    return value[:limit] if isinstance(value, str) else ""
