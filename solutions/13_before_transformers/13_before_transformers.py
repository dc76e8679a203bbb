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
# translators put a whole sentence into one vector. You see such a translator fail on long lists, and test its two
# possible causes, one at a time. Then you build attention, which entered translation to replace the one vector. At
# the end you ask what the vector of a single word can hold.
#
# | | |
# |---|---|
# | **You will build** | a recurrent cell with gates, a sentence in one vector, the first attention in translation; then the loss of skip-gram, and a pair of language models that read in opposite directions; and you fix a score |
# | **You need** | lessons [1](../01_dot_product_attention/01_dot_product_attention.ipynb), [2](../02_queries_keys_values/02_queries_keys_values.ipynb), [5](../05_masking/05_masking.ipynb) and [10](../10_encoder_decoder/10_encoder_decoder.ipynb) |
# | **It takes** | about 105 minutes: eight exercises, 25 points, and two predictions |
# | **It computes** | for about a minute and a half, mostly to train four translators; any laptop will do |
#
# The letters follow [the notation table](../../site/notation.md), with t for the number of words that are read. Some
# letters follow the papers instead:
#
# | letter | here |
# |:--:|---|
# | $s$, $d$ | a state, and its width; $s$ is never a length in this lesson |
# | $h_j$, $m$ | what the encoder keeps of word $j$, and its width |
# | $a$ | the width in which a state and an $h_j$ are compared |
# | $r$, $z$ | the reset gate and the update gate, numbers from 0 to 1 |

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
# In 2014 [Cho et al.](https://arxiv.org/abs/1406.1078) and [Sutskever, Vinyals and
# Le](https://arxiv.org/abs/1409.3215) paired two **recurrent** networks, which read or write a text word by word. In
# this **encoder–decoder** model the *encoder* reads the source and leaves one vector, and the *decoder* writes the
# translation from this vector. Here is such a translator. Its vector has 64 numbers, and it was trained to translate
# lists of one to six numbers below 1,000 from English to German.

# %%
train_pairs, tests = numeral_lists()
SPECIAL = ["<pad>", "<start>", "<stop>"]
PAD, START, STOP = range(3)
ENGLISH, GERMAN = (SPECIAL + sorted({word for text in side for word in text.split()})
                   for side in zip(*train_pairs))

# %% tags=["hide-input"]
def as_rows(texts, words, ends=False):
    """Texts as lists of ids; with ends, between START and STOP."""
    number = {word: place for place, word in enumerate(words)}
    rows = [[number[word] for word in text.split()] for text in texts]
    return [[START, *row, STOP] for row in rows] if ends else rows

def padded(rows):
    return pad_rows(rows, PAD)[0].to(device())

sources = as_rows([english for english, _ in train_pairs], ENGLISH)
targets = as_rows([german for _, german in train_pairs], GERMAN, ends=True)

def train(model, steps, batch=64, rate=0.003):
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
STEPS = 550
torch.manual_seed(0)
fixed = finished_parts.RecurrentTranslator(
    len(ENGLISH), len(GERMAN), 64, PAD, one_vector=True
)
train(fixed.to(device()), STEPS)

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
left = [sum(written[place : place + 1] == [right[place]] for _, right, written, _ in lists)
        for place in range(5)]
last = sum(written[-1] == right[-1] for _, right, written, _ in lists)
print(f"in {len(lists)} such lists, right at places 1 to 5:", *left)
print(f"right at the last place, counted from the end: {last}")

# %% [markdown]
# How does the translator do with lists of other lengths? A list counts if all of its words are right: **exact match**.

# %%
with_vector = [exact(fixed, count) for count in range(1, 10)]
show_shares({"one vector, 64": with_vector})

# %% [markdown]
# **One vector is enough for one number and fails from three on**, although the training set has lists of up to six.
# [Cho et al. (2014)](https://arxiv.org/abs/1409.1259) saw a similar fall in real sentences. In lists of five, the
# first number is right in half of the lists, the third in one of ten. The last number, counted from the end, is right
# in one of ten, too. In the four lists above, numbers are missing in two, and the wrong ones are made of digits of the
# list.
#
# There are two suspects. The first is **distance**: the encoder reads from both ends, and a word in the middle passes
# through many updates before it reaches the vector. The second is **room**: 64 numbers have to hold the whole list,
# however long it is. Such a vector is called a **bottleneck**. (All models of this lesson are judged after the same 550
# steps.)

# %% [markdown]
# ## A word in the middle is far from the vector and still moves it
#
# A recurrent network keeps a **state**, a vector that it updates at each word. With $x_i$ (b, e) for the word's vector
# and $s_i$ (b, d) for the state, the simplest update, the **plain cell** ([Elman,
# 1990](https://doi.org/10.1207/s15516709cog1402_1)), is
#
# $$s_i = \tanh(x_i W_x + b_x + s_{i-1} W_s + b_s) .$$
#
# Each step multiplies a small change of the old state by $W_s$ and by the slope of the tanh, at most 1. A gradient on
# its way back is multiplied by the same factors. Where it grows step after step, it **explodes**, and can be clipped
# ([Pascanu et al., 2013](https://arxiv.org/abs/1211.5063)). Where it shrinks, it **vanishes**: an error at the last
# word hardly reaches the first ([Bengio, Simard and Frasconi, 1994](https://doi.org/10.1109/72.279181)).
#
# The **LSTM** ([Hochreiter and Schmidhuber, 1997](https://doi.org/10.1162/neco.1997.9.8.1735)) and the **GRU** ([Cho
# et al., 2014](https://arxiv.org/abs/1406.1078)) have a path without $W_s$ and tanh. The LSTM carries a second vector
# beside its state on this path; the GRU carries the state itself. In PyTorch's GRU,
#
# $$s_i = z_i \odot s_{i-1} + (1 - z_i) \odot \tilde s_i , \qquad z_i = \sigma(x_i W_z + s_{i-1} U_z + b_z) ,$$
#
# where $\odot$ multiplies component by component and $\sigma$ is the sigmoid. Where the **update gate** z is near 1,
# the old state passes almost unchanged, and the new word hardly enters. The candidate $\tilde s_i$ is the plain cell,
# its memory scaled by the **reset gate** r, which has the form of z and weights of its own:
#
# $$\tilde s_i = \tanh\big(x_i W_x + b_x + r_i \odot (s_{i-1} W_s + b_s)\big) .$$

# %%
plots.diagrams.gated_cell()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One step of a GRU. The thick line, from the old state to the new one, crosses one product with
# the gate and one sum, but no matrix and no tanh.
#
# </div>
#
# Use `finished_parts` only where a card names one.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `gru_step`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Write one step of the GRU, as in the formulas. The weights of r, z and $\tilde s$ are side by side, as PyTorch
# stores them: of the 3d columns of each matrix and bias, the first d belong to r, the next d to z, the last d to
# $\tilde s$. So each gate, like $\tilde s$, has two biases, one for each matrix; $b_z$ is their sum. Do not call
# PyTorch's own GRU.
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
# A GRU can *learn* what to keep, because its gates depend on the word and on the state ([Measured
# further](../../site/further.md#lesson-13) has it beside the plain cell).
#
# The encoder above is a **bidirectional** GRU: one GRU for each direction, and at each word their two states are
# joined. Its two last states are at opposite ends of the sentence. Together they are the vector c, and every step of
# the decoder gets it, beside the previous word $y_{i-1}$:
#
# $$s_i = f(s_{i-1},\, y_{i-1},\, c) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `sentence_vector`** &nbsp; ★★☆ · 5 minutes · 2.5 points
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
# Do the words in the middle of a list reach this vector? Change the vector of one word a little, in a random
# direction, and measure how far c moves.

# %%
@torch.no_grad()
def moves(model, count=5, size=0.01):
    """How far c moves, as a multiple of the change of one word, at five places of a list."""
    torch.manual_seed(0)
    found = []
    for english, _ in tests[count]:
        x = model.tokens(padded(as_rows([english], ENGLISH)))          # (1, t, e)
        t = x.shape[1]
        changed = x.repeat(5, 1, 1)                                    # a row for each place
        for k in range(5):
            step = F.normalize(torch.randn(64), dim=0).to(x)
            changed[k, round(k / 4 * (t - 1))] += size * step
        outputs = model.reader(torch.cat([x, changed]))[0]             # the encoder
        c = finished_parts.sentence_vector(outputs, torch.full((6,), t, device=x.device))
        found.append((c[1:] - c[0]).norm(dim=1) / size)
    return torch.stack(found).mean(dim=0).tolist()

torch.manual_seed(0)
untrained = finished_parts.RecurrentTranslator(
    len(ENGLISH), len(GERMAN), 64, PAD, one_vector=True
).to(device())
print(f"{'changed word:':>15}   first     1/4  middle     3/4    last")
for name, model in {"before training": untrained, "after training": fixed}.items():
    print(f"{name:>15}" + "".join(f"{x:8.3f}" for x in moves(model)))

# %% [markdown]
# **The way is long but not closed.** After training, a word in the middle moves the vector about half as far as a word
# at the ends; before training, about a thirtieth. So the encoder has learned to let the middle move the vector.

# %% [markdown]
# ## Keep a vector for each word, and look again
#
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
# **How to read it.** The same encoder and decoder, twice. The thick lines below are new: they lead from every state of
# the encoder to a sum that is computed anew for each word.
#
# </div>
#
# You know this: $s_{i-1}$ is a query, and $h_j$ is both key and value. Only the score is different. It is
# **[additive](../../site/glossary.md#additive-attention)**: both sides are projected to a common width and added
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
# [Luong, Pham and Manning (2015)](https://arxiv.org/abs/1508.04025) tried simpler scores, such as the **general** score
#
# $$\text{score}(s, h_j) = h_j\, W s^\top ,$$
#
# with one matrix W, (m, d). With $W = W_k W_q^\top$ it is lesson 2's score: $(h_j W_k) \cdot (s\, W_q)$.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `general_scores`** &nbsp; ★☆☆ · 4 minutes · 2 points
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
# <div class="card">
#
# **Exercise 5 · `AttentiveDecoder`** &nbsp; ★★★ · 12 minutes · 4.5 points
#
# Write `step`. As in the paper, the context is computed with the **old** state; the output layer is simpler than the
# paper's. The GRU cell gets the token's vector and the context side by side, in this order; the logits come from the
# new state and the context, in this order. The mask separates words from padding: it may hide any positions of a
# sentence, but leaves at least one. Use `finished_parts.additive_scores`, exercise 3, and lesson 5's
# `masked_softmax(scores, mask)`.
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
# Your decoder replaces the old one; the encoder, the data and the number of steps stay. It changes three things: the
# room, the distance, and that the decoder *chooses* anew at every step. Two controls change one of the first two. In
# the first, c has 256 numbers instead of 64, and every other part is four times as wide, too: there is more **room**.
# In the second, the weights of your decoder are all equal: each word is one step away, so the **distance** is short,
# and the context is the same mean at every step.

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

def trained(width, **options):
    torch.manual_seed(0)
    model = finished_parts.RecurrentTranslator(
        len(ENGLISH), len(GERMAN), width, PAD, **options
    )
    train(model.to(device()), STEPS)
    return model

wide = trained(256, one_vector=True)
averaging = trained(64, decoder=MeanDecoder)
attentive = trained(64, decoder=AttentiveDecoder)
models = {"one vector, 256": wide, "mean": averaging, "attention": attentive}
found = {"one vector, 64": with_vector}
for name, model in models.items():
    found[name] = [exact(model, count) for count in range(1, 10)]
show_shares(found)

# %% nbgrader={"grade": true, "grade_id": "check_two_controls", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("two_controls", two_controls)

# %% [markdown]
# **A model four times as wide moves the fall to longer lists, a shorter way does not; learned weights that are chosen
# anew at each step remove it, up to the trained lengths.** With 256 numbers, nearly half of the lists of four are
# right, and few of five. The mean does no better than the first translator, and your decoder differs from it only in
# the weights: **without a choice, a short way did not help.** (Choosing gives room, too: no single vector has to hold
# the list.)
#
# Three runs agree ([Measured further](../../site/further.md#lesson-13)). This is what the models learn in 550 steps,
# not all that a vector can hold: with more steps, one vector lasts for longer lists.

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

# %% mystnb={"image": {"alt": "Exact match against the number of numerals in a list, from 1 to 9, for four translators. One vector of 64 numbers and the mean fall together from 1 at one number to about 0.2 at three and to almost 0 from four on. One vector of 256 numbers is at 0.8 at three, near a half at four, below 0.2 at five and near 0 from six on. Attention stays above 0.9 up to six; a dotted line just beyond six marks the longest lists of the training set. At seven it is near 0.4, at eight and nine near 0."}}
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
# **How to read it.** A hundred lists of each length, one training run for each model. The dotted line is just beyond
# the longest lists of the training set.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_beyond_six", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("beyond_six", beyond_six)

# %% [markdown]
# **With a vector for each word and a choice at each step, the lost numbers are right again.** Beyond the trained
# lengths, attention fails, too, as learned positions did in lesson 6. In real translation, the BLEU was 26.75 with
# attention and an encoder that reads both ways, and 17.82 with neither ([Bahdanau et
# al.](https://arxiv.org/abs/1409.0473), table 1, models trained on up to 50 words).

# %% [markdown]
# ## The weights follow the words, not their order
#
# The authors plotted the weights and called them **alignments**. English says the ten before the unit, German after
# it.

# %%
@torch.no_grad()
def alignment(english, german):
    """Where the decoder looked before each German word and the stop: (words + 1, t)."""
    target = padded(as_rows([german], GERMAN, ends=True))
    return attentive.eval()(padded(as_rows([english], ENGLISH)), target[:, :-1])[1][0].cpu()

english = "forty seven , three hundred and two"
german = "sieben und vierzig , drei hundert zwei"
weights = alignment(english, german)

# %% tags=["hide-input"] mystnb={"image": {"alt": "A heat map. Rows are the German words sieben, und, vierzig, comma, drei, hundert, zwei and the stop, columns the English words forty seven, comma, three hundred and two. Before sieben nearly all of the weight is on seven, before und most of it and before vierzig nearly all of it on forty, so that the dark cells of the first number cross; for the comma and for drei, hundert and zwei they follow the order of the words. Before the stop the weight is spread over all words."}}
plots.heat(weights, [*german.split(), "<stop>"], english.split(), scale=1, bar=True,
           row_label="about to write", column_label="looks at",
           title="Before und the weight goes back to forty")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each German word. *sieben* looks at *seven*. At *und*, most of the weight is already
# on *forty*, and at *vierzig* it stays there. Then it follows the words; before the stop it is spread over all of them.
# The decoder was given the right German words.
#
# </div>
#
# **The weights cross where the languages do.** In other lists, too, the weight nearly always moves back between a
# unit and its ten ([Measured further](../../site/further.md#lesson-13)).

# %% [markdown]
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
# From the first word to the last, information takes about t steps in a recurrent network, and one in attention
# ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), table 1). In return, the cost of attention grows with t²
# (lesson 16).
#
# The transformer of [lesson 10](../10_encoder_decoder/10_encoder_decoder.ipynb) has no recurrence: each sequence
# attends to *itself*, and lesson 6's positions are added, because nothing reads in order any more.

# %% [markdown]
# ## A word's vector can know its sentence
#
# The memory has a vector for each word. What can such a vector hold? Two answers without attention are a table, in
# which each word has one vector, as in word2vec (2013), and a recurrent reader, as in ELMo (2018, a year after the
# transformer), whose vector
# depends on the sentence.
#
# ### A table has one vector for all uses of a word
#
# Lesson 1's word vectors were made by counting which words occur near each other. **word2vec** ([Mikolov et al.,
# 2013](https://arxiv.org/abs/1310.4546)) learned them by guessing instead, with **[skip-gram with negative
# sampling](../../site/glossary.md#skip-gram)**. Take a word of a text, the centre, and a word near it, its context.
# Draw k more words at random, the **negatives**. The model has to tell the context from the negatives.
#
# Each word has two vectors, u as a centre and w as a context. The model's probability that the two are neighbours is
# $\sigma(u \cdot w)$, and that they are not, $\sigma(-u \cdot w)$. With the negatives $w_1, \dots, w_k$, the loss of
# one pair is
#
# $$-\log \sigma(u \cdot w) \;-\; \sum_{j=1}^{k} \log \sigma(-u \cdot w_j) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `skip_gram_loss`** &nbsp; ★★☆ · 7 minutes · 3 points
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
# ### A reader knows the sentence, one side at a time
#
# **ELMo** ([Peters et al., 2018](https://arxiv.org/abs/1802.05365)) took a word's vector from language models that
# *read the sentence*, a **contextual embedding**. One LSTM reads forwards and predicts the next word at each position.
# Because what comes *after* a word matters, too, another reads backwards and predicts the previous word.

# %%
plots.diagrams.two_readers()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Two readers, each with two layers of LSTM above the word vectors. No arrow leads from one to the
# other.
#
# </div>
#
# Why not one reader whose every layer reads both ways? Layer 1, reading backwards, has read word i + 1 before it
# comes to position i, and its output there goes into layer 2. So layer 2 sees the word that it has to predict.
# [Measured further](../../site/further.md#lesson-13) draws this leak.
#
# A backward reader is a forward reader that gets the sentence in reverse: the last *word* first, not the padding.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `read_backwards`** &nbsp; ★★☆ · 8 minutes · 3 points
#
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
# **Exercise 8 · `BiLanguageModel`** &nbsp; ★★★ · 15 minutes · 4 points
#
# Write `layers` and `loss`. The constructor is done: both readers share one table of vectors and one output layer,
# and each has LSTMs of its own. Use `finished_parts.read_backwards(x, lengths)`, exercise 7. What `layers` returns at
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
# ### In the reader, a word is nearest to words with the same negation
#
# Train this reader on lesson 8's synthetic film reviews, without labels. Then take every adjective of reviews that it
# was not trained on, and look for its nearest neighbour among the other adjectives. If the adjective comes after
# *not*, *hardly* or *far from*, does its neighbour, too?

# %% tags=["hide-input"]
(texts, _), (test_texts, _) = reviews(8000, 2000)
vocabulary = build_vocabulary(texts, 1000)
ids, mask = encode_batch(texts, vocabulary, 60)    # both (texts, t)

# %%
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

# %%
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
for layer in (0, 1):
    x = F.normalize(layers[row, layer, place], dim=1)
    cosines = (x @ x.T).masked_fill(~other, -1.0)
    nearest = cosines >= cosines.amax(dim=1, keepdim=True) - 1e-6    # all that are as near
    print(f"   nearest in layer {layer}:  {share(nearest):.2f}")

# %% [markdown]
# **A table cannot tell one use of a word from another; a reader's vector depends on this use.** In the table, the
# nearest neighbour has the same negation as often as any other adjective. In layer 1 of the same reader, it nearly
# always has. Neighbours are found by cosine; ties are averaged. This is one training run.

# %% [markdown]
# ## What you can do now
#
# **Where should a network keep what it has read?** In one vector for each word, and choose among them at each step.
#
# - One vector mixed up long lists, although a word in the middle still moved it. In each of three runs, four times the
#   width moved the fall to longer lists, and the mean of all words, each one step away, did not.
# - With a vector for each word and attention, trained for as many steps, nearly all lists were right, up to the
#   trained lengths.
# - The vector of a word can know its sentence: in a reader, an adjective's nearest neighbour nearly always had the same
#   negation; in its table, about as often as by chance. This was one run.
#
# One thing is open. Each half of ELMo's vector knows the left or the right of its word, and nothing in the reader
# joins the two. Can one model see both sides, and still not see the word that it has to predict?
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
# - [Luong, Pham and Manning, *Effective approaches to attention-based neural machine translation*,
#   2015](https://arxiv.org/abs/1508.04025), section 3.
# - [Sutskever, Vinyals and Le, *Sequence to sequence learning with neural networks*,
#   2014](https://arxiv.org/abs/1409.3215), section 3.3: one vector works better if the source is read backwards.
# - [Mikolov et al., *Distributed representations of words and phrases and their compositionality*,
#   2013](https://arxiv.org/abs/1310.4546), section 2.
# - [Peters et al., *Deep contextualized word representations*, 2018](https://arxiv.org/abs/1802.05365), sections 3
#   and 5.
#
# **Next:** [lesson 14, *BERT*](../14_bert/14_bert.ipynb)
