"""Pages that stand alone: one file from a template, nothing that can run, no request to anybody.

Templates lie in templates/. Whatever they show is escaped by Jinja, and made harmless on the way: control characters,
what turns a text's direction and halves of characters never reach a page. Only what `code`, `marked` and `panel` return
is markup.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache, lru_cache
from pathlib import Path

import bleach
from bleach.css_sanitizer import CSSSanitizer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers import theme
from helpers.checking.panel import STYLE, number
from helpers.course import write_whole
from helpers.grading.sanitize import harmless

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
TEMPLATES = Path(__file__).parent / "templates"
LONGEST_CODE = 20_000  # characters
LONGEST_PANEL = 400_000  # characters; two pictures of a hundred cells each take 40,000


def page(template: str, **shown: object) -> str:
    """The page that the template of that name makes of what is to be shown."""
    return _templates().get_template(template).render(**shown)


def write(path: Path, text: str) -> None:
    """Write a page, whole or not at all; where a link lies, the link is replaced and not followed."""
    write_whole(path, text)


@cache
def _look() -> dict[str, Markup]:
    """The course's colours and letters, as CSS."""
    return {
        "light": Markup(theme.variables()),
        "dark": Markup(theme.variables(dark=True)),
        "letters": Markup(theme.LETTERS),
        "code_letters": Markup(theme.CODE_LETTERS),
        "corner": Markup(theme.CORNER),
    }


def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    templates.globals.update(
        policy=Markup(POLICY), verdict_style=Markup(_rules(STYLE)), code_style=Markup(_code_style()), look=_look()
    )
    templates.filters.update(number=number, code=code, marked=marked, panel=panel, lasting=lasting, moment=moment)
    return templates


def _finalize(value: object) -> object:
    return value if isinstance(value, Markup) or not isinstance(value, str) else harmless(value)


def _rules(style: str) -> str:
    return re.sub(r"</?style>", "", style)


# ----------------------------------------------------------------------------------------------- filters


def code(text: str) -> Markup:
    """Python text, coloured."""
    text = harmless(text)
    cut = Markup("")
    if len(text) > LONGEST_CODE:
        cut = Markup('<p class="quiet small">The rest of {} characters is not shown.</p>').format(f"{len(text):,}")
    coloured = highlight(text[:LONGEST_CODE], PythonLexer(stripnl=False), HtmlFormatter(nowrap=False))
    return Markup('<div class="code">') + Markup(coloured) + Markup("</div>") + cut


def marked(text: str) -> Markup:
    """Escaped, with what stands between backticks set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(harmless(text)))))


def lasting(seconds: float) -> str:
    """A length of time in words: the two largest units, "2 days 3 hours"; "less than a minute"."""
    left, told = timedelta(seconds=seconds) // timedelta(minutes=1), []
    for unit, minutes in (("day", 24 * 60), ("hour", 60), ("minute", 1)):
        count, left = divmod(left, minutes)
        if count:
            told.append(f"{count:,} {unit}{'' if count == 1 else 's'}")
    return " ".join(told[:2]) or "less than a minute"


def moment(when: datetime) -> str:
    """A point in time, as it stands in the gradebook: "20 Nov 2026, 14:05 UTC"."""
    return f"{when.day} {when:%b %Y, %H:%M} UTC"


def _code_style() -> str:
    light = HtmlFormatter(style="friendly").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}\n"


# ------------------------------------------------------------------------------------------- what is let in

DRAWN = ("rect", "path", "circle", "line", "text", "g")
TAGS = frozenset(("div", "p", "span", "b", "code", "pre", "ul", "li", "figure", "figcaption", "svg", "title", *DRAWN))
PLAIN = ("class", "role", "aria-label", "style")
GEOMETRY = ("width", "height", "viewBox", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "d")
PAINT = ("fill", "stroke", "stroke-width")
NUMBERS = re.compile(
    r"(?!.*url)[\w\s.,()#+-]*", re.IGNORECASE
)  # of a drawing: sizes, paths, colours; no address of anything
PROPERTIES = ("--verdict", "color", "font-weight")
DECLARATIONS = re.compile(r"[\w\s:;#-]*")
CLASSES = re.compile(r"(verdict|head|name|points|share|says|pair|known|tex2jax_ignore|mathjax_ignore|\s)*")
OUR_STYLE = re.compile(r"<style>[^<]*</style>")


@lru_cache(maxsize=512)  # what is all right reads the same for everybody
def panel(html: str) -> Markup:
    """A verdict's panel, as the judge wrote it. Of anything else only words, boxes and drawings; the rest as text."""
    html = OUR_STYLE.sub("", harmless(html[:LONGEST_PANEL]), count=1)
    return Markup(_cleaner().clean(html))


@cache
def _cleaner() -> bleach.Cleaner:
    styles = CSSSanitizer(allowed_css_properties=PROPERTIES, allowed_svg_properties=())
    return bleach.Cleaner(tags=TAGS, attributes=_allowed, protocols=(), css_sanitizer=styles)


def _allowed(tag: str, name: str, value: str) -> bool:
    if name == "class":
        return bool(CLASSES.fullmatch(value))
    if name == "style":
        return bool(DECLARATIONS.fullmatch(value))
    if name in PLAIN:
        return True
    return (tag == "svg" or tag in DRAWN) and name in (*GEOMETRY, *PAINT) and bool(NUMBERS.fullmatch(value))
