"""Every picture that more than one lesson draws.

    from helpers import plots
    plots.use_course_style()

`plots.diagrams` draws how data flows. All other functions draw on the axes they are given, or on a figure of
their own, and return nothing: a notebook then shows the picture and no line of text under it. To add to a picture, make
the axes first (`figure, ax = plt.subplots()`) and pass them in.
"""

from . import diagrams
from .alignment import alignment
from .bars import bars
from .coloured_text import surprise, surprise_by_model, token_rows
from .curves import curves, loss_curve
from .heads import fold, head_grid
from .hidden import hidden_words
from .ladder_chart import ladder, runs
from .mask_rows import mask_row
from .number_grids import number_grids
from .passes import passes
from .paths import path_row
from .points import convex_hull, hull_picture, label_points, plane
from .search_tree import Candidate, search_tree, search_tree_of
from .sentence_map import sentence_map
from .style import COLOURS, DASHES, MARKERS, SIGNED, WEIGHTS, png, use_course_style
from .weights import colour_scale, heat, heat_pair
