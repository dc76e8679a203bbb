"""The ladder's rungs: one small language model that grows from lesson 1 to lesson 9, and what a student's own reached.

The scores are lines of the file in which the results of checks are kept (`check_log`). No mark depends on them. Needs
no torch: the start page reads them too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from helpers import check_log


@dataclass(frozen=True)
class Rung:
    """One rung."""

    title: str
    """What the model consists of."""
    steps: int
    """Of training, 8 to 30 seconds of one core."""


EDITION = 2  # of the ladder: in the first, rungs 1 to 4 had no mask, and rungs 1 to 5 no positions
MANUAL, ENWIK8 = "manual", "enwik8"  # the texts that a ladder can stand on
RUNGS: Mapping[str, Rung] = {  # by lesson, in the order of the lessons
    "01_dot_product_attention": Rung("bare self-attention", 3600),
    "02_queries_keys_values": Rung("queries, keys, values", 3600),
    "03_scaling": Rung("scaled scores", 3600),
    "04_multi_head": Rung("four heads", 3600),
    "05_masking": Rung("your causal mask", 3600),
    "06_positions": Rung("your positions", 3600),
    "07_transformer_block": Rung("three blocks", 1200),
    "09_character_generator": Rung("windows of 64 bytes", 1200),
}


@dataclass(frozen=True)
class Score:
    """What a model reached on a rung."""

    lesson: str
    bits: float
    """Per held-out byte."""
    steps: int
    """Of training; fewer where it was stopped."""
    own: bool
    """Is it made of the student's functions alone?"""
    references: Mapping[str, float] = field(default_factory=dict)
    """{"gzip -9": bits}, on the same text."""
    text: str = MANUAL
    """Which, MANUAL or ENWIK8."""
    edition: int = EDITION
    """Of the ladder on which the model was trained. Scores of different editions do not compare."""


def keep(score: Score) -> bool:
    """Write a score down, where results of checks are written down. Returns whether that was done."""
    return check_log.write({"ladder": asdict(score)})


def scores() -> list[Score]:
    """All scores that were kept, the oldest first. What cannot be read is passed over."""
    return list(filter(None, (_score(line["ladder"]) for line in check_log.lines() if "ladder" in line)))


def best(scores: Iterable[Score], text: str = MANUAL) -> dict[str, Score]:
    """The best score of each rung on a text, in the order of the lessons.

    One of this edition of the ladder comes before one of an older, and a model of one's own before any other.
    """
    ranked = sorted((s for s in scores if s.text == text), key=lambda score: (score.edition, score.own, -score.bits))
    top = {score.lesson: score for score in ranked}
    return {lesson: top[lesson] for lesson in RUNGS if lesson in top}


def _score(fields: Any) -> Score | None:
    try:
        references = {str(name): float(bits) for name, bits in fields["references"].items()}
        one = Score(
            str(fields["lesson"]),
            float(fields["bits"]),
            int(fields["steps"]),
            bool(fields["own"]),
            references,
            fields.get("text", MANUAL),
            int(fields.get("edition", 1)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    return one if all(map(math.isfinite, (one.bits, *references.values()))) else None
