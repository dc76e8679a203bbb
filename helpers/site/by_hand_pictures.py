"""The players "attention by hand" as they stand before a script runs: HTML and SVG with the numbers of their start.

A script (site/_static/players/by-hand) moves what stands here, so that a page without scripts, and a printed one, shows
the same picture, and nothing shifts when the script starts. The numbers are PyTorch's.

HTML here has no blank line in it: in Markdown a blank line would end it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

import torch

from helpers.course import ROOT
from helpers.site.stored_maps import cross_attention

UNIT, REACH, HALF = 50, 3, 170  # of a plane: units of SVG in one of the plane, how far a vector goes, half a side
LABEL = 17  # from the tip of a vector to the middle of its letter
KEYS, WIDTHS, DRAWS = 8, tuple(2**power for power in range(11)), 6  # of lesson 3's experiment

Vector = Sequence[float]


# --- numbers and letters ---------------------------------------------------------------------------------------------


def fixed(value: float, digits: int = 2) -> str:
    """A number as the players write it: so many decimals, a true minus, and no minus before a zero."""
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def letter(name: str) -> str:
    """x2 as a letter with its index, for HTML."""
    return f"<i>{name[0]}</i>" + (f"<sub>{name[1:]}</sub>" if name[1:] else "")


def attention(query: Vector, keys: Sequence[Vector], values: Sequence[Vector]) -> tuple[list, list, list]:
    """Scores (s,), weights (s,) and the output of one query, without a division: lessons 1 and 2."""
    q, k, v = (torch.tensor(numbers, dtype=torch.float64) for numbers in (query, keys, values))
    scores = k @ q
    weights = torch.softmax(scores, dim=0)
    return scores.tolist(), weights.tolist(), (weights @ v).tolist()


# --- what every player is made of ------------------------------------------------------------------------------------


def player(name: str, title: str, tries: str, sees: str, stage: str, controls: str, data: dict) -> str:
    """One player: its words, what is seen, what it is set by, and the numbers that its script starts from."""
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return "\n".join(
        [
            f'<figure class="by-hand" id="player-{name}" data-player="{name}" aria-labelledby="player-{name}-title">',
            f'<figcaption><strong id="player-{name}-title">{title}</strong>',
            f'<span class="by-hand-try">{tries}</span> <span>{sees}</span></figcaption>',
            f'<div class="by-hand-stage">{stage}</div>',
            f'<div class="by-hand-controls">{controls}'
            '<button type="button" class="by-hand-reset" disabled>Back to the start</button></div>',
            '<p class="by-hand-said" role="status"></p>',
            f'<script type="application/json">{told}</script>',
            "</figure>",
        ]
    )


def choices(name: str, legend: str, options: Iterable[tuple[str, str]], chosen: str) -> str:
    """Radio buttons. options: value and words (HTML)."""
    buttons = "".join(
        f'<label><input type="radio" name="{name}" value="{value}" autocomplete="off" disabled'
        f"{' checked' if value == chosen else ''}><span>{words}</span></label>"
        for value, words in options
    )
    return f'<fieldset class="by-hand-choices"><legend>{legend}</legend>{buttons}</fieldset>'


HINT = '<span class="by-hand-hint">Mouse, finger, or Tab and arrow keys; Shift for larger steps.</span>'


def place(vector: Vector) -> tuple[float, float]:
    """Where a vector's tip is in the SVG."""
    return HALF + UNIT * vector[0], HALF - UNIT * vector[1]


def label_place(vector: Vector) -> tuple[float, float]:
    """Where its letter is: beyond the tip."""
    length = math.hypot(*vector)
    x, y = (vector[0] / length, vector[1] / length) if length > 1e-9 else (0.0, 1.0)
    tip = place(vector)
    return tip[0] + LABEL * x, tip[1] - LABEL * y


def number(value: float) -> str:
    """For an attribute of SVG."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def svg_letter(name: str, x: float, y: float, changes: bool = False) -> str:
    """A letter with its index, centred. changes: the index does."""
    called = ' data-is="i"' if changes else ""
    index = f'<tspan class="by-hand-index" dy="4"{called}>{name[1:]}</tspan>' if name[1:] else ""
    return f'<text x="{number(x)}" y="{number(y)}">{name[0]}{index}</text>'


def vector_group(plane_name: str, name: str, role: str, kind: str, vector: Vector, looks: bool = False) -> str:
    """An arrow from the origin, its letter, and a handle to move it by.

    role: "query", for those who hear the page. kind: a colour's name. looks: it is the one whose output is shown.
    """
    x, y = map(number, place(vector))
    return (
        f'<g class="by-hand-vector by-hand-{kind}{" is-looking" if looks else ""}" data-vector="{name}" '
        f'data-handle="{name}" data-words="{role} {name}">'
        f'<line x1="{HALF}" y1="{HALF}" x2="{x}" y2="{y}" marker-end="url(#{plane_name}-{kind})"/>'
        f'<circle class="by-hand-tip" cx="{x}" cy="{y}" r="4.5"/>{svg_letter(name, *label_place(vector))}'
        f'<circle class="by-hand-grip" cx="{x}" cy="{y}" r="24"/></g>'
    )


def output_group(name: str, vector: Vector, called: str = "") -> str:
    """An output: a square that no hand moves, and the ghost of where it was. called: for the script, if not `name`."""
    x, y = place(vector)
    corner = f'x="{number(x - 6)}" y="{number(y - 6)}" width="12" height="12"'
    return (
        f'<g class="by-hand-output" data-output="{called or name}"><rect class="by-hand-ghost" {corner}/>'
        f'<line class="by-hand-trail" x1="{number(x)}" y1="{number(y)}" x2="{number(x)}" y2="{number(y)}"/>'
        f'<rect class="by-hand-square" {corner}/>{svg_letter(name, x, y + LABEL, bool(called))}</g>'
    )


def marker(player_name: str, kind: str) -> str:
    """The head of an arrow."""
    return (
        f'<marker id="{player_name}-{kind}" class="by-hand-{kind}" viewBox="0 0 10 10" refX="9" refY="5" '
        'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z"/></marker>'
    )


def plane(name: str, words: str, inside: str, kinds: Sequence[str], below: str = "", axes: Sequence[str] = ()) -> str:
    """A plane with a grid. below: what lies under the grid. axes: what the two directions mean."""
    edge, far = HALF - UNIT * REACH, HALF + UNIT * REACH
    lines = "".join(
        f'<path d="M{edge} {HALF + UNIT * step}H{far}M{HALF + UNIT * step} {edge}V{far}"'
        f"{' class=by-hand-axis' if step == 0 else ''}/>"
        for step in (*range(-REACH, 0), *range(1, REACH + 1), 0)
    ).replace("class=by-hand-axis", 'class="by-hand-axis"')
    ticks = "".join(
        f'<text x="{HALF + UNIT * step}" y="{HALF + 14}">{fixed(step, 0)}</text>'
        f'<text x="{HALF - 10}" y="{HALF - UNIT * step}">{fixed(step, 0)}</text>'
        for step in (-2, 2)
    )
    names = ""
    if axes:
        names = (
            f'<text x="{far}" y="{HALF - 12}" class="by-hand-end">{axes[0]}</text>'
            f'<text x="{HALF + 8}" y="{edge + 8}" class="by-hand-start">{axes[1]}</text>'
        )
    heads = "".join(marker(name, kind) for kind in kinds)
    return (
        f'<svg class="by-hand-plane" viewBox="0 0 {2 * HALF} {2 * HALF}" width="{2 * HALF}" height="{2 * HALF}" '
        f'data-unit="{UNIT}" data-reach="{REACH}" role="img" aria-label="{escape(words, quote=True)}">'
        f"<defs>{heads}</defs>{below}"
        f'<g class="by-hand-grid">{lines}</g><g class="by-hand-ticks">{ticks}{names}</g>{inside}</svg>'
    )


def bar(share: float) -> str:
    """A weight as a bar."""
    return f'<span class="by-hand-bar"><span style="width:{100 * share:.2f}%"></span></span>'


def score_table(caption: str, score: str, rows: Iterable[tuple[str, float, float]]) -> str:
    """A row a key: its letter, its score, and its weight as a bar and a number."""
    lines = "".join(
        f'<tr data-row="{name}"><th scope="row">{letter(name)}</th><td data-is="score">{fixed(s)}</td>'
        f'<td class="by-hand-bars">{bar(w)}</td><td data-is="weight">{fixed(w)}</td></tr>'
        for name, s, w in rows
    )
    return (
        f'<table class="by-hand-table"><caption>{caption}</caption><thead><tr><td></td>'
        f'<th scope="col" data-is="score-name">{score}</th><th scope="col" colspan="2">weight</th></tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )


def coordinates(vector: Vector) -> str:
    """(1.20, −0.50)"""
    return f"({', '.join(fixed(part) for part in vector)})"


# --- the players -----------------------------------------------------------------------------------------------------


def dot_product() -> str:
    """Lesson 1: two vectors, and the sign of their product."""
    name, u, f = "dot-product", [2.0, -1.0], [1.0, 2.0]
    features = ("romance", "action")
    products = [a * b for a, b in zip(u, f, strict=True)]
    lines = "".join(
        f'<tr data-row="{feature}"><th scope="row">{feature}</th><td data-is="u">{fixed(a, 1)}</td>'
        f'<td data-is="f">{fixed(b, 1)}</td><td data-is="product">{fixed(p)}</td></tr>'
        for feature, a, b, p in zip(features, u, f, products, strict=True)
    )
    table = (
        '<table class="by-hand-table"><caption>feature by feature</caption><thead><tr><td></td>'
        f'<th scope="col">{letter("u")}</th><th scope="col">{letter("f")}</th><th scope="col">product</th></tr></thead>'
        f'<tbody>{lines}</tbody><tfoot><tr><th scope="row">match <i>u</i> · <i>f</i></th><td></td><td></td>'
        f'<td data-is="match">{fixed(sum(products))}</td></tr></tfoot></table>'
    )
    edge, side = HALF - UNIT * REACH, 2 * UNIT * REACH
    across = half_plane(u)
    below = (
        f'<clipPath id="{name}-frame"><rect x="{edge}" y="{edge}" width="{side}" height="{side}"/></clipPath>'
        f'<g clip-path="url(#{name}-frame)"><path class="by-hand-against" d="M{edge} {edge}h{side}v{side}h-{side}z"/>'
        f'<path class="by-hand-for" d="{across[0]}"/><path class="by-hand-border" d="{across[1]}"/></g>'
    )
    words = (
        f"A plane with romance to the right and action upwards. The viewer u is at {coordinates(u)}, the film f at "
        f"{coordinates(f)}. A dashed line through the origin stands at a right angle to u; f lies on it, and the dot "
        f"product is {fixed(sum(products))}."
    )
    inside = vector_group(name, "u", "viewer", "blue", u) + vector_group(name, "f", "film", "orange", f)
    return player(
        name,
        "A match, by hand",
        "Drag the film <i>f</i> across the dashed line, then make it longer.",
        "The match is 0 on the line, positive on the side of the viewer <i>u</i>, negative on the other, and a film "
        "twice as long counts twice.",
        plane(name, words, inside, ("blue", "orange"), below, features) + f'<div class="by-hand-side">{table}</div>',
        HINT,
        {"vectors": {"u": u, "f": f}},
    )


def half_plane(u: Vector) -> tuple[str, str]:
    """The side on which products with u are positive, larger than the plane, and its border: two paths."""
    length = math.hypot(*u) or 1.0
    along, out = (-u[1] / length, u[0] / length), (u[0] / length, u[1] / length)
    far = 6.0
    ends = [[sign * far * along[k] for k in (0, 1)] for sign in (1, -1)]
    corners = [*ends, *([end[k] + far * out[k] for k in (0, 1)] for end in reversed(ends))]
    side, border = (
        "M" + "L".join(" ".join(map(number, place(corner))) for corner in those) for those in (corners, ends)
    )
    return f"{side}z", border


def hull(points: Sequence[Vector]) -> list[Vector]:
    """The corners of the convex hull, in order (Andrew's monotone chain)."""
    ordered = sorted(map(tuple, points))

    def chain(those: Iterable[Vector]) -> list[Vector]:
        kept: list[Vector] = []
        for x, y in those:
            while len(kept) > 1:
                (a, b), (c, d) = kept[-2:]
                if (c - a) * (y - b) - (d - b) * (x - a) > 0:
                    break
                kept.pop()
            kept.append((x, y))
        return kept[:-1]

    return chain(ordered) + chain(reversed(ordered))


def average() -> str:
    """Lesson 1: self-attention of four vectors in the plane, one output at a time."""
    name, i = "average", 2
    x = {"x0": [2.0, 0.0], "x1": [0.0, 1.0], "x2": [1.0, 1.0], "x3": [-1.0, 1.0]}  # as in the lesson's diagram
    vectors = list(x.values())
    scores, weights, y = attention(vectors[i], vectors, vectors)
    corners = " ".join(",".join(map(number, place(corner))) for corner in hull(vectors))
    inside = f'<polygon class="by-hand-hull" points="{corners}"/>'
    inside += "".join(
        vector_group(name, key, "input", "blue", vector, looks=key == f"x{i}") for key, vector in x.items()
    )
    inside += output_group(f"y{i}", y, called="y")
    words = (
        "A plane with four vectors, "
        + ", ".join(f"{key} at {coordinates(vector)}" for key, vector in x.items())
        + f". The output y{i} at {coordinates(y)} lies inside their convex hull."
    )
    index = f'<sub data-is="i">{i}</sub>'
    table = score_table(
        f"what makes <i>y</i>{index}",
        f"<i>x</i>{index} · <i>x</i><sub><i>j</i></sub>",
        zip(x, scores, weights, strict=True),
    )
    place_of = f'<p class="by-hand-result" data-is="output"><i>y</i>{index} = <span>{coordinates(y)}</span></p>'
    return player(
        name,
        "A weighted average, by hand",
        "Drag any of the four inputs; they begin where the diagram of this section has them.",
        "The output stays inside the shaded hull, and long vectors that point the way of the one that looks pull it "
        "to their side.",
        plane(name, words, inside, ("blue",)) + f'<div class="by-hand-side">{table}{place_of}</div>',
        choices(f"{name}-i", "Output", [(str(k), letter(f"y{k}")) for k in range(4)], str(i)) + HINT,
        {"vectors": x, "i": i},
    )


def lookup() -> str:
    """Lesson 2: a query among keys, and the values that come back."""
    name = "lookup"
    query = [1.0, 1.2]
    keys = {"k0": [2.0, 0.5], "k1": [-0.5, 1.8], "k2": [-1.5, -1.2]}
    values = {"v0": [2.0, 2.0], "v1": [-2.0, 1.0], "v2": [0.5, -2.0]}
    scores, weights, y = attention(query, list(keys.values()), list(values.values()))
    left = "".join(vector_group(name, key, "key", "orange", vector) for key, vector in keys.items())
    left += vector_group(name, "q", "query", "blue", query)
    right = "".join(vector_group(f"{name}-values", key, "value", "green", vector) for key, vector in values.items())
    right += output_group("y", y)
    words = (
        f"A plane with the query q at {coordinates(query)} and three keys: "
        + ", ".join(f"{key} at {coordinates(vector)}" for key, vector in keys.items())
        + "."
    )
    answer = (
        "A second plane with three values: "
        + ", ".join(f"{key} at {coordinates(vector)}" for key, vector in values.items())
        + f". The output y at {coordinates(y)} is their weighted average."
    )
    table = score_table("the lookup", "<i>q</i> · <i>k</i><sub><i>j</i></sub>", zip(keys, scores, weights, strict=True))
    result = f'<p class="by-hand-result" data-is="output"><i>y</i> = <span>{coordinates(y)}</span></p>'
    return player(
        name,
        "A soft lookup, by hand",
        "Drag the query towards a key: its weight grows, and the output, on the plane of the values, moves to the "
        "value of that key.",
        "Then drag a value: the output follows, and no weight changes.",
        f'<div class="by-hand-panel"><p>query and keys</p>{plane(name, words, left, ("blue", "orange"))}</div>'
        f'<div class="by-hand-panel"><p>values and output</p>{plane(f"{name}-values", answer, right, ("green",))}</div>'
        f'<div class="by-hand-side">{table}{result}</div>',
        HINT,
        {"vectors": {"q": query, **keys, **values}},
    )


def drawn_scores(seed: int) -> list[list[float]]:
    """Scores of one query with eight keys, for each of WIDTHS: the first d of 1,024 standard normal components."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(WIDTHS[-1], generator=generator)
    keys = torch.randn(KEYS, WIDTHS[-1], generator=generator)
    return [[round(score, 4) for score in (keys[:, :d] @ query[:d]).tolist()] for d in WIDTHS]


def scaling() -> str:
    """Lesson 3: how the width saturates the softmax, and what the division does about it."""
    name, at = "scaling", WIDTHS.index(64)
    draws = [drawn_scores(seed) for seed in range(DRAWS)]
    scores, d = draws[0][at], WIDTHS[at]
    weights = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0).tolist()
    size = math.sqrt(sum(score**2 for score in scores) / KEYS)
    lines = "".join(
        f'<tr data-row="{j}"><th scope="row">{letter(f"k{j}")}</th><td data-is="score">{fixed(s, 1)}</td>'
        f'<td class="by-hand-bars">{signed_bar(s)}</td><td data-is="input">{fixed(s)}</td>'
        f'<td class="by-hand-bars">{bar(w)}</td><td data-is="weight">{fixed(w)}</td></tr>'
        for j, (s, w) in enumerate(zip(scores, weights, strict=True))
    )
    table = (
        '<table class="by-hand-table by-hand-wide"><caption class="by-hand-hidden">Scores and weights of one query '
        'over eight keys</caption><thead><tr><td></td><th scope="col" colspan="2"><i>q</i> · <i>k</i></th>'
        '<th scope="col">into softmax</th><th scope="col" colspan="2">weight</th></tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )
    facts = (
        f'<p class="by-hand-result">√<i>d</i> = <b data-is="root">{fixed(math.sqrt(d), 1)}</b>, root mean square of '
        f'the eight scores <b data-is="size">{fixed(size, 1)}</b>, largest weight '
        f'<b data-is="largest">{fixed(max(weights))}</b></p>'
    )
    controls = (
        f'<label class="by-hand-slider"><span>width <i>d</i> = <output data-is="d">{d}</output></span>'
        f'<input type="range" min="0" max="{len(WIDTHS) - 1}" value="{at}" aria-valuetext="d = {d}" '
        'autocomplete="off" disabled></label>'
        '<label class="by-hand-switch"><input type="checkbox" autocomplete="off" disabled>'
        "<span>divide by √<i>d</i></span></label>"
        f'<button type="button" class="by-hand-draw" disabled>Another draw</button>'
        f'<span class="by-hand-hint">draw <b data-is="draw">1</b> of {DRAWS}</span>'
    )
    return player(
        name,
        "The width and the softmax",
        "Move <i>d</i> to the right: the scores of random vectors spread like √<i>d</i>, and one key, picked by "
        "chance, takes nearly all the weight.",
        "Switch the division on: at every width several keys share it again.",
        f'<div class="by-hand-side by-hand-whole">{table}{facts}</div>',
        controls,
        {"widths": WIDTHS, "draws": draws, "at": at, "full": FULL},
    )


FULL = 80  # the score that fills half of a signed bar


def signed_bar(score: float) -> str:
    """A score as a bar to the left or to the right of a middle line."""
    long = min(50.0, 50 * abs(score) / FULL)
    start = 50 - long if score < 0 else 50
    return f'<span class="by-hand-bar by-hand-signed"><span style="left:{start:.2f}%;width:{long:.2f}%"></span></span>'


def mask() -> str:
    """Lesson 5: a causal mask, before the softmax, after it, or none."""
    name = "mask"
    x = {"x0": [1.0, -0.5], "x1": [-1.0, 0.3], "x2": [0.2, 1.1], "x3": [1.4, 1.2]}
    vectors = torch.tensor(list(x.values()), dtype=torch.float64)
    weights = torch.softmax(vectors @ vectors.T, dim=1)
    outputs = (weights @ vectors).tolist()
    inside = "".join(vector_group(name, key, "input", "blue", vector) for key, vector in x.items())
    inside += "".join(output_group(f"y{i}", y) for i, y in enumerate(outputs))
    words = (
        "A plane with four vectors, "
        + ", ".join(f"{key} at {coordinates(vector)}" for key, vector in x.items())
        + ", and their outputs without a mask, "
        + ", ".join(f"y{i} at {coordinates(y)}" for i, y in enumerate(outputs))
        + "."
    )
    head = "".join(f'<th scope="col">{letter(key)}</th>' for key in x)
    lines = "".join(
        f'<tr data-row="{i}"><th scope="row">{letter(f"y{i}")}</th>'
        + "".join(
            f'<td data-is="{j}" style="--share:{weight:.3f}">{fixed(weight)}</td>' for j, weight in enumerate(row)
        )
        + f'<td data-is="sum">{fixed(sum(row))}</td></tr>'
        for i, row in enumerate(weights.tolist())
    )
    table = (
        '<table class="by-hand-table by-hand-matrix"><caption>weights</caption><thead><tr><td></td>'
        f'{head}<th scope="col">sum</th></tr></thead><tbody>{lines}</tbody></table>'
    )
    moved = '<p class="by-hand-result">moved by this hand: <b data-is="moved">nothing yet</b></p>'
    options = (("none", "none"), ("after", "after the softmax"), ("before", "before the softmax"))
    return player(
        name,
        "What comes later, by hand",
        "Drag <i>x</i><sub>3</sub>, the last input, with each of the three masks.",
        "Masked before the softmax, no earlier output moves; masked after it the upper triangle is just as empty, and "
        "the earlier outputs move all the same.",
        plane(name, words, inside, ("blue",)) + f'<div class="by-hand-side">{table}{moved}</div>',
        choices(f"{name}-kind", "Mask", options, "none") + HINT,
        {"vectors": x},
    )


ROW = 40  # pixels of a word's row in the translator


def translator() -> str:
    """Lesson 10: which English words the model looks at as it writes each German one."""
    name = "translator"
    data = cross_attention(ROOT / "solutions/10_encoder_decoder/10_encoder_decoder.ipynb")
    english, written = data["english"], data["written"]
    chosen = written.index("sieben")
    row = data["mean"][chosen]
    asked = "".join(
        f'<button type="button" data-word="{i}" aria-pressed="{str(i == chosen).lower()}" disabled>'
        f"{escape(word)}</button>"
        for i, word in enumerate(written)
    )
    looked_at = "".join(
        f'<span data-word="{j}" style="--share:{w:.3f}"><b>{escape(word)}</b><span>{percent(w)}</span></span>'
        for j, (word, w) in enumerate(zip(english, row, strict=True))
    )
    links = "".join(
        f'<line x1="0" y1="{ROW * (chosen + 0.5):g}" x2="100" y2="{ROW * (j + 0.5):g}" style="--share:{w:.3f}"/>'
        for j, w in enumerate(row)
    )
    words = (
        f"As it writes {written[chosen]}, the model looks at "
        + ", ".join(f"{word} with {percent(w)}" for word, w in zip(english, row, strict=True))
        + "."
    )
    rows = max(len(english), len(written))
    stage = (
        f'<div class="by-hand-words" style="--rows:{rows}">'
        f'<p>writes</p><p></p><p>looks at</p><div class="by-hand-asked" role="group" aria-label="The German words">'
        f'{asked}</div><svg viewBox="0 0 100 {ROW * rows}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(words, quote=True)}">{links}</svg><div class="by-hand-looked">{looked_at}</div></div>'
    )
    heads = [("mean", "mean"), *((str(k), str(k)) for k in range(len(data["heads"])))]
    controls = choices(f"{name}-head", "Head", heads, "mean") + (
        '<span class="by-hand-hint">Mouse, finger, or Tab and the arrow keys.</span>'
    )
    return player(
        name,
        "Where the translator looks",
        "Point at a German word, or tap it: lines lead to the English words that the last cross-attention looks at "
        "when it writes that word.",
        "Units and tens cross, since German says the units first; <i>und</i> and <code>&lt;stop&gt;</code> have no "
        "word of their own, and there the heads differ.",
        stage,
        controls,
        {**data, "chosen": chosen, "row": ROW},
    )


def percent(share: float) -> str:
    """0.934 as 93 %, with a space that does not break."""
    return f"{fixed(100 * share, 0)}\u00a0%"


PICTURES: dict[str, Callable[[], str]] = {
    "dot-product": dot_product,
    "average": average,
    "lookup": lookup,
    "scaling": scaling,
    "mask": mask,
    "translator": translator,
}
