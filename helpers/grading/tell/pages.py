"""Pages that stand alone: one file, nothing that can run, no request to anybody."""

from __future__ import annotations

import os
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
LONGEST_CODE = 20_000  # characters

STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--quiet:#5b6472;--paper:#fff;--panel:#f5f6f8;--rule:#dfe2e8;--accent:#21588f;
--right:#00876c;--wrong:#c8500a;--calm:#9aa1ad}
@media (prefers-color-scheme:dark){:root{--ink:#dfe3ea;--quiet:#98a1b0;--paper:#14171c;--panel:#1c2027;--rule:#323945;
--accent:#7db3e8;--right:#2fae92;--wrong:#ef8340;--calm:#6d7583}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2.2rem clamp(1rem,4vw,3rem) 4rem;max-width:78rem;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;overflow-wrap:break-word}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem;font-weight:650}h2{font-size:1.2rem;margin:2.6rem 0 .7rem;font-weight:650}
h3{font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.5rem 0}a{color:var(--accent)}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;font-size:.86em}
.quiet{color:var(--quiet)}.small{font-size:.87rem}
.code{background:var(--panel);border:1px solid var(--rule);border-radius:6px;overflow-x:auto}
.code pre{margin:0;padding:.7rem .9rem;line-height:1.5;font-size:.82rem}
footer{margin-top:3.5rem;padding-top:.8rem;border-top:1px solid var(--rule);color:var(--quiet);font-size:.85rem}
"""


def page(title: str, body: str, style: str = "") -> str:
    """A whole page around a body that was put together from escaped text."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer"'
        ' content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{_code_style()}{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def write(path: Path, text: str) -> None:
    """Write a page, whole or not at all; where a link lies, the link is replaced and not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def code(text: str) -> str:
    """Python text, coloured."""
    cut = (
        ""
        if len(text) <= LONGEST_CODE
        else f'<p class="quiet small">The rest of {len(text):,} characters is not shown.</p>'
    )
    return (
        "<div"
        f' class="code">{highlight(text[:LONGEST_CODE], PythonLexer(stripnl=False), HtmlFormatter(nowrap=False))}</div>{cut}'
    )


def _code_style() -> str:
    light = HtmlFormatter(style="friendly").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    rules = [
        f"{light}",
        f"@media (prefers-color-scheme:dark){{{dark}}}",
        ".code,.code .highlight,.code pre{background:var(--panel)!important}",
    ]
    return "\n".join(rules)


# ------------------------------------------------------------------------------------------- what is let in

TAGS = set("div p span b code pre ul li figure figcaption svg g rect path circle line text title style".split())
ATTRIBUTES = set(
    "class style role aria-label width height viewbox x y x1 x2 y1 y2 cx cy r d fill stroke stroke-width".split()
)


def harmless(html: str) -> bool:
    """Does this markup hold nothing but words, boxes and drawings? A verdict's panel does."""
    if "<!" in html or "<?" in html:
        return False
    guard = _Guard()
    try:
        guard.feed(html)
        guard.close()
    except (ValueError, AssertionError):
        return False
    return guard.harmless


class _Guard(HTMLParser):
    def __init__(self):
        super().__init__()
        self.harmless = True

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            told = (value or "").lower()
            if name not in ATTRIBUTES or "url(" in told or "\\" in told or "expression" in told:
                self.harmless = False
        self.harmless &= tag in TAGS

    handle_startendtag = handle_starttag
