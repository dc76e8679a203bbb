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
# You have the code of a GPT-2, from [lesson 12](../12_gpt2/12_gpt2.ipynb), and a file with the weights of a Llama.
# **What do you have to change in the code, and how do you notice a mistake?**
#
# Two models with the same weights continue *Elizabeth was*, with the same random numbers. Neither raised an error, but
# one has a wrong setting:
#
# > … a better at the last time; and though she was now to be in the
#
# > … equally at the last time by the power of being an envy,
#
# The text does not say which. This lesson makes five changes to a GPT-2, loads a Llama, and then makes six mistakes on
# purpose. It ends with a fault that needs no mistake in the code and shows only in longer texts.
#
# | | |
# |---|---|
# | **You will build** | a norm, a gated network, grouped queries with a cache, a whole Llama, and angles for a longer window; a router is optional |
# | **You need** | lessons [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 105 minutes: seven exercises, 24 points, and two predictions |
# | **It computes** | for about a minute in all; a published model is another quarter of a gigabyte (`make data ARGS=smollm2`) |
#
# Sizes are those of [the notation table](../../site/notation.md). New is g, the number of groups of heads that share
# keys and values. Parts named `finished_` serve later exercises.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
from dataclasses import replace

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.datasets import llama_files
from helpers.data.recorded import recorded
from helpers.data.reference import llama_reference
from helpers.device import device
from helpers.lesson import start
from helpers.parts.bpe import Tokenizer
from helpers.parts.experts import MixtureOfExperts
from helpers.parts.generator import draw
from helpers.parts.gpt2 import KeyValueCache, generate_cached
from helpers.parts.llama import LlamaBlock as finished_block
from helpers.parts.llama import LlamaConfig, pairs_from_halves, read_with
from helpers.parts.llama import RMSNorm as finished_norm
from helpers.parts.llama import load as load_llama
from helpers.parts.llama import rename_llama
from helpers.parts.masks import causal_mask, masked_softmax
from helpers.parts.multi_head import merge_heads, split_heads
from helpers.parts.positions import rotate
from helpers.parts.weight_files import read_weights

check = start("18_since_gpt2")

# %% [markdown]
# ## A Llama is a GPT-2 with five changes
#
# Most open models since [LLaMA](https://arxiv.org/abs/2302.13971) (Touvron et al., 2023) use its block, with the
# grouped queries of the larger [Llama 2](https://arxiv.org/abs/2307.09288) models. Five things change. Most Llamas
# also have an output layer of their own.

# %%
plots.diagrams.llama_block()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left, the first block of lesson 12; right, a Llama's. Changed boxes are yellow.
#
# </div>
#
# **The norm no longer subtracts the mean**, to save time. [Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467)
# suppose that [layer normalisation](../../site/glossary.md#layer-normalisation) helps because it fixes a vector's
# scale. Their **RMSNorm** does only that: it divides each vector by the root of the mean of its squares, with a small
# ε under the root, and multiplies by a learned weight γ for each component. In their tests it was about as good, and
# faster.
#
# The class below has a published library's bug ([llm-foundry, issue
# 371](https://github.com/mosaicml/llm-foundry/issues/371)). It raised no error, but in training the loss diverged.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `RMSNorm`** &nbsp; fix · ★☆☆ · 5 minutes · 3 points
#
# Fix the class. Unless x is so small that ε matters, the mean square of the output (before the weight) is 1. The norm
# is computed in 32 bits or more. Do not use PyTorch's RMS norm or `finished_norm` here.
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

# %% [markdown]
# As a formula:
#
# $$y = \gamma \odot \frac{x}{\sqrt{\frac{1}{e}\sum_i x_i^2 + \varepsilon}} .$$
#
# On vectors with mean 0, it equals a LayerNorm without a bias.
#
# **The network gets a gate**, because gated networks predicted better at the same size ([Shazeer,
# 2020](https://arxiv.org/abs/2002.05202), who offers no explanation). A **SwiGLU** begins with two layers. One of them
# decides, for each token and component, how much of the other passes:
#
# $$\mathrm{SwiGLU}(x) = W_{\mathrm{down}}\big(\mathrm{silu}(W_{\mathrm{gate}}\, x) \odot W_{\mathrm{up}}\, x\big),
# \qquad \mathrm{silu}(a) = a\,\sigma(a) .$$
#
# σ is the sigmoid. GPT-2's network has two matrices and a hidden layer of 4e. With three matrices, a hidden layer of
# two thirds of that keeps the number of parameters: 3 · e · (8/3) e = 2 · e · 4e.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `SwiGLU`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Three layers without biases: `gate` and `up` from e to `hidden`, `down` back to e.
#
# <details><summary>Hint 1: where silu ends</summary>
#
# Look at what silu is applied to in the formula. `silu(gate(x) * up(x))` is another function.
#
# </details>
# <details><summary>Hint 2: one component</summary>
#
# With e = `hidden` = 1 and weights of 1 (gate), 3 (up) and 2 (down), x = 2 gives silu(2) = 1.76, then 1.76 · 6 =
# 10.57, and an output of 21.14. `F.silu` is silu.
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
# **No layer has a bias**, neither a linear layer nor a norm, because large models train more steadily without: so the
# authors of [PaLM](https://arxiv.org/abs/2204.02311) report.
#
# **Positions are rotations**, so that a score depends on the distance between two tokens and not on where they stand.
# Nothing is added to x. In each layer, queries and keys (not values) are rotated: the [rotary
# positions](../../site/glossary.md#rotary-positions) of [lesson 6](../06_positions/06_positions.ipynb). From one
# position to the next, pair j of a head of width d turns by its **frequency**
#
# $$\omega_j = \theta^{-2j/d}, \qquad j = 0, \dots, d/2 - 1 .$$
#
# The **base** θ is read from a file of settings: lesson 6 took 10,000, and Llama 3 takes 500,000, for longer texts
# ([2024](https://arxiv.org/abs/2407.21783), section 3.2). A larger base makes the slow pairs slower, so they complete a
# turn only in a longer text. No weight's shape depends on θ, so a wrong one raises no error.

# %% [markdown]
# ## Heads that share keys and values need a smaller cache
#
# **The fifth change saves memory.** While a model writes, its [key–value
# cache](../../site/glossary.md#key-value-cache) holds a key and a value for each position, head and block, and for each
# new token the model reads all of it.
#
# In **grouped-query attention** ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)) there are g heads of keys
# and values, each for h/g heads of queries. With g = 1 it is [multi-query
# attention](../../site/glossary.md#multi-query-attention) ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)), which
# costs some quality. The cache of one text of t positions holds
#
# $$2 \cdot \mathrm{depth} \cdot g \cdot d \cdot t$$
#
# numbers, g/h of what h heads would need. For Llama 3 8B (depth 32, g = 8, d = 128), 8,192 tokens and 16 bits a
# number, that is 1.1 GB; with keys and values for each of its 32 heads it would be 4.3 GB.

# %%
plots.diagrams.grouped_queries()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** An arrow leads from a head of queries to the keys and values that it reads. The cache holds the
# two lower rows.
#
# </div>
#
# Query head r uses the keys and values of group ⌊r·g/h⌋. A `LayerCache` holds one block's part of lesson 12's cache:
# `past.append(k, v)` adds keys and values (b, g, t, d) and returns those of all positions so far, (b, g, s, d);
# `past.length` is how many positions it holds.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `GroupedQueryAttention`** &nbsp; ★★★ · 14 minutes · 5 points
#
# Causal attention with h heads of queries and `groups` of keys and values. Four layers without biases: `to_queries`
# and `unify` from e to e, `to_keys` and `to_values` from e to groups·d. Queries and keys are rotated with `rotate(x,
# positions, theta)`; positions continue from those in `past`. Scores are divided by √d.
#
# Append the g heads of keys, already rotated, and of values to the cache before anything is copied. `split_heads`,
# `merge_heads`, `causal_mask`, `masked_softmax` and `F.scaled_dot_product_attention` may be used;
# `nn.MultiheadAttention` and `finished_block` may not.
#
# <details><summary>Hint 1: the order of things</summary>
#
# Which steps need only the new positions, and which need all of them? Where does `past.append` belong between
# projecting, rotating and copying? Does appending change `past.length`?
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

    def __init__(self, e, h, groups, theta=10000.0):
        super().__init__()
        self.h, self.groups, self.theta = h, groups, theta
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
        q = rotate(split_heads(self.to_queries(x), self.h), positions, self.theta)
        k = rotate(split_heads(self.to_keys(x), self.groups), positions, self.theta)
        v = split_heads(self.to_values(x), self.groups)                        # (b, g, t, d)
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
# The ONNX standard's own reference once tiled the groups: heads 0, 1, 2 and 3 read groups 0, 1, 0 and 1 ([pull request
# 7274](https://github.com/onnx/onnx/pull/7274)). Every shape stays the same, so nothing raises an error.

# %% [markdown]
# ## The parts add up to the published sizes
#
# The model is lesson 12's with the new parts. A `LlamaConfig` holds the sizes: `n`, `e`, `h`, `groups`, `depth`,
# `hidden`, `epsilon`, `theta`, and `tied`. `finished_block(config)` makes a pre-norm block, called with x and a
# LayerCache or None.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `Llama`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# The whole model: `tokens`, an embedding; `blocks`, an `nn.ModuleList` with `depth` of `block(config)`; `norm`, a
# `finished_norm` with the config's ε; and `to_logits`, linear without a bias. A model with `config.tied` has no
# `to_logits`, or None in its place: its output layer is the table of tokens. The `state_dict` holds nothing else.
# From a KeyValueCache, block i gets its LayerCache, `cache.layers[i]`.
#
# <details><summary>Hint 1: what GPT-2 has and a Llama lacks</summary>
#
# There is no table of positions: only attention uses positions. The norm after the last block is still there.
#
# </details>
# <details><summary>Hint 2: a tied table of three tokens</summary>
#
# The table has the rows (1, 0), (0, 1) and (1, 1). For the vector (2, 5) the logits are its products with the rows:
# 2, 5 and 7. `F.linear` computes such products.
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
# On PyTorch's device `meta`, tensors have shapes but no numbers, so a laptop can build a model of any size:

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
# These are the published models' counts, which their papers round ([Llama 2](https://arxiv.org/abs/2307.09288),
# [Mistral 7B](https://arxiv.org/abs/2310.06825), [Llama 3](https://arxiv.org/abs/2407.21783)). The totals agree, but a
# total sees neither shapes nor the order of a matrix's rows.

# %% [markdown]
# ## Weights of the right shape can be in the wrong order
#
# Lesson 6 rotates the components 2j and 2j + 1 of a head together, as the paper
# ([RoFormer](https://arxiv.org/abs/2104.09864)) and Meta's own files do. The files on the Hub, and `transformers`,
# pair j with j + d/2:

# %%
plots.diagrams.pairs_and_halves()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The six components of one query or key. Those with a bracket and the same colour are rotated
# together.
#
# </div>
#
# Because a score is a sum over components, in any order, both are the same model if the rows of $W_q$ and $W_k$ are
# reordered **within each head**: component 2j moves to place j, component 2j + 1 to place j + d/2. Values are not
# rotated, so their rows stay. Again every shape stays the same.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `halves_from_pairs`** &nbsp; ★★★ · 9 minutes · 3 points
#
# Reorder the rows of $W_q$ or $W_k$ from pairs to halves. For keys in groups, h is the
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
# As (head, pair, place in the pair) the rows are ((0, 1), (2, 3)) and ((4, 5), (6, 7)). The new order is 0, 2, 1, 3,
# 4, 6, 5, 7. Which two of the three axes have changed places?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "halves_from_pairs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def halves_from_pairs(weight, h):
    """The rows of a projection in the order for the other way of rotating.

    weight: (h·d, e), for heads in which components 2j and 2j + 1 are rotated together.
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
# A file from the Hub needs the way back: `pairs_from_halves`, the inverse of your function.
#
# The **pocket Llama** was trained for this course on Jane Austen's novels: half a million parameters, four heads of
# queries in two groups. Its file is in the Hub's format, so `transformers` can read it too; its logits for one
# sentence were recorded. The blocks of your model are your own parts:

# %%
class Block(nn.Module):
    """A block of your norm, your attention and your network."""

    def __init__(self, config):
        super().__init__()
        self.norm1 = RMSNorm(config.e, config.epsilon)
        sizes = config.e, config.h, config.groups, config.theta
        self.attention = GroupedQueryAttention(*sizes)
        self.norm2 = RMSNorm(config.e, config.epsilon)
        self.feed_forward = SwiGLU(config.e, config.hidden)

    def forward(self, x, past=None):
        x = x + self.attention(self.norm1(x), past)
        return x + self.feed_forward(self.norm2(x))

# %% tags=["nbval-check-output"]
def read(folder):
    """The config of a Llama, and the tensors of its file under this lesson's names."""
    published, _, _ = read_weights(folder)
    return LlamaConfig.from_json(folder / "config.json"), rename_llama(published)

def rows_in_pairs(weights, config):
    """The weights with the rows of queries and keys in the order that `rotate` expects."""
    heads = {"to_queries": config.h, "to_keys": config.groups}
    return {name: pairs_from_halves(tensor, heads[name.split(".")[-2]])
            if name.split(".")[-2] in heads else tensor for name, tensor in weights.items()}

def loaded(config, weights):
    model = Llama(config, Block).to(device()).eval()
    model.load_state_dict(weights)
    return model

folder = llama_files(places="embedded", say=lambda told: None).folder    # the pocket Llama
config, in_file = read(folder)
right = rows_in_pairs(in_file, config)
model, known = loaded(config, right), llama_reference(folder)
ids, logits = known.ids.to(device()), known.logits.to(device())
cache = KeyValueCache(config.depth, ids.shape[1])
with torch.no_grad():
    whole = model(ids)
    pieces = torch.cat([model(part, cache) for part in ids.split([10, 1, 23], dim=1)], dim=1)
print(known.told)
print("logits equal to within 0.0001:", torch.allclose(whole, logits, rtol=0, atol=1e-4))
print("in three pieces, with a cache:", torch.allclose(pieces, logits, rtol=0, atol=1e-4))
name = "blocks.0.attention.to_queries.weight"
print("there and back, the file's rows:",
      torch.equal(halves_from_pairs(right[name], config.h), in_file[name]))

# %% [markdown]
# **Your model computes what `transformers` computes.** The next cell loads a published Llama in the same way,
# [SmolLM2-135M](https://huggingface.co/HuggingFaceTB/SmolLM2-135M), if it is in the data folder or the Hub can be
# reached. Below, it was not, so the pocket Llama wrote.

# %%
@torch.no_grad()
def go_on(model, ids, count, temperature=0.7, top_p=0.9):
    """ids (b, t) and `count` more tokens."""
    new, cache = ids, KeyValueCache(len(model.blocks), ids.shape[1] + count)
    chance = torch.Generator(device()).manual_seed(0)
    for _ in range(count):
        logits = model(new, cache)[:, -1]
        new = draw(logits, temperature, top_p=top_p, generator=chance)    # (b, 1)
        ids = torch.cat([ids, new], dim=1)
    return ids

def continued(model, tokenizer, text="Elizabeth was"):
    prompt = torch.tensor([tokenizer.encode(text)], device=device())
    new = go_on(model, prompt, 16)[0, prompt.shape[1]:]
    return " ".join(tokenizer.decode(new).split())

its_folder = llama_files().folder
its_config, its_weights = read(its_folder)
its_model = loaded(its_config, rows_in_pairs(its_weights, its_config))
print("Elizabeth was …", continued(its_model, Tokenizer.from_folder(its_folder)))

# %% [markdown]
# ## Six mistakes load without an error, and the text is a poor test
#
# Would you have noticed a mistake without the recorded logits? The next cells make six in the pocket Llama, one at a
# time. Here, in alphabetical order, is what the right model and the six wrong ones wrote after *Elizabeth was*. **Which
# would you reject?**
#
# - a better at farther, and by Mr. Thenies, they must as
# - a better at the Campbell, and it was to be so
# - a better at the last time; and though she was now to be in the
# - a better at the last time; and though she was now to be in the
# - a induce of the a great w. esc they all her
# - equally at the last time by the power of being an envy,
# - open. She was in the most great good-willed to speak of her

# %%
swap = {"gate": "up", "up": "gate"}
exchanged = {name: right[".".join(swap.get(part, part) for part in name.split("."))]
             for name in right}
shape = config.h // config.groups, config.groups, config.e // config.h
rows = torch.arange(config.e).view(shape).transpose(0, 1).flatten()
tiled = {name: tensor[rows] if "to_queries" in name         # head r reads group r mod g
         else tensor[:, rows] if "unify" in name else tensor
         for name, tensor in right.items()}

def without_mean(norm, inputs):
    """A hook: LayerNorm's first step, before a norm that should not have it."""
    return (inputs[0] - inputs[0].mean(dim=-1, keepdim=True),)

cases = {    # settings in place of the file's, and weights
    "none": ({}, right),
    "ε ten times larger": ({"epsilon": 10 * config.epsilon}, right),
    "mean subtracted": ({}, right),
    "θ = 500,000": ({"theta": 500_000.0}, right),
    "rows as in the file": ({}, in_file),
    "gate, up exchanged": ({}, exchanged),
    "groups tiled": ({}, tiled),
}

def with_mistake(case):
    settings, weights = cases[case]
    model = loaded(replace(config, **settings), weights)
    for part in model.modules():
        if case == "mean subtracted" and isinstance(part, (RMSNorm, finished_norm)):
            part.register_forward_pre_hook(without_mean)
    return model

# %%
tokenizer = Tokenizer.from_folder(folder)
prompt = torch.tensor([tokenizer.encode("Elizabeth was")], device=device())
own = go_on(model, prompt.expand(16, -1), 64, 1.0, None)    # 16 texts
print(f"{'mistake':19}{'logits':>9}{'loss':>6}  text")
for case in cases:
    model = with_mistake(case)
    with torch.no_grad():
        difference = (model(ids) - logits).abs().max()
        loss = F.cross_entropy(model(own[:, :-1]).mT, own[:, 1:])
    print(f"{case:19}{difference:9.5f}{loss:6.2f}  {continued(model, tokenizer)}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** *Logits*: the largest difference from those of `transformers`, for the recorded sentence. *Loss*:
# nats a token on 16 texts: *Elizabeth was* and 64 tokens by the right model. These texts, and the random numbers for
# *text*, are the same in every row.
#
# </div>
#
# **The logits show all six:** with each mistake they are farther from those of `transformers`. The wrong ε moves them
# by 0.02, so compare in 32 bits.
#
# **The text is a poor test.** In this one draw even the right model writes odd English. The two worst mistakes show;
# but a wrong ε changes no word, and θ = 500,000 (the opening's second text) reads no worse.
#
# **The loss needs a number to compare with.** A loss of 3.70 looks fine until you know that 3.62 was possible.
#
# Your Llama is finished, and this is a good place for a break. One fault is left.

# %% [markdown]
# ## Beyond its window a Llama meets new angles, and its loss climbs
#
# A reference finds mistakes in code. It cannot find the next fault, because `transformers` has it too.
#
# Rotary positions have no table that ends, so a Llama reads a text of any length. But how well? The pocket Llama was
# trained on windows of 128 tokens. Now it reads sixteen such windows in one piece. As a control, it reads **the same
# words** in sixteen separate windows.

# %%
pocket = load_llama(folder, device())
window, factor, d = pocket.t_max, 16, pocket.config.e // pocket.config.h
chance = torch.Generator(device()).manual_seed(0)
written = torch.full((16, 1), tokenizer.end_of_text, device=device())    # 16 texts
while written.shape[1] <= factor * window:
    seen = written[:, -window // 2:]           # 64 tokens in view, and 64 more are written
    more = generate_cached(pocket, seen, window // 2, generator=chance)
    written = torch.cat([written, more], dim=1)
written = written[:, :factor * window + 1]     # (16, 16·128 + 1)

@torch.no_grad()
def loss_by_position(frequencies, piece=factor * window):
    """Nats a token of what was written, read in pieces: means over blocks of 128, (16,)."""
    read_with(pocket, frequencies)
    tokens, targets = (part.reshape(-1, piece) for part in (written[:, :-1], written[:, 1:]))
    losses = [F.cross_entropy(pocket(seen).mT, following, reduction="none")
              for seen, following in zip(tokens.split(4), targets.split(4))]
    return torch.cat(losses).view(16, -1, window).mean(dim=(0, 2)).cpu()

def tell(name, losses):
    print(f"{name}: nats a token in the first {window} positions {losses[0]:.2f}, "
          f"in the last {losses[-1]:.2f}")

trained = pocket.config.theta ** -(torch.arange(0, d, 2) / d)    # (d/2,)
as_trained, apart = loss_by_position(trained), loss_by_position(trained, piece=window)
tell("in one piece", as_trained)
tell("in windows", apart)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The words are the pocket Llama's own, written with at most 128 tokens in view: 16 texts.
#
# </div>
#
# No error again, but **in one piece the loss climbs, and the words are not to blame**. Two things are new: there are
# more keys, and some are farther from the query.
#
# After $2\pi/\omega_j$ positions, its **wavelength**, a pair has completed a turn. Five of the twelve pairs in a head
# of the pocket Llama:
#
# | pair | wavelength in positions | turns in the window |
# |---:|---:|---:|
# | 0 | 6 | 20.37 |
# | 2 | 29 | 4.39 |
# | 3 | 63 | 2.04 |
# | 4 | 135 | 0.95 |
# | 11 | 29,164 | 0.004 |
#
# From pair 4 on, none completes a turn in the window. In a longer text these pairs reach angles that the model has
# never met. If that is the cause, the climb should go when no angle is beyond the trained range.

# %% [markdown]
# <div class="card">
#
# **Prediction · `all_pairs`** &nbsp; 1 minute · no points
#
# Divide all frequencies by sixteen: now no pair turns farther in the longer window than it did in training. Nothing is
# trained. What happens to the loss in the first 128 positions?
#
# - **A.** Nothing: all distances shrink alike, and their order stays.
# - **B.** It falls a little: all keys look nearer.
# - **C.** It rises: neighbours now differ by a sixteenth of the angle that the model knows.
# </div>

# %% nbgrader={"grade": false, "grade_id": "all_pairs", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
all_pairs = "C"
### STUDENT GETS
# all_pairs = ...    # "A", "B" or "C"
### END SOLUTION

# %%
interpolated = loss_by_position(trained / factor)
tell("all frequencies divided", interpolated)

# %% nbgrader={"grade": true, "grade_id": "check_all_pairs", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("all_pairs", all_pairs)

# %% [markdown]
# The climb is nearly gone, so the angles were its cause; the price is a higher loss everywhere. The token before now
# seems a sixteenth of a step away. To divide all frequencies is **position interpolation** ([Chen et al.,
# 2023](https://arxiv.org/abs/2306.15595)).
#
# The fast pairs need no help, because in the trained window they met the whole circle. So stretch only the slow ones,
# **by parts** ([Peng et al., 2023](https://arxiv.org/abs/2309.00071), *YaRN*, section 3.2). Let $r_j$ be the turns of
# pair j in the trained window, and $\beta_j$ how much of its frequency it keeps:
#
# $$r_j = \frac{\text{window} \cdot \omega_j}{2\pi}, \qquad \beta_j = \frac{r_j - \text{low}}{\text{high} -
# \text{low}} \ \text{(not below 0, not above 1)}, \qquad \omega'_j = \beta_j\, \omega_j + (1 - \beta_j)\,
# \frac{\omega_j}{\text{factor}} .$$
#
# Low and high are 1 and 32 in YaRN, 1 and 4 in [Llama 3.1](https://huggingface.co/meta-llama/Llama-3.1-8B). With 1 and
# 4, pairs 0 to 2 of the table above are kept, pair 3 is blended, and all others are stretched.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `stretched_frequencies`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Write ω′ by parts as a function. The frequencies may come in any order, and the result has their type.
#
# <details><summary>Hint 1: in which unit</summary>
#
# Angles are in radians, and `low` and `high` count turns. Which pairs are to keep their frequency: those with many
# turns or those with few?
#
# </details>
# <details><summary>Hint 2: three pairs by hand</summary>
#
# With a window of 100, a factor of 4 and bounds of 1 and 4, pairs that turn 10 times, 2.5 times and half a time have
# β = 1, 0.5 and 0. Their frequencies are multiplied by 1, by 0.5 + 0.5/4 = 0.625, and by 0.25.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "stretched_frequencies", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stretched_frequencies(frequencies, window, factor, low=1.0, high=4.0):
    """Rotary frequencies for a window `factor` times as long, by parts.

    frequencies: (d/2,), radians a position. window: positions of the training.
    low, high: turns in that window; at or below low a pair is stretched whole, at or above
    high not at all. Returns (d/2,).
    """
    ### BEGIN SOLUTION
    turns = window * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_stretched_frequencies", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(stretched_frequencies)

# %%
by_parts = loss_by_position(stretched_frequencies(trained, window, factor))
ways = {"in windows (control)": apart, "in one piece": as_trained,
        "position interpolation": interpolated, "by parts": by_parts}
print(f"{'nats a token':24}{f'first {window}':>10}{f'last {window}':>10}")
for name, losses in ways.items():
    print(f"{name:24}{losses[0]:10.2f}{losses[-1]:10.2f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Loss against position, four lines. In one piece the line begins beside that in windows, climbs steeply over the first 400 positions, and ends highest. With position interpolation it begins highest and stays level. By parts it begins close to the lowest, rises a little after the first window and then stays level. In windows it stays level, lowest from end to end."}}
places = torch.arange(window // 2, factor * window, window)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="compressed")
plots.curves({name: (places, losses) for name, losses in ways.items()}, "position",
             "nats a token", ax=ax, title="In one piece the loss climbs, by parts much less")
ax.set_ylim(3.4, 6)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One model, sixteen texts; means over 128 positions. *Position interpolation* and *by parts*,
# your function, read in one piece.
#
# </div>
#
# **Angles beyond the trained range cause most of the climb.** In one piece the loss climbs from 3.60 to 5.05 nats,
# most of it in the first quarter of the text. Without such angles it climbs from 4.43 to 4.63, or from 3.77 to 4.09,
# though there are as many keys. In the first window, stretching by parts costs 0.17 nats and dividing all frequencies
# nearly five times as much: the fast pairs are better left alone. (The authors of both methods then train on long
# texts for a while; here nothing is trained.)
#
# **But the longer window gains nothing.** In the first half of every later window, the model in one piece also sees
# tokens that the writer saw, and the control does not. So it should do better than the control there; by parts, it
# does worse in every window. More could not be gained with these words, whose writer saw no farther back. Held-out
# chapters, where it could, show no gain either ([Measured further](../../site/further.md#lesson-18), with eleven
# changes of newer models).
#
# ## Optional: a router can leave experts unused
#
# Nothing else needs this section; its points count like all others.
#
# To store more without more work for each token, many newer models replace the Llama's network by a **mixture of
# experts** (MoE): N networks, and a **router** that sends each token to k of them ([Shazeer et al.,
# 2017](https://arxiv.org/abs/1701.06538)). The router is a linear layer with N outputs; with p their softmax,
#
# $$y = \sum_{i \in \text{top } k} w_i\, E_i(x), \qquad w_i = \frac{p_i}{\sum_{j \in \text{top } k} p_j} .$$

# %%
plots.diagrams.experts_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** N = 4 and k = 2. Arrows lead from each token to its experts, and from there to its sum. Expert 2
# is chosen by no token.
#
# </div>
#
# Because an expert without tokens learns nothing, a **load-balancing loss** is added ([Switch
# Transformers](https://arxiv.org/abs/2101.03961), Fedus et al., 2021, section 2.2), with a weight of 0.01:
#
# $$\mathrm{balance} = N \sum_{i=1}^{N} f_i P_i .$$
#
# $f_i$ is the share of all choices that fell on expert i: each token makes k choices, and the shares sum to 1. $P_i$
# is its mean probability over **all** tokens, including those that did not choose it. The counts $f_i$ have no
# gradient, so training moves probability from experts with a large $f_i$ to those with a small one.
#
# If all experts are used equally, the balance is 1. If k experts get all the choices **and** all the probability, it
# is N/k, its maximum. All the choices alone are not enough: a nearly even router that always prefers the same k has a
# balance close to 1.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `route`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Write the formulas for $w_i$ and the balance as a function. The most probable expert of a token comes first.
#
# <details><summary>Hint 1: the weights</summary>
#
# `topk(k, dim=-1)` returns the largest numbers of each row and their places. The probabilities of the chosen do not
# sum to 1 yet.
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
# One library took P over the chosen probabilities alone ([maxtext, issue
# 1432](https://github.com/AI-Hypercomputer/maxtext/issues/1432)).

# %% [markdown]
# <div class="card">
#
# **Prediction · `router_of_one`** &nbsp; 1 minute · no points
#
# To save work, someone sets k = 1 and changes nothing else. How large is the gradient of the router's weights, from
# the loss of the task alone?
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
# One library trained models with this weight of p/p = 1 ([Megatron-LM, issue
# 894](https://github.com/NVIDIA/Megatron-LM/issues/894)). With k = 1, use $w_i = p_i$.

# %% [markdown]
# How much does the balance help? Eight kinds of tokens, each with its own task, share eight experts, with k = 2. The
# first three rows add 3 to every component of every input; this common part lets the router prefer the same experts
# for all tokens at first.

# %% tags=["hide-input"]
def train_mixture(share, common, seed, steps=200, N=8, e=16):
    """f of each expert at each step, (steps, N). share: how much of the balance is added."""
    torch.manual_seed(seed)
    mixture = MixtureOfExperts(e, 16, N, k=2)
    generator = torch.Generator().manual_seed(5)
    tasks = torch.randn(N, e, e, generator=generator)
    centres = torch.randn(N, e, generator=generator)
    optimiser, used = torch.optim.Adam(mixture.parameters(), lr=0.01), []
    for _ in range(steps):
        kind = torch.randint(N, (256,), generator=generator)
        x = 2 * centres[kind] + torch.randn(256, e, generator=generator)
        y = torch.einsum("re,reo->ro", x, tasks[kind] / e ** 0.5)
        loss = (mixture(x + common) - y).square().mean()
        _, experts, balance = route(mixture.logits, 2)
        optimiser.zero_grad()
        (loss + share * balance).backward()
        optimiser.step()
        used.append(torch.bincount(experts.flatten(), minlength=N) / experts.numel())
    return torch.stack(used)

def hardly_used(shares):
    """How many experts have less than 1% of the choices."""
    return str((shares < 0.01).sum().item())

print("input   weight of the balance   first step   last 20 steps")
for common, share in ((3, 0), (3, 0.01), (3, 1), (0, 0)):
    runs = [train_mixture(share, common, seed) for seed in range(3)]
    first = " ".join(hardly_used(used[0]) for used in runs)
    last = " ".join(hardly_used(used[-20:].mean(dim=0)) for used in runs)
    print(f"x + {common}   {share:<21}   {first:10}   {last}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** How many of the eight experts get less than 1% of the choices: three numbers for three seeds,
# 200 steps each.
#
# </div>
#
# **A router that begins lopsided can end lopsided.** On inputs with the common part and without the balance, some
# experts are hardly used at the end, with each seed. A balance at weight 0.01 leaves one; weight 1 leaves none. The
# loss of the task need not show it ([Measured further](../../site/further.md#lesson-18)), and a training has no
# reference. So count the choices.
#
# ## What you can do now
#
# **What do you have to change in a GPT-2 to load a Llama, and how do you notice a mistake?** The norm, the network,
# the biases, the positions, whose keys and values a head reads, and in most Llamas the output layer. A mistake may
# raise no error and leave readable text.
#
# - **Compare logits with those of a program that you trust, in 32 bits.** Your pocket Llama's were those of
#   `transformers` to within 0.0001; each of six mistakes moved them farther.
# - **Compare losses on the same words.** One model read the end of its texts with 5.05 nats in one piece, and in
#   windows with 3.70. Stretching slow pairs removed most of the difference.
#
# **Three questions to think about**
#
# <details><summary>1. A cache with g groups is h/g times smaller. Why are the queries not grouped as well?</summary>
#
# Queries are not stored: each is used once, for the current token. And with h heads of queries, each group is asked
# h/g different questions.
#
# </details>
# <details><summary>2. Meta's own files have their rows in pairs. What happens if you load one as you loaded the pocket
# Llama?</summary>
#
# `rows_in_pairs` reorders rows that were in the right order. Nothing raises an error, and in queries and keys the wrong
# components are rotated together.
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
# - **[Touvron et al., *LLaMA*, 2023](https://arxiv.org/abs/2302.13971)**, section 2.2: three of the five changes.
# - [*DeepSeek-V3*, 2024](https://arxiv.org/abs/2412.19437), section 2: latent attention and many small experts.
#
# A Llama from a file now runs in your own code. What do its heads do?
#
# **Next:** [lesson 19, *Looking inside*](../19_looking_inside/19_looking_inside.ipynb)
