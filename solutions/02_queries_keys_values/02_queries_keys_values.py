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
# # 2 · Queries, keys, values
#
# *Three roles for every vector*
#
# In lesson 1's self-attention there is nothing to train. And among vectors of equal length each gives itself the most
# weight, because the same vector both asks and is asked. It has a third job, too: it is what gets passed on. This
# lesson gives each job a vector of its own. The result is the attention of the original transformer, without its
# division (lesson 3), its several heads (lesson 4) and its decoder's mask (lesson 5).
#
# | | |
# |---|---|
# | **You will build** | a soft dictionary; attention over queries, keys and values, by mending a faulty version; a module with three learned matrices; two such matrices, written by hand |
# | **You need** | [lesson 1](../01_dot_product_attention/01_dot_product_attention.ipynb), and to have met `torch.nn.Module` |
# | **It takes** | about 100 minutes: five exercises, 17 points, and four predictions |
# | **It computes** | in seconds, on any laptop; the last section takes about a minute, and you may stop it |
#
# Sizes: t positions look, as in lesson 1. Three are new: s, the number of positions looked *at* (perhaps in another
# sequence); d, the width of queries and keys; and v, the width of values. All letters are in [one
# table](../../site/notation.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.toy.phrases import ASKS, known_words, phrases
from helpers.data.vectors import word_vectors
from helpers.device import device
from helpers.lesson import start
from helpers.parts.attention import attention as finished_attention

check = start("02_queries_keys_values")

# %% [markdown]
# ## One letter, three jobs
#
# Here is self-attention once more, for one output:
#
# $$y_i \;=\; \sum_j \operatorname{softmax}_j\big(x_i \cdot x_j\big)\; x_j .$$
#
# The letter $x$ occurs three times, each time with a different job.
#
# | where it stands | what it does there | called |
# |---|---|---|
# | $x_i$, left of the dot | it is compared with all, itself included, to set the weights of **its own** output | the [**query**](../../site/glossary.md#query) |
# | $x_j$, right of the dot | all are compared with it, to set its weight in **their** outputs | the [**key**](../../site/glossary.md#key) |
# | $x_j$, at the end | it is added up, once the weights are known | the [**value**](../../site/glossary.md#value) |
#
# A word may ask for one thing, match on another, and pass on a third. An adjective looks for its noun (query), can be
# found by that noun (key), and contributes its meaning (value).
#
# ## Can two words look only at each other?

# %% [markdown]
# <div class="card">
#
# **Prediction · `mutual`** &nbsp; 1 minute · no points
#
# As in lesson 1, let each vector be query, key and value at once. The next cell draws 100,000 pairs of random vectors
# $x_0, x_1$. In how many pairs does each vector give the *other* more weight than itself?
#
# - **A.** In none.
# - **B.** In about one of a hundred.
# - **C.** In about a quarter of them.
# </div>

# %% nbgrader={"grade": false, "grade_id": "mutual", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
mutual = "A"
### STUDENT GETS
# mutual = ...    # "A", "B" or "C"
### END SOLUTION

# %%
def count_mutual(scores):
    """In how many pairs does each score the other higher than itself? (pairs, 2, 2)"""
    zero_looks_away = scores[:, 0, 1] > scores[:, 0, 0]
    one_looks_away = scores[:, 1, 0] > scores[:, 1, 1]
    return (zero_looks_away & one_looks_away).sum().item()

generator = torch.Generator().manual_seed(0)
pairs = torch.randn(100_000, 2, 4, generator=generator)      # (pairs, 2, e)
first, second = torch.randn(2, 100_000, 4, 4, generator=generator)    # for queries, keys
print("one vector for both roles:", count_mutual(pairs @ pairs.mT))
print("two matrices, drawn at random:", count_mutual((pairs @ first) @ (pairs @ second).mT))

# %% nbgrader={"grade": true, "grade_id": "check_mutual", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("mutual", mutual)

# %% [markdown]
# ## Why one vector cannot do it
#
# One vector for query and key has two consequences. (The value has its turn later.)
#
# **The scores are symmetric.** $x_i \cdot x_j = x_j \cdot x_i$: if *cat* matches *walks*, then *walks* matches *cat*,
# exactly as well. But *walks* may need to look at *cat* while *cat* has no need of *walks*.
#
# **No pair can look only at each other.** By the Cauchy-Schwarz inequality
#
# $$x_i \cdot x_j \;\le\; \lVert x_i\rVert\,\lVert x_j\rVert
# \;\le\; \max\big(\lVert x_i\rVert^2, \lVert x_j\rVert^2\big) \;=\; \max\big(x_i \cdot x_i,\; x_j \cdot x_j\big) .$$
#
# So whatever the vectors are, one of any two positions matches *itself* at least as well as it matches the other.

# %% [markdown]
# ## A dictionary with soft matches
#
# A Python dictionary keeps the three roles apart. It stores values under keys. You come with a query; if one of the
# keys **equals** it, you get that key's value. If none does, you get an error, however near you were.

# %% tags=["nbval-check-output"]
category = {"integer": "number", "decimal": "number", "string": "text", "character": "text",
            "list": "container", "dictionary": "container", "try": "block", "loop": "block"}

print("list:", category["list"])
try:
    category["tuple"]
except KeyError as missing:
    print("tuple: KeyError,", missing)

# %% [markdown]
# A tuple is much like a list, so the answer for *list* would be a good guess. Now let query and keys be vectors. Then
# *equal* can become *similar*: the dot product $q \cdot k_j$ says how well the query matches key $j$, softmax turns the
# s matches into shares, and every value enters the answer with the share of its key:
#
# $$\text{lookup}(q) \;=\; \sum_{j=1}^{s} w_j\, v_j ,
# \qquad w_j \;=\; \frac{\exp (q \cdot k_j)}{\sum_{j'} \exp (q \cdot k_{j'})} .$$
#
# Every key gets some weight, so there is always an answer. And since every step is smooth, gradients flow to the
# query, the keys and the values. No gradient gets through `category["list"]`.
#
# **What every check of this lesson asks:** gradients flow back to every floating-point input, no input is
# changed, new tensors are created on the device of the inputs, and any size may be 1. Anything else that a check asks
# is stated in its exercise.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `soft_lookup`** &nbsp; ★☆☆ · 7 minutes · 3 points
#
# Look up one query in a soft dictionary. There is no batch here: the query is a single vector (d,), the keys are the
# rows of a matrix (s, d), and the values are the rows of another, (s, v). The width v may differ from d.
#
# <details><summary>Hint 1: the two steps and their shapes</summary>
#
# From keys (s, d) and query (d,) to weights (s,); from weights (s,) and values (s, v) to an answer (v,).
#
# </details>
# <details><summary>Hint 2: two keys, with numbers</summary>
#
# Let the query be (ln 3, 0), with ln 3 ≈ 1.0986, and the keys (1, 0) and (0, 1). The matches are ln 3 and 0, their
# exponentials 3 and 1, the weights 3/4 and 1/4. With the values (4) and (8) the answer is (5). Which of these steps
# does your code get wrong?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "soft_lookup", "locked": false, "schema_version": 3, "solution": true, "task": false}
def soft_lookup(query, keys, values):
    """Look up one query in a dictionary whose keys match by degrees.

    query: (d,). keys: (s, d). values: (s, v).
    Returns (v,): the average of the values, weighted with the softmax over s of key·query.
    """
    ### BEGIN SOLUTION
    weights = torch.softmax(keys @ query, dim=0)    # (s,)
    return weights @ values                         # (v,)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_soft_lookup", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(soft_lookup)

# %% [markdown]
# Put the categories into your dictionary. The keys are the word vectors of lesson 1, learned from Python's manual.

# %%
vocabulary, vectors = word_vectors()
vectors = vectors.to(device())    # (n, e) with e = 40

def embed(words):
    return vectors[[vocabulary.index(word) for word in words]]

# %% [markdown]
# A category is stored as a [one-hot](../../site/glossary.md#one-hot-vector) row, with a single 1, so the answer says
# what share each category got. None of the words below is among the keys.

# %%
labels = list(dict.fromkeys(category.values()))       # each category once
one_hot = torch.eye(len(labels), device=device())     # (v, v)

keys = embed(category.keys())                                                   # (s, e)
values = one_hot[[labels.index(label) for label in category.values()]]          # (s, v)
for word in ["tuple", "float", "finally", "while"]:
    answer = soft_lookup(embed([word])[0], keys, values)                        # (v,)
    shares = [f"{label} {share:.2f}" for label, share in zip(labels, answer.tolist())]
    print(f"{word:>8}:", "  ".join(shares))

# %% [markdown]
# Read a line across: the four shares add up to 1, up to rounding, and the largest is the answer. For *while* the
# answer, *block*, wins only narrowly.

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("lookup")

# %% [markdown]
# ## How soft is soft?
#
# One number $\beta \ge 0$ can make a lookup softer or sharper. This is what it has to do:
#
# - At $\beta = 1$ the weights are those of your lookup.
# - At $\beta = 0$ every weight is $1/s$: the dictionary returns the average of all its values, whatever you ask.
# - In general, **the ratio of any two weights is raised to the power β**. Where one key has three times the weight of
#   another at $\beta = 1$, it has nine times as much at $\beta = 2$.
# - As $\beta$ grows, the best key answers alone. (Our keys are equally long, so a key equal to the query is best.) That
#   is an ordinary lookup, except that the best match need not be an exact one. If two are equally good, they share.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `sharpen`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Find where $\beta$ has to go, and return the weights. They must be right for every $\beta$ from 0 to 10,000, even
# where two keys match equally well, or nearly so.
#
# <details><summary>Hint 1: the ratio of two weights</summary>
#
# Without β the ratio of weights i and j is $\exp(q \cdot k_i) / \exp(q \cdot k_j) = \exp(q \cdot k_i - q \cdot k_j)$.
# Raise it to the power β: what does the exponent become?
#
# </details>
# <details><summary>Hint 2: two keys, with numbers</summary>
#
# Let the products be 2 and 1. At β = 1 the weights are 0.73 and 0.27, and their ratio is e. At β = 2 the ratio is e²:
# the weights are 0.88 and 0.12. At β = 10,000 they are 1 and 0. But $e^{20000}$ overflows in any
# float (lesson 1 has the remedy), and the weights of β = 1, raised to the power 10,000, both become 0.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sharpen", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sharpen(keys, query, beta):
    """The weights of a lookup: the ratio of any two, raised to the power beta.

    keys: (s, d). query: (d,). beta: a number, 0 or more.
    Returns (s,): at least 0, summing to 1.
    """
    ### BEGIN SOLUTION
    return torch.softmax(beta * (keys @ query), dim=0)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_sharpen", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(sharpen)

# %% mystnb={"image": {"alt": "Four panels of bars: the weights of eight keys for the query tuple. At beta 0 all are one eighth. With growing beta the bar of the key list grows, until at beta 8 it has all the weight and the others none."}}
query = embed(["tuple"])[0]
shares = {f"$\\beta$ = {beta:g}": sharpen(keys, query, beta) for beta in [0, 0.5, 1, 8]}
containers = [j for j, label in enumerate(category.values()) if label == "container"]
plots.bars(shares, list(category), mark=containers)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each panel holds the weights of the same eight keys for the query *tuple*, with the two containers
# hatched. From left to right only $\beta$ changes: an average over everything (each weight is 1/8, printed as 0.12),
# then a growing preference, then a lookup that finds *list* and nothing else.
#
# </div>
#
# Written out, $w_j = \operatorname{softmax}_j(\beta\; q \cdot k_j)$. The attention of this lesson has no β to set
# (lesson 3 puts one in). Is there something in its place?

# %% [markdown]
# <div class="card">
#
# **Prediction · `longer_query`** &nbsp; 1 minute · no points
#
# Make the query twice as long, in the same direction, and look it up without any β. What happens to the weights?
#
# - **A.** Nothing: the query points the same way, so it means the same.
# - **B.** The ratio of any two weights is squared.
# - **C.** Every weight doubles.
# </div>

# %% nbgrader={"grade": false, "grade_id": "longer_query", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
longer_query = "B"
### STUDENT GETS
# longer_query = ...    # "A", "B" or "C"
### END SOLUTION

# %%
place = list(category).index
for length in (1, 2):
    looked_up = torch.softmax(keys @ (length * query), dim=0)    # (s,)
    first, second = looked_up[place("list")].item(), looked_up[place("dictionary")].item()
    shown = f"list {first:.3f}, dictionary {second:.3f}, ratio {first / second:.1f}"
    print(f"length × {length}: {shown}")

# %% nbgrader={"grade": true, "grade_id": "check_longer_query", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("longer_query", longer_query)

# %% [markdown]
# Every product is doubled, so **the length of the query acts as its $\beta$**. With the same keys, a long query picks
# out its best match, and a short one gets nearly the plain average. Lesson 3 comes back to this.

# %% [markdown]
# ## Three vectors out of one
#
# In self-attention each position has only its vector $x_i$. So make a query, a key and a value out of it, with three
# learned matrices:
#
# $$q_i = x_i W_q , \qquad k_i = x_i W_k , \qquad v_i = x_i W_v .$$
#
# You saw what $W_q$ and $W_k$ make possible: with two random ones, drawn anew for each pair, the vectors prefer each
# other in a quarter of all pairs. That is as often as two coins both come up heads.
#
# $W_q$ and $W_k$ have shape (e, d); queries and keys are compared, so they need the same width d. $W_v$ has shape (e,
# v): values may have a width of their own, though most models take v = d. A matrix of this kind is called a
# [**projection**](../../site/glossary.md#projection) (not in the strict sense of linear algebra, where projecting twice
# is projecting once): it can keep what the role needs from a vector and drop the rest.

# %%
def project(x, w_q, w_k, w_v):
    """x: (b, t, e). w_q, w_k: (e, d). w_v: (e, v). Returns q, k: (b, t, d), v: (b, t, v)."""
    return x @ w_q, x @ w_k, x @ w_v

# %% [markdown]
# ## Attention
#
# With these three, one sequence goes through attention like this:

# %%
plots.diagrams.three_roles()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Rectangles are matrices, with their numbers of rows and columns; the batch is left out, and values
# are d wide here. One x becomes q, k and v. Queries meet keys in the scores, one row for each query; the
# softmax turns each row into weights; these average the values.
#
# </div>
#
# Attention is your soft lookup, for many queries at once. Each of the t queries is looked up among the s keys (in the
# diagram s = t):
#
# $$w'_{ij} = q_i \cdot k_j , \qquad w_{ij} = \operatorname{softmax}_j\, w'_{ij} ,
# \qquad y_i = \sum_{j=1}^{s} w_{ij}\, v_j .$$
#
# As a loop, it is your first exercise b·t times over:
#
# ```python
# for row in range(b):           # each sequence of the batch
#     for i in range(t):         # each query
#         y[row, i] = soft_lookup(q[row, i], k[row], v[row])
# ```
#
# Why two letters, when in self-attention t and s are the same? Because queries may come from one sequence, keys and
# values from another: a translation, t words long so far, looks at a source sentence of s words ([lesson
# 10](../10_encoder_decoder/10_encoder_decoder.ipynb)). Keys and values always come in pairs, as in any dictionary. Two
# different sizes also expose mistakes: if t = s, the weights are square, and a wrong product may still fit.
#
# | tensor | shape | a row of it is |
# |---|---|---|
# | `q` | (b, t, d) | a query |
# | `k` | (b, s, d) | a key |
# | scores, weights | (b, t, s) | one query against all keys |
# | `v` | (b, s, v) | a value |
# | output | (b, t, v) | one query's average of the values |

# %% [markdown]
# Here is attention, written with `einsum`. Each axis has a letter. Axes are matched by their letters, so no product
# needs a transpose, and a letter that does not occur after the arrow is summed away. The result has the right shape for
# any sizes, every row of weights sums to 1, and no error is ever raised; but almost every number is wrong. (The bug is
# planted, but easy to write.)

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `attention`** &nbsp; mend · ★★☆ · 10 minutes · 4 points
#
# Fix this function. The scores go into the softmax as they are. One query may be far longer than the others, and the
# weights of all must still be right. Do not call PyTorch's ready-made `scaled_dot_product_attention` or the course's
# `finished_attention` here.
#
# <details><summary>Hint 1: a test that tells</summary>
#
# Take one query, (1, 0), and two keys, (1, 0) and (0, 1), with the values 1 and 0. The scores are 1 and 0, so the
# output should be 0.73. Run it.
#
# </details>
# <details><summary>Hint 2: the test of hint 1, changed</summary>
#
# The faulty function returns 0.5. Now let the second key be (0, 3). It still has nothing in common with the query, so
# its score stays 0, and the output should stay 0.73. This function returns 0.12. Which scores would give 0.12, and how
# could they come from a query (1, 0) and a key (0, 3)?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention(q, k, v):
    """Many soft lookups at once.

    q: (b, t, d), the queries. k: (b, s, d) and v: (b, s, v), the keys and their values.
    Returns (b, t, v): output i is the average of the values, weighted with the softmax
    over s of q_i·k_j.
    """
    ### BEGIN SOLUTION
    scores = torch.einsum("btd,bsd->bts", q, k)
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("bts,bsv->btv", weights, v)
    ### STUDENT GETS
    # scores = torch.einsum("btd,bse->bts", q, k)
    # weights = torch.softmax(scores, dim=-1)
    # return torch.einsum("bts,bsv->btv", weights, v)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_attention", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(attention)

# %% [markdown]
# The test of hint 1, with the second key of hint 2:

# %%
q = torch.tensor([[[1.0, 0.0]]])                 # (1, t, d)
k = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])     # (1, s, d)
output = attention(q, k, torch.tensor([[[1.0], [0.0]]]))
print(f"output: {output.item():.2f}")

# %% [markdown]
# <details><summary>What was wrong, and how to catch it</summary>
#
# The components of the queries were called d, those of the keys e. Both letters are missing after the arrow, so einsum
# sums over each **by itself**: every component of the query is multiplied by every component of the key. The score is
# then the sum of the query's components times the sum of the key's. In hint 2 the scores were 1 and 3.
# One letter for both, `"btd,bsd->bts"`, multiplies like with like.
#
# Two habits catch this. Test on numbers that you can work out by hand, and include vectors at right angles, whose score
# has to be 0.
#
# </details>

# %% [markdown]
# ## Three words by hand
#
# The three vectors of lesson 1 again, now with three 4 × 4 matrices of whole numbers. Fill in the two missing numbers.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, W_V, X

X_q, X_k, X_v = X @ W_Q, X @ W_K, X @ W_V
X_raw = X_q @ X_k.T
X_weights = torch.softmax(X_raw, dim=-1)
plots.number_grids(
    "three-words", "Queries, keys and values of three words, by hand", THREE_WORDS,
    [{"*x*": X, "*W*_{q}": W_Q, "*q* = *x W*_{q}": X_q},
     {"*k* = *x W*_{k}": X_k, "*v* = *x W*_{v}": X_v, "*w*′ = *q k*^{⊤}": X_raw},
     {"*w*": X_weights, "*y* = *w v*": X_weights @ X_v}],
    empty=[("*q* = *x W*_{q}", 2, 2), ("*w*′ = *q k*^{⊤}", 0, 1)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** First row: *q* is the product of *x* and $W_q$. Second row: *k* and *v* are made in the same way,
# with matrices that are not drawn; *w*′ compares each query with each key and is not symmetric. Last row: the weights,
# and the averages of the values.
#
# </div>
#
# In lesson 1 each word gave most weight to itself. Here all three give it to *loop*. The next cell has both numbers,
# and compares the table with your `attention`.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"third component of the query of ends: {X_q[2, 2]:.0f}")
print(f"query of the times key of loop: {X_raw[0, 1]:.0f}")
mine = attention(X_q[None], X_k[None], X_v[None])[0]
print("as you compute it:", torch.allclose(mine, X_weights @ X_v, atol=1e-5))

# %% [markdown]
# ## A question for every word
#
# Are two matrices really better than one? Here is a task made to find out. Phrases of four words, such as *every empty
# list contains*, are drawn at random from short lists. In each, every word has a question:
#
# - the article and the adjective ask for the **noun**: which thing?
# - the noun asks for the **verb**: what does it do?
# - the verb asks for the **noun**: which thing does that?
#
# The output at each position has to be the vector of the word that was asked for; the loss is the squared distance to
# it. The loss says nothing about weights: gradient descent has to find out which word should look where. Every query
# and every key has d = 2 numbers, so that we can look at them afterwards; the values start as the word vectors
# themselves.
#
# The noun and the verb look at each other here, and away from themselves. With one vector for both roles the
# Cauchy-Schwarz inequality rules that out, and a single projection for queries and keys does not help: then $x_i W$
# stands in the inequality where $x_i$ stood. So train twice: with both matrices, and with $W_q$ in the place of $W_k$.

# %%
def phrase_loss(ids, answers, w_q, w_k, w_v):
    y = attention(*project(vectors[ids], w_q, w_k, w_v))    # (b, 4, e)
    asked_for = answers[ids[:, ASKS]]                       # noun, noun, verb, noun
    return (y - asked_for).square().sum(-1).mean()

def train(answers, shared=False, learn_values=True, seed=0, steps=300, d=2):
    """answers: (n, e), what each word of the vocabulary has to answer."""
    generator = torch.Generator().manual_seed(seed)
    w_q, w_k = [0.1 * torch.randn(40, d, generator=generator) for _ in range(2)]
    w_q, w_k, w_v = [w.to(device()).requires_grad_() for w in (w_q, w_k, torch.eye(40))]
    optimiser = torch.optim.Adam([w_q, w_k, w_v][: 3 if learn_values else 2], lr=0.05)
    losses = []
    for step in range(steps):
        ids = phrases(vocabulary, 64, generator)    # (64, 4)
        loss = phrase_loss(ids, answers, w_q, w_q if shared else w_k, w_v)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return [w.detach() for w in (w_q, w_k, w_v)], losses

# %% mystnb={"image": {"alt": "Two loss curves over 300 steps. With one matrix for queries and keys the loss stops falling early and stays high. With two it falls close to zero."}}
w_q, w_k, w_v = torch.zeros(3, 40, 2, device=device())    # until they are trained
(w_q, w_k, w_v), losses_apart = train(vectors)
_, losses_shared = train(vectors, shared=True)

losses = {"w_q and w_k": losses_apart, "one matrix for both": losses_shared}
for name, curve in losses.items():
    print(f"last loss with {name}: {curve[-1]:.2f}")
plots.loss_curve(losses, ylabel="squared distance to the word asked for")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Lower is better; 0 would mean that every word got exactly the word it asked for. With one matrix
# for queries and keys the model learns at first and then stays where it is. No number of steps can bring it near 0,
# since the weights that it would need do not exist.
#
# </div>
#
# The values were learned in both runs. Could they not make up for the weights? No. With one projection $w_{nn}\,w_{vv}
# / (w_{nv}\,w_{vn}) = e^{\lVert q_n - q_v \rVert^2} \ge 1$ for a noun n and a verb v. So if the noun looks at the verb
# more than at itself, the verb looks at itself more than at the noun. A larger value for the noun would repair the
# verb's output, and spoil the noun's by the same factor.
#
# To look at the weights, use your dictionary once more. Store as value $j$ the one-hot row with its 1 at place $j$:
# then what comes back is the row of weights.

# %% mystnb={"image": {"alt": "Two heat maps of raw scores for the phrase every empty list contains. Left, the products of the word vectors: symmetric, with 4 on the diagonal. Right, query times key: not symmetric; the largest entry of each row: every to list, empty to list, list to contains, contains to list."}}
def weights_of(q, k):
    """The weights that attention gives: q (b, t, d), k (b, s, d) -> (b, t, s)."""
    b, s, d = k.shape
    return attention(q, k, torch.eye(s, device=k.device).expand(b, s, s))

words = "every empty list contains".split()
x = embed(words).unsqueeze(0)            # (1, 4, e)
q, k, v = project(x, w_q, w_k, w_v)      # below, .mT exchanges the last two axes
titles = ("scores $x_i\\cdot x_j$", "scores $q_i\\cdot k_j$")
plots.heat_pair((x @ x.mT)[0], (q @ k.mT)[0], rows=words, titles=titles)
plt.show()

# %% mystnb={"image": {"alt": "Two heat maps of weights for the same phrase. Left, lesson 1: most of the weight is on the diagonal. Right, after training: every and empty look at list, list looks at contains, contains looks at list."}}
titles = ("weights of lesson 1", "weights with $q$ and $k$")
plots.heat_pair(weights_of(x, x)[0], weights_of(q, k)[0], rows=words, titles=titles)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read them.** Row i belongs to the word that looks, column j to the word that is looked at. Above, the raw
# scores, each side with a colour scale of its own: on the left the matrix is its own mirror image, on the right it is
# not. Below, the weights: the diagonal of lesson 1 is gone.
#
# </div>
#
# Compare *empty* → *list* with *list* → *empty*: the adjective looks at the noun, and the noun does not look back.
# Each row points at the word that its question is about.
#
# One caution. These matrices were trained on the words of our lists. What they do with any other word has not been
# tested.

# %% [markdown]
# ## One word, two places
#
# Since d = 2, queries and keys can be drawn as they are. (Values are 40 wide, and never compared with either.)

# %%
kinds = known_words(vocabulary)
every_word = [word for members in kinds.values() for word in members]
groups = [kind for kind, members in kinds.items() for word in members]

every_role = project(embed(every_word).unsqueeze(0), w_q, w_k, w_v)
queries_of, keys_of, _ = [role[0].cpu() for role in every_role]    # (words, 2)
planes = {"as queries": queries_of, "as keys": keys_of}

asking = queries_of[[every_word.index("empty"), every_word.index("list")]]
arrows = 6 * nn.functional.normalize(asking, dim=1)                # (2, 2)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two scatter plots of the same words, by kind, on one scale. As queries, articles, adjectives and verbs lie at the bottom, nouns to the left, most of them a little below the horizontal axis. As keys, nouns are at the lower right, verbs at the upper left, articles and adjectives at the upper right. Both arrows are equally long; that of empty points down, that of list to the left and a little down."}}
figure, axes = plt.subplots(1, 2, figsize=(6, 3.8), sharex=True, sharey=True)
shafts = torch.cat([step / 12 * arrows for step in range(12)])    # no label covers them
named = [every_word.index(word) for word in words]
for ax, (role, points) in zip(axes, planes.items()):
    plots.plane(points, groups=groups, title=role, ax=ax)
    ax.get_legend().remove()
    ax.set_box_aspect(1)
    ax.set(xlim=(-7.5, 7.5), ylim=(-7.5, 7.5))
    for arrow, line in zip(arrows.tolist(), ["-", "--"]):
        ax.annotate("", arrow, (0, 0), arrowprops={"arrowstyle": "->", "linestyle": line})
    plots.label_points(ax, points[named], words, avoid=torch.cat([points, shafts]))
axes[1].set_ylabel("")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The same words twice, on one scale; the words of our phrase are named. The arrows, all of one
# length, point the way of the queries of *empty* (solid) and *list* (dashed), in both panels: a query finds the keys
# that lie farthest along its arrow. Downwards, for *empty*, these are nouns; to the left, for *list*, verbs.
#
# </div>
#
# The position of *list* among the queries says what it asks for. Its position among the keys says which queries find
# it. They are different places, and a single vector has only one.

# %% [markdown]
# ## What is passed on
#
# Values have not yet shown what they are for: the right answer was always some word's own vector, and the values
# started as these vectors. So give every word a second vector, drawn at random: its translation into an invented
# language. The questions stay the same, but the answer is now the **translation** of the word asked for. Train on each
# kind of answer, with $W_v$ fixed to the identity and with $W_v$ learned, from three starts each.

# %%
generator = torch.Generator().manual_seed(7)
translations = torch.randn(len(vocabulary), 40, generator=generator)             # (n, e)
translations = 2 * nn.functional.normalize(translations, dim=1).to(device())     # length 2

for answer, answers in {"its own vector": vectors, "its translation": translations}.items():
    for learned in (False, True):
        last = [train(answers, learn_values=learned, seed=seed)[1][-1] for seed in range(3)]
        name = f"{answer}, values {'learned' if learned else 'fixed'}"
        print(f"{name:>32}: last losses", ", ".join(f"{loss:.3f}" for loss in last))

# %% [markdown]
# Look at the third line. Translations have length 2, so an output of zeros would have a loss of 4, and fixed values do
# worse: their outputs are averages of the phrase's own vectors, and no weights turn such an average into a translation.
# With learned values the loss falls almost to 0. (One 40 × 40 matrix can do this because the lists hold fewer than 40
# nouns and verbs.) The first line is the control: where a word's own vector is the answer, fixed values succeed too.
#
# So queries and keys decide **who** answers, and the value decides **what** the answer is. Since $W_v$ is linear, it
# could also be applied after the average: $\sum_j w_{ij}\,(x_j W_v) = \big(\sum_j w_{ij}\,x_j\big)\,W_v$. In this task
# it cannot be left out. Where another linear map follows, as in the model at the end of this lesson, the two could be
# merged into one.

# %% [markdown]
# ## A module
#
# In a model the matrices belong to a layer that keeps them, shows them to the optimiser and moves them to a device: an
# `nn.Module` with three `nn.Linear` layers named `to_queries`, `to_keys` and `to_values`, without bias.
#
# Its `forward` takes the sequence that asks and, if you like, a second one that is asked:
#
# | call | queries from | keys and values from | name |
# |---|---|---|---|
# | `head(x)` | x, (b, t, e) | x | self-attention |
# | `head(x, context)` | x, (b, t, e) | context, (b, s, e) | [cross-attention](../../site/glossary.md#cross-attention) |
#
# The next lessons need only the first call; lesson 10 needs the second.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `SingleHeadAttention`** &nbsp; ★★☆ · 15 minutes · 4 points
#
# Write the module. Its only parameters are the weights of the three layers, none of them shared. For the attention
# itself call `finished_attention(q, k, v)`, which the first cell imported. It is a finished solution of exercise 3, so
# a mistake of yours there does not carry over. Gradients must reach the three weights too, and a call must not depend
# on earlier calls.
#
# <details><summary>Hint 1: the constructor</summary>
#
# `super().__init__()` first. Then three times `nn.Linear(e, d, bias=False)`: the incoming width comes first.
#
# </details>
# <details><summary>Hint 2: one sequence or two, in shapes</summary>
#
# Let e = 5, d = 3, and let x be (1, 2, 5). In `head(x, context)` with a context (1, 4, 5), q is (1, 2, 3), k and v are
# both (1, 4, 3), and the result is (1, 2, 3). In `head(x)`, q, k and v are all (1, 2, 3). What would `head(x, x)`
# return?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "SingleHeadAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SingleHeadAttention(nn.Module):
    """Attention with learned projections from width e to width d.

    The three are called `to_queries`, `to_keys` and `to_values`.
    """

    def __init__(self, e, d):
        ### BEGIN SOLUTION
        super().__init__()
        self.to_queries = nn.Linear(e, d, bias=False)
        self.to_keys = nn.Linear(e, d, bias=False)
        self.to_values = nn.Linear(e, d, bias=False)
        ### END SOLUTION

    def forward(self, x, context=None):
        """x: (b, t, e), which asks.
        context: (b, s, e), which is asked; None means x itself.
        Returns (b, t, d).
        """
        ### BEGIN SOLUTION
        context = x if context is None else context
        q = self.to_queries(x)          # (b, t, d)
        k = self.to_keys(context)       # (b, s, d)
        v = self.to_values(context)     # (b, s, d)
        return finished_attention(q, k, v)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_SingleHeadAttention", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(SingleHeadAttention)

# %% [markdown]
# Copy the trained $W_q$ and $W_k$ into your module. Its $W_v$ stays untrained: any values will do here. An `nn.Linear`
# from e to d stores its weight as (d, e) and multiplies with its transpose, hence the `.T`. Then let the words of one
# phrase look at the words of another.

# %% mystnb={"image": {"alt": "A heat map with three rows and four columns. Rows: this, generator, fails. Columns: every, nested, loop, succeeds. The row of this points at loop, that of generator at succeeds, that of fails at loop."}}
head = SingleHeadAttention(40, 2).to(device())
with torch.no_grad():
    head.to_queries.weight.copy_(w_q.T)    # (2, 40)
    head.to_keys.weight.copy_(w_k.T)

asking, asked = "this generator fails".split(), "every nested loop succeeds".split()
x, context = embed(asking).unsqueeze(0), embed(asked).unsqueeze(0)
print("head(x):", tuple(head(x).shape), " head(x, context):", tuple(head(x, context).shape))
_, ax = plt.subplots(figsize=(4.6, 3.4))
plots.heat(weights_of(head.to_queries(x), head.to_keys(context))[0], asking, asked, ax=ax)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** t = 3 rows ask, s = 4 columns are asked. *this* and *fails* find the noun of the other phrase,
# *loop*; *generator* finds the other phrase's verb, *succeeds*. The output has one row for each word that asked,
# however long the other side is.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Prediction · `shuffled_context`** &nbsp; 1 minute · no points
#
# Shuffle the four words of the **context** only, and call `head(x, context)` again. What happens to its three outputs?
#
# - **A.** They are shuffled in the same way, as in lesson 1.
# - **B.** They are other vectors.
# - **C.** Nothing.
# </div>

# %% nbgrader={"grade": false, "grade_id": "shuffled_context", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
shuffled_context = "C"
### STUDENT GETS
# shuffled_context = ...    # "A", "B" or "C"
### END SOLUTION

# %%
outputs, again = head(x, context), head(x, context[:, [2, 0, 3, 1]])
print(f"largest change of an output: {(outputs - again).abs().max().item():.1g}")
apart = (outputs[0, 0] - outputs[0, 1]).abs().max().item()
print(f"largest difference between two outputs: {apart:.1g}")

# %% nbgrader={"grade": true, "grade_id": "check_shuffled_context", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("shuffled_context", shuffled_context)

# %% [markdown]
# ## What two matrices are worth
#
# Put the projections into the score, with $x_i$ as a row:
#
# $$q_i \cdot k_j \;=\; x_i W_q\,(x_j W_k)^\top \;=\; x_i\, \big(W_q W_k^\top\big)\, x_j^\top .$$
#
# So the two matrices act as one, $M = W_q W_k^\top$ of shape (e, e), put between the two vectors. Lesson 1 had the
# identity in that place. Now it can be any matrix of rank d at most, symmetric or not. The entry of M in row f and
# column g is added to the score when the word that asks has feature f (a 1 in component f) and the word that is asked
# has feature g. M says which feature matters to which. Training finds such an M; here you write one yourself.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `matrices_of_rules`** &nbsp; ★★☆ · 12 minutes · 3 points
#
# Rule r says: a word with feature `asks[r]` looks at words with feature `asked[r]`, and that adds `strengths[r]` to the
# score. Return two matrices that obey all rules, with **one column for each rule**. A feature may occur in several
# rules, and several rules may have the same two features: then their strengths add up. A strength may be negative.
#
# <details><summary>Hint 1: a single rule</summary>
#
# With one rule both matrices are single columns, and (e, 1) times (1, e) is (e, e). Which entries of the two columns
# must not be 0, so that the product has its only nonzero entry in row `asks[0]` and column `asked[0]`?
#
# </details>
# <details><summary>Hint 2: two rules, with numbers</summary>
#
# Let e be 3, and let the features 0 and 1 both look at feature 2, with the strengths 5 and 4. Both matrices are (3, 2).
# The last column of their product M is 5, 4 and 0, and all else is 0. If yours has 9 twice, each of the two features
# obeys both rules.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "matrices_of_rules", "locked": false, "schema_version": 3, "solution": true, "task": false}
def matrices_of_rules(asks, asked, strengths, e):
    """The matrices of a head that obeys d rules, written by hand.

    asks, asked: (d,), integers from 0 to e − 1, the features of rule r. strengths: (d,).
    Returns w_q, w_k: (e, d) each, one column for each rule. Entry [f, g] of w_q @ w_k.T is
    the sum of the strengths of all rules in which f asks and g is asked, 0 without any.
    """
    ### BEGIN SOLUTION
    who_asks = nn.functional.one_hot(asks, e).to(strengths.dtype)      # (d, e)
    who_is_asked = nn.functional.one_hot(asked, e).to(strengths.dtype)
    return who_asks.T * strengths, who_is_asked.T                      # (e, d) each
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_matrices_of_rules", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(matrices_of_rules)

# %% [markdown]
# The questions of the phrases are four rules about four features: article, adjective, noun and verb. Write them down,
# and let an article, an adjective, a noun and a verb look at each other.

# %% mystnb={"image": {"alt": "A heat map of four by four weights. The rows article, adjective and verb have nearly all their weight at noun, the row noun has it at verb."}}
rule_q, rule_k = matrices_of_rules(torch.arange(4, device=device()),
                                   torch.tensor(ASKS, device=device()),
                                   torch.full((4,), 5.0, device=device()), e=4)
x = torch.eye(4, device=device()).unsqueeze(0)    # (1, 4, e): one word of each kind
_, ax = plt.subplots(figsize=(4.6, 3.4))
plots.heat(weights_of(x @ rule_q, x @ rule_k)[0], list(kinds), ax=ax)
plt.show()
rank = torch.linalg.matrix_rank(rule_q @ rule_k.T).item()
print("columns:", rule_q.shape[1], " rank of M:", rank)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row is a word that asks. The pattern is the one that training found for *every empty list
# contains*; here no step of training was taken.
#
# </div>
#
# Your four columns make a matrix of rank 2, because three of the rules ask for the same thing, the noun. So d = 2 is
# enough. Even d = 1 would do: give nouns the query −5, all others 5, and nouns the key 1, verbs −1, the rest 0.
#
# The two thin matrices have 2·e·d parameters, M itself has e²: the two are smaller when d is less than e/2. And each
# comparison multiplies d pairs of numbers, not e.

# %% [markdown]
# ## Your model so far
#
# In lesson 1 your `self_attention` became a language model: it reads 32 bytes and predicts the next one. Our three runs
# of it needed 3.62 or 3.63 [bits per byte](../../site/glossary.md#bits-per-byte). Now your `SingleHeadAttention(64,
# 64)` takes its place, with three trained matrices where there were none. All else stays the same.

# %% [markdown]
# <div class="card">
#
# **Prediction · `second_rung`** &nbsp; 1 minute · no points
#
# How many bits per byte does the new model need, compared with that of lesson 1?
#
# - **A.** At least a quarter of a bit less.
# - **B.** Less, but not by a quarter of a bit.
# - **C.** More.
# </div>

# %% nbgrader={"grade": false, "grade_id": "second_rung", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
second_rung = "C"
### STUDENT GETS
# second_rung = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "A scoreboard of three models over bits per byte. The plain average lies near 4.5, at the line of order 0. Bare self-attention is at 3.6, and queries, keys and values lie to its right, near 3.8. Both are right of the line of order 1, at 3.5."}}
from helpers.data.recorded import recorded
from helpers.ladder import ByteModel, Ladder, measured
from helpers.parts.positions import PositionEmbedding

ladder = Ladder(check)
head_class = ladder.own(SingleHeadAttention)
torch.manual_seed(0)
model = ByteModel(head_class(64, 64))
ladder.climb(model)
ladder.show()
ladder.last_byte(model)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each model; farther left is better. Points are yours, ticks are three runs of ours.
# *Order 0* knows only how frequent each byte is, *order 1* also knows the byte before; *gzip* and *xz* are programs
# that compress files.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_second_rung", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("second_rung", second_rung)

# %% [markdown]
# Why is it worse, with three more matrices? The last byte says most about the next one. Lesson 1's model can hardly
# help looking at it: with its earlier copies it gets 0.91 of the weight. The new model may look anywhere, and gives
# them, all together, no more than equal weights would. There are three suspects.
#
# - **Where it starts.** With the identity in all three matrices the new model *is* the old one. So start there.
# - **It cannot ask for a place.** A query can ask for a kind of byte, but not for the last position. So add to each
#   input one of 32 learned vectors, the one for its position (lesson 6).
# - **It has too little to learn from.** A step reads sixteen windows and predicts one byte of each. So read eight times
#   as many, at eight times the price.
#
# The next cell tries each of the first two once. The figure after it has three runs of each, the third on top of the
# second, and for comparison the old model, where the change applies to it.

# %%
torch.manual_seed(0)
with_positions = ByteModel(head_class(64, 64), PositionEmbedding(32, 64))
as_lesson_1 = ByteModel(head_class(64, 64))
for matrix in as_lesson_1.mix.parameters():
    nn.init.eye_(matrix)    # before the first step, q = k = v = x
for name, model in {"from identity": as_lesson_1, "with positions": with_positions}.items():
    print(f"{name}: {measured(model, 4000)[0]:.2f} bits per byte")
    ladder.last_byte(model)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four rows of ticks over bits per byte, three runs for each of two models; some coincide. As above: lesson 1 near 3.6, lesson 2 to its right, near 3.8. From the identity: lesson 2 alone, near 3.7. With positions: the two overlap, between 3.50 and 3.61. With positions and eight times the windows: lesson 2 between 3.2 and 3.35, lesson 1 to its right, between 3.4 and 3.5."}}
rungs = recorded("ladder")["result"]["bits"]
starts = recorded("ladder_starts")["result"]["bits"]
more = " with positions, 8 times the windows"
old = {"as above": rungs["01_dot_product_attention"],
       "from the identity": [],
       "with positions": rungs["01 with positions"],
       "positions, 8 × the windows": rungs["01" + more]}
new = {"as above": rungs["02_queries_keys_values"],
       "from the identity": starts["02 from the identity"],
       "with positions": rungs["02 with positions"],
       "positions, 8 × the windows": rungs["02" + more]}
plots.runs({"lesson 1's model": old, "lesson 2's model": new}, "held-out bits per byte")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each change; farther left is better. Each tick is one run, and some coincide: long and
# thin without the matrices, short and thick with them.
#
# </div>
#
# The start explains some of it: from the identity all three runs are better, but still behind lesson 1's model.
# Positions alone, without that start, close the gap. They help the new model more, because it can ask for them: its
# last position now looks at itself far more than before.
#
# But the two models are only level. With positions and more bytes to predict, the matrices pay: in each run the new
# model needs fewer bits than the old one. Lesson 5 gets such bytes almost for free: it predicts all 32 bytes of a
# window in a single pass.

# %% [markdown]
# ## What you can do now
#
# You can explain why one vector for query and key forces symmetric scores, and keeps two words from looking only at
# each other; look a query up in a soft dictionary and say what makes it sharp; find a fault in attention that leaves
# all shapes right; write a module with learned projections, for queries from one sequence and keys from another; and
# write such projections by hand.
#
# **Three questions to think about**
#
# <details><summary>1. What does attention return when all keys are equal? When all values are?</summary>
#
# Equal keys match every query equally: all weights are 1/s, and every output is the plain mean of the values. Equal
# values make the weights irrelevant: any average of equal vectors is that vector.
#
# </details>
# <details><summary>2. Multiply W_q by 3 and divide W_k by 3. What changes? What does that say about the numbers in
# W_q?</summary>
#
# Nothing changes in any output, because only the product $W_q W_k^\top$ matters. More generally $W_q A$ and
# $W_k (A^{-1})^\top$ do the same as $W_q$ and $W_k$, for every invertible (d, d) matrix A. A single number in W_q
# therefore has no meaning by itself, and neither do the axes of the plane on which we drew queries and keys.
#
# </details>
# <details><summary>3. Is self-attention with queries, keys and values still permutation equivariant, as in lesson
# 1?</summary>
#
# Yes: the projections treat each position alike, so permuted inputs give the same outputs, permuted. Three learned
# matrices cannot see the order of the words either.
#
# </details>
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): the three roles that each
#   vector plays, told much as here.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2: "a query and
#   a set of key-value pairs"; section 3.2.3 for queries from one sequence and keys from another.
# - [Miller et al., *Key-value memory networks for directly reading documents*, 2016](https://arxiv.org/abs/1606.03126),
#   section 3: a memory whose keys and values differ.
# - [Graves, Wayne and Danihelka, *Neural Turing machines*, 2014](https://arxiv.org/abs/1410.5401), section 3.3.1: a
#   lookup that is sharpened by a "key strength" β.
# - [Ramsauer et al., *Hopfield networks is all you need*, 2021](https://arxiv.org/abs/2008.02217), section 2: what such
#   a lookup finds as β grows.
#
# **Next:** [lesson 3, *Scaling*](../03_scaling/03_scaling.ipynb)
