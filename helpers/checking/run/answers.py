"""Running what a student wrote, and carrying the results to where they are judged.

Answers travel from the student's process to the grader as safetensors in base64, never as pickles, and both sides
bound their size. On the student's machine nothing has to travel, but `run` returns what the grader would read, so
that the local check and the exam judge the same thing.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
import itertools
import json
import linecache
import os
import re
import threading
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from unittest import mock

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

from helpers.course import HELPERS, STUB
from helpers.device import on_the_cpu
from helpers.exercises import Exercise
from helpers.exercises.aspects import Fault, Forbidden, RaisedIn, by_name
from helpers.exercises.behaviour import NOTED, observing
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Aspect
from helpers.text import listed, sanitized

ANSWERED, NOT_ATTEMPTED, RAISED, REFUSED = "answered", "not attempted", "raised", "refused"
FORBIDDEN = "forbidden"  # the code called what the exercise is there to replace
STATES = (ANSWERED, NOT_ATTEMPTED, RAISED, REFUSED, FORBIDDEN)

TORCH = os.path.join(os.path.dirname(torch.__file__), "")
LARGEST_TENSOR = 1 << 20  # bytes; the largest right answer of the course is far smaller
LARGEST_ANSWER = 8 << 20
ROOM = 7 << 20  # bytes that the tensors of all aspects may take; their names and the words take the rest
MOST_TENSORS = 64  # in one aspect; the right answers of the course have nine at most
LONGEST_TEXT = 400
LONGEST_NAME = 100
MOST_PRINTED = 1000  # characters

# What numbers may be of: the types that safetensors, JSON and every torch carry unchanged
DTYPES = frozenset((
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
))  # fmt: skip

EMPTY = "There is nothing to compare: where tensors are expected, your code leaves an empty dict."
TOO_MUCH = "Your code returns more numbers than a check can send. Look for an axis that is too long."
SCRIPTED = "The check cannot look into a function that torch.jit.script has translated. Leave torch.jit.script out."
ODD = "Your code returns tensors of other shapes or types than this exercise can need."
UNREADABLE = "Your code returns a tensor of a kind that cannot be read; an ordinary torch.Tensor is needed."


class MalformedAnswer(ValueError):
    """An answer that no honest check can have sent. The text says what is wrong with it."""


@dataclass(frozen=True)
class Outcome:
    """The result of one aspect."""

    state: str
    """One of STATES."""
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """By name, on the CPU."""
    says: str = ""
    """For RAISED the error ("TypeError: ..."), for REFUSED a sentence."""
    where: str = ""
    """The student's line that raised, with its number."""
    behaviour: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """What it does besides, by name (see `exercises.behaviour`). Nothing but words depends on it."""


@dataclass(frozen=True)
class Answer:
    """The outcomes of one exercise by aspect, and the beginning of what the code printed meanwhile."""

    outcomes: Mapping[str, Outcome]
    printed: str = ""
    lines_printed: int = 0
    score: float | None = None
    """Of an open task, once it is reduced."""


# ---------------------------------------------------------------------------------------------- running


class _Printed(io.StringIO):
    """Keeps the beginning of what is printed, and counts all lines."""

    lines = 0

    def write(self, text: str) -> int:
        text = str.__str__(text)  # a student's own kind of str may have methods of its own
        self.lines += text.count("\n")
        super().write(text[: max(0, MOST_PRINTED - self.tell())])
        return len(text)

    def close(self) -> None:
        """Stays open: a student's code may close sys.stdout."""


def run(exercise: Exercise, written: object, seed: int | str, only: Collection[str] | None = None) -> Answer:
    """What is compared of an answer, with the inputs of that seed: what was collected, reduced."""
    return reduced(collect(exercise, written, seed, only), exercise, seed)


def collect(exercise: Exercise, written: object, seed: int | str, only: Collection[str] | None = None) -> Answer:
    """Run every probe of the exercise on what the student wrote, with the inputs of that seed.

    only: the names of the aspects to run; the others are "not attempted". All of them without it.

    It computes on the CPU, as an exam does. On a GPU an index out of range would not raise: it would end the use of the
    GPU in that process, and the student's other work in the notebook with it.

    Whatever the student's code does (raise, exit, print, warn, return nonsense) becomes an outcome; only a
    KeyboardInterrupt passes, so that the stop button works. What is returned was encoded and decoded, as in an exam.
    """
    printed = _Printed()
    quiet = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed)
    with quiet[0], quiet[1], warnings.catch_warnings(action="ignore"), _lengths_agree(), _one_thread(), on_the_cpu():
        outcomes = {
            aspect.name: _outcome(exercise, aspect, written, seed)
            if (only is None or aspect.name in only) and not aspect.collected_by
            else Outcome(NOT_ATTEMPTED)
            for aspect in exercise.aspects
        }
    text = sanitized(printed.getvalue())[:MOST_PRINTED]
    answer = Answer(_within_bounds(outcomes), text, printed.lines)
    return from_wire(json.loads(json.dumps(to_wire(answer))), exercise)


def reduced(answer: Answer, exercise: Exercise, seed: int | str) -> Answer:
    """The answer with what its aspects compare, made of what was collected with the inputs of that seed."""
    collected = {a.name: answer.outcomes[a.collected_by or a.name] for a in exercise.aspects}
    outcomes = {a.name: _reduced(collected[a.name], a, exercise.draw(seed, a)) for a in exercise.aspects}
    return replace(answer, outcomes=outcomes, score=_score(collected, exercise, seed))


def _score(collected: Mapping[str, Outcome], exercise: Exercise, seed: int | str) -> float | None:
    """Of an open task, what it is ranked by; None where there is nothing to rank, and for other exercises."""
    first = exercise.aspects[0]
    if exercise.score is not None and collected[first.name].state == ANSWERED:
        with contextlib.suppress(Exception):
            return exercise.score(collected[first.name].tensors, exercise.draw(seed, first))
    return None


def _reduced(outcome: Outcome, aspect: Aspect, draw: Draw) -> Outcome:
    """Trusts nothing in the outcome: what no probe can have collected is refused."""
    if aspect.reduce is None or outcome.state != ANSWERED:
        return outcome
    try:
        return replace(_packed(aspect.reduce(outcome.tensors, draw), aspect), behaviour=outcome.behaviour)
    except Fault as fault:
        return Outcome(REFUSED, says=_short(fault))
    except Exception:
        return Outcome(REFUSED, says=ODD)


def _within_bounds(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes that fit into one answer. Those beyond the limit are refused, each by itself."""
    bounded, room = {}, ROOM
    for aspect, outcome in outcomes.items():
        room -= sum(tensor.nbytes for tensor in outcome.tensors.values())
        bounded[aspect] = outcome if room >= 0 else Outcome(REFUSED, says=TOO_MUCH)
    return bounded


def _outcome(exercise: Exercise, aspect: Aspect, written: object, seed: int | str) -> Outcome:
    torch.default_generator.manual_seed(0)  # an answer that draws numbers of its own draws the same ones every time
    if isinstance(written, (torch.jit.ScriptFunction, torch.jit.ScriptModule)):
        return Outcome(REFUSED, says=SCRIPTED)
    try:
        with _defaults_of_torch(), observing() as behaviour:
            returned = aspect.probe(written, exercise.draw(seed, aspect))
        outcome = _packed(returned, aspect)
        return replace(outcome, behaviour=behaviour) if outcome.state == ANSWERED else outcome
    except Forbidden as call:
        return Outcome(FORBIDDEN, says=_short(call), where=where_raised(call))
    except Fault as fault:
        return Outcome(REFUSED, says=_short(fault))
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # SystemExit too: what a student's code raises is an answer
        case = ""
        if isinstance(problem, RaisedIn):
            case, problem = f"{problem}, ", problem.__cause__ or problem
        if _is_stub(problem):
            return Outcome(NOT_ATTEMPTED)
        where = _short(f"{case}{where_raised(problem)}".removesuffix(", "))
        return Outcome(RAISED, says=described(problem), where=where)


@contextlib.contextmanager
def _defaults_of_torch() -> Iterator[None]:
    """Settings that scratch work may have left changed are torch's own for as long as a probe runs."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    elsewhere = contextlib.nullcontext() if device.type == "cpu" else torch.device("cpu")
    try:
        torch.set_default_dtype(torch.float32)
        with torch.inference_mode(False), torch.enable_grad(), elsewhere:
            yield
    finally:
        torch.set_default_dtype(dtype)


@contextlib.contextmanager
def _lengths_agree() -> Iterator[None]:
    """Let `scaled_dot_product_attention` raise where keys and values are of different lengths.

    On the CPU, without a mask, PyTorch 2.13 reads on past the end of the shorter one, and on the way back writes there:
    sooner or later the process dies, and a student's unsaved work with it. Within the block its own plain
    implementation takes the place of the fused one.
    """
    library = torch.library.Library("aten", "IMPL")
    try:
        library.impl("scaled_dot_product_attention", _guarded, "CompositeImplicitAutograd", allow_override=True)
        yield
    finally:
        library._destroy()


def _one_thread() -> contextlib.AbstractContextManager:
    """Have this thread start no other, as in an exam: there the kernel refuses it (see `sandbox.inside.linux`)."""
    start, here = threading.Thread.start, threading.get_ident()

    def refuse(thread: threading.Thread) -> None:
        if threading.get_ident() == here:
            raise RuntimeError("can't start new thread")
        start(thread)

    return mock.patch.object(threading.Thread, "start", refuse)


def _guarded(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if min(key.dim(), value.dim()) > 1 and key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"there are {key.shape[-2]} keys and {value.shape[-2]} values, and each key needs a value: key has the"
            f" shape {tuple(key.shape)}, value {tuple(value.shape)}"
        )
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
    plain = torch.ops.aten._scaled_dot_product_attention_math
    return plain(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]


def where_raised(problem: BaseException) -> str:
    """The student's line that raised, with its number and the shapes of its tensors; "" where it was none of theirs."""
    return _short(_asked(lambda: _students_line(problem)))


def while_torch_is_imported(problem: BaseException) -> bool:
    """Was a module of torch being imported when this was raised?"""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(problem.__traceback__)]
    return any(code.co_name == "<module>" and code.co_filename.startswith(TORCH) for code in codes)


def _is_stub(problem: BaseException) -> bool:
    # torch raises NotImplementedError as well, always with a message of its own
    return type(problem) is NotImplementedError and _asked(lambda: str(problem), "?") in ("", STUB)


def described(problem: BaseException) -> str:
    """An exception in one line, fit for a page: "TypeError: ..."."""
    kind = sanitized(_asked(lambda: type(problem).__name__, "an exception"))[:LONGEST_NAME]
    text = _asked(lambda: str(problem))[: 10 * LONGEST_TEXT]
    lines = sanitized(re.sub(r"\b0x[0-9a-fA-F]{6,}", "0x…", text)).strip().splitlines()  # no two runs share addresses
    return _short(f"{kind}: {lines[0]}" if lines else kind)


def _asked(question: Callable[[], str], otherwise: str = "") -> str:
    """What the student's object says of itself. It may raise, and it may say it in a str of its own kind."""
    try:
        return str.__str__(question())
    except KeyboardInterrupt:
        raise
    except BaseException:
        return otherwise


def _students_line(problem: BaseException) -> str:
    """The innermost line of the traceback outside the course and its libraries, with the shapes of its tensors."""
    libraries = (str(HELPERS), os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(torch.__file__)))
    for frame, number in reversed(list(traceback.walk_tb(problem.__traceback__))):
        filename = frame.f_code.co_filename
        if not filename.startswith((*libraries, "<frozen", "<helpers", "<setup")):
            text = linecache.getline(filename, number).strip()
            return f"line {number}: {text[:90]}{_shapes(text, frame.f_locals)}" if text else f"line {number}"
    return ""


def _shapes(line: str, names: Mapping[str, object]) -> str:
    """Of the tensors that a line of code names, their shapes: ", where q has shape (3,) and self.u (5, 3)"."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, attribute in re.findall(r"(?<![\w.])([A-Za-z_]\w*)(?:\.(\w+))?", line):
        value, called = names.get(name), name
        if attribute and issubclass(type(value), torch.nn.Module):
            value, called = _stored(value, attribute), f"{name}.{attribute}"
        # Other kinds have a `shape` of their own making
        if type(value) in (torch.Tensor, torch.nn.Parameter) and isinstance(value, torch.Tensor):
            shapes[called] = tuple(value.shape)
    said = [f"{name} {'' if place else 'has shape '}{shape}" for place, (name, shape) in enumerate(shapes.items())]
    return f", where {listed(said, most=len(said))}" if said else ""


def _stored(module: object, attribute: str) -> object:
    """What a module holds under that name, without running code of its own."""
    own = object.__getattribute__(module, "__dict__")
    return next(
        (held[attribute] for held in (own, own.get("_parameters", {}), own.get("_buffers", {})) if attribute in held),
        None,
    )


def _packed(returned: object, aspect: Aspect) -> Outcome:
    named = list(itertools.islice(by_name(returned), MOST_TENSORS + 1))
    if not named:
        return Outcome(REFUSED, says=EMPTY)
    if len(named) > MOST_TENSORS:
        return Outcome(REFUSED, says=f"Your code returns more than {MOST_TENSORS} things; far fewer are needed.")
    tensors = {}
    for name, value in named:
        if aspect.accepts == "number" and isinstance(value, (bool, int, float, np.number)):
            value = torch.tensor(float(value), dtype=torch.float64)
        wrong = _why_not(value, aspect.accepts)
        if wrong:
            return Outcome(REFUSED, says=wrong)
        plain = _plain(value) if isinstance(value, torch.Tensor) else None
        if plain is None:
            return Outcome(REFUSED, says=UNREADABLE)
        if aspect.accepts == "number" and plain.numel() == 1:
            plain = plain.reshape(()).to(torch.float64)
        tensors[sanitized(str.__str__(str(name)))[:LONGEST_NAME]] = plain
    return Outcome(ANSWERED, tensors)


def _plain(value: torch.Tensor) -> torch.Tensor | None:
    """The numbers of a tensor in one that is no view and of no class of its own; None if it hides them."""
    with torch._C.DisableTorchFunctionSubclass():
        plain = torch.Tensor.detach(value).to("cpu").resolve_conj().resolve_neg().as_subclass(torch.Tensor)
        plain = plain.contiguous().clone()
    try:
        write_tensors({"": plain})
    except Exception:  # a class that computes its numbers when it is asked for them has none in store
        return None
    return plain if type(plain) is torch.Tensor and plain.dtype in DTYPES else None


def _why_not(value: object, wanted: str) -> str:
    """Why this cannot be judged as what is wanted ("tensor" or "number"), in a sentence; "" where it can."""
    if isinstance(value, torch.Tensor):
        return _why_no_tensor(value)
    advice = ""
    if value is None:
        return "Your code returns None. Is there a return at its end?"
    if callable(value):
        return f"Your code returns a function or a module, not a {wanted}. Was it meant to be called?"
    if isinstance(value, np.ndarray):
        kind, advice = f"a NumPy array of shape {value.shape}", " Stay in torch from start to end."
    elif isinstance(value, (list, tuple)):
        kind = f"a {type(value).__name__} of {len(value)} {'thing' if len(value) == 1 else 'things'}"
        shapes = [part.shape if isinstance(part, torch.Tensor) else None for part in value[:MOST_TENSORS]]
        if None not in shapes and len(shapes) > 2 and len(set(shapes)) == 1:
            advice = " torch.stack makes one of many."
    elif isinstance(value, str):
        kind = f"the text {str.__str__(value)[:40]!r}"
    else:
        kind = f"an object of type {type(value).__name__}"
    needed = "a single number" if wanted == "number" else "one tensor"
    return f"Your code returns {kind}; {needed} is needed.{advice if wanted == 'tensor' else ''}"


def _why_no_tensor(value: torch.Tensor) -> str:
    """Why the numbers of a tensor cannot be judged; "" where they can."""
    if value.layout is not torch.strided or value.is_nested:
        kind = "a nested tensor" if value.is_nested else f"a tensor of layout {value.layout}"
        return f"Your code returns {kind}; a dense one is needed."
    if value.is_complex():
        return "Your result holds complex numbers; real ones are needed."
    if value.dtype not in DTYPES:
        dtype = str(value.dtype).removeprefix("torch.")
        return f"Your code returns a tensor of type {dtype}, which few machines know; an ordinary type is needed."
    if value.is_meta:
        return "Your code returns a tensor on the device 'meta', which holds no numbers."
    if value.nbytes > LARGEST_TENSOR:
        return (
            f"Your code returns a tensor of shape {tuple(value.shape)}, {value.nbytes / 1e6:,.0f} MB: far more "
            "than this exercise can need. Look at the axis that is too long."
        )
    return ""


def _short(text: object) -> str:
    text = sanitized(_asked(lambda: str(text)))
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


# --------------------------------------------------------------------------------------------- crossing


def to_wire(answer: Answer) -> dict:
    """The answer as JSON."""
    return {
        "outcomes": {aspect: _outcome_to_wire(outcome) for aspect, outcome in answer.outcomes.items()},
        "printed": answer.printed,
        "lines_printed": answer.lines_printed,
    }


def _outcome_to_wire(outcome: Outcome) -> dict:
    # A name may be any text; those of behaviour come last
    all_tensors = [*outcome.tensors.values(), *outcome.behaviour.values()]
    encoded = write_tensors({str(place): tensor for place, tensor in enumerate(all_tensors)})
    return {
        "state": outcome.state,
        "says": outcome.says,
        "where": outcome.where,
        "names": [*outcome.tensors, *outcome.behaviour],
        "behaviour": len(outcome.behaviour),
        "tensors": base64.b64encode(encoded).decode("ascii"),
    }


def received(data: object, exercise: Exercise, seed: int | str) -> Answer:
    """What is compared of an answer that was collected elsewhere with the inputs of that seed. See `from_wire`."""
    return reduced(from_wire(data, exercise), exercise, seed)


def from_wire(data: object, exercise: Exercise) -> Answer:
    """The answer that this JSON holds. Trusts nothing in it.

    Raises MalformedAnswer for what is not an answer to this exercise: an aspect or a state that there is not, tensors
    that are too large or no safetensors.
    """
    if not isinstance(data, Mapping) or not isinstance(sent := data.get("outcomes"), Mapping):
        raise MalformedAnswer("it has no outcomes")
    if set(sent) != {aspect.name for aspect in exercise.aspects}:
        raise MalformedAnswer("its aspects are not those of the exercise")
    room, outcomes = LARGEST_ANSWER, {}
    for aspect in exercise.aspects:
        outcomes[aspect.name] = _outcome_from_wire(sent[aspect.name], room)
        room -= sum(tensor.nbytes for tensor in outcomes[aspect.name].tensors.values())
    lines = data.get("lines_printed")
    printed = _text(data, "printed", MOST_PRINTED)
    return Answer(outcomes, printed, lines if isinstance(lines, int) else 0)


def _outcome_from_wire(sent: object, room: int) -> Outcome:
    """room: how many bytes its tensors may take."""
    if not isinstance(sent, Mapping) or sent.get("state") not in STATES:
        raise MalformedAnswer("one of its aspects has a state that there is not")
    encoded, names = sent.get("tensors"), sent.get("names")
    if not isinstance(encoded, str) or not isinstance(names, list):
        raise MalformedAnswer("its tensors are missing")
    if len(names) > MOST_TENSORS or not all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in names):
        raise MalformedAnswer("its tensors have too many names, or too long ones")
    if len(encoded) > room * 4 // 3 + 4:
        raise MalformedAnswer("its tensors are too large")
    try:
        tensors = read_tensors(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError, SafetensorError, KeyError, RuntimeError) as problem:
        raise MalformedAnswer("its tensors cannot be read") from problem
    if any(tensor.dtype not in DTYPES for tensor in tensors.values()):
        raise MalformedAnswer("its tensors are of a type that there is not")
    places = [str(place) for place in range(len(tensors))]
    if bool(tensors) != (sent["state"] == ANSWERED) or len(names) != len(tensors) or set(tensors) != set(places):
        raise MalformedAnswer("its states and its tensors do not fit together")
    noted = sent.get("behaviour")
    count = len(names) - (noted if isinstance(noted, int) and 0 <= noted < len(names) else 0)
    named = [(name, tensors[place]) for name, place in zip(names, places, strict=True)]
    behaviour = {name: tensor for name, tensor in named[count:] if name in NOTED}
    return Outcome(sent["state"], dict(named[:count]), _text(sent, "says"), _text(sent, "where"), behaviour)


def _text(data: Mapping, name: str, limit: int = LONGEST_TEXT) -> str:
    value = data.get(name)
    return sanitized(value)[:limit] if isinstance(value, str) else ""
