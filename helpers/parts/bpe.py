"""Byte-pair encoding as GPT-2 does it (lesson 11): text to ids, and back without loss.

R. Sennrich, B. Haddow and A. Birch, "Neural machine translation of rare words with subword units" (2016), section
3.2, for the merges; A. Radford et al., "Language models are unsupervised multitask learners" (GPT-2, 2019),
section 2.2, for doing it with bytes.

A text is cut into pieces (about a word each, with the space before it), a piece is written as UTF-8 bytes, a byte as a
printable character, and then neighbours are merged, again and again, in the order in which the merges were learned.
"""

from __future__ import annotations

import functools
import heapq
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from helpers.course import stands_in

from .text_pieces import split_pieces

END_OF_TEXT = "<|endoftext|>"


##### Bytes


@functools.cache
def _alphabet():
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(others)}


def byte_alphabet() -> dict[int, str]:
    """A printable character for each byte, so that vocabularies can be read: OpenAI's table.

    Bytes that are visible characters of Latin-1 stand for themselves; the other 68, in order, get the characters from
    256 on: a space is "Ġ", a new line "Ċ". Returns a dict from byte (int) to character; in its order the first 256 ids
    of GPT-2's vocabulary are given.
    """
    return dict(_alphabet())


##### Learning


def learn_merges(words: Iterable[str], count: int) -> list[tuple[str, str]]:
    """Merge the most frequent pair of neighbours, again and again.

    words: list of str in the byte alphabet, as `split_pieces` and `byte_alphabet` give them, each as often as it
    occurs. Every word starts as its characters. Returns at most `count` pairs (left, right) in the order in which they
    were merged; of pairs that are equally frequent the smallest comes first (as Python compares tuples). It ends early
    when no pair is left that occurs twice: merging it would save nothing elsewhere. ValueError for one str in place of
    the list.
    """
    if isinstance(words, str):
        raise ValueError("Merges are learned from a list of words, and this is one str: write [word], or split it.")
    occurrences = Counter(words)
    split = {word: list(word) for word in occurrences}
    frequency: Counter[tuple] = Counter()  # how often each pair occurs
    places: defaultdict[tuple, set[int]] = defaultdict(set)  # and in which words
    for word in split:
        _count_pairs(word, split[word], occurrences[word], frequency, places)
    merges: list[tuple] = []
    while len(merges) < count and frequency:
        pair = min(frequency, key=lambda pair: (-frequency[pair], pair))
        if frequency[pair] < 2:
            break
        merges.append(pair)
        for word in places.pop(pair):
            _count_pairs(word, split[word], -occurrences[word], frequency, places)
            split[word] = merge_pair(split[word], pair)
            _count_pairs(word, split[word], occurrences[word], frequency, places)
    return merges


def _count_pairs(word, symbols, times, frequency, places):
    """Count a word's pairs in (times > 0) or out (times < 0)."""
    for pair in pairwise(symbols):
        frequency[pair] += times
        if frequency[pair] == 0:
            del frequency[pair]
        if times > 0:
            places[pair].add(word)


def merge_pair(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    """Join a pair wherever it stands, from left to right: (["a", "a", "a"], ("a", "a")) -> ["aa", "a"]."""
    merged, i = [], 0
    while i < len(symbols):
        width = 2 if tuple(symbols[i : i + 2]) == pair else 1
        merged.append("".join(symbols[i : i + width]))
        i += width
    return merged


##### Encoding and decoding


def encode(text: str, merges: Sequence[tuple[str, str]], vocabulary: dict[str, int]) -> list[int]:
    """The ids of a text.

    merges: list of pairs (left, right), the first learned first. vocabulary: dict from token to id. In every piece the
    pair that was learned first is merged first, wherever it stands, until no learned pair is left. "<|endoftext|>" is
    text like any other. ValueError for half a surrogate pair, which has no UTF-8, and for a token that the vocabulary
    does not have.
    """
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    try:
        return [vocabulary[symbol] for piece in split_pieces(_whole(text)) for symbol in _merged(_spell(piece), ranks)]
    except KeyError as problem:
        raise ValueError(
            f"The vocabulary has no token {problem.args[0]!r}: it needs the 256 bytes and whatever the merges make."
        ) from None


def decode(ids: Iterable[int], vocabulary: dict[str, int]) -> str:
    """The text of ids. Bytes that are no whole character (a token may end inside one) become U+FFFD, "�".

    ids: integers, a list or a tensor (t,). vocabulary: dict from token to id. ValueError for an id that is not in it.
    """
    return _decoded(ids, {place: token for token, place in vocabulary.items()})


def _decoded(ids, tokens):
    bytes_of = _bytes_of_characters()
    if getattr(ids, "ndim", 1) != 1:
        raise ValueError(
            f"The ids of one text are a row, (t,), and these have the shape {tuple(ids.shape)}: take ids[0]."
        )
    ids = [int(place) for place in ids]
    strange = next((place for place in ids if place not in tokens), None)
    if strange is not None:
        raise ValueError(f"No token of the vocabulary has the id {strange}.")
    return bytes(bytes_of[character] for place in ids for character in tokens[place]).decode("utf-8", errors="replace")


def _whole(text):
    """The text, if it can be written as UTF-8."""
    if not isinstance(text, str):
        raise ValueError(f"A text is a str, and this is a {type(text).__name__}: encode texts one by one.")
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        half = ord(text[problem.start])
        raise ValueError(
            f"Character {problem.start} of the text is U+{half:04X}, half of a surrogate pair: no character, so it has"
            " no bytes to encode."
        ) from None
    return text


def _spell(piece):
    """A piece as a string in the byte alphabet."""
    alphabet = _alphabet()
    return "".join([alphabet[byte] for byte in piece.encode()])


@functools.cache
def _bytes_of_characters():
    return {character: byte for byte, character in _alphabet().items()}


def _merged(word, ranks):
    """A word in the byte alphabet as its tokens."""
    if len(word) > _LONG:
        return _merged_long(word, ranks)
    symbols = list(word)
    while len(symbols) > 1:
        pair = min(pairwise(symbols), key=lambda pair: ranks.get(pair, _NEVER))
        if pair not in ranks:
            break
        symbols = merge_pair(symbols, pair)
    return symbols


_LONG, _NEVER = 80, float("inf")


def _merged_long(word, ranks):
    """The same for a word of any length: the pairs wait in a heap, and a merge touches its two neighbours only.

    The time grows as t log t with the t characters of a word, where looking at every pair before every merge takes t².
    """
    symbols = list(word)  # None where a symbol was merged into the one before
    before, after = list(range(-1, len(word) - 1)), list(range(1, len(word) + 1))
    heap = [(ranks[pair], i, *pair) for i, pair in enumerate(pairwise(symbols)) if pair in ranks]
    heapq.heapify(heap)

    def push(i):
        j = after[i]
        if i >= 0 and j < len(symbols) and (symbols[i], symbols[j]) in ranks:
            heapq.heappush(heap, (ranks[symbols[i], symbols[j]], i, symbols[i], symbols[j]))

    while heap:
        _, i, left, right = heapq.heappop(heap)
        j = after[i]
        if symbols[i] != left or j >= len(symbols) or symbols[j] != right:
            continue  # one of the two has been merged with another meanwhile
        symbols[i], symbols[j] = left + right, None
        after[i] = after[j]
        if after[j] < len(symbols):
            before[after[j]] = i
        if before[i] >= 0:
            push(before[i])
        push(i)
    return [symbol for symbol in symbols if symbol is not None]


##### What tokens cost


def bits_per_byte_of(loss: float, tokens: int, text: str) -> float:
    """The surprise of a text in bits per byte, by which models with different tokens can be compared.

    loss: mean cross-entropy of a token, in nats. tokens: how many were predicted. text: what they spell.
    """
    return loss * tokens / math.log(2) / len(_whole(text).encode())


##### A tokenizer


class Tokenizer:
    """Text to ids and back, with the files that GPT-2 was published with: vocab.json and merges.txt.

    vocabulary: dict from token to id. merges: list of pairs. Pieces that were met before are looked up, so that a
    megabyte of text takes seconds. end_of_text: the id of "<|endoftext|>", None where the vocabulary has none.
    """

    def __init__(self, vocabulary: dict[str, int], merges: Sequence[tuple[str, str]]):
        self.vocabulary, self.merges = dict(vocabulary), [tuple(pair) for pair in merges]
        self.end_of_text = self.vocabulary.get(END_OF_TEXT)
        self._tokens = {place: token for token, place in self.vocabulary.items()}
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self._known = {}

    def __len__(self):
        """How many tokens there are: n."""
        return len(self.vocabulary)

    @classmethod
    def from_folder(cls, folder: str | Path) -> Tokenizer:
        """Read vocab.json and merges.txt. FileNotFoundError where one is missing, ValueError where one is damaged."""
        vocabulary, merges = _read_vocabulary(Path(folder) / "vocab.json"), _read_merges(Path(folder) / "merges.txt")
        for left, right in merges:
            for token in (left, right, left + right):
                if token not in vocabulary:
                    raise ValueError(
                        f"merges.txt merges {left!r} and {right!r}, but vocab.json has no token {token!r}: "
                        "the files are damaged, or not of one tokenizer."
                    )
        return cls(vocabulary, merges)

    @classmethod
    def learn(cls, text: str, size: int) -> Tokenizer:
        """A vocabulary of at most `size` tokens.

        The 256 bytes, what `learn_merges` finds in the text, and "<|endoftext|>" as the last.

        ValueError when size is below 257.
        """
        if size < 257:
            raise ValueError(f"The bytes and {END_OF_TEXT} alone are 257 tokens, and size is {size}.")
        merges = learn_merges([_spell(piece) for piece in split_pieces(_whole(text))], size - 257)
        tokens = dict.fromkeys([*_alphabet().values(), *(left + right for left, right in merges), END_OF_TEXT])
        return cls({token: place for place, token in enumerate(tokens)}, merges)

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The ids of a text, a list of int. ValueError for half a surrogate pair.

        special: "<|endoftext|>" in the text becomes its one id. Otherwise, as in OpenAI's own code, it is
        text like any other: what a user typed cannot end a text. (The tokenizers of `transformers` take it
        as special wherever it stands.)
        """
        if special and self.end_of_text is not None and isinstance(text, str):
            first, *others = text.split(END_OF_TEXT)
            ids = self.encode(first)
            for part in others:
                ids += [self.end_of_text, *self.encode(part)]
            return ids
        ids = []
        for piece in split_pieces(_whole(text)):
            found = self._known.get(piece)
            ids += self._encode_piece(piece) if found is None else found
        return ids

    def _encode_piece(self, piece):
        ids = [self.vocabulary[token] for token in _merged(_spell(piece), self._ranks)]
        if len(piece) <= _LONG:
            if len(self._known) > 200_000:
                self._known.clear()  # or a text without end would fill the memory
            self._known[piece] = ids
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, a list or a tensor (t,).

        Bytes that are no whole character become U+FFFD. ValueError for an unknown id.
        """
        return _decoded(ids, self._tokens)

    def token(self, place: int) -> str:
        """One token as it reads in a picture: "·" for a space, what cannot be printed as in the byte alphabet.

        ValueError for an unknown id.
        """
        if int(place) not in self._tokens:
            raise ValueError(f"No token of the vocabulary has the id {int(place)}.")
        return self._tokens[int(place)].replace("Ġ", "·")

    def save(self, folder: str | Path) -> None:
        """Write vocab.json and merges.txt as the published tokenizer has them."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vocab.json").write_text(json.dumps(self.vocabulary, ensure_ascii=False), encoding="utf-8")
        lines = ["#version: 0.2", *(f"{left} {right}" for left, right in self.merges)]
        with open(folder / "merges.txt", "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(lines) + "\n")


def _read_text(path):
    if not path.is_file():
        raise FileNotFoundError(f"A tokenizer needs {path.name}, and {path.parent} has none.")
    if stranger := stands_in(path):
        raise ValueError(f"{path.name} is {stranger}.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is damaged: it is not UTF-8.") from None


def _read_vocabulary(path):
    try:
        vocabulary = json.loads(_read_text(path))
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"{path.name} is damaged: it is not JSON.") from None
    if not isinstance(vocabulary, dict) or not all(type(place) is int and place >= 0 for place in vocabulary.values()):
        raise ValueError(f"{path.name} is damaged: it should give an id, a whole number, for every token.")
    if len(set(vocabulary.values())) < len(vocabulary):
        raise ValueError(f"{path.name} is damaged: it gives one id to two tokens.")
    missing = [character for character in _alphabet().values() if character not in vocabulary]
    if missing:
        raise ValueError(
            f"{path.name} is damaged: it has no token for {len(missing)} of the 256 bytes, {missing[0]!r} for one."
        )
    characters = _bytes_of_characters()
    strange = next((token for token in vocabulary if any(character not in characters for character in token)), None)
    if strange is not None:
        raise ValueError(f"{path.name} is not in GPT-2's byte alphabet: the token {strange!r}.")
    return vocabulary


def _read_merges(path):
    lines = _read_text(path).split("\n")
    merges: list[tuple] = []
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = tuple(line.split(" "))
        if len(pair) != 2 or not all(pair):
            raise ValueError(
                f"{path.name} is damaged: line {number} should be two tokens with a space between, and is"
                f" {line[:60]!r}."
            )
        merges.append(pair)
    if len(set(merges)) < len(merges):
        raise ValueError(f"{path.name} is damaged: it has one merge twice.")
    return merges
