"""One picture for each lesson: at the top of its page, and what a link to the page shows elsewhere.

It is one of the lesson's own figures on a white card of the size that link previews have.
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

SIZE, MARGIN = (1200, 630), 30
COLOURS = 24
WAYS_END = "</ul>\n"  # of the links under a lesson's title

# Which figure of lessons 1, 2, ..., as they are numbered on the page of figures
CHOSEN = (5, 6, 1, 5, 6, 2, 5, 6, 6, 7, 2, 8, 5, 6, 4, 1, 1, 8)


def chosen(lesson: SiteLesson) -> LessonFigure | None:
    """The figure that is named for a lesson, else its first that has pixels; None where no figure has."""
    figures = list(figures_of(lesson.notebook))
    named = CHOSEN[lesson.number - 1] if lesson.number <= len(CHOSEN) else 0
    return next((figure for figure in (*figures[named - 1 : named], *figures) if figure.png), None)


def card(png: bytes) -> Image.Image:
    """A picture in the middle of a white card, as large as it fits."""
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    scale = min((side - 2 * MARGIN) / length for side, length in zip(SIZE, picture.size, strict=True))
    picture = picture.resize([round(scale * length) for length in picture.size], Image.Resampling.LANCZOS)
    white = Image.new("RGBA", SIZE, "white")
    white.alpha_composite(picture, tuple((side - length) // 2 for side, length in zip(SIZE, picture.size, strict=True)))
    return white.convert("RGB").quantize(COLOURS)


def insert(notebook: NotebookNode, lesson: SiteLesson, folder: Path) -> None:
    """Write a lesson's card into a folder, and put it under the links at the top of its page, with its words."""
    figure = chosen(lesson)
    first = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if figure is None or first is None or WAYS_END not in first.source:
        return
    folder.mkdir(exist_ok=True)
    card(base64.b64decode(figure.png)).save(folder / f"{lesson.name}.png", optimize=True)
    place = f'From <a href="#{figure.place.anchor}">{escape(figure.place.section)}</a>' if figure.place.anchor else ""
    shown = (
        f'\n<figure class="first-look"><img src="../_static/previews/{lesson.name}.png" alt="{escape(figure.alt)}">'
        f"<figcaption>{place}</figcaption></figure>\n"
    )
    head, end, rest = first.source.partition(WAYS_END)
    first.source = head + end + shown + rest
