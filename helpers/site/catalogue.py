"""What the course's own files say of its lessons: for the site's map, its lists and its search.

A lesson's head says how long it takes and what it needs; its cards name the exercises; its mistakes.toml names what
students get wrong. Nothing of it is written a second time for the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from docutils.nodes import make_id

from helpers.authoring.mistakes import Mistake, read_mistakes

HEADING = re.compile(r"^(#{1,3}) (.+?)\s*$", re.MULTILINE)
NUMBERED = re.compile(r"^\d+ · ")
SUBTITLE = re.compile(r"\A# .+\n\n\*([^*\n]+)\*$", re.MULTILINE)
MINUTES = re.compile(r"\*\*It takes\*\*\s*\|\s*about (\d+) minutes")
NEEDS = re.compile(r"^\|\s*\*\*You need\*\*\s*\|(.*)\|\s*$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
LESSONS = re.compile(r"\blessons? ((?:\d+(?:, | and | to )?)+)")
CARD = re.compile(r"\*\*Exercise (\d+) · `(\w+)`\*\*(?:\s|&nbsp;)*(mend · )?(★+)☆* · (\d+) minutes? · ([\d.]+) points?")
CARD_BEGINS = re.compile(r'<div class="card"(?=[^>]*>\s*\*\*Exercise \d+ · `(\w+)`)')
CAPTION = re.compile(r'<div class="figure-caption">(.*?)</div>', re.DOTALL)


@dataclass(frozen=True)
class Card:
    """What the card of an exercise says. mend: published code is to be corrected."""

    number: int
    name: str
    stars: int
    minutes: int
    points: float
    mend: bool

    @property
    def anchor(self) -> str:
        """Where the exercise is on its lesson's page."""
        return anchor(self.name)


@dataclass
class Entry:
    """A lesson in the catalogue.

    title: the field's term for its subject. subtitle: the line under its first heading, if it has one. needs: the
    numbers of the lessons that it says it needs. sections: (heading, anchor) in order. mistakes: (exercise, Mistake).
    """

    name: str
    title: str
    line: str
    part: str
    subtitle: str = ""
    minutes: int = 0
    points: float = 0
    needs: tuple[int, ...] = ()
    cards: tuple[Card, ...] = ()
    sections: tuple[tuple[str, str], ...] = ()
    mistakes: tuple[Mistake, ...] = field(default=(), repr=False)

    @property
    def number(self) -> int:
        """Which lesson it is."""
        return int(self.name.split("_")[0])

    @property
    def page(self) -> str:
        """Its page, from the site's first."""
        return f"lessons/{self.name}.html"


def anchor(exercise: str) -> str:
    """The id of an exercise's card on its page."""
    return f"exercise-{exercise.lower().replace('_', '-')}"


def entry(name: str, title: str, line: str, part: str, notebook: Path) -> Entry:
    """A lesson's entry, from its executed notebook and the mistakes.toml beside it."""
    texts = [cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "markdown"]
    text = "\n\n".join(texts)
    found = Entry(name, title, line, part)
    headings = HEADING.findall(_without_code(text))
    found.subtitle = match[1] if (match := SUBTITLE.search(text)) else ""
    found.sections = tuple((_plain(words), section_anchor(words)) for marks, words in headings if marks == "##")
    found.minutes = int(match[1]) if (match := MINUTES.search(text)) else 0
    needed = NEEDS.search(text)
    found.needs = tuple(sorted(numbers(needed[1]) - {found.number})) if needed else ()
    found.cards = tuple(
        Card(int(number), exercise, len(stars), int(minutes), float(points), bool(mend))
        for number, exercise, mend, stars, minutes, points in CARD.findall(text)
    )
    found.points = sum(card.points for card in found.cards)
    found.mistakes = mistakes(notebook.parent / "mistakes.toml")
    return found


def mistakes(file: Path) -> tuple[Mistake, ...]:
    """The mistakes that a lesson's check knows by name; none where there is no such file."""
    if not file.exists():
        return ()
    return tuple(entry for entry in read_mistakes(file) if isinstance(entry, Mistake))


def numbers(words: str) -> set[int]:
    """The lessons that a sentence names: "lessons [1](...) to [4](...) and 6" means 1, 2, 3, 4 and 6."""
    found: set[int] = set()
    for run in LESSONS.findall(LINK.sub(r"\1", words)):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", run):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def with_anchors(markdown: str) -> str:
    """Each exercise's card with an id, so that lists and search lead to it."""
    return CARD_BEGINS.sub(lambda match: f'<div class="card" id="{anchor(match[1])}"', markdown)


def builds_on(entries: Iterable[Entry]) -> dict[int, tuple[int, ...]]:
    """For each lesson those that it builds on directly: without what another of them needs anyway."""
    needs = {entry.number: set(entry.needs) for entry in entries}

    def all_before(number: int) -> set[int]:
        return set().union(*({other} | all_before(other) for other in needs.get(number, ()) if other < number))

    return {
        number: tuple(sorted(before - set().union(*(all_before(other) for other in before))))
        for number, before in needs.items()
    }


def levels(direct: dict[int, tuple[int, ...]]) -> dict[int, int]:
    """How many lessons have to come before each, one after the other: its row on the map, from 0."""
    found: dict[int, int] = {}
    for number in sorted(direct):
        found[number] = max((found[other] + 1 for other in direct[number] if other in found), default=0)
    return found


def captions(texts: Iterable[str]) -> Iterator[str]:
    """The words under figures, plain."""
    for text in texts:
        for words in CAPTION.findall(text):
            yield _plain(words)


def _without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def _plain(words: str) -> str:
    words = re.sub(r"<[^>]+>", "", LINK.sub(r"\1", words))
    return " ".join(re.sub(r"[*`$]|\\[a-z]+|[{}]", "", words).split())


def section_anchor(heading: str) -> str:
    """The anchor that the site gives a heading, from its Markdown; a formula counts as it is written."""
    return make_id(re.sub(r"[*`$]", "", LINK.sub(r"\1", heading)))


def place(page: str, at: str) -> str:
    """A place on a page; the page itself where `at` is ""."""
    return f"{page}#{at}" if at else page
