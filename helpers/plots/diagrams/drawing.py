"""The vocabulary of the diagrams: a sheet on which tensors, operations, arrows and grids are put.

A sheet is 360 units wide, as wide as a column on a phone, so that a letter of 12 units is 12 pixels there. Colours are
CSS variables with the light theme's values as fallbacks: the site, which puts the SVG into its page, sets them by its
theme; everywhere else a sheet brings a light card of its own, which can be read on a dark page too. Nothing in a sheet
is random, dated or loaded from elsewhere.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from helpers.theme import DIAGRAMS

WIDTH = 360  # units
ENLARGED = 1.3  # on a screen with room for it
SMALLEST = 12  # letters, in units
SMALL, NORMAL, LARGE = 12, 13, 16

Points = Sequence[tuple[float, float]]

FAMILY = "Helvetica,Arial,'Liberation Sans',sans-serif"
LETTERS = "'STIX Two Text','Times New Roman','Liberation Serif',Georgia,serif"  # for x, q, W: as in a formula

_MARKS = re.compile(r"(\*[^*]+\*|_\{[^}]*\}|\^\{[^}]*\})")


def _style() -> str:
    """The style sheet of a sheet: each colour twice, for readers of SVG that know no variables."""

    def paint(what, name):
        light = DIAGRAMS[name][0]
        return f"{what}:{light};{what}:var(--drawn-{name},{light})"

    rules = [
        f".drawn text{{font-family:{FAMILY};{paint('fill', 'ink')}}}",
        f".drawn .d-soft{{{paint('fill', 'soft')}}}",
        f".drawn .d-letter{{font-family:{LETTERS};font-style:italic}}",
        f".drawn .d-card{{{paint('fill', 'paper')}}}",
        f".drawn .d-arrow{{fill:none;stroke-width:1.4;{paint('stroke', 'line')}}}",
        f".drawn .d-tie{{fill:none;stroke-width:1.8;stroke-dasharray:5 3;{paint('stroke', 'line')}}}",
        f".drawn .d-head{{{paint('fill', 'line')}}}",
        f".drawn .d-residual{{fill:none;stroke-width:3.2;{paint('stroke', 'red-line')}}}",
        f".drawn .d-residual-head{{{paint('fill', 'red-line')}}}",
        f".drawn .d-plain{{{paint('fill', 'plain')};{paint('stroke', 'line')}}}",
        f".drawn .d-empty{{{paint('fill', 'paper')};{paint('stroke', 'line')}}}",
        f".drawn .d-frame{{fill:none;stroke-dasharray:4 3;{paint('stroke', 'line')}}}",
    ]
    for name in ("blue", "orange", "green", "purple", "red", "violet", "olive", "brown"):
        rules.append(f".drawn .d-{name}{{{paint('fill', name)};{paint('stroke', f'{name}-line')}}}")
    return "".join(rules)


@functools.cache
def _words() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Sheet:
    """A diagram while it is drawn, and what a notebook shows of it."""

    def __init__(self, name: str, title: str, words: str, height: float):
        """name: a word for ids, different for each diagram. title, words: the alternative text, short and in full."""
        self.name, self.title, self.words, self.height = name, title, words, height
        self._below: list[str] = []  # lines, under everything else
        self._above: list[str] = []
        self._feet: dict[float, float] = {}  # x: the lower edge of the last element there

    @classmethod
    def named(cls, name: str, height: float, **worked_out: object) -> Sheet:
        """A sheet with its alternative text of words.toml, in which values that are worked out have their places."""
        told = _words()[name]
        return cls(name, told["title"], " ".join(told["words"].split()).format(**worked_out), height)

    # --- the vocabulary ---

    def text(
        self, x: float, y: float, words: str, size: float = NORMAL, anchor: str = "middle", soft: bool = False
    ) -> None:
        """Words whose middle line is y. *x* is set like a letter in a formula, _{i} below the line, ^{i} above it."""
        runs, back = [], 0.0
        for run in filter(None, _MARKS.split(words)):
            kind, inner = run[0], run
            low = 0.0
            attributes = ""
            if kind == "*" and len(run) > 2:
                inner = run[1:-1]
                attributes = f' class="d-letter" font-size="{_number(size * 1.14)}"'
            elif kind in "_^" and run[1:2] == "{":
                inner, low = run[2:-1], size * (0.24 if kind == "_" else -0.32)
                letter = ' class="d-letter"' if inner.isalpha() else ""
                attributes = f'{letter} font-size="{_number(max(SMALLEST, size * 0.8))}"'
            shift = low - back
            back = low
            attributes += f' dy="{_number(shift)}"' if shift else ""
            runs.append(f"<tspan{attributes}>{escape(inner)}</tspan>" if attributes else escape(inner))
        kind = ' class="d-soft"' if soft else ""
        self._above.append(
            f'<text x="{_number(x)}" y="{_number(y + 0.35 * size)}" font-size="{_number(size)}" '
            f'text-anchor="{anchor}" xml:space="preserve"{kind}>{"".join(runs)}</text>'
        )

    def note(self, x: float, y: float, *lines: str, anchor: str = "middle", step: float = 16) -> None:
        """Small soft words in lines below each other, the first of which has its middle at y."""
        for k, words in enumerate(lines):
            self.text(x, y + k * step, words, SMALL, anchor, soft=True)

    def box(
        self,
        x: float,
        y: float,
        wide: float,
        high: float,
        kind: str = "plain",
        round: float = 4,
        words: str = "",
        size: float = NORMAL,
    ) -> None:
        """A rectangle around the point (x, y), with words in its middle."""
        self._above.append(
            f'<rect class="d-{kind}" x="{_number(x - wide / 2)}" y="{_number(y - high / 2)}" '
            f'width="{_number(wide)}" height="{_number(high)}" rx="{_number(round)}"/>'
        )
        if words:
            self.text(x, y, words, size)

    def frame(self, x: float, y: float, wide: float, high: float, kind: str = "frame") -> None:
        """A border around several things; it lies under them."""
        self._below.append(
            f'<rect class="d-{kind}" x="{_number(x - wide / 2)}" y="{_number(y - high / 2)}" '
            f'width="{_number(wide)}" height="{_number(high)}" rx="8"/>'
        )

    def _enter(self, x: float, y: float, high: float, words: str | None) -> None:
        """With words, be they empty, an arrow from the element above at the same x to one around (x, y)."""
        if words is not None:
            self.arrow((x, self._feet[x]), (x, y - high / 2), words=words)
        self._feet[x] = y + high / 2

    def tensor(
        self,
        x: float,
        y: float,
        name: str,
        shape: str = "",
        kind: str = "blue",
        wide: float = 110,
        high: float = 30,
        arrow: str | None = None,
    ) -> None:
        """A tensor: its name, and its shape beside it. arrow: words beside an arrow from the element above it."""
        self._enter(x, y, high, arrow)
        self.box(x, y, wide, high, kind, words=f"{name}  {shape}" if shape else name)

    def operation(
        self,
        x: float,
        y: float,
        words: str,
        wide: float = 110,
        high: float = 26,
        kind: str = "plain",
        arrow: str | None = None,
    ) -> None:
        """Something that is done to tensors: a box with round ends. arrow: as `tensor` has it."""
        self._enter(x, y, high, arrow)
        self.box(x, y, wide, high, kind, round=high / 2, words=words)

    def plus(self, x: float, y: float, arrow: str | None = None) -> None:
        """Where two tensors are added. arrow: as `tensor` has it."""
        self._enter(x, y, 18, arrow)
        self._above.append(f'<circle class="d-empty" cx="{_number(x)}" cy="{_number(y)}" r="9"/>')
        self._above.append(f'<path class="d-arrow" d="M{_number(x - 5)} {_number(y)}h10m-5 -5v10"/>')

    def matrix(
        self,
        x: float,
        y: float,
        wide: float,
        high: float,
        name: str,
        rows: str = "",
        columns: str = "",
        kind: str = "blue",
    ) -> None:
        """A matrix as a rectangle with its name in it, the number of rows at its left and of columns above it.

        The columns stand a little to the right of the middle, where an arrow may come in.
        """
        self.box(x, y, wide, high, kind, round=1, words=name, size=LARGE if len(name) < 9 else NORMAL)
        if rows:
            self.text(x - wide / 2 - 5, y, rows, SMALL, "end", soft=True)
        if columns:
            self.text(x + 15, y - high / 2 - 9, columns, SMALL, soft=True)

    def cells(
        self,
        x: float,
        y: float,
        rows: Sequence[Sequence[str]],
        kinds: Sequence[Sequence[str]],
        wide: float = 30,
        high: float = 22,
    ) -> None:
        """A grid of cells whose upper left corner is (x, y): for masks, weights, tokens. One kind a cell."""
        for i, (row, kind_row) in enumerate(zip(rows, kinds, strict=True)):
            for j, (words, kind) in enumerate(zip(row, kind_row, strict=True)):
                place = x + (j + 0.5) * wide, y + (i + 0.5) * high
                self.box(*place, wide, high, kind, round=0, words=words, size=SMALL)

    def arrow(self, *points: tuple[float, float], words: str = "", side: str = "right") -> None:
        """A line through the points with a head at the last; words, such as a shape, beside its middle."""
        self._line("arrow", "head", points, 4)
        if words:
            (ax, ay), (bx, by) = points[0], points[-1]
            aside, anchor = (-8, "end") if side == "left" else (8, "start")
            self.text((ax + bx) / 2 + aside, (ay + by) / 2, words, SMALL, anchor, soft=True)

    def line(self, *points: tuple[float, float]) -> None:
        """A line without a head, for what joins another line."""
        self._below.append(f'<path class="d-arrow" d="{_path(points)}"/>')

    def residual(self, *points: tuple[float, float], head: bool = True) -> None:
        """The residual connection: a thick line."""
        if head:
            self._line("residual", "residual-head", points, 6)
        else:
            self._below.append(f'<path class="d-residual" d="{_path(points)}"/>')

    def tie(self, *points: tuple[float, float]) -> None:
        """A broken line with a head: the same parameters, used again."""
        self._line("tie", "head", points, 4)

    def _line(self, line: str, head: str, points: Points, half: float) -> None:
        (ax, ay), (bx, by) = points[-2], points[-1]
        length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5
        dx, dy = (bx - ax) / length, (by - ay) / length
        foot = (bx - dx * 1.8 * half, by - dy * 1.8 * half)
        corners = [(bx, by), (foot[0] - dy * half, foot[1] + dx * half), (foot[0] + dy * half, foot[1] - dx * half)]
        self._below.append(f'<path class="d-{line}" d="{_path([*points[:-1], foot])}"/>')
        self._below.append(f'<path class="d-{head}" d="{_path(corners)}z"/>')

    # --- what is shown ---

    def svg(self) -> str:
        """The diagram as SVG, the same text each time."""
        wide, high = WIDTH * ENLARGED, self.height * ENLARGED
        ids = f"drawn-{self.name}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" role="img" '
            f'aria-labelledby="{ids}-title {ids}-words" viewBox="0 0 {WIDTH} {_number(self.height)}" '
            f'width="{_number(wide)}" height="{_number(high)}" style="max-width:100%;height:auto">'
            f'<title id="{ids}-title">{escape(self.title)}</title><desc id="{ids}-words">{escape(self.words)}</desc>'
            f"<style>{_style()}</style>"
            f'<rect class="d-card" width="{WIDTH}" height="{_number(self.height)}" rx="8"/>'
            f"{''.join(self._below)}{''.join(self._above)}</svg>"
        )

    def __repr__(self) -> str:
        return f"Diagram. {self.title}. {self.words}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """A picture for notebooks and viewers of notebooks, and the same in words where there is no picture."""
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}


def _path(points: Points) -> str:
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
