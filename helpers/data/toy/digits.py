"""Pictures that are on every machine: digits in the typefaces that come with matplotlib.

    train, held_out = printed_digits()

Twenty faces (DejaVu, STIX, Computer Modern), several sizes and places. Three faces are held out whole, one of each
family, so that a model is asked about letters that it has never seen.
"""

from __future__ import annotations

import functools
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

FACES = (
    *(f"DejaVuSans{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSansMono{style}" for style in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{style}" for style in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"STIXGeneral{style}" for style in ("", "Bol", "Italic", "BolIta")),
    *("cmr10", "cmss10", "cmtt10", "cmb10"),
)
HELD_OUT = ("DejaVuSerif", "STIXGeneralBol", "cmss10")
PLACES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))  # beside the middle: columns, rows


def printed_digits(side: int = 16, sizes: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (pictures, side, side) in 0…1, 1 for ink: of seventeen faces, and of the three that are held out.

    sizes: how many sizes of type, the largest as high as fits. 50 · sizes pictures a face.
    """
    train = [_of_a_face(face, side, sizes) for face in FACES if face not in HELD_OUT]
    held_out = [_of_a_face(face, side, sizes) for face in FACES if face in HELD_OUT]
    return np.concatenate(train), np.concatenate(held_out)


def _of_a_face(face: str, side: int, sizes: int) -> np.ndarray:
    largest = side - 2  # the height of a digit in pixels, with room for the places around the middle
    drawn = []
    for high in range(largest, largest - sizes, -1):
        font = _font(face, high)
        for digit in "0123456789":
            left, top, right, bottom = font.getbbox(digit)
            for right_by, down_by in PLACES:
                picture = Image.new("L", (side, side))
                corner = ((side - left - right) // 2 + right_by, (side - top - bottom) // 2 + down_by)
                ImageDraw.Draw(picture).text(corner, digit, fill=255, font=font)
                drawn.append(np.asarray(picture, dtype=np.float32) / 255)
    return np.stack(drawn)


@functools.cache
def _font(face: str, high: int) -> ImageFont.FreeTypeFont:
    """The face in the largest size in which an 8 is at most `high` pixels high."""
    path = str(Path(matplotlib.get_data_path(), "fonts", "ttf", f"{face}.ttf"))
    size = 2 * high
    while True:
        font = ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
        left, top, right, bottom = font.getbbox("8")
        if bottom - top <= high and right - left <= high:
            return font
        size -= 1
