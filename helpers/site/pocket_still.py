"""What stands where the pocket GPT-2 can be opened: tokens in two lines, the weights of an induction head, a button."""

from __future__ import annotations

import functools
from html import escape

import torch

from helpers.plots.diagrams import COLOURS
from helpers.site import pocket

TEXT = "paint width left line\npaint width left"
WIDE, HIGH, LEFT = 420, 262, 14
LINES, BOX, LETTER = (84, 134), 26, 7.9  # of the tokens: the upper edge of each line, the height, the width of a letter
BARS, FIRST_BAR, BAR = 4, 190, 18
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono','DejaVu Sans Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Arial,sans-serif"


WORDS = (
    "An induction head of the pocket model at work: the arcs are its attention weights from the last token. "
    "Under them, what the model expects next."
)


def opener() -> str:
    """What stands in a page until the model is opened: the picture and a button, in one block of HTML."""
    return (
        '<div class="player" data-player="pocket" id="player-pocket">\n'
        '<p class="name">Play with the pocket GPT-2</p>\n'
        f'<figure class="still">{drawn()}\n<figcaption class="quiet">{WORDS}</figcaption></figure>\n'
        '<p class="opener scripted row"><button type="button" class="primary">Open the model (2.3 MB)</button></p>\n'
        '<noscript><style>.player .scripted{display:none}</style><p class="quiet">With scripts this picture is a'
        " program to play with.</p></noscript>\n</div>"
    )


@functools.cache
def drawn() -> str:
    """The picture as SVG, in the colours of the page."""
    model, tokenizer = pocket.pocket()
    model = pocket.rounded(model)  # as the page has it
    scores = torch.tensor(pocket.scores(model)["induction"])
    block, head = divmod(int(scores.argmax()), model.config.h)
    ids = tokenizer.encode(TEXT)
    with torch.no_grad():
        weights = model.attention_weights(torch.tensor([ids]))[block, 0, head, -1].tolist()
        chances = model(torch.tensor([ids]), last_only=True)[0, -1].softmax(dim=-1)
    tokens = [tokenizer.token(i).replace("Ċ", "↵") for i in ids]
    best = [(tokenizer.token(int(i)).replace("Ċ", "↵"), chances[i].item()) for i in chances.topk(BARS).indices]
    return _svg(tokens, weights, best, f"block {block}, head {head}")


def _svg(tokens, weights, best, name):
    places, parts = _places(tokens), []
    x, y, wide = places[-1]
    for (tx, ty, other), weight in zip(places[:-1], weights, strict=False):
        if weight >= 0.02:
            a, b, top = x + wide / 2, tx + other / 2, min(y, ty) - 36
            parts.append(
                f'<path d="M{a:.1f} {y}C{a:.1f} {top} {b:.1f} {top} {b:.1f} {ty}" fill="none"'
                f' style="stroke:{_paint("blue-line")}" stroke-width="{1 + 4 * weight:.2f}"'
                f' opacity="{0.25 + 0.75 * weight:.2f}"/>'
            )
    for k, ((tx, ty, other), token) in enumerate(zip(places, tokens, strict=True)):
        line = "line" if k < len(tokens) - 1 else "orange-line"
        share = weights[k]
        parts += [
            f'<rect x="{tx:.1f}" y="{ty}" width="{other:.1f}" height="{BOX}" rx="3" style="fill:{_paint("plain")};'
            f'stroke:{_paint(line)}"/>',
            f'<rect x="{tx:.1f}" y="{ty}" width="{other:.1f}" height="{BOX}" rx="3" opacity="{0.6 * share:.2f}"'
            f' style="fill:{_paint("blue-line")}"/>',
            _text(tx + other / 2, ty + 17.5, token, MONO, "middle"),
        ]
    parts.append(_text(LEFT, 24, f"What {name} looks at from the last token", SANS, size=13, soft=True))
    parts.append(_text(LEFT, FIRST_BAR - 9, "The next token", SANS, size=13, soft=True))
    for k, (token, chance) in enumerate(best):
        top = FIRST_BAR + k * BAR
        parts += [
            _text(LEFT + 84, top + 12, token, MONO, "end"),
            f'<rect x="{LEFT + 92}" y="{top + 2}" width="{max(1.0, 240 * chance):.1f}" height="{BAR - 5}"'
            f' style="fill:{_paint("blue-line")}"/>',
            _text(LEFT + 98 + 240 * chance, top + 12, f"{100 * chance:.0f} %", SANS),
        ]
    first, second = TEXT.split("\n")
    looked = sorted(zip(weights, tokens, strict=True), reverse=True)[0]
    words = (
        f"Tokens of {first}, and of {second} below it. Head: {name}. From the last token most of the weight,"
        f" {looked[0]:.2f}, goes to {looked[1]}, which followed the first copy. Next token: "
        + ", ".join(f"{token} {100 * chance:.0f} %" for token, chance in best)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="pocket-still-title pocket-still-words"'
        f' viewBox="0 0 {WIDE} {HIGH}" width="{WIDE * 1.25:.0f}" height="{HIGH * 1.25:.0f}">'
        f'<title id="pocket-still-title">The pocket GPT-2 reads a line for the second time</title>'
        f'<desc id="pocket-still-words">{escape(words)}.</desc>{"".join(parts)}</svg>'
    )


def _places(tokens):
    """(x, y, width) of each token's box; a new line begins after "↵"."""
    places, x, line = [], LEFT, 0
    for token in tokens:
        wide = max(20.0, LETTER * len(token) + 10)
        places.append((x, LINES[line], wide))
        x += wide + 4
        if token.endswith("↵"):
            x, line = LEFT, line + 1
    return places


def _paint(name):
    return f"var(--drawn-{name},{COLOURS[name][0]})"


def _text(x, y, words, family, anchor="start", size=13, soft=False):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-family="{escape(family)}"'
        f' style="fill:{_paint("soft" if soft else "ink")}">{escape(words)}</text>'
    )
