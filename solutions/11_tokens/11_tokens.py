# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 11 · Tokens
#
# *What a model reads instead of letters*
#
# Ask GPT-2 how many r are in *strawberry*, and it has no letters to count. A program, the **tokenizer**, has cut the
# text into pieces, called **tokens**, and the model gets only their numbers, the **ids**. Lesson 9's model read plain
# bytes and needed no such program. **What does a model gain by reading tokens in place of bytes, and what does it
# pay?**
#
# | | |
# |---|---|
# | **You will build** | GPT-2's tokenizer: its byte alphabet, the learning of merges, decoding, bits per byte; and you fix an encoder |
# | **You need** | [lesson 9](../09_character_generator/09_character_generator.ipynb) for cross-entropy and bits per byte; bytes and text in Python |
# | **It takes** | about 65 minutes: five exercises, 13 points, and three predictions |
# | **It computes** | for a few seconds a cell, and for less than a minute where two models are trained, on any laptop |
#
# As in [the notation table](../../site/notation.md), n is the size of the vocabulary. [The page for
# students](../../site/students.md) says what every check asks.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from collections import Counter

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.recorded import recorded
from helpers.data.text import manual
from helpers.data.toy.five_sentences import SENTENCES
from helpers.device import device
from helpers.lesson import start
from helpers.parts import gpt2 as finished_gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.bpe import byte_alphabet as finished_alphabet
from helpers.parts.bpe import encode as finished_encode
from helpers.parts.bpe import merge_pair, split_pieces
from helpers.parts.generator import sample_batch
from helpers.progress import progress

check = start("11_tokens")

# %% [markdown]
# ## With more merges a text has fewer tokens
#
# [Lesson 8](../08_classifier/08_classifier.ipynb) cut texts into words, and a word outside its list stays unknown.
# Bytes can spell every word, but their sequences are long: a window holds less text, and each byte written costs a
# pass through the model. GPT-2 starts from bytes and joins those that often occur side by side ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf),
# section 2.2). Joining one such pair is a **merge**.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Five rows, each the same sentence, The Zürich tokenizer raises 12345 exceptions, doesn't it?, cut into coloured tokens. Bytes: every letter is a token, ü is two. With more merges the tokens get longer, until exception and doesn are whole. GPT-2: still fewer, the number in two."}}
folder = gpt2_files("gpt2", places="embedded").folder
tokenizer = Tokenizer.from_folder(folder)
run = recorded("gpt2_tokens")
published = run["result"]

def shown_tokens(ids):
    return " | ".join(tokenizer.token(i) for i in ids)

sentence, rows = published["sentence"], {}
for count in (0, 30, 300, len(tokenizer.merges)):
    ids = finished_encode(sentence, tokenizer.merges[:count], tokenizer.vocabulary)
    rows[f"{count:,} merges" if count else "bytes"] = [tokenizer.token(i) for i in ids]
by_gpt2 = published["sentence_cut_by"]["GPT-2"]
rows["GPT-2"] = [token.replace("Ġ", "·") for token in by_gpt2]
plots.token_rows(rows)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **One sentence, cut in five ways.** Each box is a token; the colours only tell neighbours apart. "·" is a space, and
# "Ã¼" are the two bytes of ü. Rows two to four use merges that were learned on Python code, for this course's own
# small GPT-2. The last row is OpenAI's GPT-2.
#
# </div>
#
# **With all 1,791 merges, the sentence has fewer than half as many tokens as bytes.** With its space, *exception*,
# common in code, is one token; *Zürich*, rare there, falls with its space into six.

# %% [markdown]
# ## Merges are learned by counting pairs
#
# **Byte-pair encoding** ([Sennrich, Haddow and Birch, 2016](https://aclanthology.org/P16-1162/), after [Gage,
# 1994](http://www.pennelynn.com/Documents/CUJ/HTML/94HTML/19940045.HTM)) counts all pairs of neighbours in a text,
# joins the most frequent pair everywhere, and counts again. The new symbol takes part in the next round.
#
# No pair reaches across the border of a word: otherwise *dog.*, *dog!* and *dog?* would each take a place in the
# vocabulary. GPT-2 decides what counts as a word with a regular expression, given here as `split_pieces`:

# %% tags=["nbval-check-output"]
print(" | ".join(split_pieces("It's 2 a.m., and the loop doesn't end.")))
print(merge_pair(["l", "o", "o", "p", "o", "o"], ("o", "o")))

# %% [markdown]
# **A space goes to the word after it**, so *loop* with a space and *loop* without are two different words. Also
# given is `merge_pair`, which joins one pair in a list of symbols, from left to right.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `learn_merges`** &nbsp; ★★★ · 11 minutes · 3 points
#
# In each round, count the pairs of neighbours in all words. A word counts as often as it occurs, and every place in
# it counts, overlapping ones too: *aaa* holds (a, a) twice. Take the most frequent pair; of equally frequent ones
# take the smallest tuple, as Python compares tuples. Append it to `merges`, and join it in every word. Stop after
# `count` pairs, or as soon as no pair occurs at least twice. Do not call `Tokenizer` here, nor in exercises 3 and 4.
#
# <details><summary>Hint 1: neighbours</summary>
#
# `zip(symbols, symbols[1:])` gives the pairs of a list. `split` below leads from each different word to its symbols,
# `occurrences` to how often it occurs: `pairs[pair] += occurrences[word]`.
#
# </details>
# <details><summary>Hint 2: most frequent, then smallest</summary>
#
# Let (b, a) occur 3 times, (a, c) 5 times and (a, b) 5 times. The pair to take is (a, b). Python compares tuples from
# the left, so (−5, (a, b)) is smaller than (−5, (a, c)), and both are smaller than (−3, (b, a)).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "learn_merges", "locked": false, "schema_version": 3, "solution": true, "task": false}
def learn_merges(words, count):
    """The pairs that byte-pair encoding joins, in the order in which it joins them.

    words: list of str, each as often as it occurs; may be empty. count: how many pairs at
    most.
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
# Try it on the four words of [Sennrich et al.](https://aclanthology.org/P16-1162/) (section 3.2), without their sign for the
# end of a word:

# %%
four_words = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
print(learn_merges(four_words, 4))

# %% [markdown]
# ## Every text is bytes, so no text is unknown
#
# What are the first symbols? Exercise 1 began with characters, but Unicode has too many of them for a table, and most
# are rare. A byte has 256 values, and a vocabulary that holds them all can spell any text. But GPT-2's merges are
# kept in a text file, where spaces and new lines separate symbols, and some other bytes do not print. So each byte
# gets a **printable character** to stand for it.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `byte_alphabet`** &nbsp; ★★☆ · 7 minutes · 2.5 points
#
# Return a dict from each of the numbers 0 to 255 to a character. The bytes 33 to 126, 161 to 172 and 174 to 255 are
# visible characters of Latin-1 and **stand for themselves**. The other 68 (control characters, spaces, and 173, an
# invisible hyphen) get the characters number 256, 257, 258, … in their order: byte 0 the first, byte 1 the next. All
# 256 characters are different. Typing out the whole table is fine. Do not call `finished_alphabet` here.
#
# <details><summary>Hint 1: a character from its number</summary>
#
# `chr(33)` is "!". Mind that `range(33, 126)` ends with 125.
#
# </details>
# <details><summary>Hint 2: counting only the others</summary>
#
# The bytes 0 to 32 get 256 to 288; byte 32, the space, becomes "Ġ", number 288. The bytes 33 to 126 stand for
# themselves and use up none of these numbers: the next, 289, goes to byte 127.
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

# %% tags=["nbval-check-output"]
alphabet = byte_alphabet()
for text in ("Hello, world", "naïve\n", "→ 😀"):
    raw = text.encode()
    print(f"{text!r:>16}  {len(raw):>2} bytes  ", "".join(alphabet[byte] for byte in raw))

# %% [markdown]
# An "ï" is two bytes in UTF-8, an arrow three, a smiley four. Now learn merges from the prose of Python's manual,
# spelled like this:

# %%
pieces = split_pieces(manual())
words = ["".join(finished_alphabet()[byte] for byte in piece.encode()) for piece in pieces]
learned = learn_merges(words, 120)

shown = ["".join(pair).replace("Ġ", "·") for pair in learned]
for name, part in (("first", shown[:18]), ("last", shown[-14:])):
    print(f"{name:>5}:", "  ".join(part))

# %% [markdown]
# **What the text repeats becomes a token.** The first merges are common in English: *he*, *in*, *on*, *the*. Among
# the last are some of this text's own, such as *value* and *class*. GPT-2 has 50,000 merges, learned on web pages.
# Its vocabulary numbers the 256 bytes, then the symbol that each merge makes; with one token for the end of a text, n
# = 50,257.
#
# How is a new text cut?
#
# ## The same merges cut any text
#
# The regular expression cuts a new text into pieces, each piece is spelled in bytes, and the learned merges join its
# symbols. The encoder in the next exercise does all this, and no text makes it fail. But it cuts many words into
# other tokens than learning left them in.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `encode`** &nbsp; fix · ★★★ · 10 minutes · 3.5 points
#
# The cell below holds that encoder, complete and wrong. Run it and the cell after it, which prints its tokens beside
# the right ones. Find the mistake and fix it. The right tokens of a piece are what `learn_merges` would
# have made of it, had it been a word of the training text. At the end no learned pair remains in a piece, and nothing
# is joined across pieces.
#
# <details><summary>Hint 1: an example by hand</summary>
#
# Let the merges be (b, c) and (a, b), learned in this order: `ranks` is {(b, c): 0, (a, b): 1}. Cut the piece *abc*
# by hand. Which pairs could be joined first? And what had been joined already when (a, b) was counted?
#
# </details>
# <details><summary>Hint 2: its tokens</summary>
#
# The piece *abc* becomes *a* and *bc*: when (a, b) was counted, every *b* before a *c* was already part of *bc*. The
# piece *abab* becomes *ab* and *ab*. A pair such as (c, a), which was never learned, has no rank at all.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "encode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode(text, merges, vocabulary):
    """The ids of a text, which may be empty.

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
        ### STUDENT GETS
        # while True:
        #     known = [pair for pair in zip(symbols, symbols[1:]) if pair in ranks]
        #     if not known:
        #         break
        #     symbols = merge_pair(symbols, known[0])
        # ids.extend(vocabulary[symbol] for symbol in symbols)
        ### END SOLUTION
    return ids

# %%
some = ["the", "in", "method", "statement", "exception", "string", "used", "list"]
mended = [encode(" " + word, tokenizer.merges, tokenizer.vocabulary) for word in some]
cuts = [mended, [tokenizer.encode(" " + word) for word in some]]
for word, mine, right in zip(some, *cuts):
    print(f"{word:>10}: {shown_tokens(mine):<24} right: {shown_tokens(right)}")
wrong = sum(mine != right for mine, right in zip(*cuts))
print(wrong, "of", len(some), "words are cut wrongly")

# %% nbgrader={"grade": true, "grade_id": "check_encode", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(encode)

# %% [markdown]
# <details><summary>What was wrong in it</summary>
#
# Each merge was counted in a text in which all earlier merges had been made. So a new text has to go through them in
# that order again. At each step join, **of all pairs present, the one that was learned first**, which has the lowest
# rank. The code joined the leftmost pair that was learned at all.
#
# </details>
#
# Once you have fixed it, unfold the next cell, which draws both ways of merging *abc*.

# %% tags=["hide-cell"]
plots.diagrams.merges_in_two_orders("abc", [("b", "c"), ("a", "b")])

# %% [markdown]
# The ids are right. Does the text come back from them?
#
# ## Decoding gives the text back
#
# Join the symbols, turn each character into its byte, and read the bytes as UTF-8. A token may end **inside** a
# character, so the bytes are joined before they are read.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `decode`** &nbsp; ★☆☆ · 5 minutes · 2 points
#
# Return the text of the ids. The tokens that a model writes may form no character: where bytes make none, the text
# has U+FFFD ("�") instead, exactly where Python's own `decode` puts it if asked to. Do not call `Tokenizer` here.
#
# <details><summary>Hint 1: two dicts reversed</summary>
#
# `vocabulary` maps symbols to ids, `finished_alphabet()` bytes to characters. You need both inverses.
#
# </details>
# <details><summary>Hint 2: bytes into text</summary>
#
# `bytes([226, 130, 172]).decode("utf-8")` is "€". `bytes([226, 130]).decode("utf-8")` raises UnicodeDecodeError,
# unless `errors=` says what to do instead: `help(bytes.decode)` tells which values there are.
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

# %% tags=["nbval-check-output"]
text = "Größe → 😀, twice\t\t  spaced"
ids = encode(text, tokenizer.merges, tokenizer.vocabulary)
print("there and back, the same text:", decode(ids, tokenizer.vocabulary) == text)
smiley = encode("😀", [], tokenizer.vocabulary)
print([decode(smiley[:k], tokenizer.vocabulary) for k in range(1, 5)])

# %% [markdown]
# The text comes back whole. The last line decodes one to four of the smiley's bytes: a program that prints tokens as
# they come has to wait for the fourth. If nothing is lost, what does the cut cost?
#
# ## An id hides letters and digits
#
# OpenAI's merges are not part of this course, so the real GPT-2's cuts were recorded.

# %% tags=["nbval-check-output"]
print(f"{run['data']['name']}: {published['vocabulary']:,} tokens. {run['command']}")

def show_cuts(*texts):
    for text in texts:
        cut = [token.replace("Ġ", "·") for token in published["cuts"][text]]
        print(f"{text!r:>20}  {len(cut)}: {' | '.join(cut)}")

show_cuts("strawberry", " strawberry")

# %% [markdown]
# **After a space, as in running text, *strawberry* is one id.** Nothing in that number says how many r it has. Are
# digits easier to see?

# %% [markdown]
# <div class="card">
#
# **Prediction · `cut_of_digits`** &nbsp; 1 minute · no points
#
# How does GPT-2's vocabulary cut the text `1234567890`?
#
# - **A.** Into ten tokens, a digit each.
# - **B.** Into one token.
# - **C.** Into 123, 456, 789 and 0: three digits at a time.
# - **D.** Into pieces of two or three digits, wherever merges happen to meet.
# </div>

# %% nbgrader={"grade": false, "grade_id": "cut_of_digits", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
cut_of_digits = "D"
### STUDENT GETS
# cut_of_digits = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %% tags=["nbval-check-output"]
show_cuts("1234567890", "1999", "2024")

# %% nbgrader={"grade": true, "grade_id": "check_cut_of_digits", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("cut_of_digits", cut_of_digits)

# %% [markdown]
# **Digits come in uneven groups.** *1999* was frequent enough to become one token; *2024* was not. Where they are cut
# changes how well a model calculates ([Singh and Strouse, 2024](https://arxiv.org/abs/2402.14903)); the first Llama
# cut every number into single digits ([Touvron et al., 2023](https://arxiv.org/abs/2302.13971), section 2.1). Do all
# languages fare alike?
#
# ## Languages do not cost the same
#
# Providers charge by the token, and a window holds a fixed number of them.

# %% [markdown]
# <div class="card">
#
# **Prediction · `costliest_sentence`** &nbsp; 1 minute · no points
#
# The same sentence in three languages. Which takes the most GPT-2 tokens?
#
# - **A.** The children are playing in the garden.
# - **B.** Die Kinder spielen im Garten.
# - **C.** 孩子们在花园里玩。
# </div>

# %% nbgrader={"grade": false, "grade_id": "costliest_sentence", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
costliest_sentence = "C"
### STUDENT GETS
# costliest_sentence = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
for language in ("English", "German", "Chinese"):
    tokens = published["sentences"][language][-1]
    print(f"{language:>8}: {tokens:>2} tokens  {SENTENCES[language][-1]}")

# %% nbgrader={"grade": true, "grade_id": "check_costliest_sentence", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("costliest_sentence", costliest_sentence)

# %% [markdown]
# **The sentence with the fewest characters takes the most tokens.** Most Chinese characters are three bytes, and GPT-2
# learned few merges for them: pages in other languages than English were removed from its text on purpose ([Radford
# et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf),
# section 3.7). Are the bytes to blame, or the merges? Here are five short sentences in five languages:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two bars for each of five languages, its bytes and its GPT-2 tokens, as multiples of those of English. German: 0.9 and 1.4. Chinese: 0.8 and 2.3. Russian: 1.4 and 3.9. Hindi: 2.2 and 5.7. For all four the bar of tokens is much longer than the bar of bytes."}}
size = {name: sum(len(text.encode()) for text in texts) for name, texts in SENTENCES.items()}
count = {name: sum(published["sentences"][name]) for name in SENTENCES}
figure, ax = plt.subplots(figsize=(6, 3.1))
for k, (label, of) in enumerate({"bytes": size, "GPT-2's tokens": count}.items()):
    times = [of[name] / of["English"] for name in SENTENCES]
    places = [row + 0.38 * (k - 0.5) for row in range(len(times))]
    drawn = ax.barh(places, times, height=0.36, color=plots.COLOURS[k], label=label)
    ax.bar_label(drawn, [f"{value:.1f}" for value in times], padding=3, fontsize=8.5)
ax.set(xlabel="times as many as in English", xlim=(0, 6.5))
ax.set_yticks(range(len(SENTENCES)), list(SENTENCES))
ax.invert_yaxis()
ax.grid(False, axis="y")
ax.legend()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **In tokens, the gap to English is wider than in bytes.** The same five sentences in each language: their bytes and
# GPT-2's tokens, as multiples of those of English.
#
# </div>
#
# **The merges widen the gap.** In bytes, the German and Chinese sentences are shorter than the English ones; Hindi's
# have 2.2 times as many. In tokens all four cost more, Hindi 5.7 times as much: a window holds less than a fifth as
# much of it. So for German and Chinese the merges alone are to blame, for Hindi bytes and merges. Over many languages
# the spread is larger still ([Petrov et al., 2023](https://arxiv.org/abs/2305.15425)).
#
# How can two models be compared when their tokens differ?
#
# ## Bits per byte compare models that cut differently
#
# For token models one usually gives the [perplexity](../../site/glossary.md#perplexity) of a token,
# $e^{\text{loss}}$: the number of equally likely tokens that would be just as hard to guess. Does it depend on the
# cut? A very simple model shows it: it predicts each token by its frequency in the first four fifths of the manual,
# and is measured on the last fifth, with 0 to 2,000 merges.

# %% [markdown]
# <div class="card">
#
# **Prediction · `perplexity_of_merges`** &nbsp; 1 minute · no points
#
# How does the perplexity of a token change from 0 merges to 2,000?
#
# - **A.** It falls: the tokens are better.
# - **B.** It rises.
# - **C.** It hardly changes: the text is the same.
# </div>

# %% nbgrader={"grade": false, "grade_id": "perplexity_of_merges", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
perplexity_of_merges = "B"
### STUDENT GETS
# perplexity_of_merges = ...    # "A", "B" or "C"
### END SOLUTION

# %%
text = manual()
first, last = text[:len(text) * 4 // 5], text[len(text) * 4 // 5:]
measured, cutters = [], {}
for merges in (0, 100, 400, 1000, 2000):
    cutter = cutters[merges] = Tokenizer.learn(first, 257 + merges)
    seen, ids = Counter(cutter.encode(first)), cutter.encode(last)
    total = seen.total() + len(cutter)    # every token counts once more than it was seen
    nats = -sum(math.log((seen[i] + 1) / total) for i in ids) / len(ids)
    measured.append((merges, nats, len(ids)))
    print(f"{merges:>5} merges: {len(ids):>6,} tokens, perplexity {math.exp(nats):6.1f}")

# %% nbgrader={"grade": true, "grade_id": "check_perplexity_of_merges", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("perplexity_of_merges", perplexity_of_merges)

# %% [markdown]
# **The text is the same, and the perplexity rises with every step.** Longer tokens are fewer, and each is harder to
# guess. For a fair comparison, divide *all* the surprise of the text by something that does not depend on the cut:
# the number of its bytes.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `bits_per_byte_of`** &nbsp; ★★☆ · 6 minutes · 2 points
#
# A model has predicted all `tokens` tokens of a text, with a mean cross-entropy of `loss` nats per token. Return the
# bits per byte of the text, as a float or a tensor of one number. Bytes are those of UTF-8, white space included.
#
# <details><summary>Hint 1: from a mean to a sum</summary>
#
# Two tokens cost 1 nat and 5 nats. What does the text cost, and what is the function given? The surprise
# of a coin toss is one bit, or ln 2 nats.
#
# </details>
# <details><summary>Hint 2: a text by hand</summary>
#
# Let "né" be two tokens, with a mean of 3 ln 2 nats. That is 3 bits for each token and 6 for the text. The text has
# three bytes, two of them for é: `len("é")` is 1, `len("é".encode())` is 2. So it takes 2 bits per byte.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "bits_per_byte_of", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bits_per_byte_of(loss, tokens, text):
    """The surprise of a text in bits per byte.

    loss: mean cross-entropy of a token, in nats, a float. tokens: how many were predicted.
    text: str. Returns one number.
    """
    ### BEGIN SOLUTION
    return loss * tokens / math.log(2) / len(text.encode())
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_bits_per_byte_of", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(bits_per_byte_of)

# %%
for merges, nats, tokens in measured:
    print(f"{merges:>5} merges: {bits_per_byte_of(nats, tokens, last):.2f} bits per byte")

# %% [markdown]
# **In bits per byte the order is the opposite**: the more merges, the fewer bits. Compare models with different
# tokenizers in bits per byte on the same text, never by perplexity or loss per token.
#
# But more merges also make a larger table of frequencies, and this model sees no context. Do tokens still help a
# model that sees context and is no larger?
#
# ## In a short training at equal size and reading, tokens predict better
#
# A small GPT-2 ([lesson 12](../12_gpt2/12_gpt2.ipynb)) is trained twice on the same four fifths of the manual: on
# bytes, and on tokens of 1,000 merges. Both read 300,000 bytes, in steps of four windows of 64 positions. The vectors
# of 1,000 more tokens are 64,000 more parameters; the byte model gets as many in wider feed-forward networks.

# %% tags=["hide-input"]
def trained(cutter, hidden, read=300_000):
    """A GPT-2 of two blocks that has read so many bytes, and in how many steps."""
    ids = torch.tensor(cutter.encode(first))
    steps = round(read * len(ids) / len(first.encode()) / (4 * 64))
    torch.manual_seed(0)
    config = finished_gpt2.Config(len(cutter), t_max=64, e=64, h=4, depth=2, hidden=hidden)
    model = finished_gpt2.GPT2(config).to(device())
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
    chance = torch.Generator().manual_seed(0)
    for step in progress(range(steps), "training"):
        inputs, targets = (part.to(device()) for part in sample_batch(ids, 4, 64, chance))
        cosine = 0.5 + 0.5 * math.cos(math.pi * step / steps)
        optimiser.param_groups[0]["lr"] = 0.003 * min(step / (0.06 * steps), cosine)
        optimiser.zero_grad()
        F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).backward()
        optimiser.step()
    return model.eval(), steps

@torch.no_grad()
def on_last(model, cutter):
    """Bits per byte on the last fifth, in windows of 64 that do not overlap."""
    ids = torch.tensor(cutter.encode(last), device=device())
    whole = (len(ids) - 1) // 64 * 64
    logits = model(ids[:whole].view(-1, 64)).flatten(0, 1)
    nats = F.cross_entropy(logits, ids[1:whole + 1]).item()
    return bits_per_byte_of(nats, whole, cutter.decode(ids[1:whole + 1]))

# %%
for name, merges, hidden in (("bytes", 0, 504), ("1,000 merges", 1000, 256)):
    model, steps = trained(cutters[merges], hidden)
    size = sum(p.numel() for p in model.parameters())
    print(f"{name:>12}: {size:,} parameters, {steps:,} steps,"
          f" {on_last(model, cutters[merges]):.2f} bits per byte")

# %% [markdown]
# **After the same reading, the model on tokens predicts the held-out text better**: 2.32 bits per byte against 3.16.
#
# This is one seed and a short training. With twice the reading the gap is less than half as large ([Measured
# further](../../site/further.md#lesson-11)). Both models are poor: with the same 1,000 merges, frequencies alone
# needed 2.66.
#
# And more differs than the cut. Two things favour the tokens: their merges were counted on all of the training text,
# and a window of them holds more text. Two favour the bytes: more than three times as many steps, and wider networks.
# How much each matters was not measured. So the model on tokens learns more from the same short reading; that it ends
# better is not shown.
#
# ## What you can do now
#
# **What does a model gain by reading tokens in place of bytes, and what does it pay?**
#
# It gains:
#
# - **Shorter sequences, and still no unknown text.** With 2,000 merges, the last fifth of the manual took about a
#   quarter as many tokens as bytes.
# - **More learned from the same reading, at the same size**, in one short training with one seed.
#
# It pays:
#
# - **An id hides letters and digits.** With its space, *strawberry* is one id of GPT-2's.
# - **Languages gain unequally.** Five sentences in Hindi take about twice as many bytes as in English, and more than
#   five times as many of GPT-2's tokens.
# - **Each token needs a vector of its own.** In the smallest GPT-2 these vectors are nearly a third of the parameters.
# - **The loss of a token no longer compares models.** Bits per byte do.
#
# What does GPT-2 do with the ids? Lesson 12 opens its files.
#
# **Three questions to think about**
#
# <details><summary>1. An id says nothing of a word's letters. Can a model know them all the same?</summary>
#
# Some of them: training puts some spelling into the vectors of the tokens. From GPT-2's embeddings alone,
# another network could spell up to a third of the tokens exactly ([Itzhak and Levy, 2022](https://arxiv.org/abs/2108.11193)).
#
# </details>
# <details><summary>2. A token was hardly ever in the model's training text. What happens when you write it?</summary>
#
# Its vector has hardly been trained, and the model does not know what to make of it. Such tokens exist because the
# vocabulary is often learned on other text than the model. One of GPT-2's, " SolidGoldMagikarp", was the name of a
# Reddit user; asked to repeat it, models of its family answered with something else ([Land and Bartolo,
# 2024](https://arxiv.org/abs/2405.05417), tell of it and find more).
#
# </details>
# <details><summary>3. Could a model do without tokens, and read bytes?</summary>
#
# Lesson 9's does. The price is length: about four times as many positions for English, and the cost of attention
# grows with their square. ByT5 ([Xue et al., 2022](https://arxiv.org/abs/2105.13626)) reads bytes one by one; the
# Byte Latent Transformer ([Pagnoni et al., 2024](https://arxiv.org/abs/2412.09871)) joins them inside the model; a
# smaller byte model decides where to cut.
#
# </details>
#
# **Further reading**
#
# - **R. Sennrich, B. Haddow and A. Birch, ["Neural machine translation of rare words with subword
#   units"](https://aclanthology.org/P16-1162/), *ACL* 2016**, section 3.2: byte-pair encoding for language.
#
# **Next:** [lesson 12, *GPT-2*](../12_gpt2/12_gpt2.ipynb)
