# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 3 · Scaling
#
# *Why divide by √d*
#
# The published formula of attention is $\operatorname{softmax}(q k^\top / \sqrt d)\, v$. You have written all of it
# except the division by $\sqrt d$, which is called **scaling**. **Why divide, and why by the root of d?**
#
# | | |
# |---|---|
# | **You will build** | functions for the variance of a score, the backward pass of softmax and the entropy of a row of weights, and a test that measures how an attention function scales its scores; you also fix a head that computes the wrong numbers |
# | **You need** | [lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb), the chain rule, and, from probability, the mean, the variance and independence |
# | **It takes** | about 80 minutes: five exercises, 18 points, and three predictions |
# | **It computes** | in about a minute in all, without a GPU; you can stop the trainings early |
#
# As everywhere, b is the batch, t counts queries, s counts keys, and d is the width of one query or key
# ([notation](../../site/notation.md)).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.device import device
from helpers.lesson import start

check = start("03_scaling")

# %% [markdown]
# ## Without scaling, wide vectors make a row sharp by chance
#
# Draw one query and eight keys with standard normal components, and compute attention weights as in lesson 2. **At
# width 1024 one key gets more than 99 % of the weight in four rows of five, and chance decides which.** With the scores
# divided by √d, this happens in none of a thousand rows.

# %% mystnb={"image": {"alt": "Six bar charts of the attention weights of one query over eight keys, for widths 4, 64 and 1024. Above, not scaled: at width 4 several keys share the weight, at 64 one key has most of it, at 1024 a single key has nearly all of it. Below, scaled: several keys share the weight at every width."}}
def draw(n, d, generator):
    """n queries and, for each, eight keys. Returns their scores (n, 8)."""
    queries, keys = (torch.randn(n, count, d, generator=generator) for count in (1, 8))
    return (queries @ keys.mT)[:, 0]

chance, many = (torch.Generator().manual_seed(seed) for seed in (307, 1))
_, axes = plt.subplots(2, 3, figsize=(6, 3.8), sharex=True, sharey=True)
for column, d in zip(axes.T, (4, 64, 1024)):
    one, thousand, shares = draw(1, d, chance), draw(1000, d, many), []
    for ax, divisor in zip(column, (1, math.sqrt(d))):
        ax.bar(range(8), torch.softmax(one[0] / divisor, dim=-1), color=plots.COLOURS[0])
        largest = torch.softmax(thousand / divisor, dim=-1).amax(dim=-1)    # (1000,)
        shares.append((largest > 0.99).float().mean().item())
    column[0].set(title=f"d = {d}", ylim=(0, 1.05))
    column[1].set(xlabel="key j", xticks=range(8))
    print(f"d = {d:>4}: one key has more than 99 % in {shares[0]:.1%} of 1000 rows, "
          f"divided by √d in {shares[1]:.1%}")
axes[0, 0].set_ylabel("weight, not scaled")
axes[1, 0].set_ylabel("weight, scaled")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each column is one draw of eight scores; below, they are divided by √d before the softmax.
#
# </div>
#
# The softmax is the same at every width, so the cause must be in the scores.

# %% [markdown]
# ## The variance of a score is d
#
# Assume that the components of $q$ and $k$ are **independent** of each other, and that each has **mean 0 and variance
# 1**. The mean of a product of independent random variables is the product of their means:
#
# $$\mathbb{E}[q_a k_a] \;=\; \mathbb{E}[q_a]\;\mathbb{E}[k_a] \;=\; 0 \cdot 0 \;=\; 0 .$$
#
# With mean 0, the variance is the mean of the square, so $\mathbb{E}[q_a^2] = \mathbb{E}[k_a^2] = 1$, and
#
# $$\operatorname{Var}(q_a k_a) \;=\; \mathbb{E}[q_a^2 k_a^2] \;=\; \mathbb{E}[q_a^2]\;\mathbb{E}[k_a^2]
# \;=\; 1 \cdot 1 \;=\; 1 .$$
#
# A score is the sum of d such products. The mean of a sum is the sum of the means, and for independent terms the same
# holds for variances:
#
# $$\mathbb{E}[q \cdot k] \;=\; \sum_{a=0}^{d-1} \mathbb{E}[q_a k_a] \;=\; 0,
# \qquad\qquad \operatorname{Var}(q \cdot k) \;=\; \sum_{a=0}^{d-1} \operatorname{Var}(q_a k_a) \;=\; d .$$
#
# **So the [variance](../../site/glossary.md#variance) of a score is d.** Its standard deviation, the distance of a
# typical score from 0, is $\sqrt d$ and not d, as terms of both signs partly cancel.
#
# At the start of training the assumptions nearly hold, if inputs have variance 1 and the entries of a matrix with e
# rows have variance 1/e.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `score_variance`** &nbsp; ★☆☆ · 8 minutes · 3 points
#
# Draw `samples` pairs of a query and a key, compute one score for each pair, and return the variance of these scores,
# with the divisor samples − 1, as `.var()` computes it: a tensor of shape () or a Python number.
#
# Draw all queries with one `torch.randn(samples, d, generator=generator)`, all keys with a second such call, and
# nothing else: the check compares your number with ours. Do not seed the generator: a further call should give an
# independent measurement. The tensors may stay on the CPU.
#
# <details><summary>Hint 1: all pairs at once</summary>
#
# The queries are one tensor of shape (samples, d) and the keys another. The first query and the first key are one
# *pair*, the second query and the second key the next. Each pair has one score.
#
# </details>
# <details><summary>Hint 2: three pairs, with numbers</summary>
#
# Suppose the queries were (1, 0), (0, 2) and (1, 1), and the keys (3, 5), (1, −1) and (2, 0). The three scores are 3,
# −2 and 2, their mean is 1, and their variance is (4 + 9 + 1)/(3 − 1) = 7.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "score_variance", "locked": false, "schema_version": 3, "solution": true, "task": false}
def score_variance(d, samples, generator):
    """The variance of q·k, measured on random vectors.

    d: width of a vector. samples: how many pairs to draw.
    generator: a torch.Generator on the CPU, the source of every random number.
    Returns one number, a tensor of shape () or a Python one; for many pairs it is near d.
    """
    ### BEGIN SOLUTION
    q = torch.randn(samples, d, generator=generator)
    k = torch.randn(samples, d, generator=generator)
    scores = (q * k).sum(dim=-1)    # (samples,)
    return scores.var()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_score_variance", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(score_variance)

# %%
chance = torch.Generator().manual_seed(0)
for d in (4, 64, 1024):
    print(f"d = {d:>4}: measured variance {float(score_variance(d, 8000, chance)):.4g}")

# %% [markdown]
# Sixteen times the width, sixteen times the variance. One division undoes this.
#
# ## Divided by √d, a score has variance 1 at every width
#
# Dividing a random variable by $\sqrt d$ divides its variance by d:
#
# $$\operatorname{Var}\!\left(\frac{q \cdot k}{\sqrt d}\right) \;=\; \frac{d}{(\sqrt d)^2} \;=\; 1 .$$
#
# Two scores then typically differ by $\sqrt 2$, and one weight is about $e^{\sqrt 2} \approx 4$ times the other.
#
# The root is that of d, the number of terms in the sum, and not of e, the width of the input. The division comes
# between the product and the softmax:

# %%
plots.diagrams.scaling_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The column on the right gives the variance.
#
# </div>
#
# In code this is one line. It counts axes **from the end**, because lesson 4 adds another in front.

# %%
def scaled_scores(q, k):
    """q: (..., t, d). k: (..., s, d). Returns (..., t, s): [..., i, j] is q_i·k_j / √d."""
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])

# %% [markdown]
# Change the width in the player and watch the largest weight, first not scaled, then scaled:

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("scaling")

# %% [markdown]
# Now on paper. The queries and keys of lesson 2's three words have d = 4 components, so divide by 2. Fill in the two
# missing numbers.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, X

X_raw = (X @ W_Q) @ (X @ W_K).T
X_scaled = X_raw / math.sqrt(4)
X_weights = torch.softmax(X_scaled, dim=-1)
plots.number_grids(
    "three-words", "Scores of three words divided by the root of d, by hand", THREE_WORDS,
    [{"*q k*^{⊤}": X_raw, "*w*, not scaled": torch.softmax(X_raw, dim=-1)},
     {"*q k*^{⊤}/2": X_scaled, "*w*, scaled": X_weights}],
    empty=[("*q k*^{⊤}/2", 1, 1), ("*w*, scaled", 1, 1)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Rows are queries, columns are keys. For the missing weight use $e \approx 2.7$ and $e^2 \approx
# 7.4$.
#
# </div>
#
# Every row becomes softer. The next cell prints the two missing numbers.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"score of loop and loop: {X_scaled[1, 1]:.0f}")
before = torch.softmax(X_raw, dim=-1)[1, 1]
print(f"its weight: {X_weights[1, 1]:.2f}, before the division {before:.2f}")
mine = scaled_scores(X @ W_Q, X @ W_K)
print("as scaled_scores computes it:", torch.allclose(mine, X_scaled, atol=1e-5))

# %% [markdown]
# <div class="card">
#
# **Prediction · `three_times_as_large`** &nbsp; 1 minute · no points
#
# Let the components of q and k have mean 0 and standard deviation 3 instead of 1. What is the variance of the *scaled*
# scores?
#
# - **A.** 81
# - **B.** 9
# - **C.** 3
# - **D.** 1
# </div>

# %% nbgrader={"grade": false, "grade_id": "three_times_as_large", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
three_times_as_large = "A"
### STUDENT GETS
# three_times_as_large = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %%
chance = torch.Generator().manual_seed(2)
for d in (64, 1024):
    q, k = 3 * torch.randn(2, 4000, d, generator=chance)    # (4000, d) each
    scaled = (q * k).sum(dim=-1) / math.sqrt(d)
    print(f"d = {d:>4}: variance of the scaled scores {scaled.var().item():.0f}")

# %% nbgrader={"grade": true, "grade_id": "check_three_times_as_large", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("three_times_as_large", three_times_as_large)

# %% [markdown]
# **Scaling corrects for the width and for nothing else.** If components have standard deviation σ, the variance of the
# scaled score is σ⁴ at every width. So attention can still become sharp, if training makes queries and keys longer.

# %% [markdown]
# ## Can a sharp row be corrected?
#
# A row that is sharp by chance may have its weight on a wrong key. Can training move it?
#
# An example from J. Alammar's [*The illustrated transformer*](https://jalammar.github.io/illustrated-transformer/)
# (2018) has two keys, d = 64, and the scores 112 and 96; scaled, they are 14 and 12. Only their difference counts. If
# the **second** key should have the weight, gradient descent has to raise its score.

# %% [markdown]
# <div class="card">
#
# **Prediction · `saturated_gradient`** &nbsp; 1 minute · no points
#
# Raise the score of the second key by the same small amount in two rows: the unscaled scores (112, 96) and the scaled
# scores (14, 12). How much does the weight of this key rise in the unscaled row, compared with the scaled row?
#
# - **A.** More: the further off the weights are, the stronger the correction.
# - **B.** About as much: the score is raised by the same amount.
# - **C.** About a tenth as much.
# - **D.** About a millionth as much.
# </div>

# %% nbgrader={"grade": false, "grade_id": "saturated_gradient", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
saturated_gradient = "D"
### STUDENT GETS
# saturated_gradient = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %% tags=["nbval-check-output"]
rises = []
for scores in ([112.0, 96.0], [14.0, 12.0]):
    z = torch.tensor(scores, requires_grad=True)
    weight = torch.softmax(z, dim=0)[1]
    rises.append(torch.autograd.grad(weight, z)[0][1].item())
    told = f"rises by {rises[-1]:.2g} per unit of its score"
    print(f"scores {scores}: the second key's weight is {weight.item():.2g} and {told}")
print(f"ratio {rises[0] / rises[1]:.2g}")

# %% nbgrader={"grade": true, "grade_id": "check_saturated_gradient", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("saturated_gradient", saturated_gradient)

# %% tags=["hide-input"] mystnb={"image": {"alt": "An S-shaped curve: the weight of the second key against its score minus the first score, from minus 22 to 5. It is flat near 0 up to about minus 5, then rises to 1. The point not scaled, at minus 16, is on the flat part. The point scaled, at minus 2, is where the curve has begun to rise."}}
apart = torch.linspace(-22, 5, 200)
ax = plt.subplots(figsize=(6, 2.4))[1]
ax.plot(apart, torch.sigmoid(apart), color=plots.COLOURS[0])    # softmax of two keys
for difference, name in ((-16, "not scaled"), (-2, "scaled")):
    point = difference, 1 / (1 + math.exp(-difference))
    ax.plot(*point, "o", color=plots.COLOURS[1])
    ax.annotate(name, point, xytext=(-6, 6), textcoords="offset points", ha="right")
ax.set(xlabel="second score minus first score", ylabel="weight of second key",
       title="Where the weight is near 0, the curve is flat")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The slope is the rise per unit of score. The points are the two rows.
#
# </div>
#
# ## The derivative of softmax contains the weight
#
# The same happens with any number of keys. Let $z$ be one row of scores, and $p = \operatorname{softmax}(z)$ its
# weights; j and m count keys. The logarithm, $\log p_m = z_m - \log \sum_{j'} e^{z_{j'}}$, has the simpler derivative:
#
# $$\frac{\partial \log p_m}{\partial z_j} \;=\; \delta_{mj} - \frac{e^{z_j}}{\sum_{j'} e^{z_{j'}}}
# \;=\; \delta_{mj} - p_j , \qquad \delta_{mj} = 1 \text{ if } m = j \text{, else } 0 .$$
#
# By the chain rule the left side equals $(1/p_m)\, \partial p_m / \partial z_j$. Multiply both sides by $p_m$. All s²
# derivatives together form one matrix, the [**Jacobian**](../../site/glossary.md#jacobian):
#
# $$\frac{\partial p_m}{\partial z_j} \;=\; p_m\,(\delta_{mj} - p_j) ,
# \qquad\qquad J \;=\; \operatorname{diag}(p) - p\,p^\top .$$
#
# When score j is raised, weight j rises at the rate $p_j (1 - p_j)$, and the other weights fall. Let the softmax
# [saturate](../../site/glossary.md#saturation): one weight approaches 1, the others 0. Then $\operatorname{diag}(p)$
# and $p p^\top$ approach the same matrix, **and their difference J approaches zero**.
#
# Backpropagation brings one number for each weight to the softmax, $g_m = \partial L / \partial p_m$, and the softmax
# passes on one number for each score:
#
# $$\frac{\partial L}{\partial z_j} \;=\; \sum_m g_m\, \frac{\partial p_m}{\partial z_j} .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `softmax_backward`** &nbsp; ★★☆ · 12 minutes · 5 points
#
# You get the weights p, the *outputs* of a softmax, and g, the gradient of a loss with respect to these weights.
# Return the gradient with respect to the scores. Put $\partial p_m / \partial z_j$ into the sum over m and simplify
# on paper first: the result needs two short lines of code and no matrix. (Using the matrix is accepted too.)
#
# The last axis holds the keys; there may be any number of axes in front of it, or none. The check also sends gradients
# back through your function, to g and to the scores from which p is made.
#
# <details><summary>Hint 1: split the sum</summary>
#
# $p_m(\delta_{mj} - p_j)$ has two terms, so there are two sums. In the first sum, $\delta_{mj}$ leaves a single m. In
# the second, $p_j$ does not depend on m and can be taken out of the sum. What is left inside is an average of g.
#
# </details>
# <details><summary>Hint 2: three keys, with numbers</summary>
#
# Let p be (½, ¼, ¼) and g be (4, 0, 0). The average of g with the weights p is 2, and the result is (1, −½, −½). It
# sums to 0, as every row of your result must. The average is one number for each row; mind how its shape broadcasts
# against (..., s).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "softmax_backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def softmax_backward(p, g):
    """The gradient of a loss with respect to the scores of a softmax.

    p: (..., s), the weights; each row sums to 1.
    g: (..., s), the gradient of the loss with respect to the weights.
    Returns (..., s): entry [..., j] is the sum over m of g_m ∂p_m/∂z_j.
    """
    ### BEGIN SOLUTION
    mean = (p * g).sum(dim=-1, keepdim=True)    # (..., 1): the average of g with weights p
    return p * (g - mean)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_softmax_backward", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(softmax_backward)

# %% [markdown]
# **A key with hardly any weight gets hardly any gradient, even if it is the right one.** If $g_j$ is below the weighted
# average of g, more weight on key j would lower the loss. Gradient descent then raises the score of key j, but in
# proportion to the weight that the key already has.

# %% [markdown]
# ## Does a model whose rows start sharp end worse?
#
# If a key with hardly any weight hardly learns, a sharp start should do harm. A test needs one number for how sharp a
# row is. [**Entropy**](../../site/glossary.md#entropy) says how spread out its weights are:
#
# $$H(p) \;=\; - \sum_j p_j \log p_j ,$$
#
# in **nats**, because the logarithm is the natural one. It is 0 when one weight is 1, and largest, $\log s$, when all s
# weights are equal. You can read $e^H$ as the number of keys that share the weight: for n equal weights, $e^H$ is n.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `attention_entropy`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the entropy of each row of weights, in nats. The last axis is summed away; there may be any number of axes in
# front of it, or none. Weights of exactly 0 contribute 0, the limit of $p \log p$, although a computer evaluates
# $0 \log 0$ as NaN. The gradient is checked only where all weights are above 0: at 0 the slope is infinite.
#
# <details><summary>Hint 1: where the NaN has to be stopped</summary>
#
# Compute the terms first, then sum them. `torch.where(condition, a, b)` chooses between a and b entry by entry. (This
# keeps NaN out of the result, but not out of the gradient.) Or replace each 0 by a tiny number before you take the
# logarithm: the factor 0 in front of it makes the term 0.
#
# </details>
# <details><summary>Hint 2: three rows, with numbers</summary>
#
# The row (½, ½, 0) has two terms of −½ log 2 and one of 0; its entropy is log 2, about 0.69. The row (1, 0, 0) has
# entropy 0, and (½, ¼, ¼) has 1.5 · log 2, about 1.04. If you get 1.5, you took logarithms to base 2.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "attention_entropy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_entropy(weights):
    """How spread out each row of weights is.

    weights: (..., s), none negative, each row sums to 1.
    Returns (...): −Σ p log p over the last axis, in nats; 0·log 0 counts as 0.
    """
    ### BEGIN SOLUTION
    terms = torch.xlogy(weights, weights)    # (..., s), all ≤ 0
    return -terms.sum(dim=-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_attention_entropy", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(attention_entropy)

# %% [markdown]
# Now the test. Lesson 2's language model, with d = 64, is trained in four ways: with small or large initial matrices
# for queries and keys, and with or without scaling. The small matrices are `nn.Linear`'s; since the byte vectors are
# small too, queries and keys start near 0. The large ones give them a standard deviation of about 1.4.

# %% [markdown]
# <div class="card">
#
# **Prediction · `four_starts`** &nbsp; 1 minute · no points
#
# Which models end worse than the rest, by more than a tenth of a [bit per byte](../../site/glossary.md#bits-per-byte)?
#
# - **A.** The two without scaling: they are too sharp.
# - **B.** The one with large matrices and without scaling.
# - **C.** The two with scaling: an average with softer weights carries less information.
# </div>

# %% nbgrader={"grade": false, "grade_id": "four_starts", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
four_starts = "B"
### STUDENT GETS
# four_starts = ...    # "A", "B" or "C"
### END SOLUTION

# %% [markdown]
# The next cell prints entropies before training (32 equal weights have 3.47 nats) and trains the two models with large
# matrices: half a minute.

# %% mystnb={"image": {"alt": "Four rows with three ticks each over held-out bits per byte. Small matrices, not scaled and scaled: all ticks between 3.30 and 3.34. Large matrices, not scaled: between 3.54 and 3.59. Large matrices, scaled: between 3.33 and 3.42."}}
from helpers.data.recorded import recorded
from helpers.ladder import ByteModel, Ladder, ScaledHead, measured, text

windows = text()[0][:3200].view(100, 32).long().to(device())    # (b, t)
plain_scores = lambda q, k: q @ k.mT

def started(scores_of, large):
    """A model before training, and the mean entropy of the rows of its last positions."""
    torch.manual_seed(0)
    model = ByteModel(ScaledHead(scores_of)).to(device())
    to_queries, to_keys = model.mix.to_queries, model.mix.to_keys
    if large:
        for layer in (to_queries, to_keys):
            torch.nn.init.normal_(layer.weight, std=1 / (0.1 * math.sqrt(64)))
    x = 0.1 * model.positions(model.tokens(windows))    # so small when training starts
    rows = torch.softmax(scores_of(to_queries(x[:, -1:]), to_keys(x)), dim=-1)
    return model, attention_entropy(rows).mean().item()

bits = recorded("ladder")["result"]["bits"]
runs = {"small matrices, not scaled": bits["02_queries_keys_values"],
        "small matrices, scaled": bits["03_scaling"],
        "large matrices, not scaled": bits["03 large, not scaled"],
        "large matrices, scaled": bits["03 large, scaled"]}
for name in runs:
    large, scores_of = "large" in name, plain_scores if "not" in name else scaled_scores
    model, entropy = started(scores_of, large)
    shared = math.exp(entropy)
    print(f"{name}: before training {entropy:.2f} nats, {shared:.1f} of 32 keys")
    if large:
        print(f"    after training {measured(model, 3600)[0]:.2f} bits per byte")
plots.runs({"three runs each": runs}, "held-out bits per byte")
plt.gca().set_title("Large matrices need scaling")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One tick for each of our three runs, with seeds 0, 1 and 2; farther left is better. The printed
# lines are yours, with seed 0, where the two large models are about twice as far apart as with the other seeds.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_four_starts", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("four_starts", four_starts)

# %% [markdown]
# **In this model, scaling matters when queries and keys start large.** With small matrices, rows start almost even
# anyway, and the models end alike. With large ones and no scaling, the weight of a row sits on about 1.3 of 32 keys,
# and every run (3.54 or above) ends more than a tenth of a bit above all other runs (3.42 or below). Scaling mends most
# of this, not all: two of its runs end about 0.08 above the small matrices.
#
# Is the sharp start the whole cause? Then a query matrix that starts √64 = 8 times smaller could replace scaling, and
# one 8 times larger would undo it. We tried both, with large matrices and three runs each:
#
# | | scaled | not scaled |
# |---|---|---|
# | **soft start** | 3.33 to 3.42 | 3.53 to 3.54 (8 times smaller) |
# | **sharp start** | 3.54 to 3.59 (8 times larger) | 3.54 to 3.59 |
#
# **With large matrices, only scaling together with a soft start ends below 3.53**, the score of lesson 1's model
# without self-attention. The two models with a soft start have the same first scores, and part only in training:
# without scaling, a step of the same size in the query matrix moves a score 8 times as far. (Our optimizer's steps
# hardly depend on the size of the gradient. With plain gradient descent, [wide vectors need only a soft
# start](../../site/further.md#lesson-3) in a smaller task.)
#
# So with large matrices this model needs both effects of scaling: rows start soft, and steps change scores less.

# %% [markdown]
# ## A head that was trained with scaling needs it
#
# In a model that was trained with scaling, the factor has to stay: its matrices fit scaled scores. **Without scaling
# the head computes something else, and no error says so.** Lesson 2 left scaling out of a head of a published model,
# and every shape was right. Here is its map again, beside the scaled one.

# %% mystnb={"image": {"alt": "Two maps of the weights of the twelve words the boat could not reach the bank because it was too muddy, of one head. Not scaled, a few cells are dark; the darkest are bank to muddy and muddy to bank. Scaled, all cells are pale; the same two are still the darkest."}}
from helpers.data.sentence import WORDS, queries_keys_values

q, k, _ = queries_keys_values(head=7)    # (t, d) each, with d = 32
maps = {"not scaled": torch.softmax(q @ k.mT, dim=-1),
        "scaled": torch.softmax(scaled_scores(q, k), dim=-1)}
plots.sentence_map(torch.stack(list(maps.values())), WORDS, list(maps))
plt.show()
for name, rows in maps.items():
    to_muddy = rows[WORDS.index("bank"), WORDS.index("muddy")].item()
    print(f"{name}: bank gives {to_muddy:.2f} to muddy")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Rows are the words that look. On the right the products are divided by √32. The words are read
# without their positions.
#
# </div>
#
# Scaled, *bank* still looks most at *muddy*, but its output is an average of many words. The left map is easier to
# read, but the head was trained with scaled scores.
#
# ## Two ways to find out whether scores are scaled
#
# If the code is hidden, measure the factor by calling the function (exercise 4). If you load matrices into your own
# head, compare its output with that of code that is right (exercise 5).

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `measured_scale`** &nbsp; ★★☆ · 10 minutes · 3 points
#
# `attend(q, k, v)` computes $\operatorname{softmax}(\beta\, q k^\top)\, v$ with a factor β that you do not know,
# between one twenty-fifth and 10. Call it, as often as you like, on q, k and v of your own choice, and return β, to
# within 1 %, as a Python number or as a tensor with a single number. It takes queries (b, t, d), keys (b, s, d) and
# values of any width, in float32 or float64, on the CPU; d is given.
#
# Choose the vectors well: you have seen what a softmax does to products that are too far apart.
#
# <details><summary>Hint 1: make the weights visible</summary>
#
# With values that are the rows of the identity matrix, the output of `attend` *is* the row of weights. And two keys
# are enough: which function of their two weights contains only the difference of the scores?
#
# </details>
# <details><summary>Hint 2: two keys, with numbers</summary>
#
# Suppose the products of the query with two keys are 16 and 0, and the weights come out as 0.88 and 0.12. Their ratio
# is about 7.4, which is e². So 16β = 2, and β is 1/8. But with β = 10 the same products would give the weights 1 and
# 0. Which products are safe for every β between one twenty-fifth and 10?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "measured_scale", "locked": false, "schema_version": 3, "solution": true, "task": false}
def measured_scale(attend, d):
    """The factor β of an attention that computes softmax(β·q kᵀ) v, found by calling it.

    attend: a function of q (b, t, d), k (b, s, d) and v (b, s, width).
    It returns (b, t, width).
    d: width of queries and keys.
    Returns β, one number.
    """
    ### BEGIN SOLUTION
    q, k = torch.zeros(1, 1, d), torch.zeros(1, 2, d)
    q[..., 0] = k[0, 0, 0] = 1    # the products q·k are 1 and 0
    first, second = attend(q, k, torch.eye(2)[None])[0, 0]
    return (first / second).log()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_measured_scale", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(measured_scale)

# %%
from helpers.parts.attention import attention

theirs = torch.nn.functional.scaled_dot_product_attention
for name, attend in {"lesson 2": attention, "PyTorch": theirs}.items():
    print(f"{name}'s attention, d = 64: β = {float(measured_scale(attend, 64)):.3f}")

# %% [markdown]
# Lesson 2's attention does not scale. PyTorch's multiplies by 1/8, which is $1/\sqrt{64}$.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `PortedHead`** &nbsp; fix · ★★☆ · 8 minutes · 3 points
#
# Fix this head. It is built as `PortedHead(e, d)`, and then loads the matrices of a model that was trained with
# $\operatorname{softmax}(q k^\top / \sqrt d)\, v$. Every call must compute exactly that, in training and in evaluation
# mode. The method `weights` and the argument `scale` may stay or go. The file must still load: it holds
# `to_queries.weight`, `to_keys.weight` and `to_values.weight`, each (d, e), and nothing else, so the head may have no
# other parameters or buffers. Gradients must reach all three.
#
# <details><summary>Hint 1: where to look</summary>
#
# Follow the scores from the product to the softmax, for a head that was built with e and d alone. Which lines run?
# (Changing the matrices in the constructor cannot help: `load_state_dict` replaces them.)
#
# </details>
# <details><summary>Hint 2: one number to print</summary>
#
# Build `PortedHead(48, 64)`, fill its matrices with normal numbers of variance 1/48, and give it an x of normal
# numbers. The components of queries and keys then have a variance of about 1, and `q @ k.mT` has a standard deviation
# of about 8. Print the standard deviation of the input of the softmax. What should it be?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "PortedHead", "locked": false, "schema_version": 3, "solution": true, "task": false}
class PortedHead(torch.nn.Module):
    """One head of attention. e: width of the input. d: width of queries, keys and values."""

    ### BEGIN SOLUTION
    def __init__(self, e, d):
        super().__init__()
        self.to_queries = torch.nn.Linear(e, d, bias=False)
        self.to_keys = torch.nn.Linear(e, d, bias=False)
        self.to_values = torch.nn.Linear(e, d, bias=False)

    def weights(self, x):
        q, k = self.to_queries(x), self.to_keys(x)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return torch.softmax(scores, dim=-1)

    def forward(self, x):
        return self.weights(x) @ self.to_values(x)
    ### STUDENT GETS
    # def __init__(self, e, d, scale=False):
    #     super().__init__()
    #     self.scale = scale
    #     self.to_queries = torch.nn.Linear(e, d, bias=False)
    #     self.to_keys = torch.nn.Linear(e, d, bias=False)
    #     self.to_values = torch.nn.Linear(e, d, bias=False)
    #
    # def weights(self, x):
    #     q, k = self.to_queries(x), self.to_keys(x)
    #     scores = q @ k.mT
    #     if self.scale:
    #         scores = scores / math.sqrt(q.shape[-1])
    #     return torch.softmax(scores, dim=-1)
    #
    # def forward(self, x):
    #     return self.weights(x) @ self.to_values(x)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_PortedHead", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(PortedHead)

# %% [markdown]
# Compare the head with PyTorch's own attention on the same q, k and v. This tests everything but the three projections.

# %%
head, x = PortedHead(48, 64), torch.randn(1, 12, 48)
for parameter in head.parameters():
    torch.nn.init.normal_(parameter, std=48**-0.5)    # stands in for the file

q, k, v = head.to_queries(x), head.to_keys(x), head.to_values(x)
apart = (head(x) - theirs(q, k, v)).abs().max().item()
print(f"largest difference from PyTorch's attention: {apart:.1g}")

# %% [markdown]
# <details><summary>What was wrong, and why nothing complained</summary>
#
# `scale=False` is the default, and nothing here ever passes `scale=True`. With d = 64 the scores are √64 = 8 times what
# the matrices were trained for, and the rows are too sharp. The flag is not a parameter, so the file does not hold it,
# and `load_state_dict` cannot notice. Hugging Face's [early PyTorch version of
# GPT-2](https://github.com/huggingface/transformers/blob/034aa0c2d743f5de787b650d9ef38ea49c66df3f/pytorch_transformers/modeling_gpt2.py)
# (2019) has the same default; its `GPT2Model` passes `scale=True` to every block.
#
# </details>

# %% [markdown]
# ## Your model so far
#
# Your model has small matrices, so expect no gain from scaling.

# %% mystnb={"image": {"alt": "A scoreboard of four models over bits per byte. The plain average is near 4.4, a little left of the line of order 0. Bare self-attention is near 3.5, at the line of order 1. Queries, keys, values and scaled scores are close together near 3.3. All are right of the lines of gzip and xz."}}
from helpers.parts.scaling import scaled_scores    # the function from above

ladder = Ladder(check)
scores = ladder.own(scaled_scores)
torch.manual_seed(0)
ladder.climb(ByteModel(ScaledHead(scores)))    # lesson 2's head with scaled scores
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each model; farther left is better. Points are your models, ticks our three runs.
# [Lesson 1](../01_dot_product_attention/01_dot_product_attention.ipynb) explains the dashed lines.
#
# </div>
#
# The new row overlaps lesson 2's, and the two samples read alike.

# %% [markdown]
# ## What you can do now
#
# **Why divide, and why by the root of d?**
#
# - **By the root of d, because the variance of a score is d** (if components are independent, with variance 1). Without
#   the division, wide vectors get sharp rows by chance.
# - **Divide, because a sharp row passes hardly any gradient to its other keys.** Our model needed scaling only where
#   its matrices started large. There a soft start was not enough: the steps had to shrink, too.
# - **A head that was trained with scaling needs it**, and no error says that it is missing.
#
# But sharp or soft, a row is still one average. Lesson 4 lets a word ask several questions at once.
#
# **Two questions to think about**
#
# <details><summary>1. A classifier ends in a softmax too, and its scores are not divided by anything. Why does it
# learn even when it is confidently wrong?</summary>
#
# Because its loss is minus the logarithm of the probability of the right class. The derivative of $\log p_m$ is
# $\delta_{mj} - p_j$, without the factor $p_m$ of the Jacobian. For the score of the right class the derivative is
# $1 - p_m$, close to 1 for a confidently wrong answer. Inside attention there is no logarithm after the softmax, and
# the factor $p_m$ stays.
#
# </details>
# <details><summary>2. Why not divide by d, to be on the safe side?</summary>
#
# You can, if you also train with d. At the start, the variance of the scores is then d/d² = 1/d, and the rows of wide
# heads are almost even. Our models with small matrices start this way too, and learn. After training, q and k may
# agree. If the products of their components have a positive mean, q·k grows like d and not like √d. For this reason
# μP divides by d, a parametrization whose [learning rate](../../site/glossary.md#learning-rate) carries over from
# narrow models to wide ones ([Yang et al., 2022](https://arxiv.org/abs/2203.03466), definition 4.1).
#
# </details>
#
# **Further reading**
#
# - [Peter Bloem, *Transformers from scratch*, 2019](https://peterbloem.nl/blog/transformers): another way to √d.
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 3.2.1: the
#   formula, and the variance argument as a footnote.
# - [Zhai et al., *Stabilizing transformer training by preventing attention entropy collapse*,
#   2023](https://arxiv.org/abs/2303.06296): entropy watched in large models.
# - [Henry et al., *Query-key normalization for transformers*, 2020](https://arxiv.org/abs/2010.04245): scores that
#   stay within a bound, which scaling does not guarantee.
#
# **Next:** [lesson 4, *Multi-head attention*](../04_multi_head/04_multi_head.ipynb)

