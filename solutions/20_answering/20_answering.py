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
# A language model continues a text. Given a sum, it may continue with the right number, with a wrong one, or with
# two numbers to choose from. **Which loss teaches it to answer with the right number, and nothing else?** What changes
# is what the loss looks at, what the demonstrations show, and who judges the answers.
#
# | | |
# |---|---|
# | **You will build** | the log-probability of an answer, the loss of DPO, a reward, group-relative advantages, a clipped policy loss and a packed row of dialogues; and you fix a loss on answers |
# | **You need** | lessons [5](../05_masking/05_masking.ipynb) and [9](../09_character_generator/09_character_generator.ipynb) |
# | **It takes** | about 90 minutes: seven exercises, 22 points, and two predictions |
# | **It computes** | for about a minute, in six cells |
#
# Sizes are those of [the notation table](../../site/notation.md): b batch, t positions, n size of the vocabulary.
# What every check asks is on [the page for students](../../site/students.md).

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

# %% tags=["hide-input"]
plots.diagrams.three_losses()

# %% [markdown]
# <div class="figure-caption">
#
# **Three losses, one model.** The loss looks at the coloured tokens: the answer of a demonstration; a preferred answer
# and a rejected one; answers that the model has sampled, each with a reward.
#
# </div>
#
# ## Without the questions in the loss, answers are learned sooner
#
# The task is a sum below 100. A **chat template** writes a dialogue as one text, with special tokens for who speaks
# and where an answer ends: `<user>`, `<answer>` and `<end>`. Demonstrations are dialogues to imitate. The demonstrators
# here know every sum, but in three answers of ten they **hedge**: they name two numbers, one of them wrong.

# %%
train_pairs, test_pairs = sums.pairs()
ids, is_text, is_answer = sums.demonstrations(train_pairs, torch.Generator().manual_seed(0))
for row in ids[:6].tolist():
    print(sums.text_of(row) + "<end>")
print(f"{len(train_pairs):,} dialogues to learn from, {len(test_pairs)} questions held out")

# %% [markdown]
# First, a small decoder that predicts every next token, as in lesson 9.

# %%
def new_model():
    torch.manual_seed(0)
    return CharTransformer(len(sums.WORDS), e=64, h=4, depth=2, t_max=16)

def train(model, loss_of, what, rows=torch.arange(len(ids)), steps=300, rate=5e-3):
    """loss_of: a function of the model and of which dialogues are in the batch, (b,)."""
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in progress(range(steps), what):
        loss = loss_of(model, rows[torch.randint(len(rows), (64,), generator=generator)])
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

def measure(model, name):
    """Prints shares of the sampled answers, and of the greedy ones."""
    for how, temperature in {"sampled": 1.0, "greedy": 0}.items():
        pairs = list(zip(answers_of(model, temperature), right_answers))
        found = {"exact": [text == right for text, right in pairs],
                 "hedged": ["or" in text for text, _ in pairs],
                 "sum named": [right in text for text, right in pairs]}
        shares = (f"{what} {sum(each) / len(each):.0%}" for what, each in found.items())
        print(f"{name}, {how}:".ljust(24), ", ".join(shares))

on_text = train(new_model(), text_loss, "whole text")
measure(on_text, "whole text")

# %% [markdown]
# **Exact match** is the share of held-out questions answered with the sum and nothing else: 9 % of sampled answers.
# *Hedged* answers contain `or`; *sum named* counts every answer with the sum in it. *Greedy* answers take the most
# probable token at each place. While hedges are a minority, that hides them. So we judge samples; greedy answers tell
# whether the model can add.
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
# OpenRLHF built its mask for one alignment and used it with the other, so the first token of each answer had no loss
# ([issue 973](https://github.com/OpenRLHF/OpenRLHF/issues/973)). In verl the mask was off in the other direction:
# `<end>` had no loss, and models did not stop ([issue 3562](https://github.com/verl-project/verl/issues/3562)).
#
# </details>

# %%
def loss_on_answers(model, some):
    return answer_loss(model(ids[some]), ids[some], is_answer[some])

on_answers = train(new_model(), loss_on_answers, "answers only")
measure(on_answers, "answers only")
print("question   sampled   greedy")
columns = [test_pairs, *(answers_of(on_answers, temperature) for temperature in (1.0, 0))]
for (a, b), drawn, greedy in list(zip(*columns))[:6]:
    print(f"{a}+{b}      {drawn:9} {greedy}")

# %% [markdown]
# With the mask, exact match is 28 %. Three recorded runs of each:

# %% tags=["hide-input"] mystnb={"image": {"alt": "Exact match against training step, up to 300, for two losses. Whole text rises slowly and stays low. Answers only runs above it and ends about three times as high. Bands of three seeds do not overlap at the end."}}
points = recorded("answering")["result"]["looks"]

def curve(part, what, x="step"):
    """Steps, or seconds, and what each seed measured there: (points,), (seeds, points)."""
    runs = [[p for p in points if p["part"] == part and p["seed"] == seed]
            for seed in range(3)]
    xs = [sum(column) / 3 for column in zip(*([p[x] for p in run] for run in runs))]
    return xs, [[p[what] for p in run] for run in runs]

plots.curves({"whole text": curve("whole", "exact"),
              "answers only": curve("answer", "exact")},
             "step", "exact match", title="The mask lets the model learn the answers sooner")
plt.ylim(0)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, three seeds: means, with bands from the lowest to the highest. Only the mask differs.
#
# </div>
#
# **With the mask, exact match is on average about three times as high.** Greedy answers show that the model often
# knows the sum, but its samples still contain wrong digits and hedges.

# %% [markdown]
# ## The model hedges because its demonstrators do
#
# The mask hardly changes the hedging: 28 % of the samples without, 27 % with it. Now the same training, without the
# demonstrations that hedge:

# %%
plain = (ids != sums.OR).all(dim=1).nonzero()[:, 0]
measure(train(new_model(), loss_on_answers, "no hedges", rows=plain), "no hedges")

# %% [markdown]
# **Without hedges in the demonstrations there are none in the answers.** Exact match doubles: the hedges are gone,
# and single answers are right more often. Suppose now that there are no clean demonstrations. Then the model's own
# answers can be judged. (Our judge knows the sums, so it could have filtered the demonstrations; elsewhere people can
# often judge what they could not have written.)
#
# ## A judge's choices reduce the hedging
#
# It is often easier to judge answers than to write better ones. A **preference** says which of two answers to a
# question is better. A loss on preferences compares their probabilities.

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
# x. It compares their probabilities π under the model with those under the **reference** π_ref, a frozen copy of the
# model at the start:
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

def chosen_loss(model, some):
    ids, is_answer = chosen[0][some], chosen[1][some]
    return answer_loss(model(ids), ids, is_answer)

def train_on_pairs(loss_of, what):
    model = copy.deepcopy(on_answers)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)
    for step in progress(range(40), what):
        loss = loss_of(model, torch.randint(len(everything), (32,), generator=generator))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    measure(model, what)
    with torch.no_grad():
        for name, answers, before in (("chosen", chosen, reference[0]),
                                      ("rejected", rejected, reference[1])):
            change = (log_p(model, answers, everything) - before).mean().item()
            print(f"mean change of log π, {name}: {change:+.2f}")

train_on_pairs(dpo_loss, "DPO")
train_on_pairs(chosen_loss, "chosen alone")

# %% [markdown]
# **DPO removes most of the hedging:** it falls from 27 % to 10 %. But *chosen alone*, the loss of exercise 1 on the
# chosen answers, does as much without any rejected answer, also in the mean of three seeds (table at the end). It
# lowers the rejected answers, too: raising one answer takes probability from the others. DPO lowers them more, and
# raises the chosen ones less; its margin can grow even if both fall. Preferences are meant for cases where no answer is
# perfect, as with summaries; this lesson has none.
#
# The judge has chosen once, at the start. What if it scores every new batch?
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
# The simplest loss is −A log π for each token of an answer with advantage A; π is now the probability of that token.
# In the first group above it raises the rare right answer with a weight of 2.65, and lowers each wrong one with 0.38.
# The loss needs fresh answers for each step, written by the present model.
#
# But sampling is expensive, so a batch often serves for several steps, while the model changes. Then the **ratio** of
# a token's probability now to its probability when it was sampled, $r = \pi / \pi_{\text{old}}$, takes the place of
# log π. Its gradient is $r\,\nabla\log\pi$; at r = 1 that is the gradient of log π.
#
# The smaller of $rA$ and $\text{clip}(r,\, 1-\epsilon,\, 1+\epsilon)\,A$ counts. So a token with A > 0 is not raised
# further once r is above 1 + ε, and one with A < 0 is not lowered further below 1 − ε.
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
# A second safeguard keeps the model near the reference. The **KL divergence** from it is the mean of log π/π_ref over
# the model's own answers, and a **KL penalty** adds β (not DPO's) times an estimate of it. A token's loss is then
#
# $$-\min\big(r A,\; \text{clip}(r,\, 1-\epsilon,\, 1+\epsilon)\, A\big)
# + \beta\,\Big(\frac{\pi_{\text{ref}}}{\pi} - \log\frac{\pi_{\text{ref}}}{\pi} - 1\Big) .$$
#
# <details><summary>Why the last bracket estimates the divergence</summary>
#
# Over tokens that are sampled from the present model, the mean of $\pi_{\text{ref}}/\pi$ is
# $\sum \pi \cdot \pi_{\text{ref}}/\pi = 1$. So the bracket's mean is that of $-\log(\pi_{\text{ref}}/\pi)$, which is
# the divergence there. Unlike this logarithm, the bracket is never negative. [Schulman,
# 2020](http://joschu.net/blog/kl-approx.html), calls it k3.
#
# </details>

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
# Now the whole loop, with one step on each batch and β = 0. So r is 1, neither safeguard acts, and the loss has the
# gradient of −A log π. With eight steps on a batch, exact match ends higher only with the clip; the penalty slows
# hacking and progress alike ([measured further](../../site/further.md#lesson-20), at this learning rate).

# %%
def reinforce(model, reward, what, steps=40):
    """reward: a function of the answers' ids and of the sums, as texts."""
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-4)
    for step in progress(range(steps), what):
        ids, inside, right = sampled(model, 16, 8, seed=10_000 + step + 1)
        worth = advantages(reward(ids[:, sums.QUESTION:], right).view(16, 8)).flatten()
        new = token_log_probabilities(model(ids), ids)
        old = new.detach()    # one step: the model is still the one that wrote
        loss = policy_loss(new, old, old, worth, inside[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    measure(model, what)

def strict(written, right):
    ids = [torch.tensor(sums.ids_of(int(sum_))) for sum_ in right]
    return exact_match(written, ids, sums.END)

reinforce(copy.deepcopy(on_answers), strict, "strict reward")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Two panels against processor seconds, two lines each: strict reward, and further demonstrations. Left, hedged answers: with the reward they fall to nearly none, with further demonstrations they stay at about a quarter. Right, greedy answers that are exact: with the reward they hardly rise, with further demonstrations they rise to nearly all."}}
at_start = {what: [run[-1] for run in curve("answer", what)[1]]
            for what in ("hedged", "exact", "named", "greedy")}

def from_start(part, what, x="step"):
    """The same curve, beginning with the model that all of these start from."""
    xs, runs = curve(part, what, x)
    return [0, *xs], [[first, *run] for first, run in zip(at_start[what], runs)]

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), layout="compressed")
names = {"strict reward": "policy", "further demonstrations": "further"}
titles = ("The reward nearly ends the hedging", "Demonstrations teach adding")
for ax, what, title, y in zip(axes, ("hedged", "greedy"), titles,
                              ("hedged", "exact, greedy")):
    plots.curves({name: from_start(part, what, "used") for name, part in names.items()},
                 "processor seconds", y, title=title, ax=ax)
    ax.set_ylim(0)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, three seeds; bands as before. *Further demonstrations* goes on with the loss of
# exercise 1, from the same start. *Processor seconds* add up all cores; sampling counts.
#
# </div>
#
# **The reward removes nearly all of the hedging, which demonstrations keep teaching.** In the run above exact match
# rises to 43 %, and the sum is named hardly more often: most of the gain comes from hedging less. Greedy answers get a
# little worse there, but not in the mean of three seeds.
#
# **At these learning rates greedy answers improve faster from demonstrations.** A likely reason: a demonstration has a
# target for each token, while a reward is one bit for a whole answer.
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
reinforce(hacker, lenient, "lenient reward")
ids_, _, right = sampled(hacker, 4, 1, seed=3)
for row, sum_ in zip(ids_[:, sums.QUESTION:].tolist(), right):
    print(f"sum {sum_}: {sums.text_of(row)}")
for kind, hedges in {"one number": False, "two numbers": True}.items():
    paid = [right in text for text, right in zip(answers_of(on_answers, 1.0), right_answers)
            if ("or" in text) == hedges]
    print(f"before, answers with {kind}: {sum(paid) / max(len(paid), 1):.0%} name the sum")

# %% tags=["hide-input"] mystnb={"image": {"alt": "Three shares of sampled answers against policy steps, 0 to 40, for training with the lenient reward. The share that names the sum, which is the reward, rises. The share that is exact falls to a small part of what it was. The share of hedged answers rises from about a quarter to most."}}
names = {"names the sum (the reward)": "named", "exact match": "exact", "hedged": "hedged"}
plots.curves({name: from_start("hole", what) for name, what in names.items()},
             "step", "share of answers", title="The reward rises, and exact match falls")
plt.ylim(0)
plt.show()

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, three seeds; bands as before. Sampled answers.
#
# </div>

# %% nbgrader={"grade": true, "grade_id": "check_hole", "locked": true, "points": 0.0, "schema_version": 3, "solution": false, "task": false}
check.prediction("hole", hole)

# %% [markdown]
# **The model finds the hole: two guesses are paid more often than one.** The sum is named more often, but exact match
# falls from 28 % to 8 %. Now even the greedy answers all hedge. This is **reward hacking**. The reward alone does not
# show it; exact match, the hedged share and the answers do. Some hedges even name one number twice. Hedges were paid
# more on average, which is probably why the form was learned.
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
# **Which loss teaches a model to answer with the right number, and nothing else?** The loss of exercise 1, if what it
# imitates has no hedges; without the questions in the loss, answers are learned sooner. A short training on answers
# that a judge has chosen leaves a few hedges. If there are no clean demonstrations, hedged ones can still teach the
# adding, and a strict reward can then remove nearly all hedges:

# %% tags=["hide-input"]
rows = {"answers": "answer", "chosen answers alone": "chosen",
        "chosen and rejected (DPO)": "DPO", "strict reward": "policy",
        "further demonstrations, then strict reward": "further, policy",
        "further demonstrations without hedges": "further, plain", "lenient reward": "hole"}
print(f"{'':42} exact, sampled   exact, greedy   hedged")
for name, part in rows.items():
    exact, greedy, hedged = (sum(run[-1] for run in curve(part, what)[1]) / 3
                             for what in ("exact", "greedy", "hedged"))
    print(f"{name:42} {exact:14.0%} {greedy:15.0%} {hedged:8.0%}")

# %% [markdown]
# <div class="figure-caption">
#
# **How to read it.** Recorded, means of three seeds. The other rows start from *answers* and differ in data, rates
# and steps: the table shows what each did here, not which is best.
#
# </div>
#
# The same loss with the lenient reward taught hedging.
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
