# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Masking
#
# Two measurements that [lesson 5](../05_masking/05_masking.ipynb) mentions: what both masks do to a batch of sentences,
# and a leak so small that rounding hides it. Between them, a repair of a fully masked row that comes too late.

# %%
import matplotlib.pyplot as plt
import torch

from helpers import plots
from helpers.data.vectors import word_vectors
from helpers.parts.masks import causal_mask, masked_softmax

plots.use_course_style()

# %% [markdown]
# ## A batch of three sentences
#
# Under both masks, padding gets no weight wherever it is in a sentence, and a position with nothing to see gets a row
# of zeros. The word vectors of lesson 1 are both the queries and the keys; the scores are halved so that the weights
# are less extreme.

# %%
sentences = [
    "the loop terminates pad pad",
    "the function returns an integer",
    "pad a class defines methods",
]
batch = [sentence.split() for sentence in sentences]
vector_of = dict(zip(*word_vectors())) | {"pad": torch.zeros(40)}

x = torch.stack([torch.stack([vector_of[word] for word in words]) for words in batch])    # (b, t, e)
real = torch.tensor([[word != "pad" for word in words] for words in batch]).unsqueeze(1)  # (b, 1, t)

# %% mystnb={"image": {"alt": "Three heat maps of attention weights for three sentences in one batch. All are lower triangles. In the first, the two padding columns at the end are hatched, which means exactly zero. In the third, the column of the padding in front is hatched, and so is its whole row."}}
scores = x @ x.transpose(1, 2) / 2                         # (b, t, t)
weights = masked_softmax(scores, causal_mask(5) & real)    # (b, t, t)

titles = ["padded at its end", "not padded", "padded in front"]
figure, axes = plt.subplots(1, 3, figsize=(7, 3), layout="compressed")
for ax, words, matrix, title in zip(axes, batch, weights, titles):
    plots.heat(matrix, words, ax=ax, scale=1, title=title, row_label="", blank_zeros=True)
axes[0].set_ylabel("position i (output)")
plt.show()

# %% [markdown]
# **How to read it.** A hatched cell is exactly 0: the columns of padding, and everything above the diagonal. The vector
# of *pad* is zero, so the scores in its rows are equal; on the left, each of the three words gets a third. Each row
# adds up to 1, except the first on the right, which is all zeros.

# %% [markdown]
# ## NaN replaced by 0, too late
#
# Is it enough to replace the NaN of a fully masked row with 0 after the softmax? The weights are then right, but the
# gradient may not be. Here −∞ is added to all scores of a row:
#
# ```python
# scores = torch.zeros(3, requires_grad=True)
# masked = scores + torch.full((3,), -math.inf)
# torch.softmax(masked, dim=-1).nan_to_num(0.0)[0].backward()
# print(scores.grad)    # tensor([nan, nan, nan])
# ```
#
# The backward pass of softmax multiplies by its output, which is still NaN. If you *fill* the scores with −∞ instead,
# the gradient is 0: `masked_fill` stops whatever comes back to a filled entry.

# %% [markdown]
# ## A leak that rounding hides
#
# A leak can be smaller than the last digit of the output. Then replacing a later input changes nothing in 32 bits, and
# the test of replaced inputs finds no leak. In 64 bits the same test finds it. The leak here comes from scores that are
# hidden with −25 in place of −∞: $e^{-25}$ is about $10^{-11}$.

# %% tags=["nbval-check-output"]
def faint(x):
    scores = (x @ x.transpose(1, 2)).masked_fill(~causal_mask(x.shape[1]), -25.0)
    return torch.softmax(scores, dim=-1) @ x

def changed_pairs(model, x, tries=8):
    """How many outputs i change when an input j > i is replaced."""
    t, before = x.shape[1], model(x)
    changed = torch.zeros(t, t, dtype=torch.bool)
    for j in range(t):
        for _ in range(tries):
            other = x.clone()
            other[:, j] = 3 * torch.randn_like(other[:, j])
            changed[:, j] |= (model(other) != before).any(dim=2).any(dim=0)
    return changed.triu(1).sum().item()

torch.manual_seed(0)
x = torch.randn(2, 7, 12)
print("changed in float32:", changed_pairs(faint, x))
print("changed in float64:", changed_pairs(faint, x.double()), "of 21")

# %% [markdown]
# **How to read it.** The same function, the same inputs: only the precision differs. A test that replaces inputs can
# find leaks only down to the precision of the model.
