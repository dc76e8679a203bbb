"""What workers run in test_workers.py: they import it, as every worker imports what it runs."""

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from helpers.parts.generator import CharTransformer
from helpers.parts.sharding import Processes, flattened, sharded_step, state_bytes


def noted(rank, workers, folder):
    """Writes down its process, then sleeps for far longer than a test takes."""
    path = Path(folder, f"process-{rank}")
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").rename(path)
    time.sleep(600)


def summed(rank, workers, tensor):
    """The sum over all workers of the tensor times rank + 1."""
    mine = tensor * (rank + 1)
    dist.all_reduce(mine)
    return {"sum": mine, "rank": rank}


def failing(rank, workers):
    """Worker 1 fails; worker 0 waits for it."""
    if rank == 1:
        raise ValueError("no such thing")
    dist.barrier()


def with_ddp(rank, workers, sizes, weights, ids, targets):
    """The gradients that DistributedDataParallel leaves, with equal shares of the rows."""
    model = CharTransformer(**sizes)
    model.load_state_dict(weights)
    shared = torch.nn.parallel.DistributedDataParallel(model)
    mine = slice(rank * len(ids) // workers, (rank + 1) * len(ids) // workers)
    torch.nn.functional.cross_entropy(shared(ids[mine]).flatten(0, 1), targets[mine].flatten()).backward()
    return [parameter.grad for parameter in model.parameters()]


def with_half_the_state(rank, workers, weights, means, tokens):
    """Sharded steps of a linear layer: its parameters, and what the optimiser keeps.

    means: (steps, workers, k), gradients of the mean over each worker's own tokens. tokens: (workers,).
    """
    model = nn.Linear(4, 3)
    model.load_state_dict(weights)
    group, flat = Processes(), flattened(model, workers)
    mine = nn.Parameter(flat.chunk(workers)[rank].clone())
    optimiser = torch.optim.AdamW([mine])
    for own in means[:, rank]:
        gradient = torch.nn.functional.pad(own, (0, len(flat) - len(own)))
        flat.copy_(sharded_step(group, optimiser, mine, gradient, tokens[rank]))
    kept = state_bytes([mine], optimiser)[2]
    result = {"weight": model.weight.detach(), "bias": model.bias.detach()}
    return result | {"kept": kept, "process": os.getpid()}
