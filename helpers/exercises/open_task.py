"""An open task: a model of the student's own and a file of its weights, scored in bits per byte on unseen text.

The answer's process sees contexts and weights. Targets, landmarks and the score stay where no student's code runs: the
probe collects log-probabilities, and each landmark's aspect reduces the same tensors.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from helpers.exercises.aspects import Fault, kind_of
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Collected

FILE = "weights.safetensors"
LARGEST = 1_000_000  # bytes of that file
CONTEXT = 256  # bytes that a prediction may look at
APART = 320  # bytes from a context's start to the next one's: the 63 bytes after a target are in no context
MOST = 1024  # contexts: their log-probabilities are 1 MB of float32, which is what one tensor of an answer may hold
FEWEST = 64
AT_HOME = (256, 96)  # contexts of a check at home at most, and their distance
AT_ONCE = 128  # contexts of one call
AGAIN = 64  # contexts that are asked for once more, in another order and in batches of other sizes
SLACK = 1e-3  # by how much probabilities may miss their sum, or differ the second time

MISSING = f"There is no file {FILE} beside the notebook. `save_weights` writes it."
TOO_LARGE = f"{FILE} has {{:,}} bytes; at most {LARGEST:,} are allowed."
UNREADABLE = f"{FILE} is not a safetensors file. Pickles, such as those of torch.save, are never opened."
NO_TEXT = "There is no text to score on: run the cell with `check.text = ...` first."
NO_SUM = "In some rows the probabilities do not add up to 1: are they natural logarithms, normalised over 256 bytes?"
NO_NUMBER = "Some log-probabilities are NaN or +inf."
CHANGES = (
    "The model answers differently when some contexts are asked for again, in another order and in batches of other"
    " sizes. The answer to a context may depend on nothing else."
)


class BadText(ValueError):
    """A text that cannot be used to score on. The message says why."""


@dataclass(frozen=True)
class Material:
    """What an open task is tried on."""

    contexts: torch.Tensor
    """(n, CONTEXT), uint8."""
    weights: bytes = b""
    """The file."""
    problem: str = ""
    """Why there are no weights to use, for the student; "" where there are."""
    targets: torch.Tensor | None = None
    """The bytes that follow, (n,), uint8. None in the answer's process."""
    landmarks: Mapping[str, float] = field(default_factory=dict)
    """Bits per byte by name, the easiest first."""

    def for_answer(self) -> Material:
        """What the answer's process may see of it."""
        return Material(self.contexts, self.weights, self.problem)

    def to_wire(self) -> dict[str, str]:
        """The same as JSON, for a process behind walls."""
        parts = {"contexts": self.contexts.numpy().tobytes(), "weights": self.weights}
        return {name: base64.b64encode(data).decode("ascii") for name, data in parts.items()}

    @classmethod
    def from_wire(cls, sent: Mapping[str, str]) -> Material:
        """What `to_wire` made."""
        contexts = torch.frombuffer(bytearray(base64.b64decode(sent["contexts"])), dtype=torch.uint8)
        return cls(contexts.view(-1, CONTEXT), base64.b64decode(sent["weights"]))


def material(
    text: bytes, landmarks: Mapping[str, float], weights: bytes | None, problem: str = "", at_home: bool = False
) -> Material:
    """What to try a file of weights on: contexts of this text. weights: None where there is no file.

    problem: why the file could not be taken, where that is known already. at_home: where nothing is to be kept from the
    answer, contexts may overlap, so that a short text has enough of them. Raises BadText where the text is too short.
    """
    contexts, targets = contexts_of(text, *AT_HOME) if at_home else contexts_of(text)
    # In their order, what follows a target would be the start of the next context
    mixed = Draw(hashlib.sha256(text).hexdigest(), "mixed").permutation(len(targets))
    contexts, targets = contexts[mixed], targets[mixed]
    return Material(contexts, weights or b"", problem or problem_of(weights), targets, landmarks)


def contexts_of(text: bytes, most: int = MOST, apart: int = APART) -> tuple[torch.Tensor, torch.Tensor]:
    """Contexts, spread evenly over the text, and the byte after each: (n, CONTEXT) and (n,), uint8.

    apart: bytes from one to the next, at least. By default no target is in any context, and neither are the bytes right
    after it. Raises BadText where the text is too short.
    """
    room = (len(text) - CONTEXT - 1) // apart + 1
    if room < FEWEST:
        raise BadText(f"The text has {len(text):,} bytes; at least {apart * (FEWEST - 1) + CONTEXT + 1:,} are needed.")
    count = min(most, room)
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    starts = torch.arange(count) * (len(text) - CONTEXT - 1) // max(count - 1, 1)
    starts = starts if count > 1 else starts * 0
    return data[starts[:, None] + torch.arange(CONTEXT)], data[starts + CONTEXT]


def problem_of(weights: bytes | None) -> str:
    """Why this file of weights cannot be used, for the student; "" where it can. None: there is no file."""
    if weights is None:
        return MISSING
    if len(weights) > LARGEST:
        return TOO_LARGE.format(len(weights))
    try:
        load(weights)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError):
        return UNREADABLE
    return ""


def read_weights(folder: Path) -> bytes | None:
    """The file of weights in a folder, up to one byte more than is allowed; None where there is none."""
    try:
        with open(folder / FILE, "rb") as file:
            return file.read(LARGEST + 1)
    except OSError:
        return None


# ------------------------------------------------------------------------------------------- the aspects


def ask(answer: Answer, draw: Draw) -> dict[str, torch.Tensor]:
    """A probe: the log-probabilities for all contexts, in a drawn order, and once more for some of them.

    Returns "first" (n, 256) and "again" (AGAIN, 256), float32.
    """
    given: Material | None = draw.material
    if given is None:
        raise Fault(NO_TEXT)
    if given.problem:
        raise Fault(given.problem)
    model = answer(load(given.weights))
    order, again = orders(draw, len(given.contexts))
    first = [asked(model, given.contexts[rows]) for rows in order.split(AT_ONCE)]
    second = [asked(model, given.contexts[rows]) for rows in (again[:1], again[1:])]
    return {"first": torch.cat(first), "again": torch.cat(second)}


def orders(draw: Draw, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The order of the first call, (count,), and which contexts are asked for again, (AGAIN,)."""
    order = draw.named("order").permutation(count)
    return order, draw.named("again").permutation(count)[:AGAIN]


def asked(model: Any, contexts: torch.Tensor) -> torch.Tensor:
    """What the model answers to these contexts, (b, 256), float32. Raises Fault where it is something else."""
    with torch.no_grad():
        said = model.log_probabilities(contexts.long())
    if not isinstance(said, torch.Tensor):
        raise Fault(f"log_probabilities returns {kind_of(said)}; one tensor is needed.")
    if tuple(said.shape) != (len(contexts), 256) or not said.is_floating_point():
        kind = str(said.dtype).removeprefix("torch.")
        raise Fault(
            f"log_probabilities returns shape {tuple(said.shape)}, {kind}, for {len(contexts)} contexts;"
            f" floating-point numbers of shape ({len(contexts)}, 256) are needed."
        )
    return said.detach().float()


def bits_per_byte(collected: Collected, draw: Draw) -> float:
    """The score, where no student's code runs. Raises Fault, in words for the student, where there is none."""
    given: Material = draw.material
    nothing = torch.empty(0)
    first, again = collected.get("first", nothing), collected.get("again", nothing)
    order, repeated = orders(draw, len(given.contexts))
    wanted = ((first, (len(order), 256)), (again, (len(repeated), 256)))
    if any(tuple(t.shape) != shape or t.dtype != torch.float32 for t, shape in wanted):
        raise Fault("Log-probabilities of another shape arrived than was asked for.")
    both = torch.cat([first, again]).double()
    if (both.isnan() | (both == math.inf)).any():
        raise Fault(NO_NUMBER)
    if ((both.exp().sum(dim=-1) - 1).abs() > SLACK).any():
        raise Fault(NO_SUM)
    place: torch.Tensor = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    if (first[place[repeated]].exp() - again.exp()).abs().max() > SLACK:
        raise Fault(CHANGES)
    if given.targets is None:  # only beside the student's code, where nothing is scored
        raise Fault(NO_TEXT)
    targets = given.targets[order].long()
    nats = -first.double().gather(-1, targets[:, None])[:, 0]
    return (nats.mean() / math.log(2)).item()


def better_than(landmark: str) -> Callable[[Collected, Draw], torch.Tensor]:
    """Reduces log-probabilities to [1] where the score is at or below this landmark. Raises Fault where it is not."""

    def reduce(collected: Collected, draw: Draw) -> torch.Tensor:
        bits, most = bits_per_byte(collected, draw), draw.material.landmarks[landmark]
        if bits > most:
            raise Fault(f"{bits:.3f} bits a byte; this takes {most:.3f}.")
        return torch.tensor([1])

    return reduce


def landmark_aspects(points: Mapping[str, float]) -> tuple[Aspect, ...]:
    """An aspect for each landmark, the easiest first. The first one's probe collects for all."""
    first = next(iter(points))
    name = {landmark: f"no more bits than {landmark}" for landmark in points}
    return tuple(
        Aspect(
            name[landmark],
            worth,
            ask,
            reduce=better_than(landmark),
            collected_by="" if landmark == first else name[first],
        )
        for landmark, worth in points.items()
    )
