"""Every lesson is whole: nothing stale, nothing leaks, every variant is judged as its author meant."""

from __future__ import annotations

import pytest
from conftest import FIRST

from helpers.authoring import check
from helpers.authoring.check import inspect, inspect_course, inspect_quickly, key_and_variants, solution_lines
from helpers.authoring.lesson_source import sources
from helpers.authoring.mistakes import Accepted, BadEdit, Mistake

LESSONS = sources()
# A lesson's key takes seconds to make, for each seed; the first lesson stands for the others in `make quick`
PATIENT = [
    pytest.param(source, marks=() if source.name == FIRST else pytest.mark.slow, id=source.name) for source in LESSONS
]


@pytest.fixture(params=LESSONS, ids=lambda source: source.name)
def source(request):
    return request.param


def test_nothing_is_stale_leaks_or_is_missing(source):
    assert inspect_quickly(source) == []


@pytest.mark.parametrize("source", PATIENT)
def test_the_shipped_key_is_what_the_lesson_makes_now_and_judges_every_variant_as_meant(source):
    assert list(key_and_variants(source)) == []


def test_a_full_inspection_finds_what_either_finds(monkeypatch):
    monkeypatch.setattr(check, "QUICK_LOOKS", (lambda source: ["quick"],))
    monkeypatch.setattr(check, "key_and_variants", lambda source: ["patient"])
    assert inspect(LESSONS[0]) == [f"{FIRST}: quick", f"{FIRST}: patient"]


def test_the_lessons_fit_together():
    assert inspect_course() == []


def test_a_lesson_that_goes_by_another_name_is_found(monkeypatch):
    (masking,) = sources(["05_masking"])
    planned = {"05_masking": {"title": "What a position may see"}, "06_positions": {"title": "Order"}}
    monkeypatch.setattr(check, "plan", lambda: planned)
    assert list(check.names(masking)) == [
        "helpers/exercises calls it 'Masking', site/lessons.toml 'What a position may see'",
        "it does not begin with its heading: # 5 · What a position may see",
        "it calls lesson 6 'Positions', site/lessons.toml 'Order'",
    ]


def test_every_card_has_two_hints(source):
    for cell in source.read().cells:
        if cell.cell_type == "markdown" and 'class="card"' in cell.source and "**Exercise" in cell.source:
            assert cell.source.count("<details><summary>Hint") == 2, cell.source[:200]


def test_every_solution_line_is_cut_out_of_something(source):
    for exercise in source.lesson:
        cell = source.cells()[exercise.name]
        assert solution_lines(cell) or len(cell.splitlines()) > 3


CELL = "def f(x):\n    ### BEGIN SOLUTION\n    y = x + 1\n    return y\n    ### END SOLUTION"


def test_an_edit_must_fit_exactly_once():
    with pytest.raises(BadEdit, match="0 times"):
        Mistake("f", "name", edit=("z", "a"), title="t", says="s").apply(CELL)
    with pytest.raises(BadEdit, match="times"):
        Mistake("f", "name", edit=("y", "a"), title="t", says="s").apply(CELL)


def test_a_whole_body_takes_the_place_of_the_solution():
    assert Accepted("f", "other", instead="return 1 + x").apply(CELL) == "def f(x):\n    return 1 + x"


@pytest.mark.parametrize(
    "broken",
    [
        {"name": "Not A Slug", "edit": ("a", "b"), "title": "t", "says": "s"},
        {"name": "no-words", "edit": ("a", "b")},
        {"name": "neither", "title": "t", "says": "s"},
        {"name": "both", "edit": ("a", "b"), "instead": "c", "title": "t", "says": "s"},
    ],
)
def test_a_mistake_that_says_nothing_or_changes_nothing_is_refused(broken):
    with pytest.raises(BadEdit):
        Mistake("f", **broken)
