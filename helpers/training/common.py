"""What the long trainings share: optimiser, schedule, precision, and the record."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import time
import timeit
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from helpers.course import write_whole
from helpers.data.recorded import FOLDER
from helpers.device import device

Model = TypeVar("Model", bound=nn.Module)

REAL = ("folder", "kept", "hub")  # places of data, without the embedded default
COSINE: dict[str, object] = {"schedule": "half a cosine to 0"}  # what a record says of `up_and_down`


class Rates(TypedDict):
    """Learning rates of `Optimiser`, and how many steps they rise."""

    rate: float
    embedding_rate: float
    warmup: int


def arguments() -> argparse.Namespace:
    """The command line: --steps N (0: as many as recorded), --try (thirty steps and no record), --to FOLDER."""
    parser = argparse.ArgumentParser(description="Trains a lesson's model on real data, and records the run.")
    parser.add_argument(
        "--steps", type=int, default=0, help="how many steps to train (default: as in the recorded run)"
    )
    parser.add_argument("--try", dest="attempt", action="store_true", help="thirty steps, and no record: does it work?")
    parser.add_argument("--note", default="", help="words about the circumstances of the run, for its record")
    parser.add_argument("--to", type=Path, default=FOLDER, help="where to write the record")
    options = parser.parse_args()
    options.steps = 30 if options.attempt else options.steps
    return options


def settings_of(model: nn.Module, **settings: object) -> dict[str, object]:
    """What a record says of a training: the settings, and how many parameters the model has."""
    return {"parameters": sum(p.numel() for p in model.parameters()), **settings}


class ScheduledAdamW:
    """AdamW with one schedule; the gradients are cut at a norm of 1.

    weights: parameters, or groups of them as AdamW takes them. schedule: the share of the rate at (step, steps,
    warmup). options: as AdamW takes them.
    """

    def __init__(
        self,
        weights: Iterable,
        rate: float,
        steps: int,
        warmup: int,
        schedule: Callable[[int, int, int], float] | None = None,
        **options: Any,
    ):
        share = schedule or up_and_down
        self._adam = torch.optim.AdamW(weights, lr=rate, **options)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._adam, lambda step: share(step, steps, warmup))

    def step(self) -> None:
        """One step down the gradients, which are cleared afterwards."""
        nn.utils.clip_grad_norm_([p for group in self._adam.param_groups for p in group["params"]], 1.0)
        self._adam.step()
        self._schedule.step()
        self._adam.zero_grad(set_to_none=True)


class Optimiser:
    """Muon for the matrices of the blocks, AdamW for everything else, and one schedule for both.

    Muon (K. Jordan et al., 2024) replaces the update of a matrix by the nearest matrix whose directions all have the
    same strength. It needs fewer steps than AdamW on models as small as these; its updates are scaled to the size of
    AdamW's (J. Liu et al., "Muon is scalable for LLM training", 2025, section 2.2), so that one learning rate serves
    for both. Norms, biases and embeddings are not decayed.

    schedule: the share of the rate at (step, steps, warmup). at_once: a map, such as a pool of threads has one, that
    steps several parts at the same time; the matrices are then divided between two of them.
    """

    def __init__(
        self,
        model: nn.Module,
        rate: float,
        steps: int,
        warmup: int,
        decay: float = 0.1,
        embedding_rate: float | None = None,
        schedule: Callable[[int, int, int], float] | None = None,
        at_once: Callable[..., Iterable] | None = None,
    ):
        tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
        own = {id(p): (name, p) for name, p in model.named_parameters()}
        inner = [
            p
            for name, p in own.values()
            if p.dim() == 2 and id(p) not in tables and not name.startswith("to_") and not name.endswith((".u", ".v"))
        ]  # u and v of relative attention are biases, one a head
        chosen = {id(p) for p in inner}
        outer = [p for _, p in own.values() if id(p) not in chosen]
        self._at_once, schedule = at_once, schedule or up_and_down
        shares = [inner[::2], inner[1::2]] if at_once else [inner]
        self._parts = [
            *(
                torch.optim.Muon(share, lr=rate, weight_decay=decay, momentum=0.95, adjust_lr_fn="match_rms_adamw")
                for share in shares
            ),
            torch.optim.AdamW(outer, lr=embedding_rate or rate, betas=(0.9, 0.98), weight_decay=0.0),
        ]
        self._schedules = [
            torch.optim.lr_scheduler.LambdaLR(part, lambda step: schedule(step, steps, warmup)) for part in self._parts
        ]
        self._parameters = list(model.parameters())

    def step(self) -> None:
        """One step down the gradients, which are cut at a norm of 1, and cleared afterwards."""
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        list((self._at_once or map)(lambda part: part.step(), self._parts))
        for part, schedule in zip(self._parts, self._schedules, strict=True):
            schedule.step()
            part.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, list[dict]]:
        """All that a continued training needs."""
        return {"parts": [p.state_dict() for p in self._parts], "schedules": [s.state_dict() for s in self._schedules]}

    def load_state_dict(self, state: dict[str, list[dict]]) -> None:
        """Go on from where `state_dict` was taken."""
        for part, its in zip(self._parts, state["parts"], strict=True):
            part.load_state_dict(its)
        for schedule, its in zip(self._schedules, state["schedules"], strict=True):
            schedule.load_state_dict(its)


def next_token_loss(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the model's logits, (), in nats. inputs, targets: (b, t), ids, brought to the device."""
    with precision():
        logits = model(inputs.to(device()))
    return F.cross_entropy(logits.float().flatten(0, 1), targets.to(device()).flatten())


@torch.no_grad()
def initialise(model: Model, std: float = 0.02) -> Model:
    """Small normal numbers for every matrix, zeros for every bias, as GPT-2 begins (Radford et al., 2019, section 2.3).

    What is added to a shortcut is scaled by one over the root of how many such additions there are.
    """
    additions = [name for name, p in model.named_parameters() if name.endswith(("unify.weight", "narrow.weight"))]
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            parameter.normal_(0, std)
        if name in additions:
            parameter.mul_(len(additions) ** -0.5)
        if name.endswith("bias"):
            parameter.zero_()
    return model


def up_and_down(step: int, steps: int, warmup: int) -> float:
    """The share of the full learning rate at a step: up in a line for `warmup` steps, then down half a cosine to 0."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup))))


def precision() -> contextlib.AbstractContextManager:
    """bfloat16 for matrix products where this machine is found to multiply faster in it; else float32 throughout."""
    where = device().type
    return torch.autocast(where, torch.bfloat16, enabled=_bfloat16_is_faster(where))


_tried: dict[str, bool] = {}


def _bfloat16_is_faster(where: str) -> bool:
    if where not in _tried:
        _tried[where] = where != "mps" and _seconds(where, torch.bfloat16) < 0.8 * _seconds(where, torch.float32)
    return _tried[where]


def _seconds(where: str, dtype: torch.dtype) -> float:
    """The shortest of a few large products."""
    a = torch.ones(1024, 1024, dtype=dtype, device=where)
    return min(timeit.repeat(lambda: (a @ a).sum().item(), repeat=6, number=1))


class Record:
    """Keeps the time and the curve of a training, and writes them down.

    name: of the file. data: what was learned from, with its checksum. settings: whatever one needs to know to repeat
    it. module: of helpers.training, whose command repeats it, where it has another name than the file.
    """

    def __init__(self, name: str, data: dict, settings: dict, module: str = ""):
        self.name, self.data, self.settings, self.module = name, data, settings, module or name
        self.curve: list[dict] = []
        precision()  # it is tried which is faster, and that takes none of the time
        self._start, self._used = time.perf_counter(), time.process_time()
        self._apart = 0.0, 0.0

    def clock(self) -> tuple[float, float]:
        """(seconds, processor seconds of all cores together) so far, without what `aside` took."""
        return time.perf_counter() - self._start - self._apart[0], time.process_time() - self._used - self._apart[1]

    def resume(self, curve: list[dict], seconds: float, processor: float) -> None:
        """Go on with the record of a training that was stopped: its curve and clock as they were."""
        self.curve = list(curve)
        now = self.clock()
        self._apart = self._apart[0] + now[0] - seconds, self._apart[1] + now[1] - processor

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """What happens in here is not training: looks at the held-out part."""
        before = time.perf_counter(), time.process_time()
        yield
        self._apart = self._apart[0] + time.perf_counter() - before[0], self._apart[1] + time.process_time() - before[1]

    def look(self, **figures: float) -> None:
        """One more point of the curve, printed too."""
        seconds, processor = self.clock()
        self.curve.append({**{k: round(v, 5) for k, v in figures.items()}, "seconds": round(seconds, 1)})
        line = "  ".join(f"{k} {v:.4g}" for k, v in figures.items())
        print(f"{seconds:7.0f} s  ({processor:.0f} s of processor time)  {line}", flush=True)

    def stop(self) -> None:
        """The training is over; what follows is not counted."""
        self._clock = self.clock()

    def finish(self, options: argparse.Namespace, result: dict, samples: Sequence[dict] = ()) -> None:
        """Print the result, with the command line's note; write the record, unless the training was only tried."""
        result = ({"note": options.note} if options.note else {}) | result
        print(result)
        if not options.attempt:
            self.write(options.to, result, list(samples))

    def write(self, folder: Path, result: dict, samples: list) -> Path:
        """Write NAME.json, in the form that `helpers.data.recorded` reads, and say so. Call `stop` before."""
        seconds, processor = self._clock
        record = {
            "command": f"python -m helpers.training.{self.module}",
            "data": self.data,
            "machine": machine(),
            "seconds": round(seconds, 1),
            "processor_seconds": round(processor, 1),
            "settings": self.settings,
            "curve": self.curve,
            "result": result,
            "samples": samples,
        }
        path = Path(folder) / f"{self.name}.json"
        write_whole(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        print(f"Recorded in {path.name}.")
        return path


def machine() -> str:
    """What computed, in a few words: no name that belongs to one machine alone."""
    if device().type == "cuda":
        return torch.cuda.get_device_name()
    count = cores()
    return f"{_processor()}, {count} core{'s' if count > 1 else ''}, PyTorch {torch.__version__.split('+')[0]}"


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
