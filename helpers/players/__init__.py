"""The players: interactive figures of the lessons, in a notebook and on the site.

    from helpers.players import show_player
    show_player("rotary")

stills/NAME.html is what a player shows before its script runs: one block of HTML without an empty line, which would
end it in Markdown. The tests compute its numbers again. by_hand/ has the style and the scripts, goals.toml what each
player asks a reader to do. On the site the player is part of the page (helpers/site/players.py); in a notebook it is a
frame, see `notebook_html`.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from html import escape, unescape
from pathlib import Path
from typing import Any

from IPython.display import display

from helpers.players.frame import frame, picture

HERE = Path(__file__).parent
BY_HAND = HERE / "by_hand"
STYLE = "by-hand.css"

# The scripts of each player within by_hand/, in the order of loading; "pocket" has its own, on the site alone.
IN_A_PLANE = ("numbers.js", "plane.js")
SCRIPTS = {
    "dot-product": (*IN_A_PLANE, "dot-product.js"),
    "average": (*IN_A_PLANE, "average.js"),
    "lookup": (*IN_A_PLANE, "lookup.js"),
    "scaling": ("numbers.js", "scaling.js"),
    "mask": (*IN_A_PLANE, "mask.js"),
    "rotary": ("numbers.js", "rotary.js"),
    "depth": ("numbers.js", "depth.js"),
    "next-byte": ("numbers.js", "chance.js", "next-byte.js"),
    "translator": ("numbers.js", "translator.js"),
    "policy": ("numbers.js", "policy.js"),
    "draft": ("numbers.js", "chance.js", "draft.js"),
    "patch": ("numbers.js", "patch.js"),
}
CONTROLS = '<div class="by-hand-controls">'
WHERE_LIVE = "<p>This player is at rest: run the cell to move it.</p>"
ON_THE_SITE = "<p>On the course's site, the model runs in the page: type to it, and switch its heads off.</p>"
TITLE = re.compile(r'<(?:strong|p) [^>]*(?:-title"|class="name")>(.*?)</(?:strong|p)>')


def show_player(name: str) -> None:
    """Show a player under a notebook's cell. FileNotFoundError for one that does not exist."""
    display({"text/html": notebook_html(name), "text/plain": f"Player: {title(name)}"}, raw=True)


def still(name: str) -> str:
    """The HTML of a player before its script runs. FileNotFoundError for one that does not exist."""
    html = (HERE / "stills" / f"{name}.html").read_text(encoding="utf-8").strip()
    return html.replace(CONTROLS, goal(name) + CONTROLS, 1)


@functools.cache
def goals() -> dict[str, dict[str, Any]]:
    """What goals.toml has: what a player asks for, `when` it is done, and what it says then."""
    return tomllib.loads((HERE / "goals.toml").read_text(encoding="utf-8"))


def goal(name: str) -> str:
    """The line above a player's controls that says what to try, "" for a player without a goal."""
    if name not in goals():
        return ""
    wanted = goals()[name]
    when, met = (escape(words) for words in (json.dumps(wanted["when"]), wanted["met"]))
    said = f'<b>Goal:</b> {escape(wanted["asks"])} <span class="by-hand-met" role="status"></span>'
    return f'<p class="by-hand-goal" data-when="{when}" data-met="{met}">{said}</p>\n'


def title(name: str) -> str:
    """The heading over a player, as text."""
    match = TITLE.search(still(name))
    return unescape(re.sub(r"<[^>]+>", "", match[1])) if match else name


def notebook_html(name: str) -> str:
    """A player as the output of a cell: its picture, and the frame that takes its place where scripts run.

    Untrusted notebooks, GitHub and formats without scripts drop the frame and show the picture.
    """
    html, style = still(name), (BY_HAND / STYLE).read_text(encoding="utf-8")
    if name not in SCRIPTS:
        return f"<div>{picture(html, style)}{ON_THE_SITE}</div>"
    scripts = [(BY_HAND / file).read_text(encoding="utf-8") for file in (*SCRIPTS[name], "frame.js")]
    return f"<div>{picture(html, style)}{WHERE_LIVE}</div>\n{frame(title(name), html, style, scripts)}"
