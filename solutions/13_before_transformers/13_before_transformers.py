# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 13 · Before transformers
#
# *What attention was invented for*
#
# **Where should a network keep what it has read: in one vector, or in one vector for each word?** The first neural
# translators put a whole sentence into one vector. You see such a translator fail on long lists, and test two possible
# causes. Then you build the attention that replaced the one vector. At the end you ask what the vector of a single word
# can hold.
#
# | | |
# |---|---|
# | **You will build** | a sentence in one vector, a recurrent cell with gates, the first attention in translation, and a pair of language models that read in opposite directions; you fix a score; two exercises are optional |
# | **You need** | lessons [1](../01_dot_product_attention/01_dot_product_attention.ipynb), [2](../02_queries_keys_values/02_queries_keys_values.ipynb), [5](../05_masking/05_masking.ipynb) and [10](../10_encoder_decoder/10_encoder_decoder.ipynb) |
# | **It takes** | about 90 minutes: eight exercises, 25 points, and two predictions |
# | **It computes** | for about a minute and a half, mostly to train four translators; any laptop will do |
#
# The letters follow [the notation table](../../site/notation.md), with t for the number of words that are read. Here
# $s$ is a recurrent state of width d, never a length, and $h_j$, of width m, is what the encoder keeps of word j.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.toy.numerals import numeral_lists, spell_german
from helpers.data.toy.reviews import BLAME, PRAISE, reviews
from helpers.device import device
from helpers.lesson import start
from helpers.parts import recurrent as finished_parts    # this lesson's exercises, done
from helpers.parts.masks import masked_softmax, padding_mask
from helpers.parts.words import build_vocabulary, encode_batch, pad_rows
from helpers.progress import progress

check = start("13_before_transformers")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## With one vector, a translator mixes up long lists
#
# In 2014 [Cho et al.](https://arxiv.org/abs/1406.1078) and [Sutskever, Vinyals and Le](https://arxiv.org/abs/1409.3215)
# paired two **recurrent** networks, which read or write a text word by word. In this **encoder–decoder** model the
# *encoder* reads the source into one vector, and the *decoder* writes the translation from it. The translator below has
# a vector of 64 numbers, and learns to translate lists of one to six numbers below 1,000 from English to German.

# %% tags=["hide-input"]
train_pairs, tests = numeral_lists()
SPECIAL = ["<pad>", "<start>", "<stop>"]
PAD, START, STOP = range(3)
ENGLISH, GERMAN = (SPECIAL + sorted({word for text in side for word in text.split()})
                   for side in zip(*train_pairs))

def as_rows(texts, words, ends=False):
    """Texts as lists of ids; with ends, between START and STOP."""
    number = {word: place for place, word in enumerate(words)}
    rows = [[number[word] for word in text.split()] for text in texts]
    return [[START, *row, STOP] for row in rows] if ends else rows

def padded(rows):
    return pad_rows(rows, PAD)[0].to(device())

sources = as_rows([english for english, _ in train_pairs], ENGLISH)
targets = as_rows([german for _, german in train_pairs], GERMAN, ends=True)

STEPS = 550

def train(model, steps=STEPS, batch=64, rate=0.003):
    """Batches of lists of about equal length; the rate falls in the second half."""
    torch.manual_seed(1)
    order = sorted(range(len(targets)), key=lambda k: (len(targets[k]), len(sources[k])))
    groups = [order[k : k + batch] for k in range(0, len(order), batch)]
    optimiser = torch.optim.Adam(model.parameters())
    for step in progress(range(steps), "training"):
        optimiser.param_groups[0]["lr"] = rate * min(1, 2 * (1 - step / steps))
        chosen = groups[torch.randint(len(groups), ()).item()]
        batches = (padded([side[k] for k in chosen]) for side in (sources, targets))
        loss = model.loss(*batches)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

def translator(width, **options):
    """A translator with the same initial weights in every call."""
    torch.manual_seed(0)
    sizes = len(ENGLISH), len(GERMAN), width, PAD
    return finished_parts.RecurrentTranslator(*sizes, **options).to(device())

def translate(model, count):
    """What the model writes for the tested lists of `count` numbers."""
    english = [english for english, _ in tests[count]]
    written = model.write(padded(as_rows(english, ENGLISH)), START, STOP, 90)
    return [" ".join(GERMAN[k] for k in row if k > STOP) for row in written.tolist()]

def exact(model, count):
    """The share of these lists that are right, word for word."""
    written = translate(model, count)
    right = [mine == german for mine, (_, german) in zip(written, tests[count])]
    return sum(right) / len(right)

def show_shares(models):
    """Exact match for lists of one to six numbers, a line for each model."""
    print(f"{'numbers in the list':>19}" + "".join(f"{count:6}" for count in range(1, 7)))
    for name, shares in models.items():
        print(f"{name:>19}" + "".join(f"{share:6.2f}" for share in shares[:6]))

# %%
fixed = translator(64, one_vector=True)
train(fixed)

# %% tags=["hide-input"]
value = {" ".join(spell_german(number)): number for number in range(1000)}

def in_digits(german):
    """The numbers of a German list; ? for a part that is not one."""
    return [str(value.get(part, "?")) for part in german.split(" , ")]

lists = [(english, in_digits(german), in_digits(mine), mine)
         for (english, german), mine in zip(tests[5], translate(fixed, 5))]
english, _, _, mine = lists[3]
print(f"reads:  {english}\nwrites: {mine}\n\nthe first four lists of five, in digits:")
for _, right, written, _ in lists[:4]:
    print(f"   {', '.join(right):<24} becomes   {', '.join(written)}")
first, last = (sum(written[k] == right[k] for _, right, written, _ in lists)
               for k in (0, -1))
print(f"in {len(lists)} such lists, the first number is right in {first}, "
      f"the last in {last}")

# %% [markdown]
# A list counts if all of its words are right: **exact match**.

# %%
with_vector = [exact(fixed, count) for count in range(1, 10)]
show_shares({"one vector, 64": with_vector})

# %% [markdown]
# **One vector is enough for one number and fails from three on**, although the training set has lists of up to six.
# [Cho et al. (2014)](https://arxiv.org/abs/1409.1259) saw a similar fall in real sentences. Two of the four outputs are
# a number short, and wrong numbers are made of digits of the list.
#
# There are two suspects. The first is **distance**: the encoder reads from both ends, and a word in the middle passes
# through many updates before it reaches the vector. The second is **room**: 64 numbers have to hold the whole list,
# however long it is. Such a vector is called a **bottleneck**. (All translators of this lesson are judged after the
# same 550 steps.)

# %% [markdown]
# ## The first suspect: the middle is far from the vector, and still moves it
#
# The encoder is **bidirectional**: one network reads forwards and one backwards, and each updates a vector, its
# **state**, at every word. The two last states, at opposite ends of the sentence, are joined to the vector c. Do the
# words in the middle reach it? Change the vector of one word a little, in a random direction, and measure how far c
# moves.

# %% tags=["hide-input"]
@torch.no_grad()
def moves(model, count=5, size=0.01):
    """How far c moves, as a multiple of one word's change, at three places of a list."""
    torch.manual_seed(0)
    found = []
    for english, _ in tests[count]:
        x = model.tokens(padded(as_rows([english], ENGLISH)))          # (1, t, e)
        t = x.shape[1]
        changed = x.repeat(3, 1, 1)                                    # a row for each place
        for k in range(3):
            step = F.normalize(torch.randn(64), dim=0).to(x)
            changed[k, k * (t - 1) // 2] += size * step
        outputs = model.reader(torch.cat([x, changed]))[0]             # the encoder
        c = finished_parts.sentence_vector(outputs, torch.full((4,), t, device=x.device))
        found.append((c[1:] - c[0]).norm(dim=1) / size)
    return torch.stack(found).mean(dim=0).tolist()

untrained = translator(64, one_vector=True)
print(f"{'changed word:':>15}   first  middle    last")
for name, model in {"before training": untrained, "after training": fixed}.items():
    print(f"{name:>15}" + "".join(f"{x:8.3f}" for x in moves(model)))

# %% [markdown]
# **The way is long but not closed.** After training, a word in the middle moves c about half as far as a word at the
# ends does on average; before training, about a thirtieth. The counts above do not
# decide: the last number, also at an end, is right in one list of ten, but it is written last, after the model's own
# mistakes. Distance is weakened, not acquitted: c moves, but can the decoder use it?
#
# Build c yourself. Use `finished_parts` only where a card names one.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `sentence_vector`** &nbsp; ★★☆ · 5 minutes · 2.5 points
#
# From the outputs of a bidirectional encoder, join the two vectors, one per direction, that have read the whole
# sentence. The outputs of the backward half are already in the order of the words.
#
# <details><summary>Hint 1: where has each direction read everything?</summary>
#
# The forward half has read all words at the last *word*, which is the last column only if there is no padding. The
# backward half began there. Where does it end?
#
# </details>
# <details><summary>Hint 2: two sentences by hand</summary>
#
# With lengths 3 and 5, the forward halves come from columns 2 and 4, and both backward halves from column 0. Indexing
# with two tensors, `x[[0, 1], [2, 4]]`, takes a different column from each row.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sentence_vector", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sentence_vector(outputs, lengths):
    """One vector for a whole sentence, from a reader in both directions.

    outputs: (b, t, 2e), in each the forward half first. lengths: (b,), int64, from 1 to t.
    Returns (b, 2e).
    """
    ### BEGIN SOLUTION
    e = outputs.shape[-1] // 2
    rows = torch.arange(len(outputs), device=outputs.device)
    last = outputs[rows, lengths - 1, :e]                      # (b, e)
    first = outputs[:, 0, e:]                                  # (b, e)
    return torch.cat([last, first], dim=-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_sentence_vector", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(sentence_vector)

# %% [markdown]
# ## Gates can carry a word through many updates
#
# How does a word survive so many updates? With $x_i$ (b, e) for its vector and $s_i$ (b, d) for the state, the simplest
# update, the **plain cell** ([Elman, 1990](https://doi.org/10.1207/s15516709cog1402_1)), is
#
# $$s_i = \tanh(x_i W_x + b_x + s_{i-1} W_s + b_s) .$$
#
# Each step multiplies a small change of the old state, and a gradient on its way back, by $W_s$ and by the slope of the
# tanh, at most 1. Where the gradient shrinks step after step, it **vanishes**: an error at the last word hardly reaches
# the first ([Bengio, Simard and Frasconi, 1994](https://doi.org/10.1109/72.279181)).
#
# The **LSTM** ([Hochreiter and Schmidhuber, 1997](https://doi.org/10.1162/neco.1997.9.8.1735)) and the simpler **GRU**
# ([Cho et al., 2014](https://arxiv.org/abs/1406.1078)) have a path without $W_s$ and tanh. In PyTorch's GRU, the state
# itself goes along this path:
#
# $$s_i = z_i \odot s_{i-1} + (1 - z_i) \odot \tilde s_i , \qquad z_i = \sigma(x_i W_z + s_{i-1} U_z + b_z) ,$$
#
# where $\odot$ multiplies component by component and $\sigma$ is the sigmoid. Where the **update gate** z is near 1,
# the old state passes almost unchanged. The candidate $\tilde s_i$ is the plain cell, except that the **reset gate** r
# scales the old state's part; r is computed like z, with its own weights:
#
# $$\tilde s_i = \tanh\big(x_i W_x + b_x + r_i \odot (s_{i-1} W_s + b_s)\big) .$$

# %%
plots.diagrams.gated_cell()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One step of a GRU. The thick line, from the old state to the new one, crosses no matrix and no
# tanh.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `gru_step`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Write one step of the GRU, as in the formulas. Each matrix and each bias holds the parts of r, z and $\tilde s$ side
# by side, d columns each, in this order, as in PyTorch. Each part has two biases, one for each matrix; $b_z$ is the sum
# of z's two. Do not call PyTorch's own GRU.
#
# <details><summary>Hint 1: how many matrix products?</summary>
#
# Two are enough, one for the word and one for the state, each (b, 3d). `chunk(3, dim=-1)` cuts such a tensor into
# three parts. For which of the three parts may you add word and state right away?
#
# </details>
# <details><summary>Hint 2: a state of one number</summary>
#
# Let d = 1 and the old state be 4. For r, z and the candidate, the word's side has 0, log 3 and 1, the state's side
# 0, 0 and −2. Then r = σ(0) = 1/2 and z = σ(log 3) = 3/4. The candidate is tanh(1 − 1) = 0, and the state becomes
# 3/4 · 4 + 1/4 · 0 = 3. Which of these numbers change if z is 1?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "gru_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gru_step(x, s, w_x, w_s, b_x, b_s):
    """One step of a gated recurrent unit: reads a word and returns the new state.

    x: (b, e), the word. s: (b, d), the old state. w_x: (e, 3d). w_s: (d, 3d).
    b_x, b_s: (3d,). In each of the last four, columns 0 to d − 1 belong to r, the next d to
    z, the last d to s~. Returns (b, d).
    """
    ### BEGIN SOLUTION
    x_r, x_z, x_new = (x @ w_x + b_x).chunk(3, dim=-1)         # (b, d) each
    s_r, s_z, s_new = (s @ w_s + b_s).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + s_r), torch.sigmoid(x_z + s_z)
    new = torch.tanh(x_new + r * s_new)
    return z * s + (1 - z) * new
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_gru_step", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(gru_step)

# %% [markdown]
# A GRU can *learn* what to keep, because its gates depend on the word and on the state. The encoder above has one GRU
# for each direction.
#
# ## Keep a vector for each word, and look again
#
# So far, every step of the decoder gets the same c, beside the previous word: $s_i = f(s_{i-1},\, y_{i-1},\, c)$.
# [Bahdanau, Cho and Bengio (2015)](https://arxiv.org/abs/1409.0473) kept the encoder's state at *every* source word,
# the **memory** $h_0, h_1, \dots$, and let the decoder look again before each word that it writes. Its state is
# compared with each $h_j$; a softmax of the scores gives weights, and the weighted sum is the context of this step:
#
# $$\alpha_{ij} = \operatorname{softmax}_j \big(\text{score}(s_{i-1}, h_j)\big), \qquad
# c_i = \sum_j \alpha_{ij}\, h_j, \qquad s_i = f(s_{i-1},\, y_{i-1},\, c_i) .$$

# %%
plots.diagrams.vector_or_memory()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The same encoder and decoder, twice. Below, thick lines lead from every state of the encoder to a
# sum that is computed anew for each word.
#
# </div>
#
# You know this: $s_{i-1}$ is a query, and $h_j$ is both key and value. Only the score is different. It is
# **[additive](../../site/glossary.md#additive-attention)**: both sides are projected to a common width a and added
# ($W_s$ is not the GRU's),
#
# $$\text{score}(s, h_j) = v \cdot \tanh(s\, W_s + h_j\, W_h) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `additive_scores`** &nbsp; fix · ★★☆ · 6 minutes · 3 points
#
# A well-known small translation program was published with code like this. It ran, the shapes were right, and the
# model learned something. But whatever the decoder had written, it looked at the same words with the same weights.
# Find the bug and fix it.
#
# <details><summary>Hint 1: measure before you read</summary>
#
# In a cell of your own, compare the softmax of the scores of two different states.
#
# </details>
# <details><summary>Hint 2: what does the softmax see?</summary>
#
# Let a = 1, v = 2 and `theirs` be 1 and −1. With `ours` = 0 the cell's scores are 2 and −2; with `ours` = 3 they are
# 8 and 4. What is the softmax of each? Then compare the code with the formula, symbol by symbol.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "additive_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def additive_scores(s, memory, w_s, w_h, v):
    """How well the decoder's state fits each vector of the memory.

    s: (b, d). memory: (b, t, m). w_s: (d, a). w_h: (m, a). v: (a,). Returns (b, t).
    """
    ours = (s @ w_s).unsqueeze(1)                              # (b, 1, a)
    theirs = memory @ w_h                                      # (b, t, a)
    ### BEGIN SOLUTION
    return torch.tanh(ours + theirs) @ v
    ### STUDENT GETS
    # return (ours + theirs) @ v
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_additive_scores", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(additive_scores)

# %% [markdown]
# Without the tanh, $v \cdot (s\,W_s)$ is the same number for every j, and the softmax cancels it: the decoder's state
# chooses nothing. The bug is from [keon/seq2seq](https://github.com/keon/seq2seq) (issue #3).
#
# A simpler score is the **general** one ([Luong, Pham and Manning, 2015](https://arxiv.org/abs/1508.04025), section 3),
#
# $$\text{score}(s, h_j) = h_j\, W s^\top ,$$
#
# with one matrix W, (m, d). With $W = W_k W_q^\top$ it is lesson 2's score: $(h_j W_k) \cdot (s\, W_q)$.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `AttentiveDecoder`** &nbsp; ★★★ · 12 minutes · 4.5 points
#
# Write `step`. As in the paper, the context is computed with the **old** state. The GRU cell gets the token's vector
# and the context side by side, in this order; the logits come from the new state and the context, in this order. The
# mask may hide any positions of a sentence, but leaves at least one. Use `finished_parts.additive_scores` (exercise 3)
# and lesson 5's `masked_softmax(scores, mask)`.
#
# <details><summary>Hint 1: in this order</summary>
#
# Scores, weights, context, new state, logits. Each of them takes one line.
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# With weights 1/4 and 3/4 and a memory of (4, 0) and (0, 8), the context is (1, 6): (b, t) and (b, t, m) give (b, m).
# `self.cell(input, state)` takes (b, e + m) and (b, d), and `torch.cat([...], dim=-1)` joins two vectors side by
# side.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "AttentiveDecoder", "locked": false, "schema_version": 3, "solution": true, "task": false}
class AttentiveDecoder(nn.Module):
    """Writes one token at a time, and looks at the memory before each.

    n: size of the vocabulary. e: width of a token's vector. d: of the state. m: of a vector
    of the memory. a: in which state and memory are compared.
    """

    def __init__(self, n, e, d, m, a):
        super().__init__()
        self.tokens, self.cell = nn.Embedding(n, e), nn.GRUCell(e + m, d)
        self.w_s, self.w_h = (nn.Parameter(torch.randn(w, a) / w**0.5) for w in (d, m))
        self.v = nn.Parameter(torch.randn(a) / a**0.5)
        self.to_logits = nn.Linear(d + m, n)

    def step(self, y, s, memory, mask):
        """y: (b,), ids of the token before. s: (b, d), the old state. memory: (b, t, m).
        mask: (b, t), booleans, True at words.

        Returns logits (b, n), the new state (b, d), and the weights (b, t).
        """
        ### BEGIN SOLUTION
        scores = finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)
        weights = masked_softmax(scores, mask)                     # (b, t)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)            # (b, m)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)   # (b, d)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_AttentiveDecoder", "locked": true, "points": 4.5, "schema_version": 3, "solution": false, "task": false}
check(AttentiveDecoder)

# %% [markdown]
# The encoder, the data and the number of steps stay. Your decoder differs in three ways: more room, a shorter distance,
# and a *choice* anew at every step. Two controls do not choose. In the first, c has 256 numbers instead of 64: more
# **room**, in a model that is four times as wide throughout. In the second, your decoder weights all words equally: the
# **distance** is one step from each word, but the context is a single mean of 64 numbers at every step. (All decoders
# start from a state made of c.)

# %% [markdown]
# <div class="card">
#
# **Prediction · `two_controls`** &nbsp; 1 minute · no points
#
# Trained for as many steps as the others, which of the two controls translates more than half of the lists of five
# without a mistake?
#
# - **A.** The wide vector: 64 numbers are too few for a list.
# - **B.** The mean: the words in the middle are too far from the decoder.
# - **C.** Neither.
# </div>

# %% nbgrader={"grade": false, "grade_id": "two_controls", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
two_controls = "C"
### STUDENT GETS
# two_controls = ...    # "A", "B" or "C"
### END SOLUTION

# %%
class MeanDecoder(AttentiveDecoder):
    """A control: all words have the same weight."""

    def step(self, y, s, memory, mask):
        weights = mask / mask.sum(dim=1, keepdim=True)             # (b, t)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)            # (b, m)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)   # (b, d)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights

wide = translator(256, one_vector=True)
averaging = translator(64, decoder=MeanDecoder)
attentive = translator(64, decoder=AttentiveDecoder)
found = {"one vector, 64": with_vector}
models = {"one vector, 256": wide, "mean": averaging, "attention": attentive}
for name, model in models.items():
    train(model)
    found[name] = [exact(model, count) for count in range(1, 10)]
show_shares(found)

# %% nbgrader={"grade": true, "grade_id": "check_two_controls", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("two_controls", two_controls)

# %% [markdown]
# **More room helps, a short distance alone does not, and a vector per word with a choice does.** With 256 numbers,
# nearly half of the lists of four are right, and few of five. The mean does no better than the first translator, though
# each word is one step away; but it is one vector again. Your decoder differs from it only in the weights. Choosing
# also gives room, because no single vector has to hold the list. How much is due to each, these runs do not show.
#
# Three runs agree ([Measured further](../../site/further.md#lesson-13)). With more than 550 steps, one vector lasts for
# longer lists.

# %% [markdown]
# <div class="card">
#
# **Prediction · `beyond_six`** &nbsp; 1 minute · no points
#
# No list in the training set has more than six numbers. How does the model with attention do on lists of seven, and
# on lists of eight?
#
# - **A.** Nearly as well as on six, for both: no vector has to hold the list any more.
# - **B.** Clearly worse on seven, and hardly any of eight are right.
# - **C.** None is right on either, as with one vector.
# </div>

# %% nbgrader={"grade": false, "grade_id": "beyond_six", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
beyond_six = "B"
### STUDENT GETS
# beyond_six = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"] mystnb={"image": {"alt": "Exact match against the number of numerals in a list, from 1 to 9, for four translators. One vector of 64 numbers and the mean fall together from 1 at one number to about 0.2 at three and to almost 0 from four on. One vector of 256 numbers is at 0.8 at three, near a half at four, below 0.2 at five and near 0 from six on. Attention stays above 0.9 up to six; a dotted line just beyond six marks the longest lists of the training set. At seven it is near 0.4, at eight and nine near 0."}}
counts = list(range(1, 10))
plots.curves({name: (counts, shares) for name, shares in found.items()},
             "numbers in the list", "exact match",
             title="Attention falls steeply only beyond the trained lengths")
plt.gca().axvline(6.5, color="grey", linestyle=":")
plt.gca().annotate("trained up to here", (6.42, 0.3), rotation=90, ha="right", va="center")
plt.gca().set(xticks=counts, ylim=(-0.03, 1.05))
plt.show()

seven, eight = found["attention"][6:8]
print(f"right with attention: {seven:.2f} of the lists of seven, "
      f"{eight:.2f} of the lists of eight")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A hundred lists of each length, one training run for each model.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_beyond_six", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("beyond_six", beyond_six)

# %% [markdown]
# **Beyond the trained lengths, attention falls, too**, as learned positions did in lesson 6: fewer than half of the
# lists of seven are right, and hardly any of eight. In real translation, a
# model with attention did as well on long sentences as on short ones ([Bahdanau et
# al.](https://arxiv.org/abs/1409.0473), figure 2, trained on up to 50 words).
#
# ## The weights follow the words, not their order
#
# The authors plotted the weights and called them **alignments**. English says the ten before the unit, German after it.

# %% tags=["hide-input"] mystnb={"image": {"alt": "A heat map. Rows are the German words sieben, und, vierzig, comma, drei, hundert, zwei and the stop, columns the English words forty seven, comma, three hundred and two. Before sieben nearly all of the weight is on seven, before und most of it and before vierzig nearly all of it on forty, so that the dark cells of the first number cross; for the comma and for drei, hundert and zwei they follow the order of the words. Before the stop the weight is spread over all words."}}
@torch.no_grad()
def alignment(english, german):
    """Where the decoder looked before each German word and the stop: (words + 1, t)."""
    target = padded(as_rows([german], GERMAN, ends=True))
    return attentive.eval()(padded(as_rows([english], ENGLISH)), target[:, :-1])[1][0].cpu()

english = "forty seven , three hundred and two"
german = "sieben und vierzig , drei hundert zwei"
weights = alignment(english, german)

plots.heat(weights, [*german.split(), "<stop>"], english.split(), scale=1, bar=True,
           row_label="about to write", column_label="looks at",
           title="Before und the weight goes back to forty")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each German word. *sieben* looks at *seven*. At *und*, most of the weight is already
# on *forty*; before the stop it is spread over all words. The decoder was given the right German words.
#
# </div>
#
# **The weights cross where the languages do**, and nearly always in other lists, too ([Measured
# further](../../site/further.md#lesson-13)).
#
# ## The recurrence has two jobs left, and attention can do both
#
# Now the decoder gets the source from the context $c_i$. The recurrence still tells the decoder what is already
# written, and it tells each source word what is around it. Both jobs make each word wait for the one before.

# %%
plots.diagrams.waiting_steps()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above, each state needs the one before it. Below, all positions are computed together, in reading
# and in training; a model that writes still waits for its own words.
#
# </div>
#
# The transformer of [lesson 10](../10_encoder_decoder/10_encoder_decoder.ipynb) has no recurrence: each sequence
# attends to *itself*, and lesson 6's positions are added, because nothing reads in order any more.
#
# ## A word's vector can know its sentence
#
# *good* in *very good* and in *not good*: one vector or two? A table of word vectors, such as lesson 1's, has one. A
# recurrent reader can have two, because at *good* it has read *not*.
#
# **ELMo** ([Peters et al., 2018](https://arxiv.org/abs/1802.05365), section 3), a year after the transformer, took a
# word's vector from language models that *read the sentence*: a **contextual embedding**. One LSTM reads forwards and
# predicts the next word at each position; another reads backwards and predicts the previous word.

# %%
plots.diagrams.two_readers()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The number in a box is its layer: 0 is the table of word vectors, 1 and 2 are LSTMs. No arrow
# leads from one reader to the other.
#
# </div>
#
# Why not one reader whose every layer reads both ways? Layer 1, reading backwards, has read word i + 1 before it comes
# to position i, and its output there goes into layer 2. So layer 2 sees the word that it has to predict.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `read_backwards`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# A backward reader is a forward reader that gets the sentence in reverse: the last *word* first, not the padding.
# Reverse each row within its length, and leave its padding as it is. Reversing twice gives back x.
#
# <details><summary>Hint 1: where does each position take its vector from?</summary>
#
# With length 3 and t = 5, positions 0 1 2 3 4 take their vectors from 2 1 0 3 4.
#
# </details>
# <details><summary>Hint 2: all rows at once</summary>
#
# With lengths 3 and 1 and t = 3, the order is [[2, 1, 0], [0, 1, 2]]; `torch.where` can build it from the two cases.
# `x.gather(1, order)` needs an `order` of the shape of x. A loop over the rows with `flip`, on a copy, is right as
# well.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "read_backwards", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_backwards(x, lengths):
    """Each row in reverse order within its length; its padding stays as it is.

    x: (b, t, e). lengths: (b,), int64, from 1 to t. Returns (b, t, e).
    """
    ### BEGIN SOLUTION
    places = torch.arange(x.shape[1], device=x.device)         # (t,)
    turned = lengths.unsqueeze(1) - 1 - places                 # (b, t)
    order = torch.where(turned >= 0, turned, places)
    return x.gather(1, order.unsqueeze(-1).expand_as(x))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_read_backwards", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(read_backwards)

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `BiLanguageModel`** &nbsp; ★★★ · 15 minutes · 4 points
#
# Write `layers` and `loss`. The constructor is done: both readers share one table of vectors and one output layer,
# and each has LSTMs of its own. Use `finished_parts.read_backwards(x, lengths)`, exercise 5. What `layers` returns at
# padding does not matter. Do not use `pack_padded_sequence`. Keep no state of an LSTM from one call to the next.
# `loss` calls `self.layers` and uses its result.
#
# <details><summary>Hint 1: two readers</summary>
#
# Reverse the word vectors **once**, before the first backward LSTM, and give each LSTM the outputs of the one below
# it in its *own* direction. The outputs of the backward LSTMs are in reverse order; turn them back for the result
# only. `lstm(x)[0]` holds the outputs at all positions.
#
# </details>
# <details><summary>Hint 2: three words by hand</summary>
#
# A row holds the ids 7 2 9, then padding. The forward half at positions 0 and 1 has to predict 2 and 9, and the
# backward half at positions 1 and 2 has to predict 7 and 2. That is two neighbouring pairs, and nothing else in this
# row counts. Lesson 5's `padding_mask(lengths, t)` is (b, 1, t), and indexing with booleans picks entries.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "BiLanguageModel", "locked": false, "schema_version": 3, "solution": true, "task": false}
class BiLanguageModel(nn.Module):
    """Two language models, one reading forwards and one backwards.

    n: size of the vocabulary. e: width of a word's vector and of each LSTM. depth: LSTMs in
    each reader.
    """

    def __init__(self, n, e, depth):
        super().__init__()
        self.tokens, self.to_logits = nn.Embedding(n, e), nn.Linear(e, n)
        self.forwards, self.backwards = (
            nn.ModuleList([nn.LSTM(e, e, batch_first=True) for _ in range(depth)])
            for _ in range(2)
        )

    def layers(self, ids, lengths):
        """ids: (b, t). lengths: (b,), int64. Returns (b, depth + 1, t, 2e), in each layer
        the forward half first. Layer 0 is the word's vector, twice.
        """
        ### BEGIN SOLUTION
        x = self.tokens(ids)                                        # (b, t, e)
        ahead, back = x, finished_parts.read_backwards(x, lengths)
        found = [torch.cat([x, x], dim=-1)]
        for forward, backward in zip(self.forwards, self.backwards):
            ahead, back = forward(ahead)[0], backward(back)[0]
            here = finished_parts.read_backwards(back, lengths)
            found.append(torch.cat([ahead, here], dim=-1))          # (b, t, 2e)
        return torch.stack(found, dim=1)
        ### END SOLUTION

    def loss(self, ids, lengths):
        """ids: (b, t). lengths: (b,), not all 1. Returns (): the mean cross-entropy over all
        words that are asked for, in both directions, from the last layer.
        """
        ### BEGIN SOLUTION
        ahead, back = self.layers(ids, lengths)[:, -1].chunk(2, dim=-1)
        pair = padding_mask(lengths, ids.shape[1])[:, 0, 1:]        # (b, t − 1)
        following = F.cross_entropy(self.to_logits(ahead[:, :-1][pair]), ids[:, 1:][pair])
        preceding = F.cross_entropy(self.to_logits(back[:, 1:][pair]), ids[:, :-1][pair])
        return (following + preceding) / 2
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_BiLanguageModel", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(BiLanguageModel)

# %% [markdown]
# Train this reader on lesson 8's synthetic film reviews, without labels. For every adjective of unseen reviews, find
# the nearest neighbour, by cosine, among the other adjectives. If the adjective comes after *not*, *hardly* or *far
# from*, does its neighbour, too?

# %% tags=["hide-input"]
(texts, _), (test_texts, _) = reviews(8000, 2000)
vocabulary = build_vocabulary(texts, 1000)
ids, mask = encode_batch(texts, vocabulary, 60)    # both (texts, t)

torch.manual_seed(0)
reader = BiLanguageModel(len(vocabulary), 64, 2).to(device())
optimiser = torch.optim.Adam(reader.parameters(), lr=0.005)
for step in progress(range(200), "reading"):
    rows = torch.randint(len(ids), (48,))
    lengths = mask[rows].sum(dim=1)
    loss = reader.loss(ids[rows, : lengths.max()].to(device()), lengths.to(device()))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

def ids_of(words):
    return torch.tensor([vocabulary[word] for word in words if word in vocabulary])

adjectives, negations = ids_of(PRAISE + BLAME), ids_of(["not", "hardly", "from"])
test_ids, test_mask = encode_batch(test_texts, vocabulary, 60)
with torch.no_grad():
    layers = reader.layers(test_ids.to(device()), test_mask.sum(dim=1).to(device())).cpu()
is_adjective = torch.isin(test_ids, adjectives) & test_mask
is_adjective[:, 0] = False                                  # no word before it
row, place = is_adjective.nonzero(as_tuple=True)            # (adjectives,) each
word = test_ids[row, place]
negated = torch.isin(test_ids[row, place - 1], negations)
other = word[:, None] != word                               # (adjectives, adjectives)
same = negated[:, None] == negated

def share(chosen):
    """Of the chosen neighbours of each adjective, the share with the same negation: mean."""
    return ((chosen & same).sum(dim=1) / chosen.sum(dim=1)).mean().item()

print(f"{len(row):,} adjectives, {negated.float().mean():.0%} of them negated")
print("same negation as")
print(f"   any other adjective: {share(other):.2f}")
for layer in range(3):
    x = F.normalize(layers[row, layer, place], dim=1)
    cosines = (x @ x.T).masked_fill(~other, -1.0)
    nearest = cosines >= cosines.amax(dim=1, keepdim=True) - 1e-6    # all that are as near
    print(f"   nearest in layer {layer}:  {share(nearest):.2f}")

# %% [markdown]
# **A table cannot tell one use of a word from another; a reader can.** In the table, layer 0, the nearest neighbour
# shares the negation no more often than any other adjective. In both layers of the reader above it, it nearly always
# does. (One training run; ties are averaged.)

# %% [markdown]
# ## Optional: two exercises that nothing else uses
#
# Their points count like all others. The first is the general score, $h_j\, W s^\top$.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `general_scores`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Write the general scores for a batch.
#
# <details><summary>Hint 1: one side at a time</summary>
#
# Either project the state to the width of the memory, or the memory to the width of the state. Then take a dot
# product for each j.
#
# </details>
# <details><summary>Hint 2: one row by hand</summary>
#
# Let W = [[1, 2], [0, 1], [1, 0]], (3, 2). The state s = (1, 1) becomes W s = (3, 1, 1), and the vector (1, 0, 2) of
# the memory gets the score 3 + 0 + 2 = 5. In code, the states are the rows of a (b, 2) tensor: which product has the
# row (3, 1, 1)?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "general_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def general_scores(s, memory, w):
    """How well the decoder's state fits each vector of the memory, by one matrix.

    s: (b, d). memory: (b, t, m). w: (m, d). Returns (b, t).
    """
    ### BEGIN SOLUTION
    asked = s @ w.T                                            # (b, m)
    return (memory @ asked.unsqueeze(-1)).squeeze(-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_general_scores", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(general_scores)

# %% [markdown]
# The second learns a table of word vectors. Lesson 1 counted neighbours; **word2vec** ([Mikolov et al.,
# 2013](https://arxiv.org/abs/1310.4546), section 2) guesses them, with **[skip-gram with negative
# sampling](../../site/glossary.md#skip-gram)**. Take a word, the centre, and a word near it, its context. Draw k words
# at random, the **negatives**. The model has to tell the context from them. With u for the centre's vector and w for
# the context's, from a second table, $\sigma(u \cdot w)$ is the model's probability that the two are neighbours. The
# loss of one pair, with the negatives $w_1, \dots, w_k$, is
#
# $$-\log \sigma(u \cdot w) \;-\; \sum_{j=1}^{k} \log \sigma(-u \cdot w_j) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `skip_gram_loss`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Write this loss for a batch: the mean over its pairs. The loss and its gradients must be right and finite even if a
# product is 200 or −200. (The sigmoid of −200 is 0 in float32.)
#
# <details><summary>Hint 1: one pair first</summary>
#
# What does the formula do to each product before summing? `F.logsigmoid(z)` is log σ(z), and it is finite for any z.
#
# </details>
# <details><summary>Hint 2: one pair by hand</summary>
#
# Let u · w = 2, and let there be one negative with u · w₁ = 1. Then σ(2) = 0.881 and σ(−1) = 0.269, and the loss is
# −log 0.881 − log 0.269 = 0.127 + 1.313 = 1.440. In a batch the first product is (b,), and those with the negatives
# are (b, k).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "skip_gram_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def skip_gram_loss(centre, context, negatives):
    """Is this word a neighbour, or was it drawn at random?

    centre: (b, e). context: (b, e), a true neighbour of each. negatives: (b, k, e), words
    drawn at random. Returns (): the mean over b of the loss above.
    """
    ### BEGIN SOLUTION
    near = (centre * context).sum(dim=-1)                      # (b,)
    far = (centre.unsqueeze(1) * negatives).sum(dim=-1)        # (b, k)
    losses = -F.logsigmoid(near) - F.logsigmoid(-far).sum(dim=-1)
    return losses.mean()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_skip_gram_loss", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(skip_gram_loss)

# %% [markdown]
# ## What you can do now
#
# **Where should a network keep what it has read?** In one vector for each word, and choose among them at each step.
#
# - One vector mixed up long lists, although a word in the middle still moved it. In each of three runs, four times the
#   width moved the fall to longer lists, and the mean of all words, each one step away, did not.
# - With a vector for each word and attention, trained for as many steps, nearly all lists were right, up to the
#   trained lengths. Choosing gives room, too: the runs do not tell the two apart.
# - A word's vector can know its sentence: in one reader, trained once, an adjective's nearest neighbour nearly always
#   had the same negation; in its table, about as often as by chance.
#
# Each half of ELMo's vector knows the left or the right of its word, and nothing in the reader joins the two. Can one
# model see both sides, and still not see the word that it has to predict?
#
# **A question to think about**
#
# <details><summary>The published ELMo carries its LSTMs' states from one batch to the next. What can go wrong when
# you use it?</summary>
#
# The same sentence twice gives two results, because its vectors depend on what was read before it ([allennlp issue
# #1169](https://github.com/allenai/allennlp/issues/1169)). On continuous text a carried state is an advantage
# ([lesson 15](../15_transformer_xl/15_transformer_xl.ipynb)).
#
# </details>
#
# **Further reading**
#
# - **[Bahdanau, Cho and Bengio, *Neural machine translation by jointly learning to align and translate*,
#   2015](https://arxiv.org/abs/1409.0473)**: sections 2 and 3, and figures 2 and 3.
# - [Sutskever, Vinyals and Le, 2014](https://arxiv.org/abs/1409.3215), section 3.3: one vector works better if the
#   source is read backwards.
#
# **Next:** [lesson 14, *BERT*](../14_bert/14_bert.ipynb)
