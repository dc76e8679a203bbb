# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 17 · Going big
#
# A large model can be [lesson 12's](../12_gpt2/12_gpt2.ipynb) with larger numbers in its configuration. What changes is
# that it no longer fits in memory, and that training takes weeks. This lesson takes one training step and makes it
# smaller or faster, one change at a time. Each change adds a row to a table: seconds, bytes, tokens a second.
#
# Every row is measured in the cell that prints it. The seconds on this page are of one run on one CPU; on another
# machine, and above all on a GPU, their ratios differ.
#
# | | |
# |---|---|
# | **You will build** | scores that do not overflow in half precision, gradient accumulation (which you fix), checkpointing, a count of operations, the average of several workers, and a scaling law that predicts a training before it is run |
# | **You need** | lessons [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 95 minutes: six exercises, 22.5 points, and three predictions |
# | **It computes** | for a few seconds in each cell that adds a row, seconds at most everywhere else |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, e width, h heads, n size of the
# vocabulary. N is the number of parameters and D the number of tokens of a training. 1 MB is a million bytes.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import inspect
import math

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
from helpers.parts.big import Ledger, worker_gradients
from helpers.parts.big import keeping_autocast, random_state, set_random_state
from helpers.parts.blocks import TransformerBlock
from helpers.parts.generator import sample_batch
from helpers.parts.sharding import SmallGPT, sharded_step, worker_steps
from helpers.step_table import StepTable, fastest

check = start("17_going_big")

# %% [markdown]
# ## One training step
#
# The model is lesson 9's: four blocks of width 128 with 8 heads. A step reads four texts of 512 bytes. We begin with
# attention as lesson 5 wrote it, which PyTorch calls its *math* backend.

# %%
torch.set_num_threads(1)        # one core for each process, so that the rows can be compared
text, _ = generator_text(places="embedded")
data = torch.tensor(list(text), dtype=torch.uint8).to(device())
b, t = 4, 512
ids, targets = sample_batch(data, b, t, torch.Generator().manual_seed(0))

sizes = {"n": 256, "e": 128, "h": 8, "depth": 4, "t_max": t}
torch.manual_seed(0)
model = SmallGPT(**sizes).to(device())
optimiser = torch.optim.AdamW(model.parameters())

def loss():
    return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())

def step():
    optimiser.zero_grad()
    loss().backward()
    optimiser.step()

table = StepTable(tokens=b * t)
with sdpa_kernel(SDPBackend.MATH):
    table.measure("plain attention", step, model, optimiser)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %% [markdown]
# **Seconds** are of one processor core, so that other programs on the machine do not count; each row is the fastest of
# up to eight steps. **State** is what stays. In float32 each parameter takes 4 bytes for its weight, 4 for
# its gradient, and 8 for the two running means that [AdamW](../../site/glossary.md#adamw) keeps: 16 bytes in all.
#
# **Activations** are what the forward pass computes and the backward pass needs. PyTorch can call a hook for each
# tensor that autograd saves (`torch.autograd.graph.saved_tensors_hooks`). The `Ledger` from `helpers.parts.big` uses it
# to add up the bytes. It counts each piece of memory once and leaves out the parameters. The table shows the peak.

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
for e in (128, 256):
    matrices = sum(p.numel() for p in TransformerBlock(e, 8).parameters() if p.dim() == 2)
    q, k = torch.randn(2, b, 8, t, e // 8)
    weights = torch.softmax(q @ k.mT, dim=-1)
    print(f"e = {e}: {matrices:>7,} parameters in a block's matrices, "
          f"{weights.nbytes / 1e6:.1f} MB of attention weights")

# %% nbgrader={"grade": true, "grade_id": "check_double_width", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("double_width", double_width)

# %% [markdown]
# ## Attention without its matrices
#
# Four blocks keep four times 33.6 MB of attention weights: most of the first row. The fused kernel of
# `scaled_dot_product_attention` computes attention in tiles, as you did in [lesson
# 16](../16_sparse_attention/16_sparse_attention.ipynb), and never holds t² numbers ([Dao et al.,
# 2022](https://arxiv.org/abs/2205.14135)). PyTorch chooses it unless told otherwise:

# %%
table.measure("fused attention", step, model, optimiser)

# %% [markdown]
# What remains are vectors. How many vectors of width e does a block keep for each token?

# %% tags=["nbval-check-output"]
blocks = model.transformer.blocks
x = model.positions(model.tokens(ids)).detach().requires_grad_()       # (b, t, e)

def one_pass(run_block):
    """Both passes through the four blocks: the ledger, and the bytes kept between them."""
    with Ledger(blocks.parameters()) as kept:
        y = x
        for block in blocks:
            y = run_block(block, y)
        between = kept.bytes
        y.sum().backward()
    return kept, between

everything, between = one_pass(lambda block, x: block(x))
print(f"{between / 1e6:.1f} MB in four blocks, "
      f"{between / len(blocks) / x.nbytes:.1f} vectors a token and block")

# %% [markdown]
# The two norms keep their inputs and outputs, which makes four; queries, keys and values make three, the heads' output
# one, and the wide hidden layer four. With that, here is the account for GPT-2's sizes:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four stacked bars, memory of a training in gigabytes for GPT-2 small, medium, large and XL: weights, gradients, optimiser, and activations of four texts of 1,024 tokens. The optimiser is the largest of the first three, and activations are nearly as much as all three together for small, and more than half as much for XL. Horizontal lines at 8, 24 and 80 GB: small ends below 8 GB, medium above it, large below 24 GB, XL at 40 GB."}}
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
# <div class="figure-caption">
#
# **How to read it.** Each bar is a model in float32 with fused attention, trained on four texts of 1,024 tokens at a
# time, with twelve vectors per token and block as above. Not included: the input that GPT-2's GELU keeps and our ReLU
# does not, and the b·t·n logits of the output layer. The lines show common GPU memory sizes.
#
# </div>

# %% [markdown]
# ## Half precision
#
# A number in [float16](../../site/glossary.md#float16) has 5 bits for its exponent and 10 for its digits;
# **[bfloat16](../../site/glossary.md#bfloat16)** has 8 and 7. Float32 also has eight bits of exponent, so bfloat16 has
# almost the same range, with coarser steps.

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

# %% nbgrader={"grade": true, "grade_id": "check_thousand_small_steps", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("thousand_small_steps", thousand_small_steps)

# %% [markdown]
# A training adds small steps to its weights, thousands of times. So **[mixed
# precision](../../site/glossary.md#mixed-precision)** computes products, which take most of the time, in 16 bits. The
# weights that the optimiser changes, sums over many numbers, and the loss stay in 32 bits ([Micikevicius et al.,
# 2018](https://arxiv.org/abs/1710.03740)). PyTorch's `autocast` decides by a list of operations. `model.autocast`
# switches it on for the forward pass:

# %%
model.autocast = True
with torch.autocast(device().type, torch.bfloat16):
    print("product:", (x[0] @ x[0].mT).dtype, "| block's output:", blocks[0](x).dtype,
          "| weights:", blocks[0].attention.to_keys.weight.dtype)
table.measure("bfloat16", step, model, optimiser)

# %% [markdown]
# The activations shrink, but not to half: the output of each block, which the next norm keeps, stays in 32 bits. So
# does the state, since autocast makes 16-bit copies of the weights as it goes. Other programs keep 16-bit weights and
# gradients, and a third 32-bit number in the optimiser: 2 + 2 + 12 bytes, again 16 ([Rajbhandari et al.,
# 2020](https://arxiv.org/abs/1910.02054), section 3.1). Whether bfloat16 saves time depends on the processor and on the
# size of the products. On this page it saves little.
#
# float16 needs one thing more. It has no positive numbers below 6e-8, so small gradients become 0. The loss is
# therefore multiplied by a large factor, the **[loss scale](../../site/glossary.md#loss-scale)**, and the gradients are
# divided by it before they are clipped or used. A published trainer clipped first: [issue 1196 of PyTorch's
# examples](https://github.com/pytorch/examples/issues/1196).

# %% [markdown]
# Loss scaling protects small numbers. Numbers can also be too large: **a product can overflow although the score would
# fit.** The largest number in float16 is 65,504. A vector with 64 entries of 40 has the product 102,400 with itself,
# which becomes ∞. Divided by √64 = 8 it is only 12,800. (bfloat16 has the range for it, but its numbers near 12,800 are
# 64 apart.)
#
# [Lesson 3](../03_scaling/03_scaling.ipynb) divides the product. For 16 bits the division has to come first, as in
# PyTorch's [general
# code](https://github.com/pytorch/pytorch/blob/12da0c70378b5be9135c6fda62a9863bce4a4818/aten/src/ATen/native/transformers/attention.cpp#L653).

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `scaled_scores_early`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Return the scores $q k^\top / \sqrt d$, with or without an axis for heads, but divide **before** the product, so that
# no intermediate number overflows. The check runs it in float16 too, on vectors whose products q·k are beyond 65,504.
# The result must have the dtype of q and k. (Computing in float32 and converting the result back passes too.)
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
long_vectors = torch.full((1, 1, 64), 40.0, dtype=torch.float16)
print("divided after the product: ", (long_vectors @ long_vectors.mT / 8).item())
print("divided before the product:", scaled_scores_early(long_vectors, long_vectors).item())

one_too_large = torch.tensor([float("inf"), 3.0, 1.0])
print("softmax of a row with one infinite score:", torch.softmax(one_too_large, 0).tolist())

# %% [markdown]
# One infinite score turns the *whole row* into NaN, and the NaN spreads to all that is computed from it.

# %% [markdown]
# ## Fewer rows at a time
#
# The gradient of a sum is the sum of the gradients, and `.backward()` adds to what is in `.grad`. So cut the batch into
# parts and run one after another; call `zero_grad` once before and `step` once after. This is **[gradient
# accumulation](../../site/glossary.md#gradient-accumulation)**. The activations of one part are freed before the next
# begins.
#
# Until October 2024 widely used trainers accumulated as the cell below does. Its gradients are wrong wherever the parts
# hold different numbers of tokens. The [fix in `transformers`](https://github.com/huggingface/transformers/pull/34191)
# was followed by [one in `torchtune`](https://github.com/pytorch/torchtune/pull/1875).

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `accumulated_gradients`** &nbsp; fix · ★★☆ · 7 minutes · 4 points
#
# Mend the function. `.grad` must hold the gradients that a single batch of all rows would leave, where the loss is the
# mean over all targets that are not `pad`. Rows differ in how much padding they have, and a part may be nothing but
# padding: you may skip it. What was in `.grad` before is cleared.
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

# %% [markdown]
# Our texts have no padding, so no target is `pad` here:

# %%
def step_in_parts():
    accumulated_gradients(model, ids, targets, parts=4, pad=-1)
    optimiser.step()

table.measure("four parts", step_in_parts, model, optimiser)

# %% [markdown]
# [Another trainer](https://github.com/bytetriper/RAE/issues/67) called `zero_grad` for each part: then only the last
# part counts, and there is no error.

# %% [markdown]
# ## Fewer activations
#
# **[Checkpointing](../../site/glossary.md#checkpointing)** keeps only the input of each block. When the backward pass
# reaches a block, the block is computed again, used, and freed ([Chen et al., 2016](https://arxiv.org/abs/1604.06174)).

# %% [markdown]
# <div class="card">
#
# **Prediction · `four_checkpoints`** &nbsp; 1 minute · no points
#
# In float32 the four blocks keep about 50 MB between the forward and the backward pass, at b = 4, t = 512, e = 128. If
# each block is checkpointed, how much is kept between the passes?
#
# - **A.** About 25 MB
# - **B.** About 16 MB
# - **C.** About 4 MB
# </div>

# %% nbgrader={"grade": false, "grade_id": "four_checkpoints", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
four_checkpoints = "C"
### STUDENT GETS
# four_checkpoints = ...    # "A", "B" or "C"
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
# `keeping_autocast(block, device)` returns a block that always runs with autocast as it is at the time of this call.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `checkpointed`** &nbsp; ★★★ · 14 minutes · 5 points
#
# Write both passes of `Checkpoint`. Output and gradients are those of `block(x)`, also with dropout, when x needs no
# gradient, and when the block is used twice. The forward pass keeps only x, besides the block and its parameters; the
# block runs again in the backward pass, which returns all gradients and leaves `.grad` alone. After each pass the
# random numbers continue as if the block had run once.
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

# %% tags=["nbval-check-output"]
checkpoints, between = one_pass(checkpointed)
print(f"everything kept: {everything.peak / 1e6:.1f} MB at the peak")
print(f"   checkpointed: {checkpoints.peak / 1e6:.1f} MB at the peak, "
      f"{between / 1e6:.1f} MB between the passes")

# %% nbgrader={"grade": true, "grade_id": "check_four_checkpoints", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("four_checkpoints", four_checkpoints)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Memory kept by autograd through one step, against the number of changes. With everything kept it climbs in steps to about 50 megabytes in the middle and falls in steps to 0. Checkpointed, it rises to 4 megabytes in the first few changes and then makes four humps, one per block, the first reaching about 16 megabytes and each a little lower than the one before."}}
ax = plt.subplots(figsize=(6, 3.0))[1]
for number, (name, kept) in enumerate({"everything kept": everything,
                                       "checkpointed": checkpoints}.items()):
    places = [i / (len(kept.history) - 1) for i in range(len(kept.history))]
    ax.step(places, [amount / 1e6 for amount in kept.history], where="post", label=name,
            color=plots.COLOURS[number], linestyle=plots.DASHES[number])
ax.set(xlabel="course of one step", ylabel="MB kept by autograd", ylim=(0, None))
ax.set_xticks([0, 1], ["begin", "end"])
ax.legend()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From left to right, the memory that autograd holds for the four blocks, one point for each tensor
# saved or freed. Checkpointed, the forward pass is the short first rise. Each hump is a block that is computed again
# and freed.
#
# </div>
#
# The second forward pass costs time. In the table:

# %%
model.run_block = checkpointed
table.measure("checkpoints", step_in_parts, model, optimiser)

# %% [markdown]
# A [published version](https://github.com/openai/guided-diffusion/issues/167) of this class does not restore the random
# state, which does no harm as long as dropout is 0. With dropout it does: [one
# project](https://github.com/allenai/OLMo-core/pull/828) measured a loss of 2.49 instead of 2.19 after 150 steps.

# %% [markdown]
# ## Counting operations
#
# How fast could a step be? A matrix with M entries, applied to one token, costs M multiplications and as many
# additions: 2M operations. (The usual word is FLOP, floating-point operation.) The backward pass computes two such
# products for each matrix, one for the gradient of the input and one for the gradient of the matrix: 4M. So training
# costs **6 operations for each parameter and token**, C ≈ 6ND ([Kaplan et al.,
# 2020](https://arxiv.org/abs/2001.08361)). A block's matrices have 4e² entries in the attention and 8e² in the
# feed-forward network.
#
# The scores come on top. In each block a query is multiplied with t keys of d components, in h heads. That makes 2·e·t
# operations for the scores, and as many to mix the values. By custom the mask is ignored.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `flops_per_token`** &nbsp; ★★☆ · 8 minutes · 3.5 points
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
# PyTorch can count too, operation by operation. It needs the plain form of attention, since it counts the fused one on
# a CPU as 0 ([issue 195460](https://github.com/pytorch/pytorch/issues/195460), closed since):

# %% tags=["nbval-check-output"]
fresh = SmallGPT(**sizes)
with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
    logits = fresh(ids[:1].cpu())
    forward = counter.get_total_flops()
    logits.sum().backward()
print("formula:        ", *flops_per_token(sizes["e"], sizes["depth"], t, sizes["n"]))
print("PyTorch's count:", forward // t, counter.get_total_flops() // t)

# %% [markdown]
# How close does each row come to what the machine can do? Its peak is measured with large products, in float32:

# %% tags=["hide-input"]
def point(call, work, moved):
    """(operations per byte moved, operations per second) of a call."""
    return work / moved, work / fastest(call)

def product(rows, columns, inner):
    """A product of matrices (rows, inner) and (inner, columns) in float32."""
    a, other = torch.randn(rows, inner), torch.randn(inner, columns)
    a, other = a.to(device()), other.to(device())
    return point(lambda: a @ other, 2 * rows * columns * inner,
                 4 * (rows * inner + inner * columns + rows * columns))

rows = torch.randn(b * t, sizes["e"], device=device())
points = {
    "square products": [product(size, size, size) for size in (8, 32, 128, 512, 1024)],
    "this model's products": [product(b * t, 4 * 128, 128), product(b * t, 256, 128)],
    "sum, softmax, norm": [
        point(lambda: rows + rows, rows.numel(), 12 * rows.numel()),
        point(lambda: rows.softmax(-1), 5 * rows.numel(), 8 * rows.numel()),
        point(lambda: F.layer_norm(rows, (128,)), 8 * rows.numel(), 8 * rows.numel())]}
for name, found in points.items():
    print(f"{name}, in billions a second:", ", ".join(f"{s / 1e9:.2g}" for _, s in found))
per_step = flops_per_token(sizes["e"], sizes["depth"], t, sizes["n"])[1] * b * t
for row in table.rows:
    print(f"a step, {row.name}: {per_step / row.seconds / 1e9:.0f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Operations per second against operations per byte moved, both axes logarithmic. Square products rise from the smallest, which is slower than all else, to large ones on the right, where they flatten out. This model's two products are close together on the right, among the fastest. Sum, softmax and norm are on the left, at one operation per byte or less, far below the large products. A dotted line shows the roof, slanted on the left and flat on the right; the sum is on it, softmax and norm are below it."}}
ax = plt.subplots(figsize=(6, 3.6))[1]
for number, (name, found) in enumerate(points.items()):
    ax.plot(*zip(*sorted(found)), linestyle="" if number else "-", label=name,
            color=plots.COLOURS[number], marker=plots.MARKERS[number])
peak = max(speed for found in points.values() for _, speed in found)
width = max(speed / dense for dense, speed in points["sum, softmax, norm"])
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
# **How to read it.** Each point is an operation, timed here; further right there is more arithmetic per byte moved. The
# roof's flat part is the fastest product, its slanted part the fastest of the three operations on the left. (Their
# arrays fit into a cache, so it does not measure memory.) A softmax counts as 5 operations per number, a norm as 8.
#
# </div>
#
# Operations per byte moved are called **[arithmetic intensity](../../site/glossary.md#arithmetic-intensity)**. A large
# product uses each number many times; a sum, a softmax or a norm uses it only a few times. `torch.compile` turns
# several such operations into one loop, which reads and writes everything once. It has no row here: we compiled the
# blocks once on this processor, and the step was no faster. (Softmax and norm are well below the slanted roof, so
# something other than moving bytes slows them down.)
#
# How near does a step come to the roof? Compare rows of one precision only: the products are in float32, and the
# fastest step is in bfloat16, for which some processors have units of their own. The count ignores recomputation, so
# checkpointing's second forward pass appears as a lower rate: three quarters in theory, and a little less here.

# %% [markdown]
# ## Two processes
#
# When one processor is too slow, several share each batch. Each **worker** has a copy of the model, takes some of the
# rows, and computes the gradients of its own mean loss. The gradients are averaged over all workers, and all take the
# same step, so the copies stay equal. This is **[data parallelism](../../site/glossary.md#data-parallelism)**. The
# average is computed by *all-reduce*: each worker gives a tensor, and all get the sum.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `averaged`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Each worker has the gradients of the mean loss over its own tokens. Return the gradients of the mean over all tokens.
# A worker without tokens does not count; its gradients are finite. The workers' own gradients stay unchanged.
#
# <details><summary>Hint 1: from means to sums</summary>
#
# What is the gradient of the *sum* over a worker's tokens?
#
# </details>
# <details><summary>Hint 2: two workers by hand</summary>
#
# One worker has 3 tokens and a gradient of 2, another 1 token and a gradient of 10. The gradient of the mean over all
# four tokens is 4; the plain mean of the two would be 6. (`zip(*gradients)` gives, for each parameter, the gradients of
# all workers.)
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
# Now with real processes: two workers, started from the notebook. They communicate through `torch.distributed` with its
# backend for CPUs, *gloo*. What a worker runs must be importable: `worker_gradients` is in `helpers/parts/big.py`, and
# `in_processes`, which starts the workers and ends them whatever happens, in `helpers/parts/workers.py`.
#
# (Where lessons are graded, programs may not open connections, not even to themselves. There these cells start nothing,
# and no points depend on them.)

# %%
on_cpu = ids.cpu(), targets.cpu()
if not workers.available():
    print("No processes are started here.")
else:
    fresh.zero_grad()
    F.cross_entropy(fresh(on_cpu[0]).flatten(0, 1), on_cpu[1].flatten()).backward()
    whole = torch.cat([parameter.grad.flatten() for parameter in fresh.parameters()])
    for share in ([2, 2], [3, 1]):
        found = workers.in_processes(
            worker_gradients, sizes, fresh.state_dict(), *on_cpu, share)
        ways = {"plain mean": found[0]["mean"],
                "your average": averaged([one["own"] for one in found],
                                         [one["tokens"] for one in found])}
        for name, gradients in ways.items():
            difference = torch.cat([gradient.flatten() for gradient in gradients]) - whole
            off = (difference.norm() / whole.norm()).item()
            print(f"rows {share}, {name}: off by {off:.0e}")

# %% [markdown]
# With equal shares the plain mean, which PyTorch's `DistributedDataParallel` computes, is the whole batch's gradient up
# to rounding. With unequal shares it is not, and no error is raised. A second trap: workers with the same seed draw the
# same rows, and two machines do the work of one.
#
# Now the row of the table: two workers with two texts each, one text at a time, in bfloat16 and with checkpoints as
# before. Bytes and seconds are those of one worker, the slower of the two; waiting for the other does not count.

# %%
if not workers.available():
    print("No processes are started here.")
else:
    together = workers.in_processes(worker_steps, sizes, fresh.state_dict(), *on_cpu, False)
    table.add_workers("two processes", together)

# %% [markdown]
# ## Dividing the optimiser
#
# Both workers keep the same state. AdamW changes a parameter by that parameter's own gradient and running means; no
# other parameter matters. So each worker can keep the running means of one half, update that half, and receive the
# other half from the other worker. This is stage 1 of **ZeRO** ([Rajbhandari et al.,
# 2020](https://arxiv.org/abs/1910.02054), section 5).

# %%
plots.diagrams.zero_shares()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** What two workers keep, in float32. The width of a box is its bytes per parameter. Each stage
# divides one thing more; a dashed box is kept by the other worker. In stage 3 the parameters of a block are gathered
# when it runs.
#
# </div>
#
# A step of stage 1, as the workers run it:

# %% tags=["nbval-check-output"]
print(inspect.getsource(sharded_step).rstrip())

# %%
if not workers.available():
    print("No processes are started here.")
else:
    divided = workers.in_processes(worker_steps, sizes, fresh.state_dict(), *on_cpu, True)
    table.add_workers("sharded optimiser", divided)
    for one in divided:
        torch.testing.assert_close(one["parameters"], together[0]["parameters"])
    print("the parameters are the same in both workers, and the same as without sharding")
    print(f"optimiser: {together[0]['state'][2] / 1e6:.2f} MB in each worker, "
          f"sharded {divided[0]['state'][2] / 1e6:.2f} MB")

# %% [markdown]
# ## What would a larger model buy?
#
# Train models of several sizes until more text no longer helps, and plot the loss against N, both in logarithms. The
# points are nearly on a line ([Kaplan et al., 2020](https://arxiv.org/abs/2001.08361)), which means a power law,
#
# $$L(N) \approx a \, N^{-\alpha}, \qquad \ln L = \ln a - \alpha \ln N .$$
#
# Such a **[scaling law](../../site/glossary.md#scaling-law)** predicts the loss of a large training before anyone pays
# for it.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `fit_power_law`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Fit a power law to the losses: the least-squares line through their logarithms, found in any way. Sizes come in any
# order; some may be equal, but at least two differ. If losses rise with the size, α is below 0.
#
# <details><summary>Hint 1: a line</summary>
#
# With x = ln N and y = ln L the law is a line. The slope of the least-squares line is the covariance of x and y over
# the variance of x, and the line passes through the point of the means.
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
# Training four models takes too long for this page, so it was done once and **recorded**. Each has four blocks and
# read the same part of Wikipedia, which has less than a byte for each parameter of the largest. Learning rates were
# chosen by short trainings; for the largest only one was tried. So this is no test of a published law. It shows how a
# line is fitted, and how little three points prove.
#
# Your line goes through the three smaller models and predicts the fourth. N leaves out the embeddings, as in [Kaplan
# et al., 2020](https://arxiv.org/abs/2001.08361).

# %% tags=["hide-input"] mystnb={"image": {"alt": "Held-out loss against parameters without embeddings, both axes logarithmic. Three round points near a straight dashed line: the middle one a little above it, the outer two a little below. At four times the parameters of the third the measured loss lies below the predicted one, which is on the line."}}
run = recorded("scaling")
counts, losses = run["result"]["sizes"], run["result"]["held_out_nats"]
a, alpha = fit_power_law(counts[:-1], losses[:-1])
predicted = a * counts[-1]**-alpha
print(f"$ {run['command']}\non: {run['machine']}\n")
print(f"L(N) = {a:.2f} · N^(−{alpha:.3f})")
print(f"predicted {predicted:.3f}, measured {losses[-1]:.3f} nats per byte: "
      f"off by {predicted / losses[-1] - 1:.1%}")
print(f"the third model's loss as a guess: off by {losses[-2] / losses[-1] - 1:.1%}")
print("each factor of four lowers the loss by",
      *(f"{1 - after / before:.1%}" for before, after in zip(losses, losses[1:])))

ax = plt.subplots(figsize=(6, 3.4))[1]
line = [0.6 * counts[0], 1.6 * counts[-1]]
ax.plot(line, [a * size**-alpha for size in line], color="#555555", linewidth=1.2,
        linestyle=(0, (4, 2)), label="line through three")
ax.plot(counts[:-1], losses[:-1], "o", color=plots.COLOURS[0], label="measured")
ax.plot(counts[-1], predicted, "D", color=plots.COLOURS[1], markerfacecolor="white",
        label="predicted")
ax.plot(counts[-1], losses[-1], "s", color=plots.COLOURS[2], label="measured, not fitted")
ax.set(xscale="log", yscale="log", xlabel="parameters without embeddings",
       ylabel="held-out nats per byte")
ax.set_yticks([1.8, 1.9, 2.0, 2.1, 2.2], ["1.8", "1.9", "2.0", "2.1", "2.2"])
ax.minorticks_off()
ax.legend(fontsize=8.5)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each point is a training. The dashed line was fitted to the round points.
#
# </div>
#
# The prediction is 1.8 % too high, and each factor of four lowers the loss by more than the one before: the points
# bend away from the line. Is the law wrong, is it chance, or is it the wrong experiment? The same command on another
# processor gave 2.256, 2.070, 1.938 and 1.811: single losses differ by up to 1.6 %, and there the prediction is 1.1 %
# too low. So one run cannot say how good the law is, nor do three points near a line make one.
#
# Published laws are extended much further than by a factor of four, and then it matters what was fitted. A loss cannot
# fall below the uncertainty of the text itself; a pure power law has no such floor. [Hoffmann et al.,
# 2022](https://arxiv.org/abs/2203.15556), fit three terms, with N parameters (embeddings included) and D tokens:
#
# $$L(N, D) = 1.69 + \frac{406.4}{N^{0.34}} + \frac{410.7}{D^{0.28}} .$$
#
# With 6ND operations to spend, which N is best? They trained *Chinchilla*, 70 billion parameters on 1.4 trillion
# tokens, 20 per parameter. Put their budget into their own formula, and into the one that [Besiroglu et al.,
# 2024](https://arxiv.org/abs/2404.10102), fitted to the same data:

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
# second paper found. The advice of 20 was based on two other estimates in [the first
# paper](https://arxiv.org/abs/2203.15556). A law is no better than its fit, nor than the digits in which it is printed.

# %% [markdown]
# ## What you can do now
#
# You can say what a training step keeps in memory, make it fit without changing its gradients, count its operations,
# divide it among workers, and predict the loss of a larger model. Here is the whole table:

# %%
print(table)

# %% [markdown]
# In this run two changes cost time, four parts and checkpoints. Both save memory.
#
# **Three questions to think about**
#
# <details><summary>1. A [well-known text](https://peterbloem.nl/blog/transformers) (Bloem, 2019) says: at t = 1,000 a
# batch of 16 attention matrices in float32 takes about 250 MB. For how many heads is that right?</summary>
#
# For four: 16 matrices of a million numbers are 64 MB per head. With fused attention they are never stored.
#
# </details>
# <details><summary>2. A model with 7 billion parameters is to be trained with AdamW, at 16 bytes per parameter, on GPUs
# with 80 GB. How many does it take at least, if everything is divided among them?</summary>
#
# Two, with stage 3: 16 · 7 billion bytes are 112 GB, which leaves 48 GB for activations.
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
#
# **Next:** [lesson 18, *Since GPT-2*](../18_since_gpt2/18_since_gpt2.ipynb)
