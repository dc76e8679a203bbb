"""The players: interactive figures of the site, where they appear, and their scripts.

A page of site/ names a player by `<!-- insert: NAME -->`. In a lesson's page a player is at the end of the section that
PLACES names: the lessons themselves know nothing of it. Before its script runs, and on paper, a player is the still
site/players/NAME.html: one block of HTML without an empty line, which would end it in Markdown. The tests compute the
numbers of the stills again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from helpers.course import ROOT
from helpers.site import pocket_export

STILLS = ROOT / "site" / "players"
ATX_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
FENCE = re.compile(r"^ *(```|~~~)")

# The style sheets and scripts of each player within site/_static/players, in the order of loading
BY_HAND = ("by-hand/by-hand.css", "by-hand/numbers.js")
IN_A_PLANE = (*BY_HAND, "by-hand/plane.js")
ASSETS = {
    "dot-product": (*IN_A_PLANE, "by-hand/dot-product.js"),
    "average": (*IN_A_PLANE, "by-hand/average.js"),
    "lookup": (*IN_A_PLANE, "by-hand/lookup.js"),
    "scaling": (*BY_HAND, "by-hand/scaling.js"),
    "mask": (*IN_A_PLANE, "by-hand/mask.js"),
    "translator": (*BY_HAND, "by-hand/translator.js"),
    "pocket": ("players.css", "pocket.css", "pocket-model.js", "pocket-tokens.js", "pocket.js"),
    "hero": ("hero.css", "hero.js"),  # of the first page; it loads the model itself
}


@dataclass(frozen=True)
class PlayerPlace:
    """A player is at the end of the section under this heading of this lesson, after this text in MyST."""

    lesson: str
    heading: str
    player: str
    text: str = ""


PLACES = (
    PlayerPlace("01_dot_product_attention", "A dot product is a match", "dot-product"),
    PlayerPlace("01_dot_product_attention", "Self-attention", "average"),
    PlayerPlace("02_queries_keys_values", "A dictionary with soft matches", "lookup"),
    PlayerPlace("03_scaling", "Divide by √d", "scaling"),
    PlayerPlace("05_masking", "Where the mask goes", "mask"),
    PlayerPlace("10_encoder_decoder", "What it looks at", "translator"),
    PlayerPlace(
        "12_gpt2",
        "What the heads look at",
        "pocket",
        "The pocket model runs in this page too, with its heads to choose and to switch off. "
        "[A page of its own](../players/pocket.md) says what to try.\n\n",
    ),
)


def still(player: str) -> str:
    """The HTML of a player before its script runs. FileNotFoundError for one that does not exist."""
    return (STILLS / f"{player}.html").read_text(encoding="utf-8").strip()


def assets(players: Iterable[str]) -> list[str]:
    """The style sheets and scripts of these players within _static, in the order in which a page loads them."""
    return [f"players/{file}" for file in dict.fromkeys(file for player in players for file in ASSETS[player])]


def write_files(folder: Path) -> None:
    """Write the files that players load on a click below _static/players."""
    pocket_export.export(folder / "pocket", *pocket_export.pocket())


def insert(notebook: NotebookNode, lesson: str) -> list[str]:
    """Put the players of a lesson into its notebook, each in a cell of its own; returns the problems found."""
    problems = []
    for place in (place for place in PLACES if place.lesson == lesson):
        cell = new_markdown_cell(place.text + still(place.player), id=f"player-{place.player}")
        if not insert_after_section(notebook, place.heading, cell):
            problems.append(
                f"{lesson} has no heading {place.heading!r} for the player {place.player!r}: "
                "name another one in PLACES of helpers/site/players.py."
            )
    return problems


def insert_after_section(notebook: NotebookNode, heading: str, player: NotebookNode) -> bool:
    """Put a cell at the end of the section of that heading, if there is one; a cell that goes on is cut in two."""
    level = 0
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            continue
        lines = cell.source.splitlines()
        for at, (depth, words) in headings(lines).items():
            if level and depth <= level:
                before, after = "\n".join(lines[:at]).strip(), "\n".join(lines[at:])
                rest = new_markdown_cell(after, id=f"{player.id}-after"[:64], metadata=cell.metadata)
                first = [new_markdown_cell(before, id=cell.id, metadata=cell.metadata)] if before else []
                notebook.cells[number : number + 1] = [*first, player, rest]
                return True
            if words == heading and not level:
                level = depth
    if level:
        notebook.cells.append(player)
    return level > 0


def headings(lines: list[str]) -> dict[int, tuple[int, str]]:
    """line: (level, words) of each heading of a Markdown text; headings in fenced code do not count."""
    levels, fenced = {}, False
    for at, line in enumerate(lines):
        fenced ^= bool(FENCE.match(line))
        if not fenced and (match := ATX_HEADING.match(line)):
            levels[at] = len(match[1]), match[2]
    return levels
