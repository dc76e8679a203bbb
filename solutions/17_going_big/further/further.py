# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Going big
#
# Three sums to [lesson 17](../17_going_big/17_going_big.ipynb): what training GPT-2 keeps in memory, how many operations
# a token costs, and what a published formula for the best size says when its digits are taken seriously.

# %%
import matplotlib.pyplot as plt
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from helpers import plots
from helpers.parts.big import flops_per_token
from helpers.parts.generator import CharTransformer

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
# ## The count of operations is exact
#
# A matrix entry costs 2 operations per token in the forward pass and 4 in the backward pass; attention adds 4·e·t per
# block and token in the forward pass, mask or not. PyTorch counts the same, if attention is computed in its plain form:

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
