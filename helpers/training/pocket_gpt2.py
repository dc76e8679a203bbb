"""The pocket GPT-2 of lesson 12: python -m helpers.training.pocket_gpt2

Learns a byte-pair vocabulary and a small GPT-2 from the source of Python's own standard library, and writes them to
helpers/data/pocket_gpt2 in the Hub's format. Modules are held out by their names (`helpers.data.sources`). About an
hour on two cores. A training that is stopped goes on from its last checkpoint when the command is given again. With
--to FOLDER the record and the model (FOLDER/pocket_gpt2) go there instead, and the checkpoint too.
"""

from __future__ import annotations

import ast
import copy
import json
import math
import re
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize
from tqdm.auto import tqdm

from helpers.course import write_whole, written_whole
from helpers.data.datasets import POCKET
from helpers.data.recorded import FOLDER
from helpers.data.sources import EVERY, checksum, is_held_out, python_version, stdlib_sources
from helpers.device import device
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.generator import bits_per_byte, draw, sample_batch
from helpers.training.common import Optimiser, Record, arguments, precision
from helpers.training.enwik8 import landmarks

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
TEMPERATURE, TOP_P, SAMPLES = 0.7, 0.95, 200
PROMPTS = [
    "\n\n\ndef",
    "\n\n\nclass",
    "\n\n\ndef is_",
    "\n    def __init__(self,",
    "\n        for",
    "\nimport",
    "\n        try:",
    "\n\nif __name__ ==",
]

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


def along(line: tuple[tuple[int, float], ...], step: int, steps: int) -> float:
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
    parts, known = [], []
    while sum(map(len, parts)) < length:
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


def fresh_model(config: gpt2.Config) -> gpt2.GPT2:
    """A model to train, its matrices √(768/e) times as wide as N(0, 0.02), its positions as small sinusoids.

    Products are then as large as in the smallest published model.
    """
    model = gpt2.GPT2(config)
    with torch.no_grad():
        model.positions.weight.copy_(POSITIONS * sinusoids(config.t_max, config.e))
        for block in model.blocks:
            for layer in (
                block.attention.to_qkv,
                block.attention.unify,
                block.feed_forward.widen,
                block.feed_forward.narrow,
            ):
                layer.weight *= math.sqrt(768 / config.e)
            parametrize.register_parametrization(block.attention.to_qkv, "weight", SideBySide())
    return model


def finished(model: gpt2.GPT2) -> gpt2.GPT2:
    """Queries, keys and values in one matrix again, and every number rounded to float16, as it is kept."""
    for block in model.blocks:
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
    return sum(loss for loss, _ in halves)


class Checkpoint:
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


def train(
    model: gpt2.GPT2,
    batch_of: Callable[[int], tuple[torch.Tensor, torch.Tensor]],
    steps: int,
    record: Record,
    checkpoint: Checkpoint,
    look: Callable[[], dict[str, float]],
) -> None:
    """Train, from the last checkpoint on where there is one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            _train(model, batch_of, steps, record, checkpoint, look, pool)
    finally:
        torch.set_num_threads(threads)
    record.stop()


def _train(model, batch_of, steps, record, checkpoint, look, pool):
    optimiser = Optimiser(model, RATE, steps, WARMUP, DECAY, EMBEDDING_RATE, schedule=rate_share, at_once=pool.map)
    done, running = checkpoint.read(model, optimiser, record)
    every = max(1, steps // LOOKS)
    for step in tqdm(range(done, steps), total=steps, initial=done, desc="training", mininterval=10):
        loss = gradients(model, *batch_of(step), pool).item()
        optimiser.step()
        running = loss if running is None else 0.95 * running + 0.05 * loss
        if (step + 1) % every == 0 or step + 1 == steps:
            with record.aside():
                figures = look()
            tokens = (step + 1) * BATCH * MODEL["t_max"]
            record.look(step=step + 1, tokens=tokens, training_nats=running, **figures)
        if (step + 1) % KEEP_EVERY == 0 or step + 1 == steps:
            checkpoint.write(step + 1, running, model, optimiser, record)


@torch.no_grad()
def look(model: gpt2.GPT2, held_out: torch.Tensor, per_byte: float, count: int = 64) -> dict[str, float]:
    """Figures on the way: held-out bits a byte on a sample of windows, and the strongest heads of two kinds."""
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


##### What came of it


def write(model: gpt2.GPT2, tokenizer: Tokenizer, folder: Path) -> None:
    """The folder as the Hub would have it, weights in float16."""
    tokenizer.save(folder)
    gpt2.save(copy.deepcopy(model).half(), folder)
    end = tokenizer.end_of_text
    settings = {"bos_token_id": end, "eos_token_id": end, "do_sample": True, "temperature": 0.7, "top_p": 0.95}
    write_whole(folder / "generation_config.json", json.dumps(settings, indent=2) + "\n")
    print(f"Wrote {', '.join(sorted(path.name for path in folder.iterdir()))} to {folder.name}.")


class Pairs:
    """A table of pairs: how likely a token is after another, counted. It goes on with a text as a model does."""

    def __init__(self, ids: torch.Tensor, n: int, believed: float = 8.0):
        """ids: (length,). believed: how many tokens of no particular neighbour are mixed into every row."""
        counts = torch.bincount(ids[:-1] * n + ids[1:], minlength=n * n).view(n, n).double()
        alone = (counts.sum(dim=0) + 1) / (counts.sum() + n)
        self.chances = ((counts + believed * alone) / (counts.sum(dim=1, keepdim=True) + believed)).float()  # (n, n)

    def nats(self, ids: torch.Tensor) -> float:
        """The mean cross-entropy of every token but the first."""
        return -self.chances[ids[:-1], ids[1:]].log().double().mean().item()

    def generate(self, ids: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
        """ids: (b, t). Returns (b, count), drawn as the model's samples are."""
        tokens = ids
        for _ in range(count):
            logits = self.chances[tokens[:, -1]].log()
            tokens = torch.cat([tokens, draw(logits, TEMPERATURE, top_p=TOP_P, generator=generator)], dim=1)
        return tokens[:, ids.shape[1] :]


def first_function(text: str) -> str:
    """A function's lines from the text that begins with it: whole ones, up to what stands at the margin again."""
    first, *lines = text.split("\n")[:-1] or [text]  # the last may be cut
    end = next(
        (k for k, line in enumerate(lines) if line and not line[0].isspace() and line[0] not in ")]}"), len(lines)
    )
    return "\n".join([first, *lines[:end]]) + "\n"


def parses(text: str) -> bool:
    """Does Python take it for Python?"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as of "\d" in a string
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def share_that_parses(texts: list[str]) -> float:
    """Of functions, given as texts that begin with one and go on as long as a sample: how many are Python."""
    return sum(parses(first_function(text)) for text in texts) / len(texts)


def functions_of(texts: list[str], tokenizer: Tokenizer, count: int, length: int) -> list[str]:
    """The beginnings of functions that stand at the margin in some modules, as long as a sample: `count` of them."""
    starts = [(text, found.start()) for text in texts for found in re.finditer(r"^def ", text, re.MULTILINE)]
    chosen = starts[:: max(1, len(starts) // count)][:count]
    return [tokenizer.decode(tokenizer.encode(text[start : start + 12 * length])[:length]) for text, start in chosen]


def grammar(model: gpt2.GPT2, tokenizer: Tokenizer, pairs: Pairs, held_texts: list[str], count: int) -> dict:
    """The share of functions that are Python: the model's, the table of pairs', and those of held-out modules."""
    prompt, length = torch.tensor([tokenizer.encode("\n\n\ndef")] * count), 240
    generator = torch.Generator().manual_seed(0)
    drawn = {
        "model": gpt2.generate_cached(model, prompt, length, TEMPERATURE, top_p=TOP_P, generator=generator),
        "pairs": pairs.generate(prompt, length, generator),
    }
    texts = {
        who: [tokenizer.decode(torch.cat(row)).lstrip("\n") for row in zip(prompt, ids, strict=True)]
        for who, ids in drawn.items()
    }
    texts["held_out"] = functions_of(held_texts, tokenizer, count, length)
    return {
        "what": (
            f'{count} functions, from "def" to the next line at the margin, whole lines only, cut after {length}'
            f" tokens; drawn at a temperature of {TEMPERATURE} with top-p {TOP_P}; held_out: from held-out modules, cut"
            " in the same way"
        ),
        **{who: round(share_that_parses(found), 3) for who, found in texts.items()},
    }


def twice(once: torch.Tensor) -> torch.Tensor:
    """(b, w) said twice: (b, 2w)."""
    return torch.cat([once, once], dim=1)


@torch.no_grad()
def second_time_nats(model: gpt2.GPT2, once: torch.Tensor) -> float:
    """The mean cross-entropy of the second copy's tokens but the first, which nothing foretells."""
    rows, w = twice(once), once.shape[1]
    losses = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
    return losses.view(len(rows), -1)[:, w:].mean().item()


@torch.no_grad()
def first_time_nats(model: gpt2.GPT2, once: torch.Tensor) -> float:
    """The mean cross-entropy of the first copy's tokens but the first."""
    return F.cross_entropy(model(once[:, :-1]).flatten(0, 1), once[:, 1:].flatten()).item()


def repeats(ids: torch.Tensor) -> tuple[list[int], list[int]]:
    """Where a text repeats itself: (places i, places j).

    The two tokens that end at i stood together before, last ending at j − 1: j is what followed them. ids: (t,).
    """
    row, last, found = ids.tolist(), {}, []
    for i in range(1, len(row)):
        pair = row[i - 1], row[i]
        if pair in last:
            found.append((i, last[pair] + 1))
        last[pair] = i
    return [i for i, _ in found], [j for _, j in found]


def echo_score(weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The mean weight on what followed the same two tokens before, in texts as they are.

    weights: (depth, b, h, t, t). rows: (b, t), the texts. Returns (depth, h).
    """
    looked = [weights[:, b, :, *repeats(row)] for b, row in enumerate(rows)]  # (depth, h, however many)
    return torch.cat(looked, dim=-1).mean(dim=-1)


def strongest(scores: torch.Tensor) -> tuple[int, int]:
    """(block, head) of the largest of (depth, h) scores."""
    return divmod(int(scores.argmax()), scores.shape[1])


def texts_for_heads(held_ids: torch.Tensor, n: int, t: int, w: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What heads are judged on: windows of held-out tokens, (count, t), and rows of random ones, (count, w)."""
    rows = held_ids[torch.linspace(0, len(held_ids) - t - 1, count).long()[:, None] + torch.arange(t)]
    return rows, torch.randint(n - 1, (count, w), generator=torch.Generator().manual_seed(7))


def heads(model: gpt2.GPT2, held_ids: torch.Tensor) -> dict:
    """What the heads do: every score of every head, the strongest of each kind, and the losses without some."""
    config, w, count = model.config, 64, 32
    t = config.t_max
    rows, random = texts_for_heads(held_ids, config.n, t, w, count)
    real = rows[:, :w]
    on_text = torch.cat([model.attention_weights(part) for part in rows.split(8)], dim=1)
    scores = {
        "previous_token": gpt2.previous_score(on_text).mean(dim=1),
        "first_token": gpt2.first_score(on_text).mean(dim=1),
        "induction_random": gpt2.induction_score(model.attention_weights(twice(random)), w).mean(dim=1),
        "induction_real": gpt2.induction_score(model.attention_weights(twice(real)), w).mean(dim=1),
        "induction_in_text": echo_score(on_text, rows),
    }
    even = gpt2.even_weights(t)
    by_chance = {
        "previous_token": gpt2.previous_score(even).item(),
        "first_token": gpt2.first_score(even).item(),
        "induction_random": gpt2.induction_score(gpt2.even_weights(2 * w), w).item(),
        "induction_real": gpt2.induction_score(gpt2.even_weights(2 * w), w).item(),
        "induction_in_text": echo_score(even.expand(1, count, 1, t, t), rows).item(),
    }
    found = {}
    for kind, score in scores.items():
        block, head = strongest(score)
        found[kind] = {
            "block": block,
            "head": head,
            "weight": round(score[block, head].item(), 4),
            "times_chance": round(score[block, head].item() / by_chance[kind], 1),
            "chance": round(by_chance[kind], 5),
            "all": [[round(value, 4) for value in line] for line in score.tolist()],
        }
    return {
        "counted": "blocks and heads from 0",
        "what": {
            "previous_token": f"mean weight on the token before, {count} windows of {t} held-out tokens",
            "first_token": "mean weight on the window's first token, of all but its first two, the same windows",
            "induction_random": (
                f"{count} rows of {w} random tokens, each row said twice: mean weight, in the second copy, on what"
                " followed the same token in the first"
            ),
            "induction_real": f"the same, rows of {w} held-out tokens",
            "induction_in_text": (
                "held-out windows as they are: mean weight on what followed the same two tokens where they last stood"
            ),
            "times_chance": "over what even weights would give",
        },
        **found,
        "losses": losses_without(model, scores, by_chance["induction_random"], random, real),
    }


def losses_without(
    model: gpt2.GPT2, scores: dict[str, torch.Tensor], chance: float, random: torch.Tensor, real: torch.Tensor
) -> dict:
    """Nats a token in the second copy of what is said twice: with all heads, and with some switched off."""
    score, previous = scores["induction_random"], strongest(scores["previous_token"])
    block, head = strongest(score)
    control = block, int(score[block].argmin())
    strong = [divmod(int(k), model.config.h) for k in (score.flatten() > 10 * chance).nonzero()[:, 0]]
    off = {"all heads on": [], "induction head off": [(block, head)], "control head off": [control]}
    off |= {"all heads above 10 times chance off": strong, "previous-token head off": [previous]}
    told: dict = {"heads": {name: [list(one) for one in those] for name, those in off.items()}}
    for name, once in {"random": random, "real": real}.items():
        lines = {"first copy, all heads on": round(first_time_nats(model, once), 4)}
        for what, those in off.items():
            with gpt2.switched_off(model, *those):
                lines[what] = round(second_time_nats(model, once), 4)
        told[name] = lines
    each = []
    for one in range(model.config.depth):
        each.append([])
        for other in range(model.config.h):
            with gpt2.switched_off(model, (one, other)):
                each[-1].append(round(second_time_nats(model, random), 4))
    told["random_without_each_head"] = each
    return told


def samples_of(model: gpt2.GPT2, tokenizer: Tokenizer) -> list[dict]:
    """How the model goes on from a few beginnings."""
    samples = []
    for seed, prompt in enumerate(PROMPTS):
        ids, generator = torch.tensor([tokenizer.encode(prompt)]), torch.Generator().manual_seed(seed)
        drawn = gpt2.generate_cached(model, ids, 160, TEMPERATURE, top_p=TOP_P, generator=generator)[0].tolist()
        drawn = drawn[: drawn.index(tokenizer.end_of_text)] if tokenizer.end_of_text in drawn else drawn
        told = {"prompt": prompt, "temperature": TEMPERATURE, "top_p": TOP_P, "text": tokenizer.decode(drawn)}
        samples.append(told)
        print(f"{prompt}|{told['text']}\n")
    return samples


def figures(
    model: gpt2.GPT2,
    tokenizer: Tokenizer,
    train_ids: torch.Tensor,
    held_ids: torch.Tensor,
    texts: tuple[list[str], list[str]],
    count: int,
) -> dict:
    """All that the record says of the finished model. texts: learned from, and held out."""
    held_bytes, t = len("".join(texts[1]).encode()), model.config.t_max
    perplexity = gpt2.perplexity(model, held_ids, t // 2)
    learned = gpt2.perplexity(model, as_ids(texts[0][:: 2 * EVERY], tokenizer), t // 2)
    nats, pairs = math.log(perplexity), Pairs(train_ids, len(tokenizer))
    per_byte = (len(held_ids) - 1) / held_bytes
    return {
        "held_out_nats": round(nats, 4),
        "held_out_perplexity": round(perplexity, 2),
        "held_out_bits_per_byte": round(bits_per_byte(nats * per_byte), 4),
        "learned_perplexity": round(learned, 2),
        "learned": f"on every {2 * EVERY}th of the modules that were learned from, measured as the held-out ones",
        "context": (
            f"all held-out modules in a row, windows of {t} tokens that start every {t // 2}: every token is predicted"
            f" once, from more than {t // 2} before it (fewer at the beginning), the ends of modules too, and all bits"
            " are divided by the modules' bytes"
        ),
        "on_the_same_bytes": {
            "pairs of tokens": round(bits_per_byte(pairs.nats(held_ids) * per_byte), 3),
            **landmarks("".join(texts[0]).encode(), "".join(texts[1]).encode()),
        },
        "heads": heads(model, held_ids),
        "parsed": grammar(model, tokenizer, pairs, texts[1], count),
    }


def main() -> None:
    """The whole run: data, training, test, samples, record."""
    chosen = arguments()
    steps = chosen.steps or STEPS
    torch.manual_seed(0)
    sources = stdlib_sources()
    train_texts, held_texts = learned_and_held_out(sources)
    tokenizer = Tokenizer.learn("".join(train_texts), VOCABULARY)
    train_ids, held_ids = as_ids(train_texts, tokenizer), as_ids(held_texts, tokenizer)
    config = gpt2.Config(n=len(tokenizer), **MODEL)
    model = fresh_model(config).to(device())
    held_bytes = sum(len(text.encode()) for text in held_texts)
    settings = {
        "n": config.n,
        **MODEL,
        "parameters": sum(p.numel() for p in model.parameters()),
        "batch": BATCH,
        "steps": steps,
        "tokens": steps * BATCH * config.t_max,
        "rate": RATE,
        "embedding_rate": EMBEDDING_RATE,
        "warmup": WARMUP,
        "decay": DECAY,
        "optimiser": "Muon, AdamW for embeddings, biases and norms",
        "schedule": f"lines through {RATE_LINE} (step, share of the rate), {WARMUP} steps of warm-up",
        "positions": f"a learned table, which starts as sinusoids times {POSITIONS}",
        "echoes": (
            "some windows have a stretch that comes again (of the text itself, or of random tokens); lines through"
            f" {ECHO_LINE} (step, share of the windows)"
        ),
        "threads": "two, each with half of a batch",
    }
    data = {
        "name": f"the standard library of {python_version()}",
        "sha256": checksum(sources),
        "modules": len(sources),
        "bytes": sum(len(text.encode()) for text in sources.values()),
        "training_tokens": len(train_ids),
        "held_out_modules": len(held_texts),
        "held_out_tokens": len(held_ids),
        "held_out_bytes": held_bytes,
    }
    record = Record("pocket_gpt2", data, settings)
    where = Path(tempfile.gettempdir()) if chosen.to == FOLDER else chosen.to
    where.mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint(where / "pocket_gpt2.checkpoint", {"data": data, "settings": settings})
    per_byte = (len(held_ids) - 1) / held_bytes
    precision()
    train(
        model,
        lambda step: windows(train_ids, config.n, step, steps),
        steps,
        record,
        checkpoint,
        lambda: look(model, held_ids, per_byte),
    )
    model = finished(model)
    if chosen.attempt:
        checkpoint.path.unlink(missing_ok=True)
        return
    folder = POCKET if chosen.to == FOLDER else chosen.to / "pocket_gpt2"
    write(model, tokenizer, folder)
    note = {"note": chosen.note} if chosen.note else {}
    result = note | figures(model, tokenizer, train_ids, held_ids, (train_texts, held_texts), SAMPLES)
    print(json.dumps(result, indent=1))
    record.write(chosen.to, result, samples_of(model, tokenizer))
    checkpoint.path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
