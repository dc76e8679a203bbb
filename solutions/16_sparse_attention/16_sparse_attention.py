# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 16 · Sparse attention
#
# *Not every position needs to see every other*
#
# In attention every position is compared with every other, so twice the text costs four times as much. There are two
# ways out. **Sparse attention** leaves pairs out, by a pattern that is fixed in advance. The other way computes every
# pair and stores none, because a softmax can be computed piece by piece: the idea of **FlashAttention**. You build
# both, and measure what each one saves, in seconds and in bytes.
#
# | | |
# |---|---|
# | **You will build** | three patterns and their reach, attention in a band that never makes a t × t matrix, and a softmax in tiles; and you fix a buggy window |
# | **You need** | lessons [3](../03_scaling/03_scaling.ipynb), [5](../05_masking/05_masking.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb) and [9](../09_character_generator/09_character_generator.ipynb) |
# | **It takes** | about 120 minutes: eight exercises, 29 points, and three predictions |
# | **It computes** | for about a minute in one cell, which you may stop; seconds everywhere else |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions that look, s positions that are
# looked at, h heads, d = e/h. A window has w positions, and l is the length of a block or of a stride. In a mask True
# means "may look", as in lesson 5.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import time
import warnings

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from matplotlib.colors import ListedColormap
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.toy.digits import printed_digits
from helpers.device import device
from helpers.lesson import start
from helpers.parts.generator import bits_per_byte
from helpers.parts.sparse import PixelTransformer, raster
from helpers.parts.sparse import merge as finished_merge
from helpers.progress import progress

check = start("16_sparse_attention")

# %% [markdown]
# ## The square of t
#
# How much does one causal head with d = 16 cost on the CPU? A clock counts processor seconds, and a hook in autograd
# counts the bytes that are kept for the backward pass, each tensor once.

# %%
def attention(q, k, v, mask):
    """Computes every score. q, k, v: (..., t, d). mask: (t, t)."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ v

def seconds(compute, times=3):
    """Processor seconds of one call, the best of some."""
    best = math.inf
    for _ in range(times):
        before = time.process_time()
        compute()
        best = min(best, time.process_time() - before)
    return best

def kept_bytes(compute):
    """What autograd keeps for the backward pass."""
    kept = {}
    def keep(x):
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        result = compute()
    return sum(kept.values())

def one_head(t, d=16):
    """Queries, keys and values, (1, 1, t, d)."""
    generator = torch.Generator().manual_seed(t)
    drawn = (torch.randn(1, 1, t, d, generator=generator) for _ in range(3))
    return [x.requires_grad_() for x in drawn]

def slope(lengths, costs):
    """How steep a line is on log-log paper, from its middle to its end."""
    middle = len(lengths) // 2
    rise = math.log(costs[-1] / costs[middle])
    return rise / math.log(lengths[-1] / lengths[middle])

# %%
lengths = [256, 512, 1024, 2048, 4096]
causal = {t: torch.ones(t, t, dtype=torch.bool).tril() for t in lengths}
plain = {"seconds": [], "bytes": []}
for t in lengths:
    q, k, v = one_head(t)
    plain["seconds"].append(seconds(lambda: attention(q, k, v, causal[t])))
    plain["bytes"].append(kept_bytes(lambda: attention(q, k, v, causal[t])))
    print(f"t = {t:>5,}: {1000 * plain['seconds'][-1]:>7.1f} ms, "
          f"{plain['bytes'][-1] / 1e6:>6.1f} MB kept")
print(f"slope on log-log paper: {slope(lengths, plain['seconds']):.2f} for the time, "
      f"{slope(lengths, plain['bytes']):.2f} for the memory")

# %% [markdown]
# A slope of 2 means the square: ten times the text, a hundred times the cost. The time may rise even faster, once a
# matrix no longer fits into the processor's caches. And this is one head of one layer. Yet the weights of a row sum to
# 1, so in a long text most of them are close to 0. Which pairs could be left out beforehand, without looking at the
# scores?

# %% [markdown]
# ## A window
#
# The first guess: what matters is near. In **sliding-window attention** position i sees the last w positions, including
# itself. A well-known library still had the bug of the cell below in 2025.
#
# **What every check asks.** Masks are booleans. New tensors are created on the device of the inputs, or on `device`
# where a function takes one. Inputs stay unchanged. If results are floating-point numbers, gradients must flow to the
# inputs.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `local_mask`** &nbsp; fix · ★☆☆ · 4 minutes · 2 points
#
# Find the bug and fix it: a causal window of w positions, for any t ≥ 1 and w ≥ 1, even if w is larger than t.
#
# <details><summary>Hint 1: count a row</summary>
#
# Call it with t = 6 and w = 3 and count what the last row sees. With w = 1, what should each position see?
#
# </details>
# <details><summary>Hint 2: distances</summary>
#
# With w = 3, position 5 may see 5, 4 and 3: the distances i − j are 0, 1 and 2. Which distances does the cell allow?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "local_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def local_mask(t, w, device=None):
    """A causal window: position i sees the last w positions, itself among them.

    Returns (t, t), booleans.
    """
    places = torch.arange(t, device=device)
    i, j = places[:, None], places[None, :]
    ### BEGIN SOLUTION
    return (j <= i) & (j > i - w)
    ### STUDENT GETS
    # return (j <= i) & (j >= i - w)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_local_mask", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(local_mask)

# %% [markdown]
# <details><summary>The same bug in public: read this once your check is green</summary>
#
# The window is $\text{mask}_{ij} = (i - w < j \le i)$. FlashAttention's kernel is told how many positions to look back,
# and the position itself is not among them. `transformers` passed it w instead of w − 1, so models saw one position too
# many ([issue 39408](https://github.com/huggingface/transformers/issues/39408)). The year before, two ways of computing
# the attention of one model had disagreed by one ([issue
# 29623](https://github.com/huggingface/transformers/issues/29623)).
#
# </details>
#
# ## Strided and fixed
#
# A window misses what is far away. [Child et al., 2019](https://arxiv.org/abs/1904.10509) proposed two patterns, each
# made of two sparse halves that reach everything together. $A^{(1)}_i$ and $A^{(2)}_i$ are the sets of positions that i
# may see in either half; some heads get the first, the others the second (all of them causal, j ≤ i):
#
# - **Strided**: $A^{(1)}_i = \{\max(0, i-l), \ldots, i\}$, what is near, and
#   $A^{(2)}_i = \{j : (i - j) \bmod l = 0\}$, every l-th position back from i.
# - **Fixed**: $A^{(1)}_i = \{j : \lfloor j/l \rfloor = \lfloor i/l \rfloor\}$, the block of l positions that contains
#   i, and $A^{(2)}_i = \{j : j \bmod l \in [l-c,\, l)\}$, the last c columns of every block. They summarise the block
#   for all later positions.
#
# Mind the ends: the near half of the strided pattern, from i − l to i, has l + 1 positions, not l.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `strided_masks`** &nbsp; ★★☆ · 6 minutes · 2 points
#
# Return both halves of the strided pattern, $A^{(1)}$ first, as one tensor (2, t, t), for any t ≥ 1 and l ≥ 1.
#
# <details><summary>Hint 1: distances</summary>
#
# Both halves depend only on the distance i − j. Make the matrix of distances once, from one `torch.arange` as a column
# and one as a row. `torch.stack` makes one tensor of two matrices.
#
# </details>
# <details><summary>Hint 2: row 4 by hand</summary>
#
# Take t = 6 and l = 3. The distances of row 4 are 4, 3, 2, 1, 0, −1. Distances 0 to 3 are near: positions 1 to 4.
# Distances 3 and 0 are on the stride: positions 1 and 4. In PyTorch −3 % 3 is 0 too: which row has −3 among its
# distances?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "strided_masks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def strided_masks(t, l, device=None):
    """The two halves of strided attention: near, and every l-th position back.

    Returns (2, t, t), booleans, both causal.
    """
    ### BEGIN SOLUTION
    places = torch.arange(t, device=device)
    distance = places[:, None] - places
    past = distance >= 0
    return torch.stack([past & (distance <= l), past & (distance % l == 0)])
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_strided_masks", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(strided_masks)

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `fixed_masks`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Return both halves of the fixed pattern, $A^{(1)}$ first, as one tensor (2, t, t), for any t ≥ 1, l ≥ 1 and c from 1
# to l. If l does not divide t, the last block ends with the text.
#
# <details><summary>Hint 1: number of the block</summary>
#
# `//` divides and rounds down. With l = 4, positions 4, 5, 6 and 7 all give 1: they are in one block.
#
# </details>
# <details><summary>Hint 2: summary columns</summary>
#
# Whether j is a summary column depends only on j: that is a row (t,), which broadcasts. With l = 4 and c = 2 the
# summary columns are 2, 3, 6, 7, 10, … Their remainders j % 4 are 2, 3, 2, 3, 2, …
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "fixed_masks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fixed_masks(t, l, c=1, device=None):
    """The two halves of fixed attention: a block of l, and each block's last c columns.

    Returns (2, t, t), booleans, both causal.
    """
    ### BEGIN SOLUTION
    places = torch.arange(t, device=device)
    past = places[:, None] >= places
    same_block = places[:, None] // l == places // l
    summary = places % l >= l - c
    return torch.stack([past & same_block, past & summary])
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_fixed_masks", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(fixed_masks)

# %% [markdown]
# In the second half of the fixed pattern, the first l − c positions see nothing at all. Their softmax would be 0/0;
# such a head outputs zeros there ([lesson 5](../05_masking/05_masking.ipynb)), and the position relies on the other
# heads and the residual connection.
#
# As in the paper, here is what a pixel sees if a picture is read row by row, with 6 × 6 pixels and l = 6:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four columns: full, window of 6, strided with l = 6, fixed with l = 6. Above, a picture of 6 by 6 pixels and what pixel 27, in row 4, sees. Full: all pixels before it. Window: its own row and two pixels of the row above. Strided: the window of seven in one colour, and the pixels straight above it in another. Fixed: its own row in one colour, and the last pixel of each row above in another. Below, the same as 36 by 36 matrices: a triangle; a band; a band and parallel diagonals; a staircase of small triangles and vertical columns."}}
nothing = torch.zeros(36, 36, dtype=torch.bool)
halves = {"full": (torch.ones(36, 36, dtype=torch.bool).tril(), nothing),
          "window, w = 6": (local_mask(36, 6), nothing),
          "strided, l = 6": strided_masks(36, 6),
          "fixed, l = 6": fixed_masks(36, 6)}
colours, pixel = ListedColormap(plots.COLOURS[:2] + ["#444444"]), 27
figure, axes = plt.subplots(2, 4, figsize=(7.4, 4.1), layout="compressed")
for (above, below), (name, (first, second)) in zip(axes.T, halves.items()):
    kinds = torch.where(first, 1, torch.where(second, 2, 0))
    seen = kinds[pixel].clone()
    seen[pixel] = 3
    for ax, matrix in ((above, seen.view(6, 6)), (below, kinds)):
        shown = matrix.numpy().astype(float)
        shown[shown == 0] = float("nan")
        ax.imshow(shown, cmap=colours, vmin=1, vmax=3)
        ax.patch.set(hatch="////", edgecolor="#c8c8c8", facecolor="white", zorder=-1)
        ax.grid(False)
        ax.set(xticks=[0, 5] if ax is above else [0, 35],
               yticks=[0, 5] if ax is above else [0, 35])
    above.set(title=name, xlabel="column")
    below.set(xlabel="position j")
axes[0, 0].set_ylabel("row")
axes[1, 0].set_ylabel("position i")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above: a picture, and what its pixel 27 (dark) sees: blue by the first half of the pattern, orange
# by the second alone. It does not see hatched pixels. Below: the same for all 36 pixels; row i shows what pixel i sees.
#
# </div>
#
# ## How many pairs
#
# The last row of the strided pattern has about l + t/l entries, and no row has more. A small l makes the stride
# expensive, a large l the window; the sum is smallest at l = √t, and then the pairs grow like **t√t** instead of t².
# For exact numbers, add up the rows. A causal mask has 1 + 2 + … + t = t(t + 1)/2 pairs. A window of l has l pairs in
# each row, minus those missing in the first rows: (l − 1) + (l − 2) + … + 0.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `attended_pairs`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# How many pairs (i, j) does a pattern have over t positions, if t is a multiple of l? The patterns are "full" (causal),
# "local" (a window of l), "strided" and "fixed" (c = 1). For the last two, add up both halves: a pair in both counts
# twice. Write closed forms: t may be in the millions, and such a mask would not fit into memory. Return a number; a
# float such as 6.0 is fine.
#
# <details><summary>Hint 1: from one to the next</summary>
#
# The near half of the strided pattern is a window of l + 1. A block of l positions is a small causal triangle, and
# there are t/l of them.
#
# </details>
# <details><summary>Hint 2: the second halves, row by row</summary>
#
# Take t = 6 and l = 3. On the stride, the six rows see 1, 1, 1, 2, 2, 2 positions; of the summary columns they see 0,
# 0, 1, 1, 1, 2. What do the rows of a third block see?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "attended_pairs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attended_pairs(kind, t, l):
    """How many pairs (i, j) a pattern has, both halves added up: a number. l divides t.

    kind: "full", "local" (a window of l), "strided" or "fixed" (c = 1).
    """
    ### BEGIN SOLUTION
    blocks = t // l
    if kind == "full":
        return t * (t + 1) // 2
    if kind == "local":
        return t * l - l * (l - 1) // 2
    if kind == "strided":
        near = t * (l + 1) - (l + 1) * l // 2
        return near + l * blocks * (blocks + 1) // 2
    triangles = blocks * l * (l + 1) // 2
    return triangles + l * blocks * (blocks - 1) // 2 + blocks
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_attended_pairs", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(attended_pairs)

# %% mystnb={"image": {"alt": "Pairs against l on logarithmic axes, for t = 4,096. Strided and fixed both fall from the left, have a minimum near l = 64, and rise to the right. The two curves coincide on the left; further right the fixed one is lower. A dotted line above both marks the full causal mask; strided comes close to it at the right end."}}
t = 4096
strides = [2**power for power in range(1, 12)]
plots.curves({kind: (strides, [attended_pairs(kind, t, l) for l in strides])
              for kind in ("strided", "fixed")}, "l", "pairs", log="xy",
             landmarks={"full": attended_pairs("full", t, 1)})
plt.minorticks_off()
plt.xticks(strides, strides)
plt.show()
for kind in ("strided", "fixed"):
    best = min(strides, key=lambda l: attended_pairs(kind, t, l))
    share = attended_pairs(kind, t, best) / attended_pairs("full", t, 1)
    print(f"{kind:>7}: fewest pairs at l = {best}, {share:.1%} of all causal pairs")
print(f"the root of t is {math.isqrt(t)}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each point is a pattern with another l. Left of the minimum the second half is expensive, right of
# it the first. The bottom is flat: any l near √t will do. The fixed pattern's blocks are cheaper than a window: only
# the last position of a block sees all of it.
#
# </div>
#
# ## What reaches what
#
# A pair that is left out is not lost, because a network has several layers. In the first, position 3 can read position
# 1; in the second, position 9 reads position 3, and with it position 1. A layer passes on what its mask allows, and the
# residual connection passes on each position to itself. So what output i may depend on after several layers is a
# product of boolean matrices: does i see, in the upper layer, **some** j' to which input j has got in the layers below?

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `connected`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Given the masks of 1 to 16 layers, which output may depend on which input? Because of the residual connection each
# position reaches itself, even if the mask hides it. The masks need not be causal, and t may be several hundred. Return
# (t, t), booleans.
#
# <details><summary>Hint 1: one layer</summary>
#
# With one layer the result is the mask itself, with True on the diagonal.
#
# </details>
# <details><summary>Hint 2: two layers by hand</summary>
#
# In layer 1 position 1 sees 0; in layer 2 position 2 sees 1. Write both masks as 0 and 1, with their diagonals, and
# multiply the upper one by the lower one by hand. What does an entry count?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "connected", "locked": false, "schema_version": 3, "solution": true, "task": false}
def connected(masks):
    """Which output may depend on which input, through layers with residual connections.

    masks: a list of (t, t), booleans, one for each layer, the first layer first.
    Returns (t, t), booleans: entry [i, j] says that output i may depend on input j.
    """
    ### BEGIN SOLUTION
    itself = torch.eye(masks[0].shape[0], dtype=torch.bool, device=masks[0].device)
    reach = itself
    for mask in masks:
        reach = (mask | itself).float() @ reach.float() > 0
    return reach
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_connected", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(connected)

# %% [markdown]
# First the windows. The reach of a stack of windows grows by w − 1 per layer:

# %% tags=["nbval-check-output"]
for depth in (1, 2, 4):
    reach = connected([local_mask(64, 5)] * depth)[-1].sum().item() - 1
    print(f"window of 5, depth {depth}: {reach:>2} positions back, "
          f"(w − 1) · depth = {4 * depth}")

# %% [markdown]
# The first Mistral 7B was built this way: a window of 4,096 in 32 layers, so a reach of 131,040 positions, which [its
# paper](https://arxiv.org/abs/2310.06825) rounds to 131K. Now two layers, each with **one half** of the fixed pattern.
# If the blocks come first, every pair is connected: in the first layer the last position of j's block reads j, and in
# the second all later positions read that summary.

# %% [markdown]
# <div class="card">
#
# **Prediction · `fixed_order`** &nbsp; 1 minute · no points
#
# t = 256 and l = 16; there are 32,896 causal pairs. Now the **summary columns come first** and the blocks second. How
# many pairs are connected?
#
# - **A.** All of them, as in the other order.
# - **B.** About half.
# - **C.** About one in eight.
# </div>

# %% nbgrader={"grade": false, "grade_id": "fixed_order", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
fixed_order = "C"
### STUDENT GETS
# fixed_order = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
t, l = 256, 16
near, stride = strided_masks(t, l)
block, columns = fixed_masks(t, l)
orders = {"fixed: blocks, then columns": [block, columns],
          "fixed: columns, then blocks": [columns, block],
          "strided: near, then stride": [near, stride],
          "strided: stride, then near": [stride, near],
          "the stride twice": [stride, stride],
          "the near half twice": [near, near]}
for name, masks in orders.items():
    count = connected(masks).sum().item()
    print(f"{name:>27}: {count:>6,} of {attended_pairs('full', t, l):,} pairs, "
          f"{count / attended_pairs('full', t, l):.1%}")

# %% nbgrader={"grade": true, "grade_id": "check_fixed_order", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("fixed_order", fixed_order)

# %% [markdown]
# With both halves in every layer, in different heads, the order does not matter, and depth does the rest. But the fifth
# line is a trap that was really set: in the authors' published code the mode called "strided" is the second half
# **alone** ([issue 7](https://github.com/openai/sparse_attention/issues/7)). A network with only this half is l
# separate networks, one for each remainder.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three maps of 48 outputs by 48 inputs, shaded by the number of layers that a connection takes. Window of 7: three bands beside each other, 1, 2 and 3 layers, and the lower left corner hatched. Both halves of strided: one layer on the band and the diagonals, two for all the rest of the triangle. The stride alone: diagonals at distances that are multiples of 6, all of them one layer, everything else hatched."}}
def layers_needed(masks_of_a_layer, depth=3):
    """After how many equal layers each pair is connected; NaN where it is not: (t, t)."""
    needed = torch.full(masks_of_a_layer.shape, float("nan"))
    for number in range(depth, 0, -1):
        needed[connected([masks_of_a_layer] * number)] = number
    return needed

near, stride = strided_masks(48, 6)
drawn = {"window, w = 7": local_mask(48, 7), "strided, both halves": near | stride,
         "the stride alone": stride}
figure, axes = plt.subplots(1, 3, figsize=(7.4, 2.7), layout="compressed")
for ax, (name, mask) in zip(axes, drawn.items()):
    picture = ax.imshow(layers_needed(mask), cmap="viridis", vmin=0.5, vmax=3.5)
    ax.patch.set(hatch="////", edgecolor="#c8c8c8", facecolor="white", zorder=-1)
    ax.grid(False)
    ax.set(title=name, xlabel="input j", xticks=[0, 47], yticks=[0, 47])
axes[0].set_ylabel("output i")
figure.colorbar(picture, ax=axes, ticks=[1, 2, 3], label="layers", shrink=0.8)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** After how many layers output i can depend on input j: dark after one, light after three, hatched
# not even then. All layers of a map have the same mask.
#
# </div>
#
# ## What a mask saves
#
# Does a mask save time?

# %% [markdown]
# <div class="card">
#
# **Prediction · `mask_saves`** &nbsp; 1 minute · no points
#
# With t = 2,048 and a window of 64, about 3 in 100 pairs are left. Compared with attention **without any mask**,
# attention with this mask takes
#
# - **A.** as long, or longer.
# - **B.** about half.
# - **C.** a small part of the time: hardly any pairs are left.
# </div>

# %% nbgrader={"grade": false, "grade_id": "mask_saves", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
mask_saves = "A"
### STUDENT GETS
# mask_saves = ...    # "A", "B" or "C"
### END SOLUTION

# %%
t = 2048
q, k, v = one_head(t)
window = local_mask(t, 64)
without = seconds(lambda: torch.softmax(q @ k.mT / math.sqrt(16), dim=-1) @ v, times=7)
masked = seconds(lambda: attention(q, k, v, window), times=7)
print(f"{window.float().mean():.1%} of all pairs are left, and the mask takes "
      f"{masked / without:.2f} times the time of no mask")

# %% nbgrader={"grade": true, "grade_id": "check_mask_saves", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("mask_saves", mask_saves)

# %% [markdown]
# All t² scores are computed and stored, and most are then masked. To save anything, those must not be computed at all:
# **gather** what belongs together, and multiply small matrices. For a window of w, cut the sequence into **chunks** of
# w. A query needs at most the w − 1 positions before it, and these are in its own chunk and the one before. So each
# chunk of w queries needs 2w keys: scores (b, h, t/w, w, 2w) instead of (b, h, t, t), that is 2tw numbers instead of
# t².

# %%
plots.diagrams.band_chunks()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above: twelve positions in chunks of w = 4; each chunk of queries uses its own keys and those of
# the chunk before. Below: the scores of one chunk, w rows and 2w columns. The empty half is masked.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `banded_attention`** &nbsp; ★★★ · 12 minutes · 6 points
#
# Causal attention in a window of w positions, in chunks, with scores divided by √d. t need not be a multiple of w, w
# may be larger than t, and scores may be of any size. Use tensors throughout. None of them may have t² entries, not
# even a mask: with one head, t = 256 and a w near 8, the check refuses t²/2 entries or more. Over chunks you may
# call `F.scaled_dot_product_attention`, but not `flex_attention`.
#
# <details><summary>Hint 1: make it fit</summary>
#
# `F.pad(x, (0, 0, before, after))` puts zeros before and after along the positions. Queries need zeros after, to fill
# the last chunk. Keys and values need these and one chunk of w **before**, which chunk 0 lacks. Then `x.unfold(2, 2 *
# w, w)` cuts axis 2 into pieces of 2w that begin w apart: (b, h, chunks, d, 2w), with the piece **last**. So keys are
# already transposed, and values need `.mT`. At the end, cut the result back to t.
#
# </details>
# <details><summary>Hint 2: one chunk by hand</summary>
#
# Take w = 3. The 6 keys of a chunk are at places 0 to 5, and its queries are at places 3, 4 and 5. The query at 4 may
# see places 2, 3 and 4. In chunk 0, places 0, 1 and 2 are padding, so there it sees only 3 and 4. What shape has a mask
# that differs from chunk to chunk?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "banded_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def banded_attention(q, k, v, w):
    """Causal attention in a window of w positions, without a tensor of t² entries.

    q, k, v: (b, h, t, d). Returns (b, h, t, d).
    """
    ### BEGIN SOLUTION
    b, h, t, d = q.shape
    chunks = math.ceil(t / w)
    rest = chunks * w - t
    queries = F.pad(q, (0, 0, 0, rest)).view(b, h, chunks, w, d)
    keys = F.pad(k, (0, 0, w, rest)).unfold(2, 2 * w, w)        # (b, h, chunks, d, 2w)
    values = F.pad(v, (0, 0, w, rest)).unfold(2, 2 * w, w)
    i = torch.arange(w, 2 * w, device=q.device)[:, None]        # places among the 2w keys
    j = torch.arange(2 * w, device=q.device)
    seen = ((j <= i) & (j > i - w)).repeat(chunks, 1, 1)        # (chunks, w, 2w)
    seen[0] &= j >= w                                           # nothing before chunk 0
    scores = queries @ keys / math.sqrt(d)                      # (b, h, chunks, w, 2w)
    weights = torch.softmax(scores.masked_fill(~seen, -math.inf), dim=-1)
    return (weights @ values.mT).reshape(b, h, chunks * w, d)[:, :, :t]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_banded_attention", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(banded_attention)

# %% [markdown]
# The results are the same as with the mask. How much faster are they computed?

# %%
w = 64
band = {"seconds": [], "bytes": []}
for t, plain_bytes in zip(lengths, plain["bytes"]):
    q, k, v = one_head(t)
    window = local_mask(t, w)
    masked = seconds(lambda: attention(q, k, v, window))
    band["seconds"].append(seconds(lambda: banded_attention(q, k, v, w), times=9))
    band["bytes"].append(kept_bytes(lambda: banded_attention(q, k, v, w)))
    print(f"t = {t:>5,}: the mask takes {masked / band['seconds'][-1]:>5.1f} times as long "
          f"as the band, and keeps {plain_bytes / band['bytes'][-1]:>4.1f} times as much")
print(f"slope on log-log paper: {slope(lengths, band['seconds']):.2f} for the time, "
      f"{slope(lengths, band['bytes']):.2f} for the memory")

# %% [markdown]
# The band's cost grows with t, not with its square: the longer the text, the larger the ratio. For short texts there is
# little to gain: padding, cutting and many small products have costs of their own. Strided and fixed patterns can be
# gathered in the same way: a reshape puts the positions of one remainder, or of one block, side by side.
#
# A missing mask is hard to notice. In one library the window never reached the attention code that is used in training
# ([`unsloth`, pull request 8253](https://github.com/unslothai/unsloth/pull/8253)): there was no error, and only texts
# longer than w were affected. A gradient map at t = w + 1 finds this ([lesson 5](../05_masking/05_masking.ipynb)).

# %% [markdown]
# ## A picture is a sequence too
#
# Read row by row, a picture of 12 × 12 pixels is a text of `12 * 12 = 144` tokens, and each token is a grey level. A
# model that predicts the next pixel can finish a picture, as lesson 9's finishes a sentence. The pictures here are
# digits in the typefaces that come with matplotlib, in four sizes and five places, with four grey levels. Three whole
# typefaces are [held out](../../site/glossary.md#held-out-data).

# %% mystnb={"image": {"alt": "Two rows of twelve small pictures of digits in grey. The upper row, of faces that are trained on: upright, slanted, bold and thin ones of several sizes. The lower row, of the three faces that are held out."}}
side, levels = 12, 4
train_pictures, held_out_pictures = (
    torch.tensor(part) for part in printed_digits(side, sizes=4)
)
train, held_out = raster(train_pictures, levels), raster(held_out_pictures, levels)
share = torch.bincount(train.flatten(), minlength=levels) / train.numel()
alone = bits_per_byte(-(share * share.log()).sum()).item()
print(f"{len(train):,} pictures to train on, {len(held_out):,} held out, "
      f"t = {train.shape[1]}")
print(f"{alone:.2f} bits per pixel for a guess by how frequent each grey level is")

def show_pictures(rows, labels):
    """Rows of pictures of grey levels, each row a list of (t,)."""
    size = (7.2, 0.72 * len(rows))
    figure, axes = plt.subplots(len(rows), 12, figsize=size, squeeze=False)
    for line, row, label in zip(axes, rows, labels):
        for ax, ids in zip(line, row):
            ax.imshow(ids.cpu().view(side, side), cmap="Greys", vmin=0, vmax=levels - 1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center")
    plt.show()

show_pictures([train[::281][:12], held_out[::47][:12]], ["trained on", "held out"])

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each small square is a sequence of grey levels. The typefaces of the lower row never occur in
# training.
#
# </div>
#
# For a pixel, what is near? Its left neighbour is 1 back, the pixel above it 12. "Above" means the same remainder
# modulo 12. A model that predicts pixels reads its input shifted by one. So with l = 12 the stride of the strided
# pattern sees the column to the *left* of the pixel that is predicted; the pixel above it is the farthest in the near
# half. The fixed pattern covers the row and the last columns of the picture.
#
# A pattern is a guess about data. The guess is not learned: it is an **inductive bias**, an assumption that
# a model makes before it has seen any data.

# %% [markdown]
# <div class="card">
#
# **Prediction · `best_for_pictures`** &nbsp; 1 minute · no points
#
# Three models of the same size, with the same first weights, on the same pictures in the same order: every head sees
# everything before it (**full**); two heads near and two along the stride (**strided**); two heads in the block and two
# on the summary columns (**fixed**, c = 2). After 300 steps, which needs the fewest bits per pixel on unseen typefaces?
#
# - **A.** Full: it can look wherever the others look, and elsewhere too.
# - **B.** Strided.
# - **C.** Fixed.
# </div>

# %% nbgrader={"grade": false, "grade_id": "best_for_pictures", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
best_for_pictures = "B"
### STUDENT GETS
# best_for_pictures = ...    # "A", "B" or "C"
### END SOLUTION

# %%
class Run:
    """A model in training, and its curve."""

    def __init__(self, masks):
        torch.manual_seed(0)
        self.model = PixelTransformer(levels, 32, 2, masks.to(device()), columns=side)
        self.model.to(device())
        self.optimiser = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.98))
        self.looks = []

    def step(self, ids, rate):
        loss = F.cross_entropy(self.model(ids).flatten(0, 1), ids.flatten())
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.step()

@torch.no_grad()
def bits_a_pixel(model, ids):
    nats = sum(F.cross_entropy(model(part).flatten(0, 1), part.flatten(), reduction="sum")
               for part in ids.split(50))
    return bits_per_byte(nats / ids.numel()).item()

t = side * side
patterns = {"full": torch.ones(1, t, t, dtype=torch.bool).tril().repeat(4, 1, 1),
            "strided": strided_masks(t, side).repeat_interleave(2, dim=0),
            "fixed": fixed_masks(t, side, c=2).repeat_interleave(2, dim=0)}
runs = {name: Run(masks) for name, masks in patterns.items()}
steps, done = 300, 0
generator = torch.Generator().manual_seed(0)
judged = held_out[::2].to(device())
for name, masks in patterns.items():
    print(f"{name:>7}: {masks.float().sum().item() / 4:,.0f} pairs a head, on average")

# %%
try:
    for number in progress(range(done, steps), "training"):
        ids = train[torch.randint(len(train), (16,), generator=generator)].to(device())
        rate = 0.004 * min(1, (number + 1) / 30, 2 * (1 - number / steps) + 0.05)
        for run in runs.values():
            run.step(ids, rate)
        done = number + 1
        if done % 50 == 0:
            for run in runs.values():
                run.looks.append((done, bits_a_pixel(run.model, judged)))
except KeyboardInterrupt:
    print(f"Stopped after {done} of {steps} steps. Run this cell again to go on.")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bits a pixel on unseen faces against training step, 50 to 300, three falling curves. The strided one lies below the other two all the way; full and fixed cross, and full ends below fixed."}}
if done < 50:
    print("The curves have their first point after 50 steps: go on with the training above.")
else:
    plots.curves({name: tuple(zip(*run.looks)) for name, run in runs.items()},
                 "step", "held-out bits per pixel")
    plt.show()
    for name, run in runs.items():
        print(f"{name:>7}: {run.looks[-1][1]:.3f} bits per pixel after {done} steps")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Lower is better. All three see the same pictures; what differs is where their heads may look.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_best_for_pictures", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("best_for_pictures", best_for_pictures)

# %% [markdown]
# A likely reason: the full model could learn to look along rows and columns, but has to find them; the strided one has
# them built in, up to the shift by one column. The paper saw the same order with far larger models ([Child et
# al.](https://arxiv.org/abs/1904.10509), table 2, bits per dimension or byte; fewer is better):
#
# | [table 2](https://arxiv.org/abs/1904.10509) | full | strided | fixed |
# |---|---|---|---|
# | CIFAR-10, pictures | 2.82 | **2.80** | 2.85 |
# | enwik8, text | 1.00 | 1.13 | **0.99** |
#
# On text the stride is the wrong guess: no byte has another one above it. A good guess helps most with few steps or
# little data. With more of both the full model may learn where to look, though on CIFAR-10 it was not ahead.
#
# One training with one seed proves little. So a longer comparison was made once, and **recorded**: pictures of 16 × 16
# pixels, four seeds, and a window of 16 (**local**) beside the other three. All use masks, so a step takes equally long
# for each.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Held-out bits per pixel against step, 100 to 600, four falling lines with bands, the widest that of fixed. At the end fixed is highest at 0.45, then full at 0.41, local at 0.37 and strided at 0.36. Strided begins above local and crosses it before step 300; full begins above fixed and crosses it before step 200."}}
long = recorded("patterns")
sizes, kinds = long["settings"], ("full", "local", "strided", "fixed")
print(f"$ {long['command']}\non: {long['machine']}\n")

def along_steps(kind):
    """Steps, and the bits after them, a row for each seed."""
    seeds = [[row for row in long["curve"] if row["seed"] == seed]
             for seed in range(sizes["seeds"])]
    bits = [[row[f"{kind}_bits"] for row in rows] for rows in seeds]
    return [row["step"] for row in seeds[0]], bits

plots.curves({kind: along_steps(kind) for kind in kinds}, "step", "held-out bits per pixel")
plt.show()
print(f"bits a pixel after {sizes['steps']} steps, mean of {sizes['seeds']} seeds:")
for kind in kinds:
    print(f"{kind:>7}: {long['result'][f'{kind}_bits_a_pixel']:.3f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded. Each line is the mean of four seeds; its band runs from the lowest to the highest.
#
# </div>
#
# With each of the four seeds the strided model is better than the full one, and the fixed one is last. The window is
# not far behind strided: the farthest pixel that it sees is the one above.
#
# Now let this lesson's strided model finish some digits from their upper half:

# %% mystnb={"image": {"alt": "Two rows of twelve digits of unseen faces. Above, as they are. Below, the upper half is the same and the lower half is drawn by the model: strokes continue from the upper half; some end as another digit, some as none."}}
@torch.no_grad()
def finish(model, ids, known, generator):
    """The pixels from number `known` on, drawn one after another. ids: (b, t)."""
    ids = ids.clone()
    for place in range(known, ids.shape[1]):
        chances = torch.softmax(model(ids)[:, place] / 0.7, dim=-1)
        drawn = torch.multinomial(chances.cpu(), 1, generator=generator)
        ids[:, place] = drawn[:, 0].to(ids)
    return ids

given = held_out[::47][:12].to(device())
known = t // 2
drawn = finish(runs["strided"].model, given, known, torch.Generator().manual_seed(1))
show_pictures([given, drawn], ["as printed", "finished"])

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The upper six rows of each picture are given; in the lower row of pictures, the model has drawn
# the other six, pixel by pixel. It was trained for under a minute and draws strokes better than digits.
#
# </div>
#
# ## Everything computed, nothing stored
#
# The second way leaves no pair out. What takes the memory is the matrix of weights, but we need only its product with
# the values. Could that be added up as the keys arrive, a **tile** of them at a time?
#
# This saves time, too. An A100 GPU has 40 or 80 GB of slow memory, and for each of its 108 processors 192 KB that are
# about ten times as fast ([Dao et al., 2022](https://arxiv.org/abs/2205.14135), section 2.1). A large t × t matrix does
# not fit into the fast memory: mask, softmax and product each fetch it from the slow one. A tile fits.

# %%
plots.diagrams.tiles_in_memory()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The order of work in [FlashAttention-2](https://arxiv.org/abs/2307.08691). What is in fast memory
# at one moment is coloured, below and at its place in slow memory. A tile of queries stays, with its m, ℓ and o
# (explained next), while all keys and values pass.
#
# </div>
#
# The softmax makes this hard: each weight is divided by the sum over the whole row, and before the exponential the
# row's maximum is subtracted, so that nothing overflows ([lesson 3](../03_scaling/03_scaling.ipynb)). Both are known
# only at the end. But both can be **running** values. For the keys so far, keep three things per query:
#
# - m, the largest score;
# - ℓ, the sum of $e^{S_j - m}$;
# - o, the sum of $e^{S_j - m}\, v_j$, a vector.
#
# Attention over these keys is o/ℓ. Now other keys arrive, with their own (m, ℓ, o). If the new maximum m' is larger,
# the sums so far are relative to the wrong number. One factor corrects them, because $e^{S - m'} = e^{m - m'} e^{S -
# m}$:
#
# $$m' = \max(m_a, m_b), \qquad \ell' = e^{m_a - m'} \ell_a + e^{m_b - m'} \ell_b, \qquad
# o' = e^{m_a - m'} o_a + e^{m_b - m'} o_b .$$
#
# This is **online softmax** ([Milakov and Gimelshein, 2018](https://arxiv.org/abs/1805.02867)). It is exact, up to
# rounding.

# %%
plots.diagrams.tiles_arriving()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One query and six keys in three tiles, from left to right. Each tile is summed by itself; the
# state (m, ℓ) is merged with it and passed on to the next. In the second step the maximum rises from 2 to 4, so what
# was summed before shrinks by $e^{2-4}$.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `merge`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Merge two partial results (m, ℓ, o) over different keys. In some rows one of them, or both, may have seen no key yet:
# m = −∞, ℓ = 0 and o = 0. If both have seen none, so has the result. Scores may be of any size: nothing may overflow or
# be NaN, nor may gradients if at least one part has seen a key. Do not call `finished_merge`.
#
# <details><summary>Hint 1: shapes</summary>
#
# m and ℓ are (...,), o is (..., d): a factor for o needs one more axis.
#
# </details>
# <details><summary>Hint 2: nothing and nothing</summary>
#
# In three rows $m_a$ is 2, −∞, −∞ and $m_b$ is 4, 4, −∞. The new maximum is 4, 4, −∞, and $m_a - m'$ is −2, −∞ and NaN.
# With 4, 4, 0 in place of the maximum, the factors for a are e^−2, 0, 0.
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
# −∞ − (−∞) is NaN, and PyTorch's own CPU kernel once ran into it, in tiles that are wholly masked ([pull request
# 130014](https://github.com/pytorch/pytorch/pull/130014)).

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `tiled_attention`** &nbsp; ★★★ · 11 minutes · 6 points
#
# Attention over tiles of keys, with `finished_merge` (exercise 7). The result equals softmax attention for every size
# of tile and for scores of any size. If `causal`, query i sees the keys up to i + (s − t), as in [lesson
# 15](../15_transformer_xl/15_transformer_xl.ipynb), and s ≥ t; otherwise every query sees every key, for any s. Use
# tensors throughout. None of them may have t·s entries, not even a mask: with one head, t = s = 256 and tiles of about
# 16, the check refuses t²/2 entries or more.
#
# Work on a whole tile at once: with tiles four times as large, less than
# two thirds of the operations must be left. Do not call `F.scaled_dot_product_attention` or `flex_attention`.
#
# <details><summary>Hint 1: one tile</summary>
#
# Compute the scores of all queries with the tile's keys, and mask them. Then compute the tile's (m, ℓ, o), and merge it
# with the state, which begins with no key seen. The last tile may be shorter.
#
# </details>
# <details><summary>Hint 2: a tile that a query may not see</summary>
#
# Take t = s = 4, tiles of 2 and the second tile, keys 2 and 3. Query 0 may see neither: its scores are −∞ and −∞, and
# so is their maximum. Then scores − m is NaN, as in exercise 7, even before the merge.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "tiled_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiled_attention(q, k, v, tile, causal=True):
    """softmax(q kᵀ / √d) v, a tile of keys at a time.

    q: (..., t, d). k, v: (..., s, d). tile: keys in a tile. Returns (..., t, d).
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
    _, total, out = state
    return out / total[..., None]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_tiled_attention", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(tiled_attention)

# %% [markdown]
# Now compare all ways, among them `F.scaled_dot_product_attention` (SDPA for short), which the blocks of lesson 7 use.
# A hook under PyTorch's operations notes the largest tensor that is made on each way.

# %%
from torch.utils._python_dispatch import TorchDispatchMode

class Largest(TorchDispatchMode):
    """Notes the largest tensor that is made meanwhile, in bytes."""

    bytes = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        found = function(*arguments, **(options or {}))
        for x in found if isinstance(found, (tuple, list)) else [found]:
            if isinstance(x, torch.Tensor):
                self.bytes = max(self.bytes, x.untyped_storage().nbytes())
        return found

def largest_bytes(compute):
    with torch.no_grad(), Largest() as watched:
        compute()
    return watched.bytes

tile = 128
ways = {
    "mask": lambda q, k, v: attention(q, k, v, causal[q.shape[-2]]),
    "band, w = 64": lambda q, k, v: banded_attention(q, k, v, w),
    "tiles of 128": lambda q, k, v: tiled_attention(q, k, v, tile),
    "SDPA": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
}
cost = {name: {"ms": [], "MB made": [], "MB kept": []} for name in ways}
for t in lengths:
    q, k, v = one_head(t)
    for name, way in ways.items():
        cost[name]["ms"].append(1000 * seconds(lambda: way(q, k, v)))
        cost[name]["MB made"].append(largest_bytes(lambda: way(q, k, v)) / 1e6)
        cost[name]["MB kept"].append(kept_bytes(lambda: way(q, k, v)) / 1e6)
print(f"t = {lengths[-1]:,}" + "".join(f"{what:>10}" for what in cost["mask"]))
for name, found in cost.items():
    print(f"{name:>13}" + "".join(f"{values[-1]:>10.1f}" for values in found.values()))
q, k, v = one_head(lengths[-1])
apart = (tiled_attention(q, k, v, tile) - ways["SDPA"](q, k, v)).abs().max().item()
print(f"tiles and SDPA differ by at most {apart:.0e}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels against t, both axes logarithmic, for mask, band, tiles and SDPA. Left, milliseconds: the mask rises most steeply and is slowest at the end; tiles are slower than the mask for short texts and faster for the longest; SDPA lies below both; the band rises gently and is lowest at the end. Right, largest tensor in megabytes: the mask rises twice as steeply as the others; band and tiles coincide; SDPA is lowest."}}
figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.3), layout="compressed")
for ax, what, label in zip(axes, ("ms", "MB made"), ("milliseconds", "largest tensor, MB")):
    plots.curves({name: (lengths, found[what]) for name, found in cost.items()}, "t", label,
                 log="xy", ax=ax)
    ax.minorticks_off()
    ax.set_xticks(lengths, lengths)
axes[0].get_legend().remove()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Both axes are logarithmic: a cost of t² is a line twice as steep as a cost of t. Left, the time of
# one forward pass; right, the largest tensor that it makes: 2tw = 128t numbers for both band and tiles.
#
# </div>
#
# - **Time.** Tiles multiply as often as the mask does. With short texts the loop makes them slower; with the longest
#   they are faster, probably because a tile fits into the processor's caches, its fast memory. SDPA does the same in
#   one kernel, and skips tiles that lie wholly in the future.
# - **Made.** The mask's largest tensor has t² numbers, the tiles' t · tile, and SDPA's t · d.
# - **Kept.** For the backward pass our tiles keep even more than the mask, because autograd keeps every tile.
#   FlashAttention ([Dao et al., 2022](https://arxiv.org/abs/2205.14135)) keeps two numbers per row, m and ℓ, and
#   recomputes the scores in the backward pass; [FlashAttention-2](https://arxiv.org/abs/2307.08691) (2023) keeps one,
#   m + log ℓ. Recomputing costs multiplications but saves traffic from slow memory: at t = 1,024 FlashAttention made
#   training GPT-2 three times as fast as with Hugging Face's code of 2022.
#
# Sparse patterns change *how much* is computed, FlashAttention *how much of it is stored*. The two can be combined.

# %% [markdown]
# ## What to use
#
# PyTorch has two functions. `F.scaled_dot_product_attention` chooses a kernel by itself; with `is_causal=True` it needs
# no mask, if t = s (for t < s its triangle begins in the upper left corner, lesson 15). And `flex_attention` takes a
# pattern as a **function** of two positions. It finds out in advance which *blocks* of the matrix are empty, and a
# compiled kernel skips those. Without `torch.compile`, as here, it is right but slow.

# %%
def window_rule(batch, head, i, j):
    return (j <= i) & (i - j < 64)

q, k, v = (x.detach() for x in one_head(512))
blocks = create_block_mask(window_rule, None, None, 512, 512, device="cpu")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")    # that it is not compiled
    flexible = flex_attention(q, k, v, block_mask=blocks)
print(f"{blocks.sparsity():.0f} % of the blocks are empty")
same = torch.allclose(flexible, banded_attention(q, k, v, 64), atol=1e-5)
print("the same as the band:", same)

# %% [markdown]
# Published models use patterns. [Longformer](https://arxiv.org/abs/2004.05150) combines windows of 512 with a few
# positions that see everything and are seen by all. The first [Mistral 7B](https://arxiv.org/abs/2310.06825) had
# windows in all its layers, and version 0.2 in none; [Gemma 2](https://arxiv.org/abs/2408.00118) has them in every
# second one.

# %% [markdown]
# ## What you can do now
#
# You can measure how a cost grows; write a pattern as a mask, count its pairs and say how far it reaches through depth;
# turn a mask into gathered blocks, which is what saves time; say what a pattern assumes about its data; and compute an
# exact softmax in pieces, without ever storing a whole row.
#
# **Three questions to think about**
#
# <details><summary>1. A window of w in every layer reaches (w − 1) · depth back. Why does a model not use all of
# it?</summary>
#
# Reach says what *may* be passed on. Every layer has to pass on a distant token, each time among many others in a
# vector of the same width, and the training rewards that only when the token is needed.
#
# </details>
# <details><summary>2. Your tiles go over the keys. What would change if they went over the queries
# instead?</summary>
#
# Nothing would have to be merged: each row of the softmax is within one part (tile, s), and there are t/tile parts.
# That saves memory too, if a whole row of scores fits. FlashAttention does both.
#
# </details>
# <details><summary>3. Attention is a function on sets, and a mask says which members of the set may see which. What
# would the matrix look like for a picture *and* its caption in one sequence?</summary>
#
# It has blocks: row and column among pixels, a causal triangle among words, and a block between the two, full if each
# word may see the whole picture. The structure of molecules, tables or a family tree can be written into that matrix
# too. It is a guess, and it is not learned.
#
# </details>
#
# **Further reading**
#
# - **[Child et al., *Generating long sequences with sparse transformers*, 2019](https://arxiv.org/abs/1904.10509)**,
#   section 4: the patterns; figure 3 is the picture above.
# - [Dao et al., *FlashAttention*, 2022](https://arxiv.org/abs/2205.14135), section 3.1: tiles, recomputation, and why
#   traffic is what counts.
# - [Milakov and Gimelshein, *Online normalizer calculation for softmax*, 2018](https://arxiv.org/abs/1805.02867): two
#   pages.
# - [Rabe and Staats, *Self-attention does not need O(n²) memory*, 2021](https://arxiv.org/abs/2112.05682): the same
#   without a kernel, in a few lines.
# - [Beltagy et al., *Longformer*, 2020](https://arxiv.org/abs/2004.05150), section 3: windows and global tokens.
#
# **Next:** [lesson 17, *Going big*](../17_going_big/17_going_big.ipynb)
