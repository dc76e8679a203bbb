# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 17 · Going big
#
# *How a training is made to fit*
#
# A larger GPT needs only larger numbers in [lesson 12's](../12_gpt2/12_gpt2.ipynb) configuration, but its training
# may not fit: with 7 billion parameters, weights, gradients and AdamW's moments alone are 112 GB, and many a GPU has
# 80. **What fills the memory of a training step, and which trick takes away which part of it?** Trick by trick, we
# bring the count for GPT-2 down from 7.0 GB to 1.6 in each of two workers.
#
# | | |
# |---|---|
# | **You will build** | attention in tiles with its backward pass, gradient accumulation (which you fix), checkpointing, a step divided among workers; optional: the best size for a budget, and float16 |
# | **You need** | lessons [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 110 minutes: eight exercises, 36.5 points, and two predictions |
# | **It computes** | for a few seconds in each cell that adds a row |
#
# Letters are as in [the notation table](../../site/notation.md); N counts parameters, and 1 MB is a million bytes.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from helpers import plots
from helpers.data.datasets import generator_text
from helpers.device import device
from helpers.lesson import start
from helpers.parts import workers
from helpers.parts.big import keeping_autocast, random_state, set_random_state
from helpers.parts.generator import sample_batch
from helpers.parts.sharding import SmallGPT, worker_steps
from helpers.parts.tiles import merge as finished_merge
from helpers.step_table import StepBars, StepTable

check = start("17_going_big")

# %% [markdown]
# ## Each block keeps its activations until the backward pass needs them
#
# What a training step keeps in memory is of two kinds. **State** belongs to the parameters: for each its weight, its
# gradient and AdamW's two running means, its **moments**. In float32 these are four times 4 bytes. **Activations** are
# what the forward pass computes and the backward pass needs.
#
# Here are the activations of one step of a small model: four blocks of width 128 with 8 heads read four texts of 512
# bytes.

# %% mystnb={"image": {"alt": "Megabytes that autograd keeps, in the course of one training step: a mountain of stairs. In the forward pass it climbs in four tall jumps, one per block, each of them attention weights, to 189 megabytes at the loss; in the backward pass it comes down by the same four jumps. Attention weights are most of its area, all the rest together is a low hill below them."}}
torch.set_num_threads(1)        # one core for each process, so that the rows can be compared
text, _ = generator_text(places="embedded")
data = torch.tensor(list(text), dtype=torch.uint8).to(device())
b, t = 4, 512
ids, targets = sample_batch(data, b, t, torch.Generator().manual_seed(0))

sizes = {"n": 256, "e": 128, "h": 8, "depth": 4, "t_max": t}
torch.manual_seed(0)
model = SmallGPT(**sizes).to(device())
optimiser = torch.optim.AdamW(model.parameters())

def loss():
    return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())

def step():
    optimiser.zero_grad()
    loss().backward()
    optimiser.step()

table = StepTable()
with sdpa_kernel(SDPBackend.MATH):
    table.measure("plain attention", step, model, optimiser)
table.draw_parts("The forward pass climbs, the backward pass comes down")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Height: what autograd keeps, measured when it saves or frees a tensor, so the axis is not time.
# The model computes attention as lesson 5 does, with PyTorch's *math* backend.
#
# </div>
#
# **What each block adds, its backward pass takes away.** At the loss the activations are 188.9 MB, more than ten times
# the state. Each of the four tall jumps is one block's attention weights.
#
# ## In GPT-2, attention weights need more memory than all state
#
# Activations can be counted, here with GPT-2's sizes, ReLU and no dropout, for four texts of 1,024 tokens:
#
# - in each block the attention weights, $h\,t^2$ numbers per text;
# - in each block about twelve vectors of width e per token: the inputs and outputs of two norms (4), queries, keys and
#   values (3), the heads' output (1) and the hidden layer, four times as wide (4);
# - after the last block the log-probabilities, n numbers per token.

# %%
def counted(N, n, e, h, depth, b, t):
    """Bytes that a training step keeps in float32, by kind."""
    return {"weights": 4 * N, "gradients": 4 * N, "moments": 8 * N,
            "attention weights": 4 * depth * b * h * t * t,
            "vectors": 4 * depth * b * t * 12 * e,
            "log-probabilities": 4 * b * t * n}

N, n, e, depth = 124_439_808, 50_257, 768, 12
gpt2 = counted(N, n, e, h=12, depth=depth, b=4, t=1024)

N_small = sum(p.numel() for p in model.parameters())
small = counted(N_small, sizes["n"], sizes["e"], sizes["h"], sizes["depth"], b, t)
state = 16 * N_small
activations = sum(small.values()) - state
print(f"counted: {activations / 1e6:.1f} MB of activations, {state / 1e6:.1f} MB of state")

# %% tags=["nbval-check-output"] mystnb={"image": {"alt": "A stacked horizontal bar: the bytes of one training step at GPT-2's size, 7.0 GB. State, in blue, is less than a third of it: weights, gradients, and moments, which are as large as both together. Activations are the rest: attention weights, the largest part of all, then vectors, then log-probabilities, the smallest of the three."}}
bars = StepBars()
bars.add("plain attention", gpt2)
bars.draw("Attention weights are the largest part of a step")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Blue is state, the rest activations, in float32. Not all is in memory at once: activations
# are freed as gradients come.
#
# </div>
#
# **The attention weights are the largest part, and grow with $t^2$.** (GPT-2's GELU keeps its input too: then the
# vectors are about as large.) The same count is right to about one percent for the small step; temporary tensors come
# on top.
#
# Each trick is now measured in the small model, and most are counted for GPT-2. Seconds are of one run; a second
# changed some ratios by a fifth, so 0.9 × may be chance.

# %% [markdown]
# ## The softmax can be added up tile by tile
#
# A block needs only the product of the attention weights with the values. It can be added up as the keys arrive, a
# **tile** of them at a time:

# %%
plots.diagrams.tiles_arriving()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One query and six keys, with scores $S_j$. m is the largest so far, ℓ the sum of $e^{S_j - m}$. In
# the second step the maximum rises from 2 to 4, so the old sum shrinks by $e^{2-4}$.
#
# </div>
#
# The softmax subtracts the row's maximum and divides by the row's sum. Both are known only at the end, but both can be
# **running** values. Keep per query m, ℓ and o, the sum of $e^{S_j - m}\, v_j$, a vector. Attention over the keys so
# far is o/ℓ. To merge two such results, make their sums relative to the larger maximum m':
#
# $$m' = \max(m_a, m_b), \qquad \ell' = e^{m_a - m'} \ell_a + e^{m_b - m'} \ell_b, \qquad
# o' = e^{m_a - m'} o_a + e^{m_b - m'} o_b .$$
#
# This is **[online softmax](../../site/glossary.md#online-softmax)** ([Milakov and Gimelshein,
# 2018](https://arxiv.org/abs/1805.02867)), and exact up to rounding.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `merge`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Merge two partial results (m, ℓ, o) over different keys. In some rows one of them, or both, may have seen no key yet:
# m = −∞, ℓ = 0 and o = 0. Nothing may overflow or be NaN.
#
# <details><summary>What must hold</summary>
#
# Scores may be of any size. If both parts have seen no key, so has the result. In rows where at least one has seen a
# key, gradients may not be NaN either. Do not call `finished_merge`.
#
# </details>
# <details><summary>Hint 1: shapes</summary>
#
# m and ℓ are (...,), o is (..., d): a factor for o needs one more axis.
#
# </details>
# <details><summary>Hint 2: nothing and nothing</summary>
#
# In three rows $m_a$ is 2, −∞, −∞ and $m_b$ is 4, 4, −∞. The new maximum is 4, 4, −∞, and $m_a - m'$ is −2, −∞ and
# NaN. With 4, 4, 0 in place of the maximum, the factors for a are e^−2, 0, 0.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "merge", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge(a, b):
    """Two partial softmax results over different keys, as one.

    a, b: (m, l, o): largest score (...,), sum of powers (...,), weighted sum (..., d).
    Returns such a triple. Nothing seen is m = −∞, l = 0, o = 0.
    """
    ### BEGIN SOLUTION
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    finite = m.masked_fill(m == -math.inf, 0.0)
    keep_a, keep_b = torch.exp(m_a - finite), torch.exp(m_b - finite)
    total = keep_a * l_a + keep_b * l_b
    return m, total, keep_a[..., None] * o_a + keep_b[..., None] * o_b
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_merge", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(merge)

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `tiled_attention`** &nbsp; ★★★ · 11 minutes · 6 points
#
# Attention over tiles of keys, with `finished_merge`. The first result equals softmax attention. The second is the
# **log-sum-exp** of each query's scores, the logarithm of the sum of e^score over the keys that it sees. Make no tensor
# with t·s entries, not even a mask.
#
# <details><summary>What must hold</summary>
#
# If `causal`, query i sees the keys up to i + (s − t), and s ≥ t; otherwise every query sees every key, for any s.
# Tiles and scores may be of any size. Use tensors, and work on a whole tile at once. Do not call
# `F.scaled_dot_product_attention` or `flex_attention`.
#
# </details>
# <details><summary>Hint 1: one tile</summary>
#
# Compute the scores of all queries with the tile's keys, and mask them. Then compute the tile's (m, ℓ, o), and merge
# it with the running result, which begins with no key seen. The last tile may be shorter.
#
# </details>
# <details><summary>Hint 2: a tile that a query may not see</summary>
#
# Take t = s = 4, tiles of 2 and the second tile, keys 2 and 3. Query 0 may see neither: its scores are −∞ and −∞, and
# so is their maximum. Then scores − m is NaN, as in exercise 1.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "tiled_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiled_attention(q, k, v, tile, causal=True):
    """softmax(q kᵀ / √d) v, a tile of keys at a time.

    q: (..., t, d). k, v: (..., s, d). tile: keys in a tile.
    Returns the output (..., t, d) and the log-sum-exp of each query's scores (..., t).
    """
    ### BEGIN SOLUTION
    t, s, d = q.shape[-2], k.shape[-2], q.shape[-1]
    i = torch.arange(t, device=q.device)[:, None] + s - t
    state = (torch.full_like(q[..., 0], -math.inf), torch.zeros_like(q[..., 0]),
             torch.zeros_like(q))
    for start in range(0, s, tile):
        keys, values = k[..., start:start + tile, :], v[..., start:start + tile, :]
        scores = q @ keys.mT / math.sqrt(d)                    # (..., t, tile)
        if causal:
            j = torch.arange(start, start + keys.shape[-2], device=q.device)
            scores = scores.masked_fill(j > i, -math.inf)
        m = scores.amax(dim=-1)
        finite = m.masked_fill(m == -math.inf, 0.0)
        powers = torch.exp(scores - finite[..., None])
        state = finished_merge(state, (m, powers.sum(dim=-1), powers @ values))
    m, total, out = state
    return out / total[..., None], m + total.log()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_tiled_attention", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(tiled_attention)

# %% [markdown]
# <div class="card">
#
# **Prediction · `tiles_keep`** &nbsp; 1 minute · no points
#
# The model now computes its attention by your tiles, four of 128 keys. How do the activations compare with those of
# plain attention?
#
# - **A.** About a quarter is left: one tile of four is in memory at a time.
# - **B.** About the vectors alone are left: the matrix of attention weights is never made.
# - **C.** There are as many or more.
# </div>

# %% nbgrader={"grade": false, "grade_id": "tiles_keep", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
tiles_keep = "C"
### STUDENT GETS
# tiles_keep = ...    # "A", "B" or "C"
### END SOLUTION

# %%
model.use_attention(lambda q, k, v: tiled_attention(q, k, v, 128)[0])
table.measure("tiles", step, model, optimiser)

# %% nbgrader={"grade": true, "grade_id": "check_tiles_keep", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("tiles_keep", tiles_keep)

# %% [markdown]
# ## Tiles save memory if the backward pass computes them again
#
# **Tiles alone doubled the activations.** Autograd keeps each tile twice, as masked scores and as powers of e, and what
# `merge` needs besides.
#
# So store no tiles, and compute them again. The backward pass gets q, k, v, the output $y$, its gradient
# $\mathrm{d}y$, and one number per query, the log-sum-exp $\lambda_i = m_i + \ln \ell_i$. Subtracting it takes away the
# maximum and divides by the sum:
#
# $$w_{ij} = e^{S_{ij} - \lambda_i}, \qquad S_{ij} = q_i \cdot k_j / \sqrt d .$$
#
# The rest is the chain rule. From $y_i = \sum_j w_{ij} v_j$ follow
#
# $$\mathrm{d}v_j = \sum_i w_{ij}\, \mathrm{d}y_i, \qquad \mathrm{d}w_{ij} = \mathrm{d}y_i \cdot v_j ,$$
#
# and through the softmax
#
# $$\mathrm{d}S_{ij} = w_{ij}\, (\mathrm{d}w_{ij} - r_i), \qquad
# r_i = \sum_{j'} w_{ij'}\, \mathrm{d}w_{ij'} = \mathrm{d}y_i \cdot y_i .$$
#
# Since $\sum_{j'} w_{ij'} v_{j'} = y_i$, this sum over all keys is one dot product.
#
# <details><summary>Why</summary>
#
# [Lesson 3](../03_scaling/03_scaling.ipynb): $\partial w_{ij'} / \partial S_{ij} = w_{ij'} (\delta_{jj'} - w_{ij})$.
# Multiply by $\mathrm{d}w_{ij'}$ and sum over j'.
#
# </details>

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `tiled_backward`** &nbsp; ★★★ · 12 minutes · 6 points
#
# Return the gradients of q, k and v, without autograd: for each tile of keys compute the weights again, and apply the
# formulas.
#
# <details><summary>What must hold</summary>
#
# `slope` is the gradient of the output; `causal`, t, s, tiles and scores are as in exercise 2: make no tensor with t·s
# entries, and work on a whole tile at once. The results have the type of the inputs, also in 64 bits. The inputs stay
# unchanged.
#
# </details>
# <details><summary>Hint 1: which sums are over tiles</summary>
#
# Which of the three gradients does one tile of keys settle, and to which does every tile add? $S_{ij}$ is a product
# of two vectors, divided by √d: what is its derivative with respect to each?
#
# </details>
# <details><summary>Hint 2: one query and two keys by hand</summary>
#
# Take d = 1, q = 0, keys 1 and 3, values 2 and 6. Both scores are 0, both weights 0.5, and y = 4. Let the slope be 1.
# Then the gradients of the values are 0.5 and 0.5, dw is 2 and 6, and r = 4. So dS is 0.5 · (2 − 4) = −1 and 0.5 · (6
# − 4) = 1, the gradient of q is −1 · 1 + 1 · 3 = 2, and those of the keys are 0, because q is.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "tiled_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiled_backward(q, k, v, out, lse, slope, tile, causal=True):
    """The gradients of softmax(q kᵀ / √d) v, a tile of keys at a time.

    q: (..., t, d). k, v: (..., s, d). out: (..., t, d). lse: log-sum-exp, (..., t).
    slope: gradient of out, (..., t, d). Returns gradients of the shapes of q, k and v.
    """
    ### BEGIN SOLUTION
    t, s, root = q.shape[-2], k.shape[-2], math.sqrt(q.shape[-1])
    i = torch.arange(t, device=q.device)[:, None] + s - t
    means = (slope * out).sum(dim=-1, keepdim=True)              # r, (..., t, 1)
    to_q, to_k, to_v = torch.zeros_like(q), [], []
    for start in range(0, s, tile):
        keys, values = k[..., start:start + tile, :], v[..., start:start + tile, :]
        scores = q @ keys.mT / root
        if causal:
            j = torch.arange(start, start + keys.shape[-2], device=q.device)
            scores = scores.masked_fill(j > i, -math.inf)
        weights = torch.exp(scores - lse[..., None])             # (..., t, tile)
        to_scores = weights * (slope @ values.mT - means) / root
        to_v.append(weights.mT @ slope)
        to_k.append(to_scores.mT @ q)
        to_q = to_q + to_scores @ keys
    return to_q, torch.cat(to_k, dim=-2), torch.cat(to_v, dim=-2)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_tiled_backward", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(tiled_backward)

# %% [markdown]
# In PyTorch, an operation with its own backward pass is a class. `forward` is **not** recorded by autograd; it stores
# in `context` what `backward` needs. `backward` gets the gradient of the output and returns one for each argument of
# `forward`:

# %%
class Tiles(torch.autograd.Function):
    @staticmethod
    def forward(context, q, k, v):
        out, lse = tiled_attention(q, k, v, 128)
        context.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(context, slope):
        return tiled_backward(*context.saved_tensors, slope, 128)

model.use_attention(Tiles.apply)
table.measure("tiles, recomputed", step, model, optimiser)

# %% [markdown]
# **No matrix is left.** The activations are less than a third of the first row's. The step takes about as long as
# with stored tiles, although it computes the weights twice. This is the backward pass of
# **[FlashAttention](../../site/glossary.md#flashattention)** ([Dao et al., 2022](https://arxiv.org/abs/2205.14135)),
# with λ alone as in its second version ([Dao, 2023](https://arxiv.org/abs/2307.08691)).
#
# Your class makes a tensor of each tile for every operation. FlashAttention's **kernel** does all operations on a
# tile before it writes the result ([Measured further](../../site/further.md#lesson-17)). PyTorch's
# `scaled_dot_product_attention` chooses such a kernel where it has one:

# %% mystnb={"image": {"alt": "Two stacked horizontal bars: the bytes of one training step at GPT-2's size. Plain attention: 7.0 GB. Tiles, recomputed: 4.6 GB, without any attention weights, all else the same."}}
model.use_attention(None)
table.measure("fused attention", step, model, optimiser)

gpt2["attention weights"] = 0
bars.add("tiles, recomputed", gpt2)
bars.draw("Recomputed tiles take away all attention weights")

# %% [markdown]
# **The largest part of the bar is gone.** With the kernel the step takes about half as long as with your class, so
# the model uses it from here on; the cause was not measured. (The 4 MB more are copies of the mask.) Most activations
# that are left are vectors, at 4 bytes a number. Are 2 enough?

# %% [markdown]
# ## bfloat16 takes away a third of the vectors
#
# A number in **[bfloat16](../../site/glossary.md#bfloat16)** has 16 bits: one for the sign, eight for the exponent, as
# in float32, and 7 for its digits: almost the same range, in coarser steps.

# %% [markdown]
# <div class="card">
#
# **Prediction · `thousand_small_steps`** &nbsp; 1 minute · no points
#
# In bfloat16, start from 1.0 and add 0.001 a thousand times. What is the result?
#
# - **A.** 1.0
# - **B.** About 1.5
# - **C.** About 2.0
# </div>

# %% nbgrader={"grade": false, "grade_id": "thousand_small_steps", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
thousand_small_steps = "A"
### STUDENT GETS
# thousand_small_steps = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
for kind in (torch.float32, torch.bfloat16):
    total = torch.ones((), dtype=kind)
    for _ in range(1000):
        total = total + 0.001
    print(f"{str(kind):>14}: 1 + 1000 · 0.001 = {total.item():.3f}")

# %% nbgrader={"grade": true, "grade_id": "check_thousand_small_steps", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("thousand_small_steps", thousand_small_steps)

# %% [markdown]
# A training adds small steps to its weights, and in 16 bits they can get lost. So **[mixed
# precision](../../site/glossary.md#mixed-precision)** uses 16 bits for matrix products and their results only. The
# weights that the optimiser changes, sums over many numbers, and the loss stay in 32 bits ([Micikevicius et al.,
# 2018](https://arxiv.org/abs/1710.03740)). PyTorch's `autocast` decides for each operation:

# %%
model.autocast = True
table.measure("bfloat16", step, model, optimiser)

gpt2["vectors"] *= (2 * 4 + 12 * 2) / (12 * 4)      # 2 of 4 bytes and 12 of 2, not 12 of 4
gpt2["copies of weights"] = 2 * N
bars.add("bfloat16", gpt2)

# %% [markdown]
# **The vectors do not shrink to half, and the state does not shrink at all.** Two vectors of each block, the inputs
# of the norms, stay in 32 bits. The other ten take 16 bits, but become twelve: queries, keys and values each keep a
# copy of their input. Autocast also keeps 16-bit copies of the weights.
#
# Nearly half of GPT-2's step still grows with the number of texts. Must all four be in memory at once?

# %% [markdown]
# ## Reading a batch in parts divides the activations
#
# The gradient of a sum is the sum of the gradients, and `.backward()` adds to what is in `.grad`. So cut the batch into
# parts and run one after another, with one `zero_grad` before and one `step` after: each part's activations are freed
# before the next begins. This is **[gradient accumulation](../../site/glossary.md#gradient-accumulation)**.
#
# Until October 2024 widely used trainers accumulated as the cell below does
# ([`transformers`](https://github.com/huggingface/transformers/pull/34191),
# [`torchtune`](https://github.com/pytorch/torchtune/pull/1875)). Its gradients are wrong wherever the parts hold
# different numbers of tokens.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `accumulated_gradients`** &nbsp; fix · ★★☆ · 7 minutes · 4 points
#
# Fix the function. `.grad` must hold the gradients that a single batch of all rows would leave, where the loss is the
# mean over all targets that are not `pad`.
#
# <details><summary>What must hold</summary>
#
# A part may be nothing but padding: you may skip it. What was in `.grad` before is cleared. The backward pass of each
# part runs before the model gets the next. `ids` and `targets` stay unchanged.
#
# </details>
# <details><summary>Hint 1: how much one target counts</summary>
#
# How much does a target count in this code if it is the only one in its part? And if it is one of a hundred?
#
# </details>
# <details><summary>Hint 2: three targets by hand</summary>
#
# One part has 2 targets with losses of 1 and 3, another has 1 target with a loss of 8. The mean of the three is 4,
# the mean of the two means 5. What do you divide 1 + 3 by, and what do you divide 8 by, so that the results add up to
# 4? (`reduction="sum"` adds up and does not divide.)
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "accumulated_gradients", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulated_gradients(model, ids, targets, parts, pad):
    """Leaves the gradients of the whole batch in .grad, computed in parts.

    ids, targets: (b, t). Targets that are `pad` count for nothing; at least one is not.
    """
    model.zero_grad()
    ### BEGIN SOLUTION
    tokens = (targets != pad).sum()
    for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
        logits = model(some_ids).flatten(0, 1)
        loss = F.cross_entropy(logits, some_targets.flatten(), ignore_index=pad,
                               reduction="sum")
        (loss / tokens).backward()
    ### STUDENT GETS
    # for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
    #     logits = model(some_ids).flatten(0, 1)
    #     loss = F.cross_entropy(logits, some_targets.flatten(), ignore_index=pad)
    #     (loss / parts).backward()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_accumulated_gradients", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(accumulated_gradients)

# %% [markdown]
# Each part is one text:

# %%
def step_in_parts():
    accumulated_gradients(model, ids, targets, parts=4, pad=-1)
    optimiser.step()

table.measure("four parts", step_in_parts, model, optimiser)

for kind in ("vectors", "log-probabilities"):
    gpt2[kind] /= 4
bars.add("four parts", gpt2)

# %% [markdown]
# **Vectors and log-probabilities fall to a quarter;** the copies of the weights and of the mask stay. Now one text is
# left, and its vectors are the largest part of the activations. Must they be kept?

# %% [markdown]
# ## A checkpoint keeps a block's input and runs the block twice
#
# **[Checkpointing](../../site/glossary.md#checkpointing)** keeps only the input of each block. The backward pass
# computes each block again, uses it, and frees it ([Chen et al., 2016](https://arxiv.org/abs/1604.06174)).
#
# Your `Checkpoint` is a class like `Tiles`, for a whole block. The parameters are arguments of `forward` too, so that
# autograd knows about them. [Dropout](../../site/glossary.md#dropout) draws random numbers, so the second run must
# start from the same random state.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `checkpointed`** &nbsp; ★★★ · 14 minutes · 5 points
#
# Write both passes of `Checkpoint`. The forward pass keeps only x, besides the block and its parameters. The backward
# pass runs the block again and returns all gradients. Output and gradients are those of `block(x)`, also with dropout.
# `checkpointed` is given.
#
# <details><summary>What must hold</summary>
#
# x may need no gradient, and the block may be used twice. The backward pass leaves `.grad` alone. After each pass the
# random numbers continue as if the block had run once. Do not use `torch.utils.checkpoint`.
#
# </details>
# <details><summary>The functions that you need</summary>
#
# In `backward` autograd records only under `torch.enable_grad()`. Then `torch.autograd.grad(y, inputs, slope,
# allow_unused=True)` returns a tuple with the gradient of each input, None for one that y does not depend on.
# `backward` returns None for an argument of `forward` that has no gradient.
#
# `random_state(device)` returns the state of the random generator; `set_random_state(device, state)` restores it.
# `checkpointed` passes on the parameters that learn; some may be unused.
#
# </details>
# <details><summary>Hint 1: forward</summary>
#
# What does `backward` need? Store x with `context.save_for_backward(x)`, and the rest in attributes such as
# `context.block`.
#
# </details>
# <details><summary>Hint 2: backward by hand</summary>
#
# A block computes y = u·x, with x = 2, u = 3 and a slope of 5. `torch.autograd.grad(y, [x, u], slope)` gives (15,
# 10), and `backward` returns (None, 15, 10). For that, y must come from an x that begins a new graph:
# `x.detach().requires_grad_()`. Which random state is needed before the second run, and which after it?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "checkpointed", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Checkpoint(torch.autograd.Function):
    """A block of which only the input is kept."""

    @staticmethod
    def forward(context, block, x, *parameters):
        """x: (...). Returns block(x). parameters: those of the block that learn."""
        ### BEGIN SOLUTION
        context.block, context.parameters = block, parameters
        context.state = random_state(x.device)
        context.save_for_backward(x)
        return block(x)
        ### END SOLUTION

    @staticmethod
    def backward(context, slope):
        """slope: gradient of the output. Returns None for the block, then gradients."""
        ### BEGIN SOLUTION
        (x,) = context.saved_tensors
        x = x.detach().requires_grad_()
        now = random_state(x.device)
        set_random_state(x.device, context.state)
        with torch.enable_grad():
            y = context.block(x)
        set_random_state(x.device, now)
        inputs = [x, *context.parameters]
        return None, *torch.autograd.grad(y, inputs, slope, allow_unused=True)
        ### END SOLUTION

def checkpointed(block, x):
    """block(x), with the same gradients, keeping x alone until the backward pass."""
    learned = [parameter for parameter in block.parameters() if parameter.requires_grad]
    return Checkpoint.apply(keeping_autocast(block, x.device), x, *learned)

# %% nbgrader={"grade": true, "grade_id": "check_checkpointed", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(checkpointed)

# %% mystnb={"image": {"alt": "Megabytes that autograd keeps, in the course of one training step, three lines. In bfloat16 one mountain, above 40 megabytes in the middle. With four parts four equal hills of 13. With checkpoints 16 humps below 4, four for each text. Below, the first text with checkpoints alone: a low peak of 2 megabytes at the loss, then four of nearly 4 down to 3, where blocks 4, 3, 2 and 1 are computed again."}}
model.run_block = checkpointed
table.measure("checkpoints", step_in_parts, model, optimiser)
table.draw_course(["bfloat16", "four parts", "checkpoints"],
                  "Parts make one hill per text, checkpoints one hump per block",
                  parts=4, peaks=["loss", *(f"block {i} again" for i in (4, 3, 2, 1))])

gpt2["vectors"] = 4 * depth * 1024 * e          # the input of each block
gpt2["copies of weights"] = 2 * n * e            # of the output layer
bars.add("checkpoints", gpt2)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Measured in the small model; below, with checkpoints, the first text. After the loss each block is
# computed again, used and freed. GPT-2 is counted at the loss, its peak: log-probabilities take 206 MB there, a block
# computed again only about 40.
#
# </div>
#
# **The vectors are almost gone, and the step takes about a third longer.** That fits: the forward pass, about a third
# of a step's operations, runs twice. Most of what is left for GPT-2 is state.

# %% [markdown]
# ## Workers can divide the state among them
#
# In **[data parallelism](../../site/glossary.md#data-parallelism)** several **workers** each have a copy of the model
# and take some of the rows. They average their gradients, weighted by their numbers of tokens, and take the same step.
# So all keep the same state.
#
# AdamW changes each parameter without looking at the others. So put all parameters into one vector of length P and cut
# it into one **share** per worker, which keeps the moments of its share only. This is **ZeRO** ([Rajbhandari et al.,
# 2020](https://arxiv.org/abs/1910.02054), section 5). Stage 1 divides the moments, stage 2 the gradients too, and stage
# 3, PyTorch's *fully sharded data parallelism* (FSDP), also the weights.

# %%
plots.diagrams.zero_shares()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** What two workers keep. The width of a box is its bytes per parameter; a dashed box is kept by the
# other worker. After its exchange your step is stage 2.
#
# </div>
#
# Large trainings also divide the computation: **tensor parallelism** cuts every matrix, **pipeline parallelism** the
# stack of layers ([Measured further](../../site/further.md#lesson-17)).
#
# Workers have three exchanges:
#
# | exchange | each worker gives | each worker gets |
# |---|---|---|
# | `group.all_reduce(x)` | x, of any shape | the sum over all workers |
# | `group.reduce_scatter(x)` | a vector (P,) | its own share of the sum, (P / size,) |
# | `group.all_gather(x)` | its share (P / size,) | the shares of all workers in order, (P,) |

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `sharded_step`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Write one worker's part of a training step. The worker has the gradient of the mean loss over its **own** tokens,
# but must step with that of the mean loss over **all** workers' tokens. Get your share of it with one
# `reduce_scatter`, step the optimiser, whose only parameter is `mine`, and return all parameters, with one
# `all_gather`.
#
# <details><summary>What must hold</summary>
#
# Workers may have different numbers of tokens, or none; a gradient is finite in any case. Use `all_reduce` for single
# numbers only. The worker's own gradient stays unchanged. The function is called again for every step.
#
# </details>
# <details><summary>Hint 1: from means to sums</summary>
#
# What is the gradient of the *sum* over a worker's tokens? Which other number do all need?
#
# </details>
# <details><summary>Hint 2: two workers by hand</summary>
#
# One worker has 3 tokens and the gradient (2, 0), the other 1 token and (10, 4). The sums over their tokens are (6,
# 0) and (10, 4), and the mean over four tokens is (4, 1). The first worker steps its parameter with 4 and the second
# with 1. The plain mean of the two gradients would be (6, 2).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sharded_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sharded_step(group, optimiser, mine, gradient, tokens):
    """One worker's part of a step of all parameters.

    group: the worker's place `rank` among `size` workers, and the three exchanges.
    mine: the worker's share of the parameters, (P / size,). gradient: (P,), of the mean
    over its own tokens. tokens: how many, a tensor (). Returns all parameters (P,).
    """
    ### BEGIN SOLUTION
    total = group.all_reduce(tokens)
    mine.grad = group.reduce_scatter(tokens * gradient) / total
    optimiser.step()
    return group.all_gather(mine)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_sharded_step", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(sharded_step)

# %% [markdown]
# Now two processes get two texts each, which they read one by one, in bfloat16 and with checkpoints. (`worker_steps`
# does the same as your function; seconds are the slower worker's.)

# %% mystnb={"image": {"alt": "Six stacked horizontal bars, the bytes of one training step at GPT-2's size: plain attention 7.0 GB, tiles recomputed 4.6, bfloat16 4.3, four parts 2.7, checkpoints 2.3, sharded step 1.6. The attention weights are missing from the second bar on; in bfloat16 the vectors are a third narrower and a narrow part is new, copies of weights; with four parts the vectors and the log-probabilities are a quarter as wide; with checkpoints a thin line of the vectors is left. In the last bar gradients and moments are half as wide, and the weights as wide as before."}}
on_cpu, fresh = (ids.cpu(), targets.cpu()), SmallGPT(**sizes)
if not workers.available():
    print("No processes are started here.")
else:
    found = workers.in_processes(worker_steps, sizes, fresh.state_dict(), *on_cpu, True)
    table.add_workers("sharded step", found)

gpt2["gradients"] /= 2
gpt2["moments"] /= 2
bars.add("sharded step", gpt2)
bars.draw("Each trick makes the step smaller")

# %% [markdown]
# **After the exchange each worker keeps 10 bytes of state per parameter instead of 16**, and the steps are those of a
# single worker ([Measured further](../../site/further.md#lesson-17)). The time, a little over half, fits half the
# texts, without waiting. Until the exchange your worker holds the whole gradient; a real stage 2 sends each block's off
# as it comes.

# %% [markdown]
# ## What each trick takes away says when to use it
#
# | trick | takes away | left of GPT-2's 7.0 GB | use it |
# |---|---|---|---|
# | tiles, recomputed | the attention weights | 4.6 GB | always: as a kernel, it halves the time here |
# | bfloat16 | a third of the vectors, but adds copies of weights | 4.3 GB | for memory; it saved no time here |
# | parts | vectors and log-probabilities of all other parts | 2.7 GB | if the batch does not fit |
# | checkpoints | all vectors but the blocks' inputs, and the blocks' copies of weights | 2.3 GB | if one text does not fit |
# | sharding, stage 2 | gradients and moments of the other shares | 1.6 GB in each of two workers | if the state does not fit |
#
# If the state alone does not fit, shard: no other trick touches it. Otherwise begin at the top, and stop when the step
# fits. In the small model:

# %%
print(table)

# %% [markdown]
# ## Optional: a budget of operations has a best size
#
# Nothing else needs the last two exercises; their points are part of the total.
#
# With enough workers, operations are the limit. A matrix entry costs 2 operations per token in the forward pass and 4
# in the backward pass, so training N parameters on D tokens costs $C \approx 6ND$ ([Kaplan et al.,
# 2020](https://arxiv.org/abs/2001.08361)). For the same C, a larger model reads less text: between too small a model
# and too little text is a best size.
#
# An **[IsoFLOP profile](../../site/glossary.md#isoflop-profile)** finds it: train several sizes with the *same* C, and
# take the minimum of a parabola through the losses against ln N ([Hoffmann et al.,
# 2022](https://arxiv.org/abs/2203.15556), section 3.2).

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `best_size`** &nbsp; ★★☆ · 8 minutes · 3.5 points
#
# Fit a parabola in ln N to the losses by least squares, in 64 bits. Return the size at its minimum. If there
# is none, or it lies below the smallest size or above the largest, return None.
#
# Sizes come in any order and may be far apart. A size may occur several times; at least three sizes differ.
#
# <details><summary>Hint 1: the minimum of a parabola</summary>
#
# Where is the derivative of c₀ + c₁x + c₂x² zero, and for which c₂ is that a minimum? A fit in x − mean(x) is more
# exact.
#
# </details>
# <details><summary>Hint 2: three points by hand</summary>
#
# Let ln N be 0, 2 and 4, and the losses 5, 1 and 5. The parabola is 1 + (x − 2)², so the best size is e² = 7.4. With
# the losses 1, 5 and 1 there is none.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "best_size", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_size(sizes, losses):
    """The size at the minimum of the parabola in ln N through the losses of one budget.

    sizes, losses: lists of as many numbers. Returns a number, or None.
    """
    ### BEGIN SOLUTION
    x = torch.tensor(sizes, dtype=torch.float64).log()
    y = torch.tensor(losses, dtype=torch.float64).unsqueeze(1)
    middle = x.mean()
    powers = torch.stack([torch.ones_like(x), x - middle, (x - middle)**2], dim=1)
    _, slope, curvature = torch.linalg.lstsq(powers, y).solution.flatten()
    best = middle - slope / (2 * curvature)
    if curvature <= 0 or not x.min() <= best <= x.max():
        return None
    return math.exp(best)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_best_size", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(best_size)

# %% [markdown]
# [Besiroglu et al., 2024](https://arxiv.org/abs/2404.10102), fitted a law to the losses of Hoffmann et al.:
#
# $$L(N, D) = 1.8172 + \frac{482.01}{N^{0.3478}} + \frac{2085.43}{D^{0.3658}} .$$
#
# Its best size is known, to test your parabola:

# %% tags=["hide-input", "nbval-check-output"] mystnb={"image": {"alt": "Loss against parameters, the horizontal axis logarithmic. Three bowls of five open markers each, with a parabola through each and a star at its minimum. From one budget to the next the bowl lies lower and further to the right."}}
def law(N, C):
    """The loss of N parameters after C operations."""
    return 1.8172 + 482.01 / N**0.3478 + 2085.43 / (C / (6 * N))**0.3658

ax = plt.subplots(figsize=(6.4, 3.6))[1]
fine = torch.logspace(7, 11, 200_001, dtype=torch.float64)
for number, budget in enumerate((6e18, 1.3e20, 3e21)):
    truth = fine[law(fine, budget).argmin()].item()
    grid = torch.logspace(math.log10(truth) - 0.8, math.log10(truth) + 0.7, 5).double()
    losses = law(grid, budget)
    best = best_size(grid.tolist(), losses.tolist())
    print(f"{budget:.1e} operations: parabola {best / 1e9:.2f}, law {truth / 1e9:.2f} "
          f"billion parameters, {budget / 6 / truth**2:.0f} tokens per parameter")
    x = grid.log()
    powers = torch.stack([torch.ones(5).double(), x, x**2], dim=1)
    fit = torch.linalg.lstsq(powers, losses[:, None]).solution.flatten()
    dense = torch.linspace(x[0], x[-1], 60).double()
    colour = plots.COLOURS[number]
    ax.plot(dense.exp(), fit[0] + fit[1] * dense + fit[2] * dense**2, color=colour,
            linestyle=plots.DASHES[number])
    ax.plot(grid, losses, plots.MARKERS[number], color=colour, linestyle="",
            markerfacecolor="white", label=f"{budget:.1e} operations")
    ax.plot(best, fit[0] + fit[1] * math.log(best) + fit[2] * math.log(best)**2, "*",
            color=colour, markersize=13)
ax.set(xscale="log", xlabel="parameters N", ylabel="loss by the law, nats per token",
       title="A larger budget wants a larger model and more text")
ax.legend(fontsize=8.5)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Computed from the law. Open markers: losses. Lines: parabolas. Stars: the best sizes by your
# function.
#
# </div>
#
# **The parabola is right to about one percent, and the tokens per parameter fall slowly.** So a larger budget is
# best divided about evenly between a larger model and more text. With
# [Chinchilla's](https://arxiv.org/abs/2203.15556) 20 tokens per parameter, $C = 120\, N^2$, so $N = \sqrt{C/120}$.

# %% [markdown]
# ## Optional: float16 overflows where bfloat16 has room
#
# [float16](../../site/glossary.md#float16) has 5 bits for its exponent and 10 for its digits: finer steps than
# bfloat16, and a smaller range, up to 65,504. A vector with 64 entries of 40 has the product 102,400 with itself, which
# becomes ∞, though its score, divided by √64, is only 12,800.
#
# float16 has no positive numbers below 6e-8, so gradients far below that become 0. The loss is therefore multiplied by
# a large factor, the **[loss scale](../../site/glossary.md#loss-scale)**, and the gradients are divided by it before
# they are clipped or used.

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `scaled_scores_early`** &nbsp; ★★☆ · 7 minutes · 4 points
#
# Return the scores $q k^\top / \sqrt d$, with or without an axis for heads, but divide **before** the product, so
# that no intermediate number overflows, in float16 too. The result must have the dtype of q and k.
#
# <details><summary>Hint 1: two ways to divide</summary>
#
# Either the queries by the root, or queries and keys each by the fourth root, `d ** 0.25`. Is anything left to divide?
#
# </details>
# <details><summary>Hint 2: one query and one key, with numbers</summary>
#
# Let d = 16, and let all entries of q be 4 and all entries of k be 6. The product is 384, and the score is 96. With
# `16 ** 0.25 = 2` the entries become 2 and 3, and their product is already 96.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "scaled_scores_early", "locked": false, "schema_version": 3, "solution": true, "task": false}
def scaled_scores_early(q, k):
    """The scores of attention, divided before the product.

    q: (b, t, d) or (b, h, t, d). k: (b, s, d) or (b, h, s, d).
    Both are of one floating-point type, and so is the result.
    Returns (b, t, s) or (b, h, t, s): entry [..., i, j] is q_i·k_j / √d.
    """
    ### BEGIN SOLUTION
    root = q.shape[-1] ** 0.25
    return (q / root) @ (k / root).transpose(-2, -1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_scaled_scores_early", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(scaled_scores_early)

# %% [markdown]
# ## What you can do now
#
# **What fills the memory of a training step, and which trick takes away which part of it?** Most of GPT-2's step is
# activations, above all attention weights and vectors; the rest is state. Recomputed tiles take away the attention
# weights, bfloat16, parts and checkpoints most other activations, and sharding a share of the state.
#
# **A question to think about**
#
# <details><summary>A model with 7 billion parameters is to be trained with AdamW on GPUs with 80 GB. How many does it
# take at least, if everything is divided among them?</summary>
#
# Two. With stage 3 each keeps half of 112 GB, which leaves 24 for activations. With stage 2 it keeps all weights and
# half of the rest, 70 GB.
#
# </details>
#
# **Further reading**
#
# - **[Rajbhandari et al., *ZeRO: memory optimizations toward training trillion parameter models*,
#   2020](https://arxiv.org/abs/1910.02054)**, sections 3 and 5: where memory goes, and how to divide it.
# - [Dao et al., *FlashAttention*, 2022](https://arxiv.org/abs/2205.14135), section 3.1: tiles and traffic.
#
# **Next:** [lesson 18, *Since GPT-2*](../18_since_gpt2/18_since_gpt2.ipynb)
