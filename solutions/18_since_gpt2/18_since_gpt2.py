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
# Two models with the same weights continue *Elizabeth was*, with the same random numbers. One has the rows of two
# matrices in each block in the wrong order. Can you tell which?
#
# > … a better at the last time; and though she was now to be in the
#
# > … open. She was in the most great good-willed to speak of her
#
# The second has the mistake. It raised no error, because reordered rows change no shape. Smaller mistakes can leave
# text as good as the first, so compare the logits with those of a program that you trust. One fault escapes even
# that, and shows only in long texts.
#
# Five things change: the norm, the network, the biases, the positions, and how many heads have keys and values of their
# own.
#
# | | |
# |---|---|
# | **You will build** | a norm, a gated network, grouped queries with a cache, a whole Llama, angles for a longer window, and a router of experts |
# | **You need** | lessons [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 90 minutes: seven exercises, 24 points, and two predictions |
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
from helpers.parts.llama import LlamaConfig, pairs_from_halves, read_with, rotary_frequencies
from helpers.parts.llama import RMSNorm as finished_norm
from helpers.parts.llama import load as load_llama
from helpers.parts.llama import rename_llama
from helpers.parts.masks import causal_mask, masked_softmax
from helpers.parts.multi_head import merge_heads, split_heads
from helpers.parts.positions import rotate
from helpers.parts.weight_files import read_weights

check = start("18_since_gpt2")

# %% [markdown]
# ## With its rows in the wrong order, a head looks at other tokens
#
# The **pocket Llama** of the opening was trained for this course on Jane Austen's novels, and has half a million
# parameters. Its file has the rows in the order for another way of rotating queries and keys. Here is the head that
# gives the token before the most weight:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two maps of attention weights over the same eighteen tokens: It is a truth universally acknowledged, that a single man. Left, rows in the right order: most rows have their darkest cell just left of the diagonal. Right, rows as in the file: few rows have it there, and the later rows spread their weight over many columns."}}
folder = llama_files(places="embedded", say=lambda told: None).folder    # the pocket Llama
tokenizer = Tokenizer.from_folder(folder)
pocket, reordered = load_llama(folder, device()), load_llama(folder, device())
reordered.load_state_dict(rename_llama(read_weights(folder)[0]))
words = tokenizer.encode("It is a truth universally acknowledged, that a single man")
looks = [model.attention_weights(torch.tensor([words], device=device()))[1, 0, 0].cpu()
         for model in (pocket, reordered)]
plots.heat_pair(*looks, [tokenizer.decode([word]).strip() for word in words],
                titles=("rows in the right order", "rows as in the file"), same_scale=True,
                row_label="token that looks", column_label="token that is looked at")
plt.show()
right_share, wrong_share = (weights.diagonal(-1).mean().item() for weights in looks)
print(f"mean weight on the token before: {right_share:.2f}, reordered {wrong_share:.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Head 0 of the second block. A row shows how one token spreads its weight over the tokens so far.
#
# </div>
#
# **The numbers are the same, and the head looks elsewhere.** In the right order it gives, on average, more than half of
# its weight to the token before; as in the file, a quarter, mostly in the first rows, with few tokens in view.
#
# ## A Llama is a GPT-2 with five changes
#
# Many open models since [LLaMA](https://arxiv.org/abs/2302.13971) (Touvron et al., 2023) use its block, with the
# grouped queries of the larger [Llama 2](https://arxiv.org/abs/2307.09288) models. Many also have an output layer of
# their own.

# %%
plots.diagrams.llama_block()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left, the first block of lesson 12; right, a Llama's. Changed layers are yellow; positions are
# not added to x.
#
# </div>
#
# **The norm no longer subtracts the mean.** [Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467)
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
# Give the norm x and 2x. What should happen to the output, and what does happen?
#
# </details>
# <details><summary>Hint 2: a vector of two components</summary>
#
# For x = (3, 4) the mean square is 12.5 and its root 3.54, so the output should be (0.85, 1.13). What
# does `torch.rsqrt(torch.tensor(12.5))` give?
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
# $$y = \gamma \odot \frac{x}{\sqrt{\frac{1}{e}\sum_i x_i^2 + \varepsilon}} .$$
#
# **The network gets a gate**, because gated networks predicted better at the same size ([Shazeer,
# 2020](https://arxiv.org/abs/2002.05202), who offers no explanation). A **SwiGLU** begins with two layers. For each
# token and component, one sets how much of the other's output passes:
#
# $$\mathrm{SwiGLU}(x) = W_{\mathrm{down}}\big(\mathrm{silu}(W_{\mathrm{gate}}\, x) \odot W_{\mathrm{up}}\, x\big),
# \qquad \mathrm{silu}(a) = a\,\sigma(a) .$$
#
# σ is the sigmoid. Three matrices with a hidden layer of (8/3) e have as many parameters as GPT-2's two with 4e.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `SwiGLU`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Three layers without biases: `gate` and `up` from e to `hidden`, `down` back to e.
#
# <details><summary>Hint 1: where silu ends</summary>
#
# What is silu applied to in the formula? `silu(gate(x) * up(x))` is another function.
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
# **No layer has a bias**, neither a linear layer nor a norm: the authors of [PaLM](https://arxiv.org/abs/2204.02311)
# report that large models train more steadily without.
#
# **Positions are rotations**, so that a score depends on the distance between two tokens and not on where they stand.
# In each layer, queries and keys (not values) are rotated: the [rotary
# positions](../../site/glossary.md#rotary-positions) of [lesson 6](../06_positions/06_positions.ipynb). From one
# position to the next, pair j of a head of width d turns by its **frequency**
#
# $$\omega_j = \theta^{-2j/d}, \qquad j = 0, \dots, d/2 - 1 .$$
#
# The **base** θ is a setting in the model's file: lesson 6 took 10,000, and Llama 3 takes 500,000, for longer texts
# ([2024](https://arxiv.org/abs/2407.21783), section 3.2). No weight's shape depends on θ, so a wrong one raises no error.

# %% [markdown]
# ## Heads that share keys and values need a smaller cache
#
# **The fifth change saves memory.** While a model writes, its [key–value
# cache](../../site/glossary.md#key-value-cache) holds a key and a value for each position, head and block. In
# **grouped-query attention** ([Ainslie et al., 2023](https://arxiv.org/abs/2305.13245)) there are only g heads of keys
# and values, each for h/g heads of queries. With g = 1 it is [multi-query
# attention](../../site/glossary.md#multi-query-attention) ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)), which
# costs some quality. The cache of one text of t positions holds
#
# $$2 \cdot \mathrm{depth} \cdot g \cdot d \cdot t$$
#
# numbers. For Llama 3 8B (depth 32, g = 8, d = 128), 8,192 tokens and 16 bits a number, that is 1.1 GB; with keys and
# values for each of its 32 heads, 4.3 GB.

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
# Append the g heads of keys, already rotated, and of values to the cache before anything is copied. You may use
# `split_heads`, `merge_heads`, `causal_mask`, `masked_softmax` and `F.scaled_dot_product_attention`, not
# `nn.MultiheadAttention` or `finished_block`.
#
# <details><summary>Hint 1: the order of things</summary>
#
# Which steps need only the new positions, and which need all of them? Where does `past.append` belong? Does appending
# change `past.length`?
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
# ## The whole model is lesson 12's with these parts
#
# A `LlamaConfig` holds the sizes: `n`, `e`, `h`, `groups`, `depth`, `hidden`, `epsilon`, `theta`, and `tied`.
# `finished_block(config)` makes a pre-norm block, called with x and a LayerCache or None.

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
# There is no table of positions. The norm after the last block is still there.
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
# ## Rows follow the order in which components are rotated
#
# Lesson 6 rotates the components 2j and 2j + 1 of a head together, as the paper
# ([RoFormer](https://arxiv.org/abs/2104.09864)) and Meta's own files do. The files on the Hub, and `transformers`,
# pair j with j + d/2:

# %%
plots.diagrams.pairs_and_halves()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The six components of one query or key. A bracket joins those that are rotated together.
#
# </div>
#
# A score is a sum over components, in any order. So both are the same model if the rows of $W_q$ and $W_k$ are
# reordered **within each head**: component 2j moves to place j, component 2j + 1 to place j + d/2. Values are not
# rotated, so their rows stay.

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
# In the pocket Llama's file the rows are in halves, and the opening's second model used them so. `pairs_from_halves`,
# which undoes your function, reorders them into pairs. The recorded logits of `transformers` are for the sentence
# whose start is in the first picture. The blocks of your model are your own parts:

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
# **Your model computes what `transformers` computes.** A cell below loads
# [SmolLM2-135M](https://huggingface.co/HuggingFaceTB/SmolLM2-135M), a published Llama, where its files are found.
# Here the pocket Llama wrote.

# %% tags=["hide-input"]
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

# %%
its_folder = llama_files().folder
its_config, its_weights = read(its_folder)
its_model = loaded(its_config, rows_in_pairs(its_weights, its_config))
print("Elizabeth was …", continued(its_model, Tokenizer.from_folder(its_folder)))

# %% [markdown]
# ## Six mistakes load without an error, and the text is a poor test
#
# Would you notice one without the recorded logits? *Mean subtracted* is in every norm, as in LayerNorm; *gate, up
# exchanged* gives each the other's weights.

# %% tags=["hide-input"]
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
# **How to read it.** *Logits*: the largest difference from `transformers`, for the recorded sentence. *Loss*: nats a
# token on 16 texts of 64 tokens by the right model, on average the best on them. These texts, and the random numbers
# for *text*, are the same in every row. *Groups tiled*: heads 0 to 3 read groups 0, 1, 0, 1, as
# [reported](https://github.com/onnx/onnx/pull/7274) of the ONNX standard's reference.
#
# </div>
#
# **The logits show all six.** The wrong ε moves them by 0.02, so compare in 32 bits.
#
# **In this draw the text shows only gross mistakes.** Even the right model writes odd English. A wrong ε changes no
# word, and the next two seem about as good. Only the last three, with losses more than half a nat higher, seem worse.
#
# **The loss needs a comparison.** 3.70 looks fine until you know that 3.62 was possible.

# %% [markdown]
# ## Beyond its window a Llama meets new angles, and its loss climbs
#
# A reference finds mistakes in code. It cannot find the next fault, because `transformers` has it too.
#
# Rotary positions have no table that ends, so a Llama reads a text of any length. The pocket Llama was trained on
# windows of 128 tokens. Now it reads sixteen such windows in one piece and, as a control, **the same words** in sixteen
# separate windows.

# %% tags=["hide-input"]
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

# %%
trained = rotary_frequencies(d, pocket.config.theta)    # (d/2,)
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
# No error again, but **in one piece the loss climbs far more than in windows**. Two things are new: there are more
# keys, and some are farther away. Between a query and a key, pair j turns by $\omega_j$ times their distance:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Six circles, for pairs 0, 3, 5, 7, 9 and 11 of a head. Those of pairs 0 and 3 are blue all around. Of the others only an arc at the top is blue, shorter from pair to pair: almost half of the circle, a tenth, a narrow wedge, a speck. A dashed arc continues it: around the rest of the circle for pairs 5 and 7, over a third of it for pair 9, and a short piece for pair 11."}}
figure, axes = plt.subplots(1, 6, figsize=(6, 1.5))
for ax, j in zip(axes, (0, 3, 5, 7, 9, 11)):
    turns = (window * trained[j] / (2 * math.pi)).item()
    arcs = {(0, 1): {"color": "#dddddd", "linestyle": "-"},
            (turns, factor * turns): {"color": plots.COLOURS[1], "linewidth": 4,
                                      "linestyle": (0, (1, 0.5))},
            (0, turns): {"color": plots.COLOURS[0], "linewidth": 7, "linestyle": "-"}}
    for (start, end), look in arcs.items():
        if start < 1:
            angles = 2 * math.pi * torch.linspace(start, min(end, 1), 100)
            ax.plot(angles.sin(), angles.cos(), solid_capstyle="butt", **look)
    ax.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    ax.set_axis_off()
    ax.set_title(f"pair {j}", loc="center", fontsize=10)
    ax.text(0, 0, f"{turns:.{2 if turns > 0.01 else 3}f}", fontsize=9, **plots.style.CENTRED)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Six of a head's twelve pairs. Solid: the angles of all distances in a window of 128 positions,
# from the top clockwise. Dashed: those that only the longer text adds. The number: turns in the window,
# $128\,\omega_j / 2\pi$.
#
# </div>
#
# In the window, the fast pairs meet the whole circle and the slow ones an arc. A longer text takes the slow pairs to
# angles that the model never met. If these cause the climb, it should go when no pair leaves its arc.

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
# The climb is nearly gone. To divide all frequencies is **position interpolation** ([Chen et al.,
# 2023](https://arxiv.org/abs/2306.15595)). Its price is paid from the first window on.
#
# The fast pairs have met the whole circle. Two other ways slow them less than the rest ([Peng et al.,
# 2023](https://arxiv.org/abs/2309.00071), sections 3.1 and 3.2).
#
# **A larger base**, $\theta \cdot \text{factor}^{d/(d-2)}$, leaves the fastest frequency as it is and divides the
# slowest by the factor. The other slow pairs are divided by less: they still leave their arcs, only later.
#
# **By parts**, as in *YaRN* (which also rescales the scores), each pair keeps a share $\beta_j$ of its frequency. With
# $r_j$, its turns in the trained window:
#
# $$r_j = \frac{\text{window} \cdot \omega_j}{2\pi}, \qquad \beta_j = \frac{r_j - \text{low}}{\text{high} -
# \text{low}} \ \text{(not below 0, not above 1)}, \qquad \omega'_j = \beta_j\, \omega_j + (1 - \beta_j)\,
# \frac{\omega_j}{\text{factor}} .$$
#
# Low and high are 1 and 32 in YaRN, 1 and 4 in [Llama 3.1](https://huggingface.co/meta-llama/Llama-3.1-8B). With 1 and
# 4, pairs 0 to 2 are kept here, and pair 3 is blended.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `stretched_frequencies`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Write ω′ as a function. The frequencies may come in any order, and the result has their type.
#
# <details><summary>Hint 1: in which unit</summary>
#
# Angles are in radians, and `low` and `high` count turns. Which pairs keep their frequency: those with many turns or
# those with few?
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
larger = pocket.config.theta * factor ** (d / (d - 2))    # 205,866
larger_base = loss_by_position(rotary_frequencies(d, larger))
ways = {"in windows (control)": apart, "in one piece": as_trained,
        "larger base": larger_base, "position interpolation": interpolated,
        "by parts": by_parts}
print(f"{'nats a token':24}{f'first {window}':>10}{f'last {window}':>10}")
for name, losses in ways.items():
    print(f"{name:24}{losses[0]:10.2f}{losses[-1]:10.2f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Loss against position, five lines. In one piece the line begins beside that in windows, climbs steeply over the first 400 positions, and ends highest. With a larger base it stays just above the lowest for about four windows, then climbs about as steeply and ends nearly as high. With position interpolation it begins highest and stays level. By parts it begins close to the lowest, rises a little after the first window and then stays level. In windows it stays level, lowest from end to end."}}
places = torch.arange(window // 2, factor * window, window)
figure, ax = plt.subplots(figsize=(6, 3.6), layout="compressed")
plots.curves({name: (places, losses) for name, losses in ways.items()}, "position",
             "nats a token", ax=ax,
             title="A larger base delays the climb, by parts prevents most")
ax.set_ylim(3.4, 6.2)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One model, sixteen texts; means over 128 positions. All but the control are read in one piece.
#
# </div>
#
# **Angles beyond the trained range cause most of the climb.** As trained, the loss climbs by 1.35 nats more than the
# control's. Without such angles it climbs by 0.10 (position interpolation, from a higher start) or 0.22 (by parts,
# the better evidence) more, with as many keys.
#
# **A larger base delays the climb.** It costs least in the first window and stays close to the control for four, but
# ends at 5.02. In one piece, by parts ends lowest.
#
# **But the longer window gains nothing.** These texts leave little to gain: their writer saw at most 128 tokens. In
# every later window the control at first lacks some of these. Yet each other way does worse there. Held-out chapters
# show no gain either ([Measured further](../../site/further.md#lesson-18)).
#
# ## Optional: experts store more for the same work
#
# Nothing else needs this section; its points count.
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
# **How to read it.** N = 4 and k = 2. Expert 2 is chosen by no token.
#
# </div>
#
# An expert without tokens learns nothing. In a small training, some experts were hardly used with each of eight
# seeds. A **load-balancing loss** ([Switch Transformers](https://arxiv.org/abs/2101.03961), Fedus et al., 2021,
# section 2.2) prevented that at weight 1, but not at 0.01 ([Measured further](../../site/further.md#lesson-18)):
#
# $$\mathrm{balance} = N \sum_{i=1}^{N} f_i P_i .$$
#
# $f_i$ is the share of all choices that fell on expert i: each token makes k choices, and the shares sum to 1. $P_i$ is
# its mean probability over **all** tokens, including those that did not choose it, which one library [left
# out](https://github.com/AI-Hypercomputer/maxtext/issues/1432). The counts $f_i$ have no gradient, so training moves
# probability from experts with a large $f_i$ to those with a small one. If all experts are used equally, the balance is
# 1.

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
# (0.567, 0.433), and the balance is 2 · (0.378 + 0.144) = 1.04.
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
#
# ## What you can do now
#
# **What do you have to change in a GPT-2 to load a Llama, and how do you notice a mistake?** Five things: the norm,
# the network, the biases, the positions, and whose keys and values a head reads; in many Llamas also the output
# layer.
#
# - **Compare logits with those of a program that you trust, in 32 bits.** Your logits differed from those of
#   `transformers` by less than 0.0001; each of six mistakes moved them farther.
# - **Compare losses on the same words.** Read in one piece, the end of the texts cost 5.05 nats, in windows 3.70.
#
# A table in [Measured further](../../site/further.md#lesson-18) has eleven changes of still newer models.
#
# **Further reading**
#
# - **[Touvron et al., *LLaMA*, 2023](https://arxiv.org/abs/2302.13971)**, section 2.2: three of the five changes.
#
# A Llama from a file now runs in your own code. What do its heads do?
#
# **Next:** [lesson 19, *Looking inside*](../19_looking_inside/19_looking_inside.ipynb)
