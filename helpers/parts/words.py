"""From texts to numbers: a vocabulary of words, and padded batches of word ids (lesson 8).

b batch, t positions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import torch

PAD, UNKNOWN = "<pad>", "<unk>"

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)*|[.,;:!?]")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, and its punctuation: "It isn't dull." -> ["it", "isn't", "dull", "."]."""
    return _WORD.findall(text.lower().replace("<br />", " ").replace("’", "'"))


def build_vocabulary(texts: Iterable[str], size: int) -> dict[str, int]:
    """The ids of the most frequent words.

    texts: list of str. size: how many entries there may be, the two special ones included. Returns a dict
    from word to id: <pad> is 0, <unk> is 1, then the words by decreasing frequency, and in alphabetical order
    where two are equally frequent. ValueError for one text in place of a list.
    """
    _require_list(texts)
    counts = Counter(word for text in texts for word in split_words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: place for place, word in enumerate([PAD, UNKNOWN, *ranked[: max(0, size - 2)]])}


def encode_batch(texts: Iterable[str], vocabulary: dict[str, int], length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts as one rectangle of ids, and which of them are words.

    Each text is cut after `length` words; shorter ones are padded to the longest of the batch. Returns ids (b, t),
    int64, and mask (b, t), booleans, True where there is a word; t is at most `length` and at least 1. ValueError when
    length is below 1, or for one text in place of a list.
    """
    _require_list(texts)
    if length < 1:
        raise ValueError(f"Texts are cut after at least one word, and length is {length}.")
    unknown, pad = vocabulary[UNKNOWN], vocabulary[PAD]
    rows = [[vocabulary.get(word, unknown) for word in split_words(text)[:length]] for text in texts]
    return pad_rows(rows, pad)


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Lists of ids of different lengths -> ids (b, t), int64, and mask (b, t), True where an id is no padding."""
    t = max([1, *map(len, rows)])
    ids = torch.tensor([[*row, *[pad] * (t - len(row))] for row in rows], dtype=torch.int64).reshape(len(rows), t)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    return ids, torch.arange(t) < lengths.unsqueeze(-1)


def _require_list(texts):
    """One text is a sequence too, of characters, and would pass for as many texts of one character."""
    if isinstance(texts, str):
        raise ValueError("This takes a list of texts, and got one text: write [text].")
