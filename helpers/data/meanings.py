"""Sixteen short phrases with the word apple, a fruit in eight of them and a company in the others.

*Measured further* reads them for lesson 1. The words' vectors are those of the model of `helpers.data.sentence`,
treated as there: less the mean of the whole vocabulary, all of the same length. `python -m helpers.training.sentence`
wrote the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file

WORD = "apple"
PHRASES = {  # by meaning
    "fruit": (
        "she ate an apple and a pear",
        "an apple fell from the tree",
        "he peeled an apple with a knife",
        "the apple was sweet and red",
        "apple and orange juice",
        "cut the apple into thin slices",
        "he sat under the apple tree",
        "the apple pie was sweet",
    ),
    "company": (
        "apple sells computers and phones",
        "apple released a new phone",
        "the price of apple shares rose",
        "apple hired a new engineer",
        "he bought software from apple",
        "apple sued the company over a patent",
        "she works at apple in california",
        "apple and google",
    ),
}
LIKE = {"fruit": "fruit", "company": "microsoft"}  # a word for each meaning, which is in none of the phrases
FILE = Path(__file__).with_name("recorded") / "meanings.safetensors"


def all_words() -> list[str]:
    """All words that have a vector."""
    return sorted(
        {word for phrases in PHRASES.values() for phrase in phrases for word in phrase.split()} | {*LIKE.values()}
    )


def vectors_of(words: Sequence[str]) -> torch.Tensor:
    """The vectors of words of the phrases. Returns (t, e), e = 384. ValueError for a word that has none."""
    known, table = all_words(), load_file(FILE)["words"].float()  # (n, e)
    for word in words:
        if word not in known:
            raise ValueError(f"There is no vector for {word!r}: it is in none of the phrases.")
    return table[[known.index(word) for word in words]]
