# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 2 · Queries, keys, values
#
# *Three roles for every vector*
#
# *The boat could not reach the bank because it was too muddy.* In lesson 1, *bank* gave itself the most weight, and
# hardly any to *muddy*, the word that says what kind of bank it is. Each word had one vector for three jobs: it
# looks, it is looked at, and it is averaged into the outputs. (Position $i$ *looks at* position $j$ when the weight
# $w_{ij}$ is large.) **What does a word gain when each job has a vector of its own?**
#
# You build the attention of the [original transformer](https://arxiv.org/abs/1706.03762), without scaling (lesson 3),
# multiple heads (lesson 4) or a mask (lesson 5).
#
# | | |
# |---|---|
# | **You will build** | a soft dictionary; attention over queries, keys and values; a module with three learned matrices; a query matrix and a key matrix written by hand |
# | **You need** | [lesson 1](../01_dot_product_attention/01_dot_product_attention.ipynb), and some knowledge of `torch.nn.Module` |
# | **It takes** | about 80 minutes: five exercises, 17 points, and three predictions |
# | **It computes** | in seconds on a laptop; the longest training run takes up to twenty seconds, and you may stop it |

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data import sentence
from helpers.data.toy.phrases import ASKS, phrases
from helpers.data.vectors import word_vectors
from helpers.device import device
from helpers.lesson import start
from helpers.parts.attention import attention as finished_attention

check = start("02_queries_keys_values")

# %% [markdown]
# ## In lesson 1, one vector does three jobs
#
# One output of lesson 1's self-attention is
#
# $$y_i \;=\; \sum_j \operatorname{softmax}_j\big(x_i \cdot x_j\big)\; x_j .$$
#
# The letter $x$ occurs three times:
#
# | place | name | what it is for |
# |---|---|---|
# | $x_i$, left of the dot | the [**query**](../../site/glossary.md#query) | what a word uses to choose |
# | $x_j$, right of the dot | the [**key**](../../site/glossary.md#key) | what a word is chosen by |
# | $x_j$, at the end | the [**value**](../../site/glossary.md#value) | what a word hands over once it is chosen |
#
# What is lost when one vector is both query and key?
#
# ## Two vectors that prefer each other

# %% [markdown]
# <div class="card">
#
# **Prediction · `mutual`** &nbsp; 1 minute · no points
#
# As in lesson 1, let each vector be query, key and value at once. The next cell draws 100,000 pairs of random vectors
# $x_0, x_1$. In how many pairs does each vector give more weight to the *other* than to itself?
#
# - **A.** In none.
# - **B.** In about one in a hundred.
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
    """Count the pairs whose vectors score each other above themselves. (pairs, 2, 2)"""
    zero_looks_away = scores[:, 0, 1] > scores[:, 0, 0]
    one_looks_away = scores[:, 1, 0] > scores[:, 1, 1]
    return (zero_looks_away & one_looks_away).sum().item()

generator = torch.Generator().manual_seed(0)
pairs = torch.randn(100_000, 2, 4, generator=generator)   # (pairs, 2, e); .mT: (pairs, e, 2)
# for comparison: random matrices for queries and keys, new for each pair, (pairs, e, e)
first, second = torch.randn(2, 100_000, 4, 4, generator=generator)
print("one vector for both roles:", count_mutual(pairs @ pairs.mT))
print("random matrices for each pair:", count_mutual((pairs @ first) @ (pairs @ second).mT))

# %% nbgrader={"grade": true, "grade_id": "check_mutual", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("mutual", mutual)

# %% [markdown]
# **With one vector as both query and key, no two vectors can prefer each other**: they cannot both score higher with
# each other than with themselves. This follows from the Cauchy-Schwarz inequality:
#
# $$x_i \cdot x_j \;\le\; \lVert x_i\rVert\,\lVert x_j\rVert
# \;\le\; \max\big(\lVert x_i\rVert^2, \lVert x_j\rVert^2\big) \;=\; \max\big(x_i \cdot x_i,\; x_j \cdot x_j\big) .$$
#
# In words: the longer vector has no better match than itself, because the other is no longer and cannot point more in
# its direction. (With random matrices each prefers the other in half of the pairs, and both do in half of a half.)
#
# In lesson 1 all vectors of our sentence had the same length, so not even one word could prefer another to itself:
# *bank* could not prefer *muddy*.

# %% [markdown]
# ## With a query and a key for each word, *bank* and *muddy* prefer each other
#
# The published model [MiniLM](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) makes a query and a key
# out of each word's vector, with a learned matrix and a bias for each. Here is the softmax of their products $q_i \cdot
# k_j$ in one of its *heads* (lesson 4), beside the weights of lesson 1:

# %% mystnb={"image": {"alt": "Two maps of the weights of the twelve words the boat could not reach the bank because it was too muddy. Left, one vector for both roles: each word gives the most weight to itself, and the two words the also to each other. Right, head 7 with queries and keys: hardly anything on the diagonal. The darkest cells are bank to muddy and muddy to bank."}}
x = sentence.word_vectors()                                  # (12, e) with e = 384
head_q, head_k, _ = sentence.queries_keys_values(head=7)     # (12, d) with d = 32
maps = torch.softmax(torch.stack([x @ x.T, head_q @ head_k.T]), dim=-1)
titles = ["Lesson 1: each to itself", "Head 7: bank to muddy"]
plots.sentence_map(maps, sentence.WORDS, titles)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: the two *the* are the same vector and share their weight. Right: head 7 of MiniLM's first
# layer, chosen for *bank* and *muddy*. MiniLM also divides its scores by √32 (lesson 3), which would make the weights
# flatter, and adds positions (lesson 6). Here neither is done.
#
# </div>
#
# *Bank* and *muddy* prefer each other, which is impossible with one vector for both roles.
#
# <details><summary>What would the division and the positions change?</summary>
#
# The division keeps the order in each row, but *bank* and *muddy* then give each other only 0.29 and 0.31. With
# positions too, both look most at *the*, and still prefer each other to themselves.
#
# </details>

# %% [markdown]
# ## A soft dictionary always has an answer
#
# What are the values for? A Python dictionary keeps the three roles apart. If your query **equals** one of the keys,
# you get the value of that key. Otherwise you get an error:

# %% tags=["nbval-check-output"]
kinds = ("article noun verb adverb verb article "
         "noun conjunction pronoun verb adverb adjective").split()
kind_of = dict(zip(sentence.WORDS, kinds))

print("bank:", kind_of["bank"])
try:
    kind_of["shore"]
except KeyError as missing:
    print("shore: KeyError,", missing)

# %% [markdown]
# In a **soft dictionary** every key matches every query, more or less: query and keys are vectors of the same width d,
# and the score $q \cdot k_j$ says how well they match. Softmax turns the scores of the s keys into weights, and the
# answer is the weighted average of the values:
#
# $$\text{lookup}(q) \;=\; \sum_{j=1}^{s} w_j\, v_j ,
# \qquad w_j \;=\; \frac{\exp (q \cdot k_j)}{\sum_{j'} \exp (q \cdot k_{j'})} .$$
#
# Every key gets some weight, so there is always an answer. Every step is differentiable, so query, keys and values
# can be learned.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `soft_lookup`** &nbsp; ★☆☆ · 7 minutes · 3 points
#
# Look up one query in a soft dictionary. There is no batch here. Keys and values are the rows of two matrices, and the
# width d_v of the values may differ from d.
#
# <details><summary>Hint 1: the two steps and their shapes</summary>
#
# The keys (s, d) and the query (d,) give weights (s,). The weights and the values (s, d_v) give an answer (d_v,).
#
# </details>
# <details><summary>Hint 2: two keys, with numbers</summary>
#
# Let the query be (ln 3, 0), with ln 3 ≈ 1.0986, and the keys (1, 0) and (0, 1). The scores are ln 3 and 0, their
# exponentials 3 and 1, the weights 3/4 and 1/4. With the values (4) and (8) the answer is (5). Which of these numbers
# does your code not reproduce?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "soft_lookup", "locked": false, "schema_version": 3, "solution": true, "task": false}
def soft_lookup(query, keys, values):
    """Look up one query in a dictionary whose keys match by degrees.

    query: (d,). keys: (s, d). values: (s, d_v).
    Returns (d_v,): the average of the values, weighted with the softmax over s of key·query.
    """
    ### BEGIN SOLUTION
    weights = torch.softmax(keys @ query, dim=0)    # (s,)
    return weights @ values                         # (d_v,)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_soft_lookup", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(soft_lookup)

# %% [markdown]
# Store the twelve words under their keys from head 7, with two sets of values: the word itself, and its kind. Each
# value is a [one-hot](../../site/glossary.md#one-hot-vector) row. The cell prints the largest entry of each answer.

# %%
for word in ["bank", "muddy", "reach", "it"]:
    answers = []
    for stored in (sentence.WORDS, kinds):
        labels = list(dict.fromkeys(stored))    # each once
        values = torch.eye(len(labels))[[labels.index(label) for label in stored]]
        answer = soft_lookup(head_q[sentence.WORDS.index(word)], head_k, values)    # (d_v,)
        answers.append(f"{labels[answer.argmax()]} {answer.max():.2f}")
    print(f"{word:>6}:", "  ".join(f"{answer:14}" for answer in answers))

# %% [markdown]
# **Queries and keys decide *who* answers, and the value decides *what* the answer is.** The query of *bank* matches the
# key of *muddy* both times, so *bank* is handed what *muddy* stores: the word, or its kind. If the values were learned
# vectors, nearly all of *bank*'s output would be *muddy*'s: what kind of bank it is. The weights of *it* are spread
# (0.34 is the sum for both *the*), and it still gets an answer. Move the query, keys and values yourself:

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("lookup")

# %% [markdown]
# ## Three matrices make three vectors out of one
#
# In self-attention each position has only one vector, $x_i$. Three learned matrices make a query, a key and a value
# out of it:
#
# $$q_i = x_i W_q , \qquad k_i = x_i W_k , \qquad v_i = x_i W_v .$$
#
# $W_q$ and $W_k$ have shape (e, d), because queries and keys are compared; $W_v$ has shape (e, d_v). Such a matrix is
# called a [**projection**](../../site/glossary.md#projection).

# %% [markdown]
# ## Attention is many lookups at once
#
# Each position looks up its query among the keys of all positions:

# %%
plots.diagrams.three_roles()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each rectangle is a matrix, labelled with its numbers of rows and columns. The scores *w*′ and
# weights *w* are t × t. The batch axis is left out, and the values are as wide as the keys.
#
# </div>
#
# As a formula, with t queries, s keys (here s = t), and $w'$ for the scores, of shape (b, t, s):
#
# $$w'_{ij} = q_i \cdot k_j , \qquad w_{ij} = \operatorname{softmax}_j\, w'_{ij} ,
# \qquad y_i = \sum_{j=1}^{s} w_{ij}\, v_j .$$

# %% [markdown]
# The next function is meant to be attention. It raises no error, its result has the right shape, and every row of
# weights adds up to 1. **Yet the numbers are wrong.** `einsum` gives each axis a letter (here v for d_v). Axes with
# the same letter are matched; a letter that is missing after the arrow is summed over.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `attention`** &nbsp; fix · ★★☆ · 10 minutes · 4 points
#
# Fix this function. Do not scale the scores before the softmax. The weights must be right for every query, even when
# one query has far larger scores than the others. Do not call PyTorch's `scaled_dot_product_attention` or the
# course's `finished_attention` here.
#
# <details><summary>Hint 1: a small test</summary>
#
# Take one query, (1, 0), and two keys, (1, 0) and (0, 1), with the values 1 and 0. The scores should be 1 and 0, and
# the output 0.73. Run this test.
#
# </details>
# <details><summary>Hint 2: the test of hint 1, changed</summary>
#
# In that test the faulty function returns 0.5. Now let the second key be (0, 3). It is still at a right angle to the
# query, so its score should stay 0 and the output 0.73. The faulty function returns 0.12. The first score is 1, as it
# should be. Which second score would make the output 0.12? How could the query (1, 0) and the key (0, 3) produce that
# score?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention(q, k, v):
    """Many soft lookups at once.

    q: (b, t, d), the queries. k: (b, s, d) and v: (b, s, d_v), the keys and their values.
    Returns (b, t, d_v): output i is the average of the values, weighted with the softmax
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
# This is the test of hint 2:

# %%
q = torch.tensor([[[1.0, 0.0]]])                 # (1, t, d)
k = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])     # (1, s, d)
output = attention(q, k, torch.tensor([[[1.0], [0.0]]]))
print(f"output: {output.item():.2f}")

# %% [markdown]
# <details><summary>What was wrong, and how to find it</summary>
#
# The last axis of the queries was labelled d, that of the keys e. Both letters are missing after the arrow, so einsum
# sums over each **separately**: it multiplies every component of the query by every component of the key. The score
# is then the sum of the query's components times the sum of the key's. In hint 2 the scores were 1 and 3. With the
# same letter for both axes, `"btd,bsd->bts"`, einsum multiplies only components with the same index.
#
# A test with numbers that you can work out by hand finds this mistake. Include vectors at right angles: their score
# has to be 0.
#
# </details>

# %% [markdown]
# ## By hand: a word need not prefer itself
#
# Here are the three vectors of lesson 1 again, now with three 4 × 4 matrices. Work out the two missing numbers.

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
    empty=[("*q* = *x W*_{q}", 2, 2), ("*w*′ = *q k*^{⊤}", 1, 0)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** $W_k$ and $W_v$, which make *k* and *v*, are not shown.
#
# </div>
#
# In lesson 1 each word gave itself the most weight. Here all three give the most to *loop*, whose key is the longest
# and scores 4 with every query. The next cell prints the missing numbers.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"third component of the query of ends: {X_q[2, 2]:.0f}")
print(f"query of loop times key of the: {X_raw[1, 0]:.0f}")
mine = attention(X_q[None], X_k[None], X_v[None])[0]
print("your attention gives the same:", torch.allclose(mine, X_weights @ X_v, atol=1e-5))

# %% [markdown]
# ## Your module: three projections and one attention
#
# Your `nn.Module` will have three `nn.Linear` layers without bias, named `to_queries`, `to_keys` and `to_values`. Its
# `forward` takes the sequence that asks and, optionally, a second one, the *context*, which is asked ([lesson
# 10](../10_encoder_decoder/10_encoder_decoder.ipynb) needs it):
#
# | call | queries from | keys and values from | name |
# |---|---|---|---|
# | `head(x)` | x, (b, t, e) | x | self-attention |
# | `head(x, context)` | x, (b, t, e) | context, (b, s, e) | [cross-attention](../../site/glossary.md#cross-attention) |

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `SingleHeadAttention`** &nbsp; ★☆☆ · 10 minutes · 4 points
#
# Write the module. Its only parameters are the weights of the three layers, and no two layers share weights. For the
# attention itself call `finished_attention(q, k, v)`, a correct solution of exercise 2 that the first cell imported, so
# that a mistake in yours has no effect here. The module must not keep anything from one call for the next.
#
# <details><summary>Hint 1: the constructor</summary>
#
# Call `super().__init__()` first, then three times `nn.Linear(e, d, bias=False)`. Its first argument is the width of
# the input.
#
# </details>
# <details><summary>Hint 2: one sequence or two, in shapes</summary>
#
# Let e = 5, d = 3, and let x be (1, 2, 5). In `head(x, context)` with a context (1, 4, 5), q is (1, 2, 3), k and v
# are both (1, 4, 3), and the result is (1, 2, 3). In `head(x)`, q, k and v are all (1, 2, 3). What would `head(x, x)`
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
# ## Noun and verb can prefer each other with two matrices, not with one
#
# Does training find matrices with which two words prefer each other? We draw phrases such as *every empty list
# contains* (article, adjective, noun, verb) at random from short lists. Every word has a question: the article, the
# adjective and the verb ask for the **noun**, and the noun asks for the **verb**. So noun and verb have to prefer each
# other.
#
# The loss is the squared distance of each output to the vector of the word asked for, so training has to find out by
# itself which word should look where. The values are the word vectors themselves, and queries and keys have d = 2. We
# train with two matrices, $W_q$ and $W_k$, and then with a single one that makes both.

# %%
vocabulary, vectors = word_vectors()    # of lesson 1, (n, e) with e = 40
vectors = vectors.to(device())

def train(shared=False, seed=0):
    """Learn to look at the word asked for. shared: w_q makes the keys, too."""
    generator = torch.Generator().manual_seed(seed)
    w_q, w_k = [0.1 * torch.randn(40, 2, generator=generator) for _ in range(2)]
    w_q, w_k = [w.to(device()).requires_grad_() for w in (w_q, w_k)]
    optimiser = torch.optim.Adam([w_q, w_k], lr=0.05)
    for step in range(300):
        ids = phrases(vocabulary, 64, generator)              # (64, 4)
        x = vectors[ids]                                      # (64, 4, e)
        asked_for = vectors[ids[:, ASKS]]                     # noun, noun, verb, noun
        y = attention(x @ w_q, x @ (w_q if shared else w_k), x)
        loss = (y - asked_for).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return w_q.detach(), (w_q if shared else w_k).detach(), loss.item()

# %% mystnb={"image": {"alt": "Two heat maps of weights over article, adjective, noun and verb, averaged over three runs. Left, two matrices: the noun looks at the verb, all others at the noun, each with 0.99. Right, one matrix: all four look at the noun, with 0.84 to 0.90, the noun too."}}
ids = phrases(vocabulary, 2000, torch.Generator().manual_seed(9))
x, average = vectors[ids], []
for name, shared in {"two matrices": False, "one matrix": True}.items():
    runs = [train(shared, seed) for seed in range(3)]
    print(f"last losses with {name}:", ", ".join(f"{loss:.2f}" for _, _, loss in runs))
    weights = [torch.softmax(x @ w_q @ (x @ w_k).mT, dim=-1).mean(0) for w_q, w_k, _ in runs]
    average.append(sum(weights) / 3)
titles = "Two matrices: the noun\nlooks at the verb", "One matrix: the noun\nlooks at itself"
axes = {"row_label": "word that looks", "column_label": "word that is looked at"}
plots.heat_pair(*average, ["article", "adjective", "noun", "verb"], titles=titles, **axes)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The weights are averaged over 2,000 phrases and three runs. The losses are those after 300 steps,
# one for each run. At 0, every output is the vector of the word asked for.
#
# </div>
#
# **Two matrices learn the task, and one cannot.** In all three runs the loss ends at 0.00 with two, and at 1.47 or
# above with one: answering every question with the noun would give 1.69.
#
# With one matrix $W$ the inequality above holds for $x_i W$ in place of $x_i$. It forces the noun or the verb to keep
# at least as much weight as it gives the other; here it is the noun. A wider matrix would not help, because the
# inequality holds for every d. A flipped sign in the keys does ([Measured further](../../site/further.md#lesson-2),
# with a drawing of queries and keys).

# %% [markdown]
# ## Matrices for such questions can be written by hand
#
# **Two matrices act as one**, their product. With $x_i$ as a row, the score is
#
# $$q_i \cdot k_j \;=\; x_i W_q\,(x_j W_k)^\top \;=\; x_i\, \big(W_q W_k^\top\big)\, x_j^\top .$$
#
# The product $M = W_q W_k^\top$ has shape (e, e), and may be any matrix of rank d or less. In lesson 1, $M$ was the
# identity. With one matrix $W$ for both roles, $M = W W^\top$ is symmetric. That is not the obstacle, since a symmetric
# $M$ can let two words prefer each other; it is that every word scores itself with a square, $\lVert x_i W\rVert^2$.
#
# Now let every component of a word's vector be 0 or 1. The word *has feature f* if component f is 1. Entry [f, g] of
# $M$ is added to the score when the word that asks has feature f and the word that is asked has feature g.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `matrices_of_rules`** &nbsp; ★★☆ · 12 minutes · 3 points
#
# Rule $a$ adds `strengths[a]` to the score when the word that asks has feature `asks[a]` and the word that is asked
# has feature `asked[a]`. Return two matrices that together implement all rules, with **one column for each rule**. A
# feature may occur in several rules. If rules share a pair of features, their strengths add up. A strength may be
# negative.
#
# <details><summary>Hint 1: a single rule</summary>
#
# With one rule both matrices are single columns, and (e, 1) times (1, e) is (e, e). Only one entry of the product may
# differ from 0, the one in row `asks[0]` and column `asked[0]`. Where must each column hold its one nonzero number?
#
# </details>
# <details><summary>Hint 2: two rules, with numbers</summary>
#
# Let e be 3, and let the features 0 and 1 both look at feature 2, with the strengths 5 and 4. Both matrices are (3,
# 2). The last column of their product M is 5, 4 and 0, and all other entries are 0. If your last column is 9, 9 and
# 0, both features follow both rules: in w_q, rows 0 and 1 each have two nonzero entries where they should have one.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "matrices_of_rules", "locked": false, "schema_version": 3, "solution": true, "task": false}
def matrices_of_rules(asks, asked, strengths, e):
    """The matrices of a head that obeys d rules, written by hand.

    asks, asked: (d,), integers from 0 to e − 1: entry a is the feature that asks, or that is
    asked, in rule a. strengths: (d,), one for each rule.
    Returns w_q, w_k: (e, d) each, one column for each rule. Entry [f, g] of w_q @ w_k.T is
    the sum of the strengths of all rules in which f asks and g is asked, or 0 if there are
    none.
    """
    ### BEGIN SOLUTION
    who_asks = nn.functional.one_hot(asks, e).to(strengths.dtype)      # (d, e)
    who_is_asked = nn.functional.one_hot(asked, e).to(strengths.dtype)
    return who_asks.T * strengths, who_is_asked.T                      # (e, d) each
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_matrices_of_rules", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(matrices_of_rules)

# %% [markdown]
# The questions of the phrases are four rules about four features. Their matrices give these weights:

# %% mystnb={"image": {"alt": "A heat map of four by four weights. The rows article, adjective and verb have nearly all their weight at noun, the row noun has it at verb."}}
rule_q, rule_k = matrices_of_rules(torch.arange(4, device=device()),
                                   torch.tensor(ASKS, device=device()),
                                   torch.full((4,), 5.0, device=device()), e=4)
x = torch.eye(4, device=device())    # (4, e): one word of each kind
_, ax = plt.subplots(figsize=(4.6, 3.4))
plots.heat(torch.softmax(x @ rule_q @ (x @ rule_k).T, dim=-1),
           ["article", "adjective", "noun", "verb"], ax=ax, **axes)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Training with two matrices found the same pattern; here nothing was trained.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Prediction · `fewest_columns`** &nbsp; 1 minute · no points
#
# Your matrices have four columns, one for each rule. How many columns must $W_q$ and $W_k$ have at least, so that
# their product is the same $M$?
#
# - **A.** One: every rule has the same strength.
# - **B.** Two.
# - **C.** Four: no two rules are the same.
# </div>

# %% nbgrader={"grade": false, "grade_id": "fewest_columns", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
fewest_columns = "B"
### STUDENT GETS
# fewest_columns = ...    # "A", "B" or "C"
### END SOLUTION

# %%
product = rule_q @ rule_k.T    # M, (4, 4)
print(product.int().tolist())
print("columns:", rule_q.shape[1], " rank of M:", torch.linalg.matrix_rank(product).item())

# %% nbgrader={"grade": true, "grade_id": "check_fewest_columns", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("fewest_columns", fewest_columns)

# %% [markdown]
# So d = 2 was enough when we trained.
#
# ## One number makes the lookup softer or sharper
#
# Lesson 3 will divide every score by one number. What does one factor for all scores do to a lookup? Call it $\beta \ge
# 0$. It should work like this:
#
# - At $\beta = 1$ the weights are those of your lookup.
# - At $\beta = 0$ every weight is $1/s$, and the answer is the plain average of all values.
# - **The ratio of any two weights is raised to the power β.** If one key has three times the weight of another at
#   $\beta = 1$, it has nine times the weight at $\beta = 2$.
# - As $\beta$ grows, the best key takes all the weight. If several keys tie for best, they share it equally.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `sharpen`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Find where $\beta$ has to go, and return the weights. They must stay accurate for every $\beta$ from 0 to 10,000,
# even where two keys match equally well or almost equally well. Rounding errors in the scores q·k cost no points.
#
# <details><summary>Hint 1: the ratio of two weights</summary>
#
# Without β the ratio of weights i and j is $\exp(q \cdot k_i) / \exp(q \cdot k_j) = \exp(q \cdot k_i - q \cdot k_j)$.
# Raise it to the power β. What is the exponent then?
#
# </details>
# <details><summary>Hint 2: two keys, with numbers</summary>
#
# Let the scores be 2 and 1. At β = 1 the weights are 0.73 and 0.27, and their ratio is e. At β = 2 the ratio is e²,
# and the weights are 0.88 and 0.12. At β = 10,000 they are 1 and 0. But $e^{20000}$ overflows (lesson 1 has the
# remedy), and raising 0.73 and 0.27 to the power 10,000 gives 0 twice, because both results underflow.
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

# %% mystnb={"image": {"alt": "Four panels of bars: the weights of twelve keys for the query too. At beta 0 all are one twelfth. As beta grows, the bar of the key bank grows, until at beta 8 it has nearly all the weight and the others have almost none."}}
query = head_q[sentence.WORDS.index("too")]
shares = {f"$\\beta$ = {beta:g}": sharpen(head_k, query, beta) for beta in [0, 0.5, 1, 8]}
plots.bars(shares, list(sentence.WORDS), mark=[sentence.WORDS.index("bank")])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The weights of the twelve keys of head 7 for the query of *too*. The best key, that of *bank*, is
# hatched.
#
# </div>
#
# As a formula, $w_j = \operatorname{softmax}_j(\beta\; q \cdot k_j)$. Attention has no β so far, but **the length of a
# query acts like it**: make a query twice as long, in the same direction, and every score doubles, as at β = 2.

# %% [markdown]
# ## Your model so far
#
# Does a language model also predict better? Lesson 1's model compares the vectors themselves. Now three projections of
# width 64 make a query, a key and a value out of each vector, and your `attention` does the rest. The box that hides
# later bytes and adds positions stays as it was.

# %% [markdown]
# <div class="card">
#
# **Prediction · `second_rung`** &nbsp; 1 minute · no points
#
# How many [bits per byte](../../site/glossary.md#bits-per-byte) does the new model need, compared with lesson 1's?
#
# - **A.** More: there is more to learn in the same number of steps.
# - **B.** The same, to within a twentieth of a bit: attention was there before.
# - **C.** At least a tenth of a bit less.
# </div>

# %% nbgrader={"grade": false, "grade_id": "second_rung", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
second_rung = "C"
### STUDENT GETS
# second_rung = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "A scoreboard of three models over bits per byte. The plain average is at 4.4, left of the line of order 0. Bare self-attention is on the line of order 1, at 3.5. Queries, keys and values are to its left, at 3.3."}}
from helpers.ladder import ByteModel, Ladder, OneHead

ladder = Ladder(check)
attend = ladder.own(attention)
torch.manual_seed(0)
ladder.climb(ByteModel(OneHead(attend)))    # your attention between three projections
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row is a model; farther left is better. A dot is your best run, the ticks are our three runs.
# Lesson 1 explains the dashed lines.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_second_rung", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("second_rung", second_rung)

# %% [markdown]
# **Learned queries, keys and values together are worth about a fifth of a bit.** In our three runs, 3.53 bits per byte
# fall to 3.32 or less.

# %% [markdown]
# ## What you can do now
#
# **What does a word gain when each of its three jobs has a vector of its own?**
#
# - **It can prefer a word that prefers it.** With one vector as query and key, no two words can. In one head of MiniLM,
#   *bank* and *muddy* do. With two matrices, noun and verb learned to, in all three of our runs.
# - **What it hands over need not be what it is found by.** *Bank* found *muddy* by *muddy*'s key, and was handed
#   *adjective*.
# - **The language model predicts better** with three projections, in all three runs. Which of them brings the gain was
#   not tested.
#
# **Three questions to think about**
#
# <details><summary>1. Write the four rules of the phrases with the fewest columns. Which columns are they?</summary>
#
# One column for each feature that is asked for. In the first column, $W_q$ has a 5 in the rows article, adjective and
# verb, and $W_k$ a 1 in the row noun. In the second, $W_q$ has a 5 in the row noun, and $W_k$ a 1 in the row verb.
#
# </details>
# <details><summary>2. Multiply W_q by 3 and divide W_k by 3. What changes? What does that say about the numbers in
# W_q?</summary>
#
# No output changes, because the scores depend only on the product $W_q W_k^\top$. More generally, replacing $W_q$ by
# $W_q A$ and $W_k$ by $W_k (A^{-1})^\top$ leaves the product unchanged, for every invertible (d, d) matrix A. A
# single number in W_q therefore has no meaning by itself.
#
# </details>
# <details><summary>3. Is self-attention with queries, keys and values still permutation equivariant, as in lesson
# 1?</summary>
#
# Yes: the projections treat every position in the same way, so permuted inputs give the same outputs, permuted. The
# three matrices do not make attention depend on the order of the words.
#
# </details>
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): the three roles of each
#   vector, introduced much as here.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2: "a query
#   and a set of key-value pairs"; section 3.2.3 for queries from one sequence and keys from another.
# - [Miller et al., *Key-value memory networks for directly reading documents*,
#   2016](https://arxiv.org/abs/1606.03126), section 3: a memory whose keys and values differ.
# - [Graves, Wayne and Danihelka, *Neural Turing machines*, 2014](https://arxiv.org/abs/1410.5401), section 3.3.1: a
#   lookup that is sharpened by a "key strength" β.
# - [Ramsauer et al., *Hopfield networks is all you need*, 2021](https://arxiv.org/abs/2008.02217), section 2: what
#   such a lookup finds as β grows.
#
# **Next:** [lesson 3, *Scaling*](../03_scaling/03_scaling.ipynb)
