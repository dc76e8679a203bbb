# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Sparse attention
#
# Seven measurements beside [lesson 16](../16_sparse_attention/16_sparse_attention.ipynb): the stride with the fewest
# pairs, a second pattern whose halves have an order, the same pattern on pictures, where the gate of linear attention
# does not help, what more memory is worth, when the delta rule runs out of room, and what is kept while a model writes.

# %%
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.parts.linear_attention import chunked_attention
from helpers.parts.sparse import attended_pairs, connected, fixed_masks, local_mask, strided_masks
from helpers.progress import shortened

plots.use_course_style()

# %% [markdown]
# ## The fewest pairs are near the root of t
#
# The **fixed** pattern of [Child et al., 2019](https://arxiv.org/abs/1904.10509) cuts a text into blocks of l. In its
# first half a position sees its own block, in its second the last position of every block, which sums the block up for
# all later positions. Both patterns have the fewest pairs near l = √t, and the bottom is flat.

# %% mystnb={"image": {"alt": "Pairs against l on logarithmic axes, for t = 4,096. Strided and fixed both fall from the left, have a minimum near l = 64, and rise to the right. The two curves coincide on the left; further right the fixed one is lower. A dotted line above both marks the full causal mask; strided comes close to it at the right end."}}
t = 4096
strides = [2**power for power in range(1, 12)]
plots.curves({kind: (strides, [attended_pairs(kind, t, l) for l in strides])
              for kind in ("strided", "fixed")}, "l", "pairs", log="xy",
             landmarks={"full": attended_pairs("full", t, 1)}, title="A wide minimum near l = √t")
plt.minorticks_off()
plt.xticks(strides, strides)
plt.show()
for kind in ("strided", "fixed"):
    best = min(strides, key=lambda l: attended_pairs(kind, t, l))
    share = attended_pairs(kind, t, best) / attended_pairs("full", t, 1)
    print(f"{kind:>7}: fewest pairs at l = {best}, {share:.1%} of all causal pairs")
print(f"the root of t is {math.isqrt(t)}")

# %% [markdown]
# ## The halves of the fixed pattern have an order
#
# With one half in each of two layers, all pairs are connected if the blocks come first: the last position of a block
# has read it before others read that position. In the other order an input that is in no summary column never leaves
# its block. With both halves in every layer, in different heads, the order does not matter.

# %% tags=["nbval-check-output"]
t, l = 256, 16
block, columns = fixed_masks(t, l)
near, stride = strided_masks(t, l)
orders = {"blocks, then columns": [block, columns], "columns, then blocks": [columns, block],
          "near half, then stride": [near, stride], "stride, then near half": [stride, near]}
for name, masks in orders.items():
    count = connected(masks).sum().item()
    print(f"{name:>22}: {count:>6,} of {attended_pairs('full', t, l):,} pairs")

# %% [markdown]
# ## On pictures the fixed pattern is the wrong guess
#
# The recorded run of the lesson had a fourth model, with l = 16 and the last two columns of each row as summaries. In
# these pictures the margins are blank. It ends behind the full model with each of four seeds. The figure shows the three
# models of the lesson along the way.

# %% mystnb={"image": {"alt": "Held-out bits per pixel against step, 100 to 600, three falling lines with narrow bands. Full ends highest, at 0.41; window and strided end close together, at 0.37 and 0.36, with strided the lowest. Full lies above the other two all the way."}}
long = recorded("patterns")
pictures = long["result"]["pictures"]

def along_steps(kind):
    """Steps, and the bits after them, a row for each seed."""
    seeds = [[row for row in long["curve"] if row["seed"] == seed] for seed in range(long["settings"]["seeds"])]
    return [row["step"] for row in seeds[0]], [[row[f"{kind}_bits"] for row in rows] for rows in seeds]

names = {"full": "full", "local": "window", "strided": "strided"}
plots.curves({name: along_steps(kind) for kind, name in names.items()}, "step", "held-out bits per pixel",
             title="On pictures, the two sparse patterns stay ahead")
plt.show()
for kind, bits in pictures.items():
    print(f"{kind:>7}: " + ", ".join(f"{each:.3f}" for each in bits) + " bits per pixel, by seed")

# %% [markdown]
# **How to read it.** Recorded. Digits of 16 × 16 pixels, w = l = 16; in the strided model, two heads for each half.
# Lower is better. Each line is the mean of four seeds; its band runs from the lowest to the highest.

# %% [markdown]
# ## Without a second value, the gate has nothing to do
#
# In the lesson a variable may get several values, and the gate lets the last one outweigh the others. If that is the
# cause, the gate should not help where every variable gets **one** value. Here the 32 variables get one each, in random
# order, and after each assignment the model is asked for one that it has seen. Everything else is as in the lesson, with
# d = 32.

# %%
VARIABLES, VALUES, LENGTH = 32, 16, 32

def programs(b, generator):
    """Names (b, t), values (b, t), names asked for (b, t), answers (b, t)."""
    names = torch.stack([torch.randperm(VARIABLES, generator=generator) for _ in range(b)])
    values = torch.randint(VALUES, (b, LENGTH), generator=generator)
    chosen = (torch.rand(b, LENGTH, generator=generator) * (1 + torch.arange(LENGTH))).long()
    return names, values, names.gather(1, chosen), values.gather(1, chosen)

class Memory(nn.Module):
    """One layer of linear attention, with or without a gate."""

    def __init__(self, gate, d=32, e=64):
        super().__init__()
        self.gate = gate
        self.names, self.values = nn.Embedding(VARIABLES, e), nn.Embedding(VALUES, e)
        self.to_q, self.to_k, self.to_v = (nn.Linear(e, d, bias=False) for _ in range(3))
        self.to_gate = nn.Linear(e, 1)
        nn.init.constant_(self.to_gate.bias, 3.0)
        self.norm, self.to_logits = nn.LayerNorm(d), nn.Linear(d, VALUES)

    def forward(self, names, values, asked):
        x = self.names(names) + self.values(values)
        q, k, v = self.to_q(self.names(asked))[:, None], self.to_k(x)[:, None], self.to_v(x)[:, None]
        log_g = F.logsigmoid(self.to_gate(x)).mT
        y, _ = chunked_attention(q, k, v, log_g if self.gate else torch.zeros_like(log_g), 32)
        return self.to_logits(self.norm(y[:, 0]))

def share_right(make, draw, seed, steps=200):
    """The share of right answers after a training. make: a model; draw: its inputs, and answers or -100."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = make()
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
    for step in range(shortened(steps)):
        *given, answers = draw(32, generator)
        loss = F.cross_entropy(model(*given).flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = 0.02 * min(1, (step + 1) / 20, 2 * (1 - step / steps) + 0.02)
        optimiser.step()
    with torch.no_grad():
        *given, answers = draw(500, torch.Generator().manual_seed(99))
        return (model(*given).argmax(-1) == answers)[answers >= 0].float().mean().item()

for gate, name in ((False, "without a gate"), (True, "with a gate")):
    shares = [share_right(lambda gate=gate: Memory(gate), programs, seed) for seed in range(3)]
    print(f"{name:>14}: " + ", ".join(f"{share:.2f}" for share in shares) + " right, by seed")

# %% [markdown]
# ## More memory, more right answers
#
# The lesson compares a window and two states that keep 1,024 numbers each. Here they keep fewer: for d = 8, 16 and 32, a
# window of d/2 positions and a state of d × d keep equally many. **All three get better with more memory**, though a
# larger d also makes the model wider. In language models, too, recall depends on the size of the state ([Arora et al.,
# 2024](https://arxiv.org/abs/2402.18668)). Programs, training and questions are those of the lesson.

# %%
ASSIGNMENTS = 64

def changing_programs(b, generator):
    """Names (b, t + 1), all but the first are asked for; values (b, t); answers (b, t)."""
    names = torch.randint(VARIABLES, (b, ASSIGNMENTS + 1), generator=generator)
    values = torch.randint(VALUES, (b, ASSIGNMENTS), generator=generator)
    same = (names[:, 1:, None] == names[:, None, :-1]).tril()
    last = torch.where(same, torch.arange(ASSIGNMENTS), -1).amax(dim=-1)
    return names, values, values.gather(1, last.clamp(min=0)).masked_fill(last < 0, -100)

class SmallMemory(nn.Module):
    """One layer: full attention, a window of d/2 positions, or a state of d × d."""

    def __init__(self, kind, d, e=64):
        super().__init__()
        self.kind, self.d = kind, d
        self.names, self.values = nn.Embedding(VARIABLES, e), nn.Embedding(VALUES, e)
        self.places = nn.Parameter(0.02 * torch.randn(ASSIGNMENTS, e))
        self.to_q, self.to_k, self.to_v = (nn.Linear(e, d, bias=False) for _ in range(3))
        self.to_gate = nn.Linear(e, 1)
        nn.init.constant_(self.to_gate.bias, 3.0)
        self.norm, self.to_logits = nn.LayerNorm(d), nn.Linear(d, VALUES)

    def forward(self, names, values):
        asked = self.names(names[:, 1:]) + self.places
        x = self.names(names[:, :-1]) + self.values(values) + self.places
        q, k, v = self.to_q(asked)[:, None], self.to_k(x)[:, None], self.to_v(x)[:, None]
        log_g = F.logsigmoid(self.to_gate(x)).mT
        if self.kind in ("full", "window"):
            w = ASSIGNMENTS if self.kind == "full" else self.d // 2
            y = F.scaled_dot_product_attention(q, k, v, local_mask(ASSIGNMENTS, w))
        elif self.kind == "state, delta rule":
            k = F.normalize(k, dim=-1)
            overlap = (k @ k.mT).tril(-1)
            u = torch.linalg.solve_triangular(overlap, v, upper=False, unitriangular=True)
            y = (q @ k.mT).tril() @ u
        else:
            log_g = log_g if self.kind == "state, gate" else torch.zeros_like(log_g)
            y, _ = chunked_attention(q, k, v, log_g, 32)
        return self.to_logits(self.norm(y[:, 0]))

print("numbers kept      " + "".join(f"{d * d:>8,}" for d in (8, 16, 32)) + "   (right answers, mean of three seeds)")
for kind in ("window", "state, no gate", "state, gate"):
    shares = []
    for d in (8, 16, 32):
        make = lambda kind=kind, d=d: SmallMemory(kind, d)
        shares.append(sum(share_right(make, changing_programs, seed) for seed in range(3)) / 3)
    print(f"{kind:>17} " + "".join(f"{share:>8.2f}" for share in shares))

# %% [markdown]
# ## The delta rule runs out of room
#
# A state has room for as many keys at right angles to each other as it is wide. In the lesson there are 32 variables for
# a width of 32, and the delta rule is right almost always. Here there are twice as many. **With 64 variables the delta
# rule errs more often than full attention of the same width.** A state twice as wide does not, but it keeps 4,096
# numbers, as many as full attention of width 32 after 64 assignments.

# %%
VARIABLES = 64
for kind, d in (("full", 32), ("state, delta rule", 32), ("state, delta rule", 64)):
    shares = [share_right(lambda kind=kind, d=d: SmallMemory(kind, d), changing_programs, seed) for seed in range(3)]
    print(f"{kind:>17}, width {d}: " + ", ".join(f"{share:.2f}" for share in shares) + " right, by seed")

# %% [markdown]
# ## After 64 positions the state is the smallest
#
# While a model writes, full attention keeps 2td numbers per head, a window of w at most 2wd, and a state d². With d =
# 128, a state is as large as the cache of 64 positions.

# %% mystnb={"image": {"alt": "Numbers kept per head against positions written, from 16 to 1,048,576, both axes logarithmic. Full attention rises as a straight line. A window of 1,024 follows it and turns flat at 1,024 positions. The state is flat throughout, and crosses the line of full attention at 64 positions."}}
d, positions = 128, [2**power for power in range(4, 21)]
kept = {"full": [2 * t * d for t in positions],
        "window of 1,024": [2 * min(t, 1024) * d for t in positions],
        "state": [d * d for t in positions]}
plots.curves({name: (positions, numbers) for name, numbers in kept.items()},
             "positions written", "numbers per head", log="xy",
             title="After 64 positions the state is the smallest")
plt.show()
print(f"after {positions[-1]:,} positions, full attention keeps "
      f"{kept['full'][-1] // kept['state'][-1]:,} times as much as the state")
