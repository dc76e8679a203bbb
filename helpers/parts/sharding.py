"""One small GPT whose training step is made smaller, and then divided among processes (lesson 17).

S. Rajbhandari et al., "ZeRO" (2020), section 5, for the optimiser whose state is divided among workers.

b batch, t positions, e width of the model, n size of the vocabulary, N number of parameters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch import nn

from .big import Ledger, accumulated_gradients, checkpointed
from .blocks import SelfAttention
from .cache import LayerCache
from .generator import CharTransformer
from .masks import causal_mask
from .multi_head import merge_heads, split_heads


class SmallGPT(CharTransformer):
    """Lesson 9's model, whose forward pass has three switches.

    autocast: multiply in bfloat16. run_block: how a block is run, (block, x) -> x; lesson 17 puts
    `checkpointed` here. `use_attention` says how attention is computed.
    """

    def __init__(self, n: int, e: int, h: int, depth: int, t_max: int):
        super().__init__(n, e, h, depth, t_max)
        for block in self.transformer.blocks:
            block.attention = _SwitchedAttention(e, h)
        self.autocast = False
        self.run_block: Callable[[nn.Module, torch.Tensor], torch.Tensor] = run_plainly

    def use_attention(self, attend: Callable | None) -> None:
        """Compute attention by attend(q, k, v), causal, (b, h, t, d) each; None: by PyTorch's function."""
        for block in self.transformer.blocks:
            block.attention.attend = attend

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64, t ≤ t_max. Returns logits (b, t, n) in float32."""
        mask = causal_mask(ids.shape[1], ids.device)
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=self.autocast):
            x = self.positions(self.tokens(ids))
            for block in self.transformer.blocks:
                x = self.run_block(_Masked(block, mask), x)
            logits = self.to_logits(self.transformer.norm(x))
        return logits.float()


class _SwitchedAttention(SelfAttention):
    """Lesson 7's attention, of which the part between the projections can be exchanged."""

    attend: Callable | None = None

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None, past: LayerCache | None = None
    ) -> torch.Tensor:
        """x: (b, t, e). mask: as SelfAttention takes it; `attend` knows its own. Returns (b, t, e)."""
        if self.attend is None:
            return super().forward(x, mask, past)
        q, k, v = (split_heads(to(x), self.h) for to in (self.to_queries, self.to_keys, self.to_values))
        return self.unify(merge_heads(self.attend(q, k, v)))


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


class Group:
    """One worker's connection to the others: its `rank`, their number `size`, and three exchanges.

    In each exchange every worker gives a tensor, and each gets its result. No gradient passes through.
    """

    rank: int
    size: int

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over all workers, of the shape of x (...)."""
        raise NotImplementedError

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        """This worker's share of the sum over all workers. x: (k,), of which each gets (k / size,)."""
        raise NotImplementedError

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """The tensors of all workers, one after another. x: (k / size,). Returns (k,)."""
        raise NotImplementedError


class Processes(Group):
    """Workers that are processes, connected by torch.distributed."""

    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over all processes, (...)."""
        x = x.detach().clone()
        dist.all_reduce(x)
        return x

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        """The share (k / size,) of the sum."""
        mine = x.new_empty(len(x) // self.size)
        dist.reduce_scatter(mine, [part.contiguous() for part in x.detach().chunk(self.size)])
        return mine

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """All shares, (k,)."""
        shares = [torch.empty_like(x.detach()) for _ in range(self.size)]
        dist.all_gather(shares, x.detach().contiguous())
        return torch.cat(shares)


class Threads(Group):
    """Workers that are threads of one program: what they exchange lies on a table that all of them see."""

    def __init__(self, rank: int, table: list, barrier: threading.Barrier):
        self.rank, self.size = rank, len(table)
        self._table, self._barrier = table, barrier

    def _exchanged(self, x: torch.Tensor) -> list[torch.Tensor]:
        """What all of them give."""
        self._table[self.rank] = x.detach()
        self._barrier.wait()
        found = [one.clone() for one in self._table]
        self._barrier.wait()
        return found

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over all threads, (...)."""
        return torch.stack(self._exchanged(x)).sum(0)

    def reduce_scatter(self, x: torch.Tensor) -> torch.Tensor:
        """The share (k / size,) of the sum."""
        return torch.stack(self._exchanged(x)).sum(0).chunk(self.size)[self.rank].clone()

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """All shares, (k,)."""
        return torch.cat(self._exchanged(x))


def in_threads(function: Callable, workers: int) -> list:
    """function(group) in so many threads at once; returns what each returned, by rank. The first error is raised."""
    table: list = [None] * workers
    barrier = threading.Barrier(workers)

    def work(rank: int) -> object:
        try:
            return function(Threads(rank, table, barrier))
        except Exception:
            barrier.abort()  # the others would wait for ever
            raise

    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(work, rank) for rank in range(workers)]
    errors = [error for one in running if (error := one.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    return [one.result() for one in running]


def sharded_step(
    group: Group, optimiser: torch.optim.Optimizer, mine: nn.Parameter, gradient: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """One worker's part of a step in which each worker has the optimiser's state of one share of the parameters.

    mine: this worker's share (k / size,), the only parameter of its optimiser. gradient: (k,), of the mean loss over
    the worker's own tokens. tokens: how many, (). Returns all parameters (k,).
    """
    total = group.all_reduce(tokens)
    mine.grad = group.reduce_scatter(tokens * gradient) / total
    optimiser.step()  # this share of the parameters
    return group.all_gather(mine)  # and all the others


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
    group, flat = Processes(), flattened(model, workers)
    mine = nn.Parameter(flat.chunk(workers)[rank].clone() if sharded else flat)
    optimiser = torch.optim.AdamW([mine])
    ids, targets = ids.chunk(workers)[rank], targets.chunk(workers)[rank]

    def step() -> None:
        accumulated_gradients(model, ids, targets, parts=len(ids), pad=-1)
        gradient = flat_gradient(model, len(flat))
        if sharded:
            model.zero_grad()  # of the gradient, too, each keeps one share
            flat.copy_(sharded_step(group, optimiser, mine, gradient, torch.tensor(targets.numel())))
        else:
            mine.grad = group.all_reduce(gradient) / workers  # as many tokens in each worker
            optimiser.step()

    with Ledger([flat]) as kept:
        step()
    seconds = min(_timed(step) for _ in range(steps - 1))
    gradients = sum(x.grad.nbytes for x in (mine, *model.parameters()) if x.grad is not None and (sharded or x is mine))
    state = [flat.nbytes, gradients, state_bytes([mine], optimiser)[2]]
    return {"parameters": flat, "seconds": seconds, "activations": kept.peak, "state": state}


def flat_gradient(model: nn.Module, length: int) -> torch.Tensor:
    """The gradients of all parameters in one vector (length,), zeros at its end, in the order of `flattened`."""
    gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return torch.cat([*gradients, gradients[0].new_zeros(length - sum(map(len, gradients)))])


def _timed(step: Callable[[], None]) -> float:
    """Processor seconds of a step in this worker."""
    before = time.process_time()
    step()
    return time.process_time() - before
