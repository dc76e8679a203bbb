"""What the build puts into the site's first page: the cover, a check's panel, the map and the list of lessons."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence, Set
from html import escape
from itertools import groupby

from helpers.authoring.publish.repository_url import archive, in_binder, in_colab, version
from helpers.course import ROOT
from helpers.site import hero, render, switches
from helpers.site.course_index import SiteLesson, levels
from helpers.student.lessons import builds_on

FIRST = "01_dot_product_attention"
COLUMNS = 3
BETWEEN = 0.24  # between two rows of the map, in heights of a row; pages.css has the same number


def hero_figure(lessons: Sequence[SiteLesson]) -> str:
    """Which head copies? The small GPT-2 at work."""
    return hero.figure()


def start_buttons(repository: str, branch: str, zipped: str = "") -> str:
    """The ways in, as HTML: read, play, open elsewhere, get a copy.

    repository: its address, "" without one. zipped: where the site has the students' zip, "" where it has none.
    """
    ways = {"Read lesson 1": f"lessons/{FIRST}.html", "Play with a small GPT-2": "players/pocket.html"}
    if repository:
        ways["Open in Colab"] = in_colab(repository, branch, FIRST)
    ways["Get the course" if repository or zipped else "How to start"] = "#how-to-start"
    links = "".join(f'<li><a href="{escape(address)}">{name}</a></li>' for name, address in ways.items())
    return f'<ul class="start">{links}</ul>'


def copy(repository: str, branch: str, zipped: str = "") -> str:
    """How to get a copy of the course, as Markdown. repository, zipped: as `start_buttons` has them."""
    if zipped and not repository:
        link = f'<a href="{escape(zipped)}" download>the students\' zip</a>'
        return f"Get a copy: {link}. Unzip it, and open a terminal in its folder."
    if not repository:
        return "Ask whoever gave you this site for the students' zip, unzip it, and open a terminal in its folder."
    zipped, binder = archive(repository, version()), in_binder(repository, branch)
    colab = in_colab(repository, branch, FIRST)
    return (
        f"Get a copy: [the students' zip]({zipped}), or [the repository]({repository}) to clone. Without installing"
        f" anything: [lesson 1 in Colab]({colab}), or [all lessons in Binder]({binder})."
    )


def answer_to_switch(lessons: Sequence[SiteLesson]) -> str:
    """An answer whose parts can be switched, and the panel of its check."""
    return switches.switched_answer().figure()


def lesson_list(lessons: Sequence[SiteLesson]) -> str:
    """The lessons by part, as MyST."""
    parts = tomllib.loads((ROOT / "site" / "lessons.toml").read_text(encoding="utf-8"))["part"]
    lines = {part["title"]: part["line"] for part in parts}
    by_part = [(title, lines.get(title, ""), list(some)) for title, some in groupby(lessons, lambda one: one.part)]
    return render("lessons.md.j2", parts=by_part, numerals=("I", "II", "III", "IV", "V"))


def lesson_map(lessons: Sequence[SiteLesson]) -> str:
    """All lessons as a list of links, laid out by what each builds on, with lines between them."""
    direct = builds_on(lessons)
    places = layout(direct)
    rows = max((row for row, _ in places.values()), default=0) + 1
    taken = set(places.values())
    ends = [(places[other], places[number]) for number in places for other in direct[number] if other in places]
    paths = [path(start, end, taken) for start, end in ends]
    size = f"{COLUMNS} {rows + (rows - 1) * BETWEEN:.2f}"
    return render("map.html.j2", lessons=lessons, direct=direct, places=places, paths=paths, size=size)


def layout(direct: dict[int, tuple[int, ...]]) -> dict[int, tuple[int, int]]:
    """A (row, column) for each lesson: a row for each level, more where a level has more lessons than columns.

    A lesson alone in its level is below the first one that it builds on, one that is left over in the middle; two leave
    the middle free. direct: the lessons that each builds on.
    """
    level = levels(direct)
    places: dict[int, tuple[int, int]] = {}
    row = 0
    for depth in sorted(set(level.values())):
        members = sorted(number for number in level if level[number] == depth)
        for first in range(0, len(members), COLUMNS):
            in_row = members[first : first + COLUMNS]
            above = [places[other][1] for other in direct[in_row[0]] if other in places]
            columns = {1: [1] if first else (above or [1])[:1], 2: [0, 2], 3: [0, 1, 2]}[len(in_row)]
            places |= {number: (row, column) for number, column in zip(in_row, columns, strict=True)}
            row += 1
    return places


def path(start: tuple[int, int], end: tuple[int, int], taken: Set[tuple[int, int]] = frozenset()) -> str:
    """A line from the lower edge of one place to the upper edge of another, in columns and rows, for SVG.

    It passes the rows between in a column that is free there, or between two columns, and goes sideways only between
    rows. taken: the places that hold a lesson.
    """
    x, to_x = start[1] + 0.5, end[1] + 0.5
    passed = range(start[0] + 1, end[0])
    free = [column + 0.5 for column in (start[1], end[1]) if not any((row, column) in taken for row in passed)]
    nearest = sorted(range(1, COLUMNS), key=lambda gap: (abs(gap - x) + abs(gap - to_x), abs(gap - to_x)))
    lane = [*free, *nearest][0]
    line = f"M{x} {start[0] * (1 + BETWEEN) + 1:.2f}"
    for row, before, after in ((start[0] + 1, x, lane), (end[0], lane, to_x)):
        y, bend = row * (1 + BETWEEN), BETWEEN * 0.9
        if before != after:
            line += f"V{y - BETWEEN:.2f}C{before} {y - BETWEEN + bend:.2f} {after} {y - bend:.2f} {after} {y:.2f}"
    return f"{line}V{end[0] * (1 + BETWEEN):.2f}"


PARTS = {"hero": hero_figure, "switches": answer_to_switch, "map": lesson_map, "lessons": lesson_list}
