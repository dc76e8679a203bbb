"""A Llama: a GPT-2 with five changes to its block and positions, and often an output layer of its own (lesson 18).

H. Touvron et al., "LLaMA: open and efficient foundation language models" (2023), section 2.2, with the grouped queries
of "Llama 2" (2023). The changes: RMSNorm (Zhang and Sennrich, 2019), SwiGLU (Shazeer, 2020), rotary positions in every
layer (Su et al., 2021), grouped queries (Ainslie et al., 2023), and no biases.

b batch, t positions (queries), s positions (keys and values), e width of the model, h heads of queries, g groups of
keys and values, d = e/h width of one head, n size of the vocabulary.
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
from .masks import causal_mask, masked_softmax
from .multi_head import merge_heads, require_heads, split_heads
from .positions import rotate
from .published import (
    SettingNames,
    TensorNames,
    assembled,
    drop_tied_head,
    fitted,
    published_tensors,
    require_sizes,
)
from .weight_files import read_weights

##### Sizes


@dataclass(frozen=True)
class LlamaConfig:
    """How large a Llama is."""

    n: int
    """Size of the vocabulary."""
    e: int
    """Width, divisible by h."""
    h: int
    """Heads of queries, divisible by groups."""
    groups: int
    """Heads of keys and values."""
    depth: int
    """How many blocks."""
    hidden: int
    """Width of the feed-forward networks."""
    epsilon: float = 1e-5
    """Of the norms."""
    theta: float = 10000.0
    """Base of the rotary angles."""
    tied: bool = False
    """Is the output layer the table of tokens?"""
    t_max: int = 2048
    """Longest window."""

    def __post_init__(self):
        require_sizes(self)
        if self.h % self.groups:
            raise ValueError(f"h = {self.h} heads cannot be divided evenly among {self.groups} groups.")
        if self.e // self.h % 2:
            raise ValueError(f"Rotary positions turn pairs, and a head of width {self.e // self.h} is odd.")

    @classmethod
    def from_json(cls, path: str | Path) -> LlamaConfig:
        """Read a config.json as the Hub has it. ValueError where it is damaged, or is no Llama as it is built here."""
        return _SETTINGS.read(path, cls, _groups_and_angles)

    def to_json(self) -> dict[str, object]:
        """The settings as the Hub's config.json has them, a dict."""
        return _SETTINGS.table(self) | {
            "architectures": ["LlamaForCausalLM"],
            "num_key_value_heads": self.groups,
            "rope_theta": self.theta,
            "bos_token_id": self.n - 1,
            "eos_token_id": self.n - 1,
        }


_SETTINGS = SettingNames(
    "Llama",
    {
        "n": "vocab_size",
        "e": "hidden_size",
        "h": "num_attention_heads",
        "depth": "num_hidden_layers",
        "hidden": "intermediate_size",
    },
    {
        "epsilon": ("rms_norm_eps", 1e-6),
        "tied": ("tie_word_embeddings", False),
        "t_max": ("max_position_embeddings", 2048),
    },
    {
        "model_type": ("llama",),
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "pretraining_tp": (1,),
    },
)


def _groups_and_angles(table):
    """The settings that config.json has in other forms; ValueError for those that are not built here."""
    rotary = table.get("rope_parameters") or table.get("rope_scaling") or {}
    kind = rotary.get("rope_type", rotary.get("type", "default")) if isinstance(rotary, dict) else rotary
    if kind != "default":
        raise ValueError(f"its rotary angles are of the kind {kind!r}, and here they are 'default'.")
    e, h = table["hidden_size"], table["num_attention_heads"]
    width = table.get("head_dim")
    if width is not None and isinstance(e, int) and width * h != e:
        raise ValueError(f"its heads are of width {width}, and here they are e/h wide.")
    return {
        "groups": table.get("num_key_value_heads") or h,
        "theta": rotary.get("rope_theta", table.get("rope_theta", 10000.0)),
    }


##### The model


class RMSNorm(nn.Module):
    """Divides each vector by the root of its mean square, and scales each component by a learned weight.

    B. Zhang and R. Sennrich, "Root mean square layer normalization" (2019), section 4. The mean of squares is taken in
    32 bits or more, whatever x comes in.
    """

    def __init__(self, e: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(e))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., e). Returns (..., e), in x's own precision."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        size = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.eps)  # (..., 1)
        return (wide * size * self.weight).to(x.dtype)


class SwiGLU(nn.Module):
    """A feed-forward network whose hidden layer is a product: down(silu(gate(x)) * up(x)), without biases.

    N. Shazeer, "GLU variants improve transformer" (2020), section 2.
    """

    def __init__(self, e: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(e, hidden, bias=False)
        self.up = nn.Linear(e, hidden, bias=False)
        self.down = nn.Linear(hidden, e, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., e). Returns (..., e)."""
        return self.down(F.silu(self.gate(x)) * self.up(x))


class GroupedQueryAttention(nn.Module):
    """Causal self-attention with h heads of queries, and fewer heads of keys and values: `groups`.

    J. Ainslie et al., "GQA" (2023), section 2.2. Head r of the queries looks through keys and values of the group
    r // (h / groups). groups = h is multi-head attention, groups = 1 multi-query attention. Queries and keys are turned
    by their positions; a cache holds the turned keys of the groups, before they are shared out. `frequencies`, (d/2,)
    or None, takes the place of those of theta where a model reads a longer window than it was trained on.
    """

    def __init__(self, e: int, h: int, groups: int, theta: float = 10000.0):
        super().__init__()
        require_heads(e, h)
        if h % groups:
            raise ValueError(f"h = {h} heads cannot be divided evenly among {groups} groups.")
        self.h, self.groups, self.theta = h, groups, theta
        self.frequencies: torch.Tensor | None = None
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, groups * (e // h), bias=False)
        self.to_values = nn.Linear(e, groups * (e // h), bias=False)
        self.unify = nn.Linear(e, e, bias=False)

    def forward(self, x: torch.Tensor, past: LayerCache | None = None) -> torch.Tensor:
        """x: (b, t, e). past: keys and values of earlier positions, to which those of x are added.

        Returns (b, t, e).
        """
        start, t = 0 if past is None else past.length, x.shape[1]
        q, k = self._rotated(x, start)
        v = split_heads(self.to_values(x), self.groups)
        if past is not None:
            k, v = past.append(k, v)  # (b, g, s, d)
        if t == 1 and start:  # sees everything: the heads of a group are queries of its own, and nothing is copied
            heads = F.scaled_dot_product_attention(q.reshape(len(x), self.groups, -1, q.shape[-1]), k, v)
            return self.unify(heads.reshape(x.shape))
        k, v = (part.repeat_interleave(self.h // self.groups, dim=1) for part in (k, v))  # (b, h, s, d)
        if past is None or start == 0:
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            s = k.shape[2]
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(s, x.device)[s - t :])
        return self.unify(merge_heads(heads))

    def _rotated(self, x, start):
        """Queries (b, h, t, d) and keys (b, g, t, d)."""
        positions = torch.arange(start, start + x.shape[1], device=x.device)
        q, k = split_heads(self.to_queries(x), self.h), split_heads(self.to_keys(x), self.groups)
        return (rotate(part, positions, self.theta, self.frequencies) for part in (q, k))

    def weights(self, x: torch.Tensor) -> torch.Tensor:
        """Where each head looks. x: (b, t, e). Returns (b, h, t, t)."""
        q, k = self._rotated(x, 0)
        scores = q @ k.repeat_interleave(self.h // self.groups, dim=1).mT / math.sqrt(q.shape[-1])
        return masked_softmax(scores, causal_mask(x.shape[1], x.device))


class LlamaBlock(nn.Module):
    """Attention and a feed-forward network, each with a norm before it and a shortcut around both."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.norm1 = RMSNorm(config.e, config.epsilon)
        self.attention = GroupedQueryAttention(config.e, config.h, config.groups, config.theta)
        self.norm2 = RMSNorm(config.e, config.epsilon)
        self.feed_forward = SwiGLU(config.e, config.hidden)

    def forward(self, x: torch.Tensor, past: LayerCache | None = None) -> torch.Tensor:
        """x: (b, t, e). past: as GroupedQueryAttention takes it. Returns (b, t, e)."""
        x = x + self.attention(self.norm1(x), past)
        return x + self.feed_forward(self.norm2(x))


class Llama(nn.Module):
    """Predicts, at every position, the next token. No positions are added to the tokens: attention turns by them.

    block: what makes one block from the config. With config.tied there is no `to_logits`: the table of tokens serves
    twice. Matrices start as N(0, 0.02), the norms' weights as 1.
    """

    def __init__(self, config: LlamaConfig, block: type[nn.Module] = LlamaBlock):
        super().__init__()
        self.config, self.t_max = config, config.t_max
        self.tokens = nn.Embedding(config.n, config.e)
        self.blocks = nn.ModuleList([block(config) for _ in range(config.depth)])
        self.norm = RMSNorm(config.e, config.epsilon)
        self.to_logits = None if config.tied else nn.Linear(config.e, config.n, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: torch.Tensor, cache: KeyValueCache | None = None, last_only: bool = False) -> torch.Tensor:
        """ids: (b, t), int64. cache: of the positions before these, to which these are added.

        Returns logits (b, t, n): at position i those of token i + 1. With last_only those of the last position alone.
        """
        if cache is not None and len(cache.layers) != len(self.blocks):
            raise ValueError(f"The cache is for {len(cache.layers)} blocks, and the model has {len(self.blocks)}.")
        x = self.tokens(ids)
        for i, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache.layers[i])
        x = self.norm(x[:, -1:] if last_only else x)
        return F.linear(x, self.tokens.weight if self.to_logits is None else self.to_logits.weight)

    def attention_weights(self, ids: torch.Tensor) -> torch.Tensor:
        """Who looks at whom in every block and head, for pictures. ids: (b, t).

        Returns (depth, b, h, t, t), without gradients.
        """
        with torch.no_grad():
            x, weights = self.tokens(ids), []
            for block in self.blocks:
                assert isinstance(block, LlamaBlock)
                weights.append(block.attention.weights(block.norm1(x)))
                x = block(x)
        return torch.stack(weights)


def rotary_frequencies(d: int, theta: float = 10000.0) -> torch.Tensor:
    """How far each pair of a head of width d turns from one position to the next: theta^(−2j/d), (d/2,)."""
    return theta ** -(torch.arange(0, d, 2) / d)


def stretched_frequencies(
    frequencies: torch.Tensor, window: int, factor: float, low: float = 1.0, high: float = 4.0
) -> torch.Tensor:
    """Rotary frequencies for a window `factor` times as long as the one that a model was trained on, by parts.

    B. Peng et al., "YaRN" (2023), section 3.2, with their α and β as low and high. frequencies: (d/2,), in radians a
    position. A pair that turned more than `high` times in the window stays as it is, one that turned less than `low`
    times turns `factor` times more slowly, and between the two the frequency is a mixture. Returns (d/2,). low = 1 and
    high = 4 are Llama 3.1's.
    """
    turns = window * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor


def read_with(model: nn.Module, frequencies: torch.Tensor | None) -> None:
    """Let every block of a model rotate by these frequencies, (d/2,); None: by those that it was trained with."""
    for block in model.blocks:
        block.attention.frequencies = frequencies


##### Published weights


def halves_from_pairs(weight: torch.Tensor, h: int) -> torch.Tensor:
    """The rows of a projection for the other convention of rotary positions, so that all scores stay as they are.

    weight: (h·d, e), of queries or keys whose components 2j and 2j + 1 are turned together (lesson 6, and Meta's own
    files). Returns (h·d, e): its rows in the order in which components j and j + d/2 are turned together, as in the
    files of the Hub. For keys in groups, h is the number of groups.
    """
    d = _head_width(weight, h)
    return weight.view(h, d // 2, 2, -1).transpose(1, 2).reshape(weight.shape)


def pairs_from_halves(weight: torch.Tensor, h: int) -> torch.Tensor:
    """The other way round: (h·d, e) as the Hub has it to (h·d, e) for `rotate`."""
    d = _head_width(weight, h)
    return weight.view(h, 2, d // 2, -1).transpose(1, 2).reshape(weight.shape)


def _head_width(weight, h):
    if weight.dim() != 2 or len(weight) % (2 * h):
        raise ValueError(f"{tuple(weight.shape)} does not hold {h} heads of even width in its rows.")
    return len(weight) // h


_TENSORS = TensorNames(
    "a Llama",
    outside={
        "model.embed_tokens.weight": "tokens.weight",
        "model.norm.weight": "norm.weight",
        "lm_head.weight": "to_logits.weight",
    },
    block="model.layers.",
    inside={
        "input_layernorm": "norm1",
        "self_attn.q_proj": "attention.to_queries",
        "self_attn.k_proj": "attention.to_keys",
        "self_attn.v_proj": "attention.to_values",
        "self_attn.o_proj": "attention.unify",
        "post_attention_layernorm": "norm2",
        "mlp.gate_proj": "feed_forward.gate",
        "mlp.up_proj": "feed_forward.up",
        "mlp.down_proj": "feed_forward.down",
    },
    kinds=("weight",),
    ignored=r".*rotary_emb\.inv_freq",  # the rotary frequencies of older files
)


def rename_llama(published: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The published tensors under this module's names, each (...) as it is: queries and keys are still for halves.

    published: as the Hub's files have them. Tables of rotary frequencies, which older files hold, are left out.
    ValueError for names that a Llama does not have, all of them named.
    """
    return _TENSORS.accepted(_TENSORS.rename(published))


def from_published(
    published: dict[str, torch.Tensor], config: LlamaConfig, file: str = "The table of weights"
) -> Llama:
    """A model with published weights, a dict from name to tensor (...), in evaluation mode, in 32 bits.

    ValueError where a tensor is missing, unexpected, of the wrong shape or not finite; the message names each.
    """
    tensors, problems = _TENSORS.rename(published)
    if config.tied:
        problems += drop_tied_head(tensors, _TENSORS)
    weights = fitted(tensors, problems, Llama, config, _TENSORS, file)
    for name, tensor in weights.items():
        heads = {"to_queries": config.h, "to_keys": config.groups}.get(name.split(".")[-2])
        weights[name] = pairs_from_halves(tensor, heads) if heads else tensor
    return assembled(Llama, config, weights)


def load(folder: str | Path, device: torch.device | str | None = None) -> Llama:
    """A model from a folder as the Hub has it: config.json, and model.safetensors or pytorch_model.bin.

    Nothing in a file is run. FileNotFoundError where a file is missing, ValueError where one is damaged.
    """
    config = LlamaConfig.from_json(Path(folder) / "config.json")
    published, _, file = read_weights(Path(folder))
    return from_published(published, config, file).to(device or "cpu")


def save(model: Llama, folder: str | Path) -> None:
    """Write config.json and model.safetensors as the Hub has them: `transformers` and `load` read the folder."""
    from safetensors.torch import save_file

    folder, config = Path(folder), model.config
    tensors = published_tensors(model, _TENSORS)
    for name, tensor in tensors.items():
        heads = {"q_proj": config.h, "k_proj": config.groups}.get(name.split(".")[-2])
        tensors[name] = halves_from_pairs(tensor, heads) if heads else tensor
    with written_whole(folder / "model.safetensors") as unfinished:
        save_file(tensors, unfinished, metadata={"format": "pt"})
    write_whole(folder / "config.json", json.dumps(config.to_json(), indent=2) + "\n")
