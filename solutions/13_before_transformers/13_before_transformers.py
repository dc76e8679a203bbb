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
# translators put a whole sentence into one vector. You see such a translator fail on long lists, look for the cause,
# and take it away with attention, which entered translation for this. Then you ask what the vector of a single word
# should hold.
#
# | | |
# |---|---|
# | **You will build** | a recurrent cell with gates, a sentence in one vector, the first attention in translation; then word vectors learned from neighbouring words, and a pair of language models that read in opposite directions; and you fix a score |
# | **You need** | lessons [1](../01_dot_product_attention/01_dot_product_attention.ipynb), [2](../02_queries_keys_values/02_queries_keys_values.ipynb), [5](../05_masking/05_masking.ipynb) and [10](../10_encoder_decoder/10_encoder_decoder.ipynb) |
# | **It takes** | about 105 minutes: eight exercises, 25 points, and two predictions |
# | **It computes** | for about a minute, mostly to train three translators; any laptop will do |
#
# The letters follow [the notation table](../../site/notation.md), with t for the number of words that are read. Some
# letters follow the papers instead:
#
# | letter | here |
# |:--:|---|
# | $s$, $d$ | a state, and its width; $s$ is never a length in this lesson |
# | $h_j$, $m$ | what the encoder keeps of word $j$, and its width |
# | $a$ | the width in which a state and an $h_j$ are compared |
# | $r$, $z$ | gates, numbers from 0 to 1 |

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
# Le](https://arxiv.org/abs/1409.3215) paired two **recurrent** networks for translation. Such a network goes through
# a text word by word ([lesson 7](../07_transformer_block/07_transformer_block.ipynb)). The *encoder* reads the source
# and leaves one vector; the *decoder* writes the translation from this vector. Here is such a translator. Its vector
# has 64 numbers, and it has learned to translate lists of one to six numbers below 1,000 from English to German.

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
hits = [sum(written[place : place + 1] == [right[place]] for _, right, written, _ in lists)
        for place in range(5)]
print(f"right at places 1 to 5 in {len(lists)} such lists:", *hits)

# %% [markdown]
# **Where has the rest of the list gone?** The first number is right in half of the lists, the third in one of ten. In
# the four above, the wrong numbers are made of digits of the list, at the wrong place.
#
# There are two suspects. The first is the way: the encoder reads in both directions, so the ends of the list are near
# the vector, and each number between them has many steps to go. The second is the vector: its 64 numbers have to hold
# the whole list, however long it is.

# %% [markdown]
# ## Through a plain cell a gradient vanishes or explodes, and a gate can keep it
#
# The first suspect is the way through the steps. A recurrent network keeps a **state**, a vector that it updates at
# each word. With $x_i$ (b, e) for the word's vector and $s_i$ (b, d) for the state, the simplest update, the **plain
# cell** ([Elman, 1990](https://doi.org/10.1207/s15516709cog1402_1)), is
#
# $$s_i = \tanh(x_i W_x + s_{i-1} W_s + b) .$$
#
# What the state knows of the first word has passed through every step since. Let $W_s$ be g times an orthogonal
# matrix. Then a step multiplies the length of a small change by g, and the tanh, nowhere steeper than 1, can only
# shrink it. After t steps the factor is at most $g^t$. For g = 0.8 and sixty words, this is about a millionth.
#
# A gradient on its way back is multiplied by the same factors. Where it grows, it **explodes**, and can be clipped
# ([Pascanu et al., 2013](https://arxiv.org/abs/1211.5063)). Where it shrinks, it **vanishes**: an error at the last
# word hardly reaches the first. This is harder to cure ([Bengio, Simard and Frasconi,
# 1994](https://doi.org/10.1109/72.279181)).
#
# The **LSTM** ([Hochreiter and Schmidhuber, 1997](https://doi.org/10.1162/neco.1997.9.8.1735)) and the **GRU** ([Cho
# et al., 2014](https://arxiv.org/abs/1406.1078)) have a path without $W_s$ and tanh. In PyTorch's GRU,
#
# $$s_i = z_i \odot s_{i-1} + (1 - z_i) \odot \tilde s_i , \qquad z_i = \sigma(x_i W_z + s_{i-1} U_z + b_z) ,$$
#
# where $\odot$ multiplies component by component and $\sigma$ is the sigmoid. Where the **gate** z is near 1, the old
# state passes almost unchanged. The candidate $\tilde s_i$ is the plain cell, its memory scaled by a second gate r,
# which has the form of z and weights of its own:
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
# Is it the gate that remembers? We measure the **slope** $|\partial s_t / \partial s_0|$, the largest factor by which
# a small change of the first state changes the state t words later. First for three plain cells; then for your GRU,
# with 0, 2 or 4 added to the bias of z and nothing else changed.

# %%
class PlainCell(nn.Module):
    """One step of the simplest recurrent network. W_s is g times an orthogonal matrix."""

    def __init__(self, e, d, g=1.0):
        super().__init__()
        self.w_x = nn.Parameter(torch.randn(e, d) / e**0.5)
        self.w_s = nn.Parameter(g * torch.linalg.qr(torch.randn(d, d))[0])
        self.b = nn.Parameter(torch.zeros(d))

    def forward(self, x, s):
        """x: (b, e), a word. s: (b, d), the old state. Returns the new state, (b, d)."""
        return torch.tanh(x @ self.w_x + s @ self.w_s + self.b)

@torch.no_grad()
def state_slopes(cell, words, d=64):
    """|∂ s_t / ∂ s_0| for t = 1, 2, ...: the largest factor for a small change of s_0."""
    s, product, found = torch.zeros(d), torch.eye(d), []
    for x in words:
        step = torch.func.jacrev(lambda s: cell(x[None], s[None])[0])(s)    # (d, d)
        s, product = cell(x[None], s[None])[0], step @ product
        found.append(torch.linalg.matrix_norm(product, 2).item())
    return found

# %%
def plain_slopes(seed):
    torch.manual_seed(seed)
    words = 0.1 * torch.randn(60, 64)    # sixty small random words
    return {f"g = {g}": state_slopes(PlainCell(64, 64, g), words) for g in (0.8, 1.0, 1.5)}

def gated_slopes(seed):
    torch.manual_seed(seed)
    words, theirs = 0.1 * torch.randn(60, 64), nn.GRUCell(64, 64)
    w_x, w_s = theirs.weight_ih.detach().T, theirs.weight_hh.detach().T    # (e, 3d), (d, 3d)
    b_x, b_s = theirs.bias_ih.detach(), theirs.bias_hh.detach()
    found = {}
    for bias in (0, 2, 4):
        raised = b_x.clone()
        raised[64:128] += bias
        cell = lambda x, s: gru_step(x, s, w_x, w_s, raised, b_s)
        found[f"gate bias {bias}"] = state_slopes(cell, words)
    return found

plain, gated = ([slopes(seed) for seed in range(3)]
                for slopes in (plain_slopes, gated_slopes))

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels, the slope of state t with respect to the first state, on a logarithmic axis, from 1 to 60 words. Left, a plain cell: with g = 0.8 a straight fall to below a millionth, with g = 1 a slow fall to about a twentieth, with g = 1.5 a rise above a thousand. Right, a GRU: with a gate bias of 0 a straight fall to about 1e-11, with 2 to about a hundredth, with 4 almost flat, ending near a half."}}
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), sharey=True, layout="compressed")
for ax, (title, series) in zip(axes, {"A plain cell forgets or explodes": plain,
                                       "A GRU with an open gate remembers": gated}.items()):
    plots.curves({name: (range(1, 61), found) for name, found in series[0].items()},
                 "words read, t", "|∂ s_t / ∂ s_0|", log="y", title=title, ax=ax)
axes[1].set_ylabel("")
plt.show()

print("slope after 60 words, for three draws of words and weights")
for draws in (plain, gated):
    for name in draws[0]:
        print(f"{name:>12}", *(f"{draw[name][59]:10.1e}" for draw in draws))

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The first draw. On the logarithmic axis a straight line falls or grows by the same factor at each
# word. All cells are untrained and read the same sixty words.
#
# </div>
#
# **The gate decides how long a state is remembered.** With a bias of 0 the gates are about 1/2, and the GRU forgets
# even faster than the plain cell with g = 0.8. With a bias of 4, about half of the slope is left after sixty words, in
# each of three draws. A GRU can *learn* what to keep, because its gates depend on the word and on the state.
#
# The translator above is made of GRUs. It could have learned to keep its words, but we do not know that it did. So
# the first suspect is not cleared yet. First, how bad is the failure?

# %% [markdown]
# ## One vector fails from three numbers on
#
# Between encoder and decoder is one vector c for the whole source. Every step of the decoder gets it, beside the
# previous word $y_{i-1}$:
#
# $$s_i = f(s_{i-1},\, y_{i-1},\, c) .$$
#
# A **bidirectional** encoder is two recurrent networks, one for each direction, whose states are joined at each word.
# Its two last states are at opposite ends of the sentence.

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
# How does the translator do with lists of other lengths? A list counts if all of its words are right: **exact match**.

# %%
with_vector = [exact(fixed, count) for count in range(1, 10)]
show_shares({"one vector": with_vector})

# %% [markdown]
# **One vector is enough for one number and fails from three on**, although the training set has lists of up to six.
# That is what it learns in 550 steps, not all that 64 numbers can hold: with more training the fall comes at longer
# lists ([Measured further](../../site/further.md#lesson-13)). [Cho et al. (2014)](https://arxiv.org/abs/1409.1259)
# saw a similar fall in real sentences.

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
# **How to read it.** The same encoder (reader) and decoder, twice. The thick lines below are new: they lead from
# every state of the reader to a sum that is computed anew for each word.
#
# </div>
#
# You know this: $s_{i-1}$ is a query, and $h_j$ is both key and value. Only the score is different. It is
# **[additive](../../site/glossary.md#additive-attention)**: both sides are projected to a common width and added,
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
# The bug is from [keon/seq2seq](https://github.com/keon/seq2seq) (issue #3).
#
# [Luong, Pham and Manning (2015)](https://arxiv.org/abs/1508.04025) tried simpler scores (section 3.1), such as the
# **general** score
#
# $$\text{score}(s, h_j) = h_j^\top W s ,$$
#
# with one matrix W, (m, d). If W is the identity, it is the **dot product**. With $W = W_k W_q^\top$ it is lesson 2's
# score: $(h_j W_k) \cdot (s\, W_q)$.

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
# **Prediction · `bias_on_keys`** &nbsp; 1 minute · no points
#
# Give the keys a bias: $\text{score}(s, h_j) = s \cdot (h_j W_h + b)$, with a random b whose components are about as
# large as those of s. For a given state s, how do the attention weights change?
#
# - **A.** None of them changes, whatever s and b are.
# - **B.** All of them change.
# - **C.** They change for some states and not for others.
# </div>

# %% nbgrader={"grade": false, "grade_id": "bias_on_keys", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
bias_on_keys = "A"
### STUDENT GETS
# bias_on_keys = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
draws = torch.Generator().manual_seed(0)
s, memory, w, bias = (torch.randn(*shape, generator=draws, dtype=torch.float64)
                      for shape in [(5, 8), (5, 6, 8), (8, 8), (8,)])
scores = general_scores(s, memory, w)                      # (b, t)
keys = memory @ w + bias                                   # (b, t, 8)
with_bias = (keys @ s.unsqueeze(-1)).squeeze(-1)           # (b, t)
print(f"largest change of a score:  {(with_bias - scores).abs().max():.2f}")
change = (with_bias.softmax(-1) - scores.softmax(-1)).abs().max()
print(f"largest change of a weight: {'below 1e-12' if change < 1e-12 else f'{change:.4f}'}")

# %% nbgrader={"grade": true, "grade_id": "check_bias_on_keys", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("bias_on_keys", bias_on_keys)

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
# Same encoder, same data, same number of steps: only your decoder is new. It takes both suspects away: each word is
# one step from the decoder, and no single vector has to hold the list. A control takes away the first alone. Its
# weights are all equal, so each word is one step away, but the decoder gets the same vector at every step, the mean
# of the memory.

# %%
class MeanDecoder(AttentiveDecoder):
    """A control: all words have the same weight."""

    def step(self, y, s, memory, mask):
        weights = mask / mask.sum(dim=1, keepdim=True)             # (b, t)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)            # (b, m)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)   # (b, d)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights

def trained(decoder):
    torch.manual_seed(0)
    model = finished_parts.RecurrentTranslator(
        len(ENGLISH), len(GERMAN), 64, PAD, decoder=decoder
    )
    train(model.to(device()), STEPS)
    return model

averaging, attentive = trained(MeanDecoder), trained(AttentiveDecoder)
with_mean = [exact(averaging, count) for count in range(1, 7)]
with_attention = [exact(attentive, count) for count in range(1, 10)]
show_shares({"one vector": with_vector, "mean of the memory": with_mean,
             "attention": with_attention})

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

# %% mystnb={"image": {"alt": "One vector falls with the length of the list, attention only beyond the trained lengths: exact match against the number of numerals in a list, from 1 to 9. With one vector the curve falls from 1 at one number to about 0.2 at three and to 0.01 or less from four on. With attention it stays above 0.9 up to six; a dotted line just beyond six marks the longest lists of the training set. At seven it is near 0.4, at eight and nine near 0."}}
counts = list(range(1, 10))
plots.curves({"one vector": (counts, with_vector), "attention": (counts, with_attention)},
             "numbers in the list", "exact match",
             title="Attention fails only beyond the trained lengths")
plt.gca().axvline(6.5, color="grey", linestyle=":")
plt.gca().annotate("trained up to here", (6.42, 0.3), rotation=90, ha="right", va="center")
plt.gca().set(xticks=counts, ylim=(-0.03, 1.05))
plt.show()

seven, eight = with_attention[6:8]
print(f"right with attention: {seven:.2f} of the lists of seven, "
      f"{eight:.2f} of the lists of eight")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A hundred lists of each length, one training run for each model; two more runs agree. The dotted
# line is just beyond the longest lists of the training set.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_beyond_six", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("beyond_six", beyond_six)

# %% [markdown]
# **With a vector for each word, the rest of the list is back.** The mean brings each word just as near, and fails as
# the first translator did. So a short way is not enough: the decoder learns the list only if it can choose a word at
# each step, in each of three runs ([Measured further](../../site/further.md#lesson-13)).
#
# Beyond the trained lengths, attention fails, too, as positions did in lesson 6. In real translation, it raised the
# BLEU from 17.82 to 26.75 ([Bahdanau et al.](https://arxiv.org/abs/1409.0473), table 1, models trained on up to 50
# words).

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
           title="Before vierzig the weight goes back to forty")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each German word. *sieben* looks at *seven*. At *und*,
# most of the weight goes back to *forty*: German needs this *und* only if there is a ten. At *vierzig* it stays
# there. Then it follows the words; before the stop it is spread over all of them. The decoder was given
# the right German words.
#
# </div>
#
# **The weights cross where the languages do.** In other lists, too, the weight nearly always moves back between a
# unit and its ten ([Measured further](../../site/further.md#lesson-13)).

# %% [markdown]
# ## A word's vector should know its sentence
#
# The memory has a vector for each word. What should this vector hold? Before BERT (lesson 14) there were two answers:
# a table, in which each word has one vector, and a recurrent reader, whose state depends on the sentence.
#
# ### A table knows a word's neighbours
#
# Lesson 1's word vectors were made by counting which words occur near each other. [Mikolov et al.
# (2013)](https://arxiv.org/abs/1310.4546) learned them with a guessing game instead, **[skip-gram with negative
# sampling](../../site/glossary.md#skip-gram)**. Take a word of a text, the centre, and a word near it, its context.
# Draw k more words at random, the **negatives**. The model has to tell the context from the negatives.
#
# Each word has two vectors, u as a centre and w as a context. The model's probability that the two are neighbours is
# $\sigma(u \cdot w)$, and $w_1, \dots, w_k$ are the negatives. Since $1 - \sigma(z) = \sigma(-z)$, the loss of one
# pair is
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
# [Peters et al. (2018)](https://arxiv.org/abs/1802.05365) took a word's vector from language models that *read the
# sentence*: **ELMo**. One LSTM reads forwards and predicts the next word at each position. Because what comes *after*
# a word matters, too, another reads backwards and predicts the previous word.

# %%
plots.diagrams.two_readers()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Two readers, each with two layers of LSTM above the word vectors. No arrow leads from one to the
# other. Below: a task mixes the layers at one word, with shares μ and a scale γ that it learns (equation 1).
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
# ### In the reader, the neighbours of *dull* change with the sentence
#
# Train both on lesson 8's synthetic film reviews, without labels, and ask for the words nearest to *dull*.

# %% tags=["hide-input"]
(texts, _), (test_texts, _) = reviews(8000, 2000)
vocabulary = build_vocabulary(texts, 1000)
names = list(vocabulary)
ids, mask = encode_batch(texts, vocabulary, 60)    # both (texts, t)
n = len(vocabulary)

pairs = []    # (centre, context), two places apart at most
for apart in (1, 2):
    there = mask[:, apart:]
    left, right = ids[:, :-apart][there], ids[:, apart:][there]
    pairs += [torch.stack([left, right]), torch.stack([right, left])]
pairs = torch.cat(pairs, dim=1)                    # (2, pairs)

# in proportion to the frequency to the power 3/4, as in section 2.2 of the paper
frequency = torch.bincount(ids[mask], minlength=n).float() ** 0.75
print(f"{len(texts):,} reviews, {n} words, {pairs.shape[1]:,} pairs of neighbours")

# %%
torch.manual_seed(0)
centres, contexts = nn.Embedding(n, 32), nn.Embedding(n, 32)
optimiser = torch.optim.Adam([centres.weight, contexts.weight], lr=0.02)
for step in progress(range(2500), "skip-gram"):
    u, w = pairs[:, torch.randint(pairs.shape[1], (512,))]
    drawn = torch.multinomial(frequency, 512 * 5, replacement=True).view(512, 5)
    loss = skip_gram_loss(centres(u), contexts(w), contexts(drawn))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

# %%
torch.manual_seed(0)
reader = BiLanguageModel(n, 64, 2).to(device())
optimiser = torch.optim.Adam(reader.parameters(), lr=0.005)
for step in progress(range(200), "reading"):
    rows = torch.randint(len(ids), (48,))
    lengths = mask[rows].sum(dim=1)
    loss = reader.loss(ids[rows, : lengths.max()].to(device()), lengths.to(device()))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

# %% tags=["hide-input"]
adjectives, flips = (torch.tensor([vocabulary[word] for word in words if word in vocabulary])
                     for words in (PRAISE + BLAME, ["not", "hardly", "from"]))
test_ids, test_mask = encode_batch(test_texts, vocabulary, 60)
with torch.no_grad():
    layers = reader.layers(test_ids.to(device()), test_mask.sum(dim=1).to(device())).cpu()
found = torch.isin(test_ids, adjectives) & test_mask
found[:, 0] = found[:, -1] = False                       # each needs a word on either side
row, place = found.nonzero(as_tuple=True)                # where the adjectives are
flipped = torch.isin(test_ids[row, place - 1], flips)    # after not, hardly or far from

def snippet(k):
    """The adjective number k with the words around it."""
    around = test_ids[row[k], max(0, place[k] - 3) : place[k] + 2].tolist()
    return " ".join(names[word] for word in around)

table = F.normalize(centres.weight.detach(), dim=1)
likeness = table @ table[vocabulary["dull"]]
nearest = likeness.argsort(descending=True)[1:5].tolist()
columns = [["skip-gram: dull", *(f"{likeness[j]:.2f}  {names[j]}" for j in nearest)]]

space = F.normalize(layers[row, 1, place], dim=1)        # layer 1, (adjectives, 128)
dull = test_ids[row, place] == vocabulary["dull"]
for kind in (False, True):
    k = (dull & (flipped == kind)).nonzero()[0].item()
    likeness = (space @ space[k]).masked_fill(dull, -1.0)
    nearest = likeness.argsort(descending=True)[:4].tolist()
    columns.append([f"reader: {snippet(k)}",
                    *(f"{likeness[j]:.2f}  {snippet(j)}" for j in nearest)])
for line in zip(*columns):
    print(" | ".join(f"{cell:<29}" for cell in line).rstrip())

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Below each heading, the four nearest neighbours of its *dull* and their cosines. In a window of
# the reader, the word that is compared is the fourth. The reader's vectors are those of layer 1, for adjectives in
# reviews that it was not trained on; the other *dull*s are left out. One training run each.
#
# </div>
#
# **A table knows where a word is used; a reader knows where it is used this time.** To skip-gram, words of praise are
# as near to *dull* as words of blame. The reader's neighbours of the first *dull* are in plain blame, those of the
# second after a *not* or a *far from*. The context can count more than the word: *far from honest* is near *far from
# dull*, though one is blame and the other praise.
#
# Each half of the reader's vector knows its side of the word, and the table neither, as a **linear probe** measures
# ([Measured further](../../site/further.md#lesson-13)).

# %% [markdown]
# ## The recurrence has two jobs left, and attention can do both
#
# The decoder gets what it needs of the source from the context $c_i$. The recurrence still tells the decoder what is
# already written, and it tells each source word what is around it. For both, each word has to wait for another.

# %%
plots.diagrams.waiting_steps()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above, each state needs the one before it. Below, all positions are computed together; none has
# to wait.
#
# </div>
#
# To read t words, or to train on them, recurrence needs t steps in a row, and attention one. The path from the first
# word to the last has the same lengths: t steps, or one ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762),
# table 1). In return, the cost of attention grows with t² (lesson 16).
#
# So Vaswani et al. removed the recurrence, let each sequence attend to *itself*, and added lesson 6's positions,
# because nothing reads in order any more. Attention inside one sequence was not new ([Cheng et al.,
# 2016](https://arxiv.org/abs/1601.06733); [Parikh et al., 2016](https://arxiv.org/abs/1606.01933); [Lin et al.,
# 2017](https://arxiv.org/abs/1703.03130)). A translator in which nothing else connects the positions was new: [lesson
# 10](../10_encoder_decoder/10_encoder_decoder.ipynb)'s transformer.

# %% [markdown]
# ## What you can do now
#
# **Where should a network keep what it has read?** In one vector for each word.
#
# - A gate can let a state pass through many steps, but a translator with gates and one vector still mixed up long
#   lists.
# - With a vector for each word and attention, trained for as many steps, nearly all lists were right, up to the
#   trained lengths. With the mean of these vectors, long lists failed.
# - The vector of a word should depend on its sentence: in a table *dull* is near *funny*, and a reader tells a plain
#   *dull* from a negated one.
#
# One thing is open. Each half of ELMo's vector knows the left or the right of its word, and nothing in the reader
# joins the two. Can one model see both sides, and still not see the word that it has to predict?
#
# You can write a gated cell, the first attention in translation with two of its scores, skip-gram's loss, and a
# language model in each direction.
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
# - [Cho et al., *On the properties of neural machine translation*, 2014](https://arxiv.org/abs/1409.1259), section 4.
# - [Sutskever, Vinyals and Le, *Sequence to sequence learning with neural networks*,
#   2014](https://arxiv.org/abs/1409.3215), section 3.3: one vector works better if the source is read backwards.
# - [Mikolov et al., *Distributed representations of words and phrases and their compositionality*,
#   2013](https://arxiv.org/abs/1310.4546), section 2.
# - [Levy and Goldberg, *Neural word embedding as implicit matrix factorization*,
#   2014](https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization): how
#   skip-gram's vectors are related to lesson 1's counts.
# - [Peters et al., *Deep contextualized word representations*, 2018](https://arxiv.org/abs/1802.05365), sections 3
#   and 5.
#
# **Next:** [lesson 14, *BERT*](../14_bert/14_bert.ipynb)
