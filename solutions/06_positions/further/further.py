# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Positions
#
# Twelve small models were trained in [lesson 6](../06_positions/06_positions.ipynb) to name the letter two positions
# back, on sequences of 16. Here is a closer look: how often they are right, where they look, what new distances do to
# them, and what a model does whose weights are set by hand. At the end, what positions save a language model.

# %%
import copy
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.parts.positions import PositionEmbedding, relative_bias, rotate, sinusoidal_encoding

plots.use_course_style()

class TwoBack(nn.Module):
    """(b, t) letters in, (b, t, 8) logits for the letter two positions back out."""

    def __init__(self, method, e=64):
        super().__init__()
        self.method, self.letters = method, nn.Embedding(8, e)
        self.to_qkv, self.to_logits = nn.Linear(e, 3 * e), nn.Linear(e, 8)
        self.embed = PositionEmbedding(64, e) if method == "learned" else None
        self.table = nn.Parameter(torch.zeros(127)) if method == "relative bias" else None

    def forward(self, letters, start=0):
        """start: the position of the first letter."""
        x = self.letters(letters)    # (b, t, e)
        b, t, e = x.shape
        places = torch.arange(start, start + t)
        if self.method == "learned":
            x = x + self.embed.table(places)
        if self.method == "sinusoidal":
            x = x + sinusoidal_encoding(start + t, e)[places]
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        if self.method == "rotary":
            q, k = (rotate(part.unsqueeze(1), places).squeeze(1) for part in (q, k))
        scores = q @ k.mT / math.sqrt(e)
        if self.table is not None:
            scores = scores + relative_bias(self.table, t)
        weights = torch.softmax(scores, dim=-1)
        self.weights = weights.detach()    # (b, t, t), kept to be looked at
        return self.to_logits(weights @ v)

# %%
torch.set_num_threads(1)    # models as small as these are faster on one core than on two

def trained(method, seed, steps=250):
    torch.manual_seed(seed)
    model = TwoBack(method)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    for step in range(steps):
        letters = torch.randint(8, (32, 16))
        guesses, truth = model(letters)[:, 2:], letters[:, :-2]
        loss = F.cross_entropy(guesses.flatten(0, 1), truth.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model

methods = ("learned", "sinusoidal", "relative bias", "rotary")
models = {method: [trained(method, seed) for seed in range(3)] for method in methods}

# %% [markdown]
# ## The four methods in numbers
#
# All four methods solve the task at the length of training. At four times that length, only two of the three rotary
# models are still right nearly everywhere.

# %%
@torch.no_grad()
def accuracy(model, t, start=0):
    """The accuracy at each letter of a window but the first two: (t − 2,)."""
    letters = torch.randint(8, (400, t), generator=torch.Generator().manual_seed(1))
    return (model(letters, start)[:, 2:].argmax(-1) == letters[:, :-2]).float().mean(dim=0)

def shown(accuracies):
    return " ".join(f"{each.mean():.2f}" for each in accuracies)

def report(method, runs):
    short, long = ([accuracy(model, t) for model in runs] for t in (16, 64))
    near, far = [each[:14] for each in long], [each[14:] for each in long]
    print(f"{method:>18}  {shown(short)}  {shown(near)}  {shown(far)}")

columns = f"{'at positions':>18}  2–15 of 16      2–15 of 64      16–63 of 64"
print("accuracy, three runs of each")
print(columns)
for method, runs in models.items():
    report(method, runs)

# %% [markdown]
# **How to read it.** Chance is one in eight. The models with a relative bias are as bad at the first positions of a
# long sequence as at the last: their trouble is the length, not the position.

# %% [markdown]
# ## Where the models look
#
# A model that has learned *two positions back* shows a line just below the diagonal, from top to bottom. Only the
# relative bias and rotary encoding draw it all the way.

# %% mystnb={"image": {"alt": "Five maps of attention weights, 64 by 64. Learned: a dark line just below the diagonal, down to position 15; below it, a broken vertical line at column 13, and scattered dots, most of them to its left. Sinusoidal: the same line down to position 15, and paler again from about position 32 on; below the diagonal, many short blurred strokes. Relative bias: a pale line just below the whole diagonal, inside a bright band; the two corners outside the band are darker. Rotary, run 1: a dark line just below the whole diagonal, a parallel one far below it, and paler ones far above it. Rotary, run 2: a single dark line, just below the whole diagonal, and a few dots at the upper edge."}}
@torch.no_grad()
def mean_weights(model):
    """The attention weights, averaged over 200 sequences of 64: (t, t)."""
    model(torch.randint(8, (200, 64), generator=torch.Generator().manual_seed(2)))
    return model.weights.mean(dim=0)

figure, axes = plt.subplots(2, 3, figsize=(6, 4.6))
axes[1, 2].remove()
drawn = [(method, 0) for method in models] + [("rotary", 1)]
for ax, (method, run) in zip(axes.flat, drawn):
    ax.imshow(mean_weights(models[method][run]), cmap=plots.WEIGHTS, vmin=0, vmax=0.3)
    ax.set(xticks=(0, 15, 32, 63), yticks=(0, 15, 32, 63), title=f"{method}, run {run + 1}")
    ax.set(xlabel="position j", ylabel="position i")
    ax.grid(False)
plt.show()

# %%
for run, model in enumerate(models["relative bias"]):
    weights = mean_weights(model)[32]
    print(f"relative bias, run {run + 1}: weight of distance 2: {weights[30]:.2f},",
          f"of all new distances: {1 - weights[17:46].sum():.2f}")
for run, model in enumerate(models["rotary"]):
    weights, keys = mean_weights(model)[32].topk(3)
    listed = ", ".join(f"{32 - key}: {weight:.2f}" for key, weight in zip(keys, weights))
    print(f"rotary, run {run + 1}: the three largest weights, by distance:", listed)

# %% [markdown]
# **How to read it.** Row i looks at column j; darker is more, and 0.3 or more is darkest. The printed weights are those
# of position 32.
#
# - **Learned.** The line ends at position 15: the later rows of the table were never trained. In many of them, position
#   13 gets the largest weight.
# - **Sinusoidal.** The line breaks off after position 15. From about position 32 on it comes back, but pale. It is
#   darkest at positions 34 and 59, where accuracy has its spikes. They are 25 positions apart, almost exactly 4 turns
#   of hand 0 and 3 of hand 1. Whether this is the cause was not tested.
# - **Relative bias.** The line is complete, but pale. Position 32 gives about a twentieth of its weight to distance 2,
#   and seven tenths to new distances.
# - **Rotary.** Run 1 confuses distance 27 with distance 2: the two fastest hands point the same way again after 25
#   positions. Distance 27 first occurs at position 27, where the accuracy of run 1 drops. In runs 2 and 3, new
#   distances get hardly any weight.

# %% [markdown]
# ## Do the new distances cause the errors?
#
# With the relative bias and with rotary encoding they do: hiding the distances that were not trained removes nearly all
# errors. With learned vectors and sinusoids most errors remain, although the sinusoidal accuracy nearly doubles.

# %%
def with_new_distances_at(bias, runs):
    runs = copy.deepcopy(runs)
    for model in runs:
        if model.table is None:
            model.table = nn.Parameter(torch.zeros(127))
        model.table.data[:50] = model.table.data[79:] = bias    # all but −13 to 15
    return runs

print("new distances hidden")
print(columns)
for method, runs in models.items():
    report(method, with_new_distances_at(-torch.inf, runs))

# %% [markdown]
# **How to read it.** The columns are those of the first table. The loss in training covered queries 2 to 15 and keys 0
# to 15, so the trained distances run from −13 to 15.

# %% [markdown]
# ## A window of 16 that begins later has no new distance
#
# It has as many letters as a sequence in training, too: only i and j differ. The models whose scores depend on i − j
# alone are right as before, and those with absolute positions make many errors.

# %%
print(f"{'windows begin at':>18}  0               8               16 to 48")
for method, runs in models.items():
    begin, later = ([accuracy(model, 16, start) for model in runs] for start in (0, 8))
    new = [sum(accuracy(model, 16, start) for start in range(16, 49)) / 33 for model in runs]
    print(f"{method:>18}  {shown(begin)}  {shown(later)}  {shown(new)}")

# %% [markdown]
# **How to read it.** The last column is the mean over 33 starts; in these windows every position is beyond those in
# training. With learned vectors, such positions have rows that training never changed.

# %% [markdown]
# ## Neither the right bias nor longer training is enough
#
# A model that gives every wrong distance the same low bias, new or not, still makes errors in a longer sequence: more
# letters share the softmax than in training. Longer training is not enough either: in one run of 1,000 steps, more than
# half of the answers are still wrong.

# %%
print(columns)
report("at −0.95", with_new_distances_at(-0.95, models["relative bias"]))
report("1,000 steps", [trained("relative bias", 0, steps=1000)])

# %% [markdown]
# **How to read it.** First row: the new distances get a bias of −0.95, about the learned bias of the wrong distances;
# three models. Second row: one model, trained for 1,000 steps instead of 250, with no bias set by hand.

# %% [markdown]
# ## A sinusoidal model that is right everywhere
#
# With weights set by hand, the sinusoidal model is right at every position of a sequence of 64. So the method can
# represent the task at any length; training on 16 positions found other weights, just as good there. The letter is
# written into the last eight components, where the encoding is almost constant. Queries and keys read only the first
# 56, which hold nothing but the encoding.

# %% tags=["nbval-check-output"]
def shift_matrix(back, e):
    """M, (e, e), with PE(p − back) = M PE(p) for every position p."""
    angles = back / 10000 ** (torch.arange(0, e, 2) / e)
    cos, sin = torch.diag(angles.cos()), torch.diag(angles.sin())
    matrix = torch.zeros(e, e)
    matrix[0::2, 0::2], matrix[0::2, 1::2] = cos, -sin
    matrix[1::2, 0::2], matrix[1::2, 1::2] = sin, cos
    return matrix

by_hand = TwoBack("sinusoidal")
with torch.no_grad():
    for parameter in by_hand.parameters():
        parameter.zero_()
    by_hand.letters.weight[:, 56:] = 5 * torch.eye(8)    # the encoding itself is at most 1
    queries, keys, values = by_hand.to_qkv.weight.chunk(3)
    queries[:56, :56] = 64 * shift_matrix(2, 64)[:56, :56]    # 64 / √e = 8, as in the lesson
    keys[:56, :56] = torch.eye(56)
    values[56:, 56:] = by_hand.to_logits.weight[:, 56:] = torch.eye(8)
print(columns)
report("set by hand", [by_hand])

# %% [markdown]
# **How to read it.** The columns are those of the first table, for one model. Language models with sinusoids or rotary
# encoding also get worse on texts longer than those in training ([Press et al.,
# 2022](https://arxiv.org/abs/2108.12409), figure 1).

# %% [markdown]
# ## Positions save more with four heads than with one
#
# Learned positions save the course's language model 0.2 bits per byte with one head of width 64 and 0.6 with four heads
# of width 16. Without positions, four heads are hardly better than one.

# %%
bits = recorded("ladder")["result"]["bits"]
rows = {
    "one head, no positions": "06 one head without positions",
    "one head, learned": "03_scaling",
    "four heads, no positions": "06 without positions",
    "four heads, learned": "06_positions",
}
print("held-out bits per byte, three runs of each")
for row, key in rows.items():
    print(f"{row:<24}", " ".join(f"{run:.2f}" for run in bits[key]))

# %% [markdown]
# **How to read it.** Less is better. These are the runs of the section *Your model so far*, trained on real text.
