# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 1 · Dot-product attention
#
# *A weighted average that picks its own weights*
#
# In *the boat could not reach the bank because it was too muddy*, other words say what kind of bank it is. A table of
# word vectors has one vector for *bank*, whatever the sentence. **How can a word receive more from the words that
# concern it than from the others?**
#
# In a transformer such as GPT-2, only self-attention passes information from one word to another. Its simplest form
# replaces a word's vector with a weighted average of all vectors in the sentence, and dot products choose the weights.
# You will write it in three lines, and see what it can choose and what it cannot.
#
# Many wrong versions raise no error. **Code that runs, trains and is wrong** is this course's second subject.
#
# | | |
# |---|---|
# | **You will build** | self-attention in its simplest form: two matrix products with a softmax between them; one exercise is optional |
# | **You need** | matrices, gradients, and enough PyTorch to read `x @ y` and `loss.backward()` |
# | **It takes** | about 80 minutes: six exercises, 21 points, and two predictions |
# | **It computes** | a few seconds per cell on a laptop; training your model takes about twenty seconds (you may stop it early) |
#
# In every lesson b is the number of sentences in a batch, t the number of positions (here, words) in a sentence,
# and e the width of a vector ([all letters](../../site/notation.md)). [The page for
# students](../../site/students.md) says what every check asks. Answer a prediction before you run the cell that shows
# the outcome.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.data.topics import CLAUSES, NOUNS, joined, vectors_of
from helpers.data.toy.films import film_ratings, film_table
from helpers.data.vectors import nearest, word_vectors
from helpers.device import device
from helpers.lesson import start

check = start("01_dot_product_attention")

# %% [markdown]
# ## With equal weights, all nouns receive nearly the same
#
# *The piano and the violin played with the guitar while we ate bread and soup with cheese*: one sentence, two topics.
# In an average with equal weights, all six nouns receive nearly the same from the other words. With weights from dot
# products, *violin* receives more that is similar to *music*, and *bread* more that is similar to *food*.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two scatter plots of what six nouns receive from the other words: similarity to music across, similarity to food up. Left, equal weights: all six points are close together near the diagonal, five of them a little on the other topic's side. Right, weights from dot products: piano, violin and guitar are below the diagonal, on the side of music; bread, soup and cheese above it, on the side of food."}}
def from_others(weights, x):
    """The average that each word receives from the others. weights: (t, t). x: (t, e)."""
    others = weights * (1 - torch.eye(len(x), device=x.device))
    return others / others.sum(dim=-1, keepdim=True) @ x


words = joined("music", "food")
inputs, ends = vectors_of(words), vectors_of(["music", "food"])    # (t, e), (2, e)
nouns = NOUNS["music"] + NOUNS["food"]
places = [words.index(noun) for noun in nouns]
groups = ["nouns of music"] * 3 + ["nouns of food"] * 3

scores = inputs @ inputs.T                                         # (t, t)
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.9), sharex=True, sharey=True,
                            layout="compressed")
axes[0].set(xlim=(0.3, 0.75), ylim=(0.3, 0.75))
for ax, title, weights in (
    (axes[0], "equal weights: nearly the same for all", torch.ones_like(scores)),
    (axes[1], "dot products: each on its topic's side", torch.softmax(scores, dim=-1)),
):
    ax.axline((0.5, 0.5), slope=1, color="#888888", linewidth=0.9)
    plots.plane(from_others(weights, inputs)[places] @ ends.T, nouns, groups, ax=ax,
                title=title, labels=("similarity to music", "similarity to food"))
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each point is the average that a noun receives from the *other* words. Its similarity, a dot
# product, is across with *music* and up with *food*; neither word is in the sentence. The vectors are those of
# [MiniLM](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), less the mean of its vocabulary, scaled to
# length 2.
#
# </div>
#
# Where do such weights come from? First: what does a dot product measure?

# %% [markdown]
# ## A dot product measures a match
#
# Suppose you recommend films. Describe each film by how much romance and how much action it has, and each viewer by
# how much they like these two *features*. A negative number means little of the feature, or dislike.
#
# How well do viewer $u$ and film $f$ go together? Multiply their numbers, feature by feature, and add the products.
# This *score* is the [dot product](../../site/glossary.md#dot-product) of the two vectors:
#
# $$\text{score}(u, f) \;=\; u \cdot f \;=\; \sum_a u_a\, f_a .$$
#
# Equal signs raise the score, opposite signs lower it. The dot product also equals $\lVert u \rVert \lVert f \rVert
# \cos\theta$, where θ is the angle between the vectors: for given lengths it is largest when they point the same way.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three heat maps. On the left, four viewers with their numbers for romance and action. At the top, five films with theirs. Below the films, the dot product of each viewer and each film, from 6 for Ada and Notting Hill to −6 for Ben and Notting Hill."}}
table = film_table()
expected = table.users @ table.films.T    # (users, films)

figure, axes = plt.subplots(2, 2, width_ratios=[2, 5], height_ratios=[2, 4],
                            figsize=(6, 3.6), layout="compressed")
bare = {"row_label": "", "column_label": "", "digits": 0}
axes[0, 0].axis("off")
plots.heat(table.films.T, table.features, table.film_names, ax=axes[0, 1], **bare)
plots.heat(table.users, table.user_names, table.features, ax=axes[1, 0], **bare)
plots.heat(expected, table.user_names, table.film_names, ax=axes[1, 1], **bare)
axes[0, 1].set_title("films")
axes[1, 0].set_title("viewers")
axes[1, 1].set_title("viewer · film: equal signs, high score")
axes[0, 1].tick_params(labelbottom=False)
axes[1, 0].tick_params(axis="x", rotation=30)
plt.setp(axes[1, 1].get_xticklabels(), rotation=30, ha="right")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each cell of the large table is the dot product of its viewer and its film. Ada and *Casablanca*
# both have the vector (2, −1), so their score is 2·2 + (−1)·(−1) = 5.
#
# </div>

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("dot-product")

# %% [markdown]
# Words have such vectors, too. Those below were learned from which words are near each other in Python's reference
# manual: words that keep the same company have similar vectors. Each vector has e = 40 components and length 2, so a
# score is at most 4: that of a word with itself.

# %%
vocabulary, vectors = word_vectors()

for word in ["integer", "list", "import", "loop"]:
    matches = nearest(word, vocabulary, vectors, count=4)
    print(f"{word:>8}:", ", ".join(f"{other} {match:.1f}" for other, match in matches))

# %% [markdown]
# No dictionary was used, yet the best match for *list* is *tuple*. But the same company is not the same meaning:
# with *integer*, *point* scores higher than *float*.

# %% [markdown]
# ## Every word is compared with every word of its sentence
#
# In the average that replaces a word, relevant words should weigh most. Until lesson 2, relevant means similar: a
# higher score, a larger weight.
#
# Let $x$, of shape (t, e), hold the word vectors of a sentence; row $i$ is $x_i$. For every pair of positions $i$ and
# $j$, let
#
# $$w'_{ij} \;=\; x_i \cdot x_j .$$
#
# These [**scores**](../../site/glossary.md#scores), also called *raw weights*, form a matrix of shape (t, t). For a
# batch of sentences, $x$ has shape (b, t, e), and the scores have shape (b, t, t).

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `raw_weights`** &nbsp; ★☆☆ · 5 minutes · 3 points
#
# Compute all scores $x_i \cdot x_j$ of each sentence, without loops if you can.
#
# <details><summary>Hint 1: the shapes decide</summary>
#
# A product of shapes (t, e) and (e, t) has shape (t, t). Both factors are x, and one of them has to be transposed.
# `@` keeps the batch axis in front. `x.T` would reverse all three axes, with a warning; `transpose` exchanges the two
# that you name.
#
# </details>
# <details><summary>Hint 2: three vectors, with numbers</summary>
#
# Let the batch be one sentence with the three vectors (1, 2), (3, 0) and (0, 1). The rows of its scores are (5, 3,
# 2), (3, 9, 0) and (2, 0, 1). If your result has two rows, (10, 2) and (2, 5), it compares components, not positions.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "raw_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def raw_weights(x):
    """All dot products between the vectors of each sentence.

    x: (b, t, e).
    Returns (b, t, t): in each sentence's matrix, entry [i, j] is the dot product x_i·x_j.
    """
    ### BEGIN SOLUTION
    return x @ x.transpose(1, 2)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_raw_weights", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(raw_weights)

# %% [markdown]
# ## Softmax turns scores into the weights of an average
#
# Scores may be negative, and a row may have any sum. The weights of an average are not negative and add up to 1.
# [**Softmax**](../../site/glossary.md#softmax) turns any numbers into such weights:
#
# $$w_{ij} \;=\; \frac{\exp w'_{ij}}{\sum_k \exp w'_{ik}} .$$
#
# The exponential makes every number positive, and the division makes each **row** add up to 1.
#
# In a program this formula can overflow: a vector of length 10 scores 100 with itself, but exp(89) is already infinite
# in 32 bits, and ∞/∞ is NaN. So first subtract the row's largest score from the whole row. Softmax stays the same, and
# no exponential is larger than 1.
#
# <details><summary>Why it stays the same</summary>
#
# Let $w'_{i*}$ be the largest score of row i. A factor cancels:
#
# $$\frac{\exp(w'_{ij} - w'_{i*})}{\sum_k \exp(w'_{ik} - w'_{i*})}
# \;=\; \frac{\exp(-w'_{i*})\, \exp w'_{ij}}{\exp(-w'_{i*}) \sum_k \exp w'_{ik}} .$$
#
# </details>

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `row_softmax`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Write softmax over the last axis with `exp` and `sum`. It must be right for scores between −10,000 and 10,000, even
# if one row of a tensor is near 10,000 and another near −10,000. Do not call PyTorch's `softmax`, `log_softmax` or
# `logsumexp`.
#
# <details><summary>Hint 1: the order of the steps</summary>
#
# Subtract the largest score of each row, take the exponential, divide by the sum of each row. `amax` and `sum` both
# take an axis, and both remove it unless you pass `keepdim=True`.
#
# </details>
# <details><summary>Hint 2: one row, with numbers</summary>
#
# Let the scores be the single row (0, ln 2, 0), of shape (1, 1, 3). After the largest score is subtracted, the row is
# (−ln 2, 0, −ln 2). Its exponentials are 1/2, 1 and 1/2, their sum is 2, and the weights are 1/4, 1/2 and 1/4. If all
# your weights are 1, you divided along an axis of length 1.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "row_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def row_softmax(scores):
    """Softmax over the last axis, written from exp and sum.

    scores: (b, t, s), rows of s finite numbers.
    Returns (b, t, s): none is negative, each row sums to 1.
    """
    ### BEGIN SOLUTION
    shifted = scores - scores.amax(dim=-1, keepdim=True)
    powers = shifted.exp()
    return powers / powers.sum(dim=-1, keepdim=True)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_row_softmax", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(row_softmax)

# %% [markdown]
# Apply both functions to a sentence.

# %% mystnb={"image": {"alt": "Two heat maps of a nine-word sentence against itself. Left, scores: symmetric, 4 on the diagonal and where one 'the' meets the other, smaller elsewhere. Right, after softmax: each row adds up to one. Its largest weight, from .43 to .72, is on the diagonal; the two rows of 'the' give equal weight to both."}}
sentence = "the loop terminates when the function raises an exception".split()
x = vectors[[vocabulary.index(word) for word in sentence]]    # (t, e)
x = x.unsqueeze(0).to(device())                               # (1, t, e): a batch of one

raw = raw_weights(x)
weights = row_softmax(raw)
titles = ("scores $w'$ are symmetric", "weights $w$ are not")
plots.heat_pair(raw[0], weights[0], rows=sentence, titles=titles)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The cell in row i and column j belongs to output i and input j. Scores are symmetric, since
# $x_i \cdot x_j = x_j \cdot x_i$. Weights are not, because each row was divided by its own sum.
#
# </div>
#
# **Every word gives its own vector the largest weight**, since all have one length. Of the rest, *loop* gives most to
# *terminates*. What if all vectors were longer?

# %% [markdown]
# <div class="card">
#
# **Prediction · `ten_times`** &nbsp; 1 minute · no points
#
# Multiply every vector of the sentence by 10, and compute the weights again. What happens to them? (*the* occurs
# twice; treat the two as one word.)
#
# - **A.** In every row nearly all the weight goes to one word.
# - **B.** Nothing: softmax divides by the sum, so a common factor cancels.
# - **C.** They become more even.
# </div>

# %% nbgrader={"grade": false, "grade_id": "ten_times", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
ten_times = "A"
### STUDENT GETS
# ten_times = ...    # "A", "B" or "C"
### END SOLUTION

# %%
for factor in (0.1, 1, 10):
    scaled = torch.softmax((factor * x) @ (factor * x).mT, dim=-1)[0]    # (t, t)
    row = [round(weight, 2) for weight in scaled[sentence.index("loop")].tolist()]
    print(f"{factor:>3} times: the row of loop is {row}")

# %% nbgrader={"grade": true, "grade_id": "check_ten_times", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("ten_times", ten_times)

# %% [markdown]
# ## Each output is an average of all inputs
#
# The diagram computes one of four outputs, $y_2$:

# %%
plots.diagrams.one_output_row()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom: the inputs; the dot product of each with $x_2$; the softmax of these four
# numbers, which gives the weights; and $y_2$, the weighted sum of the inputs. Weights and output are rounded.
#
# </div>
#
# In symbols, and then with loops:
#
# $$y_i \;=\; \sum_j w_{ij}\, x_j .$$

# %%
def self_attention_in_loops(x):
    """x: (b, t, e). Returns (b, t, e), slowly."""
    b, t, e = x.shape
    y = torch.zeros_like(x)
    for sentence in range(b):
        for i in range(t):
            raw = torch.stack([x[sentence, i] @ x[sentence, j] for j in range(t)])
            weights = torch.softmax(raw, dim=0)
            for j in range(t):
                y[sentence, i] += weights[j] * x[sentence, j]
    return y

# %% [markdown]
# Here is the whole computation for three words. Work out the missing numbers on paper.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, X

X_raw = X @ X.T
X_weights = torch.softmax(X_raw, dim=-1)
X_out = X_weights @ X
plots.number_grids(
    "three-words", "Self-attention of three words, by hand", THREE_WORDS,
    [{"*x*": X, "*w*′ = *x x*^{⊤}": X_raw}, {"*w*": X_weights, "*y* = *w x*": X_out}],
    empty=[("*w*′ = *x x*^{⊤}", 1, 2), ("*w*′ = *x x*^{⊤}", 2, 1),
           ("*y* = *w x*", 0, 1), ("*y* = *w x*", 1, 0)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row belongs to a word: its vector x, scores w′, weights w and output y. Two different
# numbers are missing, each from two cells. For the upper one of y, take the dot product of the first row of w and
# the second column of x. The next cell prints both.
#
# </div>

# %% tags=["hide-cell", "nbval-check-output"]
print(f"w′ of loop and ends: {X_raw[1, 2]:.0f}")
print(f"second component of y for 'the': {X_out[0, 1]:.2f}")
print("as the loops compute it:",
      torch.allclose(self_attention_in_loops(X[None])[0], X_out, atol=1e-5))

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `self_attention`** &nbsp; ★☆☆ · 5 minutes · 3 points
#
# Compute what `self_attention_in_loops` computes, but without loops: handle all sentences and all positions at once
# with tensor operations. You may use any function of PyTorch, such as `torch.softmax`. Do not call your own
# functions, so that a mistake in exercise 1 or 2 does not carry over.
#
# <details><summary>Hint 1: one loop at a time</summary>
#
# Exercise 1 computes `raw` for all positions at once. The last loop multiplies `weights` by `x` and sums over j. The
# index j runs along one axis of `weights` and one of `x`: which ones? The axes that remain are those of the output.
#
# </details>
# <details><summary>Hint 2: two positions, with numbers</summary>
#
# Let x have shape (1, 2, 1), with the two vectors 0 and 1. The rows of the scores are (0, 0) and (0, 1), the rows
# of the weights are (0.5, 0.5) and (0.27, 0.73), and the outputs are 0.5 and 0.73. If your first output is 0.27, the
# columns of your weights add up to 1, not the rows.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "self_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def self_attention(x):
    """Self-attention without parameters.

    x: (b, t, e).
    Returns (b, t, e): output i is the average of all inputs j, weighted with the softmax
    over j of x_i·x_j.
    """
    ### BEGIN SOLUTION
    raw = x @ x.transpose(1, 2)               # (b, t, t)
    weights = torch.softmax(raw, dim=-1)      # (b, t, t)
    return weights @ x                        # (b, t, e)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_self_attention", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(self_attention)

# %% tags=["nbval-check-output"]
x_small = torch.randn(2, 6, 4, device=device())
apart = (self_attention(x_small) - self_attention_in_loops(x_small)).abs().max().item()
print("fast and slow agree to within 0.00001:", apart < 1e-5)

# %% [markdown]
# The average is a second matrix product, of shapes (t, t) and (t, e). For the matrix $x$ of one sentence, all of
# [self-attention](../../site/glossary.md#self-attention) is
#
# $$y \;=\; \operatorname{softmax}\!\big(x x^\top\big)\, x .$$

# %% [markdown]
# ## Dot products choose what a word receives
#
# In the first figure they chose well. Do they in other sentences? Join two clauses about different topics, in all 66
# pairs, and let your functions compute the weights. Is what a noun receives more similar to its own topic?

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two scatter plots of what 396 nouns receive from the other words of their sentences: similarity to their own topic across, to the other topic up. Left, equal weights: a narrow cloud around the diagonal, most of it above. Right, your functions: a wide cloud, nearly all of it below the diagonal, on the side of the noun's own topic."}}
from itertools import combinations

received, right = {"equal weights": [], "dot products": []}, {}
chosen, kept = 0, []
for topics in combinations(CLAUSES, 2):
    words = joined(*topics)
    inputs = vectors_of(words).to(device())                # (t, e)
    ends = vectors_of(topics).to(device())                 # (2, e)
    weights = row_softmax(raw_weights(inputs[None]))[0]    # (t, t)
    both = {"equal weights": torch.ones_like(weights), "dot products": weights}
    for k, topic in enumerate(topics):
        places = [words.index(noun) for noun in NOUNS[topic]]
        for name, used in both.items():
            to_topics = from_others(used, inputs)[places] @ ends.T     # (3, 2)
            received[name].append(to_topics.roll(-k, dims=1).cpu())    # its own topic first
        for place in places:
            kept.append(weights[place, place].item())
            second = weights[place].argsort(descending=True)[1]        # the first is itself
            chosen += words[second] in NOUNS[topic]

figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharex=True, sharey=True,
                            layout="compressed")
for ax, (name, points) in zip(axes, received.items()):
    own, other = torch.cat(points).T
    right[name] = (own > other).sum().item()
    ax.plot(own, other, "o", markersize=3.4, markeredgewidth=0, color=plots.COLOURS[0])
    ax.axline((0.5, 0.5), slope=1, color="#888888", linewidth=0.9)
    ax.set(title=f"{name}: {right[name]} on their own side", aspect="equal",
           xlabel="similarity to own topic", ylabel="to the other topic")
plt.show()
print(f"{len(kept) // 6} sentences with six nouns each")
for name, count in right.items():
    print(f"{name}: {count} of {len(kept)} on the side of the noun's own topic")
print(f"largest weight, after its own, to a noun of its topic: {chosen} of {len(kept)}")
print(f"weight that a noun keeps for itself, on average: {sum(kept) / len(kept):.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** As in the first figure, for six nouns in each of 66 sentences. The noun's own topic is across
# now, the other one up, so the own side is below the diagonal. We wrote twelve clauses, each with three related nouns.
#
# </div>
#
# **In 384 of 396 cases the largest weight, after the noun's own, goes to a noun of its topic**, of all words in the
# sentence. So what nine nouns in ten receive is more similar to their own topic. With equal weights it is one in four:
# the noun itself is left out, so the other topic has one noun more. (The same vectors choose and judge.)
#
# The choice has a price: about two thirds of the weight stays on the word. And what it receives is as similar to the
# other topic as before. ([Measured further](../../site/further.md#lesson-1) has longer vectors, and phrases with one
# topic, where there is little to choose.)

# %% [markdown]
# ## *It* hardly looks at *bank*, which it stands for
#
# Those nouns needed words that were similar to them. What if a word needs another kind? Lessons 1 to 6 all draw the
# sentence *the boat could not reach the bank because it was too muddy*: which word looks at which? (A word *looks at*
# those that it gives weight.)

# %% mystnb={"image": {"alt": "Heat map of twelve words, the boat could not reach the bank because it was too muddy, against themselves. The diagonal is darkest, near 0.4 but for the two words the, which give each other as much weight as themselves. It and was give them some. All other cells are white or nearly so."}}
from helpers.data import sentence as shared

x_shared = shared.word_vectors().unsqueeze(0).to(device())    # (1, t, e)
weights = row_softmax(raw_weights(x_shared))[0]               # (t, t)
plots.sentence_map(weights, shared.WORDS, "Each word looks at itself first")
plt.show()
for word, other in (("it", "bank"), ("bank", "muddy"), ("bank", "because")):
    weight = weights[shared.WORDS.index(word), shared.WORDS.index(other)]
    print(f"{word} gives {other} {weight:.3f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row holds one word's weights, computed by your functions. The vectors are MiniLM's again,
# here of length 1.5.
#
# </div>
#
# **In this sentence a large weight marks a similar word, whether it helps or not.** *Bank* gives the most, after
# itself, to *boat*, which hints at the kind of bank. But *muddy*, which says what kind it is, gets as little as
# *because*. And *it* gives some weight to *the* and *was*, but hardly any to *bank*.

# %% [markdown]
# ## Does order matter?

# %% [markdown]
# <div class="card">
#
# **Prediction · `shuffled_words`** &nbsp; 1 minute · no points
#
# Shuffle the nine words of *the loop terminates when the function raises an exception*, and compute self-attention
# again. What happens to the output vector of *exception*?
#
# - **A.** It is another vector, since the word now has other neighbours.
# - **B.** It is the same vector, at the word's new position.
# - **C.** Every position keeps its old output, whichever word is there now.
# </div>

# %% nbgrader={"grade": false, "grade_id": "shuffled_words", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
shuffled_words = "B"
### STUDENT GETS
# shuffled_words = ...    # "A", "B" or "C"
### END SOLUTION

# %%
order = torch.tensor([4, 0, 6, 2, 8, 1, 3, 7, 5], device=device())
shuffled = [sentence[i] for i in order.tolist()]
y, y_shuffled = self_attention(x), self_attention(x[:, order])    # (1, t, e) each

before = y[0, sentence.index("exception")]
print("shuffled:", " ".join(shuffled))
for position in (shuffled.index("exception"), sentence.index("exception")):
    apart = (y_shuffled[0, position] - before).abs().max().item()
    after = f"new output at position {position} ('{shuffled[position]}')"
    print(f"old output of 'exception' vs {after}: largest difference {apart:.1g}")

# %% nbgrader={"grade": true, "grade_id": "check_shuffled_words", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("shuffled_words", shuffled_words)

# %% [markdown]
# **To self-attention, a sentence is a set, not a sequence.** (A word that occurs twice counts twice.) The formula
# does not mention positions, so permuting the inputs permutes the outputs in the same way:
#
# $$\operatorname{attention}(x[\pi]) \;=\; \operatorname{attention}(x)[\pi] \qquad\text{for every order } \pi .$$
#
# This is [**permutation equivariance**](../../site/glossary.md#permutation-equivariance). Each word gets the same
# output in *dog bites man* as in *man bites dog*. Now turn the equation into a measurement.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `equivariance_gap`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# You are given a function from (b, t, e) to (b, t, e), an input x and a permutation `order` of its **positions**.
# Compute the output in two ways: *permute, then attend* and *attend, then permute*. Return the largest absolute
# difference between the two outputs, as a Python number or a tensor with one entry. Gradients are not needed.
#
# <details><summary>Hint 1: which axis</summary>
#
# x has shape (b, t, e). `x[order]` picks along the first axis, the sentences. Which axis holds the positions?
#
# </details>
# <details><summary>Hint 2: three positions, with numbers</summary>
#
# Let the function be the running sum over positions, x the three numbers 1, 2, 4 (b = e = 1), and the order (1, 2,
# 0). *Permute, then attend*: the input is 2, 4, 1, and the output is 2, 6, 7. *Attend, then permute*: the output 1,
# 3, 7 becomes 3, 7, 1. The differences are −1, −1 and 6, and the gap is 6.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "equivariance_gap", "locked": false, "schema_version": 3, "solution": true, "task": false}
def equivariance_gap(attention, x, order):
    """How far a function is from treating its positions as a set.

    attention: a function from (b, t, e) to (b, t, e).
    x: (b, t, e). order: (t,), a permutation of the positions.
    Returns one number: the largest absolute difference between the two outputs.
    """
    ### BEGIN SOLUTION
    permuted_first = attention(x[:, order])
    permuted_after = attention(x)[:, order]
    return (permuted_first - permuted_after).abs().max()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_equivariance_gap", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(equivariance_gap)

# %%
def running_sum(x):
    return x.cumsum(1)

for function in (self_attention, running_sum):
    print(f"gap of {function.__name__}: {float(equivariance_gap(function, x, order)):.1g}")

# %% [markdown]
# **For self-attention the gap is only rounding error.** The running sum depends on the order.

# %% [markdown]
# ## An average cannot leave the hull of its inputs
#
# How would you notice that your code is wrong? Draw its outputs: in two dimensions you can see the region that no
# average reaches.

# %% mystnb={"image": {"alt": "Eight points in the plane with their convex hull drawn. An arrow leads from each to its output, which lies inside the hull. The two points farthest from the origin move least; most of the others move towards longer vectors that point roughly the same way."}}
points = torch.randn(1, 8, 2, generator=torch.Generator().manual_seed(5)).to(device())
plots.hull_picture(points[0], self_attention(points)[0])
plt.gca().set_title("Every output of self-attention is inside the hull")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Arrows lead from inputs to outputs. The shaded area is the **convex hull** of the inputs, the
# smallest convex shape that contains them all.
#
# </div>
#
# **Weights that are positive and add up to 1 cannot lead out of the hull.** In the player you can try.

# %% tags=["hide-input"]
show_player("average")

# %% [markdown]
# Here is a function, written in a hurry, that should compute the same outputs. It runs, and raises no error. But some
# of its outputs are **outside** the hull.

# %% tags=["hide-input"] mystnb={"image": {"alt": "The eight points and their convex hull again, with other outputs. Two outputs are clearly outside the hull, one of them far away, and a third is just outside its upper edge."}}
as_given = torch.softmax(points @ points.transpose(1, 2), dim=1) @ points
plots.hull_picture(points[0], as_given[0])
plt.gca().set_title("The hurried function: outputs outside the hull")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The inputs are those of the figure before.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `hurried_attention`** &nbsp; fix · ★★☆ · 7 minutes · 3 points
#
# Fix this function. `y` must equal the output of exercise 3. `weights`, of shape (b, t, t), must hold the weights
# that produced it: row i for output i. Gradients must flow back from both. Find the cause before you change a line:
# some changes bring the outputs back into the hull but give wrong numbers.
#
# <details><summary>Hint 1: a property to check</summary>
#
# Which properties must the weights of an average have? Print the sums of `weights[0]` along both of its axes for some
# random x.
#
# </details>
# <details><summary>Hint 2: three inputs, with numbers</summary>
#
# For the inputs (0, 0), (1, 1) and (2, 2) the rows of `weights[0]` add up to 0.35, 0.47 and 2.18, and each column
# adds up to 1. Which should add up to 1, rows or columns?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "hurried_attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hurried_attention(x):
    """Self-attention, and its weights.

    x: (b, t, e). Returns y (b, t, e) and weights (b, t, t).
    """
    ### BEGIN SOLUTION
    raw = x @ x.transpose(1, 2)
    weights = torch.softmax(raw, dim=-1)
    return weights @ x, weights
    ### STUDENT GETS
    # raw = x @ x.transpose(1, 2)
    # weights = torch.softmax(raw, dim=1)
    # return weights @ x, weights
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_hurried_attention", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(hurried_attention)

# %% [markdown]
# <details><summary>What was wrong, and why no error was raised</summary>
#
# `dim=1` is the first of the two t axes, so the softmax ran down the **columns**. The rows no longer added up to 1,
# and the outputs were no longer averages. In the figure, the two far outside the hull came from rows that added up to
# 2.5 and 1.7. Both t axes have the same length, so the shapes were right.
#
# Dividing each row by its sum afterwards would give averages, but with wrong weights. Transposing the weights would
# give the right weights, because the scores are symmetric.
#
# </details>

# %% [markdown]
# **No error and no shape gave this mistake away, and exercise 4's gap is 0 for it, too; the picture did.** Would the
# score of a trained model?

# %% [markdown]
# ## Your model so far
#
# From here to lesson 9, one small language model grows out of your functions. It reads 32 bytes of Python's reference
# manual, and each position predicts the next byte. `raw_weights` and `row_softmax` weight the average of the bytes'
# vectors, which are learned. **Two parts come in a closed box, which lessons 5 and 6 open: each position sees only the
# bytes up to its own, and knows where they are.**
#
# The score is in [bits per byte](../../site/glossary.md#bits-per-byte): the mean of $-\log_2 p$ over held-out bytes,
# where $p$ is the probability of the byte that came. Lower is better.

# %% mystnb={"image": {"alt": "A scoreboard of two models over a horizontal axis of bits per byte. The plain average is just left of the dashed line of order 0, near 4.5. Bare self-attention is on the line of order 1, near 3.5. The lines of gzip and xz are far to the left, near 2.5 and 2."}}
from helpers.data.recorded import recorded
from helpers.ladder import BareAttention, ByteModel, Ladder

ladder = Ladder(check)
softmax, scores = ladder.own(row_softmax), ladder.own(raw_weights)
torch.manual_seed(0)
ladder.climb(ByteModel(BareAttention(softmax, scores)))
ladder.show()
alone = recorded("ladder")["result"]["bits"]["last byte alone"]
print(f"without self-attention, our three runs: {min(alone):.2f} to {max(alone):.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The point is your model, the ticks are our three runs. *Plain average* weights all bytes equally.
# Dashed: tables that count bytes (*order 0*) or pairs of bytes (*order 1*), and what the held-out text adds to a file
# compressed by *gzip* or *xz*.
#
# </div>
#
# **Your model scores no better than the same model without self-attention**, or than a table of which byte follows
# which. Similarity is not yet relevance; lesson 2 lets the model learn what is relevant. So the mistake of exercise 5
# has little to spoil: with it, one model trained to 3.58 bits per byte, against 3.53 ([Measured
# further](../../site/further.md#lesson-1)). That looks like a weak model, not like a mistake.

# %% [markdown]
# ## Optional: where vectors come from
#
# Nothing else needs this section; the points of its exercise count like all others.
#
# Viewers rate films, and a rating says how large a dot product should be. So start with random vectors, and let
# gradient descent bring their dot products close to the ratings.
#
# Let $U$, of shape (users, 2), hold the viewers' vectors, and $F$, of shape (films, 2), the films'. Then $U F^\top$
# holds all predicted ratings. Only some ratings $R_{uf}$ are known (*seen*), and the loss is a mean over those:
#
# $$L \;=\; \frac{1}{|\text{seen}|} \sum_{(u,f)\,\in\,\text{seen}} \big(u \cdot f - R_{uf}\big)^2 .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `masked_squared_error`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the mean squared difference between the predicted ratings and the known ones, **over the seen entries only**.
# A seen rating may be 0, and an unseen entry may hold any finite number. A viewer or a film may have no ratings. At
# least one entry is seen.
#
# <details><summary>Hint 1: what to compute first</summary>
#
# One matrix product gives all predictions. Compute them all, then keep the seen entries. A tensor of booleans can be
# an index, or a factor in which False counts as 0. If you multiply by the mask, do so before you square: the square
# of a huge number overflows to ∞, and ∞ · 0 is NaN (*not a number*).
#
# </details>
# <details><summary>Hint 2: four errors, with numbers</summary>
#
# Let the errors be 1, 2, 3 and 4, and let only the first and the last be seen. The answer is $(1 + 16)/2 = 8.5$. If
# you get 7.5, you used all four errors. If you get 4.25, you used the right two but divided by four.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "masked_squared_error", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_squared_error(users, films, ratings, seen):
    """The mean squared error over the seen ratings.

    users: (users, features). films: (films, features).
    ratings: (users, films), R. seen: (users, films), booleans.
    Returns a tensor of shape (): the mean of (u·f − R)² over the entries where seen is True.
    """
    ### BEGIN SOLUTION
    errors = users @ films.T - ratings    # (users, films)
    return (errors[seen] ** 2).mean()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_masked_squared_error", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(masked_squared_error)

# %% [markdown]
# Now train with this loss. The ratings are made up: dot products of vectors with two features, plus noise, rounded to
# the nearest half. Can the learned vectors predict the ratings that are left out?

# %%
known = film_ratings()
ratings, seen = known.ratings.to(device()), known.seen.to(device())

generator = torch.Generator().manual_seed(0)
starts = [0.1 * torch.randn(count, 2, generator=generator) for count in ratings.shape]
users, films = (start.to(device()).requires_grad_() for start in starts)
optimiser = torch.optim.Adam([users, films], lr=0.02)
losses = []
for step in range(300):
    loss = masked_squared_error(users, films, ratings, seen)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())

print(f"mean squared error: {losses[0]:.2f} at the start, {losses[-1]:.2f} at the end")
complete = film_ratings(seen=1).ratings.to(device())    # made up, so all are known
unseen = masked_squared_error(users, films, complete, ~seen)
all_zero = masked_squared_error(0 * users, films, complete, ~seen)
print(f"on the unseen ratings: {unseen:.2f} (always predicting 0 would give {all_zero:.2f})")

# %% [markdown]
# **They predict ratings that were not used in training:** the error is 0.22 there, against 1.46 for always predicting
# 0. ([Measured further](../../site/further.md#lesson-1) looks for the two features in them.)
#
# This is **matrix factorisation**: give every object a vector, let dot products be the scores, and learn the vectors
# from known scores. The manual's word vectors come from factorising a matrix, too: how much more often two words occur
# near each other than chance would predict (*positive pointwise mutual information*).

# %% [markdown]
# ## What you can do now
#
# **How can a word receive more from the words that concern it?** By a weighted average whose weights come from dot
# products. Among vectors of one length, similar words weigh most after the word itself, whether or not it needs them.
#
# - **Where similar words helped, dot products chose well**: in our sentences with two topics, the largest
#   weight after a noun's own went to a noun of its topic in 384 of 396 cases.
# - **Where they do not help, it fails.** *It* hardly looked at *bank*, nor *bank* at *muddy*. In lesson 2 each word
#   gets a separate vector that says what it looks for.
# - **Order does not count, and there are no parameters.** [Lesson 6](../06_positions/06_positions.ipynb) adds
#   positions.
# - **A picture showed that the code was wrong** where no error did. Outside the hull means wrong; inside does not mean
#   right.
#
# **Two questions to think about**
#
# <details><summary>1. What does self-attention return if all t input vectors are the same? What if they are all
# orthogonal and very long?</summary>
#
# If they are the same, all scores are equal, and every weight is 1/t. The average of equal vectors is that vector,
# so nothing changes. If they are orthogonal and very long, each x_i·x_i is huge and every other product is 0. Softmax
# then puts nearly all weight on the diagonal, and again almost nothing changes.
#
# </details>
# <details><summary>2. Could softmax be left out, and the scores used as weights?</summary>
#
# Then y = x xᵀ x. The outputs are no longer averages: weights may be negative, and their sum may be any number.
# Without the softmax the product can also be computed as x (xᵀ x), which costs t·e² instead of t²·e. Linear attention
# uses this order of computation (A. Katharopoulos et al., [Transformers are RNNs: fast autoregressive transformers
# with linear attention](https://arxiv.org/abs/2006.16236), *ICML* 2020).
#
# </details>
#
# **Further reading**
#
# - **[Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers)**: lessons 1 to 4 and
#   7 follow its order. The film recommender, the plain dot product before any learned matrices, and self-attention as
#   an operation on sets come from there.
# - [Koren, Bell and Volinsky, *Matrix factorization techniques for recommender systems*,
#   2009](https://doi.org/10.1109/MC.2009.263): figure 3 shows vectors learned from real ratings.
# - [Levy and Goldberg, *Neural word embedding as implicit matrix factorization*,
#   2014](https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization): the skip-gram
#   model of word2vec, with negative sampling, implicitly factorises a similar table.
# - [Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762), section 3.2: the operation
#   of this lesson, with the parts that the next three lessons add.
#
# **Next:** [lesson 2, *Queries, keys, values*](../02_queries_keys_values/02_queries_keys_values.ipynb)
