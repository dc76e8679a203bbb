# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Before transformers
#
# Eleven measurements that [lesson 13](../13_before_transformers/13_before_transformers.ipynb) does not show. The first
# eight are about recurrence and attention, the last three about a word's vector. Where nothing is said of three runs,
# each model is trained once.

# %%
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.toy.numerals import numeral_lists
from helpers.data.toy.reviews import BLAME, PRAISE, reviews
from helpers.device import device
from helpers.parts import recurrent as finished_parts
from helpers.parts.masks import masked_softmax
from helpers.parts.words import build_vocabulary, encode_batch, pad_rows
from helpers.progress import progress

plots.use_course_style()
torch.set_num_threads(1)  # the tensors are too small to share out

# %% [markdown]
# ## A gradient explodes only while the tanh is steep
#
# Let $W_s$ of a plain cell be g times an orthogonal matrix. The **slope** is the largest factor by which a small change
# of the first state changes the state t words later. With g = 1.5 it grows, but far less than $1.5^t$. The reason is
# the tanh: as the state grows, the tanh flattens. With words ten times as large it is flatter from the start, and the
# gradient vanishes although g is above 1. Without the tanh, the slope is $1.5^t$.


# %%
class PlainCell(nn.Module):
    """One step of the simplest recurrent network. W_s is g times an orthogonal matrix."""

    def __init__(self, e, d, g=1.0, squash=torch.tanh):
        super().__init__()
        self.squash = squash
        self.w_x = nn.Parameter(torch.randn(e, d) / e**0.5)
        self.w_s = nn.Parameter(g * torch.linalg.qr(torch.randn(d, d))[0])
        self.b = nn.Parameter(torch.zeros(d))

    def forward(self, x, s):
        """x: (b, e), a word. s: (b, d), the old state. Returns the new state, (b, d)."""
        return self.squash(x @ self.w_x + s @ self.w_s + self.b)


@torch.no_grad()
def state_slopes(cell, words, d=64):
    """|∂ s_t / ∂ s_0| for t = 1, 2, ..., and the mean slope of the tanh at each step."""
    s, product, found, steep = torch.zeros(d), torch.eye(d), [], []
    for x in words:
        step = torch.func.jacrev(lambda s, x=x: cell(x[None], s[None])[0])(s)  # (d, d)
        s, product = cell(x[None], s[None])[0], step @ product
        found.append(torch.linalg.matrix_norm(product, 2).item())
        steep.append((1 - s.square()).mean().item())
    return found, steep


torch.manual_seed(0)
words = 0.1 * torch.randn(60, 64)
for name, factor, squash in (
    ("g = 1.5", 1, torch.tanh),
    ("g = 1.5, words × 10", 10, torch.tanh),
    ("g = 1.5, no tanh", 1, nn.Identity()),
):
    found, steep = state_slopes(PlainCell(64, 64, 1.5, squash), factor * words)
    flat = (
        ""
        if isinstance(squash, nn.Identity)
        else f", mean slope of the tanh {steep[0]:.2f} at the first, {steep[59]:.2f} at the last"
    )
    print(f"{name:>19}: {found[9]:.1e} after 10 words, {found[59]:.1e} after 60{flat}")

# %% [markdown]
# **How to read it.** The mean slope of the tanh over the 64 components is 1 where all of them are steep.

# %% [markdown]
# ## A gate decides how long a state is remembered
#
# The slope after sixty words, for three draws of words and weights, in cells that are not trained. The plain cells
# forget, or explode. In a GRU, 0, 2 or 4 is added to the bias of the update gate and nothing else is changed. Where the
# gates are about 1/2, the GRU forgets even faster than the plain cell with g = 0.8. Where they are near 1, about half
# of the slope is left.


# %%
def plain_slopes(seed):
    torch.manual_seed(seed)
    words = 0.1 * torch.randn(60, 64)
    return {f"g = {g}": state_slopes(PlainCell(64, 64, g), words)[0] for g in (0.8, 1.0, 1.5)}


def gated_slopes(seed):
    torch.manual_seed(seed)
    words, cell, found = 0.1 * torch.randn(60, 64), nn.GRUCell(64, 64), {}
    for bias in (0, 2, 4):
        with torch.no_grad():
            cell.bias_ih[64:128] += 2 * (bias > 0)  # the update gate's
        found[f"gate bias {bias}"] = state_slopes(cell, words)[0]
    return found


print("slope after 60 words, for three draws of words and weights")
for draws in ([slopes(seed) for seed in range(3)] for slopes in (plain_slopes, gated_slopes)):
    for name in draws[0]:
        print(f"{name:>12}", *(f"{draw[name][59]:10.1e}" for draw in draws))

# %% [markdown]
# **How to read it.** A column for each draw. All cells of a draw read the same sixty words.

# %% [markdown]
# ## One vector is slow to learn
#
# In the lesson, one vector of 64 numbers gives out at three numbers of a list. This is not all that 64 numbers can
# hold: the same model gets further with twice as many steps. Attention gets further still with half of them.

# %%
train_pairs, tests = numeral_lists()
SPECIAL = ["<pad>", "<start>", "<stop>"]
PAD, START, STOP = range(3)
ENGLISH, GERMAN = (
    SPECIAL + sorted({word for text in side for word in text.split()}) for side in zip(*train_pairs, strict=True)
)


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
    right = [mine == german for mine, (_, german) in zip(written, tests[count], strict=True)]
    return sum(right) / len(right)


# %%
class AttentiveDecoder(nn.Module):
    """Exercise 4 of the lesson, solved: its weights are drawn in the same order."""

    def __init__(self, n, e, d, m, a):
        super().__init__()
        self.tokens, self.cell = nn.Embedding(n, e), nn.GRUCell(e + m, d)
        self.w_s, self.w_h = (nn.Parameter(torch.randn(w, a) / w**0.5) for w in (d, m))
        self.v = nn.Parameter(torch.randn(a) / a**0.5)
        self.to_logits = nn.Linear(d + m, n)

    def step(self, y, s, memory, mask):
        scores = finished_parts.additive_scores(s, memory, self.w_s, self.w_h, self.v)
        weights = masked_softmax(scores, mask)  # (b, t)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)  # (b, m)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)  # (b, d)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights


def translator(steps, **options):
    """A translator of width 64, trained for so many steps."""
    torch.manual_seed(0)
    model = finished_parts.RecurrentTranslator(len(ENGLISH), len(GERMAN), 64, PAD, **options)
    train(model.to(device()), steps)
    return model


attentive = translator(550, decoder=AttentiveDecoder)
slow = translator(1100, one_vector=True)
for name, model in {"attention, 550 steps": attentive, "one vector, 1,100 steps": slow}.items():
    print(f"{name:>23}: " + ", ".join(f"{exact(model, count):.2f}" for count in range(1, 7)))

# %% [markdown]
# **How to read it.** The share of a hundred lists of one, two, up to six numbers that are right, word for word. The
# lesson prints the same for one vector after 550 steps.

# %% [markdown]
# ## In three runs, one vector fails on lists of three, even one that is close to every word
#
# The lesson's two translators, trained three times with other initial weights. Attention gives the decoder a vector for
# each word, and it also shortens the way: every word is one step from the decoder. The third translator separates the
# two. It has the way of attention, but all of its weights are equal, so the decoder gets one vector, the mean. It
# fails as the first does: of lists of three, about a fifth are right. With attention nearly all of them are.


# %%
class MeanDecoder(AttentiveDecoder):
    """The decoder above with equal weights: the context is the mean of the memory."""

    def step(self, y, s, memory, mask):
        weights = mask / mask.sum(dim=1, keepdim=True)  # (b, t)
        c = (weights.unsqueeze(-1) * memory).sum(dim=1)  # (b, m)
        s = self.cell(torch.cat([self.tokens(y), c], dim=-1), s)  # (b, d)
        return self.to_logits(torch.cat([s, c], dim=-1)), s, weights


for name, options in (
    ("one vector", {"one_vector": True}),
    ("mean", {"decoder": MeanDecoder}),
    ("attention", {"decoder": AttentiveDecoder}),
):
    for seed in range(3):
        torch.manual_seed(seed)
        model = finished_parts.RecurrentTranslator(len(ENGLISH), len(GERMAN), 64, PAD, **options)
        train(model.to(device()), 550)
        found = " ".join(f"{exact(model, count):.2f}" for count in range(1, 7))
        written = [
            (mine.split(" , "), german.split(" , "))
            for mine, (_, german) in zip(translate(model, 5), tests[5], strict=True)
        ]
        hits = [sum(mine[k : k + 1] == [right[k]] for mine, right in written) for k in range(5)]
        print(f"{name:>12}, run {seed + 1}: {found}   lists of five, right by place:", *hits)

# %% [markdown]
# **How to read it.** The share of a hundred lists of one, two, up to six numbers that are right, word for word; then,
# how often the first, second, up to fifth number of a list of five is right. All take 550 steps.

# %% [markdown]
# ## In three runs, a vector of 256 numbers fails on lists of five
#
# The same translator with one vector, in which everything is four times as wide.

# %%
for seed in range(3):
    torch.manual_seed(seed)
    wide = finished_parts.RecurrentTranslator(len(ENGLISH), len(GERMAN), 256, PAD, one_vector=True)
    train(wide.to(device()), 550)
    found = " ".join(f"{exact(wide, count):.2f}" for count in range(1, 7))
    print(f"one vector of 256, run {seed + 1}: {found}")

# %% [markdown]
# **How to read it.** The share of a hundred lists of one, two, up to six numbers that are right, word for word, after
# 550 steps.

# %% [markdown]
# ## Attention moves back from the unit to the ten
#
# In one list of the lesson, the weight goes back from *seven* to *forty* before *vierzig* is written. It does so
# regularly. In the test lists of three, take every German unit before a ten, such as *sieben* in *sieben und
# vierzig*, and compare the mean position of the weight before the unit with that before the ten.


# %%
@torch.no_grad()
def alignment(english, german):
    """Where the decoder looked before each German word and the stop: (words + 1, t)."""
    target = padded(as_rows([german], GERMAN, ends=True))
    return attentive.eval()(padded(as_rows([english], ENGLISH)), target[:, :-1])[1][0].cpu()


moved = []
for english, german in tests[3][:100]:
    words, places = german.split(), None
    for k in range(1, len(words) - 1):
        if words[k] == "und":
            if places is None:
                looked = alignment(english, german)
                places = looked @ torch.arange(looked.shape[1]).float()  # (words + 1,)
            moved.append((places[k - 1] > places[k + 1]).item())
share = sum(moved) / len(moved)
print(f"{len(moved)} units before a ten; for {share:.0%} the weight moves back, from the unit to the ten")

# %% [markdown]
# **How to read it.** The weight moves back if the mean source position before the ten is to the left of the one
# before the unit.

# %% [markdown]
# ## Beyond six, attention loses its place in the middle
#
# Most lists of eight come out exactly one number short. Their beginnings are right, and mostly their last numbers,
# too: what is lost is in the middle. There the weights are spread out as well.


# %% mystnb={"image": {"alt": "Two panels. Left, the largest weight on each number of a list: in lists of four at least 0.9 for all, in lists of six at least about 0.77, in lists of eight falling from 0.97 at the first to below 0.5 at the fifth and sixth and rising to about 0.7 at the eighth. Right, bars for the first wrong number of the lists of eight that come out one short: none at the first two, about twenty each at the fourth and fifth, sixteen at the sixth, few at the third and seventh, one at the eighth."}}
def most_weight(english, german):
    """For each number of a list, the largest weight on its words before any German word."""
    weights, words = alignment(english, german), english.split()
    number = [-1 if word == "," else words[:k].count(",") for k, word in enumerate(words)]
    number = torch.tensor(number)  # (t,), −1 at commas
    return torch.stack([weights[:, number == k].sum(dim=1).max() for k in range(words.count(",") + 1)])


def looks(count):
    """Mean of the above over the tested lists of `count` numbers, while the model writes."""
    pairs = zip(tests[count], translate(attentive, count), strict=True)
    weights = [most_weight(english, mine) for (english, _), mine in pairs]
    return torch.stack(weights).mean(dim=0)


short, one_left_out, least_seen = [], 0, 0  # lists of eight that come out one number short
for mine, (english, german) in zip(translate(attentive, 8), tests[8], strict=True):
    if mine.count(",") == german.count(",") - 1:
        said, right = mine.split(" , "), german.split(" , ")
        short.append((said, right))
        left_out = [k for k in range(8) if right[:k] + right[k + 1 :] == said]
        one_left_out += bool(left_out)
        least_seen += int(most_weight(english, mine).argmin()) in left_out
first_wrong = [next((k for k, (a, b) in enumerate(zip(*each, strict=False)) if a != b), 7) for each in short]
wrong = torch.tensor(first_wrong, dtype=torch.int64).bincount(minlength=8)

figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="compressed")
plots.curves(
    {f"lists of {count}": (range(1, count + 1), looks(count)) for count in (4, 6, 8)},
    "place in the list",
    "largest weight, mean",
    title="Least weight in the middle",
    ax=axes[0],
)
axes[0].set(xticks=range(1, 9), ylim=(0, 1.03))
axes[1].bar(range(1, 9), wrong, color=plots.COLOURS[1])
axes[1].set(
    xticks=range(1, 9),
    xlabel="place of the first wrong number",
    ylabel="lists of eight",
    title="First errors in the middle",
)
plt.show()
ends = sum(said[-1] == right[-1] for said, right in short)
print(
    f"of 100 lists of eight, {len(short)} come out exactly one number short; "
    f"in {ends} of these the last number is right"
)
print(f"the first wrong number is the fourth, fifth or sixth in {wrong[3:6].sum()}")
print(
    f"one number is left out and all others are right in {one_left_out}; "
    f"in {least_seen} of these it is the one with the least weight"
)
print("largest weight, lists of eight: " + ", ".join(f"{x:.2f}" for x in looks(8)))
print("largest weight, lists of six:   " + ", ".join(f"{x:.2f}" for x in looks(6)))

# %% [markdown]
# **How to read it.** Left: for each number of a list, the weight of all its words at the step where it is largest,
# averaged over a hundred lists of that length. In lists of six each number gets most of the weight at some step; in
# lists of eight the fifth and the sixth get less than half even at their best. Right: among the lists of eight that
# come out one number short, the place of the first wrong number. Where simply one number is left out, it is mostly
# the one with the least weight.

# %% [markdown]
# ## Recurrence waits, even on one core
#
# A GRU takes longer than a layer of self-attention of the same width. The lead of attention shrinks as the text
# grows, because its own cost grows with t². The same products take several times as long one by one as at once. A
# good part of that is the cost of calling a small product: as many products of single numbers, with hardly any
# arithmetic, take a fifth of the time or more.


# %%
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


one = torch.randn(1, 1)


def times(x):
    """Of the five computations, in milliseconds."""
    rows, numbers = x[0].split(1), x[0, :, :1].split(1)
    return [
        milliseconds(lambda: gru(x)),
        milliseconds(lambda: [row @ w for row in rows]),
        milliseconds(lambda: [number @ one for number in numbers]),
        milliseconds(lambda: x[0] @ w),
        milliseconds(lambda: self_attention(x)),
    ]


print("     t     GRU   one by one   calls alone   at once   attention    milliseconds")
with torch.no_grad():
    for t in (64, 256, 1024):
        row = times(torch.randn(1, t, 128))
        print("{:>6} {:>7.2f} {:>12.2f} {:>13.2f} {:>9.2f} {:>11.2f}".format(t, *row))

# %% [markdown]
# **How to read it.** The best of three runs each, on t vectors of width 128. *One by one* and *at once* are the same
# multiplications, those of a 128 by 384 matrix: one position after the other, and in a single product. None of these
# has to wait for another; only the GRU's own steps do. *Calls alone* makes as many calls with one number each.
# Attention has four heads and all of its projections.

# %% [markdown]
# ## A stacked bidirectional reader sees the word that it has to predict
#
# In PyTorch's `nn.LSTM(..., num_layers=2, bidirectional=True)` the second layer reads the outputs of both directions of
# the first. Lesson 5's leak map, with random weights, shows which inputs each half depends on. Layer 1, reading
# backwards, has already told every position what comes next; layer 2 only has to repeat it. Such a reader can be
# trained for a task with labels, but not as a language model. So ELMo keeps its two directions apart.


# %% mystnb={"image": {"alt": "Three leak maps of 6 by 6 cells. Two readers, forward half: the lower triangle with its diagonal is filled, the rest is hatched, exactly zero. Two readers, backward half: the upper triangle with its diagonal. One stacked bidirectional LSTM, forward half: every cell is filled, also those above the diagonal."}}
def slopes(model, x):
    """(t, t): the largest |∂ output i / ∂ input j|, as lesson 5's leak map. x: (1, t, e)."""
    return torch.autograd.functional.jacobian(model, x).abs().amax(dim=(0, 2, 3, 5))


torch.manual_seed(0)
x = torch.randn(1, 6, 8)
ahead, back = (nn.LSTM(8, 8, num_layers=2, batch_first=True) for _ in range(2))
both = nn.LSTM(8, 8, num_layers=2, batch_first=True, bidirectional=True)
halves = {
    "two readers, forward": slopes(lambda x: ahead(x)[0], x),
    "two readers, backward": slopes(lambda x: back(x.flip(1))[0].flip(1), x),
    "one stacked, forward": slopes(lambda x: both(x)[0][..., :8], x),
}
figure, axes = plt.subplots(1, 3, figsize=(6, 2.6), layout="compressed")
for ax, (name, leak) in zip(axes, halves.items(), strict=True):
    plots.heat(leak, title=name, ax=ax, digits=2, annotate=False, blank_zeros=True)
    ax.set(xlabel="input j", ylabel="output i" if ax is axes[0] else "")
plt.show()
ahead_of_i = halves["one stacked, forward"].triu(1)
print(f"one stacked: {(ahead_of_i > 0).sum()} of 15 entries above the diagonal are not zero")

# %% [markdown]
# **How to read it.** How fast output i changes with input j, each map on its own scale; hatched cells are exactly zero.
# A model that predicts word i + 1 from output i must see nothing to the right of the diagonal.

# %% [markdown]
# ## Each reader knows its side, and a table knows neither
#
# Take every adjective of the test reviews, and ask two questions about its context: does *not*, *hardly* or *far
# from* come just before it, and does a full stop come just after it? A **linear probe** answers them from the
# adjective's vector alone. It is one weight for each component, fitted by least squares on one half of the adjectives
# and tested on the other. The table of vectors does no better than the commoner answer. The forward half of layer 1
# knows what comes before, the backward half what comes after. What lies on its other side a half can at most guess:
# from what it has read, the forward half can often tell that the sentence is about to end.

# %%
(texts, _), (test_texts, _) = reviews(8000, 2000)
vocabulary = build_vocabulary(texts, 1000)
names = list(vocabulary)
ids, mask = encode_batch(texts, vocabulary, 60)  # both (texts, t)
n = len(vocabulary)


torch.manual_seed(0)
reader = finished_parts.BiLanguageModel(n, 64, 2).to(device())
optimiser = torch.optim.Adam(reader.parameters(), lr=0.005)
losses = []
for _ in progress(range(200), "reading"):
    rows = torch.randint(len(ids), (48,))
    lengths = mask[rows].sum(dim=1)
    loss = reader.loss(ids[rows, : lengths.max()].to(device()), lengths.to(device()))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
last = sum(losses[-20:]) / len(losses[-20:])
print(f"{losses[0]:.2f} nats per word at the start, {last:.2f} after {len(losses)} steps")

# %%
adjectives, flips = (
    torch.tensor([vocabulary[word] for word in words if word in vocabulary])
    for words in (PRAISE + BLAME, ["not", "hardly", "from"])
)
test_ids, test_mask = encode_batch(test_texts, vocabulary, 60)
with torch.no_grad():
    layers = reader.layers(test_ids.to(device()), test_mask.sum(dim=1).to(device())).cpu()
found = torch.isin(test_ids, adjectives) & test_mask
found[:, 0] = found[:, -1] = False  # each needs a word on either side
row, place = found.nonzero(as_tuple=True)
vectors = layers[row, :, place]  # (adjectives, 3, 128)
answers = {
    "not, hardly or far from before?": torch.isin(test_ids[row, place - 1], flips),
    "a full stop after?": test_ids[row, place + 1] == vocabulary["."],
}


def probe(vectors, answer):
    """How often a linear probe on vectors (n, e) gives the answers (n,): second half."""
    half = len(vectors) // 2
    inputs = F.pad(vectors, (0, 1), value=1.0)  # a bias
    wanted = 2.0 * answer[:half] - 1  # 1 for yes, −1 for no
    weights = torch.linalg.lstsq(inputs[:half], wanted, driver="gelsd").solution
    return ((inputs[half:] @ weights > 0) == answer[half:]).float().mean().item()


sources = {
    "table": vectors[:, 0, :64],
    "forward, 1": vectors[:, 1, :64],
    "backward, 1": vectors[:, 1, 64:],
    "both, 1": vectors[:, 1],
}
print(f"{len(vectors):,} adjectives\n{'':>32}  commoner  " + "  ".join(sources))
for question, answer in answers.items():
    commoner = max(answer.float().mean().item(), 1 - answer.float().mean().item())
    shares = [f"{probe(x, answer):>{len(name)}.3f}" for name, x in sources.items()]
    print(f"{question:>32}  {commoner:8.3f}  " + "  ".join(shares))

# %% [markdown]
# **How to read it.** The share of right answers on the second half of the adjectives. *Commoner* always gives the
# more frequent answer. The columns are the table, each half of layer 1, and both halves together.

# %% [markdown]
# ## A task chooses its layer
#
# ELMo's user learns one share for each layer, $\mu = \operatorname{softmax}(\text{raw})$, and a scale γ, and gives
# the task $\gamma \sum_j \mu_j h_j$ (equation 1 of [Peters et al.](https://arxiv.org/abs/1802.05365), who write s for
# μ). The shares start equal and the reader is not changed. For the question about *not*, most of the weight goes to
# layer 1.

# %%
torch.manual_seed(0)
mix, judge = finished_parts.LayerMix(3), nn.Linear(128, 1)  # raw and gamma
learned = [*mix.parameters(), *judge.parameters()]
optimiser = torch.optim.Adam(learned, lr=0.05)
before = answers["not, hardly or far from before?"].float()
for _ in range(150):
    logits = judge(mix(vectors.unsqueeze(2))).flatten()  # (adjectives,)
    loss = F.binary_cross_entropy_with_logits(logits, before)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
shares = torch.softmax(mix.raw.detach(), dim=0).tolist()
print("shares of layers 0, 1, 2: " + ", ".join(f"{share:.2f}" for share in shares))

# %% [markdown]
# **How to read it.** The shares after 150 steps. Layer 0 is the table, which cannot answer the question.
