"""Pages that list exercises, mistakes, figures and published bugs, and what search looks through first.

Each page is a template filled from what the lessons and their mistakes.toml say. No page shows a solution.
"""

from __future__ import annotations

import base64
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import nbformat
from markupsafe import Markup

from helpers.authoring.build.mistakes import Mistake
from helpers.authoring.inspect.links import Term, slug
from helpers.course import ROOT
from helpers.players import SCRIPTS, title
from helpers.site import render
from helpers.site.course_index import FENCED_CODE, HEADING, SiteLesson, anchor, section_anchor
from helpers.site.example_panels import shown, wrong_answers
from helpers.text import marked
from helpers.theme import DIAGRAMS

if TYPE_CHECKING:
    from helpers.site.terms import TermPage

BUGS = ROOT / "site" / "bugs.toml"
CAPTION = re.compile(r'<div class="figure-caption">\n(.+)\n</div>', re.DOTALL)


def pages(lessons: Sequence[SiteLesson], figures: dict[str, list[LessonFigure]]) -> dict[str, str]:
    """The lists as MyST, by the page's name. figures: those of each lesson, by its name."""
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
    tools = {"by_exercise": by_exercise, "marked_up": marked_up, "anchor": anchor}
    return render("mistakes.md.j2", lessons=lessons, panels=panels, **tools)


def by_exercise(lesson: SiteLesson) -> list[tuple[str, list[Mistake]]]:
    """The mistakes of each exercise that has any."""
    return [(name, list(some)) for name, some in groupby(lesson.mistakes, key=lambda mistake: mistake.exercise)]


def marked_up(sentence: str) -> Markup:
    """A sentence as HTML, its `code` set as code and its *emphasis* as emphasis."""
    return Markup(marked(sentence))


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
    caption: str = ""
    """Its caption, as Markdown; "" where the text below it is none."""

    @property
    def ending(self) -> str:
        """The ending of its file."""
        return "svg" if self.svg else "png"

    def content(self) -> bytes:
        """The bytes of its file. An SVG file has no page to take its colours from: it brings those of both themes."""
        if not self.svg:
            return base64.b64decode(self.png)
        head, end, rest = self.svg[self.svg.index("<svg") :].partition(">")
        if "xmlns=" not in head:
            head = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        light, dark = ("".join(f"--drawn-{name}:{pair[k]};" for name, pair in DIAGRAMS.items()) for k in (0, 1))
        style = f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
        return f"{head}{end}{style}{rest}".encode()


def figures_of(notebook: nbformat.NotebookNode) -> Iterator[LessonFigure]:
    """The pictures of an executed lesson, in order."""
    place = LessonPlace()
    for cell, below in zip_longest(notebook.cells, notebook.cells[1:]):
        if cell.cell_type == "markdown":
            place = place.after(cell.source)
            continue
        of_the_cell = cell.get("metadata", {}).get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell.get("outputs", []):
            svg, png = (output.get("data", {}).get(mime, "") for mime in ("image/svg+xml", "image/png"))
            if svg or png:
                titled = re.search(r"<title[^>]*>([^<]*)</title>", svg)
                alt = output.metadata.get("image/png", {}).get("alt") or of_the_cell or (titled[1] if titled else "")
                caption = CAPTION.match(below.source) if below else None
                yield LessonFigure(alt, place, svg, png, caption[1] if caption else "")


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

    @property
    def short(self) -> str:
        """The report as GitHub shortens it, "owner/name#number"."""
        return f"{self.program}#{self.report.rpartition('/')[2]}"


def published_bugs() -> list[PublishedBug]:
    """The bugs that lessons speak of, in the order of the lessons."""
    return [PublishedBug(**bug) for bug in tomllib.loads(BUGS.read_text(encoding="utf-8"))["bug"]]


# --- search ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """Something that search finds."""

    title: str
    address: str
    says: str
    """A line below it."""
    weight: float
    also: Sequence[str] = ()
    """Its other names."""
    code: str = ""
    """The code in its text."""
    last: bool = False
    """It comes after all others, and needs all of the words."""
    term: int = 0
    """For the page of a term: how many of its names, the title first, are the term's own. For these it comes first."""
    cited: Sequence[tuple[str, str]] = ()
    """For a paper: (label, address) of what cites it. It needs all of the words."""

    def as_json(self, order: int) -> dict[str, object]:
        """The same for finder.js."""
        entry = {"title": self.title, "at": self.address, "says": self.says, "weight": self.weight}
        entry |= {"also": " . ".join(filter(None, self.also)), "order": order}
        more = {"code": self.code, "last": self.last, "term": self.term, "cited": self.cited}
        return entry | {name: value for name, value in more.items() if value}


def subjects(
    lessons: Sequence[SiteLesson],
    terms: Iterable[Term],
    guides: Mapping[str, str] = MappingProxyType({}),
    other_words: Mapping[str, str] = MappingProxyType({}),
    pages: Iterable[TermPage] = (),
    others: Mapping[str, str] = MappingProxyType({}),
    more: Iterable[Entry] = (),
) -> list[dict[str, object]]:
    """What search looks through before Sphinx does: lessons, pages of terms, sections, exercises, mistakes, the other
    terms, players and guides.

    terms: of the glossary, whose aliases count too. guides: Markdown by page. other_words: "recommender, IMDb" by the
    name of a lesson or the heading of a guide, a section or another page. pages: of single terms. others: pages
    that are found by their headings alone, as Markdown. more: what other pages hold. finder.js reads the result.
    """
    terms, numbers = list(terms), {lesson.number for lesson in lessons}
    pages = [page for page in pages if page.entries[0].lesson in numbers]
    found = [
        *_of_lessons(lessons, terms, other_words),
        *_of_terms(lessons, terms, pages),
        *_of_exercises(lessons),
        *(Entry(title(one), f"players/index.html#player-{one}", "A figure to move by hand", 1.3) for one in SCRIPTS),
        *_of_guides(guides, others, other_words),
        *more,
    ]
    return [entry.as_json(order) for order, entry in enumerate(found)]


def _of_lessons(
    lessons: Sequence[SiteLesson], terms: Sequence[Term], other_words: Mapping[str, str]
) -> Iterator[Entry]:
    for lesson in lessons:
        explained = [name for term in terms if term.lesson == lesson.number for name in (term.name, *term.aliases)]
        number = (f"lesson {lesson.number}", str(lesson.number))
        also = (*number, lesson.subtitle, lesson.line, *explained, *other_words.get(lesson.name, "").split(", "))
        says = f"Lesson {lesson.number}. {lesson.line or lesson.subtitle}"
        yield Entry(lesson.title, lesson.page, says, 3.0, also)


def _of_terms(lessons: Sequence[SiteLesson], terms: Sequence[Term], pages: Sequence[TermPage]) -> Iterator[Entry]:
    for page in pages:
        names = [name for term in page.entries for name in (term.name, *term.aliases)]
        own = 2 + len(page.entries[0].aliases)
        says = "What it is, the formula, code, exercises, and what people get wrong"
        yield Entry(page.title, page.address, says, 3.0, (*names, *page.search.split(", ")), term=own)
    titles = {lesson.number: lesson.title for lesson in lessons}
    on_a_page = {page.explains[0] for page in pages}
    for term in terms:
        if term.lesson in titles and term.anchor not in on_a_page:
            says = f"Explained in lesson {term.lesson}, {titles[term.lesson]}"
            yield Entry(term.name, f"glossary.html#{term.anchor}", says, 2.0, term.aliases)


def _of_exercises(lessons: Sequence[SiteLesson]) -> Iterator[Entry]:
    """Sections, exercises and mistakes."""
    for lesson in lessons:
        name, page = f"lesson {lesson.number}, {lesson.title}", lesson.page
        for heading, place in lesson.sections:
            yield Entry(heading, f"{page}#{place}", f"L{name[1:]}", 1.2, code=lesson.code_in.get(heading, ""))
        for exercise in lesson.exercises:
            words = (exercise.name.replace("_", " "),)
            place, code = f"{page}#{anchor(exercise.name)}", lesson.code_in.get(exercise.name, "")
            yield Entry(exercise.name, place, f"An exercise of {name}", 1.5, words, code)
        for mistake in lesson.mistakes:
            says = f"A mistake in {mistake.exercise}, {name}"
            yield Entry(mistake.title, f"{page}#{anchor(mistake.exercise)}", says, 1.6, last=True)


def _of_guides(guides: Mapping[str, str], others: Mapping[str, str], other_words: Mapping[str, str]) -> Iterator[Entry]:
    def also(heading: str) -> list[str]:
        return other_words.get(heading, "").split(", ")

    for page, text in guides.items():
        headings = HEADING.findall(FENCED_CODE.sub("", text))
        heading, *sections = (words for marks, words in headings if marks != "###")
        yield Entry(heading, f"{page}.html", "A guide", 1.5, also(heading))
        for section in sections:
            yield Entry(section, f"{page}.html#{slug(section)}", f"In the guide {heading}", 1.3, also(section))
    for page, text in others.items():
        if found := HEADING.search(text):
            yield Entry(found[2], f"{page}.html", "A page of the course", 1.5, also(found[2]))
