# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Scaling
#
# [Lesson 3](../03_scaling/03_scaling.ipynb) derives the division by √d and asks when it matters. Here is what was
# measured beside it: how far scores spread, how the gradient of a weight shrinks with the width, what saturation does to
# a training of two hundred steps, and which effect of scaling helps there.
#
# The functions of the lesson that are needed here come first.

# %%
import math

import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.device import device
from helpers.parts.scaling import scaled_scores

plots.use_course_style()

def plain_scores(q, k):
    """q: (..., t, d). k: (..., s, d). Returns (..., t, s): dot products, not divided."""
    return q @ k.mT

def attention_entropy(weights):
    """weights: (..., s). Returns (...): the entropy of each row, in nats."""
    return -torch.xlogy(weights, weights).sum(dim=-1)

def softmax_backward(p, g):
    """p, g: (..., s). Returns (..., s): the gradient with respect to the scores of p."""
    return p * (g - (p * g).sum(dim=-1, keepdim=True))

# %% [markdown]
# ## Scores spread like √d
#
# **The variance of a dot product is d, and for wide vectors its distribution is nearly normal.** The lesson derives the
# variance. Here are 8,000 scores at each of three widths.

# %% mystnb={"image": {"alt": "Three histograms of dot products of random vectors, for widths 4, 64 and 1024, each with the normal curve of variance d over it; each title gives a measured variance close to d. Most scores are between minus 4 and 4, minus 16 and 16, minus 64 and 64. At widths 64 and 1024 the curve and the histogram agree; at width 4 the histogram is higher in the middle."}}
chance = torch.Generator().manual_seed(0)
figure, axes = plt.subplots(1, 3, figsize=(6, 3.2))
for ax, d in zip(axes, (4, 64, 1024)):
    q, k = torch.randn(2, 8000, d, generator=chance)
    scores = (q * k).sum(dim=-1)
    ends = (-4 * d**0.5, 4 * d**0.5)
    ax.hist(scores.numpy(), bins=41, range=ends, density=True,
            color=plots.COLOURS[5], edgecolor="white", linewidth=0.3, label="measured")
    z = torch.linspace(*ends, 200)
    normal = torch.exp(-z**2 / (2 * d)) / math.sqrt(2 * math.pi * d)
    ax.plot(z, normal, color="black", label="normal, variance d")
    ax.set(title=f"d = {d}:\nvariance {scores.var().item():.4g}", xlabel="score q·k",
           xticks=[ends[0] / 2, 0, ends[1] / 2])
axes[0].set_ylabel("density")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The bars are scores. The curve is the normal density with mean 0 and variance d; nothing is
# fitted. From panel to panel d grows sixteenfold, and the scores spread four times as far. At d = 4 the shapes differ:
# a sum of four products is not normal yet.
#
# </div>

# %% [markdown]
# ## How much gradient gets through
#
# **A larger learning rate cannot replace scaling.** Without scaling, wide vectors let hardly any gradient through to
# the scores, and some keys get a billion times more than others. A learning rate multiplies all of them alike.
#
# Suppose the loss asks only for more weight on key j. On its way back to the product $q \cdot k_j$, the gradient is
# multiplied by
#
# $$\frac{\partial p_j}{\partial (q \cdot k_j)} \;=\; p_j\,(1 - p_j) \quad \text{without scaling, and}
# \quad \frac{p_j\,(1 - p_j)}{\sqrt d} \quad \text{with scaling.}$$
#
# The next cell draws 25 sets of 16 keys, each with 64 queries, at six widths. It computes this derivative for every
# key, and the entropy of every row.

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
# **How to read it.** Both axes are logarithmic; each point is a median. With scaling, from d = 4 on, the entropy is
# near 2.4 nats, as if about 11 of the 16 keys shared the weight, and the derivative falls like $1/\sqrt d$. Without
# scaling, both fall more and more steeply.
#
# </div>
#
# At d = 64 the median derivative is about 5,000 times larger with scaling than without. The printed percentiles say how
# much the keys differ: the 90th is about ten times the 10th with scaling, and more than 10⁹ times without.

# %% [markdown]
# ## Two hundred steps of training
#
# **A saturated row that is wrong stays wrong.** Fix 16 random keys and train 16 queries, which start at random. Query 0
# should put all of its weight on key 0, query 1 on key 1, and so on. The loss of a query is the squared error of its
# weights, summed over the keys; it is at most 2, with all of the weight on one wrong key. Training is plain gradient
# descent with learning rate 0.3.

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

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each line is the mean loss of the 16 queries in one training run, with seed 1. On the left, wider
# vectors end at a higher loss. On the right, d = 64 and d = 1024 end at nearly the same loss. At d = 4 the scaled run
# ends higher than the other.
#
# </div>
#
# Is the learning rate to blame? At d = 1024 we tried eight of them, from 10⁻⁵ to 100:

# %%
for name, scores_of in both.items():
    rates = [10.0**power for power in range(-5, 3)]
    runs = [learn(1024, scores_of, rate) for rate in rates]
    best = min(losses[-1].mean().item() for losses in runs)
    print(f"d = 1024, {name}: best of {len(runs)} rates ends at {best:.2f}")

# %% [markdown]
# Without scaling no rate comes close to 0. The loss at d = 1024 rises in the first two steps and then stands still. The
# next cell counts the queries.

# %%
losses = learn(1024, plain_scores)
for steps in (0, 1, 2, 100):
    now = losses[steps]
    print(f"d = 1024, not scaled, steps taken {steps}: mean loss {now.mean():.3f}, "
          f"{(now > 1.99).sum()} of 16 above 1.99, {(now < 0.01).sum()} below 0.01")

# %% [markdown]
# **How to read it.** At the start, 7 of the 16 queries have a loss near 2: nearly all of their weight is on one wrong
# key. Two steps that are too large put 15 queries there and one on the right key, and the mean is 2 · 15/16 = 1.875. It
# stays there, because the Jacobian of a saturated row is almost 0.

# %% [markdown]
# ## A soft start, or smaller steps?
#
# **In these trainings of wide vectors, the soft start decides.** Scaling has two effects: rows start soft, and steps
# become smaller. It acts on a step twice: it divides the gradient that reaches q by √d, and the effect of q on the
# scores by √d again. So give the unscaled scores only the soft start (queries that start √d times shorter), or only the
# smaller steps (a rate divided by d), or both.

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
# one effect of scaling each, row 4 has both and equals row 5. At d = 64 and d = 1024 every run from a soft start ends
# below 0.15, and every other run above 0.5.
#
# </div>
#
# At d = 1024 the median derivative of the initial loss with respect to the score of the right key is 0.08 with the soft
# start, and 2·10⁻²² without it. At d = 4 nothing saturates, and there the smaller steps only slow the training down:
# with the soft start alone (row 3), runs end in the same range as without scaling (row 1).
#
# In the lesson's language model a soft start alone is not enough. A possible reason: it trains with AdamW, whose steps
# have about the same size whatever the gradient is. Without scaling, such a step changes the scores √d times as much.
