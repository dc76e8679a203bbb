"""The players on the site: what can be touched, where it stands, and its picture for where nothing can.

A page says `<!-- player: NAME -->`. In a lesson's page the player is put in before a heading, as PLACES says: lessons
stay as they are. conf.py gives a page that holds a player its style sheets and scripts: _static/players/NAME*.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from helpers.authoring import pocket, pocket_still

MARK = re.compile(r"^<!-- player: ([\w-]+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Player:
    """A player. still: draws its static picture, an SVG with a title. words: under the picture. opens: on its button.

    files: writes what it loads on a click into a folder, where there is any such thing.
    """

    title: str
    still: Callable[[], str]
    words: str
    opens: str
    files: Callable[[Path], None] | None = None

    def html(self, name: str) -> str:
        """What stands in a page, in one block of HTML (no empty line in it)."""
        return (
            f'<div class="player" data-player="{name}" id="player-{name}">\n'
            f'<p class="name">{self.title}</p>\n'
            f'<figure class="still">{self.still()}\n<figcaption class="quiet">{self.words}</figcaption></figure>\n'
            f'<p class="opener scripted row"><button type="button" class="primary">{self.opens}</button></p>\n'
            '<noscript><style>.player .scripted{display:none}</style><p class="quiet">With scripts this picture is a'
            " program to play with.</p></noscript>\n</div>"
        )


@dataclass(frozen=True)
class Place:
    """Where a player stands in a lesson's page: before a heading, after words that lead to it, in MyST."""

    lesson: str
    before: str
    player: str
    words: str


PLAYERS = {
    "pocket": Player(
        title="Play with the pocket GPT-2",
        still=pocket_still.drawn,
        words="An induction head of the pocket model at work: the arcs are its attention weights from the last token. "
        "Under them, what the model expects next.",
        opens="Open the model (2.3 MB)",
        files=lambda folder: pocket.export(folder, *pocket.pocket()),
    ),
}

PLACES = [
    Place(
        "12_gpt2",
        "## The real one",
        "pocket",
        "The pocket model runs in this page too, with its heads to choose and to switch off. "
        "[A page of its own](../players/pocket.md) says what to try.",
    ),
]


class NoPlace(ValueError):
    """A heading that a player should stand before is not there."""


def with_players(page: str) -> str:
    """A page with its players put in where it names them. KeyError for one that does not exist."""
    return MARK.sub(lambda match: PLAYERS[match[1]].html(match[1]), page)


def put_into(notebook: nbformat.NotebookNode, lesson: str) -> None:
    """Put a lesson's players into its notebook, each in a cell of its own. NoPlace where a heading has gone."""
    for place in (place for place in PLACES if place.lesson == lesson):
        number, at = _found(notebook, place)
        cell = notebook.cells[number]
        player = f"{place.words}\n\n{PLAYERS[place.player].html(place.player)}"
        parts = [cell.source[:at].rstrip(), player, cell.source[at:]]
        notebook.cells[number : number + 1] = [
            nbformat.v4.new_markdown_cell(part, id=f"{cell.get('id', 'cell')[:48]}-{k}", metadata=cell.metadata)
            for k, part in enumerate(parts)
            if part
        ]


def _found(notebook, place):
    """Which cell has the heading, and where in its text."""
    heading = re.compile(f"^{re.escape(place.before)}$", re.MULTILINE)
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and (match := heading.search(cell.source)):
            return number, match.start()
    raise NoPlace(f"{place.lesson} has no heading {place.before!r}, before which a player should stand.")


def pages(site: Path) -> list[str]:
    """The players' own pages: site/players/NAME.md."""
    return [f"players/{name}" for name in PLAYERS if (site / "players" / f"{name}.md").is_file()]


def stage(site: Path, source: Path, mended: Callable[[str], str]) -> None:
    """Write the players' own pages, and what they load on a click, into the folder that Sphinx reads.

    mended: what is done to the text of any page of the site.
    """
    for page in pages(site):
        target = source / f"{page}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_players(mended((site / f"{page}.md").read_text(encoding="utf-8"))), encoding="utf-8")
    for name, player in PLAYERS.items():
        if player.files:
            player.files(source / "_static" / "players" / name)
