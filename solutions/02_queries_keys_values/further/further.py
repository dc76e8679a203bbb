# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Queries, keys, values
#
# Eight measurements that [lesson 2](../02_queries_keys_values/02_queries_keys_values.ipynb) does not show. The first two
# test why its task takes two matrices.

# %%
import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.toy.phrases import ASKS, known_words, phrases
from helpers.data.vectors import word_vectors
from helpers.parts.attention import SingleHeadAttention, attention

plots.use_course_style()

vocabulary, vectors = word_vectors()  # (n, e) with e = 40


def embed(words):
    return vectors[[vocabulary.index(word) for word in words]]


def weights_of(q, k):
    """The weights that attention gives: q (b, t, d), k (b, s, d) -> (b, t, s)."""
    b, s, _ = k.shape
    return attention(q, k, torch.eye(s).expand(b, s, s))


# %% [markdown]
# The phrases are those of the lesson: article, adjective, noun and verb, each drawn from a short list. The output at
# each position should be a vector of the word that this position asks for. Unlike the lesson, this `train` can also
# learn the values, give one matrix the signs with which it makes keys, and ask other questions.


# %%
def train(answers=vectors, asks=ASKS, signs=None, learn_values=False, d=2, seed=0):
    """Returns w_q, w_k (e, d) and the losses of 300 steps.

    answers: (n, e), the vector that is right for each word. asks: the position that each of the four asks for.
    signs: (d,), keys are queries times signs; None: w_k makes them.
    """
    generator = torch.Generator().manual_seed(seed)
    w_q, w_k = [(0.1 * torch.randn(40, d, generator=generator)).requires_grad_() for _ in range(2)]
    w_v = torch.eye(40).requires_grad_(learn_values)
    learned = [w_q] + [w_k] * (signs is None) + [w_v] * learn_values
    optimiser = torch.optim.Adam(learned, lr=0.05)
    losses = []
    for _ in range(300):
        ids = phrases(vocabulary, 64, generator)  # (64, 4)
        x = vectors[ids]
        q = x @ w_q
        k = x @ w_k if signs is None else q * signs
        loss = (attention(q, k, x @ w_v) - answers[ids[:, asks]]).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return w_q.detach(), w_k.detach(), losses


def last_losses(**options):
    """The last loss of three runs, as text."""
    return ", ".join(f"{train(seed=seed, **options)[-1][-1]:.3f}" for seed in range(3))


# %% [markdown]
# ## The obstacle is mutual preference, not the number of parameters
#
# With one matrix for both roles the phrases cannot be learned, because a noun and its verb cannot prefer each other. If
# this is the cause, the same matrix should be enough as soon as it lets them. Flip the sign of the second component of
# every key: a word with the query (0, 1) then has the key (0, −1), and it scores −1 with itself. The number of
# parameters stays the same.

# %% mystnb={"image": {"alt": "Two loss curves over 300 steps. With one matrix the loss falls at first and then stays above 1. With one matrix and the sign flipped it falls close to zero."}}
same, flipped = torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0])
ways = {"one matrix": same, "one matrix, sign flipped": flipped}
for name, signs in ways.items():
    print(f"last losses with {name}: {last_losses(signs=signs)}")
plots.loss_curve(
    {name: train(signs=signs)[-1] for name, signs in ways.items()},
    ylabel="squared distance to the word asked for",
    title="A flipped sign lets one matrix learn the task",
)
plt.show()

# %% [markdown]
# **How to read it.** Lower is better. Each curve is the first of three runs, whose last losses are printed. Only the
# flipped sign differs, and it is enough.

# %% [markdown]
# ## Two matrices can do what one matrix with flipped signs cannot
#
# Whatever signs the keys get, the scores of one matrix $W$ stay symmetric:
#
# $$M = W \operatorname{diag}(\pm 1, \dots, \pm 1)\, W^\top .$$
#
# So one matrix cannot learn questions that run in a circle: the article asks for the adjective, the adjective for the
# noun, the noun for the verb, and the verb for the article. Each word would have to score higher with the next word
# than with the word before it. With symmetric scores, these are the scores of two neighbouring steps of the circle. So
# each step would need a higher score than the step before, all the way round. Two matrices have no such limit.

# %%
circle = [1, 2, 3, 0]
signs_of = {2: [1, -1], 8: [1, 1, 1, 1, -1, -1, -1, -1]}
for d, signs in signs_of.items():
    print(f"d = {d}, one matrix, half of the signs flipped: {last_losses(asks=circle, d=d, signs=torch.tensor(signs))}")
for d in (2, 4):
    print(f"d = {d}, two matrices: {last_losses(asks=circle, d=d)}")

# %% [markdown]
# **How to read it.** The last losses of three runs each. One matrix ends above 1, with wide queries and keys too. Two
# matrices learn the task, with d = 4 almost perfectly.

# %% [markdown]
# ## Values have to be learned where the answer is not the word itself
#
# In the lesson the right answer is the vector of the word asked for, so the values can be the word vectors. Now give
# every word a second, random vector: its translation into an invented language. Where the answer is the translation, a
# mixture of the four vectors of the phrase cannot come near it, and the values have to be learned.

# %%
generator = torch.Generator().manual_seed(7)
translations = 2 * nn.functional.normalize(torch.randn(len(vocabulary), 40, generator=generator), dim=1)

print(f"{'the answer is the word asked for':>34}   values fixed: {last_losses()}")
print(f"{'':>34} values learned: {last_losses(learn_values=True)}")
print(f"{'the answer is its translation':>34}   values fixed: {last_losses(answers=translations)}")
print(f"{'':>34} values learned: {last_losses(answers=translations, learn_values=True)}")

# %% [markdown]
# **How to read it.** The last losses of three runs each. With fixed values the translations are out of reach: the loss
# is above 4, which outputs of zeros would have. Learned values bring it almost to 0, because only 30 words are ever
# asked for, and the 40 × 40 numbers of $W_v$ can memorise their translations. Where the word's own vector is the
# answer, learning the values only makes the loss a little higher.

# %% [markdown]
# ## Raw scores lose their symmetry
#
# The products of word vectors are symmetric. The scores of trained queries and keys are not: the article scores high
# with the noun, but the noun does not score high with the article.

# %% mystnb={"image": {"alt": "Two heat maps of raw scores for the phrase every empty list contains. Left, the products of the word vectors: symmetric, with 4 on the diagonal. Right, query times key: not symmetric; the largest entry of each row: every to list, empty to list, list to contains, contains to list."}}
w_q, w_k, _ = train()
words = "every empty list contains".split()
x = embed(words).unsqueeze(0)  # (1, 4, e)
plots.heat_pair(
    (x @ x.mT)[0],
    (x @ w_q @ (x @ w_k).mT)[0],
    rows=words,
    titles=("$x_i\\cdot x_j$: symmetric", "$q_i\\cdot k_j$: not symmetric"),
)
plt.show()

# %% [markdown]
# **How to read it.** Rows are the words that look, columns the words looked at. Each side has its own colour scale.
# Softmax over the rows of the right map gives this phrase's weights.

# %% [markdown]
# ## A word has one place as a query and another as a key
#
# With d = 2, queries and keys can be drawn. Here are those of all words that the phrases use, in the first run.

# %%
kinds = known_words(vocabulary)
every_word = [word for members in kinds.values() for word in members]
groups = [kind for kind, members in kinds.items() for word in members]

every_x = embed(every_word)
queries_of, keys_of = [every_x @ w for w in (w_q, w_k)]    # (words, 2)
planes = {"Queries: two groups": queries_of, "Keys: three groups": keys_of}

asking = queries_of[[every_word.index("empty"), every_word.index("list")]]
arrows = 6 * nn.functional.normalize(asking, dim=1)                # (2, 2)

# %% mystnb={"image": {"alt": "Two scatter plots of the same words, by kind, on one scale. Left, queries, titled two groups: nouns are to the left, all other kinds at the bottom right, largely on top of one another. Right, keys, titled three groups: nouns are to the right, near the horizontal axis or below it, verbs at the upper left, articles and adjectives above the middle. Both arrows are equally long; that of empty points down, that of list to the left and a little down. Among the keys, the line at a right angle to the arrow of empty has nearly all nouns on the arrow's side; the line for list has the verbs there."}}
figure, axes = plt.subplots(1, 2, figsize=(6, 3.8), sharex=True, sharey=True)
shafts = torch.cat([step / 12 * arrows for step in range(12)])    # for labels to avoid
named = [every_word.index(word) for word in words]
for ax, (title, points) in zip(axes, planes.items()):
    plots.plane(points, groups=groups, title=title, ax=ax)
    ax.get_legend().remove()
    ax.set_box_aspect(1)
    ax.set(xlim=(-7.5, 7.5), ylim=(-7.5, 7.5))
    for arrow, line in zip(arrows.tolist(), ["-", "--"]):
        ax.annotate("", arrow, (0, 0), arrowprops={"arrowstyle": "->", "linestyle": line})
        if points is keys_of:
            ax.axline((0, 0), (-arrow[1], arrow[0]), color="grey", lw=1, ls=line)
    plots.label_points(ax, points[named], words, avoid=torch.cat([points, shafts]))
axes[1].set_ylabel("")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()

# %% [markdown]
# **How to read it.** The arrows are the directions of the queries of *empty* (solid) and *list* (dashed). Each grey
# line is at a right angle to its arrow. Keys on the arrow's side have positive scores, which grow with the distance
# from the line. For *empty* the nouns score highest, for *list* the verbs. The queries form two groups, one for each
# question. The keys form three: nouns, verbs, and the words that no query asks for.

# %% [markdown]
# ## The words of one phrase can ask those of another
#
# Queries and keys need not come from the same sequence. Here the words of one phrase look at the words of another, with
# the matrices that were trained within phrases. They find what they ask for.

# %% mystnb={"image": {"alt": "A heat map with three rows and four columns. Rows: this, generator, fails. Columns: every, nested, loop, succeeds. All the weight of this and of fails is on loop, all that of generator on succeeds."}}
torch.manual_seed(0)
head = SingleHeadAttention(40, 2)
with torch.no_grad():
    head.to_queries.weight.copy_(w_q.T)  # nn.Linear from e to d stores its weight as (d, e)
    head.to_keys.weight.copy_(w_k.T)

asking, asked = "this generator fails".split(), "every nested loop succeeds".split()
x, context = embed(asking).unsqueeze(0), embed(asked).unsqueeze(0)
_, ax = plt.subplots(figsize=(4.6, 3.4))
plots.heat(weights_of(head.to_queries(x), head.to_keys(context))[0].detach(), asking, asked, ax=ax)
plt.show()

# %% [markdown]
# **How to read it.** The t = 3 rows are the words that ask, the s = 4 columns the words that are asked. *this* and
# *fails* give the most weight to the noun, *loop*; *generator* gives it to the verb, *succeeds*.

# %% [markdown]
# ## The order of the context makes no difference
#
# The sum over the context does not depend on the order of its terms: keys and values move together. So shuffling the
# words that are asked changes no output.

# %%
with torch.no_grad():
    outputs, again = head(x, context), head(x, context[:, [2, 0, 3, 1]])
print(f"largest change of an output: {(outputs - again).abs().max().item():.1g}")
print(f"largest difference between two outputs: {(outputs[0, 0] - outputs[0, 1]).abs().max().item():.1g}")

# %% [markdown]
# **How to read it.** The change is a rounding error. The second number says that the outputs do differ among
# themselves, so a change of their order would have shown.

# %% [markdown]
# ## The length of a query acts like β
#
# A query that is twice as long doubles every score. The ratio of any two weights is then squared, as at β = 2.

# %%
stored = ["integer", "decimal", "string", "character", "list", "dictionary", "try", "loop"]
chosen = [stored.index(word) for word in ("list", "dictionary")]
for length in (1, 2):
    looked_up = torch.softmax(embed(stored) @ (length * embed(["tuple"])[0]), dim=0)  # (s,)
    first, second = looked_up[chosen].tolist()
    print(f"length × {length}: list {first:.3f}, dictionary {second:.3f}, ratio {first / second:.2f}")

# %% [markdown]
# **How to read it.** Both weights belong to the query *tuple*. The second ratio is the square of the first.
