"""The ladder: one small language model that grows from lesson 1 to lesson 9 out of the functions a student writes.

    ladder = Ladder(check)
    softmax = ladder.own(row_softmax)    # the student's, or the finished part where theirs does not hold yet
    ladder.climb(ByteModel(BareAttention(softmax)))    # trains, prints bits per byte and two samples
    ladder.show()                        # all rungs so far

One text, one size, one recipe and about the same seconds of one core for each rung: only the model changes. Each model
knows where its bytes are and sees none that comes later, from the first rung on, so that every position predicts; until
the lessons on masks and positions this is given. The text is Python's reference manual, or with
`Ladder(check, text="enwik8")` Wikipedia, where there is data. The first nineteen twentieths are for training. On the
rest the model predicts single bytes, each from the `t_max` bytes before it.
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
from helpers.data.open_texts import added_bits
from helpers.data.recorded import recorded
from helpers.device import device
from helpers.parts.attention import attention
from helpers.parts.blocks import Transformer
from helpers.parts.evaluating import evaluating
from helpers.parts.generator import CharTransformer, bits_per_byte, generate
from helpers.parts.masks import CausalSelfAttention, causal_mask
from helpers.parts.multi_head import merge_heads, split_heads
from helpers.parts.positions import PositionEmbedding
from helpers.parts.scaling import scaled_scores
from helpers.progress import progress
from helpers.rungs import EDITION, ENWIK8, MANUAL, RUNGS, Score

N, E, H, T = 256, 64, 4, 32  # bytes, width, heads, positions of a window
BATCH, RATE, WARMUP = 16, 5e-3, 50  # windows in a batch; the recipe is lesson 9's
FAR = 1e9  # below every score, so that a softmax gives exactly 0
LONGEST, EVERY = 64, 2  # the first held-out byte that is predicted, and how many come from one to the next
SAMPLE = 200  # bytes
FEW = 5  # steps
MOST = 1_000_000  # bytes of a text
TEMPERATURE = 0.8


FINISHED: dict[str, Callable] = {
    "raw_weights": lambda x: x @ x.mT,
    "row_softmax": lambda scores: torch.softmax(scores, dim=-1),
    "attention": attention,
    "scaled_scores": scaled_scores,
    "split_heads": split_heads,
    "merge_heads": merge_heads,
    "CausalSelfAttention": CausalSelfAttention,
    "PositionEmbedding": PositionEmbedding,
    "Transformer": Transformer,
    "CharTransformer": CharTransformer,
}


class ByteModel(nn.Module):
    """Bytes become vectors, one part mixes the positions, and a linear map makes logits.

    mix: a function or module from (b, t, e) to (b, t, e). It never looks ahead, so that every position can predict the
    byte after it. positions: a module that adds them, a learned vector for each if it is not given. mask: is `mix`
    called with a causal mask, mix(x, mask)?
    """

    t_max = T

    def __init__(self, mix: Callable, positions: nn.Module | None = None, mask: bool = False):
        super().__init__()
        self.tokens = nn.Embedding(N, E)
        self.positions = positions or PositionEmbedding(T, E)
        self.mix, self.mask = mix, mask
        self.to_logits = nn.Linear(E, N)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64. Returns logits (b, t, n)."""
        x = self.positions(self.tokens(ids))
        mask = (causal_mask(ids.shape[1], ids.device),) if self.mask else ()
        return self.to_logits(self.mix(x, *mask))


def later_hidden(scores: torch.Tensor) -> torch.Tensor:
    """Scores of which a softmax makes no weight where a position would look ahead. scores: (..., t, t)."""
    return scores.masked_fill(~causal_mask(scores.shape[-1], scores.device), -FAR)


class BareAttention(nn.Module):
    """Lesson 1's attention, which has no parameters: softmax(x xᵀ) x.

    softmax: a function of scores (b, t, t) that returns weights. scores: a function of x that returns scores; x xᵀ if
    it is not given.
    """

    def __init__(self, softmax: Callable, scores: Callable = FINISHED["raw_weights"]):
        super().__init__()
        self.softmax, self.scores = softmax, scores

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        return self.softmax(later_hidden(self.scores(x))) @ x


class Projections(nn.Module):
    """Three learned maps without bias, which make queries, keys and values of the model's width."""

    def __init__(self):
        super().__init__()
        self.to_queries, self.to_keys, self.to_values = (nn.Linear(E, E, bias=False) for _ in range(3))

    def projected(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x: (b, t, e). Returns q, k and v, each (b, t, e)."""
        return self.to_queries(x), self.to_keys(x), self.to_values(x)


class OneHead(Projections):
    """Lesson 2's attention with learned maps. attend: a function of q, k and v that returns (b, t, e)."""

    def __init__(self, attend: Callable):
        super().__init__()
        self.attend = attend

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e).

        The function takes no mask. t more components of queries and keys serve as one: their product is 0 where a
        position may look, and far below 0 elsewhere.
        """
        b, t, _ = x.shape
        q, k, v = self.projected(x)
        hidden = -FAR * (~causal_mask(t, x.device)).to(x.dtype).expand(b, t, t)
        places = torch.eye(t, dtype=x.dtype, device=x.device).expand(b, t, t)
        return self.attend(torch.cat([q, hidden], dim=-1), torch.cat([k, places], dim=-1), v)


class ScaledHead(Projections):
    """Lesson 3's: the scores are another function's. scores: of q and k, both (b, t, d), that returns (b, t, t)."""

    def __init__(self, scores: Callable):
        super().__init__()
        self.scores = scores

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        q, k, v = self.projected(x)
        return torch.softmax(later_hidden(self.scores(q, k)), dim=-1) @ v


class Heads(Projections):
    """Lesson 4's: H heads. split: from (b, t, e) and h to (b, h, t, d). merge: from (b, h, t, d) to (b, t, e)."""

    def __init__(self, split: Callable, merge: Callable):
        super().__init__()
        self.split, self.merge = split, merge
        self.unify = nn.Linear(E, E)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        q, k, v = (self.split(part, H) for part in self.projected(x))
        return self.unify(self.merge(torch.softmax(later_hidden(scaled_scores(q, k)), dim=-1) @ v))


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
        """What the student wrote, if its check holds, and else the finished part; one printed line says which.

        What is a finished part already, because the lesson has no such exercise, is returned without a word.
        """
        if any(written is part for part in FINISHED.values()):
            return written
        name = self.check.name_of(written)
        holds = bool(name) and self.check.holds(name, written)
        self.all_own = self.all_own and holds
        if name and not holds:
            print(f"{name}: the finished part. Yours takes its place once its check says that all of it is right.")
            return FINISHED[name]
        print(f"{name}: yours" if holds else "It is taken as it is.")
        return written

    def climb(self, model: nn.Module, samples: bool = True) -> None:
        """Train the model, print its held-out bits per byte and a sample of its text, and keep the score.

        Above the sample comes the one that was recorded on the rung before, for the manual. samples: False leaves out
        both.

        The stop button ends the training early, and what was trained until then counts.
        """
        bits, done = measured(model, RUNGS[self.lesson].steps, self.text)
        self.score = Score(self.lesson, bits, done, self.all_own, references(self.text), self.text)
        if math.isfinite(bits):
            rungs.keep(self.score)
        print(f"held out: {bits:.2f} bits per byte after {done:,} steps\n")
        if not samples:
            return
        before = list(RUNGS).index(self.lesson) - 1
        if before >= 0 and self.text == MANUAL:
            lesson = list(RUNGS)[before]
            print(f"Lesson {int(lesson[:2])}'s model wrote:\n{recorded('ladder')['result']['samples'][lesson]}\n")
        print(f"This one writes:\n{sample(model, self.text)}")

    def show(self) -> None:
        """Draw this rung and those below it: the student's scores, and on the manual the course's own three runs."""
        scores = [*rungs.scores(), *([self.score] if self.score else [])]
        mine = rungs.best([one for one in scores if one.edition == EDITION], self.text)
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

    times: how many times as many windows in a step as on the rungs.
    """
    if os.environ.get(VALIDATING):  # a notebook that is validated need not wait for the training
        steps = min(steps, FEW)
    yield from steps_on(text(text_name)[0], model, steps, seed, what, times * BATCH)


def steps_on(
    data: torch.Tensor, model: nn.Module, steps: int, seed: int = 0, what: str = "training", windows_a_step: int = BATCH
) -> Iterator[None]:
    """The recipe on any text, a step at a time. data: (length,), bytes."""
    t, chance = length_of(model), torch.Generator().manual_seed(seed)
    small_embeddings(model)
    optimiser = torch.optim.AdamW(model.train().parameters(), betas=(0.9, 0.98), weight_decay=0.05)
    for step in progress(range(steps), what):
        starts = torch.randint(len(data) - t, (windows_a_step,), generator=chance)
        windows = data[starts.unsqueeze(1) + torch.arange(t + 1)].long().to(device())  # (b, t + 1)
        logits = model(windows[:, :-1])  # (b, t, n)
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
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


@torch.no_grad()
def _bits(model: nn.Module, windows: torch.Tensor) -> float:
    """Bits per byte for the last byte of each window. windows: (windows, t + 1)."""
    with evaluating(model):
        nats = sum(
            F.cross_entropy(model(part[:, :-1])[:, -1], part[:, -1], reduction="sum").item()
            for part in windows.split(256)
        )
    return float(bits_per_byte(nats / len(windows)))


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
