"""Figures as SVG whose ink, paper and grid follow the theme of the page that they stand in.

matplotlib writes colours as they are; here those that belong to the course's style become CSS variables, with what
matplotlib wrote as the fallback: alone, in JupyterLab or on GitHub, a figure is as light as it was drawn. The numbers
in a heat map's cells keep their black or white (IN_CELLS), as the cells keep their colours.
"""

from __future__ import annotations

import io
import re

import matplotlib
from matplotlib.figure import Figure

from helpers.theme import DIAGRAMS, FIGURES

LARGEST = 120_000  # bytes; a figure that would have more is stored as a picture of dots alone
PIXELS = 112  # to an inch, on a screen with room
IN_CELLS = {"black": "#010101", "white": "#fefefe"}  # letters on a coloured cell: no theme changes them

# colour in the figure: name of the variable, as `theme.DIAGRAMS` has them
_NAMES = {
    **{light: name for name, (light, _) in DIAGRAMS.items() if name.endswith("-line")},
    "#ffffff": "paper",
    "#000000": "ink",
    "#222222": "ink",
    "#333333": "ink",
    "#444444": "soft",
    "#555555": "soft",
    "#666666": "line",
    "#777777": "line",
    "#888888": "line",
    "#dddddd": "grid",
    "#c8c8c8": "hatch",
    "#e8f1f8": "blue",
    FIGURES["blue"].lower(): "curve",
}
_COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
_NUMBERS = re.compile(r'( d="|translate\(|(?:\bx|\by|width|height)=")([^")]*)')
_LONG = re.compile(r"-?\d+\.\d{3,}(?:e-\d+)?")


def svg(figure: Figure) -> str | None:
    """The figure as SVG for a notebook, the same text each time; None if it would be larger than LARGEST."""
    whole = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.image_inline": True}):
        figure.savefig(whole, format="svg", bbox_inches=None, metadata={"Date": None, "Creator": None})
    text = _small(whole.getvalue())
    text = re.sub(r' (fill|stroke)="(#[0-9a-f]{6})"', r' style="\1: \2"', text)  # the ground of a hatch
    text = _COLOUR.sub(_themed, text)
    wide, high = (round(PIXELS * inches) for inches in figure.get_size_inches())
    box = " ".join(f"{72 * inches:g}" for inches in (0, 0, *figure.get_size_inches()))
    text = re.sub(
        r"<svg[^>]*>",
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" class="drawn" '
        f'width="{wide}" height="{high}" viewBox="{box}" style="max-width:100%;height:auto;stroke-linejoin:round;'
        'stroke-linecap:butt;fill:#000;fill:var(--drawn-ink,#000)">',
        text,
        count=1,
    )
    return text if len(text) <= LARGEST else None


def _themed(match: re.Match[str]) -> str:
    what, colour = match.groups()
    name = _NAMES.get(colour)
    return f"{what}:var(--drawn-{name},{colour})" if name else f"{what}:{colour}"


def _small(text: str) -> str:
    """Without what readers do not see: declarations, comments, ids that nothing points to, the seventh digit.

    The style sheet goes too: in a page it would hold for everything on it.
    """
    text = text[text.index("<svg") :]
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
    kept = {one for pair in used for one in pair if one}
    text = re.sub(r' id="([^"]+)"', lambda match: match[0] if match[1] in kept else "", text)
    text = re.sub(r">\s+<", "><", text)
    text = re.sub(r"\s*\n\s*", " ", text)
    return _NUMBERS.sub(lambda match: match[1] + _LONG.sub(_rounded, match[2]), text).strip()


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".") or "0"
