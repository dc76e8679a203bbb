"""Twelve short clauses, each about a topic of its own, that lesson 1 joins to sentences with two topics.

Each clause has three nouns of its topic, chosen so that they are related. No clause names a topic. The words' vectors
are those of the model of `helpers.data.sentence`: less the mean of the whole vocabulary, all of the same length.
`python -m helpers.training.sentence` wrote the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load_file

CLAUSES = {
    "music": "the piano and the violin played with the guitar",
    "food": "we ate bread and soup with cheese",
    "war": "the army sent soldiers and troops",
    "law": "the judge and the lawyer left the court",
    "sea": "the sailors saw a ship and a boat",
    "school": "the teacher gave the pupils a lesson",
    "weather": "rain and snow came with the wind",
    "family": "the mother and the father held the baby",
    "medicine": "the doctor and the nurse helped the patient",
    "farm": "the cows and the pigs followed the sheep",
    "computer": "the mouse and the keyboard came with software",
    "money": "the bank made a loan to pay the debt",
}
NOUNS = {
    "music": ("piano", "violin", "guitar"),
    "food": ("bread", "soup", "cheese"),
    "war": ("army", "soldiers", "troops"),
    "law": ("judge", "lawyer", "court"),
    "sea": ("sailors", "ship", "boat"),
    "school": ("teacher", "pupils", "lesson"),
    "weather": ("rain", "snow", "wind"),
    "family": ("mother", "father", "baby"),
    "medicine": ("doctor", "nurse", "patient"),
    "farm": ("cows", "pigs", "sheep"),
    "computer": ("mouse", "keyboard", "software"),
    "money": ("bank", "loan", "debt"),
}
LENGTH = 2.0  # of a word's vector: a word then keeps about two thirds of its weight
FILE = Path(__file__).with_name("recorded") / "topics.safetensors"


def joined(first: str, second: str) -> list[str]:
    """The words of a sentence about two topics."""
    return f"{CLAUSES[first]} while {CLAUSES[second]}".split()


def all_words() -> list[str]:
    """All words that have a vector: those of the clauses, *while*, and the names of the topics."""
    return sorted({word for clause in CLAUSES.values() for word in clause.split()} | {"while", *CLAUSES})


@cache
def _recorded() -> torch.Tensor:
    return load_file(FILE)["words"].float()


def vectors_of(words: Sequence[str]) -> torch.Tensor:
    """The vectors of words of the clauses. Returns (t, e), e = 384. ValueError for a word that has none."""
    known = all_words()
    for word in words:
        if word not in known:
            raise ValueError(f"There is no vector for {word!r}: it is in none of the clauses.")
    return _recorded()[[known.index(word) for word in words]]
