"""Lesson 20's trainings with three seeds: python -m helpers.training.answering

One small decoder learns sums: from whole dialogues, from answers alone, or from answers without hedges; and from there
by preferences, by a reward that is checked and by one with a hole, with −A log π and with the policy loss, without and
with a penalty; by further demonstrations, with hedges or without, and by further demonstrations and then a reward; and
with several steps on each batch of samples, with −A log π, with the ratio, and with the clip, at two learning rates.
Some minutes on two quiet cores.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from statistics import fmean

import torch
from torch import nn

from helpers.data.toy.sums import END, OR, QUESTION, WORDS, demonstrations, ids_of, pairs, question
from helpers.parts.answering import (
    advantages,
    answer_log_probability,
    answer_loss,
    exact_match,
    policy_loss,
    preference_loss,
    token_log_probabilities,
    until_end,
    write_answers,
)
from helpers.parts.generator import CharTransformer
from helpers.training.common import Record, arguments

STEPS, BATCH, RATE = 300, 64, 5e-3
LONG = 9  # tokens that a model may write
GROUPS, SAMPLES = 16, 8
PENALTY = 0.5
TRAIN, HELD_OUT = pairs()
SEEDS = (0, 1, 2)
Look = Callable[..., None]  # of a model, steps and seconds, and what else was measured


def new_model(seed: int) -> nn.Module:
    """The untrained model of a seed."""
    torch.manual_seed(seed)
    return CharTransformer(len(WORDS), e=64, h=4, depth=2, t_max=QUESTION + LONG)


def named_in(written: torch.Tensor, sums: list[int]) -> torch.Tensor:
    """The reward with a hole: 1 where the digits of the right number are anywhere in the answer, (b,)."""
    both = torch.stack([torch.tensor(ids_of(s)) for s in sums])
    inside = until_end(written, END)[:, 1:]
    return ((written[:, :-1] == both[:, :1]) & (written[:, 1:] == both[:, 1:]) & inside).any(dim=-1).float()


def exact(written: torch.Tensor, sums: list[int]) -> torch.Tensor:
    """The reward without: 1 where the answer is exactly the right number, (b,)."""
    return exact_match(written, [torch.tensor(ids_of(s)) for s in sums], END)


def measured(model: nn.Module) -> dict[str, float]:
    """Of one sampled answer to each held-out question: shares exact, naming the right number, hedged; and its length.

    greedy: the share exact with greedy decoding.
    """
    asked, sums = torch.tensor([question(*pair) for pair in HELD_OUT]), [a + b for a, b in HELD_OUT]
    written = write_answers(model, asked, LONG, END, generator=torch.Generator().manual_seed(5))
    inside = until_end(written, END)
    return {
        "exact": exact(written, sums).mean().item(),
        "named": named_in(written, sums).mean().item(),
        "hedged": ((written == OR) & inside).any(dim=-1).float().mean().item(),
        "tokens": inside.sum(dim=-1).float().mean().item(),
        "greedy": exact(write_answers(model, asked, LONG, END, temperature=0), sums).mean().item(),
    }


def step(model: nn.Module, optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    """One step down the gradient, which is cut at a norm of 1."""
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()


def supervised(
    model: nn.Module,
    seed: int,
    look: Look,
    whole: bool = False,
    plain: bool = False,
    steps: int = STEPS,
    every: int = 50,
    rate: float = RATE,
) -> None:
    """Trains on demonstrations, with a rate that rises and falls. plain: only on those that do not hedge."""
    generator = torch.Generator().manual_seed(seed)
    ids, is_text, is_answer = demonstrations(TRAIN, generator)
    counts = is_text if whole else is_answer
    if plain:
        kept = (ids != OR).all(dim=1)
        ids, counts = ids[kept], counts[kept]
    optimiser, seconds = torch.optim.AdamW(model.parameters(), lr=rate), 0.0
    for number in range(1, steps + 1):
        before = time.process_time()
        some = torch.randint(len(ids), (BATCH,), generator=generator)
        optimiser.param_groups[0]["lr"] = rate * min(number / 30, 1.05 - number / steps)
        step(model, optimiser, answer_loss(model(ids[some]), ids[some], counts[some]))
        seconds += time.process_time() - before
        if number % every == 0:
            look(model, number, seconds)


def sampled(model: nn.Module, seed: int, groups: int) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """Questions with their samples (groups · SAMPLES, t), which tokens are answers, and the right sums."""
    generator = torch.Generator().manual_seed(seed)
    chosen = [
        TRAIN[i] for i in torch.randperm(len(TRAIN), generator=generator)[:groups].tolist() for _ in range(SAMPLES)
    ]
    asked = torch.tensor([question(*pair) for pair in chosen])
    written = write_answers(model, asked, LONG, END, generator=generator)
    is_answer = torch.cat([torch.zeros_like(asked, dtype=torch.bool), until_end(written, END)], dim=1)
    return torch.cat([asked, written], dim=1), is_answer, [a + b for a, b in chosen]


def preferences(model: nn.Module, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pairs of one exact answer and one that is not, to the same question: ids and is_answer of both."""
    ids, is_answer, sums = sampled(model, 1000 + seed, 300)
    good = exact(ids[:, QUESTION:], sums).view(-1, SAMPLES).bool()
    both = good.any(dim=-1) & ~good.all(dim=-1)
    start = torch.arange(len(good))[both] * SAMPLES
    chosen, rejected = (start + which[both].int().argmax(dim=-1) for which in (good, ~good))
    return ids[chosen], is_answer[chosen], ids[rejected], is_answer[rejected]


def preferring(model: nn.Module, seed: int, look: Look, rate: float, beta: float, alone: bool = False) -> None:
    """Trains on pairs: DPO, or, as a control, on the chosen answers alone."""
    chosen, chosen_answer, rejected, rejected_answer = preferences(model, seed)
    log_p = lambda by, ids, is_answer: answer_log_probability(by(ids), ids, is_answer)  # noqa: E731
    with torch.no_grad():
        references = log_p(model, chosen, chosen_answer), log_p(model, rejected, rejected_answer)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for number in range(1, 41):
        k = torch.randint(len(chosen), (32,), generator=generator)
        if alone:
            loss = answer_loss(model(chosen[k]), chosen[k], chosen_answer[k])
        else:
            better = log_p(model, chosen[k], chosen_answer[k])
            worse = log_p(model, rejected[k], rejected_answer[k])
            loss = preference_loss(better, worse, references[0][k], references[1][k], beta)
        step(model, optimiser, loss)
        if number % 10 == 0:
            with torch.no_grad():
                moved = [
                    (log_p(model, ids, is_answer) - reference).mean().item()
                    for ids, is_answer, reference in zip(
                        (chosen, rejected), (chosen_answer, rejected_answer), references, strict=True
                    )
                ]
            look(model, number, 0.0, chosen=moved[0], rejected=moved[1])


@torch.no_grad()
def divergence(model: nn.Module, reference: nn.Module) -> float:
    """The KL divergence of the model's answers from the reference's, in nats an answer: a mean over held-out questions.

    The answers are those of `measured`; at each of their places the divergence is that of all tokens.
    """
    asked = torch.tensor([question(*pair) for pair in HELD_OUT])
    written = write_answers(model, asked, LONG, END, generator=torch.Generator().manual_seed(5))
    ids, places = torch.cat([asked, written], dim=1), slice(QUESTION - 1, -1)
    p, q = (by(ids)[:, places].log_softmax(dim=-1) for by in (model, reference))
    return ((p.exp() * (p - q)).sum(dim=-1) * until_end(written, END)).sum(dim=-1).mean().item()


def rewarded(
    model: nn.Module,
    seed: int,
    look: Look,
    reward: Callable,
    batches: int = 40,
    every: int = 10,
    uses: int = 1,
    epsilon: float = 0.2,
    beta: float = 0.0,
    rate: float = 3e-4,
    without_ratio: bool = False,
) -> None:
    """Group-relative policy gradient, `uses` steps on a batch of samples. The model at the start is the reference.

    without_ratio: the loss is −A log π of whole answers, as if the present model had written them.
    """
    reference = copy.deepcopy(model)
    optimiser, seconds = torch.optim.Adam(model.parameters(), lr=rate), 0.0
    for number in range(1, batches + 1):
        before = time.process_time()
        ids, is_answer, sums = sampled(model, 10_000 * (seed + 1) + number, GROUPS)
        worth = advantages(reward(ids[:, QUESTION:], sums).view(GROUPS, SAMPLES)).flatten()
        with torch.no_grad():
            old, start = (token_log_probabilities(by(ids), ids) for by in (model, reference))
        for _ in range(uses):
            new = token_log_probabilities(model(ids), ids)
            if without_ratio:
                loss = -(worth * (new * is_answer[:, 1:]).sum(dim=-1)).mean()
            else:
                loss = policy_loss(new, old, start, worth, is_answer[:, 1:], epsilon, beta)
            step(model, optimiser, loss)
        seconds += time.process_time() - before
        if number % every == 0:
            look(model, number, seconds, away=divergence(model, reference))


def run_seed(seed: int, record: Record, pace: float = 1.0) -> None:
    """All parts of the lesson with one seed; every look is a point of the record's curve."""

    def looking(part: str) -> Callable:
        def look(model: nn.Module, number: int, seconds: float, **more: float) -> None:
            with record.aside():
                found = measured(model)
            figures = {"used": seconds, **found, **more}
            record.curve.append(
                {"seed": seed, "part": part, "step": number, **{k: round(v, 4) for k, v in figures.items()}}
            )
            print(record.curve[-1], flush=True)

        return look

    steps = lambda count: max(1, int(pace * count))  # noqa: E731
    training = steps(STEPS)
    supervised(new_model(seed), seed, looking("whole"), whole=True, steps=training)
    supervised(new_model(seed), seed, looking("plain"), plain=True, steps=training, every=training)
    start = new_model(seed)
    supervised(start, seed, looking("answer"), steps=training)
    for part, options in (("DPO", {}), ("chosen", {"alone": True})):
        preferring(copy.deepcopy(start), seed, looking(part), rate=1e-4, beta=1.0, **options)
    for part, reward in (("strict", exact), ("lenient", named_in)):
        rewarded(copy.deepcopy(start), seed, looking(part), reward, steps(40), every=5, without_ratio=True)
    rewarded(copy.deepcopy(start), seed, looking("repeated"), exact, steps(10), every=1, uses=8, without_ratio=True)
    for part, reward, beta in (
        ("policy", exact, 0.0),
        ("policy, penalty", exact, PENALTY),
        ("hole", named_in, 0.0),
        ("hole, penalty", named_in, PENALTY),
    ):
        rewarded(copy.deepcopy(start), seed, looking(part), reward, steps(40), beta=beta)
    for part, uses, epsilon in (("once", 1, 0.2), ("clipped", 8, 0.2), ("not clipped", 8, math.inf)):
        rewarded(copy.deepcopy(start), seed, looking(part), exact, steps(10), every=2, uses=uses, epsilon=epsilon)
    for part, epsilon in (("clipped, slower", 0.2), ("not clipped, slower", math.inf)):
        slower, ten = copy.deepcopy(start), steps(10)
        rewarded(slower, seed, looking(part), exact, ten, every=ten, uses=8, epsilon=epsilon, rate=1e-4)
    plain = copy.deepcopy(start)
    supervised(plain, seed + 100, looking("further, plain"), plain=True, steps=training, every=training, rate=1e-3)
    further = copy.deepcopy(start)
    supervised(further, seed + 100, looking("further"), steps=training, rate=1e-3)
    rewarded(further, seed, looking("further, policy"), exact, steps(40), every=steps(40))


def main() -> None:
    """All seeds, recorded."""
    options = arguments()
    torch.set_num_threads(1)
    settings = {
        "demonstrations": len(TRAIN),
        "steps": STEPS,
        "batch": BATCH,
        "rate": RATE,
        "questions a step": GROUPS,
        "samples": SAMPLES,
        "penalty": PENALTY,
    }
    record = Record("answering", {"name": "sums below 100"}, settings)
    for seed in SEEDS:
        run_seed(seed, record, 0.1 if options.attempt else 1.0)
    record.stop()
    looks, record.curve = record.curve, []
    last = {(point["seed"], point["part"]): point["exact"] for point in looks}
    means = {part: fmean(last[seed, part] for seed in SEEDS) for _, part in last}
    record.finish(options, {"exact": means, "looks": looks})


if __name__ == "__main__":
    main()
