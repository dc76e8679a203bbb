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
# # 4 · Several questions at once
#
# *mary gave roses to susan.* Whoever wants to understand the word *gave* has three questions: who gave, what, and to whom? Attention, as
# the last two lessons left it, lets a word ask one question and hands it one average in reply. This lesson gives every word several
# questions, and then shows that asking them all costs no more than asking one.
#
# | | |
# |---|---|
# | **You will build** | multi-head attention: as the paper has it, in a wide form, and in a thrifty one |
# | **You need** | queries, keys and values (lesson 2), and why scores are divided by $\sqrt d$ (lesson 3) |
# | **It takes** | about 90 minutes: seven exercises, 26 points |
# | **It computes** | in seconds: a few little models are trained, each on 19,200 made-up sentences |
#
# As before, b counts sentences, t positions, and e is the width of the model. Two letters move to the centre: **h** is the number of
# heads, and **d** is the width of *one* head. All letters are in [the table](../../site/notation.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.toy.giving import GAVE, ROLES, WORDS, giving_sentences, word_ids
from helpers.device import device
from helpers.lesson import in_exam, start
from helpers.parts.attention import SingleHeadAttention
from helpers.parts.multi_head import merge_heads as finished_merge
from helpers.parts.multi_head import split_heads as finished_split

check = start("04_multi_head")

# %% [markdown]
# ## One sum for three answers
#
# Take one head of lesson 2. What the word *gave* receives from it is
#
# $$y_{\text{gave}} \;=\; \sum_j w_{\text{gave},j}\; v_j ,$$
#
# five arrows laid end to end, one for each word, each as long as its weight makes it. Now let mary and susan change places: *susan gave roses to mary*. It is
# another event altogether. Look at what *gave* receives.

# %% tags=["show"] mystnb={"image": {"alt": "Two chains of five arrows in the plane, one for each word of mary gave roses to susan. In the left chain mary comes first and susan last, in the right chain the other way round. Both chains end at the same cross."}}
torch.manual_seed(106)
words = "mary gave roses to susan".split()
x = torch.randn(1, 5, 6, device=device())
head = SingleHeadAttention(6, 2).to(device())

_, axes = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(6, 3.4))
for ax, order in zip(axes, ([0, 1, 2, 3, 4], [4, 1, 2, 3, 0])):
    z, names = x[:, order], [words[i] for i in order]
    q, k, v = head.to_queries(z), head.to_keys(z), head.to_values(z)
    weights = torch.softmax(q @ k.transpose(1, 2), dim=-1)    # (1, t, t)
    plots.arrow_chain(weights[0, GAVE, :, None] * v[0], names, title=" ".join(names), ax=ax)
axes[1].set_ylabel("")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each arrow is one term of the sum, a word's value times its weight, for a head of width 2 with random matrices. On the right, the arrows of mary
# and susan are the same two arrows at other places in the chain. Both chains lead to the same cross: a sum forgets its order.
#
# </div>
#
# Two things are missing, and it is worth telling them apart. The first is that nothing says *where* a word stands. Lesson 6 is about that; until
# then we add to every word a learned vector for its place, and leave it at one line of code.
#
# The second is what this lesson is about. A larger weight makes an arrow longer. It cannot **turn** it. Her place adds
# a part to her value, the same part for whoever stands there; but the part that says *mary* keeps its direction,
# whether she gives or receives, and only the amount can tell the difference. Three answers, blurred into one vector.

# %% [markdown]
# ## Heads
#
# So let $h$ attentions look at the same sentence, each with three matrices of its own. Call them **heads**. Head $r$
# computes
#
# $$y^{(r)} \;=\; \operatorname{softmax}\!\Big(\tfrac{1}{\sqrt d}\; q^{(r)} k^{(r)\top}\Big)\, v^{(r)}
# \qquad\text{of shape } (t, d),$$
#
# where $q^{(r)} = x\,W_q^{(r)}$, and $k^{(r)}$ and $v^{(r)}$ alike, with matrices of shape $(e, d)$. The root is that
# of $d$, the width in which the dot products are taken: lesson 3's argument counts their terms, and there are $d$ of
# them. Then lay the $h$ results side by side, $(t, h\,d)$, and mix them with one more matrix, of shape $(h\,d, e)$,
# that brings the width back to $e$. We call that last map `unify`.
#
# Mary now enters the result once for each head, $\sum_r w^{(r)} v^{(r)}_{\text{mary}} W_u^{(r)}$ with $W_u^{(r)}$ the
# $d$ rows of `unify` that belong to head $r$, and every head has a direction of its own to put her in. A head that
# looks for givers can say *mary* in one direction, a head that looks for receivers in another.
#
# How wide should a head be? Two conventions are in use. In the **narrow** one, the paper's, the heads share the width: $d = e/h$. The paper has $e = 512$, $h = 8$, and so $d = 64$ (section
# 3.2.2). In the **wide** one every head has the whole width, $d = e$. We begin with the narrow one.

# %% [markdown]
# ## All heads in one product
#
# A loop over $h$ little attentions would do, and be slow: many small products keep a processor waiting. But look at the queries. $x W_q^{(1)}$, $x W_q^{(2)}$ and so on are products of *the
# same* $x$. Put the matrices beside each other, and one product with an $(e, h\,d)$ matrix makes the queries of all heads. Head 1 finds its own in components $0$ to
# $d-1$ of the result, head 2 in the next $d$, and so on.
#
# Now the $h$ heads have to be taken apart without a loop. It takes two steps:
#
# 1. (b, t, e) → (b, t, h, d). Name the parts of the last axis. No number moves.
# 2. (b, t, h, d) → (b, h, t, d). Exchange two axes, so that **t and d are the last two**.
#
# The second step is for the matrix product. `@` multiplies along the last two axes and carries all axes before them along: (b, h, t, d) @ (b, h, d, t) is (b, h, t, t), a matrix of
# scores for every head of every sentence. (Some programs fold h into the batch instead, (b·h, t, d), and use a product with one batch axis. The numbers are the same.)

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `split_heads`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Cut the width of every position into h heads. When e is not divisible by h, no equal cut exists: raise a `ValueError` whose message says so and names both numbers, e and h.
#
# <details><summary>Hint 1: two steps, in this order</summary>
#
# Give the last axis two names before you exchange anything: (b, t, e) → (b, t, h, d). A single `view` or `reshape` straight to (b, h, t, d) has the right shape too, and something else in
# it: the picture after this exercise shows what.
#
# </details>
# <details><summary>Hint 2: the functions</summary>
#
# `x.reshape(b, t, h, d)`, then `.transpose(1, 2)`. For the error: `raise ValueError(f"...")` with `{e}` and `{h}` in the text, before anything else happens; `e % h` is the remainder.
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

# %% tags=["show"] mystnb={"image": {"alt": "Three drawings of coloured cells. Top: x, five rows of six components, each pair of components in one colour. Middle: split into three blocks, each of one colour, row i still holding position i. Bottom: reshaped straight away, each block mixes the three colours, and its rows are pieces of positions: block one holds positions 1 and 2 only."}}
labels = torch.arange(5 * 6, device=device()).view(1, 5, 6)    # t = 5, e = 6
right = split_heads(labels, 3)[0]
scrambled = labels.reshape(1, 3, 5, 2)[0]

titles = ["x: (t, e)", "split_heads(x, 3): (h, t, d)", "x.reshape(h, t, d): scrambled"]
plots.fold([labels[0], right, scrambled], e=6, d=2, titles=titles)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Top: five positions, six components, one colour for each future head. Middle: each head has one colour, and its row i still belongs to position i. Bottom: the same shape, reached
# in one step. A reshape moves nothing; it reads the numbers in the order in which they lie in memory, 1a 1b 1c … 2a 2b, and cuts anew. *Head 1* now holds all of position 1,
# most of position 2, and nothing of the others: it would compare pieces of one word with other pieces of the same word.
#
# </div>

# %% [markdown]
# And back. After the heads have done their averaging, each position's h pieces have to lie beside each other again.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `merge_heads`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Undo the split: lay the heads of every position side by side, head 1 first.
#
# <details><summary>Hint 1: the way back</summary>
#
# The two steps of exercise 1 in reverse: exchange the axes first, and give the last two one name after that.
#
# </details>
# <details><summary>Hint 2: "view size is not compatible"</summary>
#
# After a transpose the numbers no longer lie in memory in the order of their axes, and `view` refuses to copy. `reshape` copies when it has to; `.contiguous().view(...)` does it in two steps.
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

# %% tags=["show", "nbval-check-output"]
print("merge undoes split:", torch.equal(merge_heads(split_heads(labels, 3)), labels))

# %% [markdown]
# ## Multi-head attention
#
# Everything is there. Written out with shapes, for the narrow convention:
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
# The heads stay apart from the second line to the fifth. `unify` is where they meet: without it, what head 1 found would stay in the first d components for good.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `MultiHeadAttention`** &nbsp; ★★★ · 20 minutes · 5 points
#
# Write the module in the narrow convention. Name its layers `to_queries`, `to_keys`, `to_values` (each
# `nn.Linear(e, e, bias=False)`) and `unify` (`nn.Linear(e, e)`). Its constructor refuses an e that h does not divide,
# with a `ValueError` that names both: better to fail when the model is built than when it is first used. Call
# `finished_split(x, h)` and `finished_merge(x)`, which the first cell imported: they do what exercises 1 and 2 ask for,
# so an error there does not carry over.
#
# <details><summary>Hint 1: the order of things</summary>
#
# The table above, line by line. Keep h on the module (`self.h = h`) so that `forward` knows it.
#
# </details>
# <details><summary>Hint 2: which width, which axis</summary>
#
# Once the heads are split, `q.shape[-1]` is d. Scores are `q @ k.transpose(-2, -1)`: the last two axes, not axes 1 and 2, which are heads and positions now. The softmax runs over the last axis.
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

# %% tags=["show", "nbval-check-output"]
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
# ## Three questions, answered
#
# Does it help? Make sentences by rule, *NAME gave THING to NAME*, from 16 names and 16 things. A reader gets the five
# words, one layer of attention, and must then say who, what and whom **from the one vector at the word *gave***, with a
# linear map. The loss is the **cross-entropy**: minus the logarithm of the probability that the right answer was given,
# on average. Compare h = 1 with h = 3. Both have the same number of parameters, as exercise 7 will count: what differs
# is only how the width is used.

# %% tags=["show"]
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
    for step in range(10 if in_exam() else steps):
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

# %% tags=["show"] mystnb={"image": {"alt": "Loss against training step on a logarithmic axis, three runs for one head and three for three heads. The runs with one head level off at losses between 0.1 and 1. The runs with three heads all fall to 0.03 or less."}}
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
# **How to read it.** Three runs each, with the same seeds on both sides; both models hold as many numbers. The loss axis is logarithmic. One head is not helpless: giver and receiver may get different *amounts* of the sum, and word vectors can be
# trained so that amounts can be told, to a degree. How far it gets is luck, and in some runs a whole question goes unanswered (with 16 names, a guess is right about 6 times in 100). Three heads leave hardly an error in any run.
#
# </div>
#
# What did the three heads do? Their weights can be computed from the trained model's queries and keys, for our sentence.

# %% tags=["show"] mystnb={"image": {"alt": "Three heat maps of weights over mary gave roses to susan, one for each head, with numbers. In the row of gave, one head puts its weight on roses, one on susan, and one on mary and gave."}}
reader, *_ = train(MultiHeadAttention, 3, seed=2)    # run 2 again: train fixes its seeds
ids = word_ids("mary gave roses to susan").to(device())
x = reader.words(ids) + reader.places.weight    # (1, 5, 24)
q = finished_split(reader.attention.to_queries(x), 3)
k = finished_split(reader.attention.to_keys(x), 3)
weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), dim=-1)    # (1, 3, 5, 5)

plots.head_grid(weights[0], words, digits=1)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One map for each head of run 2, the one with the lowest loss: a model that has seen nothing but made-up sentences of this one form. Look at the row *gave* only: it is the one row that had to answer, and
# nobody ever asked for the others. Where in that row does each head put its weight, and which of who, what and whom is read from it? The numbers of the heads mean nothing;
# another seed deals the questions out in another order, and may share one question between two heads.
#
# </div>

# %% [markdown]
# ## Spot the bug
#
# Code like this is in circulation. Trained on our task, this `forward` passes: see the numbers. What is wrong?

# %% tags=["show"]
class HurriedAttention(MultiHeadAttention):
    def forward(self, x):
        b, t, e = x.shape
        projections = self.to_queries, self.to_keys, self.to_values
        q, k, v = (finished_split(project(x), self.h) for project in projections)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(e // self.h), dim=-1)
        y = weights @ v
        return self.unify(y.reshape(b, t, e))

*_, right = train(HurriedAttention, 3)
print("right answers:", right)

# %% [markdown]
# <details><summary>The answer, once you have one</summary>
#
# `y` is (b, h, t, d), and `reshape(b, t, e)` is a merge without its transpose. The number of entries fits, so nothing complains; but row *gave*, the second of five rows of 24, is now made of numbers 25 to
# 48 of the sentence: outputs that head 1 made for *to* and *susan*, and one that head 2 made for *mary*. In training, those rows learn to do the work of *gave*. It works as long as every sentence has five words; with six, each
# row is stuck together from other pieces. And once a model must not look ahead, lesson 5's business, it is a leak: the first position gets what head 1 made for later ones.
#
# A falling loss does not prove that the code does what it says. A comparison with known numbers does: this module and `nn.MultiheadAttention`, with the same weights, differ at once. So does
# `merge_heads(split_heads(x)) == x`.
#
# </details>

# %% [markdown]
# ## The product and the loop are the same
#
# We said that one product with a wide matrix does the work of $h$ heads. Prove it, with weights. Take $h$ separate heads of lesson 2, each a `SingleHeadAttention(e, d)`, run them in a loop and lay their outputs
# side by side; then put their matrices into three fused ones, and compute all of it at once.
#
# Mind how `nn.Linear` stores things: its weight is (outputs, inputs), the transpose of the $(e, d)$ in our formulas. So the components that a head produces are the *rows* of its weight, and stacking heads
# means stacking rows: three times (h·d, e).

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `fuse_heads`** &nbsp; ★★★ · 10 minutes · 4 points
#
# Copy a list of single heads into one triple of weights, in `nn.Linear`'s layout. Head 1 comes first. Copy the numbers as they are: lesson 2's heads do not scale their scores, and whether scores are divided by $\sqrt d$ is for whoever
# computes with the weights to decide.
#
# <details><summary>Hint 1: one of the three</summary>
#
# `head.to_queries.weight` is (d, e). You need h of them below each other, as one (h·d, e).
#
# </details>
# <details><summary>Hint 2: the function</summary>
#
# `torch.cat` of a list joins along axis 0 and makes a new tensor. `torch.stack` would add an axis, (h, d, e).
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

# %% tags=["show", "nbval-check-output"]
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
# So the loop is what multi-head attention *means*, and the fused product is how it is computed. Whenever a shape puzzles you, go back to the loop.

# %% [markdown]
# ## Wide heads
#
# A narrow head works in $d = e/h$ dimensions, and with many heads that is little: at $e = 512$ and $h = 32$, sixteen numbers have to say what a word asks for. The wide convention gives each head all $e$. Its projections lead from e to $h\,e$, the
# merged heads are $h\,e$ wide, and `unify` leads back. In our formulas only one thing changes: $d = e$. Any h will do, because nothing is divided among the heads.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `WideMultiHeadAttention`** &nbsp; ★★★ · 12 minutes · 4 points
#
# The same module with heads of width e. The layers have the same names and the same biases as in exercise 3; their sizes are for you to work out. e need **not** be divisible by h.
#
# <details><summary>Hint 1: what changes</summary>
#
# The sizes of all four layers, and nothing in `forward`, if you wrote it with `q.shape[-1]`.
#
# </details>
# <details><summary>Hint 2: the sizes</summary>
#
# `nn.Linear(e, h * e, bias=False)` three times, `nn.Linear(h * e, e)` once. `finished_split` cuts h·e into h pieces of e. Dot products have e terms now, so the root is that of e.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "WideMultiHeadAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class WideMultiHeadAttention(nn.Module):
    """h heads of width e each: to_queries, to_keys, to_values (no bias), unify (with bias).

    Any h will do.
    """

    def __init__(self, e, h):
        super().__init__()
        ### BEGIN SOLUTION
        self.h = h
        self.to_queries = nn.Linear(e, h * e, bias=False)
        self.to_keys = nn.Linear(e, h * e, bias=False)
        self.to_values = nn.Linear(e, h * e, bias=False)
        self.unify = nn.Linear(h * e, e)
        ### END SOLUTION

    def forward(self, x):
        """x: (b, t, e). Returns (b, t, e)."""
        ### BEGIN SOLUTION
        q = finished_split(self.to_queries(x), self.h)    # (b, h, t, e)
        k = finished_split(self.to_keys(x), self.h)
        v = finished_split(self.to_values(x), self.h)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])    # (b, h, t, t)
        weights = torch.softmax(scores, dim=-1)
        y = finished_merge(weights @ v)    # (b, t, h·e)
        return self.unify(y)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_WideMultiHeadAttention", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(WideMultiHeadAttention)

# %% [markdown]
# ## One small matrix for all heads
#
# You may meet a third convention. It cuts $x$ into heads *first*, and then sends every piece, $d$ wide, through **one and the same** $d \times d$ matrix: `nn.Linear(d, d)` on a tensor of shape (b, h, t, d). It looks
# much like the narrow one. Is it?
#
# There is a way to find out. Applying $W$, of shape (d, d), to each piece of a vector is applying one large $(e, e)$ matrix to the whole vector: the one with $W$ repeated down its diagonal, and zeros everywhere else,
#
# $$\begin{pmatrix} W & & \\ & W & \\ & & W \end{pmatrix} .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `shared_head_weight`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Build that matrix from w and h. (Whether w is meant for `x @ w` or stored the way `nn.Linear` does makes no difference: the transpose of this matrix is the same matrix made from the transpose of w.)
#
# <details><summary>Hint 1: by hand</summary>
#
# A matrix of zeros, on w's device and of w's type, and h assignments: block k fills rows **and** columns k·d to
# (k+1)·d.
#
# </details>
# <details><summary>Hint 2: in one line</summary>
#
# `torch.block_diag(a, b, c)` takes any number of matrices; `*[w] * h` hands it h times the same.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "shared_head_weight", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shared_head_weight(w, h):
    """The large matrix that one small matrix, shared by all heads, amounts to.

    w: (d, d). Returns (e, e) with e = h·d: w in the h blocks on the diagonal, 0 elsewhere.
    """
    ### BEGIN SOLUTION
    return torch.block_diag(*[w] * h)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_shared_head_weight", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(shared_head_weight)

# %% tags=["show"] mystnb={"image": {"alt": "Two nine by nine matrices. Left, the projection of the narrow convention: all 81 cells are filled. Right, the shared convention: three equal three by three blocks on the diagonal, the rest empty."}}
narrow = nn.Linear(9, 9, bias=False).to(device()).weight    # e = 9, h = 3
w = nn.Linear(3, 3, bias=False).to(device()).weight
x = torch.randn(2, 5, 9, device=device())

piece_by_piece = finished_merge(finished_split(x, 3) @ w.T)
large = shared_head_weight(w, 3)
agree = torch.allclose(x @ large.T, piece_by_piece, atol=1e-5)
print("one large product = piece by piece:", agree)
plots.heat_pair(narrow, large, titles=("narrow: (e, e)", "shared: w three times"),
                row_label="component of the query", column_label="component of x",
                same_scale=True)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i says which components of x make component i of the queries; the first three rows are head 1's, the next three head 2's. On the left, head 1 draws on all nine components. On the right, it sees the first three and no others, and its block is the
# same as its neighbours'.
#
# </div>
#
# So it is *not* the narrow convention, although the shapes agree everywhere. It saves: three projections of $d^2$ numbers instead of $e^2$, a factor of $h^2$. It loses: no head can look at the whole vector, and all heads put the same question to
# different slices of it. Whatever the vectors before it learn has to be arranged in slices to suit. Only `unify` still mixes.

# %% [markdown]
# ## What it costs
#
# Three conventions, then. For all of them, count every number that is trained: three projections without bias, and `unify` with its bias of e numbers.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `count_parameters`** &nbsp; ★☆☆ · 8 minutes · 3 points
#
# Return the number of parameters for width e, h heads and one of three kinds. `"narrow"` and `"wide"` are your modules of exercises 3 and 5. `"shared"` has three d × d matrices, d = e/h, one for all queries, one for
# all keys, one for all values, and the same `unify` as `"narrow"`.
#
# <details><summary>Hint 1: layer by layer</summary>
#
# An `nn.Linear(m, n)` has m·n weights, and n more numbers if it has a bias. Write down m and n for all four layers of each kind.
#
# </details>
# <details><summary>Hint 2: ask the module</summary>
#
# `sum(p.numel() for p in module.parameters())` counts for you. Compare with your formula for a few e and h.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "count_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def count_parameters(e, h, kind):
    """How many numbers are trained, the bias of unify included.

    e: width of the model. h: heads. kind: "narrow" (heads of width e/h), "wide" (heads of
    width e) or "shared" (heads of width d = e/h, one d × d matrix for the queries of all,
    one for their keys, one for their values; unify as in "narrow"). Returns an integer.
    """
    ### BEGIN SOLUTION
    if kind == "narrow":
        projections, unify = 3 * e * e, e * e + e
    elif kind == "wide":
        projections, unify = 3 * e * (h * e), (h * e) * e + e
    else:
        projections, unify = 3 * (e // h) ** 2, e * e + e
    return projections + unify
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_count_parameters", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(count_parameters)

# %% tags=["show"] mystnb={"image": {"alt": "Parameters against heads from 1 to 32 at width 256, both axes logarithmic. Wide rises in proportion to the heads, narrow is a level line, shared falls towards the level of unify alone. All three start at the same point."}}
h = [1, 2, 4, 8, 16, 32]
lines = {kind: (h, [count_parameters(256, k, kind) for k in h])
         for kind in ("wide", "narrow", "shared")}
landmarks = {"unify alone": 256 * 256 + 256}
plots.curves(lines, "heads h", "parameters", log="xy", landmarks=landmarks)
plt.gca().set_xticks(h, labels=h)
plt.minorticks_off()
plt.show()

for kind in ("narrow", "wide", "shared"):
    print(f"{kind:>6}: {count_parameters(512, 8, kind):>9,} parameters at e = 512, h = 8")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Width e = 256, both axes logarithmic. With one head all three are the same thing, $4e^2 + e$. From there the wide convention grows with h; the narrow one does not grow at all, so that the number of heads is
# free to choose; the shared one soon consists of `unify` and little else.
#
# </div>
#
# The level line is the paper's argument for its choice (section 3.2.2): because each head is narrower, all of them together cost about what one head of full width would. Eight questions for the price of one.

# %% [markdown]
# ## What you can do now
#
# You can cut a tensor into heads and put it together again, and say why a reshape alone does neither; write multi-head attention as one product and prove that a loop over heads gives the same; tell the three
# conventions apart in other people's code, by their shapes and by their block-diagonal reading; and count what each costs.
#
# **Three questions to think about**
#
# <details><summary>1. Exchange head 1 and head 2 of a trained model: their rows in all three projections. What else has to be exchanged so that the model's outputs stay as they were?</summary>
#
# The columns of `unify` that read them: with heads counted from 0, columns r·d to (r+1)·d − 1 belong to head r. Then
# nothing changes, because a sum over heads has no order. So *the third head* is a name without a meaning: two training
# runs that learn the same thing will deal it out differently.
#
# </details>
# <details><summary>2. What is left of a head of width d = 1?</summary>
#
# Its queries and keys are single numbers, and its scores are products q_i·k_j. Every query ranks all positions in the same order, that of their keys, or in exactly the reverse order where q_i is negative; its size only says how sharply. It can look
# for *more* or *less* of one thing. In general the (t, t) scores of a head are the product of a (t, d) and a (d, t) matrix, so their rank is at most d.
#
# </details>
# <details><summary>3. Wide heads with one more rule, that `unify` adds the heads up instead of mixing them: is anything lost?</summary>
#
# No. A wide head's values are x W_v with an (e, e) matrix of its own; then its part of `unify` multiplies with another (e, e) matrix. Two linear maps in a row are one, and the first can hold the product of both. In the narrow convention it is different: W_v leads down to
# d = e/h numbers and W_u back up to e. That pair is a matrix of rank d, which one (d-wide) map cannot hold. The mixing is what lets a narrow head write anywhere in the vector.
#
# </details>
#
# **Where it goes next.** Every position still looks at every other, later ones included. A model that is to predict the next word must not. Lesson 5, *Masking*.
#
# **Further reading.** A. Vaswani et al., "Attention is all you need", *NeurIPS* 2017, section 3.2.2: half a page, all
# of it in this lesson. E. Voita et al., "Analyzing multi-head self-attention: specialized heads do the heavy lifting,
# the rest can be pruned", *ACL* 2019, section 5, on what trained heads look at. P. Michel, O. Levy and G. Neubig, "Are
# sixteen heads really better than one?", *NeurIPS* 2019, section 3, where most heads are taken away after training.
# N. Shazeer, "Fast transformer decoding: one write-head is all you need", 2019, section 3: heads that share keys and
# values and keep queries of their own (**multi-query attention**), another way of sharing than the one above.
# J. Ainslie et al., "GQA: training generalized multi-query transformer models from multi-head checkpoints", *EMNLP*
# 2023: a few groups of heads, each with keys and values of its own (**grouped-query attention**).
