"""One look for the whole course.

Every figure is six inches wide, and its 10-point type is still readable on a phone. Nothing is cropped after drawing:
type has one size on every page. A notebook stores a figure twice: as SVG (`themed`), sharp on every screen, which the
site puts into its page, where it follows the theme; and as PNG, 864 dots wide, white and opaque, for where SVG is not
shown. A figure whose SVG would be large is stored as PNG alone, with twice the dots.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import torch
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from PIL import Image

from helpers import theme

from . import themed

# In grey several of these look alike, so every line has a dash pattern and a marker too.
COLOURS = list(theme.FIGURES.values())
DASHES = ["-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (2, 2))]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

# Behind words that lie on lines: a rectangle, since an outline would have each letter drawn anew in an SVG.
HALO = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}

CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}  # words around their place

WIDTH = 6.0  # inches: one column


Numbers = torch.Tensor | np.ndarray | Sequence  # whatever `as_array` takes


def lightness(colours: Numbers) -> np.ndarray:
    """CIE L* of sRGB colours: 0 is black, 100 white, and equal steps look equally large.

    colours: (..., 3) or (..., 4) in [0, 1]. Returns (...). This is what is left of a colour in grey print.
    """
    rgb = np.asarray(colours, dtype=float)[..., :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    return np.where(luminance > 0.008856, 116 * np.cbrt(luminance) - 16, 903.3 * luminance)


def _even_ramp(anchors, steps=128, lightest=98.0, darkest=24.0):
    """Colours through the anchors whose lightness falls in equal steps. Returns (steps, 3)."""
    fine = LinearSegmentedColormap.from_list("", anchors)(np.linspace(0, 1, 4096))[::-1, :3]
    wanted = np.linspace(lightest, darkest, steps)
    return np.stack([np.interp(wanted, lightness(fine), channel) for channel in fine.T], axis=1)


# Two colour maps. Zero is paper white, so that numbers can be read in most cells and print saves
# ink. Lightness falls evenly with size, the same way for either sign: in grey, and to a colour-blind
# reader, dark means large. (PuOr, the usual choice of this kind, ends at L* 33 on one side and 10 on the
# other: in grey, 1 and -1 would look like different sizes.) The positive half of SIGNED is WEIGHTS, so
# scores and the weights made from them match. The sign itself is lost in grey: `heat` writes it into the cell.
_BLUE = _even_ramp(["#ffffff", "#56B4E9", "#0072B2", "#062a4d"])
_ORANGE = _even_ramp(["#ffffff", "#E69F00", "#C24E00", "#4a1600"])
_NOTHING = {"bad": (0, 0, 0, 0)}  # where there is no number
WEIGHTS = ListedColormap(_BLUE, name="course-weights").with_extremes(**_NOTHING)  # from 0 on: attention weights
SIGNED = ListedColormap(np.vstack([_ORANGE[::-1], _BLUE]), name="course-signed").with_extremes(**_NOTHING)  # scores


def use_course_style() -> None:
    """Set the style, and make notebooks store small pictures, with the same bytes each time.

    Call it once, at the top.
    """
    for colours in (WEIGHTS, SIGNED):
        if colours.name not in matplotlib.colormaps:
            matplotlib.colormaps.register(colours)
    plt.rcdefaults()
    plt.style.use(Path(__file__).with_name("course.mplstyle"))
    plt.rcParams["axes.prop_cycle"] = cycler(color=COLOURS) + cycler(linestyle=DASHES)
    plt.rcParams["image.cmap"] = WEIGHTS.name
    _set_up_notebook()


def _set_up_notebook():
    """Let a running notebook store figures as `png` and `themed.svg` make them. Does nothing outside IPython."""
    try:
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    shell = get_ipython()
    if shell is not None:
        set_matplotlib_formats("png", "svg")  # no other format (pdf, retina) that a student's settings may ask for
        formatters = shell.display_formatter.formatters
        formatters["image/svg+xml"].for_type(Figure, _stored_svg)
        formatters["image/png"].for_type(Figure, _stored_png)


def _stored_svg(figure):
    """For a notebook, which asks for this form first; None where the SVG would be large."""
    text = themed.svg(figure)
    figure.png_alone = text is None
    return text


def _stored_png(figure):
    """For a notebook: with twice the dots where there is no SVG beside it."""
    if not getattr(figure, "png_alone", False):
        return base64.b64encode(png(figure)).decode()
    wide, high = (round(themed.PIXELS * inches) for inches in figure.get_size_inches())
    return base64.b64encode(png(figure, scale=2)).decode(), {"width": wide, "height": high}


def png(figure: Figure | None = None, scale: int = 1) -> bytes:
    """The bytes that a notebook stores for a figure (the current one by default).

    The same picture gives the same bytes: the file says neither when nor by which version of matplotlib it was made. It
    keeps 256 colours, which the eye does not miss, and takes a third of the space: a lesson must stay under a megabyte.
    scale: 2 for twice the dots.
    """
    figure = figure or plt.gcf()
    whole = io.BytesIO()
    figure.savefig(whole, format="png", dpi=scale * figure.dpi, bbox_inches=None, facecolor="white")
    small = io.BytesIO()
    Image.open(whole).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return small.getvalue()


def arrow(ax: Axes, start: Any, end: Any, zorder: float | None = None, **look: Any) -> None:
    """An arrow with a filled head, in data coordinates. look: as matplotlib's FancyArrowPatch has it."""
    order: dict[str, Any] = {} if zorder is None else {"zorder": zorder}
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", **look}, **order)


def as_array(values: Numbers) -> np.ndarray:
    """A float array that matplotlib can draw: from a tensor on any device, with or without gradients, or a list."""
    if isinstance(values, torch.Tensor):
        values = values.detach().float().cpu().numpy()
    elif not isinstance(values, np.ndarray):
        values = [as_array(value) if isinstance(value, (torch.Tensor, list, tuple)) else value for value in values]
    return np.asarray(values, dtype=float)
