"""A transformer that goes on with a text, byte by byte (lesson 9).

b batch, t positions, e width of the model, h heads, n size of the vocabulary.
"""

from __future__ import annotations

import math
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from .blocks import Transformer
from .evaluating import evaluating
from .masks import causal_mask
from .positions import PositionEmbedding

Number = TypeVar("Number", float, torch.Tensor)


def sample_batch(
    data: torch.Tensor, batch: int, t: int, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random slices of a text, and the same slices one position later.

    data: (length,), integers. Returns inputs and targets, both (batch, t), int64. Every start from 0 to
    length − t − 1 is equally likely. ValueError when no slice of t + 1 fits into the text.
    """
    if batch < 1 or t < 1:
        raise ValueError(f"A batch has at least one slice of at least one position; asked for were {batch} of t = {t}.")
    require_text(data, t + 1)
    starts = torch.randint(len(data) - t, (batch,), generator=generator)
    places = (starts.unsqueeze(-1) + torch.arange(t + 1)).to(data.device)  # (batch, t + 1)
    slices = data[places].long()
    return slices[:, :-1], slices[:, 1:]


def bits_per_byte(loss_in_nats: Number) -> Number:
    """A mean cross-entropy a byte, from nats into bits: a number, or a tensor of any shape (...)."""
    return loss_in_nats / math.log(2)


class CharTransformer(nn.Module):
    """Predicts, at every position, what comes next; sees only what came before.

    n: how many different characters or bytes. t_max: longest window. The blocks normalise first (GPT-2's order).
    """

    def __init__(self, n: int, e: int, h: int, depth: int, t_max: int, dropout: float = 0.0, **options: object):
        super().__init__()
        self.t_max = t_max
        self.tokens = nn.Embedding(n, e)
        self.positions = PositionEmbedding(t_max, e)
        self.transformer = Transformer(e, h, depth, pre_norm=True, dropout=dropout, **options)
        self.to_logits = nn.Linear(e, n)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t), int64, t ≤ t_max. Returns logits (b, t, n): at position i those of token i + 1."""
        x = self.positions(self.tokens(ids))
        x = self.transformer(x, causal_mask(ids.shape[1], ids.device))
        return self.to_logits(x)


def apply_temperature(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Logits divided by the temperature: below 1 sharper, above 1 flatter; 0 leaves only the largest possible (greedy).

    logits: (..., n). Returns (..., n). At temperature 0 the first of the largest stays as it is and all others are −∞.
    ValueError when temperature is negative, or no finite number.
    """
    if temperature < 0:
        raise ValueError(f"A temperature cannot be negative, and this one is {temperature}.")
    if not math.isfinite(temperature):
        raise ValueError(f"A temperature is a finite number from 0 up, and this one is {temperature}.")
    if temperature > 0:
        return logits / temperature
    best = logits.argmax(dim=-1, keepdim=True)
    return torch.full_like(logits, -torch.inf).scatter(-1, best, logits.gather(-1, best))


def keep_top_k(logits: torch.Tensor, k: int) -> torch.Tensor:
    """The k largest logits stay, all others become −∞. Whatever ties with the k-th largest stays too.

    Fan, Lewis and Dauphin, "Hierarchical neural story generation" (2018), section 5.4. logits: (..., n). k: at
    least 1 (ValueError otherwise); more than n keeps all.
    """
    if k < 1:
        raise ValueError(f"Top-k keeps at least one token, and k is {k}. Give a k from 1 up, or None to keep all.")
    lowest = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < lowest, -torch.inf)


def keep_top_p(logits: torch.Tensor, p: float) -> torch.Tensor:
    """The fewest, most probable tokens whose probabilities add up to p or more stay; all others become −∞.

    Holtzman et al., "The curious case of neural text degeneration" (2020), section 3.1. logits: (..., n). p in (0, 1]
    (ValueError otherwise).
    """
    if not 0 < p <= 1:
        raise ValueError(f"Top-p is a share of the probability, above 0 and at most 1, and p is {p}. None keeps all.")
    ranked, order = logits.sort(dim=-1, descending=True, stable=True)
    chances = ranked.softmax(dim=-1)
    before = chances.cumsum(dim=-1) - chances  # what the more probable ones add up to without this one
    beyond = (before >= p) & (p < 1)  # rounding may bring `before` to 1 ahead of the end, and p = 1 keeps all
    dropped = torch.zeros_like(beyond).scatter(-1, order, beyond)
    return logits.masked_fill(dropped, -torch.inf)


@torch.no_grad()
def generate(
    model: nn.Module,
    prompt: torch.Tensor,
    count: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Go on with a text, one token after the other.

    prompt: (b, t), int64, t ≥ 1. Returns (b, count): what was drawn, without the prompt. The model sees the last
    t_max tokens. Temperature comes first, then top-k, then top-p. The model is in evaluation mode meanwhile, and
    afterwards in the mode it was in before. ValueError for a prompt or a setting that nothing can be drawn with.
    """
    require_prompt(prompt, count)
    tokens = prompt
    with evaluating(model):
        for _ in range(count):
            logits = model(tokens[:, -model.t_max :])[:, -1]  # (b, n): only the last position predicts something new
            tokens = torch.cat([tokens, draw(logits, temperature, top_k, top_p, generator)], dim=1)
    return tokens[:, prompt.shape[1] :]


def draw(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """One token a row, after temperature, top-k and top-p in this order. logits: (b, n). Returns (b, 1), int64.

    ValueError where there is nothing to draw from: logits that are NaN, or a temperature so near 0 that they overflow.
    """
    scaled = apply_temperature(logits, temperature)
    scaled = scaled if top_k is None else keep_top_k(scaled, top_k)
    scaled = scaled if top_p is None else keep_top_p(scaled, top_p)
    chances = scaled.softmax(dim=-1)
    if chances[:, 0].isnan().any():  # one NaN makes a whole row NaN; on a GPU, drawing from it would end the process
        if logits.isnan().any() or logits.isposinf().any() or logits.isneginf().all(dim=-1).any():
            raise ValueError(
                "The model's logits leave nothing to draw from: NaN or +∞ is among them, or −∞ alone. Look whether its"
                " weights are finite; those of a training that diverged are not."
            )
        raise ValueError(
            f"Divided by a temperature of {temperature} the logits overflow. Temperature 0 takes the most probable"
            " token."
        )
    return torch.multinomial(chances, 1, generator=generator)


@torch.no_grad()
def sliding_window_bits(model: nn.Module, data: torch.Tensor, t: int, batch: int = 32) -> float:
    """Bits per byte when every byte is predicted from the t bytes before it (from fewer at the beginning).

    data: (length,), integers. Bytes 1 to length − 1 are predicted; the first has nothing before it. batch: how many
    windows go through the model at once. ValueError when the text is shorter than two bytes.
    """
    if batch < 1 or t < 1:
        raise ValueError(f"At least one window of at least one byte goes through the model; not {batch} of t = {t}.")
    require_text(data, 2)
    data = data.long()
    head = data[: t + 1].unsqueeze(0)  # the first window predicts all of its bytes
    parts = (
        data.unfold(0, t + 1, 1)[1:].split(batch) if len(data) > t + 1 else ()
    )  # each window ends one byte later than the one before
    with evaluating(model):
        nats = F.cross_entropy(model(head[:, :-1])[0], head[0, 1:], reduction="sum").item()
        for part in parts:
            nats += F.cross_entropy(model(part[:, :-1])[:, -1], part[:, -1], reduction="sum").item()
    return bits_per_byte(nats / (len(data) - 1))


##### What cannot be written with, or learned from


def require_prompt(prompt: torch.Tensor, count: int) -> None:
    """ValueError unless one can go on with `prompt`, ids (b, t), by `count` tokens."""
    if prompt.dim() != 2:
        remedy = "; one prompt is ids.unsqueeze(0)" if prompt.dim() == 1 else ""
        raise ValueError(f"A prompt is ids of the shape (b, t), and this one is {tuple(prompt.shape)}{remedy}.")
    if prompt.shape[1] == 0:
        raise ValueError(
            "The prompt is empty, and a model goes on from what stands there: give at least one token, such as a line"
            " feed or the token between two texts."
        )
    require_ids(prompt)
    if count < 0:
        raise ValueError(f"The number of tokens to write is 0 or more, and count is {count}.")


def require_ids(ids: torch.Tensor) -> None:
    """ValueError unless ids, of any shape (...), are of the integers that an embedding takes."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"Ids are int64, and these are {ids.dtype}: ids.long() where they are whole numbers.")


def require_text(data: torch.Tensor, shortest: int) -> None:
    """ValueError unless `data` is one row, (length,), of at least `shortest` entries."""
    if data.dim() != 1:
        raise ValueError(f"A text is a row of integers, (length,), and this one has the shape {tuple(data.shape)}.")
    if len(data) < shortest:
        raise ValueError(
            f"A text of length {len(data)} is too short: at least {shortest} entries are needed here. Take a longer"
            " text, or a smaller t."
        )
