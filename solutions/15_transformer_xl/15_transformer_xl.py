# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 15 · Transformer-XL
#
# *Remember the last segment*
#
# *I have a cat.* | *It does not eat fish.* The model of [lesson
# 9](../09_character_generator/09_character_generator.ipynb) reads a text in windows, and at each border it forgets
# everything: in the second window nothing says what *it* is. In this lesson a transformer keeps what it computed for
# the window before, and looks back at it.
#
# [Transformer-XL](https://arxiv.org/abs/1901.02860) (Dai et al., 2019) combines two ideas for that: a memory without a
# gradient, and positions that say how far apart two tokens are instead of where they are. You write both, measure how
# far back the model can see, give it a task that needs its memory, and find out what the memory gains on real text, in
# bits and in seconds.
#
# | | |
# |---|---|
# | **You will build** | streams of segments, a memory, relative attention with its shift, the whole model, and a fair measurement in one pass; and you fix a memory |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb), [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb) and [9](../09_character_generator/09_character_generator.ipynb) |
# | **It takes** | about 120 minutes: eight exercises, 29 points, and two predictions |
# | **It computes** | for about a minute in one cell, which you may stop; seconds everywhere else |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions of a segment, e width, h heads,
# d = e/h, n size of the vocabulary. m is the length of the memory, and s = m + t is the number of positions that can be
# looked at. Parts whose names begin with `finished_` are for the exercises that build on them.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import time

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.device import device
from helpers.lesson import start
from helpers.parts.blocks import LayerNorm
from helpers.parts.generator import bits_per_byte, sliding_window_bits
from helpers.parts.multi_head import merge_heads, split_heads
from helpers.parts.positions import sinusoidal_encoding
from helpers.parts.transformer_xl import TransformerXLBlock
from helpers.parts.transformer_xl import extend_memory as finished_memory
from helpers.parts.transformer_xl import relative_scores as finished_scores
from helpers.parts.transformer_xl import relative_shift as finished_shift
from helpers.progress import progress

check = start("15_transformer_xl")

# %% [markdown]
# ## Three complaints about windows
#
# The text of this lesson is program code, the source of Python's own standard library. In code, a name from line 3 may
# be used in line 300: much farther away than a window of 64 bytes. One module in twenty is [held
# out](../../site/glossary.md#held-out-data).

# %%
modules = stdlib_sources()
texts = {"train": [], "held out": []}
for name, text in modules.items():
    texts["held out" if is_held_out(name) else "train"].append(text.encode())
train, held_out = (
    torch.frombuffer(bytearray(b"".join(texts[part])), dtype=torch.uint8) for part in texts
)
print(f"{len(modules)} modules: {len(train):,} bytes to train on, "
      f"{len(held_out):,} held out")

# %% [markdown]
# Lesson 9's model (in the literature: [Al-Rfou et al., 2018](https://arxiv.org/abs/1808.04444)) cuts such a text into
# **segments** of t bytes, and reads each one separately:
#
# 1. **The context ends where the segment begins.** No output can depend on a byte more than t − 1 positions back.
# 2. **Context fragmentation.** Borders may fall anywhere, even in the middle of a word. The first bytes of each segment
#    are predicted from almost nothing, in training and afterwards.
# 3. **A fair evaluation is slow.** To give each byte a full context, lesson 9 moved the window by one byte at a time
#    and computed t positions to use one. For N bytes that is t + t(N − 1 − t) positions, nearly t times as many as
#    there are bytes.

# %% tags=["nbval-check-output"]
t = 64
for N in (1_000, 100_000):
    sliding = t + t * (N - 1 - t)
    print(f"{N:>7,} bytes: {sliding:>9,} positions with a sliding window, "
          f"{N - 1:>6,} without, {sliding / (N - 1):.0f} times as many")

# %% [markdown]
# ## Streams
#
# To remember the segment before it *in the text*, a segment has to be read right after that one. Lesson 9 drew its
# slices at random, so a memory would come from some other place. Here the text is laid out as b **streams**: row number
# `row` of each batch continues row `row` of the batch before.
#
# | | batch 0 | batch 1 | batch 2 |
# |---|---|---|---|
# | row 0 | bytes 0 to t − 1 | t to 2t − 1 | 2t to 3t − 1 |
# | row 1 | bytes kt to kt + t − 1 | kt + t … | kt + 2t … |
#
# Here $k = \lfloor (N-1)/(bt) \rfloor$ is the number of batches, and each stream has k·t bytes. The target of each byte
# is the next byte, even if that belongs to another segment.
#
# **What every check asks.** In exercises 3 to 6, new tensors are created on the device of the inputs, inputs stay
# unchanged, and gradients must flow to the inputs and to a module's parameters.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `segments`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Lay a text of bytes (uint8) out as b streams and cut these into segments: input `[j, row, i]` is byte `(row·k + j)·t +
# i`, and its target is the byte after it. Leave out the bytes at the end that do not fill a segment in every stream.
# Each stream gets one segment at least.
#
# <details><summary>Hint 1: the streams first</summary>
#
# Take the first b·k·t bytes as a table (b, k·t): each row is a stream. The last byte has no successor, so it can be a
# target but not an input; that explains the −1 in k.
#
# </details>
# <details><summary>Hint 2: thirteen bytes by hand</summary>
#
# Bytes 0 to 12, b = 2 and t = 2: k is 3, and the streams are 0 to 5 and 6 to 11. Batch 0 is [[0, 1], [6, 7]], batch 1
# [[2, 3], [8, 9]]. The targets of batch 0 are [[1, 2], [7, 8]].
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "segments", "locked": false, "schema_version": 3, "solution": true, "task": false}
def segments(data, b, t):
    """A text as b streams, cut into segments: batch j + 1 continues batch j, row by row.

    data: (length,), bytes.
    Returns inputs and targets, both (k, b, t), int64, k = (length − 1) // (b·t).
    """
    ### BEGIN SOLUTION
    k = (len(data) - 1) // (b * t)
    inputs, targets = data[:b * k * t], data[1:b * k * t + 1]
    inputs = inputs.long().view(b, k, t).transpose(0, 1)
    targets = targets.long().view(b, k, t).transpose(0, 1)
    return inputs, targets
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_segments", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(segments)

# %%
def show(ids):
    """A row of bytes as text, ¶ for the end of a line, a dot for what is not printable."""
    ids = [int(i) for i in ids]
    return "".join("¶" if i == 10 else chr(i) if 32 <= i < 127 else "·" for i in ids)

inputs, targets = segments(train, 16, t)
print("inputs:", tuple(inputs.shape))
for row in (0, 7):
    for batch in (20, 21):
        print(f"batch {batch}, row {row}: {show(inputs[batch, row])}")

# %% [markdown]
# Read two lines of the same row as one: the second continues where the first ends.

# %% [markdown]
# ## A memory
#
# What does a block need in order to look back at the last segment? It does not need the bytes. It needs its own
# **inputs** there, from which it can compute keys and values as it does for the present segment. So each block keeps
# its input vectors. With $h^{n-1}$ for the input of block $n$ and $\tau$ for the segment ([Dai et
# al.](https://arxiv.org/abs/1901.02860), section 3.2):
#
# $$\tilde h^{\,n-1}_{\tau+1} = \big[\,\mathrm{SG}(h^{n-1}_{\tau}) \circ h^{n-1}_{\tau+1}\,\big], \qquad
# q = h^{n-1}_{\tau+1} W_q^\top, \quad
# k = \tilde h^{\,n-1}_{\tau+1} W_k^\top, \quad v = \tilde h^{\,n-1}_{\tau+1} W_v^\top .$$
#
# The circle joins the two along the positions: a memory (b, m, e) and a segment (b, t, e) make (b, s, e), s = m + t.
# Each W is (d, e), for one head, as in the paper and in `nn.Linear`: the transpose of [lesson
# 2's](../02_queries_keys_values/02_queries_keys_values.ipynb) (e, d). Only the segment has queries, so there are t
# outputs.
#
# SG means **stop gradient**, in PyTorch `detach`: the states are used across the border, but the backward pass ends
# there. Otherwise each backward pass would have to go through the whole text. This is **segment-level recurrence**:
# like a recurrent network, but a segment at a time, and each block reads the memory of the layer *below*.

# %%
plots.diagrams.segment_memory()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each arrow points from a position to one that looks at it; not all are drawn. The red output looks
# at three positions of its own segment and three of the memory. Those have looked back too. So the red output can
# depend on all coloured bytes, but not on the white ones.
#
# </div>
#
# The memory need not be one segment long. After each segment, the new states are appended and the newest m are kept.
# The function below has the bug of a published program for reinforcement learning with Transformer-XL. It runs, and a
# model that uses it trains. But its memory does nothing.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `extend_memory`** &nbsp; fix · ★★☆ · 5 minutes · 3 points
#
# Find the bug and fix it. After a segment, append the segment to the memory and keep the newest m positions, or all if
# there are fewer. No gradient flows through the memory, which may share its storage with x. m = 0 gives a memory (b, 0,
# e). Do not call `finished_memory`.
#
# <details><summary>Hint 1: follow it from the beginning</summary>
#
# Call it yourself: first without a memory, with a segment of 4 positions and m = 6; then with the result and the next
# segment. How long should the memory be each time, and how long is it?
#
# </details>
# <details><summary>Hint 2: two segments by hand</summary>
#
# With m = 6 and segments of 4 positions, the memory holds 4 positions after the first segment, and 6 of 8 after the
# second. Which `length` does the cell compute in each case?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "extend_memory", "locked": false, "schema_version": 3, "solution": true, "task": false}
def extend_memory(memory, x, m):
    """The memory after a segment.

    memory: (b, m', e), or None at the beginning. x: (b, t, e), what came into the block.
    Returns (b, min(m' + t, m), e), the newest last, detached.
    """
    if memory is None:
        memory = x[:, :0]                       # nothing yet: (b, 0, e)
    both = torch.cat([memory, x], dim=1)        # (b, m' + t, e)
    ### BEGIN SOLUTION
    length = min(both.shape[1], m)
    ### STUDENT GETS
    # length = min(memory.shape[1], m)
    ### END SOLUTION
    return both[:, both.shape[1] - length:].detach()

# %% nbgrader={"grade": true, "grade_id": "check_extend_memory", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(extend_memory)

# %% [markdown]
# The length was taken from the old memory, which is empty at first, so it stayed at min(0, m) = 0 for ever. That
# program's own solution was to begin with zeros of a fixed length, which the attention may look at as if they were a
# past ([issue 7 of the repository](https://github.com/dhruvramani/Transformers-RL/issues/7) is about its memory). A
# softmax gives weight to zeros too. A memory that starts as `None` and grows needs no such trick.

# %% [markdown]
# ## Why the old positions break
#
# In lesson 9's model, positions come from a vector added to each token: $U_3$ for position 3. With a memory there are
# two positions 3, one in this segment and one in the segment before, and both have the same vector. Put the same byte
# at both:

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(0)
byte, U = torch.randn(12, generator=generator), torch.randn(8, 12, generator=generator)
to_key, q = torch.randn(12, 12, generator=generator), torch.randn(12, generator=generator)

key_before = to_key @ (byte + U[3])    # position 3 of the last segment
key_now = to_key @ (byte + U[3])       # position 3 of this one
print("the two scores are the same number:", torch.equal(q @ key_before, q @ key_now))

# %% [markdown]
# No query can distinguish the two. Continuing the count, 8, 9, 10, … does not help: the positions would grow without
# end, and the vectors of later ones were never trained. What a query needs is the **distance** i − j, and distances
# stay small. The biases and the rotary positions of [lesson 6](../06_positions/06_positions.ipynb) use only distances,
# too. [Shaw et al. (2018)](https://arxiv.org/abs/1803.02155) had trained vectors for distances before; Transformer-XL
# does it differently.

# %% [markdown]
# ## Four terms
#
# Start from what absolute positions compute, a query at i and a key at j, and multiply out. As in the paper, the
# token's vector $E_i$ and the position's $U_i$ are columns here, (e,), so that a query is $W_q (E_i + U_i)$, (d,):
#
# $$(E_i + U_i)^\top W_q^\top W_k\, (E_j + U_j) =
# \underbrace{E_i^\top W_q^\top W_k E_j}_{(a)} + \underbrace{E_i^\top W_q^\top W_k U_j}_{(b)} +
# \underbrace{U_i^\top W_q^\top W_k E_j}_{(c)} + \underbrace{U_i^\top W_q^\top W_k U_j}_{(d)} .$$
#
# The terms compare content with content, content with position, position with content, and position with position. Now
# make three changes ([Dai et al.](https://arxiv.org/abs/1901.02860), section 3.3):
#
# - $U_j$ becomes $R_{i-j}$ in (b) and (d): the sinusoid of the **distance**, (e,). Nothing in R is learned.
# - The query's own position must not matter, so $U_i^\top W_q^\top$ becomes one learned vector, the same for all i:
#   $u^\top$ in (c) and $v^\top$ in (d), both (d,).
# - Keys for content and keys for position get separate matrices, $W_{k,E}$ and $W_{k,R}$, both (d, e).
#
# $$A^{\mathrm{rel}}_{ij} = \underbrace{E_i^\top W_q^\top W_{k,E} E_j}_{(a)} +
# \underbrace{E_i^\top W_q^\top W_{k,R} R_{i-j}}_{(b)} + \underbrace{u^\top W_{k,E} E_j}_{(c)} +
# \underbrace{v^\top W_{k,R} R_{i-j}}_{(d)} .$$
#
# In a program $W_q E_i$ is the query q, $W_{k,E} E_j$ the key k, $W_{k,R} R_{i-j}$ a vector r for each distance. Two
# products compute all four terms: (a) and (c) are **(q + u) · k**, (b) and (d) are **(q + v) · r**.

# %% [markdown]
# ## The relative shift
#
# There is one problem. Count the keys from the oldest of the memory. Then query i and key j are i + m − j apart, and
# (b) and (d) need the r of that distance: a vector for each of t·s *pairs*. But there are only s different distances, s
# − 1 to 0.
#
# So multiply each query by those s vectors, from far to near: a matrix (t, s) with one column for each **distance**. It
# contains all the numbers we need, but in the wrong columns: the last query's row is right, the row before it must move
# left by one, the first by t − 1.
#
# Row by row, that would be a loop. The paper's appendix B asks for just these left shifts; the authors' program makes
# them all at once, by padding and a change of shape:

# %%
plots.diagrams.shift_steps()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** "1:2" is the score of query 1 at distance 2; here t = 3 and s = 4. The padded rows are one number
# too long. Read them in rows of t, drop the first row, and read the rest in rows of s: every row has moved left by its
# own amount, and each column belongs to one key. Negative distances, the future, become 0.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `relative_shift`** &nbsp; ★★☆ · 9 minutes · 3 points
#
# Turn a matrix with a column for each distance into one with a column for each key, with any number of axes in front.
# Entry [i, j] of the result is row i's entry for the distance i + (s − t) − j, or 0 if that is negative. Do not call
# `finished_shift`, `finished_scores` or `TransformerXLBlock`.
#
# <details><summary>Hint 1: the four panels</summary>
#
# `F.pad(x, (1, 0))` puts a column of zeros in front. `reshape` reads the same numbers, in the same order, in rows of
# another length; how many rows of length t are there? `*x.shape[:-2]` are the axes in front.
#
# </details>
# <details><summary>Hint 2: two rows by hand</summary>
#
# Let t = 2, s = 3 and the rows be a b c and d e f. Padded: 0 a b c and 0 d e f. In rows of 2: 0 a, b c, 0 d, e f.
# Without the first of these, in rows of 3: b c 0 and d e f. `tril(diagonal)` clears what is right of a diagonal: which
# one?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "relative_shift", "locked": false, "schema_version": 3, "solution": true, "task": false}
def relative_shift(x):
    """From one column a distance to one column a key.

    x: (..., t, s), s ≥ t; column c belongs to the distance s − 1 − c.
    Returns (..., t, s): entry [i, j] is row i's for the distance i + (s − t) − j,
    and 0 where j lies in the future.
    """
    ### BEGIN SOLUTION
    t, s = x.shape[-2:]
    padded = F.pad(x, (1, 0))                                # (..., t, s + 1)
    reread = padded.reshape(*x.shape[:-2], s + 1, t)
    shifted = reread[..., 1:, :].reshape(x.shape)
    return shifted.tril(s - t)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_relative_shift", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(relative_shift)

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `relative_scores`** &nbsp; ★★★ · 8 minutes · 4 points
#
# Return the sum of the four terms, divided by √d. You may use `finished_shift` (exercise 3), but not `finished_scores`
# or `TransformerXLBlock`. Entries for keys in the future are masked later, so they may be anything.
#
# <details><summary>Hint 1: two products</summary>
#
# The product with the keys has the right columns; the product with the distances has to be shifted. Divide all four
# terms by the root of one head's width.
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# With one query, one key and d = 1, let q = 2, k = 3, r = 5, u = 1 and v = −1: the score is 2·3 + 2·5 + 1·3 − 1·5 = 14.
# q is (b, h, t, d) and u is (h, d). Where does u need an axis of length 1? `.mT` transposes the last two axes.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "relative_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def relative_scores(q, k, r, u, v):
    """Scores of content and distance.

    q: (b, h, t, d). k: (b, h, s, d). r: (h, s, d), for the distances s − 1 to 0.
    u, v: (h, d). Returns (b, h, t, s), over √d, not masked.
    """
    ### BEGIN SOLUTION
    by_content = (q + u.unsqueeze(1)) @ k.mT      # (a) and (c)
    by_distance = (q + v.unsqueeze(1)) @ r.mT     # (b) and (d), one column a distance
    scores = by_content + finished_shift(by_distance)
    return scores / math.sqrt(q.shape[-1])
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_relative_scores", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(relative_scores)

# %% [markdown]
# The same function computes each term by itself, with zeros for the inputs of the others. Six queries look at a memory
# of four and at themselves:

# %% tags=["nbval-check-output"]
generator = torch.Generator().manual_seed(3)
q, k = (torch.randn(1, 1, size, 8, generator=generator) for size in (6, 10))
u, v = (torch.randn(1, 8, generator=generator) for _ in range(2))
r = (sinusoidal_encoding(10, 8).flip(0) @ torch.randn(8, 8, generator=generator))[None]
none = torch.zeros(1)
terms = {
    "(a)": relative_scores(q, k, 0 * r, 0 * u, 0 * v),
    "(b)": relative_scores(q, 0 * k, r, 0 * u, 0 * v),
    "(c)": relative_scores(0 * q, k, 0 * r, u, 0 * v),
    "(d)": relative_scores(0 * q, 0 * k, r, 0 * u, v),
}
total = relative_scores(q, k, r, u, v)
past = torch.ones(6, 10, dtype=torch.bool).tril(4)
apart = (sum(terms.values()) - total)[..., past].abs().max().item()
print("the four add up to the scores:", apart < 1e-5)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Five heat maps of 6 queries by 10 keys, the future hatched. Term a, content and content: no pattern. Term b, content and position: each row has its own smooth stripe. Term c: every row is the same, each column has one colour. Term d: every diagonal has one colour. The fifth is their sum."}}
figure, axes = plt.subplots(5, 1, figsize=(4.2, 9.6), layout="compressed")
for ax, (name, term) in zip(axes, {**terms, "their sum": total}.items()):
    plots.heat(term[0, 0].masked_fill(~past, 0), title=name, ax=ax, signed=True,
               annotate=False, blank_zeros=True)
    ax.set(xlabel="key j" if name == "their sum" else "", ylabel="query i")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Blue is positive, orange negative; the future is hatched, and the first four columns are memory.
# (c) has the same row for all queries: some content is important for every query. (d) is the same along each diagonal:
# some distances are important, whatever the content. (a) and (b) depend on the query.
#
# </div>

# %% [markdown]
# ## The layer
#
# What remains is familiar: heads, a mask, a softmax, a mixing layer. Two things are new. The mask has t rows and s
# columns: query i sees the whole memory and the segment up to itself, that is j ≤ i + (s − t). (PyTorch's
# `is_causal=True` draws its triangle from the upper left corner, and would let query 0 see only the oldest key.) And
# the distances have their own projection.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `RelativeAttention`** &nbsp; ★★★ · 11 minutes · 5 points
#
# Causal self-attention with a memory. It has four linear layers without a bias, `to_queries`, `to_keys`, `to_values`
# and `to_positions`, and `unify` with one, all from e to e; and two parameters `u` and `v`, (h, d), which start at
# zero. Use `finished_scores`, `split_heads`, `merge_heads` and `sinusoidal_encoding`, and neither `TransformerXLBlock`
# nor `nn.MultiheadAttention`. The memory may be empty. It needs no gradient, so you may detach it.
#
# <details><summary>Hint 1: what is made from what</summary>
#
# Queries are made from the segment; keys and values from memory and segment, the memory first. `sinusoidal_encoding(s,
# e)` has a row for each distance from 0 to s − 1. Which order do the scores need?
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# `split_heads(x, h)` takes (b, t, e); give it the positions as a batch of one, and remove that axis again. With t = 2
# and s = 5, query 0 sees keys 0 to 3 and query 1 sees all five: which diagonal is that for `tril`?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "RelativeAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class RelativeAttention(nn.Module):
    """Causal attention of a segment to a memory and to itself."""

    def __init__(self, e, h):
        super().__init__()
        self.h = h
        ### BEGIN SOLUTION
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.to_positions = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e)
        self.u = nn.Parameter(torch.zeros(h, e // h))
        self.v = nn.Parameter(torch.zeros(h, e // h))
        ### END SOLUTION

    def forward(self, x, memory=None):
        """x: (b, t, e). memory: (b, m, e), the text before, or None. Returns (b, t, e)."""
        ### BEGIN SOLUTION
        both = x if memory is None else torch.cat([memory, x], dim=1)       # (b, s, e)
        t, s, e = x.shape[1], both.shape[1], x.shape[2]
        q = split_heads(self.to_queries(x), self.h)                         # (b, h, t, d)
        k = split_heads(self.to_keys(both), self.h)                         # (b, h, s, d)
        values = split_heads(self.to_values(both), self.h)
        far_to_near = sinusoidal_encoding(s, e).flip(0).to(x)               # (s, e)
        r = split_heads(self.to_positions(far_to_near)[None], self.h)[0]    # (h, s, d)
        past = torch.ones(t, s, dtype=torch.bool, device=x.device).tril(s - t)
        scores = finished_scores(q, k, r, self.u, self.v).masked_fill(~past, -math.inf)
        return self.unify(merge_heads(torch.softmax(scores, dim=-1) @ values))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_RelativeAttention", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(RelativeAttention)

# %% [markdown]
# Does a memory replace the text that it came from? For one layer it should, exactly: the outputs at positions 5 to 8,
# with 0 to 4 as memory, are those of all nine at once.

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
layer, x = RelativeAttention(12, 3).to(device()), torch.randn(2, 9, 12).to(device())
at_once = layer(x)[:, 5:]
remembered = layer(x[:, 5:], memory=x[:, :5])
print("the same with a memory as at once:", torch.allclose(at_once, remembered, atol=1e-5))

# %% [markdown]
# ## The model
#
# A block is that of [lesson 7](../07_transformer_block/07_transformer_block.ipynb), pre-norm, with this attention:
# `TransformerXLBlock(e, h)`, called with x and a memory or None. One step is easily forgotten. The memory holds the
# block's inputs **before the norm**, and the block normalises them, by the same layer as the segment, before its
# attention looks at them. Otherwise keys of the past would be made from unnormalised vectors. The published program of
# exercise 2 forgets it, and raises no error.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `TransformerXL`** &nbsp; ★★★ · 9 minutes · 4 points
#
# Write the whole model. Its parts are `tokens`, an `nn.Embedding`; `blocks`, an `nn.ModuleList` of
# `TransformerXLBlock(e, h)`; `norm`, a `LayerNorm(e)`; `to_logits`, an `nn.Linear`. No positions are added. Besides the
# logits it returns a memory for each block, made by `finished_memory` (exercise 2) from the block's **input**. With m =
# 0 the list still has a memory for each block, with no positions.
#
# <details><summary>Hint 1: one block at a time</summary>
#
# Before the block runs, x is its input. The new memory is made from this x and the block's old memory; the block itself
# gets the old one, which is None at the beginning of a text.
#
# </details>
# <details><summary>Hint 2: two segments by hand</summary>
#
# Take two blocks, segments of 3 and m = 4. After the first segment, the memory of block 0 holds the 3 embedded tokens,
# and that of block 1 the 3 outputs of block 0. After the second, each holds the newest 4 of 6.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "TransformerXL", "locked": false, "schema_version": 3, "solution": true, "task": false}
class TransformerXL(nn.Module):
    """Predicts at every position what comes next, from the segment and a memory."""

    def __init__(self, n, e, h, depth):
        super().__init__()
        ### BEGIN SOLUTION
        self.tokens = nn.Embedding(n, e)
        self.blocks = nn.ModuleList([TransformerXLBlock(e, h) for _ in range(depth)])
        self.norm = LayerNorm(e)
        self.to_logits = nn.Linear(e, n)
        ### END SOLUTION

    def forward(self, ids, memory=None, m=0):
        """ids: (b, t). memory: a list, one (b, ≤ m, e) for each block, or None.

        m: how much to keep. Returns logits (b, t, n), and the memory for the next segment.
        """
        ### BEGIN SOLUTION
        x = self.tokens(ids)    # (b, t, e)
        following = []
        for place, block in enumerate(self.blocks):
            past = None if memory is None else memory[place]
            following.append(finished_memory(past, x, m))
            x = block(x, past)
        return self.to_logits(self.norm(x)), following
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_TransformerXL", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(TransformerXL)

# %% [markdown]
# ## How far back?
#
# A block looks back m positions before the beginning of the segment. The states there were computed when *that* segment
# was read, with a memory of m positions too. Count for the last position of a segment, far inside a text:
#
# - With one block, it sees the t − 1 positions before it, and m more.
# - A second block reads a memory of the first one's outputs. The oldest of them are in the segment ⌈m/t⌉ segments ago.
#   That segment begins t·⌈m/t⌉ positions before the present one, and had a memory of m: so each further block adds
#   t·⌈m/t⌉. (Even if the memory begins in the middle of a segment, its oldest state has seen all that this segment's
#   own memory held.)
#
# The diagram above has t = m = 3 and two blocks. With m = t the reach is t − 1 + depth·t: it grows with depth times
# length, the paper's O(N·L) (N layers, segments of length L).

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `reach`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# On how many *earlier* positions can the last position of a segment depend, far inside a text? Return a whole number,
# for any t ≥ 1, m ≥ 0 and depth ≥ 1; a float such as 8.0 is fine.
#
# <details><summary>Hint 1: check it on the diagram</summary>
#
# With t = m = 3 and depth 2, one of the nine coloured bytes is the position's own, so the answer is 8. With m = 0 it is
# t − 1, whatever the depth.
#
# </details>
# <details><summary>Hint 2: a part of a segment</summary>
#
# Take t = 4, m = 6, depth 2. The upper block remembers 6 positions. The oldest of them is in the segment that begins 8
# positions before this one, and that segment looks back 6 further: 3 + 8 + 6 = 17. `-(-m // t)` rounds up.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "reach", "locked": false, "schema_version": 3, "solution": true, "task": false}
def reach(t, m, depth):
    """How many earlier positions the last position of a segment can depend on.

    t: positions of a segment. m: length of each block's memory. depth: blocks.
    """
    ### BEGIN SOLUTION
    first_block = t - 1 + m
    each_further = t * math.ceil(m / t)
    return first_block + (depth - 1) * each_further
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_reach", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(reach)

# %% [markdown]
# A formula is a claim, and lesson 5 has two instruments to test it: the gradient, and a changed input.

# %% [markdown]
# <div class="card">
#
# **Prediction · `gradient_across`** &nbsp; 1 minute · no points
#
# The model of the diagram, two blocks, t = m = 3, has read four segments. How large is the gradient of its very last
# output with respect to the embedding of the **first byte of segment 1**, the farthest of the coloured bytes?
#
# - **A.** As large as for a byte of its own segment.
# - **B.** Small, because it has passed through two blocks, but not zero.
# - **C.** Exactly 0.
# </div>

# %% nbgrader={"grade": false, "grade_id": "gradient_across", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
gradient_across = "C"
### STUDENT GETS
# gradient_across = ...    # "A", "B" or "C"
### END SOLUTION

# %%
def read(model, ids, t, m):
    """Logits (b, length, n) of a text that is read segment by segment."""
    memory, logits = None, []
    for segment in ids.split(t, dim=1):
        part, memory = model(segment, memory, m)
        logits.append(part)
    return torch.cat(logits, dim=1)

def slopes_and_changes(model, ids, t, m):
    """Output i by input j, (length, length): largest slope; did another byte change it?"""
    length, kept = ids.shape[1], []
    hook = model.tokens.register_forward_hook(lambda layer, given, x: kept.append(x))
    logits = read(model, ids, t, m)
    hook.remove()
    slopes = torch.zeros(length, length)
    for i in range(length):
        found = torch.autograd.grad(logits[0, i].square().sum(), kept, retain_graph=True,
                                    allow_unused=True)
        found = [torch.zeros_like(x) if g is None else g for x, g in zip(kept, found)]
        slopes[i] = torch.cat(found, dim=1)[0].abs().amax(dim=-1)
    changes = torch.zeros(length, length, dtype=torch.bool)
    with torch.no_grad():
        for j in range(length):
            other = ids.clone()
            other[0, j] = (ids[0, j] + 1) % 16
            changes[:, j] = (read(model, other, t, m) != logits).any(dim=-1)[0]
    return slopes, changes

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two maps of 12 outputs by 12 inputs, with lines at the borders of four segments of three. Left, slopes: a small triangle on the diagonal for each segment, everything else hatched, exactly zero. Right, changes: the lower triangle is filled, except the lower left corner of three by three: the first segment's bytes and the last segment's outputs."}}
torch.manual_seed(0)
model = TransformerXL(16, 12, 3, depth=2).double()
ids = torch.arange(12)[None]
slopes, changes = slopes_and_changes(model, ids, t=3, m=3)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.3), layout="compressed")
plots.heat(slopes, title="slope", ax=axes[0], blank_zeros=True, annotate=False)
plots.mask_row([changes], titles=["changed"], axes=[axes[1]])
for ax in axes:
    ax.set(xlabel="input j", ylabel="output i" if ax is axes[0] else "")
    for border in (2.5, 5.5, 8.5):
        ax.axhline(border, color="black", linewidth=1)
        ax.axvline(border, color="black", linewidth=1)
plt.show()
print("slope of the last output by input 3:", slopes[-1, 3].item())
print("another byte at input 3 changes the last output:", changes[-1, 3].item())

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i, column j; lines mark the borders of segments. Left: how fast output i changes with input j,
# by autograd; hatched is exactly zero. Right, filled: another byte at j changed output i. No gradient passes through
# the memory. The outputs do depend on it, but the last three do not depend on the first three bytes, which are out of
# reach.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_gradient_across", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("gradient_across", gradient_across)

# %% [markdown]
# So the backward pass ends at the border, as it did without a memory; only *states* cross. No gradient asks for states
# that are useful later: they come about only because the same weights compute the present states. Now test the
# formula with the second instrument, in texts that are long enough:

# %% tags=["nbval-check-output"]
def measured_reach(t, m, depth):
    torch.manual_seed(0)
    model = TransformerXL(16, 12, 3, depth).double()
    length = t * math.ceil((reach(t, m, depth) + 3) / t)
    ids = torch.randint(16, (1, length), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        last = read(model, ids, t, m)[0, -1]
        for j in range(length):
            other = ids.clone()
            other[0, j] = (ids[0, j] + 1) % 16
            if (read(model, other, t, m)[0, -1] != last).any():
                return length - 1 - j

for t_, m_, depth in [(4, 0, 2), (4, 4, 1), (4, 4, 2), (4, 3, 2), (4, 6, 2), (3, 3, 3)]:
    print(f"t = {t_}, m = {m_}, depth {depth}: measured {measured_reach(t_, m_, depth):>2}, "
          f"formula {reach(t_, m_, depth):>2}")

# %% [markdown]
# ## One pass
#
# With a memory no byte has to be read twice. Read the text segment by segment and carry the memory along: after the
# beginning, each byte has at least m bytes of context. The third complaint is solved: N − 1 positions for N bytes. And
# since nothing in the model depends on a length, **the memory may be longer than it was in training**, or absent.

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `streaming_bits`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the bits per byte of a text (uint8) in one pass, as a Python number or a tensor of shape (). Bytes 1 to
# length − 1 are predicted, each once, in segments of t (the last may be shorter), with a memory of m; each byte goes
# through the model at most once. Put the model in evaluation mode, and restore its previous mode afterwards.
#
# <details><summary>Hint 1: one segment</summary>
#
# Its inputs are `data[start:start + t]`, and its targets begin one byte later. Only at the end of the text is there one
# input too many: the last byte has no successor.
#
# </details>
# <details><summary>Hint 2: the mean</summary>
#
# Six bytes and t = 3: the inputs are bytes 0 1 2 and 3 4, the targets 1 2 3 and 4 5. Add up the nats of all five, with
# `reduction="sum"`, and divide once, by 5 and by ln 2.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "streaming_bits", "locked": false, "schema_version": 3, "solution": true, "task": false}
@torch.no_grad()
def streaming_bits(model, data, t, m):
    """Bits per byte of a text that is read once, with a memory.

    model: model(ids (b, t), memory, m) gives logits (b, t, n) and the next memory.
    data: (length,), bytes, length ≥ 2. Returns a number.
    """
    ### BEGIN SOLUTION
    training = model.training
    model.eval()
    data, memory, nats = data.long(), None, 0.0
    for start in range(0, len(data) - 1, t):
        targets = data[start + 1:start + t + 1]
        inputs = data[start:start + len(targets)]
        logits, memory = model(inputs[None], memory, m)
        nats += F.cross_entropy(logits[0], targets, reduction="sum").item()
    model.train(training)
    return nats / (len(data) - 1) / math.log(2)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_streaming_bits", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(streaming_bits)

# %% [markdown]
# ## A task that needs memory
#
# What does a memory gain? First a task that cannot be done without one. Segment 0 has a **key** somewhere among random
# letters. Segment 1 has only letters, and a question mark as its last byte: which key was it? There are 16 keys, so a
# guess is right once in 16. Train your model on it twice, without a memory and with one.

# %%
KEYS, ASK = 16, 32    # ids 0 to 15 are keys, 16 to 31 letters, 32 is the question mark

def key_and_question(b, t=8):
    """Segment 0 with a key, segment 1 that asks for it, (b, t) each; and the keys (b,)."""
    told, asking = torch.randint(KEYS, ASK, (2, b, t))
    keys = torch.randint(KEYS, (b,))
    told[range(b), torch.randint(t, (b,))] = keys
    asking[:, -1] = ASK
    return told.to(device()), asking.to(device()), keys.to(device())

def train_on_keys(m, steps=100):
    """A model, and the share of right answers in each batch; no batch comes twice."""
    torch.manual_seed(0)
    model, right = TransformerXL(ASK + 1, 32, 4, depth=2).to(device()), []
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in progress(range(steps), f"m = {m}"):
        told, asking, keys = key_and_question(64)
        _, memory = model(told, None, m)
        answers = model(asking, memory, m)[0][:, -1]    # (b, n), at the question mark
        loss = F.cross_entropy(answers, keys)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        right.append((answers.argmax(dim=-1) == keys).float().mean().item())
    return model, torch.tensor(right)

forgetful, guessed = train_on_keys(m=0)
mindful, recalled = train_on_keys(m=8)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Share of right answers against training step, from 0 to 1. Without memory the curve stays near the line of guessing, 1 in 16, for all 100 steps. With memory it starts there too, rises slowly at first and then steeply, and is at 1 from about step 50 on."}}
every = 5    # a point is the mean of so many batches
series = {
    name: (range(every, len(right) + 1, every), right.view(-1, every).mean(dim=1))
    for name, right in {"m = 8": recalled, "without memory": guessed}.items()
}
plots.curves(series, "step", "keys right", landmarks={"guessing": 1 / KEYS})
plt.gca().set_ylim(-0.03, 1.05)
plt.show()
print(f"right in the last 20 steps: {guessed[-20:].mean():.3f} without memory, "
      f"{recalled[-20:].mean():.3f} with; guessing: {1 / KEYS:.3f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The share of keys that are named correctly, on segments that the model has not seen; each point is
# the mean of five batches of 64. The models start with the same weights and see the same batches.
#
# </div>
#
# Is it really the memory? Take it away: the same trained model, the same questions, but the memory is emptied before
# segment 1. Then exchange it: each row gets the memory of the row before.

# %%
with torch.no_grad():
    told, asking, keys = key_and_question(1000)
    _, memory = mindful(told, None, 8)
    exchanged = [x.roll(1, dims=0) for x in memory]
    memories = {"own memory": memory, "emptied": None, "exchanged": exchanged}
    for what, past in memories.items():
        named = mindful(asking, past, 8)[0][:, -1].argmax(dim=-1)
        own, other = ((named == each).float().mean() for each in (keys, keys.roll(1)))
        print(f"{what:>10}: {own:.3f} name their key, {other:.3f} that of the row before")

# %% [markdown]
# With an empty memory the model guesses; with another row's memory it names that row's key. So the answer comes from
# the memory and from nowhere else. The model learned this although no gradient reached segment 0: $W_k$ and $W_v$ are
# applied to the memory while segment 1 is read, so they do get a gradient, and they can learn what to look for there.

# %% [markdown]
# ## Two models, step by step
#
# What does a memory gain in real text, where most bytes can be predicted from those just before? Two equal models begin
# with the same weights and read the same streams: one forgets at each border, m = 0; the other remembers the last
# segment, m = t. They take turns, a step each, so that other programs on your machine slow both. The clock counts
# processor seconds for each. The learning rate rises for 50 steps and then stays constant, so that the curves can be
# compared at any point.

# %%
class Run:
    """A model in training, with its memory, its clock and its curve."""

    def __init__(self, m):
        torch.manual_seed(0)
        self.model = TransformerXL(256, 64, 4, depth=3).to(device())
        self.m, self.memory = m, None
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98))
        self.seconds, self.looks = 0.0, []    # (step, seconds, held-out bits) now and then

    def step(self, number, inputs, targets):
        before = time.process_time()
        logits, self.memory = self.model(inputs.to(device()), self.memory, self.m)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.to(device()).flatten())
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.param_groups[0]["lr"] = 0.003 * min(1, (number + 1) / 50)
        self.optimiser.step()
        self.seconds += time.process_time() - before

    def look(self, number):
        bits = streaming_bits(self.model, look_at, t, self.m)
        self.looks.append((number, self.seconds, bits))

steps = 540
look_at = held_out[100_000:104_000].to(device())
runs = {"without memory": Run(0), "m = 64": Run(64)}
done = 0
print(f"{sum(p.numel() for p in runs['m = 64'].model.parameters()):,} parameters")

# %%
try:
    for number in progress(range(done, steps), "training"):
        for run in runs.values():
            run.step(number, inputs[number], targets[number])
        done = number + 1
        if done % 60 == 0:
            for run in runs.values():
                run.look(done)
except KeyboardInterrupt:
    print(f"Stopped after {done} of {steps} steps. Run this cell again to go on.")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels, bits per byte on held-out code, falling over the training but for one small rise in the middle. Left against steps: the curve with memory starts slightly above the other, then the two almost coincide, and at the last point the one with memory is slightly below. Right against processor seconds: the curve with memory is stretched to the right and is above the other all the way."}}
if done < 60:
    print("The curves have their first point after 60 steps: go on with the training above.")
else:
    figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.2), sharey=True, layout="compressed")
    for ax, column, label in zip(axes, (0, 1), ("step", "processor seconds")):
        series = {
            name: ([look[column] for look in run.looks], [look[2] for look in run.looks])
            for name, run in runs.items()
        }
        plots.curves(series, label, "held-out bits per byte", ax=ax)
    axes[1].set_ylabel("")
    plt.show()
    for name, run in runs.items():
        print(f"{name:>14}: {run.seconds / done * 1000:.0f} ms a step")
    dearer = runs["m = 64"].seconds / runs["without memory"].seconds - 1
    print(f"a step with memory takes {dearer:.0%} longer")
    _, seconds, bits = runs["without memory"].looks[-1]
    _, times, values = zip(*runs["m = 64"].looks)
    print(f"after {seconds:.0f} s: {bits:.3f} bits without memory, "
          f"{np.interp(seconds, times, values):.3f} with, between two looks")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The same two trainings twice: on the left against steps, on the right against seconds of one
# processor. Pick a loss: which curve reaches it first in each panel?
#
# </div>
#
# With a memory each query is multiplied by twice as many keys, and twice as many distances are projected. So a
# step takes longer: at equal *seconds* the model without a memory is better here throughout. The gain at equal *steps*
# shows late, and hardly at all on these few thousand bytes. The next cell takes others, and evaluates each model with
# several memories.

# %% [markdown]
# <div class="card">
#
# **Prediction · `memory_unpractised`** &nbsp; 1 minute · no points
#
# The model that was trained **without** a memory is evaluated with one: m = 64, twice as many keys as it has ever seen
# at once, at distances it has never seen. What happens to its bits per byte?
#
# - **A.** They rise: it was never trained to look past a border.
# - **B.** They fall.
# - **C.** They stay the same: it ignores what it was not trained on.
# </div>

# %% nbgrader={"grade": false, "grade_id": "memory_unpractised", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
memory_unpractised = "B"
### STUDENT GETS
# memory_unpractised = ...    # "A", "B" or "C"
### END SOLUTION

# %%
lengths = (0, 16, 64, 128, 256)
judged = held_out[:6000].to(device())
table = {name: [streaming_bits(run.model, judged, t, m) for m in lengths]
         for name, run in runs.items()}
print(f"{'evaluated with m =':>22}" + "".join(f"{m:>8}" for m in lengths))
for name, row in table.items():
    print(f"trained {name:>14}" + "".join(f"{bits:>8.3f}" for bits in row))

steps_apart = table["without memory"][0] - table["m = 64"][2]
by_use = table["without memory"][0] - table["without memory"][2]
off_and_on = table["m = 64"][0] - table["m = 64"][2]
print(f"\nat equal steps, each as it was trained: {steps_apart:.3f} bits per byte"
      f"\nof these, by memory at evaluation alone: {by_use:.3f}"
      f"\none model, memory switched off and on:   {off_and_on:.3f}")

# %% nbgrader={"grade": true, "grade_id": "check_memory_unpractised", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("memory_unpractised", memory_unpractised)

# %% [markdown]
# The three lines under the table are three different answers to "what does the memory gain?".
#
# - **At equal steps** is the fairest of the three: each model is evaluated as it was trained. But it leaves out the
#   seconds, and it is one run of each on 6,000 bytes.
# - Part of that gain needs **no training with memory** at all. Relative positions make a segment with a memory look
#   like a longer segment, and a model that has learned what the distances inside a segment mean can use them across a
#   border too.
# - **Off and on** exaggerates. The model that was trained with memory had an empty one only once, at the very
#   beginning. Without its memory it is worse than the model that never had one, so the difference says little about the
#   use of a memory.
#
# Where is the gain? Average over the streams at each position of the segment:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bits per byte against position in the segment, on a logarithmic axis. With m = 0 both models start far above the rest at the first byte, at 4.8 bits the one trained with a memory and at 3.9 the one trained without, and fall steeply over the first eight. With a memory of 16 or 64 the curve is nearly flat. Beyond position 16 all curves lie close together."}}
@torch.no_grad()
def position_bits(model, data, t, m):
    """Bits at each position of the segment, averaged over segments in 16 streams: (t,)."""
    model.eval()
    memory, bits = None, []
    for inputs, targets in zip(*segments(data, 16, t)):
        logits, memory = model(inputs.to(device()), memory, m)
        targets = targets.to(device())
        nats = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        bits.append(bits_per_byte(nats.mean(dim=0)))
    return torch.stack(bits[1:] or bits).mean(dim=0).cpu()    # the first segment has no past

some = held_out[:40_000]
asked = {"trained without, m = 0": ("without memory", 0),
         "trained with, m = 0": ("m = 64", 0),
         "trained with, m = 16": ("m = 64", 16),
         "trained with, m = 64": ("m = 64", 64)}
by_position = {label: position_bits(runs[name].model, some, t, m)
               for label, (name, m) in asked.items()}
edges = [0, 1, 2, 4, 8, 16, 32, 64]
spans = list(zip(edges, edges[1:]))
ax = plt.subplots(figsize=(6, 3.8))[1]
plots.curves({label: (range(len(spans)), [bits[a:b].mean().item() for a, b in spans])
              for label, bits in by_position.items()}, "position in the segment",
             "bits per byte", ax=ax)
names = [f"{a}" if b == a + 1 else f"{a}–{b - 1}" for a, b in spans]
ax.set_xticks(range(len(spans)), names)
plt.show()
for label, bits in by_position.items():
    print(f"{label:>23}: {bits[0]:.2f} bits at the first byte, "
          f"{bits[48:].mean():.2f} over the last 16")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From left to right: the first byte of a segment, the second, then spans that double. Without a
# memory the first bytes need many bits, because nothing comes before them. A memory of 16 bytes fixes most of that.
#
# </div>
#
# This is the second complaint, context fragmentation: the first eight bytes make up about half of the difference
# between the two models. The rest is not memory alone, since even without one the model that was trained with it is a
# little better over the last 16 bytes, which may be chance.
#
# The first complaint, names from far away, remains. The memory can carry a key, as the task above shows, but this
# model, trained for half a minute with m = 64, gains nothing from a longer memory: see the last columns of the table.
# The published models were trained for days, and with longer memories; [Dai et
# al.](https://arxiv.org/abs/1901.02860), section 4.3, find that theirs uses 900 words of context on average.

# %% [markdown]
# ## What a pass costs
#
# And the third complaint? Read 600 held-out bytes once more, enough to compare the times but not the bits: with lesson
# 9's sliding window, for the model that was trained without memory, and in one pass, without and with a memory.

# %% tags=["hide-input"]
class Windowed(nn.Module):
    """A model without its memory, as lesson 9's functions call it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids)[0]

few = held_out[:600].to(device())
without, remembering = runs["without memory"].model, runs["m = 64"].model
ways = {
    "windows that slide by 1": lambda: sliding_window_bits(Windowed(without), few, t),
    "segments, m = 0": lambda: streaming_bits(without, few, t, 0),
    "segments, m = 64": lambda: streaming_bits(remembering, few, t, 64),
}
cost = {}
for way, measure in ways.items():
    before = time.process_time()
    bits = measure()
    cost[way] = (time.process_time() - before) / len(few)
    print(f"{way:>23}: {bits:.3f} bits, {1e6 * cost[way]:>6.0f} µs of processor time a byte")
times = cost["windows that slide by 1"] / cost["segments, m = 64"]
print(f"the sliding window takes {times:.0f} times as long as one pass with a memory")

# %% [markdown]
# The sliding window computes nearly t times as many positions, but takes far less than t times as long: many windows go
# through the model at once, and large products are more efficient than small ones. The paper's own comparison is with a
# model whose window is 3,800 long, on a GPU: one pass with a memory was up to [1,874 times as
# fast](https://arxiv.org/abs/1901.02860) (table 9).
#
# [Lesson 12's](../12_gpt2/12_gpt2.ipynb) [key–value cache](../../site/glossary.md#key-value-cache) is the same idea
# inside one window: what was computed for a position is kept, because causal attention will never change it. A memory
# can also be used wrongly. In `transformers`, generation for a while passed the whole text *and* the memory that
# already held it ([pull request 4826](https://github.com/huggingface/transformers/pull/4826)): every token was seen
# twice, generation was no faster, and the samples were worse.

# %% [markdown]
# ## The same Wikipedia, with a memory
#
# This section shows a run that was made once, with the finished parts of this lesson, and **recorded**. It has the same
# bytes, held-out part, width and number of blocks as [lesson
# 9's](../09_character_generator/09_character_generator.ipynb) recorded model, and adds this lesson's memory: segments
# of 128 bytes, and in training a memory of 128. The text is read as 192 streams in eight groups, which take turns;
# otherwise successive steps would see the same pages. The command that the cell prints repeats the run.

# %% tags=["hide-input"]
run, before = recorded("enwik8_xl"), recorded("enwik8")
print(f"$ {run['command']}\non: {run['machine']}\n")
for name, one in {"lesson 9": before, "with a memory": run}.items():
    s = one["settings"]
    read = s["steps"] * s["batch"] * s.get("t", s.get("t_max"))
    print(f"{name:>13}: {s['parameters']:,} parameters, {read / 1e6:.1f} million bytes "
          f"read, {one['processor_seconds'] / 60:.0f} minutes of processor time")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Held-out bits per byte against the length of the memory at evaluation, from 0 to 512. The curve falls steeply from 1.95 at 0 to 1.67 at 64, is lowest at 256 with 1.62, and rises to 1.64 at 512. Two dashed lines mark lesson 9: 1.75 side by side, 1.66 overlapping. From 128 on the curve is below both."}}
by_memory = {m: run["result"][f"held_out_bits_m_{m}"] for m in (0, 64, 128, 256, 512)}
apart, sliding = (before["result"][key] for key in
                  ("held_out_bits_without_overlap", "held_out_bits"))
plots.curves({"one pass": (list(by_memory), list(by_memory.values()))},
             "memory at evaluation (bytes)", "held-out bits per byte",
             landmarks={"lesson 9, side by side": apart, "lesson 9, overlapping": sliding})
plt.gca().set_xticks(list(by_memory))
plt.show()
print(f"{run['data']['held_out_bytes']:,} held-out bytes")
print("; ".join(f"m = {m}: {bits:.3f}" for m, bits in by_memory.items()))
print(f"lesson 9: {apart:.3f} in windows side by side, "
      f"{sliding:.3f} in windows that overlap")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded. One model, evaluated in one pass with memories of different lengths. Dashed: lesson 9's
# model on the same bytes, in windows of 256 bytes side by side, and in windows that overlap by three quarters, which
# computes every position four times.
#
# </div>
#
# In one pass, with a memory as long as in training, the model needs fewer bits than lesson 9's in windows that overlap,
# which compute each position four times. (One run of each; this model has 6 % more parameters, and read 9 % fewer
# bytes.) A memory of 256 helps a little more, but one of 512 does not, perhaps because in training no query and key
# were more than 255 positions apart.
#
# Without its memory the same model is far worse than lesson 9's. Two things differ: it was trained with a
# memory, and its segments of 128 bytes give less context than lesson 9's windows of 256. These numbers cannot tell the
# two apart.

# %% [markdown]
# ## What came of it
#
# On enwik8, the benchmark of lesson 9, a Transformer-XL with 12 layers and 41 million parameters needs 1.06 bits per
# byte, the same as the model with 64 layers and 235 million parameters of [Al-Rfou et
# al.](https://arxiv.org/abs/1808.04444); 24 layers need 0.99 ([Dai et al.](https://arxiv.org/abs/1901.02860), table 2).
# That model was trained with a memory of 784 and evaluated with 3,800.
#
# [XLNet](https://arxiv.org/abs/1906.08237) adopted both memory and relative attention, and the tests of this course
# compare the finished parts with its implementation in `transformers`. Later models get the same property, that only i
# − j matters, from rotary positions, which need no second product and no shift. Their windows are so long that few
# carry a memory across them. In 2019 GPT-2's window of 1,024 tokens was long ([lesson 12](../12_gpt2/12_gpt2.ipynb)).

# %% [markdown]
# ## What you can do now
#
# You can read a text in streams that continue from batch to batch; carry states across a border without their gradient;
# write attention that depends only on distances, not on positions; compute how far back a model can see, and check it
# by changing a byte; show that an answer comes from the memory, by emptying and exchanging it; and distinguish a gain
# from memory from one that comes from how it was measured.
#
# **Three questions to think about**
#
# <details><summary>1. A model is trained on random slices with the memory of the batch before: every shape is right,
# and the loss goes down. What has the model learned to do with its memory?</summary>
#
# Probably to ignore it. The memory comes from another place in the text, which says little about this one. At
# evaluation in one pass the memory would be the right one, but the model does not look at it.
#
# </details>
# <details><summary>2. After the last batch of an epoch comes the first one again. What should happen to the
# memory?</summary>
#
# It should be emptied: otherwise row 0 would remember the end of its own stream while it reads the beginning. It should
# also be emptied before an evaluation: the held-out text does not follow the training text.
#
# </details>
# <details><summary>3. Why are there two vectors, u and v, and not one for both?</summary>
#
# (c) says which content is important for every query, and (d) which distance. One vector is multiplied with keys of
# content and the other with keys of position, and there is no reason why one vector should suit both.
#
# </details>
#
# **Further reading**
#
# - **[Dai et al., *Transformer-XL: attentive language models beyond a fixed-length context*,
#   2019](https://arxiv.org/abs/1901.02860)**, sections 3.2 and 3.3; the shift is in appendix B.
# - [Al-Rfou et al., *Character-level language modeling with deeper self-attention*,
#   2018](https://arxiv.org/abs/1808.04444): the model that this one improves on.
# - [Shaw, Uszkoreit and Vaswani, *Self-attention with relative position representations*,
#   2018](https://arxiv.org/abs/1803.02155): relative positions before this paper, without the memory.
# - [Yang et al., *XLNet*, 2019](https://arxiv.org/abs/1906.08237), section 2.4: what it adopted.
# - [Rae et al., *Compressive transformers for long-range sequence modelling*, 2019](https://arxiv.org/abs/1911.05507):
#   what leaves the memory is compressed and kept.
#
# **Next:** [lesson 16, *Sparse attention*](../16_sparse_attention/16_sparse_attention.ipynb)
