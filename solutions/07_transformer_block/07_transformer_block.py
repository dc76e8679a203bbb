# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 7 · The transformer block
#
# *Attention, a little network, two shortcuts*
#
# One layer of attention computes weighted averages. A language model stacks many layers. But a stack of attention
# layers alone collapses: after a few layers all positions hold nearly the same vector, and from that depth on, queries
# and keys get almost no gradient. Here you watch the stack collapse, add what is missing piece by piece, and
# measure after each piece. The result is the transformer block.
#
# | | |
# |---|---|
# | **You will build** | an instrument that measures gradients by depth, the feed-forward network, a layer norm that agrees with PyTorch's, the block in both of its orders, and the stack |
# | **You need** | [lessons 4](../04_multi_head/04_multi_head.ipynb) to [6](../06_positions/06_positions.ipynb), and how to write an `nn.Module` |
# | **It takes** | about 120 minutes: six exercises, one of them with two bugs to fix, and two predictions; 23 points |
# | **It computes** | for a few seconds a cell, on any laptop; two cells take up to a minute each, and you may stop them |
#
# Letters, as in the [notation table](../../site/notation.md): b batch, t positions, e width, h heads, and d = e/h,
# the width of one head. The masked multi-head attention of lessons 4 and 5 is ready to use as `SelfAttention`.
# Layers, blocks and positions are counted from 0.

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
# ## What makes it a transformer
#
# Here is a working definition, after [Bloem (2019)](https://peterbloem.nl/blog/transformers). A **transformer** is
# any architecture for a set of connected units (the words of a sentence, the patches of an image) in which the units
# interact **only through self-attention**. Everything else in a transformer treats each unit by itself.
#
# There are older ways to let positions interact. A **recurrent** network reads the sequence position by position and
# carries a state along. A **convolution** lets each position see a few neighbours, so it needs several layers to see
# far. Recurrence, convolution and self-attention differ in how many steps a signal takes between two positions:

# %% mystnb={"image": {"alt": "Three drawings of seven positions. Recurrent: one arrow up from the first input, then six arrows along the row of states to the last output. Convolution: three layers of arrows to near neighbours; the path climbs in three steps. Self-attention: every input has an arrow to every output; the path is a single arrow from the first to the last."}}
plots.path_row(t=7, reach=2)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Inputs are at the bottom, outputs at the top. Arrows are connections, the thick ones a shortest
# path from the first position to the last. The convolution sees two neighbours on either side, so three layers carry a
# signal over six positions.
#
# </div>
#
# <details><summary>What recurrence, convolution and self-attention cost</summary>
#
# For t positions of width e, and convolutions that see k positions
# ([Vaswani et al., 2017, table 1](https://arxiv.org/abs/1706.03762)):
#
# | | longest path between two positions | sequential steps | operations in a layer |
# |---|---|---|---|
# | recurrent | $O(t)$ | $O(t)$ | $O(t\,e^2)$ |
# | convolution | $O(\log_k t)$ if dilated, else $O(t/k)$ | $O(1)$ | $O(k\,t\,e^2)$ |
# | self-attention, without its projections | $O(1)$ | $O(1)$ | $O(t^2 e)$ |
#
# Like a convolution, attention computes all positions in parallel. Its price is in the last column: the square of t.
#
# </details>

# %% [markdown]
# ## A tower that falls down
#
# Stack 24 self-attention layers, each with its own weights. We call whatever is stacked a **block**; here a block is
# one attention layer. Send sequences of 16 random vectors through the stack, and measure two numbers after every block:
# the size of the vectors (the root of the mean square of their components), and how much the positions differ,
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

@torch.no_grad()
def by_depth(model, x):
    """Size of the vectors, and difference between positions, before and after each block."""
    sizes, differences = [], []
    for block in [nn.Identity(), *model.blocks]:
        x = block(x)
        sizes.append(x.square().mean().sqrt().item())
        differences.append(difference(x))
    return sizes, differences

# %% tags=["hide-input"]
def draw_by_depth(towers):
    height = 3 if len(towers) == 1 else 4.2
    figure, axes = plt.subplots(1, 2, figsize=(6, height))
    measured = {name: by_depth(tower, x) for name, tower in towers.items()}
    for k, title in enumerate(["size of the vectors", "difference between positions"]):
        lines = {name: (range(len(m[k])), m[k]) for name, m in measured.items()}
        plots.curves(lines, "blocks passed", "", log="y", title=title, ax=axes[k])
    if len(towers) > 1:
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=2)
        for ax in axes:
            ax.legend().remove()
    plt.show()

# %% mystnb={"image": {"alt": "Two panels against the number of blocks passed, 0 to 24, with a logarithmic axis. Left, the size of the vectors drops from 1 to about a tenth in the first two blocks and stays there. Right, the difference between positions drops from 1 to one ten-millionth within a few blocks and stays there."}}
torch.manual_seed(1)
x = torch.randn(8, 16, 32).to(device())    # (b, t, e)
bare = Tower(SelfAttention(32, 4) for _ in range(24)).to(device())
draw_by_depth({"": bare})

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From the input, at 0, to the top of the tower, on logarithmic axes. Left: the vectors lose most of
# their size in the first block; then the biases of `unify` keep the size at about a tenth. Right: the line levels off
# after three blocks, because float32 resolves no smaller difference.
#
# </div>
#
# After three blocks all 16 positions of a sequence hold the same vector, as far as float32 can tell. All outputs of a
# block are averages of the same values. When the vectors are similar, so are their attention weights, and the averages
# are nearly equal. So, until float32 can resolve no more, each block shrinks the differences by a larger factor than
# the block before ([Dong, Cordonnier and Loukas, 2021](https://arxiv.org/abs/2103.03404)).
#
# Does the gradient still reach the lower layers of such a tower?

# %% [markdown]
# ## An instrument: gradient by depth
#
# Let the task be to output the sequence **backwards**. The tower is permutation equivariant (lesson 6), so it cannot
# learn this, but we need only gradients. The loss is the mean over rows (sequences), positions i, components a:
#
# $$L
# \;=\; \operatorname*{mean}_{\text{row},\,i,\,a}\;\big(y_{\text{row},\,i,\,a} - x_{\text{row},\,t-1-i,\,a}\big)^2,
# \qquad y = \text{model}(x).$$
#
# Block $m$ has parameters $\theta_m$: all its weights and biases, taken together as one long vector. The length of
# the gradient with respect to $\theta_m$ tells how strongly the loss pulls on the block:
#
# $$g_m \;=\; \left\lVert \frac{\partial L}{\partial \theta_m} \right\rVert
# \;=\; \sqrt{\sum_{\theta\,\in\,\text{parameters of block } m} \;\;
# \sum_{\text{entries}} \left(\frac{\partial L}{\partial \theta}\right)^{\!2}} .$$
#
# **What every check asks.** The inputs stay unchanged, and new tensors are created on the input's device. In
# exercises 2 to 5, gradients must flow to the inputs and to the parameters. Give layers and parameters the names in the
# docstring: the check finds them by name and fills in its own values.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `gradient_by_depth`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Return $g_m$ for every block of a model. The loss is written for you. The parameters of the model may already hold
# gradients in their `.grad`; such old gradients must not affect the result. You may clear or overwrite them. The result
# is one tensor.
#
# <details><summary>Hint 1: two ways to gradients</summary>
#
# `torch.autograd.grad(loss, list_of_parameters)` returns one gradient for each parameter and stores nothing.
# `loss.backward()` adds to the `.grad` of every parameter, so clear the old gradients first: `model.zero_grad()`.
#
# </details>
# <details><summary>Hint 2: an example with two blocks</summary>
#
# Suppose that in block 0 the gradient of the weight is (3, 0) and that of the bias is (4), and in block 1 they are
# (6, 2) and (3). The result is (5, 7): √(3² + 0² + 4²) and √(6² + 2² + 3²). Lengths do not simply add: 3 + 4 is not 5.
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
# <div class="card">
#
# **Prediction · `pull_at_the_bottom`** &nbsp; 1 minute · no points
#
# In the tower of 24 attention layers, the gradient of block 23, next to the loss, has a length of about 0.05. How
# large is the gradient of block 0, at the bottom?
#
# - **A.** Less than a billionth of 0.05.
# - **B.** Between a billionth and a tenth of 0.05.
# - **C.** More than a tenth of 0.05: all 24 blocks contribute to the same result.
# </div>

# %% nbgrader={"grade": false, "grade_id": "pull_at_the_bottom", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
pull_at_the_bottom = "A"
### STUDENT GETS
# pull_at_the_bottom = ...    # "A", "B" or "C"
### END SOLUTION

# %%
pull = gradient_by_depth(bare, x)
for block in (0, 8, 16, 20, 22, 23):
    print(f"block {block:>2}: gradient {pull[block].item():.1e}")

# %% nbgrader={"grade": true, "grade_id": "check_pull_at_the_bottom", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("pull_at_the_bottom", pull_at_the_bottom)

# %% [markdown]
# The gradient of block 0 is nearly eleven orders of magnitude smaller than that of block 23. Is averaging the cause?
#
# Each block does two things: it averages over positions, and it multiplies by two matrices, `to_values` and `unify`.
# PyTorch gives the entries of both matrices a variance of 1/(3e), so each matrix shrinks a vector to about $1/\sqrt 3$
# of its length. The next cell makes four new towers: with and without averaging, each with PyTorch's weights and with
# weights $\sqrt 3$ times as large. The larger weights have variance 1/e and on average do not shrink a vector.

# %%
class WithoutAveraging(nn.Module):
    """The two linear maps of an attention, and no attention."""

    def __init__(self, attention):
        super().__init__()
        self.to_values, self.unify = attention.to_values, attention.unify

    def forward(self, x):
        return self.unify(self.to_values(x))

def four_towers():
    for larger in (1, 3**0.5):
        for averages in (True, False):
            torch.manual_seed(1)
            blocks = [SelfAttention(32, 4) for _ in range(24)]
            for block in blocks:
                block.to_values.weight.data *= larger
                block.unify.weight.data *= larger
            if not averages:
                blocks = [WithoutAveraging(block) for block in blocks]
            yield larger, averages, Tower(blocks).to(device())

print("weights   averages   difference after 3, after 24   gradient of block 0 / block 23")
for larger, averages, tower in four_towers():
    pull = gradient_by_depth(tower, x)
    apart = by_depth(tower, x)[1]
    print(f"times {larger:.2f}  {'yes' if averages else 'no':>5}"
          f" {apart[3]:>18.1e} {apart[24]:>10.1e} {pull[0] / pull[-1]:>18.1e}")

# %% [markdown]
# Look at the last column first. Whether the gradient fades depends on the scale of the weights; averaging hardly
# matters. With PyTorch's weights, every block multiplies the gradient by about a third. With the larger weights, the
# gradient of block 0 is about as large as the gradient of block 23.
#
# Now look at the two columns of differences. With averaging, the positions collapse within three blocks, at either
# scale of the weights. (Without averaging, PyTorch's weights also make the positions collapse, but later: the vectors
# shrink until little but the bias is left.)
#
# What does the collapse do to learning? Take the third tower of the table, which averages but whose gradient does not
# fade. Measure the gradient of each of the four matrices separately:

# %%
def print_gradients_of_matrices(tower):
    loss = (tower(x) - x.flip(1)).square().mean()
    for block in (0, 1, 2, 8, 23):
        told = []
        for name, weight in tower.blocks[block].named_parameters():
            if weight.dim() == 2:
                (gradient,) = torch.autograd.grad(loss, weight, retain_graph=True)
                told.append(f"{name.split('.')[-2]} {gradient.norm():.1e}")
        print(f"block {block:>2}: " + ", ".join(told))

towers = {averages: tower for larger, averages, tower in four_towers() if larger > 1}
print_gradients_of_matrices(towers[True])

# %% [markdown]
# From block 2 on, `to_queries` and `to_keys` get less than a ten-millionth of the gradient of `to_values`. When all
# positions hold the same vector, it does not matter where a position looks, so queries and keys cannot change the
# loss ([Noci et al., 2022](https://arxiv.org/abs/2206.03126)).
#
# So the stack of attention layers has two faults. Its initial weights make the gradient fade from block to
# block. And averaging makes the positions equal, so queries and keys get almost no gradient.
#
# In the player below, vary the depth and the *gain*: the width times the variance of a matrix's entries. How far from
# 1 may the gain be before the gradient of a deep tower vanishes or explodes?

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("depth")

# %% [markdown]
# On average a matrix multiplies a length by the root of the gain. A block has two matrices, so it multiplies the
# gradient by the gain; 24 blocks multiply it by the gain to the power of 24. A gain of 0.9 leaves 8 % of the
# gradient, and a gain of 1.1 makes it ten times as large. The deeper the tower, the closer to 1 the gain has to be.

# %% [markdown]
# ## A residual connection
#
# Let a layer *add* to its input instead of replacing it:
#
# $$y \;=\; x + f(x), \qquad\qquad \frac{\partial y}{\partial x} \;=\; I + \frac{\partial f}{\partial x} .$$
#
# The identity $I$ is what matters. Each input vector reaches the top as one term of a sum. On the way back, one term of
# the gradient passes all blocks unchanged, and the layers add further terms. A layer learns only what to add, the
# *residual* ([He et al., 2016, section 3](https://arxiv.org/abs/1512.03385)). Hence the name **[residual
# connection](../../site/glossary.md#residual-connection)**, or **shortcut**.

# %% mystnb={"image": {"alt": "Length of the gradient against block number from 0 to 23, logarithmic. Without shortcuts it rises from below one trillionth at the bottom to about a twentieth at the top, nearly along a straight line. With shortcuts it is nearly level: about 2 at the bottom, 1 at the top."}}
class Shortcut(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return x + self.layer(x)

torch.manual_seed(1)
with_shortcuts = Tower(Shortcut(SelfAttention(32, 4)) for _ in range(24)).to(device())
towers = {"without shortcuts": bare, "with shortcuts": with_shortcuts}
for name, tower in towers.items():
    print(f"{name}: difference after 24 blocks {by_depth(tower, x)[1][-1]:.1e}")
lines = {name: (range(24), gradient_by_depth(tower, x)) for name, tower in towers.items()}
plots.curves(lines, "block (0 is next to the input)", "length of the gradient", log="y")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One value per block; the input is on the left, the output on the right. Without shortcuts the
# curve is nearly a straight line on the logarithmic axis: each block shrinks the gradient by about the same factor.
# With shortcuts the gradient passes through all 24 blocks without shrinking.
#
# </div>
#
# Do queries and keys get their gradient back?

# %%
print_gradients_of_matrices(with_shortcuts)

# %% [markdown]
# The gradients of `to_queries` and `to_keys` are now about a tenth as large as the gradient of `to_values`. With
# PyTorch's initial weights, shortcuts cure both faults.

# %% [markdown]
# ## A little network
#
# What can attention layers with shortcuts compute? For given attention weights, attention is linear in the values: it
# only averages them. Train four such layers to return the distance of each component from its mean over the
# positions. The folded cell defines `train(model, target, steps)`, which takes steps of
# [Adam](../../site/glossary.md#adam) on fresh random sequences.

# %% tags=["hide-input"]
def train(model, target, steps, rate=0.01, warm_up=1):
    """Trains with Adam, on a fresh batch (16, 8, 32) in each step, and returns the losses.

    The learning rate rises linearly over the first `warm_up` steps.
    The stop button ends the training early.
    """
    torch.manual_seed(0)
    optimiser, losses = torch.optim.Adam(model.parameters()), []
    try:
        for step in progress(range(steps), "training"):
            batch = torch.randn(16, 8, 32).to(device())
            loss = (model(batch) - target(batch)).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.param_groups[0]["lr"] = rate * min(1, (step + 1) / warm_up)
            optimiser.step()
            losses.append(loss.item())
    except KeyboardInterrupt:
        print(f"Stopped after {len(losses)} of {steps} steps.")
    return losses

def last(losses):
    """The mean of the last 20 losses."""
    return torch.tensor(losses[-20:]).mean()

# %%
def distance(x):
    return (x - x.mean(dim=1, keepdim=True)).abs()

def four_layers():
    torch.manual_seed(2)
    return [Shortcut(SelfAttention(32, 4)) for _ in range(4)]

losses = train(Tower(four_layers()).to(device()), distance, 500)
constant = 7 / 8 * (1 - 2 / torch.pi)    # of 8 positions: 7/8 is the variance of x − mean
print(f"loss of the best constant {constant:.2f}, of attention {last(losses):.2f}")

# %% [markdown]
# After 500 steps the stack is no better than the best constant. The missing piece is the **[feed-forward
# network](../../site/glossary.md#feed-forward-network)**: two linear layers with a ReLU between them, applied to
# **every position by itself**, with the same weights at every position:
#
# $$\operatorname{ff}(v) \;=\; W_2 \,\max(0,\; W_1 v + b_1) + b_2 .$$
#
# By convention the hidden layer has width 4e ([Vaswani et al.](https://arxiv.org/abs/1706.03762), section 3.3: e = 512,
# hidden 2048).

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
# Train your network for 500 steps, first alone, then on top of four attention layers with the same initial weights as
# before:

# %%
for name, layers in {"one network": [], "attention and one network": four_layers()}.items():
    model = Tower([*layers, Shortcut(FeedForward(32))]).to(device())
    print(f"loss of {name} {last(train(model, distance, 500)):.2f}")

# %% [markdown]
# The network alone sees one position at a time, so it cannot know the mean. Only attention and a network together solve
# the task: attention gathers, the network computes.
#
# ## Keeping the vectors' size
#
# Shortcuts bring a problem of their own. Every layer adds something, so the vectors grow; how fast depends on the
# weights. The next cell makes three towers in which attention and feed-forward networks alternate, each with a
# shortcut. The first has PyTorch's initial weights. In the second, all matrices are twice as large, a gain of 4/3; [He
# et al. (2015)](https://arxiv.org/abs/1502.01852) start ReLU networks with 2. The third is the second without
# averaging: every position attends only to itself.

# %%
def pair(averages=True):
    attention = SelfAttention(32, 4)
    attention = attention if averages else WithoutAveraging(attention)
    return Shortcut(attention), Shortcut(FinishedFeedForward(32))

@torch.no_grad()
def enlarge(model, factor):
    for matrix in (p for p in model.parameters() if p.dim() == 2):
        matrix *= factor
    return model

def tower_of_pairs(factor, averages=True):
    torch.manual_seed(1)
    tower = Tower(nn.Sequential(*pair(averages)) for _ in range(24))
    return enlarge(tower, factor).to(device())

def print_by_depth(factor, tower):
    sizes, apart = by_depth(tower, x)
    told = ", ".join(f"{sizes[k]:.3g} after {k}" for k in (0, 12, 24))
    print(f"matrices times {factor}: size {told}; difference at the top {apart[-1]:.1e}")

for factor in (1, 2):
    print_by_depth(factor, tower_of_pairs(factor))
third = tower_of_pairs(2, averages=False)
print(f"without averaging, gradient of block 0 {gradient_by_depth(third, x)[0]:.1e}:")
print_by_depth(2, third)

# %% [markdown]
# Growth compounds over 24 blocks. With matrices twice as large, the vectors explode, with averaging and without. In the
# third tower, so does the gradient. In the second tower the positions also become nearly equal. Averaging is the cause:
# without averaging the positions stay apart.
#
# **[Layer normalisation](../../site/glossary.md#layer-normalisation)**
# ([Ba, Kiros and Hinton, 2016, section 3](https://arxiv.org/abs/1607.06450)) keeps the vectors from growing. It shifts
# each vector $v$ of width e to mean 0 and divides it by its standard deviation, so that all vectors have one size:
#
# $$\mu = \frac1e \sum_{a=1}^{e} v_a, \qquad \sigma^2 = \frac1e \sum_{a=1}^{e} (v_a - \mu)^2,
# \qquad \operatorname{norm}(v)_a \;=\; \frac{v_a - \mu}{\sqrt{\sigma^2 + \varepsilon}}\; \gamma_a + \beta_a .$$
#
# The small $\varepsilon$ keeps a vector of equal components, whose variance is 0, from becoming 0/0. The factors
# $\gamma$ and the offsets $\beta$ are learned, one of each for every component. In PyTorch they are called `weight` and
# `bias`.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `LayerNorm`** &nbsp; fix · ★★☆ · 10 minutes · 4 points
#
# The code below runs, and models can be trained with it. Yet it differs from the formula in **two** places. Fix both,
# in `forward`. Each fix earns points on its own. Do not call `FinishedNorm`, or PyTorch's own norm (`nn.LayerNorm`,
# `F.layer_norm`): you will compare your norm with PyTorch's.
#
# <details><summary>Hint 1: line by line</summary>
#
# Write the pieces of the formula on the left (μ, σ², the denominator, γ and β) and the code for each on the right. The
# code leaves some pieces to functions of PyTorch. What do these functions compute, according to their documentation?
#
# </details>
# <details><summary>Hint 2: two small experiments</summary>
#
# Compute the norm of the vector (0, 2) by hand, with ε = 0. What does the code return for it? And when the variance of
# a vector is far smaller than ε: what does the formula divide by, and what does the code?
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
# Compare your norm with PyTorch's on three kinds of vectors:

# %% tags=["nbval-check-output"]
mine, theirs = LayerNorm(32).to(device()), nn.LayerNorm(32).to(device())
samples = {"ordinary": x, "tiny": 0.001 * x, "constant": torch.full_like(x, 3.5)}
for name, sample in samples.items():
    agree = torch.allclose(mine(sample), theirs(sample), atol=1e-5)
    print(f"{name}: the same as PyTorch's: {agree}")

# %% [markdown]
# How far off was the code as given?

# %% tags=["nbval-check-output"]
def as_it_came(v, epsilon=1e-5):
    return (v - v.mean(-1, keepdim=True)) / (v.std(-1, keepdim=True) + epsilon)

for e in (4, 32, 512):
    v = torch.arange(float(e), device=device())
    for scale in (1.0, 1e-5):
        norm = nn.LayerNorm(e, eps=1e-5).to(device())
        ratio = (as_it_came(scale * v)[0] / norm(scale * v)[0]).item()
        print(f"e = {e:>3}, vector times {scale:g}: {ratio:.3g} times PyTorch's norm")

# %% [markdown]
# <details><summary>What was wrong, and why nothing complained</summary>
#
# `x.std()` divides the sum of squares by e − 1 instead of e, as one does to *estimate* a variance from a sample. So
# every output is multiplied by √((e − 1)/e): 0.866 for e = 4, 0.999 for e = 512. And ε was added outside the root
# instead of under it. For very small vectors the correct divisor, √(σ² + ε), is about √ε, so the result stays small.
# The divisor in the code, σ + ε, is far smaller, so its result is far too large.
#
# A model trained with such a norm can adapt to it. But with the correct norm, the same weights compute something
# slightly different in every layer, and no error is raised.
#
# </details>
#
# Now put a norm after each block of the first two towers:

# %%
for factor in (1, 2):
    tower = tower_of_pairs(factor)
    normed = Tower(nn.Sequential(*block, LayerNorm(32)) for block in tower.blocks)
    print_by_depth(factor, normed.to(device()))

# %% [markdown]
# The size stays at 1. But with the larger matrices the positions become even more alike than without norms.
#
# ## The block
#
# A block is attention and a feed-forward network, each with a shortcut around it and a norm of its own. Where does the
# norm go? There are two conventions.

# %%
plots.diagrams.block_norms()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom. The thick line is the residual connection; the layers branch off it and add
# their outputs back. Left: the norms are on the line itself. Right: the norms are in the branches, and one more
# norm follows the last block of a stack.
#
# </div>

# %% [markdown]
# **Post-norm** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1): the norm comes after the
# layer. Add, then normalise the sum:
#
# $$x \;\leftarrow\; \operatorname{norm}_1\big(x + \operatorname{attention}(x)\big),
# \qquad x \;\leftarrow\; \operatorname{norm}_2\big(x + \operatorname{ff}(x)\big) .$$
#
# **Pre-norm** (GPT-2 and most models since; [Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf), section
# 2.3): the norm comes before the layer. Normalise what goes *into* a layer, and leave the shortcut alone:
#
# $$x \;\leftarrow\; x + \operatorname{attention}\big(\operatorname{norm}_1(x)\big),
# \qquad x \;\leftarrow\; x + \operatorname{ff}\big(\operatorname{norm}_2(x)\big) .$$
#
# With post-norm, every shortcut runs *through* a norm. With pre-norm, the line from the input to the final norm passes
# through nothing but additions. What flows along this line is called the **residual stream**. Its vectors may grow, but
# every layer reads a normalised copy.
#
# **[Dropout](../../site/glossary.md#dropout)** ([Vaswani et al.](https://arxiv.org/abs/1706.03762), section 5.4) guards
# against overfitting. In training, each component of a layer's output is zeroed with probability p before the addition,
# and the remaining components are multiplied by 1/(1 − p), so that the mean is the same as in evaluation. The shortcut
# itself is not dropped, and in evaluation nothing is dropped. Take a million ones, and p = 0.25:

# %%
torch.manual_seed(0)
dropped = nn.Dropout(0.25)(torch.ones(1_000_000))    # a new module is in training mode
print(f"kept components become {dropped.max():.2f}; the mean is {dropped.mean():.2f}")
print(f"without the factor: mean {dropped.sign().mean():.2f}")

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `TransformerBlock`** &nbsp; ★★★ · 18 minutes · 6 points
#
# Write the block in both orders. Its pieces are finished: `SelfAttention(e, h)`, called as `attention(x, mask)`,
# `FinishedNorm(e)` and `FinishedFeedForward(e)`. Store them under the names in the docstring. Do not use whole
# blocks, neither `FinishedBlock` nor PyTorch's `nn.TransformerEncoderLayer`.
#
# Pass the mask on to the attention, as in lesson 5, even if it is None. In training, dropout applies once to the
# output of each layer, before it is added, and what is kept is scaled as in `nn.Dropout`. A dropout of 0 or 1 is
# allowed: with 1, all outputs of the layers are dropped. After `.eval()` nothing is dropped.
#
# <details><summary>Hint 1: four lines</summary>
#
# Each order takes two lines, one for each layer and its shortcut. The second line starts from the result of the first.
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
# The folded cell compares your block with PyTorch's `nn.TransformerEncoderLayer`, with the same weights, in both
# orders.

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

# %% [markdown]
# ## Three words through a block
#
# The three words of the earlier lessons go through a pre-norm block with the two heads of lesson 4. To keep the
# arithmetic short, `unify` passes its input on unchanged, `widen` only appends zeros and `narrow` drops these zeros. So
# the network is just a ReLU. The attention is computed for you; fill in the three missing numbers by hand.

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
# **How to read it.** From left to right, then down. Each grid has the vectors of the three words after one step. The
# last grid, *y*, is the sum of two others: *x* + attention, and ReLU.
#
# </div>
#
# The next cell prints the three numbers, and compares *y* with the output of PyTorch's block.

# %% tags=["hide-cell", "nbval-check-output"]
for name, grid in {"norm": normed_again, "ReLU": added, "y": halfway + added}.items():
    print(f"{name} of ends, second component: {grid[2, 1]:.2f}")
theirs = as_pytorchs(by_hand).cpu()(X[None])[0]
print("as PyTorch's block computes it:", torch.allclose(theirs, halfway + added, atol=1e-5))

# %% [markdown]
# ## The stack
#
# A transformer is a stack of blocks. Its code is short, and two things can go wrong.
#
# Each block should have **weights of its own**. In Python, `[block] * 24` is a list that holds one block 24 times. The
# model runs, but it has a twenty-fourth of the parameters that you expect.
#
# With pre-norm, the stack also needs **one more norm at the end**. Without it, the layer after the stack would read
# vectors that have never been normalised. With post-norm, each block already ends with a norm.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `Transformer`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Stack `depth` blocks of the class `FinishedBlock`, which takes the same arguments as your `TransformerBlock`. Each has
# weights of its own, which may start from the same numbers. All blocks get the same mask. With post-norm there is no
# final norm, and no parameter for one.
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
# ## What each piece contributes
#
# Return to the tower of 24 attention layers, and put a feed-forward network after each of them. Compare five versions
# before training: neither norms nor shortcuts (*bare*); norms only; shortcuts only; both, as *post-norm*; both, as
# *pre-norm*.

# %% [markdown]
# <div class="card">
#
# **Prediction · `norms_without_shortcuts`** &nbsp; 1 minute · no points
#
# *Norms only* keeps every vector at size 1, at any depth. After how many blocks, if ever, do all positions hold the
# same vector, to float32 precision?
#
# - **A.** Not within 24 blocks: shrinking caused the collapse, and the norm undoes it.
# - **B.** Near the top: the norms slow the collapse considerably.
# - **C.** After three blocks.
# </div>

# %% nbgrader={"grade": false, "grade_id": "norms_without_shortcuts", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
norms_without_shortcuts = "C"
### STUDENT GETS
# norms_without_shortcuts = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "Two panels against the number of blocks passed, logarithmic, five curves. Left, size: with norms only and with post-norm it stays at 1; the bare stack falls below a tenth; with shortcuts only and with pre-norm it grows slowly. Right, difference between positions: for bare and for norms only it falls to one ten-millionth within a few blocks; the three versions with shortcuts fall slowly and stay above a third."}}
def bare_block():
    return nn.Sequential(SelfAttention(32, 4), FinishedFeedForward(32))

def norms_only():
    return nn.Sequential(SelfAttention(32, 4), FinishedNorm(32),
                         FinishedFeedForward(32), FinishedNorm(32))

torch.manual_seed(1)
stacks = {
    "bare": Tower(bare_block() for _ in range(24)),
    "norms only": Tower(norms_only() for _ in range(24)),
    "shortcuts only": tower_of_pairs(1),
    "post-norm": Transformer(32, 4, 24),
    "pre-norm": Transformer(32, 4, 24, pre_norm=True),
}
stacks = {name: stack.to(device()) for name, stack in stacks.items()}
draw_by_depth(stacks)
print("                PyTorch's weights:                        matrices times 2:")
print("                difference after             gradient of  after 24 blocks")
print("                      2        3       24   block 0 / 23     difference     size")
for name, stack in stacks.items():
    apart, pull = by_depth(stack, x)[1], gradient_by_depth(stack, x)
    sizes, enlarged = by_depth(enlarge(stack, 2), x)
    print(f"{name:<14}" + "".join(f"{apart[k]:>9.1e}" for k in (2, 3, 24))
          + f"{pull[0] / pull[23]:>15.1e}{enlarged[24]:>15.1e}{sizes[24]:>9.1e}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Both panels: PyTorch's initial weights. Left: *norms only* and *post-norm* overlap at 1. With
# pre-norm the residual stream (before the final norm) grows more slowly than with shortcuts only. Right: with shortcuts
# the positions stay apart; without shortcuts the positions become equal within a few blocks, **norms or not**.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_norms_without_shortcuts", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("norms_without_shortcuts", norms_without_shortcuts)

# %% [markdown]
# In *norms only*, every vector has size 1, and the gradient of block 0 is 4 % of that of block 23. Yet after three
# blocks nothing tells the positions apart. Numbers can look healthy in a dead model. (In *bare*, the gradient of block
# 0 is not 0, but its square, which `gradient_by_depth` computes, is too small for float32.)
#
# With the larger matrices, only *pre-norm* keeps the positions apart. To see why, compare the output of attention with
# the vector on the shortcut, to which it is added (*the sum* in the output). The last line is a control:
# pre-norm, with the residual stream scaled back to size 1 after every block.

# %% tags=["hide-input"]
@torch.no_grad()
def print_what_attention_adds(name, stack, scale_back=False):
    v, shares, apart = x, [], []
    for block in stack.blocks:
        added = block.attention(block.norm1(v) if block.pre_norm else v)
        shares.append(added.norm() / v.norm())
        apart.append(difference(added))
        v = block(v)
        v = v / v.square().mean().sqrt() if scale_back else v
    told = "".join(f"{shares[k]:>9.0%}" for k in (0, 8, 23))
    print(f"{name:<21}{told}{apart[8]:>14.1e}{difference(v):>17.1e}")

print("                       the output of attention:                        the sum:")
print("                       size, relative to the sum    difference       difference")
print("                       block 0  block 8 block 23       block 8       at the top")
for name in ("post-norm", "pre-norm"):
    print_what_attention_adds(name, stacks[name])
print_what_attention_adds("pre-norm, scaled back", stacks["pre-norm"], scale_back=True)

# %% [markdown]
# In all three stacks, attention in block 8 adds nearly the same vector at every position. What counts is its size
# relative to the vector on the shortcut. With post-norm the common vector becomes the larger one, and the positions
# become alike. With pre-norm the residual stream grows, the common vector becomes relatively smaller, and the positions
# stay apart. In the control the stream cannot grow, and the positions become alike.
#
# Train fresh stacks of eight blocks to return the sequence backwards. Learned position vectors are added before the
# stack, and a linear layer follows it. With a [*warm-up*](../../site/glossary.md#warm-up), as in the original paper,
# the learning rate rises linearly at first, here over 100 steps. The seven runs take about forty seconds; the stop
# button ends the current run.
#
# | versions | learning rate |
# |---|---|
# | all five | 0.006 |
# | *post-norm* | 0.006 with a warm-up |
# | *post-norm* | 0.002, a third of the rate |

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels against 400 steps, seven curves. Left, the loss: bare, norms only and post-norm run together along 1 to the end. Pre-norm leaves it before step 100 and falls to about 0.2. Shortcuts only begins above 1 and falls slowly to 0.4. Post-norm with a warm-up, or at a third of the rate, is near 1 for more than half of the steps, then falls to between 0.4 and 0.6. Right, the difference between positions, logarithmic: about one ten-millionth for bare and for norms only; post-norm falls at once, to about one hundred-thousandth, and stays there. Its two gentle runs fall below a hundredth and pre-norm below a tenth; all three return to nearly 1. Shortcuts only stays above a half."}}
from helpers.parts.positions import PositionEmbedding

def new_stack(version):
    version = version.split(",")[0]
    if version in ("post-norm", "pre-norm"):
        return Transformer(32, 4, 8, pre_norm=version == "pre-norm")
    pieces = {
        "bare": bare_block,
        "norms only": norms_only,
        "shortcuts only": lambda: nn.Sequential(*pair()),
    }
    return Tower(pieces[version]() for _ in range(8))

def trained(version):
    torch.manual_seed(0)
    model = nn.Sequential(PositionEmbedding(8, 32), new_stack(version), nn.Linear(32, 32))
    apart = []
    model[1].blocks[-1].register_forward_hook(
        lambda block, inputs, output: apart.append(difference(output.detach())))
    warm_up = 100 if "warm-up" in version else 1
    rate = 0.002 if "third" in version else 0.006
    return train(model.to(device()), lambda batch: batch.flip(1), 400, rate, warm_up), apart

gentle = ["post-norm, warm-up", "post-norm, a third of the rate"]
runs = {version: trained(version) for version in [*stacks, *gentle]}
runs = {version: run for version, run in runs.items() if len(run[0]) > 20}
figure, axes = plt.subplots(1, 2, figsize=(6, 4.4))
for k, window in enumerate((20, 1)):
    lines = {}
    for version, run in runs.items():
        means = torch.tensor(run[k]).unfold(0, window, 5).mean(-1)    # every fifth step
        lines[version] = (range(window, len(run[k]) + 1, 5), means)
    title = ["loss, mean of 20 steps", "difference between positions"][k]
    plots.curves(lines, "step", "", log=["", "y"][k], title=title, ax=axes[k])
    axes[k].legend().remove()
axes[0].set_ylim(0, 1.4)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
print("last loss; the difference at first, lowest, last")
for version, (losses, apart) in runs.items():
    told = f"{apart[0]:.1e}, {min(apart):.1e}, {apart[-1]:.1e}"
    print(f"{version}:\n    {last(losses):.2f};  {told}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: a model that returns zeros has a loss of 1. Three curves stay at 1: *bare*, *norms only* and
# *post-norm*. Right: the difference after the last block, at every fifth step.
#
# </div>
#
# Within 400 steps, no stack without shortcuts learned anything. Shortcuts alone made eight blocks trainable; with
# pre-norm, training was faster. Post-norm learned only with a warm-up or at a third of the rate. Every result is from a
# single run.
#
# On the right, the first steps of *post-norm* make the positions nearly equal, and the difference does not recover. In
# *pre-norm* and the gentler runs of post-norm, the difference falls at first, then recovers. In these runs the loss
# falls below 1 only once the recovery has begun.
#
# Why a gentle start? With post-norm, the initial gradients near the output are large ([Xiong et al.,
# 2020](https://arxiv.org/abs/2002.04745)). The layers also contribute a large part of each sum x + f(x), so small
# changes of the parameters greatly change the output ([Liu et al., 2020](https://arxiv.org/abs/2004.08249)). A warm-up
# keeps the first changes small.

# %% [markdown]
# ## What it costs
#
# How many parameters does a block have? The three projections of the attention have no bias; all other linear layers
# have one. A norm has two numbers for each component.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `block_parameters`** &nbsp; ★☆☆ · 6 minutes · 2 points
#
# Return the number of parameters of `TransformerBlock(e, h)`, as a formula in e and h. Count on paper: do not make a
# block here, and do not call `numel`.
#
# <details><summary>Hint 1: a table</summary>
#
# One line for each layer of the block, including those inside the attention and the network. Columns: the number of
# inputs, the number of outputs, and whether it has a bias.
#
# </details>
# <details><summary>Hint 2: the norms alone, and the heads</summary>
#
# For e = 8 a norm has 8 numbers in its weight and 8 in its bias, so two norms have 32. A projection for h = 2 heads
# of width 4 has 2 · (8 · 4) = 64 weights, as many as one head of width 8.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "block_parameters", "locked": false, "schema_version": 3, "solution": true, "task": false}
def block_parameters(e, h):
    """How many numbers a block learns. e: width. h: heads. Returns a whole number."""
    ### BEGIN SOLUTION
    hidden = 4 * e
    attention = 4 * e * e + e    # three projections and unify, which alone has a bias
    network = (e * hidden + hidden) + (hidden * e + e)
    norms = 2 * (2 * e)
    return attention + network + norms
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_block_parameters", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(block_parameters)

# %% tags=["nbval-check-output"]
for e, h in ((32, 4), (512, 8), (768, 12)):
    counted = sum(p.numel() for p in FinishedBlock(e, h).parameters())
    share = 12 * e * e / counted
    mine = block_parameters(e, h)
    print(f"e = {e:>3}: {mine:>9,} by formula, {counted:>9,} by count; 12e² is {share:.1%}")

# %% [markdown]
# Remember **12e² per block**: 4e² in the attention and 8e², two thirds, in the feed-forward network. The number
# of heads drops out: more heads cost no parameters. In GPT-2 the three projections also have biases, 3e numbers per
# block ([lesson 12](../12_gpt2/12_gpt2.ipynb)).

# %% [markdown]
# ## Your model so far
#
# In place of one layer of attention the model now has your `Transformer`: three pre-norm blocks. Positions and mask are
# those of lesson 6. Each step takes longer, so the model trains for a third as many steps.

# %% mystnb={"image": {"alt": "A scoreboard of eight models against bits per byte. Three blocks, at the top, are farthest left, near 2.3, left of the line of gzip. Positions come next, below 3, then the earlier models, between 3.4 and 4.5."}}
from helpers.ladder import ByteModel, Ladder, measured

ladder = Ladder(check)
stack_class = ladder.own(Transformer)
torch.manual_seed(0)
stack = stack_class(64, 4, depth=3, pre_norm=True)
ladder.climb(ByteModel(stack, PositionEmbedding(32, 64), mask=True))
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each model; farther left is better. A point is your model, ticks are three runs of
# ours. Dashed lines, for comparison: models that know only the frequencies of single bytes (*order 0*) or of pairs of
# bytes (*order 1*), and two file compressors, *gzip* and *xz*.
#
# </div>
#
# In lesson 6 our three runs needed 2.83 to 2.87 [bits per byte](../../site/glossary.md#bits-per-byte). With three
# blocks they need 2.28 to 2.31, fewer than gzip (2.47). How much of this is due to the depth? Try one block:

# %% tags=["hide-input"]
torch.manual_seed(0)
one = stack_class(64, 4, depth=1, pre_norm=True)
bits, done = measured(ByteModel(one, PositionEmbedding(32, 64), mask=True), 1200)
print(f"one block: {bits:.2f} bits per byte after {done:,} steps")

# %% [markdown]
# In this run, one block in place of lesson 6's attention layer saves about half a bit per byte, in a third of the
# steps. Two more blocks save less than a tenth of a bit: at this size, after so few steps, depth adds little.

# %% [markdown]
# ## What you can do now
#
# You can say what makes an architecture a transformer; measure activations and gradients through any stack; write a
# layer norm that agrees with PyTorch's; build the block in both orders and say which order needs a gentle start; stack
# blocks that each have weights of their own; and count their parameters in your head.
#
# **Two questions to think about**
#
# <details><summary>1. Take the feed-forward networks out of a transformer. Is what remains linear in x?</summary>
#
# No. The attention weights depend on x through the scores and the softmax, and each norm divides by a number that
# depends on x. But for given attention weights, attention is a linear map of the values.
#
# </details>
# <details><summary>2. If all blocks of a stack share their weights, it has 1/depth of the parameters. Is that ever
# wanted?</summary>
#
# Yes. Such a stack applies one function again and again, as a recurrent network does, but over depth instead of time
# ([Dehghani et al., "Universal transformers", 2019](https://arxiv.org/abs/1807.03819)).
#
# </details>
#
# **Further reading**
#
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**: sections 3.1, 3.3 and
#   5.4 for the block, section 4 and table 1 for the comparison.
# - [Xiong et al., *On layer normalization in the transformer architecture*, 2020](https://arxiv.org/abs/2002.04745)
#
# **Next:** [lesson 8, *A classifier*](../08_classifier/08_classifier.ipynb)
