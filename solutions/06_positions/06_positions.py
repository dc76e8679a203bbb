# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 6 · Positions
#
# *Putting order back*
#
# *Dog bites man* and *man bites dog* have the same words and different meanings. Attention without a mask cannot
# tell them apart: it compares vectors, and a comparison does not say which came first. Four methods bring order
# back: a vector learned for each position, a vector computed from sines and cosines, a number for each distance, and
# a rotation of queries and keys.
#
# **Trained on short sequences, which of the four still works in longer ones?** This is the question of **length
# extrapolation**. Guess now; near the end you test all four.
#
# | | |
# |---|---|
# | **You will build** | learned and sinusoidal encodings, the matrix that shifts a position, a relative bias, rotary encoding, and a bias for longer sequences |
# | **You need** | [lessons 1](../01_dot_product_attention/01_dot_product_attention.ipynb) to [5](../05_masking/05_masking.ipynb); sine, cosine and their addition formulas |
# | **It takes** | about 105 minutes: six exercises, one of them with a bug to fix, and two predictions; 24 points |
# | **It computes** | in seconds, except for two cells of up to half a minute each: training twelve small models, and *Your model so far* (you may stop it) |
#
# As in [the table](../../site/notation.md), b is the batch size, t the number of positions, e the width of the
# model, h the number of heads and d the width of one. A query is at position i, a key at position j, and p is any
# position. **Distances count back**: the distance from i to j is i − j, so a word two positions back is at distance
# 2, and a word ahead has a negative distance.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.device import device
from helpers.lesson import start
from helpers.parts import positions as finished    # solutions of the exercises
from helpers.parts.multi_head import MultiHeadAttention

check = start("06_positions")

# %% [markdown]
# ## Without positions, unmasked attention loses the order
#
# Give three words a vector each, send them through four layers of multi-head attention, and average the outputs
# into one vector, as a classifier would. Then exchange *dog* and *man*.

# %%
torch.manual_seed(0)
words = dict(zip("dog bites man".split(), torch.randn(3, 8).to(device())))
layers = [MultiHeadAttention(8, 2).to(device()) for _ in range(4)]

def read(sentence, mark=lambda x: x):
    """A sentence as one vector (e,). mark: what to do with the word vectors first."""
    x = torch.stack([words[word] for word in sentence.split()])    # (t, e)
    x = mark(x.unsqueeze(0))                                       # (1, t, e)
    for layer in layers:
        x = x + layer(x)    # lesson 7 explains the sum
    return x.mean(dim=1)[0]

for sentence in ("dog bites man", "man bites dog"):
    print(sentence, [round(y, 3) for y in read(sentence).tolist()])

# %% [markdown]
# The two vectors are equal in every printed digit, and no training can change that. Unmasked attention is
# **[permutation equivariant](../../site/glossary.md#permutation-equivariance)** (lesson 1), and so is a stack of
# such layers: permuted inputs give the same outputs in the permuted order, so their mean is the same. The model
# knows *which* words are there but not *where*.
#
# What adds the *where* is a **positional encoding**.

# %%
plots.diagrams.positions_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The path runs down from the ids to the attention weights of the first layer. The boxes at the side
# hold the four methods: two add a vector, one rotates queries and keys, one adds to the scores.
#
# </div>
#
# The first two methods encode the **absolute position** p, so a score can depend on i and j separately. With the other
# two, positions enter a score only as the **relative position** i − j.

# %% [markdown]
# ## A learned vector marks each position, up to the last row
#
# The simplest method gives every position a **learned vector** and adds it to the vector of the word, as in GPT-2
# and BERT. The vectors are the t_max rows of a table, trained like any other parameter. `nn.Embedding(rows, width)`
# is such a table; called with integers, it returns the rows with those indices. (`finished` holds solutions: use it
# in your answers only where a card allows it.)

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `PositionEmbedding`** &nbsp; ★☆☆ · 10 minutes · 3 points
#
# Write a module that adds, to each vector, the learned vector for its position. Its only parameter is the weight of
# an `nn.Embedding` called `self.table`. If a sequence is longer than t_max, raise a `ValueError` whose message names
# both the length of the sequence and t_max.
#
# <details><summary>Hint 1: which rows</summary>
#
# The rows are 0, 1, …, t − 1, for every sequence of the batch. The table is called with integers on the device of x.
# Its rows for these positions are (t, e), and (b, t, e) + (t, e) broadcasts as it should.
#
# </details>
# <details><summary>Hint 2: an example with four rows</summary>
#
# Let t_max = 4 and e = 2, and let the rows of the table be (1, 5), (2, 6), (3, 7) and (4, 8). The sequence (10, 10),
# (20, 20) becomes (11, 15), (22, 26). A sequence of six vectors raises `ValueError: 6 positions are too many: the
# table has 4.` Compare the length with t_max before you call the table; `__init__` can store t_max.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "PositionEmbedding", "locked": false, "schema_version": 3, "solution": true, "task": false}
class PositionEmbedding(nn.Module):
    """Adds a learned vector to each position.

    t_max: how many positions there are vectors for. e: width of the model.
    self.table: an nn.Embedding with one row of width e for each position.
    """

    def __init__(self, t_max, e):
        super().__init__()
        ### BEGIN SOLUTION
        self.t_max = t_max
        self.table = nn.Embedding(t_max, e)
        ### END SOLUTION

    def forward(self, x):
        """x: (b, t, e). Returns (b, t, e): x plus row p of the table at position p.

        Raises ValueError, naming t and t_max, when t is larger than t_max.
        """
        ### BEGIN SOLUTION
        t = x.shape[1]
        if t > self.t_max:
            raise ValueError(f"{t} positions are too many: the table has {self.t_max}.")
        positions = torch.arange(t, device=x.device)
        return x + self.table(positions)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_PositionEmbedding", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(PositionEmbedding)

# %%
torch.manual_seed(1)
embed = PositionEmbedding(16, 8).to(device())
for sentence in ("dog bites man", "man bites dog"):
    print(sentence, [round(y, 3) for y in read(sentence, embed).tolist()])

# %% [markdown]
# Now the two orders give two vectors, even before training.
#
# Here is a trained head, that of lesson 5, without a mask. On the right, the model's learned position vectors have been
# added to the words.

# %% mystnb={"image": {"alt": "Two maps of 12 by 12 weights for the sentence: the boat could not reach the bank because it was too muddy. Without positions the column of bank is dark in nearly every row. With positions the map is white but for a dark line just below the diagonal; the first word gives its weight to itself."}}
from helpers.data.sentence import WORDS, queries_keys_values

maps = []
for positions in (False, True):
    q, k, _ = queries_keys_values(2, positions)    # (t, d) each
    maps.append(torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), dim=-1))
plots.sentence_map(torch.stack(maps), WORDS, ["without positions", "with positions"])
plt.show()
for name, weights in zip(("without", "with"), maps):
    before = weights.diagonal(-1).mean().item()
    print(f"{name} positions: mean weight on the word before {before:.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Every row sums to 1. The model is all-MiniLM-L6-v2.
#
# </div>
#
# With positions, each word but the first gives nearly all its weight to the word before it. **Where queries and keys
# contain positions, a query can select a position.**
#
# For longer sequences, a table is a poor start. A row learns only from sequences that reach its position, and after
# the last row there is nothing. Could a **formula** give every position a vector?

# %% [markdown]
# ## A formula has a vector for every position
#
# The **sinusoidal encoding** of ["Attention is all you need"](https://arxiv.org/abs/1706.03762) (section 3.5) is a
# clock with e/2 hands. Hand $m$ turns by $\omega_m$ radians per position, and is written as the sine and the cosine of
# its angle, **side by side**:
#
# $$\mathrm{PE}(p)_{2m} = \sin(p\,\omega_m), \qquad \mathrm{PE}(p)_{2m+1} = \cos(p\,\omega_m),
# \qquad \omega_m = \frac{1}{10000^{\,2m/e}}, \qquad m = 0, \dots, \tfrac e2 - 1 .$$
#
# Hand 0, with $\omega_0 = 1$, completes a turn every $2\pi \approx 6.3$ positions, and tells neighbours apart. It
# never points exactly the same way twice, since $2\pi$ is irrational, but it comes close: 44 positions are almost
# exactly 7 turns. Each hand is slower than the one before it, by the factor $10000^{2/e}$, and the slower hands tell
# such positions apart.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `sinusoidal_encoding`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Compute the table of all encodings: one row for each position, one column for each component. e is even.
#
# <details><summary>Hint 1: the angles first</summary>
#
# There are t · e/2 angles: position times speed. A column of positions, (t, 1), and a row of speeds, (e/2,),
# broadcast to (t, e/2). The numbers $2m$ are `torch.arange(0, e, 2)`.
#
# </details>
# <details><summary>Hint 2: an example with two hands</summary>
#
# Let e = 4. The speeds are 1 and 1/100. Position 0 has the angles 0 and 0, position 3 the angles 3 and 0.03:
#
# - row 0 is (0, 1, 0, 1),
# - row 3 is (sin 3, cos 3, sin 0.03, cos 0.03) = (0.14, −0.99, 0.03, 1.00).
#
# Two tables can be interleaved in several ways. One is a new last axis: `torch.stack([a, b], dim=-1)` of (1, 2) and
# (3, 4) is ((1, 3), (2, 4)). Another is to fill every second column of an empty table.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sinusoidal_encoding", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sinusoidal_encoding(t, e, device=None):
    """The fixed encodings of "Attention is all you need", section 3.5.

    t: how many positions. e: width, even. device: where the result is needed.
    Returns (t, e): entry [p, 2m] is sin(p / 10000^(2m/e)), and entry [p, 2m + 1] is the
    cosine of the same angle.
    """
    ### BEGIN SOLUTION
    positions = torch.arange(t, device=device).unsqueeze(1)    # (t, 1)
    pairs = torch.arange(0, e, 2, device=device)               # (e/2,), the numbers 2m
    angles = positions / 10000 ** (pairs / e)                  # (t, e/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_sinusoidal_encoding", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(sinusoidal_encoding)

# %% mystnb={"image": {"alt": "A heat map of the encodings with a colour scale from minus 1 to 1: 64 positions down, 32 components across. The first columns alternate quickly between light and dark, later ones ever more slowly, and the last are almost uniform from top to bottom."}}
encodings = sinusoidal_encoding(64, 32, device())    # (t, e)

figure, axes = plt.subplots(figsize=(4.2, 3.8))
image = axes.imshow(encodings.cpu(), cmap=plots.WEIGHTS, vmin=-1, vmax=1, aspect="auto")
figure.colorbar(image, ticks=[-1, 0, 1])
axes.set(xlabel="component", ylabel="position p")
axes.grid(False)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A row is the vector of one position. Follow a column downwards to watch one hand turn: quickly at
# the left edge, hardly at all at the right.
#
# </div>

# %% [markdown]
# ## With this formula, a step back is one matrix
#
# Why both sine and cosine? Together they turn a step of $\Delta$ positions **back** into a rotation. By their
# addition formulas, for one hand of speed $\omega$,
#
# $$\begin{bmatrix} \sin((p-\Delta)\,\omega) \\ \cos((p-\Delta)\,\omega) \end{bmatrix} \;=\;
# \begin{bmatrix} \cos \Delta\omega & -\sin \Delta\omega \\ \sin \Delta\omega & \cos \Delta\omega \end{bmatrix}
# \begin{bmatrix} \sin p\,\omega \\ \cos p\,\omega \end{bmatrix} .$$
#
# This block depends on $\Delta$ and $\omega$ but **not on p**: it turns the hand back by $\Delta\omega$, wherever it
# points. Put one such block for each hand on the diagonal of an (e, e) matrix $M$. Then $\mathrm{PE}(p - \Delta) =
# M\,\mathrm{PE}(p)$, with the same $M$ for every p. **"The word two positions back" has become a linear map**, like
# $W_q$ and $W_k$. The authors chose sinusoids in the hope that a model could easily learn such maps.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `shift_matrix`** &nbsp; ★★★ · 15 minutes · 5 points
#
# Build the M that goes a given distance back. The distance may be 0, or negative (ahead). M multiplies an encoding,
# written as a column, from the left: $M\,\mathrm{PE}(p)$. Loops are allowed.
#
# <details><summary>Hint 1: where the blocks are</summary>
#
# There are e/2 angles $\Delta\,\omega_m$. The block of hand m fills rows and columns 2m and 2m + 1. Everything
# outside these blocks is 0. For a distance of 0 the matrix is the identity.
#
# </details>
# <details><summary>Hint 2: an example with two hands</summary>
#
# Let e = 4 and the distance be 2. The angles are 2 and 0.02, and
#
# $$M = \begin{bmatrix} -0.42 & -0.91 & 0 & 0 \\ 0.91 & -0.42 & 0 & 0 \\ 0 & 0 & 1.00 & -0.02 \\ 0 & 0 & 0.02 & 1.00
# \end{bmatrix} .$$
#
# To fill such a matrix without a loop, look at its even rows and odd columns alone, `M[0::2, 1::2]`: this is a
# diagonal matrix, with −0.91 and −0.02.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "shift_matrix", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shift_matrix(back, e, device=None):
    """The matrix that moves sinusoidal encodings `back` positions back.

    back: an integer; negative: ahead. e: width, even. device: where the result is needed.
    Returns M, (e, e), with PE(p − back) = M PE(p) for every position p.
    """
    ### BEGIN SOLUTION
    angles = back / 10000 ** (torch.arange(0, e, 2, device=device) / e)    # (e/2,)
    cos, sin = torch.diag(angles.cos()), torch.diag(angles.sin())      # (e/2, e/2)
    matrix = torch.zeros(e, e, device=device)
    matrix[0::2, 0::2], matrix[0::2, 1::2] = cos, -sin
    matrix[1::2, 0::2], matrix[1::2, 1::2] = sin, cos
    return matrix
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_shift_matrix", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(shift_matrix)

# %% [markdown]
# A rotation preserves dot products. So the product of two encodings depends only on the distance between them:
#
# $$\mathrm{PE}(p) \cdot \mathrm{PE}(p - \Delta) \;=\; \sum_m \cos(\Delta\,\omega_m) .$$
#
# It is largest at distance 0. A shift matrix in $W_q$ moves this peak. The next cell uses yours to build a head that
# names, at each position of a random sequence, the letter two positions back.
#
# The keys are the encodings themselves, and the values are the letters. $M$ turns PE(i) into the query PE(i − 2),
# which the key at position i − 2 matches best.

# %% tags=["nbval-check-output"]
def two_back(letters):
    """letters: (t,), integers from 0 to 7. Returns (t,): the letter two positions back."""
    encodings = sinusoidal_encoding(len(letters), 32, device())    # (t, e)
    queries = encodings @ shift_matrix(2, 32, device()).T     # row i is PE(i − 2); W_q = M.T
    weights = torch.softmax(8 * queries @ encodings.T, dim=-1)     # (t, t); 8 makes it sharp
    return (weights @ F.one_hot(letters, 8).float()).argmax(dim=-1)

for t in (64, 6000):
    letters = torch.randint(8, (t,)).to(device())
    hits = (two_back(letters)[2:] == letters[:-2]).sum().item()
    print(f"by hand, at length {t}: {hits} of {t - 2} letters right")

# %% [markdown]
# No letter is wrong, even at length 6,000: one matrix serves every position. So a head whose queries and keys see
# only sinusoids *can* look two positions back. But with most other matrices, its scores depend on i and j separately.
# Will training find a special one?

# %% [markdown]
# ## A bias on the scores depends on the distance alone
#
# It may matter more how far away a word is, and on which side, than where it is in the text. So leave the vectors
# alone and act on the **scores**, where i and j meet:
#
# $$\text{score}_{ij} \;=\; \frac{q_i \cdot k_j}{\sqrt d} + u_{\,i-j} ,$$
#
# with a learned number $u_{i-j}$ for each distance $i - j$: a **relative bias**. A table for t_max positions has
# $2\,t_{max} - 1$ numbers, with distance 0 in the middle. A shorter sequence uses the inner part. This simplifies the
# bias of T5 ([Raffel et al., 2020](https://arxiv.org/abs/1910.10683), section 2.1).
#
# | index in the table, t_max = 4 | 0 | 1 | 2 | **3** | 4 | 5 | 6 |
# |---|---|---|---|---|---|---|---|
# | distance i − j | −3 | −2 | −1 | **0** | 1 | 2 | 3 |

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `relative_bias`** &nbsp; fix · ★★☆ · 10 minutes · 4 points
#
# From the table, make the (t, t) matrix that is added to the scores. t may be smaller than t_max, and t_max follows
# from the length of the table. The code below runs, and a model can be trained with it. But it does not do what the
# docstring says. Fix it.
#
# <details><summary>Hint 1: a table of labels</summary>
#
# Call the function with the table (−3, −2, …, 3), in which every number names its own distance, and t = 3. Entry [i,
# j] should then be i − j. What does the matrix contain instead? When you fix the code, remember that a negative index
# raises no error, but counts from the end.
#
# </details>
# <details><summary>Hint 2: an example with two positions</summary>
#
# The labels (−3, −2, −1, 0, 1, 2, 3) have the indices 0 to 6. For t = 2 the matrix is ((0, −1), (1, 0)); these labels
# have the indices ((3, 2), (4, 3)). Now take the shorter table (−2, −1, 0, 1, 2). The matrix for t = 2 has the same
# labels; they now have the indices ((2, 1), (3, 2)). What changed, and what did not?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "relative_bias", "locked": false, "schema_version": 3, "solution": true, "task": false}
def relative_bias(table, t):
    """What to add to the scores so that they know about distances.

    table: (2·t_max − 1,), one number for each distance from −(t_max − 1) to t_max − 1.
    t: how many positions, at most t_max.
    Returns (t, t): entry [i, j] is the table's number for the distance i − j.
    """
    ### BEGIN SOLUTION
    t_max = (len(table) + 1) // 2
    positions = torch.arange(t, device=table.device)
    distances = positions.unsqueeze(1) - positions    # (t, t)
    return table[distances + t_max - 1]
    ### STUDENT GETS
    # places = torch.arange(t, device=table.device)
    # grid = places.reshape(1, -1) + places.reshape(-1, 1)    # (t, t)
    # return table[grid]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_relative_bias", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(relative_bias)

# %% [markdown]
# ## Rotate queries and keys, and only the distance counts
#
# A bias is the same for all words. The fourth method lets the effect of a distance depend on q and k: it **rotates**
# both, pair by pair, like the hands of the clock.
#
# Cut a vector of width d into d/2 pairs. At position p, turn pair m by the angle $p\,\omega_m$, with $\omega_m =
# 1/10000^{2m/d}$:
#
# $$\begin{bmatrix} x'_{2m} \\ x'_{2m+1} \end{bmatrix} \;=\;
# \begin{bmatrix} \cos p\,\omega_m & -\sin p\,\omega_m \\ \sin p\,\omega_m & \cos p\,\omega_m \end{bmatrix}
# \begin{bmatrix} x_{2m} \\ x_{2m+1} \end{bmatrix} .$$
#
# Write $R_p$ for the whole (d, d) matrix of these blocks. Turn a query q at position i and a key k at position j.
# Turn both back by j: their dot product stays the same, the key is unturned, and the query is turned by i − j:
#
# $$(R_i\, q) \cdot (R_j\, k) \;=\; (R_{\,i-j}\, q) \cdot k .$$
#
# This is **[rotary](../../site/glossary.md#rotary-positions)** encoding, or **RoPE** ([Su et al.,
# 2021](https://arxiv.org/abs/2104.09864)). It has no parameters, preserves lengths, and needs no table.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `rotate`** &nbsp; ★★★ · 15 minutes · 5 points
#
# Turn every vector by its position. The positions are an argument. They may start anywhere, come in any order and be
# large: later, a model will write one token at a time and keep the keys that it has already turned.
#
# <details><summary>Hint 1: angles, and pairs</summary>
#
# Compute the angles as in exercise 2, (t, d/2), but with the positions that you are given. `x[..., 0::2]` is the
# first component of every pair, `x[..., 1::2]` the second: (b, h, t, d/2) each, and (t, d/2) broadcasts to them.
#
# </details>
# <details><summary>Hint 2: an example with two pairs</summary>
#
# Let d = 4 and the vector at position 3 be (1, 0, 0, 2). Its pairs are (1, 0) and (0, 2), its angles 3 and 0.03.
#
# - The pair (1, 0) becomes (cos 3, sin 3) = (−0.99, 0.14).
# - The pair (0, 2) becomes (−2 sin 0.03, 2 cos 0.03) = (−0.06, 2.00).
#
# The turned vector is (−0.99, 0.14, −0.06, 2.00). At position 0 it stays (1, 0, 0, 2).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "rotate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rotate(x, positions):
    """Rotary encoding: turns each pair of components by an angle that grows with position.

    x: (b, h, t, d), queries or keys; d is even. positions: (t,), integers, on x's device.
    Returns (b, h, t, d): components 2m and 2m + 1 are turned together, from the first
    towards the second, by positions[i] / 10000^(2m/d).
    """
    ### BEGIN SOLUTION
    d = x.shape[-1]
    pairs = torch.arange(0, d, 2, device=x.device)              # (d/2,), the numbers 2m
    angles = positions.unsqueeze(1) / 10000 ** (pairs / d)      # (t, d/2)
    cos, sin = angles.cos(), angles.sin()
    first, second = x[..., 0::2], x[..., 1::2]                  # (b, h, t, d/2)
    turned = [first * cos - second * sin, first * sin + second * cos]
    return torch.stack(turned, dim=-1).flatten(-2)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_rotate", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(rotate)

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("rotary")

# %% [markdown]
# Put the same query and the same key at every position, and multiply each query by each key:

# %% mystnb={"image": {"alt": "Two heat maps of products of 8 queries and 8 keys. Left, not turned: all entries are equal. Right, turned: every diagonal holds a single number, largest on the main diagonal. The number just above the main diagonal differs from the number just below it."}}
torch.manual_seed(5)
q, k = torch.randn(2, 1, 1, 1, 16).to(device()).expand(2, 1, 1, 8, 16)    # (b, h, t, d)
positions = torch.arange(8, device=device())
plain = q @ k.mT                                                          # (b, h, t, t)
turned = rotate(q, positions) @ rotate(k, positions).mT
labels = {"row_label": "position i of the query", "column_label": "position j of the key"}
titles = ("q · k", "turned q · turned k")
plots.heat_pair(plain[0, 0], turned[0, 0], titles=titles, same_scale=True, **labels)
plt.show()

# %% [markdown]
# **After turning, the product depends on i − j alone**: each diagonal has one number. The diagonals just above and just
# below the main one differ, so *before* and *after* are told apart. Only queries and keys are turned, because only they
# are compared. Llama and Mistral use rotary encoding; many programs pair component m with m + d/2 instead ([lesson
# 18](../18_since_gpt2/18_since_gpt2.ipynb)).

# %% [markdown]
# ## Trained at length 16, tested at length 64
#
# The task is that of the head set by hand: at each position of a random sequence over eight letters, name **the
# letter two positions back**. A model has one unmasked attention layer, is trained on sequences of 16 and tested on
# sequences of 64. (The learned table has 64 rows, but training reaches only the first 16.) A model that has learned
# only *position 9 looks at position 7*, and so on, will fail at position 40. Is *two positions back* enough?

# %%
class TwoBack(nn.Module):
    """(b, t) letters in, (b, t, 8) logits for the letter two positions back out."""

    def __init__(self, method, e=64):
        super().__init__()
        self.method, self.letters = method, nn.Embedding(8, e)
        self.to_qkv, self.to_logits = nn.Linear(e, 3 * e), nn.Linear(e, 8)
        self.embed = PositionEmbedding(64, e) if method == "learned" else None
        self.table = nn.Parameter(torch.zeros(127)) if method == "relative bias" else None
        self.bias = relative_bias

    def forward(self, letters):
        x = self.letters(letters)    # (b, t, e)
        b, t, e = x.shape
        if self.method == "learned":
            x = self.embed(x)
        if self.method == "sinusoidal":
            x = x + sinusoidal_encoding(t, e, x.device)
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        if self.method == "rotary":
            positions = torch.arange(t, device=x.device)
            q, k = (rotate(part.unsqueeze(1), positions).squeeze(1) for part in (q, k))
        scores = q @ k.mT / math.sqrt(e)
        if self.table is not None:
            scores = scores + self.bias(self.table, t)
        return self.to_logits(torch.softmax(scores, dim=-1) @ v)

# %% tags=["hide-input"]
torch.set_num_threads(1)    # models as small as these are faster on one core than on two

def trained(method, seed):
    torch.manual_seed(seed)
    model = TwoBack(method).to(device())
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    for step in range(250):
        letters = torch.randint(8, (32, 16)).to(device())
        guesses, truth = model(letters)[:, 2:], letters[:, :-2]
        loss = F.cross_entropy(guesses.flatten(0, 1), truth.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model

@torch.no_grad()
def accuracy(model, t):
    """The accuracy at each position from 2 on: (t − 2,)."""
    generator = torch.Generator().manual_seed(1)
    letters = torch.randint(8, (400, t), generator=generator).to(device())
    return (model(letters)[:, 2:].argmax(-1) == letters[:, :-2]).float().mean(dim=0).cpu()

models = {}
for method in ("learned", "sinusoidal", "relative bias", "rotary"):
    models[method] = [trained(method, seed) for seed in range(3)]
    print(f"{method:>13}:", *(f"{accuracy(run, 16).mean():.2f}" for run in models[method]))

# %% [markdown]
# At length 16 all models are right nearly everywhere. Predict what happens at length 64. Chance is one in eight.

# %% [markdown]
# <div class="card">
#
# **Prediction · `sinusoids_beyond`** &nbsp; 1 minute · no points
#
# Averaged over positions 16 to 63, the accuracy of the **sinusoidal** model will be …
#
# - **A.** below 0.4: training asked only for the first 16 positions.
# - **B.** between 0.4 and 0.9: neighbouring positions have similar encodings, so the accuracy falls slowly.
# - **C.** above 0.9: the formula continues, and *two positions back* is one linear map for all positions.
# </div>

# %% nbgrader={"grade": false, "grade_id": "sinusoids_beyond", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
sinusoids_beyond = "A"
### STUDENT GETS
# sinusoids_beyond = ...    # "A", "B" or "C"
### END SOLUTION

# %% [markdown]
# Before the next prediction, look at what training made of the bias tables. The distances that the loss never reached
# are still at 0. We call them **new** (and later hide 14 and 15, too, to treat both sides alike).

# %% tags=["hide-input"]
for run, model in enumerate(models.get("relative bias", [])):    # distance 0 is entry 63
    numbers = [f"{k}: {model.table[63 + k].item():.2f}" for k in (1, 2, 3, 10, 16, 40)]
    print(f"relative bias, run {run + 1}: bias at distance", ", ".join(numbers))

# %% [markdown]
# <div class="card">
#
# **Prediction · `relative_beyond`** &nbsp; 1 minute · no points
#
# In a sequence of 64, the model with the **relative bias** will be right …
#
# - **A.** nearly always, everywhere: it knows distances only, and distance 2 has by far the largest bias.
# - **B.** nearly always up to position 15, and beyond it hardly more often than by chance: there it was not trained.
# - **C.** less than half of the time, from the first positions on: most letters are at new distances.
# </div>

# %% nbgrader={"grade": false, "grade_id": "relative_beyond", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
relative_beyond = "C"
### STUDENT GETS
# relative_beyond = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"] mystnb={"image": {"alt": "Accuracy against position in sequences of 64: a panel for each of four methods, each with three runs, trained on sequences of 16. Learned: all runs at 1 up to position 15, then near chance, one eighth, but for one spike at position 32. Sinusoidal: the same, but beyond position 15 the runs mostly vary between chance and nearly a half, and all have spikes near positions thirty-four and fifty-nine, the second higher. Relative bias: all runs near four tenths everywhere. Rotary: two runs at 1 everywhere; run 1 is near nine tenths, and drops to about three quarters at position twenty-seven."}}
figure, axes = plt.subplots(2, 2, figsize=(6, 4.8), sharex=True, sharey=True)
for ax, (method, runs) in zip(axes.flat, models.items()):
    reached = [accuracy(model, 64) for model in runs]
    lines = {f"run {k + 1}": (range(2, 64), y) for k, y in enumerate(reached)}
    plots.curves(lines, "position", "accuracy", title=method, ax=ax)
    ax.axvline(15.5, color="#555555", linewidth=1)
    ax.axhline(1 / 8, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
    ax.set(xlim=(0, 64), ylim=(0, 1.1), xticks=(0, 15, 30, 45, 60))
    ax.label_outer()
    if ax is not axes[0, 0]:
        ax.get_legend().remove()
    near, far = (" ".join(f"{part.mean():.2f}" for part in parts)
                 for parts in zip(*(y.split([14, 48]) for y in reached)))
    print(f"{method:>13}: {near} at positions 2 to 15, {far} at 16 to 63")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each curve is one model, tested on sequences of 64. The three runs of a method differ in their
# random seed. The positions left of the vertical line occurred in training; the dashed horizontal line is chance.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_sinusoids_beyond", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("sinusoids_beyond", sinusoids_beyond)

# %% nbgrader={"grade": true, "grade_id": "check_relative_beyond", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("relative_beyond", relative_beyond)

# %% [markdown]
# **Only rotary encoding works at length 64, and only in two runs of three.** To both relative methods, (9, 7) and
# (40, 38) are the same case: distance 2. That is not enough. **The new distances must also get little weight.**
#
# - **The relative bias has learned *two positions back* and still fails**, at the first positions as at the last. The
#   new distances are still at 0, above the wrong ones that training pushed down. Together they take most of the weight.
# - **With rotary encoding**, new distances get hardly any weight in runs 2 and 3. Run 1 gives some of them more, among
#   them 27.
# - **With absolute positions**, i and j themselves are new.
#
# [Measured further](../../site/further.md#lesson-6) shows the weights on new distances. If these are the cause, a
# different bias for them must help. Design it.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `longer_bias`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Make a bias for sequences **longer** than those in training, from a table that was trained on t_max positions.
# Trained distances keep their numbers. What the new ones get is up to you. It has to hold for any table, and for
# sequences up to eight times as long: where all scores are equal, the new distances of a row together get less than
# a thousandth of its weight. No entry may be +∞ or NaN. You may use `finished.relative_bias`.
#
# <details><summary>Hint 1: which distances are new</summary>
#
# A table for t_max positions has the distances from −(t_max − 1) to t_max − 1. A sequence of t positions has those
# from −(t − 1) to t − 1. How many are new on each side?
#
# </details>
# <details><summary>Hint 2: an example with three positions</summary>
#
# Let the table be (1, 4, 2), so t_max = 2, and t = 3. New are −2 and 2: the entries in two corners of the matrix. Row
# 0 is (4, 1, ?) and row 2 is (?, 2, 4). With 0 for the question mark, the weights of row 0 are 0.94, 0.05 and 0.02:
# the last is too large. With −5 they are 0.95, 0.05 and 0.0001. Would −5 still do for the table (−9, −6, −8)?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "longer_bias", "locked": false, "schema_version": 3, "solution": true, "task": false}
def longer_bias(table, t):
    """What to add to the scores of a sequence that is longer than any in training.

    table: (2·t_max − 1,), trained numbers for the distances from −(t_max − 1) to t_max − 1.
    t: how many positions, more than t_max.
    Returns (t, t): entry [i, j] is the table's number where it has one for i − j. The others
    are low enough to get next to no weight.
    """
    ### BEGIN SOLUTION
    new = table.new_full((t,), -torch.inf)    # more than there are on each side
    return finished.relative_bias(torch.cat([new, table, new]), t)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_longer_bias", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(longer_bias)

# %% [markdown]
# The next cell adds your bias to the scores of all twelve models, with no new training. Where a method has no bias, the
# trained distances get 0.

# %% tags=["hide-input"]
def with_your_bias(model):
    """A copy with your bias: distances −13 to 13 keep the one they had, or 0.

    The loss skips positions 0 and 1, so it reached distances −13 to 15. Both sides are
    treated alike.
    """
    model = copy.deepcopy(model)
    kept = torch.zeros(27, device=device()) if model.table is None else model.table[50:77]
    model.table, model.bias = nn.Parameter(kept.detach()), longer_bias
    return model

for method, runs in models.items():
    before, after = (" ".join(f"{accuracy(model, 64)[14:].mean():.2f}" for model in group)
                     for group in (runs, map(with_your_bias, runs)))
    print(f"{method:>13}, positions 16 to 63: {before} as trained, {after} with your bias")

# %% [markdown]
# **Hiding the new distances repairs the relative bias and the one rotary run that had failed, and neither absolute
# method.** The sinusoidal accuracy rises, to less than half. With absolute positions the distances are not the only
# cause: even in windows of 16 letters, where no distance is new, both methods make many errors [once the windows begin
# at later positions](../../site/further.md#lesson-6).
#
# The later rows of the learned table were never trained. With sinusoids, the same model with its weights set by hand is
# right at every position ([Measured further](../../site/further.md#lesson-6)). ***A model can represent this* and
# *training will find it* are two different claims.**
#
# Hiding also leaves fewer letters to share the weight, and that matters, too. If new distances are only lowered to the
# level of the wrong ones, [about a fifth of the answers](../../site/further.md#lesson-6) of the relative bias are still
# wrong.
#
# A published method, *ALiBi*, subtracts from each score the distance times a fixed number, a different one for each
# head. Its authors found that language models with rotary encoding get worse on texts longer than those in training
# ([Press et al., 2022](https://arxiv.org/abs/2108.12409), figure 1). Yours was one small task.

# %% [markdown]
# ## Your model so far
#
# Does the method also matter for real text, in windows no longer than those in training? So far, given code has told
# your models where each byte is. Now your `PositionEmbedding` replaces it.

# %%
from helpers.data.recorded import recorded
from helpers.ladder import E, H, T, ByteModel, Ladder
from helpers.parts.masks import CausalSelfAttention

ladder = Ladder(check)
positions_class = ladder.own(PositionEmbedding)
torch.manual_seed(0)
ladder.climb(ByteModel(CausalSelfAttention(E, H), positions_class(T, E)), samples=False)

# %% [markdown]
# Our runs also try the same model without positions, and with each of the other three methods.

# %% tags=["hide-input"]
bits = recorded("ladder")["result"]["bits"]
rows = {
    "no positions": "06 without positions",
    "sinusoidal": "06 sinusoids",
    "relative bias": "06 relative bias",
    "rotary": "06 rotary",
    "learned": "06_positions",
}
print("held-out bits per byte, three runs of ours")
for row, key in rows.items():
    print(f"{row:<13}", " ".join(f"{run:.2f}" for run in bits[key]))

# %% [markdown]
# **Positions matter; which of the four methods it is matters much less.** Learned positions save 0.6 [bits per
# byte](../../site/glossary.md#bits-per-byte). Sinusoids are a tenth of a bit behind, and the other three are nearly
# equal. (With one head instead of four, positions [save much less](../../site/further.md#lesson-6).)

# %% [markdown]
# ## What you can do now
#
# **Trained on short sequences, which of the four methods still works in longer ones?** In your test only rotary
# encoding, and only in two runs of three. Two things decided:
#
# - **Scores that depend on the distance alone.** Both relative methods have them by construction. Sinusoids allow them,
#   as the head set by hand shows, but training did not find them. With the new distances hidden, sinusoids stayed below
#   half, and learned vectors below a fifth.
# - **Little weight for new distances.** Hiding them raised the relative bias from about 0.40 to 0.98, and the failed
#   rotary run from 0.80 to 1.00.
#
# Within the trained length, the choice of method mattered little. Before you rely on one in longer sequences, test it
# there.
#
# **Two questions to think about**
#
# <details><summary>1. Does a stack of causal attention layers, as in lesson 5, need positions at all?</summary>
#
# A single causal layer does not see the order of what came before: *dog bites* and *bites dog* look the same to the
# next word. But position i averages over i + 1 vectors, so its output can carry a trace of i for the next layer.
# Causal language models without any position encoding can be trained, and are only somewhat worse than others ([Haviv
# et al., 2022](https://arxiv.org/abs/2203.16634)).
#
# </details>
# <details><summary>2. Rotary attention turns queries and keys. What would turning the values do?</summary>
#
# Output i would be $\sum_j w_{ij} R_j v_j$, which depends on the absolute positions j again. Turn it back by its own
# position, and only distances are left: $R_i^\top \sum_j w_{ij} R_j v_j = \sum_j w_{ij} R_{i-j}^\top v_j$.
#
# </details>
#
# **Further reading**
#
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.5, and table
#   3, row (E), where learned and sinusoidal encodings score nearly the same.
# - [Shaw et al., 2018](https://arxiv.org/abs/1803.02155): relative positions, where all distances beyond a limit share
#   a learned vector.
# - [Su et al., *RoFormer*, 2021](https://arxiv.org/abs/2104.09864), section 3: rotary encoding.
#
# Attention with positions is nearly a transformer. Only a small network, two shortcuts and normalisation are missing.
#
# **Next:** [lesson 7, *The transformer block*](../07_transformer_block/07_transformer_block.ipynb)
