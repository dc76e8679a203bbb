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
# # 8 · Is this review kind?
#
# *The plot is dull, but the cast is great.* Exchange two words, *the cast is dull, but the plot is great*, and the
# reviewer has still enjoyed the film. Exchange two others, *the plot is great, but the cast is dull*, and they have
# not. All three sentences consist of the same words. A program that only counts words cannot tell them apart, and for a
# long time most text classifiers did just that.
#
# In this lesson the blocks of lesson 7 become a model that does a job: words go in, a verdict comes out, and between them lies a training that you write, watch, interrupt and measure.
#
# | | |
# |---|---|
# | **You will build** | a vocabulary, padded batches, pooling, a transformer that classifies, the step that trains it and the number that judges it |
# | **You need** | lessons 5 to 7; cross-entropy, and what an optimiser does |
# | **It takes** | about 90 minutes: six exercises, 24 points |
# | **It computes** | for about a minute altogether, on any laptop |
#
# b texts, t positions, e width, h heads, n words in the vocabulary, c classes: the letters are those of [the table](../../site/notation.md). Finished parts from earlier lessons: `Transformer`, a stack of blocks, and `PositionEmbedding`.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import random
import textwrap
from collections import Counter

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from IPython.display import ProgressBar, clear_output
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.datasets import classifier_reviews
from helpers.device import device
from helpers.lesson import in_exam, start
from helpers.parts.blocks import Transformer
from helpers.parts.classifier import mean_pool as finished_pool
from helpers.parts.multi_head import split_heads
from helpers.parts.positions import PositionEmbedding
from helpers.parts.words import split_words

check = start("08_classifier")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## Reviews that have to be read
#
# The data set that everybody knows for this task is IMDb: 50,000 film reviews, of more than two hundred words each on
# average (Maas et al., 2011). It appears at the end of the lesson, because a transformer needs more time on it than you
# would want to wait. Until then you work with reviews that a small grammar has made. They are a sentence or two long,
# *kind* or *unkind* (elsewhere the two classes are called positive and negative), and hard in exactly one way: praise
# and blame say little by themselves. Each word of them occurs in about six kind reviews for four unkind ones, or the
# reverse. What turns the verdict is a *not*, a *but*, a *nobody can say that*.

# %% tags=["show", "nbval-check-output"]
train, test, _ = classifier_reviews(places="embedded")
for text, label in list(zip(*train))[2:9]:
    print("  kind" if label else "unkind", "|", text[:80])
for word in ("good", "dull"):
    there = [label for text, label in zip(*train) if word in split_words(text)]
    print(f"{word}: in {sum(there):,} kind reviews, {len(there) - sum(there):,} unkind ones")

# %% [markdown]
# What a test review says of its film, no training review says word for word, so a right answer there is not a memory.
#
# ## From words to numbers
#
# `split_words` cuts a text into words in lower case, with punctuation marks as words of their own. A model wants numbers, so every word that is frequent enough gets one: its **id**. Two entries of the vocabulary are no words. `<pad>` fills up short texts, and `<unk>` stands for
# every word that was too rare, or that nobody had seen when the vocabulary was made.

# %% tags=["show", "nbval-check-output"]
print(split_words("It isn't dull, it's SLOW."))

# %% [markdown]
# Which id a word gets does not matter. That it gets the same one tomorrow does: a trained model is a table whose rows
# are numbered by these ids. A Python set has another order in each run, and a counter has the order in which the texts
# happened to come. So ties, too, need a rule.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `build_vocabulary`** &nbsp; ★☆☆ · 8 minutes · 3 points
#
# Return a dict from words to ids: `<pad>` is 0, `<unk>` is 1, and then come the words, the most frequent first. Of words that are equally frequent, the alphabet decides. There may be `size` entries in all.
#
# <details><summary>Hint 1: counting</summary>
#
# `Counter(iterable)` counts whatever a loop over the iterable gives. A generator can have two `for`s: over the texts, and over the words of each.
#
# </details>
# <details><summary>Hint 2: an order with two rules</summary>
#
# `sorted(things, key=f)` sorts by what f returns. Pairs are compared by their first entries, and by the second where those are equal; a minus turns numbers round. `Counter.most_common` knows only the first rule.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "build_vocabulary", "locked": false, "schema_version": 3, "solution": true, "task": false}
def build_vocabulary(texts, size):
    """The ids of the most frequent words.

    texts: a list of str. size: how many entries there may be, <pad> and <unk> included.
    Returns a dict from word to id: <pad> is 0, <unk> is 1, then the words by falling
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

# %% tags=["show", "nbval-check-output"]
vocabulary = build_vocabulary(train.texts, 200)
print(len(vocabulary), "entries; the first:", list(vocabulary)[:14])

# %% [markdown]
# The grammar has few words, so there is room for all of them. On IMDb a limit is needed: a word that occurs twice in 25,000 reviews would get a row of e numbers that is hardly ever trained.

# %% [markdown]
# ## A rectangle of ids
#
# A tensor has straight edges and texts do not. So the texts of a batch are cut at a largest length, then filled up with `<pad>` to the length of the longest. From here on somebody has to remember what is a word and what is filling. That is the **mask**, of shape (b, t) like the ids:
# True where there is a word, as everywhere in this course.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `encode_batch`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Turn b texts into ids and mask. Words that the vocabulary does not have become `<unk>`. Keep the first `length` words of a longer text. t is the length of the longest text that is left, **not** always `length`: positions that are nothing but padding cost as much as any other.
#
# <details><summary>Hint 1: lists first</summary>
#
# Make a list of ids for each text, cut it, and look how long the longest is. `vocabulary.get(word, other)` returns `other` for a word that is not in the dict. A list times a number repeats it.
#
# </details>
# <details><summary>Hint 2: the mask without a loop</summary>
#
# Position j of text i is a word if j is smaller than the number of words in text i. `torch.arange(t)` is (t,), the lengths as (b, 1) stand upright, and a comparison broadcasts.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "encode_batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode_batch(texts, vocabulary, length):
    """Texts as one rectangle of ids.

    texts: a list of b str. vocabulary: from build_vocabulary.
    length: a text is cut after so many words.
    Returns ids (b, t), int64, with <pad> after the words of short texts, and mask (b, t),
    booleans, True where there is a word. t: the words of the longest text, after cutting.
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

# %% tags=["show", "nbval-check-output"]
three = ["The plot is dull.", "The zebra is not dull, but slow.", "Gripping."]
ids, mask = encode_batch(three, vocabulary, length=6)
print(ids)
print(mask.long())

# %% [markdown]
# Find the zebra: id 1. And the second text has lost its end, *but slow*, to the limit of six words. That is the price of a limit, and with real reviews it is paid often.

# %% [markdown]
# ## What counting words can do
#
# First the simplest thing that could possibly work. Without it we would not know later whether a number is good. A
# **bag of words** describes a text by how often each word of the vocabulary occurs in it, a vector of n counts, and
# forgets the order. A linear map makes c scores of it: every word has one weight for each class, and the weights of the
# words in the text are added up. Trained with cross-entropy (minus the logarithm of the probability that the right
# class gets; the section *One step* has the formula), this is logistic regression.

# %% tags=["show"]
def word_counts(texts):
    """(b, n): how often each word of the vocabulary stands in each text."""
    ids, mask = encode_batch(texts, vocabulary, length=64)
    counts = torch.zeros(len(texts), len(vocabulary))
    return counts.scatter_add(1, ids, mask.float())    # each word adds 1 in its own column

torch.manual_seed(0)
counts, labels = word_counts(train.texts), torch.tensor(train.labels)
bag = nn.Linear(len(vocabulary), 2)
optimiser = torch.optim.LBFGS(bag.parameters(), max_iter=2 if in_exam() else 60)

def loss_of_bag():
    optimiser.zero_grad()
    loss = F.cross_entropy(bag(counts), labels)
    loss.backward()
    return loss

optimiser.step(loss_of_bag)    # LBFGS asks for the loss several times in one step
bag_guesses = bag(word_counts(test.texts)).argmax(dim=-1)
bag_share = (bag_guesses == torch.tensor(test.labels)).float().mean().item()
print(f"bag of words: {bag_share:.1%} of {len(test.labels):,} unseen reviews")

# %% tags=["show"] mystnb={"image": {"alt": "Horizontal bars of the learned weights of twelve words. Good, great and gripping weigh about 0.4 towards kind, silly, dull and fake about as much towards unkind. Not, but, hardly, although and nobody are close to zero."}}
shown = "gripping good great moving not but hardly although nobody silly dull fake".split()
towards_kind = (bag.weight[1] - bag.weight[0]).detach()
weights = [towards_kind[vocabulary[word]].item() for word in shown]

figure, ax = plt.subplots(figsize=(6, 3.4))
colours = [plots.COLOURS[0] if weight > 0 else plots.COLOURS[1] for weight in weights]
ax.barh(shown, weights, color=colours, height=0.7)
ax.axvline(0, color="#444444", linewidth=1, linestyle="-")
ax.set(xlabel="weight towards kind", ylabel="word", xlim=(-0.6, 0.6))
ax.invert_yaxis()
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One bar a word: what one occurrence of it adds to the score of *kind* over that of *unkind*. To the right it speaks for a kind review, to the left against. Praise and blame point the right way, since one review in six is plain. The words that turn everything round have next to no weight of their own.
#
# </div>
#
# That is as it must be. *Not* is neither kind nor unkind; it says something about the word after it, and a sum has no
# order. To the bag, the two reviews below are one and the same:

# %% tags=["show", "nbval-check-output"]
pair = ["The plot is dull, but the cast is great.",
        "The plot is great, but the cast is dull."]
print("the same counts:", torch.equal(*word_counts(pair)))

# %% [markdown]
# A transformer has what is missing: positions that tell the two apart, and attention by which *but* and *dull* can find each other.

# %% [markdown]
# ## One vector for a text
#
# A stack of blocks turns (b, t, e) into (b, t, e): a vector for each word, in which by now is something of all the others. A verdict needs one vector for the whole text. Average them, **over the real positions only**. With $m_j = 1$ where the text has a word at position $j$, and $m_j = 0$ where it has padding,
#
# $$\bar y \;=\; \frac{\sum_{j} m_j\, y_j}{\max\big(1,\; \sum_{j} m_j\big)} .$$
#
# The plain `mean(dim=1)` would be shorter, and would average the padding in. Then a review's verdict depends on which others happen to be in its batch: on the longest of them. It trains, it even works a little, and nothing raises. (The 1 is for a text without any word, which is to come out as zeros and not as 0/0.)

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `mean_pool`** &nbsp; ★★☆ · 10 minutes · 3 points
#
# Write the formula for a batch. Neither x nor the mask may be changed. (`finished_pool` is for the exercise after this one.)
#
# <details><summary>Hint 1: a mask that multiplies</summary>
#
# Converted to numbers, True is 1 and False is 0. For that, (b, t) needs one more axis at its end, so that it broadcasts over the e components.
#
# </details>
# <details><summary>Hint 2: a divisor for each text</summary>
#
# The sum of the mask over the positions says how many words a text has. `.clamp(min=1)` raises what is below 1 to 1. Keep an axis, or (b,) will meet (b, e).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "mean_pool", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mean_pool(x, mask):
    """The average of the vectors at the real positions.

    x: (b, t, e). mask: (b, t), booleans, True where there is a word.
    Returns (b, e); zeros for a text without a word.
    """
    ### BEGIN SOLUTION
    weights = mask.unsqueeze(-1).to(x.dtype)    # (b, t, 1)
    return (x * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_mean_pool", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(mean_pool)

# %% [markdown]
# One text, alone and with seven positions of padding behind it:

# %% tags=["show", "nbval-check-output"]
torch.manual_seed(0)
words, filling = torch.randn(1, 5, 4), torch.randn(1, 7, 4)
mask = torch.tensor([[True] * 5 + [False] * 7])
longer = torch.cat([words, filling], dim=1)    # (b, t, e)
alone = mean_pool(words, mask[:, :5])
print("the same, padded:", torch.allclose(alone, mean_pool(longer, mask), atol=1e-6))
print("with a plain mean:", torch.allclose(alone, longer.mean(dim=1), atol=1e-6))

# %% [markdown]
# ## The model
#
# Everything is there. A word's id picks its row of a table (n, e). Its position adds a row of another table (t_max, e). A stack of blocks follows, norm first, in which every word looks at every word and **nobody looks at padding**. Then the mean, and a linear map from e numbers to c scores:
#
# $$\underset{(b,\,t)}{\text{ids}} \;\to\; \underset{(b,\,t,\,e)}{\text{tokens} + \text{positions}} \;\to\; \underset{(b,\,t,\,e)}{\text{blocks}} \;\to\; \underset{(b,\,e)}{\text{mean}} \;\to\; \underset{(b,\,c)}{\text{scores}} .$$
#
# Scores, not probabilities: the softmax belongs to the loss. Numbers that still have to go through a softmax are called
# **logits**. You will see what happens if it comes twice.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `Classifier`** &nbsp; ★★★ · 18 minutes · 6 points
#
# Write both methods. The finished pieces are `PositionEmbedding(t_max, e)`, called on (b, t, e); `Transformer(e, h, depth, pre_norm=True)`, called as `transformer(x, mask)` with a mask of shape (b, 1, t); and `finished_pool(x, mask)`. Store the layers under the names in the docstring: the check fills them with weights by these names. (PyTorch's own `nn.TransformerEncoder` is not for this exercise.)
#
# <details><summary>Hint 1: tables</summary>
#
# `nn.Embedding(rows, width)` is a table. Called with integers of any shape, it returns their rows, with one more axis. There are as many rows as there are words.
#
# </details>
# <details><summary>Hint 2: two masks from one</summary>
#
# The blocks want to know who may be looked at, which is the last axis of (b, t, t). It is the same for every position that looks, hence (b, 1, t): an axis of length 1 between the two that you have.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "Classifier", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Classifier(nn.Module):
    """A transformer that puts texts into classes.

    `tokens`: an nn.Embedding with a row for each word. `positions`: a PositionEmbedding.
    `transformer`: a stack of blocks, norm first. `to_classes`: from a vector to scores.
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

        Returns (b, c), the scores of the classes, for a softmax to come.
        """
        ### BEGIN SOLUTION
        x = self.positions(self.tokens(ids))          # (b, t, e)
        x = self.transformer(x, mask.unsqueeze(1))    # nobody looks at padding
        return self.to_classes(finished_pool(x, mask))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_Classifier", "locked": true, "points": 6.0, "schema_version": 3, "solution": false, "task": false}
check(Classifier)

# %% [markdown]
# A new model should know nothing, and know that it knows nothing. With two classes, the loss of someone who gives both a probability of one half is $-\log \tfrac12 = \log 2 \approx 0.693$. Far above that at the start means that the model is *sure* of something already. One cause is at hand: `nn.Embedding` begins
# with standard normal numbers, far larger than anything that a fresh block adds to them. The helper below starts both tables at a standard deviation of 0.02 instead, as GPT-2 does.

# %% tags=["show"]
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
# For a text with label $y$, let $z$ be its scores, one for each class $k$. The loss is the **cross-entropy**: minus the logarithm of the probability that the softmax gives to the right class, averaged over the batch,
#
# $$L \;=\; \operatorname{mean}\big(-\log \operatorname{softmax}(z)_{y}\big) \;=\; \operatorname{mean}\Big(\log \textstyle\sum_k e^{z_k} - z_{y}\Big).$$
#
# `F.cross_entropy(scores, labels)` computes the second form, softmax included. One step of training is then: mode, clear, forward, backward, step. Every part of it can be forgotten without an error message.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `train_step`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Take one step on one batch. The model may come in evaluation mode and may hold gradients from something else; neither may make a difference. Return the loss as a Python number.
#
# <details><summary>Hint 1: what adds up</summary>
#
# `loss.backward()` adds to the `.grad` of every parameter. `optimiser.step()` uses what is there.
#
# </details>
# <details><summary>Hint 2: mode, and a number</summary>
#
# `model.train()` switches dropout on, `model.eval()` off. `.item()` makes a number of a tensor with one entry, and lets go of the graph behind it.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "train_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_step(model, batch, optimiser):
    """One step of gradient descent.

    model: called as model(ids, mask), gives scores (b, c).
    batch: (ids (b, t), mask (b, t), labels (b,)). optimiser: for the model's parameters.
    Returns the cross-entropy of the batch, as it was before the step: a number.
    """
    ids, mask, labels = batch
    ### BEGIN SOLUTION
    model.train()
    optimiser.zero_grad()
    loss = F.cross_entropy(model(ids, mask), labels)
    loss.backward()
    optimiser.step()
    return loss.item()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_train_step", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(train_step)

# %% [markdown]
# ## Overfit one batch first
#
# Before training on 20,000 reviews, train on sixteen, the same sixteen again and again. There is nothing to be learned from that, and everything to be found out: a model of 100,000 parameters can learn sixteen verdicts by heart, so the loss **has to** go to zero. If it does not, something is broken, and you know after a second instead of
# an hour. The second model below is broken on purpose. It puts a softmax on its scores before cross-entropy applies its own.

# %% tags=["show"] mystnb={"image": {"alt": "Loss against step on one batch of sixteen reviews, logarithmic. One curve starts at 0.69 and falls below 0.01 within 60 steps. The other, with a softmax too many, flattens out just above a dashed line at 0.313."}}
class SoftmaxTooMany(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(ids, mask).softmax(dim=-1)

sixteen = to_batch(train.texts[:16], train.labels[:16])
losses = {}
for name in ("as it should be", "a softmax too many"):
    torch.manual_seed(0)
    learner = new_classifier()
    if name == "a softmax too many":
        learner = SoftmaxTooMany(learner)
    optimiser = torch.optim.Adam(learner.parameters(), lr=0.002)
    steps = range(2 if in_exam() else 60)
    losses[name] = [train_step(learner, sixteen, optimiser) for _ in steps]

landmarks = {"chance: log 2": math.log(2), "log(1 + 1/e)": math.log(1 + math.exp(-1))}
plots.loss_curve(losses, landmarks=landmarks, log=True)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Both curves start at log 2, where a model that knows nothing should. One falls on and on: sixteen verdicts, learned by heart. The other learns too, and levels off at the lower dashed line.
#
# </div>
#
# Why there? After a softmax the scores are at best 1 and 0. The second softmax makes of them a probability of
# $e/(e + 1) = 0.73$, no more, and its loss is $\log(1 + 1/e) = 0.313$. On the whole data set such a model trains, a
# little slowly, and reaches a fair accuracy. It looks merely mediocre. Overfitting one batch shows that it is broken.

# %% [markdown]
# ## A number to believe
#
# The share of right answers looks too simple to get wrong. There are at least four ways. Dropout must be off: evaluation mode. Gradients are not needed: `torch.no_grad()`. Batches are not of equal size, the last one is shorter, so the average of their averages is not the average over the texts. And whoever measures must leave the model as it was, or the training that goes on
# afterwards is another one.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `accuracy`** &nbsp; ★★☆ · 10 minutes · 4 points
#
# Return the share of texts that get their highest score for the right class. `batches` can be a list, or a generator that hands out one batch at a time. Afterwards the model is in the mode in which it came, and gradients are switched on again.
#
# <details><summary>Hint 1: what to count</summary>
#
# Two counts go through the loop: right answers and texts. One division comes after it.
#
# </details>
# <details><summary>Hint 2: mode</summary>
#
# `model.training` says whether a module is in training mode. `model.train(True)` and `model.train(False)` set it.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "accuracy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def accuracy(model, batches):
    """The share of right answers over all batches, each text counted once.

    model: called as model(ids, mask), gives scores (b, c).
    batches: an iterable of (ids (b, t), mask (b, t), labels (b,)), b not always the same.
    Returns a number between 0 and 1. Computes no gradients, asks the model in evaluation
    mode, and leaves it in the mode that it was in before.
    """
    ### BEGIN SOLUTION
    training = model.training
    model.eval()
    right = total = 0
    with torch.no_grad():
        for ids, mask, labels in batches:
            guesses = model(ids, mask).argmax(dim=-1)    # (b,)
            right += (guesses == labels).sum().item()
            total += len(labels)
    model.train(training)
    return right / total
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_accuracy", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(accuracy)

# %% [markdown]
# ## Batches, and a rate that warms up
#
# Two things before the training. Batches: texts of like length go together, so that there is little padding to compute,
# and the batches come in random order. A thousand of the training reviews are put aside to look at during the training
# (for **validation**). The test reviews stay untouched until the end; choosing by them would be a slow way of training
# on them.

# %% tags=["show"]
def batches_of(texts, labels, size, seed):
    """Batches of texts of like length, in an order that the seed decides."""
    chance = random.Random(seed)
    by_length = sorted((len(split_words(text)), chance.random(), text, label)
                       for text, label in zip(texts, labels))
    groups = [by_length[k:k + size] for k in range(0, len(by_length), size)]
    chance.shuffle(groups)
    for group in groups:
        _, _, texts, labels = zip(*group)
        yield to_batch(texts, labels)

put_aside = list(batches_of(train.texts[:1000], train.labels[:1000], 250, seed=0))
learn_from = train.texts[1000:], train.labels[1000:]
once = list(batches_of(*learn_from, 32, seed=1))
words_in = sum(mask.sum().item() for _, mask, _ in once)
places_in = sum(mask.numel() for _, mask, _ in once)
longest = max(mask.shape[1] for _, mask, _ in once)
one_length = longest * len(learn_from[0])
print(f"padding: {1 - words_in / places_in:.1%} in batches of like length, "
      f"{1 - words_in / one_length:.1%} if all were as long as the longest")

# %% [markdown]
# The rate: Adam divides each gradient by a running estimate of its own size. At the first step that estimate *is* the gradient, so that every weight moves by the learning rate, whether its gradient is large, small or nothing but noise:

# %% tags=["show"]
torch.manual_seed(0)
model = new_classifier()
before = [p.detach().clone() for p in model.parameters()]
optimiser = torch.optim.Adam(model.parameters(), lr=0.002)
train_step(model, once[0], optimiser)
moved = [(p.detach() - old).abs() for p, old in zip(model.parameters(), before)]
slopes = torch.cat([p.grad.flatten().abs() for p in model.parameters()])
moved = torch.cat([m.flatten() for m in moved])[slopes > 0]
slopes = slopes[slopes > 0]
parts = torch.tensor([0.1, 0.5, 0.9], device=device())
for name, sizes in {"gradient": slopes, "movement": moved}.items():
    low, middle, high = sizes.quantile(parts).tolist()
    print(f"{name}: {low:.1e} for a tenth of the weights, median {middle:.1e}, {high:.1e}")

# %% [markdown]
# The gradients differ by powers of ten and the movements do not: a step with full confidence in the judgement of
# thirty-two reviews. **Warm-up** makes the first steps small. The rate rises in a straight line, here over 100 steps,
# and falls afterwards, here along half a cosine, so that the model comes to rest at the end. Transformers with the norm
# last hardly train without a warm-up (Xiong et al., 2020, section 3). With norm first it matters much less, as lesson 7
# said; most still use a short one, and a hundred careful steps out of thousands cost nothing.

# %% tags=["show"]
def rate(step, steps, peak=0.001, warmup=100):
    """The learning rate at a step: up in a line, then down along half a cosine."""
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))

# %% [markdown]
# ## Training
#
# Everything that the training needs is made in one cell, and used up in the next. The batches of all **epochs**, or
# passes through the data, stand ready in a list, and `losses` knows how many of them are done. So you may press
# **stop** (the square above the notebook) at any moment: the model keeps what it has learned, the curve what it has so
# far, every cell below works, and if you run the cell once more it goes on where it stopped. Try it.
#
# The optimiser is **AdamW**: Adam that also shrinks every weight a little at each step, by the learning rate times 0.1
# of its size. This **weight decay** (Loshchilov and Hutter, 2019) keeps weights from growing for the sake of a few
# reviews.

# %% tags=["show"]
torch.manual_seed(0)
model = new_classifier()
optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
epochs = 1 if in_exam() else 4
plan = [batch for k in range(epochs) for batch in batches_of(*learn_from, 32, seed=k)]
plan = plan[:4] if in_exam() else plan
losses, looks = [], []    # a loss for each step; now and then (step, share right)

# %% tags=["show"]
bar = ProgressBar(len(plan))
bar.display()
try:
    while len(losses) < len(plan):
        step = len(losses)
        for group in optimiser.param_groups:
            group["lr"] = rate(step, len(plan))
        losses.append(train_step(model, plan[step], optimiser))
        if (step + 1) % 100 == 0 or step + 1 == len(plan):
            looks.append((step + 1, accuracy(model, put_aside)))
            bar.progress = step + 1
    clear_output()
    print(f"{len(losses)} steps; of the reviews put aside {looks[-1][1]:.1%} are right.")
except KeyboardInterrupt:
    clear_output()
    print(f"Stopped after {len(losses)} of {len(plan)} steps. Model and curve are kept; "
          "run this cell again to go on.")

# %% tags=["show"] mystnb={"image": {"alt": "Two panels against the training step. Left, the loss of each batch, noisy, and its running mean: it falls from log 2 towards 0. Right, the share of right answers on the reviews put aside: for a few hundred steps it stays near the landmark bag of words, 58 per cent, then climbs steeply beyond 90 and slowly to nearly 100 per cent."}}
figure, axes = plt.subplots(1, 2, figsize=(6, 3.2))
plots.loss_curve(losses, landmarks={"log 2": math.log(2)}, smooth=min(25, len(losses) or 1),
                 title="loss on training batches", ax=axes[0])
landmarks = {"chance": 0.5, "bag of words": bag_share}
plots.curves({"": tuple(zip(*looks)) or ([], [])}, "step", "share of right answers",
             landmarks=landmarks, title="reviews put aside", ax=axes[1])
axes[1].set_ylim(0.4, 1.02)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: the pale line is the loss of each batch, the dark one its running mean. Right: the share of right answers on the thousand reviews put aside, every 100 steps; the dashed lines are what one reaches without reading. For the first few hundred steps the model is no better than the bag of words, since to weigh single words is the first thing to be learned. Then it
# finds out what *not* and *but* do, and the curve goes up steeply.
#
# </div>
#
# Now, once, the test reviews.

# %% tags=["show"]
def in_batches(texts, labels, size=250):
    """Batches in the order of the texts."""
    return [to_batch(texts[k:k + size], labels[k:k + size])
            for k in range(0, len(texts), size)]

test_share = accuracy(model, in_batches(test.texts, test.labels))
print(f"unseen reviews: {test_share:.1%} right; bag of words: {bag_share:.1%}")

# %% [markdown]
# ## Which ones are wrong
#
# One number hides whether a model is wrong about all kinds alike. The **confusion matrix** has a row for what a review is and a column for what it was taken for; what lies off its diagonal are the mistakes, of both kinds.

# %% tags=["show"] mystnb={"image": {"alt": "Two confusion matrices, two by two. Bag of words: all four cells are of similar size. Transformer: nearly all reviews lie on the diagonal, a few dozen or fewer off it, on both sides."}}
@torch.no_grad()
def probability_of_kind(texts, size=250):
    """For each text, what the model gives to the class kind: (number of texts,)."""
    model.eval()
    batches = in_batches(texts, [0] * len(texts), size)    # the labels do not matter here
    scores = [model(ids, mask) for ids, mask, _ in batches]
    return torch.cat(scores).softmax(dim=-1)[:, 1].cpu()

def confusion(guesses):
    truth = torch.tensor(test.labels)
    return torch.bincount(2 * truth + guesses, minlength=4).view(2, 2)

kindness = probability_of_kind(test.texts)
guesses = (kindness > 0.5).long()
labels = ["unkind", "kind"]
plots.heat_pair(confusion(bag_guesses), confusion(guesses), labels, same_scale=True,
                titles=("bag of words", "transformer"), digits=0,
                row_label="the review is", column_label="taken for")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Numbers of reviews, a thousand in each row. On the diagonal, from top left to bottom right, are
# right answers. The bag of words spreads its reviews over all cells. Compare the transformer's two numbers off the
# diagonal: a model that prefers neither verdict has about as many mistakes on one side as on the other.
#
# </div>
#
# And by what turns the verdict:

# %% tags=["show"]
def share_with(cue, answers):
    chosen = [right for text, right in zip(test.texts, answers) if cue in split_words(text)]
    return sum(chosen) / len(chosen), len(chosen)

bag_right = [int(g == label) for g, label in zip(bag_guesses, test.labels)]
our_right = [int(g == label) for g, label in zip(guesses, test.labels)]
shares = {}
for cue in "not hardly but although nobody less neither wrong still".split():
    shares[cue], count = share_with(cue, our_right)
    print(f"{cue:>8}: bag of words {share_with(cue, bag_right)[0]:.0%}, "
          f"transformer {shares[cue]:.0%} of {count} reviews")
print("weakest at:", ", ".join(sorted(shares, key=shares.get)[:2]))

# %% [markdown]
# The bag of words is at chance wherever something turns the verdict, since all its knowledge is of plain reviews. The
# last line names the two words at which the transformer is weakest in this run. Do not make much of their order: of 46
# reviews each is two per cent, and another training puts other words last. Its three surest mistakes:

# %% tags=["show"]
sure_and_wrong = sorted(zip(our_right, (kindness - 0.5).abs().tolist(), test.texts))
for right, distance, text in [row for row in sure_and_wrong if not row[0]][-3:]:
    print(textwrap.fill(f"wrong with {0.5 + distance:.0%}: {text}", 88))

# %% [markdown]
# ## Looking at *not*
#
# Somewhere in this model *not* must meet *dull*. The only place where two words can meet is an attention, so look at the attentions of the first block. `SelfAttention` computes its weights inside a fast function and does not hand them out; but its layers are those of lesson 4, and a few lines recompute the weights.

# %% tags=["show"] mystnb={"image": {"alt": "Four heat maps, one for each head of the first block, over the words of the review: the plot is dull, but the cast is not weak. In each, a few columns are dark from top to bottom, and the others are pale."}}
@torch.no_grad()
def attention_in(text):
    """The words of a text, and the weights of every block: a list of (h, t, t)."""
    ids, mask, _ = to_batch([text], [0])
    x = model.positions(model.tokens(ids))
    kept = []
    for block in model.transformer.blocks:
        layer, inside = block.attention, block.norm1(x)
        q = split_heads(layer.to_queries(inside), layer.h)    # (b, h, t, d)
        k = split_heads(layer.to_keys(inside), layer.h)
        kept.append(torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)[0].cpu())
        x = block(x, mask.unsqueeze(1))
    return split_words(text), kept

review = "The plot is dull, but the cast is not weak."
words, kept = attention_in(review)
plots.head_grid(kept[0], words, across=2, row_label="who looks", column_label="at whom")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One map for each head of the first block. A row is a word that looks, a column a word that is looked at; darker is more, rows add up to 1. A column that is dark from top to bottom is a word from which nearly all others take; look which words these are, and which are hardly looked at by anybody.
#
# </div>
#
# It is tempting to read an explanation into such maps. They show what a word *takes from*, not what becomes of it: values, other heads, the network and the shortcut all have a say, and quite different weights can lead to the same verdict (Jain and Wallace, 2019). A firmer question is what happens **without** a word. The mask can hide any word of a review from the model:

# %% tags=["show"] mystnb={"image": {"alt": "Two panels of horizontal bars, one bar for each word of a review: the score of kind minus that of unkind when that word is hidden. Left, where not comes after but, nearly all bars point to kind, the one for not to unkind. Right, where not comes before but, nearly all bars point to unkind."}}
@torch.no_grad()
def without_each_word(text):
    """Score of kind minus unkind: with nothing hidden, then with each word: (1 + t,)."""
    ids, mask, _ = to_batch([text], [0])
    t = ids.shape[1]
    hidden = torch.cat([mask, mask & ~torch.eye(t, dtype=torch.bool, device=mask.device)])
    scores = model.eval()(ids.expand(t + 1, t), hidden)    # (1 + t, c)
    return (scores[:, 1] - scores[:, 0]).cpu()

pair = {"not after but": review,
        "not before but": "The plot is not dull, but the cast is weak."}
figure, axes = plt.subplots(1, 2, figsize=(6, 3.9), sharex=True)
for ax, (title, text) in zip(axes, pair.items()):
    names = ["(nothing)", *split_words(text)]
    ax.barh(range(len(names)), without_each_word(text), color=plots.COLOURS[0], height=0.7)
    ax.set_yticks(range(len(names)), labels=names)
    ax.axvline(0, color="#444444", linewidth=1, linestyle="-")
    ax.set(xlabel="score of kind − unkind", title=title)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
axes[0].set_ylabel("word that is hidden")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: *The plot is dull, but the cast is not weak.* Right: *The plot is not dull, but the cast is weak.* Each bar is the score of *kind* minus that of *unkind* if the word beside it is hidden from the model; the first bar hides nothing. To the right of the line the verdict is kind, to the left unkind.
#
# </div>
#
# The same word, hidden in two reviews. Look at the bar of *not* in each. After *but* the verdict hangs on this word:
# without it the reviewer has praised nothing, and the bar should point the other way. Before *but* it should make no
# difference to the verdict, for what stands there has been conceded. No weight for *not*, whatever its size, could do
# both.

# %% [markdown]
# ## The same words, shuffled
#
# If the model has learned to read, it must fail when there is nothing to read. Exchange two words of a review, at random, then two more, and so on. To the bag of words nothing happens at all. To the transformer:

# %% tags=["show"] mystnb={"image": {"alt": "Against the number of exchanged pairs, from 0 to 32, two falling curves: the share of right answers, from nearly 1 down to about six tenths, and the mean probability of the right verdict, a little below it. Dashed lines mark chance at one half and the bag of words at 0.58."}}
def shaken(text, exchanges, chance):
    words = split_words(text)
    for _ in range(exchanges):
        i, j = chance.sample(range(len(words)), 2)
        words[i], words[j] = words[j], words[i]
    return " ".join(words)

chance, truth = random.Random(0), torch.tensor(test.labels)
exchanges = [0, 1, 2, 4, 8, 16, 32]
right, sure = [], []
for count in exchanges:
    kindness = probability_of_kind([shaken(text, count, chance) for text in test.texts])
    given = torch.where(truth == 1, kindness, 1 - kindness)
    right.append((given > 0.5).double().mean().item())
    sure.append(given.mean().item())

lines = {"share of right answers": (range(7), right),
         "mean probability of the right verdict": (range(7), sure)}
landmarks = {"chance": 0.5, "bag of words": bag_share}
plots.curves(lines, "exchanged pairs", "share, probability", landmarks=landmarks)
plt.xticks(range(7), exchanges)
plt.ylim(0.4, 1.02)
plt.show()
print(f"{right[0]:.1%} right in order, {right[-1]:.1%} after 32 exchanges")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** To the right, more and more pairs of words have changed places (the steps double). One exchange often spares the words that matter. After 32, a review of twenty words is thoroughly mixed, and the model is back where counting words had been.
#
# </div>
#
# What the model knows beyond the bag of words, it has from the order of the words. Does it notice when that is gone? A judge who knows that they are guessing would give probabilities near one half. This one:

# %% tags=["show"]
kindness = probability_of_kind([shaken(text, 32, chance) for text in test.texts])
certain = ((kindness < 0.1) | (kindness > 0.9)).float().mean().item()
print(f"shuffled: sure to nine tenths or more about {certain:.0%} of the reviews")
for seed in range(4):
    text = shaken(review, 32, random.Random(seed))
    print(f"{probability_of_kind([text])[0]:.2f}", text)

# %% [markdown]
# Nobody has taught it to doubt. It has seen sentences in training and nothing else, and makes a confident verdict of word salad.

# %% [markdown]
# ## Spot the bug
#
# Code like the function below is in circulation. After each epoch it reports two numbers for the test data. It is run
# here on 256 reviews only, so that it is bound to overfit, and what it gets as `test` is one batch of the reviews put
# aside: 250 reviews of like length. Something is wrong with one of the numbers. Which, and why does nothing raise?

# %% tags=["show"]
def learn_and_report(model, learn, test, epochs):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.002)
    for _ in range(epochs):
        model.train()
        for ids, mask, labels in learn:
            optimiser.zero_grad()
            loss = F.cross_entropy(model(ids, mask), labels)
            loss.backward()
            optimiser.step()
        model.eval()
        right, total = 0, 0
        with torch.no_grad():
            for ids, mask, labels in test:
                guesses = model(ids, mask).argmax(dim=-1)
                right += (guesses == labels).sum().item()
                total += len(labels)
        yield right / total, loss.item()    # on the test data: share of right answers, loss

torch.manual_seed(0)
few = in_batches(train.texts[1000:1256], train.labels[1000:1256], 64)
epochs = 2 if in_exam() else 45
reports = learn_and_report(new_classifier(), few, put_aside[:1], epochs)
for k, (share, loss) in enumerate(reports, start=1):
    if k % 15 == 0:
        print(f"epoch {k}: {share:.0%} of the test reviews right, test loss {loss:.4f}")

# %% [markdown]
# <details><summary>The answer, once you have one</summary>
#
# The second number is the loss of the last *training* batch. The loop over the test data never computes a loss; `loss`
# is still there from the loop before, because a Python name outlives the block in which it was given. So the "test
# loss" falls towards 0 while the model learns 256 reviews by heart. The two columns give it away. A wrong answer costs
# at least log 2, so the loss on the test data is at least log 2 times the share of wrong answers. Work that out for the
# last line, and hold the printed loss against it. When two numbers on the same data contradict each other, one of them
# is about something else.
#
# </details>
#
# ## Real reviews
#
# Now IMDb: 25,000 reviews to train on, 25,000 to test. That takes a quarter of an hour, so the run was made once and **recorded**. The model is this lesson's `Classifier`, with a few additions. The cells
# show what the record holds; the command, which is the first line, repeats the run on your own machine.

# %% tags=["show"]
run = recorded("imdb")
settings, result, data = run["settings"], run["result"], run["data"]
print(run["command"])
print(f"{run['seconds'] / 60:.1f} minutes on {run['machine']} "
      f"({run['processor_seconds'] / 60:.1f} minutes of processor time)")
print(f"e = {settings['e']}, {settings['depth']} blocks of {settings['h']} heads, "
      f"{settings['n']:,} words, {settings['parameters']:,} parameters")
print(f"trained on {data['trained_on']:,} reviews, {settings['epochs']} times; "
      f"{data['looked_at']:,} put aside; tested on {data['tested_on']:,}")
print(f"longest text {settings['t_max']} words, dropout {settings['dropout']}, "
      f"word dropout {settings['word_dropout']}, {settings['optimiser']}")
print(f"transformer: {run['curve'][-1]['accuracy']:.1%} of the reviews put aside, "
      f"{result['test_accuracy']:.1%} of the test reviews")
print(f"bag of words: {result['bag_of_words_accuracy']:.1%} of the test reviews")

# %% tags=["show"] mystnb={"image": {"alt": "The recorded run: share of right answers on the IMDb reviews put aside, against the training step. Already at the first look it is near the dashed line of the bag of words, at 88 per cent, and from the second look on it is level, at the line or just above it. A square at the right end marks the test reviews: 86 per cent, below the line."}}
steps = [look["step"] for look in run["curve"]]
shares = [look["accuracy"] for look in run["curve"]]
figure, ax = plt.subplots(figsize=(6, 3.2))
labels = ("step", "share of right answers")
plots.curves({"": (steps, shares)}, *labels, landmarks={"chance": 0.5}, ax=ax)
bag_of_words = result["bag_of_words_accuracy"]
ax.axhline(bag_of_words, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
ax.text(steps[0], bag_of_words - 0.02, "bag of words, test reviews", va="top", fontsize=8.5)
tested = result["test_accuracy"]
ax.plot(steps[-1], tested, "s", color=plots.COLOURS[1])
ax.text(steps[-1], tested - 0.02, "transformer, test reviews", fontsize=8.5,
        ha="right", va="top")
ax.set_ylim(0.45, 1)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Each round point is a look at the tenth of the training reviews that was put aside. The dashed
# lines are chance and the result of a bag of words on the test reviews: a logistic regression on the same words, each
# weighted by how rare it is (tf-idf). The square is the transformer's result on the test reviews; this is the one to
# compare with the line.
#
# </div>
#
# Three things are to be read here. **The bag of words wins**, and it is trained in seconds. On the generated reviews there are forty points between counting and reading; on IMDb, counting is right about most reviews. In two hundred words of complaint there are many that only complainers use, and one *not* changes little. A transformer that starts from nothing has to find
# out with the same 25,000 reviews what the words mean, and how words make sentences.
#
# **It learns by heart.** After its first epoch the curve is level, while the loss on the training batches goes on
# falling (it is in the record, `run["curve"]`). Data are what is missing, not steps.
#
# **The reviews put aside flatter.** They were not trained on, but they speak of the same films as those that were, with the same actors and titles. The films of the test part occur in no training review. What you put aside should differ from what you train on as much as the future will.
#
# None of this is peculiar to so small a model. An introduction of 2019 reports about 85 % for six blocks and texts of
# up to 512 words (Bloem, 2019), and counts of single words and *pairs* of words, well weighted, had reached 91 % years
# before (Wang and Manning, 2012). A transformer leaves them behind when it has read a great deal before it sees the
# first review. That is called pretraining.
#
# What was used to get this much out of the time, and why:
#
# - **Long texts lose their middle.** Of a review that is too long, the beginning and a larger piece of the end are kept; reviewers conclude at the end.
# - **Batches hold about as many words each**, not as many texts. Texts of like length go together, as in this lesson.
# - **Dropout, and word dropout.** 25,000 texts are few for millions of parameters. In training, one word in ten is replaced by `<unk>`, so that no single one can decide.
# - **Muon and AdamW.** The matrices of the blocks are trained by an optimiser that needs fewer steps than Adam does (Jordan et al., 2024), everything else by AdamW. Warm-up, then half a cosine, as above.
# - **bfloat16** for the matrix products, where the processor multiplies faster in it. That is tried at the start.
#
# Six short reviews out of the test part: the first three that it got right, and the first three that it got wrong. All six are unkind, since the file begins with those.

# %% tags=["show"]
for sample in run["samples"]:
    truth = "kind" if sample["label"] else "unkind"
    print(f"{truth}, judged kind with {sample['chance_of_kind']:.0%}:")
    text = " ".join(sample["text"].replace("<br />", " ").split())
    print(textwrap.fill(text, 88, max_lines=4), end="\n\n")

# %% [markdown]
# ## What you can do now
#
# You can turn texts into ids that will be the same tomorrow; keep padding out of the attention and out of the mean; put embeddings, positions, blocks and a linear layer together into a model that decides; train it so that it may be stopped, and tell a broken training from a slow one by a single batch; measure it in a way that others can believe; and say what it owes
# to the order of the words.
#
# **Three questions to think about**
#
# <details><summary>1. Leave the positions out of the classifier. What is left of its accuracy, and why not merely the bag of words' 58 %?</summary>
#
# Without positions the model sees a set of words, with their counts, and every shuffled review looks to it like the original. So it can do no better than the best judge of shuffled reviews. That may be more than the logistic regression reaches, which adds up one weight for each word: attention can notice that *not* and *only* occur **together**, a bag with weights cannot. But *but* between *dull* and
# *great* helps neither of them.
#
# </details>
# <details><summary>2. Why is the loss on the first batch near log 2, and what would it be for ten classes?</summary>
#
# With small tables and fresh layers all scores are close to 0, the softmax gives each of c classes about 1/c, and minus the logarithm of that is log c: 0.69 for two classes, 2.30 for ten. A first loss far above log c means that the model is sure before it has learned anything.
#
# </details>
# <details><summary>3. You try twenty settings and report the one that does best on the test reviews. What is wrong with its number?</summary>
#
# It was chosen for being high. Some of the twenty are lucky on these 2,000 reviews: for a true share of 95 %, the standard error is about half a point, so that the best of twenty equally good ones will look a point better than it is. Choose by reviews put aside, and ask the test reviews once.
#
# </details>
#
# **Where it goes next.** The classifier read a text and said one thing about it. In lesson 9, *A character generator*, the same blocks say something after every character: what comes next. With a causal mask, and a great deal more to predict.
#
# **Further reading.** A. Maas et al., "Learning word vectors for sentiment analysis", *ACL* 2011, for the data. B.
# Pang, L. Lee and S. Vaithyanathan, "Thumbs up? Sentiment classification using machine learning techniques", *EMNLP*
# 2002, whose last section describes reviews that raise expectations and then deny them. S. Wang and C. Manning,
# "Baselines and bigrams: simple, good sentiment and topic classification", *ACL* 2012. P. Bloem, "Transformers from
# scratch", 2019. A. Karpathy, "A recipe for training neural networks", 2019, for the order of things: look at the data,
# a simple model first, overfit one batch. A. Vaswani et al., "Attention is all you need", *NeurIPS* 2017, section 5.3,
# for the transformer's warm-up; R. Xiong et al., "On layer normalization in the transformer architecture", *ICML* 2020,
# for who needs it; L. Liu et al., "On the variance of the adaptive learning rate and beyond", *ICLR* 2020, for why Adam
# wants one. I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", *ICLR* 2019, for AdamW. S. Jain and
# B. Wallace, "Attention is not explanation", *NAACL* 2019, and S. Wiegreffe and Y. Pinter, "Attention is not not
# explanation", *EMNLP* 2019, which answers it. K. Jordan et al., "Muon: an optimizer for hidden layers in neural
# networks", 2024.
