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
# is dull.* Both sentences consist of the same words, so a program that only counts words cannot tell them apart. In
# this lesson the blocks of lesson 7 become a model that can.
#
# | | |
# |---|---|
# | **You will build** | a vocabulary, padded batches, pooling, a transformer that classifies, and the measurements to judge it by |
# | **You need** | lessons 5 to 7, and what an optimiser does |
# | **It takes** | about 120 minutes: five exercises, 20 points |
# | **It computes** | for about a minute in all, on a laptop |
#
# Letters, as in the [notation table](../../site/notation.md): b texts in a batch, t positions, e the width of the
# model, h heads, n entries in the vocabulary, c classes. Two finished parts come from earlier lessons: `Transformer`,
# a stack of blocks, and `PositionEmbedding`.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import random
import re
import textwrap
from collections import Counter

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.datasets import classifier_reviews
from helpers.device import device
from helpers.experiments import Experiment
from helpers.lesson import start
from helpers.parts.blocks import Transformer
from helpers.parts.classifier import accuracy
from helpers.parts.classifier import mean_pool as finished_pool
from helpers.parts.positions import PositionEmbedding
from helpers.parts.words import split_words
from helpers.progress import progress

check = start("08_classifier")
torch.set_num_threads(1)    # these tensors are too small to split among threads

# %% [markdown]
# ## Reviews that have to be read
#
# A common data set for this task is IMDb ([Maas et al., 2011](https://aclanthology.org/P11-1015/)), 50,000 film
# reviews. It comes at the end. Until then you work with reviews that a small grammar generates: one to four sentences,
# **positive** (label 1) or **negative** (label 0). The label depends on words such as *not* and *although*. Here is the
# shortest training review with each of twelve such cues:

# %% tags=["nbval-check-output"]
train, test, _ = classifier_reviews(places="embedded")

def contains(cue, text):
    """Whether the text contains these words in a row."""
    return f" {cue} " in f" {' '.join(split_words(text))} "

cues = ("not,hardly,far from,but,yet,although,even if,"
        "nobody,less,neither,wrong,still").split(",")
by_length = sorted(zip(*train), key=lambda review: len(review[0]))
for cue in cues:
    text, label = next(review for review in by_length if contains(cue, review[0]))
    print(f"{cue:>8} | {'positive' if label else 'negative'} | {text}")

# %% [markdown]
# In a sentence with *but* or *yet*, the half after this word decides the label; with *although* or *even if*, the half
# without it decides. If two sentences disagree, the second one decides. It begins with *Still*, *All the same* or *And
# yet*. The other cues usually reverse an opinion.
#
# Some sentences, such as *The cinema was full*, are fillers. Even when the fillers are ignored, no test review is
# identical to a training review, so memorising whole reviews is not enough.
#
# ## From words to numbers
#
# `split_words` cuts a text into lower-case words; punctuation marks are words of their own. A model needs numbers, so
# the **vocabulary** gives a number, the **id**, to every word that is frequent enough. Two of its entries are not
# words: `<pad>` fills up short texts, and `<unk>` replaces every word that is not in the vocabulary.

# %% tags=["nbval-check-output"]
print(split_words("It isn't dull, it's SLOW."))

# %% [markdown]
# It does not matter which id a word gets, but the ids must not change: a trained model contains a table whose rows
# are numbered by these ids. So the ids follow a fixed rule.
#
# **What every check tests.** Your function must not change its inputs, lists and dicts included. In exercises 3 and 4,
# create tensors on the input's device. Gradients must reach the vectors in exercise 3 and the parameters in exercise 4.

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
# ## A rectangle of ids
#
# All rows of a tensor have the same length, but texts differ in length. So the texts of a batch are cut at a maximum
# length, then padded with `<pad>` to the length of the longest. The **[mask](../../site/glossary.md#mask)**, of shape
# (b, t) like the ids, is True where there is a word and False where there is padding.

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
# Find the zebra, id 1, and see what the limit of six words has cut off. No training review contains an
# unknown word, so the model will learn nothing about id 1.

# %% [markdown]
# ## What counting words can do
#
# First comes a simple model for the transformer to beat. A **[bag of words](../../site/glossary.md#bag-of-words)**
# describes a text by a vector of n counts: how often each entry of the vocabulary occurs in it. The order of the
# words is lost.
#
# A linear map turns the counts into c **[logits](../../site/glossary.md#logits)**, one for each class. Every word has
# a weight for each class, and the weights of the words in the text are added up. A softmax turns the logits into
# probabilities. The loss is the **[cross-entropy](../../site/glossary.md#cross-entropy)**: minus the logarithm of the
# probability of the right class, averaged over the texts. This model is logistic regression. **Accuracy** is the
# share of texts whose class is predicted correctly. (The first thousand training reviews are set aside for later.)

# %%
def word_counts(texts):
    """(b, n): how often each word of the vocabulary occurs in each text."""
    ids, mask = encode_batch(texts, vocabulary, length=64)
    counts = torch.zeros(len(texts), len(vocabulary))
    return counts.scatter_add(1, ids, mask.float())    # each word adds 1 in its own column

torch.manual_seed(0)
counts, labels = word_counts(train.texts[1000:]), torch.tensor(train.labels[1000:])
bag = nn.Linear(len(vocabulary), 2)
optimiser = torch.optim.LBFGS(bag.parameters(), max_iter=60)

def loss_of_bag():    # LBFGS, for small problems, computes the loss many times in a step
    optimiser.zero_grad()
    loss = F.cross_entropy(bag(counts), labels)
    loss.backward()
    return loss

optimiser.step(loss_of_bag)

def bag_on(texts, labels):
    """What the bag of words predicts, and its accuracy."""
    guesses = bag(word_counts(texts)).argmax(dim=-1)
    return guesses, (guesses == torch.tensor(labels)).float().mean().item()

bag_guesses, bag_accuracy = bag_on(test.texts, test.labels)
print(f"bag of words: accuracy {bag_accuracy:.1%} on {len(test.labels):,} unseen reviews")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Horizontal bars of the learned weights of twelve words. Gripping, good, great and moving weigh between 0.3 and 0.5 towards positive, silly, dull and fake about as much towards negative. Not, but, hardly, although and nobody weigh about a tenth or less, to either side."}}
shown = "gripping good great moving not but hardly although nobody silly dull fake".split()
towards_positive = (bag.weight[1] - bag.weight[0]).detach()
weights = [towards_positive[vocabulary[word]].item() for word in shown]

figure, ax = plt.subplots(figsize=(6, 3.4))
colours = [plots.COLOURS[0] if weight > 0 else plots.COLOURS[1] for weight in weights]
ax.barh(shown, weights, color=colours, height=0.7)
ax.axvline(0, color="#444444", linewidth=1, linestyle="-")
ax.set(xlabel="weight towards positive", ylabel="word", xlim=(-0.6, 0.6))
ax.invert_yaxis()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One bar per word: how much one occurrence of the word adds to the logit of *positive* minus the
# logit of *negative*. Words of praise add to it, words of blame subtract from it. Cues such as *not* have
# small weights.
#
# </div>
#
# A review is *plain* if *and* joins two words of praise or two of blame, as in *The story is gripping and the script is
# moving*. Among the other reviews, negative ones contain about as many words of praise as positive ones do.

# %% tags=["hide-input", "nbval-check-output"]
joined = re.compile(r"\w and (the \w+ is )?\w+( film)?\.")
plain = torch.tensor([bool(joined.search(text)) for text in test.texts])
bag_hits = bag_guesses == torch.tensor(test.labels)
for name, chosen in {"plain": plain, "other": ~plain}.items():
    hits = bag_hits[chosen].float()
    print(f"{name}: {hits.mean():.0%} of {len(hits):,} test reviews right")

# %% [markdown]
# On the other reviews, counting is no better than chance. What *not* and *but* do depends on the words before and after
# them, and a sum ignores order. To the bag of words, these two reviews are the same:

# %% tags=["nbval-check-output"]
pair = ["The plot is dull, but the cast is great.",
        "The plot is great, but the cast is dull."]
print("the same counts:", torch.equal(*word_counts(pair)))

# %% [markdown]
# A transformer has what is missing: positions, and attention, through which *not* and *dull* can interact.

# %% [markdown]
# ## One vector for a text
#
# A stack of blocks returns a vector for each word, (b, t, e). To predict a class we need one vector for the whole
# text. The simplest choice is the average of the vectors, **over the real positions only**. Let $y_j$ be the vector at
# position $j$; let $m_j$ be 1 where the text has a word and 0 where it has padding:
#
# $$\bar y \;=\; \frac{\sum_{j} m_j\, y_j}{\max\big(1,\; \sum_{j} m_j\big)} .$$
#
# The plain `mean(dim=1)` would include the padding. The prediction for a review would then depend on the length of
# the longest review in its batch, and no error would be raised.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `mean_pool`** &nbsp; ★★☆ · 10 minutes · 3 points
#
# Implement the formula for a whole batch. Padding may be anywhere in a text, and its vectors may hold any finite
# numbers. Do not use `finished_pool` here: it is for the next exercise.
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
# Compare a text by itself with the same text followed by seven positions of padding:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
words, filling = torch.randn(1, 5, 4), torch.randn(1, 7, 4)
mask = torch.tensor([[True] * 5 + [False] * 7])
longer = torch.cat([words, filling], dim=1)    # (b, t, e)
alone = mean_pool(words, mask[:, :5])
pooled, plain = mean_pool(longer, mask), longer.mean(dim=1)
print("mean_pool unchanged by padding:", torch.allclose(alone, pooled, atol=1e-6))
print("plain mean unchanged by padding:", torch.allclose(alone, plain, atol=1e-6))

# %% [markdown]
# ## The model

# %%
plots.diagrams.classifier_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** From top to bottom, with the shapes. The mask enters twice: in the attention of every block, and
# in the mean.
#
# </div>
#
# In the blocks every word looks at every word, and **no word looks at padding**. All t queries of a text need
# the same row of the mask, so the blocks take the mask as (b, 1, t): the 1 broadcasts over the queries. The model has
# no softmax at its end, because `F.cross_entropy` takes logits and applies the softmax itself.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `Classifier`** &nbsp; ★★★ · 18 minutes · 6 points
#
# Write both methods. The finished pieces:
#
# - `PositionEmbedding(t_max, e)`, called on (b, t, e),
# - `Transformer(e, h, depth, pre_norm=True)`, called as `transformer(x, mask)` with a mask of shape (b, 1, t),
# - `finished_pool(x, mask)`.
#
# No word may look at padding. Only the mask says what is padding: the ids at these places may be anything. Store the
# layers under the names in the docstring: the check sets their weights by name. Do not use PyTorch's
# `nn.TransformerEncoder`.
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
# `nn.Embedding` draws its table from the standard normal distribution. `new_classifier` draws the tables of tokens and
# positions with a standard deviation of 0.02 instead, as GPT-2 does for its tokens.
#
# A new model should give both classes a probability near one half. Then its loss is near $-\log \tfrac12 = \log 2
# \approx 0.693$. A first loss far above this means that the model is confident, and often wrong, before it has learned
# anything. With standard normal tables, the first loss is also near log 2, but the model then trains worse (see *What
# each choice is worth*).

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
ids, mask, labels = to_batch(train.texts[:64], train.labels[:64])
loss = F.cross_entropy(model(ids, mask), labels)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters, loss {loss.item():.3f}")

# %% [markdown]
# ## One step
#
# One step of training has five parts: switch to training mode, which turns dropout on (this model has none); clear the
# gradients, because `backward` *adds* to them; run the model forward, up to the loss; run the backward pass; let the
# optimiser take a step. If you leave out any part except the forward pass, no error is raised.

# %%
def train_step(model, batch, optimiser):
    """One step of descent on a batch (ids, mask, labels). Returns the loss before it."""
    ids, mask, labels = batch
    model.train()
    optimiser.zero_grad()
    loss = F.cross_entropy(model(ids, mask), labels)
    loss.backward()
    optimiser.step()
    return loss.item()

# %% [markdown]
# ## Overfit one batch first
#
# Before training on all reviews, train on the same sixteen again and again. A model of 110,000 parameters can learn
# sixteen labels by heart, so the loss **has to** come close to zero. If it does not, something is broken, and you
# know within seconds. Try this with two models. The second is broken on purpose: it puts a softmax on its logits,
# before cross-entropy applies its own.

# %% [markdown]
# <div class="card">
#
# **Prediction · `softmax_twice`** &nbsp; 1 minute · no points
#
# Both models train on the same sixteen reviews for 60 steps. What does the loss of the broken model do?
#
# - **A.** It goes to zero as well, only later: a softmax keeps the order of the logits.
# - **B.** It falls, and stops at about 0.3: the second softmax limits how confident it can be.
# - **C.** It stays at log 2: no gradient comes through two softmaxes.
# </div>

# %% nbgrader={"grade": false, "grade_id": "softmax_twice", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
softmax_twice = "B"
### STUDENT GETS
# softmax_twice = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "Loss against step on one batch of sixteen reviews, logarithmic. Both start a little above a dashed line at 0.69. One jumps up and down for a few steps and then falls to about a thousandth. The other, with one softmax too many, reaches a dashed line at 0.313 within ten steps and stays there."}}
class SoftmaxTooMany(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(ids, mask).softmax(dim=-1)

sixteen = to_batch(train.texts[:16], train.labels[:16])
losses = {}
for name in ("as it should be", "one softmax too many"):
    torch.manual_seed(0)
    learner = new_classifier()
    if name == "one softmax too many":
        learner = SoftmaxTooMany(learner)
    optimiser = torch.optim.Adam(learner.parameters(), lr=0.002)
    steps = range(60)
    losses[name] = [train_step(learner, sixteen, optimiser) for _ in steps]

landmarks = {"chance: log 2": math.log(2), "log(1 + 1/e)": math.log(1 + math.exp(-1))}
plots.loss_curve(losses, landmarks=landmarks, log=True)
plt.show()

# %% nbgrader={"grade": true, "grade_id": "check_softmax_twice", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("softmax_twice", softmax_twice)

# %% [markdown]
# The first softmax returns at best 1 and 0. The second takes them for logits and returns at most $e/(e + 1) = 0.73$,
# where e is Euler's number and not the width. So the loss is at least $\log(1 + 1/e) = 0.313$. On many reviews such a
# loss looks merely mediocre. On one batch it shows that the model is broken.

# %% [markdown]
# ## Batches, and a learning rate that warms up
#
# To save padding, texts of similar length share a batch; the batches come in random order. The thousand reviews set
# aside become the **[validation set](../../site/glossary.md#held-out-data)**. We split it into the reviews that the bag
# of words gets right and those it gets wrong, to see when the transformer stops behaving like a bag of words. The
# finished `accuracy(model, batches)` measures each part. To choose between models, compare validation accuracies:
# choosing by test accuracy is a slow way of training on the test reviews.

# %%
def batches_of(texts, labels, size, seed):
    """Batches of texts of similar length, in an order that the seed decides."""
    rng = random.Random(seed)
    by_length = sorted((len(split_words(text)), rng.random(), text, label)
                       for text, label in zip(texts, labels))
    groups = [by_length[k:k + size] for k in range(0, len(by_length), size)]
    rng.shuffle(groups)
    for group in groups:
        _, _, texts, labels = zip(*group)
        yield to_batch(texts, labels)

set_aside = list(zip(train.texts[:1000], train.labels[:1000]))
counted, bag_aside = bag_on(*zip(*set_aside))

def those(bag_is_right):
    """The validation reviews where the bag of words is right, or those where it is wrong."""
    chosen = [review for review, guess in zip(set_aside, counted.tolist())
              if (guess == review[1]) == bag_is_right]
    return list(batches_of(*zip(*chosen), 250, seed=0))

bag_right, bag_wrong = those(True), those(False)
validation = bag_right + bag_wrong
learn_from = train.texts[1000:], train.labels[1000:]
once = list(batches_of(*learn_from, 32, seed=1))
print(f"{len(once)} batches; {len(set_aside):,} reviews for validation")
print(f"bag of words: accuracy {bag_aside:.1%} on the validation reviews")

# %% [markdown]
# In its first step **[Adam](../../site/glossary.md#adam)** moves every weight that has a gradient by the whole learning
# rate, even where the gradient is noise. **[Warm-up](../../site/glossary.md#warm-up)** makes the first steps small: the
# rate rises linearly over the first 100 steps, then falls to zero along half a cosine. [Xiong et al.
# (2020)](https://arxiv.org/abs/2002.04745), section 3, found that a transformer with post-norm trains poorly without
# warm-up.

# %%
def rate(step, steps, peak=0.001, warmup=100):
    """The learning rate at a step: up in a line, then down along half a cosine."""
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))

# %% [markdown]
# ## Training
#
# The model is trained for four **[epochs](../../site/glossary.md#epoch)**, or passes through the data. You may press
# **stop** (the square above the notebook) at any moment: every cell below works with what has been learned, and
# running the cell again continues the training.
#
# The optimiser is **[AdamW](../../site/glossary.md#adamw)** ([Loshchilov and Hutter,
# 2019](https://arxiv.org/abs/1711.05101)): Adam with **[weight decay](../../site/glossary.md#weight-decay)**, which
# shrinks every weight a little at each step.

# %%
torch.manual_seed(0)
model = new_classifier()
optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
epochs = 4
plan = [batch for k in range(epochs) for batch in batches_of(*learn_from, 32, seed=k)]
losses, looks = [], []    # a loss for each step; now and then (step, three accuracies)

# %%
try:
    for step in progress(range(len(losses), len(plan)), "training"):
        optimiser.param_groups[0]["lr"] = rate(step, len(plan))
        losses.append(train_step(model, plan[step], optimiser))
        if (step + 1) % 100 == 0 or step + 1 == len(plan):
            right, wrong = accuracy(model, bag_right), accuracy(model, bag_wrong)
            together = bag_aside * right + (1 - bag_aside) * wrong    # weighted by size
            looks.append((step + 1, together, right, wrong))
except KeyboardInterrupt:
    print(f"Stopped after {len(losses)} of {len(plan)} steps. Run this cell again to go on.")
print(f"{len(losses)} steps; validation accuracy {accuracy(model, validation):.1%}, "
      f"bag of words {bag_aside:.1%}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels against the training step. Left, the loss of each batch, noisy, and its running mean: it falls from log 2 to about 0.1. Right, three accuracies on the validation reviews. Where the bag of words is right, the curve rises from two thirds to about four fifths and dips a little until step 500. Where it is wrong, the curve falls to three tenths, then climbs to four fifths by step 500. The curve of all lies between. From there the three rise, unevenly, to above nine tenths."}}
figure, axes = plt.subplots(1, 2, figsize=(6, 3.2))
plots.loss_curve(losses, landmarks={"log 2": math.log(2)}, smooth=min(25, len(losses) or 1),
                 title="loss on training batches", ax=axes[0])
steps, *shares = zip(*looks) if looks else [[]] * 4
names = "all", "bag of words right", "bag of words wrong"
plots.curves({name: (steps, share) for name, share in zip(names, shares)}, "step",
             "accuracy", landmarks={"chance": 0.5}, title="validation reviews", ax=axes[1])
axes[1].set_ylim(0.2, 1.02)
plt.show()
for step, together, right, wrong in looks:
    if step in (100, 300, 500, 1000):
        print(f"step {step}: {together:.0%} of all; {right:.0%} where the bag of words "
              f"is right, {wrong:.0%} where it is wrong")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: the pale line is the loss of each batch, the dark line its running mean. Right: the
# accuracy on three sets of validation reviews.
#
# </div>
#
# At first the transformer behaves like a bag of words. At step 300 it is mostly right where the bag of words is right,
# and mostly wrong where the bag of words is wrong. Within the next two hundred steps the lower curve catches up.

# %%
def in_batches(texts, labels, size=250):
    """Batches in the order of the texts."""
    return [to_batch(texts[k:k + size], labels[k:k + size])
            for k in range(0, len(texts), size)]

@torch.no_grad()
def positive_probability(texts, size=250):
    """For each text, the model's probability of positive: (number of texts,)."""
    model.eval()
    batches = in_batches(texts, [0] * len(texts), size)    # the labels do not matter here
    scores = [model(ids, mask) for ids, mask, _ in batches]
    return torch.cat(scores).softmax(dim=-1)[:, 1].cpu()

test_accuracy = accuracy(model, in_batches(test.texts, test.labels))
print(f"unseen reviews: {test_accuracy:.1%} right; bag of words: {bag_accuracy:.1%}")
for text, probability in zip(pair, positive_probability(pair)):
    print(f"probability of positive {probability:.2f}: {text}")

# %% [markdown]
# One test review in four shares a sentence, fillers aside, with a training review. Does the model's accuracy depend on
# such sentences?

# %% tags=["hide-input"]
def sentences(text):
    return re.split(r"(?<=\.) ", text)

times = Counter(each for text in learn_from[0] for each in sentences(text))
for name, wanted in {"a": True, "no": False}.items():
    chosen = [review for review in zip(*test)    # each filler occurs more than 100 times
              if any(0 < times[each] < 100 for each in sentences(review[0])) == wanted]
    print(f"accuracy {accuracy(model, in_batches(*zip(*chosen))):.1%} on the "
          f"{len(chosen):,} test reviews that share {name} sentence with a training review")

# %% [markdown]
# Hardly: it is nearly as high on the reviews that share no sentence.

# %% [markdown]
# ## Which ones are wrong
#
# The **confusion matrix** has a row for each true class and a column for each predicted one.

# %%
def confusion(guesses):
    truth = torch.tensor(test.labels)
    return torch.bincount(2 * truth + guesses, minlength=4).view(2, 2)

probabilities = positive_probability(test.texts)
guesses = (probabilities > 0.5).long()

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two confusion matrices, two by two. Bag of words: the four counts are similar, those on the diagonal somewhat larger. Transformer: about nine reviews in ten are on the diagonal."}}
labels = ["negative", "positive"]
plots.heat_pair(confusion(bag_guesses), confusion(guesses), labels, same_scale=True,
                titles=("bag of words", "transformer"), digits=0,
                row_label="label", column_label="predicted")
plt.show()
for name, given in {"bag of words": bag_guesses, "transformer": guesses}.items():
    wrong = confusion(given)
    print(f"{name}: {wrong[1, 0]} positive and {wrong[0, 1]} negative reviews misclassified")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each cell is a number of reviews; each row adds up to a thousand.
#
# </div>
#
# Each model makes the two kinds of mistake about equally often. How accurate is each model on the test reviews that
# contain a given cue?

# %% tags=["hide-input"]
truth = torch.tensor(test.labels)
our_right = guesses == truth
for cue in cues:
    there = torch.tensor([contains(cue, text) for text in test.texts])
    print(f"{cue:>8}: bag of words {bag_hits[there].float().mean():.0%}, "
          f"transformer {our_right[there].float().mean():.0%} of {there.sum()} reviews")

# %% [markdown]
# The bag of words is near chance in every line. In this run the transformer is least accurate with *even if*, then with
# *although*. Both cues can introduce a **closing clause**, which ends a sentence without deciding the label: *The plot
# is great, although the cast is dull.* The next cell first moves these clauses to the front, *Although the cast is
# dull, the plot is great*, and then removes them.

# %% tags=["hide-input"]
closing = re.compile(r"([^.,]+ is [^.,]+), (although|even if) ([^.]+)")
at_end = torch.tensor([bool(closing.search(text)) for text in test.texts])
found = {"any other review": (~at_end, our_right), "closing clause": (at_end, our_right)}
for change, into in {"moved to the front": r" \2 \3,\1", "removed": r"\1"}.items():
    changed = [closing.sub(into, text) for text in test.texts]
    found[change] = at_end, (positive_probability(changed) > 0.5) == truth
for name, (chosen, right) in found.items():
    print(f"{name:>18}: accuracy {right[chosen].float().mean():.1%} on {chosen.sum():,} "
          f"test reviews, {(chosen & ~right).sum()} mistakes")
for name, wanted in {"any other review": False, "closing clause": True}.items():
    chosen = [review for review in set_aside if bool(closing.search(review[0])) == wanted]
    print(f"{name:>18}: accuracy {accuracy(model, in_batches(*zip(*chosen))):.1%} on "
          f"{len(chosen):,} validation reviews")

# %% [markdown]
# **Of the 130 mistakes of this run, 114 are in reviews with a closing clause.** With the clauses moved to the front,
# only 11 of these 435 reviews are misclassified; with the clauses removed, none. So in all 114 mistakes, the closing
# clause overturns a right answer.
#
# Set the seed above the training to 1 or 2, and rerun the cells from there to here. On reviews with a closing
# clause, we got 81 % with seed 1 and 97 % with seed 2; on other reviews, 98 % both times. So the three runs differ
# mostly in how well they handle closing clauses.
#
# With seed 0, closing clauses also account for the gap between validation and test accuracy. They occur in 98 of the
# 1,000 validation reviews, but in 435 of the 2,000 test reviews. With such a clause, the model is even less accurate
# on validation reviews than on test reviews. Without one, it is almost always right on both.
#
# The generator never repeats a review, so simple reviews are used up early, and the test reviews were generated last.
# Taking the first thousand reviews for validation was a mistake.
#
# Does the model know when it is wrong?

# %% tags=["hide-input"]
unsure = (probabilities - 0.5).abs() < 0.2
for name, group in {"between 30 and 70%": unsure, "outside 30 to 70%": ~unsure}.items():
    for kind, chosen in {"closing clause": group & at_end, "other": group & ~at_end}.items():
        print(f"probability {name}, {kind}: {(chosen & ~our_right).sum()} of "
              f"{chosen.sum():,} answers are wrong")

# %% [markdown]
# A probability between 30 and 70 % is a useful warning: nearly half of the answers in this range are wrong. Outside
# this range, 27 of 243 answers are wrong for reviews with a closing clause, but only 8 of 1,546 for other reviews.

# %% [markdown]
# ## Looking at *not*
#
# Maps of attention weights show where a word takes information *from*, not what is done with it. Quite different
# weights can lead to the same prediction ([Jain and Wallace, 2019](https://arxiv.org/abs/1902.10186)). A more direct
# test is to hide a word with the mask and see what changes:

# %%
@torch.no_grad()
def without_each_word(text):
    """Logit of positive minus negative, (1 + t,): nothing hidden, then each word in turn."""
    ids, mask, _ = to_batch([text], [0])
    t = ids.shape[1]
    hidden = torch.cat([mask, mask & ~torch.eye(t, dtype=torch.bool, device=mask.device)])
    scores = model.eval()(ids.expand(t + 1, t), hidden)    # (1 + t, c)
    return (scores[:, 1] - scores[:, 0]).cpu()

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels of horizontal bars, one bar for each word of a review: the logit of positive minus that of negative when that word is hidden. Left, for the review with “not” after “but”, every bar points far to positive, except the long bar of “not” and the short bar of “weak”, which point to negative. Right, for the review with “not” before “but”, every bar points far to negative; the bar of “not” is as long as the others."}}
review = "The plot is dull, but the cast is not weak."
reviews = {"not after but": review,
           "not before but": "The plot is not dull, but the cast is weak."}
figure, axes = plt.subplots(1, 2, figsize=(6, 3.9), sharex=True)
for ax, (title, text) in zip(axes, reviews.items()):
    names = ["(nothing)", *split_words(text)]
    ax.barh(range(len(names)), without_each_word(text), color=plots.COLOURS[0], height=0.7)
    ax.set_yticks(range(len(names)), labels=names)
    ax.axvline(0, color="#444444", linewidth=1, linestyle="-")
    ax.set(xlabel="positive − negative", title=title)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
axes[0].set_ylabel("word that is hidden")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each bar is the logit of *positive* minus the logit of *negative* when the word beside the bar
# is hidden from the model. For the first bar nothing is hidden.
#
# </div>
#
# On the left, hiding *not* reverses the verdict, as it should. On the right, hiding *not* changes little, as it should:
# the cast is still weak. Hiding *weak* reverses the verdict on the left only. We cannot explain this difference.
#
# Now take all test reviews that end in a clause such as *but the plot is not dull*, or in a sentence such as *I do not
# think that the plot is dull*. In reviews of either kind, hiding *not* should change the class.

# %%
@torch.no_grad()
def changed_without(cues, ending):
    """How many test reviews with that ending change class without the words, of how many."""
    there = [text for text in test.texts if re.search(ending, text)]
    ids, mask, _ = to_batch(there, [0] * len(there))
    hidden = sum(ids == vocabulary[cue] for cue in cues.split()) > 0
    before, after = model(ids, mask), model(ids, mask & ~hidden)
    changed = before.argmax(dim=-1) != after.argmax(dim=-1)
    return f"{changed.sum()} of {len(there)} reviews change class"

but, think = r"(but|yet) the \w+ is not \w+\.$", r"I do not think that the \w+ is \w+\.$"
for cues in ("the", "not"):
    print(f"but the plot is not dull, without {cues}: {changed_without(cues, but)}")
for cues in ("the", "not", "do", "do not"):
    print(f"I do not think that ..., without {cues}: {changed_without(cues, think)}")

# %% [markdown]
# Hiding *the*, as a control, changes no class. After *but* and *yet*, hiding *not* always changes the class. In *I do
# not think*, hiding *not* never does, hiding *do* usually does, and hiding both always does. In training, *do* occurs
# only before *not*, so the model may treat *do* as a negation too. This is a hint only: in training no word was hidden.

# %% [markdown]
# ## The same words, shuffled
#
# How much does the order matter? Swap randomly chosen pairs of words in each review: one pair, two pairs, and so on up
# to 32, each time starting from the review in order.

# %%
def shuffled(text, swaps, rng):
    words = split_words(text)
    for _ in range(swaps):
        i, j = rng.sample(range(len(words)), 2)
        words[i], words[j] = words[j], words[i]
    return " ".join(words)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Accuracy against the number of swapped pairs, from 0 to 32. The curve falls from above nine tenths to somewhat below six tenths. Dashed lines mark chance at one half and, a little above it, the bag of words, at which the curve ends."}}
rng, truth = random.Random(0), torch.tensor(test.labels)
swaps = [0, 1, 2, 4, 8, 16, 32]
right = []
for count in swaps:
    mixed = [shuffled(text, count, rng) for text in test.texts]
    right.append(((positive_probability(mixed) > 0.5) == truth).double().mean().item())

landmarks = {"chance": 0.5, "bag of words": bag_accuracy}
plots.curves({"": (range(7), right)}, "swapped pairs", "accuracy", landmarks=landmarks,
             named_at="left")
plt.xticks(range(7), swaps)
plt.ylim(0.4, 1.02)
plt.show()
print(f"{right[0]:.1%} right in order, {right[-1]:.1%} after 32 swaps")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The farther to the right, the less of the order is left.
#
# </div>
#
# After 32 swaps the model is no better than the bag of words. Does it notice that the order is gone?

# %% [markdown]
# <div class="card">
#
# **Prediction · `sure_of_salad`** &nbsp; 1 minute · no points
#
# After 32 swaps, for what share of the reviews does the model give one class a probability of at least 0.9?
#
# - **A.** More than half: every review still consists of words that the model knows.
# - **B.** About a third: those in which few words have changed places.
# - **C.** Hardly any: most probabilities are near one half, as they should be.
# </div>

# %% nbgrader={"grade": false, "grade_id": "sure_of_salad", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
sure_of_salad = "A"
### STUDENT GETS
# sure_of_salad = ...    # "A", "B" or "C"
### END SOLUTION

# %%
probabilities = positive_probability([shuffled(text, 32, rng) for text in test.texts])
certain = ((probabilities < 0.1) | (probabilities > 0.9)).float().mean().item()
print(f"shuffled: a probability of at least 0.9 for {certain:.0%} of the reviews")
for seed in range(4):
    text = shuffled(review, 32, random.Random(seed))
    print(f"{positive_probability([text])[0]:.2f}", text)

# %% nbgrader={"grade": true, "grade_id": "check_sure_of_salad", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("sure_of_salad", sure_of_salad)

# %% [markdown]
# In training the model has seen only well-formed sentences. Do not rely on its confidence for texts unlike its
# training data.

# %% [markdown]
# ## What each choice is worth
#
# The first row below is trained as in this lesson. Every other row changes one thing, except the last, which changes
# two: post-norm and no warm-up. Each row has three recorded runs, with the seeds 0, 1 and 2, scored on the test
# reviews. To choose a setting, use the validation set.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Seven rows, each with three ticks of accuracy on the test reviews, and a vertical line for the bag of words at 0.58. Without positions and without attention all ticks lie close to that line, between 0.57 and 0.62. With the lesson's training they lie between 0.9 and 0.99, without warm-up and with post-norm likewise. With standard normal tables they lie between 0.81 and 0.85. With post-norm and without warm-up they lie at 0.84, 0.86 and 0.98."}}
runs = recorded("classifier_ablations")["result"]["accuracy"]
titles = {"nothing": "as in this lesson", "no attention": "each word sees only itself",
          "tables fifty times as large": "standard normal tables"}
runs = {titles.get(change, change): accuracies for change, accuracies in runs.items()}
plots.runs({"": runs}, "accuracy on the test reviews", {"bag of words": bag_accuracy})
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each change; farther right is better. Each tick is one run. In the row *each word sees
# only itself*, two ticks coincide.
#
# </div>
#
# **Without positions, or without attention, the transformer is hardly better than the bag of words.** Standard normal
# tables, PyTorch's default, cost twelve points on average. We do not know why.
#
# Three runs are too few to tell whether warm-up helps. The runs in the first row differ only in their seed, and are up
# to eight points apart. With post-norm, two of the three runs without warm-up score lower than every run with warm-up,
# but the third scores higher than every one of them. Even the same seed gave 90.8 % in the recorded run, on another
# machine, and 93.5 % in the run above.

# %% [markdown]
# ## A number you can trust
#
# The finished `accuracy` does three things. It switches to evaluation mode, which turns dropout off. It records no
# graph (`torch.no_grad()`), which saves memory and time. And it averages over texts, not over batches: the last batch
# is often shorter than the others.
#
# For one trained model, an accuracy p on N texts has a standard error of $\sqrt{p(1 - p)/N}$: half a point for our
# transformer on 2,000 reviews, and eight points for the bag of words on the 39 reviews with *neither*.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `train_epoch`** &nbsp; mend · ★★☆ · 10 minutes · 4 points
#
# The function below trains for one epoch and returns two numbers that are meant to describe the test batches. Only one
# of them does. Find out which, and fix the other. Both must be measured in evaluation mode, and the model must not
# learn from the test batches.
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
# of these two means? If not, which batch does it come from? A Python name keeps its value after the loop in which it
# was assigned.
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
# ## Learning by heart
#
# `train_epoch` returns two numbers, and they can disagree. Here a new model has just 256 reviews, and 45 epochs to
# learn them by heart.

# %% [markdown]
# <div class="card">
#
# **Prediction · `loss_by_heart`** &nbsp; 1 minute · no points
#
# At the end the model gets about three in five validation reviews right, more than at the start. The *loss* on the
# same reviews is near log 2 = 0.69 at the start. Where does it end?
#
# - **A.** Below 0.4: it follows the training loss down.
# - **B.** Between 0.5 and 0.7: the accuracy gets a little better, and so does the loss.
# - **C.** Above 1: it gets worse while the accuracy gets better.
# </div>

# %% nbgrader={"grade": false, "grade_id": "loss_by_heart", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
loss_by_heart = "C"
### STUDENT GETS
# loss_by_heart = ...    # "A", "B" or "C"
### END SOLUTION

# %%
torch.manual_seed(0)
few = in_batches(train.texts[1000:1256], train.labels[1000:1256], 64)
learner = new_classifier()
adam = torch.optim.Adam(learner.parameters(), lr=0.002)
for epoch in range(1, 46):
    share, loss = train_epoch(learner, few, validation, adam)
    if epoch in (1, 5, 15, 30, 45):
        known = [F.cross_entropy(learner(*text), label).item() for *text, label in few]
        print(f"epoch {epoch}: validation accuracy {share:.0%}, loss {loss:.3f}; "
              f"training loss {sum(known) / len(known):.3f}")
print(f"bag of words: validation accuracy {bag_aside:.0%}")

# %% nbgrader={"grade": true, "grade_id": "check_loss_by_heart", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("loss_by_heart", loss_by_heart)

# %% [markdown]
# The training loss is near 0. On the validation reviews the model is about as accurate as the bag of words, but it
# has become confident, and a confident wrong answer costs far more than log 2. Accuracy counts mistakes; the loss
# weighs them. When the validation loss starts to rise, **[overfitting](../../site/glossary.md#overfitting)** has
# begun, even if the accuracy still rises.

# %% [markdown]
# ## An open experiment
#
# No points, optional: **get the highest accuracy on the validation set that you can, with half a minute of training**.
# You may change every line of `attempt`. Its variable `share` runs from 0 to 1 as the time passes, and sets the
# learning rate. Your tries are saved in the course's `experiments/` folder. As given, the cell stops after 40 steps;
# set `steps=None` for a real try.

# %%
own = looks[-1][1] if looks else 0.5
bench = Experiment("08_classifier", "accuracy", beat=own, lower=False,
                   landmarks={"chance": 0.5, "bag of words": bag_aside})

def attempt(note, seconds=30, steps=None):
    torch.manual_seed(0)
    mine = new_classifier(e=64, h=4, depth=2)
    adam = torch.optim.AdamW(mine.parameters(), weight_decay=0.1)
    with bench.timed(seconds, steps) as clock:
        for share in clock:
            adam.param_groups[0]["lr"] = 0.001 * min(1, 20 * share, 1.05 * (1 - share))
            train_step(mine, once[clock.done % len(once)], adam)
    bench.keep(accuracy(mine, validation), note, clock)

attempt("the lesson's model, 40 steps", steps=40)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Accuracy against the number of the try. One point, the short first try, is at the dashed line of chance, below that of the bag of words; far above both, near 1, a dashed line marks the number to beat."}}
bench.show()

# %% [markdown]
# Change one thing at a time. Repeat your best try with another seed to see how much is luck.

# %% [markdown]
# ## Real reviews
#
# On IMDb, training takes 13 minutes of processor time, so we ran it once and **recorded** it. The transformer is this
# lesson's `Classifier`, twice as wide. In training, dropout and the replacement of one word in ten by `<unk>` are meant
# to limit overfitting; `helpers/training/imdb.py` has all settings. The bag of words is logistic regression on word
# counts, reweighted so that rare words count for more (tf-idf). Both models have a vocabulary of 20,000 words. Of a
# long review they read the first 56 words and the last 168, because the verdict often comes at the end.

# %% [markdown]
# <div class="card">
#
# **Prediction · `who_wins_imdb`** &nbsp; 1 minute · no points
#
# On the generated reviews the transformer is more than thirty points better than a bag of words. On IMDb, both are
# trained on the same 22,500 real reviews. Which model is right more often on the test reviews?
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

# %% tags=["hide-input"]
run = recorded("imdb")
settings, result, data = run["settings"], run["result"], run["data"]
print(f"$ {run['command']}")
print(f"{run['processor_seconds'] / 60:.0f} minutes of processor time on {run['machine']}; "
      f"{settings['parameters']:,} parameters, {settings['epochs']} epochs")
print(f"{data['trained_on']:,} reviews to train on, {data['looked_at']:,} for validation, "
      f"{data['tested_on']:,} for the test")
print(f"transformer: {run['curve'][-1]['accuracy']:.1%} of the validation reviews, "
      f"{result['test_accuracy']:.1%} of the test reviews")
print(f"bag of words: {result['bag_of_words_validation_accuracy']:.1%} of the validation "
      f"reviews, {result['bag_of_words_accuracy']:.1%} of the test reviews")
for look in run["curve"][3::5]:
    print(f"transformer at step {look['step']:,}: training loss {look['loss']:.2f}, "
          f"validation accuracy {look['accuracy']:.1%}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "The recorded run: accuracy on the IMDb validation reviews, against the training step. The first three points go up and down below a dashed line at 89 per cent, the bag of words; from the fourth on they are above the line and drift, unevenly, down towards it. Two squares at the right end mark the test reviews: the bag of words at 88 per cent, the transformer at 86."}}
steps = [look["step"] for look in run["curve"]]
shares = [look["accuracy"] for look in run["curve"]]
counted = {"bag of words, validation": result["bag_of_words_validation_accuracy"]}
plots.curves({"": (steps, shares)}, "step", "accuracy", counted, named_at="left")
tested = {"bag of words": "bag_of_words_accuracy", "transformer": "test_accuracy"}
for name, key in tested.items():
    plt.plot(steps[-1], result[key], "s", color=plots.COLOURS[1])
    plt.text(steps[-1] - 40, result[key], f"{name}, test", ha="right", va="center")
plt.ylim(0.84, 0.91)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The round points are the transformer's accuracy on the validation set; the dashed line is that of
# the bag of words. The squares show both models on the test reviews. The axis begins at 0.84.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_who_wins_imdb", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("who_wins_imdb", who_wins_imdb)

# %% [markdown]
# **The bag of words wins** this one comparison on the test reviews by nearly two points. On the validation reviews the
# two models finish level. After step 996 the transformer's training loss falls from 0.20 to 0.05, but its validation
# accuracy never exceeds 89.7 % again.
#
# **The validation set flatters the transformer**, which gets 89.1 % of the validation reviews right but only 86.2 % of
# the test reviews. The gap is more than four times its standard error of 0.7 points. One possible reason: validation
# and training reviews share films, and the test reviews discuss others. A validation set should resemble the test data.
#
# [Lesson 14](../14_bert/14_bert.ipynb) repeats this comparison with **pretraining**: its encoder was first trained on a
# great deal of other text.
#
# Of these six short test reviews, the transformer got the last two wrong:

# %% tags=["hide-input"]
for sample in run["samples"]:
    truth = "positive" if sample["label"] else "negative"
    print(f"{truth}; probability of positive {sample['positive']:.0%}:")
    text = " ".join(sample["text"].replace("<br />", " ").split())
    print(textwrap.fill(text, 88, max_lines=4), end="\n\n")

# %% [markdown]
# ## What you can do now
#
# You can turn texts into ids, keep padding out of the attention and the mean, build a classifier from blocks, expose a
# broken model with a single batch, measure a model with care, and say how much it owes to the order of the words.
#
# **A question to think about**
#
# <details><summary>Leave the positions out of the classifier. What can it still learn that the bag of words cannot, and
# how much is this worth?</summary>
#
# Without positions only the counts of the words are left. Logistic regression adds up one weight for each word.
# Attention can also notice that *not* and *only* occur **together**. Without positions, this is worth little: the three
# recorded runs reach 58 to 61 %. With positions but without attention, the runs reach 60 to 61 %.
#
# </details>
#
# **Further reading**
#
# - **[Karpathy, *A recipe for training neural networks*, 2019](https://karpathy.github.io/2019/04/25/recipe/)**: look
#   at the data, a simple model first, overfit one batch.
# - [Pang, Lee and Vaithyanathan, *Thumbs up?*, 2002](https://aclanthology.org/W02-1011/); the last section describes
#   reviews that raise expectations and then deny them.
#
# **Next:** [lesson 9, *A character generator*](../09_character_generator/09_character_generator.ipynb)
