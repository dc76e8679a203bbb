# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 4 · Multi-head attention
#
# *Several questions at once*
#
# In *mary gave roses to susan*, the word *gave* raises three questions: who gave, who received, and what? But in the
# attention of the last two lessons, *gave* has one query, one row of weights and one average. **Can one row of weights
# answer three questions?** The first picture shows one that cannot. Then you build attention with several rows.
#
# | | |
# |---|---|
# | **You will build** | multi-head attention without a loop over the heads, and a test for a bug that raises no error |
# | **You need** | queries, keys and values ([lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb)), and why scores are divided by $\sqrt d$ ([lesson 3](../03_scaling/03_scaling.ipynb)) |
# | **It takes** | about 85 minutes: five exercises, one of them with a bug to fix, and two predictions; 19 points |
# | **It computes** | in about a minute in all, without a GPU; the training in the section *Your model so far* can be stopped early |
#
# b, t and e stand for sentences, positions and width, as before. **h** is new, the number of heads, and **d** is now
# the width of *one* head ([all letters](../../site/notation.md)). Counting starts at 0.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.sentence import WORDS as SENTENCE
from helpers.data.sentence import queries_keys_values
from helpers.device import device
from helpers.lesson import start
from helpers.parts.multi_head import merge_heads as finished_merge
from helpers.parts.multi_head import split_heads as finished_split

check = start("04_multi_head")

# %% [markdown]
# ## One fixed row names the giver or the receiver, not both
#
# A small model, the `Reader`, is trained to name giver, thing and receiver **from the one vector at *gave***. This
# vector is an average over the five words, with one row of weights that is learned and is the same in every sentence. A
# linear layer reads the three answers from it. **From each of ten random starts, the model learns to name one of the
# two people in most sentences, and misses the other in most.**

# %% tags=["hide-input"] mystnb={"image": {"alt": "Ten dots, the share of sentences with the receiver right over the share with the giver right. Five are at the top left, with the receiver named in most sentences and the giver in about a third; five at the bottom right, the other way round. The top right corner is empty."}}
from helpers.progress import progress
from helpers.training.giving import FixedRows, rows_of_gave, train


def draw_names(groups, title, ax):
    """One mark for each run: how often it names the giver, and how often the receiver."""
    for guess in (ax.axvline, ax.axhline):
        guess(100 / 16, color="#555555", linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    for name, k in groups.items():
        share = {role: [100 * right[role] for _, right in trained[name]]
                 for role in ("giver", "receiver")}
        ax.scatter(share["giver"], share["receiver"], s=34, color=plots.COLOURS[k],
                   marker=plots.MARKERS[k], label=name, zorder=3, clip_on=False)
    ax.set(title=title, xlim=(0, 103), ylim=(0, 103), aspect="equal",
           xlabel="giver named, %")
    ax.set(xticks=range(0, 101, 20), yticks=range(0, 101, 20))


starts = range(1, 11)
trained = {"one fixed row": [train(FixedRows, 1, seed)
                             for seed in progress(starts, "training")]}
_, ax = plt.subplots(figsize=(6, 3.9), layout="compressed")
draw_names({"one fixed row": 0}, "one fixed row: one of the two is mostly wrong", ax)
ax.set_ylabel("receiver named, %")
ax.text(100, 100, "both named", ha="right", va="top", fontsize=10, color="#333333")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One dot for each random start, after 300 steps of training: how often the giver (across) and the
# receiver (up) are right in 2,000 new sentences. Dashed: a guess among 16 names. The words' vectors include their
# positions ([lesson 6](../06_positions/06_positions.ipynb)).
#
# </div>
#
# Why can no dot reach the top right corner?

# %% [markdown]
# ## The receiver is in the middle of a straight line
#
# Let the row give 0.4 to the first word and 0.2 to the last.
#
# | sentence | average, where *mary* and *susan* are their values |
# |---|---|
# | *mary gave roses to susan* | 0.4 *mary* + 0.2 *susan* + other words |
# | *susan gave roses to mary* | 0.4 *susan* + 0.2 *mary* + other words |
#
# A linear layer gives every name a score, and the highest is its answer. What a name in the average adds to the scores
# is proportional to its weight; if that is $w$, the other name's is $0.6 - w$. **So the mean score of a name, over all
# sentences, is a straight line in its weight** ([proof](../../site/further.md#lesson-4)). The giver's weight is 0.4,
# the receiver's 0.2, that of absent names 0. The receiver is in the middle, and a straight line is highest at an end.
# So no linear layer gives receivers the highest mean score, and none names every receiver.
#
# Weights from a softmax are positive, so any two unequal ones put giver or receiver in the middle; with equal weights,
# both sentences have the same average. To reach the corner, *gave* needs a second row, or a row that changes with the
# words. (How near one fixed row comes, only training shows.)

# %% [markdown]
# ## Several heads, each with its own row
#
# Let $h$ attention layers read the same sentence, each with its own three matrices of shape $(e, d)$. They are called
# **[heads](../../site/glossary.md#head)**. From queries $q^{(r)} = x\,W_q^{(r)}$, and keys and values likewise, head
# $r$ computes
#
# $$y^{(r)} \;=\; \operatorname{softmax}\!\Big(\tfrac{1}{\sqrt d}\; q^{(r)} k^{(r)\top}\Big)\, v^{(r)}
# \qquad\text{of shape } (t, d).$$
#
# Side by side, the $h$ results are $(t, h\,d)$. One more matrix, $W_u$ of shape $(h\,d, e)$, mixes the heads and
# brings the width back to $e$. We call this step `unify`; [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)
# write $W^O$. The whole layer is **[multi-head attention](../../site/glossary.md#multi-head-attention)**. With $d =
# e/h$, as in their model, the heads share the width: **together they have as many parameters as one head of width e**.

# %% [markdown]
# ## One product computes all heads
#
# The queries $x W_q^{(0)}$, $x W_q^{(1)}$ and so on are all products of *the same* $x$. So put the matrices side by
# side: one product with an $(e, h\,d)$ matrix does the work of a loop over the heads. In each row of the result, the
# first $d$ components are the query of head 0, the next $d$ that of head 1.
#
# Two steps separate the heads:
#
# 1. (b, t, e) → (b, t, h, d). Split the last axis into two. The numbers stay in their order.
# 2. (b, t, h, d) → (b, h, t, d). Exchange two axes, so that **t and d are the last two**.
#
# Now `@`, which multiplies along the last two axes, treats every head of every sentence by itself: (b, h, t, d) @ (b,
# h, d, t) is (b, h, t, t).

# %%
plots.diagrams.heads_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The whole layer, for three heads. k and v are split like q. The heads exchange nothing until
# `unify`.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `split_heads`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Split the width of every position into h heads. If e is not divisible by h, raise a `ValueError` with both numbers,
# e and h, in its message. `finished_split`, imported above, is our solution: do not call it here.
#
# <details><summary>Hint 1: two steps, in this order</summary>
#
# Split the last axis before you exchange any axes: (b, t, e) → (b, t, h, d). A single `view` or `reshape` directly to
# (b, h, t, d) has the right shape too, but it puts the numbers in the wrong places, as the picture after this
# exercise shows.
#
# </details>
# <details><summary>Hint 2: two positions, with numbers</summary>
#
# Let x be one sentence with the two rows (0, 1, 2, 3) and (4, 5, 6, 7), and h = 2. Head 0 is then (0, 1), (4, 5), and
# head 1 (2, 3), (6, 7). If your head 0 is (0, 1), (2, 3), you reshaped directly to the final shape. If it is (0,
# 2), (4, 6), the axes h and d are in the wrong order.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "split_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split_heads(x, h):
    """Cut the width into heads.

    x: (b, t, e). Returns (b, h, t, d) with d = e/h. Head r gets components r·d to
    (r+1)·d − 1 of every position (counting from 0).
    Raises ValueError, with e and h in its message, when e is not divisible by h.
    """
    ### BEGIN SOLUTION
    b, t, e = x.shape
    if e % h != 0:
        raise ValueError(f"e = {e} is not divisible by h = {h}")
    x = x.reshape(b, t, h, e // h)
    return x.transpose(1, 2)    # (b, h, t, d)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_split_heads", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(split_heads)

# %% mystnb={"image": {"alt": "Three drawings of coloured cells. Top: x, five rows of six components, each pair of components in one colour. Middle: split into three blocks, each of one colour; row i is still position i. Bottom: reshaped directly, each block mixes the three colours, and its rows are pieces of positions: block 0 has pieces of positions 0 and 1 only."}}
labels = torch.arange(5 * 6, device=device()).view(1, 5, 6)    # t = 5, e = 6
right = split_heads(labels, 3)[0]
scrambled = labels.reshape(1, 3, 5, 2)[0]

titles = ["x: (t, e)", "split_heads(x, 3): (h, t, d)", "x.reshape(h, t, d): scrambled"]
plots.fold([labels[0], right, scrambled], e=6, d=2, titles=titles)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The numbers of x are labels: 2,3 is component 3 of position 2. Middle: each head has one colour,
# and its row i belongs to position i. Bottom: reshape reads x row by row, so *head 0* gets nothing from positions 2
# to 4.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `merge_heads`** &nbsp; ★☆☆ · 6 minutes · 3 points
#
# Undo the split: put the heads of every position side by side, head 0 first. Do not call `finished_merge` here.
#
# <details><summary>Hint 1: the way back, and "view size is not compatible"</summary>
#
# Undo the two steps of exercise 1 in reverse order. A transpose exchanges two axes but moves no numbers in memory.
# `view` then refuses, because it never copies; `reshape` copies when it has to.
#
# </details>
# <details><summary>Hint 2: two heads, with numbers</summary>
#
# Let head 0 be (0, 1), (4, 5) and head 1 be (2, 3), (6, 7), with b = 1. The merged rows are (0, 1, 2, 3) and (4, 5,
# 6, 7). If your first row is (0, 1, 4, 5), it holds two positions of one head.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "merge_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_heads(x):
    """Lay the heads side by side.

    x: (b, h, t, d). Returns (b, t, e) with e = h·d. Components r·d to (r+1)·d − 1 of
    every position (counting from 0) come from head r.
    """
    ### BEGIN SOLUTION
    b, h, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, h * d)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_merge_heads", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(merge_heads)

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `MultiHeadAttention`** &nbsp; ★★☆ · 20 minutes · 5 points
#
# Write the module. Name its layers `to_queries`, `to_keys`, `to_values` (each `nn.Linear(e, e, bias=False)`) and
# `unify` (`nn.Linear(e, e)`); it has no other parameters. If e is not divisible by h, its constructor raises a
# `ValueError` with both numbers in its message. Gradients must reach all parameters. Call `finished_split(x, h)` and
# `finished_merge(x)`, so that an error in exercise 1 or 2 does not carry over. Do not use PyTorch's
# `nn.MultiheadAttention`; `F.scaled_dot_product_attention` and a loop over the heads are allowed.
#
# <details><summary>Hint 1: the order of the steps</summary>
#
# Follow the picture from top to bottom. The attention is that of lesson 3, along the last two axes: scores divided by
# $\sqrt d$, softmax, average of the values. Store h in the module (`self.h = h`) so that `forward` can use it.
#
# </details>
# <details><summary>Hint 2: the shapes, with numbers</summary>
#
# Let b = 2, t = 5, e = 12 and h = 3, so d = 4. Queries, keys and values are (2, 5, 12), and after the split (2, 3, 5,
# 4). The scores are (2, 3, 5, 5), divided by 2. The average is (2, 3, 5, 4), and after the merge (2, 5, 12). If `@`
# raises an error, you transposed the wrong two axes of k, or none. If the scores are (2, 3, 4, 4), you transposed q
# instead.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "MultiHeadAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class MultiHeadAttention(nn.Module):
    """h heads of width d = e/h: to_queries, to_keys, to_values (no bias), unify (with bias).

    Raises ValueError, with e and h in its message, when e is not divisible by h.
    """

    def __init__(self, e, h):
        super().__init__()
        ### BEGIN SOLUTION
        if e % h != 0:
            raise ValueError(f"e = {e} is not divisible by h = {h}")
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e)
        ### END SOLUTION

    def forward(self, x):
        """x: (b, t, e). Returns (b, t, e)."""
        ### BEGIN SOLUTION
        q = finished_split(self.to_queries(x), self.h)    # (b, h, t, d)
        k = finished_split(self.to_keys(x), self.h)
        v = finished_split(self.to_values(x), self.h)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])    # (b, h, t, t)
        weights = torch.softmax(scores, dim=-1)
        y = finished_merge(weights @ v)    # (b, t, e)
        return self.unify(y)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_MultiHeadAttention", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(MultiHeadAttention)

# %% [markdown]
# With the same weights, your module agrees with PyTorch's (whose projections also have biases, set to zero here).
# **Heads cost no parameters**: eight have as many as one.

# %% tags=["nbval-check-output"]
mine = MultiHeadAttention(12, 3).to(device())
theirs = nn.MultiheadAttention(12, 3, batch_first=True).to(device())
with torch.no_grad():
    three = [mine.to_queries.weight, mine.to_keys.weight, mine.to_values.weight]
    theirs.in_proj_weight.copy_(torch.cat(three))
    theirs.in_proj_bias.zero_()
theirs.out_proj.load_state_dict(mine.unify.state_dict())

x = torch.randn(2, 5, 12, device=device())
agree = torch.allclose(mine(x), theirs(x, x, x)[0], atol=1e-5)
print("same as nn.MultiheadAttention to within 0.00001:", agree)
for h in (1, 8):
    count = sum(p.numel() for p in MultiHeadAttention(512, h).parameters())
    print(f"e = 512, h = {h}: {count:,} parameters")

# %% [markdown]
# ## Three heads name both
#
# Now the `Reader` gets your module with three heads, and is trained from the same ten starts.

# %%
trained["three heads"] = [train(MultiHeadAttention, 3, seed)
                          for seed in progress(starts, "training")]
lowest = min(min(right.values()) for _, right in trained["three heads"])
print("three heads, ten starts: giver, thing and receiver each right in "
      f"{lowest:.0%} or more")

sentence = "mary gave roses to susan"
for r, row in enumerate(rows_of_gave(trained["three heads"][7][0], 3, sentence)):
    print(f"start 8, head {r}:",
          *(f"{word} {w:.2f}  " for word, w in zip(sentence.split(), row)))

# %% [markdown]
# **From every start, all three answers are right in nearly every sentence.** In this sentence, after start 8, head 0
# looks at the giver, head 1 at the receiver, head 2 at the thing. Nothing in the code assigns these questions, and from
# other starts heads may share one ([Measured further](../../site/further.md#lesson-4)).
#
# Does such a score prove that the code is right?

# %% [markdown]
# ## A wrong merge raises no error
#
# The next function folds the heads into the batch, because `torch.bmm` takes one batch axis only: queries, keys and
# values become (b·h, t, d), as if there were b·h sentences. It runs and returns the right shape, but with several heads
# and positions, many of its numbers are wrong.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `folded_heads`** &nbsp; fix · ★★☆ · 8 minutes · 3 points
#
# One step of this function is wrong. Find it and fix it. h divides e here.
#
# <details><summary>Hint 1: a small case on paper</summary>
#
# Take b = 1, h = 2, t = 3, d = 1, and label each number with two digits, position and head. Write down the order of
# the labels after every line. The fold changes the order on purpose. Which line should restore it, and does it?
#
# </details>
# <details><summary>Hint 2: the labels of that case</summary>
#
# The rows of q are 00 01, 10 11 and 20 21. After the fold, q is two *sentences*, 00 10 20 and 01 11 21, and the
# products keep that order. The function must return rows in the original order of q. Which rows does it return?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "folded_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def folded_heads(q, k, v, h):
    """Attention in h heads, with the heads folded into the batch.

    q, k, v: (b, t, e), the projections of all heads. Returns (b, t, e), the outputs of the
    heads side by side, before `unify`: components r·d to (r+1)·d − 1 come from head r.
    """
    ### BEGIN SOLUTION
    b, t, e = q.shape
    d = e // h
    folded = (x.reshape(b, t, h, d).transpose(1, 2) for x in (q, k, v))
    q, k, v = (x.reshape(b * h, t, d) for x in folded)
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d)    # (b·h, t, t)
    weights = torch.softmax(scores, dim=-1)
    y = torch.bmm(weights, v).reshape(b, h, t, d)
    return y.transpose(1, 2).reshape(b, t, e)
    ### STUDENT GETS
    # b, t, e = q.shape
    # d = e // h
    # folded = (x.reshape(b, t, h, d).transpose(1, 2) for x in (q, k, v))
    # q, k, v = (x.reshape(b * h, t, d) for x in folded)
    # scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d)    # (b·h, t, t)
    # weights = torch.softmax(scores, dim=-1)
    # y = torch.bmm(weights, v)
    # return y.reshape(b, t, e)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_folded_heads", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(folded_heads)

# %% [markdown]
# <details><summary>What was wrong, and why there was no error</summary>
#
# The last line. `y` is (b·h, t, d), with all positions of head 0 before those of head 1, and `y.reshape(b, t, e)` cuts
# this sequence of numbers into rows with pieces of several positions. The axes have to be split and exchanged first:
# `y.reshape(b, h, t, d).transpose(1, 2).reshape(b, t, e)`. A reshape only needs the right number of entries, so it
# raised no error.
#
# </details>

# %% [markdown]
# **Does such a bug show in the score?** Give the `Reader` three heads and a scrambled merge, a reshape alone. The row
# of *gave* then gets head 0's outputs for *to* and the receiver, and head 1's for the giver. Nothing in it was computed
# for *gave*.

# %% [markdown]
# <div class="card">
#
# **Prediction · `scrambled_answers`** &nbsp; 1 minute · no points
#
# How well does this model answer?
#
# - **A.** About as well as a guess, for all three roles: its rows consist of pieces of other rows.
# - **B.** With hardly an error in any of the three roles, like the correct module.
# - **C.** Well for two roles, and no better than a guess for the third: no piece in the row of *gave* comes from
#   head 2.
# </div>

# %% nbgrader={"grade": false, "grade_id": "scrambled_answers", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
scrambled_answers = "B"
### STUDENT GETS
# scrambled_answers = ...    # "A", "B" or "C"
### END SOLUTION

# %%
class ScrambledAttention(MultiHeadAttention):
    def forward(self, x):
        projections = self.to_queries, self.to_keys, self.to_values
        q, k, v = (finished_split(project(x), self.h) for project in projections)
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        return self.unify((weights @ v).reshape(x.shape))    # no transpose

_, right = train(ScrambledAttention, 3)
print("right answers:", ", ".join(f"{role} {share:.0%}" for role, share in right.items()))

x, copy = torch.randn(2, 5, 12, device=device()), ScrambledAttention(12, 3).to(device())
copy.load_state_dict(mine.state_dict())    # theirs has the same weights since exercise 3
difference = (copy(x) - theirs(x, x, x)[0]).abs().max()
print(f"largest difference from nn.MultiheadAttention, same weights: {difference:.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_scrambled_answers", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("scrambled_answers", scrambled_answers)

# %% [markdown]
# **A score of 100% does not prove the code right.** (It is rounded, and from one run.) The same three pieces always end
# up in the row of *gave*, each is an average of all five values, and training adapts their weights ([Measured
# further](../../site/further.md#lesson-4)). Only the last line, the comparison with a right module, shows the bug. Your
# test has to do without one.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `is_right_merge`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Write a test that the scrambled merge fails. It gets a function, `merge`, that takes a tensor of shape (b, h, t, d)
# and should do what you wrote in exercise 2. Return True if it does, False if not. You choose the tensors to try. Do
# not call `merge_heads`, `finished_merge` or `finished_split`: a test has to know the right result itself.
#
# The check calls your test with right merges and with twenty wrong ones, which mix up positions, heads or sentences,
# or return another shape. None raises an error, and each can be caught with a tensor in which no axis is longer
# than 2.
#
# <details><summary>Hint 1: which tensor?</summary>
#
# If all numbers of a tensor are alike, a number in the wrong place looks like the right one. And what can a merge mix
# up if there is only one head, or only one sentence? Choose a tensor in which every such mistake must show.
#
# </details>
# <details><summary>Hint 2: a small case, with numbers</summary>
#
# Let b = 1, h = 2, t = 2, d = 1, head 0 be (1), (2) and head 1 be (3), (4). The merged rows are (1, 3) and (2, 4). A
# reshape alone gives (1, 2) and (3, 4), and a merge with the heads in reverse order (3, 1) and (4, 2). A merge that
# mixes up sentences, or the components of a head, passes this case. For other shapes, `torch.equal` returns False.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "is_right_merge", "locked": false, "schema_version": 3, "solution": true, "task": false}
def is_right_merge(merge):
    """Does this function lay the heads side by side, as exercise 2 asks?

    merge: a function from a tensor (b, h, t, d) to another; a right one returns (b, t, h·d).
    Returns False if it is wrong for the tensors you try, and True if it is right for them.
    """
    ### BEGIN SOLUTION
    x = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5)    # no two numbers are alike
    b, h, t, d = x.shape
    y = merge(x)
    if y.shape != (b, t, h * d):
        return False
    return all(torch.equal(y[:, :, r * d:(r + 1) * d], x[:, r]) for r in range(h))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_is_right_merge", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(is_right_merge)

# %% [markdown]
# ## More rows, or rows that change with the words?
#
# Since the first picture, two things changed: there are three rows, and each changes with the words. Which of the two
# filled the corner? Change one at a time. **Three fixed rows** are the same in every sentence. **One
# head** has a single row that changes with the words, and as many parameters as three.

# %% [markdown]
# <div class="card">
#
# **Prediction · `one_head_reads`** &nbsp; 1 minute · no points
#
# The `Reader` with one head is trained from the same ten starts. How well does it answer then?
#
# - **A.** It usually answers most questions. How many errors are left depends on the start.
# - **B.** It answers one of the three questions, and guesses the other two.
# - **C.** As well as with three heads, because it has as many parameters: hardly an error in any run.
# </div>

# %% nbgrader={"grade": false, "grade_id": "one_head_reads", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
one_head_reads = "A"
### STUDENT GETS
# one_head_reads = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "Two panels with the share of receivers named over the share of givers named. Left, one row: the ten dots of one fixed row are at the top left and bottom right; of ten squares for one head, six are high on both axes, though below the corner, and four are at a guess for the giver, the receiver or both. Right, three rows: all marks of three fixed rows and three heads are on top of each other in the top right corner."}}
trained["three fixed rows"] = [train(FixedRows, 3, seed)
                               for seed in progress(starts, "three fixed rows")]
trained["one head"] = [train(MultiHeadAttention, 1, seed)
                       for seed in progress(starts, "one head")]

_, axes = plt.subplots(1, 2, figsize=(6, 3.8), sharey=True, layout="compressed")
draw_names({"one fixed row": 0, "one head": 1}, "one row: none in the corner", axes[0])
draw_names({"three fixed rows": 0, "three heads": 1}, "three rows: all in the corner",
           axes[1])
axes[0].set_ylabel("receiver named, %")
axes[1].text(96, 93, "all 20 runs", ha="right", va="center", fontsize=10, color="#333333")
for ax in axes:
    ax.legend(loc="center")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The first picture again; on the left, one head is added. On the right, twenty marks are on top of
# each other.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_one_head_reads", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("one_head_reads", one_head_reads)

# %% [markdown]
# **After 300 steps, the number of rows decides.** Three rows, fixed or not, name both nearly always, from every start.
# One row does not: one head gets both mostly right in six of ten runs, and guesses at least one in the other
# four. With ten times the steps, one head names both nearly always in one of two runs ([Measured
# further](../../site/further.md#lesson-4)).
#
# Fixed rows are enough here, where the giver is always the first word and the receiver the last. What do heads look at
# in a real sentence?

# %% [markdown]
# ## Three heads of a published model look at different words
#
# Your `split_heads` cuts the twelve heads of the first layer of
# [all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) apart. Position vectors are left out
# until lesson 6, so the weights depend on the words alone.

# %% mystnb={"image": {"alt": "Three maps of attention weights over the twelve words the boat could not reach the bank because it was too muddy. In the first, nearly every row is dark in the column of bank. In the second, only one cell is dark: row bank, column muddy. In the third, the darkest cells are on the diagonal, and each of the two rows of the is dark in both columns of the."}}
q, k, _ = (torch.cat(part, dim=-1)[None] for part in
           zip(*(queries_keys_values(r) for r in range(12))))    # (1, t, 12·32)
weights = torch.softmax(split_heads(q, 12) @ split_heads(k, 12).mT / math.sqrt(32), dim=-1)
plots.sentence_map(weights[0, [2, 4, 8]], SENTENCE, ["head 2", "head 4", "head 8"])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i holds the weights of word i.
#
# </div>
#
# We chose heads that differ. In head 2 nearly every word looks at *bank*. In head 4 *bank* looks at *muddy*, as in head
# 7 of lesson 2. In head 8 each *the* looks at both. What do several heads do for a whole language model?

# %% [markdown]
# ## Your model so far
#
# **Four heads save your language model about half a bit per byte.** They have width 16 and replace one head of width
# 64. The cell takes up to half a minute on one core.

# %% mystnb={"image": {"alt": "A scoreboard of five models over bits per byte. From the bottom: the plain average at 4.4, bare self-attention at 3.5, on the line of order 1, then queries, keys and values and scaled scores, both at 3.3, and far to the left of them four heads, between 2.8 and 2.9."}}
from helpers.ladder import ByteModel, Heads, Ladder

ladder = Ladder(check)
split, merge = ladder.own(split_heads), ladder.own(merge_heads)
torch.manual_seed(0)
ladder.climb(ByteModel(Heads(split, merge)), samples=False)
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Farther left is better; the dashed lines are those of [lesson
# 1](../01_dot_product_attention/01_dot_product_attention.ipynb).
#
# </div>
#
# The mean of our runs falls from 3.33 to 2.85 [bits per byte](../../site/glossary.md#bits-per-byte). The new layer
# `unify` alone does not explain it: with it, one head scores 3.33 in one run ([Measured
# further](../../site/further.md#lesson-4)).

# %% [markdown]
# ## What you can do now
#
# **Can one row of weights answer three questions?** From a fixed one, no linear layer names
# every giver and every receiver. One head, whose row changes with the words, named both mostly in six of our ten runs.
# **Three rows named both nearly always, from every start**, even fixed ones, since in the toy each role has its place.
# Heads cost no parameters, and four save your language model about half a bit per byte. A model with a wrong merge
# answered as well, in one run; your test catches it.
#
# **A question to think about**
#
# <details><summary>You have a trained module that you can only call. How do you find out whether its merge is
# scrambled?</summary>
#
# Reorder the positions of x. In a right module, the rows of the output are reordered in the same way (lesson 1). A
# scrambled merge then puts other pieces together, so the rows themselves change.
#
# </details>
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): the sentence about
#   *mary*, the swap of its two names, and the name `unify`.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2.2: why
#   several heads, and what they cost, in half a page.
# - [Voita et al., *Analyzing multi-head self-attention*, 2019](https://arxiv.org/abs/1905.09418): what trained heads
#   look at (section 5).
#
# In the attention that you wrote, a word also looks at the words after it. A model that has to predict those words
# must not see them.
#
# **Next:** [lesson 5, *Masking*](../05_masking/05_masking.ipynb)
