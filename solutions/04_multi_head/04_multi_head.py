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
# *mary gave roses to susan.* To understand the word *gave*, a reader needs three answers: who gave, what, and who
# received it? Attention, as the last two lessons left it, lets a word ask one question and returns one average. This
# lesson gives every word several questions, and shows that asking them all costs no more than asking one.
#
# | | |
# |---|---|
# | **You will build** | multi-head attention as the paper has it, in one matrix product, and a count of what it costs |
# | **You need** | queries, keys and values ([lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb)), and why scores are divided by $\sqrt d$ ([lesson 3](../03_scaling/03_scaling.ipynb)) |
# | **It takes** | about 100 minutes: six exercises, one of them to mend, and two predictions; 22 points |
# | **It computes** | in seconds: we train a few small models on 19,200 synthetic sentences each |
#
# As before, b counts sentences, t positions, and e is the width of the model. Two letters move to the centre: **h** is
# the number of heads, and **d** is the width of *one* head. Heads, positions and components are counted from 0, as in
# the code. All letters are in [the table](../../site/notation.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
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
# Take one head of lesson 2. The word *gave* receives from it
#
# $$y_{\text{gave}} \;=\; \sum_j w_{\text{gave},j}\; v_j ,$$
#
# a sum with one term for each word. Now let mary and susan change places: *susan gave roses to mary*. It is another
# event. But if nothing says where a word stands, *gave* receives the same five terms in another order, and a sum has no
# order. So the place has to be said: to the vector $x_j$ of each word a learned vector $p_j$ for its place is added.
# [Lesson 6](../06_positions/06_positions.ipynb) is about that; here it is one line of code. Values are then
# $(x_j + p_j)\,W_v$, and the sum falls into two:
#
# $$y_{\text{gave}} \;=\; \sum_j w_{\text{gave},j}\; x_j W_v \;+\; \sum_j w_{\text{gave},j}\; p_j W_v .$$
#
# Now the weights can depend on places, too. To keep the picture simple, let them depend on nothing else: 0.4 for the
# first word, 0.1 for *gave* itself, then 0.2, 0.1 and 0.2. With that, the second sum is the same for both events; it
# cannot tell them apart. The first sum is drawn here.

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
# **How to read it.** Each arrow is one term of the first sum: a word's value times the weight of its place, for a head
# of width 2 with random matrices. The cross is what *gave* receives. From left to right mary's arrow is halved and
# susan's is doubled. Both keep their directions.
#
# </div>
#
# **A weight makes an arrow longer or shorter. It cannot turn it.** Whether mary gives or receives is told by an amount
# only: how much *mary* the sum contains, relative to *susan* and *roses*. Amounts can be read off a sum, to a degree,
# and later in this lesson one head will have to do it. A better way is a direction for each question.

# %% [markdown]
# ## Heads
#
# So let $h$ attentions look at the same sentence, each with three matrices of its own. They are called
# **[heads](../../site/glossary.md#head)**. Head $r$ computes
#
# $$y^{(r)} \;=\; \operatorname{softmax}\!\Big(\tfrac{1}{\sqrt d}\; q^{(r)} k^{(r)\top}\Big)\, v^{(r)}
# \qquad\text{of shape } (t, d),$$
#
# where $q^{(r)} = x\,W_q^{(r)}$, and $k^{(r)}$ and $v^{(r)}$ alike, with matrices of shape $(e, d)$. The root is that
# of $d$, the width in which the dot products are taken: lesson 3's argument counts their terms, and there are $d$ of
# them. Then lay the $h$ results side by side, $(t, h\,d)$, and mix them with one more matrix, of shape $(h\,d, e)$,
# that brings the width back to $e$. We call that last map `unify`; the paper calls its matrix $W^O$.
#
# Mary now enters the result once for each head, as $\sum_r w^{(r)} v^{(r)}_{\text{mary}} W_u^{(r)}$, where $W_u^{(r)}$
# are the $d$ rows of `unify` that belong to head $r$. Every head has a direction of its own to put her in. A head that
# looks for givers can write *mary* in one direction, a head that looks for receivers in another.
#
# How wide should a head be? In the paper the heads share the width: $d = e/h$. It has $e = 512$ and $h = 8$, and so
# $d = 64$ ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.2). That is the **narrow** convention,
# and the one of this course. What else is in use comes at the end of the lesson.

# %% [markdown]
# ## All heads in one product
#
# A loop over $h$ little attentions would do, and be slow: many small products keep a processor waiting. But look at the
# queries. $x W_q^{(0)}$, $x W_q^{(1)}$ and so on are products of *the same* $x$. Put the matrices beside each other,
# and one product with an $(e, h\,d)$ matrix makes the queries of all heads. Head 0 finds its own in components $0$ to
# $d-1$ of the result, head 1 in the next $d$, and so on.
#
# Now the $h$ heads have to be taken apart without a loop. It takes two steps:
#
# 1. (b, t, e) → (b, t, h, d). Name the parts of the last axis. No number moves.
# 2. (b, t, h, d) → (b, h, t, d). Exchange two axes, so that **t and d are the last two**.
#
# The second step is for the matrix product. `@` multiplies along the last two axes and carries all axes before them
# along: (b, h, t, d) @ (b, h, d, t) is (b, h, t, t), a matrix of scores for every head of every sentence.
#
# **What every check of this lesson asks:** gradients flow back to every input, no input is changed, new tensors are
# created on the device of the inputs, and any size may be 1. What else a check asks is on the card.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `split_heads`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Cut the width of every position into h heads. When e is not divisible by h, no equal cut exists: raise a `ValueError`
# with both numbers, e and h, in its message. Do not call `finished_split` here.
#
# <details><summary>Hint 1: two steps, in this order</summary>
#
# Give the last axis two names before you exchange anything: (b, t, e) → (b, t, h, d). A single `view` or `reshape`
# straight to (b, h, t, d) has the right shape too, but other contents: the picture after this exercise shows which. For
# the error, `e % h` is the remainder.
#
# </details>
# <details><summary>Hint 2: two positions, with numbers</summary>
#
# Let x be one sentence of the two rows (0, 1, 2, 3) and (4, 5, 6, 7), and h = 2. Head 0 is then (0, 1), (4, 5), and
# head 1 is (2, 3), (6, 7). If your head 0 is (0, 1), (2, 3), you went to the final shape in one step; if it is (0, 2),
# (4, 6), you gave the axes h and d the wrong order.
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
# Look at what it did. Here the numbers of x are labels, so that each can be followed: 2c is component c of position 2.

# %% mystnb={"image": {"alt": "Three drawings of coloured cells. Top: x, five rows of six components, each pair of components in one colour. Middle: split into three blocks, each of one colour, row i still holding position i. Bottom: reshaped straight away, each block mixes the three colours, and its rows are pieces of positions: block 0 holds pieces of positions 0 and 1 only."}}
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
# colour, and its row i still belongs to position i. Bottom: the same shape, reached in one step. A reshape moves
# nothing; it reads the numbers as they lie in memory, 0a 0b 0c … 1a 1b, and cuts anew.
#
# </div>
#
# In the scrambled split, *head 0* would compare pieces of one word with other pieces of the same word.

# %% [markdown]
# And back. After the heads have done their averaging, each position's h pieces have to lie beside each other again.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `merge_heads`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Undo the split: lay the heads of every position side by side, head 0 first. Do not call `finished_merge` here.
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
# Everything is there. This is the way from x to the output:

# %%
plots.diagrams.heads_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom, for three heads. One colour is one head; beside the arrows are the shapes.
# What is drawn for q is done with k and v, too. Between the two rows of colours no head sees another.
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
# The heads stay apart from the second line to the fifth. `unify` is where they meet: without it, what head 0 found
# would stay in the first d components for good.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `MultiHeadAttention`** &nbsp; ★★★ · 20 minutes · 5 points
#
# Write the module. Name its layers `to_queries`, `to_keys`, `to_values` (each `nn.Linear(e, e, bias=False)`) and
# `unify` (`nn.Linear(e, e)`); it has no other parameters. Its constructor refuses an e that h does not divide, with a
# `ValueError` that has both numbers in its message: better to fail when the model is built than when it is first used.
# Gradients must reach all parameters. Call `finished_split(x, h)` and `finished_merge(x)`, which the first cell
# imported: they do what exercises 1 and 2 ask for, so an error there does not carry over. Do not use PyTorch's
# `nn.MultiheadAttention`.
#
# <details><summary>Hint 1: the order of things</summary>
#
# The table above, line by line. Keep h on the module (`self.h = h`) so that `forward` knows it.
#
# </details>
# <details><summary>Hint 2: the table, with numbers</summary>
#
# Let b = 2, t = 5, e = 12 and h = 3, so d = 4. Queries, keys and values are (2, 5, 12), split (2, 3, 5, 4). The scores
# are (2, 3, 5, 5), divided by 2, and each of their rows of 5 becomes weights. The average is (2, 3, 5, 4), merged (2,
# 5, 12). Scores of another shape come from a transpose of two other axes.
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
# PyTorch has a module for this, with the three projections stacked into one weight. Copy yours into it, and compare.

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
# ## Heads in the batch
#
# Many programs do not carry an axis for the heads. They fold it into the batch: queries, keys and values become (b·h,
# t, d), as if there were b·h sentences, and `torch.bmm`, the product for exactly one batch axis, does the rest. Done
# right, the numbers are the same as before.
#
# The code of the next exercise was written for this page in that style. It runs, the shape of its result is right, and
# models can be trained with it. Yet compared with `nn.MultiheadAttention`, nearly every number is wrong.

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
# labels after every line. After which line is it not what the docstring says?
#
# </details>
# <details><summary>Hint 2: the labels of that case</summary>
#
# q comes in as the rows 00 01, 10 11 and 20 21. After the fold it is two *sentences*, 00 10 20 and 01 11 21, and the
# product keeps that order. The function must return rows in the order in which q came in. Which rows does it return?
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
# <details><summary>What was wrong, and why nothing complained</summary>
#
# The last line. `y` is (b·h, t, d), with all positions of head 0 before those of head 1. `y.reshape(b, t, e)` cuts that
# row of numbers into rows of e, and each holds pieces of several positions. The axes have to be named and exchanged
# first: `y.reshape(b, h, t, d).transpose(1, 2).reshape(b, t, e)`. A reshape fits whenever the count of numbers does, so
# no shape complains.
#
# </details>

# %% [markdown]
# ## Three questions, answered
#
# Do heads help? Make sentences by rule, *NAME gave THING to NAME*, from 16 names and 16 things. A reader gets the five
# words, one layer of attention, and must then name giver, thing and receiver **from the one vector at the word
# *gave***, with a linear map. The loss is the **[cross-entropy](../../site/glossary.md#cross-entropy)**: minus the
# logarithm of the probability that the right answer was given, on average. Compare h = 1 with h = 3. Both have the same
# number of parameters, as exercise 6 will count: what differs is only how the width is used.

# %% [markdown]
# <div class="card">
#
# **Prediction · `one_head_reads`** &nbsp; 1 minute · no points
#
# The reader with one head is trained three times, from three random starts. How will it do on new sentences? (With 16
# names, a guess is right about 6 times in 100.)
#
# - **A.** It answers most of what it is asked. How many errors are left depends on the start.
# - **B.** It answers one of the three questions, and guesses the other two.
# - **C.** As well as with three heads, for it has as many parameters: hardly an error in any run.
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

# %% mystnb={"image": {"alt": "Loss against training step on a logarithmic axis, three runs for one head and three for three heads. After 300 steps the runs with one head are at losses between 0.1 and 1, and two of them are still falling. The runs with three heads are all far below."}}
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
# **How to read it.** Cross-entropy against step, on a logarithmic axis; lower is better. Three runs each, with the same
# seeds on both sides; both models hold as many numbers. Three heads leave hardly an error in any run. With one head two
# of the three curves are still falling after 300 steps, and one has stopped falling far above the others.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_one_head_reads", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("one_head_reads", one_head_reads)

# %% [markdown]
# Is one head unable to hold three answers, or does training fail to find them? Train longer and more often. We tried
# seven starts with one head, for eight times as many steps. Four learned to read all three roles with few errors, and
# three stayed at a guess for one role or two. So the sum of one head has room for three answers, and gradient descent
# finds them only from some starts. With three heads it found them from each of our starts, in 300 steps.
#
# What did the three heads do? Their weights can be computed from the trained model's queries and keys, for our
# sentence.

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
# **How to read it.** One map for each head of run 2, the one with the lowest loss. Only the row *gave* had to answer;
# no loss asked anything of the other rows. Where in that row does each head put its weight, and which of the three
# answers is read from it?
#
# </div>
#
# The numbers of the heads mean nothing: another seed deals the questions out in another order, and may share one
# question between two heads.

# %% [markdown]
# ## A loss that does not notice
#
# Suppose that a module with three heads leaves out one step of exercise 2, the exchange of axes, and that a reader is
# trained with it as above. The row *gave*, the second of five rows of 24 numbers, then consists of the numbers 24 to 47
# of the sentence's (3, 5, 8): the outputs of head 0 for *to* and for *susan*, and that of head 1 for *mary*.

# %% [markdown]
# <div class="card">
#
# **Prediction · `scrambled_answers`** &nbsp; 1 minute · no points
#
# What will this reader answer on new sentences?
#
# - **A.** About as well as a guess, for all three roles: its rows are stuck together from pieces of other rows.
# - **B.** All three roles nearly without an error, like the correct module.
# - **C.** Two roles well, and one no better than a guess: one of its three pieces comes from another head than the
#   others.
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
# In training, the rows of *to*, *susan* and *mary* learn to do the work of *gave*. It works as long as every sentence
# has five words; with six, each row is stuck together from other pieces. And once a model must not look ahead, the
# business of [lesson 5](../05_masking/05_masking.ipynb), it is a leak: the first position gets what head 0 found for
# later ones.
#
# A falling loss does not prove that the code does what it says. A comparison with known numbers does: this module and
# `nn.MultiheadAttention`, with the same weights, differ at once. So does a round trip,
# `merge_heads(split_heads(x, h)) == x`.

# %% [markdown]
# ## The product and the loop are the same
#
# We said that one product with a wide matrix does the work of $h$ heads. Show it, with weights. Take $h$ separate heads
# of lesson 2, each a `SingleHeadAttention(e, d)`, run them in a loop and lay their outputs side by side; then put their
# matrices into three fused ones, and compute all of it at once.
#
# Mind how `nn.Linear` stores things: its weight is (outputs, inputs), the transpose of the $(e, d)$ in our formulas. So
# the components that a head produces are the *rows* of its weight, and stacking heads means stacking rows: three times
# (h·d, e).

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `fuse_heads`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Copy a list of single heads into three weights, in `nn.Linear`'s layout. Head 0 comes first. Copy the numbers
# unchanged: lesson 2's heads do not scale their scores, and dividing by $\sqrt d$ is left to the code that computes
# with the weights. The weights are new tensors, also for a list of one head, and neither the list nor the heads change.
# Gradients are not asked for here.
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
# First the bare computation, unscaled on both sides. Then your `MultiHeadAttention` with these weights: it divides its
# scores by $\sqrt d$, so its query weights are multiplied by $\sqrt d$, and its `unify` is made to change nothing.

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
# So the loop is what multi-head attention *means*, and the fused product is how it is computed. Whenever a shape
# puzzles you, go back to the loop.

# %% [markdown]
# ## Other conventions, and what they cost
#
# **Wide heads.** A narrow head works in $d = e/h$ dimensions, which is not much when there are many heads: at $e = 512$
# and $h = 32$, sixteen numbers have to say what a word asks for. Wide heads have all $e$ each. Their projections lead
# from e to $h\,e$, the merged heads are $h\,e$ wide, and `unify` leads back to e. In our formulas only one thing
# changes: $d = e$. Your exercise 3 with other sizes is the module.
#
# **Shared keys and values.** A model that writes word by word keeps the keys and values of all words so far
# ([lesson 12](../12_gpt2/12_gpt2.ipynb)), and at great length that memory is what it runs out of. So let heads share
# them. In **[multi-query attention](../../site/glossary.md#multi-query-attention)**
# ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)) each head has queries of its own, and all read the same keys and
# values, of width d: the scores are (b, h, t, d) @ (b, 1, d, t).
#
# **Grouped-query attention**
# ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)) lies between: a few groups of heads, each with one set of
# keys and values. Several of today's large models have it.
#
# For each kind, count every number that is trained: three projections without bias, and `unify` with its bias of e
# numbers.

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
# An `nn.Linear(m, n)` has m·n weights, and n more numbers if it has a bias. Write down m and n for all four layers of
# each kind.
#
# </details>
# <details><summary>Hint 2: a small case, with numbers</summary>
#
# For e = 4 and h = 2 the counts are 68 (narrow), 132 (wide) and 52 (multi-query). For the narrow kind your module
# counts too: `sum(p.numel() for p in module.parameters())`.
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

# %% mystnb={"image": {"alt": "Parameters against heads from 1 to 32 at width 256, both axes logarithmic. Wide rises in proportion to the heads, narrow is a level line, multi-query falls to a little above half of the narrow line, towards the level of the queries and unify alone. All three start at the same point."}}
h = [1, 2, 4, 8, 16, 32]
lines = {kind: (h, [count_parameters(256, heads, kind) for heads in h])
         for kind in ("wide", "narrow", "multi-query")}
landmarks = {"queries and unify alone": 2 * 256 * 256 + 256}
plots.curves(lines, "heads h", "parameters", log="xy", landmarks=landmarks)
plt.gca().set_xticks(h, labels=h)
plt.minorticks_off()
plt.show()

for kind in ("narrow", "wide", "multi-query"):
    print(f"{kind:>11}: {count_parameters(512, 8, kind):>9,} parameters at e = 512, h = 8")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Width e = 256, both axes logarithmic. With one head all three are the same thing, $4e^2 + e$. From
# there wide heads grow with h; narrow heads do not grow at all, so that the number of heads is free to choose; with
# shared keys and values hardly more than the queries and `unify` is left.
#
# </div>
#
# The level line is the paper's argument for its choice (section 3.2.2): because each head is narrower, all of them
# together cost about what one head of full width would. Eight questions for the price of one.

# %% [markdown]
# ## What you can do now
#
# You can cut a tensor into heads and put it together again, and say why a reshape alone does neither; write multi-head
# attention as one product and show that a loop over heads gives the same; find a merge that scrambles, though the loss
# falls; and tell narrow, wide, multi-query and grouped-query heads apart by the shapes of their layers, and count what
# they cost.
#
# **Three questions to think about**
#
# <details><summary>1. Exchange head 0 and head 1 of a trained model: their rows in all three projections. What else has
# to be exchanged so that the model's outputs stay as they were?</summary>
#
# The columns of `unify` that read them: columns r·d to (r+1)·d − 1 belong to head r. Then nothing changes, because a
# sum over heads has no order. So *the third head* is a name without a meaning: two training runs that learn the same
# thing will deal it out differently.
#
# </details>
# <details><summary>2. What is left of a head of width d = 1?</summary>
#
# Its queries and keys are single numbers, and its scores are products $q_i\,k_j$. Every query ranks all positions in
# the same order, that of their keys, or in exactly the reverse order where $q_i$ is negative; its size only says how
# sharply. It can look for *more* or *less* of one thing. In general the (t, t) scores of a head are the product of a
# (t, d) and a (d, t) matrix, so their rank is at most d.
#
# </details>
# <details><summary>3. Wide heads with one more rule, that `unify` adds the heads up instead of mixing them: is anything
# lost?</summary>
#
# No. A wide head's values are $x W_v$ with an (e, e) matrix of its own; then its part of `unify` multiplies with
# another (e, e) matrix. Two linear maps in a row are one, and the first can hold the product of both. With narrow heads
# it is different: $W_v$ leads down to d = e/h numbers and $W_u$ back up to e. That pair is a matrix of rank at most d,
# which one map to d numbers cannot hold. The mixing is what lets a narrow head write anywhere in the vector.
#
# </details>
#
# **Where it goes next.** Every position still looks at every other, later ones included. A model that is to predict the
# next word must not.
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): the sentence *mary gave roses to susan*, the
#   swap of its two names, and the name `unify` are from there.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2.2: half a
#   page, all of it in this lesson.
# - [Voita et al., *Analyzing multi-head self-attention*, 2019](https://arxiv.org/abs/1905.09418), section 5: what
#   trained heads look at.
# - [Michel, Levy and Neubig, *Are sixteen heads really better than one?*, 2019](https://arxiv.org/abs/1905.10650),
#   section 3, where most heads are taken away after training.
# - [Shazeer, *Fast transformer decoding: one write-head is all you need*, 2019](https://arxiv.org/abs/1911.02150),
#   section 3: multi-query attention.
# - [Ainslie et al., *GQA*, 2023](https://arxiv.org/abs/2305.13245), section 2: grouped-query attention.
#
# **Next:** [lesson 5, *Masking*](../05_masking/05_masking.ipynb)
