# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 5 · Masking
#
# *What a position may see*
#
# A language model learns to predict the next **token** (a letter, a word or a piece of a word), at every position
# of a text at once. But in the attention that you have built so far, every position looks at every other, so all
# but the last see the token that they should predict. **How do you hide the future from every position, and how do
# you know that it is hidden?**
#
# A **mask** says for each pair of positions whether one may look at the other, and the forbidden attention weights
# become exactly zero. But zero weights turn out not to be enough, so two tests look for leaks.
#
# | | |
# |---|---|
# | **You will build** | masks for time and for padding, a softmax that obeys them, the self-attention of a language model, and a function that finds leaks; you also fix a bug |
# | **You need** | lessons 1 to 4; booleans and broadcasting in PyTorch |
# | **It takes** | about 110 minutes: seven exercises, 25 points, and two predictions |
# | **It computes** | in seconds on a laptop; the section *Your model so far* takes about twenty seconds, and you may stop it |
#
# The sizes b, t, s, e and h are those of [the notation table](../../site/notation.md). **In a mask, True means "may
# look"**, as in PyTorch's `F.scaled_dot_product_attention`; its `nn.MultiheadAttention` uses the opposite
# convention.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.device import device
from helpers.lesson import start
from helpers.parts import masks as finished_masks    # solutions of exercises 1 to 4

check = start("05_masking")

# %% [markdown]
# ## A text of t + 1 tokens asks t questions
#
# At every position of a text, a language model predicts the next token from the tokens up to and including that
# position:
#
# | | | | | | |
# |---|---|---|---|---|---|
# | tokens | m | a | s | k | s |
# | inputs | m | a | s | k | |
# | targets | a | s | k | s | |
#
# After *m* the answer is *a*; after *m a* it is *s*. Inputs and targets are the same tokens, **shifted by one**.
#
# `finished_masks` holds finished solutions. Do not use it before exercise 5.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `next_token_pairs`** &nbsp; ★☆☆ · 5 minutes · 3 points
#
# Cut a batch of tokens into inputs and targets. Both have the type of `tokens`.
#
# <details><summary>Hint 1: what each side lacks</summary>
#
# In each row, one token cannot be an input, because nothing follows it, and one cannot be a target. Which two?
#
# </details>
# <details><summary>Hint 2: an example with two rows</summary>
#
# From the tokens ((7, 8, 9), (4, 5, 6)) come the inputs ((7, 8), (4, 5)) and the targets ((8, 9), (5, 6)). In a slice
# `x[:, a:b]` the first colon keeps all rows, and a or b may be left out or count from the end.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "next_token_pairs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def next_token_pairs(tokens):
    """What a language model reads, and what it should predict.

    tokens: (b, t + 1), integers.
    Returns inputs (b, t) and targets (b, t): targets[:, i] follows inputs[:, i].
    """
    ### BEGIN SOLUTION
    inputs = tokens[:, :-1]
    targets = tokens[:, 1:]
    return inputs, targets
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_next_token_pairs", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(next_token_pairs)

# %% [markdown]
# How low can the loss be if the model does not see the answers? For noise this is known exactly: let each token be one
# of eight letters, drawn at random. Call a model **honest** if it uses only the past. Here the past says nothing about
# the next letter, so on average an honest model can do no better than give each letter a probability of 1/8. Its loss,
# the **cross-entropy**, is minus the mean logarithm of the probability given to the right letter:
# $\log 8 \approx 2.08$.
#
# The model in the folded cell has one layer of attention. It reads an [embedding](../../site/glossary.md#embedding) of
# each letter plus a vector that tells positions apart (lesson 6).

# %% tags=["hide-input"]
class Guesser(nn.Module):
    """Takes letters, (b, t). Returns scores for the letter that comes next, (b, t, 8).

    attention: a module from (b, t, e) to (b, t, e).
    """

    def __init__(self, attention, t=12, e=32):
        super().__init__()
        self.letters, self.places = nn.Embedding(8, e), nn.Embedding(t, e)
        self.attention, self.to_scores = attention, nn.Linear(e, 8)

    def forward(self, tokens):
        return self.to_scores(self.attention(self.letters(tokens) + self.places.weight))

def play(attention):
    """Trains a Guesser on fresh noise in every step. Returns it, and the losses."""
    torch.manual_seed(1)
    model = Guesser(attention).to(device())
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(120):
        inputs, targets = next_token_pairs(torch.randint(8, (32, 13)).to(device()))
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return model, losses

# %% [markdown]
# <div class="card">
#
# **Prediction · `loss_without_mask`** &nbsp; 1 minute · no points
#
# The attention two cells below has no mask: each of the twelve positions looks at all twelve inputs. The model is
# trained on noise for 120 steps. What is its loss at the end?
#
# - **A.** About 2.1. Noise cannot be predicted.
# - **B.** About 1. It sees half of the answers.
# - **C.** About 0.2.
# - **D.** Almost exactly 0. It sees every answer.
# </div>

# %% nbgrader={"grade": false, "grade_id": "loss_without_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
loss_without_mask = "C"
### STUDENT GETS
# loss_without_mask = ...    # "A", "B", "C" or "D"
### END SOLUTION

# %% mystnb={"image": {"alt": "Loss against training step. A dashed line marks log 8, the best expected loss of an honest model. The curve starts near it, falls to a fifth of that within twenty steps, and ends at about 0.2."}}
class AllSeeing(nn.Module):
    """Self-attention with one head and no mask: every position looks at every other."""

    def __init__(self, e):
        super().__init__()
        self.to_qkv, self.unify = nn.Linear(e, 3 * e, bias=False), nn.Linear(e, e)

    def weights(self, q, k):
        return torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        return self.unify(self.weights(q, k) @ v)

torch.manual_seed(1)
seeing, losses = play(AllSeeing(32))
plots.loss_curve(losses, landmarks={"an honest guess: log 8": math.log(8)})
plt.show()
print(f"loss: {losses[0]:.2f} at the start, {losses[-1]:.2f} after {len(losses)} steps")

# %% nbgrader={"grade": true, "grade_id": "check_loss_without_mask", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("loss_without_mask", loss_without_mask)

# %% [markdown]
# **The model does not predict; it copies.** At every position but the last, the target *is* the next input, and
# attention lets position $i$ look there. When this model *writes*, that input does not exist yet. Training raises no
# error, and every shape is right. **In training, the only symptom is a loss that is too good.**
# How do you keep a position from looking there?

# %% [markdown]
# ## No position may look ahead
#
# **Output $i$ may depend on inputs $j \le i$, and on no others.** Position $i$ may see itself: input $i$ is the last
# token read, not the answer. As a (t, t) matrix of booleans, with row $i$ for the query position and column $j$ for the
# key position, the rule is a triangle, the **[causal mask](../../site/glossary.md#causal-mask)**:
#
# $$\text{mask}_{ij} \;=\; (j \le i) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `causal_mask`** &nbsp; ★☆☆ · 5 minutes · 2 points
#
# Return the triangle as booleans, on the device that is passed.
#
# <details><summary>Hint 1: write down t = 3</summary>
#
# The three rows are True False False, then True True False, then True True True. Which functions of torch make
# triangles, and which half do they keep?
#
# </details>
# <details><summary>Hint 2: the differences for t = 3</summary>
#
# The differences i − j are (0, −1, −2), (1, 0, −1) and (2, 1, 0). Which of them are True in the rows of hint 1? A
# column (t, 1) and a row (1, t) can be compared, and the result is (t, t). Functions that make a tensor take
# `device=device`, and many take `dtype=torch.bool`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "causal_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal_mask(t, device=None):
    """Which position may look at which, if no position may look ahead.

    t: how many positions. device: where the mask is needed.
    Returns (t, t), booleans: entry [i, j] is True where i may look at j, that is, j ≤ i.
    """
    ### BEGIN SOLUTION
    all_pairs = torch.ones(t, t, dtype=torch.bool, device=device)
    return all_pairs.tril()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_causal_mask", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(causal_mask)

# %% [markdown]
# ## After the softmax is too late
#
# Where does the mask go? Take one row of scores, 2, 1 and 3, of which the last must not be seen. **After the softmax**,
# you could set its weight to zero. **Before the softmax**, you could set its score to −∞: $e^{-\infty} = 0$, so it adds
# nothing to the numerator *or* to the denominator. Try both:

# %% tags=["nbval-check-output"]
scores, may_look = torch.tensor([2.0, 1.0, 3.0]), torch.tensor([True, True, False])

after = torch.softmax(scores, dim=-1) * may_look
before = torch.softmax(scores.masked_fill(~may_look, -math.inf), dim=-1)
for name, weights in [("after", after), ("before", before)]:
    rounded = [round(weight, 3) for weight in weights.tolist()]
    print(f"{name:>6}: {rounded}, sum {weights.sum().item():.3f}")

# %% [markdown]
# Masked after the softmax, the hidden score has already taken two thirds of the weight. If it rises, the other two
# weights shrink, so they still *depend* on it. Masked before, it has no effect at all. For four positions:

# %%
plots.diagrams.mask_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above: the scores and the mask. Below: the scores with −∞ wherever the answer is *no*, and their
# softmax.
#
# </div>
#
# In the player, drag $x_3$ under each setting of the mask in turn. When do $y_0$ to $y_2$ stay where they are?

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("mask")

# %% [markdown]
# ## Three words by hand
#
# The grids show the scaled scores *w*′ of the three words of lesson 3, and their softmax *w*. Above there is no mask,
# below the causal mask. Fill in the two missing weights.

# %% tags=["hide-input"]
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, X

X_scores = (X @ W_Q) @ (X @ W_K).T / math.sqrt(4)
X_hidden = X_scores.masked_fill(~torch.ones(3, 3, dtype=torch.bool).tril(), -math.inf)
X_open, X_masked = torch.softmax(X_scores, dim=-1), torch.softmax(X_hidden, dim=-1)
plots.number_grids(
    "three-words", "Weights of three words under the causal mask, by hand", THREE_WORDS,
    [{"*w*′": X_scores, "*w*": X_open},
     {"*w*′, masked": X_hidden, "*w*, masked": X_masked}],
    empty=[("*w*, masked", 1, 0), ("*w*, masked", 1, 1)],
)

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Rows are queries, columns are keys. The two missing weights sum to 1. Their ratio is the ratio of
# 0.09 to 0.67 in the grid above.
#
# </div>
#
# The next cell prints the missing weights.

# %% tags=["hide-cell", "nbval-check-output"]
print(f"weights of loop: {X_masked[1, 0]:.2f} and {X_masked[1, 1]:.2f}")
by_hand = X_open[1, :2] / X_open[1, :2].sum()
agree = torch.allclose(by_hand, X_masked[1, :2])
print("the first two unmasked weights of loop, divided by their sum, are the same:", agree)

# %% [markdown]
# ## A second mask hides the padding
#
# The future is not all that has to be hidden. The sentences of a batch differ in length, so short ones are filled up
# with a special token, the **[padding](../../site/glossary.md#padding)**. No position may attend to it. This rule is
# the same for every query position, so the mask has shape (b, 1, t).

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `padding_mask`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# From the lengths of the sentences, compute which positions hold a real token. A length may be 0, and t may be larger
# than the longest length.
#
# <details><summary>Hint 1: one sentence first</summary>
#
# With t = 5 and a length of 3, the positions are 0 1 2 3 4, and those below 3 are real: True True True False False.
#
# </details>
# <details><summary>Hint 2: an example with two sentences</summary>
#
# With t = 4 and the lengths (3, 0), the mask is True True True False for the first sentence and False False False
# False for the second; its shape is (2, 1, 4). Shapes (2, 1) and (4,) broadcast to (2, 4). `unsqueeze`, or an index
# of `None`, adds an axis of length 1.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "padding_mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
def padding_mask(lengths, t):
    """Which positions of each sentence hold a real token.

    lengths: (b,), integers: how many tokens each sentence has.
    t: the length to which all were padded at the end.
    Returns (b, 1, t), booleans: in each sentence, entry [0, j] is True where j is smaller
    than the sentence's length.
    """
    ### BEGIN SOLUTION
    positions = torch.arange(t, device=lengths.device)
    real = positions < lengths.unsqueeze(1)    # (b, t)
    return real.unsqueeze(1)                   # (b, 1, t)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_padding_mask", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(padding_mask)

# %% [markdown]
# Combine the two masks with `&`: a key position is visible only if it is not in the future **and** not padding.

# %% mystnb={"image": {"alt": "Three masks of 6 by 6 cells. Left, causal: the lower triangle with its diagonal is filled. Middle, padding: the first four columns are filled in every row. Right, both: the lower triangle, without its cells in columns 4 and 5."}}
triangle = causal_mask(6)                       # (t, t)
real = padding_mask(torch.tensor([4, 6]), 6)    # (b, 1, t)
both = triangle & real                          # (b, t, t)

first_sentence = [triangle, real[0].expand(6, 6), both[0]]    # 4 tokens, padded to 6
plots.mask_row(first_sentence, titles=["causal", "padding", "both"])
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row: query position. Column: key position. Filled: visible. Hatched: hidden.
#
# </div>
#
# **A causal mask alone already hides padding at the end from every real position**: rows 0 to 3 are the same on the
# right and on the left. It does not hide padding in front.

# %% [markdown]
# ## A row with nothing to see should become zeros
#
# Put the padding in **front**, so that all sentences of a batch continue from the same last position. In every sentence
# but the longest, position 0 has nothing left to see: the causal mask allows it only itself, and it is padding. Its row
# of scores is **fully masked**. What is the softmax of such a row?

# %% tags=["nbval-check-output"]
nothing = torch.full((3,), -math.inf)
print(torch.softmax(nothing, dim=-1))

# %% [markdown]
# All three exponentials are 0, and 0/0 is NaN (not a number). It spreads: in the next layer 0 · NaN is NaN, and in
# training the parameters become NaN. A finite fill value in place of −∞ avoids that, but makes the row a plain
# average over everything, the future included. So we want a row of zeros, which depends on no input.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `masked_softmax`** &nbsp; ★★★ · 15 minutes · 5 points
#
# Compute the softmax over the entries that may be seen, even if a hidden score is far above the visible ones. The
# gradient of a fully masked row is zero, never NaN. The scores may be large and of any floating type.
#
# <details><summary>Hint 1: two steps</summary>
#
# Fill the hidden scores with a low value and take the softmax. Then look again at the rows in which everything was
# hidden. What is in them now, and what should be?
#
# `masked_fill(~mask, value)` writes the value where the mask is False. It broadcasts the mask, and lets no gradient
# pass through the entries that it fills. `torch.finfo(scores.dtype).min` is the lowest finite number of the scores'
# type.
#
# </details>
# <details><summary>Hint 2: an example with three scores</summary>
#
# Take the scores (1, 2, 3).
#
# - With the mask (True, False, True) the weights are (0.12, 0, 0.88): the shares of e¹ and e³.
# - With the mask (False, False, False) they should be (0, 0, 0). If all three scores are filled with −∞, softmax
#   returns NaN three times. If all three are filled with −1000, it returns ⅓ three times.
#
# How low is low enough? The lowest finite number of float16 is −65,504, so −1e9 does not fit.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "masked_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def masked_softmax(scores, mask):
    """Softmax over the last axis, over the entries that may be seen.

    scores: (..., t, s), of any floating type; any number of axes may come first.
    mask: booleans, True where position i may look at j. Its shape broadcasts to that of the
    scores: (t, s), for example, or (b, 1, s).
    Returns (..., t, s), of the scores' type: 0 where the mask is False. Each row sums to 1,
    or is all 0 if it is fully masked.
    """
    ### BEGIN SOLUTION
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0.0)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_masked_softmax", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(masked_softmax)

# %% [markdown]
# Could you mask after the softmax and divide each row by its sum? Not if a hidden score is far above the visible ones:
# then the visible weights all round to 0, and you divide 0 by 0. ([Measured further](../../site/further.md#lesson-5)
# shows a batch under both masks.)

# %% [markdown]
# ## Under the mask, the words before *bank* lose it
#
# What does your mask do to a head that was trained without one? Here is a head of all-MiniLM-L6-v2. It reads the
# sentence of lessons 1 to 4 without positions.

# %% mystnb={"image": {"alt": "Two maps of 12 by 12 weights for the sentence: the boat could not reach the bank because it was too muddy. Without a mask the column of bank is dark in nearly every row. With the causal mask everything above the diagonal is empty; the column of bank is dark only in the rows below it, and the rows above have their dark cells at the, boat and reach."}}
from helpers.data.sentence import WORDS, queries_keys_values

q, k, _ = queries_keys_values(2)    # head 2 of the first block: (t, d) each
scores = q @ k.T / math.sqrt(q.shape[-1])
maps = [torch.softmax(scores, dim=-1), masked_softmax(scores, causal_mask(len(WORDS)))]
plots.sentence_map(torch.stack(maps), WORDS, ["without a mask", "with the causal mask"])
plt.show()

# %% [markdown]
# Without the mask, every word but *bank* itself looks most at *bank*. Under the mask, the words before *bank* cannot
# see it, so their weight goes to words before them or to themselves. And no head lets *it* see *muddy*, the word that
# decides between *boat* and *bank*.

# %% [markdown]
# ## GPT's attention is multi-head attention with a causal mask
#
# A transformer in which every layer has this mask, such as GPT, is called **decoder-only**. One in which no layer has
# it, such as BERT, is called **encoder-only**. The original transformer has both kinds of layer.
#
# The projections and heads of lesson 4 are given: queries, keys and values are (b, h, t, d), where d = e/h is the
# width of one head. You write the middle:
#
# $$\text{scores} = \frac{q\,k^\top}{\sqrt d}, \qquad
# w = \operatorname{masked\ softmax}(\text{scores}, \text{mask}), \qquad y = w\,v .$$
#
# Combined with padding, the mask is (b, t, t), but the scores are (b, h, t, t). Broadcasting aligns axes *from the
# right*, so the b of the mask meets the h of the scores. **If b = h, that raises no error**, and head 0 of every
# sentence gets the padding of sentence 0.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `CausalSelfAttention`** &nbsp; ★★☆ · 12 minutes · 4 points
#
# Write the middle of the layer, from q, k and v to the output. The mask hides the future and, if `real` is given, also
# the padding, anywhere in a sentence. (PyTorch's `key_padding_mask` is True at padding instead.) A position with
# nothing to see has weights of 0.
#
# Use `finished_masks.causal_mask` and `finished_masks.masked_softmax`, so that a mistake in exercise 2 or 4 does not
# carry over, or any function of PyTorch, such as `F.scaled_dot_product_attention`.
#
# <details><summary>Hint 1: the order of the steps</summary>
#
# Compute the mask and combine it with `real`, if that is given. Then compute scores (b, h, t, t), weights (b, h, t,
# t) and averages (b, h, t, d). Put the heads side by side, (b, t, e), and call `self.unify`.
#
# </details>
# <details><summary>Hint 2: an example with three positions</summary>
#
# Let t = 3, and let position 0 of one sentence be padding: its `real` is (False, True, True). Combined with the
# causal mask, the three rows of its mask are False False False, then False True False, then False True True. Position
# 0 has nothing to see, so its weights are zeros.
#
# For all sentences this mask is (b, t, t), and the scores are (b, h, t, t): what shape must the mask have to work for
# every head? At the end, (b, h, t, d) becomes (b, t, e), and the d components of head 0 come before those of head 1.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "CausalSelfAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which no position looks ahead.

    e: width of the model. h: how many heads; each is d = e / h wide.
    """

    def __init__(self, e, h):
        super().__init__()
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e)

    def forward(self, x, real=None):
        """x: (b, t, e). real: None, or booleans (b, 1, t), True where a token is real.

        Returns (b, t, e): output i depends on the real inputs j ≤ i. If position i is
        padding, its query still comes from input i, so output i may depend on that too.
        """
        b, t, e = x.shape
        d = e // self.h
        q = self.to_queries(x).view(b, t, self.h, d).transpose(1, 2)    # (b, h, t, d)
        k = self.to_keys(x).view(b, t, self.h, d).transpose(1, 2)
        v = self.to_values(x).view(b, t, self.h, d).transpose(1, 2)
        ### BEGIN SOLUTION
        mask = finished_masks.causal_mask(t, device=x.device)          # (t, t)
        if real is not None:
            mask = (mask & real).unsqueeze(1)                    # (b, 1, t, t)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d)          # (b, h, t, t)
        weights = finished_masks.masked_softmax(scores, mask)
        heads = weights @ v                                      # (b, h, t, d)
        return self.unify(heads.transpose(1, 2).reshape(b, t, e))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_CausalSelfAttention", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(CausalSelfAttention)

# %% [markdown]
# Back to the noise, now with your layer. At which positions does each of the two models know the answer?

# %% tags=["hide-input"] mystnb={"image": {"alt": "Loss at each of twelve positions, for two models. Without a mask it is near zero at positions 0 to 10 and jumps to 2.4, above the dashed line at log 8, at position 11. With the causal mask it is on the dashed line, 2.08, at every position."}}
def loss_by_position(model):
    """The loss at each of the twelve positions, on 2,000 fresh pieces of noise: (12,)."""
    with torch.no_grad():
        inputs, targets = next_token_pairs(torch.randint(8, (2000, 13)).to(device()))
        losses = F.cross_entropy(model(inputs).transpose(1, 2), targets, reduction="none")
    return losses.mean(dim=0).cpu()

torch.manual_seed(1)
causal, _ = play(CausalSelfAttention(32, 1))
places = range(12)
by_position = {
    "every position sees all": loss_by_position(seeing),
    "causal": loss_by_position(causal),
}
series = {name: (places, losses) for name, losses in by_position.items()}
plots.curves(series, "position", "loss",
             landmarks={"log 8": math.log(8)}, named_at="left")
plt.ylim(0, 3)
plt.show()
for name, losses in by_position.items():
    first, last = losses[:11].mean().item(), losses[11].item()
    print(f"{name}: a loss of {first:.2f} over positions 0 to 10, {last:.2f} at position 11")

# %% [markdown]
# **Without a mask, the model knows every answer but the last; with the mask, it knows none.** A model that writes is
# always where position 11 is: the next input does not exist yet. There the model without a mask is worse than a blind
# guess.

# %% [markdown]
# ## One pass answers twelve questions
#
# The mask also saves work. Position $i$ sees exactly what it would see if the text ended there: **twelve questions for
# the price of one pass**. Compare one pass over twelve vectors with twelve passes, over the first vector, over the
# first two, and so on.

# %%
passage = torch.randn(1, 12, 32).to(device())
for name, model in (("causal", causal), ("every position sees all", seeing)):
    attend = model.attention
    alone = [attend(passage[:, : i + 1])[:, -1] for i in range(12)]    # twelve passes
    apart = (attend(passage) - torch.stack(alone, dim=1)).abs().max().item()
    print(f"{name}: one pass and twelve differ by {apart:.1g}")

# %% [markdown]
# With the mask, one pass and twelve agree up to rounding. Without it, every output but the last has seen later
# vectors. So your layer seems to hide the future. How can you be sure?

# %% [markdown]
# ## The loss is a weak test for leaks
#
# On noise, a loss of log 8 shows only that training used no leak; there may still be one. On real text, the lowest
# honest loss is unknown. So test the model itself: **does output $i$ change if input $j$ does?**
#
# The first test uses derivatives. Let $y_{ia}$ be component $a$ of output $i$, and $x_{ja'}$ component $a'$ of input
# $j$. The leak from $j$ to $i$ is the largest slope,
#
# $$\text{leak}_{ij} \;=\; \max \left| \frac{\partial\, y_{ia}}{\partial\, x_{ja'}} \right| ,$$
#
# over all sequences of the batch and all components $a$ and $a'$. If every path from a later input is cut, all entries
# above the diagonal are **exactly** zero. Differentiating the sum of the output's components is not enough: if one
# rises with $x_j$ and another falls, their slopes may cancel.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `leak_map`** &nbsp; ★★★ · 15 minutes · 5 points
#
# Measure the leaks with autograd. The model may be any module or function that autograd can differentiate, and its
# outputs may be wider or narrower than its inputs. Loops are allowed, and so is everything in `torch.autograd`. The
# numbers in x must stay unchanged; its `requires_grad` may change.
#
# <details><summary>Hint 1: one number at a time</summary>
#
# Autograd differentiates **one number** with respect to everything. Take the number `y[:, i, c].sum()`, a sum over
# the batch. Its gradient has shape (b, t, e). Sequences do not mix, so each sequence's part of the gradient is the
# derivative of its own output. What is the largest absolute value at each position j?
#
# `torch.autograd.grad(number, x, retain_graph=True)[0]` is the gradient with respect to x; x must have
# `requires_grad`. `retain_graph=True` keeps the graph, so that you can differentiate the next number too.
#
# </details>
# <details><summary>Hint 2: an example with two positions</summary>
#
# Let b = 2, t = 2, e = 1, and let the model be $y_0 = x_0$, $y_1 = -3 x_0 + x_1^2$. The inputs are (1, 5) and (1,
# −7).
#
# - Output 0 has the slope 1 with respect to input 0 and 0 with respect to input 1, in both sequences.
# - Output 1 has the slope −3 with respect to input 0. With respect to input 1 it has the slope 10 in the first
#   sequence and −14 in the second.
#
# The map is ((1, 0), (3, 14)). With two output components there would be two such maps; in each cell, the larger
# value counts.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "leak_map", "locked": false, "schema_version": 3, "solution": true, "task": false}
def leak_map(model, x):
    """How much each output depends on each input.

    model: a module or function from (b, t, e) to (b, t, f) that treats each sequence
    by itself. x: (b, t, e).
    Returns (t, t): entry [i, j] is the largest slope |∂y/∂x|, where y is any component of
    output i and x any component of input j of the same sequence, over the whole batch.
    """
    ### BEGIN SOLUTION
    x = x.detach().clone().requires_grad_()
    y = model(x)                                                             # (b, t, f)
    rows = []
    for i in range(y.shape[1]):
        row = x.new_zeros(x.shape[1])
        for c in range(y.shape[2]):
            number = y[:, i, c].sum()
            slopes = torch.autograd.grad(number, x, retain_graph=True)[0]    # (b, t, e)
            row = torch.maximum(row, slopes.abs().amax(dim=(0, 2)))
        rows.append(row)
    return torch.stack(rows)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_leak_map", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(leak_map)

# %% [markdown]
# Compare the leak maps of three versions of lesson 1's attention:

# %%
def unmasked(x):
    weights = torch.softmax(x @ x.transpose(1, 2), dim=-1)
    return weights @ x

def masked_after(x):
    weights = torch.softmax(x @ x.transpose(1, 2), dim=-1)
    return (weights * causal_mask(x.shape[1], x.device)) @ x

def masked_before(x):
    weights = masked_softmax(x @ x.transpose(1, 2), causal_mask(x.shape[1], x.device))
    return weights @ x

# %% mystnb={"image": {"alt": "Three leak maps of 6 by 6 cells. Without a mask, no cell is hatched. Masked after the softmax, no cell is hatched either, and the largest number above the diagonal is larger than without a mask. Masked before the softmax, all cells above the diagonal are hatched: exactly zero."}}
x = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(0)).to(device())
leaks = {
    "no mask": leak_map(unmasked, x),
    "masked after softmax": leak_map(masked_after, x),
    "masked before softmax": leak_map(masked_before, x),
}

figure, axes = plt.subplots(1, 3, figsize=(7, 2.9), layout="compressed")
for ax, (name, leak) in zip(axes, leaks.items()):
    plots.heat(leak, title=name, ax=ax, scale=2, digits=2, blank_zeros=True)
    ax.set(xlabel="input j", ylabel="output i" if ax is axes[0] else "")
plt.show()
for name, leak in leaks.items():
    print(f"{name}: the largest entry above the diagonal is {leak.triu(1).max().item():.3g}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i, column j: the largest slope of output i with respect to input j. Hatched cells are exactly
# zero; 0.00 is a number that rounds to zero.
#
# </div>
#
# **Masked after the softmax, every forbidden weight is zero, and still the outputs depend on the future.** All visible
# weights of a row share one denominator, and the hidden scores are in it. So masking late gives the right row times one
# number, the sum of the visible weights, and this number depends on the future.
#
# **Can a model read a secret from one number?** Train one on the noise. Then average that number at position 8 of
# 2,000 fresh sequences, separately for each letter that comes next:

# %%
class MaskedAfter(AllSeeing):
    """Self-attention with one head, and the causal mask after the softmax."""

    def weights(self, q, k):
        visible = super().weights(q, k) * causal_mask(q.shape[1], q.device)
        self.sums = visible.sum(dim=-1)    # (b, t)
        return visible

torch.manual_seed(1)
leaking, losses = play(MaskedAfter(32))
print(f"loss: {losses[0]:.2f} at the start, {losses[-1]:.2f} after {len(losses)} steps")

inputs, targets = next_token_pairs(torch.randint(8, (2000, 13)).to(device()))
leaking(inputs)
sums, answers = leaking.attention.sums[:, 8], targets[:, 8]
means = [f"{sums[answers == letter].mean().item():.2f}" for letter in range(8)]
print("sum at position 8, for each next letter:", *means)

# %% [markdown]
# It can: the loss is below log 8. In our run, the sum is close to 0 before four of the letters, and close to 1
# before the other four. At this position, one number narrows the choice from eight letters to about four.
#
# Now test your own layer, with random weights and several heads.

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
layer = CausalSelfAttention(12, 3).to(device())
x = torch.randn(2, 7, 12).to(device())

leak, may_look = leak_map(layer, x), causal_mask(7, x.device)
print("every entry above the diagonal is exactly zero:", bool((leak[~may_look] == 0).all()))
print("every entry on and below it is larger than zero:", bool((leak[may_look] > 0).all()))

# %% [markdown]
# For these weights and this input, autograd finds no dependence on a later input.
#
# ## Is a slope of zero a proof?
#
# Try the leak map on a function that looks ahead on purpose.

# %% [markdown]
# <div class="card">
#
# **Prediction · `leak_of_detached`** &nbsp; 1 minute · no points
#
# Two cells below, `peeking` returns the sum of the inputs so far plus the **next** input, detached. (`roll` wraps
# around: the last output gets the first input.) What are the entries of its leak map just above the diagonal?
#
# - **A.** Exactly 0.
# - **B.** 1, because the next input is added to the output unchanged.
# - **C.** There are none: `leak_map` raises an error, because a detached tensor cannot be differentiated.
# </div>

# %% nbgrader={"grade": false, "grade_id": "leak_of_detached", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
leak_of_detached = "A"
### STUDENT GETS
# leak_of_detached = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
def peeking(x):
    return x.cumsum(dim=1) + x.detach().roll(-1, dims=1)

print("just above the diagonal:", leak_map(peeking, x).diagonal(1).tolist())

# %% nbgrader={"grade": true, "grade_id": "check_leak_of_detached", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("leak_of_detached", leak_of_detached)

# %% [markdown]
# **The slope is zero, and yet the function looks ahead.** So the second test needs no derivative. Replace input $j$
# with other numbers, and check whether each output is **exactly** what it was. If the model is deterministic and
# returns no NaN, any change in an output $i < j$ is a leak.

# %%
def changed_outputs(model, x, tries=8):
    """[i, j] is True where other numbers at input j changed output i: (t, t), booleans."""
    t, before = x.shape[1], model(x)
    changed = torch.zeros(t, t, dtype=torch.bool, device=x.device)
    for j in range(t):
        for _ in range(tries):
            other = x.clone()
            other[:, j] = 3 * torch.randn_like(other[:, j])
            changed[:, j] |= (model(other) != before).any(dim=2).any(dim=0)
    return changed

# %% [markdown]
# Now run both tests on your layer and on three functions that leak. `faint` hides scores with −25 instead of −∞.

# %% tags=["nbval-check-output"] mystnb={"image": {"alt": "Four maps of 7 by 7 cells. For masked_after every cell is filled. For peeking the lower triangle with its diagonal is filled, and the cells just above the diagonal too. For faint and for your layer only the lower triangle with its diagonal is filled."}}
def faint(x):
    future = ~causal_mask(x.shape[1], x.device)
    scores = (x @ x.transpose(1, 2)).masked_fill(future, -25.0)
    return torch.softmax(scores, dim=-1) @ x

models = {"masked_after": masked_after, "peeking": peeking,
          "faint": faint, "your layer": layer}
with torch.no_grad():
    maps = {name: changed_outputs(model, x) for name, model in models.items()}
plots.mask_row(list(maps.values()), titles=list(maps),
               row_label="output i", column_label="input j")
plt.show()
for name, model in models.items():
    slope = leak_map(model, x).triu(1).max().item()
    changes = maps[name].triu(1).sum().item()
    print(f"{name}: largest slope above the diagonal {slope:.0g}, "
          f"pairs (i, j) changed there {changes}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Filled: replacing input j changed output i.
#
# </div>
#
# **Each test finds a leak that the other misses:**
#
# | | leak map | second test | why one test misses it |
# |---|---|---|---|
# | `masked_after` | found | found | |
# | `peeking` | missed | found | autograd treats a detached input as a constant |
# | `faint` | found | missed | the change is [lost in rounding](../../site/further.md#lesson-5) |
#
# **Passing both tests is no proof.** Both try one set of weights and a few inputs. A proof has to come from the code:
# no path may lead from a later input to an earlier output.
#
# For a whole language model, which reads token numbers, differentiate with respect to the embeddings, or replace
# tokens.

# %% [markdown]
# ## The hurried layer runs, and its shape is right
#
# Suppose that a colleague wrote the layer below in a hurry. Does it hide the future?

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `HurriedAttention`** &nbsp; fix · ★★☆ · 8 minutes · 3 points
#
# This layer has a bug in one line. Find it with this lesson's tests. In the fixed layer, output $i$ must depend on the
# inputs $j \le i$ and on no others, for every t up to `t_max`. The names and shapes of everything that the layer stores
# stay the same.
#
# <details><summary>Hint 1: measure before you read</summary>
#
# In a cell of your own, make `HurriedAttention(12, 3, t_max=8)`. Compute its leak maps for inputs of several lengths
# t.
#
# </details>
# <details><summary>Hint 2: an example with two positions</summary>
#
# Let t_max = 3 and t = 2. Write down the triangle and the part of it that `attend` receives.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "HurriedAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class HurriedAttention(nn.Module):
    """Causal self-attention with h heads, for texts of t_max positions at most."""

    def __init__(self, e, h, t_max):
        super().__init__()
        self.h = h
        self.to_qkv, self.unify = nn.Linear(e, 3 * e), nn.Linear(e, e)
        self.register_buffer("triangle", torch.ones(t_max, t_max, dtype=torch.bool).tril())

    def attend(self, q, k, v, mask=None):
        """q, k, v: (b, h, t, d). mask: booleans (t, t). Returns (b, h, t, d)."""
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return torch.softmax(scores, dim=-1) @ v

    def forward(self, x):
        """x: (b, t, e). Returns (b, t, e)."""
        b, t, e = x.shape
        parts = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(b, t, self.h, e // self.h).transpose(1, 2) for part in parts)
        ### BEGIN SOLUTION
        heads = self.attend(q, k, v, self.triangle[:t, :t])
        ### STUDENT GETS
        # heads = self.attend(q, k, v, self.triangle[-t:, :t])
        ### END SOLUTION
        return self.unify(heads.transpose(1, 2).reshape(b, t, e))

# %% nbgrader={"grade": true, "grade_id": "check_HurriedAttention", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(HurriedAttention)

# %% [markdown]
# ## Your model so far
#
# In lessons 1 to 4, code that you have not seen hid the future. Now your `CausalSelfAttention` does; otherwise the
# model is that of lesson 4. As before, one pass answers **32 questions per window**.

# %% mystnb={"image": {"alt": "A scoreboard of six models over bits per byte. From the top: your causal mask and four heads at the same place, near 2.85; scaled scores and queries, keys, values near 3.3; bare self-attention at 3.5, on the line of order 1; the plain average at 4.4, near the line of order 0."}}
from helpers.data.recorded import recorded
from helpers.ladder import E, H, ByteModel, Ladder

ladder = Ladder(check)
causal_class = ladder.own(CausalSelfAttention)
torch.manual_seed(0)
ladder.climb(ByteModel(causal_class(E, H)))
ladder.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Farther left is better. A point is your model, ticks are three runs of ours. The dashed lines
# are explained in [lesson 1](../01_dot_product_attention/01_dot_product_attention.ipynb).
#
# </div>
#
# In our run the two samples agree letter for letter, because the mask was there all along. To see what it does,
# take it **away**: the same layer and the same questions, but every position sees the whole window.

# %% tags=["hide-input"]
bits = recorded("ladder")["result"]["bits"]
rows = {
    "training, all but the last position": "05 without the mask, training, but the last",
    "training, all positions": "05 without the mask, training",
    "held out": "05 without the mask",
    "held out, with the mask": "05_masking",
}
print("bits per byte, three runs of ours; without the mask, unless it says so")
for row, key in rows.items():
    print(f"{row:<37}", " ".join(f"{run:.2f}" for run in bits[key]))

# %% [markdown]
# **Without the mask, the training loss looks wonderful, and the model is worse.** In training it needs a tenth of a bit
# per byte. On the last position of a held-out window, the only one with no answer in sight, it needs about half a bit
# more than the model with the mask. When it writes, every byte is such a last position.

# %% [markdown]
# ## What you can do now
#
# **How do you hide the future from every position, and how do you know that it is hidden?** A causal mask before
# the softmax hides it. Tests can find a leak; that there is none, only the code can prove.
#
# - **Without a mask, a model copies.** On noise, in one run, it knew every answer but the last. On the last position of
#   held-out windows of real text, in three runs, it needed about half a bit per byte more than the model with the mask.
# - **A mask after the softmax leaks.** In one run on noise, the loss fell below log 8. Masked before, all slopes above
#   the diagonal were exactly zero.
# - **With the mask, one pass answers all questions.** In the trained layer, one pass and twelve agreed up to
#   rounding.
# - **Each test found a leak that the other missed.** In your layer, neither found one.
#
# **Three questions to think about**
#
# <details><summary>1. Each layer by itself is causal. Can two of them in a row leak the future?</summary>
#
# No. Output i of the second layer depends on outputs j ≤ i of the first, and each of those depends on inputs no later
# than j. In terms of matrices: the product of two lower triangular matrices is lower triangular.
#
# </details>
# <details><summary>2. With padding at the end, a causal mask hides the padding from every real position. What must the
# loss ignore?</summary>
#
# Every position whose target is padding. That includes the position of the last real token: the token after it is
# padding.
#
# </details>
# <details><summary>3. Attention is masked correctly, but the leak map still has entries above the diagonal. Where
# would you look?</summary>
#
# At everything else that mixes positions: a normalisation whose mean runs over the positions, a convolution centred
# on its position, a maximum over the positions. A layer that treats each position separately cannot leak.
#
# </details>
#
# **Further reading**
#
# - **A. Vaswani et al., [Attention is all you need](https://arxiv.org/abs/1706.03762), *NeurIPS* 2017**, sections 3.1
#   and 3.2.3: the mask, and outputs that are offset by one position.
# - M. Germain, K. Gregor, I. Murray and H. Larochelle, [MADE: Masked autoencoder for distribution
#   estimation](https://arxiv.org/abs/1502.03509), *ICML* 2015, section 4: masks make an ordinary network
#   autoregressive.
# - A. Karpathy, [A recipe for training neural networks](https://karpathy.github.io/2019/04/25/recipe/), 2019, under
#   "use backprop to chart dependencies": the idea of finding leaks with gradients.
#
# **Next:** [lesson 6, *Positions*](../06_positions/06_positions.ipynb)
