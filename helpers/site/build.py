"""The site for readers: a copy of site/ and of the executed lessons, given to Sphinx.

    python -m helpers.site.build            # into site/_build/html

A lesson's page is its notebook from solutions/, with the solutions folded; no lesson is executed here. The first page's
picture and panel are (landing.py). Lists are made from the lessons (catalogue.py, listing.py), lines that draw are
folded (folding.py), and each page that Sphinx has made is finished (finishing.py). The build
fails, and names the cell, when a picture has no alternative text; and when a page would load anything from another host
or links to a page that does not exist.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import sys
import tomllib
import warnings
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
from sphinx.cmd.build import build_main

from helpers.authoring.links import glossary
from helpers.authoring.repository_url import home, in_binder, in_colab
from helpers.course import ROOT
from helpers.notebooks import as_released, as_solved, defines, grade_id
from helpers.plots.diagrams import COLOURS
from helpers.site import catalogue, indexes, landing, players, postprocess, recorded_runs
from helpers.site.folding import without_drawing
from helpers.site.stored_maps import NotAMap

LISTED_HERE = "<!-- the lessons are listed here -->"
PICTURE_HERE, PANEL_HERE, MAP_HERE = "<!-- the picture -->", "<!-- the panel -->", "<!-- the map -->"
HEAD = re.compile(r"^# (.+)\n(?:\n\*([^*\n]+)\*\n)?", re.MULTILINE)  # a title, and a line under it

# What of an output a page shows: the first of these that it has. Progress bars and the messages of an exam's check
# are for other eyes, so an output with none of these is left out.
SHOWN = (
    "text/html",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "image/gif",
    "text/markdown",
    "text/latex",
    "text/plain",
)
SVG = "image/svg+xml"
WIDGET = "application/vnd.jupyter.widget-view+json"
FOLDS = {"hide-input", "hide-output", "hide-cell"}
CODE_PROMPTS = {"code_prompt_show": "Show the code", "code_prompt_hide": "Hide the code"}

MARKDOWN_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^()\s]+)\)")
DEFINED_LINK = re.compile(r"^\[([^\]]+)\]: (\S+)\n?", re.MULTILINE)
LAB_ANCHOR = re.compile(r"^(#+ )<a id=\"[^\"]+\"></a>", re.MULTILINE)
MARKDOWN_IMAGE = re.compile(r"!\[([^\]]*)\]\(")
HTML_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
HTML_ALT = re.compile(r"""\balt\s*=\s*(?:"\s*[^"\s]|'\s*[^'\s])""", re.IGNORECASE)
# JupyterLab needs it; here it would defeat dark mode
CARD_STYLE = re.compile(r"""(<div class="card"(?: id="[^"]*")?)\s+style="[^"]*\"""")
SOLUTION_MARK = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION[^\n]*\n?", re.MULTILINE)
CSS_ADDRESS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class SiteError(Exception):
    """The site cannot be built; the message says why, one problem a line."""


@dataclass
class Lesson:
    """One line of the landing page. `notebook` is None while the lesson is to come."""

    name: str
    title: str
    line: str = ""
    notebook: Path | None = None

    @property
    def number(self) -> int:
        """Which lesson it is: 3 for 03_scaling."""
        return int(self.name.split("_")[0])


@dataclass
class Part:
    """A part of the course."""

    title: str
    line: str = ""
    lessons: list[Lesson] = field(default_factory=list)


def build(
    output: Path | str | None = None, *, solutions: Path | str | None = None, site: Path | str | None = None
) -> int:
    """Build the site into `output` and return 0, or say on stderr what is wrong and return 1.

    The pages of an earlier build stay as they were until the new ones are complete.
    """
    site = Path(site or ROOT / "site")
    solutions = Path(solutions or ROOT / "solutions")
    output = Path(output or site / "_build" / "html").resolve()
    work = output.parent / f".{output.name}.part"
    try:
        refuse_to_replace_anything_else(output)
        shutil.rmtree(work, ignore_errors=True)
        published = settings(site)
        parts = stage(work / "source", site=site, solutions=solutions, published=published)
        run_sphinx(work / "source", work / "html", work / "doctrees")
        postprocess.finish(work / "html", descriptions(parts), published["address"])
        raise_if(page_problems(work / "html"))
        if output.exists():
            shutil.rmtree(output)
        (work / "html").rename(output)
    except (SiteError, NotAMap, postprocess.NotSet) as error:
        print(f"The site was not built.\n{error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


def refuse_to_replace_anything_else(output: Path) -> None:
    """A build replaces its output folder: only ever one that an earlier build made."""
    if output.exists() and not (output / ".buildinfo").exists() and any(output.iterdir()):
        raise SiteError(f"{output} holds something other than an earlier build. Name an empty or new folder.")


def raise_if(problems: list[str]) -> None:
    """All problems at once, so that one round mends them."""
    if problems:
        raise SiteError("\n".join(f"- {problem}" for problem in problems))


def settings(site: Path) -> dict[str, str]:
    """Where the repository (see `make home`) and the site (site/settings.toml) are published, "" while they are not."""
    found = {"repository": home(), "branch": "main", "address": ""}
    file = site / "settings.toml"
    return found | (tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {})


def descriptions(parts: list[Part]) -> dict[str, str]:
    """What to say of each lesson's page where a link to it is shown, by the page's path."""
    return {
        f"lessons/{lesson.name}.html": f"Lesson {lesson.number} of the course. {lesson.title}: {lesson.line}"
        for part in parts
        for lesson in part.lessons
        if lesson.line
    }


# --- staging: what Sphinx reads --------------------------------------------------------------------------------------


def stage(source: Path, *, site: Path, solutions: Path, published: dict[str, str]) -> list[Part]:
    """Fill `source` with the pages and the lessons; returns the plan of the course. published: what `settings` says."""
    parts = read_plan(site / "lessons.toml", solutions)
    ready = [lesson for part in parts for lesson in part.lessons if lesson.notebook]
    known = {lesson.name for lesson in ready}

    (source / "lessons").mkdir(parents=True)
    shutil.copy(site / "conf.py", source)
    for folder in ("_static", "_templates"):
        if (site / folder).is_dir():
            shutil.copytree(site / folder, source / folder)
    (source / "_static").mkdir(exist_ok=True)
    (source / "_static" / "drawn.css").write_text(drawn_colours(), encoding="utf-8")
    entries = [
        catalogue.entry(lesson.name, lesson.title, lesson.line, part.title, lesson.notebook)
        for part in parts
        for lesson in part.lessons
        if lesson.notebook
    ]
    notebooks = {lesson.name: nbformat.read(lesson.notebook, as_version=4) for lesson in ready}
    made = made_pages(source, entries, notebooks)
    for name, text in made.items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    for page in sorted(site.glob("*.md")):
        text = without_dead_lessons(pages_for_site(page.read_text(encoding="utf-8")), known)
        if page.name == "index.md":
            written = {p.stem for p in site.glob("*.md")} - {"index"}
            text = first_page(text, parts, entries)
            text += toctrees(parts, sorted(written | made.keys()), players.pages(site))
        (source / page.name).write_text(text, encoding="utf-8")

    problems: list[str] = []
    players.stage(site, source, lambda page: without_dead_lessons(page, known))
    for lesson in ready:
        notebook = notebooks[lesson.name]
        head_and_ways(notebook, lesson.name, source / "_static" / "notebooks", published)
        problems += for_readers(notebook, lesson.name, known)
        problems += players.put_in(notebook, lesson.name)
        nbformat.write(notebook, source / "lessons" / f"{lesson.name}.ipynb")
    raise_if(problems)
    return parts


def made_pages(
    source: Path, entries: list[catalogue.Entry], notebooks: dict[str, nbformat.NotebookNode]
) -> dict[str, str]:
    """The pages that list what the course holds, as MyST by their names; their files go to `source`/_static."""
    static = source / "_static"
    terms = [(term.name, term.anchor, term.lesson) for term in glossary()]
    found = json.dumps(indexes.subjects(entries, terms), ensure_ascii=False, separators=(",", ":"))
    (static / "subjects.js").write_text(f"window.SUBJECTS = {found};\n", encoding="utf-8")
    code = {
        name: "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        for name, notebook in notebooks.items()
    }
    return {
        "exercises": indexes.exercises(entries),
        "mistakes": indexes.mistakes(entries),
        "figures": indexes.gallery(entries, figure_files(static / "figures", notebooks)),
        "runs": recorded_runs.page(ROOT / "helpers" / "data" / "recorded", entries, code),
        "implementations": indexes.implementations(
            entries, {name: indexes.reports_of(notebook) for name, notebook in notebooks.items()}
        ),
    }


def figure_files(
    folder: Path, notebooks: dict[str, nbformat.NotebookNode]
) -> dict[str, list[tuple[indexes.Figure, str]]]:
    """Write each figure of the lessons to a file of its own; returns them with the files' paths from the first page."""
    folder.mkdir()
    light = {name: pair[0] for name, pair in COLOURS.items()}
    found: dict[str, list[tuple[indexes.Figure, str]]] = {}
    for name, notebook in notebooks.items():
        for number, figure in enumerate(indexes.figures_of(notebook), start=1):
            ending, data = indexes.picture_file(figure, light)
            file = folder / f"{name}-{number}.{ending}"
            file.write_bytes(data)
            found.setdefault(name, []).append((figure, f"_static/figures/{file.name}"))
    return found


def first_page(text: str, parts: list[Part], entries: list[catalogue.Entry]) -> str:
    """The landing page, with what is made for it."""
    facts = {entry.number: f"{entry.minutes} min, {len(entry.cards)} exercises" for entry in entries if entry.minutes}
    for mark, put in (
        (PICTURE_HERE, landing.cover),
        (PANEL_HERE, landing.panel_shown),
        (MAP_HERE, lambda: landing.the_map(entries)),
        (LISTED_HERE, lambda: landing_list(parts, facts)),
    ):
        if mark in text:
            text = text.replace(mark, put())
    return text


def head_and_ways(notebook: nbformat.NotebookNode, name: str, downloads: Path, settings: dict[str, str]) -> None:
    """Under a lesson's title its line as a subtitle, and the ways to its notebook; anchors for what lists link to."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = catalogue.with_anchors(cell.source)
    first = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if first is None:
        return
    file = ROOT / "notebooks" / name / f"{name}.ipynb"
    if file.exists():
        downloads.mkdir(exist_ok=True)
        shutil.copy(file, downloads)
    under = ways(name, settings, download=file.exists())

    def headed(match: re.Match[str]) -> str:
        subtitle = f'\n\n<p class="subtitle">{escape(match[2])}</p>' if match[2] else ""
        return f"# {match[1]}{subtitle}\n\n{under}\n"

    first.source = HEAD.sub(headed, first.source + "\n", count=1)


def ways(name: str, settings: dict[str, str], *, download: bool) -> str:
    """The ways to a lesson's notebook, as HTML: to take it away, to open it elsewhere, to see its source."""
    links = [f'<a href="../_static/notebooks/{name}.ipynb" download>Download the notebook</a>'] if download else []
    if settings["repository"]:
        repository, branch = settings["repository"].rstrip("/"), settings["branch"]
        links += [
            f'<a href="{in_colab(repository, branch, name)}">Open in Colab</a>',
            f'<a href="{in_binder(repository, branch, name)}">Open in Binder</a>',
            f'<a href="{repository}/blob/{branch}/solutions/{name}/{name}.py">Source</a>',
        ]
    return f'<ul class="ways">{"".join(f"<li>{link}</li>" for link in links)}</ul>' if links else ""


def drawn_colours() -> str:
    """The style sheet with the colours of diagrams in the light and in the dark theme, under the page's own switch."""
    light, dark = ("".join(f"--drawn-{name}:{pair[k]};" for name, pair in COLOURS.items()) for k in (0, 1))
    paper = "--drawn-paper:var(--color-background-primary);"  # no card: the page is the paper
    return (
        f"body{{{light}{paper}}}\n"
        f'@media not print{{body[data-theme="dark"]{{{dark}{paper}}}\n'
        f'@media (prefers-color-scheme:dark){{body:not([data-theme="light"]){{{dark}{paper}}}}}}}\n'
    )


def read_plan(plan: Path, solutions: Path) -> list[Part]:
    """The parts of the course; lessons that the plan does not know come last, in a part of their own."""
    found = {
        folder.name: folder / f"{folder.name}.ipynb"
        for folder in sorted(solutions.glob("[0-9][0-9]_*"))
        if folder.is_dir()
    }
    raise_if(
        [f"{notebook} is missing: execute the lesson first." for notebook in found.values() if not notebook.exists()]
    )
    parts = []
    for part in tomllib.loads(plan.read_text(encoding="utf-8"))["part"]:
        lessons = [Lesson(**lesson, notebook=found.pop(lesson["name"], None)) for lesson in part.pop("lesson")]
        parts.append(Part(**part, lessons=lessons))
    if found:
        parts.append(
            Part("More lessons", lessons=[Lesson(name, first_heading(path), "", path) for name, path in found.items()])
        )
    return parts


def first_heading(notebook: Path) -> str:
    """The title of a lesson, from its own first heading."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown" and (match := re.search(r"^# (.+)$", cell.source, re.MULTILINE)):
            return match[1].strip()
    raise SiteError(f"{notebook} has no heading of the first level (# Title).")


def landing_list(parts: list[Part], facts: dict[int, str] | None = None) -> str:
    """The lessons for the landing page, as MyST. facts: what to say of a lesson beside its line, by its number."""
    facts = facts or {}
    lines = []
    for numeral, part in zip(("I", "II", "III", "IV", "V")[: len(parts)], parts, strict=True):
        lines += [f"### {numeral} · {part.title}", "", part.line, "", ":::{container} lessons", ""]
        for lesson in part.lessons:
            if lesson.notebook:
                title = f"[{lesson.title}](lessons/{lesson.name}.ipynb)"
            else:
                title = f"[{lesson.title}]{{.to-come}} [to come]{{.badge}}"
            lines += [
                f"{lesson.number}. **{title}** \\",
                f"   {lesson.line} {facts.get(lesson.number, '')}".rstrip(),
                "",
            ]
        lines += [":::", ""]
    return "\n".join(lines)


TEACH = ("instructors", "instructors-attacks", "authors")
SET_UP = ("students", "hubs")
REFERENCE = ("notation", "glossary", "exercises", "mistakes", "figures", "runs", "implementations", "about")


def toctrees(parts: list[Part], others: list[str], playing: list[str] | None = None) -> str:
    """What the sidebar lists: the lessons that exist, by part, what can be played with, and then the other pages."""
    groups = [(part.title, [f"lessons/{lesson.name}" for lesson in part.lessons if lesson.notebook]) for part in parts]
    rest = [name for name in others if name not in SET_UP + TEACH + REFERENCE]
    groups += [
        ("Play", playing or []),
        ("Set up", [name for name in SET_UP if name in others]),
        ("Reference", [name for name in REFERENCE if name in others] + rest),
        ("Teach", [name for name in TEACH if name in others]),
    ]
    return "".join(
        "\n" + "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```"]) + "\n"
        for caption, pages in groups
        if pages
    )


def for_readers(notebook: nbformat.NotebookNode, name: str, known: set[str]) -> list[str]:
    """Change a lesson from what its author runs into what a reader sees; returns what is wrong with it."""
    problems = []
    kept = []
    for number, cell in enumerate(notebook.cells, start=1):
        if "remove-on-site" in cell.metadata.get("tags", []):
            continue
        kept.append(cell)
        if cell.cell_type == "markdown":
            cell.source = without_dead_lessons(links_for_site(cell.source), known)
            cell.source = CARD_STYLE.sub(r"\1", cell.source)
            missing = images_without_words(cell.source)
        elif cell.cell_type == "code":
            kept[-1:] = [*to_mend(cell), *without_drawing(cell)]
            fold(cell)
            missing = choose_outputs(cell)
        else:
            continue
        if missing:
            problems.append(
                f"{name}, cell {number} ({excerpt(cell.source)}): {missing} of its pictures "
                f"{'has' if missing == 1 else 'have'} no alternative text."
            )
    notebook.cells = kept
    # Progress bars leave their state here, and a page would fetch a script from another host to show it.
    notebook.metadata.pop("widgets", None)
    notebook.metadata.setdefault("language_info", {"name": "python"}).setdefault("pygments_lexer", "ipython3")
    return problems


def excerpt(source: str) -> str:
    """The first words of a cell, to find it by."""
    first = next((line.strip() for line in source.splitlines() if line.strip()), "empty")
    return first if len(first) <= 60 else first[:57] + "..."


def links_for_site(markdown: str) -> str:
    """Links as a page in lessons/ needs them, from links as a notebook in solutions/NN_topic/ has them."""
    markdown = re.sub(r"\]\(\.\./\.\./site/", "](../", markdown)
    return re.sub(r"\]\(\.\./(\d\d_\w+)/\1\.ipynb", r"](\1.ipynb", markdown)


def pages_for_site(markdown: str) -> str:
    """A page of site/ as Sphinx needs it, from the same page as a student's copy has it.

    There it lies two folders from the lessons, JupyterLab needs anchors where a heading has capitals, and links that
    come again and again are defined once, at the end.
    """
    markdown = re.sub(r"\.\./notebooks/(\d\d_\w+)/\1\.ipynb", r"lessons/\1.ipynb", LAB_ANCHOR.sub(r"\1", markdown))
    addresses = dict(DEFINED_LINK.findall(markdown))
    markdown = DEFINED_LINK.sub("", markdown)
    return re.sub(
        r"\[([^\[\]]+)\](?![\[(:])",
        lambda match: f"{match[0]}({addresses[match[1]]})" if match[1] in addresses else match[0],
        markdown,
    )


def without_dead_lessons(markdown: str, known: set[str]) -> str:
    """Keep the words of a link to a lesson that is still to come, and drop the link."""

    def keep(match: re.Match[str]) -> str:
        lesson = re.fullmatch(r"(?:(?:\.\./)?lessons/)?(\d\d_\w+)\.ipynb(?:#.*)?", match[2])
        return match[1] if lesson and lesson[1] not in known else match[0]

    return MARKDOWN_LINK.sub(keep, markdown)


def images_without_words(text: str) -> int:
    """How many images in Markdown or HTML have no alternative text."""
    bare_markdown = sum(not alt.strip() for alt in MARKDOWN_IMAGE.findall(text))
    return bare_markdown + sum(not HTML_ALT.search(tag) for tag in HTML_IMAGE.findall(text))


def to_mend(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """What students get to mend in this cell, as a cell of its own: readers meet it before the solution, as they do."""
    text = as_released(cell.source)
    if text == cell.source or not defines(grade_id(cell)).search(text):
        return []
    metadata = nbformat.NotebookNode(tags=[])
    return [nbformat.v4.new_code_cell(SOLUTION_MARK.sub("", text), id=f"{cell.id}-to-mend"[:64], metadata=metadata)]


def fold(cell: nbformat.NotebookNode) -> None:
    """Fold a solution, without the marks that nbgrader needs, and code that its author tagged "hide-input": it draws.

    Nothing else on a page is folded.
    """
    tags = [tag for tag in cell.metadata.get("tags", []) if tag not in FOLDS]
    if cell.metadata.get("nbgrader", {}).get("solution"):
        tags.append("hide-input")
        cell.source = SOLUTION_MARK.sub("", as_solved(cell.source)).rstrip()
    elif "hide-input" in cell.metadata.get("tags", []):
        tags.append("hide-input")
        cell.metadata["mystnb"] = cell.metadata.get("mystnb", {}) | CODE_PROMPTS
    if tags or "tags" in cell.metadata:
        cell.metadata["tags"] = tags


def choose_outputs(cell: nbformat.NotebookNode) -> int:
    """Reduce each output to the one form that a page shows; returns how many pictures have no alternative text.

    The text of a picture comes with it (`display(figure, metadata={"image/png": {"alt": "..."}})`), or stands in the
    metadata of its cell (`{"mystnb": {"image": {"alt": "..."}}}`), where one text serves all pictures of the cell.
    """
    of_the_cell = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
    shown, texts, missing = [], [], 0
    for output in cell.outputs:
        if output.output_type == "stream":
            shown += [output] if output.name == "stdout" else []
        elif output.output_type == "error":
            shown.append(output)
        elif mime := best_form(output.data):
            shown.append(output)
            output.data = nbformat.NotebookNode({mime: output.data[mime]})
            if mime == SVG:
                said = str(output.metadata.get(mime, {}).get("alt") or of_the_cell).strip()
                output.data = nbformat.NotebookNode({"text/html": in_page(output.data[mime], said)})
                missing += not said and "<title" not in output.data["text/html"]
            elif mime.startswith("image/"):
                texts.append(str(output.metadata.get(mime, {}).get("alt") or of_the_cell).strip())
                missing += not texts[-1]
            elif mime in ("text/html", "text/markdown"):
                missing += images_without_words(output.data[mime])
    cell.outputs = shown
    if texts:
        cell.metadata["alt_texts"] = texts  # conf.py hands them to the pictures
    return missing


def in_page(svg: str, said: str) -> str:
    """An SVG as a part of the page, where the page's style reaches it; `said` names it if it has no title itself."""
    svg = svg[svg.index("<svg") :]
    if "<title" not in svg and said:
        svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(said, quote=True)}"', 1)
    return f'<div class="in-page">{svg}</div>'


def best_form(data: nbformat.NotebookNode) -> str | None:
    """The MIME type that a page shows, if any."""
    if WIDGET in data:
        return None
    return next((mime for mime in SHOWN if mime in data), None)


# --- Sphinx, and what it made ----------------------------------------------------------------------------------------


def run_sphinx(source: Path, html: Path, doctrees: Path) -> None:
    """Render; a warning is an error, and is told without the noise of a good build."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python says of Sphinx's own parts; Sphinx says its warnings itself
        code = build_main(["-b", "html", "-q", "-W", "--keep-going", "-d", str(doctrees), str(source), str(html)])
    if code:
        lines = [line.replace(f"{source}/", "") for line in said.getvalue().splitlines() if line.strip()]
        raise SiteError("\n".join(lines))


class Page(HTMLParser):
    """What a page shows, loads and links to."""

    LOADING = dict.fromkeys("script img source iframe audio video embed".split(), "src") | {"object": "data"}
    LOADING_LINKS = set("stylesheet icon preload prefetch preconnect dns-prefetch modulepreload manifest".split())

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.images: list[dict[str, str]] = []
        self.ids: set[str] = set()
        self._in_style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.ids |= {values[key] for key in ("id", "name") if values.get(key)}
        self._in_style = tag == "style"
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "img":
            self.images.append(values)
        if values.get(self.LOADING.get(tag, "")):
            self.loaded.append(values[self.LOADING[tag]])
        if tag == "link" and self.LOADING_LINKS & set(values.get("rel", "").lower().split()):
            self.loaded.append(values.get("href", ""))
        self.loaded += [entry.split()[0] for entry in values.get("srcset", "").split(",") if entry.strip()]
        self.loaded += CSS_ADDRESS.findall(values.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loaded += CSS_ADDRESS.findall(data)


def page_problems(html: Path) -> list[str]:
    """What no page may have: an image without words, anything from another host, a link that leads nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(html.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        where = path.relative_to(html)
        silent = [image.get("src", "")[:60] for image in page.images if not image.get("alt", "").strip()]
        problems += [f"{where}: an image without alternative text: {name}" for name in silent]
        problems += [f"{where}: loads {address} from another host" for address in page.loaded if is_remote(address)]
        local = [address for address in page.links + page.loaded if not is_remote(address)]
        problems += [
            f"{where}: {address} leads nowhere" for address in local if not leads_somewhere(address, path, pages)
        ]
    for path in sorted(html.rglob("*.css")):
        addresses = CSS_ADDRESS.findall(path.read_text(encoding="utf-8"))
        problems += [f"{path.relative_to(html)}: loads {address} from another host" for address in addresses]
    return problems


def is_remote(address: str) -> bool:
    """Whether an address leaves the site."""
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("http", "https", "ftp")


def leads_somewhere(address: str, origin: Path, pages: dict[Path, Page]) -> bool:
    """Whether a local address names a file of the site and, where it says so, a place in it."""
    parts = urlsplit(address)
    if parts.scheme:  # data:, mailto:, javascript:
        return True
    target = (origin.parent / unquote(parts.path)).resolve() if parts.path else origin.resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return False
    page = next((page for path, page in pages.items() if path.resolve() == target), None)
    return not parts.fragment or page is None or unquote(parts.fragment) in page.ids


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m helpers.site.build", description="Build the site for readers.")
    parser.add_argument("--output", help="folder for the pages (default: site/_build/html)")
    parser.add_argument("--solutions", help="folder of the executed lessons (default: solutions)")
    options = parser.parse_args(arguments)
    code = build(options.output, solutions=options.solutions)
    if code == 0:
        print(f"Open {Path(options.output or 'site/_build/html') / 'index.html'} in a browser.")
    return code


if __name__ == "__main__":
    sys.exit(main())
