"""The ladder: one small language model that grows from lesson 1 to lesson 9 out of the functions a student writes.

    ladder = Ladder(check)
    attend = ladder.own(self_attention)    # the student's, or the finished part where theirs does not hold yet
    ladder.climb(ByteModel(attend))        # trains, prints bits per byte and a sample
    ladder.show()                          # all rungs so far
    ladder.last_byte(model)                # how much weight it gives to the last byte
    ladder.other_context(model)            # its score where all bytes but the last come from elsewhere
    ladder.query_alone(model)              # its score where all keys and values come from elsewhere

One text, one size, one recipe and about the same seconds of one core for each rung: only the model changes. The text is
Python's reference manual, or with `Ladder(check, text="enwik8")` Wikipedia, where there is data. The first nineteen
twentieths are for training. On the rest the model predicts single bytes, each from the `t_max` bytes before it.
"""

from __future__ import annotations

import gzip
import lzma
import math
import os
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots, rungs
from helpers.course import VALIDATING
from helpers.data.datasets import generator_text
from helpers.data.recorded import recorded
from helpers.device import device
from helpers.parts.attention import SingleHeadAttention, attention
from helpers.parts.blocks import Transformer
from helpers.parts.evaluating import evaluating
from helpers.parts.generator import CharTransformer, bits_per_byte, generate
from helpers.parts.masks import CausalSelfAttention, causal_mask
from helpers.parts.multi_head import MultiHeadAttention
from helpers.parts.positions import PositionEmbedding
from helpers.parts.scaling import scaled_scores
from helpers.progress import progress
from helpers.rungs import ENWIK8, MANUAL, RUNGS, Score

N, E, H, T = 256, 64, 4, 32  # bytes, width, heads, positions of a window
BATCH, RATE, WARMUP = 16, 5e-3, 50  # windows of T bytes in a batch; the recipe is lesson 9's
LONGEST, EVERY = 64, 2  # the first held-out byte that is predicted, and how many come from one to the next
SAMPLE = 200  # bytes
FEW = 5  # steps
MOST = 1_000_000  # bytes of a text
TEMPERATURE = 0.8


def self_attention(x: torch.Tensor) -> torch.Tensor:
    """Lesson 1's, without parameters. x: (b, t, e). Returns (b, t, e)."""
    return attention(x, x, x)


FINISHED = {
    "self_attention": self_attention,
    "SingleHeadAttention": SingleHeadAttention,
    "scaled_scores_early": scaled_scores,
    "MultiHeadAttention": MultiHeadAttention,
    "CausalSelfAttention": CausalSelfAttention,
    "PositionEmbedding": PositionEmbedding,
    "Transformer": Transformer,
    "CharTransformer": CharTransformer,
}


class ByteModel(nn.Module):
    """Bytes become vectors, one part mixes the positions, and a linear map makes logits.

    mix: a function or module from (b, t, e) to (b, t, e). positions: a module that adds them, None for a model without.
    causal: does `mix` never look ahead? Then every position predicts the byte after it; otherwise only the last can.
    mask: is `mix` called with a causal mask, mix(x, mask)?
    """

    t_max = T

    def __init__(self, mix: Callable, positions: nn.Module | None = None, causal: bool = False, mask: bool = False):
        super().__init__()
        self.tokens = nn.Embedding(N, E)
        self.positions = positions or nn.Identity()
        self.mix, self.causal, self.mask = mix, causal or mask, mask
        self.to_logits = nn.Linear(E, N)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64. Returns logits (b, t, n), of a model that is not causal (b, 1, n)."""
        x = self.positions(self.tokens(ids))
        mask = (causal_mask(ids.shape[1], ids.device),) if self.mask else ()
        y = self.mix(x, *mask)  # (b, t, e)
        return self.to_logits(y if self.causal else y[:, -1:])


class ScaledHead(SingleHeadAttention):
    """Lesson 2's attention with scores by another function, such as lesson 3's.

    scores: a function of q and k, both (b, t, d), that returns (b, t, t).
    """

    def __init__(self, scores: Callable):
        super().__init__(E, E)
        self.scores = scores

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """x: (b, t, e). Returns (b, t, e)."""
        weights = torch.softmax(self.scores(self.to_queries(x), self.to_keys(x)), dim=-1)  # (b, t, t)
        return weights @ self.to_values(x)


class Ladder:
    """The rung of one lesson.

    check: the lesson's check, which says whether an answer holds. text: MANUAL, or ENWIK8, in whose place the manual is
    taken where there is no data. ValueError for another.
    """

    def __init__(self, check: Any, text: str = MANUAL):
        if text not in (MANUAL, ENWIK8):
            raise ValueError(f"There is no text called {text!r}; there are {MANUAL!r} and {ENWIK8!r}.")
        self.check, self.lesson = check, check.lesson.name
        self.text = text if _whole(text) != _whole(MANUAL) else MANUAL
        self.all_own = True
        self.score: Score | None = None

    def own(self, written: Any) -> Any:
        """What the student wrote, if its check holds, and else the finished part; one printed line says which."""
        name = self.check.name_of(written)
        holds = bool(name) and self.check.holds(name, written)
        self.all_own = self.all_own and holds
        if name and not holds:
            print(f"{name}: the finished part. Yours takes its place once its check says that all of it is right.")
            return FINISHED[name]
        print(f"{name}: yours" if holds else "It is taken as it is.")
        return written

    def climb(self, model: nn.Module) -> None:
        """Train the model, print its held-out bits per byte and a sample of text, and keep the score.

        The stop button ends the training early, and what was trained until then counts.
        """
        bits, done = measured(model, RUNGS[self.lesson].steps, self.text)
        self.score = Score(self.lesson, bits, done, self.all_own, references(self.text), self.text)
        if math.isfinite(bits):
            rungs.keep(self.score)
        print(f"held out: {bits:.2f} bits per byte after {done:,} steps\n")
        print(sample(model, self.text))

    def show(self) -> None:
        """Draw this rung and those below it: the student's scores, and on the manual the course's own three runs."""
        mine = rungs.best([*rungs.scores(), *([self.score] if self.score else [])], self.text)
        ours = recorded("ladder")["result"]["bits"] if self.text == MANUAL else defaultdict(tuple)
        shown = list(RUNGS)[: list(RUNGS).index(self.lesson) + 1]
        rows: list[tuple[str, float | None, bool, Any]] = [("plain average", None, True, ours["average"])]
        for lesson in shown:
            score = mine.get(lesson)
            name = f"{int(lesson.split('_')[0])} · {RUNGS[lesson].title}"
            rows.append((name, score.bits if score else None, score is None or score.own, ours[lesson]))
        plots.ladder(rows, references(self.text))
        print(f"{'held-out bits per byte':<28}{'yours':>8}   ours, three runs")
        for name, bits, _, runs in rows:
            spread = f"{min(runs):.2f} to {max(runs):.2f}" if runs else "none on this text"
            print(f"{name:<28}{f'{bits:.2f}' if bits else '':>8}   {spread}")
        print(", ".join(f"{name} {bits:.2f}" for name, bits in references(self.text).items()))

    def last_byte(self, model: ByteModel) -> None:
        """Print how much weight the last position gives to the last byte, at its own place and in all places."""
        own, copies, equal = weight_on_last_byte(model, self.text)
        print(f"weight on the last byte: {own:.2f} on its own position, {copies:.2f} with its copies")
        print(f"if all weights were equal: {1 / model.t_max:.2f} and {equal:.2f}")

    def other_context(self, model: nn.Module) -> None:
        """Print the held-out bits per byte where all bytes that the model reads but the last come from elsewhere."""
        print(f"held out, with other bytes before the last: {other_context_bits(model, self.text):.2f} bits per byte")

    def query_alone(self, model: ByteModel) -> None:
        """Print the held-out bits per byte where only the last position's query is from the window."""
        print(
            f"held out, with all keys and values from elsewhere: {query_alone_bits(model, self.text):.2f} bits per byte"
        )


def measured(model: nn.Module, steps: int, text_name: str = MANUAL, **options: Any) -> tuple[float, int]:
    """Train a model on a text. Returns (held-out bits per byte, after how many steps the training ended)."""
    done = train(model.to(device()), steps, text_name=text_name, **options)
    return held_out_bits(model, text_name), done


def train(model: nn.Module, steps: int, seed: int = 0, **options: Any) -> int:
    """Train a model on random windows. Returns after how many steps it ended: the stop button ends it early.

    options: see `training_steps`.
    """
    done = 0
    try:
        for _ in training_steps(model, steps, seed, **options):
            done += 1
    except KeyboardInterrupt:
        print(f"Stopped after {done:,} of {steps:,} steps. What was trained until here counts.")
    return done


def training_steps(
    model: nn.Module,
    steps: int,
    seed: int = 0,
    what: str = "training",
    text_name: str = MANUAL,
    times: int = 1,
) -> Iterator[None]:
    """The same, a step at a time; the stop button raises. what: the name in the line that shows how far it has come.

    A step reads as many bytes whatever the model's t_max is. times: how many times as many as the rungs' steps.
    """
    if os.environ.get(VALIDATING):  # a notebook that is validated need not wait for the training
        steps = min(steps, FEW)
    data, t, chance = text(text_name)[0], length_of(model), torch.Generator().manual_seed(seed)
    small_embeddings(model)
    optimiser = torch.optim.AdamW(model.train().parameters(), betas=(0.9, 0.98), weight_decay=0.05)
    for step in progress(range(steps), what):
        starts = torch.randint(len(data) - t, (times * BATCH * T // t,), generator=chance)
        windows = data[starts.unsqueeze(1) + torch.arange(t + 1)].long().to(device())  # (b, t + 1)
        logits = model(windows[:, :-1])  # (b, t, n) or (b, 1, n)
        targets = windows[:, -logits.shape[1] :]
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = RATE * min((step + 1) / WARMUP, _half_cosine(step / steps))
        optimiser.step()
        yield


def length_of(model: Any) -> int:
    """How many bytes a model reads at once, its t_max."""
    return int(model.t_max)


@torch.no_grad()
def small_embeddings(model: nn.Module) -> None:
    """Tables of bytes and positions begin at a tenth of what PyTorch draws, as in lesson 9."""
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            part.weight.mul_(0.1)


def _half_cosine(share: float) -> float:
    return 0.5 + 0.5 * math.cos(math.pi * share)


def held_out_bits(model: nn.Module, text_name: str = MANUAL) -> float:
    """Bits per held-out byte, each predicted from the `t_max` bytes before it."""
    return _bits(model, _held_out_windows(model, text_name))


def other_context_bits(model: nn.Module, text_name: str = MANUAL) -> float:
    """Held-out bits per byte where each window keeps its last byte and has the others of a window far away."""
    windows = _held_out_windows(model, text_name)  # (windows, t + 1)
    others = windows.roll(len(windows) // 2, dims=0)[:, :-2]
    return _bits(model, torch.cat([others, windows[:, -2:]], dim=1))


def query_alone_bits(model: ByteModel, text_name: str = MANUAL) -> float:
    """Held-out bits per byte where the last byte is only the query, and keys and values are of a window far away.

    model: without positions. Its `mix` takes a context, as SingleHeadAttention does.
    """
    windows = _held_out_windows(model, text_name)  # (windows, t + 1)
    contexts = windows.roll(len(windows) // 2, dims=0)[:, :-1]
    nats = 0.0
    with evaluating(model), torch.no_grad():
        for ids, context in zip(windows.split(256), contexts.split(256), strict=True):
            y = model.mix(model.tokens(ids[:, -2:-1]), model.tokens(context))  # (b, 1, e)
            nats += F.cross_entropy(model.to_logits(y)[:, 0], ids[:, -1], reduction="sum").item()
    return float(bits_per_byte(nats / len(windows)))


@torch.no_grad()
def _bits(model: nn.Module, windows: torch.Tensor) -> float:
    """Bits per byte for the last byte of each window. windows: (windows, t + 1)."""
    with evaluating(model):
        nats = sum(
            F.cross_entropy(model(part[:, :-1])[:, -1], part[:, -1], reduction="sum").item()
            for part in windows.split(256)
        )
    return float(bits_per_byte(nats / len(windows)))


@torch.no_grad()
def weight_on_last_byte(model: ByteModel, text_name: str = MANUAL) -> tuple[float, float, float]:
    """What the last position gives of its weight to itself, and to all positions that hold its byte: two means.

    The third number is what the second would be if all weights were equal. model.mix: attention without parameters, or
    a module with `to_queries` and `to_keys`. The windows are held out.
    """
    ids = _held_out_windows(model, text_name)[:, :-1]
    to_queries, to_keys = (getattr(model.mix, name, nn.Identity()) for name in ("to_queries", "to_keys"))
    own = copies = equal = 0.0
    for part in ids.split(256):
        x = model.positions(model.tokens(part))  # (b, t, e)
        weights = torch.softmax(to_queries(x[:, -1:]) @ to_keys(x).mT, dim=-1)[:, 0]  # (b, t)
        own += weights[:, -1].sum().item()
        holds = part == part[:, -1:]
        copies += weights[holds].sum().item()
        equal += holds.float().mean(dim=1).sum().item()
    return own / len(ids), copies / len(ids), equal / len(ids)


def _held_out_windows(model: nn.Module, text_name: str) -> torch.Tensor:
    """(windows, t + 1), each with the byte that is predicted. These are the same bytes for all models."""
    data, t = text(text_name)[1], length_of(model)
    return data[LONGEST - t :].unfold(0, t + 1, EVERY).long().to(device())


def sample(model: nn.Module, text_name: str = MANUAL) -> str:
    """A prompt of held-out bytes, and what the model writes after it."""
    prompt = text(text_name)[1][: length_of(model)].long()
    chance = torch.Generator(device()).manual_seed(0)
    written = generate(model, prompt.unsqueeze(0).to(device()), SAMPLE, TEMPERATURE, generator=chance)[0]
    return textwrap.fill(f"{_letters(prompt)} ▸ {_letters(written)}", 88)


def _letters(ids: Iterable[int]) -> str:
    return "".join(chr(i) if 32 <= i < 127 else "·" for i in map(int, ids))


@cache
def text(name: str = MANUAL) -> tuple[torch.Tensor, torch.Tensor]:
    """The training part and the held-out part of a text, bytes."""
    whole = torch.tensor(list(_whole(name)), dtype=torch.uint8)
    cut = len(whole) * 19 // 20
    return whole[:cut], whole[cut:]


@cache
def _whole(name: str) -> bytes:
    if name == MANUAL:
        return generator_text(places="embedded", say=lambda line: None)[0]
    return generator_text()[0][:MOST]


@cache
def references(name: str = MANUAL) -> dict[str, float]:
    """Bits per held-out byte of what has seen the training part: two tables of counts and two packers."""
    train, held_out = text(name)
    packers = {"gzip": lambda data: gzip.compress(data, 9), "xz": lambda data: lzma.compress(data, preset=9)}
    added = {packer: added_bits(pack, _whole(name), len(train)) for packer, pack in packers.items()}
    return counted_bits(train, held_out) | added


def added_bits(pack: Callable[[bytes], bytes], whole: bytes, cut: int) -> float:
    """Bits that the bytes from `cut` on add to a packed text, per byte of them."""
    return 8 * (len(pack(whole)) - len(pack(whole[:cut]))) / (len(whole) - cut)


def counted_bits(train: torch.Tensor, held_out: torch.Tensor) -> dict[str, float]:
    """Bits per held-out byte of two tables counted on the training part, with 0.1 added to each count.

    train, held_out  (bytes,), integers below N. Order 0 knows how frequent each byte is, order 1 also the byte before.
    """
    train, held_out = train.long(), held_out.long()
    single = train.bincount(minlength=N) + 0.1
    pairs = (N * train[:-1] + train[1:]).bincount(minlength=N * N).view(N, N) + 0.1
    order_0 = (single / single.sum())[held_out]
    order_1 = (pairs / pairs.sum(dim=1, keepdim=True))[held_out[:-1], held_out[1:]]
    return {"order 0": -order_0.log2().mean().item(), "order 1": -order_1.log2().mean().item()}
