# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: A model of your own
#
# What [lesson 22](../22_your_own/22_your_own.ipynb) leaves out: what a larger table and a larger transformer are worth on
# the manual, and what a longer training brings on the novel.

# %%
import math

import matplotlib.pyplot as plt
import torch
from safetensors.torch import save

from helpers import plots
from helpers.data.open_texts import open_text, results, xz_after
from helpers.exercises.open_task import LARGEST, contexts_of
from helpers.parts.one_megabyte import (
    ByteTransformer, cache_log_probabilities, count_ngrams, table_log_probabilities, to_int8,
)

plots.use_course_style()
torch.set_num_threads(1)
text = open_text("manual")
contexts, targets = (part.long() for part in contexts_of(text.home, apart=32))

# %% [markdown]
# ## From 100 kB on, a larger table gains less than the cache
#
# Each circle is a table with the n-grams that save the most bits in training, on the lesson's contexts at home. The square and
# the diamond are what `python -m helpers.training.your_own --text manual` trains and mixes: recorded, one run. Of the
# diamond's file the transformer takes two thirds, a table the rest.

# %% mystnb={"image": {"alt": "Bits per byte over the size of a model in kilobytes. The curve of tables falls steeply at first and slowly from about 100 kB on, to a little below 2.3. A single point below the largest table, at about 2.1, is that table with the cache. Two more lie to the right: a larger transformer at the height of the largest table, and, at the limit of 1,000 kB, a mixture of table, cache and transformer, a little below 2. A dashed line below all of them marks xz after the training part."}}
def bits(log_p):
    """Bits per byte at home. log_p: (b, 256)."""
    return -log_p.gather(1, targets[:, None]).mean().item() / math.log(2)

tables = [count_ngrams(text.train, k) for k in (2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 150_000)]
said = [table_log_probabilities(table, contexts) for table in tables]
kilobytes = [len(save(table)) / 1000 for table in tables]
with_cache = torch.logaddexp(said[-1] + math.log(0.8), cache_log_probabilities(contexts) + math.log(0.2))
recorded = results()["manual"]["lesson"]
larger = len(save(to_int8(ByteTransformer().state_dict()))) / 1000
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="compressed")
ax.plot(kilobytes, [bits(log_p) for log_p in said], marker="o", markersize=3, label="tables of n-grams")
ax.plot(kilobytes[-1], bits(with_cache), "^", label="the largest table and the cache")
ax.plot(larger, recorded["a small transformer"], "s", label="a larger transformer")
ax.plot(LARGEST / 1000, recorded["the course's best"], "D", label="table, cache and that transformer, mixed")
ax.axhline(xz_after(text.train, text.home), linestyle="--", color="gray", label="xz, training part read")
ax.set(xlabel="size of the model, kB", ylabel="bits per byte at home", ylim=(1.5, None),
       title="A mixture is better than the largest of its models")
ax.legend()
plt.show()

# %% [markdown]
# The larger transformer is only as good as the largest table, and the mixture of all three is better than any of them. On the
# manual bytes are hardly scarce: the file could hold the training part five times, uncompressed. On long texts they are: a
# block more leaves less room for the table, unless a weight takes fewer bits.
#
# ## On the novel, a longer training gains more than mixing
#
# Austen's novels, bits per byte on the one that is held back, one run a row, ± one standard error. *Longer*: one block
# more, a window of 256 bytes, 12,000 steps, an hour and a half on one core. *Gated*: rotary positions and short convolutions
# besides, 10,000 steps, and weights of the mixture that depend on the context; an hour and ten minutes on one core.

# %%
austen = results()["austen"]
print("         steps  table  transformer  all three mixed")
for name, run in {"lesson": austen, "longer": austen["longer"], "gated": austen["gated"]}.items():
    held = run["held_back"]
    table, alone, mixed = (held[model] for model in ("table", "a small transformer", "the course's best"))
    print(f"{name:7} {run['steps']:6,}  {table:5.2f}  {alone:11.2f}  {mixed:11.2f} ± {held['error']:.2f}")

# %% [markdown]
# The gated transformer learns faster, and needs more bits on the held-back novel than the longer one. Its mixture was scored
# on more contexts; on these, fixed weights need 1.61 bits.
