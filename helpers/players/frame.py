"""A player in a notebook: a page of its own in a frame, and a picture for where scripts do not run.

The frame keeps its keys from JupyterLab, which would move from cell to cell by them, and its style from the notebook.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote

from helpers import theme

RULE = re.compile(r"(@[^{}]+)\{((?:[^{}]+\{[^{}]*\})*)\s*\}|([^{}@]+)\{([^{}]*)\}")
SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)
# What says nothing without its script or its style: the numbers, the controls, and the translator's columns of words
LIVE_ONLY = re.compile(
    r'<(script|noscript|button)\b.*?</\1>|<div class="by-hand-(?:controls|asked|looked)".*?</div>'
    r'|<p class="(?:opener|by-hand-said)\b.*?</p>|<p>(?:writes|looks at)?</p>|<span class="by-hand-try">.*?</span>',
    re.DOTALL,
)
PAGE = "body{margin:0;font-family:%s}.by-hand{margin:0!important}"


def frame(title: str, still: str, style: str, scripts: Iterable[str]) -> str:
    """The <iframe> with a player's page. It is without height until frame.js, the last of the scripts, gives it one."""
    code = lighter("\n".join(scripts))
    rules = style_for(style, still + code)
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{colours(rules + still)}'
        f"{PAGE % theme.LETTERS}{rules}</style><body>{still}<script>{code}</script>"
    )
    content = page.replace("&", "&amp;").replace("'", "&#39;")
    return (
        f'<iframe title="{escape(title, quote=True)}" style="border:0;display:block;height:0;width:100%" '
        f"srcdoc='{content}'></iframe>"
    )


def picture(still: str, style: str) -> str:
    """A player without script or style: its words, its tables, and its drawings as images.

    A drawing without letters of its own becomes its alternative text.
    """
    html = SVG.sub(lambda svg: _image(svg[0], style), LIVE_ONLY.sub("", still))
    return re.sub(r' (?:id|data-player|data-when|data-met|aria-labelledby)="[^"]*"', "", html)


def _image(svg: str, style: str) -> str:
    alt = "".join(re.findall(r'aria-label="([^"]*)"|<desc[^>]*>([^<]*)', svg)[0])
    if "<text" not in svg:
        return f"<p>{alt}</p>"
    wide, high = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0]
    opening, rest = svg.split(">", 1)
    opening = re.sub(r' (?:role|width|height|(?:aria|data)-[\w-]+)="[^"]*"', "", opening)
    inner = f"{opening}>" + re.sub(r' data-[\w-]+="[^"]*"|\n|<(title|desc).*?</\1>', "", rest)
    rules = style_for(style, inner, drawing=True) if "by-hand" in inner else ""
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="by-hand" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}"><style>{colours(rules + inner, dark=False)}{rules}</style>{inner}</svg>'
    )
    address = quote(whole.replace('"', "'"), safe=" <>=:/;,()'{}.!*-+@&")
    return f'<img alt="{alt}" width="{wide}" style="max-width:100%" src="data:image/svg+xml,{address}">'


def style_for(style: str, used: str, *, drawing: bool = False) -> str:
    """The rules of a style sheet for these classes. drawing: only those that colour a still drawing."""
    there = set(re.findall(r"[\w-]+", used))

    def kept(selector: str, body: str) -> bool:
        if drawing and (re.search(r":|live", selector) or not re.search(r"fill|stroke|full|text-anchor", body)):
            return False
        classes = (set(re.findall(r"\.([a-z][\w-]*)", part)) - {"by-hand"} for part in selector.split(","))
        return any(not some or some & there for some in classes)

    rules = []
    for block, inside, selector, body in RULE.findall(re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)):
        if block and not drawing:
            rules.append(f"{block}{{{inside}}}")
        elif selector and kept(selector, body):
            rules.append(f"{selector}{{{body}}}")
    return re.sub(r"\s+", " ", re.sub(r"\s*([{};,]|(?<=[a-z]):(?= ))\s*", r"\1", "".join(rules))).strip()


def colours(used: str, *, dark: bool = True) -> str:
    """The variables that this style uses. dark: those of a page in the dark as well."""
    pairs = {f"--drawn-{name}": pair for name, pair in theme.DIAGRAMS.items()}
    pairs |= {f"--{name}": theme.COLOURS[ours] for name, ours in theme.SITE_NAMES.items()}
    light, night = (
        ";".join(f"{name}:{pair[k]}" for name, pair in pairs.items() if f"var({name})" in used) for k in (0, 1)
    )
    return f":root{{{light}}}" + (f':root[data-theme="dark"]{{color-scheme:dark;{night}}}' if dark else "")


def lighter(script: str) -> str:
    """A script without comments that have lines of their own, and without indents."""
    return re.sub(
        r"\n\s*", "\n", re.sub(r"^\s*(?:/\*.*?\*/|//[^\n]*)$", "", script, flags=re.DOTALL | re.MULTILINE)
    ).strip()
