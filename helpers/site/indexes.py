"""Pages that list exercises, mistakes, figures and published bugs, and what search looks through first.

Each page is a template filled from what the lessons and their mistakes.toml say. No page shows a solution.
"""

from __future__ import annotations

import base64
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

import nbformat
from markupsafe import Markup

from helpers.authoring.build.mistakes import Mistake
from helpers.authoring.inspect.links import Term, slug
from helpers.course import ROOT
from helpers.players import SCRIPTS, title
from helpers.site import render
from helpers.site.course_index import FENCED_CODE, HEADING, SiteLesson, anchor, section_anchor
from helpers.site.example_panels import shown, wrong_answers
from helpers.theme import DIAGRAMS

BUGS = ROOT / "site" / "bugs.toml"


def pages(lessons: Sequence[SiteLesson], folder: Path) -> dict[str, str]:
    """The lists as MyST, by the page's name. folder: where the figures are written, each to a file of its own."""
    figures = {lesson.name: list(figures_of(lesson.notebook)) for lesson in lessons}
    write_figures(figures, folder)
    return {
        "exercises": render("exercises.md.j2", lessons=lessons, anchor=anchor),
        "mistakes": mistakes(lessons),
        "figures": render("figures.md.j2", lessons=lessons, figures=figures),
        "bugs": render("bugs.md.j2", lessons=lessons, bugs=published_bugs()),
    }


# --- mistakes --------------------------------------------------------------------------------------------------------


def mistakes(lessons: Sequence[SiteLesson]) -> str:
    """Some wrong answers with their panels, then every mistake that a check knows by name, by exercise."""
    names = {lesson.name for lesson in lessons}
    panels = [shown(**answer) for answer in wrong_answers()["mistakes"] if answer["lesson"] in names]
    tools = {"by_exercise": by_exercise, "with_code": with_code, "anchor": anchor}
    return render("mistakes.md.j2", lessons=lessons, panels=panels, **tools)


def by_exercise(lesson: SiteLesson) -> list[tuple[str, list[Mistake]]]:
    """The mistakes of each exercise that has any."""
    return [(name, list(some)) for name, some in groupby(lesson.mistakes, key=lambda mistake: mistake.exercise)]


def with_code(sentence: str) -> Markup:
    """A sentence as HTML, its `code` set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence, quote=False)))


# --- figures and published bugs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LessonPlace:
    """A section of a lesson: its heading and its anchor, "" at the top of the page."""

    section: str = ""
    anchor: str = ""

    def address(self, lesson: SiteLesson) -> str:
        """The address of this place, from the site's first page."""
        return f"{lesson.page}#{self.anchor}" if self.anchor else lesson.page

    def after(self, markdown: str) -> LessonPlace:
        """The place behind this Markdown: under its last heading of level 1 or 2, or here."""
        place = self
        for marks, heading in HEADING.findall(markdown):
            if marks != "###":
                section = re.sub(r"[`*$]|^\d+ · ", "", heading)
                place = LessonPlace(section, "" if marks == "#" else section_anchor(heading))
        return place


@dataclass(frozen=True)
class LessonFigure:
    """A picture that a lesson drew: SVG text or the base64 of a PNG."""

    alt: str
    """Its alternative text."""
    place: LessonPlace
    svg: str = ""
    png: str = ""

    @property
    def ending(self) -> str:
        """The ending of its file."""
        return "svg" if self.svg else "png"

    def content(self) -> bytes:
        """The bytes of its file. An SVG file has no page to take its colours from: it gets those of the light theme."""
        if not self.svg:
            return base64.b64decode(self.png)
        svg = self.svg[self.svg.index("<svg") :]
        svg = re.sub(r"var\(--drawn-([\w-]+)[^)]*\)", lambda match: DIAGRAMS[match[1]][0], svg)
        if "xmlns=" not in svg.partition(">")[0]:
            svg = svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        return svg.encode()


def figures_of(notebook: nbformat.NotebookNode) -> Iterator[LessonFigure]:
    """The pictures of an executed lesson, in order."""
    place = LessonPlace()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            place = place.after(cell.source)
            continue
        of_the_cell = cell.get("metadata", {}).get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell.get("outputs", []):
            svg, png = (output.get("data", {}).get(mime, "") for mime in ("image/svg+xml", "image/png"))
            if svg or png:
                titled = re.search(r"<title[^>]*>([^<]*)</title>", svg)
                alt = output.metadata.get("image/png", {}).get("alt") or of_the_cell or (titled[1] if titled else "")
                yield LessonFigure(alt, place, svg, png)


def write_figures(figures: dict[str, list[LessonFigure]], folder: Path) -> None:
    """Write each figure to its file, LESSON-NUMBER.svg or .png."""
    folder.mkdir()
    for lesson, some in figures.items():
        for number, figure in enumerate(some, start=1):
            (folder / f"{lesson}-{number}.{figure.ending}").write_bytes(figure.content())


@dataclass(frozen=True)
class PublishedBug:
    """A bug in a published program, of site/bugs.toml."""

    lesson: int
    report: str
    """Its address."""
    did: str
    saw: str
    """did, saw: a sentence each."""

    @property
    def program(self) -> str:
        """The repository, "owner/name"."""
        return "/".join(self.report.split("/")[3:5])


def published_bugs() -> list[PublishedBug]:
    """The bugs that lessons speak of, in the order of the lessons."""
    return [PublishedBug(**bug) for bug in tomllib.loads(BUGS.read_text(encoding="utf-8"))["bug"]]


# --- search ----------------------------------------------------------------------------------------------------------


def subjects(
    lessons: Sequence[SiteLesson],
    terms: Iterable[Term],
    guides: Mapping[str, str] = MappingProxyType({}),
    other_words: Mapping[str, str] = MappingProxyType({}),
) -> list[dict[str, object]]:
    """What search looks through before Sphinx does: lessons, their sections, terms, exercises, mistakes, players and
    guides.

    terms: of the glossary, whose aliases count too. guides: Markdown by page. other_words: "recommender, IMDb" by the
    name of a lesson or the heading of a guide's section. finder.js reads the result.
    """
    entries: list[dict[str, object]] = []

    def add(title: str, address: str, about: str, weight: float, also: str = "") -> None:
        entry = {"title": title, "at": address, "says": about, "weight": weight, "also": also, "order": len(entries)}
        entries.append(entry)

    terms = list(terms)
    for lesson in lessons:
        explained = [name for term in terms if term.lesson == lesson.number for name in (term.name, *term.aliases)]
        also = " . ".join([lesson.subtitle, lesson.line, *explained, *other_words.get(lesson.name, "").split(", ")])
        add(lesson.title, lesson.page, f"Lesson {lesson.number}. {lesson.line or lesson.subtitle}", 3.0, also)
    for lesson in lessons:
        name, page = f"lesson {lesson.number}, {lesson.title}", lesson.page
        for heading, place in lesson.sections:
            add(heading, f"{page}#{place}", f"L{name[1:]}", 1.2)
        for exercise in lesson.exercises:
            address, words = f"{page}#{anchor(exercise.name)}", exercise.name.replace("_", " ")
            add(exercise.name, address, f"An exercise of {name}", 1.5, words)
        for mistake in lesson.mistakes:
            add(mistake.title, f"{page}#{anchor(mistake.exercise)}", f"A mistake in {mistake.exercise}, {name}", 1.6)
    titles = {lesson.number: lesson.title for lesson in lessons}
    for term in terms:
        if term.lesson in titles:
            about = f"Explained in lesson {term.lesson}, {titles[term.lesson]}"
            add(term.name, f"glossary.html#{term.anchor}", about, 1.4, " . ".join(term.aliases))
    for player in SCRIPTS:
        add(title(player), f"players/index.html#player-{player}", "A figure to move by hand", 1.3)
    for page, text in guides.items():
        headings = HEADING.findall(FENCED_CODE.sub("", text))
        heading, *sections = (words for marks, words in headings if marks != "###")
        add(heading, f"{page}.html", "A guide", 1.5)
        for section in sections:
            also = other_words.get(section, "").replace(", ", " . ")
            add(section, f"{page}.html#{slug(section)}", f"In the guide {heading}", 1.3, also)
    return entries
