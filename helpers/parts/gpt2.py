"""GPT-2 (lesson 12): the model, its published weights, and writing with it.

A. Radford et al., "Language models are unsupervised multitask learners" (2019), section 2.3, and the code published
with it.

b batch, t positions (queries), s positions (keys and values), e width of the model, h heads, d = e/h width of one head,
n size of the vocabulary.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from helpers.course import write_whole, written_whole

from .cache import KeyValueCache, LayerCache
from .gpt2_heads import even_weights, first_score, induction_score, previous_score, switched_off  # noqa: F401
from .gpt2_writing import generate, generate_cached, perplexity  # noqa: F401
from .masks import causal_mask, masked_softmax
from .multi_head import merge_heads, split_heads
from .published import (
    SettingNames,
    TensorNames,
    assembled,
    drop_tied_head,
    fitted,
    published_tensors,
    require_sizes,
    without_heads,
)
from .weight_files import read_weights

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
    """How large a GPT-2 is."""

    n: int
    """Size of the vocabulary."""
    t_max: int
    """Longest window."""
    e: int
    """Width, divisible by h."""
    h: int
    """Heads."""
    depth: int
    """How many blocks."""
    epsilon: float = 1e-5
    """Of the norms."""
    hidden: int | None = None
    """Width of the hidden layer of the feed-forward networks, 4e when it is None."""
    dropout: float = 0.0
    """Chance with which a component is dropped in training, of the embeddings and of what the layers add."""

    def __post_init__(self):
        require_sizes(self)

    @classmethod
    def published(cls, name: str) -> Config:
        """The sizes that were published: "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", and "distilgpt2"."""
        if name not in _PUBLISHED:
            raise ValueError(f"The published sizes are {', '.join(_PUBLISHED)}; not {name!r}.")
        e, h, depth = _PUBLISHED[name]
        return cls(n=50257, t_max=1024, e=e, h=h, depth=depth)

    @classmethod
    def from_json(cls, path: str | Path) -> Config:
        """Read a config.json as the Hub has it. ValueError where it is damaged, or is no GPT-2 as it is built here."""
        return _SETTINGS.read(path, cls)

    def to_json(self) -> dict[str, object]:
        """The settings as the Hub's config.json has them, a dict."""
        return _SETTINGS.table(self) | {
            "architectures": ["GPT2LMHeadModel"],
            "n_ctx": self.t_max,
            "initializer_range": 0.02,
            "embd_pdrop": self.dropout,
            "attn_pdrop": 0.0,
            "bos_token_id": self.n - 1,
            "eos_token_id": self.n - 1,
        }


_SETTINGS = SettingNames(
    "GPT-2",
    {"n": "vocab_size", "t_max": "n_positions", "e": "n_embd", "h": "n_head", "depth": "n_layer"},
    {"hidden": ("n_inner", None), "epsilon": ("layer_norm_epsilon", 1e-5), "dropout": ("resid_pdrop", 0.1)},
    {
        "model_type": ("gpt2",),
        "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    },
)


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


class GPT2FeedForward(nn.Module):
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
        self.feed_forward = GPT2FeedForward(config.e, config.hidden or 4 * config.e)
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


##### Published weights

_TENSORS = TensorNames(
    "GPT-2",
    outside={
        "wte.weight": "tokens.weight",
        "wpe.weight": "positions.weight",
        "ln_f.weight": "norm.weight",
        "ln_f.bias": "norm.bias",
        "lm_head.weight": "to_logits.weight",
    },
    block="h.",
    inside={
        "ln_1": "norm1",
        "attn.c_attn": "attention.to_qkv",
        "attn.c_proj": "attention.unify",
        "ln_2": "norm2",
        "mlp.c_fc": "feed_forward.widen",
        "mlp.c_proj": "feed_forward.narrow",
    },
    prefix="transformer.",
    ignored=r"h\.(0|[1-9][0-9]*)\.attn\.(masked_)?bias",  # the masks of older files
)


_HEADS = r"(score|classifier|multiple_choice_head)\..*"  # of transformers' classes for classification


def rename_weights(published: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The published tensors under this module's names.

    published: dict from name to tensor, as the Hub's files have them, with or without "transformer." before the
    names, and with what `torch.compile` ("_orig_mod.") and DistributedDataParallel ("module.") put there. The masks
    that older files hold (attn.bias, attn.masked_bias) are left out, and so is lm_head.weight, which must equal the
    table of tokens. Returns a dict, the tensors (...) as they are. ValueError for names that
    GPT-2 does not have, all of them named.
    """
    return _TENSORS.accepted(_rename(published))


def _rename(published):
    """(tensors under our names without the tied head, what is wrong with the others, a line each)."""
    tensors, problems = _TENSORS.rename(published)
    return tensors, problems + drop_tied_head(tensors, _TENSORS)


def load(folder: str | Path, device: torch.device | str | None = None) -> GPT2:
    """A model from a folder as the Hub has it: config.json, and model.safetensors or the older pytorch_model.bin.

    Either may be in several files, with an index beside them. A .bin may also be a checkpoint of nanoGPT, {"model":
    ...}, whose matrices are the other way round and whose biases may be missing; its networks were trained with the
    exact GELU, from which this model's differs by less than 0.001. Nothing in a file is run, whatever it holds: a .bin
    is read by PyTorch's loader for weights alone. Where one file is damaged and another is whole, that is taken, with a
    warning. The layers of a classifier on top (GPT2ForSequenceClassification and the like) are left out, with a warning
    that names them. Weights become float32. The model is in evaluation mode. FileNotFoundError where a file is missing;
    ValueError where all are damaged, or where a tensor is missing, unexpected, of the wrong shape or not finite (the
    message names each).
    """
    folder = Path(folder)
    config = Config.from_json(folder / "config.json")
    published, settings, file = read_weights(folder)
    tensors, problems = _rename(without_heads(published, _HEADS, "GPT-2"))
    problems += _disagreements(settings, config)
    tensors = _as_published(tensors, config, settings)
    return assembled(GPT2, config, fitted(tensors, problems, GPT2, config, _TENSORS, file), device)


def _as_published(tensors, config, settings):
    """nanoGPT's tensors as OpenAI published theirs: matrices (n_in, n_out), and a bias everywhere.

    The matrix for queries, keys and values is never square, so it tells which way round all of them are. A bias that
    was left out is one of 0.
    """
    tell = [tensor.shape for name, tensor in tensors.items() if name.endswith("to_qkv.weight")]
    if tell and all(shape == (3 * config.e, config.e) for shape in tell):
        turned = ("to_qkv.weight", "unify.weight", "widen.weight", "narrow.weight")
        tensors = {k: x.T if k.endswith(turned) and x.dim() == 2 else x for k, x in tensors.items()}
    if settings.get("bias") is False:
        layers = [name for name in tensors if name.startswith(("blocks.", "norm.")) and name.endswith("weight")]
        biases = {f"{name.removesuffix('weight')}bias": torch.zeros(tensors[name].shape[-1:]) for name in layers}
        tensors = biases | tensors
    return tensors


def _disagreements(settings, config):
    """Where a checkpoint of nanoGPT and config.json do not say the same, a line each. (Heads show in no shape.)"""
    theirs = {"n_layer": config.depth, "n_head": config.h, "n_embd": config.e}
    theirs |= {"block_size": config.t_max, "vocab_size": config.n}
    return [
        f"  {name} is {settings[name]} in the checkpoint and {value} in config.json"
        for name, value in theirs.items()
        if settings.get(name, value) != value
    ]


def save(model: GPT2, folder: str | Path) -> None:
    """Write config.json and model.safetensors as the Hub has them: `transformers` and `load` read the folder."""
    from safetensors.torch import save_file

    folder = Path(folder)
    with written_whole(folder / "model.safetensors") as unfinished:
        save_file(published_tensors(model, _TENSORS), unfinished, metadata={"format": "pt"})
    write_whole(folder / "config.json", json.dumps(model.config.to_json(), indent=2) + "\n")
