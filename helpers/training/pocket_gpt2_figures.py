"""What the record of the pocket GPT-2 says of the finished model: losses, functions that are Python, and its heads."""

from __future__ import annotations

import ast
import math
import re
import warnings

import torch
import torch.nn.functional as F

from helpers.data.sources import EVERY
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.parts.generator import bits_per_byte, draw

TEMPERATURE, TOP_P = 0.7, 0.95
PROMPTS = ["\n\n\ndef", "\n\n\nclass", "\n\n\ndef is_", "\n    def __init__(self,", "\n        for", "\nimport"]
PROMPTS += ["\n        try:", "\n\nif __name__ =="]


class BigramTable:
    """A table of pairs: how likely a token is after another, counted. It goes on with a text as a model does."""

    def __init__(self, ids: torch.Tensor, n: int, believed: float = 8.0):
        """ids: (length,). believed: how many tokens of no particular neighbour are mixed into every row."""
        counts = torch.bincount(ids[:-1] * n + ids[1:], minlength=n * n).view(n, n).double()
        alone = (counts.sum(dim=0) + 1) / (counts.sum() + n)
        self.chances = ((counts + believed * alone) / (counts.sum(dim=1, keepdim=True) + believed)).float()  # (n, n)

    def generate(self, ids: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
        """ids: (b, t). Returns (b, count), drawn as the model's samples are."""
        tokens = ids
        for _ in range(count):
            logits = self.chances[tokens[:, -1]].log()
            tokens = torch.cat([tokens, draw(logits, TEMPERATURE, top_p=TOP_P, generator=generator)], dim=1)
        return tokens[:, ids.shape[1] :]


def first_function(text: str) -> str:
    """A function's lines from the text that begins with it: whole ones, up to what stands at the margin again."""
    first, *lines = text.split("\n")[:-1] or [text]  # the last may be cut
    end = next(
        (k for k, line in enumerate(lines) if line and not line[0].isspace() and line[0] not in ")]}"), len(lines)
    )
    return "\n".join([first, *lines[:end]]) + "\n"


def parses(text: str) -> bool:
    """Does Python take it for Python?"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as of "\d" in a string
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def share_that_parses(texts: list[str]) -> float:
    """Of functions, given as texts that begin with one and go on as long as a sample: how many are Python."""
    return sum(parses(first_function(text)) for text in texts) / len(texts)


def functions_of(texts: list[str], tokenizer: Tokenizer, count: int, length: int) -> list[str]:
    """The beginnings of functions that stand at the margin in some modules, as long as a sample: `count` of them."""
    starts = [(text, found.start()) for text in texts for found in re.finditer(r"^def ", text, re.MULTILINE)]
    chosen = starts[:: max(1, len(starts) // count)][:count]
    return [tokenizer.decode(tokenizer.encode(text[start : start + 12 * length])[:length]) for text, start in chosen]


def grammar(model: gpt2.GPT2, tokenizer: Tokenizer, pairs: BigramTable, held_texts: list[str], count: int) -> dict:
    """The share of functions that are Python: the model's, the table of pairs', and those of held-out modules."""
    prompt, length = torch.tensor([tokenizer.encode("\n\n\ndef")] * count), 240
    generator = torch.Generator().manual_seed(0)
    drawn = {
        "model": gpt2.generate_cached(model, prompt, length, TEMPERATURE, top_p=TOP_P, generator=generator),
        "pairs": pairs.generate(prompt, length, generator),
    }
    texts = {
        who: [tokenizer.decode(torch.cat(row)).lstrip("\n") for row in zip(prompt, ids, strict=True)]
        for who, ids in drawn.items()
    }
    texts["held_out"] = functions_of(held_texts, tokenizer, count, length)
    return {
        "what": (
            f'{count} functions, from "def" to the next line at the margin, whole lines only, cut after {length}'
            f" tokens; drawn at a temperature of {TEMPERATURE} with top-p {TOP_P}; held_out: from held-out modules, cut"
            " in the same way"
        ),
        **{who: round(share_that_parses(found), 3) for who, found in texts.items()},
    }


def twice(once: torch.Tensor) -> torch.Tensor:
    """(b, w) said twice: (b, 2w)."""
    return torch.cat([once, once], dim=1)


@torch.no_grad()
def second_time_nats(model: gpt2.GPT2, once: torch.Tensor) -> float:
    """The mean cross-entropy of the second copy's tokens but the first, which nothing foretells."""
    rows, w = twice(once), once.shape[1]
    losses = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
    return losses.view(len(rows), -1)[:, w:].mean().item()


@torch.no_grad()
def first_time_nats(model: gpt2.GPT2, once: torch.Tensor) -> float:
    """The mean cross-entropy of the first copy's tokens but the first."""
    return F.cross_entropy(model(once[:, :-1]).flatten(0, 1), once[:, 1:].flatten()).item()


def repeats(ids: torch.Tensor) -> tuple[list[int], list[int]]:
    """Where a text repeats itself: (places i, places j).

    The two tokens that end at i stood together before, last ending at j − 1: j is what followed them. ids: (t,).
    """
    row, found = ids.tolist(), []
    last: dict[tuple[int, int], int] = {}
    for i in range(1, len(row)):
        pair = row[i - 1], row[i]
        if pair in last:
            found.append((i, last[pair] + 1))
        last[pair] = i
    return [i for i, _ in found], [j for _, j in found]


def echo_score(weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The mean weight on what followed the same two tokens before, in texts as they are.

    weights: (depth, b, h, t, t). rows: (b, t), the texts. Returns (depth, h).
    """
    looked = [weights[:, b, :, *repeats(row)] for b, row in enumerate(rows)]  # (depth, h, however many)
    return torch.cat(looked, dim=-1).mean(dim=-1)


def strongest(scores: torch.Tensor) -> tuple[int, int]:
    """(block, head) of the largest of (depth, h) scores."""
    return divmod(int(scores.argmax()), scores.shape[1])


def texts_for_heads(held_ids: torch.Tensor, n: int, t: int, w: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What heads are judged on: windows of held-out tokens, (count, t), and rows of random ones, (count, w)."""
    rows = held_ids[torch.linspace(0, len(held_ids) - t - 1, count).long()[:, None] + torch.arange(t)]
    return rows, torch.randint(n - 1, (count, w), generator=torch.Generator().manual_seed(7))


WHAT_IS_SCORED = {
    "previous_token": "mean weight on the token before, {count} windows of {t} held-out tokens",
    "first_token": "mean weight on the window's first token, of all but its first two, the same windows",
    "induction_random": "{count} rows of {w} random tokens, each row said twice: mean weight, in the second copy,"
    " on what followed the same token in the first",
    "induction_real": "the same, rows of {w} held-out tokens",
    "induction_in_text": "held-out windows as they are: mean weight on what followed the same two tokens where they"
    " last stood",
    "times_chance": "over what even weights would give",
}


def heads(model: gpt2.GPT2, held_ids: torch.Tensor) -> dict:
    """What the heads do: every score of every head, the strongest of each kind, and the losses without some."""
    config, w, count = model.config, 64, 32
    t = config.t_max
    rows, random = texts_for_heads(held_ids, config.n, t, w, count)
    real = rows[:, :w]
    on_text = torch.cat([model.attention_weights(part) for part in rows.split(8)], dim=1)
    scores = {
        "previous_token": gpt2.previous_score(on_text).mean(dim=1),
        "first_token": gpt2.first_score(on_text).mean(dim=1),
        "induction_random": gpt2.induction_score(model.attention_weights(twice(random)), w).mean(dim=1),
        "induction_real": gpt2.induction_score(model.attention_weights(twice(real)), w).mean(dim=1),
        "induction_in_text": echo_score(on_text, rows),
    }
    even = gpt2.even_weights(t)
    by_chance = {
        "previous_token": gpt2.previous_score(even).item(),
        "first_token": gpt2.first_score(even).item(),
        "induction_random": gpt2.induction_score(gpt2.even_weights(2 * w), w).item(),
        "induction_real": gpt2.induction_score(gpt2.even_weights(2 * w), w).item(),
        "induction_in_text": echo_score(even.expand(1, count, 1, t, t), rows).item(),
    }
    found = {}
    for kind, score in scores.items():
        block, head = strongest(score)
        found[kind] = {
            "block": block,
            "head": head,
            "weight": round(score[block, head].item(), 4),
            "times_chance": round(score[block, head].item() / by_chance[kind], 1),
            "chance": round(by_chance[kind], 5),
            "all": [[round(value, 4) for value in line] for line in score.tolist()],
        }
    return {
        "counted": "blocks and heads from 0",
        "what": {kind: words.format(count=count, t=t, w=w) for kind, words in WHAT_IS_SCORED.items()},
        **found,
        "losses": losses_without(model, scores, by_chance["induction_random"], random, real),
    }


def losses_without(
    model: gpt2.GPT2, scores: dict[str, torch.Tensor], chance: float, random: torch.Tensor, real: torch.Tensor
) -> dict:
    """Nats a token in the second copy of what is said twice: with all heads, and with some switched off."""
    score, previous = scores["induction_random"], strongest(scores["previous_token"])
    block, head = strongest(score)
    control = block, int(score[block].argmin())
    strong = [divmod(int(k), model.config.h) for k in (score.flatten() > 10 * chance).nonzero()[:, 0]]
    off = {"all heads on": [], "induction head off": [(block, head)], "control head off": [control]}
    off |= {"all heads above 10 times chance off": strong, "previous-token head off": [previous]}
    losses: dict = {"heads": {name: [list(one) for one in those] for name, those in off.items()}}
    for name, once in {"random": random, "real": real}.items():
        lines = {"first copy, all heads on": round(first_time_nats(model, once), 4)}
        for what, those in off.items():
            with gpt2.switched_off(model, *those):
                lines[what] = round(second_time_nats(model, once), 4)
        losses[name] = lines
    each: list[list[float]] = []
    for one in range(model.config.depth):
        each.append([])
        for other in range(model.config.h):
            with gpt2.switched_off(model, (one, other)):
                each[-1].append(round(second_time_nats(model, random), 4))
    losses["random_without_each_head"] = each
    return losses


def samples_of(
    model: gpt2.GPT2,
    tokenizer: Tokenizer,
    prompts: list[str] = PROMPTS,
    temperature: float = TEMPERATURE,
    top_p: float = TOP_P,
) -> list[dict]:
    """How the model goes on from a few beginnings."""
    samples = []
    for seed, prompt in enumerate(prompts):
        ids, generator = torch.tensor([tokenizer.encode(prompt)]), torch.Generator().manual_seed(seed)
        drawn = gpt2.generate_cached(model, ids, 160, temperature, top_p=top_p, generator=generator)[0].tolist()
        drawn = drawn[: drawn.index(tokenizer.end_of_text)] if tokenizer.end_of_text in drawn else drawn
        sample = {"prompt": prompt, "temperature": temperature, "top_p": top_p, "text": tokenizer.decode(drawn)}
        samples.append(sample)
        print(f"{prompt}|{sample['text']}\n")
    return samples


def held_out_figures(
    model: gpt2.GPT2,
    ids: tuple[torch.Tensor, torch.Tensor],
    held_texts: list[str],
    unit: str = "module",
    every: int = 40,
) -> dict:
    """How well the finished model predicts. ids: of every few of the texts learned from, and of those held out."""
    learned_ids, held_ids = ids
    held_bytes, t = len("".join(held_texts).encode()), model.config.t_max
    perplexity = gpt2.perplexity(model, held_ids, t // 2)
    learned = gpt2.perplexity(model, learned_ids, t // 2)
    nats = math.log(perplexity)
    return {
        "held_out_nats": round(nats, 4),
        "held_out_perplexity": round(perplexity, 2),
        "held_out_bits_per_byte": round(bits_per_byte(nats * (len(held_ids) - 1) / held_bytes), 4),
        "learned_perplexity": round(learned, 2),
        "learned": f"on every {every}th of the {unit}s that were learned from, measured as the held-out ones",
        "context": (
            f"all held-out {unit}s in a row, windows of {t} tokens that start every {t // 2}: every token is predicted"
            f" once, from more than {t // 2} before it (fewer at the beginning), the ends of {unit}s too, and all bits"
            f" are divided by the {unit}s' bytes"
        ),
    }


def figures(
    model: gpt2.GPT2,
    tokenizer: Tokenizer,
    ids: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    texts: tuple[list[str], list[str]],
    count: int,
) -> dict:
    """All that the record says of the finished model.

    ids: of all modules that were learned from, of every few of these, and of those that are held out; (length,) each.
    texts: learned from, and held out. count: how many functions are drawn.
    """
    train_ids, learned_ids, held_ids = ids
    pairs = BigramTable(train_ids, len(tokenizer))
    return {
        **held_out_figures(model, (learned_ids, held_ids), texts[1], every=2 * EVERY),
        "heads": heads(model, held_ids),
        "parsed": grammar(model, tokenizer, pairs, texts[1], count),
    }
