"""One picture for each lesson, of its own figures: at the top of its page, and what a link to the page shows elsewhere.

The latter is a white card of the size that link previews have.
"""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path

from nbformat import NotebookNode
from PIL import Image

from helpers.site.course_index import SiteLesson
from helpers.site.indexes import LessonFigure, figures_of
from helpers.student.lessons import plan

SIZE, MARGIN = (1200, 630), 30
COLOURS = 24
WAYS_END = "</ul>\n"  # of the links under a lesson's title


def chosen(lesson: SiteLesson) -> tuple[int, LessonFigure] | None:
    """The figure that the plan names for a lesson, or the first of one that it does not name, with its number.

    None without any.
    """
    numbered = enumerate(figures_of(lesson.notebook), start=1)
    return next((found for found in numbered if found[1].png and found[1].alt.startswith(named(lesson))), None)


def named(lesson: SiteLesson) -> str:
    """How the alternative text of a lesson's figure begins, as site/lessons.toml says; "" where it says nothing."""
    return plan().get(lesson.name, {}).get("picture", "")


def card(png: bytes) -> Image.Image:
    """A picture in the middle of a white card, as large as it fits."""
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    scale = min((side - 2 * MARGIN) / length for side, length in zip(SIZE, picture.size, strict=True))
    picture = picture.resize([round(scale * length) for length in picture.size], Image.Resampling.LANCZOS)
    white = Image.new("RGBA", SIZE, "white")
    white.alpha_composite(picture, tuple((side - length) // 2 for side, length in zip(SIZE, picture.size, strict=True)))
    return white.convert("RGB").quantize(COLOURS)


def insert(notebook: NotebookNode, lesson: SiteLesson, folder: Path) -> list[str]:
    """Write a lesson's card into a folder, and put its figure under the links at the top of its page, with its words.

    The figure's file is that of the gallery (indexes.write_figures). Returns a problem where the figure that is named
    for the lesson does not exist.
    """
    found = chosen(lesson)
    if found is None and named(lesson):
        return [f"{lesson.name}: no figure's alternative text begins with {named(lesson)!r} (see site/lessons.toml)"]
    first = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if found is None or first is None or WAYS_END not in first.source:
        return []
    number, figure = found
    folder.mkdir(exist_ok=True)
    card(base64.b64decode(figure.png)).save(folder / f"{lesson.name}.png", optimize=True)
    place = f'From <a href="#{figure.place.anchor}">{escape(figure.place.section)}</a>' if figure.place.anchor else ""
    shown = (
        f'\n<figure class="first-look"><img src="../_static/figures/{lesson.name}-{number}.{figure.ending}"'
        f' data-card="../_static/previews/{lesson.name}.png" loading="lazy"'
        f' alt="{escape(figure.alt)}"><figcaption>{place}</figcaption></figure>\n'
    )
    head, end, rest = first.source.partition(WAYS_END)
    first.source = head + end + shown + rest
    return []
