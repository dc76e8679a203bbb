# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 19 · Looking inside
#
# *What a trained model does, and how to find out*
#
# A small GPT-2 reads `def left(line, word):`, then `return word`, then `def left(`, and continues with `line`. **Which
# parts did it, and how would you prove it?**
#
# A map of attention weights suggests an answer: some head looks at `line`. But a map shows only where a head looks.
# This lesson tests maps with the instruments of **mechanistic interpretability**, first on a model that is small
# enough to explain, then on this text.
#
# | | |
# |---|---|
# | **You will build** | scores that find heads, each part's share of a logit, two kinds of patching, a composition score, and the loss of a sparse autoencoder; a logit lens you fix |
# | **You need** | lessons [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 110 minutes: seven exercises, 21.5 points, and three predictions |
# | **It computes** | for seconds in each cell, a minute or so in all |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, e width, h heads, d = e/h, n
# vocabulary. Two new letters: p, the length of a stretch that is said twice, and k, a number of features. Layers and
# heads are counted from 0. What every check asks is on [the page for students](../../site/students.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.recorded import FOLDER, recorded
from helpers.device import device
from helpers.lesson import start
from helpers.parts import gpt2 as finished_gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.dictionary import Dictionary
from helpers.parts.induction import (
    ROLES, AttentionOnly, copy_losses, induction_scores, said_twice, train_to_copy,
)
from helpers.parts.multi_head import merge_heads
from helpers.parts.patching import gathered_by_heads, patch_every_head, patched_gpt2

check = start("19_looking_inside")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# First the text itself, and a partner with `name` in place of `line`:

# %%
folder = gpt2_files("gpt2", places="embedded").folder
tokenizer, pocket = Tokenizer.from_folder(folder), finished_gpt2.load(folder, device())
text = "def left(line, word):\n    return word\n\ndef left("
ids, others = (torch.tensor([tokenizer.encode(one)], device=device())
               for one in (text, text.replace("line", "name")))
right, wrong = ids[:, 4], others[:, 4]
with torch.no_grad():
    for one in (ids, others):
        chances = pocket(one)[0, -1].softmax(dim=-1)
        said = tokenizer.token(chances.argmax())
        print(f"after {tokenizer.token(one[0, 4])!r} the model says {said!r}"
              f" with {chances.max():.2f}")

# %% [markdown]
# After `name` the model says `name`: at the second `(` it copies what followed the first.
#
# ## Four heads look where the answer stands
#
# Take a model that only copies. It follows [Elhage et al.,
# 2021](https://transformer-circuits.pub/2021/framework/index.html): two layers of attention with four heads each, no
# feed-forward network, rotary positions, and 64 tokens. Its text is p different tokens in random order, **said
# twice**. In the second half every token but the first can be predicted, and only by looking back. Call the token at
# positions 10 and 34 of each test row A, and the one at 11 B. The map shows one row, *our text*; most numbers are
# means over 64.
#
# `said_twice` makes the rows, (b, 2p). `train_to_copy` draws a fresh batch for each step, with p between 16 and 32,
# and computes the loss on what can be copied.

# %%
def learn(model, limit=400, enough=0.1):
    """Trains until the loss is small. Returns the number of steps."""
    for steps, loss in enumerate(train_to_copy(model, limit), 1):
        if loss < enough:
            break
    return steps

rows = said_twice(64, 24, 64, torch.Generator().manual_seed(9)).to(device())
torch.manual_seed(0)
four = AttentionOnly(n=64, e=64, h=4, depth=2).to(device())
steps = learn(four)
with torch.no_grad():
    _, weights = four.run(rows[:, :-1])    # for each layer (b, h, t, t)
best = induction_scores(weights[1], 24).argmax().item()
print(f"{steps} steps")

# %% tags=["hide-input"] mystnb={"image": {"alt": "A triangle of attention weights, 47 by 47. In the lower half a dark line runs parallel to the diagonal, 23 places to its left; in the upper half the dark cells are scattered."}}
figure, ax = plt.subplots(figsize=(3.9, 3.7), layout="compressed")
plots.heat(weights[1][0, best], ax=ax, annotate=False, scale=1,
           title=f"Head {best} of layer 1: the second A looks at B")
ticks = [0, 11, 24, 34]
ax.set_xticks(ticks, ticks)
ax.set_yticks(ticks, ticks)
ax.set(xlabel="position looked at", ylabel="position that looks")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One text, p = 24. Row i shows where position i looks; dark is a weight of 1. The second A, at
# 34, looks at B, at 11. Nearly every position from 24 on looks 23 places back.
#
# </div>
#
# This is an [induction head](../../site/glossary.md#induction-head), as in lesson 12. Two **pattern scores**
# describe the other heads as well. The **previous-token score** is the mean weight on the token just before. The
# **induction score** is the mean weight, in the second copy, on the token that followed the same token in the first
# copy.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `pattern_scores`** &nbsp; ★☆☆ · 6 minutes · 3 points
#
# Return the previous-token score and the induction score of each head, from the weights of one layer. All positions
# but the first have a previous token. The first token of the second copy (position p) cannot be predicted; the token
# after it can. So positions p to 2p − 2 count for the induction score, p − 1 of them.
#
# <details><summary>Hint 1: which diagonal</summary>
#
# Position p + i holds the token of position i. What followed it is at position i + 1. How far back is that, for every
# i? `torch.Tensor.diagonal` takes an offset and two axes.
#
# </details>
# <details><summary>Hint 2: two tokens</summary>
#
# With p = 2 the text A B A is read. Only position 2, the second A, counts for the induction score: its weight on
# position 1. Positions 1 and 2 count for the previous-token score: their weights on 0 and on 1.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "pattern_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pattern_scores(weights, p):
    """How much each head looks at the previous token, and at what followed the same token.

    weights: (b, h, 2p − 1, 2p − 1), of p tokens said twice, without the last.
    p: at least 2. Returns two tensors, (h,) each: means over texts and positions.
    """
    ### BEGIN SOLUTION
    previous = weights.diagonal(-1, -2, -1).mean(dim=(0, -1))
    induction = weights.diagonal(1 - p, -2, -1)[..., 1:].mean(dim=(0, -1))
    return previous, induction
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_pattern_scores", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(pattern_scores)

# %%
scores = [pattern_scores(looked, 24) for looked in weights]
for name, pair in zip(("layer 0", "layer 1"), scores):
    for kind, score in zip(("previous-token", "induction"), pair):
        print(f"{name}, {kind:>14} scores:", *[f"{one:.2f}" for one in score])
previous = scores[0][0]

# %% [markdown]
# All four heads of layer 1 are induction heads, and the map shows the one with the highest score. In layer 0 two
# heads look mainly at the previous token. Does copying need the head of the map?
#
# ## Without the head of the map, most answers stay right
#
# To find out what depends on a head, remove it: an **ablation**. Before `unify`, the heads' outputs are one tensor
# z of shape (b, h, t, d). `model(ids, change)` calls `change(layer, z)` in each layer, and goes on with what that
# returns.
#
# A model may fail on zeros in place of an output merely because it never met them in training. A **mean ablation**
# puts in the head's mean over many texts and positions, and so removes only what varies.

# %%
def without(model, heads):
    """Without some heads: loss and share right in the second half, chance of B in our text.

    heads: (layer, head) of each. Their outputs are replaced by their means.
    """
    kept = {}
    def keep(layer, z):
        kept[layer] = z
        return z
    def change(layer, z):
        z = z.clone()
        for number, head in heads:
            if number == layer:
                z[:, head] = kept[layer][:, head].mean(dim=(0, 1))
        return z
    with torch.no_grad():
        model(rows[:, :-1], keep)
        loss = copy_losses(model, rows, change).mean().item()
        logits = model(rows[:, :-1], change)
    said, chance = logits[:, 24:].argmax(dim=-1), logits[0, 34].softmax(dim=-1)[rows[0, 11]]
    return loss, (said == rows[:, 25:]).float().mean().item(), chance.item()

def whole(layer):
    return [(layer, head) for head in range(4)]

cases = {"nothing": [], f"head {best} of layer 1": [(1, best)], "layer 1": whole(1),
         "layer 0": whole(0)}
for name, heads in cases.items():
    loss, share, chance = without(four, heads)
    print(f"without {name:>17}: loss {loss:.2f}, {share:.0%} right; "
          f"B in our text {chance:.2f}")
print(f"a guess: loss {math.log(64):.2f}")

# %% [markdown]
# **Most answers do not need the head of the map:** without it, 92 % of the tokens are still right, and B in our text
# keeps a probability of 0.99. The surprise is layer 0. Its heads do not look at the answer, yet without them few
# answers are right. The loss is then far above that of a guess, so the model is confidently wrong.
#
# An ablation tells what is *needed*. It cannot tell a head that does nothing from a head whose work others do as
# well. Which of the two is the head of the map?
#
# ## A logit is a sum, so each head's share can be computed
#
# The last hidden state is a **sum**: the embedding of the token, plus what each head has written,
#
# $$x = x_{\text{tokens}} + \sum_{\text{heads}} x_{\text{head}} .$$
#
# The logit of a token is the product of its row w of the output layer with the normed sum. A LayerNorm with weight γ
# and bias β subtracts the mean of x and divides by its standard deviation σ. Both steps can be applied part by part:
# each part loses its own mean, and all are divided by the **same** σ, that of the sum. So
#
# $$\text{logit} = \sum_{\text{parts}} w \cdot \Big(\gamma \odot \frac{x_{\text{part}} -
# \overline{x_{\text{part}}}}{\sigma}\Big) + w \cdot \beta, \qquad \sigma = \sqrt{\mathrm{var}(x) + \varepsilon} .$$
#
# One term of this sum is the **direct contribution** of a part: what it adds to the logit itself, not through other
# parts. To list the terms is **direct logit attribution**.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `direct_contributions`** &nbsp; ★★☆ · 10 minutes · 3 points
#
# Return what each part adds to one logit at each position. The term with β belongs to no part and is left out. The
# variance is that of a LayerNorm: divided by e, not by e − 1.
#
# <details><summary>Hint 1: which σ</summary>
#
# How many standard deviations does the norm compute at one position, however many parts there are?
#
# </details>
# <details><summary>Hint 2: two parts of two components</summary>
#
# With γ = 1 and ε = 0, the parts (3, 1) and (1, −1) have the sum (4, 0), with the mean 2 and σ = 2. Without their own
# means the parts are (1, −1) and (1, −1). For w = (1, 0) each contributes 0.5, and together 1: the first component of
# the normed sum, (1, −1).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "direct_contributions", "locked": false, "schema_version": 3, "solution": true, "task": false}
def direct_contributions(parts, directions, weight, eps=1e-5):
    """What each part of the last hidden state adds to a logit.

    parts: (parts, b, t, e), which add up to the last hidden state. directions: (b, t, e), at
    each position the row of the output layer for the token that is asked about.
    weight: (e,), of the last LayerNorm. Returns (parts, b, t).
    """
    ### BEGIN SOLUTION
    x = parts.sum(dim=0)
    deviation = (x.var(dim=-1, unbiased=False, keepdim=True) + eps).sqrt()
    centred = parts - parts.mean(dim=-1, keepdim=True)
    return (centred / deviation * weight * directions).sum(dim=-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_direct_contributions", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(direct_contributions)

# %% [markdown]
# <div class="card">
#
# **Prediction · `missed_head_share`** &nbsp; 1 minute · no points
#
# In the second half, the logit of the right token is about 10 on average. How much of it does the head of the map add
# directly?
#
# - **A.** Less than 1: without it, most tokens are still right.
# - **B.** More than 6: its map shows that it copies.
# - **C.** Between 2 and 4: it adds a part.
# </div>

# %% nbgrader={"grade": false, "grade_id": "missed_head_share", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
missed_head_share = "C"
### STUDENT GETS
# missed_head_share = ...    # "A", "B" or "C"
### END SOLUTION

# %%
def contributions(model, rows):
    """By part, its mean contribution to the logit of the right token in the second half."""
    ids, right = rows[:, :-1], rows[:, 1:]
    with torch.no_grad():
        parts, directions = model.parts(ids), model.to_logits.weight[right]
        stacked = torch.stack(list(parts.values()))
        added = direct_contributions(stacked, directions, model.norm.weight)
        logits = model(ids).gather(-1, right[..., None])[..., 0]
        rest = model.to_logits(model.norm.bias)[right]    # w · β
    print("they add up to the logit:",
          torch.allclose(added.sum(dim=0) + rest, logits, atol=1e-4))
    print(f"logit of the right token: {logits[:, 24:].mean():.2f}")
    return dict(zip(parts, added[:, :, 24:].mean(dim=(1, 2)).tolist()))

direct = contributions(four, rows)    # "1.2" is head 2 of layer 1
for head in range(4):
    print(f"head {head} of layer 1: {direct[f'1.{head}']:+.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_missed_head_share", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("missed_head_share", missed_head_share)

# %% [markdown]
# <div class="card">
#
# **Prediction · `layer_0_share`** &nbsp; 1 minute · no points
#
# Without layer 0 the loss is the highest of all. How much of the logit do its four heads add directly, together?
#
# - **A.** Almost nothing.
# - **B.** About half of it.
# - **C.** A negative number, below −2.
# </div>

# %% nbgrader={"grade": false, "grade_id": "layer_0_share", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
layer_0_share = "A"
### STUDENT GETS
# layer_0_share = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"]
print(f"layer 0 together: {sum(direct[f'0.{head}'] for head in range(4)):+.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_layer_0_share", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("layer_0_share", layer_0_share)

# %% [markdown]
# So the head of the map does a part of the work. Without it, the other three still put the right token first in
# most places.
#
# Layer 0 adds almost nothing to the logit of the answer, but without it few answers are right: its effect is
# **indirect**. Neither instrument shows what it passes on, or which part reads it. For that, change a running model
# at one place.
#
# ## One activation can bring back half of a lost logit
#
# At the second A an [induction head](../../site/glossary.md#induction-head) has to find the B. But B's
# embedding does not say which token came before it. Here is how two heads might solve that together:

# %%
plots.diagrams.induction_circuit()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From the bottom up: tokens, hidden states after layer 0, prediction. B's hidden state says
# that A came before it, so the key of B matches the query of the second A. The head of layer 1 takes B's value.
#
# </div>
#
# That is a hypothesis, and it names positions. To test it, take two texts that differ in one token. In the
# **clean** text A stands before B and is also the last token, so the answer B can be copied. In the **corrupted**
# text another token replaces the first A, so the last token has never been there before.
#
# **Activation patching** (or causal tracing, [Meng et al., 2022](https://arxiv.org/abs/2202.05262)) runs the
# corrupted text, but replaces one activation by its value in the clean run. If the right answer comes back, that
# activation carried what was missing. An ablation asks what is needed; a patch asks what is *sufficient* to bring
# the answer back. It traces only the information in which the texts differ.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `patched`** &nbsp; ★★★ · 11 minutes · 3.5 points
#
# Return the logits of the corrupted text, with the output of one head at one position taken from the clean text. All
# other heads, and this head at all other positions, compute what the corrupted text gives them. A second call with
# the same model must not depend on the first. `without` above shows how a model is called with a `change`.
#
# <details><summary>Hint 1: where the clean output comes from</summary>
#
# `patched` gets texts, no activations. Which call of the model meets the output that you need, and which function
# sees it there?
#
# </details>
# <details><summary>Hint 2: which numbers</summary>
#
# z has the shape (b, h, t, d). If head 1 is patched at position 2, the b · d numbers `z[:, 1, 2]` are replaced, in a
# copy of z. Patching a text with itself changes nothing.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "patched", "locked": false, "schema_version": 3, "solution": true, "task": false}
def patched(model, clean, corrupted, layer, head, at):
    """The corrupted text's logits, with one head's output at one position from the clean.

    model: model(ids, change) returns logits (b, t, n); in each layer it calls
    change(layer, z), z (b, h, t, d), and uses the result for z. clean, corrupted: (b, t).
    layer, head, at: which output is replaced, counted from 0. Returns (b, t, n).
    """
    ### BEGIN SOLUTION
    kept = {}

    def keep(number, z):
        kept[number] = z
        return z

    def replace(number, z):
        if number != layer:
            return z
        z = z.clone()
        z[:, head, at] = kept[number][:, head, at]
        return z

    model(clean, keep)
    return model(corrupted, replace)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_patched", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(patched)

# %% [markdown]
# The clean text ends at position 34, with the second A. The corrupted one has another token at position 10.

# %% [markdown]
# <div class="card">
#
# **Prediction · `patch_place`** &nbsp; 1 minute · no points
#
# Heads of layer 0 are patched at one position each. At which position do they bring the answer back?
#
# - **A.** At position 10: only there do the two texts differ.
# - **B.** At position 11, after the place where they differ.
# - **C.** At position 34, where the answer is predicted.
# </div>

# %% nbgrader={"grade": false, "grade_id": "patch_place", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
patch_place = "B"
### STUDENT GETS
# patch_place = ...    # "A", "B" or "C"
### END SOLUTION

# %%
clean, answers = rows[:, :35], rows[:, 11]
corrupted = clean.clone()
# a token that is nowhere else in the row
corrupted[:, 10] = torch.stack([row.bincount(minlength=64).argmin() for row in clean])

def right_logit(logits):
    """The mean logit of the right answer at the last position."""
    return logits[:, -1].gather(1, answers[:, None]).mean().item()

with torch.no_grad():
    high, low = right_logit(four(clean)), right_logit(four(corrupted))
    print(f"logit of the right answer: clean {high:.2f}, corrupted {low:.2f}")
    restored = torch.zeros(8, 35)    # layers and heads by positions
    for head in range(4):
        for layer, places in [(0, range(10, 35)), (1, [34])]:
            for at in places:
                back = right_logit(patched(four, clean, corrupted, layer, head, at)) - low
                restored[4 * layer + head, at] = back / (high - low)
rest = restored[:4, [10, *range(12, 35)]]
print(f"layer 0 at all positions from 10 on but 11: {rest.min():.3f} to {rest.max():.3f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "A grid of eight heads by the positions 10, 11, 12, 13, 33 and 34. Dark are heads 1 and 3 of layer 0 at position 11, about a half and a third, and all four heads of layer 1 at position 34, 0.2 to 0.4. Heads 0 and 2 of layer 0 have less than a tenth at position 11. Everywhere else layer 0 has 0.00, one cell of it hatched. The other cells of layer 1 are all hatched."}}
figure, ax = plt.subplots(figsize=(4.6, 4.4), layout="compressed")
heads = [f"layer {layer}, head {head}" for layer in (0, 1) for head in range(4)]
shown = [10, 11, 12, 13, 33, 34]
plots.heat(restored[:, shown], heads, [str(at) for at in shown], ax=ax, scale=1,
           signed=False,
           blank_zeros=True, digits=2, row_label="", column_label="position that is patched",
           title="Two positions bring the answer back")
plt.show()

# %% nbgrader={"grade": true, "grade_id": "check_patch_place", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("patch_place", patch_place)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each number is the share of the lost logit, over 64 pairs of texts, that comes back when that
# head is patched at that position. Hatched cells came out as exactly 0. What layer 1, the last, writes elsewhere
# cannot reach position 34.
#
# </div>
#
# **The hypothesis holds at both of its positions.** At position 11, two heads of layer 0 bring back a half and a third
# of what was lost, and these two have the highest previous-token scores. At every other position layer 0 brings back
# next to nothing, even at the token that was replaced. At position 34, each head of layer 1 delivers a part of the
# answer. The shares of layer 1 add up to more than 1, because the last norm is not linear.
#
# An output can bring much back without being needed. The player compares the two:

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("patch")

# %% [markdown]
# ## Layer 0 helps through the keys of layer 1
#
# Layer 1 reads a hidden state three times: for queries, for keys and for values. The diagram claims that layer 0
# helps through the **keys**, because a key has to say which token came before its own; a query and a value need
# only their own token. **Path patching** ([Goldowsky-Dill et al., 2023](https://arxiv.org/abs/2304.05969)) tests a
# single path: what one part has written is replaced where *one* other part reads it, and nowhere else.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `path_patched`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Return what a layer of attention adds when one of its three inputs reads another hidden state and the other two read
# x. The hidden state itself is not added. The layer has `weights(for_queries, for_keys)`, which returns (b, h, t, t),
# and `gathered(weights, for_values)`, which returns z, (b, h, t, d). Both norm what they are given. `merge_heads`
# brings z to (b, t, e), for `layer.unify`.
#
# <details><summary>Hint 1: three variables</summary>
#
# Which hidden state do the queries read if the role is "keys"? Write down three variables, one for each input; for
# each role one of them is `other`.
#
# </details>
# <details><summary>Hint 2: a test of your own</summary>
#
# If `other` is x itself, the result is what the layer adds anyway, whatever the role.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "path_patched", "locked": false, "schema_version": 3, "solution": true, "task": false}
def path_patched(layer, x, other, role):
    """What a layer adds when one of its inputs reads another hidden state.

    layer: attention with weights, gathered and unify. x, other: hidden states, (b, t, e).
    role: "queries", "keys" or "values", the input that reads `other`. Returns (b, t, e).
    """
    ### BEGIN SOLUTION
    for_queries, for_keys, for_values = (other if role == mine else x
                                         for mine in ("queries", "keys", "values"))
    weights = layer.weights(for_queries, for_keys)
    return layer.unify(merge_heads(layer.gathered(weights, for_values)))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_path_patched", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(path_patched)

# %%
def by_role(model, heads):
    """For each role, how much of the answer some heads of layer 0 bring back through it."""
    with torch.no_grad():
        high, low = right_logit(model(clean)), right_logit(model(corrupted))
        fresh, stale = model.parts(clean), model.parts(corrupted)
        x = stale["tokens"] + sum(stale[f"0.{head}"] for head in range(4))
        other = x + sum(fresh[f"0.{head}"] - stale[f"0.{head}"] for head in heads)
        shares = []
        for role in ROLES:
            y = x + path_patched(model.layers[1], x, other, role)
            shares.append((right_logit(model.to_logits(model.norm(y))) - low) / (high - low))
    return shares

for name, heads in [("layer 0", range(4)), *[(f"head {head}", [head]) for head in range(4)]]:
    found = zip(ROLES, by_role(four, heads))
    print(f"{name} through", *[f"{role} {share:.2f}" for role, share in found])
for pair in ([1, 3], [0, 2]):
    share = without(four, [(0, head) for head in pair])[1]
    print(f"without heads {pair[0]} and {pair[1]} of layer 0: {share:.0%} right")

# %% [markdown]
# **What layer 0 passes on reaches the answer through the keys of layer 1**, and hardly through anything else. Heads 1
# and 3 are also needed: without both, most answers are wrong; without the other two, 99 % are right. These texts
# cannot show that layer 1 copies B's value: B is the same in both.
#
# One model may be an accident. Here are four more, and a control with a single layer.

# %% tags=["hide-input"]
print("seed   steps   highest induction score   right   without that head "
      "  restored through keys")
for seed in range(1, 5):
    torch.manual_seed(seed)
    other = AttentionOnly(n=64, e=64, h=4, depth=2).to(device())
    steps = learn(other)
    with torch.no_grad():
        _, looked = other.run(rows[:, :-1])
    score, head = pattern_scores(looked[1], 24)[1].max(dim=0)
    before, after = (without(other, one)[1] for one in ([], [(1, head.item())]))
    keys = by_role(other, range(4))[1]
    print(f"{seed:>4} {steps:>7} {score:>25.2f} {before:>7.0%} {after:>19.0%} {keys:>23.2f}")
for h in (1, 4):
    torch.manual_seed(0)
    single = AttentionOnly(n=64, e=64, h=h, depth=1).to(device())
    *_, last = train_to_copy(single, 250)
    print(f"one layer, heads: {h}, 250 steps: loss {last:.2f}")

# %% [markdown]
# In each of the five models nearly all of the lost logit comes back through the keys, and most answers stay right
# without the head of the clearest map. A single layer has not learned the task after more steps than any of them
# needed.
#
# ## The weights point to the same two heads
#
# Can the circuit be read without texts, from the **weights**? A head is two products of matrices:

# %%
plots.diagrams.head_circuits()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One head owns d rows of the matrices for queries, keys and values, and d columns of `unify`.
# Above, a hidden state at each end gives a score (before rotation). Below, a hidden state enters at the right, and
# the product is what the head writes.
#
# </div>
#
# The **QK circuit** says where a head looks, the **OV circuit** what it moves. The induction circuit is a
# **K-composition**: the keys of layer 1 read what the OV circuits of layer 0 write. A **composition score**,
# simplified from [Elhage et al.](https://transformer-circuits.pub/2021/framework/index.html), measures how much one
# head reads of what another writes:
#
# $$\frac{\lVert W_{\mathrm{reads}} W_{\mathrm{writes}} \rVert}{\lVert W_{\mathrm{reads}} \rVert\,
# \lVert W_{\mathrm{writes}} \rVert} \quad \text{(Frobenius norms),}$$
#
# where $W_{\mathrm{reads}}$ is the later head's rows of $W_q$, $W_k$ or $W_v$ (theirs takes its whole QK or OV
# circuit), and $W_{\mathrm{writes}}$ the earlier head's OV circuit. Random matrices have a score, too. Compare
# every score with theirs.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `composition_scores`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return the composition score of each head of layer 1 with each head of layer 0, from the weights of whole layers.
# Each layer has h heads of width d. Weights may be large: multiplying `reads` by a number leaves the scores as they
# are.
#
# <details><summary>Hint 1: rows and columns</summary>
#
# `nn.Linear` stores (out, in). Head 0 owns the first d outputs of `to_keys` and `to_values`, and the first d inputs
# of `unify`. Are these rows or columns?
#
# </details>
# <details><summary>Hint 2: two heads of width 1</summary>
#
# With e = 2, let `to_values` be [[1, 0], [0, 1]], `unify` [[0, 1], [1, 0]] and `reads` [[1, 0], [1, 1]]. Head 0
# writes through the matrix [[0, 0], [1, 0]], so head 0 of layer 1, which reads (1, 0), has a score of 0 with it. Head
# 1 reads (1, 1) and has 1/√2 = 0.71.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "composition_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def composition_scores(reads, to_values, unify, h):
    """How much each head of a layer reads of what each head of an earlier layer writes.

    reads: (h·d, e), the weight of the later layer's to_queries, to_keys or to_values.
    to_values: (h·d, e), unify: (e, h·d), weights of the earlier layer.
    Returns (h, h), later heads by earlier heads.
    """
    ### BEGIN SOLUTION
    e = reads.shape[1]
    norm = torch.linalg.matrix_norm
    columns = unify.reshape(e, h, -1).transpose(0, 1)         # (h, e, d)
    writing = columns @ to_values.reshape(h, -1, e)           # (h, e, e)
    reading = reads.reshape(h, 1, -1, e)                      # (h, 1, d, e)
    return norm(reading @ writing) / (norm(reading) * norm(writing))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_composition_scores", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(composition_scores)

# %% tags=["hide-input"]
first, second = four.layers
torch.manual_seed(0)
chance = torch.stack([composition_scores(*torch.randn(3, 64, 64), 4).mean(dim=0)
                      for _ in range(500)])
readers = {"queries": second.to_queries, "keys": second.to_keys, "values": second.to_values}
for role, layer in readers.items():
    found = composition_scores(layer.weight, first.to_values.weight, first.unify.weight, 4)
    print(f"{role:>7}: mean scores of the heads of layer 0",
          *[f"{one:.2f}" for one in found.mean(dim=0)])
print(f"random matrices: {chance.mean():.3f}, standard deviation {chance.std():.3f}, "
      f"highest in 500 draws {chance.max():.3f}")

# %% [markdown]
# The keys read heads 1 and 3 most, the two that path patching found. But the sizes differ: for the keys heads 0 and 2
# are also above all random draws, yet patching them brings back little. The score says what a head *could* read, not
# what passes on real texts.
#
# ## In a small GPT-2, the strongest head's map does not show copying
#
# Back to the text of the beginning. The pocket GPT-2 of [lesson 12](../12_gpt2/12_gpt2.ipynb) has four blocks of six
# heads. The corrupted text has `name` in place of `line`, and the measure is the **logit difference** between the
# two. `patch_every_head` patches each head at all positions, as `patched` did at one.

# %%
high, low, shares = patch_every_head(pocket, ids, others, right, wrong)
print(f"logit difference: clean {high:.2f}, corrupted {low:.2f}; "
      f"all shares together {shares.sum():.2f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "A grid of four blocks by six heads. The darkest cell by far is head 5 of block 0, about 0.8; head 3 of block 3 has about 0.4, two more about 0.2, and nearly all others are near 0."}}
plots.heat(shares, [f"block {block}" for block in range(4)],
           [f"head {head}" for head in range(6)], scale=1, row_label="", column_label="",
           title="Head 5 of block 0 brings back most", digits=2)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The share of the logit difference that comes back when this head alone is taken from the clean
# run. Cream shares are just below 0. Effects along one path are counted at both of its ends, so shares need not add
# up to 1.
#
# </div>
#
# The largest shares are in the first block and in the last two. Where do three of these heads act, and where do
# they look?

# %%
kept, own = gathered_by_heads(pocket, ids), gathered_by_heads(pocket, others)
looked = pocket.attention_weights(ids)[:, 0]    # (block, head, t, t)
for block, head in [(0, 5), (2, 0), (3, 3)]:
    back = []
    for at in range(ids.shape[1]):
        mixed = own[block].clone()
        mixed[:, at] = kept[block][:, at]
        logits = patched_gpt2(pocket, others, mixed, block, head)[:, -1]
        back.append(((logits[0, right] - logits[0, wrong]).item() - low) / (high - low))
    at = max(range(len(back)), key=back.__getitem__)
    to = looked[block, head, at].argmax().item()
    print(f"head {head} of block {block}: {back[at]:.2f} at position {at} "
          f"({tokenizer.token(ids[0, at])!r}), "
          f"which looks most at position {to} ({tokenizer.token(ids[0, to])!r})")

# %% [markdown]
# **The head that brings back most looks most at its own position.** Head 5 of block 0 acts at `line`, and looks at
# `line` itself. The heads of blocks 2 and 3 act at the last position, and look at the answer. Head 5 is not
# specific to copying: without it, the loss on ordinary code more than doubles ([measured
# further](../../site/further.md#lesson-12)).
#
# The previous-token head of lesson 12, head 1 of block 0, brings back nothing. In both texts the token before the
# name is `(`, so there it writes the same. Patching tests the *difference* between two texts, and only that.
#
# ## In this text, only the last block makes the answer likely
#
# Patching tells which parts matter. A cheaper instrument tells *when* an answer appears. The **logit lens**
# ([nostalgebraist, 2020](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens)) sends
# the hidden state after each block through the last norm and the output layer, as if it were the last. The logits
# are what the model would say if the remaining blocks added nothing. The function below has the bug that a widely
# used library had ([TransformerLens, issue
# 1076](https://github.com/TransformerLensOrg/TransformerLens/issues/1076)).

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `logit_lens`** &nbsp; fix · ★★☆ · 7 minutes · 3 points
#
# Fix the function: each state has to go through the norm as the last one does. You may use PyTorch's `layer_norm`.
#
# <details><summary>Hint 1: compare</summary>
#
# Draw a few states of different sizes. For which of them does the function agree with `F.layer_norm` and the output
# layer?
#
# </details>
# <details><summary>Hint 2: two states</summary>
#
# With ε = 0, weight 1 and bias 0, the states (1, −1) and (10, −10) are both normed to (1, −1). What does the function
# make of the first?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "logit_lens", "locked": false, "schema_version": 3, "solution": true, "task": false}
def logit_lens(states, weight, bias, table, eps=1e-5):
    """What a model would say if each of its hidden states were the last.

    states: (states, b, t, e), the embeddings and then the output of each block.
    weight, bias: (e,), of the last LayerNorm. table: (n, e), the output layer.
    Returns logits (states, b, t, n).
    """
    centred = states - states.mean(dim=-1, keepdim=True)
    ### BEGIN SOLUTION
    deviation = (states.var(dim=-1, unbiased=False, keepdim=True) + eps).sqrt()
    ### STUDENT GETS
    # deviation = (states[-1].var(dim=-1, unbiased=False, keepdim=True) + eps).sqrt()
    ### END SOLUTION
    return (centred / deviation * weight + bias) @ table.T

# %% nbgrader={"grade": true, "grade_id": "check_logit_lens", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(logit_lens)

# %%
with torch.no_grad():
    states = [pocket.embed(ids)]
    for block in pocket.blocks:
        states.append(block(states[-1]))
    states = torch.stack(states)                                        # (states, b, t, e)
    logits = logit_lens(states, pocket.norm.weight, pocket.norm.bias, pocket.tokens.weight,
                        pocket.norm.eps)
    own = pocket(ids)
print("the last is what the model says:", torch.allclose(logits[-1], own, atol=1e-3))
for number, chances in enumerate(logits[:, 0, -1].softmax(dim=-1)):
    place = "embedding" if number == 0 else f"block {number - 1}"
    words = [f"{tokenizer.token(i)!r} {chance:.2f}"
             for chance, i in zip(*chances.topk(3))]
    print(f"{place:>9}:", *words, sep="   ")

# %% [markdown]
# The embedding of `(` says `(` again: the table of tokens is also the output layer. After blocks 0 and 1 `self` is
# the second guess, and only block 3 decides for `line`. That agrees with the patches: two heads that look at the
# answer are in blocks 2 and 3. At the first `(` the model does say `self`, with 0.75. What in the state after block 1
# speaks for it there?
#
# <details><summary>After the repair: why is exercise 2 different?</summary>
#
# There the parts of **one** sum went through **one** norm, so one deviation was right for all of them. Here each
# state is normed alone and has a deviation of its own. Divided by that of the last state, an early state gives small
# logits, and looks undecided.
#
# </details>
#
# Later blocks need not read a state as the output layer does, and there are models for whose early states the lens
# shows nothing sensible ([Belrose et al., 2023](https://arxiv.org/abs/2303.08112)).
#
# ## One feature of a dictionary makes the model expect `self`
#
# Except for the lens, all tests took **heads** as the parts. But a hidden state of e numbers can hold more than e
# features, in directions that are not at right angles, where few features occur at a time. This is **superposition**
# ([Elhage et al., 2022](https://arxiv.org/abs/2209.10652); [Measured further](../../site/further.md#lesson-19) trains
# their toy). Then a component, or a head, may mix several features.
#
# If directions outnumber dimensions, look for the directions. A **sparse autoencoder** ([Bricken et al.,
# 2023](https://transformer-circuits.pub/2023/monosemantic-features/index.html)) learns a dictionary of k > e
# features from many hidden states x:
#
# $$f = \mathrm{ReLU}\big((x - b_d) W_e + b_e\big), \qquad \hat x = f W_d + b_d, \qquad
# L = \lVert x - \hat x \rVert^2 + \lambda \sum_i f_i \lVert W_{d,i} \rVert .$$
#
# The penalty keeps most features at 0. It counts each feature times the length of its row of W_d: without that factor
# the model could shrink f and lengthen W_d, and pay almost nothing.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `dictionary_loss`** &nbsp; ★★☆ · 9 minutes · 3 points
#
# Return the loss L of each vector. In code, W_e is `encode`, b_e `bias`, W_d `decode`, b_d `offset`, and λ `penalty`.
#
# <details><summary>Hint 1: which axis</summary>
#
# Row i of `decode` is the direction of feature i. Its length is a norm over the e components. How many such lengths
# are there?
#
# </details>
# <details><summary>Hint 2: one vector, one feature</summary>
#
# Let x = (3, 4), offset (0, 0), encode ((1), (0)), bias (−1), decode ((0, 2)) and penalty 0.5. Then f = 2 and x̂ =
# (0, 4). The error is 9, the penalty 0.5 · 2 · 2 = 2, and the loss 11.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "dictionary_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dictionary_loss(x, encode, bias, decode, offset, penalty):
    """The loss of a sparse autoencoder for each vector.

    x: (m, e). encode: (e, k), bias: (k,). decode: (k, e), offset: (e,).
    penalty: λ. Returns (m,).
    """
    ### BEGIN SOLUTION
    features = torch.relu((x - offset) @ encode + bias)
    rebuilt = features @ decode + offset
    sparsity = features @ decode.norm(dim=-1)
    return (x - rebuilt).square().sum(dim=-1) + penalty * sparsity
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_dictionary_loss", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(dictionary_loss)

# %% [markdown]
# With this loss, dictionaries of 512 features were trained on the pocket GPT-2's hidden states after block 1, of
# width e = 192 (recorded). How much of the model survives if block 2 reads the rebuilt states? The unit is bits per
# byte on modules that were held out.

# %%
run = recorded("dictionary")
print(f"own states: {run['result']['own']:.2f} bits per byte; "
      f"their mean in place of each: {run['result']['mean']:.2f}")
for look in run["curve"]:
    print(f"λ = {look['penalty']}: {look['present']:>5.1f} features present, "
          f"{look['dead']:.0%} of all never, {look['lost']:.0%} of the variance lost, "
          f"{look['held_out_bits']:.2f} bits per byte")

# %% [markdown]
# **The fewer features describe a state, the more of the model is lost:** with the smallest penalty the loss rises
# from 1.16 to 1.33 bits per byte. At λ = 0.6 the majority of the 512 features is **dead**: never present on held-out
# text. What a dictionary leaves out is part of what the model predicts with, and may be what one is looking for.
#
# The dictionary of λ = 0.2 comes with the course. Of the features in this text, number 343 was picked for its large
# effect. It is present at both `(` and hardly elsewhere. A name for it, such as *an argument comes next*, is a
# hypothesis. To test it, switch it off: subtract what it adds to the state after block 1, and let blocks 2 and 3 go
# on. As a control, subtract as much in a random direction.

# %%
dictionary = Dictionary.load(FOLDER / "dictionary.safetensors", device())

@torch.no_grad()
def feature_off(number, direction=None):
    """Logits (t, n) of the text without a feature; or with as much off in a direction."""
    strength = dictionary.features(states[2])[..., number, None] * dictionary.length
    row = dictionary.decode[number]
    x = states[2] - strength * (row if direction is None else direction * row.norm())
    for block in pocket.blocks[2:]:
        x = block(x)
    return (pocket.norm(x) @ pocket.tokens.weight.T)[0]

# %% tags=["hide-input"]
def top(logits):
    return "   ".join(f"{tokenizer.token(i)!r} {chance:.2f}"
                      for chance, i in zip(*logits.softmax(dim=-1).topk(3)))

strengths = dictionary.features(states[2])[0, :, 343].tolist()
print("present at:", *[f"{tokenizer.token(i)!r} {strength:.2f}"
                       for i, strength in zip(ids[0], strengths) if strength > 0.005])
torch.manual_seed(0)
directions = F.normalize(torch.randn(40, 192), dim=-1).to(device())
off, controls = feature_off(343), [feature_off(343, one) for one in directions]
for at, name in ((3, "first"), (16, "second")):
    token = own[0, at].argmax()
    chance = lambda logits: logits[at].softmax(dim=-1)[token].item()
    chances = [chance(one) for one in controls]
    print(f"{name} (, as it is: {top(own[0, at])}")
    print(f"{name} (, off:      {top(off[at])}")
    print(f"    {tokenizer.token(token)!r} as it is {chance(own[0]):.2f}, "
          f"off {chance(off):.2f}; "
          f"40 random directions: {min(chances):.2f} to {max(chances):.2f}")
difference = [(one[right] - one[wrong]).item() for one in (own[0, -1], off[-1])]
print(f"logit difference of line and name: {difference[0]:.2f}, off {difference[1]:.2f}")

# %% [markdown]
# **At the first `(` the feature makes the model expect `self`.** Without it the probability of `self` falls from 0.75
# to 0.03, and none of 40 random directions takes it below 0.30. At the second `(` it decides little: `line` stays
# first, and random directions change it as much. So the answer `line` does not rest on this feature. And the name is
# too wide: with the feature off, an argument is still expected there.
#
# The last line warns of the measure. Without the feature the logit difference rises, though `line` becomes less
# probable. The difference sees two tokens only, and probability can move to others.
#
# ## What you can do now
#
# **Which parts did it, and how would you prove it?** In the model that copies, two heads of layer 0 write into B's
# hidden state which token came before it. The keys of layer 1 read that, and all four heads of layer 1 add to the
# logit of B. In the GPT-2, heads of blocks 2 and 3 that look at `line` act at the last position, and head 5 of block
# 0 brings back most. No single test shows all of this, and the GPT-2 was tested on one pair of texts, without its
# feed-forward layers.
#
# - **The map was no proof.** It shows one of four induction heads. That head adds more than a quarter of the logit,
#   yet without it more than nine in ten tokens are right.
# - **Patches traced the circuit.** Through the keys of layer 1 alone, layer 0 brings back nearly all of the lost logit,
#   in each of five models.
# - **A patch tests only what differs between two texts.** So it is not shown that layer 1 copies B's value. In the
#   pocket GPT-2, the previous-token head brings back nothing.
# - **Heads may be the wrong parts.** Without one feature the model no longer expects `self` at the first `(`;
#   removing random directions never did that. But each dictionary loses part of the model.
#
# You can now ask these questions, and say what each instrument cannot see:
#
# | instrument | its question | its blind spot |
# |---|---|---|
# | attention map | where does a head look? | what the output owes to it |
# | ablation | what is needed? | work that others do as well |
# | attribution | what is added directly? | what acts through other parts |
# | activation patching | which activation restores it? | what both texts share |
# | path patching | through which input? | paths that you did not try |
# | composition score | what could be read? | what passes on real texts |
# | logit lens | when is the answer there? | what later blocks read in another way |
# | sparse autoencoder | which directions? | what it leaves out |
#
# **Two questions to think about**
#
# <details><summary>1. Which corrupted text would show what head 1 of block 0 of the pocket model does?</summary>
#
# One in which the token before the first `line` is another one, and all else the same: then the key of `line` no
# longer says that `(` came before it. Compare the copying model, where the token before the answer was replaced.
#
# </details>
# <details><summary>2. A head's direct contribution to the right token is large. Does it raise the
# probability?</summary>
#
# Not if it adds as much to all other tokens: a softmax ignores what is added to all logits. Ask for the contribution
# to the difference of two logits, as in the patches of the pocket model.
#
# </details>
#
# **Further reading**
#
# - **[Elhage et al., *A mathematical framework for transformer
#   circuits*, 2021](https://transformer-circuits.pub/2021/framework/index.html)**: models without feed-forward
#   networks, taken apart.
# - [Olsson et al., *In-context learning and induction heads*, 2022](https://arxiv.org/abs/2209.11895): the same heads
#   in large models.
# - [Wang et al., *Interpretability in the wild*, 2022](https://arxiv.org/abs/2211.00593): 26 heads of GPT-2 that
#   complete a sentence together, found with ablations, contributions and patching.
# - [Elhage et al., *Toy models of superposition*, 2022](https://arxiv.org/abs/2209.10652), and [Bricken et al.,
#   *Towards monosemanticity*, 2023](https://transformer-circuits.pub/2023/monosemantic-features/index.html): why
#   features outnumber dimensions, and dictionaries that find them.
# - [Belrose et al., *Eliciting latent predictions from transformers with the tuned
#   lens*, 2023](https://arxiv.org/abs/2303.08112): where the logit lens fails, and a lens that is trained.
#
# **Next:** [lesson 20, *Taught to answer*](../20_answering/20_answering.ipynb)
