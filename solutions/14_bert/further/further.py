# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: BERT
#
# Nine measurements that [lesson 14](../14_bert/14_bert.ipynb) does not show. Five are about all-MiniLM-L6-v2, the
# published model of the lesson; they were made once and recorded. Three train small models of the lesson again.

# %%
import copy
from itertools import permutations

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.toy.numerals import as_pair
from helpers.data.toy.reviews import BLAME, PRAISE, reviews
from helpers.parts import bert
from helpers.parts.bert import Bert, BertConfig, PieceTokenizer, WordHead
from helpers.parts.classifier import mean_pool
from helpers.progress import shortened

plots.use_course_style()
run = recorded("minilm")["result"]

# %% [markdown]
# ## BERT base has 109 million parameters, by formula and by count
#
# The three tables and their norm have $n e + t_\text{max}\,e + 2e + 2e$ parameters, a block has $12e^2 + 13e$ as in
# lesson 12, and the pooler $e^2 + e$. The paper ([Devlin et al., 2019](https://arxiv.org/abs/1810.04805)) says 110M and
# 340M for its two models (section 3).

# %%
def formula(c):
    """The parameters of a BERT of these sizes."""
    return (c.n + c.t_max + 4) * c.e + c.depth * (12 * c.e**2 + 13 * c.e) + c.e**2 + c.e


for name in ("bert-base-uncased", "bert-large-uncased", "all-MiniLM-L6-v2"):
    c = BertConfig.published(name)
    with torch.device("meta"):
        counted = sum(p.numel() for p in Bert(c).parameters())
    print(
        f"{name:>19}: {formula(c):>11,} by formula, {counted:>11,} by count,"
        f" {c.n * c.e / counted:4.0%} of them the table of tokens"
    )
update = 2 * c.depth * 2 * 8 * c.e  # 12 matrices, A and B of rank 8
print(f"LoRA of rank 8 for {name}: {update:,} weights, {update / formula(c):.2%} of the model")

# %% [markdown]
# ## In three runs, BERT's text vectors hold the order of the words
#
# The lesson's contrastive training on English and German numerals, with other initial weights, other batches and other
# test numbers. Every run finds every numeral, though each has a hard negative with the same words in another order. It
# makes no difference whether batches are random or contain the hard negatives, nor whether the model has learned hidden
# words first.

# %%
twos = [
    (1000 * a + 100 * b + 10 * c + d, 1000 * b + 100 * a + 10 * c + d)
    for a, b, c, d in permutations(range(2, 10), 4)
    if a < b
]
numerals = [as_pair(number) for two in twos for number in two]
speller = PieceTokenizer(bert.learn_pieces([text for pair in numerals for text in pair], size=300))
english, german = (speller.batch(texts)[0].view(len(twos), 2, -1) for texts in zip(*numerals, strict=True))


def text_vectors(model, ids):
    """The mean over the real tokens, at length 1. ids: (b, t). Returns (b, e)."""
    mask = ids != speller.pad
    return F.normalize(mean_pool(model.hidden(ids, None, mask)[-1], mask), dim=-1)


def fit(weights, loss_of_batch, steps, rate=3e-3):
    """Train these weights."""
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in range(shortened(steps)):
        loss = loss_of_batch()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        schedule.step()


def taught_hidden_words(seed, learned, chance):
    """The lesson's BERT of numerals after learning hidden words, and its random start."""
    torch.manual_seed(seed)
    fresh = Bert(BertConfig(n=len(speller), t_max=48, e=64, h=4, depth=2))
    read = copy.deepcopy(fresh)
    head = WordHead(read)

    def hidden_words():
        rows = learned[torch.randint(len(learned), (16,), generator=chance)]
        ids = torch.cat([english[rows].flatten(0, 1), german[rows].flatten(0, 1)])
        inputs, targets = bert.corrupt(ids, speller.special(ids), speller.mask, len(speller), chance)
        return bert.masked_loss(head(read.hidden(inputs, None, ids != speller.pad)[-1]), targets)

    fit([*read.parameters(), *head.parameters()], hidden_words, 300)
    return read, fresh


def three_trainings(seed):
    """Shares found among 200 by a model taught in three ways, by the name of the way."""
    chance = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(twos), generator=chance)
    tested, learned = order[:100], order[100:]
    read, fresh = taught_hidden_words(seed, learned, chance)
    shares = {}
    for name, start, hard in (
        ("hidden words, then random batches", read, False),
        ("hidden words, then hard negatives", read, True),
        ("random weights, then random batches", fresh, False),
    ):
        model = copy.deepcopy(start)

        def pairs(model=model, hard=hard):
            rows = learned[torch.randperm(len(learned), generator=chance)[: 32 if hard else 64]]
            which = torch.randint(2, (64,), generator=chance)
            batch = [ids[rows].flatten(0, 1) if hard else ids[rows, which] for ids in (english, german)]
            scores = 20 * text_vectors(model, batch[0]) @ text_vectors(model, batch[1]).T
            partner = torch.arange(len(scores))
            return (F.cross_entropy(scores, partner) + F.cross_entropy(scores.T, partner)) / 2

        fit(list(model.parameters()), pairs, 150)
        with torch.no_grad():
            first, second = (text_vectors(model, ids[tested].flatten(0, 1)) for ids in (english, german))
        right = (first @ second.T).argmax(dim=1) == torch.arange(len(first))
        shares[name] = right.float().mean().item()
    return shares


by_seed = [three_trainings(seed) for seed in range(3)]
for name in by_seed[0]:
    print(f"{name:>35}: found among 200", *(f"{shares[name]:.1%}" for shares in by_seed), sep="  ")

# %% [markdown]
# **How to read it.** One column for each run. Guessing finds 0.5 %. All trainings take 150 steps of 64 pairs.

# %% [markdown]
# ## Trained on pairs, a published model beats word counts in a search
#
# 300 paragraphs of Python's reference manual are cut in half. For each first half, find its second half among all. The
# published model puts the right half first about nine points more often than **tf-idf**, which counts the words that
# two texts share and gives rare ones more weight. The standard error of each share is about 3 points.

# %%
search = run["search"]
print(f"{search['paragraphs']} paragraphs: the right half is the closest, is among five")
for way, (first, five) in search["found"].items():
    print(f"{way:>24}: {first:.0%}, {five:.0%}")

# %% [markdown]
# ## Trained to the end, a classifier on frozen vectors matches LoRA after 100 steps
#
# In the lesson, a classifier alone labels less than 70 % of the numerals right after 100 steps. Here, the lesson's BERT of
# hidden words is trained again, and the linear layer on its frozen vectors by up to 500 iterations of L-BFGS on all
# training numerals. On vectors of length 1 it reaches 94.5 %, and 98.0 % where each component is standardised. So the
# frozen vectors hold the order of the digits, and 100 steps are too few to read it. With all weights trained from
# random numbers, every numeral is right, too: the task shows how few weights suffice, and not what hidden words are
# worth.

# %%
order = torch.randperm(len(twos), generator=torch.Generator().manual_seed(0))
tested, learned = order[:100], order[100:]
labels = {name: torch.tensor([0, 1]).repeat(len(rows)) for name, rows in (("learned", learned), ("tested", tested))}


def share_right(classifier, vectors, label):
    with torch.no_grad():
        return (classifier(vectors).argmax(dim=1) == label).float().mean().item()


read, fresh = taught_hidden_words(0, learned, torch.Generator().manual_seed(0))
with torch.no_grad():
    known, new = (text_vectors(read, english[rows].flatten(0, 1)) for rows in (learned, tested))
scaled = [(x - known.mean(dim=0)) / known.std(dim=0) for x in (known, new)]
for name, (vectors, asked) in {"frozen": (known, new), "frozen, standardised": scaled}.items():
    torch.manual_seed(0)
    classifier = nn.Linear(64, 2)
    optimiser = torch.optim.LBFGS(classifier.parameters(), max_iter=shortened(500), line_search_fn="strong_wolfe")

    def closure(classifier=classifier, optimiser=optimiser, vectors=vectors):
        optimiser.zero_grad()
        loss = F.cross_entropy(classifier(vectors), labels["learned"])
        loss.backward()
        return loss

    optimiser.step(closure)
    print(f"{name:>27}: {share_right(classifier, asked, labels['tested']):.1%} right of {len(asked)}")

torch.manual_seed(0)
classifier, chance = nn.Linear(64, 2), torch.Generator().manual_seed(0)


def labelled():
    rows = learned[torch.randint(len(learned), (32,), generator=chance)]
    logits = classifier(text_vectors(fresh, english[rows].flatten(0, 1)))
    return F.cross_entropy(logits, torch.tensor([0, 1]).repeat(32))


fit([*fresh.parameters(), *classifier.parameters()], labelled, 100)
with torch.no_grad():
    asked = text_vectors(fresh, english[tested].flatten(0, 1))
print(f"{'from random, all weights':>27}: {share_right(classifier, asked, labels['tested']):.1%} right of {len(asked)}")

# %% [markdown]
# ## Pretraining helps most where labels are few
#
# Three ways to use the published model on [IMDb](https://ai.stanford.edu/~amaas/data/sentiment/) with the same labels,
# and a linear layer on counts of the same pieces. The fine-tuned model is ahead everywhere. LoRA of rank 8 is 0.7 to
# 2.1 points lower; at each number of labels alone, that could be chance. A linear layer on the frozen model is only
# about as good as the counts. With all labels, the fine-tuned model is three points ahead of counted words. Lesson 8's
# transformer was neither pretrained nor as large; these runs do not say which of the two matters more.

# %% mystnb={"image": {"alt": "Accuracy in percent against the number of labelled reviews, 100, 1,000 and 5,000, on a logarithmic axis. All weights: 78, 86 and 88.5. LoRA of rank 8 is 0.7 to 2.1 points lower, less than two standard errors. The frozen model at its best stage and the bag of pieces are four to eight points lower still: the frozen model is two points above the bag at 100 reviews, and just below it at 5,000."}}
few_labels = recorded("imdb_bert")["result"]["few_labels"]
counts = [row["labels"] for row in few_labels]
right = {
    "all weights": [row["all"] for row in few_labels],
    "LoRA, rank 8": [row["low rank"] for row in few_labels],
    "frozen, its best stage": [row["frozen"]["accuracy"] for row in few_labels],
    "bag of pieces": [row["bag of words"] for row in few_labels],
}
curves = {way: (counts, [100 * share for share in shares]) for way, shares in right.items()}
plots.curves(curves, "labelled reviews", "accuracy (%)", log="x", title="Pretraining helps most where labels are few")
plt.gca().set_xticks(counts, [f"{count:,}" for count in counts])
plt.gca().minorticks_off()
plt.show()
for row in few_labels:
    print(
        f"{row['labels']:>5,} labels: all {row['all']:.1%}, LoRA {row['low rank']:.1%}, "
        f"frozen {row['frozen']['accuracy']:.1%} (stage {row['frozen']['stage']}), "
        f"bag of pieces {row['bag of words']:.1%}"
    )

# %% [markdown]
# **How to read it.** Recorded, with 128 pieces of each of 2,000 test reviews, one run each. For the frozen model, the
# stage (0: the words) is chosen on a quarter of the labels. The standard error of a difference is 1.0 to 1.5 points.

# %%
tuned, trained = recorded("imdb_bert")["result"], recorded("imdb")["result"]
print(
    f"all labels: lesson 8's transformer {trained['test_accuracy']:.1%},"
    f" counted words {trained['bag_of_words_accuracy']:.1%},"
    f" published encoder {tuned['test_accuracy']:.1%}"
)

# %% [markdown]
# ## Some heads of a published model do one job
#
# Of the 72 heads, one gives almost all of its weight to the token before. Others prefer the token after, [CLS], or
# another place with the same word. The head for the token before works by position: on random tokens it does the same,
# and without the table of positions it no longer does.

# %% mystnb={"image": {"alt": "Four maps of attention weights over one sentence. One head puts nearly all of its weight on the token before: a line beside the diagonal. One looks mostly at the token after. Two look at the first token; one of these also puts a little weight on the diagonal."}}
example, table = run["example"], run["heads"]["table"]
kinds = {
    "previous": "the token before",
    "next": "the token after",
    "first": "[CLS]",
    "same": "the same word elsewhere",
}
titles = ["the token before", "the token after", "[CLS]", "the same word"]
plots.head_grid(torch.tensor(example["weights"]), example["pieces"], across=2, annotate=False, titles=titles)
plt.show()
print(f"mean weights over {run['heads']['tokens']:,} tokens of {run['heads']['sentences']} sentences:")
for kind, name in kinds.items():
    score = torch.tensor(table[kind])
    i, j = divmod(int(score.argmax()), score.shape[1])
    print(f"{name:>24}: block {i}, head {j:>2} with {score[i, j]:.3f}")
before = run["previous_head"]
print(f"the first of them, on this sentence: {before['sentence']:.4f}; on random tokens: {before['nonsense']:.3f};")
print(f"with the table of positions at 0: {before['without_positions']:.2f}")

# %% [markdown]
# **How to read it.** Row i shows what token i looks at; darker means more weight. Each map is the strongest head of its
# kind, on one sentence; the numbers are means over many. The fourth head finds little to look at in this sentence and
# puts most of its weight on [CLS].

# %% [markdown]
# ## A head that works by position fails across position 128
#
# The card of the [model](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2) says that its sentences were
# cut off at 128 tokens. In longer texts, the head for the token before fails only when a query before position 128 sees
# a key after it, a pair that the sentence training never contained. Give a model no longer texts than those it was
# trained on, or train it further on longer ones.

# %%
print(f"mean weight on the token before, in {before['texts']} reviews:")
print(
    f"{before['tokens']} tokens, positions 1 to 127: {before['long']:.2f}"
    f" (and on positions from 128 on: {before['long_beyond']:.2f})"
)
print(f"{before['tokens']} tokens, positions from 128 on: {before['long_later']:.2f}")
print(f"cut off after 128 tokens, positions 1 to 127: {before['cut']:.2f}")

# %% [markdown]
# **How to read it.** In the long texts, more than half of the weight goes to positions from 128 on. Cut the text there,
# and the head works again. Tokens at positions from 128 on still look at the token before.

# %% [markdown]
# ## A block in the middle is the best to read from
#
# The model is frozen, and a linear layer reads the mean vector of a review of
# [IMDb](https://ai.stanford.edu/~amaas/data/sentiment/) after one of its stages. Block 3 is ahead of the words and of
# the last block in every run; blocks 2 to 4 cannot be told apart. For frozen BERT base, too, the last block is not the
# best one to read: in tagging names, it reaches an F1 of 94.9, and the block before it 95.6 (table 7 of [Devlin et al.,
# 2019](https://arxiv.org/abs/1810.04805)).

# %% mystnb={"image": {"alt": "Bars of accuracy for the words and the six blocks, with whiskers and three marks each. Blocks 2, 3 and 4 are highest, at 78 to 79 percent, and their whiskers overlap; words, block 0 and block 1 are near 76, the last block at 74. A dotted line at 75 percent marks a bag of the same tokens."}}
probes = run["kind_or_not"]
by_draw = 100 * torch.tensor(probes["by_draw"])  # (draws, stages)
names = ["words", *(f"block {k}" for k in range(6))]
shares, bag = by_draw.mean(dim=0), 100 * sum(probes["bag_by_draw"]) / len(by_draw)
error = (shares * (100 - shares) / probes["test"]).sqrt()  # of the test reviews
figure, ax = plt.subplots(figsize=(6, 3.2))
ax.bar(names, shares, yerr=2 * error, capsize=3, color=plots.COLOURS[0], width=0.7)
for draw, mark in zip(by_draw, "ov^", strict=True):
    ax.plot(names, draw, mark, color="#333333", markersize=4, markerfacecolor="white")
ax.axhline(bag, color="#555555", linewidth=1, linestyle=(0, (2, 2)))
ax.set(ylabel="accuracy (%)", ylim=(50, 90), xlabel="stage whose vectors are read")
ax.set_title("The best blocks to read are in the middle")
plt.show()
print("; ".join(f"{name} {share:.1f}" for name, share in zip(names, shares, strict=True)), "%")
print(f"bag of the same tokens {bag:.1f} %; standard error {error.mean():.1f} %,", end=" ")
print(f"of block 3 less block 5 {(error[4] ** 2 + error[6] ** 2).sqrt():.1f} %")

# %% [markdown]
# **How to read it.** Each bar is the mean of three runs with different 1,000 labelled reviews (the three marks), each
# review cut off at 128 tokens; the axis begins at 50 %, the accuracy of guessing. Whiskers: two standard errors, from
# the 2,000 test reviews. Dotted: a linear layer on the counts of the same tokens.

# %% [markdown]
# ## Three labelled reviews find most judging words, and many that do not judge
#
# The small BERT has read 20,000 reviews without labels. Now it gets a linear layer on every vector, and three reviews
# in which each word is labelled: 1 if it judges (*good*, *dull*), 0 if not. Words that are used in the same way have
# similar vectors before any of them is labelled, so the model finds judging words that are not in these three reviews.
# From random weights, the same training finds few. But a third to a half of what the pretrained models flag is wrong.

# %%
(texts, _), (test_texts, _) = reviews()
vocabulary = bert.learn_pieces(texts, size=240)
tokenizer = PieceTokenizer(vocabulary)
config = BertConfig(n=len(vocabulary), t_max=48, e=64, h=4, depth=2)
all_ids, _, _ = tokenizer.batch(texts, t_max=48)  # (number of texts, 48)


def pretrain(steps=600, rate=3e-3):
    """The small BERT of the lesson, trained on hidden words."""
    torch.manual_seed(0)
    model = Bert(config)
    head, chance = WordHead(model), torch.Generator().manual_seed(0)
    weights = [*model.parameters(), *head.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for _ in range(shortened(steps)):
        ids = all_ids[torch.randint(len(all_ids), (64,), generator=chance)]
        ids = ids[:, : int((ids != tokenizer.pad).sum(dim=1).max())]  # (b, t)
        inputs, targets = bert.corrupt(ids, tokenizer.special(ids), tokenizer.mask, len(vocabulary), chance)
        logits = head(model.hidden(inputs, None, ids != tokenizer.pad)[-1])
        optimiser.zero_grad()
        bert.masked_loss(logits, targets).backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        schedule.step()
    return model.eval()


pocket = pretrain()

# %%
judging = {*PRAISE, *BLAME}


def tagged(text):
    """A review's ids (1, t), and targets (1, t): 1 for a word that judges, 0 for others."""
    words = bert.split_words(text)
    pieces = [bert.wordpiece(word, vocabulary) for word in words]
    ids = [vocabulary[piece] for of_word in pieces for piece in of_word]
    of = [-1, *(k for k, of_word in enumerate(pieces) for _ in of_word), -1]
    labels = torch.tensor([int(word in judging) for word in words])
    targets = bert.label_first_pieces(labels, torch.tensor(of))
    return torch.tensor([[tokenizer.cls, *ids, tokenizer.sep]]), targets.unsqueeze(0)


few = [tagged(text) for text in texts[:3]]
known = {int(i) for ids_of, _ in few for i in ids_of.flatten()}
tests = [tagged(text) for text in test_texts[:200]]


def tune(model, rate, epochs=20):
    """Train a new layer, and the model's parameters that can learn.

    Returns the share of the new judging words that is found, the share of the other words that is flagged, and the
    precision: of the flagged words, judging words of the three reviews aside, the share that judges.
    """
    torch.manual_seed(0)
    layer = nn.Linear(config.e, 2)
    groups = [{"params": layer.parameters(), "lr": 1e-2}]
    learned = [p for p in model.parameters() if p.requires_grad]
    if learned:
        groups.append({"params": learned, "lr": rate})
    optimiser = torch.optim.AdamW(groups)
    for _ in range(epochs):
        for review, targets in few:
            optimiser.zero_grad()
            bert.masked_loss(layer(model(review)[0]), targets).backward()
            optimiser.step()
    found, flagged = [], []
    with torch.no_grad():
        for review, targets in tests:
            said = layer(model(review)[0]).argmax(-1) == 1
            new = torch.tensor([[int(i) not in known for i in review[0]]])
            found += said[(targets == 1) & new].tolist()
            flagged += said[targets == 0].tolist()
    return sum(found) / len(found), sum(flagged) / len(flagged), sum(found) / (sum(found) + sum(flagged))


lora = copy.deepcopy(pocket)
torch.manual_seed(0)
bert.add_low_rank(lora, rank=4, alpha=8)
ways = {
    "from random weights": (Bert(config), 1e-3),
    "pretrained, frozen": (copy.deepcopy(pocket).requires_grad_(False), 0),
    "pretrained, fine-tuned": (copy.deepcopy(pocket), 1e-3),
    "LoRA, rank 4": (lora, 2e-3),
}
for name, (model, rate) in ways.items():
    recall, false_alarms, precision = tune(model, rate)
    print(
        f"{name:>23}: {recall:.1%} of the new words that judge are found,"
        f" {false_alarms:.1%} of the others flagged, precision {precision:.0%}"
    )

# %% [markdown]
# **How to read it.** One run each, with 200 test reviews. There are ten times as many other words as new judging words,
# so a small share of them is many false alarms. Training all weights finds the most judging words and has a lower
# precision than the frozen model. The texts come from templates, so words of a kind are used in the same way by
# construction.
