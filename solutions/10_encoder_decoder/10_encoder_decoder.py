# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 10 · Encoder and decoder
#
# *Reading one language, writing another*
#
# *Forty-seven* is *siebenundvierzig* in German: seven-and-forty. So numbers cannot be translated word for word from
# left to right: the first German word depends on the last English one.
#
# This lesson builds the transformer as it was published (without dropout and without the weights that its tables
# share), for the task it was published for. One half reads, one half writes, and an attention from the second to the
# first connects them. Once the model is trained, you watch it look at *seven* before it looks at *forty*.
#
# | | |
# |---|---|
# | **You will build** | the three masks, cross-attention, the decoder's block, the whole model, two ways of writing with it, and the loss of its training |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb) to [7](../07_transformer_block/07_transformer_block.ipynb) |
# | **It takes** | about 120 minutes: seven exercises, 25.5 points |
# | **It computes** | for about a minute, mostly to train one model; any laptop will do |
#
# The letters follow [the notation table](../../site/notation.md). Here there are two sequences: t counts the positions
# of the **target**, which is written, and s those of the **source**, which is read.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy
import math
import textwrap

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.toy.numerals import read_english
from helpers.data.recorded import recorded
from helpers.data.datasets import translation_pairs
from helpers.device import device
from helpers.experiments import Experiment
from helpers.lesson import start
from helpers.parts.blocks import FeedForward, LayerNorm, SelfAttention, TransformerBlock
from helpers.parts.encoder_decoder import CrossAttention as FinishedCrossAttention
from helpers.parts.encoder_decoder import DecoderBlock as FinishedDecoderBlock
from helpers.parts.encoder_decoder import EncoderDecoder as FinishedModel
from helpers.parts.encoder_decoder import make_masks as finished_masks
from helpers.parts.encoder_decoder import smoothed_loss as finished_loss
from helpers.parts.encoder_decoder import warmup_rate, without_training
from helpers.parts.masks import causal_mask
from helpers.parts.multi_head import merge_heads, split_heads
from helpers.parts.positions import sinusoidal_encoding
from helpers.parts.words import pad_rows
from helpers.progress import progress

check = start("10_encoder_decoder")
torch.set_num_threads(1)    # the tensors of this lesson are too small to share out

# %% [markdown]
# ## A sentence in one vector
#
# In 2014 [Sutskever, Vinyals and Le](https://arxiv.org/abs/1409.3215) and [Cho et al.](https://arxiv.org/abs/1406.1078)
# paired two recurrent networks for translation. One network, the **[encoder](../../site/glossary.md#encoder)**, goes
# through the source and updates a state at every word. Its last state is passed to a second network, the
# **[decoder](../../site/glossary.md#decoder)**, which starts from it and writes the target word by word. The weakness:
# whatever the decoder needs to know about a sentence must fit into one vector of a fixed size.
#
# [Bahdanau, Cho and Bengio (2015)](https://arxiv.org/abs/1409.0473) kept the state of *every* source word. Before each
# target word the decoder computes a weighted average of all these states, with weights that depend on what it has
# written so far. This was the first attention in translation, with the idea of lesson 2: a query from the decoder, keys
# and values from the encoder. [Lesson 13](../13_before_transformers/13_before_transformers.ipynb) builds it.
#
# [Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) removed the recurrence. We build their model.
#
# ## The task
#
# Translate numbers of up to six digits, written in words, from English to German. English numbers are split at the
# spaces; German numbers, which are written as one word, are split into their parts. The training set has 12,000
# numbers, none of which is in the test set.

# %% tags=["nbval-check-output"]
pairs = translation_pairs(places="embedded", say=lambda line: None)
train_pairs, other_pairs, test_pairs, _ = pairs

SPECIAL = ["<pad>", "<start>", "<stop>"]
PAD, START, STOP = range(3)

def vocabulary(sentences):
    """Every word gets a number, after the three special ones."""
    return SPECIAL + sorted({word for sentence in sentences for word in sentence.split()})

ENGLISH, GERMAN = (vocabulary(side) for side in zip(*train_pairs))
print(f"{len(train_pairs):,} pairs, {len(ENGLISH)} English and {len(GERMAN)} German tokens")
for english, german in train_pairs[47], train_pairs[-1]:
    print(f"{english}  ->  {german}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "The words of eighty two thousand three hundred and forty seven above, those of zwei und achtzig tausend drei hundert sieben und vierzig below, with lines between words of the same meaning. The lines from eighty to achtzig and from two to zwei cross each other, and so do those from forty to vierzig and from seven to sieben; the other lines do not cross."}}
english = "eighty two thousand three hundred and forty seven".split()
german = "zwei und achtzig tausend drei hundert sieben und vierzig".split()
crossing = [(0, 2), (1, 0), (6, 8), (7, 6)]
plots.alignment(english, german, [(2, 3), (3, 4), (4, 5)] + crossing, crossing)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** A line joins two words of the same meaning. The thick lines cross: in German the units come before
# the tens, both in the thousands and in the last three digits. The German *und* and the English *and* have no partner.
#
# </div>
#
# A batch has sentences of different lengths, so they are padded. Each target is put between a start and a stop token,
# because the decoder needs something to begin with and a way to say that it is done.

# %%
def as_ids(sentences, words, ends=False):
    """Sentences as padded rows of ids, (b, t); with ends, between START and STOP."""
    number = {word: place for place, word in enumerate(words)}
    rows = [[number[word] for word in sentence.split()] for sentence in sentences]
    rows = [[START, *row, STOP] for row in rows] if ends else rows
    return pad_rows(rows, PAD)[0].to(device())

def as_words(ids, words):
    """One row of ids, up to the stop token, as a list of words."""
    ids = ids.tolist()
    return [words[place] for place in (ids[: ids.index(STOP)] if STOP in ids else ids)]

train_source = as_ids([pair[0] for pair in train_pairs], ENGLISH)
train_target = as_ids([pair[1] for pair in train_pairs], GERMAN, ends=True)
test_source = as_ids([pair[0] for pair in test_pairs], ENGLISH)

# %% [markdown]
# ## Three attentions, three masks
#
# The model has attention in three places ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.2.3):
#
# | queries from | keys from | what must be hidden | shape of the mask |
# |---|---|---|---|
# | the source | the source | the source's padding | (b, 1, s) |
# | the target | the target | the target's padding and everything to come | (b, t, t) |
# | the target | the source | the source's padding | (b, 1, s) |
#
# True means "may look", as in lesson 5. A mask hides the positions that are looked *at*. A position that is padding
# itself may still look, so its row is not blanked. In the first and the third mask all rows are the same, so one row is
# enough: it broadcasts.
#
# **What every check of this lesson asks.** New tensors must be created on the device of the inputs. A batch may have a
# single sentence, and a sequence a single position.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `make_masks`** &nbsp; fix · ★★☆ · 6 minutes · 3 points
#
# The code in the cell runs, its masks have the right shapes, and a model can learn to translate with them. Even so, one
# of the three masks is not what the table requires. Fix it. `causal_mask(t, device)` of lesson 5 is (t, t), True on and
# below the diagonal. The id of the padding is an argument; it need not be 0. Padding may come after the words, before
# them or between them. Do not call `finished_masks` here.
#
# <details><summary>Hint 1: other sentences</summary>
#
# In a cell of your own, make a batch of two targets of different lengths with the padding *in front of* the words.
# Print each mask and compare it with its row of the table.
#
# </details>
# <details><summary>Hint 2: a target of three tokens</summary>
#
# The padding is 9 and the target is [9, 5, 7]. Position 2 may look at positions 1 and 2, so its row is [False, True,
# True]. What is the row of position 1? Which part of it comes from the causal mask, and which part from
# `target != pad`?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "make_masks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def make_masks(source, target, pad):
    """Which position may look at which.

    source: (b, s), ids. target: (b, t), ids. pad: the id of the padding.
    Returns three masks of booleans: source on source (b, 1, s), target on target (b, t, t),
    target on source (b, 1, s).
    """
    ### BEGIN SOLUTION
    source_words = (source != pad).unsqueeze(1)               # (b, 1, s)
    target_words = (target != pad).unsqueeze(1)               # (b, 1, t)
    past = causal_mask(target.shape[1], target.device)        # (t, t)
    return source_words, past & target_words, source_words
    ### STUDENT GETS
    # source_words = (source != pad).unsqueeze(1)               # (b, 1, s)
    # past = causal_mask(target.shape[1], target.device)        # (t, t)
    # past = past.expand(len(target), -1, -1)                   # (b, t, t)
    # return source_words, past, source_words
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_make_masks", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(make_masks)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three masks for thirty and its translation dreißig, padded in a batch with forty seven. On the left, one above the other, the masks over the source: single rows, filled for thirty and hatched for the padding. On the right the mask of target on target, a square with a row for each position: the lower triangle, without the two columns of padding."}}
source = as_ids(["thirty", "forty seven"], ENGLISH)
target = as_ids(["dreißig", "sieben und vierzig"], GERMAN, ends=True)
masks = [mask[0] for mask in make_masks(source, target, PAD)]
source_names = [ENGLISH[k] for k in source[0]]
target_names = [GERMAN[k] for k in target[0]]

figure, axes = plt.subplot_mosaic([[0, 1], [2, 1]], figsize=(6, 3.8), width_ratios=[1, 2])
for place, title in enumerate(["source on source", "target on target", "target on source"]):
    names = target_names if place == 1 else source_names
    plots.mask_row([masks[place]], target_names, names, [title], "looks", "is looked at",
                   axes=[axes[place]])
axes[0].set_xlabel("")    # the same as that of the map below it
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The first sentence of a batch of two, *thirty* and *dreißig*, padded to the length of the other
# one. A filled cell means that the row may look at the column. On the left, one row serves all positions; on the right,
# each position has its own.
#
# </div>
#
# <details><summary>Why can a model learn with the wrong mask?</summary>
#
# Padding *after* the words is in the future of every word, so the causal mask hides it anyway, and the loss ignores the
# outputs at padding. Padding *before* the words would be seen. There is such padding when prompts of different lengths
# are continued in one batch. Then the translation of one sentence depends on how long the others in its batch are, and
# no error is raised.
#
# </details>

# %% [markdown]
# ## Looking across
#
# Self-attention gets queries, keys and values from one sequence.
# **[Cross-attention](../../site/glossary.md#cross-attention)** gets the queries from the target $x$, of shape (b, t,
# e), and the keys and values from the encoder's output for the source, the **memory** $M$, of shape (b, s, e):
#
# $$q = x\,W_q, \qquad k = M\,W_k, \qquad v = M\,W_v,
# \qquad y = \operatorname{softmax}\!\Big(\frac{q\,k^\top}{\sqrt d}\Big)\, v .$$
#
# The scores are (b, h, t, s): a row for each target position, a column for each source position. The output is as long
# as the target, and every vector in it is computed from values of the source. Everything else is as in lesson 4.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `CrossAttention`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Write `forward`, and leave `__init__` as it is. `split_heads(x, h)` and `merge_heads(x)` are those of lesson 4. You
# may call `F.scaled_dot_product_attention(q, k, v, attn_mask=mask)`, whose mask has the same meaning as ours and has to
# broadcast against (b, h, t, s). Do not call `nn.MultiheadAttention` or the finished cross-attention here. The mask may
# hide any positions of a sentence but leaves at least one, or it is None. Gradients must flow to both inputs and to all
# weights.
#
# <details><summary>Hint 1: queries, keys, values</summary>
#
# Queries are computed from x. Keys and values are both computed from the memory.
#
# </details>
# <details><summary>Hint 2: a mask for all heads</summary>
#
# Take two sentences, three heads, one target position and four source positions. The scores are (2, 3, 1, 4), the mask
# is (2, 1, 4). Broadcasting compares the shapes from the right, so the 2 of the mask meets the 3 of the heads. Where
# does the mask need another axis? And what happens to a mask that is None?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "CrossAttention", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CrossAttention(nn.Module):
    """Multi-head attention from one sequence to another. e: width. h: heads."""

    def __init__(self, e, h):
        super().__init__()
        self.h = h
        self.to_queries = nn.Linear(e, e, bias=False)
        self.to_keys = nn.Linear(e, e, bias=False)
        self.to_values = nn.Linear(e, e, bias=False)
        self.unify = nn.Linear(e, e)

    def forward(self, x, memory, mask=None):
        """x: (b, t, e), for the queries. memory: (b, s, e), for keys and values.
        mask: (b, 1, s), booleans, True where a position of the memory may be looked at;
        None: everywhere. Returns (b, t, e).
        """
        ### BEGIN SOLUTION
        q = split_heads(self.to_queries(x), self.h)          # (b, h, t, d)
        k = split_heads(self.to_keys(memory), self.h)        # (b, h, s, d)
        v = split_heads(self.to_values(memory), self.h)      # (b, h, s, d)
        if mask is not None:
            mask = mask.unsqueeze(1)                         # (b, 1, 1, s)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.unify(merge_heads(y))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_CrossAttention", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(CrossAttention)

# %% [markdown]
# ## The decoder's block
#
# A block of the encoder is lesson 7's: attention, then the feed-forward network. A block of the decoder has one more
# layer, between the two ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 3.1 and figure 1):
# self-attention, cross-attention, feed-forward.
#
# $$x \;\leftarrow\; \operatorname{norm}_1\big(x + \operatorname{self}(x)\big),
# \qquad x \;\leftarrow\; \operatorname{norm}_2\big(x + \operatorname{cross}(x, M)\big),
# \qquad x \;\leftarrow\; \operatorname{norm}_3\big(x + \operatorname{ff}(x)\big) .$$
#
# As in 2017, this is post-norm. Every block gets the same memory $M$, the output of the encoder.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `DecoderBlock`** &nbsp; ★★★ · 10 minutes · 4 points
#
# Write `forward`, and leave `__init__` as it is. The layers are given: `SelfAttention`, called as `layer(x, mask)`, the
# finished cross-attention, called as `layer(x, memory, mask)`, and the rest of lesson 7. Do not call the finished block
# or `nn.TransformerDecoderLayer` here; PyTorch's block comes after the check. Either mask may be None. Gradients must
# flow to both inputs and to all weights, and the inputs stay unchanged.
#
# <details><summary>Hint 1: three lines</summary>
#
# Write one line for each layer. Each line starts from the x of the line before.
#
# </details>
# <details><summary>Hint 2: which mask belongs where</summary>
#
# Take t = 2 and s = 5. The self-attention has 2 × 2 scores, the cross-attention 2 × 5. Which mask fits which? A layer
# that is called with mask None hides nothing.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "DecoderBlock", "locked": false, "schema_version": 3, "solution": true, "task": false}
class DecoderBlock(nn.Module):
    """Self-attention, cross-attention, feed-forward network; norm(x + layer(x)) each time.

    e: width. h: heads.
    """

    def __init__(self, e, h):
        super().__init__()
        self.self_attention, self.norm1 = SelfAttention(e, h), LayerNorm(e)
        self.cross_attention, self.norm2 = FinishedCrossAttention(e, h), LayerNorm(e)
        self.feed_forward, self.norm3 = FeedForward(e), LayerNorm(e)

    def forward(self, x, memory, self_mask=None, cross_mask=None):
        """x: (b, t, e), the target so far. memory: (b, s, e), the encoder's last output.
        self_mask: (b, t, t). cross_mask: (b, 1, s). None: nothing is hidden.
        Returns (b, t, e).
        """
        ### BEGIN SOLUTION
        x = self.norm1(x + self.self_attention(x, self_mask))
        x = self.norm2(x + self.cross_attention(x, memory, cross_mask))
        return self.norm3(x + self.feed_forward(x))
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_DecoderBlock", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(DecoderBlock)

# %% [markdown]
# PyTorch has this block as `nn.TransformerDecoderLayer`. Its masks have the opposite meaning: True means hidden. With
# the same weights and the same positions hidden, your block returns the same numbers:

# %% tags=["hide-input", "nbval-check-output"]
@torch.no_grad()
def as_pytorchs(block, e, h):
    """PyTorch's block with the same weights. Its three projections are one, with a bias."""
    other = nn.TransformerDecoderLayer(e, h, 4 * e, dropout=0.0, batch_first=True)
    for theirs, mine in [(other.self_attn, block.self_attention),
                         (other.multihead_attn, block.cross_attention)]:
        three = [mine.to_queries.weight, mine.to_keys.weight, mine.to_values.weight]
        theirs.in_proj_weight.copy_(torch.cat(three))
        theirs.in_proj_bias.zero_()
        theirs.out_proj.load_state_dict(mine.unify.state_dict())
    for theirs, mine in [(other.linear1, block.feed_forward.widen),
                         (other.linear2, block.feed_forward.narrow),
                         (other.norm1, block.norm1), (other.norm2, block.norm2),
                         (other.norm3, block.norm3)]:
        theirs.load_state_dict(mine.state_dict())
    return other.to(device())

torch.manual_seed(2)
mine = DecoderBlock(32, 4).to(device())
x, memory = torch.randn(2, 5, 32).to(device()), torch.randn(2, 6, 32).to(device())
lengths = torch.tensor([[6], [4]], device=device())
real = torch.arange(6, device=device()) < lengths    # (b, s)
past = causal_mask(5, device())
theirs = as_pytorchs(mine, 32, 4)(x, memory, tgt_mask=~past, memory_key_padding_mask=~real)
same = torch.allclose(mine(x, memory, past, real.unsqueeze(1)), theirs, atol=1e-5)
print("the same as PyTorch's block:", same)

# %% [markdown]
# ## The whole model, and teacher forcing

# %%
plots.diagrams.encoder_decoder_flow()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The encoder is on the left, the decoder on the right, each with its shapes. The small squares are
# the masks: a filled cell may be looked at. The memory goes into every block of the decoder, as keys and values.
#
# </div>
#
# Both halves begin with token vectors times √e, plus the sinusoids of lesson 6 (sections 3.4 and 3.5 of the paper).
# Then come the blocks. At the end of the decoder a linear layer turns each vector into n_target
# **[logits](../../site/glossary.md#logits)**. So the model has two functions:
#
# | | from | to |
# |---|---|---|
# | `encode` | source (b, s) | memory (b, s, e) |
# | `decode` | target (b, t), memory, and the source for its padding | logits (b, t, n_target) |
#
# They are separate because the source is read **once**, while the translation written so far goes through `decode`
# again at each step. In training, one pass is enough:

# %%
plots.diagrams.teacher_forcing()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Above: the decoder reads the true target once, shifted one position to the right. Below: there is
# one pass for each word, and each written word (orange) is read in the next pass.
#
# </div>
#
# In training the whole translation is known. Give the decoder the *right* beginning at every position, whatever it
# would have written itself, and let it predict the next token at all positions at once. This is **[teacher
# forcing](../../site/glossary.md#teacher-forcing)**, and the reason for the causal mask. Without the shift by one, a
# position would read *hundert* and have to predict *hundert*: the model would learn to copy perfectly and be unable to
# write.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `EncoderDecoder`** &nbsp; ★★★ · 12 minutes · 4 points
#
# Write `encode`, `decode` and `loss`, and leave `__init__` and `embed` as they are. `finished_masks(source, target,
# pad)` returns the same as your `make_masks`. `finished_loss(logits, targets, smoothing, pad)` is the mean
# cross-entropy of the targets that are not padding; pass on to it the argument `smoothing` of `loss`, which exercise 6
# explains. `loss` calls your `encode` and `decode`, and `decode` uses the memory that it is given. Do not call
# `FinishedModel` or `nn.Transformer` here. Gradients must flow to all weights.
#
# <details><summary>Hint 1: encode and decode</summary>
#
# Embed with the right table, then call the right blocks. Encoder blocks are called as `block(x, mask)`, decoder blocks
# as `block(x, memory, self_mask, cross_mask)`. The encoder's mask hides the source's padding and needs no target.
#
# </details>
# <details><summary>Hint 2: a sentence of three tokens</summary>
#
# The sentence is `<start> sieben <stop>`. At position 0 the decoder reads `<start>` and should write `sieben`. At
# position 1 it reads `sieben` and should write `<stop>`. Which two tokens of the sentence does it read, and which two
# are its targets?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "EncoderDecoder", "locked": false, "schema_version": 3, "solution": true, "task": false}
class EncoderDecoder(nn.Module):
    """The transformer of 2017.

    n_source, n_target: sizes of the vocabularies. e: width. h: heads. depth: blocks in the
    encoder, and as many in the decoder. t_max: longest sequence. pad: id of the padding.
    """

    def __init__(self, n_source, n_target, e, h, depth, t_max, pad):
        super().__init__()
        self.pad = pad
        self.source_tokens = nn.Embedding(n_source, e)
        self.target_tokens = nn.Embedding(n_target, e)
        self.register_buffer("positions", sinusoidal_encoding(t_max, e), persistent=False)
        self.encoder = nn.ModuleList([TransformerBlock(e, h) for _ in range(depth)])
        self.decoder = nn.ModuleList([FinishedDecoderBlock(e, h) for _ in range(depth)])
        self.to_logits = nn.Linear(e, n_target)

    def embed(self, tokens, ids):
        """tokens: one of the two tables. ids: (b, t). Returns (b, t, e)."""
        t, e = ids.shape[1], self.positions.shape[1]
        return tokens(ids) * math.sqrt(e) + self.positions[:t]

    def encode(self, source):
        """source: (b, s), ids. Returns the memory (b, s, e)."""
        ### BEGIN SOLUTION
        mask = (source != self.pad).unsqueeze(1)    # (b, 1, s)
        x = self.embed(self.source_tokens, source)
        for block in self.encoder:
            x = block(x, mask)
        return x
        ### END SOLUTION

    def decode(self, target, memory, source):
        """target: (b, t), ids. memory: (b, s, e). source: (b, s), ids, for the masks.
        Returns logits (b, t, n_target): at position i those of the token after target i.
        """
        ### BEGIN SOLUTION
        _, self_mask, cross_mask = finished_masks(source, target, self.pad)
        x = self.embed(self.target_tokens, target)
        for block in self.decoder:
            x = block(x, memory, self_mask, cross_mask)
        return self.to_logits(x)
        ### END SOLUTION

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)

    def loss(self, source, sentence, smoothing=0.0):
        """Teacher forcing. source: (b, s). sentence: (b, t + 1), from the start token to
        the stop token, then padding. Returns (): the finished loss of the tokens after
        the start token.
        """
        ### BEGIN SOLUTION
        logits = self.decode(sentence[:, :-1], self.encode(source), source)
        return finished_loss(logits, sentence[:, 1:], smoothing, self.pad)
        ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_EncoderDecoder", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(EncoderDecoder)

# %% [markdown]
# How large is the published model? By default, `nn.Transformer` has the size of the paper's base model: e = 512, h = 8,
# six blocks in each half. Token vectors and output layer are not part of it. On the device `meta` a tensor has a shape
# but no numbers, so the models take no memory.

# %% tags=["hide-input", "nbval-check-output"]
def count(module):
    return sum(p.numel() for p in module.parameters())

with torch.device("meta"):
    theirs = count(nn.Transformer(batch_first=True))
    mine = EncoderDecoder(37_000, 37_000, 512, 8, 6, 1, 0)
blocks = count(mine.encoder) + count(mine.decoder)
biases = 18 * 3 * 512    # 18 attentions, whose three projections have biases in PyTorch's
norms = 2 * 2 * 512      # one more norm at the end of either half

print(f"nn.Transformer:              {theirs:,}")
print(f"your blocks:                 {blocks:,}")
print(f"with those biases and norms: {blocks + biases + norms:,}")

# %% [markdown]
# ## Training
#
# Our model is small: e = 64, four heads, two blocks in each half. Optimiser, loss and position of the norms are those
# of the paper. The loss is a cross-entropy with `smoothing=0.1`, which you will write once the model works. A stack of
# post-norm blocks needs a small learning rate at the start (lesson 7), so the rate rises linearly for `warmup`
# steps and then falls with the square root of the step (section 5.3):
#
# $$\text{rate}(\text{step}) \;=\; e^{-1/2} \cdot \min\!\big(\text{step}^{-1/2},
# \;\; \text{step} \cdot \text{warmup}^{-3/2}\big) .$$
#
# The finished `warmup_rate(step, e, warmup)` computes it; we use half of that, with the peak at step 400. The final
# weights are an **average** over several copies from near the end of training (section 6.1). A copy is kept every 40
# steps.
#
# The stop button ends the training early; the cells below then use the model trained so far.

# %%
def train(model, steps, losses, copies, batch=64, warmup=400, smoothing=0.1):
    """Fills `losses`, one number a step, and `copies` with the weights of every 40th."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    e = model.positions.shape[1]
    model.train()
    try:
        for step in progress(range(1, steps + 1), "training"):
            optimiser.param_groups[0]["lr"] = 0.5 * warmup_rate(step, e, warmup)
            rows = torch.randint(len(train_source), (batch,)).to(device())
            loss = model.loss(train_source[rows], train_target[rows], smoothing)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            if step % 40 == 0:
                copies.append(copy.deepcopy(model.state_dict()))
    except KeyboardInterrupt:
        print(f"Stopped after {len(losses)} steps. The model is as it was then.")

def averaged(model, copies):
    """The same model with the mean of several copies of its weights; itself without any."""
    model = copy.deepcopy(model)
    if copies:
        mean = {name: sum(c[name] for c in copies) / len(copies) for name in copies[0]}
        model.load_state_dict(mean)
    return model

# %%
torch.manual_seed(0)
model = EncoderDecoder(len(ENGLISH), len(GERMAN), 64, 4, 2, 24, PAD).to(device())
losses, copies = [], []
train(model, 1500, losses, copies)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Training loss against step for 1,500 steps. It falls steeply within a few hundred steps, then more and more slowly, and is nearly flat at the end, at about 0.7."}}
plots.loss_curve(losses, ylabel="loss", smooth=min(20, len(losses)))
plt.show()
reached = torch.tensor(losses[-100:]).mean().item()
print(f"mean loss of the last 100 steps: {reached:.2f}; as a plain cross-entropy that is "
      f"the loss of a probability of {math.exp(-reached):.2f}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The faint line is the loss of each batch, the strong one a mean over 20.
#
# </div>
#
# The loss hardly falls any more, and it is still far from 0. If it were a plain cross-entropy, the model would be as
# sure of each token as of a coin toss. Does it know so little? First let it write. In training it is **given the right
# beginning**; when it writes, it has only the beginning that it wrote itself.

# %% [markdown]
# ## Writing, greedily
#
# Read the source once. Begin with the start token; compute the logits at the last position; append the token with the
# largest logit; repeat. All sentences of a batch are written together, and each is done when the model has written its
# stop token. From then on it gets padding, until all sentences are done.

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `greedy_decode`** &nbsp; ★★☆ · 10 minutes · 3 points
#
# Write it with `model.encode(source)`, which must be called exactly **once**, and
# `model.decode(written, memory, source)`. The returned ids are int64. Start and stop may be one id. The line above the
# function switches dropout and gradients off.
#
# <details><summary>Hint 1: what grows</summary>
#
# `torch.full_like(source[:, :1], start)` is (b, 1), of the right type and on the right device. `torch.cat([written,
# best], dim=1)` appends a column.
#
# </details>
# <details><summary>Hint 2: two sentences</summary>
#
# Padding is 0, stop is 2. In step 1 they write 5 and 7, in step 2 they write 2 and 4: the first one is done. In step 3
# the first sentence gets 0, whatever its logits are, and the second one writes 2. Both are done, so there is no step 4.
# The result is [[5, 2, 0], [7, 4, 2]]. Booleans (b, 1) can record which sentences are done; when in the step do they
# change?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "greedy_decode", "locked": false, "schema_version": 3, "solution": true, "task": false}
@without_training
def greedy_decode(model, source, start, stop, limit):
    """Writes the most probable token, again and again.

    source: (b, s), ids. start, stop: ids. limit: the most tokens to write, at least 1.
    Returns (b, t), t ≤ limit: what was written after the start token, the stop token
    included, then `model.pad`. Ends as soon as every sentence has written stop.
    """
    ### BEGIN SOLUTION
    memory = model.encode(source)                             # (b, s, e)
    written = torch.full_like(source[:, :1], start)           # (b, 1)
    done = torch.zeros_like(written, dtype=torch.bool)        # (b, 1)
    for _ in range(limit):
        logits = model.decode(written, memory, source)        # (b, t, n)
        best = logits[:, -1].argmax(dim=-1, keepdim=True)     # (b, 1)
        best = best.masked_fill(done, model.pad)
        written = torch.cat([written, best], dim=1)
        done = done | (best == stop)
        if done.all():
            break
    return written[:, 1:]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_greedy_decode", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(greedy_decode)

# %% [markdown]
# Now test numbers that the model has never seen. A translation counts only if it is right from the first word to the
# stop token: **exact match**.

# %%
def translate(model, source):
    """Sources (b, s) as strings of German words."""
    written = greedy_decode(model, source, START, STOP, 20)
    return [" ".join(as_words(row, GERMAN)) for row in written]

def exact(said, pairs):
    """For each translation, whether it is right."""
    return [mine == german for mine, (_, german) in zip(said, pairs)]

finished = averaged(model, copies[-8:])
said = translate(finished, test_source)
right, last = exact(said, test_pairs), exact(translate(model, test_source), test_pairs)
print(f"exact match on {len(right):,} unseen numbers: {sum(right) / len(right):.1%}")
print(f"with the last weights instead of averaged ones: {sum(last) / len(last):.1%}")
for (english, _), mine in list(zip(test_pairs, said))[:3]:
    print(f"{english}\n    -> {mine}")

# %%
@torch.no_grad()
def words_right(model, many=400):
    """The share of the words that are right, each after the right beginning."""
    target = as_ids([german for _, german in test_pairs[:many]], GERMAN, ends=True)
    guesses = model.eval()(test_source[:many], target[:, :-1]).argmax(dim=-1)    # (many, t)
    right = guesses == target[:, 1:]
    return right[target[:, 1:] != PAD].float().mean().item()

moments = {f"after {40 * k} steps": averaged(model, copies[k - 1 : k]) for k in (4, 8)}
early = moments["after 160 steps"]
print(f"after 160 steps: {words_right(early):.0%} of the words are right")

# %% [markdown]
# <div class="card">
#
# **Prediction · `early_numbers`** &nbsp; 1 minute · no points
#
# That is the share of words that are right, each after the right beginning, early in training. What share of the
# *numbers* does the same model translate without any mistake?
#
# - **A.** About as large as for words: 70 % or more.
# - **B.** Between 40 and 70 %.
# - **C.** Below 40 %.
# </div>

# %% nbgrader={"grade": false, "grade_id": "early_numbers", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
early_numbers = "C"
### STUDENT GETS
# early_numbers = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input"] mystnb={"image": {"alt": "Exact match against the number of digits, from three to six, at three moments of the training. After 160 steps the curve falls from about four tenths to nearly 0. After twice as many it is at nine tenths or above up to five digits and falls to about four tenths at six. At the end, averaged, it is at 1 for all lengths."}}
numbers = [read_english(english.split()) for english, _ in test_pairs]
digits = torch.tensor([len(str(number)) for number in numbers])

def by_length(model, many=400):
    """Exact match for numbers of 3, 4, 5 and 6 digits, among the first `many`."""
    right = torch.tensor(exact(translate(model, test_source[:many]), test_pairs))
    return [right[digits[:many] == k].float().mean() for k in range(3, 7)]

lines = {name: (range(3, 7), by_length(m)) for name, m in moments.items()}
lines["at the end, averaged"] = (range(3, 7), by_length(finished))
plots.curves(lines, "digits of the number", "exact match")
plt.gca().set(xticks=range(3, 7), ylim=(-0.03, 1.05))
plt.show()
whole = exact(translate(early, test_source[:400]), test_pairs)
print(f"after 160 steps: {sum(whole) / len(whole):.0%} of the numbers are right")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One wrong word makes the whole number wrong. When the model writes, a wrong word also misleads the
# next one. At the end the length makes hardly any difference.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_early_numbers", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("early_numbers", early_numbers)

# %% [markdown]
# ## What it looks at
#
# Every cross-attention of the decoder has a map for each head, (t, s), that shows where the model looked when it wrote
# each word. Below is the mean over the heads of the last block, and further down the map of each head. The maps are
# read with **[hooks](../../site/glossary.md#hook)**, functions that PyTorch calls whenever a layer is called.

# %%
@torch.no_grad()
def cross_maps(model, english, german):
    """Where each block's cross-attention looks: a list of (h, t, s), one for each block."""
    source, target = as_ids([english], ENGLISH), as_ids([german], GERMAN, ends=True)
    maps, model = [], model.eval()
    def keep(layer, given):
        maps.append(layer.weights(*given)[0])
    hooks = [b.cross_attention.register_forward_pre_hook(keep) for b in model.decoder]
    model(source, target[:, :-1])
    for hook in hooks:
        hook.remove()
    return maps

english = "eighty two thousand three hundred and forty seven"
german = "zwei und achtzig tausend drei hundert sieben und vierzig"
maps = cross_maps(finished, english, german)
rows, columns = german.split() + ["<stop>"], english.split()

# %% tags=["hide-input"] mystnb={"image": {"alt": "A heat map, the mean over the heads of the last block's cross-attention. Rows are the German words about to be written, columns the English ones. When it writes zwei it looks at two, at achtzig at eighty, at sieben at seven, at vierzig at forty: the dark cells of units and tens cross, twice."}}
names = {"row_label": "about to write", "column_label": "looks at"}
plots.heat(maps[-1].mean(0), rows, columns, scale=1, bar=True, **names)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One row for each German word, just before it is written; one column for each English word. Darker
# means more weight. *drei* looks at *three*, in the same order. *zwei* and *achtzig*, *sieben* and *vierzig* look
# crosswise, like the crossing lines of the first figure, which were not in the training data.
#
# </div>
#
# Does this happen regularly? Take the test numbers whose last two digits are joined by a German *und*. Count how often
# the row of the word before it has its largest weight on the last English word, and the row of the word after it on the
# last but one:

# %% tags=["hide-input"]
both = tried = 0
for english, german in test_pairs[:300]:
    words = german.split()
    if len(words) > 2 and words[-2] == "und":
        seen = cross_maps(finished, english, german)[-1].mean(0).argmax(-1).tolist()
        s = len(english.split())
        both += seen[len(words) - 3] == s - 1 and seen[len(words) - 1] == s - 2
        tried += 1
print(f"{tried} numbers end in tens and units; for {both / tried:.0%} it looks crosswise")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four heat maps, one for each head of the last block's cross-attention, for the same sentence. A row for each German word and one for the stop token, a column for each English word; at the units and tens nearly all dark cells cross, elsewhere the heads differ more."}}
titles = [f"head {r}" for r in range(len(maps[-1]))]
plots.head_grid(maps[-1], rows, columns, titles=titles, across=2, annotate=False, **names)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** The same block, one map for each head. Most German words translate one English word. *und*
# translates none, but depends on one: *seven* is *sieben*, but *forty seven* is *sieben **und** vierzig*. It is written
# only if there is a ten, and in its rows most heads look at this ten, *eighty* or *forty*, in this run; the others
# differ. `<stop>` translates no word either.
#
# </div>

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("translator")

# %% [markdown]
# ## A loss that leaves some doubt (label smoothing)
#
# The model translates nearly every number without a mistake, yet its loss stopped far from 0, as if each token were a
# coin toss. The reason is that the training asked for doubt.
#
# Plain cross-entropy asks for all of the probability on the right token, which the model can approach only by pushing
# its logits apart without limit. **Label smoothing** ([Szegedy et al., 2016](https://arxiv.org/abs/1512.00567),
# section 7) asks for a little less: the right token should get $1 - \varepsilon$, and the others share the remaining
# $\varepsilon$, here 0.1. (In Szegedy et al. and in the `label_smoothing` of `F.cross_entropy`, *all* classes share ε,
# including the right one.)
#
# Of the n tokens, one is the right one, and the padding is never right, so there are n − 2 others. For the target y at
# one position, the loss is
#
# $$-(1 - \varepsilon)\,\log p(y) \;-\; \frac{\varepsilon}{n-2} \sum_{x \,\ne\, y,\; x \,\ne\, \text{pad}} \log p(x) ,$$
#
# and the result is its mean over all targets that are not padding. So padding is left out twice: as a *target* and as a
# *token*.

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `smoothed_loss`** &nbsp; ★★★ · 12 minutes · 4 points
#
# Write the loss from the logits. Here p is the softmax over all n tokens, including padding. The loss must stay finite
# when logits differ by hundreds, for every smoothing from 0 to 1, and padding may come between words. Do not call
# `finished_loss` here. Gradients must flow to the logits, and the inputs stay unchanged.
#
# <details><summary>Hint 1: logarithms without probabilities</summary>
#
# `logits.log_softmax(dim=-1)` is (b, t, n) and never takes the logarithm of a zero.
#
# </details>
# <details><summary>Hint 2: one position, four tokens</summary>
#
# The padding is token 3, the right token is 1, ε = 0.2 and p = [0.2, 0.4, 0.3, 0.1]. Tokens 0 and 2 get 0.1 each, so
# the loss is −0.8 log 0.4 − 0.1 log 0.2 − 0.1 log 0.3 = 1.014. Give your function the logarithms of p as logits, of
# shape (1, 1, 4), and compare. `log_p.gather(-1, targets.unsqueeze(-1))`, of shape (b, t, 1), picks the right token's
# entry at each position.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "smoothed_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def smoothed_loss(logits, targets, smoothing, pad):
    """Cross-entropy against 1 − smoothing for the right token, and the rest shared equally
    among all other tokens but the padding.

    logits: (b, t, n). targets: (b, t), ids. smoothing: from 0 to 1. pad: id of the padding.
    Returns (): the mean over the targets that are no padding, of which there is at least
    one.
    """
    ### BEGIN SOLUTION
    n = logits.shape[-1]
    log_p = logits.log_softmax(dim=-1)                              # (b, t, n)
    right = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)     # (b, t)
    others = log_p.sum(dim=-1) - right - log_p[..., pad]            # (b, t)
    losses = -(1 - smoothing) * right - smoothing / (n - 2) * others
    return losses[targets != pad].mean()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_smoothed_loss", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(smoothed_loss)

# %% [markdown]
# Take n = 35 as for our German. The logit is z for the right token, −100 for the padding, and 0 for all others.

# %% [markdown]
# <div class="card">
#
# **Prediction · `surest_logit`** &nbsp; 1 minute · no points
#
# The smoothing is 0.1. For which z is the smoothed loss the largest?
#
# - **A.** z = 20: the right token has a probability of 1.000.
# - **B.** z = 5.7: the right token has a probability of 0.90.
# - **C.** z = 3: the right token has a probability of 0.38.
# </div>

# %% nbgrader={"grade": false, "grade_id": "surest_logit", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
surest_logit = "A"
### STUDENT GETS
# surest_logit = ...    # "A", "B" or "C"
### END SOLUTION

# %% tags=["hide-input", "nbval-check-output"]
answer = torch.tensor([[5]], device=device())
for z in (0, 3, 5.7, 10, 20):
    logits = torch.zeros(1, 1, 35, device=device())
    logits[..., 5], logits[..., PAD] = z, -100
    p = logits.softmax(-1)[0, 0, 5]
    plain, smooth = (smoothed_loss(logits, answer, s, PAD) for s in (0.0, 0.1))
    print(f"z = {z:>4}: probability {p:.3f}, loss {plain:.3f}, smoothed loss {smooth:.3f}")

FLOOR = -0.9 * math.log(0.9) - 0.1 * math.log(0.1 / 33)
print(f"the least that is possible with smoothing 0.1: {FLOOR:.3f}")

# %% nbgrader={"grade": true, "grade_id": "check_surest_logit", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("surest_logit", surest_logit)

# %% [markdown]
# Without smoothing, a larger z is always better. With smoothing, the best probability is 0.9, and more certainty
# increases the loss. The smoothed loss cannot reach 0: its minimum is the entropy of the smoothed targets. The training
# above came close to it, so the flat end of the curve is no sign of ignorance.
#
# Does the smoothing cause the doubt, or is this model just never surer? Take it away: train two copies of the finished
# model for 100 more steps on the same batches, one with smoothing and one without.

# %% tags=["hide-input"]
@torch.no_grad()
def certainty(model, many=400):
    """The mean probability of the most probable word, each after the right beginning."""
    target = as_ids([german for _, german in test_pairs[:many]], GERMAN, ends=True)
    p = model.eval()(test_source[:many], target[:, :-1]).softmax(dim=-1)    # (many, t, n)
    return p.amax(dim=-1)[target[:, 1:] != PAD].mean().item()

print(f"mean loss of the last 100 steps of training: {reached:.2f}, at least {FLOOR:.2f}")
print(f"mean probability of the most probable word: {certainty(finished):.2f}")
for smoothing in (0.1, 0.0):
    twin, longer = copy.deepcopy(finished), []
    torch.manual_seed(1)
    train(twin, 100, longer, [], smoothing=smoothing)
    hits = sum(exact(translate(twin, test_source), test_pairs))
    print(f"100 steps with smoothing {smoothing}: now {certainty(twin):.2f}, loss "
          f"{torch.tensor(longer[-20:]).mean():.2f}, {hits:,} of {len(test_pairs):,} right")

# %% [markdown]
# So smoothing is the cause. With it, the probability stays at its target of 0.9; without it, it rises within 100 steps,
# and the loss falls to nearly 0. Whether the doubt makes better translations cannot be read off a single run like this;
# train both from the start, with several seeds, in the open experiment below. [Vaswani et al.
# (2017)](https://arxiv.org/abs/1706.03762), section 5.4, report that smoothing makes the model's probabilities worse
# and its translations better.

# %% [markdown]
# ## Keeping more than one beginning
#
# Greedy decoding takes the best next token and cannot take it back. Suppose the first word is *a* with probability 0.6
# and *b* with 0.4. After *a*, the model is unsure: the best continuation has probability 0.3. After *b*, it is sure:
# 0.9. Greedy decoding gets 0.6 · 0.3 = 0.18 and misses 0.4 · 0.9 = 0.36.
#
# **[Beam search](../../site/glossary.md#beam-search)** keeps the `width` best beginnings, the **beams**, at each step
# instead of one. The score of a beginning is the logarithm of its probability, so scores **add up**:
#
# $$\text{score}(w_1 \dots w_t) \;=\; \sum_{i=1}^{t} \log p(w_i \mid w_1 \dots w_{i-1}, \text{source}) .$$
#
# 1. Extend every beam by every token: beams × n candidates, each with its beam's score plus the token's.
# 2. Keep the `width` candidates with the highest totals, whichever beams they come from.
# 3. A beam that has just written the stop token is finished. It is set aside with its score, and its place is not
#    filled again, so the width falls by one for each beam that finishes.
# 4. When no place is left, or the limit is reached, the best score wins, among the finished beams and those still
#    growing.
#
# With width 1 this is greedy decoding. With room for every candidate it is an exhaustive search.

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `beam_search`** &nbsp; ★★★ · 15 minutes · 4.5 points
#
# One sentence, several beams. The first and the last lines of the function are given; write one step. The beams (many,
# t) go through `model.decode` as a batch; memory and source have batch size 1 and have to be repeated to match. `width`
# may exceed the number of candidates, and start and stop may be one id. The given lines call `model.encode` exactly
# once, as they must, and return int64.
#
# <details><summary>Hint 1: all candidates at once</summary>
#
# Scores as a column, (many, 1), plus log-probabilities, (many, n), are totals (many, n). Flatten these into one list,
# from which `topk` takes the best. `topk` raises an error if you ask for more than there are.
#
# </details>
# <details><summary>Hint 2: two beams, five tokens</summary>
#
# Two beams and n = 5 make ten candidates. Candidate 7 of the flat list is beam 1 with token 2. If the best two are
# candidates 7 and 8, both new beams continue beam 1, and beam 0 is dropped. If token 2 is the stop token, the first of
# the two goes into `finished` as a pair of score and ids, the other one continues, and the width is 1. Booleans pick
# rows: `beams[ended]`, `beams[~ended]`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "beam_search", "locked": false, "schema_version": 3, "solution": true, "task": false}
@without_training
def beam_search(model, source, start, stop, limit, width):
    """Keeps the `width` best beginnings, and lengthens each by one token at a time.

    source: (1, s), ids. start, stop: ids. limit: the most tokens to write, at least 1.
    width: at least 1. Returns (t,), t ≤ limit: what the best beam wrote after the start
    token, the stop token included.
    """
    memory = model.encode(source)                       # (1, s, e)
    beams = torch.full_like(source[:, :1], start)       # (many, t), at first one beam
    scores = torch.zeros(1, device=source.device)       # (many,)
    finished = []                                       # pairs (score, ids)
    for _ in range(limit):
        # lengthen: new beams, (many, t + 1), and their scores; then let the finished go
        ### BEGIN SOLUTION
        many = len(beams)
        logits = model.decode(beams, memory.expand(many, -1, -1), source.expand(many, -1))
        log_p = logits[:, -1].log_softmax(dim=-1)           # (many, n)
        n = log_p.shape[-1]
        totals = (scores.unsqueeze(-1) + log_p).flatten()   # (many · n,)
        scores, places = totals.topk(min(width, totals.numel()))
        beams = torch.cat([beams[places // n], (places % n).unsqueeze(-1)], dim=1)
        ended = beams[:, -1] == stop
        finished.extend(zip(scores[ended], beams[ended]))
        beams, scores = beams[~ended], scores[~ended]
        width = width - int(ended.sum())
        ### END SOLUTION
        if width <= 0:
            break
    finished.extend(zip(scores, beams))
    best = max(finished, key=lambda pair: float(pair[0]))
    return best[1][1:]

# %% nbgrader={"grade": true, "grade_id": "check_beam_search", "locked": true, "points": 4.5, "schema_version": 3, "solution": false, "task": false}
check(beam_search)

# %% [markdown]
# The trained model makes too few mistakes for beam search to show anything. Take the model of step 160, which is still
# unsure, and let it translate 60 test numbers greedily and with four beams. Each translation is judged twice: by the
# probability that the model gives it, and by whether it is right.

# %%
def log_probability(model, source, ids):
    """What the model thinks of a translation (t,): the logarithm of its probability."""
    begun = torch.cat([torch.full_like(ids[:1], START), ids[:-1]]).unsqueeze(0)
    with torch.no_grad():
        log_p = model(source, begun).log_softmax(-1)[0]
    return log_p.gather(-1, ids.unsqueeze(-1)).sum().item()

unsure, many = moments["after 160 steps"].eval(), 60
hits, totals = {1: 0, 4: 0}, {1: 0.0, 4: 0.0}
for width, place in progress([(w, k) for w in (1, 4) for k in range(many)], "searching"):
    source = test_source[place : place + 1]
    ids = beam_search(unsure, source, START, STOP, 20, width)
    totals[width] += log_probability(unsure, source, ids) / many
    hits[width] += " ".join(as_words(ids, GERMAN)) == test_pairs[place][1]
for width in hits:
    print(f"width {width}: {hits[width]} of {many} right, mean score {totals[width]:.2f}")

# %% [markdown]
# The search finds translations that are more probable to the model; a search can do no more. Whether they are better
# translations depends on the model, and five more right among 60 can be chance. [Vaswani et al.
# (2017)](https://arxiv.org/abs/1706.03762), section 6.1, used four beams and divided each score by a term that grows
# with the length, because a sum of negative numbers favours short sentences.

# %% [markdown]
# ## An open experiment
#
# No points, and nothing is graded: **translate as many unseen numbers as you can without a mistake, after half a minute
# of training**. The number to beat is the exact match of this lesson's own model on the same 300 numbers, which are
# neither in the training set nor in the test set. You may change every line of `attempt`. `clock` yields the fraction
# of time used, from 0 to 1, for a schedule; you can stop a try early, and it still counts.
#
# Your tries are kept in the folder `experiments/` of the course. The cell below stops after 40 steps; set `steps=None`
# for a real try.

# %%
other_source = as_ids([english for english, _ in other_pairs[:300]], ENGLISH)

def score(model):
    return sum(exact(translate(model, other_source), other_pairs)) / len(other_source)

bench = Experiment("10_encoder_decoder", "exact match", beat=score(finished), lower=False)

def attempt(note, seconds=30, steps=None):
    torch.manual_seed(0)
    mine = EncoderDecoder(len(ENGLISH), len(GERMAN), 64, 4, 2, 24, PAD).to(device())
    adam = torch.optim.Adam(mine.parameters(), betas=(0.9, 0.98), eps=1e-9)
    with bench.timed(seconds, steps) as clock:
        for share in clock:
            rows = torch.randint(len(train_source), (64,)).to(device())
            loss = mine.train().loss(train_source[rows], train_target[rows], smoothing=0.1)
            adam.zero_grad()
            loss.backward()
            adam.param_groups[0]["lr"] = 0.003 * min(1, 4 * share, 1.05 * (1 - share))
            adam.step()
    bench.keep(score(mine), note, clock)

attempt("the lesson's model, 40 steps", steps=40)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Exact match against the number of the try. One point, the short first try, is at 0. A dashed line near 1 marks the number to beat, the lesson's own."}}
bench.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** One point for each try, in order, and the best so far; higher is better. The dashed line is the
# number to beat.
#
# </div>
#
# Does it help to use pre-norm and raise the learning rate? To use one wider block? Does smoothing help here at
# all? Change one thing at a time. Then repeat your best try with another seed: the difference shows how much is luck.

# %% [markdown]
# ## The same model, real sentences
#
# Nothing is trained here. Numbers follow a rule; sentences do not. Multi30k ([Elliott et al.,
# 2016](https://arxiv.org/abs/1605.00459)) has 29,000 descriptions of photographs in English, with German translations
# by people, and 1,000 more for testing. The run below was made once, with the finished parts of this lesson, and
# **recorded**; the command that it prints repeats it.
#
# The model is yours at e = 256, adapted to little data and little time: two blocks in each half, feed-forward networks
# 2e wide instead of 4e, pre-norm, so that a short warm-up is enough, and dropout. Words are cut into pieces, as in
# lesson 11, and both languages and the output layer share one table of piece vectors. The matrices of the blocks are
# trained by [Muon](https://kellerjordan.github.io/posts/muon/), everything else by AdamW.
#
# The search keeps five beams and divides each score by a number that grows linearly with the length ([Y. Wu et al.,
# 2016](https://arxiv.org/abs/1609.08144), section 7, with α = 1). The score is **[BLEU](../../site/glossary.md#bleu)**
# ([Papineni et al., 2002](https://aclanthology.org/P02-1040/)): the geometric mean of four shares, times a penalty if
# the translations are too short, on a scale from 0 to 100. The shares say how many of the runs of one, two, three and
# four words in the translations also occur in the references. The details of BLEU differ between programs, so sacrebleu
# prints a signature with each score.

# %% tags=["hide-input"]
run = recorded("multi30k")
data, settings, result = run["data"], run["settings"], run["result"]
print(f"command:   {run['command']}")
print(f"machine:   {run['machine']}")
print(f"training:  {run['seconds'] / 60:.0f} minutes, {data['trained_on']:,} pairs, "
      f"{settings['parameters']:,} parameters")
print(f"BLEU:      {result['bleu']} with {settings['beam_width']} beams, "
      f"{result['bleu_greedy']} greedily, on {data['tested_on']:,} sentences")
print(f"signature: {result['signature']}")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Cross-entropy on held-out sentences against minutes of training, one point after each pass through the data. It falls steeply at first and then more and more slowly."}}
minutes = [look["seconds"] / 60 for look in run["curve"]]
nats = [look["validation_nats"] for look in run["curve"]]
plots.curves({"": (minutes, nats)}, "minutes of training", "nats per token, held out")
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded. One point after each of the eight passes through the training pairs: the mean
# cross-entropy, here without smoothing, on pairs that are in neither the training nor the test set. Lower is better.
# The learning rate falls to 0 at the end, and the last two points hardly differ.
#
# </div>
#
# The first four sentences of the test set follow, then six others, ordered by BLEU from high to low. Nothing is edited.
# *wanted* is the human translation.

# %% tags=["hide-input"]
KINDS = {"English": "english", "model": "translation", "wanted": "reference"}
for sample in run["samples"]:
    print(f"BLEU of this sentence: {sample['sentence_bleu']}")
    for name, key in KINDS.items():
        text = textwrap.fill(sample[key], 78, subsequent_indent=10 * " ")
        print(f"{name:>8}: {text}")
    print()

# %% [markdown]
# Compare the scores with the sense. The Boston Terrier has become a boy, at 33.2. The men on the muddy field get 13.9
# for a translation with a single wrong article. BLEU compares words and cannot tell which of them matter.

# %% [markdown]
# ## What you can do now
#
# You can write the three masks of a model with two sequences; let one sequence attend to another; build the transformer
# of 2017, with a decoder block that agrees with PyTorch's; train it with teacher forcing; write with it greedily or
# with several beams; see in its attention which source word each target word comes from; and say why a loss with
# smoothed labels does not go to 0.
#
# **Three questions to think about**
#
# <details><summary>1. In the decoder's cross-attention, may position i look at the whole source, even at words "later"
# than i?</summary>
#
# Yes, and it has to: *sieben* is written first, but its English word comes last. The whole source is known from the
# start, so nothing in it has to be hidden. Only the positions of the target must not look ahead.
#
# </details>
# <details><summary>2. Each step of greedy decoding sends everything written so far through the decoder again. What
# could be kept between steps?</summary>
#
# Nearly everything. A position looks only backwards, so what the blocks compute for it does not change when more is
# written. The keys and values of earlier positions can be kept. So can those of the cross-attention, which depend on
# the source alone. Lesson 12 does this.
#
# </details>
# <details><summary>3. With width 100, beam search finds a translation that is more probable to the model than the one
# found with width 4, but worse. Is the search to blame, or the model?</summary>
#
# The model is. The search did its job better. The probabilities of short or empty sentences tend to be too high, and a
# wide beam finds them ([Stahlberg and Byrne, 2019](https://arxiv.org/abs/1908.10090), find that the most probable
# translation of all is often the empty one). Dividing scores by a power of the length corrects this fault of the model
# in the search.
#
# </details>
#
# Without the encoder and the cross-attention, what remains is lesson 9's generator, apart from where the norms are and
# how positions are encoded. Such a model is called **decoder-only**. Lesson 8's classifier, the other half alone, is
# **encoder-only**.
#
# **Further reading**
#
# - **[Vaswani et al., *Attention is all you need*, 2017](https://arxiv.org/abs/1706.03762)**, the whole of it; you have
#   now built everything in its section 3 except the weights shared by the tables (section 3.4).
# - [Sutskever, Vinyals and Le, *Sequence to sequence learning with neural networks*,
#   2014](https://arxiv.org/abs/1409.3215), section 3.
# - [Bahdanau, Cho and Bengio, *Neural machine translation by jointly learning to align and translate*,
#   2015](https://arxiv.org/abs/1409.0473), sections 2 and 3.
#
# **Next:** [lesson 11, *Tokens*](../11_tokens/11_tokens.ipynb)
