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
# > Mr. Darcy was much more pressing. He was in the first place, to look forward, and while he had so much danger of her
# > friend's conduct; but he could not press to the bitterness in her thoughts than the happiest.
#
# The first two words were given; a program wrote the rest. It had opened a folder of four files: two say how to cut
# a text into tokens, one says how large the model is, and one holds the weights. None of them is a program. **What
# do you have to write so that such a folder continues a text, and how do you know that you have written it right?**
#
# You write this program, compare it with another one, make it faster, and find heads that it needs.
#
# | | |
# |---|---|
# | **You will build** | GPT-2, the translation of its published weights, generation with a cache, and a score that finds heads; and you fix a converter |
# | **You need** | lessons [4](../04_multi_head/04_multi_head.ipynb), [5](../05_masking/05_masking.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [11](../11_tokens/11_tokens.ipynb) |
# | **It takes** | about 115 minutes: seven exercises, 22 points, and two predictions |
# | **It computes** | for seconds a cell, on a laptop, with two small GPT-2s that come with the course; also the smallest published one, if you have a network and half a gigabyte to spare |
#
# Letters are those of [the table](../../site/notation.md): b batch, t positions, e width, h heads, d = e/h the width
# of one head, n the size of the vocabulary. Blocks, heads and positions are counted from 0.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import json
import math
import random
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
from helpers.device import device
from helpers.lesson import start
from helpers.parts import gpt2 as finished_gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.generator import generate as finished_generate
from helpers.parts.gpt2 import Config, Conv1D, KeyValueCache
from helpers.parts.gpt2 import GPT2Block as FinishedBlock
from helpers.parts.gpt2 import gelu_tanh as finished_gelu
from helpers.parts.multi_head import merge_heads, split_heads

check = start("12_gpt2")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# Here is such a program, with a folder already open. The model in it was trained on Python code:

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("pocket")

# %% [markdown]
# ## The folder decides what the program writes
#
# The course includes two folders, the **pocket models**. One model was trained on the source of Python's standard
# library. The other started from the trained blocks of the first and was then trained on six novels by Jane Austen.
# One program opens both and reads the same two words:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels of horizontal bars: the eight most probable next tokens after the same words, if not, with each folder. With the English folder, to comes first, then a comma and in. With the Python folder, in comes first, then None."}}
folders = {name: gpt2_files(name).folder for name in ("pocket_english", "pocket_python")}
PROMPT = "if not"

def finished(name):
    """A finished model and the tokenizer of a folder, for now."""
    return (finished_gpt2.load(folders[name], device()),
            Tokenizer.from_folder(folders[name]))

english, english_tokenizer = finished("pocket_english")
pocket, tokenizer = finished("pocket_python")

def ids_of(text, tokenizer=tokenizer):
    return torch.tensor([tokenizer.encode(text)], device=device())    # (1, t)

figure, axes = plt.subplots(1, 2, figsize=(6, 3.1))
for ax, name, model, cutter in zip(axes, folders, [english, pocket],
                                   [english_tokenizer, tokenizer]):
    chances = model(ids_of(PROMPT, cutter))[0, -1].softmax(dim=-1)    # (n,)
    best = chances.topk(8)
    names = [cutter.token(i) for i in best.indices]
    plots.bars({f"{PROMPT} ▁, {name}": best.values}, names, "probability", "next token",
               axes=[ax])
    ax.set(xlim=(0, 0.4), xticks=[0, 0.2, 0.4], xticklabels=["0", "0.2", "0.4"])
axes[1].set_ylabel("")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **One program, one text, two folders.** The eight most probable next tokens after *if not*. "·" is a space.
#
# </div>
#
# Likeliest is *to* with the English folder, and *in*, then *None*, with the Python folder. This program was given.
# What has to be in yours?
#
# ## One file of the folder holds the sizes
#
# OpenAI published GPT-2 in 2019, in four sizes ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)),
# trained on [WebText](../../site/glossary.md#webtext), the text of web pages that Reddit users had linked to
# (section 2.1). The smallest is the folder [`openai-community/gpt2`](https://huggingface.co/openai-community/gpt2) on
# the Hugging Face Hub. The pocket models have the same files. Their `config.json` says:

# %%
folder = folders["pocket_python"]
settings = json.loads((folder / "config.json").read_text())
for name in ("vocab_size", "n_positions", "n_embd", "n_head", "n_layer",
             "activation_function", "layer_norm_epsilon"):
    print(f"{name:>22} = {settings[name]}")

# %% [markdown]
# The first five are our n, t_max, e, h and depth. The diagram shows where each weight is used:

# %%
plots.diagrams.gpt2_flow()

# %% [markdown]
# <div class="figure-caption">
#
# The arrows carry the shape of the data. The orange table of tokens is used twice, the second time for the logits,
# one for each possible next token.
#
# </div>
#
# ## The block is lesson 9's, with GELU and biases
#
# GPT-2 is built like the model of lesson 9. Four things are new: biases in the projections,
# [GELU](../../site/glossary.md#gelu) instead of ReLU, one table for input and output, and tokens instead of bytes.
#
# **Conv1D.** GPT-2's linear layers were published as convolutions of width 1. Their weight is (n_in, n_out), and
# they compute x @ w + bias; `nn.Linear` stores the transpose. The layer is given, as `Conv1D(n_in, n_out)`.
#
# **GELU.** ReLU multiplies x by 0 or 1, depending on its sign. GELU multiplies it by Φ(x), the probability that a
# standard normal number is smaller than x ([Hendrycks and Gimpel, 2016](https://arxiv.org/abs/1606.08415), section
# 2). GPT-2 uses their approximation of it by tanh, given here as `finished_gelu`.
#
# The block is pre-norm, as in lesson 7: $x + \text{attention}(\text{norm}_1(x))$, then
# $x + \text{network}(\text{norm}_2(x))$, where the feed-forward network is widen, GELU, narrow. Attention is that
# of lesson 5, with one change: queries, keys and values come from **one** layer, (b, t, e) to (b, t, 3e), side by
# side in this order. The layers are given; you write what happens between them.
#
# In the exercises do not call `finished_gpt2`, or another finished part that does the same (`FinishedBlock` in
# `GPT2Block`).

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `GPT2Block`** &nbsp; ★★☆ · 11 minutes · 4 points
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
# For t = 3 the positions that are hidden are (0, 1), (0, 2) and (1, 2): column j is hidden in row i where j > i.
# Their scores become −∞ before the softmax. `F.scaled_dot_product_attention` is allowed too, with `is_causal=True`.
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
        self.attention = nn.ModuleDict({"to_qkv": Conv1D(e, 3 * e),
                                        "unify": Conv1D(e, e)})
        self.norm2 = nn.LayerNorm(e, eps=config.epsilon)
        self.feed_forward = nn.ModuleDict({"widen": Conv1D(e, 4 * e),
                                           "narrow": Conv1D(4 * e, e)})

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
# ## One table serves the input and the output
#
# Before the blocks, each token's vector is added to the vector of its position, 0 to t − 1. After them comes one
# norm, because nothing has normalised the last sum, and then the logits.
#
# GPT-2 has no separate matrix for the logits. It uses the **table of tokens once more**: the logit of token j is
# the dot product of the final vector with the embedding of token j, $\text{logits} = x\,W^\top$ with the table W of
# shape (n, e). The head is *tied* to the table ([tied weights](../../site/glossary.md#tied-weights), [Press and
# Wolf, 2017](https://aclanthology.org/E17-2025/)). At the very end stands the dot product of lesson 1: which token
# is this vector most similar to?

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `GPT2`** &nbsp; ★★★ · 11 minutes · 4 points
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
# The model is complete, with random weights. How do the published numbers get into it?
#
# ## The published numbers fit once they are renamed
#
# The file of weights holds names, shapes and numbers, and no code. The names are not ours:

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
# each followed by `.weight` or `.bias`. Files also differ from one another:
#
# - some have **`transformer.`** before all these names;
# - older ones contain, in each block, the mask as **`attn.bias`** and the number for hidden scores as
#   **`attn.masked_bias`**; neither is a weight;
# - some contain **`lm_head.weight`**, always without the prefix: the table of tokens a second time.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `rename_weights`** &nbsp; ★★☆ · 8 minutes · 3 points
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
# The keys of `OURS` below begin and end with a dot. `h.3.mlp.c_proj.bias` becomes `.h.3.mlp.c_proj.bias` first, with
# a dot in front; `.h.` and `.mlp.c_proj.` in it are replaced, which makes `.blocks.3.feed_forward.narrow.bias`; then
# the dot in front is removed.
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
# ## One program writes like a novel or like Python
#
# The next cell puts together your `GPT2`, your `GPT2Block` and your `rename_weights`. (If you have skipped the
# block, write `FinishedBlock` in its place.) `load_state_dict` says what is missing and what is left over: with
# someone else's file, read that whole list.

# %% tags=["nbval-check-output"]
def opened(folder, block=GPT2Block, say=None):
    """Your model with the weights of a folder, and the tokenizer beside them."""
    config = Config.from_json(folder / "config.json")
    model = GPT2(config)
    model.blocks = nn.ModuleList([block(config) for _ in range(config.depth)])
    published = load_file(folder / "model.safetensors")
    told = model.load_state_dict(rename_weights(published), strict=False)
    if say:
        left = [name for name in told.missing_keys if not name.startswith("head")]
        say(f"missing: {left}  unexpected: {told.unexpected_keys}")
    model.t_max = config.t_max
    return model.to(device()).eval(), Tokenizer.from_folder(folder)

mine, _ = opened(folders["pocket_python"], say=print)
my_english, _ = opened(folders["pocket_english"], say=print)

# %% [markdown]
# Lesson 9's `generate` needs of a model only its logits and the length of its window:

# %%
def written(model, tokenizer, prompt, seed, count=80):
    """The prompt, and `count` more tokens, drawn at temperature 0.8 with top-p 0.9."""
    chance = torch.Generator(device()).manual_seed(seed)
    drawn = finished_generate(model, ids_of(prompt, tokenizer), count, 0.8, top_p=0.9,
                              generator=chance)
    lines = (prompt + tokenizer.decode(drawn[0])).split("\n")
    return "\n".join(line if len(line) < 89 else textwrap.fill(line, 88) for line in lines)

print(f"--- pocket_english\n{written(my_english, english_tokenizer, PROMPT, seed=1)}\n")
print(f"--- pocket_python\n{written(mine, tokenizer, PROMPT, seed=1)}")

# %% [markdown]
# **Program, prompt and seed are the same, and only the folder differs.** One text reads like a novel without a plot,
# the other like a class without a use. No tensor was missing or left over. Is the program right, then?

# %% [markdown]
# ## Weights can fit and still be wrong
#
# Most programs have no Conv1D. They use nn.Linear and transpose the weights on loading. The next cell does that for
# a whole file. A model loads the result without an error, yet one matrix in each block is wrong.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `for_linear`** &nbsp; fix · ★★☆ · 6 minutes · 2.5 points
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
# With e = 3 and n = 3, `wte.weight` and `h.0.attn.c_proj.weight` are both (3, 3), also in `shapes`. The first must
# not be transposed, the second must be. `h.0.mlp.c_fc.weight` is (3, 12), and (12, 3) in `shapes`. What distinguishes
# the first two?
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
# Shapes reveal the mistake in all layers but one: the matrix after the heads is (e, e), and its transpose fits as
# well. minGPT's loader goes [by a list of names](https://github.com/karpathy/minGPT/blob/master/mingpt/model.py).
#
# </details>
#
# If a load without an error does not show that a model is right, what does?
#
# ## A comparison at every stage shows where an error begins
#
# You compare its numbers with those of another program, here Hugging Face's
# [`transformers`](https://huggingface.co/docs/transformers). Its results were **recorded**: it loaded the Python
# folder and read one sentence, and the vectors of each stage were written to a file. **Hooks**, functions that
# PyTorch calls whenever a layer is called, collect the vectors of your model.
#
# Three more models have one change each: the exact GELU, transposed matrices `unify`, and positions that start at
# 1.

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
# **Only yours agrees at every stage.** At each stage, the largest difference of a component from the reference (a
# mark at 10⁻⁹ means none). Yours is of the size of rounding in 32-bit arithmetic: the largest components in the
# later blocks are in the hundreds. None of the other three raises an exception.
#
# </div>
#
# **The first stage at which a line leaves yours is where the error is.** Positions that start at 1 are wrong from
# the embeddings on; with transposed matrices or the exact GELU, block 0 is the first that differs. Would the loss
# alone have shown these errors?
#
# ## The loss does not show every error
#
# Six models, each with one error, read the beginnings of 16 modules that the Python model was not trained on. For
# comparison, a GPT-2 with fresh weights gives all n tokens nearly the same probability, so its loss is close to ln n.

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
t_max = pocket.config.t_max
starts = [tokenizer.encode(text[:6 * t_max])[:t_max]
          for name, text in stdlib_sources().items() if is_held_out(name)]
held_out = torch.tensor([ids for ids in starts if len(ids) == t_max][:16], device=device())

@torch.no_grad()
def on_held_out(model):
    """The loss in nats per token over all the held-out windows."""
    logits = model(held_out[:, :-1]).transpose(1, 2)    # (b, n, t)
    return F.cross_entropy(logits, held_out[:, 1:]).item()

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

print(f"{len(held_out)} windows of {t_max} tokens; ln n = {math.log(pocket.config.n):.2f}")
torch.manual_seed(0)
fresh = finished_gpt2.GPT2(pocket.config).to(device()).eval()
print(f"{'fresh weights':>18}: {on_held_out(fresh):8.3f} nats per token")
errors = {"as published": lambda model: None, "exact GELU": exact_gelu,
          "positions from 1": from_one,
          "not scaled": attention_with(scale=False, causal=True),
          "no mask": attention_with(scale=True, causal=False),
          "unify transposed": transposed, "no final norm": no_final_norm}
for name, change in errors.items():
    print(f"{name:>18}: {on_held_out(changed(change)):8.3f} nats per token")

# %% nbgrader={"grade": true, "grade_id": "check_dearest_error", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("dearest_error", dearest_error)

# %% [markdown]
# **Three of these errors could go unnoticed.** With the exact GELU the loss is the same to three decimals. With
# positions from 1 it rises from 2.580 to 2.767, without the mask to 2.820, and a slightly worse model would have such
# a loss too. (*No mask* is no valid loss: a position also sees the token that it has to predict.)
#
# The comparison by stages shows the first two at once. The transposed matrices, which load without an error, predict
# worse than fresh weights.
#
# Your model agrees with the reference. Which of its computations does it repeat?
#
# ## A key-value cache saves time and changes no token
#
# As in lesson 9, your model computes all earlier positions again for each token that it writes.
#
# The causal mask makes this unnecessary. Position i looks only at positions up to i, so nothing that comes later
# changes its keys and values, in any block. A new token needs *its* query, key and value, and the **kept keys and
# values** of all tokens before it: a [key-value cache](../../site/glossary.md#key-value-cache), or KV cache
# ([Shazeer, 2019](https://arxiv.org/abs/1911.02150), section 2.4).

# %%
plots.diagrams.cache_growing()

# %% [markdown]
# <div class="figure-caption">
#
# The passes of the model, one below the other. The first reads the whole prompt; each later pass reads one token,
# whose single query looks at all keys. Blue is computed in the pass, grey was kept.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `attend_with_past`** &nbsp; ★★☆ · 9 minutes · 3 points
#
# Write attention for t new positions of a text whose earlier keys and values were kept. In the first call there are
# none, and `old_k` and `old_v` are None. Append the new keys and values to the old ones. Each new position sees all
# earlier positions and itself, and none after it. Scores are divided by √d. Return the output, and the keys and
# values of all s positions: the next call gets them as its old ones. New tensors are created on the device of q. It
# is for writing, so that no gradient is asked for.
#
# <details><summary>Hint 1: what grows</summary>
#
# With 6 old positions and 4 new ones the scores are (b, h, 4, 10): a query for each new position, a key for each
# position so far. `torch.cat` needs to know which axis holds the positions.
#
# </details>
# <details><summary>Hint 2: what is hidden</summary>
#
# With 2 old positions and 3 new ones, row 0 hides the columns 3 and 4, row 1 hides column 4, and row 2 hides nothing.
# With no old ones it is the triangle of exercise 1, and a single new position hides nothing.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "attend_with_past", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attend_with_past(q, k, v, old_k=None, old_v=None):
    """Causal attention of new positions to each other and to those before them.

    q, k, v: (b, h, t, d), of the new positions. old_k, old_v: None, or (b, h, s − t, d).
    Returns the output (b, h, t, d), and keys and values of all s positions, (b, h, s, d).
    """
    ### BEGIN SOLUTION
    if old_k is not None:
        k, v = torch.cat([old_k, k], dim=2), torch.cat([old_v, v], dim=2)
    (t, d), s = q.shape[-2:], k.shape[-2]
    hidden = torch.ones(t, s, dtype=torch.bool, device=q.device).triu(s - t + 1)
    scores = (q @ k.transpose(-2, -1) / math.sqrt(d)).masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v, k, v
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_attend_with_past", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(attend_with_past)

# %% [markdown]
# The new token still needs the vector of its **position in the text**: a token that comes alone is not at position
# 0. `model.embed(ids, start)` returns the vectors of tokens at positions start, start + 1, …

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `generate_cached`** &nbsp; ★★★ · 10 minutes · 3.5 points
#
# Continue a text greedily, each time with the most probable token. First the prompt goes through the blocks, then
# each new token alone, at its own position: every token goes through the model at most once. Return the new tokens
# without the prompt. `cache.layers[k]` is the part of the cache that block k takes as its second argument;
# `cache.length` is how many positions have been read. New tensors are created on the device of the ids.
#
# <details><summary>Hint 1: one round</summary>
#
# Embed the new tokens at their positions; send them through each block with the block's own part of the cache. What
# the model of exercise 2 does after the blocks is needed only for the last position.
#
# </details>
# <details><summary>Hint 2: three rounds</summary>
#
# Take two prompts of 5 tokens, and 3 new tokens. The first round reads (2, 5) at positions 0 to 4, the second (2, 1)
# at position 5, the third (2, 1) at position 6. The last new token is returned but never read.
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

# %% [markdown]
# `with_cache` puts a layer that calls your `attend_with_past` into each block (the rest of these blocks is
# finished), and lets your model embed tokens at any position.

# %%
class CachedAttention(nn.Module):
    """The attention of a block, with your `attend_with_past` and what that has returned."""

    def __init__(self, layer):
        super().__init__()
        self.layer, self.kept = layer, ()

    def forward(self, x, past=None):
        three = self.layer.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.layer.h) for part in three)
        old = self.kept if past is not None and past.length else ()
        out, *self.kept = attend_with_past(q, k, v, *old)
        if past is not None:
            past.length += x.shape[1]    # the cache counts; the keys and values are here
        return self.layer.unify(merge_heads(out))

def with_cache(model):
    for block in model.blocks:
        block.attention = CachedAttention(block.attention)

    def embed(ids, start):
        places = torch.arange(start, start + ids.shape[1], device=ids.device)
        return model.tokens(ids) + model.positions(places)

    model.embed = embed
    return model

# %% tags=["hide-input"]
count = 120
for name in folders:
    plain, cutter = opened(folders[name])
    cached = with_cache(opened(folders[name], FinishedBlock)[0])
    begun = ids_of(PROMPT, cutter)
    watch = [time.perf_counter()]
    kept = generate_cached(cached, begun, count)
    watch.append(time.perf_counter())
    anew = finished_generate(plain, begun, count, temperature=0)
    watch.append(time.perf_counter())
    faster = (watch[2] - watch[1]) / (watch[1] - watch[0])
    print(f"{name}: {count} tokens, {faster:.1f} times as fast with a cache;"
          f" the same tokens: {torch.equal(kept, anew)}")

# %% [markdown]
# **With a cache the tokens are the same, and they come faster.** How much faster? At the size of the smallest
# published GPT-2:

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
print(f"after {end['length']} tokens, {plain / kept:.0f} times as fast with a cache")
print(f"{run['machine']}, one of them used\n{run['command']}")

# %% [markdown]
# <div class="figure-caption">
#
# **With a cache, the next token costs nearly the same after one token as after hundreds.** Recorded: the time of
# one core for one more token, for a GPT-2 of this size with random weights.
#
# </div>
#
# After 512 tokens, the next one comes 32 times as fast. The price is memory: two vectors of width e for each token
# in every block. For 1,024 tokens of the smallest GPT-2 these are 2 · 1024 · 768 · 12 numbers, 75 MB in 32 bits.
#
# The program is right on one sentence, and fast. So it can be used to look inside: what does a head of this model do?
#
# ## To repeat what it has read, the model needs a previous-token head and induction heads
#
# [Olsson et al., 2022](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html),
# found one kind of head in many language models. An [induction head](../../site/glossary.md#induction-head), at the
# second *A* of *A B … A*, looks at the *B*, and so can copy it. The embedding of B does not say what came before it,
# so another head first writes that into B (an arrow points at what is looked at):
#
# ```text
#                  A      B      …      A      → B
#
# an early block   A ←─── B                       a previous-token head writes "after A" into B
# a later block           B ←────────── A         "what came after A?": an induction head finds B
# ```

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `induction_score`** &nbsp; ★★☆ · 6 minutes · 2 points
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
# The text A B A B has the period 2, and the entries (2, 1) and (3, 2) count. `weights.diagonal(-1, -2, -1)`, along
# the last two axes, gives the entries (1, 0), (2, 1) and (3, 2). Which token is at position 1, and has it come
# before?
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
# Induction is measured on random tokens that come twice, which offer no other clue than the repetition. The
# previous-token score, the mean weight on the token before, is measured on held-out code. All that follows is the
# Python model.

# %%
chance = torch.Generator().manual_seed(3)
once = torch.randint(pocket.config.n - 1, (8, 24), generator=chance).to(device())
twice = torch.cat([once, once], dim=1)                            # (8, 48)
on_code = pocket.attention_weights(held_out[:8]).mean(dim=1)      # (depth, h, t, t)

def induction():
    """The induction score of every head, (depth, h)."""
    return induction_score(pocket.attention_weights(twice).mean(dim=1), 24)

def strongest(score):
    """(block, head) of the largest score."""
    return divmod(int(score.argmax()), score.shape[1])

kinds = {"previous token": finished_gpt2.previous_score(on_code), "induction": induction()}
for kind, score in kinds.items():
    block, number = strongest(score)
    print(f"{kind:>15}: block {block}, head {number} with {score[block, number]:.2f}")
even = induction_score(finished_gpt2.even_weights(48), 24)
copying = [divmod(int(k), pocket.config.h)
           for k in (kinds["induction"] > 10 * even).flatten().nonzero()]
print(f"even weights would have an induction score of {even:.3f};"
      f" {len(copying)} heads have ten times that")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two triangles of attention weights over a short piece of code that comes twice. In the first, a previous-token head, the weight is just below the diagonal. In the second, an induction head, much of the weight of the second copy is on a parallel further down, one place after the first copy of the same token, and the rest in the column of the first token."}}
line = ids_of("x = spam(eggs)\n" * 2)
maps = pocket.attention_weights(line)[:, 0]    # (depth, h, t, t)
chosen = {kind: strongest(score) for kind, score in kinds.items()}
plots.head_grid(torch.stack([maps[i, j] for i, j in chosen.values()]).cpu(),
                [tokenizer.token(i) for i in line[0]], across=2, annotate=False,
                titles=[f"{kind}\nblock {i}, head {j}" for kind, (i, j) in chosen.items()])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **A line of code that comes twice.** Row i shows what token i looks at. Left: the token before. Right: in six of the
# ten rows of the second half, the largest weight is on the token that followed the first copy; in the others it is
# on the first token of the text.
#
# </div>
#
# **This model has both kinds:** one head with nearly all of its weight on the token before, and nine with at least
# ten times the induction score of even weights. They had help: the training repeated stretches of text or of random
# tokens, in half of the windows at first and in fewer later. In the models that Olsson et al. trained on ordinary
# text, induction heads form by themselves, early in training
# ([2022](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html)).
#
# A score says only where a head looks. To find out what it *does*, switch it off: set its output to zero, and look at
# the loss on the second appearance of random tokens.

# %% [markdown]
# <div class="card">
#
# **Prediction · `switched_off_head`** &nbsp; 1 minute · no points
#
# You switch off one head of the model. Which of the two raises the loss more on the second appearance?
#
# - **A.** The head with the highest induction score.
# - **B.** The head with the highest previous-token score.
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
def without(*heads):
    """With heads off: the loss on the second appearance, and the best induction score."""
    with finished_gpt2.switched_off(pocket, *heads):
        logits = pocket(twice[:, :-1])[:, 24:].transpose(1, 2)
        return F.cross_entropy(logits, twice[:, 25:]).item(), induction().max().item()

best = {f"strongest {kind} head": strongest(score) for kind, score in kinds.items()}
heads = [(i, j) for i in range(pocket.config.depth) for j in range(pocket.config.h)]
others = sorted((*without(head), head) for head in heads if head not in best.values())
*_, (nearly, *_), (most, found, worst) = others
print(f"{'switched off':>30}     loss  induction score")
rows = {"none": without(), **{name: without(head) for name, head in best.items()},
        f"block {worst[0]}, head {worst[1]}": (most, found)}
for name, (loss, score) in rows.items():
    print(f"{name:>30} {loss:8.2f} {score:16.2f}")
mean = sum(loss for loss, *_ in others) / len(others)
print(f"the {len(others)} other heads, one by one: mean {mean:.2f}, from"
      f" {others[0][0]:.2f} to {most:.2f}, all but one at most {nearly:.2f}\n")

spared = {*copying, worst, best["strongest previous token head"]}
pool = [head for head in heads if head not in spared]
draws = [without(*random.Random(k).sample(pool, len(copying)))[0] for k in range(5)]
print(f"all {len(copying)} induction heads together: {without(*copying)[0]:.2f}")
print(f"{len(copying)} of {len(pool)} other heads, five draws: mean {sum(draws) / 5:.2f},"
      f" from {min(draws):.2f} to {max(draws):.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_switched_off_head", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("switched_off_head", switched_off_head)

# %% [markdown]
# **Copying fails with the previous-token head off, and with all nine induction heads off.** Both losses are above ln
# n, the loss of a guess. Each of the other heads but one can be switched off by itself, and the loss stays below 0.5.
# With nine heads off that are no induction heads, drawn from those that copying can spare, it is 1.15 to 3.76.
#
# **Without the previous-token head, no head looks at the right place** (last column), as the explanation says.
# Without head 5 of block 0 hardly any does either. The strongest induction head alone is hardly missed: eight others
# look at the same place.
#
# **One other head cannot be spared**, head 5 of block 0. Without it copying fails as well, and ordinary code is
# predicted much worse ([Measured further](../../site/further.md#lesson-12)). So the table does not say what the
# previous-token head does, only that copying needs it. This is one model.
#
# Finding out what the parts of a trained model do is called *mechanistic interpretability*; lesson 19 is about it.
# All this was a pocket model. What about OpenAI's?
#
# ## The published folders have the same format and larger numbers
#
# Your program needs no change for them. Their weights are not part of this page, so what they do is quoted.
#
# **How well they predict.** The paper tests the models [zero-shot](../../site/glossary.md#zero-shot), on data sets
# that they were not trained on ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf),
# table 3). The measure is [perplexity](../../site/glossary.md#perplexity), e to the power of the loss in nats. From
# the smallest to the largest, perplexity on WikiText-103 falls from 37.50 to 17.48. The best model before, trained on
# this data set, had 18.3.
#
# **What they write.** The smallest model gets into a loop if it always takes the most probable token. The
# continuation of *I enjoy walking with my cute dog* by 40 tokens was published by Patrick von Platen ([How to
# generate text, 2020](https://huggingface.co/blog/how-to-generate)):
#
# > , but I'm not sure if I'll ever be able to walk with my dog. I'm not sure if I'll ever be able to walk with my dog.
# >
# > I'm not sure
#
# **Yours to see.** Your program opens the smallest GPT-2 as well, if it is in the data folder or on the Hub (about 550
# MB, once; `make data ARGS=gpt2`).

# %%
real = gpt2_files("gpt2", say=lambda line: None)
if real.taken.place == "embedded":
    print("The published GPT-2 is not on this machine.")
else:
    begun = "I enjoy walking with my cute dog"
    print(written(*opened(real.folder), begun, seed=1), "\n")
    cached, cutter = opened(real.folder, FinishedBlock)    # the words of von Platen?
    likely = generate_cached(with_cache(cached), ids_of(begun, cutter), 40)
    print(f"most probable: {begun}{cutter.decode(likely[0])}")

# %% [markdown]
# ## What you can do now
#
# **What do you have to write so that a folder continues a text, and how do you know that you have written it
# right?**
#
# - **You write GPT-2 and a translation of the names.** Two folders then continue the same two words like a novel and
#   like Python.
# - **You compare its numbers with those of another program, stage by stage.** On one sentence yours differ by no more
# than rounding. Loading does not notice transposed square matrices. The loss does not notice the exact GELU.
# - **A cache changed no token**, in either folder. In the recorded run, the longer the text, the more time it saved.
# - **In the Python model copying fails** without its previous-token head, without all nine induction heads, and
#   without one more head.
#
# **A question to think about**
#
# <details><summary>The window is full, and the oldest token drops out. Can the cache be kept?</summary>
#
# No. Learned position vectors were added before the blocks, and without the oldest token all the others move
# forward by one position: all keys and values are now wrong. With rotary positions (lesson 6) only differences
# count, so positions are no obstacle. But in published rotary models the text falls apart as soon as the *first*
# tokens leave the cache ([Xiao et al., 2024](https://arxiv.org/abs/2309.17453), section 3.1). Their explanation: a
# softmax has to put its weight somewhere, and many heads put it there, on an *attention sink*. Keeping the first
# few tokens repairs it.
#
# </details>
#
# [Measured further](../../site/further.md#lesson-12) shows what all heads look at, and both models on both
# languages.
#
# **Further reading**
#
# - **A. Radford et al., ["Language models are unsupervised multitask
#   learners"](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf),
#   2019**, sections 2.1 to 2.3 for the model, table 3 for what it does without training.
# - C. Olsson et al., ["In-context learning and induction
#   heads"](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html), *Transformer
#   Circuits Thread*, 2022.
#
# You have come from a dot product to GPT-2. The next lesson looks back: what was attention invented for?
#
# **Next:** [lesson 13, *Before transformers*](../13_before_transformers/13_before_transformers.ipynb)
