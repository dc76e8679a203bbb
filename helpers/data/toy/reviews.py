"""Short film reviews, made by a small grammar, that can only be understood by reading them in order.

    (train_texts, train_labels), (test_texts, test_labels) = reviews()

Whether a reviewer liked the film hangs on negation ("not a dull film"), contrast ("the plot is weak, but the cast is
great") and scope ("nobody can say that the ending is silly"). Praise and blame are used alike in positive and negative
reviews, and so is every other word: to who only counts words they are a toss-up. One review in six is plain, with two
words of praise or two of blame and no more, so that counting words is of some use, and so that the words can be
learned.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np

PRAISE = "good great clever funny moving honest gripping lovely".split()
BLAME = "bad awful silly boring dull fake slow weak".split()

_THINGS = "plot story acting script cast music ending dialogue".split()
_FLIPS = ["not", "far from", "hardly"]
_STRENGTH = ["", "", "very ", "rather "]

PLAIN = 1 / 6  # of all reviews
_GRAMMAR = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def reviews(
    train: int = 20_000, test: int = 2_000, seed: int = 0
) -> tuple[tuple[list[str], list[int]], tuple[list[str], list[int]]]:
    """((texts, labels) to train on, (texts, labels) to test on): lists of str and of int, 0 negative and 1 positive.

    Half of each part is kind. Reviews are distinct, and what a test review says of the film is never said in the same
    words in training, whatever remarks stand around it. The same seed gives the same reviews on every machine.
    """
    draw = _Draw(seed)
    said: set[str] = set()
    return tuple(_part(size, draw, said) for size in (train, test))


def _part(size: int, draw: _Draw, said: set):
    """(texts, labels) of `size` reviews that say what is not in `said`, which grows."""
    texts, labels = [], draw.shuffled([i % 2 for i in range(size)])
    for label in labels:
        opinion = _opinion(label, draw)
        while opinion in said:
            opinion = _opinion(label, draw)
        said.add(opinion)
        texts.append(_with_remarks(opinion, draw))
    return texts, labels


def _opinion(label: int, draw: _Draw) -> str:
    """One sentence, or two that disagree, which say together that the reviewer liked the film (1) or did not (0)."""
    if draw.chance(PLAIN):
        return _sentence(label, _GRAMMAR["plain"], draw)
    if draw.chance(0.85):
        return _sentence(label, _GRAMMAR["sentences"], draw)
    first = _sentence(1 - label, _GRAMMAR["sentences"], draw)
    turn, second = draw.one(_GRAMMAR["turns"]), _sentence(label, _GRAMMAR["sentences"], draw)
    return f"{first} {turn}{second if second.startswith('I ') else second[0].lower() + second[1:]}"


def _sentence(label: int, grammar: list, draw: _Draw) -> str:
    """A sentence made by one of the grammar's patterns, which says `label` of the film."""
    like, unlike = (PRAISE, BLAME) if label else (BLAME, PRAISE)
    adj, adj2 = draw.two(like)
    opp, opp2 = draw.two(unlike)
    thing, thing2 = draw.two(_THINGS)
    text = draw.one(grammar).format(
        same=_phrase(adj, opp, draw),
        other=_phrase(opp2, adj2, draw),
        adj=adj,
        adj2=adj2,
        opp=opp,
        opp2=opp2,
        it=f"the {thing}",
        it2=f"the {thing2}",
    )
    text = re.sub(r"\ba (?=(?:awful|honest) )", "an ", text)
    return text[0].upper() + text[1:] + "."


def _phrase(plain: str, negated: str, draw: _Draw) -> str:
    """ "very dull" or "far from clever": as often plainly as by negation, so that the adjective gives nothing away."""
    return draw.one(_STRENGTH) + plain if draw.chance(0.5) else f"{draw.one(_FLIPS)} {negated}"


def _with_remarks(opinion: str, draw: _Draw) -> str:
    """The opinion, sometimes with a remark before or after it that says nothing of the film."""
    before = [draw.one(_GRAMMAR["before"])] if draw.chance(0.25) else []
    after = [draw.one(_GRAMMAR["after"])] if draw.chance(0.25) else []
    return " ".join([*before, opinion, *after])


class _Draw:
    """Drawing by lot, the same on every machine and in every version: numpy promises that of RandomState."""

    def __init__(self, seed: int):
        self._random = np.random.RandomState(seed)
        self._ready: list[float] = []

    def _number(self) -> float:
        if not self._ready:  # thousands at a time: one by one they would take a second or two
            self._ready = self._random.random_sample(10_000).tolist()
        return self._ready.pop()

    def chance(self, p: float) -> bool:
        return self._number() < p

    def one(self, things: list):
        return things[int(self._number() * len(things))]

    def two(self, things: list) -> list:
        """Two different ones."""
        first = int(self._number() * len(things))
        second = (first + 1 + int(self._number() * (len(things) - 1))) % len(things)
        return [things[first], things[second]]

    def shuffled(self, things: list) -> list:
        return [things[i] for i in np.argsort(self._random.random_sample(len(things)), kind="stable")]
