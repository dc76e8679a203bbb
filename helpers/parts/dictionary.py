"""More features than dimensions: a toy of superposition, and a dictionary of features (lesson 19).

N. Elhage et al., "Toy models of superposition" (2022), and T. Bricken et al., "Towards monosemanticity" (2023): the
dictionary is a sparse autoencoder. m vectors, e components, k features.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn


def dictionary_loss(
    x: torch.Tensor,
    encode: torch.Tensor,
    bias: torch.Tensor,
    decode: torch.Tensor,
    offset: torch.Tensor,
    penalty: float,
) -> torch.Tensor:
    """The loss of a sparse autoencoder for each vector: squared error, and penalty times the features' lengths.

    T. Conerly et al., "Update on how we train SAEs" (2024). x: (m, e). encode: (e, k), bias: (k,), decode: (k, e),
    offset: (e,), subtracted before and added after. Returns (m,).
    """
    features = torch.relu((x - offset) @ encode + bias)
    rebuilt = features @ decode + offset
    sparsity = features @ decode.norm(dim=-1)
    return (x - rebuilt).square().sum(dim=-1) + penalty * sparsity


class Dictionary(nn.Module):
    """A sparse autoencoder of hidden states, which it first centres and divides by their mean length."""

    def __init__(self, e: int, k: int):
        super().__init__()
        self.encode, self.bias = nn.Parameter(torch.empty(e, k)), nn.Parameter(torch.zeros(k))
        self.decode, self.offset = nn.Parameter(torch.empty(k, e)), nn.Parameter(torch.zeros(e))
        self.mean: torch.Tensor
        self.length: torch.Tensor
        self.register_buffer("mean", torch.zeros(e))
        self.register_buffer("length", torch.ones(()))
        with torch.no_grad():  # directions of length 1; each feature begins by reading what it writes
            self.decode.copy_(nn.functional.normalize(torch.randn(k, e), dim=-1))
            self.encode.copy_(self.decode.T)

    @classmethod
    def load(cls, path: str | Path, device: torch.device | str | None = None) -> Dictionary:
        """One that was stored with half precision. FileNotFoundError where there is none."""
        tensors = {name: tensor.float() for name, tensor in load_file(path).items()}
        made = cls(*tensors["encode"].shape)
        made.load_state_dict(tensors)
        return made.to(device).eval()

    def loss(self, states: torch.Tensor, penalty: float) -> torch.Tensor:
        """`dictionary_loss` of hidden states (m, e), centred and divided: (m,)."""
        x = (states - self.mean) / self.length
        return dictionary_loss(x, self.encode, self.bias, self.decode, self.offset, penalty)

    def features(self, states: torch.Tensor) -> torch.Tensor:
        """How strong each feature is: (..., e) to (..., k), none negative, most 0."""
        return torch.relu(((states - self.mean) / self.length - self.offset) @ self.encode + self.bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """The states rebuilt from their features, (..., e)."""
        return (self.features(states) @ self.decode + self.offset) * self.length + self.mean


class Squeezed(nn.Module):
    """The toy of Elhage et al. (2022): k features into e dimensions and out again through the same matrix."""

    def __init__(self, k: int, e: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(k, e) / e**0.5)
        self.bias = nn.Parameter(torch.zeros(k))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """features: (b, k), none negative. Returns what is read back, (b, k)."""
        return torch.relu(features @ self.table @ self.table.T + self.bias)


def train_squeezed(
    model: Squeezed, present: float, steps: int, batch: int = 256, rate: float = 1e-2, falls: float = 0.9
) -> Iterator[float]:
    """Train on features that are each present with this chance, and then uniform in (0, 1); yields each step's loss.

    falls: each feature's share of the loss, relative to that of the feature before.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    k, where = len(model.bias), model.bias.device
    importance = falls ** torch.arange(k, device=where)
    for _ in range(steps):
        features = torch.rand(batch, k) * (torch.rand(batch, k) < present)
        features = features.to(where)
        loss = (importance * (model(features) - features).square()).sum(dim=-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield loss.item()
