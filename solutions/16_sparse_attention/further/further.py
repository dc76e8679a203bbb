# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Sparse attention
#
# Four measurements beside [lesson 16](../16_sparse_attention/16_sparse_attention.ipynb): the stride with the fewest
# pairs, a second pattern whose halves have an order, the same pattern on pictures, and where the gate of linear
# attention does not help.

# %%
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from helpers import plots
from helpers.data.recorded import recorded
from helpers.parts.linear_attention import chunked_attention
from helpers.parts.sparse import attended_pairs, connected, fixed_masks, strided_masks

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
# these pictures the margins are blank. It ends behind the full model with each of four seeds.

# %%
pictures = recorded("patterns")["result"]["pictures"]
for kind, bits in pictures.items():
    print(f"{kind:>7}: " + ", ".join(f"{each:.3f}" for each in bits) + " bits per pixel, by seed")

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

def share_right(gate, seed, steps=200):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Memory(gate)
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=0.0)
    for step in range(steps):
        *given, answers = programs(32, generator)
        loss = F.cross_entropy(model(*given).flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.param_groups[0]["lr"] = 0.02 * min(1, (step + 1) / 20, 2 * (1 - step / steps) + 0.02)
        optimiser.step()
    with torch.no_grad():
        *given, answers = programs(500, torch.Generator().manual_seed(99))
        return (model(*given).argmax(-1) == answers).float().mean().item()

for gate, name in ((False, "without a gate"), (True, "with a gate")):
    print(f"{name:>14}: " + ", ".join(f"{share_right(gate, seed):.2f}" for seed in range(3)) + " right, by seed")
