"""Changes to the built pages: what the theme and the notebook renderer leave to be mended.

Each step changes the parsed page in place; `finish` applies all of them to every page of a built site.
"""

from __future__ import annotations

import copy
import re
import textwrap
from collections.abc import Iterable
from html import escape
from pathlib import Path
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag
from latex2mathml.converter import convert
from PIL import Image

from helpers.course import ROOT
from helpers.site.feed import FEED, feed

LANDMARKS = {
    "sidebar-drawer": "Lessons and pages",
    "toc-drawer": "On this page",
    "sidebar-search-container": "The site",
}
HIDDEN_TEX = "<noscript><style>.math.notranslate{display:none}</style></noscript>"
COLUMN = 1000  # pixels; a picture that is wider was stored at twice its size
NOT_FOUND = "404.html"
SITEMAPS = "http://www.sitemaps.org/schemas/sitemap/0.9"
SITE_NAME = "From the dot product to GPT-2"
WITHOUT_SEARCH = (
    "<p>This search needs scripts, and here none run. The lessons are in the menu. "
    'The <a href="glossary.html">glossary</a> lists all terms, <a href="terms/index.html">these</a> have a page of '
    'their own, and there are lists of <a href="messages.html">messages and symptoms</a>, '
    '<a href="exercises.html">exercises</a> and <a href="papers.html">papers</a>.</p>'
)
LICENCE = 'Code: Apache 2.0. Prose and pictures: CC BY 4.0. <a href="{root}about.html">Licence, how to cite</a>. '


class FormulaError(ValueError):
    """A formula that latex2mathml cannot set; the message has it."""


def parse(html: str) -> BeautifulSoup:
    """HTML as a tree."""
    return BeautifulSoup(html, "html.parser")


def name_landmarks(page: BeautifulSoup) -> None:
    """Landmarks of one kind get names that tell them apart, and a heading of the menu its level."""
    for css_class, name in LANDMARKS.items():
        for tag in page.find_all(class_=css_class):
            tag["aria-label"] = name
    for caption in page.find_all("p", class_="caption", role="heading"):
        caption["aria-level"] = "2"


def mend_table_heads(page: BeautifulSoup) -> None:
    """A table head without any words goes, and an empty corner is not a heading."""
    for head in page.find_all("thead"):
        if not head.get_text(strip=True):
            head.decompose()
    for cell in page.find_all("th"):
        if not cell.get_text(strip=True):
            cell.replace_with(page.new_tag("td"))


def mark_lines(page: BeautifulSoup) -> None:
    """Each line of highlighted code becomes an element that knows its indent, and the block knows its longest line.

    The style sheet wraps a long line with a hanging indent, and chooses a size at which the whole block fits.
    """
    for block in page.find_all("pre"):
        if not str(block).startswith("<pre><span></span>"):
            continue
        lines = block.decode_contents().removeprefix("<span></span>").removesuffix("\n").split("\n")
        texts = block.get_text().removesuffix("\n").split("\n")
        marked = ""
        for line, text in zip(lines, texts, strict=True):
            indent = len(text) - len(text.lstrip(" "))
            style = f' style="--in:{indent}"' if indent else ""
            marked += f'<span class="line"{style}>{line}\n</span>'
        # The parser keeps spaces only within <pre>.
        block.replace_with(parse(f'<pre style="--longest:{max(map(len, texts))}">{marked}</pre>'))


def make_figures(page: BeautifulSoup) -> None:
    """A cell's picture becomes a <figure>, with the caption of the cell that follows.

    myst-nb's link from a picture to its bare file goes.
    """
    for drawing in page.find_all("div", class_="in-page"):
        drawing.name = "figure"
    for output in page.find_all("div", class_="cell_output"):
        for image in output.find_all("img"):
            if not image.find_parent("figure"):
                figure = page.new_tag("figure")
                (image.find_parent("a", class_="image-reference") or image).replace_with(figure)
                figure.append(image)
    for caption in page.find_all("div", class_="figure-caption"):
        above = figure_before(caption)
        if above:
            caption.name = "figcaption"
            above.append(caption.extract())


def figure_before(caption: Tag) -> Tag | None:
    """The figure that ends right before a caption, if there is one."""
    tag = caption.find_previous_sibling()
    while tag and tag.name == "div":
        children = tag.find_all(True, recursive=False)
        tag = children[-1] if children else None
    return tag if tag and tag.name == "figure" else None


def keep_one_panel_style(page: BeautifulSoup) -> None:
    """The style sheet of panels comes with each of them, for notebooks; a page needs it once."""
    styles = [style for style in page.find_all("style") if (style.string or "").lstrip().startswith(".verdict{")]
    for style in styles[1:]:
        style.decompose()


def keep_one_of_each_id(page: BeautifulSoup) -> None:
    """Drawings that define the same glyph or marker share the first; what only has the same id is renamed."""
    seen: dict[str, str] = {}
    for number, drawing in enumerate(page.find_all("svg")):
        text = None
        for tag in drawing.find_all(id=True):
            name = str(tag["id"])
            if name not in seen:
                seen[name] = str(tag)
            elif tag.find_parent("defs") and seen[name] == str(tag):
                tag.decompose()
            else:
                text = (text or str(drawing)).replace(f'id="{name}"', f'id="{name}-{number}"')
                text = re.sub(rf'#{re.escape(name)}(?=["\')])', f"#{name}-{number}", text)
        if text:
            drawing.replace_with(parse(text))


def lighten_drawings(page: BeautifulSoup) -> None:
    """Drawings lose what changes nothing: bare groups, empty definitions, spaces around a path's letters."""
    for drawing in page.find_all("svg"):
        for tag in drawing.find_all(["g", "defs"]):
            if tag.name == "defs" and not tag.find():
                tag.decompose()
            elif tag.name == "g" and not tag.attrs:
                tag.unwrap()
        for shape in drawing.find_all("path", d=True):
            shape["d"] = re.sub(r"\s*([A-DF-Za-df-z])\s*", r"\1", str(shape["d"])).strip()  # the e is a number's
        for use in drawing.find_all("use", attrs={"xlink:href": True}):
            use["href"] = str(use.attrs.pop("xlink:href")).replace("#DejaVuSans-", "#glyph-")
            aside = re.fullmatch(r"translate\(([\d.]+) 0\)", str(use.get("transform", "")))
            if aside and "x" not in use.attrs:  # a letter's place in its word
                del use["transform"]
                use["x"] = aside[1]
        for tag in drawing.find_all(style=True):  # the page's style sheet has all colours: none needs another
            tag["style"] = re.sub(r"(var\(--drawn-[\w-]+),#\w+\)", r"\1)", str(tag["style"])).replace("; ", ";")
        for glyph in drawing.find_all(id=re.compile("^DejaVuSans-")):
            glyph["id"] = str(glyph["id"]).replace("DejaVuSans-", "glyph-")


def lighten_style(css: str) -> str:
    """A style sheet without its comments and indents."""
    return re.sub(r"\n\s*", "\n", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL))


def add_mathml(page: BeautifulSoup) -> None:
    """Without scripts, each formula is shown as MathML, and its TeX is hidden."""
    formulas = page.find_all(["span", "div"], class_="math notranslate nohighlight")
    for formula in formulas:
        mathml = as_mathml(formula.get_text(), display=formula.name == "div")
        formula.insert_after(parse(f"<noscript>{mathml}</noscript>"))
    if formulas and page.head:
        page.head.append(parse(HIDDEN_TEX))


def as_mathml(text: str, *, display: bool) -> str:
    r"""The formula between \( and \) or \[ and \] as MathML. FormulaError where it cannot be set."""
    tex = text.strip()[2:-2].replace(r"\begin{split}[", r"\begin{split}{}[")
    try:
        return convert(tex, display="block" if display else "inline")
    except Exception as error:
        raise FormulaError(f"latex2mathml cannot set this formula ({type(error).__name__}): {tex}") from error


def size_images(page: BeautifulSoup, folder: Path) -> None:
    """Each PNG gets its width and height, so that the page does not move when it arrives. folder: the page's own."""
    for image in page.find_all("img", src=lambda source: source and source.endswith(".png")):
        file = folder / str(image["src"])
        if "width" in image.attrs or not file.is_file():
            continue
        width, height = Image.open(file).size
        if width > COLUMN:
            width, height = round(width / 2), round(height / 2)
        image.attrs |= {"width": str(width), "height": str(height), "loading": "lazy", "decoding": "async"}


def first_words(page: BeautifulSoup) -> str:
    """The first paragraph of some length, shortened, its formulas as in plain text; "" without one."""
    article = page.find("article") or page
    for paragraph in map(copy.copy, article.find_all("p")):
        for twin in paragraph.find_all("noscript"):
            twin.decompose()
        for formula in paragraph.find_all(class_="math"):
            formula.string = plain_formula(formula.get_text())
        words = " ".join(paragraph.get_text().split())
        if len(words) > 40:
            return textwrap.shorten(words, 200, placeholder=" …")
    return ""


def plain_formula(tex: str) -> str:
    r"""TeX between \( and \) without its marks: e^s_j / Σ_k e^s_k."""
    signs = {
        r"\top": "⊤",
        r"\sqrt ": "√",
        r"\sqrt": "√",
        r"\sum": "Σ",
        r"\cdot": "·",
        r"\operatorname": "",
        r"\text": "",
    }
    for command, sign in signs.items():
        tex = tex.replace(command, sign)
    spaced = re.sub(r"\\[ ,;:!]", " ", re.sub(r"\\[()]", "", tex))
    return re.sub(r"[{}\\]", "", spaced)


def add_metadata(page: BeautifulSoup, description: str, *, address: str = "", path: str = "") -> None:
    """The description for search engines, and Open Graph for link previews. address: of the site, "" without one."""
    title = page.title.get_text().partition(" - ")[0] if page.title else ""
    properties = {
        "og:type": "website" if path == "index.html" else "article",
        "og:site_name": SITE_NAME,
        "og:title": title,
        "og:description": description,
    }
    assert page.head is not None, "every page that Sphinx writes has a head"
    if address:
        home = address.rstrip("/") + "/"
        url = urljoin(home, path)
        properties |= {
            "og:url": url,
            "og:image": urljoin(url, preview_picture(page) or urljoin(home, "_static/share.png")),
        }
        page.head.append(page.new_tag("link", attrs={"rel": "canonical", "href": url}))
        news = {"rel": "alternate", "type": "application/atom+xml", "href": f"{address.rstrip('/')}/{FEED}"}
        page.head.append(page.new_tag("link", attrs={**news, "title": SITE_NAME}))
        page.head.append(page.new_tag("meta", attrs={"name": "twitter:card", "content": "summary_large_image"}))
        if path == NOT_FOUND:  # served in place of pages in any folder
            page.head.insert(0, page.new_tag("base", attrs={"href": f"{address.rstrip('/')}/"}))
    page.head.append(page.new_tag("meta", attrs={"name": "description", "content": description}))
    for name, content in properties.items():
        page.head.append(page.new_tag("meta", attrs={"property": name, "content": content}))


def preview_picture(page: BeautifulSoup) -> str:
    """The relative address of the first picture of a page's figures, or of its card; "" where none is a PNG."""
    figures = page.select("img[data-card], figure img[src$='.png'], article img[src$='.png']")
    return str(figures[0].get("data-card") or figures[0]["src"]) if figures else ""


def name_search(page: BeautifulSoup) -> None:
    """The page that searches has a heading, as all others do, and says what helps where no script runs."""
    results = page.find(id="search-results")
    if results and not page.find("h1"):
        heading = page.new_tag("h1")
        heading.string = "Search"
        results.insert_before(heading)
    if results and (warning := results.find_previous("noscript")):
        results.insert_before(warning.extract())
        warning.clear()
        warning.append(parse(WITHOUT_SEARCH))


def sitemap(paths: Iterable[str], address: str) -> str:
    """The addresses of all pages for search engines, as XML."""
    urls = "".join(f"<url><loc>{escape(address.rstrip('/'))}/{path}</loc></url>\n" for path in paths)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{SITEMAPS}">\n{urls}</urlset>\n'


def add_licence(page: BeautifulSoup, root: str) -> None:
    """Licence and citation at the foot. root: the relative address of the site's root, "../" or ""."""
    foot = page.find("div", class_="left-details")
    if foot:
        foot.insert(0, parse(f"<p>{LICENCE.format(root=root)}</p>"))


STEPS = (
    *(name_landmarks, name_search, mend_table_heads, mark_lines, make_figures),
    *(keep_one_panel_style, lighten_drawings, keep_one_of_each_id, add_mathml),
)


def finish(html: Path, descriptions: dict[str, str], address: str = "") -> None:
    """Finish every page of a built site in place. descriptions: by the page's path, "lessons/03_scaling.html".

    With an address, the site gets a sitemap and says so to search engines, and a feed of its versions.
    """
    for sheet in html.glob("_static/**/*.css"):
        sheet.write_text(lighten_style(sheet.read_text(encoding="utf-8")), encoding="utf-8")
    paths = []
    for file in sorted(html.rglob("*.html")):
        path = file.relative_to(html).as_posix()
        if path.startswith("_static/"):
            continue
        page = parse(file.read_text(encoding="utf-8"))
        for step in STEPS:
            step(page)
        size_images(page, file.parent)
        add_metadata(page, descriptions.get(path) or first_words(page), address=address, path=path)
        add_licence(page, "../" * path.count("/"))
        file.write_text(str(page), encoding="utf-8")
        paths.append(path)
    if address:
        listed = [path for path in paths if path not in (NOT_FOUND, "search.html")]
        (html / "sitemap.xml").write_text(sitemap(listed, address), encoding="utf-8")
        changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        (html / FEED).write_text(feed(changes, SITE_NAME, address), encoding="utf-8")
        robots = f"User-agent: *\nAllow: /\nSitemap: {address.rstrip('/')}/sitemap.xml\n"
        (html / "robots.txt").write_text(robots, encoding="utf-8")
