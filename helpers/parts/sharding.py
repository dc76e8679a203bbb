"""One small GPT whose training step is made smaller, and then divided among processes (lesson 17).

S. Rajbhandari et al., "ZeRO" (2020), section 5.1, for the optimiser whose state is divided among workers.

b batch, t positions, e width of the model, n size of the vocabulary, N number of parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import nn

from .big import Ledger, accumulated_gradients, checkpointed
from .generator import CharTransformer
from .masks import causal_mask


class SmallGPT(CharTransformer):
    """Lesson 9's model, whose forward pass has two switches.

    autocast: multiply in bfloat16. run_block: how a block is run, (block, x) -> x; lesson 17 puts
    `checkpointed` here.
    """

    def __init__(self, n: int, e: int, h: int, depth: int, t_max: int):
        super().__init__(n, e, h, depth, t_max)
        self.autocast = False
        self.run_block: Callable[[nn.Module, torch.Tensor], torch.Tensor] = run_plainly

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64, t ≤ t_max. Returns logits (b, t, n) in float32."""
        mask = causal_mask(ids.shape[1], ids.device)
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=self.autocast):
            x = self.positions(self.tokens(ids))
            for block in self.transformer.blocks:
                x = self.run_block(_Masked(block, mask), x)
            logits = self.to_logits(self.transformer.norm(x))
        return logits.float()


def run_plainly(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """block(x), (b, t, e)."""
    return block(x)


class _Masked(nn.Module):
    """A block and its mask (t, t), as a module of x (b, t, e) alone."""

    def __init__(self, block: nn.Module, mask: torch.Tensor):
        super().__init__()
        self.block, self.mask = block, mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x, self.mask)


def state_bytes(parameters: Iterable[nn.Parameter], optimiser: torch.optim.Optimizer) -> tuple[int, ...]:
    """Bytes of the parameters, of their gradients, and of the tensors (...) that the optimiser keeps."""
    parameters = list(parameters)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    kept = [value for state in optimiser.state.values() for value in state.values() if value.dim()]
    return tuple(sum(tensor.nbytes for tensor in tensors) for tensors in (parameters, gradients, kept))


def flattened(model: nn.Module, multiple: int) -> torch.Tensor:
    """All parameters in one vector (k,), of which they become views; k is the next multiple of `multiple` from N up."""
    parameters = list(model.parameters())
    total = sum(parameter.numel() for parameter in parameters)
    flat = torch.zeros(-(-total // multiple) * multiple)
    place = 0
    for parameter in parameters:
        part = flat[place : place + parameter.numel()].view_as(parameter)
        part.copy_(parameter.detach())
        parameter.data = part
        place += parameter.numel()
    return flat


def sharded_step(
    optimiser: torch.optim.Optimizer, mine: nn.Parameter, flat: torch.Tensor, gradient: torch.Tensor
) -> None:
    """A step of all parameters, flat (k,), by workers that each keep the optimiser's state of one share.

    mine: this worker's share (k / workers,), a view of flat, the only parameter of its optimiser.
    gradient: (k,), already averaged over the workers.
    """
    share = len(mine)
    start = dist.get_rank() * share
    mine.grad = gradient[start : start + share]
    optimiser.step()  # this share of the parameters
    dist.all_gather(list(flat.split(share)), mine.detach().clone())  # and all the others


def worker_steps(
    rank: int,
    workers: int,
    sizes: dict,
    weights: dict,
    ids: torch.Tensor,
    targets: torch.Tensor,
    sharded: bool,
    steps: int = 3,
) -> dict:
    """Training steps of one of several workers, for `workers.in_processes`: bfloat16, a row at a time, checkpointed.

    sizes, weights: of a SmallGPT. ids, targets: (b, t), divided evenly among the workers. sharded: each worker keeps
    its share of AdamW's state; otherwise each keeps all of it. Returns "parameters" (k,) afterwards, "seconds" of the
    fastest step, "activations", the bytes that autograd kept at the peak, and "state", three numbers of bytes.
    """
    model = SmallGPT(**sizes)
    model.load_state_dict(weights)
    model.autocast, model.run_block = True, checkpointed
    flat = flattened(model, workers)
    mine = nn.Parameter(flat.chunk(workers)[rank] if sharded else flat)
    optimiser = torch.optim.AdamW([mine])
    ids, targets = ids.chunk(workers)[rank], targets.chunk(workers)[rank]

    def step() -> None:
        accumulated_gradients(model, ids, targets, parts=len(ids), pad=-1)
        gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
        gradient = torch.cat([*gradients, flat.new_zeros(len(flat) - sum(map(len, gradients)))])
        dist.all_reduce(gradient)  # the sum over all workers, in all of them
        gradient /= workers
        if sharded:
            sharded_step(optimiser, mine, flat, gradient)
        else:
            mine.grad = gradient
            optimiser.step()

    with Ledger([flat]) as kept:
        step()
    seconds = min(_timed(step) for _ in range(steps - 1))
    state = state_bytes(model.parameters(), optimiser)
    return {"parameters": flat, "seconds": seconds, "activations": kept.peak, "state": list(state)}


def _timed(step: Callable[[], None]) -> float:
    """Processor seconds of a step in this worker."""
    before = time.process_time()
    step()
    return time.process_time() - before
