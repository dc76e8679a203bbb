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
COLOURS = 96
WAYS_END = "</ul>\n"  # of the links under a lesson's title

# Which figure of each lesson, as they are numbered on the page of figures; the first that has pixels where none is named
CHOSEN = {1: 5, 2: 6, 3: 1, 4: 5, 5: 6, 6: 2, 7: 5, 8: 6, 9: 6, 10: 7, 11: 2, 12: 8, 13: 5, 14: 6, 15: 4, 16: 1, 17: 1, 18: 8}


def chosen(lesson: SiteLesson) -> LessonFigure | None:
    """The lesson's figure for its preview; None where no figure has pixels."""
    figures = list(figures_of(lesson.notebook))
    number = CHOSEN.get(lesson.number, 0)
    if 0 < number <= len(figures) and figures[number - 1].png:
        return figures[number - 1]
    return next((figure for figure in figures if figure.png), None)


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
