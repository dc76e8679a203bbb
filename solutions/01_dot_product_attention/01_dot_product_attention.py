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
# # 1 · Dot-product attention
#
# *A weighted average that picks its own weights*
#
# Everything that passes from one word to another in a transformer passes through one operation, and that operation is
# small: compare each vector with all vectors, itself included, and replace it by a weighted average of them. This
# lesson builds it from a dot product.
#
# | | |
# |---|---|
# | **You will build** | self-attention in its barest form: two matrix products with a softmax between them |
# | **You need** | matrices, gradients, and enough PyTorch to read `x @ y` and `loss.backward()` |
# | **It takes** | about 85 minutes: six exercises, 21 points, and two predictions |
# | **It computes** | in seconds, on any laptop; the last cell takes up to twenty seconds, and you may stop it |
#
# The letters for sizes are the same in every lesson: b is the batch, t the number of positions, e the width of a
# vector. They are all in [one table](../../site/notation.md).
#
# Under each exercise is a check. Run it as often as you like: it says what holds, what does not, and what to look at.
# A prediction carries no points: commit to an answer, then run the cell that settles it.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.data.toy.films import film_ratings, film_table
from helpers.data.vectors import nearest, word_vectors
from helpers.device import device
from helpers.lesson import start

check = start("01_dot_product_attention")

# %% [markdown]
# ## A dot product is a match
#
# Suppose you recommend films (the example is [Peter Bloem's](https://peterbloem.nl/blog/transformers); see the end).
# Describe each film by two numbers, how romantic it is and how much action it has, and each viewer by two numbers as
# well: how much they like each. Numbers may be negative: 0 is the middle, and below it are films with less romance than
# most and viewers who dislike it.
#
# How well do viewer $u$ and film $f$ go together? Multiply feature by feature and add up. The result is their
# [dot product](../../site/glossary.md#dot-product):
#
# $$\text{match}(u, f) \;=\; u \cdot f \;=\; \sum_a u_a\, f_a .$$
#
# Each feature votes. Where the **signs** agree, the product is positive and speaks for the film; where they
# differ, it speaks against. The **sizes** say how loudly: a feature to which a viewer is indifferent (a number near 0)
# hardly counts, whatever the film is like.

# %% mystnb={"image": {"alt": "Three tables as heat maps. Left, four viewers described by romance and action. Above, five films described by the same two. Where they meet, the dot products: large and positive where tastes and films agree, negative where they differ."}}
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
axes[1, 1].set_title("viewer · film")
axes[0, 1].tick_params(labelbottom=False)
axes[1, 0].tick_params(axis="x", rotation=30)
plt.setp(axes[1, 1].get_xticklabels(), rotation=30, ha="right")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A cell of the large table is the dot product of the viewer in its row and the film in its column.
# Blue is positive, orange negative; darker is farther from 0, and each table has its own scale.
#
# </div>
#
# Take Ada and *Casablanca*. Ada is described by (2, −1): fond of romance, put off by action. The film is described by
# (2, −1) too, so the match is 2·2 + (−1)·(−1) = 5. Ben, at (−1, 2), gets −1·2 + 2·(−1) = −4: recommend it to Ada, not
# to Ben. Check another entry.

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("dot-product")

# %% [markdown]
# ## Let the numbers be learned
#
# There is a catch: millions of films would have to be described by hand. But many viewers have rated *some* films, and
# that is enough. Make the descriptions themselves the parameters, start them at random, and let gradient descent bring
# the dot products close to the ratings we know.
#
# Write $U$ for the viewers' vectors, of shape (users, 2), and $F$ for the films', of shape (films, 2). All predicted
# ratings at once are $U F^\top$, of shape (users, films). The ratings that exist, $r_{uf}$, fill only some cells of
# such a table. The other cells are not zeros, they are unknown, so the error counts only those seen:
#
# $$L \;=\; \frac{1}{|\text{seen}|} \sum_{(u,f)\,\in\,\text{seen}} \big(u \cdot f - r_{uf}\big)^2 .$$
#
# **What every check of this lesson asks, unless its exercise says otherwise:** gradients flow back to every
# floating-point input, no input is changed, new tensors are created on the device of the inputs, any size may be 1.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `masked_squared_error`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the mean squared difference between the predicted ratings and the known ones, **over the seen entries only**.
# A rating of 0 may be seen or not, and an unseen entry may hold any finite number. A viewer or a film may have no
# ratings. At least one entry is seen.
#
# <details><summary>Hint 1: what to compute first</summary>
#
# The whole table of predictions is one matrix product. Compute all of it, then keep what was seen: a tensor of booleans
# can be an index, or a factor in which False counts as 0. (Multiply before you square: the square of a huge number
# overflows, and ∞ · 0 is not a number.)
#
# </details>
# <details><summary>Hint 2: four errors, with numbers</summary>
#
# Let the errors be 1, 2, 3 and 4, and let only the first and the last be seen. The answer is $(1 + 16)/2 = 8.5$. With
# 7.5 you used all four; with 4.25 you used the right two and divided by four.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "masked_squared_error", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_squared_error(users, films, ratings, seen):
    """The loss of the factorisation.

    users: (users, features). films: (films, features).
    ratings: (users, films). seen: (users, films), booleans.
    Returns a tensor of shape (): the mean of (u·f − r)² over the entries where seen is True.
    """
    ### BEGIN SOLUTION
    errors = users @ films.T - ratings    # (users, films)
    return (errors[seen] ** 2).mean()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_masked_squared_error", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(masked_squared_error)

# %% [markdown]
# Now train with it. The films below are real; their 200 viewers, and what each film is like, are made up. Apart from
# noise, a rating depends on two things: romance against action (one scale now, not two) and light against serious.
# Each viewer has rated about three films in ten. So there *are* two features to find, because we put them there:
# does training on the ratings alone recover them?

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

# %% mystnb={"image": {"alt": "Scatter plot of the films by their two learned factors. Romances lie on one side, action films on the other; light films and serious ones separate across that direction."}}
predictions = (users @ films.T).detach().cpu()
_, spread, directions = torch.linalg.svd(predictions, full_matrices=False)
plots.plane(directions[:2].T * spread[:2] / len(users) ** 0.5, known.names,
            labels=("first learned factor", "second learned factor"))
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each point is a film. After training, films and viewers were given new axes, which alters no
# prediction. The horizontal axis is the one that contributes most to the predictions (found by a [singular value
# decomposition](../../site/glossary.md#singular-value-decomposition), SVD): romance at one end, action at the other.
# Vertical: light films against serious ones.
#
# </div>
#
# So the ratings alone are enough: both features are found, though no rating names them. (That the new axes fall on the
# features is a kindness of these data, in which the two are unrelated and one counts for more.)
#
# This is **matrix factorisation** (figure 3 of [Koren, Bell and Volinsky, 2009](https://doi.org/10.1109/MC.2009.263)
# shows the factors in real ratings). What matters here is the pattern: *give everything a vector, let dot products be
# the matches, and learn the vectors from what the matches should have been.*

# %% [markdown]
# ## The same move for words
#
# Give every word a vector, then, and let dot products say how much two words have to do with each other. Instead of
# ratings, take a table that says, for any two words, how much more often they stand near each other in Python's
# reference manual than chance alone would have it. The next cell factorises it in about a second. Words with similar
# rows in the table, that is, with similar neighbours, get similar vectors.
#
# From here on we compare these vectors with each other. Each has e = 40 components and is scaled to length 2, so a
# word's product with itself is 4, and that is the largest there is.

# %%
vocabulary, vectors = word_vectors()

for word in ["integer", "list", "import", "loop"]:
    matches = nearest(word, vocabulary, vectors, count=4)
    print(f"{word:>8}:", ", ".join(f"{other} {match:.1f}" for other, match in matches))

# %% [markdown]
# No dictionary was involved: the manual uses *integer* and *float* in similar places, and the dot products show it.
# Similar company is not similar meaning, though: *point* and *presentation* match *integer* better still, and *really*
# is among the best matches of *loop*.
#
# ## From pairs to a sentence
#
# A word has the same vector in every sentence, whatever stands around it. To let the sentence in, replace each vector
# by a weighted average of all vectors of the sentence, in which better matches weigh more. First, the matches.
#
# Take a sentence of t words. Stacked, their vectors are a matrix $x$ of shape (t, e): row $i$ is $x_i$. For every
# pair of positions $i$ and $j$, let
#
# $$w'_{ij} \;=\; x_i \cdot x_j .$$
#
# These are the **raw weights**, also called [**scores**](../../site/glossary.md#scores), a matrix of shape (t, t). The
# prime says that they are not finished: they may be negative, and they do not add up to anything in particular. In
# practice sentences come in batches, $x$ has shape (b, t, e), and each sentence of the batch gets a matrix of its own:
# (b, t, t).
#
# Think of it as a loop, but don't write it that way:
#
# ```python
# for row in range(b):              # each sentence by itself
#     for i in range(t):            # each position ...
#         for j in range(t):        # ... against each position
#             raw[row, i, j] = (x[row, i] * x[row, j]).sum()
# ```
#
# Loops over i and j around a sum of products: that is a matrix product, one for each sentence.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `raw_weights`** &nbsp; ★☆☆ · 5 minutes · 3 points
#
# Compute all the dot products $x_i \cdot x_j$ of each sentence with one matrix product.
#
# <details><summary>Hint 1: the shapes decide</summary>
#
# (t, e) times (e, t) is (t, t). You have (t, e) twice, with a batch in front, which `@` carries along. `x.T` would
# reverse all three axes (PyTorch warns that this use of it will go away); `transpose` exchanges the two that you name.
#
# </details>
# <details><summary>Hint 2: three vectors, with numbers</summary>
#
# Let the batch be one sentence of the three vectors (1, 2), (3, 0) and (0, 1). Its raw weights are the rows (5, 3, 2),
# (3, 9, 0) and (2, 0, 1). If your result has two rows, (10, 2) and (2, 5), it compares components, not positions.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "raw_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
def raw_weights(x):
    """All dot products between the vectors of each sentence.

    x: (b, t, e).
    Returns (b, t, t): entry [row, i, j] is the dot product of x[row, i] and x[row, j].
    """
    ### BEGIN SOLUTION
    return x @ x.transpose(1, 2)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_raw_weights", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(raw_weights)

# %% [markdown]
# ## Weights that add up to one
#
# A weighted average needs weights that are not negative and add up to 1. [**Softmax**](../../site/glossary.md#softmax)
# makes such weights out of any numbers:
#
# $$w_{ij} \;=\; \frac{\exp w'_{ij}}{\sum_{j'} \exp w'_{ij'}} .$$
#
# The exponential makes everything positive, the division makes each **row** sum to 1. Rows, not columns: row $i$ holds
# the weights that make output $i$.
#
# One more thing, and it is the difference between a formula and a program. $e^{89}$ is already too large for a 32-bit
# float; it becomes infinite, and ∞/∞ is not a number. Such scores occur: a vector of length 10 scores 100 with itself.
# But softmax does not change when the same $m$ is subtracted from every score of a row, because $e^{-m}$ cancels:
#
# $$\frac{e^{w'_{ij} - m}}{\sum_{j'} e^{w'_{ij'} - m}}
# \;=\; \frac{e^{-m}\, e^{w'_{ij}}}{e^{-m} \sum_{j'} e^{w'_{ij'}}} .$$
#
# So subtract the largest score of the row. Then the largest exponent is 0, and nothing can overflow.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `row_softmax`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Write softmax over the last axis, from `exp` and `sum`. It must be right for scores as large as ±10,000, even where
# one row of a tensor is near 10,000 and another near −10,000. Do not call PyTorch's `softmax`, `log_softmax` or
# `logsumexp`.
#
# <details><summary>Hint 1: the order of things</summary>
#
# Subtract the largest score of each row, take the exponential, divide by the sum of each row. `amax` and `sum` both
# take an axis, and both remove it unless you pass `keepdim=True`.
#
# </details>
# <details><summary>Hint 2: one row, with numbers</summary>
#
# Let the scores be the single row (0, ln 2, 0), of shape (1, 1, 3). With the largest score subtracted, the row is
# (−ln 2, 0, −ln 2), its exponentials are 1/2, 1 and 1/2, their sum is 2, and the weights are 1/4, 1/2 and 1/4. If all
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
# Both of your functions at work on a sentence. The vectors are the ones learned above.

# %% mystnb={"image": {"alt": "Two heat maps of a nine-word sentence against itself. Left, raw weights: symmetric, 4 on the diagonal and where one 'the' meets the other, smaller elsewhere. Right, after softmax: each row sums to one, and its largest weight, mostly about a half, is on the diagonal; the two rows of 'the' give equal weight to both."}}
sentence = "the loop terminates when the function raises an exception".split()
x = vectors[[vocabulary.index(word) for word in sentence]]    # (t, e)
x = x.unsqueeze(0).to(device())                               # (1, t, e): a batch of one

raw = raw_weights(x)
weights = row_softmax(raw)
titles = ("raw weights $w'$", "after softmax: $w$")
plots.heat_pair(raw[0], weights[0], rows=sentence, titles=titles)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i belongs to output i. On the left, the matrix is its own mirror image:
# $x_i \cdot x_j = x_j \cdot x_i$. On the right, a cell is the share of input j in output i. Every row adds up to 1,
# and the symmetry is gone (*raises* and *an*: .26 and .25): each row was divided by its own sum.
#
# </div>
#
# The diagonal of the scores is 4 everywhere, and every word gives its own vector more weight than any other. In the row
# of *loop* most of the rest goes to *terminates*, in the row of *raises* to *an* and *exception*. The word *the* occurs
# twice, with the same vector: its two rows are the same.

# %% [markdown]
# <div class="card">
#
# **Prediction · `ten_times`** &nbsp; 1 minute · no points
#
# Multiply every vector of the sentence by 10, and compute the weights again. What happens to them?
#
# - **A.** In every row one word takes nearly all the weight, or shares it with another that has the same vector.
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
# ## Self-attention
#
# What remains is the average itself. This is how one output is made, here $y_2$, the third of four:

# %%
plots.diagrams.one_output_row()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom: the inputs; the dot product of each with $x_2$; the softmax of these four
# numbers; and the inputs once more, each times its weight, added up to $y_2$.
#
# </div>
#
# In symbols:
#
# $$y_i \;=\; \sum_j w_{ij}\, x_j .$$
#
# Written with loops, it is slow and easy to read:

# %%
def self_attention_in_loops(x):
    """x: (b, t, e). Returns (b, t, e), slowly."""
    b, t, e = x.shape
    y = torch.zeros_like(x)
    for row in range(b):
        for i in range(t):
            raw = torch.stack([x[row, i] @ x[row, j] for j in range(t)])
            weights = torch.softmax(raw, dim=0)
            for j in range(t):
                y[row, i] += weights[j] * x[row, j]
    return y

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `self_attention`** &nbsp; ★☆☆ · 5 minutes · 3 points
#
# Compute the same as `self_attention_in_loops`, but without a loop: all sentences and all positions at once. Use
# `torch.softmax` and none of your own functions, so that no error of exercise 2 or 3 carries over.
#
# <details><summary>Hint 1: one loop at a time</summary>
#
# `raw` of all positions is exercise 2, of shape (b, t, t). The last loop sums over j: which two tensors have that axis,
# and what is left? Write the shape next to each line.
#
# </details>
# <details><summary>Hint 2: two positions, with numbers</summary>
#
# Let x have shape (1, 2, 1), with the two vectors 0 and 1. The raw weights are the rows (0, 0) and (0, 1), the weights
# (0.5, 0.5) and (0.27, 0.73), and the outputs 0.5 and 0.73. If your first output is 0.27, the columns of your weights
# sum to 1, not the rows.
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
# Each component of $y_i$ is row $i$ of $w$ times a column of $x$: a second matrix product, (t, t) times (t, e). Let $X$
# be one sentence. Then all of [self-attention](../../site/glossary.md#self-attention) is
#
# $$Y \;=\; \operatorname{softmax}\!\big(X X^\top\big)\, X .$$
#
# Does the sentence get into the vectors? Take a word that says little by itself, *a*, in two sentences. Print the words
# whose vectors match its input best, and those that match its two outputs:

# %%
def best(vector):
    matches = vectors.to(device()) @ vector    # (n,)
    return ", ".join(vocabulary[i] for i in matches.topk(5).indices.tolist())

for words in ("a class method".split(), "the length of a list".split()):
    place = words.index("a")
    inputs = vectors[[vocabulary.index(word) for word in words]].to(device())    # (t, e)
    outputs = self_attention(inputs.unsqueeze(0))[0]                             # (t, e)
    print(f"{' '.join(words)}: in  {best(inputs[place])}")
    print(f"{' '.join(words)}: out {best(outputs[place])}")

# %% [markdown]
# The input is the same in both. Each output has taken something from its sentence, *class* or *list*, though not much:
# the word itself keeps most of the weight. Lesson 2 changes that.
#
# What does attention do to vectors? In two dimensions we can watch.

# %% mystnb={"image": {"alt": "Eight points in the plane with their convex hull drawn. An arrow leads from each to its output, which lies inside the hull; the two points farthest out move least, the others move towards longer vectors that point their way."}}
points = torch.randn(1, 8, 2, generator=torch.Generator().manual_seed(5)).to(device())
plots.hull_picture(points[0], self_attention(points)[0])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each arrow leads from an input to its output. The shaded shape is the convex hull of the inputs,
# the smallest convex shape that holds them all. No output leaves it: an average with positive weights cannot. The two
# longest vectors move least, since a vector's score with itself is its squared length. Shorter ones are drawn towards
# longer ones that point their way.
#
# </div>

# %% tags=["hide-input"]
show_player("average")

# %% [markdown]
# ## Three words by hand
#
# Here is the whole computation in small numbers: three words, each a vector of four whole numbers. Two numbers are
# missing. Fill them in on paper. The three vectors come back in lessons 2 to 5 and 7.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, X

X_raw = X @ X.T
X_weights = torch.softmax(X_raw, dim=-1)
X_out = X_weights @ X
plots.number_grids(
    "three-words", "Self-attention of three words, by hand", THREE_WORDS,
    [{"*x*": X, "*w*′ = *x x*^{⊤}": X_raw}, {"*w*": X_weights, "*y* = *w x*": X_out}],
    empty=[("*w*′ = *x x*^{⊤}", 2, 1), ("*y* = *w x*", 0, 1)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row belongs to a word: its vector x, its raw weights w′, its weights w (their softmax), its
# output y. The first missing number is the dot product of *ends* and *loop*. The second is the row of *the* in w times
# the second column of x.
#
# </div>
#
# The next cell has both numbers, and compares the table with your `self_attention`.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"w′ of ends and loop: {X_raw[2, 1]:.0f}")
print(f"second component of y for the: {X_out[0, 1]:.2f}")
print("as you compute it:", torch.allclose(self_attention(X[None])[0], X_out, atol=1e-5))

# %% [markdown]
# ## The same thing, written in a hurry
#
# The next function is meant to do the work of exercise 4 and to return the weights too, so that they can be drawn. It
# raises no error, its outputs have the right shapes, and gradients flow through it, so a model that contains it can be
# trained. But draw its outputs in the plane, as the cell under the check does, and some of them lie **outside** the
# convex hull.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `hurried_attention`** &nbsp; mend · ★★☆ · 7 minutes · 3 points
#
# Fix this function. `y` must be what exercise 4 computes, and `weights` (b, t, t) the weights with which `y` was
# computed, row i for output i. Gradients must flow back from both. Find the cause before you change a line: some
# fixes return the outputs to the hull but still give the wrong numbers.
#
# <details><summary>Hint 1: a property to check</summary>
#
# What do the weights of an average have to be? Print the sums of `weights[0]` along both of its axes for some random x.
#
# </details>
# <details><summary>Hint 2: three inputs, with numbers</summary>
#
# For the inputs (0, 0), (1, 1) and (2, 2) the rows of `weights[0]` sum to 0.35, 0.47 and 2.18, and each column sums to
# 1. Which of the two should sum to 1?
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
# Run the next cell before and after you mend the function. Which outputs leave the hull?

# %% mystnb={"image": {"alt": "The eight points and their convex hull once more, with the outputs of hurried_attention. With the function mended, all of them lie inside."}}
plots.hull_picture(points[0], hurried_attention(points)[0][0])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** As after exercise 4, with the same points. The outputs are those of your `hurried_attention` as it
# is now.
#
# </div>

# %% [markdown]
# <details><summary>What was wrong, and why nothing complained</summary>
#
# `dim=1` is the first of the two t axes: the softmax ran down the **columns**. Then every *input* hands out exactly one
# unit of weight. For the inputs (0, 0), (1, 1) and (2, 2) the outputs get 0.35, 0.47 and 2.18 units: they are no longer
# averages, and can leave the hull. In the picture, the outputs of the two longest inputs get 2.5 and 1.7 units and lie
# clearly outside.
#
# In (b, t, t) both axes have the same length, so no shape complains. Dividing each row by its sum afterwards puts the
# outputs back into the hull, with wrong weights. `dim=-1` says what is meant.
#
# </details>

# %% [markdown]
# <div class="card">
#
# **Prediction · `shuffled_words`** &nbsp; 1 minute · no points
#
# Shuffle the nine words of the sentence and compute self-attention again. What becomes of the output vector that
# belongs to the word *exception*?
#
# - **A.** It is another vector, since the word now has other neighbours.
# - **B.** It is the same vector, at the place where the word is now.
# - **C.** The outputs stay where they were, whichever word is there now.
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
for place in (shuffled.index("exception"), sentence.index("exception")):
    apart = (y_shuffled[0, place] - before).abs().max().item()
    shown = f"at place {place} ({shuffled[place]}) after"
    print(f"output of exception before, and {shown}: {apart:.1g} apart")

# %% nbgrader={"grade": true, "grade_id": "check_shuffled_words", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("shuffled_words", shuffled_words)

# %% [markdown]
# ## A set, not a sequence
#
# Nothing in $\operatorname{softmax}(X X^\top) X$ mentions a position. Output $i$ depends on $x_i$ and on *which*
# vectors are there, and how often, not on where. So permuting the inputs gives the same outputs, in the permuted order:
#
# $$\operatorname{attention}(x[\pi]) \;=\; \operatorname{attention}(x)[\pi] \qquad\text{for every order } \pi .$$
#
# That property is called [**permutation equivariance**](../../site/glossary.md#permutation-equivariance). To
# self-attention, *dog bites man* and *man bites dog* are the same three words. Any function can be tested for this
# property. One that fails depends on the order.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `equivariance_gap`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Given a function on (b, t, e) and one order of the positions, how far is the function from being equivariant? Return
# the largest absolute difference, over all entries, between *permute, then attend* and *attend, then permute*. The
# order is an order of **positions**. Gradients are not needed here: a Python number is as good as a tensor of one
# entry.
#
# <details><summary>Hint 1: which axis</summary>
#
# x is (b, t, e). `x[order]` picks along the first axis, sentences. Which axis holds the positions?
#
# </details>
# <details><summary>Hint 2: three positions, with numbers</summary>
#
# Let the function be the running sum over positions, x the three numbers 1, 2, 4 (b = e = 1), and the order (1, 2, 0).
# *Permute, then attend*: 2, 4, 1 becomes 2, 6, 7. *Attend, then permute*: 1, 3, 7 becomes 3, 7, 1. The differences are
# −1, −1 and 6, and the gap is 6.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "equivariance_gap", "locked": false, "schema_version": 3, "solution": true, "task": false}
def equivariance_gap(attention, x, order):
    """How far a function is from treating its positions as a set.

    attention: a function from (b, t, e) to (b, t, e).
    x: (b, t, e). order: (t,), a permutation of the positions.
    Returns one number: the largest |attention(x permuted) − attention(x), permuted|.
    """
    ### BEGIN SOLUTION
    permuted_first = attention(x[:, order])
    permuted_after = attention(x)[:, order]
    return (permuted_first - permuted_after).abs().max()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_equivariance_gap", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(equivariance_gap)

# %% mystnb={"image": {"alt": "Two heat maps, outputs of self-attention for a sentence and for the same sentence in another order. A line joins each row on the left to the row of the same word on the right; joined rows have the same colours."}}
plots.heat_pair(y[0, :, :8], y_shuffled[0, :, :8], rows=(sentence, shuffled),
                titles=("attention(x)", "attention(x permuted)"), same_scale=True,
                joined=order.tolist(), annotate=False, row_label="",
                column_label="component (the first eight)")
plt.show()

def running_sum(x):
    return x.cumsum(1)

for function in (self_attention, running_sum):
    print(f"gap of {function.__name__}: {float(equivariance_gap(function, x, order)):.1g}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row is one output, its first 8 components of 40; blue is positive, orange (with a minus)
# negative, on one scale for both sides. A line joins a word on the left to the same word on the right: joined rows have
# the same colours.
#
# </div>
#
# The gap of self-attention is not exactly zero because sums in another order round differently. The gap of the running
# sum is not rounding: that function does depend on order.

# %% [markdown]
# ## What is odd about it
#
# Four things about self-attention deserve a second look.
#
# - **It has no parameters.** There is nothing in it to train. What it does is decided by the vectors that come in, and
#   whatever makes those vectors has to be trained instead.
# - **It sees a set.** If order matters, and in language it does, order has to be put into the vectors themselves.
#   [Lesson 6](../06_positions/06_positions.ipynb) does that.
# - **It is the only place where positions meet.** Every other layer of a transformer treats each position alone.
# - **Among vectors of equal length, it favours itself.** Then no entry of row $i$ is larger than $x_i \cdot x_i$
#   (lesson 2 says what holds in general). A word may need something else, and as yet it has no way to ask.
#
# The last point leads on. One vector is used three times here: it is compared with the others, the others are compared
# with it, and it is summed. Lesson 2 gives each use a vector of its own.

# %% [markdown]
# ## Your model so far
#
# From here to lesson 9 one small language model grows. It reads 32 bytes (64 in lesson 9) of Python's reference manual
# and predicts the byte that comes next. Each lesson but the eighth plugs in the part that you have just written. The
# text and the width never change, and up to lesson 4 neither does the training, so a change in the score comes from the
# new part or from chance; three runs of ours give an idea of how much is chance.
#
# Today's model has as little besides attention as it can. Each possible byte has a vector of e = 64 numbers, your
# `self_attention` averages the vectors of the 32 bytes, and a linear map with a softmax makes the last output into the
# probabilities of the next byte.
#
# The score is in [bits per byte](../../site/glossary.md#bits-per-byte) on text that was kept out of the training: a
# model that knows nothing needs 8, and fewer is better. (Lesson 9 explains the score and the training.) The cell takes
# up to twenty seconds on one core. The stop button ends it early, and the model trained so far counts.

# %% mystnb={"image": {"alt": "A scoreboard of two models over a horizontal axis of bits per byte. The plain average lies at the dashed line of order 0, near 4.5. Bare self-attention lies near 3.6, a little right of the line of order 1. The lines of gzip and xz are far to the left, near 2.5 and 2."}}
from helpers.ladder import ByteModel, Ladder

ladder = Ladder(check)
attend = ladder.own(self_attention)
torch.manual_seed(0)
model = ByteModel(attend)
ladder.climb(model)
ladder.show()
ladder.last_byte(model)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each model, the first at the bottom; farther left is better. The point is your model,
# the ticks are three runs of ours. *Plain average* is the same model with 32 equal weights. Dashed lines:
# *order 0* knows only how frequent each byte is, *order 1* also the byte before (both: entropies of the training
# text); *gzip* and *xz* compress files.
#
# </div>
#
# Above the picture is a prompt from the held-out text and, after ▸, what the model made of it: 200 bytes, drawn one by
# one from its predictions. It is babble, and the line *weight on the last byte* says why. On average the last position
# gives 0.43 of its weight to itself. Each earlier copy of the same byte has the same vector and gets as much; together
# they have 0.91. So the model knows little more than which byte the last one is, and it does not quite reach order 1.
#
# Your scores are kept with your checks, and the start page shows them. With `Ladder(check, text="enwik8")` the model
# grows on Wikipedia instead, if that text is there or can be downloaded; those scores are kept apart.

# %% [markdown]
# ## What you can do now
#
# You can say why a dot product is a match; learn vectors from matches; make weights from scores with a numerically
# stable softmax; write self-attention as two matrix products; and measure whether a function sees order.
#
# **Three questions to think about**
#
# <details><summary>1. What does self-attention return if all t input vectors are the same? If they are all orthogonal
# and very long?</summary>
#
# If they are the same, all raw weights are equal, every weight is 1/t, and the average of equal vectors is that vector:
# nothing changes. If they are orthogonal and long, each x_i·x_i is huge and all other products are 0: softmax puts
# nearly all weight on the diagonal, and again nearly nothing changes. Attention does its work between these two
# extremes.
#
# </details>
# <details><summary>2. Rotate all input vectors by the same rotation. What happens to the weights, and to the
# outputs?</summary>
#
# A rotation changes no length and no angle, so no dot product and no weight. The outputs are the same averages of
# rotated vectors: they are rotated too. So no single component of a vector means anything to this attention, and for
# the same reason the film factors could be rotated at will.
#
# </details>
# <details><summary>3. Could softmax be left out, and the raw weights used as they are?</summary>
#
# Then Y = X Xᵀ X. The outputs are no longer averages: they grow with t and with the cube of the vectors' length, and
# weights can be negative. Without the softmax the product can also be bracketed as X (Xᵀ X), which costs t·e² instead
# of t²·e. Developed with care, this becomes linear attention (A. Katharopoulos et al.,
# [Transformers are RNNs: fast autoregressive transformers with linear attention](https://arxiv.org/abs/2006.16236),
# *ICML* 2020).
#
# </details>
#
# **Further reading**
#
# - **[Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers)**: lessons 1 to 4 and 7
#   follow its order. The film recommender, the plain dot product before any learned matrices, and the view of
#   self-attention as an operation on sets are from there.
# - [Koren, Bell and Volinsky, *Matrix factorization techniques for recommender systems*,
#   2009](https://doi.org/10.1109/MC.2009.263): eight pages.
# - [Levy and Goldberg, *Neural word embedding as implicit matrix factorization*,
#   2014](https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization): word vectors from
#   counts.
# - [Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762), section 3.2: the operation of
#   this lesson, with the parts that the next three lessons add.
#
# **Next:** [lesson 2, *Queries, keys, values*](../02_queries_keys_values/02_queries_keys_values.ipynb)
