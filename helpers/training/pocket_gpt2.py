"""The pocket GPT-2 of lesson 12: python -m helpers.training.pocket_gpt2

Learns a byte-pair vocabulary and a small GPT-2 from the source of Python's own standard library, and writes them to
helpers/data/pocket_gpt2 in the Hub's format. Modules are held out by their names (`helpers.data.sources`). About an
hour on two cores. A training that is stopped goes on from its last checkpoint when the command is given again. With
--to FOLDER the record and the model (FOLDER/pocket_gpt2) go there instead, and the checkpoint too.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize
from tqdm.auto import tqdm

from helpers.course import write_whole, written_whole
from helpers.data.model_files import POCKET
from helpers.data.recorded import FOLDER
from helpers.data.sources import EVERY, checksum, is_held_out, python_version, stdlib_sources
from helpers.device import device
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.generator import bits_per_byte, sample_batch
from helpers.training.common import Optimiser, Record, arguments, precision, settings_of
from helpers.training.pocket_gpt2_figures import TEMPERATURE, TOP_P, figures, samples_of

VOCABULARY = 2048
MODEL = {"t_max": 256, "e": 192, "h": 6, "depth": 4}
BATCH, STEPS, WARMUP = 16, 3600, 100
# (step, share of the full rate) and (step, share of the windows that hold an echo), with lines between. (The recorded
# run was planned longer, and its rate's line bent after 1,600 steps, when the heads were there.)
RATE_LINE = ((0, 1.0), (1600, 0.795), (3600, 0.0))
ECHO_LINE = ((0, 0.5), (3600, 0.0846))
RATE, EMBEDDING_RATE, DECAY = 1e-2, 5e-3, 0.05
POSITIONS = 0.1  # how large the sinusoids are that the table of positions starts as
UNPREDICTABLE = -100  # no target: the loss passes it over
LOOKS, KEEP_EVERY = 40, 200
SAMPLES = 200

Line = tuple[tuple[int, float], ...]

##### What is learned from


def learned_and_held_out(sources: dict[str, str]) -> tuple[list[str], list[str]]:
    """The modules to learn from, and those that are held out."""
    return (
        [text for name, text in sources.items() if not is_held_out(name)],
        [text for name, text in sources.items() if is_held_out(name)],
    )


def as_ids(modules: list[str], tokenizer: Tokenizer) -> torch.Tensor:
    """All modules in a row, an end-of-text token before each and after the last: (length,), int64."""
    ids = [place for text in modules for place in (tokenizer.end_of_text, *tokenizer.encode(text))]
    return torch.tensor([*ids, tokenizer.end_of_text])


def along(line: Line, step: int, steps: int) -> float:
    """Where a line through some points, (step of STEPS, value), stands at a step of `steps`."""
    at = step * STEPS / steps
    k = max(k for k, (place, _) in enumerate(line[:-1]) if place <= at)
    (start, first), (end, last) = line[k : k + 2]
    return first + (last - first) * (min(at, end) - start) / (end - start)


def echo_share(step: int, steps: int) -> float:
    """The share of windows that hold an echo at a step."""
    return along(ECHO_LINE, step, steps)


def rate_share(step: int, steps: int, warmup: int) -> float:
    """The share of the full learning rate at a step: up for `warmup` steps, and down to 0 along RATE_LINE."""
    return min((step + 1) / warmup, 1.0) * along(RATE_LINE, step, steps)


def windows(train: torch.Tensor, n: int, step: int, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The batch of a step: inputs and targets, (BATCH, t_max). The same for the same step, whatever came before it."""
    generator = torch.Generator().manual_seed(step)
    inputs, targets = sample_batch(train, BATCH, MODEL["t_max"], generator)
    rows = torch.cat([inputs, targets[:, -1:]], dim=1)  # (BATCH, t_max + 1)
    known = torch.ones_like(rows, dtype=torch.bool)
    for row in (torch.rand(BATCH, generator=generator) < echo_share(step, steps)).nonzero()[:, 0].tolist():
        rows[row], known[row] = with_echo(rows[row], n, generator)
    return rows[:, :-1], rows[:, 1:].masked_fill(~known[:, 1:], UNPREDICTABLE)


def with_echo(row: torch.Tensor, n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A window in which something comes again, and which of its tokens can be predicted, both (length,).

    One of three: the row's own text, a stretch of which comes again later; random tokens, again and again; random
    stretches, each said twice. Lengths and distances vary, so that no head can go by the distance alone. What is random
    can be predicted only where it comes again.
    """
    length, kind = len(row), _between(0, 3, generator)
    if kind < 2:
        width = _between(16, 112, generator)
        start = _between(0, length - 2 * width, generator)
        place = _between(start + width, length - width, generator)
        said = row.clone()
        said[place : place + width] = row[start : start + width]
        return said, torch.ones(length, dtype=torch.bool)
    if kind == 2:
        width = _between(8, 120, generator)
        stretch = torch.randint(n - 1, (width,), generator=generator)
        return stretch.repeat(length // width + 1)[:length], torch.arange(length) >= width
    parts: list[torch.Tensor] = []
    known: list[torch.Tensor] = []
    while sum(len(part) for part in parts) < length:
        stretch = torch.randint(n - 1, (_between(4, 64, generator),), generator=generator)
        parts += [stretch, stretch]
        known += [torch.zeros(len(stretch), dtype=torch.bool), torch.ones(len(stretch), dtype=torch.bool)]
    return torch.cat(parts)[:length], torch.cat(known)[:length]


def _between(low, high, generator):
    """A whole number from low to high, both included."""
    return int(torch.randint(low, high + 1, (), generator=generator))


##### What learns


class SideBySide(nn.Module):
    """Three matrices that are trained apart, and used as one.

    Muon gives every direction of a matrix the same strength. In one matrix of 3e columns the values' gradients, the
    largest by far at the beginning, would take the e directions there are, and leave queries and keys next to none.
    """

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.cat([q, k, v], dim=1)

    def right_inverse(self, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One matrix as the three that it is made of."""
        return tuple(part.contiguous() for part in weight.chunk(3, dim=1))


def sinusoids(t: int, e: int) -> torch.Tensor:
    """Sines and cosines of the position, with e/2 wavelengths from 2π to 4πt: (t, e).

    A matrix can turn them into those of the position before (lesson 6): heads that look at the previous token come
    early when the table of positions starts in this way. It is learned like any other, as GPT-2's is.
    """
    angles = torch.arange(t)[:, None] * torch.exp(-math.log(2 * t) * torch.arange(e // 2) / (e // 2))
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def blocks_of(model: gpt2.GPT2) -> list[gpt2.GPT2Block]:
    """The blocks of a model, the first one first."""
    return cast("list[gpt2.GPT2Block]", list(model.blocks))


def fresh_model(config: gpt2.Config) -> gpt2.GPT2:
    """A model to train, its matrices √(768/e) times as wide as N(0, 0.02), its positions as small sinusoids.

    Products are then as large as in the smallest published model.
    """
    model = gpt2.GPT2(config)
    with torch.no_grad():
        model.positions.weight.copy_(POSITIONS * sinusoids(config.t_max, config.e))
        for block in blocks_of(model):
            attention, network = block.attention, block.feed_forward
            for layer in (attention.to_qkv, attention.unify, network.widen, network.narrow):
                layer.weight *= math.sqrt(768 / config.e)
            parametrize.register_parametrization(block.attention.to_qkv, "weight", SideBySide())
    return model


def finished(model: gpt2.GPT2) -> gpt2.GPT2:
    """Queries, keys and values in one matrix again, and every number rounded to float16, as it is kept."""
    for block in blocks_of(model):
        parametrize.remove_parametrizations(block.attention.to_qkv, "weight")
    return model.to("cpu").half().float().eval()


def gradients(model: gpt2.GPT2, inputs: torch.Tensor, targets: torch.Tensor, pool: ThreadPoolExecutor) -> torch.Tensor:
    """Put the gradients of the mean loss over a batch into the model's parameters. Returns the loss, ().

    Each half of the batch has a thread of its own, which waits for the other once a step. (The threads that PyTorch
    divides a product among wait for one another at every product.)
    """
    parameters, count = list(model.parameters()), (targets != UNPREDICTABLE).sum()

    def half(part: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        with precision():
            logits = model(part[0].to(device()))
        wanted = part[1].to(device()).flatten()
        loss = F.cross_entropy(logits.float().flatten(0, 1), wanted, ignore_index=UNPREDICTABLE, reduction="sum")
        loss = loss / count
        return loss.detach(), torch.autograd.grad(loss, parameters)

    halves = list(pool.map(half, zip(inputs.chunk(2), targets.chunk(2), strict=True)))
    for parameter, *parts in zip(parameters, *(found for _, found in halves), strict=True):
        parameter.grad = sum(parts[1:], parts[0])
    return torch.stack([loss for loss, _ in halves]).sum()


class TrainingCheckpoint:
    """Where a training stands, in a file: weights, optimiser, record. about: what it must agree with to go on."""

    def __init__(self, path: Path, about: dict):
        self.path, self.about = path, about

    def write(self, step: int, running: float, model: nn.Module, optimiser: Optimiser, record: Record) -> None:
        """Keep it."""
        state = {
            "about": json.dumps(self.about),
            "step": step,
            "running": running,
            "model": model.state_dict(),
            "optimiser": optimiser.state_dict(),
            "curve": record.curve,
            "clock": record.clock(),
        }
        with written_whole(self.path) as unfinished:
            torch.save(state, unfinished)

    def read(self, model: nn.Module, optimiser: Optimiser, record: Record) -> tuple[int, float | None]:
        """Go on from it: (step, running loss), or (0, None) where there is none. ValueError where it is another's."""
        if not self.path.is_file():
            return 0, None
        state = torch.load(self.path, weights_only=True)
        if state["about"] != json.dumps(self.about):
            raise ValueError(
                f"{self.path} belongs to a training with other data or settings. Move it away, or delete it."
            )
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        record.resume(state["curve"], *state["clock"])
        print(f"Going on after step {state['step']:,}, from {self.path}.")
        return state["step"], state["running"]


@contextlib.contextmanager
def two_threads() -> Iterator[ThreadPoolExecutor]:
    """Two threads that compute with one thread each, as PyTorch does in this block."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)


def train(
    model: gpt2.GPT2,
    batch_of: Callable[[int], tuple[torch.Tensor, torch.Tensor]],
    steps: int,
    record: Record,
    checkpoint: TrainingCheckpoint,
    look: Callable[[], dict[str, float]],
    decay: float = DECAY,
) -> None:
    """Train, from the last checkpoint on where there is one."""
    every = max(1, steps // LOOKS)
    with two_threads() as pool:
        optimiser = Optimiser(model, RATE, steps, WARMUP, decay, EMBEDDING_RATE, schedule=rate_share, at_once=pool.map)
        done, running = checkpoint.read(model, optimiser, record)
        for step in tqdm(range(done, steps), total=steps, initial=done, desc="training", mininterval=10):
            loss = gradients(model, *batch_of(step), pool).item()
            optimiser.step()
            running = loss if running is None else 0.95 * running + 0.05 * loss
            if (step + 1) % every == 0 or step + 1 == steps:
                with record.aside():
                    model.eval()
                    figures = look()
                    model.train()
                tokens = (step + 1) * BATCH * MODEL["t_max"]
                record.look(step=step + 1, tokens=tokens, training_nats=running, **figures)
            if (step + 1) % KEEP_EVERY == 0 or step + 1 == steps:
                checkpoint.write(step + 1, running, model, optimiser, record)
    record.stop()


@torch.no_grad()
def look(model: gpt2.GPT2, held_out: torch.Tensor, per_byte: float, count: int = 64) -> dict[str, float]:
    """Figures on the way: held-out bits per byte on a sample of windows, and the strongest heads of two kinds."""
    t, n = model.config.t_max, model.config.n
    starts = torch.linspace(0, len(held_out) - t - 1, count).long()
    rows = held_out[starts[:, None] + torch.arange(t + 1)].to(device())
    with precision():
        logits = model(rows[:, :-1])[:, t // 2 :]
    nats = F.cross_entropy(logits.float().flatten(0, 1), rows[:, t // 2 + 1 :].flatten()).item()
    once = torch.randint(n - 1, (8, 64), generator=torch.Generator().manual_seed(3)).to(device())
    previous = model.attention_weights(rows[:8, :-1]).diagonal(-1, -2, -1).mean(dim=(1, -1))
    repeated = model.attention_weights(torch.cat([once, once], dim=1)).diagonal(-63, -2, -1)[..., 1:].mean(dim=(1, -1))
    return {
        "held_out_bits": bits_per_byte(nats * per_byte),
        "previous_token": previous.max().item(),
        "induction": repeated.max().item(),
    }


##### The run


def recipe(steps: int, decay: float = DECAY) -> dict:
    """What a record says of the training's settings."""
    return {
        "batch": BATCH,
        "steps": steps,
        "tokens": steps * BATCH * MODEL["t_max"],
        "rate": RATE,
        "embedding_rate": EMBEDDING_RATE,
        "warmup": WARMUP,
        "decay": decay,
        "optimiser": "Muon, AdamW for embeddings, biases and norms",
        "schedule": f"lines through {RATE_LINE} (step, share of the rate), {WARMUP} steps of warm-up",
        "positions": f"a learned table, which starts as sinusoids times {POSITIONS}",
        "echoes": "some windows have a stretch that comes again (of the text itself, or of random tokens); lines"
        f" through {ECHO_LINE} (step, share of the windows)",
        "threads": "two, each with half of a batch",
    }


def write(
    model: gpt2.GPT2, tokenizer: Tokenizer, folder: Path, temperature: float = TEMPERATURE, top_p: float = TOP_P
) -> None:
    """The folder as the Hub would have it, weights in float16, and how to draw from the model."""
    tokenizer.save(folder)
    gpt2.save(copy.deepcopy(model).half(), folder)
    end = tokenizer.end_of_text
    settings = {"bos_token_id": end, "eos_token_id": end, "do_sample": True, "temperature": temperature, "top_p": top_p}
    write_whole(folder / "generation_config.json", json.dumps(settings, indent=2) + "\n")
    print(f"Wrote {', '.join(sorted(path.name for path in folder.iterdir()))} to {folder.name}.")


def about(sources: dict[str, str], train_ids: torch.Tensor, held_ids: torch.Tensor, held_texts: list[str]) -> dict:
    """What a record says of its text."""
    return {
        "name": f"the standard library of {python_version()}",
        "sha256": checksum(sources),
        "modules": len(sources),
        "bytes": sum(len(text.encode()) for text in sources.values()),
        "training_tokens": len(train_ids),
        "held_out_modules": len(held_texts),
        "held_out_tokens": len(held_ids),
        "held_out_bytes": len("".join(held_texts).encode()),
    }


def checkpoint_for(record: Record, folder: Path) -> TrainingCheckpoint:
    """Where the training of a record is kept: beside it, or in the system's folder for a record of the course."""
    where = Path(tempfile.gettempdir()) if folder == FOLDER else folder
    where.mkdir(parents=True, exist_ok=True)
    return TrainingCheckpoint(where / f"{record.name}.checkpoint", {"data": record.data, "settings": record.settings})


def main() -> None:
    """The whole run: data, training, test, samples, record."""
    options = arguments()
    steps = options.steps or STEPS
    torch.manual_seed(0)
    sources = stdlib_sources()
    train_texts, held_texts = learned_and_held_out(sources)
    tokenizer = Tokenizer.learn("".join(train_texts), VOCABULARY)
    train_ids, held_ids = as_ids(train_texts, tokenizer), as_ids(held_texts, tokenizer)
    config = gpt2.Config(n=len(tokenizer), **MODEL)
    model = fresh_model(config).to(device())
    settings = settings_of(model, n=config.n, **MODEL, **recipe(steps))
    record = Record("pocket_gpt2", about(sources, train_ids, held_ids, held_texts), settings)
    checkpoint = checkpoint_for(record, options.to)
    per_byte = (len(held_ids) - 1) / record.data["held_out_bytes"]
    train(
        model,
        lambda step: windows(train_ids, config.n, step, steps),
        steps,
        record,
        checkpoint,
        lambda: look(model, held_ids, per_byte),
    )
    if not options.attempt:
        model = finished(model)
        write(model, tokenizer, POCKET if options.to == FOLDER else options.to / "pocket_gpt2")
        learned = as_ids(train_texts[:: 2 * EVERY], tokenizer)
        result = figures(model, tokenizer, (train_ids, learned, held_ids), (train_texts, held_texts), SAMPLES)
        record.finish(options, result, samples_of(model, tokenizer))
    checkpoint.path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
