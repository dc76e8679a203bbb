"""Numbers read back from the maps that a lesson stores as pictures.

Lesson 10 draws where its trained model looks, and keeps the pictures, not the model. In the stored SVG a map is an
image with one colour for each share, and the colour bar beside it is the scale: so the shares come back from the
colours, to within half a step of the scale, without any training. What the site shows is then what the lesson's own
figures show.
"""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
from PIL import Image

_IMAGE = re.compile(r"<image\b[^>]*data:image/png;base64,\s*([^\"]+)[^>]*>")
_UPSIDE_DOWN = "scale(1 -1)"  # in the transform of an image whose first line is its lowest
OFF_BY = 0.05  # how far from 1 the shares of a row may add up to before it is taken for another kind of map
TWO_READINGS = 0.02  # how far the map of the mean and the mean of the maps may be apart


class NotAMap(ValueError):
    """A stored figure is not what is read here; the message says which one and why."""


def stored_svgs(notebook: Path, code: str) -> list[str]:
    """The SVGs that the cell with this line of code has stored. NotAMap where there is none."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and code in "".join(cell["source"]):
            found = ["".join(out["data"]["image/svg+xml"]) for out in cell["outputs"] if "svg" in str(out.get("data"))]
            if found:
                return found
    raise NotAMap(f"{notebook.name} has no figure that is stored as SVG in a cell with the line {code!r}.")


def source_of(notebook: Path, code: str) -> str:
    """The cell with this line of code. NotAMap where there is none."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and code in (source := "".join(cell["source"])):
            return source
    raise NotAMap(f"{notebook.name} has no cell with the line {code!r}.")


def words_of(code: str, name: str) -> list[str]:
    """The words of a sentence that the code gives a name. NotAMap where it does not."""
    found = re.search(rf'^{name} = "(.+)"$', code, re.MULTILINE)
    if not found:
        raise NotAMap(f"No sentence is called {name!r} where the maps are made.")
    return found[1].split()


def images(svg: str) -> list[np.ndarray]:
    """The images inside an SVG, in order, as they are seen: (height, width, 3)."""
    found = []
    for tag in _IMAGE.finditer(svg):
        data = io.BytesIO(base64.b64decode(re.sub(r"\s+", "", tag[1])))
        pixels = np.asarray(Image.open(data).convert("RGB")).astype(int)
        found.append(pixels[::-1] if _UPSIDE_DOWN in tag[0] else pixels)
    return found


def scale(bar: np.ndarray) -> np.ndarray:
    """The colours of a bar that stands upright, from the least share to the largest: (steps, 3)."""
    upwards = bar[::-1, bar.shape[1] // 2]
    changes = np.any(upwards[1:] != upwards[:-1], axis=1)
    return upwards[np.concatenate([[True], changes])]


def shares(image: np.ndarray, colours: np.ndarray, rows: int, columns: int) -> list[list[float]]:
    """The map in an image: (rows, columns), each row adding up to 1.

    NotAMap where a colour is not on the scale, or where a row's shares are far from adding up to 1.
    """
    height, width, _ = image.shape
    at = (np.arange(rows) + 0.5) * height / rows, (np.arange(columns) + 0.5) * width / columns
    cells = image[np.ix_(at[0].astype(int), at[1].astype(int))]  # (rows, columns, 3)
    apart = np.abs(cells[:, :, None] - colours).sum(axis=-1)  # (rows, columns, steps)
    if apart.min(axis=-1).max() > 3:
        raise NotAMap("A cell has a colour that the colour bar does not have.")
    found = (apart.argmin(axis=-1) + 0.5) / len(colours)
    found[apart.argmin(axis=-1) == 0] = 0.0  # less than a step: most of them are far less
    sums = found.sum(axis=1, keepdims=True)
    if np.abs(sums - 1).max() > OFF_BY:
        raise NotAMap(f"The shares of a row add up to {sums.flat[np.abs(sums - 1).argmax()]:.2f}, not to 1.")
    return (found / sums).round(3).tolist()


def cross_attention(notebook: Path) -> dict[str, list]:
    """Where lesson 10's model looks as it writes each word, from the lesson's two figures of it.

    Returns english, s words; written, t of them; and of the last block's cross-attention mean (t, s), the mean over the
    heads, and heads (h, t, s). NotAMap where the figures are not these.
    """
    code = source_of(notebook, "maps = cross_maps(finished, english, german)")
    english, german = (words_of(code, name) for name in ("english", "german"))
    written = [*german, "<stop>"]
    whole, *bars = images(stored_svgs(notebook, "plots.heat(maps[-1].mean(0)")[0])
    *apart, _ = images(stored_svgs(notebook, "plots.head_grid(maps[-1]")[0])
    if len(bars) != 1 or not apart:
        raise NotAMap(f"The maps of attention in {notebook.name} should be images with a colour bar behind them.")
    colours, size = scale(bars[0]), (len(written), len(english))
    mean, heads = shares(whole, colours, *size), [shares(image, colours, *size) for image in apart]
    differ = np.abs(np.mean(heads, axis=0) - mean).max()
    if differ > TWO_READINGS:
        raise NotAMap(f"The mean of the maps of the heads differs by {differ:.2f} from the map of the mean.")
    return {"english": english, "written": written, "mean": mean, "heads": heads}
