"""The page of error messages and symptoms: what causes each in code like the course's, and where it is explained.

site/messages.toml has what is said of each; titles and addresses of what explains it are looked up here.
"""

from __future__ import annotations

import functools
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from helpers.authoring.inspect.links import glossary
from helpers.course import ROOT
from helpers.site import render
from helpers.site.course_index import SiteLesson, anchor
from helpers.site.indexes import Entry, marked_up
from helpers.site.terms import term_pages

PAGE = "messages"
LONGEST_HEADING = 72  # characters


@dataclass(frozen=True)
class CourseMessage:
    """A row of site/messages.toml."""

    name: str
    """Its place on the page."""
    says: tuple[str, ...]
    """The messages, or the symptom."""
    cause: str
    code: str
    see: tuple[str, ...]
    error: str = "RuntimeError"
    """The type of the exceptions, "" for a symptom."""
    prints: str = ""
    """What a symptom's code prints."""
    search: str = ""
    """Other words that readers may search for, with commas."""

    @property
    def heading(self) -> str:
        """The first message, or the beginning of a long one."""
        return shortened(self.says[0])

    @property
    def rest(self) -> list[str]:
        """What the heading does not show."""
        return [words for words in self.says if words != self.heading]

    @property
    def snippets(self) -> list[str]:
        """The lines that raise each of its messages, or those that show the symptom."""
        return self.code.strip().split("\n\n") if len(self.says) > 1 else [self.code.strip()]

    @property
    def address(self) -> str:
        """Its address, from the site's first page."""
        return f"{PAGE}.html#message-{self.name}"


@functools.cache
def messages() -> tuple[CourseMessage, ...]:
    """What site/messages.toml has."""
    table = tomllib.loads((ROOT / "site" / "messages.toml").read_text(encoding="utf-8"))
    return tuple(
        CourseMessage(name, **row | {"says": tuple(row["says"]), "see": tuple(row["see"])})
        for name, row in table.items()
    )


def page(lessons: Sequence[SiteLesson]) -> str:
    """The page as MyST. A link to a lesson that is missing is left out."""
    places = explanations(lessons)
    rows = [(message, [places[one] for one in message.see if one in places]) for message in messages()]
    return render("messages.md.j2", rows=rows, marked_up=marked_up)


def explanations(lessons: Sequence[SiteLesson]) -> Mapping[str, Markup]:
    """A link, as HTML, to each place that a row may name: exercises, sections, pages of terms and the glossary."""
    places: dict[str, tuple[str, str]] = {f"terms/{one.name}": (one.address, one.title) for one in term_pages()}
    places |= {f"glossary#{term.anchor}": (f"glossary.html#{term.anchor}", term.name) for term in glossary()}
    for lesson in lessons:
        for name in (exercise.name for exercise in lesson.exercises):
            label = Markup("<code>{}</code>, lesson {}").format(name, lesson.number)
            places[name] = (f"{lesson.page}#{anchor(name)}", label)
        for heading, place in lesson.sections:
            places[f"{lesson.name}#{place}"] = (f"{lesson.page}#{place}", f"{heading}, lesson {lesson.number}")
    link = Markup('<a href="{}">{}</a>')
    return {name: link.format(*place) for name, place in places.items()}


def entries() -> Iterator[Entry]:
    """What search knows of the messages: their words, the exceptions' types, and other words for them."""
    for message in messages():
        line = f"{'An error message' if message.error else 'A symptom'}: what causes it, and where it is explained"
        for words in message.says:
            also = (words, message.error, *message.search.split(", "))
            yield Entry(shortened(words), message.address, line, 1.4, also)


def shortened(words: str) -> str:
    """The beginning of a long message, at which it is known."""
    return textwrap.shorten(words, LONGEST_HEADING, placeholder=" …")
