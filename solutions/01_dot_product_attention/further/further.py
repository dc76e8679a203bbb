# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Dot-product attention
#
# [Lesson 1](../01_dot_product_attention/01_dot_product_attention.ipynb) mentions four things that it does not show: the
# features found by the ratings, the word *set*, the choice of *apple*, and the score of a wrong softmax. The first and
# the last give exercises 6 and 5 away.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.recorded import recorded
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
# ## *apple* is the clearest of a dozen words
#
# The lesson's sixteen phrases show attention at its best, because their word was chosen for it. We tried about a dozen
# words with two meanings, among them *bank*, *python*, *bass* and *mouse*, and took the one whose phrases were told
# apart most clearly. With *bank* and with *python* some outputs stay on the wrong side. One phrase of the sixteen was
# exchanged, since a word of it has no vector. And the vectors have the mean of all words taken off and one length; as
# they come, fifteen of the sixteen phrases are told apart.

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
