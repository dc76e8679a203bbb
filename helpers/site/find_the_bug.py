"""The page "Find the bug": each *fix* exercise's code, four explanations, and the check's panel under the right one."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from helpers.authoring.build.lesson_source import Answers, Source
from helpers.checking.check import Check
from helpers.checking.show.panel import as_html
from helpers.course import ROOT
from helpers.exercises import load_lesson
from helpers.notebooks import as_released, grade_id
from helpers.site import render
from helpers.site.course_index import SiteLesson, anchor
from helpers.site.example_panels import highlighted
from helpers.site.indexes import marked_up

FILE = ROOT / "site" / "find_the_bug.toml"
RIGHT_AT = (2, 0, 3, 1, 1, 3, 0, 2)  # where the right choice of each bug is, again and again


@dataclass(frozen=True)
class Bug:
    """One question."""

    number: int
    """Its place on the page, from 1."""
    lesson: SiteLesson
    exercise: str
    saw: str
    """What somebody saw who ran the code, a sentence or two."""
    choices: list[tuple[Markup, Markup, bool]]
    """(explanation, reply, whether it is right), in the order of the page."""

    @property
    def heading(self) -> str:
        """Its heading, as Markdown."""
        return f"{self.number} · {self.exercise}"

    @property
    def source(self) -> str:
        """The code that students get to fix."""
        cell = next(cell for cell in self.lesson.notebook.cells if grade_id(cell) == self.exercise)
        return as_released(cell.source)

    @property
    def code(self) -> Markup:
        """The same as HTML."""
        return Markup(highlighted(self.source))

    @property
    def panel(self) -> Markup:
        """The panel of its check, which does not see the cell: of an unchanged one it would say only that."""
        answer = Answers(Source(self.lesson.name, self.lesson.folder)).made_of(self.exercise, self.source)
        return Markup(as_html(Check(load_lesson(self.lesson.name)).verdict(self.exercise, answer)))

    @property
    def address(self) -> str:
        """The exercise's place, from the site's first page."""
        return f"{self.lesson.page}#{anchor(self.exercise)}"


def bugs(lessons: Sequence[SiteLesson]) -> list[Bug]:
    """The bugs of site/find_the_bug.toml in these lessons."""
    by_name = {lesson.name: lesson for lesson in lessons}
    found: list[Bug] = []
    for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["bug"]:
        if entry["lesson"] not in by_name:
            continue
        choices = [(marked_up(text), marked_up(reply), k == 0) for k, (text, reply) in enumerate(entry["choices"])]
        at = RIGHT_AT[len(found) % len(RIGHT_AT)]
        ordered = [*choices[1 : at + 1], choices[0], *choices[at + 1 :]]
        number, saw = len(found) + 1, marked_up(entry["saw"])
        found.append(Bug(number, by_name[entry["lesson"]], entry["exercise"], saw, ordered))
    return found


def page(lessons: Sequence[SiteLesson]) -> str:
    """The page, as MyST."""
    return render("find-the-bug.md.j2", bugs=bugs(lessons))
