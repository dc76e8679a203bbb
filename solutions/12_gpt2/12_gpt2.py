# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 12 · GPT-2
#
# *Open a published model*
#
# Four files are enough to publish a language model. Two say how to cut a text into tokens, one says how large the model
# is, and one holds the weights, a few million numbers or a few hundred million. None of them is a program. You write
# the program: it reads these files and continues a text, and up to rounding it computes the same numbers as every other
# program that opens them. Then you look inside, and find the heads that let it repeat what it has read.
#
# With a small GPT-2 that was trained on Python's standard library, your program will go on after the first line like
# this:
#
# ```python
# def __init__(self, key, value):
#         self._value = value
#         self._fields = {}
#
#     def __getattr__(self, name):
#         if name in self._fields:
#             return self._fields[name]
#         else:
#             return self._fields
# ```
#
# | | |
# |---|---|
# | **You will build** | GPT-2, the translation of its published weights, generation with a cache, and a score that finds heads; and you fix a converter |
# | **You need** | lessons [4](../04_multi_head/04_multi_head.ipynb), [5](../05_masking/05_masking.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [11](../11_tokens/11_tokens.ipynb) |
# | **It takes** | about 120 minutes: eight exercises, 22.5 points, and two predictions |
# | **It computes** | for a few seconds a cell, on any laptop, with a small GPT-2 that comes with the course; the published ones if you have a network and half a gigabyte to spare |
#
# Letters are those of [the table](../../site/notation.md): b batch, t positions, e width, h heads, d = e/h the width of
# one head, n the size of the vocabulary. Blocks, heads and positions are counted from 0.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import json
import math
import textwrap
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.recorded import recorded
from helpers.data.reference import reference
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.data.toy.five_sentences import SENTENCES
from helpers.device import device
from helpers.lesson import start
from helpers.parts import gpt2 as finished_gpt2
from helpers.parts.bpe import Tokenizer, bits_per_byte_of
from helpers.parts.gpt2 import Config, KeyValueCache, LayerCache
from helpers.parts.gpt2 import Conv1D as FinishedConv1D
from helpers.parts.gpt2 import GPT2Block as FinishedBlock
from helpers.parts.gpt2 import gelu_tanh as finished_gelu
from helpers.parts.multi_head import merge_heads, split_heads

check = start("12_gpt2")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## Four files
#
# OpenAI published GPT-2 in 2019, in four sizes ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)). It was
# trained on *WebText*, 40 GB of text from 8 million web pages that Reddit users had linked to (their section 2.1), in
# batches of 512 windows of 1,024 tokens (section 2.3). The paper asks what such a model can do with tasks that it was
# never trained on ([zero-shot](../../site/glossary.md#zero-shot)): translate, summarise, answer questions, or compress
# Wikipedia.
#
# On the Hugging Face Hub the smallest model is called
# [`openai-community/gpt2`](https://huggingface.co/openai-community/gpt2); four files from that folder are enough. The
# course includes four such files: the **pocket model**, our own GPT-2 with the same parts in the same format, trained
# only on the source of Python's standard library.

# %%
folder = gpt2_files("gpt2", places="embedded").folder
for name in ("config.json", "vocab.json", "merges.txt", "model.safetensors"):
    print(f"{name:>18}: {(folder / name).stat().st_size:>9,} bytes")

settings = json.loads((folder / "config.json").read_text())
for name in ("vocab_size", "n_positions", "n_embd", "n_head", "n_layer",
             "activation_function", "layer_norm_epsilon"):
    print(f"{name:>22} = {settings[name]}")

# %% [markdown]
# In our letters: n = vocab_size, t_max = n_positions, e = n_embd, h = n_head, and depth = n_layer. This is where the
# numbers of the fourth file are used:

# %%
plots.diagrams.gpt2_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom; the arrows carry the shape of the data. The text becomes ids (lesson 11), ids
# become vectors, and vectors go through the blocks. The last norm and the table of tokens turn them into logits, one
# for each possible next token. The orange table is used twice.
#
# </div>

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels of horizontal bars: for two beginnings of a line of Python, the eight most probable next tokens with their probabilities. After for name in, three tokens have about a tenth each; after def init self, the comma has almost nine tenths."}}
tokenizer = Tokenizer.from_folder(folder)
pocket = finished_gpt2.load(folder, device())    # the finished part, for now

def ids_of(text):
    return torch.tensor([tokenizer.encode(text)], device=device())    # (1, t)

figure, axes = plt.subplots(1, 2, figsize=(6, 3.1))
for ax, text in zip(axes, ["for name in", "def __init__(self"]):
    chances = pocket(ids_of(text))[0, -1].softmax(dim=-1)    # (n,)
    best = chances.topk(8)
    names = [tokenizer.token(i) for i in best.indices]
    plots.bars({f"{text} ▁": best.values}, names, "probability", "next token", axes=[ax])
    ax.set(xlim=(0, 1.2), xticks=[0, 0.5, 1], xticklabels=["0", ".5", "1"])
axes[1].set_ylabel("")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** There is one bar for each of the eight most probable next tokens after the text above the panel;
# "·" is a space and "Ċ" the end of a line. All n tokens get some probability, including those that are not shown.
#
# </div>
#
# ## The model, piece by piece
#
# GPT-2 is built like the model of lesson 9: pre-norm, one more norm at the end, learned positions. What is new:
# biases in the projections, [GELU](../../site/glossary.md#gelu) instead of ReLU, one table for input and output, tokens
# instead of bytes, and a different initialisation.
#
# **What every check asks.** You write each part yourself: in the exercises do not call `finished_gpt2`, or any other
# finished part that does the same (`FinishedConv1D` in `Conv1D`, `FinishedBlock` in `GPT2Block`).
#
# **Conv1D.** GPT-2's linear layers were written as convolutions of width 1 in TensorFlow, and their weights were
# published that way: as (n_in, n_out), used as x @ w + bias. `nn.Linear` stores the transpose. The name remains, though
# nothing in it is a convolution any more.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `Conv1D`** &nbsp; ★☆☆ · 4 minutes · 1.5 points
#
# Write a linear layer with `weight` of shape (n_in, n_out) and `bias` of shape (n_out,), both `nn.Parameter`.
# Initialise the weight with normal numbers of mean 0 and standard deviation 0.02 and the bias with 0, as GPT-2 does.
# Gradients must flow to x, weight and bias.
#
# <details><summary>Hint 1: two parameters</summary>
#
# An `nn.Parameter(tensor)` that is set as an attribute is a parameter of the module. `torch.randn` draws numbers of
# standard deviation 1; three times these have standard deviation 3.
#
# </details>
# <details><summary>Hint 2: any axes in front</summary>
#
# With x of shape (5, 7, 4) and a matrix of shape (4, 6), `x @ matrix` is (5, 7, 6). With x of shape (9, 4) it is (9,
# 6).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "Conv1D", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Conv1D(nn.Module):
    """A linear layer, its weight stored as GPT-2's were published."""

    def __init__(self, n_in, n_out):
        super().__init__()
        ### BEGIN SOLUTION
        self.weight = nn.Parameter(0.02 * torch.randn(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))
        ### END SOLUTION

    def forward(self, x):
        """x: (..., n_in), of two axes or more. Returns (..., n_out)."""
        ### BEGIN SOLUTION
        return x @ self.weight + self.bias
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_Conv1D", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
check(Conv1D)

# %% [markdown]
# **GELU.** ReLU multiplies x by 0 or 1, depending on its sign. GELU multiplies it by a number in between: by Φ(x), the
# probability that a standard normal number is smaller than x ([Hendrycks and Gimpel,
# 2016](https://arxiv.org/abs/1606.08415), section 2). Φ needs the error function, which was slower than tanh
# when GPT-2 was written. GPT-2 uses their approximation, which is given here as `finished_gelu`:
#
# $$\operatorname{gelu}(x) \;\approx\; \tfrac12\, x
# \left(1 + \tanh\!\Big(\sqrt{2/\pi}\,\big(x + 0.044715\,x^3\big)\Big)\right).$$

# %% tags=["nbval-check-output"]
x = torch.linspace(-6, 6, 12001, dtype=torch.float64)
apart = (finished_gelu(x) - F.gelu(x)).abs().max()
print(f"largest distance from the exact one: {apart:.5f}")

# %% [markdown]
# ## The block
#
# Pre-norm, as in lesson 7: $x + \text{attention}(\text{norm}_1(x))$, then $x + \text{network}(\text{norm}_2(x))$,
# where the feed-forward network is widen, GELU, narrow. Attention is that of lesson 5, with one change: queries, keys
# and values come from **one** layer, (b, t, e) to (b, t, 3e), side by side in this order. The layers are given, under
# the names that the course's loader expects; you write what happens between them.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `GPT2Block`** &nbsp; ★★☆ · 11 minutes · 4 points
#
# Write `attend` (split into q, k, v; heads; scaled scores; the triangle; softmax; values; `unify`) and `forward`.
# `split_heads(x, h)`, `merge_heads(x)` and `finished_gelu` are given. The check calls `forward` alone. Gradients must
# reach x and every parameter, x stays unchanged, and new tensors are created on its device.
#
# <details><summary>Hint 1: three from one</summary>
#
# `.chunk(3, dim=-1)` cuts the last axis into three. Each part is (b, t, e), and `split_heads` turns it into (b, h, t,
# d).
#
# </details>
# <details><summary>Hint 2: the triangle</summary>
#
# For t = 3 the positions that are hidden are (0, 1), (0, 2) and (1, 2): column j is hidden in row i where j > i. Their
# scores become −∞ before the softmax. `F.scaled_dot_product_attention` is allowed too, with `is_causal=True`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "GPT2Block", "locked": false, "schema_version": 3, "solution": true, "task": false}
class GPT2Block(nn.Module):
    """Attention and a network, with a norm before each and residual connections."""

    def __init__(self, config):
        super().__init__()
        e, self.h = config.e, config.h
        self.norm1 = nn.LayerNorm(e, eps=config.epsilon)
        self.attention = nn.ModuleDict({"to_qkv": FinishedConv1D(e, 3 * e),
                                        "unify": FinishedConv1D(e, e)})
        self.norm2 = nn.LayerNorm(e, eps=config.epsilon)
        self.feed_forward = nn.ModuleDict({"widen": FinishedConv1D(e, 4 * e),
                                           "narrow": FinishedConv1D(4 * e, e)})

    def attend(self, x):
        """Causal multi-head attention with self.attention.to_qkv and self.attention.unify.

        x: (b, t, e), normalised. Returns (b, t, e).
        """
        ### BEGIN SOLUTION
        t, e = x.shape[-2:]
        three = self.attention.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.h) for part in three)    # (b, h, t, d)
        scores = q @ k.transpose(-2, -1) / math.sqrt(e // self.h)    # (b, h, t, t)
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)
        return self.attention.unify(merge_heads(weights @ v))
        ### END SOLUTION

    def forward(self, x):
        """x: (b, t, e). Returns (b, t, e)."""
        ### BEGIN SOLUTION
        x = x + self.attend(self.norm1(x))
        hidden = finished_gelu(self.feed_forward.widen(self.norm2(x)))
        return x + self.feed_forward.narrow(hidden)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_GPT2Block", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(GPT2Block)

# %% [markdown]
# ## The whole model
#
# Before the blocks: a vector for each token plus a vector for each position, 0 to t − 1. After them: one norm, because
# nothing has normalised the last sum, and then the logits.
#
# GPT-2 has no separate matrix for the logits. It uses the **table of tokens once more**: the logit of token j is the
# dot product of the final vector with the embedding of token j, $\text{logits} = x\,W^\top$ with the table W of shape
# (n, e). The head is *tied* to the table ([tied weights](../../site/glossary.md#tied-weights), [Press and Wolf,
# 2017](https://aclanthology.org/E17-2025/)). This is the dot product of lesson 1 at the very end: which token is this
# vector most similar to?
#
# Hugging Face's config.json sets a dropout of a tenth at three places: on the sum of token and position, on the
# attention weights, and on what attention and the feed-forward network add (`embd_pdrop`, `attn_pdrop` and
# `resid_pdrop`). The code that OpenAI published has none. Here the weights are already trained, so your model has no
# dropout.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `GPT2`** &nbsp; ★★★ · 11 minutes · 4 points
#
# Make `tokens` and `positions` (`nn.Embedding`), `blocks` (each a `FinishedBlock(config)` of its own) and `norm`
# (`nn.LayerNorm` with config.epsilon), and use them in `forward`. The sizes are config.n, config.t_max, config.e and
# config.depth. The model has no other parameters: the output head is the weight of `tokens` itself, not a copy of it,
# and has no bias. (An nn.Linear that holds this very weight adds no parameter.) Gradients must reach every parameter,
# and new tensors are created on the device of the ids.
#
# <details><summary>Hint 1: the positions</summary>
#
# A window of 3 tokens needs the rows 0, 1 and 2 of `self.positions`, (3, e). They are added to (b, 3, e) by
# broadcasting.
#
# </details>
# <details><summary>Hint 2: the tied head</summary>
#
# With e = 2 and the table [[1, 0], [0, 1], [1, 1]] of three tokens, the final vector [2, 5] has the logits [2, 5, 7]:
# its dot products with the three rows.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "GPT2", "locked": false, "schema_version": 3, "solution": true, "task": false}
class GPT2(nn.Module):
    """Predicts the next token at every position."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        ### BEGIN SOLUTION
        self.tokens = nn.Embedding(config.n, config.e)
        self.positions = nn.Embedding(config.t_max, config.e)
        self.blocks = nn.ModuleList([FinishedBlock(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(config.e, eps=config.epsilon)
        ### END SOLUTION

    def forward(self, ids):
        """ids: (b, t), int64, t ≤ t_max. Returns logits (b, t, n)."""
        ### BEGIN SOLUTION
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(places)    # (b, t, e)
        for block in self.blocks:    # (b, t, e) -> (b, t, e), each of them
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_GPT2", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(GPT2)

# %% [markdown]
# ## Count it
#
# A layer from a to b has ab weights and b biases, a norm 2e. So a block has
#
# $$\underbrace{(3e^2 + 3e)}_{\text{qkv}} + \underbrace{(e^2 + e)}_{\text{unify}}
# + \underbrace{(4e^2 + 4e)}_{\text{widen}} + \underbrace{(4e^2 + e)}_{\text{narrow}}
# + \underbrace{4e}_{\text{two norms}} \;=\; 12e^2 + 13e,$$
#
# and the model $n e + t_\text{max}\, e + \text{depth}\,(12 e^2 + 13 e) + 2e$, because the head is tied. Compare this
# with your class, on PyTorch's `meta` device, where tensors have shapes but take no memory:

# %% tags=["nbval-check-output"]
def formula(c):
    return c.n * c.e + c.t_max * c.e + c.depth * (12 * c.e**2 + 13 * c.e) + 2 * c.e

for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"):
    config = Config.published(name)
    with torch.device("meta"):
        counted = sum(p.numel() for p in GPT2(config).parameters())
    print(f"{name:>12}: e = {config.e:>4}, {config.depth} blocks,"
          f" {formula(config):>13,} by formula, {counted:>13,} by count")

# %% [markdown]
# The paper says 117M, 345M, 762M and 1542M (its table 2); OpenAI has since noted [in the
# repository](https://github.com/openai/gpt-2) that the first counts were wrong. [Alammar's drawing of
# GPT-2](https://jalammar.github.io/illustrated-gpt2/) counts layer by layer and arrives at 124,410,624, which is 29,184
# too few. Two things were counted wrongly. Which?
#
# <details><summary>The answer, once you have one</summary>
#
# 29,184 = 12 · 2,304 + 1,536. In each of the 12 blocks the bias of the feed-forward network's first layer (published as
# `c_fc`) was counted as e = 768 instead of 4e = 3,072: 2,304 too few per block. And the last norm, 2 · 768 = 1,536, was
# left out.
#
# </details>

# %% tags=["hide-input"] mystnb={"image": {"alt": "Stacked horizontal bars, each from 0 to 100 per cent, for the pocket model and five published GPT-2s: shares of token table, position table, attention, feed-forward networks and norms. In distilgpt2 the token table is almost a half, in gpt2 almost a third; in the largest it is a twentieth, and feed-forward networks are almost two thirds. The norms are too few to see."}}
names = ["gpt2-xl", "gpt2-large", "gpt2-medium", "gpt2", "distilgpt2"]
configs = {name: Config.published(name) for name in names} | {"pocket": pocket.config}
colours = ["#cfe6f5", "#E69F00", "#0072B2", "#ffffff", "#000000"]
figure, ax = plt.subplots(figsize=(6, 3.4))
for row, (name, c) in enumerate(configs.items()):
    parts = {"token table": c.n * c.e, "position table": c.t_max * c.e,
             "attention": c.depth * (4 * c.e**2 + 4 * c.e),
             "feed-forward": c.depth * (8 * c.e**2 + 5 * c.e),
             "norms": (4 * c.depth + 2) * c.e}
    left = 0.0
    for k, (part, size) in enumerate(parts.items()):
        share = 100 * size / formula(c)
        ax.barh(row, share, left=left, color=colours[k], hatch=["", "..", "", "//", ""][k],
                edgecolor="#444444", linewidth=0.6, label=part if row == 0 else None)
        left += share
labels = [f"{name}\n{formula(c):,}" for name, c in configs.items()]
ax.set_yticks(range(len(configs)), labels)
ax.set(xlabel="share of the parameters (%)", xlim=(0, 100))
ax.grid(False)
figure.legend(loc="outside lower center", ncols=5, columnspacing=1, handlelength=1.2)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** There is a bar for each model, with its count under its name, divided by kind of parameter. The
# table of tokens grows with e and the blocks with e², so the larger the published model, the smaller the table's share.
# In all of them, feed-forward networks have twice the share of attention. Tying the head saves a second table of
# tokens.
#
# </div>
#
# ## The published names
#
# Now load the numbers into the model. The weights file is a table of contents and then bytes: names, shapes, numbers,
# and no code. (Older models on the Hub are pickles, which may contain code. `weights_only=True` lets PyTorch refuse
# that code; older versions of PyTorch could be tricked.) The names are not ours:

# %%
published = load_file(folder / "model.safetensors")
names = sorted(published)
for name in names[:12] + [name for name in names if not name.startswith("h.")]:
    print(f"{name:>24}  {tuple(published[name].shape)}")
print(f"{len(published)} tensors")

# %% [markdown]
# | published | ours | | published | ours |
# |---|---|---|---|---|
# | `wte` | `tokens` | | `h.3.attn.c_proj` | `blocks.3.attention.unify` |
# | `wpe` | `positions` | | `h.3.ln_2` | `blocks.3.norm2` |
# | `h.3.ln_1` | `blocks.3.norm1` | | `h.3.mlp.c_fc` | `blocks.3.feed_forward.widen` |
# | `h.3.attn.c_attn` | `blocks.3.attention.to_qkv` | | `h.3.mlp.c_proj` | `blocks.3.feed_forward.narrow` |
# | | | | `ln_f` | `norm` |
#
# each followed by `.weight` or `.bias`. Files also differ from one another, in three ways. Some were saved from a model
# with a head around it, and have **`transformer.`** before all these names. Older ones contain the mask itself, once
# for each block, as **`attn.bias`** and **`attn.masked_bias`**, which are not weights in spite of the name. And some
# contain **`lm_head.weight`**, always without the prefix: the table of tokens a second time.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `rename_weights`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return a new dict with the same tensors, or copies of them, under our names, without the masks and without the head,
# for files with and without the prefix. The caller's dict stays unchanged.
#
# <details><summary>Hint 1: a prefix and an ending</summary>
#
# `name.removeprefix("transformer.")` does nothing if there is no such prefix. `endswith` takes a tuple of endings. Do
# not drop `c_attn.bias`, which is a parameter: the masks end in `.attn.bias`, with a dot before `attn`.
#
# </details>
# <details><summary>Hint 2: pieces of names</summary>
#
# The keys of `OURS` below begin and end with a dot. `h.3.mlp.c_proj.bias` becomes `.h.3.mlp.c_proj.bias` first, with a
# dot in front; `.h.` and `.mlp.c_proj.` in it are replaced, which makes `.blocks.3.feed_forward.narrow.bias`; then the
# dot in front is removed.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "rename_weights", "locked": false, "schema_version": 3, "solution": true, "task": false}
OURS = {
    ".wte.": ".tokens.", ".wpe.": ".positions.", ".h.": ".blocks.", ".ln_f.": ".norm.",
    ".ln_1.": ".norm1.", ".attn.c_attn.": ".attention.to_qkv.",
    ".attn.c_proj.": ".attention.unify.", ".ln_2.": ".norm2.",
    ".mlp.c_fc.": ".feed_forward.widen.", ".mlp.c_proj.": ".feed_forward.narrow.",
}

def rename_weights(published):
    """The published tensors under our names: masks and head left out, prefix or not.

    published: dict from name to tensor. Returns a dict from name to tensor.
    """
    ### BEGIN SOLUTION
    renamed = {}
    for name, tensor in published.items():
        if name == "lm_head.weight" or name.endswith((".attn.bias", ".attn.masked_bias")):
            continue
        name = "." + name.removeprefix("transformer.")
        for theirs, ours in OURS.items():
            name = name.replace(theirs, ours)
        renamed[name[1:]] = tensor
    return renamed
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_rename_weights", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(rename_weights)

# %% [markdown]
# Now your model gets its weights. `load_state_dict` says what is missing and what is left over. With someone else's
# file, read that whole list before you trust the model.

# %% tags=["nbval-check-output"]
mine = GPT2(pocket.config).to(device()).eval()
told = mine.load_state_dict(rename_weights(published), strict=False)
left = [name for name in told.missing_keys if not name.startswith("head")]
print("missing:", left, " unexpected:", told.unexpected_keys)

# %% [markdown]
# **Your model writes.** Lesson 9's `generate` needs nothing of a model but its logits, and the length of its window:

# %%
from helpers.parts.generator import generate as finished_generate

mine.t_max = pocket.config.t_max
begun = ids_of("def __init__(self,")
drawn = finished_generate(mine, begun, 60, temperature=0.8, top_p=0.9,
                          generator=torch.Generator(device()).manual_seed(2))
print(tokenizer.decode(torch.cat([begun, drawn], dim=1)[0]))

# %% [markdown]
# **With nn.Linear instead.** Most programs have no Conv1D. They use nn.Linear instead and transpose the weights on
# loading. The function in the next cell does that for a whole file. A model loads its result without an error, and
# writes nonsense.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `for_linear`** &nbsp; fix · ★★☆ · 6 minutes · 2.5 points
#
# `shapes` has, for each published name, the shape of that tensor in the model with nn.Linear. Find the matrix that is
# wrong in every block of the result, and fix the function for models of every size. Tables, norms and biases stay as
# they were published. The caller's dict and its tensors stay unchanged.
#
# <details><summary>Hint 1: which one</summary>
#
# Print the names of the tensors that the function transposes, and compare them with the four layers of a block:
# `c_attn`, `attn.c_proj`, `c_fc`, `mlp.c_proj`.
#
# </details>
# <details><summary>Hint 2: three tensors</summary>
#
# With e = 3 and n = 3, `wte.weight` and `h.0.attn.c_proj.weight` are both (3, 3), also in `shapes`. The first must not
# be transposed, the second must be. `h.0.mlp.c_fc.weight` is (3, 12), and (12, 3) in `shapes`. What distinguishes the
# first two?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "for_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def for_linear(published, shapes):
    """The published tensors for a model that has nn.Linear in place of Conv1D.

    published: dict from name to tensor, without a prefix. shapes: dict from name to shape.
    Returns a dict from name to tensor.
    """
    turned = {}
    for name, tensor in published.items():
        ### BEGIN SOLUTION
        if ".c_" in name and name.endswith(".weight"):    # of a Conv1D: (n_in, n_out)
            tensor = tensor.T
        ### STUDENT GETS
        # if tensor.shape != shapes[name]:    # of a Conv1D: (n_in, n_out)
        #     tensor = tensor.T
        ### END SOLUTION
        turned[name] = tensor
    return turned

# %% nbgrader={"grade": true, "grade_id": "check_for_linear", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(for_linear)

# %% [markdown]
# <details><summary>What was wrong in it</summary>
#
# Shapes reveal the mistake in all layers but one: the matrix after the heads is (e, e), and its transpose fits as well.
# minGPT's loader therefore goes [by a list of names](https://github.com/karpathy/minGPT/blob/master/mingpt/model.py).
#
# </details>
#
# ## The same numbers as `transformers`
#
# How do you know that a model is right? Reading its text is not enough. You compare its numbers with those of another
# program. Most people use Hugging Face's [`transformers`](https://huggingface.co/docs/transformers). It is not part of
# this course, so its results were **recorded**: `transformers` loaded the pocket folder and read one sentence, and
# every vector on the way was written to a file. (With `transformers` installed you can record it anew; the command is
# printed below.) **Hooks**, functions that PyTorch calls whenever a layer is called, collect the vectors of your model.

# %%
@torch.no_grad()
def stages(model, ids):
    """Every vector on the way: embeddings, after each block, after the norm, logits."""
    found, hooks = [], []
    layers = [*model.blocks, model.norm]
    hooks.append(layers[0].register_forward_pre_hook(lambda m, x: found.append(x[0])))
    hooks += [m.register_forward_hook(lambda m, x, y: found.append(y)) for m in layers]
    found.append(model(ids))
    for hook in hooks:
        hook.remove()
    return [stage.float().cpu() for stage in found]

def exact_gelu(model):
    for each in model.blocks:
        layers = each.feed_forward
        each.feed_forward = nn.Sequential(layers.widen, nn.GELU(), layers.narrow)

@torch.no_grad()
def transposed(model):
    for each in model.blocks:
        each.attention.unify.weight.copy_(each.attention.unify.weight.T.clone())

@torch.no_grad()
def from_one(model):
    model.positions.weight.copy_(model.positions.weight.roll(-1, dims=0))

def changed(change):
    """The finished pocket model with one thing changed."""
    model = finished_gpt2.load(folder, device())
    change(model)
    return model

# %% tags=["hide-input"] mystnb={"image": {"alt": "Largest difference from the reference at each stage of the model, logarithmic. Yours is nothing at the embedding and between one millionth and one ten-thousandth after it. With the exact GELU the difference is a few hundred times as large from block 0 on. With transposed unify matrices, and with positions that start at 1, it is of the size of the numbers themselves."}}
known = reference(folder)
models = {"yours": mine, "exact GELU": changed(exact_gelu),
          "unify transposed": changed(transposed), "positions from 1": changed(from_one)}
names = ["embed", *(f"block {k}" for k in range(len(pocket.blocks))), "norm", "logits"]
lines = {}
for name, model in models.items():
    pairs = zip(stages(model, known.ids.to(device())), known.stages)
    apart = [max((a - b).abs().max().item(), 1e-9) for a, b in pairs]
    lines[name] = (range(len(names)), apart)
figure, ax = plt.subplots(figsize=(6, 3.8))
plots.curves(lines, "", "largest difference", log="y", ax=ax)
ax.set_xticks(range(len(names)), names, rotation=40, ha="right")
ax.set_ylim(1e-10, 1e5)    # room for the legend
ax.legend(ncols=2, loc="upper left")
plt.show()
print(known.told)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The stages of the model from left to right, and at each the largest difference of a component from
# the reference. (If there is none at all, the mark is at 10⁻⁹.) Your numbers differ only by the rounding of 32-bit
# arithmetic. The other three lines are models with one error each; none raises an exception.
#
# </div>
#
# Look at the *stage* where a line parts from yours: that is where the error is. Positions that start at 1 are wrong
# from the embeddings on. With transposed matrices everything is right up to the first block. That is how to find a bug
# in a 48-block model: first the stage that differs, then the line.
#
# ## Surprise, once more
#
# Lesson 9 measured a model in bits per byte. For token models the usual measure is the **perplexity**: the exponential
# of the mean cross-entropy of the next token,
#
# $$\text{perplexity} \;=\; \exp\!\Big(-\frac{1}{N-1} \sum_{i=1}^{N-1} \log p(x_i \mid x_0 \ldots x_{i-1})\Big).$$
#
# The text has N tokens, numbered from 0. A model that gives all n tokens of the vocabulary the same probability has
# perplexity n. Perplexity depends on the tokenizer, so only models with the same one can be compared (lesson 11).

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `perplexity`** &nbsp; ★★☆ · 6 minutes · 2 points
#
# Return the perplexity of a model on one text that fits into its window. The first token is never predicted, and the
# prediction after the last token is never checked. New tensors are created on the device of the ids.
#
# <details><summary>Hint 1: inputs and targets</summary>
#
# As in lesson 5: from the text [5, 2, 7, 7] the model reads [5, 2, 7] and has to predict [2, 7, 7]. It reads a batch,
# here of shape (1, 3), and returns logits (1, 3, n).
#
# </details>
# <details><summary>Hint 2: which mean</summary>
#
# Two predictions with probabilities 1/2 and 1/8 have surprises of ln 2 and ln 8 nats. Their mean is ln 4, and the
# perplexity is 4; the mean of 2 and 8 would be 5.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "perplexity", "locked": false, "schema_version": 3, "solution": true, "task": false}
@torch.no_grad()
def perplexity(model, ids):
    """How many equally likely tokens the model hesitates between, on the (geometric) mean.

    model: (b, t) -> logits (b, t, n). ids: (length,), int64, 2 tokens or more.
    Returns one number, a tensor of shape () or a float.
    """
    ### BEGIN SOLUTION
    inputs, targets = ids[:-1], ids[1:]
    logits = model(inputs.unsqueeze(0))[0]    # (t, n)
    return F.cross_entropy(logits, targets).exp()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_perplexity", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(perplexity)

# %% [markdown]
# A GPT-2 with fresh weights should have a perplexity of about n; if not, something is wrong before training begins.
# Hugging Face's GPT-2 starts with weights from N(0, 0.02); OpenAI's own code uses 0.01 for the table of positions.
# Layers that write to the residual stream start smaller by a factor of √(2 · depth), because 2 · depth of them are
# added up ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf), section
# 2.3). Perplexity is measured here on the first windows of 16 modules of the standard library that the pocket model was
# not trained on.

# %%
t_max = pocket.config.t_max
starts = [tokenizer.encode(text[:6 * t_max])[:t_max]
          for name, text in stdlib_sources().items() if is_held_out(name)]
held_out = torch.tensor([ids for ids in starts if len(ids) == t_max][:16], device=device())

@torch.no_grad()
def on_held_out(model):
    """The loss in nats per token over all the held-out windows."""
    logits = model(held_out[:, :-1]).transpose(1, 2)    # (b, n, t)
    return F.cross_entropy(logits, held_out[:, 1:]).item()

torch.manual_seed(0)
fresh = finished_gpt2.GPT2(pocket.config).to(device()).eval()
print(f"{len(held_out)} windows of {t_max} tokens, n = {pocket.config.n:,}")
for name, model in (("fresh weights", fresh), ("pocket model", mine)):
    nats = on_held_out(model)
    texts = "".join(tokenizer.decode(ids[1:]) for ids in held_out)    # what was predicted
    bits = bits_per_byte_of(nats, held_out[:, 1:].numel(), texts)
    print(f"{name}: perplexity {math.exp(nats):,.1f}, {bits:.2f} bits per byte")

run = recorded("pocket_gpt2")
result, data = run["result"], run["data"]
print(f"\nThe training, as recorded: {data['name']}, {data['training_tokens']:,} tokens,"
      f"\n{run['seconds']:.0f} s on {run['machine']}: {run['command']}")
print(f"on all {data['held_out_tokens']:,} held-out tokens: perplexity"
      f" {result['held_out_perplexity']:.1f},"
      f" {result['held_out_bits_per_byte']:.2f} bits per byte")

# %% [markdown]
# These windows are harder than the held-out text as a whole: their first tokens have little context, while nearly every
# token of the recorded number had at least half a window before it. Bits per byte is also the unit of lesson 9, but the
# text there is another.
#
# ## What an error costs
#
# The models below have one error each; you have met each of them in this course. Since we have the weights, we can
# measure each error's cost on the held-out windows.

# %% [markdown]
# <div class="card">
#
# **Prediction · `dearest_error`** &nbsp; 1 minute · no points
#
# Which one raises the loss on held-out text the most?
#
# - **A.** The scores are not divided by √d.
# - **B.** There is no causal mask.
# - **C.** The matrices after the heads, `unify`, are transposed.
# - **D.** The norm before the logits is left out.
# </div>

# %% nbgrader={"grade": false, "grade_id": "dearest_error", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
dearest_error = "D"
### STUDENT GETS
# dearest_error = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %%
class OtherAttention(nn.Module):
    """The attention of a block, with its scaling and its mask left in or out."""

    def __init__(self, layer, scale, causal):
        super().__init__()
        self.layer, self.scale, self.causal = layer, scale, causal

    def forward(self, x, past=None):
        three = self.layer.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.layer.h) for part in three)
        scale = 1 / math.sqrt(q.shape[-1]) if self.scale else 1.0
        out = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=scale)
        return self.layer.unify(merge_heads(out))

def attention_with(scale, causal):
    def change(model):
        for each in model.blocks:
            each.attention = OtherAttention(each.attention, scale, causal)
    return change

def no_final_norm(model):
    model.norm = nn.Identity()

errors = {"as published": lambda model: None, "exact GELU": exact_gelu,
          "positions from 1": from_one,
          "not scaled": attention_with(scale=False, causal=True),
          "no mask": attention_with(scale=True, causal=False),
          "unify transposed": transposed, "no final norm": no_final_norm}
costs = {name: on_held_out(changed(change)) for name, change in errors.items()}
for name, nats in costs.items():
    print(f"{name:>18}: {nats:8.3f} nats per token")

# %% nbgrader={"grade": true, "grade_id": "check_dearest_error", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("dearest_error", dearest_error)

# %% [markdown]
# Look at the row *no mask*. There the position that has to predict a token also sees it, so the number is not a valid
# loss, and nothing warns you. Small differences do not mean that a model is right: the exact GELU does not show in this
# table, and positions from 1 cost little. The comparison by stages, above, finds them at once.
#
# ## Generating with a key-value cache
#
# Your model writes as in lesson 9: it computes logits at the last position, chooses a token, and repeats with a
# sequence longer by one. But look at what it computes on the way. To add token 200 it sends 199 tokens through every
# block, and it has already done that for the first 198.
#
# The causal mask makes this unnecessary. Position i looks only at positions up to i, so nothing that comes later ever
# changes its keys and values, in any block. They can be kept. A new token needs *its* query, key and value, and the
# **kept keys and values** of all tokens before it. [Shazeer (2019)](https://arxiv.org/abs/1911.02150), section 2.4,
# calls it incremental generation; the usual name is [key-value cache](../../site/glossary.md#key-value-cache), or KV
# cache.

# %%
plots.diagrams.cache_growing()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The passes of the model, one below the other. The first reads the whole prompt; each later pass
# reads one token, whose single query looks at all keys. Blue is computed in the pass, grey was kept.
#
# </div>

# %% tags=["nbval-check-output"]
block, past = pocket.blocks[0], LayerCache(size=7)
x = torch.randn(1, 7, pocket.config.e, device=device())
with torch.no_grad():
    whole = block(x)
    six, seventh = block(x[:, :6], past), block(x[:, 6:], past)
print("six and then one are the same as seven:",
      torch.allclose(torch.cat([six, seventh], dim=1), whole, atol=1e-4))
print("kept by now:", past.length, "positions")

# %% [markdown]
# The finished block takes such a cache as its second argument and appends the keys and values of its input. But it does
# not know the new token's **position in the text**: the position vectors are added before the blocks. `model.embed(ids,
# start)` returns the vectors of tokens at positions start, start + 1, …

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `generate_cached`** &nbsp; ★★★ · 10 minutes · 3.5 points
#
# Continue a text greedily, each time with the most probable token. First the whole prompt goes through the blocks, then
# each new token alone, at its own position, so every token goes through the model at most once. The prompt may also go
# through in parts, and the last new token may be read, too. Return the new tokens without the prompt. `cache.layers[k]`
# is the part of the cache that block k takes as its second argument; `cache.length` is how many positions have been
# read. New tensors are created on the device of the ids.
#
# <details><summary>Hint 1: one round</summary>
#
# Embed the new tokens at their positions; send them through each block with the block's own part of the cache. What the
# model of exercise 3 does after the blocks is needed only for the last position.
#
# </details>
# <details><summary>Hint 2: three rounds</summary>
#
# Take two prompts of 5 tokens, and 3 new tokens. The first round reads (2, 5) at positions 0 to 4, the second (2, 1) at
# position 5, the third (2, 1) at position 6. The last new token is returned but never read.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "generate_cached", "locked": false, "schema_version": 3, "solution": true, "task": false}
@torch.no_grad()
def generate_cached(model, ids, count):
    """Continue a text, always with the most probable token.

    model: a finished GPT2, with embed, blocks (called as block(x, past)), norm and tokens.
    ids: (b, t). count: how many new tokens, at least 1, t + count ≤ t_max.
    Returns (b, count), int64.
    """
    cache = KeyValueCache(model.config.depth, ids.shape[1] + count)
    ### BEGIN SOLUTION
    new, chosen = ids, []
    for step in range(count):
        x = model.embed(new, cache.length)
        for block, past in zip(model.blocks, cache.layers):
            x = block(x, past)
        logits = model.norm(x[:, -1]) @ model.tokens.weight.T    # (b, n)
        new = logits.argmax(dim=-1, keepdim=True)
        chosen.append(new)
    return torch.cat(chosen, dim=1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_generate_cached", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(generate_cached)

# %% tags=["hide-input"]
prompt = ids_of("def __init__(self,")
count = 100
watch = [time.perf_counter()]
kept = generate_cached(pocket, prompt, count)
watch.append(time.perf_counter())
anew = finished_gpt2.generate(pocket, prompt, count, temperature=0)
watch.append(time.perf_counter())
written = tokenizer.decode(torch.cat([prompt, kept], dim=1)[0])
print(written)
print(f"the same tokens without a cache: {torch.equal(kept, anew)}")
with_it, without = watch[1] - watch[0], watch[2] - watch[1]
print(f"{count} tokens: {with_it:.2f} s with a cache, {without:.2f} s without,"
      f" {without / with_it:.1f} times as long")

# %% [markdown]
# Greedy text repeats itself, as in lesson 9. The last line says how much time the cache saves. The pocket model is so
# small that most of its time goes into calling its layers. At the size of the smallest published GPT-2, and after more
# tokens, the cache saves far more:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Seconds for one more token against the length of the text so far. Without a cache the time grows steadily with the length; with a cache it stays nearly level, many times lower at the right end."}}
run = recorded("gpt2_cache")
lengths = [point["length"] for point in run["curve"]]
lines = {name: (lengths, [point[key] for point in run["curve"]])
         for name, key in (("without a cache", "plain"), ("with a cache", "cached"))}
plots.curves(lines, "tokens so far", "processor seconds for one more token")
plt.ylim(bottom=0)
plt.show()
end = run["curve"][-1]
plain, kept = end["plain"], end["cached"]
print(f"after {end['length']} tokens: {plain:.2f} s without a cache, {kept:.3f} s with one,"
      f" {plain / kept:.0f} times as fast")
print(f"{run['machine']}, one of them used\n{run['command']}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, not run here: the time of one core for one more token, against the number of tokens so
# far, for a GPT-2 of the smallest published size with random weights. Without a cache the work grows with the length.
# With it, only one token goes through the blocks, and only its row of scores grows.
#
# </div>
#
# The price is memory: two vectors of width e for each token in every block. For 1,024 tokens of the smallest GPT-2
# these are 2 · 1024 · 768 · 12 numbers, 75 MB in 32 bits, for one text. This is one reason why long contexts are
# expensive.
#
# ## What the heads look at
#
# Nothing in the training says what a head should look at. Yet some kinds of head have been found in one language model
# after another:
#
# - heads that look at the **previous token**;
# - heads that look at the **first token**, whatever it is. A softmax has to put its weight somewhere, even if the head
#   finds nothing useful ([Vig and Belinkov, 2019](https://aclanthology.org/W19-4808/), found it in GPT-2; [Xiao et al.,
#   2024](https://arxiv.org/abs/2309.17453), call it an *attention sink*);
# - **induction heads**: at the second "A" of "A B … A" they look at the B, which came after the first A, and so can
#   copy it ([Olsson et al.,
#   2022](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html)).
#
# An induction head needs help. The key of B has to say that an A came before it, but B's embedding does not contain
# that. A previous-token head in an earlier block adds it. So it takes two layers of attention to copy.

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `induction_score`** &nbsp; ★★☆ · 6 minutes · 2 points
#
# A text repeats after `period` tokens: token i equals token i − period. An induction head at position i looks at the
# token that followed that earlier copy. Return the mean of these weights over all positions whose token has come
# before, one number for each map. New tensors are created on the device of the weights.
#
# <details><summary>Hint 1: which entry of each row</summary>
#
# In A B C A B C the period is 3. Position 3 has the second A and looks at the B, position 1; position 4 looks at
# position 2, and position 5 at position 3. The score is the mean of the entries (3, 1), (4, 2) and (5, 3).
#
# </details>
# <details><summary>Hint 2: without a loop</summary>
#
# The text A B A B has the period 2, and the entries (2, 1) and (3, 2) count. `weights.diagonal(-1, -2, -1)`, along the
# last two axes, gives the entries (1, 0), (2, 1) and (3, 2). Which token is at position 1, and has it come before?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "induction_score", "locked": false, "schema_version": 3, "solution": true, "task": false}
def induction_score(weights, period):
    """How much each head looks at what followed the same token before.

    weights: (..., t, t), of a text that repeats after `period` tokens. period: from 2 to
    t − 1. Returns (...).
    """
    ### BEGIN SOLUTION
    return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(dim=-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_induction_score", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(induction_score)

# %% [markdown]
# Induction is measured on random tokens that come twice: such a text offers no other clue. The other two kinds are
# measured on held-out code.

# %% mystnb={"image": {"alt": "Three heat maps, block by head, from 0 to 1: mean weight on the previous token, on the first token, and on what followed the same token before. One head of block 0 puts all its weight on the previous token. Two heads of block 2 put about half on the first. One head of block 1 and most heads of blocks 2 and 3 are high in the third map."}}
chance = torch.Generator().manual_seed(3)
once = torch.randint(pocket.config.n - 1, (8, 24), generator=chance).to(device())
twice = torch.cat([once, once], dim=1)                            # (8, 48)
on_code = pocket.attention_weights(held_out[:8]).mean(dim=1)      # (depth, h, t, t)
on_twice = pocket.attention_weights(twice).mean(dim=1)
kinds = {"previous token": finished_gpt2.previous_score(on_code),
         "first token": finished_gpt2.first_score(on_code),
         "induction": induction_score(on_twice, 24)}              # each (depth, h)

def strongest(score):
    """(block, head) of the largest score."""
    return divmod(int(score.argmax()), score.shape[1])

depth, h = pocket.config.depth, pocket.config.h
figure, axes = plt.subplots(1, 3, figsize=(6, 2.6), layout="compressed")
for ax, (kind, score) in zip(axes, kinds.items()):
    plots.heat(score.cpu(), range(depth), range(h), scale=1, digits=1, title=kind,
               row_label="block" if ax is axes[0] else "", column_label="head", ax=ax)
plt.show()
for kind, score in kinds.items():
    block, head = strongest(score)
    print(f"{kind:>15}: block {block}, head {head} with {score[block, head]:.2f}")
even = induction_score(finished_gpt2.even_weights(48), 24)
print(f"even weights would have an induction score of {even:.3f};"
      f" {int((kinds['induction'] > 10 * even).sum())} heads have ten times that")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** There is a row for each block and a column for each head, both counted from 0. The number is a
# mean weight: 1 means all of the weight.
#
# </div>
#
# These heads were learned, with some help: in half of the training windows at first, and in fewer later, a stretch was
# repeated on purpose, sometimes a stretch of random tokens. In large models trained on ordinary text they form by
# themselves, early and within a short span of the training ([Olsson et al.,
# 2022](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html)). Here is what the
# strongest heads of two kinds do on a line of code that comes twice:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two triangles of attention weights over a short piece of code that comes twice. In the first, a previous-token head, the weight is just below the diagonal. In the second, an induction head, much of the weight of the second copy is on a parallel further down, one place after the first copy of the same token, and the rest in the column of the first token."}}
line = ids_of("x = spam(eggs)\n" * 2)
maps = pocket.attention_weights(line)[:, 0]    # (depth, h, t, t)
chosen = [strongest(kinds[kind]) for kind in ("previous token", "induction")]
plots.head_grid(torch.stack([maps[i, j] for i, j in chosen]).cpu(),
                [tokenizer.token(i) for i in line[0]], across=2, annotate=False,
                titles=[f"block {i}, head {j}" for i, j in chosen])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i shows what token i looks at. Left: the previous token. Right: in six of the ten rows of the
# second half, the largest weight is on the token that followed the first copy; in the others it is on the first token
# of the text.
#
# </div>
#
# A score says only where a head looks. To find out what it *does*, switch it off: set its output to zero, and look at
# the loss on random tokens, the first time that they come and the second.

# %% [markdown]
# <div class="card">
#
# **Prediction · `switched_off_head`** &nbsp; 1 minute · no points
#
# You switch off one head of the model. Which of the two raises the loss more where tokens come a second time?
#
# - **A.** The head with the highest induction score: it is the one that copies.
# - **B.** The head with the highest previous-token score, though it is in an early block and copies nothing.
# - **C.** Neither: one head more or less makes no difference.
# </div>

# %% nbgrader={"grade": false, "grade_id": "switched_off_head", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
switched_off_head = "B"
### STUDENT GETS
# switched_off_head = ...    # "A", "B" or "C"
### END SOLUTION

# %%
@torch.no_grad()
def losses_on(tokens):
    """Mean loss in nats the first time and the second time that the tokens come."""
    logits = pocket(tokens[:, :-1]).transpose(1, 2)
    losses = F.cross_entropy(logits, tokens[:, 1:], reduction="none")
    return losses[:, :23].mean().item(), losses[:, 24:].mean().item()

copying = [divmod(int(k), h) for k in (kinds["induction"] > 10 * even).flatten().nonzero()]
switched = {"none": [], "strongest induction head": [strongest(kinds["induction"])],
            "strongest previous-token head": [strongest(kinds["previous token"])],
            "all induction heads": copying}
print(f"{'switched off':>30}   first time   second time")
for name, heads in switched.items():
    with finished_gpt2.switched_off(pocket, *heads):
        first, second = losses_on(twice)
    print(f"{name:>30} {first:10.2f} {second:12.2f}")

single = {}    # the loss the second time, with one head off
for one in [(i, j) for i in range(depth) for j in range(h)]:
    with finished_gpt2.switched_off(pocket, one):
        single[one] = losses_on(twice)[1]
dearest = sorted(single, key=single.get)[:-4:-1]
print("the dearest single heads, (block, head):",
      ", ".join(f"{one} {single[one]:.2f}" for one in dearest))

# %% nbgrader={"grade": true, "grade_id": "check_switched_off_head", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("switched_off_head", switched_off_head)

# %% [markdown]
# The first time, random tokens cannot be predicted; the loss is above log n, because the model expects code. The second
# time they can be copied. Several heads do that, so the model hardly needs any one of them. But all of them depend on
# two heads in block 0: see the last line. Head (0, 1) is the previous-token head, which passes on what came before.
# Head (0, 5) matters even more. It puts nearly all of its weight on its own position (not shown); why that matters so
# much, this experiment does not say.
#
# In published models more kinds of head have been found, and finding out what they do has become a field of its own,
# *mechanistic interpretability*. You can try it on the pocket model, which has only a few megabytes.

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("pocket")

# %% [markdown]
# ## The real one
#
# Everything that you wrote works for the published models; only the numbers in config.json are larger. Two things are
# kept apart here: what has been published about them, which every reader sees, and what only you can see, once their
# weights are on your machine.
#
# **Published.** The paper tests the four sizes on several data sets without training on any of them ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf), table
# 3):

# %% tags=["hide-input"] mystnb={"image": {"alt": "Perplexity against millions of parameters, both axes logarithmic, for two data sets. Both lines fall from left to right: Penn Treebank from 66 to 36, WikiText-103 from 38 to 17."}}
sets = ("WikiText-103", "Penn Treebank", "enwik8")
table_3 = {"gpt2": (37.50, 65.85, 1.16), "gpt2-medium": (26.37, 47.33, 1.01),
           "gpt2-large": (22.05, 40.31, 0.97), "gpt2-xl": (17.48, 35.76, 0.93),
           "best before": (18.3, 46.54, 0.99)}
sizes = [formula(Config.published(name)) / 1e6 for name in list(table_3)[:4]]
figure, ax = plt.subplots(figsize=(6, 3.4))
plots.curves({name: (sizes, [row[k] for row in list(table_3.values())[:4]])
              for k, name in enumerate(sets[:2])}, "parameters (millions)",
             "perplexity", log="xy", ax=ax)
ax.set_xticks(sizes, [f"{size:.0f}" for size in sizes])
ax.set_yticks([20, 30, 40, 60], ["20", "30", "40", "60"])
ax.minorticks_off()
plt.show()
print(f"{'':>12}" + "".join(f"{name:>15}" for name in sets))
for name, row in table_3.items():
    print(f"{name:>12}" + "".join(f"{value:>15.2f}" for value in row))
english = recorded("gpt2_tokens")["result"]["sentences"]["English"]
print(f"\nfive sentences of English: {sum(english)} tokens in GPT-2's vocabulary of 50,257,"
      f"\n{sum(len(tokenizer.encode(text)) for text in SENTENCES['English'])} in the pocket"
      f" model's of {len(tokenizer):,}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From the paper, not run here: perplexity against size, both axes logarithmic; lower is better.
# enwik8 is in bits per byte. The last row of the table is the best result before GPT-2, by models that were trained on
# these data sets. The 35 tokens were counted once, with OpenAI's vocabulary; the 65 are counted in the cell.
#
# </div>
#
# The paper divides by the words of a data set, not by GPT-2's tokens (section 3.1; [an author confirms
# it](https://github.com/openai/gpt-2/issues/78)). Your `perplexity` divides by tokens, which are more than the words,
# so its values are lower: for the smallest model on the test set of WikiText, two programs gave 29.94 by tokens and
# 37.37 by words ([transformers, issue 13761](https://github.com/huggingface/transformers/issues/13761)). The table has
# 37.50 for WikiText-103; its 29.41 for WikiText-2, whose test set is the same text, fits the count by tokens, so it is
# left out here.
#
# What does it write? The most probable continuation of *I enjoy walking with my cute dog*, 40 tokens from the smallest
# model, was published by Patrick von Platen ([How to generate text,
# 2020](https://huggingface.co/blog/how-to-generate)):
#
# > , but I'm not sure if I'll ever be able to walk with my dog. I'm not sure if I'll ever be able to walk with my dog.
# >
# > I'm not sure
#
# And its heads? [Wang et al., 2022](https://arxiv.org/abs/2211.00593), name previous-token heads, (2, 2) and (4, 11),
# and induction heads, (5, 5) and (6, 9), block and head, among the 26 with which the smallest model completes sentences
# such as *When Mary and John went to the store, John gave a drink to* (figure 2).
#
# **Yours to see.** The next two cells do the same with your own `GPT2` and your own `rename_weights`. The first looks
# for the smallest GPT-2 **by name**, in the data folder, then on the Hub (about 550 MB, once; `make data ARGS=gpt2`).
# If it is in neither place, as on the course's pages, it takes the pocket model and says so: the text is then Python,
# and the heads are the pocket model's. All cells above use the pocket model in any case.

# %%
real = gpt2_files("gpt2", say=lambda line: print(textwrap.fill(line, 88)))
is_real = real.taken.place != "embedded"
cutter = Tokenizer.from_folder(real.folder)
model = finished_gpt2.load(real.folder, device())    # for its heads, below
own = GPT2(model.config).to(device()).eval()
stored = load_file(real.folder / "model.safetensors")
stored = {name.removeprefix("transformer."): w for name, w in stored.items()}
own.load_state_dict(rename_weights(stored), strict=False)
own.t_max = model.config.t_max
prompt = "I enjoy walking with my cute dog" if is_real else "def read(path):\n"
begun = torch.tensor([cutter.encode(prompt)], device=device())
chance = torch.Generator(device()).manual_seed(1)
for temperature in (0, 0.8):
    drawn = finished_generate(own, begun, 40, temperature, top_k=40, generator=chance)
    print(f"\ntemperature {temperature}:\n{prompt}{cutter.decode(drawn[0])}")

# %% tags=["hide-input"]
seeded = torch.Generator().manual_seed(3)
once_more = torch.randint(len(cutter) - 1, (4, 24), generator=seeded).to(device())
weights = model.attention_weights(torch.cat([once_more, once_more], dim=1)).mean(dim=1)
depth, h = weights.shape[:2]
found = {"previous token": finished_gpt2.previous_score(weights),
         "induction": induction_score(weights, 24)}    # each (depth, h)
named = {"previous token": [(2, 2), (4, 11)], "induction": [(5, 5), (6, 9)]}
print("mean weights on random tokens that come twice:")
for kind, score in found.items():
    block, head = strongest(score)
    line = f"strongest head block {block}, head {head} with {score[block, head]:.2f}"
    if is_real and depth == 12:    # the smallest size
        line += "".join(f"; ({i}, {j}) {score[i, j]:.2f}" for i, j in named[kind])
    print(f"{kind:>15}: {line}")

# %% [markdown]
# With the published weights, we expect the text above at temperature 0, word for word, and the four heads among the
# strongest; neither was run here. Replace "gpt2" by
# "gpt2-medium" or "distilgpt2" to meet the others.
#
# ## What you can do now
#
# You can build GPT-2 and count its parameters on paper; translate a published weights file name by name; show, stage by
# stage, that your model computes the published one; measure what an error costs; generate with a cache, and explain why
# the causal mask makes that possible; and find out what a head does by switching it off.
#
# **Three questions to think about**
#
# <details><summary>1. The window is full, and the oldest token drops out. Can the cache be kept?</summary>
#
# No. Without the oldest token all the others move forward by one position, and learned position vectors were added
# before the blocks: all keys and values are now wrong. You have to recompute the window, or give up absolute positions.
# With rotary positions (lesson 6) only differences count, so the kept keys may stay. But in published rotary models the
# text falls apart as soon as the *first* tokens leave the cache: many heads rest on them, the attention sinks of this
# lesson ([Xiao et al., 2024](https://arxiv.org/abs/2309.17453), section 3.1). Keeping the first few tokens repairs it.
#
# </details>
# <details><summary>2. The same vector is a token's input and decides when it is predicted. Is that wise?</summary>
#
# It ties two jobs together: "what follows from this token" and "what leads to this token". After "Los" comes "Angeles",
# not "Los". Yet without the blocks in between, a tied model would mostly predict each token again, because a vector is
# usually most similar to itself. The blocks have to turn one into the other. In the smallest GPT-2 tying saves a
# quarter of the parameters, 38.6 of 163.0 million, and in earlier language models it also lowered the perplexity
# ([Press and Wolf, 2017](https://aclanthology.org/E17-2025/)); large models often have two tables.
#
# </details>
# <details><summary>3. How would you turn GPT-2 into a classifier?</summary>
#
# Read the whole text, take the hidden state at the **last** position, the only one that has seen all of it, and put a
# linear layer on it (`GPT2ForSequenceClassification` in `transformers` does that). Then continue training with a small
# learning rate. GPT-2's predecessor was built for this ([Radford et al.,
# 2018](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf), section 3.2):
# pre-train, then fine-tune, with the language model's loss added at half weight. GPT-2's own answer: put the question
# in the prompt and train nothing.
#
# </details>
#
# **Further reading**
#
# - **A. Radford et al., ["Language models are unsupervised multitask
#   learners"](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf),
#   2019**, sections 2.1 to 2.3 for the model, table 3 for what it does without training.
# - C. Olsson et al., ["In-context learning and induction
#   heads"](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html), *Transformer
#   Circuits Thread*, 2022.
# - O. Press and L. Wolf, ["Using the output embedding to improve language models"](https://aclanthology.org/E17-2025/),
#   *EACL* 2017.
# - D. Hendrycks and K. Gimpel, ["Gaussian error linear units"](https://arxiv.org/abs/1606.08415), 2016, section 2.
# - N. Shazeer, ["Fast transformer decoding: one write-head is all you need"](https://arxiv.org/abs/1911.02150), 2019,
#   section 2.4.
# - J. Vig and Y. Belinkov, ["Analyzing the structure of attention in a transformer language
#   model"](https://aclanthology.org/W19-4808/), *BlackboxNLP* 2019.
# - G. Xiao et al., ["Efficient streaming language models with attention sinks"](https://arxiv.org/abs/2309.17453),
#   *ICLR* 2024, section 3.1.
#
# You have come from a dot product to GPT-2. The next lesson looks back: what was attention invented for?
#
# **Next:** [lesson 13, *Before transformers*](../13_before_transformers/13_before_transformers.ipynb)
