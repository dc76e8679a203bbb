"""A mixture of predictions whose weights depend on the context: for lesson 22's best.

The product of the parts, each to a power, is one more part (M. Mahoney, "Adaptive weighing of context models for
lossless data compression", 2005, mixes logarithms too). A linear gate gives each part its weight from what the parts
predict (R. Jacobs and others, "Adaptive mixtures of local experts", 1991, section 1). b contexts, m parts, n bytes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

Gate = dict[str, torch.Tensor]


def features(log_p: torch.Tensor) -> torch.Tensor:
    """Of each part its largest log-probability and minus its entropy. log_p: (m, b, n). Returns (b, 2m), in nats."""
    return torch.cat([log_p.amax(dim=-1), (log_p.exp() * log_p).sum(dim=-1)]).T


def gated(log_p: torch.Tensor, gate: Gate) -> torch.Tensor:
    """The mixture: log-probabilities (b, n) out of those of the parts, (m, b, n)."""
    product = torch.log_softmax((log_p * gate["powers"][:, None, None]).sum(dim=0), dim=-1)
    scaled = (features(log_p) - gate["mean"]) / gate["std"]
    weights = torch.log_softmax(scaled @ gate["slopes"] + gate["offsets"], dim=-1)  # (b, m + 1)
    return torch.logsumexp(torch.cat([log_p, product[None]]) + weights.T[..., None], dim=0)


def fitted_gate(log_p: torch.Tensor, targets: torch.Tensor, steps: int = 200, decay: float = 1e-4) -> Gate:
    """The gate that predicts these targets (b,) best, found by L-BFGS from equal weights; log_p: (m, b, n).

    decay: the cost of the squares of slopes and offsets, which else grow without end where one part is always right.
    Fit it on text from which no part was made, with many contexts to each of its (m + 1)(2m + 1) + m numbers.
    """
    m, seen = len(log_p), features(log_p)
    gate = {"powers": torch.full((m,), 1 / m), "slopes": torch.zeros(2 * m, m + 1), "offsets": torch.zeros(m + 1)}
    for number in gate.values():
        number.requires_grad_()
    optimiser = torch.optim.LBFGS(list(gate.values()), max_iter=steps, line_search_fn="strong_wolfe")
    still = {"mean": seen.mean(dim=0), "std": seen.std(dim=0).clamp(min=1e-6)}

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        size = gate["slopes"].square().sum() + gate["offsets"].square().sum()
        value = F.nll_loss(gated(log_p, gate | still), targets.long()) + decay * size
        value.backward()
        return value

    optimiser.step(loss)
    return {name: number.detach() for name, number in gate.items()} | still
