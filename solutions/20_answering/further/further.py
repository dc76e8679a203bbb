# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Taught to answer
#
# Beside [lesson 20](../20_answering/20_answering.ipynb): what the chosen answers do alone; what further demonstrations
# teach, and a reward does not; what a KL penalty holds back; what the clip is for; and what a packed dialogue loses
# where it can see its neighbours, or where its positions go on.

# %%
import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.toy import sums
from helpers.parts.answering import pack
from helpers.training.answering import new_model, supervised

plots.use_course_style()

# %%
points = recorded("answering")["result"]["looks"]
measured_away = {p["part"] for p in points if "away" in p}


def curve(part, what, seconds=False):
    """Steps, or mean seconds, and what each seed measured there, from the model trained on answers on."""
    runs = [[p for p in points if p["part"] == part and p["seed"] == seed] for seed in range(3)]
    begins = [0.0 if what == "away" else ends("answer", what)[seed] for seed in range(3)]
    places = [sum(p["used"] for p in look) / 3 if seconds else look[0]["step"] for look in zip(*runs)]
    return [0, *places], [[begin, *(p[what] for p in run)] for begin, run in zip(begins, runs)]


def ends(part, what):
    """What each seed measured at the end of that part."""
    return [[p[what] for p in points if p["part"] == part and p["seed"] == seed][-1] for seed in range(3)]


def table(rows):
    """Prints, for each row, means of three seeds at the end, and exact match by seed."""
    print(f"{'':32}    exact   greedy   hedged   KL   exact, by seed")
    for name, part in rows.items():
        exact, greedy, hedged = (sum(ends(part, what)) / 3 for what in ("exact", "greedy", "hedged"))
        away = f"{sum(ends(part, 'away')) / 3:6.2f}" if part in measured_away else ""
        seeds = "  ".join(f"{share:.0%}" for share in ends(part, "exact"))
        print(f"{name:32} {exact:8.0%} {greedy:8.0%} {hedged:8.0%} {away:6}   {seeds}")


# %% [markdown]
# ## The chosen answers alone do as much as pairs

# %%
table({"answers only": "answer", "DPO": "DPO", "chosen answers alone": "chosen"})
for name, part in {"DPO": "DPO", "chosen answers alone": "chosen"}.items():
    moved = "".join(f", {kind} {sum(ends(part, kind)) / 3:+.2f}" for kind in ("chosen", "rejected"))
    print(f"mean change of log π, {name}{moved}")

# %% [markdown]
# **How to read it.** Recorded, means of three seeds at the end. *Chosen answers alone* has the loss of exercise 1, on
# the preferred answers of the pairs that DPO has. *Greedy* is the exact share of the most probable answers.
#
# The chosen answers alone raise exact match as much, with each seed, and hedging falls as far. They lower the rejected
# answers, too: raising one answer takes probability from the others. DPO lowers them more, and raises the chosen ones
# less; its margin can grow even if both fall.

# %% [markdown]
# ## Further demonstrations teach adding, a reward removes the hedges
#
# From the same start, 300 more steps on the answers of demonstrations, at a fifth of the rate; and 40 steps of the
# strict reward, with the loss of exercise 6 and one step on each batch.

# %% mystnb={"image": {"alt": "Two panels against processor seconds, two lines each: strict reward, and further demonstrations. Left, hedged answers: with the reward they fall to nearly none, with further demonstrations they stay at about a quarter. Right, greedy answers that are exact: with the reward they hardly rise, with further demonstrations they rise to nearly all."}}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), layout="compressed")
names = {"strict reward": "policy", "further demonstrations": "further"}
titles = ("The reward nearly ends the hedging", "Demonstrations teach adding")
for ax, what, title, y in zip(axes, ("hedged", "greedy"), titles, ("hedged", "exact, greedy")):
    plots.curves({name: curve(part, what, seconds=True) for name, part in names.items()},
                 "processor seconds", y, title=title, ax=ax)
    ax.set_ylim(0)
plt.show()
table({"answers only": "answer", "strict reward": "policy", "further demonstrations": "further",
       "further, then strict reward": "further, policy", "further, without hedges": "further, plain"})

# %% [markdown]
# **How to read it.** Recorded, three seeds: lines are means, bands reach from the lowest to the highest. *Processor
# seconds* add up all cores; sampling counts.
#
# At these learning rates greedy answers improve faster from demonstrations, which keep the hedging. A likely reason: a
# demonstration has a target for each token, a reward is one bit for a whole answer. One after the other, they add
# better and hedge hardly ever. Further demonstrations without hedges are still better, where they can be had.

# %% [markdown]
# ## With a KL penalty hedging changes less, for good and for bad
#
# The loss of exercise 6, one step on each batch, from the same start, with β = 0.5 in the place of 0.

# %% mystnb={"image": {"alt": "Two panels of shares of sampled answers against policy steps, 0 to 40, for training with the lenient reward. Left, without the penalty: the share of answers that name the sum rises, the share that is exact falls to a small part of what it was, and the share of hedged answers rises from about a quarter to most. Right, with the penalty: naming the sum rises a little, exact match hardly falls, hedging rises to about two fifths."}}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.3), layout="compressed", sharey=True)
names = {"names the sum (the reward)": "named", "exact match": "exact", "hedged": "hedged"}
titles = ("No penalty: exact match falls", "With the penalty it hardly falls")
for ax, part, title in zip(axes, ("hole", "hole, penalty"), titles):
    plots.curves({name: curve(part, what) for name, what in names.items()},
                 "step", "share of answers", title=title, ax=ax)
    ax.set_ylim(0)
axes[0].get_legend().remove()
plt.show()
table({"strict reward": "policy", "strict reward, penalty": "policy, penalty",
       "lenient reward": "hole", "lenient reward, penalty": "hole, penalty"})

# %% [markdown]
# **How to read it.** Recorded, three seeds: lines are means, bands reach from the lowest to the highest. *KL* is the
# divergence from the start, in nats an answer.
#
# With the penalty the model is nearer to the start, and hedging changes less. Under the lenient reward it rises less;
# under the strict one it falls less, to about as much as DPO leaves. So a penalty does not replace a right reward.

# %% [markdown]
# ## With the clip, or with smaller steps, a batch of answers can serve for eight
#
# Ten batches of sampled answers and the strict reward, with one or eight steps on each batch, with the loss of
# exercise 6. The clip has ε = 0.2; without it, the ratio takes the place of log π and nothing more. Smaller steps
# have a third of the lesson's rate.

# %% mystnb={"image": {"alt": "Two panels against batches of sampled answers, 0 to 10, three lines each, all at the lesson's rate: 8 steps a batch with the clip, 8 steps without it, and 1 step. Left, KL divergence from the start: it rises most without the clip, less with it, least with 1 step. Right, exact match: with the clip it rises most; without it, it is above 1 step after two batches and ends at the same place."}}
rows = {"8 steps, clipped": "clipped", "8 steps, not clipped": "not clipped", "1 step": "once"}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), layout="compressed")
titles = ("The clip keeps the model nearer", "More answers are exact with it")
for ax, what, title, y in zip(axes, ("away", "exact"), titles,
                              ("KL divergence from the start", "exact match")):
    plots.curves({name: curve(part, what) for name, part in rows.items()},
                 "batches of sampled answers", y, title=title, ax=ax)
    ax.set_ylim(0)
axes[0].get_legend().remove()
plt.show()
table(rows | {"8 smaller steps, clipped": "clipped, slower", "8 smaller steps, not clipped": "not clipped, slower"})

# %% [markdown]
# **How to read it.** Recorded, as above; *KL* and the other columns are those of the first table.
#
# At the lesson's rate, exact match after eight steps a batch ends higher with the clip than after one step, and than
# without the clip, with each seed; the ratio alone ends about where one step does. Greedy answers are exact less
# often even with it. With smaller steps exact match ends higher than after one step, clip or no clip. So smaller
# steps, too, let a batch serve for eight.

# %% [markdown]
# ## A packed row needs its own mask and positions
#
# The model is the lesson's, trained on the answers of demonstrations. Three dialogues are read alone, and then in one
# row.

# %%
model = new_model(0)
supervised(model, 0, look=lambda *_: None)
train_pairs, _ = sums.pairs()
ids, is_text, _ = sums.demonstrations(train_pairs, torch.Generator().manual_seed(0))
dialogues = [row[part] for row, part in zip(ids[:3], is_text[:3])]
dialogues = [dialogue[-5:] for dialogue in dialogues]    # short ones: the table has 16 positions
packed, positions, mask = pack(dialogues)

@torch.no_grad()
def logits(mask, positions):
    x = model.tokens(packed) + model.positions.table(positions)
    return model.to_logits(model.transformer(x[None], mask))[0]

with torch.no_grad():
    alone = torch.cat([model(dialogue[None])[0] for dialogue in dialogues])
causal, running = torch.ones_like(mask).tril(), torch.arange(len(packed))
for name, how in {"own mask and positions": (mask, positions), "one causal mask": (causal, positions),
                  "positions that go on": (mask, running)}.items():
    difference = (logits(*how) - alone).abs().max().item()
    print(f"{name:>22}: largest difference of a logit {difference:.4f}")

# %% [markdown]
# **How to read it.** The difference is to the logits of the same dialogue read alone. With its own mask and positions a
# packed dialogue has the same logits; with either of the two missing it has others. One model, one seed.
