# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Cheaper answers
#
# Five measurements beside [lesson 21](../21_cheaper_answers/21_cheaper_answers.ipynb): outliers that are moved into the weights, how
# many weights stay out of 8 bits, what
# prompt lookup saves at three temperatures, the speed of three drafts, and the acceptance rate as a measure of rounding.

# %%
import math
import statistics
import time

import torch
import torch.nn.functional as F

from helpers.data.datasets import gpt2_files
from helpers.data.sources import is_held_out, stdlib_sources
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.quantized import (
    int8_linear,
    mixed_linear,
    quantize,
    rounded,
    with_linear,
    with_matrices,
    with_outliers,
)
from helpers.parts.speculative import FirstBlocks, Lookup, generate_with_lookup, speculative_generate

torch.set_num_threads(1)
files = gpt2_files("pocket_python")
tokenizer, pocket = Tokenizer.from_folder(files.folder), gpt2.load(files.folder)
windows = [tokenizer.encode(text[:1500])[:257] for name, text in stdlib_sources().items() if is_held_out(name)]
windows = torch.tensor([ids for ids in windows if len(ids) == 257][:16])
bytes_read = sum(len(tokenizer.decode(ids[1:]).encode()) for ids in windows.tolist())


@torch.no_grad()
def held_out(model):
    """Bits per byte, and probabilities (b, t, n)."""
    logits = model(windows[:, :-1])
    nats = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="sum").item()
    return nats / math.log(2) / bytes_read, logits.softmax(dim=-1)


# %% [markdown]
# ## Outliers can be moved into the weights
#
# [SmoothQuant](https://arxiv.org/abs/2211.10438) (Xiao et al., 2022, section 4) divides features of the activations and
# multiplies the weights that read them. The product stays the same, and a part of the outlier is now in the weights,
# where a scale for each row can bear it. Here the whole model has two features that are 100 times as large; a part of
# them is moved.

# %%
for factor in (100, 30, 10, 1):
    model = with_outliers(pocket, [7, 100], factor)
    loss, _ = held_out(with_linear(model, lambda x, w: int8_linear(x, *quantize(w, 8))))
    print(f"two features {factor:>3} times as large: int8 {loss:.3f} bits per byte")

# %% [markdown]
# ## Few weights have to stay out of 8 bits
#
# LLM.int8() multiplies features that reach a magnitude of 6 in higher precision. The pocket model with two features that
# are 20 times as large, three pairs of them: from 6 on a quarter of the weights stays in float32, from 10 on far fewer,
# at the same loss.

# %%
shares = []


def split(threshold):
    def linear(x, w):
        outlier = (x.abs() >= threshold).flatten(0, -2).any(dim=0)
        shares.append((outlier.float().mean().item() * w.numel(), w.numel()))
        return mixed_linear(x, w, threshold)

    return linear


models = [with_outliers(pocket, pair, 20.0) for pair in ([7, 100], [30, 150], [61, 118])]
for threshold in (6.0, 10.0):
    shares.clear()
    losses = [held_out(with_linear(model, split(threshold)))[0] for model in models]
    kept, of = map(sum, zip(*shares, strict=True))
    print(
        f"split at {threshold:2.0f}: {min(losses):.4f} to {max(losses):.4f} bits per byte, {kept / of:.0%} in float32"
    )

# %% [markdown]
# ## Prompt lookup saves passes at low temperatures
#
# At a low temperature the model repeats itself, and a lookup finds what comes next; at temperature 1 it hardly ever
# does. Two kinds of prompts make little difference: 90 tokens of a held-out module, and 80 with their first ten again.
# Four prompts each, 80 new tokens, one seed.

# %%
plain = windows[:4, :90]
twice = torch.cat([windows[:4, :80], windows[:4, :10]], dim=1)
for kind, prompts in (("once", plain), ("again", twice)):
    for temperature in (1.0, 0.5, 0.2):
        generator, passes = torch.Generator().manual_seed(0), 0
        for row in prompts:
            passes += generate_with_lookup(pocket, row[None], 80, 4, temperature, generator)[1]
        print(f"{kind:>5}, temperature {temperature}: {len(prompts) * 80 / passes:.2f} tokens per pass")

# %% [markdown]
# ## Two model drafts lose time
#
# Without a cache, one prompt of 48 tokens, k = 4, one thread: tokens for a second of processor time, medians of five runs. The
# draft in 4 bits is multiplied as float32. Both model drafts lose more than the count of passes says, which leaves out the drawing
# and joining of tokens.

# %%
four_bits = with_matrices(pocket, lambda w: rounded(w, 4, 32))
drafts = {"4 bits": four_bits, "first two blocks": FirstBlocks(pocket, 2), "prompt lookup": Lookup(pocket.config.n)}
seconds = {name: [] for name in ("no draft", *drafts)}
for _ in range(5):
    for name, times in seconds.items():
        generator, before = torch.Generator().manual_seed(0), time.process_time()
        if name in drafts:
            speculative_generate(pocket, drafts[name], windows[:1, :48], 32, 4, generator)
        else:
            gpt2.generate(pocket, windows[:1, :48], 32, generator=generator)
        times.append(time.process_time() - before)
for name, times in seconds.items():
    print(f"{name:16} {32 / statistics.median(times):4.0f} tokens a second")

# %% [markdown]
# ## The acceptance rate sees rounding that the loss hardly shows
#
# The mean over all positions of Σ min(p, q), where p are the probabilities of the whole model and q those of the rounded
# one: how often the whole model would keep the rounded one's token. In 4 bits with groups of 32 the loss is 0.026 bits
# per byte higher, and one token in eight is refused.

# %%
whole, p = held_out(pocket)
for bits, group in ((8, None), (5, 32), (4, 32), (4, None), (3, 32)):
    loss, q = held_out(with_matrices(pocket, lambda w: rounded(w, bits, group)))
    rate = torch.minimum(p, q).sum(dim=-1).mean()
    print(f"{bits} bits, groups of {group or 'a row'}: {loss - whole:+.3f} bits per byte, acceptance rate {rate:.3f}")
