"""The page "Messages and symptoms": each row is tried, and leads to places that exist."""

from __future__ import annotations

import contextlib
import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from helpers.course import ROOT
from helpers.site import course_index, messages

ROWS = messages.messages()
IMPORTED = {"torch": torch, "nn": nn, "F": F, "__name__": "a_row"}


@pytest.fixture(scope="module")
def lessons():
    return course_index.read_lessons(ROOT / "solutions")


@pytest.mark.parametrize("row", [row for row in ROWS if row.error], ids=lambda row: row.name)
def test_the_lines_of_a_message_raise_it(row):
    kinds = set()
    for lines, words in zip(row.snippets, row.says, strict=True):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - its words are checked below
            exec(compile(lines, row.name, "exec"), dict(IMPORTED))
        assert words.rstrip(".") in str(raised.value)
        kinds.add(raised.typename)
    assert kinds == set(row.error.split(", ")) and not row.prints


@pytest.mark.parametrize("row", [row for row in ROWS if not row.error], ids=lambda row: row.name)
def test_the_lines_of_a_symptom_print_what_the_page_shows(row):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(row.code, row.name, "exec"), dict(IMPORTED))
    assert printed.getvalue() == row.prints != ""


def test_each_row_leads_to_what_explains_it(lessons):
    places = messages.explanations(lessons)
    assert [(row.name, one) for row in ROWS for one in row.see if one not in places] == []
    assert all(row.see and row.search and row.cause.endswith((".", ")")) for row in ROWS) and len(ROWS) >= 20
    text = messages.page(lessons)
    assert all(f"(message-{row.name})=" in text and places[row.see[0]] in text for row in ROWS)


def test_the_page_leaves_out_lessons_that_are_missing():
    assert "lessons/" not in messages.page([]) and "terms/softmax.html" in messages.page([])


def test_a_long_message_is_a_short_heading_and_stands_in_full_below():
    row = next(row for row in ROWS if row.name == "view-size")
    assert row.heading.endswith(" …") and len(row.heading) <= messages.LONGEST_HEADING
    assert row.rest == [row.says[0]]
