# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 8 · A classifier
#
# *Is this review positive?*
#
# *The plot is dull, but the cast is great.* Swap two words, and the verdict changes: *The plot is great, but the cast
# is dull.* Both reviews consist of the same words, so a program that only counts words cannot tell them apart. **How
# much does a model win by reading words in order?** From the blocks of lesson 7 you build a transformer that competes
# with counting, first on reviews in which order decides, then on real ones.
#
# | | |
# |---|---|
# | **You will build** | a vocabulary, padded batches, pooling, a transformer that classifies, and an epoch of training that measures it |
# | **You need** | lessons 5 to 7, and what an optimiser does |
# | **It takes** | about 100 minutes: five exercises, 20 points, and two predictions |
# | **It computes** | for about a minute in all, on a laptop |
#
# Letters, as in the [notation table](../../site/notation.md): b texts in a batch, t positions, e the width of the
# model, h heads, n entries in the vocabulary, c classes.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import random
import re
from collections import Counter

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.datasets import classifier_reviews
from helpers.data.recorded import recorded
from helpers.device import device
from helpers.lesson import start
from helpers.parts.blocks import Transformer
from helpers.parts.classifier import accuracy, train_step
from helpers.parts.classifier import mean_pool as finished_pool
from helpers.parts.positions import PositionEmbedding
from helpers.parts.words import split_words
from helpers.progress import progress

check = start("08_classifier")
torch.set_num_threads(1)    # these tensors are too small to split among threads

# %% [markdown]
# ## Counting gives both reviews the same logit
#
# The baseline is logistic regression on a **[bag of words](../../site/glossary.md#bag-of-words)**: how often each word
# occurs in a text, whatever the order. Each word has a learned weight. The weights of all words of a review, plus a
# constant, are its **[logit](../../site/glossary.md#logits)**; above 0, the verdict is *positive*. A small grammar
# generates the reviews, each **positive** (label 1) or **negative** (label 0). A thousand are set aside for later.

# %% tags=["nbval-check-output"]
train, test, _ = classifier_reviews(places="embedded")
shuffled = list(zip(*train))
random.Random(0).shuffle(shuffled)
set_aside, learn_from = shuffled[:1000], shuffled[1000:]    # (text, label) each
print("test reviews that are also training reviews:", len({*train.texts} & {*test.texts}))

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels of bars, one bar for each word of a review. Left, The plot is dull, but the cast is great: the bar of dull reaches far to the left, that of great about as far to the right, and all other words have short bars. Right, The plot is great, but the cast is dull: the same bars, with those of dull and great exchanged. Both logits are the same, just below 0: judged negative."}}
columns = {word: k for k, word in enumerate(
    sorted({word for text in train.texts for word in split_words(text)}))}

def word_counts(texts):
    """(b, n): how often each word occurs in each text."""
    counts = torch.zeros(len(texts), len(columns))
    places = [(row, columns[word]) for row, text in enumerate(texts)
              for word in split_words(text) if word in columns]
    return counts.index_put_(tuple(torch.tensor(places).T), torch.ones(()), accumulate=True)

torch.manual_seed(0)
texts, labels = zip(*learn_from)
counts, labels = word_counts(texts), torch.tensor(labels).float()
bag = nn.Linear(len(columns), 1)
optimiser = torch.optim.LBFGS(bag.parameters(), max_iter=60)

def loss_of_bag():    # LBFGS, for small problems, computes the loss many times in a step
    optimiser.zero_grad()
    loss = F.binary_cross_entropy_with_logits(bag(counts)[:, 0], labels)
    loss.backward()
    return loss

optimiser.step(loss_of_bag)
bag.requires_grad_(False)

def bag_effects(text):
    """The bag's logit for a text, and what each word adds to it, (t,)."""
    weights = [bag.weight[0, columns[word]].item() if word in columns else 0.0
               for word in split_words(text)]
    return sum(weights) + bag.bias.item(), torch.tensor(weights)

def show_effects(panels, title):
    """For each panel, {name: (words, logit, effects)}, a bar for each word."""
    rows = max(len(words) for words, _, _ in panels.values())
    figure, axes = plt.subplots(1, len(panels), figsize=(7.5, 1.5 + 0.21 * rows))
    for ax, (name, (words, logit, effects)) in zip(axes, panels.items()):
        colours = [plots.COLOURS[int(effect <= 0)] for effect in effects]
        ax.barh(range(len(words)), effects, color=colours, height=0.7)
        ax.set_yticks(range(len(words)), labels=words)
        ax.axvline(0, color="#444444", linewidth=1, linestyle="-")
        verdict = "positive" if logit > 0 else "negative"
        number = f"{logit:+.2f}".replace("-", "−")
        ax.set_title(f"{name}\nlogit {number}: judged {verdict}", fontsize=9.5)
        ax.set(xlabel="effect on the logit", ylim=(len(words) - 0.4, -0.6))
        widest = 1.15 * max(effects.abs().tolist()) or 1
        ax.set_xlim(-widest, widest)
        ax.grid(False, axis="y")
    figure.suptitle(title)
    plt.show()

pair = ["The plot is dull, but the cast is great.",
        "The plot is great, but the cast is dull."]
show_effects({f"a {label} review": (split_words(text), *bag_effects(text))
              for label, text in zip(("positive", "negative"), pair)},
             "Counting: the same bars, the same sum")

# %% [markdown]
# <div class="figure-caption">
#
# Each review from top to bottom, with the learned weight of each word. The logit is the sum of the bars and a constant.
#
# </div>
#
# **No weights could tell these two apart**: a sum does not depend on the order. Here *dull* takes away what *great*
# adds, and *but* hardly counts. By the grammar, the half after *but* or *yet* decides. A clause with *although* or
# *even if* never counts, and of two sentences that disagree, the second decides. *Not*, *hardly*, *neither* and others
# reverse an opinion. Below are four training reviews, then the **accuracy** of counting: the share of unseen reviews
# that it classifies correctly.

# %% tags=["hide-input"]
def contains(cue, text):
    """Whether the text contains this word."""
    return cue in split_words(text)

by_length = sorted(zip(*train), key=lambda review: len(review[0]))
for cue, wanted in {"not": 1, "but": 0, "although": 1, "still": 0}.items():
    text, label = next(review for review in by_length
                       if contains(cue, review[0]) and review[1] == wanted)
    print(f"{'positive' if label else 'negative'} | {text}")

joined = re.compile(r"\w and (the \w+ is )?\w+( film)?\.")
one_sided = torch.tensor([bool(joined.search(text)) for text in test.texts])
bag_hits = (bag(word_counts(test.texts))[:, 0] > 0) == torch.tensor(test.labels)
bag_accuracy = bag_hits.float().mean().item()
print(f"\nbag of words: accuracy {bag_accuracy:.1%} on {len(test.labels):,} unseen reviews")
for name, chosen in {"one-sided": one_sided, "other": ~one_sided}.items():
    hits = bag_hits[chosen].float()
    print(f"{name}: {hits.mean():.0%} of {len(hits):,} test reviews right")

# %% [markdown]
# Counting is enough for **one-sided** reviews, in which *and* joins two words of praise or two of blame. **On the
# others it is no better than a coin.** Together that leaves 42 points for reading to gain. A transformer has what is
# missing: positions, and attention, through which *not* and *dull* can interact.
#
# ## A vocabulary turns words into ids
#
# `split_words` cuts a text into lower-case words; punctuation marks are words of their own. The **vocabulary** gives a
# number, the **id**, to every word that is frequent enough. Two of its entries are not words: `<pad>` fills up short
# texts, and `<unk>` replaces every word that is not in the vocabulary.

# %% tags=["nbval-check-output"]
print(split_words("It isn't dull, it's SLOW."))

# %% [markdown]
# The ids are the row numbers of the model's table of word vectors, so a model is useless without its vocabulary. A
# fixed rule rebuilds it from the same texts.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `build_vocabulary`** &nbsp; ★☆☆ · 8 minutes · 3 points
#
# Return a dict from words to ids: `<pad>` is 0, `<unk>` is 1, and then come the words, the most frequent first. Break
# ties alphabetically. The dict has at most `size` entries, `<pad>` and `<unk>` included; `size` is 2 or more. Words
# are what `split_words` returns.
#
# <details><summary>Hint 1: counting</summary>
#
# `Counter(iterable)` counts the items of an iterable. A generator can have two `for`s: over the texts, and over the
# words of each text.
#
# </details>
# <details><summary>Hint 2: an example with two texts</summary>
#
# The texts "good film, good" and "film dull" contain *good* and *film* twice each, *dull* and the comma once each. In
# order: film, good, the comma, dull. With `size=5` the dict is `{"<pad>": 0, "<unk>": 1, "film": 2, "good": 3, ",":
# 4}`.
#
# Python compares pairs by their first entries. Where these are equal, it compares the second entries.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "build_vocabulary", "locked": false, "schema_version": 3, "solution": true, "task": false}
def build_vocabulary(texts, size):
    """The ids of the most frequent words.

    texts: a list of str. size: how many entries there may be, <pad> and <unk> included.
    Returns a dict from word to id: <pad> is 0, <unk> is 1, then the words by decreasing
    frequency, and in alphabetical order where two are equally frequent.
    """
    ### BEGIN SOLUTION
    counts = Counter(word for text in texts for word in split_words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    kept = ["<pad>", "<unk>", *ranked[: size - 2]]
    return {word: place for place, word in enumerate(kept)}
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_build_vocabulary", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(build_vocabulary)

# %% tags=["nbval-check-output"]
vocabulary = build_vocabulary(train.texts, 200)
print(len(vocabulary), "entries; the first:", list(vocabulary)[:14])

# %% [markdown]
# ## Padding makes a batch a rectangle
#
# All rows of a tensor have the same length. So the texts of a batch are cut at a maximum length, then padded with
# `<pad>` to the length of the longest. The **[mask](../../site/glossary.md#mask)**, of shape (b, t) like the ids, is
# True where there is a word and False where there is padding. The two reviews of the beginning become rows of the same
# ids, in another order.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `encode_batch`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Turn b texts into ids and mask. Words that are not in the vocabulary become `<unk>`. Keep the first `length` words
# of a longer text. Some of the texts may be empty, but not all of them. t is the length of the longest text after
# cutting, **not** always `length`, because padding costs as much computing time as words.
#
# <details><summary>Hint 1: lists first</summary>
#
# Make a list of ids for each text, cut it, and see how long the longest is. `vocabulary.get(word, other)` returns
# `other` for a word that is not in the dict. A list times a number repeats it.
#
# </details>
# <details><summary>Hint 2: an example with three texts</summary>
#
# Let the vocabulary be `{"<pad>": 0, "<unk>": 1, "good": 2, "film": 3}` and `length` 3. The texts "Good film", "film
# good zebra film" and "" have the ids (2, 3, 0), (3, 2, 1) and (0, 0, 0), and the mask (True, True, False), (True,
# True, True) and (False, False, False). With `length` 9, t would be 4.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "encode_batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode_batch(texts, vocabulary, length):
    """Texts as one rectangle of ids.

    texts: a list of b str. vocabulary: from build_vocabulary.
    length: a text is cut after this many words.
    Returns ids (b, t), int64, with <pad> after the words of short texts, and mask (b, t),
    booleans, True where there is a word. t: the length of the longest text, after cutting.
    """
    ### BEGIN SOLUTION
    unknown = vocabulary["<unk>"]
    rows = [[vocabulary.get(word, unknown) for word in split_words(text)[:length]]
            for text in texts]
    t = max(len(row) for row in rows)
    ids = torch.tensor([row + [vocabulary["<pad>"]] * (t - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(t) < lengths.unsqueeze(1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_encode_batch", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(encode_batch)

# %% tags=["nbval-check-output"]
three = ["The plot is dull.", "The zebra is not dull, but slow.", "Gripping."]
ids, mask = encode_batch(three, vocabulary, length=6)
print(ids)
print(mask.long())

# %% [markdown]
# The zebra has id 1, and the limit of six words has cut off *slow*. No training review contains an unknown word, so the
# model will learn nothing about id 1.
#
# ## The mean of the words is one vector for a text
#
# A stack of blocks returns a vector for each word, (b, t, e), but to predict a class we need one vector for the whole
# text. **[Pooling](../../site/glossary.md#pooling)** makes it; the simplest kind is the average **over the real
# positions only**. Let $y_j$ be the vector at position $j$; let $m_j$ be 1 where the text has a word and 0 where it has
# padding:
#
# $$\bar y \;=\; \frac{\sum_{j} m_j\, y_j}{\max\big(1,\; \sum_{j} m_j\big)} .$$
#
# The max is for a text without words. `mean(dim=1)` would include the padding: the prediction for a review would then
# depend on the longest in its batch, without an error. A mean of mere word vectors is a bag of words: what tells the
# two reviews apart must come from the blocks.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `mean_pool`** &nbsp; ★★☆ · 10 minutes · 3 points
#
# Implement the formula for a whole batch. Padding may be at any position, not only at the end, and the vectors there
# may hold any finite numbers. A text without a word gets zeros, and its gradient is zero, never NaN. Do not use
# `finished_pool` here: it is for the next exercise.
#
# <details><summary>Hint 1: a mask that multiplies</summary>
#
# Converted to numbers, True is 1 and False is 0. To multiply the vectors, the mask (b, t) needs one more axis at its
# end, so that it broadcasts over the e components.
#
# </details>
# <details><summary>Hint 2: an example with three positions</summary>
#
# A text has the vectors (1, 10), (3, 30) and (7, 70).
#
# - With the mask (True, True, False) the sum is (4, 40), the number of words is 2, and the result is (2, 20).
# - With the mask (True, False, True) the result is (8, 80) / 2 = (4, 40).
# - With the mask (False, False, False) the sum is (0, 0) and the number of words is 0: here the divisor must be 1.
#
# For a batch the sums are (b, e). To divide them, the numbers of words must have the shape (b, 1). A tensor's `.clamp`
# sets a lower limit.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "mean_pool", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_pool(x, mask):
    """The average of the vectors at the real positions.

    x: (b, t, e), float32. mask: (b, t), booleans, True where there is a word.
    Returns (b, e), float32 as well; zeros for a text without a word.
    """
    ### BEGIN SOLUTION
    weights = mask.unsqueeze(-1).to(x.dtype)    # (b, t, 1)
    return (x * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_mean_pool", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(mean_pool)

# %% [markdown]
# ## Padding is masked in two places

# %%
plots.diagrams.classifier_flow()

# %% [markdown]
# <div class="figure-caption">
#
# The mask enters twice: in the attention of every block, and in the mean.
#
# </div>
#
# In the blocks every word looks at every word, and **no word looks at padding**. The model returns c logits, one for
# each class; of two, the difference is what the bag's one logit was. A softmax makes them probabilities, and the loss
# is the **[cross-entropy](../../site/glossary.md#cross-entropy)**: minus the logarithm of the right class's
# probability, averaged over the texts. `F.cross_entropy` applies the softmax itself, so the model has none.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `Classifier`** &nbsp; ★★★ · 25 minutes · 6 points
#
# Write both methods. The finished pieces:
#
# - `PositionEmbedding(t_max, e)`, called on (b, t, e),
# - `Transformer(e, h, depth, pre_norm=True)`, called as `transformer(x, mask)` with a mask of shape (b, 1, t),
# - `finished_pool(x, mask)`.
#
# No word may look at padding. Recognise padding by the mask alone: the ids at these positions may be anything, not only
# 0. Leave them unchanged. Store the layers under the names in the docstring: the check sets their weights by name.
# `to_classes` has a bias; the table of tokens may have a `padding_idx`. Do not use PyTorch's `nn.TransformerEncoder`.
#
# <details><summary>Hint 1: tables</summary>
#
# `nn.Embedding(rows, width)` is a table of [embeddings](../../site/glossary.md#embedding). Called with integers of any
# shape, it returns their rows, with one more axis. The table needs a row for each id.
#
# </details>
# <details><summary>Hint 2: an example with two texts</summary>
#
# Let the mask be (True, True, False) and (True, True, True). In text 0, each of the three positions may look at the
# positions 0 and 1. The blocks get the mask as (2, 1, 3), with the rows (True, True, False) and (True, True, True).
# The result for text 0 depends on the vectors of its positions 0 and 1 after the blocks, and on no others.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "Classifier", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Classifier(nn.Module):
    """A transformer that puts texts into classes.

    `tokens`: an nn.Embedding with a row for each word. `positions`: a PositionEmbedding.
    `transformer`: a stack of pre-norm blocks. `to_classes`: an nn.Linear to the logits.
    n: words. c: classes. e: width. h: heads. depth: blocks. t_max: the longest text.
    """

    def __init__(self, n, c, e, h, depth, t_max):
        super().__init__()
        ### BEGIN SOLUTION
        self.tokens = nn.Embedding(n, e)
        self.positions = PositionEmbedding(t_max, e)
        self.transformer = Transformer(e, h, depth, pre_norm=True)
        self.to_classes = nn.Linear(e, c)
        ### END SOLUTION

    def forward(self, ids, mask):
        """ids: (b, t), int64. mask: (b, t), booleans, True where there is a word.

        Returns (b, c), the logits of the classes, before any softmax.
        """
        ### BEGIN SOLUTION
        x = self.positions(self.tokens(ids))          # (b, t, e)
        x = self.transformer(x, mask.unsqueeze(1))    # no word looks at padding
        return self.to_classes(finished_pool(x, mask))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_Classifier", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(Classifier)

# %% [markdown]
# A new model should give both classes a probability near one half. Then its loss is near $-\log \tfrac12 = \log 2
# \approx 0.693$. A first loss far above this means a model that is confident before it has learned anything.
# `new_classifier` draws the two tables with a standard deviation of 0.02.

# %%
def new_classifier(e=64, h=4, depth=2):
    model = Classifier(len(vocabulary), 2, e, h, depth, t_max=64)
    for table in (model.tokens, model.positions.table):
        nn.init.normal_(table.weight, std=0.02)
    return model.to(device())

def to_batch(texts, labels):
    """(ids, mask, labels) on the device that the course computes on."""
    ids, mask = encode_batch(texts, vocabulary, length=64)
    return ids.to(device()), mask.to(device()), torch.tensor(labels).to(device())

torch.manual_seed(0)
model = new_classifier()
ids, mask, labels = to_batch(*zip(*learn_from[:64]))
loss = F.cross_entropy(model(ids, mask), labels)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters, loss {loss.item():.3f}")

# %% [markdown]
# ## An epoch ends with two numbers
#
# An **[epoch](../../site/glossary.md#epoch)** is one pass through all the training data, in training mode, which turns
# dropout on (this model has none). Each step has four parts: clear the gradients, because `backward` *adds* to them;
# compute the loss; run the backward pass; let the optimiser take a step.
#
# After the epoch, measure accuracy and loss, in evaluation mode and under `torch.no_grad()`, which saves memory and
# time. **Accuracy counts mistakes; the loss weighs them**: a confident mistake costs far more than log 2. Average over
# texts: in a mean over batches, those of a short last batch would count for more.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `train_epoch`** &nbsp; fix · ★★☆ · 10 minutes · 4 points
#
# The function below trains for one epoch and returns two numbers that are meant to describe the test batches. Only one
# of them does. Find out which, and fix the other. Both must be measured in evaluation mode, and the model must not
# learn from the test batches. Each may be a Python number or a tensor of shape (); the model may end in either mode.
#
# <details><summary>Hint 1: a contradiction</summary>
#
# With two classes, a wrong answer costs at least log 2, because the right class got a probability of at most one
# half. So the mean loss cannot be smaller than log 2 times the share of wrong answers. Train on a few reviews for
# many epochs, in a cell of your own, and compare the two numbers.
#
# </details>
# <details><summary>Hint 2: an example with three test texts</summary>
#
# A batch of two test texts has the losses 0.2 and 0.4; a batch of one text has the loss 0.9. The mean over the texts
# is 0.5. The mean over the batches would be (0.3 + 0.9) / 2 = 0.6. Is the second number that the function returns one
# of these two means? If not, from which batch does it come?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "train_epoch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_epoch(model, learn, test, optimiser):
    """One epoch of training on `learn`, and two numbers on `test`.

    learn, test: lists of batches (ids (b, t), mask (b, t), labels (b,)); b may differ.
    Returns the accuracy on the test texts and their mean cross-entropy, two numbers.
    """
    ### BEGIN SOLUTION
    model.train()
    for ids, mask, labels in learn:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(ids, mask), labels)
        loss.backward()
        optimiser.step()
    model.eval()
    right, total, nats = 0, 0, 0.0
    with torch.no_grad():
        for ids, mask, labels in test:
            logits = model(ids, mask)
            right += (logits.argmax(dim=-1) == labels).sum().item()
            nats += F.cross_entropy(logits, labels, reduction="sum").item()
            total += len(labels)
    return right / total, nats / total
    ### STUDENT GETS
    # model.train()
    # for ids, mask, labels in learn:
    #     optimiser.zero_grad()
    #     loss = F.cross_entropy(model(ids, mask), labels)
    #     loss.backward()
    #     optimiser.step()
    # model.eval()
    # right, total = 0, 0
    # with torch.no_grad():
    #     for ids, mask, labels in test:
    #         logits = model(ids, mask)
    #         right += (logits.argmax(dim=-1) == labels).sum().item()
    #         total += len(labels)
    # return right / total, loss.item()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_train_epoch", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(train_epoch)

# %% [markdown]
# ## One batch shows whether a model is broken
#
# Before a long training, train on the same sixteen reviews again and again. A model of 110,000 parameters can learn
# sixteen labels by heart, so the loss **has to** come close to zero. If it does not, something is broken. Try two
# models, the second broken on purpose: it puts a softmax on its logits, before cross-entropy applies its own.

# %% [markdown]
# <div class="card">
#
# **Prediction · `softmax_twice`** &nbsp; 1 minute · no points
#
# Both models train on the same sixteen reviews for 60 epochs. What does the loss of the broken model do?
#
# - **A.** It goes to zero as well, only later: a softmax keeps the order of the logits.
# - **B.** It falls, and stops at about 0.3: the second softmax limits how confident it can be.
# - **C.** It stays at log 2: hardly any gradient comes through two softmaxes.
# </div>

# %% nbgrader={"grade": false, "grade_id": "softmax_twice", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
softmax_twice = "B"
### STUDENT GETS
# softmax_twice = ...    # "A", "B" or "C"
### END SOLUTION

# %%
sixteen = to_batch(*zip(*learn_from[:16]))
for name in ("as it should be", "one softmax too many"):
    torch.manual_seed(0)
    learner = new_classifier()
    if name == "one softmax too many":
        learner.to_classes = nn.Sequential(learner.to_classes, nn.Softmax(dim=-1))
    adam = torch.optim.Adam(learner.parameters(), lr=0.002)
    for _ in range(60):
        share, loss = train_epoch(learner, [sixteen], [sixteen], adam)
    print(f"{name}: accuracy {share:.0%}, loss {loss:.3f}")

# %% nbgrader={"grade": true, "grade_id": "check_softmax_twice", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("softmax_twice", softmax_twice)

# %% [markdown]
# The loss cannot fall below $\log(1 + 1/e) = 0.313$ (here e is Euler's number). **On one batch it shows what the
# accuracy does not: the model is broken.**

# %% [markdown]
# ## Trained, the transformer beats counting
#
# The thousand reviews set aside are the **[validation set](../../site/glossary.md#held-out-data)**: what you watch
# during training is measured there, and the test reviews are kept for the final result.
#
# The optimiser is **[AdamW](../../site/glossary.md#adamw)** ([Loshchilov and Hutter,
# 2019](https://arxiv.org/abs/1711.05101)): **[Adam](../../site/glossary.md#adam)** with **[weight
# decay](../../site/glossary.md#weight-decay)**, which shrinks every weight a little at each step. The learning rate
# rises linearly over the first 100 steps, the **[warm-up](../../site/glossary.md#warm-up)**, then falls to zero along
# half a cosine.

# %%
def batches_of(reviews, size, seed):
    """Batches of texts of similar length, in an order that the seed decides."""
    rng = random.Random(seed)
    by_length = sorted((len(split_words(text)), rng.random(), text, label)
                       for text, label in reviews)
    groups = [by_length[k:k + size] for k in range(0, len(by_length), size)]
    rng.shuffle(groups)
    for group in groups:
        _, _, texts, labels = zip(*group)
        yield to_batch(texts, labels)

def rate(step, steps, peak=0.001, warmup=100):
    """The learning rate at a step: up in a line, then down along half a cosine."""
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))

torch.manual_seed(0)
model = new_classifier()
optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
plan = [batch for epoch in range(4) for batch in batches_of(learn_from, 32, seed=epoch)]
validation = list(batches_of(set_aside, 250, seed=0))
losses, looks = [], []    # a loss for each step; now and then the validation accuracy

# %% [markdown]
# The rate changes at every step, so two finished parts replace your `train_epoch`: `train_step` is one
# turn of its loop, and `accuracy` computes its first number. You may press **stop** (the square above the notebook):
# the cells below work all the same, and running this one again continues.

# %%
try:
    for step in progress(range(len(losses), len(plan)), "training"):
        optimiser.param_groups[0]["lr"] = rate(step, len(plan))
        losses.append(train_step(model, plan[step], optimiser))
        if (step + 1) % (len(plan) // 4) == 0:    # an epoch is over
            looks.append(accuracy(model, validation))
except KeyboardInterrupt:
    print(f"Stopped after {len(losses)} of {len(plan)} steps. Run this cell again to go on.")
print(f"{len(losses)} steps; validation accuracy after each epoch:",
      ", ".join(f"{share:.1%}" for share in looks))

# %%
unseen = list(batches_of(list(zip(*test)), 250, seed=0))
test_accuracy = accuracy(model, unseen)
print(f"unseen reviews: {test_accuracy:.1%} right; bag of words: {bag_accuracy:.1%}")

# %% [markdown]
# **In this run, the transformer gains nearly all of the 42 points.** Is it by reading in order? Train it without what a
# bag of words lacks: without positions, or without attention, where every word sees only itself.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three rows with three ticks each, accuracy on the test reviews, and a dashed line for the bag of words at 58 per cent. The ticks of the whole model are spread from 94 to 98 per cent. Without positions and without attention, all ticks lie on the dashed line or at most two points to its right."}}
runs = recorded("classifier_ablations")["result"]["accuracy"]
titles = {"the whole model": "nothing", "without positions": "no positions",
          "without attention": "no attention"}
plots.runs({"": {title: runs[key] for title, key in titles.items()}},
           "accuracy on the test reviews", {"bag of words": bag_accuracy})
plt.title("Without positions or attention, hardly anything is won", pad=20)
plt.xlim(0.5, 1)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# Accuracy on the test reviews in three recorded trainings of each model, one tick for each seed.
#
# </div>
#
# **Take either away, and the model is hardly better than a bag of words.** With both, these runs gain 35 to 40
# points.
#
# ## The same word now counts differently in the two reviews
#
# For a bag of words, a word's weight is what the logit loses when the word is hidden. In the transformer the mask can
# hide a word:

# %%
@torch.no_grad()
def logits_of(ids, mask):
    """Logit of positive minus logit of negative, (b,)."""
    scores = model.eval()(ids, mask)    # (b, c)
    return (scores[:, 1] - scores[:, 0]).cpu()

def effects(text):
    """The logit for a text, and what it loses without each word, (t,)."""
    ids, mask, _ = to_batch([text], [0])
    t = ids.shape[1]
    hidden = mask & ~torch.eye(t, dtype=torch.bool, device=mask.device)    # (t, t)
    logit = logits_of(ids, mask)
    return logit.item(), logit - logits_of(ids.expand(t, t), hidden)

# %% tags=["hide-input"] mystnb={"image": {"alt": "The two reviews as at the beginning, with the transformer. Left, the bar of great reaches far to the right, “dull” and “but” have short bars to the left, and the others can hardly be seen: judged positive. Right, that of dull reaches far to the left, that of great a little to the right, and no other can be seen: judged negative."}}
show_effects({f"a {label} review": (split_words(text), *effects(text))
              for label, text in zip(("positive", "negative"), pair)},
             "The transformer: only the second opinion counts")

# %% [markdown]
# <div class="figure-caption">
#
# The two reviews again. Each bar is what the transformer's logit loses when the word is hidden. Unlike the weights of
# the bag, these bars do not add up to the logit. In training no word was ever hidden.
#
# </div>
#
# **The opinion after *but* decides, and the other hardly counts.** The bar of *but* itself is short. Does the model
# read it? Take the test reviews in which *but* joins two clauses and no later sentence objects. Hide *but*, or replace
# it:

# %% tags=["hide-input"]
around = [text for text in test.texts
          if text.count(", but the ") == 1 and not re.search("Still|All the same|yet", text)]
ids, mask, _ = to_batch(around, [0] * len(around))
before = logits_of(ids, mask) > 0
changed = {"hidden": (ids, mask & (ids != vocabulary["but"]))}
for word in ("yet", "although"):
    swapped = [text.replace(", but the ", f", {word} the ") for text in around]
    changed[f"replaced by {word}"] = to_batch(swapped, [0] * len(around))[:2]
for name, batch in changed.items():
    turned = (logits_of(*batch) > 0) != before
    print(f"but {name}: {turned.sum()} of {len(around)} verdicts turn")

# %% [markdown]
# **Of the three, only *although* turns verdicts.** By the grammar it must turn all, and *yet* none; this run misses
# one. With *but* hidden, the second half still decides. So the second half is the default, and *although* overrules it.
# With two other seeds it turns fewer, but the most of the three ([Measured further](../../site/further.md#lesson-8)).
#
# ## Your own review
#
# Type a review between the quotes of `my_review`, and run both cells. `sorted(vocabulary)` lists the words that the
# model knows.

# %%
my_review = "The plot is dull, but the cast is not weak."

def judge(text):
    """Print the model's verdict, how sure it is, and the words that it does not know."""
    logit, _ = effects(text)
    verdict = "positive" if logit > 0 else "negative"
    print(f"{verdict}, {torch.tensor(abs(logit)).sigmoid():.0%} sure: {text}")
    unknown = [word for word in split_words(text) if word not in vocabulary]
    if unknown:
        print("    not in the vocabulary:", ", ".join(unknown))

judge(my_review)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels of bars for the words of The plot is dull, but the cast is not weak. Left, counting: dull and weak reach to the left, all others, “not” too, are short: judged negative. Right, the transformer: not reaches far to the right, all others are next to nothing: judged positive."}}
words = split_words(my_review)[:64]
show_effects({"counting": (words, *bag_effects(" ".join(words))),
              "transformer": (words, *effects(my_review))},
             "One review, counted and read")
logit, lost = effects(my_review)
turning = [word for word, effect in zip(words, lost) if (logit - effect) * logit < 0]
print("the transformer's verdict turns without:", ", ".join(turning) or "no single word")

# %% [markdown]
# <div class="figure-caption">
#
# Left, the weights of the bag; right, what the transformer's logit loses without each word, on another scale.
#
# </div>
#
# Counting adds up two words of blame. **For the transformer, *not* decides**: hide it, and the verdict turns. Replace
# *but* by *although*, and run both cells again. Then try a review that says nothing, and one with a new word:

# %%
judge("This is a film.")
judge("I expected to be bored, and I was not.")

# %% [markdown]
# **Being sure is not being right.** The model is over 90 % sure of both. A softmax compares the classes; it cannot say
# that a review is unlike the training reviews.
#
# ## Does reading win on real reviews?
#
# Real reviews turn, too: *As a history of Custer, this [isn't] even close … But as a western, this is fun* (from
# [IMDb](https://aclanthology.org/P11-1015/)). We trained a wider `Classifier` and a bag of words on such reviews
# once, and **recorded** the run.
#
# <details><summary>How the two were trained</summary>
#
# By `python -m helpers.training.imdb`. The `Classifier` is twice as wide, with half the heads, and is trained with
# dropout. The bag of words gives rare words more weight (tf-idf). Both know 20,000 words, and read only the first 56
# and the last 168 words of a long review.
#
# </details>

# %% [markdown]
# <div class="card">
#
# **Prediction · `who_wins_imdb`** &nbsp; 1 minute · no points
#
# On the generated reviews the transformer is about forty points better than a bag of words. On IMDb, both are trained
# on the same 22,500 reviews. Which model is right more often on the test reviews?
#
# - **A.** The bag of words.
# - **B.** The transformer, by ten points or more.
# - **C.** The transformer, by a point or two.
# </div>

# %% nbgrader={"grade": false, "grade_id": "who_wins_imdb", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
who_wins_imdb = "A"
### STUDENT GETS
# who_wins_imdb = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two horizontal bars from 0 to 1. Generated reviews: the bag of words fills a little more than half, the hatched rest is left to win, and the transformer is near the end of it. IMDb: the bag of words fills nearly nine tenths; the transformer is just inside the filled part, and a pretrained model a quarter of the way into the hatched rest."}}
run = recorded("imdb")
result, sample = run["result"], run["samples"][-1]
shares = {"bag of words": [bag_accuracy, result["bag_of_words_accuracy"]],
          "transformer": [test_accuracy, result["test_accuracy"]]}
figure, ax = plt.subplots(figsize=(6.5, 2.7))
counted = shares["bag of words"]
ax.barh([0, 1], counted, color=plots.COLOURS[0], height=0.5, label="bag of words")
ax.barh([0, 1], [1 - share for share in counted], left=counted, height=0.5,
        facecolor="none", edgecolor="#888888", hatch="///", label="left to win")
ax.plot(shares["transformer"], [0, 1], "D", color=plots.COLOURS[1], label="transformer")
ax.plot(recorded("imdb_bert")["result"]["test_accuracy"], 1, "s", color=plots.COLOURS[2],
        label="pretrained model (lesson 14)")
ax.set_yticks([0, 1], labels=["generated reviews", "IMDb"])
ax.set(xlim=(0, 1), ylim=(1.6, -0.6), xlabel="accuracy on the test reviews",
       title="On IMDb, counting leaves little to win")
ax.grid(False, axis="y")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
data, on_imdb = run["data"], [share for _, share in shares.values()]
print(f"IMDb, {data['trained_on']:,} reviews to train on, {data['tested_on']:,} to test on: "
      f"bag of words {on_imdb[0]:.1%}, transformer {on_imdb[1]:.1%}")
print("the review of Custer, "
      f"probability of positive: transformer {sample['positive']:.0%}, "
      f"bag of words {sample['bag_of_words_positive']:.0%}")
for look in run["curve"][3::5]:
    print(f"step {look['step']:,} of the transformer: training loss {look['loss']:.2f}, "
          f"validation accuracy {look['accuracy']:.1%}")
print(f"bag of words: validation accuracy {result['bag_of_words_validation_accuracy']:.1%}")

# %% nbgrader={"grade": true, "grade_id": "check_who_wins_imdb", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("who_wins_imdb", who_wins_imdb)

# %% [markdown]
# **Counting wins on IMDb**, by nearly two points, in this one run. It gets the review of Custer narrowly right, in any
# order. In the second half of the training, the transformer's loss falls to a quarter, and its validation accuracy does
# not rise: **[overfitting](../../site/glossary.md#overfitting)**. That does not explain why it falls behind: on the validation
# reviews the two are level. We did not find the cause.
#
# **Count first: what counting leaves is the most that reading can gain.** Where one word can reverse another,
# counting leaves 42 points, and the recorded transformers gain 35 to 40. On IMDb it leaves 12, and our transformer,
# trained once on 22,500 reviews, has a net loss of two. A larger model with **pretraining** on other text, also in one
# run, [gains three](../../site/further.md#lesson-14).
#
# ## What you can do now
#
# You can turn texts into ids, keep padding out of the attention and the mean, build a classifier from blocks, expose a
# broken model with a single batch, and say which words a verdict depends on.
#
# **A question to think about**
#
# <details><summary>Give the bag an entry for each pair of neighbouring words, such as <em>not dull</em>. Can it now
# tell the two reviews of the first lines apart? And if each half ended with <em>throughout</em>?</summary>
#
# It can: only one contains the pair *dull* and full stop. With *throughout* at the end of both halves, the two reviews
# have the same pairs again, so they get the same verdict. Longer chains of words only put this off. Attention links
# words at any distance.
#
# </details>
#
# **Further reading**
#
# - **[Karpathy, *A recipe for training neural networks*, 2019](https://karpathy.github.io/2019/04/25/recipe/)**: look
#   at the data, a simple model first, overfit one batch.
# - [Pang, Lee and Vaithyanathan, *Thumbs up?*, 2002](https://aclanthology.org/W02-1011/)
#
# **Next:** [lesson 9, *A character generator*](../09_character_generator/09_character_generator.ipynb)
