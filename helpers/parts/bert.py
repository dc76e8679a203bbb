"""BERT (lesson 14): the model, what it is asked, and its published weights.

J. Devlin, M.-W. Chang, K. Lee and K. Toutanova, "BERT: pre-training of deep bidirectional transformers for language
understanding" (2019): section 3 and figure 2 for the model and its input, 3.1 and A.1 for what it is asked.

b batch, t positions, e width of the model, h heads, n size of the vocabulary.
"""

from __future__ import annotations

import functools
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from helpers.course import write_whole, written_whole

from .blocks import LayerNorm, TransformerBlock
from .low_rank import LowRank, add_low_rank  # noqa: F401
from .multi_head import split_heads
from .pieces import SPECIAL, PieceTokenizer, learn_pieces, pair_input, split_words, wordpiece  # noqa: F401
from .published import (
    SettingNames,
    TensorNames,
    assembled,
    fitted,
    published_tensors,
    require_sizes,
    without_heads,
)
from .weight_files import read_weights

NOT_ASKED = -100  # the target of a position at which nothing is asked; what F.cross_entropy ignores

##### Sizes

_PUBLISHED = {  # vocabulary, width, heads, blocks
    "bert-base-uncased": (30522, 768, 12, 12),
    "bert-large-uncased": (30522, 1024, 16, 24),
    "all-MiniLM-L6-v2": (30522, 384, 12, 6),
}


@dataclass(frozen=True)
class BertConfig:
    """How large a BERT is."""

    n: int
    """Size of the vocabulary."""
    t_max: int
    """Longest input."""
    e: int
    """Width, divisible by h."""
    h: int
    """Heads."""
    depth: int
    """How many blocks."""
    hidden: int | None = None
    """Width of the hidden layer of the feed-forward networks, 4e when it is None."""
    segments: int = 2
    """How many kinds of segment."""
    epsilon: float = 1e-12
    """Of the norms."""
    dropout: float = 0.0
    """In training, of the embeddings and of what each layer adds."""

    def __post_init__(self):
        require_sizes(self)

    @classmethod
    def published(cls, name: str) -> BertConfig:
        """The sizes of "bert-base-uncased", "bert-large-uncased" and "all-MiniLM-L6-v2"."""
        if name not in _PUBLISHED:
            raise ValueError(f"The published sizes are {', '.join(_PUBLISHED)}; not {name!r}.")
        n, e, h, depth = _PUBLISHED[name]
        return cls(n=n, t_max=512, e=e, h=h, depth=depth)

    @classmethod
    def from_json(cls, path: str | Path) -> BertConfig:
        """Read a config.json as the Hub has it. ValueError where it is damaged, or is not BERT as it is built here."""
        return _SETTINGS.read(path, cls)

    def to_json(self) -> dict[str, object]:
        """The settings as the Hub's config.json has them, a dict."""
        return _SETTINGS.table(self) | {
            "architectures": ["BertModel"],
            "intermediate_size": self.hidden or 4 * self.e,
            "attention_probs_dropout_prob": 0.0,
            "initializer_range": 0.02,
            "pad_token_id": 0,
        }


_SETTINGS = SettingNames(
    "BERT",
    {
        "n": "vocab_size",
        "t_max": "max_position_embeddings",
        "e": "hidden_size",
        "h": "num_attention_heads",
        "depth": "num_hidden_layers",
        "hidden": "intermediate_size",
    },
    {"segments": ("type_vocab_size", 2), "epsilon": ("layer_norm_eps", 1e-12), "dropout": ("hidden_dropout_prob", 0.1)},
    {"model_type": ("bert",), "hidden_act": ("gelu",), "position_embedding_type": ("absolute",)},
)


##### The model


class Bert(nn.Module):
    """Reads a text, or a pair of texts, both ways: a vector for every token, and one for the whole.

    Section 3: token, segment and position are added and normalised; then come blocks of lesson 7, post-norm, with
    biases everywhere and the exact GELU. The vector for the whole is tanh of a linear layer on the first token, [CLS].
    Weights start as N(0, 0.02), biases as 0. pooler: False for a model without the layer for the whole.
    """

    def __init__(self, config: BertConfig, pooler: bool = True):
        super().__init__()
        self.config = config
        e = config.e
        self.tokens = nn.Embedding(config.n, e)
        self.positions = nn.Embedding(config.t_max, e)
        self.segments = nn.Embedding(config.segments, e)
        self.norm = LayerNorm(e, config.epsilon)
        options: dict[str, Any] = {"hidden": config.hidden, "activation": F.gelu, "epsilon": config.epsilon}
        self.blocks = nn.ModuleList(
            [TransformerBlock(e, config.h, dropout=config.dropout, bias=True, **options) for _ in range(config.depth)]
        )
        self.pooler = nn.Linear(e, e) if pooler else None
        self.dropout = nn.Dropout(config.dropout)
        _start(self)

    def embed(self, ids: torch.Tensor, segments: torch.Tensor | None = None) -> torch.Tensor:
        """What enters the first block. ids, segments: (b, t), int64; None: segment 0 everywhere. Returns (b, t, e).

        ValueError for a text longer than t_max.
        """
        if ids.dim() != 2:
            raise ValueError(f"The model reads ids (b, t), and these have the shape {tuple(ids.shape)}.")
        t = ids.shape[1]
        if t > self.config.t_max:
            raise ValueError(f"A text of {t} tokens is too long: this model has {self.config.t_max} positions.")
        segments = torch.zeros_like(ids) if segments is None else segments
        places = torch.arange(t, device=ids.device)
        x = self.tokens(ids) + self.positions(places) + self.segments(segments)
        return self.dropout(self.norm(x))

    def forward(
        self, ids: torch.Tensor, segments: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """ids, segments: (b, t), int64. mask: (b, t), booleans, True at real tokens; None: all are.

        Returns the last hidden states (b, t, e), and tanh(W h₀ + bias) of the first token, (b, e); None without pooler.
        """
        x = self.hidden(ids, segments, mask)[-1]
        return x, None if self.pooler is None else torch.tanh(self.pooler(x[:, 0]))

    def hidden(
        self, ids: torch.Tensor, segments: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> list[torch.Tensor]:
        """Every stage: what enters the first block and leaves each of them. depth + 1 tensors (b, t, e)."""
        stages = [self.embed(ids, segments)]
        for block in self.blocks:
            stages.append(block(stages[-1], _for_blocks(mask)))
        return stages

    def attention_weights(
        self, ids: torch.Tensor, segments: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Who looks at whom in every block and head, for pictures. Returns (depth, b, h, t, t), without gradients."""
        found = []
        with torch.no_grad():
            for block, x in zip(self.blocks, self.hidden(ids, segments, mask), strict=False):
                layer = block.attention
                q, k = (split_heads(to(x), layer.h) for to in (layer.to_queries, layer.to_keys))
                scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
                if mask is not None:
                    scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
                found.append(scores.softmax(dim=-1))
        return torch.stack(found)


def _for_blocks(mask):
    """(b, t), real tokens, -> (b, 1, t), or (b, t, t) as it is: what a block takes."""
    return mask.unsqueeze(1) if mask is not None and mask.dim() == 2 else mask


def _start(module):
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            nn.init.normal_(layer.weight, std=0.02)
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)


class WordHead(nn.Module):
    """The output layer of masked language modelling: linear, GELU, norm, then the table of tokens once more and a bias.

    A.1, and the code published with the paper. It shares the table with `bert`, and keeps no copy of it.
    """

    def __init__(self, bert: Bert):
        super().__init__()
        config = bert.config
        self.linear = nn.Linear(config.e, config.e)
        self.norm = LayerNorm(config.e, config.epsilon)
        self.bias = nn.Parameter(torch.zeros(config.n))
        self._table = [bert.tokens]  # in a list, so that it is no part of this module's state
        _start(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (..., e). Returns logits (..., n)."""
        return F.linear(self.norm(F.gelu(self.linear(x))), self._table[0].weight, self.bias)


##### What is asked


def corrupt(
    ids: torch.Tensor, special: torch.Tensor, mask_id: int, n: int, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hide words: of the tokens 15 % are chosen; of these 80 % become mask_id, 10 % a random token, 10 % stay.

    Section 3.1, "Task #1". ids: (b, t), int64. special: (b, t), booleans, True at tokens that are never chosen. n: size
    of the vocabulary. generator: on the device of the ids. Returns inputs (b, t) and targets (b, t), NOT_ASKED where
    nothing is asked.
    """
    chance, kind = (torch.rand(ids.shape, generator=generator, device=ids.device) for _ in range(2))
    chosen = (chance < 0.15) & ~special
    drawn = torch.randint(n, ids.shape, generator=generator, device=ids.device)
    inputs = ids.masked_fill(chosen & (kind < 0.8), mask_id)
    inputs = torch.where(chosen & (kind >= 0.8) & (kind < 0.9), drawn, inputs)
    return inputs, ids.masked_fill(~chosen, NOT_ASKED)


def masked_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy over the positions at which something is asked; 0 where there is none.

    logits: (b, t, n). targets: (b, t), NOT_ASKED where nothing is asked. Returns ().
    """
    total = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=NOT_ASKED, reduction="sum")
    return total / (targets != NOT_ASKED).sum().clamp(min=1)


##### Published weights

_TENSORS = TensorNames(
    "BERT",
    outside={
        "embeddings.word_embeddings.weight": "tokens.weight",
        "embeddings.position_embeddings.weight": "positions.weight",
        "embeddings.token_type_embeddings.weight": "segments.weight",
        "embeddings.LayerNorm.weight": "norm.weight",
        "embeddings.LayerNorm.bias": "norm.bias",
        "pooler.dense.weight": "pooler.weight",
        "pooler.dense.bias": "pooler.bias",
    },
    block="encoder.layer.",
    inside={
        "attention.self.query": "attention.to_queries",
        "attention.self.key": "attention.to_keys",
        "attention.self.value": "attention.to_values",
        "attention.output.dense": "attention.unify",
        "attention.output.LayerNorm": "norm1",
        "intermediate.dense": "feed_forward.widen",
        "output.dense": "feed_forward.narrow",
        "output.LayerNorm": "norm2",
    },
    prefix="bert.",
    older={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    ignored=r"embeddings\.position_ids|cls\..*",  # a buffer of integers, and the heads
)


def rename_bert(published: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The published tensors under this module's names.

    published: from name to tensor, with or without "bert." before the names; norms may have gamma and beta for weight
    and bias. Left out are position_ids, a buffer of integers, and the heads, cls.*. Returns a dict of the same tensors,
    the table of tokens (n, e) and all others in their shapes. ValueError for names that BERT does not have, all of
    them named.
    """
    return _TENSORS.accepted(_TENSORS.rename(published))


def load(folder: str | Path, device: torch.device | str | None = None) -> Bert:
    """A model from a folder as the Hub has it: config.json, and model.safetensors or the older pytorch_model.bin.

    Nothing in a file is run. The layers of one task (for masked words, classes, answers) are left out, and a file
    without a pooler makes a model without one; a warning says so. Weights become float32; the model is in evaluation
    mode. FileNotFoundError where a file is missing; ValueError where one is damaged, or a tensor is missing,
    unexpected, of the wrong shape or not finite (the message names each).
    """
    config = BertConfig.from_json(Path(folder) / "config.json")
    published, _, file = read_weights(Path(folder))
    tensors, problems = _TENSORS.rename(without_heads(published, r"(cls|classifier|qa_outputs)\..*", "BERT"))
    pooler = any(name.startswith("pooler.") for name in tensors)
    if not pooler:
        warnings.warn(f"{file} holds no pooler: the model gives None in place of a vector for the whole.", stacklevel=2)
    build = functools.partial(Bert, pooler=pooler)
    return assembled(build, config, fitted(tensors, problems, build, config, _TENSORS, file), device)


def save(model: Bert, vocabulary: Mapping[str, int], folder: str | Path) -> Path:
    """Write a model as the Hub has it: config.json, vocab.txt and model.safetensors, under the published names.

    vocabulary: {piece: id}, ids from 0 without a gap. Returns the folder, which is made where it is not there.
    """
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "config.json", (json.dumps(model.config.to_json(), indent=1) + "\n").encode())
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    write_whole(folder / "vocab.txt", "".join(f"{piece}\n" for piece in pieces).encode())
    with written_whole(folder / "model.safetensors") as temporary:
        save_file(published_tensors(model, _TENSORS), temporary, metadata={"format": "pt"})
    return folder
