# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Encoder and decoder
#
# What goes beyond [lesson 10](../10_encoder_decoder/10_encoder_decoder.ipynb): three measurements with the finished
# parts and a shorter training on the same data, and two looks at its recorded run.

# %%
import copy
import textwrap

import matplotlib.pyplot as plt
import torch
from torch import nn

from helpers import plots
from helpers.data.datasets import translation_pairs
from helpers.data.recorded import recorded
from helpers.data.toy.numerals import read_english
from helpers.parts.encoder_decoder import EncoderDecoder, greedy_decode, warmup_rate
from helpers.parts.words import pad_rows
from helpers.progress import progress

plots.use_course_style()
torch.set_num_threads(1)

# %% tags=["hide-input"]
def recombined(pair):
    """Whether the thousands of a number have the ten that is kept back."""
    return read_english(pair[0].split()) // 1000 % 100 // 10 == 7

parts = translation_pairs(places="embedded", say=lambda line: None)[:3]
train_pairs, _, familiar = [[p for p in part if not recombined(p)] for part in parts]
new = [pair for part in parts for pair in part if recombined(pair)][:300]

SPECIAL = ["<pad>", "<start>", "<stop>"]
PAD, START, STOP = range(3)
ENGLISH, GERMAN = (
    SPECIAL + sorted({word for sentence in side for word in sentence.split()}) for side in zip(*train_pairs)
)

def as_ids(pairs):
    """Sources (b, s), and targets (b, t + 1) between start and stop."""
    english, german = ({word: place for place, word in enumerate(words)} for words in (ENGLISH, GERMAN))
    source = [[english[word] for word in pair[0].split()] for pair in pairs]
    target = [[START, *(german[word] for word in pair[1].split()), STOP] for pair in pairs]
    return pad_rows(source, PAD)[0], pad_rows(target, PAD)[0]

train_source, train_target = as_ids(train_pairs)

def train(model, begun, steps, smoothing):
    """The training of the lesson, from step `begun` on. Returns the losses."""
    optimiser, losses = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9), []
    model.train()
    for step in progress(range(begun + 1, begun + steps + 1), "training"):
        optimiser.param_groups[0]["lr"] = 0.5 * warmup_rate(step, 64, 400)
        rows = torch.randint(len(train_source), (64,))
        loss = model.loss(train_source[rows], train_target[rows], smoothing)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses

def exact(model, pairs):
    """The share of the numbers that are translated without a mistake."""
    source, target = as_ids(pairs)
    written = greedy_decode(model, source, START, STOP, 20).tolist()
    wanted = [row[1 : row.index(STOP) + 1] for row in target.tolist()]
    return sum(row[: len(right)] == right for row, right in zip(written, wanted)) / len(pairs)

@torch.no_grad()
def certainty(model, pairs):
    """The mean probability of the most probable word, each after the right beginning."""
    source, target = as_ids(pairs)
    p = model.eval()(source, target[:, :-1]).softmax(dim=-1)    # (b, t, n)
    return p.amax(dim=-1)[target[:, 1:] != PAD].mean().item()

# %% [markdown]
# ## Smoothing causes the doubt
#
# Train a model of the lesson for 500 steps with smoothing, and then two copies of it for 100 more steps on the same
# batches: one with smoothing, one without. Only the second becomes sure.

# %%
torch.manual_seed(0)
model = EncoderDecoder(len(ENGLISH), len(GERMAN), 64, 4, 2, 24, PAD)
train(model, 0, 500, 0.1)
print(f"after 500 steps: mean probability of the most probable word {certainty(model, familiar):.2f}")
for smoothing in (0.1, 0.0):
    twin = copy.deepcopy(model)
    torch.manual_seed(1)
    losses = train(twin, 500, 100, smoothing)
    print(f"100 steps with smoothing {smoothing}: now {certainty(twin, familiar):.2f}, "
          f"loss {sum(losses[-20:]) / 20:.2f}, {exact(twin, familiar):.1%} right")

# %% [markdown]
# **How to read it.** One seed. With smoothing, the probability stays at its target of 0.9. Without it, the model is almost
# certain, and the loss falls far below the least that smoothing allows.

# %% [markdown]
# ## Heads agree at the tens and differ elsewhere
#
# The map of the lesson is a mean over four heads. Here is each head of the model above, after 500 steps.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four heat maps, one for each head of the last block's cross-attention, for eighty two thousand three hundred and forty seven. A row for each German word and one for the stop token, a column for each English word. In the rows of achtzig and vierzig every head looks at eighty and forty; in those of zwei and sieben most look at two and seven; in the rows of und, tausend and the stop token the heads differ."}}
english = "eighty two thousand three hundred and forty seven"
german = "zwei und achtzig tausend drei hundert sieben und vierzig"
source, target = as_ids([(english, german)])
maps = []
hook = model.eval().decoder[-1].cross_attention.register_forward_pre_hook(
    lambda layer, given: maps.append(layer.weights(*given)[0].detach())
)
model(source, target[:, :-1])
hook.remove()
plots.head_grid(maps[0], german.split() + ["<stop>"], english.split(), titles=[f"head {r}" for r in range(4)],
                across=2, annotate=False, row_label="about to write", column_label="looks at")
plt.show()

# %% [markdown]
# **How to read it.** One seed. At the tens all four heads look at the word that is translated, at the units most do. At
# *und*, *tausend* and `<stop>` they differ.

# %% [markdown]
# ## The published model has 44 million parameters in its blocks
#
# By default, `nn.Transformer` has the size of the paper's base model: e = 512, h = 8, six blocks in each half. Token
# vectors and output layer are not part of it. On the device `meta` a tensor has a shape but no numbers.

# %% tags=["nbval-check-output"]
def count(module):
    return sum(p.numel() for p in module.parameters())

with torch.device("meta"):
    theirs = count(nn.Transformer(batch_first=True))
    ours = EncoderDecoder(37_000, 37_000, 512, 8, 6, 1, 0)
blocks = count(ours.encoder) + count(ours.decoder)
biases = 18 * 3 * 512    # 18 attentions, whose three projections have biases in PyTorch's
norms = 2 * 2 * 512      # one more norm at the end of either half
print(f"nn.Transformer: {theirs:,}; our blocks with those biases and norms: {blocks + biases + norms:,}")

# %% [markdown]
# ## Real sentences: the curve of the training
#
# The run on Multi30k that the lesson shows, after each of its eight passes through the data.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Cross-entropy on held-out sentences against minutes of training, one point after each pass through the data. It falls steeply at first and then more and more slowly."}}
run = recorded("multi30k")
minutes = [look["seconds"] / 60 for look in run["curve"]]
nats = [look["validation_nats"] for look in run["curve"]]
plots.curves({"": (minutes, nats)}, "minutes of training", "nats per token, held out")
plt.show()

# %% [markdown]
# **How to read it.** Recorded, one seed. The mean cross-entropy, here without smoothing, on pairs that are in neither
# the training nor the test set. Lower is better. The learning rate falls to 0 at the end, and the last two points
# hardly differ.

# %% [markdown]
# ## Real sentences: what BLEU does not see
#
# Four of the test sentences, chosen by hand from high to low BLEU, with the model's translation by beam search and a
# human one.

# %% tags=["hide-input"]
KINDS = {"English": "english", "model": "translation", "human": "reference"}
for sample in [run["samples"][k] for k in (0, 1, 7, 9)]:
    print(f"BLEU of this sentence: {sample['sentence_bleu']}")
    for name, key in KINDS.items():
        text = textwrap.fill(sample[key], 78, subsequent_indent=10 * " ")
        print(f"{name:>8}: {text}")

# %% [markdown]
# **How to read it.** BLEU compares words with one human translation, and cannot tell which of them matter. The Boston
# Terrier that became a boy gets a higher score than the muddy field, which has one wrong ending, but other words and
# another order than the human's.
