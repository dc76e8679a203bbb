"""What the course's own files say of its lessons: for the site's map, its lists and its search.

site/lessons.toml names the lessons, a lesson's head says how long it takes and what it needs, helpers/lessons lists
its exercises, and its mistakes.toml lists the mistakes that the check knows.
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from docutils.nodes import make_id

from helpers.authoring.build.lesson_source import Source
from helpers.authoring.build.mistakes import Mistake
from helpers.course import ROOT
from helpers.exercises import Exercise, UnknownLesson, load_lesson
from helpers.student.lessons import LINKED, LessonSummary, from_notebook, plan

HEADING = re.compile(r"^(#{1,3}) (.+?)\s*$", re.MULTILINE)
SUBTITLE = re.compile(r"\A# .+\n\n\*([^*\n]+)\*$", re.MULTILINE)
CARD_BEGINS = re.compile(r'<div class="card"(?=[^>]*>\s*\*\*Exercise \d+ · `(\w+)`)')
CARD = re.compile(r"^\*\*Exercise \d+ · `(\w+)`\*\*[^\n]*\n\n(.+?)\n\n(?=<)", re.MULTILINE | re.DOTALL)
SENTENCE = re.compile(r"\s*(.+?[.?!:])(?=\s|\Z)", re.DOTALL)
SHORT = 45  # characters; a shorter sentence needs the next one to say anything ("Write the module.")
CODE = re.compile(r"`([^`]+)`")
FENCED_CODE = re.compile(r"```.*?```", re.DOTALL)
UNPLANNED = "More lessons"


class NotExecuted(ValueError):
    """A lesson has no executed notebook."""


@dataclass(frozen=True)
class SiteLesson(LessonSummary):
    """A lesson of the site."""

    folder: Path
    """In solutions/."""
    notebook: nbformat.NotebookNode

    @property
    def page(self) -> str:
        """The path of its page."""
        return f"lessons/{self.name}.html"

    @property
    def further(self) -> nbformat.NotebookNode | None:
        """What else was measured, executed; None for a lesson without it."""
        file = Source(self.name, self.folder).further
        return nbformat.read(file, as_version=4) if file.is_file() else None

    @property
    def text(self) -> str:
        """The Markdown of all its cells."""
        return "\n\n".join(cell.source for cell in self.notebook.cells if cell.cell_type == "markdown")

    @property
    def code(self) -> str:
        """The code of all its cells."""
        return "\n".join(cell.source for cell in self.notebook.cells if cell.cell_type == "code")

    @property
    def subtitle(self) -> str:
        """The line under its title, "" without one."""
        match = SUBTITLE.search(self.text)
        return match[1] if match else ""

    @property
    def sections(self) -> list[tuple[str, str]]:
        """(heading, anchor) of each section."""
        headings = HEADING.findall(FENCED_CODE.sub("", self.text))
        return [(plain(words), section_anchor(words)) for marks, words in headings if marks == "##"]

    @cached_property
    def exercises(self) -> tuple[Exercise, ...]:
        """Its exercises in order; none for a lesson that helpers/exercises does not know."""
        try:
            return tuple(load_lesson(self.name))
        except UnknownLesson:
            return ()

    @cached_property
    def asks(self) -> dict[str, str]:
        """What each exercise asks for, as Markdown: the first sentence of its card, or two where that is short.

        Where these need the text above the card, site/asks.toml has a sentence that stands alone.
        """
        return {name: standing_alone().get(name) or first_sentence(text) for name, text in CARD.findall(self.text)}

    @cached_property
    def code_in(self) -> dict[str, str]:
        """The `code` in the text of each section, by its heading, and in the card of each exercise, by its name."""
        parts = re.split(r"^## (.+)$", FENCED_CODE.sub("", self.text), flags=re.MULTILINE)
        texts = {plain(heading): text for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
        texts |= CARD.findall(self.text)
        return {name: " ".join(dict.fromkeys(CODE.findall(text))) for name, text in texts.items()}

    @cached_property
    def mistakes(self) -> list[Mistake]:
        """The mistakes that a reader may meet, in the order of the exercises; each title once an exercise."""
        if not (self.folder / "mistakes.toml").exists():
            return []
        order = [exercise.name for exercise in self.exercises]
        mistakes: dict[tuple[str, str], Mistake] = {}
        for mistake in Source(self.name, self.folder).variants(Mistake):
            if mistake.exercise in order:
                mistakes.setdefault((mistake.exercise, mistake.title), mistake)
        return sorted(mistakes.values(), key=lambda mistake: order.index(mistake.exercise))


@functools.cache
def standing_alone() -> dict[str, str]:
    """What site/asks.toml has: sentences by the names of exercises."""
    return tomllib.loads((ROOT / "site" / "asks.toml").read_text(encoding="utf-8"))


def read_lessons(solutions: Path) -> list[SiteLesson]:
    """The executed lessons of a folder, in the order of the plan; those that it does not name come last.

    Raises NotExecuted for a lesson without its notebook.
    """
    planned = plan()
    folders = [folder for folder in sorted(solutions.glob("[0-9][0-9]_*")) if folder.is_dir()]
    missing = [folder for folder in folders if not (folder / f"{folder.name}.ipynb").exists()]
    if missing:
        names = ", ".join(folder.name for folder in missing)
        raise NotExecuted(f"These lessons have no notebook. Execute them first: {names}")
    lessons = []
    for folder in sorted(folders, key=lambda folder: (folder.name not in planned, folder.name)):
        notebook = nbformat.read(folder / f"{folder.name}.ipynb", as_version=4)
        about = from_notebook(folder.name, notebook, planned.get(folder.name, {"part": UNPLANNED}))
        needs = tuple(number for number in about.needs if number != about.number)
        lessons.append(
            SiteLesson(about.name, about.title, about.line, about.part, about.minutes, needs, folder, notebook)
        )
    return lessons


def levels(direct: dict[int, tuple[int, ...]]) -> dict[int, int]:
    """How many lessons have to come before each, one after the other: its level on the map, from 0."""
    level: dict[int, int] = {}
    for number in sorted(direct):
        level[number] = max((level[other] + 1 for other in direct[number] if other in level), default=0)
    return level


def first_sentence(text: str) -> str:
    """The first sentence of a text, on one line; a short one with the next."""
    said = ""
    for sentence in SENTENCE.findall(text):
        said = f"{said} {' '.join(sentence.split())}".strip()
        if len(said) >= SHORT:
            break
    return re.sub(r":$", ".", said)


def anchor(exercise: str) -> str:
    """The id of an exercise's card on its page."""
    return f"exercise-{exercise.lower().replace('_', '-')}"


def with_anchors(markdown: str) -> str:
    """Markdown with an id on each exercise's card, so that lists and search can link to it."""
    return CARD_BEGINS.sub(lambda match: f'<div class="card" id="{anchor(match[1])}"', markdown)


def section_anchor(heading: str) -> str:
    """The anchor that the site gives a heading, from its Markdown; a formula counts as it is written."""
    return make_id(re.sub(r"[*`$]", "", LINKED.sub(r"\1", heading)))


def plain(markdown: str) -> str:
    """Markdown as words: without links, emphasis, tags and the commands of formulas."""
    words = re.sub(r"<[^>]+>", "", LINKED.sub(r"\1", markdown))
    return " ".join(re.sub(r"[*`$]|\\[a-z]+|[{}]", "", words).split())
