# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · What a model reads instead of letters
#
# A language model reads numbers, the ids of *tokens*, and never sees a letter. This lesson builds the step before the
# model: it learns which pieces a text is cut into, cuts any text into them without loss, and puts it together again.
# At its end you know what such a cut costs, and how to compare two models that cut differently.
#
# | | |
# |---|---|
# | **You will build** | GPT-2's tokenizer: its byte alphabet, the learning of merges, encoding and decoding, and the conversion of a loss to bits per byte |
# | **You need** | lesson 9; bytes and text in Python |
# | **It takes** | about 50 minutes: five exercises, 13 points |
# | **It computes** | for a few seconds a cell, on any laptop |
#
# Letters are those of [the table](../../site/notation.md): n is the size of the vocabulary.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from collections import Counter

import torch

from helpers.data.datasets import gpt2_files
from helpers.data.text import manual
from helpers.lesson import in_exam, start
from helpers.parts.bpe import Tokenizer, merge_pair, split_pieces
from helpers.parts.bpe import byte_alphabet as finished_alphabet

check = start("11_tokens")

# %% [markdown]
# ## From text to bytes
#
# Lesson 8 took words for tokens, and met words that it did not know. Lesson 9 took bytes, met nothing unknown, and needed long sequences. GPT-2 takes the middle: it begins with bytes, so that any text can be written, and joins those that often stand together, so that a common word is one token (Radford et al., 2019, section 2.2).
#
# There is a practical matter first. Tokens are kept in text files, one might want to read them, and bytes such as 0, 10 or 32 are a null, a new line and a space: they print badly, or not at all. So each of the 256 bytes gets a **printable character** to stand for it.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `byte_alphabet`** &nbsp; ★★☆ · 7 minutes · 2.5 points
#
# Return a dict from each of the numbers 0 to 255 to a character. The bytes 33 to 126, 161 to 172 and 174 to 255 are visible characters of Latin-1 and **stand for themselves**. The other 68 (control characters, spaces, and 173, an invisible hyphen) get the characters number 256, 257, 258, … in their order: byte 0 the first, byte 1 the next.
#
# <details><summary>Hint 1: a character from its number</summary>
#
# `chr(33)` is "!". Mind that `range(33, 126)` ends with 125.
#
# </details>
# <details><summary>Hint 2: counting only the others</summary>
#
# Go through the bytes from 0 to 255. Keep a counter that moves on only when a byte needs a stand-in; byte 32, the space, is the 33rd of them and becomes "Ġ", number 288.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "byte_alphabet", "locked": false, "schema_version": 3, "solution": true, "task": false}
def byte_alphabet():
    """A printable character for each byte: a dict from 0, 1, ..., 255 to 256 characters."""
    ### BEGIN SOLUTION
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    alphabet, following = {}, 256
    for byte in range(256):
        if byte in printable:
            alphabet[byte] = chr(byte)
        else:
            alphabet[byte] = chr(following)
            following += 1
    return alphabet
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_byte_alphabet", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(byte_alphabet)

# %% tags=["show", "nbval-check-output"]
alphabet = byte_alphabet()
for text in ("Hello, world", "naïve\n", "→ 😀"):
    raw = text.encode()
    print(f"{text!r:>16}  {len(raw):>2} bytes  ", "".join(alphabet[byte] for byte in raw))

# %% [markdown]
# An "ï" is two bytes in UTF-8, an arrow three, a smiley four. What looks like gibberish is exact: each character stands for one byte, and back is as easy as forth.
#
# ## Learning what to join
#
# **Byte-pair encoding** (Sennrich, Haddow and Birch, 2016, after a compression method of Gage, 1994) learns its tokens from a text in the plainest way. Count all pairs of neighbours; join the most frequent pair wherever it stands; count again. Each round makes one new symbol, and it takes part in the next.
#
# A word that occurs a hundred times counts a hundred times, and no pair reaches across the border of a word. What a "word" is, GPT-2 settles with a pattern; it is given, as `split_pieces`. Note where the spaces go:

# %% tags=["show", "nbval-check-output"]
print(" | ".join(split_pieces("It's 2 a.m., and the loop doesn't end.")))
print(merge_pair(["l", "o", "o", "p", "o", "o"], ("o", "o")))

# %% [markdown]
# The second line is the other thing that is given: `merge_pair` joins one pair in one list of symbols, from left to right.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `learn_merges`** &nbsp; ★★★ · 11 minutes · 3 points
#
# Each round: count the pairs of neighbours in all words, a word as often as it occurs; take the most frequent pair (of several, the lexicographically smallest: Python compares tuples so); note it; join it in every word. Stop after `count` pairs, or as soon as no pair occurs at least twice.
#
# <details><summary>Hint 1: neighbours</summary>
#
# `zip(symbols, symbols[1:])` gives the pairs of a list. `split` below leads from each different word to its symbols, `occurrences` to how often it occurs: `pairs[pair] += occurrences[word]`.
#
# </details>
# <details><summary>Hint 2: most frequent, then smallest</summary>
#
# `min` with a key does both at once: the key is a tuple, first minus the count, then the pair.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "learn_merges", "locked": false, "schema_version": 3, "solution": true, "task": false}
def learn_merges(words, count):
    """The pairs that byte-pair encoding joins, in the order in which it joins them.

    words: list of str, each as often as it occurs. count: how many pairs at most.
    Returns a list of pairs (left, right), both str.
    """
    occurrences = Counter(words)
    split = {word: list(word) for word in occurrences}    # at first, its characters
    merges = []
    while len(merges) < count:
        ### BEGIN SOLUTION
        pairs = Counter()
        for word, symbols in split.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += occurrences[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if pairs[best] < 2:
            break
        merges.append(best)
        split = {word: merge_pair(symbols, best) for word, symbols in split.items()}
        ### END SOLUTION
    return merges

# %% nbgrader={"grade": true, "grade_id": "check_learn_merges", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(learn_merges)

# %% [markdown]
# Your function on the prose of Python's manual, a quarter of a megabyte:

# %% tags=["show"]
pieces = split_pieces(manual()[:20_000] if in_exam() else manual())
words = ["".join(finished_alphabet()[byte] for byte in piece.encode()) for piece in pieces]
learned = learn_merges(words, 5 if in_exam() else 120)

shown = ["".join(pair).replace("Ġ", "·") for pair in learned]
for name, part in (("first", shown[:18]), ("last", shown[-14:])):
    print(f"{name:>5}:", "  ".join(part))

# %% [markdown]
# The first merges are what any English text would give: a space with the letter after it, "he", "in", "·the". After a hundred rounds there are words, and they are this text's own. GPT-2 has 50,000 merges, learned on web pages; with the 256 bytes and one token for the end of a text, n = 50,257.
#
# ## Encoding
#
# A new text is cut into pieces, a piece is spelled in bytes, and then its symbols are joined. In which order? The merges were learned one after the other, and each was counted in a text in which all earlier ones had been done already. So it has to go in that order again: **of all pairs present, the one that was learned first**, its rank the lowest. Not the leftmost, and not the longest.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `encode`** &nbsp; ★★★ · 10 minutes · 3.5 points
#
# Finish the loop: join pairs in the order of their ranks until no pair of neighbours has a rank; then add the ids of the symbols that are left.
#
# <details><summary>Hint 1: the pair with the lowest rank</summary>
#
# `min` over the pairs of neighbours, with the rank as the key. A pair that was never learned has no rank: `ranks.get(pair, math.inf)`.
#
# </details>
# <details><summary>Hint 2: when to stop</summary>
#
# When a single symbol is left, there are no neighbours. And when the best pair is not in `ranks`, no pair is.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "encode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode(text, merges, vocabulary):
    """The ids of a text.

    merges: list of pairs (left, right), the first learned first.
    vocabulary: dict from symbol to id. Returns a list of int.
    """
    alphabet = finished_alphabet()
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    ids = []
    for piece in split_pieces(text):
        symbols = [alphabet[byte] for byte in piece.encode()]
        ### BEGIN SOLUTION
        while len(symbols) > 1:
            neighbours = zip(symbols, symbols[1:])
            best = min(neighbours, key=lambda pair: ranks.get(pair, math.inf))
            if best not in ranks:
                break
            symbols = merge_pair(symbols, best)
        ids.extend(vocabulary[symbol] for symbol in symbols)
        ### END SOLUTION
    return ids

# %% nbgrader={"grade": true, "grade_id": "check_encode", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(encode)

# %% tags=["show"]
tokenizer = Tokenizer.from_folder(gpt2_files("gpt2", places="embedded").folder)

def shown_tokens(ids):
    return " | ".join(tokenizer.token(i) for i in ids)

for text in ("The statement raises an exception.", "Transformers read 12,345 tokens.",
             "Größe → 😀"):
    ids = encode(text, tokenizer.merges, tokenizer.vocabulary)
    print(f"{len(text)} characters, {len(ids)} tokens:\n    {shown_tokens(ids)}")

# %% [markdown]
# What the manual says often is a token or two. What it never says falls to pieces, down to single bytes if need be, and nothing is ever *unknown*.
#
# ## And back
#
# Join the symbols, turn each character into its byte, and read the bytes as UTF-8. The order matters: a token may end **inside** a character (the smiley's four bytes may be four tokens), so bytes have to be joined before they are read. And a model may write anything, bytes that are no character among it. Python's `decode` raises an error then, unless you tell it what to do.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `decode`** &nbsp; ★☆☆ · 5 minutes · 2 points
#
# Return the text of the ids. Where bytes make no character, U+FFFD ("�") shall stand, as Python puts it there.
#
# <details><summary>Hint 1: two dicts turned round</summary>
#
# `vocabulary` leads from symbols to ids, and `finished_alphabet()` from bytes to characters. You need both the other way.
#
# </details>
# <details><summary>Hint 2: bytes into text</summary>
#
# `bytes(list_of_numbers).decode("utf-8", errors=...)`. Look up which `errors` there are.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "decode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode(ids, vocabulary):
    """The text of ids.

    ids: list of int. vocabulary: dict from symbol to id. Returns a str.
    """
    ### BEGIN SOLUTION
    symbol_of = {place: symbol for symbol, place in vocabulary.items()}
    byte_of = {character: byte for byte, character in finished_alphabet().items()}
    spelled = "".join(symbol_of[place] for place in ids)
    raw = bytes(byte_of[character] for character in spelled)
    return raw.decode("utf-8", errors="replace")
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_decode", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(decode)

# %% tags=["show", "nbval-check-output"]
text = "Größe → 😀, twice\t\t  spaced"
ids = encode(text, tokenizer.merges, tokenizer.vocabulary)
print("there and back, the same text:", decode(ids, tokenizer.vocabulary) == text)
smiley = encode("😀", [], tokenizer.vocabulary)
print([decode(smiley[:k], tokenizer.vocabulary) for k in range(1, 5)])

# %% [markdown]
# The last line shows one, two, three and four of the smiley's bytes. A program that prints tokens as they come has to wait for the last of them.

# %% [markdown]
# ## Comparing models that cut differently
#
# Lesson 9 measured in bits per byte. A model over tokens has a loss per *token*, and a token may be one byte or ten: the
# longer its tokens, the more a model has to guess at once. So the loss per token says nothing about which of two models
# with different tokenizers is better. Bits per byte does: all the surprise of the text, in bits, divided by the bytes of
# the text, however they were cut.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `bits_per_byte_of`** &nbsp; ★★☆ · 6 minutes · 2 points
#
# A model has predicted a text, `tokens` tokens of it, with a mean cross-entropy of `loss` nats a token. Return bits per
# byte of the text. Bytes are those of UTF-8.
#
# <details><summary>Hint 1: from a mean to a sum</summary>
#
# All tokens together cost loss × tokens nats. One bit is ln 2 nats.
#
# </details>
# <details><summary>Hint 2: how many bytes</summary>
#
# `len(text)` counts characters. `text.encode()` gives the bytes.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "bits_per_byte_of", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bits_per_byte_of(loss, tokens, text):
    """The surprise of a text in bits per byte.

    loss: mean cross-entropy of a token, in nats. tokens: how many were predicted. text: str.
    Returns one number.
    """
    ### BEGIN SOLUTION
    return loss * tokens / math.log(2) / len(text.encode())
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_bits_per_byte_of", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(bits_per_byte_of)

# %% [markdown]
# ## What you can do now
#
# You can learn and apply byte-pair encoding, say why no text is unknown to it, and compare models whatever their tokens
# are.
#
# **Where it goes next.** Lesson 12, *GPT-2*, puts a model behind the tokens: [Open a published model](../12_gpt2/12_gpt2.ipynb).
