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
# *mary gave roses to susan.* To understand the word *gave*, a reader needs three answers: who gave, what was given, and
# who received it. With the attention of the last two lessons, a word asks one question and receives one average. In
# this lesson every word asks several questions at once. Each question has its own matrices for queries, keys and
# values, and one new matrix combines the answers.
#
# | | |
# |---|---|
# | **You will build** | multi-head attention without a loop over the heads, and a count of its parameters |
# | **You need** | queries, keys and values ([lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb)), and why scores are divided by $\sqrt d$ ([lesson 3](../03_scaling/03_scaling.ipynb)) |
# | **It takes** | about 110 minutes: six exercises, one of them with a bug to fix, and two predictions; 22 points |
# | **It computes** | in under two minutes in all, without a GPU; the training in the last section can be stopped early |
#
# In this lesson b is the number of sentences, t the number of positions, and e the width of the model. **h** is new,
# the number of heads, and **d** is now the width of *one* head. Heads, positions and components are counted from 0, as
# in the code. All letters are in [the table](../../site/notation.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.toy.giving import GAVE, NAMES, ROLES, WORDS, giving_sentences
from helpers.device import device
from helpers.lesson import start
from helpers.parts.attention import SingleHeadAttention
from helpers.parts.multi_head import merge_heads as finished_merge
from helpers.parts.multi_head import split_heads as finished_split

check = start("04_multi_head")

# %% [markdown]
# ## One sum for three answers
#
# In the attention of lesson 2 the word *gave* receives
#
# $$y_{\text{gave}} \;=\; \sum_j w_{\text{gave},j}\; v_j ,$$
#
# a sum with one term for each word. Now let mary and susan change places: *susan gave roses to mary*. That is a
# different event. But if the vectors do not say where a word is, *gave* receives the same five terms in another order,
# and the sum is the same. So add to the vector $x_j$ of each word a learned vector $p_j$ for its position ([lesson
# 6](../06_positions/06_positions.ipynb) explains such vectors). The values are then $(x_j + p_j)\,W_v$, and the sum
# splits into a **word sum** and a **position sum**:
#
# $$y_{\text{gave}} \;=\; \underbrace{\sum_j w_{\text{gave},j}\; x_j W_v}_{\text{word sum}}
# \;+\; \underbrace{\sum_j w_{\text{gave},j}\; p_j W_v}_{\text{position sum}} .$$
#
# The weights can now depend on positions too. In the next picture they depend on positions only: 0.4 for the first
# word, 0.1 for *gave*, then 0.2, 0.1 and 0.2. The position sum is then the same for both events; the word sum is not.

# %% mystnb={"image": {"alt": "Two chains in the plane, each of five arrows, one arrow for each word. Left, mary gave roses to susan; right, susan gave roses to mary. The arrows of mary point the same way in both, and so do those of susan, but mary's is half as long on the right as on the left, and susan's twice as long. The two chains end at different points, each marked with a cross."}}
torch.manual_seed(390)
words = "mary gave roses to susan".split()
x = torch.randn(5, 6, device=device())
values = SingleHeadAttention(6, 2).to(device()).to_values(x)    # (t, d), one for each word
weights = torch.tensor([0.4, 0.1, 0.2, 0.1, 0.2]).to(device())  # (t,), one for each position

_, axes = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(6, 3.4))
for ax, order in zip(axes, ([0, 1, 2, 3, 4], [4, 1, 2, 3, 0])):
    names = [words[i] for i in order]
    plots.arrow_chain(weights[:, None] * values[order], names, title=" ".join(names), ax=ax)
axes[1].set_ylabel("")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each arrow is one term of the word sum: a position's weight times $x_j W_v$ of the word there,
# with random word vectors and a random $W_v$ of shape (6, 2). The cross is the sum. From the left panel to the right,
# the arrow of mary becomes half as long and the arrow of susan twice as long.
#
# </div>
#
# **A weight can make an arrow longer or shorter, but it cannot change its direction.** The crosses differ, so one head
# can tell the two events apart. With enough dimensions, a linear layer can name every giver from the word sum: the
# larger weight wins. But no linear layer can name every receiver. The receiver's name has weight 0.2, the giver's 0.4,
# and every absent name 0. A linear layer can favour large weights or small ones, but not the one in the middle.
#
# When the weights also depend on the words, the position sum can differ between the two events. The section *Three
# questions, answered* shows that two trained models with one head use this difference to name the giver.
#
# With several attention layers side by side, the word *mary* could have a different arrow for each question.

# %% [markdown]
# ## Heads
#
# So let $h$ attention layers read the same sentence, each with its own three matrices. They are called
# **[heads](../../site/glossary.md#head)**. Head $r$ computes
#
# $$y^{(r)} \;=\; \operatorname{softmax}\!\Big(\tfrac{1}{\sqrt d}\; q^{(r)} k^{(r)\top}\Big)\, v^{(r)}
# \qquad\text{of shape } (t, d),$$
#
# from $q^{(r)} = x\,W_q^{(r)}$, $k^{(r)} = x\,W_k^{(r)}$ and $v^{(r)} = x\,W_v^{(r)}$, with matrices of shape $(e, d)$.
# Then put the $h$ results side by side, $(t, h\,d)$, and multiply them by one more matrix, $W_u$ of shape $(h\,d, e)$.
# It mixes the heads and brings the width back to $e$. We call this layer `unify`; [Vaswani et al.,
# 2017](https://arxiv.org/abs/1706.03762) write $W^O$ for $W_u$.
#
# In the result for *gave*, the word *mary* now has one term for each head, the product
# $w^{(r)}_{\text{gave},\text{mary}}\, v^{(r)}_{\text{mary}} W_u^{(r)}$, where $W_u^{(r)}$ are the $d$ rows of $W_u$
# that belong to head $r$. Each term has its own weight and its own direction.
#
# How wide should a head be? In the paper, $d = e/h$: the heads share the width of the model, and together they cost
# about as much as one head of width e (section 3.2.2, with $e = 512$ and $h = 8$). We call such heads **narrow**.

# %% [markdown]
# ## All heads in one product
#
# A loop over $h$ small attentions would work, but one large product gives the same result. The queries $x W_q^{(0)}$,
# $x W_q^{(1)}$ and so on are all products of *the same* $x$. Put the matrices side by side, and one product with an
# $(e, h\,d)$ matrix computes the queries of all heads. In each row of the result, the first $d$ components are the
# query of head 0, the next $d$ that of head 1.
#
# Now the $h$ heads have to be separated, in two steps:
#
# 1. (b, t, e) → (b, t, h, d). Split the last axis into two. The numbers stay in their order.
# 2. (b, t, h, d) → (b, h, t, d). Exchange two axes, so that **t and d are the last two**.
#
# The second step is needed because `@` multiplies along the last two axes and keeps all axes before them: (b, h, t, d)
# @ (b, h, d, t) is (b, h, t, t), a matrix of scores for every head of every sentence.
#
# **Unless a card says otherwise, every check in this lesson requires** that gradients flow back to every input, that
# no input is changed, that new tensors are created on the device of the inputs, and that sizes of 1 work.

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
# (b, h, t, d) has the right shape too, but it puts the numbers in the wrong places, as the picture after this exercise
# shows. For the error, `e % h` is the remainder.
#
# </details>
# <details><summary>Hint 2: two positions, with numbers</summary>
#
# Let x be one sentence with the two rows (0, 1, 2, 3) and (4, 5, 6, 7), and h = 2. Head 0 is then (0, 1), (4, 5), and
# head 1 is (2, 3), (6, 7). If your head 0 is (0, 1), (2, 3), you reshaped directly to the final shape. If it is (0, 2),
# (4, 6), the axes h and d are in the wrong order.
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

# %% [markdown]
# In the next picture the numbers of x are labels: 2,3 is component 3 of position 2.

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
# **How to read it.** Top: five positions with six components, in one colour for each future head. Middle: each head has
# one colour, and its row i still belongs to position i. Bottom: the same shape, reached in one step. Reshape reads x
# row by row; the first ten numbers become head 0, the next ten head 1, and the last ten head 2.
#
# </div>
#
# So *head 0* of the scrambled split never sees positions 2 to 4.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `merge_heads`** &nbsp; ★★☆ · 6 minutes · 3 points
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
# Let head 0 be (0, 1), (4, 5) and head 1 be (2, 3), (6, 7), with b = 1. The merged rows are (0, 1, 2, 3) and (4, 5, 6,
# 7). If your first row is (0, 1, 4, 5), it holds two positions of one head.
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

# %% tags=["nbval-check-output"]
print("merge undoes split:", torch.equal(merge_heads(split_heads(labels, 3)), labels))

# %% [markdown]
# The picture, and the table below it, follow x to the output:

# %%
plots.diagrams.heads_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom, for three heads. Each colour is one head. k and v are split in the same way as
# q. Between the upper bar of three colours and the lower one, the heads are separate.
#
# </div>

# %% [markdown]
# | step | shape |
# |---|---|
# | queries, keys, values: three maps without bias | (b, t, e), three times |
# | split into heads | (b, h, t, d), three times |
# | scores, divided by $\sqrt d$ | (b, h, t, t) |
# | softmax: every row of every head sums to 1 | (b, h, t, t) |
# | average of the values | (b, h, t, d) |
# | merge, then `unify`, a map with bias | (b, t, e) |
#
# Only `unify` mixes the heads. Without it, components 0 to d − 1 of the output would come from head 0 alone.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `MultiHeadAttention`** &nbsp; ★★★ · 20 minutes · 5 points
#
# Write the module. Name its layers `to_queries`, `to_keys`, `to_values` (each `nn.Linear(e, e, bias=False)`) and
# `unify` (`nn.Linear(e, e)`); it has no other parameters. If e is not divisible by h, its constructor raises a
# `ValueError` with both numbers in its message. Gradients must reach all parameters. Call `finished_split(x, h)` and
# `finished_merge(x)`, which the first cell imported: they solve exercises 1 and 2, so an error there does not carry
# over. Do not use PyTorch's `nn.MultiheadAttention`; `F.scaled_dot_product_attention` and a loop over the heads are
# allowed.
#
# <details><summary>Hint 1: the order of the steps</summary>
#
# Follow the table above, line by line. Store h in the module (`self.h = h`) so that `forward` can use it.
#
# </details>
# <details><summary>Hint 2: the table, with numbers</summary>
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
# Compare your module with PyTorch's, which stores the three projections in one weight and gives them biases. We set
# these biases to zero, and copy `unify` into the last layer.

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
# ## The product and the loop are the same
#
# Does one wide product do the work of $h$ heads? Take $h$ heads of lesson 2, each a `SingleHeadAttention(e, d)`, run
# them in a loop and put their outputs side by side. Then fuse their matrices and compute all heads at once.
#
# `nn.Linear` stores its weight as (outputs, inputs), the transpose of the $(e, d)$ in our formulas. So each *row* of
# the weight belongs to one output. To stack heads, stack their rows: this makes three weights of shape (h·d, e).

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `fuse_heads`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# From a list of single heads make the three weights of one fused layer, in the layout of `nn.Linear`, head 0 first.
# Copy the numbers unchanged, without a factor $\sqrt d$. Return new tensors, even for a list of one head, and change
# neither the list nor the heads. Gradients are not checked here.
#
# <details><summary>Hint 1: one of the three</summary>
#
# `head.to_queries.weight` is (d, e). You need h of them one below the other, as one (h·d, e) tensor. `torch.cat` joins
# along an axis that exists; `torch.stack` makes a new one.
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
    scaled. Rows r·d to (r+1)·d − 1 (counting from 0) are those of head r.
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
# The next cell compares the loop with the fused product, written out, and then with your `MultiHeadAttention`. The
# heads of lesson 2 do not divide their scores by $\sqrt d$, but your module does. To cancel this division, the query
# weights are multiplied by $\sqrt d$. `unify` is the identity.

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
# ## Three words by hand
#
# Split the queries, keys and values of lesson 2's three words into two heads: head 0 gets components 0 and 1, head 1
# gets components 2 and 3. `unify` is left out. Fill in the two missing numbers.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, W_V, X

q0, q1 = (X @ W_Q).split(2, dim=1)    # (3, 2) each: head 0 and head 1
k0, k1 = (X @ W_K).split(2, dim=1)
v0, v1 = (X @ W_V).split(2, dim=1)
w0, w1 = (torch.softmax(q @ k.T / math.sqrt(2), dim=-1) for q, k in ((q0, k0), (q1, k1)))
merged = torch.cat([w0 @ v0, w1 @ v1], dim=1)
plots.number_grids(
    "three-words", "Three words in two heads, by hand", THREE_WORDS,
    [{"*q*^{(0)}": q0, "*k*^{(0)}": k0, "*q*^{(0)} *k*^{(0)⊤}": q0 @ k0.T, "*w*^{(0)}": w0},
     {"*q*^{(1)}": q1, "*k*^{(1)}": k1, "*q*^{(1)} *k*^{(1)⊤}": q1 @ k1.T, "*w*^{(1)}": w1},
     {"*v*^{(0)}": v0, "*v*^{(1)}": v1, "*y*, merged": merged}],
    empty=[("*q*^{(1)} *k*^{(1)⊤}", 2, 1), ("*y*, merged", 0, 0)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each of the first two lines is one head: queries, keys, their products, and the softmax of the
# products divided by √2. Third line: values, and the heads' outputs side by side. Each question mark is a dot product:
# row *ends* of $q^{(1)}$ with row *loop* of $k^{(1)}$; row *the* of $w^{(0)}$ with the first column of $v^{(0)}$.
#
# </div>
#
# In the single head of lesson 2, *the* and *ends* had the same weights. Here, in head 0, *the* looks equally at itself
# and *loop*, but *ends* looks most at *the*. The next cell prints both missing numbers.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"head 1, query of ends times key of loop: {(q1 @ k1.T)[2, 1]:.0f}")
print(f"first component of y for the word the: {merged[0, 0]:.2f}")
layer = MultiHeadAttention(4, 2)
layer.load_state_dict({
    "to_queries.weight": W_Q.T, "to_keys.weight": W_K.T, "to_values.weight": W_V.T,
    "unify.weight": torch.eye(4), "unify.bias": torch.zeros(4),
})
print("your module gives the same y:", torch.allclose(layer(X[None])[0], merged, atol=1e-5))

# %% [markdown]
# ## Heads in the batch
#
# The heads need no axis of their own. They can be folded into the batch: queries, keys and values become (b·h, t, d),
# as if there were b·h sentences, and `torch.bmm` multiplies them.
#
# The next function is written in this style, with a bug planted in it. It runs and its result has the right shape, but
# unless h or t is 1, many of its numbers are wrong.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `folded_heads`** &nbsp; fix · ★★☆ · 8 minutes · 3 points
#
# One step of this function is wrong. Find it and fix it. h divides e here.
#
# <details><summary>Hint 1: a small case on paper</summary>
#
# Take b = 1, h = 2, t = 3, d = 1, and label each number with two digits, position and head. Write down the order of the
# labels after every line. The fold changes the order on purpose. Which line should restore it, and does it?
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
# The last line was wrong. `y` is (b·h, t, d), with all positions of head 0 before those of head 1. `y.reshape(b, t, e)`
# cuts this sequence of numbers into rows of e, and each row has pieces of several positions. The axes have to be split
# and exchanged first: `y.reshape(b, h, t, d).transpose(1, 2).reshape(b, t, e)`. A reshape only needs the right number
# of entries, so it raised no error.
#
# </details>

# %% [markdown]
# ## Three questions, answered
#
# Do heads help? We generate sentences by a rule, *NAME gave THING to NAME*, from 16 names and 16 things. A small model,
# the class `Reader` below, gets the five words. It has one layer of attention, and then a linear layer predicts giver,
# thing and receiver **from the one vector at the word *gave***. The loss is the
# **[cross-entropy](../../site/glossary.md#cross-entropy)**: the negative logarithm of the probability given to the
# right answer, averaged over all answers. Compare h = 1 with h = 3. Both have the same number of parameters.

# %% [markdown]
# <div class="card">
#
# **Prediction · `one_head_reads`** &nbsp; 1 minute · no points
#
# The model with one head is trained ten times, from ten random starts. How well does it answer then? (With 16 names, a
# guess is right about 6 times in 100.)
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

# %%
class Reader(nn.Module):
    """Word and position vectors, one layer of attention, answers from the verb's vector."""

    def __init__(self, attention, e):
        super().__init__()
        self.words, self.positions = nn.Embedding(len(WORDS), e), nn.Embedding(5, e)
        self.attention, self.answers = attention, nn.Linear(e, 3 * len(WORDS))

    def forward(self, ids):
        y = self.attention(self.words(ids) + self.positions.weight)    # (b, 5, e)
        return self.answers(y[:, GAVE]).view(-1, 3, len(WORDS))

torch.set_num_threads(1)    # models as small as these are faster on one core than on two

def train(attention, h, seed=1, steps=300):
    """Train a Reader whose attention has h heads, on 64 random sentences in every step.

    Returns the model, its losses, and a line with the share of right answers for each role.
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

# %% mystnb={"image": {"alt": "Loss against training step on a logarithmic axis, runs 1 to 3 for one head and for three heads. Each curve ends in its run's number. After 300 steps the runs with one head are at losses between 0.1 and 1: run 2 has stayed near 1 since before half way, run 3 is still falling, and run 1 falls slowly and unevenly. The runs with three heads are all far below: run 1 is highest, then run 3, then run 2."}}
runs = {1: [], 3: []}
_, ax = plt.subplots()
for h, colour, dashes in zip(runs, plots.COLOURS, plots.DASHES):
    for run in range(1, 11):
        reader, losses, right = train(MultiHeadAttention, h, seed=run)
        runs[h].append(reader)
        print(f"h = {h}, run {run:>2}, right answers: {right}")
        if run <= 3:
            label = f"h = {h}" if run == 1 else None
            ax.plot(losses, color=colour, linestyle=dashes, linewidth=1.3, label=label)
            ax.text(304, losses[-1], f"run {run}", color=colour, va="center")
ax.set(xlabel="step", ylabel="cross-entropy in nats", yscale="log", xlim=(-15, 330))
ax.legend()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Cross-entropy of runs 1 to 3 for each h; lower is better.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_one_head_reads", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("one_head_reads", one_head_reads)

# %% [markdown]
# In four of the ten runs with one head, at least one role is no better than a guess: the giver in runs 2 and 7, the
# receiver in run 8, both in run 6. With three heads, every role is right in 99% or 100% of the sentences (rounded) in
# all ten runs. So heads help here. Does one head only need more steps? Repeat runs 1 and 2 with four times as many:

# %%
for seed in (1, 2):
    *_, right = train(MultiHeadAttention, 1, seed, steps=1200)
    print(f"h = 1, run {seed}, 1,200 steps, right answers: {right}")

# %% [markdown]
# Run 1 now answers nearly all questions, so one sum can hold nearly all answers. Run 2 still guesses the giver.
#
# What do three heads look at? Their weights vary with the sentence, so average them over 2,000 sentences.

# %% mystnb={"image": {"alt": "Three heat maps of average weights over giver, gave, thing, to and receiver, one for each head, with numbers. In the row of gave, most of the weight is on the thing in head 0 (0.9), on the receiver in head 1 (1.0) and on the giver in head 2 (0.9)."}}
ids = giving_sentences(2000, torch.Generator().manual_seed(0))[0].to(device())
positions = ["giver", "gave", "thing", "to", "receiver"]

def weights_of(reader, h):
    """The weights of a trained Reader on these sentences, (2000, h, 5, 5)."""
    x = reader.words(ids) + reader.positions.weight    # (2000, 5, 24)
    q = finished_split(reader.attention.to_queries(x), h)
    k = finished_split(reader.attention.to_keys(x), h)
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)

reader = runs[3][1]    # run 2
titles = [f"head {r}" for r in range(3)]
plots.head_grid(weights_of(reader, 3).mean(0), positions, titles=titles, digits=1)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Average weights in run 2, one map for each head. The predictions use only the row of *gave*.
#
# </div>
#
# In the row of *gave*, head 0 looks mostly at the thing, head 1 at the receiver, and head 2 at the giver. Do runs 1 and
# 3 divide the questions in the same way? Print this row for runs 1 to 3:

# %%
columns = "".join(f"{position:>9}" for position in positions)
print("weights of gave:    " + columns)
for h in runs:
    for run, reader in enumerate(runs[h][:3]):
        for r, row in enumerate(weights_of(reader, h)[:, :, GAVE].mean(0).tolist()):
            print(f"h = {h}, run {run + 1}, head {r}:", *(f"{w:8.2f}" for w in row))

# %% [markdown]
# Of these three runs with three heads, only run 2 has one head per question. In run 3, head 2 looks only at *gave*, the
# same word in every sentence, so heads 0 and 1 answer all three questions. In run 1, heads 0 and 1 share giver and
# receiver. Nothing in the design assigns a question to a head.
#
# How does one head manage at all? In run 2, the giver's average weight is 0.00, and the model guesses the giver. In
# runs 1 and 3, the average weights on giver and receiver are about the same, and yet both models usually name the
# giver. Do they tell the giver from the receiver by the word sum or by the position sum?
#
# To find out, replace the weights of the two names by their mean: in the word sum only, in the position sum only, then
# in both. If a model relies on the difference between them in one of the sums, it will then confuse giver and receiver.

# %% tags=["hide-input"]
def outputs_with(reader, w_word, w_position):
    """The logits of a model with one head, from given weights for each of the two sums."""
    word_sum = w_word @ reader.attention.to_values(reader.words(ids))
    position_sum = w_position @ reader.attention.to_values(reader.positions.weight)
    y = reader.attention.unify(word_sum + position_sum)
    return reader.answers(y).view(-1, 3, len(WORDS))

print(f"{'who gives?':<36}{'giver named':>12}{'receiver named':>16}")
for run in 1, 3:
    w = weights_of(runs[1][run - 1], 1)[:, 0, [GAVE]]    # (2000, 1, 5)
    mean = (w + w[..., [4, 1, 2, 3, 0]]) / 2    # both names get their mean
    for where, *pair in (("unchanged", w, w), ("equal in word sum", mean, w),
                         ("equal in position sum", w, mean), ("equal in both", mean, mean)):
        named = outputs_with(runs[1][run - 1], *pair)[:, 0].argmax(-1)
        giver, receiver = ((named == ids[:, place]).float().mean() for place in (0, 4))
        print(f"run {run}, weights {where:<21}{giver:>12.0%}{receiver:>16.0%}")

# %% [markdown]
# With equal weights in the word sum only, both models name the giver about as often as before. With equal weights in
# the position sum, they name the giver in 40% of the sentences or fewer, and the receiver at least as often. So these
# two models tell the giver from the receiver by the position sum.
#
# How can they? The query of *gave* is the same in every sentence, and a key is the sum of a word's part and a
# position's part. So each score is a **word score** plus a position score.
#
# Suppose that the first and the last position have the same position score, and that *susan* has a larger word score
# than *mary*. Then *susan* gets the larger weight in both *mary gave roses to susan* and *susan gave roses to mary*,
# for example 0.4 against 0.2. The word sum is the same for both sentences. The position sum is not: the last position
# has weight 0.4 when *susan* receives, and the first position when she gives. So the word sum shows which two names are
# present, and the position sum shows whether *susan* gives or receives.
#
# Do the two models use this? Then moving weight from the last position to the first must favour names with large word
# scores: their giver **[logits](../../site/glossary.md#logits)**, the scores before the softmax, must rise most.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two scatter plots, runs 1 and 3, of 16 named points: change of giver logit against word score. In both, the points rise from bottom left to top right, close to a line through the middle."}}
_, axes = plt.subplots(1, 2, figsize=(8, 4))
for ax, run in zip(axes, (1, 3)):
    reader, attention = runs[1][run - 1], runs[1][run - 1].attention
    query = attention.to_queries(reader.words(ids[0]) + reader.positions.weight)[GAVE]
    word_score = attention.to_keys(reader.words.weight) @ query / math.sqrt(24)
    logits = reader.answers(attention.unify(attention.to_values(reader.positions.weight)))
    change = 0.1 * (logits[0] - logits[4])[:len(WORDS)]    # first third: the giver
    names = torch.stack([word_score, change], dim=1)[:len(NAMES)]
    plots.plane(names, NAMES, labels=("word score", "change of giver logit"),
                title=f"run {run}", ax=ax)
    print(f"run {run}, correlation of word score and change: {names.T.corrcoef()[0, 1]:.2f}")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One point for each name: its word score, and the change of its giver logit when a tenth of the
# weight moves from the last position to the first in the position sum. In both models, the points rise to the right.
#
# </div>

# %% [markdown]
# ## A model with a bug
#
# Suppose we train a three-head model of width 24 whose merge has the bug of exercise 5. In memory, the outputs of its
# heads for one sentence are 15 pieces of 8 numbers: five of head 0, one for each word, then five of head 1 and five of
# head 2. The wrong merge makes each row from three consecutive pieces. Row 1, that of *gave*, gets pieces 3, 4 and 5:
# the outputs of head 0 for *to* and *susan*, and that of head 1 for *mary*.

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
        b, t, e = x.shape
        projections = self.to_queries, self.to_keys, self.to_values
        q, k, v = (finished_split(project(x), self.h) for project in projections)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(e // self.h), dim=-1)
        return self.unify((weights @ v).reshape(b, t, e))

reader, _, right = train(ScrambledAttention, 3)
print("right answers:", right)

# %% nbgrader={"grade": true, "grade_id": "check_scrambled_answers", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("scrambled_answers", scrambled_answers)

# %% [markdown]
# Print the attention weights of the three pieces in the row of *gave*:

# %% tags=["hide-input"]
print("average weights:    " + columns)
weights = weights_of(reader, 3).mean(0)    # (h, 5, 5)
for r, i in (0, 3), (0, 4), (1, 0):
    name = f"head {r}, {positions[i]}:"
    print(f"{name:<20}", *(f"{w:8.2f}" for w in weights[r, i].tolist()))

x, copy = torch.randn(2, 5, 12, device=device()), ScrambledAttention(12, 3).to(device())
copy.load_state_dict(mine.state_dict())    # theirs has the same weights since exercise 3
difference = (copy(x) - theirs(x, x, x)[0]).abs().max()
print("\nlargest difference from nn.MultiheadAttention with the same weights:",
      f"{difference:.2f}")

# %% [markdown]
# Every sentence has five words, so the three pieces always come from the same positions, and training has taught each
# position where to look. In head 0, *to* looks at giver and receiver, and *receiver* at the thing. In head 1, *giver*
# looks most at the receiver. So a perfect score does not prove the code right: only the last line shows the bug.

# %% [markdown]
# ## Heads in a published model
#
# Do the heads of a published model ask different questions?
# [all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) has 6 layers with 12 heads each
# ([lesson 14](../14_bert/14_bert.ipynb) loads it). The next figure shows recorded weights of 2 of its 72 heads on one
# sentence. The [tokens](../../site/glossary.md#token) [CLS] and [SEP] mark where a text begins and ends.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two maps of attention weights over the sentence the animal did not cross the street because it was too tired. In the first the weight is one step left of the diagonal. In the second, more than half of the rows look most at the first token, and the row of it puts most of its weight on animal."}}
recording = recorded("minilm")["result"]
example, pronoun = recording["example"], recording["pronoun_head"]
shown = [example["heads"][0], pronoun["head"]]

maps = torch.tensor([example["weights"][0], pronoun["weights"]])
plots.head_grid(maps, example["pieces"], annotate=False,
                titles=[f"layer {layer}, head {head}" for layer, head in shown])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i holds the weights of token i; darker means more. In the first head every token except the
# first looks at the token before it. In the second, more than half of the rows look most at [CLS]; [Clark et al.,
# 2019](https://arxiv.org/abs/1906.04341) suspect that heads turn to special tokens when what they look for is absent.
#
# </div>
#
# In this sentence, the two heads look at different words. What does the second head ask? The token *it* gives 0.69 of
# its weight to *animal*, as if the head knew what the pronoun means. But we chose this head because of that weight: in
# none of the other 71 heads does *it* give more weight to *animal* (`helpers/training/minilm.py`). Take four more: in
# two of the five sentences, *it* refers to the subject, in three to the other noun. Sentences 1 and 2 are adapted from
# [Uszkoreit,
# 2017](https://research.google/blog/transformer-a-novel-neural-network-architecture-for-language-understanding/),
# sentences 4 and 5 from [Levesque et al., 2012](https://cdn.aaai.org/ocs/4492/4492-21843-1-PB.pdf).

# %% tags=["hide-input"]
for sentence in pronoun["sentences"]:
    nouns = ", ".join(f"{noun} {weight:.2f}" for noun, weight in sentence["weights"].items())
    print(sentence["text"])
    print(f"    weights of it: {nouns}; it refers to the {sentence['meant']}\n")

# %% [markdown]
# In all five sentences the subject gets more weight than the other noun, even where *it* refers to the other noun. So a
# simpler question fits better: *which noun is the subject?* The question *which noun came first?* fits equally well.
# Neither explains why the weight on *animal* falls from 0.69 to 0.32 when *wide* replaces *tired*. A weight map shows
# where a head looks. To find out what a head looks *for*, you need sentences that tell the explanations apart.

# %% [markdown]
# ## Other kinds of heads, and their parameters
#
# **Wide heads.** A narrow head has $d = e/h$ dimensions, which is not much when there are many heads. A **wide** head
# has all $e$ dimensions: $d = e$. The projections then map e to $h\,e$, the merged heads are $h\,e$ wide, and `unify`
# maps them back to e.
#
# **Shared keys and values.** A model that writes word by word stores the keys and values of all words so far ([lesson
# 12](../12_gpt2/12_gpt2.ipynb)). It stores fewer if the heads share them. In **[multi-query
# attention](../../site/glossary.md#multi-query-attention)** ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)) each
# head has its own queries, and all heads use the same keys and values, of width d. The scores are (b, h, t, d) @ (b, 1,
# d, t): `@` uses the one set of keys for every head.
#
# Now count all trained numbers: three projections without bias, and `unify` with its bias of e numbers.

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
head_counts = [1, 2, 4, 8, 16, 32]
lines = {kind: (head_counts, [count_parameters(256, h, kind) for h in head_counts])
         for kind in ("wide", "narrow", "multi-query")}
landmarks = {"queries and unify alone": 2 * 256 * 256 + 256}
plots.curves(lines, "heads h", "parameters", log="xy",
             landmarks=landmarks, named_at="left")
plt.gca().set_xticks(head_counts, labels=head_counts)
plt.minorticks_off()
plt.show()

for kind in ("narrow", "wide", "multi-query"):
    print(f"{kind:>11}: {count_parameters(512, 8, kind):>9,} parameters at e = 512, h = 8")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Width e = 256, both axes logarithmic. With one head all three kinds have the same count,
# $4e^2 + e$. With more heads, the count of wide heads grows with h, and the count of narrow heads does not change. The
# count of multi-query falls towards that of the queries and `unify` alone.
#
# </div>
#
# The scores of narrow heads take as many multiplications as those of one head, since $h\,d = e$. But there are h tables
# of scores, each t × t, and the softmax has h times the work.

# %% [markdown]
# ## Your model so far
#
# `MultiHeadAttention(64, 4)`, with four heads of width 16, now replaces the single head. Its layer `unify` is new, too.
# The cell takes up to twenty seconds on one core; the stop button ends it early.

# %% mystnb={"image": {"alt": "A scoreboard of five models over bits per byte. From the bottom: the plain average near 4.5, bare self-attention at 3.6, then queries, keys and values near 3.8, scaled scores between 3.7 and 3.8, and four heads at 3.7. All are right of the line of order 1, at 3.5."}}
from helpers.ladder import ByteModel, Ladder

ladder = Ladder(check)
heads_class = ladder.own(MultiHeadAttention)
torch.manual_seed(0)
ladder.climb(ByteModel(heads_class(64, 4)))
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each model; farther left is better. The point is your model; the ticks are our three
# runs. Dashed lines: *order 0* knows only how frequent each byte is, *order 1* also knows the byte before; *gzip*
# and *xz* are programs that compress files.
#
# </div>
#
# Four heads hardly change the result: 3.71 or 3.72 [bits per byte](../../site/glossary.md#bits-per-byte) in our three
# runs, against 3.69 to 3.79 with one scaled head. Bare self-attention is still better. Your vectors still do not say
# where a byte is, so no head can ask for the byte at a given distance. Lesson 6 adds positions.

# %% [markdown]
# ## What you can do now
#
# You can split a tensor into heads and merge it again, and say why a reshape alone does neither; write multi-head
# attention without a loop and show that a loop over heads gives the same; detect a wrong merge that a perfect score
# does not reveal; and count the parameters of narrow, wide and multi-query heads.
#
# **Three questions to think about**
#
# <details><summary>1. In a trained model, swap head 0 and head 1: swap their rows in the weights of all three
# projections. What else must you swap to leave the output unchanged?</summary>
#
# The columns of `unify.weight` that read them: columns r·d to (r+1)·d − 1 belong to head r. Then nothing changes,
# because `unify` adds the heads up, and a sum has no order. So the number of a head has no meaning.
#
# </details>
# <details><summary>2. What is left of a head of width d = 1?</summary>
#
# Its queries and keys are single numbers, and its scores are products $q_i\,k_j$. A query with positive $q_i$ prefers
# large keys, one with negative $q_i$ small keys. The size of $q_i$ only sets how sharp the weights are. So the head can
# only ask for more or less of one feature. Its values are numbers too, so its output has a single direction.
#
# </details>
# <details><summary>3. Suppose that, for wide heads, we drop `unify` and simply add the h outputs. Is anything
# lost?</summary>
#
# Only the bias of `unify`. A wide head's output is $w\,(x W_v)$, and its part of `unify` multiplies it by another (e,
# e) matrix, $W_u^{(r)}$. Since $w\,(x W_v)\,W_u^{(r)} = w\,x\,(W_v W_u^{(r)})$, one matrix can replace both.
#
# </details>
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): the sentence *mary gave
#   roses to susan*, the swap of its two names, and the name `unify` are from there.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2.2: half a
#   page on why the authors use several heads and what the heads cost.
# - [Voita et al., *Analyzing multi-head self-attention*, 2019](https://arxiv.org/abs/1905.09418), section 5: what
#   trained heads look at.
# - [Shazeer, *Fast transformer decoding: one write-head is all you need*, 2019](https://arxiv.org/abs/1911.02150),
#   section 3: multi-query attention.
#
# **Next:** [lesson 5, *Masking*](../05_masking/05_masking.ipynb)

