"""Pages that answer a search for one term: definition, formula, code, figure, player, exercises, mistakes, bugs.

site/terms.toml names the pages and says what nothing else does; all the rest is joined here from the glossary, the
lessons and site/bugs.toml.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from helpers.authoring.build.mistakes import Mistake
from helpers.authoring.inspect.links import Term, glossary, slug
from helpers.course import ROOT
from helpers.exercises import Exercise
from helpers.players import SCRIPTS, still
from helpers.site import find_the_bug, render
from helpers.site.course_index import SiteLesson, anchor
from helpers.site.indexes import LessonFigure, PublishedBug, marked_up, published_bugs
from helpers.site.reader_notebook import in_page, links_for_site

ALSO_CALLED = re.compile(r"\s*Also called ([^.]+)\.")
ENTRY = re.compile(r"^## (.+)\n+((?:(?!## ).*\n?)+)", re.MULTILINE)  # of the glossary


@dataclass(frozen=True)
class TermPage:
    """A row of site/terms.toml."""

    name: str
    """Its file's."""
    title: str
    explains: tuple[str, ...]
    """Anchors of the glossary, the main one first."""
    purpose: str = ""
    """What it is for, as Markdown; "" where its one definition says so."""
    see: tuple[str, ...] = ()
    """The names of pages to read next. Each leads back."""
    figure: str = ""
    """How the alternative text of a lesson's figure begins, "" for none."""
    player: str = ""
    exercises: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    """Reports, "owner/name#number"."""
    search: str = ""
    """Other words that readers may search for, with commas."""
    formula: str = ""
    """TeX, with the letters of the notation."""
    where: str = ""
    """A sentence about the letters that the definition does not introduce."""
    code: str = ""
    """A few lines that show the term at work; no solution of an exercise."""
    prints: str = ""
    """What they print."""

    @property
    def address(self) -> str:
        """Its address, from the site's first page."""
        return f"terms/{self.name}.html"

    @property
    def language(self) -> str:
        """What the code is written with."""
        return "PyTorch" if "torch" in self.code else "Python"

    @property
    def in_title(self) -> set[str]:
        """The names that its title says, in small letters: two in "Byte-pair encoding (BPE)"."""
        return {self.title.lower()} | {name.strip().lower() for name in re.split(r"[(:)]", self.title)}

    @property
    def entries(self) -> list[Term]:
        """What the glossary has of it."""
        by_anchor = {term.anchor: term for term in glossary()}
        return [by_anchor[one] for one in self.explains]

    @property
    def published(self) -> list[PublishedBug]:
        """Its bugs of site/bugs.toml."""
        return [bug for bug in published_bugs() if bug.short in self.bugs]


@functools.cache
def term_pages() -> tuple[TermPage, ...]:
    """What site/terms.toml has."""
    table = tomllib.loads((ROOT / "site" / "terms.toml").read_text(encoding="utf-8"))
    listed = ("explains", "see", "exercises", "bugs")
    rows: dict[str, dict[str, Any]] = {
        name: {key: tuple(value) if key in listed else value for key, value in row.items()}
        for name, row in table.items()
    }
    return tuple(TermPage(name, **row) for name, row in rows.items())


@dataclass(frozen=True)
class Asked:
    """An exercise on such a page."""

    lesson: SiteLesson
    exercise: Exercise

    @property
    def address(self) -> str:
        """Its address, from a folder of the site."""
        return f"../{self.lesson.page}#{anchor(self.exercise.name)}"

    @property
    def asks(self) -> Markup:
        """The first words of its card, as Markdown."""
        return Markup(from_a_folder(links_for_site(self.lesson.asks.get(self.exercise.name, ""))))

    @property
    def mistakes(self) -> list[Mistake]:
        """The mistakes that its check knows."""
        return [mistake for mistake in self.lesson.mistakes if mistake.exercise == self.exercise.name]


def pages(
    lessons: Sequence[SiteLesson], figures: Mapping[str, Sequence[LessonFigure]], glossary_page: str
) -> dict[str, str]:
    """The pages as MyST, by their names, with a list of all as terms/index. One whose lesson is missing is left out.

    figures: those of each lesson, by its name. glossary_page: the glossary as the site has it.
    """
    numbers = {lesson.number for lesson in lessons}
    said = {slug(heading): text.strip() for heading, text in ENTRY.findall(glossary_page)}
    made = [page for page in term_pages() if page.entries[0].lesson in numbers]
    written = {f"terms/{page.name}": one_page(page, lessons, figures, said, made) for page in made}
    of_lessons = [(lesson, [page for page in made if page.entries[0].lesson == lesson.number]) for lesson in lessons]
    return {"terms/index": render("terms.md.j2", of_lessons=of_lessons, made=made)} | written


def one_page(
    page: TermPage,
    lessons: Sequence[SiteLesson],
    figures: Mapping[str, Sequence[LessonFigure]],
    said: Mapping[str, str],
    made: Sequence[TermPage],
) -> str:
    """One of the pages, as MyST. said: the glossary's words by anchor. made: all these pages."""
    asked = [
        Asked(lesson, exercise)
        for name in page.exercises
        for lesson in lessons
        for exercise in lesson.exercises
        if exercise.name == name
    ]
    home = page.entries[0].lesson
    return render(
        "term.md.j2",
        page=page,
        definitions=[(term.name, Markup(definition(said[term.anchor], page))) for term in page.entries],
        figure=drawn(page.figure, lessons, figures) if page.figure else None,
        player=Markup(still(page.player)) if page.player in SCRIPTS else None,
        asked=asked,
        questions=[bug for bug in find_the_bug.bugs(lessons) if bug.exercise in page.exercises],
        lesson=next(lesson for lesson in lessons if lesson.number == home),
        near=[other for other in made if other.name in page.see or page.name in other.see],
        marked_up=marked_up,
        slug=slug,
    )


def definition(said: str, page: TermPage) -> str:
    """The glossary's words on this page, where other names that its title says already are left out."""

    def others(match: re.Match[str]) -> str:
        names = [name for name in " ".join(match[1].split()).split(", ") if name.lower() not in page.in_title]
        return f" Also called {', '.join(names)}." if names else ""

    return from_a_folder(ALSO_CALLED.sub(others, said))


def drawn(
    alt: str, lessons: Sequence[SiteLesson], figures: Mapping[str, Sequence[LessonFigure]]
) -> Mapping[str, object] | None:
    """The figure whose alternative text begins like that: its drawing, caption and place; None without one."""
    for lesson in lessons:
        for number, figure in enumerate(figures[lesson.name], start=1):
            if figure.alt.startswith(alt):
                file = f"../_static/figures/{lesson.name}-{number}.{figure.ending}"
                picture = in_page(figure.svg, figure.alt) if figure.svg else f'<img src="{file}" alt="{figure.alt}">'
                return MappingProxyType({
                    "picture": Markup(picture),
                    "caption": Markup(from_a_folder(links_for_site(figure.caption))),
                    "address": f"../{figure.place.address(lesson)}",
                    "section": figure.place.section or lesson.title,
                    "lesson": lesson,
                })  # fmt: skip
    return None


def from_a_folder(markdown: str) -> str:
    """Markdown with the links that a page in a folder of the site needs, from those of a page beside the first one."""
    beside = re.sub(r"\]\((?=\d\d_)", "](lessons/", markdown)
    return re.sub(r"\]\((?:\.\./)?(?=[\w-]+\.(?:md|ipynb)|lessons/)", "](../", beside)


def with_ways_to(glossary_page: str, made: Sequence[str]) -> str:
    """The glossary with a link from each term to its page. made: the names of the pages that exist."""
    ways: dict[str, list[str]] = {}
    for page in term_pages():
        if f"terms/{page.name}" in made:
            for term in page.entries:
                ways.setdefault(term.anchor, []).append(f"[{page.title}](terms/{page.name}.md)")

    def with_way(entry: re.Match[str]) -> str:
        here = ways.get(slug(entry[1]), [])
        return f"{entry[0].rstrip()}\n\n{'On a page of its own: ' + ' · '.join(here) if here else ''}\n\n"

    return ENTRY.sub(with_way, glossary_page)
