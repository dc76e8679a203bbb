# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Since GPT-2
#
# Three measurements beside [lesson 18](../18_since_gpt2/18_since_gpt2.ipynb): other ways to stretch the angles, the
# balance of experts with eight seeds, and another way of drawing tokens.

# %%
import math

import torch
import torch.nn.functional as F

from helpers.data.model_files import POCKET, POCKET_LLAMA
from helpers.parts import gpt2, llama
from helpers.parts.bpe import Tokenizer
from helpers.parts.experts import MixtureOfExperts, balance_loss, route
from helpers.parts.generator import keep_top_p

# %% [markdown]
# ## Other ramps, and other factors
#
# The text is the lesson's: 16 texts that the pocket Llama has written itself, with at most 128 tokens in view. They are
# read in one piece of 256, 512 or 1,024 tokens. Each number is the mean loss in nats a token over the last 128 tokens.

# %%
pocket = llama.load(POCKET_LLAMA)
tokenizer = Tokenizer.from_folder(POCKET_LLAMA)
window, d = pocket.t_max, pocket.config.e // pocket.config.h
trained = llama.rotary_frequencies(d, pocket.config.theta)
chance = torch.Generator().manual_seed(0)
written = torch.full((16, 1), tokenizer.end_of_text)
while written.shape[1] <= 8 * window:
    more = gpt2.generate_cached(pocket, written[:, -64:], 64, generator=chance)
    written = torch.cat([written, more], dim=1)

@torch.no_grad()
def last_loss(frequencies, t):
    """Nats a token over the last 128 of t tokens that are read in one piece."""
    llama.read_with(pocket, frequencies)
    text = written[:, :t + 1]
    losses = F.cross_entropy(pocket(text[:, :-1]).mT, text[:, 1:], reduction="none")
    return losses[:, -window:].mean().item()

print(f"read in windows of {window}: {last_loss(trained, window):.2f}")
for factor in (2, 4, 8):
    base = pocket.config.theta * factor ** (d / (d - 2))
    ways = {
        "as trained": trained,
        "all pairs": trained / factor,
        "1 to 4 turns": llama.stretched_frequencies(trained, window, factor),
        "1 to 32 turns": llama.stretched_frequencies(trained, window, factor, high=32.0),
        "a larger base": llama.rotary_frequencies(d, base),
    }
    losses = {name: last_loss(frequencies, factor * window) for name, frequencies in ways.items()}
    print(f"{factor * window:5}:", "   ".join(f"{name} {loss:.2f}" for name, loss in losses.items()))

# %% [markdown]
# **How to read it.** *1 to 4 turns* is the lesson's ramp, with Llama 3.1's bounds, and *1 to 32 turns* has YaRN's. *A
# larger base* changes θ so that the slowest pair is stretched by the whole factor and the fastest not at all (the
# "NTK-aware" way that [Peng et al., 2023](https://arxiv.org/abs/2309.00071), section 3.1, describe). The two ramps lose
# least at every length; a larger base helps at twice the window, and little beyond. One model, one seed.

# %% [markdown]
# ## The balance, with eight seeds
#
# Without the balance some experts are dead at the end with every seed; with it none is, with every seed. The loss of
# the task is not lower with every seed.

# %%
def train_mixture(share, seed, steps=200, N=8, e=16):
    """The lesson's training. Returns the mean task loss of the last ten steps and how many experts are dead."""
    torch.manual_seed(seed)
    mixture = MixtureOfExperts(e, 16, N, k=2)
    generator = torch.Generator().manual_seed(5)
    tasks = torch.randn(N, e, e, generator=generator)
    centres = torch.randn(N, e, generator=generator)
    optimiser, used, losses = torch.optim.Adam(mixture.parameters(), lr=0.01), [], []
    for _ in range(steps):
        kind = torch.randint(N, (256,), generator=generator)
        x = 2 * centres[kind] + torch.randn(256, e, generator=generator)
        y = torch.einsum("re,reo->ro", x, tasks[kind] / e ** 0.5)
        loss = (mixture(x + 3) - y).square().mean()
        _, experts = route(mixture.logits, 2)
        optimiser.zero_grad()
        (loss + share * balance_loss(mixture.logits, 2)).backward()
        optimiser.step()
        used.append(torch.bincount(experts.flatten(), minlength=N) / experts.numel())
        losses.append(loss.item())
    dead = (torch.stack(used)[-20:].mean(dim=0) < 0.01).sum().item()
    return sum(losses[-10:]) / 10, dead

for seed in range(8):
    (loss, dead), (balanced_loss, balanced_dead) = train_mixture(0, seed), train_mixture(1, seed)
    print(f"seed {seed}: without {dead} dead, loss {loss:.2f}; "
          f"with the balance {balanced_dead} dead, loss {balanced_loss:.2f}")

# %% [markdown]
# **How to read it.** An expert is dead if it has less than 1% of the choices over the last 20 of 200 steps.

# %% [markdown]
# ## Drawing tokens: min-p
#
# Top-p keeps the most probable tokens up to a share of the probability. At a high temperature that share includes a
# long tail. Min-p ([Nguyen et al., 2024](https://arxiv.org/abs/2407.01082)) keeps the tokens that have at least a given
# share of the largest probability, a floor that rises with the model's confidence. The pocket GPT-2 of lesson 12, where
# it is sure of the next token and where it is not:

# %%
def keep_min_p(logits, p):
    """Logits (..., n), −∞ for tokens with less than p times the largest probability."""
    chances = logits.softmax(dim=-1)
    return logits.masked_fill(chances < p * chances.amax(dim=-1, keepdim=True), -math.inf)

tokenizer, model = Tokenizer.from_folder(POCKET), gpt2.load(POCKET)
prompts = {"sure": "if not isinstance(value, str):\n    raise", "not sure": "for name in"}
for name, text in prompts.items():
    with torch.no_grad():
        logits = model(torch.tensor([tokenizer.encode(text)]))[0, -1]
    for temperature in (1.0, 1.5):
        hot = logits / temperature
        kept = [f"{rule} {found.isfinite().sum()}" for rule, found in
                (("top-p 0.9:", keep_top_p(hot, 0.9)), ("min-p 0.1:", keep_min_p(hot, 0.1)))]
        print(f"{name}, temperature {temperature}, tokens kept by", *kept, sep="   ")

# %% [markdown]
# **How to read it.** Each line is one place in a text. Where the model is sure, min-p keeps one token at both
# temperatures. Whether that makes better texts is disputed: its authors report that it does, and [Schaeffer et al.,
# 2025](https://arxiv.org/abs/2506.13681) analysed the same evidence again and found no advantage over top-p.
