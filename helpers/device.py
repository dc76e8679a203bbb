"""Where tensors live: one answer for every lesson."""

import contextlib
import functools
import os
from collections.abc import Iterator

import torch

from helpers.course import DEVICE


def device() -> torch.device:
    """The torch.device that the whole course computes on.

    The best one this machine has: cuda, else mps (Apple's), else cpu. The environment variable
    COURSE_DEVICE overrides the choice, for example COURSE_DEVICE=cpu.
    """
    return _choose(os.environ.get(DEVICE, "").strip().lower())


@contextlib.contextmanager
def on_the_cpu() -> Iterator[None]:
    """Within the block the course computes on the CPU, whatever the machine has. Answers are judged there."""
    before = os.environ.get(DEVICE)
    os.environ[DEVICE] = "cpu"
    try:
        yield
    finally:
        os.environ.pop(DEVICE, None)  # what ran meanwhile may have removed it
        if before is not None:
            os.environ[DEVICE] = before


@functools.cache
def _choose(wanted):
    if not wanted:
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if _count(kind)))

    kind, _, index = wanted.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (":" in wanted and not index.isdecimal()):
        raise ValueError(
            f"{DEVICE} is {wanted!r}. Set it to cpu, mps, cuda or cuda:0 (cuda:1, ...), "
            "or leave it unset and the course takes the best device there is."
        )
    if int(index or 0) >= _count(kind):
        raise RuntimeError(
            f"{DEVICE} is {wanted!r}, but PyTorch finds {_count(kind)} {kind} device(s) on this "
            f"machine. Unset it, or set {DEVICE}=cpu."
        )
    return torch.device(wanted)


def _count(kind):
    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    return 1
