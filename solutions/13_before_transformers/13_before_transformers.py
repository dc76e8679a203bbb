# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 13 · Before transformers
#
# *What attention was invented for*
#
# Attention is older than the transformer. It entered translation to fix a network that translated short sentences well
# and failed on long ones. (A network that writes by hand had learned before to move a soft window along its text:
# [Graves, 2013](https://arxiv.org/abs/1308.0850).) This lesson builds the cell of that network, measures how it forgets, makes the network fail, and
# fixes it. Then comes the question that led to the transformer: if attention does all this, what is the recurrence
# still for? The last part, on the way to lesson 14, answers a question that lesson 1 left open: where do good word
# vectors come from?
#
# | | |
# |---|---|
# | **You will build** | a recurrent cell with gates, a sentence in one vector, the first attention, word vectors learned from neighbouring words, and a pair of language models that read in opposite directions; and you fix a score |
# | **You need** | lessons [1](../01_dot_product_attention/01_dot_product_attention.ipynb), [2](../02_queries_keys_values/02_queries_keys_values.ipynb), [5](../05_masking/05_masking.ipynb) and [10](../10_encoder_decoder/10_encoder_decoder.ipynb) |
# | **It takes** | about 125 minutes: eight exercises, 25 points, and two predictions |
# | **It computes** | for about a minute, mostly to train two models; any laptop will do |
#
# The letters follow [the notation table](../../site/notation.md): b is the batch size, t the number of positions that
# are read, e a width. Some letters follow the papers of this lesson: s is a state and d its width, m is
# the width of the vectors that the decoder looks at, and a is the width in which the two are compared.

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
# ## A state that reads
#
# A **recurrent** network goes through a text word by word ([lesson
# 7](../07_transformer_block/07_transformer_block.ipynb)). It keeps a **state**, a vector that it updates at each word.
# With $x_i$ (b, e) for the word's vector and $s_i$ (b, d) for the state, the simplest update ([Elman,
# 1990](https://doi.org/10.1207/s15516709cog1402_1)) is
#
# $$s_i = \tanh(x_i W_x + s_{i-1} W_s + b) .$$

# %%
class PlainCell(nn.Module):
    """One step of the simplest recurrent network. W_s is g times an orthogonal matrix."""

    def __init__(self, e, d, g=1.0):
        super().__init__()
        self.w_x = nn.Parameter(torch.randn(e, d) / e**0.5)
        self.w_s = nn.Parameter(g * torch.linalg.qr(torch.randn(d, d))[0])
        self.b = nn.Parameter(torch.zeros(d))

    def forward(self, x, s):
        """x: (b, e), a word. s: (b, d), the old state. Returns the new state, (b, d)."""
        return torch.tanh(x @ self.w_x + s @ self.w_s + self.b)

# %% [markdown]
# The state at word t depends on every word before it, but through a chain of steps. What is left of the first state
# after t steps? By the chain rule, $\partial s_t / \partial s_0$ is a product of t matrices, one for each step: $W_s$
# and the slope of the tanh, which is at most 1. An orthogonal matrix keeps all lengths, so g times an orthogonal matrix
# multiplies each length by g, and the product can stretch no vector by more than $g^t$. The function below measures the
# largest stretch:

# %%
@torch.no_grad()
def state_slopes(cell, words, d=64):
    """|∂ s_t / ∂ s_0| for t = 1, 2, ...: the largest factor for a small change of s_0."""
    s, product, found = torch.zeros(d), torch.eye(d), []
    for x in words:
        step = torch.func.jacrev(lambda s: cell(x[None], s[None])[0])(s)    # (d, d)
        s, product = cell(x[None], s[None])[0], step @ product
        found.append(torch.linalg.matrix_norm(product, 2).item())
    return found

torch.manual_seed(0)
words = 0.1 * torch.randn(60, 64)    # sixty small random words: the tanh stays steep
plain = {f"g = {g}": state_slopes(PlainCell(64, 64, g), words) for g in (0.8, 1.0, 1.5)}
loud = {"g = 1.5, words × 10": state_slopes(PlainCell(64, 64, 1.5), 10 * words)}
for name, found in {**plain, **loud}.items():
    print(f"{name:>19}: {found[9]:.1e} after 10 words, {found[59]:.1e} after 60")

# %% [markdown]
# With g below 1 the gradient **vanishes**: an error at word 60 hardly reaches word 1. With g above 1 it **explodes**,
# but only while the tanh is steep: with words ten times as large it vanishes even with g = 1.5. Exploding gradients can
# be clipped ([Pascanu et al., 2013](https://arxiv.org/abs/1211.5063)), as `train` does below. Vanishing is the harder
# problem ([Bengio, Simard and Frasconi, 1994](https://doi.org/10.1109/72.279181)). What is needed is a path that does
# not go through $W_s$ and a tanh at every step.
#
# The **LSTM** ([Hochreiter and Schmidhuber, 1997](https://doi.org/10.1162/neco.1997.9.8.1735)) and the **GRU** ([Cho et
# al., 2014](https://arxiv.org/abs/1406.1078)) have such a path. In PyTorch's GRU,
#
# $$s_i = z_i \odot s_{i-1} + (1 - z_i) \odot \tilde s_i , \qquad z_i = \sigma(x_i W_z + s_{i-1} U_z + b_z) ,$$
#
# where $\odot$ multiplies component by component and $\sigma$ is the sigmoid. Each component of the **gate** z is
# between 0 and 1; where it is near 1, the old state passes almost unchanged. What is new, $\tilde s_i$, comes from the
# plain cell, with one change: what comes from the old state is first multiplied by a second gate r. This r has the same
# form as z, and weights of its own:
#
# $$\tilde s_i = \tanh\big(x_i W_x + b_x + r_i \odot (s_{i-1} W_s + b_s)\big) .$$

# %%
plots.diagrams.gated_cell()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One step of a GRU. The thick line is the path from the old state to the new one: it crosses one
# product with the gate and one sum, but no matrix and no tanh. Below it are the two gates and what is new, all of them
# computed from the word and the old state.
#
# </div>
#
# **What every check asks.** New tensors must be created on the device of the inputs. The inputs stay unchanged.
# Gradients must flow to the inputs and to a module's parameters. Do not use `finished_parts` unless the card says so.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `gru_step`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Write one step of the GRU, as in the formulas. The weights of r, z and $\tilde s$ are side by side, as PyTorch stores
# them: of the 3d columns of each matrix and bias, the first d belong to r, the next d to z, the last d to $\tilde s$.
# So each gate, like $\tilde s$, has two biases, one for each matrix; $b_z$ is their sum. Do not call PyTorch's own GRU.
#
# <details><summary>Hint 1: how many matrix products?</summary>
#
# Two are enough, one for the word and one for the state, each (b, 3d). `chunk(3, dim=-1)` cuts such a tensor into three
# parts. For which of the three parts may you add word and state right away?
#
# </details>
# <details><summary>Hint 2: a state of one number</summary>
#
# Let d = 1 and the old state be 4. For r, z and new, the word's side has 0, log 3 and 1, the state's side 0, 0 and −2.
# Then r = σ(0) = 1/2 and z = σ(log 3) = 3/4. What is new is tanh(1 − 1) = 0, and the state becomes 3/4 · 4 + 1/4 · 0 =
# 3. Which of these numbers change if z is 1?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "gru_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gru_step(x, s, w_x, w_s, b_x, b_s):
    """One step of a gated recurrent unit: reads a word and returns the new state.

    x: (b, e), the word. s: (b, d), the old state. w_x: (e, 3d). w_s: (d, 3d).
    b_x, b_s: (3d,). In each of the last four, columns 0 to d − 1 belong to r, the next d to
    z, the last d to s~. Returns (b, d).
    """
    ### BEGIN SOLUTION
    x_r, x_z, x_new = (x @ w_x + b_x).chunk(3, dim=-1)         # (b, d) each
    s_r, s_z, s_new = (s @ w_s + b_s).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + s_r), torch.sigmoid(x_z + s_z)
    new = torch.tanh(x_new + r * s_new)
    return z * s + (1 - z) * new
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_gru_step", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(gru_step)

# %% [markdown]
# If the gate is why a GRU can remember, its slope must depend on the bias of z. Take the weights of one untrained
# PyTorch cell, and raise only the d numbers of $b_x$ that belong to z, by 2 and by 4:

# %%
torch.manual_seed(0)
theirs = nn.GRUCell(64, 64)    # keeps its matrices transposed, (3d, e) and (3d, d)
w_x, w_s = theirs.weight_ih.detach().T, theirs.weight_hh.detach().T
b_x, b_s = theirs.bias_ih.detach(), theirs.bias_hh.detach()
x, s = torch.randn(2, 5, 64)
same = torch.allclose(gru_step(x, s, w_x, w_s, b_x, b_s), theirs(x, s), atol=1e-6)
print("the same as PyTorch's cell:", same)

gated = {}
for bias in (0, 2, 4):
    raised = b_x.clone()
    raised[64:128] += bias
    cell = lambda x, s: gru_step(x, s, w_x, w_s, raised, b_s)
    gated[f"gate bias {bias}"] = state_slopes(cell, words)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels, the slope of state t with respect to the first state, on a logarithmic axis, from 1 to 60 words. Plain cell: with g = 0.8 a straight fall to below a millionth, with g = 1 a slow fall to about a twentieth, with g = 1.5 a rise above a thousand. GRU: with a gate bias of 0 a straight fall to about 1e-11, with 2 to about a hundredth, with 4 almost flat, ending near a half."}}
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), sharey=True, layout="compressed")
for ax, (title, series) in zip(axes, {"plain cell": plain, "GRU": gated}.items()):
    plots.curves({name: (range(1, 61), found) for name, found in series.items()},
                 "words read, t", "|∂ s_t / ∂ s_0|", log="y", title=title, ax=ax)
axes[1].set_ylabel("")
plt.show()
for name, found in gated.items():
    print(f"GRU, {name}: {found[9]:.1e} after 10 words, {found[59]:.1e} after 60")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** By how much a small change of the first state can change the state t words later, on a logarithmic
# axis: a straight line falls or grows by the same factor at each word. Both kinds of cell are untrained and read the
# same sixty words.
#
# </div>
#
# The gate decides. With a bias of 0 the gates are about 1/2, and the GRU forgets faster than the plain cell with g =
# 0.8. With a bias of 4 they are about $\sigma(4) = 0.98$, and half of the slope is left after sixty words. So a GRU
# does not remember by itself, but it can *learn* what to keep, because its gates depend on the word and on the state. A
# second limit remains, however well it learns: the state has d numbers, however long the text is.

# %% [markdown]
# ## A sentence in one vector
#
# In 2014 [Cho et al.](https://arxiv.org/abs/1406.1078) and [Sutskever, Vinyals and Le](https://arxiv.org/abs/1409.3215)
# joined two recurrent networks for translation: an encoder that reads the source, and a decoder that writes the target.
# Between them is one vector c for the whole sentence. The decoder of Cho et al. updates its state s at each word, where
# $y_{i-1}$ is the previous word:
#
# $$s_i = f(s_{i-1},\, y_{i-1},\, c) .$$
#
# Where does c come from? A reader's last state has seen everything. A **bidirectional** reader is two readers with
# weights of their own: one reads the sentence forwards and one backwards, and at each word their states are joined. It
# has two last states, and they are at different positions.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `sentence_vector`** &nbsp; ★★☆ · 5 minutes · 2.5 points
#
# From the outputs of a bidirectional reader, join the two vectors, one per direction, that have read the whole
# sentence. The outputs of the backward half are already in the order of the words.
#
# <details><summary>Hint 1: where has each direction read everything?</summary>
#
# The forward half has read all words at the last *word*, which is the last column only if there is no padding. The
# backward half began there. Where does it end?
#
# </details>
# <details><summary>Hint 2: two sentences by hand</summary>
#
# With lengths 3 and 5, the forward halves come from columns 2 and 4, and both backward halves from column 0. Indexing
# with two tensors, `x[[0, 1], [2, 4]]`, takes a different column from each row.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "sentence_vector", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sentence_vector(outputs, lengths):
    """One vector for a whole sentence, from a reader in both directions.

    outputs: (b, t, 2e), in each the forward half first. lengths: (b,), int64, from 1 to t.
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
# A [popular tutorial](https://github.com/yunjey/pytorch-tutorial) takes the last column for both halves (in its
# bidirectional network), where the backward half has read a single word. PyTorch's own answer is the second thing that
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
# The task: lists of one to six numbers below 1,000, English to German. A single number is too easy, because its few
# words fit into almost any vector; a list of six has many more. A bidirectional GRU reads and another GRU writes, all
# layers are 64 wide, and **the same c goes into every step** of the decoder. The model is trained on 20,000 lists for
# about twenty seconds and judged by **exact match**: a list counts if all of its words are right.

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

def translate(model, count):
    """What the model writes for the tested lists of `count` numbers."""
    english = [english for english, _ in tests[count]]
    written = model.write(padded(as_rows(english, ENGLISH)), START, STOP, 90)
    return [" ".join(GERMAN[k] for k in row if k > STOP) for row in written.tolist()]

def exact(model, count):
    """The share of these lists that are right, word for word."""
    written = translate(model, count)
    right = [mine == german for mine, (_, german) in zip(written, tests[count])]
    return sum(right) / len(right)

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
# The model can translate one number but not six, although the training set has lists of six, too. The vector has 64
# numbers, however long the sentence is. Longer training helps: the fall then comes at longer lists. Raise `STEPS` and
# see.
#
# [Cho et al. (2014)](https://arxiv.org/abs/1409.1259) found the same in real sentences: the quality falls quickly as
# they get longer. [Sutskever et al. (2014)](https://arxiv.org/abs/1409.3215) used 8,000 numbers for a sentence, and a
# trick: with the *source read backwards* their BLEU rose from 25.9 to 30.6 (section 3.3). Their explanation: the first
# words of the source come closer to the first words of the target.

# %% [markdown]
# ## Look again
#
# [Bahdanau, Cho and Bengio (2015)](https://arxiv.org/abs/1409.0473) kept the state of the reader at *every* source
# word, the **memory** $h_0, h_1, \dots$, and let the decoder choose from it before each word that it writes. The
# decoder's state is compared with each $h_j$; a softmax turns the scores into weights; the weighted sum is the context
# of this step:
#
# $$\alpha_{ij} = \operatorname{softmax}_j \big(\text{score}(s_{i-1}, h_j)\big), \qquad
# c_i = \sum_j \alpha_{ij}\, h_j, \qquad s_i = f(s_{i-1},\, y_{i-1},\, c_i) .$$

# %%
plots.diagrams.vector_or_memory()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The same reader and the same decoder, twice. Above, one vector goes into every step. Below, the
# thick lines are new: they lead from every state of the reader to a sum that is computed anew for each word.
#
# </div>
#
# You know this: $s_{i-1}$ is a query, and $h_j$ is both key and value. In 2015 the idea was new in translation, and the scores came
# from a small network. The score is **[additive](../../site/glossary.md#additive-attention)**: both sides are projected
# to a common width and added; a tanh is applied, and the result is multiplied by a vector v,
#
# $$\text{score}(s, h_j) = v \cdot \tanh(s\, W_s + h_j\, W_h) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `additive_scores`** &nbsp; fix · ★★☆ · 6 minutes · 3 points
#
# A well-known small translation program was published with code like this. It ran, the shapes were right, and the model
# learned something. But whatever the decoder had written, it looked at the same words with the same weights. Find the
# bug and fix it.
#
# <details><summary>Hint 1: measure before you read</summary>
#
# In a cell of your own, compare the softmax of the scores of two different states.
#
# </details>
# <details><summary>Hint 2: what does the softmax see?</summary>
#
# Let a = 1, v = 2 and `theirs` be 1 and −1. With `ours` = 0 the cell's scores are 2 and −2; with `ours` = 3 they are 8
# and 4. What is the softmax of each? Then compare the code with the formula, symbol by symbol.
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
# The bug is from [keon/seq2seq](https://github.com/keon/seq2seq) (issue #3). Pull request #6, meant to
# correct it, put a softmax where the tanh belongs and a ReLU over the positions, and brought new errors. [PyTorch's
# own tutorial](https://github.com/pytorch/tutorials/blob/main/intermediate_source/seq2seq_translation_tutorial.py) had
# a similar bug for years (issues #87 and #1098): there the scores were a linear layer of the state and the last word,
# so a position got its weight whatever word of the source stood there. Both models learned, because a GRU can do a good
# deal without attention. Only a picture of the weights, or a measurement, reveals such a bug.
#
# [Luong, Pham and Manning (2015)](https://arxiv.org/abs/1508.04025) tried simpler scores (section 3.1). **General**:
#
# $$\text{score}(s, h_j) = h_j^\top W s ,$$
#
# with one matrix W, (m, d), because memory and state may differ in width. If W is the identity, it is the **dot
# product**. And with $W = W_k W_q^\top$ it is lesson 2's score: $(h_j W_k) \cdot (s\, W_q)$.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `general_scores`** &nbsp; ★☆☆ · 4 minutes · 2 points
#
# Write the general scores for a batch.
#
# <details><summary>Hint 1: one side at a time</summary>
#
# Either project the state to the width of the memory, or the memory to the width of the state. Then take a dot product
# for each j.
#
# </details>
# <details><summary>Hint 2: one row by hand</summary>
#
# Let W = [[1, 2], [0, 1], [1, 0]], (3, 2). The state s = (1, 1) becomes W s = (3, 1, 1), and the vector (1, 0, 2) of
# the memory gets the score 3 + 0 + 2 = 5. In code, the states are the rows of a (b, 2) tensor: which product has the
# row (3, 1, 1)?
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
# Add a bias on the side of the memory: $\text{score}(s, h_j) = s \cdot (W_h h_j + b)$, with b drawn at random and of
# the same size as the rest. For a given state s, how do the attention weights change?
#
# - **A.** None of them changes, whatever s and b are.
# - **B.** All of them change.
# - **C.** They change for some states and not for others.
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
# Now write a whole step of the decoder. Its inputs are the previous token, its old state, the memory, and a mask that
# separates words from padding.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `AttentiveDecoder`** &nbsp; ★★★ · 12 minutes · 4.5 points
#
# Write `step` as it was published: the context is computed with the **old** state. The GRU cell gets the token's vector
# and the context side by side, in this order; the logits come from the new state and the context, in this order. The
# mask may hide any positions of a sentence, but leaves at least one. Use `finished_parts.additive_scores`, exercise 3,
# and lesson 5's `masked_softmax(scores, mask)`.
#
# <details><summary>Hint 1: in this order</summary>
#
# Scores, weights, context, new state, logits. Each of them takes one line.
#
# </details>
# <details><summary>Hint 2: shapes</summary>
#
# With weights 1/4 and 3/4 and a memory of (4, 0) and (0, 8), the context is (1, 6): (b, t) and (b, t, m) give (b, m).
# `self.cell(input, state)` takes (b, e + m) and (b, d), and `torch.cat([...], dim=-1)` joins two vectors side by side.
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
# One more published bug: an attention took its softmax over the batch ([PyTorch-NLP, issue
# #2](https://github.com/PetrochukM/PyTorch-NLP/issues/2)), so that with a batch of one every weight was 1.
#
# Now the same reader, the same data and the same number of steps, but your decoder, which gets all states of the reader
# instead of one vector:

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
# No list in the training set has more than six numbers. How does the model with attention do on lists of seven, and on
# lists of eight?
#
# - **A.** Nearly as well as on six, for both: no vector has to hold the list any more.
# - **B.** Clearly worse on seven, and hardly any of eight are right.
# - **C.** None is right on either, as with one vector.
# </div>

# %% nbgrader={"grade": false, "grade_id": "beyond_six", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
beyond_six = "B"
### STUDENT GETS
# beyond_six = ...    # "A", "B" or "C"
### END SOLUTION

# %% mystnb={"image": {"alt": "Exact match against the number of numerals in a list, from 1 to 9. With one vector the curve falls from 1 at one number to about 0.2 at three and to 0.01 or less from four on. With attention it stays above 0.9 up to six; a dotted line just beyond six marks the longest lists of the training set. At seven it is near 0.4, at eight and nine near 0."}}
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
# **How to read it.** Each point stands for a hundred lists of the same length. The training set has lists as long as
# those to the left of the dotted line, and none longer.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_beyond_six", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("beyond_six", beyond_six)

# %% [markdown]
# Two different things fail here. On the left of the picture is the bottleneck, which attention removes. On the right, a
# model is used beyond the lengths of its training, and there attention does not help for long: 0.43 at seven, 0.04 at
# eight. Lesson 6 had the same problem with positions.
#
# In real translation ([Bahdanau et al.](https://arxiv.org/abs/1409.0473), table 1, all sentences), the model with one
# vector, trained on sentences of up to 50 words, reached 17.82 BLEU, and with attention 26.75; the phrase-based system
# Moses reached 33.30. Their figure 2 looks like the left part of ours: for these two models, the curve with one vector
# falls with the length, and the one with attention does not.

# %% [markdown]
# ## Where it looked
#
# The weights can be plotted, as the authors did. They called the maps **alignments**, after the word pairs that earlier
# translation systems computed.

# %%
@torch.no_grad()
def alignment(english, german):
    """Where the decoder looked before each German word and the stop: (words + 1, s)."""
    target = padded(as_rows([german], GERMAN, ends=True))
    return attentive.eval()(padded(as_rows([english], ENGLISH)), target[:, :-1])[1][0].cpu()

english = "forty seven , three hundred and two"
german = "sieben und vierzig , drei hundert zwei"
weights = alignment(english, german)

# %% tags=["hide-input"] mystnb={"image": {"alt": "A heat map. Rows are the German words sieben, und, vierzig, comma, drei, hundert, zwei and the stop, columns the English words forty seven, comma, three hundred and two. Before sieben nearly all of the weight is on seven, before und most of it and before vierzig nearly all of it on forty, so that the dark cells of the first number cross; for the comma and for drei, hundert and zwei they follow the order of the words. Before the stop the weight is spread over all words."}}
plots.heat(weights, [*german.split(), "<stop>"], english.split(), scale=1, bar=True,
           row_label="about to write", column_label="looks at")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each German word, just before it is written; one column for each English word. Darker
# means more weight. *sieben* looks at *seven*, *vierzig* goes back to *forty*, and the rest follows the order of the
# words. *und* looks at *forty*: German needs an *und* only if there is such a ten. Only the stop has no word to look
# at.
#
# </div>
#
# Does this happen regularly? In the test lists of three, take every German unit before a ten, such as *sieben* in
# *sieben und vierzig*. Compare the mean source position of the weight before the unit is written with that before the
# ten: does it move back?

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
# The same instrument shows what goes wrong in longer lists than those of the training set. Let the model translate, and
# look at its weights while it writes. For each number of the list, take the step at which it gets the most weight. How
# much is that?

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels. Left, the largest weight on each number of a list: in lists of four at least 0.9 for all, in lists of six at least about 0.77, in lists of eight falling from 0.97 at the first to below 0.5 at the fifth and sixth and rising to about 0.7 at the eighth. Right, bars for the first wrong number of the lists of eight that come out one short: none at the first two, about twenty each at the fourth and fifth, sixteen at the sixth, few at the third and seventh, one at the eighth."}}
def most_weight(english, german):
    """For each number of a list, the largest weight on its words before any German word."""
    weights, words = alignment(english, german), english.split()
    number = [-1 if word == "," else words[:k].count(",") for k, word in enumerate(words)]
    number = torch.tensor(number)    # (s,), −1 at commas
    return torch.stack([weights[:, number == k].sum(dim=1).max()
                        for k in range(words.count(",") + 1)])

def looks(count):
    """Mean of the above over the tested lists of `count` numbers, while the model writes."""
    pairs = zip(tests[count], translate(attentive, count))
    weights = [most_weight(english, mine) for (english, _), mine in pairs]
    return torch.stack(weights).mean(dim=0)

short, one_left_out, least_seen = [], 0, 0    # lists of eight that come out one number short
for mine, (english, german) in zip(translate(attentive, 8), tests[8]):
    if mine.count(",") == german.count(",") - 1:
        said, right = mine.split(" , "), german.split(" , ")
        short.append((said, right))
        left_out = [k for k in range(8) if right[:k] + right[k + 1:] == said]
        one_left_out += bool(left_out)
        least_seen += int(most_weight(english, mine).argmin()) in left_out
first_wrong = [next((k for k, (a, b) in enumerate(zip(*each)) if a != b), 7)
               for each in short]
wrong = torch.tensor(first_wrong, dtype=torch.int64).bincount(minlength=8)

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="compressed")
plots.curves({f"lists of {count}": (range(1, count + 1), looks(count))
              for count in (4, 6, 8)},
             "number of the list", "largest weight, mean", ax=axes[0])
axes[0].set(xticks=range(1, 9), ylim=(0, 1.03))
axes[1].bar(range(1, 9), wrong, color=plots.COLOURS[1])
axes[1].set(xticks=range(1, 9), xlabel="first wrong number",
            ylabel="lists of eight, one short")
plt.show()
ends = sum(said[-1] == right[-1] for said, right in short)
print(f"of 100 lists of eight, {len(short)} come out exactly one number short; "
      f"in {ends} of these the last number is right")
print(f"the first wrong number is the fourth, fifth or sixth in {wrong[3:6].sum()}")
print(f"one number is left out and all others are right in {one_left_out}; "
      f"in {least_seen} of these it is the one with the least weight")
print("largest weight, lists of eight: " + ", ".join(f"{x:.2f}" for x in looks(8)))
print("largest weight, lists of six:   " + ", ".join(f"{x:.2f}" for x in looks(6)))

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Left: for each number of a list, the weight of all its words at the step where it is largest,
# averaged over a hundred lists of that length. Right: among the lists of eight that come out one number short, how many
# have their first wrong number at each place.
#
# </div>
#
# Most lists of eight come out exactly one number short. Their beginnings are right, and mostly their last numbers, too:
# what is lost is in the middle. The weights are spread out there as well. In lists of six, each number gets most of the
# weight at some step; in lists of eight, the fifth and the sixth get less than half even at their best, on average. And
# where simply one number is left out, it is mostly the one with the least weight.
#
# So this model loses its place in the middle, and finds it again near the end.

# %% [markdown]
# ## What is the recurrence for?
#
# With attention, the context $c_i$ carries whatever the decoder needs from the source. And the reader? Its recurrence
# is there to tell each word what is around it, but attention could do that as well. And recurrence costs time.

# %%
plots.diagrams.waiting_steps()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above, each state needs the one before it, so t steps must follow one another. Below, all
# positions are computed together; none has to wait.
#
# </div>
#
# How much does the waiting cost, even on one core, which does one thing at a time anyway? We time four computations on
# t vectors of width 128, each the best of three runs: a GRU; the GRU's input products (a 128 by 384 matrix), one
# position after the other; the same multiplications in a single product; and a layer of self-attention with four heads
# and all of its projections, 128 by 384 for queries, keys and values and 128 by 128 at the end.

# %% tags=["hide-input"]
def milliseconds(work, tries=3):
    times = []
    for _ in range(tries):
        begin = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - begin))
    return min(times)

gru = nn.GRU(128, 128, batch_first=True)
w, w_o = torch.randn(128, 384), torch.randn(128, 128)

def self_attention(x):
    q, k, values = (x @ w).view(1, -1, 3, 4, 32).permute(2, 0, 3, 1, 4)  # each (1, 4, t, 32)
    y = F.scaled_dot_product_attention(q, k, values)
    return y.transpose(1, 2).reshape(1, -1, 128) @ w_o

print("     t     GRU   one by one   at once   attention    milliseconds")
with torch.no_grad():
    for t in (64, 256, 1024):
        x = torch.randn(1, t, 128)
        times = [
            milliseconds(lambda: gru(x)),
            milliseconds(lambda: [row @ w for row in x[0].split(1)]),
            milliseconds(lambda: x[0] @ w),
            milliseconds(lambda: self_attention(x)),
        ]
        print("{:>6} {:>7.2f} {:>12.2f} {:>9.2f} {:>11.2f}".format(t, *times))

# %% [markdown]
# The second and third columns of times are for the same multiplications. One by one they take several times as long.
# (None of them has to wait for another here: much of the difference is the cost of calling a small product often.) On a
# machine with thousands of cores, most would be idle as well. To be fair, attention's own cost grows with t² (lesson 16), so its lead over the GRU shrinks as the text gets longer.
#
# [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) compare the two in their table 1. For a sequence of length
# n, recurrence needs n steps in a row and attention one; the path between two distant positions has length n with
# recurrence and 1 with attention. They removed the recurrence from encoder and decoder and let each sequence attend to
# *itself*. They added lesson 6's positions, because nothing went through the text in order any more.
#
# Attention inside one sequence was not new. [Cheng et al. (2016)](https://arxiv.org/abs/1601.06733) built it into an
# LSTM, [Parikh et al. (2016)](https://arxiv.org/abs/1606.01933) used it without recurrence and called it intra-sentence
# attention, and [Lin et al. (2017)](https://arxiv.org/abs/1703.03130) called theirs self-attention. What was new was a
# translator in which nothing else connects the positions.
#
# The model of 2017 uses the dot product and not the additive score: it is faster, being one matrix product. Its
# weakness at large widths is fixed by lesson 3's √d (section 3.2.1). The result is
# [lesson 10](../10_encoder_decoder/10_encoder_decoder.ipynb).

# %% [markdown]
# ## Known by its company
#
# The other half of the history is the table at the bottom of every model: a vector for each word. In lesson 1 these
# vectors were given. They were made by counting which words occur near each other. In 2013 [Mikolov et
# al.](https://arxiv.org/abs/1310.4546) learned them with a guessing game instead, **[skip-gram with negative
# sampling](../../site/glossary.md#skip-gram)**. Take a word of a text, the centre, and a word near it, its context.
# Draw k more words at random, the **negatives**. The model has to tell the context from the negatives.
#
# Each word has two vectors, u as a centre and w as a context. The model's probability that a centre and a context are
# neighbours is $\sigma(u \cdot w)$, where $\sigma(z) = 1 / (1 + e^{-z})$. It should be large for the true neighbour,
# and small for each of the negatives $w_1, \dots, w_k$. Since $1 - \sigma(z) = \sigma(-z)$, the loss of one pair is
#
# $$-\log \sigma(u \cdot w) \;-\; \sum_{j=1}^{k} \log \sigma(-u \cdot w_j) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `skip_gram_loss`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Write this loss for a batch: the mean over its pairs. The loss and its gradients must be right and finite even if a
# product is 200 or −200. (The sigmoid of −200 is 0 in float32.)
#
# <details><summary>Hint 1: one pair first</summary>
#
# What does the formula do to each product before summing? `F.logsigmoid(z)` is log σ(z), and it is finite for any z.
#
# </details>
# <details><summary>Hint 2: one pair by hand</summary>
#
# Let u · w = 2, and let there be one negative with u · w₁ = 1. Then σ(2) = 0.881 and σ(−1) = 0.269, and the loss is
# −log 0.881 − log 0.269 = 0.127 + 1.313 = 1.440. In a batch the first product is (b,), and those with the negatives
# are (b, k).
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
# One published version wrongly takes log σ of the *sum* of the products ([DeepNLP-models-Pytorch, issue
# #15](https://github.com/DSKSD/DeepNLP-models-Pytorch/issues/15)).
#
# Train it on the synthetic film reviews of lesson 8, without labels, with words up to two places apart and five
# negatives per pair. As in the paper, a word is drawn as a negative in proportion to its frequency to the power 3/4
# (section 2.2).

# %% tags=["hide-input"]
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
print(f"{len(texts):,} reviews, {n} words, {pairs.shape[1]:,} pairs of neighbours")

# %%
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
# The numbers are cosines. No one told the model what an adjective is, but words that occur in the same places now have
# similar vectors. [Levy and Goldberg
# (2014)](https://papers.nips.cc/paper/5477-neural-word-embedding-as-implicit-matrix-factorization) showed that at its
# optimum this game factorises a matrix: the pointwise mutual information of word and context, minus log k. Lesson 1's
# `word_vectors` computes much the same from counts.
#
# But *dull* is as near to words of praise as to words of blame, because all of them come after *is*. And one weakness
# remains however much text there is: **a word has the same vector in every sentence**. *Dull* in "the plot is dull" has
# the same 32 numbers as in "the plot is hardly dull", and *stick* in "let's stick to it" has the same vector as in "he
# broke a stick".

# %% [markdown]
# ## A vector from a reader
#
# [Peters et al. (2018)](https://arxiv.org/abs/1802.05365) took a word's vector from a language model that *reads the
# sentence*; they called it **ELMo**. Their reader is recurrent, with LSTMs as cells: the state at position i depends on
# everything up to i. PyTorch has it as `nn.LSTM`.
#
# What comes *after* a word matters, too. So there are two readers: one reads forwards and predicts the next word at
# each position, the other reads backwards and predicts the previous word.

# %%
plots.diagrams.two_readers()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Two readers in opposite directions, each with two layers of LSTM above the word vectors. No arrow
# leads from one reader to the other. Below: the vectors of both at one word are mixed across the layers for a task.
#
# </div>
#
# A backward reader is a forward reader that gets the sentence in reverse. In a batch with padding, reverse with care:
# the last *word* has to come first, not the padding.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `read_backwards`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Reverse each row within its length, and leave its padding as it is. Reversing twice gives back x.
#
# <details><summary>Hint 1: where does each position take its vector from?</summary>
#
# With length 3 and t = 5, positions 0 1 2 3 4 take their vectors from 2 1 0 3 4.
#
# </details>
# <details><summary>Hint 2: all rows at once</summary>
#
# With lengths 3 and 1 and t = 3, the order is [[2, 1, 0], [0, 1, 2]]; `torch.where` can build it from the two cases.
# `x.gather(1, order)` needs an `order` of the shape of x. A loop over the rows with `flip`, on a copy, is right as
# well.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "read_backwards", "locked": false, "schema_version": 3, "solution": true, "task": false}
def read_backwards(x, lengths):
    """Each row in reverse order within its length; its padding stays as it is.

    x: (b, t, e). lengths: (b,), int64, from 1 to t. Returns (b, t, e).
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
# Why two separate readers, and not one that reads both ways in every layer? PyTorch has that as well: in
# `nn.LSTM(..., num_layers=2, bidirectional=True)` the second layer reads the outputs of both directions of the first.
# Lesson 5's leak map of the two designs, with random weights, shows on which inputs each *half* depends.

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
# **How to read it.** Row i, column j: how fast output i changes with input j, each map on its own scale; hatched cells
# are exactly zero. A model that predicts word i + 1 from output i must see nothing to the right of the diagonal.
#
# </div>
#
# The stacked reader sees the word that it has to predict: its first layer has carried that word back to every earlier
# position. Such a model can be trained for a task with labels, but not as a language model. So ELMo keeps its two
# directions apart: each half of a vector knows the left *or* the right, and nothing in the reader joins the two. Is
# there another way? [Lesson 14](../14_bert/14_bert.ipynb) has one.

# %% [markdown]
# <div class="card">
#
# **Exercise 8 · `BiLanguageModel`** &nbsp; ★★★ · 15 minutes · 4 points
#
# Write `layers` and `loss`. The constructor is done: both readers share one table of vectors and one output layer, and
# each has LSTMs of its own. Use `finished_parts.read_backwards(x, lengths)`, exercise 7. What `layers` returns at
# padding does not matter. Do not use `pack_padded_sequence`. Keep no state of an LSTM from one call to the next. `loss`
# calls `self.layers` and uses its result.
#
# <details><summary>Hint 1: two readers</summary>
#
# Reverse the word vectors **once**, before the first backward LSTM, and give each LSTM the outputs of the one below it
# in its *own* direction. The outputs of the backward LSTMs are in reverse order; turn them back for the result only.
# `lstm(x)[0]` holds the outputs at all positions.
#
# </details>
# <details><summary>Hint 2: three words by hand</summary>
#
# A row holds the ids 7 2 9, then padding. The forward half at positions 0 and 1 has to predict 2 and 9, and the
# backward half at positions 1 and 2 has to predict 7 and 2. That is two neighbouring pairs, and nothing else in this
# row counts. Lesson 5's `padding_mask(lengths, t)` is (b, 1, t), and indexing with booleans picks entries.
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
        """ids: (b, t). lengths: (b,), int64. Returns (b, depth + 1, t, 2e), in each layer
        the forward half first. Layer 0 is the word's vector, twice.
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
# Two bugs of such readers are known. Keras' backward layers return their outputs in reverse order ([issue
# #3281](https://github.com/keras-team/keras/issues/3281)); if you join them unchanged, the first word's forward half
# meets the last word's backward half. And in a Keras version of ELMo the backward layers read the outputs of the
# forward ones ([ELMo-keras, issue #2](https://github.com/iliaschalkidis/ELMo-keras/issues/2)): the leak in the picture
# above.
#
# Train your reader on the same reviews, for a few seconds.

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
print(f"{losses[0]:.2f} nats per word at the start, {last:.2f} after {len(losses)} steps")

# %% [markdown]
# What does the reader know that a table of vectors cannot? Take every adjective of the test reviews, and ask two
# questions about its context: does *not*, *hardly* or *far from* come just before it, and does a full stop come just
# after it? Answer them from the adjective's *vector alone*, with a **linear probe**: one weight per component of the
# vector, fitted by least squares on one half of the adjectives and tested on the other.

# %% tags=["hide-input"]
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
# *Commoner* is how often the more frequent of the two answers is right. The *table* does no better: a single vector per
# word knows nothing about its sentence. The forward half knows what comes before, the backward half what comes after.
# The forward half does not see whether a full stop follows, but still answers better than the table: from what it has
# read it can guess whether the sentence is about to end.
#
# And the nearest vectors? Take *dull* at two places in the test reviews. These are the other adjectives with the most
# similar vectors in layer 1:

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
# The neighbours of the first *dull* stand in plain blame, those of the second after a *not* or a *far from*. Now the
# context counts, and at times more than the word: *far from honest* is near *far from dull*.
#
# ## A mix for every task
#
# A reader with two layers has three vectors for a word, including layer 0. Which one should a task use? [Peters et
# al.](https://arxiv.org/abs/1802.05365) let the task decide (equation 1):
#
# $$\text{ELMo} \;=\; \gamma \sum_{j} \mu_j\, h_j , \qquad \mu = \operatorname{softmax}(\text{raw}) ,$$
#
# where $h_j$ is layer j at one word. The numbers `raw`, here three, are learned (the paper writes s for our μ), and so
# is the scale γ. They start at 0 and at 1, so that the mix starts as the plain mean. The reader itself is not changed.

# %% tags=["hide-input"]
torch.manual_seed(0)
mix, judge = finished_parts.LayerMix(3), nn.Linear(128, 1)    # raw and gamma
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
# For the question about *not*, nearly all of the weight goes to layer 1. With such vectors added, and no other change,
# [Peters et al.](https://arxiv.org/abs/1802.05365) improved their own models for six tasks and beat the best published
# ones (their table 1): question answering on SQuAD from 81.1 to 85.8 (best before: 84.4), named entities from 90.15 to
# 92.22 (best before: 91.93). Their reader was much larger, and it had no table of words: convolutions computed each
# word's first vector from its letters, so that no word was unknown.

# %% [markdown]
# ## What you can do now
#
# You can write a recurrent cell with gates and measure how far its gradient reaches; show at what length a single
# vector for a sentence fails; write the attention that was invented to fix this, with two of its three scores, and find
# where it loses its place; train word vectors with a guessing game; build a language model in each direction and take a
# word's vector from its sentence; and tell a bidirectional reader that leaks from one that does not.
#
# **Three questions to think about**
#
# <details><summary>1. The published ELMo carries its LSTMs' states from one batch to the next. What can go wrong when
# you use it?</summary>
#
# The vectors of a sentence depend on what was read before it. The same sentence twice gives two results ([allennlp
# issue #1169](https://github.com/allenai/allennlp/issues/1169)). In training on continuous text this is an advantage,
# because the context reaches further back. [Lesson 15](../15_transformer_xl/15_transformer_xl.ipynb) comes back to
# that.
#
# </details>
# <details><summary>2. In Luong's decoder the context is computed with the *new* state, after the GRU. What does the GRU
# not know then?</summary>
#
# The context of this step: the new state is computed without it, and the context only enters the logits. [Luong et
# al.](https://arxiv.org/abs/1508.04025) feed a joint vector of state and context into the next step, so the GRU knows
# it one step later (section 3.3).
#
# </details>
# <details><summary>3. With one vector, why does reading the source backwards help, although on average each word is as
# far from its translation as before?</summary>
#
# The mean distance is the same, but the first words are closer to each other: the decoder gets the beginning right, and
# the rest depends on a good beginning (section 3.3).
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
#   the published word2vec computes a gradient wrongly; does it matter?
#
# **Next:** [lesson 14, *BERT*](../14_bert/14_bert.ipynb)
