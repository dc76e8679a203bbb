"""Taking out of a notebook what a student's code or text could make an instructor's browser run.

The formgrader and nbgrader's feedback show notebooks as live pages. Of outputs, text and pictures stay, and the panels
that the judge wrote. A text cell stays as it is where the page that nbconvert makes of it holds nothing but plain
markup; otherwise, and for raw cells always, what stands there is shown as the text that was typed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from html import escape, unescape

from bleach import html5lib_shim
from bleach.sanitizer import Cleaner
from nbconvert.filters import markdown2html, strip_files_prefix
from nbformat.notebooknode import NotebookNode

from helpers.grading.records import PLACE
from helpers.notebooks import by_grade_id

PICTURES = ("image/png", "image/jpeg")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")

# What Markdown makes, and a few that people write by hand. No picture: it would be fetched from wherever it says.
TAGS = (
    *("a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "kbd", "li", "ol", "p", "pre", "s", "small", "span"),
    *("strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var"),
)
ATTRIBUTES = ("align", "colspan", "id", "open", "rowspan", "start", "title")
CLASSES = re.compile(r"[a-z][a-z0-9]{0,2}|highlight|anchor-link|language-\w+")  # code in colours, and headings' links
TEX = re.compile(  # MathJax's own ways to links, and to what hides or covers things
    r"\\(href|url|require|style|class|cssId|data|html\w*|mmlToken|texttip|mathtip|toggle|enclose|bbox|unicode)\b",
    re.IGNORECASE,
)
IDS = re.compile(r"""\bid\s*=\s*["']?([^"'\s>]+)""")
OWN_IDS = frozenset(("notebook", "notebook-container", "statusmessage", "toc", "top"))  # of the formgrader's page
LONGEST = 10_000  # characters of a text cell that are laid out: some texts take as long as their square
ROOM = 60_000  # and of all of a notebook's
ALIGNED = re.compile(r' style="text-align:(left|right|center)"')  # what Markdown writes into the cells of a table


def defuse(notebook: NotebookNode, released: Collection[str] = ()) -> None:
    """Make the notebook harmless, in place. To be called when the verdicts stand in it.

    released: texts that are the course's own, of the released lesson's cells; they stay as they are.
    """
    taken = OWN_IDS | {name + end for name in by_grade_id(notebook) for end in ("", "-comment", "_extra_credit")}
    room = [ROOM]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if not _is_judged(cell):
                cell.outputs = [kept for kept in map(_plain_output, cell.outputs) if kept is not None]
        elif not cell.metadata.get("nbgrader", {}).get("locked") and cell.source not in released:
            cell.source = (
                escape(cell.source, quote=False)
                if cell.cell_type == "raw"
                else _plain_markdown(cell.source, taken, room)
            )


def _is_judged(cell: NotebookNode) -> bool:
    """Did the judge write what stands under this check cell? Students' outputs in it were taken out then."""
    about = cell.metadata.get("nbgrader", {})
    judged = [output for output in cell.outputs if PLACE in output.get("metadata", {})]
    return bool(about.get("grade") and not about.get("solution")) and len(judged) == len(cell.outputs) == 1


def _plain_output(output: NotebookNode) -> NotebookNode | None:
    if output.output_type in ("stream", "error"):
        return output
    data = output.get("data", {})
    kept = {kind: data[kind] for kind in ("text/plain",) if isinstance(data.get(kind), str)}
    kept |= {kind: data[kind] for kind in PICTURES if isinstance(data.get(kind), str) and BASE64.fullmatch(data[kind])}
    if not kept:
        return None
    plain = NotebookNode(output_type=output.output_type, data=NotebookNode(kept), metadata=NotebookNode())
    if output.output_type == "execute_result":
        plain.execution_count = output.get("execution_count")
    return plain


def _plain_markdown(source: str, taken: frozenset[str], room: list[int]) -> str:
    room[0] -= len(source)
    return source if room[0] >= 0 and _is_harmless(source, taken) else _as_typed(source)


def _as_typed(source: str) -> str:
    """A block of Markdown that shows this text and nothing else: its fence is longer than any within."""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall(r"`+", source))])
    return f"{fence}text\n{source}\n{fence}"


@functools.lru_cache(maxsize=1024)
def _is_harmless(source: str, taken: frozenset[str]) -> bool:
    """Would bleach take nothing out of the page that the formgrader makes of this text?

    taken: ids by which the formgrader finds the boxes for marks; a heading of that name would stand in their place.
    """
    if len(source) > LONGEST:
        return False
    try:
        html = ALIGNED.sub("", strip_files_prefix(markdown2html(source)))
    except Exception:  # a picture that is attached nowhere, lists nested without end: the page itself would fail
        return False
    if TEX.search(source) or TEX.search(unescape(html)) or taken & {unescape(name) for name in IDS.findall(html)}:
        return False
    return _normal(_cleaner().clean(html)) == _normal(html)


def _normal(html: str) -> str:
    """HTML as a browser understands it, spelt in one way."""
    return _cleaner().serializer.render(_cleaner().walker(_browser().parseFragment(html)))


def _allowed(tag: str, name: str, value: str) -> bool:
    if name == "class":
        return all(CLASSES.fullmatch(word) for word in value.split())
    return name in ATTRIBUTES or (tag, name) == ("a", "href")


@functools.cache
def _cleaner() -> Cleaner:
    return Cleaner(tags=TAGS, attributes=_allowed, protocols=("http", "https", "mailto"))


@functools.cache
def _browser() -> html5lib_shim.BleachHTMLParser:
    return html5lib_shim.BleachHTMLParser(tags=None, strip=False, consume_entities=True, namespaceHTMLElements=False)
