# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 4 · Multi-head attention
#
# *Several questions at once*
#
# *mary gave roses to susan.* To understand the word *gave*, a reader needs three answers: who gave, what was given, and
# who received it. With the attention of the last two lessons, a word asks one question and receives one average. In
# this lesson every word asks several questions, and you will see that their number hardly changes how much there is to
# compute.
#
# | | |
# |---|---|
# | **You will build** | multi-head attention without a loop over the heads, and a count of its parameters |
# | **You need** | queries, keys and values ([lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb)), and why scores are divided by $\sqrt d$ ([lesson 3](../03_scaling/03_scaling.ipynb)) |
# | **It takes** | about 105 minutes: six exercises, one of them with a bug to fix, and two predictions; 22 points |
# | **It computes** | in seconds: a few small models, each trained on 19,200 synthetic sentences; the last section takes up to twenty seconds, and you may stop it |
#
# As before, b counts sentences, t counts positions, and e is the width of the model. **h** is new, the number of heads,
# and **d** is now the width of *one* head. Heads, positions and components are counted from 0, as in the code.
# All letters are in [the table](../../site/notation.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.toy.giving import GAVE, ROLES, WORDS, giving_sentences, word_ids
from helpers.device import device
from helpers.lesson import start
from helpers.parts.attention import SingleHeadAttention
from helpers.parts.multi_head import merge_heads as finished_merge
from helpers.parts.multi_head import split_heads as finished_split

check = start("04_multi_head")

# %% [markdown]
# ## One sum for three answers
#
# Take the attention of lesson 2. The word *gave* receives
#
# $$y_{\text{gave}} \;=\; \sum_j w_{\text{gave},j}\; v_j ,$$
#
# a sum with one term for each word. Now let mary and susan change places: *susan gave roses to mary*. That is a
# different event. But if the vectors do not say where a word is, *gave* receives the same five terms in another order,
# and a sum does not depend on the order. So we add a learned vector $p_j$ for the position to the vector $x_j$ of each
# word ([lesson 6](../06_positions/06_positions.ipynb) is about that). The values are then $(x_j + p_j)\,W_v$, and the
# sum splits into two:
#
# $$y_{\text{gave}} \;=\; \sum_j w_{\text{gave},j}\; x_j W_v \;+\; \sum_j w_{\text{gave},j}\; p_j W_v .$$
#
# Now the weights can depend on positions, too. To keep the picture simple, let them depend on nothing else: 0.4 for the
# first word, 0.1 for *gave* itself, then 0.2, 0.1 and 0.2. Then the second sum is the same for both events and cannot
# tell them apart. The picture shows the first sum.

# %% mystnb={"image": {"alt": "Two chains of five arrows in the plane, one for each word. Left, mary gave roses to susan; right, susan gave roses to mary. The arrows of mary point the same way in both, and so do those of susan, but mary's is half as long on the right as on the left, and susan's twice as long. The chains end at two different crosses."}}
torch.manual_seed(390)
words = "mary gave roses to susan".split()
x = torch.randn(5, 6, device=device())
values = SingleHeadAttention(6, 2).to(device()).to_values(x)    # (t, d), one for each word
weights = torch.tensor([0.4, 0.1, 0.2, 0.1, 0.2]).to(device())  # (t,), one for each place

_, axes = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(6, 3.4))
for ax, order in zip(axes, ([0, 1, 2, 3, 4], [4, 1, 2, 3, 0])):
    names = [words[i] for i in order]
    plots.arrow_chain(weights[:, None] * values[order], names, title=" ".join(names), ax=ax)
axes[1].set_ylabel("")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each arrow is one term of the first sum: a word's value times the weight of its position, for a
# head of width 2 with random matrices. The cross is the first sum. In the right panel mary's arrow is half as long as
# in the left, and susan's twice as long. Both keep their directions.
#
# </div>
#
# **A weight makes an arrow longer or shorter. It cannot turn it.** Whether mary gives or receives shows only in an
# amount: how much *mary* the sum contains, relative to *susan* and *roses*. To some degree a model can read amounts off
# a sum, and let its weights depend on the words; later, a model with one head will have to. The trouble is that each
# word has *one* weight for all questions. With a weight and a map of values for each question, every answer can have a
# direction of its own.

# %% [markdown]
# ## Heads
#
# So let $h$ attention layers read the same sentence, each with its own three matrices. They are called
# **[heads](../../site/glossary.md#head)**. Head $r$ computes
#
# $$y^{(r)} \;=\; \operatorname{softmax}\!\Big(\tfrac{1}{\sqrt d}\; q^{(r)} k^{(r)\top}\Big)\, v^{(r)}
# \qquad\text{of shape } (t, d),$$
#
# where $q^{(r)} = x\,W_q^{(r)}$, and $k^{(r)}$ and $v^{(r)}$ are computed in the same way, with matrices of shape
# $(e, d)$. We divide by $\sqrt d$ because each dot product has $d$ terms (lesson 3). Then put the $h$ results side by
# side, $(t, h\,d)$, and mix them with one more matrix, $W_u$ of shape $(h\,d, e)$, which brings the width back to $e$.
# We call this layer `unify`; [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762) write $W^O$ for $W_u$.
#
# The result for *gave* now contains mary once for each head, as
# $\sum_r w^{(r)}_{\text{gave},\text{mary}}\, v^{(r)}_{\text{mary}} W_u^{(r)}$, where $W_u^{(r)}$ are the $d$ rows of
# $W_u$ that belong to head $r$. So each head can put *mary* in its own direction: a head that looks for givers in one,
# a head that looks for receivers in another.
#
# How wide should a head be? In the paper the heads share the width: $d = e/h$. There $e = 512$ and $h = 8$, so $d = 64$
# (section 3.2.2). This is the **narrow** convention, which this course uses. Others come at the end of the lesson.

# %% [markdown]
# ## All heads in one product
#
# A loop over $h$ small attentions would work but be slow, because many small products do not keep a processor busy. But
# look at the queries. $x W_q^{(0)}$, $x W_q^{(1)}$ and so on are products of *the same* $x$. Put the matrices side by
# side, and one product with an $(e, h\,d)$ matrix computes the queries of all heads. Those of head 0 are components $0$
# to $d-1$ of the result, those of head 1 the next $d$, and so on.
#
# Now the $h$ heads have to be separated without a loop, in two steps:
#
# 1. (b, t, e) → (b, t, h, d). Split the last axis into two. The numbers stay in their order.
# 2. (b, t, h, d) → (b, h, t, d). Exchange two axes, so that **t and d are the last two**.
#
# The second step is for the matrix product. `@` multiplies along the last two axes and keeps all axes before them: (b,
# h, t, d) @ (b, h, d, t) is (b, h, t, t), a matrix of scores for every head of every sentence.
#
# **What every check of this lesson asks, unless its card says otherwise:** gradients must flow back to every input, the
# inputs stay unchanged, new tensors must be created on the device of the inputs, and any size may be 1.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `split_heads`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Split the width of every position into h heads. If e is not divisible by h, raise a `ValueError` with both numbers, e
# and h, in its message. `finished_split`, imported above, is our solution: do not call it here.
#
# <details><summary>Hint 1: two steps, in this order</summary>
#
# Split the last axis before you exchange any axes: (b, t, e) → (b, t, h, d). A single `view` or `reshape` directly to
# (b, h, t, d) has the right shape too, but the numbers are in other places, as the picture after this exercise shows.
# For the error, `e % h` is the remainder.
#
# </details>
# <details><summary>Hint 2: two positions, with numbers</summary>
#
# Let x be one sentence of the two rows (0, 1, 2, 3) and (4, 5, 6, 7), and h = 2. Head 0 is then (0, 1), (4, 5), and
# head 1 is (2, 3), (6, 7). If your head 0 is (0, 1), (2, 3), you reshaped directly to the final shape; if it is (0, 2),
# (4, 6), the axes h and d are in the wrong order.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "split_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split_heads(x, h):
    """Cut the width into heads.

    x: (b, t, e). Returns (b, h, t, d) with d = e/h. Counted from 0, head r has components
    r·d to (r+1)·d − 1 of every position.
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

# %% [markdown]
# Look at what it did. The numbers of x are shown as labels: 2c is component c of position 2.

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
# **How to read it.** Top: five positions, six components, one colour for each future head. Middle: each head has one
# colour, and its row i still belongs to position i. Bottom: the same shape, reached in one step. This reshape moves
# nothing; it reads the numbers row by row, 0a 0b 0c … 1a 1b, and cuts them differently.
#
# </div>
#
# In the scrambled split, *head 0* would compare pieces of the first two words with one another, often pieces of the
# same word, and would never see the other three.

# %% [markdown]
# Now the way back: after the averages, the h pieces of each position have to be laid side by side again.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `merge_heads`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Undo the split: put the heads of every position side by side, head 0 first. Do not call `finished_merge` here.
#
# <details><summary>Hint 1: the way back, and "view size is not compatible"</summary>
#
# Undo the two steps of exercise 1, the last one first. After a transpose the numbers are no longer in memory in the
# order of their axes. `view` then refuses, because it never copies; `reshape` copies when it has to.
#
# </details>
# <details><summary>Hint 2: two heads, with numbers</summary>
#
# Let head 0 be (0, 1), (4, 5) and head 1 be (2, 3), (6, 7), with b = 1. The merged rows are (0, 1, 2, 3) and (4, 5, 6,
# 7). If your first row is (0, 1, 4, 5), it holds two positions of one head.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "merge_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_heads(x):
    """Lay the heads side by side.

    x: (b, h, t, d). Returns (b, t, e) with e = h·d. Counted from 0, components
    r·d to (r+1)·d − 1 of every position come from head r.
    """
    ### BEGIN SOLUTION
    b, h, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, h * d)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_merge_heads", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(merge_heads)

# %% tags=["nbval-check-output"]
print("merge undoes split:", torch.equal(merge_heads(split_heads(labels, 3)), labels))

# %% [markdown]
# ## Multi-head attention
#
# You have all the pieces. This is the way from x to the output:

# %%
plots.diagrams.heads_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom, for three heads. One colour is one head; beside the arrows are the shapes. k
# and v are split in the same way as q. Between the upper bar of three colours and the lower one, no head uses anything
# from another.
#
# </div>

# %% [markdown]
# The same in steps:
#
# | step | shape |
# |---|---|
# | queries, keys, values: three maps without bias | (b, t, e), three times |
# | split into heads | (b, h, t, d), three times |
# | scores, divided by $\sqrt d$ | (b, h, t, t) |
# | softmax: every row of every head sums to 1 | (b, h, t, t) |
# | average of the values | (b, h, t, d) |
# | merge, then `unify`, a map with bias | (b, t, e) |
#
# From the second line to the fifth the heads are separate. `unify` mixes them: without it, the output of head 0 would
# always stay in the first d components.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `MultiHeadAttention`** &nbsp; ★★★ · 20 minutes · 5 points
#
# Write the module. Name its layers `to_queries`, `to_keys`, `to_values` (each `nn.Linear(e, e, bias=False)`) and
# `unify` (`nn.Linear(e, e)`); it has no other parameters. If e is not divisible by h, its constructor raises a
# `ValueError` with both numbers in its message: it is better to fail when the model is built than when it is first
# used. Gradients must reach all parameters. Call `finished_split(x, h)` and `finished_merge(x)`, which the first cell
# imported: they solve exercises 1 and 2, so an error there does not carry over. Do not use PyTorch's
# `nn.MultiheadAttention`.
#
# <details><summary>Hint 1: the order of the steps</summary>
#
# Follow the table above, line by line. Store h in the module (`self.h = h`) so that `forward` can use it.
#
# </details>
# <details><summary>Hint 2: the table, with numbers</summary>
#
# Let b = 2, t = 5, e = 12 and h = 3, so d = 4. Queries, keys and values are (2, 5, 12), split (2, 3, 5, 4). The scores
# are (2, 3, 5, 5), divided by 2, and each of their rows of 5 becomes weights. The average is (2, 3, 5, 4), merged (2,
# 5, 12). If your scores have another shape, you transposed the wrong two axes.
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
# PyTorch has a module for this, with the three projections stacked into one weight. Copy your weights into it and
# compare.

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

# %% [markdown]
# ## Three words by hand
#
# Cut the queries, keys and values of lesson 2's three words into two heads: head 0 gets components 0 and 1, head 1
# gets components 2 and 3. Fill in the two missing numbers. `unify` is left out.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, W_V, X

q0, q1 = (X @ W_Q).split(2, dim=1)    # (3, 2) each: head 0 and head 1
k0, k1 = (X @ W_K).split(2, dim=1)
v0, v1 = (X @ W_V).split(2, dim=1)
w0, w1 = (torch.softmax(q @ k.T / math.sqrt(2), dim=-1) for q, k in ((q0, k0), (q1, k1)))
merged = torch.cat([w0 @ v0, w1 @ v1], dim=1)
plots.number_grids(
    "three-words", "Three words in two heads, by hand", THREE_WORDS,
    [{"*q*_{0}": q0, "*k*_{0}": k0, "*q*_{0} *k*_{0}^{⊤}": q0 @ k0.T, "*w*_{0}": w0},
     {"*q*_{1}": q1, "*k*_{1}": k1, "*q*_{1} *k*_{1}^{⊤}": q1 @ k1.T, "*w*_{1}": w1},
     {"*v*_{0}": v0, "*v*_{1}": v1, "*y*, merged": merged}],
    empty=[("*q*_{1} *k*_{1}^{⊤}", 2, 1), ("*y*, merged", 0, 0)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One line for each head: queries, keys, their products, and the weights, which are the softmax of
# the products divided by √2. Below, the values, and the outputs of both heads side by side. For the second number
# multiply the row of *the* in $w_0$ by the first column of $v_0$ and add up.
#
# </div>
#
# The products $q_0 k_0^\top$ and $q_1 k_1^\top$ add up to the scores of the one head of lesson 2. There, *the* and
# *ends* had the same weights; here they differ: *ends* looks most at *the* in head 0, but most at *loop* in head 1. The
# next cell has both missing numbers.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"head 1, query of ends times key of loop: {(q1 @ k1.T)[2, 1]:.0f}")
print(f"first component of the merged output of the: {merged[0, 0]:.2f}")
layer = MultiHeadAttention(4, 2)
layer.load_state_dict({
    "to_queries.weight": W_Q.T, "to_keys.weight": W_K.T, "to_values.weight": W_V.T,
    "unify.weight": torch.eye(4), "unify.bias": torch.zeros(4),
})
print("as you compute it:", torch.allclose(layer(X[None])[0], merged, atol=1e-5))

# %% [markdown]
# ## Heads in the batch
#
# Many programs have no separate axis for the heads. They fold it into the batch: queries, keys and values become (b·h,
# t, d), as if there were b·h sentences, and `torch.bmm`, the product for exactly one batch axis, does the rest. If this
# is done correctly, the numbers are the same as before.
#
# We wrote the code of the next exercise in that style and planted a bug. It runs, and its result has the right shape.
# But compared with `nn.MultiheadAttention`, nearly every number is wrong.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `folded_heads`** &nbsp; mend · ★★☆ · 8 minutes · 3 points
#
# One step of this function is wrong. Find it and fix it. h divides e here.
#
# <details><summary>Hint 1: a small case on paper</summary>
#
# Take b = 1, h = 2, t = 3, d = 1, and label each number with two digits, position and head. Write down the order of the
# labels after every line. The fold changes it on purpose. Which line should change it back, and does it?
#
# </details>
# <details><summary>Hint 2: the labels of that case</summary>
#
# The rows of q are 00 01, 10 11 and 20 21. After the fold, q is two *sentences*, 00 10 20 and 01 11 21, and the product
# keeps that order. The function must return rows in the original order of q. Which rows does it return?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "folded_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def folded_heads(q, k, v, h):
    """Attention in h heads, with the heads folded into the batch.

    q, k, v: (b, t, e), the projections of all heads. Returns (b, t, e), what the heads
    found, side by side, for `unify` to mix: components r·d to (r+1)·d − 1 are head r's.
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
# The last line was wrong. `y` is (b·h, t, d), with all positions of head 0 before those of head 1. `y.reshape(b, t, e)`
# cuts this sequence of numbers into rows of e, and each row has pieces of several positions. The axes have to be split
# and exchanged first: `y.reshape(b, h, t, d).transpose(1, 2).reshape(b, t, e)`. A reshape only needs the right number
# of entries, so there is no shape error.
#
# </details>

# %% [markdown]
# ## Three questions, answered
#
# Do heads help? We generate sentences by a rule, *NAME gave THING to NAME*, from 16 names and 16 things. A small model,
# the `Reader`, gets the five words, has one layer of attention, and must then predict giver, thing and receiver **from
# the one vector at the word *gave***, with a linear layer. The loss is the
# **[cross-entropy](../../site/glossary.md#cross-entropy)**: minus the logarithm of the probability of the right answer,
# on average. Compare h = 1 with h = 3. Both have the same number of parameters, as you will count in exercise 6; they
# differ only in how they use the width.

# %% [markdown]
# <div class="card">
#
# **Prediction · `one_head_reads`** &nbsp; 1 minute · no points
#
# The reader with one head is trained three times, from three random starts. How will it do on new sentences? (With 16
# names, a guess is right about 6 times in 100.)
#
# - **A.** It answers most questions. How many errors are left depends on the start.
# - **B.** It answers one of the three questions, and guesses the other two.
# - **C.** As well as with three heads, because it has as many parameters: hardly an error in any run.
# </div>

# %% nbgrader={"grade": false, "grade_id": "one_head_reads", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
one_head_reads = "A"
### STUDENT GETS
# one_head_reads = ...    # "A", "B" or "C"
### END SOLUTION

# %%
class Reader(nn.Module):
    """Word and place vectors, one layer of attention, three answers read off at the verb."""

    def __init__(self, attention, e):
        super().__init__()
        self.words, self.places = nn.Embedding(len(WORDS), e), nn.Embedding(5, e)
        self.attention, self.answers = attention, nn.Linear(e, 3 * len(WORDS))

    def forward(self, ids):
        y = self.attention(self.words(ids) + self.places.weight)    # (b, 5, e)
        return self.answers(y[:, GAVE]).view(-1, 3, len(WORDS))

torch.set_num_threads(1)    # models as small as these are faster on one core than on two

def train(attention, h, seed=1, steps=300):
    """Train a reader whose attention has h heads, on 64 new sentences in every step.

    Returns the reader, its losses, and a line with the share of right answers for each role.
    """
    torch.manual_seed(seed)
    sentences = torch.Generator().manual_seed(seed)
    reader, losses = Reader(attention(24, h), 24).to(device()), []
    optimiser = torch.optim.Adam(reader.parameters(), lr=0.01)
    for step in range(steps):
        ids, answers = (part.to(device()) for part in giving_sentences(64, sentences))
        loss = nn.functional.cross_entropy(reader(ids).transpose(1, 2), answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    ids, answers = (part.to(device()) for part in giving_sentences(2000, sentences))
    right = (reader(ids).argmax(-1) == answers).float().mean(0)
    line = ", ".join(f"{role} {share:.0%}" for role, share in zip(ROLES, right.tolist()))
    return reader, losses, line

# %% mystnb={"image": {"alt": "Loss against training step on a logarithmic axis, three runs for one head and three for three heads. After 300 steps the runs with one head are at losses between 0.1 and 1: one has stayed near 1 since about half way, one is still falling, and one falls slowly and unevenly. The runs with three heads are all far below."}}
runs = {h: [train(MultiHeadAttention, h, seed) for seed in (1, 2, 3)] for h in (1, 3)}

_, ax = plt.subplots()
for h, colour, dashes in zip(runs, plots.COLOURS, plots.DASHES):
    for run, (_, losses, right) in enumerate(runs[h]):
        label = None if run else f"h = {h}"
        ax.plot(losses, color=colour, linestyle=dashes, linewidth=1.3, label=label)
        print(f"h = {h}, run {run + 1}, right answers: {right}")
ax.set(xlabel="step", ylabel="cross-entropy in nats", yscale="log")
ax.legend()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Cross-entropy against step; lower is better. There are three runs for each h, with the same seeds.
# With three heads there is hardly an error in any run. With one head, one curve is still falling after 300 steps, one
# falls slowly and unevenly, and one stopped early, near 1.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_one_head_reads", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("one_head_reads", one_head_reads)

# %% [markdown]
# Is one head unable to hold three answers, or does training fail to find them? To find out, we trained one head from
# seven starts, each for eight times as many steps (not shown here). Four runs learned all three roles with few errors,
# and three kept guessing one role or two. So the sum of one head has room for three answers, but gradient descent gets
# there only from some starts. With three heads it got there from each of our three starts, in 300 steps.
#
# What did the three heads do? We compute their weights for our sentence from the trained model's queries and keys.

# %% mystnb={"image": {"alt": "Three heat maps of weights over mary gave roses to susan, one for each head, with numbers. In the row of gave, one head puts its weight on roses, one on susan, and one on mary and gave."}}
reader, *_ = train(MultiHeadAttention, 3, seed=2)    # run 2 again: train fixes its seeds
ids = word_ids("mary gave roses to susan").to(device())
x = reader.words(ids) + reader.places.weight    # (1, 5, 24)
q = finished_split(reader.attention.to_queries(x), 3)
k = finished_split(reader.attention.to_keys(x), 3)
weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), dim=-1)    # (1, 3, 5, 5)

plots.head_grid(weights[0], words, titles=[f"head {r}" for r in range(3)], digits=1)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One map for each head of run 2, the one with the lowest loss. The loss depends only on the row
# *gave*, not on the other rows. Where in that row does each head put its weight, and which of the three answers is read
# from it?
#
# </div>
#
# In the row *gave*, head 0 reads *roses*, head 1 reads *susan*, and head 2 reads *mary*, with about half of its weight
# left on *gave* itself. The order of the heads has no meaning, and other runs divide the questions less tidily.

# %% [markdown]
# ## Heads in a published model
#
# Do the heads of a published model ask different questions too?
# [all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) is a published model of 6 layers
# with 12 heads each; you will load it yourself in [lesson 14](../14_bert/14_bert.ipynb). We recorded its weights. Here
# are 2 of its 72 heads on one sentence. The [tokens](../../site/glossary.md#token) [CLS] and [SEP] mark where a
# text begins and ends.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two maps of attention weights over the sentence the animal did not cross the street because it was too tired. In the first the weight is one step left of the diagonal. In the second, more than half of the rows look most at the first token, and the row of it looks at animal."}}
recording = recorded("minilm")["result"]
example, pronoun = recording["example"], recording["pronoun_head"]
(i, j), previous = example["heads"][0], example["weights"][0]
k, m = pronoun["head"]

maps = torch.tensor([previous, pronoun["weights"]])
plots.head_grid(maps, example["pieces"], annotate=False,
                titles=[f"layer {i}, head {j}", f"layer {k}, head {m}"])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, from the published model. Row i shows which tokens token i looks at; darker means more
# weight. The first head looks at the token before. In the second, look at the row of *it*.
#
# </div>
#
# In the second head *it* gives 0.69 of its weight to *animal*, so this head seems to know what the pronoun means. Such
# heads are known from BERT ([Clark et al., 2019](https://arxiv.org/abs/1906.04341)), and the sentence is a famous one
# ([Uszkoreit,
# 2017](https://research.google/blog/transformer-a-novel-neural-network-architecture-for-language-understanding/)). But
# one map is not a test. In these five sentences *it* means the subject twice and the other noun three times; the last
# two are a *Winograd schema* ([Levesque et al., 2012](https://cdn.aaai.org/ocs/4492/4492-21843-1-PB.pdf)).

# %% tags=["hide-input"]
for sentence in pronoun["sentences"]:
    nouns = ", ".join(f"{noun} {weight:.2f}" for noun, weight in sentence["weights"].items())
    print(sentence["text"])
    print(f"    weights of it: {nouns}; it means the {sentence['meant']}\n")

# %% [markdown]
# In all five the subject gets more weight than the other noun, even where *it* cannot mean the subject. A simpler
# question fits these five better than the one we read into the head: *which noun came first?* (Or *which is the
# subject?* These sentences cannot tell the two apart.) It does not fit perfectly: with *wide* instead of *tired*, the
# weight on *animal* falls from 0.69 to 0.32. A weight map shows where a head looks. To find out what it looks *for*,
# you need an experiment that separates the explanations.

# %% [markdown]
# ## A reader with a bug
#
# Suppose that a module with three heads has the bug of exercise 4, a merge that does not exchange the axes, and that a
# reader is trained with it as above. The row *gave*, the second of five rows of 24 numbers, then consists of numbers 24
# to 47 of the sentence's (3, 5, 8) tensor: the outputs of head 0 for *to* and *susan*, and that of head 1 for *mary*.

# %% [markdown]
# <div class="card">
#
# **Prediction · `scrambled_answers`** &nbsp; 1 minute · no points
#
# How well will this reader answer on new sentences?
#
# - **A.** About as well as a guess, for all three roles: its rows consist of pieces of other rows.
# - **B.** With hardly an error in all three roles, like the correct module.
# - **C.** Well for two roles, and no better than a guess for one: one of its three pieces comes from a different head.
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
        b, t, e = x.shape
        projections = self.to_queries, self.to_keys, self.to_values
        q, k, v = (finished_split(project(x), self.h) for project in projections)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(e // self.h), dim=-1)
        return self.unify((weights @ v).reshape(b, t, e))

*_, right = train(ScrambledAttention, 3)
print("right answers:", right)

# %% nbgrader={"grade": true, "grade_id": "check_scrambled_answers", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("scrambled_answers", scrambled_answers)

# %% [markdown]
# The row of *gave* now reads *to* and *susan* in head 0 and *mary* in head 1, so training teaches these to ask what
# *gave* should have asked. It holds only for sentences as long as those in training: with six words, the row of *gave*
# has other pieces. And in [lesson 5](../05_masking/05_masking.ipynb), where a model must not look ahead, this mistake
# is a leak: the first position gets outputs of head 0 for later positions.
#
# A falling loss does not show that the code does what it says. A comparison with known numbers can: this module and
# `nn.MultiheadAttention`, with the same weights, differ at once. A round trip, `merge_heads(split_heads(x, h))`, finds
# it too, but only if the split is right: if both are direct reshapes, they cancel.

# %% [markdown]
# ## The product and the loop are the same
#
# We said that one product with a wide matrix does the work of $h$ heads. Now show it with actual weights. Take $h$
# separate heads of lesson 2, each a `SingleHeadAttention(e, d)`, run them in a loop and put their outputs side by side.
# Then fuse their matrices into three, and compute all heads at once.
#
# Note how `nn.Linear` stores its weight: as (outputs, inputs), the transpose of the $(e, d)$ in our formulas. So each
# *row* of a head's weight belongs to one of its outputs, and stacking heads means stacking rows: three weights of shape
# (h·d, e).

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `fuse_heads`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# From a list of single heads make the three weights of one fused layer, in `nn.Linear`'s layout, head 0 first. Copy
# the numbers unchanged: the code that uses the weights takes care of $\sqrt d$. Return new tensors, even for a list of
# one head, and change neither the list nor the heads. Gradients are not checked here.
#
# <details><summary>Hint 1: one of the three</summary>
#
# `head.to_queries.weight` is (d, e). You need h of them one below the other, as one (h·d, e). Look up how `torch.cat`
# and `torch.stack` differ.
#
# </details>
# <details><summary>Hint 2: two heads, with numbers</summary>
#
# Let e = 3 and d = 2. The query weights of head 0 have the rows (1, 2, 3) and (4, 5, 6), those of head 1 the rows (7,
# 8, 9) and (0, 0, 1). Then `w_q` has these four rows, in this order: its shape is (4, 3), not (2, 6) or (2, 2, 3).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "fuse_heads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fuse_heads(heads):
    """The weights of several single heads as those of one fused layer.

    heads: a list of h SingleHeadAttention(e, d), each with to_queries, to_keys, to_values,
    whose .weight is (d, e). Returns (w_q, w_k, w_v), new tensors of shape (h·d, e), not
    scaled. Counted from 0, rows r·d to (r+1)·d − 1 are those of head r.
    """
    ### BEGIN SOLUTION
    w_q = torch.cat([head.to_queries.weight for head in heads])
    w_k = torch.cat([head.to_keys.weight for head in heads])
    w_v = torch.cat([head.to_values.weight for head in heads])
    return w_q, w_k, w_v
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_fuse_heads", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(fuse_heads)

# %% [markdown]
# First compare the computation alone, without scaling on either side. Then load these weights into your
# `MultiHeadAttention` and compare: it divides its scores by $\sqrt d$, so its query weights are multiplied by
# $\sqrt d$, and its `unify` is the identity.

# %% tags=["nbval-check-output"]
heads = [SingleHeadAttention(12, 4).to(device()) for _ in range(3)]
x = torch.randn(2, 5, 12, device=device())
loop = torch.cat([head(x) for head in heads], dim=-1)    # (b, t, h·d)

w_q, w_k, w_v = fuse_heads(heads)
q, k, v = (finished_split(x @ w.T, 3) for w in (w_q, w_k, w_v))
fused = finished_merge(torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v)
print("fused product = loop over heads:  ", torch.allclose(fused, loop, atol=1e-5))

whole = MultiHeadAttention(12, 3).to(device())
whole.load_state_dict({
    "to_queries.weight": w_q * math.sqrt(4), "to_keys.weight": w_k, "to_values.weight": w_v,
    "unify.weight": torch.eye(12), "unify.bias": torch.zeros(12),
})
print("MultiHeadAttention = loop over heads:", torch.allclose(whole(x), loop, atol=1e-5))

# %% [markdown]
# So the loop defines multi-head attention, and the fused product computes it. Whenever a shape puzzles you, go back to
# the loop.

# %% [markdown]
# ## Other conventions, and what they cost
#
# **Wide heads.** A narrow head works in $d = e/h$ dimensions, which is not much when there are many heads: at $e = 512$
# and $h = 32$, sixteen numbers have to say what a word asks for. In the wide convention each head has all $e$
# dimensions. The projections map e to $h\,e$, the merged heads are $h\,e$ wide, and `unify` maps back to e. In our
# formulas only one thing changes: $d = e$. The module is that of exercise 3, with other sizes.
#
# **Shared keys and values.** A model that writes word by word keeps the keys and values of all words so far ([lesson
# 12](../12_gpt2/12_gpt2.ipynb)), and in long texts they fill the memory. So let the heads share them. In **[multi-query
# attention](../../site/glossary.md#multi-query-attention)** ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)) each
# head has queries of its own, and all read the same keys and values, of width d: the scores are (b, h, t, d) @ (b, 1,
# d, t), and `@` uses the one set for every head.
#
# **Grouped-query attention** ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)) is in between: a few groups of
# heads, each with one set of keys and values. Several of today's large models use it.
#
# For narrow, wide and multi-query heads, count all trained numbers: three projections without bias, and `unify` with
# its bias of e numbers.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `count_parameters`** &nbsp; ★☆☆ · 8 minutes · 3 points
#
# Return the number of parameters for width e, h heads and one of three kinds: `"narrow"`, your module of exercise 3;
# `"wide"`, the same with heads of width e; `"multi-query"`, narrow heads of width d = e/h that share one d-wide set of
# keys and one of values.
#
# <details><summary>Hint 1: layer by layer</summary>
#
# An `nn.Linear(m, n)` has m·n weights, and n more numbers if it has a bias. Write down m and n for the four layers of
# each kind.
#
# </details>
# <details><summary>Hint 2: a small case, with numbers</summary>
#
# For e = 4 and h = 2 the counts are 68 (narrow), 132 (wide) and 52 (multi-query). For the narrow kind you can also
# count with your module: `sum(p.numel() for p in module.parameters())`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "count_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_parameters(e, h, kind):
    """How many numbers are trained, the bias of unify included.

    e: width of the model. h: heads; it divides e. kind: "narrow" (heads of width e/h),
    "wide" (heads of width e) or "multi-query" (h queries of width d = e/h; one projection
    to keys of width d and one to values of width d, for all heads; unify as in "narrow").
    Returns an integer: a Python int, or an integer tensor of one number.
    """
    ### BEGIN SOLUTION
    if kind == "narrow":
        projections, unify = 3 * e * e, e * e + e
    elif kind == "wide":
        projections, unify = 3 * e * (h * e), (h * e) * e + e
    else:
        projections, unify = e * e + 2 * e * (e // h), e * e + e
    return projections + unify
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_count_parameters", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(count_parameters)

# %% mystnb={"image": {"alt": "Parameters against heads from 1 to 32 at width 256, both axes logarithmic. Wide rises in proportion to the heads, narrow is a horizontal line, multi-query falls to a little above half of the narrow line, towards the level of the queries and unify alone. All three start at the same point."}}
h = [1, 2, 4, 8, 16, 32]
lines = {kind: (h, [count_parameters(256, heads, kind) for heads in h])
         for kind in ("wide", "narrow", "multi-query")}
landmarks = {"queries and unify alone": 2 * 256 * 256 + 256}
plots.curves(lines, "heads h", "parameters", log="xy",
             landmarks=landmarks, named_at="left")
plt.gca().set_xticks(h, labels=h)
plt.minorticks_off()
plt.show()

for kind in ("narrow", "wide", "multi-query"):
    print(f"{kind:>11}: {count_parameters(512, 8, kind):>9,} parameters at e = 512, h = 8")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Width e = 256, both axes logarithmic. With one head all three have the same count, $4e^2 + e$.
# With more heads, the wide kind grows with h; the narrow kind does not; with shared
# keys and values, little more than the queries and `unify` is left.
#
# </div>
#
# For narrow heads the line is level. [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2, justify
# narrow heads by their cost: for one pair of words, h dot products of d terms need as many multiplications as one of
# $e = h\,d$. Only the tables of weights cost more: h of (t, t) instead of one. Eight questions for nearly the price
# of one.

# %% [markdown]
# ## Your model so far
#
# One part of the model changes: `MultiHeadAttention(64, 4)`, your four heads of width 16, takes the place of the single
# head. It brings a fourth matrix, `unify`. The cell takes up to twenty seconds on one core; the stop button ends it
# early.

# %% mystnb={"image": {"alt": "A scoreboard of five models over bits per byte. From the bottom: the plain average near 4.5, bare self-attention at 3.6, then queries, keys and values, scaled scores and four heads, all three near 3.7. All are right of the line of order 1, at 3.5."}}
from helpers.ladder import ByteModel, Ladder

ladder = Ladder(check)
heads_class = ladder.own(MultiHeadAttention)
torch.manual_seed(0)
ladder.climb(ByteModel(heads_class(64, 4)))
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each model; farther left is better. A point is your model, ticks are three runs of
# ours. Dashed lines: what the frequencies of bytes give (*order 0*), those of pairs (*order 1*), and two programs that
# compress files (*gzip*, *xz*).
#
# </div>
#
# Four heads do not change the picture: 3.71 or 3.72 [bits per byte](../../site/glossary.md#bits-per-byte) in our three
# runs, against 3.69 to 3.79 with one scaled head. Each head may ask a question of its own, but to all of them a window
# is still a bag of bytes: none can ask for *the byte before*. Two things are missing: a prediction at every
# position (lesson 5), and vectors for the positions (lesson 6).

# %% [markdown]
# ## What you can do now
#
# You can split a tensor into heads and merge it again, and say why a reshape alone does neither; write multi-head
# attention without a loop and show that a loop over heads gives the same; find a wrong merge that the loss does not
# show; and tell narrow, wide and multi-query heads apart by the shapes of their layers, and count their parameters.
#
# **Three questions to think about**
#
# <details><summary>1. Exchange head 0 and head 1 of a trained model: their rows in all three projections. What else has
# to be exchanged so that the model's outputs do not change?</summary>
#
# The columns of `unify.weight` that read them: columns r·d to (r+1)·d − 1 belong to head r. Then nothing changes,
# because a sum over heads has no order. So the number of a head has no meaning.
#
# </details>
# <details><summary>2. What is left of a head of width d = 1?</summary>
#
# Its queries and keys are single numbers, and its scores are products $q_i\,k_j$. Every query ranks all positions in
# the order of their keys, or in exactly the reverse order if $q_i$ is negative; the size of $q_i$ only sets how
# sharp the weights are. The head can look for *more* or *less* of one thing. In general the (t, t) scores of a head are
# the product of a (t, d) and a (d, t) matrix, so their rank is at most d.
#
# </details>
# <details><summary>3. Suppose that for wide heads `unify` only adds up the heads instead of mixing them. Is anything
# lost?</summary>
#
# Nothing but the bias of `unify`. A wide head's values are $x W_v$ with its own (e, e) matrix; its part of `unify` then
# multiplies them with another (e, e) matrix. Two linear maps in a row are one, so $W_v$ alone can be the product of
# both.
#
# With narrow heads it is different: $W_v$ maps down to d = e/h numbers and $W_u$ back up to e. Their product is an (e,
# e) matrix of rank at most d, and $W_v$ alone, with only d outputs, cannot replace it. The mixing lets a narrow head
# choose the d directions in which it writes.
#
# </details>
#
# **Where it goes next.** Every position still looks at every other, including later ones. A model that predicts the
# next word must not do that.
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): the sentence *mary gave
#   roses to susan*, the swap of its two names, and the name `unify` are from there.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2.2: half a
#   page. Its reason for several heads: *With a single attention head, averaging inhibits this.*
# - [Voita et al., *Analyzing multi-head self-attention*, 2019](https://arxiv.org/abs/1905.09418), section 5: what
#   trained heads look at.
# - [Michel, Levy and Neubig, *Are sixteen heads really better than one?*, 2019](https://arxiv.org/abs/1905.10650),
#   sections 3 and 4, where heads are removed after training.
# - [Shazeer, *Fast transformer decoding: one write-head is all you need*, 2019](https://arxiv.org/abs/1911.02150),
#   section 3: multi-query attention.
# - [Ainslie et al., *GQA*, 2023](https://arxiv.org/abs/2305.13245), section 2: grouped-query attention.
#
# **Next:** [lesson 5, *Masking*](../05_masking/05_masking.ipynb)
