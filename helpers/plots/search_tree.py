"""A beam search, step by step: the beginnings that live on, and those that are dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
from torch import nn

from .style import CENTRED, COLOURS, HALO, WIDTH


class Candidate(NamedTuple):
    """A beginning with one more word."""

    parent: int
    """Its place in the step before; 0 in the first."""
    word: str
    score: float
    """The logarithm of the probability of the whole beginning."""
    kept: bool
    """Among the best: it is extended in the next step, or finished."""


def search_tree(steps: Sequence[Sequence[Candidate]], root: str, stop: str = "<stop>") -> None:
    """One column a step, the best candidate at the top; each is joined to the beginning that it extends.

    steps  the candidates of each step, the kept ones and some of the dropped ones. Those are crossed out, and their
           lines are dotted. The way to the best of those that are finished, or in the last step, is thick.
    root   what stands before the first step.
    stop   the word that finishes a beginning.
    """
    columns = [_best_first(step) for step in steps]
    rows = [{i: row for row, i in enumerate(column)} for column in columns]
    down = max(len(column) for column in columns)
    ax = plt.subplots(figsize=(WIDTH, 0.42 * down + 0.35))[1]
    winning = _way_to_the_best(steps, stop)
    for k, step in enumerate(steps):
        for i, one in enumerate(step):
            place, before = (k + 1, rows[k][i]), (k, rows[k - 1][one.parent] if k else 0)
            best = i == winning.get(k)
            colour, wide, line = COLOURS[1] if best else "#666666", 2.6 if best else 1.1, "-" if one.kept else ":"
            ax.plot(*zip(before, place, strict=True), color=colour, linewidth=wide, linestyle=line, zorder=1)
            text = f"{one.word}\n{'' if one.kept else '× '}{one.score:.2f}".replace("-", "−")
            weight = "bold" if best else "normal"
            ink = "#000000" if one.kept else "#555555"
            ax.text(*place, text, fontsize=7.5, fontweight=weight, color=ink, zorder=3, bbox=HALO, **CENTRED)
    ax.text(0, 0, root, fontsize=7.5, zorder=3, bbox=HALO, **CENTRED)
    ax.set(xlim=(-0.5, len(steps) + 0.5), ylim=(down - 0.45, -0.55))
    ax.set_axis_off()


def search_tree_of(
    search: Callable[..., torch.Tensor],
    model: nn.Module,
    source: torch.Tensor,
    words: Sequence[str],
    start: int,
    stop: int,
    width: int,
    limit: int = 20,
    dropped: int = 2,
) -> None:
    """Run a beam search, and draw what it weighs: `search_tree` of the kept candidates and the best dropped ones.

    search   called as search(model, source, start, stop, limit, width); source is (1, s), ids.
    words    the word of each id that the model may write; start and stop are ids.
    dropped  so many dropped candidates are drawn at each step.
    """
    watched, steps = _Watched(model), []
    search(watched, source, start, stop, limit, width)
    scores, places = {(start,): 0.0}, {(start,): 0}
    for beams, log_p in watched.steps:
        rows, n = [tuple(row.tolist()) for row in beams], log_p.shape[-1]
        totals = torch.tensor([[scores[row]] for row in rows]) + log_p
        best, flat = totals.flatten().topk(min(width + dropped, totals.numel()))
        step, scores, found = [], {}, {}
        for rank, (total, place) in enumerate(zip(best.tolist(), flat.tolist(), strict=True)):
            row, token = rows[place // n], place % n
            scores[*row, token], found[*row, token] = total, rank
            step.append(Candidate(places[row], words[token], total, rank < width))
        width -= sum(one.kept and one.word == words[stop] for one in step)
        places = found
        steps.append(step)
    search_tree(steps, words[start], words[stop])


class _Watched(nn.Module):
    """A model that notes the beginnings that it is given, and what it makes of them."""

    def __init__(self, model):
        super().__init__()
        self.model, self.pad, self.steps = model, model.pad, []

    def encode(self, source):
        return self.model.encode(source)

    def decode(self, target, memory, source):
        logits = self.model.decode(target, memory, source)
        self.steps.append((target.cpu(), logits[:, -1].log_softmax(dim=-1).cpu()))
        return logits


def _best_first(step: Sequence[Candidate]) -> list[int]:
    """The places of the candidates of a step, the best first."""
    return sorted(range(len(step)), key=lambda i: -step[i].score)


def _way_to_the_best(steps, stop):
    """{step: place of the candidate on the way to the best complete one}."""
    last = len(steps) - 1
    ends = [
        (k, i)
        for k, step in enumerate(steps)
        for i, one in enumerate(step)
        if one.kept and (k == last or one.word == stop)
    ]
    k, i = max(ends, key=lambda end: steps[end[0]][end[1]].score)
    way = {k: i}
    while k:
        k, i = k - 1, steps[k][i].parent
        way[k] = i
    return way
