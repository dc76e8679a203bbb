"""The players on the site: what can be touched, where it stands, and what stands there before its script runs.

A page of the site says `<!-- player: NAME -->`. In a lesson's page a player stands at the end of the section that
PLACES names: the lessons themselves know nothing of it. conf.py gives a page that holds players what `assets` says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from helpers.site import by_hand_pictures, pocket, pocket_still

STATIC = "players"  # within _static, where their style sheets and scripts are
FOLDER = "players"  # within site/, where the pages of their own are

_MARK = re.compile(r"^<!-- player: ([\w-]+) -->$", re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
_FENCE = re.compile(r"^ *(```|~~~)")


@dataclass(frozen=True)
class Player:
    """A player. html: what stands in a page, one block without an empty line. assets: its style sheets and scripts.

    files: writes what it loads on a click into a folder, where there is any such thing.
    """

    html: Callable[[], str]
    assets: tuple[str, ...]
    files: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class Place:
    """Where a player stands: at the end of the section under this heading of this lesson, after words in MyST."""

    lesson: str
    heading: str
    player: str
    words: str = ""


def _by_hand(name: str, *, plane: bool = True) -> Player:
    scripts = ["numbers.js", *(["plane.js"] if plane else []), f"{name}.js"]
    return Player(
        html=by_hand_pictures.PICTURES[name],
        assets=("by-hand/by-hand.css", *(f"by-hand/{script}" for script in scripts)),
    )


PLAYERS = {
    "dot-product": _by_hand("dot-product"),
    "average": _by_hand("average"),
    "lookup": _by_hand("lookup"),
    "scaling": _by_hand("scaling", plane=False),
    "mask": _by_hand("mask"),
    "translator": _by_hand("translator", plane=False),
    "pocket": Player(
        html=pocket_still.opener,
        assets=("players.css", "pocket.css", "pocket-model.js", "pocket-tokens.js", "pocket.js"),
        files=lambda folder: pocket.export(folder, *pocket.pocket()),
    ),
}

PLACES = (
    Place("01_dot_product_attention", "A dot product is a match", "dot-product"),
    Place("01_dot_product_attention", "Self-attention", "average"),
    Place("02_queries_keys_values", "A dictionary with soft matches", "lookup"),
    Place("03_scaling", "Divide by √d", "scaling"),
    Place("05_masking", "Where the mask goes", "mask"),
    Place("10_encoder_decoder", "What it looks at", "translator"),
    Place(
        "12_gpt2",
        "What the heads look at",
        "pocket",
        "The pocket model runs in this page too, with its heads to choose and to switch off. "
        "[A page of its own](../players/pocket.md) says what to try.",
    ),
)


def assets(players: Iterable[str]) -> list[str]:
    """The style sheets and scripts of these players within _static, in the order in which a page loads them."""
    wanted = [file for name in players for file in PLAYERS[name].assets]
    return [f"{STATIC}/{file}" for file in dict.fromkeys(wanted)]


def with_players(page: str) -> str:
    """A page with its players put in where it names them. KeyError for one that does not exist."""
    return _MARK.sub(lambda match: PLAYERS[match[1]].html(), page)


def put_in(notebook: NotebookNode, lesson: str) -> list[str]:
    """Put the players of a lesson into its notebook, each in a cell of its own; returns what is wrong."""
    problems = []
    for place in (place for place in PLACES if place.lesson == lesson):
        words = f"{place.words}\n\n" if place.words else ""
        cell = new_markdown_cell(words + PLAYERS[place.player].html(), id=f"player-{place.player}")
        if not _insert(notebook, place.heading, cell):
            problems.append(
                f"{lesson} has no heading {place.heading!r}, under which the player {place.player!r} stands: "
                "name another one in PLACES of helpers/site/players.py."
            )
    return problems


def _insert(notebook: NotebookNode, heading: str, player: NotebookNode) -> bool:
    """Put a cell at the end of a section, if there is a section of that heading: a cell that goes on is cut in two."""
    level = 0
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            continue
        lines = cell.source.splitlines()
        for at, (depth, words) in headings(lines).items():
            if level and depth <= level:
                before, after = "\n".join(lines[:at]).strip(), "\n".join(lines[at:])
                rest = new_markdown_cell(after, id=f"{player.id}-after"[:64], metadata=cell.metadata)
                kept = [new_markdown_cell(before, id=cell.id, metadata=cell.metadata)] if before else []
                notebook.cells[number : number + 1] = [*kept, player, rest]
                return True
            if words == heading and not level:
                level = depth
    if level:
        notebook.cells.append(player)
    return level > 0


def headings(lines: list[str]) -> dict[int, tuple[int, str]]:
    """line: (level, words) of each heading of a Markdown text; what is fenced is code."""
    found, fenced = {}, False
    for at, line in enumerate(lines):
        fenced ^= bool(_FENCE.match(line))
        if not fenced and (match := _HEADING.match(line)):
            found[at] = len(match[1]), match[2]
    return found


def pages(site: Path) -> list[str]:
    """The players' own pages, those of site/players, without their ending."""
    return sorted(f"{FOLDER}/{file.stem}" for file in (site / FOLDER).glob("*.md"))


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
            player.files(source / "_static" / STATIC / name)
