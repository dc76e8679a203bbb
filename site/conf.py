"""Sphinx settings.

The build (helpers/site) copies this folder and the lessons to one place, and builds there.
"""

import importlib.util
import re
from html import escape
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.util.fileutil import copy_asset

from helpers import theme
from helpers.site.players import assets

project = "From the dot product to GPT-2"
language = "en"
html_title = project
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_use_index = False
html_show_search_summary = False  # Sphinx would fetch the whole page of every result: see finder.js

extensions = ["myst_nb"]
exclude_patterns = ["jupyter_execute"]

# Outputs come from the committed notebooks: a page never shows what its lesson did not give.
nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show = "Show the solution"
nb_code_prompt_hide = "Hide the solution"
nb_ipywidgets_js = {}  # the default loads two scripts from another host
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

pygments_dark_style = "github-dark"
highlight_language = "none"  # a block without a language is plain; code of lessons says what it is
html_theme = "furo"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["course.css", "pages.css", "drawn.css"]
html_js_files = ["course.js"]


def furo_colours(dark):
    """The course's colours under furo's names for them."""
    colour = {name: pair[dark] for name, pair in theme.COLOURS.items()}
    return {
        "font-stack": theme.LETTERS,
        "font-stack--monospace": theme.CODE_LETTERS,
        **{name: colour[ours] for name, ours in theme.SITE_NAMES.items()},
        "color-background-hover--transparent": f"{colour['touched']}00",
    }


html_theme_options = {
    "light_css_variables": furo_colours(dark=False),
    "dark_css_variables": furo_colours(dark=True),
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

# MathJax from the site's own _static, in parts: the usual bundle is half as large again, for a menu that would fetch
# what is not copied.
mathjax_path = "mathjax/startup.js"
MATHJAX_LOADED = ["core", "input/tex", "output/chtml", "a11y/assistive-mml"]
mathjax3_config = {"loader": {"load": MATHJAX_LOADED}, "options": {"enableMenu": False}}
MATHJAX_PARTS = [*(f"{part}.js" for part in ("startup", *MATHJAX_LOADED)), "output/chtml/fonts/tex.js"]
MATHJAX_PARTS += ["output/chtml/fonts/woff-v2", "input/tex/extensions"]


def copy_mathjax(app, error):
    """Put the 1.6 MB of MathJax that the pages use beside them; the whole package has 24."""
    if error is not None:
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    source = Path(package.submodule_search_locations[0]) / "static" / "mathjax"
    for part in MATHJAX_PARTS:
        target = Path(app.outdir, "_static", "mathjax", part)
        copy_asset(source / part, target if (source / part).is_dir() else target.parent)


def name_images(app, doctree):
    """Give each picture of a cell its own alternative text, which the builder noted in the cell's metadata.

    myst-nb has one text for all pictures of a cell, and none that comes with the picture itself.
    """
    for cell in doctree.findall(nodes.container):
        texts = cell.get("cell_metadata", {}).get("alt_texts", [])
        for image, text in zip(cell.findall(nodes.image), texts, strict=False):
            image["alt"] = text


def add_players(app, pagename, templatename, context, doctree):
    """Give a page that holds players their style sheets and scripts."""
    names = re.findall(r'data-player="([\w-]+)"', context.get("body") or "")
    for file in assets(names):
        if file.endswith(".css"):
            app.add_css_file(file)
        else:
            app.add_js_file(file, loading_method="defer")


def open_fold(writer, node):
    """A folded cell whose label is what a screen reader says too (myst-nb's own says "Toggle hidden content")."""
    show, hide = escape(node["prompt_show"]), escape(node["prompt_hide"])
    kind = "solution" if node["prompt_show"] == nb_code_prompt_show else "drawing"
    writer.body.append(
        f'<details class="{kind}"><summary>'
        f'<span class="when-folded">{show}</span><span class="when-open">{hide}</span></summary>\n'
    )


def close_fold(writer, node):
    """The end of a folded cell."""
    writer.body.append("</details>\n")


def scripts_of_search(app, pagename, templatename, context, doctree):
    """What search looks through first is large: only the page that searches loads it."""
    if pagename == "search":
        app.add_js_file("subjects.js")
        app.add_js_file("finder.js")


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", scripts_of_search)
    app.add_node(HideCodeCellNode, override=True, html=(open_fold, close_fold))
    app.connect("doctree-read", name_images)
    app.connect("html-page-context", add_players)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
