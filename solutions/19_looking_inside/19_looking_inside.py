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
# A model reads the same text twice, and predicts the second copy with hardly a mistake. Which part of it does that?
# A map of the attention weights has an answer ready: this head looks at exactly the right place. Take the head away,
# and the model copies on.
#
# So a map is not a proof. This lesson trains a very small model that has a mechanism worth finding, and asks three
# questions about its heads. Where does it look? What does it add to the output? What is lost without it? The
# three answers differ, and the differences show how the model works.
#
# | | |
# |---|---|
# | **You will build** | the switch that silences a head, each part's share of a logit, a score of which head feeds which, and a lens that shows what a model would say halfway; one of them you fix |
# | **You need** | lessons [6](../06_positions/06_positions.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 65 minutes: four exercises, 11 points, and two predictions |
# | **It computes** | for seconds in each cell, a quarter of a minute in all |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, e width, h heads, d = e/h, n
# vocabulary. A new letter is p, the length of a stretch that is said twice. Layers and heads are counted from 0.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.device import device
from helpers.lesson import start
from helpers.parts import gpt2 as finished_gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.induction import (
    AttentionOnly, copy_losses, induction_scores, previous_scores, said_twice,
    train_to_copy, withheld,
)

check = start("19_looking_inside")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## A map that looks like the answer
#
# The model follows [Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html), and [Olsson et
# al., 2022](https://arxiv.org/abs/2209.11895). It has two layers of attention, no feed-forward network, rotary
# positions, and 64 tokens. Its text is p different tokens in random order, **said twice**. The first half is random.
# All of the second half but its first token can be predicted, and only by looking back.
#
# `said_twice` makes the rows, (b, 2p). `train_to_copy` draws a fresh batch for each step, with p between 16 and 32, and
# computes the loss on what can be copied. Each head gets a score: in layer 0 its mean weight on the previous token; in
# layer 1, in the second half, that on what came after the same token in the first (lesson 12's `induction_score`).

# %%
def head_scores(model, rows):
    """Previous-token scores of layer 0, and induction scores of layer 1, both (h,)."""
    with torch.no_grad():
        _, weights = model.run(rows[:, :-1])
    return previous_scores(weights[0]), induction_scores(weights[1], rows.shape[1] // 2)

def learn(model, limit=400, enough=0.1):
    """Trains until the loss is small. Returns the losses, and scores now and then."""
    losses, looks = [], []
    for loss in train_to_copy(model, limit):
        losses.append(loss)
        if len(losses) % 5 == 0 or loss < enough:
            best = [scores.max().item() for scores in head_scores(model, rows)]
            looks.append((len(losses), *best))
        if loss < enough:
            break
    return losses, looks

rows = said_twice(64, 24, 64, torch.Generator().manual_seed(9)).to(device())
torch.manual_seed(0)
four = AttentionOnly(n=64, e=64, h=4, depth=2).to(device())
learned, _ = learn(four)
previous, induction = head_scores(four, rows)
best = induction.argmax().item()
print(f"{len(learned)} steps")
print("induction scores, layer 1:", *[f"{score:.2f}" for score in induction])

# %% tags=["hide-input"] mystnb={"image": {"alt": "A triangle of attention weights, 47 by 47. In the lower half a dark line runs parallel to the diagonal, 23 places to its left; in the upper half the dark cells are scattered."}}
with torch.no_grad():
    _, weights = four.run(rows[:1, :-1])
figure, ax = plt.subplots(figsize=(3.9, 3.7), layout="compressed")
title = f"head {best} of layer 1"
plots.heat(weights[1][0, best], title=title, ax=ax, annotate=False, scale=1)
ticks = range(0, 47, 12)
ax.set_xticks(ticks, ticks)
ax.set_yticks(ticks, ticks)
ax.set(xlabel="looked at", ylabel="looks")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i shows where position i looks; dark is a weight of 1. Nearly every position of the second
# half, from 24 on, looks 23 places back: at what came after the same token in the first half.
#
# </div>
#
# This is an [induction head](../../site/glossary.md#induction-head), as in lesson 12, and its map could not be clearer:
# it looks at the token that has to come next.
#
# ## Switching heads off
#
# To find out whether that head delivers the answer, take it away: an **ablation**. Before `unify`, the heads' outputs
# are one tensor z of shape (b, h, t, d), and a head whose output is 0 adds nothing.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `without_head`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Return the outputs of all heads, with zeros in place of one head's.
#
# What every check here asks: gradients flow, new tensors are on the device of the input, and inputs stay unchanged.
#
# <details><summary>Hint 1: which axis</summary>
#
# (b, h, t, d): the heads are axis 1.
#
# </details>
# <details><summary>Hint 2: two heads</summary>
#
# One text, two heads, one position, d = 2: z is [[[[1, 2]], [[3, 4]]]]. Without head 0 the result is [[[[0, 0]], [[3,
# 4]]]], and z still holds 1 and 2.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "without_head", "locked": false, "schema_version": 3, "solution": true, "task": false}
def without_head(z, head):
    """The outputs of all heads, one of them silenced.

    z: (b, h, t, d). head: which, counted from 0. Returns (b, h, t, d).
    """
    ### BEGIN SOLUTION
    silenced = z.clone()
    silenced[:, head] = 0
    return silenced
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_without_head", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(without_head)

# %% [markdown]
# Now the head of the map is switched off. A pure guess among 64 tokens has a loss of log 64 = 4.16.

# %%
def without(model, *heads):
    """Loss on the second half, and share of its tokens that are right, without some heads.

    heads: (layer, head) of each.
    """
    def change(layer, z):
        for number, head in heads:
            z = without_head(z, head) if number == layer else z
        return z
    with torch.no_grad():
        loss = copy_losses(model, rows, change).mean().item()
        said = model(rows[:, :-1], change)[:, 24:].argmax(dim=-1)
    return f"loss {loss:.2f}, {(said == rows[:, 25:]).float().mean():.0%} right"

print(f"all heads: {without(four)}")
print(f"without head {best} of layer 1: {without(four, (1, best))}")
print(f"without layer 1: {without(four, *[(1, head) for head in range(4)])}")

# %% [markdown]
# Together the heads of layer 1 do the copying, but without this one 93% of the copies are still right: it is hardly
# missed. Does it do nothing, then? Or does it do something that the others do as well? A map and an ablation cannot
# tell these apart. Another instrument can. It is easiest to understand in a model with a single head in each layer.
#
# ## One head a layer
#
# Here is that model, otherwise the same:

# %%
torch.manual_seed(0)
copier = AttentionOnly(n=64, e=64, h=1, depth=2).to(device())
losses, looks = learn(copier)
before, after = head_scores(copier, rows)
print(f"{len(losses)} steps; previous-token score of layer 0: {before[0]:.2f}, "
      f"induction score of layer 1: {after[0]:.2f}")
print(f"all heads: {without(copier)}")
print(f"without the head of layer 1: {without(copier, (1, 0))}")
print(f"without the head of layer 0: {without(copier, (0, 0))}")
with torch.no_grad():
    off = lambda layer, z: without_head(z, 0) if layer == 0 else z
    logits, (_, looked) = copier.run(rows[:, :-1], off)
most = rows[:, :-1].gather(1, looked[:, 0].argmax(dim=-1))    # where the weight is largest
copied = (logits.argmax(dim=-1) == most)[:, 24:].float().mean()
print(f"then it says the token that layer 1 looks at most in {copied:.0%} of places")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels over the same steps. Above, the loss stays near log 64, about 4.2, for most of the training and then falls to almost 0 within a few dozen steps. Below, the induction score and the previous-token score are near 0 all that time and rise in the same few dozen steps, the induction score first."}}
figure, axes = plt.subplots(2, 1, figsize=(5.8, 4.8), sharex=True, layout="compressed")
plots.loss_curve(losses, landmarks={"a guess: log 64": math.log(64)}, xlabel="", ax=axes[0])
steps = [look[0] for look in looks]
series = {"previous token, layer 0": (steps, [look[1] for look in looks]),
          "induction, layer 1": (steps, [look[2] for look in looks])}
plots.curves(series, "step", "score", ax=axes[1])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above, the loss on the second half; below, one score for the head of each layer. For a long time
# nothing seems to happen. Then the induction score rises, the previous-token score a little behind it, and the loss
# falls.
#
# </div>
#
# Neither head is useful without the other, which may explain the slow beginning; a faint previous-token signal is
# enough for the other to start. In large models induction heads form as suddenly, early in training, and the loss
# shows a bump there ([Olsson et al.](https://arxiv.org/abs/2209.11895)). Here is where both heads look in the first
# text:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two triangles of attention weights, 47 by 47. Left, layer 0: a dark line just below the diagonal, and a few pale cells far below it. Right, layer 1: in the lower half a dark line parallel to the diagonal, 23 places to its left; in the upper half the dark cells are scattered."}}
with torch.no_grad():
    _, weights = copier.run(rows[:1, :-1])
figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.5), layout="compressed")
for ax, looked, title in zip(axes, weights, ("layer 0", "layer 1")):
    plots.heat(looked[0, 0], title=title, ax=ax, annotate=False, scale=1)
    ticks = range(0, 47, 12)
    ax.set_xticks(ticks, ticks)
    ax.set_yticks(ticks, ticks)
    ax.set(xlabel="looked at", ylabel="looks" if ax is axes[0] else "")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left, most positions look mainly at the previous one. Right, each position of the second half
# looks 23 places back.
#
# </div>
#
# Now no other head can do the same, and both are needed. The surprise is the head of layer 0. It looks one place
# back, not at the answer, yet without it the loss is far above a guess. The last line above says why: the head of
# layer 1 still copies, but from wrong places.
#
# ## What each head adds
#
# Which part is needed, and which part does the work? These are two questions. The second can be answered because the
# last hidden state is a **sum**: the embedding of the token, plus what each head has written,
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
# parts.

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
# **Prediction · `previous_head_share`** &nbsp; 1 minute · no points
#
# In the second half, the logit of the right token is about 10 on average. Without the head of layer 0 the loss is
# highest. How much of that logit does this head add directly?
#
# - **A.** Almost nothing.
# - **B.** Most of it.
# - **C.** A negative number, between −5 and −1.
# </div>

# %% nbgrader={"grade": false, "grade_id": "previous_head_share", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
previous_head_share = "A"
### STUDENT GETS
# previous_head_share = ...    # "A", "B" or "C"
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
    total = added.sum(dim=0) + rest
    print("they add up to the logit:", torch.allclose(total, logits, atol=1e-4))
    print(f"logit of the right token: {logits[:, 24:].mean():.2f}")
    return dict(zip(parts, added[:, :, 24:].mean(dim=(1, 2)).tolist()))

for part, added in contributions(copier, rows).items():
    name = "tokens" if part == "tokens" else "the head of layer " + part[0]
    print(f"{name}: {added:+.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_previous_head_share", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("previous_head_share", previous_head_share)

# %% [markdown]
# The head of layer 1 writes the whole answer. The head of layer 0 adds next to nothing, but without it there is no
# answer: its effect is **indirect**.

# %% [markdown]
# <div class="card">
#
# **Prediction · `missed_head_share`** &nbsp; 1 minute · no points
#
# Back to the model with four heads. The logit of the right token is about 10 again. How much of it comes from the head
# of the map, the one that is hardly missed?
#
# - **A.** Almost nothing: without it, almost nothing was lost.
# - **B.** Nearly all: its map shows that it copies.
# - **C.** Between 2 and 4.
# </div>

# %% nbgrader={"grade": false, "grade_id": "missed_head_share", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
missed_head_share = "C"
### STUDENT GETS
# missed_head_share = ...    # "A", "B" or "C"
### END SOLUTION

# %%
shares = contributions(four, rows)
for part in ("1.0", "1.1", "1.2", "1.3"):
    print(f"head {part[-1]} of layer 1: {shares[part]:+.2f}")
others = sum(share for part, share in shares.items() if not part.startswith("1."))
print(f"all other parts together: {others:+.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_missed_head_share", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("missed_head_share", missed_head_share)

# %% [markdown]
# So that head does its share of the work. Without it, what the other three add still puts the right token first in 93%
# of the places. In GPT-2 there are even heads that write an answer mainly when those that usually do are switched off
# ([Wang et al., 2022](https://arxiv.org/abs/2211.00593)).
#
# A head that is hardly missed can do a good part of the work, and a head that adds nothing can be what everything
# depends on. Contributions and ablations answer different questions.
#
# ## Through which input?
#
# An [induction head](../../site/glossary.md#induction-head) needs help. At the second A of "A B … A" it has to find the
# B; but which token stood before B, an A or another one, is not in B's embedding:

# %%
plots.diagrams.induction_circuit()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From the bottom up: tokens, hidden states after layer 0, prediction. The head of layer 0 has
# written into B's hidden state that A came before it. So the key of B matches the query of the second A, and the head
# of layer 1 takes B's value.
#
# </div>
#
# That is a claim, and it can be tested. Layer 0 writes into the hidden states, and layer 1 reads them three times: for
# queries, for keys and for values. `withheld` removes the contribution of a head from one of the three and leaves it
# everywhere else:

# %%
for role in ("queries", "keys", "values"):
    loss, scores = withheld(copier, rows, head=0, role=role)
    print(f"withheld from the {role:>7}: loss {loss:.2f}, induction score {scores[0]:.2f}")

# %% [markdown]
# The help comes through the keys, as the diagram claims: a key has to say which token stood before its own. A query
# needs only its own token, and a value too. Such an intervention on a single path is a simple form of *path patching*
# ([Goldowsky-Dill et al., 2023](https://arxiv.org/abs/2304.05969)).
#
# ## From the weights alone
#
# Even the **weights** alone, without any text, can hint at which head feeds which. A head of layer 0 writes through
# $W_{\mathrm{unify}} W_v$ (its own columns and rows); a head of layer 1 reads through its rows of $W_q$, $W_k$ or
# $W_v$. The **composition score** of [Elhage et al.](https://transformer-circuits.pub/2021/framework/index.html)
# measures how much one head reads of another's output:
#
# $$\frac{\lVert W_{\mathrm{reads}} W_{\mathrm{writes}} \rVert}{\lVert W_{\mathrm{reads}} \rVert\,
# \lVert W_{\mathrm{writes}} \rVert} \quad \text{(Frobenius norms).}$$
#
# In the model with four heads, the previous-token heads of layer 0 should stand out.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `composition_scores`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return the composition score of each head of layer 1 with each head of layer 0, from the weights of whole layers. Each
# layer has h heads of width d.
#
# <details><summary>Hint 1: rows and columns</summary>
#
# `nn.Linear` stores (out, in). Head 0 owns the first d outputs of `to_keys` and `to_values`, and the first d inputs of
# `unify`. Are these rows or columns?
#
# </details>
# <details><summary>Hint 2: two heads of width 1</summary>
#
# With e = 2, let `to_values` be [[1, 0], [0, 1]], `unify` [[0, 1], [1, 0]] and `reads` [[1, 0], [1, 1]]. Head 0 writes
# through the matrix [[0, 0], [1, 0]], so head 0 of layer 1, which reads (1, 0), has a score of 0 with it. Head 1 reads
# (1, 1) and has 1/√2 = 0.71.
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

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three heat maps of 4 by 4, heads of layer 1 by heads of layer 0. Queries and values: all cells are light. Keys: darker cells, and in every row the two darkest are columns 1 and 3; they are the heads with the highest previous-token scores."}}
first, second = four.layers
readers = {"queries": second.to_queries, "keys": second.to_keys, "values": second.to_values}
figure, axes = plt.subplots(1, 3, figsize=(7, 2.9), layout="compressed")
for ax, (role, layer) in zip(axes, readers.items()):
    scores = composition_scores(layer.weight, first.to_values.weight, first.unify.weight, 4)
    plots.heat(scores.detach(), title=role, ax=ax, scale=0.4)
    ax.set(xlabel="head of layer 0", ylabel="head of layer 1" if ax is axes[0] else "")
plt.show()
print("previous-token scores, layer 0:", *[f"{score:.2f}" for score in previous])
for head in range(4):
    loss, _ = withheld(four, rows, head, "keys")
    print(f"head {head} of layer 0 withheld from the keys: loss {loss:.2f}")
feeds = previous.argsort(descending=True)[:2].tolist()
print(f"without heads {feeds[0]} and {feeds[1]} of layer 0: "
      f"{without(four, *[(0, head) for head in feeds])}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row is a head of layer 1, each column a head of layer 0. The darker a cell, the more the head
# of the row reads of what the head of the column writes. Random matrices of these sizes score 1/√e, an eighth. Only
# the keys have columns far above that: those of the heads that look at the previous token.
#
# </div>
#
# The instruments agree on the ranking: two heads of layer 0 look at the previous token, the keys of layer 1 read most
# of what they write, and without both heads less than a third of the copies are right. They do not agree on the other
# two: the keys read more of them than chance would, and withholding them costs next to nothing. Where several heads
# do the same, an ablation of one shows little: cut what all of them read.
#
# ## What would the model say now?
#
# The pocket GPT-2 of [lesson 12](../12_gpt2/12_gpt2.ipynb) copies as well, and it has feed-forward networks. What does
# it expect after `def left(` in a text that has already contained `def left(line`?

# %%
folder = gpt2_files("gpt2", places="embedded").folder
tokenizer, pocket = Tokenizer.from_folder(folder), finished_gpt2.load(folder, device())
text = "def left(line, word):\n    return word\n\ndef left("
ids = torch.tensor([tokenizer.encode(text)], device=device())
with torch.no_grad():
    states = [pocket.embed(ids)]
    for block in pocket.blocks:
        states.append(block(states[-1]))
    states = torch.stack(states)                                        # (states, b, t, e)
    chances = pocket(ids)[0, -1].softmax(dim=-1)
print(f"{tokenizer.token(chances.argmax())!r} with {chances.max():.2f}")
print("standard deviation of the states:",
      *[f"{state.std(dim=-1).mean():.1f}" for state in states], sep="  ")

# %% [markdown]
# In which block is that decided? The **logit lens** ([nostalgebraist,
# 2020](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens)) treats the hidden state
# after each block as if it were the last: it goes through the last norm and the output layer, and becomes logits.
# These are what the model would say if the remaining blocks added nothing. The function below has the bug that a
# widely used library had ([TransformerLens, issue
# 1076](https://github.com/TransformerLensOrg/TransformerLens/issues/1076)).

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `logit_lens`** &nbsp; fix · ★★☆ · 7 minutes · 3 points
#
# Mend the function: each state has to go through the norm as the last one does. You may use PyTorch's `layer_norm`.
#
# <details><summary>Hint 1: look at the sizes</summary>
#
# The cell above prints how large the states are. How large should the components of each be, after the division?
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
# The embedding of `(` says `(` again: the table of tokens is also the output layer. After block 2 the best guesses
# could all be names of arguments, but none has much probability; in this text, only block 3 decides for `line`.
#
# <details><summary>After the repair: why is exercise 2 different?</summary>
#
# There the parts of **one** sum went through **one** norm, so one deviation was right for all of them. Here each state
# stands alone and has a deviation of its own. Divided by that of the last state, an early state gives small logits, and
# looks undecided.
#
# </details>
#
# The lens has limits, too. Later blocks need not read a state as the output layer does, and there are models for whose
# early states it shows nothing sensible ([Belrose et al., 2023](https://arxiv.org/abs/2303.08112)).
#
# ## A clock
#
# Not even a perfect score is a mechanism. Here is the first experiment again, made carelessly: always p = 32, and
# **one** layer, which does not learn the task when p varies. (That one layer cannot do such a task, unless it grows
# with the length of the text, is proved in [Sanford, Hsu and Telgarsky, 2024](https://arxiv.org/abs/2408.14332).)

# %%
torch.manual_seed(0)
clock = AttentionOnly(n=64, e=64, h=1, depth=1).to(device())
*_, last = train_to_copy(clock, 120, periods=(32, 32))
print(f"after training with p = 32: loss {last:.3f}")
for p in (32, 31, 24, 16):
    others = said_twice(64, p, 64, torch.Generator().manual_seed(p)).to(device())
    with torch.no_grad():
        loss = copy_losses(clock, others).mean().item()
        _, weights = clock.run(others[:, :-1])
    score = induction_scores(weights[0], p)[0]
    print(f"p = {p}: induction score {score:.2f}, loss {loss:.2f}")

# %% [markdown]
# At p = 32 the head has the score of a perfect induction head. But it has learned to look 31 places back, whatever is
# there: it is a clock. Unless the period varies, in training or in the test, the score cannot tell the two apart.
#
# ## What you can do now
#
# You can ask a trained model three questions: where does a head look, what does it add to a logit, and what is lost
# without it. You know that the answers may differ, and what each difference means. You can test through which input one
# head feeds another, on texts and from the weights, and read off what a model would say after each block.
#
# **Three questions to think about**
#
# <details><summary>1. In the copying model, could layer 0 help through the queries instead of the keys?</summary>
#
# The query of the second A would have to know what came after the first A, and that is the answer. A head of layer 0
# chooses by token and distance, and neither shows it which token follows an A. At B, it need only look one place back.
#
# </details>
# <details><summary>2. An ablation replaces a head's output by 0. When is that a bad choice?</summary>
#
# When the head adds nearly the same vector everywhere, and later layers expect it. Then 0 is a state that the model has
# never seen, and the loss rises for that reason. The head's mean over many texts is a fairer replacement.
#
# </details>
# <details><summary>3. A head's direct contribution to the right token is large. Does it raise the
# probability?</summary>
#
# Not if it adds as much to all other tokens: a softmax ignores what is added to all logits. Ask for the contribution to
# the difference of two logits.
#
# </details>

# %% [markdown]
# ## The end of the course
#
# The course began with a dot product. This is what you have built, and what it achieved:
#
# | lesson | what you built | what it achieved |
# |---|---|---|
# | [1](../01_dot_product_attention/01_dot_product_attention.ipynb) | attention as a weighted average | loops and matrices agree to 0.00001 |
# | [2](../02_queries_keys_values/02_queries_keys_values.ipynb) | queries, keys and values | loss 0.00, against 1.56 with one matrix for both roles |
# | [3](../03_scaling/03_scaling.ipynb) | the division by √d | at d = 1024 the weight spreads over 5.3 of 8 keys, not 1.0 |
# | [4](../04_multi_head/04_multi_head.ipynb) | heads side by side | PyTorch's own to 0.00001; 1,049,088 parameters |
# | [5](../05_masking/05_masking.ipynb) | masks, and a test for leaks | largest slope above the diagonal: 0 |
# | [6](../06_positions/06_positions.ipynb) | four kinds of positions | one built by hand: 1.00 right at length 64 |
# | [7](../07_transformer_block/07_transformer_block.ipynb) | the block | 7,085,568 parameters, by formula and by count |
# | [8](../08_classifier/08_classifier.ipynb) | a classifier | 97.9% of unseen made-up reviews; of IMDb's, 86.2% |
# | [9](../09_character_generator/09_character_generator.ipynb) | a generator of characters | 2.229 bits per byte; on Wikipedia 1.66 |
# | [10](../10_encoder_decoder/10_encoder_decoder.ipynb) | a translator | 36.07 BLEU on Multi30k |
# | [11](../11_tokens/11_tokens.ipynb) | byte-pair tokens | there and back, the same text |
# | [12](../12_gpt2/12_gpt2.ipynb) | GPT-2, and its published weights | 124,439,808 parameters; the pocket model 1.09 bits per byte |
# | [13](../13_before_transformers/13_before_transformers.ipynb) | recurrent networks with attention | lists of 5: 0.97 right, against 0.01 with one vector |
# | [14](../14_bert/14_bert.ipynb) | BERT, and its published weights | 73.0% of hidden words, read both ways |
# | [15](../15_transformer_xl/15_transformer_xl.ipynb) | a memory of the last segment | 1.000 of passkeys named that only the memory holds |
# | [16](../16_sparse_attention/16_sparse_attention.ipynb) | sparse patterns, and linear attention with a gate | two sparse layers connect all 32,896 pairs |
# | [17](../17_going_big/17_going_big.ipynb) | training on a larger scale | activations of one step 3.8 MB instead of 188.9 |
# | [18](../18_since_gpt2/18_since_gpt2.ipynb) | a Llama, longer windows, a router | `transformers`' logits to 0.00001 |
# | 19 | instruments to look inside | a head that adds nothing to the answer, and without which there is none |
#
# Most rows are a few lines of matrix products, and you have written them. What the course leaves out is what comes
# after: models that are taught to answer, and models that are not transformers.
#
# **Where to go next**
#
# - **Train one.** [nanochat](https://github.com/karpathy/nanochat) goes from raw text to a model that you can talk to;
#   [Stanford's CS336](https://stanford-cs336.github.io/) has you write all of it.
# - **Teach it to answer.** [Ouyang et al., 2022](https://arxiv.org/abs/2203.02155), from human preferences, and
#   [Rafailov et al., 2023](https://arxiv.org/abs/2305.18290), with less machinery.
# - **Look inside.** [TransformerLens](https://github.com/TransformerLensOrg/TransformerLens) does to published models
#   what this lesson did to a small one; [ARENA](https://www.arena.education/) has exercises.
# - **Make it large.** [How to scale your model](https://jax-ml.github.io/scaling-book/) is about chips and what limits
#   them.
# - **See newer designs.** [DeepSeek-V3](https://arxiv.org/abs/2412.19437): many small experts, and a cache of
#   compressed keys. [Mamba](https://arxiv.org/abs/2312.00752): no attention at all.
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
# - [Belrose et al., *Eliciting latent predictions from transformers with the tuned
#   lens*, 2023](https://arxiv.org/abs/2303.08112): where the logit lens fails, and a lens that is trained.
