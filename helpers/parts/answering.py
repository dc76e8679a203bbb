"""From a model that continues to a model that answers (lesson 20): losses on answers, preferences and rewards.

b batch, t positions, n size of the vocabulary. logits (b, t, n) at position i are those of token i + 1. is_answer
(b, t), booleans, says which tokens belong to an answer; the token that ends it is one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from .generator import draw


def answer_loss(logits: torch.Tensor, ids: torch.Tensor, is_answer: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the answers' tokens, (), in nats; all tokens of the batch count alike.

    Ouyang et al., "Training language models to follow instructions with human feedback" (2022), section 3.5, trains on
    demonstrations; that only the answer counts is common practice since. logits: (b, t, n). ids, is_answer: (b, t).
    """
    nats = F.cross_entropy(logits[:, :-1].mT, ids[:, 1:], reduction="none")  # (b, t − 1): of tokens 1 to t − 1
    counts = is_answer[:, 1:]
    return (nats * counts).sum() / counts.sum()


def pack(dialogues: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Several dialogues in one row. dialogues: ids (t_1,), (t_2,), ... Returns ids (t,), positions (t,), mask (t, t).

    t is the sum of their lengths. Positions start from 0 in every dialogue; in the mask, booleans, a token may look at
    those up to itself in its own dialogue.
    """
    lengths = torch.tensor([len(dialogue) for dialogue in dialogues], device=dialogues[0].device)
    number = torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)  # (t,): which dialogue
    place = torch.arange(len(number), device=lengths.device)
    positions = place - (lengths.cumsum(0) - lengths)[number]
    mask = (number[:, None] == number) & (place <= place[:, None])
    return torch.cat(list(dialogues)), positions, mask


def answer_log_probability(logits: torch.Tensor, ids: torch.Tensor, is_answer: torch.Tensor) -> torch.Tensor:
    """The logarithm of each whole answer's probability, (b,), in nats: a sum over its tokens.

    logits: (b, t, n). ids, is_answer: (b, t).
    """
    return (token_log_probabilities(logits, ids) * is_answer[:, 1:]).sum(dim=-1)


def token_log_probabilities(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The log-probability of every token but the first, (b, t − 1), in nats. logits: (b, t, n). ids: (b, t)."""
    return logits[:, :-1].log_softmax(dim=-1).gather(-1, ids[:, 1:, None])[..., 0]


def preference_loss(
    chosen: torch.Tensor,
    rejected: torch.Tensor,
    chosen_reference: torch.Tensor,
    rejected_reference: torch.Tensor,
    beta: float = 0.1,
) -> torch.Tensor:
    """The loss of direct preference optimisation (DPO), (): the mean over pairs of answers.

    Rafailov et al., "Direct preference optimization: your language model is secretly a reward model" (2023), section 4,
    equation 7. All four (b,): log-probabilities of whole answers, by the model and by the reference.
    """
    margin = (chosen - chosen_reference) - (rejected - rejected_reference)
    return -F.logsigmoid(beta * margin).mean()


def exact_match(written: torch.Tensor, right: Sequence[torch.Tensor], end: int) -> torch.Tensor:
    """1 for every answer that is exactly the right one, and ends; else 0. Returns (b,), float32.

    written: (b, t), ids that a model wrote. right: b tensors of ids, without `end`. What follows the first `end` in a
    row of `written` does not count.
    """
    rewards = torch.zeros(len(written), device=written.device)
    for row, ids in enumerate(right):
        k = len(ids)
        if k < written.shape[1] and torch.equal(written[row, :k], ids) and written[row, k] == end:
            rewards[row] = 1.0
    return rewards


def advantages(rewards: torch.Tensor) -> torch.Tensor:
    """Each reward relative to its group: minus the mean, divided by the standard deviation. (questions, samples).

    Shao et al., "DeepSeekMath" (2024), section 4.1.2. The deviation is the root of the mean square. Where all rewards
    of a group are equal, its advantages are 0.
    """
    away = rewards - rewards.mean(dim=-1, keepdim=True)
    deviation = away.square().mean(dim=-1, keepdim=True).sqrt()
    alike = rewards.amax(dim=-1, keepdim=True) == rewards.amin(dim=-1, keepdim=True)  # rounding: deviation may not be 0
    return torch.where(alike, 0.0, away / torch.where(alike, 1.0, deviation))


def policy_loss(
    new: torch.Tensor,
    old: torch.Tensor,
    reference: torch.Tensor,
    advantage: torch.Tensor,
    is_answer: torch.Tensor,
    epsilon: float = 0.2,
    beta: float = 0.0,
) -> torch.Tensor:
    """The clipped policy loss with a penalty for leaving the reference, (): mean over an answer's tokens, then answers.

    Shao et al., "DeepSeekMath" (2024), section 4.1.1, equations 3 and 4; the penalty is k3 of J. Schulman,
    "Approximating KL divergence" (2020). new, old, reference: (b, t), log-probabilities of the tokens by the model, by
    the model that wrote the answers, and by the reference. advantage: (b,). is_answer: (b, t), not empty in any row.
    """
    ratio, advantage = (new - old).exp(), advantage[:, None]
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage)
    away = reference - new
    loss = beta * (away.exp() - away - 1) - gain
    return ((loss * is_answer).sum(dim=-1) / is_answer.sum(dim=-1)).mean()


@torch.no_grad()
def write_answers(
    model: nn.Module,
    questions: torch.Tensor,
    count: int,
    end: int,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Answers of at most `count` tokens, (b, count), filled up with `end` after the first `end`.

    questions: (b, t), ids. temperature: 0 takes the most probable token. generator:
    what is drawn from.
    """
    ids = questions
    finished = torch.zeros(len(ids), 1, dtype=torch.bool, device=ids.device)
    for _ in range(count):
        token = draw(model(ids)[:, -1], temperature, generator=generator).masked_fill(finished, end)
        finished = finished | (token == end)
        ids = torch.cat([ids, token], dim=1)
    return ids[:, questions.shape[1] :]


def until_end(written: torch.Tensor, end: int) -> torch.Tensor:
    """Which tokens of `written`, (b, t), belong to the answer: all up to the first `end`, itself included."""
    ends = written == end
    return ends.cumsum(dim=-1) - ends.long() == 0
