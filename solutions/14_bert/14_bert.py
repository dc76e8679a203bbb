# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 14 · BERT
#
# *Read both ways*
#
# GPT-2 reads from the left: a model that writes has nothing to its right. One that only has to understand a text could
# read it both ways. **What does that buy, and how is such a model trained and used?** You build **BERT** ([Devlin et
# al., 2019](https://arxiv.org/abs/1810.04805)), compare it with models that read from the left, and turn texts into
# vectors.
#
# | | |
# |---|---|
# | **You will build** | the hidden words and their loss, BERT, a contrastive loss and, optionally, words in pieces and low-rank fine-tuning |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [8](../08_classifier/08_classifier.ipynb), [9](../09_character_generator/09_character_generator.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 95 minutes: six exercises, 19 points, and two predictions |
# | **It computes** | for about a minute, on any laptop; a published model is another 91 MB (`make data ARGS=minilm`) |
#
# The letters are those of [the table](../../site/notation.md). In the exercises, call no finished part that does the
# same. What every check asks is on [the page for students](../../site/students.md).

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import math
import tempfile
from itertools import permutations

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.datasets import minilm_files
from helpers.data.recorded import recorded
from helpers.data.toy.numerals import as_pair
from helpers.data.toy.reviews import BLAME, PRAISE, reviews
from helpers.device import device
from helpers.lesson import start
from helpers.parts import bert as finished_bert
from helpers.parts.bert import Bert as FinishedBert
from helpers.parts.bert import BertConfig, PieceTokenizer, WordHead
from helpers.parts.blocks import LayerNorm
from helpers.parts.blocks import TransformerBlock as FinishedBlock
from helpers.parts.classifier import mean_pool
from helpers.parts.weight_files import read_weights
from helpers.progress import progress, shortened

check = start("14_bert")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## The words to the right help
#
# One word of a film review is hidden. Two models guess it:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels of bars, the probabilities of five words and of all others at one gap. The next-word model, left only, has read: the cast is. It gives not, hardly, far, very and rather about the same, from 0.14 down to 0.09, and 0.45 to other words. The model of hidden words, both ways, has also read what comes after the gap: from good. It gives 0.54 to far, which is marked as the hidden word, and 0.14 or less to each of the others."}}
words = ["not", "hardly", "far", "very", "rather", "any other"]
guesses = {
    "next word, left only, reads:\nthe cast is …": [0.14, 0.12, 0.10, 0.10, 0.09, 0.45],
    "hidden words, both ways, reads:\nthe cast is [MASK] from good":
        [0.02, 0.14, 0.54, 0.12, 0.07, 0.10]}
plots.bars(guesses, words, xlabel="probability", ylabel="hidden word", mark=[2])
plt.suptitle("Read both ways, “far” rises from 0.10 to 0.54")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Orange: the word that was hidden. Recorded from two small models, briefly trained below on
# different tasks. A fair comparison follows.
#
# </div>
#
# In these reviews, *from* only follows *far*, but a causal mask hides it. A model that reads it favours *far*, but is
# not sure. Can the mask simply be left out?
#
# ## Without the causal mask, the next word is only copied
#
# One block of lesson 7 learns to predict the next token, twice. *Both ways*, every position looks at all positions;
# *left only*, the causal mask hides what comes later. The texts are lesson 8's generated reviews; a token is a word or
# a part of one.

# %%
(texts, _), (test_texts, _) = reviews()
vocabulary = finished_bert.learn_pieces(texts, size=240)    # at most
tokenizer = PieceTokenizer(vocabulary)

def short(texts, most=24):
    """The ids of those texts that have at most so many tokens: (number of texts, most)."""
    ids, _, _ = tokenizer.batch(texts, t_max=48)
    return ids[(ids != tokenizer.pad).sum(dim=1) <= most][:, :most]

all_ids, test_ids = short(texts), short(test_texts)

def next_word(ids, chance):
    """Inputs and targets (b, t): at each position, the token that follows.

    chance: not used; other tasks need it.
    """
    targets = F.pad(ids[:, 1:], (0, 1), value=tokenizer.pad)
    return ids, targets.masked_fill(targets == tokenizer.pad, -100)    # -100: not asked

def may_look(ids, direction):
    """Where each position may look: (b, t), or (b, t, t) if only to its left."""
    real, t = ids != tokenizer.pad, ids.shape[1]
    triangle = torch.ones(t, t, dtype=torch.bool).tril()
    return real if direction == "both ways" else real.unsqueeze(1) & triangle

# %% tags=["hide-input"]
def fit(weights, loss_at, steps, rate, name=None):
    """Train `weights`; loss_at(step) is the loss on one batch. Returns all losses.

    name: of the line that shows the progress; None: without such a line.
    """
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    losses, numbers = [], range(shortened(steps))
    for step in progress(numbers, name) if name else numbers:
        loss = loss_at(step)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return losses

def new_model(words, depth, seed=0):
    """A BERT for this many words, and its head: from vectors to logits."""
    torch.manual_seed(seed)
    model = FinishedBert(BertConfig(n=words, t_max=48, e=64, h=4, depth=depth))
    return model, WordHead(model)

def train(task, direction, data, depth, steps, rate, batch=64, watch=lambda *now: None):
    """A new model, its head, and the loss of every step.

    watch: is called before each step with its number, the model and the head.
    """
    model, head = new_model(len(vocabulary), depth)
    chance = torch.Generator().manual_seed(0)

    def loss_at(step):
        watch(step, model, head)
        ids = data[torch.randint(len(data), (batch,), generator=chance)]    # (b, t)
        inputs, targets = task(ids, chance)
        logits = head(model.hidden(inputs, None, may_look(ids, direction))[-1])
        return finished_bert.masked_loss(logits, targets)

    losses = fit([*model.parameters(), *head.parameters()], loss_at, steps, rate, direction)
    return model.eval(), head.eval(), losses

# %% [markdown]
# A model that writes has nothing to the right yet. So test that, too:

# %%
tried = {direction: train(next_word, direction, all_ids, depth=1, steps=150, rate=1e-2)
         for direction in ("both ways", "left only")}

@torch.no_grad()
def test_loss(trained, read):
    """Loss on test reviews of a model that was trained, and reads, in these directions."""
    model, head, _ = tried[trained]
    ids, targets = next_word(test_ids, None)
    logits = head(model.hidden(ids, None, may_look(ids, read))[-1])    # the last block's
    return finished_bert.masked_loss(logits, targets).item()

for trained, read in (("both ways", "both ways"), ("both ways", "left only"),
                      ("left only", "left only")):
    print(f"trained {trained}, reads {read}: {test_loss(trained, read):.2f} nats")
counts = torch.bincount(all_ids[:, 1:].flatten(), minlength=len(vocabulary)) + 1.0
counts[tokenizer.pad] = 0    # never to predict
following = next_word(test_ids, None)[1]
by_counts = -(counts / counts.sum()).log()[following[following != -100]].mean()
print(f"token frequencies alone: {by_counts:.2f} nats;"
      f" an even guess: log {len(vocabulary)} = {math.log(len(vocabulary)):.2f} nats")

# %% [markdown]
# **The model that reads both ways copies.** Position i has to predict token i + 1, and may look at position i + 1,
# where it is. With everything to the right hidden, the loss rises from 0.02 to 4.46 nats, worse than token frequencies
# alone. With the causal mask, where there is nothing to copy, it is 1.03.
#
# Hiding only the next position is not enough: in a first block, position i + 2 reads token i + 1, and in a second,
# position i reads it from there. Without a causal mask, the word to predict must usually leave the *input*.

# %% [markdown]
# ## Hide words in the input, and predict those
#
# In **masked language modelling** a model predicts 15 % of all tokens from what is on both sides of them (section 3.1
# of the paper). Later tasks contain no `[MASK]`, so the model is also asked for words that it sees. Half of these are
# random, or copying would be enough:
#
# | of the chosen tokens | the model reads | and has to predict |
# |---|---|---|
# | 80 % become `[MASK]` | the plot is `[MASK]`, but the cast is good | *dull* |
# | 10 % become a random token | the plot is `sea`, but the cast is good | *dull* |
# | 10 % stay as they are | the plot is `dull`, but the cast is good | *dull* |
#
# The **targets** hold the true id where a token was chosen, and −100, which PyTorch's cross-entropy ignores,
# everywhere else. (A text begins with `[CLS]`, *class*, and ends with `[SEP]`.)

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `corrupt`** &nbsp; fix · ★★★ · 9 minutes · 3.5 points
#
# Fix the two lines between `targets` and `return`: 80, 10 and 10 % of the chosen tokens have the three fates, and all
# other tokens stay as they are. Draw each token's fate independently and anew at every call. `ids` and `special` stay
# unchanged. (`special` is True at [CLS], [SEP] and [PAD], which are never chosen.)
#
# <details><summary>Hint 1: measure it</summary>
#
# Call it on a large batch of random ids and count: among the chosen, how many are `mask_id`, another id, the same id?
# Among the others, how many have changed?
#
# </details>
# <details><summary>Hint 2: follow a thousand tokens</summary>
#
# Of 1,000 chosen tokens, the first of the two lines makes about 100 random. The second turns 900 of the 1,000 into
# [MASK], among them 90 of the random ones: 10 remain. Follow 1,000 tokens that are *not* chosen, too. Then look for a
# draw that puts each chosen token into exactly *one* of three groups, of 800, 100 and 100.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "corrupt", "locked": false, "schema_version": 3, "solution": true, "task": false}
def corrupt(ids, special, mask_id, n, generator):
    """Hide some words, and ask for them.

    ids: (b, t), int64. special: (b, t), booleans. mask_id: id of [MASK]. n: size of the
    vocabulary. generator: where all draws come from. Returns inputs (b, t) and targets
    (b, t), both int64; targets are −100 where nothing is asked.
    """
    def chance():
        return torch.rand(ids.shape, generator=generator, device=ids.device)

    chosen = (chance() < 0.15) & ~special
    drawn = torch.randint(n, ids.shape, generator=generator, device=ids.device)
    targets = ids.masked_fill(~chosen, -100)
    ### BEGIN SOLUTION
    fate = chance()
    inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), drawn, ids)
    inputs = inputs.masked_fill(chosen & (fate < 0.8), mask_id)
    ### STUDENT GETS
    # inputs = torch.where(chance() < 0.1, drawn, ids)
    # inputs = inputs.masked_fill(chosen & (chance() < 0.9), mask_id)
    ### END SOLUTION
    return inputs, targets

# %% nbgrader={"grade": true, "grade_id": "check_corrupt", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(corrupt)

# %% tags=["hide-input"] mystnb={"image": {"alt": "A review as words on two lines. Most words have no box. A few have one: words replaced by MASK or by another token, with the true word in parentheses, and words kept. Each of the three kinds has its own colour."}}
ids = all_ids[:400]
inputs, targets = corrupt(ids, tokenizer.special(ids), tokenizer.mask, len(vocabulary),
                          torch.Generator().manual_seed(5))
asked = targets != -100
swapped = asked & (inputs != ids) & (inputs != tokenizer.mask)
fates = {"[MASK]": asked & (inputs == tokenizer.mask), "another token": swapped,
         "kept": asked & (inputs == ids)}
per_text = torch.stack([fate.sum(dim=1) for fate in fates.values()])    # (3, b)
row = int(per_text.clamp(max=1).sum(dim=0).argmax())    # the first with all three
real = range(int((ids[row] != tokenizer.pad).sum()))
plots.hidden_words([tokenizer.pieces_by_id[int(inputs[row, k])] for k in real],
                   [tokenizer.pieces_by_id[int(ids[row, k])] for k in real],
                   ["".join(name for name in fates if fates[name][row, k]) for k in real])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One review as the model reads it, picked for its three fates, so over 15 % is chosen.
# Boxes: the tokens to predict, in parentheses the true word. `##` marks a piece inside a word.
#
# </div>
#
# The loss is the mean cross-entropy over the chosen tokens. If none is chosen, PyTorch's mean is 0/0, a NaN.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `masked_loss`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Return the mean cross-entropy, in nats, over the positions whose target is not −100. If there is no such position,
# return 0, with a gradient of zeros. A target of 0 is an ordinary target.
#
# <details><summary>Hint 1: a sum and a count</summary>
#
# `F.cross_entropy(..., reduction="sum")` ignores −100 by itself. It takes logits (positions, n) and targets
# (positions,).
#
# </details>
# <details><summary>Hint 2: no division by 0</summary>
#
# Counts of 3, 1 and 0 have to become the divisors 3, 1 and anything but 0. Adding 1 to all of them would change the
# first two; `clamp` can change the last one alone.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "masked_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_loss(logits, targets):
    """The mean surprise at what is asked.

    logits: (b, t, n). targets: (b, t), −100 where nothing is asked. Returns ().
    """
    ### BEGIN SOLUTION
    total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    return total / (targets != -100).sum().clamp(min=1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_masked_loss", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(masked_loss)

# %% [markdown]
# ## BERT is lesson 7's blocks without the causal mask
#
# BERT is an **encoder**: each position looks at all positions. It reads one text or two, each ended by `[SEP]`. A
# **segment**, 0 or 1, says which text a token belongs to:

# %%
pair_ids, pair_segments = tokenizer.encode("the plot is dull", "it is funny")
print(*(tokenizer.pieces_by_id[i] for i in pair_ids))
print("segments:", *pair_segments)

# %%
plots.diagrams.bert_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Shapes are on the arrows. The blocks' output goes to one of three kinds of **head**, here one or
# more output layers.
#
# </div>
#
# Four details:
#
# - x = norm(token + position + **segment**). Without segments, all are 0: row 0 of that table *is still added*.
# - Post-norm blocks, biases in all layers, epsilon 10⁻¹² and the exact GELU, x Φ(x).
# - The mask (b, t) is True at real tokens and hides padding.
# - The vector for the whole text is tanh(W h₀ + bias), with h₀ the last vector of [CLS]: the **pooler**. Its training
#   task, *next sentence prediction*, is left out here.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `Bert`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Make `tokens`, `positions` and `segments` (`nn.Embedding`; config.n, config.t_max and config.segments rows), `norm`
# (`LayerNorm(e, epsilon)`), `blocks` (an `nn.ModuleList` of config.depth blocks) and `pooler` (`nn.Linear`), and use
# them in `forward`. A block is `FinishedBlock(e, h, hidden=..., activation=..., bias=..., epsilon=...)`. Call it as
# `block(x, mask)`, with a mask (b, 1, t) or None. Take all sizes, and epsilon, from the config.
#
# <details><summary>Hint 1: the options</summary>
#
# hidden is config.hidden, the activation is F.gelu with its default, bias is True, and epsilon is config.epsilon,
# both for the blocks and for `norm`.
#
# </details>
# <details><summary>Hint 2: segments and mask</summary>
#
# Without segments, ids [[4, 7, 2]] have the segments [[0, 0, 0]]. For two texts of 3 and 2 tokens, `mask` is [[True,
# True, True], [True, True, False]], of shape (2, 3). The blocks need it as (2, 1, 3): one row for each text, the same
# for all three positions that look.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "Bert", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Bert(nn.Module):
    """Reads a text both ways: a vector for each token, and one for the whole."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        ### BEGIN SOLUTION
        e, epsilon = config.e, config.epsilon
        self.tokens = nn.Embedding(config.n, e)
        self.positions = nn.Embedding(config.t_max, e)
        self.segments = nn.Embedding(config.segments, e)
        self.norm = LayerNorm(e, epsilon)
        self.blocks = nn.ModuleList([
            FinishedBlock(e, config.h, hidden=config.hidden, activation=F.gelu, bias=True,
                          epsilon=epsilon) for _ in range(config.depth)])
        self.pooler = nn.Linear(e, e)
        ### END SOLUTION

    def forward(self, ids, segments=None, mask=None):
        """ids, segments: (b, t), int64; None: segment 0 everywhere. mask: (b, t), booleans,
        True at the tokens that may be looked at, in any pattern; None: all of them.

        Returns the vectors of all tokens (b, t, e), and one for the whole (b, e).
        """
        ### BEGIN SOLUTION
        if segments is None:
            segments = torch.zeros_like(ids)
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.tokens(ids) + self.positions(places) + self.segments(segments))
        seen = None if mask is None else mask.unsqueeze(1)    # (b, 1, t)
        for block in self.blocks:
            x = block(x, seen)
        return x, torch.tanh(self.pooler(x[:, 0]))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_Bert", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(Bert)

# %% [markdown]
# ## Read both ways, more hidden words are found
#
# Two models learn to find hidden words, one both ways and one left only. But a left-only model needs no hidden words,
# so a third predicts every next token of the intact text. All have two blocks and are tested on the same hidden
# words.

# %% [markdown]
# <div class="card">
#
# **Prediction · `closed_gap`** &nbsp; 1 minute · no points
#
# With hidden words as the task, reading both ways finds more of them than reading left only. How much of this gap, in
# *words found* after 800 steps, does the third model close?
#
# - **A.** All of it, or more: it learns from about seven times as many tokens.
# - **B.** More than half, but not all.
# - **C.** Less than half.
# </div>

# %% nbgrader={"grade": false, "grade_id": "closed_gap", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
closed_gap = "C"
### STUDENT GETS
# closed_gap = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"]
def hide(ids, chance):
    return finished_bert.corrupt(ids, tokenizer.special(ids), tokenizer.mask,
                                 len(vocabulary), chance)

ways = {"both ways, hidden words": (hide, "both ways"),
        "left only, hidden words": (hide, "left only"),
        "left only, next word": (next_word, "left only")}
drawn = torch.rand(test_ids.shape, generator=torch.Generator().manual_seed(1))
place = (drawn * ~tokenizer.special(test_ids)).argmax(dim=1)    # one word of each review
rows = torch.arange(len(test_ids))
truth, hidden_one = test_ids[rows, place], test_ids.clone()
hidden_one[rows, place] = tokenizer.mask

@torch.no_grad()
def test_hidden(way, model, head, count=len(test_ids)):
    """Loss in nats, and share that is right, at the hidden word of `count` reviews."""
    task, direction = ways[way]
    at = place - 1 if task is next_word else place    # the next word is predicted before
    few, where = rows[:count], may_look(test_ids[:count], direction)
    logits = head(model.hidden(hidden_one[:count], None, where)[-1][few, at[:count]])
    right = (logits.argmax(-1) == truth[:count]).float().mean()
    return F.cross_entropy(logits, truth[:count]).item(), right.item()

runs, tests_of = {}, {}
for way, (task, direction) in ways.items():
    tests_of[way] = []
    def watch(step, *parts):
        if step % 40 == 0:
            tests_of[way].append((step, test_hidden(way, *parts, count=500)[0]))
    runs[way] = train(task, direction, all_ids, depth=2, steps=800, rate=3e-3,
                      batch=32, watch=watch)
pocket = runs["both ways, hidden words"][0]
config = pocket.config

# %% tags=["hide-input"] mystnb={"image": {"alt": "Loss at a hidden word against training step for three models. All fall from above five nats. With the next word, left only, it falls much sooner and levels off near 1.1. With hidden words, both ways and left only fall together at first; left only ends highest, both ways crosses the next-word curve at step 600, where a thin vertical line stands, and ends lowest, just below 1. A dotted line near four nats marks the loss of knowing only how frequent each word is."}}
counts = torch.bincount(all_ids[~tokenizer.special(all_ids)], minlength=config.n) + 1.0
unigram = -(counts / counts.sum()).log()[truth].mean().item()
commonest = (truth == counts.argmax()).float().mean()
plots.curves({way: tuple(zip(*points)) for way, points in tests_of.items()},
             "step", "loss at a hidden word (nats)",
             landmarks={"frequencies of words": unigram},
             title="The next word is learned sooner; reading both ways ends lower")
both, left, following = (dict(tests_of[way]) for way in ways)
ahead = [step for step in both if step and both[step] < following[step]]
if ahead:
    plt.axvline(ahead[0], color="#555555", linewidth=0.8)
plt.gca().set_ylim(bottom=0)
plt.show()
print(f"one hidden word in each of {len(test_ids):,} test reviews")
print(f"{'frequencies alone':>23}: {unigram:.2f} nats, {commonest:.1%} right")
for way, (model, head, _) in runs.items():
    nats, right = test_hidden(way, model, head)
    print(f"{way:>23}: {nats:.2f} nats, {right:.1%} right")
print(f"sampling error of each share: {(right * (1 - right) / len(test_ids)) ** 0.5:.1%}")
print("reading both ways has the lowest loss from step", *ahead[:1])
gap, _, _ = tokenizer.batch(["The cast is far from good."], t_max=48)
at = int((gap[0] == vocabulary["far"]).nonzero())
gap[0, at] = tokenizer.mask
print("in the gap of the first figure:")
for way in ("left only, next word", "both ways, hidden words"):
    (task, direction), (model, head, _) = ways[way], runs[way]
    with torch.no_grad():
        logits = head(model.hidden(gap, None, may_look(gap, direction))[-1])
    shares = logits[0, at - (task is next_word)].softmax(dim=-1)
    print(f"{way:>23}:", *(f"{word} {shares[vocabulary[word]]:.2f}" for word in words[:5]))

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Loss at one hidden word in each of 500 test reviews, before every 40th step; printed: all
# reviews, after the last. One run each, from the same initial weights. Vertical line: both ways passes the next word.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_closed_gap", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("closed_gap", closed_gap)

# %% [markdown]
# **After 800 steps, the model that reads both ways finds the most hidden words.** It finds 67 %, and the one trained
# on the next word 60 % (± 1.3 points). By loss, the next word is ahead until about step 600, perhaps because it has a
# target at every token.

# %% [markdown]
# ## After pretraining, three labelled reviews teach far more
#
# Training on hidden or next words needs no labels and is called **pretraining**. For a later task, a linear
# *classifier* reads the vector of each token. Either the model is *frozen*, or all weights are trained with the
# classifier, briefly and at a small rate: **fine-tuning** (section A.3 of the paper).
#
# The new task: which words of a review judge, such as *good* and *dull*? Three labelled reviews hold at most 4 of the
# 16 such words. The classifier is trained on the three frozen models, and on random weights.

# %%
judges = torch.zeros(len(vocabulary), dtype=torch.bool)    # True: this word judges
judges[[vocabulary[word] for word in (*PRAISE, *BLAME)]] = True

def token_vectors(model, ids, direction="both ways"):
    return model.hidden(ids, None, may_look(ids, direction))[-1]    # (b, t, e)

def learn_labels(model, classifier, ids, rate, direction="both ways", steps=100):
    """Train the classifier, and what is not frozen of the model, on labelled reviews.

    Returns how many numbers have been trained.
    """
    targets = judges[ids].long().masked_fill(tokenizer.special(ids), -100)

    def loss_at(step):
        logits = classifier(token_vectors(model, ids, direction))
        return finished_bert.masked_loss(logits, targets)

    weights = [p for p in [*model.parameters(), *classifier.parameters()] if p.requires_grad]
    fit(weights, loss_at, steps, rate)
    return sum(p.numel() for p in weights if p.grad is not None)

@torch.no_grad()
def judged(model, classifier, ids, known, direction="both ways"):
    """Of the judging words of reviews that are not among the known ids, the share that is
    found; and of all words that are flagged, but for those known to judge, the share that
    judges."""
    flagged = classifier(token_vectors(model, ids, direction)).argmax(dim=-1) == 1
    judging, others = judges[ids] & ~torch.isin(ids, known), ~judges[ids]
    hits = (flagged & judging).sum().item()
    wrong = (flagged & others & ~tokenizer.special(ids)).sum().item()
    return hits / judging.sum().item(), hits / max(1, hits + wrong)

# %% tags=["hide-input"]
asked, fitted, held = test_ids[:300], [], []
print(f"{'classifier alone':>23}   new words that judge: found    precision")
for name in ("random weights", *ways):
    direction, shares = ways[name][1] if name in ways else "both ways", []
    for seed in range(3):
        labelled = all_ids[3 * seed:3 * seed + 3]
        base = runs[name][0] if name in ways else new_model(config.n, 2, seed)[0]
        torch.manual_seed(seed)
        frozen = copy.deepcopy(base).requires_grad_(False)
        classifier = nn.Linear(config.e, 2)
        learn_labels(frozen, classifier, labelled, 0.1, direction)
        shares.append(judged(frozen, classifier, asked, labelled, direction))
        fitted += judged(frozen, classifier, labelled, torch.tensor([]), direction)
        held.append(len(labelled[judges[labelled]].unique()))
    found, precise = (f"{min(of):.0%} to {max(of):.0%}" for of in zip(*shares))
    print(f"{name:>23}{found:>30}{precise:>13}")
print(f"on the labelled reviews: at least {min(fitted):.0%} found, and precision too")
print(f"{judges.sum()} words judge; three labelled reviews hold {max(held)}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** 300 test reviews. **Found**: the share of judging words that is flagged. **Precision**: the
# share of flagged words that judges. Judging words of the three labelled reviews do not count. Lowest and highest of
# three runs with other labelled reviews; one pretrained model of each kind.
#
# </div>
#
# **Here pretraining matters far more than which way a model reads.** Each pretrained model finds at least 90 % of the
# new words that judge; random weights, at most 15 %, though they too fit the three reviews. In these generated reviews
# all judging words fill the same places, so a label for *dull* can reach *boring*. Many flags are wrong, also after
# fine-tuning ([Measured further](../../site/further.md#lesson-14)).
#
# The paper compares hidden words, both ways, with the next word, left only ([Devlin et al.,
# 2019](https://arxiv.org/abs/1810.04805), table 5, rows 2 to 4). For telling whether a sentence is positive,
# direction hardly matters. For marking an answer in a text it does: F1, the overlap with the right answer, is 87.9 %
# both ways and 77.8 % from the left. A third setup, with a layer on top that reads both ways, has 84.9 %.

# %% [markdown]
# ## Pairs teach one vector for a whole text
#
# A *search* needs one vector for each text: documents whose vectors are closest to the question's, by cosine, are
# **retrieved**. The simplest such vector is the mean over the tokens. After hidden words alone, that mean tells
# positive reviews from negative ones no better than with random weights ([Measured
# further](../../site/further.md#lesson-14)).
#
# So train the mean itself, on pairs: for each English numeral ([lesson
# 10](../10_encoder_decoder/10_encoder_decoder.ipynb)), find the German one. Numerals have a clear right answer, and
# no single text says that *zwei* means *two*. Each has a **twin** with its first two digits swapped: the same words
# in another order.

# %% tags=["hide-input"]
twos = [(1000 * a + 100 * b + 10 * c + d, 1000 * b + 100 * a + 10 * c + d)
        for a, b, c, d in permutations(range(2, 10), 4) if a < b]
numerals = [as_pair(number) for two in twos for number in two]    # (English, German)
both = [text for pair in numerals for text in pair]
speller = PieceTokenizer(finished_bert.learn_pieces(both, size=300))
english, german = (speller.batch(texts)[0].view(len(twos), 2, -1)    # (twos, 2, t)
                   for texts in zip(*numerals))
order = torch.randperm(len(twos), generator=torch.Generator().manual_seed(0))
tested, learned = order[:100], order[100:]
for number, pair in zip(twos[0], numerals):
    print(f"{number:,}:", *pair, sep="  ")

# %% [markdown]
# Take b pairs of texts that belong together, with vectors $u_i$ and $v_i$. With a **contrastive loss**, each $u_i$
# has to find its partner among all b vectors $v_j$. The b − 1 others in the batch serve as **in-batch negatives**
# ([Henderson et al., 2017](https://arxiv.org/abs/1705.00652), section 4), so what does *not* belong together needs no
# labels. The scores are cosines, divided by a temperature τ:
#
# $$s_{ij} = \frac{\cos(u_i, v_j)}{\tau}, \qquad
# L = -\frac{1}{2b} \sum_i \left[ \log \frac{e^{s_{ii}}}{\sum_j e^{s_{ij}}}
# + \log \frac{e^{s_{ii}}}{\sum_j e^{s_{ji}}} \right].$$
#
# The first term is InfoNCE ([van den Oord et al., 2018](https://arxiv.org/abs/1807.03748)). The second, in which each
# $v_i$ has to find its $u_i$, makes the loss **symmetric**, as in CLIP ([Radford et al.,
# 2021](https://arxiv.org/abs/2103.00020), figure 3).
#
# <details><summary>Why a small temperature?</summary>
#
# For one text in a batch of 64, at best the partner has cosine 1 and the other 63 have −1. With τ = 1 even that has
# the loss $\log(1 + 63\,e^{-2})$, above 2; a small τ lets the loss come close to 0.
#
# </details>

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `contrastive_loss`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return the loss L, in nats. The rows come in any length but 0, so scale them. The temperature may be as small as
# 0.005; the result has to stay finite. A single pair has the loss 0. Gradients must flow to both inputs.
#
# <details><summary>Hint 1: a classification</summary>
#
# Each row of the scores (b, b) is a text to classify, with b classes. Which class is right for row i?
# `F.cross_entropy` takes scores and right classes, and it is safe for large scores.
#
# </details>
# <details><summary>Hint 2: two pairs</summary>
#
# With cosines [[0.9, 0.1], [0.8, 0.6]] and τ = 1, the first texts find their partners with probabilities 0.69 and
# 0.45. The second texts choose within a column: 0.52 and 0.62. The loss is the mean of four logarithms, with a minus:
# 0.57.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "contrastive_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def contrastive_loss(first, second, temperature=0.05):
    """How badly partners find each other in a batch, in both directions.

    first, second: (b, e), in any length; row i of one belongs to row i of the other.
    Returns ().
    """
    ### BEGIN SOLUTION
    first, second = F.normalize(first, dim=-1), F.normalize(second, dim=-1)
    scores = first @ second.T / temperature    # (b, b)
    partner = torch.arange(len(scores), device=scores.device)
    return (F.cross_entropy(scores, partner) + F.cross_entropy(scores.T, partner)) / 2
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_contrastive_loss", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(contrastive_loss)

# %% [markdown]
# A BERT learns with your loss from random weights, and so does a mean of word vectors, which cannot read the order.
# In the test, the twin is a **hard negative**, easily taken for the partner.

# %%
def text_vectors(model, ids):
    """The mean over the real tokens. ids: (b, t). Returns (b, e)."""
    mask = ids != speller.pad
    return mean_pool(model.hidden(ids, None, mask)[-1], mask)

@torch.no_grad()
def recall(model):
    """Shares of English numerals whose closest German one is right, and of those for which
    it has the right words, in whatever order."""
    first, second = (F.normalize(text_vectors(model, ids[tested].flatten(0, 1)), dim=-1)
                     for ids in (english, german))
    closest = (first @ second.T).argmax(dim=1)    # (200,)
    words = german[tested].flatten(0, 1).sort(dim=1).values
    right = closest == torch.arange(len(closest))
    same_words = (words[closest] == words).all(dim=1)
    return right.float().mean().item(), same_words.float().mean().item()

# %%
class MeanOfWords(nn.Module):
    """A vector for each word, wherever it stands."""
    def __init__(self, bert):
        super().__init__()
        self.tokens = copy.deepcopy(bert.tokens)

    def hidden(self, ids, segments, mask):
        return [self.tokens(ids)]

repeats = []    # in each batch, how many numerals repeat the words of another

def taught(model, steps=150):
    chance = torch.Generator().manual_seed(0)

    def loss_at(step):
        rows = learned[torch.randperm(len(learned), generator=chance)[:64]]
        which = torch.randint(2, (64,), generator=chance)    # no twins
        words = german[rows, which].sort(dim=1).values
        repeats.append(len(words) - len(words.unique(dim=0)))
        return contrastive_loss(text_vectors(model, english[rows, which]),
                                text_vectors(model, german[rows, which]))

    fit(list(model.parameters()), loss_at, steps, 3e-3, "pairs")
    return recall(model)

fresh, _ = new_model(len(speller), depth=2)
models = {"mean of words": MeanOfWords(fresh), "BERT": fresh}
found = {name: taught(model) for name, model in models.items()}
print(f"{'the closest':>15}   is right   has the right words")
for name, (right, same_words) in found.items():
    print(f"{name:>15}{right:11.1%}{same_words:22.1%}")
print(f"in a batch of 64, {sum(repeats) / len(repeats):.1f} repeat the words of another")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two maps of cosines, six English numerals by six German ones, in three pairs of twins. Mean of words: along the diagonal are three squares of two by two cells with 1.0, so a twin is as close as the partner. BERT: only the cells of the diagonal have 1.0; those of twins come next, and all others are pale or orange, which is negative."}}
some, cosines = tested[:3], []
for model in models.values():
    with torch.no_grad():
        first, second = (F.normalize(text_vectors(model, ids[some].flatten(0, 1)), dim=-1)
                         for ids in (english, german))
    cosines.append(first @ second.T)    # (6, 6)
plots.heat_pair(*cosines, rows=[f"{number:,}" for k in some for number in twos[k]],
                titles=list(models), same_scale=True, digits=1,
                row_label="English", column_label="German")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Table: share of 200 English numerals whose closest German one is right, or has the right words;
# guessing is right in 0.5 %. 150 steps of 64 pairs from the same word vectors, one run each. Maps: cosines of three
# pairs of twins.
#
# </div>
#
# **Pairs teach vectors that can be searched, across two languages and down to the order of the words.** BERT finds
# every numeral, as in three more runs ([Measured further](../../site/further.md#lesson-14)). The mean of words cannot
# tell twins apart, so it is right in about half of the cases. No training batch holds both twins, but about five of
# its numerals differ from another only in order.

# %% [markdown]
# ## A published model's vector says what a sentence is about
#
# [all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) is a pretrained BERT of 6 blocks
# with e = 384 that then learned from 1.17 billion pairs with a contrastive loss. The vector of a sentence is the mean
# over its tokens, as in Sentence-BERT ([Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084), section 3). If
# this model's file is missing, your BERT loads the *pocket model*, the one above that read reviews both ways.

# %%
pocket_folder = finished_bert.save(pocket, vocabulary, tempfile.mkdtemp())
files = minilm_files(pocket=pocket_folder)
published, _, _ = read_weights(files.folder)
cutter = PieceTokenizer.from_folder(files.folder)
mine = Bert(BertConfig.from_json(files.folder / "config.json")).eval()
print(mine.load_state_dict(finished_bert.rename_bert(published)))

run = recorded("minilm")["result"]

@torch.no_grad()
def sentence_vectors(sentences):
    """The mean over the real tokens of each, at length 1: (number, e)."""
    ids, segments, mask = cutter.batch(sentences)
    x, _ = mine(ids, segments, mask)
    return F.normalize(mean_pool(x, mask), dim=-1)

numbers = sentence_vectors(["This is an example sentence"])[0, :5]
print("your model now:", *(f"{number:.4f}" for number in numbers),
      "" if files.published else " (the pocket model: other numbers, as it should be)")
print("as recorded:   ", *(f"{number:.4f}" for number in run["card"]))

# %% [markdown]
# <div class="card">
#
# **Prediction · `closer_pair`** &nbsp; 1 minute · no points
#
# Which pair does the published model take to be more similar?
#
# - **A.** "Mary gave roses to Susan." and "Susan gave roses to Mary.": the same words, a different meaning.
# - **B.** "The kid is asleep." and "A child sleeps.": different words, the same meaning.
# - **C.** Both equally, to within 0.02.
# </div>

# %% nbgrader={"grade": false, "grade_id": "closer_pair", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
closer_pair = "A"
### STUDENT GETS
# closer_pair = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"] mystnb={"image": {"alt": "Eight pairs of sentences as points: cosine against word overlap. Two pairs with the same words in another order are at the top right. A pair that differs by the word not shares four fifths of its words and has a cosine of 0.8. Three pairs that mean the same with hardly a common word are at the left, between 0.78 and 0.92. Two unrelated pairs are at the bottom left."}}
pairs = run["pairs"]
figure, ax = plt.subplots(figsize=(6, 3.6))
for k, pair in enumerate(pairs):
    ax.plot(pair["overlap"], pair["cosine"], "o", color=plots.COLOURS[0], markersize=5)
    ax.annotate(str(k), (pair["overlap"], pair["cosine"]), xytext=(5, -11 if k == 1 else 3),
                textcoords="offset points", fontsize=8.5)
ax.set(xlabel="word overlap (Jaccard)", ylabel="cosine of the sentence vectors",
       xlim=(-0.05, 1.08), ylim=(-0.1, 1.08),
       title="The same words in another order are the most similar")
plt.show()
for k, pair in enumerate(pairs):
    print(f"{k:>2} {pair['cosine']:6.3f}  {pair['a']} / {pair['b']}")

# %% nbgrader={"grade": true, "grade_id": "check_closer_pair", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("closer_pair", closer_pair)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, with the published model. **Word overlap
# (Jaccard)**: words that both sentences have, divided by words that either has.
#
# </div>
#
# **In these pairs, the vector says what a sentence is about, and hardly who does what.** The model recognises the
# same meaning in different words (pairs 4 and 5). But who gave and who bit hardly changes the vector (pairs 0 and 1),
# and a *not* changes it about as much as a paraphrase does (pairs 2 and 3).
#
# ## What BERT became: hidden words and pairs are still in use
#
# **ModernBERT** ([Warner et al., 2024](https://arxiv.org/abs/2412.13663)) is a BERT with parts of later models; it
# learned from hidden words in 2 trillion tokens and reads windows of 8,192. Retrieval-augmented generation ([Lewis et
# al., 2020](https://arxiv.org/abs/2005.11401)) answers from documents found by vectors that pairs have trained. Hidden
# words can even teach writing: **masked diffusion** models such as LLaDA ([Nie et al.,
# 2025](https://arxiv.org/abs/2502.09992)) start from `[MASK]` everywhere and fill in some tokens at each step.

# %% [markdown]
# ## Optional: a word outside the vocabulary is cut into pieces
#
# No other section needs the last two exercises; their points count like all others.
#
# The published vocabulary has 30,522 entries (ours 208), learned much as in lesson [11](../11_tokens/11_tokens.ipynb)
# ([Schuster and Nakajima, 2012](https://research.google/pubs/japanese-and-korean-voice-search/)). Any other word is
# cut into **WordPieces**: first the longest entry that the word begins with, then the longest that the rest begins
# with, and so on, never going back. A piece inside a word is marked with `##`. If no piece fits, the *whole word*
# becomes `[UNK]`.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `wordpiece`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Cut one word into pieces. Return `["[UNK]"]` if at some point no piece fits, or if the word has more than `limit`
# characters.
#
# <details><summary>Hint 1: one piece</summary>
#
# Let `start` be the index where the rest begins. Try every end, from the word's end down to `start + 1`; the first
# piece found in the vocabulary is the longest. Put `##` before it unless `start` is 0.
#
# </details>
# <details><summary>Hint 2: when nothing fits</summary>
#
# With the pieces *un*, *##mov* and *##ing*, "unmoved" begins with *un*, and its rest "moved" with *##mov*. For the
# rest "ed", neither *##ed* nor *##e* is in the vocabulary. The result is [UNK] alone, without *un* and *##mov*.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "wordpiece", "locked": false, "schema_version": 3, "solution": true, "task": false}
def wordpiece(word, vocabulary, limit=100):
    """The pieces of a word, each the longest that the vocabulary has, from the left.

    word: a string, not empty. vocabulary: dict from piece to id. limit: the longest word
    that is cut, in characters. Returns a list of strings.
    """
    ### BEGIN SOLUTION
    if len(word) > limit:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start > 0 else ""
        for end in range(len(word), start, -1):
            if mark + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(mark + word[start:end])
        start = end
    return pieces
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_wordpiece", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(wordpiece)

# %%
print(f"{len(vocabulary)} pieces from {len(texts):,} reviews; a review:\n{texts[3]}")
for word in ("boring", "bored", "films", "unmoving", "lovelier", "café"):
    print(f"{word:>9}: {' '.join(wordpiece(word, vocabulary))}")

# %% [markdown]
# ## Optional: LoRA, a small update beside frozen weights
#
# Fine-tuning leaves a whole copy of the model for each task. **LoRA**, low-rank adaptation ([Hu et al.,
# 2021](https://arxiv.org/abs/2106.09685), section 4), freezes a matrix W and learns an *update* that is added to it:
#
# $$W + \frac{\alpha}{r}\, B A, \qquad A: (r, n_\text{in}), \quad B: (n_\text{out}, r),$$
#
# with a small rank r. B starts at 0, so the model begins unchanged; B can still learn, because A is random. After
# training, the update is *merged* into W, so the layer costs nothing extra.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `LowRank`** &nbsp; ★★★ · 10 minutes · 3.5 points
#
# Keep the given layer as `self.linear`, with its weight and its bias frozen; some layers have no bias. `self.A` (r,
# n_in) and `self.B` (n_out, r) are `nn.Parameter`: A starts at random numbers, B at 0. `merge()` adds the update to
# the weight, in `self.linear` or in a new layer. `unmerge()` subtracts it from `self.linear` again. Your layer's
# outputs stay the same after any number of calls of both. Gradients must flow to x, A and B.
#
# <details><summary>Hint 1: forward</summary>
#
# With n_in = 6, n_out = 5 and r = 2, x is (4, 6), A is (2, 6) and B is (5, 2). The update of the output is (4, 5); on
# the way to it there is a tensor (4, 2). `nn.Linear` computes `x @ weight.T + bias`.
#
# </details>
# <details><summary>Hint 2: once</summary>
#
# Let W be the given weight and U the update. After merge, merge, unmerge and unmerge, in this order, the weight is W
# + U, W + U, W and W. The outputs are always those of W + U. What does the layer have to remember between two calls?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "LowRank", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LowRank(nn.Module):
    """A frozen linear layer, and beside it an update of low rank that learns.

    linear: nn.Linear. rank: r. alpha: the update is alpha / rank times B A.
    """

    def __init__(self, linear, rank, alpha):
        super().__init__()
        n_out, n_in = linear.weight.shape
        ### BEGIN SOLUTION
        self.linear = linear.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, n_in) / math.sqrt(n_in))
        self.B = nn.Parameter(torch.zeros(n_out, rank))
        self.scale, self.merged = alpha / rank, False
        ### END SOLUTION

    def forward(self, x):
        """x: (..., n_in). Returns (..., n_out)."""
        ### BEGIN SOLUTION
        y = self.linear(x)
        return y if self.merged else y + self.scale * (x @ self.A.T @ self.B.T)
        ### END SOLUTION

    @torch.no_grad()
    def merge(self):
        """Returns an nn.Linear with the same outputs, however often it is called."""
        ### BEGIN SOLUTION
        if not self.merged:
            self.linear.weight += self.scale * self.B @ self.A
            self.merged = True
        return self.linear
        ### END SOLUTION

    @torch.no_grad()
    def unmerge(self):
        """Takes the update out of the weight again, if it is in there. Returns nothing."""
        ### BEGIN SOLUTION
        if self.merged:
            self.linear.weight -= self.scale * self.B @ self.A
            self.merged = False
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_LowRank", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(LowRank)

# %% [markdown]
# Update all queries and values of the model that read reviews both ways, on three labelled reviews:

# %%
def with_low_rank(model, rank, alpha):
    model = copy.deepcopy(model).requires_grad_(False)
    for block in model.blocks:
        for name in ("to_queries", "to_values"):
            layer = getattr(block.attention, name)
            setattr(block.attention, name, LowRank(layer, rank, alpha))
    return model

torch.manual_seed(0)
lora, classifier = with_low_rank(pocket, rank=4, alpha=8), nn.Linear(config.e, 2)
trained = learn_labels(lora, classifier, all_ids[:3], rate=0.01)
whole = sum(p.numel() for p in pocket.parameters())
print(f"trained: {trained:,} numbers, classifier included; the model has {whole:,}")
with torch.no_grad():
    before, updated = token_vectors(pocket, asked), token_vectors(lora, asked)
    for block in lora.blocks:
        block.attention.to_queries = block.attention.to_queries.merge()
        block.attention.to_values = block.attention.to_values.merge()
    merging = (token_vectors(lora, asked) - updated).abs().max()
print("largest change of a number in a vector,"
      f" by LoRA: {(updated - before).abs().max():.1f};"
      f" by merging: {merging:.0e}")

# %% [markdown]
# **The update changes the vectors, and merging does not.** On real film reviews, LoRA of a published model comes near
# fine-tuning all weights ([Measured further](../../site/further.md#lesson-14)).

# %% [markdown]
# ## What you can do now
#
# **What does reading both ways buy, and how is such a model trained and used?**
#
# - **A model that reads both ways finds more hidden words** than a left-only one (one run each, 800 steps). It learns
#   from these, because it could simply copy the next word.
# - **Three labelled reviews teach a pretrained model far more than random weights**, here whichever way it reads.
# - **Pairs teach a vector for a whole text.** On numerals it holds the order of the words, in each of four runs; in
#   two pairs of sentences, the published model's hardly does.
#
# **A question to think about**
#
# <details><summary>Why can a large batch help a contrastive loss?</summary>
#
# The other texts of the batch are all that a partner has to be told apart from. In a small batch they are likely to
# be so different that a rough vector is enough.
#
# </details>
#
# **Further reading**
#
# - **J. Devlin et al., ["BERT: pre-training of deep bidirectional transformers for language
#   understanding"](https://arxiv.org/abs/1810.04805), *NAACL* 2019**, section 3 for the model and its tasks, section
#   5 for what each is worth.
#
# BERT has a vector for each position in a table, so no text may be longer than the table. How can a model read on?
#
# **Next:** [lesson 15, *Transformer-XL*](../15_transformer_xl/15_transformer_xl.ipynb)
