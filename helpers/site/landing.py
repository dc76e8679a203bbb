"""What stands on the site's first page and is made when the site is built: a picture, a check's panel, a map.

Each comes from the course itself: the picture shows what the heads of its own GPT-2 look at, the panel is the check's
answer to a real mistake, the map follows from what each lesson says it needs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from html import escape

import torch
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers.checking.check import Check
from helpers.checking.panel import as_html
from helpers.data.datasets import gpt2_files
from helpers.exercises import load_lesson
from helpers.parts import gpt2
from helpers.parts.bpe import Tokenizer
from helpers.site.catalogue import Entry, builds_on, levels

# --- the picture -----------------------------------------------------------------------------------------------------

TEXT = "\n\n".join(["def attend(query, keys, values):\n    return weights @ values"] * 2)
WIDE, HIGH, BELOW = 720, 330, 96  # units; BELOW: for the words
LEAST = 0.14  # of a weight that is drawn
BUNDLES = ("blue", "orange", "green", "purple", "red")  # a colour for a layer, in turn


@functools.cache
def cover() -> str:
    """An SVG: each arc joins a token to an earlier one that a head of the pocket GPT-2 takes from."""
    folder = gpt2_files("gpt2", places="embedded", say=lambda line: None).folder
    tokenizer, model = Tokenizer.from_folder(folder), gpt2.load(folder, "cpu")
    ids = tokenizer.encode(TEXT)
    weights = model.attention_weights(torch.tensor([ids]))[:, 0]  # (depth, h, t, t)
    words = [tokenizer.decode([token]) for token in ids]
    return arcs(weights, words)


def arcs(weights: torch.Tensor, words: Sequence[str]) -> str:
    """The picture as SVG. weights: (depth, h, t, t), of each head. words: t, to stand under the arcs.

    What a token takes from itself and from the very first, where heads look that have found nothing, is left out.
    """
    depth, t = weights.shape[0], len(words)
    step = WIDE / t
    lines = []
    for layer in range(depth):
        strongest = weights[layer].amax(dim=0)  # (t, t), over the heads
        colour = BUNDLES[layer % len(BUNDLES)]
        for i in range(1, t):
            for j in range(1, i):
                weight = strongest[i, j].item()
                if weight < LEAST:
                    continue
                begin, end = step * (j + 0.5), step * (i + 0.5)
                radius = (end - begin) / 2
                tall = min(radius, HIGH - 8)
                lines.append(
                    f'<path d="M{begin:.1f} {HIGH}A{radius:.1f} {tall:.1f} 0 0 1 {end:.1f} {HIGH}" '
                    f'style="stroke:var(--drawn-{colour}-line)" stroke-width="{0.6 + 2.6 * weight:.2f}" '
                    f'stroke-opacity="{min(1.0, 0.15 + 0.85 * weight):.2f}"/>'
                )
    names = "".join(
        f'<text transform="translate({step * (k + 0.5) - 4:.1f} {HIGH + 10}) rotate(90)">{escape(shown(word))}</text>'
        for k, word in enumerate(words)
    )
    said = (
        "Arcs between the tokens of two equal pieces of code, in a colour for each layer. Short arcs join neighbours; "
        "a bundle of long ones joins each token of the second piece to its place in the first."
    )
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH + BELOW}" width="{WIDE}" height="{HIGH + BELOW}" role="img" '
        f'aria-label="{said}"><g fill="none" stroke-linecap="round">{"".join(lines)}</g>'
        f'<g style="fill:var(--drawn-ink)" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14">'
        f"{names}</g></svg>"
    )


def shown(token: str) -> str:
    """A token as it can be printed: a line's end as an arrow, spaces around it gone."""
    return token.strip(" ") and token.replace("\n", "⏎").strip(" ") or "·"


# --- the panel -------------------------------------------------------------------------------------------------------

LESSON, EXERCISE = "01_dot_product_attention", "row_softmax"
WRITTEN = '''def row_softmax(scores):
    """scores: (b, t, t). Returns weights of the same shape; each row sums to 1."""
    powers = (scores - scores.amax(dim=1, keepdim=True)).exp()
    return powers / powers.sum(dim=1, keepdim=True)
'''


@functools.cache
def panel() -> str:
    """What the check of lesson 1 says to that code, as HTML. It is run, and judged against the shipped key."""
    namespace: dict = {}
    exec(compile(WRITTEN, "<written>", "exec"), namespace)
    verdict = Check(load_lesson(LESSON)).verdict(EXERCISE, namespace[EXERCISE], WRITTEN)
    return as_html(verdict)


def panel_shown() -> str:
    """A wrong answer and what the check says to it, as they stand under one another in a lesson."""
    code = highlight(WRITTEN, PythonLexer(), HtmlFormatter()).replace("<pre>", '<pre style="--longest:88">')
    return f'<figure class="panel-shown">{code}{panel()}</figure>'


# --- the map ---------------------------------------------------------------------------------------------------------

COLUMNS = 3
ROW, BETWEEN = 1.0, 0.24  # heights on the drawing, in rows; the style sheet has the same proportion


def the_map(entries: Sequence[Entry]) -> str:
    """All lessons as a list of links, laid out by what each builds on, with lines between them."""
    direct = builds_on(entries)
    places = layout(levels(direct), direct)
    by_number = {entry.number: entry for entry in entries}
    rows = max((row for row, _ in places.values()), default=0) + 1
    items = [f'<li class="wires" aria-hidden="true">{_wires(direct, places, rows)}</li>']
    for number, (row, column) in places.items():
        entry = by_number[number]
        before = ", ".join(map(str, direct[number]))
        told = f"{entry.minutes} min · {len(entry.cards)} exercises" if entry.minutes else ""
        words = f"<strong>{number} · {escape(entry.title)}</strong><span>{told}"
        words += f"<br>builds on {before}</span>" if before else "<br>begin here</span>"
        items.append(f'<li style="grid-row:{row + 1};grid-column:{column + 1}"><a href="{entry.page}">{words}</a></li>')
    return f'<ol class="map" aria-label="Map of the lessons" style="--rows:{rows}">{"".join(items)}</ol>'


def layout(level: dict[int, int], direct: dict[int, tuple[int, ...]]) -> dict[int, tuple[int, int]]:
    """A (row, column) for each lesson: a row for each level, more where a level has more lessons than columns."""
    places: dict[int, tuple[int, int]] = {}
    row = 0
    for at in range(max(level.values(), default=-1) + 1):
        members = sorted(number for number in level if level[number] == at)
        for first in range(0, len(members), COLUMNS):
            few = members[first : first + COLUMNS]
            columns = min(
                itertools.permutations(range(COLUMNS), len(few)),
                key=lambda columns: _cost(dict(zip(few, columns, strict=True)), row, direct, places),
            )
            places |= {number: (row, column) for number, column in zip(few, columns, strict=True)}
            row += 1
    return dict(sorted(places.items()))


def _cost(
    columns: dict[int, int], row: int, direct: dict[int, tuple[int, ...]], places: dict[int, tuple[int, int]]
) -> tuple[int, float]:
    """How badly a row stands: lines that a card would hide, then how far all lines lead to the side.

    Two that build on the same stand on both sides of it.
    """
    hidden, aside = 0, 0.0
    for number, column in columns.items():
        wires = [places[other] for other in direct[number] if other in places]
        hidden += sum(_is_hidden(*wire, row, column, places) for wire in wires)
        aside += sum(abs(column - from_column) for _, from_column in wires) if wires else abs(column - 1)
    pair = len(columns) == 2 and len({direct[number] for number in columns}) == 1
    return hidden, aside + 1.5 * (pair and set(columns.values()) != {0, COLUMNS - 1})


def _is_hidden(from_row: int, from_column: int, row: int, column: int, places: dict[int, tuple[int, int]]) -> bool:
    """Whether a straight line between two places passes behind a card of a row between them."""
    begin, end = from_row * (ROW + BETWEEN) + ROW, row * (ROW + BETWEEN)
    for between, at in places.values():
        if not from_row < between < row:
            continue
        top = between * (ROW + BETWEEN)
        sides = [from_column + (column - from_column) * (y - begin) / (end - begin) for y in (top, top + ROW)]
        if min(sides) < at + 0.5 and max(sides) > at - 0.5:
            return True
    return False


def _wires(direct: dict[int, tuple[int, ...]], places: dict[int, tuple[int, int]], rows: int) -> str:
    """The lines, on a drawing as many units wide as there are columns. They lie under the lessons."""
    high = rows * ROW + (rows - 1) * BETWEEN
    paths = []
    for number, before in direct.items():
        row, column = places[number]
        for other in before:
            if other not in places:
                continue
            from_row, from_column = places[other]
            x, y = from_column + 0.5, from_row * (ROW + BETWEEN) + ROW
            to_x, to_y = column + 0.5, row * (ROW + BETWEEN)
            bend = BETWEEN * 0.9
            paths.append(f"M{x} {y:.2f}C{x} {y + bend:.2f} {to_x} {to_y - bend:.2f} {to_x} {to_y:.2f}")
    drawn = "".join(f'<path d="{path}"/>' for path in paths)
    return f'<svg viewBox="0 0 {COLUMNS} {high:.2f}" preserveAspectRatio="none">{drawn}</svg>'
