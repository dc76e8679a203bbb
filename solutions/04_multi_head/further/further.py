# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Multi-head attention
#
# [Lesson 4](../04_multi_head/04_multi_head.ipynb) trains a small model, the `Reader`, on sentences such as *mary gave
# roses to susan*. From the one vector at *gave* it predicts giver, thing and receiver. This page measures what the
# lesson only mentions: what a linear layer reads from a fixed row, all shares of all runs, what more training does for
# one head, how one head manages at all, how heads divide their work, how training hides a scrambled merge, where two
# heads of a published model look, and what other kinds of heads cost.

# %%
import math

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.toy.giving import GAVE, NAMES, WORDS, giving_sentences
from helpers.parts.multi_head import MultiHeadAttention, split_heads
from helpers.training.giving import FixedRows, rows_of_gave, train, weights_of

plots.use_course_style()
torch.set_num_threads(1)

def told(right):
    """A model's shares of right answers as a line of text."""
    return ", ".join(f"{role} {share:.0%}" for role, share in right.items())

ids = giving_sentences(2000, torch.Generator().manual_seed(0))[0]
positions = ["giver", "gave", "thing", "to", "receiver"]

# %% [markdown]
# ## From one fixed row, a linear layer names every giver and no receiver
#
# The lesson says why no linear layer names every receiver from one fixed row with weights 0.4 for the giver and 0.2 for
# the receiver: mean scores are on a straight line over the weight. Here is the proof. A name with weight 1 adds some
# number to its own score and other numbers to those of other names. Call the means of these numbers, over all names,
# *own* and *other*. In every sentence the weights of the two names sum to 0.6. So over all sentences, a name with weight
# $w$ has the mean score
#
# $$w \cdot \textit{own} \;+\; (0.6 - w) \cdot \textit{other} ,$$
#
# plus what the other words add, on the mean the same for all names. This is a straight line in $w$. The next cell fits a
# layer to the sums of two names with these weights.

# %%
n = len(NAMES)
pairs = torch.tensor([(i, j) for i in range(n) for j in range(n) if i != j])    # giver, receiver
word_sum = 0.4 * torch.eye(n)[pairs[:, 0]] + 0.2 * torch.eye(n)[pairs[:, 1]]
for role, name in ((0, "givers"), (1, "receivers")):
    table = torch.zeros(n, n, requires_grad=True)
    for _ in range(100):
        loss = nn.functional.cross_entropy(word_sum @ table, pairs[:, role])
        (gradient,) = torch.autograd.grad(loss, table)
        table = (table - 10 * gradient).detach().requires_grad_()
    right = ((word_sum @ table).argmax(-1) == pairs[:, role]).float().mean()
    print(f"{name} named by a linear layer: {right:.0%}")

# %% [markdown]
# **How to read it.** The loss of this layer is convex, so the result does not depend on a random start. Each name has
# a direction of its own here; with fewer dimensions than names, no layer can do better.

# %% [markdown]
# ## All three roles, run by run
#
# The lesson draws the shares of giver and receiver. Here are all shares of the same forty runs.

# %%
models = [("one fixed row", FixedRows, 1), ("three fixed rows", FixedRows, 3),
          ("one head", MultiHeadAttention, 1), ("three heads", MultiHeadAttention, 3)]
trained = {}
print("right answers, %        run", *(f"{run:3}" for run in range(1, 11)))
for name, attention, h in models:
    runs = trained[name] = [train(attention, h, seed) for seed in range(1, 11)]
    for role in runs[0][1]:
        print(f"{f'{name}, {role}':<27}", *(f"{100 * right[role]:3.0f}" for _, right in runs))

# %% [markdown]
# **How to read it.** Shares for 2,000 new sentences, after 300 steps of training. One fixed row gets one name mostly
# right and the other in less than a third of the sentences. One head gets both mostly right in six runs. In the other
# four it gets fewer names right, givers and receivers together, than any model with one fixed row.

# %% [markdown]
# ## More steps help one head from one start, and not from another
#
# In the lesson, one head is trained for 300 steps, and in four runs of ten some role stays a guess. The next cell
# gives two of the ten runs ten times as many steps.

# %%
for seed in (2, 4):
    _, right = train(MultiHeadAttention, 1, seed, steps=3000)
    print(f"h = 1, run {seed}, 3,000 steps, right answers: {told(right)}")

# %% [markdown]
# **How to read it.** Run 4 now answers nearly all questions, so one sum can hold nearly all answers. Run 2 still guesses
# the giver. These are two runs, so they show what can happen, not how often.

# %% [markdown]
# ## Where one head gets both names, their weights differ from sentence to sentence

# %%
print(f"{'weights':<8}{'giver':>10}{'receiver':>10}{'distance':>10}{'giver larger':>14}")
for seed in range(1, 11):
    w = weights_of(trained["one head"][seed - 1][0], 1, ids)[:, 0, GAVE]    # (2000, 5)
    giver, receiver = w[:, 0], w[:, 4]
    gap, larger = (giver - receiver).abs().mean(), (giver > receiver).float().mean()
    print(f"run {seed:<4}{giver.mean():10.2f}{receiver.mean():10.2f}{gap:10.2f}{larger:14.0%}")

# %% [markdown]
# **How to read it.** The weights are averages over 2,000 sentences; *distance* is the average distance of the two
# weights within a sentence. In runs 1, 3, 4, 5, 9 and 10 the averages are nearly equal, as if the row treated both
# names alike. The average does not show how the weights differ from sentence to sentence: the distance is 0.15 or more,
# and either name may have the larger weight. In the other four runs one name or both have no weight, and the model
# guesses them.
#
# Here is the row of *gave* in run 4, for both orders of two names.

# %%
for sentence in ("mary gave roses to susan", "susan gave roses to mary"):
    row = rows_of_gave(trained["one head"][3][0], 1, sentence)[0]
    print(*(f"{word} {w:.2f}  " for word, w in zip(sentence.split(), row)))

# %% [markdown]
# **How to read it.** *susan* has the larger weight, first or last, so both sums hold about the same amounts of each
# name. They differ in how much they hold of the last *position's* vector, and that tells who received. The section on
# positions, further down, tests this in two other runs.

# %% [markdown]
# ## Heads divide the questions differently in every run
#
# Nothing in the design assigns a question to a head. In one of three runs each of three heads takes one question; in
# the others they share them.

# %%
runs = {h: [reader for reader, _ in trained[name][:3]] for h, name in ((1, "one head"), (3, "three heads"))}
columns = "".join(f"{position:>9}" for position in positions)
print("weights of gave:    " + columns)
for h in runs:
    for run, reader in enumerate(runs[h], 1):
        for r, row in enumerate(weights_of(reader, h, ids)[:, :, GAVE].mean(0).tolist()):
            print(f"h = {h}, run {run}, head {r}:", *(f"{w:8.2f}" for w in row))

# %% [markdown]
# **How to read it.** Each line is the row of *gave* in one head, averaged over 2,000 sentences. In run 2 with three
# heads, head 0 looks at the thing, head 1 at the receiver, head 2 at the giver. In run 3, head 2 looks only at
# *gave*, the same word in every sentence, so two heads answer all three questions. In run 1, heads 0 and 1 share
# giver and receiver.

# %% [markdown]
# ## Two heads answer everything only where giver and receiver have a row each
#
# The lesson compares one row with three. Here are ten runs with two heads.

# %%
print("weights of gave:    " + columns)
for seed in range(1, 11):
    reader, right = train(MultiHeadAttention, 2, seed)
    for r, row in enumerate(weights_of(reader, 2, ids)[:, :, GAVE].mean(0).tolist()):
        print(f"run {seed}, head {r}:".ljust(20), *(f"{w:8.2f}" for w in row))
    print(f"    right answers: {told(right)}")

# %% [markdown]
# **How to read it.** Runs 2, 3, 4 and 8 answer all questions. In each of them, one head has most of the giver's
# weight and the other most of the receiver's; the thing shares one of these rows. In runs 1, 6 and 10, one row holds
# both names, and the model mistakes them in about one sentence of ten. In runs 5 and 7, no row looks at one of the
# two names, and that name is a guess. In run 9 the names are apart, and one thing in eight is wrong.

# %% [markdown]
# ## One head tells the giver by the positions it looks at
#
# In two runs that usually name giver and receiver, one head does so by a detour. The value of a word is the sum of a
# part from the word and a part from its position, so the output of the head splits into a **word sum** and a
# **position sum** with the same weights. To see which of the two a trained model uses, replace the weights of the two
# names by their mean: in the word sum only, in the position sum only, then in both.

# %%
def outputs_with(reader, w_word, w_position):
    """The logits of a model with one head, from given weights for each of the two sums."""
    word_sum = w_word @ reader.attention.to_values(reader.words(ids))
    position_sum = w_position @ reader.attention.to_values(reader.positions.weight)
    y = reader.attention.unify(word_sum + position_sum)
    return reader.answers(y).view(-1, 3, len(WORDS))

print(f"{'who gives?':<36}{'giver named':>12}{'receiver named':>16}")
for run in 1, 3:
    reader = runs[1][run - 1]
    w = weights_of(reader, 1, ids)[:, 0, [GAVE]]    # (2000, 1, 5)
    mean = (w + w[..., [4, 1, 2, 3, 0]]) / 2    # both names get their mean
    for where, *pair in (("unchanged", w, w), ("equal in word sum", mean, w),
                         ("equal in position sum", w, mean), ("equal in both", mean, mean)):
        named = outputs_with(reader, *pair)[:, 0].argmax(-1)
        giver, receiver = ((named == ids[:, place]).float().mean() for place in (0, 4))
        print(f"run {run}, weights {where:<21}{giver:>12.0%}{receiver:>16.0%}")

# %% [markdown]
# **How to read it.** With equal weights in the word sum, both models name the giver about as often as before. With
# equal weights in the position sum, they name the receiver at least as often as the giver. So these two models tell
# giver from receiver by the position sum.
#
# Here is how they can. The query of *gave* is the same in every sentence, so each score is a **word score** plus a
# position score. Suppose that *susan* has a larger word score than *mary*. Then she gets the larger weight in both
# sentences, and the position sum shows whether that weight is at the first or at the last position. If the models use
# this, then moving weight from the last position to the first must favour names with large word scores.

# %% mystnb={"image": {"alt": "Two scatter plots, runs 1 and 3, of 16 named points: change of giver logit against word score. In both, the points rise from bottom left to top right, close to a line through the middle."}}
_, axes = plt.subplots(1, 2, figsize=(8, 4))
for ax, run in zip(axes, (1, 3)):
    reader, attention = runs[1][run - 1], runs[1][run - 1].attention
    query = attention.to_queries(reader.words(ids[0]) + reader.positions.weight)[GAVE]
    word_score = attention.to_keys(reader.words.weight) @ query / math.sqrt(24)
    logits = reader.answers(attention.unify(attention.to_values(reader.positions.weight)))
    change = 0.1 * (logits[0] - logits[4])[:len(WORDS)]    # first third: the giver
    names = torch.stack([word_score, change], dim=1)[:len(NAMES)]
    plots.plane(names, NAMES, labels=("word score", "change of giver logit"),
                title=f"run {run}: names with a large word score gain", ax=ax)
    print(f"run {run}, correlation of word score and change: {names.T.corrcoef()[0, 1]:.2f}")
plt.show()

# %% [markdown]
# **How to read it.** One point for each name: its word score, and the change of its giver logit when a tenth of the
# weight moves from the last position to the first in the position sum. In both models the points rise to the right.

# %% [markdown]
# ## A scrambled merge is hidden by training
#
# The lesson's model with a scrambled merge scores 100%, rounded, although the row of *gave* consists of outputs for
# other words. Each of these outputs is still an average of all five values, and training adapts the weights to that.

# %%
class ScrambledAttention(MultiHeadAttention):
    def forward(self, x):
        q, k, v = (split_heads(to(x), self.h) for to in (self.to_queries, self.to_keys, self.to_values))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.unify((weights @ v).reshape(x.shape))

reader, right = train(ScrambledAttention, 3)
print("right answers:", told(right))
print("average weights:    " + columns)
weights = weights_of(reader, 3, ids).mean(0)    # (h, 5, 5)
for r, i in (0, 3), (0, 4), (1, 0):
    name = f"head {r}, {positions[i]}:"
    print(f"{name:<20}", *(f"{w:8.2f}" for w in weights[r, i].tolist()))

# %% [markdown]
# **How to read it.** These are the three rows of weights whose outputs end up in the row of *gave*. In head 0, *to*
# looks at giver and receiver, and the receiver at the thing. In head 1, the giver looks most at the receiver.

# %% [markdown]
# ## In a published model, one head looks a token back, another mostly at the first token

# %% mystnb={"image": {"alt": "Two maps of attention weights over the sentence the animal did not cross the street because it was too tired. In the first the weight is one step left of the diagonal. In the second, more than half of the rows look most at the first token, and the row of it puts most of its weight on animal."}}
recording = recorded("minilm")["result"]
example, pronoun = recording["example"], recording["pronoun_head"]
shown = [example["heads"][0], pronoun["head"]]

maps = torch.tensor([example["weights"][0], pronoun["weights"]])
plots.head_grid(maps, example["pieces"], annotate=False,
                titles=[f"layer {layer}, head {head}" for layer, head in shown])
plt.show()

# %% [markdown]
# **How to read it.** Row i holds the weights of token i of all-MiniLM-L6-v2; darker means more. [CLS] and [SEP] mark
# where a text begins and ends. In the first head every token except the first looks at the token before it. (The
# lesson draws this head without positions, for another sentence.) The second is the head of the next section. More than
# half of its rows look most at [CLS]; [Clark et al., 2019](https://arxiv.org/abs/1906.04341) suspect that heads turn to
# special tokens when what they look for is absent.

# %% [markdown]
# ## One head gives the subject more weight, whatever *it* means
#
# A map shows where a head looks, not what it looks for. In the `Reader`'s sentences the receiver is always last, so a
# map cannot tell whether a head looks for the receiver or for the last word. Other sentences can. Of the 72 heads of
# all-MiniLM-L6-v2 we chose the one in which *it* gives *animal* the most weight in the first sentence below, so that
# sentence alone proves nothing. In two of the five, *it* refers to the subject, in three to the other noun. (Sentences
# 1 and 2 are adapted from [Uszkoreit,
# 2017](https://research.google/blog/transformer-a-novel-neural-network-architecture-for-language-understanding/),
# sentences 4 and 5 from [Levesque et al., 2012](https://cdn.aaai.org/ocs/4492/4492-21843-1-PB.pdf).)

# %%
for sentence in pronoun["sentences"]:
    nouns = ", ".join(f"{noun} {weight:.2f}" for noun, weight in sentence["weights"].items())
    print(sentence["text"])
    print(f"    weights of it: {nouns}; it refers to the {sentence['meant']}\n")

# %% [markdown]
# **How to read it.** In all five the subject gets more weight than the other noun. In the three sentences where *it*
# refers to the other noun, the head does not follow. It may look for the subject, or for the noun that came first; both
# fit. To find out what a head looks for, you need sentences that tell the explanations apart.

# %% [markdown]
# ## On the ladder it is the heads that help, not the new layer
#
# The model of *Your model so far* gains half a bit per byte when its single head is replaced by four. But with the
# heads it also gets the layer `unify`. Give that layer to the model with one head.

# %%
from helpers.ladder import E, ByteModel, Projections, later_hidden, measured
from helpers.parts.scaling import scaled_scores

class OneHeadAndUnify(Projections):
    """Lesson 3's scaled head, followed by lesson 4's layer."""

    def __init__(self):
        super().__init__()
        self.unify = nn.Linear(E, E)

    def forward(self, x):
        q, k, v = self.projected(x)
        return self.unify(torch.softmax(later_hidden(scaled_scores(q, k)), dim=-1) @ v)

torch.manual_seed(0)
bits, steps = measured(ByteModel(OneHeadAndUnify()), 4000)
print(f"one head and unify, held out: {bits:.2f} bits per byte after {steps:,} steps")

# %% [markdown]
# **How to read it.** Three runs with one scaled head and no `unify` end between 3.31 and 3.34, three runs with four
# heads between 2.83 and 2.87. With `unify` the single head stays where it was, in this run.

# %% [markdown]
# ## Wide heads cost more, shared keys and values less
#
# A **narrow** head has $d = e/h$ dimensions, and narrow heads have $4e^2 + e$ parameters together, whatever h is. A
# **wide** head has all e dimensions; its projections map e to $h\,e$, and `unify` maps $h\,e$ back to e, so the count
# grows with h. In **multi-query attention** ([Shazeer, 2019](https://arxiv.org/abs/1911.02150)) each head has its own
# queries, and all heads share keys and values of width d.

# %% mystnb={"image": {"alt": "Parameters against heads from 1 to 32 at width 256, both axes logarithmic. Wide rises in proportion to the heads, narrow is a horizontal line, multi-query falls to a little above half of the narrow line, towards the level of the queries and unify alone. All three start at the same point."}}
def count_parameters(e, h, kind):
    """How many numbers are trained: three projections without bias, and unify with its bias."""
    if kind == "narrow":
        return 3 * e * e + e * e + e
    if kind == "wide":
        return 3 * e * (h * e) + (h * e) * e + e
    return e * e + 2 * e * (e // h) + e * e + e

kinds = ("wide", "narrow", "multi-query")
head_counts = [1, 2, 4, 8, 16, 32]
lines = {kind: (head_counts, [count_parameters(256, h, kind) for h in head_counts]) for kind in kinds}
landmarks = {"queries and unify alone": 2 * 256 * 256 + 256}
plots.curves(lines, "heads h", "parameters", log="xy", landmarks=landmarks, named_at="left")
plt.gca().set_xticks(head_counts, labels=head_counts)
plt.minorticks_off()
plt.show()

for kind in kinds:
    print(f"{kind:>11}: {count_parameters(512, 8, kind):>9,} parameters at e = 512, h = 8")

# %% [markdown]
# **How to read it.** Width e = 256, both axes logarithmic. With one head all three kinds have the same count. The
# count of multi-query falls towards that of the queries and `unify` alone. The scores of narrow heads take as many
# multiplications as those of one head, since $h\,d = e$; but there are h tables of scores, each t × t, and the
# softmax has h times the work.
