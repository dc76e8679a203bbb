# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Looking inside
#
# Beside [lesson 19](../19_looking_inside/19_looking_inside.ipynb). First the smallest model that copies, with one head in each
# of two layers: when do its heads form, what does it say without the first of them, and what does a single layer learn?
# Then the lesson's model: the shares of its last layer, and its composition scores. Then a toy of superposition, five
# features of the dictionary, and a cell for those who have GPT-2's weights.

# %%
import math

import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.recorded import recorded
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.dictionary import Squeezed, train_squeezed
from helpers.parts.induction import (
    AttentionOnly, copy_losses, induction_scores, previous_scores, said_twice, train_to_copy,
)
from helpers.parts.patching import patch_every_head

plots.use_course_style()
torch.set_num_threads(1)

# %% [markdown]
# ## The induction score rises first
#
# For a long time nothing seems to happen. Then both scores rise within a few dozen steps, the induction score ahead of
# the previous-token score all the way. A faint previous-token signal is enough for the other head to begin. In large
# models induction heads form as suddenly, early in training, and the loss shows a bump there ([Olsson et al.,
# 2022](https://arxiv.org/abs/2209.11895)).

# %% mystnb={"image": {"alt": "Two panels over the same steps. Above, the loss stays near log 64, about 4.2, for most of the training and then falls to almost 0 within a few dozen steps. Below, the induction score and the previous-token score are near 0 all that time and rise in the same few dozen steps, the induction score first."}}
rows = said_twice(64, 24, 64, torch.Generator().manual_seed(9))
torch.manual_seed(0)
copier, losses, looks = AttentionOnly(n=64, e=64, h=1, depth=2), [], []
for loss in train_to_copy(copier, 400):
    losses.append(loss)
    if len(losses) % 5 == 0 or loss < 0.1:
        with torch.no_grad():
            _, looked = copier.run(rows[:, :-1])
        looks.append((len(losses), previous_scores(looked[0]).item(), induction_scores(looked[1], 24).item()))
    if loss < 0.1:
        break
figure, axes = plt.subplots(2, 1, figsize=(5.8, 4.8), sharex=True, layout="compressed")
plots.loss_curve(losses, landmarks={"a guess: log 64": math.log(64)}, xlabel="", ax=axes[0])
steps, previous, induction = zip(*looks)
plots.curves({"previous token, layer 0": (steps, previous), "induction, layer 1": (steps, induction)},
             "step", "score", ax=axes[1])
plt.show()

# %% [markdown]
# ## Without layer 0, layer 1 copies from the wrong places
#
# Taking the head of layer 0 away raises the loss far above a guess. The head of layer 1 still copies: in nine of ten
# places the model says the token that this head looks at most. That token is seldom the right one.

# %%
def silenced(layer, z):
    return torch.zeros_like(z) if layer == 0 else z

with torch.no_grad():
    logits, (_, looked) = copier.run(rows[:, :-1], silenced)
    loss = copy_losses(copier, rows, silenced).mean()
most = rows[:, :-1].gather(1, looked[:, 0].argmax(dim=-1))    # where the weight is largest
said = logits.argmax(dim=-1)
print(f"without the head of layer 0: loss {loss:.2f}, a guess {math.log(64):.2f}")
print(f"says the token that layer 1 looks at most in {(said == most)[:, 24:].float().mean():.0%} of the places, "
      f"and the right one in {(said == rows[:, 1:])[:, 24:].float().mean():.0%}")

# %% [markdown]
# ## A clock
#
# A single layer does not learn the task of the lesson in 250 steps, more than any of the lesson's five models needed.
# But one layer, trained with p = 32 alone, has the score of a perfect induction head at p = 32. But it has learned to look
# 31 places back, whatever is there. Unless the period varies, in training or in the test, the score cannot tell a clock
# from an induction head.

# %%
for h in (1, 4):
    torch.manual_seed(0)
    single = AttentionOnly(n=64, e=64, h=h, depth=1)
    *_, last = train_to_copy(single, 250)
    print(f"one layer, heads: {h}, p from 16 to 32, 250 steps: loss {last:.2f}")
torch.manual_seed(0)
clock = AttentionOnly(n=64, e=64, h=1, depth=1)
*_, last = train_to_copy(clock, 120, periods=(32, 32))
print(f"after training with p = 32: loss {last:.3f}")
for p in (32, 31, 24, 16):
    others = said_twice(64, p, 64, torch.Generator().manual_seed(p))
    with torch.no_grad():
        loss = copy_losses(clock, others).mean().item()
        _, weights = clock.run(others[:, :-1])
    print(f"p = {p}: induction score {induction_scores(weights[0], p)[0]:.2f}, loss {loss:.2f}")

# %% [markdown]
# ## With the norm's σ held fixed, the shares add up to 1
#
# The lesson patches the four heads of layer 1 at the last position, one at a time. The parts of the lost logit that they
# bring back add up to more than 1. The last norm divides by another σ in each patched run. Divide by that of the
# corrupted run throughout, and the model is linear from layer 1 to the logit: the shares add up to 1.

# %%
torch.manual_seed(0)
four = AttentionOnly(n=64, e=64, h=4, depth=2)
steps = next(steps for steps, loss in enumerate(train_to_copy(four, 400), 1) if loss < 0.1)
clean, answers = rows[:, :35], rows[:, 11]
corrupted = clean.clone()
corrupted[:, 10] = torch.stack([row.bincount(minlength=64).argmin() for row in clean])

def logit(x, deviation=None):
    """The mean logit of the right answer, of last hidden states (b, e). deviation: in place of their own."""
    x = x - x.mean(dim=-1, keepdim=True)
    if deviation is None:
        deviation = (x.square().mean(dim=-1, keepdim=True) + four.norm.eps).sqrt()
    logits = four.to_logits(x / deviation * four.norm.weight + four.norm.bias)
    return logits.gather(1, answers[:, None]).mean().item()

with torch.no_grad():
    fresh, stale = ({name: part[:, -1] for name, part in four.parts(ids).items()} for ids in (clean, corrupted))
    high, low = sum(fresh.values()), sum(stale.values())
    fixed = (low.var(dim=-1, unbiased=False, keepdim=True) + four.norm.eps).sqrt()
    for name, deviation in (("its own σ", None), ("the corrupted σ", fixed)):
        lost = logit(high, deviation) - logit(low, deviation)
        shares = [(logit(low + fresh[f"1.{head}"] - stale[f"1.{head}"], deviation) - logit(low, deviation)) / lost
                  for head in range(4)]
        print(f"with {name}:", *[f"{share:.2f}" for share in shares], f"   together {sum(shares):.2f}")

# %% [markdown]
# ## The weights point to the same two heads
#
# A head is two products of matrices:

# %%
plots.diagrams.head_circuits()

# %% [markdown]
# One head owns d rows of the matrices for queries, keys and values, and d columns of `unify`. Above, a hidden state at
# each end gives a score (before rotation): the **QK circuit** says where a head looks. Below, a hidden state enters at
# the right, and the product is what the head writes: the **OV circuit** says what it moves. The induction circuit is a
# **K-composition**: the keys of layer 1 read what the OV circuits of layer 0 write.
#
# For each head of layer 0, its mean composition score with the heads of layer 1. The keys read heads 1 and 3 most, the
# two that patching found. Random matrices have a score, too. A second control keeps the trained weights and turns the
# reading ones by a random rotation. For the keys all four heads are above both, yet patching heads 0 and 2 brings back
# little.

# %%
norm = torch.linalg.matrix_norm

def mean_scores(reads, to_values, unify):
    """Mean composition score of each head of layer 0, (4,). All: (64, 64)."""
    heads = [slice(16 * head, 16 * head + 16) for head in range(4)]
    writes = [unify[:, head] @ to_values[head] for head in heads]
    return torch.tensor([sum(norm(reads[head] @ one) / norm(reads[head]) for head in heads) / norm(one) / 4
                         for one in writes])

first, second = four.layers
written_by = (first.to_values.weight, first.unify.weight)
torch.manual_seed(0)
with torch.no_grad():
    for role in ("queries", "keys", "values"):
        reads = getattr(second, f"to_{role}").weight
        turned = torch.stack([mean_scores(reads @ torch.linalg.qr(torch.randn(64, 64))[0], *written_by)
                              for _ in range(200)])
        print(f"{role:>7}:", *[f"{one:.2f}" for one in mean_scores(reads, *written_by)],
              f"   turned at random {turned.mean():.3f}, standard deviation {turned.std():.3f}, "
              f"highest of 200 {turned.max():.3f}")
    chance = torch.stack([mean_scores(*torch.randn(3, 64, 64)) for _ in range(500)])
print(f"random matrices: {chance.mean():.3f}, standard deviation {chance.std():.3f}, "
      f"highest of 500 draws {chance.max():.3f}")

# %% [markdown]
# ## Five features in two dimensions
#
# A toy of [Elhage et al., 2022](https://arxiv.org/abs/2209.10652): five features are squeezed into two dimensions,
# x = fW, and read back through the same matrix: f′ = ReLU(xWᵀ + b). The rows of W are the directions of the features.
# In the loss each feature counts 0.9 times as much as the one before.

# %% mystnb={"image": {"alt": "Two planes with arrows from the origin, one for each of five features. Left, features always present: two long arrows at a right angle, and three short ones. Right, features rarely present: five arrows of about equal length that point in five directions, spread evenly around the circle."}}
figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.4), layout="compressed")
kinds = {1.0: "Always present: two directions", 0.05: "Rarely present: five directions"}
for ax, (present, title) in zip(axes, kinds.items()):
    torch.manual_seed(1)
    toy = Squeezed(k=5, e=2)
    *_, loss = train_squeezed(toy, present, steps=800)
    table = toy.table.detach()
    for number, (a, b) in enumerate(table.tolist()):
        ax.annotate("", (a, b), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "#6a4fb3"})
        if math.hypot(a, b) > 0.5:
            ax.annotate(str(number), (1.12 * a, 1.12 * b), ha="center", va="center")
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", title=title)
    print(f"present with chance {present}: lengths", *[f"{length:.2f}" for length in table.norm(dim=1)])
plt.show()

# %% [markdown]
# Each arrow is a row of W; long ones are numbered. One run each. Of features that are always present, only two get a
# long direction. Of features that are rarely present, all five do, at angles other than right ones: they disturb each
# other, but seldom occur together.

# %% [markdown]
# ## Features with a name
#
# Five of the first forty features of the lesson's dictionary (λ = 0.2), each with the places in held-out modules where
# it is strongest, in brackets the token. The first four were picked because they are easy to name: `not` after `if`, the
# first letter of a docstring, what a `for` loop runs over, `self` after `if`. The fifth is harder: its places continue
# a word. A name is a hypothesis that none of these lines tests.

# %%
run = recorded("dictionary")
for number in (1, 24, 33, 35, 21):
    sample = run["samples"][number]
    print(f"feature {sample['feature']}, present in {sample['present']:.1%} of the places")
    for before, token, strength in sample["contexts"][:4]:
        print(f"    {strength:>5.2f}  …{before}[{token}]".replace("\n", "⏎"))

# %% [markdown]
# ## Every head of GPT-2
#
# How does GPT-2 complete "When Mary and John went to the store, John gave a drink to" with the **indirect object**,
# Mary? [Wang et al., 2022](https://arxiv.org/abs/2211.00593) found 26 heads in seven groups. Their corrupted texts name
# three other people, and they patch paths; here the corrupted text repeats the other name, and each of 144 heads is
# patched at all positions. This page was made without the weights, so it tells no result. `make data ARGS=gpt2` fetches
# them.

# %%
def indirect_objects(tokenizer, pairs):
    """Clean and corrupted prompts (b, t), and the right answers of both, (b,) each."""
    prompt = "When {0} and {1} went to the store, {2} gave a drink to"
    clean = [tokenizer.encode(prompt.format(a, b, b)) for a, b in pairs]
    corrupted = [tokenizer.encode(prompt.format(a, b, a)) for a, b in pairs]
    answers = [[tokenizer.encode(f" {name}")[0] for name in pair] for pair in pairs]
    return [torch.tensor(one) for one in (clean, corrupted, *zip(*answers))]

published = gpt2_files("gpt2", places=("folder", "kept", "embedded"), say=lambda line: None)
if published.taken.place == "embedded":
    print("The published GPT-2 is not on this machine: nothing is run here.")
else:
    pairs = [("Mary", "John"), ("Tom", "James"), ("Anna", "Paul"), ("David", "Sarah")]
    prompts = indirect_objects(Tokenizer.from_folder(published.folder), pairs)
    high, low, shares = patch_every_head(gpt2.load(published.folder, "cpu"), *prompts)
    print(f"logit difference: clean {high:.2f}, corrupted {low:.2f}")
    plots.heat(shares, row_label="block", column_label="head", annotate=False)
    plt.show()
