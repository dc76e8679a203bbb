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
# # 13 · Before transformers
#
# *What attention was invented for*
#
# Attention is older than the transformer. It was invented as a repair: a network that translated sentences lost them
# when they were long. This lesson goes back to that network, makes it fail, and repairs it. On the way it answers a
# question that lesson 1 left open, where good word vectors come from, and ends with the one that led to the
# transformer: when attention carries everything, what is the rest still for?
#
# | | |
# |---|---|
# | **You will build** | word vectors from company, a pair of language models that read in opposite directions, a sentence in one vector, and the first attention; and you fix a score |
# | **You need** | lessons [1](../01_dot_product_attention/01_dot_product_attention.ipynb), [2](../02_queries_keys_values/02_queries_keys_values.ipynb), [5](../05_masking/05_masking.ipynb) and [10](../10_encoder_decoder/10_encoder_decoder.ipynb) |
# | **It takes** | about 115 minutes: eight exercises, 24 points, and two predictions |
# | **It computes** | for about a minute, most of it two trainings; any laptop will do |
#
# Sizes are those of [the notation table](../../site/notation.md): b for the batch, t for the positions that are read, e
# for a width. Some letters follow the papers of this lesson: s is the state of a decoder, m and d are the widths of
# what it looks at and of s itself, and a is the width in which the two are compared.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.toy.numerals import numeral_lists
from helpers.data.toy.reviews import BLAME, PRAISE, reviews
from helpers.device import device
from helpers.lesson import start
from helpers.parts import recurrent as finished_parts    # this lesson's exercises, done
from helpers.parts.masks import masked_softmax, padding_mask
from helpers.parts.words import build_vocabulary, encode_batch, pad_rows, split_words
from helpers.progress import progress

check = start("13_before_transformers")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## Known by its company
#
# In lesson 1 the word vectors were given. They were made from counts: which words stand near which. In 2013 [Mikolov et
# al.](https://arxiv.org/abs/1310.4546) made them by a guessing game instead, **[skip-gram with negative
# sampling](../../site/glossary.md#skip-gram)**. Take a word of a text, the centre, and a word near it, its context.
# Take k more words at random, the **negatives**. The model has to tell the one from the others.
#
# Each word has two vectors, u as a centre and w as a context, and the probability that the two are neighbours is taken
# to be $\sigma(u \cdot w)$, where $\sigma(z) = 1 / (1 + e^{-z})$. It should be large for the true neighbour, and small
# for each of the negatives $w_1, \dots, w_k$. Since $1 - \sigma(z) = \sigma(-z)$, the loss of one pair is
#
# $$-\log \sigma(u \cdot w) \;-\; \sum_{j=1}^{k} \log \sigma(-u \cdot w_j) .$$
#
# **What every check asks.** New tensors are created on the device of the inputs. Tensors that come in stay unchanged.
# Gradients must flow to the inputs and to a module's parameters. Do not use `finished_parts` unless the card says so.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `skip_gram_loss`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Write this loss for a batch: the mean over its pairs. The loss and its gradients must be right and finite even where
# a product is 200 or −200; the sigmoid of −200 is 0 in float32.
#
# <details><summary>Hint 1: one pair first</summary>
#
# Of the k products with the negatives, each goes through log σ by itself; only then are they added up.
# `F.logsigmoid(z)` is log σ(z), and it is finite for any z.
#
# </details>
# <details><summary>Hint 2: one pair by hand</summary>
#
# With u · w = 2 and two negatives, u · w₁ = 1 and u · w₂ = −3, the loss is −log σ(2) − log σ(−1) − log σ(3) = 0.127 +
# 1.313 + 0.049 = 1.489. In a batch the first product is (b,), and those with the negatives are (b, k).
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "skip_gram_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def skip_gram_loss(centre, context, negatives):
    """Is this word a neighbour, or was it drawn at random?

    centre: (b, e). context: (b, e), a true neighbour of each. negatives: (b, k, e), words
    drawn at random. Returns (): the mean over b of the loss above.
    """
    ### BEGIN SOLUTION
    near = (centre * context).sum(dim=-1)                      # (b,)
    far = (centre.unsqueeze(1) * negatives).sum(dim=-1)        # (b, k)
    losses = -F.logsigmoid(near) - F.logsigmoid(-far).sum(dim=-1)
    return losses.mean()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_skip_gram_loss", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(skip_gram_loss)

# %% [markdown]
# A published version takes log σ of the *sum* of the products ([DeepNLP-models-Pytorch, issue
# #15](https://github.com/DSKSD/DeepNLP-models-Pytorch/issues/15)).
#
# Let it learn from the made-up film reviews of lesson 8: no labels, words up to two places apart, five negatives a
# pair. The paper draws them by their frequency to the power 3/4 (section 2.2).

# %%
(texts, _), (test_texts, _) = reviews(8000, 2000)
vocabulary = build_vocabulary(texts, 1000)
names = list(vocabulary)
ids, mask = encode_batch(texts, vocabulary, 60)    # both (texts, t)
n = len(vocabulary)

pairs = []    # (centre, context), two places apart at most
for apart in (1, 2):
    there = mask[:, apart:]
    left, right = ids[:, :-apart][there], ids[:, apart:][there]
    pairs += [torch.stack([left, right]), torch.stack([right, left])]
pairs = torch.cat(pairs, dim=1)                    # (2, pairs)
frequency = torch.bincount(ids[mask], minlength=n).float() ** 0.75

torch.manual_seed(0)
centres, contexts = nn.Embedding(n, 32), nn.Embedding(n, 32)
optimiser = torch.optim.Adam([centres.weight, contexts.weight], lr=0.02)
for step in progress(range(2500), "skip-gram"):
    u, w = pairs[:, torch.randint(pairs.shape[1], (512,))]
    drawn = torch.multinomial(frequency, 512 * 5, replacement=True).view(512, 5)
    loss = skip_gram_loss(centres(u), contexts(w), contexts(drawn))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

table = F.normalize(centres.weight.detach(), dim=1)
for word in ("dull", "music", "but"):
    likeness = table @ table[vocabulary[word]]
    near = likeness.argsort(descending=True)[1:5].tolist()
    print(f"{word:>6}: " + ", ".join(f"{names[k]} {likeness[k]:.2f}" for k in near))

# %% [markdown]
# The numbers are cosines. No one has told the model what an adjective is; words that stand in the same places have come
# to have similar vectors. [Levy and Goldberg
# (2014)](https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization)
# showed that this game, played to its end, factorises a table of counts: the pointwise mutual information of word and
# context, less log k. It is much the same as what `word_vectors` of lesson 1 computes from counts.
#
# Look at what else these vectors have in common. *Dull* is as near to words of praise as to words of blame: all of
# them stand behind *is*. And there is a weakness that no amount of text removes: **one vector a word**. *Dull* in "the
# plot is dull" is the same 32 numbers as in "the plot is hardly dull", and *stick* in "let's stick to it" the same as
# in "he broke a stick".

# %% [markdown]
# ## A vector from a reader
#
# [Peters et al. (2018)](https://arxiv.org/abs/1802.05365) took a word's vector from a network that *reads the sentence*
# as a language model; they called it **ELMo**. Their reader is recurrent (lesson 7): it walks through the sentence and
# keeps a state, a vector that it updates at each word, so that the state at position $i$ depends on everything up to
# $i$.
#
# How it updates is a matter of design. Two designs have lasted, the **LSTM** ([Hochreiter and Schmidhuber,
# 1997](https://doi.org/10.1162/neco.1997.9.8.1735)) and the **GRU** ([Cho et al.,
# 2014](https://arxiv.org/abs/1406.1078)): both decide by learned gates, at every step, what is kept and what is
# overwritten. Here they come from PyTorch, as `nn.LSTM` and `nn.GRU`.
#
# What comes *after* a word matters, too. So there are two readers: one goes forwards and is asked at each word for the
# next one, the other goes backwards and is asked for the previous one.

# %%
plots.diagrams.two_readers()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Two rails, read in opposite directions, each of two LSTMs over the words' vectors. No arrow leads
# from one rail to the other. Below: what both have at one word, layer by layer, is mixed for a task.
#
# </div>
#
# A backward reader is a forward reader that is given the sentence turned round. In a batch with padding one has to turn
# with care: the last *word* has to come first, and not the padding.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `read_backwards`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Reverse each row within its length, and leave its padding as it is. Reversing twice gives back x.
#
# <details><summary>Hint 1: where does each place take its vector from?</summary>
#
# With length 3 and t = 5, the positions 0 1 2 3 4 take from 2 1 0 3 4.
#
# </details>
# <details><summary>Hint 2: all rows at once</summary>
#
# With lengths 3 and 1 and t = 3, the order is [[2, 1, 0], [0, 1, 2]], which `torch.where` can make of two cases.
# `x.gather(1, order)` needs an `order` as large as x. A loop over the rows with `flip` is right as well, on a copy.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "read_backwards", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_backwards(x, lengths):
    """Each row in reverse order within its length; its padding stays as it is.

    x: (b, t, e). lengths: (b,), integers from 1 to t. Returns (b, t, e).
    """
    ### BEGIN SOLUTION
    places = torch.arange(x.shape[1], device=x.device)         # (t,)
    turned = lengths.unsqueeze(1) - 1 - places                 # (b, t)
    order = torch.where(turned >= 0, turned, places)
    return x.gather(1, order.unsqueeze(-1).expand_as(x))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_read_backwards", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(read_backwards)

# %% [markdown]
# Why two separate readers, and not one that reads both ways in every layer? PyTorch has that as well:
# `nn.LSTM(..., num_layers=2, bidirectional=True)`, in which the second layer reads what both directions of the first
# have made. Put the two designs under the instrument of lesson 5, with random weights, and ask on which inputs the
# *forward half* depends at each position.

# %% tags=["hide-input"]
def slopes(model, x):
    """(t, t): the largest |∂ output i / ∂ input j|, as lesson 5's leak map. x: (1, t, e)."""
    return torch.autograd.functional.jacobian(model, x).abs().amax(dim=(0, 2, 3, 5))

# %% mystnb={"image": {"alt": "Three leak maps of 6 by 6 cells. Two readers, forward half: the lower triangle with its diagonal is filled, the rest is hatched, exactly zero. Two readers, backward half: the upper triangle with its diagonal. One stacked bidirectional LSTM, forward half: every cell is filled, also those above the diagonal."}}
torch.manual_seed(0)
x = torch.randn(1, 6, 8)
ahead, back = (nn.LSTM(8, 8, num_layers=2, batch_first=True) for _ in range(2))
both = nn.LSTM(8, 8, num_layers=2, batch_first=True, bidirectional=True)
halves = {
    "two readers, forward": slopes(lambda x: ahead(x)[0], x),
    "two readers, backward": slopes(lambda x: back(x.flip(1))[0].flip(1), x),
    "one stacked, forward": slopes(lambda x: both(x)[0][..., :8], x),
}
figure, axes = plt.subplots(1, 3, figsize=(7, 2.9), layout="compressed")
for ax, (name, leak) in zip(axes, halves.items()):
    plots.heat(leak, title=name, ax=ax, digits=2, annotate=False, blank_zeros=True)
    ax.set(xlabel="input j", ylabel="output i" if ax is axes[0] else "")
plt.show()
ahead_of_i = halves["one stacked, forward"].triu(1)
print(f"one stacked: {(ahead_of_i > 0).sum()} of 15 entries above the diagonal are not zero")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Row i, column j: how fast output i moves with input j, each map on its own scale; hatched cells
# are exactly zero. To guess word i + 1 from output i, nothing right of the diagonal may be seen.
#
# </div>
#
# The stacked reader sees the word that it is to guess: its first layer has carried it back to every position. Such a
# model can be trained for a task with labels, but not as a language model. So ELMo keeps its two directions apart to
# the end: each half of a vector knows the left *or* the right, and nothing in the reader joins the two. Is there no
# other way? Keep the question for [lesson 14](../14_bert/14_bert.ipynb).

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `BiLanguageModel`** &nbsp; ★★★ · 15 minutes · 4 points
#
# Write `layers` and `loss`. The constructor is done: both readers share one table of vectors and one output layer, and
# each has LSTMs of its own. Use `finished_parts.read_backwards(x, lengths)`, exercise 2. What `layers` returns at
# padding does not matter. Every call starts afresh: no state of an LSTM is kept for the next. `loss` calls
# `self.layers` and uses what it returns.
#
# <details><summary>Hint 1: two rails</summary>
#
# Reverse the words' vectors **once**, before the backward rail, and give each LSTM the outputs of the one before it in
# its *own* rail. The outputs of the backward rail are in reverse order; turn them back for the result, and only there.
# `lstm(x)[0]` holds the outputs at all positions.
#
# </details>
# <details><summary>Hint 2: three words by hand</summary>
#
# A row holds the ids 7 2 9, then padding. The forward half at positions 0 and 1 has to guess 2 and 9, the backward half
# at positions 1 and 2 has to guess 7 and 2: two pairs, and nothing else in this row. Lesson 5's
# `padding_mask(lengths, t)` is (b, 1, t), and indexing with booleans picks entries.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "BiLanguageModel", "locked": false, "schema_version": 3, "solution": true, "task": false}
class BiLanguageModel(nn.Module):
    """Two language models, one reading forwards and one backwards.

    n: size of the vocabulary. e: width of a word's vector and of each LSTM. depth: LSTMs in
    each reader.
    """

    def __init__(self, n, e, depth):
        super().__init__()
        self.tokens, self.to_logits = nn.Embedding(n, e), nn.Linear(e, n)
        self.forwards, self.backwards = (
            nn.ModuleList([nn.LSTM(e, e, batch_first=True) for _ in range(depth)])
            for _ in range(2)
        )

    def layers(self, ids, lengths):
        """ids: (b, t). lengths: (b,). Returns (b, depth + 1, t, 2e), in each layer the
        forward half first. Layer 0 is the word's vector, twice.
        """
        ### BEGIN SOLUTION
        x = self.tokens(ids)                                        # (b, t, e)
        ahead, back = x, finished_parts.read_backwards(x, lengths)
        found = [torch.cat([x, x], dim=-1)]
        for forward, backward in zip(self.forwards, self.backwards):
            ahead, back = forward(ahead)[0], backward(back)[0]
            here = finished_parts.read_backwards(back, lengths)
            found.append(torch.cat([ahead, here], dim=-1))          # (b, t, 2e)
        return torch.stack(found, dim=1)
        ### END SOLUTION

    def loss(self, ids, lengths):
        """ids: (b, t). lengths: (b,), not all 1. Returns (): the mean cross-entropy over all
        words that are asked for, in both directions, from the last layer.
        """
        ### BEGIN SOLUTION
        ahead, back = self.layers(ids, lengths)[:, -1].chunk(2, dim=-1)
        pair = padding_mask(lengths, ids.shape[1])[:, 0, 1:]        # (b, t − 1)
        following = F.cross_entropy(self.to_logits(ahead[:, :-1][pair]), ids[:, 1:][pair])
        preceding = F.cross_entropy(self.to_logits(back[:, 1:][pair]), ids[:, :-1][pair])
        return (following + preceding) / 2
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_BiLanguageModel", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(BiLanguageModel)

# %% [markdown]
# Two places of this class are known for their accidents. Keras' layers that read backwards return their outputs in the
# turned order ([issue #3281](https://github.com/keras-team/keras/issues/3281)), and joined as they come, first words
# meet last ones. And in a Keras version of ELMo the backward layers read what the forward ones had made
# ([ELMo-keras, issue #2](https://github.com/iliaschalkidis/ELMo-keras/issues/2)): the leak of the picture above.
#
# Train it on the same reviews, for a few seconds.

# %%
torch.manual_seed(0)
reader = BiLanguageModel(n, 64, 2).to(device())
optimiser = torch.optim.Adam(reader.parameters(), lr=0.005)
losses = []
for step in progress(range(200), "reading"):
    rows = torch.randint(len(ids), (48,))
    lengths = mask[rows].sum(dim=1)
    loss = reader.loss(ids[rows, : lengths.max()].to(device()), lengths.to(device()))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
last = sum(losses[-20:]) / len(losses[-20:])
print(f"{losses[0]:.2f} nats a word at the start, {last:.2f} after {len(losses)} steps")

# %% [markdown]
# What does it know that a table cannot know? Take every adjective of the test reviews, and ask two questions about its
# surroundings: does *not*, *hardly* or *far from* stand just before it, and does a full stop come just after? Answer
# them from the adjective's *vector alone*, with a **linear probe**: a weight for each number of the vector, fitted by
# least squares on one half of the adjectives and tested on the other.

# %%
adjectives, flips = (torch.tensor([vocabulary[word] for word in words if word in vocabulary])
                     for words in (PRAISE + BLAME, ["not", "hardly", "from"]))
test_ids, test_mask = encode_batch(test_texts, vocabulary, 60)
with torch.no_grad():
    layers = reader.layers(test_ids.to(device()), test_mask.sum(dim=1).to(device())).cpu()
found = torch.isin(test_ids, adjectives) & test_mask
found[:, 0] = found[:, -1] = False                       # each needs a word on either side
row, place = found.nonzero(as_tuple=True)
vectors = layers[row, :, place]                          # (adjectives, 3, 128)
answers = {
    "not, hardly or far from before?": torch.isin(test_ids[row, place - 1], flips),
    "a full stop after?": test_ids[row, place + 1] == vocabulary["."],
}

def probe(vectors, answer):
    """How often a linear probe on vectors (n, e) gives the answers (n,): second half."""
    half = len(vectors) // 2
    inputs = F.pad(vectors, (0, 1), value=1.0)           # a bias
    wanted = 2.0 * answer[:half] - 1                     # 1 for yes, −1 for no
    weights = torch.linalg.lstsq(inputs[:half], wanted, driver="gelsd").solution
    return ((inputs[half:] @ weights > 0) == answer[half:]).float().mean().item()

sources = {"table": vectors[:, 0, :64], "forward, 1": vectors[:, 1, :64],
           "backward, 1": vectors[:, 1, 64:], "both, 1": vectors[:, 1]}
print(f"{len(vectors):,} adjectives\n{'':>32}  commoner  " + "  ".join(sources))
for question, answer in answers.items():
    commoner = max(answer.float().mean().item(), 1 - answer.float().mean().item())
    shares = [f"{probe(x, answer):>{len(name)}.3f}" for name, x in sources.items()]
    print(f"{question:>32}  {commoner:8.3f}  " + "  ".join(shares))

# %% [markdown]
# *Commoner* is how often the more frequent of the two answers is right, and the *table* does no better: one vector a
# word knows nothing of its sentence. The forward half knows what stands before, the backward half what comes after.
# The forward half does not see the full stop, and yet does better than the table: from what it has read it can guess
# whether the sentence is about to end.
#
# And the neighbours? For the word *dull* in two places of the test reviews, these are the other adjectives whose
# vectors are nearest, in layer 1:

# %% tags=["hide-input"]
def snippet(k):
    """The adjective number k with what stands around it."""
    around = test_ids[row[k], max(0, place[k] - 3) : place[k] + 2].tolist()
    return " ".join(names[word] for word in around)

space = F.normalize(vectors[:, 1], dim=1)
dull = test_ids[row, place] == vocabulary["dull"]
for flipped in (False, True):
    k = (dull & (answers["not, hardly or far from before?"] == flipped)).nonzero()[0].item()
    likeness = (space @ space[k]).masked_fill(dull, -1.0)
    print(f"\n{snippet(k)}")
    for other in likeness.argsort(descending=True)[:4].tolist():
        print(f"    {likeness[other]:.2f}  {snippet(other)}")

# %% [markdown]
# ## A mix for every task
#
# A reader with two layers has three vectors for a word, layer 0 included. Which one should a task take? [Peters et
# al.](https://arxiv.org/abs/1802.05365) let the task decide (equation 1):
#
# $$\text{ELMo} \;=\; \gamma \sum_{j} \mu_j\, h_j , \qquad \mu = \operatorname{softmax}(\text{raw}) ,$$
#
# with three learned numbers `raw` (the paper writes s for our μ), and a learned scale γ. The reader itself stays as it
# is. In their experiments word senses were better in the second layer, parts of speech in the first (tables 5 and 6).

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `LayerMix`** &nbsp; ★☆☆ · 5 minutes · 2 points
#
# Write the mix as a module with two parameters: `raw` (count,), which starts at zeros, and `gamma`, a single number of
# shape (), which starts at 1. So it starts as the plain mean of the layers.
#
# <details><summary>Hint 1: what is learned</summary>
#
# `nn.Parameter(tensor)` is a tensor that the optimiser finds.
#
# </details>
# <details><summary>Hint 2: two layers by hand</summary>
#
# With `raw` = (0, log 3) the shares are 1/4 and 3/4. Where layer 0 has 4 and layer 1 has 8, the mix is γ · 7. The
# shares are (count,), the layers (b, count, t, w): which shape do the shares need to broadcast?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "LayerMix", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LayerMix(nn.Module):
    """A task's own mean of the layers. count: how many there are.

    Parameters: raw (count,), zeros at first; gamma (), 1 at first.
    """

    def __init__(self, count):
        super().__init__()
        ### BEGIN SOLUTION
        self.raw = nn.Parameter(torch.zeros(count))
        self.gamma = nn.Parameter(torch.tensor(1.0))
        ### END SOLUTION

    def forward(self, layers):
        """layers: (b, count, t, w). Returns (b, t, w)."""
        ### BEGIN SOLUTION
        shares = torch.softmax(self.raw, dim=0)                # (count,)
        return self.gamma * torch.einsum("j,bjtw->btw", shares, layers)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_LayerMix", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(LayerMix)

# %%
torch.manual_seed(0)
mix, judge = LayerMix(3), nn.Linear(128, 1)
learned = [*mix.parameters(), *judge.parameters()]
optimiser = torch.optim.Adam(learned, lr=0.05)
before = answers["not, hardly or far from before?"].float()
for step in range(150):
    logits = judge(mix(vectors.unsqueeze(2))).flatten()         # (adjectives,)
    loss = F.binary_cross_entropy_with_logits(logits, before)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
shares = torch.softmax(mix.raw.detach(), dim=0).tolist()
print("shares of layers 0, 1, 2: " + ", ".join(f"{share:.2f}" for share in shares))

# %% [markdown]
# For the question about *not*, nearly all of the weight goes to layer 1. With such vectors, and no other change,
# [Peters et al.](https://arxiv.org/abs/1802.05365) improved their own models of six tasks and passed the best published
# ones (their table 1): question answering on SQuAD from 81.1 to 85.8 (best before: 84.4), named entities from 90.15 to
# 92.22 (best before: 91.93). Their reader was much larger, with 4,096 units per layer, and read letters instead of a
# table of words: convolutions with 2,048 filters made each word's first vector, so that no word was unknown.

# %% [markdown]
# ## A sentence in one vector
#
# Now to translation. In 2014 [Cho et al.](https://arxiv.org/abs/1406.1078) and [Sutskever, Vinyals and
# Le](https://arxiv.org/abs/1409.3215) joined two recurrent networks: an encoder that reads the source, and a decoder
# that writes the target. Between them stands one vector c for the whole sentence. The decoder's state s goes on from
# word to word, $y_{i-1}$ being the word before:
#
# $$s_i = f(s_{i-1},\, y_{i-1},\, c) .$$
#
# Where does c come from? A reader's last state has seen everything. A reader in both directions has two last states,
# and they do not stand at the same place.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `sentence_vector`** &nbsp; ★★☆ · 5 minutes · 2.5 points
#
# From the outputs of a bidirectional reader, join what each direction has when it has read the whole sentence. The
# outputs of the backward half are already in the order of the words.
#
# <details><summary>Hint 1: where has each of them read everything?</summary>
#
# The forward half has read all words at the last *word*, which is the last column only where there is no padding. The
# backward half began there. Where does it end?
#
# </details>
# <details><summary>Hint 2: two sentences by hand</summary>
#
# With lengths 3 and 5, the forward halves come from columns 2 and 4, and both backward halves from column 0. Indexing
# with two tensors, `x[[0, 1], [2, 4]]`, takes another column from each row.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sentence_vector", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sentence_vector(outputs, lengths):
    """One vector for a whole sentence, from a reader in both directions.

    outputs: (b, t, 2e), in each the forward half first. lengths: (b,), integers from 1 to t.
    Returns (b, 2e).
    """
    ### BEGIN SOLUTION
    e = outputs.shape[-1] // 2
    rows = torch.arange(len(outputs), device=outputs.device)
    last = outputs[rows, lengths - 1, :e]                      # (b, e)
    first = outputs[:, 0, e:]                                  # (b, e)
    return torch.cat([last, first], dim=-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_sentence_vector", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
check(sentence_vector)

# %% [markdown]
# A [popular tutorial](https://github.com/yunjey/pytorch-tutorial) takes the last column for both halves (its
# bidirectional network): there the backward half has read a single word. PyTorch's own answer is the second thing that
# `nn.GRU` returns, the last state of each direction:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
gru = nn.GRU(4, 3, batch_first=True, bidirectional=True)
x, lengths = torch.randn(2, 5, 4), torch.tensor([5, 3])
packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
outputs, last = gru(packed)                                # last: (2, b, e)
outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
same = torch.allclose(sentence_vector(outputs, lengths), torch.cat([*last], dim=-1))
print("the same as PyTorch's last states:", same)

# %% [markdown]
# ## See it break
#
# The task: lists of one to six numbers below 1,000, English to German. A single number is no test, its few words fit
# into almost any vector; a list of six has some thirty words. The model is a bidirectional GRU that reads and a GRU
# that writes, with all layers 64 wide, and **the same c goes into every step** of the decoder. It is trained on 20,000
# lists for some twenty seconds, and judged by **exact match**: a list counts if all of its words are right.

# %%
train_pairs, tests = numeral_lists()
SPECIAL = ["<pad>", "<start>", "<stop>"]
PAD, START, STOP = range(3)
ENGLISH, GERMAN = (SPECIAL + sorted({word for text in side for word in text.split()})
                   for side in zip(*train_pairs))
print(f"{len(train_pairs):,} lists, {len(ENGLISH)} English and {len(GERMAN)} German tokens")
print("{}\n    -> {}".format(*tests[3][0]))

def as_rows(texts, words, ends=False):
    """Texts as lists of ids; with ends, between START and STOP."""
    number = {word: place for place, word in enumerate(words)}
    rows = [[number[word] for word in text.split()] for text in texts]
    return [[START, *row, STOP] for row in rows] if ends else rows

def padded(rows):
    return pad_rows(rows, PAD)[0].to(device())

sources = as_rows([english for english, _ in train_pairs], ENGLISH)
targets = as_rows([german for _, german in train_pairs], GERMAN, ends=True)

# %%
def train(model, steps, batch=64, rate=0.003):
    """Batches of lists of about equal length; the rate falls in the second half."""
    torch.manual_seed(1)
    order = sorted(range(len(targets)), key=lambda k: (len(targets[k]), len(sources[k])))
    groups = [order[k : k + batch] for k in range(0, len(order), batch)]
    optimiser = torch.optim.Adam(model.parameters())
    for step in progress(range(steps), "training"):
        optimiser.param_groups[0]["lr"] = rate * min(1, 2 * (1 - step / steps))
        chosen = groups[torch.randint(len(groups), ()).item()]
        batches = (padded([side[k] for k in chosen]) for side in (sources, targets))
        loss = model.loss(*batches)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

def exact(model, count):
    """The share of the tested lists of `count` numbers that are right, word for word."""
    pairs = tests[count]
    written = model.write(padded(as_rows([e for e, _ in pairs], ENGLISH)), START, STOP, 90)
    said = [" ".join(GERMAN[k] for k in row if k > STOP) for row in written.tolist()]
    return sum(mine == german for mine, (_, german) in zip(said, pairs)) / len(pairs)

STEPS = 550
torch.manual_seed(0)
fixed = finished_parts.RecurrentTranslator(
    len(ENGLISH), len(GERMAN), 64, PAD, one_vector=True
)
train(fixed.to(device()), STEPS)
with_vector = [exact(fixed, count) for count in range(1, 10)]
for count, share in enumerate(with_vector[:6], 1):
    print(f"lists of {count}: {share:.2f} right with one vector")

# %% [markdown]
# One number is translated, six are not, though lists of six are in the training part too. The vector has 64 numbers,
# whatever the sentence holds. Longer training moves the fall to longer lists; raise `STEPS` and see.
#
# [Cho et al. (2014)](https://arxiv.org/abs/1409.1259) found the same in real sentences: the quality falls quickly as
# they grow. [Sutskever et al. (2014)](https://arxiv.org/abs/1409.3215) gave a sentence 8,000 numbers, and a trick: with
# the *source read backwards* their BLEU rose from 25.9 to 30.6 (section 3.3), since the first words of source and
# target came closer together.

# %% [markdown]
# ## Look again
#
# [Bahdanau, Cho and Bengio (2015)](https://arxiv.org/abs/1409.0473) kept the state of the reader at *every* source
# word, the **memory** $h_0, h_1, \dots$, and let the decoder choose before each word that it writes. Its state is
# compared with each $h_j$; a softmax makes weights of the scores; the weighted sum is the context of this step:
#
# $$\alpha_{ij} = \operatorname{softmax}_j \big(\text{score}(s_{i-1}, h_j)\big), \qquad
# c_i = \sum_j \alpha_{ij}\, h_j, \qquad s_i = f(s_{i-1},\, y_{i-1},\, c_i) .$$

# %%
plots.diagrams.vector_or_memory()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The same reader and the same decoder twice. Above, one vector goes into every step. Below, the
# thick lines are new: from every state of the reader to a sum that is made afresh for each word.
#
# </div>
#
# You know this: $s_{i-1}$ is a query, and $h_j$ is key and value in one. What was new then was the idea, and the way to
# compare was a small network, **[additive](../../site/glossary.md#additive-attention)**: both sides are brought to a
# common width, added, and judged by a vector v,
#
# $$\text{score}(s, h_j) = v \cdot \tanh(s\, W_s + h_j\, W_h) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `additive_scores`** &nbsp; mend · ★★☆ · 6 minutes · 3 points
#
# Code like this was published with a well-known small program for translation. It ran, the shapes were right, and the
# model learned something. But whatever the decoder had written, it looked at the same words, with the same weights.
# Find the bug and fix it.
#
# <details><summary>Hint 1: measure before you read</summary>
#
# In a cell of your own, compare the softmax of the scores of two different states.
#
# </details>
# <details><summary>Hint 2: what does the softmax see?</summary>
#
# Let a = 1, v = 2 and `theirs` be 1 and −1. With `ours` = 0 the cell's scores are 2 and −2; with `ours` = 3 they are 8
# and 4. What is the softmax of each? Then compare the code with the formula, sign by sign.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "additive_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def additive_scores(s, memory, w_s, w_h, v):
    """How well the decoder's state fits each vector of the memory.

    s: (b, d). memory: (b, t, m). w_s: (d, a). w_h: (m, a). v: (a,). Returns (b, t).
    """
    ours = (s @ w_s).unsqueeze(1)                              # (b, 1, a)
    theirs = memory @ w_h                                      # (b, t, a)
    ### BEGIN SOLUTION
    return torch.tanh(ours + theirs) @ v
    ### STUDENT GETS
    # return (ours + theirs) @ v
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_additive_scores", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(additive_scores)

# %% [markdown]
# The bug is from [keon/seq2seq](https://github.com/keon/seq2seq) (issue #3, corrected in pull request #6). A relative
# of it stood for years in [PyTorch's own
# tutorial](https://github.com/pytorch/tutorials/blob/main/intermediate_source/seq2seq_translation_tutorial.py) (issues
# #87 and #1098): there the scores were a linear layer of the state and the last word, and did not look at the memory at
# all, only at places. Both models learned, since a GRU can do a
# good deal without attention. Nothing but a picture of the weights, or a count, gives such a bug away.
#
# [Luong, Pham and Manning (2015)](https://arxiv.org/abs/1508.04025) tried simpler scores (section 3.1). **General**:
#
# $$\text{score}(s, h_j) = h_j^\top W s ,$$
#
# with one matrix W, (m, d), since memory and state may differ in width. With W = 1 it is the **dot product**. And if
# you write $W = W_k W_q^\top$, it is lesson 2: $(h_j W_k) \cdot (s\, W_q)$.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `general_scores`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Write the general scores for a batch.
#
# <details><summary>Hint 1: one side at a time</summary>
#
# Either bring the state to the width of the memory, or the memory to the width of the state. Then take a dot product
# for each j.
#
# </details>
# <details><summary>Hint 2: one row by hand</summary>
#
# Let W = [[1, 2], [0, 1], [1, 0]], (3, 2). The state s = (1, 1) becomes W s = (3, 1, 1), and the memory's vector
# (1, 0, 2) has the score 3 + 0 + 2 = 5. In code, states are the rows of (b, 2): what product gives a row (3, 1, 1)?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "general_scores", "locked": false, "schema_version": 3, "solution": true, "task": false}
def general_scores(s, memory, w):
    """How well the decoder's state fits each vector of the memory, by one matrix.

    s: (b, d). memory: (b, t, m). w: (m, d). Returns (b, t).
    """
    ### BEGIN SOLUTION
    asked = s @ w.T                                            # (b, m)
    return (memory @ asked.unsqueeze(-1)).squeeze(-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_general_scores", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(general_scores)

# %% [markdown]
# <div class="card">
#
# **Prediction · `bias_on_keys`** &nbsp; 1 minute · no points
#
# Give the comparison a bias on the side of the memory: $\text{score}(s, h_j) = s \cdot (W_h h_j + b)$, with b drawn at
# random and as large as the rest. For a given state s, how do the weights change?
#
# - **A.** None of them changes, whatever s and b are.
# - **B.** All of them change.
# - **C.** They change for some states and stay for others.
# </div>

# %% nbgrader={"grade": false, "grade_id": "bias_on_keys", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
bias_on_keys = "A"
### STUDENT GETS
# bias_on_keys = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["nbval-check-output"]
draws = torch.Generator().manual_seed(0)
s, memory, w, bias = (torch.randn(*shape, generator=draws, dtype=torch.float64)
                      for shape in [(5, 8), (5, 6, 8), (8, 8), (8,)])
keys = memory @ w                                          # (b, t, 8)
scores = (keys @ s.unsqueeze(-1)).squeeze(-1)              # (b, t)
with_bias = ((keys + bias) @ s.unsqueeze(-1)).squeeze(-1)
print(f"largest change of a score:  {(with_bias - scores).abs().max():.2f}")
change = (with_bias.softmax(-1) - scores.softmax(-1)).abs().max()
print(f"largest change of a weight: {'below 1e-12' if change < 1e-12 else f'{change:.4f}'}")

# %% nbgrader={"grade": true, "grade_id": "check_bias_on_keys", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("bias_on_keys", bias_on_keys)

# %% [markdown]
# Now a whole step of the decoder. It has the token before, its old state, the memory, and a mask that tells words from
# padding.

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `AttentiveDecoder`** &nbsp; ★★★ · 12 minutes · 4.5 points
#
# Write `step` as it was published: the context is chosen by the **old** state. The GRU cell gets the token's
# vector and the context side by side, in this order; the logits come from the new state and the context, in this order.
# The mask may hide any places of a sentence, and leaves at least one. Use `finished_parts.additive_scores`, exercise 6,
# and lesson 5's `masked_softmax(scores, mask)`.
#
# <details><summary>Hint 1: in this order</summary>
#
# Scores, weights, context, new state, logits. Every one of them is one line.
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# With weights 1/4 and 3/4 and a memory of (4, 0) and (0, 8), the context is (1, 6): (b, t) and (b, t, m) give (b, m).
# `self.cell(input, state)` takes (b, e + m) and (b, d), and `torch.cat([...], dim=-1)` joins side by side.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "AttentiveDecoder", "locked": false, "schema_version": 3, "solution": true, "task": false}
class AttentiveDecoder(nn.Module):
    """Writes one token at a time, and looks at the memory before each.

    n: size of the vocabulary. e: width of a token's vector. d: of the state. m: of a vector
    of the memory. a: in which state and memory are compared.
    """

    def __init__(self, n, e, d, m, a):
        super().__init__()
        self.tokens, self.cell = nn.Embedding(n, e), nn.GRUCell(e + m, d)
        self.w_s, self.w_h = (nn.Parameter(torch.randn(w, a) / w**0.5) for w in (d, m))
        self.v = nn.Parameter(torch.randn(a) / a**0.5)
        self.to_logits = nn.Linear(d + m, n)

    def step(self, y, s, memory, mask):
        """y: (b,), ids of the token before. s: (b, d), the old state. memory: (b, t, m).
        mask: (b, t), booleans, True at words.

        Returns logits (b, n), the new state (b, d), and the weights (b, t).
        """
        ### BEGIN SOLUTION
        scores = finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)
        weights = masked_softmax(scores, mask)                     # (b, t)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)            # (b, m)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)   # (b, d)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_AttentiveDecoder", "locked": true, "points": 4.5, "schema_version": 3, "solution": false, "task": false}
check(AttentiveDecoder)

# %% [markdown]
# One more place to go wrong: a published attention took its softmax over the batch ([PyTorch-NLP, issue
# #2](https://github.com/PetrochukM/PyTorch-NLP/issues/2)), so that with a batch of one every weight was 1.
#
# The same reader, the same data, the same steps; and your decoder, which gets all states of the reader and not one
# vector:

# %%
torch.manual_seed(0)
attentive = finished_parts.RecurrentTranslator(
    len(ENGLISH), len(GERMAN), 64, PAD, decoder=AttentiveDecoder
)
train(attentive.to(device()), STEPS)
with_attention = [exact(attentive, count) for count in range(1, 10)]
for count in range(1, 7):
    print(f"lists of {count}: {with_vector[count - 1]:.2f} right with one vector, "
          f"{with_attention[count - 1]:.2f} with attention")

# %% [markdown]
# <div class="card">
#
# **Prediction · `beyond_six`** &nbsp; 1 minute · no points
#
# No list in the training part has more than six numbers. How does the model with attention do on lists of seven, and on
# lists of eight?
#
# - **A.** On both nearly as well as on six: no vector has to hold the list any more.
# - **B.** Clearly worse on seven, and hardly any of eight are right.
# - **C.** None right on either, as the model with one vector.
# </div>

# %% nbgrader={"grade": false, "grade_id": "beyond_six", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
beyond_six = "B"
### STUDENT GETS
# beyond_six = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "Exact match against the number of numerals in a list, from 1 to 9. With one vector the curve falls from 1 at one number to about 0.2 at three and to 0 from four on. With attention it stays above 0.9 up to six, where a dotted line marks the longest lists of the training; at seven it is near 0.4, at eight near 0."}}
counts = list(range(1, 10))
plots.curves({"one vector": (counts, with_vector), "attention": (counts, with_attention)},
             "numbers in the list", "lists right, word for word")
plt.gca().axvline(6.5, color="grey", linestyle=":")
plt.gca().annotate("trained up to here", (6.42, 0.3), rotation=90, ha="right", va="center")
plt.gca().set(xticks=counts, ylim=(-0.03, 1.05))
plt.show()
for count in (7, 8):
    print(f"lists of {count}: {with_attention[count - 1]:.2f} right with attention")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One point for a hundred lists of the same count. Left of the dotted line the training held lists
# as long as these, right of it none.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_beyond_six", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("beyond_six", beyond_six)

# %% [markdown]
# Two different things fail here. The left part of the picture is the bottleneck, and attention removes it. The right
# part is another fault, which attention does not touch: a model used beyond the lengths of its training. Lesson 6 met
# it in positions.
#
# In real translation ([Bahdanau et al.](https://arxiv.org/abs/1409.0473), table 1, all sentences), the model with one
# vector, trained on sentences of up to 50 words, reached 17.82 BLEU, and with attention 26.75; the phrase-based system
# Moses stood at 33.30. Their figure 2 is ours: one curve falls with the length, the other does not.

# %% [markdown]
# ## Where it looked
#
# The weights can be looked at, and the authors did: their maps were called **alignments**, after the lists of word
# pairs that translation programs had kept before.

# %%
@torch.no_grad()
def alignment(english, german):
    """Where the decoder looked before each German word and the stop: (words + 1, s)."""
    target = padded(as_rows([german], GERMAN, ends=True))
    return attentive.eval()(padded(as_rows([english], ENGLISH)), target[:, :-1])[1][0].cpu()

english = "forty seven , three hundred and two"
german = "sieben und vierzig , drei hundert zwei"
weights = alignment(english, german)

# %% tags=["hide-input"] mystnb={"image": {"alt": "A heat map. Rows are the German words sieben, und, vierzig, comma, drei, hundert, zwei and the stop, columns the English words forty seven, comma, three hundred and two. Before sieben nearly all of the weight is on seven, before vierzig on forty, so that the dark cells of the first number cross; for the comma and for drei, hundert and zwei they go straight on. Before the stop the weight is spread over all words."}}
plots.heat(weights, [*german.split(), "<stop>"], english.split(), scale=1, bar=True,
           row_label="about to write", column_label="looks at")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A row for each German word, at the moment before it is written; a column for each English word.
# Dark: it looks there. *sieben* looks at *seven*, *vierzig* goes back to *forty*, and then it goes straight on. *und*
# looks at the ten, whose presence decides that an *und* comes. Only the stop has no word to look at.
#
# </div>
#
# Is it a habit? In the tested lists of three, take every German unit in front of a ten, as *sieben* in *sieben und
# vierzig*, and measure which way the weight moves between the two words: its mean place in the source before the unit
# is written, and before the ten is.

# %% tags=["hide-input"]
moved = []
for english, german in tests[3][:100]:
    words, places = german.split(), None
    for k in range(1, len(words) - 1):
        if words[k] == "und":
            if places is None:
                looked = alignment(english, german)
                places = looked @ torch.arange(looked.shape[1]).float()    # (words + 1,)
            moved.append((places[k - 1] > places[k + 1]).item())
share = sum(moved) / len(moved)
print(f"{len(moved)} units before a ten; for {share:.0%} the weight moves back, "
      "from the unit to the ten")

# %% [markdown]
# ## What is the recurrence for?
#
# With attention, the context $c_i$ carries whatever the decoder needs of the source. And the reader? Its states are
# there to tell each word what stands around it, which attention could do as well. What recurrence costs is easy to see.

# %%
plots.diagrams.waiting_steps()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above, each state needs the one before it, so t steps follow one another. Below, all positions are
# computed together; nothing waits.
#
# </div>
#
# How much does the waiting cost, even on one core, which can do only one thing at a time anyway? Four ways through t
# vectors of width 128, best of three: a GRU; the three products of the GRU's input side (128 times 384), one position
# after the other; the same multiplications in a single product; and self-attention.

# %% tags=["hide-input"]
def milliseconds(work, tries=3):
    times = []
    for _ in range(tries):
        begin = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - begin))
    return min(times)

gru, w = nn.GRU(128, 128, batch_first=True), torch.randn(128, 384)
print("     t     GRU   one by one   at once   attention    milliseconds")
with torch.no_grad():
    for t in (64, 256, 1024):
        x = torch.randn(1, t, 128)
        q = torch.randn(1, 4, t, 32)
        times = [
            milliseconds(lambda: gru(x)),
            milliseconds(lambda: [row @ w for row in x[0].split(1)]),
            milliseconds(lambda: x[0] @ w),
            milliseconds(lambda: F.scaled_dot_product_attention(q, q, q)),
        ]
        print("{:>6} {:>7.2f} {:>12.2f} {:>9.2f} {:>11.2f}".format(t, *times))

# %% [markdown]
# The second and the third column of times are the same multiplications. One by one, as a recurrence has to do them,
# they take several times as long, and on a machine with thousands of cores most of the cores would wait as well. To be
# fair, attention's own cost grows with t², so that its lead over the GRU shrinks as the text grows. Lesson 16 is about
# that.
#
# [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) put it into a table (table 1): for a sequence of length n, n
# steps that must follow one another against one, and a path of length n between two far positions against one of length
# 1. They took the recurrence out of reader and writer and let each sequence attend to *itself*, which is where the name
# self-attention comes from. Lesson 6's positions came in, since nothing walked through the text any more.
#
# They kept the dot product and not the additive score. On paper both cost the same; in practice the dot product is one
# matrix product, and its weakness at large widths is mended by lesson 3's √d (section 3.2.1). What came out is [lesson
# 10](../10_encoder_decoder/10_encoder_decoder.ipynb).

# %% [markdown]
# ## What you can do now
#
# You can train word vectors by a guessing game; build a language model in each direction and take a word's vector from
# its sentence; mix layers for a task; tell a bidirectional reader that leaks from one that does not; show where a
# single vector for a sentence gives out; and write the attention that was invented to fix it, in two of its three
# forms.
#
# **Three questions to think about**
#
# <details><summary>1. The published ELMo carries its LSTMs' states from one batch to the next. What can go wrong when
# it is used?</summary>
#
# The vectors of a sentence depend on what was read before it. The same sentence twice gives two results ([allennlp
# issue
# #1169](https://github.com/allenai/allennlp/issues/1169)). In training on running text it is an advantage: the context
# reaches further back. [Lesson 15](../15_transformer_xl/15_transformer_xl.ipynb) comes back to that.
#
# </details>
# <details><summary>2. In Luong's decoder the context is chosen by the *new* state, after the GRU. What does the GRU
# then not know?</summary>
#
# What is looked at in this step: the new state is computed without it, and the context only helps to make the logits.
# [Luong et al.](https://arxiv.org/abs/1508.04025) feed the joined vector of state and context into the next step, so
# that it is known one step later (section 3.3).
#
# </details>
# <details><summary>3. With one vector, why does reading the source backwards help, when every word is still as far from
# its translation on average?</summary>
#
# The mean distance stays, but the first words come close to each other: the decoder gets the beginning right, and what
# follows rests on a good beginning. The authors expected the later words to pay for it, and found that long sentences
# gained too (section 3.3).
#
# </details>
#
# **Further reading**
#
# - **[Bahdanau, Cho and Bengio, *Neural machine translation by jointly learning to align and translate*,
#   2015](https://arxiv.org/abs/1409.0473)**: sections 2 and 3, and figures 2 and 3.
# - [Luong, Pham and Manning, *Effective approaches to attention-based neural machine translation*,
#   2015](https://arxiv.org/abs/1508.04025), section 3.
# - [Cho et al., *On the properties of neural machine translation*, 2014](https://arxiv.org/abs/1409.1259), section 4.
# - [Sutskever, Vinyals and Le, *Sequence to sequence learning with neural networks*,
#   2014](https://arxiv.org/abs/1409.3215), section 3.3.
# - [Mikolov et al., *Distributed representations of words and phrases and their compositionality*,
#   2013](https://arxiv.org/abs/1310.4546), section 2.
# - [Levy and Goldberg, *Neural word embedding as implicit matrix factorization*,
#   2014](https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization).
# - [Peters et al., *Deep contextualized word representations*, 2018](https://arxiv.org/abs/1802.05365), sections 3
#   and 5.
# - [İrsoy, Benton and Stratos, *Corrected CBOW performs as well as skip-gram*, 2021](https://arxiv.org/abs/2012.15332):
#   a gradient that the published word2vec has wrong, and whether it matters.
#
# **Next:** [lesson 14, *BERT*](../14_bert/14_bert.ipynb)
