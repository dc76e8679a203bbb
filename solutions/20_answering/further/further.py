# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Taught to answer
#
# One measurement beside [lesson 20](../20_answering/20_answering.ipynb): what a packed dialogue loses where it can see
# its neighbours, or where its positions go on.

# %%
import torch

from helpers.data.toy import sums
from helpers.parts.answering import pack
from helpers.training.answering import new_model, supervised

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
