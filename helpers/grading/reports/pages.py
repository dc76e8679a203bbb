"""Standalone pages: one file from a template, without scripts or requests.

Jinja escapes what templates/ show, and control characters are removed. Only `code`, `marked` and `panel` return markup.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers import theme
from helpers.checking.read.syntax import cell_of
from helpers.checking.show.panel import STYLE
from helpers.text import counted, number, sanitized
from helpers.text import marked as as_html

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
TEMPLATES = Path(__file__).parent / "templates"
MAX_CODE = 20_000  # characters
MAX_EXCERPT = 14  # lines


def page(template: str, **values: object) -> str:
    """The page that the template of that name makes of these values."""
    return _templates().get_template(template).render(**values)


@cache
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
        policy=Markup(POLICY),
        verdict_style=Markup(re.sub(r"</?style>", "", STYLE)),
        code_style=Markup(_code_style()),
        theme=theme,
    )
    filters = {f.__name__: f for f in (number, code, excerpt, marked, panel, duration, moment)}
    templates.filters.update(filters)
    return templates


def _finalize(value: object) -> object:
    return value if isinstance(value, Markup) or not isinstance(value, str) else sanitized(value)


def code(text: str) -> Markup:
    """Python text, highlighted."""
    text = sanitized(text)
    highlighted = highlight(text[:MAX_CODE], PythonLexer(stripnl=False), HtmlFormatter(nowrap=False))
    rest = ""
    if len(text) > MAX_CODE:
        rest = Markup('<p class="quiet small">The rest of {} characters is not shown.</p>').format(f"{len(text):,}")
    return Markup('<div class="code">{}</div>{}').format(Markup(highlighted), rest)


def excerpt(text: str) -> str:
    """A cell's text without docstrings, comments and empty lines, cut after MAX_EXCERPT.

    What is no Python keeps them. A comment may hold its author's name.
    """
    cell = cell_of(text)
    hidden: set[int] = set()
    for node in ast.walk(cell.tree):
        match node:
            case (
                ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as first, _, *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())) as first, _, *_])
            ):
                hidden.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = (text if cell.problem else cell.python).split("\n")
    if not cell.problem:
        with suppress(tokenize.TokenError, SyntaxError):
            for token in tokenize.generate_tokens(io.StringIO(cell.python).readline):
                if token.type == tokenize.COMMENT:
                    place, column = token.start
                    lines[place - 1] = lines[place - 1][:column].rstrip()
    kept = [line for place, line in enumerate(lines, 1) if line.strip() and place not in hidden]
    more = ["..."] if len(kept) > MAX_EXCERPT else []
    return "\n".join(kept[:MAX_EXCERPT] + more)


def marked(text: str) -> Markup:
    """Escaped, with `code` and *emphasis* set as such."""
    return Markup(as_html(sanitized(text)))


def panel(html: str) -> Markup:
    """A panel (see `records.panel_of`)."""
    return Markup(sanitized(html))


def duration(seconds: float) -> str:
    """A length of time in its two largest units: "2 days 3 hours"; "less than a minute"."""
    left, units = timedelta(seconds=seconds) // timedelta(minutes=1), []
    for unit, minutes in (("day", 24 * 60), ("hour", 60), ("minute", 1)):
        count, left = divmod(left, minutes)
        if count:
            units.append(counted(count, unit))
    return " ".join(units[:2]) or "less than a minute"


def moment(time: datetime) -> str:
    """A point in time: "20 Nov 2026, 14:05 UTC"."""
    return f"{time.day} {time:%b %Y, %H:%M} UTC"


def _code_style() -> str:
    light = HtmlFormatter(style="xcode").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}\n"
