# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # 20 · Taught to answer
#
# *Change what the loss looks at*
#
# A small language model has been trained on dialogues: questions about sums, and answers. Those who answered know
# every sum, but in three answers of ten they **hedge**: they name two numbers, one of them wrong. The model now answers
# new questions. **Which loss teaches it to answer with the right number, and nothing else?**
#
# | | |
# |---|---|
# | **You will build** | the log-probability of an answer, the loss of DPO, a reward, group-relative advantages, a clipped policy loss and a packed row of dialogues; and you fix a loss on answers |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb) and [9](../09_character_generator/09_character_generator.ipynb) |
# | **It takes** | about 90 minutes: seven exercises, 22 points, and two predictions |
# | **It computes** | for about a minute, in seven cells |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, n size of the vocabulary.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import copy

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.data.toy import sums
from helpers.lesson import start
from helpers.parts.answering import token_log_probabilities, until_end, write_answers
from helpers.parts.generator import CharTransformer
from helpers.progress import progress

check = start("20_answering")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two horizontal bars, each divided into exact, wrong and hedged answers. Of the demonstrations nearly three quarters are exact, the others hedged, none wrong. Of the model’s answers about a seventh are exact and most are wrong; the hedged share is about as large as in the demonstrations."}}
points = recorded("answering")["result"]["looks"]

def ends(part, what):
    """What each of three seeds measured at the end of a training: (3,)."""
    runs = [[p[what] for p in points if p["part"] == part and p["seed"] == seed]
            for seed in range(3)]
    return torch.tensor([run[-1] for run in runs])

def answer_bars(parts, title, own=None):
    """A bar for each part, {name: part}, below that of the demonstrations.

    own: {name: exact match of one more run}.
    """
    demonstrated, _, _ = sums.demonstrations(
        sums.pairs()[0], torch.Generator().manual_seed(0))
    hedged = (demonstrated == sums.OR).any(dim=1).float().mean().expand(3)
    rows = {"demonstrations": (1 - hedged, hedged)}
    rows |= {name: (ends(part, "exact"), ends(part, "hedged"))
             for name, part in parts.items()}
    figure, ax = plt.subplots(figsize=(6, 0.95 + 0.36 * len(rows)))
    for y, (exact, hedged) in enumerate(rows.values()):
        edges = [0, exact.mean().item(), 1 - hedged.mean().item(), 1]
        for left, right, colour, ink in zip(edges, edges[1:],
                                            (plots.COLOURS[5], "#dddddd", plots.COLOURS[6]),
                                            ("#010101", "#222222", "#010101")):
            ax.barh(y, right - left, left=left, height=0.72, color=colour)
            if right - left > 0.045:
                ax.text((left + right) / 2, y - 0.02, f"{right - left:.0%}", color=ink,
                        ha="center", va="center", fontsize=8.5)
        for edge in (exact, 1 - hedged):
            if edge.min() < edge.max():
                ax.plot([edge.min(), edge.max()], [y + 0.27] * 2, color="#333333",
                        linewidth=1.5, linestyle="-", marker="")
    for y, name in enumerate(rows):
        if name in (own or {}):
            ax.plot(own[name], y - 0.27, "D", color="#333333",
                    markerfacecolor="white", markersize=5)
    ax.set(xlim=(0, 1), xticks=[], title=title)
    ax.set_yticks(range(len(rows)), labels=list(rows))
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    ax.invert_yaxis()
    for spine in ax.spines.values():
        spine.set_visible(False)
    names = ["exact", "wrong", "hedged"]
    colours = [plots.COLOURS[5], "#dddddd", plots.COLOURS[6]]
    ax.legend([plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours], names,
              loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=3, frameon=False)
    plt.show()

answer_bars({"the model": "whole"}, "The model has learned to hedge, and hardly to add")

# %% [markdown]
# <div class="figure-caption">
#
# An **exact** answer is the right number and nothing else. A *hedged* one names two numbers; all others are *wrong*.
# Above, the demonstrations; below, what the model answers to 500 new questions, sampled at temperature 1. Recorded,
# means of three seeds; thin lines reach from the lowest to the highest.
#
# </div>
#
# The orange part is good imitation. The grey part should shrink if the model imitates better. So the lesson has two
# halves: a loss that imitates better, and losses for which somebody judges the answers.
#
# ## Most of the loss looks at the questions
#
# A **chat template** writes a dialogue as one text, with special tokens for who speaks and where an answer ends:
# `<user>`, `<answer>` and `<end>`. **Demonstrations** are dialogues to imitate.

# %%
train_pairs, test_pairs = sums.pairs()
ids, is_text, is_answer = sums.demonstrations(train_pairs, torch.Generator().manual_seed(0))
for row in ids[:6].tolist():
    print(sums.text_of(row) + "<end>")
print(f"{len(train_pairs):,} dialogues to learn from, {len(test_pairs)} questions held out")

# %% [markdown]
# A small decoder predicts every next token of these texts, as in lesson 9.

# %%
def new_model():
    torch.manual_seed(0)
    return CharTransformer(len(sums.WORDS), e=64, h=4, depth=2, t_max=16)

def train(model, loss_of, what, steps=300, rate=5e-3):
    """loss_of: a function of the model and of which dialogues are in the batch, (b,)."""
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in progress(range(steps), what):
        loss = loss_of(model, torch.randint(len(ids), (64,), generator=generator))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        factor = min((step + 1) / 30, 1.05 - (step + 1) / steps)
        optimiser.param_groups[0]["lr"] = rate * factor
        optimiser.step()
    return model

def text_loss(model, some):
    targets = ids[some].masked_fill(~is_text[some], -100)[:, 1:]
    return F.cross_entropy(model(ids[some])[:, :-1].mT, targets)

right_answers = [str(a + b) for a, b in test_pairs]

def answers_of(model, temperature):
    """One answer to each held-out question."""
    asked = torch.tensor([sums.question(*pair) for pair in test_pairs])
    generator = torch.Generator().manual_seed(5)
    written = write_answers(model, asked, 9, sums.END, temperature, generator)
    return [sums.text_of(row) for row in written.tolist()]

own = {}    # exact match of each model that is measured

def measure(model, name, temperature=1.0):
    """Prints shares of the answers to held-out questions."""
    pairs = list(zip(answers_of(model, temperature), right_answers))
    found = {"exact": [text == right for text, right in pairs],
             "hedged": ["or" in text for text, _ in pairs],
             "sum named": [right in text for text, right in pairs]}
    shares = {what: sum(each) / len(each) for what, each in found.items()}
    own[name] = shares["exact"]
    print(f"{name}:".ljust(20), ", ".join(f"{what} {x:.0%}" for what, x in shares.items()))

on_text = train(new_model(), text_loss, "whole text")
measure(on_text, "whole text")

# %% [markdown]
# **Exact match** is the share of exact answers: 9 % in this run. *Sum named* counts every answer with the sum in it.
#
# Why is exact match so low? The loss also asks for the questions, whose digits can only be guessed.

# %% tags=["hide-input"]
with torch.no_grad():
    nats = F.cross_entropy(on_text(ids)[:, :-1].mT, ids[:, 1:], reduction="none")
parts = {"question": is_text & ~is_answer, "answer": is_answer}
for name, part in parts.items():
    share = (nats * part[:, 1:]).sum() / (nats * is_text[:, 1:]).sum()
    print(f"{name:>8}: {share:.0%} of the loss")

# %% [markdown]
# **Most of the loss comes from questions.** Training on dialogues like these is **instruction tuning**. It often has
# a **loss mask**: only the answer's tokens count.

# %% [markdown]
# <div class="card">
#
# **Exercise 1 · `answer_loss`** &nbsp; fix · ★★☆ · 7 minutes · 3 points
#
# The mean cross-entropy of the answers' tokens. Logits at position i predict token i + 1. `is_answer` says of each
# token whether it belongs to an answer: `<end>` included, `<answer>` not; the first token of a row is never part of
# an answer. All tokens that count weigh alike, whatever row they are in. Find the bug and fix it.
#
# <details><summary>Hint 1: one row by hand</summary>
#
# Take the five tokens `8`, `<answer>`, `4`, `2`, `<end>`. Below each of the four losses in `nats`, write the token
# that it is about, and the entry of `counts` that it is multiplied by.
#
# </details>
# <details><summary>Hint 2: what the model never learns</summary>
#
# With the bug one token of every answer has no loss. What would a model write first?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "answer_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def answer_loss(logits, ids, is_answer):
    """The mean cross-entropy of the answers' tokens, one number.

    logits: (b, t, n), at position i those of token i + 1. ids: (b, t).
    is_answer: (b, t), booleans.
    """
    nats = F.cross_entropy(logits[:, :-1].mT, ids[:, 1:], reduction="none")    # (b, t − 1)
    ### BEGIN SOLUTION
    counts = is_answer[:, 1:]
    return (nats * counts).sum() / counts.sum()
    ### STUDENT GETS
    # counts = is_answer[:, :-1]
    # return (nats * counts).sum() / counts.sum()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_answer_loss", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(answer_loss)

# %% [markdown]
# <details><summary>The same bug in public: read this once your check is green</summary>
#
# OpenRLHF's mask left the first token of each answer without a loss
# ([issue 973](https://github.com/OpenRLHF/OpenRLHF/issues/973)). verl's left out `<end>`, and models did not stop
# ([issue 3562](https://github.com/verl-project/verl/issues/3562)).
#
# </details>

# %%
def loss_on_answers(model, some):
    return answer_loss(model(ids[some]), ids[some], is_answer[some])

on_answers = train(new_model(), loss_on_answers, "answers only")
measure(on_answers, "answers only")
measure(on_answers, "answers only, greedy", temperature=0)
print("question   sampled   greedy")
columns = [test_pairs, *(answers_of(on_answers, temperature) for temperature in (1.0, 0))]
for (a, b), drawn, greedy in list(zip(*columns))[:6]:
    print(f"{a}+{b}      {drawn:9} {greedy}")

# %% [markdown]
# **With the mask, exact match is 26 %, after as many steps.** *Greedy* answers take the most probable token at each
# place. They show that the model can often add, and hide the hedges while these are a minority. So we judge samples.
#
# ## Better imitation keeps the hedges
#
# The samples hedge as before: 28 % without the mask, 27 % with it. If they do because the demonstrators do, the same
# training without the demonstrations that hedge should leave none.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Four horizontal bars of exact, wrong and hedged answers. Demonstrations: nearly three quarters exact, the others hedged. Whole text: about a seventh exact, most wrong. Answers only: about a third exact, somewhat more wrong. Both hedge about as often as the demonstrations. Without hedges: more than three quarters exact, the others wrong, none hedged."}}
supervised = {"whole text": "whole", "answers only": "answer", "without hedges": "plain"}
answer_bars(supervised, "Hedges are imitated, with the mask or without")

# %% [markdown]
# <div class="figure-caption">
#
# *Whole text* is the model of the first picture. *Without hedges* has the loss of exercise 1, and of the demonstrations
# only those with one number. Recorded, three seeds, 300 steps each; thin lines as before.
#
# </div>
#
# **The mask more than doubles exact match and keeps the hedges; without hedges to imitate there are none.** Suppose
# that clean demonstrations cannot be had. Then the model's own answers can be judged. (This judge knows the sums, and
# could have filtered the demonstrations; elsewhere people can often judge what they could not have written.)
#
# ## A judge compares two answers
#
# A **preference** says which of two answers to a question is better. A loss on preferences compares the two answers'
# probabilities.

# %% [markdown]
# <div class="card">
#
# **Exercise 2 · `answer_log_probability`** &nbsp; ★☆☆ · 5 minutes · 2 points
#
# The logarithm of the probability of each row's answer, given what comes before it. A probability of an answer is the
# product of those of its tokens. Logits at position i predict token i + 1, and `is_answer` is as in exercise 1.
#
# <details><summary>Hint 1: a row by hand</summary>
#
# Over four tokens with equal logits, what is the probability of an answer of two tokens, and what is its logarithm?
#
# </details>
# <details><summary>Hint 2: which entry</summary>
#
# Of the n log-probabilities at a position only one counts: that of the token which is really next. Which function
# picks one entry of the last axis for each position?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "answer_log_probability", "locked": false, "schema_version": 3, "solution": true, "task": false}
def answer_log_probability(logits, ids, is_answer):
    """The log-probability of each row's answer: (b,).

    logits: (b, t, n), at position i those of token i + 1. ids: (b, t).
    is_answer: (b, t), booleans.
    """
    ### BEGIN SOLUTION
    own = logits[:, :-1].log_softmax(dim=-1).gather(-1, ids[:, 1:, None])[..., 0]
    return (own * is_answer[:, 1:]).sum(dim=-1)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_answer_log_probability", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(answer_log_probability)

# %% [markdown]
# **Direct preference optimisation** (DPO) trains on preferences ([Rafailov et al.,
# 2023](https://arxiv.org/abs/2305.18290), section 4): a chosen answer $y_w$ and a rejected one $y_l$ to a question
# x. It raises the one and lowers the other, each compared with its probability under the **reference** π_ref, a frozen
# copy of the model at the start:
#
# $$\mathcal L = -\log\sigma\Big(\beta\Big[\log\frac{\pi(y_w|x)}{\pi_{\text{ref}}(y_w|x)}
# - \log\frac{\pi(y_l|x)}{\pi_{\text{ref}}(y_l|x)}\Big]\Big)$$
#
# The bracket is the **margin**. Because of σ, the sigmoid, a pair teaches little once its margin is a few times 1/β.

# %% [markdown]
# <div class="card">
#
# **Exercise 3 · `preference_loss`** &nbsp; ★★★ · 9 minutes · 4 points
#
# Write the loss of DPO, as a mean over the pairs. You get four vectors of log-probabilities of whole answers. They
# may be hundreds apart, and then loss and gradient still have to be finite.
#
# <details><summary>Hint 1: logarithms are given</summary>
#
# The logarithm of a quotient is a difference of two of the vectors.
#
# </details>
# <details><summary>Hint 2: far apart</summary>
#
# What are `torch.sigmoid(torch.tensor(-200.0))` and its logarithm? `torch.nn.functional` has both in one function.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "preference_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def preference_loss(chosen, rejected, chosen_reference, rejected_reference, beta=0.1):
    """The loss of DPO, one number: the mean over b pairs.

    All four: (b,), log-probabilities of whole answers, by the model and by the reference.
    """
    ### BEGIN SOLUTION
    margin = (chosen - chosen_reference) - (rejected - rejected_reference)
    return -F.logsigmoid(beta * margin).mean()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_preference_loss", "locked": true, "points": 4.0, "schema_version": 3, "solution": false, "task": false}
check(preference_loss)

# %% [markdown]
# To make pairs, the model answers 300 questions eight times each, and a program is the judge. A question with right
# and wrong answers gives one pair, the first of each kind; a wrong one may be incomplete. β is 1, not the default 0.1.

# %% tags=["hide-input"]
def sampled(model, questions, samples, seed):
    """Questions with sampled answers: ids (b · samples, t), is_answer, and the sums."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(train_pairs), generator=generator)[:questions].tolist()
    pairs = [train_pairs[i] for i in order for _ in range(samples)]
    asked = torch.tensor([sums.question(*pair) for pair in pairs])
    written = write_answers(model, asked, 9, sums.END, generator=generator)
    no = torch.zeros_like(asked, dtype=torch.bool)
    is_answer = torch.cat([no, until_end(written, sums.END)], dim=1)
    return torch.cat([asked, written], dim=1), is_answer, [str(a + b) for a, b in pairs]

def pairs_of(model):
    """Ids and is_answer of the chosen answers, and of the rejected ones."""
    written, inside, right = sampled(model, 300, 8, seed=1000)
    texts = [sums.text_of(row) for row in written[:, sums.QUESTION:].tolist()]
    exact = torch.tensor([text == sum_ for text, sum_ in zip(texts, right)]).view(300, 8)
    mixed = exact.any(dim=1) & ~exact.all(dim=1)
    mixed |= ~mixed.any()    # all, if the model has learned nothing yet
    first = torch.arange(300)[mixed] * 8
    good, bad = (first + kind[mixed].int().argmax(dim=1) for kind in (exact, ~exact))
    return (written[good], inside[good]), (written[bad], inside[bad])

# %%
chosen, rejected = pairs_of(on_answers)
for k in range(3):
    print("chosen:", sums.text_of(chosen[0][k, sums.QUESTION:].tolist()).ljust(10),
          "rejected:", sums.text_of(rejected[0][k, sums.QUESTION:].tolist()))

def log_p(model, answers, some):
    ids, is_answer = answers[0][some], answers[1][some]
    return answer_log_probability(model(ids), ids, is_answer)

everything = torch.arange(len(chosen[0]))
with torch.no_grad():
    reference = [log_p(on_answers, answers, everything) for answers in (chosen, rejected)]

def dpo_loss(model, some):
    now = [log_p(model, answers, some) for answers in (chosen, rejected)]
    return preference_loss(*now, reference[0][some], reference[1][some], beta=1.0)

preferring = copy.deepcopy(on_answers)
optimiser = torch.optim.Adam(preferring.parameters(), lr=1e-4)
generator = torch.Generator().manual_seed(0)
for step in progress(range(40), "DPO"):
    loss = dpo_loss(preferring, torch.randint(len(everything), (32,), generator=generator))
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(preferring.parameters(), 1.0)
    optimiser.step()

measure(preferring, "DPO")
with torch.no_grad():
    for name, answers, before in (("chosen", chosen, reference[0]),
                                  ("rejected", rejected, reference[1])):
        change = (log_p(preferring, answers, everything) - before).mean().item()
        print(f"mean change of log π, {name}: {change:+.2f}")

# %% [markdown]
# **DPO removes most of the hedging:** it falls from 27 % to 9 %. The sum is named as often as before, so the model has
# learned to name one number, not to add. The chosen answers alone, with the loss of exercise 1, do
# [as much here](../../site/further.md#lesson-20). Preferences are meant for cases where no answer is perfect, as with
# summaries.
#
# The judge has chosen once, among answers of the model at the start. What if it scores every new answer?
#
# ## A strict reward needs no pairs
#
# A **reward** is a number for one answer. If a program computes it, training needs only questions that the program can
# check, and a model that is sometimes right.

# %% [markdown]
# <div class="card">
#
# **Exercise 4 · `exact_match`** &nbsp; ★★☆ · 6 minutes · 2 points
#
# Return 1 for each answer that is exactly the right one and ends, else 0, as float32. What follows the first `end` in
# a row does not count. An answer that never ends earns 0, and so does one whose right answer does not fit into the
# row.
#
# No right answer contains `end`.
#
# <details><summary>Hint 1: four rows by hand</summary>
#
# Let 2 be the end, and 4, 6 the right answer. Which of these rows earn 1: 4 6 2 9, 4 6 6 2, 4 2 6 2, and 4 6?
#
# </details>
# <details><summary>Hint 2: right answers of several lengths</summary>
#
# A loop over the rows is fine. In a row of t tokens there has to be room for the right answer and for `end`.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "exact_match", "locked": false, "schema_version": 3, "solution": true, "task": false}
def exact_match(written, right, end):
    """The reward of each answer, 1 or 0: (b,), float32.

    written: (b, t), ids that a model wrote. right: b tensors of ids, without `end`.
    end: an id.
    """
    ### BEGIN SOLUTION
    rewards = torch.zeros(len(written), device=written.device)
    for row, ids in enumerate(right):
        k = len(ids)
        fits = k < written.shape[1]
        if fits and torch.equal(written[row, :k], ids) and written[row, k] == end:
            rewards[row] = 1.0
    return rewards
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_exact_match", "locked": true, "points": 2.0, "schema_version": 3, "solution": false, "task": false}
check(exact_match)

# %% [markdown]
# A reward has no gradient: between the logits and the reward are a random draw and a program. But its mean over all
# answers y has one, since $\nabla\pi = \pi\,\nabla\log\pi$:
#
# $$\nabla \sum_y \pi(y)\, R(y) = \sum_y \pi(y)\, R(y)\, \nabla\log\pi(y) .$$
#
# The right side is a mean over the model's own answers. So sample some, and weigh the gradient of each one's
# log-probability by its reward. The model that samples is called the **policy**, and this is a **policy gradient**.
#
# So far a wrong answer, with reward 0, does not count at all. With the expected reward subtracted it does, and the
# estimate is usually less noisy. Its mean stays, since $\sum_y \pi\,\nabla\log\pi = \nabla \sum_y \pi = 0$. The
# reward less the expected one is the **advantage**. Group-relative policy optimisation (GRPO) takes the mean reward
# of several answers to the same question as the expected one, and divides by their standard deviation ([Shao et al.,
# 2024](https://arxiv.org/abs/2402.03300), section 4.1).

# %% [markdown]
# <div class="card">
#
# **Prediction · `all_right`** &nbsp; 1 minute · no points
#
# All eight answers to a question are right. What does the question teach in this step?
#
# - **A.** All eight answers become more probable.
# - **B.** Nothing is made less probable, and the most probable answer gains a little.
# - **C.** Nothing at all.
# </div>

# %% nbgrader={"grade": false, "grade_id": "all_right", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
all_right = "C"
### STUDENT GETS
# all_right = ...    # "A", "B" or "C"
### END SOLUTION

# %% [markdown]
# <div class="card">
#
# **Exercise 5 · `advantages`** &nbsp; ★★☆ · 7 minutes · 3 points
#
# Subtract from each reward the mean of its group, and divide by the group's standard deviation: the root of the mean
# squared distance from the mean. For the mean of the squares, divide by the group's size, not size − 1. A group is a
# row. Where all rewards of a group are equal, whatever they are, its advantages are 0. Add nothing to the deviation.
# There may be one sample per question.
#
# <details><summary>Hint 1: a group without spread</summary>
#
# 0 divided by 0 is NaN. `torch.where` chooses between two results, entry by entry.
#
# </details>
# <details><summary>Hint 2: seven times 0.1</summary>
#
# Print the mean of seven rewards of 0.1 and subtract 0.1. How can you tell that rewards are equal without a mean?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "advantages", "locked": false, "schema_version": 3, "solution": true, "task": false}
def advantages(rewards):
    """Each reward relative to its group: (questions, samples).

    rewards: (questions, samples).
    """
    ### BEGIN SOLUTION
    away = rewards - rewards.mean(dim=-1, keepdim=True)
    deviation = away.square().mean(dim=-1, keepdim=True).sqrt()
    alike = rewards.amax(dim=-1, keepdim=True) == rewards.amin(dim=-1, keepdim=True)
    return torch.where(alike, 0.0, away / torch.where(alike, 1.0, deviation))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_advantages", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(advantages)

# %%
rewards = torch.tensor([[1.0, 0, 0, 0, 0, 0, 0, 0],
                        [1, 1, 1, 1, 1, 1, 1, 0],
                        [1, 1, 1, 1, 1, 1, 1, 1]])
for row in advantages(rewards).tolist():
    print("  ".join(f"{x:5.2f}" for x in row))

# %% nbgrader={"grade": true, "grade_id": "check_all_right", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("all_right", all_right)

# %% [markdown]
# So the loss is −A log π, with the advantage A of an answer and its log-probability from exercise 2. In the first
# group above it raises the rare right answer with a weight of 2.65, and lowers each wrong one with 0.38. Each step
# has new answers to 16 questions, eight to each, by the present model:

# %%
def reinforce(model, reward, loss_of, what, batches=40, uses=1):
    """reward: a function of the answers' ids and of the sums, as texts.

    loss_of: a function of logits, log-probabilities when the answers were sampled,
    advantages, ids, and is_answer. uses: steps on each batch of answers.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-4)
    for batch in progress(range(batches), what):
        ids, inside, right = sampled(model, 16, 8, seed=10_001 + batch)
        worth = advantages(reward(ids[:, sums.QUESTION:], right).view(16, 8)).flatten()
        with torch.no_grad():
            old = token_log_probabilities(model(ids), ids)
        for _ in range(uses):
            loss = loss_of(model(ids), old, worth, ids, inside)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
    measure(model, what)

def plain_loss(logits, old, worth, ids, inside):
    return -(worth * answer_log_probability(logits, ids, inside)).mean()

def strict(written, right):
    ids = [torch.tensor(sums.ids_of(int(sum_))) for sum_ in right]
    return exact_match(written, ids, sums.END)

reinforce(copy.deepcopy(on_answers), strict, plain_loss, "strict reward")

# %% [markdown]
# **The strict reward removes nearly all of the hedging.** Exact match rises from 26 % to 40 %, and the sum is named
# hardly more often.
#
# ## Eight steps on one batch need a limit
#
# Answers are expensive: each of their tokens takes a pass of the model. So take ten batches in the place of 40, and
# eight steps on each:

# %%
reinforce(copy.deepcopy(on_answers), strict, plain_loss, "8 steps, −A log π",
          batches=10, uses=8)

# %% [markdown]
# **The model unlearns sums:** it hardly hedges, but the sum is named less often than before. After the first step the
# answers are no longer the present model's, and the mean above is no longer a gradient of the reward. And for a wrong
# answer A < 0, so −A log π falls without end as π goes to 0.
#
# The **ratio** of a token's probability now to that when it was sampled, $r = \pi / \pi_{\text{old}}$, takes the place
# of log π. Its gradient is $r\,\nabla\log\pi$: at r = 1 that of log π, and less once the token has become less
# probable. The **clip** is a limit: the smaller of $rA$ and $\text{clip}(r,\, 1-\epsilon,\, 1+\epsilon)\,A$ counts.
# So a token with A > 0 is not raised further once r is above 1 + ε, and one with A < 0 is not lowered further below
# 1 − ε.
#
# <details><summary>Four tokens by hand, with a small ε</summary>
#
# | A | r | $rA$ | clipped | counts | what a step does |
# |---|---|---|---|---|---|
# | 1 | ½ | ½ | 1 − ε | ½ | raises π |
# | 1 | 2 | 2 | 1 + ε | 1 + ε | nothing: π has risen far enough |
# | −1 | 2 | −2 | −1 − ε | −2 | lowers π |
# | −1 | ½ | −½ | ε − 1 | ε − 1 | nothing: π has fallen far enough |
#
# </details>
#
# A **KL penalty** keeps the model near the reference. It adds β (not DPO's) times an estimate of the **KL
# divergence**, the mean of log π/π_ref over the model's own answers ([Schulman,
# 2020](http://joschu.net/blog/kl-approx.html), k3). A token's loss is then
#
# $$-\min\big(r A,\; \text{clip}(r,\, 1-\epsilon,\, 1+\epsilon)\, A\big)
# + \beta\,\Big(\frac{\pi_{\text{ref}}}{\pi} - \log\frac{\pi_{\text{ref}}}{\pi} - 1\Big) .$$

# %% [markdown]
# <div class="card">
#
# **Exercise 6 · `policy_loss`** &nbsp; ★★★ · 12 minutes · 5 points
#
# Write this loss: average over the tokens of each answer, then over the answers. You get log-probabilities of tokens,
# an advantage for each answer, and which tokens belong to the answer; every answer has at least one. All inputs (b,
# t) are aligned already: shift nothing. The other positions hold log-probabilities, which do not count.
#
# <details><summary>Hint 1: from logarithms</summary>
#
# The ratio of two probabilities is the exponential of a difference. Give the advantages an axis for the tokens.
#
# </details>
# <details><summary>Hint 2: two signs by hand</summary>
#
# Work out the four rows in the fold above with your lines, one token each. Where the sign of A changes, so does
# which of the two products is smaller.
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "policy_loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def policy_loss(new, old, reference, advantage, is_answer, epsilon=0.2, beta=0.0):
    """The clipped policy loss with a penalty: mean over tokens, then over answers.

    new, old, reference: (b, t), log-probabilities of the tokens by the model, by the one
    that wrote the answers, and by the reference. advantage: (b,). is_answer: (b, t).
    """
    ### BEGIN SOLUTION
    ratio, advantage = (new - old).exp(), advantage[:, None]
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    gain = torch.minimum(ratio * advantage, clipped * advantage)
    away = reference - new
    loss = beta * (away.exp() - away - 1) - gain
    return ((loss * is_answer).sum(dim=-1) / is_answer.sum(dim=-1)).mean()
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_policy_loss", "locked": true, "points": 5.0, "schema_version": 3, "solution": false, "task": false}
check(policy_loss)

# %% [markdown]
# Ten batches and eight steps again, with this loss and β = 0:

# %%
def clipped_loss(logits, old, worth, ids, inside):
    return policy_loss(token_log_probabilities(logits, ids), old, old, worth, inside[:, 1:])

reinforce(copy.deepcopy(on_answers), strict, clipped_loss, "8 steps, clipped",
          batches=10, uses=8)

# %% tags=["hide-input"] mystnb={"image": {"alt": "Change of exact match against batches of sampled answers, 0 to 10, three lines with bands. Eight steps with the clipped loss rise most, and then level off. One step with −A log π rises more slowly, to less. Eight steps with −A log π stay near zero for three batches and end below it."}}
def curve(part, what, last=None, change=False):
    """Steps or batches, and by seed what was measured there, from the start on."""
    looks = [[(0, before)] + [(p["step"], p[what]) for p in points
                              if p["part"] == part and p["seed"] == seed]
             for seed, before in enumerate(ends("answer", what).tolist())]
    runs = [[found - change * run[0][1] for step, found in run if step <= (last or step)]
            for run in looks]
    return [step for step, _ in looks[0]][:len(runs[0])], runs

names = {"8 steps, clipped": "clipped", "1 step, −A log π": "strict",
         "8 steps, −A log π": "repeated"}
plots.curves({name: curve(part, "exact", last=10, change=True)
              for name, part in names.items()},
             "batches of sampled answers", "change of exact match",
             title="With the clipped loss a batch serves for eight steps")
plt.axhline(0, color="#555555", linewidth=1)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# Recorded, three seeds with the strict reward: means of the change since the start, with bands from the lowest to the
# highest.
#
# </div>
#
# **With the clipped loss, eight steps on a batch raise exact match more than one; with −A log π it falls.** A KL
# penalty slows wanted and unwanted changes alike. That, smaller steps, and the ratio without a clip are [measured
# further](../../site/further.md#lesson-20).
#
# ## A reward for naming the sum
#
# A more lenient reward is 1 for every answer that *names* the sum, whatever else it says.

# %% [markdown]
# <div class="card">
#
# **Prediction · `hole`** &nbsp; 1 minute · no points
#
# Training goes on with this reward, from the same start. The reward rises. What does exact match do?
#
# - **A.** It rises too: to name the sum, one has to know it.
# - **B.** It falls.
# - **C.** It follows the strict reward's curve, a little lower.
# </div>

# %% nbgrader={"grade": false, "grade_id": "hole", "locked": false, "schema_version": 3, "solution": true, "task": false}
### BEGIN SOLUTION
hole = "B"
### STUDENT GETS
# hole = ...    # "A", "B" or "C"
### END SOLUTION

# %%
def lenient(written, right):
    texts = [sums.text_of(row) for row in written.tolist()]
    return torch.tensor([float(sum_ in text) for text, sum_ in zip(texts, right)])

hacker = copy.deepcopy(on_answers)
reinforce(hacker, lenient, plain_loss, "lenient reward")
measure(hacker, "lenient, greedy", temperature=0)
ids_, _, right = sampled(hacker, 4, 1, seed=3)
for row, sum_ in zip(ids_[:, sums.QUESTION:].tolist(), right):
    print(f"sum {sum_}: {sums.text_of(row)}")
for kind, hedges in {"one number": False, "two numbers": True}.items():
    paid = [right in text for text, right in zip(answers_of(on_answers, 1.0), right_answers)
            if ("or" in text) == hedges]
    print(f"before, answers with {kind}: {sum(paid) / max(len(paid), 1):.0%} name the sum")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three shares of sampled answers against policy steps, 0 to 40, for training with the lenient reward. The share that names the sum, which is the reward, rises. The share that is exact falls to a small part of what it was. The share of hedged answers rises from about a quarter to most."}}
names = {"names the sum (the reward)": "named", "exact match": "exact", "hedged": "hedged"}
plots.curves({name: curve("lenient", what) for name, what in names.items()},
             "step", "share of answers", title="The reward rises, and exact match falls")
plt.ylim(0)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# Recorded, three seeds; bands as before. One step a batch, with −A log π.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_hole", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("hole", hole)

# %% [markdown]
# **The model finds the hole: two guesses are paid more often than one.** The sum is named more often, but exact match
# falls from 26 % to 10 %. Now even the greedy answers all hedge. This is **reward hacking**. The reward alone does not
# show it; exact match, the hedged share and the answers do.
#
# In the player, take the steps yourself.

# %% tags=["hide-input"]
from helpers.players import show_player

show_player("policy")

# %% [markdown]
# ## Aside: several dialogues in one row
#
# Nothing else in this lesson uses this exercise. In a batch, short dialogues are padded. **Packing** puts several into
# one row instead. Each attends only to itself and has its own positions, so
# [its logits stay the same](../../site/further.md#lesson-20).

# %% [markdown]
# <div class="card">
#
# **Exercise 7 · `pack`** &nbsp; ★★☆ · 8 minutes · 3 points
#
# Put dialogues into one row, in their order. Return ids (t,), positions (t,) and a mask (t, t), where t is the sum of
# their lengths. Positions start from 0 in each dialogue. `mask[i, j]` is True where token i may look at token j: at
# itself and at what came before it in its own dialogue. Every dialogue has at least one token. Ids and positions are
# int64.
#
# <details><summary>Hint 1: two dialogues by hand</summary>
#
# Write down the mask of two dialogues of 2 and 3 tokens. Which numbers, one for each place, would tell you whether
# two places are in the same dialogue?
#
# </details>
# <details><summary>Hint 2: where a dialogue starts</summary>
#
# With lengths 2, 3 and 4 the dialogues start at 0, 2 and 5. How do these follow from the sums 2, 5, 9?
#
# </details>
# </div>

# %% nbgrader={"grade": false, "grade_id": "pack", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack(dialogues):
    """Several dialogues in one row: ids (t,), positions (t,), and a mask (t, t) of booleans.

    dialogues: a list of ids, each (t_k,).
    """
    ### BEGIN SOLUTION
    lengths = torch.tensor([len(ids) for ids in dialogues], device=dialogues[0].device)
    number = torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)
    place = torch.arange(len(number), device=lengths.device)
    positions = place - (lengths.cumsum(0) - lengths)[number]
    mask = (number[:, None] == number) & (place <= place[:, None])
    return torch.cat(list(dialogues)), positions, mask
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_pack", "locked": true, "points": 3.0, "schema_version": 3, "solution": false, "task": false}
check(pack)

# %% [markdown]
# ## What you can do now
#
# The first picture again, with what you have built:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Seven horizontal bars of exact, wrong and hedged answers. The first four are those of the second picture. DPO: nearly half exact, nearly half wrong, few hedged. Strict reward: more than half exact, hardly any hedged. Lenient reward: most hedged. Five bars have diamonds."}}
judged = {"DPO": "DPO", "strict reward": "strict", "lenient reward": "lenient"}
answer_bars(supervised | judged, "Hedges follow the demonstrations, and then the judge", own)

# %% [markdown]
# <div class="figure-caption">
#
# Recorded, three seeds, as before; diamonds are exact match in the runs above. The last three start from *answers
# only*. Data, rates and steps differ: the picture shows what each loss did here, not which is best.
#
# </div>
#
# **A model learns what its loss rewards, not what was meant.** Imitation rewards the hedges as well as the sums. A
# judge's choices remove most of the hedges, a strict reward nearly all, and neither leaves fewer wrong numbers. A
# lenient reward pays for two guesses, and gets them. Where clean demonstrations can be had, no judge is needed; more
# demonstrations before the reward [leave fewer wrong numbers](../../site/further.md#lesson-20).
#
# **A question to think about**
#
# <details><summary>Why does DPO need a reference, and what would the loss do without it?</summary>
#
# Without it, only the difference of the two log-probabilities counts, whatever it was at the start. With it, β sets
# the price of moving away from where the model began.
#
# </details>
# **Further reading**
#
# - **[Shao et al., *DeepSeekMath*, 2024](https://arxiv.org/abs/2402.03300)**, section 4.1: advantages from groups;
#   section 5.2 sees all three of this lesson's losses as one.
# - [Ouyang et al., *Training language models to follow instructions with human feedback*,
#   2022](https://arxiv.org/abs/2203.02155), section 3: demonstrations, comparisons, and a reward model, where this
#   lesson uses DPO.
# - [Liu et al., *Understanding R1-Zero-like training*, 2025](https://arxiv.org/abs/2503.20783): what the division by
#   the deviation, and by the length, does to GRPO.
#
# The answers have become better. Can they become cheaper?
#
# **Next:** [lesson 21, *Cheaper answers*](../21_cheaper_answers/21_cheaper_answers.ipynb)
