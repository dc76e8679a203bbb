"""The readers' site: site/ and the executed lessons, rendered by Sphinx.

build             the command: stage the sources, run Sphinx, check the pages
course_index      what the lessons say of themselves: titles, sections, exercises, mistakes
reader_notebook   an executed notebook as a reader sees it: folded code, one form of each output
front_page        the panel, the map and the list of lessons on the first page
indexes           pages that list exercises, mistakes, figures and published bugs; entries for search
hero              the figure at the top of the first page
switches          an answer whose parts a reader switches, with the check's panels
find_the_bug      the page that asks what is wrong in the code of the *fix* exercises
terms             a page for each term that people search for
messages          the page of error messages and symptoms
papers            the page of the papers that the course cites
recorded_runs     the page of long training runs
players           interactive figures in a page: what takes the place of a cell that shows one
pocket_export     the weights of the pocket GPT-2 for the browser
postprocess       changes to the HTML that Sphinx and the theme produce
link_check        dead links, remote resources, images without alternative text
templates/        the made pages, as Markdown with Jinja
"""

from __future__ import annotations

import functools
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@functools.cache
def _templates() -> Environment:
    folder = Path(__file__).parent / "templates"
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: object) -> str:
    """The page or block that a template makes of these values; text is escaped, Markup is not."""
    return _templates().get_template(template).render(**values)
