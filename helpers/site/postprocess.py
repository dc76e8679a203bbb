"""The last touch on a built page: what the theme and the notebook renderer leave to be wished for.

Each function takes the text of a page and returns it changed; `finish` calls them all on every page of a built site.
They work on text that Sphinx, myst-nb and furo wrote, so each says which of their habits it mends. The tests look at
the result in a browser: when one of these programs changes its habits, they say so.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path

from latex2mathml.converter import convert

TAG = re.compile(r"<[^>]+>")

# --- what screen readers are told ------------------------------------------------------------------------------------


def levels_of_captions(page: str) -> str:
    """A heading of the menu says its level; furo gives it the role alone."""
    return page.replace('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">')


def names_of_landmarks(page: str) -> str:
    """Two areas of one kind are told apart by name: the menu from the page's contents, one search from the other."""
    for before, after in (
        ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Lessons and pages">'),
        ('<aside class="toc-drawer">', '<aside class="toc-drawer" aria-label="On this page">'),
        ('<aside class="toc-drawer no-toc">', '<aside class="toc-drawer no-toc" aria-label="On this page">'),
        (
            'class="sidebar-search-container" method="get"',
            'class="sidebar-search-container" aria-label="The site" method="get"',
        ),
    ):
        page = page.replace(before, after)
    return page


HEAD = re.compile(r"<thead>.*?</thead>\s*", re.DOTALL)
EMPTY_HEADING = re.compile(r"<th\b[^>]*>(?:\s|<p>|</p>)*</th>")


def heads_of_tables(page: str) -> str:
    """A table's head holds words: without any it goes, and an empty corner is no heading."""

    def mend(match: re.Match[str]) -> str:
        head = match[0]
        return EMPTY_HEADING.sub("<td></td>", head) if TAG.sub("", head).strip() else ""

    return EMPTY_HEADING.sub("<td></td>", HEAD.sub(mend, page))


# --- code ------------------------------------------------------------------------------------------------------------

BLOCK = re.compile(r"<pre><span></span>(.*?)</pre>", re.DOTALL)


def lines_of_code(page: str) -> str:
    """Each line of code is an element of its own, which knows how far it is indented.

    On a phone a long line is wrapped, and goes on two letters further in than it began. The number of letters of the
    longest line lets the style sheet choose a size at which the whole block fits.
    """

    def mend(match: re.Match[str]) -> str:
        lines = match[1].split("\n")
        if lines[-1] == "":
            lines.pop()
        texts = [unescape(TAG.sub("", line)) for line in lines]
        longest = max(map(len, texts), default=0)
        marked = "".join(_line(line, text) for line, text in zip(lines, texts, strict=True))
        return f'<pre style="--longest:{longest}">{marked}</pre>'

    return BLOCK.sub(mend, page)


def _line(html: str, text: str) -> str:
    indented = len(text) - len(text.lstrip(" "))
    style = f' style="--in:{indented}"' if indented else ""
    return f'<span class="line"{style}>{html}\n</span>'


# --- figures ---------------------------------------------------------------------------------------------------------

CAPTION = re.compile(r'\s*<div class="figure-caption">\n?(.*?)</div>', re.DOTALL)
DRAWN = re.compile(r'<div class="in-page">(<svg.*?</svg>)</div>', re.DOTALL)
PICTURE = re.compile(
    r'<a class="reference internal image-reference" href="([^"]+)">(<img [^>]*/?>)\s*</a>|(<img [^>]*>)'
)
ENDS_A_FIGURE = re.compile(r"</figure>(?:\s|</div>)*\Z")


def figures(page: str) -> str:
    """A picture of a cell and the words under it are a <figure> and its <figcaption>.

    A lesson has the words in a cell of their own, after the picture's.
    """
    page = DRAWN.sub(r'<figure class="in-page">\1</figure>', page)
    page = re.sub(
        r'(<div class="cell_output docutils container">.*?)(?=<div class="cell_output|\Z)',
        _framed,
        page,
        flags=re.DOTALL,
    )
    done, rest = "", page
    while match := CAPTION.search(rest):
        before = done + rest[: match.start()]
        if end := ENDS_A_FIGURE.search(before):
            words = f'<figcaption class="figure-caption">{match[1].strip()}</figcaption>'
            done = f"{before[: end.start()]}{words}{before[end.start() :]}"
        else:
            done = before + match[0]
        rest = rest[match.end() :]
    return done + rest


def _framed(match: re.Match[str]) -> str:
    """The pictures of dots in an output, each in a <figure>, without myst-nb's link to the bare file."""
    return PICTURE.sub(lambda picture: f"<figure>{picture[2] or picture[3]}</figure>", match[1])


IMAGE = re.compile(r"<img\b[^>]*>")
SOURCE = re.compile(r'\bsrc="([^"]+)"')
DOTS_OF_A_COLUMN = 1000  # a picture with more dots than that was stored with twice the dots that it is wide


def sizes_of_images(page: str, folder: Path) -> str:
    """Each PNG's width and height, so that the page does not move when it arrives. folder: where the page lies."""

    def mend(match: re.Match[str]) -> str:
        tag, source = match[0], SOURCE.search(match[0])
        if not source or not source[1].endswith(".png") or "width=" in tag:
            return tag
        file = folder / source[1]
        if not file.is_file():
            return tag
        wide, high = png_size(file.read_bytes())
        if wide > DOTS_OF_A_COLUMN:
            wide, high = round(wide / 2), round(high / 2)
        return tag.replace("<img ", f'<img width="{wide}" height="{high}" loading="lazy" decoding="async" ', 1)

    return IMAGE.sub(mend, page)


def png_size(picture: bytes) -> tuple[int, int]:
    """Width and height in dots, from the head of a PNG. Raises ValueError for anything else."""
    if picture[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("this is no PNG")
    return struct.unpack(">II", picture[16:24])


PANEL_STYLE = re.compile(r"<style>\s*(\.verdict\{.*?)</style>", re.DOTALL)


def one_style_for_panels(page: str) -> str:
    """The panels' style sheet comes with each of them, for notebooks; a page needs it once."""
    first = PANEL_STYLE.search(page)
    if not first:
        return page
    return page[: first.end()] + PANEL_STYLE.sub("", page[first.end() :])


# --- formulas --------------------------------------------------------------------------------------------------------

FORMULA = re.compile(r'<(span|div) class="math notranslate nohighlight"[^>]*>(.*?)</\1>', re.DOTALL)
HIDDEN_TEX = "<noscript><style>.math.notranslate{display:none}</style></noscript>"


class NotSet(ValueError):
    """A formula that latex2mathml cannot set; the message has it."""


def formulas_without_scripts(page: str) -> str:
    """Where no script sets the formulas, they are there as MathML, which browsers know, and the TeX is not shown."""
    if not FORMULA.search(page):
        return page
    page = FORMULA.sub(lambda match: f"{match[0]}<noscript>{as_mathml(match[2], match[1] == 'div')}</noscript>", page)
    return page.replace("</head>", f"{HIDDEN_TEX}\n</head>", 1)


def as_mathml(html: str, display: bool) -> str:
    r"""A formula as Sphinx writes it, between \( and \) or \[ and \], as MathML. NotSet where it cannot be set."""
    tex = unescape(TAG.sub("", html)).strip()[2:-2].replace(r"\begin{split}[", r"\begin{split}{}[")
    try:
        return convert(tex, display="block" if display else "inline")
    except Exception as problem:
        raise NotSet(f"latex2mathml cannot set this formula ({type(problem).__name__}): {tex}") from problem


# --- the head and the foot of a page ---------------------------------------------------------------------------------

TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)


def first_words(page: str, most: int = 200) -> str:
    """The beginning of a page's text, for those who look at a link to it. Formulas are left out."""
    article = page.partition('<article role="main"')[2]
    for paragraph in PARAGRAPH.findall(article):
        if 'class="math' in paragraph:
            continue
        words = " ".join(unescape(TAG.sub("", paragraph)).split())
        if len(words) > 40:
            return words if len(words) <= most else words[:most].rsplit(" ", 1)[0] + " …"
    return ""


def words_for_links(page: str, description: str, *, address: str = "", where: str = "") -> str:
    """What a search engine and a messenger show of a page. address: of the site, "" if it has none yet."""
    title = TITLE.search(page)
    name = unescape(title[1]).partition(" - ")[0] if title else ""
    said = {
        "og:type": "website" if where == "index.html" else "article",
        "og:site_name": "From the dot product to GPT-2",
        "og:title": name,
        "og:description": description,
    }
    if address:
        base = address.rstrip("/")
        said |= {"og:url": f"{base}/{where}", "og:image": f"{base}/_static/check.png"}
    lines = [f'<meta name="description" content="{escape(description, quote=True)}">']
    lines += [f'<meta property="{key}" content="{escape(value, quote=True)}">' for key, value in said.items()]
    return page.replace("</head>", "\n".join(lines) + "\n</head>", 1)


def licence_at_the_foot(page: str, root: str) -> str:
    """Which licence, and how to cite, on every page. root: the way from the page to the site's first, "../" or ""."""
    words = f'Code: Apache 2.0. Prose and pictures: CC BY 4.0. <a href="{root}about.html">Licence, how to cite</a>. '
    return page.replace('<div class="left-details">', f'<div class="left-details"><p>{words}</p>', 1)


STEPS: tuple[Callable[[str], str], ...] = (
    levels_of_captions,
    names_of_landmarks,
    heads_of_tables,
    lines_of_code,
    figures,
    one_style_for_panels,
    formulas_without_scripts,
)


def finish(html: Path, descriptions: dict[str, str], address: str = "") -> None:
    """Finish every page of a built site in place. descriptions: by the page's path, "lessons/03_scaling.html"."""
    for path in sorted(html.rglob("*.html")):
        where = path.relative_to(html).as_posix()
        if where.startswith("_static/"):
            continue
        page = path.read_text(encoding="utf-8")
        for step in STEPS:
            page = step(page)
        page = sizes_of_images(page, path.parent)
        page = words_for_links(page, descriptions.get(where) or first_words(page), address=address, where=where)
        if (html / "about.html").exists():
            page = licence_at_the_foot(page, "../" * where.count("/"))
        path.write_text(page, encoding="utf-8")
