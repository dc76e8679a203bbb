# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Tokens
#
# What [lesson 11](../11_tokens/11_tokens.ipynb) leaves out: twice the reading for its two models, how long tokens are,
# how GPT-2 cuts languages, words and numbers, and what a space at the end of a prompt changes.

# %%
import math
from collections import Counter

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.datasets import gpt2_files
from helpers.data.recorded import recorded
from helpers.data.text import manual
from helpers.data.toy.five_sentences import CODE, SENTENCES
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer, bits_per_byte_of
from helpers.parts.generator import sample_batch
from helpers.progress import shortened

plots.use_course_style()
torch.set_num_threads(1)
folder = gpt2_files("gpt2", places="embedded", say=lambda line: None).folder
tokenizer = Tokenizer.from_folder(folder)
run = recorded("gpt2_tokens")

# %% [markdown]
# ## Twice the reading, and a smaller gap
#
# The lesson's two models read 600,000 bytes in place of 300,000. All else is as it was.

# %%
text = manual()
first, last = text[: len(text) * 4 // 5], text[len(text) * 4 // 5 :]

def bits_after(read, cutter, hidden):
    """Bits per byte on the last fifth, of a GPT-2 that has read so many bytes of the rest."""
    ids, held_out = (torch.tensor(cutter.encode(part)) for part in (first, last))
    steps = round(read * len(ids) / len(first.encode()) / (4 * 64))
    torch.manual_seed(0)
    model = gpt2.GPT2(gpt2.Config(len(cutter), t_max=64, e=64, h=4, depth=2, hidden=hidden))
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
    chance = torch.Generator().manual_seed(0)
    for step in range(shortened(steps)):
        inputs, targets = sample_batch(ids, 4, 64, chance)
        cosine = 0.5 + 0.5 * math.cos(math.pi * step / steps)
        optimiser.param_groups[0]["lr"] = 0.003 * min(step / (0.06 * steps), cosine)
        optimiser.zero_grad()
        F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).backward()
        optimiser.step()
    whole = (len(held_out) - 1) // 64 * 64
    with torch.no_grad():
        logits = model(held_out[:whole].view(-1, 64)).flatten(0, 1)
    told = held_out[1 : whole + 1]
    return bits_per_byte_of(F.cross_entropy(logits, told).item(), whole, cutter.decode(told))

for name, merges, hidden in (("bytes", 0, 504), ("1,000 merges", 1000, 256)):
    print(f"{name:>12}: {bits_after(600_000, Tokenizer.learn(first, 257 + merges), hidden):.2f} bits per byte")

# %% [markdown]
# The model on tokens is still ahead, by less than half as much as in the lesson. One seed.

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

# %% [markdown]
# ## A space at the end of a prompt changes what follows
#
# The small model gets the same prompt without and with a final space.

# %%
def show_cuts(*texts):
    for text in texts:
        cut = [token.replace("Ġ", "·") for token in run["result"]["cuts"][text]]
        print(f"{text!r:>20}  {len(cut)}: {' | '.join(cut)}")

pocket = gpt2.load(folder)
for prompt in ("the value of the", "the value of the "):
    chances = pocket(torch.tensor([tokenizer.encode(prompt)]))[0, -1].softmax(dim=-1)  # (n,)
    best = [f"{tokenizer.token(i)} {chances[i]:.2f}" for i in chances.topk(5).indices]
    print(f"{prompt!r:>20}, and then: {',  '.join(best)}")

# %% [markdown]
# After the first prompt the model expects tokens that bring their own space, such as *value* and *first*. In the second,
# that space is spent, and the model bets on *right* and *row*, for which it has no token with a space. Two thirds of
# GPT-2's merges begin with a space, so do not end a prompt with one.

# %% [markdown]
# ## How GPT-2 cuts words and numbers
#
# Recorded with OpenAI's vocabulary.

# %%
show_cuts("the", " the", "The", " The", "THE", "Strawberry", " STRAWBERRY", "100000", "3.14159")
print("\nthe 9,000 numbers of four digits:", run["result"]["four_digits"])

# %% [markdown]
# One word in five forms is five ids. Most numbers of four digits are cut in the middle, more than a quarter after the
# first digit: the cuts of two numbers often fall in different columns.

# %% [markdown]
# ## Tokens per byte
#
# The five sentences of the lesson in each language, and five lines of Python, with GPT-2's tokens. The last number lies
# between 0, for long tokens, and 1, for every byte alone.

# %%
for name, texts in {**SENTENCES, "Python": CODE}.items():
    size, tokens = sum(len(text.encode()) for text in texts), sum(run["result"]["sentences"][name])
    print(f"{name:>8}: {size:>3} bytes, {tokens:>3} tokens, {tokens / size:.2f} tokens per byte")

# %% [markdown]
# English has the longest tokens. Chinese, Russian and Hindi take more than twice as many for a byte.

# %% [markdown]
# ## Try your own
#
# The next cell cuts a text of yours with OpenAI's vocabulary if the data folder or the Hub has it (1.5 MB), and otherwise
# with the small model's.

# %%
yours = Tokenizer.from_folder(gpt2_files("gpt2", weights=False, say=lambda line: None).folder)
for text in ("Tokenization isn't trivial.", "    return 1000000", "Donaudampfschiff"):
    ids = yours.encode(text)
    print(f"{text!r:>30}  {len(ids):>2}: {' | '.join(yours.token(i) for i in ids)}")
