# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Dot-product attention
#
# [Lesson 1](../01_dot_product_attention/01_dot_product_attention.ipynb) mentions four things that it does not show: the
# price of a sharper choice, the word *apple*, the features found by the ratings, and the score of a wrong softmax. The
# last two give exercises 6 and 5 away.

# %%
from itertools import combinations
from statistics import fmean

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.meanings import PHRASES, all_words, vectors_of
from helpers.data.recorded import recorded
from helpers.data.topics import CLAUSES, NOUNS, joined
from helpers.data.topics import vectors_of as topic_vectors
from helpers.data.toy.films import film_ratings
from helpers.data.vectors import word_vectors
from helpers.ladder import BareAttention, ByteModel, measured
from helpers.parts.attention import attention
from helpers.rungs import RUNGS

plots.use_course_style()


def self_attention(x):
    """As in lesson 1. x: (b, t, e). Returns (b, t, e)."""
    return attention(x, x, x)


# %% [markdown]
# ## Longer vectors choose more sharply, and keep more of their own weight
#
# The lesson scales its vectors to length 2. Which word gets the most weight does not depend on the length; how much it
# gets does.

# %%
print("length   own side, of 396   weight kept   largest weight to own topic")
for length in (1.5, 2, 2.5, 3):
    own_side, to_own, kept = 0, 0, []
    for names in combinations(CLAUSES, 2):
        words, ends = joined(*names), topic_vectors(names)  # (2, e)
        x = topic_vectors(words)  # (t, e), of length 2
        weights = torch.softmax((length / 2) ** 2 * x @ x.T, dim=-1)
        others = weights * (1 - torch.eye(len(words)))
        scores = others @ x @ ends.T  # (t, 2)
        for k, name in enumerate(names):
            for place in map(words.index, NOUNS[name]):
                own_side += (scores[place, k] > scores[place, 1 - k]).item()
                to_own += words[others[place].argmax()] in NOUNS[name]
                kept.append(weights[place, place].item())
    print(f"{length:>6}{own_side:>19}{fmean(kept):>14.2f}{to_own:>30}")

# %% [markdown]
# **How to read it.** *Own side*: what the other words give is more similar to the noun's own topic than to the other.
# With equal weights it is 96 of 396. Of the twelve largest weights that go elsewhere, eleven are those of *software*.
#
# We wrote the sentences and chose the measure after others in which dot products gained little. With an unrelated
# clause or unrelated words after the phrases of *apple*, they put only a few more of a hundred on the right side than
# equal weights. And in other sentences with two topics, a word's whole output was most similar to the name of its
# topic, out of twelve, about as often as with half of the weight on the word.

# %% [markdown]
# ## For *apple*, half of the weight on itself does as well
#
# *Apple* is a fruit in eight short phrases and a company in eight others. Any average moves it to the side of its
# phrase, and a large weight on itself keeps it *apple*. Dot products are not needed for either.

# %%
everything, ends = vectors_of(all_words()), vectors_of(["fruit", "microsoft"])  # (n, e), (2, e)
names = "no attention", "equal weights", "half on apple", "self-attention"
counts = torch.zeros(4, 2, dtype=torch.int64)
for k, phrases in enumerate(PHRASES.values()):  # fruit, company
    for words in map(str.split, phrases):
        x, place = vectors_of(words), words.index("apple")
        others = torch.cat([x[:place], x[place + 1 :]]).mean(dim=0)
        outputs = x[place], x.mean(dim=0), (x[place] + others) / 2, self_attention(x[None])[0, place]
        for row, y in enumerate(outputs):  # y: (e,)
            nearest = all_words()[(everything @ y).argmax()]
            counts[row] += torch.tensor([(ends @ y).argmax() == k, nearest == "apple"])

print("of 16 phrases:   on the right side   still nearest to apple")
for name, (side, itself) in zip(names, counts.tolist(), strict=True):
    print(f"{name:<14}{side:>15}{itself:>22}")

# %% [markdown]
# **How to read it.** On the right side, *apple* has a larger score with *fruit* than with *microsoft*, or the reverse.
# *Nearest* is the word with the largest score, of all words in the phrases. The vectors have length 1.5.
#
# *Apple* was chosen for this: we tried about a dozen words with two meanings, among them *bank*, *python*, *bass* and
# *mouse*, and took the one whose phrases were told apart most clearly. With *bank* and with *python* some outputs stay
# on the wrong side. One phrase of the sixteen was exchanged, since a word of it has no vector. And the vectors have the
# mean of all words taken off and one length; as they come, fifteen of the sixteen phrases are told apart.

# %% [markdown]
# ## Ratings alone give back both features of the films
#
# The lesson learns a vector for every viewer and every film from some of the ratings. Rotate all of these vectors by the
# same angle, and no dot product changes, so training does not fix the axes. A singular value decomposition (SVD) of the
# predictions does. Its two axes are the features that made the ratings, though no rating names them.

# %% mystnb={"image": {"alt": "Scatter plot of the films along the first two axes of the SVD. Romances are on one side, action films on the other; light films and serious ones separate in the other direction."}}
known, generator = film_ratings(), torch.Generator().manual_seed(0)
users, films = (0.1 * torch.randn(count, 2, generator=generator) for count in known.ratings.shape)
optimiser = torch.optim.Adam([users.requires_grad_(), films.requires_grad_()], lr=0.02)
for _ in range(300):
    loss = F.mse_loss((users @ films.T)[known.seen], known.ratings[known.seen])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

_, spread, directions = torch.linalg.svd((users @ films.T).detach(), full_matrices=False)
plots.plane(
    directions[:2].T * spread[:2] / len(users) ** 0.5,
    known.names,
    labels=("first axis of the SVD", "second axis of the SVD"),
    title="Ratings alone separate romance from action, and serious from light",
)
plt.show()

# %% [markdown]
# **How to read it.** Each point is a film. Romances are on the left, action films on the right, light films at the top,
# serious ones at the bottom.

# %% [markdown]
# ## An axis of the SVD is a feature only in some data
#
# That takes two things: viewers differ more about one feature than about the other, and the features are uncorrelated
# over the films. Take either away, and both axes are mixtures of both features.


# %%
def correlations(tastes, features):
    """How the two axes of the SVD correlate with the features. tastes: (users, 2). features: (films, 2)."""
    axes = torch.linalg.svd(tastes @ features.T, full_matrices=False).Vh[:2]  # (2, films)
    return torch.corrcoef(torch.cat([axes, features.T]))[:2, 2:].abs()  # (axes, features)


features = film_ratings().features
tastes = torch.from_numpy(np.random.RandomState(0).standard_normal((200, 2))).float()
unequal = tastes * torch.tensor([1.6, 1.1])  # as in the lesson: viewers differ more about romance
correlated = features.clone()
correlated[:, 1] += features[:, 0]

print("correlation, without sign, with    romance   light")
for name, who, what in (
    ("as in the lesson", unequal, features),
    ("equally different tastes", tastes, features),
    ("correlated features", unequal, correlated),
):
    for axis, row in zip(("first", "second"), correlations(who, what).tolist(), strict=True):
        print(f"{name:<26}{axis:>7}{row[0]:>9.2f}{row[1]:>8.2f}")

# %% [markdown]
# **How to read it.** Each line is an axis, each column a feature; 1 means that the axis is this feature up to its
# scale. Here the table of ratings is complete and has no noise, so nothing else can be the cause.

# %% [markdown]
# ## *set* in two phrases of the manual
#
# In Python's manual *set* is a verb and the name of a type. Self-attention moves it towards its phrase, but only a
# little: one of the four words nearest to it changes.

# %%
vocabulary, vectors = word_vectors()


def best(vector):
    matches = vectors @ vector  # one for each word of the vocabulary
    return ", ".join(vocabulary[i] for i in matches.topk(4).indices.tolist())


phrases = (
    "to get, set, or delete the attribute from an object's dictionary",
    "instances of set or frozenset can be compared within and across their types",
)
for phrase in phrases:
    words = phrase.replace(",", "").split()
    inputs = vectors[[vocabulary.index(word) for word in words]]  # (t, e)
    place = words.index("set")
    print(f"{phrase}\n  in:      {best(inputs[place])}")
    print(f"  out:     {best(self_attention(inputs[None])[0, place])}")
    print(f"  average: {best(inputs.mean(dim=0))}")
    largest = torch.softmax(inputs @ inputs[place], dim=0).topk(3)
    print("  weights:", ", ".join(f"{words[i]} {weight:.2f}" for weight, i in zip(*largest, strict=True)))

# %% [markdown]
# **How to read it.** The words listed score highest with the input of *set* (`in`), with its output (`out`) and with
# the `average` of all inputs; then come the three largest weights. In the first phrase *delete* replaces *frozenset*,
# in the second *instances* replaces *get*. Half of the weight stays on *set*, which scores highest with both outputs;
# with the plain average of the second phrase it is not even among the first four.

# %% [markdown]
# ## A softmax over the wrong axis trains, and its score hardly shows it
#
# The function of exercise 5 as it is given has its softmax over the columns. In the small language model of the lesson
# it costs only 0.05 bits per byte. Read alone, that looks like a weak model, not like a bug.


# %%
def softmax_of_columns(scores):
    return torch.softmax(scores, dim=1)


lesson = "01_dot_product_attention"
torch.manual_seed(0)
wrong, _ = measured(ByteModel(BareAttention(softmax_of_columns)), RUNGS[lesson].steps)
right = recorded("ladder")["result"]["bits"][lesson]
print(f"softmax over the columns, one run: {wrong:.2f} bits per byte")
print(f"softmax over the rows, three runs: {min(right):.2f} to {max(right):.2f}")

# %% [markdown]
# **How to read it.** Both models are the first rung of *Your model so far*, trained alike and measured on the same
# held-out text. A model without any attention scores 3.53 as well, so at this rung attention has little to lose: a
# score that hides a bug may also be a score to which the buggy part contributes nothing.
