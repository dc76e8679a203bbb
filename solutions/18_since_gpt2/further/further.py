# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Since GPT-2
#
# Beside [lesson 18](../18_since_gpt2/18_since_gpt2.ipynb): what a larger base of the angles does, other ways to stretch
# them, longer windows on held-out chapters, the parameters of published models, the balance of experts with eight seeds, another
# way of drawing tokens, and eleven changes of newer models.

# %%
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.model_files import POCKET, POCKET_LLAMA
from helpers.data.recorded import recorded
from helpers.parts import gpt2, llama
from helpers.parts.bpe import Tokenizer
from helpers.parts.experts import MixtureOfExperts, balance_loss, route
from helpers.parts.generator import keep_top_p

plots.use_course_style()

# %% [markdown]
# ## With a larger base, scores fall less with distance
#
# Lesson 6 took a base θ of 10,000, and Llama 3 takes 500,000 ([2024](https://arxiv.org/abs/2407.21783), section 3.2). A
# larger base slows all pairs but the fastest, the slowest most.

# %% mystnb={"image": {"alt": "Two panels, each with a line for θ = 10,000 and one for 500,000. Left, wavelength against pair, logarithmic: both begin at 6 positions; the lines part, and end near fifty thousand and two and a half million. A dotted line at the window is crossed by the first line after three quarters of the pairs, by the second after half. Right, the mean cosine against distance, logarithmic: both fall from 1; from a distance of a few tens on, the line for 500,000 is above the other nearly everywhere."}}
d, window = 128, 8192                                       # as in Llama 3 8B
distances = torch.logspace(0, math.log10(window), 200)      # in positions
waves, agreement = {}, {}
for theta in (10_000, 500_000):
    frequencies = llama.rotary_frequencies(d, theta)        # (d/2,)
    waves[f"θ = {theta:,}"] = torch.arange(d // 2), 2 * math.pi / frequencies
    cosines = (distances[:, None] * frequencies).cos()      # (200, d/2)
    agreement[f"θ = {theta:,}"] = distances, cosines.mean(dim=1)
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="compressed")
plots.curves(waves, "pair j", "wavelength (positions)", log="y", ax=axes[0],
             landmarks={"window": window}, named_at="left", title="Slow pairs become slower")
plots.curves(agreement, "distance (positions)", "mean cosine over the pairs", log="x",
             ax=axes[1], title="Far keys keep more of their score")
plt.show()
for name, (_, wavelengths) in waves.items():
    slow = (wavelengths > window).sum()
    print(f"{name}: wavelengths up to {wavelengths.max():,.0f} positions; "
          f"{slow} of {d // 2} pairs never complete a turn in {window:,}")

# %% [markdown]
# **How to read it.** Heads of width 128. Left, above the dotted line a pair does not complete one turn in a window of
# 8,192 positions. Right, the score of a query with an equal key, relative to distance 0, if all pairs are equally long.
# It falls less with the larger base. [Xiong et al., 2023](https://arxiv.org/abs/2309.16039) blame this fall for Llama
# 2's trouble with distant tokens. The price is that more pairs never complete a turn in the window.

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
# ## Held-out chapters show no gain from a longer text
#
# The recorded run of the pocket Llama read 32 windows of 2,048 held-out tokens in one piece.

# %%
found = recorded("pocket_llama")["result"]["by_position"]
for name in ("as trained", "all pairs", "by parts"):
    print(f"{name:>10}: bits per byte in the first 128 positions {found[name][0]:.2f}, "
          f"in the last {found[name][-1]:.2f}")

# %% [markdown]
# **How to read it.** *By parts* ends lowest, as on the model's own texts, and above where it began. The first and the
# last positions hold other words, so this is no measure of what the longer view is worth.

# %% [markdown]
# ## The parameters of published models
#
# On PyTorch's device `meta`, tensors have shapes but no numbers, so a laptop can build a model of any size.

# %% tags=["nbval-check-output"]
mistral = llama.LlamaConfig(n=32000, e=4096, h=32, groups=8, depth=32, hidden=14336)
published_sizes = {
    "Llama 2 7B": llama.LlamaConfig(n=32000, e=4096, h=32, groups=32, depth=32, hidden=11008),
    "Mistral 7B": mistral,
    "Llama 3 8B": llama.LlamaConfig(n=128256, e=4096, h=32, groups=8, depth=32, hidden=14336),
}
for name, config in published_sizes.items():
    with torch.device("meta"):
        count = sum(p.numel() for p in llama.Llama(config).parameters())
    print(f"{name}: {count:,} parameters")

# %% [markdown]
# **How to read it.** These are the published models' counts, which their papers round ([Llama
# 2](https://arxiv.org/abs/2307.09288), [Mistral 7B](https://arxiv.org/abs/2310.06825), [Llama
# 3](https://arxiv.org/abs/2407.21783)). A count does not see the order of a matrix's rows.
#
# [Mixtral](https://arxiv.org/abs/2401.04088) (Jiang et al., 2024) has the design of Mistral 7B, with eight networks in
# each block, two of which work for a token. All else is shared.

# %% tags=["nbval-check-output"]
with torch.device("meta"):
    shared = sum(p.numel() for name, p in llama.Llama(mistral).named_parameters()
                 if "feed_forward" not in name)
for what, networks in (("in all", 8), ("for any one token", 2)):
    count = shared + mistral.depth * mistral.e * (networks * 3 * mistral.hidden + 8)
    print(f"{what}: {count:,} parameters")

# %% [markdown]
# **How to read it.** A network has three matrices, and a router one column for each expert. A token uses little more
# than a quarter of what is stored.

# %% [markdown]
# ## The balance, with eight seeds
#
# Eight kinds of tokens, each with its own task, share eight experts, with k = 2. A common part, 3 added to every
# component of every input, lets the router prefer the same experts for all tokens at first. Then some experts are hardly
# used at the end with every seed. With the balance at weight 1 none is, and at 0.01 one to three are. The loss of the
# task is not lower with every seed. Without the common part one expert is hardly used, with one seed.

# %%
def train_mixture(share, seed, common=3, steps=200, N=8, e=16):
    """Returns the mean task loss of the last ten steps and how many experts are hardly used."""
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
        loss = (mixture(x + common) - y).square().mean()
        _, experts = route(mixture.logits, 2)
        optimiser.zero_grad()
        (loss + share * balance_loss(mixture.logits, 2)).backward()
        optimiser.step()
        used.append(torch.bincount(experts.flatten(), minlength=N) / experts.numel())
        losses.append(loss.item())
    hardly = (torch.stack(used)[-20:].mean(dim=0) < 0.01).sum().item()
    return sum(losses[-10:]) / 10, hardly

for seed in range(8):
    (loss, hardly), (balanced_loss, balanced) = train_mixture(0, seed), train_mixture(1, seed)
    print(f"seed {seed}: without {hardly} hardly used, loss {loss:.2f}; "
          f"with the balance {balanced} hardly used, loss {balanced_loss:.2f}; "
          f"at weight 0.01 {train_mixture(0.01, seed)[1]} hardly used; "
          f"without balance and common part {train_mixture(0, seed, common=0)[1]} hardly used")

# %% [markdown]
# **How to read it.** An expert is hardly used if it has less than 1% of the choices over the last 20 of 200 steps.

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

# %% [markdown]
# ## Eleven changes of newer models
#
# What each change is worth by itself is hard to say: most were published together with new data and a larger model.
#
# | change | what it does | described in |
# |---|---|---|
# | windows in most layers | these layers see only the last positions, and their cache stays small ([lesson 16](../16_sparse_attention/16_sparse_attention.ipynb)) | [Gemma 3](https://arxiv.org/abs/2503.19786), 2025: five layers with a window to each layer without |
# | latent attention | one short vector for each position is cached, with one small rotated key; the keys and values of all heads are computed from it | [DeepSeek-V2](https://arxiv.org/abs/2405.04434), 2024, section 2.1 |
# | gated linear attention | a state of fixed size with gates that forget takes the place of the cache | Gated DeltaNet, [Yang et al., 2024](https://arxiv.org/abs/2412.06464); in [Qwen3-Next](https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct), and refined in [Kimi Linear](https://arxiv.org/abs/2510.26692), three layers of four, 2025 |
# | balance without a loss | a bias for each expert is raised or lowered until all are used | [Wang et al., 2024](https://arxiv.org/abs/2408.15664); in [DeepSeek-V3](https://arxiv.org/abs/2412.19437), 2024 |
# | several residual streams | four streams in place of one, with learned mixing between them | hyper-connections, [Zhu et al., 2024](https://arxiv.org/abs/2409.19606); [Xie et al., 2025](https://arxiv.org/abs/2512.24880); in [DeepSeek-V4](https://arxiv.org/abs/2606.19348), 2026 |
# | norms on queries and keys | a norm on the q and k of each head keeps scores from growing during training | [Dehghani et al., 2023](https://arxiv.org/abs/2302.05442); in [Qwen3](https://arxiv.org/abs/2505.09388), 2025 |
# | no positions in some layers | every fourth layer does not rotate at all | [Yang et al., 2025](https://arxiv.org/abs/2501.18795); in [SmolLM3](https://huggingface.co/HuggingFaceTB/SmolLM3-3B), 2025 |
# | a sink for each head | a learned number joins the softmax as one more score without a value: a head may look at nothing | [gpt-oss](https://arxiv.org/abs/2508.10925), 2025, with windows in every other layer |
# | learned sparsity | a small scorer picks 2,048 earlier positions for each query; attention is computed for these alone | [DeepSeek-V3.2](https://arxiv.org/abs/2512.02556), 2025 |
# | many small experts | a token uses more, smaller experts, and one that is shared by all tokens; Qwen3-Next has 512, and uses ten and one | [DeepSeekMoE](https://arxiv.org/abs/2401.06066), 2024 |
# | several tokens at once | the model is also trained to predict the token after next, and can draft it when it writes | [Gloeckle et al., 2024](https://arxiv.org/abs/2404.19737); in [DeepSeek-V3](https://arxiv.org/abs/2412.19437), section 2.2 |
