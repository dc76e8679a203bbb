"""Lesson 8's classifier and lesson 9's generator, of our parts and of PyTorch's own nn.TransformerEncoder."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from helpers.benchmarks.parts_speed.duel import Job
from helpers.parts.classifier import Classifier, mean_pool, train_step
from helpers.parts.generator import CharTransformer, generate
from helpers.parts.masks import causal_mask
from helpers.parts.positions import PositionEmbedding

SIDES = ("the lessons' parts", "nn.TransformerEncoder")
READER = {"n": 20_000, "c": 2, "e": 128, "h": 4, "depth": 2, "t_max": 256}
WRITER = {"n": 256, "e": 256, "h": 4, "depth": 4, "t_max": 256}
BATCH = 32
JOBS = [
    Job("lesson 8, training", "train_reader"),
    Job("lesson 8, reading", "read"),
    Job("lesson 9, training", "train_writer"),
    Job("lesson 9, writing 64 bytes after 128", "write", rounds=3),
]


def encoder(e: int, h: int, depth: int) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(e, h, 4 * e, dropout=0.0, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(e), enable_nested_tensor=False)


class TorchReader(nn.Module):
    """What Classifier does, of PyTorch's layers."""

    def __init__(self, n, c, e, h, depth, t_max):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(n, e), PositionEmbedding(t_max, e)
        self.encoder, self.head = encoder(e, h, depth), nn.Linear(e, c)

    def forward(self, ids, mask):
        x = self.encoder(self.positions(self.tokens(ids)), src_key_padding_mask=~mask)
        return self.head(mean_pool(x, mask))


class TorchWriter(nn.Module):
    """What CharTransformer does, of PyTorch's layers."""

    def __init__(self, n, e, h, depth, t_max):
        super().__init__()
        self.t_max = t_max
        self.tokens, self.positions = nn.Embedding(n, e), PositionEmbedding(t_max, e)
        self.encoder, self.head = encoder(e, h, depth), nn.Linear(e, n)

    def forward(self, ids):
        hidden = ~causal_mask(ids.shape[1], ids.device)  # PyTorch's masks say who may not be looked at
        return self.head(self.encoder(self.positions(self.tokens(ids)), mask=hidden, is_causal=True))


@torch.no_grad()
def copy_weights(ours: nn.Module, theirs: nn.Module) -> None:
    """The same function: PyTorch's projections to queries, keys and values have a bias besides, which becomes 0."""
    theirs.tokens.load_state_dict(ours.tokens.state_dict())
    theirs.positions.load_state_dict(ours.positions.state_dict())
    theirs.head.load_state_dict((ours.to_classes if isinstance(ours, Classifier) else ours.to_logits).state_dict())
    theirs.encoder.norm.load_state_dict(ours.transformer.norm.state_dict())
    for block, layer in zip(ours.transformer.blocks, theirs.encoder.layers, strict=True):
        attention = block.attention
        layer.self_attn.in_proj_weight.copy_(
            torch.cat([attention.to_queries.weight, attention.to_keys.weight, attention.to_values.weight])
        )
        layer.self_attn.in_proj_bias.zero_()
        layer.self_attn.out_proj.load_state_dict(attention.unify.state_dict())
        layer.linear1.load_state_dict(block.feed_forward.widen.state_dict())
        layer.linear2.load_state_dict(block.feed_forward.narrow.state_dict())
        layer.norm1.load_state_dict(block.norm1.state_dict())
        layer.norm2.load_state_dict(block.norm2.state_dict())


def pair(kind: str) -> tuple[nn.Module, nn.Module]:
    """(ours, theirs), with the same weights."""
    torch.manual_seed(0)
    ours, theirs = (
        (Classifier(**READER), TorchReader(**READER))
        if kind == "reader"
        else (CharTransformer(**WRITER), TorchWriter(**WRITER))
    )
    copy_weights(ours, theirs)
    return ours, theirs


def texts() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A batch for the reader: ids (b, t), mask (b, t), labels (b,)."""
    draw, t = torch.Generator().manual_seed(0), READER["t_max"]
    lengths = torch.randint(t // 4, t + 1, (BATCH, 1), generator=draw)
    lengths[0] = t
    return (
        torch.randint(READER["n"], (BATCH, t), generator=draw),
        torch.arange(t) < lengths,
        torch.randint(2, (BATCH,), generator=draw),
    )


def jobs(side: str, folder: Path) -> dict:
    which = SIDES.index(side)
    reader, writer = pair("reader")[which], pair("writer")[which]
    batch = texts()
    rows = torch.randint(WRITER["n"], (BATCH, WRITER["t_max"] + 1), generator=torch.Generator().manual_seed(1))
    readers, writers = (torch.optim.AdamW(model.parameters(), lr=1e-6) for model in (reader, writer))

    def train_reader():
        train_step(reader, batch, readers)
        return batch[0].numel()

    def read():
        reader.eval()
        with torch.no_grad():
            reader(*batch[:2])
        return batch[0].numel()

    def train_writer():
        writer.train()
        writers.zero_grad()
        F.cross_entropy(writer(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).backward()
        writers.step()
        return rows[:, 1:].numel()

    def write():
        return generate(writer, rows[:1, :128], 64, temperature=0).numel()

    return {"train_reader": train_reader, "read": read, "train_writer": train_writer, "write": write}
