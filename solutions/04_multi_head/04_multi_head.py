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
# **One row of weights has to answer three questions.** In *mary gave roses to susan*, a reader of *gave* asks who
# gave, what was given, and who received it. But in the attention of the last two lessons, *gave* has one query, one
# row of weights and one average. Is one row enough? You build a layer with several rows and compare. Then you write a
# test for a bug that raises no error.
#
# | | |
# |---|---|
# | **You will build** | multi-head attention without a loop over the heads, and a test that catches a wrong merge |
# | **You need** | queries, keys and values ([lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb)), and why scores are divided by $\sqrt d$ ([lesson 3](../03_scaling/03_scaling.ipynb)) |
# | **It takes** | about 85 minutes: five exercises, one of them with a bug to fix, and two predictions; 19 points |
# | **It computes** | in about a minute in all, without a GPU; the training in the section *Your model so far* can be stopped early |
#
# b, t and e stand for sentences, positions and width, as before. **h** is new, the number of heads, and **d** is now
# the width of *one* head. Counting starts at 0. All letters are in [the table](../../site/notation.md).

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
# ## A fixed row gives one name, not two
#
# In the attention of lesson 2, the word *gave* receives
#
# $$y_{\text{gave}} \;=\; \sum_j w_{\text{gave},j}\; v_j .$$
#
# Take a **fixed** row, the same in every sentence: 0.4 on the first word, 0.2 on the last.
#
# | sentence | sum, where *mary* and *susan* are their values |
# |---|---|
# | *mary gave roses to susan* | 0.4 *mary* + 0.2 *susan* + other words |
# | *susan gave roses to mary* | 0.4 *susan* + 0.2 *mary* + other words |
#
# Can a linear layer read the receiver from these sums? It gives every name a score, and the highest is its answer. A
# name that has weight 1 in the sum adds some number to its own score and other numbers to those of other names. Call
# their averages over all names *own* and *other*. Over all sentences, the average scores are
#
# | giver | receiver | absent name |
# |---|---|---|
# | 0.4 *own* + 0.2 *other* | 0.2 *own* + 0.4 *other* | 0.6 *other* |
#
# The other words add the same to all three averages. If the receiver has the highest score in every sentence, its
# average is the highest, too. It beats the giver's only if *other* is larger than *own*, and that of absent names only
# if *own* is larger than *other*. **So no linear layer reads both names from one fixed row in every sentence.** Any two
# unequal weights fail in the same way; with equal weights the two sums are the same. *gave* needs a second row, or a
# row that changes with the words.

# %% [markdown]
# ## Several heads, each with its own row
#
# Let $h$ attention layers read the same sentence, each with its own three matrices of shape $(e, d)$. They are called
# **[heads](../../site/glossary.md#head)**. From its queries $q^{(r)} = x\,W_q^{(r)}$, and keys and values likewise,
# head $r$ computes
#
# $$y^{(r)} \;=\; \operatorname{softmax}\!\Big(\tfrac{1}{\sqrt d}\; q^{(r)} k^{(r)\top}\Big)\, v^{(r)}
# \qquad\text{of shape } (t, d).$$
#
# Side by side, the $h$ results are $(t, h\,d)$. One more matrix, $W_u$ of shape $(h\,d, e)$, mixes the heads and
# brings the width back to $e$. We call this step `unify`; [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)
# write $W^O$ for $W_u$. The whole layer is **[multi-head
# attention](../../site/glossary.md#multi-head-attention)**. With $d = e/h$, as in their model, the heads share the
# width: **together they have as many parameters as one head of width e**.

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
# **How to read it.** The whole layer from top to bottom, for three heads. k and v are split like q. The heads exchange
# nothing until `unify`.
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
# exercise shows. For the error, `e % h` is the remainder.
#
# </details>
# <details><summary>Hint 2: two positions, with numbers</summary>
#
# Let x be one sentence with the two rows (0, 1, 2, 3) and (4, 5, 6, 7), and h = 2. Head 0 is then (0, 1), (4, 5), and
# head 1 is (2, 3), (6, 7). If your head 0 is (0, 1), (2, 3), you reshaped directly to the final shape. If it is (0,
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
# and its row i still belongs to position i. Bottom: the same shape, reached in one step. Reshape reads x row by row,
# so *head 0* is the first ten numbers and gets nothing from positions 2 to 4.
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
# 4). The scores are (2, 3, 5, 5), divided by 2, and each of their rows of 5 becomes weights. The average is (2, 3, 5,
# 4), and after the merge (2, 5, 12). If `@` raises an error, you transposed the wrong two axes of k, or none. If the
# scores are (2, 3, 4, 4), you transposed q instead.
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
# With the same weights, your module agrees with PyTorch's (whose projections also have biases, set to zero here), and
# the number of heads leaves the number of parameters as it is:

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
# ## One row against three
#
# We train a small model, the `Reader`, on sentences of the form *NAME gave THING to NAME*. Each word has a vector, plus
# one for its position ([lesson 6](../06_positions/06_positions.ipynb)). One layer of attention follows. Then a linear
# layer predicts giver, thing and receiver **from the one vector at *gave***.
#
# The layer of attention is your `MultiHeadAttention`, or `FixedRows`, which has no queries and keys: it learns rows of
# weights that are the same in every sentence.

# %% [markdown]
# <div class="card">
#
# **Prediction · `one_head_reads`** &nbsp; 1 minute · no points
#
# The model with one head is trained ten times, from ten random starts. How well does it answer then? (With 16 names,
# a guess is right about 6 times in 100.)
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

# %% mystnb={"image": {"alt": "Four rows of ten dots over the share of right answers for giver or receiver, the lower of the two. One fixed row: all between 23 and 31 percent. Three fixed rows: all at 100. One head: four dots at 7, on the line of a guess, and six from 73 to 90. Three heads: all at 99 or 100."}}
from helpers.training.giving import FixedRows, rows_of_gave, train

models = {"one fixed row": (FixedRows, 1), "three fixed rows": (FixedRows, 3),
          "one head": (MultiHeadAttention, 1), "three heads": (MultiHeadAttention, 3)}
trained, lower = {}, {}
for name, (attention, h) in models.items():
    trained[name] = [train(attention, h, seed) for seed in range(1, 11)]
    lower[name] = [100 * min(right["giver"], right["receiver"])
                   for _, right in trained[name]]
label = "right answers for giver or receiver, the lower of the two, %"
plots.runs({"": lower}, label, {"a guess": 100 / 16}, dots=True)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One dot for each of ten random starts, after 300 steps of training. Shares are of 2,000 new
# sentences.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_one_head_reads", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("one_head_reads", one_head_reads)

# %% [markdown]
# **The number of rows makes the difference.** With one fixed row, one of the names is right in less than a third of the
# sentences. Three rows, fixed or not, name both nearly always, from every start. One head, with as many parameters as
# three, gets both names mostly right in six of ten runs, and guesses at least one in the other four. Here are the rows
# of *gave* of one head in run 4, one of the six, and of three heads in run 2:

# %%
for name, h, run in (("one head", 1, 4), ("three heads", 3, 2)):
    reader, _ = trained[name][run - 1]
    for sentence in ("mary gave roses to susan", "susan gave roses to mary"):
        for row in rows_of_gave(reader, h, sentence):
            words = zip(sentence.split(), row)
            print(f"{name}:", *(f"{word} {w:.2f}  " for word, w in words))

# %% [markdown]
# One head gives *susan* the larger weight, first or last. So both sums hold about the same amounts of each name. They
# differ in how much they hold of the last *position's* vector, and that tells who received. Training finds this detour
# from some starts only ([Measured further](../../site/further.md#lesson-4)). Of the three heads, one looks at the
# thing, one at the receiver, and one at the giver or at *gave*.
#
# **In this toy, three fixed rows do as well as three heads,** because the giver is always the first word and the
# receiver always the last. In real sentences they move, and a row has to depend on the words.

# %% [markdown]
# ## Three heads read one sentence in three ways
#
# The first layer of [all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) has twelve
# heads. Its position vectors are left out until lesson 6, so the weights depend on the words alone. Your
# `split_heads` cuts the heads apart:

# %% mystnb={"image": {"alt": "Three maps of attention weights over the twelve words the boat could not reach the bank because it was too muddy. In the first, nearly every row is dark in the column of bank. In the second, only one cell is dark: row bank, column muddy. In the third, the darkest cells are on the diagonal, and each of the two rows of the is dark in both columns of the."}}
q, k, _ = (torch.cat(part, dim=-1)[None] for part in
           zip(*(queries_keys_values(r) for r in range(12))))    # (1, t, 12·32)
weights = torch.softmax(split_heads(q, 12) @ split_heads(k, 12).mT / math.sqrt(32), dim=-1)
plots.sentence_map(weights[0, [2, 4, 8]], SENTENCE, ["head 2", "head 4", "head 8"])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i holds the weights of word i. Three of the twelve heads, chosen because they differ.
#
# </div>
#
# In head 2 nearly every word looks at *bank*. In head 4 *bank* looks at *muddy*, as in head 7 of lesson 2. In head 8
# half of the words look at themselves, and each *the* at both.
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
# The last line was wrong. `y` is (b·h, t, d), with all positions of head 0 before those of head 1. `y.reshape(b, t,
# e)` cuts this sequence of numbers into rows of e, and each row has pieces of several positions. The axes have to be
# split and exchanged first: `y.reshape(b, h, t, d).transpose(1, 2).reshape(b, t, e)`. A reshape only needs the right
# number of entries, so it raised no error.
#
# </details>

# %% [markdown]
# **Does such a bug show in the score?** Give a `Reader` with three heads a scrambled merge, a reshape alone. In memory,
# five pieces of head 0 come first, then five of head 1, then five of head 2. The reshape deals them out three at a
# time. Row 1 (*gave*) gets the fourth and fifth of head 0 and the first of head 1: nothing that was computed for
# *gave*.

# %% [markdown]
# <div class="card">
#
# **Prediction · `scrambled_answers`** &nbsp; 1 minute · no points
#
# How well does this model answer?
#
# - **A.** About as well as a guess, for all three roles: its rows consist of pieces of other rows.
# - **B.** With hardly an error in any of the three roles, like the correct module.
# - **C.** Well for two roles, and no better than a guess for the third: two of the three pieces in the row of *gave*
#   come from head 0, and none from head 2.
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
# **A score of 100% does not prove the code right.** (It is rounded, and from one run.) Every sentence has five
# words, so the same three pieces always end up in the row of *gave*. Each is still an average of all five values, and
# training adapts the weights to that ([Measured further](../../site/further.md#lesson-4)). Only the last line, the
# comparison with a right module, shows the bug. Your test has to do without one.

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
# **How to read it.** Farther left is better. The point is your model, the ticks are our three runs. [Lesson
# 1](../01_dot_product_attention/01_dot_product_attention.ipynb) explains the dashed lines.
#
# </div>
#
# The mean of our runs falls from 3.33 to 2.85 [bits per byte](../../site/glossary.md#bits-per-byte). One head of width
# 64 with `unify` scores 3.33 in one run, so `unify` alone does not explain it ([Measured
# further](../../site/further.md#lesson-4)).

# %% [markdown]
# ## What you can do now
#
# **Is one row of weights enough for three questions?** A fixed row is not: no linear layer reads both names from it in
# every sentence. One head got both mostly right in six of our ten runs and guessed at least one in the others. Three
# rows named both nearly always, from every start, even fixed ones, since in the toy each role has its place. A
# wrong merge raised no error and in one run cost hardly any score; your test catches it.
#
# **Two questions to think about**
#
# <details><summary>1. In a trained model, swap head 0 and head 1: swap their rows of `weight` in all three
# projections. (`nn.Linear` stores a matrix transposed.) What else must you swap to leave the output
# unchanged?</summary>
#
# The columns of `unify.weight` that read them: columns r·d to (r+1)·d − 1 belong to head r. Then nothing changes,
# because `unify` adds the heads up, and a sum has no order. So the number of a head has no meaning.
#
# </details>
# <details><summary>2. You have a trained module that you can only call. How do you find out whether its merge is
# scrambled?</summary>
#
# Reorder the positions of x. In a right module, the rows of the output are reordered in the same way (lesson 1). A
# scrambled merge then puts other pieces together, so the rows themselves change.
#
# </details>
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): the sentence about *mary*,
#   the swap of its two names, and the name `unify`.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2.2: why
#   several heads, and what they cost, in half a page.
# - [Voita et al., *Analyzing multi-head self-attention*, 2019](https://arxiv.org/abs/1905.09418): what trained heads
#   look at (section 5).
#
# In the attention that you wrote, a word also looks at the words after it. A model that has to predict those words
# must not see them.
#
# **Next:** [lesson 5, *Masking*](../05_masking/05_masking.ipynb)
