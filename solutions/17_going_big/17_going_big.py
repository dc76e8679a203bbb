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
# # 17 · Going big
#
# A large model can be [lesson 12's](../12_gpt2/12_gpt2.ipynb) with larger numbers in its configuration. What changes is
# that it no longer fits in memory, and that training takes weeks. This lesson asks four questions before a training
# begins: does it fit into memory, how long will it take, what limits it, and what would ten times more computing buy?
#
# Each answer is estimated with a formula first. Then it is measured, and the two are compared. Everything here runs on
# two cores. Where only a GPU would tell, we say so and do not guess.
#
# | | |
# |---|---|
# | **You will build** | counts of bytes and of operations, a step with a loss scale, gradient accumulation (which you fix), checkpointing, the average of several workers, and a scaling law that predicts a training before it is run |
# | **You need** | lessons [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 120 minutes: eight exercises, 27.5 points, and three predictions |
# | **It computes** | for half a minute in one cell, which trains four models; seconds everywhere else |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, e width, h heads, n size of the
# vocabulary. N is the number of parameters and D the number of tokens of a training. 1 MB is a million bytes.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from helpers import plots
from helpers.data.datasets import generator_text
from helpers.data.recorded import recorded
from helpers.device import device
from helpers.lesson import start
from helpers.parts import workers
from helpers.parts.big import Ledger, compiled, worker_gradients
from helpers.parts.big import keeping_autocast, random_state, set_random_state
from helpers.parts.blocks import TransformerBlock
from helpers.parts.generator import CharTransformer, sample_batch
from helpers.progress import progress

check = start("17_going_big")

# %% [markdown]
# ## Before you start
#
# <div class="card">
#
# **Recall** &nbsp; 2 minutes · no points
#
# <details><summary>Three questions about earlier lessons</summary>
#
# **`recall_shape`** 12 positions are cut into chunks for a window of w = 4. What is the shape of the scores with 2
# heads, for one text? (lesson 16)
#
# - **A.** (1, 2, 12, 12)
# - **B.** (1, 2, 3, 4, 4)
# - **C.** (1, 2, 3, 4, 8)
#
# **`recall_cause`** A layer of attention of width e gets 8 heads instead of 4. Why does it have as many parameters as
# before? (lesson 4)
#
# - **A.** All heads share the same three matrices of width d.
# - **B.** Each head is half as wide, and h · d stays e.
# - **C.** Heads have no parameters; `unify` has them all.
#
# **`recall_bug`** A training loop forgets `optimiser.zero_grad()`. What happens? (lesson 8)
#
# - **A.** Each step uses the sum of all gradients so far.
# - **B.** Each step uses the gradient of the first batch.
# - **C.** The second step raises an error.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "recall", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
recall_shape = "C"
recall_cause = "B"
recall_bug = "A"
### STUDENT GETS
# recall_shape = ...    # "A", "B" or "C"
# recall_cause = ...    # "A", "B" or "C"
# recall_bug = ...    # "A", "B" or "C"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_recall", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.recall(recall_shape, recall_cause, recall_bug)

# %% [markdown]
# ## What is in memory before the first word is read
#
# A model that is only used needs its weights, four bytes each in float32. A model that is trained with
# [AdamW](../../site/glossary.md#adamw) needs more: for each parameter a gradient, and the two running means that AdamW
# keeps, one of gradients and one of their squares. (They are called its *moments*.)
#
# In **[mixed precision](../../site/glossary.md#mixed-precision)**, which comes below, weights and gradients are kept in
# 16 bits. AdamW then keeps three numbers per parameter in 32 bits: both moments, and a copy of the weights, the
# **master weights**. The count follows [Rajbhandari et al., 2020](https://arxiv.org/abs/1910.02054), section 3.1.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `training_bytes`** &nbsp; ★☆☆ · 4 minutes · 2.5 points
#
# How many bytes does training with AdamW need for the weights, for the gradients, and for what the optimiser keeps?
# Return the counts for float32 or for mixed precision. Activations come next.
#
# <details><summary>Hint 1: bytes in a number</summary>
#
# 32 bits are 4 bytes, 16 bits are 2.
#
# </details>
# <details><summary>Hint 2: another optimiser</summary>
#
# An optimiser that keeps *one* number per parameter needs 4 bytes for it in float32. In mixed precision it needs 8: the
# master weight is the other 4.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "training_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def training_bytes(parameters, precision):
    """Bytes of a training with AdamW, without activations.

    parameters: how many. precision: "float32" or "mixed".
    Returns three numbers: bytes of the weights, of the gradients, of what AdamW keeps.
    """
    ### BEGIN SOLUTION
    if precision == "mixed":
        return 2 * parameters, 2 * parameters, 12 * parameters
    return 4 * parameters, 4 * parameters, 8 * parameters
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_training_bytes", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(training_bytes)

# %% tags=["nbval-check-output"]
gpt2_sizes = {"small": 124_439_808, "medium": 354_823_168, "large": 774_030_080,
              "XL": 1_557_611_200}
for name, parameters in gpt2_sizes.items():
    for precision in ("float32", "mixed"):
        kinds = [count / 1e9 for count in training_bytes(parameters, precision)]
        print(f"{name:>6}, {precision:>7}: weights {kinds[0]:5.2f} + gradients "
              f"{kinds[1]:5.2f} + optimiser {kinds[2]:5.2f} = {sum(kinds):5.2f} GB")

# %% [markdown]
# Both sums are 16 bytes per parameter: mixed precision saves nothing here. GPT-2 XL takes 25 GB before it has read a
# word. The weights in half precision are only 3 GB of that.

# %% [markdown]
# ## What autograd keeps
#
# The rest of the memory holds **activations**: what the forward pass computes and the backward pass needs. They grow
# with the batch and the length of the text. To count them without a GPU, use a hook in PyTorch that shows each tensor
# that autograd saves (`torch.autograd.graph.saved_tensors_hooks`). The `Ledger` from `helpers.parts.big` does so,
# counts each piece of memory once, and leaves out the parameters.
#
# But first predict.

# %% [markdown]
# <div class="card">
#
# **Prediction · `double_width`** &nbsp; 1 minute · no points
#
# A model made of blocks becomes twice as wide: e becomes 2e. Depth, heads, batch and text stay the same. What happens
# to the number of parameters in the blocks' matrices, and to the memory for attention matrices (b, h, t, t)?
#
# - **A.** Both double.
# - **B.** There are four times as many parameters, and the attention matrices stay the same size.
# - **C.** There are four times as many parameters, and the attention matrices double.
# - **D.** Both become four times as large.
# </div>

# %% nbgrader={"grade": false, "grade_id": "double_width", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
double_width = "B"
### STUDENT GETS
# double_width = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %% tags=["nbval-check-output"]
def plain_attention(q, k, v):
    """Causal attention of lesson 5, with its matrices; q, k, v (b, h, t, d)."""
    t, d = q.shape[-2:]
    past = torch.ones(t, t, dtype=torch.bool, device=q.device).tril()
    scores = (q @ k.mT / math.sqrt(d)).masked_fill(~past, -math.inf)
    return torch.softmax(scores, dim=-1) @ v

def heads(b, h, t, d):
    """Random queries, keys and values (b, h, t, d), which need gradients."""
    return [torch.randn(b, h, t, d, device=device()).requires_grad_() for _ in range(3)]

for e in (64, 128):
    block = TransformerBlock(e, 4)
    matrices = sum(p.numel() for p in block.parameters() if p.dim() == 2)
    q, k, v = heads(2, 4, 256, e // 4)
    weights = torch.softmax(q @ k.mT, dim=-1)
    print(f"e = {e:>3}: {matrices:>7,} parameters in a block's matrices, "
          f"{weights.nbytes / 1e6:.1f} MB of attention weights")

# %% nbgrader={"grade": true, "grade_id": "check_double_width", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("double_width", double_width)

# %% [markdown]
# ## The attention matrices
#
# So it is the length of the text, not the width, that makes attention expensive in memory. How expensive?

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `attention_bytes`** &nbsp; ★☆☆ · 3 minutes · 2 points
#
# Return the bytes of the attention matrices of a whole model, if each is kept `copies` times. A mask changes nothing:
# hidden entries take as much memory.
#
# <details><summary>Hint 1: one matrix</summary>
#
# How many numbers does the attention matrix of one head have, for one row of the batch?
#
# </details>
# <details><summary>Hint 2: a small model</summary>
#
# One block with 2 heads reads 5 rows of 3 tokens: 10 matrices of 9 numbers. In float32 these 90 numbers take 360 bytes.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "attention_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention_bytes(b, h, t, depth, copies=1, bytes_each=4):
    """Bytes of all attention matrices of a model with `depth` blocks.

    copies: how many times each matrix is kept. bytes_each: the bytes of one number.
    """
    ### BEGIN SOLUTION
    return b * h * t**2 * depth * copies * bytes_each
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_attention_bytes", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(attention_bytes)

# %% [markdown]
# A [well-known text](https://peterbloem.nl/blog/transformers) (Bloem, 2019) says: at t = 1,000, a batch of 16 such
# matrices takes about 250 MB; at least four copies of them are needed (before and after the softmax, and the gradients
# of both); so at most twelve layers fit on a GPU with 12 GB. Other articles have repeated the number. Is it right?

# %% tags=["nbval-check-output"]
for h in (1, 4, 8, 12):
    one = attention_bytes(16, h, 1000, 1)
    four = attention_bytes(16, h, 1000, 1, copies=4)
    print(f"h = {h:>2}: {one / 1e6:>4.0f} MB, four copies {four / 1e9:.2f} GB a layer: "
          f"12 GB hold {12e9 / four:.1f} layers")

# %% [markdown]
# It is right for **four heads**, which the text leaves out: 16 matrices of a million numbers are 64 MB per head. With
# GPT-2's twelve heads, 12 GB hold fewer than four layers. And are there four copies? Measure what autograd keeps, for
# one row of the batch:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
q, k, v = heads(1, 4, 1000, 16)
small = q.nbytes + k.nbytes + v.nbytes
with Ledger() as kept:
    plain_attention(q, k, v)
print(f"formula, one copy: {attention_bytes(1, 4, 1000, 1) / 1e6:.1f} MB")
print(f"plain attention:   {kept.peak / 1e6:.1f} MB kept, {small / 1e6:.1f} of it q, k, v")
with Ledger() as kept:
    F.scaled_dot_product_attention(q, k, v, is_causal=True)
print(f"PyTorch's own:     {kept.peak / 1e6:.1f} MB kept")

# %% [markdown]
# Autograd keeps one copy, and the mask: softmax needs only its own *result* to compute its gradient, and the scores
# before it are freed. (In the backward pass a second matrix, the gradient, exists for a moment, one layer at a time.)
# With PyTorch's own `scaled_dot_product_attention` there is no matrix at all: it computes attention in tiles and never
# holds t² numbers ([Dao et al., 2022](https://arxiv.org/abs/2205.14135)). That is why the number is right for few
# programs today.
#
# What remains are vectors. A block of [lesson 7](../07_transformer_block/07_transformer_block.ipynb) keeps about twelve
# of width e for each token:

# %% tags=["nbval-check-output"]
b, t, e, depth = 8, 128, 128, 8
torch.manual_seed(0)
blocks = nn.ModuleList(TransformerBlock(e, 4, pre_norm=True) for _ in range(depth))
blocks.to(device())
x = torch.randn(b, t, e, device=device()).requires_grad_()
with Ledger(blocks.parameters()) as kept:
    y = x
    for block in blocks:
        y = block(y)
print(f"{kept.bytes / 1e6:.1f} MB for {depth} blocks, "
      f"{kept.bytes / (b * t * e * 4 * depth):.1f} vectors a token and block")

# %% [markdown]
# The two norms keep their inputs and outputs, which makes four; queries, keys and values make three, the heads' output
# one, and the wide hidden layer four. Here is the whole account for GPT-2's sizes:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four stacked bars, memory of a training in gigabytes for GPT-2 small, medium, large and XL: weights, gradients, optimiser, and activations of four texts of 1,024 tokens. The optimiser is the largest of the first three, and activations are nearly as much as all three together for small, and more than half as much for XL. Horizontal lines at 8, 24 and 80 GB: small ends below 8 GB, medium a little above it, large a little below 24, XL at 40."}}
shapes = {"small": (768, 12), "medium": (1024, 24), "large": (1280, 36), "XL": (1600, 48)}
figure, ax = plt.subplots(figsize=(6, 3.8))
totals = {}
for place, (name, (e, depth)) in enumerate(shapes.items()):
    amounts = dict(zip(("weights", "gradients", "optimiser"),
                       training_bytes(gpt2_sizes[name], "float32")))
    amounts["activations, b = 4"] = 12 * 4 * 1024 * e * depth * 4
    height = 0
    for number, (kind, amount) in enumerate(amounts.items()):
        ax.bar(place, amount / 1e9, bottom=height, width=0.6, color=plots.COLOURS[number],
               hatch=("", "//", "..", "xx")[number], edgecolor="white", linewidth=0.5,
               label=kind if place == 0 else None)
        height += amount / 1e9
    totals[name] = height
for gpu in (8, 24, 80):
    ax.axhline(gpu, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
    ax.annotate(f"{gpu} GB", (-0.45, gpu + 0.6), fontsize=9)
ax.set_xticks(range(4), list(shapes))
ax.set(xlabel="GPT-2", ylabel="GB", ylim=(0, 90))
ax.legend(loc="center left")
plt.show()
print(", ".join(f"{name} {total:.1f} GB" for name, total in totals.items()))

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each bar is a model in float32, trained on four texts of 1,024 tokens at a time, with twelve
# vectors per token and block as counted above. (GPT-2's own blocks keep a few more, and its output layer b·t·n logits.)
# The lines show common GPU memory sizes. A bar that ends above a line does not fit there.
#
# </div>
#
# There are three ways to shrink the bars: numbers with fewer bits, fewer rows at a time, and fewer stored activations.
# The next sections try each of them.

# %% [markdown]
# ## Half precision
#
# A number in [float16](../../site/glossary.md#float16) has 5 bits for its exponent and 10 for its digits;
# **[bfloat16](../../site/glossary.md#bfloat16)** has 8 and 7. Float32 also has eight bits of exponent, so bfloat16 has
# almost the same range; float16 has finer steps but a far narrower range.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels. Left: ticks for all numbers between 0.99 and 1.01 that a type can hold: bfloat16 has 4 of them, float16 about thirty, float32 so many that they are a solid bar. Right: bars on a logarithmic axis from the smallest to the largest number: float16 reaches from 6e-8 to 65,504, bfloat16 and float32 both across a range many times as long."}}
figure, (near_one, reach) = plt.subplots(1, 2, figsize=(6.6, 2.6))
types = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
for place, (name, kind) in enumerate(types.items()):
    fine = torch.linspace(0.99, 1.01, 4001, dtype=torch.float64).to(kind).double().unique()
    inside = fine[(fine >= 0.99) & (fine <= 1.01)]
    near_one.vlines(inside, place - 0.3, place + 0.3, color=plots.COLOURS[place],
                    linewidth=0.4 if len(inside) > 100 else 1.2)
    about = torch.finfo(kind)
    smallest = about.smallest_normal * about.eps
    left, right = math.log10(smallest), math.log10(about.max)
    reach.barh(place, right - left, left=left, height=0.5, color=plots.COLOURS[place])
    print(f"{name:>8}: after 1 comes {1 + about.eps:.9g}, smallest {smallest:.1e}, "
          f"largest {about.max:.5g}")
for ax in (near_one, reach):
    ax.set_yticks(range(3), list(types))
    ax.grid(False, axis="y")
near_one.set(xlabel="numbers near 1", xlim=(0.99, 1.01))
near_one.set_xticks([0.99, 1.0, 1.01])
reach.set(xlabel="power of ten")
reach.set_yticklabels([])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: each line is a number that the type can hold; there are none in between. Right: the range of
# each type, from its smallest positive number to its largest.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Prediction · `thousand_small_steps`** &nbsp; 1 minute · no points
#
# In bfloat16, start from 1.0 and add 0.001 a thousand times. What is the result?
#
# - **A.** 1.0
# - **B.** About 1.5
# - **C.** About 2.0
# </div>

# %% nbgrader={"grade": false, "grade_id": "thousand_small_steps", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
thousand_small_steps = "A"
### STUDENT GETS
# thousand_small_steps = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
for kind in (torch.float32, torch.float16, torch.bfloat16):
    total, count = torch.ones((), dtype=kind), torch.zeros((), dtype=kind)
    for _ in range(1000):
        total, count = total + 0.001, count + 1
    print(f"{str(kind):>14}: 1 + 1000 · 0.001 = {total.item():.3f}, "
          f"a thousand ones add up to {count.item():.0f}")
print("1e-8 in float16:", torch.tensor(1e-8).half().item())

# %% nbgrader={"grade": true, "grade_id": "check_thousand_small_steps", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("thousand_small_steps", thousand_small_steps)

# %% [markdown]
# A training adds small steps to weights, thousands of times. If the weights are in bfloat16, most steps are lost. Here
# is one step at a learning rate of 3e-5:

# %%
torch.manual_seed(0)
for kind in (torch.float32, torch.bfloat16):
    weight = nn.Parameter(nn.Linear(256, 256).weight.detach().to(kind))
    before = weight.detach().clone()
    weight.grad = torch.randn_like(weight)
    torch.optim.AdamW([weight], lr=3e-5, weight_decay=0).step()
    still = (weight == before).float().mean().item()
    print(f"{str(kind):>14}: {still:.0%} of the weights are where they were after a step")

# %% [markdown]
# So **products**, which take most of the time, may be in half precision. **Sums over many numbers, softmax, the loss
# and the master weights** stay in 32 bits ([Micikevicius et al., 2018](https://arxiv.org/abs/1710.03740)). PyTorch's
# `autocast` decides by a list of operations, one for each kind of device. On a CPU:

# %% tags=["nbval-check-output"]
a = torch.randn(4, 4)
with torch.autocast("cpu", torch.bfloat16):
    product = a @ a
    print("product:", product.dtype, "| softmax:", torch.softmax(product, -1).dtype,
          "| weights:", a.dtype)
    print("loss:", F.cross_entropy(product, torch.arange(4)).dtype)

# %% [markdown]
# The CPU's list leaves softmax in the type of its input. On a GPU, softmax, sums and norms are computed in 32 bits
# ([PyTorch's lists](https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference)).
#
# ## A loss scale
#
# bfloat16 needs no more than that. float16 has one more problem: gradients are small, and below 6e-8 it has no positive
# numbers. The remedy is a factor, the **[loss scale](../../site/glossary.md#loss-scale)** S. Multiply the loss by S,
# and by the chain rule all gradients are S times as large; divide them by S before they are used.
#
# How much is lost without it? Here are the gradients in the hidden layers of a small model, divided by 256. That is how
# small they would be with GPT-2's batch, 512 texts of 1,024 tokens: the mean is over 256 times as many tokens.

# %%
text, _ = generator_text(places="embedded")
data = torch.tensor(list(text), dtype=torch.uint8)
cut = len(data) * 19 // 20
train, held_out = data[:cut].to(device()), data[cut:].to(device())
torch.manual_seed(0)
model = CharTransformer(256, 64, 4, depth=3, t_max=128).to(device())
slopes = []
hooks = [block.feed_forward.widen.register_full_backward_hook(
             lambda module, below, above: slopes.append(above[0].flatten()))
         for block in model.transformer.blocks]
inputs, targets = sample_batch(train, 16, 128)
F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).backward()
for hook in hooks:
    hook.remove()
small = torch.cat(slopes) * (16 * 128) / (512 * 1024)
small = small[small != 0]              # ReLU's own zeros are no loss
for power in (0, 8, 16, 24, 32, 40, 48):
    half = (small * 2.0**power).half()
    print(f"S = 2^{power:<2}: {(half == 0).float().mean():6.1%} become 0, "
          f"{half.isinf().float().mean():6.1%} infinite")

# %% [markdown]
# Many values of S work, but their range changes while the model learns. So S is adjusted all the time: it grows a
# little with every step, and when a gradient has become infinite or NaN, the step is skipped and S is halved.

# %%
plots.diagrams.mixed_step()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One step, from the master weights at the top left around to the master weights again. Blue is in
# 32 bits, orange in 16. The step in the middle is the exercise.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `scaled_step`** &nbsp; ★★★ · 11 minutes · 4.5 points
#
# The gradients in `.grad` belong to a loss that was multiplied by `scale`. Take one step with the true gradients,
# clipped as in [lesson 8](../08_classifier/08_classifier.ipynb): the norm of all of them together is at most `limit`.
# Return the next scale, `scale` times `growth`.
#
# If any gradient contains an infinity or NaN, take no step: no parameter changes. Return half of `scale`.
#
# A parameter whose `.grad` is None is left out. What `.grad` holds afterwards does not matter. Do not use PyTorch's
# `GradScaler` here.
#
# <details><summary>Hint 1: the order</summary>
#
# `limit` is meant for the true gradients. What must you do before you compare them with it?
#
# </details>
# <details><summary>Hint 2: a step by hand</summary>
#
# The scale is 8, the limit 1, and two parameters have 24 and 32 in `.grad`. The true gradients are 3 and 4. Their norm
# is 5, so the step is taken with 0.6 and 0.8. `gradient.isfinite()` is False for infinity and NaN, and
# `nn.utils.clip_grad_norm_(parameters, limit)` clips.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "scaled_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def scaled_step(optimiser, parameters, scale, limit, growth=1.001):
    """A step with gradients of a loss that was multiplied by `scale`, or no step.

    parameters: a list of those to clip; each .grad has its parameter's shape (...), or is
    None. limit: of the norm of all true gradients together. Returns the next scale.
    """
    ### BEGIN SOLUTION
    learned = [parameter for parameter in parameters if parameter.grad is not None]
    for parameter in learned:
        parameter.grad.div_(scale)
    if not all(parameter.grad.isfinite().all() for parameter in learned):
        return scale / 2
    nn.utils.clip_grad_norm_(learned, limit)
    optimiser.step()
    return scale * growth
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_scaled_step", "locked": true, "points": 4.5, "schema_version": 3, "solution": false, "task": false}
check(scaled_step)

# %% [markdown]
# What does the order cost? A published trainer multiplied the loss, clipped, and divided afterwards ([issue 1196 of
# PyTorch's own examples](https://github.com/pytorch/examples/issues/1196)). Its gradients then had a norm of at most
# `limit` divided by S. Here is that order beside yours, with plain gradient descent and with Adam:

# %%
def clipped_first(optimiser, parameters, scale, limit):
    """The published order: clip, then divide."""
    nn.utils.clip_grad_norm_(parameters, limit)
    for parameter in parameters:
        parameter.grad.div_(scale)
    optimiser.step()
    return scale

# %% tags=["hide-input"]
def last_loss(how, kind, rate, steps=60):
    """Fits a line with gradients of a scaled loss; the loss at the end."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=generator)
    y = x @ torch.randn(8, 1, generator=generator)
    weight, scale = nn.Parameter(torch.zeros(8, 1)), 65536.0
    optimiser = kind([weight], lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = (x @ weight - y).square().mean()
        (loss * scale).backward()
        scale = how(optimiser, [weight], scale, 1.0)
    return loss.item()

for kind, rate in ((torch.optim.SGD, 0.1), (torch.optim.Adam, 0.1)):
    right, wrong = (last_loss(how, kind, rate) for how in (scaled_step, clipped_first))
    start_loss = last_loss(scaled_step, kind, 0.0, steps=1)
    print(f"{kind.__name__:>4}: loss {start_loss:.2f} at the start, {right:.3f} after "
          f"dividing first, {wrong:.3f} after clipping first")

# %% [markdown]
# Plain gradient descent hardly moves. Adam divides each step by the size of the gradients, so a constant factor hardly
# matters. That is why such a bug can stay in a program for years.

# %% [markdown]
# ## Fewer rows at a time
#
# A batch that does not fit is cut into parts. The gradient of a sum is the sum of the gradients, and `.backward()` adds
# to what is in `.grad`. So run the parts one after another, call `zero_grad` once before and `step` once after. This is
# **[gradient accumulation](../../site/glossary.md#gradient-accumulation)**. The activations of one part are freed
# before the next begins.
#
# Until October 2024 widely used trainers did it as in the cell below, which is wrong wherever the parts hold different
# numbers of tokens. The [fix in `transformers`](https://github.com/huggingface/transformers/pull/34191) was followed by
# [one in `torchtune`](https://github.com/pytorch/torchtune/pull/1875).

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `accumulated_gradients`** &nbsp; mend · ★★☆ · 7 minutes · 4 points
#
# Mend the function. `.grad` must hold exactly the gradients that one batch of all rows would leave, where the loss is
# the mean over all targets that are not `pad`. Rows differ in how much padding they have, and a part may be only
# padding. What was in `.grad` before is cleared.
#
# The model gets one part at a time, and the backward pass of each part runs before the next begins. `ids` and `targets`
# stay unchanged.
#
# <details><summary>Hint 1: how much one target counts</summary>
#
# How much does a target count in this code if it is the only one in its part? And if it is one of a hundred?
#
# </details>
# <details><summary>Hint 2: three targets by hand</summary>
#
# One part has 2 targets with losses of 1 and 3, another has 1 target with a loss of 8. The mean of the three is 4, the
# mean of the two means 5. What do you divide 1 + 3 by, and what do you divide 8 by, so that the results add up to 4?
# (`reduction="sum"` adds up and does not divide.)
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "accumulated_gradients", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accumulated_gradients(model, ids, targets, parts, pad):
    """Leaves the gradients of the whole batch in .grad, computed in parts.

    ids, targets: (b, t). Targets that are `pad` count for nothing; at least one is not.
    """
    model.zero_grad()
    ### BEGIN SOLUTION
    tokens = (targets != pad).sum()
    for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
        logits = model(some_ids).flatten(0, 1)
        loss = F.cross_entropy(logits, some_targets.flatten(), ignore_index=pad,
                               reduction="sum")
        (loss / tokens).backward()
    ### STUDENT GETS
    # for some_ids, some_targets in zip(ids.chunk(parts), targets.chunk(parts)):
    #     logits = model(some_ids).flatten(0, 1)
    #     loss = F.cross_entropy(logits, some_targets.flatten(), ignore_index=pad)
    #     (loss / parts).backward()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_accumulated_gradients", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(accumulated_gradients)

# %%
def left_by(fill_in):
    """All gradients of the model as one vector, after fill_in()."""
    model.zero_grad()
    fill_in()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

ids, answers = sample_batch(train, 8, 64)
for row in range(8):
    answers[row, 64 - 8 * row:] = 0      # row 0 is full, row 7 has 8 targets
whole = left_by(lambda: F.cross_entropy(
    model(ids).flatten(0, 1), answers.flatten(), ignore_index=0).backward())
for parts in (1, 2, 4, 8):
    with Ledger(model.parameters()) as kept:
        mine = left_by(lambda: accumulated_gradients(model, ids, answers, parts, pad=0))
    print(f"{parts} part{'s' if parts > 1 else ' '}: off by "
          f"{((mine - whole).norm() / whole.norm()).item():.0e} of the gradient, "
          f"{kept.peak / 1e6:5.1f} MB of activations at the peak")

# %% [markdown]
# The gradient is the same, up to rounding, with an eighth of the memory. [Another
# trainer](https://github.com/bytetriper/RAE/issues/67) called `zero_grad` for each part: then only the last one counts,
# and there is no error.

# %% [markdown]
# ## Fewer activations
#
# **[Checkpointing](../../site/glossary.md#checkpointing)** keeps only the input of each block. When the backward pass
# reaches a block, the block is computed again, used, and freed ([Chen et al., 2016](https://arxiv.org/abs/1604.06174)).
# It costs one more forward pass. A forward pass is a third of a step, as the operations below will show, so expect a
# third more time.

# %% [markdown]
# <div class="card">
#
# **Prediction · `eight_checkpoints`** &nbsp; 1 minute · no points
#
# The eight blocks above keep 51 MB between the forward and the backward pass, at b = 8, t = 128, e = 128. If each block
# is checkpointed, how much is kept between the passes?
#
# - **A.** About 25 MB
# - **B.** About 10 MB
# - **C.** About 4 MB
# </div>

# %% nbgrader={"grade": false, "grade_id": "eight_checkpoints", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
eight_checkpoints = "C"
### STUDENT GETS
# eight_checkpoints = ...    # "A", "B" or "C"
### END SOLUTION

# %% [markdown]
# In PyTorch, an operation with a backward pass of its own is a class with two static methods. `forward` gets a
# `context`, in which it may store things for `backward`, and what it computes is **not** recorded by autograd.
# `backward` gets the gradient of the output and returns a gradient for each argument of `forward` after the context, or
# None where there is none. The parameters are arguments too, so that autograd knows about them.
#
# Nothing is recorded in `backward` either, unless the code runs under `torch.enable_grad()`. Then
# `torch.autograd.grad(y, inputs, slope, allow_unused=True)` returns a tuple with the gradient of each input, None for
# an input that y does not depend on.
#
# Both runs must be of the same network. [Dropout](../../site/glossary.md#dropout) draws random numbers, and other
# numbers make another network. `random_state(device)` returns the state of the random number generator, and
# `set_random_state(device, state)` restores it. Autocast may be on in the forward pass and off in the backward pass:
# `keeping_autocast(block, device)` returns the block such that it always runs with autocast as it is now.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `checkpointed`** &nbsp; ★★★ · 14 minutes · 5 points
#
# Write both passes of `Checkpoint`. Output and gradients are those of `block(x)`, also with dropout, when x needs no
# gradient, and when the block is used twice. The forward pass keeps only x; the block runs again in the backward pass.
# After each pass the random numbers continue as if the block had run once.
#
# `checkpointed` is given: it passes on the parameters that learn (others may be frozen, and some may be unused), and a
# block with the same autocast in both runs. Do not use `torch.utils.checkpoint` here.
#
# <details><summary>Hint 1: forward</summary>
#
# What does `backward` need that is gone by then? Store it in attributes such as `context.block`, and store x with
# `context.save_for_backward(x)`.
#
# </details>
# <details><summary>Hint 2: backward by hand</summary>
#
# A block computes y = w·x, with x = 2, w = 3 and a slope of 5. `torch.autograd.grad(y, [x, w], slope)` gives (15, 10),
# and `backward` returns (None, 15, 10). For that, y must come from an x that begins a new graph:
# `x.detach().requires_grad_()`. Which random state is needed before the second run, and which after it?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "checkpointed", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Checkpoint(torch.autograd.Function):
    """A block of which only the input is kept."""

    @staticmethod
    def forward(context, block, x, *parameters):
        """x: (...). Returns block(x). parameters: those of the block that learn."""
        ### BEGIN SOLUTION
        context.block, context.parameters = block, parameters
        context.state = random_state(x.device)
        context.save_for_backward(x)
        return block(x)
        ### END SOLUTION

    @staticmethod
    def backward(context, slope):
        """slope: gradient of the output. Returns None for the block, then gradients."""
        ### BEGIN SOLUTION
        (x,) = context.saved_tensors
        x = x.detach().requires_grad_()
        now = random_state(x.device)
        set_random_state(x.device, context.state)
        with torch.enable_grad():
            y = context.block(x)
        set_random_state(x.device, now)
        inputs = [x, *context.parameters]
        return None, *torch.autograd.grad(y, inputs, slope, allow_unused=True)
        ### END SOLUTION

def checkpointed(block, x):
    """block(x), with the same gradients, keeping x alone until the backward pass."""
    learned = [parameter for parameter in block.parameters() if parameter.requires_grad]
    return Checkpoint.apply(keeping_autocast(block, x.device), x, *learned)

# %% nbgrader={"grade": true, "grade_id": "check_checkpointed", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(checkpointed)

# %%
def one_step(how):
    """Both passes through the eight blocks: the ledger, and what was kept between."""
    with Ledger(blocks.parameters()) as kept:
        y = x
        for block in blocks:
            y = how(block, y)
        between = kept.bytes
        y.sum().backward()
    return kept, between

ways = {"everything kept": lambda block, x: block(x), "checkpointed": checkpointed}
ledgers = {name: one_step(how) for name, how in ways.items()}
for name, (kept, between) in ledgers.items():
    print(f"{name:>16}: {between / 1e6:5.1f} MB between the passes, "
          f"{kept.peak / 1e6:5.1f} MB at the peak")
seconds = {name: [] for name in ways}
for _ in range(5):
    for name, how in ways.items():
        before = time.process_time()
        one_step(how)
        seconds[name].append(time.process_time() - before)
plain, again = (min(taken) for taken in seconds.values())
print(f"a checkpointed step takes {again / plain - 1:.0%} longer")

# %% nbgrader={"grade": true, "grade_id": "check_eight_checkpoints", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("eight_checkpoints", eight_checkpoints)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Memory kept by autograd through one step, against the number of changes. With everything kept it climbs in a line to 51 megabytes in the middle and falls in a line to 0. Checkpointed, it rises to 4 megabytes in the first few changes and then makes eight humps, one per block, the first reaching 10 megabytes and each a little lower than the one before."}}
series = {}
for name, (kept, _) in ledgers.items():
    places = [i / (len(kept.history) - 1) for i in range(len(kept.history))]
    series[name] = (places, [amount / 1e6 for amount in kept.history])
ax = plt.subplots(figsize=(6, 3.2))[1]
for number, (name, (places, amounts)) in enumerate(series.items()):
    ax.step(places, amounts, where="post", color=plots.COLOURS[number],
            linestyle=plots.DASHES[number], label=name)
ax.set(xlabel="course of one step", ylabel="MB kept by autograd", ylim=(0, None))
ax.set_xticks([0, 1], ["begin", "end"])
ax.legend()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From left to right, the memory that autograd holds, one point for each tensor that is saved or
# freed. With everything kept, the forward pass is the climb and the backward pass the descent. With checkpoints, the
# forward pass is the first short rise, and the backward pass is the eight humps: each time one block is computed again
# and freed.
#
# </div>
#
# The memory holds eight inputs of 0.5 MB, and at the peak one block as well. If the blocks are checkpointed in groups
# of k, depth/k inputs are kept, and k blocks are computed again at a time; the sum of both is smallest at k = √depth
# ([Chen et al., 2016](https://arxiv.org/abs/1604.06174)). [Child et al., 2019](https://arxiv.org/abs/1904.10509),
# recompute the attention and the feed-forward network of each block, and train on sequences of 12,288 tokens.
#
# And the random state? A [published version](https://github.com/openai/guided-diffusion/issues/167) of this class does
# not restore it, which does no harm as long as dropout is 0. [A training
# program](https://github.com/allenai/OLMo-core/pull/828) measured what it costs: a loss of 2.49 instead of 2.19.

# %% [markdown]
# ## Counting operations
#
# How long will it take? A matrix with M entries, applied to one token, costs M multiplications and as many additions:
# 2M operations. (The usual word is FLOP, floating-point operation.) The backward pass computes two such products for
# each matrix, one for the gradient of the input and one for the gradient of the matrix: 4M. So training costs **6
# operations for each parameter and token**, C ≈ 6ND ([Kaplan et al., 2020](https://arxiv.org/abs/2001.08361)). A
# block's matrices have 4e² entries in the attention and 8e² in the feed-forward network.
#
# Attention comes on top. A query is multiplied with t keys of d components, in h heads. That makes 2·e·t operations for
# the scores, and as many to mix the values. By custom the mask is ignored.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `flops_per_token`** &nbsp; ★★☆ · 8 minutes · 3.5 points
#
# Return the operations per token of lesson 9's model, with `depth` blocks of width e, a context of t and n possible
# bytes: in the forward pass, and in training (forward and backward pass together).
#
# Count the matrices of the blocks, the output layer (e to n), and attention to all t keys. Leave out norms, biases and
# softmax. Looking up an embedding needs no multiplication.
#
# <details><summary>Hint 1: in pieces</summary>
#
# How many entries do all matrices have, and what does an entry cost? What does attention add in each block?
#
# </details>
# <details><summary>Hint 2: a small model</summary>
#
# With e = 2, one block, t = 3 and n = 5 the block's matrices have 48 entries and the output layer 10: 116 operations.
# The scores take 12 more, and mixing the values another 12: 140. In the backward pass each product has two gradients.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "flops_per_token", "locked": false, "schema_version": 3, "solution": true, "task": false}
def flops_per_token(e, depth, t, n):
    """Operations a token of lesson 9's model: two numbers, forward and in training."""
    ### BEGIN SOLUTION
    entries = 12 * depth * e**2 + e * n
    forward = 2 * entries + 4 * depth * e * t
    return forward, 3 * forward
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_flops_per_token", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(flops_per_token)

# %% [markdown]
# PyTorch can count too, operation by operation, while a model runs:

# %% tags=["nbval-check-output"]
model = CharTransformer(256, 64, 4, depth=3, t_max=128)
ids = torch.zeros(1, 128, dtype=torch.int64)
print("formula:             ", *flops_per_token(64, 3, 128, 256))
with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
    logits = model(ids)
    forward = counter.get_total_flops()
    logits.sum().backward()
print("PyTorch's count:     ", forward // 128, counter.get_total_flops() // 128)
with FlopCounterMode(display=False) as counter:
    model(ids)
print("as the model runs:   ", counter.get_total_flops() // 128)

# %% [markdown]
# The first two lines agree exactly. The third is too low by exactly 4·depth·e·t: if the plain form of attention is not
# requested, this version of PyTorch counts its fast kernel on a CPU as 0 ([issue
# 195460](https://github.com/pytorch/pytorch/issues/195460)). Counters have to be checked too.
#
# So the time of a training is 6ND divided by the operations per second that the machine really reaches. The ratio of
# that to the machine's promised peak is the **utilisation** ([Chowdhery et al.,
# 2022](https://arxiv.org/abs/2204.02311), appendix B). Above 100 % something was counted wrong: a report of [104
# %](https://github.com/karpathy/nanoGPT/pull/464) had compared an H100 with the peak of an A100. Here is what one core
# of this machine reaches:

# %%
def fastest(function, times=5):
    """The shortest time of a few calls, in seconds of one core, after one to warm up."""
    on_gpu = device().type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    function()
    taken = []
    for _ in range(times):
        before = clock()
        function()
        if on_gpu:
            torch.cuda.synchronize()    # a call returns before its work is done
        taken.append(clock() - before)
    return min(taken)

# %% tags=["hide-input"]
points = {"product of matrices": [], "sum, norm, softmax": []}
for size in (8, 32, 128, 512, 1024):
    a, other = (torch.randn(size, size, device=device()) for _ in range(2))
    work, moved = 2 * size**3, 3 * 4 * size**2          # read two matrices, write one
    points["product of matrices"].append((work / moved, work / fastest(lambda: a @ other)))
rows = torch.randn(4096, 512, device=device())
for call, work, moved in ((lambda: rows + rows, 1, 12),
                          (lambda: torch.softmax(rows, dim=-1), 5, 8),
                          (lambda: F.layer_norm(rows, (512,)), 8, 8)):
    points["sum, norm, softmax"].append(
        (work / moved, work * rows.numel() / fastest(call)))
peak = max(speed for _, speed in points["product of matrices"])
for name, found in points.items():
    print(f"{name}, in billions a second:",
          ", ".join(f"{speed / 1e9:.2g}" for _, speed in found))

# %% tags=["hide-input"] mystnb={"image": {"alt": "Operations a second against operations per byte moved, both axes logarithmic. Sum, softmax and layer norm are on the left, at one operation a byte or less, far below the large products. Products of matrices rise from the smallest, which is slower than all else, to large ones on the right, where they flatten out at the machine's peak. A dotted line shows the roof."}}
ax = plt.subplots(figsize=(6, 3.6))[1]
for number, (name, found) in enumerate(points.items()):
    ax.plot(*zip(*sorted(found)), linestyle="-" if number == 0 else "", label=name,
            color=plots.COLOURS[number], marker=plots.MARKERS[number])
width = max(speed / dense for dense, speed in points["sum, norm, softmax"])
dense = [0.05, peak / width, 200]
ax.plot(dense, [min(peak, width * one) for one in dense], color="#555555",
        linestyle=(0, (2, 2)), linewidth=1.2, label="roof")
ax.set(xscale="log", yscale="log", xlabel="operations per byte moved",
       ylabel="operations per second")
ax.legend(loc="lower right")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Further right there is more arithmetic for each byte that is moved. The slanted part of the roof
# is what memory can deliver, the flat part what the processor can compute. Small products are below it because starting
# them takes longer than computing them.
#
# </div>
#
# Operations per byte moved are called **[arithmetic intensity](../../site/glossary.md#arithmetic-intensity)**. A large
# product uses each number many times; a norm or a softmax uses it once or twice, and on a GPU waits for memory. (In the
# figure both are well below the slanted roof too: on this processor something else slows them down.) `torch.compile`
# helps with such operations: it turns several of them into one loop, which reads and writes everything once. Here is
# [GELU](../../site/glossary.md#gelu) by its formula, eight operations in PyTorch:

# %%
def by_formula(x):
    """GELU, with a trip through memory for each operation; x: (...)."""
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))

wide = torch.randn(1000, 1000)
before = time.perf_counter()
in_one = compiled(by_formula, wide)
if in_one is None:
    print("torch.compile found no C++ compiler here, so there is nothing to compare.")
else:
    print(f"compiling took {time.perf_counter() - before:.1f} s")
    eager, one_loop = fastest(lambda: by_formula(wide)), fastest(lambda: in_one(wide))
    print(f"as written {1000 * eager:.1f} ms, compiled {1000 * one_loop:.1f} ms: "
          f"{eager / one_loop:.1f} times as fast")
    print(f"largest difference {(by_formula(wide) - in_one(wide)).abs().max().item():.0e}")

# %% [markdown]
# ## Two processes
#
# When one machine is too slow, several share each batch. Each **worker** has a copy of the model, takes some of the
# rows, and computes the gradients of its own mean loss. The gradients are averaged over all workers, and all take the
# same step, so the copies stay equal. This is **[data parallelism](../../site/glossary.md#data-parallelism)**. The
# average is computed by an operation in which all workers take part, *all-reduce*: each gives a tensor, and all get the
# sum.
#
# Which average is the gradient of the whole batch? You have met that question above.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `averaged`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Each worker has the gradients of the mean loss over its own tokens. Return the gradients of the mean over all tokens.
# A worker without tokens does not count; its gradients are finite. The workers' own gradients stay unchanged.
#
# <details><summary>Hint 1: from means to sums</summary>
#
# A worker's mean times its number of tokens is its sum.
#
# </details>
# <details><summary>Hint 2: two workers by hand</summary>
#
# One worker has 3 tokens and a gradient of 2, another 1 token and a gradient of 10. The gradients of their sums are 6
# and 10, so the gradient of the mean over four tokens is 4. (`zip(*gradients)` gives, for each parameter, the gradients
# of all workers.)
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "averaged", "locked": false, "schema_version": 3, "solution": true, "task": false}
def averaged(gradients, counts):
    """The gradients of the mean over all tokens.

    gradients: for each worker a list with a tensor (...) for each parameter.
    counts: for each worker its number of tokens.
    Returns a list with a tensor (...) for each parameter.
    """
    ### BEGIN SOLUTION
    total = sum(counts)
    result = []
    for of_all in zip(*gradients):
        result.append(sum(count * g for count, g in zip(counts, of_all)) / total)
    return result
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_averaged", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(averaged)

# %% [markdown]
# Now for real, with two processes on this machine besides the notebook's own. Each is a Python that imports PyTorch.
# They find each other through a file, and communicate through `torch.distributed` with its backend for CPUs, *gloo*.
# What a worker runs must be importable: a function that is defined in a notebook exists only there. `worker_gradients`
# is in `helpers/parts/big.py`, and `in_processes`, which starts the workers and ends them whatever happens, in
# `helpers/parts/workers.py`. You may interrupt the cell; no process stays behind.
#
# (Where lessons are graded, programs may not open connections, not even to themselves. So this cell is left out there,
# and no points depend on it.)

# %% tags=["hide-input"]
sizes = {"n": 256, "e": 64, "h": 4, "depth": 2, "t_max": 32}
torch.manual_seed(0)
model = CharTransformer(**sizes)
ids, answers = (part.cpu() for part in sample_batch(train, 12, 32))
F.cross_entropy(model(ids).flatten(0, 1), answers.flatten()).backward()
whole = [parameter.grad for parameter in model.parameters()]

def furthest(gradients):
    """The largest difference from the whole batch's, in units of its largest gradient."""
    largest = max(goal.abs().max().item() for goal in whole)
    return max((g - goal).abs().max().item() for g, goal in zip(gradients, whole)) / largest

# %%
if not workers.available():
    print("No processes are started here.")
else:
    for share in ([6, 6], [9, 3]):
        found = workers.in_processes(
            worker_gradients, sizes, model.state_dict(), ids, answers, share)
        mine = averaged([one["own"] for one in found], [one["tokens"] for one in found])
        print(f"rows {share}, {len({one['process'] for one in found})} processes: "
              f"plain mean off by {furthest(found[0]['mean']):.0e}, "
              f"your average by {furthest(mine):.0e}")

# %% [markdown]
# With equal shares the plain mean, which PyTorch's `DistributedDataParallel` computes, is the whole batch's gradient up
# to rounding. With unequal shares it is another gradient, and no error is raised. A second trap: workers with the same
# seed draw the same rows, and two machines do the work of one.
#
# More rows in a step make a better gradient, with diminishing returns. At the **critical batch size** a training needs
# about twice the minimum number of steps; with far larger batches, more rows save hardly any steps. The critical batch
# size grows during training ([McCandlish et al., 2018](https://arxiv.org/abs/1812.06162)).

# %% [markdown]
# ## What would ten times more buy?
#
# Train models of several sizes on the same number of tokens, and plot the loss against N, both in logarithms. The
# points are nearly on a line ([Kaplan et al., 2020](https://arxiv.org/abs/2001.08361)), which means a power law,
#
# $$L(N) \approx a \, N^{-\alpha}, \qquad \ln L = \ln a - \alpha \ln N .$$
#
# Such a **[scaling law](../../site/glossary.md#scaling-law)** predicts the loss of a large training before anyone pays
# for it. [Kaplan et al., 2020](https://arxiv.org/abs/2001.08361), leave the embeddings out of N, and so do we here;
# Hoffmann et al., further down, count everything. That explains much of the difference between the two laws ([Pearce
# and Song, 2024](https://arxiv.org/abs/2406.12907)).

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `fit_power_law`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Fit a power law to the losses: the least-squares line through their logarithms. Sizes come in any order, and at least
# two differ. If losses rise with the size, α is below 0.
#
# <details><summary>Hint 1: a line</summary>
#
# With x = ln N and y = ln L the slope of the least-squares line is $\sum (x - \bar x)(y - \bar y) / \sum (x - \bar
# x)^2$, and it goes through the point of the means.
#
# </details>
# <details><summary>Hint 2: two points by hand</summary>
#
# Models of sizes 1 and e² have the losses e³ and e: the points (0, 3) and (2, 1). The slope is −1 and the height at x =
# 0 is 3. So a is e³, and α is 1.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "fit_power_law", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fit_power_law(sizes, losses):
    """The power law a · N^(−alpha) through measured losses.

    sizes, losses: lists of as many numbers, above 0. Returns two numbers: a, alpha.
    """
    ### BEGIN SOLUTION
    x = torch.tensor(sizes, dtype=torch.float64).log()
    y = torch.tensor(losses, dtype=torch.float64).log()
    x_off, y_off = x - x.mean(), y - y.mean()
    slope = (x_off * y_off).sum() / (x_off * x_off).sum()
    return math.exp(y.mean() - slope * x.mean()), -slope.item()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_fit_power_law", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(fit_power_law)

# %% [markdown]
# Three sizes of lesson 9's model, each trained on the same 200 batches of 1,024 bytes with the same learning rate. Then
# your line predicts the fourth. The training is that of lesson 9, in the folded cell.

# %% tags=["hide-input"]
def trained_loss(e, steps):
    """Held-out nats per byte of a model of two blocks, trained for so many steps."""
    torch.manual_seed(0)
    model = CharTransformer(256, e, 2, depth=2, t_max=64).to(device())
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(1)
    for step in progress(range(steps), f"e = {e}"):
        optimiser.param_groups[0]["lr"] = 0.02 * min(1, (step + 1) / 30) * (1 - step / steps)
        inputs, targets = sample_batch(train, 16, 64, generator)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    inputs, targets = sample_batch(held_out, 256, 64, torch.Generator().manual_seed(2))
    with torch.no_grad():
        return F.cross_entropy(model.eval()(inputs).flatten(0, 1), targets.flatten()).item()

# %%
steps = 200
losses = {}
for e in (16, 24, 36):
    losses[24 * e * e] = trained_loss(e, steps)
a, alpha = fit_power_law(list(losses), list(losses.values()))
fourth = 24 * 54**2
predicted = a * fourth**-alpha
print(f"L(N) = {a:.2f} · N^(−{alpha:.3f}); predicted for N = {fourth:,}: {predicted:.3f}")

# %% [markdown]
# The prediction is made. Now train the fourth model, more than twice the size of the largest so far:

# %%
measured = trained_loss(54, steps)
print(f"predicted {predicted:.3f}, measured {measured:.3f} nats per byte: "
      f"off by {abs(predicted / measured - 1):.1%}")
print(f"the third model's loss, as if more size bought nothing: "
      f"off by {min(losses.values()) / measured - 1:.1%}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Held-out loss against parameters without embeddings, both axes logarithmic. Three round points fall nearly on a straight dashed line. At more than twice the parameters of the third, the predicted point, on the line, and the measured one, slightly above it, are close together."}}
def show_law(sizes, losses, a, alpha):
    """Losses of models of these sizes, and the line that was fitted to all but the last."""
    ax = plt.subplots(figsize=(6, 3.4))[1]
    line = [0.6 * sizes[0], 1.6 * sizes[-1]]
    ax.plot(line, [a * size**-alpha for size in line], color="#555555", linewidth=1.2,
            linestyle=(0, (4, 2)), label="line through three")
    ax.plot(sizes[:-1], losses[:-1], linestyle="", marker="o", color=plots.COLOURS[0],
            label="measured")
    ax.plot(sizes[-1], a * sizes[-1]**-alpha, linestyle="", marker="D",
            markerfacecolor="white", color=plots.COLOURS[1], label="predicted")
    ax.plot(sizes[-1], losses[-1], linestyle="", marker="s", color=plots.COLOURS[2],
            label="measured afterwards")
    ax.set(xscale="log", yscale="log", xlabel="parameters without embeddings",
           ylabel="held-out nats per byte")
    low, high = min(losses), max(losses)
    ticks = [tick / 20 for tick in range(math.floor(20 * low), math.ceil(20 * high) + 1)]
    ax.set_yticks(ticks, [f"{tick:.2f}" for tick in ticks])
    ax.minorticks_off()
    ax.legend(fontsize=8.5)
    plt.show()

show_law([*losses, fourth], [*losses.values(), measured], a, alpha)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each point is a training. The dashed line was fitted only to the round points, before the fourth
# training began.
#
# </div>
#
# The second error printed above is the one to beat: the losses of neighbouring sizes are never far apart. And to extend
# a line through three points by a factor of two is not much of a test. So the same was done once with larger models,
# and **recorded**: four blocks, Wikipedia, learning rates chosen by short trainings, and a last step by a factor of
# four.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Held-out loss against parameters without embeddings, both axes logarithmic. Three round points near a straight dashed line: the middle one a little above it, the outer two a little below. At four times the parameters of the third the measured loss lies below the predicted one, which is on the line."}}
run = recorded("scaling")
found = run["result"]
print(f"$ {run['command']}\non: {run['machine']}\n")
print(f"each model reads {run['settings']['bytes_read'] / 1e6:.1f} million bytes; "
      f"{found['operations']:.1e} operations, without the search for rates")
for size, rate, loss in zip(found["sizes"], found["rates"], found["held_out_nats"]):
    print(f"N = {size:>9,}: rate {rate:g}, {loss:.3f} nats per byte")
*_, third, largest = found["held_out_nats"]
print(f"predicted {found['predicted']:.3f}, measured {found['measured']:.3f}: "
      f"off by {found['off_by']:.1%}; the third model's loss: "
      f"off by {third / largest - 1:.1%}")
lower = zip(found["held_out_nats"], found["held_out_nats"][1:])
print("each factor of four lowers the loss by", *(f"{1 - b / a:.1%}" for a, b in lower))
show_law(found["sizes"], found["held_out_nats"], found["a"], found["alpha"])

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** As above; each point is a recorded training.
#
# </div>
#
# The prediction is 1.8 % too high. The last printed line shows why: each factor of four lowers the loss by more than
# the one before. These models are not on a straight line. Over a short range a line is close enough to be useful, but
# three points near a line do not make a law.
#
# The published laws are extended by a factor of a thousand, and then it matters what was fitted. A loss cannot fall
# below the uncertainty of the text itself; a pure power law forces that floor to 0. [Hoffmann et al.,
# 2022](https://arxiv.org/abs/2203.15556), fit three terms, with N parameters and D tokens:
#
# $$L(N, D) = 1.69 + \frac{406.4}{N^{0.34}} + \frac{410.7}{D^{0.28}} .$$
#
# With 6ND operations to spend, which N is best? They trained *Chinchilla*, 70 billion parameters on 1.4 trillion
# tokens, 20 per parameter. Put their budget into their own formula, and into the one that [Besiroglu et al.,
# 2024](https://arxiv.org/abs/2404.10102), fitted to the same data:

# %% tags=["nbval-check-output"]
def best_ratio(A, alpha, B, beta, budget=5.76e23):
    """Tokens per parameter at the lowest loss for a budget of 6ND operations."""
    sizes = torch.logspace(9, 12.5, 20_001, dtype=torch.float64)
    tokens = budget / (6 * sizes)
    best = (A / sizes**alpha + B / tokens**beta).argmin()
    return (tokens[best] / sizes[best]).item()

print(f"Hoffmann et al.:  {best_ratio(406.4, 0.34, 410.7, 0.28):.0f} tokens per parameter")
print(f"with more digits: {best_ratio(406.4, 0.3392, 410.7, 0.2849):.0f}")
print(f"Besiroglu et al.: {best_ratio(482.01, 0.3478, 2085.43, 0.3658):.0f}")

# %% [markdown]
# The published formula gives 93, and much of that is rounding: with two more digits in its exponents, 0.3392 and
# 0.2849, it gives 59. The rest is a bad fit, as the second paper found; the same data give 18. The advice of 20 was
# based on two other estimates, and was sound. A law is no better than its fit and its digits.

# %% [markdown]
# ## What a GPU changes
#
# Nothing that was counted changes: bytes, operations, gradients. Everything that was timed does. Half precision is
# several times as fast there, and fused kernels gain more. The clock must be read after `torch.cuda.synchronize()`,
# because a call returns before the work is done. None of that was measured for this lesson.

# %% [markdown]
# ## What you can do now
#
# You can say before a training begins how much memory it takes, and make it fit without changing its gradients; count
# its operations and say what limits it; divide it among workers; and predict the loss of a larger model.
#
# **Three questions to think about**
#
# <details><summary>1. A model with 7 billion parameters is to be trained with AdamW in mixed precision on GPUs with 80
# GB. How many GPUs does it take at least, if everything is divided among them?</summary>
#
# Two: 16 · 7 billion bytes are 112 GB, which leaves 48 GB for activations. Plain data parallelism keeps the optimiser's
# state in every worker. Dividing it among them is what [Rajbhandari et al.](https://arxiv.org/abs/1910.02054) propose.
#
# </details>
# <details><summary>2. Accumulation in 8 parts and checkpointing both save memory. Which costs time, and which costs
# none?</summary>
#
# Accumulation does the same operations in another order. Checkpointing does a third more. But parts can be too small:
# then the products are under the slanted part of the roof, and each operation takes longer.
#
# </details>
# <details><summary>3. Twice the parameters on the same text: the scaling law promises a lower loss. What if the text is
# small?</summary>
#
# The law was fitted where no text was read twice. A larger model memorises a small text, and the held-out loss rises.
#
# </details>
#
# **Further reading**
#
# - **[Rajbhandari et al., *ZeRO: memory optimizations toward training trillion parameter models*,
#   2020](https://arxiv.org/abs/1910.02054)**, sections 3 and 5: where memory goes, and how to divide it.
# - [Micikevicius et al., *Mixed precision training*, 2018](https://arxiv.org/abs/1710.03740), section 3.
# - [Chen et al., *Training deep nets with sublinear memory cost*, 2016](https://arxiv.org/abs/1604.06174).
# - [Kaplan et al., *Scaling laws for neural language models*, 2020](https://arxiv.org/abs/2001.08361), and [Hoffmann et
#   al., *Training compute-optimal large language models*, 2022](https://arxiv.org/abs/2203.15556).
# - [Chowdhery et al., *PaLM*, 2022](https://arxiv.org/abs/2204.02311), appendix B: counting operations and utilisation.
#
# **Next:** [lesson 18, *Since GPT-2*](../18_since_gpt2/18_since_gpt2.ipynb)
