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
# *I have a cat.* | *It does not eat fish.* A language model reads a long text in windows. Here a window ends between
# the two sentences, and nothing in the second one says what *it* is. A longer window only moves the border. **How can
# a model use what stood before its window, without reading it again?**
#
# [Transformer-XL](https://arxiv.org/abs/1901.02860) (Dai et al., 2019) keeps what it computed for the last window,
# and looks back at it. That takes a memory without a gradient, and positions that count the distance between two
# tokens.
#
# | | |
# |---|---|
# | **You will build** | streams of segments, a memory, relative attention with its shift, the whole model, and a fair measurement in one pass; and you fix a memory |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb), [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb); for the end, [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 80 minutes: six exercises, 21 points, and two predictions |
# | **It computes** | for about a minute in one cell, which you may stop; seconds everywhere else |
#
# Sizes are those of [the notation table](../../site/notation.md); here t is the length of a segment, m that of the
# memory, and s = m + t. Parts named `finished_…` are for the exercises that build on them. What every check asks is
# on [the page for students](../../site/students.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.device import device
from helpers.lesson import start
from helpers.parts.blocks import LayerNorm
from helpers.parts.transformer_xl import TransformerXLBlock
from helpers.parts.transformer_xl import TransformerXL as FinishedXL
from helpers.parts.transformer_xl import extend_memory as finished_memory
from helpers.parts.transformer_xl import relative_shift as finished_shift
from helpers.progress import progress

check = start("15_transformer_xl")

# %% [markdown]
# ## A border does harm in two ways
#
# A model like lesson 9's ([Al-Rfou et al., 2018](https://arxiv.org/abs/1808.04444)) cuts a long text into **segments**
# of t tokens, and reads each one separately. That does harm in two ways (Dai et al., section 3.1):
#
# 1. **The context ends where the segment begins.** No output can depend on a token more than t − 1 positions back.
# 2. **[Context fragmentation](../../site/glossary.md#context-fragmentation).** The first tokens of each segment are
#    predicted from almost nothing.
#
# Overlapping windows, as in lesson 9's fair evaluation, avoid the second. But they read the text nearly t times, if the
# window moves by one token.
#
# Transformer-XL keeps a **memory** for each block: what came into the block in the last segment. In the next segment
# the block looks back at it.

# %%
plots.diagrams.segment_memory()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Two blocks, segments of 3 and a memory of 3. Each arrow points from a position to one that looks
# at it; not all are drawn. The red output looks at its own segment and the memory, whose positions have looked back
# too. So it can depend on all coloured bytes, but not on the empty ones.
#
# </div>
#
# Three things are to be built: the layout of the text, the memory, and positions that count across a border.

# %% [markdown]
# ## In streams, each segment follows the one before it
#
# A segment has to be read right after the one it remembers, so slices cannot be drawn at random, as in lesson 9. The
# text is laid out as b **streams**: each row continues the same row of the batch before. With
# $k = \lfloor (\text{length} - 1)/(bt) \rfloor$ batches:
#
# | | batch 0 | batch 1 | batch 2 |
# |---|---|---|---|
# | row 0 | bytes 0 to t − 1 | t to 2t − 1 | 2t to 3t − 1 |
# | row 1 | bytes kt to kt + t − 1 | kt + t … | kt + 2t … |
#
# The target of each byte is the next one, even across a border.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `segments`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Lay a text of bytes (uint8) out as b streams and cut these into segments: input `[j, row, i]` is byte `(row·k + j)·t
# + i`. Leave out the bytes at the end that do not fill a segment in every stream. Each stream gets at least one
# segment.
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

# %% [markdown]
# This lesson's text is the source code of Python's standard library, and its tokens are bytes. One module in twenty
# is [held out](../../site/glossary.md#held-out-data).

# %% tags=["hide-input"]
texts = {"train": [], "held out": []}
for name, text in stdlib_sources().items():
    texts["held out" if is_held_out(name) else "train"].append(text.encode())
train, held_out = (
    torch.frombuffer(bytearray(b"".join(texts[part])), dtype=torch.uint8) for part in texts
)
print(f"{len(train):,} bytes to train on, {len(held_out):,} held out")

def show(ids):
    """A row of bytes as text, ¶ for the end of a line, a dot for what is not printable."""
    ids = [int(i) for i in ids]
    return "".join("¶" if i == 10 else chr(i) if 32 <= i < 127 else "·" for i in ids)

t = 64
inputs, targets = segments(train, 16, t)
print("inputs:", tuple(inputs.shape))
for row in (0, 7):
    for batch in (20, 21):
        print(f"batch {batch}, row {row}: {show(inputs[batch, row])}")

# %% [markdown]
# ## The memory holds what came into each block
#
# To look back, a block needs its own **inputs** in the last segment: from them it can compute keys and values. With
# $h^{\ell-1}$ for the input of block $\ell$, counted from 1, and $\tau$ for the segment (the paper's section 3.2):
#
# $$\tilde h^{\,\ell-1}_{\tau+1} = \big[\,\mathrm{SG}(h^{\ell-1}_{\tau}) \circ h^{\ell-1}_{\tau+1}\,\big], \qquad
# q = h^{\ell-1}_{\tau+1} W_q^\top, \quad
# k = \tilde h^{\,\ell-1}_{\tau+1} W_k^\top, \quad v = \tilde h^{\,\ell-1}_{\tau+1} W_v^\top .$$
#
# The circle joins a memory (b, m, e) and a segment (b, t, e) along the positions: (b, s, e). Each W is (d, e), for
# one head. Only the segment has queries, so there are t outputs.
#
# SG means **stop gradient**, in PyTorch `detach`: the states are used across the border, but the backward pass ends
# there. Otherwise the graphs of earlier segments would have to be kept. All this is **segment-level recurrence**.
#
# The memory need not be one segment long: after each segment, the new states are appended and the newest m are kept.
# The function below has the bug of a published program. A model that uses it trains, but its memory does nothing.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `extend_memory`** &nbsp; fix · ★★☆ · 5 minutes · 3 points
#
# Find the bug and fix it. The memory may share its storage with x, and m = 0 gives a memory (b, 0, e). Do not call
# `finished_memory`.
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
# ## With a memory, two tokens share one position
#
# Lesson 9's model adds a vector to each token for its position: $U_3$ for position 3. With a memory there are two
# positions 3. In the first block, the same byte gives the same key at both, so no query can tell them apart.
# Continuing the numbers through the text needs vectors that training never touched.
#
# What a query needs is the **distance** to a key, and distances stay small. Count keys from the oldest of the memory,
# and queries from the segment's first: query i is at i + (s − t), so key j is i + (s − t) − j back.
# [Lesson 6's](../06_positions/06_positions.ipynb) biases and rotary positions use only distances, too. How does
# Transformer-XL bring them into a score?

# %% [markdown]
# ## Content and distance give a score of four terms
#
# With absolute positions, the score of a query at i and a key at j has four terms. The token's vector $E_i$ and the
# position's $U_i$ are columns here, (e,), so that a query is $W_q (E_i + U_i)$, (d,):
#
# $$(E_i + U_i)^\top W_q^\top W_k\, (E_j + U_j) =
# \underbrace{E_i^\top W_q^\top W_k E_j}_{(a)} + \underbrace{E_i^\top W_q^\top W_k U_j}_{(b)} +
# \underbrace{U_i^\top W_q^\top W_k E_j}_{(c)} + \underbrace{U_i^\top W_q^\top W_k U_j}_{(d)} .$$
#
# Three changes replace the positions by their distance (section 3.3):
#
# - $U_j$ becomes $R_{i-j}$ in (b) and (d): the sinusoid of the **distance**, (e,), not learned. Here i and j are
#   positions in the text.
# - The query's own position must not matter, so $U_i^\top W_q^\top$ becomes a learned vector in each of two terms, the
#   same for all i: $u^\top$ in (c) and $v^\top$ in (d), both (d,). The v is the paper's letter, not a value.
# - Content and position get separate key matrices, $W_{k,E}$ and $W_{k,R}$, both (d, e).
#
# $$A^{\mathrm{rel}}_{ij} = \underbrace{E_i^\top W_q^\top W_{k,E} E_j}_{(a)} +
# \underbrace{E_i^\top W_q^\top W_{k,R} R_{i-j}}_{(b)} + \underbrace{u^\top W_{k,E} E_j}_{(c)} +
# \underbrace{v^\top W_{k,R} R_{i-j}}_{(d)} .$$
#
# So (c) says which content is important for every query, and (d) which distance. In a program $W_q E_i$ is the query
# q, $W_{k,E} E_j$ the key k, and $W_{k,R} R_{i-j}$ a vector r for each distance. Two products compute all four terms:
# (a) and (c) are **(q + u) · k**, (b) and (d) are **(q + v) · r**. How does each r meet its key?

# %% [markdown]
# ## One shift moves every distance to its key
#
# There are t·s pairs of a query and a key, but, without the future, only s distances, s − 1 to 0. So multiply each
# query by s vectors r, from far to near: a matrix (t, s) with one column for each **distance**. Its numbers stand in
# the wrong columns: the last query's row is right, the row before it must move left by one, the first by t − 1. The
# authors' program moves all rows at once, by padding and a change of shape:

# %%
plots.diagrams.shift_steps()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** "1:2" is the score of query 1 at distance 2; here t = 3 and s = 4. Read the padded numbers in
# rows of t, drop the first row, and read the rest in rows of s: every row has moved left by its own amount. What
# is then to the right of distance 0 is left over; `tril` clears it.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `relative_shift`** &nbsp; ★★☆ · 9 minutes · 3 points
#
# Turn a matrix with a column for each distance into one with a column for each key, with any number of axes in front.
# Do not call `finished_shift`.
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
# Without the first of these, in rows of 3: b c 0 and d e f. `tril(diagonal)` clears what is right of a diagonal:
# which one?
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
# Return the sum of the four terms, divided by √d. You may use `finished_shift` (exercise 3). Entries for keys in the
# future are masked later, so they may be anything.
#
# <details><summary>Hint 1: two products</summary>
#
# The product with the keys has the right columns; the product with the distances has to be shifted. Divide all four
# terms by the root of one head's width.
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# With one query, one key and d = 1, let q = 2, k = 3, r = 5, u = 1 and v = −1: the score is 2·3 + 2·5 + 1·3 − 1·5 =
# 14. q is (b, h, t, d) and u is (h, d). Where does u need an axis of length 1? `.mT` transposes the last two axes.
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
# ## The model is lesson 7's stack with a memory for each block
#
# `TransformerXLBlock(e, h)` is finished: [lesson 7's](../07_transformer_block/07_transformer_block.ipynb) pre-norm
# block with the scores of exercise 4. It makes R, and learns $W_{k,R}$, u and v. It is called with x and a memory, or
# None. Query i sees the whole memory and the segment up to itself, j ≤ i + (s − t). The memory holds the block's inputs
# **before the norm**; the block normalises them as it does its segment.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `TransformerXL`** &nbsp; ★★★ · 9 minutes · 4 points
#
# Write the whole model. Its parts are `tokens`, an `nn.Embedding`; `blocks`, an `nn.ModuleList` of
# `TransformerXLBlock(e, h)`; `norm`, a `LayerNorm(e)`; `to_logits`, an `nn.Linear`. No positions are added. Each
# block's new memory is made by `finished_memory` (exercise 2) from the block's **input**. With m = 0 the list still has
# a memory for each block, with no positions.
#
# <details><summary>Hint 1: one block at a time</summary>
#
# Before the block runs, x is its input. The new memory is made from this x and the block's old memory; the block
# itself gets the old one, which is None at the beginning of a text.
#
# </details>
# <details><summary>Hint 2: two segments by hand</summary>
#
# Take two blocks, segments of 3 and m = 4. After the first segment, the memory of the lower block holds the 3 embedded
# tokens, and that of the upper block the 3 outputs of the lower. After the second, each holds the newest 4 of 6.
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
# ## The model reads the passkey from its memory
#
# Does the model use its memory? One segment holds a **passkey** among random letters. The last has only letters, and
# at its end a question mark: which passkey was it? A guess is right once in 16. Your model reads the
# passkey's segment, t = 8, with a memory of m = 8, and then the question. The **baseline** is the same model, trained
# with m = 0, so only the memory differs.
#
# Two more models read a segment of letters **in between**, one with m = 8, one with m = 16. Both reach the passkey:
# with m = 16 it is in memory, and with m = 8, as in the diagram, two blocks with t = m reach two segments back.

# %%
PASSKEYS, ASK = 16, 32    # ids: 0 to 15 passkeys, 16 to 31 letters, 32 the question mark

def passkey_texts(b, between, t=8):
    """Texts (b, (2 + between)·t): a passkey in the first segment, a question at the end."""
    texts = torch.randint(PASSKEYS, ASK, (b, (2 + between) * t))
    passkeys = torch.randint(PASSKEYS, (b,))
    texts[range(b), torch.randint(t, (b,))] = passkeys
    texts[:, -1] = ASK
    return texts.to(device()), passkeys.to(device())

def read(model, ids, t, m):
    """A text read segment by segment: logits (b, length, n), and the last memory."""
    memory, logits = None, []
    for segment in ids.split(t, dim=1):
        part, memory = model(segment, memory, m)
        logits.append(part)
    return torch.cat(logits, dim=1), memory

def trained_with(m, between=0, steps=100, kind=TransformerXL):
    """A Transformer-XL of two blocks that has learned to answer."""
    torch.manual_seed(0)
    model = kind(n=ASK + 1, e=32, h=4, depth=2).to(device())
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    for _ in progress(range(steps), "training"):
        texts, passkeys = passkey_texts(64, between)
        logits, _ = read(model, texts, 8, m)
        loss = F.cross_entropy(logits[:, -1], passkeys)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model

baseline, model = trained_with(0), trained_with(8)
apart = {m: trained_with(m, between=1) for m in (8, 16)}

# %% tags=["hide-input"]
def report(what, model, memory, texts, passkeys):
    """How often the last segment, read with this memory, is answered by which passkey."""
    named = model(texts[:, -8:], memory)[0][:, -1].argmax(dim=-1)
    own, other = ((named == each).float().mean() for each in (passkeys, passkeys.roll(1)))
    print(f"{what:>23}: {own:.3f} name their own, {other:.3f} that of the row before")

with torch.no_grad():
    texts, passkeys = passkey_texts(1000, between=0)
    _, memory = read(model, texts[:, :-8], 8, 8)
    exchanged = [x.roll(1, dims=0) for x in memory]
    report("m = 0", baseline, None, texts, passkeys)
    report("m = 8, own memory", model, memory, texts, passkeys)
    report("m = 8, emptied", model, None, texts, passkeys)
    report("m = 8, exchanged", model, exchanged, texts, passkeys)
    texts, passkeys = passkey_texts(1000, between=1)
    for m, model in apart.items():
        _, memory = read(model, texts[:, :-8], 8, m)
        report(f"m = {m}, one in between", model, memory, texts, passkeys)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The share of 1,000 new texts; segments of 8. Four models, one training of 100 steps each.
# *Emptied*: no memory before the question. *Exchanged*: each row gets the memory of the row before.
#
# </div>
#
# **The answer comes from the memory and from nowhere else.** With another row's memory, the model names that row's
# passkey; with none it can only guess.
#
# **Reach is not memory.** With a segment in between and m = 8, the passkey is within reach, and the model only guesses
# it. With m = 16 the passkey itself is in memory, and the model names it. Of an older token, an output sees only what a
# state in memory took from it. Why did no state take the passkey?

# %% [markdown]
# ## What crosses a border, and what does not?
#
# Two tests of [lesson 5](../05_masking/05_masking.ipynb) show it: the gradient, and a changed input.

# %% [markdown]
# <div class="card">
#
# **Prediction · `gradient_across`** &nbsp; 1 minute · no points
#
# The model of the diagram, two blocks with t = m = 3, has read four segments. How large is the gradient of its very
# last output with respect to the embedding of the **first token of segment 1**, the farthest of the coloured ones?
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

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two maps of 12 outputs by 12 inputs, with lines at the borders of four segments of three. Left, the gradient: a small triangle on the diagonal for each segment, everything else hatched, exactly zero. Right, changed outputs: the lower triangle is filled, except the lower left corner of three by three: the first segment's bytes and the last segment's outputs."}}
def slopes_and_changes(model, ids, t, m):
    """Output i by input j, (length, length): largest slope; did another byte change it?"""
    length, kept = ids.shape[1], []
    hook = model.tokens.register_forward_hook(lambda layer, given, x: kept.append(x))
    logits, _ = read(model, ids, t, m)
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
            changes[:, j] = (read(model, other, t, m)[0] != logits).any(dim=-1)[0]
    return slopes, changes

torch.manual_seed(0)
small = TransformerXL(16, 12, 3, depth=2).double()
slopes, changes = slopes_and_changes(small, torch.arange(12)[None], t=3, m=3)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), layout="compressed")
plots.heat(slopes, title="The gradient ends at the border", ax=axes[0], blank_zeros=True,
           annotate=False)
plots.mask_row([changes], titles=["What was computed crosses it"], axes=[axes[1]])
for ax in axes:
    ax.set(xlabel="input j", ylabel="output i" if ax is axes[0] else "")
    for border in (2.5, 5.5, 8.5):
        ax.axhline(border, color="black", linewidth=1)
        ax.axvline(border, color="black", linewidth=1)
plt.show()
print("gradient of the last output by input 3:", slopes[-1, 3].item())
print("another byte at input 3 changes the last output:", changes[-1, 3].item())

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Lines mark the borders of segments; weights are random. Left: how fast the sum of output i's
# squared logits changes with the embedding of input j; hatched is exactly zero. Right, filled: another byte at j
# changed output i; hatched: it did not. The first three bytes are out of reach of the last three
# outputs.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_gradient_across", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("gradient_across", gradient_across)

# %% [markdown]
# **States cross the border, and the gradient does not.** How, then, has the model learned to find the passkey? Keys
# and values of the memory are computed while the question is read, so their matrices get a gradient. That is enough
# where the passkey is in memory: there it is stored as its embedding, a random vector, and only the reading is learned.
#
# With a segment in between it is not enough: the states of that segment would have to learn to take the passkey. As a
# control, train the model again for 200 steps, once as before and once with nothing detached:

# %%
class KeepsGradient(FinishedXL):
    """A Transformer-XL whose memory is not detached."""

    def forward(self, ids, memory=None, m=0):
        x, following = self.tokens(ids), []
        for place, block in enumerate(self.blocks):
            past = x[:, :0] if memory is None else memory[place]
            following.append(torch.cat([past, x], dim=1)[:, -m:])
            x = block(x, past)
        return self.to_logits(self.norm(x)), following

texts, passkeys = passkey_texts(1000, between=1)
for name, kind in {"detached": FinishedXL, "with gradient": KeepsGradient}.items():
    model = trained_with(8, between=1, steps=200, kind=kind)
    with torch.no_grad():
        _, memory = read(model, texts[:, :-8], 8, 8)
        report(f"m = 8, {name}", model, memory, texts, passkeys)

# %% [markdown]
# **Here, without a gradient across the border, nothing teaches a segment to keep what a later one needs.** With it, the
# model names every passkey, in each of [three runs](../../site/further.md#lesson-15). The price is the graph of the
# segments before. In the passkey task only the last output has a loss; in real text every byte has one. What does the
# detached memory save there?

# %% [markdown]
# ## One pass gives each byte a context
#
# To measure it, read the text once, segment by segment, and carry the memory along. Nothing in the model depends on a
# length, so **the memory may be longer than it was in training**, or absent.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `streaming_bits`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the bits per byte of a text (uint8), as a Python number or a tensor of shape (). Bytes 1 to length − 1 are
# predicted, each once, in segments of t (the last may be shorter), with a memory of m; each byte goes through the model
# at most once. Put the model in evaluation mode, and restore its previous mode afterwards.
#
# <details><summary>Hint 1: one segment</summary>
#
# Its inputs are `data[start:start + t]`, and its targets begin one byte later. Only at the end of the text is there
# one input too many: the last byte has no successor.
#
# </details>
# <details><summary>Hint 2: the mean</summary>
#
# Six bytes and t = 3: the inputs are bytes 0 1 2 and 3 4, the targets 1 2 3 and 4 5. Add up the nats of all five,
# with `reduction="sum"`, and divide once, by 5 and by ln 2.
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
# ## In code, the memory saves a tenth of a bit per byte
#
# Two models begin with the same weights and read the same streams. The baseline forgets at each border, m = 0. The
# other remembers the last segment, m = t.

# %%
class Run:
    """A model in training, with its memory."""

    def __init__(self, m):
        torch.manual_seed(0)
        self.model = TransformerXL(256, 64, 4, depth=3).to(device())
        self.m, self.memory = m, None
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98))

    def step(self, number, inputs, targets):
        logits, self.memory = self.model(inputs.to(device()), self.memory, self.m)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.to(device()).flatten())
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.param_groups[0]["lr"] = 0.003 * min(1, (number + 1) / 50)
        self.optimiser.step()

steps, done = 540, 0
runs = {"m = 0": Run(0), "m = 64": Run(64)}

# %% tags=["hide-input"]
try:
    for number in progress(range(done, steps), "training"):
        for run in runs.values():
            run.step(number, inputs[number], targets[number])
        done = number + 1
except KeyboardInterrupt:
    print(f"Stopped after {done} of {steps} steps. Run this cell again to go on.")

# %% [markdown]
# <div class="card">
#
# **Prediction · `memory_unpractised`** &nbsp; 1 minute · no points
#
# The model that was trained **without** a memory is evaluated with one: m = 64, twice as many keys as it has ever
# seen at once, at distances it has never seen. What happens to its bits per byte?
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
judged = held_out[:12_000].to(device())
cases = {f"trained with {run.m}, evaluated with {m}": (run.model, m)
         for run in runs.values() for m in (0, 64)}
for case, (model, m) in cases.items():
    print(f"{case}: {streaming_bits(model, judged, t, m):.3f} bits per byte")

# %% nbgrader={"grade": true, "grade_id": "check_memory_unpractised", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("memory_unpractised", memory_unpractised)

# %% [markdown]
# **At equal steps the memory saves 0.107 bits per byte,** on the first 12,000 held-out bytes, in one run of each, with
# each model evaluated as it was trained. A step with a memory takes more work. The model that was trained without one
# gains 0.050 from it at evaluation.
#
# Which of the two harms does the memory repair? Split the bits by the position in the segment:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bits per byte at positions 0–7, 8–15, 16–31 and 32–63 of a segment, four lines. At 0–7, evaluated with 0, the line of the model trained with 64 is highest and that of the model trained with 0 second; evaluated with 64, both are far lower. From 8–15 on, the two lines of the model trained with 0 nearly lie on each other. The line of the model trained and evaluated with 64 is lowest everywhere."}}
groups = {"0–7": (0, 8), "8–15": (8, 16), "16–31": (16, 32), "32–63": (32, 64)}
series = {}
with torch.no_grad():
    for case, (model, m) in cases.items():
        logits, _ = read(model, judged[None, :-1].long(), t, m)
        bits = F.cross_entropy(logits[0], judged[1:].long(), reduction="none") / math.log(2)
        place = torch.arange(len(bits), device=bits.device) % t
        means = [bits[(first <= place) & (place < end)].mean().item()
                 for first, end in groups.values()]
        series[case] = (range(len(groups)), means)
    windows = judged.long().unfold(0, t + 1, 16)    # they overlap by three quarters
    logits, _ = runs["m = 0"].model(windows[:, :-1])
    overlapping = F.cross_entropy(logits[:, -16:].flatten(0, 1), windows[:, -16:].flatten())
plots.curves(series, "position in the segment", "bits per byte",
             title="Without training for it, a memory helps only at the beginning")
plt.gca().set_xticks(range(len(groups)), labels=list(groups))
plt.show()
for case, (_, means) in series.items():
    print(f"{case}: " + ", ".join(f"{bits:.3f}" for bits in means))
print(f"trained with 0, in overlapping windows: {overlapping / math.log(2):.3f} in all")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Means over the bytes predicted at these positions; lower is better. Each group has other bytes, so
# compare lines within a group. Overlapping windows of 64 move by 16, and the last 16 predictions of each count.
#
# </div>
#
# **Without training for it, the memory repairs only the beginning of a segment.** Positions 0 to 7 gain 0.383 bits, all
# others next to nothing. That is fragmentation, the second harm. Overlapping windows repair it as well, but read nearly
# every byte four times. ([Lesson 9](../09_character_generator/09_character_generator.ipynb) gained little by overlap,
# on another text; why was not tested.)
#
# **Trained with a memory, the model is better in every group of positions.** At 32 to 63 it gains 0.047 bits.
# With its memory switched off it is still 0.028 better there in this run, but worse at 0 to 15.
#
# On [Wikipedia](../../site/further.md#lesson-15), after a longer training, a memory twice that of the training was the
# best of five, in one run.

# %% [markdown]
# ## A memory that drops nothing is a cache
#
# Does a memory have to drop anything at all? Make the segments one token long and keep everything:

# %%
text = held_out[None, :200].long().to(device())
model = runs["m = 64"].model
with torch.no_grad():
    at_once, _ = model(text)
    one_by_one, _ = read(model, text, t=1, m=1000)
print(f"largest difference between the logits: {(at_once - one_by_one).abs().max():.0e}")

# %% [markdown]
# **With a memory of all that came before, the model computes token by token what it computes for the whole text at
# once.** This is [lesson 12's](../12_gpt2/12_gpt2.ipynb) key–value cache, with inputs in place of keys and values. It
# loses nothing, and grows with the text. What should a memory keep that cannot grow?
#
# - **Attention sinks.** With the oldest entries dropped, published models that were not trained so fall apart: their
#   heads put much weight on the first few tokens, whatever these are. If the first four stay, the models read on
#   through millions of tokens ([Xiao et al., 2023](https://arxiv.org/abs/2309.17453), sections 3 and 4.1).
# - **A memory of fixed size.** Linear attention adds the product of each key and its value to one matrix, which all
#   tokens share. Lesson 16 builds it.

# %% [markdown]
# ## What you can do now
#
# **How can a model use what stood before its window?** Each block keeps its newest m inputs, and the next segment looks
# back at them by their distance. Reading *It*, the model can look at the states of *cat*.
#
# - **The answer came from the memory.** With its own memory the model named every passkey; with another row's memory it
#   named that row's.
# - **States cross the border, and the gradient does not.** A passkey one segment farther back was reached, and only
#   guessed. Where the gradient crossed the border, the model learned to name it.
# - **On code, a memory saved 0.107 bits per byte,** on the first 12,000 held-out bytes, in one short run of each.
#   Without training for it, a memory repaired only the beginning of a segment.
#
# The bug of exercise 2 is the second one in
# [issue 7 of Transformers-RL](https://github.com/dhruvramani/Transformers-RL/issues/7).
#
# **A question to think about**
#
# <details><summary>After the last batch of an epoch comes the first one again. What should happen to the
# memory?</summary>
#
# It should be emptied: otherwise row 0 would remember the end of its own stream while it reads the beginning.
#
# </details>
#
# **Further reading**
#
# - **[Dai et al., *Transformer-XL: attentive language models beyond a fixed-length context*,
#   2019](https://arxiv.org/abs/1901.02860)**, sections 3.2 and 3.3; the shift is in appendix B.
#
# What does a state of fixed size forget, and what does a window? Lesson 16 measures it.
#
# **Next:** [lesson 16, *Sparse attention*](../16_sparse_attention/16_sparse_attention.ipynb)
