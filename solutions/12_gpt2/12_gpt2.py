# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 12 · GPT-2
#
# *Open a folder of weights*
#
# > *if not* one of the future, and only scruples with some sight of it. "I do not know how to do all, and perhaps I do
# > not know what to do."
#
# > ```
# > if not None:
# >             _reset_allocated_shim = True
# > ```
#
# > ```
# > if not ignored=0,
# >                  tab_context=None):
# > ```
#
# The words *if not* were given. One program wrote the rest of the first two texts, each time from another folder of
# four files: `vocab.json` and `merges.txt` say how to cut a text into tokens, `config.json` how large the model is, and
# `model.safetensors` holds the weights. The third text is from the second folder, too, but in the program **one matrix
# is the wrong way round**. No error was raised, and it still writes something like Python.
#
# **What do you have to write so that such a folder continues a text, how do you know that it is right, and how do you
# make it faster without changing a token?**
#
# | | |
# |---|---|
# | **You will build** | GPT-2, the translation of its weights' names, and generation with a cache; you fix a converter |
# | **You need** | lessons [4](../04_multi_head/04_multi_head.ipynb), [5](../05_masking/05_masking.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [11](../11_tokens/11_tokens.ipynb) |
# | **It takes** | about 90 minutes: seven exercises, 22 points, and two predictions |
# | **It computes** | for seconds a cell, on a laptop, with two small GPT-2s of the course |
#
# Letters are those of [the table](../../site/notation.md): b batch, t positions, e width, h heads, d = e/h the width
# of one head, n the size of the vocabulary. Blocks, heads and positions are counted from 0.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import json
import math
import random
import textwrap

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
# ## Three tokens go through the folder's weights
#
# A folder's numbers at work on the text *for i in*:

# %% tags=["hide-input"]
folders = {name: gpt2_files(name, say=lambda line: None).folder
           for name in ("pocket_english", "pocket_python")}
folder = folders["pocket_python"]
pocket, pieces = finished_gpt2.load(folder), Tokenizer.from_folder(folder)
FOR = torch.tensor([pieces.encode("for i in")])    # (1, 3)
with torch.no_grad():
    x = pocket.embed(FOR)    # (1, 3, e)
    last = x
    for block in pocket.blocks:
        last = block(last)
    vectors = [y[0, :, :2].tolist() for y in (pocket.tokens(FOR), x, pocket.norm(last))]
    best = pocket(FOR)[0].softmax(dim=-1).max(dim=-1)
plots.diagrams.gpt2_flow(
    [pieces.token(i) for i in FOR[0]], FOR[0].tolist(), vectors,
    [(pieces.token(i), chance) for i, chance in zip(best.indices, best.values.tolist())],
    (pocket.config.n, pocket.config.e, pocket.config.depth))

# %% [markdown]
# <div class="figure-caption">
#
# **The whole model at work.** A dot is a space. Of each vector, the first two of 192 numbers are written. The green
# tokens are the likeliest to come next; after *for i in* that is *range*.
#
# </div>
#
# OpenAI published GPT-2 in four sizes ([Radford et al.,
# 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)). The
# smallest is [`openai-community/gpt2`](https://huggingface.co/openai-community/gpt2) on the Hugging Face Hub. The
# course has two small folders with the same files, the **pocket models**. The one in the picture was trained mainly on
# the source of Python's standard library. The English one began with the Python model's blocks and was trained on six
# novels by Jane Austen. The Python folder's `config.json` says:

# %%
settings = json.loads((folder / "config.json").read_text())
for name in ("vocab_size", "n_positions", "n_embd", "n_head", "n_layer",
             "activation_function", "layer_norm_epsilon"):
    print(f"{name:>22} = {settings[name]}")

# %% [markdown]
# The first five are our n, t_max, e, h and depth. All but h decide how many parameters there are: 2.2 million here, 124
# million in OpenAI's smallest model.
#
# ## The block is lesson 9's, with GELU and more biases
#
# Two things are new in the block. The layer for queries, keys and values has **biases**. And
# **[GELU](../../site/glossary.md#gelu)** takes the place of ReLU. ReLU multiplies x by 0 or 1, depending on its sign;
# GELU multiplies it by Φ(x), the probability that a standard normal number is smaller than x ([Hendrycks and Gimpel,
# 2016](https://arxiv.org/abs/1606.08415), section 2). GPT-2 uses their approximation by tanh, here `finished_gelu`.
#
# One thing is stored differently: GPT-2's linear layers are called **Conv1D** (convolutions of width 1). Their weight
# is (n_in, n_out), and they compute x @ w + bias. `nn.Linear` stores the transpose.
#
# The block is pre-norm, as in lesson 7: $x + \text{attention}(\text{norm}_1(x))$, then
# $x + \text{network}(\text{norm}_2(x))$, where the feed-forward network is widen, GELU, narrow. **One** layer makes
# queries, keys and values, (b, t, e) to (b, t, 3e), side by side in this order. The layers are given; you write what
# happens between them. Do not use `finished_gpt2` in any exercise, nor `FinishedBlock` in `GPT2Block`.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `GPT2Block`** &nbsp; ★★☆ · 11 minutes · 4 points
#
# Write `attend` (q, k, v; heads; scaled scores; the triangle; softmax; values; `unify`) and `forward`.
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
# For t = 3 the hidden positions are (0, 1), (0, 2) and (1, 2): column j in row i where j > i. Their scores become −∞
# before the softmax. `F.scaled_dot_product_attention` is allowed too, with `is_causal=True`.
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
# Around the blocks, follow the picture. Each token's vector is added to that of its position, 0 to t − 1. After the
# blocks comes one norm: every block has added to the vectors, and the norm brings them to one scale. Then the **table
# of tokens serves once more**: the logit of token j is the dot product of the final vector with the embedding of token
# j, $\text{logits} = x\,W^\top$ with the table W of shape (n, e). These are
# [tied weights](../../site/glossary.md#tied-weights) ([Press and Wolf, 2017](https://aclanthology.org/E17-2025/)); the
# output has no bias.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `GPT2`** &nbsp; ★★★ · 11 minutes · 4 points
#
# Make `tokens` and `positions` (`nn.Embedding`), `blocks` (each a `FinishedBlock(config)` of its own) and `norm`
# (`nn.LayerNorm` with config.epsilon), and use them in `forward`. The sizes are config.n, config.t_max, config.e and
# config.depth. The model has no other parameters: the output head is the weight of `tokens` itself, not a copy of it,
# and has no bias. Gradients must reach every parameter, and new tensors are created on the device of the ids.
#
# <details><summary>Hint 1: the positions</summary>
#
# A window of 3 tokens needs the rows 0, 1 and 2 of `self.positions`, (3, e). They are added to (b, 3, e) by
# broadcasting.
#
# </details>
# <details><summary>Hint 2: the tied head</summary>
#
# With the table [[1, 0], [0, 1], [1, 1]] of three tokens, the final vector [2, 5] has the logits [2, 5, 7]: its dot
# products with the rows. An nn.Linear that holds this very weight adds no parameter.
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
# ## The stored numbers fit once they are renamed
#
# Your model's weights are random. The file holds trained ones, but under the names of the Hub:

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
# each followed by `.weight` or `.bias`. Some files have **`transformer.`** before all these names. In some, each block
# also has two tensors that are no weights: the mask, **`attn.bias`**, and the score of hidden positions,
# **`attn.masked_bias`**. Some repeat the table of tokens as **`lm_head.weight`**, always without the prefix.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `rename_weights`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return a new dict with the same tensors, or copies of them, under our names, without masks and head, for files with
# and without the prefix. The caller's dict stays unchanged.
#
# <details><summary>Hint 1: a prefix and an ending</summary>
#
# `name.removeprefix("transformer.")` does nothing if there is no such prefix. `endswith` takes a tuple of endings. Do
# not drop `c_attn.bias`, which is a parameter: the masks end in `.attn.bias`, with a dot before `attn`.
#
# </details>
# <details><summary>Hint 2: pieces of names</summary>
#
# The keys of `OURS` below begin and end with a dot. `h.3.mlp.c_proj.bias` becomes `.h.3.mlp.c_proj.bias` first;
# replacing `.h.` and `.mlp.c_proj.` makes `.blocks.3.feed_forward.narrow.bias`; then the dot in front is removed.
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
# The next cell puts your three parts together. (If you have skipped the block, write `FinishedBlock` in its place.)
# `load_state_dict` says what is missing or left over.

# %% tags=["nbval-check-output"]
def opened(folder, block=GPT2Block, say=None):
    """Your model with the weights of a folder, and the tokenizer beside them."""
    config = Config.from_json(folder / "config.json")
    model = GPT2(config)
    model.blocks = nn.ModuleList([block(config) for _ in range(config.depth)])
    published = load_file(folder / "model.safetensors")
    told = model.load_state_dict(rename_weights(published), strict=False)
    if say:
        left = [name for name in told.missing_keys
                if not name.startswith("head")]    # if you made the head an nn.Linear
        say(f"missing: {left}  unexpected: {told.unexpected_keys}")
    model.t_max = config.t_max
    return model.to(device()).eval(), Tokenizer.from_folder(folder)

mine, tokenizer = opened(folders["pocket_python"], say=print)
my_english, english_tokenizer = opened(folders["pocket_english"], say=print)

# %% [markdown]
# Lesson 9's `generate` draws the tokens:

# %% tags=["hide-input"]
PROMPT = "if not"

def ids_of(text, tokenizer):
    return torch.tensor([tokenizer.encode(text)], device=device())    # (1, t)

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
# **Program, prompt and seed are the same; only the folder differs.**
#
# ## Weights can fit and still be wrong
#
# Some programs, such as minGPT, have nn.Linear in place of Conv1D, and transpose the weights on loading. The next
# function does that for a whole file. What it returns loads without an error, yet one matrix in every block is wrong.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `for_linear`** &nbsp; fix · ★★☆ · 6 minutes · 2.5 points
#
# `shapes` has, for each published name, the shape of that tensor in the model with nn.Linear. Find the wrong matrix,
# and fix the function for models of every size. Tables, norms and biases stay as they were published. The caller's dict
# and its tensors stay unchanged.
#
# <details><summary>Hint 1: which one</summary>
#
# Print the names of the tensors that the function transposes, and compare them with the four layers of a block:
# `c_attn`, `attn.c_proj`, `c_fc`, `mlp.c_proj`.
#
# </details>
# <details><summary>Hint 2: three tensors</summary>
#
# With e = 3 and n = 3, `wte.weight` and `h.0.attn.c_proj.weight` are both (3, 3), also in `shapes`. Only the second
# must be transposed. `h.0.mlp.c_fc.weight` is (3, 12), and (12, 3) in `shapes`. What distinguishes the first two?
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
# The matrix after the heads is (e, e), and its transpose fits as well. minGPT's loader goes [by a list of
# names](https://github.com/karpathy/minGPT/blob/master/mingpt/model.py).
#
# </details>
#
# ## The loss can miss an error; a comparison by stages finds it
#
# The **reference** is another program, Hugging Face's [`transformers`](https://huggingface.co/docs/transformers). It
# loaded the Python folder and read three lines of code, and its vectors after each stage were recorded. Two tests
# compare a model with it on these lines: the **loss**, and the **vectors of each stage**.
#
# Both tests get your model, and seven finished ones with one error each: scores **not scaled**, **no mask**, **unify
# transposed** in all blocks (as in exercise 4) or in **block 2** alone, **no final norm**, the **exact GELU**, and
# **positions from 1** instead of 0.

# %% [markdown]
# <div class="card">
#
# **Prediction · `dearest_error`** &nbsp; 1 minute · no points
#
# Which of these four raises the loss the most?
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

# %% [markdown]
# **Hooks**, functions that PyTorch calls whenever a layer is called, collect the vectors of a model:

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

# %% tags=["hide-input"]
def exact_gelu(model):
    for each in model.blocks:
        layers = each.feed_forward
        each.feed_forward = nn.Sequential(layers.widen, nn.GELU(), layers.narrow)

@torch.no_grad()
def from_one(model):
    model.positions.weight.copy_(model.positions.weight.roll(-1, dims=0))

@torch.no_grad()
def transposed(blocks):
    for each in blocks:
        each.attention.unify.weight.copy_(each.attention.unify.weight.T.clone())

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

errors = {"exact GELU": exact_gelu, "positions from 1": from_one,
          "not scaled": attention_with(scale=False, causal=True),
          "no mask": attention_with(scale=True, causal=False),
          "unify transposed": lambda model: transposed(model.blocks),
          "block 2 transposed": lambda model: transposed(model.blocks[2:3]),
          "no final norm": no_final_norm}

# %% tags=["hide-input"]
known = reference(folder)
names = ["embed", *(f"block {k}" for k in range(mine.config.depth)), "norm", "logits"]
precision = torch.finfo(torch.float32).eps

def loss_on_lines(logits):
    """In nats per token, on the lines that the reference has read. logits: (1, t, n)."""
    return F.cross_entropy(logits[0, :-1], known.ids[0, 1:]).item()

def apart(found):
    """At each stage: the largest difference / the largest component of the reference."""
    pairs = zip(found, known.stages)
    return [((a - b).abs().max() / b.abs().max()).item() for a, b in pairs]

def changed(change):
    """The finished model of the folder with one thing changed."""
    model = finished_gpt2.load(folder, device())
    change(model)
    return model

models = {"yours": mine, **{name: changed(change) for name, change in errors.items()}}
found = {name: stages(model, known.ids.to(device())) for name, model in models.items()}
differences = {name: apart(vectors) for name, vectors in found.items()}
print(f"{known.text}\nln n = {math.log(mine.config.n):.2f}")
print(f"{'reference':>18}: {loss_on_lines(known.stages[-1]):6.3f} nats per token")
for name, vectors in found.items():
    far = [stage for stage, x in zip(names, differences[name]) if x > 100 * precision]
    print(f"{name:>18}: {loss_on_lines(vectors[-1]):6.3f} nats per token,"
          f" first stage that differs: {far[0] if far else 'none'}")
largest = [found[name][-1].max().item() for name in ("yours", "no final norm")]
print("largest logit: {:.0f}, without the final norm {:.0f}".format(*largest))
print("\n--- block 2 transposed")
print(written(models["block 2 transposed"], tokenizer, PROMPT, seed=1, count=24))

# %% tags=["hide-input"] mystnb={"image": {"alt": "Largest difference from the reference at each stage, relative to the largest component there, logarithmic, for three models. Yours is zero at the embedding and less than one millionth after it. With the exact GELU the difference is a few hundred times as large from block 0 on. With unify of block 2 transposed the line follows yours through block 1, and jumps to about a tenth at block 2."}}
figure, ax = plt.subplots(figsize=(6, 3.6))
lines = {name: (range(len(names)), [max(x, 1e-9) for x in differences[name]])
         for name in ("yours", "exact GELU", "block 2 transposed")}
plots.curves(lines, "", "largest relative difference", {"float32": precision}, log="y",
             ax=ax, named_at="left")
ax.set_xticks(range(len(names)), names, rotation=40, ha="right")
ax.set_ylim(5e-10, 30)    # room for the legend
ax.legend(ncols=3, loc="upper left")
plt.show()
print(known.told)

# %% nbgrader={"grade": true, "grade_id": "check_dearest_error", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("dearest_error", dearest_error)

# %% [markdown]
# <div class="figure-caption">
#
# **Of these three, only yours agrees at every stage.** At each stage, the largest difference of a component from the
# reference, divided by the largest component there. Up to a hundred times the precision of *float32* counts as
# rounding, in the table too. A mark at 10⁻⁹ means no difference.
#
# </div>
#
# **A loss says little without the reference's.** Without a mask it is lower on these three lines, 1.566 instead of
# 1.998, but higher on held-out code ([Measured further](../../site/further.md#lesson-12)). The model that wrote the
# third text at the top, block 2 transposed, has a loss of 2.116, like a slightly weaker model.
#
# **Even beside the reference's, a loss at three decimals does not show the exact GELU; the stages do.** Both are 1.998.
# The vectors differ by little, but from block 0 on by more than rounding.
#
# **The stages also show in which block an error begins.** With block 2 transposed, the difference rises above rounding
# at block 2. Four of the seven errors begin in block 0; hooks on the layers inside would separate all but *not scaled*
# and *no mask*.
#
# ## With a key-value cache, each key and value is computed once
#
# As in lesson 9, your model computes all earlier positions again for each token that it writes. The keys below were
# computed anew in each such pass over *for i in* and what follows; the grey cells show what could have been kept.
# **Down a column, the number stays the same,** so no key need be computed again:

# %% tags=["hide-input"]
begun = FOR
more = finished_gpt2.generate_cached(pocket, begun, 3, temperature=0)
ids, keys = torch.cat([begun, more], dim=1), []
with torch.no_grad():
    for s in range(begun.shape[1], ids.shape[1] + 1):
        cache = KeyValueCache(pocket.config.depth, s)    # a new one for each pass
        pocket(ids[:, :s], cache)
        keys.append(cache.layers[-1].keys[0, 0, :, 0].tolist())
plots.diagrams.cache_growing([pieces.token(i) for i in ids[0]], keys)

# %% [markdown]
# <div class="figure-caption">
#
# **In each pass only the blue keys are new.** The Python model, last block: the first component of the keys of head 0.
# A row is a query; it sees the positions whose cells have a number.
#
# </div>
#
# The causal mask is the reason. Position i looks only at positions up to i, so nothing that comes later changes its key
# or its value, in any block. Each block can keep both: a **[key-value cache](../../site/glossary.md#key-value-cache)**,
# or KV cache, two tensors (b, h, s, d) for s positions ([Shazeer, 2019](https://arxiv.org/abs/1911.02150), section
# 2.4). A new token brings one query, as only its logits are wanted, and adds one key and one value.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `attend_with_past`** &nbsp; ★★☆ · 9 minutes · 3 points
#
# Write attention for t new positions of a text whose earlier keys and values were kept; the first call has none. Append
# the new keys and values to the old ones: the next call gets the result. Each new position sees itself and all before
# it. Scores are divided by √d. New tensors are created on the device of q. No gradient is needed.
#
# <details><summary>Hint 1: what grows</summary>
#
# With 6 old positions and 4 new ones the scores are (b, h, 4, 10): a query for each new position, a key for each so
# far. `torch.cat` needs to know which axis holds the positions.
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
# A token that comes alone is not at position 0: it still needs the vector of its **position in the text**.
# `model.embed(ids, start)` returns the vectors of tokens at positions start, start + 1, …

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `generate_cached`** &nbsp; ★★★ · 10 minutes · 3.5 points
#
# Continue a text greedily. First the prompt goes through the blocks, then each new token alone, at its own position:
# every token goes through the model at most once. Return only the new tokens. Block k takes `cache.layers[k]` as its
# second argument and appends to it. That advances `cache.length`, the number of positions read. New tensors are created
# on the device of the ids.
#
# <details><summary>Hint 1: one round</summary>
#
# Embed the new tokens at their positions; send them through each block with the block's part of the cache. What
# exercise 2 does after the blocks is needed only for the last position.
#
# </details>
# <details><summary>Hint 2: three rounds</summary>
#
# Two prompts of 5 tokens get 3 new tokens. The first round reads (2, 5) at positions 0 to 4, the second (2, 1) at
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

# %% [markdown]
# The next cell puts your `attend_with_past` into each finished block. It takes the old keys and values from the block's
# part of the cache, and puts back what your function returns.

# %% tags=["hide-input"]
class CachedAttention(nn.Module):
    """The attention of a block, with your `attend_with_past` and its part of the cache."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, past=None):
        three = self.layer.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.layer.h) for part in three)
        old = (past.keys, past.values) if past is not None and past.length else ()
        out, k, v = attend_with_past(q, k, v, *old)
        if past is not None:
            past.keys, past.values, past.length = k, v, k.shape[2]    # (b, h, s, d)
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
    kept = generate_cached(cached, begun, count)
    anew = finished_generate(plain, begun, count, temperature=0)
    print(f"{name}: {count} tokens with a cache and without;"
          f" the same tokens: {torch.equal(kept, anew)}")

# %% [markdown]
# **By construction the tokens are the same, up to rounding;** in this test, one text from each folder, all are. How
# much time does a cache save at the size of OpenAI's smallest?

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
print(f"one core of: {run['machine']}\n{run['command']}")

# %% [markdown]
# <div class="figure-caption">
#
# **With a cache, the next token costs nearly the same after one token as after hundreds.** Recorded on one core, for
# the course's finished GPT-2 and its cache, at this size with random weights.
#
# </div>
#
# After 512 tokens, the next one comes 32 times as fast. The price is memory: two vectors of width e for each token in
# every block. For 1,024 tokens of the smallest GPT-2 that makes 75 MB in 32 bits.
#
# ## Optional: OpenAI's folder
#
# After `make data ARGS=gpt2` (about 550 MB) the next cell opens OpenAI's weights with your program and finished blocks.

# %% tags=["hide-input"]
real = gpt2_files("gpt2", say=lambda line: None)
if real.taken.place == "embedded":
    print("The published GPT-2 is not on this machine.")
else:
    begun = "I enjoy walking with my cute dog"
    cached, cutter = opened(real.folder, FinishedBlock)
    likely = generate_cached(with_cache(cached), ids_of(begun, cutter), 40)
    print(f"most probable: {begun}{cutter.decode(likely[0])}")

# %% [markdown]
# ## Optional: which heads does copying need?
#
# You can skip this section, but its exercise's points count. The arcs show where one head of the Python model looks
# from the end of a text:

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("pocket")

# %% [markdown]
# At the second *left* it looks at *line*, which followed the first. In *A B … A*, an **[induction
# head](../../site/glossary.md#induction-head)** at the second *A* looks at the *B*, and so can copy it ([Olsson et al.,
# 2022](https://transformer-circuits.pub/2022/in-context-learning-and-induction-heads/index.html)). The embedding of B
# does not say what came before it. In their explanation, a **previous-token head** in an earlier block looks from B at
# A and writes that into B.

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
# In A B C A B C the period is 3. Position 3 has the second A and looks at the B, position 1. The score is the mean of
# the entries (3, 1), (4, 2) and (5, 3).
#
# </details>
# <details><summary>Hint 2: without a loop</summary>
#
# In A B A B the entries (2, 1) and (3, 2) count. `weights.diagonal(-1, -2, -1)`, along the last two axes, gives the
# entries (1, 0), (2, 1) and (3, 2). Has the token at position 1 come before?
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
# A score says only where a head looks. To find out whether the model needs it, **switch it off**: set its output to
# zero. The model, trained on repetitions too, reads random tokens twice; on their second appearance there is no clue
# but the first.
#
# Two numbers measure copying: the **gain**, the loss on the first appearance minus that on the second, and **copied**,
# the share of the second appearance's tokens to which the model gives the highest probability. The loss on held-out
# **code** shows what else suffers. A head's **previous-token score** is its mean weight on the token before, in such
# code.

# %% [markdown]
# <div class="card">
#
# **Prediction · `switched_off_head`** &nbsp; 1 minute · no points
#
# You switch off one head of the model. Without which of the two is less copied?
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

# %% tags=["hide-input"]
t_max = mine.config.t_max
starts = [tokenizer.encode(text[:6 * t_max])[:t_max]
          for name, text in stdlib_sources().items() if is_held_out(name)]
held_out = torch.tensor([ids for ids in starts if len(ids) == t_max][:16], device=device())

@torch.no_grad()
def on_held_out(model):
    """The loss in nats per token over all the held-out windows."""
    logits = model(held_out[:, :-1]).transpose(1, 2)    # (b, n, t)
    return F.cross_entropy(logits, held_out[:, 1:]).item()

pocket = finished_gpt2.load(folder, device())
chance = torch.Generator().manual_seed(3)
once = torch.randint(pocket.config.n - 1, (8, 24), generator=chance).to(device())
twice = torch.cat([once, once], dim=1)                               # (8, 48)
induction = induction_score(pocket.attention_weights(twice).mean(dim=1), 24)    # (depth, h)
previous = finished_gpt2.previous_score(pocket.attention_weights(held_out[:8]).mean(dim=1))
even = induction_score(finished_gpt2.even_weights(48), 24)

@torch.no_grad()
def copying_without(*off):
    """Losses on first and second appearance, and the share copied, with heads off."""
    with finished_gpt2.switched_off(pocket, *off):
        logits = pocket(twice[:, :-1]).transpose(1, 2)    # (8, n, 47)
    first, second = (F.cross_entropy(logits[..., part], twice[:, 1:][:, part]).item()
                     for part in (slice(0, 23), slice(24, None)))
    copied = (logits.argmax(dim=1) == twice[:, 1:])[:, 24:].float().mean().item()
    return first, second, copied

heads = [(i, j) for i in range(pocket.config.depth) for j in range(pocket.config.h)]
inducing = [head for head in heads if induction[head] > 10 * even]
strongest, before = (max(heads, key=score.__getitem__) for score in (induction, previous))
others = [head for head in heads if head not in (*inducing, before)]
missed = max(others, key=lambda head: copying_without(head)[1])
others.remove(missed)

rows = {"none": ()}
for head, kind, score in ((strongest, "induction", induction),
                          (before, "previous token", previous),
                          (missed, "previous token", previous)):
    rows[f"block {head[0]}, head {head[1]} ({kind} {score[head]:.2f})"] = (head,)
rows[f"all {len(inducing)} induction heads"] = inducing
for k in range(5):
    name = f"{len(inducing)} of {len(others)} others, draw {k}"
    rows[name] = random.Random(k).sample(others, len(inducing))
print(f"{'switched off':>38}   first  second    gain  copied    code")
for name, off in rows.items():
    first, second, copied = copying_without(*off)
    with finished_gpt2.switched_off(pocket, *off):
        code = on_held_out(pocket)
    print(f"{name:>38} {first:7.2f} {second:7.2f} {first - second:7.2f}"
          f" {copied:7.0%} {code:7.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_switched_off_head", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("switched_off_head", switched_off_head)

# %% [markdown]
# **Without the previous-token head, or without all nine induction heads, hardly a token is copied.** The gain falls
# from 9.87 nats to 1.84 and 1.23. The strongest of the nine alone is hardly missed. On the first appearance, even the
# whole model's loss is above ln n, that of a guess: it expects code.
#
# **Without nine other heads, copying suffers less:** 32 to 77 % of the tokens are copied. The nine are drawn from 13,
# without the previous-token head and head 5 of block 0. The gain is no fair measure here: in four of five draws it
# rises, as the first-appearance loss rises from 9.89 to about 13. Code suffers more than without the nine induction
# heads.
#
# **Needing a head does not say what it does.** Head 5 of block 0 hardly looks at the token before. Yet without it no
# token is copied, and the loss on code more than doubles. This is one model, on one draw of tokens; lesson 19 goes on.
#
# ## What you can do now
#
# - **You write GPT-2 and a translation of the names;** lessons 9 and 11 do the rest.
# - **You compare its vectors with a reference's, stage by stage.** That finds errors that loading does not notice, and
#   one that a loss at three decimals does not show.
# - **You keep keys and values in a cache.** It changed no token in the test. The longer the text, the more time it
#   saved the course's model.
#
# **A question to think about**
#
# <details><summary>The window is full, and the oldest token drops out. Can the cache be kept?</summary>
#
# No. Learned position vectors were added before the blocks, and without the oldest token all others move forward by one
# position: all keys and values are wrong. With rotary positions (lesson 6) only differences count, but the kept keys
# and values of later blocks depend on the dropped token. And in published rotary models perplexity jumps when the
# *first* tokens, *attention sinks*, leave the cache; keeping a few of them repairs most of it ([Xiao et al.,
# 2024](https://arxiv.org/abs/2309.17453), section 3).
#
# </details>
#
# [Measured further](../../site/further.md#lesson-12) shows what the seven errors cost on held-out code, what all heads
# look at, and both models on both languages.
#
# **Further reading**
#
# - **A. Radford et al., ["Language models are unsupervised multitask
#   learners"](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf),
#   2019**: section 2.3 for the model, table 3 for its [zero-shot](../../site/glossary.md#zero-shot) results.
#
# The next lesson looks back: what was attention invented for?
#
# **Next:** [lesson 13, *Before transformers*](../13_before_transformers/13_before_transformers.ipynb)
