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
# append it, guess again. You build a model that does both, measure how well it guesses, and take it apart, one piece
# at a time.
#
# | | |
# |---|---|
# | **You will build** | batches of random slices, a transformer that predicts the next byte, temperature and top-p, the loop that writes, and a fair measurement |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb), [6](../06_positions/06_positions.ipynb) and [7](../07_transformer_block/07_transformer_block.ipynb); from [lesson 8](../08_classifier/08_classifier.ipynb), the cross-entropy and the training recipe |
# | **It takes** | about 120 minutes: seven exercises, 25 points |
# | **It computes** | for about half a minute in one cell, 10 to 20 seconds in each of two others; you may stop any of them |
#
# The symbols are those of [the notation table](../../site/notation.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import gzip
import lzma
import math
import textwrap

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
# ## A text, and a question about every byte of it
#
# The text is the prose of Python's own reference manual, which is already on your machine. We read it as **bytes**,
# numbers from 0 to 255, so the vocabulary has n = 256 entries. Up to the section *Without one piece*, the code also
# works with a text file of your own, of at least 100 KB: `text = open("my.txt", "rb").read()`.
#
# The last twentieth of the text is **[held out](../../site/glossary.md#held-out-data)** as a validation set. The
# model never trains on this part; we judge the model by how well it predicts it.

# %%
text, _ = generator_text(places="embedded")
cut = len(text) * 19 // 20
data = torch.tensor(list(text), dtype=torch.uint8)
train, held_out = data[:cut], data[cut:]
counts = torch.bincount(train, minlength=256)
print(textwrap.fill(text[4000:4300].decode(errors="replace"), 88))

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bars for the 30 most frequent bytes of the text. The space has nearly 16 per cent; the letters e, t, a, n and i come next. The last three, two brackets and the letter T, are below half a per cent."}}
def show(ids):
    """A row of bytes as text, a dot for each byte that is not printable."""
    return "".join(chr(i) if 32 <= i < 127 else "·" for i in map(int, ids))

def named(ids):
    """A name for each byte: ␣ the space, ¶ the end of a line, · what is not ASCII."""
    return ["␣" if i == 32 else "¶" if i == 10 else show([i]) for i in map(int, ids)]

frequent = counts.argsort(descending=True)[:30]
plt.figure(figsize=(6, 3.6))
plt.bar(range(30), 100 * counts[frequent] / len(train), color=plots.COLOURS[0])
plt.xticks(range(30), named(frequent))
plt.grid(False, axis="x")
plt.ylabel("per cent of the bytes")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One bar for each of the 30 most frequent bytes; ␣ is the space and ¶ the end of a line. About one
# byte in six is a space.
#
# </div>
#
# The language model of this lesson is **[autoregressive](../../site/glossary.md#autoregressive)**: it predicts each
# byte from the bytes before it. By the chain rule of probability, the product of these predictions is the probability
# of the whole text:
#
# $$p(x_0, \dots, x_{N-1}) \;=\; \prod_{i=0}^{N-1} p(x_i \mid x_0, \dots, x_{i-1}) .$$
#
# Each factor is one prediction. We leave out the first factor, because there is no byte before $x_0$. Input and target
# are the **same sequence, shifted by one**, as in lesson 5: a slice of t + 1 bytes contains t inputs and their t
# targets. Our model sees at most the last t bytes.

# %% [markdown]
# **What the checks require.** In exercises 2 to 5 and 7, create every new tensor on the device of the inputs. A batch
# of a single row and a window of a single byte must work too.
#
# ## Random slices
#
# Each training step reads b slices of t + 1 bytes, whose starts are drawn at random.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `sample_batch`** &nbsp; ★☆☆ · 7 minutes · 2.5 points
#
# Draw slices from a text. Each position at which a slice of t + 1 bytes can begin has the same probability, including
# the first and the last. The rows of a batch are drawn independently of each other, so a slice may occur twice. Draw
# with any function that takes the generator, such as `torch.randint`.
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
inputs, targets = sample_batch(train, 4, 40, torch.Generator().manual_seed(3))
for row in range(4):
    print(f"input  {show(inputs[row])}\ntarget {show(targets[row])}\n")

# %% [markdown]
# ## Bits
#
# PyTorch's cross-entropy is a mean of $-\ln p$, in **[nats](../../site/glossary.md#nats)**. With the logarithm to base
# 2 it is in **bits**. `bits_per_byte` divides a loss by ln 2, which converts nats to [bits per
# byte](../../site/glossary.md#bits-per-byte).
#
# $$\text{bits per byte} \;=\; -\frac{1}{N-1} \sum_{i=1}^{N-1} \log_2 p(x_i \mid x_0, \dots, x_{i-1}),
# \qquad \log_2 p = \frac{\ln p}{\ln 2} .$$
#
# A model that gives all 256 bytes the same probability needs 8 bits per byte, as many as a byte has on a disk:

# %% tags=["nbval-check-output"]
class NoOpinion(nn.Module):
    """A model for which every byte is as probable as any other."""

    t_max = 64

    def forward(self, ids):
        return torch.zeros(*ids.shape, 256, device=ids.device)

loss = F.cross_entropy(NoOpinion()(inputs).flatten(0, 1), targets.flatten())
print(f"a model without an opinion: {loss:.3f} nats, "
      f"{bits_per_byte(loss):.3f} bits per byte")

# %% [markdown]
# ## Landmarks
#
# Is 3 bits per byte good? Six landmarks to compare with:
#
# - **8 bits**: all 256 bytes are equally probable.
# - **the alphabet**: the m bytes that occur in the training part are equally probable: $\log_2 m$ bits.
# - **order 0**: the probability of each byte is its frequency in the training part.
# - **order 1**: the probability of each byte is its frequency after the preceding byte, from a table of byte pairs.
# - **gzip** and **xz**, two compression programs: we compress the training part alone, and then the training part
#   followed by the held-out part. The landmark is the increase in compressed size, in bits per held-out byte.
#
# An arithmetic coder ([Witten, Neal and Cleary, 1987](https://doi.org/10.1145/214762.214771)) turns a language model
# into a compressor too. The compressed text has almost exactly as many bits per byte as the model needs.

# %%
def bits_of(counts):
    """-log2 of the frequencies in each row, with 0.1 added to every count."""
    counts = counts + 0.1
    return -(counts / counts.sum(dim=-1, keepdim=True)).log2()

def added(pack):
    """Bits that the held-out part adds to the compressed text, per held-out byte."""
    return 8 * (len(pack(text)) - len(pack(text[:cut]))) / len(held_out)

pairs = torch.bincount(256 * train[:-1].long() + train[1:], minlength=256 * 256)
seen = held_out.long()
missing = (pairs.view(256, 256)[seen[:-1], seen[1:]] == 0).sum()
landmarks = {
    "8 bits: any byte": 8.0,
    "log₂ of the alphabet": math.log2((counts > 0).sum()),
    "order 0": bits_of(counts)[seen].mean().item(),
    "order 1": bits_of(pairs.view(256, 256))[seen[:-1], seen[1:]].mean().item(),
    "gzip -9": added(lambda data: gzip.compress(data, 9)),
    "xz -9": added(lambda data: lzma.compress(data, preset=9)),
}
for name, value in landmarks.items():
    print(f"{name:>22}  {value:.3f}")
window = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 32 * 1024}]
in_window = added(lambda data: lzma.compress(data, filters=window))
print(f"xz with a window of 32 KB: {in_window:.3f}")
print(f"{missing} of {len(seen) - 1:,} held-out pairs are missing from the table of order 1")

# %% [markdown]
# Without the 0.1, a held-out pair missing from the table would have probability 0, and −log₂ 0 is infinite.

# %% [markdown]
# ## The model
#
# The blocks of the model get a causal mask, and a linear map turns each of the t vectors into 256
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
# `PositionEmbedding(t_max, e)`; `transformer`, a `Transformer(e, h, depth, pre_norm=True)`; `to_logits`, an `nn.Linear`
# with a bias. The parts share no weights, and the `state_dict` contains nothing else. Keep `t_max` as an attribute: the
# loop that writes needs it. Gradients must flow to all weights.
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
# Does the model really look only backwards? The leak map of [lesson 5](../05_masking/05_masking.ipynb) shows how fast
# output i changes when the embedding vector of byte j changes. A [hook](../../site/glossary.md#hook) records these
# vectors. A gradient cannot see a leak through a step function such as argmax, whose slope is 0. So the cell also
# replaces each byte in turn, and counts how many outputs at earlier positions change: none should.

# %% tags=["hide-input"] mystnb={"image": {"alt": "A leak map of 8 by 8 cells, output against input. Every cell on and below the diagonal has a number; the cells above the diagonal are hatched: exactly zero."}}
def leak_map(model, ids):
    """(t, t): the largest slope of output i with respect to the embedded byte j."""
    kept = []
    hook = model.tokens.register_forward_hook(lambda layer, given, x: kept.append(x))
    logits = model(ids)    # (1, t, n)
    hook.remove()
    slopes = [torch.autograd.grad(logits[0, i, c], kept[0], retain_graph=True)[0]
              for i in range(ids.shape[1]) for c in range(logits.shape[2])]
    return torch.stack(slopes).abs().amax(dim=(1, 3)).view(*logits.shape[1:], -1).amax(dim=1)

torch.manual_seed(0)
fresh = CharTransformer(16, 12, 3, 2, t_max=8).to(device())
places = torch.arange(8, device=device())
ids = places[None]    # (1, 8)
leak = leak_map(fresh, ids)
plots.heat(leak, blank_zeros=True, row_label="output i", column_label="input j", bar=True,
           ax=plt.subplots(figsize=(4.2, 3.6), layout="compressed")[1])
plt.show()
with torch.no_grad():
    # the outputs before byte j, twice: for ids, and with byte j replaced by byte j + 8
    both = [(fresh(ids)[:, :j], fresh(ids + 8 * (places == j))[:, :j]) for j in range(8)]
print("largest slope above the diagonal:", leak.triu(1).max().item())
changed = sum((a != b).any(-1).sum().item() for a, b in both)
print("outputs that a later byte changes:", changed)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each number is the largest absolute derivative of any logit at position i with respect to any
# component of byte j's vector. Hatched cells are exactly zero. If a model of yours ever predicts suspiciously well,
# first run both tests: the leak map and the replacement of bytes.
#
# </div>

# %% [markdown]
# ## Training, with a stop button
#
# As in lesson 8, the embeddings start small, **[AdamW](../../site/glossary.md#adamw)** is the optimiser, and the
# learning rate warms up and then falls along half a cosine. **[Gradient
# clipping](../../site/glossary.md#gradient-clipping)** is new: the gradients of all weights form one long vector.
# If this vector is longer than 1, it is scaled down to length 1. This limits the influence of a single batch.
#
# The next function returns the bits of **each prediction in each window**.

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
losses, looks = [], []    # a loss for each step, in bits; (step, held-out bits) now and then
snapshots = {}            # copies of the model, by the number of steps

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

print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %%
try:
    for step in progress(range(len(losses), steps), "training"):
        batch = sample_batch(train, 16, context, chance)
        losses.append(train_step(model, optimiser, rate(step), batch))
        if step + 1 in (20, 100, 300):
            snapshots[step + 1] = copy.deepcopy(model)
        if step % 100 == 99:
            bits = window_bits(model, held_out, context, context).mean().item()
            looks.append((step + 1, bits))
except KeyboardInterrupt:
    print(f"Stopped after {len(losses)} of {steps} steps. Run this cell again to go on.")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bits per byte against training steps, with six horizontal landmarks. The training curve starts between 5 and 6, falls below order 0 within some thirty steps and below order 1 (3.5) within a hundred and fifty, then below gzip (2.5), and ends a little below xz (2.0). The held-out curve lies above it and ends near 2.2, between gzip and xz."}}
def learning_curve(series, landmarks, steps):
    ax = plt.subplots(figsize=(6, 4.4))[1]
    plots.curves(series, "step", "bits per byte", landmarks=landmarks, ax=ax)
    ax.set(xlim=(0, 1.38 * steps), ylim=(0, 8.8))    # room on the right for names
    ax.set_xticks([tick for tick in ax.get_xticks() if tick <= steps])
    ax.legend(loc="lower left")

def smooth(values, width=25):
    """Means over `width` steps, each at the middle of its steps."""
    parts = torch.tensor(values[: len(values) // width * width]).view(-1, width)
    return (torch.arange(len(parts)) + 0.5) * width, parts.mean(dim=1)

series = {"training": smooth(losses)}
if looks:
    series["held out"] = tuple(zip(*looks))
learning_curve(series, landmarks, steps)
plt.show()
if looks:
    print(f"held out, after {looks[-1][0]} steps: {looks[-1][1]:.3f} bits per byte; "
          f"gzip {landmarks['gzip -9']:.3f}, xz {landmarks['xz -9']:.3f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The training curve consists of means over 25 steps; a circle marks every fourth. By the end, the
# model has read each training byte more than three times on average, and predicts the training text better than new
# text. So only the held-out curve can be compared with gzip and xz.
#
# </div>
#
# On the held-out part the model beats gzip, which copies only from the last 32 KB, but not xz, which copies from the
# whole training text. Limited to 32 KB, xz needs 2.30 bits, more than the model.

# %% [markdown]
# ## Drawing the next byte
#
# Softmax turns the model's logits into probabilities. Which byte should come next?
# **[Greedy](../../site/glossary.md#greedy-decoding)** decoding takes the most probable byte. **Sampling** draws a byte
# at random with these probabilities. Now and then an improbable byte is drawn, and the text has to continue after it.
#
# The **[temperature](../../site/glossary.md#temperature)** $T$ sets how random the choice is. The logits are divided by
# $T$ before the softmax:
#
# $$p_T(x) \;=\; \frac{\exp(z_x / T)}{\sum_{x'} \exp(z_{x'} / T)} .$$
#
# $T = 1$ changes nothing. Below 1 the most probable byte becomes more probable; above 1 it becomes less probable. As
# $T \to 0$, all the probability goes to the largest logit, so T = 0 is defined to mean greedy.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `apply_temperature`** &nbsp; ★☆☆ · 6 minutes · 3 points
#
# Return a new tensor of logits, even at temperature 1, and leave the input unchanged. At temperature 0, the largest
# logit of each row stays finite and all smaller ones become −∞, however close they are to it. If several logits tie for
# the largest, keep one of them or all. A negative temperature raises a `ValueError`. Do not call `finished_temperature`
# here. Above temperature 0, gradients must flow to the logits.
#
# <details><summary>Hint 1: three cases</summary>
#
# Below 0, at 0, above 0. The last case is a single division; `/=` would change the caller's tensor. For the logits [2,
# 1] and T = 0.5 the result is [4, 2], and the first probability rises from 0.73 to 0.88.
#
# </details>
# <details><summary>Hint 2: greedy</summary>
#
# `argmax(dim=-1, keepdim=True)` gives the index of the largest logit in each row. Fill a tensor shaped like the logits
# with `-torch.inf`, and put a finite number at these indices with `scatter`.
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

# %% mystnb={"image": {"alt": "Probabilities of ten possible next bytes after the words returns the value of the f, in three panels, one for each temperature. The bytes o, u and i have the longest bars. At temperature 0.5, o has more than half, and the three together nearly all. At 1 the three bars are closer in length; at 2 they are closer still, and the other bars have grown."}}
def as_ids(prompt):
    return torch.tensor([list(prompt.encode())]).to(device())    # (1, t)

@torch.no_grad()
def next_logits(prompt):
    """What the model says about the byte after the prompt: (n,)."""
    return model.eval()(as_ids(prompt)[:, -context:])[0, -1]

logits = next_logits("returns the value of the f")
top = logits.topk(10).indices
shares = {f"T = {T:g}": apply_temperature(logits, T).softmax(-1)[top] for T in (0.5, 1, 2)}
plots.bars(shares, named(top), "probability", "next byte")
plt.setp(plt.gcf().axes, xlim=(0, 1))
plt.show()
for T in (0.5, 1, 2):
    rest = 1 - shares[f"T = {T:g}"].sum().item()
    print(f"T = {T:g}: {rest:.1%} for the other 246 bytes")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The ten most probable bytes after "returns the value of the f", in the same order in all panels.
# At T = 2 about one draw in six is one of the other 246.
#
# </div>

# %% [markdown]
# ## Cutting off the tail
#
# The many improbable bytes are the **tail** of the distribution. Even at T = 1 the 246 bytes outside the top ten have
# 0.6 % of the probability here: in 400 such steps, expect two or three draws from this tail. So cut off the tail before
# you sample. **[Top-k](../../site/glossary.md#top-k-sampling)** ([Fan, Lewis and Dauphin,
# 2018](https://arxiv.org/abs/1805.04833)) keeps the k largest logits and sets all others to −∞ (`finished_top_k`).
#
# But how large should k be? Inside a word there is often only one way to continue; where a word begins there may be a
# dozen. No single k suits both. **[Top-p](../../site/glossary.md#top-p-sampling)**, or nucleus sampling ([Holtzman et
# al., 2020](https://arxiv.org/abs/1904.09751), section 3.1), lets the model decide: rank the tokens by probability, and
# keep the **nucleus**, the fewest tokens whose probabilities add up to p **or more**.
#
# An example with p = 0.8:
#
# | probability | 0.45 | 0.30 | 0.15 | 0.06 | 0.04 |
# |---|---|---|---|---|---|
# | sum so far | 0.45 | 0.75 | **0.90** | 0.96 | 1.00 |
# | kept? | yes | yes | **yes** | no | no |
#
# The third token crosses the threshold and is kept: without it the sum would be only 0.75.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `keep_top_p`** &nbsp; ★★★ · 12 minutes · 4 points
#
# Keep the nucleus of each row. The logits in the nucleus keep their values and their places; those outside become −∞.
# If several equal logits lie at the cut-off, you may keep some or all of them. However small p is, the most probable
# token stays; at p = 1 every token stays. Do not call `finished_top_p` here. Gradients must flow to the logits that
# stay, and the input stays unchanged.
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

# %% tags=["hide-input"]
print(f"{'after':>34}   kept at p = 0.9")
for prompt in ("the value of the expres", "the value of the expression ",
               "If the name of the obj", "If the name of the object is ", "The "):
    kept = keep_top_p(next_logits(prompt), 0.9)
    order = kept.argsort(descending=True)[: kept.isfinite().sum()]
    print(f"{prompt!r:>34}   {len(order):>2}: {show(order)[:30]}")

# %% [markdown]
# Inside these two words one byte is kept; where a new word begins, more than a dozen are.
#
# Set T = 2. How far must you lower p until only plausible next bytes are left? Compare *expres* with *The*.

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("next-byte")

# %% [markdown]
# <details><summary>What to find</summary>
#
# At T = 2, p = 0.5 leaves only *s* after *expres*. After *The*, p = 0.7 leaves only bytes that could begin a word.
# At T = 1, p = 0.9 is low enough after both. A higher T flattens the distribution, so the same p keeps more bytes.
#
# </details>
#
# ## Writing

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
#
# Now the loop. Give the model the text so far, take the logits **of the last position** (earlier positions predict
# bytes that are already in the text), apply temperature and filters, sample, append, repeat. If the text is longer than
# `model.t_max`, the model reads the **last** `t_max` bytes. Switch the model to evaluation mode for the loop.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `generate`** &nbsp; ★★★ · 14 minutes · 5.5 points
#
# Write the loop. Apply temperature first, then top-k, then top-p. All three are written for you:
# `finished_temperature(logits, temperature)`, `finished_top_k(logits, k)`, `finished_top_p(logits, p)`. If `top_k` or
# `top_p` is None, leave that filter out. Sample with the generator, for each row independently; any way of sampling
# counts, and a seed need not give the tokens that ours gives. Leave the prompt unchanged.
#
# <details><summary>Hint 1: one round of the loop</summary>
#
# `tokens[:, -model.t_max:]` is the window, (b, at most t_max). The model returns (b, t, n), of which the last position
# is (b, n).
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
def written(prompt, count=400, **options):
    chance = torch.Generator(device()).manual_seed(1)
    ids = generate(model, as_ids(prompt), count, generator=chance, **options)
    return prompt + bytes(ids[0].tolist()).decode(errors="replace")

def repeated(text, length=20):
    """The share of stretches of this many characters that have occurred before."""
    stretches = [text[k:k + length] for k in range(len(text) - length + 1)]
    return 1 - len(set(stretches)) / len(stretches)

ways = {"greedy": {"temperature": 0}, "T = 0.5": {"temperature": 0.5},
        "T = 1": {}, "T = 1, p = 0.9": {"top_p": 0.9}, "T = 1.5": {"temperature": 1.5},
        "T = 1.5, p = 0.9": {"temperature": 1.5, "top_p": 0.9}}
for way, options in ways.items():
    story = written("The value of ", **options)
    print(f"----- {way} ({repeated(story):.0%} of it repeats)")
    print("\n".join(textwrap.fill(line, 88) for line in story.split("\n")) + "\n")

# %% nbgrader={"grade": true, "grade_id": "check_greedy_text", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("greedy_text", greedy_text)

# %% [markdown]
# **Greedy** decoding repeats itself. Large models do this too: the probability of a phrase rises with each repetition
# ([Holtzman et al., 2020](https://arxiv.org/abs/1904.09751), figure 4).
#
# The higher the temperature, the more words these texts contain that are not in the manual. With **p = 0.9** there are
# fewer. In practice, lower T or p until most words are real, but not until the text repeats itself.
#
# Nothing told the model what a word is. Copies of the model, kept during training, show how its writing changes:

# %%
manual = set(text.decode(errors="replace").split())
for step, young in (snapshots | {len(losses): model}).items():
    chance = torch.Generator(device()).manual_seed(1)
    ids = generate(young, as_ids("The value of "), 600, temperature=0.8, generator=chance)[0]
    words = bytes(ids.tolist()).decode(errors="replace").split()
    words = [word for word in words if len(word) > 2]
    known = sum(word in manual for word in words) / len(words)
    print(f"----- after {step} steps, {known:.0%} of the words are in the manual")
    print(textwrap.fill(show(ids[:150]), 88))

# %% [markdown]
# First come the frequencies of the letters, then short words such as *of* and *the*. After 300 steps the samples also
# contain longer words, but many of these do not exist. The percentages count words of three or more characters, in
# samples of 600 bytes; the first 150 bytes are printed.
#
# ## Where the bits go
#
# How many bits does each byte of a held-out passage cost?

# %% tags=["hide-input"] mystnb={"image": {"alt": "A held-out passage of the manual in lines of equal length. The background of each character is darker the more bits it cost. Opening brackets, most capitals, many first letters and parts of rare words are dark; the ends of most words, and the spaces after them, are light."}}
passage = held_out[1000:1000 + context + 484]
surprise = window_bits(model, passage, context, 1)[:, -1]    # each window's last byte
plots.surprise(bytes(passage[context:].tolist()), surprise, across=44)
plt.show()
first = passage[context - 1:-1] == 32    # the byte before is a space
print(f"after a space: {surprise[first].mean():.2f} bits; "
      f"elsewhere: {surprise[~first].mean():.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The darker the background, the more bits the model needed (darkest: 10 bits or more); ¶ is the end
# of a line. Many words begin dark and end light: once the first letters are known, the rest is spelling.
#
# </div>
#
# How much does more context help? Average the bits at each position of the window, over the first 4,300 held-out bytes:

# %%
by_position = window_bits(model, held_out[:4300], context, 2).mean(dim=0)    # (t,)
for seen in (1, 2, 4, 8, 16, 32, 64):
    print(f"bytes of context {seen:>2}: {by_position[seen - 1]:.2f} bits per byte")
print(f"mean {by_position.mean():.2f}")

# %% [markdown]
# The first few bytes of context help most. Beyond eight bytes, about a word, the bits hardly change.

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
# The loss rewards **calibrated** probabilities: of all bytes given a probability of 10 %, one in ten should come next.
# With logits divided by 0.5, an improbable byte costs up to twice as many bits. Better samples do not mean better
# predictions.

# %% [markdown]
# ## A fair measurement
#
# How many bits per byte a model needs depends on how much context each byte is given. The cheap way, used for the
# learning curve, cuts the text into windows that do not overlap.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `bits_of_windows`** &nbsp; fix · ★★☆ · 6 minutes · 2 points
#
# The function in the cell runs, and it even ranks two models correctly: the better one gets the lower number. But it
# does not return what its docstring promises. Find out why, and fix it. The result may be a number or a tensor of
# shape ().
#
# <details><summary>Hint 1: a model whose number you know</summary>
#
# `NoOpinion()` needs 8 bits for each byte, whatever the text. In a cell of your own, try the function on this model,
# with texts of several lengths and with several t. Any tensor of bytes will do: `torch.arange(1281) % 256`.
#
# </details>
# <details><summary>Hint 2: eleven bytes</summary>
#
# With 11 bytes and t = 4 the windows are bytes 0 to 4 and 4 to 8. They predict bytes 1 to 8; byte 0 is only read, and
# bytes 9 and 10 are left out. How many predictions are in the sum?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "bits_of_windows", "locked": false, "schema_version": 3, "solution": true, "task": false}
@torch.no_grad()
def bits_of_windows(model, data, t):
    """Bits per byte, in windows that do not overlap: the mean over all predictions.

    model: maps ids (b, t) to logits (b, t, n). data: (length,), bytes, at least t + 1.
    A window predicts t bytes; bytes at the end that fill no window are left out.
    """
    ### BEGIN SOLUTION
    bits, count = 0.0, 0
    for window in data.long().unfold(0, t + 1, t):
        logits = model(window[None, :-1])[0]    # (t, n)
        nats = F.cross_entropy(logits, window[1:], reduction="sum")
        bits += nats.item() / math.log(2)
        count += t
    return bits / count
    ### STUDENT GETS
    # bits = 0.0
    # for window in data.long().unfold(0, t + 1, t):
    #     logits = model(window[None, :-1])[0]    # (t, n)
    #     nats = F.cross_entropy(logits, window[1:], reduction="sum")
    #     bits += nats.item() / math.log(2)
    # return bits
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_bits_of_windows", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(bits_of_windows)

# %% [markdown]
# Ask of every measurement what it should return for a model that knows nothing.
#
# Even the corrected function **overestimates** the bits that the model needs: the first prediction of each window is
# made from a single byte.
#
# The fair way gives each byte its full context. Slide the window by **one** byte at a time, and count only the
# **last** prediction of each window. Near the beginning of the text, use all bytes that come before:
#
# $$\text{bits} \;=\; -\frac{1}{N-1} \sum_{i=1}^{N-1} \log_2 p\big(x_i \mid x_{\max(0,\, i-t)}, \dots, x_{i-1}\big) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `sliding_window_bits`** &nbsp; ★★★ · 11 minutes · 4 points
#
# Compute this number. The model must be in evaluation mode while it is used. One window at a time is correct but slow;
# try to give the model many windows at once, as `window_bits` does. The result may be a number or a tensor of shape ().
#
# <details><summary>Hint 1: two parts</summary>
#
# The first window predicts bytes 1 to t, and all of its predictions count. Every further window starts one byte later,
# and only its last prediction counts. A text of at most t + 1 bytes has only the first window.
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
# Measure your model in both ways, on a passage at the beginning of the held-out part. This passage is harder than the
# rest, so compare the two numbers only with each other:

# %%
part = held_out[: context * 47 + 1]
apart = window_bits(model, part, context, context).mean().item()
sliding = float(sliding_window_bits(model, part.to(device()), context))
cost = len(part) - 1, context * (len(part) - context)    # positions that the model computes
print(f"windows that do not overlap: {apart:.3f} bits per byte, {cost[0]:,} positions")
print(f"sliding by one:              {sliding:.3f} bits per byte, {cost[1]:,}")

# %% [markdown]
# The fair number is lower, but computing it takes nearly t times the work. Here the gap is small: this model gains
# hardly anything beyond eight bytes of context, so only the first few predictions of a window suffer. A compromise is
# to slide by more than one byte; the recorded run below slides by 64.
#
# A fair measurement is slow, and even then the model sees no more than t bytes: [lesson
# 15](../15_transformer_xl/15_transformer_xl.ipynb) starts from these two shortcomings.

# %% [markdown]
# ## Without one piece
#
# How much is each piece of the model worth? Remove it, train again, and measure: this is an **ablation**. Below, a
# small model (two blocks, e = 32, windows of 32 bytes) trains for 300 steps: first whole, then five times with one
# piece removed, always at the same learning rate. These are the **short** runs; we also recorded **long** runs, of a
# larger model, with 1,000 steps.
#
# | without | what is left |
# |---|---|
# | positions | only the bytes' vectors enter the first block |
# | norms | every layer reads x as it is, and there is no norm at the end |
# | shortcuts | the output of a layer replaces x instead of being added to it |
# | feed-forward | each block is attention alone |
# | √d | the scores are q·k, not divided by √d |

# %% [markdown]
# <div class="card">
#
# **Prediction · `costliest_piece`** &nbsp; 3 minutes · no points
#
# Write down your own ranking of the five. Then choose: which of these four is costliest to remove in the short runs?
#
# - **A.** The shortcuts: without them a byte's own vector reaches the last layer only mixed with those of others.
# - **B.** The positions: without them the model can hardly tell in which order the earlier bytes came.
# - **C.** The norms: without them the vectors grow from layer to layer, and the training does not settle.
# - **D.** The feed-forward network: it has two thirds of a block's weights, and the only activation function.
# </div>

# %% nbgrader={"grade": false, "grade_id": "costliest_piece", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
costliest_piece = "A"
### STUDENT GETS
# costliest_piece = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %%
from helpers.ladder import held_out_bits, training_steps
from helpers.parts.ablated import PIECES, AblatedTransformer

bits_without = {}
try:
    for piece in ("nothing", *PIECES):
        torch.manual_seed(0)
        small = AblatedTransformer(256, 32, 2, 2, t_max=32, without=piece).to(device())
        for _ in training_steps(small, 300, what=f"without {piece}"):
            pass
        bits_without[piece] = held_out_bits(small)
except KeyboardInterrupt:
    print("Stopped. The models that are finished are shown.")

# %% tags=["hide-input"] mystnb={"image": {"alt": "A scoreboard of six models over held-out bits per byte. The whole model and the models without positions, √d, feed-forward and norms lie close together, between 3.5 and 3.7, at the line of order 1 or a little to its right. The model without shortcuts lies far to the right of them, between 4.2 and 4.4, left of the line of order 0."}}
found = recorded("ablations")["result"]["bits"]
short, long = found["short"], found["long"]
ranked = sorted(("nothing", *PIECES), key=lambda piece: sum(short[piece]))
names = {piece: f"without {piece}" for piece in PIECES} | {"nothing": "the whole model"}
rows = [(names[piece], bits_without.get(piece), True, short[piece]) for piece in ranked]
plots.ladder(rows, {name: landmarks[name] for name in ("order 1", "order 0")})
plt.show()

def cost(runs, piece):
    """The mean over the seeds, and the range of what the removal costs."""
    costs = [bits - whole for bits, whole in zip(runs[piece], runs["nothing"])]
    # z: no minus sign before 0.00
    return f"{sum(runs[piece]) / len(costs):.2f} ({min(costs):+z.2f} to {max(costs):+z.2f})"

print("bits per byte, means of three recorded seeds (how many more than the whole model)\n"
      "short: 2 blocks, 2 heads, e = 32, 300 steps\n"
      "long:  4 blocks, 4 heads, e = 64, 1,000 steps\n")
print(f"{'without':>30}  {'short':<24}long")
for piece in sorted(short, key=lambda piece: sum(short[piece]), reverse=True):
    in_long = cost(long, piece) if piece in long else ""
    print(f"{piece:>30}  {cost(short, piece):<24}{in_long}".rstrip())

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Farther left is better. The point is your run; the ticks, some of which coincide, are three
# recorded runs; dashed lines are landmarks. Each counted byte is predicted from the 32 bytes before it.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_costliest_piece", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("costliest_piece", costliest_piece)

# %% [markdown]
# **The shortcuts** are by far the costliest to lose. Without them, the larger model needs more bits than the small one,
# 4.51 against 4.31, and no fewer than order 0 (4.50), which ignores what came before. Lesson 7 showed that without
# shortcuts the vectors at all positions become nearly equal.
#
# The short runs include models with only one kind of shortcut removed. Most of the cost comes from the shortcut around
# attention. This fits answer A: only attention mixes vectors of different positions, and this shortcut bypasses it.
#
# **The other pieces** cost less than a tenth of a bit in the short runs. In the long runs the ranking is different:
#
# - **Positions** are the second costliest piece. In the short runs, the model is even slightly better without them. A
#   possible reason: after 300 steps even the whole model is worse than order 1, a table of byte pairs, which needs no
#   positions.
# - **The feed-forward network** and **√d** matter in the long runs: without the network the model needs 0.34 to 0.39
#   bits more, without √d 0.24 to 0.27.
# - **The norms** help a little in the short runs and not in the long ones.
#
# So an ablation says what a piece is worth **to this model, with this training**.

# %% [markdown]
# ## Your model so far
#
# The last rung of the ladder is your `CharTransformer`, as wide and deep as the model of lesson 7. Its windows have 64
# bytes instead of 32, and a batch has 8 of them instead of 16, so a step reads as many bytes as before. The ladder
# predicts each held-out byte from the t bytes before it.

# %% tags=["hide-input"] mystnb={"image": {"alt": "A scoreboard of nine models over bits per byte, from the plain average near 4.5 at the bottom to windows of 64 bytes at the top. Windows of 64 bytes lie at the line of gzip, near 2.5. Three blocks, one row below, are farthest left, near 2.3."}}
from helpers.ladder import Ladder

ladder = Ladder(check)
model_class = ladder.own(CharTransformer)
torch.manual_seed(0)
ladder.climb(model_class(256, 64, 4, 3, t_max=64))
ladder.show()
bits = recorded("ladder")["result"]["bits"]
for rung, t in (("07_transformer_block", 32), ("09_character_generator", 64)):
    for name, count in ((rung, 512 // t), (f"{rung}, twice the windows", 1024 // t)):
        ends = f"{min(bits[name]):.2f} to {max(bits[name]):.2f}"
        print(f"{count:2} windows of {t} bytes in a step{'':>7}{ends}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Farther left is better. The point is your model, the ticks are three runs of ours. In the sample,
# the model wrote what follows ▸.
#
# </div>
#
# The model on the last rung needs more bits than the one on rung 7. In the last four printed rows, the bits fall as the
# number of windows in a step rises. At 16 windows in a step, the longer ones need fewer bits, but then each step reads
# twice as many bytes. We have not tested whether the number of windows is the cause.

# %% [markdown]
# ## The real thing: Wikipedia
#
# This is a **recorded** run of a larger version of your model. Another optimiser,
# [Muon](https://kellerjordan.github.io/posts/muon/), trained most of the weights.
# [**enwik8**](https://mattmahoney.net/dc/textdata.html) is the first 10⁸ bytes of the English Wikipedia of March 2006,
# including the markup, and a standard benchmark for byte-level models. The run uses the first 4.2 million bytes.

# %% tags=["hide-input"]
run = recorded("enwik8")
s, result = run["settings"], run["result"]
print(f"$ {run['command']}")
source = run["data"]
print(f"{source['training_bytes']:,} bytes to train on, "
      f"{source['held_out_bytes']:,} held out; SHA-256 {source['sha256'][:16]}…")
print(f"{s['depth']} blocks, e = {s['e']}, t = {s['t_max']}; {s['parameters']:,} weights\n"
      f"{s['steps']:,} steps in {run['seconds'] / 60:.0f} minutes on: {run['machine']}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bits per byte on enwik8 against training steps, training and held out, with landmarks for 8 bits, order 0, order 1, gzip and xz. Both curves are below order 1 at their first point, cross gzip early and xz before the middle, and flatten below xz. The held-out curve is lower at first and higher at the end."}}
curve = run["curve"]
series = {name: ([p["step"] for p in curve], [p[key] for p in curve])
          for name, key in (("training", "training_bits"), ("held out", "held_out_bits"))}
same_bytes = {k: v for k, v in result["on_the_same_bytes"].items() if k != "bzip2 -9"}
learning_curve(series, {"8 bits: any byte": 8.0} | same_bytes, curve[-1]["step"])
plt.show()
bits, without_overlap = result["held_out_bits"], result["held_out_bits_without_overlap"]
print(f"held out: {bits:.3f} bits per byte ({result['context']})")
print(f"without overlap: {without_overlap:.3f}, {without_overlap - bits:.3f} more")
print(f"without overlap, first 50,000 held-out bytes: {curve[-1]['held_out_bits']:.3f}")
for name, bits in same_bytes.items():
    print(f"{name:>10}: {bits:.3f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The two curves are not measured in the same way. A held-out point is measured on the first 50,000
# held-out bytes, which are easier than average (1.679 bits, against 1.748 for all held-out bytes). A training point is
# a running mean, which still includes earlier, worse steps.
#
# </div>
#
# The larger model beats xz on its text, 1.66 bits against 2.09. Measured in windows that do not overlap, it needs 0.086
# bits per byte more, which is 0.086 × 256 ≈ 22 bits per window. For your model, this gap was about 0.02 × 64 ≈ 1 bit
# per window. This suggests that the larger model uses more context than yours, but the texts differ too.
#
# Two prompts, each with the model's continuation:

# %% tags=["hide-input"]
for sample in run["samples"][:2]:
    lines = (sample["prompt"] + sample["text"]).split("\n")
    print(f"----- {sample['prompt']!r}, T = {sample['temperature']}")
    print("\n".join(textwrap.fill(line, 88) for line in lines) + "\n")

# %% [markdown]
# Most words are real, and each `[[` that opens a link is closed again. Yet the sentences make no sense.
#
# The first two models below were trained on 90 million bytes of enwik8. GPT-2 was trained on web pages, from which
# Wikipedia had been removed. Compare with care: these models were not tested on the same bytes as ours.
#
# | model | bits per byte | where |
# |---|---|---|
# | 12 blocks, e = 256, t = 256 | 1.343 | [Bloem, 2019](https://peterbloem.nl/blog/transformers) |
# | Transformer-XL, 41 million parameters | 1.06 | [Dai et al., 2019](https://arxiv.org/abs/1901.02860), table 2 |
# | GPT-2, 1,542 million parameters | 0.93 | [Radford et al., 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf), table 3 |
#
# Lesson 12 looks inside GPT-2; [lesson 17](../17_going_big/17_going_big.ipynb) shows how the bits fall with a model's
# size. [Shannon (1951)](https://doi.org/10.1002/j.1538-7305.1951.tb01366.x) had people guess printed English letter by
# letter, and concluded that English contains between 0.6 and 1.3 bits per letter (of 26 letters and the space).

# %% [markdown]
# ## What you can do now
#
# You can train a language model on a text, measure fairly how many bits per byte it needs, sample from it with
# temperature, top-k and top-p, and use an ablation to find out what a piece of it is worth.
#
# **A question to think about**
#
# <details><summary>One model predicts bytes, with a loss of 1.5 nats per byte. Another predicts pieces of text, 3
# bytes long on average, with a loss of 4.2 nats per piece. On the same text, which one predicts better?</summary>
#
# The second: 4.2 nats for 3 bytes are 1.4 nats per byte. The second model needs 2.02 bits per byte, the first 2.16.
# However a model cuts the text into pieces, its total loss can be divided by the number of bytes, so any two models can
# be compared on the same text. Lesson 11 cuts a text into such pieces.
#
# </details>
#
# **Further reading**
#
# - **[Holtzman et al., *The curious case of neural text degeneration*, 2020](https://arxiv.org/abs/1904.09751)**: on
#   the repetitions of greedy decoding; section 3 introduces top-p.
#
# **Next:** [lesson 10, *Encoder and decoder*](../10_encoder_decoder/10_encoder_decoder.ipynb)

