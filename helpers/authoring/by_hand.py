"""The players of the site that show attention by hand: which there are, and where each stands.

A player stands at the end of the section of a lesson's page that PLACES names, and on the page of all players
(site/players/index.md). The lessons themselves know nothing of it. What a player looks like before its script runs is
in `by_hand_pictures`; style and scripts are in site/_static/players/by-hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from helpers.authoring.by_hand_pictures import PICTURES
from helpers.authoring.stored_maps import NotAMap

__all__ = ["PLACES", "NotAMap", "Place", "assets", "put_in", "write_page"]

ASSETS = "_static/players/by-hand"
NO_PLANE = ("scaling", "translator")
PAGE = "players/index"


class Place(NamedTuple):
    """Where a player stands: at the end of the section under this heading of this lesson."""

    lesson: str
    heading: str
    player: str


PLACES = (
    Place("01_dot_product_attention", "A dot product is a match", "dot-product"),
    Place("01_dot_product_attention", "Self-attention", "average"),
    Place("02_queries_keys_values", "A dictionary with soft matches", "lookup"),
    Place("03_scaling", "Divide by √d", "scaling"),
    Place("05_masking", "Where the mask goes", "mask"),
    Place("10_encoder_decoder", "What it looks at", "translator"),
)

_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
_FENCE = re.compile(r"^ *(```|~~~)")
_HERE = re.compile(r"^<!-- player: ([\w-]+) -->$", re.MULTILINE)


def assets(players: Iterable[str], root: str) -> str:
    """The style sheet and the scripts of these players, as HTML. root: the way from the page to the site's own."""
    wanted = list(dict.fromkeys(players))
    scripts = ["numbers.js"]
    scripts += ["plane.js"] if any(player not in NO_PLANE for player in wanted) else []
    scripts += [f"{player}.js" for player in wanted]
    lines = [f'<script src="{root}{ASSETS}/{script}" defer></script>' for script in scripts]
    return "\n".join([f'<link rel="stylesheet" href="{root}{ASSETS}/by-hand.css">', *lines])


def put_in(notebook: NotebookNode, lesson: str) -> list[str]:
    """Put the players of a lesson into its notebook, each in a cell of its own; returns what is wrong."""
    problems = []
    places = [place for place in PLACES if place.lesson == lesson]
    for place in places:
        cell = new_markdown_cell(PICTURES[place.player](), id=f"player-{place.player}")
        if place is places[0]:
            cell.source = f"{assets((each.player for each in places), '../')}\n{cell.source}"
        if not _insert(notebook, place.heading, cell):
            problems.append(
                f"{lesson} has no heading {place.heading!r}, under which the player {place.player!r} stands: "
                "name another one in PLACES of helpers/authoring/by_hand.py."
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


def write_page(site: Path, source: Path, mended: Callable[[str], str]) -> list[str]:
    """Copy the page of all players, each in its place; returns what Sphinx is to list, nothing where there is no page.

    mended: what is done to the text of any page of the site.
    """
    page = site / f"{PAGE}.md"
    if not page.is_file():
        return []
    text = mended(page.read_text(encoding="utf-8"))
    named = _HERE.findall(text)
    text = _HERE.sub(lambda match: PICTURES[match[1]](), text)
    target = source / f"{PAGE}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"{text.rstrip()}\n\n{assets(named, '../')}\n", encoding="utf-8")
    return [PAGE]
