"""The figure at the top of the first page: which head copies? A small GPT-2 meets a name that it has never seen.

What the figure shows before anybody touches it is computed here; hero.js loads the model itself once a reader types.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import torch
from markupsafe import Markup

from helpers.data.model_files import POCKET_ENGLISH
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.site import pocket_export, render

TEXT = "Mr. Tensor was rich. Emma had never seen Mr. T"
COPIES = 0.1  # the induction score from which a head counts as one that copies: ten times what even weights give
BEFORE = 0.5  # the share of its weight on the token before from which a head is one that looks there
SHOWN = 4  # tokens with a bar
LAYERS = ("blue", "orange", "green", "purple")
WEAK = 0.14  # weights below it are not drawn
FAINT = 0.3  # how strong the arcs of other tokens than the last are
WIDTH, HEIGHT, GROUND = 720, 230, 190  # of the drawing; GROUND is where the arcs stand
LETTER = 0.6  # the width of a letter of a monospaced font, in its size


@functools.cache
def english() -> tuple[gpt2.GPT2, Tokenizer]:
    """The small GPT-2 that writes English, with the weights that the page loads, and its tokenizer."""
    model, tokenizer = pocket_export.pocket(POCKET_ENGLISH)
    return pocket_export.as_exported(model), tokenizer


@functools.cache
def heads_that_copy() -> list[tuple[int, int]]:
    """The (block, head) of the model whose induction score is COPIES or more."""
    return heads_with("induction", COPIES)


def heads_with(kind: str, least: float) -> list[tuple[int, int]]:
    """The (block, head) of the model with that score, which comes with its weights, or more."""
    scores = pocket_export.scores(pocket_export.pocket(POCKET_ENGLISH)[0])[kind]
    return [(block, h) for block, row in enumerate(scores) for h, score in enumerate(row) if score >= least]


@functools.cache
def state(off: bool) -> dict:
    """What the model does with TEXT, with the heads that copy switched off or not.

    looks: of each head, for each position t ≥ 1, its weights on positions 0 to t − 1, in hundredths. chances: of the
    next token, (token, chance) with the likeliest first, and always that of the likeliest with all heads on.
    """
    model, tokenizer = english()
    ids = torch.tensor([tokenizer.encode(TEXT)])
    with torch.no_grad(), gpt2.switched_off(model, *(heads_that_copy() if off else [])):
        weights = model.attention_weights(ids)[:, 0].flatten(0, 1)  # (depth · h, t, t)
        chances = model(ids)[0, -1].softmax(dim=-1)
    best = chances.topk(SHOWN).indices.tolist()
    if off:
        copied = state(off=False)["ids"][0]
        best = [copied, *[one for one in best if one != copied]][:SHOWN]
    looks = [[[round(100 * w) for w in row[:t].tolist()] for t, row in enumerate(head) if t] for head in weights]
    likeliest = [(tokenizer.decode([i]), round(chances[i].item(), 4)) for i in best]
    return {"looks": looks, "ids": best, "chances": likeliest}


@functools.cache
def without_one() -> list[float]:
    """The chance of TEXT's likeliest next token with one head switched off, for each head in turn."""
    model, tokenizer = english()
    ids, copied = torch.tensor([tokenizer.encode(TEXT)]), state(off=False)["ids"][0]
    chances = []
    for block in range(len(LAYERS)):
        for head in range(model.config.h):
            with torch.no_grad(), gpt2.switched_off(model, (block, head)):
                chances.append(round(model(ids)[0, -1].softmax(dim=-1)[copied].item(), 4))
    return chances


def tokens() -> list[str]:
    """TEXT in tokens, spaces included."""
    tokenizer = english()[1]
    return [tokenizer.decode([i]) for i in tokenizer.encode(TEXT)]


def precomputed() -> dict:
    """All that hero.js needs for TEXT before it has a model, and the numbers that it draws by."""
    h = english()[0].config.h
    return {
        "text": TEXT,
        "tokens": tokens(),
        "h": h,
        "copying": [block * h + head for block, head in heads_that_copy()],
        "before": [block * h + head for block, head in heads_with("previous token", BEFORE)],
        "on": state(off=False),
        "off": state(off=True),
        "withoutOne": without_one(),
        "drawing": {
            "COPIES": COPIES,
            "BEFORE": BEFORE,
            "SHOWN": SHOWN,
            "LAYERS": LAYERS,
            "WEAK": WEAK,
            "FAINT": FAINT,
            "WIDTH": WIDTH,
            "HEIGHT": HEIGHT,
            "GROUND": GROUND,
            "LETTER": LETTER,
        },
    }


def drawing() -> str:
    """The text and its arcs as an SVG: for each layer the most that one of its heads takes from an earlier token.

    The arcs of the last token, from which the next one is predicted, are the strongest.
    """
    parts, h = tokens(), english()[0].config.h
    size = WIDTH / (LETTER * len(TEXT) + 1)
    ends = [sum(map(len, parts[: k + 1])) for k in range(len(parts))]
    x = [(end - len(part.lstrip()) / 2 + 0.5) * LETTER * size for end, part in zip(ends, parts, strict=True)]
    looks = state(off=False)["looks"]
    layers, last = "", len(parts) - 1
    drawn: list[Arc] = []
    for block, colour in enumerate(LAYERS):
        arcs = ""
        for t in range(2, len(parts)):
            for s in range(1, t):  # heads that find nothing look at the first token: it is left out
                weight, head = max((looks[block * h + head][t - 1][s] / 100, -head) for head in range(h))
                if weight >= WEAK:
                    arcs += arc(x[s], x[t], weight, 1.0 if t == last else FAINT)
                    if t == last:
                        drawn.append(Arc(x[s], x[t], weight, f"{block}·{-head}", colour))
        layers += f'<g fill="none" stroke-linecap="round" style="stroke:var(--drawn-{colour}-line)">{arcs}</g>'
    words = "".join(
        f'<text x="{(end - len(part) + 0.5) * LETTER * size:.1f}" y="{GROUND + 26}" xml:space="preserve"'
        f"{' font-weight=' + chr(34) + '700' + chr(34) if k == last else ''}>{escape(part)}</text>"
        for k, (part, end) in enumerate(zip(parts, ends, strict=True))
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Arcs between the'
        " tokens of the text, in a colour for each layer, from each token to the earlier ones that heads take from."
        ' Long ones lead from the second Mr. T to what followed the first.">'
        f'{layers}<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="{size:.1f}"'
        f' style="fill:var(--drawn-ink)">{words}{names(drawn, 0.8 * size)}</g></svg>'
    )


def arc(start: float, end: float, weight: float, strength: float) -> str:
    """One arc between two places, as wide and as dark as the weight says; strength: 1, or less for a fainter one."""
    r = (end - start) / 2
    return (
        f'<path d="M{start:.1f} {GROUND}A{r:.1f} {min(r, GROUND - 8):.1f} 0 0 1 {end:.1f} {GROUND}"'
        f' stroke-width="{0.6 + 2.6 * weight:.2f}" stroke-opacity="{(0.15 + 0.85 * weight) * strength:.2f}"/>'
    )


@dataclass(frozen=True)
class Arc:
    """An arc of one layer: where it stands, what its strongest head takes, and that head, "layer·head"."""

    start: float
    end: float
    weight: float
    head: str
    colour: str


def names(arcs: Sequence[Arc], letters: float) -> str:
    """The heads of the thickest long arc, one for each layer, above it. A short arc is named if there is no long one.

    letters: their size.
    """
    if not arcs:
        return ""
    thickest = max(arcs, key=lambda one: (one.end - one.start > 4 * letters, one.weight))
    start, end = thickest.start, thickest.end
    y = max(GROUND - (end - start) / 2 - 0.35 * letters, 0.85 * letters)
    heads = [
        f'<tspan style="fill:var(--drawn-{one.colour}-line)">{one.head}</tspan>'
        for one in arcs
        if (one.start, one.end) == (start, end)
    ]
    half = LETTER / 2 * letters * (4 * len(heads) - 1)
    x = min(max((start + end) / 2, half), WIDTH - half)
    ground = (
        f'<rect x="{x - half:.1f}" y="{y - 0.85 * letters:.1f}" width="{2 * half:.1f}" height="{1.1 * letters:.1f}"/>'
    )
    return f'{ground}<text class="head" x="{x:.1f}" y="{y:.1f}" font-size="{letters:.1f}">{" ".join(heads)}</text>'


def figure() -> str:
    """The whole figure, as HTML on one line: a blank line would end it in Markdown."""
    data = precomputed()
    after = data["off"]["chances"][0][1]
    html = render(
        "hero.html.j2",
        precomputed=json.dumps(data, ensure_ascii=False, separators=(",", ":")),
        drawing=Markup(drawing()),
        chances=data["on"]["chances"],
        count=len(data["copying"]),
        example="{}·{}".format(*heads_that_copy()[-1]),
        after="under 0.1 %" if after < 0.001 else f"{100 * after:.1f} %",
        text=TEXT,
    )
    return html.replace("\n", " ")
