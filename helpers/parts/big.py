"""Training that has to fit: memory, accumulation, checkpointing, operations, the best size (lesson 17).

T. Chen et al., "Training deep nets with sublinear memory cost" (2016)
for checkpointing; J. Kaplan et al., "Scaling laws for neural language models" (2020), section 2.1, and A. Chowdhery et
al., "PaLM" (2022), appendix B, for operations.

b batch, t positions, e width of the model, h heads, n size of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

##### Counting bytes


class Ledger:
    """While it is open, what autograd keeps for the backward pass: bytes now, at the peak, and after each change.

    except_for: tensors of any shape (...), whose storage does not count, such as parameters, which are there anyway.
    Views of one storage count once, and a storage counts as a whole as long as one of them is kept.

        with Ledger(model.parameters()) as ledger:
            model(x).sum().backward()
        ledger.peak
    """

    def __init__(self, except_for: Iterable[torch.Tensor] = ()):
        self.bytes, self.peak, self.history = 0, 0, [0]
        self._free = {tensor.untyped_storage().data_ptr() for tensor in except_for}
        self._holders: dict[int, int] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(lambda tensor: _Kept(tensor, self), lambda kept: kept.it)

    def __enter__(self) -> Ledger:
        self._hooks.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hooks.__exit__(kind, problem, trace)

    def _count(self, storage: torch.UntypedStorage, change: int) -> None:
        place = storage.data_ptr()
        if place in self._free:
            return
        before = self._holders.get(place, 0)
        self._holders[place] = before + change
        if before and before + change:
            return
        self.bytes += change * storage.nbytes()
        self.peak = max(self.peak, self.bytes)
        self.history.append(self.bytes)


class _Kept:
    """A tensor that autograd keeps, and the ledger that it stands in until autograd lets go of it."""

    def __init__(self, tensor: torch.Tensor, ledger: Ledger):
        self.it, self._ledger = tensor, ledger
        ledger._count(tensor.untyped_storage(), 1)

    def __del__(self):
        self._ledger._count(self.it.untyped_storage(), -1)


##### Accumulation


def accumulated_gradients(model: nn.Module, ids: torch.Tensor, targets: torch.Tensor, parts: int, pad: int) -> None:
    """Leaves in .grad of the parameters what one batch of all rows would leave, part by part.

    ids, targets: (b, t), cut into `parts` along the rows, or into fewer where there are not so many rows. Targets that
    are `pad` count for nothing. Gradients that were there before are forgotten.
    """
    model.zero_grad()
    tokens = (targets != pad).sum()
    for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts), strict=True):
        logits = model(some_ids)  # (b / parts, t, n)
        nats = F.cross_entropy(logits.flatten(0, 1), some_targets.flatten(), ignore_index=pad, reduction="sum")
        (nats / tokens).backward()


##### Checkpointing


def random_state(device: torch.device | str) -> tuple[torch.Tensor, ...]:
    """Where the random numbers of the CPU and of `device` stand, as tensors of bytes (k,)."""
    return (torch.get_rng_state(), *(state(device) for state in _states_of(device)[:1]))


def set_random_state(device: torch.device | str, state: Sequence[torch.Tensor]) -> None:
    """Let the random numbers of the CPU and of `device` go on from where they stood. state: of `random_state`, (k,)."""
    torch.set_rng_state(state[0])
    for to, its in zip(_states_of(device)[1:], state[1:], strict=True):
        to(its, device)


def _states_of(device: torch.device | str) -> tuple[Callable, ...]:
    kind = torch.device(device).type
    if kind == "cuda":
        return torch.cuda.get_rng_state, torch.cuda.set_rng_state
    if kind == "mps":
        return lambda device: torch.mps.get_rng_state(), lambda state, device: torch.mps.set_rng_state(state)
    return ()


class Checkpoint(torch.autograd.Function):
    """A block of which only the input is kept; the rest is computed again in the backward pass.

    Parameters are handed over one by one, so that they get their gradients whether or not the input needs one.
    """

    @staticmethod
    def forward(context: Any, block: Callable, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """x: (...). Returns what the block makes of it."""
        context.block, context.parameters = block, parameters
        context.state = random_state(x.device)
        context.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(context: Any, slope: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """slope: of the block's output, of its shape (...). Returns a gradient for each thing that came in."""
        (x,) = context.saved_tensors
        x = x.detach().requires_grad_(context.needs_input_grad[1])
        now = random_state(x.device)
        set_random_state(x.device, context.state)
        with torch.enable_grad():
            y = context.block(x)
        set_random_state(x.device, now)
        wanted = [one for one in (x, *context.parameters) if one.requires_grad]
        found = iter(torch.autograd.grad(y, wanted, slope, allow_unused=True))
        return None, *(next(found) if one.requires_grad else None for one in (x, *context.parameters))


def keeping_autocast(block: Callable, device: torch.device | str) -> Callable:
    """The block, to be run later, each time with autocast for `device` as it is now: on or off, and in which type.

    The copies of weights that autocast makes are not shared with other runs: those of a run that autograd does not
    record have no gradient.
    """
    kind = torch.device(device).type
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)

    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(kind, dtype, enabled=enabled, cache_enabled=False):
            return block(x)

    return run


def checkpointed(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """block(x), with the same gradients, keeping x (...) alone until the backward pass.

    The second run draws the same numbers for dropout as the first and has the same autocast. Parameters may be frozen
    or unused. "Training deep nets with sublinear memory cost", section 3.
    """
    return Checkpoint.apply(keeping_autocast(block, x.device), x, *block.parameters())


##### Operations


def flops_per_token(e: int, depth: int, t: int, n: int) -> tuple[int, int]:
    """Multiplications and additions per token in lesson 9's model: forward, and in training, two whole numbers.

    A block has 12·e² entries in its matrices, the output layer n·e: two operations each, "Scaling laws for neural
    language models", section 2.1. Attention takes 4·e·t a block for its two products, for t keys whatever the mask
    hides: "PaLM", appendix B. (The first paper counts half of that.) Looking up an embedding is free.
    """
    entries = 12 * depth * e * e + n * e
    forward = 2 * entries + 4 * depth * e * t
    return forward, 3 * forward


##### Scaling


def best_size(sizes: Sequence[float], losses: Sequence[float]) -> float | None:
    """The size at the minimum of the parabola in ln N that is nearest to the losses of one budget, by least squares.

    sizes, losses: as many of each, in any order; at least three sizes differ. None where the parabola has no minimum
    between the smallest and the largest size. J. Hoffmann et al., "Training compute-optimal large language models"
    (2022), section 3.2.
    """
    x = torch.as_tensor(sizes, dtype=torch.float64).log()
    middle = x.mean()
    powers = torch.stack([torch.ones_like(x), x - middle, (x - middle) ** 2], dim=1)
    y = torch.as_tensor(losses, dtype=torch.float64).unsqueeze(1)
    _, slope, curvature = torch.linalg.lstsq(powers, y).solution.flatten()
    best = middle - slope / (2 * curvature)
    if curvature <= 0 or not x.min() <= best <= x.max():
        return None
    return math.exp(best)
