# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Measured further: Transformer-XL
#
# Measurements that go beyond the question of [lesson 15](../15_transformer_xl/15_transformer_xl.ipynb). What is
# compared with Wikipedia was trained on it, the passkey model on passkeys; all other models have random weights.

# %%
import math
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from helpers import plots
from helpers.data.recorded import recorded
from helpers.parts.generator import CharTransformer, sliding_window_bits
from helpers.parts.positions import sinusoidal_encoding
from helpers.parts.transformer_xl import TransformerXL, reach, relative_scores, streaming_bits

plots.use_course_style()

# %% [markdown]
# ## The four terms, each as a map
#
# Each term by itself, with zeros for the inputs of the others. Term (c) has the same row for all queries: some content
# is important for every query. Term (d) is the same along each diagonal: some distances are important, whatever the
# content. (a) and (b) depend on the query.

# %% mystnb={"image": {"alt": "Five heat maps of 6 queries by 10 keys on one colour scale, the future hatched. Term a, content and content: no pattern. Term b, content and position: each row has its own smooth stripe. Term c: every row is the same, each column has one colour. Term d: every diagonal has one colour. The fifth is their sum."}}
generator = torch.Generator().manual_seed(3)
q, k = (torch.randn(1, 1, size, 8, generator=generator) for size in (6, 10))
u, v = (torch.randn(1, 8, generator=generator) for _ in range(2))
r = (sinusoidal_encoding(10, 8).flip(0) @ torch.randn(8, 8, generator=generator))[None]
terms = {
    "(a) content and content": relative_scores(q, k, 0 * r, 0 * u, 0 * v),
    "(b) content and position": relative_scores(q, 0 * k, r, 0 * u, 0 * v),
    "(c) position and content": relative_scores(0 * q, k, 0 * r, u, 0 * v),
    "(d) position and position": relative_scores(0 * q, 0 * k, r, 0 * u, v),
}
total = relative_scores(q, k, r, u, v)
past = torch.ones(6, 10, dtype=torch.bool).tril(4)
scale = max(term[..., past].abs().max().item() for term in (*terms.values(), total))
figure, axes = plt.subplots(3, 2, figsize=(7, 5.8), layout="compressed")
axes = list(axes.flat)
axes.pop().set_axis_off()
for ax, (name, term) in zip(axes, {**terms, "their sum": total}.items(), strict=True):
    plots.heat(
        term[0, 0].masked_fill(~past, 0), title=name, ax=ax, signed=True, annotate=False, blank_zeros=True, scale=scale
    )
    ax.set(xlabel="key j", ylabel="query i")
plt.show()
apart = (sum(terms.values()) - total)[..., past].abs().max().item()
print("the four add up to the scores:", apart < 1e-5)

# %% [markdown]
# **How to read it.** Random queries, keys and weights. Blue is positive, orange negative, on one scale for all five; the
# future is hatched, and the first four columns are memory.

# %% [markdown]
# ## How far back?
#
# Count for the last position of a segment, far inside a text. One block sees the t − 1 positions before it, and m more.
# A second block reads a memory of the first one's outputs. The oldest of them are in the segment ⌈m/t⌉ segments ago,
# which had a memory of m too. So each further block adds t·⌈m/t⌉ positions, and the **reach** is
# t − 1 + m + (depth − 1)·t·⌈m/t⌉. With m = t this is t − 1 + depth·t, the paper's O(N·L). The test changes one byte at
# a time.

# %%
@torch.no_grad()
def measured_reach(t, m, depth):
    """How many positions before it the last position of a text depends on, found by changing bytes."""

    def last(ids):
        memory = None
        for segment in ids.split(t, dim=1):
            logits, memory = model(segment, memory, m)
        return logits[:, -1]

    torch.manual_seed(0)
    model = TransformerXL(16, 12, 3, depth).double()
    length = t * math.ceil((reach(t, m, depth) + 3) / t)
    ids = torch.randint(16, (1, length), generator=torch.Generator().manual_seed(1))
    before = last(ids)
    for j in range(length):
        other = ids.clone()
        other[0, j] = (ids[0, j] + 1) % 16
        if (last(other) != before).any():
            return length - 1 - j


for t, m, depth in [(4, 0, 2), (4, 4, 1), (4, 4, 2), (4, 3, 2), (4, 6, 2), (3, 3, 3)]:
    print(
        f"t = {t}, m = {m}, depth {depth}: measured {measured_reach(t, m, depth):>2}, formula {reach(t, m, depth):>2}"
    )

# %% [markdown]
# **How to read it.** Models with random weights, in double precision. Where m is no multiple of t, the oldest state of
# a memory is inside a segment, and it has seen the beginning of that segment and the memory before it.

# %% [markdown]
# ## Where the gradient crosses the border, a segment learns to keep a passkey
#
# The lesson's two blocks with t = m = 8 reach the passkey behind one segment of letters. Three runs of 200 steps with
# detached states, and three in which the gradient of the answer reaches the segments before. The share right is of 4,000
# new texts; a guess is right once in 16, 0.0625.

# %%
def passkey_texts(b: int, t: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """A passkey (0 to 15) among letters, a segment of letters, and one with a question (32) at its end."""
    texts, passkeys = torch.randint(16, 32, (b, 3 * t)), torch.randint(16, (b,))
    texts[range(b), torch.randint(t, (b,))] = passkeys
    texts[:, -1] = 32
    return texts, passkeys


def answers(model: TransformerXL, texts: torch.Tensor, detached: bool) -> torch.Tensor:
    """Logits (b, n) after the last segment."""
    memory = [torch.empty(len(texts), 0, 32)] * len(model.blocks)
    for segment in texts.split(8, dim=1):
        x, following = model.tokens(segment), []
        for past, block in zip(memory, model.blocks):
            following.append(x.detach() if detached else x)
            x = block(x, past)
        memory = following
    return model.to_logits(model.norm(x[:, -1]))


for detached in (True, False):
    shares = []
    for seed in range(3):
        torch.manual_seed(seed)
        passkey_model = TransformerXL(33, 32, 4, 2)
        optimiser = torch.optim.Adam(passkey_model.parameters(), lr=0.005)
        for _ in range(200):
            texts, passkeys = passkey_texts(64)
            loss = F.cross_entropy(answers(passkey_model, texts, detached), passkeys)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            texts, passkeys = passkey_texts(4000)
            right = answers(passkey_model, texts, detached).argmax(dim=-1) == passkeys
        shares.append(f"{right.float().mean():.3f}")
    print(f"{'detached' if detached else 'with gradient':>13}: {', '.join(shares)} right")

# %% [markdown]
# ## A sliding window computes every position nearly t times
#
# Lesson 9's fair evaluation gives each byte a full context, and computes t positions to use one. One pass with a memory
# computes each once. In seconds the difference is smaller, because many windows go through the model at once, and large
# products are more efficient than small ones.

# %%
t, text = 64, torch.randint(256, (600,), generator=torch.Generator().manual_seed(0))
torch.manual_seed(0)
windowed, remembering = CharTransformer(256, 64, 4, 3, t_max=t), TransformerXL(256, 64, 4, 3)
positions = {"sliding by one": t + t * (len(text) - 1 - t), "one pass, m = 64": len(text) - 1}
ways = {
    "sliding by one": lambda: sliding_window_bits(windowed, text, t),
    "one pass, m = 64": lambda: streaming_bits(remembering, text, t, 64),
}
used = {}
for way, measure in ways.items():
    measure()  # once before the clock
    before = time.process_time()
    measure()
    used[way] = time.process_time() - before
slow, fast = ways
print(f"for {len(text)} bytes: {positions[slow]:,} positions in windows, {positions[fast]:,} in one pass")
print(
    f"{positions[slow] / positions[fast]:.0f} times as many positions, and"
    f" {used[slow] / used[fast]:.0f} times as much processor time"
)

# %% [markdown]
# **How to read it.** Two models with random weights and of the same size. The paper's own comparison is with a window of
# 3,800 on a GPU: one pass with a memory was up to [1,874 times as fast](https://arxiv.org/abs/1901.02860) (table 9).

# %% [markdown]
# ## On Wikipedia, one pass with enough memory beats overlapping windows
#
# The bytes, the held-out part, the width and the number of blocks are those of [lesson
# 9's](../09_character_generator/09_character_generator.ipynb) recorded model. This model adds segments of 128 bytes, and
# in training a memory of as many.

# %% mystnb={"image": {"alt": "Held-out bits per byte against the length of the memory at evaluation, from 0 to 512. The curve falls steeply from 1.95 at 0 to 1.67 at 64, is lowest at 256 with 1.62, and rises to 1.64 at 512. Two dashed lines mark lesson 9: 1.75 side by side, 1.66 overlapping. From 128 on the curve is below both."}}
run, before = recorded("enwik8_xl"), recorded("enwik8")
by_memory = {m: run["result"][f"held_out_bits_m_{m}"] for m in (0, 64, 128, 256, 512)}
apart, sliding = (before["result"][key] for key in ("held_out_bits_without_overlap", "held_out_bits"))
plots.curves({"one pass": (list(by_memory), list(by_memory.values()))}, "memory at evaluation (bytes)",
             "held-out bits per byte", landmarks={"lesson 9, side by side": apart, "lesson 9, overlapping": sliding},
             title="With enough memory, one pass beats overlapping windows")
plt.gca().set_xticks(list(by_memory))
plt.show()
for name, one in {"lesson 9": before, "with a memory": run}.items():
    settings = one["settings"]
    read_bytes = settings["steps"] * settings["batch"] * settings.get("t", settings.get("t_max"))
    print(f"{name:>13}: {settings['parameters']:,} parameters, {read_bytes / 1e6:.1f} million bytes read, "
          f"{one['processor_seconds'] / 60:.0f} minutes of processor time")
print(f"lesson 9: {apart:.3f} in windows side by side, {sliding:.3f} in windows that overlap")

# %% [markdown]
# **How to read it.** Recorded, one run: one model, evaluated in one pass with memories of different lengths. Dashed:
# lesson 9's model on the same bytes, in windows of 256 bytes, side by side or overlapping by three quarters. The two
# models' positions differ too, so not all of the gain need come from the memory.
