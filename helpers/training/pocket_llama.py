"""Lesson 18's model on the text of lesson 12: python -m helpers.training.pocket_llama

A Llama as large as the pocket GPT-2 (`helpers.training.pocket_gpt2`), with its text, tokens, windows, steps and
schedule. Then short trainings: the same model, with each of its five changes taken back, one at a time, and the pocket
GPT-2, with which all are taken back. An hour on two cores is meant. The long training, when it is stopped, goes on from
its last checkpoint.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from helpers.data.model_files import POCKET
from helpers.data.sources import stdlib_sources
from helpers.device import device
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.generator import bits_per_byte
from helpers.parts.llama import GroupedQueryAttention, Llama, LlamaConfig, RMSNorm
from helpers.parts.masks import causal_mask, masked_softmax
from helpers.parts.multi_head import split_heads
from helpers.training import pocket_gpt2, pocket_gpt2_figures
from helpers.training.common import Optimiser, Record, arguments, precision, settings_of

MODEL = {"e": 192, "h": 6, "groups": 2, "depth": 4, "hidden": 620, "tied": True, "t_max": 256}
SHORT = 300  # steps of each training with something taken back
ALL_BACK = "all of them: GPT-2"
# What is taken back, and the hidden width with which the model keeps its size.
TAKEN_BACK = {
    "nothing": 620,
    "RMSNorm for LayerNorm": 620,
    "SwiGLU for GELU": 930,
    "rotary for learned positions": 599,
    "grouped queries for a key a head": 535,
    "no biases for biases": 618,
    ALL_BACK: 768,
}

##### Taking a change back


class Unturned(GroupedQueryAttention):
    """Grouped-query attention that knows no positions."""

    def turned(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x as it is, (b, heads, t, d)."""
        return x


class Positioned(nn.Embedding):
    """A table of tokens, and one of positions that is added, as GPT-2 has it; it starts as small sinusoids."""

    def __init__(self, n: int, e: int, t_max: int):
        super().__init__(n, e)
        self.positions = nn.Embedding(t_max, e)
        with torch.no_grad():
            self.positions.weight.copy_(pocket_gpt2.POSITIONS * pocket_gpt2.sinusoids(t_max, e))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (b, t). Returns (b, t, e)."""
        return super().forward(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))


class Widening(nn.Module):
    """A feed-forward network with one hidden layer and GELU, without biases."""

    def __init__(self, e: int, hidden: int):
        super().__init__()
        self.widen = nn.Linear(e, hidden, bias=False)
        self.down = nn.Linear(hidden, e, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        return self.down(gpt2.gelu_tanh(self.widen(x)))


def exchanged(model: nn.Module, kind: type[nn.Module], make: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """The model with each module of a kind exchanged for make(module)."""
    for name, module in list(model.named_modules()):
        if type(module) is kind:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, make(module))
    return model


def fresh_model(n: int, taken_back: str = "nothing") -> nn.Module:
    """A model to train, as `pocket_gpt2.fresh_model` makes them, with something taken back: a key of TAKEN_BACK."""
    if taken_back == ALL_BACK:
        return pocket_gpt2.fresh_model(gpt2.Config(n=n, **pocket_gpt2.MODEL))
    config = LlamaConfig(n=n, **MODEL | {"hidden": TAKEN_BACK[taken_back]})
    if taken_back == "grouped queries for a key a head":
        config = dataclasses.replace(config, groups=config.h)
    model = Llama(config)
    if taken_back == "SwiGLU for GELU":
        for block in model.blocks:
            block.feed_forward = Widening(config.e, config.hidden)
    if taken_back == "rotary for learned positions":
        model.tokens = Positioned(config.n, config.e, config.t_max)
        for block in model.blocks:
            block.attention = Unturned(config.e, config.h, config.groups)
    if taken_back == "RMSNorm for LayerNorm":
        exchanged(model, RMSNorm, lambda norm: nn.LayerNorm(len(norm.weight), eps=norm.eps))
    if taken_back == "no biases for biases":
        exchanged(model, nn.Linear, lambda layer: nn.Linear(layer.in_features, layer.out_features))
    return _started(model, config)


@torch.no_grad()
def _started(model, config):
    """Matrices √(768/e) times as wide as N(0, 0.02), those that are added to x narrower; biases 0, as lesson 12's."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif name == "tokens.weight":
            parameter.normal_(0, 0.02)
        elif parameter.dim() == 2 and name != "tokens.positions.weight":
            parameter.normal_(0, 0.02 * math.sqrt(768 / config.e))
            if name.endswith(("unify.weight", "down.weight")):
                parameter.div_(math.sqrt(2 * config.depth))
    return model


##### Training


@torch.no_grad()
def held_out_bits(model: nn.Module, held_out: torch.Tensor, per_byte: float, count: int = 64) -> float:
    """Held-out bits per byte on a sample of windows, as `pocket_gpt2.look` has them."""
    t = MODEL["t_max"]
    starts = torch.linspace(0, len(held_out) - t - 1, count).long()
    rows = held_out[starts[:, None] + torch.arange(t + 1)].to(device())
    with precision():
        logits = model(rows[:, :-1])[:, t // 2 :]
    nats = F.cross_entropy(logits.float().flatten(0, 1), rows[:, t // 2 + 1 :].flatten()).item()
    return bits_per_byte(nats * per_byte)


@torch.no_grad()
def attention_weights(model: Llama, ids: torch.Tensor) -> torch.Tensor:
    """Who looks at whom in every block and head. ids: (b, t). Returns (depth, b, h, t, t)."""
    x, weights, t = model.tokens(ids), [], ids.shape[1]
    positions, mask = torch.arange(t, device=ids.device), causal_mask(t, ids.device)
    for block in model.blocks:
        attention, inside = block.attention, block.norm1(x)
        q = attention.turned(split_heads(attention.to_queries(inside), attention.h), positions)  # (b, h, t, d)
        k = attention.turned(split_heads(attention.to_keys(inside), attention.groups), positions)
        k = k.repeat_interleave(attention.h // attention.groups, dim=1)
        weights.append(masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask))
        x = block(x)
    return torch.stack(weights)


def best_scores(model: Llama, held_ids: torch.Tensor, n: int) -> dict[str, float]:
    """Of all heads the best at the token before, and the best at copying, as in `pocket_gpt2_figures`."""
    w = 64
    rows, random = pocket_gpt2_figures.texts_for_heads(held_ids, n, MODEL["t_max"], w, count=32)
    on_text = torch.cat([attention_weights(model, part) for part in rows.split(8)], dim=1)
    on_random = attention_weights(model, pocket_gpt2_figures.twice(random))
    return {
        "previous_token": round(gpt2.previous_score(on_text).mean(dim=1).max().item(), 4),
        "induction_random": round(gpt2.induction_score(on_random, w).mean(dim=1).max().item(), 4),
    }


def short_run(
    taken_back: str, steps: int, train_ids: torch.Tensor, held_ids: torch.Tensor, n: int, per_byte: float
) -> dict:
    """What a short training reaches with something taken back: parameters, seconds, held-out bits per byte."""
    torch.manual_seed(0)
    model = fresh_model(n, taken_back).to(device())
    record = Record("pocket_llama", {}, {})
    warmup = min(pocket_gpt2.WARMUP, max(1, steps // 3))
    rates = pocket_gpt2.RATE, steps, warmup, pocket_gpt2.DECAY, pocket_gpt2.EMBEDDING_RATE
    with pocket_gpt2.two_threads() as pool:
        optimiser = Optimiser(model, *rates, schedule=pocket_gpt2.rate_share, at_once=pool.map)
        for step in range(steps):
            pocket_gpt2.gradients(model, *pocket_gpt2.windows(train_ids, n, step, steps), pool)
            optimiser.step()
    seconds, processor = record.clock()
    reached = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "held_out_bits": round(held_out_bits(model, held_ids, per_byte), 4),
    }
    print(f"taken back: {taken_back}: {reached}", flush=True)
    return reached


def described(model: Llama, n: int, steps: int) -> dict[str, object]:
    """The settings of the long training, for its record."""
    return settings_of(
        model,
        n=n,
        **MODEL,
        batch=pocket_gpt2.BATCH,
        steps=steps,
        tokens=steps * pocket_gpt2.BATCH * MODEL["t_max"],
        short_steps=min(SHORT, steps),
        rate=pocket_gpt2.RATE,
        embedding_rate=pocket_gpt2.EMBEDDING_RATE,
        warmup=pocket_gpt2.WARMUP,
        decay=pocket_gpt2.DECAY,
        optimiser="Muon, AdamW for embeddings and norms",
        schedule="rates, windows and echoes as the pocket GPT-2's",
        threads="two, each with half of a batch",
    )


def main() -> None:
    """The whole run: data, the long training, the short ones, record."""
    options = arguments()
    steps = options.steps or pocket_gpt2.STEPS
    short = min(SHORT, steps)
    torch.manual_seed(0)
    sources = stdlib_sources()
    train_texts, held_texts = pocket_gpt2.learned_and_held_out(sources)
    tokenizer = Tokenizer.from_folder(POCKET)
    train_ids, held_ids = (pocket_gpt2.as_ids(texts, tokenizer) for texts in (train_texts, held_texts))
    n = len(tokenizer)
    model = fresh_model(n).to(device())
    settings = described(model, n, steps)
    about = pocket_gpt2.about(sources, train_ids, held_ids, held_texts) | {"tokenizer": "the pocket GPT-2's"}
    record = Record("pocket_llama", about, settings)
    checkpoint = pocket_gpt2.checkpoint_for(record, options.to)
    per_byte = (len(held_ids) - 1) / about["held_out_bytes"]
    pocket_gpt2.train(
        model,
        lambda step: pocket_gpt2.windows(train_ids, n, step, steps),
        steps,
        record,
        checkpoint,
        lambda: {"held_out_bits": held_out_bits(model, held_ids, per_byte)},
    )
    model = model.to("cpu").eval()
    judged = held_ids[:2000] if options.attempt else held_ids
    nats = math.log(gpt2.perplexity(model, judged, MODEL["t_max"] // 2))
    result = {
        "held_out_nats": round(nats, 4),
        "held_out_bits_per_byte": round(bits_per_byte(nats * per_byte), 4),
        "context": "as the pocket GPT-2's record says",
        "heads": best_scores(model, held_ids, n),
        "taken_back": {
            what: short_run(what, 3 if options.attempt else short, train_ids, held_ids, n, per_byte)
            for what in TAKEN_BACK
        },
    }
    if options.note:
        result["note"] = options.note
    record.finish(options, result)
    checkpoint.path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
