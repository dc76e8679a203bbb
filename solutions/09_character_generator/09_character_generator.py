# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 9 · A character generator
#
# *Write like the text you read*
#
# This sentence stops inside a word, yet you can guess the next lett. If you can guess, you can write: guess a letter,
# append it, guess again. A table that counts letters can do both. When does a transformer guess better?
#
# | | |
# |---|---|
# | **You will build** | batches of random slices, a transformer that predicts the next byte, temperature and top-p, the loop that writes, and a fair measurement |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb), [6](../06_positions/06_positions.ipynb) and [7](../07_transformer_block/07_transformer_block.ipynb); from [lesson 8](../08_classifier/08_classifier.ipynb), the cross-entropy and the training recipe |
# | **It takes** | about 95 minutes: six exercises, 23 points, and two predictions |
# | **It computes** | for about half a minute in each of two trainings |
#
# The symbols are those of [the notation table](../../site/notation.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import math
import random
import re
import textwrap
from collections import Counter, defaultdict

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.datasets import generator_text
from helpers.device import device
from helpers.lesson import start
from helpers.parts.blocks import Transformer
from helpers.parts.generator import apply_temperature as finished_temperature
from helpers.parts.generator import bits_per_byte
from helpers.parts.generator import keep_top_k as finished_top_k
from helpers.parts.generator import keep_top_p as finished_top_p
from helpers.parts.masks import causal_mask
from helpers.parts.positions import PositionEmbedding
from helpers.progress import progress

check = start("09_character_generator")
torch.set_num_threads(1)    # the tensors here are too small to split across threads

# %% [markdown]
# ## A table that counts can write
#
# We read the prose of Python's reference manual as **bytes**, numbers from 0 to 255, so the vocabulary has n = 256
# entries. The last twentieth is **[held out](../../site/glossary.md#held-out-data)** as a validation set: no model
# trains on it, and each is judged by how well it predicts these bytes.
#
# <details><summary>A text of your own</summary>
#
# Replace the first line of the next cell by `text = open("my.txt", "rb").read()`, with at least 100 KB. Everything
# that the lesson says of its outputs is about the manual.
#
# </details>

# %%
text, _ = generator_text(places="embedded")
cut = len(text) * 19 // 20
data = torch.tensor(list(text), dtype=torch.uint8)
train, held_out = data[:cut], data[cut:]

def show(ids):
    """A row of bytes as text, a dot for each byte that is not printable."""
    return "".join(chr(i) if 32 <= i < 127 else "·" for i in map(int, ids))

print(f"{len(train):,} bytes to train on, {len(held_out):,} held out")

# %% [markdown]
# A table of **order 4** counts how often each byte followed each stretch of four bytes: an **n-gram model**. To write,
# it draws a byte with these frequencies, appends it, and draws again. Here it continues *The value of*.
#
# A byte to which a model gave the probability $p$ costs $-\log_2 p$ bits: 1/2 costs one bit, 1/256 eight. The mean cost
# is **[bits per byte](../../site/glossary.md#bits-per-byte)**. The picture shows it for tables that have read more and
# more of the text.
#
# <details><summary>What the table does with a rare stretch</summary>
#
# It mixes its counts with the prediction of the table of three bytes ([Witten and Bell,
# 1991](https://doi.org/10.1109/18.87000)):
#
# $$p \;=\; \frac{\text{count} + \text{kinds} \cdot p_\text{shorter}}{\text{total} + \text{kinds}}$$
#
# *Total* is how often the stretch occurred, *count* how often this byte followed it, and *kinds* how many different
# bytes did. A stretch that never occurred keeps $p_\text{shorter}$, which is mixed in the same way. Order 0 looks at
# no byte before, and its $p_\text{shorter}$ is 1/256.
#
# </details>

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bits per held-out byte against bytes read, from 2 KB to 4 MB on a logarithmic axis. One curve, the table of order 4, falls from 3.9 to 2.1, very little at first, and ends at a dotted vertical line, the end of the manual, at 0.24 MB. A dashed level line goes on to the right at the same height. To the right of the vertical line there is nothing else."}}
def counted(data, order):
    """How often each byte follows each stretch of bytes: {stretch: {byte: count}}."""
    table = defaultdict(Counter)
    for i in range(order, len(data)):
        table[data[i - order:i]][data[i]] += 1
    return table

def chances(tables, before, byte):
    """The probability of a byte after the bytes before it, by order 0, 1, 2, ...: a list."""
    p, found = 1 / 256, []
    for order, table in enumerate(tables):
        seen = table.get(before[len(before) - order:])
        if seen:
            p = (seen[byte] + len(seen) * p) / (seen.total() + len(seen))
        found.append(p)
    return found

sizes, by_size = [cut >> k for k in range(7, -1, -1)], []
for size in sizes:    # the last tables have read the whole training part
    tables = [counted(text[:size], order) for order in range(7)]
    asked = [chances(tables, text[i - 6:i], text[i]) for i in range(cut + 1, len(text))]
    by_size.append([-sum(map(math.log2, column)) / len(asked) for column in zip(*asked)])
by_order = by_size[-1]
by_size = [bits[4] for bits in by_size]

chance, story = random.Random(0), b"The value of "
for _ in range(220):
    weights = [chances(tables[:5], story, byte)[4] for byte in range(256)]
    story += bytes(chance.choices(range(256), weights))
print(textwrap.fill(story.decode(errors="replace"), 88))

def bits_over_bytes(series, title):
    """Bits per held-out byte against bytes read: the table's curve, and others."""
    series = {"table of order 4": (sizes, by_size)} | series
    ax = plt.subplots(figsize=(6, 3.8))[1]
    plots.curves(series, "bytes read", "bits per held-out byte", log="x", title=title, ax=ax)
    level = {"color": plots.COLOURS[0], "linestyle": (0, (4, 3)), "linewidth": 1}
    ax.plot([cut, 4e6], [by_order[4]] * 2, **level)
    ax.axvline(cut, color="#555555", linestyle=":", linewidth=1)
    ax.text(cut * 1.06, 4.45, "the whole manual, once", fontsize=8.5, va="top")
    ax.set(xlim=(1.5e3, 4e6), ylim=(1.8, 4.6))
    ax.set_xticks([1e4, 1e5, 1e6], labels=["10 KB", "100 KB", "1 MB"])
    ax.legend(loc="lower left")
    plt.show()

bits_over_bytes({}, "The more a table has read, the better it guesses")
print(", ".join(f"order {order}: {bits:.3f}" for order, bits in enumerate(by_order)))

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Lower is better; to give all 256 bytes the same probability costs 8 bits. Each point is a table
# that has read twice as much as the one before it. Printed: each order, after the whole training part.
#
# </div>
#
# **A table of four bytes needs 2.08 bits per byte**, and a longer memory does not help it. A second reading brings it
# nothing new. A transformer changes its weights a little in each step, and can go on reading. **When does it guess
# better?** You will build one, let it write, and draw its curve into this picture.
#
# ## The loss is the mean cost of a byte
#
# The models of this lesson are **[autoregressive](../../site/glossary.md#autoregressive)**: they predict each byte from
# the bytes before it. By the chain rule, the sum of the costs over a text is $-\log_2$ of the probability of the whole
# text. PyTorch's cross-entropy is a mean of $-\ln p$, in **[nats](../../site/glossary.md#nats)**; divided by ln 2 it is
# in bits.
#
# ## The transformer trains on random slices
#
# Each training step reads b slices of t + 1 bytes, whose starts are drawn at random. Input and target are the **same
# sequence, shifted by one**, as in lesson 5: a slice contains t inputs and their t targets. No prediction sees more
# than the t bytes before it.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `sample_batch`** &nbsp; ★☆☆ · 7 minutes · 2.5 points
#
# Draw slices from a text. Each position at which a slice of t + 1 bytes can begin has the same probability, including
# the first and the last. The rows of a batch are drawn independently, so a slice may occur twice. Draw with any
# function that takes the generator, such as `torch.randint`.
#
# <details><summary>Hint 1: how many starts there are</summary>
#
# A slice that begins at position s ends with byte s + t. The last byte of the data is number `len(data) - 1`.
# `torch.randint(high, size)` draws from 0 to high − 1; high itself is excluded.
#
# </details>
# <details><summary>Hint 2: all slices at once</summary>
#
# A column of starts plus a row of offsets is a table of positions: (batch, 1) + (t + 1,) gives (batch, t + 1).
# Indexing the data with this table gives a table of bytes. An embedding does not accept uint8: `.long()` converts to
# int64.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sample_batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sample_batch(data, batch, t, generator=None):
    """Random slices of a text, and the same slices one position later.

    data: (length,), bytes, on the CPU, at least t + 1. generator: a torch.Generator
    for torch.randint. Returns inputs and targets, both (batch, t), int64: target i is the
    byte after input i.
    """
    ### BEGIN SOLUTION
    starts = torch.randint(len(data) - t, (batch,), generator=generator)
    places = starts.unsqueeze(1) + torch.arange(t + 1)    # (batch, t + 1)
    slices = data[places].long()
    return slices[:, :-1], slices[:, 1:]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_sample_batch", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(sample_batch)

# %%
inputs, targets = sample_batch(train, 2, 40, torch.Generator().manual_seed(3))
for row in range(2):
    print(f"input  {show(inputs[row])}\ntarget {show(targets[row])}\n")

# %% [markdown]
# ## The model is lesson 7's stack with a causal mask
#
# A linear map turns each of the t vectors that leave the blocks into 256
# **[logits](../../site/glossary.md#logits)**:
#
# $$\text{ids } (b, t) \;\to\; \text{tokens } + \text{ positions } (b, t, e) \;\to\; \text{blocks}
# \;\to\; \text{logits } (b, t, n) .$$
#
# The logits at position i predict byte **i + 1**, and may depend on bytes 0 to i.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `CharTransformer`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Build the model from four parts with these names: `tokens`, an `nn.Embedding`; `positions`, a
# `PositionEmbedding(t_max, e)`; `transformer`, a `Transformer(e, h, depth, pre_norm=True)`; `to_logits`, an
# `nn.Linear` with a bias. The parts share no weights, and the `state_dict` contains nothing else. Keep `t_max` as an
# attribute: the loop that writes needs it.
#
# <details><summary>Hint 1: what each part takes and returns</summary>
#
# `nn.Embedding(rows, width)` turns ids (b, t) into (b, t, width). `PositionEmbedding` takes (b, t, e) and returns it
# with the positions added. `Transformer` takes x and a mask.
#
# </details>
# <details><summary>Hint 2: the mask</summary>
#
# `causal_mask(t, device)`, from lesson 5, is (t, t), True where a position may look. Here t is the length of the
# windows in this call, which can be shorter than t_max, and the device is the device of the ids.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "CharTransformer", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CharTransformer(nn.Module):
    """Predicts at every position what comes next, from what came before.

    n: how many different tokens. e: width. h: heads. depth: blocks. t_max: longest window.
    """

    def __init__(self, n, e, h, depth, t_max):
        super().__init__()
        ### BEGIN SOLUTION
        self.t_max = t_max
        self.tokens = nn.Embedding(n, e)
        self.positions = PositionEmbedding(t_max, e)
        self.transformer = Transformer(e, h, depth, pre_norm=True)
        self.to_logits = nn.Linear(e, n)
        ### END SOLUTION

    def forward(self, ids):
        """ids: (b, t), t ≤ t_max. Returns logits (b, t, n): at i, those of token i + 1."""
        ### BEGIN SOLUTION
        x = self.positions(self.tokens(ids))    # (b, t, e)
        x = self.transformer(x, causal_mask(ids.shape[1], ids.device))
        return self.to_logits(x)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_CharTransformer", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(CharTransformer)

# %% [markdown]
# ## 800 steps read the manual three times
#
# As in lesson 8, the embeddings start small, **[AdamW](../../site/glossary.md#adamw)** is the optimiser, and the
# learning rate warms up and then falls along half a cosine. **[Gradient
# clipping](../../site/glossary.md#gradient-clipping)** is new: if the gradients of all weights, as one vector, are
# longer than 1, they are scaled down to length 1. This limits the influence of a single batch.

# %%
@torch.no_grad()
def window_bits(model, data, t, every, temperature=1):
    """Bits for each prediction in windows that begin `every` bytes apart: (windows, t)."""
    model.eval()
    windows = data.unfold(0, t + 1, every).long()    # (windows, t + 1)
    bits = []
    for part in windows.to(device()).split(64):
        logits = model(part[:, :-1]).transpose(1, 2) / temperature    # (64, n, t)
        bits.append(bits_per_byte(F.cross_entropy(logits, part[:, 1:], reduction="none")))
    return torch.cat(bits).cpu()

# %% [markdown]
# **Press the stop button** (■) whenever you like: every cell below works with a partly trained model.

# %%
torch.manual_seed(0)
context, steps = 64, 800    # bytes of a window, steps of training
model = CharTransformer(256, 96, 4, 3, t_max=context).to(device())
with torch.no_grad():
    for part in model.modules():
        if isinstance(part, nn.Embedding):
            part.weight.mul_(0.1)    # PyTorch draws them with a standard deviation of 1
optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.05)
chance = torch.Generator().manual_seed(0)
losses = []    # one for each step, in bits
looks, kept = {}, {}    # by step: held-out bits, and a copy of the model

def rate(step):
    """The learning rate: up to 0.005 in 50 steps, then down to 0."""
    return 0.005 * min((step + 1) / 50, 0.5 + 0.5 * math.cos(math.pi * step / steps))

def train_step(model, optimiser, rate, batch):
    """One step on a pair (inputs, targets). Returns the loss before the step, in bits."""
    inputs, targets = (part.to(device()) for part in batch)
    loss = F.cross_entropy(model.train()(inputs).flatten(0, 1), targets.flatten())
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.param_groups[0]["lr"] = rate
    optimiser.step()
    return bits_per_byte(loss.item())

print(f"{sum(p.numel() for p in model.parameters()):,} parameters for {len(train):,} bytes")

# %%
try:
    for step in progress(range(len(losses), steps), "training"):
        batch = sample_batch(train, 16, context, chance)
        losses.append(train_step(model, optimiser, rate(step), batch))
        done = step + 1
        if done == 20 or done % 100 == 0:
            looks[done] = window_bits(model, held_out, context, context).mean().item()
        if done in (20, 100, 300, 800):
            kept[done] = copy.deepcopy(model)
except KeyboardInterrupt:
    print(f"Stopped after {len(losses)} of {steps} steps. Run this cell again to go on.")

# %%
for done, bits in looks.items():
    if done in kept:
        print(f"held out, after {done} steps: {bits:.3f} bits per byte")
print(f"the manual has been read {len(losses) * 16 * context / len(train):.1f} times")

# %% [markdown]
# **After three readings the transformer still needs some 0.15 bits more than the table.** What does it write?

# %% [markdown]
# ## The temperature sets how random the choice is
#
# Softmax turns the model's logits into probabilities. Which byte should come next?
# **[Greedy](../../site/glossary.md#greedy-decoding)** decoding takes the most probable byte. **Sampling** draws a
# byte at random with these probabilities. The logits can be divided by a
# **[temperature](../../site/glossary.md#temperature)** $T$ before the softmax:
#
# $$p_T(x) \;=\; \frac{\exp(z_x / T)}{\sum_{x'} \exp(z_{x'} / T)} .$$
#
# A temperature below 1 makes the most probable byte more probable, one above 1 less. As $T \to 0$, all the probability
# goes to the largest logit, so T = 0 means greedy.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `apply_temperature`** &nbsp; ★☆☆ · 6 minutes · 3 points
#
# Return new logits, even at temperature 1. At temperature 0, the largest logit of each row stays finite and all
# smaller ones become −∞, however close they are to it; ties for the largest: keep any of them. A negative temperature
# raises a `ValueError`. Do not call `finished_temperature` here.
#
# <details><summary>Hint 1: three cases</summary>
#
# Below 0, at 0, above 0. The last case is a single division; `/=` would change the caller's tensor. For the logits
# [2, 1] and T = 0.5 the result is [4, 2], and the first probability rises from 0.73 to 0.88.
#
# </details>
# <details><summary>Hint 2: greedy</summary>
#
# `argmax(dim=-1, keepdim=True)` gives the index of the largest logit in each row. Fill a tensor shaped like the
# logits with `-torch.inf`, and put a finite number at these indices with `scatter`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "apply_temperature", "locked": false, "schema_version": 3, "solution": true, "task": false}
def apply_temperature(logits, temperature):
    """Sharpen (below 1) or flatten (above 1) what a model predicts; 0 means greedy.

    logits: (..., n). temperature: a number, at least 0. Returns new logits, (..., n).
    """
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"A temperature cannot be negative; this one is {temperature}.")
    if temperature > 0:
        return logits / temperature
    best = logits.argmax(dim=-1, keepdim=True)    # (..., 1)
    return torch.full_like(logits, -torch.inf).scatter(-1, best, 0.0)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_apply_temperature", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(apply_temperature)

# %% [markdown]
# ## Top-p cuts off the tail
#
# The many improbable bytes are the **tail** of the distribution. Even a tail of 1 % gets one draw in a hundred, and the
# text has to continue after it. **[Top-k](../../site/glossary.md#top-k-sampling)** ([Fan, Lewis and Dauphin,
# 2018](https://arxiv.org/abs/1805.04833)) keeps the k largest logits and sets all others to −∞ (`finished_top_k`).
#
# No single k suits every place. Inside a word there is often only one way to continue; where a word begins there may
# be a dozen. **[Top-p](../../site/glossary.md#top-p-sampling)**, or nucleus sampling ([Holtzman et al.,
# 2020](https://arxiv.org/abs/1904.09751), section 3.1), lets the model decide: rank the tokens by probability, and
# keep the **nucleus**, the fewest tokens whose probabilities add up to p **or more**. With p = 0.8:
#
# | probability | 0.45 | 0.30 | 0.15 | 0.06 | 0.04 |
# |---|---|---|---|---|---|
# | sum so far | 0.45 | 0.75 | **0.90** | 0.96 | 1.00 |
# | kept? | yes | yes | **yes** | no | no |

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `keep_top_p`** &nbsp; ★★★ · 12 minutes · 4 points
#
# Keep the nucleus of each row. The logits in the nucleus keep their values and their places; those outside become −∞.
# Ties at the cut-off: keep any of them. However small p is, the most probable token stays; at p = 1 every token
# stays. Do not call `finished_top_p` here.
#
# <details><summary>Hint 1: which sum to look at</summary>
#
# The row *sum so far* of the table is a `cumsum`. The sums *before* each token are 0, 0.45, 0.75, 0.90 and 0.96. The
# first three tokens stay: which of the two rows of sums do you compare with 0.8? Treat p = 1 apart: in 32 bits a sum
# can be exactly 1 before the last token.
#
# </details>
# <details><summary>Hint 2: back into the old order</summary>
#
# `logits.sort(dim=-1, descending=True)` returns the sorted values and `order`: the value at rank r was at index
# `order[..., r]` before. To put a row of decisions back into the old order, use `scatter(-1, order, decisions)` on a
# tensor of booleans. `gather` goes the other way.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "keep_top_p", "locked": false, "schema_version": 3, "solution": true, "task": false}
def keep_top_p(logits, p):
    """Keep the fewest tokens whose probabilities add up to p or more; −∞ for all others.

    logits: (..., n), some may be −∞ already. p: above 0, at most 1. Returns (..., n).
    """
    ### BEGIN SOLUTION
    ranked, order = logits.sort(dim=-1, descending=True)
    chances = ranked.softmax(dim=-1)
    before = chances.cumsum(dim=-1) - chances    # what the more probable ones have together
    dropped = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before >= p)
    dropped &= p < 1    # at p = 1 everything stays, however `before` was rounded
    return logits.masked_fill(dropped, -torch.inf)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_keep_top_p", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(keep_top_p)

# %% [markdown]
# Set T = 2. How far must you lower p until a single byte is left after *expres*, and only plausible ones after *The␣*?

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("next-byte")

# %% [markdown]
# <details><summary>What to find</summary>
#
# At T = 2, p = 0.5 leaves only *s* after *expres*. After *The␣*, p = 0.7 leaves only letters and the underscore. At T
# = 1, p = 0.9 is low enough after both. A higher T flattens the distribution, so the same p keeps more bytes.
#
# </details>
#
# ## To write, sample one byte and append it
#
# Give the model the **last** `model.t_max` bytes of the text so far. Take the logits **of the last position**, apply
# temperature and filters, sample, append, repeat. Switch the model to evaluation mode for the loop, and back
# afterwards.

# %%
plots.diagrams.teaching_and_writing()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above, training: the true text goes in once, whatever the model would have written. This is
# **[teacher forcing](../../site/glossary.md#teacher-forcing)**. Below, writing: one pass for each byte, and each
# sampled byte (orange) is part of the next input.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `generate`** &nbsp; ★★★ · 14 minutes · 5.5 points
#
# Write the loop. Apply temperature first, then top-k, then top-p. All three are written for you:
# `finished_temperature(logits, temperature)`, `finished_top_k(logits, k)`, `finished_top_p(logits, p)`. If `top_k` or
# `top_p` is None, leave that filter out. Sample with the generator, for each row independently; any way of sampling
# counts, and a seed need not give the tokens that ours gives.
#
# <details><summary>Hint 1: one round of the loop</summary>
#
# `tokens[:, -model.t_max:]` is the window, (b, at most t_max). The model returns (b, t, n), of which the last
# position is (b, n).
#
# </details>
# <details><summary>Hint 2: sampling and appending</summary>
#
# `torch.multinomial(probabilities, 1, generator=generator)` draws one index for each row: (b, 1). With t_max = 3, the
# prompt [7, 8] and count = 3, the windows are [7, 8], then [7, 8, x], then [8, x, y], and the result is [x, y, z].
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "generate", "locked": false, "schema_version": 3, "solution": true, "task": false}
@torch.no_grad()
def generate(model, prompt, count, temperature=1.0, top_k=None, top_p=None, generator=None):
    """Continue a text, one token after the other.

    model: maps ids (b, t) to logits (b, t, n), t ≤ model.t_max. prompt: (b, t), t ≥ 1.
    count: how many tokens to draw, at least 1. generator: a torch.Generator.
    Returns (b, count): what was drawn. Afterwards the model is in its former mode.
    """
    ### BEGIN SOLUTION
    training = model.training
    model.eval()
    tokens = prompt
    for _ in range(count):
        logits = model(tokens[:, -model.t_max:])[:, -1]    # (b, n)
        logits = finished_temperature(logits, temperature)
        if top_k is not None:
            logits = finished_top_k(logits, top_k)
        if top_p is not None:
            logits = finished_top_p(logits, top_p)
        drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
        tokens = torch.cat([tokens, drawn], dim=1)
    model.train(training)
    return tokens[:, prompt.shape[1]:]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_generate", "locked": true, "points": 5.5, "schema_version": 3, "solution": false, "task": false}
check(generate)

# %% [markdown]
# This is what the model writes at T = 0.8, with the same random numbers, after 20, 100, 300 and 800 steps:

# %%
def written(model, prompt, count=400, **options):
    chance = torch.Generator(device()).manual_seed(1)
    ids = torch.tensor([list(prompt.encode())]).to(device())    # (1, t)
    ids = generate(model, ids, count, generator=chance, **options)
    return prompt + bytes(ids[0].tolist()).decode(errors="replace")

for done, young in kept.items():
    line = " ".join(written(young, "The value of ", 150, temperature=0.8).split())
    print(f"after {done} steps, {looks[done]:.2f} bits per byte")
    print(textwrap.fill(line, 88) + "\n")

# %% [markdown]
# **At these four steps the transformer guesses about as well as the tables of order 0, 1, 2 and 3.** It writes letters
# and spaces first, then short words such as *of* and *the*, then longer ones. None of it makes sense yet.

# %% [markdown]
# <div class="card">
#
# **Prediction · `greedy_text`** &nbsp; 1 minute · no points
#
# At temperature 0 the loop takes the most probable byte in each step. It continues *The value of* for 400 bytes. What
# does it write?
#
# - **A.** The model's most fluent text: no improbable byte can spoil it.
# - **B.** A phrase that is repeated until the end of the 400 bytes.
# - **C.** Frequent words from all over the manual, with no grammar between them.
# </div>

# %% nbgrader={"grade": false, "grade_id": "greedy_text", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
greedy_text = "B"
### STUDENT GETS
# greedy_text = ...    # "A", "B" or "C"
### END SOLUTION

# %%
def words(text):
    return re.findall("[a-z]{3,}", text.lower())

def invented(text):
    """The share of a text's words that the manual lacks, in words."""
    share = sum(word not in manual for word in words(text)) / len(words(text))
    return f"{share:.0%} of the words are not in the manual"

manual = set(words(text.decode(errors="replace")))
print(f"The table's text: {invented(story.decode(errors='replace'))}\n")
ways = {"greedy": {"temperature": 0}, "T = 0.5": {"temperature": 0.5},
        "T = 1": {}, "T = 1, p = 0.9": {"top_p": 0.9}, "T = 1.5": {"temperature": 1.5},
        "T = 1.5, p = 0.9": {"temperature": 1.5, "top_p": 0.9}}
for way, options in ways.items():
    sample = written(model, "The value of ", **options)
    print(f"----- {way} ({invented(sample)})")
    print("\n".join(textwrap.fill(line, 88) for line in sample.split("\n")) + "\n")

# %% nbgrader={"grade": true, "grade_id": "check_greedy_text", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("greedy_text", greedy_text)

# %% [markdown]
# **Greedy decoding repeats itself.** Large models do this too: the probability of a phrase rises with each repetition
# ([Holtzman et al., 2020](https://arxiv.org/abs/1904.09751), figure 4). **The higher the temperature, the more words
# are made up**, and p = 0.9 removes many of them. At T = 1 half of the words are made up; of the table's, 23 %.

# %% [markdown]
# <div class="card">
#
# **Prediction · `sharpened_bits`** &nbsp; 1 minute · no points
#
# The sample at T = 0.5 looks better than the samples at 1 and 1.5. So far the held-out bits have been measured at T =
# 1. What happens to them at T = 0.5, with all logits divided by 0.5 before the softmax?
#
# - **A.** They get lower: better samples come from better predictions.
# - **B.** They stay about the same, within 0.05: the ranking of the bytes does not change.
# - **C.** They get higher: a byte that was improbable gets even less probability.
# </div>

# %% nbgrader={"grade": false, "grade_id": "sharpened_bits", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
sharpened_bits = "C"
### STUDENT GETS
# sharpened_bits = ...    # "A", "B" or "C"
### END SOLUTION

# %%
for T in (0.5, 0.8, 1, 1.25, 2):
    bits = window_bits(model, held_out, context, context, T).mean()
    print(f"T = {T:g}: {bits:.3f} bits per byte")

# %% nbgrader={"grade": true, "grade_id": "check_sharpened_bits", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("sharpened_bits", sharpened_bits)

# %% [markdown]
# **Better samples do not mean better predictions.** The loss rewards **calibrated** probabilities: when the model says
# 10 %, it should be right one time in ten. With logits divided by 0.5, an improbable byte costs up to twice as many
# bits. So the look of a text does not say whether the transformer or the table guesses better. Bits do, if they are
# measured fairly.
#
# ## A fair measurement gives each byte its full context
#
# The table had its four bytes before every prediction, the transformer rarely its 64: the windows so far do not
# overlap, so the first prediction sees only one byte. The fair way is to slide the window by **one** byte at a time,
# and to count only its **last** prediction. Near the beginning of the text, use all bytes before:
#
# $$\text{bits} \;=\; -\frac{1}{N-1} \sum_{i=1}^{N-1} \log_2 p\big(x_i \mid x_{\max(0,\, i-t)}, \dots, x_{i-1}\big) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `sliding_window_bits`** &nbsp; ★★★ · 11 minutes · 4 points
#
# Compute this number. The model must be in evaluation mode while it is used. One window at a time is correct but
# slow; try to give the model many windows at once, as `window_bits` does. The result may be a number or a tensor of
# shape ().
#
# <details><summary>Hint 1: two parts</summary>
#
# The first window predicts bytes 1 to t, and all of its predictions count. Every further window starts one byte
# later, and only its last prediction counts. A text of at most t + 1 bytes has only the first window.
#
# </details>
# <details><summary>Hint 2: seven bytes</summary>
#
# With 7 bytes and t = 4, the first window predicts bytes 1 to 4. Two further windows predict byte 5 from bytes 1 to 4
# and byte 6 from bytes 2 to 5. Together these are six predictions. `data.unfold(0, 5, 1)` has three rows: bytes 0 to
# 4, 1 to 5 and 2 to 6. `.split(64)` returns the rows of a long text in batches.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sliding_window_bits", "locked": false, "schema_version": 3, "solution": true, "task": false}
@torch.no_grad()
def sliding_window_bits(model, data, t):
    """Bits per byte, each predicted from the t bytes before it, or all if there are fewer.

    model: maps ids (b, t) to logits (b, t, n). data: (length,), bytes, two or more.
    Returns the mean over bytes 1 to length − 1. Afterwards the model is in its former mode.
    """
    ### BEGIN SOLUTION
    training = model.training
    model.eval()
    data = data.long()
    head = data[: t + 1]    # the first window: all of its predictions count
    nats = F.cross_entropy(model(head[None, :-1])[0], head[1:], reduction="sum")
    if len(data) > t + 1:
        windows = data.unfold(0, t + 1, 1)[1:]    # each one byte later than the one before
        for part in windows.split(64):
            logits = model(part[:, :-1])[:, -1]
            nats = nats + F.cross_entropy(logits, part[:, -1], reduction="sum")
    model.train(training)
    return nats / (len(data) - 1) / math.log(2)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_sliding_window_bits", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(sliding_window_bits)

# %% [markdown]
# The table is ahead by some 0.15 bits. How much of that is short context?

# %%
apart = window_bits(model, held_out, context, context).mean().item()
sliding = float(sliding_window_bits(model, held_out.to(device()), context))
cost = len(held_out) - 1, context * (len(held_out) - context)    # positions to compute
print(f"windows that do not overlap: {apart:.3f} bits per byte, {cost[0]:,} positions")
print(f"sliding by one:              {sliding:.3f} bits per byte, {cost[1]:,}")
print(f"the table of order 4:        {by_order[4]:.3f} bits per byte")

# %% [markdown]
# **Full context is worth less than 0.02 bits, and the table stays ahead.** The fair number costs nearly t times the
# work; [lesson 15](../15_transformer_xl/15_transformer_xl.ipynb) looks for a way around it. Is the table ahead at every
# byte?
#
# ## Where a stretch of four is new, the transformer guesses better
#
# Slide by 16, count the last 16 predictions of each window, and compare the two byte by byte:

# %% tags=["hide-input"] mystnb={"image": {"alt": "A held-out passage of the manual in lines of equal length, in two colours. Blue, where the transformer needs fewer bits than the table: most square brackets, a 3, colons, a question mark, some capitals and first letters. Orange, where the table needs fewer: many letters in the middle and at the end of words, most of them light, and the A and Q of FAQ. Most spaces are almost white. About one cell in nine is underlined, among them three of the four brackets of each [[]] and several cells after them."}}
by_model = window_bits(model, held_out, context, 16)[:, -16:].flatten()
begin = 49    # the first byte that is counted; each is predicted from 49 to 64 bytes before
by_table = torch.tensor([-math.log2(p[4]) for p in asked])    # of held-out bytes 1, 2, ...
by_order_4 = by_table[begin - 1:][:len(by_model)]
places = range(cut + begin, cut + begin + len(by_model))
read = torch.tensor([sum(tables[4].get(text[i - 4:i], {}).values()) for i in places])
passage = slice(1064 - begin, 1548 - begin)
plots.surprise(bytes(held_out[begin:][passage].tolist()), (by_order_4 - by_model)[passage],
               across=44, darkest=8, label="bits that the transformer saves",
               title="Where each of the two needs fewer bits")
ax = plt.gcf().axes[0]
for place in (read[passage] == 0).nonzero().flatten().tolist():    # underline what is new
    i, j = divmod(place, 44)
    ink = ax.texts[place].get_color()
    ax.plot([j + 0.15, j + 0.85], [i + 0.9] * 2, "-", color=ink, linewidth=1.2)
plt.show()
print("the four bytes before")
for name, these in {"never read": read == 0, "1 to 10 times": (0 < read) & (read <= 10),
                    "11 to 100": (10 < read) & (read <= 100), "more": read > 100}.items():
    print(f"{name:>13} {these.sum():>6,} bytes: table {by_order_4[these].mean():.2f}, "
          f"transformer {by_model[these].mean():.2f}")
print(f"the passage above: table {by_order_4[passage].mean():.2f}, "
      f"transformer {by_model[passage].mean():.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Blue: the transformer needed fewer bits; orange: the table did; ¶ is the end of a line.
# Underlined: the training part lacks the four bytes before. Printed: mean bits, by how often it has these four. The
# passage is not typical: here the transformer is ahead.
#
# </div>
#
# **Where the four bytes before are new, the transformer is ahead; where they have been read up to a hundred times, the
# table is.** At the second bracket of `[[]]` the table knows only the last three bytes or fewer; at the *A* and *Q* of
# *FAQ* it knows all four. After more than a hundred occurrences the two are nearly level.
#
# ## After ten readings, a transformer passes the table
#
# Do more readings help? The ladder's model is narrower than yours (e = 64, as in lesson 7). It reads the manual five
# times, in 1,200 steps:

# %% tags=["hide-input"]
from helpers.ladder import Ladder

ladder = Ladder(check)
model_class = ladder.own(CharTransformer)
torch.manual_seed(0)
ladder.climb(model_class(256, 64, 4, 3, t_max=64), samples=False)

# %% [markdown]
# The table is still ahead. With twice as many windows in each step, and so twice the computation, the same model reads
# the manual ten times. Here is the picture from the beginning, with all three:

# %% tags=["hide-input"] mystnb={"image": {"alt": "The picture from the beginning with three curves. The table's falls from 3.9 to 2.1 at the dotted line, where the manual has been read once, and goes on level. Your transformer's lies far to the right of it and falls from 4.5 at 20 KB to 2.2 at 800 KB, above the level line. The two points of the ladder's model come after it: 2.2 at 1.2 MB, above the level line, and 2.0 at 2.5 MB, below it."}}
def read_by(steps, windows=16):
    return steps * windows * context

ladder_runs = recorded("ladder")["result"]["bits"]
ten = sum(ladder_runs["09_character_generator, twice the windows"]) / 3
bits_over_bytes({
    "your transformer": ([read_by(done) for done in looks], list(looks.values())),
    "the ladder's model": ([read_by(1200), read_by(1200, 32)], [ladder.score.bits, ten]),
}, "The transformer passes the table between five and ten readings")

novels, larger = recorded("austen"), recorded("pocket_austen")
fifth = read_by(novels["settings"]["steps"]) / novels["data"]["training_bytes"]
nine = larger["settings"]["tokens"] / larger["data"]["training_tokens"]
print(f"{'':34}times read   bits per byte")
for name, times, bits in (
    (f"the manual, {cut / 1e6:.2f} MB: table", 1, by_order[4]),
    ("your transformer", read_by(len(losses)) / cut, sliding),
    ("the ladder's model", read_by(1200) / cut, ladder.score.bits),
    ("the same, twice the windows", read_by(1200, 32) / cut, ten),
    (f"Austen, {novels['data']['training_bytes'] / 1e6:.2f} MB: table", 1,
     min(novels["result"]["tables"])),
    ("a transformer like yours", fifth, novels["result"]["held_out_bits"]),
    ("the larger one of lesson 12", nine, larger["result"]["held_out_bits_per_byte"]),
):
    print(f"{name:>32} {times:11.1f} {bits:15.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The table's points are finished models. Yours are snapshots of one run, whose learning rate is 0
# only at the last; their windows do not overlap. The ladder's two points are finished runs, joined by a line; ten
# readings: the mean of three recorded runs. Austen: recorded, one run each; table: best of orders 0 to 7.
#
# </div>
#
# **At the same number of bytes read, your unfinished transformer is behind the table. But where the text ends, the
# table stops learning. A transformer can learn from reading again: the ladder's passes the table between five and ten
# readings.** Yours stopped after three.
#
# On Jane Austen's six novels, a larger transformer is also ahead, after nine readings; but it reads tokens, and began
# with the weights of a model of Python code. [Measured further](../../site/further.md#lesson-9) compares the two on
# Wikipedia.
#
# So when does a transformer beat a table that counts? **On a text as small as this, after more than five readings;
# after ten, it did.** Where the four bytes before were new, yours was ahead after three. Lesson 10 builds a transformer
# that reads one text and writes another.

# %% [markdown]
# ## What you can do now
#
# You can train a language model on a text, sample from it with temperature, top-k and top-p, measure fairly how many
# bits per byte it needs, and compare it with a table that counts.
#
# **A question to think about**
#
# <details><summary>One model predicts bytes, with a loss of 1.5 nats per byte. Another predicts pieces of text, 3
# bytes long on average, with a loss of 4.2 nats per piece. On the same text, which one predicts better?</summary>
#
# The second: 4.2 nats for 3 bytes are 1.4 nats per byte. The second model needs 2.02 bits per byte, the first 2.16.
# However a model cuts the text into pieces, its total loss can be divided by the number of bytes, so any two models
# can be compared on the same text. Lesson 11 cuts a text into such pieces.
#
# </details>
#
# **Further reading**
#
# - **[Holtzman et al., *The curious case of neural text degeneration*, 2020](https://arxiv.org/abs/1904.09751)**: on
#   the repetitions of greedy decoding; section 3 introduces top-p.
#
# **Next:** [lesson 10, *Encoder and decoder*](../10_encoder_decoder/10_encoder_decoder.ipynb)
