"""GPT-2 (lesson 12): the model, its published weights, and writing with it.

A. Radford et al., "Language models are unsupervised multitask learners" (2019), section 2.3, and the code published
with it.

b batch, t positions (queries), s positions (keys and values), e width of the model, h heads, d = e/h width of one head,
n size of the vocabulary.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from helpers.course import stands_in, write_whole, written_whole

from .evaluating import evaluating
from .generator import draw, require_ids, require_prompt
from .masks import causal_mask, masked_softmax
from .multi_head import merge_heads, split_heads
from .weight_files import first_line, of_nano, read_weights

##### Sizes

_PUBLISHED = {  # width, heads, blocks
    "gpt2": (768, 12, 12),
    "gpt2-medium": (1024, 16, 24),
    "gpt2-large": (1280, 20, 36),
    "gpt2-xl": (1600, 25, 48),
    "distilgpt2": (768, 12, 6),
}


@dataclass(frozen=True)
class Config:
    """How large a GPT-2 is.

    n: size of the vocabulary. t_max: longest window. e: width, divisible by h. h: heads. depth: how many blocks.
    epsilon: of the norms. hidden: width of the hidden layer of the feed-forward networks, 4e when it is None. dropout:
    chance with which a component is dropped in training, of the embeddings and of what the layers add.
    """

    n: int
    t_max: int
    e: int
    h: int
    depth: int
    epsilon: float = 1e-5
    hidden: int | None = None
    dropout: float = 0.0

    def __post_init__(self):
        for name in ("n", "t_max", "e", "h", "depth"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} should be a whole number above 0, and is {value!r}.")
        if self.hidden is not None and (type(self.hidden) is not int or self.hidden < 1):
            raise ValueError(f"hidden should be a whole number above 0, or None, and is {self.hidden!r}.")
        if not (_is_number(self.epsilon) and 0 < self.epsilon < math.inf):
            raise ValueError(
                f"epsilon (layer_norm_epsilon in a config.json) should be a number above 0, and is {self.epsilon!r}."
            )
        if not (_is_number(self.dropout) and 0 <= self.dropout <= 1):
            raise ValueError(
                f"dropout (resid_pdrop in a config.json) should be a number from 0 to 1, and is {self.dropout!r}."
            )
        if self.e % self.h:
            raise ValueError(f"A width of e = {self.e} cannot be divided evenly among h = {self.h} heads.")

    @classmethod
    def published(cls, name: str) -> Config:
        """The sizes that were published: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", and "distilgpt2"."""
        if name not in _PUBLISHED:
            raise ValueError(f"The published sizes are {', '.join(_PUBLISHED)}; not {name!r}.")
        e, h, depth = _PUBLISHED[name]
        return cls(n=50257, t_max=1024, e=e, h=h, depth=depth)

    @classmethod
    def from_json(cls, path: str | Path) -> Config:
        """Read a config.json as the Hub has it.

        ValueError where it is damaged, or is not a GPT-2 as this module builds it.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {path.parent}.")
        if not path.is_file():
            raise FileNotFoundError(f"A model needs config.json, and {path.parent} has none.{of_nano(path.parent)}")
        if stranger := stands_in(path):
            raise ValueError(f"config.json is damaged: it is {stranger}.")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            raise ValueError(f"{path.name} is damaged: it is not JSON.") from None
        if not isinstance(found, dict):
            raise ValueError(f"{path.name} is damaged: it should be a table of settings.")
        for setting, usual in _ONLY.items():
            if found.get(setting, usual[0]) not in usual:
                raise ValueError(
                    f"{path.name} asks for {setting} = {found[setting]!r}, and this GPT-2 knows only {usual[0]!r}."
                )
        names = {"n": "vocab_size", "t_max": "n_positions", "e": "n_embd", "h": "n_head", "depth": "n_layer"}
        missing = [theirs for theirs in names.values() if theirs not in found]
        if missing:
            raise ValueError(f"{path.name} is damaged: it does not say {' nor '.join(missing)}.")
        try:
            return cls(
                **{ours: found[theirs] for ours, theirs in names.items()},
                hidden=found.get("n_inner"),
                epsilon=found.get("layer_norm_epsilon", 1e-5),
                dropout=found.get("resid_pdrop", 0.1),
            )
        except ValueError as problem:
            raise ValueError(f"{path.name} is damaged: {problem}") from None

    def to_json(self) -> dict[str, object]:
        """The settings as the Hub's config.json has them, a dict."""
        return {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "activation_function": "gelu_new",
            "vocab_size": self.n,
            "n_positions": self.t_max,
            "n_ctx": self.t_max,
            "n_embd": self.e,
            "n_head": self.h,
            "n_layer": self.depth,
            "n_inner": self.hidden,
            "layer_norm_epsilon": self.epsilon,
            "initializer_range": 0.02,
            "embd_pdrop": self.dropout,
            "resid_pdrop": self.dropout,
            "attn_pdrop": 0.0,
            "bos_token_id": self.n - 1,
            "eos_token_id": self.n - 1,
            "tie_word_embeddings": True,
        }


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# What a config.json may say besides the sizes; the first is what is meant where it says nothing.
_ONLY = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True,),
}


##### The model


class Conv1D(nn.Module):
    """A linear layer whose weight is stored as (n_in, n_out), as GPT-2's were published: nn.Linear's, transposed."""

    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., n_in). Returns (..., n_out)."""
        return F.linear(x, self.weight.T, self.bias)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """x·Φ(x), Φ the normal distribution function, approximated: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))).

    D. Hendrycks and K. Gimpel, "Gaussian error linear units" (2016), section 2. x: any shape, which the result has too.
    """
    return F.gelu(x, approximate="tanh")


class CausalAttention(nn.Module):
    """Multi-head self-attention in which nobody looks ahead.

    One layer makes queries, keys and values, in this order, side by side.
    """

    def __init__(self, e: int, h: int):
        super().__init__()
        self.h = h
        self.to_qkv = Conv1D(e, 3 * e)
        self.unify = Conv1D(e, e)

    def forward(self, x: torch.Tensor, past: LayerCache | None = None) -> torch.Tensor:
        """x: (b, t, e). past: keys and values of earlier positions, a LayerCache, to which those of x are added.

        Returns (b, t, e).
        """
        q, k, v = self._project(x)  # (b, h, t, d)
        if past is not None:
            k, v = past.append(k, v)  # (b, h, s, d), s = earlier positions + t
        t, s = q.shape[-2], k.shape[-2]
        # without a past no size is looked at: what is traced, exported or compiled then holds for every t
        if past is None or t == s:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif t == 1:  # one position, which sees everything
            out = F.scaled_dot_product_attention(q, k, v)
        else:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(s, x.device)[s - t :])  # (t, s)
        return self.unify(merge_heads(out))

    def weights(self, x: torch.Tensor) -> torch.Tensor:
        """Who looks at whom, for pictures. x: (b, t, e). Returns (b, h, t, t)."""
        q, k, _ = self._project(x)
        return masked_softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), causal_mask(x.shape[1], x.device))

    def _project(self, x):
        return (split_heads(part, self.h) for part in self.to_qkv(x).chunk(3, dim=-1))


class FeedForward(nn.Module):
    """A network with one hidden layer and tanh-GELU, the same at every position."""

    def __init__(self, e: int, hidden: int):
        super().__init__()
        self.widen = Conv1D(e, hidden)
        self.narrow = Conv1D(hidden, e)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        return self.narrow(gelu_tanh(self.widen(x)))


class GPT2Block(nn.Module):
    """Attention and a feed-forward network, each with a norm before it and a shortcut around both."""

    def __init__(self, config: Config):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.e, eps=config.epsilon)
        self.attention = CausalAttention(config.e, config.h)
        self.norm2 = nn.LayerNorm(config.e, eps=config.epsilon)
        self.feed_forward = FeedForward(config.e, config.hidden or 4 * config.e)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: torch.Tensor, past: LayerCache | None = None) -> torch.Tensor:
        """x: (b, t, e). past: as CausalAttention takes it. Returns (b, t, e)."""
        x = x + self.dropout(self.attention(self.norm1(x), past))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class GPT2(nn.Module):
    """Predicts, at every position, the next token.

    The table of tokens serves twice: at the entrance, and as the output layer ("tied").

    Weights start as N(0, 0.02), those of the layers that are added to x as N(0, 0.02/√(2·depth)), biases as 0.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config, self.t_max = config, config.t_max
        self.tokens = nn.Embedding(config.n, config.e)
        self.positions = nn.Embedding(config.t_max, config.e)
        self.blocks = nn.ModuleList([GPT2Block(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(config.e, eps=config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)
        for block in self.blocks:
            for layer in (block.attention.unify, block.feed_forward.narrow):
                nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * config.depth))

    def embed(self, ids: torch.Tensor, start: int = 0) -> torch.Tensor:
        """What enters the first block. ids: (b, t), the tokens at positions start to start + t − 1. Returns (b, t, e).

        ValueError where a position is t_max or more.
        """
        if ids.dim() != 2:
            raise ValueError(f"The model reads ids (b, t), and these have the shape {tuple(ids.shape)}.")
        t = ids.shape[1]
        if not torch.jit.is_tracing() and start + t > self.t_max:  # a trace would note one answer for ever
            raise ValueError(f"A window of {start + t} tokens is too long: this model has {self.t_max} positions.")
        return self.dropout(self.tokens(ids) + self.positions(torch.arange(start, start + t, device=ids.device)))

    def forward(self, ids: torch.Tensor, cache: KeyValueCache | None = None, last_only: bool = False) -> torch.Tensor:
        """ids: (b, t), int64. cache: a KeyValueCache of the positions before these, to which these are added.

        Returns logits (b, t, n): at position i those of token i + 1. With last_only those of the last position alone,
        (b, 1, n).
        """
        if cache is not None and len(cache.layers) != len(self.blocks):
            raise ValueError(f"The cache is for {len(cache.layers)} blocks, and the model has {len(self.blocks)}.")
        x = self.embed(ids, 0 if cache is None else cache.length)
        for i, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache.layers[i])
        x = self.norm(x[:, -1:] if last_only else x)
        return F.linear(x, self.tokens.weight)  # (b, t, e) times (e, n): the tied head, which has no bias

    def attention_weights(self, ids: torch.Tensor) -> torch.Tensor:
        """Who looks at whom in every block and head, for pictures. ids: (b, t).

        Returns (depth, b, h, t, t), without gradients.
        """
        with torch.no_grad():
            x, weights = self.embed(ids), []
            for block in self.blocks:
                weights.append(block.attention.weights(block.norm1(x)))
                x = block(x)
        return torch.stack(weights)


class LayerCache:
    """The keys and values that one block has computed so far, in memory for `size` positions that is set aside once."""

    def __init__(self, size: int):
        self.size, self.length = size, 0
        self.keys = self.values = None  # (b, h, size, d), once there are some

    def append(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """k, v: (b, h, t, d), of the next t positions. Returns those of all positions so far, (b, h, s, d)."""
        b, h, t, d = k.shape
        if self.keys is None:
            self.keys, self.values = k.new_empty(b, h, self.size, d), v.new_empty(b, h, self.size, d)
        if len(self.keys) != b:
            raise ValueError(
                f"The cache holds a batch of {len(self.keys)} texts, and these are {b}: make one for each."
            )
        end = self.length + t
        if end > self.size:
            raise ValueError(f"The cache has room for {self.size} positions, and these would be {end}.")
        self.keys[:, :, self.length : end], self.values[:, :, self.length : end] = k, v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]


class KeyValueCache:
    """The keys and values of all blocks for the positions that a model has read: they need not be computed again.

    depth: how many blocks. size: for how many positions there is room. For generation, without gradients.
    """

    def __init__(self, depth: int, size: int):
        self.layers = [LayerCache(size) for _ in range(depth)]

    @property
    def length(self) -> int:
        """How many positions have been read."""
        return self.layers[0].length


##### Writing


@torch.no_grad()
def generate(
    model: GPT2,
    ids: torch.Tensor,
    count: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Go on with a text, one token after the other, computing the whole window anew for each.

    ids: (b, t), int64, t ≥ 1. Returns (b, count): what was drawn, without the prompt. The model sees the last t_max
    tokens, the first of them at position 0. Temperature (0: the most probable token) comes first, then top-k, then
    top-p. The model is in evaluation mode meanwhile, and afterwards in the mode it was in before. ValueError for a
    prompt or a setting that nothing can be drawn with.
    """
    require_prompt(ids, count)
    _require_known(model, ids)
    tokens = ids
    with evaluating(model):
        for _ in range(count):
            logits = model(tokens[:, -model.t_max :], last_only=True)[:, -1]  # (b, n)
            tokens = torch.cat([tokens, draw(logits, temperature, top_k, top_p, generator)], dim=1)
    return tokens[:, ids.shape[1] :]


@torch.no_grad()
def generate_cached(
    model: GPT2,
    ids: torch.Tensor,
    count: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """The same tokens as `generate`, with keys and values kept: each new token goes through the model alone.

    ids: (b, t), int64, t ≥ 1. Returns (b, count). The other arguments are those of `generate`.

    Once the window is full every token moves to another position at every step, so what is kept no longer holds: from
    then on the window is computed anew, as in `generate`.
    """
    require_prompt(ids, count)
    _require_known(model, ids)
    tokens, t = ids, ids.shape[1]
    cache = KeyValueCache(model.config.depth, min(model.t_max, t + count))
    with evaluating(model):
        for _ in range(count):
            if tokens.shape[1] <= model.t_max:
                # the prompt first, then one token at a time
                logits = model(tokens[:, cache.length :], cache, last_only=True)[:, -1]
            else:
                logits = model(tokens[:, -model.t_max :], last_only=True)[:, -1]
            tokens = torch.cat([tokens, draw(logits, temperature, top_k, top_p, generator)], dim=1)
    return tokens[:, t:]


def _require_known(model, ids):
    """Once a text, and not in the model: looking at a value there would make a GPU wait, and forbid compiling."""
    # a model of another make may have no config, and then it says itself what it does not know
    n = getattr(getattr(model, "config", None), "n", None)
    if n is None or ids.numel() == 0:
        return
    low, high = (int(end) for end in ids.aminmax())
    if low < 0 or high >= n:
        raise ValueError(
            f"The id {low if low < 0 else high} is none of this model's {n} tokens, 0 to {n - 1}: were the ids made by"
            " the tokenizer that belongs to it?"
        )


@torch.no_grad()
def perplexity(model: GPT2, ids: torch.Tensor, stride: int | None = None) -> float:
    """e to the mean cross-entropy of every token but the first.

    As if the model hesitated between so many equally likely tokens.

    ids: (length,), int64, at least two. The text goes through in windows of t_max tokens that start every `stride`
    tokens, t_max when it is None: then they do not overlap, and the first predictions of a window are made from little.
    With a smaller stride only those of a window count that no window before has made, so that each (past the first
    window) is made from at least t_max − stride + 1 tokens. Returns a number.
    """
    stride = model.t_max if stride is None else stride
    if ids.dim() != 1 or len(ids) < 2:
        raise ValueError(f"Perplexity needs a row of at least two tokens, and got the shape {tuple(ids.shape)}.")
    if not 1 <= stride <= model.t_max:
        raise ValueError(f"A stride is between 1 and t_max = {model.t_max}, or tokens would be left out; not {stride}.")
    require_ids(ids)
    _require_known(model, ids)
    nats, done = 0.0, 0  # tokens 1 to `done` have been predicted
    with evaluating(model):
        for start in range(0, len(ids) - 1, stride):
            window = ids[start : start + model.t_max + 1]  # one more than the model reads: the last target
            losses = F.cross_entropy(model(window[None, :-1])[0].float(), window[1:], reduction="none")
            nats += losses[done - start :].sum().item()
            done = start + len(window) - 1
            if done == len(ids) - 1:
                break
    return _exp(nats / done)


def _exp(nats):
    """e to so many nats: infinity where that is too large for a number, as with a token that was held impossible."""
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


##### Heads


def even_weights(t: int) -> torch.Tensor:
    """What a head without a preference would have: each position the same weight on all that it may see. (t, t)."""
    return torch.ones(t, t).tril() / torch.arange(1, t + 1).unsqueeze(-1)


def previous_score(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight on the token before, of all positions but the first. weights: (..., t, t). Returns (...)."""
    return weights.diagonal(-1, -2, -1).mean(dim=-1)


def first_score(weights: torch.Tensor) -> torch.Tensor:
    """The mean weight on the first token, of all positions but the first two. weights: (..., t, t). Returns (...)."""
    return weights[..., 2:, 0].mean(dim=-1)


def induction_score(weights: torch.Tensor, period: int) -> torch.Tensor:
    """The mean weight on what followed the same token before.

    weights: (..., t, t), of a text that comes again after `period` tokens: the token at i is the one at i − period,
    which i − period + 1 followed. All i from period to t − 1 count. Returns (...). ValueError unless 1 ≤ period < t:
    nothing would come again.
    """
    t = weights.shape[-1]
    if not 1 <= period < t:
        raise ValueError(f"In {t} tokens something comes again after 1 to {t - 1}, and period is {period}.")
    return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(dim=-1)


@contextlib.contextmanager
def switched_off(model: GPT2, *heads: tuple[int, int]) -> Iterator[GPT2]:
    """The model without some heads, as long as the `with` lasts: what they have gathered becomes 0.

    heads: (block, head), both counted from 0. Yields the model. IndexError for a head that it does not have.
    """
    for block, head in heads:
        if not (0 <= block < model.config.depth and 0 <= head < model.config.h):
            raise IndexError(
                f"There is no head {head} in a block {block}: blocks are 0 to {model.config.depth - 1}, heads 0 to"
                f" {model.config.h - 1}."
            )
    hooks = [
        model.blocks[block].attention.unify.register_forward_pre_hook(_silence(model, head)) for block, head in heads
    ]
    try:
        yield model
    finally:
        for hook in hooks:
            hook.remove()


def _silence(model, head):
    """A hook before `unify`, whose input (b, t, e) holds the heads side by side, d numbers each."""
    d = model.config.e // model.config.h

    def hook(layer, given):
        heard = torch.ones(model.config.e, device=given[0].device)
        heard[head * d : (head + 1) * d] = 0
        return (given[0] * heard,)

    return hook


##### Published weights

_OF_MODEL = {
    "wte.weight": "tokens.weight",
    "wpe.weight": "positions.weight",
    "ln_f.weight": "norm.weight",
    "ln_f.bias": "norm.bias",
}
_OF_BLOCK = {
    "ln_1": "norm1",
    "attn.c_attn": "attention.to_qkv",
    "attn.c_proj": "attention.unify",
    "ln_2": "norm2",
    "mlp.c_fc": "feed_forward.widen",
    "mlp.c_proj": "feed_forward.narrow",
}
_PREFIX, _HEAD = "transformer.", "lm_head.weight"


def rename_weights(published: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The published tensors under this module's names.

    published: dict from name to tensor, as the Hub's files have them, with or without "transformer." before the
    names, and with what `torch.compile` ("_orig_mod.") and DistributedDataParallel ("module.") put there. The masks
    that older files hold (attn.bias, attn.masked_bias) are left out, and so is lm_head.weight, which must equal the
    table of tokens. Returns a dict, the tensors (...) as they are. ValueError for names that
    GPT-2 does not have, all of them named.
    """
    renamed, problems = _rename(published)
    if problems:
        raise ValueError("These are not GPT-2's weights:\n" + "\n".join(problems))
    return renamed


def _rename(published):
    """(tensors under our names, what is wrong with the others, a line each)."""
    renamed, problems = {}, []
    for name, tensor in published.items():
        ours = _our_name(name)
        if ours is None:
            problems.append(f"  unexpected: {name}")
        elif ours in renamed:
            problems.append(f"  twice, with and without what may stand before it: {name}")
        elif ours:
            renamed[ours] = tensor
    head, table = renamed.pop(_HEAD, None), renamed.get("tokens.weight")
    if head is not None and table is not None and not _equal(head, table):
        problems.append(f"  {_HEAD} differs from wte.weight, and GPT-2 has one table for both")
    return renamed, problems


def _equal(a, b):
    """The same tensor? Where both have NaN too: that it is NaN is told elsewhere."""
    return a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


def _our_name(name):
    """Our name of a published tensor: "" for a mask, which is no weight, and None where there is none."""
    name = _unwrapped(name)
    if name == _HEAD:
        return _HEAD
    name = name.removeprefix(_PREFIX)
    block = re.fullmatch(r"h\.(0|[1-9][0-9]*)\.(.+)\.(weight|bias|masked_bias)", name)
    if not block:
        return _OF_MODEL.get(name)
    number, path, kind = block.groups()
    if path == "attn" and kind != "weight":
        return ""
    return f"blocks.{number}.{_OF_BLOCK[path]}.{kind}" if path in _OF_BLOCK and kind != "masked_bias" else None


def _unwrapped(name):
    """A name without the marks of the wrappers that a model may have been in when it was saved."""
    return name.removeprefix("module.").replace("_orig_mod.", "")


def _published_name(name):
    """The other way round."""
    block = re.fullmatch(r"blocks\.(\d+)\.(.+)\.(\w+)", name)
    if block:
        path = next(theirs for theirs, ours in _OF_BLOCK.items() if ours == block[2])
        return f"h.{block[1]}.{path}.{block[3]}"
    return next(theirs for theirs, ours in _OF_MODEL.items() if ours == name)


def load(folder: str | Path, device: torch.device | str | None = None) -> GPT2:
    """A model from a folder as the Hub has it: config.json, and model.safetensors or the older pytorch_model.bin.

    Either may be in several files, with an index beside them. A .bin may also be a checkpoint of nanoGPT, {"model":
    ...}, whose matrices are the other way round and whose biases may be missing; its networks were trained with the
    exact GELU, from which this model's differs by less than 0.001. Nothing in a file is run, whatever it holds: a .bin
    is read by PyTorch's loader for weights alone. Where one file is damaged and another is whole, that is taken, with a
    warning. Weights become float32. The model is in evaluation mode. FileNotFoundError where a file is missing;
    ValueError where all are damaged, or where a tensor is missing, unexpected, of the wrong shape or not finite (the
    message names each).
    """
    folder = Path(folder)
    config = Config.from_json(folder / "config.json")
    published, settings, name = read_weights(folder)
    renamed, problems = _rename(published)
    expected = _expected(config, renamed, name)
    problems += _disagreements(settings, config)
    renamed = _as_published(renamed, expected, settings)
    problems += [
        f"  missing: {_published_name(ours)} {tuple(expected[ours].shape)}" for ours in expected if ours not in renamed
    ]
    for ours, tensor in renamed.items():
        theirs = _published_name(ours)
        if ours not in expected:
            problems.append(
                f"  unexpected: {theirs} (config.json says {config.depth} blocks)"
            )  # the only way a known name can be too much
        elif tensor.shape != expected[ours].shape:
            problems.append(
                f"  wrong shape: {theirs} is {tuple(tensor.shape)} and should be {tuple(expected[ours].shape)}"
            )
        elif tensor.layout != torch.strided or not tensor.is_floating_point() or tensor.is_meta:
            problems.append(f"  no weights: {theirs} holds {tensor.dtype}, {tensor.layout}, on {tensor.device}")
    if problems:
        raise ValueError(f"{name} does not fit the model of config.json:\n" + "\n".join(problems))
    weights = {ours: tensor.to(torch.float32).contiguous() for ours, tensor in renamed.items()}
    _require_finite(weights, name)
    with torch.device("meta"):  # shapes alone: the weights come from the file
        model = GPT2(config)
    model.load_state_dict({ours: tensor.to(device or "cpu") for ours, tensor in weights.items()}, assign=True)
    model.requires_grad_(True)
    return model.eval()


def _expected(config, renamed, name):
    """{our name: tensor without content}: what a file for this config holds."""
    blocks = len({ours.split(".")[1] for ours in renamed if ours.startswith("blocks.")})
    if config.depth > blocks + 100:  # a damaged config.json may ask for more than there is memory to describe
        raise ValueError(
            f"{name} does not fit the model of config.json: it has {blocks} blocks, and config.json"
            f" says {config.depth}."
        )
    try:
        with torch.device("meta"):
            return GPT2(config).state_dict()
    except (RuntimeError, OverflowError, TypeError) as problem:  # sizes beyond what a tensor can have
        raise ValueError(f"config.json is damaged: no model has such sizes ({first_line(problem)}).") from None


_MATRICES = (
    "attention.to_qkv.weight",
    "attention.unify.weight",
    "feed_forward.widen.weight",
    "feed_forward.narrow.weight",
)


def _as_published(renamed, expected, settings):
    """nanoGPT's tensors as OpenAI published theirs: matrices (n_in, n_out), and a bias everywhere.

    The matrix for queries, keys and values is never square, so it tells which way round all of them are. A bias that
    was left out is one of 0.
    """
    tell = [ours for ours in renamed if ours.endswith(_MATRICES[0]) and ours in expected]
    if tell and all(renamed[ours].shape == expected[ours].shape[::-1] for ours in tell):
        renamed = {
            ours: tensor.T if ours.endswith(_MATRICES) and tensor.dim() == 2 else tensor
            for ours, tensor in renamed.items()
        }
    if settings.get("bias") is False:
        left_out = [ours for ours in expected if ours.endswith("bias") and ours not in renamed]
        renamed = renamed | {ours: torch.zeros(expected[ours].shape) for ours in left_out}
    return renamed


def _disagreements(settings, config):
    """Where a checkpoint of nanoGPT and config.json do not say the same, a line each. (Heads show in no shape.)"""
    theirs = {"n_layer": config.depth, "n_head": config.h, "n_embd": config.e}
    theirs |= {"block_size": config.t_max, "vocab_size": config.n}
    return [
        f"  {name} is {settings[name]} in the checkpoint and {value} in config.json"
        for name, value in theirs.items()
        if settings.get(name, value) != value
    ]


def _require_finite(weights, name):
    """ValueError that names the tensors with NaN or infinity. The smallest and largest entry tell of both."""
    strange = [ours for ours, tensor in weights.items() if not torch.stack(tensor.aminmax()).isfinite().all()]
    if strange:
        lines = [
            f"  {_published_name(ours)}: {int((~weights[ours].isfinite()).sum())} of {weights[ours].numel()}"
            for ours in strange
        ]
        raise ValueError(
            f"{name} holds NaN or infinity where weights should be. It is damaged, or of a training that diverged:\n"
            + "\n".join(lines)
        )


def save(model: GPT2, folder: str | Path) -> None:
    """Write config.json and model.safetensors as the Hub has them: `transformers` and `load` read the folder."""
    from safetensors.torch import save_file

    folder = Path(folder)
    weights = {
        _published_name(_unwrapped(name)): tensor.detach().cpu().contiguous()
        for name, tensor in model.state_dict().items()
    }
    with written_whole(folder / "model.safetensors") as unfinished:
        save_file(weights, unfinished, metadata={"format": "pt"})
    write_whole(folder / "config.json", json.dumps(model.config.to_json(), indent=2) + "\n")
