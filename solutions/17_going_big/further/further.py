# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Going big
#
# To [lesson 17](../17_going_big/17_going_big.ipynb): what training the larger GPT-2s keeps in memory, tiles in a GPU's
# fast memory, sharded steps beside those of one worker, other ways to divide a model, how many operations a token
# costs, what a published formula for the best size says when its digits are taken seriously, and how far apart the
# sizes of a profile should lie.

# %%
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from helpers import plots
from helpers.parts.big import best_size, flops_per_token
from helpers.parts.generator import CharTransformer
from helpers.parts.sharding import SmallGPT, flat_gradient, flattened, in_threads, sharded_step

plots.use_course_style()

# %% [markdown]
# ## GPT-2 XL needs 40 GB to train
#
# In float32 a parameter takes 16 bytes: 4 for its weight, 4 for its gradient and 8 for the two running means of AdamW.
# With fused attention a block keeps about twelve vectors per token. For four texts of 1,024 tokens that gives:

# %% mystnb={"image": {"alt": "Four stacked bars, memory of a training in gigabytes for GPT-2 small, medium, large and XL: weights, gradients, optimiser, and activations of four texts of 1,024 tokens. The optimiser is the largest of the first three, and activations are nearly as much as all three together for small, and more than half as much for XL. Horizontal lines at 8, 24 and 80 GB: small ends below 8 GB, medium above it, large below 24 GB, XL at 40 GB."}}
shapes = {"small": (124_439_808, 768, 12), "medium": (354_823_168, 1024, 24),
          "large": (774_030_080, 1280, 36), "XL": (1_557_611_200, 1600, 48)}
ax = plt.subplots(figsize=(6, 3.8))[1]
for place, (name, (parameters, e, depth)) in enumerate(shapes.items()):
    amounts = {"weights": 4 * parameters, "gradients": 4 * parameters,
               "optimiser": 8 * parameters,
               "activations, b = 4": 12 * 4 * 1024 * e * depth * 4}
    height = 0
    for number, (kind, amount) in enumerate(amounts.items()):
        ax.bar(place, amount / 1e9, bottom=height, width=0.6, color=plots.COLOURS[number],
               hatch=("", "//", "..", "xx")[number], edgecolor="white", linewidth=0.5,
               label=kind if place == 0 else None)
        height += amount / 1e9
    print(f"{name}: {height:.1f} GB")
for gpu in (8, 24, 80):
    ax.axhline(gpu, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
    ax.annotate(f"{gpu} GB", (-0.45, gpu + 0.6), fontsize=9)
ax.set_xticks(range(4), list(shapes))
ax.set(xlabel="GPT-2", ylabel="GB", ylim=(0, 90))
ax.legend(loc="center left")
plt.show()

# %% [markdown]
# **How to read it.** Each bar is a model in float32, trained on four texts at a time. Not included: the input that
# GPT-2's GELU keeps and our ReLU does not, and the logits of the output layer. The lines are common sizes of GPU memory.

# %% [markdown]
# ## Tiles also save traffic
#
# A GPU has a large slow memory, and at each processor a small fast one. On an A100 the fast one holds 192 KB, and is
# about ten times as fast ([Dao et al., 2022](https://arxiv.org/abs/2205.14135), section 2.1). A t × t matrix does not
# fit into it, so mask, softmax and product each fetch it from the slow one. A tile fits. At t = 1,024 FlashAttention
# made training GPT-2 three times as fast as Hugging Face's code of 2022.

# %%
plots.diagrams.tiles_in_memory()

# %% [markdown]
# **How to read it.** The order of work in [FlashAttention-2](https://arxiv.org/abs/2307.08691). What is in fast memory
# at one moment is coloured. A tile of queries stays, with its m, ℓ and o, while all keys and values pass.

# %% [markdown]
# ## Sharded steps are those of a single worker
#
# Two workers are threads here. One has three of four texts, the other one. After three steps both must have the
# parameters that a single worker gets from all four texts. The plain mean of their gradients would make them agree with
# each other only.

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
sizes = {"n": 256, "e": 128, "h": 8, "depth": 4, "t_max": 128}
ids, targets = torch.randint(256, (2, 4, 128))
first_weights = SmallGPT(**sizes).state_dict()

def worker(group):
    """Three steps on this worker's rows. Returns all parameters, (P,)."""
    model = SmallGPT(**sizes)
    model.load_state_dict(first_weights)
    flat = flattened(model, group.size)                       # (P,), the model's parameters
    mine = nn.Parameter(flat.chunk(group.size)[group.rank].clone())
    optimiser = torch.optim.SGD([mine], lr=0.5, momentum=0.9)
    rows = slice(0, 4) if group.size == 1 else (slice(0, 3), slice(3, 4))[group.rank]
    for _ in range(3):
        model.zero_grad()
        F.cross_entropy(model(ids[rows]).flatten(0, 1), targets[rows].flatten()).backward()
        gradient, tokens = flat_gradient(model, len(flat)), torch.tensor(targets[rows].numel())
        flat.copy_(sharded_step(group, optimiser, mine, gradient, tokens))
    return flat

(one,), (first, second) = in_threads(worker, 1), in_threads(worker, 2)
print("both workers have the same parameters:", torch.equal(first, second))
print("and so has a single worker:", torch.allclose(first, one, atol=1e-4))

# %% [markdown]
# ## A model can be divided in other ways
#
# Large trainings combine data parallelism with other ways to divide the work:

# %%
plots.diagrams.ways_to_divide()

# %% [markdown]
# **How to read it.** Two workers in each panel. Green: the rows of the batch that a worker has. Blue: what it keeps of
# four layers; dashed: what the other worker keeps. Arrows: activations that are handed over in the forward pass; FSDP
# hands over weights instead.
#
# - **Fully sharded data parallelism (FSDP)** is ZeRO's stage 3 as PyTorch has it ([Zhao et al.,
#   2023](https://arxiv.org/abs/2304.11277)).
# - **Tensor parallelism** cuts every matrix, so each layer needs an exchange ([Shoeybi et al.,
#   2019](https://arxiv.org/abs/1909.08053)).
# - **Pipeline parallelism** gives each worker some of the layers; small parts of the batch follow each other, so that
#   fewer workers wait ([Huang et al., 2018](https://arxiv.org/abs/1811.06965)).

# %% [markdown]
# ## The count of operations is exact
#
# A matrix entry costs 2 operations per token in the forward pass and 4 in the backward pass; attention adds 4·e·t per
# block and token in the forward pass, mask or not. **Model FLOPs utilisation (MFU)** is these operations per second,
# divided by the most that the hardware can do ([Chowdhery et al., 2022](https://arxiv.org/abs/2204.02311), appendix B).
# PyTorch counts the same, if attention is computed in its plain form:

# %% tags=["nbval-check-output"]
e, depth, t, n = 128, 4, 512, 256
model, ids = CharTransformer(n, e, 8, depth, t), torch.zeros(1, t, dtype=torch.long)
with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
    logits = model(ids)
    forward = counter.get_total_flops()
    logits.sum().backward()
print("formula:        ", *flops_per_token(e, depth, t, n))
print("PyTorch's count:", forward // t, counter.get_total_flops() // t)

# %% [markdown]
# ## A formula is no better than its digits
#
# [Hoffmann et al., 2022](https://arxiv.org/abs/2203.15556), also fit a formula to all their losses, with N parameters
# and D tokens:
#
# $$L(N, D) = 1.69 + \frac{406.4}{N^{0.34}} + \frac{410.7}{D^{0.28}} .$$
#
# They trained *Chinchilla*, 70 billion parameters, on 20 tokens per parameter. Put their budget into their own formula,
# and into the one that [Besiroglu et al., 2024](https://arxiv.org/abs/2404.10102), fitted to the same data:

# %% tags=["nbval-check-output"]
def best_ratio(A, alpha, B, beta, budget=5.76e23):
    """Tokens per parameter at the lowest loss for a budget of 6ND operations."""
    N = torch.logspace(9, 12.5, 20_001, dtype=torch.float64)
    D = budget / (6 * N)
    best = (A / N**alpha + B / D**beta).argmin()
    return (D[best] / N[best]).item()

print(f"Hoffmann et al.:  {best_ratio(406.4, 0.34, 410.7, 0.28):.0f} tokens per parameter")
print(f"with exponents that round to theirs: {best_ratio(406.4, 0.3351, 410.7, 0.2849):.0f} "
      f"to {best_ratio(406.4, 0.3449, 410.7, 0.2751):.0f}")
print(f"Besiroglu et al.: {best_ratio(482.01, 0.3478, 2085.43, 0.3658):.0f}")

# %% [markdown]
# Exponents with two digits are too coarse to say how many tokens a parameter needs, and the fit itself was off, as the
# second paper found. The advice of 20 was based on two other estimates in the first paper, one of them its IsoFLOP
# profiles.

# %% [markdown]
# ## Sizes far apart find the best size more reliably
#
# Real losses also depend on the seed. Suppose that each is off by about half a percent, and that four trainings are
# affordable. Their sizes lie around the best one of Besiroglu et al.'s formula; losses are computed from it, with noise,
# 200 times for each width of the grid:

# %% tags=["nbval-check-output"]
def law(N, C):
    """The loss of N parameters after C operations."""
    return 1.8172 + 482.01 / N**0.3478 + 2085.43 / (C / (6 * N))**0.3658

budget, fine = 1.3e20, torch.logspace(7, 11, 200_001, dtype=torch.float64)
truth = fine[law(fine, budget).argmin()].item()
for width in (2, 16, 64):
    generator = torch.Generator().manual_seed(0)
    ends = math.log10(truth / width), math.log10(truth * width)
    grid, found = torch.logspace(*ends, 4).double(), []
    for _ in range(200):
        errors = 0.005 * torch.randn(4, generator=generator)
        found.append(best_size(grid.tolist(), (law(grid, budget) * (1 + errors)).tolist()))
    shares = torch.tensor([size / truth for size in found if size])
    low, middle, high = shares.quantile(torch.tensor([0.05, 0.5, 0.95])).tolist()
    print(f"from 1/{width} to {width} times: none in {200 - len(shares):>2} of 200; "
          f"middle {middle:.2f} of the best size, nine in ten {low:.2f} to {high:.2f}")

# %% [markdown]
# Narrow grids are noisy, and very wide ones are biased. From a half to twice the best size the losses differ by less
# than one percent, so noise of half a percent moves the minimum far. Very wide grids find a size that is too small,
# because the formula rises faster on the side of large models, whose text is short. [Czech et al.,
# 2026](https://arxiv.org/abs/2603.22339), find such biases in published grids.
