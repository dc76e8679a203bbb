# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 21 · Cheaper answers
#
# *Fewer bits, fewer passes*
#
# To write the next token of a text, a model reads all its weights from memory. Eight billion weights in 16 bits are
# 16 GB. A memory that delivers 100 GB a second then allows about 6 tokens a second, however fast the processor is. So
# read fewer bytes, or read them once for several tokens. **Does the text stay the same?**
#
# | | |
# |---|---|
# | **You will build** | rounding to few bits, linear layers of integers, the size of a cache, and decoding with a draft |
# | **You need** | lessons [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 80 minutes: seven exercises, 26 points, and two predictions |
# | **It computes** | about a minute in all |
#
# A matrix of weights is (o, i): o outputs, i inputs. Parts named `finished_…` are for later exercises.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import statistics
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.device import device
from helpers.lesson import start
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.quantized import dequantize, matrix_bytes
from helpers.parts.quantized import int8_linear as finished_int8_linear
from helpers.parts.quantized import quantize as finished_quantize
from helpers.parts.quantized import (
    rounded, with_integer_products, with_linear, with_matrices, with_outliers
)
from helpers.parts.speculative import FirstBlocks, Lookup, generate_with_lookup
from helpers.parts.speculative import accept as finished_accept
from helpers.parts.speculative import speculative_generate as finished_generate

check = start("21_cheaper_answers")

# %% [markdown]
# ## A pass reads all the weights, for one token or several
#
# With a [key–value cache](../../site/glossary.md#key-value-cache), a **pass** of a model reads all the weights and
# the cache, the keys and values of the text so far. The pocket GPT-2 of lesson 12 continues a module of Python's
# standard library in three ways:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three columns of 16 tokens, with a bar for each pass. In 32 bits there are 16 bars, each of nearly 9 MB of weights and 1 MB of cache, and the text is f, quote, func, name, is deprecated. In 4 bits there are 16 bars of less than 4 MB, of which 1 MB is cache; after the name the text is another. In 32 bits with a draft the text is the first one, and there are 6 bars, as long as the first ones; grey lines at their left join 5, 5 and 3 tokens."}}
files = gpt2_files("pocket_python")
tokenizer = Tokenizer.from_folder(files.folder)
pocket = gpt2.load(files.folder, device())
passages = [tokenizer.encode(text[:1500])[:257]
            for name, text in stdlib_sources().items() if is_held_out(name)]
passages = torch.tensor([ids for ids in passages if len(ids) == 257][:16], device=device())
bytes_read = sum(len(tokenizer.decode(ids[1:]).encode()) for ids in passages.tolist())

@torch.no_grad()
def held_out_bits(model):
    """Bits per byte on sixteen passages of modules that the model has not read."""
    logits = model(passages[:, :-1]).flatten(0, 1)
    nats = F.cross_entropy(logits, passages[:, 1:].flatten(), reduction="sum").item()
    return nats / math.log(2) / bytes_read

class Counted:
    """A model that notes the length of each text that it reads."""

    def __init__(self, model):
        self.model, self.lengths = model, []

    def __call__(self, ids):
        self.lengths.append(ids.shape[1])
        return self.model(ids)

four_bits = with_matrices(pocket, lambda w: rounded(w, 4, 32))
in_all = 4 * sum(weight.numel() for weight in pocket.parameters())
unrounded = in_all - matrix_bytes(pocket, 32)                     # stays in float32
in_four_bits = matrix_bytes(pocket, 4, 32) + unrounded
of_position = 4 * 2 * pocket.config.e * pocket.config.depth       # a key and a value a block

def spoken(token):
    return tokenizer.decode([token]).strip() or "⏎"

def made_by(model, weights, draft=None, k=0, new=16):
    """The passes of a greedy answer: the tokens of each, and the MB that it reads."""
    before, t = passages[14:15, :160], 160
    counted = Counted(lambda ids: 1000 * model(ids))    # the most probable token gets it all
    generator = torch.Generator(before.device)
    tokens = finished_generate(counted, draft, before, new, k, generator)
    starts = [length - k for length in counted.lengths]
    return [(list(map(spoken, tokens[0, start - t:end - t].tolist())),
             {"weights": weights / 1e6, "cache": start * of_position / 1e6})
            for start, end in zip(starts, [*starts[1:], t + new])]

answers = {"32 bits": made_by(pocket, in_all), "4 bits": made_by(four_bits, in_four_bits),
           "32 bits, a draft": made_by(pocket, in_all, Lookup(pocket.config.n), 4)}
plots.passes(answers)
plt.show()
for name, made in answers.items():
    read = sum(sum(parts.values()) for _, parts in made)
    cached = sum(parts["cache"] for _, parts in made)
    print(f"{name}: {len(made)} passes, {read / 16:.1f} MB for each token, "
          f"{cached / read:.0%} of it cache")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each bar is a pass; the grey line at its left spans the tokens that it writes. The ink is what
# the answer reads: counted, not measured. Each token is the most probable one, ⏎ a new line. The draft copies four
# tokens from the text.
#
# </div>
#
# **In 4 bits the bars are shorter, and the text changes. With a draft there are fewer bars, and the text stays the
# same.** The first is **quantisation**. The second is **speculative decoding**: a cheap draft guesses the next
# tokens, and one pass of the model checks them all. If reading is the bottleneck, the ink is time:
#
# $$\frac{\text{seconds}}{\text{token}} \approx \frac{\text{passes}}{\text{token}} \cdot
# \frac{\text{bytes of weights} + \text{bytes of cache}}{\text{bytes read in a second}} .$$
#
# The pocket model shows what becomes of the text, not what fewer bytes save: with 9 MB of weights, arithmetic and
# overhead count, too.
#
# ## One scale for a matrix: 8 bits are enough, 3 spoil the model
#
# The simplest rounding divides a matrix by one number, its **scale**, and keeps whole numbers: with 4 bits, from −7
# to 7. The model computes with each whole number times the scale. Only the matrices of the blocks are rounded. The
# loss is in [bits per byte](../../site/glossary.md#bits-per-byte).

# %%
prompt = 'import os\n\ndef read_lines(path):\n    """'
ids = torch.tensor([tokenizer.encode(prompt)], device=device())
coarse = {32: held_out_bits(pocket)}
share = matrix_bytes(pocket, 32) / in_all
print(f"rounded: {share:.0%} of the weights; kept in float32: {1 - share:.0%}")
for bits in (8, 4, 3):
    model = with_matrices(pocket, lambda w: rounded(w, bits, "tensor"))
    coarse[bits] = held_out_bits(model)
for name, writer in (("32 bits", pocket), ("3 bits", model)):
    text = tokenizer.decode(gpt2.generate_cached(writer, ids, 40, temperature=0)[0].tolist())
    print(f"{name} write:", text.replace("\n", "⏎"))
for bits, loss in coarse.items():
    print(f"{bits:>2} bits: {loss:.3f} bits per byte")

# %% [markdown]
# **With 8 bits the loss hardly changes. With 3 the text is nonsense.** The largest weight sets the step for all
# others. So give each row a scale of its own, or each **group** of consecutive numbers of a row. With
# $m = 2^{\text{bits}-1} - 1$, the scale s of a group and the integer of a weight w in it are
#
# $$s = \frac{\max |w|}{m}, \qquad \mathrm{integer}(w) = \mathrm{round}(w / s) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `quantize`** &nbsp; ★★☆ · 9 minutes · 4 points
#
# Round each group of `group` consecutive numbers of a row with a scale of its own; without `group` a row is one
# group. A group of zeros has scale 1 and integers 0.
#
# In every exercise, new tensors are on the input's device, and inputs stay unchanged.
#
# <details><summary>Hint 1: an axis for the groups</summary>
#
# `w.unflatten(-1, (-1, group))` cuts rows into groups, and `flatten(-2)` is the way back. Which axis does a maximum
# go over?
#
# </details>
# <details><summary>Hint 2: a row by hand</summary>
#
# With 4 bits m is 7. The group (0.7, −0.32, 0.11, 0) has the scale 0.1 and the integers (7, −3, 1, 0). What would
# `.to(torch.int8)` make of −3.2 and of −3.8 without rounding first?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "quantize", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantize(w, bits, group=None):
    """Symmetric rounding to integers of few bits, with a scale for each group of a row.

    w: (..., i). bits: 2 to 8. group: a divisor of i, or None for the whole row. Returns two
    tensors: integers (..., i), int8, and scales (..., i/group), of the type of w.
    """
    ### BEGIN SOLUTION
    levels = 2 ** (bits - 1) - 1
    parts = w.unflatten(-1, (-1, group or w.shape[-1]))       # (..., i/group, group)
    scales = parts.abs().amax(dim=-1, keepdim=True) / levels
    scales = torch.where(scales == 0, 1.0, scales)
    integers = torch.round(parts / scales).to(torch.int8)
    return integers.flatten(-2), scales.squeeze(-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_quantize", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(quantize)

# %% [markdown]
# ## A scale for each row removes most of the added loss
#
# Scales are bytes, too: one of 16 bits for a group of 32 adds half a bit a weight.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bits per byte against thousands of bytes, one line for each kind of scale: one a matrix, one a row, one for each group of 32. All end at the dotted line of the unrounded model. At the left the line of one scale a matrix is far above the two others, which cross."}}
scalings = {"one scale a matrix": "tensor", "one a row": None, "one a group of 32": 32}
series, table = {}, {}
for name, group in scalings.items():
    points = []
    for bits in (3, 4, 5, 6, 8):
        loss = held_out_bits(with_matrices(pocket, lambda w: rounded(w, bits, group)))
        points.append((matrix_bytes(pocket, bits, group) / 1000, loss))
        table[name, bits] = loss
    series[name] = tuple(zip(*points))
plots.curves(series, "size of the blocks' matrices (kB)", "bits per byte, held out",
             landmarks={"32 bits": coarse[32]}, title="A scale for each row is nearly free")
plt.show()
for bits in (4, 3):
    print(f"{bits} bits:", ", ".join(f"{name} {table[name, bits]:.3f}" for name in scalings))

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Points from left to right: 3, 4, 5, 6 and 8 bits. Sizes include the scales.
#
# </div>
#
# **With 3 and 4 bits, a scale for each row removes about three quarters of the loss that one scale adds, for almost
# no bytes.** At equal size, groups of 32 are not clearly better.
#
# ## Inputs can be integers of 8 bits as well
#
# If a layer's inputs are integers, too, so are the products, and many processors have special instructions for these.
# Each vector of inputs has a scale:
#
# $$y_o \approx s_x\, s_o \sum_i \mathrm{integer}(x_i)\, \mathrm{integer}(w_{oi}) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `int8_linear`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Quantise x to 8 bits, with a scale for each vector, multiply integers with integers, and apply both scales.
# `finished_quantize` may be used.
#
# <details><summary>Hint 1: where there is room</summary>
#
# Each product is up to 127 · 127, and a matrix product of int8 tensors stays int8. Which type has room for the sums?
# In float32 whole numbers are exact up to $2^{24}$.
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# The scales of x are (..., 1), those of the weights (o, 1), and the sums (..., o). Which of the two does not
# broadcast along the last axis of the sums?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "int8_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def int8_linear(x, integers, scales):
    """A linear layer without bias whose products are products of integers.

    x: (..., i), float32 or float64. integers: (o, i), int8, and scales: (o, 1), as quantize
    returns them for the weights. Returns (..., o), of the type of x.
    """
    ### BEGIN SOLUTION
    inputs, input_scales = finished_quantize(x, 8)       # (..., i), (..., 1)
    sums = inputs.to(x.dtype) @ integers.to(x.dtype).T   # (..., o), whole numbers
    return sums * input_scales * scales[:, 0]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_int8_linear", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(int8_linear)

# %% [markdown]
# `int8_linear` multiplies its integers as floats. A version with int8 tensors is timed: processor time, medians of
# five runs.

# %% tags=["hide-input"]
def speeds(ways, count=32, times=5):
    """Tokens for a second of processor time of one thread, medians of runs in turns."""
    threads, seconds = torch.get_num_threads(), {name: [] for name in ways}
    torch.set_num_threads(1)
    for _ in range(times):
        for name, write in ways.items():
            before = time.process_time()
            write(count, torch.Generator().manual_seed(0))
            seconds[name].append(time.process_time() - before)
    torch.set_num_threads(threads)
    return {name: count / statistics.median(each) for name, each in seconds.items()}

def with_cache(model):
    return lambda count, g: gpt2.generate_cached(model, first, count, generator=g)

here, first = gpt2.load(files.folder), passages[:1, :48].cpu()    # speeds are those of a CPU
in_integers = with_linear(pocket, lambda x, w: int8_linear(x, *quantize(w, 8)))
print(f"the pocket model's loss: in float32 {coarse[32]:.3f} bits per byte, "
      f"with integer products {held_out_bits(in_integers):.3f}")
large = gpt2.GPT2(gpt2.Config(n=2048, t_max=256, e=1024, h=16, depth=8))
for name, model, count in (("pocket model", here, 32), ("100 million weights", large, 8)):
    found = speeds({"float32": with_cache(model),
                    "8 bits": with_cache(with_integer_products(model))}, count)
    print(f"{name}: 8 bits write {found['8 bits'] / found['float32']:.1f} times as "
          "many tokens a second as float32")

# %% [markdown]
# **A model of 100 million random weights becomes faster. The pocket model becomes slower, and its loss hardly
# changes.**
#
# ## Kept out of 8 bits, outlier features cost almost no loss
#
# In models above about 6.7 billion parameters, a few features of the activations are up to 20 times as large as the
# others ([Dettmers et al., 2022](https://arxiv.org/abs/2208.07339), section 4). The pocket model is given two such
# **outlier features**: norms multiply them by 20, and the weights that read them are divided by 20. The model
# computes the same.

# %% [markdown]
# <div class="card">
#
# **Prediction · `lost_features`** &nbsp; 1 minute · no points
#
# The activations are rounded to 8 bits, with a scale for each vector. Two of 192 features are 20 times as large as
# before. Which lose most, relative to their own size?
#
# - **A.** The two large ones: their steps are 20 times as large.
# - **B.** None. Each number still has 8 bits.
# - **C.** The other 190.
# </div>

# %% nbgrader={"grade": false, "grade_id": "lost_features", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
lost_features = "C"
### STUDENT GETS
# lost_features = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"]
pairs = [[7, 100], [30, 150], [61, 118]]
features = pairs[0]
others = [i for i in range(pocket.config.e) if i not in features]

@torch.no_grad()
def relative_errors(model):
    """The mean error of each feature in 8 bits, relative to its mean size."""
    x = model.blocks[0].norm1(model.embed(passages[:, :-1]))    # (b, t, e)
    errors = dequantize(*quantize(x, 8)) - x
    return errors.abs().mean(dim=(0, 1)) / x.abs().mean(dim=(0, 1))

before = relative_errors(pocket)
errors = relative_errors(with_outliers(pocket, features, 20.0))
print("mean error, relative to the mean size")
print(f"before: the two features {before[features].mean():.1%}, "
      f"the other {len(others)} {before[others].mean():.1%}")
print(f"after: the two large features {errors[features].mean():.1%}, "
      f"the other {len(others)} {errors[others].mean():.1%}")

# %% nbgrader={"grade": true, "grade_id": "check_lost_features", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("lost_features", lost_features)

# %% [markdown]
# One large number sets the step of its whole vector. So **LLM.int8()** multiplies features that reach a magnitude of
# 6 at any position in 16 bits (here in float32), and all others in 8 bits.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `mixed_linear`** &nbsp; ★★☆ · 8 minutes · 4 points
#
# Find the outlier features: those in which some vector of x, over all leading axes, has a magnitude of `threshold`
# or more. Multiply them exactly. The rest of x and of w goes through `finished_int8_linear`. Outlier features set
# no scale, neither of a vector nor of a row. All features may be outliers, or none, and x may be a single vector.
#
# <details><summary>Hint 1: a mask over features</summary>
#
# `(x.abs() >= threshold)` has the shape of x. Reduce it over all axes but the last.
#
# </details>
# <details><summary>Hint 2: zeros instead of fewer columns</summary>
#
# A feature that is 0 adds nothing to a product and never sets a scale. Which of the two tensors need zeros, and
# where?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "mixed_linear", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mixed_linear(x, w, threshold=6.0):
    """A linear layer in 8 bits, but for the features of x that hold outliers.

    x: (..., i). w: (o, i), floating point. Returns (..., o).
    """
    ### BEGIN SOLUTION
    outlier = (x.abs() >= threshold).reshape(-1, x.shape[-1]).any(dim=0)    # (i,)
    exact = x.masked_fill(~outlier, 0.0) @ w.T
    integers, scales = finished_quantize(w.masked_fill(outlier, 0.0), 8)
    return exact + finished_int8_linear(x.masked_fill(outlier, 0.0), integers, scales)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_mixed_linear", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(mixed_linear)

# %% tags=["hide-input"]
def eight_bits(x):
    return dequantize(*quantize(x, 8))

shares = []

def split(x, w):
    outlier = (x.abs() >= 6.0).flatten(0, -2).any(dim=0)
    shares.append((outlier.float().mean().item() * w.numel(), w.numel()))
    return mixed_linear(x, w)

layers = {"nothing": lambda x, w: x @ w.T,
          "weights alone": lambda x, w: x @ eight_bits(w).T,
          "weights and activations": lambda x, w: int8_linear(x, *quantize(w, 8)),
          "both, outliers kept out": split}
models = [pocket, *(with_outliers(pocket, pair, 20.0) for pair in pairs)]
print(f"{'in 8 bits':>23}  no outliers  two outlier features")
for name, linear in layers.items():
    shares.clear()
    plain, *large = (held_out_bits(with_linear(model, linear)) for model in models)
    print(f"{name:>23}  {plain:11.4f}  {min(large):.4f} to {max(large):.4f}")
kept, of = map(sum, zip(*shares))
print(f"kept out of 8 bits: {kept / of:.0%} of the weights")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Bits per byte. With outliers: the lowest and the highest of three pairs of features.
#
# </div>
#
# **The added loss comes from rounding the activations, and the split removes nearly all of it.** A quarter of the
# weights stays in float32, at threshold 10 [far fewer](../../site/further.md#lesson-21); the two features alone were
# not tried.
#
# ## The cache of one long text can outgrow the weights
#
# The first picture's cache stayed in 32 bits: beside weights in 4 bits it is a quarter of what is read, and it grows
# with the text. A layer keeps a key and a value of width d for each position and each of its **key heads**. [Grouped
# queries](../18_since_gpt2/18_since_gpt2.ipynb) have fewer of these, and a
# [window](../16_sparse_attention/16_sparse_attention.ipynb) keeps only the last positions. Both need a model trained
# with them; rounding does not.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `cache_bytes`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# How many bytes does the cache of one text take? `groups` is the number of key heads of a layer. `windows` says for
# each layer how many positions it keeps, None for all. With fewer than 16 bits each key and each value also has a
# scale of 16 bits. The result is a number; t may be 0.
#
# <details><summary>Hint 1: positions first</summary>
#
# How many positions does one layer hold after t? Add these up. All else is a factor.
#
# </details>
# <details><summary>Hint 2: by hand</summary>
#
# t = 10, groups = 1, d = 4, windows [None, 3]: 13 positions, and in each a key and a value of 4 numbers. In 16 bits
# these are 208 bytes, in 8 bits 104, and 52 for the scales.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "cache_bytes", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cache_bytes(t, groups, d, windows, bits=16):
    """The size of the keys and values of one text of t positions, in bytes.

    groups: heads of keys and values in each layer. d: width of one. windows: a list with an
    entry for each layer, None or a number of positions. bits: of each number.
    """
    ### BEGIN SOLUTION
    positions = sum(t if window is None else min(t, window) for window in windows)
    vectors = 2 * groups * positions                # keys and values
    scales = 0 if bits >= 16 else 16
    return vectors * (d * bits + scales) / 8
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_cache_bytes", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(cache_bytes)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Size of a cache in gigabytes against positions, both axes logarithmic. Four lines: 32 key heads; 8 key heads; 8 in 8 bits; 8 in 8 bits with windows. The first three are parallel, each below the one before. The fourth begins with the third, bends, and ends far below it. A dotted line marks the weights at 16 GB. The first line crosses it right of the middle, the second just before the right edge, the others stay below."}}
lengths = [1024 * 2 ** k for k in range(8)]
full, partly = [None] * 32, ([1024] * 3 + [None]) * 8
kinds = {"32 key heads, 16 bits": (32, full, 16), "8 key heads, 16 bits": (8, full, 16),
         "8 key heads, 8 bits": (8, full, 8), "and windows in 3 of 4 layers": (8, partly, 8)}
lines = {name: (lengths, [cache_bytes(t, heads, 128, kept, bits) / 1e9 for t in lengths])
         for name, (heads, kept, bits) in kinds.items()}
plots.curves(lines, "positions", "size of the cache (GB)", log="xy",
             landmarks={"the weights, 16 bits": 16}, named_at="left",
             title="Three savings on one cache")
plt.ylim(top=1000)
plt.legend(loc="upper left")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A model of 8 billion weights: 32 layers, heads of width 128. The last line adds windows of 1,024
# positions.
#
# </div>
#
# **In 16 bits, even a cache of 8 key heads can be larger than the weights.**
#
# ## A checked draft leaves the distribution as it is
#
# A pass over five positions computes more than a pass over one, but reads the weights only once. But it reads only
# tokens already written. So a cheap **draft model** guesses k tokens, and the large model checks them in one pass.
# This is a **round**:

# %%
plots.diagrams.speculative_round()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** k = 4. At each place, the pass's output judges the token after it. The third is refused, a *new*
# one is drawn, and all after it is thrown away: three tokens for one pass.
#
# </div>
#
# The text has to be distributed as if the large model had drawn it. At one place the draft draws x from its
# probabilities q; the large model's are p. If p(x) ≥ q(x), the draft proposes x no more often than the model would:
# keep it. Otherwise keep it with probability p(x)/q(x). What is drawn after a refusal?

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `accept`** &nbsp; fix · ★★☆ · 9 minutes · 4 points
#
# The cell returns `keep`, the chance with which each drafted token is kept, and `rest`, the probabilities for a draw
# after a refusal. With them the text is not distributed as the model's. Fix it. `keep` is 1 where q is 0. If p equals
# q at every token, `rest` is p.
#
# <details><summary>Hint 1: add it up</summary>
#
# Take p = (0.5, 0.5) and q = (0.8, 0.2). How often does token 0 come out: proposed and kept, and after a refusal? How
# often should it?
#
# </details>
# <details><summary>Hint 2: what is missing</summary>
#
# Token 0 is proposed and kept with probability 0.8 · 5/8 = 0.5, token 1 with 0.2. The remaining 0.3 is refused.
# Which token must receive it?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "accept", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accept(p, q):
    """With which chance a drafted token is kept, and what is drawn if it is not.

    p, q: (..., n), probabilities of the large model and of the draft. Returns two tensors:
    keep (..., n), and rest (..., n), whose last axis sums to 1.
    """
    keep = torch.where(q > 0, p / q, 1.0).clamp(max=1.0)
    ### BEGIN SOLUTION
    rest = (p - q).clamp(min=0.0)
    total = rest.sum(dim=-1, keepdim=True)
    rest = torch.where(total > 0, rest / total, p)
    ### STUDENT GETS
    # rest = p
    ### END SOLUTION
    return keep, rest

# %% nbgrader={"grade": true, "grade_id": "check_accept", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(accept)

# %% [markdown]
# <details><summary>A similar bug in public: read this once your check is green</summary>
#
# After a refusal, EAGLE lowered only the refused token's probability ([issue
# 20](https://github.com/SafeAILab/EAGLE/issues/20)). Right is $\max(0, p - q)$, divided by its sum ([Leviathan et al.,
# 2023](https://arxiv.org/abs/2211.17192), section 2.3).
#
# </details>
#
# **Why this is exact.** The token x is proposed and kept with probability
# $q(x) \min(1, p(x)/q(x)) = \min(p(x), q(x))$. A proposal is refused with probability
# $1 - \sum_x \min(p(x), q(x)) = \sum_x \max(p(x) - q(x), 0)$. `rest` is $\max(p - q, 0)$ divided by this same
# sum, so a refusal followed by x has the probability $\max(p(x) - q(x), 0)$. In all:
#
# $$\min(p(x), q(x)) + \max(p(x) - q(x), 0) = p(x) .$$
#
# This holds at each place, given the tokens before, and so for the whole text. For the first token after the prompt
# above, and a draft in 4 bits, your `accept` gives (computed, not drawn):

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three panels of bars for six tokens and all others: q of the draft in 4 bits, p of the model, and what comes out. The draft's bar of a new line is twice as long as the model's. What comes out looks exactly like p."}}
with torch.no_grad():
    p, q = (model(ids)[0, -1].cpu().double().softmax(dim=-1)
            for model in (pocket, four_bits))
keep, rest = accept(p, q)
refused = 1 - (q * keep).sum()
comes_out = q * keep + refused * rest
shown = p.topk(6).indices
summed = {name: torch.cat([x[shown], 1 - x[shown].sum(0, keepdim=True)])
          for name, x in (("draft, q", q), ("model, p", p), ("comes out", comes_out))}
plots.bars(summed, [*map(spoken, shown.tolist()), f"{len(p) - 6} others"],
           xlabel="probability", ylabel="")
plt.setp(plt.gcf().axes, xlim=(0, 0.6))
plt.show()
print(f"largest difference between what comes out and p: {(comes_out - p).abs().max():.0e}")
print(f"kept: {(q * keep).sum():.2f} of all proposals; the sum of min(p, q): "
      f"{torch.minimum(p, q).sum():.2f}")

# %% [markdown]
# **The draft changes how often a token is kept, and not the distribution.** The share that is kept is the **acceptance
# rate** $\alpha = \sum_x \min(p(x), q(x))$. If each drafted token is kept independently with the same probability α,
# the first i are all kept with probability $\alpha^i$. With the token drawn at the end, a round writes on average
#
# $$1 + \alpha + \dots + \alpha^k = \frac{1 - \alpha^{k+1}}{1 - \alpha}$$
#
# tokens ([Leviathan et al., 2023](https://arxiv.org/abs/2211.17192), section 3.1). In the player, make the draft worse:

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("draft")

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `speculative_generate`** &nbsp; ★★★ · 16 minutes · 6 points
#
# Write `count` tokens. In each round the draft, called on everything so far, proposes k tokens, one by one, each
# drawn from its probabilities. One pass of the model reads everything. Keep each proposal, in order, with its
# chance; at the first refusal draw from `rest` and end the round. If all k are kept, draw one more token from the
# model's probabilities after the last. Tokens beyond `count` are cut off.
#
# Everything random comes from `generator`. `finished_accept` may be used.
#
# <details><summary>Hint 1: which row of the logits</summary>
#
# Row i of the logits says what follows token i, both counted from 0. After f known tokens, the first drafted one is
# number f. Which row judges it, and which row comes after the last one?
#
# </details>
# <details><summary>Hint 2: draws</summary>
#
# `torch.multinomial(probabilities, 1, generator=generator)` draws one token. `torch.rand((), generator=generator,
# device=ids.device)` is below 0.3 in 30 of 100 cases.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "speculative_generate", "locked": false, "schema_version": 3, "solution": true, "task": false}
@torch.no_grad()
def speculative_generate(model, draft, ids, count, k, generator=None):
    """Go on with a text, with one pass of the model for up to k + 1 tokens.

    model, draft: functions of ids (1, t) that return logits (1, t, n); only the last row of
    the draft's counts. ids: (1, t), int64. Returns the new tokens, (1, count), int64.
    """
    ### BEGIN SOLUTION
    t = ids.shape[1]
    while ids.shape[1] < t + count:
        first, guess, q = ids.shape[1], ids, []
        for _ in range(k):
            q.append(draft(guess)[0, -1].softmax(dim=-1))                # (n,)
            token = torch.multinomial(q[-1], 1, generator=generator)     # (1,)
            guess = torch.cat([guess, token[None]], dim=1)
        p = model(guess)[0, first - 1:].softmax(dim=-1)                  # (k + 1, n)
        for i in range(k):
            keep, rest = finished_accept(p[i], q[i])
            chance = torch.rand((), generator=generator, device=ids.device)
            if chance >= keep[guess[0, first + i]]:
                break
        else:
            i, rest = k, p[k]
        token = torch.multinomial(rest, 1, generator=generator)
        ids = torch.cat([guess[:, :first + i], token[None]], dim=1)
    return ids[:, t:t + count]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_speculative_generate", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(speculative_generate)

# %% [markdown]
# <div class="card">
#
# **Prediction · `same_seed`** &nbsp; 1 minute · no points
#
# The pocket model draws 40 tokens one by one, and again with the same seed and a draft: itself in 4 bits. The two texts
#
# - **A.** differ, though both are draws from one distribution.
# - **B.** are the same, because the distribution is.
# - **C.** differ, because the draft is a worse model, and some of its taste remains.
#
# </div>

# %% nbgrader={"grade": false, "grade_id": "same_seed", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
same_seed = "A"
### STUDENT GETS
# same_seed = ...    # "A", "B" or "C"
### END SOLUTION

# %%
seeded = lambda: torch.Generator(ids.device).manual_seed(0)
plain = gpt2.generate_cached(pocket, ids, 40, generator=seeded())
drafted = speculative_generate(pocket, four_bits, ids, 40, 4, seeded())
for name, tokens in (("one by one", plain), ("with a draft", drafted)):
    print(f"{name}: {tokenizer.decode(tokens[0].tolist())!r}")

# %% nbgrader={"grade": true, "grade_id": "check_same_seed", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("same_seed", same_seed)

# %% [markdown]
# ## A draft pays if a round writes more than it costs
#
# We try three drafts: the model itself in 4 bits; its first two blocks of four; and **prompt lookup**, which copies
# what followed the latest earlier occurrence of the text's last tokens (q = 1: kept with probability p).

# %% tags=["hide-input"] mystnb={"image": {"alt": "Tokens per pass of the large model against k, the number of drafted tokens, 1, 2, 4 and 8. The model in 4 bits is highest and rises throughout, close to its formula. Its first two blocks and prompt lookup stay between 1 and 2; the formula of the blocks runs along their line."}}
@torch.no_grad()
def acceptance_rate(draft, texts):
    """The mean of Σ min(p, q) over the new tokens of texts (b, t)."""
    first = starts.shape[1] - 1
    p, q = (model(texts)[:, first:-1].softmax(dim=-1) for model in (pocket, draft))
    return torch.minimum(p, q).sum(dim=-1).mean().item()

drafts = {"4 bits": four_bits, "first two blocks": FirstBlocks(pocket, 2),
          "prompt lookup": Lookup(pocket.config.n)}
sizes, starts, new = (1, 2, 4, 8), passages[:3, :48], 64
per_pass, texts = {}, []
for name, draft in drafts.items():
    for k in sizes:
        runs = []
        for seed, start_ids in enumerate(starts[:, None]):
            counted = Counted(pocket)
            generator = torch.Generator(ids.device).manual_seed(seed)
            answer = speculative_generate(counted, draft, start_ids, new, k, generator)
            texts.append(torch.cat([start_ids, answer], dim=1))
            lengths = counted.lengths    # without the last round
            runs.append((lengths[-1] - lengths[0]) / (len(lengths) - 1))
        per_pass[name, k] = runs
rates = {name: acceptance_rate(drafts[name], torch.cat(texts))
         for name in ("4 bits", "first two blocks")}
formula = {(name, k): (1 - rate ** (k + 1)) / (1 - rate)
           for name, rate in rates.items() for k in sizes}
series = {name: (sizes, [statistics.mean(per_pass[name, k]) for k in sizes])
          for name in drafts}
series |= {f"formula, {name}": (sizes, [formula[name, k] for k in sizes]) for name in rates}
plots.curves(series, "drafted tokens k", "tokens per pass of the large model",
             landmarks={"no draft": 1.0}, title="Better drafts save more passes")
plt.show()
for name in drafts:
    runs, said = per_pass[name, 4], formula.get((name, 4))
    print(f"{name}, k = 4: {statistics.mean(runs):.1f} tokens a pass, "
          f"from {min(runs):.1f} to {max(runs):.1f}"
          + (f"; acceptance rate {rates[name]:.2f}, formula {said:.1f}" if said else ""))

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Means over three held-out prompts: 64 new tokens, temperature 1, one seed each. The last round,
# possibly cut off, is not counted.
#
# </div>
#
# **The better the draft, the more tokens a pass yields.** In 4 bits they are close to the formula, which assumes one
# α.
#
# But a draft costs time, too. If a call costs c passes of the large model, a round costs 1 + kc. Our draft in 4
# bits is multiplied as float32: c is 1. With two of four blocks and the output layer it is at least ½, with a lookup
# almost 0. If reading decided, in 4 bits c would be its MB over those of 32 bits (first picture).

# %% tags=["hide-input"]
costs = {"4 bits": ("4 bits, as float32", 1), "first two blocks": ("first two blocks", 0.5),
         "prompt lookup": ("prompt lookup", 0)}
rows = [(said, name, c) for name, (said, c) in costs.items()]
print("k = 4                          c  tokens a round  cost 1 + 4c  gain")
read = {way: sum(sum(parts.values()) for _, parts in made) for way, made in answers.items()}
rows.append(("4 bits, if reading decided", "4 bits", read["4 bits"] / read["32 bits"]))
for said, name, c in rows:
    tokens, cost = statistics.mean(per_pass[name, 4]), 1 + 4 * c
    print(f"{said:27} {c:4.2f}  {tokens:14.1f}  {cost:11.1f}  {tokens / cost:4.1f}")

def looking_up(count, g):
    return speculative_generate(here, Lookup(here.config.n), first, count, 4, g)

def looking_up_with_cache(count, g):
    return generate_with_lookup(here, first, count, 4, generator=g)

found = speeds({"no cache": lambda count, g: gpt2.generate(here, first, count, generator=g),
                "with a cache": with_cache(here), "lookup, no cache": looking_up,
                "lookup, with a cache": looking_up_with_cache})
print("measured on one prompt:")
for name, speed in found.items():
    print(f"{name:20} {speed:6.0f} tokens a second")

# %% [markdown]
# **By the formula, a draft pays only if c is below α**, since $\alpha + \dots + \alpha^k \le k\alpha$: 4 bits and two
# blocks [lose time](../../site/further.md#lesson-21). **On the one prompt timed, prompt lookup pays, with a cache less
# than without**, perhaps because a pass over five computes more. Without one, it gains more than 1.4, the mean of
# three. If reading decided, the draft in 4 bits would make the model 1.7 times as fast: computed, not measured.
#
# ## Optional: two weights in a byte
#
# Our sizes assume packing: alone in a byte, a 4-bit integer takes as much as an 8-bit one. So two share a byte, each
# in a half, a **nibble**.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `pack_nibbles`** &nbsp; ★★☆ · 6 minutes · 3 points
#
# Put two 4-bit integers, from −8 to 7, into each byte: numbers 0 and 1 of a row into the first, and so on, the first
# of a pair into the low half. Negative numbers are in two's complement: −1 is 1111. A row has an even length, which
# may be 0.
#
# <details><summary>Hint 1: what a byte of −3 looks like</summary>
#
# As int8, −3 is 11111101. Only its low half belongs in the result: `&`, `|` and `<<` work on bits.
#
# </details>
# <details><summary>Hint 2: a pair by hand</summary>
#
# −3 is 1101 and 5 is 0101. The pair (−3, 5) is 0101 1101 = 5 · 16 + 13 = 93. In which type is there room for 15 · 16?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "pack_nibbles", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack_nibbles(integers):
    """Two integers of 4 bits in each byte.

    integers: (..., i), int8, from -8 to 7. Returns (..., i/2), uint8.
    """
    ### BEGIN SOLUTION
    low, high = integers[..., 0::2] & 15, integers[..., 1::2] & 15
    return low.to(torch.uint8) | (high.to(torch.uint8) << 4)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_pack_nibbles", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(pack_nibbles)

# %% [markdown]
# <details><summary>A similar bug in public: read this once your check is green</summary>
#
# Keras shifted nibbles as int8, where 15 · 16 overflows. Weights came out corrupted on a TPU only; the cause is a
# hypothesis ([pull request 22338](https://github.com/keras-team/keras/pull/22338)).
#
# </details>

# %% [markdown]
# ## What you can do now
#
# The first formula again:
#
# | factor | idea | here | the text |
# |---|---|---|---|
# | bytes of weights | 8 bits, inputs too | ¼ of the matrices' bytes; loss 1.260, was 1.259 | may change |
# | | 4 bits, groups of 32 | 1/7; loss 1.285 | changes |
# | | outliers kept out of 8 bits | loss almost as before; at threshold 6, ¼ not rounded | may change |
# | bytes of cache | fewer key heads, 8 bits, windows | 69 GB become 2 at 131,072 positions, counted | not measured |
# | passes per token | a draft in 4 bits | 4.2 tokens a pass; pays only if reading decides | same distribution |
# | | prompt lookup | 1.4 tokens a pass; gains time on one prompt | same distribution |
#
# **A question to think about**
#
# <details><summary>The first picture is greedy. Why can no draft change its text?</summary>
#
# p has a single token. Any other is refused, and `rest` is p.
#
# </details>
#
# **Further reading**
#
# - **[Leviathan et al., *Fast inference from transformers via speculative decoding*,
#   2023](https://arxiv.org/abs/2211.17192)**.
# - [Dettmers et al., *LLM.int8()*, 2022](https://arxiv.org/abs/2208.07339).
# - [Frantar et al., *GPTQ*, 2022](https://arxiv.org/abs/2210.17323).
#
# **Next:** [lesson 22, *A model of your own*](../22_your_own/22_your_own.ipynb)
