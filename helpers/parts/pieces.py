"""Words in pieces, as BERT reads them (lesson 14): the tokenizer, and a vocabulary for it.

b batch, t positions.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch

from helpers.course import stands_in

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def wordpiece(word: str, vocabulary: Mapping[str, int], limit: int = 100) -> list[str]:
    """The pieces of a word: from the left, always the longest that the vocabulary has; "##" before all but the first.

    ["[UNK]"] where some rest begins with no piece, or the word has more than `limit` characters.
    """
    if len(word) > limit:
        return [UNKNOWN]
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        end = next((k for k in range(len(word), start, -1) if mark + word[start:k] in vocabulary), None)
        if end is None:
            return [UNKNOWN]
        pieces.append(mark + word[start:end])
        start = end
    return pieces


def pair_input(
    a: Sequence[int], b: Sequence[int] | None, cls: int, sep: int, t_max: int
) -> tuple[list[int], list[int]]:
    """[CLS] a [SEP], or [CLS] a [SEP] b [SEP], as (ids, segments): 0 up to and with the first [SEP], 1 after it.

    Where that is longer than t_max, tokens are removed from the end of the longer of the two, one at a time; of `b`
    where both are equally long, as in the code published with the paper. ValueError where t_max has no room for the
    special tokens.
    """
    a, second = list(a), list(b or [])
    room = t_max - (2 if b is None else 3)
    if room < 0:
        raise ValueError(f"t_max = {t_max} has no room for the special tokens.")
    while len(a) + len(second) > room:
        (a if len(a) > len(second) else second).pop()
    first = [cls, *a, sep]
    rest = [] if b is None else [*second, sep]
    return first + rest, [0] * len(first) + [1] * len(rest)


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of a text as BERT's uncased models see it: lower case, without accents.

    The basic tokenizer of the code published with the paper: each punctuation mark and each Chinese character is a word
    of its own.
    """
    text = "".join(_tidy(c) for c in text)
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn").lower()
    return "".join(f" {c} " if _is_punctuation(c) else c for c in text).split()


def _tidy(character):
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character in "\0�" or unicodedata.category(character) in ("Cc", "Cf"):
        return ""
    return f" {character} " if _is_chinese(ord(character)) else character


_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def _is_chinese(code):
    return any(low <= code <= high for low, high in _CHINESE)


def _is_punctuation(character):
    code = ord(character)
    in_ascii = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return in_ascii or unicodedata.category(character).startswith("P")


class PieceTokenizer:
    """Cuts texts into the pieces of a vocabulary, {piece: id}, which holds the five special tokens too."""

    def __init__(self, vocabulary: Mapping[str, int]):
        missing = [token for token in SPECIAL if token not in vocabulary]
        if missing:
            raise ValueError(f"The vocabulary has no {' nor '.join(missing)}: it is not one of BERT's.")
        self.vocabulary = dict(vocabulary)
        self.pieces_by_id = {i: piece for piece, i in self.vocabulary.items()}
        self.pad, self.unknown, self.cls, self.sep, self.mask = (self.vocabulary[token] for token in SPECIAL)

    @classmethod
    def from_folder(cls, folder: str | Path) -> PieceTokenizer:
        """Read vocab.txt, a piece a line. FileNotFoundError, ValueError where it is damaged."""
        path = Path(folder) / "vocab.txt"
        if not path.is_file():
            raise FileNotFoundError(f"A tokenizer needs vocab.txt, and {folder} has none.")
        if stranger := stands_in(path):
            raise ValueError(f"vocab.txt is damaged: it is {stranger}.")
        try:
            lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise ValueError("vocab.txt is damaged: it is not UTF-8.") from None
        if len(set(lines)) != len(lines):
            raise ValueError("vocab.txt is damaged: a piece stands in it twice.")
        return cls({piece: place for place, piece in enumerate(lines)})

    def __len__(self) -> int:
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text. A special token that is written out, such as [MASK], stays whole."""
        found = []
        for part in re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text):
            words = [part] if part in SPECIAL else split_words(part)
            for word in words:
                found += [word] if word in SPECIAL else wordpiece(word, self.vocabulary)
        return found

    def ids(self, text: str) -> list[int]:
        """The ids of a text's pieces, without special tokens around them."""
        return [self.vocabulary[piece] for piece in self.pieces(text)]

    def encode(self, a: str, b: str | None = None, t_max: int = 512) -> tuple[list[int], list[int]]:
        """(ids, segments) of a text or a pair, as `pair_input` makes them."""
        return pair_input(self.ids(a), None if b is None else self.ids(b), self.cls, self.sep, t_max)

    def batch(
        self, texts: Iterable[str | tuple[str, str]], t_max: int = 512
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Texts, or pairs, of different lengths -> ids, segments and mask, (b, t) each; the mask is True at tokens."""
        rows = [self.encode(*((text,) if isinstance(text, str) else text), t_max=t_max) for text in texts]
        t = max(len(ids) for ids, _ in rows)
        ids = torch.tensor([[*ids, *[self.pad] * (t - len(ids))] for ids, _ in rows])
        segments = torch.tensor([[*kinds, *[0] * (t - len(kinds))] for _, kinds in rows])
        lengths = torch.tensor([len(ids) for ids, _ in rows])
        return ids, segments, torch.arange(t) < lengths.unsqueeze(-1)

    def special(self, ids: torch.Tensor) -> torch.Tensor:
        """Which ids are [PAD], [CLS] or [SEP]: never hidden, never asked. ids: (b, t). Returns booleans, (b, t)."""
        return (ids == self.pad) | (ids == self.cls) | (ids == self.sep)


def learn_pieces(texts: Iterable[str], size: int) -> dict[str, int]:
    """A vocabulary of `size` pieces or fewer: special tokens, characters, frequent words, then frequent endings.

    A simple stand-in for what was done for BERT (M. Schuster and K. Nakajima, "Japanese and Korean voice search",
    2012): it has the same form, and no claim to be the best. Equally frequent ones come in alphabetical order.
    """
    counts = Counter(word for text in texts for word in split_words(text))
    letters = sorted({c for word in counts for c in word})
    pieces = [*SPECIAL, *letters, *(f"##{c}" for c in letters)]
    by_count = sorted((word for word in counts if len(word) > 1), key=lambda word: (-counts[word], word))
    room = max(0, size - len(pieces))
    words = by_count[: room - room // 8]
    rest = Counter()
    for word in by_count:
        for k in range(max(1, len(word) - 5), len(word) - 1):
            rest["##" + word[k:]] += 1
    endings = sorted((end for end in rest if rest[end] > 1), key=lambda end: (-rest[end], end))
    return {piece: place for place, piece in enumerate([*pieces, *words, *endings[: room - len(words)]])}
