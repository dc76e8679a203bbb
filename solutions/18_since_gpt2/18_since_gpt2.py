# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 18 · Since GPT-2
#
# *What has changed in the models that came after it*
#
# The model of [lesson 12](../12_gpt2/12_gpt2.ipynb) is from 2019. What would you have to change in it to load a Llama?
# Five small things, most of them older than the models that made them known. But get one of them slightly wrong, and
# the published weights may still load, with every shape right and every logit wrong. You will see that happen.
#
# This lesson builds a Llama and compares it with the published code. Then come two more ideas that go with any such
# model: a [mixture of experts](../../site/glossary.md#mixture-of-experts), and another way of drawing tokens. It ends
# with what models have added since.
#
# | | |
# |---|---|
# | **You will build** | a norm, a gated network, grouped queries with a cache, a whole Llama that computes what `transformers` computes, a router, and min-p; one of them you fix |
# | **You need** | lessons [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 100 minutes: seven exercises, 22 points, and two predictions |
# | **It computes** | for seconds in each cell, a quarter of a minute in all |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions (queries), s positions (keys and
# values), e width, h heads, d = e/h, n vocabulary. Two new letters are g, the number of groups whose heads share keys
# and values, and N, the number of experts. Parts whose names begin with `finished_` are for the exercises that build on
# them.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.reference import llama_reference
from helpers.device import device
from helpers.lesson import start
from helpers.parts import gpt2 as finished_gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.experts import MixtureOfExperts
from helpers.parts.generator import keep_top_p
from helpers.parts.gpt2 import KeyValueCache
from helpers.parts.llama import LlamaConfig, cache_bytes, pairs_from_halves, rename_llama
from helpers.parts.llama import LlamaBlock as finished_block
from helpers.parts.llama import RMSNorm as finished_norm
from helpers.parts.masks import causal_mask, masked_softmax
from helpers.parts.multi_head import merge_heads, split_heads
from helpers.parts.positions import rotate

check = start("18_since_gpt2")

# %% [markdown]
# ## Five changes
#
# [LLaMA](https://arxiv.org/abs/2302.13971) (Touvron et al., 2023) is a GPT-2 with other parts in the same places. Many
# open models have followed it, together with the grouped queries of the larger [Llama
# 2](https://arxiv.org/abs/2307.09288) models:

# %%
plots.diagrams.llama_block()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** On the left is the block of lesson 12, on the right a Llama's; changes are orange. The plan is the
# same: two norms, attention, a network, two additions. Nothing is added to x for its position any more, and no layer
# has a bias.
#
# </div>
#
# **The norm.** [Layer normalisation](../../site/glossary.md#layer-normalisation) subtracts the mean, divides by the
# standard deviation, then scales and shifts. [Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467) asked which
# of these steps are needed, and kept the division: **RMSNorm** divides each vector by the root of the mean of its
# squares, with a small ε under the root.
#
# It has no mean and no bias, only a learned weight γ for each component. The class below has a bug from a published
# training library ([llm-foundry, issue 371](https://github.com/mosaicml/llm-foundry/issues/371)). No error was raised,
# but in training the loss diverged.

# %% [markdown]
# **What every check asks.** Gradients flow (except in `keep_min_p`, where they need not). New tensors are created on
# the device of the input, and inputs stay unchanged. Neither PyTorch's ready-made version of what you write nor the
# finished part may be used in its place.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `RMSNorm`** &nbsp; fix · ★☆☆ · 6 minutes · 3 points
#
# Mend the class. Whatever the size of x, the mean square of the output (before the weight) is 1, or a little less where
# ε matters. The norm is computed in 32 bits or more, and the output has the type of x. Do not use PyTorch's RMS norm or
# `finished_norm` here.
#
# <details><summary>Hint 1: try two inputs</summary>
#
# In a cell of your own, give the norm x and 2x. What should happen to the output, and what does happen?
#
# </details>
# <details><summary>Hint 2: a vector of two components</summary>
#
# For x = (3, 4) the mean square is 12.5 and its root 3.54, so the output should be (0.85, 1.13). Go through the lines
# with these numbers. What does `torch.rsqrt(torch.tensor(12.5))` give?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "RMSNorm", "locked": false, "schema_version": 3, "solution": true, "task": false}
class RMSNorm(nn.Module):
    """Divides each vector by the root of its mean square; a learned weight per component."""

    def __init__(self, e, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(e))

    def forward(self, x):
        """x: (..., e). Returns (..., e), in the type of x."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))    # 32 bits, or 64
        square = wide.square().mean(dim=-1, keepdim=True)    # (..., 1)
        ### BEGIN SOLUTION
        normed = wide * torch.rsqrt(square + self.eps)
        ### STUDENT GETS
        # normed = wide / torch.rsqrt(square + self.eps)
        ### END SOLUTION
        return (self.weight * normed).to(x.dtype)

# %% nbgrader={"grade": true, "grade_id": "check_RMSNorm", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(RMSNorm)

# %% tags=["nbval-check-output"]
x = torch.randn(4, 64, generator=torch.Generator().manual_seed(0)) + 1
norm, layer_norm = RMSNorm(64), nn.LayerNorm(64)
print(f"mean square before {x.square().mean():.2f}, after {norm(x).square().mean():.2f}")
print("twice the input, the same output:", torch.allclose(norm(2 * x), norm(x), atol=1e-4))
centred = x - x.mean(dim=-1, keepdim=True)
print("of x without its mean, LayerNorm's output:",
      torch.allclose(norm(centred), layer_norm(x), atol=1e-4))

# %% [markdown]
# As a formula, the norm is
#
# $$y = \gamma \odot \frac{x}{\sqrt{\frac{1}{e}\sum_i x_i^2 + \varepsilon}} .$$
#
# So on vectors whose mean is already 0, RMSNorm equals a LayerNorm without a bias. Its authors [found
# it](https://arxiv.org/abs/1910.07467) as good on their tasks, and faster.
#
# **The feed-forward network.** GPT-2's network widens to 4e, applies GELU, and narrows. The **SwiGLU** of [Shazeer,
# 2020](https://arxiv.org/abs/2002.05202) begins with two layers side by side, and one is a gate for the other:
#
# $$\mathrm{SwiGLU}(x) = W_{\mathrm{down}}\big(\mathrm{silu}(W_{\mathrm{gate}}\, x) \odot W_{\mathrm{up}}\, x\big),
# \qquad \mathrm{silu}(a) = a\,\sigma(a) .$$
#
# σ is the sigmoid. There are three matrices instead of two. To keep the number of parameters, the hidden layer shrinks
# to two thirds: 3 · e · (8/3) e = 2 · e · 4e. The paper cannot say why it works better: "We offer no explanation as to
# why these architectures seem to work; we attribute their success, as all else, to divine benevolence."

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `SwiGLU`** &nbsp; ★☆☆ · 5 minutes · 2 points
#
# Write the network, with three layers without biases: `gate` and `up` from e to `hidden`, `down` back to e.
#
# <details><summary>Hint 1: where silu ends</summary>
#
# Look at what silu is applied to in the formula. `silu(gate(x) * up(x))` is another function.
#
# </details>
# <details><summary>Hint 2: one component</summary>
#
# With e = `hidden` = 1 and weights of 1 (gate), 3 (up) and 2 (down), x = 2 gives silu(2) = 1.76, then 1.76 · 6 = 10.57,
# and an output of 21.14. `F.silu` is silu.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "SwiGLU", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SwiGLU(nn.Module):
    """A feed-forward network whose hidden layer is a product of two."""

    def __init__(self, e, hidden):
        super().__init__()
        ### BEGIN SOLUTION
        self.gate = nn.Linear(e, hidden, bias=False)
        self.up = nn.Linear(e, hidden, bias=False)
        self.down = nn.Linear(hidden, e, bias=False)
        ### END SOLUTION

    def forward(self, x):
        """x: (..., e). Returns (..., e)."""
        ### BEGIN SOLUTION
        return self.down(F.silu(self.gate(x)) * self.up(x))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_SwiGLU", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(SwiGLU)

# %% [markdown]
# **Positions.** [Rotary positions](../../site/glossary.md#rotary-positions) are those of
# [lesson 6](../06_positions/06_positions.ipynb): in each layer, queries and keys are turned by their positions, and
# values are not. Nothing is learned and nothing is added to x, so there is no table that ends at t_max.
#
# **No biases.** No linear layer has a bias, and no norm has one. In many small models the table of tokens is also the
# output layer ([tied](../../site/glossary.md#tied-weights)); large models usually have two tables.

# %% [markdown]
# ## Grouped queries
#
# The last change is about generating text, not about learning. A [key–value
# cache](../../site/glossary.md#key-value-cache) holds a key and a value for each position, head and block, and for each
# new token the model reads all of it. In large batches of long texts you wait for that reading, not for arithmetic.
#
# [Shazeer, 2019](https://arxiv.org/abs/1911.02150) let all heads of queries share a single head of keys and values
# ([multi-query attention](../../site/glossary.md#multi-query-attention), lesson 4). That saves the most memory, and
# costs some quality. In **grouped-query attention** ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)) there
# are g heads of keys and values, and each serves h/g heads of queries. The cache of one text of t positions holds
#
# $$2 \cdot \mathrm{depth} \cdot g \cdot d \cdot t$$
#
# numbers: h/g times fewer than when each head of queries has its own keys and values.

# %%
plots.diagrams.grouped_queries()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Four heads of queries, three ways. Each arrow leads from a head of queries to the keys and values
# that it reads. For each position, the cache holds the keys and values, the two lower rows.
#
# </div>
#
# How much memory is that in a model of 8 billion parameters?

# %% mystnb={"image": {"alt": "Size of a cache in gigabytes against positions, both axes logarithmic, three parallel lines for 32 groups, 8 groups and 1. A dotted line at 64 GB. With 32 groups it is crossed near 120,000 positions; with 8 groups and with 1 the lines end below it."}}
depth, d = 32, 128                                    # Llama 3 8B, which has 32 heads
lengths = [1024 * 2 ** k for k in range(8)]
figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="compressed")
sizes = {}
for g, name in ((32, "32 groups"), (8, "8 groups"), (1, "1 group")):
    sizes[name] = lengths, [cache_bytes(depth, g, d, t) / 1e9 for t in lengths]
plots.curves(sizes, "positions", "size of the cache (GB)", log="xy", ax=ax,
             landmarks={"80 GB less the weights": 64})
plt.show()
one = cache_bytes(depth, 8, d, 1)
print(f"8 groups, 16 bits: {one:,} bytes a token, "
      f"{one * 8192 / 2 ** 30:.0f} GiB at 8,192 tokens")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each line is a Llama with 32 blocks and heads of width 128, with its cache in 16 bits. A line four
# times lower reaches the dotted line at four times the length. That line is what a GPU of 80 GB has left beside the
# weights, which take 16 GB.
#
# </div>
#
# Query head r uses the keys and values of group ⌊r·g/h⌋: with h = 4 and g = 2, heads 0 and 1 share group 0. The
# finished class `LayerCache` is that of lesson 12: `past.append(k, v)` adds keys and values (b, g, t, d) and returns
# those of all positions so far, (b, g, s, d); `past.length` is how many positions it holds. Into the cache go the keys
# and values of the g groups, and the keys have been turned by then. Copies for the heads are made only afterwards.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `GroupedQueryAttention`** &nbsp; ★★★ · 15 minutes · 5 points
#
# Causal attention with h heads of queries and `groups` of keys and values. Four layers without biases: `to_queries` and
# `unify` from e to e, `to_keys` and `to_values` from e to groups·d. Queries and keys are turned with `rotate(x,
# positions)`; positions continue from those in `past`. Scores are divided by √d.
#
# Append the groups' keys, already turned, and values to the cache before anything is copied. `split_heads`,
# `merge_heads`, `causal_mask`, `masked_softmax` and `F.scaled_dot_product_attention` may be used;
# `nn.MultiheadAttention` and `finished_block` may not.
#
# <details><summary>Hint 1: the order of things</summary>
#
# Which steps need only the new positions, and which need all of them? Where does `past.append` belong between
# projecting, turning and copying? Does appending change `past.length`?
#
# </details>
# <details><summary>Hint 2: copies and the mask, in numbers</summary>
#
# `torch.tensor([0, 1]).repeat_interleave(2)` is 0, 0, 1, 1, and `repeat(2)` gives 0, 1, 0, 1. With 3 positions in the
# cache and 2 new ones, the queries need rows 3 and 4 of `causal_mask(5, device)`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "GroupedQueryAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class GroupedQueryAttention(nn.Module):
    """Causal self-attention in which several heads of queries share keys and values."""

    def __init__(self, e, h, groups):
        super().__init__()
        self.h, self.groups = h, groups
        ### BEGIN SOLUTION
        d = e // h
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, groups * d, bias=False)
        self.to_values = nn.Linear(e, groups * d, bias=False)
        self.unify = nn.Linear(e, e, bias=False)
        ### END SOLUTION

    def forward(self, x, past=None):
        """x: (b, t, e). past: a LayerCache of the positions before x, or None.

        Returns (b, t, e).
        """
        ### BEGIN SOLUTION
        first, t = 0 if past is None else past.length, x.shape[1]
        positions = torch.arange(first, first + t, device=x.device)
        q = rotate(split_heads(self.to_queries(x), self.h), positions)         # (b, h, t, d)
        k = rotate(split_heads(self.to_keys(x), self.groups), positions)       # (b, g, t, d)
        v = split_heads(self.to_values(x), self.groups)
        if past is not None:
            k, v = past.append(k, v)                                           # (b, g, s, d)
        share = self.h // self.groups
        k = k.repeat_interleave(share, dim=1)                                  # (b, h, s, d)
        v = v.repeat_interleave(share, dim=1)
        mask = causal_mask(first + t, x.device)[first:]                        # (t, s)
        weights = masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask)
        return self.unify(merge_heads(weights @ v))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_GroupedQueryAttention", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(GroupedQueryAttention)

# %% [markdown]
# Published code has gone wrong in the copying and in the caching. The reference implementation in the ONNX standard
# itself tiled the groups, 0, 1, 0, 1, where models have 0, 0, 1, 1 ([pull request
# 7274](https://github.com/onnx/onnx/pull/7274)). And a cache with room for all heads, to be filled *after* the copying,
# saves nothing: that was [issue 44](https://github.com/facebookresearch/lingua/issues/44) of lingua.

# %% [markdown]
# ## A whole Llama
#
# A `LlamaConfig` holds the sizes: `n`, `e`, `h`, `groups`, `depth`, `hidden`, `epsilon`, and `tied`. A block is lesson
# 12's, pre-norm, with the parts above: `finished_block(config)` makes one. It is called with x and a LayerCache or
# None.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `Llama`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# The whole model: `tokens`, an embedding; `blocks`, an `nn.ModuleList` with `depth` of `block(config)`; `norm`, a
# `finished_norm` with the config's ε; and `to_logits`, linear without a bias. A model with `config.tied` has no
# `to_logits`, or None in its place: its output layer is the table of tokens. The `state_dict` holds nothing else. From
# a KeyValueCache, block i gets its LayerCache, `cache.layers[i]`.
#
# <details><summary>Hint 1: what GPT-2 has and a Llama lacks</summary>
#
# There is no table of positions: only attention uses positions. The norm after the last block is still there.
#
# </details>
# <details><summary>Hint 2: a tied table of three tokens</summary>
#
# The table has the rows (1, 0), (0, 1) and (1, 1). For the vector (2, 5) the logits are its products with the rows: 2,
# 5 and 7. `F.linear` computes such products.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "Llama", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Llama(nn.Module):
    """Predicts, at every position, the next token."""

    def __init__(self, config, block=finished_block):
        super().__init__()
        ### BEGIN SOLUTION
        self.tied = config.tied
        self.tokens = nn.Embedding(config.n, config.e)
        self.blocks = nn.ModuleList([block(config) for _ in range(config.depth)])
        self.norm = finished_norm(config.e, config.epsilon)
        if not config.tied:
            self.to_logits = nn.Linear(config.e, config.n, bias=False)
        ### END SOLUTION

    def forward(self, ids, cache=None):
        """ids: (b, t). cache: a KeyValueCache of the positions before these, or None.

        Returns logits (b, t, n).
        """
        ### BEGIN SOLUTION
        x = self.tokens(ids)
        for i, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache.layers[i])
        x = self.norm(x)
        return F.linear(x, self.tokens.weight) if self.tied else self.to_logits(x)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_Llama", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(Llama)

# %% [markdown]
# On PyTorch's device `meta`, tensors have shapes but no numbers. So you can build the largest model on any laptop, and
# count its parameters:

# %% tags=["nbval-check-output"]
published_sizes = {
    "Llama 2 7B": LlamaConfig(n=32000, e=4096, h=32, groups=32, depth=32, hidden=11008),
    "Mistral 7B": LlamaConfig(n=32000, e=4096, h=32, groups=8, depth=32, hidden=14336),
    "Llama 3 8B": LlamaConfig(n=128256, e=4096, h=32, groups=8, depth=32, hidden=14336),
}
for name, config in published_sizes.items():
    with torch.device("meta"):
        count = sum(p.numel() for p in Llama(config).parameters())
    print(f"{name}: {count:,} parameters")

# %% [markdown]
# These are exactly the numbers of parameters in the published files; the papers ([Llama
# 2](https://arxiv.org/abs/2307.09288), [Mistral 7B](https://arxiv.org/abs/2310.06825), [Llama
# 3](https://arxiv.org/abs/2407.21783)) round them to 7 and 8 billion. From the first model to the last, the vocabulary
# has grown fourfold, and the number of groups has shrunk to a quarter.

# %% [markdown]
# ## Two ways of turning
#
# Published weights contain a trap. Lesson 6 turns the components 2j and 2j + 1 of a head together, as the paper
# ([RoFormer](https://arxiv.org/abs/2104.09864)) and Meta's own files do. The files on the Hub, and `transformers`, pair
# j with j + d/2:

# %%
plots.diagrams.pairs_and_halves()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The six components of one query or key, in both conventions. Two components with a bracket and the
# same colour are turned together, by the same angle.
#
# </div>
#
# A score is a sum over components, and their order does not matter. So both are the same model if the rows of $W_q$ and
# $W_k$ are reordered **within each head**: the first of pair j goes to place j, the second to j + d/2. Values are not
# turned, so their rows stay. With rows in the wrong order there is no error, every shape is right, and the model writes
# nonsense.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `halves_from_pairs`** &nbsp; ★★★ · 9 minutes · 3 points
#
# Reorder the rows of $W_q$ or $W_k$ from the order for pairs to the order for halves. For keys in groups, h is the
# number of groups.
#
# <details><summary>Hint 1: one head of width 6</summary>
#
# The new order of its rows is 0, 2, 4, 1, 3, 5: the first row of each pair, then the second of each. Head 1 begins at
# row 6.
#
# </details>
# <details><summary>Hint 2: two heads of width 4</summary>
#
# As (head, pair, place in the pair) the rows are ((0, 1), (2, 3)) and ((4, 5), (6, 7)). The new order is 0, 2, 1, 3, 4,
# 6, 5, 7. Which two of the three axes have changed places?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "halves_from_pairs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def halves_from_pairs(weight, h):
    """The rows of a projection in the order for the other way of turning.

    weight: (h·d, e), for heads in which components 2j and 2j + 1 are turned together.
    Returns (h·d, e), for heads in which j and j + d/2 are.
    """
    ### BEGIN SOLUTION
    d = weight.shape[0] // h
    rows = weight.reshape(h, d // 2, 2, -1)      # head, pair, which of the two, e
    return rows.transpose(1, 2).reshape(weight.shape)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_halves_from_pairs", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(halves_from_pairs)

# %% [markdown]
# The script that converted Meta's files for the Hub does this in three calls, `view`, `transpose`, `reshape`. To read a
# file from the Hub you go back, with the finished `pairs_from_halves`.
#
# Now put everything together. `transformers` is not part of this course, so its results were recorded: the weights of a
# small `LlamaForCausalLM`, random but under their published names, and its logits for 24 tokens. Your model is made of
# your own parts:

# %%
class Block(nn.Module):
    """A block of your norm, your attention and your network."""

    def __init__(self, config):
        super().__init__()
        self.norm1 = RMSNorm(config.e, config.epsilon)
        self.attention = GroupedQueryAttention(config.e, config.h, config.groups)
        self.norm2 = RMSNorm(config.e, config.epsilon)
        self.feed_forward = SwiGLU(config.e, config.hidden)

    def forward(self, x, past=None):
        x = x + self.attention(self.norm1(x), past)
        return x + self.feed_forward(self.norm2(x))

# %% tags=["nbval-check-output"]
known = llama_reference()
for name in list(known.weights)[:6]:
    print(f"{name:>46}  {tuple(known.weights[name].shape)}")
print(known.told)

# %% tags=["nbval-check-output"]
config = LlamaConfig(**known.sizes)
model = Llama(config, Block).to(device()).eval()
weights = rename_llama(known.weights)      # this lesson's names, the tensors as they are
ids, logits = known.ids.to(device()), known.logits.to(device())

def largest_difference(weights):
    model.load_state_dict(weights)
    with torch.no_grad():
        return (model(ids) - logits).abs().max().item()

as_pairs = dict(weights)
for name, tensor in weights.items():
    if name.endswith("to_queries.weight"):
        as_pairs[name] = pairs_from_halves(tensor, config.h)
    if name.endswith("to_keys.weight"):
        as_pairs[name] = pairs_from_halves(tensor, config.groups)

print(f"rows as they are in the file: logits differ by {largest_difference(weights):.1f}")
print("rows in pairs: logits equal to within 0.00001:", largest_difference(as_pairs) < 1e-5)
name = "blocks.0.attention.to_queries.weight"
print("there and back, the file's rows:",
      torch.equal(halves_from_pairs(as_pairs[name], config.h), weights[name]))
cache = KeyValueCache(config.depth, 24)
with torch.no_grad():
    pieces = torch.cat([model(part, cache) for part in ids.split([10, 1, 13], dim=1)], dim=1)
print("in three pieces, with a cache:", torch.allclose(pieces, logits, atol=1e-5))

# %% [markdown]
# The first line is the trap at work: the weights loaded without an error, and the logits are wrong. With the rows in
# pairs, your model computes what the published code does. With a folder from the Hub on your disk,
# `helpers.parts.llama.load(folder)` reads its `config.json` and its weights in the same way. It refuses settings that
# it does not know, such as the stretched angles of later Llamas.
#
# **Is it better than GPT-2?** A minute of training on a laptop cannot tell: what one run shows need not hold for other
# seeds, other learning rates or larger models. [Narang et al., 2021](https://arxiv.org/abs/2102.11972) compared many
# changes to the transformer in one code base. Most brought little; RMSNorm and gated networks such as SwiGLU were among
# the few that helped. Grouped queries were never meant to lower the loss: they make the cache smaller.

# %% [markdown]
# ## More parameters than operations
#
# In all models so far each token uses every block's parameters. A **mixture of experts** (MoE) has N feed-forward
# networks instead of one, and a **router** that sends each token to k of them ([Shazeer et al.,
# 2017](https://arxiv.org/abs/1701.06538)). The router is a linear layer with N outputs; with p their softmax,
#
# $$y = \sum_{i \in \text{top } k} w_i\, E_i(x), \qquad w_i = \frac{p_i}{\sum_{j \in \text{top } k} p_j} .$$

# %%
plots.diagrams.experts_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** N = 4 and k = 2. An arrow leads from each token to each expert that the router has chosen for it,
# and from there to the token's sum. Here no token uses expert 2: its parameters are in memory and do nothing.
#
# </div>
#
# The parameters grow with N, the work with k. [Mixtral](https://arxiv.org/abs/2401.04088) (Jiang et al., 2024) has the
# design of Mistral 7B, with N = 8 and k = 2 in each block:

# %% tags=["nbval-check-output"]
e, hidden, depth, N = 4096, 14336, 32, 8
with torch.device("meta"):
    all_but_networks = sum(
        p.numel() for name, p in Llama(published_sizes["Mistral 7B"]).named_parameters()
        if "feed_forward" not in name
    )
for what, networks in (("in all", N), ("for any one token", 2)):
    count = all_but_networks + depth * (networks * 3 * e * hidden + N * e)
    print(f"{what}: {count:,} parameters")

# %% [markdown]
# Left alone, a router begins to prefer a few experts. An expert that is a little better gets more tokens, learns more,
# and gets still more tokens; one that gets none learns nothing. So a **balance loss** is added ([Switch
# Transformers](https://arxiv.org/abs/2101.03961), Fedus et al., 2021, section 2.2):
#
# $$\mathrm{balance} = N \sum_{i=1}^{N} f_i P_i .$$
#
# $f_i$ is the share of all choices that fell on expert i: each token makes k choices, and the shares sum to 1. $P_i$ is
# its mean probability over **all** tokens, including those that did not choose it. If all experts are used equally, the
# balance is 1; if the same k get all choices and all the probability, it is N/k, its maximum. No gradient flows through
# the counts $f_i$. It flows through $P_i$, and lowers most the probability of the experts that most tokens chose.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `route`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# From the router's logits for some tokens, return the weights of the k experts that each token uses, their numbers (the
# most probable first), and the balance.
#
# <details><summary>Hint 1: the weights</summary>
#
# `topk(k, dim=-1)` returns the largest numbers of each row and their places. The probabilities of the chosen do not sum
# to 1 yet.
#
# </details>
# <details><summary>Hint 2: a balance by hand</summary>
#
# With k = 1, three tokens have the probabilities (0.9, 0.1), (0.6, 0.4) and (0.2, 0.8). Then f is (2/3, 1/3), P is
# (0.567, 0.433), and the balance is 2 · (0.378 + 0.144) = 1.04. With k = 2 there would be six choices.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "route", "locked": false, "schema_version": 3, "solution": true, "task": false}
def route(logits, k):
    """Which experts each token uses, how much of each, and how evenly all are used.

    logits: (tokens, N). Returns three tensors: weights (tokens, k), experts (tokens, k),
    int64, and the balance, ().
    """
    ### BEGIN SOLUTION
    N = logits.shape[-1]
    chances = torch.softmax(logits, dim=-1)
    weights, experts = chances.topk(k, dim=-1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    f = torch.bincount(experts.flatten(), minlength=N) / experts.numel()
    P = chances.mean(dim=0)
    return weights, experts, N * (f * P).sum()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_route", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(route)

# %% [markdown]
# Published code has had two mistakes in these few lines. One library took P over the chosen probabilities alone
# ([maxtext, issue 1432](https://github.com/AI-Hypercomputer/maxtext/issues/1432)). Another divided the counts by the
# number of tokens instead of choices, so a perfect balance costs k instead of 1 (`transformers`; [pull request
# 43775](https://github.com/huggingface/transformers/pull/43775)). The second mistake only changes the scale; the first
# changes what is pushed where.

# %% [markdown]
# <div class="card">
#
# **Prediction · `router_of_one`** &nbsp; 1 minute · no points
#
# To save work, someone sets k = 1 and changes nothing else. How large is the gradient of the router's weights, from the
# loss of the task alone?
#
# - **A.** As large as with k = 2: the output still depends on which expert was chosen.
# - **B.** 0, except for rounding.
# - **C.** Smaller, because half as many experts work.
# </div>

# %% nbgrader={"grade": false, "grade_id": "router_of_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
router_of_one = "B"
### STUDENT GETS
# router_of_one = ...    # "A", "B" or "C"
### END SOLUTION

# %%
for k in (2, 1):
    torch.manual_seed(0)
    mixture = MixtureOfExperts(16, 16, experts=8, k=k).to(device())
    mixture(torch.randn(1, 64, 16).to(device())).square().mean().backward()
    print(f"k = {k}: largest entry of the router's gradient "
          f"{mixture.router.weight.grad.abs().max().item():.3g}")

# %% nbgrader={"grade": true, "grade_id": "check_router_of_one", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("router_of_one", router_of_one)

# %% [markdown]
# A library trained models this way ([Megatron-LM, issue 894](https://github.com/NVIDIA/Megatron-LM/issues/894)): there
# was no error, but the loss was worse than it should have been. With k = 1, use $w_i = p_i$, undivided.
#
# What does the balance do in a training? There are eight kinds of tokens, each with its own task, and the same number
# is added to every component of all tokens. There are eight experts, and k = 2. One training uses the task's loss
# alone, the other adds the balance.

# %%
def train_mixture(share, steps, N=8, e=16):
    """Task loss at the end, and f of each expert at each step, (steps, N)."""
    torch.manual_seed(2)
    mixture = MixtureOfExperts(e, 16, N, k=2)
    generator = torch.Generator().manual_seed(5)
    tasks = torch.randn(N, e, e, generator=generator)
    centres = torch.randn(N, e, generator=generator)
    optimiser, used = torch.optim.Adam(mixture.parameters(), lr=0.01), []
    for _ in range(steps):
        kind = torch.randint(N, (256,), generator=generator)
        x = 2 * centres[kind] + torch.randn(256, e, generator=generator)
        y = torch.einsum("re,reo->ro", x, tasks[kind] / e ** 0.5)
        loss = (mixture(x + 3) - y).square().mean()
        _, experts, balance = route(mixture.logits, 2)
        optimiser.zero_grad()
        (loss + share * balance).backward()
        optimiser.step()
        used.append(torch.bincount(experts.flatten(), minlength=N) / experts.numel())
    return loss.item(), torch.stack(used)

steps = 200
mixtures = {"without the balance": train_mixture(0, steps),
            "with the balance": train_mixture(1, steps)}
for name, (loss, used) in mixtures.items():
    last = used[-20:].mean(dim=0)
    print(f"{name}: the busiest expert has {last.max():.0%} of the choices, "
          f"{(last < 0.01).sum()} have less than 1%; loss {loss:.2f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two heat maps, 8 experts by training step, colour for the share of the choices. Without the balance the rows differ from beginning to end: two are dark, and the last two are blank from early on. With it the rows differ only at the beginning, and soon have the same colour."}}
figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="compressed")
for ax, (name, (_, used)) in zip(axes, mixtures.items()):
    groups = used.unflatten(0, (10, -1)).mean(dim=1)
    ends = [str((k + 1) * len(used) // 10) for k in range(10)]
    plots.heat(groups.T, title=name, columns=ends, ax=ax, annotate=False, scale=0.4)
    ax.set(xlabel="step", ylabel="expert" if ax is axes[0] else "")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A row is an expert, a column a tenth of the training, labelled by its last step; darker is a
# larger share of the choices, and an even share is one in eight. Left, two experts are dead at the end: their
# parameters are stored but no longer used. Right, all eight work. This is one seed.
#
# </div>
#
# ## Drawing tokens: min-p
#
# One change since [lesson 9](../09_character_generator/09_character_generator.ipynb) needs no new model: tokens are
# drawn in another way. [Top-p](../../site/glossary.md#top-p-sampling) keeps the most probable tokens up to a share of
# the probability. At a high temperature that share includes a long tail of nonsense. **Min-p sampling** ([Nguyen et
# al., 2024](https://arxiv.org/abs/2407.01082)) sets a floor instead, which rises with the model's confidence:
#
# $$\text{keep } i \quad\text{if}\quad p_i \ge p_{\text{base}} \cdot \max_j p_j .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `keep_min_p`** &nbsp; ★☆☆ · 5 minutes · 2 points
#
# Logits in, logits out. If a token has less than p times the largest probability, its logit becomes −∞; all other
# logits stay. (The logits have already been divided by the temperature.)
#
# <details><summary>Hint 1: logits are not probabilities</summary>
#
# Compare probabilities. Half the largest logit is not half the largest probability.
#
# </details>
# <details><summary>Hint 2: three tokens</summary>
#
# With probabilities of 0.6, 0.3 and 0.1 and p = 0.25 the floor is 0.15, and the third token goes. Each row has a floor
# of its own.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "keep_min_p", "locked": false, "schema_version": 3, "solution": true, "task": false}
def keep_min_p(logits, p):
    """Only tokens that have at least p times the largest probability stay.

    logits: (..., n). p: above 0, at most 1. Returns (..., n), −∞ for all others.
    """
    ### BEGIN SOLUTION
    chances = torch.softmax(logits, dim=-1)
    least = p * chances.amax(dim=-1, keepdim=True)
    return logits.masked_fill(chances < least, -math.inf)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_keep_min_p", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(keep_min_p)

# %% [markdown]
# Now the [pocket GPT-2](../12_gpt2/12_gpt2.ipynb) of lesson 12, at a place where it is sure of the next token and at
# one where it is not:

# %% tags=["nbval-check-output"]
folder = gpt2_files("gpt2", places="embedded").folder
tokenizer, pocket = Tokenizer.from_folder(folder), finished_gpt2.load(folder, device())
prompts = {"sure": "if not isinstance(value, str):\n    raise", "not sure": "for name in"}
next_logits = {}
for name, text in prompts.items():
    prompt = torch.tensor([tokenizer.encode(text)], device=device())    # (1, t)
    with torch.no_grad():
        next_logits[name] = pocket(prompt)[0, -1]                        # (n,)
    best = next_logits[name].softmax(dim=-1).topk(3)
    words = [f"{tokenizer.token(i)} {p:.2f}" for i, p in zip(best.indices, best.values)]
    print(f"{name}: {text.splitlines()[-1].strip()} ...", *words, sep="   ")

# %% [markdown]
# <div class="card">
#
# **Prediction · `hot_top_p`** &nbsp; 1 minute · no points
#
# After `raise` the model gives `TypeError` about 0.96 of the probability, so top-p with 0.9 keeps only that token. How
# many does it keep at a temperature of 1.5?
#
# - **A.** One: the most probable token has not changed.
# - **B.** Two or three.
# - **C.** More than ten.
# </div>

# %% nbgrader={"grade": false, "grade_id": "hot_top_p", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
hot_top_p = "C"
### STUDENT GETS
# hot_top_p = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
for name, logits in next_logits.items():
    for temperature in (1.0, 1.5):
        hot = logits / temperature
        rules = {"top-p 0.9": keep_top_p(hot, 0.9), "min-p 0.1": keep_min_p(hot, 0.1)}
        counts = [f"{rule}: {kept.isfinite().sum():>3}" for rule, kept in rules.items()]
        print(f"{name:>8}, temperature {temperature}, tokens kept by", *counts, sep="   ")
hot = keep_top_p(next_logits["sure"] / 1.5, 0.9)
least = hot.masked_fill(hot.isinf(), math.inf).argmin()
print("the least probable token that top-p keeps after raise:", tokenizer.token(least))

# %% nbgrader={"grade": true, "grade_id": "check_hot_top_p", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("hot_top_p", hot_top_p)

# %% [markdown]
# Where the model is sure, min-p keeps one token at both temperatures; where it is not, 10 and 38. Does that make better
# texts? Its authors report that it does. [Schaeffer et al., 2025](https://arxiv.org/abs/2506.13681) analysed the same
# evidence again and found no advantage over top-p. Counting tokens, as here, does not decide that.
#
# ## What models have added since
#
# Five changes make a GPT-2 a Llama. Models since then have added more, each in a few lines:
#
# | change | what it does | described in |
# |---|---|---|
# | norms on queries and keys | a norm on the q and k of each head keeps scores from growing during training | [Dehghani et al., 2023](https://arxiv.org/abs/2302.05442); in [Qwen3](https://arxiv.org/abs/2505.09388) and [Gemma 3](https://arxiv.org/abs/2503.19786) |
# | stretched angles | rotary positions turn more slowly, and a short further training extends the model to longer texts | [Chen et al., 2023](https://arxiv.org/abs/2306.15595); YaRN, [Peng et al., 2023](https://arxiv.org/abs/2309.00071), in [DeepSeek-V3](https://arxiv.org/abs/2412.19437) |
# | windows in some layers | most layers see only the last positions, and their cache stays small; a few see all ([lesson 16](../16_sparse_attention/16_sparse_attention.ipynb)) | [Gemma 3](https://arxiv.org/abs/2503.19786): five layers with a window of 1,024 to each layer without |
# | latent attention | one short vector for each position is cached, with one small turned key; the keys and values of all heads are computed from it | [DeepSeek-V2](https://arxiv.org/abs/2405.04434), section 2.1 |
# | many small experts | a token uses more, smaller experts, and one that is shared by all tokens | [DeepSeekMoE](https://arxiv.org/abs/2401.06066) |
# | balance without a loss | a bias for each expert is raised or lowered until all are used | [Wang et al., 2024](https://arxiv.org/abs/2408.15664), in [DeepSeek-V3](https://arxiv.org/abs/2412.19437) |
#
# Even attention is no longer in every layer. In [Kimi Linear](https://arxiv.org/abs/2510.26692) only every fourth layer
# has it; the others keep a state of fixed size, with gates that forget, in place of a cache.
#
# ## What you can do now
#
# You can name what has changed in open models since GPT-2, and write each change; read published weights in either
# convention of rotary positions; say what a mixture of experts saves and what it needs; and sample with min-p.
#
# **Three questions to think about**
#
# <details><summary>1. A cache with g groups is h/g times smaller. Why are the queries not grouped as well?</summary>
#
# Queries are not stored: each is used once, for the current token. And with h heads of queries, each group is asked h/g
# different questions.
#
# </details>
# <details><summary>2. Mixtral has 47 billion parameters, and each token uses 13 billion of them. Which of the two
# numbers decides how much memory you need?</summary>
#
# The 47. Which experts a token will use is not known in advance, so all have to be in memory. In a batch, different
# tokens use different experts, and soon all are used.
#
# </details>
# <details><summary>3. Does it matter for the scores that values are not reordered when queries and keys are?</summary>
#
# No. A score is a product of a query and a key, and both are reordered in the same way. Values are averaged with the
# weights and go through `unify`, whose columns expect them in their own order.
#
# </details>
#
# **Further reading**
#
# - **[Touvron et al., *LLaMA*, 2023](https://arxiv.org/abs/2302.13971)**, section 2.2: three of the five changes, in
#   half a page.
# - [Ainslie et al., *GQA*, 2023](https://arxiv.org/abs/2305.13245): from many heads of keys to a few, without training
#   from scratch.
# - [Fedus et al., *Switch Transformers*, 2021](https://arxiv.org/abs/2101.03961), section 2: routing and balance.
# - [*DeepSeek-V3*, 2024](https://arxiv.org/abs/2412.19437), section 2: latent attention and many small experts in one
#   model.
#
# **Next:** [lesson 19, *Looking inside*](../19_looking_inside/19_looking_inside.ipynb)
