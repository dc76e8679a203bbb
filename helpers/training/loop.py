"""The loop that all long trainings go through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import torch
from tqdm.auto import tqdm

from helpers.threads import with_best_threads
from helpers.training.common import Optimiser, Record, ScheduledAdamW

Batch = TypeVar("Batch")


def train(
    batches: Iterable[Batch],
    loss_of: Callable[[Batch], torch.Tensor],
    optimiser: Optimiser | ScheduledAdamW,
    record: Record,
    *,
    steps: int,
    every: int,
    look: Callable[[float], dict[str, float]],
    memory: float = 0.95,
) -> dict[str, float]:
    """Train for `steps` batches, a point on the record's curve every `every` steps and at the end; stop its clock.

    batches: at least `steps` of them; no more are drawn. loss_of: the loss of one batch, (), with gradients.
    look: the figures of a point, given the running mean of the losses, which keeps `memory` of itself at each step;
    what it takes counts as no training. Returns the figures of the last point. ValueError where batches run out.
    """
    running, figures, done = None, {}, 0
    for batch in tqdm(with_best_threads(islice(batches, steps)), total=steps, desc="training", mininterval=10):
        loss = loss_of(batch)
        loss.backward()
        optimiser.step()
        running = loss.item() if running is None else memory * running + (1 - memory) * loss.item()
        done += 1
        if done % every == 0 or done == steps:
            with record.aside():
                figures = look(running)
            record.look(step=done, **figures)
    if done < steps:
        raise ValueError(f"there were batches for {done} steps, and {steps} were to be made")
    record.stop()
    return figures


def again_and_again(epoch: Callable[[], Iterable[Batch]]) -> Iterator[Batch]:
    """The batches of one epoch after another, without an end."""
    while True:
        yield from epoch()
