# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Tokens
#
# Two measurements that go beyond [lesson 11](../11_tokens/11_tokens.ipynb): how long tokens are, and which tokens follow
# a space that stands alone.

# %%
from collections import Counter

import matplotlib.pyplot as plt

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.recorded import recorded
from helpers.data.text import manual
from helpers.parts.bpe import Tokenizer

plots.use_course_style()
tokenizer = Tokenizer.from_folder(gpt2_files("gpt2", places="embedded", say=lambda line: None).folder)
run = recorded("gpt2_tokens")

# %% [markdown]
# ## Tokens of later merges are longer, up to a point
#
# Each merge joins two earlier tokens, so tokens can grow with the list. OpenAI's level off at not quite seven bytes: later
# merges make whole words, and words do not get longer without end.

# %% tags=["hide-input"] mystnb={"image": {"alt": "Mean bytes of a token against its rank, logarithmic, for the vocabulary of the small model and for OpenAI's. The small model's curve rises from three to about five, with some falls; OpenAI's rises and flattens at not quite seven bytes."}}
own = [len(left + right) for left, right in tokenizer.merges]
width = max(1, len(own) // 12)
ranks = range(0, len(own) - width + 1, width)
series = {"the small model's": ([k + width / 2 for k in ranks], [sum(own[k : k + width]) / width for k in ranks])}
means, size = run["result"]["mean_bytes_by_rank"], run["settings"]["bucket"]
series["OpenAI's"] = ([int(k) + size / 2 for k in means], list(means.values()))
plots.curves(series, "rank of the merge", "mean bytes of its token", log="x")
plt.ylim(0, 8)
plt.show()
print("OpenAI's merges that begin with a space:", f"{run['result']['words_with_a_space']:,} of 50,000")

# %% [markdown]
# **How to read it.** Each point is the mean over neighbouring ranks. The two vocabularies are of different sizes and were
# learned on different texts, so compare the shapes, not the heights.

# %% [markdown]
# ## A lone space seldom follows a word
#
# A prompt that ends in a space ends in a lone space token. How often does the manual have one, and after what?

# %%
tokens = [tokenizer.token(i) for i in tokenizer.encode(manual())]
pairs = Counter((a[-1:].isalpha(), b == "·") for a, b in zip(tokens, tokens[1:]))
after_word = pairs[True, True] / (pairs[True, True] + pairs[True, False])
print(f"{sum(token == '·' for token in tokens):,} of {len(tokens):,} tokens are a lone space")
print(f"after a token that ends in a letter, {after_word:.1%} are")

# %% [markdown]
# **How to read it.** The small model's tokenizer on the manual, which is not what its merges were learned on.
