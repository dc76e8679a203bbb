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

# By lesson, how the alternative text of its figure begins
CHOSEN = {
    "01_dot_product_attention": "Eight points in the plane",
    "02_queries_keys_values": "Two scatter plots of the same words",
    "03_scaling": "Three bar charts of the attention weights",
    "04_multi_head": "Two maps of attention weights over the sentence",
    "05_masking": "Three leak maps",
    "06_positions": "Left, a heat map of the encodings",
    "07_transformer_block": "Two panels against depth",
    "08_classifier": "Two panels of horizontal bars, one bar for each word",
    "09_character_generator": "A held-out passage of the manual",
    "10_encoder_decoder": "A heat map, the mean over the heads",
    "11_tokens": "Two panels of horizontal bars for English",
    "12_gpt2": "Two triangles of attention weights over a short piece",
    "13_before_transformers": "A heat map. Rows are the German words sieben",
    "14_bert": "Four maps of attention weights over one sentence",
    "15_transformer_xl": "Two maps of 12 outputs by 12 inputs",
    "16_sparse_attention": "Four columns: full",
    "17_going_big": "Four stacked bars",
    "18_since_gpt2": "Two heat maps, 8 experts by training step",
    "19_looking_inside": "Two triangles of attention weights, 47 by 47",
}


def chosen(lesson: SiteLesson) -> LessonFigure | None:
    """The figure that is named for a lesson, or the first of one without a name; None where there is none."""
    figures = [figure for figure in figures_of(lesson.notebook) if figure.png]
    named = CHOSEN.get(lesson.name, "")
    return next((figure for figure in figures if figure.alt.startswith(named)), None)


def card(png: bytes) -> Image.Image:
    """A picture in the middle of a white card, as large as it fits."""
    picture = Image.open(io.BytesIO(png)).convert("RGBA")
    scale = min((side - 2 * MARGIN) / length for side, length in zip(SIZE, picture.size, strict=True))
    picture = picture.resize([round(scale * length) for length in picture.size], Image.Resampling.LANCZOS)
    white = Image.new("RGBA", SIZE, "white")
    white.alpha_composite(picture, tuple((side - length) // 2 for side, length in zip(SIZE, picture.size, strict=True)))
    return white.convert("RGB").quantize(COLOURS)


def insert(notebook: NotebookNode, lesson: SiteLesson, folder: Path) -> list[str]:
    """Write a lesson's card into a folder, and put it under the links at the top of its page, with its words.

    Returns a problem where the figure that is named for the lesson does not exist.
    """
    figure = chosen(lesson)
    if figure is None and lesson.name in CHOSEN:
        return [f"{lesson.name}: no figure's alternative text begins with {CHOSEN[lesson.name]!r} (see previews.py)"]
    first = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if figure is None or first is None or WAYS_END not in first.source:
        return []
    folder.mkdir(exist_ok=True)
    card(base64.b64decode(figure.png)).save(folder / f"{lesson.name}.png", optimize=True)
    place = f'From <a href="#{figure.place.anchor}">{escape(figure.place.section)}</a>' if figure.place.anchor else ""
    shown = (
        f'\n<figure class="first-look"><img src="../_static/previews/{lesson.name}.png" alt="{escape(figure.alt)}">'
        f"<figcaption>{place}</figcaption></figure>\n"
    )
    head, end, rest = first.source.partition(WAYS_END)
    first.source = head + end + shown + rest
    return []
