# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Looking inside
#
# Three measurements beside [lesson 19](../19_looking_inside/19_looking_inside.ipynb), on the smallest model that copies: one head in each
# of two layers. When do its heads form, what does it say without the first of them, and what does a single layer learn
# where the period never changes? Then a toy of superposition, five features of the dictionary, and a cell for those who
# have GPT-2's weights.

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
# One layer, trained with p = 32 alone, has the score of a perfect induction head at p = 32. But it has learned to look
# 31 places back, whatever is there. Unless the period varies, in training or in the test, the score cannot tell a clock
# from an induction head.

# %%
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
