"""Removing from a submitted notebook whatever an instructor's browser could run: nbgrader shows it as a live page.

Text outputs and pictures stay. A Markdown cell stays as it is if the page that nbconvert makes of it holds plain markup
only; otherwise, and always for raw cells, the page shows the text as it was typed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from html import escape, unescape

import nh3
from nbconvert.filters import markdown2html, strip_files_prefix
from nbformat.notebooknode import NotebookNode

from helpers.notebooks import by_grade_id

PICTURES = ("image/png", "image/jpeg")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")

# What Markdown makes, and a few that people write by hand. No pictures: a browser would fetch them from anywhere.
TAGS = set(
    "a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i kbd li ol p pre s small span "
    "strong sub summary sup table tbody td tfoot th thead tr u ul var".split()
)
ATTRIBUTES = {"*": {"align", "class", "colspan", "id", "open", "rowspan", "start", "title"}, "a": {"href"}}
CLASSES = re.compile(r"[a-z][a-z0-9]{0,2}|highlight|anchor-link|language-\w+")  # of highlighted code and heading links
TEX = re.compile(  # MathJax's commands for links, and for hiding or covering things
    r"\\(href|url|require|style|class|cssId|data|html\w*|mmlToken|texttip|mathtip|toggle|enclose|bbox|unicode)\b",
    re.IGNORECASE,
)
PAGE_IDS = frozenset(("notebook", "notebook-container", "statusmessage", "toc", "top"))  # of the formgrader's page
MAX_CELL = 10_000  # characters of a Markdown cell that are rendered: some texts take quadratic time
MAX_NOTEBOOK = 60_000  # characters rendered in one notebook
ALIGNMENT = re.compile(r' style="text-align:(left|right|center)"')  # what Markdown writes into the cells of a table
TAG = re.compile(r"(<[^<>]*>)")


def sanitize_notebook(notebook: NotebookNode, released: Collection[str] = ()) -> None:
    """Remove active content, in place, before the verdicts are written into the notebook.

    released: the text of the released lesson's cells, which stays as it is.
    """
    page_ids = PAGE_IDS | {name + end for name in by_grade_id(notebook) for end in ("", "-comment", "_extra_credit")}
    left = MAX_NOTEBOOK
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in map(_static_output, cell.outputs) if output is not None]
        elif cell.metadata.get("nbgrader", {}).get("locked") or cell.source in released:
            continue
        elif cell.cell_type == "raw":
            cell.source = escape(cell.source, quote=False)
        else:
            left -= len(cell.source)
            if left < 0 or not _is_plain_markup(cell.source, page_ids):
                cell.source = _as_typed(cell.source)


def _static_output(output: NotebookNode) -> NotebookNode | None:
    """The output with text and pictures only; None where nothing is left."""
    if output.output_type in ("stream", "error"):
        return output
    static = {
        kind: value
        for kind, value in output.get("data", {}).items()
        if kind == "text/plain" or kind in PICTURES and BASE64.fullmatch(value)
    }
    if not static:
        return None
    plain = NotebookNode(output_type=output.output_type, data=NotebookNode(static), metadata=NotebookNode())
    if output.output_type == "execute_result":
        plain.execution_count = output.get("execution_count")
    return plain


def _as_typed(source: str) -> str:
    """A block of Markdown that shows this text and nothing else: its fence is longer than any within."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall(r"`+", source))])
    return f"{fence}text\n{source}\n{fence}"


@functools.lru_cache(maxsize=1024)
def _is_plain_markup(source: str, page_ids: frozenset[str]) -> bool:
    """Would a sanitizer remove nothing from the page that the formgrader makes of this Markdown?

    page_ids: those by which the formgrader finds its input fields; a heading with such an id would replace one.
    """
    if len(source) > MAX_CELL:
        return False
    try:
        html = ALIGNMENT.sub("", strip_files_prefix(markdown2html(source)))
    except Exception:  # a missing attachment, or endlessly nested lists: the page itself would fail
        return False
    if TEX.search(source) or TEX.search(unescape(html)):
        return False

    def allowed(tag: str, attribute: str, value: str) -> str | None:
        if attribute == "class" and not all(map(CLASSES.fullmatch, value.split())):
            return None
        return None if attribute == "id" and value in page_ids else value

    schemes = {"http", "https", "mailto"}
    clean = nh3.clean(
        html, tags=TAGS, attributes=ATTRIBUTES, attribute_filter=allowed, url_schemes=schemes, link_rel=None
    )
    return _normalized(clean) == _normalized(html)


def _normalized(html: str) -> str:
    """HTML with its text escaped in one way, and without <p>, which a browser opens and closes by itself."""
    parts = TAG.split(html)
    parts[::2] = [escape(unescape(text)) for text in parts[::2]]
    parts[1::2] = ["" if tag in ("<p>", "</p>") else tag.replace(" />", ">") for tag in parts[1::2]]
    return "".join(parts)
