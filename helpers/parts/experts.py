"""A mixture of experts: many feed-forward networks, few of which work for any one token (lesson 18).

N. Shazeer et al., "Outrageously large neural networks" (2017); W. Fedus et al., "Switch transformers" (2021), section
2.2 for the balance loss; A. Jiang et al., "Mixtral of experts" (2024), section 2.1 for weights that are renormalised.
N experts, k of which a token uses; e width of the model.
"""

from __future__ import annotations

import torch
from torch import nn

from .llama import SwiGLU


def route(logits: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which k experts each token uses, and how much it takes from each.

    logits: (tokens, N). Returns weights (tokens, k), the experts' probabilities divided by their sum over the k, and
    experts (tokens, k), int64, the most probable first. ValueError unless 1 ≤ k ≤ N.
    """
    _require_some(logits, k)
    chances, experts = torch.softmax(logits, dim=-1).topk(k, dim=-1)
    return chances / chances.sum(dim=-1, keepdim=True), experts


def balance_loss(logits: torch.Tensor, k: int) -> torch.Tensor:
    """How unevenly the experts are used: 1 where all are used alike, N/k where k have all choices and all probability.

    N·Σ f_i P_i with f_i the share of the tokens' choices that fell on expert i, which sum to 1, and P_i its mean
    probability over all tokens, chosen or not. logits: (tokens, N). Returns (). The gradient comes through P alone.
    """
    _require_some(logits, k)
    size = logits.shape[-1]
    _, experts = route(logits, k)
    shares = torch.bincount(experts.flatten(), minlength=size) / experts.numel()  # f: (N,)
    return size * (shares * torch.softmax(logits, dim=-1).mean(dim=0)).sum()


def _require_some(logits, k):
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"A token uses 1 to {logits.shape[-1]} experts, and k is {k}.")


class MixtureOfExperts(nn.Module):
    """N feed-forward networks and a router that gives each token k of them.

    expert: what makes one network from (e, hidden). `logits` keeps the router's last output, (b·t, N), for the balance
    loss.
    """

    def __init__(self, e: int, hidden: int, experts: int, k: int, expert: type[nn.Module] = SwiGLU):
        super().__init__()
        self.k, self.logits = k, None
        self.router = nn.Linear(e, experts, bias=False)
        self.experts = nn.ModuleList([expert(e, hidden) for _ in range(experts)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (b, t, e). Returns (b, t, e)."""
        tokens = x.flatten(0, -2)  # (tokens, e)
        self.logits = self.router(tokens)
        weights, chosen = route(self.logits, self.k)
        out = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts):
            row, place = (chosen == i).nonzero(as_tuple=True)  # tokens that use it, and as their which choice
            if len(row):
                out = out.index_add(0, row, expert(tokens[row]) * weights[row, place, None])
        return out.view_as(x)
