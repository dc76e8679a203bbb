"""Lesson 8's classifier and lesson 9's generator, of our parts and of PyTorch's own nn.TransformerEncoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from helpers.benchmarks.parts_speed.comparison import Comparison
from helpers.parts.blocks import SelfAttention, TransformerBlock
from helpers.parts.classifier import Classifier, mean_pool, train_step
from helpers.parts.generator import CharTransformer, generate
from helpers.parts.masks import causal_mask
from helpers.parts.positions import PositionEmbedding

SIDES = ("the lessons' parts", "nn.TransformerEncoder")
READER = {"n": 20_000, "c": 2, "e": 128, "h": 4, "depth": 2, "t_max": 256}
WRITER = {"n": 256, "e": 256, "h": 4, "depth": 4, "t_max": 256}
BATCH = 32
READ, WRITTEN = 128, 64  # bytes before what is written, and bytes written


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
        copy_attention(layer.self_attn, block.attention)
        for its, own in matching(layer, block):
            its.load_state_dict(own.state_dict())


@torch.no_grad()
def copy_attention(theirs: nn.MultiheadAttention, ours: SelfAttention) -> None:
    """Our three projections as one matrix, without biases, and what joins the heads."""
    theirs.in_proj_weight.copy_(torch.cat([ours.to_queries.weight, ours.to_keys.weight, ours.to_values.weight]))
    theirs.in_proj_bias.zero_()
    theirs.out_proj.load_state_dict(ours.unify.state_dict())


def matching(layer: nn.TransformerEncoderLayer, block: TransformerBlock) -> list[tuple[nn.Module, nn.Module]]:
    """(PyTorch's, ours) for the parts of a layer of an encoder that have the same parameters."""
    return [
        (layer.self_attn.out_proj, block.attention.unify),
        (layer.linear1, block.feed_forward.widen),
        (layer.linear2, block.feed_forward.narrow),
        (layer.norm1, block.norm1),
        (layer.norm2, block.norm2),
    ]


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


def comparisons() -> Iterator[Comparison]:
    """Both lessons: training, and using what was trained."""
    batch = texts()
    rows = torch.randint(WRITER["n"], (BATCH, WRITER["t_max"] + 1), generator=torch.Generator().manual_seed(1))

    def train_reader(reader: nn.Module) -> Callable[[], object]:
        optimiser = torch.optim.AdamW(reader.parameters())
        return lambda: train_step(reader, batch, optimiser)

    def read(reader: nn.Module) -> Callable[[], object]:
        return torch.no_grad()(lambda: reader.eval()(*batch[:2]))

    def train_writer(writer: nn.Module) -> Callable[[], object]:
        optimiser = torch.optim.AdamW(writer.parameters())

        def step() -> None:
            writer.train().zero_grad()
            F.cross_entropy(writer(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).backward()
            optimiser.step()

        return step

    def write(writer: nn.Module) -> Callable[[], object]:
        return lambda: generate(writer, rows[:1, :READ], WRITTEN, temperature=0)

    for work, kind, tokens, use in (
        ("lesson 8, training", "reader", batch[0].numel(), train_reader),
        ("lesson 8, reading", "reader", batch[0].numel(), read),
        ("lesson 9, training", "writer", rows[:, 1:].numel(), train_writer),
        (f"lesson 9, writing {WRITTEN} bytes after {READ}", "writer", WRITTEN, write),
    ):
        yield Comparison(work, tokens, dict(zip(SIDES, map(use, pair(kind)), strict=True)))
