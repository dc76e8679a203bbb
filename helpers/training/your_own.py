"""Lesson 22's three starting points in one file of weights: python -m helpers.training.your_own --text austen

A table of n-grams, a cache, and a small transformer in int8, mixed with the shares that are best on the text's `home`
part. --steps: of the transformer's training (0: none, and a larger table). --depth and --window: of the transformer. A
step takes 0.2 s of one core with 3 blocks and 128 bytes, 0.5 s with 4 blocks and 256. --convolved: a transformer with
rotary positions and short convolutions, which learns faster (`helpers.training.convolved`). --gated: shares that depend
on the context (`helpers.training.gated_mixture`). The scores on `home` and `held_back`, and those of packers beside
them, are printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save

from helpers.course import write_whole
from helpers.data.open_texts import open_text, order_0, packers, xz_after
from helpers.exercises.open_task import APART, AT_HOME, FILE, LARGEST, MOST, contexts_of
from helpers.parts.one_megabyte import (
    ByteTransformer,
    cache_log_probabilities,
    count_ngrams,
    from_int8,
    learn,
    table_log_probabilities,
    to_int8,
)
from helpers.training.convolved import ConvolvedTransformer
from helpers.training.gated_mixture import fitted_gate, gated

MANY = (2000, 24)  # contexts to fit shares on and to tell a score of, and their distance
FOR_GATE = (12_000, 24)  # to fit a gate on
DENSE = (36_000, 12)  # to tell the score of a gated mixture of
Transformer = ByteTransformer | ConvolvedTransformer
Parts = tuple[dict, Transformer | None]
Mix = Callable[[torch.Tensor], torch.Tensor]


def guesses(table: dict, transformer: Transformer | None, contexts: torch.Tensor) -> torch.Tensor:
    """What each part predicts: (parts, b, 256), log-probabilities."""
    contexts = contexts.long()
    said = [table_log_probabilities(table, contexts), cache_log_probabilities(contexts)]
    if transformer is not None:
        with torch.no_grad():
            logits = [transformer(rows[:, -transformer.t_max :])[:, -1] for rows in contexts.split(128)]
        said.append(torch.log_softmax(torch.cat(logits), dim=-1))
    return torch.stack(said)


def bits(log_p: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Bits per byte of predictions (..., b, 256)."""
    places = targets.long().expand(log_p.shape[:-1])[..., None]
    return -log_p.gather(-1, places)[..., 0].mean(dim=-1) / math.log(2)


def best_shares(table: dict, transformer: Transformer | None, text: bytes) -> torch.Tensor:
    """The shares (parts,) of the mixture that predicts this text best, by 50 steps of EM."""
    contexts, targets = contexts_of(text, *MANY)
    log_p = guesses(table, transformer, contexts)
    said = log_p.gather(-1, targets.long().expand(log_p.shape[:-1])[..., None])[..., 0]
    shares = torch.full((len(said),), 1 / len(said))
    for _ in range(50):
        shares = torch.softmax(said + shares.log()[:, None], dim=0).mean(dim=1)
    return shares


def shared(log_p: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """The mixture (b, 256) with the same shares (parts,) everywhere, of log-probabilities (parts, b, 256)."""
    return torch.logsumexp(log_p + shares.log()[:, None, None], dim=0)


def scores(parts: Parts, mix: Mix, text: bytes, read: bytes, cut: tuple[int, int]) -> dict[str, float]:
    """Bits per byte of each part and of the mixture on a text, beside packers, and the standard error of the last.

    parts: the table, and the transformer if there is one. mix: log-probabilities (b, 256) out of those of the parts.
    read: the text that was trained on. cut: how many contexts at most, and their distance.
    """
    contexts, targets = contexts_of(text, *cut)
    log_p = guesses(*parts, contexts)
    found = dict(zip(("table", "cache", "a small transformer"), bits(log_p, targets).tolist(), strict=False))
    of_each = -mix(log_p).gather(-1, targets.long()[:, None])[:, 0] / math.log(2)
    packed = {"order 0": order_0(text), **packers(text), "xz after the training part": xz_after(read, text)}
    error = of_each.std().item() / math.sqrt(len(targets))
    return {**packed, **found, "the course's best": of_each.mean().item(), "error": error}


def main() -> None:
    """Count, train, quantise, mix; write the file, and print what it scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", default="manual")
    parser.add_argument("--steps", type=int, default=350)
    parser.add_argument("--depth", type=int, default=3, help="blocks of the transformer")
    parser.add_argument("--window", type=int, default=128, help="bytes that the transformer looks at")
    parser.add_argument("--dropout", type=float, default=0.0, help="of the transformer, in training")
    parser.add_argument("--bfloat16", action="store_true", help="multiply in bfloat16 while training")
    parser.add_argument("--convolved", action="store_true", help="with rotary positions and short convolutions")
    parser.add_argument("--gated", action="store_true", help="with shares that depend on the context")
    parser.add_argument("--to", type=Path, default=Path(FILE))
    parser.add_argument("--trained", type=Path, help="weights of a transformer that is trained already")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    text, begun = open_text(options.text), time.process_time()
    transformer: Transformer | None = None
    weights: dict[str, torch.Tensor] = {}
    if options.steps or options.trained:
        kind = ConvolvedTransformer if options.convolved else ByteTransformer
        transformer = kind(depth=options.depth, t_max=options.window, dropout=options.dropout)
        if options.trained:
            transformer.load_state_dict(torch.load(options.trained, weights_only=True))
        else:
            losses = learn(transformer, text.train, options.steps, t=options.window, bfloat16=options.bfloat16)
            for step, loss in enumerate(losses, 1):
                if step % 50 == 0:
                    print(f"step {step}: {loss:.3f}", flush=True)
        transformer.eval()
        small = to_int8(transformer.state_dict())
        transformer.load_state_dict(from_int8(small))
        weights = {f"transformer.{name}": weight for name, weight in small.items()}
    capacity = (LARGEST - len(save(weights)) - 68_000) // 2
    table = count_ngrams(text.train, capacity)
    parts = table, transformer
    shares = best_shares(*parts, text.home)
    weights |= {f"table.{name}": part for name, part in table.items()} | {"shares": shares}
    mix: Mix = partial(shared, shares=shares)
    if options.gated:
        contexts, targets = contexts_of(text.home, *FOR_GATE)
        gate = fitted_gate(guesses(*parts, contexts), targets)
        mix, weights = partial(gated, gate=gate), weights | {f"gate.{name}": part for name, part in gate.items()}
    write_whole(options.to, save(weights))
    places = {
        "home": (text.home, AT_HOME),
        "exam": (text.held_back, (MOST, APART)),
        "held_back": (text.held_back, DENSE if options.gated else MANY),
    }
    found = {name: scores(parts, mix, part, text.train, cut) for name, (part, cut) in places.items()}
    seconds = round(time.process_time() - begun)
    print(json.dumps({"text": text.name, "steps": options.steps, "bytes": len(save(weights)), "seconds": seconds,
                      "shares": shares.tolist(), **found}, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
