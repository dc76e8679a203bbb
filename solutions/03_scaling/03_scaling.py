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
# except the root. Without the root, attention trains poorly when the vectors are wide and their components have a
# standard deviation of about 1. This lesson derives the root, shows what it prevents, and asks when it matters.
#
# | | |
# |---|---|
# | **You will build** | functions for the variance of a score, the backward pass of softmax, the entropy of a row, and scaled scores in half precision; you will also debug a head with loaded weights |
# | **You need** | [lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb), the chain rule, and, from probability, the mean, the variance and independence |
# | **It takes** | about 100 minutes: five exercises, 19 points, and three predictions |
# | **It computes** | in under two minutes in all, without a GPU; you can stop the last section early |
#
# As everywhere, b is the batch, t counts queries, s counts keys, and d is the width of one query or key
# ([notation](../../site/notation.md)). Run the next cell before anything else.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.device import device
from helpers.lesson import start

check = start("03_scaling")

# %% [markdown]
# ## The same attention at three widths
#
# Draw one query and eight keys with independent standard normal components, and compute attention weights as in
# lesson 2: dot products, then softmax. Nothing is trained. The three panels differ in the width d of the vectors.

# %% mystnb={"image": {"alt": "Three bar charts of the attention weights of one query over eight keys, for widths 4, 64 and 1024. At width 4 several keys share the weight; at 64 one key has most of it; at 1024 a single key has all of it."}}
chance = torch.Generator().manual_seed(307)
drawn = {}
for d in (4, 64, 1024):    # one query and eight keys, (1, d) and (8, d)
    drawn[d] = tuple(torch.randn(n, d, generator=chance).to(device()) for n in (1, 8))

def bars(weights):
    """Draw one panel for each width. weights: {title: (s,)}."""
    figure, axes = plt.subplots(1, 3, figsize=(6, 2.5), sharey=True)
    for ax, (title, row) in zip(axes, weights.items()):
        ax.bar(range(8), row.cpu(), color=plots.COLOURS[0])
        ax.set(title=title, xlabel="key j", xticks=range(8), ylim=(0, 1.05))
    axes[0].set_ylabel("weight")
    plt.show()

weights = {}
for d, (query, keys) in drawn.items():
    weights[f"d = {d}"] = torch.softmax(query @ keys.T, dim=-1)[0]
bars(weights)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The eight bars of a panel add up to 1. At d = 4 several keys share the weight. At d = 1024 a
# single key has all of it, and chance decided which. Attention is meant to average values; at d = 1024 it copies one.
#
# </div>
#
# The softmax is the same in all three panels, so the cause must lie in the scores.

# %% [markdown]
# <div class="card">
#
# **Prediction · `variance_growth`** &nbsp; 1 minute · no points
#
# A score is a sum of d products, and their signs are random. From d = 64 to d = 1024 the number of terms grows
# sixteenfold. How does the size of a typical score (its standard deviation) change?
#
# - **A.** It stays about the same: positive and negative terms cancel.
# - **B.** It becomes 4 times as large.
# - **C.** It becomes 16 times as large.
# - **D.** It becomes 256 times as large.
# </div>

# %% nbgrader={"grade": false, "grade_id": "variance_growth", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
variance_growth = "B"
### STUDENT GETS
# variance_growth = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %%
chance = torch.Generator().manual_seed(2)
for d in (64, 1024):
    queries, keys = torch.randn(2, 100, d, generator=chance)    # (100, d) each
    scores = queries @ keys.T    # (100, 100)
    print(f"d = {d:>4}: standard deviation {scores.std().item():5.1f}")

# %% nbgrader={"grade": true, "grade_id": "check_variance_growth", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("variance_growth", variance_growth)

# %% [markdown]
# ## How large is a dot product?
#
# Make two assumptions about the components of $q$ and $k$: they are **independent** of each other, and each has **mean
# 0 and variance 1**. A linear layer with e inputs comes close to this if the inputs have mean 0 and variance 1, and its
# matrix is drawn with independent entries of mean 0 and variance 1/e. (PyTorch's `nn.Linear` draws entries of variance
# $1/(3e)$, which makes scores smaller.) Take the product of component a of q and component a of k. Its mean is
#
# $$\mathbb{E}[q_a k_a] \;=\; \mathbb{E}[q_a]\;\mathbb{E}[k_a] \;=\; 0 \cdot 0 \;=\; 0 ,$$
#
# because the mean of a product of independent random variables is the product of their means. For the variance, recall
# that $\operatorname{Var}(u) = \mathbb{E}[u^2] - \mathbb{E}[u]^2$. With mean 0 and variance 1, therefore,
# $\mathbb{E}[u^2] = 1$, and
#
# $$\operatorname{Var}(q_a k_a) \;=\; \mathbb{E}[q_a^2 k_a^2] - 0^2 \;=\; \mathbb{E}[q_a^2]\;\mathbb{E}[k_a^2]
# \;=\; 1 \cdot 1 \;=\; 1 .$$
#
# A score is the sum of d such products. The mean of a sum is the sum of the means. The variance of a sum of independent
# terms is the sum of their variances, and our terms are independent:
#
# $$\mathbb{E}[q \cdot k] \;=\; \sum_{a=0}^{d-1} \mathbb{E}[q_a k_a] \;=\; 0,
# \qquad\qquad \operatorname{Var}(q \cdot k) \;=\; \sum_{a=0}^{d-1} \operatorname{Var}(q_a k_a) \;=\; d .$$
#
# So the [variance](../../site/glossary.md#variance) of a score is d. Its standard deviation, the distance of a
# typical score from 0, is $\sqrt d$. (Trained vectors need not meet the assumptions: see question 2.)

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `score_variance`** &nbsp; ★☆☆ · 8 minutes · 3 points
#
# Draw `samples` pairs of a query and a key, compute one score for each pair, and return the variance of these scores
# around their own mean, with the divisor samples − 1, as `.var()` computes it: a tensor of shape () or a Python number.
#
# Draw all queries with one `torch.randn(samples, d, generator=generator)`, whose components are independent with mean 0
# and variance 1, all keys with a second such call, and nothing else. The generator's seed then decides your result, and
# the check compares it with ours. A further call with the same generator draws the numbers that follow, and gives an
# independent measurement: do not seed the generator. The tensors may stay on the CPU.
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

# %% [markdown]
# Here are your measurements, and histograms of scores at three widths.

# %%
chance = torch.Generator().manual_seed(0)
for d in (1, 4, 16, 64, 256, 1024):
    print(f"d = {d:>4}: measured variance {float(score_variance(d, 4000, chance)):8.2f}")

# %% mystnb={"image": {"alt": "Three histograms of dot products of random vectors, for widths 4, 64 and 1024, each with the normal curve of variance d over it. Most scores are between minus 4 and 4, minus 16 and 16, minus 64 and 64. At widths 64 and 1024 the curve and the histogram agree; at width 4 the histogram is higher in the middle."}}
figure, axes = plt.subplots(1, 3, figsize=(6, 2.9))
for ax, d in zip(axes, (4, 64, 1024)):
    q, k = torch.randn(2, 8000, d, generator=chance)
    ends = (-4 * d**0.5, 4 * d**0.5)
    ax.hist((q * k).sum(-1).numpy(), bins=41, range=ends, density=True,
            color=plots.COLOURS[5], edgecolor="white", linewidth=0.3, label="measured")
    z = torch.linspace(*ends, 200)
    normal = torch.exp(-z**2 / (2 * d)) / math.sqrt(2 * math.pi * d)
    ax.plot(z, normal, color="black", label="normal, variance d")
    ax.set(title=f"d = {d}", xlabel="score q·k", xticks=[ends[0] / 2, 0, ends[1] / 2])
axes[0].set_ylabel("density")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The bars are measured scores. The curve is the normal density with mean 0 and the variance d
# derived above; nothing is fitted. Look at the numbers on the horizontal axes: from panel to panel d grows sixteenfold,
# and the scores spread four times as far. (At d = 4 the shapes differ: a sum of four products is not normal yet.)
#
# </div>

# %% [markdown]
# ## Divide by √d
#
# The growth of the variance is known, so one division can undo it, between the product and the softmax:

# %%
plots.diagrams.scaling_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The column on the right gives the variance. The product raises it from 1 to d, and the division
# brings it back to 1.
#
# </div>
#
# Dividing a random variable by $\sqrt d$ divides its variance by d, so scaled scores have variance 1 at every width:
#
# $$\operatorname{Var}\!\left(\frac{q \cdot k}{\sqrt d}\right) \;=\; \frac{d}{(\sqrt d)^2} \;=\; 1 .$$
#
# An example from J. Alammar's [*The illustrated transformer*](https://jalammar.github.io/illustrated-transformer/)
# (2018) has two keys, d = 64, and the scores 112 and 96:

# %% tags=["nbval-check-output"]
plain = torch.tensor([112.0, 96.0])
scaled = plain / math.sqrt(64)
for name, scores in {"not scaled": plain, "scaled": scaled}.items():
    first, second = torch.softmax(scores, dim=0).tolist()
    print(f"{name}: scores {scores.tolist()}, weights {first:.2f} and {second:.2g}")

# %% [markdown]
# Softmax depends on the *differences* of the scores. A difference of 16 makes one weight $e^{16}$ times the other, a
# difference of 2 only $e^2$ times. Scaling keeps the order of the weights and raises the second weight to 0.12.
#
# Scaled scores take one line of code. In [lesson 4](../04_multi_head/04_multi_head.ipynb) q will have an axis for h
# heads, and the shape (b, h, t, d) instead of (b, t, d). Axes that are counted **from the end** work for both shapes.

# %%
def scaled_scores(q, k):
    """q: (..., t, d). k: (..., s, d). Returns (..., t, s): [..., i, j] is q_i·k_j / √d."""
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])

# %% mystnb={"image": {"alt": "The same three bar charts with scaled scores. At all three widths several of the eight keys share the weight, and none comes near 1."}}
weights = {}
for d, (query, keys) in drawn.items():
    scores = scaled_scores(query, keys)    # (1, s)
    weights[f"d = {d}, scaled"] = torch.softmax(scores, dim=-1)[0]
bars(weights)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The first figure again, with scaled scores. In each panel the same key as before has the tallest
# bar. But now several keys share the weight at every width.
#
# </div>
#
# Lesson 2 multiplied the scores by a number β. The root fixes β at $1/\sqrt d$. Attention can still become sharp,
# because training can make queries and keys longer.
#
# **The root of what?** Of d, the number of terms in the sum, which is the width of one
# [head](../../site/glossary.md#head). A model of width e often has h heads of width d = e/h each, and it is easy to
# divide by √e by mistake. All scores are then too small by a factor of $\sqrt{e/d} = \sqrt h$. No error is raised,
# because the shapes are right, but with weights trained with √d the outputs are wrong.
#
# Move the width and watch the largest weight, first without the division, then with it:

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("scaling")

# %% [markdown]
# ## Three words by hand
#
# The queries and keys of lesson 2's three words have d = 4 components, so divide by 2. Fill in the two missing numbers.

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
# **How to read it.** The upper grids are the scores of lesson 2 and their softmax. The lower grids are the divided
# scores and their softmax. Rows are queries, columns are keys, both in the order *the*, *loop*, *ends*. For the missing
# weight use $e \approx 2.7$ and $e^2 \approx 7.4$.
#
# </div>
#
# Every row becomes softer. The next cell prints both missing numbers.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"score of loop and loop: {X_scaled[1, 1]:.0f}")
before = torch.softmax(X_raw, dim=-1)[1, 1]
print(f"its weight: {X_weights[1, 1]:.2f}, before the division {before:.2f}")
mine = scaled_scores(X @ W_Q, X @ W_K)
print("as scaled_scores computes it:", torch.allclose(mine, X_scaled, atol=1e-5))

# %% [markdown]
# ## When the weight is on the wrong key
#
# Networks learn by gradient descent. Suppose that the first key has the score 112 and the second 96, and that the loss
# would be lower if the **second** key had the weight. Attention is then almost entirely on the wrong key.

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
    second_weight = torch.softmax(z, dim=0)[1]
    rises.append(torch.autograd.grad(second_weight, z)[0][1].item())
    told = f"the weight of the second key rises by {rises[-1]:.2g} per unit of its score"
    print(f"scores {scores}: {told}")
print(f"ratio {rises[0] / rises[1]:.2g}")

# %% nbgrader={"grade": true, "grade_id": "check_saturated_gradient", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("saturated_gradient", saturated_gradient)

# %% [markdown]
# ## The derivative of softmax
#
# From here on, $z$ is one row of scores as it enters the softmax, scaled or not, and $p = \operatorname{softmax}(z)$
# is the row of weights. There is one query, so j and m both count keys. Start with the derivative of the logarithm,
# which is simpler: $\log p_m = z_m - \log \sum_{j'} e^{z_{j'}}$. Its derivative is
#
# $$\frac{\partial \log p_m}{\partial z_j} \;=\; \delta_{mj} - \frac{e^{z_j}}{\sum_{j'} e^{z_{j'}}}
# \;=\; \delta_{mj} - p_j , \qquad \delta_{mj} = 1 \text{ if } m = j \text{, else } 0 .$$
#
# By the chain rule, $\partial \log p_m / \partial z_j = (1/p_m)\, \partial p_m / \partial z_j$, so multiply by $p_m$.
# All s² derivatives together form one matrix, the [**Jacobian**](../../site/glossary.md#jacobian):
#
# $$\frac{\partial p_m}{\partial z_j} \;=\; p_m\,(\delta_{mj} - p_j) ,
# \qquad\qquad J \;=\; \operatorname{diag}(p) - p\,p^\top .$$
#
# Entry (m, j) is the rate at which weight m changes when score j is raised. Weight j itself rises at the rate $p_j (1 -
# p_j)$, and the other weights fall. Now let the softmax [saturate](../../site/glossary.md#saturation): one weight
# approaches 1, the others 0. Then $\operatorname{diag}(p)$ and $p p^\top$ approach the same matrix, **and their
# difference J approaches zero**. A small change of a score then leaves all weights almost unchanged.
#
# Training does not need J itself. Backpropagation brings a vector $g$ to the softmax, with one number for each
# weight, $g_m = \partial L / \partial p_m$. The softmax passes on one number for each score, by the chain rule:
#
# $$\frac{\partial L}{\partial z_j} \;=\; \sum_m g_m\, \frac{\partial p_m}{\partial z_j} .$$
#
# **What the checks of exercises 2 to 5 require.** Let gradients flow back to every input, leave the inputs unchanged,
# create new tensors on the device of the inputs, and allow any axis to have length 1.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `softmax_backward`** &nbsp; ★★☆ · 12 minutes · 5 points
#
# You get the weights p, the *outputs* of a softmax, and g, the gradient of a loss with respect to these weights. Return
# the gradient with respect to the scores. Put $\partial p_m / \partial z_j$ into the sum over m and simplify on paper
# first: the result needs two short lines of code and no matrix. (Computing it with the matrix is accepted too.)
#
# The last axis holds the keys; there may be any number of axes in front of it, or none. Your function must itself be
# differentiable: the check sends gradients back through it, to g and to the scores from which p is made.
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
# In words: if $g_j$ is below the weighted average of g, more weight on key j would lower the loss. Gradient descent
# then raises the score of key j, in proportion to the weight that the key already has. **A key without weight gets no
# gradient, even if it is the right one.**
#
# The next figure adds a third key, with q·k = 100. Both panels show derivatives with respect to q·k. With scaling,
# z = q·k/8, so the chain rule divides J by 8. If g is row m of the identity matrix, your function returns row m of J.

# %% mystnb={"image": {"alt": "Two heat maps of the derivatives of three weights with respect to three scores. Without scaling all entries read 0.000. With scaling the diagonal is positive and all other entries are negative."}}
plain = torch.tensor([112.0, 96.0, 100.0], device=device())    # q·k for three keys
each_weight = torch.eye(3, device=device())    # g asks for one weight at a time
before = softmax_backward(torch.softmax(plain, 0).expand(3, 3), each_weight)
after = softmax_backward(torch.softmax(plain / 8, 0).expand(3, 3), each_weight) / 8
by_autograd = torch.autograd.functional.jacobian(lambda z: torch.softmax(z / 8, 0), plain)
print("agrees with autograd:", torch.allclose(after, by_autograd, atol=1e-6))
for name, jacobian in {"not scaled": before, "scaled": after}.items():
    print(f"{name}: largest entry {jacobian.max():.1g}")

plots.heat_pair(before, after, rows=["0", "1", "2"], same_scale=True, digits=3,
                titles=("not scaled", "scaled, d = 64"), row_label="weight of key m",
                column_label="raised score of key j")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Column j shows how the weights change when score j is raised a little: weight j rises (blue), the
# others fall (orange). Each column adds up to 0. The largest entry is 0.000006 on the left and 0.02 on the right.
#
# </div>

# %% [markdown]
# ## One number for how soft a row is
#
# To compare saturation across widths, we need one number for each row. [**Entropy**](../../site/glossary.md#entropy)
# says how spread out the weights of a row are:
#
# $$H(p) \;=\; - \sum_j p_j \log p_j ,$$
#
# with the natural logarithm, so its unit is the **nat**. Entropy is largest, $\log s$, when all s weights are equal,
# and 0 when one weight is 1 and the rest are 0. You can read $e^H$ as the number of keys that share the weight: for n
# equal weights, $e^H$ is n.
#
# Weights of 0 need care. $p \log p$ goes to 0 as p goes to 0, so $0 \log 0$ counts as 0. A computer, however, evaluates
# $\log 0$ as −∞ and $0 \cdot (-\infty)$ as NaN. Weights of exactly 0 do occur: a score can be so far below the largest
# that its exponential is 0 in float32, and in lesson 5 weights are set to 0 on purpose.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `attention_entropy`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the entropy of each row of weights, in nats. The last axis is summed away; there may be any number of axes in
# front of it, or none. Weights of exactly 0 contribute 0. The gradient is checked only where all weights are above 0:
# at 0 the slope of $p \log p$ is infinite.
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

# %%
for d, (query, keys) in drawn.items():
    plain = query @ keys.T
    rows = torch.softmax(torch.cat([plain, plain / math.sqrt(d)]), dim=-1)    # (2, 8)
    before, after = attention_entropy(rows).exp().tolist()
    print(f"d = {d:>4}: spread over {before:.1f} of 8 keys, scaled over {after:.1f}")

# %% [markdown]
# ## How much gradient gets through
#
# We also want one number from the Jacobian. Suppose the loss asks only for more weight on key j. On the way back to
# the score $q \cdot k_j$, the gradient is multiplied by
#
# $$\frac{\partial p_j}{\partial (q \cdot k_j)} \;=\; p_j\,(1 - p_j) \quad \text{without scaling, and}
# \quad \frac{p_j\,(1 - p_j)}{\sqrt d} \quad \text{with scaling.}$$
#
# This derivative is 0 for a key without weight and for a key with all of the weight.
#
# The next cell draws 25 random sets of 16 keys, each with 64 random queries, and computes the derivative for every key
# and the entropy of every row. The figure shows the medians at six widths.

# %%
chance = torch.Generator().manual_seed(1)
widths = [4**n for n in range(6)]
entropies, derivatives = ({"not scaled": [], "scaled": []} for _ in range(2))
for d in widths:
    q, k = (torch.randn(25, n, d, generator=chance).to(device()) for n in (64, 16))
    for name, divisor in {"not scaled": 1, "scaled": math.sqrt(d)}.items():
        p = torch.softmax(q @ k.mT / divisor, dim=-1)    # k.mT is k.transpose(-2, -1)
        entropies[name].append(attention_entropy(p))    # (b, t)
        derivatives[name].append(p * (1 - p) / divisor)    # (b, t, s), with respect to q·k

# %% mystnb={"image": {"alt": "Two log-log plots against width, from 1 to 1024. Left, median entropy: scaled, it goes from 2.6 to 2.4 nats; not scaled, it falls more and more steeply, to about 0.0002. Right, median derivative of a weight with respect to q·k: scaled, it falls slowly, from 0.05 to 0.001; not scaled, it falls more and more steeply, to 0.000001 at width 64 and far below at 1024."}}
_, axes = plt.subplots(1, 2, figsize=(6, 3.1))
labels = "entropy (nats)", "derivative"
for ax, label, values in zip(axes, labels, (entropies, derivatives)):
    medians = {name: (widths, [rows.median().item() for rows in line])
               for name, line in values.items()}
    plots.curves(medians, "width d", f"median {label}", log="xy", ax=ax)
    ax.set_xticks(widths, widths)
    ax.minorticks_off()
plt.show()

print("d = 64, percentiles of the derivative:")
shares = torch.tensor([0.1, 0.5, 0.9], device=device())
for name, line in derivatives.items():
    low, middle, high = line[widths.index(64)].quantile(shares).tolist()
    print(f"{name}: 10th {low:.2g}, 50th {middle:.2g}, 90th {high:.2g}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Both axes are logarithmic. With scaling, from d = 4 on, the entropy is near 2.4 nats, as if about
# 11 of the 16 keys shared the weight, and the derivative falls like $1/\sqrt d$. Without scaling, both fall more and
# more steeply.
#
# </div>
#
# At d = 64, the median derivative is 0.005 with scaling and 0.000001 without: a factor of about 5,000. Without scaling
# the keys also differ more: the 90th percentile is more than 10⁹ times the 10th. With scaling this ratio is about 10.
# A larger [**learning rate**](../../site/glossary.md#learning-rate), the factor in front of the gradient, could make up
# for the factor of 5,000, but not for the differences between keys: it multiplies the gradients of all keys alike.

# %% [markdown]
# ## Two hundred steps of training
#
# Fix 16 random keys and train 16 queries, which start at random. Query 0 should put all of its weight on key 0, query 1
# on key 1, and so on. The loss of a query is the squared error of its weights, summed over the keys. Its maximum is 2,
# with all of the weight on one wrong key. Training is plain gradient descent with learning rate 0.3.

# %%
def learn(d, scores_of, rate=0.3, shorter=1, seed=1, steps=200):
    chance = torch.Generator().manual_seed(seed)
    keys, queries = torch.randn(2, 1, 16, d, generator=chance).to(device())    # (1, 16, d)
    queries = queries / shorter
    goal = torch.eye(16, device=device())    # (t, s)
    queries, losses = queries.requires_grad_(), []
    for step in range(steps):
        weights = torch.softmax(scores_of(queries, keys), dim=-1)
        loss = (weights[0] - goal).square().sum(dim=-1)    # (t,)
        (gradient,) = torch.autograd.grad(loss.sum(), queries)
        queries = (queries - rate * gradient).detach().requires_grad_()
        losses.append(loss.detach())
    return torch.stack(losses)    # (steps, t)

plain_scores = lambda q, k: q @ k.mT

# %% mystnb={"image": {"alt": "Two panels of loss curves over 200 steps for widths 4, 64 and 1024. Not scaled, width 4 learns, width 64 goes down slowly and unevenly, and width 1024 rises within two steps and is nearly flat after that. Scaled, widths 64 and 1024 fall together to nearly 0, and width 4 stays above them."}}
figure, axes = plt.subplots(1, 2, figsize=(6, 3), sharey=True)
both = {"not scaled": plain_scores, "scaled": scaled_scores}
for ax, (name, scores_of) in zip(axes, both.items()):
    means = {f"d = {d}": learn(d, scores_of).mean(dim=1).tolist() for d in (4, 64, 1024)}
    plots.loss_curve(means, ylabel="squared error per query", title=name, ax=ax)
    print(f"d = 4, {name}: ends at {means['d = 4'][-1]:.2f}")
axes[1].set_ylabel("")
axes[0].get_legend().remove()
plt.show()

for name, scores_of in both.items():
    rates = [10.0**power for power in range(-5, 3)]
    runs = [learn(1024, scores_of, rate) for rate in rates]
    best = min(losses[-1].mean().item() for losses in runs)
    print(f"d = 1024, {name}: best of {len(runs)} rates ends at {best:.2f}")

losses = learn(1024, plain_scores)
for steps in (0, 1, 2, 100):
    now = losses[steps]
    print(f"d = 1024, not scaled, steps taken {steps}: mean loss {now.mean():.3f}, "
          f"{(now > 1.99).sum()} of 16 above 1.99, {(now < 0.01).sum()} below 0.01")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each line is the mean loss of the 16 queries in one training run, with seed 1. On the left, wider
# vectors end at a higher loss. On the right, d = 64 and d = 1024 end at nearly the same loss.
#
# </div>
#
# The last four printed lines explain the rise at d = 1024 without scaling. At the start, 7 of the 16 queries have a
# loss near 2: nearly all of their weight is on one wrong key. The first two steps are too large and raise the mean
# loss. Then 15 losses are near 2 and one is near 0, so the mean is 2 · 15/16 = 1.875. It stays there because J is
# almost 0 in saturated rows. Other rates help little: the best of eight ends at 1.36.
#
# The root has two effects: a soft start and smaller steps. The next cell keeps the unscaled scores and produces each
# effect on its own, then both. For the soft start, it divides the initial queries by √d. For the smaller steps, it
# divides the rate by d, because the root acts twice: it divides the gradient that reaches q by √d, and the effect of
# each step of q on the scores by √d again. The cell also prints the median size of the derivative of the initial loss
# with respect to the score of the right key.

# %% mystnb={"image": {"alt": "Three panels, for widths 4, 64 and 1024, with the final losses of three runs in each of five rows. At widths 64 and 1024 all runs of the first two rows end above 0.5; all others end below 0.15. At width 4 rows 2, 4 and 5 lie between 0.2 and 0.6, rows 1 and 3 between 0.1 and 0.3. In each panel the last two rows are the same."}}
_, axes = plt.subplots(1, 3, figsize=(6, 2.3), sharex=True, sharey=True)
for ax, d in zip(axes, (4, 64, 1024)):
    ways = {
        "not scaled": (plain_scores, 0.3, 1),
        "smaller steps": (plain_scores, 0.3 / d, 1),
        "soft start": (plain_scores, 0.3, math.sqrt(d)),
        "soft start, smaller steps": (plain_scores, 0.3 / d, math.sqrt(d)),
        "scaled": (scaled_scores, 0.3, 1),
    }
    for name, way in ways.items():
        ends = [learn(d, *way, seed)[-1].mean().item() for seed in (1, 2, 3)]
        ax.plot(ends, [name] * 3, "o", color=plots.COLOURS[0], alpha=0.6)
    ax.set(title=f"d = {d}", xlabel="final loss", xticks=(0, 1, 2))
    keys, queries = torch.randn(2, 16, d, generator=torch.Generator().manual_seed(1))
    for name, shorter in {"not scaled": 1, "soft start": math.sqrt(d)}.items():
        p = torch.softmax(plain_scores(queries / shorter, keys), dim=-1)
        right = softmax_backward(p, 2 * (p - torch.eye(16))).diagonal().abs()
        print(f"d = {d}, {name}: median derivative {right.quantile(0.5):.1g}")
ax.invert_yaxis()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each dot is one run, with seed 1, 2 or 3; some dots coincide. Left is better. Rows 2 and 3 have
# one effect of the root each, row 4 has both. Rows 4 and 5 agree: at every step, the queries of row 4 are those of row
# 5 divided by √d.
#
# </div>
#
# At d = 64 and d = 1024 the start decides: every run from a soft start ends below 0.15, and every other run above 0.5.
# At d = 1024 the median derivative is 0.08 with the soft start, and 2·10⁻²² without it. (The run that stays at 1.875 is
# the worst of three: the other unscaled runs end near 1.6 and 1.4.)
#
# At d = 4, in the previous figure, the scaled run ends higher than the unscaled one, at 0.41 against 0.27. The smaller
# steps are the reason: with the soft start alone (row 3), runs end in the same range as without scaling (row 1).

# %% [markdown]
# ## Divide early
#
# On paper it does not matter when you divide. On a computer it can. Networks often store each number in 16 bits, which
# takes half the memory of float32. Two formats are common: float16, called **half precision**, and bfloat16.

# %% tags=["nbval-check-output"]
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    limits = torch.finfo(dtype)
    print(f"{dtype}: largest number {limits.max:.6g}, after 1 comes 1 + {limits.eps:.1g}")

q = torch.full((1, 1, 64), 40.0)
for dtype in (torch.float16, torch.bfloat16):
    product = q.to(dtype) @ q.to(dtype).mT
    print(f"{dtype}: q·q = {product.item()}, divided by 8 it is {(product / 8).item()}")

# %% [markdown]
# The largest [float16](../../site/glossary.md#float16) number is 65,504. The vector above has 64 entries of 40. Its dot
# product with itself is 102,400, which is too large for float16 and becomes ∞ before it is divided by 8. The
# quotient, 12,800, would have fitted. bfloat16 has a wider range, but fewer digits. With components of standard
# deviation 1, a typical dot product at d = 64 is only about 8 in size, but trained vectors can be much longer.
#
# So divide first: either q alone by √d, or, as PyTorch does in its [general
# code](https://github.com/pytorch/pytorch/blob/12da0c70378b5be9135c6fda62a9863bce4a4818/aten/src/ATen/native/transformers/attention.cpp#L653),
# both q and k by the fourth root of d:
#
# $$\frac{q}{d^{1/4}} \cdot \frac{k}{d^{1/4}} \;=\; \frac{q \cdot k}{\sqrt d} .$$
#
# The second way can round more, but small components are less likely to become 0. Both avoid ∞ here, but such
# large scores are coarse: near 12,800, float16 numbers are 8 apart and bfloat16 numbers 64.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `scaled_scores_early`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the same scores as `scaled_scores`, with or without an axis for heads, but divide **before** the product, so
# that no intermediate number overflows. The check runs it in float16 too, on vectors whose products q·k are beyond
# 65,504. The result must have the dtype of q and k. (Computing in float32 and converting the result back passes too.)
#
# <details><summary>Hint 1: two ways to divide</summary>
#
# Either the queries by the root, or queries and keys each by the fourth root, `d ** 0.25`. Is anything left to divide?
#
# </details>
# <details><summary>Hint 2: one query and one key, with numbers</summary>
#
# Let d = 16, and let all entries of q be 4 and all entries of k be 6. The product is 384, and the score is 384/4,
# which is 96. With `16 ** 0.25 = 2` the entries become 2 and 3, and their product is already 96. Dividing by a Python
# number keeps a tensor's type; `q /= 2` would change the caller's tensor.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "scaled_scores_early", "locked": false, "schema_version": 3, "solution": true, "task": false}
def scaled_scores_early(q, k):
    """The scores of attention, divided before the product.

    q: (b, t, d) or (b, h, t, d). k: (b, s, d) or (b, h, s, d).
    Both are of one floating-point type, and so is the result.
    Returns (b, t, s) or (b, h, t, s): entry [..., i, j] is q_i·k_j / √d.
    """
    ### BEGIN SOLUTION
    root = q.shape[-1] ** 0.25
    return (q / root) @ (k / root).transpose(-2, -1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_scaled_scores_early", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(scaled_scores_early)

# %% tags=["nbval-check-output"]
half = torch.full((1, 1, 64), 40.0, dtype=torch.float16)
print("late: ", scaled_scores(half, half).item())
print("early:", scaled_scores_early(half, half).item())

one_too_large = torch.tensor([float("inf"), 3.0, 1.0])
print("softmax of a row with one infinite score:", torch.softmax(one_too_large, 0).tolist())

# %% [markdown]
# One score of +∞ turns the *whole row* into NaN, and the NaN spreads to what is computed from the row.

# %% [markdown]
# ## A head that loads but does not work
#
# Suppose you have the file of a published model and code for one of its heads. PyTorch loads its three matrices and
# says `<All keys matched successfully>`, and all outputs have the right shape. But the numbers are wrong.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `PortedHead`** &nbsp; fix · ★★☆ · 8 minutes · 3 points
#
# Fix this head. It is built as `PortedHead(e, d)`, and then loads the three matrices of a model that was trained with
# $\operatorname{softmax}(q k^\top / \sqrt d)\, v$. Every call of the head must compute exactly that, in training and in
# evaluation mode. The method `weights` and the argument `scale` may stay or go. The file must still load: it holds
# three matrices, `to_queries.weight`, `to_keys.weight` and `to_values.weight`, each (d, e), and nothing else. So the
# head may have no other parameters or buffers. Gradients must reach the three matrices too.
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
# When you load matrices that someone else trained, compare *numbers*: give their code and yours the same input, and
# compare the outputs. Here PyTorch's own attention stands in for their code. It receives our q, k and v, so the
# comparison tests everything but the three projections.

# %%
head, x = PortedHead(48, 64), torch.randn(1, 12, 48)
for parameter in head.parameters():
    torch.nn.init.normal_(parameter, std=48**-0.5)    # stands in for the file

q, k, v = head.to_queries(x), head.to_keys(x), head.to_values(x)
theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v)
apart = (head(x) - theirs).abs().max().item()
print(f"largest difference from PyTorch's attention: {apart:.1g}")

plain = q @ k.mT
for name, scores in {"divided by √d": plain / math.sqrt(64), "as they are": plain}.items():
    entropy = attention_entropy(torch.softmax(scores, dim=-1)).mean().item()
    print(f"scores {name}: mean entropy {entropy:.2f} nats")

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
# The language model of lesson 2 used unscaled scores. Its d is 64, so your `scaled_scores_early` divides them by 8.

# %% [markdown]
# <div class="card">
#
# **Prediction · `third_rung`** &nbsp; 1 minute · no points
#
# The byte vectors start with a standard deviation of 0.1. How does the root change the [bits per
# byte](../../site/glossary.md#bits-per-byte) of this model?
#
# - **A.** It saves more than a tenth of a bit: without it, one byte has nearly all of the weight from the first step
#   on.
# - **B.** It costs more than a tenth of a bit: an average with softer weights carries less information about the text.
# - **C.** Hardly at all: the weights start soft either way.
# </div>

# %% nbgrader={"grade": false, "grade_id": "third_rung", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
third_rung = "C"
### STUDENT GETS
# third_rung = ...    # "A", "B" or "C"
### END SOLUTION

# %% [markdown]
# The next cell takes up to twenty seconds on one core. The stop button ends it early, and the model so far is kept.

# %% mystnb={"image": {"alt": "A scoreboard of four models over bits per byte. The plain average lies at the line of order 0, near 4.5. Bare self-attention is at 3.6. Queries, keys and values lie near 3.76, and scaled scores on both sides of that, between 3.69 and 3.79; your own point is the rightmost of them. All are right of the line of order 1."}}
from helpers.data.recorded import recorded
from helpers.ladder import ByteModel, Ladder, ScaledHead, measured, text

ladder = Ladder(check)
scores = ladder.own(scaled_scores_early)
torch.manual_seed(0)
ladder.climb(ByteModel(ScaledHead(scores)))    # lesson 2's head with your scores
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each model; farther left is better. The point is your model, the ticks are our three
# runs, one of them with your seed. Dashed lines: *order 0* knows only how frequent each byte is, *order 1* also the
# byte before; *gzip* and *xz* compress files. [Lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb)
# discusses the lead of model 1.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_third_rung", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("third_rung", third_rung)

# %% [markdown]
# How soft are the rows of weights before training? The next cell prints their mean entropy. For 32 equal weights the
# entropy is log 32, about 3.47. In our model the byte vectors start small, and the initial matrices of `nn.Linear`
# make queries and keys smaller still. The cell also trains two models with larger initial matrices, one of them with
# the root. Their queries and keys start with components of standard deviation 1, and their scores with a standard
# deviation of about 8 without the root and about 1 with it.

# %%
windows = text()[0][:3200].view(100, 32).long().to(device())    # (b, t)

def started(scores_of, large):
    """A model before training, and the mean entropy of its rows."""
    torch.manual_seed(0)
    model = ByteModel(ScaledHead(scores_of)).to(device())
    to_queries, to_keys = model.mix.to_queries, model.mix.to_keys
    if large:
        for layer in (to_queries, to_keys):
            torch.nn.init.normal_(layer.weight, std=1 / (0.1 * math.sqrt(64)))
    x = 0.1 * model.tokens(windows)    # the byte vectors as training starts with them
    rows = torch.softmax(scores_of(to_queries(x), to_keys(x)), dim=-1)
    return model, attention_entropy(rows).mean().item()

for name, scores_of in {"not scaled": plain_scores, "scaled": scores}.items():
    _, entropy = started(scores_of, large=False)
    print(f"{name}, small matrices: mean entropy {entropy:.2f} nats")
    model, entropy = started(scores_of, large=True)
    bits, _ = measured(model, 4000)
    runs = recorded("ladder")["result"]["bits"][f"03 large, {name}"]
    print(f"{name}, large matrices: mean entropy {entropy:.2f} nats; "
          f"{bits:.2f} bits per byte, our three runs {min(runs):.2f} to {max(runs):.2f}")

# %% [markdown]
# With small matrices, rows start almost even with or without the root. The root makes no clear difference: of our three
# runs with the root, some end below and some above the runs without it. With large matrices, rows start sharp without
# the root and soft with it. Every run with the root ends more than a tenth of a bit below every run without it.
#
# **When does the root matter?** In both experiments, at d = 64, every run that starts soft ends lower than every run
# that starts sharp. If the components of queries and keys start near standard deviation 1, the root provides the soft
# start. Smaller initial matrices can do the same: [T5](https://arxiv.org/abs/1910.10683) does not divide by √d, but
# [draws its initial query
# matrix](https://github.com/tensorflow/mesh/blob/fa19d69eafc9a482aff0b59ddd96b025c0cb207d/mesh_tensorflow/transformer/attention.py#L136)
# with a standard deviation √d times smaller than that of the key matrix.

# %% [markdown]
# ## What you can do now
#
# You can say how large a dot product of random vectors is and prove it; scale scores by the right root, also in half
# precision; compute the gradient of a softmax without its Jacobian; and measure how soft a row of weights is.
#
# **Three questions to think about**
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
# agree. If the products of their components have a positive mean, q·k grows like d and not like √d. For this reason μP,
# a parametrization whose learning rate carries over from narrow models to wide ones, divides by d ([Yang et al.,
# 2022](https://arxiv.org/abs/2203.03466), definition 4.1).
#
# </details>
# <details><summary>3. Suppose the components of q and k have standard deviation σ instead of 1. What is the variance
# of the scaled score?</summary>
#
# Each product of two components has variance σ²·σ² = σ⁴. The sum has variance dσ⁴, and the scaled score σ⁴. At σ = 3
# that is $3^4 = 81$, and the softmax saturates although the scores are scaled. The root corrects for the width only.
# The normalisation of [lesson 7](../07_transformer_block/07_transformer_block.ipynb) keeps the inputs of the
# projections near standard deviation 1, but the two matrices may still grow.
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
# - [Henry et al., *Query-key normalization for transformers*, 2020](https://arxiv.org/abs/2010.04245): scores that stay
#   within a bound, which the root does not guarantee.
# - [Micikevicius et al., *Mixed precision training*, 2018](https://arxiv.org/abs/1710.03740): what fits into 16 bits.
#
# **Next:** [lesson 4, *Multi-head attention*](../04_multi_head/04_multi_head.ipynb)

