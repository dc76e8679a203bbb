"""The site, the panels, the start page, feedback and report look like one thing."""

import re

import pytest
from test_diagrams import contrast

from helpers import theme
from helpers.checking.show.panel import STYLE
from helpers.course import ROOT
from helpers.grading.reports import pages
from helpers.student import start_page

DRESSED = [
    ROOT / "site" / "conf.py",
    ROOT / "helpers" / "checking" / "show" / "panel.py",
    ROOT / "helpers" / "student" / "start_page.py",
    *sorted((ROOT / "helpers" / "grading" / "reports" / "templates").iterdir()),
]


@pytest.mark.parametrize("file", DRESSED, ids=lambda file: file.name)
def test_colours_stand_in_one_place(file):
    assert re.findall(r"#[0-9a-fA-F]{6}\b", file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
@pytest.mark.parametrize("words", ["ink", "quiet", "muted", "accent", "visited"])
def test_words_stand_out_from_their_ground(words, ground, dark):
    assert contrast(theme.COLOURS[words][dark], theme.COLOURS[ground][dark]) >= 4.5


def test_pages_and_panels_take_their_colours_from_there():
    page = pages._templates().get_template("page.css.j2").render()
    assert theme.variables() in page and theme.variables(dark=True) in page
    assert f"border-radius:{theme.CORNER}" in STYLE and f"border-radius:{theme.CORNER}" in start_page.STYLE
    assert theme.COLOURS["right"][0] in start_page.STYLE
