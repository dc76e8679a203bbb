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
# A map of attention weights suggests an answer: some head looks at `line`. But looking is no proof. This lesson tests
# maps with the instruments of **mechanistic interpretability**, first on a model small enough to explain, then on this
# text.
#
# | | |
# |---|---|
# | **You will build** | scores that find heads, each part's share of a logit, two kinds of patching, a composition score, and the loss of a sparse autoencoder; a logit lens you fix |
# | **You need** | lessons [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 110 minutes: seven exercises, 21.5 points, and two predictions |
# | **It computes** | for seconds in each cell, a minute or so in all |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, e width, h heads, d = e/h, n
# vocabulary. New are p, the length of a stretch that is said twice, and k, a number of features. Layers and heads are
# counted from 0. What every check asks is on [the page for students](../../site/students.md).

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
# ## Four heads look at the answer
#
# Take a model that only copies, built after [Elhage et al.,
# 2021](https://transformer-circuits.pub/2021/framework/index.html), but with rotary positions: two layers of
# attention with four heads each, no feed-forward network, and 64 tokens. Its text is p different tokens in random
# order, **said twice**. In the second half every token but the first can be predicted, and only by looking back. In
# each of 64 test rows, A is at positions 10 and 34, and the first A is followed by B.
#
# `train_to_copy` draws fresh rows, (b, 2p), for each step, with p between 16 and 32, and computes the loss on what can
# be copied.

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
# **How to read it.** The first test row, p = 24. Row i of the map shows where position i looks; dark is a weight of 1.
# The second A, at 34, looks at B, at 11. Nearly every position from 24 on looks 23 places back.
#
# </div>
#
# This is an [induction head](../../site/glossary.md#induction-head), as in lesson 12. Is it the only one? Two **pattern
# scores** tell: the **previous-token score** is the mean weight on the token just before, and the **induction score**
# the mean weight, in the second copy, on the token that followed the same token in the first.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `pattern_scores`** &nbsp; ★☆☆ · 6 minutes · 3 points
#
# Return both scores of each head of one layer. All positions but the first have a previous token. The token at p
# cannot be predicted; the tokens after it can, from positions p to 2p − 2. These count for the induction score.
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
# What depends on a head? Remove it: an **ablation**. A **mean ablation** replaces the head's output by its mean over
# many texts and positions; zeros might do harm only because the model never met them. Before `unify`, the heads'
# outputs are one tensor z of shape (b, h, t, d). `model(ids, change)` calls `change(layer, z)` in each layer, and goes
# on with the result.

# %%
def without(model, heads):
    """Without some heads: loss, and share of right tokens, in the second half.

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
        said = model(rows[:, :-1], change)[:, 24:].argmax(dim=-1)
    return loss, (said == rows[:, 25:]).float().mean().item()

def whole(layer):
    return [(layer, head) for head in range(4)]

cases = {"nothing": [], f"head {best} of layer 1": [(1, best)], "layer 1": whole(1),
         "layer 0": whole(0)}
for name, heads in cases.items():
    loss, share = without(four, heads)
    print(f"without {name:>17}: loss {loss:.2f}, {share:.0%} right")
print(f"a guess: loss {math.log(64):.2f}")

# %% [markdown]
# Without the head of the map, 92 % of the tokens are still right. The surprise is layer 0. Its heads do not look at the
# answer, yet without them few answers are right.
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
# A token's logit is the product of its row w of the output layer with the normed sum. A LayerNorm with weight γ
# and bias β can be applied part by part: each part loses its own mean, and all are divided by the **same** standard
# deviation σ, that of the sum. So
#
# $$\text{logit} = \sum_{\text{parts}} w \cdot \Big(\gamma \odot \frac{x_{\text{part}} -
# \overline{x_{\text{part}}}}{\sigma}\Big) + w \cdot \beta, \qquad \sigma = \sqrt{\mathrm{var}(x) + \varepsilon} .$$
#
# One term is the **direct contribution** of a part: what it adds to the logit itself, not through other parts. To list
# the terms is **direct logit attribution**.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `direct_contributions`** &nbsp; ★★☆ · 10 minutes · 3 points
#
# Return what each part adds to one logit at each position. The term with β belongs to no part and is left out. The
# variance is divided by e, not by e − 1.
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
print(f"layer 0 together: {sum(direct[f'0.{head}'] for head in range(4)):+.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_missed_head_share", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("missed_head_share", missed_head_share)

# %% [markdown]
# **The head of the map does a part of the work, and the other three usually suffice.** Layer 0, which most answers
# need, adds almost nothing to the logit: its effect is **indirect**. What does it pass on, and which part reads it?
#
# ## One activation can bring back half of a lost logit
#
# At the second A, an induction head has to find B. But B's embedding does not say which token came before it. Two
# heads could solve that together:

# %%
plots.diagrams.induction_circuit()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From the bottom up: tokens, hidden states after layer 0, prediction. A head of layer 0 writes into
# B's state that A came before it, so B's key matches the query of the second A. A head of layer 1 takes B's value.
#
# </div>
#
# That is a hypothesis. To test it, take two texts. The **clean** one ends at position 34, with the second A, so B can
# be copied. In the **corrupted** one another token replaces the first A, at position 10, so the last token is new.
#
# **Activation patching** (or causal tracing, [Meng et al., 2022](https://arxiv.org/abs/2202.05262)) runs the
# corrupted text, but replaces one activation by its value in the clean run. If the right answer comes back, that
# activation carried what was missing. An ablation asks what is needed; a patch asks what is *sufficient* to bring
# the answer back.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `patched`** &nbsp; ★★★ · 11 minutes · 3.5 points
#
# Patch the output of one head at one position, and return the logits. All other heads, and this head at all other
# positions, compute what the corrupted text gives them. A second call must not depend on the first.
# `without` above shows how a model is called with a `change`.
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
# **How to read it.** Each number is the share of the lost logit, over 64 pairs of texts, that comes back. Hatched: one
# cell that came out as 0, and the cells of layer 1 that were not patched: the last layer cannot reach 34 from
# elsewhere.
#
# </div>
#
# **The hypothesis holds at both of its positions.** At position 11, that of B, two heads of layer 0 bring back a half
# and a third of what was lost: the two with the highest previous-token scores. At every other position layer 0 brings
# back next to nothing, even at the token that was replaced. At position 34, each head of layer 1 delivers a part of the
# answer. These parts add up to more than 1 because the last norm is not linear: [with its σ held
# fixed](../../site/further.md#lesson-19) they add up to 1.00.
#
# If several heads do the same work, one can restore the answer though none is needed. The player shows another run of
# this training, and switches off with zeros.

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("patch")

# %% [markdown]
# ## Only the keys of layer 1 need layer 0
#
# The patches leave open how layer 1 reads what layer 0 wrote: for its queries, its keys or its values. In the diagram
# only the **keys** need it. **Path patching** ([Goldowsky-Dill et al., 2023](https://arxiv.org/abs/2304.05969)) tests a
# single path: what one part has written is replaced where *one* other part reads it, and nowhere else.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `path_patched`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Return what a layer adds when the input named by `role` reads `other` and the remaining two read x. The hidden state
# itself is not added. The layer has `weights(for_queries, for_keys)`, which returns (b, h, t, t), and
# `gathered(weights, for_values)`, which returns z, (b, h, t, d). Both norm what they are given. `merge_heads` brings z
# to (b, t, e), for `layer.unify`.
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

# %% [markdown]
# What is *needed*? Let one role read a hidden state in which layer 0's outputs are replaced by their means. What is
# *sufficient*? In a corrupted text, with another token in place of A or of B, let one role read the clean hidden state.

# %%
def after_layer_0(model, ids):
    """The hidden state, (b, t, e), and the same with the means of layer 0's outputs."""
    parts = model.parts(ids)
    written = sum(parts[f"0.{head}"] for head in range(4))
    return parts["tokens"] + written, parts["tokens"] + written.mean(dim=(0, 1))

def by_role(model, x, other):
    """For each role, the logits where it reads `other` and the two others read x."""
    added = {role: path_patched(model.layers[1], x, other, role) for role in ROLES}
    return {role: model.to_logits(model.norm(x + y)) for role, y in added.items()}

@torch.no_grad()
def right_without(model):
    """The share of right tokens where one role does not get what layer 0 writes."""
    return {role: (logits[:, 24:].argmax(dim=-1) == rows[:, 25:]).float().mean().item()
            for role, logits in by_role(model, *after_layer_0(model, rows[:, :-1])).items()}

@torch.no_grad()
def brought_back(model, corrupted):
    """The share of the lost logit that comes back where one role reads the clean state."""
    high, low = right_logit(model(clean)), right_logit(model(corrupted))
    states = [after_layer_0(model, ids)[0] for ids in (corrupted, clean)]
    return {role: (right_logit(logits) - low) / (high - low)
            for role, logits in by_role(model, *states).items()}

another_b = clean.clone()
another_b[:, 11] = corrupted[:, 10]    # the same new token, in place of B
for name, found in [("right without layer 0", right_without(four)),
                    ("back, A replaced", brought_back(four, corrupted)),
                    ("back, B replaced", brought_back(four, another_b))]:
    print(f"{name:>21}:", *[f"  {role} {share:.2f}" for role, share in found.items()])
for pair in ([1, 3], [0, 2]):
    share = without(four, [(0, head) for head in pair])[1]
    print(f"without heads {pair[0]} and {pair[1]} of layer 0: {share:.0%} right")

# %% [markdown]
# Without layer 0 in the keys, copying fails; without it in the queries, or in the values, 99 % of tokens stay right.
# **Replace A, and the keys carry the difference; replace B, and the values do.** So layer 1 finds B by its key and
# copies its value, as in the diagram. The two heads of layer 0 that the patches found are also needed: without both,
# most answers are wrong.
#
# One model may be an accident. Here are four more.

# %% tags=["hide-input"]
print("seed   right   without its    without layer 0   back through keys,   through values,")
print("             clearest head        in the keys           A replaced        B replaced")
for seed in range(1, 5):
    torch.manual_seed(seed)
    other = AttentionOnly(n=64, e=64, h=4, depth=2).to(device())
    learn(other)
    with torch.no_grad():
        _, looked = other.run(rows[:, :-1])
    head = pattern_scores(looked[1], 24)[1].argmax().item()
    before, after = (without(other, one)[1] for one in ([], [(1, head)]))
    keys = brought_back(other, corrupted)["keys"]
    values = brought_back(other, another_b)["values"]
    print(f"{seed:>4} {before:>7.0%} {after:>15.0%} {right_without(other)['keys']:>18.0%} "
          f"{keys:>20.2f} {values:>16.2f}")

# %% [markdown]
# **All five models agree.** Without the head of its clearest map, each still has 86 % to 92 % of the tokens right.
#
# ## The weights point to the same two heads
#
# Could the two heads be found without any text? A **composition score**, simplified from [Elhage et al.,
# 2021](https://transformer-circuits.pub/2021/framework/index.html), measures how much one head could read of what an
# earlier head writes:
#
# $$\frac{\lVert W_{\mathrm{reads}} W_{\mathrm{writes}} \rVert}{\lVert W_{\mathrm{reads}} \rVert\,
# \lVert W_{\mathrm{writes}} \rVert} \quad \text{(Frobenius norms),}$$
#
# where $W_{\mathrm{reads}}$ is the later head's rows of $W_q$, $W_k$ or $W_v$, and $W_{\mathrm{writes}}$ the product
# of the earlier head's columns of `unify` and rows of $W_v$.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `composition_scores`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return the score of each head of layer 1 with each head of layer 0, from the weights of whole layers. Weights may be
# large: multiplying `reads` by a number leaves the scores as they are.
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

# %%
first, second = four.layers
weights = second.to_keys.weight, first.to_values.weight, first.unify.weight
torch.manual_seed(0)
draws = [composition_scores(*torch.randn(3, 64, 64), 4) for _ in range(100)]
print("keys, with heads 0 to 3 of layer 0:",
      *[f"{score:.2f}" for score in composition_scores(*weights, 4).mean(dim=0)])
print(f"random matrices: {torch.stack(draws).mean():.3f}")

# %% [markdown]
# The keys' highest mean scores are with heads 1 and 3 of layer 0, as patching found. But heads 0 and 2
# are above random matrices as well ([measured further](../../site/further.md#lesson-19)): a score says what a head
# *could* read, not what passes on real texts.
#
# ## In a small GPT-2, what is replaced decides which head is found
#
# Does the first text work the same way? The pocket GPT-2 has four blocks of six heads. Without its previous-token head,
# head 1 of block 0, hardly a random token is copied, as [lesson 12](../12_gpt2/12_gpt2.ipynb) found. As in the small
# model, replace one token at a time: in one test the answer, `line`, by `name`; in another the `(` before it, by each
# of 100 random tokens. The measure is the **logit difference** of `line` and `name`. `patch_every_head` patches each
# head at all positions.

# %%
replaced = {"line": others, "(": ids.repeat(100, 1)}
drawn = torch.randint(pocket.config.n, (100,), generator=torch.Generator().manual_seed(0))
replaced["("][:, 3] = drawn.to(device())
found = {}
for token, texts in replaced.items():
    answers_of_both = right.expand(len(texts)), wrong.expand(len(texts))
    found[token] = patch_every_head(pocket, ids.expand_as(texts), texts, *answers_of_both)
    print(f"{token!r} replaced: logit difference {found[token][1]:.2f}, "
          f"clean {found[token][0]:.2f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two grids of four blocks by six heads. Left, where line was replaced, the darkest cell by far is head 5 of block 0, about 0.8; head 3 of block 3 has about 0.4. Right, where the parenthesis before it was replaced, the darkest is head 1 of block 0, about 0.4; head 0 of block 2 and head 3 of block 3 have about 0.3. Nearly all other cells are near 0."}}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 2.9), layout="compressed")
titles = ("line replaced: head 5 of block 0", "( before it replaced: head 1 of block 0")
for ax, title, (*_, shares) in zip(axes, titles, found.values()):
    plots.heat(shares, [f"block {block}" for block in range(4)], range(6), ax=ax, scale=1,
               row_label="", column_label="head", title=title, digits=2)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The share of the logit difference (right: of its mean over the 100 texts) that comes back when
# this head alone is patched. Cream shares are just below 0. If one head feeds another, both shares contain that path.
#
# </div>
#
# Where do the strongest heads act, and where do they look?

# %% tags=["hide-input"]
looked = pocket.attention_weights(ids)[:, 0]    # (block, head, t, t)
for token, texts in replaced.items():
    high, low, shares = found[token]
    kept = gathered_by_heads(pocket, ids.expand_as(texts))
    own = gathered_by_heads(pocket, texts)
    print(f"{token!r} replaced")
    for place in shares.flatten().topk(4).indices.tolist():
        block, head = divmod(place, 6)
        back = []
        for at in range(ids.shape[1]):
            mixed = own[block].clone()
            mixed[:, at] = kept[block][:, at]
            logits = patched_gpt2(pocket, texts, mixed, block, head)[:, -1]
            difference = (logits[:, right] - logits[:, wrong]).mean().item()
            back.append((difference - low) / (high - low))
        at = max(range(len(back)), key=back.__getitem__)
        to = looked[block, head, at].argmax().item()
        print(f"    head {head} of block {block}: {back[at]:.2f} at position {at} "
              f"({tokenizer.token(ids[0, at])!r}), "
              f"which looks most at position {to} ({tokenizer.token(ids[0, to])!r})")

# %% [markdown]
# **As in the small model, an early head carries which token came before, and later heads look at the answer.** With `(`
# replaced, the previous-token head, acting at `line`, brings back more than any other. With `line` replaced it brings
# back nothing: at `line`, the token before is the same in both texts. Most then comes from head 5 of block 0, which
# acts at `line` and looks at `line` itself. In both cases, head 0 of block 2 and head 3 of block 3 act at the last
# position, and look at `line`.
#
# Head 5 is not specific to copying: without it, the loss on ordinary code more than doubles ([measured
# further](../../site/further.md#lesson-12)). And lesson 12's strongest induction head, head 4 of block 2,
# does not copy here: it looks at the first token, and brings back next to nothing.
#
# ## In this text, only the last block makes the answer likely
#
# *When* does the answer appear? The **logit lens** ([nostalgebraist,
# 2020](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens)) sends the hidden state
# after each block through the last norm and the output layer, as if the remaining blocks added nothing. The function
# below has the bug that [a widely used library](https://github.com/TransformerLensOrg/TransformerLens/issues/1076) had.

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
# Only block 3 decides for `line`. That agrees with the patches: heads that look at the answer are in blocks 2 and 3.
# But later blocks need not read a state as the output layer does, and for the early states of some models the lens
# shows nothing sensible ([Belrose et al., 2023](https://arxiv.org/abs/2303.08112)).
#
# <details><summary>After the repair: why is exercise 2 different?</summary>
#
# There the parts of **one** sum went through **one** norm, so one deviation was right for all of them. Here each
# state is normed alone. If the deviation of the last state is larger, an early state divided by it gives small
# logits, and looks undecided.
#
# </details>
#
# ## Which parts did it?
#
# **In the model that copies**, two heads of layer 0 write into B's hidden state which token came before it. The keys
# of layer 1 read that, so its heads look at B, and their values copy B. Keys and values were tested in five models, the
# two heads in one.
#
# **In the GPT-2**, the previous-token head acts at `line`, and heads of blocks 2 and 3 look at `line` from the last
# position. Only heads were patched, never a feed-forward layer, and in one text. Which of their inputs the later heads
# need is open.
#
# **The map was no proof.** Its head adds more than a quarter of the logit, yet most answers stay right without it. **A
# patch finds only what differs between two texts:** where `line` was replaced, it missed the previous-token head.
#
# ## Directions can be switched off, too
#
# Are heads the right parts? A hidden state of e numbers can hold more than e features, in directions that are not at
# right angles, where few features occur at a time: **superposition** ([Elhage et al.,
# 2022](https://arxiv.org/abs/2209.10652); [measured further](../../site/further.md#lesson-19)). A **sparse
# autoencoder** looks for such directions. From many hidden states x it learns a dictionary of k > e features ([Bricken
# et al., 2023](https://transformer-circuits.pub/2023/monosemantic-features/index.html), with the penalty of [a later
# update](https://transformer-circuits.pub/2024/april-update/index.html#training-saes)):
#
# $$f = \mathrm{ReLU}\big((x - b_d) W_e + b_e\big), \qquad \hat x = f W_d + b_d, \qquad
# L = \lVert x - \hat x \rVert^2 + \lambda \sum_i f_i \lVert W_{d,i} \rVert .$$
#
# The penalty keeps most features at 0. Without the lengths of W_d's rows in it, the model could shrink f, lengthen W_d,
# and pay almost nothing.

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
# Dictionaries of 512 features were trained on the pocket GPT-2's hidden states after block 1, of width e = 192
# (recorded). How well does the model predict held-out modules if blocks 2 and 3 continue from the rebuilt states?

# %%
run = recorded("dictionary")
print(f"own states: {run['result']['own']:.2f} bits per byte")
for look in run["curve"]:
    print(f"λ = {look['penalty']}: {look['present']:>4.1f} features present, "
          f"{look['held_out_bits']:.2f} bits per byte")

# %% [markdown]
# **The fewer features describe a state, the more of the model is lost.** With λ = 0.2, feature 343 was picked for its
# effect in this text. To switch it off, subtract what it adds to the state, and let blocks 2 and 3 go on. The control
# switches off each other feature that is present at the same position, one at a time.

# %%
dictionary = Dictionary.load(FOLDER / "dictionary.safetensors", device())
present = dictionary.features(states[2])[0]    # (t, k)

@torch.no_grad()
def feature_off(number):
    """Probabilities (t, n) of the next token without what one feature adds."""
    x = states[2] - present[:, number, None] * dictionary.length * dictionary.decode[number]
    for block in pocket.blocks[2:]:
        x = block(x)
    return (pocket.norm(x) @ pocket.tokens.weight.T)[0].softmax(dim=-1)

for at, name in ((3, "first"), (16, "second")):
    chances = own[0, at].softmax(dim=-1)
    said = chances.argmax()
    others_off = [feature_off(number)[at, said].item()
                  for number in present[at].nonzero().flatten().tolist() if number != 343]
    print(f"{name} (: {tokenizer.token(said)!r} {chances[said]:.2f}; "
          f"without feature 343 {feature_off(343)[at, said]:.2f}; without one of "
          f"{len(others_off)} others {min(others_off):.2f} to {max(others_off):.2f}")

# %% [markdown]
# **At the first `(` one feature makes the model expect `self`.** Without it `self` all but vanishes; without any one
# of the others, it stays likely. At the second `(` `line` falls no further than without the strongest of the
# others: no single feature decides there. What the feature stands for is still open.
#
# ## What you can do now
#
# You can ask eight questions, and say what each answer misses:
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
# <details><summary>1. What does the reverse patch test: the clean text, with one activation of the corrupted text?
# </summary>
#
# What is needed. It is an ablation with the value of another text in place of the mean, and little is lost where
# other parts carry the same.
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
# - **[Olsson et al., *In-context learning and induction heads*, 2022](https://arxiv.org/abs/2209.11895)**: the same
#   heads in large models.
# - [Wang et al., *Interpretability in the wild*, 2022](https://arxiv.org/abs/2211.00593): 26 heads of GPT-2 that
#   complete a sentence together.
#
# **Next:** [lesson 20, *Taught to answer*](../20_answering/20_answering.ipynb)
