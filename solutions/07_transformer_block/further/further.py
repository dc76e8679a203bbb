# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: The transformer block
#
# What [lesson 7](../07_transformer_block/07_transformer_block.ipynb) claims in a sentence, and does not show. Each
# section has a claim, the code that measures it, and how to read the result. Every result is from a single run, unless
# it says otherwise.

# %%
import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.sentence import WORDS, block_weights
from helpers.device import device
from helpers.ladder import ByteModel, measured
from helpers.parts.blocks import FeedForward, LayerNorm, SelfAttention, Transformer
from helpers.parts.masks import causal_mask
from helpers.parts.positions import PositionEmbedding
from helpers.progress import progress

plots.use_course_style()
torch.set_num_threads(1)    # these tensors are too small to split among threads


class Tower(nn.Module):
    """Blocks on top of each other, and nothing else: (b, t, e) -> (b, t, e)."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Shortcut(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return x + self.layer(x)


class WithoutAveraging(nn.Module):
    """The two linear maps of an attention, and no attention."""

    def __init__(self, attention):
        super().__init__()
        self.to_values, self.unify = attention.to_values, attention.unify

    def forward(self, x):
        return self.unify(self.to_values(x))


def difference(x):
    """0 when all positions hold the same vector, near 1 for random ones."""
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


def gradient_by_depth(model, x):
    """For each block, the length of the gradient with respect to all its parameters."""
    loss = (model(x) - x.flip(1)).square().mean()
    norms = []
    for block in model.blocks:
        gradients = torch.autograd.grad(loss, list(block.parameters()), retain_graph=True)
        norms.append(sum(gradient.square().sum() for gradient in gradients).sqrt())
    return torch.stack(norms)


torch.manual_seed(1)
x = torch.randn(8, 16, 32).to(device())    # (b, t, e), in all towers below

# %% [markdown]
# ## Attention connects any two positions in one step
#
# Recurrence, convolution and self-attention all let positions interact. They differ in how many steps a signal takes
# from one position to another, and in what a layer costs.

# %% mystnb={"image": {"alt": "Three drawings of seven positions. Recurrent: one arrow up from the first input, then six arrows along the row of states to the last output. Convolution: three layers of arrows to near neighbours; the path climbs in three steps. Self-attention: every input has an arrow to every output; the path is a single arrow from the first to the last."}}
plots.path_row(t=7, reach=2)
plt.show()

# %% [markdown]
# **How to read it.** Inputs are at the bottom, outputs at the top; the thick arrows are a shortest path from the first
# position to the last. The convolution sees two neighbours on either side. For t positions of width e, and convolutions
# that see k positions ([Vaswani et al., 2017, table 1](https://arxiv.org/abs/1706.03762)):
#
# | | longest path between two positions | sequential steps | operations in a layer |
# |---|---|---|---|
# | recurrent | $O(t)$ | $O(t)$ | $O(t\,e^2)$ |
# | convolution | $O(\log_k t)$ if dilated, else $O(t/k)$ | $O(1)$ | $O(k\,t\,e^2)$ |
# | self-attention, without its projections | $O(1)$ | $O(1)$ | $O(t^2 e)$ |
#
# Attention pays with the square of t.
#
# ## With a causal mask, attention alone makes the positions equal, too
#
# The tower that opens the lesson, once more with a causal mask in every layer. It takes a dozen layers instead of
# three.

# %%
class Masked(nn.Module):
    """An attention layer in which no position sees a later one."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, v):
        return self.layer(v, causal_mask(v.shape[1], v.device))


for name, masked in {"no mask": False, "causal mask": True}.items():
    torch.manual_seed(1)
    layers = [SelfAttention(32, 4).to(device()) for _ in range(24)]
    apart = by_depth(Tower(map(Masked, layers) if masked else layers), x)[1]
    told = ", ".join(f"{apart[k]:.1e} after {k}" for k in (1, 2, 3, 6, 9, 12, 24))
    print(f"{name:>11}: {told}")

# %% [markdown]
# **How to read it.** The difference between positions. It levels off near one ten-millionth, because float32 resolves
# no smaller one.
#
# ## Averaging makes the positions equal, small weights make the gradient fade
#
# Two faults of the tower of attention layers have two causes. The table has four towers of 24 blocks: with and without
# averaging, each with PyTorch's weights and with weights $\sqrt 3$ times as large.

# %%
def four_towers():
    for larger in (1, 3**0.5):
        for averages in (True, False):
            torch.manual_seed(1)
            blocks = [SelfAttention(32, 4) for _ in range(24)]
            for block in blocks:
                block.to_values.weight.data *= larger
                block.unify.weight.data *= larger
            layers = blocks if averages else map(WithoutAveraging, blocks)
            yield larger, averages, Tower(layers).to(device())


print("weights     averages   difference after 3   after 24   gradient of block 0 / 23")
for larger, averages, tower in four_towers():
    pull = gradient_by_depth(tower, x)
    apart = by_depth(tower, x)[1]
    print(f"times {larger:.2f}  {'yes' if averages else 'no':>5}"
          f" {apart[3]:>18.1e} {apart[24]:>10.1e} {pull[0] / pull[-1]:>18.1e}")

# %% [markdown]
# **How to read it.** The last column depends on the scale of the weights, and hardly on averaging. With averaging, the
# positions are equal after three blocks at either scale. Without it, PyTorch's weights make them equal too, but later:
# the vectors shrink until little but the bias is left.
#
# ## The deeper the tower, the closer to 1 the gain has to be
#
# The gain is the width times the variance of a matrix's entries. On average a matrix multiplies a length by the root of
# the gain; a block has two matrices, and 24 blocks multiply the gradient by the gain to the power of 24.

# %%
for gain in (0.9, 1.0, 1.1):
    shares = []
    for seed in range(20):
        torch.manual_seed(seed)
        maps = [torch.randn(32, 32) * (gain / 32) ** 0.5 for _ in range(48)]
        vector = torch.randn(32)
        start = vector.norm()
        for matrix in maps:
            vector = matrix @ vector
        shares.append((vector.norm() / start).square())
    drawn = torch.stack(shares).mean().sqrt()
    print(f"gain {gain}: {gain**24:.2f} by formula, {drawn:.2f} in 20 towers")

# %% [markdown]
# **How to read it.** What is left of a vector's length after 24 blocks of two random matrices, the root mean square
# over 20 towers. A gain of 0.9 leaves a tenth of the gradient or less, a gain of 1.1 makes it about ten times as large.
#
# ## Where all positions are equal, queries and keys get no gradient
#
# When all positions hold the same vector, it does not matter where a position looks, so queries and keys cannot change
# the loss ([Noci et al., 2022](https://arxiv.org/abs/2206.03126)). The first tower averages and has the larger weights,
# so that its gradient does not fade. The second has PyTorch's weights and shortcuts.

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


print("without shortcuts, larger weights")
towers = {(larger > 1, averages): tower for larger, averages, tower in four_towers()}
print_gradients_of_matrices(towers[True, True])
torch.manual_seed(1)
print("with shortcuts")
with_shortcuts = Tower(Shortcut(SelfAttention(32, 4)) for _ in range(24)).to(device())
print_gradients_of_matrices(with_shortcuts)

# %% [markdown]
# **How to read it.** Without shortcuts, from block 2 on, `to_queries` and `to_keys` get less than a ten-millionth of
# the gradient of `to_values`. With shortcuts they get about a tenth of it, in every block.
#
# ## Longer training does not make up for the network
#
# Four attention layers with shortcuts cannot return the distance of each component from its mean: 2,500 steps at a
# third of the lesson's rate bring them hardly below the best constant.

# %%
def train(model, target, steps, rate=0.01, warm_up=1):
    """Trains with Adam, on a fresh batch (16, 8, 32) in each step, and returns the losses.

    The learning rate rises linearly over the first `warm_up` steps.
    """
    torch.manual_seed(0)
    optimiser, losses = torch.optim.Adam(model.parameters()), []
    for step in progress(range(steps), "training"):
        batch = torch.randn(16, 8, 32).to(device())
        loss = (model(batch) - target(batch)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.param_groups[0]["lr"] = rate * min(1, (step + 1) / warm_up)
        optimiser.step()
        losses.append(loss.item())
    return losses


def last(losses):
    """The mean of the last 20 losses."""
    return torch.tensor(losses[-20:]).mean()


def distance(batch):
    return (batch - batch.mean(dim=1, keepdim=True)).abs()


torch.manual_seed(2)
model = Tower(Shortcut(SelfAttention(32, 4)) for _ in range(4)).to(device())
losses = train(model, distance, 2500, rate=0.003)
print(f"best constant {7 / 8 * (1 - 2 / torch.pi):.2f}, attention {last(losses):.2f}")

# %% [markdown]
# **How to read it.** Losses, the second the mean of the last 20 steps. Attention and one network reach 0.01 in 500
# steps (lesson 7).
#
# ## Without averaging the vectors explode as well, and the positions stay apart
#
# In towers of attention and networks with shortcuts, matrices twice as large make the vectors explode, with averaging
# and without. The positions become equal only with averaging. A norm after each block keeps the size, and makes the
# positions even more alike.

# %%
def pair(averages=True):
    attention = SelfAttention(32, 4)
    attention = attention if averages else WithoutAveraging(attention)
    return Shortcut(attention), Shortcut(FeedForward(32))


@torch.no_grad()
def enlarge(model, factor):
    for matrix in (p for p in model.parameters() if p.dim() == 2):
        matrix *= factor
    return model


def tower_of_pairs(factor, averages=True):
    torch.manual_seed(1)
    tower = Tower(nn.Sequential(*pair(averages)) for _ in range(24))
    return enlarge(tower, factor).to(device())


def print_by_depth(name, tower):
    sizes, apart = by_depth(tower, x)
    told = ", ".join(f"{sizes[k]:.3g} after {k}" for k in (0, 12, 24))
    print(f"{name}: size {told}; difference at the top {apart[-1]:.1e}")


for factor in (1, 2):
    print_by_depth(f"matrices times {factor}", tower_of_pairs(factor))
third = tower_of_pairs(2, averages=False)
print_by_depth("matrices times 2, without averaging", third)
print(f"    gradient of block 0 {gradient_by_depth(third, x)[0]:.1e}")
for factor in (1, 2):
    blocks = tower_of_pairs(factor).blocks
    normed = Tower(nn.Sequential(*block, LayerNorm(32)) for block in blocks)
    print_by_depth(f"matrices times {factor}, a norm after each block", normed.to(device()))

# %% [markdown]
# **How to read it.** Sizes before the first block, in the middle and at the top. Without averaging, the gradient
# explodes with the vectors, and the difference at the top stays above a half.
#
# ## A norm that is nearly right gives other numbers
#
# The norm that lesson 7 asks to fix differs from PyTorch's in two places, and each shows elsewhere: one in
# vectors of few components, the other in tiny vectors.

# %%
def as_it_came(v, epsilon=1e-5):
    return (v - v.mean(-1, keepdim=True)) / (v.std(-1, keepdim=True) + epsilon)


for e in (4, 32, 512):
    v = torch.arange(float(e), device=device())
    for scale in (1.0, 1e-5):
        norm = nn.LayerNorm(e, eps=1e-5).to(device())
        ratio = (as_it_came(scale * v)[0] / norm(scale * v)[0]).item()
        print(f"e = {e:>3}, vector times {scale:g}: {ratio:.3g} times PyTorch's norm")

# %% [markdown]
# **How to read it.** At scale 1 the ratio is √((e − 1)/e), nearly 1 for wide vectors. For tiny vectors the divisor σ +
# ε is far smaller than √(σ² + ε), and the result far too large.
#
# ## Norms and shortcuts do different work
#
# Before training, five stacks of 24 blocks: neither norms nor shortcuts (*bare*); norms only; shortcuts only; both, as
# post-norm; both, as pre-norm. Norms keep the size at 1 and do not stop the positions from becoming equal; shortcuts
# do, at PyTorch's weights. With matrices twice as large, only pre-norm keeps them apart.

# %% mystnb={"image": {"alt": "Two panels against the number of blocks passed, logarithmic, five curves. Left, size: with norms only and with post-norm it stays at 1; the bare stack falls below a tenth; with shortcuts only and with pre-norm it grows slowly. Right, difference between positions: for bare and for norms only it falls to one ten-millionth within a few blocks; the three versions with shortcuts fall slowly and stay above a third."}}
def bare_block():
    return nn.Sequential(SelfAttention(32, 4), FeedForward(32))


def norms_only():
    return nn.Sequential(SelfAttention(32, 4), LayerNorm(32), FeedForward(32), LayerNorm(32))


torch.manual_seed(1)
stacks = {
    "bare": Tower(bare_block() for _ in range(24)),
    "norms only": Tower(norms_only() for _ in range(24)),
    "shortcuts only": tower_of_pairs(1),
    "post-norm": Transformer(32, 4, 24),
    "pre-norm": Transformer(32, 4, 24, pre_norm=True),
}
stacks = {name: stack.to(device()) for name, stack in stacks.items()}
figure, axes = plt.subplots(1, 2, figsize=(6.4, 4.2))
for k, title in enumerate(["size of the vectors", "difference between positions"]):
    lines = {name: (range(25), by_depth(stack, x)[k]) for name, stack in stacks.items()}
    plots.curves(lines, "blocks passed", "", log="y", title=title, ax=axes[k])
    axes[k].legend().remove()
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
print("                PyTorch's weights:                        matrices times 2:")
print("                difference after             gradient of  after 24 blocks")
print("                      2        3       24   block 0 / 23     difference     size")
for name, stack in stacks.items():
    apart, pull = by_depth(stack, x)[1], gradient_by_depth(stack, x)
    sizes, enlarged = by_depth(enlarge(stack, 2), x)
    print(f"{name:<14}" + "".join(f"{apart[k]:>9.1e}" for k in (2, 3, 24))
          + f"{pull[0] / pull[23]:>15.1e}{enlarged[24]:>15.1e}{sizes[24]:>9.1e}")

# %% [markdown]
# **How to read it.** The figure has PyTorch's weights; *norms only* and *post-norm* overlap at size 1. In the table,
# the gradient of *norms only* looks healthy, though its positions are equal after three blocks. (In *bare* the gradient
# of block 0 is not 0, but its square is too small for float32.)
#
# ## In a single block, the network and the norms pay, and the shortcut does not show
#
# Lesson 6's four causal heads and positions, to which the other pieces of one block return one at a time. In this one
# block the network saves a third of a bit and the norms half a bit. The shortcut makes no clear difference: its runs
# overlap those of attention alone.

# %%
bits = recorded("ladder")["result"]["bits"]
for name in ("07 attention", "07 + shortcut", "07 + network", "07 + norms"):
    told = ", ".join(f"{each:.2f}" for each in sorted(bits[name]))
    print(f"{name[3:]:<12} {told} bits per byte")

# %% [markdown]
# **How to read it.** Held-out bits per byte of three recorded runs each, 1,200 steps, three seeds. Each line keeps what
# the line above has; the last one is a whole pre-norm block, with the final norm. Three blocks save less than a tenth
# of a bit more (lesson 7).
#
# ## In twelve blocks with large matrices, training without norms diverges
#
# The three blocks of lesson 7 hardly need their norms. Twelve blocks whose matrices are twice as large do: without
# norms the model becomes far worse than equal probabilities for all 256 bytes, with norms it learns.

# %%
class WithoutNorms(nn.Module):
    """A stack whose norms pass their input on unchanged."""

    def __init__(self, stack):
        super().__init__()
        self.blocks = stack.blocks

    def forward(self, v, mask):
        for block in self.blocks:
            v = v + block.attention(v, mask)
            v = v + block.feed_forward(v)
        return v


for seed in (0, 1, 2):
    told = []
    for norms in (True, False):
        torch.manual_seed(seed)
        stack = enlarge(Transformer(64, 4, 12, pre_norm=True), 2)
        model = ByteModel(stack if norms else WithoutNorms(stack), mask=True)
        told.append(f"{'with' if norms else 'without'} norms {measured(model, 60, seed=seed)[0]:.2f}")
    print(f"seed {seed}: " + ", ".join(told))

# %% [markdown]
# **How to read it.** Held-out bits per byte after 60 steps of training, three seeds. Equal probabilities cost 8 bits,
# the frequencies of single bytes 4.50.
#
# ## In four blocks, the same pieces count as in three
#
# A stack of four blocks, trained without one piece. Without shortcuts it is no better than order 0, as in lesson 7,
# without the network it loses more than a quarter of a bit, and without norms nothing that three seeds would show.

# %%
bits = recorded("ablations")["result"]["bits"]["long"]
for name in ("nothing", "shortcuts", "feed-forward", "norms"):
    told = ", ".join(f"{each:.2f}" for each in sorted(bits[name]))
    print(f"without {name:<12} {told} bits per byte")

# %% [markdown]
# **How to read it.** Held-out bits per byte of three recorded runs each, 1,000 steps, three seeds. Attention was not
# taken out.
#
# ## Why the positions stay apart with pre-norm
#
# Attention adds nearly the same vector at every position. With post-norm it becomes the larger part of each sum. With
# pre-norm the residual stream grows, and the common vector becomes a smaller part of it. The control takes the growth
# away: the stream is scaled back to size 1 after every block, and the positions become alike.

# %%
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
# **How to read it.** All matrices are twice as large. *Size* compares the output of attention with the vector on the
# shortcut to which it is added, in three blocks.
#
# ## Post-norm needs a gentle start
#
# Eight blocks learn to return the sequence backwards, in 400 steps at the rate 0.006. Without shortcuts no stack learns
# anything. Post-norm learns only with a [warm-up](../../site/glossary.md#warm-up) of 100 steps or at a third of the
# rate: otherwise its first steps make the positions nearly equal, and it does not recover.

# %% mystnb={"image": {"alt": "Two panels against 400 steps, seven curves. Left, the loss: bare, norms only and post-norm run together along 1 to the end. Pre-norm leaves it before step 100 and falls to about 0.2. Shortcuts only begins above 1 and falls slowly to 0.4. Post-norm with a warm-up, or at a third of the rate, is near 1 for more than half of the steps, then falls to between 0.4 and 0.6. Right, the difference between positions, logarithmic: about one ten-millionth for bare and for norms only; post-norm falls at once, to about one hundred-thousandth, and stays there. Its two gentle runs fall below a hundredth and pre-norm below a tenth; all three return to nearly 1. Shortcuts only stays above a half."}}
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
# **How to read it.** A model that returns zeros has a loss of 1; *bare*, *norms only* and *post-norm* stay there.
# Right: the difference after the last block. In the runs that learn, the difference falls at first, then recovers, and
# the loss falls below 1 only once it has begun to. The initial gradients of post-norm are large near the output ([Xiong
# et al., 2020](https://arxiv.org/abs/2002.04745)), and its layers contribute a large part of each sum, so that small
# changes of the parameters greatly change the output ([Liu et al., 2020](https://arxiv.org/abs/2004.08249)). A warm-up
# keeps the first changes small.
#
# ## Two heads of a published stack
#
# The sentence of the earlier lessons, in a model of six blocks. In block 3, *it* looks at the two nouns that it could
# stand for, and most other words look at the first word.

# %% mystnb={"image": {"alt": "Two maps of weights for the twelve words of a sentence. In block 0 every word but the first gives all its weight to the word before it. In block 3 most words give much weight to the first word; reach and it look at boat and bank, was and too look at muddy."}}
weights = torch.stack([block_weights(1)[2], block_weights(4)[1]])    # of blocks 0 and 3
plots.sentence_map(weights, WORDS, ["block 0: the word before", "block 3: what is it?"])
plt.show()
it = dict(zip(WORDS, weights[1, WORDS.index("it")].tolist()))
print(f"it gives {it['boat']:.0%} to boat and {it['bank']:.0%} to bank")

# %% [markdown]
# **How to read it.** *The boat could not reach the bank because it was too muddy*, in MiniLM, which reads in both
# directions. Two of its 72 heads, chosen by eye.
#
# ## Dropout keeps the mean
#
# Of a million ones a quarter is dropped, and what is kept is multiplied by 1/(1 − 0.25).

# %%
torch.manual_seed(0)
dropped = nn.Dropout(0.25)(torch.ones(1_000_000))    # a new module is in training mode
print(f"kept components become {dropped.max():.2f}; the mean is {dropped.mean():.2f}")
print(f"without the factor: mean {dropped.sign().mean():.2f}")

# %% [markdown]
# **How to read it.** Without the factor, the layers after it would meet smaller vectors in training than in evaluation.
