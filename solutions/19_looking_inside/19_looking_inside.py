# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 19 · Looking inside: what a trained model does, and how to find out
#
# | | |
# |---|---|
# | **You will build** | the switch that silences a head |
# | **You need** | lessons [6](../06_positions/06_positions.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 40 minutes: one exercise, 2 points, and two predictions |
# | **It computes** | for seconds in each cell, half a minute in all |

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.device import device
from helpers.lesson import start
from helpers.parts.induction import (
    AttentionOnly, compositions, copy_losses, induction_scores, previous_scores, said_twice,
    train_to_copy, withheld,
)

check = start("19_looking_inside")

# %% [markdown]
# ## Before you start
#
# <div class="card">
#
# **Recall** &nbsp; 2 minutes · no points
#
# <details><summary>Three questions about earlier lessons</summary>
#
# **`recall_shape`** A layer of width 64 has 4 heads. What is the shape of the part of the weight of `unify` that is
# multiplied by the output of head 0? (lesson 4)
#
# - **A.** (64, 16)
# - **B.** (16, 64)
# - **C.** (16, 16)
#
# **`recall_cause`** Why is the last hidden state of a stack of blocks, each with its norm first, a sum with one term
# from each layer? (lesson 7)
#
# - **A.** The last norm adds up what the blocks return.
# - **B.** Each layer adds its output to x and replaces nothing.
# - **C.** Each layer is linear, so their outputs can be added.
#
# **`recall_bug`** Logits (b, t, n) and targets (b, t) go to `F.cross_entropy` as they are. What happens? (lesson 9)
#
# - **A.** It works: the last axis is taken for the classes.
# - **B.** No error, but the softmax always runs over the positions.
# - **C.** An error, unless t = n.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "recall", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
recall_shape = "A"
recall_cause = "B"
recall_bug = "C"
### STUDENT GETS
# recall_shape = ...    # "A", "B" or "C"
# recall_cause = ...    # "A", "B" or "C"
# recall_bug = ...    # "A", "B" or "C"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_recall", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.recall(recall_shape, recall_cause, recall_bug)

# %% [markdown]
# ## How a model can copy
#
# What has not changed is attention. So we end inside attention, with the smallest model that has a mechanism worth
# finding, after [Elhage et al., 2021](https://transformer-circuits.pub/2021/framework/index.html), and [Olsson et al.,
# 2022](https://arxiv.org/abs/2209.11895). It has two layers of attention, no feed-forward network, rotary positions,
# and 64 tokens. Its text is p different tokens in random order, **said twice** (from here on p is this length, not a
# probability). The first half is random. The second half can be predicted completely, but only by looking back.
#
# An [induction head](../../site/glossary.md#induction-head) does that: at the second A of "A B … A" it looks at what
# came after the first. Lesson 12 found such heads in the pocket GPT-2 and said that they need help:

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
# That is a claim about a model that has not been trained yet. `train_to_copy` draws a fresh batch for each step, with p
# between 16 and 32, and computes the loss on the second half alone; `said_twice` makes the rows, (b, 2p). Each head has
# two scores: the mean weight on the previous token, and, in the second half, the mean weight on what came after the
# same token in the first (lesson 12's `induction_score`).

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
copier = AttentionOnly(n=64, e=64, h=1, depth=2).to(device())
losses, looks = learn(copier)
previous, induction = head_scores(copier, rows)
print(f"{len(losses)} steps; previous-token score of layer 0: {previous[0]:.2f}, "
      f"induction score of layer 1: {induction[0]:.2f}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels over the same steps. Above, the loss stays near log 64, about 4.2, for most of the training and then falls to almost 0 within a few dozen steps. Below, the induction score and the previous-token score are near 0 all that time and rise together in the same steps."}}
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
# nothing seems to happen. Then both scores rise together, and the loss falls.
#
# </div>
#
# Neither head is useful without the other, which may explain the slow beginning. In large models the same happens early
# in training, and shows as a bump in the loss ([Olsson et al.](https://arxiv.org/abs/2209.11895)). Here is where both
# heads look in the first text:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two triangles of attention weights, 47 by 47. Left, layer 0: a dark line just below the diagonal. Right, layer 1: in the lower half a dark line parallel to the diagonal, 23 places to its left; in the upper half no pattern."}}
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
# **How to read it.** Row i shows where position i looks; dark is a weight of 1. Left, each position looks at the
# previous one. Right, each position of the second half, from 24 on, looks 23 places back: at what came after the same
# token.
#
# </div>
#
# ## Switching heads off
#
# A head that looks at the answer may not be the one that delivers it. To find out, switch it off. Before `unify`, the
# heads' outputs are one tensor z of shape (b, h, t, d), and a head whose output is 0 adds nothing.

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `without_head`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Return the outputs of all heads, with zeros in place of one head's.
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
# <div class="card">
#
# **Prediction · `previous_head_out`** &nbsp; 1 minute · no points
#
# The head of layer 0 copies nothing; it looks one place back. Switch it off, and leave the induction head as it is. A
# pure guess has a loss of log 64 = 4.16. What happens to the loss on the second half?
#
# - **A.** Far above 4.16.
# - **B.** About 4.16: the model can only guess now.
# - **C.** It rises a little: the head that copies is still there.
# </div>

# %% nbgrader={"grade": false, "grade_id": "previous_head_out", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
previous_head_out = "A"
### STUDENT GETS
# previous_head_out = ...    # "A", "B" or "C"
### END SOLUTION

# %%
def loss_without(model, *heads):
    """Loss on the second half with some heads, (layer, head), switched off."""
    def change(layer, z):
        for number, head in heads:
            z = without_head(z, head) if number == layer else z
        return z
    with torch.no_grad():
        return copy_losses(model, rows, change).mean().item()

print(f"all heads: {loss_without(copier):.2f}")
print(f"without the induction head: {loss_without(copier, (1, 0)):.2f}")
print(f"without the previous-token head: {loss_without(copier, (0, 0)):.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_previous_head_out", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("previous_head_out", previous_head_out)

# %% [markdown]
# **Through which input** does layer 0 reach the induction head? It writes into the hidden states, and layer 1 reads
# them three times: for queries, for keys and for values. `withheld` removes the head's contribution from one of the
# three and leaves it everywhere else:

# %%
for role in ("queries", "keys", "values"):
    loss, scores = withheld(copier, rows, head=0, role=role)
    print(f"withheld from the {role:>7}: loss {loss:.2f}, induction score {scores[0]:.2f}")

# %% [markdown]
# Through the keys, as the diagram claims: a key has to say which token came before it. The query needs only its own
# token, and so does the value.
#
# ## Four heads a layer
#
# With one head per layer there was nothing to search for. Now four heads of width 16 learn the same task. Which head
# feeds which can be read from the **weights alone**, without any text. A head of layer 0 writes through
# $W_{\mathrm{unify}} W_v$ (its own columns and rows); a head of layer 1 reads through its rows of $W_q$, $W_k$ or
# $W_v$. How much one head reads of another's output is measured by the **composition score** of [Elhage et
# al.](https://transformer-circuits.pub/2021/framework/index.html),
#
# $$\frac{\lVert W_{\mathrm{reads}} W_{\mathrm{writes}} \rVert}{\lVert W_{\mathrm{reads}} \rVert\,
# \lVert W_{\mathrm{writes}} \rVert} \quad \text{(Frobenius norms).}$$

# %%
torch.manual_seed(0)
four = AttentionOnly(n=64, e=64, h=4, depth=2).to(device())
learned, _ = learn(four)
previous, induction = head_scores(four, rows)
print(f"{len(learned)} steps")
print("previous-token scores, layer 0:", *[f"{score:.2f}" for score in previous])
print("induction scores, layer 1:     ", *[f"{score:.2f}" for score in induction])

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three heat maps of 4 by 4, heads of layer 1 by heads of layer 0. Queries and values: all cells are light. Keys: two columns, 1 and 3, are the darkest in every row; they are the heads with the highest previous-token scores."}}
figure, axes = plt.subplots(1, 3, figsize=(7, 2.9), layout="compressed")
for ax, (role, scores) in zip(axes, compositions(four).items()):
    plots.heat(scores, title=role, ax=ax, scale=0.4)
    ax.set(xlabel="head of layer 0", ylabel="head of layer 1" if ax is axes[0] else "")
plt.show()
for head in range(4):
    loss, _ = withheld(four, rows, head, "keys")
    print(f"head {head} of layer 0 withheld from the keys: loss {loss:.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each row is a head of layer 1, each column a head of layer 0. In a darker cell, the first reads
# more of what the second writes. Only the keys have dark columns: those of the heads that look at the previous token.
#
# </div>

# %% [markdown]
# <div class="card">
#
# **Prediction · `best_head_out`** &nbsp; 1 minute · no points
#
# Now the head of layer 1 with the highest induction score is switched off. With one head per layer, that raised the
# loss by more than 5 nats. How much here?
#
# - **A.** Less than 1 nat.
# - **B.** About a quarter of that, 1 to 2 nats: one head of four.
# - **C.** As much as before: it is the best copier, and the answer is gone.
# </div>

# %% nbgrader={"grade": false, "grade_id": "best_head_out", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
best_head_out = "A"
### STUDENT GETS
# best_head_out = ...    # "A", "B" or "C"
### END SOLUTION

# %%
best = induction.argmax().item()
print(f"all heads: {loss_without(four):.2f}")
print(f"without head {best} of layer 1: {loss_without(four, (1, best)):.2f}")
print(f"without layer 1: {loss_without(four, *[(1, head) for head in range(4)]):.2f}")
feeds = previous.argsort(descending=True)[:2].tolist()
print(f"without heads {feeds[0]} and {feeds[1]} of layer 0: "
      f"{loss_without(four, *[(0, head) for head in feeds]):.2f}")

# %% nbgrader={"grade": true, "grade_id": "check_best_head_out", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("best_head_out", best_head_out)

# %% [markdown]
# If little changes without a head, it may still do something: others may do the same. What all of them read is a better
# place to cut.
#
# ## A clock
#
# A score is not a mechanism, either. Here is the same experiment, made carelessly: always p = 32, and **one** layer,
# which cannot do the task. (This is proved, for a layer of reasonable size: [Sanford, Hsu and Telgarsky,
# 2024](https://arxiv.org/abs/2408.14332).)

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
# At p = 32 its score is that of a perfect induction head. It has learned to look 31 places back, whatever is there: a
# clock. The period has to vary in training or in the test. Otherwise the score means nothing.
#
# ## What you can do now
#
# You can name what has changed in open models since GPT-2, and write each change; read published weights in either
# convention of rotary positions; say what a mixture of experts saves and what it needs; sample with min-p; and show
# what a head does: where it looks, what happens without it, and through which input it is fed.
#
# **Three questions to think about**
#
# <details><summary>1. A cache with g groups is h/g times smaller. Why are the queries not grouped as well?</summary>
#
# Queries are not stored: each is used once, for the current token. And with h heads of queries, each group is asked h/g
# different questions.
#
# </details>
# <details><summary>2. Mixtral has 47 billion parameters, and each token uses 13 billion of them. Which of the two
# numbers decides how much memory you need?</summary>
#
# The 47. Which experts a token will use is not known in advance, so all have to be in memory. In a batch, different
# tokens use different experts, and soon all are used.
#
# </details>
# <details><summary>3. In the copying model, could layer 0 help through the queries instead of the keys?</summary>
#
# The query of the second A would have to know what came after the first A, and that is the answer. A head of layer 0
# can tell a position only what came before it. Only the position of B can learn which token B follows.
#
# </details>

# %% [markdown]
# ## The end of the course
#
# Eighteen lessons ago there was a dot product. This is what you have built, and what it achieved:
#
# | lesson | what you built | what it achieved |
# |---|---|---|
# | [1](../01_dot_product_attention/01_dot_product_attention.ipynb) | attention as a weighted average | loops and matrices agree to 0.00001 |
# | [2](../02_queries_keys_values/02_queries_keys_values.ipynb) | queries, keys and values | loss 0.01, against 1.33 with one matrix for both roles |
# | [3](../03_scaling/03_scaling.ipynb) | the division by √d | at d = 1024 the weight spreads over 5.3 of 8 keys, not 1.0 |
# | [4](../04_multi_head/04_multi_head.ipynb) | heads side by side | PyTorch's own to 0.00001; 1,049,088 parameters |
# | [5](../05_masking/05_masking.ipynb) | masks, and a test for leaks | largest slope above the diagonal: 0.0 |
# | [6](../06_positions/06_positions.ipynb) | four kinds of positions | one built by hand: 1.00 right at length 64 |
# | [7](../07_transformer_block/07_transformer_block.ipynb) | the block | 7,085,568 parameters, by formula and by count |
# | [8](../08_classifier/08_classifier.ipynb) | a classifier | 96.9% of unseen made-up reviews; of IMDb's, 85.9% |
# | [9](../09_character_generator/09_character_generator.ipynb) | a generator of characters | 2.229 bits per byte; on Wikipedia 1.66 |
# | [10](../10_encoder_decoder/10_encoder_decoder.ipynb) | a translator | 36.07 BLEU on Multi30k |
# | [11](../11_tokens/11_tokens.ipynb) | byte-pair tokens | there and back, the same text |
# | [12](../12_gpt2/12_gpt2.ipynb) | GPT-2, and its published weights | 124,439,808 parameters; the pocket model 1.09 bits per byte |
# | [13](../13_before_transformers/13_before_transformers.ipynb) | recurrent networks with attention | lists of 5: 0.97 right, against 0.01 with one vector |
# | [14](../14_bert/14_bert.ipynb) | BERT, and its published weights | 73.0% of hidden words, against 61.8% read from the left |
# | [15](../15_transformer_xl/15_transformer_xl.ipynb) | a memory of the last segment | 0.103 bits per byte better at equal steps; one position computed for each byte instead of 64 |
# | [16](../16_sparse_attention/16_sparse_attention.ipynb) | sparse patterns, and a softmax in tiles | two sparse layers connect all 32,896 pairs; tiles to 0.0000002 |
# | [17](../17_going_big/17_going_big.ipynb) | training on a larger scale | activations 4.2 MB instead of 50.6; a loss of 2.438, predicted as 2.425 |
# | 18 | a Llama, and a model that copies | `transformers`' logits to 0.00001; the pocket Llama 1.16 bits per byte; the copier's circuit |
#
# Each row is a few lines of matrix products, and you have written them. What the course leaves out is what comes after:
# models that are taught to answer, and models that are not transformers.
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
# - **[Touvron et al., *LLaMA*, 2023](https://arxiv.org/abs/2302.13971)**, section 2.2: three of the five changes, in
#   half a page.
# - [Ainslie et al., *GQA*, 2023](https://arxiv.org/abs/2305.13245): from many heads of keys to a few, without training
#   from scratch.
# - [Fedus et al., *Switch Transformers*, 2021](https://arxiv.org/abs/2101.03961), section 2: routing and balance.
# - [Elhage et al., *A mathematical framework for transformer
#   circuits*, 2021](https://transformer-circuits.pub/2021/framework/index.html): models without feed-forward networks,
#   taken apart.
# - [Olsson et al., *In-context learning and induction heads*, 2022](https://arxiv.org/abs/2209.11895): the same heads
#   in large models.
