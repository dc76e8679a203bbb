# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 16 · Sparse attention
#
# *Leaving pairs out*
#
# In attention every position is compared with every other: twice the text, four times the scores. **Does a model need
# all these pairs, and what does it forget without them?** **Sparse attention** leaves out most pairs, by a pattern.
# **Linear attention** adds all that it has read into one matrix of fixed size. You first see what each of them forgets,
# and then make both fast.
#
# | | |
# |---|---|
# | **You will build** | two patterns and their reach, linear attention with a gate, and both in chunks, without a t × t matrix; and you fix a buggy window |
# | **You need** | lessons [3](../03_scaling/03_scaling.ipynb), [5](../05_masking/05_masking.ipynb) and [7](../07_transformer_block/07_transformer_block.ipynb) |
# | **It takes** | about 75 minutes: six exercises, 23 points, and three predictions |
# | **It computes** | for about half a minute in one cell, which you may stop; seconds everywhere else |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, h heads, d = e/h. A window
# has w positions, and l is the length of a stride. In a mask True means "may look". What every check asks is on [the
# page for students](../../site/students.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.device import device
from helpers.lesson import start
from helpers.progress import progress, shortened

check = start("16_sparse_attention")

# %% [markdown]
# ## A window keeps what is near
#
# In **sliding-window attention** position i sees the last w positions, including itself. A well-known library still
# had the bug of this cell in 2025.

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
# The window is $\text{mask}_{ij} = (i - w < j \le i)$. FlashAttention's kernel is told how many positions to look
# back. `transformers` passed it w instead of w − 1, so models saw one position too many ([issue
# 39408](https://github.com/huggingface/transformers/issues/39408)). [Issue
# 29623](https://github.com/huggingface/transformers/issues/29623) is an earlier case.
#
# In `unsloth`, the window never reached the attention code on some machines, and there was no error ([pull request
# 8253](https://github.com/unslothai/unsloth/pull/8253)).
#
# </details>
#
# ## A stride adds what is far
#
# In the **strided** pattern of [Child et al., 2019](https://arxiv.org/abs/1904.10509) some heads see what is near,
# and the others every l-th position. In either half, position i may see the set
#
# $$A^{(1)}_i = \{\max(0, i-l), \ldots, i\} \qquad\text{or}\qquad A^{(2)}_i = \{j \le i : (i - j) \bmod l = 0\} .$$
#
# A row has about l near positions and t/l on the stride. The sum is smallest at l = √t, and then the number of pairs
# grows like t√t instead of t².

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `strided_masks`** &nbsp; ★★☆ · 6 minutes · 2 points
#
# Return both halves of the strided pattern, $A^{(1)}$ first, as one tensor (2, t, t), for any t ≥ 1 and l ≥ 1. The
# near half has l + 1 positions, not l.
#
# <details><summary>Hint 1: distances</summary>
#
# Both halves depend only on the distance i − j. Make the matrix of distances once, from one `torch.arange` as a
# column and one as a row. `torch.stack` makes one tensor of two matrices.
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
# <details><summary>A bug in public: read this once your check is green</summary>
#
# In the authors' code the mode called "strided" is the second half **alone** ([issue
# 7](https://github.com/openai/sparse_attention/issues/7)). Then the positions fall into l groups that never exchange
# anything.
#
# </details>
#
# ## Layers pass on what one layer leaves out
#
# A pair that is left out need not be lost. With l = 6, position 3 reads the near position 1 in the first layer. In
# the second, position 9 reads position 3, 6 back on the stride, and with it position 1. So in the upper layer, output
# i reaches input j if it sees **some** j' that already reaches j.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `connected`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Given the masks of 1 to 16 layers, which output may depend on which input? Because of the residual connection each
# position reaches itself, even if the mask hides it. The masks need not be causal, and t may be several hundred.
# Return (t, t), booleans.
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

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two maps of 48 outputs by 48 inputs, shaded by the number of layers that a connection takes. Window of 7: three bands beside each other, 1, 2 and 3 layers, and the lower left corner hatched, the future white. Strided: one layer on the band and on diagonals six apart, two for all the rest of the triangle."}}
def layers_needed(masks_of_a_layer, depth=3):
    """After how many equal layers each pair is connected; NaN where it is not: (t, t)."""
    needed = torch.full(masks_of_a_layer.shape, float("nan"))
    for number in range(depth, 0, -1):
        needed[connected([masks_of_a_layer] * number)] = number
    return needed

drawn = {"window, w = 7": local_mask(48, 7),
         "strided, both halves": strided_masks(48, 6).any(0)}
figure, axes = plt.subplots(1, 2, figsize=(6, 3.1), layout="compressed")
figure.suptitle("Two layers of the strided pattern connect everything", fontsize=11)
for ax, (name, mask) in zip(axes, drawn.items()):
    picture = ax.imshow(layers_needed(mask), cmap="viridis", vmin=0.5, vmax=3.5)
    ax.patch.set(hatch="////", edgecolor="#c8c8c8", facecolor="white", zorder=-1)
    ax.fill([-0.5, 47.5, 47.5], [-0.5, -0.5, 47.5], color="white", zorder=-0.5)  # the future
    ax.grid(False)
    ax.set(title=name, xlabel="input j", xticks=[0, 47], yticks=[0, 47])
axes[0].set_ylabel("output i")
figure.colorbar(picture, ax=axes, ticks=[1, 2, 3], label="layers", shrink=0.8)
plt.show()
pairs = 48 * 49 // 2
for name, mask in drawn.items():
    count = connected([mask, mask]).sum().item()
    print(f"{name:>20}: two layers connect {count:>5,} of {pairs:,} causal pairs, "
          f"{count / pairs:.0%}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** After how many layers output i can depend on input j: dark after one, light after three, hatched
# not even then. All layers of a map have the same mask. The future is empty.
#
# </div>
#
# **With the strided pattern two layers connect everything.** The reach of windows grows by only w − 1 per layer.
#
# ## What a pattern loses depends on the data
#
# A path need not be used. Three models that predict the next pixel of a digit, in 16 × 16 pixels read row by row, were
# trained once and **recorded**. They differ only in what a head sees: all before it (**full**), a **window** of w = 16,
# or **strided** with l = 16 (half of the heads see what is near, half the stride; about one causal pair in ten).

# %% [markdown]
# <div class="card">
#
# **Prediction · `fewer_pairs`** &nbsp; 1 minute · no points
#
# After 600 steps, how many bits per pixel does the strided model need on unseen typefaces, compared with the full
# one?
#
# - **A.** More, with every seed: it sees a tenth of the pairs.
# - **B.** About the same: what it cannot see in one layer it sees in two.
# - **C.** Fewer, with every seed.
# </div>

# %% nbgrader={"grade": false, "grade_id": "fewer_pairs", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
fewer_pairs = "C"
### STUDENT GETS
# fewer_pairs = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"]
long = recorded("patterns")
sizes, kinds = long["settings"], {"full": "full", "local": "window", "strided": "strided"}
print(f"$ {long['command']}\non: {long['machine']}\n")
print(f"bits per pixel on unseen typefaces after {sizes['steps']} steps, by seed:")
for kind, name in kinds.items():
    found = long["result"]["pictures"][kind]
    print(f"{name:>8}: " + ", ".join(f"{bits:.3f}" for bits in found))

# %% nbgrader={"grade": true, "grade_id": "check_fewer_pairs", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("fewer_pairs", fewer_pairs)

# %% [markdown]
# **After 600 steps on these pictures, both sparse models are ahead of the full one, with each of four seeds.** A
# pattern is a guess about the data that the model does not have to learn, an **inductive bias**. Why these two
# guesses help was not tested.
#
# A wrong guess costs: in [Child et al.](https://arxiv.org/abs/1904.10509), table 2, the strided pattern needs 1.13 bits
# per byte on text, and full attention 1.00. (A pattern made for text, their *fixed*, needs 0.99.)
#
# ## One layer can keep a sum of everything
#
# So far, what is far back arrives through several layers, and each has to pass it on. How much can **one** layer keep?
# Without the softmax, the query can be taken out of the sum:
#
# $$y_i = \sum_{j \le i} (q_i \cdot k_j)\, v_j = q_i\, S_i, \qquad S_i = \sum_{j \le i} k_j^\top v_j .$$
#
# Here $q_i$, $k_j$ and $v_j$ are rows, so $k_j^\top v_j$ is a matrix (d, d). Their sum $S_i$ is the **state**: all
# that the layer knows of the past, **of the same size whatever t is**. What was written under the key $k_j$ is read
# by a query that points the same way, and keys that overlap are read together. This is **linear attention**
# ([Katharopoulos et al., 2020](https://arxiv.org/abs/2006.16236), who make q and k positive and divide by the sum of
# the products; our models have a LayerNorm instead).
#
# A sum never lets go: write 2 and then 3 under the same key of length 1, and it reads 5. So each head computes from the
# input a **gate** $g_i$ between 0 and 1, which multiplies the old state first (0.5 makes that 4, nearer to 3):
#
# $$S_i = g_i\, S_{i-1} + k_i^\top v_i, \qquad y_i = q_i\, S_i .$$
#
# **Gated linear attention** ([Yang et al., 2023](https://arxiv.org/abs/2312.06635)) has a gate per component of the
# key. One per head, as here, is the recurrence of Mamba-2 ([Dao and Gu, 2024](https://arxiv.org/abs/2405.21060)).

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `recurrent_attention`** &nbsp; ★★☆ · 7 minutes · 4 points
#
# Go through the positions, one at a time, by the two formulas. `log_g` holds the logarithms of the gates, because
# products of gates become sums. Return all outputs, and the last state. If a state is handed over, go on from there,
# and leave that tensor unchanged. Values may be wider or narrower than keys.
#
# <details><summary>Hint 1: shapes of one position</summary>
#
# `k[:, :, i]` is (b, h, d) and `v[:, :, i]` is (b, h, d_v). The matrix that they write is (b, h, d, d_v): which axis
# does each of them need? A gate (b, h) needs two more axes.
#
# </details>
# <details><summary>Hint 2: two positions by hand</summary>
#
# With d = d_v = 1, keys 1 and 1, values 2 and 3, and gates of 0.5, the states are 2 and 0.5 · 2 + 3 = 4. Queries 1
# and 10 read 2 and 40.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "recurrent_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def recurrent_attention(q, k, v, log_g, state=None):
    """Linear attention with a gate, a position at a time.

    q, k: (b, h, t, d). v: (b, h, t, d_v). log_g: (b, h, t), logarithms of the gates, ≤ 0.
    state: (b, h, d, d_v), from what came before; None is a state of zeros.
    Returns y (b, h, t, d_v) and the last state (b, h, d, d_v).
    """
    ### BEGIN SOLUTION
    if state is None:
        state = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], device=k.device)
    outputs = []
    for i in range(q.shape[2]):
        written = k[:, :, i, :, None] * v[:, :, i, None, :]    # (b, h, d, d_v)
        state = log_g[:, :, i, None, None].exp() * state + written
        outputs.append(q[:, :, i:i + 1] @ state)
    return torch.cat(outputs, dim=2), state
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_recurrent_attention", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(recurrent_attention)

# %% [markdown]
# The same for all positions at once: let $L_i = \log g_0 + \ldots + \log g_i$. What position j wrote has passed the
# gates of j + 1 to i when i reads it, and their product is $e^{L_i - L_j}$. So
#
# $$y_i = \sum_{j \le i} e^{L_i - L_j}\, (q_i \cdot k_j)\, v_j .$$
#
# ## With equal memory, each way forgets something else
#
# How much can such a state hold? Write values, each one of 16 vectors, under random keys of length 1, with gates of
# 1. Then ask for each with its own key:

# %% tags=["hide-input", "nbval-check-output"] mystnb={"image": {"alt": "The share of right answers against the number of values in a state, from 4 to 256, the horizontal axis logarithmic, with a dotted line for a guess. Three falling lines. The state of 8 by 8 falls at once and is near the guess at the right end. The state of 16 by 16 lies to the right of it, and the state of 32 by 32 further right: it stays near 1 up to 16 values and is at about a third at the right end."}}
def share_read(d, number, codes=16, tries=40):
    """The share of right answers: `number` values under random keys, in a state of d × d."""
    generator = torch.Generator().manual_seed(0)
    keys = F.normalize(torch.randn(tries, 1, number, d, generator=generator), dim=-1)
    vectors = F.normalize(torch.randn(codes, d, generator=generator), dim=-1)
    values = torch.randint(codes, (tries, 1, number), generator=generator)
    log_g = torch.zeros(tries, 1, number)                     # gates of 1
    _, state = recurrent_attention(keys, keys, vectors[values], log_g)
    return ((keys @ state @ vectors.mT).argmax(dim=-1) == values).float().mean().item()

numbers, widths = [4, 8, 16, 32, 64, 128, 256], (8, 16, 32)
read = {f"{d} × {d}": [share_read(d, number) for number in numbers] for d in widths}
plots.curves({name: (numbers, shares) for name, shares in read.items()},
             "values in the state", "share of right answers", landmarks={"a guess": 1 / 16},
             log="x", title="The more values a state holds, the more often it is wrong")
plt.xticks(numbers, numbers)
plt.minorticks_off()
plt.ylim(0, 1.05)
plt.show()
for name, shares in read.items():
    print(f"state of {name:>7}: right for {shares[numbers.index(32)]:.2f} of 32 values")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** No training; 40 states for each point. The answer is the vector with the largest product with what
# is read.
#
# </div>
#
# **The more values a state holds, the more often it is wrong. A wider state holds more.** What is read under one key is
# disturbed by all values whose keys overlap with it.
#
# Trained models choose their keys. A model reads a program of 64 assignments, `x = 3`, `y = 5`, `x = 7`, and is asked
# after each of them for the present value of one variable. There are 32 variables and 16 values, all random. Asked for
# x after `x = 7`, the right answer is the **last** value, 7. A model that still answers 3 has not forgotten the 3. It
# has mixed old and new. The last value may also be far back.
#
# Each model is one layer with one head, so nothing arrives through other layers. Keys and values come from the
# assignments, the query from the variable that is asked for; only the way from these to $y$ differs. With d = 32, a
# window of 16 keeps 16 keys and 16 values: 1,024 numbers, as many as a state of 32 × 32. Full attention keeps 64 keys
# and 64 values after the last assignment: 4,096 numbers.

# %% [markdown]
# <div class="card">
#
# **Prediction · `same_memory`** &nbsp; 1 minute · no points
#
# All three keep 1,024 numbers. Which is right most often?
#
# - **A.** The window: what it keeps, it keeps exactly.
# - **B.** The state with a gate.
# - **C.** The state without a gate: it never forgets anything.
# </div>

# %% nbgrader={"grade": false, "grade_id": "same_memory", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
same_memory = "B"
### STUDENT GETS
# same_memory = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"]
VARIABLES, VALUES, LENGTH = 32, 16, 64

def programs(b, generator):
    """names (b, t + 1), all but the first are asked for; values (b, t); answers (b, t),
    -100 where a variable has no value yet; and how many assignments ago it got it (b, t)."""
    names = torch.randint(VARIABLES, (b, LENGTH + 1), generator=generator)
    values = torch.randint(VALUES, (b, LENGTH), generator=generator)
    same = (names[:, 1:, None] == names[:, None, :-1]).tril()
    last = torch.where(same, torch.arange(LENGTH), -1).amax(dim=-1)
    answers = values.gather(1, last.clamp(min=0)).masked_fill(last < 0, -100)
    return names, values, answers, torch.arange(LENGTH) - last

def in_window(q, k, v, w):
    """Attention in a window of w positions."""
    return F.scaled_dot_product_attention(q, k, v, local_mask(q.shape[-2], w, q.device))

def gated(q, k, v, log_g):
    """What the loop of exercise 4 computes, for all positions at once: the sum over j."""
    total = log_g.cumsum(dim=-1)
    decay = (total[..., :, None] - total[..., None, :]).tril().exp()
    return (q @ k.mT * decay).tril() @ v

memories = {      # how y (b, 1, t, d) is computed from q, k, v and the logarithms of gates
    "full": lambda q, k, v, log_g: in_window(q, k, v, LENGTH),
    "window": lambda q, k, v, log_g: in_window(q, k, v, 16),
    "state, no gate": lambda q, k, v, log_g: (q @ k.mT).tril() @ v,
    "state, gate": gated}

class Memory(nn.Module):
    """Answers after each assignment: (b, t, VALUES). kind: one of `memories`."""

    def __init__(self, kind, d=32, e=64):
        super().__init__()
        self.kind = kind
        self.names, self.values = nn.Embedding(VARIABLES, e), nn.Embedding(VALUES, e)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, e))
        self.to_q, self.to_k, self.to_v = (nn.Linear(e, d, bias=False) for _ in range(3))
        self.to_gate = nn.Linear(e, 1)
        nn.init.constant_(self.to_gate.bias, 3.0)    # gates begin near 1
        self.norm, self.to_logits = nn.LayerNorm(d), nn.Linear(d, VALUES)

    def forward(self, names, values):
        asked = self.names(names[:, 1:]) + self.places
        x = self.names(names[:, :-1]) + self.values(values) + self.places
        q, k, v = self.to_q(asked)[:, None], self.to_k(x)[:, None], self.to_v(x)[:, None]
        log_g = F.logsigmoid(self.to_gate(x)).mT     # (b, 1, t)
        y = memories[self.kind](q, k, v, log_g)
        return self.to_logits(self.norm(y[:, 0]))

def trained(kind, seed, steps=200):
    """A model after `steps` steps, each on 32 new programs."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Memory(kind).to(device())
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
    for step in range(shortened(steps)):
        names, values, answers, _ = (x.to(device()) for x in programs(32, generator))
        loss = F.cross_entropy(model(names, values).flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = 0.02 * min(1, (step + 1) / 20, 2 * (1 - step / steps) + 0.02)
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
    return model

edges = [0, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64]

@torch.no_grad()
def shares_right(model):
    """The share of right answers on 2,000 new programs: of all questions, of those whose
    answer is one of the last 16 assignments, of the others; a list by distance; and the
    share of the wrong answers that are an earlier value of the variable."""
    names, values, answers, back = programs(2000, torch.Generator().manual_seed(99))
    given = model(names.to(device()), values.to(device())).argmax(dim=-1).cpu()    # (b, t)
    same = (names[:, 1:, None] == names[:, None, :-1]).tril()
    had = (same & (values[:, None] == given[..., None])).any(dim=-1)
    right = given == answers
    known = answers >= 0
    between = lambda low, high: known & (back >= low) & (back < high)
    share = lambda part: right[part].float().mean().item()
    return (share(known), share(between(0, 16)), share(between(16, 64)),
            [share(between(low, high)) for low, high in zip(edges, edges[1:])],
            had[known & ~right].float().mean().item())

kinds = ("full", "window", "state, no gate", "state, gate")
jobs = [(kind, seed) for seed in range(3) for kind in kinds]
found = {}

# %% tags=["hide-input"] mystnb={"image": {"alt": "The share of right answers against the assignments since the last value, with a dotted line for a guess. Full is near 1 at every distance. The window is close to it up to 16 assignments, falls at once, and stays on the dotted line. The state without gate begins below 0.8 and rises steadily to more than 0.9. The state with gate begins above 0.9, falls slowly at first, crosses the other state near 40, and ends at about 0.7."}}
try:
    for job in progress([job for job in jobs if job not in found], "12 models"):
        found[job] = shares_right(trained(*job))
except KeyboardInterrupt:
    print(f"Stopped after {len(found)} of {len(jobs)} models. Run this cell again to go on.")

if len(found) == len(jobs):
    of = lambda kind, which: [found[kind, seed][which] for seed in range(3)]
    middles = [(low + high - 1) / 2 for low, high in zip(edges, edges[1:])]
    plots.curves({kind: (middles, of(kind, 3)) for kind in (*kinds[1:], "full")},
                 "assignments since the last value", "share of right answers",
                 landmarks={"a guess": 1 / VALUES},
                 title="The window forgets at once, the gate little by little")
    plt.ylim(0, 1.05)
    plt.show()
    print("right answers    all, by seed       near   far    wrong, but an old value")
    for kind in kinds:
        shares = ", ".join(f"{share:.2f}" for share in of(kind, 0))
        near, far, old = (sum(of(kind, which)) / 3 for which in (1, 2, 4))
        print(f"{kind:>14}: {shares}   {near:.2f}   {far:.2f}   {old:.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each point is a range of distances. Lines are means of three seeds, bands run from the lowest to
# the highest, after 200 steps. In the table, *near* is one of the last 16 assignments, and the last column the share of
# the wrong answers that are an earlier value of the variable.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_same_memory", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("same_memory", same_memory)

# %% [markdown]
# **The window is almost always right up to its edge, and guesses beyond it.** Its share of right answers is little
# more than the share of questions whose answer lies in the last 16, so another task could change the order.
#
# **The state without a gate errs at every distance, and least far back.** It adds up all values that a variable has
# had, and nearly all of its wrong answers are earlier ones. If the last value is far back, few came before it.
#
# **The gate gives up what is very old.** Up to about 40 assignments it is ahead of the state without a gate, beyond
# that behind. It still mixes: most of its wrong answers are an earlier value.
#
# ## The delta rule replaces a value instead of adding one
#
# A gate makes all old values fade, also those that are still right. The **delta rule** subtracts only what the state
# already holds for the new key ([Yang et al., 2024](https://arxiv.org/abs/2412.06464)):
#
# $$u_i = v_i - k_i S_{i-1}, \qquad S_i = S_{i-1} + k_i^\top u_i .$$
#
# With keys of length 1, the new state gives exactly $k_i S_i = v_i$: after 2 and 3 it reads 3. Since $S_{i-1}$ is the
# sum of $k_j^\top u_j$ over all $j < i$, the first formula is a triangular system, $u_i + \sum_{j<i} (k_i \cdot k_j)\,
# u_j = v_i$. A few lines solve it, here with all pairs ([chunks work, too](https://arxiv.org/abs/2406.06484)):

# %%
def delta_attention(q, k, v):
    """Linear attention by the delta rule, without a gate. Returns y (b, h, t, d_v)."""
    k = F.normalize(k, dim=-1)
    overlap = (k @ k.mT).tril(-1)
    u = torch.linalg.solve_triangular(overlap, v, upper=False, unitriangular=True)
    return (q @ k.mT).tril() @ u

# %% tags=["hide-input"]
unit = lambda k: F.normalize(k, dim=-1)
memories["state, keys of length 1"] = lambda q, k, v, log_g: (q @ unit(k).mT).tril() @ v
memories["gate, keys of length 1"] = lambda q, k, v, log_g: gated(q, unit(k), v, log_g)
memories["state, delta rule"] = lambda q, k, v, log_g: delta_attention(q, k, v)
for kind in progress(list(memories)[-3:], "3 models each"):
    shares = [shares_right(trained(kind, seed))[0] for seed in range(3)]
    print(f"{kind:>23}: " + ", ".join(f"{share:.2f}" for share in shares))

# %% [markdown]
# **With the delta rule a state of the same size is right almost always, beside 0.92 with the gate**, with each of
# three seeds. Keys of length 1 alone, still adding, lift the sum from 0.78 to 0.89 and hardly change the gate.
# Subtracting does the rest: it removes old values of the same variable, and what overlapping keys of others left.
#
# A state has room for as many keys at right angles as it is wide. With twice the variables the delta rule errs more
# often ([Measured further](../../site/further.md#lesson-16)).
#
# ## Does a mask save time?
#
# We know what each way forgets. Is it cheaper? So far a pattern is only a mask.

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

# %% tags=["hide-input"]
def seconds(compute, times=3):
    """Processor seconds of one call, the best of some."""
    best = math.inf
    for _ in range(times):
        before = time.process_time()
        compute()
        best = min(best, time.process_time() - before)
    return best

def kept_bytes(compute):
    """What autograd keeps for the backward pass, each tensor once."""
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

# %%
def attention(q, k, v, mask):
    """Computes every score. q, k, v: (..., t, d). mask: (t, t)."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ v

q, k, v = one_head(2048)
window = local_mask(2048, 64)
without = lambda: torch.softmax(q @ k.mT / math.sqrt(16), dim=-1) @ v
masked = lambda: attention(q, k, v, window)
rounds = [(seconds(masked), seconds(without)) for _ in range(5)]    # in turns
slower = min(one for one, _ in rounds) / min(other for _, other in rounds)
print(f"{window.float().mean():.1%} of all pairs are left, and the mask takes "
      f"{slower:.2f} times the time of no mask")

# %% nbgrader={"grade": true, "grade_id": "check_mask_saves", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("mask_saves", mask_saves)

# %% [markdown]
# ## To save time, do not compute the masked scores
#
# The mask comes after the product, when all t² scores have been computed. Instead, **gather** what belongs
# together, and multiply small matrices. Cut the sequence into **chunks** of w. All that a query may see is in its own
# chunk and the one before, so w queries need 2w keys: scores (b, h, t/w, w, 2w), or 2tw numbers instead of t².

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
# **Exercise 5 · `banded_attention`** &nbsp; ★★★ · 12 minutes · 6 points
#
# Causal attention in a window of w positions, in chunks, with scores divided by √d. t need not be a multiple of w, w
# may be larger than t, and scores may be of any size. Use tensors throughout. None of them, masks included, may have t²
# entries: with one head, t = 256 and a w near 8, the check refuses t²/2 entries or more. Over chunks you may call
# `F.scaled_dot_product_attention`, but not `flex_attention`.
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
# see places 2, 3 and 4. In chunk 0, places 0, 1 and 2 are padding, so there it sees only 3 and 4. What shape has a
# mask that differs from chunk to chunk?
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

# %%
t, w = 4096, 64
q, k, v = one_head(t)
ways = {"mask": lambda: attention(q, k, v, local_mask(t, w)),
        "band": lambda: banded_attention(q, k, v, w)}
for name, way in ways.items():
    print(f"{name}: {1000 * seconds(way):>6.1f} ms, {kept_bytes(way) / 1e6:>5.1f} MB kept")
print("the same output:", torch.allclose(ways["mask"](), ways["band"](), atol=1e-5))

# %% [markdown]
# **In chunks, the same window takes a small part of the time and of the memory.** The stride can be gathered, too:
# positions with the same remainder by l form a short sequence of their own.
#
# ## In chunks, a state is fast as well
#
# For generating text, the loop of exercise 4 is ideal: every new token costs the same. For training, t small steps in a
# row are slow. The sum over j handles all positions at once, but has t² pairs again. So do it **within chunks** only,
# and hand the state on. Let $L_i$ count from the start of the chunk, let $S$ and $S'$ be the states before and after
# it, and $L_c$ the sum over the whole chunk:
#
# $$y_i = e^{L_i} q_i S + \sum_{j \le i} e^{L_i - L_j} (q_i \cdot k_j)\, v_j , \qquad
# S' = e^{L_c} S + \sum_{j} e^{L_c - L_j} k_j^\top v_j .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `chunked_attention`** &nbsp; ★★★ · 13 minutes · 6 points
#
# Compute what exercise 4 computes, `size` positions at a time. t need not be a multiple of `size`, and may be
# smaller. Gates may be as small as e^−100: nothing may overflow or be NaN, nor may gradients. Work on a whole chunk
# at once: chunks four times as large must cut the number of operations by more than a third. Use tensors throughout.
# None may have t² entries: with one head, t = 256 and chunks of about 16, the check refuses t²/2 entries or more.
#
# <details><summary>Hint 1: the parts of one chunk</summary>
#
# A slice gives the chunk, also the last one, which may be shorter. Its sums of logarithms are a `cumsum`. Differences
# of a column and a row of these sums are (b, h, c, c), like the products of its queries and keys.
#
# </details>
# <details><summary>Hint 2: a gate near 0</summary>
#
# Let the logarithms of three gates be −4, −100 and −2, so $L$ is $-4$, $-104$ and $-106$. The decay from position 1
# to 2 is $e^{-106 + 104} = e^{-2}$. In 32 bits $e^{-106}$ is 0 and $e^{104}$ is infinite: what is their product? And
# what would it give for the future pair i = 0, j = 2?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "chunked_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chunked_attention(q, k, v, log_g, size, state=None):
    """Linear attention with a gate, a chunk of `size` positions at a time.

    q, k: (b, h, t, d). v: (b, h, t, d_v). log_g: (b, h, t), logarithms of the gates, ≤ 0.
    state: (b, h, d, d_v), from what came before; None is a state of zeros.
    Returns y (b, h, t, d_v) and the last state (b, h, d, d_v).
    """
    ### BEGIN SOLUTION
    if state is None:
        state = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1], device=k.device)
    outputs = []
    for start in range(0, q.shape[2], size):
        queries, keys, values, logs = (x[:, :, start:start + size] for x in (q, k, v, log_g))
        total = logs.cumsum(dim=-1)                                       # (b, h, c)
        c = total.shape[-1]
        past = torch.ones(c, c, dtype=torch.bool, device=q.device).tril()
        between = total[..., :, None] - total[..., None, :]               # (b, h, c, c)
        between = between.masked_fill(~past, -math.inf)
        own = (queries @ keys.mT * between.exp()) @ values
        outputs.append(own + total[..., None].exp() * (queries @ state))
        to_the_end = (total[..., -1:] - total).exp()                      # (b, h, c)
        written = (to_the_end[..., None] * keys).mT @ values
        state = total[..., -1, None, None].exp() * state + written
    return torch.cat(outputs, dim=2), state
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_chunked_attention", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(chunked_attention)

# %% [markdown]
# <details><summary>Two bugs in public: read this once your check is green</summary>
#
# Kernels for such layers have met gates near 0 more than once. In PyTorch's ExecuTorch a chunk multiplied by
# exponentials of both signs, and 0 · ∞ made outputs NaN ([pull request
# 21417](https://github.com/pytorch/executorch/pull/21417)). In `transformers` the decays of future pairs
# overflowed before they were masked, and gradients were NaN ([pull request
# 48455](https://github.com/huggingface/transformers/pull/48455)).
#
# </details>

# %%
q, k, v = one_head(4096)
generator = torch.Generator().manual_seed(0)
log_g = F.logsigmoid(torch.randn(1, 1, 4096, generator=generator) + 3)
ways = {"all pairs": lambda: attention(q, k, v, local_mask(4096, 4096)),
        "state, a loop": lambda: recurrent_attention(q, k, v, log_g),
        "state, chunks of 64": lambda: chunked_attention(q, k, v, log_g, 64)}
for name, way in ways.items():
    print(f"{name:>19}: {1000 * seconds(way):>6.1f} ms, "
          f"{kept_bytes(way) / 1e6:>5.1f} MB kept")

# %% [markdown]
# **In chunks the state takes a small part of the time and of the memory of all pairs, though nothing is cut off.** The
# loop takes many times as long as the chunks.
#
# ## Models mix cheap and full layers
#
# Only full attention can go back to any one position, however much there is to hold, and one such layer connects all
# causal pairs. So several models have many cheap layers, and a full one now and then.
#
# | model | cheap layers | full layers |
# |---|---|---|
# | [Gemma 3](https://arxiv.org/abs/2503.19786), 2025 | window of 1,024 | one in six |
# | [Qwen3-Next](https://github.com/huggingface/transformers/blob/main/src/transformers/models/qwen3_next/configuration_qwen3_next.py) and [Kimi Linear](https://arxiv.org/abs/2510.26692), 2025 | linear with gates and the delta rule | one in four |
#
# The team of [MiniMax-M2](https://news.aibase.com/news/22592), 2025, went back to full attention.
#
# ## What you can do now
#
# **Does a model need all pairs, and what does it forget without them?**
#
# - **A pattern builds in a guess about the data.** On our pictures two were ahead of full attention after 600 steps; on
#   text, in the paper, the strided one was behind.
# - **In one layer, a window forgets all beyond its edge.** Further layers can pass it on.
# - **A state mixes what it holds**, the more values, the more. A gate makes old values fade, also valid ones. The
#   delta rule replaces them, and was almost always right while the state was as wide as there were keys.
# - **A mask over finished scores saves nothing.** In chunks, memory grows like t instead of t².
#
# **Two questions to think about**
#
# <details><summary>1. A window of w in every layer reaches (w − 1) · depth back. Why does a model not use all of
# it?</summary>
#
# Reach says what *may* be passed on. Every layer has to pass on a distant token, each time among many others in a
# vector of the same width, and the training rewards that only when the token is needed.
#
# </details>
# <details><summary>2. All gates are 1, and all keys of a text are orthogonal and of length 1. What does the query k_j
# read?</summary>
#
# Exactly $v_j$: all other products are 0. There are at most d orthogonal keys of width d, so after d different keys
# the state has to mix values.
#
# </details>
#
# **Further reading**
#
# - **[Yang et al., *Gated linear attention transformers with hardware-efficient training*,
#   2023](https://arxiv.org/abs/2312.06635)**, sections 2 and 4: the loop, the pairs and the chunks.
# - [Child et al., *Generating long sequences with sparse transformers*, 2019](https://arxiv.org/abs/1904.10509),
#   section 4: the patterns.
#
# The full layers that remain still compare all pairs. Can they do it without storing the scores?
#
# **Next:** [lesson 17, *Going big*](../17_going_big/17_going_big.ipynb)
