# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 7 · The transformer block
#
# *Attention, a network, two shortcuts, two norms*
#
# A transformer is a stack of many layers. Stack 24 untrained layers of attention, and after three of them all positions
# hold the same vector (in float32, without a mask). Stack 24 untrained **transformer blocks**, and the positions stay
# different up to the top.
# **What does a block have that attention lacks, and what is each piece for?**
#
# Each piece that a block adds cures a fault, which you see in a plot before and after. Then you train a stack of
# blocks, and take its pieces out one at a time.
#
# | | |
# |---|---|
# | **You will build** | a measure of gradients by depth, the feed-forward network, the layer norm, the block, the stack, and a tool that takes a block apart |
# | **You need** | [lessons 4](../04_multi_head/04_multi_head.ipynb) to [6](../06_positions/06_positions.ipynb), and how to write an `nn.Module` |
# | **It takes** | about 110 minutes: six exercises, one of them with two bugs to fix, and two predictions; 27 points |
# | **It computes** | for seconds a cell; the last trainings take longer, and you may stop them |
#
# Letters, as in the [notation table](../../site/notation.md): b batch, t positions, e width, h heads. Layers, blocks
# and positions are counted from 0. `SelfAttention` is lesson 4's, with or without a mask.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.device import device
from helpers.lesson import start
from helpers.parts.blocks import FeedForward as FinishedFeedForward
from helpers.parts.blocks import LayerNorm as FinishedNorm
from helpers.parts.blocks import SelfAttention
from helpers.parts.blocks import TransformerBlock as FinishedBlock
from helpers.progress import progress

check = start("07_transformer_block")
torch.set_num_threads(1)    # these tensors are too small to split among threads

# %% [markdown]
# ## Attention on attention makes all positions equal
#
# Send sequences of 16 random vectors through both, and measure at every depth how much the positions differ:
#
# $$\text{difference} \;=\; \frac{\lVert x - \bar x \rVert}{\lVert x \rVert},
# \qquad \bar x = \text{the mean over the positions of each sequence}.$$
#
# The difference is 0 when all positions hold the same vector, and near 1 for random vectors.

# %%
class Tower(nn.Module):
    """Blocks on top of each other, and nothing else: (b, t, e) -> (b, t, e)."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

def difference(x):
    return ((x - x.mean(dim=1, keepdim=True)).norm() / x.norm()).item()

# %% tags=["hide-input"]
def size(v):
    return v.square().mean().sqrt().item()

def by_depth(quantity, tower, x):
    """One quantity by depth: for each block the "gradient" of exercise 1; or before and
    after each block the "difference" between positions or the "size" of the vectors.
    """
    if quantity == "gradient":
        return gradient_by_depth(tower, x).tolist()
    measure = {"difference": difference, "size": size}[quantity]
    values = [measure(x)]
    with torch.no_grad():
        for block in tower.blocks:
            x = block(x)
            values.append(measure(x))
    return values

LABELS = {
    "difference": ("depth", "difference between positions"),
    "gradient": ("depth (0 is next to the input)", "length of the gradient"),
    "size": ("depth", "size of the vectors"),
}

def draw_by_depth(panels):
    """A panel for each title: a quantity by depth, with a line for each tower."""
    shape = (6.4 if len(panels) > 1 else 4.8, 3.8)
    figure, axes = plt.subplots(1, len(panels), figsize=shape, squeeze=False)
    for ax, (title, (quantity, towers)) in zip(axes[0], panels.items(), strict=True):
        lines = {}
        for name, tower in towers.items():
            values = by_depth(quantity, tower, x)
            lines[name] = (range(len(values)), values)
        plots.curves(lines, *LABELS[quantity], log="y", title=title, ax=ax)
        ax.legend().remove()
    handles = axes[0, 0].get_legend_handles_labels()
    columns = len(towers) if len(panels) > 1 else 2
    figure.legend(*handles, loc="outside lower center", ncols=columns)
    plt.show()

# %% mystnb={"image": {"alt": "Two curves against depth, 0 to 24, on a logarithmic axis. The difference between positions starts at 1. With attention alone it is a quarter after one layer, about one fifty-thousandth after two, and stays at one ten-millionth from the third layer on. With transformer blocks it falls slowly, and ends at about three quarters."}}
torch.manual_seed(1)
x = torch.randn(8, 16, 32).to(device())    # (b, t, e)
bare = Tower(SelfAttention(32, 4) for _ in range(24)).to(device())
of_blocks = Tower(FinishedBlock(32, 4, pre_norm=True) for _ in range(24)).to(device())
draw_by_depth({"Attention alone: equal positions": (
    "difference", {"attention alone": bare, "transformer blocks": of_blocks})})

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Depth counts layers of attention, or blocks, with random weights. The lower curve levels off
# because float32 resolves no smaller difference. There is no mask; with a causal one it falls as far, only more slowly
# ([Measured further](../../site/further.md#lesson-7)).
#
# </div>
#
# A block adds a network, two norms, and two shortcuts ($x\;+$):
#
# $$x \;\leftarrow\; x + \operatorname{attention}\big(\operatorname{norm}(x)\big),
# \qquad x \;\leftarrow\; x + \operatorname{network}\big(\operatorname{norm}(x)\big) .$$
#
# **Averages of averages are all alike.** All outputs of a layer are averages of the same values. When the vectors are
# similar, so are their attention weights, and the averages are nearly equal. So without a mask each layer shrinks the
# differences more than the layer before ([Dong, Cordonnier and Loukas, 2021](https://arxiv.org/abs/2103.03404)).
#
# Could training repair this? Only if the gradient reaches the lower layers.

# %% [markdown]
# ## Fault 1: differences and gradients fade on the way
#
# A gradient needs a loss. Ours is the mean squared distance from the sequence **backwards**. All weights and biases of
# a block are one long vector $\theta$. The length of its gradient tells how strongly the loss pulls on the block:
#
# $$g \;=\; \left\lVert \frac{\partial L}{\partial \theta} \right\rVert
# \;=\; \sqrt{\sum_{\text{parameters of the block}} \;\;
# \sum_{\text{entries}} \left(\frac{\partial L}{\partial \text{entry}}\right)^{\!2}} .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `gradient_by_depth`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Return $g$ for every block of a model, in one tensor. Gradients that the parameters already hold in `.grad` must not
# affect the result; you may clear or overwrite them.
#
# <details><summary>Hint 1: two ways to gradients</summary>
#
# `torch.autograd.grad(loss, list_of_parameters)` returns one gradient for each parameter and stores nothing.
# `loss.backward()` adds to the `.grad` of every parameter, so clear the old gradients first: `model.zero_grad()`.
#
# </details>
# <details><summary>Hint 2: an example with two blocks</summary>
#
# In block 0 the gradient of the weight is (3, 0) and that of the bias is (4), in block 1 they are (6, 2) and (3). The
# result is (5, 7): √(3² + 0² + 4²) and √(6² + 2² + 3²).
#
# When you call `torch.autograd.grad` several times on one loss, all calls but the last need `retain_graph=True`.
# `torch.stack` makes one tensor of a list of tensors.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "gradient_by_depth", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gradient_by_depth(model, x):
    """How strongly the loss pulls on each block.

    model: maps (b, t, e) to (b, t, e); model.blocks holds its blocks, the first one first.
    x: (b, t, e). The loss measures how far the output is from x in reverse order.
    Returns (depth,): for each block, the length of the loss's gradient with respect to all
    its parameters, taken together as one vector.
    """
    loss = (model(x) - x.flip(1)).square().mean()
    ### BEGIN SOLUTION
    norms = []
    for block in model.blocks:
        gradients = torch.autograd.grad(loss, list(block.parameters()), retain_graph=True)
        squares = sum(gradient.square().sum() for gradient in gradients)
        norms.append(squares.sqrt())
    return torch.stack(norms)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_gradient_by_depth", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(gradient_by_depth)

# %% [markdown]
# In these layers the gradient fades, too (next plot). Are small weights the cause of both? PyTorch gives the entries of
# a matrix a variance of 1/(3e), so a matrix shrinks a vector, or a gradient, to about $1/\sqrt 3$ of its length. A
# layer has two of them on the way, `to_values` and `unify`.

# %% [markdown]
# <div class="card">
#
# **Prediction · `larger_weights`** &nbsp; 1 minute · no points
#
# In every layer, make `to_values` and `unify` $\sqrt 3$ times as large. On average they then leave a vector as long as
# it is. What does this cure?
#
# - **A.** The fading gradient. The positions still become equal.
# - **B.** The equal positions. The gradient still fades.
# - **C.** Both: the small weights were the cause of both.
# </div>

# %% nbgrader={"grade": false, "grade_id": "larger_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
larger_weights = "A"
### STUDENT GETS
# larger_weights = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "Two panels on logarithmic axes, each with a curve for PyTorch's weights and one for larger weights. Left, the difference between positions: both curves fall to one ten-millionth within three blocks. Right, the length of the gradient by block: with PyTorch's weights it rises nearly along a straight line, from below one trillionth at block 0 to about a twentieth at block 23; with larger weights it is nearly level, a little below 1."}}
torch.manual_seed(1)
larger = Tower(SelfAttention(32, 4) for _ in range(24)).to(device())
with torch.no_grad():
    for block in larger.blocks:
        block.to_values.weight *= 3**0.5
        block.unify.weight *= 3**0.5
towers = {"PyTorch's weights": bare, "larger weights": larger}
draw_by_depth({"Equal positions in both": ("difference", towers),
               "A fading gradient in one": ("gradient", towers)})

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The gradient comes from the right, where the loss is.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_larger_weights", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("larger_weights", larger_weights)

# %% [markdown]
# **Two different things go wrong.** Small weights make the gradient fade, to about a third in each layer. Averaging
# makes the positions equal, at either scale of the weights ([Measured further](../../site/further.md#lesson-7)).

# %% [markdown]
# ## Cure 1: a shortcut adds to the input instead of replacing it
#
# One change cures both: add a layer's output to its input.
#
# $$y \;=\; x + f(x), \qquad\qquad \frac{\partial y}{\partial x} \;=\; I + \frac{\partial f}{\partial x} .$$
#
# Each input vector reaches the top as one term of a sum. On the way back the identity $I$ passes one term of the
# gradient through all layers unchanged. A layer learns only what to add, the *residual* ([He et al., 2016, section
# 3](https://arxiv.org/abs/1512.03385)): hence **[residual connection](../../site/glossary.md#residual-connection)**, or
# **shortcut**.

# %% mystnb={"image": {"alt": "Two panels by depth, on logarithmic axes, each with a curve without shortcuts and one with them. Left, the difference between positions: without shortcuts it falls to one ten-millionth within three blocks; with shortcuts it stays near 1 and ends at two thirds. Right, the length of the gradient by block: without shortcuts it falls from a twentieth at the top to below one trillionth at the bottom; with shortcuts it is nearly level, about 2 at the bottom and 1 at the top."}}
class Shortcut(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return x + self.layer(x)

torch.manual_seed(1)
with_shortcuts = Tower(Shortcut(SelfAttention(32, 4)) for _ in range(24)).to(device())
towers = {"without shortcuts": bare, "with shortcuts": with_shortcuts}
draw_by_depth({"Shortcuts keep positions apart": ("difference", towers),
               "Shortcuts pass the gradient on": ("gradient", towers)})

# %% [markdown]
# **The positions still differ at the top, and the gradient reaches the bottom.** Shortcuts alone solve the
# first plot. What can this tower still not do, and when does it break?
#
# ## Fault 2: attention only averages
#
# For given attention weights, attention is linear: it averages its values, and multiplies by a matrix. A simple task
# shows what is missing: return the distance of each component from its mean over the positions. Train four attention
# layers with shortcuts on it, on random sequences, with [Adam](../../site/glossary.md#adam).

# %% tags=["hide-input"]
def train(model, target, steps, rate=0.01):
    """Trains with Adam, on a fresh batch (16, 8, 32) in each step. Returns the mean of the
    last 20 losses. The stop button ends the training early.
    """
    torch.manual_seed(0)
    optimiser, losses = torch.optim.Adam(model.parameters(), lr=rate), []
    try:
        for _ in progress(range(steps), "training"):
            batch = torch.randn(16, 8, 32).to(device())
            loss = (model(batch) - target(batch)).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    except KeyboardInterrupt:
        print(f"Stopped after {len(losses)} of {steps} steps.")
    return torch.tensor(losses[-20:]).mean()

def distance(x):
    return (x - x.mean(dim=1, keepdim=True)).abs()

def four_layers():
    torch.manual_seed(2)
    return [Shortcut(SelfAttention(32, 4)) for _ in range(4)]

@torch.no_grad()
def draw_answers(models):
    """A panel for each model: its output at one component of 14 new sequences."""
    batch = torch.randn(14, 8, 32, generator=torch.Generator().manual_seed(5)).to(device())
    signed = (batch - batch.mean(dim=1, keepdim=True))[..., 0].flatten().cpu()
    figure, axes = plt.subplots(1, len(models), figsize=(3.2 * len(models), 3.4),
                                sharey=True, squeeze=False)
    for ax, (title, model) in zip(axes[0], models.items(), strict=True):
        ax.scatter(signed, model(batch)[..., 0].flatten().cpu(), s=7, label="output")
        ax.plot([-3, 0, 3], [3, 0, 3], color="black", linewidth=1, label="right answer")
        ax.set(title=title, xlabel="component − mean", ylim=(-0.3, 3.2))
    axes[0, 0].set_ylabel("distance from the mean")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
    plt.show()

# %% mystnb={"image": {"alt": "One component's answer against that component minus its mean, from minus 3 to 3. The right answer is a V with its tip at 0. The dots, the outputs of four attention layers, form a flat cloud around 0.7 and ignore the V."}}
attention = Tower(four_layers()).to(device())
loss = train(attention, distance, 500)
draw_answers({"Attention misses the V": attention})
constant = 7 / 8 * (1 - 2 / torch.pi)    # of 8 positions: 7/8 is the variance of x − mean
print(f"loss of the best constant {constant:.2f}")
print(f"loss of attention {loss:.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each dot is one component at one position of a new sequence.
#
# </div>
#
# **In 500 steps, attention alone does no better than the best constant** (one task, one run). A straight line
# that gains on one arm of the V loses as much on the other.
#
# ## Cure 2: a network computes at each position
#
# The cure is the **[feed-forward network](../../site/glossary.md#feed-forward-network)**: two linear layers with a ReLU
# between them, applied to **every position by itself**, with the same weights:
#
# $$\operatorname{ff}(v) \;=\; W_2 \,\max(0,\; W_1 v + b_1) + b_2 .$$
#
# By convention the hidden layer has width 4e ([Vaswani et al.](https://arxiv.org/abs/1706.03762), section 3.3).

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `FeedForward`** &nbsp; ★☆☆ · 7 minutes · 3 points
#
# Write both methods. Both linear layers have a bias. Do not use `FinishedFeedForward` here.
#
# <details><summary>Hint 1: nothing special about positions</summary>
#
# `nn.Linear` works on the last axis and does the same at all indices of the other axes. The t positions need no loop
# and no reshape.
#
# </details>
# <details><summary>Hint 2: two widths</summary>
#
# `FeedForward(6)` has 24 hidden components, and `FeedForward(6, hidden=11)` has 11. The weight of `widen` is (24, 6)
# or (11, 6), the weight of `narrow` (6, 24) or (6, 11). With `hidden=3`: if `widen` returns (2, −3, 0.5), `narrow`
# receives (2, 0, 0.5).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "FeedForward", "locked": false, "schema_version": 3, "solution": true, "task": false}
class FeedForward(nn.Module):
    """Two linear layers with a ReLU between: `widen`, from e to hidden, and `narrow`, back.

    e: width. hidden: width of the hidden layer; None means 4e.
    """

    def __init__(self, e, hidden=None):
        super().__init__()
        ### BEGIN SOLUTION
        hidden = 4 * e if hidden is None else hidden
        self.widen = nn.Linear(e, hidden)
        self.narrow = nn.Linear(hidden, e)
        ### END SOLUTION

    def forward(self, x):
        """x: (b, t, e). Returns (b, t, e): the network applied at every position."""
        ### BEGIN SOLUTION
        return self.narrow(torch.relu(self.widen(x)))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_FeedForward", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(FeedForward)

# %% [markdown]
# The same plot, for your network alone and on top of the four attention layers. All layers are trained:

# %% mystnb={"image": {"alt": "Two panels, the same plot as before. Left, one network: the dots scatter around the V in a broad band. Right, attention and one network: the dots lie on the V, closely."}}
models = {}
for name, layers in {"one network": [], "attention and one network": four_layers()}.items():
    models[name] = Tower([*layers, Shortcut(FeedForward(32))]).to(device())
    print(f"loss of {name} {train(models[name], distance, 500):.2f}")
draw_answers({"The network alone scatters": models["one network"],
              "Both together follow the V": models["attention and one network"]})

# %% [markdown]
# **Only the two together bring the loss near zero.** The network alone sees one position at a time and cannot know the
# mean.
#
# ## Fault 3: large matrices make the vectors explode
#
# Every layer now adds something to its input. Alternate attention and networks, each with a shortcut, in two towers:
# one with PyTorch's initial weights, one with all matrices twice as large (still less than [He et al.,
# 2015](https://arxiv.org/abs/1502.01852), give ReLU networks).

# %% mystnb={"image": {"alt": "The size of the vectors against depth, 0 to 24, on a logarithmic axis. With PyTorch's weights it rises from 1 to about 4. With matrices twice as large it rises along a nearly straight line to more than one hundred million."}}
@torch.no_grad()
def enlarge(model, factor):
    for matrix in (p for p in model.parameters() if p.dim() == 2):
        matrix *= factor
    return model.to(device())

def pair():
    return nn.Sequential(Shortcut(SelfAttention(32, 4)), Shortcut(FinishedFeedForward(32)))

towers = {}
for name, factor in {"PyTorch's weights": 1, "matrices twice as large": 2}.items():
    torch.manual_seed(1)
    towers[name] = enlarge(Tower(pair() for _ in range(24)), factor)
draw_by_depth({"Large matrices: vectors explode": ("size", towers)})
for name, tower in towers.items():
    print(f"{name}: gradient of block 0 {gradient_by_depth(tower, x)[0]:.0f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A step of depth is a pair, attention and network. Size is the root of the mean square of the
# components.
#
# </div>
#
# **With doubled matrices the vectors explode**, to more than 10⁸ after 24 pairs. In float32 the gradient is no longer a
# number (nan): no training can begin.
#
# ## Cure 3: every layer reads vectors of one size
#
# **[Layer normalisation](../../site/glossary.md#layer-normalisation)** ([Ba, Kiros and Hinton, 2016, section
# 3](https://arxiv.org/abs/1607.06450)) shifts each vector $v$ of width e to mean 0 and divides it by its standard
# deviation:
#
# $$\mu = \frac1e \sum_{a=1}^{e} v_a, \qquad \sigma^2 = \frac1e \sum_{a=1}^{e} (v_a - \mu)^2,
# \qquad \operatorname{norm}(v)_a \;=\; \frac{v_a - \mu}{\sqrt{\sigma^2 + \epsilon}}\; \gamma_a + b_a .$$
#
# The small $\epsilon$ keeps a vector of equal components from becoming 0/0. The factors $\gamma$ and the offsets $b$
# (PyTorch's `weight` and `bias`) are learned, one of each for every component.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `LayerNorm`** &nbsp; fix · ★★☆ · 10 minutes · 4 points
#
# The code below runs, and differs from the formula in **two** places. Fix both, in `forward`. Each fix earns points on
# its own. Do not call `FinishedNorm`, or PyTorch's own norm (`nn.LayerNorm`, `F.layer_norm`).
#
# <details><summary>Hint 1: line by line</summary>
#
# Find the code of each piece of the formula: μ, σ², the denominator, γ and b. The code leaves some pieces to
# functions of PyTorch. What do these compute, according to their documentation?
#
# </details>
# <details><summary>Hint 2: two small experiments</summary>
#
# Compute the norm of the vector (0, 2) by hand, with ε = 0. What does the code return for it? And when the variance
# of a vector is far smaller than ε: what does the formula divide by, and what does the code?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "LayerNorm", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LayerNorm(nn.Module):
    """Normalises every vector by itself, then scales and shifts its components."""

    def __init__(self, e, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(e))
        self.bias = nn.Parameter(torch.zeros(e))

    def forward(self, x):
        """x: (b, t, e). Returns (b, t, e): each vector shifted to mean 0 and divided by the
        root of its variance plus epsilon, then times weight, plus bias.
        """
        ### BEGIN SOLUTION
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)    # (b, t, 1)
        return centred / torch.sqrt(variance + self.epsilon) * self.weight + self.bias
        ### STUDENT GETS
        # mean = x.mean(dim=-1, keepdim=True)
        # std = x.std(dim=-1, keepdim=True)
        # return (x - mean) / (std + self.epsilon) * self.weight + self.bias
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_LayerNorm", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(LayerNorm)

# %% [markdown]
# <details><summary>What was wrong, and why nothing complained</summary>
#
# `x.std()` divides the sum of squares by e − 1 instead of e, as one does to *estimate* a variance from a sample. And ε
# was added outside the root instead of under it: for very small vectors, σ + ε is far smaller than √(σ² + ε), and the
# result far too large ([Measured further](../../site/further.md#lesson-7) has the numbers).
#
# A model trained with such a norm can adapt to it. With the correct norm, the same weights then compute something
# slightly different in every layer, and no error is raised.
#
# </details>
#
# The same plot, now with a norm before every layer:

# %% mystnb={"image": {"alt": "The size of the vectors against depth, 0 to 24, on a logarithmic axis, three curves. Two are as before: with PyTorch's weights a rise to about 4, with matrices twice as large to more than one hundred million. With matrices twice as large and norms it rises to about 7."}}
def normed_pair():
    return nn.Sequential(*(Shortcut(nn.Sequential(FinishedNorm(32), layer))
                           for layer in (SelfAttention(32, 4), FinishedFeedForward(32))))

torch.manual_seed(1)
normed = enlarge(Tower(normed_pair() for _ in range(24)), 2)
towers["twice as large, with norms"] = normed
draw_by_depth({"Norms keep the size in bounds": ("size", towers)})
print(f"with norms: gradient of block 0 {gradient_by_depth(normed, x)[0]:.0f}")

# %% [markdown]
# **With norms, doubled matrices no longer make the vectors explode.** Without norms, a layer's output grows with the
# sum that it reads, so each layer multiplies the sum. With norms it adds a vector of about the same size each time.
#
# ## A block is two layers, each with a shortcut and a norm
#
# Where do the norms go? There are two conventions.

# %% tags=["hide-input"]
plots.diagrams.block_norms()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom. The thick line is the residual connection. Left: the norms are on it. Right:
# they are in the branches, and one more follows the last block.
#
# </div>

# %% [markdown]
# **Post-norm** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1): add, then normalise the sum:
#
# $$x \;\leftarrow\; \operatorname{norm}_1\big(x + \operatorname{attention}(x)\big),
# \qquad x \;\leftarrow\; \operatorname{norm}_2\big(x + \operatorname{ff}(x)\big) .$$
#
# **Pre-norm** (GPT-2; [Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf),
# section 2.3): normalise what goes *into* a layer, and leave the shortcut alone:
#
# $$x \;\leftarrow\; x + \operatorname{attention}\big(\operatorname{norm}_1(x)\big),
# \qquad x \;\leftarrow\; x + \operatorname{ff}\big(\operatorname{norm}_2(x)\big) .$$
#
# The vectors on the thick line are the **residual stream**. With pre-norm they may grow, but every layer reads a
# normalised copy. Which order is better?

# %% [markdown]
# ## By hand: a block adds to each vector twice
#
# The three words of the earlier lessons go through a pre-norm block with two heads. Here `unify`, `widen` and `narrow`
# change no number, so the network is just a ReLU. Fill in the three missing numbers; the next cell prints them.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, W_V, X

by_hand = FinishedBlock(4, 2, pre_norm=True)
a, ff = by_hand.attention, by_hand.feed_forward
with torch.no_grad():
    for layer in (a.unify, ff.widen, ff.narrow):
        nn.init.eye_(layer.weight)
        layer.bias.zero_()
    for layer, matrix in ((a.to_queries, W_Q), (a.to_keys, W_K), (a.to_values, W_V)):
        layer.weight.copy_(matrix.T)
    normed = by_hand.norm1(X)
    attended = a(normed[None])[0]
    halfway = X + attended
    normed_again = by_hand.norm2(halfway)
    added = ff(normed_again)
plots.number_grids(
    "three-words", "Three words through a transformer block", THREE_WORDS,
    [{"*x*": X, "norm(*x*)": normed}, {"attention": attended, "*x* + attention": halfway},
     {"norm": normed_again, "ReLU": added}, {"*y*": halfway + added}],
    empty=[("norm", 2, 1), ("ReLU", 2, 1), ("*y*", 2, 1)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From left to right, then down: the vectors of the three words after each step. The last grid, *y*,
# is the sum of two others: *x* + attention, and ReLU.
#
# </div>

# %% tags=["hide-cell", "nbval-check-output"]
for name, grid in {"norm": normed_again, "ReLU": added, "y": halfway + added}.items():
    print(f"{name} of ends, second component: {grid[2, 1]:.2f}")
whole = by_hand(X[None])[0]
print("as the whole block computes it:", torch.allclose(whole, halfway + added, atol=1e-5))

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `TransformerBlock`** &nbsp; ★★☆ · 15 minutes · 6 points
#
# Write the block in both orders. Its pieces are finished: `SelfAttention(e, h)`, called as `attention(x, mask)`,
# `FinishedNorm(e)` and `FinishedFeedForward(e)`. Do not use whole blocks, neither `FinishedBlock` nor PyTorch's
# `nn.TransformerEncoderLayer`.
#
# Pass the mask on to the attention, even if it is None.
#
# **[Dropout](../../site/glossary.md#dropout)** guards against overfitting: in training, each component of a layer's
# output is zeroed with probability p, and the others are multiplied by 1/(1 − p), as `nn.Dropout` does. Apply it once
# to the output of each layer. A dropout of 0 or 1 is allowed.
#
# <details><summary>Hint 1: four lines</summary>
#
# Each order takes two lines, one for each layer and its shortcut. The second line starts from the result of the
# first.
#
# </details>
# <details><summary>Hint 2: an example with simple layers</summary>
#
# Let x be (1, 3). Replace attention and network by a layer that adds the two components and returns the sum twice:
# (1, 3) becomes (4, 4). Both norms only subtract the mean.
#
# - Pre-norm: the norm of (1, 3) is (−1, 1), for which the layer returns (0, 0), so x is still (1, 3). The second half
#   does the same.
# - Post-norm: the layer returns (4, 4), the sum is (5, 7), and its norm (−1, 1). The second layer reads this, returns
#   (0, 0), and the result is (−1, 1).
#
# With a dropout of 1 in training both layers contribute (0, 0): pre-norm returns (1, 3), post-norm (−1, 1).
# `nn.Dropout` is a module that follows `.train()` and `.eval()`; it has no parameters, and one can serve both layers.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "TransformerBlock", "locked": false, "schema_version": 3, "solution": true, "task": false}
class TransformerBlock(nn.Module):
    """Attention and a feed-forward network, each with a shortcut and a norm.

    Submodules: `attention` with its norm `norm1`, `feed_forward` with its norm `norm2`.
    e: width. h: heads. pre_norm: True for pre-norm, False for post-norm.
    dropout: the probability that a component of a layer's output is dropped, in training,
    before it is added.
    """

    def __init__(self, e, h, pre_norm=False, dropout=0.0):
        super().__init__()
        ### BEGIN SOLUTION
        self.pre_norm = pre_norm
        self.attention = SelfAttention(e, h)
        self.norm1 = FinishedNorm(e)
        self.feed_forward = FinishedFeedForward(e)
        self.norm2 = FinishedNorm(e)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(self, x, mask=None):
        """x: (b, t, e). mask: booleans, (t, t) or (b, 1, t), True where position i may look
        at position j; None means everywhere. Returns (b, t, e).
        """
        ### BEGIN SOLUTION
        if self.pre_norm:
            x = x + self.dropout(self.attention(self.norm1(x), mask))
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_TransformerBlock", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(TransformerBlock)

# %% [markdown]
# The folded cell compares it, and the numbers by hand, with PyTorch's block.

# %% tags=["hide-input", "nbval-check-output"]
@torch.no_grad()
def as_pytorchs(block):
    """PyTorch's block with the same weights; its three projections are one matrix."""
    e, h, a = block.norm1.weight.shape[0], block.attention.h, block.attention
    other = nn.TransformerEncoderLayer(e, h, 4 * e, dropout=0.0, batch_first=True,
                                       norm_first=block.pre_norm).to(device())
    three = [a.to_queries.weight, a.to_keys.weight, a.to_values.weight]
    other.self_attn.in_proj_weight.copy_(torch.cat(three))
    other.self_attn.in_proj_bias.zero_()
    pairs = [(other.self_attn.out_proj, a.unify), (other.linear1, block.feed_forward.widen),
             (other.linear2, block.feed_forward.narrow),
             (other.norm1, block.norm1), (other.norm2, block.norm2)]
    for theirs, mine in pairs:
        theirs.load_state_dict(mine.state_dict())
    return other

for pre_norm in (False, True):
    finished = FinishedBlock(32, 4, pre_norm).to(device())
    mine = TransformerBlock(32, 4, pre_norm).to(device())
    mine.load_state_dict(finished.state_dict())
    agree = torch.allclose(mine(x), as_pytorchs(finished)(x), atol=1e-5)
    print(f"pre_norm={pre_norm}: the same as PyTorch's block: {agree}")
theirs = as_pytorchs(by_hand).cpu()(X[None])[0]
agree = torch.allclose(theirs, halfway + added, atol=1e-5)
print(f"by hand: the same as PyTorch's block: {agree}")

# %% [markdown]
# ## A stack of blocks is a transformer
#
# A **transformer** is any architecture for a set of connected units, such as words or patches of an image, in which the
# units interact **only through attention** (after [Bloem, 2019](https://peterbloem.nl/blog/transformers)).
#
# Each block needs **weights of its own**: `[block] * 24` holds one block 24 times, and the model runs, with a
# twenty-fourth of the parameters. And with pre-norm, the stack needs **one more norm at the end**, or the layer after
# it would read vectors that have never been normalised.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `Transformer`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Stack `depth` blocks of the class `FinishedBlock`, which takes the same arguments as your `TransformerBlock`. All
# blocks get the same mask. With post-norm there is no final norm, and no parameter for one.
#
# <details><summary>Hint 1: a list that PyTorch can see</summary>
#
# PyTorch registers attributes that are parameters or modules. A Python list is neither; `nn.ModuleList` is a module.
# Each of its entries has to be a block of its own.
#
# </details>
# <details><summary>Hint 2: the parameters of two stacks</summary>
#
# `Transformer(8, 2, depth=2, pre_norm=True)` has parameters whose names begin with `blocks.0.`, `blocks.1.` and
# `norm.`. With `pre_norm=False` there are none that begin with `norm.`; the attribute itself may be None or
# `nn.Identity()`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "Transformer", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Transformer(nn.Module):
    """A stack of `blocks`, each with its own weights.

    With pre_norm=True, a final norm follows them, stored as `norm`.
    e, h, pre_norm, dropout: passed on to every block. depth: the number of blocks.
    """

    def __init__(self, e, h, depth, pre_norm=False, dropout=0.0):
        super().__init__()
        ### BEGIN SOLUTION
        blocks = [FinishedBlock(e, h, pre_norm, dropout) for _ in range(depth)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = FinishedNorm(e) if pre_norm else None
        ### END SOLUTION

    def forward(self, x, mask=None):
        """x: (b, t, e). mask: as a block takes it. Returns (b, t, e)."""
        ### BEGIN SOLUTION
        for block in self.blocks:
            x = block(x, mask)
        return x if self.norm is None else self.norm(x)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_Transformer", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(Transformer)

# %% [markdown]
# ## With large untrained matrices, only pre-norm keeps the positions apart
#
# The first picture again, with your stacks in both orders:

# %% mystnb={"image": {"alt": "Two panels with the difference between positions against depth, 0 to 24, on logarithmic axes, each with three curves. Left, PyTorch's weights: with attention alone it falls to one ten-millionth within three layers; with pre-norm it ends near 0.7, with post-norm near a third. Right, matrices twice as large: with attention alone it falls to one ten-millionth within five layers; with post-norm it falls along a nearly straight line, to below one ten-thousandth; with pre-norm it stays above a third."}}
stacks = {}
for factor in (1, 2):
    torch.manual_seed(1)
    stacks[factor] = {
        "attention alone": enlarge(Tower(SelfAttention(32, 4) for _ in range(24)), factor),
        "pre-norm": enlarge(Transformer(32, 4, 24, pre_norm=True), factor),
        "post-norm": enlarge(Transformer(32, 4, 24, pre_norm=False), factor),
    }
draw_by_depth({"Both orders keep positions apart": ("difference", stacks[1]),
               "Twice as large: only pre-norm": ("difference", stacks[2])})

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: PyTorch's initial weights. Right: all matrices twice as large. One seed, no mask.
#
# </div>
#
# **Post-norm rescales the shortcut, too.** Each norm brings the whole sum back to size 1, and shrinks what a vector has
# carried up from below. With pre-norm the stream grows. With this growth taken away, pre-norm makes the positions
# alike, too ([Measured further](../../site/further.md#lesson-7)).
#
# Deep post-norm stacks are harder to train, too. They need a **[warm-up](../../site/glossary.md#warm-up)**: a
# **[learning rate](../../site/glossary.md#learning-rate)** (how far a step goes) that starts near 0 ([Xiong et al.,
# 2020](https://arxiv.org/abs/2002.04745)). GPT-2 and most models since use pre-norm, and so does your model.

# %% [markdown]
# ## Your model so far
#
# Train your stack, three pre-norm blocks with a causal mask, on the text of lessons 1 to 6.

# %% tags=["hide-input"]
def noted_before(norm):
    """A list that gets, in each training step, the difference between positions before this
    norm, which is the last of a stack.
    """
    noted = []

    def note(norm, inputs):
        if norm.training:
            noted.append(difference(inputs[0]))

    norm.register_forward_pre_hook(note)
    return noted

# %% mystnb={"image": {"alt": "A scoreboard of the models of lessons 1 to 7, and of a plain average, against bits per byte. Three blocks, at the top, are farthest left, near 2.3, left of the line of gzip. The models of lessons 4 to 6 are below 3, those of lessons 1 to 3 between 3.3 and 3.5, the plain average near 4.4."}}
from helpers.ladder import ByteModel, Ladder, measured

ladder = Ladder(check)
stack_class = ladder.own(Transformer)
torch.manual_seed(0)
stack = stack_class(64, 4, depth=3, pre_norm=True)
noted = {"nothing": noted_before(stack.norm)}
ladder.climb(ByteModel(stack, mask=True))
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Farther left is better. The point is your run, a fourth beside our three (ticks). The rows
# below the top had three times as many steps.
#
# </div>

# %% [markdown]
# ## A piece is worth what is lost without it
#
# Take a piece away, train what is left from the start, and measure: this is an **ablation**.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `ablated`** &nbsp; ★★★ · 18 minutes · 6 points
#
# Return the given block without one piece, as a function or a module.
#
# | `piece` | what changes |
# |---|---|
# | `"attention"` | the output of the attention is replaced by zeros |
# | `"network"` | the output of the feed-forward network is replaced by zeros |
# | `"shortcuts"` | both sums are the layer's output alone |
# | `"norms"` | both norms pass their input on unchanged |
#
# All else stays, in the block's own order: post-norm without attention still applies both norms. Leave the given block
# unchanged. The remaining pieces are the block's own: gradients reach them, and when their weights change, so does the
# result. The block comes without dropout.
#
# <details><summary>Hint 1: the four lines, again</summary>
#
# Mark in the two lines of each order what changes for each piece. A function that is defined inside `ablated` and
# returned remembers `block` and `piece`. Copies do not work here: `copy.deepcopy` shares too little with the block,
# `copy.copy` too much.
#
# </details>
# <details><summary>Hint 2: an example with simple layers</summary>
#
# Let x be (1, 3) and the order pre-norm. The attention doubles its input, the network adds 1 to each component, the
# norms subtract the mean.
#
# - The whole block: the norm is (−1, 1), doubled (−2, 2), the sum (−1, 5). Its norm is (−3, 3), plus 1 is (−2, 4), and
#   the result (−3, 9).
# - Without attention the result is (1, 5), without the network (−1, 5).
# - Without shortcuts it is (−1, 3): (−1, 1), (−2, 2), again (−2, 2), then plus 1.
# - Without norms it is (7, 19): (2, 6), (3, 9), (4, 10), and the sum.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "ablated", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ablated(block, piece):
    """A block without one of its pieces.

    block: with `attention`, `norm1`, `feed_forward`, `norm2`, `pre_norm`, as in exercise 4.
    piece: "attention", "network", "shortcuts" or "norms".
    Returns what is called as left(x) or left(x, mask). x: (b, t, e). left(x): (b, t, e).
    """
    ### BEGIN SOLUTION
    def attention(v, mask):
        return torch.zeros_like(v) if piece == "attention" else block.attention(v, mask)

    def network(v, mask):
        return torch.zeros_like(v) if piece == "network" else block.feed_forward(v)

    def left(x, mask=None):
        for layer, norm in ((attention, block.norm1), (network, block.norm2)):
            norm = nn.Identity() if piece == "norms" else norm
            shortcut = 0 if piece == "shortcuts" else x
            if block.pre_norm:
                x = shortcut + layer(norm(x), mask)
            else:
                x = norm(shortcut + layer(x, mask))
        return x

    return left
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_ablated", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(ablated)

# %% [markdown]
# <div class="card">
#
# **Prediction · `norms_without_shortcuts`** &nbsp; 1 minute · no points
#
# Train your three blocks again, without shortcuts. Every layer still reads vectors of size 1, as the norms make them.
# How much do the positions differ after the last block, once the stack is trained?
#
# - **A.** About as much as with shortcuts: three blocks are not deep.
# - **B.** About a tenth as much.
# - **C.** Hardly at all: less than a thousandth as much.
# </div>

# %% nbgrader={"grade": false, "grade_id": "norms_without_shortcuts", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
norms_without_shortcuts = "C"
### STUDENT GETS
# norms_without_shortcuts = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"]
from helpers.data.recorded import recorded

def draw_ablations(lost, noted):
    """Left, bits per byte without each piece; right, the difference between positions in
    every 20th step of the training.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.6))
    for place, bits in enumerate(lost.values()):
        look = {"marker": plots.MARKERS[place], "color": plots.COLOURS[place]}
        left.plot(bits, -place, markersize=7, **look)
    references = recorded("ladder")["result"]["references"]
    for name in ("order 0", "order 1"):
        left.axvline(references[name], color="#555555", linewidth=1, linestyle=":", zorder=0)
        left.text(references[name], -4.45, name, ha="right", fontsize=8.5, color="#333333")
    names = ["whole stack", *(f"without {piece}" for piece in list(lost)[1:])]
    left.set_yticks([-place for place in range(len(names))], labels=names)
    left.set(xlabel="bits per byte", ylim=(-4.6, 0.6), title="Without shortcuts: order 0")
    left.grid(False, axis="y")
    lines = {piece: (range(0, len(some), 20), some[::20]) for piece, some in noted.items()}
    plots.curves(lines, "training step", "difference between positions", log="y",
                 title="Without shortcuts: all alike", ax=right)
    right.legend().remove()
    plt.show()

# %% [markdown]
# Take each piece out of all three blocks; without norms, the stack's last one goes, too.

# %% mystnb={"image": {"alt": "Two panels. Left, bits per byte: the whole stack is at 2.3, without norms 2.4, without the network 2.7, without attention 3.5, on the line of order 1, without shortcuts 4.5, on the line of order 0. Right, the difference between positions against the training step, 0 to 1,200, on a logarithmic axis: without shortcuts it falls from above a tenth to a few millionths; the other four curves dip in the first steps, one of them below a tenth, and end close to 1."}}
class Ablated(nn.Module):
    def __init__(self, stack, piece):
        super().__init__()
        self.stack = stack
        self.left = [ablated(block, piece) for block in stack.blocks]
        self.norm = nn.Identity() if piece == "norms" else stack.norm

    def forward(self, x, mask):
        for left in self.left:
            x = left(x, mask)
        return self.norm(x)

lost = {"nothing": ladder.score.bits}
for piece in ("norms", "network", "attention", "shortcuts"):
    torch.manual_seed(0)
    stack = Ablated(stack_class(64, 4, depth=3, pre_norm=True), piece)
    noted[piece] = noted_before(stack.norm)
    lost[piece] = measured(ByteModel(stack, mask=True), 1200)[0]
draw_ablations(lost, noted)
told = ", ".join(f"{piece}: {bits:.2f}" for piece, bits in lost.items())
print(f"bits per byte without {told}")
first, last = noted["shortcuts"][0], noted["shortcuts"][-1]
print(f"difference without shortcuts: {first:.2g} in the first step, {last:.2g} in the last")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One seed. Left: held-out [bits per byte](../../site/glossary.md#bits-per-byte) after 1,200 steps.
# Right: the difference after the last block, in each training step; colours as on the left. All curves dip at first;
# all but one return.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_norms_without_shortcuts", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("norms_without_shortcuts", norms_without_shortcuts)

# %% [markdown]
# **Training without shortcuts makes the positions alike.** With nearly the same vector everywhere, a
# model can hardly beat *order 0*, the frequencies of single bytes. That is its score. Why training makes them
# alike, the picture does not show.
#
# **Without attention, the blocks see only the last byte**, and reach *order 1*, the frequencies after each byte.
# **Without the network** they lose a third of a bit.
#
# **Without norms three blocks lose less than a tenth.** They start with PyTorch's weights, with which nothing exploded.
# Twelve blocks with matrices twice as large diverge without norms, in three runs of three. In a single block norms
# are worth half a bit: fault 3 is not all they cure (both in [Measured further](../../site/further.md#lesson-7)).

# %% [markdown]
# ## Optional: the gain, and the number of parameters
#
# In the player, vary the depth and the *gain*, the width times the variance of a matrix's entries.

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("depth")

# %% [markdown]
# **A block has about 12e² parameters**: 4e² in the attention and 8e² in the feed-forward network. The biases and norms
# add $10e$.

# %% tags=["nbval-check-output"]
for e, h in ((32, 4), (512, 8), (768, 12)):
    counted = sum(p.numel() for p in FinishedBlock(e, h).parameters())
    total = 12 * e * e + 10 * e
    share = 12 * e * e / counted
    print(f"e = {e:>3}: {total:>9,} by formula, {counted:>9,} by count; 12e² is {share:.1%}")

# %% [markdown]
# ## What you can do now
#
# **What does a block have that attention lacks?** Attention mixes positions, and no other piece does. Around it,
#
# - **shortcuts** keep the positions apart and pass the gradient on,
# - **the network** computes, at each position, what averages cannot,
# - **norms** keep the vectors from exploding in a deep stack with large matrices. There, before training, only pre-norm
#   also keeps the positions apart.
#
# In your trained stack of three blocks (one seed), the shortcuts were worth most: without them the positions became
# alike, here by training. The norms were worth least.
#
# Next, a stack of your blocks learns to judge a review.
#
# **A question to think about**
#
# <details><summary>Take the feed-forward networks out of a transformer. Is what remains linear in x?</summary>
#
# No. The attention weights depend on x through the softmax, and each norm divides by a number that depends on x.
#
# </details>
#
# **Further reading**
#
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, section 4: attention
#   compared with recurrence and convolution.
#
# **Next:** [lesson 8, *A classifier*](../08_classifier/08_classifier.ipynb)
