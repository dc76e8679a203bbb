"""Build the readers' site: copy site/ and the executed lessons to one folder, and render it with Sphinx.

    make site            # into site/_build/html

A lesson's page is its notebook from solutions/; no lesson is executed here. The build fails, and names the cell, when a
picture has no alternative text. It also fails when a page would load anything from another host or has a dead link.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import shutil
import sys
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import chain, groupby
from pathlib import Path

import nbformat
from sphinx.cmd.build import build_main

from helpers.authoring.inspect.links import glossary
from helpers.authoring.publish.repository_url import home, in_binder, in_colab, site_address
from helpers.authoring.publish.student_zip import make_bundle
from helpers.course import ROOT
from helpers.players import still
from helpers.site import (
    find_the_bug,
    front_page,
    indexes,
    messages,
    papers,
    players,
    postprocess,
    previews,
    recorded_runs,
    switches,
    terms,
)
from helpers.site.course_index import NotExecuted, SiteLesson, read_lessons
from helpers.site.link_check import page_problems
from helpers.site.reader_notebook import for_readers
from helpers.student.lessons import plan
from helpers.theme import DIAGRAMS

SITE = ROOT / "site"
INSERT = re.compile(r"^<!-- insert: ([\w-]+) -->$", re.MULTILINE)
TITLE = re.compile(r"^# (.+)\n(?:\n\*([^*\n]+)\*\n)?", re.MULTILINE)  # with the line under it
DEFINED_LINK = re.compile(r"^\[([^\]]+)\]: (\S+)\n?", re.MULTILINE)
LAB_ANCHOR = re.compile(r"^(#+ )<a id=\"[^\"]+\"></a>", re.MULTILINE)
SIDEBAR = {
    "Play": ("players/index", "players/pocket", "find-the-bug"),
    "Set up": ("students", "hubs"),
    "Reference": (
        *("notation", "glossary", "terms/index", "messages", "exercises", "mistakes", "figures"),
        *("runs", "further", "papers", "bugs", "end", "about"),
    ),
    "Teach": ("instructors", "instructors-attacks", "authors"),
}
FURTHER = "further-"  # <!-- insert: further-03_scaling -->: the way to what else was measured in a lesson
GUIDES = (*SIDEBAR["Set up"], *SIDEBAR["Teach"])


class SiteError(Exception):
    """The site cannot be built; the message says why, one problem a line."""


def build(output: Path | str | None = None, *, solutions: Path | str | None = None) -> int:
    """Build the site into `output` and return 0, or print to stderr what is wrong and return 1.

    The pages of an earlier build stay as they were until the new ones are complete.
    """
    output = Path(output or SITE / "_build" / "html").resolve()
    work = output.parent / f".{output.name}.part"
    try:
        refuse_to_replace_anything_else(output)
        shutil.rmtree(work, ignore_errors=True)
        published = settings(SITE)
        lessons = read_lessons(Path(solutions or ROOT / "solutions"))
        stage(work / "source", lessons, published)
        run_sphinx(work / "source", work / "html", work / "doctrees")
        postprocess.finish(work / "html", descriptions(lessons), published["address"])
        raise_if(page_problems(work / "html"))
        if output.exists():
            shutil.rmtree(output)
        (work / "html").rename(output)
    except (SiteError, NotExecuted, postprocess.FormulaError) as error:
        print(f"The site was not built.\n{error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"Open {output / 'index.html'} in a browser.")
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
    """Where the repository (see `make home`) and the site are published, "" while they are not."""
    file = site / "settings.toml"
    told = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {"repository": home(), "branch": "main"} | told | {"address": told.get("address") or site_address(home())}


def searched_first(
    lessons: Sequence[SiteLesson], pages: Mapping[str, str], cited: Sequence[papers.CitedPaper] = ()
) -> str:
    """What finder.js looks through, as JSON. pages: as MyST, by their names. cited: the papers."""
    guides = {name: (SITE / f"{name}.md").read_text(encoding="utf-8") for name in GUIDES}
    of_guides = tomllib.loads((SITE / "search.toml").read_text(encoding="utf-8"))["guides"]
    words = {name: lesson.get("search", "") for name, lesson in plan().items()} | of_guides
    others = {name: pages[name] for name in chain(*SIDEBAR.values()) if name not in GUIDES}
    more = [*messages.entries(), *papers.entries(cited)]
    entries = indexes.subjects(lessons, glossary(), guides, words, terms.term_pages(), others, more)
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def descriptions(lessons: Iterable[SiteLesson]) -> dict[str, str]:
    """The description of each lesson's page for search engines and link previews, by the page's path."""
    return {
        lesson.page: f"Lesson {lesson.number} of the course. {lesson.title}: {lesson.line}"
        for lesson in lessons
        if lesson.line
    }


# --- staging: what Sphinx reads --------------------------------------------------------------------------------------


def stage(source: Path, lessons: Sequence[SiteLesson], published: dict[str, str]) -> None:
    """Fill `source` with the pages and the lessons. published: the values of `settings`."""
    shutil.copytree(SITE, source, ignore=shutil.ignore_patterns("_build", "*.md"))
    static = source / "_static"
    (source / "lessons").mkdir()
    (static / "drawn.css").write_text(drawn_colours(), encoding="utf-8")
    players.write_files(static / "players")
    published = published | {"zip": students_zip(static / "course", published["repository"])}

    problems: list[str] = []
    for lesson in lessons:
        notebook = copy.deepcopy(lesson.notebook)
        add_ways(notebook, lesson.name, static / "notebooks", published)
        problems += previews.insert(notebook, lesson, static / "previews")
        problems += for_readers(notebook, lesson.name)
        problems += players.insert(notebook, lesson.name)
        switches.insert(notebook, lesson.name)
        nbformat.write(notebook, source / "lessons" / f"{lesson.name}.ipynb")
        if (further := lesson.further) is not None:
            fold_definitions(further)
            problems += for_readers(further, f"{lesson.name}/further")
            nbformat.write(further, source / "lessons" / further_page(lesson.name))
    raise_if(problems)

    pages = {}
    for page in [*SITE.glob("*.md"), *SITE.glob("players/*.md")]:
        name = page.relative_to(SITE).with_suffix("").as_posix()
        pages[name] = with_inserts(pages_for_site(page.read_text(encoding="utf-8")), lessons, published)
    cited = papers.papers(lessons, pages)
    figures = {lesson.name: list(indexes.figures_of(lesson.notebook)) for lesson in lessons}
    indexes.write_figures(figures, static / "figures")
    pages |= indexes.pages(lessons, figures)
    pages[papers.PAGE] = papers.page(cited)
    pages[messages.PAGE] = messages.page(lessons)
    pages["find-the-bug"] = find_the_bug.page(lessons)
    pages["runs"] = recorded_runs.page(ROOT / "helpers" / "data" / "recorded", lessons)
    pages["index"] += toctrees(lessons, pages)
    of_terms = terms.pages(lessons, figures, pages["glossary"])
    pages |= of_terms | {"glossary": terms.with_ways_to(pages["glossary"], [*of_terms])}
    searched = searched_first(lessons, pages, cited)
    (static / "subjects.js").write_text(f"window.SUBJECTS = {searched};\n", encoding="utf-8")
    (source / "terms").mkdir()
    for name, text in pages.items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")


def students_zip(folder: Path, repository: str) -> str:
    """Put the students' zip on the site, where no repository offers it; returns where it is, "" where there is none.

    It is made of what is committed: without git there is nothing to make it of.
    """
    if repository:
        return ""
    try:
        return f"_static/{folder.name}/{make_bundle(folder).name}"
    except SystemExit:
        return ""


def pages_for_site(markdown: str) -> str:
    """A page of site/ as Sphinx needs it, from the same page as a student's copy has it.

    There it lies two folders from the lessons, JupyterLab needs anchors where a heading has capitals, and links that
    come again and again are defined once, at the end.
    """
    markdown = re.sub(r"\.\./notebooks/(\d\d_\w+)/\1\.ipynb", r"lessons/\1.ipynb", LAB_ANCHOR.sub(r"\1", markdown))
    addresses = dict(DEFINED_LINK.findall(markdown))
    return re.sub(
        r"\[([^\[\]]+)\](?![\[(:])",
        lambda match: f"{match[0]}({addresses[match[1]]})" if match[1] in addresses else match[0],
        DEFINED_LINK.sub("", markdown),
    )


def with_inserts(page: str, lessons: Sequence[SiteLesson], published: dict[str, str]) -> str:
    """A page with what `<!-- insert: NAME -->` names: a part of the first page, a player, what else was measured."""

    def block(match: re.Match[str]) -> str:
        if match[1] == "start":
            return front_page.start_buttons(published["repository"], published["branch"], published["zip"])
        if match[1] == "copy":
            return front_page.copy(published["repository"], published["branch"], published["zip"])
        if match[1].startswith(FURTHER):
            measured = [one for one in lessons if one.name == match[1].removeprefix(FURTHER)]
            return "\n".join(map(way_to_further, measured))
        part = front_page.PARTS.get(match[1])
        return part(lessons) if part else still(match[1])

    return INSERT.sub(block, page)


def further_page(name: str) -> str:
    """The file of the page that says what else was measured in a lesson."""
    return f"{name}_further.ipynb"


def way_to_further(lesson: SiteLesson) -> str:
    """The link to that page, as MyST; the sidebar has it too."""
    link = f"{lesson.number} · {lesson.title} <lessons/{further_page(lesson.name)}>"
    return "\n".join(["```{toctree}", ":titlesonly:", link, "```"])


def fold_definitions(notebook: nbformat.NotebookNode) -> None:
    """Fold the first code cell of such a page: imports, and what the lesson has defined."""
    first = next((cell for cell in notebook.cells if cell.cell_type == "code"), None)
    if first is not None:
        first.metadata["tags"] = [*first.metadata.get("tags", []), "hide-input"]


def toctrees(lessons: Iterable[SiteLesson], pages: Iterable[str]) -> str:
    """The sidebar: the lessons by part, then the other pages. A page that SIDEBAR does not name is under Reference."""
    groups = {part: [f"lessons/{one.name}" for one in some] for part, some in groupby(lessons, lambda one: one.part)}
    groups |= {caption: list(names) for caption, names in SIDEBAR.items()}
    groups["Reference"] += sorted(set(pages) - {"index", "404"}.union(*SIDEBAR.values()))
    return "".join(
        "\n" + "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```"]) + "\n"
        for caption, names in groups.items()
    )


def add_ways(notebook: nbformat.NotebookNode, name: str, downloads: Path, settings: dict[str, str]) -> None:
    """Under a lesson's title put its subtitle and the ways to its notebook."""
    first = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if first is None:
        return
    file = ROOT / "notebooks" / name / f"{name}.ipynb"
    if file.exists():
        downloads.mkdir(exist_ok=True)
        shutil.copy(file, downloads)
    links = ways(name, settings, download=file.exists())

    def with_links(match: re.Match[str]) -> str:
        subtitle = f'\n\n<p class="subtitle">{escape(match[2])}</p>' if match[2] else ""
        return f"# {match[1]}{subtitle}\n\n{links}\n"

    first.source = TITLE.sub(with_links, first.source + "\n", count=1)


def ways(name: str, settings: dict[str, str], *, download: bool) -> str:
    """The ways to a lesson's notebook, as HTML: download it, open it elsewhere, see its source."""
    file = f'<a href="../_static/notebooks/{name}.ipynb" download>Download the notebook</a>'
    links = [f'{file} for your copy of <a href="../index.html#how-to-start">the course</a>'] if download else []
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
    light, dark = ("".join(f"--drawn-{name}:{pair[k]};" for name, pair in DIAGRAMS.items()) for k in (0, 1))
    paper = "--drawn-paper:var(--color-background-primary);"  # no card: the page is the paper
    light, dark = f"{light}{paper}--drawn-scheme:light;", f"{dark}{paper}--drawn-scheme:dark;"
    return (
        f"body{{{light}}}\n"
        f'@media not print{{body[data-theme="dark"]{{{dark}}}\n'
        f'@media (prefers-color-scheme:dark){{body:not([data-theme="light"]){{{dark}}}}}}}\n'
    )


def run_sphinx(source: Path, html: Path, doctrees: Path) -> None:
    """Render the staged pages. Raises SiteError with Sphinx's warnings, each of which is an error."""
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's about Sphinx's own parts; Sphinx reports its warnings itself
        code = build_main(["-b", "html", "-q", "-W", "--keep-going", "-d", str(doctrees), str(source), str(html)])
    if code:
        lines = [line.replace(f"{source}/", "") for line in stderr.getvalue().splitlines() if line.strip()]
        raise SiteError("\n".join(lines))
