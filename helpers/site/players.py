"""The players on the site: in the pages that name one, and in each lesson where its notebook shows one.

helpers/players has the players themselves. A page of site/ names one by `<!-- insert: NAME -->`; in a lesson's page the
player takes the place of the cell that calls show_player. "pocket" and "hero" load a model, and live here alone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from helpers.data.model_files import POCKET_ENGLISH
from helpers.players import BY_HAND, SCRIPTS, STYLE, still
from helpers.site import pocket_export, switches

CALL = re.compile(r'^show_player\("([\w-]+)"\)$', re.MULTILINE)

# The style sheets and scripts of each player within _static/players, in the order of loading
ASSETS = {name: tuple(f"by-hand/{file}" for file in (STYLE, *scripts)) for name, scripts in SCRIPTS.items()} | {
    "pocket": ("players.css", "pocket.css", "pocket-model.js", "pocket-tokens.js", "pocket.js"),
    "hero": ("hero.css", "hero.js"),  # of the first page; it loads the model itself
    "switches": ("switches.css", "switches.js"),
}
BEFORE = {  # in MyST, before a player in a lesson's page
    "pocket": "The pocket model runs in this page too, with its heads to choose and to switch off. "
    "[A page of its own](../players/pocket.md) says what to try.\n\n"
}


def assets(players: Iterable[str]) -> list[str]:
    """The style sheets and scripts of these players within _static, in the order in which a page loads them."""
    return [f"players/{file}" for file in dict.fromkeys(file for player in players for file in ASSETS[player])]


def write_files(folder: Path) -> None:
    """Write what players load into _static/players: styles and scripts, and what they fetch on a click."""
    shutil.copytree(BY_HAND, folder / "by-hand", ignore=shutil.ignore_patterns("frame.js"), dirs_exist_ok=True)
    pocket_export.export(folder / "pocket", *pocket_export.pocket())
    pocket_export.export(folder / "pocket-english", *pocket_export.pocket(POCKET_ENGLISH))
    switches.write_panels(folder / "switches")


def insert(notebook: NotebookNode, lesson: str) -> list[str]:
    """Put each player of a lesson where a cell shows it; returns the problems found."""
    problems = []
    for at, cell in enumerate(notebook.cells):
        for name in CALL.findall(cell.source) if cell.cell_type == "code" else ():
            try:
                text = BEFORE.get(name, "") + still(name)
            except FileNotFoundError:
                problems.append(f"{lesson}: a cell shows the player {name!r}, and helpers/players/stills has none.")
                continue
            notebook.cells[at] = new_markdown_cell(text, id=f"player-{name}")
    return problems
