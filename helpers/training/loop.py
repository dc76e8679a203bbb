"""What all long trainings go through: an experiment is declared, then trained, measured and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import nn
from tqdm.auto import tqdm

from helpers.threads import with_best_threads
from helpers.training.common import Optimiser, Record, ScheduledAdamW, arguments, settings_of

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


@dataclass
class Experiment:
    """A model to train on real data, and what is measured of it."""

    name: str  # of the record, and of the module that declares the experiment
    data: dict  # what the record says of the data
    model: nn.Module
    settings: dict[str, object]  # what one needs to know to repeat it, beside the steps and the number of parameters
    steps: int  # of the recorded run
    every: int  # steps between two looks at the held-out part; a shorter run takes as many looks
    epoch: Callable[[], Iterable]  # the batches of one epoch
    loss_of: Callable[[Any], torch.Tensor]  # the loss of a batch, (), with gradients
    optimiser: Callable[[int], Optimiser | ScheduledAdamW]  # for so many steps
    look: Callable[[float], dict[str, float]]  # the figures of a look, given the running mean of the losses
    measured: Callable[[bool], tuple[dict, list[dict]]]  # result and samples; given False, only what is quickly had
    memory: float = 0.95  # what the running mean keeps of itself at each step


def run(declare: Callable[[], Experiment]) -> None:
    """Train, measure and record an experiment as the command line says. It is declared from seed 0."""
    options = arguments()
    torch.manual_seed(0)
    experiment = declare()
    steps = options.steps or experiment.steps
    settings = settings_of(experiment.model, steps=steps, **experiment.settings)
    record = Record(experiment.name, experiment.data, settings)
    train(
        again_and_again(experiment.epoch),
        experiment.loss_of,
        experiment.optimiser(steps),
        record,
        steps=steps,
        every=max(1, experiment.every * steps // experiment.steps),
        look=experiment.look,
        memory=experiment.memory,
    )
    record.finish(options, *experiment.measured(not options.attempt))
